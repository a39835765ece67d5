"""SteadyRidgeRegressor, SteadyRidgeClassifier: prediction at domains nobody has seen."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse

from holdtrue.domains import steady
from holdtrue.domains.base import (
    ONE_SIDED_ERRORS,
    SINGLE_ROWS,
    DomainEstimator,
    PredictsClasses,
    PredictsNumbers,
    check_domain_count,
    check_moments,
    class_shares,
    coded_targets,
    dense_rows,
    missing_classes,
    working_memory,
)
from holdtrue.domains.bounds import interval_notes, mean_interval, new_domain_interval
from holdtrue.domains.choose import MAX_SINGLE, N_PARTS, held_out_parts
from holdtrue.domains.steady import PENALTIES
from holdtrue.errors import InputError, caution, shown
from holdtrue.evidence import PenaltyEvidence
from holdtrue.path import SelectionPath, fits_whole
from holdtrue.row_copies import dealt_rows, row_copies
from holdtrue.sums import Moments
from holdtrue.validation import check_level, check_magnitude

_NESTED_FROM = 4  # domains: two are left out, and two must be left to differ

PARAMETERS = """
    Effects at domain d are ``w + u_d`` [1]_: w is common to all domains, u_d varies between them.
    w is estimated by generalised least squares with a ridge, from each domain's moments alone. How
    much intercepts and slopes vary (nine *spreads*), and the ridge penalty, are chosen by domains
    that were held out: each spread at its best penalty, the spreads averaged with weights
    ``L**-12``, L being the mean squared error over held-out domains. All features are used.

    Parameters
    ----------
    fit_intercept : bool, default=True
        False: nothing is centred, and domains differ in their slopes only.
    level : float, default=0.95
        Of the intervals.
    n_jobs : int, optional
        Threads, of which at most 3 are used.
"""

ATTRIBUTES = """
    path_ : SelectionPath
        Penalties as they enter the choice, the largest first; ``scores[k]`` is the mean squared
        error over held-out domains of the predictor that may choose from the null and the k largest
        penalties, ``scores[0]`` that of the null, a mean of y. ``chosen_size`` is the number of
        penalties after which nothing changes: the predictor. A penalty is in units of the mean
        eigenvalue of the equations of standardised features.
    candidates_ : dict of ndarray
        One entry per spread and penalty: ``intercept_spread`` (inf: slopes from within domains, or
        no intercept) and ``slope_spread``, variances in units of the noise's over the rows of a
        domain; ``penalty`` (inf: the null); ``score``, the mean squared error over held-out
        domains; ``weight``.
    held_out_scores_ : ndarray of shape (n_penalties + 1, n_domains)
        Errors along the path at each domain, fitted without it. Without groups: at each part of the
        rows.
    n_domains_ : int or float
        How many domains were seen; without groups, the rows or the sum of their weights.
    domains_ : ndarray of shape (n_domains,)
        Their labels. This and all that follow: only with groups.
    domain_effects_ : ndarray of shape (n_features, n_domains) or (n_classes, ...)
        ``w + u_d``: the coefficients that each domain seems to have, drawn towards the common ones.
    new_domain_errors_ : ndarray of shape (n_domains,)
        Squared error at each domain, of a fit without it; their mean is the next.
    new_domain_score_ : float
        Mean squared error to expect at a new domain: spreads and penalty chosen anew without each
        domain in turn (more than 20: without each of 10 parts). With 2 or 3 domains they cannot be
        chosen anew, and the error is somewhat too low; a warning says so.
    new_domain_interval_ : (float, float)
        Holds the error at *one* new domain with probability ``level``.
    mean_interval_ : (float, float)
        Student's interval of the mean error over domains.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        When the columns of X have names.
"""

NOTES = """
    Notes
    -----
    When **not** to use it: when few features must do, or when it matters which of them hold, take
    `TGreedySelector`. When the next rows come from the same domains as these, a model with the
    domain as a feature knows more. Effects that bend or interact are beyond a linear model: compare
    it with boosting on held-out domains. It keeps the second moments of all features at each
    domain: with more than a few thousand columns select some first.

    Without ``groups`` new data are new rows: plain ridge, its penalty chosen by parts of the rows.
    ``cross_val_score(..., groups=...)`` alone fits without groups. With
    ``sklearn.set_config(enable_metadata_routing=True)`` pass
    ``model.set_fit_request(groups=True)`` and ``params={"groups": groups}``.

    References
    ----------
    .. [1] P. Swamy, "Efficient inference in a random coefficient regression model", Econometrica 38
       (1970).
