"""NestedRegressor: ordered terms, as many as the sample affords, averaged over sizes and bases."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state, gen_batches
from sklearn.utils.validation import check_is_fitted

from holdtrue.errors import InputError, caution, check_choice, counted, shown, speaks
from holdtrue.evidence import SizeEvidence
from holdtrue.model_size import bases, cautions, kernel
from holdtrue.model_size.average import average_curves, look_elsewhere
from holdtrue.model_size.bayes import bayes
from holdtrue.model_size.folds import Fold, held_out_error, split_rows
from holdtrue.model_size.table import CRITERIA, UNITS, empty_score, reason_of
from holdtrue.path import SelectionPath, ShowsPath, fits_whole
from holdtrue.validation import (
    check_count,
    check_groups,
    check_magnitude,
    check_number,
    check_weights,
    feature_names,
    numeric_rows,
    unlabeled_rows,
)

_BATCH = 10_000
_BAYES_TERMS = 60
_BASES = ("auto", *bases.NAMES)
_MIN_ROWS = 3


class _MethodBesideParameter:
    """A method beside a parameter of its name, which would hide it in the instance's dictionary."""

    def __init__(self, method: Callable[..., Any]):
        self.method = method
        self.__doc__ = method.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self.method if instance is None else self.method.__get__(instance)

    def __set__(self, instance: Any, value: Any) -> None:
        vars(instance)["predict"] = value


