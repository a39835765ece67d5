"""How much the buffers of an Arrow file or stream unpack to, read without unpacking them.

Arrow allocates what a compressed buffer says that it unpacks to. pyarrow does not tell it before,
so the few fields that do are read from the messages here (flatbuffers; Message.fbs and File.fbs of
Arrow's format).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_CONTINUES = b"\xff\xff\xff\xff"
_MAX_METADATA = 1 << 28
_BATCH, _DICTIONARY = 3, 2  # of MessageHeader


class _Fields:
    """A table of a flatbuffer: fields by their number."""

    def __init__(self, buffer: bytes, place: int | None = None):
        self._buffer = buffer
        self._place = self._at("<I", 0)[0] if place is None else place

    def _at(self, layout: str, place: int) -> tuple[int, ...]:
        return struct.unpack_from(layout, self._buffer, place)

    def _field(self, number: int) -> int | None:
        table = self._place - self._at("<i", self._place)[0]
        if 4 + 2 * number >= self._at("<H", table)[0]:
            return None
        offset = self._at("<H", table + 4 + 2 * number)[0]
        return self._place + offset if offset else None

    def number(self, number: int, layout: str) -> int:
        place = self._field(number)
        return 0 if place is None else self._at(layout, place)[0]

    def child(self, number: int) -> _Fields | None:
        place = self._field(number)
        return None if place is None else _Fields(self._buffer, place + self._at("<I", place)[0])

    def structs(self, number: int, layout: str) -> Iterator[tuple[int, ...]]:
        place = self._field(number)
        if place is None:
            return
        place += self._at("<I", place)[0]
        for i in range(self._at("<I", place)[0]):
            yield self._at(layout, place + 4 + i * struct.calcsize(layout))


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
        footer = _Fields(file.read(length))
        total = 0
        for number in (2, 3):  # dictionaries, recordBatches: offset, metaDataLength, bodyLength
            for place, _, _ in footer.structs(number, "<qi4xq"):
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
        message = _Fields(file.read(length))
        body = file.tell()
        batch = message.child(2)
        if batch is not None and message.number(1, "<B") == _DICTIONARY:
            batch = batch.child(1)
        n_unpacked = 0
        if batch is not None and message.number(1, "<B") in (_BATCH, _DICTIONARY):
            is_packed = batch.child(3) is not None
            for offset, n_bytes in batch.structs(2, "<qq"):
                if is_packed and n_bytes >= 8:
                    file.seek(body + offset)
                    # -1: kept as it is
                    n_unpacked += max(0, struct.unpack("<q", file.read(8))[0])
        yield n_unpacked
        file.seek(body + message.number(3, "<q"))
