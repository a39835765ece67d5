"""Charts as numbers that draw themselves: SVG text that needs no script, font or library.

Colours are CSS variables with a fallback and text takes the colour of the page around it, so that
the same markup serves the report, light or dark, and a notebook. Colour is never the only sign.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from html import escape
from typing import Any

__all__ = ["Chart", "Dots", "Heat", "Lines", "Series", "chart_from_dict", "number", "printable"]

_WIDTH = 720
_ROW = 22  # height of a row of dots or of a heat map
_LETTER = 6.8  # mean width of a letter at 12 px
_LABEL = 30  # longest label, in letters

# Colours that stay apart for colour-blind readers (Okabe & Ito 2008), and how each is drawn.
_BLUE, _ORANGE, _GREY = "var(--hf-blue,#0072b2)", "var(--hf-orange,#d55e00)", "#8a8a8a"
_OTHERS = ("#009e73", "#cc79a7", "#56b4e9", "#e69f00")
_LOOKS = {
    "main": f"stroke:{_BLUE};stroke-width:2.5",
    "train": f"stroke:{_GREY};stroke-width:2;stroke-dasharray:6 4",
    "level": f"stroke:{_ORANGE};stroke-width:1.5;stroke-dasharray:2 3",
    "thin": f"stroke:{_BLUE};stroke-width:.7;opacity:.35",
    "other": "stroke-width:1.2",
    "points": f"fill:{_GREY}",
}
_MARKS = ("", "kept", "id")
_STEPS = (1, 2, 2.5, 5, 10)  # from tick to tick, times a power of ten


def number(value: float) -> str:
    """A number as people write it, to three digits."""
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "−∞"}.get(value, "–")
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}".replace("-", "−")
    if 1000 <= abs(value) < 1e6:
        return f"{value:,.0f}".replace("-", "−")
    text = f"{value:.3g}"
    return text.replace("e+0", "e").replace("e-0", "e−").replace("e+", "e").replace("-", "−")


def printable(text: str) -> str:
    """Text on one line, without the control characters that steer a terminal or spoil a page."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in text)


@dataclass(frozen=True)
class Series:
    """One line, or one set of points, of a `Lines` chart.

    Parameters
    ----------
    name : str
        In the legend; nothing for a line that needs none.
    x, y : sequence of float
        What is not finite is not drawn.
    look : {"main", "train", "level", "thin", "other", "points"}
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    look: str = "main"

    def __post_init__(self) -> None:
        if self.look not in _LOOKS:
            raise ValueError(f"look must be one of {', '.join(_LOOKS)}. Got {self.look!r}.")
        _keep(self, name=str(self.name), x=_numbers(self.x), y=_numbers(self.y))
        if len(self.x) != len(self.y):
            raise ValueError(f"x has {len(self.x)} numbers and y {len(self.y)}.")


@dataclass(frozen=True)
class Chart:
    """A drawing that is numbers until it is drawn.

    Parameters
    ----------
    title : str
    text : str
        What the chart shows, for those who cannot see it.
    """

    title: str
    text: str

    def svg(self) -> str:
        """The drawing as one ``<svg>`` element."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The numbers, ready for JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"kind": type(self).__name__} | {k: _plain(v) for k, v in values.items()}


