"""Which trained models help a new task? (Kuzborskij, Orabona & Caputo 2017)."""

from holdfast.sources.estimator import GreedyTLClassifier, GreedyTLRegressor
from holdfast.sources.kernel import candidate_count
from holdfast.sources.pool import SourcePool

__all__ = ["GreedyTLClassifier", "GreedyTLRegressor", "SourcePool", "candidate_count"]
