"""Files that hold columns: Parquet, folders of it, and Arrow's own format."""

from __future__ import annotations

import contextlib
import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import unquote

import pyarrow as pa

from holdtrue.columns.values import value_type
from holdtrue.errors import InputError, first_line
from holdtrue.sums.packing import flatbuffer_field
from holdtrue.tables import text_types
from holdtrue.tables.files import check_same_columns, check_unpacked
from holdtrue.tables.source import batch_of, widened

# What Arrow raises at damaged files.
_ERRORS = (OSError, ValueError, MemoryError, NotImplementedError, TypeError, LookupError)
_FEW_ROWS = 1024
_BUFFER = 2**20  # bytes of a column read at a time; by default Arrow reads all of them at once
_MAX_DICTIONARY = 2**20  # bytes; writers give up larger dictionaries
_MAX_BYTES_A_ROW = 2  # of a dictionary; the codes take about as many
_PANDAS_INDEX = re.compile("__index_level_[0-9]+__")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_UNPACK = "Write it again without compression"


class _ParquetFile(NamedTuple):
    """One Parquet file of a table."""

    path: Path
    footer: Any
    folder: dict[str, pa.Scalar]  # columns that the names of its folders give

    @property
    def n_rows(self) -> int:
        return int(self.footer.metadata.num_rows)

    def open(self, dictionaries: list[str] | None = None) -> Any:
        """The file, these columns of it as dictionaries."""
        import pyarrow.parquet as pq

        return pq.ParquetFile(
            self.path, read_dictionary=dictionaries, pre_buffer=False, buffer_size=_BUFFER
        )

    def check_rows(self, n_rows: int) -> None:
        """Refuse pages with more or fewer rows than the footer says."""
        if n_rows != self.n_rows:
            raise ValueError(f"{n_rows:,} rows instead of {self.n_rows:,}")

    def damage(self, names: Iterable[str], error: Exception) -> InputError:
        """The error about the first row group that cannot be read."""
        file = self.open()
        for group in range(file.num_row_groups):
            for name in names:
                try:
                    file.read_row_group(group, [name], use_threads=False)
                except _ERRORS as reason:
                    where = f"row group {group} (of {file.num_row_groups}, from 0) of"
                    return _damaged(
                        f"{where} {self.path.name} cannot be read in column {name!r}", reason
                    )
        return InputError(f"{self.path.name} cannot be read ({first_line(error)}).")


class ParquetFiles:
    """Parquet files of one table: a file, or those in a folder, by default all of them.

    Folders called ``year=2024`` are a column.
    """

    def __init__(self, root: Path, paths: list[Path] | None = None):
        paths = paths or ([root] if root.is_file() else _parquet_paths(root))
        footers, folders = [_footer(path) for path in paths], _folder_values(root, paths)
        self._files = list(map(_ParquetFile, paths, footers, folders))
        self.types = _common_types(paths, [footer.schema_arrow for footer in footers])
        self.types |= {name: value.type for name, value in folders[0].items()}
        self.n_rows = sum(file.n_rows for file in self._files)

    def column(self, name: str) -> pa.ChunkedArray:
        """A column in its type; text with few distinct values as a dictionary."""
        chunks: list[pa.Array] = []
        kind = self.types[name]
        encoded = pa.types.is_string(kind) and self._is_short(name)
        for file in self._files:
            if name in file.folder:
                chunks.append(pa.repeat(file.folder[name], file.n_rows))
                continue
            try:
                opened = file.open([name] if encoded else None)
                column = opened.read([name], use_threads=False).column(name)
                file.check_rows(len(column))
            except _ERRORS as error:
                raise file.damage([name], error) from error
            chunks += (column if encoded else widened(column, kind)).chunks
        return pa.chunked_array(chunks, type=None if chunks else kind)

    def _is_short(self, name: str) -> bool:
        """Whether the file itself keeps a column as codes, a few bytes a row.

        Judged by its first rows: their dictionary is that of the whole row group. The footer says
        it too, but pyarrow ends the process where the footer is damaged.
        """
        file = self._files[0]
        if name in file.folder or not file.n_rows:
            return False
        try:
            first = next(file.open([name]).iter_batches(_FEW_ROWS, columns=[name]))
            n_bytes = first.column(0).dictionary.nbytes
        except (*_ERRORS, StopIteration) as error:
            raise file.damage([name], error) from error
        n_rows = file.n_rows / file.footer.num_row_groups
        return bool(n_bytes < min(_MAX_DICTIONARY, _MAX_BYTES_A_ROW * n_rows))

    def batches(self, kinds: dict[str, Any], rows: int) -> Iterator[pa.RecordBatch]:
        """Batches of at most ``rows`` rows, of these columns in these types."""
        for file in self._files:
            n_rows = 0
            stored = [name for name in kinds if name not in file.folder]
            try:
                for batch in file.open().iter_batches(rows, columns=stored, use_threads=False):
                    n_rows += batch.num_rows
                    columns = [
                        pa.repeat(file.folder[name], batch.num_rows)
                        if name in file.folder
                        else batch.column(name)
                        for name in kinds
                    ]
                    yield batch_of(columns, kinds)
                file.check_rows(n_rows)
            except _ERRORS as error:
                raise file.damage(stored, error) from error


