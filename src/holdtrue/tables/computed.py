"""Columns computed from stored ones: in another type, as people write them, or parts of dates."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdtrue.columns.values import chunks_of, holds_numbers, value_type
from holdtrue.errors import InputError
from holdtrue.tables.source import Place, Source, as_text, batch_of, widened
from holdtrue.tables.text_types import (
    MARKS,
    MISSING,
    classified,
    converted,
    first_unfit,
    without_marks,
    yes_or_no,
)


class Computed(NamedTuple):
    """A column that is computed from a stored one, piece by piece."""

    stored: str  # name of the stored column
    type: Any  # Arrow type of the values
    # Values for a piece of the stored column, and for the number of rows before that piece
    values: Callable[[Any, int], Any]


class ComputedColumns:
    """Columns of a source, some of them computed: converted, or parts of dates."""

    def __init__(self, source: Source, computed: Mapping[str, Computed]):
        self._source, self._computed, self.n_rows = source, computed, source.n_rows
        of_computed = {name: column.type for name, column in computed.items()}
        self.types: dict[str, Any] = {**source.types, **of_computed}

    def column(self, name: str) -> Any:
        """The whole column."""
        if name not in self._computed:
            return self._source.column(name)
        stored, kind, values = self._computed[name]
        column = self._source.column(stored)
        if isinstance(column, np.ndarray):
            column = as_text(stored, column)
        pieces = chunks_of(column)
        starts = np.cumsum([0, *map(len, pieces)]).tolist()
        chunks = [values(piece, start) for piece, start in zip(pieces, starts[:-1], strict=True)]
        return pa.chunked_array(chunks, type=kind)

    def batches(self, kinds: dict[str, Any], rows: int) -> Iterator[pa.RecordBatch]:
        """Batches of at most ``rows`` rows, of these columns in these types."""
        read = [self._computed[name].stored if name in self._computed else name for name in kinds]
        n_before = 0
        for batch in self._source.batches(
            {n: value_type(self._source.types[n]) for n in read}, rows
        ):
            stored = dict(zip(dict.fromkeys(read), batch.columns, strict=True))
            columns = [
                self._computed[name].values(stored[of], n_before)
                if name in self._computed
                else stored[of]
                for name, of in zip(kinds, read, strict=True)
            ]
            yield batch_of(columns, kinds)
            n_before += batch.num_rows


# --- types that the caller asks for ---------------------------------------------------------------

# Wanted kinds: which stored types fit, and the type that others are turned into.
_TYPES = {
    "integer": (pa.types.is_integer, pa.int64()),
    "number": (pa.types.is_floating, pa.float64()),
    "comma": (pa.types.is_floating, pa.float64()),  # numbers in whose text a comma may be decimal
    "date": (pa.types.is_temporal, pa.timestamp("us")),
    "bool": (pa.types.is_boolean, pa.bool_()),
}


def wanted_columns(
    types: Mapping[str, Any], wanted: Mapping[str, str], place: Place
) -> dict[str, Computed]:
    """Columns that are converted: those wanted as something else, and times of day.

    Times of day become durations: Python and NumPy have no time of day in nanoseconds.
    """
    is_time = pa.types.is_time
    times = {name: "duration" for name, kind in types.items() if is_time(value_type(kind))}
    return {
        name: _converted(name, _type(types[name], kind), kind, place)
        for name, kind in {**times, **wanted}.items()
    }


def _type(stored: Any, wanted: str) -> Any:
    """Arrow type for a wanted kind; the stored type if it is of that kind."""
    stored = value_type(stored)
    if wanted == "duration":
        return pa.duration(stored.unit)
    fits, other = _TYPES.get(wanted, (pa.types.is_string, pa.string()))
    return stored if fits(stored) else other


def _converted(name: str, kind: Any, wanted: str, place: Place) -> Computed:
    """The column in its new type; the first value that does not fit is named."""

    def values(piece: Any, n_before: int) -> Any:
        try:
            return _cast(piece, wanted, kind)
        except pa.ArrowInvalid as error:
            row = first_unfit(piece, lambda part: _cast(part, wanted, kind))
            table, where = place(n_before + row)
            what = "number" if wanted == "comma" else wanted
            raise InputError(
                f"column {name!r} of {table} cannot be read as {what!r}. Got "
                f"{piece[row].as_py()!r} {where}. Mend it or leave it empty, or read "
                "the column as 'text'."
            ) from error

    return Computed(name, kind, values)


def _cast(column: Any, wanted: str, kind: Any) -> Any:
    """A column in the wanted type. Raises pyarrow.ArrowInvalid where a value does not fit."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.type == kind:
        return column
    if wanted == "duration":
        return column.cast(f"int{column.type.bit_width}").cast(pa.int64()).view(kind)
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if wanted == "bool":
        return yes_or_no(column.cast(pa.string()))
    if is_text and wanted not in ("text", "category"):
        as_kind = "timestamp" if wanted == "date" else wanted
        return converted(column.cast(pa.string()), as_kind)
    if wanted == "date" and holds_numbers(column.type):  # Arrow takes 2024 for microseconds
        raise pa.ArrowInvalid("a number")
    try:
        return column.cast(kind, safe=wanted not in ("number", "comma"))  # the nearest float
    except pa.ArrowNotImplementedError as error:
        raise pa.ArrowInvalid(str(error)) from error


