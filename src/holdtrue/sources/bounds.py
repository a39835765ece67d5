"""What the theorems of GreedyTL say of a fit, in numbers.

Paper
-----
Kuzborskij, Orabona & Caputo, "Scalable Greedy Algorithms for Transfer Learning", Computer Vision
and Image Understanding 156 (2017) 174-185.

Notation
--------
As in `holdtrue.sources.kernel`. τ∞ is the largest squared score of a chosen source.

Where to find it
----------------
==================  ==============================================
Theorem 2           `guarantees`: source_risk, rate, regime
Theorem 3           `guarantees`: best_sources_risk
Corollary 1         `coherence`; `guarantees`: coherence, factor
==================  ==============================================

Departures
----------
1. R̂_src is at most 4 (a truncated prediction and a label differ by at most 2), not 1 as printed.
2. Corollary 1 bounds ``C_ij``; its proof needs ``|C_ij|``, which stands here.
"""

from __future__ import annotations

import math

import numpy as np

_SIGN = 1e-5  # a label so near to ±1 is a sign


def coherence(Z: np.ndarray, n_samples: float, limit: float) -> float:
    """Largest ``|C_ij|``, i ≠ j, of the correlations ``C = ZᵀZ/m``; stops above ``limit``.

    Above the limit Corollary 1 does not apply, and how far above does not matter.
    """
    largest, start, width = 0.0, 0, 1
    while start < Z.shape[1] and largest <= limit:
        C = np.abs(Z[:, start : start + width].T @ Z[:, start:]) / n_samples
        np.fill_diagonal(C, 0)
        largest = max(largest, float(C.max(initial=0.0)))
        start, width = start + width, min(2 * width, 512)  # the first few columns mostly decide
    return largest


def guarantees(
    Z: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    weights: np.ndarray,
    n_features: int,
    lam: float,
) -> dict[str, float | bool | str]:
    """Numbers of Theorems 2 and 3 and of Corollary 1, and whether what they assume holds.

    The theorems hide constants and logarithms: the numbers say what drives the bound, not what
    the error is.

    Parameters
    ----------
    Z : ndarray of shape (n_rows, n_candidates)
        Standardised, with rows times ``sqrt(w)``; features first.
    y : ndarray of shape (n_rows,)
        Standardised.
    weight : ndarray of shape (n_rows,)
    weights : ndarray of shape (n_candidates,)
        Fitted, on the scale of Z and y.
    n_features : int
    lam : float

    Returns
    -------
    numbers : dict
        ``source_risk`` (R̂_src, from 0 to 4), ``rate`` ((1 + kτ)/(λm)), ``regime`` ("fast" where
        R̂_src is at most the rate), ``coherence`` (γ, or the first value above its limit),
        ``coherence_limit`` ((1 + λ)/(6k)), ``coherence_holds``, ``factor`` (1 + ε of Corollary 1,
        infinite where it does not apply), ``best_sources_risk`` (R̂_λ of Theorem 3),
        ``labels_are_signs`` and ``rows_within_unit_ball`` (what Theorem 2 assumes).
    """
    n = float(weight.sum())
    root = np.sqrt(weight)
    k = max(int(np.count_nonzero(weights)), 1)
    sources = Z[:, n_features:]
    used = np.flatnonzero(weights[n_features:])
    part = np.clip(sources[:, used] @ weights[n_features + used] / root, -1, 1)
    source_risk = float(weight @ (part - y / root) ** 2 / n)
    tau = float(np.max((sources[:, used] / root[:, None]) ** 2, initial=0.0))
    rate = (1 + k * tau) / (lam * n)
    limit = (1 + lam) / (6 * k)
    gamma = coherence(Z, n, limit)
    holds = gamma < limit
    # Theorem 3: the best subset of each size is the sources of least risk.
    apart = sources - y[:, None]
    risks = np.sort(np.einsum("ij,ij->j", apart, apart) / n)[:k]
    sizes = np.arange(1, len(risks) + 1)
    means = (lam + np.cumsum(risks)) / sizes
    return {
        "source_risk": source_risk,
        "rate": rate,
        "regime": "fast" if source_risk <= rate else "slow",
        "coherence": gamma,
        "coherence_limit": limit,
        "coherence_holds": holds,
        "factor": 1 + 16 * (k + 1) ** 2 * gamma / (1 + lam) if holds else math.inf,
        "best_sources_risk": float(means.min(initial=math.inf)),
        "labels_are_signs": bool((np.abs(np.abs(y / root) - 1) < _SIGN).all()),
        "rows_within_unit_ball": all(
            row @ row <= w for row, w in zip(Z[:, :n_features], weight, strict=True)
        ),
    }
