"""Distinct values of a column, and the place of each row's value among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdtrue.columns.values import (
    array_column,
    arrow_of,
    chunks_of,
    missing_objects,
    numpy_of,
    python_values,
    refused,
    taken_rows,
    valid_mask,
)

if TYPE_CHECKING:
    from holdtrue.columns.key_loops import Coded, Groups

# Longest text, in bytes, that is counted by a key of whole words: a UUID has 36.
MAX_TEXT = 39
# Rows that show whether a text column has many values.
_SAMPLE = 1 << 15
_MANY = 0.4  # share of it that differs from which texts are grouped in parts: a table is too large
_BLOCK = 1 << 15  # offsets that stay in the cache


class Distinct(NamedTuple):
    """Distinct values of a column, and each row's place among them."""

    values: Any  # a missing value is null, or None. Some values may belong to no row.
    codes: np.ndarray  # shape (n_rows,)


def distinct(name: Any, column: Any) -> Distinct:
    """Distinct values of a column and each row's place among them.

    Values keep their type: 1, "1" and True are three values, 1 and 1.0 are one. Missing (None,
    NaN, null) is one value of its own.

    Parameters
    ----------
    name : str
        The column, for the messages.
    column : pyarrow.Array, pyarrow.ChunkedArray or ndarray of object
    """
    if isinstance(column, np.ndarray):
        return _distinct_objects(name, column)
    if isinstance(column, pa.ChunkedArray):
        if pa.types.is_dictionary(column.type):
            column = with_one_dictionary(column)
        elif not (is_text(column.type) or pa.types.is_integer(column.type)):
            column = column.combine_chunks()
    kind = column.type
    if pa.types.is_nested(kind) or isinstance(kind, pa.ExtensionType):
        raise refused(name, str(kind))
    if pa.types.is_null(kind):
        return Distinct(pa.nulls(1), np.zeros(len(column), dtype=np.intp))
    if pa.types.is_dictionary(kind):
        return _distinct_dictionary(name, column)
    if pa.types.is_boolean(kind):
        present = column.drop_null() if column.null_count else column
        codes = numpy_of(pc.cast(present, pa.int32()))
        return _with_missing(column, np.array([False, True]), codes)
    if pa.types.is_temporal(kind) and not pa.types.is_interval(kind):
        values, codes = _distinct_integers(column.view(f"int{kind.bit_width}"))
        return Distinct(values.cast(f"int{kind.bit_width}").view(kind), codes)
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return _distinct_integers(column)
    if pa.types.is_floating(kind):
        return _distinct_floats(column)
    return _distinct_hashed(column)


def with_one_dictionary(column: Any) -> Any:
    """A dictionary column with one dictionary in all chunks; its values where that fails."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    try:
        return column.unify_dictionaries()
    except pa.ArrowInvalid:  # null in a dictionary, or too many values for the type of the codes
        return column.cast(column.type.value_type)


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of texts or bytes."""
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary(kind)
    )


def _distinct_hashed(column: Any) -> Distinct:
    coded = _text_codes(column)
    if coded is not None:
        values = taken_rows(chunks_of(column), coded.first)
        return Distinct(_stored(values.combine_chunks()), coded.codes)
    encoded = column.dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        if not encoded.num_chunks:
            return Distinct(_stored(pa.array([], column.type)), np.zeros(0, dtype=np.intp))
        codes = np.concatenate([numpy_of(chunk.indices) for chunk in encoded.chunks])
        # Every chunk carries the dictionary of all of them.
        return Distinct(_stored(encoded.chunks[-1].dictionary), codes)
    return Distinct(_stored(encoded.dictionary), numpy_of(encoded.indices))


def text_groups(column: Any) -> Groups | None:
    """Rows of a long column of short texts, many of them different, by value; None for others."""
    if not (is_long_text(column) and mostly_differ(column, _MANY)):
        return None
    texts = text_pieces(column)
    if texts is None:
        return None
    from holdtrue.columns.key_loops import grouped, text_blocks

    return grouped(lambda: text_blocks(*texts), texts[1], len(column))


