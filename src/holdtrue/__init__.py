"""Choose the features, sources and model sizes that hold on data nobody has seen."""

from __future__ import annotations

# Nothing is imported here: an interruption before the command line can catch it is a traceback.
TYPE_CHECKING = False
__version__ = "0.2.0"

# Names are loaded when first used: scikit-learn alone brings in pandas where it is installed.
_HOME = {
    "Comparison": "holdtrue.compare",
    "DomainAverageClassifier": "holdtrue.compare",
    "DomainAverageRegressor": "holdtrue.compare",
    "compare_models": "holdtrue.compare",
    "Counts": "holdtrue.sums",
    "CriteriaDisplay": "holdtrue.model_size.display",
    "DomainsDisplay": "holdtrue.domains.display",
    "GingerEncoder": "holdtrue.categories",
    "GingerForestClassifier": "holdtrue.categories",
    "GingerForestRegressor": "holdtrue.categories",
    "GingerSelector": "holdtrue.categories",
    "GingerTreeClassifier": "holdtrue.categories",
    "GingerTreeRegressor": "holdtrue.categories",
    "GreedyTLClassifier": "holdtrue.sources",
    "GreedyTLRegressor": "holdtrue.sources",
    "Moments": "holdtrue.sums",
    "NestedRegressor": "holdtrue.model_size",
    "PathDisplay": "holdtrue.display",
    "Profile": "holdtrue.sums",
    "Ranking": "holdtrue.categories",
    "RankingDisplay": "holdtrue.categories.display",
    "SavedModel": "holdtrue.deployed",
    "SelectionPath": "holdtrue.path",
    "SimilarityLearner": "holdtrue.domains",
    "SourcePool": "holdtrue.sources",
    "SteadyRidgeClassifier": "holdtrue.domains",
    "SteadyRidgeRegressor": "holdtrue.domains",
    "TableEncoder": "holdtrue.tables",
    "TGreedyClassifier": "holdtrue.domains",
    "TGreedyRegressor": "holdtrue.domains",
    "TGreedySelector": "holdtrue.domains",
    "TransferDisplay": "holdtrue.sources.display",
    "TreeDisplay": "holdtrue.categories.display",
    "audit_importances": "holdtrue.categories",
    "deploy": "holdtrue.deployed",
    "compare_criteria": "holdtrue.model_size.display",
    "export_text": "holdtrue.categories.display",
    "load_model": "holdtrue.deployed",
    "rank_columns": "holdtrue.categories",
    "transfer_matrix": "holdtrue.sources.display",
}
__all__ = list(_HOME)

if TYPE_CHECKING:  # `X as X` exports a name to type checkers
    from typing import Any

    from holdtrue.categories import (
        GingerEncoder as GingerEncoder,
        GingerForestClassifier as GingerForestClassifier,
        GingerForestRegressor as GingerForestRegressor,
        GingerSelector as GingerSelector,
        GingerTreeClassifier as GingerTreeClassifier,
        GingerTreeRegressor as GingerTreeRegressor,
        Ranking as Ranking,
        audit_importances as audit_importances,
        rank_columns as rank_columns,
    )
    from holdtrue.categories.display import (
        RankingDisplay as RankingDisplay,
        TreeDisplay as TreeDisplay,
        export_text as export_text,
    )
    from holdtrue.deployed import (
        SavedModel as SavedModel,
        deploy as deploy,
        load_model as load_model,
    )
    from holdtrue.display import PathDisplay as PathDisplay
    from holdtrue.domains import (
        SimilarityLearner as SimilarityLearner,
        SteadyRidgeClassifier as SteadyRidgeClassifier,
        SteadyRidgeRegressor as SteadyRidgeRegressor,
        TGreedyClassifier as TGreedyClassifier,
        TGreedyRegressor as TGreedyRegressor,
        TGreedySelector as TGreedySelector,
    )
    from holdtrue.domains.display import DomainsDisplay as DomainsDisplay
    from holdtrue.model_size import NestedRegressor as NestedRegressor
    from holdtrue.model_size.display import (
        CriteriaDisplay as CriteriaDisplay,
        compare_criteria as compare_criteria,
    )
    from holdtrue.path import SelectionPath as SelectionPath
    from holdtrue.sources import (
        GreedyTLClassifier as GreedyTLClassifier,
        GreedyTLRegressor as GreedyTLRegressor,
        SourcePool as SourcePool,
    )
    from holdtrue.sources.display import (
        TransferDisplay as TransferDisplay,
        transfer_matrix as transfer_matrix,
    )
    from holdtrue.sums import Counts as Counts, Moments as Moments, Profile as Profile
    from holdtrue.tables import TableEncoder as TableEncoder


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'holdtrue' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
