"""`open_table`: files and frames as one thing, a `Table`."""

from __future__ import annotations

import copy
import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from holdtrue.tables import inference
from holdtrue.tables.columnar import ArrowFile, ParquetFiles, first_line, read_arrow_stream
from holdtrue.tables.delimited import Delimited
from holdtrue.tables.duck import read_duckdb
from holdtrue.tables.json_lines import JsonLines
from holdtrue.tables.spill import Spill, widened
from holdtrue.validation import check_choice, did_you_mean
from holdtrue.values import columns_of, is_plain, missing_objects, python_values, refused, type_kind

if TYPE_CHECKING:
    import pyarrow as pa

FILES = "a CSV, Parquet, Feather (Arrow), JSON lines or DuckDB file, or a folder of Parquet files"
# Files above this size are told apart by their size and their ends.
WHOLE = 1 << 30
_END = 1 << 24
_ROWS = 1 << 16
_LISTED = 20  # most names in a message
_OTHERS = {
    b"PK\x03\x04": "an Excel or zip file. Save it as CSV or Parquet, or unpack it",
    b"BZh": "compressed by bzip2. Unpack it, or use gzip",
    b"\xfd7zXZ": "compressed by xz. Unpack it, or use gzip",
    b"\x28\xb5\x2f\xfd": "compressed by zstd. Unpack it, or use gzip",
    b"SQLite format 3": "an SQLite file. Export the table as CSV or Parquet",
    b"FEA1": "Feather of version 1. Write it again with a newer Arrow",
    b"\xd0\xcf\x11\xe0": "an old Excel file. Save it as CSV",
}


class Fingerprint(NamedTuple):
    """What tells the data of one run from those of another.

    Attributes
    ----------
    digest : str
        SHA-256, in hexadecimal.
    covers : str
        Of what, in words.
    """

    digest: str
    covers: str

    def __str__(self) -> str:
        return f"sha256 {self.digest} of {self.covers}"


class _Source(Protocol):
    """Where the columns are."""

    types: dict[str, Any]
    n_rows: int

    def column(self, name: str) -> Any: ...

    def batches(self, kinds: dict[str, Any], rows: int) -> Iterator[pa.RecordBatch]: ...


