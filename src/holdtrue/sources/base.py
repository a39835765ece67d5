"""What GreedyTL and its rivals share: rows and sources in, a linear prediction out."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import _safe_indexing, compute_sample_weight
from sklearn.utils.validation import check_is_fitted

from holdtrue.errors import InputError, counted, shown, speaks
from holdtrue.path import ShowsPath
from holdtrue.sources.candidates import Candidates
from holdtrue.sources.choose import Task
from holdtrue.sources.pool import PoolOn, SourcePool
from holdtrue.validation import (
    check_groups,
    check_magnitude,
    check_weights,
    class_signs,
    is_number,
    numeric_rows,
)


class SourceEstimator(ShowsPath, BaseEstimator):
    """Linear predictor on columns of X and scores of sources.

    A child fits weights in `fit` and hands them to `_keep`.
    """

    sources: Any
    passthrough: Any

    def __sklearn_clone__(self) -> Any:
        # A fitted source must stay fitted: hyperparameters are cloned, sources shared.
        given = self.get_params(deep=False)
        twin = type(self)(
            **{
                name: value if name == "sources" else clone(value, safe=False)
                for name, value in given.items()
            }
        )
        if hasattr(self, "_metadata_request"):
            twin._metadata_request = copy.deepcopy(self._metadata_request)
        return twin

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _read_rows(
        self, X: Any, y: Any, groups: Any, sample_weight: Any, *, y_numeric: bool
    ) -> tuple[Candidates, np.ndarray, np.ndarray, np.ndarray | None]:
        """Candidates, target, weights, and groups as numbers, of the rows of positive weight."""
        given = X
        X, y = numeric_rows(self, X, y, reset=True, y_numeric=y_numeric, accept_sparse=True)
        weight = check_weights(sample_weight, X.shape[0])
        used = weight > 0
        if used.sum() < 2:
            known = counted(used.sum(), "sample") + " of positive weight" * (len(used) > 1)
            raise InputError(f"needs at least 2 rows. Got {known}.")
        codes = None if groups is None else _group_codes(groups, used)
        self._pool = _pool_of(self.sources)
        names = getattr(self, "feature_names_in_", None)
        score_columns = self._pool.column_places(X.shape[1], names)
        is_feature = np.full(X.shape[1], bool(self.passthrough))
        is_feature[score_columns] = False
        features = np.flatnonzero(is_feature)
        self.source_names_ = list(self._pool.names)
        if not len(features) and not self.source_names_:
            raise InputError(
                f"there is nothing to choose from. Got no sources and "
                f"passthrough={self.passthrough}. Pass sources, or passthrough=True to use the "
                "columns of X."
            )
        if not used.all():
            X, y, weight = X[used], y[used], weight[used]
            is_frame = hasattr(given, "columns")
            given = _safe_indexing(given, np.flatnonzero(used)) if is_frame else X
        if len(features) and X.dtype == np.float64:  # float64 can square whatever float32 holds
            largest = abs(X).max(axis=0).toarray().reshape(1, -1) if sparse.issparse(X) else X
            check_magnitude(
                lambda j: f"column {j if names is None else repr(str(names[j]))} of X", largest
            )
        on = PoolOn(self._pool, X, given, names, dtype=X.dtype)
        return Candidates(X, features, on, len(self.source_names_)), y, weight, codes

    def _keep(self, intercepts: np.ndarray, raw: np.ndarray, effects: np.ndarray) -> None:
        """Store a fit: raw weights and effects have shape (n_columns + n_sources, n_targets)."""
        d = self.n_features_in_
        one = effects.shape[1] == 1
        self.intercept_ = float(intercepts[0]) if one else intercepts
        self.coef_ = raw[:, 0] if one else raw.T
        self.feature_weights_ = effects[:d, 0] if one else effects[:d].T
        self.source_weights_ = effects[d:, 0] if one else effects[d:].T

    def _all_names(self) -> tuple[str, ...]:
        """Names of the columns of X, then of the sources."""
        given = getattr(self, "feature_names_in_", None)
        columns = _numbered(self.n_features_in_) if given is None else tuple(map(str, given))
        return columns + tuple(self.source_names_)

    def _decisions(self, X: Any) -> np.ndarray:
        """Predictions of every target, shape (n_rows, n_targets); runs the chosen sources only."""
        check_is_fitted(self, "coef_")
        given = X
        X = numeric_rows(self, X, reset=False, accept_sparse=True)
        d = self.n_features_in_
        weights = np.atleast_2d(self.coef_).T
        features = np.flatnonzero(weights[:d].any(axis=1))
        sources = np.flatnonzero(weights[d:].any(axis=1))
        decisions = self.intercept_ + X[:, features].astype(np.float64) @ weights[features]
        if len(sources):
            names = getattr(self, "feature_names_in_", None)
            on = PoolOn(self._pool, X, given, names, predicting=True)
            decisions = decisions + on.columns(sources) @ weights[d + sources]
        return decisions.astype(X.dtype, copy=False)


class ClassPredictions(ClassifierMixin):
    """Classes from the decisions of a `SourceEstimator`: ±1 for two, one against the rest."""

    class_weight: Any
    classes_: np.ndarray
    _decisions: Any
    _read_rows: Any

    def _read_classes(
        self, X: Any, y: Any, groups: Any, sample_weight: Any
    ) -> tuple[Candidates, Task]:
        """Candidates, and what is to be predicted: ±1 for each class against the rest."""
        given = self.class_weight
        check_class_weight(given)
        read = self._read_rows(X, y, groups, sample_weight, y_numeric=False)
        candidates, labels, weight, codes = read
        self.classes_, targets = class_signs(labels)
        task = Task(
            targets=targets,
            weight=weight,
            balanced=isinstance(given, str),
            row_factor=compute_sample_weight(given, labels) if isinstance(given, dict) else None,
            groups=codes,
            truncated=True,
            X=candidates.X,
        )
        return candidates, task

    @speaks
    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the second class, shape (n_samples,), or of each class if there are more."""
        decisions: np.ndarray = self._decisions(X)
        return decisions[:, 0] if decisions.shape[1] == 1 else decisions

    @speaks
    def predict(self, X: Any) -> np.ndarray:
        """Classes of the rows of X, shape (n_samples,)."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[codes]


def check_penalty(name: str, value: Any) -> None:
    """Refuse anything but a number above 0 and 'loo'."""
    if not (isinstance(value, str) and value == "loo") and not (is_number(value) and value > 0):
        raise InputError(
            f"{name} must be a number above 0, or 'loo' to choose it by leave-one-out. "
            f"Got {shown(value)}."
        )


def check_class_weight(given: Any) -> None:
    """Refuse anything but 'balanced', None and a dict of positive weights."""
    balanced = isinstance(given, str) and given == "balanced"
    if not (given is None or balanced or isinstance(given, dict)):
        raise InputError(
            f"class_weight must be 'balanced', None or a dict of weights by "
            f"class. Got {shown(given)}."
        )
    for label, value in given.items() if isinstance(given, dict) else ():
        if not (is_number(value) and value > 0):
            raise InputError(
                f"class_weight must be a number above 0 for every class. "
                f"Got {shown(value)} for class {shown(label)}. Leave rows out with a "
                "sample_weight of 0."
            )


@lru_cache(maxsize=8)
def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"x{j}" for j in range(count))


def _group_codes(groups: Any, used: np.ndarray) -> np.ndarray:
    labels, codes = np.unique(check_groups(groups, len(used))[used], return_inverse=True)
    if len(labels) < 2:
        raise InputError(
            f"groups must name at least 2 groups. Got one ({shown(labels[0])}) in all rows of "
            "positive weight. Leave groups out if new data are new rows."
        )
    return codes


def _pool_of(sources: Any) -> SourcePool:
    if isinstance(sources, Iterator):
        raise InputError(
            f"sources must be a SourcePool or a list of (name, source). "
            f"Got {type(sources).__name__}, which one fit would use up. "
            "Pass list(sources)."
        )
    return sources if isinstance(sources, SourcePool) else SourcePool(sources)