@dataclass(frozen=True)
class Lines(Chart):
    """Curves and points over a common axis, with a vertical line at what was chosen.

    Parameters
    ----------
    x_label, y_label : str
    series : sequence of Series
        The vertical scale fits the main one.
    chosen : float, optional
        Where the vertical line stands.
    whole : bool
        Whether the horizontal axis counts things.
    from_zero : bool
        Whether the vertical axis begins at 0; else it fits errors, on a log scale if they span
        decades.
    """

    x_label: str
    y_label: str
    series: Sequence[Series]
    chosen: float | None = None
    whole: bool = True
    from_zero: bool = False

    def __post_init__(self) -> None:
        made = (s if isinstance(s, Series) else Series(**s) for s in self.series)
        _keep(self, series=tuple(made))

    def svg(self) -> str:
        """The drawing as one ``<svg>`` element."""
        legend, top = _legend(self._keys(), 58)
        right, bottom = _WIDTH - 14.0, top + 250
        xs = [x for s in self.series for x in s.x if math.isfinite(x)]
        if self.chosen is not None:
            xs.append(self.chosen)
        wanted = [s for s in self.series if s.look in ("main", "points")] or list(self.series)
        ys = [y for s in wanted for y in s.y if math.isfinite(y)]
        parts = [legend]
        if not xs or not ys:
            parts.append(_words(_WIDTH / 2, (top + bottom) / 2, "no step was scored", "middle"))
            return _svg(self, bottom + 40, parts)
        every = [y for s in self.series for y in s.y if math.isfinite(y)]
        vertical = (
            _Scale(0.0, 1.06 * max(every), bottom, top + 8)
            if self.from_zero
            else _error_scale(every, ys, bottom, top + 8)
        )
        left = 34 + _LETTER * max((len(label) for _, label in vertical.ticks()), default=0)
        horizontal = _Scale(min(xs), max(xs), left, right, whole=self.whole)
        for y, label in vertical.ticks():
            parts.append(_rule(left, y, right, y, "opacity:.15"))
            parts.append(_words(left - 8, y + 4, label, "end"))
        for x, label in horizontal.ticks():
            parts.append(_rule(x, bottom, x, bottom + 4, "opacity:.5"))
            parts.append(_words(x, bottom + 18, label, "middle"))
        parts.append(_rule(left, bottom, right, bottom, "opacity:.5"))
        parts.append(_words((left + right) / 2, bottom + 36, self.x_label, "middle"))
        parts.append(
            f'<text transform="translate(14 {(top + bottom) / 2:.0f}) rotate(-90)" '
            f'text-anchor="middle">{_safe(self.y_label)}</text>'
        )
        for series, style in zip(self.series, self._styles(), strict=True):
            parts.extend(_marks(series, style, horizontal, vertical))
        if self.chosen is not None:
            x = horizontal(self.chosen)
            parts.append(_rule(x, top + 8, x, bottom, f"stroke:{_ORANGE};stroke-width:1.5"))
        return _svg(self, bottom + 44, parts)

    def _styles(self) -> Iterator[str]:
        others = 0
        for series in self.series:
            style = _LOOKS[series.look]
            if series.look == "other":
                style += f";stroke:{_OTHERS[others % len(_OTHERS)]}"
                style += ("", ";stroke-dasharray:7 3", ";stroke-dasharray:2 2")[
                    others // len(_OTHERS) % 3
                ]
                others += 1
            yield style

    def _keys(self) -> list[tuple[str, str, bool]]:
        keys = [
            (series.name, style, series.look == "points")
            for series, style in zip(self.series, self._styles(), strict=True)
            if series.name
        ]
        if self.chosen is not None:
            style = f"stroke:{_ORANGE};stroke-width:1.5"
            keys.append((f"chosen: {number(self.chosen)}", style, False))
        return keys


