"""Scores of columns: from a profile to the estimate of the loss on new rows, or on new groups.

Every route, from rows, counts, files in parts or profiles, ends in `score_column`. What a column
may be judged by is in `criteria`.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from holdtrue.categories.criteria import (
    CRITERIA,
    DEFAULT_CRITERION,
    NUMERIC_CRITERIA,
    Criterion,
)
from holdtrue.categories.shrunk import Estimate
from holdtrue.columns.values import python_values
from holdtrue.errors import InputError, check_choice, shown
from holdtrue.evidence import ColumnEvidence, Shape
from holdtrue.sums.group_profile import GroupProfile
from holdtrue.sums.profile import B2, M2, C, Profile
from holdtrue.targets import check_class_count
from holdtrue.validation import is_number

DEFAULT_MIN_SKILL = 0.005  # with many rows less is found that no model gains by
MOST_SHAPES = 24  # columns of which a path keeps the shape
# A column looks like a group if it has at least so many values, of so many rows on average, none
# of them in more than this share of the rows, and rows of one value differ in their target by less
# than this share of what any two rows do.
FEWEST_GROUPS = 20
FEWEST_ROWS = 3
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


class ColumnEstimate(NamedTuple):
    """A column's estimated loss and what is needed to judge it."""

    kind: str  # one of `holdtrue.columns.values.KINDS`
    estimate: Estimate  # by the best way to read the column
    interval: tuple[float, float]  # for the score
    gain_interval: tuple[float, float]  # for ``no_column - score``
    beats_no_column: bool  # whether the gain is beyond the standard errors and the skill asked for
    # Share of new rows whose value has been seen: of raw values for categories and integers, of
    # bins for other numbers. Of new groups: the rows whose value another group has.
    coverage: float
    # Distinct raw values, missing included, and how many of them occur once, or in one group
    n_values: int
    n_once: int
    reading: int  # index of the way to read the column that has the least score
    n_bins: int  # of that reading; 0 where the column is read by value
    is_group_like: bool  # whether rows of one value look like one subject's
    in_sample: bool  # whether the score is that of the rows of the fit
    new_data: str  # as in `Scoring`
    shape: Shape | None = None  # of columns that predict, where their values were kept

    @property
    def score(self) -> float:
        """The criterion of the column."""
        return self.estimate.score

    @property
    def no_column(self) -> float:
        """The criterion of a constant column on the same rows."""
        return self.estimate.no_column

    @property
    def is_id_like(self) -> bool:
        """Whether most new rows bring a raw value never seen, and its order does not help either.

        Numbers are not read as ids, and an integer whose bins clearly predict is a number.
        """
        if self.kind not in ("category", "integer") or self.coverage >= 0.5:
            return False
        return not (self.n_bins and self.beats_no_column and self.gain_interval[0] > 0)

    @property
    def read_as(self) -> str:
        """How the column is read, in words."""
        return f"{self.n_bins} bins" if self.n_bins else "values"

    @property
    def verdict(self) -> str:
        """What to think of the column, in words."""
        if self.n_values <= 1:
            return "constant: it has one value only"
        if not self.beats_no_column:
            result = "does not beat no column"
            if self.gain_interval[0] > 0:
                result = f"predicts {self.new_data} too little to matter"
        elif self.in_sample:
            result = "explains the rows of the fit"
        elif self.gain_interval[0] <= 0:
            result = f"may predict {self.new_data}, by a gain that chance may give"
        else:
            result = f"predicts {self.new_data}"
        result = f"{result}: {self._comparison()}"
        if self.is_group_like:
            result += "; its values look like groups: rows of one value are almost alike"
        if not self.is_id_like:
            return result
        once = "occur once" if self.new_data == "new rows" else "occur in one group"
        reason = (
            f"looks like an id: {self.n_once:,} of its {self.n_values:,} values {once}, so "
            f"that {100 * (1 - self.coverage):.3g}% of new rows bring a value never seen"
        )
        if self.n_bins and self.beats_no_column:
            return f"{reason}; as a number in {self.n_bins} bins it {result}"
        return f"{reason}; it {result}"

    def _comparison(self) -> str:
        """The column beside no column: the share wrong where it is another number, and skill."""
        wrong, without = self.estimate.wrong, self.estimate.no_column_wrong
        if math.isnan(wrong) or wrong == self.score:
            return f"{self.score:.3g} against {self.no_column:.3g} without it"
        return (
            f"wrong for {100 * wrong:.3g}% of rows against {100 * without:.3g}% without it, "
            f"skill {self.estimate.skill:.2g}"
        )


def score_column(profile: Profile | GroupProfile, how: Scoring) -> ColumnEstimate:
    """Estimate of one column by the best of the ways to read it."""
    criterion = how.criterion
    best_of: Any = criterion.best
    no_column: Any = criterion.no_column
    if isinstance(profile, GroupProfile):
        best_of, no_column = criterion.group_best, criterion.group_no_column
    with_missing = how.missing == "category"
    seen = profile.seen(with_missing=with_missing)
    if seen.n_units < criterion.min_rows:
        nothing = no_column(profile.tables()[0])
        estimate = Estimate(
            criterion.name, nothing, 0.0, 0.0, nothing, 0.0, 0.0, math.nan, math.nan, seen.n_units
        )
        return ColumnEstimate(
            profile.kind, estimate, (nothing, nothing), (0.0, 0.0), False, 0.0,
            seen.n_values, seen.n_values, 0, 0, False, criterion.in_sample, how.new_data,
        )  # fmt: skip
    tables = profile.tables(with_missing=with_missing)
    best, estimate = best_of(tables, how.unseen)
    rows_once = tables[best].rows_once if profile.kind == "number" else seen.rows_once
    return ColumnEstimate(
        kind=profile.kind,
        estimate=estimate,
        interval=estimate.interval(how.alpha),
        gain_interval=estimate.gain_interval(how.alpha),
        beats_no_column=estimate.gain
        > max(
            how.min_gain_se * estimate.gain_standard_error,
            max(how.least_skill, 1e-12) * estimate.no_column,  # the least is beyond rounding
        ),
        coverage=1 - rows_once / seen.n_rows,
        n_values=seen.n_values,
        n_once=seen.n_once,
        reading=best,
        n_bins=tables[best].n_bins,
        is_group_like=isinstance(profile, Profile) and looks_like_group(profile),
        in_sample=criterion.in_sample,
        new_data=how.new_data,
    )


