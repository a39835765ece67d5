"""The result of a contest: errors of models where they had not been fitted, and the verdict."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from holdtrue.charts import Chart, Dot, Dots, number, svg
from holdtrue.charts.axes import draw, new_axes
from holdtrue.domains.bounds import (
    mean_and_spread,
    new_domain_interval,
    row_interval,
    share_interval,
    student_interval,
)
from holdtrue.domains.kernel import TIE
from holdtrue.errors import InputError, counted, did_you_mean, speaks
from holdtrue.evidence import ContestEvidence
from holdtrue.path import SelectionPath, data_frame, skill_of

__all__ = ["SHARE_WRONG", "SQUARED_ERROR", "Comparison", "ComparisonDisplay", "contest_chart"]

SHARE_WRONG, SQUARED_ERROR = "share wrong", "mean squared error"
SQUARED_SHARES = "squared error of shares"
# The largest error that there is
_LARGEST = {SHARE_WRONG: 1.0, SQUARED_SHARES: 2.0}


@dataclass(frozen=True, eq=False)
class Comparison:
    """Errors of models at domains, or on rows, that they have not seen.

    Build one with `compare_models`.

    Parameters
    ----------
    names : tuple of str
        The models, in the order in which they were given.
    errors : ndarray of shape (n_models, n_units)
        Error of each model in each unit: a domain, a row, or a part of the rows with a scorer that
        judges many rows at once. Lower is better.
    null : ndarray of shape (n_units,)
        Error in each unit of predicting the mean, or the most frequent class.
    units : tuple of str
        The domains; empty where units are rows or parts of them.
    n_features : ndarray of shape (n_models,)
        Features that each model uses when it is fitted on everything but one part, on average.
    seconds : ndarray of shape (n_models,)
        Mean time of a fit.
    scoring : str
        What ``errors`` measure.
    level : float
        Of the intervals.
    unit_weights : ndarray of shape (n_units,), optional
        Repetitions of each row, where units are rows with weights.
    prefer_simple : bool
        Whether the simplest model within one standard error of the best is recommended; the best
        itself otherwise.

    See Also
    --------
    compare_models : Builds one.
    ComparisonDisplay : Draws one.

    Examples
    --------
    >>> import numpy as np
    >>> from holdtrue import Comparison
    >>> contest = Comparison(
    ...     names=("ridge", "mean"), errors=np.array([[1.0, 2.0, 1.5], [3.0, 5.0, 4.0]]),
    ...     null=np.array([3.0, 5.0, 4.0]), units=("A", "B", "C"),
    ...     n_features=np.array([10, 0]), seconds=np.array([0.1, 0.0]),
    ...     scoring="mean squared error")
    >>> contest.recommended
    'ridge'
    >>> contest.to_frame("pyarrow")["skill"].to_pylist()
    [0.625, 0.0]
    """

    names: tuple[str, ...]
    errors: np.ndarray
    null: np.ndarray
    units: tuple[str, ...]
    n_features: np.ndarray
    seconds: np.ndarray
    scoring: str
    level: float = 0.95
    unit_weights: np.ndarray | None = None
    prefer_simple: bool = True

    @property
    def is_grouped(self) -> bool:
        """Whether whole domains were left out."""
        return bool(self.units)

    @property
    def mean_errors(self) -> np.ndarray:
        """Mean error of each model over domains, or rows, shape (n_models,)."""
        return np.average(self.errors, axis=1, weights=self.unit_weights)

    @property
    def no_model(self) -> float:
        """Mean error of predicting the mean, or the most frequent class."""
        return float(np.average(self.null, weights=self.unit_weights))

    @property
    def best(self) -> str:
        """The model with the least mean error."""
        return self.names[int(np.argmin(self.mean_errors))]

    @property
    def differences(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean error above that of the best, and its paired standard error, (n_models,) each."""
        paired = self.errors - self.errors[self.names.index(self.best)]
        mean, spread, n = mean_and_spread(paired, self.unit_weights)
        return mean, spread / math.sqrt(n)

    @property
    def recommended(self) -> str:
        """The simplest model within one standard error of the best: few features, little time.

        Or the best, where simplicity is no aim.
        """
        if not self.prefer_simple:
            return self.best
        difference, error = self.differences
        # An error that differs in a single unit is exactly one standard error away.
        near = np.flatnonzero(difference <= error * (1 + TIE))
        return self.names[min(near.tolist(), key=self._simplicity)]

    @property
    def reason(self) -> str:
        """Why the recommended model is recommended, in a sentence."""
        chosen, best = self.names.index(self.recommended), self.names.index(self.best)
        what = f"{self.names[chosen]!r} ({counted(round(self.n_features[chosen]), 'feature')})"
        error = f"{self.scoring} {number(float(self.mean_errors[chosen]))}"
        where = "at a new domain" if self.is_grouped else "on new rows"
        if chosen == best:
            return f"{what} has the least error {where}: {error}"
        difference, spread = (float(part[chosen]) for part in self.differences)
        return (
            f"{what} is the simplest model within one standard error of the best, "
            f"{self.names[best]!r}: {error} {where}, {number(difference)} ± {number(spread)} more"
        )

    @speaks
    def interval(self, name: str) -> tuple[float, float]:
        """Interval of a model's error: at one new domain, or of the mean over new rows."""
        if name not in self.names:
            raise InputError(f"no model {name!r}." + did_you_mean(name, self.names))
        errors = self.errors[self.names.index(name)]
        are_squares = self.scoring in (SQUARED_ERROR, SQUARED_SHARES)
        if self.is_grouped:
            # A share may be 0, a score negative: only squared errors have a logarithm.
            empty = self.no_model if are_squares else None
            low, high = new_domain_interval(errors, self.level, empty)
        elif self.scoring == SHARE_WRONG:
            mean, _, n = mean_and_spread(errors, self.unit_weights)
            low, high = share_interval(float(mean), n, self.level)
        else:
            interval = row_interval if are_squares else student_interval
            low, high = interval(errors, self.level, self.unit_weights)
        if self.scoring in _LARGEST:
            low, high = max(low, 0.0), min(high, _LARGEST[self.scoring])
        return low, high

    @speaks
    def to_frame(self, backend: str = "pandas") -> Any:
        """Table with one row per model, best first.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}

        Returns
        -------
        frame : data frame with columns model, error, low, high, difference, difference_se, skill, \
n_features, seconds, best, recommended
            ``low`` and ``high`` hold the error at *one* new domain; without groups the mean error.
        """
        return data_frame(self.to_dict(), backend)

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns of `to_frame`, as lists."""
        means, null = self.mean_errors, self.no_model
        difference, spread = self.differences
        order = np.argsort(means, kind="stable")
        is_loss = null >= 0 and bool((self.errors >= 0).all())
        intervals = [self.interval(self.names[i]) for i in order]
        return {
            "model": [self.names[i] for i in order],
            "error": means[order].tolist(),
            "low": [low for low, _ in intervals],
            "high": [high for _, high in intervals],
            "difference": difference[order].tolist(),
            "difference_se": spread[order].tolist(),
            "skill": skill_of(means[order], null).tolist() if is_loss else [math.nan] * len(order),
            "n_features": self.n_features[order].tolist(),
            "seconds": self.seconds[order].tolist(),
            "best": [self.names[i] == self.best for i in order],
            "recommended": [self.names[i] == self.recommended for i in order],
        }

    def to_path(self) -> SelectionPath:
        """The contest as a path from the simplest model to the least simple, for reports.

        ``scores[k]`` is the error of the k-th simplest model, ``scores[0]`` that without a model,
        and ``chosen_size`` is the place of the recommended one. `ContestEvidence` has the rest.
        """
        table: dict[str, Any] = self.to_dict()
        order = sorted(range(len(self.names)), key=self._simplicity)
        rows = [self.names.index(name) for name in table["model"]]
        evidence = ContestEvidence(
            names=table["model"],
            errors=table["error"],
            low=table["low"],
            high=table["high"],
            differences=table["difference"],
            standard_errors=table["difference_se"],
            skill=table["skill"],
            n_features=table["n_features"],
            seconds=table["seconds"],
            no_model=self.no_model,
            recommended=self.recommended,
            scoring=self.scoring,
            level=self.level,
            domains=self.units,
            domain_errors=self.errors[rows] if self.is_grouped else np.empty((len(rows), 0)),
        )
        return SelectionPath(
            order=order,
            names=[self.names[i] for i in order],
            scores=[self.no_model, *self.mean_errors[order].tolist()],
            chosen_size=1 + order.index(self.names.index(self.recommended)),
            reason=self.reason,
            unit=self.scoring,
            evidence=evidence,
        )

    def _simplicity(self, i: int) -> tuple[float, float]:
        """What makes a model simple: few features, then little time."""
        return round(float(self.n_features[i])), float(self.seconds[i])

    def chart(self) -> Chart:
        """The contest as a chart: each model's error with its interval, beside the null."""
        return contest_chart(self.to_path())

    def plot(self, ax: Any = None) -> ComparisonDisplay:
        """Draw the contest with Matplotlib, on ``ax`` if given."""
        return ComparisonDisplay(self).plot(ax=ax)

    def __str__(self) -> str:
        table = self.to_dict()
        width = max(map(len, self.names), default=5)
        lines = [f"{self.reason}.", f"{'model':{width}}    error      low     high    skill"]
        for row in range(len(self.names)):
            cells = "".join(f"{number(table[key][row]):>9}" for key in ("error", "low", "high"))
            mark = " *" if table["recommended"][row] else ""
            skill = f"{table['skill'][row]:9.2f}"
            lines.append(f"{table['model'][row]:{width}}{cells}{skill}{mark}")
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return (
            f"<figure style='margin:0;max-width:720px'>{svg.draw(self.chart())}"
            f"<figcaption>{escape(self.reason)}</figcaption></figure>"
        )