"""


class SteadyRidgeBase(DomainEstimator):
    """What the regressor and the classifier share: parameters, checks and the fit."""

    def __init__(
        self, *, fit_intercept: bool = True, level: float = 0.95, n_jobs: int | None = None
    ):
        self.fit_intercept = fit_intercept
        self.level = level
        self.n_jobs = n_jobs

    @fits_whole
    def fit(self, X: Any, y: Any, *, groups: Any = None, sample_weight: Any = None) -> Any:
        """Choose spreads and penalty by held-out domains, and fit.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        groups : array-like of shape (n_samples,), optional
            Domain of each row. Without it new data are new rows.
        sample_weight : array-like of shape (n_samples,), optional
            Weights are repetitions.

        Returns
        -------
        self : object
        """
        return self._fit_rows(X, y, groups, sample_weight)

    def _fit_rows(
        self, X: Any, y: Any, groups: Any, sample_weight: Any, *, nested: bool = True
    ) -> Any:
        check_level("level", self.level)
        numeric = self._reads_numbers(y, sample_weight)
        X, y, labels, weight = self._checked_rows(X, y, groups, sample_weight, y_numeric=numeric)
        _check_columns_fit(X, getattr(self, "feature_names_in_", None))
        classes, targets = coded_targets(y, numeric=numeric)
        if numeric:
            check_magnitude("y", targets, power=4)  # intervals square the error
        grouped, single, part = labels is not None, False, labels
        if labels is not None:
            domains = np.unique(labels)
            check_domain_count(domains)
            _check_memory(len(domains), X.shape[1])
            single = len(domains) == len(y)
        else:
            _check_memory(N_PARTS, X.shape[1])
            X, targets, weight, part = _dealt(X, targets, weight)
        moments = Moments.from_arrays(
            X,
            targets,
            groups=part,
            sample_weight=weight,
            feature_names=getattr(self, "feature_names_in_", None),
        )
        return self._fit_sums(moments, classes, grouped=grouped, single_rows=single, nested=nested)

    @fits_whole
    def fit_statistics(self, moments: Moments, *, classes: Any = None) -> Any:
        """Fit from sums: what `fit` with groups does once it has summed the rows.

        Parameters
        ----------
        moments : Moments
            One entry per domain, with the target. Classes are coded +1 and -1: one target for two
            classes (+1 is the second), else one per class (+1 is the class).
        classes : array-like, optional
            The classes' names, sorted. Default: -1 and 1, or 0, 1, ... Not for a regressor.

        Returns
        -------
        self : object
        """
        check_level("level", self.level)
        check_moments(moments)
        _check_memory(len(moments.domains), moments.n_features)
        classes = self._given_classes(classes, np.asarray(moments.mean_y)[0].size)
        self._keep_columns(moments)
        return self._fit_sums(moments, classes, grouped=True)

    def _fit_sums(
        self,
        moments: Moments,
        classes: np.ndarray | None,
        *,
        grouped: bool,
        single_rows: bool = False,
        nested: bool = True,
    ) -> Any:
        """The fit, wherever the sums come from: candidates, their average, what it is worth.

        ``grouped``: whether the sums are those of domains, not of parts of the rows;
        ``single_rows``: whether every domain has a single row; ``nested``: whether the errors at
        new domains shall be.
        """
        sums = steady.standardised(moments, centre=bool(self.fit_intercept))
        n_domains = len(sums.n_samples)
        intercepts, slopes = _spreads(bool(self.fit_intercept), grouped)
        spreads = [(A, R) for R in slopes for A in intercepts]
        part_of = held_out_parts(n_domains)
        weight = np.ones(n_domains) if grouped else sums.n_samples
        nested = nested and grouped and n_domains >= _NESTED_FROM
        by_slope = Parallel(n_jobs=self.n_jobs, prefer="threads")(
            delayed(steady.held_out_fits)(sums, part_of, weight, intercepts, R, nested=nested)
            for R in slopes
        )
        fits = [fit for of_slope in by_slope for fit in of_slope]
        fit = steady.combined(sums, part_of, weight, fits)
        if classes is not None:
            self.classes_ = classes
        self._keep_path(fit, spreads, weight, int(part_of.max()) + 1, grouped=grouped)
        coef = sums.back @ fit.coef
        self._keep_coefficients(coef.T, fit.intercept + sums.centre_y - sums.centre_x @ coef)
        if not grouped:
            total = float(sums.n_samples.sum())
            self.n_domains_ = int(total) if total == int(total) else total
            return self
        self.n_domains_ = n_domains
        self.domains_ = check_moments(moments)
        slopes_at = steady.domain_slopes(sums, spreads, fits, fit.weights)
        effects = np.einsum("jq,dqk->kjd", sums.back, slopes_at)
        self.domain_effects_ = effects[0] if len(effects) == 1 else effects
        empty = float(fit.curve[0].mean())
        errors = self.new_domain_errors_ = fit.new_errors
        self.new_domain_score_ = float(errors.mean())
        self.new_domain_interval_ = new_domain_interval(errors, self.level, empty)
        self.mean_interval_ = mean_interval(errors, self.level)
        notes = self._notes(empty, is_nested=fit.nested is not None, single_rows=single_rows)
        if classes is not None:
            shares = class_shares(np.asarray(moments.mean_y).reshape(n_domains, -1))
            notes += missing_classes(
                shares, moments.n_samples, self.domains_, classes, ONE_SIDED_ERRORS
            )
        for note in notes:
            caution(f"{type(self).__name__}: {note}")
        return self

    def _keep_path(
        self,
        fit: steady.SteadyFit,
        spreads: list[tuple[float, float]],
        weight: np.ndarray,
        n_parts: int,
        *,
        grouped: bool,
    ) -> None:
        """The path over the penalty, and the table of candidates."""
        penalties = np.concatenate([[math.inf], PENALTIES])
        share = weight / weight.sum()
        size = int(np.flatnonzero(fit.weights.any(axis=0)).max())
        unit = "domains" if grouped else "rows"
        held = "each of" if grouped and n_parts == len(weight) else f"{n_parts} parts of"
        n = len(weight) if grouped else f"{weight.sum():g}"
        spread, penalty = np.unravel_index(np.argmax(fit.weights), fit.weights.shape)
        best = f"penalty {penalties[penalty]:.2g}" if penalty else "no feature at all"
        A, R = spreads[spread]
        main = f"largest weight: {best}"
        if len(spreads) > 1:
            main += f", spread of slopes {R:g}"
            if self.fit_intercept:
                within = "slopes from within domains" if math.isinf(A) else f"of intercepts {A:g}"
                main += f", {within}"
        spread_of_intercepts, spread_of_slopes, penalty_of = np.array(
            [(A, R, value) for A, R in spreads for value in penalties]
        ).T
        evidence = PenaltyEvidence(
            intercept_spreads=spread_of_intercepts,
            slope_spreads=spread_of_slopes,
            penalties=penalty_of,
            scores=fit.losses.ravel(),
            weights=fit.weights.ravel(),
            new_errors=fit.new_errors if grouped else np.empty(0),
        )
        self.candidates_ = {
            "intercept_spread": evidence.intercept_spreads,
            "slope_spread": evidence.slope_spreads,
            "penalty": evidence.penalties,
            "score": evidence.scores,
            "weight": evidence.weights,
        }
        self.held_out_scores_ = fit.curve
        self.path_ = SelectionPath(
            order=np.arange(len(PENALTIES)),
            names=[f"penalty {value:.2g}" for value in PENALTIES],
            scores=fit.curve @ share,
            chosen_size=size,
            reason=f"no smaller penalty lowers the error on held-out {unit}, holding out {held} "
            f"{n}; {main}",
            unit="mean squared error",
            train_scores=fit.train @ share,
            evidence=evidence,
        )

    def _notes(self, empty: float, *, is_nested: bool, single_rows: bool) -> list[str]:
        """What a reader of ``new_domain_score_`` must know, in sentences."""
        notes = []
        if single_rows:
            notes.append(SINGLE_ROWS)
        if not is_nested:
            notes.append(
                f"with {self.n_domains_} domains new_domain_score_ is not nested, because spreads "
                "and penalty were chosen with the help of the domain that is judged, and may be "
                f"too low. A nested score needs {_NESTED_FROM} domains."
            )
        notes += interval_notes(self.new_domain_errors_, empty)
        if self.new_domain_score_ > empty:
            notes.append(
                f"the squared error to expect at a new domain, {self.new_domain_score_:.4g}, "
                f"exceeds that of predicting {'the mean' if self.fit_intercept else '0'}, "
                f"{empty:.4g}. These features do not predict y there."
            )
        return notes


class SteadyRidgeRegressor(PredictsNumbers, SteadyRidgeBase):
    __doc__ = f"""Ridge regression for new domains: hospitals, users, years not seen yet.
{PARAMETERS}
    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float{ATTRIBUTES}
    See Also
    --------
    TGreedyRegressor : Few features, with evidence that each of them holds.
    sklearn.linear_model.RidgeCV : Every row counts alike, wherever it comes from.
{NOTES}
    Examples
    --------
    >>> from holdtrue import SteadyRidgeRegressor
    >>> from holdtrue.datasets import make_domains
    >>> data = make_domains(n_domains=8, random_state=0)
    >>> model = SteadyRidgeRegressor().fit(data.X, data.y, groups=data.groups)
    >>> bool(model.new_domain_score_ < model.path_.scores[0])
    True
    >>> low, high = model.new_domain_interval_
    >>> bool(low < model.new_domain_score_ < high)
    True
    """


class SteadyRidgeClassifier(PredictsClasses, SteadyRidgeBase):
    __doc__ = f"""Ridge classifier for new domains: hospitals, users, years not seen yet.

    Least squares on classes coded +1 and -1; several classes each against the rest, with spreads
    and penalty in common. Scores are squared errors of this coding.
{PARAMETERS}
    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,){ATTRIBUTES}
    See Also
    --------
    TGreedyClassifier : Few features, with evidence that each of them holds.
    sklearn.calibration.CalibratedClassifierCV : Probabilities, which this class does not claim.
{NOTES}
    Examples
    --------
    >>> from holdtrue import SteadyRidgeClassifier
    >>> from holdtrue.datasets import make_domains
    >>> data = make_domains(n_domains=8, random_state=0)
    >>> model = SteadyRidgeClassifier().fit(data.X, data.y > 0, groups=data.groups)
    >>> model.classes_.tolist(), model.domain_effects_.shape
    ([False, True], (40, 8))
    """


def _spreads(fit_intercept: bool, grouped: bool) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Spreads of intercepts and of slopes to choose from."""
    if not fit_intercept:  # nothing is centred, within domains either
        return (math.inf,), steady.SLOPE_SPREADS if grouped else (0.0,)
    if not grouped:
        return (0.0,), (0.0,)
    return steady.INTERCEPT_SPREADS, steady.SLOPE_SPREADS


