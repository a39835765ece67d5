"""Files and frames as tables: the same values by every door, and errors that say what to do."""

import contextlib
import datetime as dt
import gc
import gzip
import hashlib
import json
import os
import struct
import threading
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from holdtrue.sums.packing import flatbuffer_field
from holdtrue.tables import open_table


@pytest.fixture
def table():
    return pa.table(
        {
            "city": ["oslo", "rome", None, "oslo"],
            "age": [3, 4, None, 5],
            "weight": [0.5, None, 1.0, 2.25],
            "day": pa.array([0, 1, None, 3], pa.date32()),
            "y": [False, True, False, True],
        }
    )


def write_duckdb(given, path):
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people AS SELECT * FROM given")


def write_json(table, path):
    lines = [json.dumps(row, default=str) for row in table.to_pylist()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_stream(table, path):
    with pa.ipc.new_stream(str(path), table.schema) as sink:
        sink.write_table(table, max_chunksize=3)


def write_folder(table, path):
    for i in range(2):
        (path / f"part={i}").mkdir(parents=True)
        pq.write_table(table.slice(2 * i, 2), path / f"part={i}" / "rows.parquet")


def write_csv(table, path):
    csv.write_csv(table, path, csv.WriteOptions(delimiter="\t" if path.suffix == ".tsv" else ","))


def write_gzip(table, path):
    with gzip.open(path, "wb") as file:
        csv.write_csv(table, file)


WRITERS = {
    "rows.csv": write_csv,
    "rows.tsv": write_csv,
    "rows.csv.gz": write_gzip,
    "rows.jsonl": write_json,
    "rows.parquet": lambda table, path: pq.write_table(table, path, row_group_size=3),
    "rows": write_folder,
    "rows.feather": lambda table, path: feather.write_feather(table, path, chunksize=3),
    "rows.arrows": write_stream,
    "rows.duckdb": write_duckdb,
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_kind_of_file_gives_the_same_values(table, tmp_path, name):
    path = tmp_path / name
    WRITERS[name](table, path)
    found = open_table(path)
    assert found.names[:5] == table.column_names
    assert found.n_rows == 4
    assert found.path == path
    assert found.description.startswith(f"{name} (")
    for own in table.column_names:
        column = found.column(own)
        values = column.to_pylist()
        if name == "rows.jsonl" and own == "day":
            values = [value and value.date() for value in values]
        assert values == table[own].to_pylist(), own
        assert found.kinds[own] == {"city": "category", "age": "integer", "y": "category"}.get(
            own, "number"
        )
    for _ in range(2):  # again and again
        batches = list(found.batches(["y", "city"], rows=2))
        assert [batch.schema for batch in batches] == [batches[0].schema] * len(batches)
        assert all(batch.num_rows <= 2 for batch in batches)
        assert batches[0].schema.names == ["y", "city"]
        assert [v for b in batches for v in b.column("city").to_pylist()] == table[
            "city"
        ].to_pylist()
    assert found.fingerprint() == open_table(path).fingerprint()
    with pytest.raises(ValueError, match=r"no column 'cty' in rows.*Did you mean 'city'"):
        found.column("cty")
    with pytest.raises(ValueError, match=r"no column 'cty' in rows.*Did you mean 'city'"):
        next(found.batches(["cty"]))


def test_folders_that_name_values_become_columns(table, tmp_path):
    write_folder(table, tmp_path / "rows")
    found = open_table(tmp_path / "rows")
    assert found.column("part").to_pylist() == [0, 0, 1, 1]
    assert found.kinds["part"] == "integer"
    assert [b.num_rows for b in found.batches(["part", "y"])] == [2, 2]


@pytest.mark.parametrize("make", [lambda t: t, lambda t: t.to_pandas(), pl.from_arrow])
def test_frames_are_tables_too(table, make):
    found = open_table(make(table))
    assert found.path is None
    assert found.names == table.column_names
    assert found.n_rows == 4
    assert found.column("city").to_pylist() == table["city"].to_pylist()
    batch = next(found.batches(["weight", "y"], rows=3))
    assert batch.num_rows == 3
    assert found.fingerprint() == open_table(make(table)).fingerprint()
    assert "the values of 4 rows" in str(found.fingerprint())


def test_columns_of_several_types_come_as_text_in_batches():
    found = open_table(pd.DataFrame({"a": [1, "x", None, float("nan")], "b": [1, 2, 3, 4]}))
    assert next(found.batches()).column("a").to_pylist() == ["1", "x", None, None]
    assert open_table(found._source._columns["b"].to_numpy().reshape(2, 2)).names == [
        "x0",
        "x1",
    ]


def test_a_fingerprint_tells_files_apart_and_says_of_what_it_is(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n" + "3,4\n" * 99)
    whole = open_table(path).fingerprint()
    assert whole.covers == "its 404 bytes"
    monkeypatch.setattr("holdtrue.tables.table.WHOLE", 100)
    monkeypatch.setattr("holdtrue.tables.table._END", 50)
    ends = open_table(path).fingerprint()
    assert "its size, 404 bytes, and its first and last" in ends.covers
    assert ends.digest != whole.digest
    path.write_text("a,b\n1,2\n" + "3,4\n" * 98 + "3,5\n")
    assert open_table(path).fingerprint().digest != ends.digest


# --- types that the caller asks for -------------------------------------------------------------


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet", "rows.jsonl"])
def test_types_can_be_asked_for(tmp_path, name):
    table = pa.table(
        {"zip": [501, 10001], "on": ["yes", "No"], "day": ["2024-01-31", "?"], "n": ["1", "2"]}
    )
    WRITERS[name](table, tmp_path / name)
    types = {"zip": "text", "on": "bool", "day": "date", "n": "number"}
    found = open_table(tmp_path / name, types=types)
    assert found.column("zip").to_pylist() == ["501", "10001"]
    assert found.column("on").to_pylist() == [True, False]
    assert [str(v)[:10] for v in found.column("day").to_pylist()] == ["2024-01-31", "None"]
    assert found.column("n").to_pylist() == [1.0, 2.0]
    assert found.kinds == {"zip": "category", "on": "category", "day": "number", "n": "number"}
    (batch,) = found.batches()
    assert batch.schema.types == [found.types[own] for own in found.names]
    assert batch.column("zip").to_pylist() == ["501", "10001"]


@pytest.mark.parametrize(
    "wanted, value", [("integer", "7.5"), ("number", "1,5"), ("date", "31.1.2024"), ("bool", "2")]
)
def test_a_type_that_cannot_be_met_names_the_line_and_the_value(tmp_path, wanted, value):
    good = {"integer": "007", "number": "?", "date": "2024-01-31 12:00", "bool": "T"}[wanted]
    (tmp_path / "a.csv").write_text(f'a,b\n"x\n\ny",{good}\n\n2,"{value}"\n3,{good}\n')
    with pytest.raises(
        ValueError,
        match=rf"column 'b' of a.csv cannot be read as '{wanted}'. Got '{value}' in line 6",
    ):
        open_table(tmp_path / "a.csv", types={"b": wanted})
    frame = pa.table({"b": [good, None, value]})
    with pytest.raises(ValueError, match=rf"column 'b' of pyarrow Table .*Got '{value}' in row 3"):
        open_table(frame, types={"b": wanted}).column("b")


@pytest.mark.parametrize("wanted, values", [("date", [2023, 2024]), ("bool", [1, 2])])
def test_numbers_are_not_taken_for_dates_or_for_true(tmp_path, wanted, values):
    pq.write_table(pa.table({"b": [None, 0, 1], "y": [1, 2, 3]}), tmp_path / "good.parquet")
    table = open_table(tmp_path / "good.parquet", types={"b": "bool"})
    assert table.column("b").to_pylist() == [None, False, True]
    pq.write_table(pa.table({"b": values, "y": [1, 2]}), tmp_path / "a.parquet")
    table = open_table(tmp_path / "a.parquet", types={"b": wanted})
    with pytest.raises(ValueError, match=rf"cannot be read as '{wanted}'. Got \d+ in row"):
        table.column("b")


def test_a_wanted_type_is_one_that_we_know():
    frame = pa.table({"zip": [1]})
    with pytest.raises(ValueError, match=r"the type of column 'zip' must be one of 'text'"):
        open_table(frame, types={"zip": "str"})
    with pytest.raises(ValueError, match=r"no column 'zap'. Did you mean 'zip'"):
        open_table(frame, types={"zap": "text"})


def test_leading_zeros_are_dropped_where_whole_numbers_are_asked_for(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,007\n2,?\n")
    found = open_table(tmp_path / "a.csv", types={"b": "integer"})
    assert found.column("b").to_pylist() == [7, None]


# --- errors -------------------------------------------------------------------------------------

BAD = {
    "gone.csv": (None, FileNotFoundError, r"no file .*gone.csv'. Pass the path of a CSV"),
    "empty.csv": (b"", ValueError, r"empty.csv is empty"),
    "blank.csv": (b"\n\n  \n", ValueError, r"blank.csv is empty"),
    "head.csv": (b"a,b\n", ValueError, r"head.csv has a header of 2 columns and no rows"),
    "ragged.csv": (b"a,b\n1,2\n\n3\n", ValueError, r"line 4 of ragged.csv has 1 field, expected 2"),
    "long.csv": (b'a,b\n1,"\n"\n3,4,5\n', ValueError, r"line 4 of long.csv has 3 fields"),
    "open.csv": (b'a,b\n1,2\n3,"4\n5,6\n', ValueError, r"ends inside a quote that opens in line 3"),
    "twice.csv": (b"a,b,a\n1,2,3\n", ValueError, r"distinct. twice.csv has 'a' as column 1 and co"),
    "one.txt": (b"It rained.\nIt poured.\n", ValueError, r"one.txt has one column only, 'It rain"),
    "latin.csv": (b"a,b\n1,x\n2,caf\xe9\n", ValueError, r"byte 0xe9 at position 13, line 3."),
    "head8.csv": (b"a,caf\xe9\n1,x\n", ValueError, r"byte 0xe9 at position 5, line 1"),
    "picture.csv": (b"\x89PNG\r\n\x1a\n\0\0\0", ValueError, r"picture.csv is not a table"),
    "book.csv": (b"PK\x03\x04 and so on", ValueError, r"book.csv is a zip file. Unpack it"),
    "a.parquet": (b"PAR1 and no more", ValueError, r"a.parquet cannot be read as Parquet .*cut"),
    "a.feather": (b"ARROW1 and no more", ValueError, r"a.feather cannot be read as an Arrow file"),
    "a.arrows": (b"\xff\xff\xff\xff and", ValueError, r"a.arrows cannot be read as an Arrow"),
    "a.duckdb": (b"12345678DUCK and", ValueError, r"a.duckdb cannot be opened as a DuckDB file"),
    "bad.jsonl": (b'{"a": 1}\n{"a": }\n', ValueError, r"line 2 of bad.jsonl is not valid JSON"),
    "list.jsonl": (b'[1, 2]\n', ValueError, r"object 1 of list.jsonl must hold one JSON object"),
    "nested.jsonl": (
        b'{"a": 1}\n\n{"a": [2]}\n', ValueError, r"line 3 of .* has a list in 'a', where .* number"
    ),
    "blank.jsonl": (b"\n\n", ValueError, r"blank.jsonl is empty"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_files_that_are_no_tables_are_refused(tmp_path, name):
    content, kind, message = BAD[name]
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(kind, match="^(open_table|Table): .*" + message):
        open_table(tmp_path / name)


def test_an_empty_name_is_no_file_and_not_the_working_folder(tmp_path, monkeypatch):
    pq.write_table(pa.table({"a": [1, 2], "b": [3, 4]}), tmp_path / "a.parquet")
    monkeypatch.chdir(tmp_path)
    assert open_table(".").n_rows == 2
    with pytest.raises(FileNotFoundError, match=r"the name of the file is empty. Pass the path of"):
        open_table("")


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_gzip_file_that_was_cut_off_is_named(tmp_path, share):
    rng = np.random.default_rng(0)
    text = "a,b\n" + "\n".join(f"{i},{x}" for i, x in enumerate(rng.random(1000)))
    content = gzip.compress(text.encode())
    (tmp_path / "a.csv.gz").write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=r"a.csv.gz cannot be unpacked after .* cut off"):
        open_table(tmp_path / "a.csv.gz")


def test_a_damaged_row_group_is_named(tmp_path):
    path = tmp_path / "a.parquet"
    table = pa.table({"a": np.random.default_rng(0).random(3000), "b": [0, 1] * 1500})
    pq.write_table(table, path, row_group_size=1000, use_dictionary=False)
    place = pq.read_metadata(path).row_group(1).column(0).data_page_offset
    content = bytearray(path.read_bytes())
    content[place : place + 40] = b"\xff" * 40
    path.write_bytes(content)
    found = open_table(path)
    assert len(found.column("b")) == 3000
    message = r"row group 1 \(of 3, from 0\) of a.parquet cannot be read in column 'a'"
    with pytest.raises(ValueError, match=message):
        found.column("a")
    with pytest.raises(ValueError, match=message):
        list(found.batches())


def test_a_parquet_file_that_was_cut_off_is_named(tmp_path, table):
    path = tmp_path / "a.parquet"
    pq.write_table(table, path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"a.parquet cannot be read as Parquet"):
        open_table(path)


def test_a_stream_whose_message_points_back_is_refused_and_not_read_for_ever(tmp_path, table):
    write_stream(table, tmp_path / "a.arrows")
    content, at = bytearray((tmp_path / "a.arrows").read_bytes()), 0
    while True:  # to the first batch: schemas have no body
        (length,) = struct.unpack_from("<i", content, at + 4)
        head = bytes(content[at + 8 : at + 8 + length])
        (message,) = struct.unpack_from("<I", head)
        if head[flatbuffer_field(head, message, 1)] == 3:
            break
        at += 8 + length
    place = at + 8 + flatbuffer_field(head, message, 3)
    struct.pack_into("<q", content, place, -(8 + length))  # its bodyLength
    (tmp_path / "a.arrows").write_bytes(content)
    with pytest.raises(
        ValueError, match=r"a.arrows cannot be read as an Arrow stream after 0 rows"
    ):
        open_table(tmp_path / "a.arrows")


@pytest.mark.parametrize("name", ["a.feather", "a.arrows"])
def test_arrow_files_whose_names_are_not_utf_8_are_refused(tmp_path, name):
    rows = pa.table({"abc": [1, 2], "y": [0, 1]})
    write = write_stream if name == "a.arrows" else feather.write_feather
    write(rows, tmp_path / name)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content.replace(b"abc", b"ab\xf1"))
    with pytest.raises(ValueError, match=rf"^open_table: {name} cannot be read as an Arrow"):
        open_table(tmp_path / name)


def test_folders_must_hold_tables_of_one_kind(tmp_path, table):
    folder = tmp_path / "rows"
    folder.mkdir()
    with pytest.raises(ValueError, match=r"the folder 'rows' holds no Parquet files"):
        open_table(folder)
    pq.write_table(table, folder / "a.parquet")
    pq.write_table(
        table.rename_columns(["city", "age", "weight", "date", "y"]), folder / "b.parquet"
    )
    with pytest.raises(
        ValueError, match=r"b.parquet differs from a.parquet. Missing: 'day'. New: 'date'"
    ):
        open_table(folder)
    pq.write_table(table.set_column(1, "age", pa.array(["x"] * 4)), folder / "b.parquet")
    with pytest.raises(
        ValueError, match=r"same types. Column 'age' is int64 in a.parquet and string in b"
    ):
        open_table(folder)
    (folder / "year=1").mkdir()
    (folder / "b.parquet").rename(folder / "year=1" / "b.parquet")
    with pytest.raises(ValueError, match=r"folders of rows must name the same columns"):
        open_table(folder)


def test_whole_numbers_and_numbers_of_two_files_are_numbers(tmp_path):
    for name, values in (("a", [1, 2]), ("b", [0.5, None])):
        pq.write_table(pa.table({"x": values, "t": ["u", "v"]}), tmp_path / f"{name}.parquet")
    found = open_table(tmp_path)
    assert found.column("x").to_pylist() == [1.0, 2.0, 0.5, None]
    assert [batch.schema.types[0] for batch in found.batches()] == [pa.float64()] * 2


def test_nested_columns_are_refused_only_where_they_are_used(tmp_path):
    table = pa.table({"a": [[1], [2]], "b": [1, 2]})
    pq.write_table(table, tmp_path / "a.parquet")
    for source in (table, tmp_path / "a.parquet"):
        found = open_table(source)
        assert found.names == ["a", "b"]
        assert next(found.batches()).schema.names == ["b"]
        with pytest.raises(TypeError, match=r"column 'a' holds values that cannot be counted"):
            found.column("a")
        with pytest.raises(TypeError, match=r"column 'a' holds values that cannot be counted"):
            next(found.batches(["a"]))


def test_options_that_do_not_apply_are_refused(tmp_path, table):
    write_csv(table, tmp_path / "a.csv")
    with pytest.raises(ValueError, match=r"table is for DuckDB and Excel files only. Got 'people'"):
        open_table(tmp_path / "a.csv", table="people")
    with pytest.raises(ValueError, match=r"encoding is for text files only. Got 'latin-1'"):
        open_table(table, encoding="latin-1")
    for name in ("klingon", "rot13"):
        with pytest.raises(ValueError, match=rf"no encoding '{name}'"):
            open_table(tmp_path / "a.csv", encoding=name)


def test_frames_without_rows_or_that_are_lazy_are_refused():
    with pytest.raises(ValueError, match=r"the table has 1 columns and no rows"):
        open_table(pa.table({"a": pa.array([], pa.int64())}))
    with pytest.raises(TypeError, match=r"expected a data frame .*collect"):
        open_table(pl.LazyFrame({"a": [1]}))


# --- DuckDB -------------------------------------------------------------------------------------


@pytest.fixture
def database(tmp_path):
    path = tmp_path / "shop.db"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE orders AS SELECT i AS id, i % 3 AS n FROM range(9) t(i)")
        connection.execute('CREATE TABLE "odd ""name" AS SELECT 1 AS a')
        connection.execute("CREATE VIEW big AS SELECT * FROM orders WHERE n > 1")
    return path


def test_a_table_a_view_or_a_query_of_a_database_is_a_table(database):
    assert open_table(database, table="orders").n_rows == 9
    assert open_table(database, table='odd "name').column("a").to_pylist() == [1]
    assert open_table(database, table="big").column("n").to_pylist() == [2, 2, 2]
    query = "SELECT n, count(*) AS size FROM orders GROUP BY n ORDER BY n;"
    assert open_table(database, table=query).column("size").to_pylist() == [3, 3, 3]


@pytest.mark.parametrize(
    "query, message",
    [
        (
            None,
            r"has 3 tables \('big', 'odd \"name', 'orders'\). Pass the name of one, or a SELECT",
        ),
        ("oders", r"no table 'oders' in shop.db, which has .* Did you mean 'orders'"),
        ("DROP TABLE orders", r"must be the name of a table or one SELECT"),
        ("SELECT 1 AS a; SELECT 2 AS a", r"must be the name of a table or one SELECT"),
        ("COPY orders TO 'x.csv'", r"must be the name of a table or one SELECT"),
        ("INSTALL httpfs", r"must be the name of a table or one SELECT"),
        ("SELEC id FROM orders", r"is not a SELECT that DuckDB understands"),
        ("SELECT nothing FROM orders", r"DuckDB refuses the query on shop.db"),
        ("SELECT * FROM read_csv('/etc/passwd')", r"DuckDB refuses the query on shop.db"),
        ("SELECT * FROM read_text('shop.db')", r"DuckDB refuses the query on shop.db"),
        ("SELECT id, n AS id FROM orders", r"names must be distinct. .*'id' 2 times"),
        ("SELECT * FROM orders WHERE n > 5", r"has no rows"),
        (" ", r"no table ' ' in shop.db"),
    ],
)
def test_queries_read_one_file_and_nothing_else(database, query, message):
    before = database.read_bytes()
    with pytest.raises(ValueError, match="^(open_table|Table): .*" + message):
        open_table(database, table=query)
    assert database.read_bytes() == before
    assert not (database.parent / "x.csv").exists()


def test_dates_of_a_database_keep_their_type(tmp_path):
    with duckdb.connect(str(tmp_path / "d.db")) as connection:
        connection.execute("CREATE TABLE t AS SELECT DATE '2024-02-29' AS d, 1 AS y")
    assert open_table(tmp_path / "d.db").column("d").to_pylist() == [dt.date(2024, 2, 29)]


# --- pipes, devices and files that change ---------------------------------------------------------

needs_fifo = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs FIFOs")


def content_of(table, ending, tmp_path):
    """Bytes of the table in the format of an ending."""
    path = tmp_path / f"whole.{ending}"
    if ending == "parquet":
        pq.write_table(table, path)
    elif ending == "feather":
        feather.write_feather(table, path)
    elif ending == "arrows":
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table)
    elif ending == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    else:
        csv.write_csv(table, path)
    return path.read_bytes()


@needs_fifo
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "feather", "arrows"])
def test_a_pipe_is_read_like_a_file(ending, tmp_path):
    rows = pa.table({"a": list(range(20_000)), "b": ["x", "y"] * 10_000})
    content = content_of(rows, ending, tmp_path)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_bytes, args=(content,))
    writer.start()
    table = open_table(fifo)
    writer.join()
    assert table.description.startswith("pipe (")
    assert table.column("a").to_pylist() == rows["a"].to_pylist()
    assert table.column("b").to_pylist() == rows["b"].to_pylist()
    assert table.fingerprint().digest == hashlib.sha256(content).hexdigest()
    folder = table.path.parent
    twin = table.only(["a"])
    del table
    assert len(twin.column("a")) == 20_000
    del twin
    gc.collect()
    assert not folder.exists()