@dataclass(frozen=True)
class Dots(Chart):
    """One named value a row, with its interval, beside a line to compare them with.

    Parameters
    ----------
    x_label : str
    labels : sequence of str
    values : sequence of float
    low, high : sequence of float
        Ends of the intervals; nan for none.
    marks : sequence of {"", "kept", "id"}
        Filled dots are kept, crosses look like an id, rings are the rest.
    reference : float
        Where the dashed line stands.
    reference_label : str
    """

    x_label: str
    labels: Sequence[str]
    values: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]
    marks: Sequence[str]
    reference: float
    reference_label: str

    def __post_init__(self) -> None:
        _keep(self, labels=tuple(map(str, self.labels)), reference=float(self.reference))
        _keep(self, **{name: _numbers(getattr(self, name)) for name in ("values", "low", "high")})
        lengths = {len(getattr(self, n)) for n in ("labels", "values", "low", "high", "marks")}
        if len(lengths) != 1:
            raise ValueError(f"labels, values, low, high and marks have lengths {sorted(lengths)}.")
        if not set(self.marks) <= set(_MARKS):
            raise ValueError(f"marks must be among {_MARKS}. Got {sorted(set(self.marks))}.")

    def svg(self) -> str:
        """The drawing as one ``<svg>`` element."""
        left = 24 + _LETTER * max((min(len(n), _LABEL) for n in self.labels), default=0)
        names = {"kept": "kept", "": "left out", "id": "left out, looks like an id"}
        keys = [(names[m], m) for m in _MARKS[1:] + _MARKS[:1] if m in self.marks]
        parts, top = [], 22.0
        x = left
        for name, mark in keys:
            parts += [_dot(x, 12, mark), _words(x + 12, 16, name)]
            x += 34 + _LETTER * len(name)
        parts += [
            _rule(x, 12, x + 16, 12, "stroke-dasharray:5 4"),
            _words(x + 22, 16, self.reference_label),
        ]
        bottom = top + _ROW * len(self.labels)
        ends = [*self.values, *self.low, *self.high, self.reference]
        finite = [end for end in ends if math.isfinite(end)]
        least, most = min(finite, default=0.0), max(finite, default=1.0)
        edge = 0.03 * (most - least)
        scale = _Scale(least - edge, most + edge, left, _WIDTH - 24)
        for x, label in scale.ticks():
            parts.append(_rule(x, top, x, bottom, "opacity:.15"))
            parts.append(_words(x, bottom + 18, label, "middle"))
        parts.append(
            _rule(scale(self.reference), top, scale(self.reference), bottom, "stroke-dasharray:5 4")
        )
        for i, label in enumerate(self.labels):
            y = top + _ROW * (i + 0.5)
            said = f"{label}: {number(self.values[i])}"
            inside = [_words(left - 12, y + 4, _short(label), "end")]
            if math.isfinite(self.low[i]) and math.isfinite(self.high[i]):
                said += f" ({number(self.low[i])} to {number(self.high[i])})"
                style = f"stroke:{_colour(self.marks[i])};stroke-width:3;opacity:.45"
                inside.append(_rule(scale(self.low[i]), y, scale(self.high[i]), y, style))
            if math.isfinite(self.values[i]):
                inside.append(_dot(scale(self.values[i]), y, self.marks[i]))
            parts.append(f"<g><title>{_safe(said)}</title>{''.join(inside)}</g>")
        parts.append(_words((left + _WIDTH) / 2, bottom + 36, self.x_label, "middle"))
        return _svg(self, bottom + 44, parts)