# --- parts of dates -------------------------------------------------------------------------------

# Sales follow the month and traffic the weekday and the hour; a date as a number shows neither.
# Months and weekdays are categories, as no number says that December is next to January.

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
    """Parts of all columns of dates by name; a stored column of the same name wins."""
    parts_by_name: dict[str, DatePart] = {}
    for name, kind in types.items():
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            parts = ("year", "month", "weekday", *(("hour",) * pa.types.is_timestamp(kind)))
            parts_by_name |= {f"{name}.{part}": DatePart(name, part) for part in parts}
    return {name: part for name, part in parts_by_name.items() if name not in types}


# --- numbers and dates as people write them -------------------------------------------------------

# 1,000, $1,000, (250), 12 %, Jun 12 1998, 31.12.1999: text of which **every** value is such a
# number, or a date of one form, is read as what it means; a single other value leaves the column
# text, so that the order of rows does not matter. Missing values and their marks are missing. All
# columns of text files and Excel are looked at; others have types, which the caller may overrule.

_SAMPLE = 64
_NUMBER = (
    r"^(?P<minus>[-(]?)\+?(?P<unit>[$€£¥]?) ?(?P<minus2>-?)"
    r"(?P<whole>0|[1-9][0-9]{0,2}(?:,[0-9]{3}){1,4}|[1-9][0-9]{0,14})(?P<rest>(?:\.[0-9]*)?)"
    r"(?P<close>\)?)(?P<percent>(?: ?%)?)$"
)
_TIME = (
    r"(?:(?:,? |T)(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2}))?"
    r"(?: ?(?P<half>[AaPp])[Mm])?)?$"
)
_YEAR, _NAME = r"(?P<year>[0-9]{4})", r"(?P<month>[A-Za-z]{3,9})\.?"
_DAY, _MONTH = r"(?P<day>[0-9]{1,2})", r"(?P<month>[0-9]{1,2})"
_DATES = (
    rf"^{_NAME} {_DAY},? {_YEAR}{_TIME}",
    rf"^{_DAY}[ -]{_NAME}[ -]{_YEAR}{_TIME}",
    rf"^{_NAME} {_YEAR}$",
    rf"^{_YEAR}[/.-]{_MONTH}[/.-]{_DAY}{_TIME}",
    rf"^{_DAY}\.{_MONTH}\.{_YEAR}{_TIME}",
    rf"^{_DAY}[/-]{_MONTH}[/-]{_YEAR}{_TIME}",
    rf"^{_MONTH}[/-]{_DAY}[/-]{_YEAR}{_TIME}",
)
_MONTHS = {
    name.lower(): f"{number:02}"
    for number, month in enumerate(MONTHS, 1)
    for name in (month, month[:3])
} | {"sept": "09"}
_ISO = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_FORMS = [re.compile(_NUMBER), _ISO, *map(re.compile, _DATES)]
# What a column of text may turn out to be, by the type that is wanted; the others stay text.
_WHAT = {None: "", "integer": "numbers", "number": "numbers", "date": "dates"}
_ISO_KINDS = ("date", "timestamp", "precise", "zoned")


