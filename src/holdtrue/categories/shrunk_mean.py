"""A numeric target: left-out squared error of a value's mean shrunk to the mean of all rows.

`shrunk` with a mean in the place of shares.

Notation
--------
========  =========================================================================================
n, N      rows of a value, all rows
b, e      mean of the value minus that of all rows; a row's y minus the mean of its value
S         ``n b``, sum of the value's y once y is centred over all rows
M_r       ``Σ e^r`` over the rows of the value
a, s, t   ``strength``, and its pair as in `shrunk`
d         ``n - 1 + a``
h         ``N/(N - 1)``
========  =========================================================================================

Departures
----------
1. The prior is the plain mean of all rows, without a row of its own as the shares have.
2. Strength 0 charges a row whose value is seen once its own distance from the mean of the others;
   `plain_score` charges it the average row's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from holdtrue.categories.estimate import Estimate
from holdtrue.categories.shrunk import STRENGTHS, least, pair, standard_error
from holdtrue.columns.bins import grouped_moments
from holdtrue.sums.profile import B2, B4, M2, M2B2, M3B, M4, C, moment_sums


def shrunk_means(moments: np.ndarray, strength: float) -> np.ndarray:
    """Mean of each value shrunk to that of all rows, ``m + n b/(n + a)``; m for a value not seen.

    A value not seen has a count of 0.
    """
    s, t = pair(strength)
    n, mean = moments[:, 0], moments[:, 1]
    middle = float(n @ mean / n.sum())
    return middle + s * n * (mean - middle) / (s * n + t)


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


# `mean_scores`, `estimate_mean`, `plain_score` and `plain_no_column` take the rows and repeats of a
# `holdtrue.sums.Profile`, centered at the mean of all rows: sums over the values with the same
# number of rows, and how many such values there are.


def mean_scores(
    rows: np.ndarray, repeats: np.ndarray, *, strengths: Sequence[float] = STRENGTHS
) -> np.ndarray:
    """Left-out squared error of the value's mean shrunk to the mean of all rows, by strength.

    With strength 0 nothing is shrunk, and a value seen once gets the mean of the other rows.
    """
    n = rows[:, C]
    N = float(repeats @ n)
    A, B, _ = residual_factors(n, N, strengths)
    return (A**2 @ (n * rows[:, B2]) + B**2 @ rows[:, M2]) / N


def estimate_mean(
    rows: np.ndarray, repeats: np.ndarray, *, strengths: Sequence[float] = STRENGTHS
) -> Estimate:
    """Left-out squared error of the shrunk mean, with the strength of least error."""
    scores = mean_scores(rows, repeats, strengths=strengths)
    chosen = least(scores, 0.0)
    N = float(repeats @ rows[:, C])
    A, B, h = residual_factors(rows[:, C], N, strengths[chosen : chosen + 1])
    A, B = A[0], B[0]
    no_column = float(mean_scores(rows, repeats, strengths=[math.inf])[0])
    score = no_column if math.isinf(strengths[chosen]) else float(scores[chosen])
    of_gain = h * h - A * A, h * h - A * B, h * h - B * B
    return Estimate(
        "squared_error",
        score,
        standard_error(_quadratic_squares(rows, N, A * A, A * B, B * B, score), N),
        math.sqrt(_pairs(rows, repeats, N, strengths[chosen])) / N,
        no_column,
        standard_error(_quadratic_squares(rows, N, *of_gain, no_column - score), N),
        math.nan,
        float(strengths[chosen]),
        N,
    )


def _quadratic_squares(
    rows: np.ndarray, N: float, on_b: np.ndarray, on_be: np.ndarray, on_e: np.ndarray, mean: float
) -> float:
    """Sum over rows of ``(on_b b² + 2 on_be b e + on_e e² - mean)²``."""
    total = float(
        on_b**2 @ (rows[:, C] * rows[:, B4])
        + (4 * on_be**2 + 2 * on_b * on_e) @ rows[:, M2B2]
        + 4 * (on_be * on_e) @ rows[:, M3B]
        + on_e**2 @ rows[:, M4]
    )
    return max(total - N * mean**2, 0.0)


def _pairs(rows: np.ndarray, repeats: np.ndarray, N: float, strength: float) -> float:
    """Sum of ``b_ij b_ji`` (`shrunk`): two rows of a value have ``4 e_i² e_j²/d²``.

    With one variance within values, and that of all rows as far as the mean rests on theirs.
    """
    s, t = pair(strength)
    n = rows[:, C]
    within = float(rows[:, M2].sum()) / max(N - float(repeats.sum()), 1.0)
    whole = float(rows[:, M2].sum() + n @ rows[:, B2]) / (N - 1)
    d = np.where(s * (n - 1) + t > 0, s * (n - 1) + t, 1.0)
    rest = np.where(n == 1, 1.0, t / d)
    inside = float(repeats @ (s * n * (n - 1) / d**2))
    return 4 * (inside * within**2 + float((n * repeats) @ rest**2) / N * whole**2)


def finer_mean_gain(moments: np.ndarray, parent: np.ndarray) -> tuple[float, float]:
    """Squared error that finer values take off, summed over rows, and its standard error.

    With e a row's distance from the mean of its finer value, which is at b, and δ the distance of
    that mean from the coarser value's, at B, the row gains
    ``(A' B + B' (e + δ))² - (A b + B e)²`` with the factors of `residual_factors`.
    """
    coarse = grouped_moments(parent, int(parent.max()) + 1, moments)
    c, mean, m2 = moments.T[:3]
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
    gained, squares = _gains(moments, level, slope, on_coarse[1] ** 2 - on_fine[1] ** 2)
    within = float(m2.sum()) / max(N - len(c), 1.0)
    d = on_fine[2]
    pairs = 4 * within**2 * float(np.where(c > 1, c * (c - 1) / d**2, 0.0).sum())
    return gained, math.sqrt(max(float(squares.sum()), 0.0) + pairs)


def _gains(
    moments: np.ndarray, level: np.ndarray, slope: np.ndarray, bend: np.ndarray
) -> tuple[float, np.ndarray]:
    """Sum over all rows of ``level + slope e + bend e²``, and squares about its mean, by value."""
    c, _, m2, m3, m4 = moments.T
    gained = float(c @ level + bend @ m2)
    level = level - gained / float(c.sum())
    squares = c * level**2 + (2 * level * bend + slope**2) * m2
    return gained, squares + 2 * slope * bend * m3 + bend**2 * m4


def _factors(moments: np.ndarray, N: float) -> np.ndarray:
    """Factors A and B of each value's residuals, and d, at the strength of least error."""
    strength = STRENGTHS[least(mean_scores(*moment_sums(moments)[:2]), 0.0)]
    A, B, _ = residual_factors(moments[:, 0], N, [strength])
    return np.stack([A[0], B[0], moments[:, 0] - 1 + strength])


