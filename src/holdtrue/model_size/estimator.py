"""NestedRegressor: least squares on as many ordered terms as the sample affords."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.validation import check_is_fitted

from holdtrue.model_size import bases, kernel
from holdtrue.model_size.folds import Fold, sorted_rows, split_rows
from holdtrue.model_size.table import CRITERIA, UNITS, agreement, criteria, empty_score
from holdtrue.path import SelectionPath, ShowsPath
from holdtrue.validation import (
    check_choice,
    check_magnitude,
    check_weights,
    is_number,
    numeric_rows,
    unlabeled_rows,
)

_MIN_ROWS = 3
_N_DRAWS = 1000
_BATCH = 10_000
_BAYES_TERMS = 60


class NestedRegressor(RegressorMixin, ShowsPath, BaseEstimator):
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
        - ``"pca"``: principal components by falling variance, of the columns as they are: scale
          them before if their units differ.
        - ``"rbf"``: Gaussian bumps, one centre more with each term.
        - a transformer: its columns in the order in which it makes them. It is shown arrays.
    criterion : str, default="dee"
        The estimate of the error on new rows that chooses the size: ``"dee"``, ``"adj"``,
        ``"seb"``, ``"ucb"``, ``"fpe"``, ``"gcv"``, ``"cv"``, ``"loo"``, ``"cpm"``, ``"bic"``,
        ``"ric"``, ``"aic"``, ``"aicc"``, ``"adjusted_r2"`` or ``"bayes"``. All of them are
        computed, see ``criteria_``; ``"bayes"``, whose cost grows with the cube of the number of
        terms, only up to 60 terms unless it is asked for.
    max_terms : int, optional
        Largest size considered, below the number of rows. Default: ``min(3 n // 4, 200)``, n the
        sum of the weights, or the number of different rows if they are fewer.
    interval : (low, high) or array-like of shape (n_features, 2), optional
        Range of the inputs for the bases that have one (cosine, fourier, legendre, bspline).
        Default: the range of the rows, labelled or not. Predictions outside it are those at its
        nearest end.
    noise_variance : float, optional
        Variance of the noise for ``"cpm"``, ``"bic"`` and ``"ric"``. Default: what the largest
        model leaves.
    cv : int, splitter or iterable of (train, test), default=5
        Folds of ``"cv"``. A number means that many shuffled folds, or one per row if there are
        fewer rows. For groups pass ``list(splitter.split(X, y, groups))``.
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
    basis_ : object
        The fitted basis: ``basis_.terms(basis_.coordinates(X))`` has the values of its terms.
    term_names_ : list of str
        The terms in order; those that depend on earlier ones are left out.
    criteria_ : dict of ndarray
        ``"n_terms"``, ``"train"`` (the mean squared residual) and one array per criterion, lower
        is better. All are estimates of the mean squared error on new rows, but for ``"aic"``,
        ``"aicc"`` and ``"adjusted_r2"`` (``1 - adjusted R²``).
    choices_ : dict of int
        The size that each criterion would choose, but for those that are infinite at every size.
    criterion_ : str
        The one that chose.
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
    (`RidgeCV`, `LassoCV`) is the better tool. With hundreds of rows per term the choice hardly
    matters and cross-validation is enough. With ``"lars"`` and ``"omp"`` the order has looked at y:
    only ``"cv"`` repeats that look in each fold, the other criteria are optimistic.

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
    >>> from holdtrue import NestedRegressor
    >>> from holdtrue.datasets import make_curve
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
            Inputs without labels, from where predictions will be made. They serve DEE, ADJ and
            ``"bayes"``. Do not repeat the training rows in it. They also widen the range of the
            inputs: predictions between the training rows and the ends of that range are then
            extrapolated, where without them they would be held at the last training row's.
            Tools that split the rows, such as `GridSearchCV`, cut whatever has as many rows as X.

        Returns
        -------
        self : NestedRegressor
        """
        self._check_parameters()
        X, y = numeric_rows(self, X, y, reset=True)
        X, y = X.astype(np.float64, copy=False), y.astype(np.float64, copy=False)
        weight = check_weights("NestedRegressor", sample_weight, len(X))
        unlabeled = unlabeled_rows(self, X_unlabeled)
        for name, values in (("X", X), ("X_unlabeled", unlabeled), ("y", y[:, None])):
            check_magnitude("NestedRegressor", name, values)
        used = weight > 0
        rows = bases.Rows(X[used], y[used], weight[used], unlabeled)
        max_terms = self._check_size(rows)
        rng = check_random_state(self.random_state)
        folds = split_rows(self.cv, X, y, weight, rng)
        basis = self._make_basis()

        # Nothing of an earlier fit is left if this one is cut short.
        for name in [name for name in vars(self) if name in _FITTED]:
            delattr(self, name)
        self.path_ = SelectionPath((), (), [np.nan], 0, "interrupted")
        try:
            self._fit(rows, folds, basis, max_terms, rng)
        except Exception:
            del self.path_  # an interruption leaves the path so far, an error nothing
            raise
        return self

    def _fit(
        self,
        rows: bases.Rows,
        folds: list[Fold],
        basis: bases.Basis,
        max_terms: int,
        rng: np.random.RandomState,
    ) -> None:
        basis.fit(rows, max_terms)
        coordinates = basis.coordinates(rows.X)
        terms = basis.terms(coordinates)
        fit = kernel.nested_fit(terms, rows.y, rows.weight)
        names = [basis.names[j] for j in fit.kept]
        self.path_ = self._path(fit, names, np.full(len(fit.z), np.nan), 0, "interrupted")

        C_half = self._elsewhere(basis, coordinates, rows, fit.kept, rng)
        held_out = kernel.cross_validation(
            self._folds(basis, rows, folds, terms, fit.kept), len(fit.z)
        )
        given = self.noise_variance
        noise = kernel.noise_variance(fit) if given is None else float(given)
        with_bayes = self.criterion == "bayes" or len(fit.z) <= _BAYES_TERMS
        table = criteria(fit, C_half, noise, held_out, with_bayes=with_bayes)

        # A criterion that is infinite at every size chooses none.
        choices = {
            name: int(np.argmin(values)) + 1
            for name, values in table.items()
            if name in CRITERIA and not np.isposinf(values).all()
        }
        if self.criterion not in choices:
            raise ValueError(
                f"NestedRegressor: criterion={self.criterion!r} is infinite at every size with "
                f"{fit.n_samples:g} rows. Pass criterion='dee', or more rows."
            )
        size = choices[self.criterion]
        reason = _reason(fit, choices, self.criterion, terms.shape[1])
        self.path_ = self._path(fit, names, table[self.criterion], size, reason)
        self.support_ = self.path_.support(terms.shape[1])
        self.ranking_ = self.path_.ranking(terms.shape[1])
        self.basis_, self._kept, self.term_names_ = basis, fit.kept, names
        self.criterion_, self.criteria_, self.choices_ = self.criterion, table, choices
        self.noise_variance_ = noise
        self.coef_path_ = kernel.coefficient_path(fit)
        self.coef_ = self.coef_path_[size - 1, :size]
        self.n_terms_ = size

    def predict(self, X: Any) -> np.ndarray:
        """Predictions for X, shape (n_samples,); float32 for float32."""
        X = self._check_new_rows(X)
        predicted = np.empty(len(X), dtype=X.dtype)
        for batch in gen_batches(len(X), _BATCH):
            predicted[batch] = self._terms(X[batch], self.n_terms_) @ self.coef_
        return predicted

    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Predictions for X of every size in turn, from one term to all of them."""
        X = self._check_new_rows(X)
        terms = self._terms(X, len(self._kept))
        for coefficients in self.coef_path_:
            yield (terms @ coefficients).astype(X.dtype, copy=False)

    def _check_new_rows(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "n_terms_")
        return numeric_rows(self, X, reset=False)

    def _terms(self, X: np.ndarray, size: int) -> np.ndarray:
        coordinates = self.basis_.coordinates(X.astype(np.float64, copy=False))
        kept = self._kept[:size]
        return self.basis_.terms(coordinates, int(kept[-1]) + 1)[:, kept]

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

    def _check_size(self, rows: bases.Rows) -> int:
        """The largest number of terms to consider."""
        n, n_rows = float(rows.weight.sum()), len(rows.y)
        if n_rows < _MIN_ROWS or n < _MIN_ROWS:
            hint = (
                f"sample_weight sums to {n:g}: weights are repetitions, so do not scale them to 1."
                if n < _MIN_ROWS <= n_rows
                else "Two points fit every line."
            )
            raise ValueError(
                f"NestedRegressor: needs at least {_MIN_ROWS} rows to tell one size from another. "
                f"Got {n_rows} sample{'s' if n_rows != 1 else ''}. {hint}"
            )
        # As many terms as different rows fit them all exactly, however often each is repeated.
        different = len(np.unique(np.column_stack([rows.X, rows.y]), axis=0))
        limit = min(n, different)
        if self.max_terms is None:
            return max(1, min(int(3 * limit // 4), 200))
        if self.max_terms >= limit:
            what = "rows" if different >= n else "different rows"
            raise ValueError(
                "NestedRegressor: max_terms must be below the number of rows. "
                f"Got max_terms={self.max_terms} with {limit:g} {what}. "
                f"Pass max_terms={max(1, int(np.ceil(limit)) - 1)} or less, or None."
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

    def _elsewhere(
        self,
        basis: bases.Basis,
        coordinates: np.ndarray,
        rows: bases.Rows,
        kept: np.ndarray,
        rng: np.random.RandomState,
    ) -> np.ndarray:
        """``C_half`` of the kept terms, over the unlabelled rows or over drawn inputs."""
        if len(rows.unlabeled):
            return _moment_factor(basis, basis.coordinates(rows.unlabeled), kept)
        order = sorted_rows(rows.X, rows.y)
        ends = basis.bounds(coordinates)
        drawn = kernel.parzen_sample(coordinates[order], rows.weight[order], *ends, _N_DRAWS, rng)
        try:
            return _moment_factor(basis, drawn, kept)
        except ValueError as error:
            raise ValueError(
                f"NestedRegressor: basis {self.basis!r} could not transform inputs drawn from a "
                f"kernel density of X ({error}). Pass inputs that it knows as X_unlabeled."
            ) from error

    def _folds(
        self,
        basis: bases.Basis,
        rows: bases.Rows,
        folds: list[Fold],
        terms: np.ndarray,
        kept: np.ndarray,
    ) -> Iterator[tuple[np.ndarray, ...]]:
        """Training and held-out terms, targets and weights of each fold."""
        made = terms if len(kept) == terms.shape[1] else terms[:, kept]
        for train_weight, test_weight in folds:
            train, test = train_weight > 0, test_weight > 0
            X, y, weight = rows.X[train], rows.y[train], train_weight[train]
            if basis.uses_target:
                own = self._make_basis()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # said once, by the fit on all rows
                    own.fit(bases.Rows(X, y, weight, rows.unlabeled), terms.shape[1])
                    made = own.terms(own.coordinates(rows.X))
                # Sizes count independent terms, here as on the path.
                made = made[:, kernel.independent_terms(made[train], weight)[: len(kept)]]
            yield made[train], y, weight, made[test], rows.y[test], test_weight[test]

    def _path(
        self,
        fit: kernel.NestedFit,
        names: list[str],
        estimates: np.ndarray,
        size: int,
        reason: str,
    ) -> SelectionPath:
        own_unit = UNITS.get(self.criterion)
        return SelectionPath(
            order=fit.kept,
            names=names,
            scores=np.append(empty_score(self.criterion, fit), estimates),
            chosen_size=size,
            reason=reason,
            unit=own_unit or "mean squared error",
            train_scores=None if own_unit else fit.rss / fit.n_samples,
        )


# What `fit` leaves behind.
_FITTED = (
    "path_", "support_", "ranking_", "basis_", "_kept", "term_names_", "criterion_", "criteria_",
    "choices_", "noise_variance_", "coef_path_", "coef_", "n_terms_",
)  # fmt: skip


def _reason(fit: kernel.NestedFit, choices: dict[str, int], criterion: str, n_columns: int) -> str:
    n_sizes = len(fit.z)
    if fit.rss[1] == 0:
        return "the target is constant, so one term fits it exactly"
    said = f"{criterion} is least at {_count(choices[criterion])} of {n_sizes}; "
    said += agreement(choices)
    dropped = n_columns - n_sizes
    if dropped:
        said += f"; {_count(dropped)} depended on earlier ones and "
        said += "was left out" if dropped == 1 else "were left out"
    return said


def _count(count: int) -> str:
    return f"{count} term" if count == 1 else f"{count} terms"


def _moment_factor(basis: bases.Basis, coordinates: np.ndarray, kept: np.ndarray) -> np.ndarray:
    """``C_half`` of the kept terms, batch by batch."""
    return kernel.moment_factor(
        basis.terms(coordinates[batch])[:, kept] for batch in gen_batches(len(coordinates), _BATCH)
    )
