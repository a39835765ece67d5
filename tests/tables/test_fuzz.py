"""Malformed files of every kind: a table, or an error of ours that names who and what."""

import gzip
import io
import json
import random

import duckdb
import hypothesis.strategies as st
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from holdtrue import rank_columns
from holdtrue.errors import SpokenError
from holdtrue.tables import open_table

pytestmark = pytest.mark.attack

ODD = st.sampled_from(
    ["", " ", "NA", "?", "-", ".", "1", "-7", "007", "0x1F", "1.5", "1e400", "-1e-400", "inf",
     "nan",
     "9" * 25, "-" + "9" * 400, "1,5", "true", "T", "2024-02-30", "2024-02-29", "0000-00-00",
     "9999-12-31 23:59:60", "\0", "\ufeff", "é", "𝄞", "\u2028", "'", '"', '""', 'a"b', "a\nb", "\r",
     "\r\n", "\t", ";", "|", "=1+1", "<script>alert(1)</script>", "x" * 300]
)  # fmt: skip
TEXT = st.one_of(ODD, st.text(max_size=8), st.integers().map(str), st.floats().map(str))
few = settings(max_examples=400)


def check_is_ours(error):
    assert isinstance(error, SpokenError), error
    assert error.who in ("open_table", "Table", "rank_columns"), error


def opened(path, **options):
    """The table, after a look at all of it; None where it is refused as it should be."""
    try:
        table = open_table(path, **options)
        names = table.plain_names
        for name in names[:20]:
            assert len(table.column(name)) == table.n_rows
        batches = list(table.batches(names[:20], rows=7))
        assert sum(batch.num_rows for batch in batches) == (table.n_rows if names else 0)
        assert len({str(batch.schema) for batch in batches}) <= 1
        assert len(set(table.names)) == len(table.names)
        assert table.fingerprint().digest
    except (ValueError, FileNotFoundError, TypeError) as error:
        check_is_ours(error)
        return None
    return table


def ranked(path):
    """The ranking by the last column; nothing where it is refused as it should be."""
    table = opened(path)
    if table is None:
        return
    try:
        rank_columns(table, table.names[-1])
    except (ValueError, TypeError) as error:
        check_is_ours(error)


@given(
    rows=st.lists(st.lists(TEXT, max_size=5), max_size=8),
    separator=st.sampled_from([",", ";", "\t", "|"]),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1", "utf-32"]),
)
@few
def test_ragged_rows_in_odd_encodings(tmp_path, rows, separator, end, encoding):
    content = end.join(separator.join(row) for row in rows)
    (tmp_path / "a.csv").write_bytes(content.encode(encoding, "replace"))
    ranked(tmp_path / "a.csv")


@given(content=st.binary(max_size=200), name=st.sampled_from(["a.csv", "a.tsv", "a.jsonl", "a.gz"]))
@few
def test_any_bytes(tmp_path, content, name):
    (tmp_path / name).write_bytes(content)
    opened(tmp_path / name)


@given(
    columns=st.integers(1, 4).flatmap(
        lambda n: st.lists(st.lists(TEXT, min_size=n, max_size=n), min_size=2, max_size=9)
    ),
    types=st.dictionaries(
        st.sampled_from("abcd"),
        st.sampled_from(["text", "category", "integer", "number", "date", "bool"]),
        max_size=2,
    ),
)
@few
def test_fields_of_any_kind_with_types_asked_for(tmp_path, columns, types):
    import csv

    file = io.StringIO()
    csv.writer(file).writerows([list("abcd")[: len(columns[0])], *columns])
    (tmp_path / "a.csv").write_text(file.getvalue(), encoding="utf-8", errors="replace")
    opened(tmp_path / "a.csv", types=types)
    ranked(tmp_path / "a.csv")


@given(
    names=st.lists(
        st.one_of(st.just(""), st.just("a"), st.text(max_size=3)), min_size=1, max_size=6
    )
)
@few
def test_odd_names(tmp_path, names):
    import csv

    file = io.StringIO()
    csv.writer(file).writerows([names, *[[str(i)] * len(names) for i in range(3)]])
    (tmp_path / "a.csv").write_text(file.getvalue(), encoding="utf-8", errors="replace", newline="")
    table = opened(tmp_path / "a.csv")
    if table is not None:
        assert len(table.names) == len(names)
        assert table.n_rows == 3


VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), ODD,
        st.just(2**63), st.just(-(2**64)), st.just(10**400),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=4,
)  # fmt: skip


@given(
    records=st.lists(
        st.dictionaries(st.sampled_from(["a", "b", "", "a.b"]), VALUES, max_size=3), max_size=5
    ),
    tail=st.sampled_from(
        ["", "\n", "\n\n", "{", "[]", "nul", '{"a": 1, "a": 2}', '{"a": 1} {"a": 2}']
    ),
)
@few
def test_json_of_any_kind(tmp_path, records, tail):
    content = "\n".join(map(json.dumps, records)) + tail
    (tmp_path / "a.jsonl").write_text(content, encoding="utf-8")
    ranked(tmp_path / "a.jsonl")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Folder of good files of every binary kind."""
    folder = tmp_path_factory.mktemp("whole")
    table = pa.table(
        {"a": list(range(200)), "b": [f"t{i % 7}" for i in range(200)], "c": [0.5, None] * 100}
    )
    pq.write_table(table, folder / "a.parquet", row_group_size=64)
    feather.write_feather(table, folder / "a.feather", chunksize=64)
    with pa.ipc.new_stream(str(folder / "a.arrows"), table.schema) as sink:
        sink.write_table(table, max_chunksize=64)
    lines = [f"{i},t{i % 7},{i / 8}" for i in range(200)]
    (folder / "a.csv").write_text("\n".join(["a,b,c", *lines]))
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    (folder / "a.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 500))
    with duckdb.connect(str(folder / "a.duckdb")) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE t AS SELECT * FROM given")
    return folder


@pytest.mark.parametrize(
    "name", ["a.parquet", "a.feather", "a.arrows", "a.csv.gz", "a.csv", "a.jsonl", "a.duckdb"]
)
@given(seed=st.integers(0, 2**32), where=st.sampled_from(["cut", "anywhere", "footer"]))
@settings(few, max_examples=150)
def test_damaged_files(tmp_path, whole, name, seed, where):
    draw = random.Random(seed)
    content = bytearray((whole / name).read_bytes())
    if where == "cut":
        content = content[: draw.randrange(len(content))]
    else:
        first = 0 if where == "anywhere" else len(content) // 2
        for _ in range(draw.randrange(1, 6)):
            content[draw.randrange(first, len(content))] = draw.randrange(256)
    (tmp_path / name).write_bytes(content)
    opened(tmp_path / name)


@given(query=st.one_of(st.text(max_size=30), st.sampled_from(
    ["SELECT", "SELECT 1", "SELECT 1; DROP TABLE t", "FROM t", "t; t", "ATTACH 'x'", "PRAGMA x",
     "SELECT * FROM 'a.csv'", "SELECT [1] AS l", "SELECT NULL AS n", "SELECT 1 WHERE false",
     "SELECT interval '1 day' AS i, 1 AS b", "CALL pragma_version()", "EXPLAIN SELECT 1",
     "WITH x AS (SELECT 1 AS a) SELECT * FROM x", "SELECT getenv('HOME') AS h", "SET threads = 1"]
)))  # fmt: skip
@settings(few, max_examples=60)
def test_any_query(tmp_path, whole, query):
    (tmp_path / "a.duckdb").write_bytes((whole / "a.duckdb").read_bytes())
    opened(tmp_path / "a.duckdb", table=query)
