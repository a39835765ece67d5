"""`holdtrue compare`: models on the same left-out domains, or rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdtrue.cli.answer import Answer, answered, kept_warnings, repeated_rows, without_values
from holdtrue.cli.ask import Ask, Data
from holdtrue.cli.python_lines import (
    Name,
    call,
    narrowed_lines,
    opened_line,
    program,
    without_folders,
)
from holdtrue.compare import Comparison, compare_models
from holdtrue.compare.comparison import SHARE_WRONG, SQUARED_ERROR
from holdtrue.compare.field import fit_with_groups, named_models
from holdtrue.errors import InputError
from holdtrue.report.answers import columns_notes, compare_summary
from holdtrue.skops_files import UnfitFile, load_skops
from holdtrue.tables.encode import TableRows, rows_of

if TYPE_CHECKING:
    from holdtrue.deployed import SavedModel


def answer(
    ask: Ask,
    target: str,
    domain: str | None,
    *,
    domain_order: str,
    target_type: str,
    models: str | None,
    model: list[str] | None,
    scoring: str | None,
    checkpoint: str | None,
    alpha: float,
) -> Answer:
    """Models on the same left-out domains, or rows; ``model`` are files of further ones."""
    data = ask.open(("--target", target), ("--domain", domain), date_parts=True)
    kind = data.target_kind(target, target_type)
    in_time = data.time_notes(domain, domain_order)
    if domain is None and data.weight is not None:
        raise InputError("--weights in compare needs --domain. Leave it out, or name a domain.")
    if not 0 < alpha < 1:
        raise InputError(f"--alpha must lie between 0 and 1. Got {alpha:g}.")
    names = None if models is None else [name.strip() for name in models.split(",")]
    field = named_models(names, is_classes=not kind.is_numeric)
    files = {Path(file).stem: file for file in model or ()}
    if len(files) < len(model or ()):
        listed = ", ".join(model or ())
        raise InputError(f"models of --model must have different names. Got {listed}.")
    field |= _loaded(files, field)
    options: dict[str, Any] = {
        "cv": None if domain_order == "any" else "time",
        "scoring": scoring,
        "level": 1 - alpha,
        "random_state": ask.seed,
    }
    with kept_warnings() as notes:
        rows = repeated_rows(
            rows_of(
                data.table,
                target,
                domain,
                target_type=kind.target_type,
                leave_out=data.dropped,
            ),
            data,
        )
        contest = compare_models(
            field,
            rows.X,
            rows.y,
            groups=rows.groups,
            target_type=kind.target_type,
            checkpoint=checkpoint,
            **options,
        )
    columns, named_units = rows.columns, contest.units
    if data.no_values:
        columns = tuple(without_values(column) for column in columns)
        named_units = tuple(f"{domain} {i}" for i in range(1, len(contest.units) + 1))
    shown_path = replace(contest, units=named_units).to_path()
    settings = {
        "target": target,
        "domain": None if domain is None else f"{domain} ({len(contest.units)})",
        "domain order": None if domain_order == "any" else domain_order,
        "rows": f"{len(rows.y):,}",
        "features": len(rows.feature_names),
        "models": ", ".join(contest.names),
        "scoring": contest.scoring,
    }
    return answered(
        compare_summary(shown_path, target, domain),
        data,
        settings,
        [*in_time, *columns_notes(columns), *notes],
        kind=kind,
        deployed=partial(_model, data, target, domain, field, rows, contest),
        python=_lines(ask, data, target, domain, names, files, target_type, **options),
    )


def _loaded(files: dict[str, str], field: dict[str, Any]) -> dict[str, Any]:
    """The user's models, which are fitted anew, from their files."""
    models: dict[str, Any] = {}
    for name, file in files.items():
        if name in field:
            raise InputError(f"{name!r} is a model of the field (--model). Rename {file}.")
        try:
            models[name] = load_skops(file)
        except UnfitFile as error:
            raise InputError(f"{file} {error}") from error
    return models


def _model(
    data: Data,
    target: str,
    domain: str | None,
    field: dict[str, Any],
    rows: TableRows,
    contest: Comparison,
) -> SavedModel:
    """The recommended model of a contest."""
    from holdtrue.deployed import Promise
    from holdtrue.deployed.build import promise_of, saved_model
    from holdtrue.deployed.slim import on_needed_columns, slim

    name = contest.recommended
    fitted = fit_with_groups(field[name], rows.X, rows.y, rows.groups)
    model, columns = on_needed_columns(slim(fitted), rows.columns)
    if contest.scoring in (SHARE_WRONG, SQUARED_ERROR):
        promise = Promise.from_contest(contest, name, domain)
    else:  # a scorer judges models; a promise is one that labelled rows can keep
        promise = promise_of(
            field[name], rows.X, rows.y, rows.groups, domain, random_state=data.seed
        )
    return saved_model(
        name, model, columns, data.table, target, promise, sample_weight=data.weights
    )


def _lines(
    ask: Ask,
    data: Data,
    target: str,
    domain: str | None,
    names: list[str] | None,
    files: dict[str, str],
    target_type: str,
    **options: Any,
) -> str:
    """The same in Python; nothing where rows are repeated."""
    if data.weight:
        return ""
    imports = {"holdtrue": ["compare_models"], "holdtrue.tables": ["open_table", "rows_of"]}
    models: Any = names
    lines = []
    if files:
        imports["holdtrue.compare.field"] = ["named_models"]
        imports["holdtrue.skops_files"] = ["load_skops"]
        is_classes = not data.target_kind(target, target_type).is_numeric
        lines = [f"models = named_models({names!r}, is_classes={is_classes})"]
        lines += [f"models[{k!r}] = load_skops({without_folders(v)!r})" for k, v in files.items()]
        models = Name("models")
    rows = call(
        rows_of,
        Name("table"),
        target,
        domain=domain,
        target_type=target_type,
        leave_out=tuple(data.dropped),
    )
    groups = {} if domain is None else {"groups": Name("rows.groups")}
    given = (models, Name("rows.X"), Name("rows.y"))
    contest = call(compare_models, *given, **groups, target_type=target_type, **options)
    return program(
        imports,
        opened_line(ask, [target, *([domain] if domain else [])]),
        *narrowed_lines(ask, data),
        f"rows = {rows}",
        *lines,
        f"print({contest})",
    )