@needs_fifo
def test_a_pipe_that_nobody_writes_to_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("holdtrue.tables.files._PATIENCE", 0.05)
    os.mkfifo(tmp_path / "fifo")
    with pytest.raises(ValueError, match="no program writes to the pipe"):
        open_table(tmp_path / "fifo")


@needs_fifo
def test_a_pipe_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDTRUE_MAX_SPILL", "3e6")
    os.mkfifo(tmp_path / "fifo")

    def write_on():
        with contextlib.suppress(BrokenPipeError), (tmp_path / "fifo").open("wb") as file:
            while True:
                file.write(b"1,2\n" * 100_000)

    writer = threading.Thread(target=write_on)
    writer.start()
    with pytest.raises(ValueError, match=r"gives more than 0.003 GB, as much as is allowed"):
        open_table(tmp_path / "fifo")
    writer.join()


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs devices")
@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_a_device_is_refused(device):
    with pytest.raises(ValueError, match="is a device, not a file"):
        open_table(device)


def test_a_feather_file_that_is_cut_off_while_open_is_refused(tmp_path):
    path = tmp_path / "a.feather"
    feather.write_feather(pa.table({"a": np.arange(200_000)}), path, compression="uncompressed")
    table = open_table(path)
    os.truncate(path, 4096)
    with pytest.raises(ValueError, match=r"of a.feather cannot be read"):
        table.column("a")


