"""Columns in: distinct texts by sorting, and files that are no tables."""

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from pyarrow import csv

from holdfast import tables
from holdfast.tables import TableFile, columns_of, distinct


@given(st.lists(st.text(alphabet="ab\0é𝄞", max_size=7), min_size=1, max_size=30))
@settings(deadline=None)
def test_sorted_texts_are_the_distinct_ones(texts):
    column = pa.chunked_array([pa.array(["zz", *texts])]).slice(1)
    values, codes = tables._distinct_text(column)
    assert sorted(values.to_pylist()) == sorted(set(texts))
    assert [values[int(code)].as_py() for code in codes] == texts


def test_long_columns_of_different_texts_are_sorted(monkeypatch):
    column = pa.array([f"id{i}" for i in range(3000)])
    hashed = distinct("us", "c", column)
    monkeypatch.setattr(tables, "_SAMPLE", 100)
    sort, asked = tables._distinct_text, []
    monkeypatch.setattr(tables, "_distinct_text", lambda c: asked.append(len(c)) or sort(c))
    values, codes = distinct("us", "c", column)
    assert asked == [3000]
    assert values.equals(hashed.values)
    np.testing.assert_array_equal(codes, hashed.codes)


def test_texts_that_share_a_hash_are_not_taken_for_one(monkeypatch):
    monkeypatch.setattr(tables, "_MIX", np.uint64(0))
    monkeypatch.setattr(tables, "_SAMPLE", 1)
    assert tables._distinct_text(pa.array(["a", "b", "a"])) is None
    values, codes = distinct("us", "c", pa.array(["a", "b", "a", "c"]))
    assert (values.to_pylist(), codes.tolist()) == (["a", "b", "c"], [0, 1, 0, 2])


def test_long_texts_are_hashed():
    assert tables._distinct_text(pa.array(["x" * 33, "y"])) is None


@pytest.fixture
def table():
    return pa.table(
        {"city": ["oslo", "rome", None, "oslo"], "age": [3, 4, None, 5], "y": [0, 1, 0, 1]}
    )


@pytest.mark.parametrize("suffix", ["parquet", "feather", "csv", "tsv"])
def test_every_kind_of_file_gives_its_columns(table, tmp_path, suffix):
    path = tmp_path / f"table.{suffix}"
    if suffix == "parquet":
        pq.write_table(table, path, row_group_size=3)
    elif suffix == "feather":
        feather.write_feather(table, path)
    else:
        options = csv.WriteOptions(delimiter="\t" if suffix == "tsv" else ",")
        csv.write_csv(table, path, options)
    file = TableFile("us", path)
    assert file.names == ["city", "age", "y"]
    for name in file.names:
        assert file.column(name).to_pylist() == table[name].to_pylist()
    with pytest.raises(ValueError, match=r"us: no column 'cty' in table.*Did you mean 'city'"):
        file.column("cty")


def test_files_that_are_no_tables_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"us: no file .*gone.csv'. Pass the path of a"):
        TableFile("us", tmp_path / "gone.csv")
    for name, content in (
        ("a.parquet", b"PAR1 and no more"),
        ("a.feather", b"ARROW1 and no more"),
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0\0"),
        ("empty.csv", b""),
        ("prose.txt", b"It was a dark and stormy night.\nIt rained.\n"),
        ("head.csv", b"a,b\n"),
        ("ragged.csv", b"a,b\n1,2\n3\n"),
    ):
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"us: {name} cannot be read as a table"):
            TableFile("us", path)


def test_names_that_are_the_same_as_text_are_refused():
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="distinct"):
        columns_of("us", pd.DataFrame({1: [1], "1": [2]}))
