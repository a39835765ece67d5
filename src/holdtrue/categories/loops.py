"""Compiled loops of the tree. Importing this module imports numba; `grow` does so when needed.

All have twins in NumPy, in `leaves`, `leaf_terms` and `tree`, and give the same numbers to the last
bit (of log loss: the same but for the last bit of a logarithm, which rounding to ticks hides).

Criteria are known by their place in `leaf_terms.CRITERIA`: 0 ginger, 1 gini, 2 majority,
3 misclassification, 4 information gain, 5 gain ratio, 6 log loss, 7 squared error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from holdtrue.columns.loops import compiled

part: Callable[..., Any] = numba.njit(inline="always")
_NEAR = 16  # logarithms of so many counts are computed once per leaf


@part
def _leaf_term(
    sums: np.ndarray,
    start: int,
    total: float,
    width: int,
    criterion: int,
    scale: float,
    table: np.ndarray,
    state: np.ndarray,
    near: np.ndarray,
) -> Any:
    """Term of the leaf whose sums begin at ``start``, in ticks; see `leaf_terms`.

    ``state`` is that of the parent, for criteria that have one, and ``near`` its `_near_logs`.
    """
    if criterion == 7:  # squared error
        mean = sums[start + np.uint64(1)] / total
        squares = max(sums[start + np.uint64(2)] - total * mean * mean, 0.0)
        level = (1.0 - state[1]) * mean - state[0]
        level /= total
        slope = (total + (1.0 - state[1])) / total
        return (total * level * level + slope * slope * squares) * scale
    if criterion == 6:  # log loss
        lost = 0.0
        for k in range(width):
            count = sums[start + np.uint64(k)]
            if count > _NEAR:
                log = math.log(count - 1.0 + state[k])
                lost += count * np.rint((table[np.int64(total)] - log) * scale)
            elif count > 0.0:
                log = near[k * _NEAR + np.int64(count) - 1]
                lost += count * np.rint((table[np.int64(total)] - log) * scale)
        return lost
    if criterion <= 1:  # ginger, gini
        mixed = total * total
        for k in range(width):
            mixed -= sums[start + np.uint64(k)] * sums[start + np.uint64(k)]
        if criterion == 1:
            return np.rint(mixed / total * scale)
        if total == 1.0:
            return np.rint((1.0 - 1.0 / width) * scale)
        return np.rint(mixed / (total - 1.0) * scale)
    if criterion >= 4:  # information gain, gain ratio
        left = table[np.int64(total)]
        for k in range(width):
            left -= table[np.int64(sums[start + np.uint64(k)])]
        return left
    top = 0.0
    for k in range(width):
        top = max(top, sums[start + np.uint64(k)])
    lost = total - top
    if criterion == 2:  # majority
        n_top, n_next = 0, 0
        for k in range(width):
            n_top += sums[start + np.uint64(k)] == top
            n_next += sums[start + np.uint64(k)] == top - 1.0
        if n_top > 1:
            lost += top
        elif n_next > 0:
            lost += top * (1.0 - 1.0 / (1.0 + n_next))
    return np.rint(lost * scale)


@part
def _near_logs(state: np.ndarray, width: int, criterion: int, near: np.ndarray) -> None:
    """Write ``log(c - 1 + P⁻_kk)`` for small c, by class."""
    if criterion == 6:
        for k in range(width):
            for c in range(_NEAR):
                near[k * _NEAR + c] = math.log(c + state[k])


@part
def _add_row(counters: np.ndarray, at: int, label: Any, weight: Any, criterion: int) -> None:
    """Add a row to the sums that begin at ``at``: its class, or its number."""
    if criterion == 7:
        counters[at] += weight
        counters[at + np.uint64(1)] += weight * label
        counters[at + np.uint64(2)] += weight * label * label
    else:
        counters[at + np.uint64(label)] += weight


@part
def _rows_in(counters: np.ndarray, start: int, width: int, criterion: int) -> Any:
    """Rows of the sums that begin at ``start``."""
    if criterion == 7:
        return counters[start]
    total = 0.0
    for k in range(width):
        total += counters[start + np.uint64(k)]
    return total


@part
def _sum_terms(
    cells: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    n_columns: int,
    offsets: np.ndarray,
    width: int,
    criterion: int,
    scale: float,
    table: np.ndarray,
    state: np.ndarray,
    near: np.ndarray,
    counters: np.ndarray,
    terms: np.ndarray,
    logs: np.ndarray,
) -> None:
    """Sums over each column's counters, of which those touched are read and cleared.

    ``rows`` are the places of the leaf's rows in ``cells``; none given: all of them.
    """
    n_rows = len(rows) if len(rows) > 0 else len(cells)
    for at in range(n_columns):
        j = columns[at]
        n_values = offsets[j + 1] - offsets[j]
        by_value = n_values <= n_rows
        n_children, term, log = 0, 0.0, 0.0
        for step in range(n_values if by_value else n_rows):
            if by_value:
                cell = np.uint64(offsets[j] + step)
            elif len(rows) > 0:
                cell = np.uint64(cells[rows[step], j])
            else:
                cell = np.uint64(cells[step, j])
            start = cell * np.uint64(width)
            total = _rows_in(counters, start, width, criterion)
            if total == 0.0:
                continue
            n_children += 1
            term += _leaf_term(counters, start, total, width, criterion, scale, table, state, near)
            if criterion == 4 or criterion == 5:
                log += table[np.int64(total)]
            for k in range(width):
                counters[start + np.uint64(k)] = 0
        terms[at] = term if n_children > 1 else np.inf
        logs[at] = log


@part
def _child_state(
    sums: np.ndarray,
    start: int,
    total: float,
    width: int,
    criterion: int,
    parent: np.ndarray,
    state: np.ndarray,
) -> None:
    """Write the state of a child, from that of its parent (`leaf_terms`)."""
    if criterion == 7:
        state[0] = (sums[start + np.uint64(1)] + parent[0]) / total
        state[1] = (parent[1] - 1.0) / total
    elif criterion == 6:
        for k in range(width):
            count = sums[start + np.uint64(k)]
            if count > 0.0:
                state[k] = (count - 1.0 + parent[k]) / total
            else:
                state[k] = parent[k] / (total + 1.0)


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
def score_columns(
    cells: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
    columns: np.ndarray,
    offsets: np.ndarray,
    width: int,
    criterion: int,
    scale: float,
    table: np.ndarray,
    state: np.ndarray,
    counters: np.ndarray,
) -> Any:
    """Twin of `leaves.Leaves.score_columns`. ``counters`` is all zeros before and after.

    Whole numbers for classes: adding to them is faster than to floats.
    """
    # Row by row: no two increments in succession wait for the same counter. Unsigned numbers
    # index without a test for negative ones.
    step = np.uint64(width)
    if criterion == 7:
        for i in range(len(cells)):
            for j in columns:
                at = np.uint64(cells[i, j]) * step
                _add_row(counters, at, label[i], weight[i], criterion)
    elif len(columns) < cells.shape[1]:
        for i in range(len(cells)):
            y, w = np.uint64(label[i]), weight[i]
            for j in columns:
                counters[np.uint64(cells[i, j]) * step + y] += w
    elif width == 2:
        for i in range(len(cells)):
            y, w = np.uint64(label[i]), weight[i]
            for j in range(cells.shape[1]):
                counters[(np.uint64(cells[i, j]) << np.uint64(1)) + y] += w
    else:
        for i in range(len(cells)):
            y, w = np.uint64(label[i]), weight[i]
            for j in range(cells.shape[1]):
                counters[np.uint64(cells[i, j]) * step + y] += w
    terms, logs = np.empty(len(columns)), np.empty(len(columns))
    near = np.empty(width * _NEAR)
    _near_logs(state, width, criterion, near)
    everything = np.empty(0, dtype=np.int32)
    if width == 2:  # known when compiled, so that the loops over classes vanish
        _sum_terms(
            cells, everything, columns, len(columns), offsets, 2, criterion, scale,
            table, state, near, counters, terms, logs,
        )  # fmt: skip
    else:
        _sum_terms(
            cells, everything, columns, len(columns), offsets, width, criterion, scale,
            table, state, near, counters, terms, logs,
        )  # fmt: skip
    return terms, logs


@compiled
def partition(
    cells: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
    column: int,
    offsets: np.ndarray,
    width: int,
    criterion: int,
    new_cells: np.ndarray,
    new_label: np.ndarray,
    new_weight: np.ndarray,
) -> Any:
    """Twin of `leaves.Leaves.partition`, by counting sort: for values not many more than rows."""
    first = offsets[column]
    n_values = offsets[column + 1] - first
    size = np.zeros(n_values, dtype=np.int64)
    for i in range(len(cells)):
        size[cells[i, column] - first] += 1
    place, child = np.empty_like(size), np.empty_like(size)
    filled, n_children = 0, 0
    for value in range(n_values):
        place[value], child[value] = filled, n_children
        filled += size[value]
        n_children += size[value] > 0
    values = np.empty(n_children, dtype=np.int64)
    sizes = np.empty(n_children, dtype=np.int64)
    for value in range(n_values):
        if size[value] > 0:
            values[child[value]], sizes[child[value]] = first + value, size[value]
    sums = np.zeros(n_children * width)
    for i in range(len(cells)):
        value = cells[i, column] - first
        to = place[value]
        place[value] += 1
        for j in range(cells.shape[1]):
            new_cells[to, j] = cells[i, j]
        new_label[to], new_weight[to] = label[i], weight[i]
        _add_row(sums, np.uint64(child[value] * width), label[i], weight[i], criterion)
    return values, sizes, sums.reshape(n_children, width)


@compiled
def score_groups(
    cells: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
    group: np.ndarray,
    guess: np.ndarray,
    columns: np.ndarray,
    width: int,
    criterion: int,
    scale: float,
    whole: np.ndarray,
    inside: np.ndarray,
) -> Any:
    """Twin of `leaves.GroupLeaves.score_columns`. Rows of a group lie together.

    ``whole`` and ``inside`` are all zeros before and after.
    """
    step, n_rows = np.uint64(width), len(cells)
    terms = np.empty(len(columns))
    for at in range(len(columns)):
        j = columns[at]
        n_children, term = 0, 0.0
        for i in range(n_rows):
            start = np.uint64(cells[i, j]) * step
            n_children += _rows_in(whole, start, width, criterion) == 0.0
            _add_row(whole, start, label[i], weight[i], criterion)
        first = 0
        while first < n_rows:
            last = first
            while last < n_rows and group[last] == group[first]:
                start = np.uint64(cells[last, j]) * step
                _add_row(inside, start, label[last], weight[last], criterion)
                last += 1
            for i in range(first, last):
                start = np.uint64(cells[i, j]) * step
                n_left = _rows_in(whole, start, width, criterion)
                n_left -= _rows_in(inside, start, width, criterion)
                if criterion == 7:
                    sum_left = whole[start + np.uint64(1)] - inside[start + np.uint64(1)]
                    residual = label[i] - (sum_left + guess[i]) / (n_left + 1.0)
                    term += weight[i] * (residual * residual * scale)
                else:
                    own_class = start + np.uint64(label[i])
                    share = (whole[own_class] - inside[own_class] + guess[i]) / (n_left + 1.0)
                    term += weight[i] * np.rint(-math.log(share) * scale)
            for i in range(first, last):
                start = np.uint64(cells[i, j]) * step
                for k in range(width):
                    inside[start + np.uint64(k)] = 0.0
            first = last
        for i in range(n_rows):
            start = np.uint64(cells[i, j]) * step
            for k in range(width):
                whole[start + np.uint64(k)] = 0.0
        terms[at] = term if n_children > 1 else np.inf
    return terms


# --- a tree of a forest -------------------------------------------------------------------------


@part
def _sort_rows(cells: np.ndarray, column: int, rows: np.ndarray, out: np.ndarray) -> None:
    """Write the rows by their cells, of equal ones in their order; a merge sort."""
    n = len(rows)
    here, there = rows.copy(), rows.copy()
    width = 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle, stop = min(start + width, n), min(start + 2 * width, n)
            left, right = start, middle
            for at in range(start, stop):
                if right >= stop or (
                    left < middle and cells[here[left], column] <= cells[here[right], column]
                ):
                    there[at] = here[left]
                    left += 1
                else:
                    there[at] = here[right]
                    right += 1
        here, there = there, here
        width *= 2
    out[:n] = here


@compiled
def grow_whole(
    cells: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
    rows: np.ndarray,
    offsets: np.ndarray,
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
    max_depth: int,
    min_rows: int,
) -> Any:
    """Twin of `grow.grow_tree` with `grow._Queue`: every leaf is split that gains, in their order.

    The tree sees ``rows`` alone, ascending. They stay where they are; a leaf is a stretch of
    their permutation.
    """
    n_rows, n_features = len(rows), len(first_column) - 1
    n_state, step = len(root_state), np.uint64(width)
    rows, spare = rows.copy(), np.empty_like(rows)
    room = 2 * n_rows  # every split has two children or more, every leaf a row
    start, stop = np.zeros(room, dtype=np.int32), np.zeros(room, dtype=np.int32)
    depth, born = np.zeros(room, dtype=np.int32), np.full(room, -1, dtype=np.int32)
    cell = np.full(room, -1, dtype=np.int64)
    sums, term = np.zeros(room * width), np.zeros(room)
    states = np.zeros((room, n_state))
    node_of, column_of = np.empty(n_rows, dtype=np.int64), np.empty(n_rows, dtype=np.int64)
    counters = np.zeros(offsets[-1] * width, dtype=label.dtype)
    columns = np.empty(len(offsets) - 1, dtype=np.int64)
    terms, logs = np.empty(len(columns)), np.empty(len(columns))
    features, near = np.arange(n_features), np.empty(width * _NEAR)
    size = np.zeros(np.max(offsets[1:] - offsets[:-1]) + 1, dtype=np.int64)
    withheld_depth, withheld_rows = False, False
    n_nodes, n_splits, now = 1, 0, np.uint64(seed)
    stop[0] = n_rows
    for i in rows:
        _add_row(sums, np.uint64(0), label[i], weight[i], criterion)
    term[0], states[0] = root_term, root_state
    node = -1
    while node + 1 < n_nodes:
        node += 1
        at_node = np.uint64(node) * step
        total = _rows_in(sums, at_node, width, criterion)
        if not _is_mixed(sums, at_node, total, width, criterion):
            continue
        if total < min_rows:
            withheld_rows = True
            continue
        if depth[node] >= max_depth:
            withheld_depth = True
            continue
        inside = rows[start[node] : stop[node]]
        charged = term[node]
        if criterion == 0 or criterion == 2:  # departure 4 of `tree`
            charged = min(charged, np.rint(total * ((1.0 - 1.0 / width) * scale)))
        _near_logs(states[node], width, criterion, near)
        best, best_column, n_done = 0.0, -1, 0
        while best_column < 0 and n_done < n_features:  # see `leaves.FeatureDraws.batches`
            n_columns = 0
            for f in range(n_done, min(n_done + n_drawn, n_features)):
                now += np.uint64(0x9E3779B97F4A7C15)
                mixed = (now ^ (now >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
                mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
                mixed = (mixed ^ (mixed >> np.uint64(31))) >> np.uint64(32)
                other = f + np.int64((mixed * np.uint64(n_features - f)) >> np.uint64(32))
                features[f], features[other] = features[other], features[f]
                for j in range(first_column[features[f]], first_column[features[f] + 1]):
                    columns[n_columns] = j
                    n_columns += 1
            n_done += n_drawn if again else n_features
            tried = columns[:n_columns]
            for i in inside:
                if criterion == 7:
                    for j in tried:
                        at_cell = np.uint64(cells[i, j]) * step
                        _add_row(counters, at_cell, label[i], weight[i], criterion)
                else:
                    y, w = np.uint64(label[i]), weight[i]
                    for j in tried:
                        counters[np.uint64(cells[i, j]) * step + y] += w
            _sum_terms(
                cells, inside, columns, n_columns, offsets, width, criterion, scale, table,
                states[node], near, counters, terms, logs,
            )  # fmt: skip
            for at in range(n_columns):
                gain = np.rint((charged - terms[at]) * 2.0**-16)
                if gain > best or (gain == best and best_column > columns[at]):
                    best, best_column = gain, columns[at]
        if best_column < 0:
            continue
        node_of[n_splits], column_of[n_splits] = node, best_column
        first, n_values = offsets[best_column], offsets[best_column + 1] - offsets[best_column]
        begin = start[node]
        if n_values <= 4 * len(inside):
            for i in inside:
                size[cells[i, best_column] - first + 1] += 1
            for value in range(n_values):
                size[value + 1] += size[value]
            for i in inside:
                value = cells[i, best_column] - first
                spare[size[value]] = i
                size[value] += 1
            size[: n_values + 1] = 0
        else:
            _sort_rows(cells, best_column, inside, spare)
        last = -1
        for at in range(len(inside)):
            i = spare[at]
            inside[at] = i
            value = int(cells[i, best_column])
            if value != last:
                last = value
                cell[n_nodes], born[n_nodes] = value, n_splits
                start[n_nodes], depth[n_nodes] = begin + at, depth[node] + 1
                n_nodes += 1
            stop[n_nodes - 1] = begin + at + 1
            to = np.uint64(n_nodes - 1) * step
            _add_row(sums, to, label[i], weight[i], criterion)
        child = n_nodes - 1
        while child > 0 and born[child] == n_splits:
            to = np.uint64(child) * step
            total = _rows_in(sums, to, width, criterion)
            _child_state(sums, to, total, width, criterion, states[node], states[child])
            if criterion == 6:  # from its state, as `leaf_terms.ShareTerms.children`
                for k in range(width):
                    share = states[child, k]
                    term[child] += sums[to + np.uint64(k)] * np.rint(-math.log(share) * scale)
            else:
                term[child] = _leaf_term(
                    sums, to, total, width, criterion, scale, table, states[node], near
                )
            child -= 1
        n_splits += 1
    return (
        node_of[:n_splits].copy(), column_of[:n_splits].copy(), born[:n_nodes].astype(np.int64),
        cell[:n_nodes].copy(), sums[: n_nodes * width].copy().reshape(n_nodes, width),
        withheld_depth, withheld_rows,
    )  # fmt: skip


@compiled
def end_nodes(
    cells: np.ndarray,
    rows: np.ndarray,
    column: np.ndarray,
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
            if low == first[s + 1] or cell[low] != value:
                break
            node = low
        ends[at] = node
    return ends