# --- what a table may take ----------------------------------------------------------------------


def test_a_view_over_a_trillion_rows_is_refused_before_the_disk_is_full(tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDTRUE_MAX_SPILL", "5e7")
    with duckdb.connect(str(tmp_path / "bomb.duckdb")) as connection:
        connection.execute(
            "CREATE VIEW v AS SELECT range AS a, hash(range) AS b FROM range(1000000000000)"
        )
    with pytest.raises(ValueError, match=r"takes more than 0.05 GB .* set TMPDIR"):
        open_table(tmp_path / "bomb.duckdb")


def test_a_gzip_file_that_unpacks_to_far_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("holdtrue.tables.files._MAX_UNPACKED", 1 << 20)
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 4_000_000))
    with pytest.raises(ValueError, match=r"bomb.csv.gz unpacks to more than .* over 200 times"):
        open_table(path)
    varied = "".join(f"{i},{i * i % 977}\n" for i in range(200_000))
    path.write_bytes(gzip.compress(b"a,b\n" + varied.encode()))
    assert open_table(path).n_rows == 200_000


def test_a_limit_that_is_not_a_number_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("holdtrue.tables.source.IN_MEMORY", 0)
    monkeypatch.setenv("HOLDTRUE_MAX_SPILL", "much")
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="HOLDTRUE_MAX_SPILL must be a number of bytes"):
        open_table(tmp_path / "a.csv")


