"""Ridge regression and its left-out predictions in closed form, for the rivals of GreedyTL.

The notation is that of `kernel`; λ is per row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

_EPS = float(np.finfo(np.float64).eps)
_N_STEPS = 300


def ridge(Z: np.ndarray, y: np.ndarray, n: float, lam: float) -> np.ndarray:
    """Weights that minimise ``(1/m)‖Zw - y‖² + λ‖w‖²``, through the rows."""
    return Z.T @ np.linalg.solve(Z @ Z.T + n * lam * np.eye(len(y)), y)


def ridge_leave_one_out(
    Z: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    lams: Sequence[float],
    one: np.ndarray | float = 1.0,
) -> np.ndarray:
    """Left-out predictions of ridge regression on all columns of Z, shape (n_lams, n_rows).

    ``y_i - r_i/(1 - w_i/m - h_ii)``: the residual of row i over what the row leaves to the others.
    Exact for columns as they stand; means are fitted anew, scales and selection are not. Z and y
    are standardised. ``one`` is the share of a row to leave out: 1/3 for a row that stands for
    three.
    """
    n = weight.sum()
    values, vectors = np.linalg.eigh(Z @ Z.T)
    values = np.maximum(values, 0)
    image = vectors.T @ y
    predicted = np.empty((len(lams), len(y)))
    for row, lam in enumerate(lams):
        shrink = values / (values + n * lam)
        leverage = weight / n + vectors**2 @ shrink
        residual = y - vectors @ (shrink * image)
        predicted[row] = y - residual / np.maximum(1 - one * leverage, _EPS)
    return predicted / np.sqrt(weight)


def rows_inverse(F: np.ndarray, weight: np.ndarray, lam: float) -> np.ndarray:
    """``P``: rows' block of the inverse of ``[[K + mλ diag(1/ζ), 1], [1ᵀ, 0]]``, ``K = FFᵀ``.

    ``α = P t`` are the dual weights of the ridge regression of t with intercept, and
    ``α_i / P_ii`` its left-out residuals.
    """
    n = len(weight)
    system = np.ones((n + 1, n + 1))
    system[:n, :n] = F @ F.T + np.diag(weight.sum() * lam / weight)
    system[n, n] = 0
    return np.linalg.inv(system)[:n, :n]


def left_out_scale(P: np.ndarray, weight: np.ndarray, lam: float, one: np.ndarray) -> np.ndarray:
    """What α is divided by for left-out residuals: P_ii, or more where part of a row stays."""
    penalty = weight.sum() * lam / weight
    return (1 - one * (1 - penalty * P.diagonal())) / penalty


def least_hinge(
    offset: np.ndarray, slopes: np.ndarray, share: np.ndarray, tau: float, norm: int
) -> tuple[np.ndarray, float]:
    """β with ``‖β‖ ≤ τ`` that minimises ``Σ share_i max(0, offset_i - slopes_i·β)``, and the loss.

    Projected subgradient: steps of length ``τ/sqrt(t)``; the best point on the way is returned.
    """
    beta = np.zeros(slopes.shape[1])
    best, least = beta, float(share @ np.maximum(offset, 0))
    for t in range(1, _N_STEPS + 1):
        active = offset - slopes @ beta > 0
        gradient = -(share * active) @ slopes
        length = math.sqrt(gradient @ gradient)
        if length == 0:
            break
        beta = projected(beta - tau / math.sqrt(t) * gradient / length, tau, norm)
        loss = float(share @ np.maximum(offset - slopes @ beta, 0))
        if loss < least:
            best, least = beta, loss
    return best, least


def projected(beta: np.ndarray, tau: float, norm: int) -> np.ndarray:
    """Nearest point with ``‖β‖ ≤ τ``; for the 1-norm by sorting (Duchi and others 2008)."""
    if norm == 2:
        return beta * min(1.0, tau / max(math.sqrt(beta @ beta), 1e-300))
    size = np.abs(beta)
    if size.sum() <= tau:
        return beta
    falling = np.sort(size)[::-1]
    excess = (np.cumsum(falling) - tau) / np.arange(1, len(beta) + 1)
    threshold = excess[np.flatnonzero(falling > excess)[-1]]
    return np.sign(beta) * np.maximum(size - threshold, 0)
