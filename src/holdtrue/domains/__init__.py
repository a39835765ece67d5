"""Which features will still work at the next hospital, user, year? (T-Greedy)."""

from holdtrue.domains.estimator import TGreedyClassifier, TGreedyRegressor, TGreedySelector
from holdtrue.domains.similarity import SimilarityLearner

__all__ = ["SimilarityLearner", "TGreedyClassifier", "TGreedyRegressor", "TGreedySelector"]
