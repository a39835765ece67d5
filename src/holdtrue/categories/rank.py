"""`rank_columns`: from a frame, a file or an engine to columns by their error on new data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from holdtrue.categories.estimate import ColumnEstimate, column_evidence, score_order
from holdtrue.categories.pairs import same_columns
from holdtrue.categories.ranking import Ranking, warn_of_groups
from holdtrue.categories.score import (
    DEFAULT_CRITERION,
    DEFAULT_MIN_SKILL,
    Scoring,
    check_classes,
    check_scoring,
    kinds_of,
    score_column,
    scoring,
)
from holdtrue.categories.shape import best_shapes
from holdtrue.columns.counting import Groups, Target, check_group_count, count_groups, load_loops
from holdtrue.columns.parts import table_parts
from holdtrue.engine import engine_of
from holdtrue.engine.table import EngineTable
from holdtrue.errors import InputError, check_choice, shown, speaks
from holdtrue.path import SelectionPath
from holdtrue.progress import progress
from holdtrue.sums import Profile
from holdtrue.sums.group_profile import GroupProfile
from holdtrue.tables import Table, open_table
from holdtrue.targets import TARGET_TYPES

__all__ = ["rank_columns"]


@speaks
def rank_columns(
    data: Any,
    target: Any,
    *,
    criterion: str = DEFAULT_CRITERION,
    groups: Any = None,
    sample_weight: Any = None,
    target_type: str = "auto",
    types: dict[str, str] | None = None,
    encoding: str | None = None,
    categorical_features: Any = "from_dtype",
    max_bins: int = 64,
    missing: str = "category",
    unseen: str = "uniform",
    min_gain_se: float = 1.0,
    min_skill: float = DEFAULT_MIN_SKILL,
    alpha: float = 0.05,
    n_jobs: int | None = None,
) -> Ranking:
    """Columns of a table, from the one that predicts best on new rows to the worst.

    A file may be larger than memory: it is read column by column, a CSV or JSON file after
    one pass that keeps its columns in a temporary file. With classes as the target and without
    weights, columns of millions of different numbers or texts are counted in parts. Otherwise one
    column at a time is in memory, with its counts.

    Parameters
    ----------
    data : data frame (pandas, Polars, Arrow, Dask, Spark), ndarray, file, Table or DatabaseTable
        Files as in `holdtrue.tables.open_table`. Of a frame of Dask or Spark only small sums come
        to this machine; target and groups are then names of columns.
    target : str or array-like of shape (n_rows,)
        Name of the target's column, or the target itself.
    criterion, target_type, categorical_features, max_bins, missing, unseen, min_gain_se, \
    min_skill, alpha
        As in `GingerSelector`.
    groups : str or array-like of shape (n_rows,), optional
        The group of each row (a patient, a site, a user), or the name of its column: new data are
        new groups, and a group is left out as a whole. By default new data are new rows.
    sample_weight : array-like of shape (n_rows,), optional
        Whole numbers: weights are repetitions.
    types, encoding
        Types of columns and encoding of a file, as in `holdtrue.tables.open_table`.
    n_jobs : int, optional
        Threads that score columns; as many columns are in memory. By default one.

    Returns
    -------
    ranking : Ranking
        ``print(ranking)`` to read it, ``ranking.to_frame()`` for a table, ``ranking.plot()``.

    See Also
    --------
    GingerSelector : The same as a step of a pipeline.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from holdtrue import rank_columns
    >>> data = pa.table({
    ...     "id": [f"u{i}" for i in range(60)],
    ...     "plan": ["free", "free", "paid"] * 20,
    ...     "left": [True, True, False] * 20})
    >>> print(rank_columns(data, "left"))
       column     score    from       to  skill  wrong  values  in short
    1  plan    0.008709  ...  0.1283    99%     0%       2  predicts
    2  id        0.6533  0.5668  0.7531     0%    34%      60  looks like an id; no better than ...
    1 of 2 columns beat no column by more than 1 standard error; scores: log loss on new rows, of
    class shares shrunk to those of all rows
    """
    check_scoring(criterion, max_bins, missing, unseen, min_gain_se, min_skill, alpha)
    check_choice("target_type", target_type, TARGET_TYPES)
    options = (max_bins, missing, unseen, min_gain_se, min_skill, alpha)
    engine = engine_of(data)
    if engine is not None:
        names, how, profiles = engine_columns(
            engine,
            target,
            groups,
            criterion=criterion,
            options=options,
            target_type=target_type,
            categorical_features=categorical_features,
            sample_weight=sample_weight,
            types=types,
            encoding=encoding,
            n_jobs=n_jobs,
        )
        estimates = _estimates(names, (score_column(profile, how) for profile in profiles))
        return Ranking(column_path(names, estimates, None, how))
    table = data
    if not isinstance(data, Table):
        table = open_table(data, types=types, encoding=encoding)
    elif types or encoding:
        raise InputError("a Table has its types already. Pass types and encoding to open_table.")
    if n_jobs not in (None, 1):
        load_loops(table.n_rows)
    names = table.names
    target, groups = _name_or_rows(target, names), _name_or_rows(groups, names)
    if isinstance(target, str):
        y = table.column(target)
        names = [name for name in names if name != target]
    else:
        if np.ndim(target) == 0:
            raise InputError(
                f"target must be the name of a column, or one value per row. Got {shown(target)}."
            )
        from sklearn.utils import column_or_1d

        y = column_or_1d(target, warn=True)
    rows = Target.by_rule(y, target_type, sample_weight)
    check_classes(rows.classes, rows.n_samples)
    how = scoring(criterion, rows.classes, groups is not None, options)
    subjects = None
    if groups is not None:
        if isinstance(groups, str):
            names = [name for name in names if name != groups]
            groups = table.column(groups)
        subjects = Groups.from_column(groups, rows)
        check_group_count(subjects.labels)
    if not names:
        raise InputError("there is no column to rank beside the target.")
    kinds = kinds_of(categorical_features, names, [table.kinds[name] for name in names])
    estimates = _estimates(names, score_table(table, names, kinds, rows, how, subjects, n_jobs))
    twins = {}
    if not how.criterion.in_sample:
        twins = same_columns(table, names, rows, subjects, estimates, max_bins)
    return Ranking(column_path(names, estimates, rows.classes, how, **twins))


def _name_or_rows(given: Any, names: Sequence[str]) -> Any:
    """A column's name as text, such as that of column 0 in pandas; anything else as it is."""
    is_name = given is not None and np.ndim(given) == 0 and str(given) in names
    return str(given) if is_name else given