@dataclass(frozen=True)
class Reading:
    """How a column of text was read."""

    what: str  # ``"numbers"`` or ``"dates"``
    # written, meant: a value of it, as it stands in the file and as it was read
    written: str
    meant: str


def as_written(
    source: Source, wanted: Mapping[str, str], *, only_wanted: bool = False
) -> tuple[Source, dict[str, Reading]]:
    """The source with written numbers and dates as such, and how these columns were read.

    ``wanted`` are the types that the caller has given to columns; with ``only_wanted`` no others
    are looked at.
    """
    names = wanted.keys() & source.types.keys() if only_wanted else source.types
    texts = {
        name: value_type(kind)
        for name, kind in source.types.items()
        if source.n_rows and name in names and _holds_texts(kind) and wanted.get(name) in _WHAT
    }
    computed: dict[str, Computed] = {}
    readings: dict[str, Reading] = {}
    sample = next(source.batches(texts, _SAMPLE)).columns if texts else []
    for name, some in zip(texts, sample, strict=True):
        if not _may_be_written(some.to_pylist()):
            continue
        column = source.column(name)
        distinct = (as_text(name, column) if isinstance(column, np.ndarray) else column).unique()
        if pa.types.is_dictionary(distinct.type):
            distinct = distinct.dictionary_decode()
        values = without_marks(distinct.cast(pa.string())).drop_null()
        readers = _readers(values)
        meanings = [read(values) for read in readers]
        # 1/2/1999 may be two dates: read only if another value shows which part is the day.
        is_one = all(meant.equals(meanings[0]) for meant in meanings)
        # Plain numbers in quotes are text: JSON and Excel have numbers, too.
        is_plain = readers == [_numbers] and not _is_marked(values)
        if not (readers and len(values) and is_one) or is_plain:
            continue
        kind = meanings[0].type
        what = "dates" if pa.types.is_temporal(kind) else "numbers"
        if _WHAT[wanted.get(name)] in ("", what):
            computed[name] = Computed(name, kind, partial(_meant, readers[0], kind))
            readings[name] = Reading(what, values[0].as_py(), str(meanings[0][0].as_py()))
    return ComputedColumns(source, computed) if computed else source, readings


def _holds_texts(kind: Any) -> bool:
    kind = value_type(kind)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _meant(read: Callable[[Any], Any], kind: Any, texts: Any, n_before: int = 0) -> Any:
    """Values that the texts represent."""
    if pa.types.is_dictionary(texts.type):
        return _meant(read, kind, texts.dictionary).take(texts.indices)
    return widened(read(without_marks(texts.cast(pa.string()))), kind)


def _may_be_written(texts: list[str | None]) -> bool:
    """Whether one form fits all of a few texts; without Arrow, as most columns are refused here."""
    marks = {*MARKS, *MISSING, ""}
    values = [text.strip() for text in texts if text is not None]
    values = [value for value in values if value not in marks]
    return any(all(map(form.match, values)) for form in _FORMS)


def _readers(texts: Any) -> list[Callable[[Any], Any]]:
    """Functions that read all of these texts, null being missing; none fits most columns."""
    texts = without_marks(texts).drop_null()
    first = texts[0].as_py() if len(texts) else "1"
    if re.match(_NUMBER, first):
        return [_numbers] if _are_numbers(texts) else []
    if _ISO.match(first) and (kind := classified(texts)) in _ISO_KINDS:
        return [partial(converted, kind=kind)]  # in JSON: Arrow infers those without a fraction
    readers: list[Callable[[Any], Any]] = []
    for form in _DATES:
        if re.match(form, first):
            with contextlib.suppress(pa.ArrowInvalid):
                _dates(form, texts)
                readers.append(partial(_dates, form))
    return readers


