"""Files that hold columns: Parquet, folders of it, and Arrow's own format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from holdtrue.tables import inference
from holdtrue.tables.spill import Spill, widened

if TYPE_CHECKING:
    import pyarrow as pa

# Arrow's are of these kinds.
_ERRORS = (OSError, ValueError, MemoryError, NotImplementedError, TypeError, LookupError)
_FEW_ROWS = 1024
_MAX_DICTIONARY = 2**20  # bytes from which writers go on without
_MAX_BYTES_A_ROW = 2  # of a dictionary, beside about as many of the codes
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


class ParquetFiles:
    """One Parquet file, or those of a folder, in which folders called ``year=2024`` are a column.

    Parameters
    ----------
    owner : str
        Who asks, for the messages.
    root : Path
        A file or a folder.
    """

    def __init__(self, owner: str, root: Path):
        self.owner, self.root = owner, root
        self.paths = [root] if root.is_file() else _parquet_paths(owner, root)
        self._footers = [self._footer(path) for path in self.paths]
        self._folders, partition = self._partitions()
        self.types = {**self._own_types(), **partition}
        self.n_rows = sum(footer.metadata.num_rows for footer in self._footers)
        if not self.n_rows:
            raise ValueError(f"{owner}: {root.name} has no rows.")

    def column(self, name: str) -> pa.ChunkedArray:
        """A column in its type; texts of which few differ as a dictionary."""
        import pyarrow as pa

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
        """Batches of at most so many rows, of these columns in these types."""
        import pyarrow as pa

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
                    else widened(batch.column(name), kind)
                    for name, kind in kinds.items()
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(kinds.items())))

    def _open(self, path: Path, dictionaries: list[str]) -> Any:
        import pyarrow.parquet as pq

        return pq.ParquetFile(path, read_dictionary=dictionaries)

    def _footer(self, path: Path) -> Any:
        import pyarrow.parquet as pq

        try:
            return pq.ParquetFile(path)
        except _ERRORS as error:
            raise ValueError(
                f"{self.owner}: {path.name} cannot be read as Parquet ({first_line(error)}): it is "
                "damaged or cut off. Fetch or write it again."
            ) from error

    def _damaged(self, path: Path, names: list[str], error: Exception) -> ValueError:
        """The first row group that cannot be read."""
        file = self._open(path, [])
        for group in range(file.num_row_groups):
            for name in names:
                try:
                    file.read_row_group(group, [name], use_threads=False)
                except _ERRORS as reason:
                    return ValueError(
                        f"{self.owner}: row group {group} (of {file.num_row_groups}, from 0) of "
                        f"{path.name} cannot be read in column {name!r} ({first_line(reason)}): "
                        "the file is damaged. Fetch or write it again."
                    )
        return ValueError(f"{self.owner}: {path.name} cannot be read ({first_line(error)}).")

    def _own_types(self) -> dict[str, Any]:
        """Types that hold the values of all files."""
        import pyarrow as pa

        types: dict[str, Any] = {}
        first: dict[str, Any] = {}
        for path, footer in zip(self.paths, self._footers, strict=True):
            schema = footer.schema_arrow
            own = dict(zip(schema.names, schema.types, strict=True))
            if len(own) < len(schema.names):
                raise ValueError(
                    f"{self.owner}: column names must be distinct. {path.name} has {schema.names}."
                )
            first = first or own
            if set(own) != set(first):
                missing, new = sorted(set(first) - set(own)), sorted(set(own) - set(first))
                raise ValueError(
                    f"{self.owner}: the files of {self.root.name} must have the same columns. "
                    f"{path.name} differs from {self.paths[0].name}. Missing: {missing}. "
                    f"New: {new}."
                )
            for name, kind in own.items():
                known = types.get(name, kind)
                try:
                    fields = [pa.schema([(name, known)]), pa.schema([(name, kind)])]
                    types[name] = (
                        pa.unify_schemas(fields, promote_options="permissive").field(0).type
                    )
                except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
                    raise ValueError(
                        f"{self.owner}: the files of {self.root.name} must have the same types. "
                        f"Got {known} and, in {path.name}, {kind} in column {name!r}."
                    ) from error
        return types

    def _partitions(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Values of each file's folders, and the columns' types."""
        import pyarrow as pa

        texts = []
        for path in self.paths:
            parts = path.relative_to(self.root).parts[:-1] if path != self.root else ()
            pairs = [part.split("=", 1) for part in parts if "=" in part]
            texts.append({unquote(key): unquote(value) for key, value in pairs})
        if len({tuple(own) for own in texts}) > 1:
            raise ValueError(
                f"{self.owner}: the folders of {self.root.name} must name the same columns, as in "
                f"year=2024. Got {sorted({tuple(own) for own in texts})}."
            )
        values: dict[str, list[Any]] = {}
        types = {}
        for name in texts[0]:
            own = pa.array([None if t[name] == _NO_VALUE else t[name] for t in texts], pa.string())
            kind = inference.classified(own)[0]
            column = inference.converted(own, kind)
            values[name], types[name] = column.to_pylist(), column.type
        folders = [{name: values[name][i] for name in values} for i in range(len(texts))]
        return folders, types


