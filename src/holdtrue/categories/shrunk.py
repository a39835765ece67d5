"""Left-out losses of predictors of classes: shares shrunk to those of all rows, rules (4) and (5).

Paper
-----
Sabato & Shalev-Shwartz (2008) estimate the error of rules (4) and (5), in `kernel`; nobody deploys
those. The left-out loss of a predictor that shrinks, from the same counts, is not in the paper.

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
l_i       left-out loss of row i
S_r       ``Σ_k q_k^r``
d         rows and strength that the left-out shares of a value rest on, ``n - 1 + a``
b_ij      what row j being in the sample changes about l_i, beyond what it changes on average
========  ==========================================================================================

Where to find it
----------------
=======================================  ==========================================================
a mean left-out loss and its errors      `spread`, `joined`; module `estimate`
shares, likeliest class                  `shares`, `likeliest`
left-out loss of each cell               `left_out_losses`, `rule_losses`
left-out loss by strength                `strength_scores`, `best_readings`
strength, score, standard errors, gain   `estimate`, `rival_losses`
what finer values gain                   `finer_gain`: each column at the strength of its own
rules (4) and (5) with these errors      `estimate_rule`
mean of a numeric target                 module `shrunk_mean`
groups left out whole                    module `grouped`
a split of a tree                        module `tree`
=======================================  ==========================================================

The estimate minus the loss on new rows is the mean of ``l_i - E l_i``, each of mean 0 given the
other rows. Its variance is ``(Σ_i Var l_i + Σ_{i≠j} E b_ij b_ji)/N²``. The rows' own losses give
the first sum. The second is not small where values have few rows or classes are even: a pair of
coin tosses is lost whole or not at all (rule (4): variance 1, of which the rows show ½), and the
log loss of an even coin has no spread over rows, though the estimate errs by about 1/N.

Departures
----------
1. Strengths whose losses differ by less than 1e-12 of the least tie, and the largest is taken: the
   losses of an id are the same for all of them but for rounding.
2. Pairs are counted within a value, and over all rows as far as the prior decides; the few that
   meet in the prior only, while the value decides, are left aside. In `tie_pairs` the two most
   frequent classes stand for all.
3. A class is the likeliest by ``N c_k + a N_k``, which orders as q_k does and is a whole number
   for whole 2a below 2⁵³: ties are exact. They go to the larger N_k, then to the first class.
4. The strength for ``error`` is that of least Brier loss. The least of twelve shares of errors is
   too low by .006 at 500 rows; and few rows change sides, so that it says little of the strength.
5. The scores of rules (4) and (5) are those of `kernel.criterion_value`; `kernel.jackknife` has
   intervals for rule (5) that leave [0, 1] by far, because one row changes who has the majority.
6. Without a column the share wrong is that of the class most frequent in a random half of the rows
   (or groups), in the other half: `most_frequent`. Left out alone of a balanced sample, a row finds
   its own class in the minority: constant shares would be wrong for all rows, and any column seem
   to help. In all rows the most frequent class is wrong too seldom, by .02 to .1 where groups are
   few. Classes that differ by a row at most are so by design, and one is as good as the other.
7. What a column gains in the share wrong is counted from the class most frequent in all rows:
   `rival_losses`. The likeliest classes of a column are chosen in all rows but one; beside a class
   chosen in half of them a column that names the same class for every value would gain for sure.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from holdtrue.categories.estimate import Estimate
from holdtrue.categories.kernel import unseen_cost

STRENGTHS = (*(2.0**power for power in range(-1, 10)), math.inf)
LOSSES = ("log_loss", "brier", "error")
# The loss by which the strength is chosen (departure 4).
CHOSEN_BY = {"log_loss": "log_loss", "brier": "brier", "error": "brier"}
_FEW = 1 << 12  # codes below it are counted in a table
_BLOCK = 1 << 17  # numbers in one temporary array


# --- a mean left-out loss, and how far it may be off --------------------------------------------


def clearly_least(scores: Sequence[float] | np.ndarray) -> int:
    """Index of the least score; the first of those that differ by rounding alone."""
    best = 0
    for at, score in enumerate(scores):
        if score < scores[best] - 1e-12 * abs(scores[best]):
            best = at
    return best


def spread(weight: np.ndarray, losses: np.ndarray, base: np.ndarray) -> tuple[float, ...]:
    """Rows of some cells, means of their losses and gains, and squares about those means.

    ``base`` are the losses without a column.
    """
    N = float(weight.sum())
    gains = base - losses
    loss, gain = float(weight @ losses) / N, float(weight @ gains) / N
    # About the mean: at 20 million rows Σ l² - N mean² would lose half of the digits.
    loss_squares = float(weight @ np.square(losses - loss))
    return N, loss, gain, loss_squares, float(weight @ np.square(gains - gain))


def joined(
    loss: str, parts: Sequence[tuple[float, ...]], pairs: float, no_column: float, strength: float
) -> Estimate:
    """Estimate from the `spread` of all parts (Chan, Golub & LeVeque 1983).

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
        standard_error(squares_of_gain, N),
        score,
        strength,
        N,
        no_column,
    )


