"""Columns in: distinct texts by groups, and files that are no tables."""

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from pyarrow import csv

from holdfast import grouping, tables
from holdfast.tables import TableFile, columns_of, distinct

TEXTS = st.one_of(st.none(), st.text(alphabet="ab\0é𝄞", max_size=9))


def seen_in_texts(monkeypatch, column):
    """Distinct values by compiled groups, after a look that these were asked for."""
    monkeypatch.setattr(tables, "_SAMPLE", 0)
    assert tables.text_groups(column) is not None
    return distinct("us", "c", column)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary()])
@given(texts=st.lists(TEXTS, min_size=1, max_size=30))
@settings(deadline=None)
def test_grouped_texts_are_those_that_arrow_finds(kind, texts):
    array = pa.array(["zz", *texts, None]).cast(kind)
    column = pa.chunked_array([array.slice(1, 1), array.slice(2)])
    hashed = distinct("us", "c", column)
    with pytest.MonkeyPatch.context() as patch:
        values, codes = seen_in_texts(patch, column)
    assert values.equals(hashed.values)
    np.testing.assert_array_equal(codes, hashed.codes)


@pytest.mark.parametrize("n_values", [300, 30_000, 200_000])
def test_long_columns_of_texts_are_grouped_in_parts(n_values):
    codes = np.random.default_rng(0).integers(0, n_values, 200_000)
    column = pa.array([f"text {i}" for i in range(n_values)]).take(pa.array(codes))
    assert (tables.text_groups(column) is None) == (n_values < 30_000)
    encoded = column.dictionary_encode()
    found = distinct("us", "c", column)
    assert found.values.equals(encoded.dictionary.cast(pa.large_string()))
    np.testing.assert_array_equal(found.codes, np.asarray(encoded.indices))


def test_texts_that_share_a_hash_are_not_taken_for_one():
    # By the loops as they are written, in Python, with a hash that is 0 for every key.
    keys = np.array([[1, 2], [1, 3], [1, 2], [4, 2]], dtype=np.uint64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "_mixed", lambda mixed, word: np.uint64(0))
        codes, first = grouping.group_keys.py_func(
            keys, np.arange(4, dtype=np.uint32), np.array([4])
        )
    assert (codes.tolist(), first.tolist()) == ([0, 1, 0, 2], [0, 1, 3])


def test_long_texts_are_left_to_arrow(monkeypatch):
    monkeypatch.setattr(tables, "_SAMPLE", 0)
    assert tables.text_groups(pa.array(["x" * 39, "y"])) is not None
    assert tables.text_groups(pa.array(["x" * 40, "y"])) is None


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
