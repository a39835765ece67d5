"""TGreedySelector, TGreedyClassifier, TGreedyRegressor: features that hold in new domains."""

from __future__ import annotations

import warnings
from numbers import Number
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from holdtrue.domains.base import ATTRIBUTES, NOTES, PARAMETERS, TGreedyBase, plain
from holdtrue.sums import Moments


class TGreedySelector(SelectorMixin, TGreedyBase):
    __doc__ = f"""Keep the features whose effect on y is steady from domain to domain.
{PARAMETERS}
    Attributes
    ----------{ATTRIBUTES}
    See Also
    --------
    TGreedyRegressor, TGreedyClassifier : Predict with the chosen features.
    sklearn.feature_selection.SequentialFeatureSelector : Refits a model for every candidate.
{NOTES}
    Examples
    --------
    >>> from holdtrue import TGreedySelector
    >>> from holdtrue.datasets import make_domains
    >>> data = make_domains(n_domains=8, random_state=0)
    >>> selector = TGreedySelector(stop="bonferroni").fit(data.X, data.y, groups=data.groups)
    >>> selector.path_.chosen.tolist(), data.steady.tolist()
    ([0, 1, 2], [0, 1, 2])
    >>> selector.transform(data.X).shape
    (800, 3)
    """

    def _y_is_numeric(self, y: Any) -> bool:
        # Text, bool and category are classes; numbers are numbers, even few of them.
        return not _holds_classes(y)

    def _targets(self, y: np.ndarray, numeric: bool) -> np.ndarray:
        if not numeric:
            return _one_against_rest(y, *_classes(type(self).__name__, y))
        return super()._targets(y, numeric)

    def _take_targets(self, n_targets: int) -> None:
        pass

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self, "support_")
        return self.support_

    def _transform(self, X: Any) -> Any:
        # Choosing nothing is an answer: scikit-learn would warn.
        if self.support_.any():
            return super()._transform(X)
        return X.iloc[:, :0] if hasattr(X, "iloc") else X[:, :0]


class TGreedyRegressor(RegressorMixin, TGreedyBase):
    __doc__ = f"""Linear regression on the features whose effect is steady from domain to domain.
{PARAMETERS}
    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float{ATTRIBUTES}
    See Also
    --------
    TGreedySelector : Keeps the columns only.
    sklearn.linear_model.OrthogonalMatchingPursuit : Greedy on pooled rows.
{NOTES}
    Examples
    --------
    >>> from holdtrue import TGreedyRegressor
    >>> from holdtrue.datasets import make_domains
    >>> data = make_domains(n_domains=8, random_state=0)
    >>> model = TGreedyRegressor().fit(data.X, data.y, groups=data.groups)
    >>> low, high = model.new_domain_interval_
    >>> bool(low < model.new_domain_score_ < high)
    True
    """

    def _keep(self, *arguments: Any) -> None:
        super()._keep(*arguments)
        self.coef_, self.intercept_ = self._coefficients[0], float(self._intercepts[0])

    def predict(self, X: Any) -> np.ndarray:
        """Predictions for X, shape (n_samples,); float32 for float32."""
        X = self._new_rows(X)
        return X @ self.coef_.astype(X.dtype) + X.dtype.type(self.intercept_)


class TGreedyClassifier(ClassifierMixin, TGreedyBase):
    __doc__ = f"""Linear classifier on features whose effect is steady from domain to domain.

    Least squares on classes coded +1 and -1; several classes each against the rest, on one path: a
    step moves one feature's weight for one class.
{PARAMETERS}
    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,){ATTRIBUTES}
    See Also
    --------
    TGreedySelector : Keeps the columns only.
    sklearn.calibration.CalibratedClassifierCV : Probabilities, which this class does not claim.
{NOTES}
    Examples
    --------
    >>> from holdtrue import TGreedyClassifier
    >>> from holdtrue.datasets import make_domains
    >>> data = make_domains(n_domains=8, random_state=0)
    >>> model = TGreedyClassifier(stop="bonferroni")
    >>> model.fit(data.X, data.y > 0, groups=data.groups).path_.chosen.tolist()
    [0, 2, 1]
    """

    def fit_statistics(
        self, moments: Moments, *, unlabeled: Moments | None = None, classes: Any = None
    ) -> TGreedyClassifier:
        """Fit from sums of classes coded +1 and -1.

        Parameters
        ----------
        moments : Moments
            With one target for two classes (+1 is the second), or one per class (+1 is the class).
        unlabeled : Moments, optional
            Of rows without labels, in one domain.
        classes : array-like, optional
            The classes' names, sorted. Default: -1 and 1, or 0, 1, ...

        Returns
        -------
        self : TGreedyClassifier
        """
        self._given_classes = classes
        try:
            return super().fit_statistics(moments, unlabeled=unlabeled)
        finally:
            del self._given_classes

    def _y_is_numeric(self, y: Any) -> bool:
        return False

    def _targets(self, y: np.ndarray, numeric: bool) -> np.ndarray:
        check_classification_targets(y)
        self.classes_, codes = _classes(type(self).__name__, y)
        return _one_against_rest(y, self.classes_, codes)

    def _take_targets(self, n_targets: int) -> None:
        n_classes = 2 if n_targets == 1 else n_targets
        default = [-1, 1] if n_classes == 2 else range(n_classes)
        given = self._given_classes
        self.classes_ = np.array(list(default) if given is None else list(given))
        if len(self.classes_) != n_classes:
            raise ValueError(
                f"TGreedyClassifier.fit_statistics: the moments have {n_targets} targets, so "
                f"classes must name {n_classes}. Got {len(self.classes_)}."
            )

    def _warn_of_thin_domains(self, y: np.ndarray, codes: np.ndarray, names: np.ndarray) -> None:
        super()._warn_of_thin_domains(y, codes, names)
        there = np.zeros((len(names), len(self.classes_)), dtype=bool)
        there[codes, np.searchsorted(self.classes_, y)] = True
        lacking = np.argwhere(~there[np.bincount(codes) > 1])
        if len(lacking):
            domain = names[np.bincount(codes) > 1][lacking[0, 0]]
            warnings.warn(
                f"TGreedyClassifier.fit: {len(np.unique(lacking[:, 0]))} of {len(names)} domains "
                f"lack a class, such as {plain(self.classes_[lacking[0, 1]])!r} in "
                f"{plain(domain)!r}. Their effects compare the domain with the others, not its "
                "classes. Leave them out if that is not meant.",
                UserWarning,
                stacklevel=3,
            )

    def _keep(self, *arguments: Any) -> None:
        super()._keep(*arguments)
        self.coef_, self.intercept_ = self._coefficients, self._intercepts

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores, shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        X = self._new_rows(X)
        scores = X @ self.coef_.T.astype(X.dtype) + self.intercept_.astype(X.dtype)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Classes of the rows of X, shape (n_samples,)."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags


def _classes(owner: str, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"{owner}.fit: needs at least 2 classes. Got 1 class, {plain(classes[0])!r}."
        )
    return classes, codes


def _one_against_rest(y: np.ndarray, classes: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """+1 for the class and -1 for the rest; a single column for two classes."""
    of = np.arange(1, 2) if len(classes) == 2 else np.arange(len(classes))
    return np.where(codes[:, None] == of, 1.0, -1.0)


def _holds_classes(y: Any) -> bool:
    if str(getattr(y, "dtype", "")) == "category":
        return True
    labels = np.asarray(y)
    if labels.dtype != object:
        return labels.dtype.kind in "USTb"
    return not all(
        isinstance(label, Number) and not isinstance(label, bool) for label in labels.flat
    )
