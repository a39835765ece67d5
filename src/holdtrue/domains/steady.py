"""SteadyRidge: ridge whose effects differ from domain to domain, from each domain's moments.

Paper
-----
None: the random-coefficient model of Swamy, "Efficient inference in a random coefficient regression
model", Econometrica 38 (1970), with a ridge on its mean. What is new is that its variances and the
ridge are chosen by domains that were held out.

Notation
--------
At domain d ``y = zᵀ(w + u_d) + noise``, ``z = (1, x)`` with x standardised over all rows,
``u_d ~ N(0, T)`` and noise of variance 1.

==================  ==========================================================================
formula             here
==================  ==========================================================================
A, R                a *spread*, (intercepts, slopes): ``T = diag(A/ñ, R/max(ñ, p), ...)``
ñ                   median number of rows per domain
n_d, N_d            ``n_samples``; ``Σ zzᵀ`` over the rows of domain d
H_d, h_d            ``(I + N_d T)⁻¹ N_d`` and ``(I + N_d T)⁻¹ Σ zy``; they add over domains
λ                   a multiple (`PENALTIES`) of the mean eigenvalue of H; ``λ = inf`` is the null
candidate           a spread and a penalty
part                domains that are held out together
==================  ==========================================================================

Where to find it
----------------
===========================================  ==================================
standardised x                               `standardised`
H_d, h_d; summed over the domains of a part  `domain_equations`, `part_equations`
``(H + λI)⁻¹ h`` for every λ                 `penalty_paths`
squared errors at domains                    `squared_errors`
fits without each part, and pair of parts    `held_out_fits`
the predictor, and its errors                `combined`
effects ``w + u_d``                          `domain_slopes`
===========================================  ==================================

Each spread enters at the penalty with the least mean error L over held-out domains, and the spreads
are averaged with weights ``L**-12``: on generated domains and grouped tables this erred less at
unseen domains than the single best candidate, a one-standard-error rule and averages over all
penalties (experiments/steady_choices.py).

Departures
----------
1. ``(I + N T)⁻¹`` is taken with the slopes' part of T; the intercepts' part is a term of rank one
   on top of it, so that all A share one inverse.
2. ``A = inf`` is the limit, in which x and y are centred within each domain. The mean of the
   domains' intercepts is then their plain mean.
3. With many columns H is made tridiagonal instead of diagonal: a third of the work of an
   eigendecomposition, and each λ is still a solve of O(p).
4. x is standardised once, over all domains, held-out ones included. y is not looked at there.
5. The null is a mean of y. The limit of a large λ at ``R > 0`` is not: it takes what the domains'
   slopes explain from y first.
6. Where all rows together are fewer than the columns, everything happens in the space they span.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy.linalg import lapack

from holdtrue.domains.kernel import TIE
from holdtrue.sums import Moments

INTERCEPT_SPREADS = (0.0, 1.0, math.inf)
SLOPE_SPREADS = (0.0, 1.0, 10.0)
PENALTIES = np.logspace(2, -6, 25)
POWER = 12  # settled in experiments/steady_choices.py
_SUMS = ("n_samples", "mean_x", "scatter_xx", "mean_y", "scatter_xy", "scatter_yy")
_EQUATIONS = ("xx", "x0", "weight", "xy", "y0", "null_weight", "null_y")
_SMALL = 24  # columns up to which many eigendecompositions at once are faster than one by one
_BATCHED = 200  # columns up to which LAPACK is called for many matrices at once
_CELLS = 2**22  # numbers in one batch of domains


@dataclass(frozen=True, eq=False)
class DomainSums:
    """Moments of each domain in float64, x standardised and y centred over all rows.

    Attributes
    ----------
    n_samples : ndarray of shape (n_domains,)
    mean_x : ndarray of shape (n_domains, n_directions)
    scatter_xx : ndarray of shape (n_domains, n_directions, n_directions)
        About the domain's own mean; about zero where nothing is centred, and the means are 0.
    mean_y : ndarray of shape (n_domains, n_targets)
    scatter_xy : ndarray of shape (n_domains, n_directions, n_targets)
    scatter_yy : ndarray of shape (n_domains, n_targets)
    n_features : int
        Columns of X that vary; directions are fewer where the rows do not span all columns.
    back : ndarray of shape (n_columns, n_directions)
        Takes coefficients of directions to coefficients of the columns of X.
    centre_x : ndarray of shape (n_columns,)
    centre_y : ndarray of shape (n_targets,)
    eps : float
        Relative precision of the moments.
    rounding : float
        Square of the rounding error of a row's x about its domain's mean, mean over the columns.
    """

    n_samples: np.ndarray
    mean_x: np.ndarray
    scatter_xx: np.ndarray
    mean_y: np.ndarray
    scatter_xy: np.ndarray
    scatter_yy: np.ndarray
    n_features: int
    back: np.ndarray
    centre_x: np.ndarray
    centre_y: np.ndarray
    eps: float
    rounding: float

    def take(self, at: np.ndarray | slice) -> DomainSums:
        """These domains alone."""
        return replace(self, **{name: getattr(self, name)[at] for name in _SUMS})


@dataclass(frozen=True, eq=False)
class Equations:
    """``H w = h`` of one spread, summed by part; the leading axis is that of the parts.

    Attributes
    ----------
    xx : ndarray of shape (n_parts, n_directions, n_directions)
        Slopes. Only the lower triangle is to be read.
    x0 : ndarray of shape (n_parts, n_directions)
        The intercept's equation is ``x0 · w + weight b = y0``.
    weight : ndarray of shape (n_parts,)
    xy : ndarray of shape (n_parts, n_directions, n_targets)
    y0 : ndarray of shape (n_parts, n_targets)
    null_weight : ndarray of shape (n_parts,)
        The null's equation is ``null_weight b = null_y``: ``x0``'s without slopes.
    null_y : ndarray of shape (n_parts, n_targets)
    coupled : bool
        Whether the slopes' equations contain the intercept (not with ``A = inf``).
    """

    xx: np.ndarray
    x0: np.ndarray
    weight: np.ndarray
    xy: np.ndarray
    y0: np.ndarray
    null_weight: np.ndarray
    null_y: np.ndarray
    coupled: bool


# --- sums ---------------------------------------------------------------------------------------


def standardised(moments: Moments, *, centre: bool = True) -> DomainSums:
    """The moments with x in units of its standard deviation over all rows.

    Parameters
    ----------
    moments : Moments
        With a target.
    centre : bool
        False: nothing is centred, and the unit is the root mean square.
    """
    eps = float(np.finfo(moments.scatter_xx.dtype).eps)
    n = moments.n_samples.astype(np.float64)
    mean_x = moments.mean_x.astype(np.float64)
    assert moments.mean_y is not None
    assert moments.scatter_xy is not None
    assert moments.scatter_yy is not None
    mean_y = moments.mean_y.reshape(len(n), -1)
    n_targets = mean_y.shape[1]
    scatter_xy = moments.scatter_xy.reshape(*mean_x.shape, n_targets)
    scatter_yy = moments.scatter_yy.reshape(len(n), n_targets)
    share = n / n.sum()
    centre_x, centre_y = share @ mean_x, share @ mean_y
    inner = np.einsum("djj->j", moments.scatter_xx, dtype=np.float64) / n.sum()
    outer = share @ (mean_x - centre_x) ** 2
    variance = inner + outer
    # A constant column leaves the rounding error of its mean.
    rounding = 8 * eps + 8 * np.finfo(np.float64).eps * math.sqrt(n.sum())
    variance[variance <= (rounding * centre_x) ** 2] = 0.0
    scatter_xx = moments.scatter_xx.astype(np.float64)
    if centre:
        mean_x, mean_y = mean_x - centre_x, mean_y - centre_y
    else:
        scatter_xx += n[:, None, None] * mean_x[:, :, None] * mean_x[:, None, :]
        scatter_xy = scatter_xy + n[:, None, None] * mean_x[:, :, None] * mean_y[:, None, :]
        scatter_yy = scatter_yy + n[:, None] * mean_y**2
        variance = inner + share @ mean_x**2
        mean_x, mean_y = np.zeros_like(mean_x), np.zeros_like(mean_y)
        centre_x, centre_y = np.zeros_like(centre_x), np.zeros_like(centre_y)
    unit = np.where(variance > 0, 1 / np.sqrt(np.where(variance > 0, variance, 1.0)), 0.0)
    scatter_xx *= unit[:, None]
    scatter_xx *= unit
    n_features = max(1, int(np.count_nonzero(unit)))
    of_means = 8 * eps * unit * np.abs(moments.mean_x).max(axis=0)
    sums = DomainSums(
        n,
        mean_x * unit,
        scatter_xx,
        mean_y,
        scatter_xy * unit[:, None],
        scatter_yy,
        n_features,
        np.diag(unit),
        centre_x,
        centre_y,
        eps,
        float(of_means @ of_means) / n_features,
    )
    return sums if n.sum() >= len(unit) else _spanned(sums)


def _spanned(sums: DomainSums) -> DomainSums:
    """The sums in the directions that the rows span (departure 6).

    T and the penalty treat all directions alike, so that nothing changes but the cost.
    """
    total = sums.scatter_xx.sum(axis=0) + (sums.n_samples * sums.mean_x.T) @ sums.mean_x
    values, directions = np.linalg.eigh(total)
    kept = directions[:, values > sums.n_features * sums.eps * max(values[-1], 0.0)]
    return replace(
        sums,
        mean_x=sums.mean_x @ kept,
        scatter_xx=kept.T @ sums.scatter_xx @ kept,
        scatter_xy=kept.T @ sums.scatter_xy,
        back=sums.back @ kept,
    )


# --- the equations of one spread ----------------------------------------------------------------


def part_equations(
    sums: DomainSums, part_of: np.ndarray, intercepts: Sequence[float], slopes: float
) -> list[Equations]:
    """``Σ H_d`` and ``Σ h_d`` over the domains of each part, one entry per spread of intercepts.

    ``intercepts`` are values of A, ``slopes`` is R.
    """
    n_parts = int(part_of.max()) + 1
    p, n_targets = sums.scatter_xy.shape[1:]
    shapes = ((p, p), (p,), (), (p, n_targets), (n_targets,), (), (n_targets,))
    equations = []
    for A in intercepts:
        zeros = (np.zeros((n_parts, *shape)) for shape in shapes)
        fields: dict[str, Any] = dict(zip(_EQUATIONS, zeros, strict=True))
        equations.append(Equations(coupled=math.isfinite(A), **fields))
    median = float(np.median(sums.n_samples))
    for part in range(n_parts):
        for at in _batches(np.flatnonzero(part_of == part), p):
            of_domains = domain_equations(sums.take(at), median, intercepts, slopes)
            for total, one in zip(equations, of_domains, strict=True):
                for name in _EQUATIONS:
                    getattr(total, name)[part] += getattr(one, name).sum(axis=0)
    return equations


def _batches(at: np.ndarray, p: int) -> list[np.ndarray]:
    """The indices in batches whose matrices of p columns fit in some megabytes."""
    size = max(1, _CELLS // (p * (p + len(PENALTIES)) + 1))
    return [at[start : start + size] for start in range(0, len(at), size)]


def domain_equations(
    sums: DomainSums, median: float, intercepts: Sequence[float], slopes: float
) -> list[Equations]:
    """H_d and h_d of each domain, one entry per spread of intercepts.

    With r the slopes' variance, S and t the sums of xxᵀ and x, ``P = (I + rS)⁻¹``:
    ``H_xx = PS``, ``H_x0 = Pt``, ``H_00 = n - r tᵀPt``, ``h_x = P Σxy``, ``h_0 = Σy - r tᵀP Σxy``.
    With a the intercepts' variance on top: ``H - a H_·0 H_0·/(1 + a H_00)``.
    """
    n, mean_x, mean_y = sums.n_samples, sums.mean_x, sums.mean_y
    r = slopes / max(median, sums.n_features)
    t = n[:, None] * mean_x
    sum_xy = sums.scatter_xy + t[:, :, None] * mean_y[:, None, :]
    sum_y = n[:, None] * mean_y
    xx = sums.scatter_xx + t[:, :, None] * mean_x[:, None, :]
    x0, weight, xy, y0 = t, n, sum_xy, sum_y
    if r > 0:
        inverse = _inverses(xx, r)
        xx = inverse @ xx
        x0 = (inverse @ t[:, :, None])[:, :, 0]
        weight = n - r * np.einsum("dj,dj->d", t, x0)
        weight = np.maximum(weight, np.finfo(float).eps * n)
        xy = inverse @ sum_xy
        y0 = sum_y - r * np.einsum("dj,djk->dk", x0, sum_xy)
    equations = []
    for A in intercepts:
        if math.isfinite(A):
            a = A / median
            f = 1 / (1 + a * weight)
            af = (a * f)[:, None, None]
            equations.append(
                Equations(
                    xx if a == 0 else xx - af * x0[:, :, None] * x0[:, None, :],
                    f[:, None] * x0,
                    f * weight,
                    xy if a == 0 else xy - af * x0[:, :, None] * y0[:, None, :],
                    f[:, None] * y0,
                    n / (1 + a * n),
                    sum_y / (1 + a * n)[:, None],
                    True,
                )
            )
            continue
        # Departure 2; without cancellation where the domains' means are far apart.
        within, within_xy = sums.scatter_xx, sums.scatter_xy
        if r > 0:
            inverse = _inverses(within, r)
            within, within_xy = inverse @ within, inverse @ within_xy
        mean_residual = (x0 / weight[:, None], np.ones_like(n), within_xy, y0 / weight[:, None])
        equations.append(Equations(within, *mean_residual, np.ones_like(n), mean_y, False))
    return equations


def _inverses(S: np.ndarray, r: float) -> np.ndarray:
    """``(I + rS)⁻¹`` of each of the matrices S, shape (n_domains, p, p)."""
    p = S.shape[1]
    shifted = r * S
    shifted[:, np.arange(p), np.arange(p)] += 1.0
    if p <= _BATCHED:
        return np.linalg.inv(shifted)
    for d in range(len(shifted)):
        factor, _ = lapack.dpotrf(shifted[d].T, lower=1, overwrite_a=1)
        lower, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
        lower = np.tril(lower, -1) + np.diag(np.diag(lower) / 2)
        shifted[d] = lower + lower.T
    return shifted


# --- every penalty ------------------------------------------------------------------------------


def penalty_paths(
    H: np.ndarray, h: np.ndarray, n_features: int, rounding: np.ndarray
) -> np.ndarray:
    """``(H + λI)⁻¹ h`` for the null and every penalty, (n_fits, n_penalties + 1, p, n_targets).

    Parameters
    ----------
    H : ndarray of shape (n_fits, p, p)
        Symmetric; only the lower triangles are read.
    h : ndarray of shape (n_fits, p, n_targets)
    n_features : int
        By which the trace is divided for the mean eigenvalue.
    rounding : ndarray of shape (n_fits,)
        Rounding error of the trace of H, and the smallest penalty. Where the trace does not exceed
        it, only the null is fitted.
    """
    n_fits, p, n_targets = h.shape
    paths = np.zeros((n_fits, len(PENALTIES) + 1, p, n_targets))
    mean = np.einsum("fjj->f", H) / n_features
    penalties = np.maximum(PENALTIES * mean[:, None], rounding[:, None])
    usable = np.flatnonzero(mean * n_features > rounding)
    if p > _SMALL:
        for fit in usable:
            paths[fit, 1:] = _tridiagonal_solves(H[fit], h[fit], penalties[fit])
    elif len(usable):
        values, vectors = np.linalg.eigh(H[usable])
        rotated = vectors.transpose(0, 2, 1) @ h[usable]
        shrunk = np.maximum(values, 0.0)[:, None] + penalties[usable][:, :, None]
        paths[usable, 1:] = vectors[:, None] @ (rotated[:, None] / shrunk[..., None])
    return paths


def _tridiagonal_solves(H: np.ndarray, h: np.ndarray, penalties: np.ndarray) -> np.ndarray:
    """``(H + λI)⁻¹ h`` by ``H = Q (tridiagonal) Qᵀ``, (n_penalties, p, n_targets); departure 3."""
    p = len(H)
    reduced, diagonal, beside, tau, _ = lapack.dsytrd(H, lower=1, lwork=64 * p)
    rotated = _rotated(reduced, tau, h, "T")
    solved = np.empty((p, len(penalties), h.shape[1]))
    for k, penalty in enumerate(penalties):
        _, _, solved[:, k], info = lapack.dptsv(diagonal + penalty, beside, rotated)
        assert info == 0, "the penalty exceeds the rounding error of H"
    back = _rotated(reduced, tau, solved.reshape(p, -1), "N").reshape(solved.shape)
    return back.transpose(1, 0, 2)


def _rotated(reduced: np.ndarray, tau: np.ndarray, c: np.ndarray, trans: str) -> np.ndarray:
    """``Q c`` or ``Qᵀ c``; the reflectors of Q stand below the subdiagonal, as those of a QR."""
    below, _, _ = lapack.dormqr("L", trans, reduced[1:, :-1], tau, c[1:], 64 * c.shape[1])
    return np.vstack([c[:1], below])


# --- errors -------------------------------------------------------------------------------------


def squared_errors(sums: DomainSums, coef: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Mean squared error at each domain, mean over the targets, shape (n_candidates, n_domains).

    ``(Σ(y - ȳ)² - 2 wᵀ Σ(x - x̄)(y - ȳ) + wᵀ Σ(x - x̄)(x - x̄)ᵀ w)/n + (ȳ - b - wᵀx̄)²``

    Parameters
    ----------
    sums : DomainSums
    coef : ndarray of shape (n_domains or 1, n_candidates, n_directions, n_targets)
        Candidates of each domain, or the same for all.
    intercept : ndarray of shape (n_domains or 1, n_candidates, n_targets)
    """
    errors = np.zeros((len(sums.n_samples), coef.shape[1]))
    n = sums.n_samples[:, None]
    for k in range(coef.shape[3]):
        w = np.ascontiguousarray(coef[..., k])
        spread = ((w @ sums.scatter_xx) * w).sum(axis=2)
        spread -= 2 * (w @ sums.scatter_xy[:, :, k, None])[:, :, 0]
        spread += sums.scatter_yy[:, k, None]
        # A perfect fit leaves rounding error of either sign.
        errors += np.maximum(spread, 0.0) / n
        offset = (w @ sums.mean_x[:, :, None])[:, :, 0] + intercept[..., k]
        errors += (sums.mean_y[:, k, None] - offset) ** 2
    return errors.T / coef.shape[3]


