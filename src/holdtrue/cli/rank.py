"""`holdtrue rank`: columns by their loss on new rows, or on new groups."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline

from holdtrue.categories import GingerEncoder, GingerSelector, rank_columns
from holdtrue.cli.answer import (
    Answer,
    answered,
    kept_model,
    kept_warnings,
    labelled_rows,
    promise_on,
)
from holdtrue.cli.ask import Ask, Data
from holdtrue.cli.python_lines import Name, call, opened_lines, program
from holdtrue.compare.field import fit_with_groups
from holdtrue.deployed import SavedModel
from holdtrue.deployed.model import plain_rows
from holdtrue.deployed.slim import slim
from holdtrue.errors import InputError
from holdtrue.evidence import ColumnEvidence
from holdtrue.report.answers import rank_summary
from holdtrue.tables.column_summary import feature_columns

_MAX_BYTES = 1 << 31


def answer(
    ask: Ask,
    target: str,
    *,
    groups: str | None,
    target_type: str,
    engine: str | None,
    address: str | None,
    master: str | None,
    **options: Any,
) -> Answer:
    """Columns by their loss; ``options`` are `rank_columns`'s."""
    if engine is not None:
        from holdtrue.cli.on_engine import data_on_engine

        where = (engine, address, master)
        with data_on_engine(ask, *where, target, groups, target_type) as data:
            table: Any = data.table
            return _ranked(table.frame, data, options)
    for option, value in (("--address", address), ("--master", master)):
        if value is not None:
            raise InputError(f"{option} needs --engine. Name one, dask or spark.")
    data = ask.open(target, groups, target_type=target_type, date_parts=True)
    data.check_names()
    columns = data.table.only([*data.names, target, *([groups] if groups else [])])
    chosen = {name: options[name] for name in ("criterion", "min_skill")}
    python = _lines(data, groups=groups, target_type=target_type, **options)
    options["sample_weight"] = data.whole_weights("a row that is left out stands for one row")
    return _ranked(columns, data, options, deployed=partial(_model, data, **chosen), python=python)


def _ranked(columns: Any, data: Data, options: dict[str, Any], **more: Any) -> Answer:
    """Ranking of a Table, or of a frame on an engine, as an answer with ``more``."""
    options |= {"groups": data.groups, "target_type": data.kind.target_type}
    with kept_warnings() as notes:
        path = rank_columns(columns, data.target, **options).path
    notes += data.date_notes(path.names[: path.chosen_size])
    if data.ask.no_values:
        path = replace(path, evidence=replace(path.evidence_as(ColumnEvidence), shapes=()))
    settings = {
        "target": data.target,
        "groups": data.groups,
        "rows": f"{data.table.n_rows:,}",
        "columns": len(data.names),
        "judged by": path.unit,
    }
    return answered(rank_summary(path, data.target), data, settings, notes, **more)


def _model(data: Data, **settings: Any) -> SavedModel:
    """`GingerEncoder` and a linear model on the columns that predict.

    ``settings`` are those of `GingerSelector`. The choice of columns and the encoding are repeated
    in every part that makes the promise.
    """
    rows = plain_rows(pa.Table.from_batches(data.table.batches(data.names)))
    if rows.nbytes > _MAX_BYTES:
        raise InputError(
            f"{rows.num_rows:,} rows of {len(data.names):,} columns need {rows.nbytes / 2**30:.1f} "
            f"GB, above the limit of {_MAX_BYTES >> 30} GB of a model. Leave rows or columns out, "
            "or leave out --save."
        )
    linear, name = LogisticRegression(max_iter=1000), "logistic regression"
    if data.kind.is_numeric:
        linear, name = RidgeCV(np.logspace(-3, 5, 17)), "ridge regression"
    model = make_pipeline(
        GingerSelector(min_features=1, target_type=data.kind.target_type, **settings),
        GingerEncoder(target_type=data.kind.target_type, random_state=data.ask.seed),
        linear,
    )
    rows, y, labels = labelled_rows(data, rows)
    promise = promise_on(data, model, rows, y, labels)
    selector, encoder, estimator = fit_with_groups(model, rows, y, labels)
    kept = selector.get_feature_names_out().tolist()
    encoder = slim(encoder)
    encoder.feature_names_in_ = np.array(kept, dtype=object)
    columns = feature_columns(data.table.only(kept))
    name = f"GingerEncoder and {name}"
    return kept_model(data, name, estimator, columns, promise, encoder=encoder)


def _lines(data: Data, **options: Any) -> str:
    """The same in Python."""
    lines = opened_lines(data)
    if data.dropped:
        kept = f"[name for name in table.names if name not in {list(data.dropped)!r}]"
        lines.append(f"table = table.only({kept})")
    options |= {"sample_weight": Name("weights")} if data.ask.weights else {}
    return program(*lines, f"print({call(rank_columns, Name('table'), data.target, **options)})")
