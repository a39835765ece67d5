"""A bar for long work, on a terminal only."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from typing import TypeVar

# Set to True where no bar is wanted, such as by a command's --quiet.
silent: ContextVar[bool] = ContextVar("silent", default=False)

_PATIENCE = 1.0  # seconds of work before a bar is worth showing

Piece = TypeVar("Piece")


def progress(label: str, pieces: Iterable[Piece], total: int) -> Iterator[Piece]:
    """The pieces of work one by one, with a bar that shows how many of ``total`` are done.

    Nothing is shown in the first second, where standard error is not a terminal, and if `silent`.
    """
    is_shown = sys.stderr.isatty() and not silent.get()
    return _with_bar(label, pieces, total) if is_shown else iter(pieces)


def _with_bar(label: str, pieces: Iterable[Piece], total: int) -> Iterator[Piece]:
    width = max(10, min(shutil.get_terminal_size().columns, 100) - len(label) - 22)
    start, shown = time.monotonic(), -1
    try:
        for done, piece in enumerate(pieces, 1):
            yield piece
            filled = width * done // max(total, 1)
            if filled != shown and time.monotonic() - start > _PATIENCE:
                shown = filled
                bar = "#" * filled + "." * (width - filled)
                print(f"\r{label} {bar} {done}/{total}", end="", file=sys.stderr, flush=True)
    finally:
        if shown >= 0:
            print(file=sys.stderr)
