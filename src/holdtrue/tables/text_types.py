"""What the texts of a column are: whole numbers, numbers, dates, truth values, or text.

A kind stands for a set of texts, and the kind of a column is the least one that holds all of its
texts, so that it does not depend on where a file is cut into blocks::

    empty < marked < bool                       < text    true, True, TRUE, false, False, FALSE
    empty < marked < integer < long < number    < text    long: whole numbers beyond 64 bits
    empty < marked < date < timestamp < precise < text    ISO 8601; precise: beyond microseconds
    empty < marked < zoned                      < text    ISO 8601 with Z or an offset

A marked column holds only missing values and marks for them; a mark among texts is a text.
Where fields are parted by semicolons a comma may be decimal. "1.5" beside "1,5" is text, and so is
"1.234,5"::

    empty < marked < integer < long < pointless < number < text    pointless: neither, as 1e5
    empty < marked < integer < long < pointless < comma  < text    comma: 1,5

A whole number with a leading zero ("00123") is the name of something: text. A column of whole
numbers beyond 64 bits is text too, as a float would take neighbours for one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

import numpy as np
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
    ("empty", "marked", "integer", "long", "pointless", "number"),
    ("empty", "marked", "integer", "long", "pointless", "comma"),
    ("empty", "marked", "date", "timestamp", "precise"),
    ("empty", "marked", "bool"),
    ("empty", "marked", "zoned"),
)
# With 0x, which Arrow takes for a whole number.
_LEADING_ZERO = "^[+-]?0([0-9]+$|[xX])"
_SIGNS, _AFTER_ZERO = np.zeros((2, 256), dtype=bool)
_SIGNS[[*b"+-"]] = True
_AFTER_ZERO[[*b"0123456789xX"]] = True
# Columns of at most this many rows are looked at without Arrow, whose functions cost more than they
# do there; tables of many thousand columns have few rows.
FEW = 64
_SOME = 50  # Arrow goes on to the end where the first text already fails, so a few are tried first
_PLAIN_INTEGER = re.compile("-?(0|[1-9][0-9]{0,17})", re.ASCII)
_PLAIN_NUMBER = re.compile("-?(0|[1-9][0-9]{0,17})([.][0-9]{1,17})?", re.ASCII)
# Letters that neither a number nor a date nor a truth value nor a missing value begins with.
_TEXT_LETTERS = frozenset("abcdeghjklmopqrsuvwxyzABCDEGHJKLMOPQRSUVWXYZ")
# What a caller may ask for, and the kinds that are read as such; all others are kept as text.
WANTED: dict[str, tuple[str, ...]] = {
    "text": (),
    "category": (),
    "integer": ("empty", "marked", "integer"),
    "number": ("empty", "marked", "integer", "pointless", "number", "comma"),
    "date": ("empty", "marked", "date", "timestamp", "precise", "zoned"),
    "bool": (),
}
_YES, _NO = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")


def wider(a: str, b: str) -> str:
    """The least kind that holds all texts of two kinds."""
    for chain in _CHAINS:
        if a in chain and b in chain:
            return chain[max(chain.index(a), chain.index(b))]
    return "text"


@cache
def arrow_type(kind: str) -> pa.DataType:
    """Type that the values of a kind are kept in."""
    return {
        "empty": pa.null(),
        "marked": pa.null(),
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


def classified(texts: pa.Array, *, comma: bool = False) -> str:
    """Kind of the texts, null being missing; ``comma`` says whether a comma may be decimal."""
    if len(texts) <= FEW and (kind := _kind_of_few(texts.to_pylist())):
        return kind
    trimmed = without_marks(texts).drop_null()
    if not len(trimmed):
        return "empty" if texts.null_count == len(texts) else "marked"
    if _are_truths(trimmed):
        return "bool"
    pointless = comma and not pc.any(pc.match_substring(trimmed, ".")).as_py()
    numbers = pc.replace_substring(trimmed, ",", ".") if pointless else trimmed
    if _casts(numbers, pa.float64()):
        if has_leading_zeros(numbers):
            return "text"
        if pointless and pc.any(pc.match_substring(trimmed, ",")).as_py():
            return "comma"
        if not pc.all(pc.match_substring_regex(trimmed, "^-?[0-9]+$")).as_py():
            return "pointless" if pointless else "number"
        return "integer" if _casts(trimmed, pa.int64()) else "long"
    for kind in ("date", "timestamp", "precise", "zoned"):
        if _casts(trimmed, arrow_type(kind)) and (kind != "precise" or _fits_nanoseconds(trimmed)):
            return kind
    return "text"


def _kind_of_few(texts: list[str | None]) -> str | None:
    """Kind of a few texts without marks, by simple rules; None where they do not decide."""
    values = [text for text in texts if text is not None]
    if not values:
        return "empty"
    if any(value[:1] in _TEXT_LETTERS for value in values):
        return "text"
    if all(map(_PLAIN_INTEGER.fullmatch, values)):
        return "integer"
    return "number" if all(map(_PLAIN_NUMBER.fullmatch, values)) else None


def has_leading_zeros(texts: pa.Array) -> bool:
    """Whether a whole number among the texts, without white space around them, begins with zeros.

    Most zeros come before a point, which a look at two characters shows.
    """
    texts = texts.drop_null()
    _, offsets, content = texts.buffers()
    if not len(texts) or content is None:
        return False
    characters = np.append(np.frombuffer(content, np.uint8), np.zeros(2, np.uint8))
    first = np.frombuffer(offsets, np.int32, len(texts), 4 * texts.offset)
    first = first + _SIGNS[characters[first]]
    likely = (characters[first] == ord("0")) & _AFTER_ZERO[characters[first + 1]]
    if not likely.any():
        return False
    some = texts.filter(pa.array(likely))
    return bool(pc.any(pc.match_substring_regex(some, _LEADING_ZERO)).as_py())


def values_of(texts: pa.Array, kind: str) -> pa.Array | None:
    """Values of the texts as that kind; None where some may be of another, or are marks alone."""
    if kind == "text":
        return texts
    if kind == "empty":
        return pa.nulls(len(texts)) if texts.null_count == len(texts) else None
    if kind not in ("bool", "integer", "number", "date", "timestamp", "zoned"):
        return None
    # Few columns need be trimmed, fewer have marks.
    for prepared in (pc.ascii_trim_whitespace, without_marks):
        values = _sure_values(texts, kind)
        if values is not None:
            return values
        texts = prepared(texts)
    return _sure_values(texts, kind)


def _sure_values(texts: pa.Array, kind: str) -> pa.Array | None:
    """Values of the texts as they are, not trimmed; None where one seems of another kind."""
    if not _casts(texts[:_SOME], arrow_type(kind)):
        return None
    try:
        values = pc.cast(texts, arrow_type(kind))
    except pa.ArrowInvalid:
        return None
    if kind == "bool":
        return values if _are_truths(texts) else None
    return None if kind in ("integer", "number") and has_leading_zeros(texts) else values


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
    missing = kind in ("empty", "marked")
    return pa.nulls(len(values)) if missing else pc.cast(values, arrow_type(kind))


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
    """Index of the first value at which ``check`` raises pyarrow.ArrowInvalid; one must exist."""
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


def _are_truths(texts: pa.Array) -> bool:
    return bool(pc.all(pc.is_in(texts, value_set=pa.array([*TRUE, *FALSE, None]))).as_py())


def _fits_nanoseconds(texts: pa.Array) -> bool:
    """Whether all years are from 1700 to 2199; older versions of Arrow overflow on others."""
    fits = pc.match_substring_regex(texts, "^(1[7-9]|2[01])[0-9][0-9]-")
    return bool(pc.all(fits, min_count=0).as_py())


def _casts(texts: pa.Array, kind: pa.DataType) -> bool:
    return all(_fits(some, lambda part: pc.cast(part, kind)) for some in (texts[:_SOME], texts))
