"""Files behind a name, their format, and how much may be unpacked from them.

A name is a path, a pattern such as ``data/*.parquet``, or ``-`` for standard input. What comes from
a pipe is copied to a file first: readers go over a table more than once.
"""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import stat
import sys
import tempfile
import time
import weakref
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from holdtrue.errors import InputError, MissingFileError, named
from holdtrue.tables.source import LIMIT_VARIABLE, spill_limit

FILES = (
    "a CSV, Parquet, Feather (Arrow), JSON, Excel or DuckDB file, a folder of Parquet files, or a "
    "pattern such as 'data/*.csv'"
)
STANDARD_INPUT = "-"
_BOOKS = {"xl/workbook.xml", "xl/workbook.bin", "content.xml"}  # in .xlsx, .xlsb and .ods
_OTHERS = {
    b"PK\x03\x04": "a zip file. Unpack it",
    b"\xd0\xcf\x11\xe0": "an old Office file. Save it as CSV, or call it .xls if it is Excel",
    b"BZh": "compressed by bzip2. Unpack it, or use gzip",
    b"\xfd7zXZ": "compressed by xz. Unpack it, or use gzip",
    b"\x28\xb5\x2f\xfd": "compressed by zstd. Unpack it, or use gzip",
    b"SQLite format 3": "an SQLite file. Export the table as CSV or Parquet",
    b"FEA1": "Feather of version 1. Write it again with a newer Arrow",
}
_FORMATS = {b"PAR1": "Parquet", b"ARROW1": "Arrow", b"\xff\xff\xff\xff": "Arrow stream"}
# What unpacks to more bytes than this, and than this many times those of its file, is refused.
_MAX_UNPACKED = 1 << 30
_MAX_RATIO = 200
_CHUNK = 1 << 20
_PATIENCE = 10.0  # seconds to wait for a program that writes


class Files(NamedTuple):
    """Files of one table."""

    paths: list[Path]  # one file or folder, or the files of a pattern in the order of their names
    name: str  # as it is shown: the last part of the path or pattern
    root: Path  # the file or folder, or the folder that all files of a pattern are in
    folders: tuple[TemporaryFolder, ...] = ()  # of copies, which live as long as this does


class TemporaryFolder:
    """A folder that is removed with this object, or as the program ends."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="holdtrue-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)


def found_files(name: str | Path) -> Files:
    """Files that a path or pattern matches."""
    if not str(name):  # as a path it would be the working folder
        raise MissingFileError(f"the name of the file is empty. Pass the path of {FILES}.")
    source = Path(name)
    if str(source) == STANDARD_INPUT:
        return _copied(source, sys.stdin.fileno(), "standard input")
    if not source.exists():
        if not glob.has_magic(str(source)):
            raise MissingFileError(f"no file {str(source)!r}. Pass the path of {FILES}.")
        matches = sorted(map(Path, glob.glob(str(source), recursive=True)))  # noqa: PTH207
        paths = [path for path in matches if path.is_file()]
        if not paths:
            raise MissingFileError(f"no file matches {str(source)!r}. Pass the path of {FILES}.")
        root = Path(os.path.commonpath([path.parent.absolute() for path in paths]))
        return Files([path.absolute() for path in paths], source.name, root)
    if source.is_file() or source.is_dir():
        return Files([source], source.name or str(source), source)
    if not stat.S_ISFIFO(source.stat().st_mode):
        raise InputError(f"{str(source)!r} is a device, not a file. Pass a file or a pipe.")
    # Without blocking: to open a FIFO would wait for a writer for ever.
    return _copied(source, os.open(source, os.O_RDONLY | os.O_NONBLOCK), "pipe")


def _copied(source: Path, descriptor: int, name: str) -> Files:
    """Copy what a pipe (FIFO, ``<(...)``, standard input) gives to a file.

    A pipe that no program opens for writing within ten seconds is refused.
    """
    is_input = str(source) == STANDARD_INPUT
    what = name if is_input else f"the pipe {str(source)!r}"
    if is_input and os.isatty(descriptor):
        raise InputError("standard input is a terminal. Pipe a table to it, or name a file.")
    folder, limit = TemporaryFolder(), spill_limit()
    copy = folder.path / name
    deadline = time.monotonic() + (0 if is_input else _PATIENCE)
    with (
        copy.open("wb") as file,
        os.fdopen(descriptor, "rb", buffering=0, closefd=not is_input) as pipe,
    ):
        while True:
            chunk = pipe.read(_CHUNK)  # None: a writer has nothing yet; b"": there is no writer
            if chunk:
                file.write(chunk)
            elif chunk is None:
                os.set_blocking(descriptor, True)
            elif file.tell():
                return Files([copy], name, copy, (folder,))
            elif time.monotonic() > deadline:
                raise InputError(
                    f"no program writes to {what}, or it wrote nothing. Start it first, or pass "
                    "a file."
                )
            else:
                time.sleep(0.02)
            if file.tell() > limit:
                raise InputError(
                    f"{what} gives more than {limit / 1e9:.3g} GB, as much as is allowed. Pass a "
                    f"file, or set TMPDIR or {LIMIT_VARIABLE}."
                )


def binary_format(path: Path) -> str | None:
    """What a file is, by its first bytes; None if it looks like text."""
    if path.is_dir():
        return "Parquet"
    try:
        with path.open("rb") as file:
            start = file.read(32)
    except OSError as error:
        raise InputError(
            f"{str(path)!r} cannot be opened ({error.strerror}). Pass {FILES}."
        ) from error
    if not start:
        raise InputError(f"{path.name} is empty. Pass {FILES}.")
    if start.startswith(b"\xd0\xcf\x11\xe0") and path.suffix.lower() in (".xls", ""):
        return "Excel"
    if start.startswith(b"PK\x03\x04"):
        with contextlib.suppress(zipfile.BadZipFile), zipfile.ZipFile(path) as archive:
            if _BOOKS & set(archive.namelist()):
                return "Excel"
    for mark, what in _OTHERS.items():
        if start.startswith(mark):
            raise InputError(f"{path.name} is {what}.")
    if start[8:12] == b"DUCK":
        return "DuckDB"
    return next((name for mark, name in _FORMATS.items() if start.startswith(mark)), None)


def check_unpacked(name: str, n_unpacked: float, n_packed: int, advice: str) -> None:
    """Refuse a file that unpacks to far more than a table does."""
    if n_unpacked > max(_MAX_UNPACKED, _MAX_RATIO * n_packed):
        raise InputError(
            f"{name} unpacks to more than {max(_MAX_UNPACKED, _MAX_RATIO * n_packed) / 1e9:.2g} "
            f"GB, over {_MAX_RATIO} times its size, which no table does. {advice} if it is meant "
            "to be so."
        )


def check_same_columns(
    first: str, expected: Sequence[str], other: str, names: Iterable[str]
) -> None:
    """Refuse a file whose columns are not those of the first, and show the difference."""
    names = list(names)
    missing = [name for name in expected if name not in set(names)]
    new = [name for name in names if name not in set(expected)]
    if missing or new:
        raise InputError(
            f"files of one table must have the same columns. {other} differs from {first}. "
            f"Missing: {named(missing)}. New: {named(new)}."
        )
