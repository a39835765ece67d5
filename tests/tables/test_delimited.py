"""CSV: types as people expect them, and the same whatever the size of a block."""

import csv
import datetime as dt
import io

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings

from holdtrue.tables import delimited, open_table, text, text_types
from holdtrue.tables.delimited import Delimited
from holdtrue.tables.text import TextFile

UTC = dt.timezone.utc  # noqa: UP017


SHORT = (
    *("0", "-0", "007", "12", "-7", "+7", "1.5", "-0.5", "01.5", "1e5", ".5", "5.", "1,5", "-"),
    *("9223372036854775807", "9223372036854775808", "123456789012345678", "1234567890123456789"),
    *("true", "False", "t", "nan", "inf", "Infinity", "NA", "?", ".", " 3", "a", "Zoe", "x1", "é"),
    *(
        "2024-01-31",
        "2024-01-31 10:00",
        "2024-01-31T10:00Z",
        "0x1F",
        "1.50",
        "00.5",
        "-.5",
        "\u0661",
    ),
)


def read(tmp_path, content, block_size=text.BLOCK, **options):
    path = tmp_path / "a.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    reader = Delimited([path], types=options.pop("types", {}), block_size=block_size, **options)
    return reader.read()


def column_of(tmp_path, fields, block_size=text.BLOCK, delimiter=",", **options):
    """Values and type of a column of these fields."""
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter).writerows([["i", "x"], *enumerate(fields)])
    spill = read(tmp_path, file.getvalue(), block_size, **options)
    return spill.column("x").to_pylist(), spill.types["x"]


@pytest.mark.parametrize(
    "fields, values, kind",
    [
        (["1", "-20", ""], [1, -20, None], pa.int64()),
        (["1", "NA", "N/A", "NaN", "null", "None"], [1, *[None] * 5], pa.int64()),
        (["00123", "45"], ["00123", "45"], pa.string()),
        (["-07", "1.5"], ["-07", "1.5"], pa.string()),
        (["0", "0.5", "-0", "0e1"], [0.0, 0.5, 0.0, 0.0], pa.float64()),
        (["0x1F", "1"], ["0x1F", "1"], pa.string()),
        (["1", "+2"], [1.0, 2.0], pa.float64()),
        (["1", " 2 ", "2.5e3"], [1.0, 2.0, 2500.0], pa.float64()),
        (["1,234", "5"], ["1,234", "5"], pa.string()),
        (["9223372036854775807"], [2**63 - 1], pa.int64()),
        (["9223372036854775808", "1"], ["9223372036854775808", "1"], pa.string()),
        (["9223372036854775808", "1.5"], [2.0**63, 1.5], pa.float64()),
        (["1", "?", "2"], [1, None, 2], pa.int64()),
        ([".", "-", "2.5", " "], [None, None, 2.5, None], pa.float64()),
        (["a", "?", "-", "1"], ["a", "?", "-", "1"], pa.string()),
        (["?", "?"], ["?", "?"], pa.string()),
        (["", "NA"], [None, None], pa.null()),
        (["a", "", "NA"], ["a", None, None], pa.string()),
        (["true", "False", "TRUE", ""], [True, False, True, None], pa.bool_()),
        (["true", "1"], ["true", "1"], pa.string()),
        (["T", "F"], ["T", "F"], pa.string()),
        (["yes", "no"], ["yes", "no"], pa.string()),
        (["2024-02-29", "?"], [dt.date(2024, 2, 29), None], pa.date32()),
        (["2024-02-30"], ["2024-02-30"], pa.string()),
        (["01/02/2024"], ["01/02/2024"], pa.string()),
        (["2024", "1999"], [2024, 1999], pa.int64()),
        (
            ["2024-02-29", "2024-03-01 10:30", "2024-03-01T10:30:15.25"],
            [
                dt.datetime(2024, 2, 29),
                dt.datetime(2024, 3, 1, 10, 30),
                dt.datetime(2024, 3, 1, 10, 30, 15, 250_000),
            ],
            pa.timestamp("us"),
        ),
        (
            ["2024-03-01T10:30:00Z", "2024-03-01T10:30:00+02:00"],
            [
                dt.datetime(2024, 3, 1, 10, 30, tzinfo=UTC),
                dt.datetime(2024, 3, 1, 8, 30, tzinfo=UTC),
            ],
            pa.timestamp("us", "UTC"),
        ),
        (
            ["2024-03-01T10:30:00Z", "2024-03-01"],
            ["2024-03-01T10:30:00Z", "2024-03-01"],
            pa.string(),
        ),
        (["2024-02-29", "7"], ["2024-02-29", "7"], pa.string()),
        (["inf", "1"], [float("inf"), 1.0], pa.float64()),
    ],
)
@pytest.mark.parametrize("block_size", [1, text.BLOCK])
def test_types_are_what_people_expect(tmp_path, fields, values, kind, block_size):
    for order in (slice(None), slice(None, None, -1)):
        assert column_of(tmp_path, fields[order], block_size) == (values[order], kind)


