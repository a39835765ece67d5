"""Scores of columns: what a column may be judged by, and from its profile to the estimated loss.

Every route, from rows, counts, files in parts or profiles, ends in `score_column`. A criterion
takes the tables of a column's readings. Those of a `holdtrue.sums.Profile` leave out rows; those
of a `holdtrue.sums.group_profile.GroupProfile`, by the methods ``group_...``, groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from holdtrue.categories import grouped, kernel, shrunk, shrunk_mean
from holdtrue.categories.estimate import ColumnEstimate, Estimate
from holdtrue.categories.shrunk import STRENGTHS, clearly_least
from holdtrue.errors import InputError, check_choice, shown
from holdtrue.sums.group_profile import GroupProfile, GroupTable
from holdtrue.sums.profile import B2, M2, C, Profile, ProfileTable
from holdtrue.targets import check_class_count
from holdtrue.validation import check_columns, check_count, check_level, is_number

Gain = tuple[float, float]  # and its standard error
DEFAULT_CRITERION = "log_loss"
_SHARES = "class shares shrunk to those of all rows"


@dataclass(frozen=True)
class Criterion:
    """What a column is judged by; lower is better.

    By itself one that judges the rows of the fit, with the jackknife's standard errors.
    """

    name: str
    unit: str  # what the values measure
    on_fit: str  # name of the criterion that measures the same on the rows of the fit
    predictor: str = ""  # whose loss it is, in words
    min_rows: int = 2  # rows that an estimate needs; of groups, 2 are enough

    @property
    def in_sample(self) -> bool:
        """Whether it judges the rows of the fit, where many values explain everything."""
        return self.on_fit == self.name

    def scores(self, tables: Sequence[ProfileTable], unseen: str) -> Sequence[float]:
        """Value for each of a column's readings."""
        return [
            kernel.criterion_value(self.name, table.rows, table.repeats, unseen=unseen)
            for table in tables
        ]

    def estimate(self, table: ProfileTable, unseen: str) -> Estimate:
        """Value with its standard error, and that of the gain over no column."""
        known = table.rows, table.repeats
        total = table.repeats @ table.rows
        error, gain_error = kernel.jackknife(self.name, *known, unseen=unseen)
        score = kernel.criterion_value(self.name, *known, unseen=unseen)
        no_column = kernel.no_column(self.name, total[None])
        is_share = self.name == "misclassification"
        return Estimate(
            self.name, score, error, 0.0, no_column, gain_error,
            score if is_share else math.nan, math.nan, float(total.sum()),
            no_column if is_share else math.nan,
        )  # fmt: skip

    def best(self, tables: Sequence[ProfileTable], unseen: str) -> tuple[int, Estimate]:
        """Place of the best of a column's readings, and its estimate."""
        at = clearly_least(self.scores(tables, unseen)) if len(tables) > 1 else 0
        return at, self.estimate(tables[at], unseen)

    def group_best(self, tables: Sequence[GroupTable], unseen: str) -> tuple[int, Estimate]:
        """Place of the best reading, and its estimate, with whole groups left out."""
        raise NotImplementedError

    def split_gain(self, table: np.ndarray, parent: np.ndarray, unseen: str) -> Gain | None:
        """Gain of finer values and its standard error; None for criteria where every gain counts.

        ``parent`` is the coarser value that each value of the table is cut out of.
        """
        return None


class Rule(Criterion):
    """Error of rule (4) or (5) on new rows, to the letter of the paper.

    What finer values gain is that of rule (4).
    """

    def estimate(self, table: ProfileTable, unseen: str) -> Estimate:
        return shrunk.estimate_rule(self.name, table.rows, table.repeats, unseen=unseen)

    def group_best(self, tables: Sequence[GroupTable], unseen: str) -> tuple[int, Estimate]:
        return grouped.best_rule(self.name, tables, unseen=unseen)

    def split_gain(self, table: np.ndarray, parent: np.ndarray, unseen: str) -> Gain | None:
        return kernel.ginger_gain(table, parent, unseen=unseen)


