"""Where an answer goes: files that are written whole or not at all, standard output, terminal."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holdtrue.errors import InputError
from holdtrue.files import written_whole
from holdtrue.report.render import to_csv, to_html, to_markdown
from holdtrue.report.summary import Summary
from holdtrue.report.terminal import show

_STDOUT = "-"
_FILES = ("out", "json", "csv", "save")
_TERMINAL_ROWS = 20


@dataclass(frozen=True)
class Outputs:
    """Outputs that were asked for; checked on construction, before any work."""

    # out, json, csv: names of files; ``"-"`` is standard output. ``out`` is HTML, Markdown or JSON
    # by its ending.
    out: str | None = None
    json: str | None = None
    csv: str | None = None
    top: int | None = None  # rows of the table. Default: all in files, 20 on the terminal.
    quiet: bool = False  # nothing on the terminal
    force: bool = False  # whether files that exist are replaced
    source: str = ""  # the input, which is never replaced
    save: str | None = None  # file for the model behind the answer
    reading: tuple[tuple[str, str], ...] = ()  # options with which the input is read

    def __post_init__(self) -> None:
        if self.out is not None and Path(self.out).suffix not in (".html", ".md", ".json"):
            raise InputError(f"--out must end in .html, .md or .json. Got {self.out!r}.")
        if self.save is not None and Path(self.save).suffix != ".skops":
            raise InputError(f"--save must end in .skops. Got {self.save!r}.")
        if self.json == self.csv == _STDOUT:
            raise InputError(
                "--json and --csv cannot both go to standard output. Name a file for one of them."
            )
        outputs = (self.out, self.json, self.csv, self.save)
        files = [name for name in outputs if name and name != _STDOUT]
        if len({Path(name).resolve() for name in files}) < len(files):
            raise InputError(f"each output needs a file of its own. Got {files}.")
        for name in files:
            check_output(name, force=self.force, source=self.source)

    @classmethod
    def of_targets(cls, targets: Sequence[str], **options: Any) -> list[Outputs]:
        """Outputs for each target; with several, the files are called ``report-price.html``."""
        if len(targets) == 1:
            return [cls(**options)]
        names = [key for key, value in options.items() if key in _FILES and value is not None]
        if _STDOUT in [options[key] for key in names]:
            raise InputError(
                f"standard output takes the answer for one target. Got {len(targets)}. Name a file."
            )
        each = []
        for target in targets:
            label = re.sub(r"[^\w.]+", "_", target)
            paths = {key: Path(options[key]) for key in names}
            named = {k: str(p.with_stem(f"{p.stem}-{label}")) for k, p in paths.items()}
            each.append(cls(**{**options, **named}))
        return each

    def write(self, summary: Summary, deployed: Callable[[], Any] | None = None) -> None:
        """Write and show the summary; every text is made before the first file is touched.

        ``deployed`` gives the model behind it, where one is to be kept.
        """
        model = None
        if self.save is not None and deployed is not None:
            model = replace(deployed(), made_by=dict(summary.reproduce))
            kept = f"Kept in {Path(self.save).name}: {model.label}."
            error, _, _ = str(model.promise).rpartition(", ")  # without a model, after the comma
            if error not in summary.answer:
                kept += (
                    f" Promised with it, from fits without parts of the data: a {model.promise}."
                )
            if model.promise.error > model.promise.without:
                kept += " That is worse than without a model: do not rely on it."
            rows = repr(without_folders(self.source))
            if self.reading:
                rows = f"model.read({rows}, {', '.join(f'{k}={v!r}' for k, v in self.reading)})"
            lines = [
                *([python, ""] if (python := summary.reproduce.get("python")) else []),
                "from holdtrue import load_model",
                "",
                f"model = load_model({without_folders(self.save)!r})",
                f"print(model.predict({rows}))",
            ]
            summary = replace(
                summary,
                answer=f"{summary.answer} {kept}",
                reproduce={**summary.reproduce, "python": "\n".join(lines)},
            )
        if self.top is not None:
            shown = summary.table.rows[: self.top]
            left = len(summary.table.rows) - len(shown)
            table = replace(summary.table, rows=shown, n_left_out=left)
            summary = replace(summary, table=table)
        texts: dict[str, Callable[[], str]] = {
            ".html": lambda: to_html([summary]),
            ".md": lambda: to_markdown(summary),
            ".json": summary.to_json,
            ".csv": lambda: to_csv(summary.table),
        }
        wanted = (self.out, Path(self.out or "").suffix), (self.json, ".json"), (self.csv, ".csv")
        contents = {name: texts[kind]() for name, kind in wanted if name}
        piped = contents.pop(_STDOUT, None)
        if model is not None and self.save is not None:
            check_output(self.save, force=self.force)
            model.save(self.save)
        for name, text in contents.items():
            save(name, text, force=self.force)
        if piped is not None:
            sys.stdout.write(piped)
            sys.stdout.flush()
        elif not self.quiet:
            show(_with_folders(summary), self.top or _TERMINAL_ROWS)
        if not self.quiet:
            for name in [*contents, *([self.save] if model and self.save else [])]:
                print(f"wrote {name}", file=sys.stderr)


def _with_folders(summary: Summary) -> Summary:
    """The summary with paths as they were typed: for the terminal, where its lines are to run."""
    reproduce = dict(summary.reproduce)
    for typed in sys.argv[1:] if "python" in reproduce else []:
        reproduce["python"] = reproduce["python"].replace(repr(without_folders(typed)), repr(typed))
    return replace(summary, reproduce=reproduce)


def without_folders(argument: str) -> str:
    """An absolute path as seen from the working folder, or its name alone if it lies elsewhere.

    Reports are passed on and should not show the folders of their author.
    """
    option, equals, path = (
        argument.rpartition("=") if argument.startswith("-") else ("", "", argument)
    )
    if not Path(path).is_absolute():
        return argument
    inside = os.path.relpath(path)
    shown = inside if not inside.startswith(os.pardir) else Path(path).name
    return f"{option}{equals}{shown}"


def check_output(name: str, *, force: bool, source: str = "") -> None:
    """Refuse a file that cannot or must not be written."""
    path = Path(name)
    if path.is_dir():
        raise InputError(f"{name} is a folder. Name a file in it.")
    if not path.parent.is_dir():
        raise InputError(f"no folder {str(path.parent)!r} for {path.name}. Make it first.")
    if not path.exists():
        return
    if source and Path(source).exists() and path.samefile(source):
        raise InputError(f"{name} is the input. Choose another name for the output.")
    if not force:
        raise InputError(f"{name} exists already. Pass --force to replace it, or another name.")


def save(name: str, content: str | bytes, *, force: bool) -> None:
    """Write a text, or bytes, whole or not at all."""
    check_output(name, force=force)
    if isinstance(content, str):
        # A lone surrogate, as in a file name that is not Unicode, is shown as such.
        content = content.encode("utf-8", errors="backslashreplace")
    with written_whole(name) as file:
        file.write(content)
