"""`holdtrue compare`: models, the user's own too, on the same left-out domains, or rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import Pipeline

from holdtrue.cli.answer import (
    Answer,
    Name,
    answered,
    call,
    kept_model,
    kept_warnings,
    opened_lines,
    program,
    promise_on,
    without_values,
)
from holdtrue.cli.ask import Ask, Data
from holdtrue.cli.write import without_folders
from holdtrue.compare import Comparison, compare_models
from holdtrue.compare.comparison import SHARE_WRONG, SQUARED_ERROR
from holdtrue.compare.contest import row_splitter
from holdtrue.compare.field import fit_with_groups, named_models
from holdtrue.deployed import Promise, SavedModel
from holdtrue.deployed.contents import on_needed_columns, slim
from holdtrue.errors import InputError, MissingFileError, MissingPackageError, did_you_mean
from holdtrue.files import UnfitFile, load_skops
from holdtrue.report.answers.compare import compare_summary
from holdtrue.report.answers.select import columns_notes
from holdtrue.tables.encoder import TableRows, rows_of


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
    data = ask.open(target, domain, "--domain", target_type=target_type, date_parts=True)
    in_time = data.time_notes(domain_order)
    if domain is None and ask.weights is not None:
        raise InputError("--weights in compare needs --domain. Leave it out, or name a domain.")
    if not 0 < alpha < 1:
        raise InputError(f"--alpha must lie between 0 and 1. Got {alpha:g}.")
    if checkpoint is not None and Path(checkpoint).is_dir():
        raise InputError(f"--checkpoint must be a file. Got the folder {checkpoint!r}.")
    names = None if models is None else [name.strip() for name in models.split(",")]
    field = named_models(names, is_classes=not data.kind.is_numeric)
    own_field = _own_models(model or [], field)
    options: dict[str, Any] = {
        "cv": None if domain_order == "any" else "time",
        "scoring": scoring,
        "level": 1 - alpha,
        "random_state": ask.seed,
    }
    with kept_warnings() as notes:
        rows = data.encoded_rows()
        raw: dict[str, list[str]] = {}  # columns that models of the user read as they are
        for name, mine in own_field.items():
            columns = _raw_columns(name, mine, data, rows.feature_names)
            if columns is not None:
                raw[name] = columns
            else:
                field[name] = mine
        if raw and rows.groups is None:  # by default parts follow the columns that models read
            is_classes = not data.kind.is_numeric
            options["cv"] = row_splitter(rows.y, is_classes=is_classes, random_state=ask.seed)
        judged = {"groups": rows.groups, "target_type": data.kind.target_type, **options}
        contest = compare_models(field, rows.X, rows.y, checkpoint=checkpoint, **judged)
        for name, columns in raw.items():
            (frame,) = data.repeated(_raw_frame(data, columns))
            kept = None if checkpoint is None else f"{checkpoint}.{name}"
            alone = compare_models(
                {name: own_field[name]}, frame, rows.y, checkpoint=kept, **judged
            )
            contest = _joined(contest, alone)
    encoded, named_units = rows.columns, contest.units
    if ask.no_values:
        encoded = tuple(without_values(column) for column in encoded)
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
    is_own = contest.recommended in own_field
    summary = compare_summary(shown_path, target, domain, in_time=domain_order != "any")
    if is_own:
        theirs = f"{contest.recommended!r} is your own model, which --save does not keep."
        summary = replace(summary, answer=f"{summary.answer} {theirs}")
    return answered(
        summary,
        data,
        settings,
        [*in_time, *columns_notes(encoded, has_domains=data.groups is not None), *notes],
        deployed=None if is_own else partial(_model, data, field, rows, contest),
        python=_lines(data, names, model or [], raw, target_type, **options),
    )


def _joined(contest: Comparison, other: Comparison) -> Comparison:
    """Both contests as one; they left out the same rows."""
    return replace(
        contest,
        names=contest.names + other.names,
        errors=np.vstack([contest.errors, other.errors]),
        n_features=np.append(contest.n_features, other.n_features),
        seconds=np.append(contest.seconds, other.seconds),
    )


def _model(data: Data, field: dict[str, Any], rows: TableRows, contest: Comparison) -> SavedModel:
    """The recommended model of a contest."""
    name = contest.recommended
    fitted = fit_with_groups(field[name], rows.X, rows.y, rows.groups)
    model, columns = on_needed_columns(slim(fitted), rows.columns)
    if contest.scoring in (SHARE_WRONG, SQUARED_ERROR):
        promise = Promise.from_contest(contest, name, data.groups)
    else:  # a scorer judges models; a promise is one that labelled rows can keep
        promise = promise_on(data, field[name], rows.X, rows.y, rows.groups)
    return kept_model(data, name, model, columns, promise)


def _lines(
    data: Data,
    names: list[str] | None,
    files: list[str],
    raw: dict[str, list[str]],
    target_type: str,
    **options: Any,
) -> str:
    """Python code that does the same; empty where rows are repeated."""
    if data.ask.weights is not None:
        return ""
    models: Any = names
    lines, contests = [], []
    if files:
        is_classes = not data.kind.is_numeric
        lines = [f"models = named_models({names!r}, is_classes={is_classes})"]
        loads = {Path(file).stem: f"load_skops({without_folders(file)!r})" for file in files}
        lines += [f"models[{k!r}] = {v}" for k, v in loads.items() if k not in raw]
        models = Name("models")
    rows = call(
        rows_of,
        Name("table"),
        data.target,
        domain=data.groups,
        target_type=target_type,
        leave_out=tuple(data.dropped),
    )
    groups = {} if data.groups is None else {"groups": Name("rows.groups")}
    judged: dict[str, Any] = {**groups, "target_type": target_type, **options}
    for k, columns in raw.items():
        batches = f"pa.Table.from_batches(table.batches({columns!r}))"
        given = (Name(f"{{{k!r}: {loads[k]}}}"), Name(f"{batches}.to_pandas()"), Name("rows.y"))
        contests.append(call(compare_models, *given, **judged))
    contests.insert(0, call(compare_models, models, Name("rows.X"), Name("rows.y"), **judged))
    return program(
        *opened_lines(data),
        f"rows = {rows}",
        *lines,
        *(f"print({contest})" for contest in contests),
    )


# --- the user's own models ------------------------------------------------------------------------


def _own_models(files: Sequence[str], field: Collection[str]) -> dict[str, Any]:
    """Models by the names of their files; ``field`` are names that are taken."""
    models: dict[str, Any] = {}
    for file in files:
        name = Path(file).stem
        if name in models:
            listed = ", ".join(files)
            raise InputError(f"models of --model must have different names. Got {listed}.")
        if name in field:
            raise InputError(f"{name!r} is a model of the field (--model). Rename {file}.")
        if not Path(file).is_file():
            raise MissingFileError(f"no file {file!r} (--model). Pass a model in a .skops file.")
        try:
            models[name] = load_skops(file)
        except UnfitFile as error:
            raise InputError(f"{file} {error}") from error
    return models


def _raw_columns(name: str, model: Any, data: Data, features: Sequence[str]) -> list[str] | None:
    """Columns of the table that a model reads as they are; None: it takes the encoded numbers.

    A model that was fitted on named columns reads these. Another reads all columns if it picks some
    by name or begins with an encoder of categories. ``features`` are names of the encoded numbers.
    """
    needed = [str(each) for each in getattr(model, "feature_names_in_", ())]
    missing = [each for each in needed if not data.table.has(each)]
    if missing and set(needed) <= set(features):
        return None
    parts = [model, *model.get_params().values()] if hasattr(model, "get_params") else []
    by_name = [
        column
        for part in parts
        if isinstance(part, ColumnTransformer)
        for _, _, columns in part.transformers
        for column in ([columns] if isinstance(columns, str) else columns)
        if isinstance(column, str)
    ]
    missing = [each for each in needed or by_name if not data.table.has(each)]
    if missing:
        listed = ", ".join(f"{each!r}{did_you_mean(each, data.names)}" for each in missing)
        raise InputError(
            f"model {name!r} (--model) reads columns that {data.table.description} lacks: "
            f"{listed}. Rename the columns, or leave the model out."
        )
    if data.target in needed:
        raise InputError(f"model {name!r} (--model) was fitted on the target {data.target!r}.")
    first = model[0] if isinstance(model, Pipeline) else model
    takes_text = hasattr(first, "__sklearn_tags__") and (
        (tags := first.__sklearn_tags__().input_tags).categorical or tags.string
    )
    if needed or by_name or takes_text:
        return needed or [each for each in data.names if each in data.table.plain_names]
    return None


def _raw_frame(data: Data, names: Sequence[str]) -> Any:
    """Columns of the table as a pandas frame, which scikit-learn's pipelines read by name."""
    rows = pa.Table.from_batches(data.table.batches(names))
    try:
        return rows.to_pandas()
    except ImportError as error:
        raise MissingPackageError(
            "a model that reads columns by name (--model) needs pandas. Run `pip install pandas`."
        ) from error
