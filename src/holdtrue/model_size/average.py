"""The bases of a fit, and the average that predicts: their posterior means by their evidence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.utils import gen_batches

from holdtrue.model_size import kernel
from holdtrue.model_size.bases import Basis, Rows, TransformerBasis, constant_basis
from holdtrue.model_size.bayes import Posterior, fit_posterior, mixture
from holdtrue.model_size.folds import sorted_rows

_N_DRAWS = 1000
_FEW_UNLABELED = 30
_FEW_VALUES = 3
_BATCH = 10_000
_MARGIN = 0.1  # of the range of y, beyond which no prediction goes
# Bases are weighed by this power of their evidence: they share most of what they get wrong, and
# none is right.
_POWER = 0.5
# Where left-out rows gain less than this share of their error about their mean, the mean enters.
_LITTLE = 0.1
_DOMINANT = 0.5


class Candidate(NamedTuple):
    """A fitted basis with its D terms."""

    basis: Basis
    terms: np.ndarray  # shape (n_rows, D): at the labelled rows
    # From `moment_triangle`, over inputs like those to come; a process has its prior whatever they
    # are.
    C_half: np.ndarray | None


def look_elsewhere(
    fitted: dict[str, Basis], rows: Rows, rng: np.random.RandomState, *, averaged: bool
) -> dict[str, Candidate]:
    """The fitted bases with their terms at the rows, and over inputs like those to come.

    These are the unlabelled rows, and drawn ones if they are too few. ``averaged``: predictions are
    an average, for which few unlabelled rows do not stand for all inputs.
    """
    order, n_rows = sorted_rows(rows.X, rows.y), len(rows.y)
    candidates = {}
    for name, basis in fitted.items():
        points = basis.coordinates(rows.inputs())
        C_half = None
        if basis.explains:
            elsewhere = points[n_rows:]
            if len(elsewhere) < (_FEW_UNLABELED if averaged else 1):
                if len(elsewhere) and isinstance(basis, TransformerBasis):
                    more = points[:n_rows]  # it may refuse inputs that are drawn
                else:
                    more = _drawn(points[order], rows.weight[order], basis.bounds(points), rng,
                                  averaged=averaged)  # fmt: skip
                elsewhere = np.concatenate([elsewhere, more])
            triangle: Any = None
            for batch in gen_batches(len(elsewhere), _BATCH):
                triangle = kernel.moment_triangle(basis.terms(elsewhere[batch]), triangle)
            C_half = triangle / math.sqrt(len(elsewhere))
        candidates[name] = Candidate(basis, basis.terms(points[:n_rows]), C_half)
    return candidates


def _drawn(
    points: np.ndarray,
    weight: np.ndarray,
    ends: tuple[np.ndarray, np.ndarray],
    rng: np.random.RandomState,
    *,
    averaged: bool,
) -> np.ndarray:
    """Draws from a kernel density of the points."""
    # New rows will have the few values of an input too: what a curve does between them, which
    # nothing tells, must not count as its error.
    n_values = np.array([len(np.unique(column)) for column in points.T], dtype=int)
    varies = n_values > 1
    smooth = (n_values > (_FEW_VALUES if averaged else 1))[varies]
    drawn = np.tile(points[0], (_N_DRAWS, 1))
    low, high = (end[varies] for end in ends)
    drawn[:, varies] = kernel.parzen_sample(
        points[:, varies], weight, low, high, _N_DRAWS, rng, smooth
    )
    return drawn


class Curve(NamedTuple):
    """A fitted basis with the posterior of its coefficients."""

    basis: Basis
    posterior: Posterior


@dataclass(frozen=True, eq=False)
class Average:
    """Curves of several bases and their weights."""

    curves: dict[str, Curve]  # by the basis's name
    # In proportion to the root of each basis's posterior probability, but for the constant.
    weights: np.ndarray
    low: float  # predictions are held between low and high
    high: float
    new_error: float  # mean squared error on left-out rows
    left_out: np.ndarray  # shape (n_rows,): predictions of the rows, each from the others

    @property
    def likeliest(self) -> str:
        """Name of the basis of the greatest weight among those that explain."""
        explains = [curve.basis.explains for curve in self.curves.values()]
        return list(self.curves)[int(np.argmax(np.where(explains, self.weights, -1)))]

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Posterior mean of the curve over all sizes and bases."""
        means = [basis.values(X) @ known.mean for basis, known in self.curves.values()]
        return np.clip(self.weights @ np.array(means), self.low, self.high)

    def predict_with_deviation(self, X: np.ndarray) -> np.ndarray:
        """Posterior mean of the curve, and its deviation: two rows.

        Within each basis, the terms it does not have among it, and between bases. Where an input
        has few values, the sample leaves the size of most terms open: their posterior has so long a
        tail that the largest prior alone decides its variance. The deviation is at most the width
        of the range in which predictions are held.
        """
        means, variances = np.empty((2, len(self.curves), len(X)))
        for i, (basis, known) in enumerate(self.curves.values()):
            terms = basis.values(X)
            means[i] = terms @ known.mean
            terms -= known.centre
            variances[i] = np.einsum("ij,ij->i", terms @ known.covariance, terms) + known.beyond
        mean = self.weights @ means
        variance = self.weights @ (np.maximum(variances, 0.0) + (means - mean) ** 2)
        deviation = np.minimum(np.sqrt(variance), self.high - self.low)
        return np.array([np.clip(mean, self.low, self.high), deviation])


