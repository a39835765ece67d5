"""ExchangeTable: a frame of Dask or Spark, counted where its rows are.

The first pass reads the target. The last brings the rows of a column together, or its values with
their counts where values repeat, and counts them there by the code of one machine; only profiles
come back. A column of very many rows is cut, texts by a hash, numbers into ranges of about equal
size, which a pass between the two chooses. Bins end where they would on one machine, because each
range knows how many rows lie before it.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from holdtrue.columns.bins import BinCounter, Part, rows_by_value, whole_part
from holdtrue.columns.counting import Groups, Target, column_parts, count_column
from holdtrue.columns.distinct import text_hashes
from holdtrue.columns.parts import LARGE
from holdtrue.columns.values import ORDERED, filtered, holds_numbers, one_array, value_type
from holdtrue.engine import Engine
from holdtrue.engine.table import (
    EngineTable,
    EngineTarget,
    Labels,
    Profiles,
    changed,
    rows_by_class,
)
from holdtrue.errors import InputError
from holdtrue.sums import Counts, Profile
from holdtrue.sums.group_profile import GroupProfile

__all__ = ["ExchangeTable"]

# Values (rows of a column) that one exchange moves at most, and that one bucket gets.
_MOVED = 1 << 26
_BUCKET = LARGE
# Rows that show whether most values of a column differ.
_SHOWN = 1 << 12
# Rows, of the whole table and for each range, that show where ranges of numbers should end.
_SAMPLE = 1 << 12
_SAMPLE_PER_RANGE = 16
# Number of places at which sums are added up before they come here.
_PLACES = 4


class ExchangeTable(EngineTable):
    """A frame of Dask or Spark, which the engine's one verb counts."""

    def __init__(self, engine: Engine):
        super().__init__(engine.types)
        self._engine = engine

    def select(self, columns: Sequence[str]) -> Any:
        """The frame with these columns only; nothing is computed."""
        return self._engine.select(columns)

    def sum(self, make: Callable[[Any], Any], columns: Sequence[str]) -> Any:
        """``make(table)`` of all parts, Arrow tables of these columns, added up."""
        sums = self._engine.exchange(columns, functools.partial(_placed, make), _added, _PLACES)
        if not sums:
            raise InputError("the table has no rows.")
        return _added(0, sums)

    def labels(self, columns: Sequence[str]) -> Labels:
        """Different values of some columns with their rows, as long as they are few."""
        return self.sum(Labels.of_table, columns)

    def profiles(self, kinds: Mapping[str, str], target: EngineTarget, max_bins: int) -> Profiles:
        """Profiles of columns, some at a time."""
        n_rows, names = target.n_samples, list(kinds)
        # With groups all counts of a column come here anyway.
        n_cuts = 1 if target.groups else math.ceil(n_rows / _BUCKET)
        numbers = [name for name in names if n_cuts > 1 and _has_ranges(self.types[name])]
        ends = self._range_ends(numbers, n_rows, n_cuts) if numbers else {}
        columns = [_Column(name, kinds[name], ends.get(name)) for name in names]
        n_exchanges = math.ceil(len(names) / max(1, min(_MOVED // n_rows, 32)))
        step = math.ceil(len(names) / n_exchanges)
        for start in range(0, len(names), step):
            some = columns[start : start + step]
            plan = _Exchange(some, target, n_cuts, max(1, _BUCKET // n_rows), max_bins)
            yield from self._exchange(plan)

    def _exchange(self, plan: _Exchange) -> Profiles:
        target, n_cuts = plan.target, plan.n_cuts
        roles = [target.name, *([target.groups] if target.groups else [])]
        wanted = [*roles, *(column.name for column in plan.columns)]
        buckets = self._engine.exchange(wanted, plan.split, plan.join, plan.n_buckets)
        if not buckets:
            raise changed("rows, then none")
        for j, column in enumerate(plan.columns):
            first, place = j // plan.n_together * n_cuts, j % plan.n_together
            parts = [bucket[place] for bucket in buckets[first : first + n_cuts]]
            if target.groups is not None:
                target.check(rows_by_class(parts[0].by_value.sums))
                yield parts[0]
                continue
            parts = [part for part in parts if part is not None]
            profile = sum(profile for profile, _ in parts)
            rows = rows_by_class(profile.rows, profile.repeats)
            target.check(rows + rows_by_class(profile.missing))
            bins: tuple[np.ndarray, ...] = ()
            if column.kind in ORDERED:
                counter = _added(0, [counter for _, counter in parts])
                bins = tuple(table for _, table in counter.bins())
            yield replace(profile, kind=column.kind, bins=bins)

    def _range_ends(self, names: list[str], n_rows: int, n_cuts: int) -> dict[str, np.ndarray]:
        """Where to cut columns of numbers: the last value of each range but the last."""
        share = max(_SAMPLE, _SAMPLE_PER_RANGE * n_cuts) / n_rows
        split = functools.partial(_sample, names, share)
        samples = self._engine.exchange(names, split, _stacked, 1)
        if not samples:
            raise changed("rows, then none")
        ends = {}
        for name, keys in zip(names, samples[0].T, strict=True):
            present = np.sort(keys[~np.isnan(keys)])
            places = np.arange(1, n_cuts) * len(present) // n_cuts
            ends[name] = np.unique(present[places]) if len(present) else present
        return ends


# --- sums -----------------------------------------------------------------------------------------


def _placed(make: Callable[[Any], Any], number: int, table: Any) -> list[Any]:
    pieces: list[Any] = [None] * _PLACES
    pieces[number % _PLACES] = make(table)
    return pieces


def _added(_: int, pieces: list[Any]) -> Any:
    return functools.reduce(operator.add, pieces)


# --- ranges of numbers ----------------------------------------------------------------------------


def _sample(names: list[str], share: float, _: int, table: Any) -> list[np.ndarray]:
    """`_sort_keys` of a share of the rows of a part, evenly spread, shape (n_taken, n_columns)."""
    n_taken = min(math.ceil(share * table.num_rows), table.num_rows)
    rows = ((np.arange(n_taken) + 0.5) * (table.num_rows / n_taken)).astype(int)
    columns = [_sort_keys(one_array(table.column(name).take(rows))) for name in names]
    return [np.column_stack(columns)]


def _stacked(_: int, samples: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(samples)


def _has_ranges(kind: Any) -> bool:
    """Whether values of an Arrow type, or of its dictionary, are cut into ranges."""
    kind = value_type(kind)
    return holds_numbers(kind) or pa.types.is_temporal(kind)


def _sort_keys(values: Any) -> np.ndarray:
    """Floats that never fall where numbers or dates rise; NaN where they are missing."""
    kind = values.type
    if pa.types.is_temporal(kind):
        values = values.view(f"int{kind.bit_width}")
    elif pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    return values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)


# --- counting, cutting and joining ----------------------------------------------------------------


class _Column(NamedTuple):
    """A column, how to read it, and the ends of its ranges; without them it is cut by a hash."""

    name: str
    kind: str
    ends: np.ndarray | None


class _Piece(NamedTuple):
    """Rows of a column, in a part of the table, that go to one bucket; or counts of their values.

    Where values repeat, counts are fewer. Otherwise they would cost as much as they save.
    """

    values: Any
    # Target of each row, shape (n_rows,); or class counts or moments of each value, shape
    # (n_values, width)
    table: np.ndarray
    # shape (n_cuts,): rows of the part in every range that are not missing
    sizes: np.ndarray


class _Exchange(NamedTuple):
    """Columns, and how they are distributed over buckets."""

    columns: list[_Column]
    target: EngineTarget
    n_cuts: int  # of each column
    n_together: int  # columns that share a bucket
    max_bins: int

    @property
    def n_buckets(self) -> int:
        return math.ceil(len(self.columns) / self.n_together) * self.n_cuts

    def split(self, _: int, table: Any) -> list[Any]:
        """Pieces of a part of the table by bucket; of a bucket, one for each of its columns."""
        target = self.target.of_rows(table.column(self.target.name))
        groups = None
        if self.target.groups is not None:
            groups = Groups.from_column(table.column(self.target.groups), target)
        buckets: list[list[Any]] = [[] for _ in range(self.n_buckets)]
        for j, column in enumerate(self.columns):
            rows = table.column(column.name)
            first = j // self.n_together * self.n_cuts
            if groups is not None:
                buckets[first].append(Counts.from_columns({column.name: rows}, target, groups))
                continue
            for cut, piece in enumerate(_pieces(column, rows, target, self.n_cuts)):
                buckets[first + cut].append(piece)
        return buckets

    def join(self, bucket: int, pieces: list[Any]) -> list[Any]:
        """Profiles of the columns of a bucket, each with the bins of its range if it has any."""
        number, cut = divmod(bucket, self.n_cuts)
        columns = self.columns[number * self.n_together :][: self.n_together]
        joined: list[Any] = []
        for column, of_column in zip(columns, zip(*pieces, strict=True), strict=True):
            if self.target.groups is not None:
                counts = Counts.merge(of_column)
                counted = counts.values[0], counts.pairs[0], counts.tables[0]
                joined.append(
                    GroupProfile.from_pairs(column.kind, *counted, counts.classes, self.max_bins)
                )
                continue
            joined.append(_profile_and_bins(column, of_column, self.target, cut, self.max_bins))
        return joined


def _pieces(column: _Column, rows: Any, target: Target, n_cuts: int) -> list[_Piece]:
    """Pieces of a column of a part of the table."""
    values, table = one_array(rows), target.codes
    times = None  # rows of each value, if not 1
    if not _mostly_differ(values):
        values, table = count_column(column.name, rows, target)
        times = rows_by_value(table)
        if table.dtype == np.int64:
            table = table.astype(np.min_scalar_type(table.max(initial=0)))
    present = _present(values)
    times = None if times is None else times[present]
    if n_cuts == 1:
        n_present = np.count_nonzero(present) if times is None else times.sum()
        return [_Piece(_compact(values), table, np.array([n_present]))]
    cuts = np.zeros(len(values), dtype=np.uint16 if n_cuts <= 1 << 16 else np.int64)
    if column.ends is not None:
        cuts[present] = np.searchsorted(column.ends, _sort_keys(values)[present])
    elif present.any():
        texts = filtered(values, present).cast(pa.large_binary())
        cuts[present] = (text_hashes(texts) >> np.uint64(32)) % np.uint64(n_cuts)
    sizes = np.bincount(cuts[present], times, minlength=n_cuts)
    order = np.argsort(cuts, kind="stable")  # several times faster for numbers of 16 bits
    stops = np.cumsum(np.bincount(cuts, minlength=n_cuts))
    return [
        _Piece(values.take(pa.array(places)), table[places], sizes)
        for places in np.split(order, stops[:-1])
    ]


def _mostly_differ(rows: Any) -> bool:
    """Whether a column of a part seems to have at least half as many values as rows.

    Of V values, equally frequent, n rows repeat some about ``n²/2V`` times.
    """
    shown = rows.slice(len(rows) // 2, _SHOWN)
    shown = filtered(shown, _present(shown))
    n_repeats = len(shown) - len(shown.unique())
    return 2 * n_repeats < len(shown) and n_repeats * len(rows) <= len(shown) ** 2


def _present(values: Any) -> np.ndarray:
    """Mask of the values that are not missing."""
    present = np.asarray(values.is_valid())
    if pa.types.is_floating(values.type):
        present &= ~np.isnan(values.to_numpy(zero_copy_only=False))
    return present


def _compact(values: Any) -> Any:
    """Values in memory of their own, if they are some of a longer array: all of it would move."""
    if values.get_total_buffer_size() <= 2 * values.nbytes:
        return values
    return values.take(pa.array(np.arange(len(values))))


def _profile_and_bins(
    column: _Column, pieces: Sequence[_Piece], target: EngineTarget, cut: int, max_bins: int
) -> tuple[Profile, BinCounter | None] | None:
    """Profile of a column in a bucket, and its bins; None if the bucket has no row of it."""
    counter = None
    if column.kind in ORDERED:
        sizes = np.sum([piece.sizes for piece in pieces], axis=0)
        counter = BinCounter(sizes.sum(), max_bins, sizes[:cut].sum())
    pieces = [piece for piece in pieces if len(piece.values)]
    if not pieces:
        return None

    def parts() -> Iterator[Part]:
        for part in _parts(column, pieces, target):
            if counter is not None:
                counter.add(part.table)
            yield part

    # Bins come when all ranges are together; until then the column is a category.
    return Profile.from_parts("category", parts(), 0.0, target.classes), counter


def _parts(column: _Column, pieces: list[_Piece], target: EngineTarget) -> Iterable[Part]:
    """All values of a column in a bucket with their class counts or moments."""
    counted = [piece for piece in pieces if piece.table.ndim == 2]
    rows = [piece for piece in pieces if piece.table.ndim == 1]
    if rows:
        values = pa.chunked_array([piece.values for piece in rows])
        of_rows = Target(np.concatenate([piece.table for piece in rows]), target.classes, None)
        if not counted:
            return column_parts(column.kind, column.name, values, of_rows)
        counted.append(_Piece(*count_column(column.name, values, of_rows), rows[0].sizes))
    counts = Counts.merge(
        Counts((column.name,), (column.kind,), (piece.values,), (piece.table,), target.classes)
        for piece in counted
    )
    table = counts.tables[0]
    if target.classes is not None:
        table = table.astype(np.int64, copy=False)
    return [whole_part(column.kind, counts.values[0], table)]
