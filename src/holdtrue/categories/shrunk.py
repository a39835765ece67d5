"""The predictor that is deployed, shares or means shrunk to those of all rows, and its loss.

Paper
-----
None. Sabato & Shalev-Shwartz (2008) estimate the error of rules (4) and (5), in `kernel`; nobody
deploys those. Here is the left-out loss of a predictor that shrinks, from the same counts.

Notation
--------
========  ==========================================================================================
N_k, N    ``total`` and its sum: rows of class k, all rows of the column
K         number of classes
c_k, n    a row of ``counts``, shape (n_values, K), and its sum; ``repeats`` values have that row
π_k       ``(N_k + 1/K)/(N + 1)``, `prior`
a         ``strength``; infinite: no column. As a pair (s, t), ``(1, a)`` or ``(0, 1)``, so that
          ``(s c + t π)/(s n + t)`` holds for every a
q_k       ``(c_k + a π_k)/(n + a)``, `shares`; π_k for a value not seen
q_k⁻      the same without the row, a row of class j: ``(c_k - [k=j] + a π_k⁻)/(n - 1 + a)`` with
          ``π_k⁻ = (N_k - [k=j] + 1/K)/N``
cell      rows of one value and class; they have one left-out loss
b, e      of a number y: mean of the value minus that of all rows; y minus the mean of its value
S, M_r    ``n b``, sum of the value's y once y is centred over all rows; ``Σ e^r`` over its rows
d, h      ``n - 1 + a``; ``N/(N - 1)``
========  ==========================================================================================

Where to find it
----------------
=======================================  ==========================================================
shares, likeliest class                  `shares`, `likeliest`
left-out loss of each cell               `left_out_losses`
left-out loss by strength                `strength_scores`, `best_readings`
strength, score, standard errors, gain   `estimate`
what finer values gain                   `finer_gain`: each column at the strength of its own
mean of a numeric target                 `shrunk_means`, `mean_scores`, `estimate_mean`
the plain mean                           `plain_score`, `plain_gain`
rules (4) and (5), the same errors       module `left_out`
groups left out whole                    module `grouped`
a split of a tree                        module `tree`
=======================================  ==========================================================

Departures
----------
1. Strengths whose losses differ by less than 1e-12 of the least tie, and the largest is taken: the
   losses of an id are the same for all of them but for rounding.
2. Standard errors are in `left_out`: of the rows' own losses, and of pairs of rows.
3. A class is the likeliest by ``N c_k + a N_k``, which orders as q_k does and is a whole number
   for whole 2a below 2⁵³: ties are exact. They go to the larger N_k, then to the first class.
4. The strength for ``error`` is that of least Brier loss. The least of twelve shares of errors is
   too low by .006 at 500 rows; and few rows change sides, so that it says little of the strength.
5. The prior of a number is the plain mean of all rows, without a row of its own as the shares have.
6. Strength 0 charges a row whose value is seen once its own distance from the mean of the others;
   `plain_score` charges it the average row's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from holdtrue.categories.kernel import row_sums
from holdtrue.categories.left_out import (
    BLOCK,
    ClassCells,
    Estimate,
    cells_of,
    column_total,
    joined,
    parts_of,
    share_pairs,
    spread,
    standard_error,
    tie_pairs,
)
from holdtrue.columns.counting import grouped_moments
from holdtrue.sums.profile import B2, M2, C

STRENGTHS = (*(2.0**power for power in range(-1, 10)), math.inf)
LOSSES = ("log_loss", "brier", "error")
# The loss by which the strength is chosen (departure 4).
CHOSEN_BY = {"log_loss": "log_loss", "brier": "brier", "error": "brier"}
_FEW = 1 << 12  # codes below it are counted in a table


# --- the predictor ------------------------------------------------------------------------------


def prior(total: np.ndarray) -> np.ndarray:
    """``π_k = (N_k + 1/K)/(N + 1)``, shares where the value says nothing."""
    return (total + 1 / total.shape[-1]) / (total.sum(axis=-1, keepdims=True) + 1)


def shares(counts: np.ndarray, total: np.ndarray, strength: float) -> np.ndarray:
    """Shares of the classes, ``q_k = (c_k + a π_k)/(n + a)``; π for a value not seen."""
    s, t = pair(strength)
    return (s * counts + t * prior(total)) / (s * row_sums(counts) + t)[:, None]


def likeliest(counts: np.ndarray, total: np.ndarray, strength: float) -> np.ndarray:
    """Class of the largest share, by value; ties to the larger total, then to the first class.

    Counts are whole, and the strength too if doubled: then ties are exact.
    """
    s, t = pair(strength)
    # q_k is this over (N + 1)(n + a), plus what all classes have alike (departure 3).
    weight = s * (total.sum() + 1) * counts + t * total
    order = np.argsort(-total, kind="stable")  # of equal totals the first class
    return order[np.argmax(weight[:, order], axis=1)]


def pair(strength: float | Sequence[float] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights (s, t) of the value and of the prior, ``(1, a)``, or ``(0, 1)`` for a infinite."""
    a = np.asarray(strength, dtype=np.float64)
    infinite = np.isinf(a)
    return np.where(infinite, 0.0, 1.0), np.where(infinite, 1.0, a)


