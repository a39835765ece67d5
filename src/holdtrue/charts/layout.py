"""What both pens share: colours, scales, ticks, what a legend lists."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from holdtrue.charts.chart import Dot, Dots, Heat, Lines, Series, number

# Colours that stay apart for colour-blind readers (Okabe & Ito 2008, and one violet, since their
# sky blue is the blue of a dark page): blue for +, orange for −.
BLUE, ORANGE, GREY, INK = "#0072b2", "#d55e00", "#8a8a8a", "#333333"
OTHERS = ("#009e73", "#cc79a7", "#7570b3", "#e69f00")
CATEGORIES = (BLUE, ORANGE, *OTHERS)
MARKS = {"kept": BLUE, "minus": ORANGE, "id": ORANGE, "": GREY}
BAND = 0.18  # opacity
DASHED = (6.0, 5.0)  # twice in a row of 22 px, so that rows join without a seam
MOST_MARKERS = 60  # a curve of more points is drawn without them
MOST_NAMES = 40  # an axis of more names shows groups only

_STEPS = (1, 2, 2.5, 5, 10)  # from tick to tick, times a power of ten
_DASHES: tuple[tuple[float, ...], ...] = ((), (7, 3), (2, 2))
_LARGEST, _SMALLEST = 1e150, 1e-150  # beyond, squares and ratios leave the range of floats


class Style(NamedTuple):
    """How a line is drawn; the lengths of a dash are in units of 1/96 inch, as in CSS."""

    colour: str
    width: float
    dash: tuple[float, ...] = ()
    opacity: float = 1.0


CHOSEN = Style(INK, 1.5)
_LOOKS = {
    "main": Style(BLUE, 2.5),
    "train": Style(GREY, 2.0, (6, 4)),
    "level": Style(INK, 1.2, (2, 3)),
    "thin": Style(BLUE, 0.7, opacity=0.35),
    "points": Style(GREY, 0.0, opacity=0.7),
}


def series_styles(chart: Lines) -> list[Style]:
    """Style of each series; the "other" ones take colours in turn, then dashes."""
    styles, n_others = [], 0
    for series in chart.series:
        if series.look in _LOOKS:
            styles.append(_LOOKS[series.look])
            continue
        turn, colour = divmod(n_others, len(OTHERS))
        styles.append(Style(OTHERS[colour], 1.2, _DASHES[turn % len(_DASHES)]))
        n_others += 1
    return styles


def chosen_label(chart: Lines) -> str:
    """What the legend says of the vertical line."""
    return chart.chosen_label or f"chosen: {number(chart.chosen or 0.0)}"


def chosen_point(chart: Lines) -> tuple[float, float] | None:
    """Where the vertical line meets the main curve, if it does."""
    for series in chart.series:
        for x, y in zip(series.x, series.y, strict=True):
            if series.look == "main" and x == chart.chosen and is_drawable(y):
                return x, y
    return None


# --- scales -------------------------------------------------------------------------------------


class Scale:
    """From numbers to the share of an axis, with round ticks; ``whole`` if it counts things.

    If its ends are equal, the axis is widened.
    """

    def __init__(self, low: float, high: float, *, log: bool = False, whole: bool = False):
        size = max(abs(low), abs(high))
        if not high - low > max(1e-12 * size, 1e-300):
            pad = 0.1 * size if size > _SMALLEST else 1.0
            low, high = (low, low + 1) if whole and size < 1e9 else (low - pad, high + pad)
        self.low, self.high, self.log, self.whole = low, high, log, whole

    def place(self, value: float) -> float:
        """Where the value stands: 0 at the low end, 1 at the high one, at most 1 beyond either."""
        if self.log:
            ratio = value / self.low
            share = math.log(ratio) / math.log(self.high / self.low) if ratio > 0 else -1.0
        else:
            share = (value - self.low) / (self.high - self.low)
        return min(max(share, -1.0), 2.0)

    def onto(self, start: float, end: float) -> Callable[[float], float]:
        """From a number to its place on an axis between two pixels."""
        return lambda value: start + (end - start) * self.place(value)

    def ticks(self) -> list[tuple[float, str]]:
        """Round values and what to write at them, with as many digits as tell them apart."""
        values = self._values()
        for digits in range(3, 17):
            labels = [number(value, digits) for value in values]
            if len(set(labels)) == len(labels):
                break
        return list(zip(values, labels, strict=True))

    def _values(self) -> list[float]:
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            decades = [10.0**power for power in powers if self.low <= 10.0**power <= self.high]
            if len(decades) > 2:
                return decades[:: math.ceil(len(decades) / 12)]
            values = [step * 10.0**power for power in powers for step in (1, 2, 5)]
            return [value for value in values if self.low <= value <= self.high]
        rough = (self.high - self.low) / 6
        power = 10.0 ** math.floor(math.log10(rough))
        factors = (1, 2, 5, 10) if self.whole else _STEPS
        step = power * next(factor for factor in factors if factor * power >= rough * 0.999)
        step = max(1.0, step) if self.whole else step
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [i * step for i in range(first, last + 1)]


def line_scales(chart: Lines) -> tuple[Scale, Scale] | None:
    """Horizontal and vertical scale; None if there is nothing to draw."""
    points = [point for series in chart.series for point in _drawable(series)]
    main = [series for series in chart.series if series.look in ("main", "points", "thin")]
    wanted = [y for series in main or chart.series for _, y in _drawable(series)]
    if not wanted:
        return None
    xs, ys = ([*values] for values in zip(*points, strict=True))
    if chart.chosen is not None and is_drawable(chart.chosen):
        xs.append(chart.chosen)
    if chart.ticks:
        xs += [0, len(chart.ticks) - 1]
    horizontal = Scale(min(xs), max(xs), whole=chart.whole)
    ys += [y for series in main for y in (*series.low, *series.high) if is_drawable(y)]
    if chart.scale == "from zero":
        return horizontal, Scale(min(0.0, *ys), 1.06 * max(0.0, *ys))
    low, least, high = min(ys), min(wanted), max(wanted)
    if chart.scale == "plain":
        high = max(ys)
    elif low > _SMALLEST and high > 30 * least:
        # Exploding errors of absurd sizes must not flatten the part where the choice is made.
        ends = max(low, least * 1e-3) / 1.3, min(high, least * 1e3) * 1.3
        return horizontal, Scale(*ends, log=True)
    edge = 0.06 * (high - low)
    return horizontal, Scale(low - edge, high + edge)


def _drawable(series: Series) -> list[tuple[float, float]]:
    return [point for point in zip(series.x, series.y, strict=True) if is_drawable(*point)]


def off_scale(series: Series, scale: Scale) -> list[tuple[float, bool]]:
    """Where a line leaves the vertical scale, and whether above: the first point of each run."""
    places, was = [], 0
    for x, y in zip(series.x, series.y, strict=True):
        side = 0
        if math.isfinite(x) and not math.isnan(y) and series.look != "points":
            side = 1 if y > scale.high else -1 if y < scale.low else 0
        if side and side != was:
            places.append((x, side > 0))
        was = side
    return places


def dot_scale(chart: Dots) -> Scale:
    """Horizontal scale; it counts where all numbers are whole."""
    ends = [end for dot in chart.dots for end in (dot.value, dot.low, dot.high, dot.reference)]
    drawable = [end for end in ends if is_drawable(end)]
    low, high = min(drawable, default=0.0), max(drawable, default=1.0)
    edge = 0.03 * (high - low)
    return Scale(low - edge, high + edge, whole=all(end == int(end) for end in drawable))


def note_side(dot: Dot, scale: Scale) -> tuple[float, bool]:
    """Where the note of a dot stands, and whether to the left of it: where there is more room."""
    ends = [end for end in (dot.value, dot.low, dot.high) if is_drawable(end)]
    low, high = min(ends, default=scale.low), max(ends, default=scale.low)
    is_left = scale.place(low) > 1 - scale.place(high)
    return (low if is_left else high), is_left


def is_drawable(*values: float) -> bool:
    """Whether the numbers are finite and of a size that can be drawn."""
    return all(math.isfinite(value) and abs(value) < _LARGEST for value in values)


def heat_limit(chart: Heat) -> float:
    """The size that has the full colour: a few extreme values must not pale the rest."""
    sizes = sorted(abs(value) for row in chart.values for value in row if is_drawable(value))
    return sizes[int(0.97 * (len(sizes) - 1))] if sizes else 0.0


def heat_sign(value: float, limit: float) -> str:
    """+ or −; nothing for an effect close to 0."""
    if not is_drawable(value) or abs(value) < 0.1 * limit or value == 0:
        return ""
    return "+" if value > 0 else "−"


def row_labels(chart: Heat, names: Sequence[str]) -> list[str]:
    """Names of the rows, as they are or cut, with a dot before those that are kept."""
    kept = chart.kept or [False] * len(chart.rows)
    return [f"● {name}" if mark else name for name, mark in zip(names, kept, strict=True)]


def spans(groups: Sequence[str]) -> list[tuple[str, int, int]]:
    """Runs of equal labels: the label, where it starts, and where it stops."""
    runs, start = [], 0
    for label, members in groupby(groups):
        stop = start + sum(1 for _ in members)
        runs.append((label, start, stop))
        start = stop
    return runs


def finite_pieces(points: Iterable[tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """The points in runs, broken where one cannot be drawn."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if is_drawable(*point):
            pieces[-1].append(point)
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if piece]
