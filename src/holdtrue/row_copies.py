"""Rows dealt out into parts, where a row of weight w is w copies of a row.

Copies are in the order of their rows' values, so that parts depend neither on the order of storage
nor on whether rows are repeated or weighted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

# At most about this many copies; with larger weights, a copy stands for several.
_MOST_COPIES = 1_000_000


def row_copies(columns: Iterable[np.ndarray], weight: np.ndarray | None) -> np.ndarray:
    """Indices of the rows in order of their values, each as often as its weight says."""
    order = np.lexsort(tuple(columns)[::-1])
    if weight is None:
        return order
    times = np.ceil(weight * min(1.0, _MOST_COPIES / float(weight.sum())))
    return np.repeat(order, times[order].astype(np.intp))


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