def engine_columns(
    table: EngineTable,
    target: Any,
    groups: Any,
    *,
    criterion: str,
    options: Sequence[Any],
    target_type: str,
    categorical_features: Any,
    **only_here: Any,
) -> tuple[list[str], Scoring, Iterator[Profile | GroupProfile]]:
    """Names of the columns beside target and groups, how to score them, and their profiles.

    ``options`` are as in `scoring`; ``only_here`` are options that need the rows: they must be
    None.
    """
    for option, value in only_here.items():
        if value is not None:
            raise InputError(
                f"{option} is for data on this machine. Leave it out with a table that lives "
                "elsewhere."
            )
    target, groups = _name_or_rows(target, table.names), _name_or_rows(groups, table.names)
    roles = {"target": target} | ({} if groups is None else {"groups": groups})
    table.check_names(**roles)
    names = [name for name in table.names if name not in roles.values()]
    if not names:
        raise InputError("there is no column to rank beside the target.")
    kinds = kinds_of(categorical_features, names, [table.kinds[name] for name in names])
    read = table.target(target, target_type, groups)
    check_classes(read.classes, read.n_samples)
    how = scoring(criterion, read.classes, groups is not None, options)
    return names, how, table.profiles(dict(zip(names, kinds, strict=True)), read, how.max_bins)


