"""What a path rests on, family by family: the numbers that plots, reports and commands show.

Each family fills its own class as ``SelectionPath.evidence``; nothing outside a family
reads fitted attributes. Arrays are read-only, and everything survives JSON to the last bit.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from holdtrue.records import Record


@dataclass(frozen=True, eq=False)
class Evidence(Record):
    """Base of the evidence of all families."""


def natural_order(labels: Sequence[str]) -> list[int]:
    """Indices that sort labels as people do: numbers by size, also in "week 2", "week 10"."""
    keys: list[Any]
    try:
        keys = [float(label) for label in labels]
    except ValueError:
        keys = [math.nan]
    if not all(map(math.isfinite, keys)):
        keys = [
            [(not part.isdecimal(), int(part) if part.isdecimal() else part) for part in parts]
            for parts in (re.split(r"(\d+)", label) for label in labels)
        ]
    return sorted(range(len(labels)), key=keys.__getitem__)


_NONE: Any = ()  # becomes an empty array
# Two columns tell the same if neither adds more than this share of what it explains alone.
SAME = 0.05


@dataclass(frozen=True, eq=False)
class Shape(Record):
    """What the predictor of one column says at each of its values or bins."""

    column: str
    of: str  # what the numbers are: "share of 'yes'", or "mean"
    labels: tuple[str, ...]  # the values or bins in words; "5 others" and "missing" may come last
    # Where values have an order: the values, or the ends of bins, one more. Otherwise empty.
    ticks: tuple[str, ...]
    # values, low, high, shape (n_labels,): the shrunk share or mean, and its interval
    values: np.ndarray
    low: np.ndarray
    high: np.ndarray
    n_rows: np.ndarray  # shape (n_labels,)
    reference: float  # share or mean over all rows


@dataclass(frozen=True, eq=False)
class ColumnEvidence(Evidence):
    """Of `categories`: every column by itself, in the order of the data."""

    # names, kinds: ``kinds`` are "category", "integer", "number" or "empty"
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    read_as: tuple[str, ...]  # in words: by its values, or in how many bins
    # scores, standard_errors, low, high, shape (n_columns,): estimated loss on new data and its
    # interval
    scores: np.ndarray
    standard_errors: np.ndarray
    low: np.ndarray
    high: np.ndarray
    no_column: np.ndarray  # shape (n_columns,): the same without the column
    # gain_low, gain_high, shape (n_columns,): interval of ``no_column - scores``; in the share
    # wrong beside the class most frequent in all rows
    gain_low: np.ndarray
    gain_high: np.ndarray
    coverage: np.ndarray  # shape (n_columns,): share of new rows whose value has been seen
    n_values: np.ndarray  # shape (n_columns,)
    # id_like, predicts, shape (n_columns,)
    id_like: np.ndarray
    predicts: np.ndarray
    verdicts: tuple[str, ...] = ()  # what to think of each column, in words
    # Whether the scores are those of the rows of the fit, as with the usual criteria of trees
    in_sample: bool = False
    # share_wrong, no_column_wrong, shape (n_columns,), or empty: share of new rows whose class is
    # not the likeliest one, with the column and without; NaN where the target is a number or the
    # criterion has none
    share_wrong: np.ndarray = _NONE
    no_column_wrong: np.ndarray = _NONE
    # shape (n_columns,), or empty: rows that the overall shares (or mean) weigh in each value's;
    # NaN where nothing is shrunk
    strengths: np.ndarray = _NONE
    # shape (n_columns,), or empty: whether rows of one value look like those of one subject
    group_like: np.ndarray = _NONE
    predictor: str = ""  # whose loss the scores are, in words
    new_data: str = "new rows"  # what new data are: "new rows" or "new groups"
    shapes: tuple[Shape, ...] = ()  # of the best columns that predict, the best first
    # shape (n_columns,), or empty: a better column to which this one adds little; -1 for none
    adds_to: np.ndarray = _NONE
    # adds, misses, shape (n_columns,), or empty: what it adds, as a share of what it explains
    # alone, and what that column adds to it; NaN for none. Where both are small the two tell the
    # same.
    adds: np.ndarray = _NONE
    misses: np.ndarray = _NONE

    @property
    def skill(self) -> np.ndarray:
        """``1 - score/no_column`` of each column; 0 where both are 0."""
        removed = self.no_column - self.scores
        return np.divide(
            removed, self.no_column, out=np.zeros(len(removed)), where=self.no_column != 0
        )

    def twin(self, j: int) -> tuple[str, bool] | None:
        """A better column to which column j adds little, and whether the two tell the same."""
        if not len(self.adds_to) or self.adds_to[j] < 0:
            return None
        return self.names[self.adds_to[j]], bool(self.misses[j] <= SAME)


@dataclass(frozen=True, eq=False)
class ContestEvidence(Evidence):
    """Of `compare`: every model where it had not been fitted, the least error first."""

    names: tuple[str, ...]
    # errors, low, high, shape (n_models,): mean error and its interval: of *one* new domain, or of
    # the mean over new rows
    errors: np.ndarray
    low: np.ndarray
    high: np.ndarray
    # differences, standard_errors, shape (n_models,): error above that of the first, with the
    # paired standard error
    differences: np.ndarray
    standard_errors: np.ndarray
    skill: np.ndarray  # shape (n_models,): nan where errors may be negative
    # n_features, seconds, shape (n_models,): features used, and the time of a fit; nan where it was
    # not measured
    n_features: np.ndarray
    seconds: np.ndarray
    no_model: float  # error of predicting the mean, or the most frequent class
    recommended: str
    scoring: str  # what the errors measure
    level: float  # of the intervals
    domains: tuple[str, ...]  # left out in turn; empty where rows were
    domain_errors: np.ndarray  # shape (n_models, n_domains)


@dataclass(frozen=True, eq=False)
class DomainEvidence(Evidence):
    """Of `domains`: what each feature does in each domain, and what held-out domains say."""

    names: tuple[str, ...]  # the features, in the order of the data
    domains: tuple[str, ...]  # empty where every row is its own domain
    # The class that each row of ``effects`` tells from the rest; empty for a numeric target. With
    # two classes one row, which tells the class named from the other.
    targets: tuple[str, ...]
    effects: np.ndarray  # shape (n_targets, n_features, n_domains)
    n_rows: np.ndarray  # shape (n_domains,)
    t_scores: np.ndarray  # shape (n_targets, n_features): t of every feature before any step
    # step_t, chance_levels, shape (n_steps,): t of each step's feature as it enters, and the level
    # that chance reaches
    step_t: np.ndarray
    chance_levels: np.ndarray
    # shape (n_features,): features that entered beyond chance. Those used for prediction are the
    # path's.
    steady: np.ndarray
    held_out: np.ndarray  # shape (n_steps + 1, n_domains), or empty
    # shape (n_steps + 1, n_domains), or empty: the same about the mean of each held-out domain
    held_out_within: np.ndarray
    # shape (n_domains,), or empty: error at each domain of a path chosen anew without it
    new_errors: np.ndarray
    new_domain_score: float  # their mean; nan where it is not known
    # new_domain_low, new_domain_high: interval of the error at one new domain
    new_domain_low: float
    new_domain_high: float
    # mean_low, mean_high: interval of the mean error over new domains
    mean_low: float
    mean_high: float
    # rule, domain_weight, center: how the walk was taken
    rule: str
    domain_weight: str
    center: str
    # What a reader of the result must know, in sentences; T-Greedy warns of each
    notes: tuple[str, ...]
    # of the shape of ``effects``, or empty where it is the same: effects about each domain's own
    # means, in units of what varies within domains
    effects_within: np.ndarray = _NONE


@dataclass(frozen=True, eq=False)
class PenaltyEvidence(Evidence):
    """Of `SteadyRidge*`: the spreads and penalties that competed at held-out domains."""

    # intercept_spreads, slope_spreads, penalties, scores, weights, shape (n_candidates,): each
    # candidate, its squared error on held-out domains and its share in the average
    intercept_spreads: np.ndarray
    slope_spreads: np.ndarray
    penalties: np.ndarray
    scores: np.ndarray
    weights: np.ndarray
    # shape (n_domains,), or empty: error of the average at each domain, chosen anew without it
    new_errors: np.ndarray

    @property
    def pooled_error(self) -> float:
        """Least error of a ridge on all rows pooled: the candidates without any spread."""
        is_pooled = (self.intercept_spreads == 0) & (self.slope_spreads == 0)
        return float(self.scores[is_pooled].min())


@dataclass(frozen=True, eq=False)
class SizeEvidence(Evidence):
    """Of `model_size`: every criterion at every size."""

    n_terms: np.ndarray  # shape (n_sizes,)
    # shape (n_sizes,): ``"train"``, the error on the rows of the fit, is one of them
    criteria: dict[str, np.ndarray]
    choices: dict[str, int]  # the size that each criterion chooses
    criterion: str  # the one that chose
    new_error: float = np.nan  # of the average, at left-out points; NaN where one size predicts


@dataclass(frozen=True, eq=False)
class SourceEvidence(Evidence):
    """Of `sources`: the weight of every candidate, and the error with and without sources."""

    names: tuple[str, ...]  # columns of X, then sources in pool order
    n_features: int  # how many of them are columns
    # shape (n_targets, n_candidates): what one standard deviation of the candidate adds to the
    # score of the target
    weights: np.ndarray
    targets: tuple[str, ...]  # the class of each row of ``weights``; empty for a numeric target
    # Error on left-out rows by what was used: "with_sources", "without_sources"
    errors: dict[str, float]
    lam: float = np.nan  # the penalty, as given or chosen

    @property
    def n_sources(self) -> int:
        """Number of candidates that are sources."""
        return len(self.names) - self.n_features