@pytest.mark.parametrize(
    "fields, values, kind",
    [
        (["0,43", "-1,5", "2", ""], [0.43, -1.5, 2.0, None], pa.float64()),
        (["1e+05", "0,5"], [1e5, 0.5], pa.float64()),  # as R writes it
        (["1e+05", "0.5"], [1e5, 0.5], pa.float64()),
        (["1e+05", "3"], [1e5, 3.0], pa.float64()),
        (["1,5e3", "?", "NA", " 2,5 "], [1500.0, None, None, 2.5], pa.float64()),
        (["9223372036854775808", "1,5"], [2.0**63, 1.5], pa.float64()),
        (["1", "2"], [1, 2], pa.int64()),
        (["1.5", "2"], [1.5, 2.0], pa.float64()),
        (["1,5", "2.5"], ["1,5", "2.5"], pa.string()),
        (["1e3", "1,5", "2.5"], ["1e3", "1,5", "2.5"], pa.string()),
        (["1.234,5", "2,5"], ["1.234,5", "2,5"], pa.string()),
        (["1,234,567", "2,5"], ["1,234,567", "2,5"], pa.string()),
        (["007", "2,5"], ["007", "2,5"], pa.string()),
        (["1,5", "a"], ["1,5", "a"], pa.string()),
        (["1,5", "2024-02-29"], ["1,5", "2024-02-29"], pa.string()),
        (["1,5", "true"], ["1,5", "true"], pa.string()),
    ],
)
@pytest.mark.parametrize("block_size", [1, 9, text.BLOCK])
def test_commas_are_decimal_between_semicolons(tmp_path, fields, values, kind, block_size):
    for order in (slice(None), slice(None, None, -1)):
        found = column_of(tmp_path, fields[order], block_size, ";")
        assert found == (values[order], kind)
        given = column_of(tmp_path, fields[order], block_size, ";", separator=";")
        assert given == found


def test_decimal_commas_are_read_as_the_caller_wants(tmp_path, monkeypatch):
    def opened(wanted, *fields):
        (tmp_path / "a.csv").write_text("i;x\n" + "".join(f"1;{field}\n" for field in fields))
        return open_table(tmp_path / "a.csv", types={"x": wanted}).column("x").to_pylist()

    for block_size in (1, text.BLOCK):
        monkeypatch.setitem(Delimited.__init__.__kwdefaults__, "block_size", block_size)
        assert opened("number", "1,5", "2.5", "3", "?") == [1.5, 2.5, 3.0, None]
        assert opened("text", "1,5") == ["1,5"]
        with pytest.raises(ValueError, match=r"read as 'number'. Got '1.234,5' in line 3"):
            opened("number", "1,5", "1.234,5", "2,5")
        with pytest.raises(ValueError, match=r"cannot be read as 'integer'. Got '1,5' in line 2"):
            opened("integer", "1,5")
    assert column_of(tmp_path, ["1,5", "2,5"])[1] == pa.string()  # between commas, in quotes