def _text_codes(column: Any) -> Coded | None:
    """Codes of a long column of short texts; None for other columns."""
    texts = text_pieces(column) if is_long_text(column) else None
    if texts is None:
        return None
    from holdtrue.columns.key_loops import codes_in_one_pass, text_blocks

    return codes_in_one_pass(text_blocks(*texts), texts[1], len(column))


def is_long_text(column: Any) -> bool:
    """Whether a column holds text, in enough rows for compiled loops to pay."""
    return (
        not isinstance(column, np.ndarray) and len(column) >= 4 * _SAMPLE and is_text(column.type)
    )


def mostly_differ(column: Any, share: float) -> bool:
    """Whether at least that share of a sample, from the middle of the column, is distinct."""
    sample = _sample(column)
    return len(sample.unique()) >= share * len(sample)


def _sample(column: Any) -> Any:
    """Rows from the middle of a column."""
    return column.slice(len(column) // 2, _SAMPLE)


def text_pieces(column: Any) -> tuple[list[tuple[np.ndarray, np.ndarray, np.ndarray]], int] | None:
    """Arguments of `key_loops.text_blocks` for a column of text; None if a text is too long."""
    pieces = [text_buffers(chunk) for chunk in chunks_of(column) if len(chunk)]
    longest = max(_longest(offsets) for offsets, _, _ in pieces)
    return (pieces, longest // 8 + 1) if longest <= MAX_TEXT else None


def _longest(offsets: np.ndarray) -> int:
    """Bytes of the longest text."""
    starts = range(0, len(offsets) - 1, _BLOCK)
    return max(int(np.diff(offsets[start : start + _BLOCK + 1]).max()) for start in starts)


def text_buffers(text: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offsets of the texts, all their bytes, and a mask of valid rows (empty if all are)."""
    if pa.types.is_string_view(text.type):
        text = text.cast(pa.large_string())
    _, offsets, data = text.buffers()
    is_large = pa.types.is_large_string(text.type) or pa.types.is_large_binary(text.type)
    width = np.int64 if is_large else np.int32
    bytes_ = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, dtype=np.uint8)
    starts = np.frombuffer(offsets, dtype=width)[text.offset :][: len(text) + 1]
    return starts, bytes_, valid_mask(text)


def text_hashes(text: Any) -> np.ndarray:
    """A 64-bit hash of each text, the same on every machine; no text may be missing."""
    from holdtrue.columns.key_loops import hash_texts, words_of

    offsets, bytes_, _ = text_buffers(text)
    hashes = np.empty(len(text), dtype=np.uint64)
    hash_texts(offsets, bytes_, words_of(bytes_), hashes)
    return hashes


def _stored(values: pa.Array) -> pa.Array:
    """Values in the type that parts of a column share: text as large_string."""
    if is_text(values.type) and not pa.types.is_binary(values.type):
        return pc.cast(values, pa.large_string())
    return values


def _distinct_dictionary(name: Any, column: Any) -> Distinct:
    """Distinct values of a dictionary column, whose dictionary may repeat values or hold null."""
    chunks = chunks_of(column)
    if not chunks:
        return Distinct(pa.array([], column.type.value_type), np.zeros(0, dtype=np.intp))
    dictionary = chunks[0].dictionary
    n_given = len(dictionary)
    indices = [chunk.indices for chunk in chunks]
    codes = np.concatenate(
        [
            np.where(valid_mask(part), codes, codes.dtype.type(n_given))
            if part.null_count
            else codes
            for part, codes in zip(indices, map(numpy_of, indices), strict=True)
        ]
    )
    if any(part.null_count for part in indices):
        dictionary = pa.concat_arrays([dictionary, pa.nulls(1, dictionary.type)])
    values, places = distinct(name, dictionary)
    if len(values) == len(dictionary) and (places == np.arange(len(places))).all():
        return Distinct(values, codes)
    return Distinct(values, places[codes])


def _distinct_integers(column: Any) -> Distinct:
    column = pc.cast(column, pa.int64())
    present = column.drop_null() if column.null_count else column
    if not len(present):
        return Distinct(pa.nulls(1, pa.int64()), np.zeros(len(column), dtype=np.intp))
    low, high = _ends(present)
    if not _lie_close(low, high, len(present)):
        return _with_missing(column, *sorted_distinct(numpy_of(present)))
    codes = np.empty(len(present), dtype=np.int32)
    start = 0
    for chunk in chunks_of(present):
        part = codes[start : start + len(chunk)]
        np.subtract(numpy_of(chunk), low, out=part, casting="unsafe")
        start += len(part)
    # Not up to high + 1, which may be beyond 64 bits.
    return _with_missing(column, low + np.arange(high - low + 1), codes)


def dense_ends(column: Any) -> tuple[int, int] | None:
    """Least and greatest of integers that lie close together: ``value - least`` can be the code.

    None for other integers, and where all are missing.
    """
    n_present = len(column) - column.null_count
    low: Any = None
    high: Any = None
    for rows in (_sample(column), column):  # most that are not show it in a few rows
        low, high = _ends(rows)
        if low is not None and not _lie_close(low, high, n_present):
            return None
    return None if low is None else (low, high)


def _ends(column: Any) -> tuple[Any, Any]:
    low, high = (end.as_py() for end in pc.min_max(column).values())
    return low, high


def _lie_close(low: int, high: int, n_present: int) -> bool:
    return high - low < max(2 * n_present, 1 << 16)


def _distinct_floats(column: Any) -> Distinct:
    column = pc.cast(column, pa.float64())
    numbers = numpy_of(column.drop_null() if column.null_count else column)
    nan = np.isnan(numbers)
    if nan.any():
        column = pc.if_else(pc.is_nan(column), pa.scalar(None, pa.float64()), column)
        numbers = numbers[~nan]
    # -0.0 + 0.0 is 0.0: the two are equal, their bits are not.
    return _with_missing(column, *sorted_distinct(numbers + 0.0))


def sorted_distinct(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct numbers in order, and codes; NumPy sorts faster than Arrow hashes."""
    order, ordered = _in_rising_order(numbers)
    is_new = ordered[1:] != ordered[:-1]
    codes = np.zeros(len(ordered), dtype=np.int32 if len(ordered) < 1 << 31 else np.intp)
    codes[order[1:]] = np.cumsum(is_new, dtype=codes.dtype)
    if is_new.all():
        return ordered, codes
    return np.append(ordered[:1], ordered[1:][is_new]), codes


def _in_rising_order(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Indices that sort 64-bit integers, or floats without NaN, and the sorted numbers.

    The leading bits of a number, without those that all numbers share, and its index are sorted as
    one whole number, several times faster than indices are; then the few whose leading bits are
    those of a neighbour.
    """
    keys = numbers.view(np.int64)
    if numbers.dtype.kind == "f":  # negative floats have their bits in reverse order
        packed = keys >> 63
        packed &= (1 << 63) - 1
        packed ^= keys
    else:
        packed = keys.copy()
    in_row = (1 << len(numbers).bit_length()) - 1
    low, high = (int(packed.min()), int(packed.max())) if len(packed) else (0, 0)
    n_shared = 63 - (high - low).bit_length()
    if n_shared > 0:
        packed -= low
        packed <<= n_shared
    packed &= ~in_row
    packed |= np.arange(len(numbers))
    packed.sort()
    order = packed & in_row
    ordered = numbers.take(order)  # faster than indexing
    if (ordered[1:] < ordered[:-1]).any():
        packed &= ~in_row
        is_alike = np.zeros(len(packed), dtype=bool)
        np.equal(packed[1:], packed[:-1], out=is_alike[1:])
        is_alike[:-1] |= is_alike[1:]
        alike = np.flatnonzero(is_alike)
        order[alike] = order[alike[np.argsort(ordered[alike])]]
        ordered[alike] = numbers[order[alike]]
    return order, ordered


def _with_missing(column: Any, values: np.ndarray, codes: np.ndarray) -> Distinct:
    """Codes of all rows from those of the present ones; missing rows get one more code."""
    if not column.null_count:
        return Distinct(arrow_of(values), codes)
    all_codes = np.full(len(column), len(values), dtype=np.intp)
    all_codes[numpy_of(column.is_valid())] = codes
    stored = arrow_of(values)
    return Distinct(pa.concat_arrays([stored, pa.nulls(1, stored.type)]), all_codes)


def _distinct_objects(name: Any, column: np.ndarray) -> Distinct:
    """Distinct Python objects by ``==`` and hash; True is not 1."""
    missing = missing_objects(column)
    places: dict[Any, int] = {}
    codes = np.empty(len(column), dtype=np.intp)
    values: list[Any] = []
    for i, value in enumerate(column):
        if missing[i]:
            value = None
        elif isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, complex):
            raise refused(name, "complex")
        try:
            place = places.setdefault((isinstance(value, bool), value), len(places))
        except TypeError as error:
            raise refused(name, type(value).__name__) from error
        codes[i] = place
        if place == len(values):
            values.append(value)
    distinct_values = np.empty(len(values), dtype=object)
    distinct_values[:] = values
    return Distinct(distinct_values, codes)


def joined(name: Any, parts: list[Any]) -> Distinct:
    """Distinct values of several arrays, and the index of every value among them, in order."""
    types = {part.type for part in parts if not isinstance(part, np.ndarray)}
    types -= {pa.null()}
    # Python's equality: 1 is 1.0. Above 2⁵³ neighbours would become equal as floats.
    if types == {pa.int64(), pa.float64()} and all(map(_fits_float, parts)):
        parts = [part.cast(pa.float64()) for part in parts]
        types = {pa.float64()}
    if len(types) > 1:
        parts, types = _in_one_unit(parts, types)
    mixed = len(types) > 1 or any(isinstance(part, np.ndarray) for part in parts)
    if not mixed:
        kind = types.pop() if types else pa.null()
        return distinct(name, pa.concat_arrays([part.cast(kind) for part in parts]))
    objects = [value for part in parts for value in python_values(part)]
    column = np.empty(len(objects), dtype=object)
    column[:] = objects
    return distinct(name, array_column(column))


def _in_one_unit(parts: list[Any], types: set[Any]) -> tuple[list[Any], set[Any]]:
    """Times in the finest unit that holds all of them; other parts unchanged."""
    is_time = all(map(pa.types.is_timestamp, types)) and len({kind.tz for kind in types}) == 1
    if any(isinstance(part, np.ndarray) for part in parts) or not (
        is_time or all(map(pa.types.is_duration, types))
    ):
        return parts, types
    units = ("ns", "us", "ms", "s")
    zone = next(iter(types)).tz if is_time else None
    for unit in units[min(units.index(kind.unit) for kind in types) :]:
        kind = pa.timestamp(unit, zone) if is_time else pa.duration(unit)
        try:
            return [part.cast(kind) for part in parts], {kind}
        except pa.ArrowInvalid:  # beyond the range of this unit, or finer than it
            pass
    return parts, types


def _fits_float(values: Any) -> bool:
    if isinstance(values, np.ndarray) or values.type != pa.int64():
        return not isinstance(values, np.ndarray)
    ends = pc.min_max(values).as_py()
    return ends["min"] is None or (ends["min"] >= -(2**53) and ends["max"] <= 2**53)
