"""What a path rests on, family by family: the numbers that plots, reports and commands show.

Each family fills its own class as ``SelectionPath.evidence``; nothing outside a family
reads fitted attributes. Arrays are read-only, and everything survives JSON to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from holdtrue.records import Record

__all__ = [
    "ColumnEvidence",
    "ContestEvidence",
    "DomainEvidence",
    "Evidence",
    "Shape",
    "SizeEvidence",
    "SourceEvidence",
]


@dataclass(frozen=True, eq=False)
class Evidence(Record):
    """Base of the evidence of all families."""


_NONE: Any = ()  # becomes an empty array
# Two columns tell the same if neither adds more than this share of what it explains alone.
SAME = 0.05


@dataclass(frozen=True, eq=False)
class Shape(Record):
    """What the predictor of one column says at each of its values or bins.

    Attributes
    ----------
    column : str
    of : str
        What the numbers are: "share of 'yes'", or "mean".
    labels : tuple of str
        The values or bins in words; "5 others" and "missing" may come last.
    ticks : tuple of str
        Where values have an order: the values, or the ends of bins, one more. Otherwise empty.
    values, low, high : ndarray of shape (n_labels,)
        The shrunk share or mean, and its interval.
    n_rows : ndarray of shape (n_labels,)
    reference : float
        The same of all rows.
    """

    column: str
    of: str
    labels: tuple[str, ...]
    ticks: tuple[str, ...]
    values: np.ndarray
    low: np.ndarray
    high: np.ndarray
    n_rows: np.ndarray
    reference: float


@dataclass(frozen=True, eq=False)
class ColumnEvidence(Evidence):
    """Of `categories`: every column by itself, in the order of the data.

    Attributes
    ----------
    names, kinds : tuple of str
        ``kinds`` are "category", "integer", "number" or "empty".
    read_as : tuple of str
        In words: by its values, or in how many bins.
    scores, standard_errors, low, high : ndarray of shape (n_columns,)
        Estimated loss on new data and its interval.
    no_column : ndarray of shape (n_columns,)
        The same without the column.
    gain_low, gain_high : ndarray of shape (n_columns,)
        Interval of ``no_column - scores``.
    coverage : ndarray of shape (n_columns,)
        Share of new rows whose value has been seen.
    n_values : ndarray of shape (n_columns,)
    id_like, predicts : ndarray of bool, shape (n_columns,)
    verdicts : tuple of str
        What to think of each column, in words.
    in_sample : bool
        Whether the scores are those of the rows of the fit, as with the usual criteria of trees.
    share_wrong, no_column_wrong : ndarray of shape (n_columns,), or empty
        Share of new rows whose class is not the likeliest one, with the column and without; NaN
        where the target is a number or the criterion has none.
    strengths : ndarray of shape (n_columns,), or empty
        Rows that the overall shares (or mean) weigh in each value's; NaN where nothing is shrunk.
    group_like : ndarray of bool, shape (n_columns,), or empty
        Whether rows of one value look like those of one subject.
    predictor : str
        Whose loss the scores are, in words.
    new_data : str
        What new data are: "new rows" or "new groups".
    shapes : tuple of Shape
        Of the best columns that predict, the best first.
    adds_to : ndarray of int, shape (n_columns,), or empty
        A better column to which this one adds little; -1 for none.
    adds, misses : ndarray of shape (n_columns,), or empty
        What it adds, as a share of what it explains alone, and what that column adds to it; NaN for
        none. Where both are small the two tell the same.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    read_as: tuple[str, ...]
    scores: np.ndarray
    standard_errors: np.ndarray
    low: np.ndarray
    high: np.ndarray
    no_column: np.ndarray
    gain_low: np.ndarray
    gain_high: np.ndarray
    coverage: np.ndarray
    n_values: np.ndarray
    id_like: np.ndarray
    predicts: np.ndarray
    verdicts: tuple[str, ...] = ()
    in_sample: bool = False
    share_wrong: np.ndarray = _NONE
    no_column_wrong: np.ndarray = _NONE
    strengths: np.ndarray = _NONE
    group_like: np.ndarray = _NONE
    predictor: str = ""
    new_data: str = "new rows"
    shapes: tuple[Shape, ...] = ()
    adds_to: np.ndarray = _NONE
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
    """Of `compare`: every model where it had not been fitted, the one with the least error first.

    Attributes
    ----------
    names : tuple of str
    errors, low, high : ndarray of shape (n_models,)
        Mean error and its interval: of *one* new domain, or of the mean over new rows.
    differences, standard_errors : ndarray of shape (n_models,)
        Error above that of the first, with the paired standard error.
    skill : ndarray of shape (n_models,)
        nan where errors may be negative.
    n_features, seconds : ndarray of shape (n_models,)
        Features used, and the time of a fit; nan where it was not measured.
    no_model : float
        Error of predicting the mean, or the most frequent class.
    recommended : str
    scoring : str
        What the errors measure.
    level : float
        Of the intervals.
    domains : tuple of str
        Left out in turn; empty where rows were.
    domain_errors : ndarray of shape (n_models, n_domains)
    """

    names: tuple[str, ...]
    errors: np.ndarray
    low: np.ndarray
    high: np.ndarray
    differences: np.ndarray
    standard_errors: np.ndarray
    skill: np.ndarray
    n_features: np.ndarray
    seconds: np.ndarray
    no_model: float
    recommended: str
    scoring: str
    level: float
    domains: tuple[str, ...]
    domain_errors: np.ndarray


