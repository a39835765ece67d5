"""Compiled cuts of a leaf's columns, twin of `grow.Leaves`; importing this imports numba."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdtrue.categories.term_loops import add_row, leaf_terms
from holdtrue.columns.loops import compiled

MOST_CUTS = 4  # `grow.MOST_CUTS`
MIDDLE = 1 << 15  # `grow.MIDDLE`
PARTS = MOST_CUTS + 2  # of the rows of a column: between the cuts, and missing
SIDES = 1 + 2 * (MOST_CUTS + 1)  # most leaves of a column: missing, and both sides of each cut


@compiled
def score_cuts(
    cells: np.ndarray,
    rows: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
    tried: np.ndarray,
    drawn: np.ndarray,
    n_tried: int,
    offsets: np.ndarray,
    n_bins: np.ndarray,
    width: int,
    criterion: int,
    scale: float,
    table: np.ndarray,
    state: np.ndarray,
    logs: np.ndarray,
    bins: np.ndarray,
    parts: np.ndarray,
    sums: np.ndarray,
    side_terms: np.ndarray,
    columns: np.ndarray,
    cuts: np.ndarray,
    terms: np.ndarray,
    n_candidates: int,
) -> Any:
    """Add the cuts of columns to the candidates, and their terms; the number of candidates.

    ``label`` and ``weight`` are those of the leaf's rows, one after the other. A first pass over
    them finds the range of a column's bins, a second sums the rows between its cuts
    (`grow.cuts_between`), and running sums give what lies on either side of each. ``bins``,
    ``parts``, ``sums`` and ``side_terms`` are room to work in.
    """
    n_sides, n_before = 0, n_candidates
    for at in range(n_tried):
        column = tried[at]
        end = offsets[column] + n_bins[column]
        low, high, has_missing = end, np.int64(-1), False
        for r in range(len(rows)):
            cell = np.int64(cells[np.uint64(rows[r]), np.uint64(column)])
            bins[r] = cell
            low = min(low, cell)
            high = max(high, cell if cell < end else np.int64(-1))
            has_missing = has_missing or cell >= end
        if high < 0 or (low == high and not has_missing):
            continue
        shift = 0
        while high - low > MOST_CUTS << shift:
            shift += 1
        first = low + ((drawn[at] << shift) >> 16)
        less = first - (1 << shift) + 1
        for k in range(width):
            for place in range(PARTS):
                parts[k, place] = 0.0
        for r in range(len(rows)):
            cell = np.int64(bins[r])
            in_part = (cell - less) >> shift if cell < end else np.int64(PARTS - 1)
            add_row(parts, np.uint64(in_part), label[r], weight[r], criterion)
        n_cuts = (high - less) >> shift
        for k in range(width):
            sums[n_sides, k] = parts[k, PARTS - 1]
            for place in range(n_cuts):
                parts[k, place + 1] += parts[k, place]
        n_sides += 1
        for cut in range(n_cuts + has_missing):  # missing values alone may be parted from others
            for k in range(width):
                sums[n_sides, k] = parts[k, cut]
                sums[n_sides + 1, k] = parts[k, n_cuts] - parts[k, cut]
            n_sides += 2
            columns[n_candidates] = column
            cuts[n_candidates] = first + (cut << shift) if cut < n_cuts else end - 1
            n_candidates += 1
    leaf_terms(sums, n_sides, width, criterion, scale, table, state, logs, side_terms)
    side, of_missing = 0, 0.0
    for at in range(n_before, n_candidates):
        if at == n_before or columns[at] != columns[at - 1]:
            of_missing = side_terms[side]
            side += 1
        terms[at] = of_missing + (side_terms[side] + side_terms[side + 1])
        side += 2
    return n_candidates