def _footer(path: Path) -> Any:
    """The opened file, whose footer is whole and does not unpack to too much."""
    import pyarrow.parquet as pq

    try:
        footer = pq.ParquetFile(path)
        # What the pages unpack to, and what a column of them takes as numbers.
        groups = [footer.metadata.row_group(i) for i in range(footer.num_row_groups)]
        n_unpacked = sum(max(0, group.total_byte_size) for group in groups)
        widest = max(map(_width, footer.schema_arrow.types), default=1)
    except _ERRORS as error:
        raise _damaged(f"{path.name} cannot be read as Parquet", error) from error
    n_unpacked = max(n_unpacked, widest * footer.metadata.num_rows)
    check_unpacked(path.name, n_unpacked, path.stat().st_size, _UNPACK)
    return footer


def _width(kind: Any) -> int:
    """Least bytes of a value."""
    try:
        return max(1, kind.bit_width // 8)
    except ValueError:  # texts and lists
        return 1


def _folder_values(root: Path, paths: list[Path]) -> list[dict[str, pa.Scalar]]:
    """Values by column that the names of each file's folders give."""
    texts = []
    for path in paths:
        pairs = [part.split("=", 1) for part in path.relative_to(root).parts[:-1] if "=" in part]
        texts.append({unquote(key): unquote(value) for key, value in pairs})
    names = {tuple(values) for values in texts}
    if len(names) > 1:
        raise InputError(
            f"the folders of {root.name} must name the same columns, as in year=2024. Got "
            f"{sorted(names)}."
        )
    columns = {}
    for name in texts[0]:
        written = [None if text[name] == _NO_VALUE else text[name] for text in texts]
        column = pa.array(written, pa.string())
        columns[name] = text_types.converted(column, text_types.classified(column))
    return [{name: columns[name][i] for name in columns} for i in range(len(texts))]


def _parquet_paths(root: Path) -> list[Path]:
    hidden = ("_", ".")
    paths = [
        path
        for path in sorted(root.rglob("*"))
        if path.suffix in (".parquet", ".parq", ".pq")
        and path.is_file()
        and not any(part.startswith(hidden) for part in path.relative_to(root).parts)
    ]
    if not paths:
        raise InputError(
            f"the folder {root.name!r} holds no Parquet files. Pass one that does, a single file, "
            f"or a pattern such as '{root.name}/*.csv'."
        )
    return paths


# --- Arrow's own format -------------------------------------------------------------------------


class ArrowFiles:
    """Feather (Arrow IPC) files or streams of one table, whose columns are read one at a time."""

    def __init__(self, paths: list[Path], *, is_stream: bool):
        self._files = [_ArrowFile(path, is_stream) for path in paths]
        self.n_rows = sum(file.n_rows for file in self._files)
        types = _common_types(paths, [file.schema for file in self._files])
        self.types = {name: value_type(kind) for name, kind in types.items()}

    def column(self, name: str) -> pa.ChunkedArray:
        """A column as it is stored."""
        chunks = [batch.column(0) for file in self._files for batch in file.batches([name])]
        if len({chunk.type for chunk in chunks}) > 1:
            chunks = [widened(chunk, self.types[name]) for chunk in chunks]
        return pa.chunked_array(chunks)

    def batches(self, kinds: dict[str, Any], rows: int) -> Iterator[pa.RecordBatch]:
        """Batches of at most ``rows`` rows, of these columns in these types."""
        for file in self._files:
            for batch in file.batches(list(kinds)):
                whole = batch_of([batch.column(name) for name in kinds], kinds)
                for start in range(0, whole.num_rows, rows):
                    yield whole.slice(start, rows)


class _ArrowFile:
    """One Feather file, or stream, that has been gone through once."""

    def __init__(self, path: Path, is_stream: bool):
        self.path, self._is_stream = path, is_stream
        self._n_batches = self.n_rows = 0
        _check_buffers(path, is_stream=is_stream)
        try:
            self.schema = self._open(None).schema
            for batch in self._stored([0] if self.schema.names else None):
                self._n_batches += 1
                self.n_rows += batch.num_rows
        except _ERRORS as error:
            kind = f"stream after {self.n_rows:,} rows" if is_stream else "file"
            raise _damaged(f"{path.name} cannot be read as an Arrow {kind}", error) from error

    def _open(self, places: list[int] | None) -> Any:
        # Not a memory map: a file that is cut off while it is mapped ends the process.
        source, options = pa.OSFile(str(self.path)), pa.ipc.IpcReadOptions(included_fields=places)
        opened = pa.ipc.open_stream if self._is_stream else pa.ipc.open_file
        return opened(source, options=options)

    def _stored(self, places: list[int] | None) -> Iterator[pa.RecordBatch]:
        reader = self._open(places)
        if self._is_stream:
            return iter(reader)
        return (reader.get_batch(i) for i in range(reader.num_record_batches))

    def batches(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Batches of these columns as they are stored, in the order of the file."""
        places = sorted(map(self.schema.get_field_index, names))
        n_read = 0
        try:
            for batch in self._stored(places):
                batch.validate(full=True)  # offsets of a damaged file lead anywhere
                yield batch
                n_read += 1
        except _ERRORS as error:
            where = f"batch {n_read} (of {self._n_batches}, from 0) of {self.path.name}"
            raise _damaged(f"{where} cannot be read", error) from error


def _damaged(what: str, error: Exception) -> InputError:
    return InputError(
        f"{what} ({first_line(error)}): the file is damaged or cut off. Fetch or write it again."
    )


def _check_buffers(path: Path, *, is_stream: bool) -> None:
    """Refuse an Arrow file whose buffers unpack to far more than a table does."""
    n_unpacked = 0
    # Of a damaged file all that lies before the damage counts; what is wrong, Arrow says.
    with contextlib.suppress(ValueError, OSError, struct.error):
        for n_bytes in _unpacked_bytes(path, is_stream=is_stream):
            n_unpacked += n_bytes
    check_unpacked(path.name, n_unpacked, path.stat().st_size, _UNPACK)


def _common_types(paths: list[Path], schemas: list[Any]) -> dict[str, Any]:
    """Types that hold the values of all files, whose columns must be the same.

    The row numbers that pandas writes beside the columns are left out.
    """
    types: dict[str, Any] = {}
    for path, schema in zip(paths, schemas, strict=True):
        if len(set(schema.names)) < len(schema.names):
            raise InputError(f"column names must be distinct. {path.name} has {schema.names}.")
        is_pandas = b"pandas" in (schema.metadata or {})
        names = [name for name in schema.names if not (is_pandas and _PANDAS_INDEX.fullmatch(name))]
        types = types or {name: schema.field(name).type for name in names}
        check_same_columns(paths[0].name, list(types), path.name, names)
        for name in names:
            known, kind = types[name], schema.field(name).type
            if known == kind:
                continue
            try:
                fields = [pa.schema([(name, value_type(one))]) for one in (known, kind)]
                types[name] = pa.unify_schemas(fields, promote_options="permissive").field(0).type
            except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
                raise InputError(
                    "files of one table must have the same types. Column "
                    f"{name!r} is {known} in {paths[0].name} and {kind} in {path.name}."
                ) from error
    return types


# --- how much an Arrow file unpacks to ------------------------------------------------------------

# Arrow allocates what a compressed buffer says that it unpacks to. pyarrow does not tell it before,
# so the few fields that do are read from the messages here (flatbuffers; Message.fbs and File.fbs
# of Arrow's format).

_CONTINUES = b"\xff\xff\xff\xff"
_MAX_METADATA = 1 << 28
_BATCH, _DICTIONARY = 3, 2  # of MessageHeader


def _unpacked_bytes(path: Path, *, is_stream: bool) -> Iterator[int]:
    """Bytes that each compressed buffer of all batches and dictionaries unpacks to.

    Raises ValueError or struct.error where the file is damaged.
    """
    with path.open("rb") as file:
        if is_stream:
            yield from _messages(file)
            return
        file.seek(-10, 2)
        length = struct.unpack("<i", file.read(4))[0]
        file.seek(-10 - length, 2)
        footer = file.read(length)
        for number in (2, 3):  # dictionaries, recordBatches: offset, metaDataLength, bodyLength
            for place, _, _ in _structs(footer, _child(footer, 0), number, "<qi4xq"):
                file.seek(place)
                yield from _messages(file, is_alone=True)


def _messages(file: BinaryIO, *, is_alone: bool = False) -> Iterator[int]:
    """Bytes that buffers unpack to, of the message that stands here or, unless alone, of all on."""
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
        if kind in (_BATCH, _DICTIONARY):
            batch = _child(head, flatbuffer_field(head, message, 2))
            if kind == _DICTIONARY:
                batch = _child(head, flatbuffer_field(head, batch, 1))
            is_packed = flatbuffer_field(head, batch, 3) > 0
            for offset, n_bytes in _structs(head, batch, 2, "<qq"):
                if is_packed and n_bytes >= 8:
                    file.seek(body + offset)
                    # -1: kept as it is
                    yield max(0, struct.unpack("<q", file.read(8))[0])
        if is_alone:
            return
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
