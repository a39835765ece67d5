"""Which columns predict, and which only remember? (Sabato & Shalev-Shwartz 2008)."""

from holdfast.categories.tree_estimator import GingerForestClassifier, GingerTreeClassifier

__all__ = ["GingerForestClassifier", "GingerTreeClassifier"]
