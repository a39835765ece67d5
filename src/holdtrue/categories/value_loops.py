"""Compiled splits of a leaf by value, twin of `grow.Leaves`; importing this imports numba."""

from __future__ import annotations

import numpy as np

from holdtrue.categories.cell_loops import AHEAD, fetch
from holdtrue.categories.term_loops import add_row, leaf_terms, rows_in
from holdtrue.columns.loops import compiled

_LINE = 32  # cells in a line of memory
_FEW = 16  # children of two classes with fewer rows of each have their terms looked up
N_PAIRS = _FEW * _FEW


@compiled
def _count(
    cells: np.ndarray,
    rows: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
    tried: np.ndarray,
    n_tried: int,
    criterion: int,
    counters: np.ndarray,
) -> None:
    """Add rows to the counters of their cells in some columns."""
    # Unsigned numbers index without a test for negative ones. What is known of a row is kept by
    # name: a counter might lie where it was read from, and it would be read again for each column.
    n_columns = cells.shape[1]
    for r in range(len(rows)):
        i, y, w = np.uint64(rows[r]), label[r], weight[r]
        ahead = rows[min(r + AHEAD, len(rows) - 1)]
        if n_tried == n_columns:
            for first in range(0, n_columns, _LINE):
                fetch(cells, ahead, first)
            fetch(cells, ahead, n_columns - 1)
            for at in range(n_columns):
                add_row(counters, np.uint64(cells[i, np.uint64(at)]), y, w, criterion)
        else:
            for at in range(n_tried):
                column = np.uint64(tried[at])
                fetch(cells, ahead, column)
                add_row(counters, np.uint64(cells[i, column]), y, w, criterion)


@compiled
def score_values(
    cells: np.ndarray,
    rows: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
    tried: np.ndarray,
    n_tried: int,
    n_most: int,
    offsets: np.ndarray,
    totals: np.ndarray,
    criterion: int,
    scale: float,
    table: np.ndarray,
    state: np.ndarray,
    logs: np.ndarray,
    counters: np.ndarray,
    split_of: np.ndarray,
    sums: np.ndarray,
    child_terms: np.ndarray,
    pair_terms: np.ndarray,
    terms: np.ndarray,
) -> None:
    """Write the sums of the children's terms by column; inf for one that is constant in the leaf.

    ``label`` and ``weight`` are those of the leaf's rows, ``totals`` their sums, ``n_most`` is a
    bound on the number of children. ``counters`` is all zeros before and after; ``split_of``,
    ``sums``, ``child_terms`` and ``pair_terms`` are room to work in.
    """
    _count(cells, rows, label, weight, tried, n_tried, criterion, counters)
    # Children of two classes with few rows, which are most, have their terms looked up by them.
    width, n_second, few = len(totals), 0, 0
    if width == 2:
        n_first, n_second = int(min(totals[0] + 1, _FEW)), int(min(totals[1] + 1, _FEW))
        if n_first * n_second < n_most:
            few = _FEW
            for pair in range(n_first * n_second):
                sums[pair, 0], sums[pair, 1] = pair // n_second, pair % n_second
            leaf_terms(
                sums, n_first * n_second, width, criterion, scale, table, state, logs, pair_terms
            )
    # The terms of all others are taken together.
    n_others = 0
    for at in range(n_tried):
        column = tried[at]
        first, n_values = offsets[column], offsets[column + 1] - offsets[column]
        by_value = n_values <= len(rows)
        n_children, term = 0, 0.0
        for visit in range(n_values if by_value else len(rows)):
            cell = np.uint64(first + visit)
            if not by_value:
                cell = np.uint64(cells[np.uint64(rows[visit]), np.uint64(column)])
            if width == 2:
                one, two = np.int64(counters[0, cell]), np.int64(counters[1, cell])
                counters[0, cell], counters[1, cell] = 0, 0
                n_children += int(one + two > 0)
                if (one | two) < few:
                    term += pair_terms[np.uint64(one * n_second + two)]
                    continue
                sums[n_others, 0], sums[n_others, 1] = one, two
                split_of[n_others] = at
                n_others += int(one + two > 0)
            elif rows_in(counters, cell, criterion) > 0.0:
                for k in range(width):
                    sums[n_others, k] = counters[k, cell]
                    counters[k, cell] = 0
                split_of[n_others] = at
                n_others += 1
                n_children += 1
        terms[at] = term if n_children > 1 else np.inf
    leaf_terms(sums, n_others, width, criterion, scale, table, state, logs, child_terms)
    for child in range(n_others):
        terms[split_of[child]] += child_terms[child]
