"""Compiled splits of a leaf by value, twin of `grow.Leaves`; importing this imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdtrue.categories.term_loops import add_row, leaf_terms, rows_in
from holdtrue.columns.loops import compiled

_BLOCK, _LINE = 32, 32  # rows fetched together; cells in a line of the cache
_FEW = 16  # children of two classes with fewer rows of each are looked up by them
N_PAIRS = _FEW * _FEW


@compiled
def _count(
    cells: np.ndarray,
    rows: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
    tried: np.ndarray,
    n_tried: int,
    width: int,
    criterion: int,
    counters: np.ndarray,
) -> Any:
    """Add rows to the counters of their cells in some columns; what is returned means nothing."""
    # Two columns at a time, or all: increments in succession do not wait for the same counter.
    # Unsigned numbers index without a test for negative ones. What is known of a row is kept by
    # name: a counter might lie where it was read from, and it would be read again for each column.
    step, n_columns, fetched = np.uint64(width), cells.shape[1], 0
    if criterion == 7:
        for r in range(len(rows)):
            i, number, w = np.uint64(rows[r]), label[r], weight[r]
            for at in range(n_tried):
                start = np.uint64(cells[i, np.uint64(tried[at])]) * step
                add_row(counters, start, number, w, criterion)
    elif n_tried < n_columns:
        for at in range(0, n_tried - 1, 2):
            j, other = np.uint64(tried[at]), np.uint64(tried[at + 1])
            for r in range(len(rows)):
                i, y, w = np.uint64(rows[r]), np.uint64(label[r]), weight[r]
                counters[np.uint64(cells[i, j]) * step + y] += w
                counters[np.uint64(cells[i, other]) * step + y] += w
        if n_tried % 2:
            j = np.uint64(tried[n_tried - 1])
            for r in range(len(rows)):
                start = np.uint64(cells[np.uint64(rows[r]), j]) * step
                counters[start + np.uint64(label[r])] += weight[r]
    else:
        for first in range(0, len(rows), _BLOCK):
            stop = min(first + _BLOCK, len(rows))
            for r in range(first, stop):  # fetched together, for a row alone would be waited for
                for first_cell in range(0, n_columns, _LINE):
                    fetched += int(cells[rows[r], first_cell])
                fetched += int(cells[rows[r], n_columns - 1])
            for r in range(first, stop):
                i, y, w = np.uint64(rows[r]), np.uint64(label[r]), weight[r]
                for column in range(n_columns):
                    counters[np.uint64(cells[i, column]) * step + y] += w
    return fetched


@compiled
def score_values(
    cells: np.ndarray,
    rows: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
    tried: np.ndarray,
    n_tried: int,
    offsets: np.ndarray,
    width: int,
    criterion: int,
    scale: float,
    table: np.ndarray,
    state: np.ndarray,
    logs: np.ndarray,
    counters: np.ndarray,
    leaf_of: np.ndarray,
    leaf_of_pair: np.ndarray,
    sums: np.ndarray,
    child_terms: np.ndarray,
    terms: np.ndarray,
) -> None:
    """Write the sums of the children's terms by column; inf for one that is constant in the leaf.

    ``label`` and ``weight`` are those of the leaf's rows, one after the other. ``counters`` is all
    zeros before and after; ``leaf_of``, ``leaf_of_pair``, ``sums`` and ``child_terms`` are room to
    work in, ``leaf_of`` for one child more than there may be.
    """
    _count(cells, rows, label, weight, tried, n_tried, width, criterion, counters)
    # Children are gathered first, and their terms taken together: those of two classes with few
    # rows, which are most, once for all that are alike.
    step, one, n_leaves, n_children = np.uint64(width), np.uint64(1), 0, 0
    ends = np.empty(n_tried, dtype=np.int64)
    for pair in range(N_PAIRS):
        leaf_of_pair[pair] = -1
    leaf_of_pair[0] = 0  # any: empty children are written and written over, without a branch
    for at in range(n_tried):
        column = tried[at]
        n_values = offsets[column + 1] - offsets[column]
        by_value = n_values <= len(rows)
        for visit in range(n_values if by_value else len(rows)):
            cell = offsets[column] + visit if by_value else np.int64(cells[rows[visit], column])
            start = np.uint64(cell) * step
            leaf = n_leaves
            if width == 2:
                first, second = np.int64(counters[start]), np.int64(counters[start + one])
                is_child = first + second > 0
                counters[start] = 0
                counters[start + one] = 0
                if first < _FEW and second < _FEW:
                    leaf = leaf_of_pair[first * _FEW + second]
                    if leaf < 0:
                        leaf = n_leaves
                        leaf_of_pair[first * _FEW + second] = leaf
                if leaf == n_leaves:
                    sums[leaf, 0], sums[leaf, 1] = first, second
            else:
                is_child = rows_in(counters, start, width, criterion) > 0.0
                for k in range(width if is_child else 0):
                    sums[leaf, k] = counters[start + np.uint64(k)]
                    counters[start + np.uint64(k)] = 0
            leaf_of[n_children] = leaf
            n_leaves += int(is_child and leaf == n_leaves)
            n_children += int(is_child)
        ends[at] = n_children
    leaf_terms(sums, n_leaves, width, criterion, scale, table, state, logs, child_terms)
    begin = 0
    for at in range(n_tried):
        terms[at] = 0.0 if ends[at] - begin > 1 else np.inf
        for child in range(begin, ends[at]):
            terms[at] += child_terms[leaf_of[child]]
        begin = ends[at]
