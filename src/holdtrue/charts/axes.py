"""Charts on Matplotlib axes. Matplotlib is imported when something is drawn."""

from __future__ import annotations

import functools
import math
import textwrap
from typing import Any

from holdtrue.charts import layout
from holdtrue.charts.chart import Chart, Dots, Heat, Lines, printable, short_names, shortened
from holdtrue.errors import MissingPackageError

_LABEL = 40  # longest name, in letters
_LETTERS_PER_INCH = 12  # of a title
_PIXEL = 0.75  # points
_MOST_SIGNS = 400  # a heat map of more cells is too fine for signs


def new_axes(
    n_rows: int = 1, n_columns: int = 1, *, size: tuple[float, float], **options: Any
) -> Any:
    """Axes of a new figure, of a size in inches; one, or an array of them."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise MissingPackageError(
            "drawing needs matplotlib, which is not installed. Run `pip install 'holdtrue[plot]'`."
        ) from error
    return plt.subplots(n_rows, n_columns, figsize=size, layout="constrained", **options)[1]


@functools.singledispatch
def draw(chart: Chart, ax: Any) -> Any:
    """Draw the chart; returns the lines of `Lines`, the image of `Heat`, else nothing."""
    raise NotImplementedError(type(chart).__name__)


@draw.register
def _lines(chart: Lines, ax: Any) -> Any:
    drawn = []
    for series, style in zip(chart.series, layout.series_styles(chart), strict=True):
        is_main = series.look == "main"
        has_markers = is_main and len(series.x) <= layout.MOST_MARKERS
        options = {
            "color": style.colour,
            "alpha": style.opacity,
            "label": plain_text(series.name) or "_",  # an underscore keeps a line out of the legend
            "zorder": 3 if is_main else 2,
        }
        x, y = ([v if layout.is_drawable(v) else math.nan for v in s] for s in (series.x, series.y))
        if series.low:
            lone = {} if len(x) > 1 else {"linewidth": 3}
            ax.fill_between(
                x, series.low, series.high, color=style.colour, alpha=layout.BAND, **lone
            )
        if series.look == "points":
            drawn += ax.plot(x, y, "o", markersize=4, **options)
            continue
        dash: Any = (0, tuple(d * _PIXEL / style.width for d in style.dash)) if style.dash else "-"
        marker = {"marker": "o", "markersize": 4} if has_markers else {}
        drawn += ax.plot(x, y, linestyle=dash, linewidth=style.width * _PIXEL, **marker, **options)
    if chart.chosen is not None:
        style = layout.CHOSEN
        label = layout.chosen_label(chart)
        ax.axvline(chart.chosen, color=style.colour, linewidth=style.width * _PIXEL, label=label)
    if point := layout.chosen_point(chart):
        ax.plot(*([v] for v in point), "o", color=layout.INK, label="_", zorder=4)
    scales = layout.line_scales(chart)
    if scales is None:
        ax.text(0.5, 0.5, "no step was scored", ha="center", transform=ax.transAxes)
    else:
        vertical = scales[1]
        ax.set_yscale("log" if vertical.log else "linear")
        ax.set_yticks(*zip(*vertical.ticks(), strict=True))
        ax.minorticks_off()
        ax.set_ylim(vertical.low, vertical.high)
        for series, style in zip(chart.series, layout.series_styles(chart), strict=True):
            for place, is_above in layout.off_scale(series, vertical):
                end, sign = (vertical.high, "^") if is_above else (vertical.low, "v")
                ax.plot(
                    [place], [end], sign, color=style.colour, clip_on=False, label="_", zorder=4
                )
    ax.set(xlabel=plain_text(chart.x_label), ylabel=plain_text(chart.y_label))
    if chart.ticks:
        # From the end, so that what is missing, which comes last, keeps its name.
        step = -(-len(chart.ticks) // 8)
        named = range((len(chart.ticks) - 1) % step, len(chart.ticks), step)
        ax.set_xticks(named, [plain_text(chart.ticks[i], 16) for i in named])
    elif chart.whole:
        ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    _finish(chart, ax)
    return drawn


@draw.register
def _dots(chart: Dots, ax: Any) -> Any:
    shapes = {"kept": "o", "": "o", "minus": "o", "id": "X"}
    for mark in dict.fromkeys([*chart.legend, *layout.MARKS]):
        rows = [row for row, dot in enumerate(chart.dots) if dot.mark == mark]
        if not rows:
            continue
        dots, colour = [chart.dots[row] for row in rows], layout.MARKS[mark]
        bars = [
            row for row in rows if layout.is_drawable(chart.dots[row].low, chart.dots[row].high)
        ]
        lows, highs = [chart.dots[row].low for row in bars], [chart.dots[row].high for row in bars]
        ax.hlines(bars, lows, highs, color=colour, linewidth=2, alpha=0.5)
        ax.scatter(
            [dot.value for dot in dots],
            rows,
            s=45,
            marker=shapes[mark],
            facecolor=colour if mark else "none",
            edgecolor=colour,
            label=plain_text(chart.legend.get(mark, "_")),
            zorder=3,
        )
    line = [dot.reference for dot in chart.dots for _ in range(2)]
    ends = [row + side for row in range(len(chart.dots)) for side in (-0.5, 0.5)]
    label = plain_text(chart.reference_label)
    ax.plot(line, ends, "--", color="black", linewidth=1, zorder=1, label=label)
    scale = layout.dot_scale(chart)
    if scale.whole:
        ax.xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
    for row, dot in enumerate(chart.dots):
        if dot.note:
            at, is_left = layout.note_side(dot, scale)
            ax.annotate(
                plain_text(dot.note),
                (at, row),
                xytext=(-8 if is_left else 8, 0),
                textcoords="offset points",
                ha="right" if is_left else "left",
                va="center",
                fontsize="small",
            )
    labels = short_names([dot.label for dot in chart.dots], _LABEL)
    ax.set_yticks(range(len(chart.dots)), [plain_text(label) for label in labels])
    ax.set(ylim=(max(len(chart.dots), 1) - 0.5, -0.5), xlabel=plain_text(chart.x_label))
    _finish(chart, ax, beside=max(map(len, labels), default=0), is_legend_on_top=True)


@draw.register
def _heat(chart: Heat, ax: Any) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("", [layout.ORANGE, "white", layout.BLUE])
    limit = layout.heat_limit(chart) or 1.0
    image = ax.imshow(
        chart.values, cmap=colours, vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest"
    )
    names = layout.row_labels(chart, short_names(chart.rows, _LABEL - 2))
    for axis, labels, groups, line in (
        (ax.xaxis, chart.columns, chart.column_groups, ax.axvline),
        (ax.yaxis, names, chart.row_groups, ax.axhline),
    ):
        runs = layout.spans(groups)
        for _, _, stop in runs[:-1]:
            line(stop - 0.5, color=layout.GREY, linewidth=0.6)
        if not runs and len(labels) <= layout.MOST_NAMES:
            runs = [(name, i, i + 1) for i, name in enumerate(labels)]
        texts = [plain_text(name) for name in short_names([name for name, _, _ in runs], _LABEL)]
        axis.set_ticks([(start + stop - 1) / 2 for _, start, stop in runs], texts)
    is_long = sum(map(len, chart.columns)) > 60 or len(chart.columns) > 12
    ax.tick_params(axis="x", labelrotation=90 if is_long else 0)
    if len(chart.rows) * len(chart.columns) <= _MOST_SIGNS:
        for i, row in enumerate(chart.values):
            for j, value in enumerate(row):
                ax.text(j, i, layout.heat_sign(value, limit), ha="center", va="center")
    ax.figure.colorbar(image, ax=ax)
    _finish(chart, ax, beside=max(map(len, names), default=0))
    return image


def _finish(chart: Chart, ax: Any, *, beside: int = 8, is_legend_on_top: bool = False) -> None:
    """Title, as wide as there is room, and a legend where something has a name.

    ``beside`` is the width of what stands left of the axes, in letters.
    """
    inches = _share_of_width(ax) * ax.figure.bbox.width / ax.figure.dpi
    room = int(_LETTERS_PER_INCH * inches) - beside
    title = textwrap.fill(plain_text(chart.title, 400), min(max(room, 24), 80))
    ax.set_title(title, fontsize="medium", loc="left")
    names = ax.get_legend_handles_labels()[1]
    n_columns = 1 + len(names) // 7
    if names and is_legend_on_top:  # above the rows, which are full from side to side
        n_columns = len(names) if sum(len(name) + 8 for name in names) < room else 2
        n_inches = ax.get_position().height * ax.figure.bbox.height / ax.figure.dpi
        share = min((0.12 + 0.17 * -(-len(names) // n_columns)) / n_inches, 0.5)
        bottom, top = ax.get_ylim()
        ax.set_ylim(bottom, top - share / (1 - share) * (bottom - top))
    if names:
        place = "upper left" if is_legend_on_top else "best"
        ax.legend(frameon=False, fontsize="small", ncols=n_columns, loc=place)


def _share_of_width(ax: Any) -> float:
    """The share of the figure's width that the axes and their labels have."""
    place = ax.get_subplotspec()
    if place is None:
        return float(ax.get_position().width)
    shares = place.get_gridspec().get_width_ratios()
    return float(sum(shares[place.colspan.start : place.colspan.stop]) / sum(shares))


def plain_text(text: str, limit: int = 100) -> str:
    """Text that Matplotlib does not take for a formula."""
    return shortened(printable(text), limit).replace("$", r"\$")
