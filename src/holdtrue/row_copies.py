"""Rows dealt out into parts, where a row of weight w is w copies of a row.

Copies are in the order of their rows' values, so that parts depend neither on the order of storage
nor on whether rows are repeated or weighted. Copies may be in different parts, for a new row may
equal one that was seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np

from holdtrue.validation import eager_frame

Splits = list[tuple[np.ndarray, np.ndarray]]  # rows to fit on, and rows to judge

# At most about this many copies; with larger weights, a copy stands for several.
_MOST_COPIES = 1_000_000


def row_copies(X: Any, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Indices of the rows in order of y, then of the columns of X; each as often as its weight.

    y has shape (n_rows,) or (n_rows, n_targets). X is an array or a frame; anything else has no
    columns.
    """
    order = in_order(map(_sortable, chain(np.atleast_2d(y.T), _columns(X))), len(y))
    if weight is None:
        return order
    times = np.ceil(weight * min(1.0, _MOST_COPIES / float(weight.sum())))
    return np.repeat(order, times[order].astype(np.intp))


def in_order(keys: Iterable[np.ndarray], n_rows: int) -> np.ndarray:
    """Rows in order of the first key, then of the second, ...; rows equal in all stay as they are.

    `np.lexsort` sorts by all keys. Most rows differ in the first: others are not even read.
    """
    order, is_tied = np.arange(n_rows), np.ones(max(n_rows - 1, 0), dtype=bool)  # with the next
    for key in keys:
        pairs = np.flatnonzero(is_tied)
        if not _equal(key[order[pairs]], key[order[pairs + 1]]).all():
            in_run = np.append(is_tied, False) | np.append(False, is_tied)
            rows, run = order[in_run], np.cumsum(np.append(True, ~is_tied))[in_run]
            order[in_run] = rows[np.lexsort((key[rows], run))]
            is_tied[pairs] = _equal(key[order[pairs]], key[order[pairs + 1]])
        if not is_tied.any():
            break
    return order


def dealt_rows(
    copies: np.ndarray, part: np.ndarray, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, Any]:
    """Rows, their parts and their weights; copies of a row in the same part are one row again.

    Parameters
    ----------
    copies : ndarray of int
        From `row_copies`.
    part : ndarray of int
        Part of each copy.
    weight : ndarray of shape (n_rows,) or None
        Without weights there is one entry for each row, in their order.
    """
    n_parts = int(part.max()) + 1
    entries, times = np.unique(copies * n_parts + part, return_counts=True)
    rows, parts = np.divmod(entries, n_parts)
    if weight is None:
        return rows, parts, None
    return rows, parts, times * (weight / np.bincount(copies))[rows]


def dealt_splits(
    copies: np.ndarray, splits: Splits, weight: np.ndarray | None
) -> tuple[np.ndarray, Splits, Any]:
    """Rows, splits of them and their weights, from splits of `row_copies`."""
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


def _equal(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Which numbers are equal, or both nan."""
    return (one == other) | ((one != one) & (other != other))


def _columns(X: Any) -> Iterable[np.ndarray]:
    if isinstance(X, np.ndarray):
        return X.T if X.ndim == 2 else ()
    frame = eager_frame(X)
    return () if frame is None else (column.to_numpy() for column in frame.iter_columns())


def _sortable(column: np.ndarray) -> np.ndarray:
    if column.dtype.kind in "fiub":
        return column
    return np.unique(column.astype(str), return_inverse=True)[1]