def contest_chart(path: SelectionPath, domain: str = "domain") -> Dots:
    """Each model's error with its interval, beside the error without a model.

    The path is that of `Comparison.to_path`; ``domain`` is what a domain is called.
    """
    evidence = path.evidence_as(ContestEvidence)
    where = f"at one new {domain}" if evidence.domains else "on new rows"
    what = f"the error at one new {domain}" if evidence.domains else "the mean error"
    columns = (evidence.errors, evidence.low, evidence.high)
    return Dots(
        f"Error {where}",
        f"{path.reason}. Bars: {evidence.level:.0%} interval of {what}.",
        evidence.scoring,
        [
            Dot(
                name,
                float(error),
                float(low),
                float(high),
                evidence.no_model,
                "kept" if name == evidence.recommended else "",
            )
            for name, error, low, high in zip(evidence.names, *columns, strict=True)
        ],
        f"no model: {number(evidence.no_model)}",
        {"kept": "recommended"},
    )


class ComparisonDisplay:
    """Plot of a contest: each model's error with its interval, and the error without a model.

    Parameters
    ----------
    comparison : Comparison

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    ax_: Any
    figure_: Any

    def __init__(self, comparison: Comparison):
        self.comparison = comparison

    def plot(self, ax: Any = None) -> ComparisonDisplay:
        """Draw the contest, on ``ax`` if given."""
        height = 1.6 + 0.35 * len(self.comparison.names)
        ax = new_axes(size=(7.5, height)) if ax is None else ax
        draw(self.comparison.chart(), ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self
