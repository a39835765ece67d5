"""The average that predicts: posterior means of several bases, weighed by their evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from holdtrue.model_size import kernel
from holdtrue.model_size.bases import Basis, Rows
from holdtrue.model_size.bayes import Posterior, equal_grid, posterior, prior_grid

_BANDS = 8
_MARGIN = 0.1  # of the range of y, beyond which no prediction goes
# Bases of several inputs are weighed by this power of their evidence: they share most of what they
# get wrong, and none is right.
_POWER = 0.5
# Points of the grid of a lower probability have no say in left-out predictions.
_UNLIKELY = 1e-3


class LeftOut(NamedTuple):
    """Of every row, fitted without it: the prediction, and the logarithm of its density."""

    predicted: np.ndarray
    log_density: np.ndarray


@dataclass(frozen=True, eq=False)
class Curve:
    """The posterior of one basis.

    Attributes
    ----------
    basis : fitted Basis
    posterior : Posterior
        Of all the basis's terms.
    left_out : LeftOut
    """

    basis: Basis
    posterior: Posterior
    left_out: LeftOut

    def mean_and_variance(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean and variance of the curve at the rows of X."""
        terms = self.basis.terms(self.basis.coordinates(X))
        variance = np.einsum("ij,ij->i", terms @ self.posterior.covariance, terms)
        return terms @ self.posterior.mean, np.maximum(variance, 0.0)

    def mean(self, X: np.ndarray) -> np.ndarray:
        """Posterior mean of the curve at the rows of X."""
        values: np.ndarray = self.basis.terms(self.basis.coordinates(X)) @ self.posterior.mean
        return values


def fit_curve(
    basis: Basis, rows: Rows, terms: np.ndarray, new_terms: Iterable[np.ndarray]
) -> Curve:
    """Posterior of the basis's terms, with their prior variances in units of new inputs.

    Parameters
    ----------
    basis : fitted Basis
    rows : Rows
    terms : ndarray of shape (n_rows, D)
        At the labelled rows.
    new_terms : iterable of ndarray of shape (n_inputs, D)
        At inputs like those to come, part by part.
    """
    count, C = 0, np.zeros((terms.shape[1], terms.shape[1]))
    for part in new_terms:
        count += len(part)
        C += part.T @ part
    C /= count
    # The first term is 1, so the first row has the means.
    variance = np.diag(C) - C[0] ** 2
    scale = np.sqrt(np.where(variance > 1e-12 * np.diag(C), variance, 1.0))
    n_terms = terms.shape[1] - 1
    grid = prior_grid(max(n_terms, 1), _BANDS)
    if not basis.explains:  # a process, whose terms have their prior variances as they stand
        scale, grid = np.ones(n_terms + 1), equal_grid(n_terms)
    R, z, rss = kernel.joint_triangle(terms, rows.y, rows.weight)
    known = posterior(R, z, rss, float(rows.weight.sum()), scale, grid)
    return Curve(basis, known, left_out(terms[:, 1:] / scale[1:], rows, known))


def left_out(terms: np.ndarray, rows: Rows, known: Posterior) -> LeftOut:
    """Predictions of the posterior mean for every row from the others, in closed form.

    Under one prior y has covariance ``σ² A``, ``A = I + t T diag(v) Tᵀ``, about a constant of its
    own. With ``B = A⁻¹ - A⁻¹11ᵀA⁻¹/1ᵀA⁻¹1`` the residual of row i, left out, is ``(By)_i/B_ii``.
    The probabilities of the priors without the row are those with it over the row's density. Of a
    row of weight 3, which stands for three, one is left out.

    Parameters
    ----------
    terms : ndarray of shape (n_rows, D - 1)
        Behind the constant, in units of their prior.
    rows : Rows
    known : Posterior
    """
    root = np.sqrt(rows.weight)
    one = np.minimum(1.0, 1.0 / rows.weight)
    y = root * (rows.y - rows.weight @ rows.y / rows.weight.sum())
    freedom = float(rows.weight.sum()) - 1
    predicted, log_density, log_p = [], [], []
    for share, ratio, p in zip(*known.grid[:2], known.probability, strict=True):
        likely = p > _UNLIKELY * known.probability.max()
        if not likely.any():
            continue
        axes, sizes, _ = np.linalg.svd(root[:, None] * terms * np.sqrt(share), full_matrices=False)
        for t, log_weight in zip(ratio[likely], np.log(p[likely]), strict=True):
            shrink = t * sizes**2 / (1 + t * sizes**2)
            ones = root - axes @ (shrink * (root @ axes))
            inverse_y = y - axes @ (shrink * (y @ axes))
            total = root @ ones
            by = inverse_y - ones * (ones @ y / total)
            leverage = axes**2 @ shrink + ones**2 / total
            diagonal = np.maximum(1 - one * leverage, 1e-12)
            variance = np.maximum(y @ by, 1e-300) / max(freedom, 1.0) / diagonal
            residual = by / root / diagonal
            predicted.append(rows.y - residual)
            log_density.append(-0.5 * (np.log(variance) + residual**2 / variance))
            log_p.append(log_weight)
    return _without(np.array(predicted), np.array(log_density), np.array(log_p))