# --- the plain mean (`kernel`, departure 3) -----------------------------------------------------
#
# A value seen once costs what the mean of the other rows costs the average row, so that an id ties
# a constant column.


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
    total = float(rows[:, M2].sum() + rows[:, C] @ rows[:, B2])
    return m * total / (m - 1) ** 2


def plain_gain(moments: np.ndarray, parent: np.ndarray) -> tuple[float, float]:
    """Squared error that finer values take off, summed over rows, and its standard error.

    A row gains ``d = (C/(C-1))² (y - mean_V)² - (c/(c-1))² (y - mean_v)²``. Where the cut says
    nothing and the target is normal, the sum over a value of c rows has f(c) times the variance of
    its rows, ``f = ((2c-1)² + (c-1)³)/(c (c-1) (2c-1))``: 5/3 for two rows, for many ½.

    ``parent`` is the coarser value that each is cut out of.
    """
    c, mean, squares = moments.T[:3]
    m = float(c.sum())
    middle = float(c @ mean) / m
    alone = m * float(squares.sum() + c @ (mean - middle) ** 2) / (m - 1) ** 2
    whole = np.bincount(parent, c)
    b = mean - (np.bincount(parent, c * mean) / whole)[parent]
    before, after = _factor(whole)[parent], _factor(c)
    level = alone * ((whole == 1)[parent].astype(float) - (c == 1)) + before * b**2
    gained, spread = _gains(moments, level, 2 * before * b, before - after)
    several = np.maximum(c, 2)
    f = (2 * several - 1) ** 2 + (several - 1) ** 3
    f = np.where(c == 1, 1.0, f / (several * (several - 1) * (2 * several - 1)))
    return gained, math.sqrt(max(float(f @ spread), 0.0))


def _factor(c: np.ndarray) -> np.ndarray:
    """``(c/(c - 1))²``, and 0 below two rows."""
    return np.where(c >= 2, (c / np.maximum(c - 1, 1)) ** 2, 0.0)