class NestedRegressor(RegressorMixin, ShowsPath, BaseEstimator):
    """Curve through a small sample: an average over sizes and bases, and the size it amounts to.

    Answers *how large a model can this sample afford?* Terms come in an order from simple to
    complex. Predictions are the posterior mean over all sizes, or those of the one size where
    ``criterion`` estimates the least error on new rows [1]_. All sizes and all criteria come from
    one QR decomposition.

    Parameters
    ----------
    basis : str, transformer or SelectionPath, default="auto"
        The terms, simplest first; the constant always comes first of all.

        - ``"auto"``: B-splines, Legendre polynomials and cosines of one input, Legendre polynomials
          with and without products of several inputs, and Gaussian processes; each on the range of
          the inputs, and with crowded inputs spread by a logarithm. All are averaged by the root of
          their evidence; the likeliest one but for the processes is explained.
        - ``"cosine"``, ``"fourier"``, ``"legendre"``, ``"bspline"``: functions of each input on its
          range; with several inputs their products in order of total degree. Fourier series suit
          periodic inputs only.
        - ``"columns"``: the columns of X as they stand; ``"lars"``, ``"omp"``: in the order of a
          least-angle or matching-pursuit path; a `SelectionPath`: in its order.
        - ``"pca"``: principal components by falling variance, of the columns as they are: scale
          them before if their units differ.
        - ``"rbf"``: Gaussian bumps, one centre more with each term.
        - a transformer: its columns in the order in which it makes them. It is shown arrays.
    criterion : str, default="bayes"
        The estimate of the error on new rows that chooses the size: ``"dee"``, ``"adj"``,
        ``"seb"``, ``"ucb"``, ``"fpe"``, ``"gcv"``, ``"cv"``, ``"loo"``, ``"cpm"``, ``"bic"``,
        ``"ric"``, ``"aic"``, ``"aicc"``, ``"adjusted_r2"`` or ``"bayes"``. All of them are
        computed, see ``criteria_``; with ``predict="chosen"``, ``"bayes"``, whose cost grows with
        the cube of the number of terms, only up to 60 terms unless it is asked for.
    predict : {"average", "chosen"}, default="average"
        ``"average"`` predicts with the posterior mean over all sizes and bases; the criterion then
        only explains. A target far from all that the other rows say is set aside, with a warning
        that names it. ``"chosen"`` predicts with the least-squares fit of the chosen size:
        ``NestedRegressor("cosine", criterion="dee", predict="chosen")`` is the paper.
    max_terms : int, optional
        Largest size considered, below the number of rows. Default: ``min(3 n // 4, 200)``, n the
        sum of the weights, or the number of different rows if they are fewer. Without it an average
        over several inputs has further terms, so that every column has its turn.
    interval : (low, high) or array-like of shape (n_features, 2), optional
        Range of the inputs for the bases that have one (auto, cosine, fourier, legendre, bspline).
        Default: the range of the rows, labelled or not. Predictions outside it are those at its
        nearest end.
    noise_variance : float, optional
        Variance of the noise for ``"cpm"``, ``"bic"`` and ``"ric"``. Default: what the largest
        model leaves.
    cv : int, splitter or iterable of (train, test), default=5
        Folds of ``"cv"``. A number means that many shuffled folds of rows, or of groups if ``fit``
        is given any; one per row or group if there are fewer.
    random_state : int, RandomState or None, default=None
        Shuffles the folds and draws inputs where no unlabelled rows are given.

    Attributes
    ----------
    n_terms_ : int
        The chosen size.
    coef_ : ndarray of shape (chosen size,)
        Least-squares coefficients of the chosen terms.
    coef_path_ : ndarray of shape (n_sizes, n_sizes)
        Coefficients of every size, row d - 1 those of d terms.
    basis_ : object
        The fitted basis, with ``"auto"`` the likeliest one: ``basis_.terms(basis_.coordinates(X))``
        has the values of its terms.
    basis_weights_ : dict of float
        Weight of each basis in the average, in proportion to the square root of its posterior
        probability. Of several inputs ``"constant"`` is one more where left-out rows are predicted
        hardly better than by their mean.
    new_error_ : float
        Mean squared error of the average on left-out rows, in closed form, without wild targets
        that were set aside; NaN with ``predict="chosen"``, for which ``path_`` has the estimate.
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
        The sizes with the chosen criterion's estimate. Of an average, ``"bayes"`` is moved so that
        the chosen size has ``new_error_``, the error of what predicts.
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
    (`RidgeCV`, `LassoCV`) is the better tool; with hundreds of rows per term the choice hardly
    matters. With ``"lars"`` and ``"omp"`` the order has looked at y: only ``"cv"`` repeats that
    look in each fold, the other criteria are optimistic.

    DEE and ADJ compare the sample with inputs that have no label. Without ``X_unlabeled``, 1,000
    are drawn from a kernel density of the inputs (Gaussian, as correlated as the inputs, Scott's
    bandwidth, reflected at the ends of the range), as the paper's conclusion suggests.

    In a `Pipeline`, unlabelled rows need ``transform_input=["X_unlabeled"]`` of the pipeline and
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
    >>> model = NestedRegressor(random_state=0).fit(data.X, data.y)
    >>> curve, deviation = model.predict([[0.0], [1.0]], return_std=True)
    >>> paper = NestedRegressor("fourier", criterion="dee", predict="chosen", random_state=0)
    >>> paper.fit(data.X, data.y, X_unlabeled=data.X_unlabeled).n_terms_
    6
    """

    def __init__(
        self,
        basis: Any = "auto",
        *,
        criterion: str = "bayes",
        predict: str = "average",
        max_terms: int | None = None,
        interval: Any = None,
        noise_variance: float | None = None,
        cv: Any = 5,
        random_state: Any = None,
    ):
        self.basis = basis
        self.criterion = criterion
        self.predict = predict
        self.max_terms = max_terms
        self.interval = interval
        self.noise_variance = noise_variance
        self.cv = cv
        self.random_state = random_state

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; ``"predict"`` is the parameter, not the method."""
        params: dict[str, Any] = super().get_params(deep)
        params["predict"] = vars(self)["predict"]
        return params

    @fits_whole
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        groups: Any = None,
        sample_weight: Any = None,
        X_unlabeled: Any = None,
    ) -> NestedRegressor:
        """Fit every size, choose one, and average over all.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        groups : array-like of shape (n_samples,), optional
            New data will be new groups (patients, sites): folds of ``cv`` leave out whole groups.
            They need ``criterion="cv"`` and ``predict="chosen"``, because all other criteria and
            the posterior take rows for independent.
        sample_weight : array-like of shape (n_samples,), optional
            Weights are repetitions: n is their sum.
        X_unlabeled : array-like of shape (n_unlabeled, n_features), optional
            Inputs without labels, from where predictions will be made, other than the training
            rows. They serve DEE, ADJ and ``"bayes"``, and widen the range of the inputs, up to
            whose ends predictions are then extrapolated. Tools that split the rows, such as
            `GridSearchCV`, cut whatever has as many rows as X.

        Returns
        -------
        self : NestedRegressor
        """
        X, y = numeric_rows(self, X, y, reset=True)
        predict = vars(self)["predict"]
        _check_parameters(self, predict, self.n_features_in_)
        X, y = X.astype(np.float64, copy=False), y.astype(np.float64, copy=False)
        weight = check_weights(sample_weight, len(X))
        unlabeled = unlabeled_rows(self, X_unlabeled)
        for name, values in (("X", X), ("X_unlabeled", unlabeled), ("y", y[:, None])):
            check_magnitude(name, values)
        used = weight > 0
        labels = _grouped_rows(groups, used, self.criterion, predict)
        rows = bases.Rows(X[used], y[used], weight[used], unlabeled)
        max_terms = _largest_size(self.max_terms, rows)
        rng = check_random_state(self.random_state)
        folds = split_rows(self.cv, X, y, weight, labels, rng)

        self._fit(rows, folds, max_terms, rng, grouped=labels is not None)
        held = isinstance(self.basis, str) and self.basis == "auto"
        texts = cautions.wild_inputs(rows, feature_names(self), held=held)
        if isinstance(self.basis_, bases.TransformerBasis):
            texts = []
        if not texts:  # the target of a wild input is far from the others for that reason
            wild, alone = cautions.far_targets(rows, self._curve(rows.X))
            if self._set_aside(alone, rows, folds, max_terms, rng):
                places = np.flatnonzero(used)[alone]
                texts.append(cautions.targets_aside(places, rows.y[alone]))
                wild &= ~alone
            if wild.any():
                texts.append(cautions.wild_targets(rows.y[wild]))
        if self._average is None:
            first_degree = self.basis_.first_degree(self.n_features_in_)
            n_samples = float(rows.weight.sum())
            texts += cautions.chosen_size(self.criterion, n_samples, first_degree, max_terms)
        for sentence in texts:
            caution(f"NestedRegressor: {sentence}")
        return self

    def _fit(
        self,
        rows: bases.Rows,
        folds: list[Fold],
        max_terms: int,
        rng: np.random.RandomState,
        *,
        grouped: bool,
    ) -> None:
        averaged = vars(self)["predict"] == "average"
        names = feature_names(self)
        named = bases.unfitted_bases(self.basis, self.interval, names, averaged=averaged)
        widened = averaged and self.max_terms is None
        fitted = bases.fit_bases(named, rows, max_terms, widened=widened)
        candidates = look_elsewhere(fitted, rows, rng, averaged=averaged)
        average = None
        (name, *others) = candidates
        if not grouped and (averaged or others):
            average = average_curves(candidates, rows)
            name = average.likeliest
        elif others:
            # Evidence takes rows for independent; groups are told apart by held-out ones alone.
            held_out = {
                name: held_out_error(each.basis, rows, folds, each.terms[:, :max_terms]).min()
                for name, each in candidates.items()
            }
            name = min(held_out, key=lambda each: held_out[each])
        weights = {each: float(each == name) for each in candidates}
        if average is not None:
            weights = dict(zip(average.curves, average.weights.tolist(), strict=True))
        explained = candidates[name]
        basis, terms = explained.basis, explained.terms[:, :max_terms]

        fit = kernel.nested_fit(terms, rows.y, rows.weight)
        left_out_error = held_out_error(basis, rows, folds, terms, fit.kept)
        given = self.noise_variance
        noise = kernel.noise_variance(fit) if given is None else float(given)
        # Of an average `bayes` explains the posterior that predicts.
        curve = average.curves[name].posterior if averaged and average else None
        C_half: Any = explained.C_half
        S = None if grouped else kernel.spread(fit, C_half[:, fit.kept])
        table = kernel.criteria(fit, S, noise, left_out_error)
        with_bayes = curve or self.criterion == "bayes" or len(fit.z) <= _BAYES_TERMS
        if S is not None and with_bayes:
            table["bayes"] = bayes(fit, C_half, S, curve)
        # A criterion that is infinite at every size chooses none.
        choices = {
            name: int(np.argmin(values)) + 1
            for name, values in table.items()
            if name in CRITERIA and not np.isposinf(values).all()
        }
        if self.criterion not in choices:
            raise InputError(
                f"criterion={self.criterion!r} is infinite at every size with "
                f"{fit.n_samples:g} rows. Pass criterion='dee', or more rows."
            )
        size = choices[self.criterion]
        estimates = table[self.criterion]
        new_error = average.new_error if averaged and average is not None else float("nan")
        if np.isfinite(new_error) and self.criterion == "bayes":
            # The average is what predicts: its own error stands at the size it amounts to.
            estimates = estimates - estimates.min() + new_error
        other_unit = UNITS.get(self.criterion)
        self.term_names_ = [basis.names[j] for j in fit.kept]
        values = {name: values for name, values in table.items() if name != "n_terms"}
        self.path_ = SelectionPath(
            order=fit.kept,
            names=self.term_names_,
            scores=np.append(empty_score(self.criterion, fit), estimates),
            chosen_size=size,
            reason=reason_of(
                fit,
                choices,
                self.criterion,
                weights,
                n_columns=terms.shape[1],
                averaged=averaged,
                grouped=grouped,
                late=basis.first_degree(self.n_features_in_) > max_terms,
            ),
            unit=other_unit or "mean squared error",
            train_scores=None if other_unit else fit.rss / fit.n_samples,
            evidence=SizeEvidence(table["n_terms"], values, choices, self.criterion, new_error),
        )
        self.support_ = self.path_.support(terms.shape[1])
        self.ranking_ = self.path_.ranking(terms.shape[1])
        self.basis_, self._kept = basis, fit.kept
        self.criterion_, self.criteria_, self.choices_ = self.criterion, table, choices
        self.noise_variance_ = noise
        self.coef_path_ = kernel.coefficient_path(fit)
        self.coef_ = self.coef_path_[size - 1, :size]
        self.basis_weights_ = weights
        self._average = average if averaged else None
        self.new_error_ = new_error
        self.n_terms_ = size

    @_MethodBesideParameter
    @speaks
    def predict(
        self, X: Any, return_std: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predictions for X, shape (n_samples,); float32 for float32.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_std : bool, default=False
            Give the posterior deviation of the curve too; that of new targets about the curve is
            not in it. Bands of two deviations hold curves that the sample can show: what turns
            faster than the rows can follow looks like noise. Needs ``predict="average"``.

        Returns
        -------
        predicted : ndarray of shape (n_samples,)
        deviation : ndarray of shape (n_samples,)
            With ``return_std``.
        """
        check_is_fitted(self, "n_terms_")
        X = numeric_rows(self, X, reset=False)
        average = self._average
        if return_std and average is None:
            raise InputError(
                "return_std needs the posterior. Got predict='chosen'. Pass predict='average'."
            )
        curve = average.predict_with_deviation if average and return_std else self._curve
        batches = (X[batch].astype(np.float64, copy=False) for batch in gen_batches(len(X), _BATCH))
        values = np.concatenate([curve(rows) for rows in batches], axis=-1, dtype=X.dtype)
        return (values[0], values[1]) if return_std else values

    def _curve(self, X: np.ndarray) -> np.ndarray:
        """Predictions for clean rows, float64."""
        if self._average is not None:
            return self._average.predict(X)
        return np.asarray(self._terms(X, self.n_terms_) @ self.coef_)

    @speaks
    def staged_predict(self, X: Any) -> Iterator[np.ndarray]:
        """Predictions for X of every size in turn, from one term to all of them."""
        check_is_fitted(self, "n_terms_")
        X = numeric_rows(self, X, reset=False)
        terms = self._terms(X, len(self._kept))
        return ((terms @ coef).astype(X.dtype, copy=False) for coef in self.coef_path_)

    def _terms(self, X: np.ndarray, size: int) -> np.ndarray:
        coordinates = self.basis_.coordinates(X.astype(np.float64, copy=False))
        kept = self._kept[:size]
        return self.basis_.terms(coordinates, int(kept[-1]) + 1)[:, kept]

    def _set_aside(
        self,
        alone: np.ndarray,
        rows: bases.Rows,
        folds: list[Fold],
        max_terms: int,
        rng: np.random.RandomState,
    ) -> bool:
        """Take the fit without some rows instead, if they are wild beyond doubt."""
        kept = ~alone
        folds = [(train[kept], test[kept]) for train, test in folds]
        folds = [fold for fold in folds if all(part.any() for part in fold)]
        average = self._average
        if average is None or not alone.any() or not folds:
            return False
        rest = bases.Rows(rows.X[kept], rows.y[kept], rows.weight[kept], rows.unlabeled)
        others = copy.copy(self)
        n_terms = min(max_terms, _largest_size(None, rest))
        others._fit(rest, folds, n_terms, rng, grouped=False)
        without = others._average
        if without is None or not cautions.beyond_doubt(rows, alone, average, without):
            return False
        self.__dict__.update(vars(others))
        clause = f"{counted(alone.sum(), 'wild target')} set aside"
        self.path_ = replace(self.path_, reason=f"{self.path_.reason}; {clause}")
        return True