# --- left-out losses ----------------------------------------------------------------------------


def left_out_losses(
    loss: str, cells: ClassCells, total: np.ndarray, strengths: Sequence[float]
) -> np.ndarray:
    """Loss of a row of each cell, left out of value and prior, shape (n_strengths, n_cells).

    ``log_loss``: ``-log q_j⁻``; ``brier``: ``Σ_k (q_k⁻ - [k=j])²``; ``error``: whether another
    class than j has the largest q⁻.
    """
    s, t = (weight[:, None] for weight in pair(strengths))
    if loss == "error":
        return _wrong(cells, total, s, t)
    n_classes = len(total)
    N = float(total.sum())
    label, c, n = cells.label, cells.c, cells.n
    left = (total - 1 + 1 / n_classes) / N  # π_j⁻ of the row's own class
    denominator = s * (n - 1) + t
    if loss == "log_loss":
        share = s * (c - 1) + t * left[label]
        share /= denominator
        np.log(share, out=share)
        return np.negative(share, out=share)
    # (1 - q_j⁻)² + Σ_{k≠j} (q_k⁻)², where leaving the row out changes only what belongs to j.
    other = (total + 1 / n_classes) / N
    counts = cells.counts
    c_squares = np.einsum("vk,vk->v", counts, counts)[cells.row] - c * c
    cross = (counts @ other)[cells.row] - c * other[label]
    other_squares = (other @ other - other * other)[label]
    missed = s * (n - c) + t * ((N - total + 1 - 1 / n_classes) / N)[label]
    squares = s * c_squares + 2 * s * t * cross + t * t * other_squares
    return (missed * missed + squares) / (denominator * denominator)


def _wrong(cells: ClassCells, total: np.ndarray, s: np.ndarray, t: np.ndarray) -> np.ndarray:
    """1 where another class leads without the row, else 0; shape (n_strengths, n_cells).

    Without a row of class j only j's weight ``s N c_j + t N_j`` falls, by ``s N + t``. Its rival is
    the largest weight of the value, or the second largest if that is its own.
    """
    N = float(total.sum())
    best, second = np.full((2, len(s), len(cells.counts)), -np.inf)
    for c, N_k in zip(cells.counts.T, total, strict=True):  # faster than along short rows
        weight = s * (N * c) + t * N_k
        np.maximum(second, np.minimum(best, weight), out=second)
        np.maximum(best, weight, out=best)
    class_weight = s * (N * cells.c) + t * total[cells.label]
    rival = best[:, cells.row]
    rival = np.where(class_weight == rival, second[:, cells.row], rival)
    class_weight -= s * N + t
    wrong = (rival > class_weight).astype(np.float64)
    strength, cell = np.nonzero(rival == class_weight)
    if len(cell):
        row, label = cells.row[cell], cells.label[cell, None]
        weight = s[strength] * N * cells.counts[row] + t[strength] * total
        ahead = total - (total[label] - 1)
        classes = np.arange(len(total))
        preferred = (ahead > 0) | ((ahead == 0) & (classes < label))
        level = (weight == class_weight[strength, cell][:, None]) & (classes != label)
        wrong[strength, cell] = (level & preferred).any(axis=1)
    return wrong


