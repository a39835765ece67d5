"""EngineTable: classes, sums and profiles of a table that lives on an engine.

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
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from holdtrue.columns.bins import BinCounter, Part, rows_by_value, whole_part
from holdtrue.columns.counting import Groups, Target, count_column, label_key, label_order
from holdtrue.columns.distinct import distinct, text_hashes
from holdtrue.columns.parts import LARGE, column_parts
from holdtrue.columns.values import (
    ORDERED,
    filtered,
    holds_numbers,
    is_plain,
    python_values,
    refused,
    type_kind,
)
from holdtrue.engine import Engine
from holdtrue.errors import InputError, InputTypeError, did_you_mean
from holdtrue.sums import Counts, Profile
from holdtrue.sums.group_profile import GroupProfile
from holdtrue.targets import MAX_CLASSES, TargetKind, check_class_count, target_kind

__all__ = ["EngineTable", "EngineTarget", "ExchangeTable", "Labels", "rows_by_class"]

# Values (rows of a column) that one exchange moves at most, and that one bucket gets.
_MOVED = 1 << 26
_BUCKET = LARGE
# Rows that show whether most values of a column differ.
_SHOWN = 1 << 12
# Rows, of the whole table and for each range, that show where ranges of numbers should end.
_SAMPLE = 1 << 12
_SAMPLE_PER_RANGE = 16
# Sums are added up in so many places before they come here.
_PLACES = 4
# An odd number whose multiples have mixed bits.
_MIX = np.uint64(0x9E3779B97F4A7C15)


class EngineTarget(NamedTuple):
    """The target's column, after the first pass."""

    name: str
    classes: tuple[Any, ...] | None  # in order; None for a numeric target
    rows: np.ndarray  # by class; of a numeric target, all rows

    @property
    def n_samples(self) -> int:
        """Rows of the table."""
        return int(self.rows.sum())

    def of_rows(self, column: Any) -> Target:
        """The target of some rows."""
        if self.classes is None:
            return Target.by_rule(column, "numeric")
        values, codes = distinct(self.name, column)
        places = {label_key(label): k for k, label in enumerate(self.classes)}
        label_places = [places.get(label_key(label)) for label in python_values(values)]
        used = np.bincount(codes, minlength=len(values)) > 0
        if any(place is None for place, once in zip(label_places, used, strict=True) if once):
            raise _changed("a class is new")
        place = np.array([place or 0 for place in label_places], dtype=np.uint8)
        return Target(place[codes], self.classes, None)

    def check(self, rows: np.ndarray) -> None:
        """Refuse a pass that has met other rows than the first."""
        if not np.array_equal(rows, self.rows):
            raise _changed(f"{self.n_samples:,} rows, then {int(rows.sum()):,}")


