"""Columns of a frame or a file by their error on new rows: `rank_columns` and its `Ranking`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

import narwhals as nw
import numpy as np
from joblib import Parallel, delayed

from holdtrue.categories.display import shape_chart
from holdtrue.categories.estimate import ColumnEstimate, column_evidence, score_order
from holdtrue.categories.pairs import same_columns
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
from holdtrue.charts import svg
from holdtrue.columns.counting import Groups, Target, check_group_count, count_groups
from holdtrue.columns.parts import table_parts
from holdtrue.engine import engine_of
from holdtrue.engine.table import EngineTable
from holdtrue.errors import InputError, caution, check_choice, shown, speaks
from holdtrue.evidence import ColumnEvidence
from holdtrue.path import SelectionPath, data_frame
from holdtrue.progress import progress
from holdtrue.sums import Profile
from holdtrue.sums.group_profile import GroupProfile
from holdtrue.tables import Table, open_table
from holdtrue.targets import TARGET_TYPES

__all__ = ["Ranking", "rank_columns"]

# Rows of a ranking that are printed.
_SHOWN = 30
_SHAPES_SHOWN = 9


class Ranking:
    """Columns by their estimated error on new rows, best first; what `rank_columns` returns.

    ``print(ranking)`` shows it, a notebook displays it as a table. ``pandas.DataFrame(ranking)``,
    ``polars.DataFrame(ranking)``, ``pyarrow.table(ranking)`` and ``narwhals.from_native(ranking)``
    take it as the table of `to_frame`; iterating gives its rows as dicts.

    Parameters
    ----------
    path : SelectionPath
        With `ColumnEvidence`.

    Attributes
    ----------
    path : SelectionPath
        The columns that predict, then the others, each part by score.
    """

    @speaks
    def __init__(self, path: SelectionPath):
        if not isinstance(path.evidence, ColumnEvidence):
            raise InputError(
                "expected a path with ColumnEvidence. "
                f"Got one with {type(path.evidence).__name__}. Call rank_columns."
            )
        self.path = path

    @property
    def _evidence(self) -> ColumnEvidence:
        assert isinstance(self.path.evidence, ColumnEvidence)
        return self.path.evidence

    @property
    def _has_shares(self) -> bool:
        """Whether there is a share of rows that are predicted wrong."""
        return not np.isnan(self._evidence.share_wrong).all()

    def _columns(self) -> dict[str, list[Any]]:
        """The table, column by column."""
        evidence = self._evidence
        order = score_order(evidence.scores)
        arrays = {
            "score": evidence.scores,
            "standard_error": evidence.standard_errors,
            "low": evidence.low,
            "high": evidence.high,
            "no_column": evidence.no_column,
            "skill": evidence.skill,
        }
        if self._has_shares:
            arrays["share_wrong"] = evidence.share_wrong
        arrays |= {
            "n_values": evidence.n_values,
            "coverage": evidence.coverage,
        }
        flags = {"id_like": evidence.id_like, "predicts": evidence.predicts}
        words = {"kind": evidence.kinds, "read_as": evidence.read_as}
        return {
            "column": [evidence.names[j] for j in order],
            **{name: array[order].tolist() for name, array in arrays.items()},
            **{name: [texts[j] for j in order] for name, texts in words.items()},
            **{name: mask[order].tolist() for name, mask in flags.items()},
            "verdict": [evidence.verdicts[j] for j in order],
        }

    @speaks
    def to_frame(self, backend: str = "pandas") -> Any:
        """Table with one row per column of the data, best first.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}
            Kind of data frame. The library must be installed.

        Returns
        -------
        frame : data frame
            ``column``; ``score``, lower is better; ``standard_error``; ``low`` and ``high``, its
            interval; ``no_column``, the score without the column; ``skill``, the share of it
            that the column removes; ``share_wrong``, of new rows whose class is not the likeliest
            one (with classes); ``n_values``; ``coverage``, the share of new rows whose value has
            been seen; ``kind`` (category, integer, number, empty); ``read_as`` (values, or how
            many bins); ``id_like``; ``predicts``, whether the gain over no column is beyond its
            standard error; ``verdict``, in words.
        """
        return data_frame(self._columns(), backend)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.to_frame("pyarrow").__arrow_c_stream__(requested_schema)

    def __narwhals_dataframe__(self) -> Any:
        frame = nw.from_native(self.to_frame("pyarrow"), eager_only=True)
        return frame._compliant_frame

    def __len__(self) -> int:
        return len(self._evidence.names)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        columns = self._columns()
        for row in zip(*columns.values(), strict=True):
            yield dict(zip(columns, row, strict=True))

    @speaks
    def plot(self, **options: Any) -> Any:
        """`RankingDisplay` of the ranking; options are those of its ``plot``."""
        from holdtrue import RankingDisplay

        return RankingDisplay.from_path(self.path, **options)

    def _cells(self) -> tuple[list[str], list[list[str]], str]:
        """Heads and rows of the table that is shown, and what is not."""
        evidence = self._evidence
        heads = ["", "column", "score", "from", "to", "skill", "wrong", "values", "in short"]
        if not self._has_shares:
            heads.remove("wrong")
        shown = []
        for rank, j in enumerate(score_order(evidence.scores)[:_SHOWN], 1):
            numbers = (evidence.scores[j], evidence.low[j], evidence.high[j])
            shares = [evidence.skill[j]] + [evidence.share_wrong[j]] * self._has_shares
            shown.append(
                [
                    str(rank),
                    evidence.names[j],
                    *(f"{value:.4g}" for value in numbers),
                    *(f"{share:.0%}" for share in shares),
                    f"{evidence.n_values[j]:,.0f}",
                    short_verdict(evidence, int(j)),
                ]
            )
        rest = len(evidence.names) - len(shown)
        note = f"{self.path.reason}; scores: {self.path.unit}"
        note += f", of {evidence.predictor}" if evidence.predictor else ""
        if evidence.group_like.any():
            alike = [n for n, one in zip(evidence.names, evidence.group_like, strict=True) if one]
            note += f"; {like_groups(alike)}"
        return heads, shown, note + (f"; {rest} more columns in to_frame()" if rest else "")

    def __str__(self) -> str:
        heads, rows, note = self._cells()
        is_text = [head in ("column", "in short") for head in heads]
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(width) if text else cell.rjust(width)
                for cell, width, text in zip(row, widths, is_text, strict=True)
            ).rstrip()
            for row in (heads, *rows)
        ]
        return "\n".join([*lines, note])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        heads, rows, note = self._cells()

        def line(cells: Sequence[str], tag: str) -> str:
            return "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells)

        body = "".join(f"<tr>{line(row, 'td')}</tr>" for row in rows)
        shapes = "".join(
            f"<figure style='flex:1 1 300px;max-width:400px;margin:0'><figcaption>"
            f"{escape(shape.column)}</figcaption>{svg.draw(shape_chart(shape), 340)}</figure>"
            for shape in self._evidence.shapes[:_SHAPES_SHOWN]
        )
        return (
            f"<table><caption>{escape(note)}</caption><thead><tr>{line(heads, 'th')}</tr></thead>"
            f"<tbody>{body}</tbody></table>"
            f"<div style='display:flex;flex-wrap:wrap;gap:12px 24px'>{shapes}</div>"
        )


def short_verdict(evidence: ColumnEvidence, j: int) -> str:
    """What to think of a column, in a few words."""
    if evidence.n_values[j] <= 1:
        return "constant"
    if not evidence.predicts[j]:
        result = "no better than no column"
        if evidence.gain_low[j] > 0:
            result = "too little to matter"
    elif evidence.in_sample:
        result = "explains these rows"
    else:
        result = "predicts" if evidence.gain_low[j] > 0 else "may predict"
    if twin := evidence.twin(j):
        result += f", the same as {twin[0]!r}" if twin[1] else f", adds little to {twin[0]!r}"
    return f"looks like an id; {result}" if evidence.id_like[j] else result


def like_groups(names: Sequence[str], by_name: bool = True) -> str:
    """What is to be said of columns that look like groups; ``fit`` takes them as an array."""
    return (
        f"rows with the same value of {' or '.join(map(repr, names))} are almost alike in their "
        "target, as those of one person or place are: if new data are new ones, pass groups="
        + (repr(names[0]) if by_name else f"X[{names[0]!r}]")
    )


def warn_of_groups(who: str, alike: Sequence[str], by_name: bool = True) -> None:
    """Warn of the columns, if any, that look like groups."""
    if alike:
        caution(f"{who}: {like_groups(alike, by_name)}.")


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
    1  plan    0.008709       0  0.05589    99%     0%       2  predicts
    2  id        0.6533  0.5605   0.7462     0%    33%      60  looks like an id; no better than ...
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
    return _scored_in_threads(
        Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator"),
        [delayed(score)(name, kind) for name, kind in zip(names, kinds, strict=True)],
        # Categories first, which take longest, so that none runs alone at the end.
        sorted(range(len(kinds)), key=lambda j: kinds[j] != "category"),
    )


def _scored_in_threads(run: Parallel, jobs: list[Any], order: list[int]) -> Iterator[Any]:
    """Results of the jobs, which are begun in another order than theirs."""
    done: dict[int, Any] = {}
    n_given = 0
    for j, result in zip(order, run(jobs[j] for j in order), strict=True):
        done[j] = result
        while n_given in done:
            yield done.pop(n_given)
            n_given += 1


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
    """What columns do that are kept."""
    if not min_gain_se:
        return "beat no column"
    plural = "" if min_gain_se == 1 else "s"
    return f"beat no column by more than {min_gain_se:g} standard error{plural}"
