"""Rows in parts that are left out in turn, where new data are new rows.

Rows are dealt out in order of their values, a row of weight w as w rows: parts depend neither on
the order of storage nor on whether rows are repeated or weighted. Equal rows may part company, for
a new row may equal one that was seen.
"""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np

from holdtrue.domains.base import row_copies


def sorted_copies(X: Any, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """`row_copies` by y, then by the columns of X, where it has any."""
    return row_copies([_sortable(column) for column in (y, *_columns(X))], weight)


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
