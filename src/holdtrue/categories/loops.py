"""Compiled loops that grow trees, and find the leaves of rows. They import numba: import them late.

All have twins in NumPy, in `tree` and `grow`, and grow the same trees to the last bit (of log loss:
but for the last bit of a logarithm, which rounding to ticks hides). Splits are scored in
`value_loops` and `cut_loops`, leaves in `term_loops`, which says how criteria are numbered.
"""

from __future__ import annotations

import heapq
import math
from typing import Any

import numba
import numpy as np

from holdtrue.categories.cell_loops import AHEAD, fetch
from holdtrue.categories.cut_loops import MIDDLE, MOST_CUTS, PARTS, SIDES, score_cuts
from holdtrue.categories.term_loops import (
    NEAR,
    add_row,
    forget_logs,
    is_mixed,
    leaf_terms,
    node_rows,
    part,
    rows_in,
)
from holdtrue.categories.value_loops import N_PAIRS, score_values
from holdtrue.columns.loops import compiled

_COARSE = 2.0**-16  # `tree.COARSE`
_SORTED = 32  # rows are sorted where a column has this many times as many values
_START, _STOP, _DEPTH, _BORN, _CELL = range(5)  # whole numbers kept of a node


@part
def _child_cell(cell: int, cut: int, last: int) -> Any:
    """The cell that stands for a child: that of its value, or the last on its side of a cut.

    ``last`` is the last bin; what is above it is missing.
    """
    if cut < 0 or cell > last:
        return cell
    return cut if cell <= cut else last


@compiled
def _child_values(
    sums: np.ndarray,
    first: int,
    n_children: int,
    width: int,
    criterion: int,
    scale: float,
    table: np.ndarray,
    parent: np.ndarray,
    logs: np.ndarray,
    values: np.ndarray,
) -> None:
    """Write terms and states of children, from ``first`` on: twin of ``leaf_terms(...).children``.

    ``parent`` is the state above them.
    """
    if criterion != 6:
        terms = np.empty(n_children)  # values[:, 0] would have `leaf_terms` compiled once more
        below = sums[first : first + n_children]
        leaf_terms(below, n_children, width, criterion, scale, table, parent, logs, terms)
        for at in range(n_children):
            values[first + at, 0] = terms[at]
    for child in range(first, first + n_children):
        if criterion == 7:
            values[child, 1] = (sums[child, 1] + parent[0]) / sums[child, 0]
            values[child, 2] = (parent[1] - 1.0) / sums[child, 0]
        elif criterion == 6:
            total, term = node_rows(sums, child, width, criterion), 0.0
            for k in range(width):
                count = sums[child, k]
                if count > 0.0:
                    values[child, 1 + k] = (count - 1.0 + parent[k]) / total
                    term += count * np.rint(-math.log(values[child, 1 + k]) * scale)
                else:
                    values[child, 1 + k] = parent[k] / (total + 1.0)
            values[child, 0] = term