def _posterior(candidate: Candidate, rows: Rows) -> Posterior:
    return fit_posterior(candidate.terms, rows.y, rows.weight, candidate.C_half)


def average_curves(candidates: dict[str, Candidate], rows: Rows) -> Average:
    """The candidates' posteriors weighed by the root of their evidence.

    Of several inputs the constant has a weight too where the average predicts left-out rows hardly
    better than their mean does.
    """
    # All is computed about the mean of y, in whose digits the differences would be lost.
    level = float(rows.weight @ rows.y / rows.weight.sum())
    rows = rows._replace(y=rows.y - level)
    posteriors = {name: _posterior(each, rows) for name, each in candidates.items()}
    evidence = np.array([known.log_evidence for known in posteriors.values()])
    log_weights = _POWER * (evidence - evidence.max())
    log_weights -= logsumexp(log_weights)
    weights = np.exp(log_weights)
    low, high = float(rows.y.min()), float(rows.y.max())
    margin = _MARGIN * (high - low)
    low, high = low - margin, high + margin
    parts = [known.left_out for known in posteriors.values() if known.left_out is not None]
    predicted, log_density = (np.array(values) for values in zip(*parts, strict=True))
    left_out = np.clip(mixture(predicted, log_density, log_weights).predicted, low, high)
    if rows.X.shape[1] > 1:
        share, left_out = _beside_mean(left_out, rows)
        if share < 1:
            constant = Candidate(constant_basis(rows), np.ones((len(rows.y), 1)), None)
            candidates = {**candidates, "constant": constant}
            posteriors["constant"] = _posterior(constant, rows)
            weights = np.append(share * weights, 1 - share)
    new_error = float(rows.weight @ (left_out - rows.y) ** 2 / rows.weight.sum())
    curves = {}
    for name, known in posteriors.items():
        known.mean[0] += level
        curves[name] = Curve(candidates[name].basis, known._replace(left_out=None))
    return Average(curves, weights, low + level, high + level, new_error, left_out + level)


def _beside_mean(left_out: np.ndarray, rows: Rows) -> tuple[float, np.ndarray]:
    """Weight of the average, the rest being the mean of y; and left-out predictions of the mix.

    The share is 1 unless the average gains little. Then it is the one under which left-out rows
    have the least squared error; each row's prediction has the share of the others. A row that
    alone has more than half of the squared error about the mean has no say, not in the mean
    either: a curve that sets it apart would seem to gain at all the others.
    """
    weight, y = rows.weight, rows.y
    one = np.minimum(1.0, weight)
    mean = (weight @ y - one * y) / (weight.sum() - one)
    squares = (y - weight @ y / weight.sum()) ** 2
    judges = np.where(one * squares > _DOMINANT * (weight @ squares), 0.0, weight)
    itself = np.minimum(one, judges)
    judged_mean = (judges @ y - itself * y) / (judges.sum() - itself)
    gain, target = left_out - judged_mean, y - judged_mean

    def share(gains: Any, both: Any, targets: Any) -> Any:
        best = np.clip(both / np.where(gains > 0, gains, 1.0), 0.0, 1.0)
        gained = (2 * both - gains) / np.where(targets > 0, targets, 1.0)
        good = np.where(gains > 0, np.clip(gained / _LITTLE, 0.0, 1.0), 1.0)
        return good + (1 - good) * best

    products = np.array([gain**2, gain * target, target**2])
    sums = products @ judges
    without = share(*(sums[:, None] - itself * products))
    return float(share(*sums)), mean + without * (left_out - mean)