class Shrunk(Criterion):
    """Left-out loss of shrunk shares at their best strength: log loss, Brier's, share wrong."""

    def scores(self, tables: Sequence[ProfileTable], unseen: str) -> Sequence[float]:
        return shrunk.best_readings(self.name, [table[1:3] for table in tables])[0].tolist()

    def best(self, tables: Sequence[ProfileTable], unseen: str) -> tuple[int, Estimate]:
        return shrunk.best_estimate(self.name, [table[1:3] for table in tables])

    def group_best(self, tables: Sequence[GroupTable], unseen: str) -> tuple[int, Estimate]:
        return grouped.best_shares(self.name, tables)

    def split_gain(self, table: np.ndarray, parent: np.ndarray, unseen: str) -> Gain | None:
        return shrunk.finer_gain(self.name, table, parent)


@dataclass(frozen=True)
class ShrunkMean(Criterion):
    """Left-out squared error of the mean shrunk to that of all rows, at its best strength."""

    strengths: tuple[float, ...] = STRENGTHS

    def scores(self, tables: Sequence[ProfileTable], unseen: str) -> Sequence[float]:
        return [shrunk_mean.mean_scores(table.rows, table.repeats).min() for table in tables]

    def estimate(self, table: ProfileTable, unseen: str) -> Estimate:
        return shrunk_mean.estimate_mean(table.rows, table.repeats, strengths=self.strengths)

    def group_best(self, tables: Sequence[GroupTable], unseen: str) -> tuple[int, Estimate]:
        return grouped.best_mean(tables)

    def split_gain(self, table: np.ndarray, parent: np.ndarray, unseen: str) -> Gain | None:
        return shrunk_mean.finer_mean_gain(table, parent)


class PlainMean(ShrunkMean):
    """Leave-one-out squared error of the value's mean, not shrunk.

    A value seen once always costs what no column does.
    """

    def scores(self, tables: Sequence[ProfileTable], unseen: str) -> Sequence[float]:
        return [shrunk_mean.plain_score(table.rows, table.repeats) for table in tables]

    def estimate(self, table: ProfileTable, unseen: str) -> Estimate:
        [score] = self.scores([table], unseen)
        return super().estimate(table, unseen)._replace(score=score, strength=math.nan)

    def group_best(self, tables: Sequence[GroupTable], unseen: str) -> tuple[int, Estimate]:
        scores = [grouped.plain_mean_score(table) for table in tables]
        at = clearly_least(scores)
        estimate = grouped.estimate_mean_groups(tables[at], strengths=self.strengths)
        return at, estimate._replace(score=scores[at], strength=math.nan)

    def split_gain(self, table: np.ndarray, parent: np.ndarray, unseen: str) -> Gain | None:
        return shrunk_mean.plain_gain(table, parent)


CRITERIA: dict[str, Criterion] = {
    criterion.name: criterion
    for criterion in (
        Shrunk("log_loss", "log loss on new rows", "information_gain", _SHARES),
        Shrunk("brier", "Brier loss on new rows", "gini", _SHARES),
        Shrunk(
            "error",
            "share wrong on new rows",
            "misclassification",
            f"the likeliest class by {_SHARES}",
        ),
        Rule("ginger", "error on new rows", "gini", "the class of a random row of the same value"),
        Rule(
            "majority",
            "error of the majority rule on new rows",
            "misclassification",
            "the most frequent class of the same value",
        ),
        Criterion("gini", "Gini impurity on the rows of the fit", "gini"),
        Criterion(
            "misclassification",
            "error of the majority rule on the rows of the fit",
            "misclassification",
        ),
        Criterion(
            "information_gain", "entropy left on the rows of the fit, in bits", "information_gain"
        ),
        Criterion("gain_ratio", "1 - gain ratio", "gain_ratio"),
    )
}

_SQUARED_ERROR = ShrunkMean(
    "squared_error", "squared error on new rows", "", "a mean shrunk to that of all rows"
)
# The losses of shrunk shares have one counterpart for numbers.
NUMERIC_CRITERIA: dict[str, Criterion] = {
    "squared_error": _SQUARED_ERROR,
    "log_loss": _SQUARED_ERROR,
    "brier": _SQUARED_ERROR,
    "ginger": PlainMean(
        "ginger",
        "squared error on new rows",
        "",
        "the mean of the same value",
        min_rows=3,
        strengths=(0.0,),
    ),
}