@compiled
def _is_clear(
    cells: np.ndarray,
    rows: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
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
    for at in range(len(rows)):
        child = np.uint64(_child_cell(np.int64(cells[rows[at], column]), cut, last))
        add_row(counters, child, label[at], weight[at], criterion)
    gains = np.empty(len(rows))
    gained, over_chance, chance = 0.0, 0.0, 1.0 - 1.0 / width
    for at in range(len(rows)):
        child = np.uint64(_child_cell(np.int64(cells[rows[at], column]), cut, last))
        n = rows_in(counters, child, criterion)
        if criterion == 7:
            y = label[at]
            before = y - state[0] - state[1] * y
            mean = (counters[1, child] + state[0]) / n
            after = y - mean - (state[1] - 1.0) / n * y
            gains[at] = before * before - after * after
        else:
            k = int(label[at])
            count = float(counters[k, child])
            if criterion == 6:
                gains[at] = math.log((count - 1.0 + state[k]) / n) - math.log(state[k])
            else:
                before = 1.0 - (sums[k] - 1.0) / max(total - 1.0, 1.0)
                gains[at] = before - (1.0 - (count - 1.0) / (n - 1.0) if n > 1.0 else chance)
                over_chance += weight[at] * (before - chance)
        gained += weight[at] * gains[at]
    mean, squares = gained / total, 0.0
    for at in range(len(rows)):
        squares += weight[at] * (gains[at] - mean) ** 2
        child = np.uint64(_child_cell(np.int64(cells[rows[at], column]), cut, last))
        for k in range(width):
            counters[k, child] = 0
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


@part
def _set_child(
    nodes: np.ndarray,
    sums: np.ndarray,
    child: int,
    start: int,
    stop: int,
    cell: int,
    counters: np.ndarray,
    value: int,
) -> None:
    """Write where the rows of a child lie, its cell, and its sums, whose counters are cleared."""
    nodes[child, _START], nodes[child, _STOP], nodes[child, _CELL] = start, stop, cell
    for k in range(len(counters)):
        sums[child, k] = counters[k, value]
        counters[k, value] = 0


@compiled
def _split_rows(
    cells: np.ndarray,
    rows: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
    begin: int,
    column: int,
    cut: int,
    last: int,
    offsets: np.ndarray,
    criterion: int,
    counters: np.ndarray,
    spare: np.ndarray,
    value_of: np.ndarray,
    size: np.ndarray,
    nodes: np.ndarray,
    sums: np.ndarray,
    first_child: int,
) -> Any:
    """Order the rows of a leaf by their cells, and write its children; their number.

    ``label`` and ``weight`` are those of the rows, one after the other; ``begin`` is where the rows
    lie among all. ``counters`` and ``size`` are all zeros before and after; ``spare`` and
    ``value_of`` are room to work in.
    """
    n_rows, first, n_children = len(rows), offsets[column], 0
    if cut >= 0:
        # Each row is written to all three children, and the next one over it but where it belongs.
        n_up_to, n_above, n_missing = 0, 0, 0
        for at in range(n_rows):
            row = rows[at]
            cell = np.int64(cells[np.uint64(row), np.uint64(column)])
            above, missing = int(cell > cut), int(cell > last)
            add_row(counters, np.uint64(above + missing), label[at], weight[at], criterion)
            rows[n_up_to], spare[n_above], value_of[n_missing] = row, row, row
            n_up_to += 1 - above
            n_above += above - missing
            n_missing += missing
        stop = 0
        for value in range(3):
            start = stop
            stop += n_up_to if value == 0 else n_above if value == 1 else n_missing
            if stop > start:
                child, up_to = first_child + n_children, cut if value == 0 else last + value - 1
                _set_child(nodes, sums, child, begin + start, begin + stop, up_to, counters, value)
                n_children += 1
        for at in range(n_above):
            rows[n_up_to + at] = spare[at]
        for at in range(n_missing):
            rows[n_up_to + n_above + at] = value_of[at]
        return n_children
    n_values, start = offsets[column + 1] - first, 0
    for at in range(n_rows):
        fetch(cells, rows[min(at + AHEAD, n_rows - 1)], column)
        value_of[at] = np.int64(cells[np.uint64(rows[at]), np.uint64(column)]) - first
        place = np.uint64(value_of[at])
        size[place] += 1
        add_row(counters, place, label[at], weight[at], criterion)
    if n_values <= _SORTED * n_rows:
        for value in range(n_values):
            if size[value] > 0:
                child, stop = first_child + n_children, start + size[value]
                _set_child(
                    nodes, sums, child, begin + start, begin + stop, first + value,
                    counters, value,
                )  # fmt: skip
                size[value], start = start, stop
                n_children += 1
        for at in range(n_rows):
            place = np.uint64(value_of[at])
            spare[np.uint64(size[place])] = rows[at]
            size[place] += 1
        for value in range(n_values):
            size[value] = 0
    else:
        _sort_rows(cells, column, rows, spare)
        for stop in range(1, n_rows + 1):
            value = np.int64(cells[spare[start], column]) - first
            if stop == n_rows or np.int64(cells[spare[stop], column]) - first != value:
                _set_child(
                    nodes, sums, first_child + n_children, begin + start, begin + stop,
                    first + value, counters, value,
                )  # fmt: skip
                size[value], start = 0, stop
                n_children += 1
    for at in range(n_rows):
        rows[at] = spare[at]
    return n_children


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
    criterion: int,
    scale: float,
    table: np.ndarray,
    root: np.ndarray,
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
    n_features, width, rows = len(first_column) - 1, len(root), rows.copy()
    nodes = np.empty((64, 5), dtype=np.int64)
    sums, values = np.empty((64, width)), np.empty((64, 1 + len(root_state)))  # term and state
    splits = np.empty((64, 3), dtype=np.int64)  # node, column, cut
    # Columns that are tried by value, and in two with the place of their first cuts.
    by_value, in_two, drawn = np.arange(len(n_bins)), np.arange(len(n_bins)), np.arange(len(n_bins))
    n_by_value, n_in_two, most_values = 0, 0, 3
    for j in range(len(n_bins)):
        if n_bins[j] > 0:
            in_two[n_in_two], drawn[n_in_two] = j, MIDDLE
            n_in_two += 1
        else:
            by_value[n_by_value] = j
            n_by_value += 1
            most_values = max(most_values, offsets[j + 1] - offsets[j])
    most_candidates = n_by_value + n_in_two * (MOST_CUTS + 1)
    columns = np.empty(most_candidates, dtype=np.int64)
    cuts = np.empty(most_candidates, dtype=np.int64)
    terms, gains = np.empty(most_candidates), np.empty(most_candidates)
    features = np.arange(n_features)
    labels, weights = label[rows], weight[rows]  # in the order of the rows, as it changes
    # Room to work in: for the rows of a leaf, for a column's values, for children that are tried.
    spare, value_of = np.empty_like(rows), np.empty_like(rows)
    size = np.zeros(most_values, dtype=np.int32)
    state, logs = root_state.copy(), np.empty((width, NEAR))
    parts, pair_terms = np.empty((width, PARTS), dtype=counters.dtype), np.empty(N_PAIRS)
    n_tried = n_in_two * SIDES
    tried_sums, tried_terms = np.empty((n_tried, width)), np.empty(n_tried)
    split_of = np.empty(n_tried, dtype=np.int64)
    withheld_depth, withheld_rows = False, False
    n_nodes, n_seen, n_splits, now = 1, 0, 0, np.uint64(seed)
    nodes[0, _START], nodes[0, _STOP], nodes[0, _DEPTH] = 0, len(rows), 0
    nodes[0, _BORN], nodes[0, _CELL] = -1, -1
    for k in range(width):  # an array written to a slice takes seconds to compile
        sums[0, k] = root[k]
    values[0, 0] = root_term
    for k in range(len(root_state)):
        values[0, 1 + k] = root_state[k]
    # See `grow._Heap`; in order nodes come by their numbers, without one.
    heap = [(0.0, 0, 0, 0, 0)]
    heap.pop()
    while True:
        node, scored, column, cut = -1, 0, -1, -1
        while n_seen < n_nodes and node < 0:
            total = node_rows(sums, n_seen, width, criterion)
            if is_mixed(sums, n_seen, total, width, criterion):
                if total < min_rows:
                    withheld_rows = True
                elif nodes[n_seen, _DEPTH] >= max_depth:
                    withheld_depth = True
                elif in_order:
                    node = n_seen
                else:
                    bound = -np.rint(values[n_seen, 0] * _COARSE)
                    heapq.heappush(heap, (bound, 0, n_seen, -1, -1))
            n_seen += 1
        if not in_order and n_splits != max_splits and len(heap) > 0:
            _, scored, node, column, cut = heapq.heappop(heap)
        if node < 0:
            break
        begin, stop = nodes[node, _START], nodes[node, _STOP]
        inside, y, w = rows[begin:stop], labels[begin:stop], weights[begin:stop]
        for k in range(len(state)):
            state[k] = values[node, 1 + k]
        if scored == 0:
            total = node_rows(sums, node, width, criterion)
            forget_logs(logs, sums, node, criterion)
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
                n_candidates, n_tried = n_by_value, 1
                for at in range(n_by_value):
                    columns[at], cuts[at] = by_value[at], -1
                    n_tried += min(offsets[by_value[at] + 1] - offsets[by_value[at]], len(inside))
                if n_by_value > 0:
                    if n_tried > len(tried_terms):
                        tried_sums, tried_terms = np.empty((n_tried, width)), np.empty(n_tried)
                        split_of = np.empty(n_tried, dtype=np.int64)
                    score_values(
                        cells, inside, y, w, by_value, n_by_value, n_tried,
                        offsets, sums[node], criterion, scale, table, state, logs, counters,
                        split_of, tried_sums, tried_terms, pair_terms, terms,
                    )  # fmt: skip
                if n_in_two > 0:
                    n_candidates = score_cuts(
                        cells, inside, y, w, in_two, drawn, n_in_two, offsets, n_bins,
                        width, criterion, scale, table, state, logs,
                        value_of, parts, tried_sums, tried_terms,
                        columns, cuts, terms, n_candidates,
                    )  # fmt: skip
                best_term, n_finite = np.inf, 0
                for at in range(n_candidates):
                    gains[at] = np.rint((base - terms[at]) * _COARSE)
                    best_term = min(best_term, terms[at])
                    n_finite += terms[at] < np.inf
                enough = np.rint((charged - best_term) * _COARSE) > 0
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
                    cells, inside, y, w, columns[best_at], cuts[best_at], last,
                    sums[node], total, width, criterion, state, counters,
                    math.sqrt(2.0 * math.log(n_finite)),
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
        while n_nodes + min(offsets[column + 1] - offsets[column], len(inside)) > len(nodes):
            nodes, sums, values = _longer(nodes), _longer(sums), _longer(values)
        n_children = _split_rows(
            cells, inside, y, w, begin, column, cut, last, offsets, criterion,
            counters, spare, value_of, size, nodes, sums, n_nodes,
        )  # fmt: skip
        for at in range(len(inside)):
            i = np.uint64(inside[at])
            y[at], w[at] = label[i], weight[i]
        for child in range(n_nodes, n_nodes + n_children):
            nodes[child, _DEPTH], nodes[child, _BORN] = nodes[node, _DEPTH] + 1, n_splits
        _child_values(
            sums, n_nodes, n_children, width, criterion, scale, table, state, logs, values
        )
        n_nodes += n_children
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


@compiled
def add_shares(
    rows: np.ndarray,
    node: np.ndarray,
    weight: np.ndarray,
    shares: np.ndarray,
    totals: np.ndarray,
    n_trees: np.ndarray,
) -> None:
    """Add the shares of rows' nodes to their totals: twin of `forest.out_of_bag_shares`."""
    for at in range(len(rows)):
        i, w = rows[at], float(weight[at])
        n_trees[i] += w
        for k in range(shares.shape[1]):
            totals[i, k] += w * shares[node[at], k]
