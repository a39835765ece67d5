"""Files that hold columns: Parquet, folders of it, and Arrow's own format."""

from __future__ import annotations

import contextlib
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from holdtrue.columns.values import value_type
from holdtrue.errors import InputError, first_line
from holdtrue.tables import text_types
from holdtrue.tables.files import check_same_columns, check_unpacked
from holdtrue.tables.ipc import unpacked_bytes
from holdtrue.tables.source import batch_of
from holdtrue.tables.spill import Spill, widened

# What Arrow raises at damaged files.
_ERRORS = (OSError, ValueError, MemoryError, NotImplementedError, TypeError, LookupError)
_FEW_ROWS = 1024
_MAX_DICTIONARY = 2**20  # bytes; writers give up larger dictionaries
_MAX_BYTES_A_ROW = 2  # of a dictionary; the codes take about as many
_PANDAS_INDEX = re.compile("__index_level_[0-9]+__")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_UNPACK = "Write it again without compression"


class ParquetFiles:
    """Parquet files of one table, in which folders called ``year=2024`` are a column.

    Parameters
    ----------
    root : Path
        A file or a folder.
    paths : list of Path, optional
        Files in the folder. Default: all.
    """

    def __init__(self, root: Path, paths: list[Path] | None = None):
        self.root = root
        self.paths = paths or ([root] if root.is_file() else _parquet_paths(root))
        self._footers = [self._footer(path) for path in self.paths]
        self._folders, partition = self._partitions()
        schemas = [footer.schema_arrow for footer in self._footers]
        self.types = {**_common_types(self.paths, schemas), **partition}
        self.n_rows = sum(footer.metadata.num_rows for footer in self._footers)
        if not self.n_rows:
            raise InputError(f"{root.name} has no rows.")

    def column(self, name: str) -> pa.ChunkedArray:
        """A column in its type; text with few distinct values as a dictionary."""
        chunks: list[pa.Array] = []
        kind = self.types[name]
        encoded = pa.types.is_string(kind) and self._is_short(name)
        for path, footer, folder in zip(self.paths, self._footers, self._folders, strict=True):
            if name in folder:
                chunks.append(_repeated(folder[name], footer.metadata.num_rows, kind))
                continue
            file = self._open(path, [name] if encoded else [])
            try:
                column = file.read([name], use_threads=False).column(name)
                _check_rows(len(column), footer)
            except _ERRORS as error:
                raise self._damaged(path, [name], error) from error
            chunks += (column if encoded else widened(column, kind)).chunks
        return pa.chunked_array(chunks, type=None if chunks else kind)

    def _is_short(self, name: str) -> bool:
        """Whether the file itself keeps a column as codes, a few bytes a row.

        Judged by its first rows: their dictionary is that of the whole row group. The footer says
        it too, but pyarrow ends the process where the footer is damaged.
        """
        path, footer, folder = self.paths[0], self._footers[0], self._folders[0]
        if name in folder or not footer.metadata.num_rows:
            return False
        try:
            batches = self._open(path, [name]).iter_batches(_FEW_ROWS, columns=[name])
            n_bytes = next(batches).column(0).dictionary.nbytes
        except (*_ERRORS, StopIteration) as error:
            raise self._damaged(path, [name], error) from error
        n_rows = footer.metadata.num_rows / footer.num_row_groups
        return bool(n_bytes < min(_MAX_DICTIONARY, _MAX_BYTES_A_ROW * n_rows))

    def batches(self, kinds: dict[str, Any], rows: int) -> Iterator[pa.RecordBatch]:
        """Batches of at most ``rows`` rows, of these columns in these types."""
        for path, footer, folder in zip(self.paths, self._footers, self._folders, strict=True):
            n_rows = 0
            stored = [name for name in kinds if name not in folder]
            file = self._open(path, [])
            batches = file.iter_batches(rows, columns=stored, use_threads=False)
            while True:
                try:
                    batch = next(batches, None)
                    if batch is None:
                        _check_rows(n_rows, footer)
                except _ERRORS as error:
                    raise self._damaged(path, stored, error) from error
                if batch is None:
                    break
                n_rows += batch.num_rows
                columns = [
                    _repeated(folder[name], batch.num_rows, kind)
                    if name in folder
                    else batch.column(name)
                    for name, kind in kinds.items()
                ]
                yield batch_of(columns, kinds)

    def _open(self, path: Path, dictionaries: list[str]) -> Any:
        import pyarrow.parquet as pq

        return pq.ParquetFile(path, read_dictionary=dictionaries)

    def _footer(self, path: Path) -> Any:
        import pyarrow.parquet as pq

        try:
            footer = pq.ParquetFile(path)
            # What the pages unpack to, and what a column of them takes as numbers.
            groups = [footer.metadata.row_group(i) for i in range(footer.num_row_groups)]
            n_unpacked = sum(max(0, group.total_byte_size) for group in groups)
            widest = max((_width(kind) for kind in footer.schema_arrow.types), default=1)
        except _ERRORS as error:
            raise InputError(
                f"{path.name} cannot be read as Parquet ({first_line(error)}): it is "
                "damaged or cut off. Fetch or write it again."
            ) from error
        n_unpacked = max(n_unpacked, widest * footer.metadata.num_rows)
        check_unpacked(path.name, n_unpacked, path.stat().st_size, _UNPACK)
        return footer

    def _damaged(self, path: Path, names: list[str], error: Exception) -> ValueError:
        """The first row group that cannot be read."""
        file = self._open(path, [])
        for group in range(file.num_row_groups):
            for name in names:
                try:
                    file.read_row_group(group, [name], use_threads=False)
                except _ERRORS as reason:
                    return InputError(
                        f"row group {group} (of {file.num_row_groups}, from 0) of "
                        f"{path.name} cannot be read in column {name!r} ({first_line(reason)}): "
                        "the file is damaged. Fetch or write it again."
                    )
        return InputError(f"{path.name} cannot be read ({first_line(error)}).")

    def _partitions(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Values of each file's folders, and the columns' types."""
        texts = []
        for path in self.paths:
            parts = path.relative_to(self.root).parts[:-1] if path != self.root else ()
            pairs = [part.split("=", 1) for part in parts if "=" in part]
            texts.append({unquote(key): unquote(value) for key, value in pairs})
        if len({tuple(values) for values in texts}) > 1:
            raise InputError(
                f"the folders of {self.root.name} must name the same columns, as in "
                f"year=2024. Got {sorted({tuple(values) for values in texts})}."
            )
        values: dict[str, list[Any]] = {}
        types = {}
        for name in texts[0]:
            written = [None if text[name] == _NO_VALUE else text[name] for text in texts]
            column = pa.array(written, pa.string())
            column = text_types.converted(column, text_types.classified(column)[0])
            values[name], types[name] = column.to_pylist(), column.type
        folders = [{name: values[name][i] for name in values} for i in range(len(texts))]
        return folders, types


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
            f"the folder {root.name!r} holds no Parquet files. Pass one that does, or a "
            "single file."
        )
    return paths


def _check_rows(n_rows: int, footer: Any) -> None:
    if n_rows != footer.metadata.num_rows:
        raise ValueError(f"{n_rows:,} rows instead of {footer.metadata.num_rows:,}")


def _repeated(value: Any, n: int, kind: Any) -> Any:
    return pa.repeat(pa.scalar(value, kind), n)


class ArrowFiles:
    """Feather (Arrow IPC) files of one table, whose columns are read one at a time.

    Parameters
    ----------
    paths : list of Path
    """

    def __init__(self, paths: list[Path]):
        self._files = [_ArrowFile(path) for path in paths]
        self.n_rows = sum(file.n_rows for file in self._files)
        types = _common_types(paths, [file.schema for file in self._files])
        self.types = {name: value_type(kind) for name, kind in types.items()}
        if not self.n_rows:
            raise InputError(f"{paths[0].name} has no rows.")

    def column(self, name: str) -> pa.ChunkedArray:
        """A column as it is stored."""
        chunks = [batch.column(0) for batch in self._stored([name])]
        if len({chunk.type for chunk in chunks}) > 1:
            chunks = [widened(chunk, self.types[name]) for chunk in chunks]
        return pa.chunked_array(chunks)

    def batches(self, kinds: dict[str, Any], rows: int) -> Iterator[pa.RecordBatch]:
        """Batches of at most ``rows`` rows, of these columns in these types."""
        for batch in self._stored(list(kinds)):
            whole = batch_of([batch.column(name) for name in kinds], kinds)
            for start in range(0, whole.num_rows, rows):
                yield whole.slice(start, rows)

    def _stored(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        for file in self._files:
            yield from file.batches(names)


class _ArrowFile:
    """One Feather file, opened."""

    def __init__(self, path: Path):
        self.path = path
        _check_buffers(path, is_stream=False)
        try:
            # Not a memory map: a file that is cut off while it is mapped ends the process.
            self._source = pa.OSFile(str(path))
            file = pa.ipc.open_file(self._source)
            self.schema = file.schema
            self._n_batches = file.num_record_batches
            none = pa.ipc.IpcReadOptions(included_fields=[0])
            narrow = pa.ipc.open_file(self._source, options=none)
            self.n_rows = sum(narrow.get_batch(i).num_rows for i in range(self._n_batches))
        except _ERRORS as error:
            raise InputError(
                f"{path.name} cannot be read as an Arrow file ({first_line(error)}): it "
                "is damaged or cut off. Fetch or write it again."
            ) from error

    def batches(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        """Batches of these columns as they are stored, in the order of the file."""
        places = sorted(map(self.schema.get_field_index, names))
        options = pa.ipc.IpcReadOptions(included_fields=places)
        file: Any = None
        for i in range(self._n_batches):
            try:
                file = file or pa.ipc.open_file(self._source, options=options)
                batch = file.get_batch(i)
                batch.validate(full=True)  # offsets of a damaged file lead anywhere
                yield batch
            except _ERRORS as error:
                raise InputError(
                    f"batch {i} (of {self._n_batches}, from 0) of {self.path.name} "
                    f"cannot be read ({first_line(error)}): the file is damaged. Fetch or write "
                    "it again."
                ) from error


def read_arrow_stream(path: Path) -> tuple[Spill, dict[str, Any]]:
    """All rows of an Arrow IPC stream, and the type of every column."""
    spill = Spill()
    _check_buffers(path, is_stream=True)
    try:
        with pa.ipc.open_stream(pa.OSFile(str(path))) as reader:
            names = list(reader.schema.names)
            for batch in reader:
                batch.validate(full=True)
                columns = [widened(column, value_type(column.type)) for column in batch.columns]
                spill.append(pa.RecordBatch.from_arrays(columns, names))
    except _ERRORS as error:
        raise InputError(
            f"{path.name} cannot be read as an Arrow stream after {spill.n_rows:,} rows "
            f"({first_line(error)}): it is damaged or cut off. Fetch or write it again."
        ) from error
    if len(set(names)) < len(names):
        raise InputError(f"column names must be distinct. {path.name} has {names}.")
    if not spill.n_rows:
        raise InputError(f"{path.name} has no rows.")
    spill.finish()
    schema = reader.schema
    return spill, {name: value_type(schema.field(name).type) for name in column_names(schema)}


def _check_buffers(path: Path, *, is_stream: bool) -> None:
    """Refuse an Arrow file whose buffers unpack to far more than a table does."""
    n_unpacked = 0
    with contextlib.suppress(ValueError, OSError, struct.error):  # Arrow says what is wrong
        n_unpacked = unpacked_bytes(path, is_stream=is_stream)
    check_unpacked(path.name, n_unpacked, path.stat().st_size, _UNPACK)


def column_names(schema: Any) -> list[str]:
    """Names of the columns, without the row numbers that pandas writes beside them."""
    is_pandas = b"pandas" in (schema.metadata or {})
    return [name for name in schema.names if not (is_pandas and _PANDAS_INDEX.fullmatch(name))]


def _common_types(paths: list[Path], schemas: list[Any]) -> dict[str, Any]:
    """Types that hold the values of all files, whose columns must be the same."""
    types: dict[str, Any] = {}
    for path, schema in zip(paths, schemas, strict=True):
        if len(set(schema.names)) < len(schema.names):
            raise InputError(f"column names must be distinct. {path.name} has {schema.names}.")
        names = column_names(schema)
        types = types or {name: schema.field(name).type for name in names}
        check_same_columns(paths[0].name, list(types), path.name, names)
        for name in names:
            known, kind = types[name], schema.field(name).type
            if known == kind:
                continue
            try:
                fields = [
                    pa.schema([(name, value_type(known))]),
                    pa.schema([(name, value_type(kind))]),
                ]
                types[name] = pa.unify_schemas(fields, promote_options="permissive").field(0).type
            except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
                raise InputError(
                    "files of one table must have the same types. Column "
                    f"{name!r} is {known} in {paths[0].name} and {kind} in {path.name}."
                ) from error
    return types


def _width(kind: Any) -> int:
    """Least bytes of a value."""
    try:
        return max(1, kind.bit_width // 8)
    except ValueError:  # texts and lists
        return 1