class Table:
    """A table of which one column or one batch is in memory at a time; made by `open_table`.

    Attributes
    ----------
    names : list of str
    types : dict from name to pyarrow.DataType
    kinds : dict from name to str
        How each column is read: ``"category"``, ``"integer"``, ``"number"`` or ``"empty"``.
    n_rows : int
    description : str
        Such as ``flights.csv (CSV)``.
    path : Path or None
        Of a file or a folder.
    """

    def __init__(
        self,
        owner: str,
        source: _Source,
        description: str,
        path: Path | None,
        wanted: Mapping[str, str],
    ):
        self.owner, self.description, self.path = owner, description, path
        self._source, self._wanted = source, dict(wanted)
        self.names = list(source.types)
        self.n_rows = source.n_rows
        self.types = {
            name: _wanted_type(kind, wanted[name]) if name in wanted else kind
            for name, kind in source.types.items()
        }
        self.kinds = {name: type_kind(kind) for name, kind in self.types.items()}

    def __repr__(self) -> str:
        return f"<Table {self.description}: {self.n_rows:,} rows, {len(self.names)} columns>"

    @property
    def plain_names(self) -> list[str]:
        """Columns of numbers, texts, dates and truth values: not of lists and the like."""
        return [name for name, kind in self.types.items() if is_plain(kind)]

    def check_name(self, name: str) -> None:
        """Refuse a column that is not there."""
        if name not in self.names:
            place = f" in {self.path.name}" if self.path else ""
            hint = did_you_mean(name, self.names)
            if not hint and len(self.names) <= _LISTED:
                hint = f" It has {', '.join(map(repr, self.names))}."
            raise ValueError(f"{self.owner}: no column {name!r}{place}.{hint}")

    def only(self, names: Iterable[str]) -> Table:
        """The same table, of which only these columns are seen."""
        twin = copy.copy(self)
        twin.names = list(names)
        for name in twin.names:
            self.check_name(name)
        return twin

    def column(self, name: str) -> Any:
        """The column of that name: Arrow, or an array of objects where a frame mixes types."""
        self.check_name(name)
        self._check_plain([name])
        column = self._source.column(name)
        if name not in self._wanted:
            return column
        return self._as_wanted(name, column, 0)

    def batches(
        self, columns: Iterable[str] | None = None, rows: int = _ROWS
    ) -> Iterator[pa.RecordBatch]:
        """Batches of at most so many rows, in the same types throughout; can be called again.

        Parameters
        ----------
        columns : iterable of str, optional
            Default: all that hold plain values.
        rows : int
        """
        import pyarrow as pa

        if columns is None:
            names = self.plain_names
        else:
            names = list(dict.fromkeys(columns))
            for name in names:
                self.check_name(name)
            self._check_plain(names)
        kinds = {name: _decoded(self._source.types[name]) for name in names}
        done = 0
        for batch in self._source.batches(kinds, rows):
            if self._wanted:
                arrays = [
                    _one(self._as_wanted(name, batch.column(j), done))
                    if name in self._wanted
                    else batch.column(j)
                    for j, name in enumerate(names)
                ]
                batch = pa.RecordBatch.from_arrays(arrays, names)
            done += batch.num_rows
            yield batch

    def fingerprint(self) -> Fingerprint:
        """SHA-256 of the file's bytes; of a frame, of its values."""
        digest = hashlib.sha256()
        if self.path is None:
            _hash_values(digest, self.batches())
            return Fingerprint(digest.hexdigest(), f"the values of {self.n_rows:,} rows")
        if self.path.is_file():
            return Fingerprint(*_hash_file(self.path))
        paths = sorted(path for path in self.path.rglob("*") if path.is_file())
        for path in paths:
            digest.update(str(path.relative_to(self.path)).encode())
            digest.update(_hash_file(path)[0].encode())
        return Fingerprint(digest.hexdigest(), f"the names and bytes of its {len(paths)} files")

    def _check_plain(self, names: list[str]) -> None:
        for name in names:
            if not is_plain(self.types[name]):
                raise refused(self.owner, name, str(self.types[name]))

    def _as_wanted(self, name: str, column: Any, first_row: int) -> Any:
        """A column in the type that the caller asked for; what does not fit is named."""
        import pyarrow as pa

        wanted, kind = self._wanted[name], self.types[name]
        if isinstance(column, np.ndarray):
            column = _as_text(column)
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        done: list[pa.Array] = []
        for chunk in chunks:
            try:
                done.append(_cast(chunk, wanted, kind))
            except pa.ArrowInvalid as error:
                bad = _first_bad(chunk, wanted, kind)
                row = first_row + sum(map(len, done)) + bad + 1
                raise ValueError(
                    f"{self.owner}: column {name!r} of {self.description} cannot be read as "
                    f"{wanted!r}. Got {chunk[bad].as_py()!r} in row {row:,}. Mend it, or read the "
                    "column as 'text'."
                ) from error
        return pa.chunked_array(done, type=kind)


def open_table(
    owner: str,
    source: Any,
    *,
    types: Mapping[str, str] | None = None,
    table: str | None = None,
    encoding: str | None = None,
) -> Table:
    """A table from a path or a frame.

    What a file is shows in its content, not in its name. Text (CSV, JSON lines) and DuckDB are read
    once, checked and kept column by column in a temporary file without a name, so that they may be
    larger than memory; Parquet and Arrow files are read where they are.

    CSV: the separator (comma, semicolon, tab or bar) is the one that the header has most of; a
    column without a name is called ``column 3``; names that occur twice are refused. Columns are
    whole numbers, numbers, ISO dates and times, true/false, or else text, whatever order the rows
    are in. Whole numbers with a leading zero and those beyond 64 bits are text. Missing are an
    empty field and what pandas takes for it (NA, N/A, NaN, null, None, ...), and ``?``, ``-`` and
    ``.`` in a column of which all other values are numbers, dates or truth values. Thousands
    separators and decimal commas are not guessed.

    Parameters
    ----------
    owner : str
        Who asks, for the messages.
    source : path, data frame (pandas, Polars, Arrow) or ndarray
        Path of a CSV or TSV file (also .gz), Parquet file or folder of such files, Feather or
        Arrow file or stream, JSON lines or DuckDB file.
    types : dict from name to {"text", "category", "integer", "number", "date", "bool"}, optional
        What columns are, where that is not what they look like. A category is kept as text.
    table : str, optional
        Of a DuckDB file: the name of a table, or one SELECT.
    encoding : str, optional
        Of a text file. Default: UTF-8, or UTF-16 where a byte order mark says so.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from holdtrue.tables import open_table
    >>> frame = pa.table({"zip": [501, 10001], "y": [0.5, 1]})
    >>> table = open_table("us", frame, types={"zip": "text"})
    >>> table.kinds
    {'zip': 'category', 'y': 'number'}
    >>> table.column("zip").to_pylist()
    ['501', '10001']
    """
    wanted = dict(types or {})
    for name, kind in wanted.items():
        check_choice(owner, f"the type of column {name!r}", kind, inference.WANTED)
    if isinstance(source, (str, Path)):
        opened = _open_path(owner, Path(source), wanted, table, encoding)
    else:
        _only_for(owner, "table", table, "DuckDB files")
        _only_for(owner, "encoding", encoding, "text files")
        frame = _Frame(owner, source)
        description = f"{type(source).__module__.split('.')[0]} {type(source).__name__}"
        opened = Table(owner, frame, description, None, _known(wanted, frame.types))
    for name in wanted:
        opened.check_name(name)
    return opened


