"""The average of a field of models, each weighed by its error at domains that it has not seen.

No model wins everywhere. With ``L`` the mean error of a model over held-out domains, predictions
are averaged with weights proportional to ``L^-power``.

Parts of domains are left out one by one, which gives every model's ``L``, and two by two: a model
fitted without the parts j and k is judged on both. The weights for part k then come from fits that
saw neither k nor the part on which they were judged, so that the average's own error is nested, at
the price of ``1 + P + P(P-1)/2`` fits per model for P parts.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from holdtrue.compare.comparison import (
    SHARE_WRONG,
    SQUARED_ERROR,
    SQUARED_SHARES,
    Comparison,
)
from holdtrue.compare.contest import rows_in_parts
from holdtrue.compare.field import NULL, Rows, features_used, named_models, null_model
from holdtrue.compare.left_out import Judge, fit_without, left_out_outputs, raw_output
from holdtrue.domains.base import ONE_SIDED_ERRORS, SINGLE_ROWS, missing_classes
from holdtrue.domains.bounds import interval_notes, mean_interval
from holdtrue.domains.steady import error_weights
from holdtrue.errors import InputError, caution, shown, speaks
from holdtrue.path import fits_whole
from holdtrue.progress import progress
from holdtrue.row_copies import parts_of
from holdtrue.validation import (
    check_groups,
    check_level,
    check_number,
    class_codes,
    mixed_rows,
    numeric_rows,
    target_rows,
)

__all__ = ["DomainAverageClassifier", "DomainAverageRegressor"]

_N_PARTS = 5
_AVERAGE = "average"  # beside the models' names in `comparison_`

PARAMETERS = """
    Parameters
    ----------
    models : mapping of str to estimator, sequence of str, or None
        The field. None: the models of `holdtrue.compare.default_models`, for tables of numbers;
        a list names some of them.
    power : float, default=6
        Weights are the errors to the power of minus this; 0 weighs all models alike.
    cv : int or splitter, optional
        Parts of the domains (of the rows, without groups) that are left out. Default: 5.
    level : float, default=0.95
        Of the intervals.
    random_state : int, RandomState or None, default=None
        Draws the parts, where they are fewer than the domains or rows; None: the same parts in
        every fit.
    n_jobs : int, optional
        Fits at the same time.
"""

ATTRIBUTES = """
    models_ : dict
        The fitted models, by name.
    weights_ : dict of float
        Weight of each model; they sum to 1.
    comparison_ : Comparison
        Every model, and the average itself as ``"average"``, on the same left-out parts.
    new_domain_score_ : float
        Mean error to expect at a new domain, or on new rows without groups. Nested: the weights
        were chosen without the domain.
    new_domain_interval_ : (float, float)
        Holds the error at *one* new domain at the given level; without groups, the mean error.
    mean_interval_ : (float, float)
        Student's interval of the mean error over domains; without groups, that of new rows.
    n_domains_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        When the columns of X have names.
"""

NOTES = """
    Notes
    -----
    When **not** to use it: to learn which features matter (`TGreedySelector` says), or where a
    prediction must be explained by one formula. With P parts every model is fitted
    ``1 + P + P(P-1)/2`` times.

    ``cross_val_score(..., groups=...)`` alone fits without groups. With
    ``sklearn.set_config(enable_metadata_routing=True)`` pass
    ``model.set_fit_request(groups=True)`` and ``params={"groups": groups}``.