class EngineTable(ABC):
    """A table that lives elsewhere, as the families see it."""

    def __init__(self, types: dict[str, Any]):
        self.types = types  # of pyarrow
        self.names = list(types)
        # How each column is read, as in `holdtrue.tables.Table`.
        self.kinds = {name: type_kind(kind) for name, kind in self.types.items()}

    def check_name(self, name: str) -> None:
        """Refuse a column that the table does not have."""
        if name not in self.types:
            raise InputError(f"no column {name!r}." + did_you_mean(name, self.names))

    def check_names(self, **named: Any) -> None:
        """Refuse roles, such as target="left", that name no column, and nested columns."""
        for role, name in named.items():
            if not isinstance(name, str):
                raise InputTypeError(
                    f"{role} must be the name of a column, because the rows live on an engine. "
                    f"Got {type(name).__name__}."
                )
            self.check_name(name)
        if len(set(named.values())) < len(named):
            raise InputError(
                f"{' and '.join(named)} must name different columns. Got {name!r} for both."
            )
        for name, kind in self.types.items():
            if not is_plain(kind):
                raise refused(name, str(kind))

    @abstractmethod
    def select(self, columns: Sequence[str]) -> Any:
        """The frame with these columns only; nothing is computed."""

    @abstractmethod
    def sum(self, make: Callable[[Any], Any], columns: Sequence[str]) -> Any:
        """``make(table)`` of all parts, Arrow tables of these columns, added up."""

    @abstractmethod
    def labels(self, columns: Sequence[str]) -> Labels:
        """Different values of some columns with their rows."""

    @abstractmethod
    def profiles(
        self,
        kinds: Mapping[str, str],
        target: EngineTarget,
        groups: str | None = None,
        max_bins: int = 64,
    ) -> Iterator[tuple[str, Profile | GroupProfile]]:
        """Profiles of columns.

        Parameters
        ----------
        kinds : mapping from name to kind
            The columns, and how to read them.
        target : EngineTarget
        groups : str, optional
            Column of the groups, of which whole ones are left out.
        max_bins : int
        """

    def target(self, name: str, target_type: str, groups: str | None = None) -> EngineTarget:
        """The first pass: the target's classes, or that it is a number; groups are checked too.

        Parameters
        ----------
        name : str
        target_type : {"auto", "classes", "numeric"}
        groups : str, optional
            A column that must have no missing value, and two different ones.
        """
        seen = self.labels([name, *([groups] if groups else [])])
        labels = seen.columns[name]
        if groups is not None:
            _refuse_missing("groups", seen.columns[groups], seen.n_rows)
            if len(seen.columns[groups]) < 2:
                raise InputError(
                    "groups must name at least 2 groups, so that one can be left out. Got 1, "
                    f"{next(iter(seen.columns[groups]))[1]!r} in every row. Leave groups out if "
                    "new data are new rows."
                )
        many, is_numeric = len(labels) > MAX_CLASSES, target_type == "numeric"
        if target_type == "auto" and holds_numbers(self.types[name]):
            present = {label: rows for (_, label), rows in labels.items() if label is not None}
            values, rows = pa.array(list(present), self.types[name]), np.array([*present.values()])
            is_numeric = many or target_kind(values, "auto", rows).is_numeric
        _refuse_missing("the target", labels, seen.n_rows)
        if is_numeric:
            return EngineTarget(name, None, np.array([seen.n_rows]))
        if many:
            check_class_count(len(labels))
        classes = [label for _, label in labels]
        classes = [classes[i] for i in label_order(classes)]
        return EngineTarget(name, tuple(classes), np.array([labels[label_key(c)] for c in classes]))

    def missing(self, names: Sequence[str]) -> tuple[dict[str, int], int]:
        """Rows without a value in each of some columns, and all rows."""
        seen = self.labels(names)
        return {name: seen.columns[name].get(label_key(None), 0) for name in names}, seen.n_rows

    def target_kind(self, name: str, target_type: str) -> TargetKind:
        """Whether the target is read as classes or as a number."""
        target = self.target(name, target_type)
        is_decided = target_type != "auto" or self.kinds[name] == "category"
        return TargetKind(target.classes is None, len(target.classes or ()), is_decided)


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

    def profiles(
        self,
        kinds: Mapping[str, str],
        target: EngineTarget,
        groups: str | None = None,
        max_bins: int = 64,
    ) -> Iterator[tuple[str, Profile | GroupProfile]]:
        """Profiles of columns, some at a time."""
        n_rows, names = target.n_samples, list(kinds)
        # With groups all counts of a column come here anyway.
        n_cuts = 1 if groups else math.ceil(n_rows / _BUCKET)
        numbers = [name for name in names if n_cuts > 1 and kinds[name] in ORDERED]
        ends = self._range_ends(numbers, n_rows, n_cuts) if numbers else {}
        columns = [_Column(name, kinds[name], ends.get(name)) for name in names]
        n_exchanges = math.ceil(len(names) / max(1, min(_MOVED // n_rows, 32)))
        step = math.ceil(len(names) / n_exchanges)
        for start in range(0, len(names), step):
            some = columns[start : start + step]
            yield from self._exchange(
                _Exchange(some, target, groups, n_cuts, max(1, _BUCKET // n_rows), max_bins)
            )

    def _exchange(self, plan: _Exchange) -> Iterator[tuple[str, Profile | GroupProfile]]:
        target, n_cuts = plan.target, plan.n_cuts
        roles = [target.name, *([plan.groups] if plan.groups else [])]
        wanted = list(dict.fromkeys([*roles, *(column.name for column in plan.columns)]))
        buckets = self._engine.exchange(wanted, plan.split, plan.join, plan.n_buckets)
        if not buckets:
            raise _changed("rows, then none")
        for j, column in enumerate(plan.columns):
            first, place = j // plan.n_together * n_cuts, j % plan.n_together
            parts = [bucket[place] for bucket in buckets[first : first + n_cuts]]
            if plan.groups is not None:
                target.check(rows_by_class(parts[0].by_value.sums))
                yield column.name, parts[0]
                continue
            profile, counter = functools.reduce(_joined_two, filter(None, parts))
            rows = rows_by_class(profile.rows, profile.repeats)
            target.check(rows + rows_by_class(profile.missing))
            bins = tuple(table for _, table in counter.bins()) if counter else ()
            yield column.name, replace(profile, kind=column.kind, bins=bins)

    def _range_ends(self, names: list[str], n_rows: int, n_cuts: int) -> dict[str, np.ndarray]:
        """Where to cut columns of numbers: the last value of each range but the last."""
        share = max(_SAMPLE, _SAMPLE_PER_RANGE * n_cuts) / n_rows
        samples = self.sum(functools.partial(_sample, names, share), names).arrays
        ends = {}
        for name in names:
            keys = np.sort(samples[name])
            places = np.arange(1, n_cuts) * len(keys) // n_cuts
            ends[name] = np.unique(keys[places]) if len(keys) else keys
        return ends


# --- the target -----------------------------------------------------------------------------------


class Labels(NamedTuple):
    """Different values of some columns with their rows, as long as they are few."""

    columns: dict[str, dict[Any, int]]
    n_rows: int

    @classmethod
    def of_table(cls, table: Any) -> Labels:
        """Labels of the columns of an Arrow table."""
        columns = {}
        for name in table.column_names:
            values, codes = distinct(name, table.column(name))
            rows = np.bincount(codes, minlength=len(values))
            used = np.flatnonzero(rows)
            few = used[: MAX_CLASSES + 2]
            labels = zip(python_values(values.take(few)), rows[few].tolist(), strict=True)
            columns[name] = {label_key(label): n_rows for label, n_rows in labels}
            is_null = np.asarray(values.is_null())
            if rows[is_null].sum():
                columns[name][label_key(None)] = int(rows[is_null].sum())
        return cls(columns, table.num_rows)

    def __add__(self, other: Any) -> Labels:
        columns = {}
        for name, labels in self.columns.items():
            both = dict(labels)
            for key, n_rows in other.columns[name].items():
                if key in both or key == label_key(None) or len(both) <= MAX_CLASSES + 1:
                    both[key] = both.get(key, 0) + n_rows
            columns[name] = both
        return Labels(columns, self.n_rows + other.n_rows)


def _refuse_missing(who: str, labels: dict[Any, int], n_rows: int) -> None:
    n_missing = labels.get(label_key(None), 0)
    if n_missing:
        raise InputError(
            f"{who} must not be missing. Got {n_missing:,} missing in {n_rows:,} rows. Leave those "
            "rows out with dropna."
        )


def _changed(how: str) -> InputError:
    return InputError(
        f"the table changed between passes ({how}). Write it to files or persist it, so that every "
        "pass reads the same rows."
    )


# --- sums -----------------------------------------------------------------------------------------


def _placed(make: Callable[[Any], Any], number: int, table: Any) -> list[Any]:
    pieces: list[Any] = [None] * _PLACES
    pieces[number % _PLACES] = make(table)
    return pieces


def _added(_: int, pieces: list[Any]) -> Any:
    return functools.reduce(operator.add, pieces)


# --- ranges of numbers ----------------------------------------------------------------------------


class _Sample(NamedTuple):
    """Some values of each column, as numbers that sort as they do."""

    arrays: dict[str, np.ndarray]

    def __add__(self, other: Any) -> _Sample:
        return _Sample(
            {name: np.append(keys, other.arrays[name]) for name, keys in self.arrays.items()}
        )


def _sample(names: list[str], share: float, table: Any) -> _Sample:
    """A share of the rows of a part, evenly spread."""
    n_taken = min(math.ceil(share * table.num_rows), table.num_rows)
    rows = ((np.arange(n_taken) + 0.5) * (table.num_rows / n_taken)).astype(int)
    taken = {name: _one_array(table.column(name).take(rows)) for name in names}
    present = {name: filtered(values, _present(values)) for name, values in taken.items()}
    return _Sample({name: _sort_keys(values) for name, values in present.items()})


def _one_array(column: Any) -> Any:
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _present(values: Any) -> np.ndarray:
    """Mask of the values that are not missing."""
    present = np.asarray(values.is_valid())
    if pa.types.is_floating(values.type):
        present &= ~np.isnan(values.to_numpy(zero_copy_only=False))
    return present


def _sort_keys(values: Any) -> np.ndarray:
    """Numbers that sort as values do, none of which is missing."""
    kind = values.type
    if pa.types.is_decimal(kind):
        keys = np.empty(len(values), dtype=object)
        keys[:] = values.to_pylist()
        return keys
    if pa.types.is_temporal(kind):
        values = values.view(f"int{kind.bit_width}")
    keys = values.to_numpy(zero_copy_only=False)
    return keys.astype(np.float64) + 0.0 if keys.dtype.kind == "f" else keys  # -0.0 is 0.0


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
    groups: str | None
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
        if self.groups is not None:
            groups = Groups.from_column(table.column(self.groups), target)
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
            if self.groups is not None:
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
    values, table = _one_array(rows), target.codes
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
    keys = filtered(values, present)
    cuts = np.zeros(len(values), dtype=np.uint16 if n_cuts <= 1 << 16 else np.int64)
    if column.ends is None:
        cuts[present] = (_hashes(keys) >> np.uint64(32)) % np.uint64(n_cuts)
    else:
        cuts[present] = np.searchsorted(column.ends, _sort_keys(keys))
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


def _joined_two(a: Any, b: Any) -> Any:
    return a[0] + b[0], None if a[1] is None else a[1] + b[1]


def rows_by_class(table: np.ndarray, repeats: np.ndarray | int = 1) -> np.ndarray:
    """Rows by class of a table of counts; of one of moments, all rows."""
    table = table[:, :1] if table.dtype == np.float64 else table
    return (table.T * repeats).sum(axis=1)


def _hashes(values: Any) -> np.ndarray:
    """A whole number of 64 bits for each value, the same on every machine; none is missing."""
    kind = values.type
    if not len(values):
        return np.zeros(0, dtype=np.uint64)
    if pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    elif pa.types.is_temporal(kind):
        values = values.view(f"int{kind.bit_width}")
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        text = pa.large_binary() if pa.types.is_binary(kind) else pa.large_string()
        return text_hashes(values.cast(text))
    keys = _sort_keys(values)
    if keys.dtype.kind == "f":
        keys = keys.view(np.uint64)
    keys = keys.astype(np.uint64) * _MIX
    return (keys ^ (keys >> np.uint64(29))) * _MIX