def looks_like_group(profile: Profile) -> bool:
    """Whether rows of one value look like those of one subject, measured again and again.

    Many values, no large one, most of them in several rows, whose targets are almost alike.
    """
    sizes, repeats = profile.rows_by_value, profile.repeats
    n_rows, n_values = float(repeats @ sizes), int(repeats.sum())
    if (
        profile.kind not in ("category", "integer")
        or n_values < FEWEST_GROUPS
        or sizes.max() > _LARGEST_GROUP * n_rows
        or n_rows < FEWEST_ROWS * n_values
    ):
        return False
    _, rows, repeats = profile.tables(with_missing=False)[0]
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


def score_order(scores: np.ndarray) -> np.ndarray:
    """Columns from the least score to the greatest; ties keep their order."""
    scale = np.abs(scores).max(initial=0) or 1.0
    return np.argsort(np.round(scores / scale, 12), kind="stable")


def column_evidence(
    names: Sequence[str], estimates: Sequence[ColumnEstimate], how: Scoring
) -> ColumnEvidence:
    """What a path over columns rests on, column by column."""

    def each(field: str) -> np.ndarray:
        return np.array([getattr(column, field) for column in estimates])

    def losses(field: str) -> np.ndarray:
        return np.array([getattr(column.estimate, field) for column in estimates], dtype=float)

    shapes = [estimates[j].shape for j in score_order(each("score"))]
    intervals, gains = each("interval").reshape(-1, 2), each("gain_interval").reshape(-1, 2)
    return ColumnEvidence(
        names=tuple(names),
        kinds=tuple(column.kind for column in estimates),
        read_as=tuple(column.read_as for column in estimates),
        scores=each("score"),
        standard_errors=losses("standard_error"),
        low=intervals[:, 0],
        high=intervals[:, 1],
        no_column=each("no_column"),
        gain_low=gains[:, 0],
        gain_high=gains[:, 1],
        coverage=each("coverage"),
        n_values=each("n_values"),
        id_like=each("is_id_like"),
        predicts=each("beats_no_column"),
        verdicts=tuple(column.verdict for column in estimates),
        in_sample=how.criterion.in_sample,
        share_wrong=losses("wrong"),
        no_column_wrong=losses("no_column_wrong"),
        strengths=losses("strength"),
        group_like=each("is_group_like").astype(bool),
        predictor=how.criterion.predictor,
        new_data=how.new_data,
        shapes=tuple(shape for shape in shapes if shape)[:MOST_SHAPES],
    )


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
    if not (is_number(max_bins, numbers.Integral) and max_bins >= 2):
        raise InputError(f"max_bins must be a whole number of at least 2. Got {shown(max_bins)}.")
    if not (is_number(min_gain_se) and 0 <= min_gain_se < math.inf):
        raise InputError(f"min_gain_se must be a number from 0 on. Got {shown(min_gain_se)}.")
    if not (is_number(min_skill) and 0 <= min_skill < 1):
        raise InputError(
            f"min_skill must be at least 0 and below 1, which is perfect. Got {shown(min_skill)}."
        )
    if not (is_number(alpha) and 0 < alpha < 1):
        raise InputError(f"alpha must lie between 0 and 1. Got {shown(alpha)}.")


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


def check_group_count(labels: Any) -> None:
    """Refuse groups of which none can be left out."""
    if len(labels) < 2:
        raise InputError(
            "groups must name at least 2 groups, so that one can be left out. Got 1, "
            f"{shown(python_values(labels)[0])} in every row. Leave groups out if new data are "
            "new rows."
        )


def kinds_of(given: Any, names: Sequence[str], kinds: Iterable[str]) -> tuple[str, ...]:
    """Kinds of the columns, those to take by value being categories; see `categorical_mask`."""
    by_value = categorical_mask(given, names)
    return tuple("category" if one else kind for one, kind in zip(by_value, kinds, strict=True))


def categorical_mask(given: Any, names: Sequence[str]) -> np.ndarray:
    """Mask of the columns to take by value whatever their type."""
    mask = np.zeros(len(names), dtype=bool)
    if isinstance(given, str) and given == "from_dtype":
        return mask
    listed = np.asarray(given)
    if listed.dtype.kind == "b" and listed.shape == mask.shape:
        return listed
    if listed.dtype.kind in "iu" and listed.ndim == 1:
        if len(listed) and not (listed.min() >= 0 and listed.max() < len(names)):
            raise InputError(
                f"categorical_features must name columns 0 to {len(names) - 1}. "
                f"Got {listed.tolist()}."
            )
        mask[listed] = True
        return mask
    if listed.ndim == 1 and (listed.dtype.kind in "UO" or not len(listed)):
        unknown = [name for name in listed.tolist() if name not in names]
        if unknown:
            raise InputError(f"categorical_features names no column of X: {unknown}.")
        return np.isin(np.array(names, dtype=object), listed.astype(object))
    raise InputError(
        f"categorical_features must be 'from_dtype', or names, indices or a mask of "
        f"{len(names)} columns. Got {given!r}."
    )
