"""`Table`: columns of a file or a frame, of which one column or one batch is in memory."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdtrue.columns.values import is_plain, missing_objects, python_values, refused, type_kind
from holdtrue.errors import InputError, did_you_mean, speaking_as, speaks
from holdtrue.tables import text_types
from holdtrue.tables.date_parts import date_parts
from holdtrue.tables.files import Files
from holdtrue.tables.spill import widened

# Files above this size are told apart by their size and their ends.
WHOLE = 1 << 30
_END = 1 << 24
_ROWS = 1 << 16
_LISTED = 20  # most names in a message


class Fingerprint(NamedTuple):
    """What tells the data of one run from those of another."""

    digest: str  # SHA-256, in hexadecimal
    covers: str  # of what, in words

    def __str__(self) -> str:
        return f"sha256 {self.digest} of {self.covers}"


class Source(Protocol):
    """Where the columns are."""

    types: dict[str, Any]
    n_rows: int

    def column(self, name: str) -> Any:
        """The whole column."""

    def batches(self, kinds: dict[str, Any], rows: int) -> Iterator[pa.RecordBatch]:
        """Batches of at most ``rows`` rows, of these columns in these types."""


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
    readings : dict from name to Reading
        Columns of text that were read as numbers or dates, and how.
    path : Path or None
        Of a file or a folder; of a pattern, of the folder that its files are in.
    """

    @speaks
    def __init__(
        self, source: Source, description: str, files: Files | None, wanted: Mapping[str, str]
    ):
        self.description, self._files = description, files
        self.path = None if files is None else files.root
        self._source = source
        # Times of day are read as durations: Python and NumPy have no time of day in nanoseconds.
        times = {name: "duration" for name, kind in source.types.items() if _is_time(kind)}
        wanted = self._wanted = {**times, **wanted}
        self.n_rows = source.n_rows
        types = {
            name: _wanted_type(kind, wanted[name]) if name in wanted else kind
            for name, kind in source.types.items()
        }
        self._parts = date_parts(types)
        of_parts = {name: date.type for name, date in self._parts.items()}
        kinds, part_kinds = (
            {name: type_kind(kind) for name, kind in one.items()} for one in (types, of_parts)
        )
        self.types: dict[str, Any] = _OfColumns(types, of_parts)
        self.kinds: dict[str, str] = _OfColumns(kinds, part_kinds)
        self.readings: Mapping[str, Any] = getattr(source, "readings", {})
        self._set_names(source.types)

    def _set_names(self, names: Iterable[str]) -> None:
        self.names = list(names)
        seen = set(self.names)
        self._known = frozenset(
            [*self.names, *(part for part, date in self._parts.items() if date.column in seen)]
        )

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
        """Whether the table has a column of that name, or a date of which it is a part."""
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
        """The same table, of which only these columns are seen."""
        twin = copy.copy(self)
        twin._set_names(names)
        for name in twin.names:
            self.check_name(name)
        return twin

    @speaks
    def complete(
        self, names: Iterable[str], *, nonzero: Iterable[str] = ()
    ) -> tuple[Table, dict[str, int]]:
        """The rows that have a value in each of these columns, and how many rows lack one.

        These columns are decoded here and stay in memory.

        Parameters
        ----------
        names : iterable of str
        nonzero : iterable of str
            Those of them in which 0 counts as no value: weights.

        Returns
        -------
        table : Table
        n_missing : dict from name to int
            Rows without a value in that column; nan counts as none.
        """
        held = {name: self.column(name) for name in names}
        if not held:
            return self, {}
        present = {name: _has_value(column) for name, column in held.items()}
        for name in nonzero:
            present[name] &= np.asarray(held[name].fill_null(0)) != 0
        for name in held:
            if not present[name].any():
                raise InputError(f"column {name!r} has no value in any row. Name another.")
        rows = np.logical_and.reduce(list(present.values()))
        if not rows.any():
            raise InputError(f"no row has a value in all of {', '.join(map(repr, held))}.")
        twin = copy.copy(self)
        twin._source = _CompleteRows(self, held, None if rows.all() else rows)
        twin._wanted, twin.n_rows = {}, twin._source.n_rows
        return twin, {name: int(np.count_nonzero(~mask)) for name, mask in present.items()}

    @speaks
    def column(self, name: str) -> Any:
        """The column of that name: Arrow, or an array of objects where a frame mixes types."""
        self.check_name(name)
        self._check_plain([name])
        if self._is_part(name):
            date = self._parts[name]
            return date.of(self.column(date.column))
        column = self._source.column(name)
        if name not in self._wanted:
            return column
        return self._as_wanted(name, column, 0)

    def _is_part(self, name: str) -> bool:
        """Whether a column is made of dates here, and not by the table that some rows are of."""
        return name in self._parts and not isinstance(self._source, _CompleteRows)

    def batches(
        self, columns: Iterable[str] | None = None, rows: int = _ROWS
    ) -> Iterator[pa.RecordBatch]:
        """Batches of at most ``rows`` rows, in the same types throughout; can be called again.

        Parameters
        ----------
        columns : iterable of str, optional
            Default: all that hold plain values.
        rows : int
        """
        with speaking_as("Table"):  # errors come as the batches are read
            yield from self._batches(columns, rows)

    def _batches(self, columns: Iterable[str] | None, rows: int) -> Iterator[pa.RecordBatch]:
        if columns is None:
            names = self.plain_names
        else:
            names = list(dict.fromkeys(columns))
            for name in names:
                self.check_name(name)
            self._check_plain(names)
        dates = {name: self._parts[name] for name in names if self._is_part(name)}
        stored = [dates[name].column if name in dates else name for name in names]
        kinds = {name: _decoded(self._source.types[name]) for name in stored}
        done = 0
        for batch in self._source.batches(kinds, rows):
            if self._wanted or dates:
                columns = {
                    name: one_array(self._as_wanted(name, column, done))
                    if name in self._wanted
                    else column
                    for name, column in zip(kinds, batch.columns, strict=True)
                }
                arrays = [
                    dates[name].of(columns[dates[name].column]) if name in dates else columns[name]
                    for name in names
                ]
                batch = pa.RecordBatch.from_arrays(arrays, names)
            done += batch.num_rows
            yield batch

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

    def _as_wanted(self, name: str, column: Any, first_row: int) -> Any:
        """A column in the type that the caller asked for; what does not fit is named."""
        wanted, kind = self._wanted[name], self.types[name]
        if isinstance(column, np.ndarray):
            column = as_text(name, column)
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        done: list[pa.Array] = []
        for chunk in chunks:
            try:
                done.append(_cast(chunk, wanted, kind))
            except pa.ArrowInvalid as error:
                bad = _first_bad(chunk, wanted, kind)
                row = first_row + sum(map(len, done)) + bad + 1
                raise InputError(
                    f"column {name!r} of {self.description} cannot be read as "
                    f"{wanted!r}. Got {chunk[bad].as_py()!r} in row {row:,}. Mend it, or read the "
                    "column as 'text'."
                ) from error
        return pa.chunked_array(done, type=kind)