def _fields(texts: Any, form: str) -> dict[str, Any]:
    """Parts of the texts; raises pyarrow.ArrowInvalid where one has another form."""
    parts = pc.extract_regex(texts, form)
    if parts.null_count > texts.null_count:
        raise pa.ArrowInvalid("another form")
    names = [field.name for field in parts.type]
    return {name: pc.struct_field(parts, name) for name in names}


def _are_numbers(texts: Any) -> bool:
    try:
        parts = _fields(texts, _NUMBER)
    except pa.ArrowInvalid:
        return False
    units = set(pc.unique(parts["unit"]).to_pylist()) - {""}
    is_percent = pc.unique(pc.not_equal(parts["percent"], "")).to_pylist()
    brackets = pc.equal(pc.equal(parts["minus"], "("), pc.equal(parts["close"], ")"))
    # Dollars beside euros, and 12 % beside 0.3, are two units.
    return len(units) <= 1 and len(is_percent) <= 1 and pc.all(brackets, min_count=0).as_py()


def _is_marked(texts: Any) -> bool:
    """Whether any of the texts has a unit, a separator or brackets."""
    return bool(pc.any(pc.match_substring_regex(texts, "[^0-9.+-]"), min_count=0).as_py())


def _numbers(texts: Any) -> Any:
    """Values of written numbers: whole if all of them are."""
    parts = _fields(texts, _NUMBER)
    negative = pc.or_(pc.not_equal(parts["minus"], ""), pc.not_equal(parts["minus2"], ""))
    whole = pc.replace_substring(parts["whole"], ",", "")
    sign = pc.if_else(negative, "-", "")
    is_whole = pc.all(pc.equal(parts["rest"], ""), min_count=0).as_py()
    joined = pc.binary_join_element_wise(sign, whole, parts["rest"], "")
    return pc.cast(joined, pa.int64() if is_whole else pa.float64())


def _dates(form: str, texts: Any) -> Any:
    """Values of written dates; raises pyarrow.ArrowInvalid where one has another form."""
    parts = _fields(texts, form)
    if _NAME in form:
        place = pc.index_in(pc.utf8_lower(parts["month"]), pa.array([*_MONTHS]))
        if place.null_count > texts.null_count:
            raise pa.ArrowInvalid("not the name of a month")
        parts["month"] = pc.take(pa.array([*_MONTHS.values()]), place)
    day = parts.get("day", pc.if_else(texts.is_valid(), "1", None))
    date = _joined(parts["year"], parts["month"], day, "-")
    hour = parts.get("hour")
    if hour is None or not pc.any(pc.not_equal(hour, ""), min_count=0).as_py():
        return pc.cast(date, pa.date32())
    hour, minute, second = (
        pc.if_else(pc.equal(parts[name], ""), "00", parts[name])
        for name in ("hour", "minute", "second")
    )
    hours, half = pc.cast(hour, pa.int64()), pc.utf8_lower(parts["half"])
    hours = pc.if_else(pc.and_(pc.not_equal(half, ""), pc.equal(hours, 12)), 0, hours)
    hours = pc.if_else(pc.equal(half, "p"), pc.add(hours, 12), hours)
    time = _joined(pc.cast(hours, pa.string()), minute, second, ":")
    return pc.cast(pc.binary_join_element_wise(date, time, " "), pa.timestamp("us"))


def _joined(first: Any, second: Any, third: Any, separator: str) -> Any:
    """Parts of a date or time of day, each with two digits at least."""
    padded = [pc.utf8_lpad(part, 2, "0") for part in (first, second, third)]
    return pc.binary_join_element_wise(*padded, separator)
