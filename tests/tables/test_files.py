"""Patterns, standard input and files that unpack to far more than they should."""

import io
import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from holdtrue.tables import open_table


def write_csv(path, rows, header="a,t"):
    path.write_text("\n".join([header, *rows]) + "\n")


# --- patterns -----------------------------------------------------------------------------------


def test_files_of_a_pattern_have_the_types_of_one_file(tmp_path):
    parts = [["1,2024-01-31"], ["2.5,NA"], ["?,soon"]]
    for i, rows in enumerate(parts):
        write_csv(tmp_path / f"part{i}.csv", rows)
    write_csv(tmp_path / "whole", [row for rows in parts for row in rows])
    several, one = open_table(tmp_path / "part*.csv"), open_table(tmp_path / "whole")
    assert several.types == one.types == {"a": pa.float64(), "t": pa.string()}
    for name in one.names:
        assert several.column(name).to_pylist() == one.column(name).to_pylist()
    assert several.description == "part*.csv (CSV, 3 files)"
    before = several.fingerprint().digest
    write_csv(tmp_path / "part1.csv", ["3,NA"])
    assert open_table(tmp_path / "part*.csv").fingerprint().digest != before


def write_json(table, path):
    path.write_text(str(table.to_pylist()).replace("'", '"').replace("None", "null"))


def write_parquet(table, path):
    pq.write_table(table, path)


def write_feather(table, path):
    feather.write_feather(table, path)


@pytest.mark.parametrize("write", [write_json, write_parquet, write_feather])
def test_every_kind_of_file_may_come_in_several(write, tmp_path):
    write(pa.table({"a": [1, 2], "t": ["x", None]}), tmp_path / "1.part")
    write(pa.table({"a": [0.5, None], "t": ["y", "x"]}), tmp_path / "2.part")
    table = open_table(tmp_path / "[12].part")
    assert table.n_rows == 4
    assert table.column("a").to_pylist() == [1, 2, 0.5, None]
    rows = [row for batch in table.batches(rows=3) for row in batch.to_pylist()]
    assert [row["t"] for row in rows] == ["x", None, "y", "x"]
    write(pa.table({"a": [1], "T": ["x"]}), tmp_path / "2.part")
    with pytest.raises(ValueError, match=r"2.part differs from 1.part. Missing: 't'. New: 'T'."):
        open_table(tmp_path / "?.part")


def test_folders_of_a_pattern_are_a_column(tmp_path):
    for year in (2023, 2024):
        (tmp_path / f"year={year}").mkdir()
        pq.write_table(pa.table({"a": [year % 10]}), tmp_path / f"year={year}" / "rows.parquet")
    table = open_table(tmp_path / "**" / "*.parquet")
    assert table.column("year").to_pylist() == [2023, 2024]
    assert table.column("a").to_pylist() == [3, 4]


def test_patterns_of_unlike_files_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file matches .*\*.csv'. Pass the path of"):
        open_table(tmp_path / "*.csv")
    write_csv(tmp_path / "a.csv", ["1,2"])
    write_csv(tmp_path / "b.csv", ["1,2"], header="t,a")
    with pytest.raises(ValueError, match=r"columns in one order. b.csv differs from a.csv"):
        open_table(tmp_path / "*.csv")
    (tmp_path / "b.csv").write_text("")
    with pytest.raises(ValueError, match=r"b.csv is empty"):
        open_table(tmp_path / "*.csv")
    write_csv(tmp_path / "b.csv", ["1,2", "3"])
    with pytest.raises(ValueError, match=r"line 3 of b.csv has 1 field, expected 2"):
        open_table(tmp_path / "*.csv")
    pq.write_table(pa.table({"a": [1], "t": [2]}), tmp_path / "b.csv")
    with pytest.raises(ValueError, match=r"of one kind. a.csv is CSV and b.csv is Parquet"):
        open_table(tmp_path / "*.csv")


def test_a_name_with_brackets_is_a_file_if_it_exists(tmp_path):
    write_csv(tmp_path / "rows[1].csv", ["1,2"])
    assert open_table(tmp_path / "rows[1].csv").description == "rows[1].csv (CSV)"


# --- standard input -----------------------------------------------------------------------------


def test_standard_input_is_read_to_its_end(tmp_path, monkeypatch):
    write_csv(tmp_path / "a.csv", ["1,x", "2,y"])
    with (tmp_path / "a.csv").open("rb") as file:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
        table = open_table("-")
    assert table.description == "standard input (CSV)"
    assert table.column("t").to_pylist() == ["x", "y"]


def test_an_empty_standard_input_is_refused(monkeypatch):
    reader, writer = os.pipe()
    os.close(writer)
    with os.fdopen(reader) as file:
        monkeypatch.setattr(sys, "stdin", file)
        with pytest.raises(ValueError, match="writes to standard input, or it wrote nothing"):
            open_table("-")


# --- what unpacks to too much -------------------------------------------------------------------


def write_stream(table, path):
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(str(path), table.schema, options=options) as sink:
        sink.write_table(table)


def write_zstd_feather(table, path):
    feather.write_feather(table, path, compression="zstd")


def write_zstd_parquet(table, path):
    pq.write_table(table, path, compression="zstd", use_dictionary=False)


@pytest.mark.parametrize("write", [write_stream, write_zstd_feather, write_zstd_parquet])
@pytest.mark.parametrize("kind", ["numbers", "texts", "dictionary"])
def test_a_zstd_bomb_is_refused_before_it_is_unpacked(write, kind, tmp_path, monkeypatch):
    monkeypatch.setattr("holdtrue.tables.files._MAX_UNPACKED", 1 << 20)
    zeros = np.zeros(1_000_000)
    columns = {
        "numbers": pa.array(zeros),
        "texts": pa.array(["x" * 1000] * 4000),
        "dictionary": pa.array(["y" * (1 << 22)]).dictionary_encode(),
    }
    bomb = pa.table({"a": columns[kind]})
    write(bomb, tmp_path / "bomb")
    match = r"bomb unpacks to more than .* over 200 times its size"
    with pytest.raises(ValueError, match=match):
        open_table(tmp_path / "bomb")
    if write is write_stream:  # what is damaged behind a bomb does not hide it
        content = (tmp_path / "bomb").read_bytes()
        (tmp_path / "bomb").write_bytes(content[:-8] + b"\xff\xff\xff\xff\x08\0\0\0" + b"\xff" * 8)
        with pytest.raises(ValueError, match=match):
            open_table(tmp_path / "bomb")
    write(pa.table({"a": np.random.default_rng(0).random(200_000)}), tmp_path / "bomb")
    assert open_table(tmp_path / "bomb").n_rows == 200_000


def test_a_column_of_few_bytes_and_a_billion_rows_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("holdtrue.tables.files._MAX_UNPACKED", 1 << 20)
    pq.write_table(pa.table({"a": np.zeros(2_000_000)}), tmp_path / "bomb.parquet")
    with pytest.raises(ValueError, match=r"bomb.parquet unpacks to more than"):
        open_table(tmp_path / "bomb.parquet")
