"""The average of a field of models, each weighed by its error at domains that it has not seen.

No model wins everywhere. With ``L`` the mean error of a model over held-out domains, predictions
are averaged with weights proportional to ``L^-power``.

Parts of domains are left out one by one, which gives every model's ``L``, and two by two: a model
fitted without the parts j and k is judged on both. The weights for part k then come from fits that
saw neither k nor the part on which they were judged, so that the average's own error is nested, at
the price of ``1 + P + P(P-1)/2`` fits per model for P parts.
"""

from __future__ import annotations

import time
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils import _safe_indexing, check_array, check_consistent_length
from sklearn.utils.validation import check_is_fitted

from holdtrue.compare.comparison import Comparison
from holdtrue.compare.contest import held_out_parts
from holdtrue.compare.field import NULL, features_used, fit_with_groups, named_models, null_model
from holdtrue.domains.base import SINGLE_ROWS
from holdtrue.domains.bounds import mean_interval, new_domain_interval
from holdtrue.errors import InputError, caution, shown, speaks
from holdtrue.path import fits_whole
from holdtrue.progress import progress_bar
from holdtrue.validation import (
    check_groups,
    check_level,
    class_codes,
    is_number,
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
        Student's interval of the mean error over domains; the same without groups.
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
    def fit(self, X: Any, y: Any, *, groups: Any = None) -> Any:
        """Fit the field on all rows, and weigh it by left-out domains.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        groups : array-like of shape (n_samples,), optional
            Domain of each row. Without it new data are new rows.

        Returns
        -------
        self : object
        """
        if not (is_number(self.power) and self.power >= 0):
            raise InputError(f"power must be a number of at least 0. Got {shown(self.power)}.")
        check_level("level", self.level)
        X, y = self._rows(X, y, reset=True)
        n_rows = len(y)
        if n_rows < 2:
            raise InputError(f"needs at least 2 rows. Got {n_rows} sample.")
        labels = None if groups is None else check_groups(groups, n_rows)
        # What the models' outputs are compared with: y, or one column of 0 and 1 per class.
        if self._is_classes:
            self.classes_, codes = class_codes(y)
            targets = np.eye(len(self.classes_))[codes]
        else:
            targets = y.astype(np.float64)[:, None]
        field = named_models(self.models, is_classes=self._is_classes)
        if _AVERAGE in field:
            raise InputError(f"{_AVERAGE!r} is the name of the average itself. Rename that model.")
        field = {**field, NULL: null_model(is_classes=self._is_classes)}
        n_units = n_rows if labels is None else len(np.unique(labels))
        wanted = min(_N_PARTS, n_units) if self.cv is None else self.cv
        draw = 0 if self.random_state is None else self.random_state
        parts = held_out_parts(labels, y, wanted, is_classes=self._is_classes, random_state=draw)
        if len(parts) < 2:
            raise InputError(f"cv must leave out at least 2 parts. Got {len(parts)}.")
        times = np.bincount(np.concatenate([test for _, test in parts]), minlength=n_rows)
        if (times != 1).any():
            row = int(np.argmax(times != 1))
            raise InputError(
                f"cv must leave out every row exactly once. Got row {row} left out {times[row]} "
                "times. Pass a number of parts, or a splitter such as KFold or GroupKFold."
            )
        part_of_row = np.full(n_rows, -1)
        for k, (_, test) in enumerate(parts):
            part_of_row[test] = k
        classes = getattr(self, "classes_", None)
        each = range(len(parts))
        left_out: list[tuple[int, ...]] = [(), *((k,) for k in each)]
        if len(parts) > 2:  # of two parts nothing would be left
            left_out += combinations(each, 2)
        jobs = [(name, out) for out in left_out for name in field]
        fits: dict[Any, Any] = {}
        with progress_bar("models without parts of the domains", len(jobs)) as tick:
            done = Parallel(n_jobs=self.n_jobs, return_as="generator")(
                delayed(_fitted)(name, field[name], X, y, labels, part_of_row, out, classes)
                for name, out in jobs
            )
            for job, fit in zip(jobs, done, strict=True):
                fits[job] = fit
                tick()
        units = np.arange(n_rows) if labels is None else np.unique(labels, return_inverse=True)[1]
        names = [name for name in field if name != NULL]
        self.models_ = {name: fits[name, ()].model for name in names}
        self._calibrations = {}
        predicted, errors, inner = {}, {}, {}
        for name in field:
            held_out = _assembled([fits[name, (k,)].outputs[k] for k in range(len(parts))], parts)
            calibration = self._calibrations[name] = _calibration(held_out, targets)
            predicted[name] = calibration(held_out)
            errors[name] = _unit_errors(targets, predicted[name], units)
            inner[name] = [
                _inner_error(fits, name, k, parts, targets, units, calibration)
                for k in range(len(parts))
            ]
        weights = self._weights([errors[name].mean() for name in names])
        self.weights_ = dict(zip(names, weights.tolist(), strict=True))
        nested = np.zeros_like(targets)
        for k, (_, test) in enumerate(parts):
            for name, weight in zip(
                names, self._weights([inner[name][k] for name in names]), strict=True
            ):
                nested[test] += weight * predicted[name][test]
        errors[_AVERAGE] = _unit_errors(targets, nested, units)
        self.n_domains_ = n_units
        self._keep_scores(errors, fits, names, labels, len(parts))
        return self

    def _weights(self, errors: list[float]) -> np.ndarray:
        """Weights of the models from their errors, summing to 1; a perfect model takes all."""
        losses = np.array(errors)
        if losses.min() <= 0:
            weights = (losses <= 0).astype(np.float64)
        else:
            weights = (losses.min() / losses) ** self.power
        return weights / weights.sum()

    def _keep_scores(
        self,
        errors: dict[str, np.ndarray],
        fits: dict[Any, Any],
        names: list[str],
        labels: np.ndarray | None,
        n_parts: int,
    ) -> None:
        entrants = [*names, _AVERAGE]
        alone = {name: fits[name, ()] for name in names}
        self.comparison_ = Comparison(
            names=tuple(entrants),
            errors=np.array([errors[name] for name in entrants]),
            null=errors[NULL],
            units=() if labels is None else tuple(str(label) for label in np.unique(labels)),
            n_features=np.array(
                [features_used(alone[name].model) for name in names]
                + [max(features_used(fit.model) for fit in alone.values())],
                dtype=float,
            ),
            seconds=np.array(
                [fit.seconds for fit in alone.values()]
                + [sum(fit.seconds for fit in fits.values())]
            ),
            scoring="squared error of shares" if self._is_classes else "mean squared error",
            level=float(self.level),
        )
        average = errors[_AVERAGE]
        self.new_domain_score_ = float(average.mean())
        self.mean_interval_ = mean_interval(average, self.level)
        self.new_domain_interval_ = self.mean_interval_
        if labels is not None:
            self.new_domain_interval_ = new_domain_interval(
                average, self.level, float(errors[NULL].mean())
            )
            for note in self._notes(float(errors[NULL].mean()), len(labels), n_parts):
                caution(f"{type(self).__name__}: {note}")

    def _notes(self, empty: float, n_rows: int, n_parts: int) -> list[str]:
        """What a reader of ``new_domain_score_`` must know, in sentences."""
        notes = [SINGLE_ROWS] if self.n_domains_ == n_rows else []
        if n_parts == 2:
            notes.append(
                "with 2 parts of the domains new_domain_score_ is not nested: the weights were "
                "chosen with the help of the domain that is judged. A nested score needs 3."
            )
        if self.new_domain_score_ > empty:
            notes.append(
                f"the error expected at a new domain, {self.new_domain_score_:.3g}, exceeds that "
                f"of predicting the mean, {empty:.3g}. Nothing in X holds there."
            )
        return notes

    def _averaged(self, X: Any) -> np.ndarray:
        """Weighted mean of the models' outputs, shape (n_rows, n_outputs)."""
        check_is_fitted(self, "weights_")
        X = self._rows(X, reset=False)
        total: Any = 0.0
        for name, model in self.models_.items():
            if self.weights_[name] > 0:
                output = _raw_output(model, X, getattr(self, "classes_", None))
                total = total + self.weights_[name] * self._calibrations[name](output)
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
    classes_ : ndarray of shape (n_classes,){ATTRIBUTES}
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


# --- fits without parts, and what they say about them -------------------------------------------


class _Fit(NamedTuple):
    """A model fitted without some parts; the model itself is kept where none is left out."""

    model: Any
    seconds: float
    outputs: dict[int, np.ndarray]


def _fitted(
    name: str,
    model: Any,
    X: Any,
    y: np.ndarray,
    groups: np.ndarray | None,
    part_of_row: np.ndarray,
    left_out: tuple[int, ...],
    classes: np.ndarray | None,
) -> _Fit:
    rows = np.flatnonzero(~np.isin(part_of_row, left_out))
    if classes is not None and (y[rows] == y[rows[0]]).all():
        # One class is left, which few models fit: it is what they would predict.
        sizes = {k: int((part_of_row == k).sum()) for k in left_out}
        place = int(np.searchsorted(classes, y[rows[0]]))
        return _Fit(None, 0.0, {k: _sure(model, n, place, len(classes)) for k, n in sizes.items()})
    start = time.perf_counter()
    given = None if groups is None else groups[rows]
    fitted = fit_with_groups(model, _safe_indexing(X, rows), y[rows], given, name)
    seconds = time.perf_counter() - start
    outputs = {
        k: _raw_output(fitted, _safe_indexing(X, np.flatnonzero(part_of_row == k)), classes)
        for k in left_out
    }
    return _Fit(None if left_out else fitted, seconds, outputs)


def _sure(model: Any, n_rows: int, place: int, n_classes: int) -> np.ndarray:
    """Output of a model that knows one class, in the form of `_raw_output`."""
    has_shares = hasattr(model, "predict_proba")
    if n_classes == 2 and not has_shares:
        return np.full((n_rows, 1), 1.0 if place else -1.0)
    output = np.full((n_rows, n_classes), 0.0 if has_shares else -1.0)
    output[:, place] = 1.0
    return output


def _raw_output(model: Any, X: Any, classes: np.ndarray | None) -> np.ndarray:
    """Predictions of shape (n_rows, 1); shares (n_rows, n_classes); or decisions.

    Decisions have a column for each class, but one alone for two classes. A class that the model
    has not seen has share 0, or the decision -1 that least squares gives the rest.
    """
    if classes is None:
        return np.asarray(model.predict(X), dtype=np.float64).reshape(-1, 1)
    has_shares = hasattr(model, "predict_proba")
    output = np.asarray(model.predict_proba(X) if has_shares else model.decision_function(X))
    output = output.astype(np.float64).reshape(len(output), -1)
    if len(model.classes_) == len(classes):
        return output
    if not has_shares and output.shape[1] == 1:
        output = np.hstack([-output, output])
    whole = np.full((len(output), len(classes)), 0.0 if has_shares else -1.0)
    whole[:, np.searchsorted(classes, model.classes_)] = output
    return whole


def _assembled(outputs: list[np.ndarray], parts: list[Any]) -> np.ndarray:
    """Outputs of all rows, each from the fit without its part, shape (n_rows, n_outputs)."""
    width = max(output.shape[1] for output in outputs)
    whole = np.empty((sum(len(test) for _, test in parts), width))
    for output, (_, test) in zip(outputs, parts, strict=True):
        whole[np.sort(test)] = output
    return whole


class _Calibration:
    """Decisions to shares by logistic regression on left-out rows; all else passes unchanged."""

    def __init__(self, logistic: Any = None):
        self.logistic = logistic

    def __call__(self, output: np.ndarray) -> np.ndarray:
        return output if self.logistic is None else self.logistic.predict_proba(output)


def _calibration(held_out: np.ndarray, targets: np.ndarray) -> _Calibration:
    """How left-out outputs become shares; they are shares already if they sum to 1."""
    n_classes = targets.shape[1]
    is_shares = held_out.shape[1] == n_classes and (
        n_classes == 1 or bool(np.allclose(held_out.sum(axis=1), 1))
    )
    if is_shares:
        return _Calibration()
    logistic = LogisticRegression(C=100.0, max_iter=1000)
    return _Calibration(logistic.fit(held_out, targets.argmax(axis=1)))


def _unit_errors(targets: np.ndarray, predicted: np.ndarray, units: np.ndarray) -> np.ndarray:
    """Mean squared error in each unit (domain or row), shape (n_units,)."""
    row_errors = ((targets - predicted) ** 2).sum(axis=1)
    return np.bincount(units, row_errors) / np.bincount(units)


def _inner_error(
    fits: dict[Any, _Fit],
    name: str,
    k: int,
    parts: list[Any],
    targets: np.ndarray,
    units: np.ndarray,
    calibration: _Calibration,
) -> float:
    """Mean error over the units of the other parts, of fits that saw neither them nor part k."""
    errors = []
    for j, (_, test) in enumerate(parts):
        if j != k:
            pair = (min(j, k), max(j, k))
            fit = fits.get((name, pair)) or fits[name, (j,)]  # of two parts, one must be seen
            rows = np.sort(test)
            codes = np.unique(units[rows], return_inverse=True)[1]
            errors.append(_unit_errors(targets[rows], calibration(fit.outputs[j]), codes))
    return float(np.concatenate(errors).mean())
