"""What every experiment and benchmark shares: run → CSV → table and figure.

A run writes one CSV. Its first lines say what made it (command, seed, versions); tables and
figures are made from the CSV alone, so that each can be made again without the run.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from threadpoolctl import threadpool_limits

T = TypeVar("T")
Rows = list[dict[str, Any]]


def results(family: str) -> Path:
    """Folder of a family's committed results."""
    return Path(__file__).parent / "results" / family


def one_thread() -> None:
    """Let this process, and those that it starts, use one thread each."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    threadpool_limits(1)


def asked_options(
    doc: str | None, parts: Mapping[str, Any], results: Path, **further: dict[str, Any]
) -> argparse.Namespace:
    """Options of a script: which parts to run, the seed, where to write, and further ones.

    The script has one thread from here on: CPU seconds are then comparable.

    Parameters
    ----------
    doc : str
        What the script does.
    parts : mapping
        Its parts by name; ``options.parts`` has those to run, none with ``--report``.
    results : Path
        Where results go unless ``--out`` says otherwise.
    further : dict
        Arguments of `add_argument`, by the option's name.
    """
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(parts)}; default all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=results, help="folder of the results")
    parser.add_argument("--report", action="store_true", help="only make tables and figures")
    for name, arguments in further.items():
        parser.add_argument(f"--{name}", **arguments)
    options = parser.parse_args()
    unknown = set(options.parts) - set(parts)
    if unknown:
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(parts)}")
    options.parts = [] if options.report else options.parts or list(parts)
    one_thread()
    return options


def versions(packages: Iterable[str]) -> str:
    """Versions of Python and of the packages, in one line."""
    found = [f"python {platform.python_version()}"]
    for package in ("holdtrue", "numpy", "scipy", "scikit-learn", *packages):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} absent")
    return ", ".join(found)


def write_csv(
    path: Path,
    rows: Sequence[Mapping[str, Any]],
    *,
    command: str,
    seed: int,
    packages: Iterable[str] = (),
) -> None:
    """Write the rows whole or not at all, below three comment lines that say what made them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".draft")
    with draft.open("w", newline="", encoding="utf-8") as file:
        file.write(f"# command: {command}\n# seed: {seed}\n# versions: {versions(packages)}\n")
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()})
    draft.replace(path)


def read_csv(path: Path) -> list[dict[str, Any]]:
    """Rows of a CSV written by `write_csv`; what looks like a number is one."""
    with path.open(encoding="utf-8") as file:
        lines = [line for line in file if not line.startswith("#")]
    return [{k: _number(v) for k, v in row.items()} for row in csv.DictReader(lines)]


def _number(text: str) -> Any:
    try:
        return int(text) if text.lstrip("-").isdigit() else float(text)
    except ValueError:
        return text


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table; floats with three digits that matter."""

    def cell(value: Any) -> str:
        if not isinstance(value, float):
            return str(value)
        return f"{value:.2f}" if 0.1 <= abs(value) < 100 else f"{value:.3g}"

    lines = [header, ["---"] * len(header), *([cell(value) for value in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def data_file(name: str, source: str) -> Path:
    """Path of a data file in $HOLDTRUE_DATA or ../shared/data; the error names where to get it."""
    folders = [os.environ.get("HOLDTRUE_DATA"), Path(__file__).parents[2] / "shared" / "data"]
    for folder in folders:
        if folder and (Path(folder) / name).exists():
            return Path(folder) / name
    raise FileNotFoundError(
        f"{name}: not found. Set HOLDTRUE_DATA to the folder that holds it. Source: {source}."
    )


def progress(items: Iterable[T], total: int, label: str) -> Iterator[T]:
    """The items, with a bar in the terminal that says how many are done."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn()) as bar:
        yield from bar.track(items, total=total, description=label)
