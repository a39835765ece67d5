"""Compiled loops of the tree. Importing this module imports numba; `growing` does so if need be.

`score_columns` and `partition` have twins in NumPy in `growing`, and give the same numbers to the
last bit. The functions marked inline are copied into `score_columns` twice, once with the number of
classes fixed at 2, which makes their inner loops vanish.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from holdtrue.grouping import compiled

inline: Callable[..., Any] = numba.njit(inline="always")


@inline
def _leaf_term(
    counts: np.ndarray,
    start: int,
    total: int,
    n_classes: int,
    criterion: int,
    scale: float,
    table: np.ndarray,
) -> Any:
    """Term of the leaf whose class counts begin at ``start``, in ticks; see `tree.LeafTerms`."""
    whole = float(total)
    if criterion <= 1:  # ginger, gini
        mixed = whole * whole
        for k in range(n_classes):
            mixed -= float(counts[start + np.uint64(k)]) * float(counts[start + np.uint64(k)])
        if criterion == 1:
            return np.rint(mixed / whole * scale)
        if total == 1:
            return np.rint((1.0 - 1.0 / n_classes) * scale)
        return np.rint(mixed / (whole - 1.0) * scale)
    if criterion >= 4:  # information gain, gain ratio
        left = table[total]
        for k in range(n_classes):
            left -= table[counts[start + np.uint64(k)]]
        return left
    top = 0
    for k in range(n_classes):
        top = max(top, counts[start + np.uint64(k)])
    lost = float(total - top)
    if criterion == 2:  # majority
        n_top, n_next = 0, 0
        for k in range(n_classes):
            n_top += counts[start + np.uint64(k)] == top
            n_next += counts[start + np.uint64(k)] == top - 1
        if n_top > 1:
            lost += float(top)
        elif n_next > 0:
            lost += float(top) * (1.0 - 1.0 / (1.0 + n_next))
    return np.rint(lost * scale)


@inline
def _sum_terms(
    cells: np.ndarray,
    columns: np.ndarray,
    offsets: np.ndarray,
    n_classes: int,
    criterion: int,
    scale: float,
    table: np.ndarray,
    counters: np.ndarray,
    terms: np.ndarray,
    logs: np.ndarray,
) -> None:
    """Sums over each column's counters, of which those touched are read and cleared."""
    for at in range(len(columns)):
        j = columns[at]
        n_values = offsets[j + 1] - offsets[j]
        by_value = n_values <= len(cells)
        n_children, term, log = 0, 0.0, 0.0
        for step in range(n_values if by_value else len(cells)):
            cell = np.uint64(offsets[j] + step if by_value else cells[step, j])
            start = cell * np.uint64(n_classes)
            total = 0
            for k in range(n_classes):
                total += counters[start + np.uint64(k)]
            if total == 0:
                continue
            n_children += 1
            term += _leaf_term(counters, start, total, n_classes, criterion, scale, table)
            if criterion >= 4:
                log += table[total]
            for k in range(n_classes):
                counters[start + np.uint64(k)] = 0
        terms[at] = term if n_children > 1 else np.inf
        logs[at] = log


@compiled
def score_columns(
    cells: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
    columns: np.ndarray,
    offsets: np.ndarray,
    n_classes: int,
    criterion: int,
    scale: float,
    table: np.ndarray,
    counters: np.ndarray,
) -> Any:
    """Twin of `growing._Leaves.score_columns`. ``counters`` is all zeros before and after."""
    # Row by row: no two increments in succession wait for the same counter. Unsigned numbers
    # index without a test for negative ones.
    width = np.uint64(n_classes)
    if len(columns) == cells.shape[1]:
        for i in range(len(cells)):
            y, w = np.uint64(label[i]), weight[i]
            for j in range(cells.shape[1]):
                counters[np.uint64(cells[i, j]) * width + y] += w
    else:
        for i in range(len(cells)):
            y, w = np.uint64(label[i]), weight[i]
            for j in columns:
                counters[np.uint64(cells[i, j]) * width + y] += w
    terms, logs = np.empty(len(columns)), np.empty(len(columns))
    if n_classes == 2:
        _sum_terms(cells, columns, offsets, 2, criterion, scale, table, counters, terms, logs)
    else:
        _sum_terms(
            cells, columns, offsets, n_classes, criterion, scale, table, counters, terms, logs
        )
    return terms, logs


@compiled
def partition(
    cells: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
    column: int,
    offsets: np.ndarray,
    n_classes: int,
    new_cells: np.ndarray,
    new_label: np.ndarray,
    new_weight: np.ndarray,
) -> Any:
    """Twin of `growing._Leaves.partition`, by counting sort: for values not many more than rows."""
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
    counts = np.zeros((n_children, n_classes), dtype=np.int64)
    for i in range(len(cells)):
        value = cells[i, column] - first
        to = place[value]
        place[value] += 1
        for j in range(cells.shape[1]):
            new_cells[to, j] = cells[i, j]
        new_label[to], new_weight[to] = label[i], weight[i]
        counts[child[value], label[i]] += weight[i]
    return values, sizes, counts