"""


class _DomainAverage(BaseEstimator):
    """What the regressor and the classifier share: the field, its errors and the weights."""

    _is_classes: bool

    def __init__(
        self,
        models: Any = None,
        *,
        power: float = 6,
        cv: Any = None,
        level: float = 0.95,
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.models = models
        self.power = power
        self.cv = cv
        self.level = level
        self.random_state = random_state
        self.n_jobs = n_jobs

    @fits_whole
    def fit(self, X: Any, y: Any, *, groups: Any = None, sample_weight: Any = None) -> Any:
        """Fit the field on all rows, and weigh it by left-out domains.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        groups : array-like of shape (n_samples,), optional
            Domain of each row. Without it new data are new rows.
        sample_weight : array-like of shape (n_samples,), optional
            Weights are repetitions; a row of weight 0 is left out. A domain counts once, whatever
            its weight. Models that do not take weights are refused.

        Returns
        -------
        self : object
        """
        check_number("power", self.power)
        check_level("level", self.level)
        X, y = self._rows(X, y, reset=True)
        labels = None if groups is None else check_groups(groups, len(y))
        every = Rows(X, y, labels, sample_weight)
        used = every.of_positive_weight().y
        if len(used) < 2:
            raise InputError(f"needs at least 2 rows. Got {len(used)} sample.")
        if self._is_classes:
            class_codes(used)  # refused before parts are drawn by class
        rows, part_of_row = self._parts(every)
        rows = replace(rows, unit=rows.domains)
        # What the models' outputs are compared with: y, or one column of 0 and 1 per class.
        classes = None
        if self._is_classes:
            self.classes_, codes = class_codes(rows.y)
            classes, targets = self.classes_, np.eye(len(self.classes_))[codes]
        else:
            targets = rows.y.astype(np.float64)[:, None]
        field = named_models(self.models, is_classes=self._is_classes)
        if _AVERAGE in field:
            raise InputError(f"{_AVERAGE!r} is the name of the average itself. Rename that model.")
        field = {**field, NULL: null_model(is_classes=self._is_classes)}
        parts = range(int(part_of_row.max()) + 1)
        left_out: list[tuple[int, ...]] = [(), *((k,) for k in parts)]
        if len(parts) > 2:  # of two parts nothing would be left
            left_out += combinations(parts, 2)
        jobs = [(name, out) for out in left_out for name in field]
        done = Parallel(n_jobs=self.n_jobs, return_as="generator")(
            delayed(fit_without)(out, name, field[name], rows, part_of_row, classes)
            for name, out in jobs
        )
        done = progress("models without parts of the domains", done, len(jobs))
        fits: dict[Any, Any] = dict(zip(jobs, done, strict=True))
        judge = Judge(rows, targets)
        names = list(field)[:-1]  # without the null
        self.models_ = {name: fits[name, ()].model for name in names}
        self._calibrations = {}
        predicted, errors, inner = {}, {}, np.empty((len(parts), len(field)))
        for m, name in enumerate(field):
            held_out = left_out_outputs(fits, name, part_of_row)
            without = [left_out_outputs(fits, name, part_of_row, without=k) for k in parts]
            self._calibrations[name] = judge.calibration(held_out)
            predicted[name] = judge.left_out_shares(held_out, part_of_row, without=without)
            errors[name] = judge.unit_errors(predicted[name])
            for k in parts:
                others = part_of_row != k
                shares = judge.left_out_shares(without[k], part_of_row[others], others)
                inner[k, m] = judge.mean(judge.unit_errors(shares, others))
        weights = error_weights(np.array([judge.mean(errors[name]) for name in names]), self.power)
        self.weights_ = dict(zip(names, weights.tolist(), strict=True))
        nested = np.zeros_like(targets)
        for k in parts:
            at = part_of_row == k
            inner_weights = error_weights(inner[k, :-1], self.power)
            for name, weight in zip(names, inner_weights, strict=True):
                nested[at] += weight * predicted[name][at]
        predicted[_AVERAGE] = nested
        errors[_AVERAGE] = judge.unit_errors(nested)
        total = judge.unit_weights.sum()
        self.n_domains_ = int(total) if total == int(total) else float(total)
        self._keep_scores(errors, fits, names, judge, len(parts))
        if self._is_classes:
            wrong = {name: judge.shares_wrong(shares) for name, shares in predicted.items()}
            self.share_wrong_ = replace(
                self.comparison_,
                errors=np.array([wrong[name] for name in self.comparison_.names]),
                null=wrong[NULL],
                scoring=SHARE_WRONG,
            )
        return self

    def _parts(self, every: Rows) -> tuple[Rows, np.ndarray]:
        """The rows of positive weight, and the part of each: whole domains, or rows."""
        rows, parts = rows_in_parts(
            every,
            self.cv,
            is_classes=self._is_classes,
            random_state=0 if self.random_state is None else self.random_state,
            n_parts=_N_PARTS,
            who=type(self).__name__,
        )
        n = len(rows.y)
        if len(parts) < 2:
            raise InputError(f"cv must leave out at least 2 parts. Got {len(parts)}.")
        times = np.bincount(np.concatenate([test for _, test in parts]), minlength=n)
        if (times != 1).any():
            row = int(np.argmax(times != 1))
            raise InputError(
                f"cv must leave out every row exactly once. Got row {row} left out {times[row]} "
                "times. Pass a number of parts, or a splitter such as KFold or GroupKFold."
            )
        return rows, parts_of(parts, n)

    def _keep_scores(
        self,
        errors: dict[str, np.ndarray],
        fits: dict[Any, Any],
        names: list[str],
        judge: Judge,
        n_parts: int,
    ) -> None:
        labels = judge.rows.groups
        entrants = [*names, _AVERAGE]
        alone = {name: fits[name, ()] for name in names}
        n_features = [features_used(fit.model, judge.rows.n_columns) for fit in alone.values()]
        self.comparison_ = Comparison(
            names=tuple(entrants),
            errors=np.array([errors[name] for name in entrants]),
            null=errors[NULL],
            units=() if labels is None else tuple(str(label) for label in np.unique(labels)),
            n_features=np.array([*n_features, max(n_features)], dtype=float),
            seconds=np.array(
                [fit.seconds for fit in alone.values()]
                + [sum(fit.seconds for fit in fits.values())]
            ),
            scoring=SQUARED_SHARES if self._is_classes else SQUARED_ERROR,
            level=float(self.level),
            unit_weights=judge.unit_weights if labels is None else None,
        )
        average = errors[_AVERAGE]
        self.new_domain_score_ = judge.mean(average)
        self.new_domain_interval_ = self.comparison_.interval(_AVERAGE)
        self.mean_interval_ = self.new_domain_interval_
        if labels is not None:
            self.mean_interval_ = mean_interval(average, self.level)
            empty = judge.mean(errors[NULL])
            for note in [*self._notes(empty, judge, n_parts), *interval_notes(average, empty)]:
                caution(f"{type(self).__name__}: {note}")

    def _notes(self, empty: float, judge: Judge, n_parts: int) -> list[str]:
        """What a reader of ``new_domain_score_`` must know, in sentences."""
        labels: Any = judge.rows.groups
        notes = [SINGLE_ROWS] if self.n_domains_ == len(labels) else []
        if self._is_classes:
            n_rows = np.bincount(judge.rows.unit)
            shares = np.array([np.bincount(judge.rows.unit, rows) for rows in judge.targets.T])
            notes += missing_classes(
                shares.T / n_rows[:, None],
                n_rows,
                np.unique(labels),
                self.classes_,
                ONE_SIDED_ERRORS,
            )
        if n_parts == 2:
            notes.append(
                "with 2 parts of the domains new_domain_score_ is not nested: the weights were "
                "chosen with the help of the domain that is judged. A nested score needs 3."
            )
        if self.new_domain_score_ > empty:
            without = "the shares of all rows" if self._is_classes else "the mean"
            notes.append(
                f"the error expected at a new domain, {self.new_domain_score_:.3g}, is not below "
                f"that of predicting {without}, {empty:.3g}. Nothing in X holds there."
            )
        return notes

    def _averaged(self, X: Any) -> np.ndarray:
        """Weighted mean of the models' outputs, shape (n_rows, n_outputs)."""
        check_is_fitted(self, "weights_")
        X = self._rows(X, reset=False)
        total: Any = 0.0
        for name, model in self.models_.items():
            if self.weights_[name] > 0:
                output = raw_output(name, model, X, getattr(self, "classes_", None))
                if (calibration := self._calibrations[name]) is not None:
                    output = calibration.predict_proba(output)
                total = total + self.weights_[name] * output
        return np.asarray(total)

    def _rows(self, X: Any, y: Any = None, *, reset: bool) -> Any:
        """X, or X and y at fit, as numbers; a frame as it is if the caller brought models."""
        y_numeric = not self._is_classes
        if self.models is None or not hasattr(X, "columns"):
            return numeric_rows(self, X, y, reset=reset, y_numeric=y_numeric)
        X = mixed_rows(self, X, reset=reset)
        if not reset:
            return X
        y = target_rows(y)
        check_consistent_length(X, y)
        if y_numeric and isinstance(y[0], str):
            raise InputError(f"expected numbers in y. Got the text {shown(y[0])}. Encode it.")
        return X, check_array(y, ensure_2d=False, dtype="numeric") if y_numeric else y


