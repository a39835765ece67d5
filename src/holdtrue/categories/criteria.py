"""What a column may be judged by: the tables `CRITERIA`, for classes, and `NUMERIC_CRITERIA`.

A criterion takes the tables of a column's readings. Those of a `holdtrue.sums.Profile` leave out
rows; those of a `holdtrue.sums.group_profile.GroupProfile`, by the methods ``group_...``, groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdtrue.categories import grouped, kernel, shrunk, shrunk_mean
from holdtrue.categories.shrunk import (
    CHOSEN_BY,
    STRENGTHS,
    Estimate,
    clearly_least,
    column_total,
    least,
)
from holdtrue.errors import InputError
from holdtrue.sums.group_profile import GroupTable
from holdtrue.sums.profile import B2, B4, M2, M2B2, M3B, M4, C, ProfileTable

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
    min_rows: int = 2  # rows that an estimate needs

    @property
    def in_sample(self) -> bool:
        """Whether it judges the rows of the fit, where many values explain everything."""
        return self.on_fit == self.name

    def best(self, tables: Sequence[ProfileTable], unseen: str) -> tuple[int, Estimate]:
        """Place of the best of a column's readings, and its estimate."""
        at = 0
        if len(tables) > 1:
            at = clearly_least([self.score(table, unseen) for table in tables])
        return at, self.estimate(tables[at], unseen)

    def score(self, table: ProfileTable, unseen: str) -> float:
        """Value for a column in one reading."""
        return kernel.criterion_value(self.name, table.rows, table.repeats, unseen=unseen)

    def no_column(self, table: ProfileTable) -> float:
        """Value for a constant column on the same rows."""
        return kernel.no_column(self.name, (table.repeats @ table.rows)[None])

    def estimate(self, table: ProfileTable, unseen: str) -> Estimate:
        """Value with its standard error, and that of the gain over no column."""
        error, gain_error = kernel.jackknife(self.name, table.rows, table.repeats, unseen=unseen)
        score, no_column = self.score(table, unseen), self.no_column(table)
        is_share = self.name == "misclassification"
        return Estimate(
            self.name, score, error, 0.0, no_column, no_column - score, gain_error,
            score if is_share else math.nan, math.nan, float(table.n_rows),
            no_column if is_share else math.nan,
        )  # fmt: skip

    def split_gain(
        self, table: np.ndarray, parent: np.ndarray, unseen: str
    ) -> tuple[float, float] | None:
        """What finer values gain, and its standard error; None where every gain counts.

        ``parent`` is the coarser value that each value of the table is cut out of.
        """
        return None

    def check_groups(self) -> None:
        """Refuse to leave groups out where no row is."""
        if self.in_sample:
            raise InputError(
                f"criterion={self.name!r} judges the rows of the fit and leaves no group out. "
                "Pass criterion='log_loss', or no groups."
            )

    def group_best(self, tables: Sequence[GroupTable], unseen: str) -> tuple[int, Estimate]:
        """Place of the best reading, and its estimate, with whole groups left out."""
        raise NotImplementedError

    def group_no_column(self, table: GroupTable) -> float:
        """Value for a constant column on the same rows, with whole groups left out."""
        return self.no_column(ProfileTable(0, column_total(table.sums)[None], np.ones(1)))


# --- rules (4) and (5) --------------------------------------------------------------------------


class Rule(Criterion):
    """Error of rule (4) or (5) on new rows, to the letter of the paper.

    What finer values gain is that of rule (4).
    """

    def estimate(self, table: ProfileTable, unseen: str) -> Estimate:
        return shrunk.estimate_rule(self.name, table.rows, table.repeats, unseen=unseen)

    def split_gain(
        self, table: np.ndarray, parent: np.ndarray, unseen: str
    ) -> tuple[float, float] | None:
        return kernel.ginger_gain(table, parent, unseen=unseen)

    def group_best(self, tables: Sequence[GroupTable], unseen: str) -> tuple[int, Estimate]:
        at = 0
        if len(tables) > 1:
            at = clearly_least(
                [grouped.rule_group_score(self.name, way, unseen=unseen) for way in tables]
            )
        return at, grouped.estimate_rule_groups(self.name, tables[at], unseen=unseen)


# --- shrunk shares ------------------------------------------------------------------------------