def test_digits_beyond_microseconds_are_kept_where_the_year_allows(tmp_path):
    fields = ["2024-03-01T10:30:00.1234567", "2024-03-01"]
    assert column_of(tmp_path, fields)[1] == pa.timestamp("ns")
    for block_size in (1, text.BLOCK):
        for order in (1, -1):
            early = [*fields, "1500-01-01"][::order]
            assert column_of(tmp_path, early, block_size) == (early, pa.string())


FIELDS = st.sampled_from(
    ["", "NA", "?", "-", ".", "0", "7", "-12", "007", "0x1", "1.5", "+1", "1e3", "nan", "inf", " 3",
     "true", "FALSE", "2024-02-29", "2024-02-29 10:00", "2024-02-29T10:00:00.1234567",
     "2024-02-29T10:00:00Z", "1500-01-01", "99999999999999999999", "x", 'say "hi"', "a,b",
     "two\nlines", "\r", "5\" pipe", "é", "12:30", "1,5", ",5", "-2,25e1", "1.234,5"]
)  # fmt: skip
KINDS = {
    "numbers": st.sampled_from(
        ["", "0", "7", "-12", "1.5", "?", "+1", "99999999999999999999", " 3"]
    ),
    "commas": st.sampled_from(
        ["", "0", "-12", "1,5", "?", "1e5", "+1", "99999999999999999999", " 3,25", "-0,5"]
    ),
    "dates": st.sampled_from(["", "2024-02-29", "2024-02-29 10:00", ".", "1500-01-01"]),
    "any": FIELDS,
}


@pytest.mark.parametrize("name", KINDS)
@given(data=st.data(), block_size=st.integers(1, 60), delimiter=st.sampled_from(",;"))
@settings(max_examples=120)
def test_blocks_do_not_matter(tmp_path, name, data, block_size, delimiter):
    fields = data.draw(st.lists(KINDS[name], min_size=1, max_size=12))
    whole = column_of(tmp_path, fields, delimiter=delimiter)
    assert column_of(tmp_path, fields, block_size, delimiter) == whole
    # Nor does the order of the rows, but for the order.
    turned, kind = column_of(tmp_path, fields[::-1], block_size, delimiter)
    assert (turned[::-1], kind) == whole


@pytest.mark.parametrize("name", KINDS)
@given(data=st.data(), delimiter=st.sampled_from(",;"))
@settings(max_examples=100)
def test_a_value_is_missing_or_the_field_that_was_written(tmp_path, name, data, delimiter):
    fields = data.draw(st.lists(KINDS[name], min_size=1, max_size=12))
    values, kind = column_of(tmp_path, fields, delimiter=delimiter)
    for field, value in zip(fields, values, strict=True):
        if value is None:
            assert field.strip() in (*text_types.MISSING, *text_types.MARKS)
        elif kind == pa.string():
            assert value == field
        elif kind in (pa.int64(), pa.float64()):
            assert value == float(field.replace(",", "."))
            assert delimiter == ";" or "," not in field
        elif kind == pa.bool_():
            assert str(value).lower() == field.lower()
        else:
            assert value.isoformat()[:10] == field[:10]


@given(
    rows=st.lists(st.lists(st.text('ab"\n\r,; é', max_size=6), min_size=2, max_size=2), max_size=8),
    block_size=st.integers(1, 40),
    separator=st.sampled_from(text.SEPARATORS),
)
@settings(max_examples=120)
@example([['"', "\n"]], 3, ",")
def test_quoted_fields_come_back_as_they_were(tmp_path, rows, block_size, separator):
    file = io.StringIO()
    csv.writer(file, delimiter=separator, quoting=csv.QUOTE_ALL).writerows(
        [["a", "b"], ["x", "y"], *rows]
    )
    spill = read(tmp_path, file.getvalue(), block_size)
    for j, name in enumerate("ab"):
        found = spill.column(name).to_pylist()
        assert found == ["xy"[j], *(row[j] or None for row in rows)]