def _open_path(
    owner: str, path: Path, wanted: dict[str, str], table: str | None, encoding: str | None
) -> Table:
    if not path.exists():
        raise FileNotFoundError(f"{owner}: no file {str(path)!r}. Pass the path of {FILES}.")
    label = _format(owner, path)
    if label != "DuckDB":
        _only_for(owner, "table", table, "DuckDB files")
    if label not in ("CSV", "JSON lines"):
        _only_for(owner, "encoding", encoding, "text files")
    source: _Source
    left = wanted
    if label == "Parquet":
        source = ParquetFiles(owner, path)
    elif label == "Arrow":
        source = ArrowFile(owner, path)
    else:
        try:
            if label == "CSV":
                separator = "\t" if ".tsv" in path.suffixes else None
                reader = Delimited(
                    owner, path, types=wanted, encoding=encoding, separator=separator
                )
                source, left = _Spilled(*reader.read()), {}
            elif label == "JSON lines":
                source = _Spilled(*JsonLines(owner, path, encoding=encoding).read())
            elif label == "DuckDB":
                source = _Spilled(*read_duckdb(owner, path, table))
            else:
                source = _Spilled(*read_arrow_stream(owner, path))
        except OSError as error:
            raise ValueError(
                f"{owner}: {path.name} cannot be read, or kept in {tempfile.gettempdir()} "
                f"({first_line(error)}). If the disk is full, set TMPDIR to a folder with room."
            ) from error
    name = f"{path.name} ({label}{', folder' if path.is_dir() else ''})"
    return Table(owner, source, name, path, _known(left, source.types))


def _format(owner: str, path: Path) -> str:
    """What a file is, by its first bytes."""
    if path.is_dir():
        return "Parquet"
    try:
        with path.open("rb") as file:
            start = file.read(32)
    except OSError as error:
        raise ValueError(
            f"{owner}: {str(path)!r} cannot be opened ({error.strerror}). Pass {FILES}."
        ) from error
    if not start:
        raise ValueError(f"{owner}: {path.name} is empty. Pass {FILES}.")
    for mark, what in _OTHERS.items():
        if start.startswith(mark):
            raise ValueError(f"{owner}: {path.name} is {what}.")
    if start.startswith(b"PAR1"):
        return "Parquet"
    if start.startswith(b"ARROW1"):
        return "Arrow"
    if start.startswith(b"\xff\xff\xff\xff"):
        return "Arrow stream"
    if start[8:12] == b"DUCK":
        return "DuckDB"
    json_names = {".jsonl", ".ndjson", ".json"}
    return "JSON lines" if json_names & set(path.suffixes) else "CSV"


def _only_for(owner: str, name: str, value: Any, what: str) -> None:
    if value is not None:
        raise ValueError(f"{owner}: {name} is for {what} only. Got {value!r}. Leave it out.")


def _known(wanted: Mapping[str, str], types: Mapping[str, Any]) -> dict[str, str]:
    return {name: kind for name, kind in wanted.items() if name in types}


