"""Columns of frames and arrays: distinct texts by groups."""

import datetime as dt
from decimal import Decimal

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given

from holdtrue.columns import key_loops
from holdtrue.columns.distinct import distinct, sorted_distinct, text_groups
from holdtrue.columns.values import (
    array_column,
    arrow_of,
    column_kind,
    columns_of,
    missing_objects,
    numpy_of,
    python_values,
)

TEXTS = st.one_of(st.none(), st.text(alphabet="ab\0é𝄞", max_size=9))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary()])
@given(texts=st.lists(TEXTS, min_size=1, max_size=30))
def test_texts_have_the_codes_that_arrow_gives(kind, texts):
    array = pa.array(["zz", *texts, None]).cast(kind)
    column = pa.chunked_array([array.slice(1, 1), array.slice(2)])
    hashed = distinct("c", column)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("holdtrue.columns.distinct._SAMPLE", 0)
        patch.setattr(key_loops, "_FEW_KEYS", 2)  # the table grows
        found = distinct("c", column)
    assert found.values.equals(hashed.values)
    np.testing.assert_array_equal(found.codes, hashed.codes)


near_one = st.integers(0, 4).map(lambda n_steps: 1.0 + n_steps * 2.0**-52)
whole = st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))


@pytest.mark.parametrize(
    ("dtype", "element"),
    [(np.float64, st.one_of(near_one, near_one.map(lambda x: -x), st.floats(allow_nan=False)))]
    + [(np.int64, whole)],
    ids=["floats", "integers"],
)
@given(data=st.data())
def test_numbers_are_sorted_also_where_their_leading_bits_are_alike(data, dtype, element):
    numbers = np.array(data.draw(st.lists(element, max_size=30)), dtype=dtype)
    numbers = numbers + dtype(0)  # -0.0 is 0.0, as in a column
    values, codes = sorted_distinct(numbers)
    expected, places = np.unique(numbers, return_inverse=True)
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(codes, places)


@pytest.mark.parametrize("n_values", [300, 30_000, 200_000])
def test_long_columns_of_texts_are_grouped_in_parts(n_values):
    codes = np.random.default_rng(0).integers(0, n_values, 200_000)
    column = pa.array([f"text {i}" for i in range(n_values)]).take(pa.array(codes))
    assert (text_groups(column) is None) == (n_values < 30_000)
    encoded = column.dictionary_encode()
    found = distinct("c", column)
    assert found.values.equals(encoded.dictionary.cast(pa.large_string()))
    np.testing.assert_array_equal(found.codes, np.asarray(encoded.indices))


def test_texts_that_share_a_hash_are_not_taken_for_one():
    # By the loops as they are written, in Python, with a hash that is 0 for every key.
    keys = np.array([[1, 2], [1, 3], [1, 2], [4, 2]], dtype=np.uint64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_loops, "_row_hash", lambda keys, i, n_words: np.uint64(0))
        rows, codes = np.arange(4, dtype=np.uint32), np.empty(4, dtype=np.int32)
        first = np.empty(4, dtype=np.uint32)
        n_groups = key_loops.group_keys.py_func(keys, rows, np.array([4]), codes, first, (0, 0))
    assert (codes.tolist(), first[:n_groups].tolist()) == ([0, 1, 0, 2], [0, 1, 3])


def test_long_texts_are_left_to_arrow(monkeypatch):
    monkeypatch.setattr("holdtrue.columns.distinct._SAMPLE", 0)
    assert text_groups(pa.array(["x" * 39, "y"])) is not None
    assert text_groups(pa.array(["x" * 40, "y"])) is None


@pytest.mark.parametrize("names", [["a", "b", "a"], [1, "b", "1"]])
def test_names_that_are_the_same_as_text_are_refused(names):
    frame = pd.DataFrame([[1, 2, 3]], columns=names)
    with pytest.raises(ValueError, match=r"column names must be distinct.* Got '[a1]' more"):
        columns_of(frame)
    with pytest.raises(ValueError, match=r"column names must be distinct.* Got '[a1]' more"):
        columns_of(pa.table([[1], [2], [3]], names=[str(name) for name in names]))


UTC, PARIS = dt.UTC, dt.timezone(dt.timedelta(hours=2))


def as_objects(rows):
    column = np.empty(len(rows), dtype=object)
    column[:] = rows
    return column


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        ([dt.date(2020, 1, 1), dt.date(1066, 10, 14)], pa.date32()),
        ([dt.datetime(2020, 1, 1), dt.datetime(9999, 1, 1)], pa.timestamp("us")),
        ([dt.datetime(2020, 1, 1, tzinfo=PARIS)], pa.timestamp("us", "UTC")),
        ([dt.time(9, 30), float("nan")], pa.time64("us")),
        ([dt.timedelta(days=1)], pa.duration("us")),
        ([Decimal("1.5"), Decimal("2.25"), Decimal("nan")], pa.decimal128(3, 2)),
        ([np.float32(1.5)], pa.float32()),
        ([np.int8(3)], pa.int8()),
        ([np.bool_(True)], pa.bool_()),
        ([np.datetime64("2020-01-01"), np.datetime64("NaT", "D")], pa.date32()),
        ([np.datetime64(0, "s"), np.datetime64(1, "ms")], pa.timestamp("ms")),
        ([np.timedelta64(3, "s")], pa.duration("s")),
        ([np.str_("a\0"), np.str_("a")], pa.string()),
        ([b"a"], pa.binary()),
        ([np.bytes_(b"a")], pa.binary()),
        ([1, 2.5, np.int8(3)], pa.float64()),
    ],
    ids=str,
)
def test_objects_of_one_type_are_what_they_are(rows, kind):
    column = array_column(as_objects([*rows, None]))
    assert column.type == kind
    known = [row for row in rows if row == row]
    assert column.null_count == len(rows) + 1 - len(known)
    assert column.drop_null().to_pylist() == known


