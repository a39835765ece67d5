"""What holds with probability ``1 - δ``: Theorem 1, Corollary 3, and errors at a new domain.

Paper
-----
Foster, Kakade & Salakhutdinov, "Domain Adaptation: Overfitting and Small Sample Statistics" (2011).

Notation
--------
Of `holdtrue.domains.kernel`, and

==========  =======================================================
paper       here
==========  =======================================================
δ           ``delta``
q, [σ̂_S]²   size of the subset, spread in its orthonormal basis
==========  =======================================================

Where to find it
----------------
===========  ==========================================================
Theorem 1    `bound_factor`, `domains_needed`
Corollary 3  `regret_bound`, `regret_domains_needed`
not in it    `new_domain_interval`, `mean_interval`, `row_interval`
===========  ==========================================================

Departures
----------
1. Theorem 2 prints ``exp(-t/2)``; its proof gives ``2 exp(-t/2)``, which Theorem 1 rests on.
2. Corollary 3 prints ``log(2/δ)``; Theorem 1 with ``|F| = q p^q`` gives ``4 log(2/δ)``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import ndtri, stdtrit

from holdtrue.domains.kernel import TIE, Walk, effects

_EPS = float(np.finfo(np.float64).eps)
_TINY = float(np.finfo(np.float64).tiny)


def bound_factor(n_candidates: float, delta: float) -> float:
    """``sqrt(4 log(2|F|/δ))`` of Theorem 1."""
    return math.sqrt(4 * math.log(2 * n_candidates / delta))


def domains_needed(log_candidates: float, delta: float) -> int:
    """Least n with ``|F| ≤ (δ/2) e^{n/8}``, the condition of Theorem 1."""
    return math.ceil(8 * (log_candidates + math.log(2 / delta)))


def regret_domains_needed(q: int, n_features: int, delta: float) -> int:
    """Least n for Corollary 3: that of Theorem 1 with ``|F| = q p^q``."""
    return domains_needed(math.log(q) + q * math.log(n_features), delta) if q else 2


def regret_bound(
    g: np.ndarray, weight: np.ndarray, gram: np.ndarray, n_features: int, delta: float
) -> float:
    """Corollary 3 for one subset: the bound on ``L(μ̂_S) - L(μ_S)``.

    ``(Σ_i [σ̂_S]_i²)(8 q log p + 4 log(2/δ))/n``, given the domains it needs. It covers the
    least-squares weights of the subset, not those of a stagewise walk. Of features that depend
    linearly on one another, q counts those that do not: they span the same.

    Parameters
    ----------
    g : ndarray of shape (n_domains, q)
        ``E[X_S Y | d]``.
    weight : ndarray of shape (n_domains,)
    gram : ndarray of shape (q, q)
        ``E[X_S X_Sᵀ]``.
    n_features : int
    delta : float
    """
    if not g.shape[1]:
        return 0.0
    # The sum of variances is the same in every orthonormal basis of the subset.
    scale = np.sqrt(np.diag(gram))
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    kept = values > 1e-10 * values[-1]
    q = int(kept.sum())
    _, s2 = effects((g / scale) @ vectors[:, kept] / np.sqrt(values[kept]), weight)
    # Departure 2.
    factor = 8 * q * math.log(n_features) + 4 * math.log(2 / delta)
    return float(s2.sum()) * factor / float(weight.sum())


def mean_and_spread(values: np.ndarray, weight: np.ndarray | None) -> tuple[Any, Any, float]:
    """Mean and standard deviation over the last axis, and n; weights are repetitions."""
    if weight is None:
        weight = np.ones(values.shape[-1])
    n = float(weight.sum())
    mean = values @ weight / n
    return mean, np.sqrt((values - mean[..., None]) ** 2 @ weight / (n - 1)), n


def mean_interval(errors: np.ndarray, level: float) -> tuple[float, float]:
    """Student's interval of the mean error over domains; errors are not negative."""
    low, high = student_interval(errors, level)
    return max(low, 0.0), high


def student_interval(
    scores: np.ndarray, level: float, weight: np.ndarray | None = None
) -> tuple[float, float]:
    """``mean ± t_{n-1} se``, Student's interval of a mean; weights are repetitions."""
    mean, spread, n = mean_and_spread(scores, weight)
    half = float(stdtrit(n - 1, (1 + level) / 2) * spread / math.sqrt(n))
    return float(mean) - half, float(mean) + half


