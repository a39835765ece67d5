"""What GreedyTL and its rivals share: candidates, labels, weights, and a linear prediction."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.utils import _safe_indexing, compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from holdtrue.path import ShowsPath
from holdtrue.sources.formats import Refused
from holdtrue.sources.pool import PoolOn, SourcePool
from holdtrue.validation import check_magnitude, check_weights, is_number, numeric_rows, shown

LAMBDAS = tuple(10.0**power for power in range(-4, 5))
# Up to this many rows, copies counted, one copy is left out at a time; above, a tenth of the rows,
# each with all its copies.
_MOST_LEFT_OUT = 50
_N_FOLDS = 10


class Candidates:
    """Columns of X and scores of sources, side by side, read when asked for.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_rows, n_columns)
    features : ndarray of int
        The columns of X that are candidates.
    on : PoolOn
    n_sources : int

    Attributes
    ----------
    indices : ndarray of int, shape (n_candidates,)
        Place of each candidate where columns of X come first, then sources in pool order.
    """

    def __init__(self, X: Any, features: np.ndarray, on: PoolOn, n_sources: int):
        self.X = X
        self.features = features
        self.on = on
        self.n_sources = n_sources
        self.indices = np.concatenate([features, X.shape[1] + np.arange(n_sources)])
        # Columns read so far, and where each candidate's is; -1 where it was not read.
        self._read = np.empty((X.shape[0], 0), dtype=X.dtype)
        self._slot = np.full(len(self.indices), -1)
        self._n_read = 0
        self._whole = False

    def __len__(self) -> int:
        return len(self.indices)

    def columns(self, wanted: np.ndarray | slice) -> np.ndarray:
        """Raw columns of the given candidates, or of all, shape (n_rows, n_wanted)."""
        if isinstance(wanted, slice):
            if not self._n_read:
                self._read = self._fetch(np.arange(len(self)))
                self._slot, self._n_read = np.arange(len(self)), len(self)
                self._whole = True
            return self._read if self._whole else self.columns(np.arange(len(self)))
        new = wanted[self._slot[wanted] < 0]
        if len(new):
            stop = self._n_read + len(new)
            if stop > self._read.shape[1]:
                grown = np.empty((len(self._read), 2 * stop), dtype=self._read.dtype)
                grown[:, : self._n_read] = self._read[:, : self._n_read]
                self._read = grown
            self._read[:, self._n_read : stop] = self._fetch(new)
            self._slot[new] = np.arange(self._n_read, stop)
            self._n_read = stop
        return self._read[:, self._slot[wanted]]

    def feature_columns(self, wanted: np.ndarray | slice) -> np.ndarray:
        """As `columns`, of the features alone."""
        wanted = np.arange(len(self.features)) if isinstance(wanted, slice) else wanted
        return self.columns(wanted)

    def source_columns(self) -> np.ndarray:
        """Scores of all sources."""
        return self.columns(np.arange(len(self.features), len(self)))

    def constant_sources(self) -> list[int]:
        """Sources that were run and gave one score in every row."""
        return self.on.constant()

    def _fetch(self, wanted: np.ndarray) -> np.ndarray:
        n_features = len(self.features)
        of_x = self.X[:, self.features[wanted[wanted < n_features]]]
        scores = self.on.columns(wanted[wanted >= n_features] - n_features)
        made = np.empty((self.X.shape[0], len(wanted)), dtype=self.X.dtype)
        made[:, wanted < n_features] = of_x.toarray() if sparse.issparse(of_x) else of_x
        made[:, wanted >= n_features] = scores
        return made


class SourceEstimator(ShowsPath, BaseEstimator):
    """Linear predictor on columns of X and scores of sources.

    A child fits weights in `fit` and hands them to `_keep`.
    """

    sources: Any

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

    @property
    def _owner(self) -> str:
        return type(self).__name__

    def _prepare(
        self, X: Any, y: Any, sample_weight: Any, *, passthrough: bool
    ) -> tuple[Candidates, np.ndarray, np.ndarray]:
        """Candidates, targets of shape (n_rows, n_targets) and weights, rows of weight 0 gone."""
        given = X
        X, y = numeric_rows(
            self, X, y, reset=True, y_numeric=not hasattr(self, "_classes"), accept_sparse=True
        )
        weight = check_weights(self._owner, sample_weight, X.shape[0])
        used = weight > 0
        if used.sum() < 2:
            count = int(used.sum())
            raise ValueError(
                f"{self._owner}: needs at least 2 rows. Got {count} sample"
                f"{'s' if count != 1 else ''}{' of positive weight' * (len(used) > 1)}."
            )
        if isinstance(self.sources, Iterator):
            raise ValueError(
                f"{self._owner}: sources must be a SourcePool or a list of (name, source). "
                f"Got {type(self.sources).__name__}, which one fit would use up. "
                "Pass list(sources)."
            )
        given_pool = isinstance(self.sources, SourcePool)
        self._pool: SourcePool = self.sources if given_pool else SourcePool(self.sources)
        names = getattr(self, "feature_names_in_", None)
        own = self._own_columns(X.shape[1], names)
        features = np.setdiff1d(np.arange(X.shape[1]), own) if passthrough else np.empty(0, int)
        self.source_names_ = list(self._pool.names)
        if not len(features) and not self.source_names_:
            raise ValueError(
                f"{self._owner}: there is nothing to choose from. Got no sources and "
                f"passthrough={passthrough}. Pass sources, or passthrough=True to use the columns "
                "of X."
            )
        targets = self._targets(y, used)
        if not used.all():
            X, targets, weight = X[used], targets[used], weight[used]
            columns = hasattr(given, "columns")
            given = _safe_indexing(given, np.flatnonzero(used)) if columns else X
        if len(features):
            self._check_sizes(X, names)
        on = PoolOn(self._pool, X, given, names, dtype=X.dtype)
        return Candidates(X, features, on, len(self.source_names_)), targets, weight

    def _check_sizes(self, X: Any, names: Any) -> None:
        if X.dtype == np.float32:  # float64 can square whatever float32 holds
            return
        largest = abs(X).max(axis=0).toarray().reshape(1, -1) if sparse.issparse(X) else X
        check_magnitude(
            self._owner,
            lambda j: f"column {j if names is None else repr(str(names[j]))} of X",
            largest,
        )

    def _own_columns(self, n_columns: int, names: Any) -> list[int]:
        """Columns of X that are sources."""
        places = []
        for i in self._pool._columns:
            name, column = self._pool._given[i]
            try:
                places.append(column.place(n_columns, names))
            except Refused as error:
                raise ValueError(f"{self._owner}: source {i} ({name!r}) {error}") from error
        return places

    def _targets(self, y: np.ndarray, used: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _weights(self, weight: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Weights of the rows for one target, with the same sum."""
        return weight

    def _n_folds(self, weight: np.ndarray) -> int:
        return len(weight) if _is_few(weight) else min(_N_FOLDS, len(weight))

    def _folds(
        self, weight: np.ndarray, target: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Weights to fit and to test with: one copy of a row left out at a time, or a tenth."""
        full = self._weights(weight, target)
        if _is_few(weight):
            for i in range(len(weight)):
                rest, test = weight.copy(), np.zeros(len(weight))
                rest[i] = max(weight[i] - 1, 0)
                test[i] = full[i]
                yield self._weights(rest, target), test
            return
        # Dealt in order of the target, so that every part has its share of each class.
        part = np.empty(len(weight), dtype=np.intp)
        part[np.argsort(target, kind="stable")] = np.arange(len(weight)) % _N_FOLDS
        for fold in range(self._n_folds(weight)):
            left_out = part == fold
            rest = np.where(left_out, 0, weight)
            yield self._weights(rest, target), np.where(left_out, full, 0)

    def _keep(self, intercepts: np.ndarray, raw: np.ndarray, effects: np.ndarray) -> None:
        """Store a fit: raw weights and effects have shape (n_columns + n_sources, n_targets)."""
        d = self.n_features_in_
        self._raw = raw
        self._intercepts = intercepts
        one = effects.shape[1] == 1
        self.intercept_ = float(intercepts[0]) if one else intercepts
        self.feature_weights_ = effects[:d, 0] if one else effects[:d].T
        self.source_weights_ = effects[d:, 0] if one else effects[d:].T

    def _candidate_names(self, indices: np.ndarray) -> list[str]:
        d = self.n_features_in_
        features = getattr(self, "feature_names_in_", None)
        return [
            self.source_names_[i - d]
            if i >= d
            else (f"x{i}" if features is None else str(features[i]))
            for i in indices
        ]

    def _decisions(self, X: Any) -> np.ndarray:
        """Predictions of every target, shape (n_rows, n_targets); runs the chosen sources only."""
        check_is_fitted(self, "_raw")
        given = X
        X = numeric_rows(self, X, reset=False, accept_sparse=True)
        d = self.n_features_in_
        features = np.flatnonzero(self._raw[:d].any(axis=1))
        sources = np.flatnonzero(self._raw[d:].any(axis=1))
        made = self._intercepts + X[:, features].astype(np.float64) @ self._raw[features]
        if len(sources):
            names = getattr(self, "feature_names_in_", None)
            on = PoolOn(self._pool, X, given, names, predicting=True)
            made = made + on.columns(sources) @ self._raw[d + sources]
        return made.astype(X.dtype, copy=False)


class TransferRegressor(RegressorMixin, SourceEstimator):
    """A `SourceEstimator` for numbers."""

    def predict(self, X: Any) -> np.ndarray:
        """Predictions for X, shape (n_samples,); float32 for float32."""
        return self._decisions(X)[:, 0]

    def _targets(self, y: np.ndarray, used: np.ndarray) -> np.ndarray:
        targets = y.astype(np.float64)[:, None]
        check_magnitude(self._owner, "y", targets[used])
        return targets


class TransferClassifier(ClassifierMixin, SourceEstimator):
    """A `SourceEstimator` for classes: ±1 for two, one against the rest for more."""

    class_weight: Any
    _classes = True

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the second class, shape (n_samples,), or of each class if there are more."""
        made = self._decisions(X)
        return made[:, 0] if made.shape[1] == 1 else made

    def predict(self, X: Any) -> np.ndarray:
        """Classes of the rows of X, shape (n_samples,)."""
        made = self.decision_function(X)
        return self.classes_[(made > 0).astype(int) if made.ndim == 1 else made.argmax(axis=1)]

    def _targets(self, y: np.ndarray, used: np.ndarray) -> np.ndarray:
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        present = np.unique(codes[used])
        if len(present) < 2:
            only = shown(self.classes_[present[0]])
            raise ValueError(
                f"{self._owner}: needs rows of at least 2 classes. "
                f"Got one class ({only}) in all rows of positive weight."
            )
        self.classes_ = self.classes_[present]
        codes = np.searchsorted(present, codes)
        if isinstance(self.class_weight, dict):
            self._row_weights = compute_sample_weight(self.class_weight, y)[used]
        positive = codes == 1 if len(present) == 2 else codes[:, None] == np.arange(len(present))
        return np.where(positive, 1.0, -1.0).reshape(len(y), -1)

    def _weights(self, weight: np.ndarray, target: np.ndarray) -> np.ndarray:
        total = weight.sum()
        if isinstance(self.class_weight, dict):
            made = weight * self._row_weights
            return made * (total / made.sum()) if made.sum() > 0 else weight
        if self.class_weight is None or not total:
            return weight
        sides = [weight @ (target < 0), weight @ (target > 0)]
        present = sum(side > 0 for side in sides)
        share = [total / (present * side) if side else 0.0 for side in sides]
        return weight * np.where(target > 0, share[1], share[0])

    def _check_class_weight(self) -> None:
        given = self.class_weight
        said = isinstance(given, str) and given == "balanced"
        if not (given is None or said or isinstance(given, dict)):
            raise ValueError(
                f"{self._owner}: class_weight must be 'balanced', None or a dict of weights by "
                f"class. Got {shown(given)}."
            )
        for label, value in given.items() if isinstance(given, dict) else ():
            if not (is_number(value) and value > 0):
                raise ValueError(
                    f"{self._owner}: class_weight must be a number above 0 for every class. "
                    f"Got {shown(value)} for class {shown(label)}. Leave rows out with a "
                    "sample_weight of 0."
                )


class TransferRival(TransferClassifier):
    """A child fits one target in `_fit_target`."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
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
        self._check_class_weight()
        self._check_parameters()
        passthrough = getattr(self, "passthrough", True)
        candidates, targets, weight = self._prepare(X, y, sample_weight, passthrough=passthrough)
        n_all = self.n_features_in_ + candidates.n_sources
        raw, effects = np.zeros((n_all, targets.shape[1])), np.zeros((n_all, targets.shape[1]))
        intercepts = np.empty(targets.shape[1])
        whole = candidates.columns(slice(None)).astype(np.float64)
        # A row of weight 3 stands for three: one of them is left out at a time, if there are few.
        one = np.minimum(1.0, 1.0 / weight) if _is_few(weight) else np.ones(len(weight))
        for t, target in enumerate(targets.T):
            own = self._weights(weight, target)
            intercepts[t], weights = self._fit_target(candidates, target, own, one)
            raw[candidates.indices, t] = weights
            spread = np.sqrt(own @ (whole - own @ whole / own.sum()) ** 2 / own.sum())
            effects[candidates.indices, t] = weights * spread
        self._keep(intercepts, raw, effects)
        return self

    def _check_parameters(self) -> None:
        for name in ("lam", "tau"):
            value = getattr(self, name, 1.0)
            said = isinstance(value, str) and value == "loo"
            if not said and not (is_number(value) and value > 0):
                raise ValueError(
                    f"{self._owner}: {name} must be a number above 0, or 'loo' to choose it by "
                    f"leave-one-out. Got {shown(value)}."
                )

    def _fit_target(
        self, candidates: Candidates, y: np.ndarray, weight: np.ndarray, one: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Intercept and raw weights of the candidates; ``one`` is the share of a row left out."""
        raise NotImplementedError


def _is_few(weight: np.ndarray) -> bool:
    """Whether copies of a row are left out one at a time."""
    return bool(weight.sum() <= _MOST_LEFT_OUT)


def sources_of(candidates: Candidates, owner: str) -> tuple[np.ndarray, np.ndarray]:
    """Scores of the sources that run and their places among the candidates; columns of X if none.

    A source that was left out has no say: its zeros would count as an opinion.
    """
    if not candidates.n_sources:
        places = np.arange(len(candidates))
        return candidates.columns(places).astype(np.float64), places
    first = len(candidates.features)
    scores = candidates.source_columns().astype(np.float64)
    runs = np.setdiff1d(np.arange(candidates.n_sources), list(candidates.on.skipped)).astype(int)
    if not len(runs):
        raise ValueError(
            f"{owner}: needs a source that runs. Got {candidates.n_sources}, all left out. "
            "Pass on_error='raise' to the SourcePool to see the first error."
        )
    return scores[:, runs], first + runs
