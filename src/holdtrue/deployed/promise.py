"""What is promised of a model before anybody has seen new data, and whether it was kept."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import stats

from holdtrue.charts import number
from holdtrue.compare import Comparison
from holdtrue.compare.comparison import SHARE_WRONG
from holdtrue.domains.bounds import mean_and_spread, row_interval
from holdtrue.records import Record

# Groups above the interval that chance explains less often than this break the promise.
_CHANCE = 0.05


class Verdict(NamedTuple):
    """Whether a promise was kept."""

    kept: bool
    sentence: str


@dataclass(frozen=True, eq=False)
class Promise(Record):
    """The error to expect of a model on new data, measured where it had not been fitted.

    Attributes
    ----------
    unit : str
        "share wrong" or "mean squared error".
    error, low, high : float
        With groups the interval is that of *one* new group, otherwise that of the mean error.
    standard_error : float
        Of ``error``.
    without : float
        Error of predicting the mean, or the most frequent class.
    level : float
        Of the interval.
    groups : str or None
        Column that tells groups apart, which were left out as a whole. None: new data are new rows.
    n_left_out : int
        Groups, or rows, that were left out in turn.
    """

    unit: str
    error: float
    low: float
    high: float
    standard_error: float
    without: float
    level: float
    groups: str | None
    n_left_out: int

    @classmethod
    def from_contest(cls, contest: Comparison, name: str, groups: str | None) -> Promise:
        """What a contest says of one of its models."""
        errors, weight = contest.errors[contest.names.index(name)], contest.unit_weights
        return cls(
            contest.scoring,
            float(np.average(errors, weights=weight)),
            *contest.interval(name),
            _standard_error(errors, weight),
            contest.no_model,
            contest.level,
            groups,
            len(errors) if weight is None else round(float(weight.sum())),
        )

    @property
    def where(self) -> str:
        """What new data are, in words."""
        return "on new rows" if self.groups is None else f"at a new {self.groups}"

    def __str__(self) -> str:
        return (
            f"{self.unit} of {number(self.error)} ({number(self.low)} to {number(self.high)}) "
            f"{self.where}, {number(self.without)} without a model"
        )

    def of_rows(self, losses: np.ndarray) -> Verdict:
        """Whether the promise about new rows was kept, given the loss of each row.

        Broken if the mean loss exceeds the promised error by more than both are uncertain.
        """
        error = float(losses.mean())
        gap = error - self.error
        noise = self._noise_of_rows(losses, error)
        measured = f"the {self.unit} is {number(error)} on {len(losses):,} rows"
        promised = f"promised was {number(self.error)} ({number(self.low)} to {number(self.high)})"
        kept, end = "kept", " The difference is within chance."
        if gap > noise:
            kept = "not kept"
            end = f" That is {number(gap)} more, and chance explains {number(noise)}."
        elif gap < -noise:
            kept, end = "kept and more", ""
        return Verdict(gap <= noise, f"The promise was {kept}: {measured}, {promised}.{end}")

    def of_groups(self, errors: np.ndarray) -> Verdict:
        """Whether the promise about new groups was kept, given the error of each group.

        Broken if more groups lie above the interval than chance explains, or if their mean error
        exceeds the promised one by more than both are uncertain.
        """
        n_groups, n_above = len(errors), int((errors > self.high).sum())
        n_below = int((errors < self.low).sum())
        n_within = n_groups - n_above - n_below
        # The limit is itself an estimate, uncertain as an order statistic of the groups left out.
        tail = (self.n_left_out + 1) * (1 - self.level) / 2
        chance = float(stats.betabinom.sf(n_above - 1, n_groups, tail, self.n_left_out + 1 - tail))
        error, noise = float(errors.mean()), self._noise(errors)
        is_higher = error - self.error > noise
        says_nothing = self.low <= 0 and self.high >= (1 if self.unit == SHARE_WRONG else math.inf)
        kept = (n_above == 0 or chance >= _CHANCE) and not is_higher
        count = f"{n_within} of {n_groups} " + ("lies" if n_groups == 1 else "lie")
        return Verdict(
            kept,
            f"The promise was {'' if kept else 'not '}kept: {count} within the promised "
            f"{number(self.low)} to {number(self.high)}"
            + (", as any error would" if says_nothing else "")
            + (f", {n_above} above" if n_above else "")
            + (f", {n_below} below" if n_below else "")
            + f"; their {self.unit} is {number(error)} on average, promised was "
            f"{number(self.error)}"
            + (f"; chance explains up to {number(self.error + noise)}." if is_higher else "."),
        )

    def _noise_of_rows(self, losses: np.ndarray, error: float) -> float:
        """How far chance takes the mean of new losses from the promised error.

        Newcombe's way: how far the limits of both are from them, on the sides that face each other.
        Neither interval is symmetric: 0 wrong of 40 is not 0 for sure, and a mean of squares is
        more often far too small than far too large.
        """
        low, high = self._limits(losses, error)
        if error > self.error:
            return math.hypot(error - low, self.high - self.error)
        return math.hypot(high - error, self.error - self.low)

    def _limits(self, losses: np.ndarray, error: float) -> tuple[float, float]:
        """Interval of the mean of new losses; that of a share is exact (Clopper & Pearson)."""
        n, tail = len(losses), (1 - self.level) / 2
        if self.unit != SHARE_WRONG:
            return row_interval(losses, self.level) if n > 1 else (-math.inf, math.inf)
        n_wrong = error * n
        low = stats.beta.ppf(tail, n_wrong, n - n_wrong + 1) if n_wrong > 0 else 0.0
        high = stats.beta.ppf(1 - tail, n_wrong + 1, n - n_wrong) if n_wrong < n else 1.0
        return float(low), float(high)

    def _noise(self, losses: np.ndarray) -> float:
        """How far chance takes the mean of new groups from the promised error (Welch's t)."""
        spread = _standard_error(losses)
        if math.isinf(self.standard_error + spread):
            return math.inf
        variances = np.square([self.standard_error, spread])
        parts = variances**2 / [self.n_left_out - 1, len(losses) - 1]
        n_free = float(variances.sum() ** 2 / parts.sum()) if parts.any() else math.inf
        return math.sqrt(variances.sum()) * float(stats.t.ppf((1 + self.level) / 2, n_free))


def _standard_error(losses: np.ndarray, weight: np.ndarray | None = None) -> float:
    if len(losses) < 2:
        return math.inf
    _, spread, n = mean_and_spread(losses, weight)
    return float(spread) / math.sqrt(n)
