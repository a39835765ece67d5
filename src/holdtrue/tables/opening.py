"""`open_table`: files and frames as one thing, a `Table`."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from holdtrue.errors import InputError, SpokenError, check_choice, first_line, speaks
from holdtrue.tables import text_types
from holdtrue.tables.columnar import ArrowFiles, ParquetFiles, read_arrow_stream
from holdtrue.tables.computed import Reading, as_written
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
from holdtrue.tables.source import Frame, Place, Source
from holdtrue.tables.table import Table
from holdtrue.tables.text import TextFile


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
        What columns are, where that is not what they look like. A category is kept as text.
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
        opened = _open_files(found_files(Path(source)), wanted, table, encoding)
    else:
        _only_for("table", table, "DuckDB files")
        _only_for("encoding", encoding, "text files")
        frame = Frame(source)
        description = f"{type(source).__module__.split('.')[0]} {type(source).__name__}"
        opened = Table(frame, description, None, _known(wanted, frame.types))
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
    if len(files.paths) > 1 and label in ("DuckDB", "Arrow stream"):
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
    is_spilled = label not in ("Parquet", "Arrow")
    if label == "Parquet":
        source = ParquetFiles(files.root, files.paths if files.root != path else None)
    elif label == "Arrow":
        source = ArrowFiles(files.paths)
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
            elif label == "DuckDB":
                source = read_duckdb(path, table)
            else:
                source = read_arrow_stream(path)
        except OSError as error:
            if isinstance(error, SpokenError):
                raise
            raise InputError(
                f"{path.name} cannot be read, or kept in {tempfile.gettempdir()} "
                f"({first_line(error)}). If the disk is full, set TMPDIR to a folder with room."
            ) from error
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
        "Arrow": lambda path: ArrowFiles([path]).types,
    }
    if source == STANDARD_INPUT:
        return []
    try:
        path = found_files(Path(source)).paths[0]
        label = _format(path, None)
        return list(readers[label](path)) if label in readers else []
    except (ValueError, OSError):
        return []


def _only_for(name: str, value: Any, what: str) -> None:
    if value is not None:
        raise InputError(f"{name} is for {what} only. Got {value!r}. Leave it out.")


def _known(wanted: Mapping[str, str], types: Mapping[str, Any]) -> dict[str, str]:
    return {name: kind for name, kind in wanted.items() if name in types}
