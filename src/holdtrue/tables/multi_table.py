"""Files with several tables, one of them named by ``table=``: DuckDB (plain SQL) and Excel."""

from __future__ import annotations

import csv
import zipfile
import zlib
from pathlib import Path
from typing import Any

from holdtrue.errors import InputError, MissingPackageError, did_you_mean, first_line
from holdtrue.tables.files import check_unpacked
from holdtrue.tables.source import Spill

# Nothing outside the file is read, written or loaded, whatever a query asks for.
_LOCKED: dict[str, Any] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "lock_configuration": "true",
}
_ROWS = 1 << 16


def read_duckdb(path: Path, table: str | None) -> Spill:
    """All rows of a table or view, by default the only one of the file, or of one SELECT.

    The query is run once, since a second run may give its rows in another order.
    """
    import duckdb

    from holdtrue.engine.database import arrow_reader

    try:
        connection = duckdb.connect(str(path), read_only=True, config=_LOCKED)
    except duckdb.Error as error:
        raise InputError(
            f"{path.name} cannot be opened as a DuckDB file ({first_line(error)}). Close the "
            "program that writes it, or open it with the version of DuckDB that wrote it."
        ) from error
    with connection:
        query = _query(path, connection, table)
        try:
            reader = arrow_reader(connection, query, _ROWS)
            names = list(reader.schema.names)
            repeated = sorted({name for name in names if names.count(name) > 1})
            if repeated:
                raise InputError(
                    f"column names must be distinct. The query gives {repeated[0]!r} "
                    f"{names.count(repeated[0])} times. Rename one with AS."
                )
            spill = Spill()
            for batch in reader:
                spill.append(batch)
        except (duckdb.Error, OSError) as error:
            raise InputError(
                f"DuckDB refuses the query on {path.name}: {first_line(error)}"
            ) from error
    return spill.finish({field.name: field.type for field in reader.schema})


def _query(path: Path, connection: Any, table: str | None) -> str:
    """The one SELECT to run."""
    import duckdb

    listing = connection.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() UNION ALL "
        "SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
    ).fetchall()
    tables = {
        name if schema == "main" else f"{schema}.{name}": (schema, name) for schema, name in listing
    }
    listed = ", ".join(map(repr, tables)) or "none"
    if table is None:
        if len(tables) != 1:
            raise InputError(
                f"{path.name} has {len(tables)} tables ({listed}). Pass the name of one, "
                "or a SELECT, as table= (--table)."
            )
        table = next(iter(tables))
    if table in tables:
        return "SELECT * FROM " + ".".join(_quoted(part) for part in tables[table])
    if len(table.split()) < 2:
        raise InputError(
            f"no table {table!r} in {path.name}, which has {listed}." + did_you_mean(table, tables)
        )
    try:
        statements = connection.extract_statements(table)
    except duckdb.Error as error:
        raise InputError(
            f"{table!r} is not a SELECT that DuckDB understands: {first_line(error)}"
        ) from error
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise InputError(f"table must be the name of a table or one SELECT. Got {table!r}.")
    return str(statements[0].query)


def _quoted(name: str) -> str:
    """A name as SQL writes it, whatever characters it holds."""
    return '"' + name.replace('"', '""') + '"'


# --- Excel ----------------------------------------------------------------------------------------

# Excel types cells, not columns: the sheet becomes text, so that what a column holds is decided
# from all of its cells, by the one rule for text. python-calamine also reads .xls, .xlsb and .ods.

_CHUNK = 1 << 20
_WRONG = frozenset(("#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!"))


def sheet_as_csv(path: Path, sheet: str | None, folder: Path) -> Path:
    """Write a sheet, by default the only one that is not empty, as CSV into the folder.

    Its first row of two or more cells is the header.
    """
    try:
        import python_calamine
    except ImportError as error:
        raise MissingPackageError(
            f"{path.name} is an Excel file, which needs python-calamine. Run "
            "`pip install 'holdtrue[excel]'`, or save the sheet as CSV."
        ) from error
    _check_zip(path)
    try:
        book = python_calamine.CalamineWorkbook.from_path(str(path))
        rows = _sheet(path, book, sheet)
    except (python_calamine.CalamineError, OSError) as error:
        raise InputError(
            f"{path.name} cannot be read as an Excel file ({error}). Open it in Excel and save it "
            "again, or save the sheet as CSV."
        ) from error
    used = sorted({j for row in rows.iter_rows() for j, cell in enumerate(row) if cell != ""})
    copy = folder / path.name
    with copy.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        n_written = 0
        for row in rows.iter_rows():
            cells = [_written(row[j]) for j in used]
            n_filled = sum(cell != "" for cell in cells)
            if n_filled > 1 or (n_filled and n_written):
                writer.writerow(cells)
                n_written += 1
    if not n_written:
        raise InputError(
            f"{path.name} has at most one column in sheet {rows.name!r}. Expected a row of names "
            "and rows of values below it."
        )
    return copy


def _sheet(path: Path, book: Any, sheet: str | None) -> Any:
    """The sheet to read."""
    names = book.sheet_names
    if sheet is not None and sheet not in names:
        listed = ", ".join(map(repr, names))
        raise InputError(
            f"no sheet {sheet!r} in {path.name}, which has {listed}." + did_you_mean(sheet, names)
        )
    sheets = {name: book.get_sheet_by_name(name) for name in ([sheet] if sheet else names)}
    filled = {name: rows for name, rows in sheets.items() if rows.height}
    if not filled:
        raise InputError(f"{path.name} has no rows{f' in sheet {sheet!r}' if sheet else ''}.")
    if len(filled) > 1:
        raise InputError(
            f"{path.name} has {len(filled)} sheets ({', '.join(map(repr, filled))}). Pass the name "
            "of one as table= (--table)."
        )
    return next(iter(filled.values()))


def _check_zip(path: Path) -> None:
    """Refuse a file that unpacks to far more than a table does."""
    if not zipfile.is_zipfile(path):
        return
    n_packed, n_unpacked = path.stat().st_size, 0
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                with archive.open(member) as file:
                    while chunk := file.read(_CHUNK):
                        n_unpacked += len(chunk)
                        check_unpacked(path.name, n_unpacked, n_packed, "Save the sheet as CSV")
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise InputError(
            f"{path.name} cannot be unpacked ({error}): it is damaged or has a password. Save it "
            "again, or save the sheet as CSV."
        ) from error


def _written(cell: Any) -> str:
    """A cell as CSV files have it."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    return "" if cell in _WRONG else str(cell)
