"""GroupProfile: what the score of one column depends on where whole groups are left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from holdtrue.columns.bins import is_missing, readings
from holdtrue.columns.counting import (
    distinct_keys,
    grouped_moments,
    holds_moments,
    loops_pay,
    rows_by_value,
)
from holdtrue.sums.profile import Seen

__all__ = ["GroupProfile", "GroupTable"]


class GroupTable(NamedTuple):
    """A column in one reading: sums by value (or bin) and group."""

    n_bins: int  # 0 where the column is read by value
    # value, group, shape (n_pairs,): codes from 0; each pair once
    value: np.ndarray
    group: np.ndarray
    # shape (n_pairs, n_classes): class counts; or of a numeric target count, mean and higher
    # moments, shape (n_pairs, 5)
    sums: np.ndarray

    @property
    def rows_once(self) -> float:
        """Rows whose value no other group has."""
        return self.seen().rows_once

    def seen(self) -> Seen:
        """How often values come back in another group."""
        sizes = rows_by_value(self.sums)
        n_groups = np.bincount(self.value)  # that have each value
        once = n_groups == 1
        return Seen(
            float(sizes.sum()),
            float(np.count_nonzero(np.bincount(self.group))),
            int(np.count_nonzero(n_groups)),
            int(np.count_nonzero(once)),
            float(sizes[once[self.value]].sum()),
        )


@dataclass(frozen=True, eq=False)
class GroupProfile:
    """Sums of a column by value and group, with the ways to read the column."""

    kind: str  # as in `Profile`
    classes: tuple[Any, ...] | None
    # value, group, shape (n_pairs,): each pair once; the missing value has the last code
    value: np.ndarray
    group: np.ndarray
    sums: np.ndarray  # shape (n_pairs, width)
    has_missing: bool
    # For every number of bins: that number, and the bin of each value; the missing value has one
    # more
    bins: tuple[tuple[int, np.ndarray], ...] = ()

    @classmethod
    def from_pairs(
        cls,
        kind: str,
        values: Any,
        pairs: np.ndarray,
        sums: np.ndarray,
        classes: tuple[Any, ...] | None,
        max_bins: int = 64,
    ) -> GroupProfile:
        """Profile of a column from its sums by value and group.

        Parameters
        ----------
        kind : str
        values : pyarrow.Array or ndarray of object
        pairs : ndarray of int, shape (n_pairs, 2)
            Index of the value, and of the group.
        sums : ndarray of shape (n_pairs, width)
        classes : tuple or None
        max_bins : int
        """
        table = sums_by_value(pairs[:, 0], len(values), sums)
        missing = is_missing(values)
        bins = tuple(
            (reading.n_bins, reading.groups(values))
            for reading in readings(kind, values, table, max_bins)
            if reading.n_bins
        )
        value, group = np.ascontiguousarray(pairs.T)
        if missing[:-1].any():  # the missing value last
            order = np.argsort(missing, kind="stable")
            place = np.empty(len(values), dtype=np.intp)
            place[order] = np.arange(len(values))
            bins = tuple((n_bins, groups[order]) for n_bins, groups in bins)
            value = place[value]
        return cls(kind, classes, value, group, sums, bool(missing.any()), bins)

    @property
    def n_samples(self) -> int:
        """Number of rows counted; with weights, their sum."""
        return int(rows_by_value(self.sums).sum())

    def seen(self, *, with_missing: bool = True) -> Seen:
        """How often raw values come back in another group.

        Parameters
        ----------
        with_missing : bool
            Whether missing is a value; otherwise its rows are left out.
        """
        return self._by_value(with_missing).seen()

    def _by_value(self, with_missing: bool) -> GroupTable:
        value, group, sums = self.value, self.group, self.sums
        if self.has_missing and not with_missing:
            present = value < value.max()
            value, group, sums = value[present], group[present], sums[present]
        return GroupTable(0, value, group, sums)

    def tables(self, *, with_missing: bool = True) -> list[GroupTable]:
        """Ways to read the column.

        Parameters
        ----------
        with_missing : bool
            Whether missing is a value; otherwise its rows are left out.
        """
        by_value = self._by_value(with_missing)
        tables: list[GroupTable] = []
        finer = by_value  # coarser bins are summed from finer ones where those are parts of them
        bin_of_finer = np.arange(len(self.bins[0][1]) if self.bins else 0)
        for n_bins, bin_of in reversed(self.bins):
            of_finer = np.zeros(int(bin_of_finer.max(initial=0)) + 1, dtype=np.intp)
            of_finer[bin_of_finer] = bin_of
            if not np.array_equal(of_finer[bin_of_finer], bin_of):
                finer, of_finer = by_value, bin_of
            finer = _joined(n_bins, of_finer, finer)
            bin_of_finer = bin_of
            tables.insert(0, finer)
        if self.kind != "number" or not self.bins:
            tables.insert(0, by_value)
        return tables


def _joined(n_bins: int, bin_of: np.ndarray, finer: GroupTable) -> GroupTable:
    """Sums by bin and group, given the bin of each value of a finer table."""
    if not len(finer.value):
        return finer._replace(n_bins=n_bins)
    n_groups = int(finer.group.max()) + 1
    rising = np.all(bin_of[1:] >= bin_of[:-1]) and np.all(finer.value[1:] >= finer.value[:-1])
    if rising and loops_pay(len(finer.value)) and not holds_moments(finer.sums):
        from holdtrue.columns.loops import joined_counts

        return GroupTable(
            n_bins, *joined_counts(bin_of, finer.value, finer.group, finer.sums, n_groups)
        )
    bins = bin_of[finer.value]
    keys = bins.astype(np.int64) * n_groups + finer.group
    keys, places = distinct_keys(keys, (int(bins.max()) + 1) * n_groups)
    sums = sums_by_value(places, len(keys), finer.sums)
    return GroupTable(n_bins, keys // n_groups, keys % n_groups, sums)


def sums_by_value(codes: np.ndarray, n_values: int, sums: np.ndarray) -> np.ndarray:
    """Sums of rows with the same code, of class counts or of moments, shape (n_values, width).

    Parameters
    ----------
    codes : ndarray of int, shape (n_rows,)
    n_values : int
    sums : ndarray of shape (n_rows, width)
    """
    if holds_moments(sums):
        return grouped_moments(codes, n_values, sums)
    if loops_pay(len(codes)):
        from holdtrue.columns.loops import add_rows

        table = np.zeros((n_values, sums.shape[1]), dtype=np.int64)
        add_rows(codes, sums, table)
        return table
    columns = [np.bincount(codes, column, n_values) for column in sums.T]
    return np.stack(columns, axis=1).astype(np.int64)
