"""Rules (4) and (5) of `kernel` with the standard error of their rows' own left-out errors.

The scores are those of `kernel.criterion_value`; the standard error is that of `left_out`, where
`kernel.jackknife` has intervals for rule (5) that leave [0, 1] by far: one row changes who has the
majority.
"""

from __future__ import annotations

import math

import numpy as np

from holdtrue.categories.kernel import row_sums, unseen_cost
from holdtrue.categories.left_out import Estimate, joined, share_pairs, spread, tie_pairs
from holdtrue.categories.shrunk import Cells, cells_of, column_total, parts_of


def rule_losses(criterion: str, cells: Cells, cost: np.ndarray) -> np.ndarray:
    """Left-out error of rule (4) or (5) for a row of each cell, shape (n_cells,).

    Rule (4): ``1 - (c_j - 1)/(n - 1)``. Rule (5): 1 if another class leads without the row,
    ``1 - 1/t`` if t classes lead together, the row's among them, else 0.

    ``cost`` is that of a row whose value no other row has, by class (`kernel.unseen_cost`).
    """
    alone = cells.n == 1
    if criterion == "ginger":
        losses = (cells.n - cells.c) / np.where(alone, 1.0, cells.n - 1)
    else:
        n_classes = cells.counts.shape[1]
        two = np.partition(cells.counts, n_classes - 2, axis=1)[:, -2:]
        second, most = two[cells.row, 0], two[cells.row, 1]
        rival = np.where(cells.c == most, second, most)  # the largest count of another class
        level = np.count_nonzero(cells.counts == two[:, :1], axis=1)[cells.row]
        ties = 1 - 1 / (1 + level)  # rival is the second count where the row's class leads by one
        losses = np.where(cells.c - 1 > rival, 0.0, np.where(cells.c - 1 == rival, ties, 1.0))
    return np.where(alone, cost[cells.label], losses)


def estimate_rule(
    criterion: str,
    counts: np.ndarray,
    repeats: np.ndarray | None = None,
    *,
    unseen: str = "uniform",
) -> Estimate:
    """`ginger` or `majority` with the standard error of the rows' own left-out errors.

    At least 2 rows and 2 classes.
    """
    total = column_total(counts, repeats)
    N = float(total.sum())
    cost = unseen_cost(criterion, total, unseen)
    whole = cells_of(total[None])
    base = np.zeros(len(total))
    base[whole.label] = rule_losses(criterion, whole, cost)
    chance = 1 - 1 / len(total)
    if total @ base > chance * N * (1 + 1e-12):  # `kernel`, departure 6
        base[:] = chance
    parts, pairs = [], 0.0
    for cells in parts_of(counts, repeats):
        losses = rule_losses(criterion, cells, cost)
        parts.append(spread(cells.weight, losses, base[cells.label]))
        pairs += _value_pairs(criterion, cells)
    return joined(criterion, parts, pairs, float(total @ base) / N, math.nan)


def _value_pairs(criterion: str, cells: Cells) -> float:
    """Sum of ``b_ij b_ji`` over rows of the same value."""
    counts, n = cells.counts, row_sums(cells.counts)
    if criterion == "ginger":
        several = np.maximum(n, 2)
        terms = several / (several - 1) * share_pairs("ginger", counts / several[:, None])
        terms = np.where(n >= 2, terms, 0.0)
    else:
        two = np.partition(counts, counts.shape[1] - 2, axis=1)[:, -2:]
        terms = tie_pairs(two[:, 1], two[:, 0], two[:, 1] - two[:, 0], shared=True)
    return float(terms.sum() if cells.repeats is None else cells.repeats @ terms)
