"""What the texts of a column are: whole numbers, numbers, dates, truth values, or text.

A kind stands for a set of texts, and the kind of a column is the least one that holds all of its
texts, so that it does not depend on where a file is cut into blocks::

    empty < bool                       < text      true, True, TRUE, false, False, FALSE
    empty < integer < long < number    < text      long: whole numbers beyond 64 bits
    empty < date < timestamp < precise < text      ISO 8601; precise: beyond microseconds
    empty < zoned                      < text      ISO 8601 with Z or an offset

Where fields are parted by semicolons a comma may be decimal. "1.5" beside "1,5" is text, and so is
"1.234,5"::

    empty < integer < long < pointless < number < text      pointless: neither, as 1e5
    empty < integer < long < pointless < comma  < text      comma: 1,5

A whole number with a leading zero ("00123") is the name of something: text. A column of whole
numbers beyond 64 bits is text too, as a float would take neighbours for one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

# Texts that stand for a missing value in every column: those of pandas.
MISSING = (
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
)  # fmt: skip
# Texts that stand for a missing value only where all others are numbers, dates or truth values.
MARKS = ("?", "-", ".")
TRUE, FALSE = ("true", "True", "TRUE"), ("false", "False", "FALSE")

_CHAINS = (
    ("empty", "integer", "long", "pointless", "number"),
    ("empty", "integer", "long", "pointless", "comma"),
    ("empty", "date", "timestamp", "precise"),
    ("empty", "bool"),
    ("empty", "zoned"),
)
# With 0x, which Arrow takes for a whole number.
_LEADING_ZERO = "^[+-]?0([0-9]+$|[xX])"
# Columns of at most this many rows are looked at without Arrow, whose functions cost more than they
# do there; tables of many thousand columns have few rows.
FEW = 16
_PLAIN_INTEGER = re.compile("-?(0|[1-9][0-9]{0,17})", re.ASCII)
_PLAIN_NUMBER = re.compile("-?(0|[1-9][0-9]{0,17})([.][0-9]{1,17})?", re.ASCII)
# Letters that neither a number nor a date nor a truth value nor a missing value begins with.
_TEXT_LETTERS = frozenset("abcdeghjklmopqrsuvwxyzABCDEGHJKLMOPQRSUVWXYZ")
# What a caller may ask for, and the kinds that are read as such; all others are kept as text.
WANTED: dict[str, tuple[str, ...]] = {
    "text": (),
    "category": (),
    "integer": ("empty", "integer"),
    "number": ("empty", "integer", "pointless", "number", "comma"),
    "date": ("empty", "date", "timestamp", "precise", "zoned"),
    "bool": (),
}
_YES, _NO = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")


def wider(a: str, b: str) -> str:
    """The least kind that holds the texts of both."""
    for chain in _CHAINS:
        if a in chain and b in chain:
            return chain[max(chain.index(a), chain.index(b))]
    return "text"


@cache
def arrow_type(kind: str) -> pa.DataType:
    """Type that the values of a kind are kept in."""
    return {
        "empty": pa.null(),
        "bool": pa.bool_(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "pointless": pa.float64(),
        "comma": pa.float64(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us"),
        "precise": pa.timestamp("ns"),
        "zoned": pa.timestamp("us", tz="UTC"),
    }.get(kind, pa.string())


def classified(texts: pa.Array, *, comma: bool = False) -> tuple[str, bool]:
    """Kind of the texts, null being missing, and whether some are missing by a mark of `MARKS`.

    ``comma`` says whether a comma may be decimal.
    """
    if len(texts) <= FEW and (kind := _kind_of_few(texts.to_pylist())):
        return kind, False
    trimmed = pc.ascii_trim_whitespace(texts.drop_null())
    marked = pc.is_in(trimmed, value_set=pa.array([*MARKS, *MISSING]))
    has_marks = bool(pc.any(marked).as_py())
    if has_marks:
        trimmed = trimmed.filter(pc.invert(marked))
    if not len(trimmed):
        return "empty", has_marks
    if pc.all(pc.is_in(trimmed, value_set=pa.array([*TRUE, *FALSE]))).as_py():
        return "bool", has_marks
    pointless = comma and not pc.any(pc.match_substring(trimmed, ".")).as_py()
    numbers = pc.replace_substring(trimmed, ",", ".") if pointless else trimmed
    if _casts(numbers, pa.float64()):
        if pc.any(pc.match_substring_regex(numbers, _LEADING_ZERO)).as_py():
            return "text", False
        if pointless and pc.any(pc.match_substring(trimmed, ",")).as_py():
            return "comma", has_marks
        if not pc.all(pc.match_substring_regex(trimmed, "^-?[0-9]+$")).as_py():
            return ("pointless" if pointless else "number"), has_marks
        return ("integer" if _casts(trimmed, pa.int64()) else "long"), has_marks
    for kind in ("date", "timestamp", "precise", "zoned"):
        if _casts(trimmed, arrow_type(kind)) and (kind != "precise" or _fits_nanoseconds(trimmed)):
            return kind, has_marks
    return "text", False


def _kind_of_few(texts: list[str | None]) -> str | None:
    """Kind of a few texts without marks, where it is plain to see; None where it is not."""
    values = [text for text in texts if text is not None]
    if not values:
        return "empty"
    if any(value[:1] in _TEXT_LETTERS for value in values):
        return "text"
    if all(map(_PLAIN_INTEGER.fullmatch, values)):
        return "integer"
    return "number" if all(map(_PLAIN_NUMBER.fullmatch, values)) else None


def has_leading_zeros(texts: pa.Array) -> bool:
    """Whether a whole number among the texts has a leading zero."""
    trimmed = pc.ascii_trim_whitespace(texts)
    return bool(pc.any(pc.match_substring_regex(trimmed, _LEADING_ZERO)).as_py())


def converted(texts: pa.Array, kind: str) -> pa.Array:
    """Values of the texts, which must be of that kind; marks are missing unless it is text.

    Raises pyarrow.ArrowInvalid at a text of another kind.
    """
    if kind in ("text", "long"):
        return texts
    values = without_marks(texts)
    if kind == "comma":
        pointed = pc.match_substring(values, ".")
        values = pc.if_else(pointed, values, pc.replace_substring(values, ",", "."))
    if kind == "precise" and not _fits_nanoseconds(values):
        raise pa.ArrowInvalid("a year that nanoseconds cannot hold")
    if kind != "empty":
        return pc.cast(values, arrow_type(kind))
    if values.null_count < len(values):
        raise pa.ArrowInvalid("not empty")
    return pa.nulls(len(values))


def yes_or_no(texts: pa.Array) -> pa.Array:
    """Truth values of yes and no, true and false, 1 and 0, and their first letters.

    Raises pyarrow.ArrowInvalid at another text.
    """
    lower = pc.utf8_lower(without_marks(texts))
    yes = pc.is_in(lower, value_set=pa.array(_YES))
    known = pc.or_(yes, pc.is_in(lower, value_set=pa.array([*_NO, None])))
    if not pc.all(known).as_py() and len(texts):
        raise pa.ArrowInvalid("neither yes nor no")
    return pc.if_else(lower.is_valid(), yes, pa.scalar(None, pa.bool_()))


def without_marks(texts: pa.Array) -> pa.Array:
    """The texts without white space around them; null where they stand for a missing value."""
    trimmed = pc.ascii_trim_whitespace(texts)
    missing = pc.is_in(trimmed, value_set=pa.array([*MARKS, *MISSING]))
    return pc.if_else(missing, pa.scalar(None, pa.string()), trimmed)


def first_unfit(values: pa.Array, check: Callable[[pa.Array], object]) -> int:
    """Place of the first value at which ``check`` raises pyarrow.ArrowInvalid; there is one."""
    start, stop = 0, len(values)
    while stop - start > 1:  # the first that does not fit lies in values[start:stop]
        middle = (start + stop) // 2
        is_later = _fits(values.slice(start, middle - start), check)
        start, stop = (middle, stop) if is_later else (start, middle)
    return start


def _fits(values: pa.Array, check: Callable[[pa.Array], object]) -> bool:
    try:
        check(values)
    except pa.ArrowInvalid:
        return False
    return True


def _fits_nanoseconds(texts: pa.Array) -> bool:
    """Whether all years are from 1700 to 2199; older versions of Arrow turn others over."""
    fits = pc.match_substring_regex(texts, "^(1[7-9]|2[01])[0-9][0-9]-")
    return bool(pc.all(fits, min_count=0).as_py())


def _casts(texts: pa.Array, kind: pa.DataType) -> bool:
    # Arrow goes on to the end where the first text already fails, so try a few first.
    return all(_fits(some, lambda part: pc.cast(part, kind)) for some in (texts[:50], texts))
