"""`holdtrue transfer`: trained models and columns that help a new task."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from holdtrue.cli.answer import (
    Answer,
    Name,
    answered,
    call,
    kept_model,
    kept_warnings,
    labels_line,
    opened_lines,
    program,
    promise_on,
    without_classes,
)
from holdtrue.cli.ask import Ask, Data
from holdtrue.cli.write import without_folders
from holdtrue.deployed import SavedModel
from holdtrue.deployed.contents import on_used_sources
from holdtrue.errors import InputError
from holdtrue.evidence import SourceEvidence
from holdtrue.report.answers.transfer import transfer_summary
from holdtrue.sources import GreedyTLClassifier, GreedyTLRegressor, SourcePool


def answer(
    ask: Ask,
    target: str,
    sources: str,
    *,
    groups: str | None,
    target_type: str,
    max_selected: str | None,
    lam: str,
    candidates: int | None,
    passthrough: bool,
    skip_broken: bool,
    allow_pickle: bool,
    cache: str | None,
) -> Answer:
    """Trained models and columns that help a new task."""
    settings: dict[str, Any] = {
        "lam": lam if lam == "loo" else _number("--lam", lam),
        "max_selected": max_selected
        if max_selected in (None, "loo")
        else _count("--max-selected", max_selected),
        "n_candidates": candidates,
        "passthrough": passthrough,
        "random_state": ask.seed,
    }
    data = ask.open(target, groups, target_type=target_type)
    data.check_names()
    if not Path(sources).is_dir():
        raise InputError(f"--sources must be a folder of models. Got {sources!r}.")
    if cache is not None and Path(cache).exists() and not Path(cache).is_dir():
        raise InputError(f"--cache must be a folder. Got {cache!r}.")
    # With names: a model that was fitted on named columns reads these, whatever their order.
    X = pa.table(dict(zip(data.names, data.numbers(data.names).T, strict=True)))
    y = data.labels(target)
    pool_options: dict[str, Any] = {
        "allow_pickle": allow_pickle,
        "on_error": "skip" if skip_broken else "raise",
        "cache": cache,
    }
    pool = SourcePool.from_folder(sources, **pool_options)
    model = (GreedyTLRegressor if data.kind.is_numeric else GreedyTLClassifier)(pool, **settings)
    subjects = data.labels(groups) if groups else None
    with kept_warnings() as notes:
        model.fit(X, y, groups=subjects, sample_weight=data.weights)
    evidence = model.path_.evidence_as(SourceEvidence)
    if not evidence.n_sources:
        why = notes[0][1] if notes else "it has none."
        raise InputError(f"no model in {sources} can be used: {why}")
    asked = {
        "target": target,
        "groups": groups,
        "sources": f"{evidence.n_sources:,} in {Path(sources).name or sources}",
        "rows": len(y),
        "columns": len(data.names),
        "lam": evidence.lam,
    }
    path = without_classes(model.path_, target) if data.ask.no_values else model.path_
    return answered(
        transfer_summary(path, target),
        data,
        asked,
        notes,
        new_groups=groups,
        deployed=partial(_model, data, model, X),
        python=_lines(data, model, sources, **pool_options),
    )


def _count(option: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"{option} must be a whole number of at least 1, or loo. Got {text!r}.")
    return int(text)


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"{option} must be a number or loo. Got {text!r}.") from error


def _model(data: Data, model: Any, X: pa.Table) -> SavedModel:
    """GreedyTL with the files of the sources that it uses."""
    slimmed, files = on_used_sources(model)
    promise = promise_on(data, model, *data.labelled_rows(X))
    columns = data.number_columns(data.names)
    sources = {file.name: file.read_bytes() for file in files}
    return kept_model(data, "GreedyTL", slimmed, columns, promise, sources=sources)


def _lines(data: Data, model: Any, sources: str, **options: Any) -> str:
    """Python code that does the same; ``options`` are those of the pool."""
    if data.ask.weights is not None:
        return ""
    groups = data.groups
    settings = {k: v for k, v in model.get_params(deep=False).items() if k != "sources"}
    pool = call(SourcePool, without_folders(sources), **options)
    pool = pool.replace("SourcePool(", "SourcePool.from_folder(", 1)
    return program(
        *opened_lines(data, all_columns=True),
        f"names = [name for name in table.names if name not in "
        f"{[*data.incomplete, *data.dropped]!r}]",
        "X = pa.table({name: table.column(name) for name in names})",
        labels_line("y", data.target),
        *([labels_line("groups", groups)] if groups else []),
        f"pool = {pool}",
        f"model = {call(type(model), Name('pool'), **settings)}"
        f".fit(X, y{', groups=groups' if groups else ''})",
        "print(model.selected_, model.loo_errors_)",
    )
