"""EngineTable: classes, sums and profiles of a table that lives on an engine or in a database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from holdtrue.columns.bins import holds_moments
from holdtrue.columns.counting import (
    Target,
    check_group_count,
    label_key,
    label_order,
)
from holdtrue.columns.distinct import distinct
from holdtrue.columns.values import (
    holds_numbers,
    is_missing,
    is_plain,
    python_values,
    refused,
    type_kind,
)
from holdtrue.errors import InputError, InputTypeError, did_you_mean
from holdtrue.sums import Profile
from holdtrue.sums.group_profile import GroupProfile
from holdtrue.targets import MAX_CLASSES, TargetKind, check_class_count, target_kind

__all__ = ["FEW", "EngineTable", "EngineTarget", "Labels", "Profiles", "changed", "rows_by_class"]

# Different values of a column that are kept, to see that there are too many for classes.
FEW = MAX_CLASSES + 1


# Profiles of columns, one after the other.
Profiles = Iterator[Profile | GroupProfile]


class EngineTarget(NamedTuple):
    """The columns of target and groups, and what the first pass has seen of the target."""

    name: str
    classes: tuple[Any, ...] | None  # in order; None for a numeric target
    rows: np.ndarray  # by class; of a numeric target, all rows
    groups: str | None = None  # column of the groups, which are left out whole

    @property
    def n_samples(self) -> int:
        """Rows of the table."""
        return int(self.rows.sum())

    def of_rows(self, column: Any) -> Target:
        """The target of some rows."""
        target = Target.from_column(column, numeric=self.classes is None)
        if target.classes is None or self.classes is None:
            return target
        places = {label_key(label): k for k, label in enumerate(self.classes)}
        keys = list(map(label_key, target.classes))
        if not places.keys() >= set(keys):
            raise changed("a class is new")
        place = np.array([places[key] for key in keys], dtype=np.uint8)
        return Target(place[target.codes], self.classes, None)

    def check(self, rows: np.ndarray) -> None:
        """Refuse a pass that has met other rows than the first."""
        n_rows = int(rows.sum())
        if n_rows != self.n_samples:
            raise changed(f"{self.n_samples:,} rows, then {n_rows:,}")
        if not np.array_equal(rows, self.rows):
            raise changed(f"rows by class {self.rows.tolist()}, then {rows.tolist()}")


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
    def profiles(self, kinds: Mapping[str, str], target: EngineTarget, max_bins: int) -> Profiles:
        """Profiles of the columns of ``kinds``, which says how to read each, in their order."""

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
        for who, column in (("the target", name), ("groups", groups)):
            if column is not None and seen.missing[column]:
                raise InputError(
                    f"{who} must not be missing. Got {seen.missing[column]:,} missing in "
                    f"{seen.n_rows:,} rows. Leave those rows out with dropna."
                )
        if groups is not None:
            check_group_count(np.array([label for _, label in seen.columns[groups]], dtype=object))
        labels = [label for _, label in seen.columns[name]]
        rows = np.array([*seen.columns[name].values()])
        many, is_numeric = len(labels) > MAX_CLASSES, target_type == "numeric"
        if target_type == "auto" and holds_numbers(self.types[name]):
            values = pa.array(labels, self.types[name])
            is_numeric = many or target_kind(values, "auto", rows).is_numeric
        if is_numeric:
            return EngineTarget(name, None, np.array([seen.n_rows]), groups)
        check_class_count(len(labels), " or more")
        order = label_order(labels)
        return EngineTarget(name, tuple(labels[i] for i in order), rows[order], groups)

    def missing(self, names: Sequence[str]) -> tuple[dict[str, int], int]:
        """Rows without a value in each of some columns, and all rows."""
        seen = self.labels(names)
        return {name: seen.missing[name] for name in names}, seen.n_rows

    def target_kind(self, name: str, target_type: str) -> TargetKind:
        """Whether the target is read as classes or as a number."""
        target = self.target(name, target_type)
        is_decided = target_type != "auto" or self.kinds[name] == "category"
        return TargetKind(target.classes is None, len(target.classes or ()), is_decided)


class Labels(NamedTuple):
    """Different values of some columns with their rows, as long as they are few."""

    columns: dict[str, Counter[Any]]  # rows by `label_key`, of at most `FEW` values
    missing: Counter[str]  # rows without a value, by column
    n_rows: int

    @classmethod
    def of_table(cls, table: Any) -> Labels:
        """Labels of the columns of an Arrow table."""
        columns, missing = {}, Counter[str]()
        for name in table.column_names:
            values, codes = distinct(name, table.column(name))
            rows, absent = np.bincount(codes, minlength=len(values)), is_missing(values)
            missing[name] = int(rows[absent].sum())
            few = np.flatnonzero((rows > 0) & ~absent)[:FEW]
            keys = map(label_key, python_values(values.take(few)))
            columns[name] = Counter(dict(zip(keys, rows[few].tolist(), strict=True)))
        return cls(columns, missing, table.num_rows)

    def __add__(self, other: Any) -> Labels:
        columns = {
            name: Counter(dict((labels + other.columns[name]).most_common(FEW)))
            for name, labels in self.columns.items()
        }
        return Labels(columns, self.missing + other.missing, self.n_rows + other.n_rows)


def changed(how: str) -> InputError:
    """The error of a pass that met other rows than the first."""
    return InputError(
        f"the table changed between passes ({how}). Write it to files or persist it, so that every "
        "pass reads the same rows."
    )


def rows_by_class(table: np.ndarray, repeats: np.ndarray | int = 1) -> np.ndarray:
    """Rows by class of a table of counts; of one of moments, all rows."""
    table = table[:, :1] if holds_moments(table) else table
    return (table.T * repeats).sum(axis=1)