def no_column_losses(loss: str, total: np.ndarray) -> np.ndarray:
    """Left-out loss of a row of each class without a column, 0 for a class without rows."""
    return _no_column_losses(loss, tuple(total.tolist()))


@lru_cache(maxsize=16)  # one number for every column of a table
def _no_column_losses(loss: str, rows: tuple[float, ...]) -> np.ndarray:
    total = np.array(rows)
    cells = cells_of(total[None])
    losses = np.zeros(len(total))
    losses[cells.label] = left_out_losses(loss, cells, total, [math.inf])[0]
    losses.flags.writeable = False
    return losses


def strength_scores(
    loss: str,
    counts: np.ndarray,
    repeats: np.ndarray | None = None,
    *,
    strengths: Sequence[float] = STRENGTHS,
) -> np.ndarray:
    """Mean left-out loss for each strength, shape (n_strengths,).

    Parameters
    ----------
    loss : {"log_loss", "brier", "error"}
    counts : ndarray of shape (n_rows, n_classes)
        The profile: different rows of class counts.
    repeats : ndarray of shape (n_rows,), optional
        How many values have each row; 1 by default.
    strengths : sequence of float
        Rising, above 0.
    """
    total = column_total(counts, repeats)
    sums = np.zeros(len(strengths))
    for cells in parts_of(counts, repeats, len(strengths) if loss == "error" else 1):
        sums += _SUMS[loss](cells, total, strengths)
    return _with_no_column(loss, sums / total.sum(), total, strengths)


def best_readings(
    loss: str,
    readings: Sequence[tuple[np.ndarray, np.ndarray | None]],
    *,
    strengths: Sequence[float] = STRENGTHS,
) -> tuple[np.ndarray, np.ndarray]:
    """Scores and strengths of several readings of one column, shape (n_readings,) each.

    Small ones are scored together: most of their time is the start of each operation.
    """
    total = column_total(*readings[0])
    scores = _readings_scores(CHOSEN_BY[loss], readings, total, strengths)
    chosen = np.array([least(row) for row in scores])
    if loss == "error":
        scores = _readings_scores(loss, readings, total, strengths)
    return scores[np.arange(len(chosen)), chosen], np.asarray(strengths)[chosen]


def _readings_scores(
    loss: str,
    readings: Sequence[tuple[np.ndarray, np.ndarray | None]],
    total: np.ndarray,
    strengths: Sequence[float],
) -> np.ndarray:
    n_rows = [len(counts) for counts, _ in readings]
    if sum(n_rows) * len(total) * len(strengths) > BLOCK:
        return np.stack(
            [strength_scores(loss, *reading, strengths=strengths) for reading in readings]
        )
    repeats = [np.ones(n) if r is None else r for n, (_, r) in zip(n_rows, readings, strict=True)]
    cells = cells_of(np.concatenate([counts for counts, _ in readings]), np.concatenate(repeats))
    losses = left_out_losses(loss, cells, total, strengths)
    losses *= cells.weight
    starts = np.searchsorted(cells.row, np.cumsum(n_rows) - n_rows)
    sums = np.add.reduceat(losses, starts, axis=1).T
    return _with_no_column(loss, sums / total.sum(), total, strengths)