class Shrunk(Criterion):
    """Left-out loss of shrunk shares at their best strength: log loss, Brier's, share wrong."""

    def best(self, tables: Sequence[ProfileTable], unseen: str) -> tuple[int, Estimate]:
        readings = [(table.rows, table.repeats) for table in tables]
        scores, strengths = shrunk.best_readings(self.name, readings)
        at = clearly_least(scores)
        return at, shrunk.estimate(self.name, *readings[at], strengths=[float(strengths[at])])

    def score(self, table: ProfileTable, unseen: str) -> float:
        return float(shrunk.best_readings(self.name, [(table.rows, table.repeats)])[0][0])

    def no_column(self, table: ProfileTable) -> float:
        total = column_total(table.rows, table.repeats)
        return float(total @ shrunk.no_column_losses(self.name, total) / total.sum())

    def estimate(self, table: ProfileTable, unseen: str) -> Estimate:
        return shrunk.estimate(self.name, table.rows, table.repeats)

    def split_gain(
        self, table: np.ndarray, parent: np.ndarray, unseen: str
    ) -> tuple[float, float] | None:
        return shrunk.finer_gain(self.name, table, parent)

    def group_best(self, tables: Sequence[GroupTable], unseen: str) -> tuple[int, Estimate]:
        chosen_by = CHOSEN_BY[self.name]
        by_strength = grouped.group_scores(chosen_by, tables)
        strengths = [[STRENGTHS[least(scores)]] for scores in by_strength]
        scores = by_strength.min(axis=1)
        if chosen_by != self.name:
            readings = zip(tables, strengths, strict=True)
            scores = np.concatenate(
                [grouped.group_scores(self.name, [one], strengths=a)[0] for one, a in readings]
            )
        at = clearly_least(scores)
        return at, grouped.estimate_groups(self.name, tables[at], strengths=strengths[at])


# --- numeric targets ----------------------------------------------------------------------------


@dataclass(frozen=True)
class ShrunkMean(Criterion):
    """Left-out squared error of the mean shrunk to that of all rows, at its best strength."""

    strengths: tuple[float, ...] = STRENGTHS

    def score(self, table: ProfileTable, unseen: str) -> float:
        return float(shrunk_mean.mean_scores(_count_sums(table)).min())

    def no_column(self, table: ProfileTable) -> float:
        return float(shrunk_mean.mean_scores(_count_sums(table), strengths=[math.inf])[0])

    def estimate(self, table: ProfileTable, unseen: str) -> Estimate:
        return shrunk_mean.estimate_mean(_count_sums(table), strengths=self.strengths)

    def split_gain(
        self, table: np.ndarray, parent: np.ndarray, unseen: str
    ) -> tuple[float, float] | None:
        return shrunk_mean.finer_mean_gain(table, parent)

    def group_best(self, tables: Sequence[GroupTable], unseen: str) -> tuple[int, Estimate]:
        estimates = [
            grouped.estimate_mean_groups(table, strengths=self.strengths) for table in tables
        ]
        at = clearly_least([estimate.score for estimate in estimates])
        return at, estimates[at]

    def group_no_column(self, table: GroupTable) -> float:
        everything = np.zeros_like(table.value)
        whole = grouped.meet(everything, table.group, table.sums)
        return grouped.estimate_mean_groups(whole, strengths=(math.inf,)).score


class PlainMean(ShrunkMean):
    """Leave-one-out squared error of the value's mean, not shrunk.

    A value seen once always costs what no column does.
    """

    def score(self, table: ProfileTable, unseen: str) -> float:
        return shrunk_mean.plain_score(table.rows, table.repeats)

    def estimate(self, table: ProfileTable, unseen: str) -> Estimate:
        result, score = super().estimate(table, unseen), self.score(table, unseen)
        return result._replace(score=score, gain=result.no_column - score, strength=math.nan)

    def split_gain(
        self, table: np.ndarray, parent: np.ndarray, unseen: str
    ) -> tuple[float, float] | None:
        return shrunk_mean.plain_gain(table, parent)


def _count_sums(table: ProfileTable) -> shrunk_mean.CountSums:
    """What the shrunk mean needs of a profile."""
    rows = table.rows
    sums = (rows[:, column] for column in (B2, B4, M2, M2B2, M3B, M4))
    return shrunk_mean.CountSums(rows[:, C], table.repeats.astype(np.float64), *sums)


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