class _OfColumns(dict[str, Any]):
    """Types or kinds of columns by name, and of the parts of dates where they are asked for."""

    def __init__(self, columns: Mapping[str, Any], parts: Mapping[str, Any]):
        super().__init__(columns)
        self._parts = parts

    def __missing__(self, name: str) -> Any:
        return self._parts[name]


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
        schema = pa.schema(list(kinds.items()))
        read = [name for name in kinds if name not in self._held]
        start = 0
        for batch in self._table.batches(read or list(kinds), rows):
            stop = start + batch.num_rows
            columns = []
            for name, kind in kinds.items():
                column = self._held[name][start:stop] if name in self._held else batch.column(name)
                if isinstance(column, np.ndarray):
                    column = as_text(name, column)
                columns.append(one_array(widened(column, kind)))
            whole = pa.RecordBatch.from_arrays(columns, schema=schema)
            yield whole if self._rows is None else whole.filter(pa.array(self._rows[start:stop]))
            start = stop


def _has_value(column: Any) -> np.ndarray:
    """Which rows have a value; nan is none."""
    if isinstance(column, np.ndarray):
        return ~missing_objects(column)
    missing = pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))
    return ~np.asarray(missing)


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


def one_array(column: Any) -> Any:
    """A chunked array as one array."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _decoded(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


# --- types that the caller asked for --------------------------------------------------------------


def _is_time(kind: Any) -> bool:
    return bool(pa.types.is_time(_decoded(kind)))


def _wanted_type(kind: Any, wanted: str) -> Any:
    """Arrow type of a column that is wanted as such; the stored one if that fits."""
    kind = _decoded(kind)
    if wanted == "duration":
        return pa.duration(kind.unit)
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
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.type == kind:
        return column
    if wanted == "duration":
        return column.cast(f"int{column.type.bit_width}").cast(pa.int64()).view(kind)
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if is_text and wanted not in ("text", "category"):
        text = column.cast(pa.string())
        if wanted == "bool":
            return text_types.yes_or_no(text)
        return text_types.converted(text, wanted if wanted != "date" else "timestamp")
    try:
        return column.cast(kind)
    except pa.ArrowNotImplementedError as error:
        raise pa.ArrowInvalid(str(error)) from error


def _first_bad(column: Any, wanted: str, kind: Any) -> int:
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
