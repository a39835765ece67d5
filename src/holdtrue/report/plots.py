"""Drawings of paths. Each display holds numbers; matplotlib is imported when it draws."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from holdtrue.model_size.table import UNITS, agreement
from holdtrue.path import SelectionPath

__all__ = ["CriteriaDisplay", "PathDisplay", "RankingDisplay", "compare_criteria"]

# Colours that stay apart for colour-blind readers (Okabe & Ito 2008).
_BLUE, _ORANGE, _GREY = "#0072B2", "#D55E00", "#8A8A8A"
_OTHERS = ("#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
_STYLES = ("-", "--", ":")


class PathDisplay:
    """Plot of a path: the estimated error on unseen data against the number of steps.

    Build one with `from_estimator` or `from_path`; call `plot` to draw it again.

    Parameters
    ----------
    path : SelectionPath

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D
        The estimates.

    Examples
    --------
    >>> from holdtrue import PathDisplay, SelectionPath
    >>> path = SelectionPath([0, 1], ["dose", "age"], [1.0, 0.4, 0.5], 1, "least at 1 feature")
    >>> display = PathDisplay.from_path(path)  # doctest: +SKIP
    """

    ax_: Any
    figure_: Any
    line_: Any

    def __init__(self, path: SelectionPath):
        self.path = path

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> PathDisplay:
        """Draw the ``path_`` of a fitted estimator, on ``ax`` if given."""
        _check_fitted("PathDisplay.from_estimator", estimator, "path_")
        return cls.from_path(estimator.path_, ax=ax)

    @classmethod
    def from_path(cls, path: SelectionPath, *, ax: Any = None) -> PathDisplay:
        """Draw a path, on ``ax`` if given."""
        if not isinstance(path, SelectionPath):
            raise TypeError(
                f"PathDisplay.from_path: expected a SelectionPath. Got {type(path).__name__}. "
                "For a fitted estimator call PathDisplay.from_estimator."
            )
        return cls(path).plot(ax=ax)

    def plot(self, ax: Any = None) -> PathDisplay:
        """Draw the path, on ``ax`` if given."""
        path = self.path
        if ax is None:
            ax = _pyplot("PathDisplay").subplots(figsize=(7, 4.2), layout="constrained")[1]
        sizes = np.arange(path.n_steps + 1)
        if path.train_scores is not None:
            ax.plot(sizes, path.train_scores, "--", color=_GREY, label="on the rows of the fit")
        scores = np.where(np.isfinite(path.scores), path.scores, np.nan)
        (self.line_,) = ax.plot(
            sizes, scores, "o-", color=_BLUE, markersize=4, label="estimated on unseen data"
        )
        chosen = path.chosen_size
        ax.axvline(chosen, color=_ORANGE, linewidth=1)
        ax.plot([chosen], scores[[chosen]], "o", color=_ORANGE, label=f"chosen: {chosen}")
        drawn = [scores] if path.train_scores is None else [scores, path.train_scores]
        if not _fit_scale(ax, np.concatenate(drawn), scores):
            ax.text(0.5, 0.5, "no step was scored", ha="center", transform=ax.transAxes)
        ax.set(xlabel="size of the selection", ylabel=path.unit)
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set_title(textwrap.fill(path.reason, 80), fontsize="medium", loc="left")
        ax.legend(frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class CriteriaDisplay:
    """Plot of every criterion on one path: the estimates above, each one's choice below.

    Parameters
    ----------
    criteria : dict of ndarray
        ``criteria_`` of a fitted `NestedRegressor`.
    choices : dict of int
        The size that each criterion chooses.
    criterion : str
        The one that was asked, drawn on top.

    Attributes
    ----------
    axes_ : pair of matplotlib Axes
    figure_ : matplotlib Figure
    """

    axes_: Any
    figure_: Any

    def __init__(self, criteria: dict[str, np.ndarray], choices: dict[str, int], criterion: str):
        self.criteria = criteria
        self.choices = choices
        self.criterion = criterion

    @property
    def answer(self) -> str:
        """Whether the criteria agree, in a sentence."""
        return f"{self.criterion} chooses {self.choices[self.criterion]}; {agreement(self.choices)}"

    def plot(self, axes: Any = None) -> CriteriaDisplay:
        """Draw the comparison, on a pair of axes if given."""
        if axes is None:
            axes = _pyplot("CriteriaDisplay").subplots(
                2, 1, figsize=(7.5, 7), sharex=True, layout="constrained"
            )[1]
        if np.size(axes) != 2:
            raise ValueError(
                "compare_criteria: axes must be a pair, for the estimates and for the choices. "
                f"Got {axes!r}. Make one with plt.subplots(2, 1, sharex=True)."
            )
        curves, votes = np.ravel(axes)
        names = sorted(self.choices, key=lambda name: (self.choices[name], name))
        sizes = self.criteria["n_terms"]
        shown = [self.criteria["train"]]
        curves.plot(sizes, self.criteria["train"], color=_GREY, linewidth=3, label="train")
        # The others have units of their own: they vote below, but have no curve.
        comparable = [n for n in names if n not in UNITS]
        for i, name in enumerate(comparable):
            values = np.where(np.isfinite(self.criteria[name]), self.criteria[name], np.nan)
            own = name == self.criterion
            color = _BLUE if own else _OTHERS[i % len(_OTHERS)]
            style = "-" if own else _STYLES[(i // len(_OTHERS)) % len(_STYLES)]
            width, order = (2.5, 4) if own else (1.0, 3)
            curves.plot(
                sizes, values, style, color=color, linewidth=width, zorder=order, label=name
            )
            at = self.choices[name]
            curves.plot([at], values[[at - 1]], "o", color=color, markersize=6, zorder=5)
            shown.append(values)
        _fit_scale(curves, np.concatenate(shown), np.concatenate(shown[1:]))
        curves.set(ylabel="estimated mean squared error")
        curves.set_title(textwrap.fill(self.answer, 80), fontsize="medium", loc="left")
        curves.legend(frameon=False, fontsize="small", ncols=2)

        rows = np.arange(len(names))
        colors = [_BLUE if name == self.criterion else _GREY for name in names]
        votes.hlines(rows, 0, [self.choices[name] for name in names], colors=colors, linewidth=1)
        votes.scatter([self.choices[name] for name in names], rows, c=colors, zorder=3)
        for row, name in zip(rows, names, strict=True):
            votes.annotate(
                str(self.choices[name]),
                (self.choices[name], row),
                xytext=(7, 0),
                textcoords="offset points",
                va="center",
                fontsize="small",
            )
        votes.set_yticks(rows, names)
        votes.set(xlabel="number of terms", title="each criterion's choice", xlim=(0, None))
        votes.xaxis.get_major_locator().set_params(integer=True)
        self.axes_, self.figure_ = axes, curves.figure
        return self


class RankingDisplay:
    """Plot of a ranking of columns: each one's estimate and interval, and the line to beat.

    Intervals are those of the difference to no column, drawn about the score: a column whose
    interval ends before the line beats it. (``intervals_``, that of the score itself, is wider.)
    Columns that look like an id, where most new rows bring a value never seen, are marked.

    Parameters
    ----------
    names : sequence of str
        The columns, best first, as are the next.
    scores, no_column_scores, coverage : ndarray of shape (n_columns,)
    intervals : ndarray of shape (n_columns, 2)
    kept : ndarray of bool, shape (n_columns,)
    reason, unit : str

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from holdtrue import GingerSelector, RankingDisplay
    >>> selector = GingerSelector().fit([["a", 1], ["b", 2], ["a", 3], ["b", 4]], [0, 1, 0, 1])
    >>> display = RankingDisplay.from_estimator(selector)  # doctest: +SKIP
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        names: Sequence[str],
        scores: np.ndarray,
        no_column_scores: np.ndarray,
        intervals: np.ndarray,
        coverage: np.ndarray,
        kept: np.ndarray,
        reason: str,
        unit: str,
    ):
        self.names = names
        self.scores = scores
        self.no_column_scores = no_column_scores
        self.intervals = intervals
        self.coverage = coverage
        self.kept = kept
        self.reason = reason
        self.unit = unit

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, max_columns: int = 30, ax: Any = None
    ) -> RankingDisplay:
        """Draw the columns of a fitted `GingerSelector`, the best ``max_columns`` of them."""
        _check_fitted("RankingDisplay.from_estimator", estimator, "gain_intervals_")
        order = np.argsort(estimator.scores_, kind="stable")
        named = [f"x{j}" for j in range(len(order))]
        names = getattr(estimator, "feature_names_in_", named)
        return cls(
            [str(names[j]) for j in order],
            estimator.scores_[order],
            estimator.no_column_scores_[order],
            (estimator.no_column_scores_[:, None] - estimator.gain_intervals_[:, ::-1])[order],
            estimator.coverage_[order],
            estimator.support_[order],
            estimator.path_.reason,
            estimator.path_.unit,
        ).plot(max_columns=max_columns, ax=ax)

    def plot(self, *, max_columns: int = 30, ax: Any = None) -> RankingDisplay:
        """Draw the best ``max_columns`` columns, on ``ax`` if given."""
        shown = min(max_columns, len(self.names))
        if ax is None:
            size = (7.5, 1.6 + 0.32 * shown)
            ax = _pyplot("RankingDisplay").subplots(figsize=size, layout="constrained")[1]
        rows, scores = np.arange(shown), self.scores[:shown]
        id_like = self.coverage[:shown] < 0.5
        groups = {
            "kept": (self.kept[:shown], "o", _BLUE),
            "left out": (~self.kept[:shown] & ~id_like, "o", _GREY),
            "left out, looks like an id": (~self.kept[:shown] & id_like, "X", _ORANGE),
        }
        for label, (mask, marker, color) in groups.items():
            if mask.any():
                ax.hlines(
                    rows[mask], *self.intervals[:shown][mask].T, color=color, linewidth=2, alpha=0.5
                )
                ax.scatter(
                    scores[mask],
                    rows[mask],
                    s=50,
                    marker=marker,
                    color=color,
                    label=label,
                    zorder=3,
                )
        ends = np.column_stack([rows - 0.5, rows + 0.5]).ravel()
        line = np.repeat(self.no_column_scores[:shown], 2)
        ax.plot(line, ends, "--", color="black", linewidth=1, label="no column", zorder=1)
        for row in rows[id_like]:
            ax.annotate(
                f"{1 - self.coverage[row]:.0%} of new rows: value never seen",
                (min(self.intervals[row, 0], self.no_column_scores[row]), row),
                xytext=(-8, 0),
                textcoords="offset points",
                ha="right",
                va="center",
                fontsize="small",
                color=_ORANGE,
            )
        ax.set_yticks(rows, list(self.names[:shown]))
        ax.set(ylim=(shown - 0.5, -0.5), xlabel=self.unit)
        left_out = len(self.names) - shown
        said = self.reason + (f"; {left_out} more not shown" if left_out else "")
        ax.set_title(textwrap.fill(said, 80), fontsize="medium", loc="left")
        ax.legend(frameon=False, fontsize="small", loc="best")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def compare_criteria(estimator: Any, *, axes: Any = None) -> CriteriaDisplay:
    """Plot every criterion on the path of a fitted `NestedRegressor`, its choice marked.

    Parameters
    ----------
    estimator : NestedRegressor
        Fitted.
    axes : pair of matplotlib Axes, optional
        For the estimates and for the choices.

    Returns
    -------
    display : CriteriaDisplay
        ``display.answer`` says in a sentence whether the criteria agree.

    Examples
    --------
    >>> from holdtrue import NestedRegressor, compare_criteria
    >>> from holdtrue.datasets import make_curve
    >>> data = make_curve("four_terms", n_samples=30, random_state=0)
    >>> model = NestedRegressor(random_state=0).fit(data.X, data.y)
    >>> compare_criteria(model).answer  # doctest: +SKIP
    """
    _check_fitted("compare_criteria", estimator, "criteria_")
    display = CriteriaDisplay(estimator.criteria_, estimator.choices_, estimator.criterion_)
    return display.plot(axes=axes)


def _check_fitted(owner: str, estimator: Any, attribute: str) -> None:
    check_is_fitted(estimator)
    if not hasattr(estimator, attribute):
        raise TypeError(
            f"{owner}: expected an estimator with {attribute}. Got {type(estimator).__name__}."
        )


def _fit_scale(ax: Any, drawn: np.ndarray, wanted: np.ndarray) -> bool:
    """Log scale where errors span decades, cropped to what matters; False if nothing is finite."""
    finite = wanted[np.isfinite(wanted)]
    if not len(finite):
        return False
    drawn = drawn[np.isfinite(drawn)]
    low, high = drawn.min(), finite.max()
    if low > 0 and high > 30 * low:
        ax.set_yscale("log")
        # Exploding errors of absurd sizes must not flatten the part where the choice is made.
        least = finite.min()
        ax.set_ylim(max(low, least * 1e-3) / 1.5, min(high, least * 1e4) * 1.5)
    return True


def _pyplot(owner: str) -> Any:
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{owner}: drawing needs matplotlib, which is not installed. "
            "Run `pip install 'holdtrue[plot]'`."
        ) from error
    return plt
