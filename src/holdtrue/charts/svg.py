"""Charts as SVG that needs no script, font or library.

Colours are CSS variables with a fallback, and text takes the colour of the page around it, so that
the same markup serves the report, light or dark, and a notebook. Colour is never the only sign.
"""

from __future__ import annotations

import functools
import math
import textwrap
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from itertools import accumulate

from holdtrue.charts import layout
from holdtrue.charts.chart import (
    Chart,
    Dots,
    Heat,
    Lines,
    Series,
    number,
    printable,
    short_names,
    shortened,
)
from holdtrue.charts.layout import Style

_WIDTH = 720
_NARROW = 480  # a narrower chart is lower, and gives names less room
_ROW = 22  # height of a row of dots or of a heat map
_LETTER = 6.8  # mean width of a letter at 12 px
_LABEL = 210.0  # widest label
_HEADING = 112.0  # the same, of a column of a heat map
_THIN, _BROAD = frozenset("ijlfrtIJ .,:;!|'()[]/-"), frozenset("mwMW@%+−<>=#…●")
_VARIABLES = {layout.BLUE: "--ht-blue", layout.ORANGE: "--ht-orange"}


@functools.singledispatch
def draw(chart: Chart, width: int = _WIDTH) -> str:
    """The chart as one ``<svg>`` element, as wide as the page lets it be.

    At a ``width`` in pixels letters have the size of small print; a page may stretch it.
    """
    raise NotImplementedError(type(chart).__name__)


@draw.register
def _lines(chart: Lines, width: int = _WIDTH) -> str:
    styles = layout.series_styles(chart)
    keys: list[_Key] = [
        (series.name, functools.partial(_line_key, style, is_point=series.look == "points"))
        for series, style in zip(chart.series, styles, strict=True)
        if series.name
    ]
    if chart.chosen is not None:
        keys.append((layout.chosen_label(chart), functools.partial(_line_key, layout.CHOSEN)))
    scales = layout.line_scales(chart)
    off = [] if scales is None else [layout.off_scale(s, scales[1]) for s in chart.series]
    if any(off):
        keys.append(("off the scale", lambda x, y: _arrow(x + 10, y, layout.INK, is_above=True)))
    parts, top = _legend(keys, 58 if width > _NARROW else 8, width)
    last_half = _text_width(chart.ticks[-1]) / 2 if chart.ticks else 0.0
    right, bottom = width - max(14.0, last_half), top + (250 if width > _NARROW else 170)
    if scales is None:
        parts.append(_words(width / 2, (top + bottom) / 2, "no step was scored", "middle"))
        return _svg(chart, width, bottom + 40, parts)
    horizontal, vertical = scales
    ticks = vertical.ticks()
    left = 34 + max((_text_width(label) for _, label in ticks), default=0.0)
    across, up = horizontal.onto(left, right), vertical.onto(bottom, top + 8)
    for value, label in ticks:
        parts.append(_rule(left, up(value), right, up(value), "opacity:.15"))
        parts.append(_words(left - 8, up(value) + 4, label, "end"))
    # From the end, so that what is missing, which comes last, keeps its name.
    named = list(enumerate(chart.ticks))[::-1] or horizontal.ticks()
    for at, label in _spaced([(across(value), label) for value, label in named], width):
        parts.append(_rule(at, bottom, at, bottom + 4, "opacity:.5"))
        parts.append(_words(at, bottom + 18, label, "middle"))
    parts.append(_rule(left, bottom, right, bottom, "opacity:.5"))
    parts.append(_label_below((left + right) / 2, bottom + 36, chart.x_label, width))
    y_label = _safe(_fitting([chart.y_label], bottom - 4)[0])
    parts.append(
        f'<text transform="translate(14 {(top + bottom) / 2:.0f}) rotate(-90)" '
        f'text-anchor="middle">{y_label}</text>'
    )
    # An inner element of the same coordinates cuts off what lies outside the scale.
    box = (left - 5, top + 3, right - left + 10, bottom - top)
    places = zip(("x", "y", "width", "height"), box, strict=True)
    frame = " ".join(f'{name}="{place:.1f}"' for name, place in places)
    parts.append(f'<svg {frame} viewBox="{" ".join(f"{place:.1f}" for place in box)}">')
    for series, style in zip(chart.series, styles, strict=True):
        pieces = [
            [(across(x), up(y)) for x, y in piece]
            for piece in layout.finite_pieces(zip(series.x, series.y, strict=True))
        ]
        if series.low:
            ends = zip(series.x, series.low, series.high, strict=True)
            drawable = [
                (across(x), up(a), up(b)) for x, a, b in ends if layout.is_drawable(x, a, b)
            ]
            parts.append(_band(drawable, style))
        parts.extend(_curve(series, style, pieces))
    parts.append("</svg>")
    for style, exits in zip(styles, off, strict=True):
        for x, is_above in exits:
            y = top + 8 if is_above else bottom - 2
            parts.append(_arrow(across(x), y, style.colour, is_above=is_above))
    if chart.chosen is not None and layout.is_drawable(chart.chosen):
        at = across(chart.chosen)
        parts.append(_rule(at, top + 8, at, bottom, _stroke(layout.CHOSEN)))
    if point := layout.chosen_point(chart):
        parts.append(_circle(across(point[0]), up(point[1]), 4.5, f"fill:{_paint(layout.INK)}"))
    return _svg(chart, width, bottom + 44, parts)