def standard_error(squares: float, n_units: float) -> float:
    """Standard error of a mean of ``n_units`` from their squares about it; NaN for one."""
    return math.sqrt(squares / (n_units * (n_units - 1))) if n_units > 1 else math.nan


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
    both classes where the lead is a row at most (where ties are shared: where there is none), else
    pairs of the first where it is two at most.

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


# --- the predictor ------------------------------------------------------------------------------


def prior(total: np.ndarray) -> np.ndarray:
    """``π_k = (N_k + 1/K)/(N + 1)``, shares where the value says nothing."""
    N = sizes_of(total)[..., None]
    return (total + 1 / total.shape[-1]) / (N + 1)


def shares(counts: np.ndarray, total: np.ndarray, strength: float) -> np.ndarray:
    """Shares of the classes, ``q_k = (c_k + a π_k)/(n + a)``; π for a value not seen."""
    s, t = pair(strength)
    return (s * counts + t * prior(total)) / (s * sizes_of(counts) + t)[:, None]


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


class ClassCells(NamedTuple):
    """Cells with rows: a row of the profile, or of a part of it, and a class."""

    counts: np.ndarray  # shape (n_rows, n_classes): the rows, as floats
    repeats: np.ndarray | None  # shape (n_rows,): how many values have each row
    # row, label, shape (n_cells,)
    row: np.ndarray
    label: np.ndarray
    sizes: np.ndarray  # shape (n_rows,): rows of the sample with a value of each row
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
    sizes = sizes_of(counts)
    return ClassCells(counts, repeats, row, label, sizes, c, sizes[row], weight)


def sizes_of(counts: np.ndarray) -> np.ndarray:
    """Rows of the sample with a value of each row, as floats: exact, as counts are whole."""
    return counts @ np.ones(counts.shape[-1])