@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        ("M8[Y]", pa.date32()),
        ("M8[M]", pa.date32()),
        ("M8[h]", pa.timestamp("s")),
        ("M8[10ms]", pa.timestamp("ms")),
        ("m8[D]", pa.duration("s")),
        ("m8[ps]", pa.int64()),
        ("M8", pa.null()),
    ],
)
def test_arrays_of_times_may_have_any_unit(dtype, kind):
    times = np.array(["NaT", 7, 50] if dtype != "M8" else ["NaT"] * 3).astype(dtype)
    column = array_column(times)
    assert (column.type, column.null_count) == (kind, np.isnat(times).sum())
    if pa.types.is_temporal(kind):
        stored = np.asarray(column.drop_null())
        np.testing.assert_array_equal(stored, times[1:])


def test_objects_of_pandas_are_what_they_are():
    day = pd.Timestamp("2020-01-01")
    assert array_column(as_objects([day, pd.NaT])).type == pa.timestamp("us")
    fine = [day + pd.Timedelta(1, "ns"), day.to_pydatetime()]
    assert array_column(as_objects(fine)).to_pylist() == fine
    spans = [pd.Timedelta(1, "ns"), dt.timedelta(1)]
    assert array_column(as_objects(spans)).to_pylist() == spans


def test_decimals_that_arrow_does_not_hold_are_floats():
    for rows in ([Decimal("inf"), Decimal("1.5")], [Decimal("1.5"), 2, 0.25], [Decimal(3), None]):
        column = array_column(as_objects(rows))
        assert column_kind(column) == "number"
        assert column.to_pylist() == rows


@pytest.mark.parametrize(
    "rows",
    [
        [1, "1", True],
        [1, True],
        [1.5, np.timedelta64(1, "s")],
        [dt.date(2020, 1, 1), dt.datetime(2020, 1, 1)],
        [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=UTC)],
        [dt.time(1), dt.time(1, tzinfo=UTC)],
        [dt.time(1, tzinfo=PARIS), dt.time(1, tzinfo=UTC)],
        [2**53 + 1, 2.0**53],
        [2**64, 1],
    ],
    ids=str,
)
def test_objects_that_arrow_would_take_for_one_are_kept_apart(rows):
    column = array_column(as_objects(rows))
    assert isinstance(column, np.ndarray)
    assert python_values(distinct("c", column).values) == rows


@pytest.mark.parametrize("kind", [">f8", "<f8", ">i4", ">M8[D]"])
def test_numbers_in_the_byte_order_of_another_machine_are_the_same(kind):
    values = np.array([1, 3, 2]).astype(kind)
    column = array_column(values)
    assert column.to_pylist() == array_column(values.astype(kind.replace(">", "<"))).to_pylist()
    frame = columns_of(pd.DataFrame({"x": values}))["x"]
    assert np.asarray(frame).tolist() == np.asarray(column).tolist() or kind == ">M8[D]"


def test_numbers_of_more_than_64_bits_are_read_as_64():
    column = array_column(np.array([1.5, np.nan], dtype=np.longdouble))
    assert column.type == pa.float64()
    assert column[0].as_py() == 1.5


@pytest.mark.parametrize("dtype", [complex, object])
def test_complex_numbers_are_refused_by_name(dtype):
    with pytest.raises(TypeError, match=r"column 'z' holds .*Got complex"):
        distinct("z", array_column(np.array([1j, 2 + 1j], dtype=dtype)))


def test_intervals_of_pandas_are_categories():
    numbers = np.arange(12.0)
    frame = pd.DataFrame({"cut": pd.cut(numbers, 3), "range": pd.interval_range(0, 12)})
    frame.loc[3, "cut"] = None
    for name, column in columns_of(frame).items():
        assert column_kind(column) == "category"
        assert python_values(column)[4:] == frame[name].tolist()[4:]
    assert missing_objects(columns_of(frame)["cut"]).tolist() == [i == 3 for i in range(12)]


def test_the_greatest_whole_number_stays_one():
    column = pa.array([2**63 - 1, None, 2**63 - 2, 2**63 - 1])
    values, codes = distinct("c", column)
    assert values.equals(pa.array([2**63 - 2, 2**63 - 1, None]))
    assert codes.tolist() == [1, 2, 0, 1]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "int64", "float32", "float64"])
def test_arrays_become_arrow_and_come_back(dtype):
    numbers = np.random.default_rng(0).integers(0, 2, 35).astype(dtype)
    missing = np.arange(35) % 3 == 0
    for some in (numbers, numbers[::2], numbers[:0]):
        mask = missing[: len(some)]
        assert arrow_of(some).equals(pa.array(some))
        assert arrow_of(some, mask).equals(pa.array(some, mask=mask))
        for column in (pa.array(some), pa.array(some).slice(3, 9)):
            chunked = pa.chunked_array([column, column])
            for one in (column, chunked):
                np.testing.assert_array_equal(numpy_of(one), np.asarray(one))
                assert numpy_of(one).dtype == np.asarray(one).dtype


@pytest.mark.parametrize("column", [[1.5, None], [True, None], [False], [None, None], []])
def test_truth_values_are_two_values_beside_the_missing_one(column):
    kind = pa.float64() if 1.5 in column else pa.bool_()
    for some in (pa.array(column, kind), pa.chunked_array([pa.array(column, kind)])):
        values, codes = distinct("x", some)
        assert [python_values(values)[code] for code in codes] == column
