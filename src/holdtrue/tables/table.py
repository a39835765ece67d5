"""`open_table`: a file or a frame as a `Table`, read one column or one batch at a time."""

from __future__ import annotations

import copy
import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdtrue.columns.values import (
    is_plain,
    missing_objects,
    python_values,
    refused,
    type_kind,
    value_type,
)
from holdtrue.errors import (
    InputError,
    SpokenError,
    check_choice,
    did_you_mean,
    first_line,
    speaking_as,
    speaks,
)
from holdtrue.tables import text_types
from holdtrue.tables.columnar import ArrowFiles, ParquetFiles
from holdtrue.tables.computed import (
    ComputedColumns,
    Reading,
    as_written,
    date_parts,
    wanted_columns,
)
from holdtrue.tables.delimited import Delimited
from holdtrue.tables.files import (
    STANDARD_INPUT,
    Files,
    TemporaryFolder,
    binary_format,
    found_files,
)
from holdtrue.tables.json_rows import JsonRows, looks_like_json
from holdtrue.tables.multi_table import read_duckdb, sheet_as_csv
from holdtrue.tables.source import Frame, Place, Source, batch_of
from holdtrue.tables.text import TextFile

# Of larger files the fingerprint covers the size, the beginning and the end.
WHOLE = 1 << 30
_END = 1 << 24
_ROWS = 1 << 16
_LISTED = 20  # most names in a message
_READ_AS_WRITTEN = ("CSV", "Excel", "JSON")  # whose texts may be numbers or dates


class Fingerprint(NamedTuple):
    """Hash that identifies the data of a run."""

    digest: str  # SHA-256, in hexadecimal
    covers: str  # of what, in words

    def __str__(self) -> str:
        return f"sha256 {self.digest} of {self.covers}"


