"""Tables of a column's values, and ways to read the column: by value, or in quantile bins.

A row of a table is a value: its rows by class, or the moments of a numeric target. A category is
read by its values, a column of numbers or dates in 2, 4, 8, ... bins, a column of integers in both
ways. Bins end at values of the data and hold about the same number of rows, `LEAST_ROWS` or more:
the best of many narrow bins promises what it does not keep.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdtrue.columns.values import ORDERED, arrow_of, filtered, is_missing, numpy_of, python_values

# Of a numeric target, per value: count, mean, and the second to fourth moment about the mean.
N_MOMENTS = 5
# Values without an order whose effects are shown.
MOST_VALUES = 8
# Rows of a bin on average, where there are more than two; and of values that are bins themselves.
LEAST_ROWS = 8
_ROWS_OF_VALUE = 4
_BLOCK = 1 << 16  # values whose rows stay in the cache


# --- tables -------------------------------------------------------------------------------------


def holds_moments(table: np.ndarray) -> bool:
    """Whether a table holds moments of a numeric target; otherwise class counts."""
    return table.dtype == np.float64


def row_sums(counts: np.ndarray) -> np.ndarray:
    """Rows of the sample with each value; faster than ``sum(axis=1)`` for few classes."""
    if counts.shape[1] > 8:
        return counts.sum(axis=1)
    c = counts[:, 0].copy()
    for k in range(1, counts.shape[1]):
        c += counts[:, k]
    return c


def rows_by_value(table: np.ndarray) -> np.ndarray:
    """Rows of the sample with each value of a table, of class counts or of moments."""
    return table[:, 0].copy() if holds_moments(table) else row_sums(table)


def is_present(table: np.ndarray) -> np.ndarray:
    """Mask of the values that some row of the sample has."""
    present = table[:, 0] > 0
    if not holds_moments(table):
        for k in range(1, table.shape[1]):
            present |= table[:, k] > 0
    return present


def present_values(values: Any, table: np.ndarray) -> tuple[Any, np.ndarray]:
    """Values that occur in some row, and their table."""
    present = is_present(table)
    if present.all():
        return values, table
    return filtered(values, present), table[present]


def sum_between(table: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Sums of the table's rows between successive ends, shape (n_ends, width).

    Parameters
    ----------
    table : ndarray of shape (n_values, width)
    ends : ndarray of int, shape (n_ends,)
        Ascending; the last is ``n_values - 1``.
    """
    if holds_moments(table):
        groups = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=-1))
        return grouped_moments(groups, len(ends), table)
    # Class by class: NumPy is slow along rows of a few numbers.
    starts = np.append(0, ends[:-1] + 1)
    return np.stack([np.add.reduceat(column, starts) for column in table.T], axis=1)


def grouped_moments(codes: np.ndarray, n_groups: int, moments: np.ndarray) -> np.ndarray:
    """Moments of groups of parts, shape (n_groups, 5) (Pébay 2008, for many parts at once).

    With ``δ = mean_i - mean`` of a part i: ``M2 = Σ M2_i + n_i δ²``,
    ``M3 = Σ M3_i + 3 δ M2_i + n_i δ³``, ``M4 = Σ M4_i + 4 δ M3_i + 6 δ² M2_i + n_i δ⁴``.

    Parameters
    ----------
    codes : ndarray of int, shape (n_parts,)
        Group of each part.
    n_groups : int
    moments : ndarray of shape (n_parts, 5)
        Count, mean, M2, M3, M4 of each part; a single row has moments of 0.
    """

    def total(part: np.ndarray) -> np.ndarray:
        return np.bincount(codes, part, minlength=n_groups)

    n, mean, m2, m3, m4 = moments.T
    count = total(n)
    whole = total(n * mean) / np.maximum(count, 1)
    # A second pass takes out the rounding error of the first, which δ would inherit.
    whole += total(n * (mean - whole[codes])) / np.maximum(count, 1)
    delta = mean - whole[codes]
    square = delta * delta  # NumPy's power is far slower than a product
    columns = (
        count,
        whole,
        total(m2 + n * square),
        total(m3 + delta * (3 * m2 + n * square)),
        total(m4 + 4 * delta * m3 + square * (6 * m2 + n * square)),
    )
    return np.column_stack(columns)


