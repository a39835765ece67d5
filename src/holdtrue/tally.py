"""Rows of one column to its table: for every value, its rows by class or the target's moments."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from holdtrue.validation import check_weights
from holdtrue.values import (
    array_column,
    column_kind,
    distinct,
    filtered,
    is_dense,
    is_long_text,
    mostly_differ,
    python_values,
    text_groups,
    text_pieces,
)

# Of a numeric target, per value: count, mean, and the second to fourth moment about the mean.
N_MOMENTS = 5

_BLOCK = 1 << 16
# Rows and classes for which columns are counted without a code for every row.
_LONG = 1 << 17
_FEW_CLASSES = 8
_MAX_CELLS = 1 << 30
_MAX_TARGET = 1e70
# Rows from which compiled loops repay the time that they take to load.
_WORTH_LOADING = 1 << 21


class Target(NamedTuple):
    """What is predicted, row by row, and how often each row counts.

    Attributes
    ----------
    codes : ndarray of shape (n_rows,)
        Place of the row's class among the classes, or the number itself.
    classes : tuple or None
    weight : ndarray of int, shape (n_rows,), or None
    """

    codes: np.ndarray
    classes: tuple[Any, ...] | None
    weight: np.ndarray | None

    @classmethod
    def from_column(
        cls, y: Any, numeric: bool, sample_weight: Any = None, *, owner: str = "Counts"
    ) -> Target:
        """Target from an array-like or Arrow column; a missing one is refused."""
        column = y if hasattr(y, "type") else array_column(np.asarray(y))
        if not len(column):
            raise ValueError(f"{owner}: expected at least one row. Got a target without rows.")
        weight = whole_weights(owner, sample_weight, len(column))
        if numeric:
            numbers = _as_floats(owner, column)
            _refuse_missing(owner, np.isfinite(numbers))
            largest = float(np.abs(numbers).max(initial=0.0))
            if largest > _MAX_TARGET:
                raise ValueError(
                    f"{owner}: the fourth powers of the target must fit into float64. Got values "
                    f"of size {largest:g}. Change the unit."
                )
            return cls(numbers, None, weight)
        values, codes = distinct(owner, "target", column)
        used = np.bincount(codes, weight, minlength=len(values)) > 0
        labels = python_values(values)
        _refuse_missing(owner, np.array([label is not None for label in labels], dtype=bool)[codes])
        order = label_order([label for label, there in zip(labels, used, strict=True) if there])
        place = np.zeros(len(values), dtype=np.min_scalar_type(len(values)))
        place[np.flatnonzero(used)[order]] = np.arange(len(order))
        classes = tuple(labels[i] for i in np.flatnonzero(used)[order])
        return cls(place[codes], classes, weight)

    def at(self, rows: np.ndarray) -> Target:
        """The target of some rows, in their order."""
        weight = None if self.weight is None else self.weight[rows]
        return Target(self.codes[rows], self.classes, weight)


def whole_weights(owner: str, sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Weights as whole numbers, None where none are given; others are refused."""
    if sample_weight is None:
        return None
    weight = check_weights(owner, sample_weight, n_rows)
    if (weight != np.floor(weight)).any():
        bad = weight[weight != np.floor(weight)][0]
        raise ValueError(
            f"{owner}: sample_weight must hold whole numbers, because a weight is the number of "
            f"times that a row is repeated. Got {bad:g}. Round them, or leave them out."
        )
    return weight.astype(np.int64)


def _refuse_missing(owner: str, present: np.ndarray) -> None:
    if not present.all():
        raise ValueError(
            f"{owner}: the target must not be missing or infinite. "
            f"Got {int((~present).sum())} such values in {len(present)} rows. Leave those rows out."
        )


def _as_floats(owner: str, column: Any) -> np.ndarray:
    try:
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError) as error:
        _, is_text, value = str(error).partition("could not convert string to float: ")
        given = f"the text {value}" if is_text else getattr(column, "type", "several types")
        raise ValueError(
            f"{owner}: a numeric target must hold numbers. Got {given}. Turn it into numbers, or "
            "take it as classes."
        ) from error


def label_order(labels: list[Any]) -> list[int]:
    """Places of the labels in order; labels of several types type by type."""
    places = range(len(labels))
    try:
        return sorted(places, key=lambda i: labels[i])
    except TypeError:
        return sorted(places, key=lambda i: (type(labels[i]).__name__, labels[i]))


