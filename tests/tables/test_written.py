"""Numbers and dates as people write them, and the parts of dates."""

import datetime as dt
import json

import hypothesis.strategies as st
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from holdtrue.tables import open_table

DAY = dt.date(1998, 6, 12)


def read(tmp_path, texts, **options):
    """Values, type and reading of a column of texts."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"x": text, "i": i} for i, text in enumerate(texts)]))
    table = open_table(path, **options)
    return table.column("x").to_pylist(), table.types["x"], table.readings.get("x")


@pytest.mark.parametrize(
    "texts, values",
    [
        (["1,000", "5", "-12,345,678"], [1000, 5, -12345678]),
        (["$1,000", "$5.50", "-$3", "$-4", "7"], [1000, 5.5, -3, -4, 7]),
        (["(1,000)", "250", "(3)"], [-1000, 250, -3]),
        (["12%", "3.5 %", "0%"], [12, 3.5, 0]),
        (["€ 20", None, "?", "N/A"], [20, None, None, None]),
    ],
)
def test_numbers_are_read_as_they_are_meant(texts, values, tmp_path):
    found, kind, reading = read(tmp_path, texts)
    assert found == values
    assert kind == (pa.int64() if all(v is None or v == int(v) for v in values) else pa.float64())
    assert (reading.what, reading.written) == ("numbers", texts[0])


@pytest.mark.parametrize(
    "text",
    ["Jun 12 1998", "June 12, 1998", "12 Jun 1998", "12-JUN-1998", "1998/6/12", "12.6.1998",
     "1998-6-12"],
)  # fmt: skip
def test_dates_are_read_as_they_are_meant(text, tmp_path):
    found, kind, reading = read(tmp_path, [text, None])
    assert found == [DAY, None]
    assert kind == pa.date32()
    assert (reading.written, reading.meant) == (text, "1998-06-12")


def test_dates_may_have_a_time_or_no_day(tmp_path):
    clock = ["Jun 12 1998 12:05 AM", "Jun 12 1998 3:30 pm", "Jun 12 1998"]
    assert read(tmp_path, clock)[0] == [
        dt.datetime(1998, 6, 12, 0, 5),
        dt.datetime(1998, 6, 12, 15, 30),
        dt.datetime(1998, 6, 12),
    ]
    assert read(tmp_path, ["2001/01/14 21:55"])[0] == [dt.datetime(2001, 1, 14, 21, 55)]
    assert read(tmp_path, ["Sept 2001"])[0] == [dt.date(2001, 9, 1)]
    zoned = read(tmp_path, ["2000-01-01T08:00:00.000Z"])[0]
    assert zoned == [dt.datetime(2000, 1, 1, 8, tzinfo=dt.UTC)]


def test_day_and_month_are_told_apart_by_the_whole_column(tmp_path):
    ambiguous = ["1/2/1999"] * 100
    assert read(tmp_path, ambiguous)[1] == pa.string()
    assert read(tmp_path, [*ambiguous, "13/2/1999"])[0][0] == dt.date(1999, 2, 1)
    assert read(tmp_path, [*ambiguous, "2/13/1999"])[0][0] == dt.date(1999, 1, 2)
    assert read(tmp_path, ["13/2/1999", "2/13/1999"])[1] == pa.string()


@pytest.mark.parametrize(
    "texts",
    [
        ["1,00"], ["1,0000"], ["007", "1,000"], ["$5", "€6"], ["12%", "0.3"], ["(5"], ["5)"],
        ["1,000", "x"], ["Feb 30 1999"], ["Jux 12 1998"], ["Jun 12 1998", "1998"], ["12345"],
        ["1998-06-12", "soon"], ["Jun 12 1998 25:00"], ["1.234,5"], ["12 Jun 98"], ["$"], [""],
    ],
)  # fmt: skip
def test_what_is_not_clear_stays_text(texts, tmp_path):
    values, kind, reading = read(tmp_path, [*texts, None])
    assert values == [*texts, None]
    assert kind == pa.string()
    assert reading is None


TEXTS = st.sampled_from(["1,000", "$5", "5", "?", "x", "Jun 12 1998", "1/2/1999", "13/2/1999"])


@given(texts=st.lists(TEXTS, min_size=1, max_size=5), data=st.data())
@settings(max_examples=60)
def test_the_order_of_rows_does_not_matter(texts, data, tmp_path):
    order = data.draw(st.permutations(range(len(texts))))
    values, kind, _ = read(tmp_path, texts * 30)
    again, same, _ = read(tmp_path, [texts[i] for i in order] * 30)
    assert kind == same
    assert again[: len(texts)] == [values[i] for i in order]


def test_csv_columns_are_read_the_same_in_batches_and_whole(tmp_path):
    rows = [f'{i},"${1000 + i:,}",Jun {i % 28 + 1} 1998,u{i}' for i in range(300)]
    (tmp_path / "a.csv").write_text("\n".join(["i,pay,day,t", *rows]) + "\n")
    table = open_table(tmp_path / "a.csv")
    assert table.column("pay").to_pylist() == [1000 + i for i in range(300)]
    batches = list(table.batches(rows=70))
    assert [row["pay"] for batch in batches for row in batch.to_pylist()][-1] == 1299
    assert {batch.schema.field("day").type for batch in batches} == {pa.date32()}
    assert sorted(table.readings) == ["day", "pay"]
    as_text = open_table(tmp_path / "a.csv", types={"pay": "text"})
    assert as_text.column("pay")[0].as_py() == "$1,000"
    assert sorted(as_text.readings) == ["day"]


# --- parts of dates -----------------------------------------------------------------------------


def dates(values):
    return open_table(pa.table({"d": pa.array(values), "n": list(range(len(values)))}))


def test_parts_of_a_date_are_columns_beside_those_that_have_names():
    table = dates([dt.datetime(2024, 1, 31, 10), None, dt.datetime(2025, 2, 1, 23)])
    assert table.names == ["d", "n"]
    assert list(table.types) == ["d", "n"]
    assert table.varying_parts(table.names) == ["d.month", "d.weekday", "d.hour"]
    assert table.varying_parts(["n"]) == []
    assert table.column("d.year").to_pylist() == [2024, None, 2025]
    assert table.column("d.month").to_pylist() == ["01 Jan", None, "02 Feb"]
    assert table.column("d.weekday").to_pylist() == ["3 Wed", None, "6 Sat"]
    assert table.column("d.hour").to_pylist() == [10, None, 23]
    assert (table.kinds["d.hour"], table.kinds["d.month"]) == ("integer", "category")
    rows, n_missing = table.complete(["d.year"])
    assert n_missing == {"d.year": 1}
    for one in (rows, rows.only(["d.month", "n", "d.year"])):
        (batch,) = one.batches(["d.month", "n", "d.year"])
        assert batch.to_pylist() == [
            {"d.month": "01 Jan", "n": 0, "d.year": 2024},
            {"d.month": "02 Feb", "n": 2, "d.year": 2025},
        ]


def test_the_weekday_of_the_first_of_a_month_says_nothing():
    table = dates([dt.date(2024, month, 1) for month in (1, 2, 3)])
    assert table.varying_parts(["d"]) == ["d.month"]
    assert dates([dt.date(year, 1, 1) for year in (2023, 2024)]).varying_parts(["d"]) == []


def test_a_column_that_is_called_like_a_part_is_itself():
    table = open_table(pa.table({"d": pa.array([0, 40], pa.date32()), "d.month": ["x", "y"]}))
    assert table.column("d.month").to_pylist() == ["x", "y"]
    with pytest.raises(ValueError, match=r"no column 'd.hour'"):
        table.column("d.hour")


@pytest.mark.parametrize("name", ["a.csv", "a.json"])
def test_written_numbers_and_dates_can_be_asked_for(name, tmp_path):
    if name == "a.csv":
        (tmp_path / name).write_text('pay,day\n"$1,000",Jun 12 1998\n$5,Jun 13 1998\n')
    else:
        rows = [{"pay": "$1,000", "day": "Jun 12 1998"}, {"pay": "$5", "day": "Jun 13 1998"}]
        (tmp_path / name).write_text(json.dumps(rows))
    table = open_table(tmp_path / name, types={"pay": "number", "day": "date"})
    assert table.types == {"pay": pa.float64(), "day": pa.date32()}
    assert table.column("pay").to_pylist() == [1000.0, 5.0]
    with pytest.raises(ValueError, match=r"'day' of .* cannot be read as 'number'. Got"):
        open_table(tmp_path / name, types={"day": "number"}).column("day")


@pytest.mark.parametrize("kind", ["pandas", "objects", "codes", "polars", "arrow", "parquet"])
def test_a_number_that_is_asked_for_is_read_in_frames_as_in_files(kind, tmp_path):
    texts = ["$1,000", None, "$1,200.50"]
    columns = {"pay": texts, "same": ["$1", "$2", "$3"]}
    frames = {
        "pandas": lambda: pd.DataFrame(columns),
        "objects": lambda: pd.DataFrame(columns).astype(object),
        "codes": lambda: pd.DataFrame(columns).astype("category"),
        "polars": lambda: pl.DataFrame(columns),
        "arrow": lambda: pa.table(columns),
        "parquet": lambda: tmp_path / "a.parquet",
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    table = open_table(frames[kind](), types={"pay": "number"})
    assert table.column("pay").to_pylist() == [1000.0, None, 1200.5]
    assert [batch.column(0).to_pylist() for batch in table.batches(["pay"], 2)] == [
        [1000.0, None],
        [1200.5],
    ]
    assert list(table.readings) == ["pay"]
    assert table.kinds["same"] == "category"  # nobody asked


def test_a_frame_without_a_written_number_is_refused_as_before():
    table = open_table(pa.table({"pay": ["$1,000", "much"]}), types={"pay": "number"})
    with pytest.raises(ValueError, match=r"Got '\$1,000' in row 1\. Mend it or leave it empty, or"):
        table.column("pay")