class Table:
    """A table that is read one column or one batch at a time; made by `open_table`.

    Attributes
    ----------
    names : list of str
    types : dict from name to pyarrow.DataType
    kinds : dict from name to str
        How each column is read: ``"category"``, ``"integer"``, ``"number"`` or ``"empty"``.
    n_rows : int
    description : str
        Such as ``flights.csv (CSV)``.
    readings : dict from name to Reading
        Columns of text that were read as numbers or dates, and how.
    path : Path or None
        Of a file or a folder; of a pattern, of the folder that its files are in.
    """

    @speaks
    def __init__(
        self,
        source: Source,
        description: str,
        files: Files | None,
        wanted: Mapping[str, str],
        readings: Mapping[str, Any] | None = None,
        place: Place | None = None,
    ):
        self.description, self._files = description, files
        self.path = None if files is None else files.root
        self.n_rows, self.readings = source.n_rows, readings or {}
        place = place or (lambda row: (description, f"in row {row + 1:,}"))
        converted = wanted_columns(source.types, wanted, place)
        typed = ComputedColumns(source, converted) if converted else source
        self._parts = date_parts(typed.types)
        parts = {name: date.computed() for name, date in self._parts.items()}
        self._source: Source = ComputedColumns(typed, parts) if parts else typed
        self.types: dict[str, Any] = _OfColumns(typed.types, self._source.types)
        kinds = {name: type_kind(kind) for name, kind in self._source.types.items()}
        self.kinds: dict[str, str] = _OfColumns({name: kinds[name] for name in typed.types}, kinds)
        self._set_names(source.types)

    def _set_names(self, names: Iterable[str]) -> None:
        self.names = list(names)
        known = set(self.names)
        self._known = known | {part for part, date in self._parts.items() if date.column in known}

    def __repr__(self) -> str:
        return f"<Table {self.description}: {self.n_rows:,} rows, {len(self.names)} columns>"

    @property
    def plain_names(self) -> list[str]:
        """Columns of numbers, texts, dates and truth values: not of lists and the like."""
        return [name for name in self.names if is_plain(self.types[name])]

    @speaks
    def varying_parts(self, names: Iterable[str]) -> list[str]:
        """Month, weekday and hour of the dates among these columns, where they vary.

        They are columns of the table like others, called ``day.month`` and so on, but not among its
        ``names``; and so are the years, ``day.year``.
        """
        wanted = set(names)
        return [
            name
            for name, date in self._parts.items()
            if date.column in wanted and date.part != "year" and date.varies(self.column)
        ]

    def has(self, name: str) -> bool:
        """Whether the table has a column of that name, or one that is part of a date."""
        return name in self._known

    @speaks
    def check_name(self, name: str) -> None:
        """Refuse a column that the table does not have."""
        if not self.has(name):
            place = f" in {self._files.name}" if self._files else ""
            hint = did_you_mean(name, self.names)
            if not hint and len(self.names) <= _LISTED:
                hint = f" It has {', '.join(map(repr, self.names))}."
            raise InputError(f"no column {name!r}{place}.{hint}")

    @speaks
    def only(self, names: Iterable[str]) -> Table:
        """The same table with these columns only."""
        twin = copy.copy(self)
        twin._set_names(names)
        for name in twin.names:
            self.check_name(name)
        return twin

    @speaks
    def complete(
        self, names: Iterable[str], *, nonzero: Iterable[str] = ()
    ) -> tuple[Table, dict[str, int]]:
        """The rows that have a value in each of these columns, and how many rows lack which.

        Parameters
        ----------
        names : iterable of str
            Columns, which are decoded here and stay in memory. nan counts as missing.
        nonzero : iterable of str
            Those of them in which 0 counts as missing too: weights.

        Returns
        -------
        table : Table
        n_missing : dict from name to int
        """
        held = {name: self.column(name) for name in names}
        if not held:
            return self, {}
        present = {name: _has_value(column) for name, column in held.items()}
        nonzero = set(nonzero)
        for name in nonzero:
            present[name] &= np.asarray(held[name].fill_null(0)) != 0
        for name in held:
            if not present[name].any():
                value = "weight but 0" if name in nonzero else "value"
                raise InputError(f"column {name!r} has no {value} in any row. Name another.")
        rows = np.logical_and.reduce(list(present.values()))
        if not rows.any():
            raise InputError(f"no row has a value in all of {', '.join(map(repr, held))}.")
        n_missing = {name: int(np.count_nonzero(~mask)) for name, mask in present.items()}
        return self._some_rows(rows, held), n_missing

    def where(self, rows: np.ndarray) -> Table:
        """The rows at which ``rows``, a boolean array of shape (n_rows,), is true."""
        return self._some_rows(rows, {})

    def _some_rows(self, rows: np.ndarray, held: dict[str, Any]) -> Table:
        """Some rows; ``held`` are columns that have been decoded."""
        twin = copy.copy(self)
        twin._source = _CompleteRows(self, held, None if rows.all() else rows)
        twin.n_rows = twin._source.n_rows
        return twin

    @speaks
    def column(self, name: str) -> Any:
        """The column of that name: Arrow, or an array of objects where a frame mixes types."""
        if not self.has(name):
            self.check_name(name)
        self._check_plain([name])
        return self._source.column(name)

    def batches(
        self, columns: Iterable[str] | None = None, rows: int = _ROWS
    ) -> Iterator[pa.RecordBatch]:
        """Batches of the table, in the same types throughout; can be called again.

        Parameters
        ----------
        columns : iterable of str, optional
            Default: all that hold plain values.
        rows : int
            Most rows of a batch.
        """
        with speaking_as("Table"):  # errors come as the batches are read
            names = self.plain_names if columns is None else list(dict.fromkeys(columns))
            for name in names if columns is not None else ():
                self.check_name(name)
            self._check_plain(names)
            kinds = {name: value_type(self.types[name]) for name in names}
            yield from self._source.batches(kinds, rows)

    @speaks
    def fingerprint(self) -> Fingerprint:
        """SHA-256 of the file's bytes; of a frame, of its values."""
        digest = hashlib.sha256()
        if self._files is None:
            _hash_values(digest, self.batches())
            return Fingerprint(digest.hexdigest(), f"the values of {self.n_rows:,} rows")
        root, paths = self._files.root, self._files.paths
        if root.is_file():
            return Fingerprint(*_hash_file(root))
        if paths == [root]:
            paths = sorted(path for path in root.rglob("*") if path.is_file())
        for path in paths:
            digest.update(str(path.relative_to(root)).encode())
            digest.update(_hash_file(path)[0].encode())
        return Fingerprint(digest.hexdigest(), f"the names and bytes of its {len(paths)} files")

    def _check_plain(self, names: list[str]) -> None:
        for name in names:
            if not is_plain(self.types[name]):
                raise refused(name, str(self.types[name]))


class _OfColumns(dict[str, Any]):
    """Types or kinds of columns by name; those of parts of dates are found, but not listed."""

    def __init__(self, columns: Mapping[str, Any], with_parts: Mapping[str, Any]):
        super().__init__(columns)
        self._with_parts = with_parts

    def __missing__(self, name: str) -> Any:
        return self._with_parts[name]


