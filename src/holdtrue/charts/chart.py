"""Charts as numbers and labels, without any drawing code. They survive JSON to the last bit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from holdtrue.errors import InputError
from holdtrue.records import Record

__all__ = ["Chart", "Dot", "Dots", "Heat", "Lines", "Series"]


@dataclass(frozen=True, eq=False)
class Chart(Record):
    """Base of all charts.

    Parameters
    ----------
    title : str
    text : str
        What the chart shows: its caption, and its description for those who cannot see it.
    """

    title: str
    text: str


@dataclass(frozen=True, eq=False)
class Series(Record):
    """One line, or one set of points, of a `Lines` chart.

    Parameters
    ----------
    name : str
        In the legend; empty for a line that needs none.
    x, y : sequence of float
        What is not finite is not drawn.
    look : {"main", "train", "level", "thin", "other", "points"}
    low, high : sequence of float
        Ends of the interval of each y, drawn as a band; empty for none.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    look: Literal["main", "train", "level", "thin", "other", "points"] = "main"
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
    """Curves and points over a common axis, with a vertical line at what was chosen.

    Parameters
    ----------
    x_label, y_label : str
    series : sequence of Series
        The vertical scale fits the main and the thin ones.
    chosen : float, optional
        Where the vertical line stands.
    chosen_label : str
        What the legend says of it; by default its number.
    whole : bool
        Whether the horizontal axis counts things.
    scale : {"errors", "from zero", "plain"}
        The vertical axis fits errors, on a log scale if they span decades; begins at 0; or fits all
        numbers as they are.
    ticks : sequence of str
        Names of the places 0, 1, 2, ... of the horizontal axis, where those are no quantities.
    """

    x_label: str
    y_label: str
    series: Sequence[Series]
    chosen: float | None = None
    chosen_label: str = ""
    whole: bool = True
    scale: Literal["errors", "from zero", "plain"] = "errors"
    ticks: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Dot(Record):
    """One row of a `Dots` chart.

    Parameters
    ----------
    label : str
    value : float
    low, high : float
        Ends of the interval; nan for none.
    reference : float
        Where the dashed line stands in this row.
    mark : {"kept", "", "id", "minus"}
        A filled dot, a ring, a cross, or a filled dot in the colour of −.
    note : str
        Beside the dot.
    """

    label: str
    value: float
    low: float = math.nan
    high: float = math.nan
    reference: float = 0.0
    mark: Literal["kept", "", "id", "minus"] = "kept"
    note: str = ""


@dataclass(frozen=True, eq=False)
class Dots(Chart):
    """Named values, one a row, with their intervals and a line to compare them with.

    Parameters
    ----------
    x_label : str
    dots : sequence of Dot
        From top to bottom.
    reference_label : str
        What the dashed line is.
    legend : mapping of str to str
        From marks to what they mean; a mark that is not named needs no explanation.
    """

    x_label: str
    dots: Sequence[Dot]
    reference_label: str
    legend: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Heat(Chart):
    """Signed values of rows in columns: colour for the size, + or − for the sign.

    Parameters
    ----------
    rows, columns : sequence of str
    values : sequence of sequences of float, one per row
    kept : sequence of bool
        The rows to mark; empty for none.
    row_groups, column_groups : sequence of str
        Label of each row and column where neighbours form groups; empty otherwise.
    plus, minus : str
        What the signs mean.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    values: Sequence[Sequence[float]]
    kept: Sequence[bool] = ()
    row_groups: Sequence[str] = ()
    column_groups: Sequence[str] = ()
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
