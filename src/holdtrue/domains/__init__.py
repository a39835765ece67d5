"""Which features will still work at the next hospital, user, year? (T-Greedy)."""

from holdtrue.domains.estimator import TGreedyClassifier, TGreedyRegressor, TGreedySelector
from holdtrue.domains.similarity import SimilarityLearner
from holdtrue.domains.steady_estimator import SteadyRidgeClassifier, SteadyRidgeRegressor

__all__ = [
    "SimilarityLearner",
    "SteadyRidgeClassifier",
    "SteadyRidgeRegressor",
    "TGreedyClassifier",
    "TGreedyRegressor",
    "TGreedySelector",
]
