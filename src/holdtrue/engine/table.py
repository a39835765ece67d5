"""EngineTable: classes, sums and profiles of a table that lives on an engine.

Three passes. The first reads the target. Where the rows are many, the second looks at the columns
of numbers, to cut them into ranges of about equal size. The third counts every part of the table
value by value, cuts the counts into buckets (texts by a hash, numbers by range) and adds up each
bucket where it lies; only profiles come back. Bins end where they would on one machine, because
each range knows how many rows lie before it.
"""

from __future__ import annotations

import functools
import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdtrue.columns.bins import BinCounter, has_bins
from holdtrue.columns.counting import Groups, Target, label_key, label_order, rows_by_value
from holdtrue.columns.distinct import distinct, text_buffers
from holdtrue.columns.parts import whole_part
from holdtrue.columns.values import (
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
_MOVED = 1 << 25
_BUCKET = 1 << 22
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
        step = max(1, min(_MOVED // max(target.n_samples, 1), 32))
        n_buckets = math.ceil(target.n_samples * min(step, len(kinds)) / _BUCKET)
        roles = [target.name, *([groups] if groups else [])]
        ranges: dict[str, _Ranges] = {}
        if groups is None and n_buckets > 1:
            numbers = [name for name, kind in kinds.items() if has_bins(kind)]
            ranges = self._ranges(numbers, target.n_samples, n_buckets)
        names = list(kinds)
        for start in range(0, len(names), step):
            columns = [
                _Column(name, kinds[name], ranges.get(name)) for name in names[start : start + step]
            ]
            split = functools.partial(_split, columns, target, groups, n_buckets)
            join = functools.partial(_join, columns, target, groups is not None, max_bins)
            wanted = list(dict.fromkeys([*roles, *names[start : start + step]]))
            buckets = self._engine.exchange(wanted, split, join, n_buckets)
            for j, column in enumerate(columns):
                parts = [bucket[j] for bucket in buckets if bucket[j] is not None]
                if not parts:
                    raise _changed("rows, then none")
                if groups is not None:
                    counts = Counts.merge(parts)
                    target.check(rows_by_class(counts.tables[0]))
                    yield column.name, counts.profiles(max_bins)[column.name]
                    continue
                profile, counter = functools.reduce(_joined_two, parts)
                rows = rows_by_class(profile.rows, profile.repeats)
                target.check(rows + rows_by_class(profile.missing))
                bins = tuple(table for _, table in counter.bins()) if counter else ()
                yield column.name, replace(profile, kind=column.kind, bins=bins)

    def _ranges(self, names: list[str], n_rows: int, n_buckets: int) -> dict[str, _Ranges]:
        """Where to cut columns of numbers, and the rows of each range."""
        if not names:
            return {}
        share = max(_SAMPLE, _SAMPLE_PER_RANGE * n_buckets) / n_rows
        samples = self.sum(functools.partial(_sample, names, share), names).arrays
        ends = {}
        for name in names:
            keys = np.sort(samples[name])
            places = np.arange(1, n_buckets) * len(keys) // n_buckets
            ends[name] = np.unique(keys[places]) if len(keys) else keys
        rows = self.sum(functools.partial(_range_rows, ends), names).arrays
        return {name: _Ranges(ends[name], rows[name]) for name in names}


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


class _Ranges(NamedTuple):
    """Last value of each range but the last, and the rows of each range."""

    ends: np.ndarray
    rows: np.ndarray


class _ByColumn(NamedTuple):
    """An array for each column; sums put them one after the other, or add them."""

    arrays: dict[str, np.ndarray]
    add: Callable[[list[np.ndarray]], np.ndarray]

    def __add__(self, other: Any) -> _ByColumn:
        both = {name: self.add([a, other.arrays[name]]) for name, a in self.arrays.items()}
        return _ByColumn(both, self.add)


def _sample(names: list[str], share: float, table: Any) -> _ByColumn:
    """Keys of a share of the rows of a part, evenly spread."""
    n_taken = min(math.ceil(share * table.num_rows), table.num_rows)
    rows = ((np.arange(n_taken) + 0.5) * (table.num_rows / n_taken)).astype(int)
    keys = {name: _present_keys(table.column(name).take(rows)) for name in names}
    return _ByColumn(keys, np.concatenate)


def _range_rows(ends: dict[str, np.ndarray], table: Any) -> _ByColumn:
    """Rows of a part in each range."""
    rows = {}
    for name, last in ends.items():
        places = np.searchsorted(last, _present_keys(table.column(name)))
        rows[name] = np.bincount(places, minlength=len(last) + 1)
    return _ByColumn(rows, functools.partial(np.sum, axis=0))


def _present_keys(column: Any) -> np.ndarray:
    """Numbers that sort as the values of a column that are not missing."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    keys = _sort_keys(column.drop_null())
    return keys[~np.isnan(keys)] if keys.dtype.kind == "f" else keys


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
    """A column, how to read it, and its ranges; without them it is cut by a hash."""

    name: str
    kind: str
    ranges: _Ranges | None


def _split(
    columns: list[_Column],
    wanted: EngineTarget,
    groups: str | None,
    n_buckets: int,
    _: int,
    table: Any,
) -> list[Any]:
    """Counts of a part of the table, column by column, cut into buckets."""
    target = wanted.of_rows(table.column(wanted.name))
    by_group = None if groups is None else Groups.from_column(table.column(groups), target)
    cut = []
    for column in columns:
        counts = Counts.from_columns({column.name: table.column(column.name)}, target, by_group)
        cut.append(_cut(counts, _buckets(counts.values[0], column.ranges, n_buckets), n_buckets))
    return [list(pieces) for pieces in zip(*cut, strict=True)]


def _buckets(values: Any, ranges: _Ranges | None, n_buckets: int) -> np.ndarray:
    """Bucket of each value; the missing one is in the first."""
    # NumPy sorts numbers of 16 bits several times faster.
    buckets = np.zeros(len(values), dtype=np.uint16 if n_buckets <= 1 << 16 else np.int64)
    if n_buckets == 1:
        return buckets
    present, kept = np.asarray(values.is_valid()), values.drop_null()
    if ranges is not None:
        buckets[present] = np.searchsorted(ranges.ends, _sort_keys(kept))
    else:
        buckets[present] = (_hashes(kept) >> np.uint64(32)) % np.uint64(n_buckets)
    return buckets


def _cut(counts: Counts, buckets: np.ndarray, n_buckets: int) -> list[Counts | None]:
    """Counts of one column in buckets by value, in as few bytes as hold them."""
    values, table = counts.values[0], counts.tables[0]
    pairs = counts.pairs[0] if counts.pairs else None
    if pairs is not None:
        buckets = buckets[pairs[:, 0]]
    if table.dtype == np.int64:
        table = table.astype(np.min_scalar_type(table.max(initial=0)))
    order = np.argsort(buckets, kind="stable")
    ends = np.cumsum(np.bincount(buckets, minlength=n_buckets))
    pieces: list[Counts | None] = []
    for rows in np.split(order, ends[:-1]):
        if not len(rows):
            pieces.append(None)
        elif pairs is None:
            pieces.append(replace(counts, values=(values.take(rows),), tables=(table[rows],)))
        else:
            used, value = np.unique(pairs[rows, 0], return_inverse=True)
            used_groups, group = np.unique(pairs[rows, 1], return_inverse=True)
            piece = replace(
                counts,
                values=(values.take(used),),
                tables=(table[rows],),
                groups=counts.groups.take(used_groups),
                pairs=(np.stack([value, group], axis=1),),
            )
            pieces.append(piece)
    return pieces


def _join(
    columns: list[_Column],
    target: EngineTarget,
    has_groups: bool,
    max_bins: int,
    bucket: int,
    pieces: list[Any],
) -> list[Any]:
    """Profiles and bins of a bucket, column by column; with groups, its counts."""
    joined: list[Any] = []
    for j, column in enumerate(columns):
        parts = [piece[j] for piece in pieces if piece[j] is not None]
        if not parts:
            joined.append(None)
            continue
        counts = Counts.merge(parts)
        if target.classes is not None:
            counts = replace(counts, tables=(counts.tables[0].astype(np.int64, copy=False),))
        if not has_groups:
            joined.append(_profile_and_bins(counts, column, bucket, max_bins))
        else:
            joined.append(counts)
    return joined


def _profile_and_bins(
    counts: Counts, column: _Column, bucket: int, max_bins: int
) -> tuple[Profile, BinCounter | None]:
    table, ranges, counter = counts.tables[0], column.ranges, None
    part = whole_part(column.kind, counts.values[0], table)
    if has_bins(column.kind):
        n_rows = float(rows_by_value(part.table).sum())
        if ranges is None:
            counter = BinCounter(n_rows, max_bins)
        else:
            if n_rows != ranges.rows[bucket]:
                raise _changed(f"{ranges.rows[bucket]:,} rows of a range, then {n_rows:,.0f}")
            before = float(ranges.rows[:bucket].sum())
            counter = BinCounter(float(ranges.rows.sum()), max_bins, before)
        counter.add(part.table)
    n_samples = float(rows_by_value(table).sum())
    # Bins come when all parts are together; until then the column is a category.
    return Profile.from_parts("category", [part], n_samples, counts.classes), counter


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
        from holdtrue.columns.key_loops import hash_texts, words_of

        text = pc.cast(values, pa.large_binary() if pa.types.is_binary(kind) else pa.large_string())
        offsets, bytes_, _ = text_buffers(text)
        hashes = np.empty(len(text), dtype=np.uint64)
        padded = np.append(bytes_[: offsets[-1]], np.zeros(8, dtype=np.uint8))
        hash_texts(offsets, words_of(padded), hashes)
        return hashes
    keys = _sort_keys(values)
    if keys.dtype.kind == "f":
        keys = keys.view(np.uint64)
    keys = keys.astype(np.uint64) * _MIX
    return (keys ^ (keys >> np.uint64(29))) * _MIX
