"""Columns of arrays and frames as Arrow columns, and how their values are read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa

from holdtrue.errors import InputError, InputTypeError

# How a column's values are read; where two parts of a column differ, the later of their kinds.
KINDS = ("empty", "integer", "number", "category")
ORDERED = ("integer", "number")  # kinds whose values have an order, and are read in bins

# Types of objects that Arrow reads as they are meant, if a column holds one of them.
_PYTHON = {str, np.str_, bytes, np.bytes_, int, float, bool, date, time, Decimal}


def columns_of(data: Any) -> dict[str, Any]:
    """Columns by name: Arrow arrays, or object arrays where the types are Python's.

    Parameters
    ----------
    data : data frame, Arrow table or record batch, or ndarray of shape (n_rows, n_columns)
        The columns of an array are called x0, x1, ...
    """
    if isinstance(data, np.ndarray):
        if data.ndim != 2:
            raise InputError(f"expected 2 dimensions. Got an array of shape {data.shape}.")
        return {f"x{j}": array_column(data[:, j]) for j in range(data.shape[1])}
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    frame = frame_of(data)
    if not isinstance(frame, nw.DataFrame):
        raise InputTypeError(
            f"expected a data frame (pandas, Polars, Arrow) or an array. "
            f"Got {type(data).__name__}."
            + (" Call its collect() first." if hasattr(data, "collect") else "")
        )
    columns = {str(series.name): _series_column(series) for series in frame.iter_columns()}
    if len(columns) < len(frame.columns):
        raise same_names(frame.columns)
    return columns


def frame_of(data: Any) -> Any:
    """Data as a narwhals frame if it is a frame, else unchanged; repeated names are refused."""
    try:
        return nw.from_native(data, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        names = data.column_names if isinstance(data, pa.Table) else data.columns
        raise same_names(names) from error


def same_names(names: Iterable[Any]) -> ValueError:
    """Error for columns that share a name."""
    seen = Counter(map(str, names))
    twice = ", ".join(repr(name) for name, n_times in seen.items() if n_times > 1)
    return InputError(
        f"column names must be distinct, as text. Got {twice} more than once. Rename them."
    )


def array_column(values: np.ndarray) -> Any:
    """Arrow column of an array, or the objects themselves where they have several types.

    Arrow's own conversion is not used with several types: it reads b"x" and "x" as equal.
    """
    if values.dtype.kind == "c":
        values = values.astype(object)  # refused where the column has a name
    if values.dtype.kind in "mM":
        values = _in_unit_of_arrow(values)
    if values.dtype != object:
        is_long = values.dtype.kind == "f" and values.dtype.itemsize > 8  # Arrow has none
        kind = np.dtype(np.float64) if is_long else values.dtype.newbyteorder("=")
        return pa.array(values.astype(kind, copy=False))
    missing = missing_objects(values)
    if missing.all():
        return pa.nulls(len(values))
    try:
        column = _objects_column(values, missing)
    except (OverflowError, TypeError, ValueError, pa.ArrowException):  # beyond 64 bits, say
        column = None
    return values if column is None else column


def _in_unit_of_arrow(times: np.ndarray) -> np.ndarray:
    """NumPy's dates and spans in a unit that Arrow has; of finer ones the whole numbers."""
    unit, _ = np.datetime_data(times.dtype)
    if unit in ("ps", "fs", "as", "generic"):
        return times.astype(object)
    if times.dtype.kind == "M" and unit in ("Y", "M", "W", "D"):
        return times.astype("M8[D]", copy=False)
    unit = unit if unit in ("ms", "us", "ns") else "s"
    return times.astype(f"{times.dtype.kind}8[{unit}]", copy=False)


def _series_column(series: Any) -> Any:
    if not isinstance(series.dtype, (nw.Object, nw.Unknown)):
        column = series.to_arrow()
        # What `pandas.cut` makes is read as objects, one for each interval.
        if not isinstance(value_type(column.type), pa.BaseExtensionType):
            return column
    return array_column(np.asarray(series.to_native(), dtype=object))