@dataclass(frozen=True)
class Heat(Chart):
    """Signed values of rows in columns: colour for the size, + or − for the sign.

    Parameters
    ----------
    rows, columns : sequence of str
    values : sequence of sequences of float, one per row
    kept : sequence of bool
        The rows to mark.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float]]
    kept: Sequence[bool]

    def __post_init__(self) -> None:
        _keep(self, rows=tuple(map(str, self.rows)), columns=tuple(map(str, self.columns)))
        _keep(self, values=tuple(map(_numbers, self.values)))
        if {len(row) for row in self.values} - {len(self.columns)} or not (
            len(self.values) == len(self.rows) == len(self.kept)
        ):
            raise ValueError("values and kept must have one entry per row, values one per column.")

    def svg(self) -> str:
        """The drawing as one ``<svg>`` element."""
        labels = [
            f"{'● ' if kept else ''}{_short(r)}"
            for r, kept in zip(self.rows, self.kept, strict=True)
        ]
        left = 16 + _LETTER * max(map(len, labels), default=0)
        width = min(64.0, (_WIDTH - left - 10) / max(len(self.columns), 1))
        upright = max(map(len, self.columns), default=0) * _LETTER < width - 4
        top = 24.0 if upright else 14 + _LETTER * min(max(map(len, self.columns), default=0), 16)
        sizes = sorted(abs(v) for row in self.values for v in row if math.isfinite(v))
        # A few extreme values must not pale the rest.
        largest = sizes[int(0.97 * (len(sizes) - 1))] if sizes else 0.0
        parts = []
        for j, name in enumerate(self.columns):
            x = left + width * (j + 0.5)
            if upright:
                parts.append(_words(x, top - 8, name, "middle"))
            elif width >= 9 or j % math.ceil(9 / width) == 0:
                parts.append(
                    f'<text transform="translate({x + 4:.1f} {top - 6:.1f}) rotate(-90)">'
                    f"{_safe(_short(name, 16))}</text>"
                )
        for i, row in enumerate(self.values):
            y = top + _ROW * i
            parts.append(_words(left - 8, y + 15, labels[i], "end"))
            for j, value in enumerate(row):
                x = left + width * j
                parts.append(self._cell(x, y, width, value, largest, i, j))
        height = top + _ROW * len(self.rows)
        note = "● chosen · + with the target · − against it · the fuller the colour, the stronger"
        return _svg(self, height + 26, [*parts, _words(left, height + 18, note)])

    def _cell(
        self, x: float, y: float, width: float, value: float, largest: float, i: int, j: int
    ) -> str:
        said = f"{self.rows[i]}, {self.columns[j]}: {number(value)}"
        share = min(abs(value) / largest, 1.0) if largest and math.isfinite(value) else 0.0
        colour = _BLUE if value > 0 else _ORANGE
        sign = "" if share < 0.1 or width < 10 else "+" if value > 0 else "−"
        return (
            f"<g><title>{_safe(said)}</title>"
            f'<rect x="{x:.1f}" y="{y}" width="{max(width - 1, 1):.1f}" height="{_ROW - 1}" '
            f'style="fill:{colour};opacity:{0.06 + 0.64 * share:.2f}"/>'
            + _words(x + width / 2, y + 15, sign, "middle")
            + "</g>"
        )


def chart_from_dict(record: dict[str, Any]) -> Chart:
    """The chart whose `to_dict` gave the record; anything else is a ValueError or TypeError."""
    kinds: dict[str, type[Chart]] = {kind.__name__: kind for kind in (Lines, Dots, Heat)}
    rest = dict(record)
    kind = rest.pop("kind", None)
    if kind not in kinds:
        raise ValueError(f"no chart is called {kind!r}.")
    return kinds[kind](**rest)


# --- scales -------------------------------------------------------------------------------------


class _Scale:
    """From numbers to places, with round ticks."""

    def __init__(
        self,
        low: float,
        high: float,
        start: float,
        end: float,
        *,
        log: bool = False,
        whole: bool = False,
    ):
        if not high > low:
            pad = abs(low) * 0.1 or 1.0
            low, high = (low, low + 1) if whole else (low - pad, high + pad)
        self.low, self.high, self.start, self.end = low, high, start, end
        self.log, self.whole = log, whole

    def __call__(self, value: float) -> float:
        low, high = self.low, self.high
        value = min(max(value, low - (high - low)), high + (high - low))
        if self.log:
            low, high = math.log(low), math.log(high)
            value = math.log(max(value, self.low / 10))
        return self.start + (self.end - self.start) * (value - low) / (high - low)

    def ticks(self) -> list[tuple[float, str]]:
        return [(self(value), number(value)) for value in self._values()]

    def _values(self) -> list[float]:
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            steps = (1.0,) if len(powers) > 5 else (1.0, 2.0, 5.0)
            values = [step * 10.0**power for power in powers for step in steps]
            stride = math.ceil(len(values) / 12)
            return [v for v in values[::stride] if self.low <= v <= self.high]
        step = _round_step((self.high - self.low) / 6, (1, 2, 5, 10) if self.whole else _STEPS)
        if self.whole:
            step = max(1.0, step)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [i * step for i in range(first, last + 1)]


def _round_step(rough: float, steps: Sequence[float]) -> float:
    """The least of the steps, times a power of ten, that is not below."""
    power = 10.0 ** math.floor(math.log10(rough))
    return power * next(step for step in steps if step * power >= rough * 0.999)


def _error_scale(drawn: list[float], wanted: list[float], bottom: float, top: float) -> _Scale:
    """Log where errors span decades, cropped to where the choice is made."""
    low, least, high = min(drawn), min(wanted), max(wanted)
    if low > 0 and high > 30 * least:
        # Exploding errors of absurd sizes must not flatten the part that matters.
        return _Scale(
            max(low, least * 1e-3) / 1.3, min(high, least * 1e3) * 1.3, bottom, top, log=True
        )
    spread = max(wanted) - min(low, least)
    return _Scale(min(low, least) - 0.06 * spread, high + 0.06 * spread, bottom, top)


# --- markup -------------------------------------------------------------------------------------


def _svg(chart: Chart, height: float, parts: Iterable[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" role="img" '
        f'aria-label="{_safe(chart.title)}. {_safe(chart.text)}" '
        f'style="width:100%;max-width:{_WIDTH}px;height:auto;font:12px system-ui,sans-serif;'
        f'fill:currentColor">' + "".join(parts) + "</svg>"
    )


def _marks(series: Series, style: str, horizontal: _Scale, vertical: _Scale) -> Iterator[str]:
    """A line broken where a value is not finite, or points."""
    pieces: list[list[str]] = [[]]
    lone: list[tuple[float, float]] = []
    for x, y in zip(series.x, series.y, strict=True):
        if not (math.isfinite(x) and math.isfinite(y)):
            pieces.append([])
            continue
        place = horizontal(x), min(max(vertical(y), vertical.end), vertical.start)
        pieces[-1].append(f"{place[0]:.1f},{place[1]:.1f}")
        lone.append(place)
    if series.look == "points":
        for x, y in lone:
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" style="{style};opacity:.7"/>'
        return
    for piece in pieces:
        if len(piece) > 1:
            yield f'<polyline points="{" ".join(piece)}" style="fill:none;{style}"/>'
    if series.look == "main" and len(lone) <= 60:
        for x, y in lone:
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" style="fill:{_BLUE}"/>'


def _legend(keys: list[tuple[str, str, bool]], left: float) -> tuple[str, float]:
    """Keys in as many lines as they need, and where the plot may begin."""
    parts, x, y = [], left, 14.0
    for name, style, point in keys:
        width = 36 + _LETTER * len(name)
        if x + width > _WIDTH and x > left:
            x, y = left, y + 18
        parts.append(
            f'<circle cx="{x + 10}" cy="{y - 4}" r="3" style="{style}"/>'
            if point
            else _rule(x, y - 4, x + 20, y - 4, style)
        )
        parts.append(_words(x + 26, y, name))
        x += width + 8
    return "".join(parts), y + 10


def _dot(x: float, y: float, mark: str) -> str:
    colour = _colour(mark)
    if mark == "id":
        d = f"M{x - 5:.1f} {y - 5:.1f}l10 10m0 -10l-10 10"
        return f'<path d="{d}" style="stroke:{colour};stroke-width:3;fill:none"/>'
    fill = colour if mark == "kept" else "none"
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" '
        f'style="fill:{fill};stroke:{colour};stroke-width:2"/>'
    )


def _colour(mark: str) -> str:
    return {"kept": _BLUE, "id": _ORANGE}.get(mark, _GREY)


def _rule(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
        f'style="stroke:currentColor;{style}"/>'
    )


def _words(x: float, y: float, text: str, anchor: str = "start") -> str:
    if not text:
        return ""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{_safe(text)}</text>'


def _short(text: str, limit: int = _LABEL) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _safe(text: str) -> str:
    return escape(printable(text))


# --- fields -------------------------------------------------------------------------------------


def _keep(owner: Any, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(owner, name, value)


def _numbers(values: Iterable[Any]) -> tuple[float, ...]:
    """Numbers as floats; JSON has the names of those that are not finite."""
    return tuple(math.nan if value is None else float(value) for value in values)


def _plain(value: Any) -> Any:
    if isinstance(value, Series):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value
