"""Models of the default field that choose their penalty by left-out groups.

They choose what scikit-learn's own classes choose, which spend most of their time on checks and on
fits for single penalties.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier
from sklearn.linear_model import ElasticNetCV, LogisticRegression, Ridge, RidgeCV, enet_path
from sklearn.model_selection import KFold, StratifiedKFold, check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted, validate_data

from holdtrue.row_copies import Splits, dealt_splits, row_copies, splits_by

_TUNING_PARTS = 5

_Arrays = tuple[Any, np.ndarray, np.ndarray]  # X, y and weights of some rows


class GroupTuned(BaseEstimator):
    """A model that cross-validates itself, with whole groups left out where there are any.

    Parameters
    ----------
    estimator : estimator
    cv_parameter : str
        Its parameter that takes the splits, such as ``"ridgecv__cv"`` of a pipeline.
    """

    def __init__(self, estimator: Any, cv_parameter: str = "cv"):
        self.estimator = estimator
        self.cv_parameter = cv_parameter

    def fit(self, X: Any, y: Any, *, groups: Any = None, sample_weight: Any = None) -> GroupTuned:
        """Fit the model on splits by group."""
        y, of_classes = np.asarray(y), is_classifier(self.estimator)
        splits: Any = None
        if groups is not None and len(np.unique(groups)) > 1:
            n_parts = min(_TUNING_PARTS, len(np.unique(groups)))
            splits = _group_splits(np.asarray(groups), n_parts, sample_weight)
            splits = _of_two_classes(splits, y) if of_classes else splits
        if not splits:
            weight = None if sample_weight is None else np.asarray(sample_weight, np.float64)
            at, splits, weight = _row_splits(X, y, weight, of_classes=of_classes)
            if weight is not None:
                X, y, sample_weight = _safe_indexing(X, at), y[at], weight
            splits = _of_two_classes(splits, y) if of_classes else splits
        self.estimator_ = clone(self.estimator).set_params(**{self.cv_parameter: splits})
        self.estimator_.fit(X, y, **taken_by(self.estimator_, sample_weight=sample_weight))
        self.estimator_.set_params(**{self.cv_parameter: None})  # splits name rows of the fit
        if is_classifier(self.estimator_):
            self.classes_ = self.estimator_.classes_
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predictions of the tuned model."""
        check_is_fitted(self)
        return self.estimator_.predict(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Shares of the classes by the tuned model."""
        check_is_fitted(self)
        return self.estimator_.predict_proba(X)

    def __sklearn_tags__(self) -> Any:
        return self.estimator.__sklearn_tags__()


def _of_two_classes(splits: Splits, y: np.ndarray) -> Splits:
    """Splits whose rows to fit on have at least two classes; one alone cannot be fitted."""
    return [(train, test) for train, test in splits if (y[train] != y[train[0]]).any()]


def _row_splits(
    X: Any, y: np.ndarray, weight: np.ndarray | None, *, of_classes: bool
) -> tuple[np.ndarray, Splits, np.ndarray | None]:
    """Rows, splits of them and their weights, from `dealt_splits`."""
    copies = row_copies(X, y, weight)
    n_parts = min(_TUNING_PARTS, len(copies))
    splitter: Any = KFold(n_parts, shuffle=True, random_state=0)
    largest = int(np.unique(y[copies], return_counts=True)[1].max()) if of_classes else 0
    if largest > 1:  # in as many parts as the largest class has rows
        splitter = StratifiedKFold(min(n_parts, largest), shuffle=True, random_state=0)
    return dealt_splits(copies, list(splitter.split(copies[:, None], y[copies])), weight)


def _group_splits(groups: np.ndarray, n_parts: int, weight: Any) -> Splits:
    """Splits of `GroupKFold`, with weights as repetitions of rows.

    Groups are dealt out from the heaviest, each to the part that is lightest so far.
    """
    _, codes = np.unique(groups, return_inverse=True)
    sizes = np.bincount(codes, weight)
    part_of, totals = np.empty(len(sizes), dtype=np.intp), np.zeros(n_parts)
    for group in np.argsort(sizes)[::-1]:
        part_of[group] = np.argmin(totals)
        totals[part_of[group]] += sizes[group]
    return splits_by(part_of[codes])


class SplitRidge(RidgeCV):
    """`RidgeCV` with ``cv`` given: the same penalty, from one decomposition per split."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SplitRidge:
        """Choose the penalty with the largest mean R² on the splits' test rows, and fit."""
        X, y = validate_data(self, X, y, y_numeric=True, dtype=np.float64)
        splits = check_cv(self.cv).split(X, y)
        self.alpha_ = float(_best_penalty(_ridge_scores, self.alphas, splits, X, y, sample_weight))
        ridge = Ridge(self.alpha_).fit(X, y, sample_weight)
        self.coef_, self.intercept_ = ridge.coef_, ridge.intercept_
        return self


def _best_penalty(
    scores_of: Callable[[np.ndarray, _Arrays, _Arrays], np.ndarray],
    penalties: Any,
    splits: Iterable[tuple[np.ndarray, np.ndarray]],
    X: Any,
    y: np.ndarray,
    sample_weight: Any,
) -> Any:
    """The penalty with the largest mean score over the splits.

    ``scores_of(penalties, train, test)`` fits a model with each penalty to the training rows and
    returns its score on the test rows; both are given as (X, y, weight).
    """
    weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight, float)
    penalties = np.asarray(penalties, dtype=np.float64)
    total = sum(
        scores_of(penalties, *((X[at], y[at], weight[at]) for at in split)) for split in splits
    )
    return penalties[np.argmax(total)]


