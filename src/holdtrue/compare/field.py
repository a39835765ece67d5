"""Who takes part in a contest, and how a model is fitted with the groups of its rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from holdtrue.compare.tuned import GroupTuned, PathElasticNet, SplitLogistic, SplitRidge, taken_by
from holdtrue.domains.base import DomainEstimator
from holdtrue.errors import InputError, InputTypeError, did_you_mean, first_line, named, speaks
from holdtrue.validation import check_weights, eager_frame, fresh_copy

__all__ = [
    "NULL",
    "Rows",
    "default_models",
    "features_used",
    "fit_with_groups",
    "named_models",
    "null_model",
    "outputs_of",
    "timed_fit",
]

# At domains not seen, 50 trees err less than 100, in half the time (experiments/field_settings.py).
_BOOSTING: dict[str, Any] = {"max_iter": 50, "random_state": 0}
# Few leaves, so that a saved forest of a large table stays small.
_FOREST: dict[str, Any] = {"min_samples_leaf": 3, "max_leaf_nodes": 256, "random_state": 0}
NULL = "(no model)"  # name of the null model beside those of the field


@speaks
def default_models(*, is_classes: bool) -> dict[str, Any]:
    """A sensible field for tables of numbers, by name; linear models tuned by domain, and trees.

    Parameters
    ----------
    is_classes : bool
        Whether classes are predicted, or a number.
    """
    from sklearn.ensemble import (
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
    )
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from holdtrue import domains

    if is_classes:
        logistic = make_pipeline(StandardScaler(), SplitLogistic(np.logspace(-4, 2, 7)))
        return {
            "majority": null_model(is_classes=True),
            "logistic": GroupTuned(logistic, "splitlogistic__cv"),
            "boosting": HistGradientBoostingClassifier(**_BOOSTING),
            "forest": RandomForestClassifier(**_FOREST),
            "t_greedy": domains.TGreedyClassifier(),
            "steady_ridge": domains.SteadyRidgeClassifier(),
        }
    ridge = make_pipeline(StandardScaler(), SplitRidge(np.logspace(-3, 5, 17)))
    elastic = make_pipeline(StandardScaler(), PathElasticNet(l1_ratio=[0.2, 0.8], max_iter=5000))
    return {
        "mean": null_model(is_classes=False),
        "ridge": GroupTuned(ridge, "splitridge__cv"),
        "elastic_net": GroupTuned(elastic, "pathelasticnet__cv"),
        "boosting": HistGradientBoostingRegressor(**_BOOSTING),
        "forest": RandomForestRegressor(max_features=1 / 3, **_FOREST),
        "t_greedy": domains.TGreedyRegressor(),
        "steady_ridge": domains.SteadyRidgeRegressor(),
    }


@dataclass(frozen=True, eq=False)
class Rows:
    """The data of a contest, row by row."""

    X: Any
    y: np.ndarray
    groups: np.ndarray | None
    weight: Any = None  # ndarray of shape (n_rows,), or none
    # ndarray of int, shape (n_rows,), or none: domain or row whose error the row is part of
    unit: Any = None

    def take(self, at: np.ndarray) -> Rows:
        """These rows alone."""
        optional = (self.groups, self.weight, self.unit)
        taken = (None if of is None else of[at] for of in optional)
        return Rows(_safe_indexing(self.X, at), self.y[at], *taken)

    @property
    def n_columns(self) -> int:
        """Number of columns of X; 1 where X has a single dimension, such as texts."""
        shape = np.shape(self.X)
        return shape[1] if len(shape) > 1 else 1

    @property
    def domains(self) -> np.ndarray:
        """Domain of each row, from 0; without groups each row."""
        if self.groups is None:
            return np.arange(len(self.y))
        return np.unique(self.groups, return_inverse=True)[1]

    @property
    def used(self) -> np.ndarray:
        """Which rows have a weight above 0, shape (n_rows,)."""
        return check_weights(self.weight, len(self.y)) > 0

    def of_positive_weight(self) -> Rows:
        """The rows whose weight is above 0, the weights checked."""
        if self.weight is None:
            return self
        weight = check_weights(self.weight, len(self.y))
        rows = replace(self, weight=weight).take(np.flatnonzero(weight))
        if weight.sum() < 2:
            raise InputError(
                f"needs at least 2 rows. Got sample_weight that sums to {weight.sum():g}: weights "
                "are repetitions, so do not scale them to 1."
            )
        return rows


def null_model(*, is_classes: bool) -> Any:
    """The empty selection as a model: the most frequent class, or the mean."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    return DummyClassifier(strategy="prior") if is_classes else DummyRegressor()


def named_models(models: Any, *, is_classes: bool) -> dict[str, Any]:
    """Models by name, from a mapping, from names of the default field, or all of that for None."""
    if isinstance(models, Mapping):
        field = {str(name): model for name, model in models.items()}
    elif models is None:
        field = default_models(is_classes=is_classes)
    else:
        known = default_models(is_classes=is_classes)
        names = [models] if isinstance(models, str) or hasattr(models, "fit") else list(models)
        for name in names:
            if not isinstance(name, str):
                raise InputTypeError(
                    "models must be a dict of name to estimator, or names of the default field. "
                    f"Got {name!r} without a name. Pass {{'mine': {name!r}}}."
                )
            if name not in known:
                raise InputError(
                    f"no model {name!r} in the default field of {', '.join(known)}. For others "
                    "pass a dict of name to estimator, or --model to the command."
                    f"{did_you_mean(name, known)}"
                )
        field = {name: known[name] for name in names}
    if not field:
        raise InputError("needs at least one model. Got none. Pass a dict of name to estimator.")
    for name, model in field.items():
        if not (hasattr(model, "fit") and hasattr(model, "predict")) or isinstance(model, type):
            raise InputTypeError(
                f"model {name!r} must be an estimator with fit and predict. Got {model!r}."
            )
        if is_classifier(model) is not is_classes and not isinstance(model, Pipeline):
            wanted, other = ("classifier", "number") if is_classes else ("regressor", "class")
            raise InputError(
                f"model {name!r} must be a {wanted}, as y holds "
                f"{'classes' if is_classes else 'numbers'}. {type(model).__name__} predicts a "
                f"{other}. Pass target_type if y is read wrongly."
            )
    return field