def _without(predicted: np.ndarray, log_density: np.ndarray, log_p: np.ndarray) -> LeftOut:
    """The mixture of left-out predictions, shape (n_parts, n_rows), with weights of all rows."""
    log_weight = log_p[:, None] - log_density
    total = logsumexp(log_weight, axis=0)
    share = np.exp(log_weight - total)
    # 1/p(y_i | others) is the mean of 1/p(y_i | others, part) under the weights of all rows.
    return LeftOut(np.sum(share * predicted, axis=0), logsumexp(log_p) - total)


@dataclass(frozen=True, eq=False)
class Average:
    """Curves of several bases and their weights.

    Attributes
    ----------
    curves : dict of Curve
        By the basis's name.
    weights : ndarray of shape (n_curves,)
        Posterior probability of each basis, if all were equally likely before.
    low, high : float
        Predictions are held between them.
    new_error : float
        Mean squared error on left-out rows.
    """

    curves: dict[str, Curve]
    weights: np.ndarray
    low: float
    high: float
    new_error: float

    @property
    def likeliest(self) -> str:
        """Name of the basis of the greatest weight among those that explain."""
        explains = [curve.basis.explains for curve in self.curves.values()]
        return list(self.curves)[int(np.argmax(np.where(explains, self.weights, -1)))]

    def without_rows(self) -> Average:
        """What predicts, without what is known of the rows that were left out."""
        nothing = LeftOut(np.empty(0), np.empty(0))
        curves = {name: replace(curve, left_out=nothing) for name, curve in self.curves.items()}
        return replace(self, curves=curves)

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Posterior mean of the curve over all sizes and bases."""
        mean = self.weights @ np.array([curve.mean(X) for curve in self.curves.values()])
        return np.clip(mean, self.low, self.high)

    def predict_with_deviation(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Posterior mean of the curve, and its deviation within and between bases."""
        parts = [curve.mean_and_variance(X) for curve in self.curves.values()]
        means, variances = (np.array(values) for values in zip(*parts, strict=True))
        mean = self.weights @ means
        variance = self.weights @ (variances + (means - mean) ** 2)
        return np.clip(mean, self.low, self.high), np.sqrt(variance)


def average_curves(curves: dict[str, Curve], rows: Rows) -> Average:
    """The curves weighed by their evidence."""
    evidence = np.array([curve.posterior.log_evidence for curve in curves.values()])
    log_weights = (1.0 if rows.X.shape[1] == 1 else _POWER) * (evidence - evidence.max())
    log_weights -= logsumexp(log_weights)
    low, high = float(rows.y.min()), float(rows.y.max())
    margin = _MARGIN * (high - low)
    low, high = low - margin, high + margin
    parts = [curve.left_out for curve in curves.values()]
    predicted, log_density = (np.array(values) for values in zip(*parts, strict=True))
    without = _without(predicted, log_density, log_weights).predicted
    errors = (np.clip(without, low, high) - rows.y) ** 2
    new_error = float(rows.weight @ errors / rows.weight.sum())
    return Average(curves, np.exp(log_weights), low, high, new_error)
