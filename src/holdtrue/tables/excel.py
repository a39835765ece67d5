"""A sheet of an Excel file as text, so that its columns are typed as those of a CSV file are.

Excel types cells, not columns: what a column holds is decided from all of its cells, by the one
rule for text. Read by python-calamine, which also reads .xls, .xlsb and .ods.
"""

from __future__ import annotations

import csv
import zipfile
import zlib
from pathlib import Path
from typing import Any

from holdtrue.errors import InputError, MissingPackageError, did_you_mean
from holdtrue.tables.files import check_unpacked

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
