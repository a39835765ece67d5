"""JSON lines: the same columns whatever the size of a block."""

import json

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from holdtrue.tables.json_lines import JsonLines
from holdtrue.tables.text import BLOCK

VALUES = {
    "n": st.one_of(st.none(), st.integers(-9, 9), st.floats(-1, 1)),
    "t": st.one_of(st.none(), st.sampled_from(["a", "2024-01-31", "2024-01-31 10:00:00", ""])),
    "b": st.one_of(st.none(), st.booleans()),
}


def read(tmp_path, records, block_size=BLOCK):
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    spill, types = JsonLines("us", path, block_size=block_size).read()
    return {name: (spill.column(name, kind).to_pylist(), kind) for name, kind in types.items()}


@given(
    records=st.lists(
        st.fixed_dictionaries({"k": st.just(1)}, optional=VALUES), min_size=1, max_size=8
    ),
    block_size=st.integers(1, 60),
)
@settings(
    deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_blocks_do_not_matter(tmp_path, records, block_size):
    whole = read(tmp_path, records)
    parts = read(tmp_path, records, block_size)
    assert list(parts) == list(whole)
    assert parts == whole
    for name, (values, _) in whole.items():
        given_values = [record.get(name) for record in records]
        assert [v is None for v in values] == [v is None for v in given_values]


@pytest.mark.parametrize("block_size", [1, BLOCK])
def test_dates_beside_texts_are_texts_as_they_were_written(tmp_path, block_size):
    records = [{"d": "2024-01-31", "e": "2024-01-31", "n": 1}, {"d": "soon", "n": 2.5}]
    found = read(tmp_path, records, block_size)
    assert list(found) == ["d", "e", "n"]
    assert found["d"] == (["2024-01-31", "soon"], pa.string())
    assert pa.types.is_timestamp(found["e"][1])
    assert found["n"] == ([1.0, 2.5], pa.float64())
