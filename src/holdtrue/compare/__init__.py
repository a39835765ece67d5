"""Models on the same left-out domains or rows: the contest, its verdict, and the average."""

from holdtrue.compare.average import DomainAverageClassifier, DomainAverageRegressor
from holdtrue.compare.comparison import Comparison
from holdtrue.compare.contest import compare_models
from holdtrue.compare.field import default_models

__all__ = [
    "Comparison",
    "DomainAverageClassifier",
    "DomainAverageRegressor",
    "compare_models",
    "default_models",
]
