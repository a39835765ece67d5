"""What the estimators of this family share: rows and sums in, predictions out."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from holdtrue.errors import InputError, shown, speaks
from holdtrue.path import ShowsPath
from holdtrue.sums import Moments
from holdtrue.validation import check_groups, check_weights, class_codes, numeric_rows

SINGLE_ROWS = (
    "every domain has a single row, so that what varies between domains cannot be told from noise. "
    "Leave groups out if new data are new rows."
)

ONE_SIDED_ERRORS = (
    "The error at such a domain judges only the classes that it has, so that new_domain_score_ may "
    "be too low for a domain with every class. If new domains have every class, leave it out or "
    "merge it with another."
)


class DomainEstimator(ShowsPath, BaseEstimator):
    """An estimator that is fitted to rows in domains, or to their moments."""

    def _checked_rows(
        self, X: Any, y: Any, groups: Any, sample_weight: Any, *, y_numeric: bool
    ) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray]:
        """X, target, domains and weights of the rows whose weight is above 0."""
        X, y = numeric_rows(self, X, y, reset=True, accept_sparse=True, y_numeric=y_numeric)
        X = _contiguous(X)
        weight = check_weights(sample_weight, X.shape[0])
        labels = None if groups is None else check_groups(groups, X.shape[0])
        used = weight > 0
        if not used.all():
            X, y, weight = X[used], y[used], weight[used]
            labels = None if labels is None else labels[used]
        return X, y, labels, weight

    def _keep_columns(self, moments: Moments) -> None:
        """Number and names of the features, as `fit` would learn them from X."""
        self.n_features_in_ = moments.n_features
        if moments.feature_names is not None:
            self.feature_names_in_ = np.array(moments.feature_names, dtype=object)

    # --- how selectors, regressors and classifiers differ ---

    def _reads_numbers(self, y: Any, sample_weight: Any) -> bool:
        """Whether y is a number to predict; else it is classes."""
        raise NotImplementedError

    def _given_classes(self, classes: Any, n_targets: int) -> np.ndarray | None:
        """Names of the classes of sums with that many targets; None for a number."""
        raise NotImplementedError

    def _keep_coefficients(self, coef: np.ndarray, intercept: np.ndarray) -> None:
        """Keep coefficients (n_targets, n_features) and intercepts (n_targets,)."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


class PredictsNumbers(RegressorMixin):
    """A linear regressor of one target."""

    def _reads_numbers(self, y: Any, sample_weight: Any) -> bool:
        return True

    def _given_classes(self, classes: Any, n_targets: int) -> np.ndarray | None:
        if classes is not None:
            raise InputError(
                f"classes are for a classifier; a number has none. Got classes={shown(classes)}."
            )
        if n_targets != 1:
            raise InputError(
                f"expected the moments of one target. Got {n_targets}. Fit one target at a time."
            )
        return None

    def _keep_coefficients(self, coef: np.ndarray, intercept: np.ndarray) -> None:
        self.coef_, self.intercept_ = coef[0], float(intercept[0])

    @speaks
    def predict(self, X: Any) -> np.ndarray:
        """Predictions for X, shape (n_samples,); float32 for float32."""
        X = new_rows(self, X)
        return X @ self.coef_.astype(X.dtype) + X.dtype.type(self.intercept_)


class PredictsClasses(ClassifierMixin):
    """A linear classifier: one score for two classes, else one per class against the rest."""

    classes_: np.ndarray

    def _reads_numbers(self, y: Any, sample_weight: Any) -> bool:
        return False

    def _given_classes(self, classes: Any, n_targets: int) -> np.ndarray | None:
        return named_classes(classes, n_targets)

    def _keep_coefficients(self, coef: np.ndarray, intercept: np.ndarray) -> None:
        self.coef_, self.intercept_ = coef, intercept

    @speaks
    def decision_function(self, X: Any) -> np.ndarray:
        """Scores, shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        X = new_rows(self, X)
        scores = X @ self.coef_.T.astype(X.dtype) + self.intercept_.astype(X.dtype)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @speaks
    def predict(self, X: Any) -> np.ndarray:
        """Classes of the rows of X, shape (n_samples,)."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)]


def new_rows(estimator: Any, X: Any) -> Any:
    """Rows to predict, as a contiguous array or CSR matrix."""
    check_is_fitted(estimator, "coef_")
    return _contiguous(numeric_rows(estimator, X, reset=False, accept_sparse=True))