def _ridge_scores(alphas: np.ndarray, train: _Arrays, test: _Arrays) -> np.ndarray:
    """R² - 1 of ridge regressions; 0 where y does not vary and all penalties explain the same."""
    X, y, weight = test
    total = weight @ (y - np.average(y, weights=weight)) ** 2
    if not total > 0:
        return np.zeros(len(alphas))
    return -(weight @ (y[:, None] - _ridge_predictions(*train, alphas, X)) ** 2) / total


def _ridge_predictions(
    X: np.ndarray, y: np.ndarray, weight: np.ndarray, alphas: np.ndarray, X_new: np.ndarray
) -> np.ndarray:
    """Predictions for X_new of a ridge regression with each penalty, (n_new, n_penalties)."""
    center, mean = np.average(X, axis=0, weights=weight), np.average(y, weights=weight)
    root = np.sqrt(weight)
    Z, residual = root[:, None] * (X - center), root * (y - mean)
    new = X_new - center
    if Z.shape[0] < Z.shape[1]:  # predictions are the same in the space of the rows
        gram, moments, new = Z @ Z.T, residual, new @ Z.T
    else:
        gram, moments = Z.T @ Z, Z.T @ residual
    values, directions = np.linalg.eigh(gram)
    along = (directions.T @ moments)[:, None] / (np.maximum(values, 0.0)[:, None] + alphas)
    return mean + (new @ directions) @ along


class SplitLogistic(ClassifierMixin, BaseEstimator):
    """Logistic regression whose penalty has the least log loss on the splits' test rows.

    `GridSearchCV` does not weigh its test rows.

    Parameters
    ----------
    penalties : sequence of float
        Values of ``C`` to choose from.
    cv : splits, optional
    """

    def __init__(self, penalties: Any = (1.0,), cv: Any = None):
        self.penalties = penalties
        self.cv = cv

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SplitLogistic:
        """Choose the penalty, and fit; weights are repetitions in fits and in losses."""
        splits = check_cv(self.cv, y, classifier=True).split(X, y)
        C = _best_penalty(_logistic_scores, self.penalties, splits, X, y, sample_weight)
        self.best_estimator_ = _logistic(C, X, y, sample_weight)
        self.classes_ = self.best_estimator_.classes_
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Classes by the tuned model."""
        return self.best_estimator_.predict(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Shares of the classes by the tuned model."""
        return self.best_estimator_.predict_proba(X)


def _logistic(C: float, X: Any, y: np.ndarray, weight: Any) -> LogisticRegression:
    return LogisticRegression(C=C, max_iter=1000).fit(X, y, sample_weight=weight)


def _logistic_scores(penalties: np.ndarray, train: _Arrays, test: _Arrays) -> np.ndarray:
    return np.array([_log_share(_logistic(C, *train), *test) for C in penalties])


def _log_share(model: Any, X: Any, y: np.ndarray, weight: np.ndarray) -> float:
    """Mean logarithm of the true classes' shares, over rows of classes that the model has seen.

    scikit-learn's ``"neg_log_loss"`` is nan for every penalty where a group lacks a class.
    """
    place = np.minimum(np.searchsorted(model.classes_, y), len(model.classes_) - 1)
    seen = np.flatnonzero(model.classes_[place] == y)
    shares = model.predict_proba(X)[seen, place[seen]]
    return float(
        weight[seen] @ np.log(np.maximum(shares, np.finfo(np.float64).tiny)) / weight.sum()
    )


class PathElasticNet(ElasticNetCV):
    """`ElasticNetCV` of y in units of its deviation; one penalty is of |w|, the other of w².

    In another unit the same penalties shrink otherwise. The Gram matrix is checked once, not again
    for every penalty.
    """

    coef_: np.ndarray
    intercept_: float

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PathElasticNet:
        """Choose the penalties, and fit; attributes but ``coef_`` and ``intercept_`` are scaled."""
        y = np.asarray(y, dtype=np.float64)
        centred = y - np.average(y, weights=sample_weight)
        unit = math.sqrt(np.average(centred**2, weights=sample_weight)) or 1.0
        super().fit(X, y / unit, sample_weight)
        self.coef_, self.intercept_ = self.coef_ * unit, self.intercept_ * unit
        return self

    @staticmethod
    def path(*args: Any, **kwargs: Any) -> Any:
        """`enet_path` of arrays that `fit` has checked."""
        return enet_path(*args, **kwargs, check_input=False)


def taken_by(model: Any, **arguments: Any) -> dict[str, Any]:
    """Arguments, but for None, that ``fit`` takes: the model's, or that of a pipeline's steps.

    With scikit-learn's metadata routing a pipeline hands them to the steps that ask: here they do.
    """
    if isinstance(model, Pipeline):
        given: dict[str, Any] = {}
        for name, step in model.steps:
            of_step = taken_by(step, **arguments)
            if not get_config()["enable_metadata_routing"]:
                of_step = {f"{name}__{key}": value for key, value in of_step.items()}
            elif hasattr(step, "set_fit_request"):
                step.set_fit_request(**dict.fromkeys(of_step, True))
            given |= of_step
        return given
    if isinstance(model, BaseSearchCV):  # its splitter takes the groups, what it tunes the rest
        groups = arguments.pop("groups", None)
        given = taken_by(model.estimator, **arguments)
        return given if groups is None else {**given, "groups": groups}
    parameters = inspect.signature(model.fit).parameters if hasattr(model, "fit") else {}
    return {k: value for k, value in arguments.items() if value is not None and k in parameters}
