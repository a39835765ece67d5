"""What `MultiKT` solves: left-out residuals of ridge regression and their least hinge loss."""

from __future__ import annotations

import math

import numpy as np

_N_STEPS = 300


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
    own = weight.sum() * lam / weight
    return (1 - one * (1 - own * P.diagonal())) / own


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