class DomainAverageRegressor(RegressorMixin, _DomainAverage):
    __doc__ = f"""Average of regressors, weighed by their error at domains they have not seen.

    Answers *what shall I deploy at the next hospital, user or year?* where no single model is
    clearly best.
{PARAMETERS}
    Attributes
    ----------{ATTRIBUTES}
    See Also
    --------
    compare_models : The contest alone.
    SteadyRidgeRegressor : One linear model, much cheaper.
{NOTES}
    Examples
    --------
    >>> from sklearn.linear_model import RidgeCV
    >>> from holdtrue import DomainAverageRegressor, TGreedyRegressor
    >>> from holdtrue.datasets import make_domains
    >>> data = make_domains(n_domains=8, random_state=0)
    >>> models = {{"ridge": RidgeCV(), "t_greedy": TGreedyRegressor()}}
    >>> model = DomainAverageRegressor(models).fit(data.X, data.y, groups=data.groups)
    >>> model.weights_["t_greedy"] > 0.5
    True
    """

    _is_classes = False

    @speaks
    def predict(self, X: Any) -> np.ndarray:
        """Averaged predictions, shape (n_samples,)."""
        return self._averaged(X)[:, 0]


class DomainAverageClassifier(ClassifierMixin, _DomainAverage):
    __doc__ = f"""Average of classifiers, weighed by their error at domains they have not seen.

    The shares of the classes are averaged. Models without ``predict_proba`` are calibrated on
    left-out decisions. The error is the squared error of the shares (Brier's).
{PARAMETERS}
    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    share_wrong_ : Comparison
        As ``comparison_``, by the share of rows whose class is not the likeliest.{ATTRIBUTES}
    See Also
    --------
    compare_models : The contest alone.
    SteadyRidgeClassifier : One linear model, much cheaper.
{NOTES}
    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from holdtrue import DomainAverageClassifier, TGreedyClassifier
    >>> from holdtrue.datasets import make_domains
    >>> data = make_domains(n_domains=8, random_state=0)
    >>> models = {{"logistic": LogisticRegression(), "t_greedy": TGreedyClassifier()}}
    >>> model = DomainAverageClassifier(models).fit(data.X, data.y > 0, groups=data.groups)
    >>> model.predict_proba(data.X[:2]).shape
    (2, 2)
    """

    _is_classes = True

    @speaks
    def predict_proba(self, X: Any) -> np.ndarray:
        """Averaged shares of the classes, shape (n_samples, n_classes)."""
        return self._averaged(X)

    @speaks
    def predict(self, X: Any) -> np.ndarray:
        """Classes with the largest averaged share, shape (n_samples,)."""
        shares = self._averaged(X)
        return self.classes_[shares.argmax(axis=1)]
