"""Choose the features, sources and model sizes that hold on data nobody has seen."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

# Names are loaded when first used: scikit-learn alone brings in pandas where it is installed.
_HOME = {
    "Counts": "holdfast.sums",
    "CriteriaDisplay": "holdfast.report.plots",
    "DomainsDisplay": "holdfast.report.domain_plots",
    "GingerForestClassifier": "holdfast.categories",
    "GingerSelector": "holdfast.categories",
    "GingerTreeClassifier": "holdfast.categories",
    "GreedyTLClassifier": "holdfast.sources",
    "GreedyTLRegressor": "holdfast.sources",
    "Moments": "holdfast.sums",
    "NestedRegressor": "holdfast.model_size",
    "PathDisplay": "holdfast.report.plots",
    "RankingDisplay": "holdfast.report.plots",
    "SelectionPath": "holdfast.path",
    "SimilarityLearner": "holdfast.domains",
    "SourcePool": "holdfast.sources",
    "TGreedyClassifier": "holdfast.domains",
    "TGreedyRegressor": "holdfast.domains",
    "TGreedySelector": "holdfast.domains",
    "TransferDisplay": "holdfast.report.source_plots",
    "TreeDisplay": "holdfast.report.trees",
    "audit_importances": "holdfast.categories",
    "compare_criteria": "holdfast.report.plots",
    "export_text": "holdfast.report.trees",
    "rank_columns": "holdfast.categories",
    "transfer_matrix": "holdfast.report.source_plots",
}
__all__ = list(_HOME)

if TYPE_CHECKING:
    from holdfast.categories import (
        GingerForestClassifier,
        GingerSelector,
        GingerTreeClassifier,
        audit_importances,
        rank_columns,
    )
    from holdfast.domains import (
        SimilarityLearner,
        TGreedyClassifier,
        TGreedyRegressor,
        TGreedySelector,
    )
    from holdfast.model_size import NestedRegressor
    from holdfast.path import SelectionPath
    from holdfast.report.domain_plots import DomainsDisplay
    from holdfast.report.plots import CriteriaDisplay, PathDisplay, RankingDisplay, compare_criteria
    from holdfast.report.source_plots import TransferDisplay, transfer_matrix
    from holdfast.report.trees import TreeDisplay, export_text
    from holdfast.sources import GreedyTLClassifier, GreedyTLRegressor, SourcePool
    from holdfast.sums import Counts, Moments


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
