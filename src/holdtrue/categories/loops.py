"""Compiled loops of trees and their cells. Importing this module imports numba: import it late.

All have twins in NumPy, in `tree`, `grow` and `cells`, and grow the same trees to the last bit (of
log loss: but for the last bit of a logarithm, which rounding to ticks hides).

Criteria are known by their place in `tree.CRITERIA`: 0 ginger, 1 gini, 2 majority,
3 misclassification, 4 information gain, 6 log loss, 7 squared error.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from holdtrue.columns.loops import compiled

part: Callable[..., Any] = numba.njit
_NEAR = 16  # logarithms of counts below it are computed once per leaf; so are terms of two classes
_COARSE = 2.0**-16  # `tree.COARSE`
_BLOCK, _LINE = 32, 32  # rows fetched together; cells in a line of the cache
_MOST_CUTS = 4  # `grow.MOST_CUTS`
_MIDDLE = 1 << 15  # `grow.MIDDLE`
_START, _STOP, _DEPTH, _BORN, _CELL = range(5)  # whole numbers kept of a node


@compiled
def _leaf_terms(
    sums: np.ndarray,
    width: int,
    criterion: int,
    scale: float,
    table: np.ndarray,
    state: np.ndarray,
    terms: np.ndarray,
) -> None:
    """Write the terms of leaves with these sums, shape (n_leaves, width); 0 for an empty one.

    Twin of ``leaf_terms(criterion).terms``. ``state`` is that of the parent. All leaves of a call
    are computed in one loop: numba counts the references of arrays that a call is given.
    """
    near = np.empty(width * _NEAR)
    n_near = _NEAR if criterion == 6 and len(sums) > _NEAR else 0
    for k in range(width):
        for c in range(n_near):
            near[k * _NEAR + c] = math.log(c + state[k])
    for at in range(len(sums)):
        total = sums[at, 0]
        for k in range(1, 0 if criterion == 7 else width):
            total += sums[at, k]
        term, top = 0.0, 0.0
        if total == 0.0:
            pass
        elif criterion == 7:  # squared error
            mean = sums[at, 1] / total
            squares = max(sums[at, 2] - total * mean * mean, 0.0)
            level = ((1.0 - state[1]) * mean - state[0]) / total
            slope = (total + (1.0 - state[1])) / total
            term = (total * level * level + slope * slope * squares) * scale
        elif criterion == 6:  # log loss
            for k in range(width):
                count = sums[at, k]
                if count > 0.0:
                    if count <= n_near:
                        log = near[k * _NEAR + np.int64(count) - 1]
                    else:
                        log = math.log(count - 1.0 + state[k])
                    term += count * np.rint((table[np.int64(total)] - log) * scale)
        elif criterion <= 1:  # ginger, gini
            mixed = total * total
            for k in range(width):
                mixed -= sums[at, k] * sums[at, k]
            if criterion == 1:
                term = np.rint(mixed / total * scale)
            elif total == 1.0:
                term = np.rint((1.0 - 1.0 / width) * scale)
            else:
                term = np.rint(mixed / (total - 1.0) * scale)
        elif criterion == 4:  # information gain
            term = table[np.int64(total)]
            for k in range(width):
                term -= table[np.int64(sums[at, k])]
        else:
            for k in range(width):
                top = max(top, sums[at, k])
            lost = total - top
            if criterion == 2:  # majority
                n_top, n_next = 0, 0
                for k in range(width):
                    n_top += sums[at, k] == top
                    n_next += sums[at, k] == top - 1.0
                if n_top > 1:
                    lost += top
                elif n_next > 0:
                    lost += top * (1.0 - 1.0 / (1.0 + n_next))
            term = np.rint(lost * scale)
        terms[at] = term


@part
def add_row(counters: np.ndarray, at: int, label: Any, weight: Any, criterion: int) -> None:
    """Add a row to the sums that begin at ``at``: its class, or its number."""
    if criterion == 7:
        counters[at] += weight
        counters[at + np.uint64(1)] += weight * label
        counters[at + np.uint64(2)] += weight * label * label
    else:
        counters[at + np.uint64(label)] += weight


@part
def _sum_rows(
    label: np.ndarray, weight: np.ndarray, rows: np.ndarray, criterion: int, sums: np.ndarray
) -> None:
    """Write the sums of some rows, shape (width,)."""
    sums[:] = 0.0
    for i in rows:
        add_row(sums, np.uint64(0), label[i], weight[i], criterion)


@part
def rows_in(counters: np.ndarray, start: int, width: int, criterion: int) -> Any:
    """Rows of the sums that begin at ``start``."""
    if criterion == 7:
        return counters[start]
    total = 0.0
    for k in range(width):
        total += counters[start + np.uint64(k)]
    return total


@compiled
def _count(
    cells: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    width: int,
    criterion: int,
    counters: np.ndarray,
) -> Any:
    """Add rows to the counters of their cells in some columns; what is returned means nothing."""
    # Row by row: no two increments in succession wait for the same counter. Unsigned numbers
    # index without a test for negative ones.
    step, n_columns, fetched = np.uint64(width), cells.shape[1], 0
    if criterion == 7:
        for i in rows:
            for j in columns:
                add_row(counters, np.uint64(cells[i, j]) * step, label[i], weight[i], criterion)
    elif len(columns) < n_columns:
        for i in rows:
            y, w = np.uint64(label[i]), weight[i]
            for j in columns:
                counters[np.uint64(cells[i, j]) * step + y] += w
    else:
        for first in range(0, len(rows), _BLOCK):
            block = rows[first : first + _BLOCK]
            for i in block:  # fetched together, for a row alone would be waited for
                for j in range(0, n_columns, _LINE):
                    fetched += int(cells[i, j])
                fetched += int(cells[i, n_columns - 1])
            for i in block:
                y, w = np.uint64(label[i]), weight[i]
                for j in range(n_columns):
                    counters[np.uint64(cells[i, j]) * step + y] += w
    return fetched


@compiled
def _sum_terms(
    cells: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    offsets: np.ndarray,
    sums: np.ndarray,
    width: int,
    criterion: int,
    scale: float,
    table: np.ndarray,
    state: np.ndarray,
    counters: np.ndarray,
    terms: np.ndarray,
) -> None:
    """Sums of the children's terms by column, from the counters of a leaf, which are cleared.

    ``sums`` are those of the leaf, ``rows`` its places in ``cells``. Columns that are constant in
    the leaf have infinite terms.
    """
    step, n_visits = np.uint64(width), 0
    for j in columns:
        n_visits += min(offsets[j + 1] - offsets[j], len(rows))
    # Terms by small counts of two classes, where most children are looked up in them.
    n_first, n_second = 0, 0
    if width == 2:
        n_first = min(int(sums[0]) + 1, _NEAR)
        n_second = min(int(sums[1]) + 1, _NEAR)
    by_pair = 0 < n_first * n_second < n_visits
    pairs = np.empty((n_first * n_second if by_pair else 0, width))
    by_counts = np.empty(len(pairs))
    for at in range(len(pairs)):
        pairs[at, 0], pairs[at, 1] = at // n_second, at % n_second
    _leaf_terms(pairs, width, criterion, scale, table, state, by_counts)
    # Sums of the other children; their terms are taken together.
    others, starts = np.empty((n_visits, width)), np.empty(len(columns), dtype=np.int64)
    n_others = 0
    for at in range(len(columns)):
        j = columns[at]
        n_values = offsets[j + 1] - offsets[j]
        by_value = n_values <= len(rows)
        n_children, term, starts[at] = 0, 0.0, n_others
        for visit in range(n_values if by_value else len(rows)):
            cell = offsets[j] + visit if by_value else np.int64(cells[rows[visit], j])
            start = np.uint64(cell) * step
            if by_pair:
                first, second = counters[start], counters[start + np.uint64(1)]
                if first < n_first and second < n_second:
                    n_children += first + second > 0
                    term += by_counts[int(first) * n_second + int(second)]
                    counters[start] = 0
                    counters[start + np.uint64(1)] = 0
                    continue
            elif rows_in(counters, start, width, criterion) == 0.0:
                continue
            for k in range(width):
                others[n_others, k] = counters[start + np.uint64(k)]
                counters[start + np.uint64(k)] = 0
            n_others += 1
        n_children += n_others - starts[at]
        terms[at] = term if n_children > 1 else np.inf
    other_terms = np.empty(n_others)
    _leaf_terms(others[:n_others], width, criterion, scale, table, state, other_terms)
    for at in range(len(columns)):
        stop = starts[at + 1] if at + 1 < len(columns) else n_others
        for other in range(starts[at], stop):
            terms[at] += other_terms[other]


@compiled
def _score_cuts(
    cells: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
    rows: np.ndarray,
    tried: np.ndarray,
    drawn: np.ndarray,
    offsets: np.ndarray,
    n_bins: np.ndarray,
    width: int,
    criterion: int,
    scale: float,
    table: np.ndarray,
    state: np.ndarray,
    columns: np.ndarray,
    cuts: np.ndarray,
    terms: np.ndarray,
    n_candidates: int,
) -> Any:
    """Add the cuts of columns to the candidates, and their terms; the number of candidates.

    A first pass over the rows finds the bins of the leaf, a second sums the rows between the cuts
    (`grow.cuts_between`), and running sums give what lies on either side of each.
    """
    step, n_parts = np.uint64(width), _MOST_CUTS + 2  # the last part is of missing values
    end, low, high = np.empty_like(tried), np.empty_like(tried), np.empty_like(tried)
    for at in range(len(tried)):
        end[at] = offsets[tried[at]] + n_bins[tried[at]]
        low[at], high[at] = end[at], -1
    for i in rows:
        for at in range(len(tried)):
            cell = np.int64(cells[i, tried[at]])
            if cell < end[at]:
                low[at] = min(low[at], cell)
                high[at] = max(high[at], cell)
    shift = np.zeros_like(tried)
    for at in range(len(tried)):
        while high[at] - low[at] > _MOST_CUTS << shift[at]:
            shift[at] += 1
        low[at] += (drawn[at] << shift[at]) >> 16  # from here on the first cut
    parts = np.zeros(len(tried) * n_parts * width)
    for i in rows:
        for at in range(len(tried)):
            cell = np.int64(cells[i, tried[at]])
            place = n_parts - 1
            if cell < end[at]:
                place = (cell - low[at] + (1 << shift[at]) - 1) >> shift[at]
            place += at * n_parts
            add_row(parts, np.uint64(place) * step, label[i], weight[i], criterion)
    # Sums of the missing rows of a column, then of both sides of each of its cuts.
    sides, n_sides = np.empty((2 * len(tried) * n_parts, width)), 0
    n_cuts = np.zeros_like(tried)
    for at in range(len(tried)):
        first = at * n_parts * width
        missing = first + (n_parts - 1) * width
        last = first
        if high[at] >= 0:
            n_cuts[at] = (high[at] - low[at] + (1 << shift[at]) - 1) >> shift[at]
            last += n_cuts[at] * width
            for place in range(first + width, last + width):
                parts[place] += parts[place - width]
            # Missing values alone may be parted from all others.
            n_cuts[at] += rows_in(parts, np.uint64(missing), width, criterion) > 0.0
        for k in range(width):
            sides[n_sides, k] = parts[missing + k]
        n_sides += 1
        for cut in range(n_cuts[at]):
            for k in range(width):
                sides[n_sides, k] = parts[first + cut * width + k]
                sides[n_sides + 1, k] = parts[last + k] - sides[n_sides, k]
            n_sides += 2
    side_terms = np.empty(n_sides)
    _leaf_terms(sides[:n_sides], width, criterion, scale, table, state, side_terms)
    side = 0
    for at in range(len(tried)):
        of_missing = side_terms[side]
        for cut in range(n_cuts[at]):
            columns[n_candidates] = tried[at]
            below = low[at] + (cut << shift[at])
            cuts[n_candidates] = below if below < high[at] else end[at] - 1
            terms[n_candidates] = of_missing + (
                side_terms[side + 2 * cut + 1] + side_terms[side + 2 * cut + 2]
            )
            n_candidates += 1
        side += 1 + 2 * n_cuts[at]
    return n_candidates


@part
def _child_cell(cell: int, cut: int, last: int) -> Any:
    """Cell by which the child is known: that of a value, or the last on its side of a cut.

    ``last`` is the last bin; what is above it is missing.
    """
    if cut < 0 or cell > last:
        return cell
    return cut if cell <= cut else last


@compiled
def _child_values(
    sums: np.ndarray,
    width: int,
    criterion: int,
    scale: float,
    table: np.ndarray,
    parent: np.ndarray,
    values: np.ndarray,
) -> None:
    """Write terms and states of children: twin of ``leaf_terms(criterion).children``."""
    terms = np.empty(len(sums))  # values[:, 0] would have `_leaf_terms` compiled once more
    _leaf_terms(sums, width, criterion, scale, table, parent, terms)
    for child in range(len(sums)):
        values[child, 0] = terms[child]
        if criterion == 7:
            values[child, 1] = (sums[child, 1] + parent[0]) / sums[child, 0]
            values[child, 2] = (parent[1] - 1.0) / sums[child, 0]
        elif criterion == 6:
            total, term = rows_in(sums[child], np.uint64(0), width, criterion), 0.0
            for k in range(width):
                count = sums[child, k]
                if count > 0.0:
                    values[child, 1 + k] = (count - 1.0 + parent[k]) / total
                    term += count * np.rint(-math.log(values[child, 1 + k]) * scale)
                else:
                    values[child, 1 + k] = parent[k] / (total + 1.0)
            values[child, 0] = term


@part
def _is_mixed(sums: np.ndarray, start: int, total: float, width: int, criterion: int) -> Any:
    """Whether the rows of a leaf differ in their labels."""
    if criterion == 7:
        mean = sums[start + np.uint64(1)] / total
        squares = sums[start + np.uint64(2)]
        return squares - total * mean * mean > 1e-12 * squares
    is_pure = False
    for k in range(width):
        is_pure = is_pure or sums[start + np.uint64(k)] == total
    return not is_pure


@compiled
def _is_clear(
    cells: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
    rows: np.ndarray,
    column: int,
    cut: int,
    last: int,
    sums: np.ndarray,
    total: float,
    width: int,
    criterion: int,
    state: np.ndarray,
    counters: np.ndarray,
    n_errors: float,
) -> Any:
    """Whether a split gains more than ``n_errors`` standard errors: `grow.Leaves.gain`."""
    step = np.uint64(width)
    for i in rows:
        start = np.uint64(_child_cell(np.int64(cells[i, column]), cut, last)) * step
        add_row(counters, start, label[i], weight[i], criterion)
    gains = np.empty(len(rows))
    gained, over_chance, chance = 0.0, 0.0, 1.0 - 1.0 / width
    for at in range(len(rows)):
        i = rows[at]
        start = np.uint64(_child_cell(np.int64(cells[i, column]), cut, last)) * step
        n = rows_in(counters, start, width, criterion)
        if criterion == 7:
            y = label[i]
            before = y - state[0] - state[1] * y
            mean = (counters[start + np.uint64(1)] + state[0]) / n
            after = y - mean - (state[1] - 1.0) / n * y
            gains[at] = before * before - after * after
        else:
            k = int(label[i])
            count = float(counters[start + np.uint64(k)])
            if criterion == 6:
                gains[at] = math.log((count - 1.0 + state[k]) / n) - math.log(state[k])
            else:
                before = 1.0 - (sums[k] - 1.0) / max(total - 1.0, 1.0)
                gains[at] = before - (1.0 - (count - 1.0) / (n - 1.0) if n > 1.0 else chance)
                over_chance += weight[i] * (before - chance)
        gained += weight[i] * gains[at]
    mean, squares = gained / total, 0.0
    for at in range(len(rows)):
        squares += weight[rows[at]] * (gains[at] - mean) ** 2
        start = np.uint64(_child_cell(np.int64(cells[rows[at], column]), cut, last)) * step
        for k in range(width):
            counters[start + np.uint64(k)] = 0
    if criterion < 6:  # `kernel.ginger_gain`
        gained, squares = gained - max(over_chance, 0.0), 2.0 * squares
    else:  # `tree._paired`
        squares *= total / max(total - 1.0, 1.0)
    return gained > n_errors * math.sqrt(squares)


# --- a whole tree -------------------------------------------------------------------------------


@part
def _sort_rows(cells: np.ndarray, column: int, rows: np.ndarray, out: np.ndarray) -> None:
    """Write the rows by their cells, of equal ones in their order; a merge sort."""
    n = len(rows)
    here, merged = rows.copy(), rows.copy()
    width = 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            left, right = start, middle
            for at in range(start, stop):
                if right >= stop or (
                    left < middle and cells[here[left], column] <= cells[here[right], column]
                ):
                    merged[at] = here[left]
                    left += 1
                else:
                    merged[at] = here[right]
                    right += 1
        here, merged = merged, here
        width *= 2
    for at in range(n):
        out[at] = here[at]


@compiled
def _split_rows(
    cells: np.ndarray,
    column: int,
    cut: int,
    last: int,
    offsets: np.ndarray,
    rows: np.ndarray,
    starts: np.ndarray,
    value_of: np.ndarray,
    size: np.ndarray,
) -> Any:
    """Order the rows of a leaf by their cells; the number of its children.

    ``starts`` is given the place where each child begins, and where the last one ends; ``size``
    is all zeros before and after. Both, and ``value_of``, have room for more.
    """
    n_rows, first = len(rows), offsets[column]
    n_values = offsets[column + 1] - first if cut < 0 else 3
    if cut >= 0 or n_values <= 4 * n_rows:
        for at in range(n_rows):
            cell = np.int64(cells[rows[at], column])
            value_of[at] = cell - first if cut < 0 else int(cell > cut) + int(cell > last)
            size[value_of[at] + 1] += 1
        for value in range(n_values):
            size[value + 1] += size[value]
        for at in range(n_rows):
            starts[size[value_of[at]]] = rows[at]
            size[value_of[at]] += 1
        for value in range(n_values + 1):
            size[value] = 0
    else:
        _sort_rows(cells, column, rows, starts)
    for at in range(n_rows):
        rows[at] = starts[at]
    n_children, before = 0, -1
    for at in range(n_rows):
        value = _child_cell(np.int64(cells[rows[at], column]), cut, last)
        if value != before:
            before = value
            starts[n_children] = at
            n_children += 1
    starts[n_children] = n_rows
    return n_children


@part
def _set_node(
    nodes: np.ndarray, node: int, start: int, stop: int, depth: int, born: int, cell: int
) -> None:
    """Write what is kept of a node; numba takes seconds to compile the same of a tuple."""
    nodes[node, _START], nodes[node, _STOP], nodes[node, _DEPTH] = start, stop, depth
    nodes[node, _BORN], nodes[node, _CELL] = born, cell


@numba.njit
def _longer(array: np.ndarray) -> Any:
    """The array with room for as much again."""
    longer = np.empty((2 * array.shape[0], array.shape[1]), dtype=array.dtype)
    for i in range(len(array)):
        for j in range(array.shape[1]):
            longer[i, j] = array[i, j]
    return longer


@compiled
def grow_whole(
    cells: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
    rows: np.ndarray,
    offsets: np.ndarray,
    n_bins: np.ndarray,
    first_column: np.ndarray,
    n_drawn: int,
    again: bool,
    seed: int,
    width: int,
    criterion: int,
    scale: float,
    table: np.ndarray,
    root_term: float,
    root_state: np.ndarray,
    counters: np.ndarray,
    in_order: bool,
    only_clear: bool,
    max_splits: int,
    max_depth: int,
    min_rows: int,
) -> Any:
    """Twin of `grow.grow_tree` with `grow._Heap`.

    The tree sees ``rows`` alone, ascending. They stay where they are; a leaf is a stretch of
    their permutation. ``counters`` is all zeros before and after. ``max_splits`` is negative for
    none: then only splits that gain are made.
    """
    n_features = len(first_column) - 1
    spare, value_of = np.empty(len(rows) + 1, rows.dtype), np.empty_like(rows)
    rows = rows.copy()
    nodes = np.empty((64, 5), dtype=np.int64)
    sums, values = np.empty((64, width)), np.empty((64, 1 + len(root_state)))  # term and state
    splits = np.empty((64, 3), dtype=np.int64)  # node, column, cut
    # Columns that are tried by value, and in two with the place of their first cuts.
    by_value, in_two, drawn = np.arange(len(n_bins)), np.arange(len(n_bins)), np.arange(len(n_bins))
    n_by_value, n_in_two, most_values = 0, 0, 3
    for j in range(len(n_bins)):
        if n_bins[j] > 0:
            in_two[n_in_two], drawn[n_in_two] = j, _MIDDLE
            n_in_two += 1
        else:
            by_value[n_by_value] = j
            n_by_value += 1
            most_values = max(most_values, offsets[j + 1] - offsets[j])
    most_candidates = n_by_value + n_in_two * (_MOST_CUTS + 1)
    columns = np.empty(most_candidates, dtype=np.int64)
    cuts = np.empty(most_candidates, dtype=np.int64)
    terms, gains = np.empty(most_candidates), np.empty(most_candidates)
    features = np.arange(n_features)
    size = np.zeros(most_values + 1, dtype=np.int64)
    withheld_depth, withheld_rows = False, False
    n_nodes, n_seen, n_splits, now = 1, 0, 0, np.uint64(seed)
    _set_node(nodes, 0, 0, len(rows), 0, -1, -1)
    _sum_rows(label, weight, rows, criterion, sums[0])
    values[0, 0] = root_term
    for k in range(len(root_state)):  # an array written to a slice takes seconds to compile
        values[0, 1 + k] = root_state[k]
    # See `grow._Heap`; in order they come by their numbers.
    heap = [(0.0, 0, 0, 0, 0)]
    heap.pop()
    while True:
        while n_seen < n_nodes:
            total = rows_in(sums[n_seen], np.uint64(0), width, criterion)
            if _is_mixed(sums[n_seen], np.uint64(0), total, width, criterion):
                if total < min_rows:
                    withheld_rows = True
                elif nodes[n_seen, _DEPTH] >= max_depth:
                    withheld_depth = True
                else:
                    bound = 0.0 if in_order else -np.rint(values[n_seen, 0] * _COARSE)
                    heapq.heappush(heap, (bound, 0, n_seen, -1, -1))
            n_seen += 1
        if n_splits == max_splits or len(heap) == 0:
            break
        _, scored, node, column, cut = heapq.heappop(heap)
        inside = rows[nodes[node, _START] : nodes[node, _STOP]]
        state = values[node, 1:].copy()
        if scored == 0:
            total = rows_in(sums[node], np.uint64(0), width, criterion)
            term = values[node, 0]
            charged = term
            if criterion == 0 or criterion == 2:  # departure 4 of `tree`
                charged = min(charged, np.rint(total * ((1.0 - 1.0 / width) * scale)))
            base = charged if in_order else term
            least = -np.inf
            if max_splits < 0:
                least = 0.0 if in_order else np.rint((term - charged) * _COARSE)
            n_done, n_candidates, enough = 0, 0, False
            while not enough and n_done < n_features:  # see `grow.FeatureDraws.batches`
                if n_drawn > 0:
                    n_by_value, n_in_two = 0, 0
                    for f in range(n_done, min(n_done + n_drawn, n_features)):
                        now += np.uint64(0x9E3779B97F4A7C15)
                        mixed = (now ^ (now >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                        mixed = (mixed ^ (mixed >> np.uint64(31))) >> np.uint64(32)
                        other = f + np.int64((mixed * np.uint64(n_features - f)) >> np.uint64(32))
                        features[f], features[other] = features[other], features[f]
                        for j in range(first_column[features[f]], first_column[features[f] + 1]):
                            if n_bins[j] > 0:
                                in_two[n_in_two] = j
                                drawn[n_in_two] = np.int64(mixed & np.uint64(0xFFFF))
                                n_in_two += 1
                            else:
                                by_value[n_by_value] = j
                                n_by_value += 1
                n_done += n_drawn if again else n_features
                n_candidates = n_by_value
                if n_by_value > 0:
                    tried = by_value[:n_by_value]
                    _count(cells, label, weight, inside, tried, width, criterion, counters)
                    _sum_terms(
                        cells, inside, tried, offsets, sums[node], width, criterion, scale, table,
                        state, counters, terms,
                    )  # fmt: skip
                    for at in range(n_by_value):
                        columns[at], cuts[at] = by_value[at], -1
                if n_in_two > 0:
                    n_candidates = _score_cuts(
                        cells, label, weight, inside, in_two[:n_in_two], drawn, offsets, n_bins,
                        width, criterion, scale, table, state, columns, cuts, terms, n_candidates,
                    )  # fmt: skip
                best_term, n_finite = np.inf, 0
                for at in range(n_candidates):
                    gains[at] = np.rint((base - terms[at]) * _COARSE)
                    best_term = min(best_term, terms[at])
                    n_finite += terms[at] < np.inf
                enough = np.rint((charged - best_term) * _COARSE) > 0
            column = -1
            while column < 0:
                best, best_at = least, -1
                for at in range(n_candidates):  # of equal gains that of the first column and cut
                    if gains[at] > best or (
                        gains[at] == best and best_at >= 0 and columns[at] < columns[best_at]
                    ):
                        best, best_at = gains[at], at
                if best_at < 0:
                    break
                gains[best_at] = -np.inf
                last = offsets[columns[best_at]] + n_bins[columns[best_at]] - 1
                if not only_clear or _is_clear(
                    cells, label, weight, inside, columns[best_at], cuts[best_at], last, sums[node],
                    total, width, criterion, state, counters, math.sqrt(2.0 * math.log(n_finite)),
                ):  # fmt: skip
                    column, cut = columns[best_at], cuts[best_at]
            if column >= 0 and not in_order:
                heapq.heappush(heap, (-best, 1, node, column, cut))
            if column < 0 or not in_order:
                continue
        if n_splits == len(splits):
            splits = _longer(splits)
        splits[n_splits, 0], splits[n_splits, 1], splits[n_splits, 2] = node, column, cut
        last = offsets[column] + n_bins[column] - 1
        n_children = _split_rows(cells, column, cut, last, offsets, inside, spare, value_of, size)
        while n_nodes + n_children > len(nodes):
            nodes, sums, values = _longer(nodes), _longer(sums), _longer(values)
        begin, depth = nodes[node, _START], nodes[node, _DEPTH] + 1
        for at in range(n_children):
            child = n_nodes + at
            start, stop = begin + spare[at], begin + spare[at + 1]
            value = _child_cell(np.int64(cells[rows[start], column]), cut, last)
            _set_node(nodes, child, start, stop, depth, n_splits, value)
            _sum_rows(label, weight, rows[start:stop], criterion, sums[child])
        n_before = n_nodes
        n_nodes += n_children
        _child_values(
            sums[n_before:n_nodes], width, criterion, scale, table, state, values[n_before:n_nodes]
        )
        n_splits += 1
    return (
        splits[:n_splits],
        nodes[:n_nodes, _BORN].copy(), nodes[:n_nodes, _CELL].copy(), sums[:n_nodes].copy(),
        values[:n_nodes, 0].copy(), withheld_depth, withheld_rows,
    )  # fmt: skip


@compiled
def end_nodes(
    cells: np.ndarray,
    rows: np.ndarray,
    column: np.ndarray,
    is_cut: np.ndarray,
    split: np.ndarray,
    first: np.ndarray,
    cell: np.ndarray,
) -> Any:
    """Twin of `tree.Tree.apply`: children of split s are ``first[s]`` to ``first[s + 1] - 1``."""
    n_splits = len(column)
    ends = np.zeros(len(rows), dtype=np.int64)
    for at in range(len(rows)):
        i, node = rows[at], 0
        while split[node] < n_splits:
            s = split[node]
            value = np.int64(cells[i, column[s]])
            low, high = first[s], first[s + 1]
            while low < high:
                middle = (low + high) // 2
                if cell[middle] < value:
                    low = middle + 1
                else:
                    high = middle
            if low == first[s + 1] or not (is_cut[s] or cell[low] == value):
                break
            node = low
        ends[at] = node
    return ends


@compiled
def mix_with_parents(counts: np.ndarray, parent: np.ndarray, shares: np.ndarray) -> None:
    """Write the shares of every node below the root: twin of `tree.node_probabilities`."""
    for node in range(1, len(counts)):  # children come after their parents
        above, total = parent[node], counts[node].sum() + 1.0
        for k in range(counts.shape[1]):
            shares[node, k] = (counts[node, k] + shares[above, k]) / total


# --- cells of rows; rows lie together in memory, so all columns are gone through at once ----------


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