@dataclass(frozen=True, eq=False)
class DomainEvidence(Evidence):
    """Of `domains`: what each feature does in each domain, and what held-out domains say.

    Attributes
    ----------
    names : tuple of str
        The features, in the order of the data.
    domains : tuple of str
        Empty where every row is its own domain.
    targets : tuple of str
        The class that each row of ``effects`` tells from the rest; empty for a numeric target.
        With two classes one row, which tells the class named from the other.
    effects : ndarray of shape (n_targets, n_features, n_domains)
    n_rows : ndarray of shape (n_domains,)
    t_scores : ndarray of shape (n_targets, n_features)
        T of every feature before any step.
    step_t, chance_levels : ndarray of shape (n_steps,)
        T of each step's feature as it enters, and the level that chance reaches.
    steady : ndarray of bool, shape (n_features,)
        Features that entered beyond chance. Those used for prediction are the path's.
    held_out : ndarray of shape (n_steps + 1, n_domains), or empty where nothing was held out
    held_out_within : ndarray of shape (n_steps + 1, n_domains), or empty
        The same about the mean of each held-out domain.
    new_errors : ndarray of shape (n_domains,), or empty
        Error at each domain of a path chosen anew without it.
    new_domain_score : float
        Their mean; nan where it is not known.
    new_domain_low, new_domain_high : float
        Interval of the error at one new domain.
    mean_low, mean_high : float
        Interval of the mean error over new domains.
    rule, domain_weight, center : str
        How the walk was taken.
    notes : tuple of str
        What a reader of the result must know, in sentences; T-Greedy warns of each.
    """

    names: tuple[str, ...]
    domains: tuple[str, ...]
    targets: tuple[str, ...]
    effects: np.ndarray
    n_rows: np.ndarray
    t_scores: np.ndarray
    step_t: np.ndarray
    chance_levels: np.ndarray
    steady: np.ndarray
    held_out: np.ndarray
    held_out_within: np.ndarray
    new_errors: np.ndarray
    new_domain_score: float
    new_domain_low: float
    new_domain_high: float
    mean_low: float
    mean_high: float
    rule: str
    domain_weight: str
    center: str
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class SizeEvidence(Evidence):
    """Of `model_size`: every criterion at every size.

    Attributes
    ----------
    n_terms : ndarray of shape (n_sizes,)
    criteria : dict of ndarray of shape (n_sizes,)
        ``"train"``, the error on the rows of the fit, is one of them.
    choices : dict of int
        The size that each criterion chooses.
    criterion : str
        The one that chose.
    """

    n_terms: np.ndarray
    criteria: dict[str, np.ndarray]
    choices: dict[str, int]
    criterion: str


@dataclass(frozen=True, eq=False)
class SourceEvidence(Evidence):
    """Of `sources`: the weight of every candidate, and the error with and without sources.

    Attributes
    ----------
    names : tuple of str
        Columns of X, then sources in pool order.
    n_features : int
        How many of them are columns.
    weights : ndarray of shape (n_targets, n_candidates)
        What one standard deviation of the candidate adds to the score of the target.
    targets : tuple of str
        The class of each row of ``weights``; empty for a numeric target.
    errors : dict of float
        Error on left-out rows by what was used: "with_sources", "without_sources".
    """

    names: tuple[str, ...]
    n_features: int
    weights: np.ndarray
    targets: tuple[str, ...]
    errors: dict[str, float]
