"""Which columns predict, and which only remember? (Sabato & Shalev-Shwartz 2008)."""

from holdtrue.categories.audit import audit_importances, ginger_score
from holdtrue.categories.encoder import GingerEncoder
from holdtrue.categories.estimator import GingerSelector
from holdtrue.categories.forest import GingerForestClassifier, GingerForestRegressor
from holdtrue.categories.one_column import OneColumnClassifier
from holdtrue.categories.ranking import Ranking, rank_columns
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
