"""What predicts, without what chose it: estimators as they are saved.

A path, its evidence and the folds of a search explain a fit and name rows of it; none of that is
needed to predict, and none of it leaves with the model.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from holdtrue.compare.field import GroupTuned

# Attributes of our estimators that `predict` and `transform` read.
_PREDICT = {
    "_average", "_calibrations", "_encodings", "_kept", "_settings", "basis_", "classes_", "coef_",
    "intercept_", "models_", "n_features_in_", "n_terms_", "pairs_", "source_names_", "strengths_",
    "target_type_", "temperature_", "weights_",
}  # fmt: skip
# Attributes of scikit-learn's estimators that tell of rows and folds.
_TELL = {"_feature_subsample_rng", "alphas_", "cv_results_", "feature_names_in_", "mse_path_"}


def slim(estimator: Any) -> Any:
    """A fitted estimator that predicts the same, without what explains the fit."""
    if isinstance(estimator, GroupTuned):
        return slim(estimator.estimator_)
    if isinstance(estimator, GridSearchCV):
        return slim(estimator.best_estimator_)
    twin = copy.copy(estimator)
    if isinstance(twin, Pipeline):
        twin.steps = [(name, slim(step)) for name, step in twin.steps]
        return twin
    if type(twin).__module__.startswith("holdtrue."):
        _forget(twin, set(vars(twin)) - _PREDICT - set(twin.get_params(deep=False)))
        if hasattr(twin, "models_"):
            twin.models_ = {name: slim(model) for name, model in twin.models_.items()}
        return twin
    _forget(twin, _TELL)
    if hasattr(twin, "cv"):
        twin.cv = None
    return twin


def _forget(estimator: Any, names: set[str]) -> None:
    """Remove these attributes where they are."""
    for name in names & set(vars(estimator)):
        delattr(estimator, name)


def on_needed_columns(estimator: Any, columns: Sequence[Any]) -> tuple[Any, list[Any]]:
    """A slim estimator of ours, and its columns without those whose features all have weight 0.

    ``columns`` are in the order of the estimator's features; those that were left out have none. At
    least one is left, because a table without columns has no rows.
    """
    columns = [column for column in columns if column.features]
    if not (hasattr(estimator, "coef_") and type(estimator).__module__.startswith("holdtrue.")):
        return estimator, columns
    column_of = np.repeat(np.arange(len(columns)), [len(c.features) for c in columns])
    needed = np.unique(column_of[np.atleast_2d(estimator.coef_).any(axis=0)])
    needed = needed if len(needed) else np.array([0])
    kept = np.flatnonzero(np.isin(column_of, needed))
    return with_features(estimator, kept), [columns[j] for j in needed]


def with_features(estimator: Any, kept: np.ndarray) -> Any:
    """A slim linear estimator that is given some of its features only; the others have weight 0."""
    twin = copy.copy(estimator)
    twin.coef_ = np.ascontiguousarray(estimator.coef_[..., kept])
    twin.n_features_in_ = len(kept)
    return twin


def on_used_sources(model: Any) -> tuple[Any, list[Path]]:
    """GreedyTL, slim, on its columns and the sources in the files that it uses; and these files."""
    n_columns = model.n_features_in_
    used = np.flatnonzero(np.atleast_2d(model.coef_)[:, n_columns:].any(axis=0))
    files, in_files = model._pool.files_of(used)
    twin = with_features(slim(model), np.append(np.arange(n_columns), n_columns + in_files))
    twin.n_features_in_, twin.sources = n_columns, ()
    twin.source_names_ = [model.source_names_[j] for j in in_files]
    return twin, files


def parts_of(estimator: Any) -> list[Any]:
    """The estimator and those that it is made of."""
    inner = [step for _, step in getattr(estimator, "steps", ())]
    inner += getattr(estimator, "models_", {}).values()
    return [estimator, *(part for each in inner for part in parts_of(each))]