# --- values with their tables, in parts ---------------------------------------------------------


class Part(NamedTuple):
    """Tables of some values of a column."""

    # shape (n_values, width): of values that are not missing; those of numbers in order, part after
    # part
    table: np.ndarray
    missing: np.ndarray  # shape (0, width) or (1, width): of the missing value
    # of the rows of the table, or numbers of rows that have them in ``column``; None where values
    # of earlier parts are as frequent, and enough to be shown
    values: Any = None
    column: Any = None


def whole_part(kind: str, values: Any, table: np.ndarray) -> Part:
    """The one part of a column that is counted as a whole.

    Parameters
    ----------
    kind : str
        One of `holdtrue.columns.values.KINDS`.
    values : pyarrow.Array or ndarray of object, length n_values
    table : ndarray of shape (n_values, width)
    """
    missing = missing_rows(values, table)
    if kind in ORDERED:
        order = value_order(values)
        in_order = values[order] if isinstance(order, slice) else values.take(arrow_of(order))
        return Part(table[order], missing, in_order)
    if len(missing):
        present = ~is_missing(values)
        values, table = filtered(values, present), table[present]
    return Part(table, missing, values)


def missing_rows(values: Any, table: np.ndarray) -> np.ndarray:
    """The row of the missing value in a table, shape (0, width) or (1, width)."""
    if not isinstance(values, np.ndarray) and not values.null_count:
        return table[:0]
    return table[is_missing(values)]


def value_order(values: Any) -> Any:
    """Indices, or a slice, that sort the values that are not missing."""
    n_present = len(values) - values.null_count
    start = values.slice(0, n_present)
    if not start.null_count:
        numbers = numpy_of(start)
        if (numbers[1:] > numbers[:-1]).all():
            return slice(0, n_present)
    return numpy_of(pc.array_sort_indices(values))[:n_present].astype(np.intp)


# What is kept of a column's values beside its counts. Scores need no values, and are counted
# without. To show what a column says its values must be named: a few of them, however many there
# are and in however many parts they come.