def fit_with_groups(
    model: Any,
    X: Any,
    y: Any,
    groups: Any,
    name: str | None = None,
    sample_weight: Any = None,
    *,
    scored: bool = True,
) -> Any:
    """A fresh copy of the model, fitted; groups and weights go to the steps that take them.

    Weights are refused where the model, or the last step of a pipeline, does not take them. Errors
    call the model by its ``name``, or its type. ``scored=False``: the fit need only predict.
    """
    model = fresh_copy(model)
    # Where parts are left out of two or three domains, one may be left: its rows are all there is.
    if groups is not None and len(np.unique(groups)) < 2:
        groups = None
    # A subclass of these may have a fit of its own.
    is_ours = isinstance(model, DomainEstimator) and type(model).__module__.startswith("holdtrue.")
    fit = model._fit_unscored if is_ours and not scored else model.fit
    given = taken_by(model, groups=groups, sample_weight=sample_weight)
    last = model[-1] if isinstance(model, Pipeline) else model
    if sample_weight is not None and not taken_by(last, sample_weight=sample_weight):
        raise InputError(
            f"model {name or type(model).__name__!r} does not take sample_weight. Leave it out, "
            "or pass rows of whole weights as repeated rows."
        )
    # What a model says about a fit without some parts is not about the fit that the user gets.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return fit(X, y, **given)
        except (ValueError, TypeError) as error:
            reason = first_line(error).rstrip(".")
            raise InputError(
                f"model {name or type(model).__name__!r} cannot be fitted: {reason}.{_text_in(X)} "
                "Leave the model out, or mend the rows."
            ) from error


def outputs_of(
    name: str, method: Callable[[Any], Any], X: Any, *, single: bool = True
) -> np.ndarray:
    """What a method of a fitted model says of the rows of X, shape (n_rows, n_outputs).

    ``single``: whether it must be one output.
    """
    try:
        output = np.asarray(method(X))
    except (ValueError, TypeError) as error:
        reason = first_line(error).rstrip(".")
        raise InputError(
            f"model {name!r} cannot predict rows that it has not seen: {reason}. Leave the model "
            "out, or mend the rows."
        ) from error
    n_rows = _num_samples(X)
    if output.shape[:1] != (n_rows,) or (single and output.size != n_rows):
        raise InputError(
            f"model {name!r} must predict {n_rows} rows, shape ({n_rows},). Got shape "
            f"{output.shape}. Leave it out, or mend its {getattr(method, '__name__', 'method')}."
        )
    return output.reshape(n_rows, -1)


def timed_fit(
    name: str, model: Any, rows: Rows, *, is_classes: bool, scored: bool = False
) -> tuple[Any, float]:
    """A fresh copy of the model fitted to the rows, and the seconds that took.

    Where all rows are of one class, which few models can fit, the null model is fitted instead.
    """
    if is_classes and (rows.y == rows.y[0]).all():
        model = null_model(is_classes=True)
    start = time.perf_counter()
    fitted = fit_with_groups(model, rows.X, rows.y, rows.groups, name, rows.weight, scored=scored)
    return fitted, time.perf_counter() - start


def _text_in(X: Any) -> str:
    """Sentence that names the columns of a frame that are not numbers; empty if there are none."""
    frame = eager_frame(X)  # of names that repeat the model's own words tell
    schema = {} if frame is None else frame.schema
    text = [
        name for name, dtype in schema.items() if not (dtype.is_numeric() or dtype == nw.Boolean)
    ]
    advice = "Encode them, for example with TableEncoder, or leave them out."
    return f" Not numbers: {named(text)}. {advice}" if text else ""


def features_used(model: Any, n_columns: int) -> int:
    """Number of features that a fitted model uses; all columns where the model does not say."""
    for part in ("estimator_", "best_estimator_"):
        if _is_fitted(getattr(model, part, None)):
            return features_used(getattr(model, part), n_columns)
    if isinstance(model, Pipeline):
        return features_used(model[-1], n_columns)
    if type(model).__name__.startswith("Dummy"):
        return 0
    if hasattr(model, "support_") and np.asarray(model.support_).dtype == bool:
        return int(np.sum(model.support_))
    coefficients = getattr(model, "coef_", None)
    if coefficients is not None:
        return int(np.count_nonzero(np.atleast_2d(coefficients).any(axis=0)))
    return int(getattr(model, "n_features_in_", n_columns))


def _is_fitted(model: Any) -> bool:
    """Whether it is a fitted estimator; the ``estimator_`` of a forest is an unfitted tree."""
    try:
        check_is_fitted(model)
    except (NotFittedError, TypeError):
        return False
    return True
