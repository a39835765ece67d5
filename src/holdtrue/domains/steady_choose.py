"""Candidates of SteadyRidge without each part of the domains, and the predictor they make.

Symbols are those of `holdtrue.domains.steady`. Each spread enters at the penalty with the least
mean error L over held-out domains, and the spreads are averaged with weights ``L**-12``: on
generated domains and grouped tables this erred less at unseen domains than the single best
candidate, a one-standard-error rule and averages over all penalties
(experiments/steady_choices.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from holdtrue.domains.steady import (
    EQUATIONS,
    PENALTIES,
    SUMS,
    DomainSums,
    Equations,
    batches,
    domain_equations,
    part_equations,
    penalty_paths,
    squared_errors,
)

INTERCEPT_SPREADS = (0.0, 1.0, math.inf)
SLOPE_SPREADS = (0.0, 1.0, 10.0)
POWER = 12  # settled in experiments/steady_choices.py


@dataclass(frozen=True, eq=False)
class HeldOutFits:
    """Every penalty at one spread, the null first, fitted without each part."""

    # shape (n_parts + 1, n_penalties + 1, n_directions, n_targets): without each part; the last is
    # fitted to all
    coef: np.ndarray
    intercept: np.ndarray  # shape (n_parts + 1, n_penalties + 1, n_targets)
    # shape (n_penalties + 1, n_domains): squared error at each domain of the fit without its part,
    # mean over the targets
    losses: np.ndarray
    # shape (n_parts, n_parts, n_penalties + 1): ``[a, b]``: sum over the domains of part b,
    # weighted, of the errors of the fit without a and b
    pair_losses: np.ndarray | None


@dataclass(frozen=True, eq=False)
class SteadyFit:
    """The predictor, and its errors at held-out domains."""

    # shape (n_spreads, n_penalties + 1): mean error of each candidate over held-out domains
    losses: np.ndarray
    weights: np.ndarray  # shape (n_spreads, n_penalties + 1): of the candidates; they sum to 1
    coef: np.ndarray  # shape (n_directions, n_targets)
    intercept: np.ndarray  # shape (n_targets,)
    # shape (n_penalties + 1, n_domains): errors of the predictor fitted without the domain's part,
    # if it may choose from the null and the k largest penalties; its weights have seen the domain.
    # The last row is the predictor.
    curve: np.ndarray
    train: np.ndarray  # shape (n_penalties + 1, n_domains): the same, fitted with the domain
    # shape (n_domains,): errors of the predictor fitted without the domain's part, with weights
    # from fits that have not seen it either
    nested: np.ndarray | None

    @property
    def new_errors(self) -> np.ndarray:
        """Errors at new domains, shape (n_domains,): nested where that is known."""
        return self.curve[-1] if self.nested is None else self.nested


def held_out_fits(
    sums: DomainSums,
    part_of: np.ndarray,
    weight: np.ndarray,
    intercepts: Sequence[float],
    slopes: float,
    *,
    nested: bool,
) -> list[HeldOutFits]:
    """Every penalty without each part, one entry per spread of intercepts.

    ``part_of`` and ``weight`` (in a mean error) are those of each domain, ``intercepts`` the values
    of A, ``slopes`` is R; ``nested``: whether to leave out every pair of parts too.
    """
    n_parts, n_domains, p = int(part_of.max()) + 1, len(weight), sums.mean_x.shape[1]
    pairs = np.array(list(combinations(range(n_parts), 2)))
    pooled = _merged(sums, part_of, weight) if nested else None
    each = np.vstack([1.0 - np.eye(n_parts), np.ones(n_parts)])
    results = []
    for equations in part_equations(sums, part_of, intercepts, slopes):
        done = [fits_to(equations, each[at], sums) for at in batches(np.arange(n_parts + 1), p)]
        coef, intercept = (np.concatenate(arrays) for arrays in zip(*done, strict=True))
        losses = np.empty((len(PENALTIES) + 1, n_domains))
        for part in range(n_parts):
            for at in batches(np.flatnonzero(part_of == part), p):
                fit = coef[part, None], intercept[part, None]
                losses[:, at] = squared_errors(sums.take(at), *fit)
        pair_losses = None
        if pooled is not None:
            pair_losses = np.zeros((n_parts, n_parts, len(PENALTIES) + 1))
            for at in batches(np.arange(len(pairs)), p):
                a, b = pairs[at].T
                kept = np.ones((len(at), n_parts))
                kept[np.arange(len(at)), a] = kept[np.arange(len(at)), b] = 0.0
                fits = fits_to(equations, kept, sums)
                for judged, other in ((a, b), (b, a)):
                    errors = squared_errors(pooled.take(judged), *fits)
                    pair_losses[other, judged] = (errors * pooled.n_samples[judged]).T
        results.append(HeldOutFits(coef, intercept, losses, pair_losses))
    return results


def fits_to(
    equations: Equations, kept: np.ndarray, sums: DomainSums
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and intercepts of every penalty, fitted to some of the parts.

    Parameters
    ----------
    equations : Equations
    kept : ndarray of shape (n_fits, n_parts)
        1 for the parts of each fit, else 0.
    sums : DomainSums

    Returns
    -------
    coef : ndarray of shape (n_fits, n_penalties + 1, n_directions, n_targets)
    intercept : ndarray of shape (n_fits, n_penalties + 1, n_targets)
    """
    # Added up anew: what is left of a difference may be the rounding error of a large part.
    xx, x0, weight, xy, y0, null_weight, null_y = (
        np.tensordot(kept, getattr(equations, name), 1) for name in EQUATIONS
    )
    # Of the moments, and of the inverses in double precision.
    rounding = (4 * sums.eps + 64 * np.finfo(np.float64).eps) * np.einsum("fjj->f", xx)
    rounding += sums.rounding * sums.n_features * sums.n_samples.sum()
    if equations.coupled:
        by_weight = x0 / weight[:, None]
        xx -= x0[:, :, None] * by_weight[:, None, :]
        xy -= by_weight[:, :, None] * y0[:, None, :]
    coef = penalty_paths(xx, xy, sums.n_features, rounding)
    intercept = y0[:, None] - (x0[:, None, None, :] @ coef)[:, :, 0]
    intercept /= weight[:, None, None]
    intercept[:, 0] = null_y / null_weight[:, None]
    return coef, intercept