def criterion_for(name: str, classes: tuple[Any, ...] | None) -> Criterion:
    """The criterion of that name; the losses of classes have their own for a numeric target."""
    if classes is None:
        if name not in NUMERIC_CRITERIA:
            raise InputError(
                f"criterion={name!r} needs classes, and the target is numeric. "
                "Pass criterion='squared_error', or target_type='classes'."
            )
        return NUMERIC_CRITERIA[name]
    if name not in CRITERIA:
        raise InputError(
            f"criterion={name!r} needs a numeric target. Got {len(classes)} classes. "
            "Pass target_type='numeric', or another criterion."
        )
    return CRITERIA[name]


# --- scoring ------------------------------------------------------------------------------------

DEFAULT_MIN_SKILL = 0.005  # with many rows less is found that no model gains by
# A column looks like a group if it has at least _FEWEST_GROUPS values with _FEWEST_ROWS rows on
# average, no value has more than _LARGEST_GROUP of the rows, and the targets of rows with one value
# differ by less than _ALIKE times what those of any two rows do.
_FEWEST_GROUPS = 20
_FEWEST_ROWS = 3
_LARGEST_GROUP = 0.1
_ALIKE = 0.1


class Scoring(NamedTuple):
    """How columns are scored; the same for all columns of a fit."""

    criterion: Criterion = CRITERIA[DEFAULT_CRITERION]
    max_bins: int = 64
    missing: str = "category"  # or "ignore"
    unseen: str = "uniform"  # or "prior"
    min_gain_se: float = 1.0  # standard errors by which a column must beat no column
    min_skill: float = DEFAULT_MIN_SKILL  # least share of the loss without a column to remove
    alpha: float = 0.05  # one minus the confidence of the intervals
    new_data: str = "new rows"  # or "new groups"

    @property
    def least_skill(self) -> float:
        """``min_skill``; its default gives way where ``min_gain_se=0`` asks for every gain."""
        is_default = self.min_skill == DEFAULT_MIN_SKILL
        return 0.0 if is_default and not self.min_gain_se else self.min_skill

    @property
    def unit(self) -> str:
        """What the scores measure, in words."""
        return self.criterion.unit.replace("new rows", self.new_data)

    def is_clear(self, table: np.ndarray, parent: np.ndarray, n_tried: int) -> bool:
        """Whether finer values gain more than the best of n_tried columns does by chance.

        That is ``sqrt(2 ln p)`` standard errors (`kernel`, departure 7). Criteria that judge the
        rows of the fit have none: there every gain counts.
        """
        gain = self.criterion.split_gain(table, parent, self.unseen)
        return gain is None or gain[0] > math.sqrt(2 * math.log(n_tried)) * gain[1]


def scoring(
    criterion: str, classes: tuple[Any, ...] | None, has_groups: bool, options: Sequence[Any] = ()
) -> Scoring:
    """How columns are scored by a criterion, given what there is to predict.

    ``options`` are fields of `Scoring` after the criterion.
    """
    judged_by = criterion_for(criterion, classes)
    if has_groups and judged_by.in_sample:
        raise InputError(
            f"criterion={criterion!r} judges the rows of the fit and leaves no group out. "
            "Pass criterion='log_loss', or no groups."
        )
    new_data = "new groups" if has_groups else "new rows"
    return Scoring(judged_by, *options)._replace(new_data=new_data)


def score_column(profile: Profile | GroupProfile, how: Scoring) -> ColumnEstimate:
    """Estimate of one column by the best of the ways to read it."""
    criterion = how.criterion
    of_groups = isinstance(profile, GroupProfile)
    best_of: Any = criterion.group_best if of_groups else criterion.best
    seen, tables = profile.read(with_missing=how.missing == "category")
    if seen.n_units < (2 if of_groups else criterion.min_rows):
        nothing = best_of(profile.read()[1], how.unseen)[1].no_column
        estimate = Estimate(
            criterion.name, nothing, 0.0, 0.0, nothing, 0.0, math.nan, math.nan, seen.n_units
        )
        return ColumnEstimate(
            profile.kind, estimate, (nothing, nothing), (0.0, 0.0), False, 0.0,
            seen.n_values, seen.n_values, 0, 0, False, criterion.in_sample, how.new_data,
        )  # fmt: skip
    best, estimate = best_of(tables, how.unseen)
    interval, gain_interval, beats_no_column = estimate.judged(
        how.alpha, how.min_gain_se, how.least_skill
    )
    rows_once = tables[best].rows_once if profile.kind == "number" else seen.rows_once
    return ColumnEstimate(
        kind=profile.kind,
        estimate=estimate,
        interval=interval,
        gain_interval=gain_interval,
        beats_no_column=beats_no_column,
        coverage=1 - rows_once / seen.n_rows,
        n_values=seen.n_values,
        n_once=seen.n_once,
        reading=best,
        n_bins=tables[best].n_bins,
        is_group_like=isinstance(profile, Profile) and looks_like_group(profile),
        in_sample=criterion.in_sample,
        new_data=how.new_data,
        outline=profile.outline_of(best) if beats_no_column else None,
    )


