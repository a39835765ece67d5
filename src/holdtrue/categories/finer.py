"""What finer values gain: left-out losses of the shrunk predictor before and after a cut.

Paper
-----
None; `shrunk` and `shrunk_numeric` for two columns of which one is cut out of the other.

Notation
--------
As in `shrunk` and `shrunk_numeric`; ``parent`` is the coarser value that each value is cut out of.

Where to find it
----------------
===================  ===================
classes              `finer_gain`
a numeric target     `finer_mean_gain`
===================  ===================

Departures
----------
Each of the two columns has the strength of its own least loss, as if it stood alone.
"""

from __future__ import annotations

import math

import numpy as np

from holdtrue.categories.shrunk import (
    CHOSEN_BY,
    STRENGTHS,
    cells_of,
    column_total,
    least,
    left_out_losses,
    strength_scores,
    value_pairs,
)
from holdtrue.categories.shrunk_numeric import count_sums, mean_scores, residual_factors
from holdtrue.columns.counting import grouped_moments


def finer_gain(loss: str, counts: np.ndarray, parent: np.ndarray) -> tuple[float, float]:
    """Loss that finer values take off, summed over rows, and its standard error.

    Parameters
    ----------
    loss : {"log_loss", "brier", "error"}
    counts : ndarray of shape (n_values, n_classes)
    parent : ndarray of int, shape (n_values,)
    """
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


def finer_mean_gain(moments: np.ndarray, parent: np.ndarray) -> tuple[float, float]:
    """Squared error that finer values take off, summed over rows, and its standard error.

    With e a row's distance from the mean of its finer value, which is at b, and δ the distance of
    that mean from the coarser value's, at B, the row gains
    ``(A' B + B' (e + δ))² - (A b + B e)²`` with the factors of `shrunk_numeric.residual_factors`.

    Parameters
    ----------
    moments : ndarray of shape (n_values, 5)
    parent : ndarray of int, shape (n_values,)
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
