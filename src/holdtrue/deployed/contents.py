"""What the file of a saved model holds: what predicts, without what chose it, in known types.

A path, its evidence and the folds of a search explain a fit and name rows of it; none of that is
needed to predict, and none of it leaves with the model.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from holdtrue.compare.tuned import GroupTuned, SplitLogistic
from holdtrue.errors import InputError

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
    if isinstance(estimator, (GridSearchCV, SplitLogistic)):
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


# --- types that a file may hold: those of our own models, and no other ----------------------------

_BOOSTING = "sklearn.ensemble._hist_gradient_boosting"
_NO_CHILD = -1  # of a leaf in scikit-learn's trees
_TYPES = {  # by module
    "builtins": "bytes dict list str tuple",
    "holdtrue.categories.encoder": "GingerEncoder",
    "holdtrue.compare.average": "DomainAverageClassifier DomainAverageRegressor",
    "holdtrue.compare.tuned": "PathElasticNet SplitRidge",
    "holdtrue.deployed.model": "SavedModel",
    "holdtrue.deployed.promise": "Promise",
    "holdtrue.domains.estimator": "TGreedyClassifier TGreedyRegressor",
    "holdtrue.domains.steady_estimator": "SteadyRidgeClassifier SteadyRidgeRegressor",
    "holdtrue.model_size.average": "Average Curve",
    "holdtrue.model_size.bases": "ColumnBasis GaussianBasis InputMap IntervalBasis "
    "PrincipalComponents RadialBasis",
    "holdtrue.model_size.bayes": "Posterior",
    "holdtrue.model_size.estimator": "NestedRegressor",
    "holdtrue.sources.estimator": "GreedyTLClassifier GreedyTLRegressor",
    "holdtrue.tables.column_summary": "FeatureColumn",
    "holdtrue.tables.encoder": "TableEncoder",
    "numpy": "float64 int64 ndarray uint64",
    # In scikit-learn 1.7
    "_loss": "CyHalfBinomialLoss CyHalfMultinomialLoss CyHalfSquaredError",
    "sklearn._loss._loss": "CyHalfBinomialLoss CyHalfMultinomialLoss CyHalfSquaredError",
    "sklearn._loss.link": "IdentityLink Interval LogitLink MultinomialLogit",
    "sklearn._loss.loss": "HalfBinomialLoss HalfMultinomialLoss HalfSquaredError",
    "sklearn.dummy": "DummyClassifier DummyRegressor",
    f"{_BOOSTING}.binning": "_BinMapper",
    f"{_BOOSTING}.gradient_boosting": "HistGradientBoostingClassifier "
    "HistGradientBoostingRegressor",
    f"{_BOOSTING}.predictor": "TreePredictor",
    "sklearn.ensemble._forest": "RandomForestClassifier RandomForestRegressor",
    "sklearn.linear_model._coordinate_descent": "ElasticNetCV",
    "sklearn.linear_model._logistic": "LogisticRegression",
    "sklearn.linear_model._ridge": "RidgeCV",
    "sklearn.pipeline": "Pipeline",
    "sklearn.preprocessing._data": "StandardScaler",
    "sklearn.preprocessing._label": "LabelEncoder",
    "sklearn.tree._classes": "DecisionTreeClassifier DecisionTreeRegressor",
    "sklearn.tree._tree": "Tree",
}
KNOWN_TYPES = frozenset(
    f"{module}.{name}" for module, names in _TYPES.items() for name in names.split()
)


def check_trees(model: Any) -> None:
    """Refuse boosted trees and forests that scikit-learn's compiled loops could not walk.

    They follow the numbers in a tree without looking whether these lie inside it, and without an
    end where they lead back.
    """
    for left, right, features, is_inner in _trees(model):
        inner = np.flatnonzero(is_inner)
        children = np.stack([left[inner], right[inner]]).astype(np.int64)
        features = features[inner].astype(np.int64)
        if (
            not len(is_inner)
            or (children <= inner).any()
            or (children >= len(is_inner)).any()
            or (features < 0).any()
            or (features >= model.n_features_in_).any()
        ):
            raise InputError("the model is damaged: a tree leads out of itself.")


def _trees(model: Any) -> Iterator[tuple[np.ndarray, ...]]:
    """Of each tree and node: its children, its feature, and whether it has any of these."""
    for stage in getattr(model, "_predictors", ()):
        for boosted in stage:
            nodes = boosted.nodes
            if nodes["is_categorical"].any():
                raise InputError("the model is damaged: a tree has categories.")
            yield nodes["left"], nodes["right"], nodes["feature_idx"], nodes["is_leaf"] == 0
    for grown in getattr(model, "estimators_", [model]):
        tree = getattr(grown, "tree_", None)
        if tree is not None:
            if grown.n_features_in_ != model.n_features_in_:
                raise InputError("the model is damaged: its trees are of other columns.")
            if tree.node_count != tree.capacity:  # the views below have the length that it names
                raise InputError("the model is damaged: a tree leads out of itself.")
            left = tree.children_left
            yield left, tree.children_right, tree.feature, left != _NO_CHILD
