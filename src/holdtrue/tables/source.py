"""Where the columns of a table come from: a frame in memory, or batches kept outside memory."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from holdtrue.columns.values import columns_of, is_plain, missing_objects, one_array, refused
from holdtrue.errors import InputError

WIDE = 256  # columns of a part from which it stays open
# Bytes that are kept in memory before a file is made, and of Arrow data before a part is written.
IN_MEMORY = 1 << 24
_PART = 1 << 25
# A dictionary that takes more bytes per row than this was given up by the writer: hash once.
_MAX_DICTIONARY_BYTES = 4.0
# Share of the free space that a table may take, where HOLDTRUE_MAX_SPILL does not say how much.
_FREE_SHARE = 0.5
LIMIT_VARIABLE = "HOLDTRUE_MAX_SPILL"


class Source(Protocol):
    """Columns of a file or a frame, by name."""

    types: dict[str, Any]
    n_rows: int

    def column(self, name: str) -> Any:
        """The whole column."""

    def batches(self, kinds: dict[str, Any], rows: int) -> Iterator[pa.RecordBatch]:
        """Batches of at most ``rows`` rows, of these columns in these types."""


# Name of a table, and where in it a row is, counted from 0; for errors
Place = Callable[[int], tuple[str, str]]


def batch_of(columns: list[Any], kinds: Mapping[str, Any]) -> pa.RecordBatch:
    """Columns as a batch with these names and types."""
    arrays = [
        one_array(
            widened(as_text(name, column) if isinstance(column, np.ndarray) else column, kind)
        )
        for column, (name, kind) in zip(columns, kinds.items(), strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(list(kinds.items())))


def widened(column: Any, kind: Any) -> Any:
    """A column in a type that holds its values; whole numbers become the nearest float."""
    stored = column.type
    if pa.types.is_dictionary(stored) and pa.types.is_string_view(stored.value_type):
        column = column.cast(pa.dictionary(stored.index_type, pa.large_string()))
    return column if column.type == kind else column.cast(kind, safe=False)


def as_text(name: str, column: np.ndarray) -> Any:
    """Objects of several types as text; lists and the like are refused."""
    for value in column:
        try:
            hash(value)
        except TypeError as error:
            raise refused(name, type(value).__name__) from error
    missing = missing_objects(column)
    pairs = zip(column, missing, strict=True)
    return pa.array([None if gone else str(value) for value, gone in pairs], pa.string())


class Frame:
    """A `Source`: columns of a frame that is in memory."""

    def __init__(self, data: Any):
        self._columns = columns_of(data)
        self.types = {
            name: pa.string() if isinstance(column, np.ndarray) else column.type
            for name, column in self._columns.items()
        }
        self.n_rows = len(next(iter(self._columns.values()), ()))
        if not self.n_rows:
            raise InputError(f"the table has {len(self.types)} columns and no rows.")

    def column(self, name: str) -> Any:
        """The whole column."""
        return self._columns[name]

    def batches(self, kinds: dict[str, Any], rows: int) -> Iterator[pa.RecordBatch]:
        """Batches of at most ``rows`` rows, of these columns in these types."""
        for start in range(0, self.n_rows, rows):
            yield batch_of([self._columns[name][start : start + rows] for name in kinds], kinds)


@dataclass
class _Part:
    """A Parquet file."""

    content: pa.Buffer | None  # None once it is in the file of the spill, at ``offset``
    length: int
    n_rows: int
    places: dict[str, str]  # what its columns are called in the file: "0", "1", ...
    dictionaries: list[str]  # columns that the file itself keeps as codes, a few bytes a row
    offset: int = 0


class Spill:
    """A `Source` of batches that were appended, whose types may widen from one to the next.

    Parts are Parquet files inside one temporary file. Arrow reads them from memory of its own or
    from a memory map, never through a Python file: its threads would need the interpreter, which
    may be gone by the time they let go of what they read.

    The file has no name where the system allows it, and else is removed as it is closed: nothing
    stays behind, however the program ends. It lies where `tempfile` puts files ($TMPDIR).
    """

    def __init__(self) -> None:
        self._file: Any = None
        self._path = ""
        self._parts: list[_Part] = []
        self._n_spilled = 0
        self._limit = 0.0
        # Opening a part of thousands of columns takes its time: once, not once a column. Open files
        # take memory, so those of few columns are not kept.
        self._opened: dict[tuple[int, bool], Any] = {}
        self._waiting: list[pa.RecordBatch] = []
        self._n_bytes = 0
        self.n_rows = 0
        self.types: dict[str, Any] = {}

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

    def finish(self, types: dict[str, Any]) -> Spill:
        """The source, after the last batch; the types hold the values of all batches."""
        self._flush()
        pa.default_memory_pool().release_unused()
        self.types = types
        return self

    def _flush(self) -> None:
        import pyarrow.parquet as pq

        if not self._waiting:
            return
        table = pa.Table.from_batches(self._waiting)
        n_rows = sum(batch.num_rows for batch in self._waiting)
        places = {name: str(j) for j, name in enumerate(table.column_names)}
        self._waiting, self._n_bytes = [], 0
        if not places:  # a file without columns would have no rows
            table = pa.table({"": pa.nulls(n_rows)})
        table = table.rename_columns([str(j) for j in range(table.num_columns)])
        texts = [field.name for field in table.schema if pa.types.is_string(field.type)]
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="lz4", use_dictionary=texts, write_statistics=False)
        content = sink.getvalue()
        metadata = pq.read_metadata(pa.BufferReader(content))
        short = [name for name in texts if _is_short(metadata, int(name))]
        self._parts.append(_Part(content, len(content), n_rows, places, short))
        if sum(part.length for part in self._parts if part.content) > IN_MEMORY:
            self._write_parts()

    def _write_parts(self) -> None:
        """Move the parts in memory to the file."""
        if self._file is None:
            self._file, self._path = _temporary_file()
            weakref.finalize(self, self._file.close)
            self._limit = spill_limit()
        for part in self._parts:
            if part.content is None:
                continue
            if self._n_spilled + part.length > self._limit:
                raise InputError(
                    f"the table takes more than {self._limit / 1e9:.3g} GB in "
                    f"{tempfile.gettempdir()}, as much as is allowed. If it is meant to be that "
                    f"large, set TMPDIR to a folder with more room, or {LIMIT_VARIABLE} to the "
                    "bytes that it may take."
                )
            part.offset = self._n_spilled
            self._file.write(part.content)
            self._n_spilled += part.length
            part.content = None

    def column(self, name: str) -> pa.ChunkedArray:
        """A column in its type; text with few distinct values as a dictionary."""
        kind = self.types[name]
        parts = [part for part in self._parts if name in part.places]
        encoded = all(part.places[name] in part.dictionaries for part in parts) and bool(parts)
        wanted = pa.dictionary(pa.int32(), kind) if encoded and pa.types.is_string(kind) else kind
        chunks: list[pa.Array] = []
        for part in self._parts:
            if name in part.places:
                file = self._open(part, encoded=wanted != kind)
                stored = file.read([part.places[name]], use_threads=False).column(0)
                chunks += widened(stored, wanted).chunks
            else:
                chunks.append(pa.nulls(part.n_rows, wanted))
        return pa.chunked_array(chunks, type=wanted)

    def batches(self, kinds: dict[str, pa.DataType], rows: int) -> Iterator[pa.RecordBatch]:
        """Batches of at most ``rows`` rows, of these columns in these types."""
        for part in self._parts:
            file, places = self._open(part, encoded=False), part.places
            stored = [places[name] for name in kinds if name in places]
            for batch in file.iter_batches(rows, columns=stored, use_threads=False):
                columns = [
                    batch.column(places[name]) if name in places else pa.nulls(batch.num_rows)
                    for name in kinds
                ]
                yield batch_of(columns, kinds)

    def _open(self, part: _Part, *, encoded: bool) -> Any:
        """The file of a part, with its short dictionaries as such where that is asked for."""
        import pyarrow.parquet as pq

        key = id(part), encoded
        if key in self._opened:
            return self._opened[key]
        content = part.content
        if content is None:
            mapped = pa.memory_map(self._path)
            mapped.seek(part.offset)
            content = mapped.read_buffer(part.length)
        dictionaries = part.dictionaries if encoded else None
        opened = pq.ParquetFile(pa.BufferReader(content), read_dictionary=dictionaries)
        if len(part.places) > WIDE:
            self._opened[key] = opened
        return opened


def spill_limit() -> float:
    """Bytes that a table may take in the folder of temporary files."""
    given = os.environ.get(LIMIT_VARIABLE)
    if given is None:
        return _FREE_SHARE * shutil.disk_usage(tempfile.gettempdir()).free
    try:
        return float(given)
    except ValueError as error:
        raise InputError(f"{LIMIT_VARIABLE} must be a number of bytes. Got {given!r}.") from error


def _temporary_file() -> tuple[Any, str]:
    """A file that vanishes when it is closed, and a path by which Arrow can open it."""
    for folder in ("/proc/self/fd", "/dev/fd"):
        if Path(folder).is_dir():
            file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
            return file, f"{folder}/{file.fileno()}"
    named = tempfile.NamedTemporaryFile(buffering=0)  # noqa: SIM115
    return named, named.name


def _is_short(metadata: Any, j: int) -> bool:
    """Whether a Parquet file itself keeps column j as codes, a few bytes a row."""
    chunks = [metadata.row_group(g).column(j) for g in range(metadata.num_row_groups)]
    n_bytes = sum(chunk.total_uncompressed_size for chunk in chunks)
    n_rows = sum(chunk.num_values for chunk in chunks)
    has_codes = all(chunk.has_dictionary_page for chunk in chunks)
    return has_codes and n_bytes <= _MAX_DICTIONARY_BYTES * n_rows
