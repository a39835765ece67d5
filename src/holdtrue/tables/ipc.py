"""How much the buffers of an Arrow file or stream unpack to, read without unpacking them.

Arrow allocates what a compressed buffer says that it unpacks to. pyarrow does not tell it before,
so the few fields that do are read from the messages here (flatbuffers; Message.fbs and File.fbs of
Arrow's format).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from holdtrue.sums.packing import flatbuffer_field

_CONTINUES = b"\xff\xff\xff\xff"
_MAX_METADATA = 1 << 28
_BATCH, _DICTIONARY = 3, 2  # of MessageHeader


def unpacked_bytes(path: Path, *, is_stream: bool) -> int:
    """Bytes that all batches and dictionaries unpack to; 0 where nothing is compressed.

    Raises ValueError or struct.error where the file is damaged.
    """
    with path.open("rb") as file:
        if is_stream:
            return sum(_messages(file))
        file.seek(-10, 2)
        length = struct.unpack("<i", file.read(4))[0]
        file.seek(-10 - length, 2)
        footer = file.read(length)
        total = 0
        for number in (2, 3):  # dictionaries, recordBatches: offset, metaDataLength, bodyLength
            for place, _, _ in _structs(footer, _child(footer, 0), number, "<qi4xq"):
                file.seek(place)
                total += next(_messages(file), 0)
        return total


def _messages(file: BinaryIO) -> Iterator[int]:
    """Bytes that each message from here on unpacks to."""
    while True:
        start = file.read(4)
        if start == _CONTINUES:
            start = file.read(4)
        length = struct.unpack("<i", start)[0] if len(start) == 4 else 0
        if not 0 < length < _MAX_METADATA:
            return
        head = file.read(length)
        body, message = file.tell(), _child(head, 0)
        kind = _number(head, message, 1, "<B")
        n_unpacked = 0
        if kind in (_BATCH, _DICTIONARY):
            batch = _child(head, flatbuffer_field(head, message, 2))
            if kind == _DICTIONARY:
                batch = _child(head, flatbuffer_field(head, batch, 1))
            is_packed = flatbuffer_field(head, batch, 3) > 0
            for offset, n_bytes in _structs(head, batch, 2, "<qq"):
                if is_packed and n_bytes >= 8:
                    file.seek(body + offset)
                    # -1: kept as it is
                    n_unpacked += max(0, struct.unpack("<q", file.read(8))[0])
        yield n_unpacked
        # Never back, so that it ends.
        file.seek(body + max(0, _number(head, message, 3, "<q")))


def _number(buffer: bytes, table: int, number: int, layout: str) -> int:
    """A number in a table of a flatbuffer; 0 where the table lacks it."""
    place = flatbuffer_field(buffer, table, number)
    return int(struct.unpack_from(layout, buffer, place)[0]) if place else 0


def _child(buffer: bytes, place: int) -> int:
    """Where the table or vector begins that a place of a flatbuffer points to."""
    return place + int(struct.unpack_from("<I", buffer, place)[0])


def _structs(buffer: bytes, table: int, number: int, layout: str) -> Iterator[tuple[Any, ...]]:
    """Items of a vector of structs in a table of a flatbuffer."""
    place = flatbuffer_field(buffer, table, number)
    if place:
        place = _child(buffer, place)
        for i in range(struct.unpack_from("<I", buffer, place)[0]):
            yield struct.unpack_from(layout, buffer, place + 4 + i * struct.calcsize(layout))
