"""Choose the features, sources and model sizes that hold on data nobody has seen."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

# Names are loaded when first used: scikit-learn alone brings in pandas where it is installed.
_HOME = {
    "CriteriaDisplay": "holdfast.report.plots",
    "DomainsDisplay": "holdfast.report.domain_plots",
    "Moments": "holdfast.sums",
    "NestedRegressor": "holdfast.model_size",
    "PathDisplay": "holdfast.report.plots",
    "SelectionPath": "holdfast.path",
    "SimilarityLearner": "holdfast.domains",
    "TGreedyClassifier": "holdfast.domains",
    "TGreedyRegressor": "holdfast.domains",
    "TGreedySelector": "holdfast.domains",
    "compare_criteria": "holdfast.report.plots",
}
__all__ = [
    "CriteriaDisplay",
    "DomainsDisplay",
    "Moments",
    "NestedRegressor",
    "PathDisplay",
    "SelectionPath",
    "SimilarityLearner",
    "TGreedyClassifier",
    "TGreedyRegressor",
    "TGreedySelector",
    "compare_criteria",
]

if TYPE_CHECKING:
    from holdfast.domains import (
        SimilarityLearner,
        TGreedyClassifier,
        TGreedyRegressor,
        TGreedySelector,
    )
    from holdfast.model_size import NestedRegressor
    from holdfast.path import SelectionPath
    from holdfast.report.domain_plots import DomainsDisplay
    from holdfast.report.plots import CriteriaDisplay, PathDisplay, compare_criteria
    from holdfast.sums import Moments


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