@draw.register
def _dots(chart: Dots, width: int = _WIDTH) -> str:
    labels = _fitting(
        [dot.label for dot in chart.dots], _LABEL if width > _NARROW else 0.44 * width
    )
    left = 24 + max(map(_text_width, labels), default=0.0)
    marks = {dot.mark for dot in chart.dots}
    keys: list[_Key] = [
        (meaning, functools.partial(_mark_key, mark))
        for mark, meaning in chart.legend.items()
        if mark in marks
    ]
    keys.append((chart.reference_label, lambda x, y: _rule(x, y, x + 16, y, _dash(layout.DASHED))))
    parts, top = _legend(keys, left if width > _NARROW else 8, width)
    right = width - 24.0
    bottom = top + _ROW * len(chart.dots)
    scale = layout.dot_scale(chart)
    across = scale.onto(left, right)
    for at, label in _spaced([(across(value), label) for value, label in scale.ticks()], width):
        parts.append(_rule(at, top, at, bottom, "opacity:.15"))
        parts.append(_words(at, bottom + 18, label, "middle"))
    for i, (dot, label) in enumerate(zip(chart.dots, labels, strict=True)):
        y = top + _ROW * (i + 0.5)
        spoken = f"{dot.label}: {number(dot.value)}"
        inside = [_words(left - 12, y + 4, label, "end")]
        if layout.is_drawable(dot.reference):
            line = across(dot.reference)
            inside.append(_rule(line, y - _ROW / 2, line, y + _ROW / 2, _dash(layout.DASHED)))
        if layout.is_drawable(dot.low, dot.high):
            spoken += f" ({number(dot.low)} to {number(dot.high)})"
            style = f"stroke:{_paint(layout.MARKS[dot.mark])};stroke-width:3;opacity:.45"
            inside.append(_rule(across(dot.low), y, across(dot.high), y, style))
        if layout.is_drawable(dot.value):
            inside.append(_mark(across(dot.value), y, dot.mark))
        if dot.note:
            at, is_left = layout.note_side(dot, scale)
            x, anchor = (across(at) - 10, "end") if is_left else (across(at) + 10, "start")
            room = (x - left if is_left else width - x) / _LETTER
            inside.append(_words(x, y + 4, shortened(dot.note, max(int(room), 1)), anchor))
        parts.append(f"<g><title>{_safe(spoken)}</title>{''.join(inside)}</g>")
    parts.append(_label_below((left + right) / 2, bottom + 36, chart.x_label, width))
    return _svg(chart, width, bottom + 44, parts)