class Outline:
    """The most frequent values of a column, and its bins with the values at which they end.

    Parameters
    ----------
    kind : str
        One of `holdtrue.columns.values.KINDS`.

    Attributes
    ----------
    frequent : list
        Values that are not missing, the most frequent first; none of numbers, which bins show.
    tables : ndarray of shape (n_frequent, width)
    n_values : int
        Values that are not missing.
    total : ndarray of shape (1, width)
        Of all of them.
    missing : ndarray of shape (0, width) or (1, width)
        Of the missing value.
    bins : list of (ndarray of int, ndarray of shape (n_bins, width))
        For every number of bins: index of the last value of each bin among the values in order, and
        table of the bins.
    spread : float
        How much larger the variance of what a value says is for groups than for rows.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.frequent: list[Any] = []
        self.tables = np.zeros((0, 0))
        self.n_values = 0
        self.total: np.ndarray = np.zeros((0, 0))
        self.missing: np.ndarray = np.zeros((0, 0))
        self.bins: list[tuple[np.ndarray, np.ndarray]] = []
        self.spread = 1.0
        self._first: list[Any] = []
        self._named: list[Any] = []  # values at some ends, and their indices
        self._at: list[np.ndarray] = []

    def add(self, part: Part, ends: np.ndarray | None) -> None:
        """Add the next values.

        Parameters
        ----------
        part : Part
            With its values.
        ends : ndarray of int, optional
            Values at which a bin may end, where they have an order.
        """
        table = part.table
        if not len(table):
            return
        if ends is not None:
            self._first = self._first or _taken(part, np.array([0]))
            self._named += _taken(part, ends)
            self._at.append(self.n_values + ends)
        self.n_values += len(table)
        if self.kind == "number":
            return
        total = sum_between(table, np.array([len(table) - 1]))
        if len(self.total):
            total = sum_between(np.concatenate([self.total, total]), np.array([1]))
        self.total = total
        for start in range(0, len(table), _BLOCK):
            self._keep_frequent(part, start)

    def _keep_frequent(self, part: Part, start: int) -> None:
        """The most frequent of the values kept and of a block of a part; of equals, the first."""
        rows = rows_by_value(part.table[start : start + _BLOCK])
        least = rows_by_value(self.tables)[-1] if len(self.frequent) == MOST_VALUES else 0
        places = np.flatnonzero(rows > least)
        if not len(places):
            return
        best = start + places[np.argsort(-rows[places], kind="stable")[:MOST_VALUES]]
        values, tables = self.frequent + _taken(part, best), part.table[best]
        if self.frequent:
            tables = np.concatenate([self.tables, tables])
        order = np.argsort(-rows_by_value(tables), kind="stable")[:MOST_VALUES]
        self.frequent, self.tables = [values[i] for i in order], tables[order]

    def edges(self, ends: np.ndarray) -> list[Any]:
        """The least value, and the last value of each bin."""
        places = np.searchsorted(np.concatenate(self._at), ends)
        return self._first + [self._named[place] for place in places]


def _taken(part: Part, places: np.ndarray) -> list[Any]:
    """Some values of a part as Python objects."""
    values = part.values
    if isinstance(values, np.ndarray):
        return values[places].tolist()
    values = values.take(arrow_of(places))
    if part.column is not None:  # one by one: `take` would join all chunks of the column
        return [part.column[row].as_py() for row in values.to_pylist()]
    if not pa.types.is_temporal(values.type):
        return python_values(values)
    try:  # as text: Python has no nanoseconds, nor years beyond 9999
        return values.cast(pa.string()).to_pylist()
    except pa.ArrowException:
        return values.cast(pa.int64()).to_pylist()


# --- readings -----------------------------------------------------------------------------------


class Reading(NamedTuple):
    """One way to read a column."""

    n_bins: int  # 0 where the column is read by value
    # shape (n_bins,): index of the last value of each bin among the values in order; empty without
    # bins
    ends: np.ndarray
    # shape (n_groups, width): of values or bins; a missing value has the last row to itself
    table: np.ndarray

    def groups(self, values: Any) -> np.ndarray:
        """Row of the table that each value of the column belongs to, shape (n_values,)."""
        if not self.n_bins:
            return np.arange(len(values))
        groups = np.full(len(values), self.n_bins, dtype=np.intp)
        bins = np.repeat(np.arange(self.n_bins), np.diff(self.ends, prepend=-1))
        groups[value_order(values)] = bins
        return groups


def readings(
    kind: str, values: Any, table: np.ndarray, max_bins: int, least_rows: int = LEAST_ROWS
) -> list[Reading]:
    """Ways to read a column: its values, or 2, 4, 8, ... up to ``max_bins`` bins.

    Parameters
    ----------
    kind : str
        One of `holdtrue.columns.values.KINDS`.
    values : pyarrow.Array or ndarray of object, length n_values
    table : ndarray of shape (n_values, width)
    max_bins, least_rows : int
        As in `BinCounter`.
    """
    has_order = kind in ORDERED and values.null_count < len(values)
    by_value = Reading(0, np.zeros(0, dtype=np.intp), table)
    if not has_order:
        return [by_value]
    in_order = table[value_order(values)]
    missing = missing_rows(values, table)
    n_rows = float(rows_by_value(in_order).sum())
    counter = BinCounter(n_rows, max_bins, least_rows=least_rows)
    counter.add(in_order)
    binned = [
        Reading(len(ends), ends, np.concatenate([bins, missing])) for ends, bins in counter.bins()
    ]
    return binned if kind == "number" else [by_value, *binned]


def bin_numbers(n_rows: float, max_bins: int, least_rows: int) -> list[int]:
    """Numbers of bins to try: 2, 4, 8, ... up to ``max_bins``, with enough rows in each."""
    sizes = [2]
    while sizes[-1] < max_bins and min(2 * sizes[-1], max_bins) * least_rows <= n_rows:
        sizes.append(min(2 * sizes[-1], max_bins))
    return sizes


def bin_ranks(n_rows: float, n_bins: int) -> np.ndarray:
    """Rows up to the end of each bin but the last, whole numbers: ``ceil(b n_rows/n_bins)``."""
    return np.ceil(np.arange(1, n_bins) * (n_rows / n_bins))


class BinCounter:
    """Tables of the bins of a column whose values come in order, in one part or in several.

    Counters of parts add in the order of the values, if each knows the rows before it.

    Parameters
    ----------
    n_rows : float
        Rows of all parts together.
    max_bins : int
    n_before : float
        Rows with smaller values, which other counters have.
    least_rows : int
        Rows that more than two bins have on average.
    """

    def __init__(
        self, n_rows: float, max_bins: int, n_before: float = 0.0, *, least_rows: int = LEAST_ROWS
    ):
        self.max_bins = max_bins
        self.n_rows = n_rows
        self.n_values = 0
        self._sizes = bin_numbers(n_rows, max_bins, least_rows)
        # Rows for which every value, if there are few, has a bin.
        self._rows_of_value = min(least_rows, _ROWS_OF_VALUE)
        self.ranks = np.unique(np.concatenate([bin_ranks(n_rows, size) for size in self._sizes]))
        self._n_done = n_before
        # Values between two wanted ranks are summed at once: table, last value, rows up to it.
        self._sums: list[np.ndarray] = []
        self._last: list[np.ndarray] = []
        self._reached: list[np.ndarray] = []

    def add(self, table: np.ndarray) -> np.ndarray:
        """Add the next values in order, none of them empty; returns where bins may end."""
        if not len(table):
            return np.zeros(0, dtype=np.intp)
        reached = np.cumsum(rows_by_value(table))
        ranks = self.ranks[(self.ranks > self._n_done) & (self.ranks <= self._n_done + reached[-1])]
        # In the type of `reached`, or NumPy would convert all of it.
        places = np.searchsorted(reached, (ranks - self._n_done).astype(reached.dtype))
        ends = np.unique(np.append(places, len(table) - 1))
        if len(table) <= self.max_bins:
            ends = np.arange(len(table))
        self._sums.append(sum_between(table, ends))
        self._last.append(self.n_values + ends)
        self._reached.append(self._n_done + reached[ends])
        self._n_done += float(reached[-1])
        self.n_values += len(table)
        return ends

    def __add__(self, later: BinCounter) -> BinCounter:
        both = copy.copy(self)
        both._n_done = later._n_done
        both.n_values = self.n_values + later.n_values
        both._sums = self._sums + later._sums
        both._last = self._last + [last + self.n_values for last in later._last]
        both._reached = self._reached + later._reached
        return both

    def bins(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Ends and table for every number of bins; an end is the index of a bin's last value."""
        if not self.n_values:
            return []
        sums, last = np.concatenate(self._sums), np.concatenate(self._last)
        reached = np.concatenate(self._reached)
        result = []
        for size in self._sizes:
            if self.n_values <= size:
                break
            places = np.searchsorted(reached, bin_ranks(self.n_rows, size))
            places = np.unique(np.append(places, len(last) - 1))
            result.append((last[places], sum_between(sums, places)))
        is_few = self.n_values * self._rows_of_value <= self.n_rows
        if not result or (self.n_values <= self.max_bins and is_few):
            result.append((last, sums))
        return result
