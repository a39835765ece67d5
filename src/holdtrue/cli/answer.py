"""What a command found, the Python that does the same, and what answers of all commands share."""

from __future__ import annotations

import ast
import inspect
import platform
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from typing import Any, NamedTuple

import holdtrue
from holdtrue import __version__
from holdtrue.cli.ask import Data
from holdtrue.cli.write import without_folders
from holdtrue.deployed import Promise, SavedModel
from holdtrue.deployed.deploy import promise_of, saved_model
from holdtrue.errors import shown
from holdtrue.path import SelectionPath
from holdtrue.report.summary import Summary
from holdtrue.tables import open_table

_WIDTH = 88  # of a line of Python
# What programs may use: modules under a short name, and names by their module.
_SHORT = {"np": "numpy", "pa": "pyarrow"}
_NAMES = {
    "holdtrue": holdtrue.__all__,
    "holdtrue.compare.field": ["named_models"],
    "holdtrue.files": ["load_skops"],
    "holdtrue.tables": ["moments_of", "open_table", "rows_of"],
    "sklearn.model_selection": ["KFold", "StratifiedKFold"],
}


class Answer(NamedTuple):
    """What a command found."""

    summary: Summary
    # Gives the model behind the answer, for ``--save``
    deployed: Callable[[], SavedModel] | None = None


def answered(
    summary: Summary,
    data: Data,
    settings: dict[str, Any],
    notes: Sequence[tuple[str, str]],
    *,
    new_groups: str | None = None,
    deployed: Callable[[], SavedModel] | None = None,
    python: str = "",
) -> Answer:
    """The answer: how the target was read, the sentences of the summary, what new data are.

    ``settings`` say what was asked, in words; ``python`` are lines that do the same.
    """
    reading = data.kind.sentence(data.target, "--target-type {}")
    answer = f"{reading}. {summary.answer}" if reading else summary.answer
    if new_groups is not None:
        answer += f" New data are new groups: each value of {new_groups!r} is left out as a whole."
    summary = summary.with_notes([*data.notes, *notes], answer=answer)
    settings |= {"weights": data.ask.weights, "left out": ", ".join(data.dropped)}
    return Answer(completed(summary, data.table, settings, data.ask.seed, python), deployed)


def completed(
    summary: Summary, table: Any, settings: dict[str, Any], seed: int = 0, python: str = ""
) -> Summary:
    """The summary with what was asked and how to repeat it; settings of None are left out."""
    versions = {"holdtrue": __version__, "Python": platform.python_version()}
    versions |= {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "pyarrow")}
    return replace(
        summary,
        asked={
            key: f"{value:,}" if isinstance(value, int) else str(value)
            for key, value in {"data": table.description, **settings}.items()
            if value not in (None, "")
        },
        reproduce={
            "command": shlex.join(["holdtrue", *map(without_folders, sys.argv[1:])]),
            "versions": ", ".join(f"{name} {number}" for name, number in versions.items()),
            "seed": str(seed),
            "data": str(table.fingerprint()),
            **({"python": python} if python else {}),
        },
    )


@contextmanager
def kept_warnings() -> Iterator[list[tuple[str, str]]]:
    """Collect the warnings of a fit as notes of the answer, instead of printing them."""
    notes: list[tuple[str, str]] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            yield notes
        finally:
            notes += [("A warning of the fit", str(warning.message)) for warning in caught]


def promise_on(data: Data, model: Any, X: Any, y: Any, labels: Any) -> Promise:
    """What a model promises, from fits without parts of these rows or groups."""
    return promise_of(model, X, y, labels, data.groups, random_state=data.ask.seed)


def kept_model(
    data: Data, name: str, model: Any, columns: Any, promise: Promise, **more: Any
) -> SavedModel:
    """A fitted model as it is saved, with its baseline from the rows and their weights."""
    more["sample_weight"] = data.weights
    return saved_model(name, model, columns, data.table, data.target, promise, **more)


def without_values(column: Any) -> Any:
    """How a column was encoded, its levels numbered instead of named."""
    features = column.features
    if column.levels:
        features = tuple(f"{column.name}=value {i}" for i in range(1, len(features) + 1))
    note = column.note.split(": its only value")[0]
    if note != column.note:
        note += ": it has one value"
    return replace(column, features=features, note=note)


def without_classes(path: SelectionPath, target: str) -> SelectionPath:
    """The path with the classes of the target numbered instead of named."""
    evidence: Any = path.evidence
    changed: dict[str, Any] = {
        "targets": tuple(f"{target} {i + 1}" for i in range(len(evidence.targets)))
    }
    if hasattr(evidence, "notes"):
        changed["notes"] = tuple(map(without_examples, evidence.notes))
    return replace(path, evidence=replace(evidence, **changed))


def without_examples(note: str) -> str:
    """A note of a fit without the class that it names as an example."""
    return re.sub(r" a class, such as .*\. Their effects", " a class. Their effects", note)


# --- the same in Python ---------------------------------------------------------------------------


class Name(NamedTuple):
    """A Python expression, to be written as it is instead of as a value."""

    text: str


def program(*lines: str) -> str:
    """The lines, after imports of the names that they use."""
    code = "\n".join(lines)
    used = {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)}
    imports = [f"import {module} as {name}" for name, module in _SHORT.items() if name in used]
    for module, names in _NAMES.items():
        if needed := sorted(used & set(names)):
            imports.append(f"from {module} import {', '.join(needed)}")
    return "\n".join([*imports, "", code])


def opened_lines(data: Data, *, all_columns: bool = False) -> list[str]:
    """Lines that open the table as the command did: its complete rows, and the columns kept."""
    ask = data.ask
    options = {"types": dict(ask.types) or None, "table": ask.table, "encoding": ask.encoding}
    line = call(open_table, without_folders(ask.file), **options)
    nonzero = f", nonzero={[ask.weights]!r}" if ask.weights else ""
    complete = f".complete({list(data.incomplete)!r}{nonzero})" if data.incomplete else ""
    lines = [f"table{', _' if complete else ''} = {line}{complete}"]
    if ask.weights:
        lines.append(f"weights = table.column({ask.weights!r}).cast('double').to_numpy()")
    if not all_columns and sorted(data.table.names) != sorted(ask.opened.names):
        lines.append(f"table = table.only({data.table.names!r})")
    return lines


def call(function: Any, *given: Any, **options: Any) -> str:
    """A call of a function or class, without the options that have their default."""
    name, parameters = function.__name__, inspect.signature(function).parameters
    arguments = [_written(value) for value in given]
    arguments += [
        f"{option}={_written(value)}"
        for option, value in options.items()
        if isinstance(value, Name) or value != parameters[option].default
    ]
    line = f"{name}({', '.join(arguments)})"
    if len(line) <= _WIDTH or not arguments:
        return line
    return "\n".join([f"{name}(", *(f"    {argument}," for argument in arguments), ")"])


def labels_line(variable: str, column: str) -> str:
    """The line that takes a column as labels."""
    return f"{variable} = np.array(table.column({column!r}).to_pylist())"


def _written(value: Any) -> str:
    return value.text if isinstance(value, Name) else shown(value)
