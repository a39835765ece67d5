"""Columns of a table on an engine or in a database: checked here, profiled there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdtrue.categories.score import check_classes, criterion_for, kinds_of
from holdtrue.engine.table import EngineTable
from holdtrue.errors import InputError
from holdtrue.sums import Profile
from holdtrue.sums.group_profile import GroupProfile


def engine_columns(
    table: EngineTable,
    target: Any,
    *,
    criterion: str,
    target_type: str,
    groups: Any,
    categorical_features: Any,
    max_bins: int,
    **only_here: Any,
) -> tuple[list[str], tuple[Any, ...] | None, Iterator[Profile | GroupProfile]]:
    """Names of the columns beside target and groups, classes, and profiles in that order.

    ``only_here`` are options that need the rows: they must be None.
    """
    for option, value in only_here.items():
        if value is not None:
            raise InputError(
                f"{option} is for data on this machine. Leave it out with a table that lives "
                "elsewhere."
            )
    roles = {"target": target} | ({} if groups is None else {"groups": groups})
    table.check_names(**roles)
    names = [name for name in table.names if name not in roles.values()]
    if not names:
        raise InputError("there is no column to rank beside the target.")
    kinds = kinds_of(categorical_features, names, (table.kinds[name] for name in names))
    read = table.target(target, target_type, groups)
    check_classes(read.classes, read.n_samples)
    judged_by = criterion_for(criterion, read.classes)
    if groups is not None:
        judged_by.check_groups()
    profiles = table.profiles(dict(zip(names, kinds, strict=True)), read, groups, max_bins)
    return names, read.classes, (profile for _, profile in profiles)