def _parquet_paths(owner: str, root: Path) -> list[Path]:
    hidden = ("_", ".")
    paths = [
        path
        for path in sorted(root.rglob("*"))
        if path.suffix in (".parquet", ".parq", ".pq")
        and path.is_file()
        and not any(part.startswith(hidden) for part in path.relative_to(root).parts)
    ]
    if not paths:
        raise ValueError(
            f"{owner}: the folder {root.name!r} holds no Parquet files. Pass one that does, or a "
            "single file."
        )
    return paths


def _check_rows(n_rows: int, footer: Any) -> None:
    if n_rows != footer.metadata.num_rows:
        raise ValueError(f"{n_rows:,} rows instead of {footer.metadata.num_rows:,}")


def _repeated(value: Any, n: int, kind: Any) -> Any:
    import pyarrow as pa

    return pa.repeat(pa.scalar(value, kind), n)


class ArrowFile:
    """A Feather (Arrow IPC) file, whose columns are read one at a time.

    Parameters
    ----------
    owner : str
        Who asks, for the messages.
    path : Path
    """

    def __init__(self, owner: str, path: Path):
        import pyarrow as pa

        self.owner, self.path = owner, path
        try:
            self._source = pa.memory_map(str(path))
            file = pa.ipc.open_file(self._source)
            self._names = list(file.schema.names)
            self._n_batches = file.num_record_batches
            self.types = {field.name: _plain(field.type) for field in file.schema}
            none = pa.ipc.IpcReadOptions(included_fields=[0])
            narrow = pa.ipc.open_file(self._source, options=none)
            self.n_rows = sum(narrow.get_batch(i).num_rows for i in range(self._n_batches))
        except _ERRORS as error:
            raise ValueError(
                f"{owner}: {path.name} cannot be read as an Arrow file ({first_line(error)}): it "
                "is damaged or cut off. Fetch or write it again."
            ) from error
        if len(self.types) < len(self._names):
            raise ValueError(
                f"{owner}: column names must be distinct. {path.name} has {self._names}."
            )
        if not self.n_rows:
            raise ValueError(f"{owner}: {path.name} has no rows.")

    def column(self, name: str) -> pa.ChunkedArray:
        """A column as it is stored."""
        import pyarrow as pa

        return pa.chunked_array([batch.column(0) for batch in self._stored([name])])

    def batches(self, kinds: dict[str, Any], rows: int) -> Iterator[pa.RecordBatch]:
        """Batches of at most so many rows, of these columns in these types."""
        import pyarrow as pa

        schema = pa.schema(list(kinds.items()))
        for batch in self._stored(list(kinds)):
            columns = [widened(batch.column(name), kind) for name, kind in kinds.items()]
            whole = pa.RecordBatch.from_arrays(columns, schema=schema)
            for start in range(0, whole.num_rows, rows):
                yield whole.slice(start, rows)

    def _stored(self, names: list[str]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        places = sorted(self._names.index(name) for name in names)
        options = pa.ipc.IpcReadOptions(included_fields=places)
        file = pa.ipc.open_file(self._source, options=options)
        for i in range(self._n_batches):
            try:
                batch = file.get_batch(i)
                batch.validate(full=True)  # offsets of a damaged file lead anywhere
                yield batch
            except _ERRORS as error:
                raise ValueError(
                    f"{self.owner}: batch {i} (of {self._n_batches}, from 0) of {self.path.name} "
                    f"cannot be read ({first_line(error)}): the file is damaged. Fetch or write "
                    "it again."
                ) from error


def read_arrow_stream(owner: str, path: Path) -> tuple[Spill, dict[str, Any]]:
    """All rows of an Arrow IPC stream, and the type of every column."""
    import pyarrow as pa

    spill = Spill()
    try:
        with pa.ipc.open_stream(str(path)) as reader:
            names = list(reader.schema.names)
            for batch in reader:
                batch.validate(full=True)
                columns = [widened(column, _plain(column.type)) for column in batch.columns]
                spill.append(pa.RecordBatch.from_arrays(columns, names))
    except _ERRORS as error:
        raise ValueError(
            f"{owner}: {path.name} cannot be read as an Arrow stream after {spill.n_rows:,} rows "
            f"({first_line(error)}): it is damaged or cut off. Fetch or write it again."
        ) from error
    if len(set(names)) < len(names):
        raise ValueError(f"{owner}: column names must be distinct. {path.name} has {names}.")
    if not spill.n_rows:
        raise ValueError(f"{owner}: {path.name} has no rows.")
    spill.finish()
    return spill, {field.name: _plain(field.type) for field in reader.schema}


def _plain(kind: Any) -> Any:
    """The type of the values, where a type keeps codes of them."""
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


def first_line(error: Exception) -> str:
    """First line of a message that another library wrote."""
    return (str(error).splitlines() or [type(error).__name__])[0]
