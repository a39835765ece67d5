"""Rows in parts that are left out in turn, where new data are new rows.

Equal rows may be in different parts, for a new row may equal one that was seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import narwhals as nw
import numpy as np

from holdtrue.row_copies import dealt_rows, row_copies

Splits = list[tuple[np.ndarray, np.ndarray]]  # rows to fit on, and rows to judge


def sorted_copies(X: Any, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """`row_copies` by y, then by the columns of X, where it has any."""
    return row_copies([_sortable(column) for column in (y, *_columns(X))], weight)


def dealt_splits(
    copies: np.ndarray, splits: Splits, weight: np.ndarray | None
) -> tuple[np.ndarray, Splits, Any]:
    """Rows, splits of them and their weights, from splits of `sorted_copies`."""
    rows, part, weight = dealt_rows(copies, parts_of(splits, len(copies)), weight)
    return rows, splits_by(part), weight


def parts_of(splits: Iterable[tuple[np.ndarray, np.ndarray]], n_rows: int) -> np.ndarray:
    """Part of each row, shape (n_rows,): the split that judges it, 0 if none does."""
    part = np.zeros(n_rows, dtype=np.intp)
    for k, (_, test) in enumerate(splits):
        part[test] = k
    return part


def splits_by(part: np.ndarray) -> Splits:
    """Splits that leave out one part after another."""
    return [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(part.max() + 1)]


def _columns(X: Any) -> list[np.ndarray]:
    if isinstance(X, np.ndarray):
        return list(X.T) if X.ndim == 2 else []
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:  # the models' own words name them
        return []
    if not isinstance(frame, nw.DataFrame):
        return []
    return [column.to_numpy() for column in frame.iter_columns()]


def _sortable(column: np.ndarray) -> np.ndarray:
    if column.dtype.kind in "fiub":
        return column
    return np.unique(column.astype(str), return_inverse=True)[1]