def _merged(sums: DomainSums, part_of: np.ndarray, weight: np.ndarray) -> DomainSums:
    """Each part as one domain in which domain d has weight[d] in all: its errors are sums."""
    n_parts = int(part_of.max()) + 1
    parts = []
    for part in range(n_parts):
        at = np.flatnonzero(part_of == part)
        share, total = weight[at] / sums.n_samples[at], weight[at].sum()
        mean_x, mean_y = (weight[at] @ mean[at] / total for mean in (sums.mean_x, sums.mean_y))
        dx, dy = sums.mean_x[at] - mean_x, sums.mean_y[at] - mean_y
        parts.append(
            (
                total,
                mean_x,
                np.tensordot(share, sums.scatter_xx[at], 1) + (weight[at] * dx.T) @ dx,
                mean_y,
                np.tensordot(share, sums.scatter_xy[at], 1) + (weight[at] * dx.T) @ dy,
                share @ sums.scatter_yy[at] + weight[at] @ dy**2,
            )
        )
    stacked: Any = map(np.array, zip(*parts, strict=True))
    return replace(sums, **dict(zip(SUMS, stacked, strict=True)))


def candidate_weights(losses: np.ndarray) -> np.ndarray:
    """Weights of the candidates, which sum to 1: each spread at its best penalty, by ``loss**-12``.

    Parameters
    ----------
    losses : ndarray of shape (n_spreads, n_penalties + 1)
        Mean loss of each candidate; of equal penalties the larger is taken.
    """
    at = np.argmin(losses, axis=1)
    best = losses[np.arange(len(losses)), at]
    shares = (best.min() / best) ** POWER if best.min() > 0 else (best == 0).astype(float)
    weights = np.zeros_like(losses)
    weights[np.arange(len(losses)), at] = shares / shares.sum()
    return weights


