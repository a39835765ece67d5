"""Choose the features, sources and model sizes that hold on data nobody has seen."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0.dev0"

# Names are loaded when first used: scikit-learn alone brings in pandas where it is installed.
_HOME = {
    "Counts": "holdtrue.sums",
    "CriteriaDisplay": "holdtrue.report.plots",
    "DomainsDisplay": "holdtrue.report.domain_plots",
    "GingerForestClassifier": "holdtrue.categories",
    "GingerSelector": "holdtrue.categories",
    "GingerTreeClassifier": "holdtrue.categories",
    "GreedyTLClassifier": "holdtrue.sources",
    "GreedyTLRegressor": "holdtrue.sources",
    "Moments": "holdtrue.sums",
    "NestedRegressor": "holdtrue.model_size",
    "PathDisplay": "holdtrue.report.plots",
    "RankingDisplay": "holdtrue.report.plots",
    "SelectionPath": "holdtrue.path",
    "SimilarityLearner": "holdtrue.domains",
    "SourcePool": "holdtrue.sources",
    "TGreedyClassifier": "holdtrue.domains",
    "TGreedyRegressor": "holdtrue.domains",
    "TGreedySelector": "holdtrue.domains",
    "TransferDisplay": "holdtrue.report.source_plots",
    "TreeDisplay": "holdtrue.report.trees",
    "audit_importances": "holdtrue.categories",
    "compare_criteria": "holdtrue.report.plots",
    "export_text": "holdtrue.report.trees",
    "rank_columns": "holdtrue.categories",
    "transfer_matrix": "holdtrue.report.source_plots",
}
__all__ = list(_HOME)

if TYPE_CHECKING:
    from holdtrue.categories import (
        GingerForestClassifier,
        GingerSelector,
        GingerTreeClassifier,
        audit_importances,
        rank_columns,
    )
    from holdtrue.domains import (
        SimilarityLearner,
        TGreedyClassifier,
        TGreedyRegressor,
        TGreedySelector,
    )
    from holdtrue.model_size import NestedRegressor
    from holdtrue.path import SelectionPath
    from holdtrue.report.domain_plots import DomainsDisplay
    from holdtrue.report.plots import CriteriaDisplay, PathDisplay, RankingDisplay, compare_criteria
    from holdtrue.report.source_plots import TransferDisplay, transfer_matrix
    from holdtrue.report.trees import TreeDisplay, export_text
    from holdtrue.sources import GreedyTLClassifier, GreedyTLRegressor, SourcePool
    from holdtrue.sums import Counts, Moments


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'holdtrue' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