class _CompleteRows:
    """Some rows of a table (None for all), and all rows of some of its columns in memory."""

    def __init__(self, table: Table, held: dict[str, Any], rows: np.ndarray | None):
        self._table, self._held, self._rows = table, held, rows
        self.types = table.types
        self.n_rows = table.n_rows if rows is None else int(np.count_nonzero(rows))
        self._complete = {name: self._kept(column) for name, column in held.items()}

    def column(self, name: str) -> Any:
        if name in self._complete:
            return self._complete[name]
        return self._kept(self._table.column(name))

    def _kept(self, column: Any) -> Any:
        if self._rows is None:
            return column
        if isinstance(column, np.ndarray):
            return column[self._rows]
        return column.filter(pa.array(self._rows))

    def batches(self, kinds: dict[str, Any], rows: int) -> Iterator[pa.RecordBatch]:
        read = [name for name in kinds if name not in self._held]
        start = 0
        for batch in self._table.batches(read or list(kinds), rows):
            stop = start + batch.num_rows
            columns = [
                self._held[name][start:stop] if name in self._held else batch.column(name)
                for name in kinds
            ]
            whole = batch_of(columns, kinds)
            if self._rows is None:
                yield whole
            elif self._rows[start:stop].any():
                yield whole.filter(pa.array(self._rows[start:stop]))
            start = stop


def _has_value(column: Any) -> np.ndarray:
    """Which rows have a value; nan counts as missing."""
    if isinstance(column, np.ndarray):
        return ~missing_objects(column)
    missing = pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))
    return ~np.asarray(missing)


# --- fingerprints -------------------------------------------------------------------------------


def _hash_file(path: Path) -> tuple[str, str]:
    size = path.stat().st_size
    with path.open("rb") as file:
        if size <= WHOLE:
            return hashlib.file_digest(file, "sha256").hexdigest(), f"its {size:,} bytes"
        digest = hashlib.sha256(str(size).encode() + file.read(_END))
        file.seek(-_END, 2)
        digest.update(file.read(_END))
    return digest.hexdigest(), f"its size, {size:,} bytes, and its first and last {_END >> 20} MB"


def _hash_values(digest: Any, batches: Iterator[pa.RecordBatch]) -> None:
    for batch in batches:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            digest.update(f"{name} {column.type} ".encode())
            digest.update(repr(python_values(column)).encode("utf-8", "surrogatepass"))


# --- opening --------------------------------------------------------------------------------------


@speaks
def open_table(
    source: Any,
    *,
    types: Mapping[str, str] | None = None,
    table: str | None = None,
    encoding: str | None = None,
) -> Table:
    """A table from a path or a frame.

    What a file is shows in its content, not in its name. Text (CSV, JSON), Excel and DuckDB are
    read once, checked and kept column by column in a temporary file without a name, so that they
    may be larger than memory; Parquet and Arrow files are read where they are.

    CSV: the separator (comma, semicolon, tab or bar) is the one that the header has most of; a
    column without a name is called ``column 3``; names that occur twice are refused. Columns are
    whole numbers, numbers, ISO dates and times, true/false, or else text, whatever order the rows
    are in. Whole numbers with a leading zero and those beyond 64 bits are text. Missing are an
    empty field and what pandas takes for it (NA, N/A, NaN, null, None, ...), and ``?``, ``-`` and
    ``.`` in a column whose other values are all numbers, dates or truth values. Text is read as
    numbers or dates where every value is one as people write them (``$1,000``, ``Jun 12 1998``);
    the table's ``readings`` list these columns.

    Parts of dates are columns, too, that can be named: ``day.year``, ``day.month``,
    ``day.weekday`` and ``day.hour``.

    Parameters
    ----------
    source : path, data frame (pandas, Polars, Arrow) or ndarray
        Path of a CSV or TSV file (also .gz), Parquet file or folder of such files, Feather or
        Arrow file or stream, JSON (lines or an array), Excel or DuckDB file; a pattern such as
        ``data/*.csv`` of files with the same columns; or ``-``, standard input. A pipe is copied
        to a temporary file first.
    types : dict from name to {"text", "category", "integer", "number", "date", "bool"}, optional
        What columns are, where that is not what they look like. A category is kept as text. Texts
        such as ``$1,000`` are numbers where a number is asked for.
    table : str, optional
        Of a DuckDB file: the name of a table, or one SELECT. Of an Excel file: the sheet.
    encoding : str, optional
        Of a text file. Default: UTF-8, or UTF-16 where a byte order mark says so.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from holdtrue.tables import open_table
    >>> frame = pa.table({"zip": [501, 10001], "y": [0.5, 1]})
    >>> table = open_table(frame, types={"zip": "text"})
    >>> table.kinds
    {'zip': 'category', 'y': 'number'}
    >>> table.column("zip").to_pylist()
    ['501', '10001']
    """
    wanted = dict(types or {})
    for name, kind in wanted.items():
        check_choice(f"the type of column {name!r}", kind, text_types.WANTED)
    if isinstance(source, (str, Path)):
        source = found_files(source)
    if isinstance(source, Files):
        opened = _open_files(source, wanted, table, encoding)
    else:
        _only_for("table", table, "DuckDB files")
        _only_for("encoding", encoding, "text files")
        frame, readings = as_written(Frame(source), wanted, only_wanted=True)
        description = f"{type(source).__module__.split('.')[0]} {type(source).__name__}"
        opened = Table(frame, description, None, _known(wanted, frame.types), readings)
    for name in wanted:
        opened.check_name(name)
    return opened


