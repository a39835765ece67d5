"""Pictures of columns and trees: the ranking, the tree drawn and in words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from holdtrue.charts import Dot, Dots, Lines, Series, number
from holdtrue.charts.axes import draw, new_axes, plain_text
from holdtrue.charts.chart import short_names
from holdtrue.charts.layout import CATEGORIES
from holdtrue.errors import InputError, speaks
from holdtrue.evidence import ColumnEvidence, Shape
from holdtrue.path import Display, SelectionPath

__all__ = ["RankingDisplay", "TreeDisplay", "export_text", "ranking_chart", "shape_chart"]

_LABEL = 15  # letters of a value in a small chart

# --- columns ------------------------------------------------------------------------------------


def ranking_chart(path: SelectionPath, *, max_columns: int = 25, max_ids: int = 0) -> Dots:
    """Each column's estimate and interval, kept ones first, and the error without any column.

    Up to ``max_ids`` columns that look like ids are shown beyond the others.
    """
    evidence = path.evidence_as(ColumnEvidence)
    kept = path.chosen.tolist()
    columns = list(dict.fromkeys([*path.order.tolist(), *evidence.scores.argsort(kind="stable")]))
    ids = [j for j in columns[max_columns:] if evidence.id_like[j]]
    shown = columns[:max_columns] + ids[:max_ids]
    lines = {float(evidence.no_column[j]) for j in shown}
    rest = len(columns) - len(shown)
    return Dots(
        title=f"Each column's {path.unit}",
        text=f"{path.reason[:1].upper()}{path.reason[1:]}. The dashed line is the error without "
        "any column. Bars are the intervals of the errors; the gain over the line has its own, so "
        "that the bar of a kept column may reach it."
        + (f" {rest:,} more columns are in the table." if rest else ""),
        x_label=path.unit,
        dots=[_column_dot(evidence, j, j in kept) for j in shown],
        reference_label="no column" + (f": {number(lines.pop())}" if len(lines) == 1 else ""),
        legend={"kept": "kept", "": "left out", "id": "left out, looks like an id"},
    )


def _column_dot(evidence: ColumnEvidence, j: int, is_kept: bool) -> Dot:
    is_id = bool(evidence.id_like[j])
    mark: Literal["kept", "", "id"] = "kept" if is_kept else "id" if is_id else ""
    return Dot(
        label=evidence.names[j],
        value=evidence.scores[j],
        low=evidence.low[j],
        high=evidence.high[j],
        reference=evidence.no_column[j],
        mark=mark,
        note=f"{1 - evidence.coverage[j]:.0%} of new rows: new value" if is_id else "",
    )


def shape_chart(shape: Shape, target: str = "target") -> Lines | Dots:
    """What a column says: the share or mean at each value or bin, with its interval.

    Values with an order make a line, the missing one beside it; others are listed.
    """
    of = f"mean {target}" if shape.of == "mean" else shape.of
    text = f"The {of} by {shape.column}, with intervals, beside {number(shape.reference)} in all."
    reference = f"all rows: {number(shape.reference)}"
    values, low, high = (array.tolist() for array in (shape.values, shape.low, shape.high))
    if not shape.ticks:
        rows = shape.n_rows / shape.n_rows.sum()
        dots = [
            Dot(
                label=f"{label} ({_percent(share)})",
                value=values[i],
                low=low[i],
                high=high[i],
                reference=shape.reference,
                mark=_side(shape.reference, low[i], high[i]),
            )
            for i, (label, share) in enumerate(
                zip(short_names(shape.labels, _LABEL), rows, strict=True)
            )
        ]
        return Dots(
            shape.column, f"{text} In brackets: the share of rows.", of, dots, reference, {}
        )
    n_cells = len(shape.labels) - (shape.labels[-1] == "missing")
    shift = 0.5 * (len(shape.ticks) > n_cells)  # a bin stands between its ends
    places = [i + shift for i in range(n_cells)]
    ticks = tuple(map(_short, shape.ticks))
    if len(set(ticks)) < len(set(shape.ticks)):  # 20240105 and 20240210 would both be 20.2M
        ticks = tuple(shape.ticks)
    series = [Series("", places, values[:n_cells], "main", low[:n_cells], high[:n_cells])]
    if n_cells < len(values):
        series.append(Series("", [len(ticks)], values[-1:], "main", low[-1:], high[-1:]))
        ticks = (*ticks, "missing")
    series.append(Series(reference, [0, len(ticks) - 1], [shape.reference] * 2, "level"))
    scale: Literal["from zero", "plain"] = "plain" if shape.of == "mean" else "from zero"
    return Lines(shape.column, text, shape.column, of, series, ticks=ticks, scale=scale)


def _percent(share: float) -> str:
    return "<1%" if 0 < share < 0.005 else f"{share:.0%}"


def _short(tick: str) -> str:
    """The end of a bin as an axis shows it: 35788 as 35,788, and 30050028 as 30.1M."""
    n_digits = len(tick.removeprefix("-"))
    if not tick.removeprefix("-").isdecimal() or not 5 <= n_digits <= 9:
        return tick
    return f"{int(tick):,}" if n_digits <= 6 else f"{int(tick) / 1e6:.3g}M"


def _side(reference: float, low: float, high: float) -> Literal["kept", "minus", ""]:
    """Mark of a value that is clearly above all rows, below them, or neither."""
    return "kept" if low > reference else "minus" if high < reference else ""


class RankingDisplay(Display):
    """Plot of a ranking of columns: each one's estimate and interval, and the line to beat.

    Columns that look like an id, where most new rows bring a value never seen, are marked.

    Parameters
    ----------
    path : SelectionPath
        Of a fitted `GingerSelector`, or of a ranking.

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

    _evidence = ColumnEvidence
    ax_: Any
    figure_: Any

    @speaks
    def plot(self, *, max_columns: int = 30, ax: Any = None) -> RankingDisplay:
        """Draw the best columns.

        Parameters
        ----------
        max_columns : int, default=30
        ax : matplotlib Axes, optional
            Where to draw; by default new axes.

        Returns
        -------
        self : RankingDisplay
        """
        chart = ranking_chart(self.path, max_columns=max_columns)
        n_shown, n_columns = len(chart.dots), len(self.path.evidence_as(ColumnEvidence).names)
        more = f"; {n_columns - n_shown} more not shown" if n_shown < n_columns else ""
        ax = new_axes(size=(7.5, 1.6 + 0.32 * n_shown)) if ax is None else ax
        draw(replace(chart, title=self.path.reason + more), ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @speaks
    def plot_shapes(self, *, max_columns: int = 9, axes: Any = None) -> RankingDisplay:
        """Draw the share or mean by value or bin of the best columns.

        Parameters
        ----------
        max_columns : int, default=9
        axes : array-like of matplotlib Axes, optional
            One for each column; by default new ones, three in a row.

        Returns
        -------
        self : RankingDisplay
        """
        shapes = self.path.evidence_as(ColumnEvidence).shapes[:max_columns]
        if not shapes:
            raise InputError(
                "no column predicts, or the path comes from profiles, which know no values."
            )
        if axes is None:
            n_rows = -(-len(shapes) // 3)
            n_columns = min(len(shapes), 3)
            axes = new_axes(n_rows, n_columns, size=(4.2 * n_columns, 3.2 * n_rows), squeeze=False)
        flat = np.ravel(axes)
        for shape, ax in zip(shapes, flat, strict=False):
            draw(shape_chart(shape), ax)
        for ax in flat[len(shapes) :]:
            ax.set_axis_off()
        self.ax_, self.figure_ = flat[0], flat[0].figure
        return self


# --- trees --------------------------------------------------------------------------------------


@speaks
def export_text(estimator: Any, *, max_depth: int | None = None, max_children: int = 20) -> str:
    """The tree of a fitted `GingerTreeClassifier` or `GingerTreeRegressor` in words, node by node.

    Parameters
    ----------
    estimator : GingerTreeClassifier or GingerTreeRegressor
        Fitted.
    max_depth : int, optional
        Deeper nodes are left out.
    max_children : int, default=20
        Of more children those with the most rows are shown.

    Returns
    -------
    text : str

    Examples
    --------
    >>> from holdtrue import GingerTreeClassifier, export_text
    >>> X = [["red"], ["red"], ["red"], ["blue"], ["blue"], ["blue"]]
    >>> tree = GingerTreeClassifier().fit(X, ["yes", "yes", "yes", "no", "no", "no"])
    >>> print(export_text(tree))
    6 rows: no 50%
      x0 = 'blue': 3 rows: no 88%
      x0 = 'red': 3 rows: yes 88%
    """
    shown = _walk(estimator.to_dict(), max_depth, max_children)
    return "\n".join("  " * depth + line for depth, line, _ in shown)


class TreeDisplay:
    """Drawing of a tree, from the root at the left to the leaves at the right.

    A dot's colour is the class that its node predicts, its area follows the number of rows.

    Parameters
    ----------
    tree : dict
        ``to_dict()`` of a fitted `GingerTreeClassifier`.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> from holdtrue import GingerTreeClassifier, TreeDisplay
    >>> model = GingerTreeClassifier().fit([["a"], ["a"], ["b"], ["b"]], [0, 0, 1, 1])
    >>> display = TreeDisplay.from_estimator(model)  # doctest: +SKIP
    """

    ax_: Any
    figure_: Any

    @speaks
    def __init__(self, tree: dict[str, Any]):
        self.tree = tree

    @classmethod
    @speaks
    def from_estimator(cls, estimator: Any, **options: Any) -> TreeDisplay:
        """Draw the tree of a fitted estimator; options are those of `plot`."""
        return cls(estimator.to_dict()).plot(**options)

    @speaks
    def plot(
        self, *, max_depth: int | None = 3, max_children: int = 12, ax: Any = None
    ) -> TreeDisplay:
        """Draw the tree.

        Parameters
        ----------
        max_depth : int or None, default=3
            Deeper nodes are left out.
        max_children : int, default=12
            Of more children those with the most rows are shown.
        ax : matplotlib Axes, optional
            Where to draw; by default new axes.

        Returns
        -------
        self : TreeDisplay
        """
        shown = list(_walk(self.tree, max_depth, max_children))
        deepest = max(depth for depth, _, _ in shown)
        if ax is None:
            ax = new_axes(size=(4.5 + 2.2 * deepest, 1 + 0.28 * len(shown)))
        classes = list(dict.fromkeys(node.get("class") for _, _, node in shown if node))
        total = self.tree["rows"]
        last_row: dict[int, int] = {}  # of each depth
        for row, (depth, line, node) in enumerate(shown):
            last_row[depth] = row
            if depth:
                parent = last_row[depth - 1]
                ax.plot([depth - 1, depth - 1, depth], [parent, row, row], "-", color="#c8c8c8")
            if node:
                area = 20 + 180 * node["rows"] / total
                colour = CATEGORIES[classes.index(node.get("class")) % len(CATEGORIES)]
                ax.scatter([depth], [row], s=area, color=colour, zorder=3)
            text = plain_text(line, 200)
            ax.annotate(text, (depth, row), xytext=(10, 0), textcoords="offset points", va="center")
        ax.set(xlim=(-0.3, deepest + 2), ylim=(len(shown) - 0.5, -0.5))
        ax.set_axis_off()
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _walk(
    tree: dict[str, Any], max_depth: int | None, max_children: int
) -> Iterator[tuple[int, str, dict[str, Any] | None]]:
    """Depth, line and node of what is shown, parents first; None stands for what is left out."""
    waiting: list[tuple[int, str, dict[str, Any] | None]] = [(0, "", tree)]
    while waiting:
        depth, before, node = waiting.pop()
        if node is None:
            yield depth, before, None
            continue
        rows = node["rows"]
        if "mean" in node:
            predicted = f"mean {node['mean']:.4g}"
        else:
            predicted = f"{node['class']} {max(node['probability']):.0%}"
        line = f"{rows} row{'s' if rows != 1 else ''}: {predicted}"
        yield depth, before + line, node
        children = node.get("children", [])
        if not children or (max_depth is not None and depth >= max_depth):
            continue
        most = sorted(children, key=lambda child: -child["rows"])[:max_children]
        kept = {child["node"] for child in most}
        if len(kept) < len(children):
            left = len(children) - len(kept)
            waiting.append((depth + 1, f"{node['column']} …: {left} more values", None))
        for child in reversed(children):
            if child["node"] in kept:
                waiting.append((depth + 1, f"{node['column']} {child['when']}: ", child))
