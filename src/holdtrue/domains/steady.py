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
===========================================  ==================================

Which candidates make the predictor is decided in `holdtrue.domains.steady_choose`.

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
from typing import Any

import numpy as np
from scipy.linalg import lapack

from holdtrue.sums import Moments

PENALTIES = np.logspace(2, -6, 25)
SUMS = ("n_samples", "mean_x", "scatter_xx", "mean_y", "scatter_xy", "scatter_yy")
EQUATIONS = ("xx", "x0", "weight", "xy", "y0", "null_weight", "null_y")
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
        Columns of X; directions are fewer where the rows do not span all columns.
    back : ndarray of shape (n_features, n_directions)
        Takes coefficients of directions to coefficients of the columns of X.
    centre_x : ndarray of shape (n_features,)
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
        return replace(self, **{name: getattr(self, name)[at] for name in SUMS})


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
    sums = DomainSums(
        n,
        mean_x * unit,
        scatter_xx,
        mean_y,
        scatter_xy * unit[:, None],
        scatter_yy,
        len(unit),
        np.diag(unit),
        centre_x,
        centre_y,
        eps,
        float(np.mean((8 * eps * unit * np.abs(moments.mean_x).max(axis=0)) ** 2)),
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
        fields: dict[str, Any] = dict(zip(EQUATIONS, zeros, strict=True))
        equations.append(Equations(coupled=math.isfinite(A), **fields))
    median = float(np.median(sums.n_samples))
    for part in range(n_parts):
        for at in batches(np.flatnonzero(part_of == part), p):
            of_domains = domain_equations(sums.take(at), median, intercepts, slopes)
            for total, one in zip(equations, of_domains, strict=True):
                for name in EQUATIONS:
                    getattr(total, name)[part] += getattr(one, name).sum(axis=0)
    return equations


def batches(at: np.ndarray, p: int) -> list[np.ndarray]:
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