# --- sources ------------------------------------------------------------------------------------


class _Spilled:
    """Columns that were read once and kept."""

    def __init__(self, spill: Spill, types: dict[str, Any]):
        self._spill, self.types, self.n_rows = spill, types, spill.n_rows

    def column(self, name: str) -> Any:
        return self._spill.column(name, self.types[name])

    def batches(self, kinds: dict[str, Any], rows: int) -> Iterator[pa.RecordBatch]:
        return self._spill.batches(kinds, rows)


class _Frame:
    """Columns of a frame that is in memory."""

    def __init__(self, owner: str, data: Any):
        import pyarrow as pa

        self._columns = columns_of(owner, data)
        self.types = {
            name: pa.string() if isinstance(column, np.ndarray) else column.type
            for name, column in self._columns.items()
        }
        self.n_rows = len(next(iter(self._columns.values()), ()))
        if not self.n_rows:
            raise ValueError(f"{owner}: the table has {len(self.types)} columns and no rows.")

    def column(self, name: str) -> Any:
        return self._columns[name]

    def batches(self, kinds: dict[str, Any], rows: int) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for start in range(0, self.n_rows, rows):
            columns = []
            for name, kind in kinds.items():
                column = self._columns[name][start : start + rows]
                if isinstance(column, np.ndarray):
                    column = _as_text(column)
                columns.append(_one(widened(column, kind)))
            yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(list(kinds.items())))


def _as_text(column: np.ndarray) -> Any:
    """Objects of several types as text."""
    import pyarrow as pa

    missing = missing_objects(column)
    pairs = zip(column, missing, strict=True)
    return pa.array([None if gone else str(value) for value, gone in pairs], pa.string())


def _one(column: Any) -> Any:
    import pyarrow as pa

    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _decoded(kind: Any) -> Any:
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind


# --- types that the caller asked for --------------------------------------------------------------


def _wanted_type(kind: Any, wanted: str) -> Any:
    """Arrow type of a column that is wanted as such; its own if that is one."""
    import pyarrow as pa

    kind = _decoded(kind)
    fits = {
        "integer": pa.types.is_integer,
        "number": pa.types.is_floating,
        "date": pa.types.is_temporal,
        "bool": pa.types.is_boolean,
    }
    if wanted in fits and fits[wanted](kind):
        return kind
    return {
        "integer": pa.int64(),
        "number": pa.float64(),
        "date": pa.timestamp("us"),
        "bool": pa.bool_(),
    }.get(wanted, pa.string())


def _cast(column: Any, wanted: str, kind: Any) -> Any:
    """A column in the wanted type. Raises pyarrow.ArrowInvalid where a value does not fit."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.type == kind:
        return column
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if is_text and wanted not in ("text", "category"):
        text = column.cast(pa.string())
        if wanted == "bool":
            return inference.yes_or_no(text)
        return inference.converted(text, wanted if wanted != "date" else "timestamp")
    try:
        return column.cast(kind)
    except pa.ArrowNotImplementedError as error:
        raise pa.ArrowInvalid(str(error)) from error


def _first_bad(column: Any, wanted: str, kind: Any) -> int:
    import pyarrow as pa

    for place in range(len(column)):
        try:
            _cast(column.slice(place, 1), wanted, kind)
        except pa.ArrowInvalid:
            return place
    return 0


# --- fingerprints -------------------------------------------------------------------------------


def _hash_file(path: Path) -> tuple[str, str]:
    digest = hashlib.sha256()
    size = path.stat().st_size
    with path.open("rb") as file:
        if size <= WHOLE:
            while chunk := file.read(_END):
                digest.update(chunk)
            return digest.hexdigest(), f"its {size:,} bytes"
        digest.update(str(size).encode())
        digest.update(file.read(_END))
        file.seek(-_END, 2)
        digest.update(file.read(_END))
    return digest.hexdigest(), f"its size, {size:,} bytes, and its first and last {_END >> 20} MB"


def _hash_values(digest: Any, batches: Iterator[pa.RecordBatch]) -> None:
    for batch in batches:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            digest.update(f"{name} {column.type} ".encode())
            digest.update(repr(python_values(column)).encode("utf-8", "surrogatepass"))
