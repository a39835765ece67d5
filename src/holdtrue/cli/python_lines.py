"""The lines of Python that do what a command does, for the end of its answer."""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from holdtrue.cli.ask import Ask, Data
from holdtrue.errors import shown
from holdtrue.targets import TargetKind

__all__ = [
    "compare_lines",
    "rank_lines",
    "select_lines",
    "size_lines",
    "transfer_lines",
    "without_folders",
]

_WIDTH = 88


class _Name(NamedTuple):
    """An expression that stands for itself, among values that are written as Python writes them."""

    text: str


def rank_lines(ask: Ask, data: Data, target: str, groups: str | None, **options: Any) -> str:
    """``holdtrue rank`` in Python."""
    from holdtrue.categories import rank_columns

    only = _narrowed(ask, data)
    if data.dropped:
        kept = f"[name for name in table.names if name not in {list(data.dropped)!r}]"
        only += [f"table = table.only({kept})"]
    options |= {"sample_weight": _Name("weights")} if data.weight else {}
    ranked = _call(rank_columns, _Name("table"), target, groups=groups, **options)
    return _program(
        {"holdtrue": ["rank_columns"], "holdtrue.tables": ["open_table"]},
        _opened(ask, [target, *([groups] if groups else [])]),
        *only,
        f"print({ranked})",
    )


def select_lines(
    ask: Ask, data: Data, target: str, domain: str, model: Any, target_type: str
) -> str:
    """``holdtrue select`` in Python; ``model`` has the settings."""
    from holdtrue.tables import moments_of

    sums = _call(
        moments_of,
        _Name("table"),
        target,
        domain,
        target_type=target_type,
        leave_out=tuple(data.dropped),
        **({"sample_weight": _Name("weights")} if data.weight else {}),
    )
    classes = ", classes=sums.classes" if hasattr(model, "classes_") else ""
    estimator = _call(type(model), **model.get_params())
    return _program(
        {"holdtrue": [type(model).__name__], "holdtrue.tables": ["moments_of", "open_table"]},
        _opened(ask, [target, domain]),
        *_narrowed(ask, data),
        f"sums = {sums}",
        f"model = {estimator}.fit_statistics(sums.moments{classes})",
        "print(model.feature_names_in_[model.support_], model.path_.reason)",
    )


def compare_lines(
    ask: Ask,
    data: Data,
    target: str,
    domain: str | None,
    names: list[str] | None,
    own: dict[str, str],
    kind: TargetKind,
    target_type: str,
    **options: Any,
) -> str:
    """``holdtrue compare`` in Python; ``own`` are the files of further models, by name."""
    from holdtrue.compare import compare_models
    from holdtrue.tables import rows_of

    imports = {"holdtrue": ["compare_models"], "holdtrue.tables": ["open_table", "rows_of"]}
    models: Any = names
    lines = []
    if own:
        imports["holdtrue.compare.field"] = ["named_models"]
        imports["holdtrue.skops_files"] = ["load_skops"]
        lines = [f"models = named_models({names!r}, is_classes={not kind.is_numeric})"]
        lines += [f"models[{k!r}] = load_skops({without_folders(v)!r})" for k, v in own.items()]
        models = _Name("models")
    rows = _call(
        rows_of,
        _Name("table"),
        target,
        domain=domain,
        target_type=target_type,
        leave_out=tuple(data.dropped),
    )
    contest = _call(
        compare_models,
        models,
        _Name("rows.X"),
        _Name("rows.y"),
        **({} if domain is None else {"groups": _Name("rows.groups")}),
        target_type=target_type,
        **options,
    )
    complete = [target, *([domain] if domain else [])]
    lines = [*_narrowed(ask, data), f"rows = {rows}", *lines, f"print({contest})"]
    return "" if data.weight else _program(imports, _opened(ask, complete), *lines)