def test_quotes_inside_a_field_are_characters(tmp_path):
    content = 'size,n\n5" pipe,1\n12",2\n"a ""b"" c",3\n"d"e,4\n'
    for block_size in (1, 7, 1000):
        spill = read(tmp_path, content, block_size)
        sizes = spill.column("size").to_pylist()
        assert sizes == ['5" pipe', '12"', 'a "b" c', "de"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [True, False])
def test_every_end_of_line_is_understood(tmp_path, end, last):
    content = end.join(["a;b", "1;2", "", "3;4"]) + (end if last else "")
    for block_size in (1, 1000):
        spill = read(tmp_path, content, block_size)
        assert spill.column("b").to_pylist() == [2, 4]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252", "utf-32"]
)
def test_encodings(tmp_path, encoding):
    (tmp_path / "a.csv").write_bytes("naïve,b\né,1\nx,2\n".encode(encoding))
    given = None if encoding.startswith(("utf-8", "utf-16")) else encoding
    for option in {given, encoding}:
        found = open_table(tmp_path / "a.csv", encoding=option)
        assert found.names == ["naïve", "b"]
        assert found.column("naïve").to_pylist() == ["é", "x"]


def test_utf_16_without_a_byte_order_mark_is_named(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"a,b\n1,2\n")
    with pytest.raises(ValueError, match=r"a.csv is not utf-16: .*BOM near byte 0. Pass another"):
        open_table(tmp_path / "a.csv", encoding="utf-16")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("content", ["a,b\n1,2\n3,4\n", '[{"a": 1, "b": 2}, {"a": 3, "b": 4}]'])
def test_utf_16_without_a_byte_order_mark_asks_for_its_encoding(tmp_path, encoding, content):
    name = "a.json" if content.startswith("[") else "a.csv"
    (tmp_path / name).write_bytes(content.encode(encoding))
    with pytest.raises(ValueError, match=rf"{name} looks like UTF-16 .*encoding='{encoding}'"):
        open_table(tmp_path / name)
    assert open_table(tmp_path / name, encoding=encoding).column("a").to_pylist() == [1, 3]