def _estimates(names: Sequence[str], scored: Iterable[ColumnEstimate]) -> list[ColumnEstimate]:
    """Estimates as they come, behind a bar; a warning where a column looks like a group."""
    estimates = list(progress("columns", scored, len(names)))
    alike = [n for n, column in zip(names, estimates, strict=True) if column.is_group_like]
    warn_of_groups("rank_columns", alike)
    return estimates


def score_table(
    table: Table,
    names: Sequence[str],
    kinds: Sequence[str],
    target: Target,
    how: Scoring,
    groups: Groups | None = None,
    n_jobs: int | None = None,
) -> Iterator[ColumnEstimate]:
    """Estimates of some columns of a table, in their order."""
    n_rows, known = target.n_samples, (target.classes, how.max_bins)

    def score(name: str, kind: str) -> ColumnEstimate:
        """Rows to counts to profile to score, for one column."""
        profile: Profile | GroupProfile
        if groups is None:
            parts = table_parts(table, kind, name, target)
            profile = Profile.from_parts(kind, parts, n_rows, *known, keep_values=True)
        else:
            counted = count_groups(name, table.column(name), target, groups)
            profile = GroupProfile.from_pairs(kind, *counted, *known, groups.sums, keep_values=True)
        return score_column(profile, how)

    if n_jobs in (None, 1):
        # One column at a time: its counts are dropped before the next is read.
        return map(score, names, kinds)
    # Categories first, which take longest, so that none runs alone at the end.
    order = sorted(range(len(kinds)), key=lambda j: kinds[j] != "category")
    return _in_threads(score, list(zip(names, kinds, strict=True)), order, n_jobs)


def _in_threads(
    function: Callable[..., Any], arguments: list[Any], order: list[int], n_jobs: int
) -> Iterator[Any]:
    """Results of a function for some arguments, which threads take in another order than theirs."""
    if n_jobs < 1:
        from joblib import effective_n_jobs

        n_jobs = effective_n_jobs(n_jobs)
    with ThreadPoolExecutor(n_jobs) as pool:
        jobs = {j: pool.submit(function, *arguments[j]) for j in order}
        try:
            for j in range(len(arguments)):
                yield jobs.pop(j).result()
        finally:
            for job in jobs.values():
                job.cancel()


def column_path(
    names: Sequence[str],
    estimates: Sequence[ColumnEstimate],
    classes: tuple[Any, ...] | None,
    how: Scoring,
    n_features_to_select: int | None = None,
    min_features: int = 0,
    **twins: np.ndarray,
) -> SelectionPath:
    """Path of columns that are judged one by one.

    By default the columns that beat no column are kept; the best ``min_features`` in any case.
    ``twins`` are what `same_columns` gives.
    """
    shapes = best_shapes(names, estimates, classes, how)
    evidence = column_evidence(names, estimates, how.criterion.predictor, shapes, **twins)
    order = score_order(evidence.scores)
    if n_features_to_select is None:
        order = order[np.argsort(~evidence.predicts[order], kind="stable")]
        size = int(evidence.predicts.sum())
        reason = f"{size} of {len(order)} columns {beating_words(how.min_gain_se)}"
        n_slight = int(np.sum(~evidence.predicts & (evidence.gain_low > 0)))
        if n_slight:
            reason += f"; {n_slight} more by a skill of less than {how.least_skill:g}"
        if size < min_features:
            size = min(min_features, len(order))
            reason += f"; min_features={min_features} keeps the best {size}"
    else:
        size = int(n_features_to_select)
        reason = f"the {size} best of {len(order)} columns, as n_features_to_select says"
    if how.new_data == "new groups":
        reason += "; new data are new groups"
    return SelectionPath(
        order=order,
        names=tuple(names[j] for j in order),
        scores=np.append(np.max(evidence.no_column), evidence.scores[order]),
        chosen_size=size,
        reason=reason,
        unit=how.unit,
        evidence=evidence,
    )


def beating_words(min_gain_se: float) -> str:
    """By how much kept columns beat no column, in words."""
    if not min_gain_se:
        return "beat no column"
    plural = "" if min_gain_se == 1 else "s"
    return f"beat no column by more than {min_gain_se:g} standard error{plural}"
