"""Counts: for every value of every column, its rows by class; they add."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Number
from typing import Any

import numpy as np

from holdtrue.columns.bins import N_MOMENTS, present_values, whole_part
from holdtrue.columns.counting import (
    Groups,
    Target,
    count_column,
    count_groups,
    distinct_keys,
    label_key,
    label_order,
    present_pairs,
)
from holdtrue.columns.distinct import distinct, joined
from holdtrue.columns.values import KINDS, column_kind, columns_of, python_values
from holdtrue.errors import InputError, did_you_mean, shown, speaks
from holdtrue.sums.group_profile import GroupProfile, sums_by_value
from holdtrue.sums.packing import (
    damaged,
    labels_from_json,
    labels_to_json,
    pack,
    refuses_damaged,
    unpack,
)
from holdtrue.sums.profile import Profile
from holdtrue.targets import check_class_count

__all__ = ["Counts"]


@dataclass(frozen=True, eq=False)
class Counts:
    """For every value of every column, how often each class comes with it.

    ``a + b`` gives the counts of the rows of both; neither is changed, and `sum` adds a list of
    them. With classes the sums are whole numbers and add exactly. With a numeric target each
    value keeps its number of rows and the mean, variance and higher moments of the target about
    that mean, merged by the formulas of Chan, Golub & LeVeque (1983) and Pébay (2008), so that
    parts lose no digits.

    Build one with `from_arrays`, `from_frame` or `from_batches`.

    Parameters
    ----------
    names : tuple of str
        The columns.
    kinds : tuple of str
        How each column's values are read: ``"category"``, ``"integer"``, ``"number"`` (dates
        too), or ``"empty"`` where all are missing.
    values : tuple of pyarrow.Array or ndarray of object
        Distinct values of each column. They keep their type: 1, "1" and True are three values,
        1 and 1.0 are one; missing (None, NaN, null) is a value of its own.
    tables : tuple of ndarray of shape (n_values, n_classes) or (n_values, 5)
        Rows of each value by class; or, with a numeric target, their number, the target's mean
        and its second, third and fourth moment ``Σ (y - mean)^k`` about it.
    classes : tuple or None
        The classes in order; None with a numeric target.
    groups : pyarrow.Array or ndarray of object, optional
        The different groups of the rows: patients, sites, users.
    pairs : tuple of ndarray of int, shape (n_pairs, 2), with groups only
        For each row of a column's table the index of its value and of its group.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([["red"], ["blue"], ["red"], [None]], dtype=object)
    >>> counts = Counts.from_arrays(X, np.array([1, 0, 0, 1]), names=["colour"])
    >>> counts.column("colour")
    {'red': [1, 1], 'blue': [1, 0], None: [0, 1]}
    >>> (counts + counts).n_samples
    8
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    values: tuple[Any, ...]
    tables: tuple[np.ndarray, ...]
    classes: tuple[Any, ...] | None
    groups: Any = None
    pairs: tuple[np.ndarray, ...] = ()

    @speaks
    def __post_init__(self) -> None:
        n_columns = len(self.names)
        if not set(self.kinds) <= set(KINDS):
            raise InputError(f"kinds must be among {', '.join(KINDS)}. Got {list(self.kinds)}.")
        per_column = ("kinds", "values", "tables") + ("pairs",) * (self.groups is not None)
        for name in per_column:
            if len(getattr(self, name)) != n_columns:
                raise InputError(
                    f"{name} must have one entry per column, {n_columns}. "
                    f"Got {len(getattr(self, name))}."
                )
        if len(set(self.names)) != n_columns:
            raise InputError(f"names must be distinct. Got {list(self.names)}.")
        if len(set(map(label_key, self.classes or ()))) != len(self.classes or ()):
            raise InputError(f"classes must be distinct. Got {list(self.classes or ())}.")
        width = N_MOMENTS if self.classes is None else len(self.classes)
        totals = set()
        for j, (name, values, table) in enumerate(
            zip(self.names, self.values, self.tables, strict=True)
        ):
            n_rows, rows_are = len(values), "values"
            if self.groups is not None:
                n_rows, rows_are = len(self.pairs[j]), "values and groups"
                _check_pairs(name, self.pairs[j], len(values), len(self.groups))
            if np.shape(table) != (n_rows, width):
                raise InputError(
                    f"the table of column {name!r} must have shape "
                    f"({n_rows}, {width}), {rows_are} by classes. Got {np.shape(table)}."
                )
            rows = table if self.classes is not None else table[:, 0]
            if len(table) and rows.min() < 0:
                raise InputError(f"counts must not be negative. Got one in {name!r}.")
            totals.add(int(rows.sum()))
        if len(totals) > 1:
            raise InputError(
                "every column must count the same rows. "
                f"Got totals of {', '.join(map(str, sorted(totals)))} rows."
            )

    @property
    def n_samples(self) -> int:
        """Number of rows counted; with weights, their sum."""
        if not self.tables:
            return 0
        table = self.tables[0]
        return int(table.sum() if self.classes is not None else table[:, 0].sum())

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.names)

    @speaks
    def column(self, name: str) -> dict[Any, list[float]]:
        """Table of one column as a dict from value to row, for reading.

        Where a column holds both True and 1 a dict takes them for one: use `values` and `tables`.
        """
        if name not in self.names:
            raise InputError(f"no column {name!r}." + did_you_mean(name, self.names))
        j = self.names.index(name)
        table = self.tables[j]
        if self.groups is not None:
            table = sums_by_value(self.pairs[j][:, 0], len(self.values[j]), table)
        return dict(zip(python_values(self.values[j]), table.tolist(), strict=True))

    @classmethod
    @speaks
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        *,
        names: Iterable[str] | None = None,
        numeric_target: bool = False,
        groups: Any = None,
        sample_weight: Any = None,
    ) -> Counts:
        """Counts of the rows of X, an array or a data frame, with the target apart.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features), or data frame
        y : array-like of shape (n_samples,)
        names : iterable of str, optional
            Of the columns; a frame has its own, an array x0, x1, ...
        numeric_target : bool
            Whether y is a number to predict rather than a class.
        groups : array-like of shape (n_samples,), optional
            The group of each row, where new data are new groups.
        sample_weight : array-like of shape (n_samples,), optional
            Whole numbers: weights are repetitions.
        """
        columns = columns_of(X)
        if names is not None:
            columns = dict(zip(map(str, names), columns.values(), strict=True))
        target = Target.from_column(y, numeric_target, sample_weight)
        subjects = None if groups is None else Groups.from_column(groups, target)
        return cls.from_columns(columns, target, subjects)

    @classmethod
    @speaks
    def from_frame(
        cls,
        frame: Any,
        target: str,
        *,
        numeric_target: bool = False,
        groups: Any = None,
        sample_weight: Any = None,
    ) -> Counts:
        """Counts of a data frame, Arrow table or record batch that holds its target.

        Parameters
        ----------
        frame : data frame (pandas, Polars, Arrow) or pyarrow.RecordBatch
        target : str
            Name of the target's column.
        groups : str or array-like of shape (n_samples,), optional
            The group of each row, or the name of its column.
        numeric_target, sample_weight
            As in `from_arrays`.
        """
        columns = columns_of(frame)
        for name in [target] + [groups] * isinstance(groups, str):
            if name not in columns:
                raise InputError(f"no column {name!r}." + did_you_mean(name, columns))
        y = Target.from_column(columns.pop(target), numeric_target, sample_weight)
        subjects = None
        if groups is not None:
            given = columns.pop(groups) if isinstance(groups, str) else groups
            subjects = Groups.from_column(given, y)
        return cls.from_columns(columns, y, subjects)

    @classmethod
    def from_columns(
        cls, columns: dict[str, Any], target: Target, groups: Groups | None = None
    ) -> Counts:
        """Counts of columns as `holdtrue.columns` reads them."""
        kinds = tuple(column_kind(column) for column in columns.values())
        if groups is None:
            counted = [count_column(name, column, target) for name, column in columns.items()]
            values, tables = zip(*counted, strict=True) if counted else ((), ())
            return cls(tuple(columns), kinds, values, tables, target.classes)
        paired = [
            _in_order(*count_groups(name, column, target, groups))
            for name, column in columns.items()
        ]
        values, pairs, tables = zip(*paired, strict=True) if paired else ((), (), ())
        return cls(tuple(columns), kinds, values, tables, target.classes, groups.labels, pairs)

    @classmethod
    @speaks
    def from_batches(
        cls,
        batches: Iterable[Any],
        target: str,
        *,
        numeric_target: bool = False,
        groups: str | None = None,
    ) -> Counts:
        """Counts of frames or record batches one after the other, in the memory of the counts.

        Parameters
        ----------
        batches : iterable of data frames or record batches
            With the same columns, such as ``pyarrow.parquet.ParquetFile(path).iter_batches()``.
            Batches without rows are passed over.
        target, numeric_target, groups
            As in `from_frame`; groups by the name of their column.
        """
        total: list[Counts] = []
        waiting: list[Counts] = []
        for batch in batches:
            if hasattr(batch, "__len__") and not len(batch):
                continue
            waiting.append(
                cls.from_frame(batch, target, numeric_target=numeric_target, groups=groups)
            )
            # Merged when they have grown as large as the total, so that the work stays in
            # proportion to the rows.
            if sum(map(_size, waiting)) >= sum(map(_size, total)):
                total, waiting = [cls.merge([*total, *waiting])], []
        if not total:
            raise InputError("expected at least one batch with rows. Got none.")
        return cls.merge([*total, *waiting])

    @classmethod
    @speaks
    def merge(cls, parts: Iterable[Counts]) -> Counts:
        """Counts of the rows of all parts, faster than adding them one by one.

        Parameters
        ----------
        parts : iterable of Counts
            At least one; none of them is changed.
        """
        parts = list(parts)
        if not parts:
            raise InputError("expected at least one part. Got none.")
        return parts[0] if len(parts) == 1 else _merged(parts)

    @speaks
    def __add__(self, other: Counts) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        return _merged([self, other])

    def __radd__(self, other: int) -> Counts:
        return self if other == 0 else NotImplemented  # sum() starts with 0

    @speaks
    def profiles(self, max_bins: int = 64) -> dict[str, Profile | GroupProfile]:
        """Profile of every column, by name; with groups, a `GroupProfile`.

        Parameters
        ----------
        max_bins : int
            Most bins of a column of numbers.
        """
        columns = zip(self.names, self.kinds, self.values, self.tables, strict=True)
        if self.groups is not None:
            return {
                name: GroupProfile.from_pairs(
                    kind, values, pairs, table, self.classes, max_bins, keep_values=True
                )
                for (name, kind, values, table), pairs in zip(columns, self.pairs, strict=True)
            }
        return {
            name: Profile.from_parts(
                kind,
                [whole_part(kind, values, table)],
                self.n_samples,
                self.classes,
                max_bins,
                keep_values=True,
            )
            for name, kind, values, table in columns
        }

    @speaks
    def to_bytes(self) -> bytes:
        """The counts as bytes (Arrow IPC); `from_bytes` gives back equal ones."""
        arrays: dict[str, Any] = {f"table{j}": table for j, table in enumerate(self.tables)}
        arrays |= {f"pairs{j}": pairs for j, pairs in enumerate(self.pairs)}
        stored = {f"values{j}": values for j, values in enumerate(self.values)}
        if self.groups is not None:
            stored["groups"] = self.groups
        objects = {
            name: labels_to_json(values.tolist())
            for name, values in stored.items()
            if isinstance(values, np.ndarray)
        }
        arrays |= {name: values for name, values in stored.items() if name not in objects}
        head = {
            "names": list(self.names),
            "kinds": list(self.kinds),
            "classes": None if self.classes is None else labels_to_json(self.classes),
            "objects": objects,
        }
        return pack("Counts", head, arrays)

    @classmethod
    @speaks
    def from_bytes(cls, data: bytes) -> Counts:
        """Counts written by `to_bytes`. Anything else is refused with a `ValueError`."""
        head, arrays = unpack("Counts", data)
        with refuses_damaged("Counts"):
            names, classes = [str(name) for name in head["names"]], head["classes"]
            objects = head["objects"]
            values = [_stored(f"values{j}", arrays, objects) for j in range(len(names))]
            has_groups = "groups" in arrays or "groups" in objects
            groups = _stored("groups", arrays, objects) if has_groups else None
            pairs = [arrays[f"pairs{j}"] for j in range(len(names))] if has_groups else []
            dtype = np.float64 if classes is None else np.int64
            tables = [arrays[f"table{j}"] for j in range(len(names))]
            if any(table.dtype != dtype or not np.isfinite(table).all() for table in tables):
                raise damaged("Counts")
            return cls(
                tuple(names),
                tuple(head["kinds"]),
                tuple(values),
                tuple(tables),
                None if classes is None else tuple(labels_from_json(classes)),
                groups,
                tuple(pairs),
            )


