"""Equation (1): from raw columns to standardised ones, to a fit, and back to the columns' scale.

The paper, the notation and the departures are in `kernel`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from holdtrue.sources.kernel import Columns, GreedyFit, greedy, greedy_from_gram, greedy_sampled

# A mean is off by about eps·sqrt(n) of its size. A column whose scale is up to _CONSTANT times that
# is a constant. Up to _COARSE times that, or outside of _SMALL to _LARGE, where squares leave its
# range, float32 is too coarse.
_CONSTANT = 8
_COARSE = 1_000
_SMALL, _LARGE = 1e-16, 1e16


def standardised(Z: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``sqrt(w) (Z - mean)/scale``, and in float64 the weighted means and scales of the columns.

    A constant column becomes zeros and has scale 1. What float32 is too coarse for is done in
    float64 and rounded at the end.

    Parameters
    ----------
    Z : ndarray of shape (n_rows, n_columns), float64 or float32
        Squares must fit into float64.
    weight : ndarray of shape (n_rows,)
        Positive.
    """
    n = weight.sum()
    share = (weight / n).astype(Z.dtype, copy=False)
    mean = share @ Z
    with np.errstate(over="ignore"):  # of float32; done again below
        made = np.subtract(Z, mean, order="C")
        made *= np.sqrt(weight).astype(Z.dtype, copy=False)[:, None]
        scale = np.sqrt(np.einsum("ij,ij->j", made, made) / n)
    single = Z.dtype == np.float32
    rounding = float(np.finfo(Z.dtype).eps) * math.sqrt(len(Z))
    least = (_COARSE if single else _CONSTANT) * rounding * np.abs(mean)
    if single:
        odd = np.flatnonzero(~((scale > np.maximum(least, _SMALL)) & (scale < _LARGE)))
        is_zero = (scale[odd] == 0) & (mean[odd] == 0)
        constant, coarse = odd[is_zero], odd[~is_zero]
    else:
        constant, coarse = np.flatnonzero(scale <= least), np.empty(0, dtype=np.intp)
    scale[constant] = 1
    scale[coarse] = 1
    made /= scale
    mean, scale = mean.astype(np.float64, copy=False), scale.astype(np.float64, copy=False)
    if len(constant):
        made[:, constant] = 0
    if len(coarse):
        exact = standardised(Z[:, coarse].astype(np.float64), weight)
        made[:, coarse], mean[coarse], scale[coarse] = exact
    return made, mean, scale


@dataclass(frozen=True, eq=False)
class TargetFit:
    """A `GreedyFit` with what brings its weights to the scale of the raw columns.

    ``h(x) = ȳ + s_y Σ w_j (x_j - mean_j)/scale_j`` over the j of ``greedy.order``.
    """

    greedy: GreedyFit
    mean: np.ndarray
    scale: np.ndarray
    y_mean: float
    y_scale: float

    def first(self, size: int) -> TargetFit:
        """The fit of the first ``size`` picks, or itself if it has no more."""
        if size >= len(self.greedy.order):
            return self
        kept = self.greedy
        cut = replace(kept, order=kept.order[:size], R=kept.R[:size, :size], q=kept.q[:size])
        return replace(self, greedy=cut, mean=self.mean[:size], scale=self.scale[:size])

    @property
    def effects(self) -> np.ndarray:
        """What one standard deviation of each chosen candidate adds to the prediction."""
        return self.y_scale * self.greedy.weights

    def raw(self) -> tuple[float, np.ndarray]:
        """Intercept, and weights of the chosen candidates as they stand."""
        weights = self.effects / self.scale
        return self.y_mean - float(weights @ self.mean), weights

    def predictions(self, Z: np.ndarray) -> np.ndarray:
        """Of every size 0..k for rows of the chosen candidates, shape (k + 1, n_rows)."""
        made = (Z - self.mean) / self.scale
        return self.y_mean + self.y_scale * self.greedy.predictions(made)


@dataclass(frozen=True)
class Search:
    """How to search: the parameters of `greedy`, and the draws where there are any."""

    lam: float
    max_selected: int
    tol: float
    n_total: int
    draws: Callable[[int], np.ndarray] | None = None
    size: int = 0
    compiled: bool = False


def fit_target(columns: Columns, y: np.ndarray, weight: np.ndarray, search: Search) -> TargetFit:
    """Standardise, select and bring back to the scale of the columns.

    Parameters
    ----------
    columns : callable
        Raw columns of given indices, or of ``slice(None)`` for all, shape (n_rows, n_columns).
    y, weight : ndarray of shape (n_rows,)
        Rows of weight 0 are left out.
    search : Search
    """
    return next(fit_target_for([search.lam], columns, y, weight, search))


def fit_target_for(
    lams: Sequence[float], columns: Columns, y: np.ndarray, weight: np.ndarray, search: Search
) -> Iterator[TargetFit]:
    """`fit_target` for several λ, which share what does not depend on it."""
    used = weight > 0
    w = weight[used]
    n = float(w.sum())
    target, y_mean, y_scale = standardised(y[used][:, None].astype(np.float64), w)

    def made(indices: np.ndarray | slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        raw = columns(indices)
        return standardised(raw if used.all() else raw[used], w)

    if search.draws is None:
        Z, means, scales = made(slice(None))
    limits = (search.max_selected, search.tol)
    for lam in lams:
        if search.draws is None:
            fit = greedy(Z, target[:, 0], n, lam, *limits, compiled=search.compiled)
            mean, scale = means[fit.order], scales[fit.order]
        else:
            fit = greedy_sampled(
                lambda indices: made(indices)[0],
                *(search.draws, search.size, search.n_total, target[:, 0], n, lam, *limits),
            )
            _, mean, scale = made(fit.order)
        yield TargetFit(fit, mean, scale, float(y_mean[0]), float(y_scale[0]))


def fit_targets(
    columns: Columns, Y: np.ndarray, weight: np.ndarray, search: Search
) -> list[TargetFit]:
    """`fit_target` for every column of Y with the same rows and weights, through one Gram matrix.

    Parameters
    ----------
    columns, weight, search : as in `fit_target`; ``search.draws`` must be None
    Y : ndarray of shape (n_rows, n_targets)
    """
    used = weight > 0
    w = weight[used]
    n = float(w.sum())
    Z, mean, scale = standardised(columns(slice(None))[used].astype(np.float64, copy=False), w)
    T, y_mean, y_scale = standardised(Y[used].astype(np.float64, copy=False), w)
    C, B = Z.T @ Z, Z.T @ T
    fits = []
    for t in range(Y.shape[1]):
        fit = greedy_from_gram(C, B[:, t], n, search.lam, search.max_selected, search.tol)
        fits.append(
            TargetFit(fit, mean[fit.order], scale[fit.order], float(y_mean[t]), float(y_scale[t]))
        )
    return fits
