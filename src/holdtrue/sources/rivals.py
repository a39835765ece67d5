"""Other ways to use a pool of sources, to compare with GreedyTL: the baselines of its paper.

All are classifiers on the same pool, with balanced weights by default, standardised columns, and
penalties chosen over the paper's grids by leave-one-out where none is given. Without sources they
take the columns of X for sources.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from holdtrue.errors import InputError, shown
from holdtrue.path import fits_whole
from holdtrue.sources.base import (
    ClassPredictions,
    SourceEstimator,
    check_penalty,
)
from holdtrue.sources.candidates import Candidates
from holdtrue.sources.choose import LAMBDAS, Search, fit_each, one_at_a_time
from holdtrue.sources.scale import standardised
from holdtrue.validation import check_count, check_number, is_number

__all__ = [
    "AverageKT",
    "BestSource",
    "DAM",
    "ForwardRegression",
    "MultiKT",
    "RegularizedLeastSquares",
]

TAUS = tuple(10.0**power for power in range(-3, 4))
_EPS = float(np.finfo(np.float64).eps)
_N_STEPS = 300


class Target(NamedTuple):
    """One target, ±1, with the candidates, weights, and the share of a row to leave out."""

    candidates: Candidates
    y: np.ndarray
    weight: np.ndarray
    one: np.ndarray

    def source_scores(self) -> tuple[np.ndarray, np.ndarray]:
        """Scores of the sources that run, and their places among the candidates.

        Without sources columns of X stand for them. A source that was left out has no say: its
        zeros would count as an opinion.
        """
        candidates = self.candidates
        if not candidates.n_sources:
            return candidates.matrix().astype(np.float64), np.arange(len(candidates))
        all_sources = np.arange(candidates.n_sources)
        running = np.setdiff1d(all_sources, list(candidates.on.skipped)).astype(int)
        if not len(running):
            raise InputError(
                f"needs a source that runs. Got {candidates.n_sources}, all left out. "
                "Pass on_error='raise' to the SourcePool to see the first error."
            )
        places = candidates.n_features + running
        return candidates.columns(places).astype(np.float64), places

    def features(self) -> np.ndarray:
        """Columns of X that are candidates."""
        return self.candidates.columns(np.arange(self.candidates.n_features)).astype(np.float64)


class TransferRival(ClassPredictions, SourceEstimator):
    """A child fits one target in `_fit_target`."""

    passthrough: Any = True

    def __init__(self, sources: Any = (), *, class_weight: Any = "balanced"):
        self.sources = sources
        self.class_weight = class_weight

    @fits_whole
    def fit(self, X: Any, y: Any, *, sample_weight: Any = None) -> Any:
        """Fit the weights of sources and features.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        self : the fitted estimator
        """
        self._check_parameters()
        candidates, task = self._read_classes(X, y, None, sample_weight)
        n_targets = task.n_targets
        raw = np.zeros((self.n_features_in_ + candidates.n_sources, n_targets))
        effects = np.zeros_like(raw)
        intercepts = np.empty(n_targets)
        columns = candidates.matrix().astype(np.float64)
        # A row of weight 3 stands for three: one of them is left out at a time, if there are few.
        few = one_at_a_time(task.weight)
        one = np.minimum(1.0, 1.0 / task.weight) if few else np.ones(len(task.weight))
        penalties = []
        for t, target in enumerate(task.targets.T):
            weight = task.full_weights[t]
            on = Target(candidates, target, weight, one)
            intercepts[t], weights, *penalty = self._fit_target(on)
            penalties.append(penalty)
            raw[candidates.indices, t] = weights
            mean = weight @ columns / weight.sum()
            spread = np.sqrt(weight @ (columns - mean) ** 2 / weight.sum())
            effects[candidates.indices, t] = weights * spread
        self._keep(intercepts, raw, effects)
        for name, values in zip(("lam_", "tau_"), zip(*penalties, strict=True), strict=False):
            setattr(self, name, list(values))
        return self

    def _check_parameters(self) -> None:
        for name in ("lam", "tau"):
            check_penalty(name, getattr(self, name, 1.0))

    def _tried(self, name: str, grid: tuple[float, ...]) -> tuple[float, ...]:
        """Values of a penalty to choose from: the one given, or the grid."""
        value = getattr(self, name)
        return grid if isinstance(value, str) else (float(value),)

    def _fit_target(self, on: Target) -> tuple[Any, ...]:
        """Intercept, raw weights of the candidates, and the penalties λ and τ that were used."""
        raise NotImplementedError


class RegularizedLeastSquares(TransferRival):
    """Ridge regression on all sources and features: RLS src+feat, or no transfer.

    ``min (1/m) Σ (h(x_i) - y_i)² + λ‖w‖²``. Without sources it is the paper's *no transfer*, with
    ``passthrough=False`` it uses the sources alone.

    Parameters
    ----------
    sources : SourcePool or list of (name, source), default=()
    lam : float or "loo", default="loo"
        λ per row; ``"loo"`` takes the best of 10⁻⁴, ..., 10⁴.
    class_weight : "balanced", dict or None, default="balanced"
    passthrough : bool, default=True
        Whether the columns of X take part.

    Attributes
    ----------
    lam_ : list of float
        The penalty of each target.
    source_weights_, feature_weights_, coef_, intercept_, source_names_, classes_
        And ``n_features_in_``, ``feature_names_in_``: as in `GreedyTLClassifier`.

    Examples
    --------
    >>> from holdtrue.datasets import make_sources
    >>> from holdtrue.sources import RegularizedLeastSquares
    >>> data = make_sources(random_state=0)
    >>> model = RegularizedLeastSquares(data.sources).fit(data.X, data.y)
    >>> int((model.source_weights_ != 0).sum())
    1000
    """

    def __init__(
        self,
        sources: Any = (),
        *,
        lam: Any = "loo",
        class_weight: Any = "balanced",
        passthrough: bool = True,
    ):
        super().__init__(sources, class_weight=class_weight)
        self.lam = lam
        self.passthrough = passthrough

    def _fit_target(self, on: Target) -> tuple[Any, ...]:
        candidates, y, weight, one = on
        n = weight.sum()
        Z, mean, scale = standardised(candidates.matrix().astype(np.float64), weight)
        centre = weight @ y / n
        target = np.sqrt(weight) * (y - centre)
        lams = self._tried("lam", LAMBDAS)
        left_out = ridge_leave_one_out(Z, target, weight, lams, one)
        lam = lams[int(np.argmin((left_out + centre - y) ** 2 @ weight))]
        weights = ridge(Z, target, n, lam) / scale
        return float(centre - weights @ mean), weights, lam


class BestSource(TransferRival):
    """The one source that classifies the rows of the fit best, as it is.

    The paper picks it by its score on the test rows, which is a ceiling and no method; here it is
    the largest weighted accuracy of the scores' signs on the rows of the fit, then the largest
    correlation with the class.

    Parameters
    ----------
    sources : SourcePool or list of (name, source), default=()
    class_weight : "balanced", dict or None, default="balanced"

    Attributes
    ----------
    source_weights_, feature_weights_, coef_, intercept_, source_names_, classes_
        And ``n_features_in_``, ``feature_names_in_``: as in `GreedyTLClassifier`.

    Examples
    --------
    >>> from holdtrue.datasets import make_sources
    >>> from holdtrue.sources import BestSource
    >>> data = make_sources(n_sources=20, n_helpful=5, random_state=0)
    >>> model = BestSource(data.sources).fit(data.X, data.y)
    >>> model.source_names_[model.source_weights_.argmax()] in data.helpful
    True
    """

    def _fit_target(self, on: Target) -> tuple[Any, ...]:
        candidates, y, weight, _ = on
        scores, places = on.source_scores()
        right = weight @ (np.where(scores > 0, 1.0, -1.0) == y[:, None])
        Z, _, _ = standardised(scores, weight)
        correlation = (np.sqrt(weight) * y) @ Z
        best = np.lexsort((correlation, np.round(right, 9)))[-1]
        weights = np.zeros(len(candidates))
        weights[places[best]] = 1.0
        return 0.0, weights


class AverageKT(TransferRival):
    """The mean of all sources' scores, for two classes.

    Parameters
    ----------
    sources : SourcePool or list of (name, source), default=()
    class_weight : "balanced", dict or None, default="balanced"
        Without effect: nothing is fitted.

    Attributes
    ----------
    source_weights_, feature_weights_, coef_, intercept_, source_names_, classes_
        And ``n_features_in_``, ``feature_names_in_``: as in `GreedyTLClassifier`.

    Examples
    --------
    >>> from holdtrue.datasets import make_sources
    >>> from holdtrue.sources import AverageKT
    >>> data = make_sources(n_sources=5, n_helpful=5, random_state=0)
    >>> AverageKT(data.sources).fit(data.X, data.y).score(data.X_test, data.y_test) > 0.95
    True
    """

    def _fit_target(self, on: Target) -> tuple[Any, ...]:
        if len(self.classes_) > 2:
            raise InputError(
                "needs 2 classes, because all classes would get the same score. "
                f"Got {len(self.classes_)} classes."
            )
        _, places = on.source_scores()
        weights = np.zeros(len(on.candidates))
        weights[places] = 1.0 / len(places)
        return 0.0, weights


class MultiKT(TransferRival):
    """Sources weighted so that the leave-one-out error of the rest is least, ``‖β‖ ≤ τ``.

    ``h(x) = w·x + b + Σ β_j s_j(x)``, where w and b are the ridge regression of ``y - Sβ`` on the
    features. With ``P`` the rows' block of the inverse of that regression's system, the left-out
    prediction is ``y_i - (P(y - Sβ))_i / P_ii``: linear in β. β minimises the hinge loss of it, by
    projected subgradient steps [1]_.

    Parameters
    ----------
    sources : SourcePool or list of (name, source), default=()
    norm : {1, 2}, default=2
        Of β.
    lam : float or "loo", default="loo"
        Penalty of w; ``"loo"`` takes it from 10⁻⁴, ..., 10⁴.
    tau : float or "loo", default="loo"
        Bound on β; ``"loo"`` takes it from 10⁻³, ..., 10³. As the error never rises with τ, the
        smallest τ within 0.001 of the least error is taken.
    class_weight : "balanced", dict or None, default="balanced"

    Attributes
    ----------
    lam_, tau_ : list of float
        Of each target.
    source_weights_, feature_weights_, coef_, intercept_, source_names_, classes_
        And ``n_features_in_``, ``feature_names_in_``: as in `GreedyTLClassifier`.

    References
    ----------
    .. [1] T. Tommasi, F. Orabona, B. Caputo, "Learning Categories from Few Examples with Multi
       Model Knowledge Transfer", IEEE Transactions on Pattern Analysis and Machine Intelligence 36
       (2014) 928-941.

    Examples
    --------
    >>> from holdtrue.datasets import make_sources
    >>> from holdtrue.sources import MultiKT
    >>> data = make_sources(n_sources=20, n_helpful=5, random_state=0)
    >>> MultiKT(data.sources, norm=1).fit(data.X, data.y).score(data.X_test, data.y_test) > 0.8
    True
    """

    def __init__(
        self,
        sources: Any = (),
        *,
        norm: int = 2,
        lam: Any = "loo",
        tau: Any = "loo",
        class_weight: Any = "balanced",
    ):
        super().__init__(sources, class_weight=class_weight)
        self.norm = norm
        self.lam = lam
        self.tau = tau

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not (is_number(self.norm) and self.norm in (1, 2)):
            raise InputError(f"norm must be 1 or 2. Got {shown(self.norm)}.")

    def _fit_target(self, on: Target) -> tuple[Any, ...]:
        candidates, y, weight, one = on
        scores, places = on.source_scores()
        root = np.sqrt(weight)[:, None]
        S, s_mean, s_scale = standardised(scores, weight)
        F, f_mean, f_scale = standardised(on.features(), weight)
        S, F = S / root, F / root
        n = weight.sum()
        lams, taus = self._tried("lam", LAMBDAS), self._tried("tau", TAUS)
        tried = []
        for lam in lams:
            P = rows_inverse(F, weight, lam)
            scaled = y / left_out_scale(P, weight, lam, one)
            offset, slopes = scaled * (P @ y), scaled[:, None] * (P @ S)
            for tau in taus:
                beta, error = least_hinge(offset, slopes, weight / n, tau, self.norm)
                tried.append((error, tau, -lam, beta))
        least = min(error for error, *_ in tried)
        _, tau, lam, beta = min(
            (entry for entry in tried if entry[0] <= least + 1e-3), key=lambda entry: entry[1:3]
        )
        lam = -lam
        rest = y - S @ beta
        dual = rows_inverse(F, weight, lam) @ rest
        w = F.T @ dual
        weights = np.zeros(len(candidates))
        weights[: candidates.n_features] = w / f_scale
        weights[places] += beta / s_scale
        centre = weight @ (rest - F @ w) / n
        intercept = centre - w / f_scale @ f_mean - beta / s_scale @ s_mean
        return float(intercept), weights, lam, tau


class DAM(TransferRival):
    """Ridge regression on the features, drawn towards the sources' opinion.

    ``min (1/m) Σ (f(x_i) - y_i)² + τ/m Σ (f(x_i) - s̄(x_i))² + λ‖w‖²`` with ``s̄ = Σ γ_j s_j``, the
    sources' weighted mean [1]_. Sources are not run at prediction. The original sets γ_j by how
    close a source's *rows* lie to the target's. They are not at hand here, so γ_j falls with the
    source's own squared error d_j, as ``exp(-d_j)``; and the second sum is over the labelled rows.

    Parameters
    ----------
    sources : SourcePool or list of (name, source), default=()
    lam : float or "loo", default="loo"
        Penalty of w; ``"loo"`` takes it from 10⁻⁴, ..., 10⁴.
    tau : float or "loo", default="loo"
        Weight of the sources' opinion; ``"loo"`` takes it from 10⁻³, ..., 10³.
    class_weight : "balanced", dict or None, default="balanced"

    Attributes
    ----------
    lam_, tau_ : list of float
        Of each target.
    source_weights_, feature_weights_, coef_, intercept_, source_names_, classes_
        And ``n_features_in_``, ``feature_names_in_``: as in `GreedyTLClassifier`.

    References
    ----------
    .. [1] L. Duan, I. W. Tsang, D. Xu, T.-S. Chua, "Domain Adaptation from Multiple Sources via
       Auxiliary Classifiers", ICML 2009, 289-296.

    Examples
    --------
    >>> from holdtrue.datasets import make_sources
    >>> from holdtrue.sources import DAM
    >>> data = make_sources(n_sources=20, n_helpful=5, random_state=0)
    >>> model = DAM(data.sources).fit(data.X, data.y)
    >>> model.source_weights_.any(), model.feature_weights_.any()  # it learns from the sources
    (np.False_, np.True_)
    """

    def __init__(
        self,
        sources: Any = (),
        *,
        lam: Any = "loo",
        tau: Any = "loo",
        class_weight: Any = "balanced",
    ):
        super().__init__(sources, class_weight=class_weight)
        self.lam = lam
        self.tau = tau

    def _fit_target(self, on: Target) -> tuple[Any, ...]:
        candidates, y, weight, one = on
        scores, _ = on.source_scores()
        n, root = weight.sum(), np.sqrt(weight)
        S = standardised(scores, weight)[0] / root[:, None]
        distance = weight @ (S - y[:, None]) ** 2 / n
        gamma = np.exp(-(distance - distance.min()))
        opinion = S @ (gamma / gamma.sum())
        F, mean, scale = standardised(on.features(), weight)
        lams, taus = self._tried("lam", LAMBDAS), self._tried("tau", TAUS)

        def blend(tau: float) -> tuple[np.ndarray, float]:
            """The one target that both squares amount to, and its mean."""
            blended = (y + tau * opinion) / (1 + tau)
            centre = float(weight @ blended / n)
            return root * (blended - centre), centre

        errors = {}
        for tau in taus:
            target, centre = blend(tau)
            # Both squares together weigh 1 + τ, so the penalty counts as λ/(1 + τ).
            shrunk = [lam / (1 + tau) for lam in lams]
            left_out = ridge_leave_one_out(F, target, weight, shrunk, one) + centre
            for lam, row in zip(lams, left_out, strict=True):
                errors[lam, tau] = float(weight @ (row - y) ** 2)
        lam, tau = min(itertools.product(lams, taus), key=lambda pair: errors[pair])
        target, centre = blend(tau)
        w = ridge(F, target, n, lam / (1 + tau)) / scale
        weights = np.zeros(len(candidates))
        weights[: candidates.n_features] = w
        return float(centre - w @ mean), weights, lam, tau


class ForwardRegression(TransferRival):
    """Greedy least squares without a penalty: GreedyTL with λ = 0.

    Parameters
    ----------
    sources : SourcePool or list of (name, source), default=()
    max_selected : int, optional
        Most candidates to choose. Default: as many as ``tol`` lets in.
    tol : float, default=1e-4
        A candidate that lowers the error by less, where the target's variance is 1, stays out.
    class_weight : "balanced", dict or None, default="balanced"
    passthrough : bool, default=True
        Whether the columns of X are candidates beside the sources.

    Attributes
    ----------
    source_weights_, feature_weights_, coef_, intercept_, source_names_, classes_
        And ``n_features_in_``, ``feature_names_in_``: as in `GreedyTLClassifier`.

    Examples
    --------
    >>> from holdtrue.datasets import make_sources
    >>> from holdtrue.sources import ForwardRegression
    >>> data = make_sources(random_state=0)
    >>> model = ForwardRegression(data.sources, max_selected=2).fit(data.X, data.y)
    >>> int((model.source_weights_ != 0).sum() + (model.feature_weights_ != 0).sum())
    2
    """

    def __init__(
        self,
        sources: Any = (),
        *,
        max_selected: int | None = None,
        tol: float = 1e-4,
        class_weight: Any = "balanced",
        passthrough: bool = True,
    ):
        super().__init__(sources, class_weight=class_weight)
        self.max_selected = max_selected
        self.tol = tol
        self.passthrough = passthrough

    def _check_parameters(self) -> None:
        check_count("max_selected", self.max_selected, 1, "or None")
        check_number("tol", self.tol)

    def _fit_target(self, on: Target) -> tuple[Any, ...]:
        candidates, y, weight, _ = on
        total = len(candidates)
        most = total if self.max_selected is None else int(self.max_selected)
        search = Search(most, float(self.tol), candidates.matrix(), np.arange(total))
        ((fit, _),) = fit_each(candidates, search, y[None], weight[None], [0.0])
        weights = np.zeros(total)
        intercept, weights[fit.order] = fit.raw()
        return intercept, weights


# --- ridge regression and its left-out predictions in closed form; λ is per row ---


def ridge(Z: np.ndarray, y: np.ndarray, n: float, lam: float) -> np.ndarray:
    """Weights that minimise ``(1/m)‖Zw - y‖² + λ‖w‖²``, through the rows."""
    return Z.T @ np.linalg.solve(Z @ Z.T + n * lam * np.eye(len(y)), y)


def ridge_leave_one_out(
    Z: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    lams: Sequence[float],
    one: np.ndarray | float = 1.0,
) -> np.ndarray:
    """Left-out predictions of ridge regression on all columns of Z, shape (n_lams, n_rows).

    ``y_i - r_i/(1 - w_i/m - h_ii)``: the residual of row i over what the row leaves to the others.
    Exact for columns as they stand; means are fitted anew, scales and selection are not. Z and y
    are standardised. ``one`` is the share of a row to leave out: 1/3 for a row that stands for
    three.
    """
    n = weight.sum()
    values, vectors = np.linalg.eigh(Z @ Z.T)
    values = np.maximum(values, 0)
    image = vectors.T @ y
    predicted = np.empty((len(lams), len(y)))
    for row, lam in enumerate(lams):
        shrink = values / (values + n * lam)
        leverage = weight / n + vectors**2 @ shrink
        residual = y - vectors @ (shrink * image)
        predicted[row] = y - residual / np.maximum(1 - one * leverage, _EPS)
    return predicted / np.sqrt(weight)


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
    penalty = weight.sum() * lam / weight
    return (1 - one * (1 - penalty * P.diagonal())) / penalty


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
