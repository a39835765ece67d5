"""Which columns predict, and which only remember? (Sabato & Shalev-Shwartz 2008)."""

from holdfast.categories.estimator import GingerSelector

__all__ = ["GingerSelector"]