def _open_files(
    files: Files, types: dict[str, str], table: str | None, encoding: str | None
) -> Table:
    label = _format(files.paths[0], encoding)
    for path in files.paths[1:]:
        if (other := _format(path, encoding)) != label:
            raise InputError(
                f"files of one table must be of one kind. {files.paths[0].name} is {label} and "
                f"{path.name} is {other}."
            )
    if len(files.paths) > 1 and label == "DuckDB":
        raise InputError(
            f"{files.name!r} matches {len(files.paths)} files of the kind {label}, which are read "
            "one at a time. Name one."
        )
    if label not in ("DuckDB", "Excel"):
        _only_for("table", table, "DuckDB and Excel files")
    if label not in ("CSV", "JSON"):
        _only_for("encoding", encoding, "text files")
    path, wanted = files.paths[0], dict(types)
    source: Source
    readings: dict[str, Reading] = {}
    place: Place | None = None
    is_spilled = label in ("CSV", "Excel", "JSON", "DuckDB")
    if label == "Parquet":
        source = ParquetFiles(files.root, files.paths if files.root != path else None)
    elif not is_spilled:
        source = ArrowFiles(files.paths, is_stream=label == "Arrow stream")
    else:
        try:
            if label in ("CSV", "Excel"):
                texts, separator = files.paths, "\t" if ".tsv" in path.suffixes else None
                if label == "Excel":
                    folder, separator = TemporaryFolder(), ","
                    texts = [sheet_as_csv(book, table, folder.path) for book in files.paths]
                    files = files._replace(folders=(*files.folders, folder))
                reader = Delimited(texts, types=types, encoding=encoding, separator=separator)
                source, readings = as_written(reader.read(), types)
                place = reader.place
                if reader.has_commas:
                    wanted |= {name: "comma" for name in types if types[name] == "number"}
            elif label == "JSON":
                source = JsonRows(files.paths, encoding=encoding).read()
                source, readings = as_written(source, types)
            else:
                source = read_duckdb(path, table)
        except OSError as error:
            if isinstance(error, SpokenError):
                raise
            raise InputError(
                f"{path.name} cannot be read, or kept in {tempfile.gettempdir()} "
                f"({first_line(error)}). If the disk is full, set TMPDIR to a folder with room."
            ) from error
    if label not in _READ_AS_WRITTEN:
        source, readings = as_written(source, types, only_wanted=True)
    if not source.n_rows:
        raise InputError(f"{table or files.name} has no rows.")
    several = f", {len(files.paths)} files" if len(files.paths) > 1 else ""
    name = f"{files.name} ({label}{', folder' if path.is_dir() else several})"
    opened = Table(source, name, files, _known(wanted, source.types), readings, place)
    is_string = pa.types.is_string
    for name in _known(wanted, source.types):
        if is_spilled and is_string(source.types[name]) and not is_string(opened.types[name]):
            opened.column(name)  # what cannot be read as wanted is refused now
    return opened


def _format(path: Path, encoding: str | None) -> str:
    """What a file is, by its first bytes; that text is JSON shows in its name, too."""
    label = binary_format(path)
    if label is not None:
        return label
    if {".jsonl", ".ndjson", ".json"} & set(path.suffixes):
        return "JSON"
    start = next(TextFile(path, encoding).chunks(1 << 12), b"")
    return "JSON" if looks_like_json(start) else "CSV"


def first_names(source: str) -> list[str]:
    """Names of the columns, from the beginning of a file; none if it cannot be read."""
    readers: dict[str, Callable[[Path], Iterable[str]]] = {
        "CSV": lambda path: Delimited([path], types={}).names,
        "JSON": lambda path: JsonRows([path]).first_keys(),
        "Parquet": lambda path: ParquetFiles(path).types,
        "Arrow": lambda path: ArrowFiles([path], is_stream=False).types,
    }
    if source == STANDARD_INPUT:
        return []
    try:
        path = found_files(source).paths[0]
        label = _format(path, None)
        return list(readers[label](path)) if label in readers else []
    except (ValueError, OSError):
        return []


def _only_for(name: str, value: Any, what: str) -> None:
    if value is not None:
        raise InputError(f"{name} is for {what} only. Got {value!r}. Leave it out.")


def _known(wanted: Mapping[str, str], types: Mapping[str, Any]) -> dict[str, str]:
    return {name: kind for name, kind in wanted.items() if name in types}
