"""Sums as bytes: arrays in Arrow's IPC format, and a head in JSON. Nothing is pickled.

The head is metadata of the Arrow schema; every array is one cell of a table with a single row, so
that arrays may differ in length. Bytes from an unknown sender give the right sums or a
`ValueError`; they run no code.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from holdtrue.errors import InputError

_HEAD = b"holdtrue"


def pack(kind: str, head: dict[str, Any], arrays: dict[str, Any]) -> bytes:
    """Bytes of some arrays.

    Parameters
    ----------
    kind : str
        Name of the class, which `unpack` compares.
    head : dict
        Whatever JSON holds.
    arrays : dict of ndarray of numbers, or one-dimensional pyarrow.Array
    """
    shapes = {name: list(array.shape) for name, array in arrays.items() if _is_numpy(array)}
    head = {"kind": kind, "version": 1, "shapes": shapes, **head, "checksum": _checksum(arrays)}
    text = json.dumps(head, allow_nan=False)
    columns = []
    for array in arrays.values():
        flat = pa.array(np.ascontiguousarray(array).ravel()) if _is_numpy(array) else array
        columns.append(pa.LargeListArray.from_arrays(pa.array([0, len(flat)], pa.int64()), flat))
    fields = [pa.field(name, column.type) for name, column in zip(arrays, columns, strict=True)]
    schema = pa.schema(fields, metadata={_HEAD: text.encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch(columns, schema=schema))
    return sink.getvalue().to_pybytes()


def unpack(kind: str, data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Head and arrays that `pack` wrote; other bytes are refused with a `ValueError`."""
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise InputError(f"expected bytes. Got {type(data).__name__}.")
    with refuses_damaged(kind):
        _check_messages(kind, data)
        with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
            head = json.loads((reader.schema.metadata or {})[_HEAD])
            if head["kind"] != kind or head["version"] != 1:
                raise InputError(
                    f"these are bytes of {head['kind']!r}, version {head['version']!r}. "
                    f"This holdtrue reads version 1 of {kind}."
                )
            batch = reader.read_next_batch()
        for column in batch.columns:  # some types have rows without bytes, or hold such a type
            if len(column.values) > 8 * len(data) or pa.types.is_nested(column.type.value_type):
                raise damaged(kind)
        batch.validate(full=True)
        arrays = {}
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            values = column[0].values
            arrays[name] = values
            if name in head["shapes"]:
                numbers = values.to_numpy(zero_copy_only=False)
                arrays[name] = numbers.reshape([int(size) for size in head["shapes"][name]])
        if head.get("checksum", checksum := _checksum(arrays)) != checksum:
            raise damaged(kind)
        return head, arrays


def _checksum(arrays: dict[str, Any]) -> int:
    """CRC-32 of the numbers, by which a file that was damaged on its way is told."""
    checksum = 0
    for array in arrays.values():
        if _is_numpy(array):
            numbers = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            checksum = zlib.crc32(numbers.data, checksum)
    return checksum


@contextmanager
def refuses_damaged(kind: str) -> Iterator[None]:
    """Turn any error that bytes of an unknown sender may raise into `damaged`, but for ours."""
    try:
        yield
    except InputError:
        raise
    except (
        pa.ArrowException, AttributeError, IndexError, KeyError, MemoryError, OSError,
        OverflowError, RecursionError, StopIteration, TypeError, ValueError, struct.error,
    ) as error:  # fmt: skip
        raise damaged(kind) from error


def _check_messages(kind: str, data: bytes) -> None:
    """Refuse all but a schema and one batch that is not compressed.

    A few bytes may stand for gigabytes, which Arrow would allocate before anything can be checked.
    """
    messages = list(pa.ipc.MessageReader.open_stream(pa.py_buffer(data)))
    if [message.type for message in messages] != ["schema", "record batch"]:
        raise damaged(kind)
    # A message is a flatbuffer: its table has the batch as field 2, whose field 3 is compression.
    head = messages[1].metadata.to_pybytes()
    (table,) = struct.unpack_from("<I", head, 0)
    batch = flatbuffer_field(head, table, 2)
    (offset,) = struct.unpack_from("<I", head, batch)
    if flatbuffer_field(head, batch + offset, 3):
        raise damaged(kind)


def flatbuffer_field(head: bytes, table: int, number: int) -> int:
    """Where a field of a table of a flatbuffer lies; 0 where the table lacks it."""
    fields = table - struct.unpack_from("<i", head, table)[0]
    (n_bytes,) = struct.unpack_from("<H", head, fields)
    place = 4 + 2 * number
    offset = struct.unpack_from("<H", head, fields + place)[0] if place < n_bytes else 0
    return table + int(offset) if offset else 0


def damaged(kind: str) -> InputError:
    """Error for bytes that do not hold what they should."""
    return InputError(
        f"the bytes are damaged, or not written by {kind}.to_bytes. Write them again."
    )


# --- labels and values of any type as JSON ------------------------------------------------------

# How values of each type are written and read; the first type that fits counts (True is an int).
_TYPES: dict[type, tuple[Any, Any]] = {
    bool: (bool, bool),
    int: (str, int),  # JSON readers round large numbers
    float: (float.hex, float.fromhex),
    str: (str, str),
    bytes: (
        lambda value: base64.b64encode(value).decode(),
        partial(base64.b64decode, validate=True),
    ),
    Decimal: (str, Decimal),
    datetime: (datetime.isoformat, datetime.fromisoformat),
    date: (date.isoformat, date.fromisoformat),
    time: (time.isoformat, time.fromisoformat),
    timedelta: (
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda parts: timedelta(*parts),
    ),
}
_READERS = {kind.__name__: read for kind, (_, read) in _TYPES.items()}


def labels_to_json(labels: Any) -> list[Any]:
    """Python values with their types, ready for JSON; None stays None."""
    return [None if label is None else _label_to_json(label) for label in labels]


def _label_to_json(label: Any) -> list[Any]:
    kind = next((kind for kind in _TYPES if isinstance(label, kind)), None)
    if kind is None or getattr(label, "nanosecond", None):
        raise InputError(f"a value of type {type(label).__name__} cannot be written as bytes.")
    return [kind.__name__, _TYPES[kind][0](label)]


def labels_from_json(record: Any) -> list[Any]:
    """Python values that `labels_to_json` wrote; anything else is refused with a `ValueError`."""
    try:
        return [None if item is None else _READERS[item[0]](item[1]) for item in record]
    except (InvalidOperation, KeyError, IndexError, OverflowError, TypeError, ValueError) as error:
        raise InputError("the bytes are damaged: a label cannot be read.") from error


def _is_numpy(array: Any) -> bool:
    return isinstance(array, np.ndarray)
