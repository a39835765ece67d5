"""Compiled sums and terms of leaves; importing this module imports numba. Twins are in `tree`.

Criteria are known by their place in `tree.CRITERIA`: 0 ginger, 1 gini, 2 majority,
3 misclassification, 4 information gain, 6 log loss, 7 squared error.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from holdtrue.columns.loops import compiled

part: Callable[..., Any] = numba.njit
NEAR = 64  # logarithms of class counts up to this are computed once per parent


@part
def add_row(counters: np.ndarray, cell: int, label: Any, weight: Any, criterion: int) -> None:
    """Add a row to the sums of a cell, shape (width, n_cells): its class, or its number."""
    if criterion == 7:
        counters[0, cell] += weight
        counters[1, cell] += weight * label
        counters[2, cell] += weight * label * label
    else:
        counters[np.uint64(label), cell] += weight


@part
def rows_in(counters: np.ndarray, cell: int, criterion: int) -> Any:
    """Rows of a cell."""
    total = float(counters[0, cell])
    for k in range(1, 0 if criterion == 7 else len(counters)):
        total += counters[k, cell]
    return total


@part
def node_rows(sums: np.ndarray, node: int, width: int, criterion: int) -> Any:
    """Rows of a node."""
    total = sums[node, 0]
    for k in range(1, 0 if criterion == 7 else width):
        total += sums[node, k]
    return total


@part
def is_mixed(sums: np.ndarray, node: int, total: float, width: int, criterion: int) -> Any:
    """Whether the rows of a node differ in their labels."""
    if criterion == 7:
        mean = sums[node, 1] / total
        return sums[node, 2] - total * mean * mean > 1e-12 * sums[node, 2]
    is_pure = False
    for k in range(width):
        is_pure = is_pure or sums[node, k] == total
    return not is_pure


@part
def forget_logs(logs: np.ndarray, sums: np.ndarray, node: int, criterion: int) -> None:
    """Make ``logs`` those of the children of a node: not computed yet."""
    if criterion == 6:
        for k in range(len(logs)):
            for c in range(min(int(sums[node, k]), NEAR)):
                logs[k, c] = np.nan


@compiled
def leaf_terms(
    sums: np.ndarray,
    n_leaves: int,
    width: int,
    criterion: int,
    scale: float,
    table: np.ndarray,
    state: np.ndarray,
    logs: np.ndarray,
    terms: np.ndarray,
) -> None:
    """Write the terms of leaves with these sums, shape (n_leaves, width); 0 for an empty one.

    Twin of ``leaf_terms(criterion).terms``. ``state`` is that of the parent, ``logs`` has what
    log loss keeps for it, shape (width, NEAR). All leaves of a call are computed in one loop:
    numba counts the references of arrays that a call is given.
    """
    for at in range(n_leaves):
        total = node_rows(sums, at, width, criterion)
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
            log_total = table[np.uint64(total)]
            for k in range(width):
                count = sums[at, k]
                if count > NEAR:
                    log = math.log(count - 1.0 + state[k])
                elif count > 0.0:
                    c = np.uint64(count) - np.uint64(1)
                    log = logs[k, c]
                    if log != log:
                        log = math.log(count - 1.0 + state[k])
                        logs[k, c] = log
                else:
                    continue
                term += count * np.rint((log_total - log) * scale)
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
            term = table[np.uint64(total)]
            for k in range(width):
                term -= table[np.uint64(sums[at, k])]
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