def combined(
    sums: DomainSums, part_of: np.ndarray, weight: np.ndarray, fits: Sequence[HeldOutFits]
) -> SteadyFit:
    """The predictor that the candidates make together, and its errors at held-out domains."""
    losses = np.array([one.losses @ weight for one in fits]) / weight.sum()
    n_steps = losses.shape[1]
    path = np.zeros((n_steps, *losses.shape))
    for step in range(n_steps):  # one more penalty to choose from
        path[step, :, : step + 1] = candidate_weights(losses[:, : step + 1])
    n_parts, n_domains = int(part_of.max()) + 1, len(weight)
    pairs = [one.pair_losses for one in fits if one.pair_losses is not None]
    curve, train = np.empty((2, n_steps, n_domains))
    nested = np.empty(n_domains) if pairs else None
    to_all = _averages(path, fits, n_parts)
    for part in range(n_parts):
        without = _averages(path, fits, part)
        if pairs:
            chosen = candidate_weights(np.array([one[part].sum(axis=0) for one in pairs]))
            anew = _averages(chosen[None], fits, part)
        for at in batches(np.flatnonzero(part_of == part), sums.mean_x.shape[1]):
            domains = sums.take(at)
            curve[:, at] = squared_errors(domains, *without)
            train[:, at] = squared_errors(domains, *to_all)
            if nested is not None:
                nested[at] = squared_errors(domains, *anew)[0]
    coef, intercept = _averages(path[-1:], fits, n_parts)
    return SteadyFit(losses, path[-1], coef[0, 0], intercept[0, 0], curve, train, nested)


def _averages(
    weights: np.ndarray, fits: Sequence[HeldOutFits], part: int
) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (1, n, p, n_targets) and intercepts (1, n, n_targets), fitted without a part.

    ``weights`` has shape (n, n_spreads, n_penalties + 1).
    """
    coef = np.array([one.coef[part] for one in fits])
    intercept = np.array([one.intercept[part] for one in fits])
    return np.tensordot(weights, coef, 2)[None], np.tensordot(weights, intercept, 2)[None]


def domain_slopes(
    sums: DomainSums,
    spreads: Sequence[tuple[float, float]],
    fits: Sequence[HeldOutFits],
    weights: np.ndarray,
) -> np.ndarray:
    """``w + u_d`` of the slopes, u_d at its expected value, shape (n_domains, p, n_targets).

    ``E[u_d] = T Zᵀ V⁻¹ (y - Zw) = T (h_d - H_d w)``, averaged over the candidates, of which
    ``spreads`` has A and R and ``weights`` has shape (n_spreads, n_penalties + 1).
    """
    coef, _ = _averages(weights[None], fits, -1)
    slopes = np.repeat(coef[0], len(sums.n_samples), axis=0)
    median = float(np.median(sums.n_samples))
    for R in {R for _, R in spreads if R > 0}:
        r = R / max(median, sums.n_features)
        chosen = [s for s, spread in enumerate(spreads) if spread[1] == R and weights[s].any()]
        intercepts = [spreads[s][0] for s in chosen]
        for at in batches(np.arange(len(slopes)), slopes.shape[1]) if chosen else []:
            equations = domain_equations(sums.take(at), median, intercepts, R)
            for s, one in zip(chosen, equations, strict=True):
                w = np.tensordot(weights[s], fits[s].coef[-1], 1)
                b = np.tensordot(weights[s], fits[s].intercept[-1], 1)
                left = weights[s].sum() * one.xy - one.xx @ w
                if one.coupled:
                    left -= one.x0[:, :, None] * b
                slopes[at] += r * left
    return slopes
