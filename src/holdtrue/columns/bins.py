"""Ways to read a column of numbers: by value, or in quantile bins.

A category is read by its values, a column of numbers or dates in 2, 4, 8, ... bins, a column of
integers in both ways. Bins end at values of the data and hold about the same number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow.compute as pc

from holdtrue.columns.counting import rows_by_value, sum_between
from holdtrue.columns.values import is_missing


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


def readings(kind: str, values: Any, table: np.ndarray, max_bins: int) -> list[Reading]:
    """Ways to read a column: its values, or 2, 4, 8, ... up to ``max_bins`` bins.

    Parameters
    ----------
    kind : str
        One of `holdtrue.columns.values.KINDS`.
    values : pyarrow.Array or ndarray of object, length n_values
    table : ndarray of shape (n_values, width)
    max_bins : int
    """
    has_order = has_bins(kind) and values.null_count < len(values)
    by_value = Reading(0, np.zeros(0, dtype=np.intp), table)
    if not has_order:
        return [by_value]
    in_order = table[value_order(values)]
    missing = missing_rows(values, table)
    counter = BinCounter(float(rows_by_value(in_order).sum()), max_bins)
    counter.add(in_order)
    binned = [
        Reading(len(ends), ends, np.concatenate([bins, missing])) for ends, bins in counter.bins()
    ]
    return binned if kind == "number" else [by_value, *binned]


def has_bins(kind: str) -> bool:
    """Whether columns of this kind are read in bins."""
    return kind in ("integer", "number")


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
        numbers = np.asarray(start)
        if (numbers[1:] > numbers[:-1]).all():
            return slice(0, n_present)
    return np.asarray(pc.array_sort_indices(values))[:n_present].astype(np.intp)


def bin_numbers(n_values: int, max_bins: int) -> list[int]:
    """Numbers of bins that are tried for a column of so many values: 2, 4, 8, ... max_bins."""
    sizes = [2]
    while sizes[-1] < min(max_bins, n_values):
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
    """

    def __init__(self, n_rows: float, max_bins: int, n_before: float = 0.0):
        self.max_bins = max_bins
        self.n_rows = n_rows
        self.n_values = 0
        ranks = [bin_ranks(n_rows, size) for size in bin_numbers(int(n_rows), max_bins)]
        self.ranks = np.unique(np.concatenate(ranks))
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
        both = BinCounter(self.n_rows, self.max_bins, later._n_done)
        both.n_values = self.n_values + later.n_values
        both._sums = self._sums + later._sums
        both._last = self._last + [last + self.n_values for last in later._last]
        both._reached = self._reached + later._reached
        return both

    def bins(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Ends and table for every number of bins; an end is the index of a bin's last value."""
        if not self.n_values:
            return
        sums, last = np.concatenate(self._sums), np.concatenate(self._last)
        reached = np.concatenate(self._reached)
        for size in bin_numbers(self.n_values, self.max_bins):
            if self.n_values <= size:
                yield last, sums
                continue
            places = np.searchsorted(reached, bin_ranks(self.n_rows, size))
            places = np.unique(np.append(places, len(last) - 1))
            yield last[places], sum_between(sums, places)
