"""Left-out losses: cells of a profile, rules (4) and (5), and how far a mean of losses may be off.

The scores of the rules are those of `kernel.criterion_value`. Their standard errors are those of
the rows' own left-out errors, where `kernel.jackknife` has intervals for rule (5) that leave [0, 1]
by far: one row changes who has the majority.

Notation
--------
=========  =========================================================================================
N, l_i     rows; left-out loss of row i
c_k, n     class counts of a value, and their sum
cell       rows of one value and class; they have one left-out loss
q, S_r     shares of the classes; ``Σ_k q_k^r``
d          rows and strength that the left-out shares of a value rest on, ``n - 1 + a``
b_ij       what row j being in the sample changes about l_i, beyond what it changes on average
=========  =========================================================================================

The estimate minus the loss on new rows is the mean of ``l_i - E l_i``, each of mean 0 given the
other rows. Its variance is ``(Σ_i Var l_i + Σ_{i≠j} E b_ij b_ji)/N²``. The rows' own losses give
the first sum. The second is not small where values have few rows or classes are even: a pair of
coin tosses is lost whole or not at all (rule (4): variance 1, of which the rows show ½), and the
log loss of an even coin has no spread over rows, though the estimate errs by about 1/N.

Departures
----------
1. Pairs are counted within a value, and over all rows as far as the prior decides; the few that
   meet in the prior only, while the value decides, are left aside.
2. `tie_pairs`: the two most frequent classes stand for all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from holdtrue.categories.kernel import row_sums, unseen_cost

# Largest value of a loss where it is not 1; the least is 0.
LARGEST = dict.fromkeys(("log_loss", "squared_error", "information_gain"), math.inf)
LARGEST["brier"] = 2.0
BLOCK = 1 << 17  # numbers in one temporary array


class Estimate(NamedTuple):
    """Loss of a column's predictor on new rows (or groups), with what belongs beside it."""

    loss: str
    score: float  # mean left-out loss
    # row_error, pair_error: the parts of its standard error, from rows and from pairs of rows
    row_error: float
    pair_error: float
    no_column: float  # the same without the column
    # gain, gain_standard_error: ``no_column - score``, and its standard error from the rows' paired
    # differences alone, by which columns are kept; `gain_interval` counts pairs of rows too
    gain: float
    gain_standard_error: float
    # Share of rows whose likeliest class, left out, is not theirs; NaN for a numeric target
    share_wrong: float
    strength: float  # the strength taken; NaN where nothing is shrunk
    n_units: float  # rows, or groups, that were left out one by one
    no_column_wrong: float = math.nan  # ``share_wrong`` without the column
    # Whether the two largest classes differ by a row at most: the class of a row left out is then
    # the rarer, and a weak column seems wrong more often than it is
    is_tied: bool = False

    @property
    def standard_error(self) -> float:
        """Standard error of the score."""
        return math.hypot(self.row_error, self.pair_error)

    @property
    def wrong(self) -> float:
        """Share of new rows to be told wrong: a column that says nothing predicts as none does."""
        has_none = math.isinf(self.strength) and not math.isnan(self.no_column_wrong)
        if has_none or (self.is_tied and self.gain > 0 and self.share_wrong > self.no_column_wrong):
            return self.no_column_wrong
        return self.share_wrong

    @property
    def skill(self) -> float:
        """``1 - score/no_column``: 1 is perfect, 0 no better than no column."""
        return self.gain / self.no_column if self.no_column > 0 else 0.0

    def interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Ends that hold the loss on new data with probability 1 - α, inside the loss's range."""
        radius = _quantile(self.n_units, alpha) * self.standard_error
        return max(self.score - radius, 0.0), min(self.score + radius, LARGEST.get(self.loss, 1.0))

    def gain_interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Ends that hold the gain with probability 1 - α; 0 and 0 where no column is taken."""
        if math.isinf(self.strength):
            return 0.0, 0.0
        error = math.hypot(self.gain_standard_error, self.pair_error)
        radius = _quantile(self.n_units, alpha) * error
        return self.gain - radius, self.gain + radius


def _quantile(n_units: float, alpha: float) -> float:
    return float(stdtrit(n_units - 1, 1 - alpha / 2)) if n_units > 1 else math.nan


def clearly_least(scores: Sequence[float] | np.ndarray) -> int:
    """Index of the least score; the first of those that differ by rounding alone."""
    best = 0
    for at, score in enumerate(scores):
        if score < scores[best] - 1e-12 * abs(scores[best]):
            best = at
    return best


# --- cells --------------------------------------------------------------------------------------


class ClassCells(NamedTuple):
    """Cells with rows: a row of the profile, or of a part of it, and a class."""

    counts: np.ndarray  # shape (n_rows, n_classes): the rows, as floats
    repeats: np.ndarray | None  # shape (n_rows,): how many values have each row
    # row, label, shape (n_cells,)
    row: np.ndarray
    label: np.ndarray
    # c, n, shape (n_cells,): rows of the value in the cell; rows of the value
    c: np.ndarray
    n: np.ndarray
    weight: np.ndarray  # shape (n_cells,): rows of the sample in the cell, over all such values


def cells_of(counts: np.ndarray, repeats: np.ndarray | None = None) -> ClassCells:
    """The cells of a profile that have rows."""
    counts = np.ascontiguousarray(counts, dtype=np.float64)
    place = np.flatnonzero(counts)
    row = place // counts.shape[1]
    label = place - row * counts.shape[1]
    c = counts.ravel()[place]
    weight = c if repeats is None else c * repeats[row]
    return ClassCells(counts, repeats, row, label, c, row_sums(counts)[row], weight)


def parts_of(
    counts: np.ndarray, repeats: np.ndarray | None = None, n_strengths: int = 1
) -> Iterator[ClassCells]:
    """Cells of a profile, in parts whose arrays over all strengths stay in the cache."""
    n_rows = max(BLOCK // (n_strengths * counts.shape[1]), 1)
    for start in range(0, len(counts), n_rows):
        part = slice(start, start + n_rows)
        yield cells_of(counts[part], None if repeats is None else repeats[part])


def column_total(counts: np.ndarray, repeats: np.ndarray | None = None) -> np.ndarray:
    """``N_k``, rows of each class, as floats."""
    total = np.einsum("vk->k", counts) if repeats is None else repeats @ counts
    return total.astype(np.float64)


# --- squares of rows ---------------------------------------------------------------------------


class Spread(NamedTuple):
    """Rows of some cells, means of their losses and gains, and squares about those means."""

    weight: float
    loss: float
    gain: float
    loss_squares: float
    gain_squares: float


def spread(weight: np.ndarray, losses: np.ndarray, base: np.ndarray) -> Spread:
    """Spread of losses and of what they gain over those without a column."""
    N = float(weight.sum())
    gains = base - losses
    loss, gain = float(weight @ losses) / N, float(weight @ gains) / N
    # About the mean: at 20 million rows Σ l² - N mean² would lose half of the digits.
    loss_squares = float(weight @ np.square(losses - loss))
    return Spread(N, loss, gain, loss_squares, float(weight @ np.square(gains - gain)))


def joined(
    loss: str, parts: Sequence[Spread], pairs: float, no_column: float, strength: float
) -> Estimate:
    """Estimate from the spreads of all parts (Chan, Golub & LeVeque 1983).

    ``pairs`` is the sum of ``b_ij b_ji``.
    """
    weight, losses, gains, loss_squares, gain_squares = np.array(parts).T
    N = float(weight.sum())
    score, gain = float(weight @ losses) / N, float(weight @ gains) / N
    squares = float(loss_squares.sum() + weight @ np.square(losses - score))
    squares_of_gain = float(gain_squares.sum() + weight @ np.square(gains - gain))
    return Estimate(
        loss,
        no_column if math.isinf(strength) else score,
        standard_error(squares, N),
        math.sqrt(pairs) / N,
        no_column,
        0.0 if math.isinf(strength) else no_column - score,
        standard_error(squares_of_gain, N),
        score,
        strength,
        N,
        no_column,
    )


def standard_error(squares: float, n_units: float) -> float:
    """Standard error of a mean of ``n_units`` from their squares about it; NaN for one."""
    return math.sqrt(squares / (n_units * (n_units - 1))) if n_units > 1 else math.nan


# --- pairs of rows ------------------------------------------------------------------------------


def share_pairs(loss: str, q: np.ndarray) -> np.ndarray:
    """``d² E b_ij b_ji`` for two rows of a value with shares q, shape (n_values,).

    A row of class m moves the shares by ``(e_m - q)/d`` and a row of class k by the gradient of its
    loss there: ``tr(H Σ H Σ)`` with ``Σ = diag(q) - q q'`` and H the loss's Hessian. That is K - 1
    for log loss, ``4 (S_2 - 2 S_3 + S_2²)`` for Brier's and a quarter of it for rule (4).
    """
    if loss == "log_loss":
        return np.count_nonzero(q, axis=1) - 1.0
    squares = q * q
    S2, S3 = squares.sum(axis=1), np.einsum("vk,vk->v", squares, q)
    return (4.0 if loss == "brier" else 1.0) * np.maximum(S2 - 2 * S3 + S2 * S2, 0.0)


def tie_pairs(
    first: np.ndarray, second: np.ndarray, behind: np.ndarray, *, shared: bool
) -> np.ndarray:
    """Sum of ``b_ij b_ji`` over the rows of each value, where the leading class is named.

    Two rows matter to each other if leaving out both, and not one, changes who leads: pairs of
    both classes where the lead is less than a row, pairs of the first where it is less than two.

    Parameters
    ----------
    first, second : ndarray of shape (n_values,)
        Rows of the two leading classes.
    behind : ndarray of shape (n_values,)
        By how many rows the second class is behind.
    shared : bool
        Whether classes that tie share the prediction, as in rule (5).
    """
    lead, divisor = (0, 4) if shared else (1, 2)
    inner = np.where(behind <= lead, first * second / 2, first * (first - 1) / divisor)
    return np.where(behind <= 2, inner, 0.0)


# --- rules (4) and (5) --------------------------------------------------------------------------


def rule_losses(criterion: str, cells: ClassCells, cost: np.ndarray) -> np.ndarray:
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


def _value_pairs(criterion: str, cells: ClassCells) -> float:
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