def _stored(name: str, arrays: dict[str, Any], objects: dict[str, Any]) -> Any:
    """Distinct values from bytes, in Arrow's types or Python's."""
    column = arrays.get(name)
    if column is None:
        column = np.empty(len(objects[name]), dtype=object)
        column[:] = labels_from_json(objects[name])
    if np.bincount(distinct(name, column).codes).max(initial=0) > 1:
        raise damaged("Counts")
    return column


def _in_order(
    values: Any, pairs: np.ndarray, table: np.ndarray
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Counts with their pairs in the order of values and groups."""
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    dtype = np.promote_types(table.dtype, np.int64)  # counts are int64, moments float64
    return values, pairs[order].astype(np.int64), table[order].astype(dtype)


def _check_pairs(name: str, pairs: np.ndarray, n_values: int, n_groups: int) -> None:
    """Refuse pairs that name no value or no group, or one pair twice."""
    good = pairs.ndim == 2 and pairs.shape[1:] == (2,) and pairs.dtype.kind in "iu"
    if good and len(pairs):
        keys = pairs[:, 0] * n_groups + pairs[:, 1]
        inside = (pairs >= 0) & (pairs < [n_values, n_groups])
        good = bool(inside.all()) and bool((keys[1:] > keys[:-1]).all())
    if not good:
        raise InputError(
            f"the pairs of column {name!r} must name a value and a group each, in order."
        )


def _merged(parts: list[Counts]) -> Counts:
    first = parts[0]
    for part in parts[1:]:
        if part.names != first.names:
            missing = [name for name in first.names if name not in part.names]
            new = [name for name in part.names if name not in first.names]
            raise InputError(
                "counts of tables with different columns do not add. "
                f"Missing: {missing}. New: {new}. Order counts too."
            )
        if (part.classes is None) != (first.classes is None):
            raise InputError(
                "counts of classes and sums of a numeric target do not add. "
                "Build all parts with the same numeric_target."
            )
        if (part.groups is None) != (first.groups is None):
            raise InputError(
                "counts with groups and counts without do not add. Build all parts with groups."
            )
        _check_same_type("the target's classes", first.classes or (), part.classes or ())
        if first.groups is not None:
            _check_same_type("groups", *(python_values(p.groups[:1]) for p in (first, part)))
    classes = None if first.classes is None else _all_classes(parts)
    check_class_count(len(classes or ()))
    groups: Any = None
    group_codes: list[np.ndarray] = []
    if first.groups is not None:
        groups, group_codes = _joined_parts("groups", [part.groups for part in parts])
    merged = []
    for j, name in enumerate(first.names):
        values, codes = _joined_parts(name, [part.values[j] for part in parts])
        pairs = np.zeros((0, 2), dtype=np.int64)
        if groups is not None:
            keys = np.concatenate(
                [
                    of_values[part.pairs[j][:, 0]] * len(groups) + of_groups[part.pairs[j][:, 1]]
                    for part, of_values, of_groups in zip(parts, codes, group_codes, strict=True)
                ]
            )
            keys, places = distinct_keys(keys, len(values) * len(groups))
            values, pairs = present_pairs(values, np.stack(np.divmod(keys, len(groups))).T)
            codes = np.split(places, np.cumsum([len(part.pairs[j]) for part in parts])[:-1])
        n_codes = len(values) if groups is None else len(pairs)
        widened = [_widened(part.tables[j], part.classes, classes) for part in parts]
        table = sums_by_value(np.concatenate(codes), n_codes, np.concatenate(widened))
        if groups is None:
            values, table = present_values(values, table)
        kind = max((part.kinds[j] for part in parts), key=KINDS.index)
        # Values of several types have no order.
        kind = "category" if isinstance(values, np.ndarray) else kind
        merged.append((kind, values, table, pairs))
    kinds, values, tables, all_pairs = zip(*merged, strict=True) if merged else ((), (), (), ())
    with_groups = all_pairs if groups is not None else ()
    return Counts(first.names, kinds, values, tables, classes, groups, with_groups)


def _check_same_type(name: str, first: Sequence[Any], other: Sequence[Any]) -> None:
    """Refuse labels that are numbers in one part and text or truth values in another.

    1, "1" and True would be three labels, and a group of two parts two groups.
    """
    types = [_type_of(labels[0]) for labels in (first, other) if len(labels)]
    if len(set(types)) > 1:
        raise InputError(
            f"{name} must have one type in all parts. Got {types[0]} ({shown(first[0])}) in one "
            f"and {types[1]} ({shown(other[0])}) in another. Convert them before they are counted."
        )


def _type_of(label: Any) -> str:
    if isinstance(label, (bool, np.bool_)):
        return "truth values"
    if isinstance(label, str):
        return "text"
    return "numbers" if isinstance(label, (Number, Decimal)) else type(label).__name__


def _joined_parts(name: str, parts: list[Any]) -> tuple[Any, list[np.ndarray]]:
    """Distinct values of several arrays of values, and each one's place, array by array."""
    values, codes = joined(name, parts)
    codes = codes.astype(np.int64, copy=False)
    return values, np.split(codes, np.cumsum([len(part) for part in parts])[:-1])


def _all_classes(parts: list[Counts]) -> tuple[Any, ...]:
    by_key = {label_key(label): label for part in parts for label in part.classes or ()}
    labels = list(by_key.values())
    return tuple(labels[i] for i in label_order(labels))


def _widened(table: np.ndarray, counted: Any, classes: tuple[Any, ...] | None) -> np.ndarray:
    """Table with a column for every class, from one with a column for the classes counted."""
    if classes is None or counted == classes:
        return table
    places = {label_key(label): k for k, label in enumerate(classes)}
    wide = np.zeros((len(table), len(classes)), dtype=np.int64)
    wide[:, [places[label_key(label)] for label in counted]] = table
    return wide


def _size(counts: Counts) -> int:
    return sum(map(len, counts.tables))