@draw.register
def _heat(chart: Heat, width: int = _WIDTH) -> str:
    room = _LABEL if width > _NARROW else 0.38 * width
    labels = layout.row_labels(chart, _fitting(chart.rows, room))
    rows = layout.spans(chart.row_groups) or [(name, i, i + 1) for i, name in enumerate(labels)]
    names = _fitting([name for name, _, _ in rows], room) if chart.row_groups else labels
    columns = layout.spans(chart.column_groups) or [
        (name, j, j + 1) for j, name in enumerate(chart.columns)
    ]
    left = 16 + max(map(_text_width, names), default=0.0)
    cell = (width - left - 10) / max(len(chart.columns), 1)
    headings = [name for name, _, _ in columns]
    fits = all(_text_width(name) < cell * (j - i) - 4 for name, i, j in columns)
    is_upright = fits or cell > _HEADING
    headings = headings if fits else _fitting(headings, cell - 4 if is_upright else _HEADING)
    top = 24.0 if is_upright else 14 + max(map(_text_width, headings), default=0.0)
    height = top + _ROW * len(chart.rows)
    parts = []
    stride = math.ceil(9 / cell) if not chart.column_groups else 1
    for name, (_, start, stop) in [*zip(headings, columns, strict=True)][::stride]:
        x = left + cell * (start + stop) / 2
        if is_upright:
            parts.append(_words(x, top - 8, name, "middle"))
        else:
            parts.append(
                f'<text transform="translate({x + 4:.1f} {top - 6:.1f}) rotate(-90)">'
                f"{_safe(name)}</text>"
            )
    for name, (_, start, stop) in zip(names, rows, strict=True):
        middle = top + _ROW * (start + stop) / 2
        parts.append(_words(left - 8, middle + 4, name, "end"))
    limit = layout.heat_limit(chart)
    for i, row in enumerate(chart.values):
        for j, value in enumerate(row):
            spoken = f"{chart.rows[i]}, {chart.columns[j]}: {number(value)}"
            parts.append(f"<g><title>{_safe(spoken)}</title>")
            parts.append(_cell(left + cell * j, top + _ROW * i, cell, value, limit))
            parts.append("</g>")
    for _, _, stop in layout.spans(chart.row_groups)[:-1]:
        parts.append(_rule(left, top + _ROW * stop, width - 10, top + _ROW * stop, ""))
    for _, _, stop in layout.spans(chart.column_groups)[:-1]:
        parts.append(_rule(left + cell * stop, top, left + cell * stop, height, ""))
    keys = ["● chosen"] * any(chart.kept)
    keys += [f"+ {chart.plus}", f"− {chart.minus}", "the fuller the colour, the stronger"]
    for line in textwrap.wrap(" · ".join(keys), int((width - 16) / _LETTER)):
        height += 18
        parts.append(_words(8 if width <= _NARROW else left, height, line))
    return _svg(chart, width, height + 8, parts)


# --- parts --------------------------------------------------------------------------------------


def _svg(chart: Chart, width: int, height: float, parts: Iterable[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" role="img" '
        f'aria-label="{_safe(chart.title)}. {_safe(chart.text)}" '
        f'style="display:block;width:100%;height:auto;font:12px system-ui,sans-serif;'
        f'fill:currentColor">' + "".join(parts) + "</svg>"
    )


def _curve(series: Series, style: Style, pieces: list[list[tuple[float, float]]]) -> Iterator[str]:
    """A line broken where a value is not finite, or points."""
    points = [point for piece in pieces for point in piece]
    if series.look == "points":
        for x, y in points:
            yield _circle(x, y, 2.6, f"fill:{_paint(style.colour)};opacity:{style.opacity:g}")
        return
    for piece in pieces:
        if len(piece) > 1:
            corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in piece)
            yield f'<polyline points="{corners}" style="fill:none;{_stroke(style)}"/>'
    if series.look == "main" and len(points) <= layout.MOST_MARKERS:
        for x, y in points:
            yield _circle(x, y, 3, f"fill:{_paint(style.colour)}")


def _cell(x: float, y: float, width: float, value: float, limit: float) -> str:
    share = min(abs(value) / limit, 1.0) if limit and layout.is_drawable(value) else 0.0
    colour = _paint(layout.BLUE if value > 0 else layout.ORANGE)
    sign = layout.heat_sign(value, limit) if width >= 10 else ""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width - 1, 1):.1f}" height="{_ROW - 1}" '
        f'style="fill:{colour};opacity:{0.06 + 0.64 * share:.2f}"/>'
        + _words(x + width / 2, y + 15, sign, "middle")
    )


_Key = tuple[str, Callable[[float, float], str]]  # a name, and what draws its sign at a place


def _legend(keys: Sequence[_Key], left: float, width: int) -> tuple[list[str], float]:
    """Keys in as many lines as they need, and where the plot may begin."""
    parts, x, y = [], left, 14.0
    for name, sign in keys:
        text = _fitting([name], width - left - 30)[0]
        size = 36 + _text_width(text)
        if x + size > width and x > left:
            x, y = left, y + 18
        parts += [sign(x, y - 4), _words(x + 26, y, text)]
        x += size + 16
    return parts, y + 10