def _check_columns_fit(X: Any, names: Any) -> None:
    """Refuse a column whose squares leave the range of float64."""
    ends = [X.max(axis=0), X.min(axis=0)]
    check_magnitude(
        lambda column: f"column {shown(column if names is None else names[column])}",
        np.array([end.toarray().ravel() if sparse.issparse(end) else end for end in ends], float),
    )


def _check_memory(n_domains: int, n_features: int) -> None:
    """Refuse moments that the machine cannot hold, where it says what it can."""
    if not hasattr(os, "sysconf"):
        return
    available = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    # The moments, the same standardised, and the equations of three spreads by part.
    matrices = 2 * n_domains + 4 * min(n_domains, MAX_SINGLE) + 4
    needed = 8 * n_features**2 * matrices
    if needed > available:
        raise InputError(
            f"second moments of {n_features} columns in {n_domains} domains need about "
            f"{needed / 2**30:.0f} GiB, and this machine has {available / 2**30:.0f}. Select "
            "columns first, for example with TGreedySelector, or merge domains."
        )


def _dealt(
    X: Any, targets: np.ndarray, weight: np.ndarray
) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """Rows, targets, weights and parts: without groups, copies of a row are held out by turns."""
    values = dense_rows(X, working_memory())
    if (values == values[0]).all() and (targets == targets[0]).all():
        raise InputError(
            f"without groups some rows are held out, which needs at least 2 different "
            f"rows. Got {len(values)} equal rows."
        )
    copies = row_copies(values, targets, weight)
    rows, part, weight = dealt_rows(copies, held_out_parts(len(copies)), weight)
    if len(rows) > len(values):  # else all rows in their order
        X, targets = X[rows], targets[rows]
    return X, targets, weight, part