def _objects_column(values: np.ndarray, missing: np.ndarray) -> Any:
    """Arrow column of objects of one type, or of whole and other numbers; None for others."""
    present = values[~missing]
    types = set(map(type, present))
    kind = None
    if all(issubclass(one, datetime) for one in types):  # pandas.Timestamp is one
        local = {value.tzinfo is None for value in present}
        if len(local) > 1:  # with and without a time zone: never equal
            return None
        kind = pa.timestamp(_unit(present, "nanosecond"), None if True in local else "UTC")
    elif all(issubclass(one, timedelta) for one in types):
        kind = pa.duration(_unit(present, "nanoseconds"))
    elif types == {Decimal} and any(value.is_infinite() for value in present):
        return _scattered(present.astype(np.float64), missing)  # Arrow's decimals are finite
    elif len(types) > 1:
        floats = _are_floats(types, present)
        return _scattered(present.astype(np.float64), missing) if floats else None
    elif all(issubclass(one, np.generic) and np.dtype(one).kind in "biufmM" for one in types):
        return _scattered(np.array(present.tolist()), missing)
    elif not types <= _PYTHON or (types == {time} and any(v.tzinfo for v in present)):
        return None
    return pa.array(values, kind, mask=missing, from_pandas=False)


def _unit(times: np.ndarray, part: str) -> str:
    """Unit that holds times or spans: microseconds as in Python, or nanoseconds as in pandas."""
    return "ns" if any(getattr(value, part, 0) for value in times) else "us"


def _are_floats(types: set[type], values: np.ndarray) -> bool:
    """Whether floats hold all the numbers: above 2⁵³ neighbouring integers would become equal."""
    return all(one is Decimal or np.dtype(one).kind in "iuf" for one in types) and all(
        isinstance(value, (float, np.floating, Decimal)) or abs(int(value)) <= 2**53
        for value in values
    )


def _scattered(present: np.ndarray, missing: np.ndarray) -> Any:
    """Arrow column with the present values in their rows, null in the others."""
    column = np.zeros(len(missing), dtype=present.dtype)
    column[~missing] = present
    return pa.array(column, mask=missing)


# --- what a column holds ------------------------------------------------------------------------


def column_kind(column: Any) -> str:
    """How a column's values are read, one of `KINDS`, from its type.

    Text, categories and truth values are categories; dates and times are numbers.
    """
    return "category" if isinstance(column, np.ndarray) else type_kind(column.type)


def type_kind(kind: Any) -> str:
    """How values of an Arrow type are read, one of `KINDS`."""
    if pa.types.is_null(kind):
        return "empty"
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_temporal(kind):
        return "number"
    return "category"


def value_type(kind: Any) -> Any:
    """Type of the values, where an Arrow type keeps codes or views of them."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.large_string() if pa.types.is_string_view(kind) else kind  # Polars writes views


def is_plain(kind: Any) -> bool:
    """Whether an Arrow type holds numbers, texts, dates or truth values: not lists and the like."""
    return not (
        pa.types.is_nested(kind)
        or pa.types.is_interval(kind)
        or isinstance(kind, pa.BaseExtensionType)
    )


def holds_numbers(kind: Any) -> bool:
    """Whether an Arrow type holds numbers or truth values."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_boolean(kind)
    )


def missing_objects(column: np.ndarray) -> np.ndarray:
    """Mask of missing objects: None, NaN, NaT and the like."""
    return np.fromiter(map(_is_missing, column), dtype=bool, count=len(column))


def _is_missing(value: Any) -> bool:
    if type(value) is str:  # the most frequent objects by far
        return False
    if value is None:
        return True
    if isinstance(value, (float, np.floating, np.datetime64, np.timedelta64)):
        return bool(value != value)
    if isinstance(value, Decimal):
        return value.is_nan()
    return type(value).__name__ in ("NAType", "NaTType")


def refused(name: Any, given: str) -> TypeError:
    """Error for a column of non-scalar values."""
    return InputTypeError(
        f"column {name!r} holds values that cannot be counted. Got {given}; each "
        "argument must be a string or a number, a date or a truth value. Turn it into columns of "
        "those, or leave it out."
    )


