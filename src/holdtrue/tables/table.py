"""`Table`: a file or a frame, read one column or one batch at a time."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterable, Iterator, Mapping
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
from holdtrue.errors import InputError, did_you_mean, speaking_as, speaks
from holdtrue.tables.computed import ComputedColumns, date_parts, wanted_columns
from holdtrue.tables.files import Files
from holdtrue.tables.source import Place, Source, batch_of

# Of larger files the fingerprint covers the size, the beginning and the end.
WHOLE = 1 << 30
_END = 1 << 24
_ROWS = 1 << 16
_LISTED = 20  # most names in a message


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

        nan counts as missing and, in the columns ``nonzero``, so does 0: they are weights. These
        columns are decoded here and stay in memory.
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
        twin.n_rows = twin._source.n_rows
        return twin, {name: int(np.count_nonzero(~mask)) for name, mask in present.items()}

    @speaks
    def column(self, name: str) -> Any:
        """The column of that name: Arrow, or an array of objects where a frame mixes types."""
        self.check_name(name)
        self._check_plain([name])
        return self._source.column(name)

    def batches(
        self, columns: Iterable[str] | None = None, rows: int = _ROWS
    ) -> Iterator[pa.RecordBatch]:
        """Batches of at most ``rows`` rows, in the same types throughout; can be called again.

        Without ``columns``, of all that hold plain values.
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
    """Types or kinds of columns by name, and of the parts of dates where they are asked for."""

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
            yield whole if self._rows is None else whole.filter(pa.array(self._rows[start:stop]))
            start = stop


def _has_value(column: Any) -> np.ndarray:
    """Which rows have a value; nan counts as missing."""
    if isinstance(column, np.ndarray):
        return ~missing_objects(column)
    missing = pc.is_null(column, nan_is_null=pa.types.is_floating(column.type))
    return ~np.asarray(missing)


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