# --- candidates without each part, and the predictor they make ---------------------------------


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
    kept = np.vstack([1.0 - np.eye(n_parts), np.ones(n_parts)])
    results = []
    for equations in part_equations(sums, part_of, intercepts, slopes):
        done = [fits_to(equations, kept[at], sums) for at in _batches(np.arange(n_parts + 1), p)]
        coef, intercept = (np.concatenate(arrays) for arrays in zip(*done, strict=True))
        losses = np.empty((len(PENALTIES) + 1, n_domains))
        for part in range(n_parts):
            for at in _batches(np.flatnonzero(part_of == part), p):
                fit = coef[part, None], intercept[part, None]
                losses[:, at] = squared_errors(sums.take(at), *fit)
        pair_losses = None
        if pooled is not None:
            pair_losses = np.zeros((n_parts, n_parts, len(PENALTIES) + 1))
            for at in _batches(np.arange(len(pairs)), p):
                a, b = pairs[at].T
                fits = fits_to(equations, np.minimum(kept[a], kept[b]), sums)
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
        np.tensordot(kept, getattr(equations, name), 1) for name in _EQUATIONS
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
    return replace(sums, **dict(zip(_SUMS, stacked, strict=True)))


def candidate_weights(losses: np.ndarray) -> np.ndarray:
    """Weights of the candidates, which sum to 1: each spread at its best penalty, by ``loss**-12``.

    Parameters
    ----------
    losses : ndarray of shape (n_spreads, n_penalties + 1)
        Mean loss of each candidate; of equal penalties the larger is taken.
    """
    at = np.argmax(losses <= losses.min(axis=1, keepdims=True) * (1 + TIE), axis=1)
    best = losses[np.arange(len(losses)), at]
    weights = np.zeros_like(losses)
    weights[np.arange(len(losses)), at] = error_weights(best, POWER)
    return weights


