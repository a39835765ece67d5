"""A numeric target: leave-one-out squared error of the value's mean (`kernel`, departure 3).

A value seen once costs what the mean of the other rows costs the average row, so that an id ties a
constant column. ``moments`` has a row per value: count, mean, and second to fourth moment of the
target about that mean, shape (n_values, 5).
"""

from __future__ import annotations

import math

import numpy as np


def score(moments: np.ndarray) -> float:
    """Leave-one-out squared error of the value's mean.

    ``Σ_{c_v≥2} (c_v/(c_v - 1))² SS_v/m``, and ``m SS/(m - 1)²`` for a row whose value is seen
    once, with SS the sum of squares of all rows.
    """
    c, squares = moments[:, 0], moments[:, 2]
    once = np.count_nonzero(c == 1) * no_column(moments)
    return (float(_factor(c) @ squares) + once) / float(c.sum())


def no_column(moments: np.ndarray) -> float:
    """Leave-one-out squared error of the mean of all rows, ``m SS/(m - 1)²``."""
    m = float(moments[:, 0].sum())
    return m * _total_squares(moments)[1] / (m - 1) ** 2


def jackknife(moments: np.ndarray) -> tuple[float, float]:
    """Jackknife standard errors of `score` and of its gain over `no_column`.

    Without row i, with ``d = y_i - mean_v`` and ``e = y_i - mean = d + b_v``:
    ``SS_v' = SS_v - c/(c - 1) d²`` and ``SS' = SS - m/(m - 1) e²``. The estimate is thus a
    quadratic in d, whose square sums over the rows of a value from moments up to the fourth.
    Needs 3 rows.
    """
    c, mean, squares = moments[:, 0], moments[:, 1], moments[:, 2]
    m = float(c.sum())
    middle, whole = _total_squares(moments)
    b = mean - middle
    w = m * whole / (m - 1) ** 2
    # w' = w_0 - w_2 e², the estimate of no column and the cost of a value seen once.
    w_0 = (m - 1) * whole / (m - 2) ** 2
    w_2 = m / (m - 2) ** 2
    n_once = np.count_nonzero(c == 1)
    T = score(moments) * m
    # Values of 3 rows keep a term, those of 2 become values seen once, those of 1 go.
    kept = _factor(c - 1)
    once = n_once + (c == 2) - (c == 1)
    fixed = (T - _factor(c) * squares - n_once * w + kept * squares) / (m - 1)
    own = -kept * c / np.maximum(c - 1, 1) / (m - 1)
    share = once / (m - 1)

    def spread(on_d: np.ndarray, on_e: np.ndarray, level: np.ndarray) -> float:
        """Square root of the jackknife variance of ``level + on_d d² + on_e e²``."""
        _, total = _squares(moments, level + on_e * b**2, 2 * on_e * b, on_d + on_e)
        return math.sqrt(max((m - 1) / m * float(total.sum()), 0.0))

    return (
        spread(own, -share * w_2, fixed + share * w_0),
        spread(-own, (share - 1) * w_2, w_0 - fixed - share * w_0),
    )


def gain(moments: np.ndarray, parent: np.ndarray | None = None) -> tuple[float, float]:
    """Squared error that finer values take off, summed over rows, and its standard error.

    A row gains ``d = (C/(C-1))² (y - mean_V)² - (c/(c-1))² (y - mean_v)²``. Where the cut says
    nothing and the target is normal, the sum over a value of c rows has f(c) times the variance of
    its rows, ``f = ((2c-1)² + (c-1)³)/(c (c-1) (2c-1))``: 5/3 for two rows, for many ½.

    Parameters
    ----------
    moments : ndarray of shape (n_values, 5)
    parent : ndarray of int, shape (n_values,), optional
        The coarser value that each is cut out of; by default there is one.
    """
    c, mean = moments[:, 0], moments[:, 1]
    parent = np.zeros(len(c), dtype=np.intp) if parent is None else parent
    whole = np.bincount(parent, c)
    b = mean - (np.bincount(parent, c * mean) / whole)[parent]
    before, after = _factor(whole)[parent], _factor(c)
    once = no_column(moments) * ((whole == 1)[parent].astype(float) - (c == 1))
    gained, squares = _squares(moments, once + before * b**2, 2 * before * b, before - after)
    several = np.maximum(c, 2)
    f = (2 * several - 1) ** 2 + (several - 1) ** 3
    f = np.where(c == 1, 1.0, f / (several * (several - 1) * (2 * several - 1)))
    return gained, math.sqrt(max(float(f @ squares), 0.0))


def _squares(
    moments: np.ndarray, level: np.ndarray, slope: np.ndarray, bend: np.ndarray
) -> tuple[float, np.ndarray]:
    """Sum over all rows of ``level + slope d + bend d²``, d from the mean of the row's value.

    Second, by value, the sum of its squares about its mean over all rows.
    """
    c, _, squares, cubes, fourths = moments.T
    total = float(c @ level + bend @ squares)
    level = level - total / float(c.sum())
    own = c * level**2 + (2 * level * bend + slope**2) * squares
    return total, own + 2 * slope * bend * cubes + bend**2 * fourths


def _factor(c: np.ndarray) -> np.ndarray:
    """``(c/(c - 1))²``, and 0 below two rows."""
    return np.where(c >= 2, (c / np.maximum(c - 1, 1)) ** 2, 0.0)


def _total_squares(moments: np.ndarray) -> tuple[float, float]:
    """Mean of all rows and their sum of squares about it."""
    c, mean, squares = moments[:, 0], moments[:, 1], moments[:, 2]
    middle = float(c @ mean / c.sum())
    return middle, float(squares.sum() + c @ (mean - middle) ** 2)