def _contiguous(X: Any) -> Any:
    """X in one memory layout, so that sums and predictions do not depend on it."""
    return X if sparse.issparse(X) else np.ascontiguousarray(X)


def coded_targets(y: np.ndarray, *, numeric: bool) -> tuple[np.ndarray | None, np.ndarray]:
    """Classes, None for a number, and the targets of least squares, shape (n_rows, n_targets).

    A target of classes has +1 for one class and -1 for the rest; two classes have one target.
    """
    if numeric:
        return None, y.astype(np.float64)[:, None]
    classes, codes = class_codes(y)
    first = 1 if len(classes) == 2 else 0
    return classes, np.where(codes[:, None] == np.arange(first, len(classes)), 1.0, -1.0)


def distinct_rows(*columns: Any) -> np.ndarray:
    """Place of each row among the distinct rows in order, shape (n_rows,).

    Equal rows are held out together, so that weights are repetitions.
    """
    return np.unique(np.column_stack(columns), axis=0, return_inverse=True)[1].ravel()


def named_classes(classes: Any, n_targets: int) -> np.ndarray:
    """Classes of targets coded +1 and -1; by default -1 and 1, or 0, 1, ..."""
    n_classes = 2 if n_targets == 1 else n_targets
    default = [-1, 1] if n_classes == 2 else range(n_classes)
    names = np.array(list(default) if classes is None else list(classes))
    if len(names) != n_classes:
        raise InputError(
            f"the moments have {n_targets} targets, so "
            f"classes must name {n_classes}. Got {len(names)}."
        )
    return names


def class_shares(mean_y: np.ndarray) -> np.ndarray:
    """Share of each class in each domain, shape (n_domains, n_classes).

    Parameters
    ----------
    mean_y : ndarray of shape (n_domains, n_targets)
        Means of targets coded +1 and -1; see `coded_targets`.
    """
    shares = (1 + mean_y) / 2
    return np.hstack([1 - shares, shares]) if shares.shape[1] == 1 else shares


def missing_classes(
    shares: np.ndarray, n_rows: np.ndarray, labels: Any, classes: Any, meaning: str
) -> list[str]:
    """A sentence on domains of two rows or more that lack a class; none if there are none.

    ``shares`` has shape (n_domains, n_classes); ``meaning`` is what follows for the reader, and
    what to do.
    """
    missing = np.argwhere((shares < 1e-9) & (n_rows > 1)[:, None])  # 0 but for rounding
    if not len(missing):
        return []
    domain, k = missing[0]
    n_lacking = len(np.unique(missing[:, 0]))
    return [
        f"{n_lacking} of {len(shares)} domains {'lacks' if n_lacking == 1 else 'lack'} a class, "
        f"such as {shown(classes[k])} in {shown(labels[domain])}. {meaning}"
    ]


def check_moments(moments: Any) -> np.ndarray:
    """Domains of the moments, shape (n_domains,); refused without a target or a second domain."""
    if not isinstance(moments, Moments) or not moments.has_target:
        given = "Moments without one" if isinstance(moments, Moments) else type(moments)
        raise InputError(
            f"expected Moments with a target. Got {given}. "
            "Build them with Moments.from_arrays(X, y, groups=...)."
        )
    check_domain_count(moments.domains)
    names = np.empty(len(moments.domains), dtype=object)
    names[:] = moments.domains
    return names


def check_domain_count(names: Any) -> None:
    """Refuse groups that name a single domain."""
    if len(names) < 2:
        raise InputError(
            f"needs at least 2 domains, got 1 ({shown(names[0])} in every row). "
            "Pass the domain of each row as fit(X, y, groups=...)."
        )


def dense_rows(X: Any, max_bytes: float) -> np.ndarray:
    """X as float64; sparse rows that would not fit in ``max_bytes`` are refused."""
    if sparse.issparse(X):
        size = X.shape[0] * X.shape[1] * 8
        if size > max_bytes:
            raise InputError(
                f"without groups, sparse rows are made dense: "
                f"{size / 2**20:.0f} MiB, above the working_memory of {max_bytes / 2**20:.0f}. "
                "Pass groups, or sklearn.set_config(working_memory=...)."
            )
        X = X.toarray()
    return X.astype(np.float64, copy=False)


def working_memory() -> float:
    """scikit-learn's ``working_memory`` in bytes."""
    return float(get_config()["working_memory"] * 2**20)
