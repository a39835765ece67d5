"""A numeric target: leave-one-out squared error of the value's mean (`kernel`, departure 3).

A value seen once costs what the mean of the other rows costs the average row, so that an id ties a
constant column.

The criterion depends on the number of rows c of a value, on ``b``, its mean minus the mean of all
rows, and on its moments M2, M3, M4 about its mean. `score` and `no_column` take the rows and
repeats of a `holdtrue.sums.Profile`, centered at the mean of all rows: sums of these over the
values with the same c, and the number of such values. `gain` takes a table with a row per value:
count, mean, M2, M3, M4. Standard errors are those of `shrunk_numeric.estimate_mean` without
shrinking.
"""

from __future__ import annotations

import math

import numpy as np

from holdtrue.sums.profile import B2, M2, C


def score(rows: np.ndarray, repeats: np.ndarray) -> float:
    """Leave-one-out squared error of the value's mean.

    ``Σ_{c_v≥2} (c_v/(c_v - 1))² SS_v/m``, and ``m SS/(m - 1)²`` for a row whose value is seen
    once, with SS the sum of squares of all rows.
    """
    c = rows[:, C]
    n_once = float(repeats[c == 1].sum())
    total = float(_factor(c) @ rows[:, M2]) + n_once * no_column(rows, repeats)
    return total / float(repeats @ c)


def no_column(rows: np.ndarray, repeats: np.ndarray) -> float:
    """Leave-one-out squared error of the mean of all rows, ``m SS/(m - 1)²``."""
    m = float(repeats @ rows[:, C])
    return m * _total_squares(rows) / (m - 1) ** 2


def gain(moments: np.ndarray, parent: np.ndarray | None = None) -> tuple[float, float]:
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