# --- what is refused before any work ---


def _check_parameters(model: Any, predict: Any, n_features: int) -> None:
    """Refuse wrong parameters of `NestedRegressor`."""
    check_choice("criterion", model.criterion, CRITERIA)
    check_choice("predict", predict, ("average", "chosen"))
    basis = model.basis
    if isinstance(basis, str):
        check_choice("basis", basis, _BASES)
    elif not isinstance(basis, SelectionPath) and (
        isinstance(basis, type) or not (hasattr(basis, "fit") and hasattr(basis, "transform"))
    ):
        raise InputError(
            f"basis must be one of {', '.join(map(repr, _BASES))}, a transformer "
            f"or a SelectionPath. Got {basis!r}."
        )
    elif isinstance(basis, SelectionPath) and basis.n_steps and basis.order.max() >= n_features:
        raise InputError(
            f"the path given as basis must name columns of X, 0 to {n_features - 1}. "
            f"Got column {basis.order.max()}."
        )
    if model.interval is not None:
        _check_interval(basis, model.interval, n_features)
    check_count("max_terms", model.max_terms, 1, "or None")
    check_number("noise_variance", model.noise_variance, other="or None to estimate it")
    if isinstance(model.cv, numbers.Integral) and (isinstance(model.cv, bool) or model.cv < 2):
        raise InputError(f"cv must be at least 2 folds. Got cv={shown(model.cv)}.")


