"""Which features will still work at the next hospital, user, year? (T-Greedy)."""

from holdfast.domains.estimator import TGreedyClassifier, TGreedyRegressor, TGreedySelector
from holdfast.domains.similarity import SimilarityLearner

__all__ = ["SimilarityLearner", "TGreedyClassifier", "TGreedyRegressor", "TGreedySelector"]
