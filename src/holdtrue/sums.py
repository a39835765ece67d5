"""Sums that add: what a fit needs of the rows, so that parts of a table can be summed apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdtrue.moments import Moments
from holdtrue.tally import (
    N_MOMENTS,
    Target,
    counted,
    grouped_moments,
    label_order,
    present_values,
)
from holdtrue.validation import did_you_mean
from holdtrue.values import KINDS, columns_of, joined, python_values

__all__ = ["Counts", "Moments"]


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

    def __post_init__(self) -> None:
        n_columns = len(self.names)
        for name in ("kinds", "values", "tables"):
            if len(getattr(self, name)) != n_columns:
                raise ValueError(
                    f"Counts: {name} must have one entry per column, {n_columns}. "
                    f"Got {len(getattr(self, name))}."
                )
        if len(set(self.names)) != n_columns:
            raise ValueError(f"Counts: names must be distinct. Got {list(self.names)}.")
        width = N_MOMENTS if self.classes is None else len(self.classes)
        totals = set()
        for name, values, table in zip(self.names, self.values, self.tables, strict=True):
            if np.shape(table) != (len(values), width):
                raise ValueError(
                    f"Counts: the table of column {name!r} must have shape "
                    f"({len(values)}, {width}), values by classes. Got {np.shape(table)}."
                )
            rows = table if self.classes is not None else table[:, 0]
            if len(table) and rows.min() < 0:
                raise ValueError(f"Counts: counts must not be negative. Got one in {name!r}.")
            totals.add(int(rows.sum()))
        if len(totals) > 1:
            raise ValueError(
                "Counts: every column must count the same rows. "
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

    def column(self, name: str) -> dict[Any, list[float]]:
        """Table of one column as a dict from value to row, for reading.

        Where a column holds both True and 1 a dict takes them for one: use `values` and `tables`.
        """
        if name not in self.names:
            raise ValueError(f"Counts: no column {name!r}." + did_you_mean(name, self.names))
        j = self.names.index(name)
        return dict(zip(python_values(self.values[j]), self.tables[j].tolist(), strict=True))

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        y: Any,
        *,
        names: Iterable[str] | None = None,
        numeric_target: bool = False,
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
        sample_weight : array-like of shape (n_samples,), optional
            Whole numbers: weights are repetitions.
        """
        columns = columns_of("Counts", X)
        if names is not None:
            columns = dict(zip(map(str, names), columns.values(), strict=True))
        target = Target.from_column(y, numeric_target, sample_weight)
        parts = [counted(name, column, target) for name, column in columns.items()]
        return cls(tuple(columns), *_transposed(parts), target.classes)

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        target: str,
        *,
        numeric_target: bool = False,
        sample_weight: Any = None,
    ) -> Counts:
        """Counts of a data frame, Arrow table or record batch that holds its target.

        Parameters
        ----------
        frame : data frame (pandas, Polars, Arrow) or pyarrow.RecordBatch
        target : str
            Name of the target's column.
        numeric_target, sample_weight
            As in `from_arrays`.
        """
        columns = columns_of("Counts", frame)
        if target not in columns:
            raise ValueError(f"Counts: no column {target!r}." + did_you_mean(target, columns))
        y = Target.from_column(columns.pop(target), numeric_target, sample_weight)
        parts = [counted(name, column, y) for name, column in columns.items()]
        return cls(tuple(columns), *_transposed(parts), y.classes)

    @classmethod
    def from_batches(
        cls, batches: Iterable[Any], target: str, *, numeric_target: bool = False
    ) -> Counts:
        """Counts of frames or record batches one after the other, in the memory of the counts.

        Parameters
        ----------
        batches : iterable of data frames or record batches
            With the same columns, such as ``pyarrow.parquet.ParquetFile(path).iter_batches()``.
            Batches without rows are passed over.
        target, numeric_target
            As in `from_frame`.
        """
        total: Counts | None = None
        waiting: list[Counts] = []
        for batch in batches:
            if hasattr(batch, "__len__") and not len(batch):
                continue
            waiting.append(cls.from_frame(batch, target, numeric_target=numeric_target))
            # Merged when they have grown as large as the total, so that the work stays in
            # proportion to the rows.
            if total is None or sum(map(_size, waiting)) >= _size(total):
                total = _merged_counts([*([] if total is None else [total]), *waiting])
                waiting = []
        if total is None:
            raise ValueError(
                "Counts.from_batches: expected at least one batch with rows. Got none."
            )
        return _merged_counts([total, *waiting])

    def __add__(self, other: Counts) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        return _merged_counts([self, other])

    def __radd__(self, other: int) -> Counts:
        # sum() starts with 0.
        return self if other == 0 else NotImplemented


def _merged_counts(parts: list[Counts]) -> Counts:
    first = parts[0]
    for part in parts[1:]:
        if part.names != first.names:
            missing = [name for name in first.names if name not in part.names]
            new = [name for name in part.names if name not in first.names]
            raise ValueError(
                "Counts: counts of tables with different columns do not add. "
                f"Missing: {missing}. New: {new}. Order counts too."
            )
        if (part.classes is None) != (first.classes is None):
            raise ValueError(
                "Counts: counts of classes and sums of a numeric target do not add. "
                "Build all parts with the same numeric_target."
            )
    classes = None if first.classes is None else _all_classes(parts)
    merged = []
    for j, name in enumerate(first.names):
        values, codes = joined("Counts", name, [part.values[j] for part in parts])
        if classes is None:
            stacked = np.concatenate([part.tables[j] for part in parts])
            table = grouped_moments(codes, len(values), stacked)
        else:
            table = np.zeros((len(values), len(classes)), dtype=np.int64)
            start = 0
            for part in parts:
                rows = codes[start : start + len(part.tables[j])]
                # A part names each value once, so that no row is written twice.
                table[rows] += _widened(part.tables[j], part.classes, classes)
                start += len(rows)
        values, table = present_values(values, table)
        kind = max((part.kinds[j] for part in parts), key=KINDS.index)
        # Values of several types have no order.
        merged.append(("category" if isinstance(values, np.ndarray) else kind, values, table))
    return Counts(first.names, *_transposed(merged), classes)


def _all_classes(parts: list[Counts]) -> tuple[Any, ...]:
    labels: list[Any] = []
    for part in parts:
        for label in part.classes or ():
            if not any(label == old and _is_bool(label) == _is_bool(old) for old in labels):
                labels.append(label)
    return tuple(labels[i] for i in label_order(labels))


def _widened(table: np.ndarray, own: Any, classes: tuple[Any, ...]) -> np.ndarray:
    """Table with a column for every class, from one with a column for its own classes."""
    if own == classes:
        return table
    wide = np.zeros((len(table), len(classes)), dtype=np.int64)
    for k, label in enumerate(own):
        place = next(
            i for i, old in enumerate(classes) if old == label and _is_bool(old) == _is_bool(label)
        )
        wide[:, place] = table[:, k]
    return wide


def _is_bool(label: Any) -> bool:
    return isinstance(label, bool)


def _size(counts: Counts) -> int:
    return sum(map(len, counts.tables))


def _transposed(parts: list[tuple[Any, ...]]) -> tuple[Any, Any, Any]:
    """Kinds, values and tables, one tuple each."""
    kinds, values, tables = zip(*parts, strict=True) if parts else ((), (), ())
    return kinds, values, tables