def row_interval(
    errors: np.ndarray, level: float, weight: np.ndarray | None = None
) -> tuple[float, float]:
    """``mean exp(± t_{n-1} se/mean)``, interval of the mean of the squared errors of rows.

    Student's interval of the logarithm of the mean. Squared errors are skewed: at level 0.95, 20
    squares of Gaussian errors put Student's interval of the mean itself below the truth in 10 % of
    samples, 5 rows in 18 %; this one in 6 % and 8 %.
    """
    mean = float(mean_and_spread(errors, weight)[0])
    if mean <= 0:
        return 0.0, 0.0
    half = student_interval(errors / mean, level, weight)[1] - 1
    return mean * math.exp(-half), mean * math.exp(half) if half < 700 else math.inf


def share_interval(share: float, n: float, level: float) -> tuple[float, float]:
    """Wilson's interval of a share of n rows: 0 wrong of n is not 0 for sure."""
    z2 = float(ndtri((1 + level) / 2)) ** 2
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = math.sqrt(z2 * (share * (1 - share) / n + z2 / (2 * n) ** 2)) / (1 + z2 / n)
    return max(centre - half, 0.0), min(centre + half, 1.0)


def new_domain_interval(
    errors: np.ndarray, level: float, empty: float | None
) -> tuple[float, float]:
    """Interval that holds the error at *one* new domain with probability ``level``.

    ``exp(mean log e ± t_{n-1} sd(log e) sqrt(1 + 1/n))``: exact if the errors are independent
    draws from one lognormal law. Of two domains it has no bounds: each is judged by what the other
    says, so that both errors are mostly the difference between the two, and nearly equal.

    Parameters
    ----------
    errors : ndarray of shape (n_domains,)
        At held-out domains, two or more.
    level : float
    empty : float or None
        Error of the empty selection; errors below eps times it are raised to that. None: for scores
        that may be 0 or negative, without the logarithm.
    """
    n = len(errors)
    if empty is not None and not errors.any():
        return 0.0, 0.0
    if n == 2:
        return -math.inf if empty is None else 0.0, math.inf
    values = errors if empty is None else np.log(np.maximum(errors, max(_EPS * empty, _TINY)))
    middle = float(values.mean())
    half = float(stdtrit(n - 1, (1 + level) / 2)) * float(values.std(ddof=1)) * math.sqrt(1 + 1 / n)
    if empty is None:
        return middle - half, middle + half
    return math.exp(middle - half), math.exp(middle + half) if middle + half < 709 else math.inf


def interval_notes(errors: np.ndarray, empty: float | None) -> list[str]:
    """A sentence where `new_domain_interval` of these errors tells nothing; none if it does."""
    n, largest = len(errors), float(errors.max())
    if n == 2:
        return [
            "the errors at two left-out domains say nothing of that at a third: the interval for "
            "one new domain has no bounds. It needs 3 domains."
        ]
    is_zero = np.zeros(n, dtype=bool) if empty is None else errors <= TIE * empty
    if is_zero.any() and not is_zero.all():
        return [
            f"the error at {is_zero.sum()} of {n} left-out domains is 0 but for rounding, so that "
            "the interval for one new domain, which is made of logarithms of errors, tells nothing."
        ]
    if not is_zero.all() and largest - float(errors.min()) <= TIE * abs(largest):
        return [
            f"the errors at the {n} left-out domains are equal, so that the interval for one new "
            "domain has no width and tells nothing."
        ]
    return []


def guarantees(walk: Walk, coefficients: np.ndarray, delta: float) -> dict[str, int | np.ndarray]:
    """Both bounds, for a walk's effects and its chosen features; infinite with too few domains.

    ``effect_low`` and ``effect_high`` of shape (n_targets, n_features) and
    ``effect_domains_needed`` are of Theorem 1; ``regret`` and ``regret_domains_needed`` of shape
    (n_targets,) of Corollary 3. Chosen are the features whose coefficients are not 0.
    """
    n, p = float(walk.weight.sum()), coefficients.shape[1]
    n_effects = max(1, int(walk.usable.sum())) * len(walk.start)
    needed = domains_needed(math.log(n_effects), delta)
    factor = bound_factor(n_effects, delta) if n >= needed else math.inf
    low, high, regret, regret_needed = [], [], [], []
    for start, weights in zip(walk.start, coefficients, strict=True):
        mu, s2 = effects(start, walk.weight)
        half = np.sqrt(np.maximum(s2, _TINY) / n) * factor
        low.append(mu - half)
        high.append(mu + half)
        at = np.flatnonzero(weights).tolist()
        regret_needed.append(regret_domains_needed(len(at), p, delta))
        regret.append(
            regret_bound(start[:, at], walk.weight, walk.mean_gram(at), p, delta)
            if n >= regret_needed[-1]
            else math.inf
        )
    return {
        "effect_low": np.array(low),
        "effect_high": np.array(high),
        "effect_domains_needed": needed,
        "regret": np.array(regret),
        "regret_domains_needed": np.array(regret_needed),
    }