def transfer_lines(
    ask: Ask,
    data: Data,
    target: str,
    groups: str | None,
    model: Any,
    sources: str,
    **options: Any,
) -> str:
    """``holdtrue transfer`` in Python; ``options`` are those of the pool."""
    if data.weight:
        return ""
    from holdtrue.sources import SourcePool

    settings = {k: v for k, v in model.get_params(deep=False).items() if k != "sources"}
    pool = _call(SourcePool, without_folders(sources), **options)
    pool = pool.replace("SourcePool(", "SourcePool.from_folder(", 1)
    estimator = _call(type(model), _Name("pool"), **settings)
    roles = [target, *([groups] if groups else [])]
    return _program(
        {
            "numpy as np": [],
            "holdtrue": [type(model).__name__, "SourcePool"],
            "holdtrue.tables": ["open_table"],
        },
        _opened(ask, roles),
        f"names = [name for name in table.names if name not in {[*roles, *data.dropped]!r}]",
        "X = np.column_stack([table.column(name) for name in names])",
        f"y = {_labels(target)}",
        *([f"groups = {_labels(groups)}"] if groups else []),
        f"pool = {pool}",
        f"model = {estimator}.fit(X, y{', groups=groups' if groups else ''})",
        "print(model.selected_, model.loo_errors_)",
    )


def size_lines(
    ask: Ask, x: list[str], y: str, groups: str | None, model: Any, *, unlabelled: bool
) -> str:
    """``holdtrue size`` in Python; ``unlabelled`` where some rows have inputs alone."""
    if ask.weights is not None:
        return ""
    options = ", groups=groups[known]" if groups else ""
    options += ", X_unlabeled=X[has_x & np.isnan(y)]" if unlabelled else ""
    return _program(
        {"numpy as np": [], "holdtrue": ["NestedRegressor"], "holdtrue.tables": ["open_table"]},
        _opened(ask, [groups] if groups else []),
        *([f"groups = {_labels(groups)}"] if groups else []),
        f"X = np.column_stack([table.column(name) for name in {x!r}]).astype(float)",
        f"y = np.asarray(table.column({y!r}), dtype=float)",
        "has_x = ~np.isnan(X).any(axis=1)",
        "known = has_x & ~np.isnan(y)",
        f"model = {_call(type(model), **model.get_params())}",
        f"model.fit(X[known], y[known]{options})",
        "print(model.n_terms_, model.path_.reason)",
    )


# --- pieces -------------------------------------------------------------------------------------


def _program(imports: dict[str, list[str]], *lines: str) -> str:
    """The whole program; ``imports`` are names by module."""
    heads = [
        f"from {module} import {', '.join(sorted(names))}" if names else f"import {module}"
        for module, names in imports.items()
    ]
    return "\n".join([*heads, "", *lines])


def _opened(ask: Ask, complete: Sequence[str]) -> str:
    """The line that opens the table, without the rows that lack a target or group."""
    from holdtrue.tables import open_table

    options = {"types": dict(ask.types) or None, "table": ask.table, "encoding": ask.encoding}
    line = _call(open_table, without_folders(ask.file), **options)
    if ask.weights is not None:
        names = [*complete, ask.weights]
        return f"table, _ = {line}.complete({names!r}, nonzero={[ask.weights]!r})"
    return f"table, _ = {line}.complete({list(complete)!r})" if complete else f"table = {line}"


def _narrowed(ask: Ask, data: Data) -> list[str]:
    """Lines that take the weights, and leave the columns to choose from."""
    lines = []
    if data.weight:
        lines = [f"weights = table.column({data.weight!r}).cast('double').to_numpy()"]
    if sorted(data.table.names) != sorted(ask.opened.names):
        lines.append(f"table = table.only({data.table.names!r})")
    return lines


def _call(function: Any, *given: Any, **options: Any) -> str:
    """A call of a function or class, without the options that have their default."""
    name, parameters = function.__name__, inspect.signature(function).parameters
    arguments = [_written(value) for value in given]
    arguments += [
        f"{option}={_written(value)}"
        for option, value in options.items()
        if isinstance(value, _Name) or value != parameters[option].default
    ]
    line = f"{name}({', '.join(arguments)})"
    if len(line) <= _WIDTH or not arguments:
        return line
    return "\n".join([f"{name}(", *(f"    {argument}," for argument in arguments), ")"])


def _labels(name: str) -> str:
    return f"np.array(table.column({name!r}).to_pylist())"


def _written(value: Any) -> str:
    return value.text if isinstance(value, _Name) else shown(value)


def without_folders(argument: str) -> str:
    """An absolute path as seen from the working folder, or its name alone if it lies elsewhere.

    A report is passed on: it does not tell where its maker keeps files.
    """
    option, equals, path = (
        argument.rpartition("=") if argument.startswith("-") else ("", "", argument)
    )
    if not Path(path).is_absolute():
        return argument
    inside = os.path.relpath(path)
    shown = inside if not inside.startswith(os.pardir) else Path(path).name
    return f"{option}{equals}{shown}"
