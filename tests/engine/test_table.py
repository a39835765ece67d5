"""Pieces of an exchange: hashes that every machine shares, bins of parts in order."""

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
from holdtrue.engine.table import _Column, _hashes, _mostly_differ, _pieces

VALUES = [
    ["", "a", "b", "ab", "ba", "grün", "a\0", "x" * 3000],
    [b"", b"\0", b"\0\0"],
    [-(2**63), -1, 0, 1, 2**63 - 1],
    [-np.inf, -1.5, 0.0, 5e-324, np.inf],
    [False, True],
    [datetime.date(1, 1, 1), datetime.date(2020, 2, 29)],
    [datetime.datetime(2020, 1, 1), datetime.datetime(2020, 1, 1, 0, 0, 0, 1)],
    [Decimal("0.10"), Decimal("-0.10"), Decimal("0.20")],
]


@pytest.mark.parametrize("values", VALUES, ids=lambda values: type(values[0]).__name__)
def test_equal_values_have_one_hash_wherever_they_stand(values):
    column = pa.array(values)
    hashes = _hashes(column)
    assert len(set(hashes.tolist())) == len(values)
    for i in range(len(values)):
        assert _hashes(column.slice(i, 1)).tolist() == hashes[i : i + 1].tolist()
        assert _hashes(column.slice(i)).tolist() == hashes[i:].tolist()
    assert len(_hashes(column.slice(0, 0))) == 0


def test_minus_zero_has_the_hash_of_zero():
    assert len(set(_hashes(pa.array([0.0, -0.0])).tolist())) == 1


def test_hashes_spread_over_buckets():
    for column in (pa.array(range(10_000)), pa.array([f"u{i}" for i in range(10_000)])):
        bucket = (_hashes(column) >> np.uint64(32)) % np.uint64(7)
        rows = np.bincount(bucket.astype(np.intp), minlength=7)
        assert rows.min() > 10_000 / 7 * 0.8


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
    long = pa.array(values * 2000)
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
