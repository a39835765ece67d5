"""Charts as numbers and labels, without any drawing code. They survive JSON to the last bit."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from holdtrue.errors import InputError
from holdtrue.records import Record

# --- numbers and names as readers see them --------------------------------------------------------


def number(value: float, digits: int = 3) -> str:
    """A number as people write it, to three digits or more."""
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "−∞"}.get(value, "–")
    most = max(1e6, 10.0**digits)  # what is larger is written with an exponent
    if value == int(value) and abs(value) < most:
        return f"{int(value):,}".replace("-", "−")
    if 999.5 <= abs(value) < most:
        n_decimals = max(digits - len(f"{abs(value):.0f}"), 0)
        return f"{value:,.{n_decimals}f}".replace("-", "−")
    text = f"{value:.{digits}g}"
    return text.replace("e+0", "e").replace("e-0", "e−").replace("e+", "e").replace("-", "−")


def printable(text: str) -> str:
    """Text on one line, without the control characters that steer a terminal or spoil a page."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "�" for c in text)


def shortened(text: str, limit: int) -> str:
    """The text, cut to a number of characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def short_names(names: Sequence[str], limits: int | Sequence[int]) -> list[str]:
    """The names cut to a number of characters, in the middle where two would look the same.

    ``limits`` is one for all or one for each.
    """
    each = [limits] * len(names) if isinstance(limits, int) else limits
    cut = [shortened(name, limit) for name, limit in zip(names, each, strict=True)]
    times = Counter(cut)
    return [
        short
        if short == name or times[short] == 1
        else f"{name[: limit - limit // 2 - 1]}…{name[len(name) - limit // 2 :]}"
        for name, short, limit in zip(names, cut, each, strict=True)
    ]


# --- charts ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Chart(Record):
    """Base of all charts."""

    title: str
    text: str  # what the chart shows: its caption, and its description for those who cannot see it


@dataclass(frozen=True, eq=False)
class Series(Record):
    """One line, or one set of points, of a `Lines` chart."""

    name: str  # in the legend; empty for a line that needs none
    # x, y: what is not finite is not drawn
    x: Sequence[float]
    y: Sequence[float]
    look: Literal["main", "train", "level", "thin", "other", "points"] = "main"
    # low, high: ends of the interval of each y, drawn as a band; empty for none
    low: Sequence[float] = ()
    high: Sequence[float] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.x) != len(self.y):
            raise InputError(f"x has {len(self.x)} numbers and y {len(self.y)}.")
        if (len(self.low), len(self.high)) not in ((0, 0), (len(self.y), len(self.y))):
            raise InputError(f"low and high must have {len(self.y)} numbers each, or none.")


@dataclass(frozen=True, eq=False)
class Lines(Chart):
    """Curves and points over a common axis, with a vertical line at what was chosen."""

    x_label: str
    y_label: str
    series: Sequence[Series]  # the vertical scale fits the main and the thin ones
    chosen: float | None = None  # where the vertical line stands
    chosen_label: str = ""  # what the legend says of it; by default its number
    whole: bool = True  # whether the horizontal axis counts things
    # The vertical axis fits errors, on a log scale if they span decades; begins at 0; or fits all
    # numbers as they are
    scale: Literal["errors", "from zero", "plain"] = "errors"
    # Names of the places 0, 1, 2, ... of the horizontal axis, where those are no quantities.
    ticks: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Dot(Record):
    """One row of a `Dots` chart."""

    label: str
    value: float
    # low, high: ends of the interval; nan for none
    low: float = math.nan
    high: float = math.nan
    reference: float = 0.0  # where the dashed line stands in this row
    # A filled dot, a ring, a cross, or a filled dot in the colour of −
    mark: Literal["kept", "", "id", "minus"] = "kept"
    note: str = ""  # beside the dot


@dataclass(frozen=True, eq=False)
class Dots(Chart):
    """Named values, one a row, with their intervals and a line to compare them with."""

    x_label: str
    dots: Sequence[Dot]  # from top to bottom
    reference_label: str  # what the dashed line is
    # From marks to what they mean; a mark that is not named needs no explanation
    legend: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Heat(Chart):
    """Signed values of rows in columns: colour for the size, + or − for the sign."""

    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float]]
    kept: Sequence[bool] = ()  # the rows to mark; empty for none
    # row_groups, column_groups: label of each row and column where neighbours form groups; empty
    # otherwise
    row_groups: Sequence[str] = ()
    column_groups: Sequence[str] = ()
    # plus, minus: what the signs mean
    plus: str = "with the target"
    minus: str = "against it"

    def __post_init__(self) -> None:
        super().__post_init__()
        n_rows, n_columns = len(self.rows), len(self.columns)
        if len(self.values) != n_rows or any(len(row) != n_columns for row in self.values):
            raise InputError("values must have one entry per row and column.")
        for name, n in (("kept", n_rows), ("row_groups", n_rows), ("column_groups", n_columns)):
            if len(getattr(self, name)) not in (0, n):
                raise InputError(f"{name} must have {n} entries, or none.")
