"""NestedRegressor: least squares on as many ordered terms as the sample affords."""

from __future__ import annotations

import numbers
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.validation import check_is_fitted

from holdfast.model_size import bases, kernel
from holdfast.model_size.table import CRITERIA, UNITS, criteria, empty_score
from holdfast.path import SelectionPath
from holdfast.sums import Moments
from holdfast.validation import (
    check_choice,
    check_unlabeled,
    check_weights,
    is_number,
    numeric_rows,
)

_MIN_ROWS = 3
_N_DRAWS = 1000
_BATCH = 10_000


class NestedRegressor(RegressorMixin, BaseEstimator):
    """Least squares on the first d terms of an ordered basis, d chosen for the error on new rows.

    Answers *how large a model can this sample afford?* All sizes and all criteria come from one
    QR decomposition; the size is the one where ``criterion`` is least [1]_.

    Parameters
    ----------
    basis : str, transformer or SelectionPath, default="cosine"
        The terms, simplest first; the constant always comes first of all.

        - ``"cosine"``, ``"fourier"``, ``"legendre"``, ``"bspline"``: functions of each input on its
          range; with several inputs their products in order of total degree. Fourier series suit
          periodic inputs only.
        - ``"columns"``: the columns of X as they stand; ``"lars"``, ``"omp"``: in the order of a
          least-angle or matching-pursuit path; a `SelectionPath`: in its order.
        - ``"pca"``: principal components by falling variance.
        - ``"rbf"``: Gaussian bumps, one centre more with each term.
        - a transformer: its columns in the order in which it makes them.
    criterion : str, default="dee"
        The estimate of the error on new rows that chooses the size: ``"dee"``, ``"adj"``,
        ``"seb"``, ``"ucb"``, ``"fpe"``, ``"gcv"``, ``"cv"``, ``"loo"``, ``"cpm"``, ``"bic"``,
        ``"ric"``, ``"aic"``, ``"aicc"``, ``"adjusted_r2"`` or ``"bayes"``. All of them are
        computed; see ``criteria_``.
    max_terms : int, optional
        Largest size considered, below the number of rows. Default: ``min(3 n // 4, 200)``.
    interval : (low, high) or array-like of shape (n_features, 2), optional
        Range of the inputs for the bases that have one (cosine, fourier, legendre, bspline).
        Default: the range of the rows, labelled or not. Predictions outside it are those at its
        nearest end.
    noise_variance : float, optional
        Variance of the noise for ``"cpm"``, ``"bic"`` and ``"ric"``. Default: what the largest
        model leaves.
    cv : int, splitter or iterable of (train, test), default=5
        Folds of ``"cv"``. A number means that many shuffled folds, or one per row if there are
        fewer rows.
    random_state : int, RandomState or None, default=None
        Shuffles the folds and draws inputs where no unlabelled rows are given.

    Attributes
    ----------
    n_terms_ : int
        The chosen size.
    coef_ : ndarray of shape (chosen size,)
        Coefficients of the chosen terms.
    coef_path_ : ndarray of shape (n_sizes, n_sizes)
        Coefficients of every size, row d - 1 those of d terms.
    term_names_ : list of str
        The terms in order; those that depend on earlier ones are left out.
    criteria_ : dict of ndarray
        ``"n_terms"``, ``"train"`` (the mean squared residual) and one array per criterion, lower
        is better. All are estimates of the mean squared error on new rows, but for ``"aic"``,
        ``"aicc"`` and ``"adjusted_r2"`` (``1 - adjusted R²``).
    choices_ : dict of int
        The size that each criterion would choose.
    noise_variance_ : float
        As given, or as estimated.
    path_ : SelectionPath
        The sizes with the chosen criterion's estimate.
    support_, ranking_ : ndarray of shape (n_terms,)
        Mask of the chosen terms, and their order of entry, over all terms of the basis.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        When the columns of X have names.

    See Also
    --------
    compare_criteria : Plot of every criterion on one path.
    sklearn.linear_model.RidgeCV : Shrinks all terms instead of choosing how many.

    Notes
    -----
    When **not** to use it: when the terms have no natural order from simple to complex, shrinkage
    (`RidgeCV`, `LassoCV`) is the better tool. With hundreds of rows per term all criteria agree and
    cross-validation is enough. With ``"lars"`` and ``"omp"`` the order has looked at y: only
    ``"cv"`` repeats that look in each fold, the other criteria are optimistic.

    DEE and ADJ compare the sample with inputs that have no label. Without ``X_unlabeled``, 1,000
    are drawn from a kernel density of the inputs (Gaussian, Scott's bandwidth, reflected at the
    ends of the range), as the paper's conclusion suggests.

    In a `Pipeline`, unlabelled rows must go through the earlier steps too: pass
    ``transform_input=["X_unlabeled"]`` to the pipeline and request them with
    ``set_fit_request(X_unlabeled=True)``.

    References
    ----------
    .. [1] O. Chapelle, V. Vapnik, Y. Bengio, "Model Selection for Small Sample Regression",
       Machine Learning 48 (2002) 9-23.

    Examples
    --------
    >>> from holdfast import NestedRegressor
    >>> from holdfast.datasets import make_curve
    >>> data = make_curve("sinc", n_samples=20, noise=0.05, random_state=0)
    >>> model = NestedRegressor("fourier", random_state=0)
    >>> model.fit(data.X, data.y, X_unlabeled=data.X_unlabeled).n_terms_
    6
    """

    def __init__(
        self,
        basis: Any = "cosine",
        *,
        criterion: str = "dee",
        max_terms: int | None = None,
        interval: Any = None,
        noise_variance: float | None = None,
        cv: Any = 5,
        random_state: Any = None,
    ):
        self.basis = basis
        self.criterion = criterion
        self.max_terms = max_terms
        self.interval = interval
        self.noise_variance = noise_variance
        self.cv = cv
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, X_unlabeled: Any = None
    ) -> NestedRegressor:
        """Fit every size and choose one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Weights are repetitions: n is their sum.
        X_unlabeled : array-like of shape (n_unlabeled, n_features), optional
            Inputs without labels, from where predictions will be made. They serve DEE and ADJ, and
            widen the range of the inputs. Do not repeat the training rows in it.

        Returns
        -------
        self : NestedRegressor
        """
        self._check_parameters()
        X, y = numeric_rows(self, X, y, reset=True)
        X, y = X.astype(np.float64, copy=False), y.astype(np.float64, copy=False)
        weight = check_weights("NestedRegressor", sample_weight, len(X))
        unlabeled = check_unlabeled(self, X_unlabeled)
        used = weight > 0
        max_terms = self._check_size(weight[used])
        rng = check_random_state(self.random_state)
        folds = self._fold_weights(X, y, weight, rng)
        rows = bases.Rows(X[used], y[used], weight[used], unlabeled)

        basis = self._make_basis().fit(rows, max_terms)
        coordinates = basis.coordinates(rows.X)
        terms = basis.terms(coordinates)
        fit = kernel.nested_fit(terms, rows.y, rows.weight)
        self.basis_ = basis
        self._kept = fit.kept
        self.term_names_ = [basis.names[j] for j in fit.kept]
        try:
            if len(unlabeled):
                elsewhere = basis.coordinates(unlabeled)
            else:
                order = _sorted_rows(rows.X, rows.y)
                elsewhere = kernel.parzen_sample(
                    coordinates[order],
                    rows.weight[order],
                    *basis.bounds(coordinates),
                    _N_DRAWS,
                    rng,
                )
            C = _second_moment(basis, elsewhere, fit.kept)
            parts = ((train[used], test[used]) for train, test in folds)
            held_out = kernel.cross_validation(
                self._folds(rows, parts, terms, fit.kept), len(fit.z)
            )
            given = self.noise_variance
            self.noise_variance_ = kernel.noise_variance(fit) if given is None else float(given)
            self.criteria_ = criteria(fit, C, self.noise_variance_, held_out)
        except KeyboardInterrupt:
            self.path_ = self._path(fit, np.full(len(fit.z), np.nan), 0, "interrupted")
            raise
        self._choose(fit, n_columns=terms.shape[1])
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predictions for X, shape (n_samples,); float32 for float32."""
        X = self._check_new_rows(X)
        predicted = np.empty(len(X), dtype=X.dtype)
        for batch in gen_batches(len(X), _BATCH):
            predicted[batch] = self._terms(X[batch])[:, : self.n_terms_] @ self.coef_
        return predicted

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Predictions for X of every size in turn, from one term to all of them."""
        X = self._check_new_rows(X)
        terms = self._terms(X)
        for coefficients in self.coef_path_:
            yield (terms @ coefficients).astype(X.dtype, copy=False)

    def _check_new_rows(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "n_terms_")
        return numeric_rows(self, X, reset=False)

    def _terms(self, X: np.ndarray) -> np.ndarray:
        coordinates = self.basis_.coordinates(X.astype(np.float64, copy=False))
        return self.basis_.terms(coordinates)[:, self._kept]

    # --- checks, all before any work ---

    def _check_parameters(self) -> None:
        who = "NestedRegressor"
        check_choice(who, "criterion", self.criterion, CRITERIA)
        basis, interval = self.basis, self.interval
        if isinstance(basis, str):
            check_choice(who, "basis", basis, bases.NAMES)
        elif not isinstance(basis, SelectionPath) and (
            isinstance(basis, type) or not (hasattr(basis, "fit") and hasattr(basis, "transform"))
        ):
            raise ValueError(
                f"{who}: basis must be one of {', '.join(map(repr, bases.NAMES))}, a transformer "
                f"or a SelectionPath. Got {basis!r}."
            )
        if interval is not None:
            if not (isinstance(basis, str) and basis in bases.FAMILIES):
                raise ValueError(
                    f"{who}: interval is for the bases {', '.join(map(repr, bases.FAMILIES))}. "
                    f"Got interval={interval!r} with basis={basis!r}. Pass interval=None."
                )
            try:
                ends = np.asarray(interval, dtype=np.float64)
            except (TypeError, ValueError):
                ends = np.empty(0)
            if (
                ends.ndim not in (1, 2)
                or ends.shape[-1] != 2
                or not np.isfinite(ends).all()
                or not (ends[..., 0] < ends[..., 1]).all()
            ):
                raise ValueError(
                    f"{who}: interval must be (low, high) with low < high, or one such pair per "
                    f"feature. Got {interval!r}."
                )
        if self.max_terms is not None and not (
            is_number(self.max_terms, numbers.Integral) and self.max_terms >= 1
        ):
            raise ValueError(
                f"{who}: max_terms must be a whole number of at least 1, or None. "
                f"Got {self.max_terms!r}."
            )
        if self.noise_variance is not None and not (
            is_number(self.noise_variance) and self.noise_variance >= 0
        ):
            raise ValueError(
                f"{who}: noise_variance must be a number of at least 0, or None to estimate it. "
                f"Got {self.noise_variance!r}."
            )
        if isinstance(self.cv, numbers.Integral) and (isinstance(self.cv, bool) or self.cv < 2):
            raise ValueError(f"{who}: cv must be at least 2 folds. Got cv={self.cv!r}.")

    def _check_size(self, weight: np.ndarray) -> int:
        """The largest number of terms to consider."""
        n = float(weight.sum())
        if len(weight) < _MIN_ROWS or n < _MIN_ROWS:
            given = f"{len(weight)} sample{'s' if len(weight) != 1 else ''}"
            hint = (
                f"sample_weight sums to {n:g}: weights are repetitions, so do not scale them to 1."
                if n < _MIN_ROWS <= len(weight)
                else "Two points fit every line."
            )
            raise ValueError(
                f"NestedRegressor: needs at least {_MIN_ROWS} rows to tell one size from another. "
                f"Got {given}. {hint}"
            )
        if self.max_terms is None:
            return min(int(3 * n // 4), 200)
        if self.max_terms >= n:
            rows = f"{n:g} rows" if n == len(weight) else f"rows of total weight {n:g}"
            most = int(np.ceil(n)) - 1
            raise ValueError(
                "NestedRegressor: max_terms must be below the number of rows. "
                f"Got max_terms={self.max_terms} with {rows}. "
                f"Pass max_terms={most} or less, or None."
            )
        return int(self.max_terms)

    # --- pieces of fit ---

    def _make_basis(self) -> bases.Basis:
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            names = [f"x{j}" for j in range(self.n_features_in_)]
        shape = np.shape(self.interval) if self.interval is not None else (2,)
        if shape not in ((2,), (self.n_features_in_, 2)):
            raise ValueError(
                f"NestedRegressor: interval must be one pair, or one per feature, shape "
                f"({self.n_features_in_}, 2). Got shape {shape}."
            )
        if isinstance(self.basis, SelectionPath) and self.basis.n_steps:
            last = int(self.basis.order.max())
            if last >= self.n_features_in_:
                raise ValueError(
                    "NestedRegressor: the path given as basis must name columns of X, 0 to "
                    f"{self.n_features_in_ - 1}. Got column {last}."
                )
        return bases.make_basis(self.basis, self.interval, list(names))

    def _fold_weights(
        self, X: np.ndarray, y: np.ndarray, weight: np.ndarray, rng: np.random.RandomState
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Weights of the rows in training and in test, fold by fold."""
        if isinstance(self.cv, numbers.Integral):
            order = _sorted_rows(X, y)
            test = np.zeros((int(self.cv), len(y)))
            test[:, order] = kernel.fold_weights(weight[order], int(self.cv), rng)
            return [(weight - part, part) for part in test if part.any()]
        folds = []
        for train, held_out in check_cv(self.cv).split(X, y):
            parts = []
            for rows in (train, held_out):
                part = np.zeros(len(y))
                part[rows] = weight[rows]
                parts.append(part)
            if not (parts[0].any() and parts[1].any()):
                raise ValueError(
                    "NestedRegressor: every fold of cv must train and test on at least one row of "
                    "positive weight. Pass fewer folds."
                )
            folds.append((parts[0], parts[1]))
        return folds

    def _folds(
        self,
        rows: bases.Rows,
        parts: Iterable[tuple[np.ndarray, np.ndarray]],
        terms: np.ndarray,
        kept: np.ndarray,
    ) -> Iterator[tuple[np.ndarray, ...]]:
        """Training and held-out terms, targets and weights of each fold."""
        X, y, _, unlabeled = rows
        for train_weight, test_weight in parts:
            train, test = train_weight > 0, test_weight > 0
            made = terms[:, kept]
            if self.basis_.uses_target:
                own = bases.Rows(X[train], y[train], train_weight[train], unlabeled)
                basis = self._make_basis().fit(own, terms.shape[1])
                made = basis.terms(basis.coordinates(X))[:, : len(kept)]
            yield (
                *(made[train], y[train], train_weight[train]),
                *(made[test], y[test], test_weight[test]),
            )

    def _choose(self, fit: kernel.NestedFit, n_columns: int) -> None:
        estimates = self.criteria_[self.criterion]
        if not np.isfinite(estimates).any() and not np.isneginf(estimates).any():
            raise ValueError(
                f"NestedRegressor: criterion={self.criterion!r} is infinite at every size with "
                f"{fit.n_samples:g} rows. Pass criterion='dee', or more rows."
            )
        self.choices_ = {name: int(np.argmin(self.criteria_[name])) + 1 for name in CRITERIA}
        self.n_terms_ = self.choices_[self.criterion]
        self.coef_path_ = kernel.coefficient_path(fit)
        self.coef_ = self.coef_path_[self.n_terms_ - 1, : self.n_terms_]
        self.path_ = self._path(fit, estimates, self.n_terms_, self._reason(fit, n_columns))
        self.support_ = self.path_.support(n_columns)
        self.ranking_ = self.path_.ranking(n_columns)

    def _reason(self, fit: kernel.NestedFit, n_columns: int) -> str:
        n_sizes = len(fit.z)
        if fit.rss[1] == 0:
            return "the target is constant, so one term fits it exactly"
        votes = Counter(self.choices_.values())
        favourite, n_votes = votes.most_common(1)[0]
        said = f"{self.criterion} is least at {_count(self.n_terms_)} of {n_sizes}"
        if len(votes) == 1:
            said += f"; all {len(self.choices_)} criteria agree"
        else:
            said += (
                f"; the {len(self.choices_)} criteria choose {min(votes)} to {max(votes)}, "
                f"most often {favourite} ({n_votes} of them)"
            )
        dropped = n_columns - n_sizes
        if dropped:
            said += f"; {_count(dropped)} depended on earlier ones and "
            said += "was left out" if dropped == 1 else "were left out"
        return said

    def _path(
        self, fit: kernel.NestedFit, estimates: np.ndarray, size: int, reason: str
    ) -> SelectionPath:
        errors = fit.rss / fit.n_samples
        # Nothing was fitted at size 0: the error of predicting 0 needs no correction.
        empty = empty_score(self.criterion, fit)
        return SelectionPath(
            order=fit.kept,
            names=tuple(self.term_names_),
            scores=np.append(empty, estimates),
            chosen_size=size,
            reason=reason,
            unit=UNITS.get(self.criterion, "mean squared error"),
            train_scores=errors,
        )


def _count(count: int) -> str:
    return f"{count} term" if count == 1 else f"{count} terms"


def _sorted_rows(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Order of the rows that depends on their values alone, so that draws do not follow storage."""
    return np.lexsort((y, *X.T[::-1]))


def _second_moment(basis: bases.Basis, coordinates: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """``C = E_U[φ φᵀ]`` of the kept terms, batch by batch."""
    parts = (
        Moments.from_arrays(basis.terms(coordinates[batch])[:, kept])
        for batch in gen_batches(len(coordinates), _BATCH)
    )
    total = next(parts)
    for part in parts:
        total = total + part
    return total.second_moment()[0]