def chunks_of(column: Any) -> list[Any]:
    """The arrays of a column."""
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def one_array(column: Any) -> Any:
    """A chunked array as one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def taken_rows(chunks: Iterable[Any], rows: np.ndarray) -> Any:
    """Some rows of a column, in their order, chunk by chunk: `take` might join the whole column."""
    pieces, start = [], 0
    for chunk in chunks:
        inside = rows[np.searchsorted(rows, start) : np.searchsorted(rows, start + len(chunk))]
        pieces.append(chunk.take(arrow_of(inside - start)))
        start += len(chunk)
    return pa.chunked_array(pieces)


def python_values(values: Any) -> list[Any]:
    """Values as Python objects; a missing one is None."""
    if isinstance(values, np.ndarray):
        return values.tolist()
    try:
        return values.to_pylist()
    except (OverflowError, ValueError) as error:  # Arrow has dates beyond the range of Python's
        raise InputError(
            f"a {values.type} has no date in Python ({error}). Read the column as text."
        ) from error


def is_missing(values: Any) -> np.ndarray:
    """Mask of missing values."""
    if isinstance(values, np.ndarray):
        return np.array([value is None for value in values], dtype=bool)
    return numpy_of(values.is_null()) if values.null_count else np.zeros(len(values), dtype=bool)


def filtered(values: Any, mask: np.ndarray) -> Any:
    """Values where the mask is true."""
    return values[mask] if isinstance(values, np.ndarray) else values.filter(arrow_of(mask))


# `pa.array`, and NumPy of an Arrow array, import pandas where it is: a fifth of a second.


def arrow_of(numbers: np.ndarray, missing: np.ndarray | None = None) -> pa.Array:
    """Numbers or truth values as an Arrow array, null where a mask is true."""
    kind, valid = pa.from_numpy_dtype(numbers.dtype), None
    if missing is not None:
        valid = pa.py_buffer(np.packbits(~missing, bitorder="little"))
    stored = numbers if numbers.dtype != bool else np.packbits(numbers, bitorder="little")
    content = pa.py_buffer(np.ascontiguousarray(stored))
    return pa.Array.from_buffers(kind, len(numbers), [valid, content])


def numpy_of(column: Any) -> np.ndarray:
    """An Arrow column as an array, dates and times as whole numbers.

    Numbers and truth values may be anything where the column is null.
    """
    if isinstance(column, pa.ChunkedArray):
        chunks = [numpy_of(chunk) for chunk in column.chunks]
        return np.concatenate(chunks) if chunks else np.asarray(column)
    if pa.types.is_temporal(column.type) and not pa.types.is_interval(column.type):
        column = column.view(f"int{column.type.bit_width}")
    kind, start, n = column.type, column.offset, len(column)
    if not n or not (pa.types.is_primitive(kind) and holds_numbers(kind)):
        return np.asarray(column)
    content = column.buffers()[1]
    if pa.types.is_boolean(kind):
        return _bits(content, start, n)
    letter = "f" if pa.types.is_floating(kind) else "i" if pa.types.is_signed_integer(kind) else "u"
    dtype = f"{letter}{kind.bit_width // 8}"  # to_pandas_dtype may import pandas
    return np.frombuffer(content, dtype=dtype)[start : start + n]


def _bits(content: Any, start: int, n: int) -> np.ndarray:
    """``n`` of Arrow's truth values from ``start`` on, as bool; Arrow stores a bit for each."""
    first, skipped = divmod(start, 8)
    eights = np.frombuffer(content, dtype=np.uint8)[first:]
    return np.unpackbits(eights, count=skipped + n, bitorder="little")[skipped:].view(bool)


def valid_mask(column: pa.Array) -> np.ndarray:
    """Mask of the rows that are not missing; empty if no row is missing."""
    if not column.null_count:
        return np.zeros(0, dtype=bool)
    return _bits(column.buffers()[0], column.offset, len(column))


def code_counts(codes: np.ndarray, n_codes: int) -> np.ndarray:
    """Rows of each code; counted in blocks, as NumPy copies the codes to eight bytes each."""
    if n_codes <= 4:
        return np.array([np.count_nonzero(codes == code) for code in range(n_codes)])
    total = np.zeros(n_codes, dtype=np.int64)
    step = max(1 << 20, n_codes)
    for start in range(0, len(codes), step):
        total += np.bincount(codes[start : start + step], minlength=n_codes)
    return total
