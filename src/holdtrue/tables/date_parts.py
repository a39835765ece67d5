"""Parts of dates as columns: ``day.year``, ``day.month``, ``day.weekday`` and ``day.hour``.

Sales follow the month and traffic the weekday and the hour; a date as a number shows neither.
Months and weekdays are categories, as no number says that December is next to January.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from holdtrue.tables.source import Computed

# Not those of the calendar module, which depend on the locale.
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_LABELS = {
    "month": ["", *(f"{number:02} {name[:3]}" for number, name in enumerate(MONTHS, 1))],
    "weekday": ["", *(f"{number} {name}" for number, name in enumerate(_DAYS, 1))],
}


class DatePart(NamedTuple):
    """A part of a column of dates."""

    column: str  # of the dates
    part: str  # "year", "month", "weekday" or "hour"

    def computed(self) -> Computed:
        """The part as a column of a table."""
        kind = pa.string() if self.part in _LABELS else pa.int64()
        return Computed(self.column, kind, self._values)

    def _values(self, dates: Any, n_before: int) -> Any:
        numbers, labels = self._numbers(dates), _LABELS.get(self.part)
        return numbers if labels is None else pc.take(pa.array(labels), numbers)

    def _numbers(self, dates: Any) -> Any:
        if self.part == "weekday":
            return pc.day_of_week(dates, count_from_zero=False)
        if self.part == "hour":
            return pc.hour(dates.cast(pa.timestamp(dates.type.unit)))  # that of UTC
        return {"year": pc.year, "month": pc.month}[self.part](dates)

    def varies(self, column: Callable[[str], Any]) -> bool:
        """Whether the dates of the table differ in this part; ``column`` gives them by name.

        Of dates that are the first of a month, or of another day, the weekday says nothing.
        """
        dates = column(self.column)
        numbers = pc.day(dates) if self.part == "weekday" else self._numbers(dates)
        return len(numbers.drop_null().unique()) > 1


def date_parts(types: Mapping[str, Any]) -> dict[str, DatePart]:
    """Parts of all columns of dates by name; a column that is called so comes first."""
    parts_by_name: dict[str, DatePart] = {}
    for name, kind in types.items():
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            parts = ("year", "month", "weekday", *(("hour",) * pa.types.is_timestamp(kind)))
            parts_by_name |= {f"{name}.{part}": DatePart(name, part) for part in parts}
    return {name: part for name, part in parts_by_name.items() if name not in types}
