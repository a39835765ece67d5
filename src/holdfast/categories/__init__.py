"""Which columns predict, and which only remember? (Sabato & Shalev-Shwartz 2008)."""

from holdfast.categories.estimator import GingerSelector
from holdfast.categories.ranking import audit_importances, ginger_score, rank_columns

__all__ = ["GingerSelector", "audit_importances", "ginger_score", "rank_columns"]
