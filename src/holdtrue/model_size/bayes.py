"""A Bayesian reference for the size of a nested model: the size nearest to the posterior mean.

Paper
-----
None: this goes beyond Chapelle, Vapnik & Bengio (2002). It shows how far a prior that expects
smoothness gets where their criteria expect nothing.

Notation
--------
=============  ======================================================================
mathematics    here
=============  ======================================================================
D, n, R, z, C  as in `kernel`; p = D - 1 terms follow the constant
‖f‖²_C         mean square of f over unlabelled inputs
α_1            flat prior
σ²             variance of the noise, p(σ²) ∝ 1/σ²
v_i            ``share``: prior variance of term i + 1, in parts of the whole, Σ_i v_i = 1
t              ``ratio``: prior variance of f about its constant over σ²
(k, g, s)      a shape: v_i is level up to k, then falls as ``g (i/k)^(-2s)`` for ever
=============  ======================================================================

``α_{i+1} ~ N(0, σ² t v_i)`` for terms of mean square 1. The terms beyond D are not in the model:
their share u is noise to it, ``σ'² = σ² (1 + t u)``, which leaves the ratio ``t' = t/(1 + t u)``.
So a rough function cannot be told from noise, and no prior interpolates.

Where to find it
----------------
==============================================  ============
the grid of (k, g, s, t) and its weights        `prior_grid`
posterior expected error of every size          `bayes`
==============================================  ============

Departures
----------
1. The share beyond D is an integral, not a sum. The grid has at most 20 values of k. The shapes
   (g, s) and the grid were picked among about thirty variants on other draws of the paper's twelve
   experiments, so its lead there is partly a choice made after looking; the further targets and
   real data of ``experiments/`` had no part in it.
2. ``E[σ'²|y] = S/(n - 3)``; with 5 rows or fewer it does not exist or is wild, and S is divided by
   1 at least. It does not depend on d.
3. Every prior has an infinite tail, so the chosen size grows slowly with n even if the target has
   finitely many terms: the best fit for prediction, not the true number of terms.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from holdtrue.model_size.kernel import NestedFit, spread

# (g, s): a rough remainder that continues the level part, and a small smooth one.
_REMAINDERS = np.array([(1.0, 1.0), (0.01, 2.0)])
_RATIOS = 10.0 ** np.arange(-2, 9)
_MAX_BANDS = 20


@lru_cache(maxsize=16)
def prior_grid(n_terms: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Priors of the n_terms coefficients that follow the constant.

    Returns
    -------
    share : ndarray of shape (n_shapes, n_terms)
        ``v_1 .. v_p``; they sum to 1 - u.
    ratio : ndarray of shape (n_shapes, n_ratios)
        ``t'``.
    log_weight : ndarray of shape (n_shapes, 1)
        Uniform on log k, on (g, s) and on log t.
    """
    i = np.arange(1.0, n_terms + 1)
    k = np.unique(np.round(np.geomspace(1, n_terms, _MAX_BANDS)))  # nearly all while p is small
    weight = np.gradient(k) / k if len(k) > 1 else np.ones(1)
    weight = np.repeat(weight, len(_REMAINDERS))[:, None]
    g, s = np.tile(_REMAINDERS, (len(k), 1)).T[:, :, None]
    k = np.repeat(k, len(_REMAINDERS))[:, None]
    share = np.where(i <= k, 1.0, g * (np.maximum(i, k) / k) ** (-2 * s))
    # Σ_{i>p} g (i/k)^(-2s), as an integral from p + 1/2.
    beyond = g * k * ((n_terms + 0.5) / k) ** (1 - 2 * s) / (2 * s - 1)
    total = share.sum(axis=1, keepdims=True) + beyond
    return share / total, _RATIOS / (1 + _RATIOS * beyond / total), np.log(weight)


