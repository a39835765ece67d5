"""GroupProfile: what the score of one column depends on where whole groups are left out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from holdtrue.columns.bins import (
    BinCounter,
    Outline,
    Part,
    grouped_moments,
    holds_moments,
    row_sums,
    rows_by_value,
    value_order,
)
from holdtrue.columns.counting import distinct_keys, loops_pay
from holdtrue.columns.values import ORDERED, is_missing
from holdtrue.sums.profile import Seen

__all__ = ["GroupProfile", "GroupTable"]


@dataclass(frozen=True, eq=False)
class GroupTable:
    """A column in one reading: sums by value (or bin) and group."""

    # value, group, shape (n_pairs,): codes from 0; each pair once
    value: np.ndarray
    group: np.ndarray
    # shape (n_pairs, n_classes): class counts; or of a numeric target count, mean and higher
    # moments, shape (n_pairs, 3 or more)
    sums: np.ndarray
    n_bins: int = 0  # 0 where the column is read by value
    known_groups: np.ndarray | None = None  # `by_group`, where known

    @classmethod
    def from_codes(
        cls,
        value: np.ndarray,
        group: np.ndarray,
        sums: np.ndarray,
        by_group: np.ndarray | None = None,
        n_bins: int = 0,
    ) -> GroupTable:
        """Table of pairs in the order of the values; a long one in the types of compiled loops."""
        is_short = sums.dtype == np.int32 or sums.sum() < 1 << 31
        if not holds_moments(sums) and loops_pay(len(sums)) and is_short:
            value, group, sums = (a.astype(np.int32, copy=False) for a in (value, group, sums))
        return cls(value, group, sums, n_bins, by_group)

    @cached_property
    def by_value(self) -> np.ndarray:
        """Class counts by value, shape (n_values, n_classes); for a numeric target, rows alone."""
        return self._of_values[0]

    @cached_property
    def n_by_value(self) -> np.ndarray:
        """Groups of each value, shape (n_values,)."""
        return self._of_values[1]

    @cached_property
    def by_group(self) -> np.ndarray:
        """Class counts by group, shape (n_groups, n_classes); for a numeric target, rows alone."""
        return self._totals(self.group)[0] if self.known_groups is None else self.known_groups

    @cached_property
    def n_by_group(self) -> np.ndarray:
        """Values of each group, shape (n_groups,)."""
        return np.bincount(self.group, minlength=len(self.by_group))

    @cached_property
    def _of_values(self) -> tuple[np.ndarray, np.ndarray]:
        return self._totals(self.value)

    def _totals(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums over the pairs of each value or group, and its number of pairs."""
        counts = self.sums[:, :1] if holds_moments(self.sums) else self.sums
        if self.is_long:
            from holdtrue.columns.pair_loops import sums_of_pairs

            return sums_of_pairs(codes, counts)
        columns = [np.bincount(codes, column) for column in counts.T]
        return np.stack(columns, axis=1), np.bincount(codes)

    @cached_property
    def rows_by_value(self) -> np.ndarray:
        """Rows with each value, shape (n_values,)."""
        return row_sums(self.by_value)

    @property
    def is_long(self) -> bool:
        """Whether the table is for compiled loops: codes and counts in int32, and many pairs."""
        return self.sums.dtype == np.int32 and loops_pay(len(self.value))

    @property
    def rows_once(self) -> float:
        """Rows whose value no other group has."""
        return self.seen().rows_once

    @property
    def design_effect(self) -> float:
        """How much larger the variances of a value's share or mean are for groups than for rows.

        ``Σ u²`` over values and groups, u what a group has beyond its value, divided by the same of
        rows; at least 1.
        """
        if holds_moments(self.sums):
            moments = sums_by_value(self.value, int(self.value.max()) + 1, self.sums)
            u = self.sums[:, :1] * (self.sums[:, 1] - moments[self.value, 1])[:, None]
            of_rows = float(moments[:, 2].sum())
        else:
            q = self.by_value / np.maximum(self.rows_by_value, 1)[:, None]
            u = self.sums - row_sums(self.sums)[:, None] * q[self.value]
            of_rows = float((self.by_value * (1 - q)).sum())
        return max(float(np.vdot(u, u)) / of_rows, 1.0) if of_rows > 0 else 1.0

    def seen(self) -> Seen:
        """How often values recur in another group."""
        sizes, n_groups = self.rows_by_value, self.n_by_value
        once = n_groups == 1
        return Seen(
            float(sizes.sum()),
            float(np.count_nonzero(self.by_group.any(axis=1))),
            int(np.count_nonzero(n_groups)),
            int(np.count_nonzero(once)),
            float(sizes @ once),  # several times faster than a sum by mask
        )


