"""Batches kept outside memory, to be read again column by column or batch by batch."""

from __future__ import annotations

import io
import tempfile
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from holdtrue.values import is_plain

if TYPE_CHECKING:
    import pyarrow as pa

# Bytes that are kept in memory before a file is made, and of Arrow data before a part is written.
WIDE = 256  # columns of a part from which it stays open
IN_MEMORY = 1 << 24
_PART = 1 << 25
# A dictionary that takes more bytes per row than this was given up by the writer: hash once.
_MAX_DICTIONARY_BYTES = 4.0


class _Part(NamedTuple):
    """A Parquet file inside the file of a spill; its columns are called "0", "1", ..."""

    offset: int
    length: int
    n_rows: int
    places: dict[str, int]
    dictionaries: frozenset[str]


class Spill:
    """Batches of a table, whose types may widen from one to the next.

    The file has no name where the system allows it, and else is removed as it is closed: nothing
    stays behind, however the program ends. It lies where `tempfile` puts files ($TMPDIR).
    """

    def __init__(self) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._parts: list[_Part] = []
        # Opening a part of thousands of columns takes its time: once, not once a column. Open files
        # take memory, so those of few columns are not kept.
        self._opened: dict[tuple[int, bool], Any] = {}
        self._waiting: list[pa.RecordBatch] = []
        self._n_bytes = 0
        self.n_rows = 0

    def append(self, batch: pa.RecordBatch) -> None:
        """Keep the columns of a batch that hold plain values."""
        self.n_rows += batch.num_rows
        batch = batch.select([field.name for field in batch.schema if is_plain(field.type)])
        if self._waiting and batch.schema != self._waiting[0].schema:
            self._flush()
        self._waiting.append(batch)
        self._n_bytes += batch.nbytes
        if self._n_bytes >= _PART:
            self._flush()

    def finish(self) -> None:
        """Write what still waits; to be called after the last batch."""
        import pyarrow as pa

        self._flush()
        pa.default_memory_pool().release_unused()

    def _flush(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting)
        n_rows = sum(batch.num_rows for batch in self._waiting)  # even if it has no columns
        places = {name: j for j, name in enumerate(table.column_names)}
        self._waiting, self._n_bytes = [], 0
        sink = pa.BufferOutputStream()
        texts = [str(j) for j, kind in enumerate(table.schema.types) if pa.types.is_string(kind)]
        pq.write_table(
            table.rename_columns([str(j) for j in range(table.num_columns)]),
            sink,
            compression="lz4",
            use_dictionary=texts,
            write_statistics=False,
        )
        content = sink.getvalue()
        metadata = pq.read_metadata(pa.BufferReader(content))
        offset = self._file.seek(0, io.SEEK_END)
        self._file.write(content)
        dictionaries = frozenset(short_dictionaries(metadata))
        self._parts.append(_Part(offset, len(content), n_rows, places, dictionaries))

    def column(self, name: str, kind: pa.DataType) -> pa.ChunkedArray:
        """A column in the given type; texts of which few differ as a dictionary."""
        import pyarrow as pa

        parts = [part for part in self._parts if name in part.places]
        encoded = pa.types.is_string(kind) and all(
            str(part.places[name]) in part.dictionaries for part in parts
        )
        wanted = pa.dictionary(pa.int32(), kind) if encoded and parts else kind
        chunks: list[pa.Array] = []
        for part in self._parts:
            if name not in part.places:
                chunks.append(pa.nulls(part.n_rows, wanted))
                continue
            place = str(part.places[name])
            file = self._open(part, encoded=encoded)
            chunks += widened(file.read([place], use_threads=False).column(0), wanted).chunks
        return pa.chunked_array(chunks, type=wanted)

    def batches(self, kinds: dict[str, pa.DataType], rows: int) -> Iterator[pa.RecordBatch]:
        """Batches of at most so many rows, of these columns in these types."""
        import pyarrow as pa

        for part in self._parts:
            stored = [str(part.places[name]) for name in kinds if name in part.places]
            if not stored:
                whole = pa.table(
                    {name: pa.nulls(part.n_rows, kind) for name, kind in kinds.items()}
                )
                yield from whole.to_batches(rows)
                continue
            for batch in self._open(part, encoded=False).iter_batches(
                rows, columns=stored, use_threads=False
            ):
                columns = [
                    widened(
                        batch.column(batch.schema.get_field_index(str(part.places[name]))), kind
                    )
                    if name in part.places
                    else pa.nulls(batch.num_rows, kind)
                    for name, kind in kinds.items()
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(kinds.items())))

    def _open(self, part: _Part, *, encoded: bool) -> Any:
        """The file of a part, with its short dictionaries as such where that is asked for."""
        import pyarrow.parquet as pq

        key = part.offset, encoded
        if key in self._opened:
            return self._opened[key]
        region = _Region(self._file, part.offset, part.length)
        short = sorted(part.dictionaries) if encoded else []
        opened = pq.ParquetFile(region, read_dictionary=short)
        if len(part.places) > WIDE:
            self._opened[key] = opened
        return opened


class _Region(io.RawIOBase):
    """A stretch of a file as a file of its own."""

    def __init__(self, file: Any, offset: int, length: int):
        self._file, self._offset, self._length, self._at = file, offset, length, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._length}[whence]
        self._at = start + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        n_bytes = min(len(buffer), max(self._length - self._at, 0))
        self._file.seek(self._offset + self._at)
        content = self._file.read(n_bytes)
        buffer[: len(content)] = content
        self._at += len(content)
        return len(content)


def widened(column: Any, kind: Any) -> Any:
    """A column in a type that holds its values; whole numbers become the nearest float."""
    if column.type == kind:
        return column
    return column.cast(kind, safe=False)


def short_dictionaries(metadata: Any) -> list[str]:
    """Names of the columns that a Parquet file itself keeps as codes, a few bytes a row."""
    names = []
    for j in range(metadata.num_columns):
        chunks = [metadata.row_group(g).column(j) for g in range(metadata.num_row_groups)]
        n_bytes = sum(chunk.total_uncompressed_size for chunk in chunks)
        n_rows = sum(chunk.num_values for chunk in chunks)
        if n_bytes <= _MAX_DICTIONARY_BYTES * n_rows and all(
            chunk.has_dictionary_page for chunk in chunks
        ):
            names.append(metadata.schema.column(j).path)
    return names
