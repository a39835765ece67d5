"""Which columns predict, and which only remember? (Sabato & Shalev-Shwartz 2008)."""

from holdtrue.categories.estimator import GingerSelector
from holdtrue.categories.ranking import audit_importances, ginger_score, rank_columns
from holdtrue.categories.rules import OneColumnClassifier
from holdtrue.categories.tree_estimator import GingerForestClassifier, GingerTreeClassifier

__all__ = [
    "GingerForestClassifier",
    "GingerSelector",
    "GingerTreeClassifier",
    "OneColumnClassifier",
    "audit_importances",
    "ginger_score",
    "rank_columns",
]
