"""Choose the features, sources and model sizes that hold on data nobody has seen."""

from __future__ import annotations

# Nothing is imported here: an interruption before the command line can catch it is a traceback.
TYPE_CHECKING = False
__version__ = "0.2.0"

# Names are loaded when first used: scikit-learn alone brings in pandas where it is installed.
_NAMES = {
    "holdtrue.categories": (
        "GingerEncoder",
        "GingerForestClassifier",
        "GingerForestRegressor",
        "GingerSelector",
        "GingerTreeClassifier",
        "GingerTreeRegressor",
        "Ranking",
        "audit_importances",
        "rank_columns",
    ),
    "holdtrue.categories.display": ("RankingDisplay", "TreeDisplay", "export_text"),
    "holdtrue.compare": (
        "Comparison",
        "DomainAverageClassifier",
        "DomainAverageRegressor",
        "compare_models",
    ),
    "holdtrue.deployed": ("SavedModel", "deploy", "load_model"),
    "holdtrue.domains": (
        "SimilarityLearner",
        "SteadyRidgeClassifier",
        "SteadyRidgeRegressor",
        "TGreedyClassifier",
        "TGreedyRegressor",
        "TGreedySelector",
    ),
    "holdtrue.domains.display": ("DomainsDisplay",),
    "holdtrue.model_size": ("NestedRegressor",),
    "holdtrue.model_size.display": ("CriteriaDisplay", "compare_criteria"),
    "holdtrue.path": ("PathDisplay", "SelectionPath"),
    "holdtrue.sources": ("GreedyTLClassifier", "GreedyTLRegressor", "SourcePool"),
    "holdtrue.sources.display": ("TransferDisplay", "transfer_matrix"),
    "holdtrue.sums": ("Counts", "Moments", "Profile"),
    "holdtrue.tables": ("TableEncoder",),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}
__all__ = list(_HOME)

if TYPE_CHECKING:  # for type checkers, which do not read the table above
    from typing import Any

    from holdtrue.categories import *  # noqa: F403
    from holdtrue.categories.display import *  # noqa: F403
    from holdtrue.compare import *  # noqa: F403
    from holdtrue.deployed import *  # noqa: F403
    from holdtrue.domains import *  # noqa: F403
    from holdtrue.domains.display import *  # noqa: F403
    from holdtrue.model_size import *  # noqa: F403
    from holdtrue.model_size.display import *  # noqa: F403
    from holdtrue.path import *  # noqa: F403
    from holdtrue.sources import *  # noqa: F403
    from holdtrue.sources.display import *  # noqa: F403
    from holdtrue.sums import *  # noqa: F403
    from holdtrue.tables import *  # noqa: F403


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'holdtrue' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
