"""Compiled loops that write the cells of rows; importing this module imports numba.

Rows lie together in memory, so all columns are gone through at once. Twins are in `cells`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdtrue.columns.loops import compiled


@compiled
def place_cells(
    codes: np.ndarray, cell_of_code: np.ndarray, cells: np.ndarray, column: int
) -> None:
    """Write the cells of a column of ``cells``, shape (n_rows, n_columns), by the rows' codes."""
    for i in range(len(codes)):
        cells[i, column] = cell_of_code[codes[i]]


@compiled
def code_integers(
    rows: np.ndarray,
    low: np.ndarray,
    first: np.ndarray,
    weight: np.ndarray,
    codes: np.ndarray,
    counts: np.ndarray,
) -> Any:
    """Write ``value - low`` of each integer and add its row's weight; whether all were in range.

    The counts of column j begin at ``first[j]`` and end at ``first[j + 1]``.
    """
    for i in range(len(rows)):
        in_range = True
        for j in range(rows.shape[1]):
            code = rows[i, j] - low[j]
            if code < 0 or code >= first[j + 1] - first[j]:
                in_range = False
                break
            codes[i, j] = code
            counts[np.uint64(first[j] + code)] += weight[i]
        if not in_range:
            return False
    return True


@compiled
def place_codes(
    codes: np.ndarray,
    feature: np.ndarray,
    first: np.ndarray,
    cell_of_code: np.ndarray,
    cells: np.ndarray,
) -> None:
    """Write the cells of all columns of ``cells``, shape (n_rows, n_columns).

    ``first`` is where the part of each column begins in ``cell_of_code``, ``feature`` its feature.
    """
    for i in range(len(codes)):
        for at in range(len(feature)):
            cells[i, at] = cell_of_code[np.uint64(first[at] + codes[i, feature[at]])]
