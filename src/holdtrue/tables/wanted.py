"""Columns in the types that the caller asks for, whatever type they are stored in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from holdtrue.columns.values import holds_numbers, value_type
from holdtrue.errors import InputError
from holdtrue.tables import text_types
from holdtrue.tables.source import Computed, Place

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
    """Arrow type of a column that is wanted as such; the stored one if that fits."""
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
            row = text_types.first_unfit(piece, lambda part: _cast(part, wanted, kind)) or 0
            table, where = place(n_before + row)
            what = "number" if wanted == "comma" else wanted
            raise InputError(
                f"column {name!r} of {table} cannot be read as {what!r}. Got "
                f"{piece[row].as_py()!r} {where}. Mend it, or read the column as 'text'."
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
        return text_types.yes_or_no(column.cast(pa.string()))
    if is_text and wanted not in ("text", "category"):
        as_kind = "timestamp" if wanted == "date" else wanted
        return text_types.converted(column.cast(pa.string()), as_kind)
    if wanted == "date" and holds_numbers(column.type):  # Arrow takes 2024 for microseconds
        raise pa.ArrowInvalid("a number")
    try:
        return column.cast(kind, safe=wanted not in ("number", "comma"))  # the nearest float
    except pa.ArrowNotImplementedError as error:
        raise pa.ArrowInvalid(str(error)) from error