def counted(
    name: str, column: Any, target: Target, *, owner: str = "Counts", keep_values: bool = True
) -> tuple[str, Any, np.ndarray]:
    """Kind, distinct values and table of one column.

    Without ``keep_values`` the values of a category may be given by the rows where they stand,
    null where that is missing, which is all that is needed to score it.
    """
    kind = column_kind(column)
    if len(column) != len(target.codes):
        raise ValueError(
            f"{owner}: y must have one value per row of X, {len(column)}. Got {len(target.codes)}."
        )
    direct = _counted_directly(column, target, keep_values)
    if direct is not None:
        return kind, *direct
    groups = None if keep_values else text_groups(column)
    if groups is None:
        values, codes = distinct(owner, name, column)
        return kind, *present_values(values, table_of(codes, len(values), target))
    table = table_of(groups.codes, len(groups.first), target.at(groups.rows))
    return kind, *present_values(row_places(column, groups.first), table)


def _counted_directly(
    column: Any, target: Target, keep_values: bool
) -> tuple[Any, np.ndarray] | None:
    """Values and class counts of a long column without a code for every row.

    None where that is not possible, or another way is as fast.
    """
    import pyarrow as pa

    if (
        isinstance(column, np.ndarray)
        or len(column) < _LONG
        or target.classes is None
        or target.weight is not None
        or len(target.classes) > _FEW_CLASSES
    ):
        return None
    if pa.types.is_floating(column.type):
        return _number_counts(column.cast(pa.float64()), target)
    if pa.types.is_integer(column.type) and column.type != pa.uint64():
        return _number_counts(column.cast(pa.int64()), target)
    return None if keep_values else _text_counts(column, target)


def _number_counts(column: Any, target: Target) -> tuple[Any, np.ndarray] | None:
    """The same of numbers; None where they are whole and lie so close that they are codes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from holdtrue.grouping import counted_keys, sorted_counts

    assert target.classes is not None
    is_float = pa.types.is_floating(column.type)
    if is_float:
        # -0.0 + 0.0 is 0.0: the two are equal, their bits are not.
        column = pc.add(pc.if_else(pc.is_nan(column), None, column), 0.0)
    elif is_dense(column):
        return None
    if column.null_count == len(column):
        return None
    pieces = [
        _number_buffers(chunk)
        for chunk in (column.chunks if isinstance(column, pa.ChunkedArray) else [column])
    ]
    n_classes = len(target.classes)
    found = None
    if not mostly_differ(column, 0.9):
        keys = ((numbers.view(np.uint64)[:, None], valid) for numbers, valid in pieces)
        found = counted_keys(keys, 1, target.codes, n_classes)
    if found is None:
        values, counts, missing = sorted_counts(pieces, target.codes, n_classes)
    else:
        values = found.keys[:, 0].view(np.float64 if is_float else np.int64)
        order = np.argsort(values)
        values, counts, missing = values[order], found.counts[order], found.missing
    stored = pa.array(values)
    if not column.null_count:
        return stored, counts
    return pa.concat_arrays([stored, pa.nulls(1, stored.type)]), np.vstack([counts, missing])


def _number_buffers(numbers: Any) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of eight bytes, and which are not missing (empty if all)."""
    kind = numbers.type.to_pandas_dtype()
    every = np.frombuffer(numbers.buffers()[1], dtype=kind)
    valid = np.asarray(numbers.is_valid()) if numbers.null_count else np.zeros(0, dtype=bool)
    return every[numbers.offset : numbers.offset + len(numbers)], valid


def _text_counts(column: Any, target: Target) -> tuple[Any, np.ndarray] | None:
    """The same of texts of which most come back; their values are given by rows."""
    if not is_long_text(column) or mostly_differ(column, 0.5):
        return None
    found = text_pieces(column)
    if found is None:
        return None
    from holdtrue.grouping import counted_keys, text_blocks

    assert target.classes is not None
    pieces, n_words = found
    keys = ((block, np.zeros(0, dtype=bool)) for block in text_blocks(pieces, n_words))
    counted = counted_keys(keys, n_words, target.codes, len(target.classes))
    return None if counted is None else (row_places(column, counted.first), counted.counts)


