"""Which trained models help a new task? (Kuzborskij, Orabona & Caputo 2017)."""

from holdtrue.sources.candidates import candidate_count
from holdtrue.sources.estimator import GreedyTLClassifier, GreedyTLRegressor
from holdtrue.sources.pool import SourcePool
from holdtrue.sources.rivals import (
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