def test_a_wrong_encoding_is_named(tmp_path):
    (tmp_path / "a.csv").write_bytes("a,b\né,1\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"a.csv is not ascii: .* near byte 4. Pass another"):
        open_table(tmp_path / "a.csv", encoding="ascii")


def test_names_are_trimmed_and_empty_ones_are_numbered(tmp_path):
    spill = read(tmp_path, '"", age ,"two\nlines",\n1,2,3,\n')
    assert list(spill.types) == ["column 1", "age", "two\nlines", "column 4"]


def test_wide_tables(tmp_path):
    n = 5000
    content = ",".join(f"c{j}" for j in range(n)) + "\n" + 3 * (",".join("1" * n) + "\n")
    spill = read(tmp_path, content)
    assert len(spill.types) == n
    assert spill.column("c4999").to_pylist() == [1, 1, 1]


@given(st.lists(st.sampled_from(SHORT) | st.text("0159.-+eEx,:TZ tfi?", max_size=8), max_size=6))
def test_the_kind_of_a_few_texts_is_that_of_many(values):
    texts = pa.array([value or None for value in values], pa.string())
    # A column with more rows than a few is classified by Arrow alone.
    many = pa.concat_arrays([texts] * (text_types.FEW + 1)) if len(texts) else texts
    for comma in (False, True):
        assert text_types.classified(texts, comma=comma) == text_types.classified(many, comma=comma)


def test_a_record_without_end_is_refused_before_memory_runs_out(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "MAX_RECORD", 1000)
    with pytest.raises(ValueError, match=r"record of more than 0 MB from line 3 on. .*not closed"):
        read(tmp_path, 'a,b\n1,2\n3,"' + "4,5\n" * 1000, 100)


def test_an_open_quote_is_looked_for_a_few_times_only(tmp_path, monkeypatch):
    sizes = []
    last_end = text.last_end
    monkeypatch.setattr(
        text, "last_end", lambda *given: sizes.append(len(given[0])) or last_end(*given)
    )
    content = 'a,b\n1,2\n3,"' + "4,5\n" * 25_000
    with pytest.raises(ValueError, match=r"a.csv ends inside a quote that opens in line 3"):
        read(tmp_path, content, 100)
    assert sum(sizes) < 3 * len(content)


@pytest.mark.parametrize("line", [b"\n", b'""\n', b'x""y\n'])
def test_a_quote_over_many_lines_is_cut_without_walking_through_them(line, monkeypatch):
    looks = []
    searchsorted = np.searchsorted
    monkeypatch.setattr(np, "searchsorted", lambda *a: looks.append(a) or searchsorted(*a))
    whole = b'1,2\n3,"4"\n'
    assert text.last_end(whole + b'5,"' + line * 10_000, b"\n", ",") in (len(whole), 0)
    assert 0 < len(looks) < 10


@pytest.mark.parametrize("mark", ["sep=;", '"sep=;"', "\ufeffSep=;", "\n\nsep=;\r"])
def test_the_separator_that_a_line_for_excel_names_is_used(tmp_path, mark):
    spill = read(tmp_path, f"{mark}\na,x;b\n1,5;u\n2,5;v\n".encode())
    assert spill.column("a,x").to_pylist() == [1.5, 2.5]
    assert spill.column("b").to_pylist() == ["u", "v"]
    with pytest.raises(
        ValueError, match=r"line \d of a.csv has 1 field, expected 2 as in the head"
    ):
        read(tmp_path, f"{mark}\na;b\n1;2\n3\n")
    with pytest.raises(ValueError, match=r"a.csv has a header of 2 columns and no rows"):
        read(tmp_path, f"{mark}\na;b\n")


@pytest.mark.parametrize("content", ["sep=;", "sep=;\n\n"])
def test_a_line_for_excel_alone_is_no_table(tmp_path, content):
    with pytest.raises(ValueError, match=r"a.csv has a header of 2 columns and no rows"):
        read(tmp_path, content)


def test_a_header_longer_than_a_block_is_read_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "BLOCK", 64)
    monkeypatch.setattr(TextFile.chunks, "__defaults__", (64,))
    names = [f"column_{j}" for j in range(300)]
    for header in (",".join(names), ",".join(f'"{name}\nx"' for name in names)):
        spill = read(tmp_path, header + "\n" + ",".join("1" * 300) + "\n", 64)
        assert [name.split("\n")[0] for name in spill.types] == names
        assert spill.n_rows == 1


def test_a_header_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "MAX_RECORD", 1000)
    monkeypatch.setattr(TextFile.chunks, "__defaults__", (64,))
    with pytest.raises(ValueError, match=r"header of a.csv is longer than 0 MB. .*not closed"):
        read(tmp_path, 'a,"b\n' + "1,2\n" * 1000, 64)


def test_a_second_reading_is_needed_only_where_values_turn_into_text(tmp_path, monkeypatch):
    passes = []
    monkeypatch.setattr(
        delimited,
        "Spill",
        lambda: passes.append(1) or pytest.importorskip("holdtrue.tables.source").Spill(),
    )
    column_of(tmp_path, ["", "1", "2.5", "NA"], 1)
    column_of(tmp_path, ["2024-01-01", "2024-01-01 10:00"], 1)
    assert len(passes) == 2
    assert column_of(tmp_path, ["1", "x"], 1)[0] == ["1", "x"]
    assert len(passes) == 4


def test_fields_that_python_would_not_read_are_read(tmp_path):
    long = "x" * 200_000
    spill = read(tmp_path, f"a,b\n1,{long}\n2,y\n")
    assert spill.column("b").to_pylist() == [long, "y"]
    (tmp_path / "b.csv").write_text(f"a,b,c\n1,2,{long}\n2,y,3\n")
    with pytest.raises(ValueError, match=r"'integer'. Got 'y' further down"):
        open_table(tmp_path / "b.csv", types={"b": "integer"})
    with pytest.raises(ValueError, match=r"the header of a.csv cannot be read"):
        read(tmp_path, f"a,{long}\n1,2\n")
    with pytest.raises(ValueError, match=r"a.csv cannot be read after line 2"):
        read(tmp_path, f"a,b\n1,{long}\n2\n")