def row_places(column: Any, rows: np.ndarray) -> Any:
    """Row numbers as an Arrow array, null where the column is."""
    import pyarrow as pa

    missing = ~np.asarray(column.is_valid())[rows] if column.null_count else None
    return pa.array(rows, mask=missing)


def table_of(codes: np.ndarray, n_values: int, target: Target) -> np.ndarray:
    """Counts by value and class, or moments by value, of coded rows.

    Parameters
    ----------
    codes : ndarray of int, shape (n_rows,)
    n_values : int
    target : Target
    """
    if target.classes is not None:
        return _class_counts(codes, n_values, target, len(target.classes))
    weight = np.ones(len(codes)) if target.weight is None else target.weight
    ones = np.zeros((len(codes), N_MOMENTS))
    ones[:, 0], ones[:, 1] = weight, target.codes
    return grouped_moments(codes, n_values, ones)


def _class_counts(codes: np.ndarray, n_values: int, target: Target, n_classes: int) -> np.ndarray:
    n_cells = n_values * n_classes
    if n_cells > _MAX_CELLS:
        raise ValueError(
            f"Counts: {n_values:,} values by {n_classes:,} classes make a table of "
            f"{n_cells / 2**27:.0f} GB, above the limit of {_MAX_CELLS / 2**27:.0f} GB. Join rare "
            "classes, or pass target_type='numeric' if the target is a number."
        )
    loaded = "holdtrue.grouping" in sys.modules
    if target.weight is None and len(codes) >= (_BLOCK if loaded else _WORTH_LOADING):
        from holdtrue.grouping import class_counts

        return class_counts(codes, target.codes, n_values, n_classes)
    # In blocks that stay in the cache, unless the table itself does not.
    step = _BLOCK if n_cells <= _BLOCK else max(len(codes), 1)
    total = np.zeros(n_cells, dtype=np.int64)
    for start in range(0, len(codes), step):
        block = slice(start, start + step)
        cell = np.multiply(codes[block], n_classes, dtype=np.intp)
        cell += target.codes[block]
        weight = None if target.weight is None else target.weight[block]
        count = np.bincount(cell, weight, minlength=n_cells)
        if step >= len(codes):
            total = count.astype(np.int64, copy=False)
        else:
            total += count.astype(np.int64, copy=False)
    return total.reshape(n_values, n_classes)


def grouped_moments(codes: np.ndarray, n_groups: int, moments: np.ndarray) -> np.ndarray:
    """Moments of groups of parts, shape (n_groups, 5) (Pébay 2008, for many parts at once).

    With ``δ = mean_i - mean`` of a part i: ``M2 = Σ M2_i + n_i δ²``,
    ``M3 = Σ M3_i + 3 δ M2_i + n_i δ³``, ``M4 = Σ M4_i + 4 δ M3_i + 6 δ² M2_i + n_i δ⁴``.

    Parameters
    ----------
    codes : ndarray of int, shape (n_parts,)
        Group of each part.
    n_groups : int
    moments : ndarray of shape (n_parts, 5)
        Count, mean, M2, M3, M4 of each part; a single row has moments of 0.
    """

    def total(part: np.ndarray) -> np.ndarray:
        return np.bincount(codes, part, minlength=n_groups)

    n, mean, m2, m3, m4 = moments.T
    count = total(n)
    whole = total(n * mean) / np.maximum(count, 1)
    # A second pass takes out the rounding error of the first, which δ would inherit.
    whole += total(n * (mean - whole[codes])) / np.maximum(count, 1)
    delta = mean - whole[codes]
    columns = (
        count,
        whole,
        total(m2 + n * delta**2),
        total(m3 + 3 * delta * m2 + n * delta**3),
        total(m4 + 4 * delta * m3 + 6 * delta**2 * m2 + n * delta**4),
    )
    return np.column_stack(columns)


def present_values(values: Any, table: np.ndarray) -> tuple[Any, np.ndarray]:
    """Values that some row has, and their table."""
    present = is_present(table)
    if present.all():
        return values, table
    return filtered(values, present), table[present]


def is_present(table: np.ndarray) -> np.ndarray:
    """Mask of the rows of a table, of counts or of moments, that count any row of the sample."""
    present = table[:, 0] > 0
    if table.dtype != np.float64:
        for k in range(1, table.shape[1]):
            present |= table[:, k] > 0
    return present
