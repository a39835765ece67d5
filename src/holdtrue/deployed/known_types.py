"""Types that the file of a saved model may hold: those of our own models, and no other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from holdtrue.errors import InputError

_BOOSTING = "sklearn.ensemble._hist_gradient_boosting"
_NO_CHILD = -1  # of a leaf in scikit-learn's trees
_TYPES = {  # by module
    "builtins": "bytes dict list str tuple",
    "holdtrue.categories.encoder": "GingerEncoder",
    "holdtrue.compare.average": "DomainAverageClassifier DomainAverageRegressor",
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