def may_be_group(n_values: float, n_rows: float) -> bool:
    """Whether a column has as many values, and as many rows for each, as one of groups."""
    return _FEWEST_GROUPS <= n_values <= n_rows / _FEWEST_ROWS


def looks_like_group(profile: Profile) -> bool:
    """Whether rows of one value look like those of one subject, measured again and again.

    Many values, no large one, most of them in several rows, whose targets are almost alike.
    """
    sizes, repeats = profile.rows_by_value, profile.repeats
    n_rows, n_values = float(repeats @ sizes), int(repeats.sum())
    if (
        profile.kind not in ("category", "integer")
        or not may_be_group(n_values, n_rows)
        or sizes.max() > _LARGEST_GROUP * n_rows
    ):
        return False
    rows = profile.read(with_missing=False)[1][0].rows
    if profile.classes is None:
        within = float(rows[:, M2].sum())
        total = within + float(rows[:, C] @ rows[:, B2])
        return within / (n_rows - n_values) < _ALIKE * total / (n_rows - 1)
    # Shares of the pairs of rows, of one value and of all values, whose classes differ.
    total_row = repeats @ rows
    differ = repeats @ (sizes * sizes - np.einsum("vk,vk->v", rows, rows))
    pairs = repeats @ (sizes * (sizes - 1))
    all_differ = n_rows**2 - float(total_row @ total_row)
    return float(differ / pairs) < _ALIKE * all_differ / (n_rows * (n_rows - 1))


# --- checks -------------------------------------------------------------------------------------


def check_scoring(
    criterion: Any = DEFAULT_CRITERION,
    max_bins: Any = 64,
    missing: Any = "category",
    unseen: Any = "uniform",
    min_gain_se: Any = 1.0,
    min_skill: Any = DEFAULT_MIN_SKILL,
    alpha: Any = 0.05,
) -> None:
    """Refuse options that no column can be scored with."""
    check_choice("criterion", criterion, {**CRITERIA, **NUMERIC_CRITERIA})
    check_choice("missing", missing, ("category", "ignore"))
    check_choice("unseen", unseen, ("uniform", "prior"))
    check_count("max_bins", max_bins, 2)
    check_level("alpha", alpha)
    if not (is_number(min_gain_se) and 0 <= min_gain_se < math.inf):
        raise InputError(f"min_gain_se must be a number from 0 on. Got {shown(min_gain_se)}.")
    if not (is_number(min_skill) and 0 <= min_skill < 1):
        raise InputError(
            f"min_skill must be at least 0 and below 1, which is perfect. Got {shown(min_skill)}."
        )


def check_classes(classes: tuple[Any, ...] | None, n_samples: int) -> None:
    """Refuse a target that leaves nothing to predict."""
    if n_samples < 2:
        raise InputError(
            f"needs at least 2 rows. Got {n_samples} sample{'' if n_samples == 1 else 's'}."
        )
    if classes is not None and len(classes) < 2:
        raise InputError(
            f"needs at least 2 classes in y. Got 1 class, {shown(classes[0])} in every row. "
            "There is nothing to predict."
        )
    check_class_count(len(classes or ()))


def kinds_of(given: Any, names: Sequence[str], kinds: Iterable[str]) -> tuple[str, ...]:
    """Kinds of the columns, those to take by value being categories; see `categorical_mask`."""
    by_value = categorical_mask(given, names)
    return tuple("category" if one else kind for one, kind in zip(by_value, kinds, strict=True))


def categorical_mask(given: Any, names: Sequence[str]) -> np.ndarray:
    """Mask of the columns to take by value whatever their type."""
    mask = np.zeros(len(names), dtype=bool)
    if not (isinstance(given, str) and given == "from_dtype"):
        mask[check_columns("categorical_features", given, names)] = True
    return mask