def _line_key(style: Style, x: float, y: float, *, is_point: bool = False) -> str:
    if is_point:
        return _circle(x + 10, y, 3, f"fill:{_paint(style.colour)}")
    return _rule(x, y, x + 20, y, _stroke(style))


def _mark_key(mark: str, x: float, y: float) -> str:
    return _mark(x + 10, y, mark)


def _spaced(ticks: Sequence[tuple[float, str]], width: int) -> Sequence[tuple[float, str]]:
    """Every tick, or every second, third, ... so that labels do not meet."""
    size = 10 + max((_text_width(label) for _, label in ticks), default=0.0)
    room = abs(ticks[-1][0] - ticks[0][0]) if len(ticks) > 1 else float(width)
    return ticks[:: max(math.ceil(size * (len(ticks) - 1) / max(room, 1.0)), 1)]


def _label_below(x: float, y: float, text: str, width: int) -> str:
    """Name of a horizontal axis, in the middle as far as it fits."""
    text = _fitting([text], width)[0]
    half = _text_width(text) / 2
    return _words(min(max(x, half), max(width - half, half)), y, text, "middle")


def _band(ends: Sequence[tuple[float, float, float]], style: Style) -> str:
    """The space between low and high; of a single place a thick line."""
    if len(ends) < 2:
        css = f"stroke:{_paint(style.colour)};stroke-width:3;opacity:{2 * layout.BAND}"
        return "".join(_rule(x, low, x, high, css) for x, low, high in ends)
    corners = [(x, low) for x, low, _ in ends] + [(x, high) for x, _, high in reversed(ends)]
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    css = f"fill:{_paint(style.colour)};opacity:{layout.BAND}"
    return f'<polygon points="{points}" style="{css}"/>'


def _arrow(x: float, y: float, colour: str, *, is_above: bool) -> str:
    """A triangle that points to what lies off the scale."""
    tip = -5 if is_above else 5
    corners = f"M{x:.1f} {y + tip:.1f}l4 {-2 * tip}h-8z"
    return f'<path d="{corners}" style="fill:{_paint(colour)}"/>'


def _mark(x: float, y: float, mark: str) -> str:
    colour = _paint(layout.MARKS[mark])
    if mark == "id":
        corners = f"M{x - 5:.1f} {y - 5:.1f}l10 10m0 -10l-10 10"
        return f'<path d="{corners}" style="stroke:{colour};stroke-width:3;fill:none"/>'
    fill = colour if mark else "none"
    return _circle(x, y, 5, f"fill:{fill};stroke:{colour};stroke-width:2")


def _circle(x: float, y: float, radius: float, style: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.3g}" style="{style}"/>'


def _rule(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'style="stroke:currentColor;{style}"/>'
    )


def _words(x: float, y: float, text: str, anchor: str = "start") -> str:
    if not text:
        return ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{_safe(text)}</text>'


def _text_width(text: str) -> float:
    """Width of a text in a font as wide as they come, in pixels."""
    return sum(map(_letter_width, text))


@functools.cache
def _letter_width(letter: str) -> float:
    if unicodedata.east_asian_width(letter) in "WF":
        return 12.5
    if letter in _THIN:
        return 4.2
    return 11.0 if letter in _BROAD else 8.5 if letter.isupper() else 7.4


def _fitting(names: Sequence[str], room: float) -> list[str]:
    """The names, those that are wider than ``room`` pixels cut to it."""
    limits = []
    for name in names:
        ends = [*accumulate(map(_letter_width, name), initial=_letter_width("…"))]
        is_short = _text_width(name) <= room
        limits.append(len(name) if is_short else max(bisect_right(ends, room), 2))
    return short_names(names, limits)


def _stroke(style: Style) -> str:
    css = f"stroke:{_paint(style.colour)};stroke-width:{style.width:g}"
    css += f";{_dash(style.dash)}" if style.dash else ""
    return css + (f";opacity:{style.opacity:g}" if style.opacity < 1 else "")


def _dash(lengths: Iterable[float]) -> str:
    return "stroke-dasharray:" + " ".join(f"{length:g}" for length in lengths)


def _paint(colour: str) -> str:
    """The colour, as a variable where a dark page has another."""
    if colour == layout.INK:
        return "currentColor"
    return f"var({_VARIABLES[colour]},{colour})" if colour in _VARIABLES else colour


def _safe(text: str) -> str:
    return escape(printable(text))