def _with_no_column(
    loss: str, scores: np.ndarray, total: np.ndarray, strengths: Sequence[float]
) -> np.ndarray:
    """Scores with that of infinite strength from the totals: one number for every column."""
    scores[..., np.isinf(strengths)] = total @ no_column_losses(loss, total) / total.sum()
    return scores


def _log_sums(cells: ClassCells, total: np.ndarray, strengths: Sequence[float]) -> np.ndarray:
    """Sum of log losses by strength: ``q⁻ = (π⁻ + (c - 1)/a)/(1 + (n - 1)/a)``.

    Numerator and denominator depend on the cell through few numbers, which are taken together.
    For a value seen once neither depends on a, so that the losses of an id are the same number.
    """
    s, t = pair(strengths)
    inverse = (s / t)[:, None]
    n_classes = len(total)
    left = (total - 1 + 1 / n_classes) / total.sum()
    code, weight = together(cells.c * n_classes + cells.label, cells.weight)
    code = code.astype(np.int64)
    shares = left[code % n_classes] + inverse * (code // n_classes - 1)
    n, n_weight = together(cells.n, cells.weight)
    return np.log1p(inverse * (n - 1)) @ n_weight - np.log(shares) @ weight


def _brier_sums(cells: ClassCells, total: np.ndarray, strengths: Sequence[float]) -> np.ndarray:
    """Sum of Brier losses by strength.

    With ``o_k = (N_k + 1/K)/N``, ``M = Σ_k o_k`` and ``D = n² - Σ_k c_k²`` the rows of a value cost
    ``(D (n + 2 M a) + a² (n (M² + Σ_k o_k²) - 2 M Σ_k c_k o_k))/(n - 1 + a)²``.
    """
    s, t = (weight[:, None] for weight in pair(strengths))
    N = float(total.sum())
    other = (total + 1 / len(total)) / N
    M = 1 + 1 / N
    n, first = cells.n, cells.weight * (cells.n - cells.c)  # Σ_j c_j (n - c_j) is D
    second = cells.weight * (M * M + other @ other - 2 * M * other[cells.label])
    codes, first = together(n, first)
    _, second = together(n, second)
    d = s * (codes - 1) + t
    return ((s * codes + 2 * M * s * t) / d**2) @ first + (t * t / d**2) @ second


def _error_sums(cells: ClassCells, total: np.ndarray, strengths: Sequence[float]) -> np.ndarray:
    return left_out_losses("error", cells, total, strengths) @ cells.weight


_SUMS = {"log_loss": _log_sums, "brier": _brier_sums, "error": _error_sums}


def together(code: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes with the weights of equal small ones added; large ones stay as they are.

    Codes are whole numbers from 0.
    """
    if len(code) < _FEW:
        return code, weight
    small = code < _FEW
    sums = np.bincount(code[small].astype(np.intp), weight[small], _FEW)
    used = np.bincount(code[small].astype(np.intp), minlength=_FEW).nonzero()[0]
    large = ~small
    return np.append(used, code[large]), np.append(sums[used], weight[large])


def least(scores: np.ndarray, rounding: float = 1e-14) -> int:
    """Index of the least score, the last of those that tie (departure 1).

    Differences below ``rounding`` mean nothing even where the scores are 0.
    """
    limit = scores.min()
    return int(np.flatnonzero(scores <= limit + 1e-12 * abs(limit) + rounding)[-1])


def estimate(
    loss: str,
    counts: np.ndarray,
    repeats: np.ndarray | None = None,
    *,
    strengths: Sequence[float] = STRENGTHS,
) -> Estimate:
    """Left-out loss of the shrunk shares, with the strength of least loss (departure 4)."""
    chosen = 0
    if len(strengths) > 1:
        chosen = least(strength_scores(CHOSEN_BY[loss], counts, repeats, strengths=strengths))
    strength = strengths[chosen : chosen + 1]
    total = column_total(counts, repeats)
    base = no_column_losses(loss, total)
    parts, wrong, pairs = [], 0.0, prior_pairs(loss, total, counts, repeats, strengths[chosen])
    for cells in parts_of(counts, repeats):
        losses = left_out_losses(loss, cells, total, strength)[0]
        parts.append(spread(cells.weight, losses, base[cells.label]))
        pairs += value_pairs(loss, cells, total, strengths[chosen])
        if loss != "error":
            wrong += float(_error_sums(cells, total, strength)[0])
    no_column = float(total @ base / total.sum())
    result = joined(loss, parts, pairs, no_column, float(strengths[chosen]))
    if loss == "error":
        return result
    N = result.n_units
    if math.isinf(result.strength):
        wrong = float(total @ no_column_losses("error", total))
    # Not left out: of equally frequent classes the one left out would always be the rarer.
    largest = np.sort(total)[::-1]
    return result._replace(
        share_wrong=wrong / N,
        no_column_wrong=1.0 - float(largest[0]) / N,
        is_tied=len(largest) > 1 and bool(largest[0] - largest[1] <= 1),
    )


def value_pairs(loss: str, cells: ClassCells, total: np.ndarray, strength: float) -> float:
    """Sum of ``b_ij b_ji`` over rows of the same value."""
    if math.isinf(strength):
        return 0.0
    counts, n = cells.counts, row_sums(cells.counts)
    if loss == "error":
        first, second, behind = _leaders(counts, total, strength)
        terms = tie_pairs(first, second, behind, shared=False)
    else:
        d = np.maximum(n - 1, 0) + strength
        q = shares(counts, total, strength) * (total > 0)
        terms = n * (n - 1) / d**2 * share_pairs(loss, q)
    return float(terms.sum() if cells.repeats is None else cells.repeats @ terms)


def _leaders(
    counts: np.ndarray, total: np.ndarray, strength: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of the two likeliest classes of each value, and the lead in rows."""
    if counts.shape[1] == 1:
        return counts[:, 0], np.zeros(len(counts)), np.full(len(counts), math.inf)
    s, t = pair(strength)
    N = float(total.sum())
    weight = s * N * counts + t * total
    two = np.argpartition(weight, counts.shape[1] - 2, axis=1)[:, -2:]
    second, first = (np.take_along_axis(counts, two[:, k : k + 1], 1)[:, 0] for k in (0, 1))
    low, high = (np.take_along_axis(weight, two[:, k : k + 1], 1)[:, 0] for k in (0, 1))
    return first, second, (high - low) / (s * N + t)


def prior_pairs(
    loss: str,
    total: np.ndarray,
    counts: np.ndarray,
    repeats: np.ndarray | None,
    strength: float,
) -> float:
    """Sum of ``b_ij b_ji`` over all rows, as far as their shares rest on the prior."""
    n = row_sums(counts)
    n_all = n if repeats is None else n * repeats
    N = float(total.sum())
    if loss == "error":  # a value seen once is left to the prior
        alone = 1.0 if math.isinf(strength) else float(n_all @ (n == 1)) / N
        first, second, behind = _leaders(total[None], total, math.inf)
        return alone**2 * float(tie_pairs(first, second, behind, shared=False)[0])
    s, t = pair(strength)
    rest = t / (s * np.maximum(n - 1, 0) + t)
    q = prior(total) * (total > 0)
    return float(n_all @ (rest * rest)) / N * float(share_pairs(loss, q[None])[0])


def finer_gain(loss: str, counts: np.ndarray, parent: np.ndarray) -> tuple[float, float]:
    """Loss that finer values take off, summed over rows, and its standard error."""
    coarse = np.stack([np.bincount(parent, column) for column in counts.T], axis=1)
    total = column_total(counts)
    before = np.zeros(coarse.shape)
    cells = cells_of(coarse)
    strength = STRENGTHS[least(strength_scores(CHOSEN_BY[loss], coarse))]
    before[cells.row, cells.label] = left_out_losses(loss, cells, total, [strength])[0]
    cells = cells_of(counts)
    strength = STRENGTHS[least(strength_scores(CHOSEN_BY[loss], counts))]
    after = left_out_losses(loss, cells, total, [strength])[0]
    gains = before[parent[cells.row], cells.label] - after
    gained = float(cells.weight @ gains)
    squares = float(cells.weight @ np.square(gains - gained / total.sum()))
    return gained, math.sqrt(squares + value_pairs(loss, cells, total, strength))


# --- a numeric target: the mean in the place of shares ------------------------------------------


def shrunk_means(moments: np.ndarray, strength: float) -> np.ndarray:
    """Mean of each value shrunk to that of all rows, ``m + n b/(n + a)``; m for a value not seen.

    A value not seen has a count of 0.
    """
    s, t = pair(strength)
    n, mean = moments[:, 0], moments[:, 1]
    middle = float(n @ mean / n.sum())
    return middle + s * n * (mean - middle) / (s * n + t)


class CountSums(NamedTuple):
    """Sums over the values that have the same number of rows; of different values they add.

    b is the mean of a value minus that of all rows, and M_r the sum over its rows of
    ``(y - mean of the value)^r``.
    """

    n: np.ndarray  # shape (n_counts,): rows of a value
    n_values: np.ndarray  # shape (n_counts,)
    # b2, b4, m2, b2_m2, b_m3, m4, shape (n_counts,): sums of ``b²``, ``b⁴``, ``M_2``, ``b² M_2``,
    # ``b M_3``, ``M_4``
    b2: np.ndarray
    b4: np.ndarray
    m2: np.ndarray
    b2_m2: np.ndarray
    b_m3: np.ndarray
    m4: np.ndarray


def count_sums(moments: np.ndarray) -> CountSums:
    """What the left-out squared error of a column depends on.

    A row of ``moments`` is a value: count, mean, second to fourth moment about it (sums over rows).
    """
    c, mean, m2, m3, m4 = moments.T
    n, inverse = np.unique(c, return_inverse=True)
    b = mean - float(c @ mean / c.sum())
    b2 = b * b
    summands = (np.ones(len(c)), b2, b2 * b2, m2, b2 * m2, b * m3, m4)
    return CountSums(n, *(np.bincount(inverse, each, len(n)) for each in summands))


def residual_factors(
    n: np.ndarray, N: float, strengths: Sequence[float]
) -> tuple[np.ndarray, np.ndarray, float]:
    """Factors (A, B, h) of the residuals ``A b + B e`` and, without a column, ``h (b + e)``.

    With y centred over all rows, ``y = b + e``, ``S = n b`` and ``d = n - 1 + a`` the residual is
    ``((d + 1 + a/(N-1)) y - S)/d = (a h b + (n + a h) e)/d`` with ``h = N/(N - 1)``.
    """
    s, t = (weight[:, None] for weight in pair(strengths))
    h = N / (N - 1)
    d = s * (n - 1) + t
    alone = d == 0  # a = 0 and one row: the mean of the others
    d = np.where(alone, 1.0, d)
    return np.where(alone, h, t * h / d), (s * n + t * h) / d, h


def mean_scores(sums: CountSums, *, strengths: Sequence[float] = STRENGTHS) -> np.ndarray:
    """Left-out squared error of the value's mean shrunk to the mean of all rows, by strength.

    With strength 0 nothing is shrunk, and a value seen once gets the mean of the other rows.
    """
    N = float(sums.n @ sums.n_values)
    A, B, _ = residual_factors(sums.n, N, strengths)
    return (A**2 @ (sums.n * sums.b2) + B**2 @ sums.m2) / N


def estimate_mean(sums: CountSums, *, strengths: Sequence[float] = STRENGTHS) -> Estimate:
    """Left-out squared error of the shrunk mean, with the strength of least error."""
    scores = mean_scores(sums, strengths=strengths)
    chosen = least(scores, 0.0)
    N = float(sums.n @ sums.n_values)
    A, B, h = residual_factors(sums.n, N, strengths[chosen : chosen + 1])
    A, B = A[0], B[0]
    no_column = float(mean_scores(sums, strengths=[math.inf])[0])
    score = no_column if math.isinf(strengths[chosen]) else float(scores[chosen])
    gain = no_column - score
    return Estimate(
        "squared_error",
        score,
        standard_error(_quadratic_squares(sums, A * A, A * B, B * B, score), N),
        math.sqrt(_pairs(sums, N, strengths[chosen])) / N,
        no_column,
        gain,
        standard_error(
            _quadratic_squares(sums, h * h - A * A, h * h - A * B, h * h - B * B, gain), N
        ),
        math.nan,
        float(strengths[chosen]),
        N,
    )


def _quadratic_squares(
    sums: CountSums, on_b: np.ndarray, on_be: np.ndarray, on_e: np.ndarray, mean: float
) -> float:
    """Sum over rows of ``(on_b b² + 2 on_be b e + on_e e² - mean)²``."""
    total = float(
        on_b**2 @ (sums.n * sums.b4)
        + (4 * on_be**2 + 2 * on_b * on_e) @ sums.b2_m2
        + 4 * (on_be * on_e) @ sums.b_m3
        + on_e**2 @ sums.m4
    )
    N = float(sums.n @ sums.n_values)
    return max(total - N * mean**2, 0.0)


def _pairs(sums: CountSums, N: float, strength: float) -> float:
    """Sum of ``b_ij b_ji`` (`left_out`): two rows of a value have ``4 e_i² e_j²/d²``.

    With one variance within values, and that of all rows as far as the mean rests on theirs.
    """
    s, t = pair(strength)
    n, n_values = sums.n, sums.n_values
    within = float(sums.m2.sum()) / max(N - float(n_values.sum()), 1.0)
    whole = float(sums.m2.sum() + n @ sums.b2) / (N - 1)
    d = np.where(s * (n - 1) + t > 0, s * (n - 1) + t, 1.0)
    rest = np.where(n == 1, 1.0, t / d)
    inside = float(n_values @ (s * n * (n - 1) / d**2))
    return 4 * (inside * within**2 + float((n * n_values) @ rest**2) / N * whole**2)


def finer_mean_gain(moments: np.ndarray, parent: np.ndarray) -> tuple[float, float]:
    """Squared error that finer values take off, summed over rows, and its standard error.

    With e a row's distance from the mean of its finer value, which is at b, and δ the distance of
    that mean from the coarser value's, at B, the row gains
    ``(A' B + B' (e + δ))² - (A b + B e)²`` with the factors of `residual_factors`.
    """
    coarse = grouped_moments(parent, int(parent.max()) + 1, moments)
    c, mean, m2, m3, m4 = moments.T
    N = float(c.sum())
    centre = float(c @ mean) / N
    on_coarse = _factors(coarse, N)[:, parent]
    on_fine = _factors(moments, N)
    # Residuals of a row, as a level and a slope in e.
    before = on_coarse[0] * (coarse[parent, 1] - centre)
    before = before + on_coarse[1] * (mean - coarse[parent, 1])
    after = on_fine[0] * (mean - centre)
    level = before**2 - after**2
    slope = 2 * (before * on_coarse[1] - after * on_fine[1])
    bend = on_coarse[1] ** 2 - on_fine[1] ** 2
    gained = float(c @ level + bend @ m2)
    level = level - gained / N
    squares = c * level**2 + (2 * level * bend + slope**2) * m2
    squares = squares + 2 * slope * bend * m3 + bend**2 * m4
    within = float(m2.sum()) / max(N - len(c), 1.0)
    d = on_fine[2]
    pairs = 4 * within**2 * float(np.where(c > 1, c * (c - 1) / d**2, 0.0).sum())
    return gained, math.sqrt(max(float(squares.sum()), 0.0) + pairs)


def _factors(moments: np.ndarray, N: float) -> np.ndarray:
    """Factors A and B of each value's residuals, and d, at the strength of least error."""
    sums = count_sums(moments)
    strength = STRENGTHS[least(mean_scores(sums), 0.0)]
    A, B, _ = residual_factors(moments[:, 0], N, [strength])
    return np.stack([A[0], B[0], moments[:, 0] - 1 + strength])


# --- the plain mean (`kernel`, departure 3) -----------------------------------------------------
#
# A value seen once costs what the mean of the other rows costs the average row, so that an id ties
# a constant column. `plain_score` and `plain_no_column` take the rows and repeats of a
# `holdtrue.sums.Profile`, centered at the mean of all rows: sums over the values with the same
# number of rows, and how many such values there are.


def plain_score(rows: np.ndarray, repeats: np.ndarray) -> float:
    """Leave-one-out squared error of the value's mean.

    ``Σ_{c_v≥2} (c_v/(c_v - 1))² SS_v/m``, and ``m SS/(m - 1)²`` for a row whose value is seen
    once, with SS the sum of squares of all rows.
    """
    c = rows[:, C]
    n_once = float(repeats[c == 1].sum())
    total = float(_factor(c) @ rows[:, M2]) + n_once * plain_no_column(rows, repeats)
    return total / float(repeats @ c)


def plain_no_column(rows: np.ndarray, repeats: np.ndarray) -> float:
    """Leave-one-out squared error of the mean of all rows, ``m SS/(m - 1)²``."""
    m = float(repeats @ rows[:, C])
    return m * _total_squares(rows) / (m - 1) ** 2


def plain_gain(moments: np.ndarray, parent: np.ndarray | None = None) -> tuple[float, float]:
    """Squared error that finer values take off, summed over rows, and its standard error.

    A row gains ``d = (C/(C-1))² (y - mean_V)² - (c/(c-1))² (y - mean_v)²``. Where the cut says
    nothing and the target is normal, the sum over a value of c rows has f(c) times the variance of
    its rows, ``f = ((2c-1)² + (c-1)³)/(c (c-1) (2c-1))``: 5/3 for two rows, for many ½.

    ``parent`` is the coarser value that each is cut out of; by default there is one.
    """
    c, mean, squares, cubes, fourths = moments.T
    parent = np.zeros(len(c), dtype=np.intp) if parent is None else parent
    m = float(c.sum())
    middle = float(c @ mean) / m
    alone = m * float(squares.sum() + c @ (mean - middle) ** 2) / (m - 1) ** 2
    whole = np.bincount(parent, c)
    b = mean - (np.bincount(parent, c * mean) / whole)[parent]
    before, after = _factor(whole)[parent], _factor(c)
    # Each row gains level + slope d + bend d², with d its distance from the mean of its value.
    level = alone * ((whole == 1)[parent].astype(float) - (c == 1)) + before * b**2
    slope, bend = 2 * before * b, before - after
    gained = float(c @ level + bend @ squares)
    level = level - gained / m
    spread = c * level**2 + (2 * level * bend + slope**2) * squares
    spread = spread + 2 * slope * bend * cubes + bend**2 * fourths
    several = np.maximum(c, 2)
    f = (2 * several - 1) ** 2 + (several - 1) ** 3
    f = np.where(c == 1, 1.0, f / (several * (several - 1) * (2 * several - 1)))
    return gained, math.sqrt(max(float(f @ spread), 0.0))


def _factor(c: np.ndarray) -> np.ndarray:
    """``(c/(c - 1))²``, and 0 below two rows."""
    return np.where(c >= 2, (c / np.maximum(c - 1, 1)) ** 2, 0.0)


def _total_squares(rows: np.ndarray) -> float:
    """Sum of squares of all rows about their mean."""
    return float(rows[:, M2].sum() + rows[:, C] @ rows[:, B2])