def _check_interval(basis: Any, interval: Any, n_features: int) -> None:
    if not (isinstance(basis, str) and (basis == "auto" or basis in bases.FAMILIES)):
        raise InputError(
            f"interval is for the bases 'auto', {', '.join(map(repr, bases.FAMILIES))}. "
            f"Got interval={shown(interval)} with basis={basis!r}. Pass interval=None."
        )
    try:
        ends = np.asarray(interval, dtype=np.float64)
    except (TypeError, ValueError):
        ends = np.empty(0)
    fits = ends.shape in ((2,), (n_features, 2)) and np.isfinite(ends).all()
    if not fits or not (ends[..., 0] < ends[..., 1]).all():
        raise InputError(
            "interval must be (low, high) with low < high, or one such pair per feature, shape "
            f"({n_features}, 2). Got {shown(interval)}."
        )


def _grouped_rows(groups: Any, used: np.ndarray, criterion: str, predict: str) -> Any:
    """Group of each row, or None; refused where rows are taken for independent."""
    if groups is None:
        return None
    labels = check_groups(groups, len(used))
    if criterion != "cv" or predict != "chosen":
        what = f"criterion={criterion!r}" if criterion != "cv" else "predict='average'"
        raise InputError(
            f"with groups, new data are new groups; {what} assumes that all rows are "
            "independent. Pass criterion='cv' and predict='chosen', which leave out whole groups."
        )
    names = np.unique(labels[used])
    if len(names) < 2:
        raise InputError(
            f"needs at least 2 groups, got 1 ({shown(names[0])} in every row of positive "
            "weight). Pass the group of each row as fit(X, y, groups=...), or leave groups out."
        )
    return labels


def _largest_size(max_terms: int | None, rows: bases.Rows) -> int:
    """The largest number of terms to consider."""
    n, n_rows = float(rows.weight.sum()), len(rows.y)
    if n_rows < _MIN_ROWS or n < _MIN_ROWS:
        hint = (
            f"sample_weight sums to {n:g}: weights are repetitions, so do not scale them to 1."
            if n < _MIN_ROWS <= n_rows
            else "Two points fit every line."
        )
        raise InputError(
            f"needs at least {_MIN_ROWS} rows to tell one size from another. "
            f"Got {counted(n_rows, 'sample')}. {hint}"
        )
    # As many terms as different rows fit them all exactly, however often each is repeated.
    different = len(np.unique(np.column_stack([rows.X, rows.y]), axis=0))
    limit = min(n, different)
    if max_terms is None:
        return max(1, min(int(3 * limit // 4), 200))
    if max_terms >= limit:
        what = "rows" if different >= n else "different rows"
        raise InputError(
            f"max_terms must be below the number of rows. "
            f"Got max_terms={max_terms} with {limit:g} {what}. "
            f"Pass max_terms={max(1, int(np.ceil(limit)) - 1)} or less, or None."
        )
    return int(max_terms)
