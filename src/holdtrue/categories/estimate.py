"""An estimated loss with what belongs beside it, and what to think of the column that has it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from holdtrue.columns.bins import Outline
from holdtrue.evidence import ColumnEvidence, Shape

MOST_SHAPES = 24  # columns of which a path keeps the shape
# Largest value of a loss where it is not 1; the least is 0.
LARGEST = dict.fromkeys(("log_loss", "squared_error", "information_gain"), math.inf)
LARGEST["brier"] = 2.0


class Estimate(NamedTuple):
    """Loss of a column's predictor on new rows (or groups), with what belongs beside it."""

    loss: str
    score: float  # mean left-out loss
    # row_error, pair_error: the parts of its standard error, from rows and from pairs of rows
    row_error: float
    pair_error: float
    no_column: float  # the same without the column
    # Standard error of the gain, from the rows' paired differences alone, by which columns are
    # kept; `gain_interval` counts pairs of rows too
    gain_standard_error: float
    # Share of rows whose likeliest class, left out, is not theirs; NaN for a numeric target
    share_wrong: float
    strength: float  # the strength taken; NaN where nothing is shrunk
    # Rows that were left out one by one; of groups the effective number, by which quantiles go
    n_units: float
    no_column_wrong: float = math.nan  # ``share_wrong`` without the column
    # Whether a row (or group) left out may change the most frequent class: its class is then the
    # rarer, and a weak column seems wrong more often than it is
    is_tied: bool = False
    # What ``no_column`` has because its class was chosen in half of the rows. It is no gain: those
    # of a column are chosen in all other rows (`shrunk`, departure 7)
    half_cost: float = 0.0

    @property
    def gain(self) -> float:
        """``no_column - score``; the share wrong beside the class most frequent in all rows."""
        return self.no_column - self.half_cost - self.score

    @property
    def standard_error(self) -> float:
        """Standard error of the score."""
        return math.hypot(self.row_error, self.pair_error)

    @property
    def wrong(self) -> float:
        """Share of new rows whose class is predicted wrong; of a useless column, that of none.

        Where the classes of a value tie, a row (or group) left out finds its own in the minority,
        and all rows of the value seem wrong. A column that gains and seems wrong more often than
        none by more than chance, three standard errors, has such ties.
        """
        excess = self.share_wrong - self.no_column_wrong
        if self.gain <= 0 or not excess > 0:
            return self.share_wrong
        chance = math.sqrt(self.share_wrong * (1 - self.share_wrong) / self.n_units)
        is_owed_to_ties = self.is_tied or excess > 3 * chance
        return self.no_column_wrong if is_owed_to_ties else self.share_wrong

    @property
    def skill(self) -> float:
        """``1 - score/no_column``: 1 is perfect, 0 no better than no column."""
        return 1 - self.score / self.no_column if self.no_column > 0 else 0.0

    def judged(
        self, alpha: float, min_gain_se: float, least_skill: float
    ) -> tuple[tuple[float, float], tuple[float, float], bool]:
        """Both intervals, and whether the gain is beyond the errors and the skill asked for."""
        beats_no_column = self.gain > max(
            min_gain_se * self.gain_standard_error,
            max(least_skill, 1e-12) * self.no_column,  # the least is beyond rounding
        )
        return self.interval(alpha), self.gain_interval(alpha), beats_no_column

    def interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Ends that hold the loss on new data with probability 1 - α, inside the loss's range.

        ``score exp(± t se/score)``, Student's interval of the logarithm: losses are skewed, of few
        groups above all, and the interval of the score itself is exceeded too often. Where
        ``t se`` is more than the score, the upper end is ``e t se``, the exponential's tangent.
        """
        radius = _quantile(self.n_units, alpha) * self.standard_error
        ratio = radius / self.score if self.score > 0 else math.inf
        high = self.score * math.exp(ratio) if ratio <= 1 else math.e * radius
        return self.score * math.exp(-ratio), min(high, LARGEST.get(self.loss, 1.0))

    def gain_interval(self, alpha: float = 0.05) -> tuple[float, float]:
        """Ends that hold the gain with probability 1 - α; 0 and 0 where no column is taken."""
        if math.isinf(self.strength):
            return 0.0, 0.0
        error = math.hypot(self.gain_standard_error, self.pair_error)
        radius = _quantile(self.n_units, alpha) * error
        return self.gain - radius, self.gain + radius


def _quantile(n_units: float, alpha: float) -> float:
    return float(stdtrit(n_units - 1, 1 - alpha / 2)) if n_units > 1 else math.nan


class ColumnEstimate(NamedTuple):
    """A column's estimated loss and what is needed to judge it."""

    kind: str  # one of `holdtrue.columns.values.KINDS`
    estimate: Estimate  # by the best way to read the column
    interval: tuple[float, float]  # for the score
    gain_interval: tuple[float, float]  # for `Estimate.gain`
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
    outline: Outline | None = None  # of columns that predict, where their values are known

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


def best_first(estimates: Sequence[ColumnEstimate]) -> list[int]:
    """Columns from the least score to the greatest."""
    return score_order(np.array([column.estimate.score for column in estimates])).tolist()


def score_order(scores: np.ndarray) -> np.ndarray:
    """Columns from the least score to the greatest; ties keep their order."""
    scale = np.abs(scores).max(initial=0) or 1.0
    return np.argsort(np.round(scores / scale, 12), kind="stable")


def column_evidence(
    names: Sequence[str],
    estimates: Sequence[ColumnEstimate],
    predictor: str,
    shapes: tuple[Shape, ...],
    **twins: np.ndarray,
) -> ColumnEvidence:
    """What a path over columns rests on, column by column.

    ``predictor`` is whose loss the scores are, in words; ``twins`` are further fields.
    """

    def each(field: str) -> np.ndarray:
        return np.array(list(map(attrgetter(field), estimates)))

    intervals, gains = each("interval").reshape(-1, 2), each("gain_interval").reshape(-1, 2)
    return ColumnEvidence(
        names=tuple(names),
        kinds=tuple(column.kind for column in estimates),
        read_as=tuple(column.read_as for column in estimates),
        scores=each("estimate.score"),
        standard_errors=each("estimate.standard_error"),
        low=intervals[:, 0],
        high=intervals[:, 1],
        no_column=each("estimate.no_column"),
        gain_low=gains[:, 0],
        gain_high=gains[:, 1],
        coverage=each("coverage"),
        n_values=each("n_values"),
        id_like=each("is_id_like"),
        predicts=each("beats_no_column"),
        verdicts=tuple(column.verdict for column in estimates),
        in_sample=estimates[0].in_sample,
        share_wrong=each("estimate.wrong"),
        no_column_wrong=each("estimate.no_column_wrong"),
        strengths=each("estimate.strength"),
        group_like=each("is_group_like"),
        predictor=predictor,
        new_data=estimates[0].new_data,
        shapes=shapes,
        **twins,
    )
