"""Which columns predict, and which only remember? (Sabato & Shalev-Shwartz 2008)."""

from holdfast.categories.estimator import GingerSelector
from holdfast.categories.ranking import audit_importances, ginger_score, rank_columns
from holdfast.categories.rules import OneColumnClassifier
from holdfast.categories.tree_estimator import GingerForestClassifier, GingerTreeClassifier

__all__ = [
    "GingerForestClassifier",
    "GingerSelector",
    "GingerTreeClassifier",
    "OneColumnClassifier",
    "audit_importances",
    "ginger_score",
    "rank_columns",
]