class GroupGrid(GroupTable):
    """A column in bins: counts of every bin, class and group, also where there are no rows."""

    cells: np.ndarray  # of int32, shape (n_values, n_classes, n_groups)

    def __init__(self, cells: np.ndarray, n_bins: int, by_group: np.ndarray):
        vars(self).update(cells=cells, n_bins=n_bins, by_group=by_group)

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        from holdtrue.columns.pair_loops import pairs_of_cells

        return pairs_of_cells(self.cells)

    value = property(lambda self: self._pairs[0][0])
    group = property(lambda self: self._pairs[0][1])
    sums = property(lambda self: self._pairs[1])
    is_long = True

    @cached_property
    def by_value(self) -> np.ndarray:
        return self.cells.sum(axis=2).astype(np.float64)

    @cached_property
    def n_by_value(self) -> np.ndarray:
        return np.count_nonzero(self.cells.any(axis=1), axis=1)

    @cached_property
    def n_by_group(self) -> np.ndarray:
        return np.count_nonzero(self.cells.any(axis=1), axis=0)


@dataclass(frozen=True, eq=False)
class GroupProfile:
    """Sums of a column by value and group, with the ways to read the column."""

    kind: str  # as in `Profile`
    classes: tuple[Any, ...] | None
    # By raw value; values that have an order are in order, the missing value has the last code
    by_value: GroupTable
    has_missing: bool
    # For every number of bins, the index of the last value of each; the missing value has one more
    ends: tuple[np.ndarray, ...] = ()
    max_bins: int = 64
    values: Any = None  # those that are not missing, in the order of their codes; None: not kept

    @classmethod
    def from_pairs(
        cls,
        kind: str,
        values: Any,
        pairs: np.ndarray,
        sums: np.ndarray,
        classes: tuple[Any, ...] | None,
        max_bins: int = 64,
        by_group: np.ndarray | None = None,
        *,
        keep_values: bool = False,
    ) -> GroupProfile:
        """Profile of a column from its sums by value and group.

        Parameters
        ----------
        kind : str
        values : pyarrow.Array or ndarray of object
        pairs : ndarray of int, shape (n_pairs, 2)
            Index of the value, and of the group, in any order.
        sums : ndarray of shape (n_pairs, width)
        classes : tuple or None
        max_bins : int
        by_group : ndarray of float64, shape (n_groups, n_classes), optional
            Sums over the values, the same for every column; for a numeric target, rows alone.
        keep_values : bool
            Whether an outline is wanted.
        """
        value, group = map(np.ascontiguousarray, pairs.T)
        if (value[1:] < value[:-1]).any():  # a database gives them in any order
            order = np.argsort(value, kind="stable")
            value, group, sums = value[order], group[order], sums[order]
        by_value = GroupTable.from_codes(value, group, sums, by_group)
        missing = is_missing(values)
        n_present = len(values) - int(missing.sum())
        has_order = kind in ORDERED and n_present > 0
        places: Any = slice(0, n_present)  # of the values that are not missing, in their order
        if has_order:
            places = value_order(values)
        elif missing[:-1].any():
            places = np.flatnonzero(~missing)
        if not isinstance(places, slice):
            by_value = _relabelled(by_value, np.append(places, np.flatnonzero(missing)))
        ends: tuple[np.ndarray, ...] = ()
        if has_order:
            n_rows = by_value.rows_by_value[:n_present].astype(np.int64)
            counter = BinCounter(float(n_rows.sum()), max_bins)
            counter.add(n_rows[:, None])
            ends = tuple(last for last, _ in counter.bins())
        kept = None
        if keep_values:
            kept = values[places] if isinstance(places, slice) else values.take(places)
        return cls(kind, classes, by_value, bool(missing.any()), ends, max_bins, kept)

    @property
    def n_samples(self) -> int:
        """Number of rows counted; with weights, their sum."""
        return int(self.by_value.rows_by_value.sum())

    def read(self, *, with_missing: bool = True) -> tuple[Seen, list[GroupTable]]:
        """How often raw values recur in another group, and the ways to read the column.

        Parameters
        ----------
        with_missing : bool
            Whether missing is a value; otherwise its rows are left out.
        """
        by_value = self.by_value
        if self.has_missing and not with_missing:
            value, group, sums = by_value.value, by_value.group, by_value.sums
            present = value < value.max()
            by_value = GroupTable(value[present], group[present], sums[present])
        tables: list[GroupTable] = []
        # Coarser bins are summed from finer ones where those are parts of them.
        finer, finer_ends = by_value, None
        for ends in reversed(self.ends):
            if self.kind != "number" and len(ends) == ends[-1] + 1:
                continue  # every bin is a value: the same as by value
            if finer_ends is not None and not np.isin(ends, finer_ends).all():
                finer, finer_ends = by_value, None
            last = ends if finer_ends is None else np.searchsorted(finer_ends, ends)
            bin_of = np.repeat(np.arange(len(ends) + 1), np.append(np.diff(last, prepend=-1), 1))
            finer, finer_ends = _joined(bin_of, finer, len(ends)), ends
            tables.insert(0, finer)
        if self.kind != "number" or not self.ends:
            tables.insert(0, by_value)
        return by_value.seen(), tables

    def outline_of(self, reading: int) -> Outline | None:
        """Outline of the values in one of the readings; None where values were not kept."""
        if self.values is None:
            return None
        n_present = len(self.values)
        known = self.by_value
        table = sums_by_value(known.value, n_present + self.has_missing, known.sums)
        outline, ends = Outline(self.kind), None
        outline.missing = table[n_present:]
        table = table[:n_present]
        if self.kind in ORDERED:
            counter = BinCounter(float(rows_by_value(table).sum()), self.max_bins)
            ends = counter.add(table)
            outline.bins = counter.bins()
        outline.add(Part(table, outline.missing, self.values), ends)
        outline.spread = self.read()[1][reading].design_effect
        return outline