def parts_of(
    counts: np.ndarray, repeats: np.ndarray | None = None, n_strengths: int = 1
) -> Iterator[ClassCells]:
    """Cells of a profile, in parts whose arrays over all strengths stay in the cache."""
    n_rows = max(_BLOCK // (n_strengths * counts.shape[1]), 1)
    for start in range(0, len(counts), n_rows):
        part = slice(start, start + n_rows)
        yield cells_of(counts[part], None if repeats is None else repeats[part])


def column_total(counts: np.ndarray, repeats: np.ndarray | None = None) -> np.ndarray:
    """``N_k``, rows of each class, as floats."""
    total = np.einsum("vk->k", counts) if repeats is None else repeats @ counts
    return total.astype(np.float64)


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
    wrong[s[:, 0] == 0] = no_column_losses("error", total)[cells.label]
    return wrong


def most_frequent(total: np.ndarray, variance: float | None = None) -> tuple[np.ndarray, float]:
    """Losses of a row of each class where one class is predicted for all, and their ``b_ij b_ji``.

    Of the two most frequent classes m and r the first leads by D rows with the standard error s. In
    a random half of the rows it leads by ``D/2 + s/2 Z``, in the other by ``D/2 - s/2 Z``, Z
    normal: what is right is ``(N_m + N_r)/2`` and ``D (Φ(z) - ½) - s φ(z)`` with ``z = D/s``.

    Parameters
    ----------
    total : ndarray of shape (n_classes,)
    variance : float, optional
        ``s²``; by default that of rows, ``(N (N_m + N_r) - D²)/(N - 1)``.

    Returns
    -------
    losses : ndarray of shape (n_classes,)
        ``Φ(-z) + s φ(z)/(N_m + N_r)`` for m, with Φ(z) for r, and 1 for the others.
    pairs : float
        What the variance of the sum of the losses is beyond ``s² (Φ(z) - ½)²``, that of the losses
        as they are: the sum changes with D by ``Φ(z) - ½ + 2 z φ(z)``, and is given at least the ½
        by which it changes where the most frequent class is known.
    """
    if len(total) == 1:
        return np.zeros(1), 0.0
    first, second = np.argsort(-total, kind="stable")[:2]
    lead, both = float(total[first] - total[second]), float(total[first] + total[second])
    if variance is None:
        N = float(total.sum())
        variance = (N * both - lead * lead) / max(N - 1, 1)
    behind, extra, slope, s = 0.0, 0.0, 0.0, math.sqrt(max(variance, 0.0))
    if np.count_nonzero(total) > 1 and lead <= 1:
        behind = 0.5
    elif s > 0:
        z = lead / s
        behind = math.erfc(z / math.sqrt(2)) / 2  # Φ(-z)
        density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        extra, slope = s * density / both, 0.5 - behind + 2 * z * density
    losses = np.ones(len(total))
    losses[second] = min(1 - behind + extra, 1.0)
    losses[first] = behind + extra
    return losses, variance * (max(0.5, slope) ** 2 - (0.5 - behind) ** 2)


def no_column_losses(loss: str, total: np.ndarray) -> np.ndarray:
    """Loss of a row of each class, left out, without a column; 0 for a class without rows."""
    return _no_column_losses(loss, tuple(total.tolist()))


def rival_losses(loss: str, total: np.ndarray) -> np.ndarray:
    """Losses without a column, by class, from which a column's gain is counted (departure 7)."""
    if loss == "error":
        return (np.arange(len(total)) != total.argmax()).astype(np.float64)
    return no_column_losses(loss, total)


@lru_cache(maxsize=16)  # one number for every column of a table
def _no_column_losses(loss: str, rows: tuple[float, ...]) -> np.ndarray:
    total = np.array(rows)
    if loss == "error":
        losses = np.where(total > 0, most_frequent(total)[0], 0.0)
    else:
        cells, losses = cells_of(total[None]), np.zeros(len(total))
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
    loss: str, readings: Sequence[tuple[np.ndarray, np.ndarray | None]]
) -> tuple[np.ndarray, np.ndarray]:
    """Scores and strengths of several readings of one column, shape (n_readings,) each.

    Small ones are scored together: most of their time is the start of each operation.
    """
    total = column_total(*readings[0])
    scores = _readings_scores(CHOSEN_BY[loss], readings, total)
    chosen = np.array([least(row) for row in scores])
    if loss == "error":
        scores = _readings_scores(loss, readings, total)
    return scores[np.arange(len(chosen)), chosen], np.asarray(STRENGTHS)[chosen]


def best_reading(
    loss: str, readings: Sequence[tuple[np.ndarray, np.ndarray | None]]
) -> tuple[int, float, float]:
    """Place of the best of several readings of one column, its score and its strength."""
    scores, strengths = best_readings(loss, readings)
    at = clearly_least(scores)
    return at, float(scores[at]), float(strengths[at])


def best_estimate(
    loss: str, readings: Sequence[tuple[np.ndarray, np.ndarray | None]]
) -> tuple[int, Estimate]:
    """Place of the best of several readings of one column, and its estimate."""
    at, _, strength = best_reading(loss, readings)
    return at, estimate(loss, *readings[at], strengths=[strength])