def error_weights(errors: np.ndarray, power: float) -> np.ndarray:
    """``e**-power`` for each error e, divided by their sum; errors of 0 share the whole weight."""
    least = errors.min()
    weights = (least / errors) ** power if least > 0 else (errors <= 0).astype(np.float64)
    return weights / weights.sum()


def combined(
    sums: DomainSums, part_of: np.ndarray, weight: np.ndarray, fits: Sequence[HeldOutFits]
) -> SteadyFit:
    """The predictor that the candidates make together, and its errors at held-out domains."""
    losses = np.array([fit.losses @ weight for fit in fits]) / weight.sum()
    n_steps = losses.shape[1]
    path = np.zeros((n_steps, *losses.shape))
    for step in range(n_steps):  # one more penalty to choose from
        path[step, :, : step + 1] = candidate_weights(losses[:, : step + 1])
    n_parts, n_domains = int(part_of.max()) + 1, len(weight)
    pair_losses = [fit.pair_losses for fit in fits if fit.pair_losses is not None]
    curve, train = np.empty((2, n_steps, n_domains))
    nested = np.empty(n_domains) if pair_losses else None
    to_all = _averages(path, fits, n_parts)
    for part in range(n_parts):
        without = _averages(path, fits, part)
        if pair_losses:
            left = np.array([of_pairs[part].sum(axis=0) for of_pairs in pair_losses])
            chosen = candidate_weights(left)
            anew = _averages(chosen[None], fits, part)
        for at in _batches(np.flatnonzero(part_of == part), sums.mean_x.shape[1]):
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
    coef = np.array([fit.coef[part] for fit in fits])
    intercept = np.array([fit.intercept[part] for fit in fits])
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
        for at in _batches(np.arange(len(slopes)), slopes.shape[1]) if chosen else []:
            equations = domain_equations(sums.take(at), median, intercepts, R)
            for s, of_domains in zip(chosen, equations, strict=True):
                w = np.tensordot(weights[s], fits[s].coef[-1], 1)
                b = np.tensordot(weights[s], fits[s].intercept[-1], 1)
                left = weights[s].sum() * of_domains.xy - of_domains.xx @ w
                if of_domains.coupled:
                    left -= of_domains.x0[:, :, None] * b
                slopes[at] += r * left
    return slopes
