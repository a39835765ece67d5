"""Estimate of a column of very many rows and values, from parts of its table.

A table of all values of an id would take more memory than the column. What the estimate needs of it
adds up over parts: which rows of counts there are and how often, and, where values have an order,
the counts up to the end of each bin. Texts are parted by their hash, numbers by their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdtrue.categories import kernel
from holdtrue.categories.counting import (
    ColumnEstimate,
    Reading,
    Scoring,
    Shortened,
    bin_numbers,
    bin_sizes,
    column_estimate,
    judged,
    shortened,
)
from holdtrue.tally import Target, row_places, table_of
from holdtrue.values import text_parts

if TYPE_CHECKING:
    from holdtrue.tables import Table

# Rows from which a column is counted in parts, and those of a part. Below, a table of all values
# takes less time, and for five million rows less than a gigabyte.
LARGE = 1 << 23
PART = 1 << 20
TEXT_PART = 1 << 21
# Values, or cells of a table, that are kept.
KEPT = 1 << 20


class _Part(NamedTuple):
    """Some values of a column, null where missing, and their rows by class."""

    values: Any
    table: np.ndarray


def estimate_in_parts(
    table: Table, name: str, kind: str, target: Target, how: Scoring
) -> ColumnEstimate | None:
    """Estimate of a column whose table is too large to be held; None where it is not.

    Parameters
    ----------
    table : Table
    name : str
        Of the column.
    kind : str
        One of `holdtrue.values.KINDS`; a category is taken by value even if it holds numbers.
    target : Target
    how : Scoring
    """
    import pyarrow as pa

    if table.n_rows < LARGE or target.classes is None or target.weight is not None:
        return None
    pa.default_memory_pool().release_unused()  # of the column before
    if pa.types.is_string(table.types[name]) or pa.types.is_large_string(table.types[name]):
        parts = _text_tables(table.column(name), target)
    else:
        parts = _number_tables(table, name, target)
    if parts is None:
        return None
    kept: list[_Part] = []
    n_kept = max(KEPT, how.max_bins + 1)  # more values than bins, from there on
    while (part := next(parts, None)) is not None:
        kept.append(part)
        del part
        if sum(len(some.table) for some in kept) > n_kept:
            return _summed(kind, kept, parts, how, table.n_rows)
    values = pa.concat_arrays([part.values for part in kept])
    return column_estimate(kind, values, np.concatenate([part.table for part in kept]), how)


def _summed(
    kind: str, kept: list[_Part], parts: Iterator[_Part], how: Scoring, n_rows: int
) -> ColumnEstimate:
    n_classes = kept[0].table.shape[1]
    missing = np.zeros((0, n_classes), dtype=np.int64)
    if kept[0].values.null_count:  # the first value of the first part, if any
        missing = kept[0].table[:1]
        kept[0] = _Part(kept[0].values.slice(1), kept[0].table[1:])
    sums = _Sums(kind, how, n_rows - int(missing.sum()), n_classes)
    while kept:
        sums.add(kept.pop(0).table)
    while (part := next(parts, None)) is not None:
        sums.add(part.table)
        del part  # before the next is made
    return sums.estimate(missing)


class _Sums:
    """What is needed of the parts of a table, which come in the order of the values if any."""

    def __init__(self, kind: str, how: Scoring, n_rows: int, n_classes: int):
        self.kind, self.how, self.n_rows = kind, how, n_rows
        self._short: list[Shortened] = []
        self._n_values = 0
        self._total = np.zeros(n_classes, dtype=np.int64)
        self._sizes = bin_numbers(n_rows, how) if kind in ("integer", "number") else []
        wanted = [bin_sizes(n_rows, size) for size in self._sizes] or [np.zeros(0)]
        self._wanted = np.unique(np.concatenate(wanted)).astype(np.int64)
        # Last value, and counts by class, up to each end.
        self._ends: dict[int, tuple[int, np.ndarray]] = {}

    def add(self, table: np.ndarray) -> None:
        if not len(table):
            return
        rows = kernel.row_sums(table)
        if self.kind == "number":
            self._short.append(_by_size(rows, table.shape[1]))
        else:
            self._short.append(_short(table, self.how))
        if self._sizes:
            before = int(self._total.sum())
            reached = before + np.cumsum(rows)
            own = self._wanted[(self._wanted > before) & (self._wanted <= reached[-1])]
            counts = self._total + np.cumsum(table, axis=0)
            for wanted, place in zip(own, np.searchsorted(reached, own), strict=True):
                self._ends[int(wanted)] = (self._n_values + int(place), counts[place])
        self._total = self._total + table.sum(axis=0)
        self._n_values += len(table)

    def estimate(self, missing: np.ndarray) -> ColumnEstimate:
        how = self.how
        whole = np.concatenate([self._total[None], missing])
        if how.missing == "ignore":
            missing = missing[:0]
        own = (
            np.concatenate([*(rows for rows, _ in self._short), missing]),
            np.concatenate([*(repeats for _, repeats in self._short), np.ones(len(missing))]),
        )
        n_values = self._n_values + len(missing)
        return judged(
            self.kind,
            own,
            n_values,
            self._readings(own, missing),
            lambda: how.no_column(whole),
            how,
        )

    def _readings(self, own: Shortened, missing: np.ndarray) -> Iterator[tuple[Reading, Shortened]]:
        if self.kind != "number":
            yield Reading(0, np.zeros(0, dtype=np.intp), own[0]), own
        for size in self._sizes:
            ends = {0: (-1, 0 * self._total)}
            for wanted in bin_sizes(self.n_rows, size):
                place, counts = self._ends[int(wanted)]
                ends[place + 1] = (place, counts)
            ends[self._n_values] = (self._n_values - 1, self._total)
            places, reached = zip(*ends.values(), strict=True)
            table = np.concatenate([np.diff(np.stack(reached), axis=0), missing])
            yield Reading(len(places) - 1, np.array(places[1:]), table), shortened(table, self.how)


def _by_size(rows: np.ndarray, n_classes: int) -> Shortened:
    """How many values have so many rows; of which class is of no account."""
    sizes, repeats = np.unique(rows, return_counts=True)
    table = np.zeros((len(sizes), n_classes), dtype=np.int64)
    table[:, 0] = sizes
    return table, repeats.astype(np.float64)


def _short(table: np.ndarray, how: Scoring) -> Shortened:
    if table.shape[1] == 2:
        return shortened(table, how)
    rows, repeats = np.unique(table, axis=0, return_counts=True)
    return rows, repeats.astype(np.float64)


# --- parts of the table -------------------------------------------------------------------------


def _text_tables(column: Any, target: Target) -> Iterator[_Part] | None:
    """Tables of texts of which many differ; a missing one comes first."""
    groups = text_parts(column, TEXT_PART)
    if groups is None:
        return None

    def tables() -> Iterator[_Part]:
        import pyarrow as pa

        if column.null_count:
            there = np.asarray(column.is_valid())
            gone = target.at(np.flatnonzero(~there))
            yield _Part(pa.nulls(1, pa.uint32()), table_of(np.zeros(len(gone.codes), int), 1, gone))
        while (group := next(groups, None)) is not None:
            places = row_places(column, group.first)
            table = table_of(group.codes, len(group.first), target.at(group.rows))
            if places.null_count:
                present = np.asarray(places.is_valid())
                places, table = places.drop_null(), table[present]
            part = _Part(places, table)
            del group, places, table  # before the next are made
            yield part
            del part

    return tables()


def _number_tables(table: Table, name: str, target: Target) -> Iterator[_Part] | None:
    """Tables of numbers in their order; a missing one comes first."""
    import pyarrow as pa

    kind = table.types[name]
    whole = (pa.types.is_integer(kind) and kind != pa.uint64()) or pa.types.is_boolean(kind)
    if pa.types.is_interval(kind) or not (whole or _is_time(kind) or pa.types.is_floating(kind)):
        return None
    n_classes = len(target.classes or ())
    if not pa.types.is_floating(kind):
        low, high = _range(table, name)
        if (high - low + 1) * n_classes <= KEPT:
            return _dense_tables(table, name, target, low, high)
    sizes = np.bincount(target.codes, minlength=n_classes)
    dtype = np.float64 if pa.types.is_floating(kind) else np.int64
    by_class = [np.empty(size, dtype=dtype) for size in sizes]
    filled = np.zeros(n_classes, dtype=np.int64)
    start = 0
    for numbers, there in _numbers(table, name):
        codes = target.codes[start : start + len(there)]
        start += len(there)
        codes = codes[there]
        for k in range(n_classes):
            own = numbers[codes == k]
            by_class[k][filled[k] : filled[k] + len(own)] = own
            filled[k] += len(own)
    by_class = [own[:size] for own, size in zip(by_class, filled, strict=True)]
    missing = sizes - filled
    for own in by_class:
        own.sort()

    def tables() -> Iterator[_Part]:
        if missing.any():
            yield _Part(pa.nulls(1, pa.array(by_class[0][:0]).type), missing[None])
        yield from _merged(by_class)

    return tables()


def _dense_tables(table: Table, name: str, target: Target, low: int, high: int) -> Iterator[_Part]:
    """Table of whole numbers between two that are not far apart; a missing one comes first."""
    import pyarrow as pa

    n_classes = len(target.classes or ())
    n_values = high - low + 1
    # The row before the first value is for what is missing.
    total = np.zeros((n_values + 1) * n_classes, dtype=np.int64)
    start = 0
    for numbers, there in _numbers(table, name):
        cell = np.zeros(len(there), dtype=np.intp)
        cell[there] = numbers - (low - 1)
        cell *= n_classes
        cell += target.codes[start : start + len(there)]
        total += np.bincount(cell, minlength=len(total))
        start += len(there)
    counts = total.reshape(n_values + 1, n_classes)
    present = np.flatnonzero(counts[1:].any(axis=1))
    if counts[0].any():
        yield _Part(pa.nulls(1, pa.int64()), counts[:1])
    yield _Part(pa.array(low + present), counts[1:][present])


def _range(table: Table, name: str) -> tuple[int, int]:
    """Least and greatest whole number."""
    ends = [(int(own.min()), int(own.max())) for own, _ in _numbers(table, name) if len(own)]
    return min((low for low, _ in ends), default=0), max((high for _, high in ends), default=0)


def _is_time(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_temporal(kind))


def _numbers(table: Table, name: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Numbers that are there, and the mask of them, some rows at a time."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = table.types[name]
    for batch in table.batches([name], PART):
        rows = batch.column(0)
        if pa.types.is_floating(kind):
            numbers = np.asarray(pc.cast(rows, pa.float64()).fill_null(np.nan))
            there = ~np.isnan(numbers)
            yield numbers[there] + 0.0, there  # -0.0 is 0.0
            continue
        if _is_time(kind):
            rows = rows.view(f"int{kind.bit_width}")
        elif pa.types.is_boolean(kind):
            rows = pc.cast(rows, pa.int8())
        present = pc.cast(rows.drop_null(), pa.int64())
        yield np.asarray(present), np.asarray(rows.is_valid())


def _runs(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct numbers of a sorted array and how often each occurs; `numpy.unique` may hash."""
    if not len(numbers):
        return numbers, np.zeros(0, dtype=np.int64)
    first = np.append(0, np.flatnonzero(numbers[1:] != numbers[:-1]) + 1)
    return numbers[first], np.diff(np.append(first, len(numbers)))


def _merged(by_class: list[np.ndarray]) -> Iterator[_Part]:
    """Values in order and their rows by class, from the sorted numbers of each class."""
    import pyarrow as pa

    step = max(PART // len(by_class), 1)
    cuts, _ = _runs(np.sort(np.concatenate([numbers[step::step] for numbers in by_class])))
    stops = [np.append(np.searchsorted(n, cuts, side="right"), len(n)) for n in by_class]
    for i in range(len(cuts) + 1):
        found = []
        for numbers, stop in zip(by_class, stops, strict=True):
            own = numbers[stop[i - 1] if i else 0 : stop[i]]
            found.append(_runs(own))
        values, _ = _runs(np.sort(np.concatenate([own for own, _ in found])))
        table = np.zeros((len(values), len(by_class)), dtype=np.int64)
        for k, (own, counts) in enumerate(found):
            table[np.searchsorted(values, own), k] = counts
        if len(values):
            yield _Part(pa.array(values), table)
