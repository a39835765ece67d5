"""Where a summary goes: files that are written whole or not at all, standard output, terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from holdtrue.files import written_whole
from holdtrue.report.render import to_csv, to_html, to_markdown
from holdtrue.report.summary import Summary
from holdtrue.report.terminal import show

__all__ = ["Outputs", "check_output", "save"]

_STDOUT = "-"
_TERMINAL_ROWS = 20


@dataclass(frozen=True)
class Outputs:
    """Outputs that were asked for, checked when this is made: before any work.

    Parameters
    ----------
    who : str
        Who asks, for the messages.
    out, json, csv : str, optional
        Names of files; ``"-"`` is standard output. ``out`` is HTML, Markdown or JSON by its ending.
    top : int, optional
        Rows of the table. Default: all in files, 20 on the terminal.
    quiet : bool
        Nothing on the terminal.
    force : bool
        Whether files that exist are replaced.
    source : str
        The input, which is never replaced.
    """

    who: str
    out: str | None = None
    json: str | None = None
    csv: str | None = None
    top: int | None = None
    quiet: bool = False
    force: bool = False
    source: str = ""

    def __post_init__(self) -> None:
        if self.out is not None and Path(self.out).suffix not in (".html", ".md", ".json"):
            raise ValueError(
                f"{self.who}: --out must end in .html, .md or .json. Got {self.out!r}."
            )
        if self.json == self.csv == _STDOUT:
            raise ValueError(
                f"{self.who}: --json and --csv cannot both go to standard output. "
                "Name a file for one of them."
            )
        files = [name for name in (self.out, self.json, self.csv) if name and name != _STDOUT]
        if len({Path(name).resolve() for name in files}) < len(files):
            raise ValueError(f"{self.who}: each output needs a file of its own. Got {files}.")
        for name in files:
            check_output(self.who, name, force=self.force, source=self.source)

    def write(self, summary: Summary) -> None:
        """Write and show the summary; every text is made before the first file is touched."""
        if self.top is not None:
            table = replace(summary.table, rows=summary.table.rows[: self.top])
            summary = replace(summary, table=table)
        texts: dict[str, Callable[[], str]] = {
            ".html": lambda: to_html([summary]),
            ".md": lambda: to_markdown(summary),
            ".json": summary.to_json,
            ".csv": lambda: to_csv(summary.table),
        }
        wanted = (self.out, Path(self.out or "").suffix), (self.json, ".json"), (self.csv, ".csv")
        made = {name: texts[kind]() for name, kind in wanted if name}
        piped = made.pop(_STDOUT, None)
        for name, text in made.items():
            save(self.who, name, text, force=self.force)
        if piped is not None:
            sys.stdout.write(piped)
            sys.stdout.flush()
        elif not self.quiet:
            show(summary, self.top or _TERMINAL_ROWS)
        if not self.quiet:
            for name in made:
                print(f"wrote {name}", file=sys.stderr)


def check_output(who: str, name: str, *, force: bool, source: str = "") -> None:
    """Refuse a file that cannot or must not be written."""
    path = Path(name)
    if path.is_dir():
        raise ValueError(f"{who}: {name} is a folder. Name a file in it.")
    if not path.parent.is_dir():
        raise ValueError(f"{who}: no folder {str(path.parent)!r} for {path.name}. Make it first.")
    if not path.exists():
        return
    if source and Path(source).exists() and path.samefile(source):
        raise ValueError(f"{who}: {name} is the input. Choose another name for the output.")
    if not force:
        raise ValueError(
            f"{who}: {name} exists already. Pass --force to replace it, or another name."
        )


def save(who: str, name: str, text: str, *, force: bool) -> None:
    """Write a text whole or not at all."""
    check_output(who, name, force=force)
    try:
        with written_whole(name) as file:
            # A lone surrogate, as in a file name that is no Unicode, is shown as such.
            file.write(text.encode("utf-8", errors="backslashreplace"))
    except OSError as error:
        told = error.strerror or error
        raise OSError(f"{who}: {name} cannot be written ({told}).") from error