def _readings_scores(
    loss: str, readings: Sequence[tuple[np.ndarray, np.ndarray | None]], total: np.ndarray
) -> np.ndarray:
    """Mean left-out loss of each reading by strength, shape (n_readings, n_strengths)."""
    n_rows = [len(counts) for counts, _ in readings]
    if sum(n_rows) * len(total) * len(STRENGTHS) > _BLOCK:
        return np.stack([strength_scores(loss, *reading) for reading in readings])
    repeats = [np.ones(n) if r is None else r for n, (_, r) in zip(n_rows, readings, strict=True)]
    cells = cells_of(np.concatenate([counts for counts, _ in readings]), np.concatenate(repeats))
    losses = left_out_losses(loss, cells, total, STRENGTHS)
    losses *= cells.weight
    starts = np.searchsorted(cells.row, np.cumsum(n_rows) - n_rows)
    sums = np.add.reduceat(losses, starts, axis=1).T
    return _with_no_column(loss, sums / total.sum(), total, STRENGTHS)


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
    rival = base if math.isinf(strengths[chosen]) else rival_losses(loss, total)
    parts, wrong, pairs = [], 0.0, prior_pairs(loss, total, counts, repeats, strengths[chosen])
    for cells in parts_of(counts, repeats):
        losses = left_out_losses(loss, cells, total, strength)[0]
        parts.append(spread(cells.weight, losses, rival[cells.label]))
        pairs += value_pairs(loss, cells, total, strengths[chosen])
        if loss != "error":
            wrong += float(_error_sums(cells, total, strength)[0])
    no_column = float(total @ base / total.sum())
    result = joined(loss, parts, pairs, no_column, float(strengths[chosen]))
    if loss == "error":
        return result._replace(half_cost=float(total @ (base - rival)) / result.n_units)
    N, largest = result.n_units, np.sort(total)[::-1]
    return result._replace(
        share_wrong=wrong / N,
        no_column_wrong=float(total @ no_column_losses("error", total)) / N,
        is_tied=len(largest) > 1 and bool(largest[0] - largest[1] <= 1),
    )


def value_pairs(loss: str, cells: ClassCells, total: np.ndarray, strength: float) -> float:
    """Sum of ``b_ij b_ji`` over rows of the same value."""
    if math.isinf(strength):
        return 0.0
    counts, n = cells.counts, cells.sizes
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
    loss: str, total: np.ndarray, counts: np.ndarray, repeats: np.ndarray | None, strength: float
) -> float:
    """Sum of ``b_ij b_ji`` over all rows, as far as their shares rest on the prior."""
    n = sizes_of(counts)
    n_all = n if repeats is None else n * repeats
    N = float(total.sum())
    if loss == "error":
        if math.isinf(strength):
            return most_frequent(total)[1]
        alone = float(n_all @ (n == 1)) / N  # a value seen once is left to the prior
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
    before[cells.row, cells.label] = _losses_beside(loss, cells, total, strength)
    cells = cells_of(counts)
    strength = STRENGTHS[least(strength_scores(CHOSEN_BY[loss], counts))]
    after = _losses_beside(loss, cells, total, strength)
    gains = before[parent[cells.row], cells.label] - after
    gained = float(cells.weight @ gains)
    squares = float(cells.weight @ np.square(gains - gained / total.sum()))
    return gained, math.sqrt(squares + value_pairs(loss, cells, total, strength))


def _losses_beside(loss: str, cells: ClassCells, total: np.ndarray, strength: float) -> np.ndarray:
    """`left_out_losses` to be compared with those of another column, shape (n_cells,)."""
    if math.isinf(strength):
        return rival_losses(loss, total)[cells.label]
    return left_out_losses(loss, cells, total, [strength])[0]


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
        pairs += _rule_pairs(criterion, cells)
    return joined(criterion, parts, pairs, float(total @ base) / N, math.nan)


def _rule_pairs(criterion: str, cells: ClassCells) -> float:
    """`value_pairs` for rule (4) or (5)."""
    counts, n = cells.counts, cells.sizes
    if criterion == "ginger":
        several = np.maximum(n, 2)
        terms = several / (several - 1) * share_pairs("ginger", counts / several[:, None])
        terms = np.where(n >= 2, terms, 0.0)
    else:
        two = np.partition(counts, counts.shape[1] - 2, axis=1)[:, -2:]
        terms = tie_pairs(two[:, 1], two[:, 0], two[:, 1] - two[:, 0], shared=True)
    return float(terms.sum() if cells.repeats is None else cells.repeats @ terms)