# --- columns that are not what they seem --------------------------------------------------------


@pytest.mark.parametrize("ending", ["parquet", "feather", "arrows"])
def test_row_numbers_of_pandas_are_no_column(ending, tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=[7, 5, 6])
    table = pa.Table.from_pandas(frame)
    assert table.column_names == ["a", "__index_level_0__"]
    content = content_of(table, ending, tmp_path)
    (tmp_path / "t").write_bytes(content)
    assert open_table(tmp_path / "t").names == ["a"]
    named = content_of(pa.table({"a": [1], "__index_level_0__": [2]}), ending, tmp_path)
    (tmp_path / "t").write_bytes(named)  # not written by pandas: a column like any other
    assert open_table(tmp_path / "t").names == ["a", "__index_level_0__"]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_day_are_durations(unit, tmp_path):
    bits, kind = (32, pa.time32) if unit in ("s", "ms") else (64, pa.time64)
    values = np.array([1, 2, 86_399], dtype=f"int{bits}")
    rows = pa.table({"t": pa.array(values, kind(unit)), "y": [1, 2, 3]})
    pq.write_table(rows, tmp_path / "t.parquet")
    table = open_table(tmp_path / "t.parquet" if unit != "s" else rows)
    assert table.types["t"] == pa.duration(unit)
    numbers = np.asarray(table.column("t")).astype(np.int64)
    assert numbers.tolist() == values.tolist()
    (batch,) = table.batches(["t"])
    assert np.asarray(batch.column(0)).astype(np.int64).tolist() == values.tolist()