def bayes(fit: NestedFit, C_half: np.ndarray) -> np.ndarray:
    """Posterior expected error of every size, ``E[σ'²|y] + E[‖f - f_d‖²_C | y]``, shape (D,).

    All but ``‖f_d - E[f|y]‖²_C`` is the same for every d, so the least is the size whose fit is
    nearest to the posterior mean.

    Parameters
    ----------
    fit : NestedFit
    C_half : ndarray of shape (n_rows, D)
        From `moment_factor`, of the kept terms.
    """
    # Terms of mean square 1, and y of length 1: nothing depends on units, nothing overflows.
    scale = np.sqrt(np.einsum("ij,ij->j", C_half, C_half))
    scale = np.where(scale > 0, scale, 1.0)
    half, R = C_half / scale, fit.R / scale
    length = float(np.sqrt(fit.rss[0])) or 1.0
    z, rss = fit.z / length, fit.rss[-1] / length**2

    # The flat α_1 takes z_1 whole, α_1 = (z_1 - ρ β)/R_11: n - 1 degrees of freedom are left for
    # z_2 = R_2 β + noise, β = α_2 .. α_D.
    freedom = fit.n_samples - 1
    rho, R2, z2 = R[0, 1:] / R[0, 0], R[1:, 1:], z[1:]
    constant = half[:, 0] @ half[:, 0] / R[0, 0] ** 2
    beta = np.zeros(len(z2))
    if len(z2):
        share, ratio, log_weight = prior_grid(len(z2))
        root = np.sqrt(share)
        ratio = ratio[:, :, None]
        # One decomposition per shape serves every ratio: B = R_2 diag(√v), BᵀB = W diag(e) Wᵀ.
        # (An SVD of B would square nothing, but 1 + t e is all that matters, and it may not
        # converge.)
        e, W = np.linalg.eigh(root[:, :, None] * (R2.T @ R2) * root[:, None, :])
        e = np.maximum(e, 0.0)[:, None, :]
        variance = ratio / (1 + ratio * e)
        white = (variance * ((root * (R2.T @ z2))[:, None, :] @ W)) @ W.transpose(0, 2, 1)
        means = white * root[:, None, :]
        # S = rss + z_2ᵀ (I + t BBᵀ)⁻¹ z_2, as a sum of squares: no cancellation.
        S = rss + np.sum((z2 - means @ R2.T) ** 2, axis=-1)
        S += np.sum(white**2, axis=-1) / ratio[..., 0]
        log_p = log_weight - 0.5 * np.log1p(ratio * e).sum(axis=-1)
        log_p -= 0.5 * freedom * np.log(np.maximum(S, 1e-300))
        p = np.exp(log_p - log_p.max())
        p /= p.sum()
        beta = np.tensordot(p, means, 2)
        # Variance of f over the inputs, within each point of the grid and between them. As
        # functions of x, f = T β + const with T = [-ρ; I].
        rest = half[:, 1:] - np.outer(half[:, 0], rho)
        axes = root[:, :, None] * W
        within = variance * np.sum((rest @ axes) ** 2, axis=1)[:, None, :]
        away = means - beta
        noise = S / max(freedom - 2, 1)
        error = noise * (1 + constant + within.sum(axis=-1))
        error += np.sum((away @ rest.T) ** 2, axis=-1)
        known = float(np.sum(p * error))
    else:
        known = float(rss / max(freedom - 2, 1) * (1 + constant))
    posterior = np.append(z[0] / R[0, 0] - rho @ beta, beta)

    # f_d and E[f|y] over the inputs; the coefficients of f_d may be large and cancel.
    away = np.cumsum(spread(fit, C_half) * z, axis=1) - (half @ posterior)[:, None]
    distance = np.einsum("ij,ij->j", away, away)
    # Fits that are the same function to rounding are equally near; the smallest is then chosen.
    nearest = distance.min()
    distance[distance <= nearest * (1 + 1e-9) + 1e-20] = nearest
    return (known + distance) * length**2
