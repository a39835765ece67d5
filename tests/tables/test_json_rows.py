"""JSON lines: the same columns whatever the size of a block."""

import gzip
import json

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given, settings

from holdtrue.tables import open_table
from holdtrue.tables.json_rows import JsonRows
from holdtrue.tables.text import BLOCK

VALUES = {
    "n": st.one_of(st.none(), st.integers(-9, 9), st.floats(-1, 1)),
    "t": st.one_of(st.none(), st.sampled_from(["a", "2024-01-31", "2024-01-31 10:00:00", ""])),
    "b": st.one_of(st.none(), st.booleans()),
    "m": st.one_of(st.none(), st.integers(-9, 9), st.sampled_from(["a", "2024-01-31"])),
}


def read(tmp_path, records, block_size=BLOCK, indent="lines"):
    path = tmp_path / "a.json"
    lines = "".join(json.dumps(record) + "\n" for record in records)
    path.write_text(lines if indent == "lines" else json.dumps(records, indent=indent))
    spill = JsonRows([path], block_size=block_size).read()
    return {name: (spill.column(name).to_pylist(), kind) for name, kind in spill.types.items()}


@given(
    records=st.lists(
        st.fixed_dictionaries({"k": st.just(1)}, optional=VALUES), min_size=1, max_size=8
    ),
    block_size=st.integers(1, 60),
    indent=st.sampled_from(["lines", None, 1]),
)
@settings(max_examples=100)
def test_neither_blocks_nor_the_shape_of_the_file_matter(tmp_path, records, block_size, indent):
    whole = read(tmp_path, records)
    parts = read(tmp_path, records, block_size, indent)
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


@pytest.mark.parametrize("line", [b'{"a\xd4": 1}', b'{"a": "\xd4"}'])
def test_names_and_texts_that_are_not_utf_8_are_refused(tmp_path, line):
    (tmp_path / "a.jsonl").write_bytes(b'{"a": "x"}\n' + line + b"\n")
    with pytest.raises(ValueError, match=r"a.jsonl is not UTF-8: byte 0xd4 .* line 2"):
        open_table(tmp_path / "a.jsonl")


@pytest.mark.parametrize("block_size", [1, 7, BLOCK])
def test_numbers_beside_texts_are_texts_and_columns_keep_their_order(tmp_path, block_size):
    records = [{"a": 1, "title": "Jaws"}, {"a": 2, "title": 300}, {"a": 3, "title": True}]
    found = read(tmp_path, records, block_size)
    assert list(found) == ["a", "title"]
    assert found["title"] == (["Jaws", "300", "true"], pa.string())


@pytest.mark.parametrize("block_size", [1, BLOCK])
@pytest.mark.parametrize("indent", ["lines", None])
def test_whole_numbers_beyond_64_bits_stay_apart(tmp_path, block_size, indent):
    records = [{"n": 1, "x": 1e300}, {"n": 2**63, "x": 2}, {"n": 2**63 + 1, "x": None}]
    columns = read(tmp_path, records, block_size, indent)
    assert columns["n"] == (["1", str(2**63), str(2**63 + 1)], pa.string())
    assert columns["x"] == ([1e300, 2.0, None], pa.float64())


BRACKETS = st.lists(st.text(alphabet='[]{},:"\\ \n', max_size=6), min_size=1, max_size=4)


@given(texts=BRACKETS, block_size=st.integers(1, 20))
def test_brackets_and_quotes_inside_texts_do_not_end_an_object(tmp_path, texts, block_size):
    records = [{"t": text + "x", "n": i} for i, text in enumerate(texts)]
    found = read(tmp_path, records, block_size, indent=1)
    assert found["t"][0] == [record["t"] for record in records]


BROKEN = {
    '{"a": [1, 2], "b": ["x", "y"]}': "is one object that holds others. Expected one object a line",
    '{"a": {"0": 1}, "b": {"0": 2}}': "pandas writes that with to_json",
    "[]": "is empty. Expected one object a line, or an array of objects",
    '[{"a": 1},, {"a": 2}]': "object 2 of a.json is empty: a comma too many",
    '[{"a": 1},]': "object 2 of a.json is empty: a comma too many",
    '[{"a": 1}, {"a": 2': "ends inside its array, after 1 objects",
    '[{"a": 1}] [{"a": 2}]': "goes on after the end of its array, with",
    '[{"a": 1}, {"a": 01}]': "object 2 of a.json is not valid JSON",
    '[{"a": 1}, 2]': "object 2 of a.json must hold one JSON object",
    '[{"a": 1}, {"a": [2]}]': "object 2 of a.json has a list in 'a', where those before it have",
    '{\n "a": 1\n}': "line 1 of a.json is not valid JSON .* Expected one object a line",
}


@pytest.mark.parametrize("content", BROKEN)
@pytest.mark.parametrize("block_size", [3, BLOCK])
def test_broken_json_is_refused_at_its_place(tmp_path, content, block_size):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(ValueError, match=BROKEN[content]):
        JsonRows([tmp_path / "a.json"], block_size=block_size).read()


def test_an_array_may_have_a_byte_order_mark_and_be_packed(tmp_path):
    content = '\ufeff \n [{"a": "é", "b": 1.5}]'
    for name, written in {
        "a.json": content.encode(),
        "b.json": content.encode("utf-16-le"),
        "c.json.gz": gzip.compress(content.encode()),
        "no ending": content.encode(),
    }.items():
        (tmp_path / name).write_bytes(written)
        table = open_table(tmp_path / name)
        assert table.column("a").to_pylist() == ["é"]
        assert table.description == f"{name} (JSON)"


def test_a_header_with_brackets_is_not_json(tmp_path):
    (tmp_path / "a.csv").write_text("[id],{name}\n1,x\n2,y\n")
    assert open_table(tmp_path / "a.csv").names == ["[id]", "{name}"]
