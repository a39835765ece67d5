"""A bar for long work, on a terminal only."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Set to True where no bar is wanted, such as by a command's --quiet.
silent: ContextVar[bool] = ContextVar("silent", default=False)

_PATIENCE = 1.0  # seconds of work before a bar is worth showing


@contextmanager
def progress_bar(label: str, total: int) -> Iterator[Callable[[], None]]:
    """Give a function to call after each of ``total`` pieces of work.

    Nothing is shown in the first second, where standard error is not a terminal, and if `silent`.
    """
    if silent.get() or not sys.stderr.isatty():
        yield lambda: None
        return
    width = max(10, min(shutil.get_terminal_size().columns, 100) - len(label) - 22)
    start, done, shown = time.monotonic(), 0, -1

    def tick() -> None:
        nonlocal done, shown
        done += 1
        filled = width * done // max(total, 1)
        if filled != shown and time.monotonic() - start > _PATIENCE:
            shown = filled
            bar = "#" * filled + "." * (width - filled)
            print(f"\r{label} {bar} {done}/{total}", end="", file=sys.stderr, flush=True)

    try:
        yield tick
    finally:
        if shown >= 0:
            print(file=sys.stderr)
