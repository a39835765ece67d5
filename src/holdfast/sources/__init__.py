"""Which trained models help a new task? (Kuzborskij, Orabona & Caputo 2017)."""

from holdfast.sources.estimator import GreedyTLClassifier, GreedyTLRegressor
from holdfast.sources.kernel import candidate_count
from holdfast.sources.pool import SourcePool
from holdfast.sources.rivals import (
    DAM,
    AverageKT,
    BestSource,
    ForwardRegression,
    MultiKT,
    RegularizedLeastSquares,
)

__all__ = [
    "AverageKT",
    "BestSource",
    "DAM",
    "ForwardRegression",
    "GreedyTLClassifier",
    "GreedyTLRegressor",
    "MultiKT",
    "RegularizedLeastSquares",
    "SourcePool",
    "candidate_count",
]
