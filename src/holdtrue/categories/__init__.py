"""Which columns predict, and which only remember? (Sabato & Shalev-Shwartz 2008)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from holdtrue.categories.rank import rank_columns
from holdtrue.categories.ranking import Ranking

if TYPE_CHECKING:
    from holdtrue.categories.audit import audit_importances, ginger_score
    from holdtrue.categories.encoder import GingerEncoder
    from holdtrue.categories.estimator import GingerSelector
    from holdtrue.categories.forest import GingerForestClassifier, GingerForestRegressor
    from holdtrue.categories.one_column import OneColumnClassifier
    from holdtrue.categories.tree_estimator import GingerTreeClassifier, GingerTreeRegressor

__all__ = [
    "GingerEncoder",
    "GingerForestClassifier",
    "GingerForestRegressor",
    "GingerSelector",
    "GingerTreeClassifier",
    "GingerTreeRegressor",
    "OneColumnClassifier",
    "Ranking",
    "audit_importances",
    "ginger_score",
    "rank_columns",
]
_HOME = {
    "GingerEncoder": "encoder",
    "GingerForestClassifier": "forest",
    "GingerForestRegressor": "forest",
    "GingerSelector": "estimator",
    "GingerTreeClassifier": "tree_estimator",
    "GingerTreeRegressor": "tree_estimator",
    "OneColumnClassifier": "one_column",
    "audit_importances": "audit",
    "ginger_score": "audit",
}


def __getattr__(name: str) -> Any:
    """What needs scikit-learn is loaded when first used: columns are ranked without."""
    if name not in _HOME:
        raise AttributeError(f"module 'holdtrue.categories' has no attribute {name!r}")
    return getattr(import_module(f"holdtrue.categories.{_HOME[name]}"), name)