# --- rows that are complete -----------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet", "frame"])
def test_rows_without_a_value_are_left_out_of_every_column(ending, tmp_path):
    rows = pa.table(
        {
            "y": pa.array([1.5, None, float("nan") if ending != "csv" else None, 2.5, 3.5]),
            "place": ["a", "b", "c", None, "d"],
            "x": [10, 20, 30, 40, 50],
        }
    )
    if ending == "frame":
        table = open_table(rows)
    else:
        (tmp_path / f"t.{ending}").write_bytes(content_of(rows, ending, tmp_path))
        table = open_table(tmp_path / f"t.{ending}")
    complete, missing = table.complete(["y", "place"])
    assert missing == {"y": 2, "place": 1}
    assert complete.n_rows == 2
    assert complete.column("x").to_pylist() == [10, 50]
    assert complete.column("y").to_pylist() == [1.5, 3.5]
    batches = list(complete.batches(["place", "x"], rows=2))
    assert [row for batch in batches for row in batch.to_pylist()] == [
        {"place": "a", "x": 10},
        {"place": "d", "x": 50},
    ]
    assert table.complete([])[0] is table
    with pytest.raises(ValueError, match="no row has a value in all of 'y', 'place'"):
        open_table(rows.slice(2, 2)).complete(["y", "place"])
