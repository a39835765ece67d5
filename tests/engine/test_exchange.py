"""Pieces of an exchange: cuts that every machine shares, bins of parts in order."""

import datetime
from decimal import Decimal
from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from holdtrue.columns.bins import BinCounter
from holdtrue.columns.counting import Target
from holdtrue.engine.exchange import _Column, _has_ranges, _mostly_differ, _pieces, _sort_keys
from holdtrue.engine.table import EngineTarget

VALUES = [
    ["", "a", "b", "ab", "ba", "grün", "a\0", "x" * 3000],
    [b"", b"\0", b"\0\0"],
    [-(2**63), -1, 0, 1, 2**63 - 1],
    [-np.inf, -1.5, 0.0, 5e-324, np.inf],
    [False, True],
    [datetime.date(1, 1, 1), datetime.date(2020, 2, 29)],
    [datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, 0, 0, 0, 1)],
    [Decimal("-0.10"), Decimal("0.10"), Decimal("0.20")],
    np.array([0, 1, 2**63, 2**64 - 1], dtype=np.uint64),
]


def cuts_of(values, ends, n_cuts=3):
    """Number of the piece that each value goes to."""
    target = Target(np.zeros(len(values), dtype=np.uint8), ("no", "yes"), None)
    pieces = _pieces(_Column("x", "category", ends), values, target, n_cuts)
    assert [len(piece.sizes) for piece in pieces] == [n_cuts] * n_cuts
    pairs = [(value, cut) for cut, piece in enumerate(pieces) for value in piece.values.to_pylist()]
    assert len(pairs) == len(values)
    return dict(pairs)


@pytest.mark.parametrize("values", VALUES, ids=lambda values: type(values[0]).__name__)
def test_a_value_goes_to_one_piece_wherever_it_stands(values):
    column = pa.array(values)
    ends = None
    if _has_ranges(column.type):
        keys = _sort_keys(column)
        assert (np.diff(keys) >= 0).all()
        ends = np.unique(keys[[0, len(keys) // 2]])
    cuts = cuts_of(column, ends)
    for i, value in enumerate(values):
        assert cuts_of(column.slice(i, 1), ends) == {value: cuts[value]}
        assert cuts_of(column.slice(i), ends)[value] == cuts[value]
    assert len(cuts_of(column.slice(0, 0), ends)) == 0
    if ends is not None:
        assert list(cuts.values()) == sorted(cuts.values())
        assert len(set(cuts.values())) > 1


def test_minus_zero_is_in_the_range_of_zero():
    zeros = pa.array([0.0, -0.0])
    for end in zeros.to_pylist():
        assert set(cuts_of(zeros, np.array([end])).values()) == {0}


def test_missing_values_belong_to_no_range():
    assert np.isnan(_sort_keys(pa.array([None, np.nan]))).all()
    column = pa.array([None, 1.0, np.nan, 3.0, 3.0])
    target = Target(np.zeros(5, dtype=np.uint8), ("no", "yes"), None)
    pieces = _pieces(_Column("x", "number", np.array([2.0])), column, target, 2)
    assert pieces[0].sizes.tolist() == pieces[1].sizes.tolist() == [1, 2]


def test_texts_spread_over_pieces():
    cuts = cuts_of(pa.array([f"u{i}" for i in range(10_000)]), None, 7)
    assert np.bincount(list(cuts.values()), minlength=7).min() > 10_000 / 7 * 0.8


def test_a_pass_that_met_other_rows_says_which():
    first = EngineTarget("y", ("no", "yes"), np.array([2, 1]))
    first.check(np.array([2, 1]))
    with pytest.raises(ValueError, match=r"between passes \(3 rows, then 4\)"):
        first.check(np.array([2, 2]))
    with pytest.raises(ValueError, match=r"\(rows by class \[2, 1\], then \[1, 2\]\)"):
        first.check(np.array([1, 2]))
    with pytest.raises(ValueError, match=r"\(a class is new\)"):
        first.of_rows(pa.array(["no", "maybe"]))


def test_rows_of_values_that_repeat_are_counted_before_they_move():
    rng = np.random.default_rng(0)
    assert _mostly_differ(pa.array(rng.integers(0, 2**40, 100_000)))
    assert not _mostly_differ(pa.array(rng.integers(0, 10_000, 100_000)))
    assert not _mostly_differ(pa.array(["a"] * 10))
    assert not _mostly_differ(pa.nulls(10))
    numbers = rng.normal(size=100_000)
    numbers[::3] = np.nan  # missing rows are one value
    assert _mostly_differ(pa.array(numbers))
    assert _mostly_differ(pa.array(numbers, from_pandas=True))


@pytest.mark.parametrize("values", VALUES, ids=lambda values: type(values[0]).__name__)
def test_rows_of_a_long_array_move_without_the_rest_of_it(values):
    long = pa.array(list(values) * 2000)
    rows = long.slice(len(values), len(values))
    target = Target(np.zeros(len(rows), dtype=np.uint8), ("no", "yes"), None)
    (piece,) = _pieces(_Column("x", "category", None), pa.chunked_array([rows]), target, 1)
    assert piece.table.shape == (len(rows),)
    assert piece.values.equals(rows)
    assert piece.values.get_total_buffer_size() <= 2 * rows.nbytes < long.nbytes / 50


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=60),
    st.lists(st.integers(0, 60), max_size=5),
    st.integers(2, 20),
    st.booleans(),
)
def test_bins_of_parts_that_know_the_rows_before_them_are_those_of_the_whole(
    counts, cuts, max_bins, is_numeric
):
    table = np.array(counts, dtype=np.int64)
    if is_numeric:  # rows, mean and moments
        table = np.column_stack([table[:, 1], table[:, 0], np.zeros((len(table), 3))]).astype(float)
    sizes = table[:, 0] if is_numeric else table.sum(axis=1)
    n_rows = float(sizes.sum())
    whole = BinCounter(n_rows, max_bins)
    whole.add(table)
    ends = [0, *sorted(min(cut, len(table)) for cut in cuts), len(table)]
    parts = []
    for start, stop in pairwise(ends):
        parts.append(BinCounter(n_rows, max_bins, float(sizes[:start].sum())))
        parts[-1].add(table[start:stop])
    together = parts[0]
    for part in parts[1:]:
        together = together + part
    for one, other in zip(whole.bins(), together.bins(), strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_allclose(one[1], other[1], rtol=1e-12, atol=1e-9)
