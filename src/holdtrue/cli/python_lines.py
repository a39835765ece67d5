"""The lines of Python that do what a command does, for the end of its answer."""

from __future__ import annotations

import ast
import inspect
import os
from pathlib import Path
from typing import Any, NamedTuple

import holdtrue
from holdtrue.cli.ask import Data
from holdtrue.errors import shown
from holdtrue.tables import open_table

_WIDTH = 88
# What programs may use: modules under a short name, and names by their module.
_SHORT = {"np": "numpy", "pa": "pyarrow"}
_NAMES = {
    "holdtrue": holdtrue.__all__,
    "holdtrue.compare.field": ["named_models"],
    "holdtrue.skops_files": ["load_skops"],
    "holdtrue.tables": ["moments_of", "open_table", "rows_of"],
}


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