def _relabelled(table: GroupTable, order: np.ndarray) -> GroupTable:
    """The table with its values, and so its pairs, in that order."""
    place = np.empty(len(order), dtype=table.value.dtype)
    place[order] = np.arange(len(order))
    value = place[table.value]
    pairs = np.argsort(value, kind="stable")
    known = table.group[pairs], table.sums[pairs]
    return GroupTable(value[pairs], *known, known_groups=table.known_groups)


def _joined(bin_of: np.ndarray, finer: GroupTable, n_bins: int) -> GroupTable:
    """Sums by bin and group, given the bin of each value of a finer table; bins rise."""
    n_groups, cells = len(finer.by_group), None
    if isinstance(finer, GroupGrid):
        from holdtrue.columns.pair_loops import coarser_cells

        cells = coarser_cells(bin_of[: len(finer.cells)], finer.cells)
    elif not len(finer.value):
        return GroupTable(finer.value, finer.group, finer.sums, n_bins)
    elif finer.is_long:
        from holdtrue.columns.pair_loops import joined_cells, joined_counts

        known = finer.value, finer.group, finer.sums, n_groups
        bin_of = bin_of[: len(finer.by_value)]
        cells = joined_cells(bin_of, *known)
        if cells is None:
            pairs, sums = joined_counts(bin_of, *known)
            return GroupTable(pairs[0], pairs[1], sums, n_bins, finer.by_group)
    if cells is not None:
        return GroupGrid(cells, n_bins, finer.by_group)
    return meet(bin_of[finer.value], finer.group, finer.sums, n_bins)


def meet(value: np.ndarray, group: np.ndarray, sums: np.ndarray, n_bins: int = 0) -> GroupTable:
    """Class counts or moments by value and group from rows in any order, equal pairs added.

    Parameters
    ----------
    value, group : ndarray of int, shape (n_rows,)
    sums : ndarray of int, shape (n_rows, n_classes), or of float, shape (n_rows, 5)
    n_bins : int
        Of the table; 0 where the column is read by value.
    """
    n_groups = int(group.max()) + 1
    keys = value.astype(np.int64) * n_groups + group
    if not np.all(keys[1:] > keys[:-1]):
        keys, place = distinct_keys(keys, (int(value.max()) + 1) * n_groups)
        sums = sums_by_value(place, len(keys), sums)
        value, group = np.divmod(keys, n_groups)
    return GroupTable.from_codes(value, group, sums, n_bins=n_bins)


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
    columns = [np.bincount(codes, column, n_values) for column in sums.T]
    return np.stack(columns, axis=1).astype(np.int64)
