"""`holdtrue size`: the number of terms that the points afford."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from holdtrue.cli.answer import (
    Answer,
    answered,
    call,
    kept_model,
    kept_warnings,
    labels_line,
    opened_lines,
    program,
    promise_on,
)
from holdtrue.cli.ask import MAX_REPEATED, Ask, Data
from holdtrue.deployed import SavedModel
from holdtrue.model_size import NestedRegressor
from holdtrue.report.answers.size import size_summary


def answer(
    ask: Ask,
    x: list[str],
    y: str,
    *,
    groups: str | None,
    basis: str,
    criterion: str | None,
    max_terms: int | None,
) -> Answer:
    """Number of terms that the points afford."""
    data = ask.open(y, groups, inputs=x)
    criterion = criterion or ("cv" if groups else "bayes")
    rows = data.numbers([*x, y], allow_missing=True)
    inputs, target = rows[:, :-1], rows[:, -1]
    has_inputs = ~np.isnan(inputs).any(axis=1)
    labelled = has_inputs & ~np.isnan(target)
    X, unlabelled = inputs[labelled], inputs[has_inputs & ~labelled]
    if data.weights is not None and data.weights.sum() <= MAX_REPEATED:
        unlabelled = unlabelled.repeat(np.ceil(data.weights[has_inputs & ~labelled]).astype(int), 0)
    model = NestedRegressor(
        basis,
        criterion=criterion,
        predict="chosen" if groups else "average",
        max_terms=max_terms,
        random_state=ask.seed,
    )
    with kept_warnings() as notes:
        model.fit(
            X,
            target[labelled],
            groups=data.labels(groups)[labelled] if groups else None,
            sample_weight=None if data.weights is None else data.weights[labelled],
            X_unlabeled=unlabelled if len(unlabelled) else None,
        )
    kept: Any = _model(data, x, model, X, labelled) if ask.is_saved else None
    summary = size_summary(
        model.path_,
        X,
        target[labelled],
        predict=partial(model.predict, return_std=groups is None),
        x_names=x,
        y_name=y,
        n_unlabelled=len(unlabelled),
        promise=kept and kept.promise,
    )
    if data.ask.no_values:
        summary = replace(summary, charts=[c for c in summary.charts if not _has_points(c)])
    n_without = int(np.count_nonzero(~has_inputs))
    if n_without:
        left_out = f"{n_without:,} of {len(rows):,} rows lack an input and are left out."
        notes.insert(0, ("Rows without inputs", left_out))
    asked = {
        "input": ", ".join(x),
        "target": y,
        "groups": groups,
        "points": int(labelled.sum()),
        "points without a target": len(unlabelled) or None,
        "basis": basis,
        "criterion": criterion,
    }
    return answered(
        summary,
        data,
        asked,
        notes,
        new_groups=groups,
        deployed=lambda: kept,
        python=_lines(data, x, model, unlabelled=len(unlabelled) > 0),
    )


def _has_points(chart: Any) -> bool:
    return any(series.look == "points" for series in getattr(chart, "series", ()))


def _model(data: Data, x: list[str], model: Any, X: np.ndarray, labelled: np.ndarray) -> SavedModel:
    """The average over sizes, or the chosen size; X has the inputs of the labelled rows."""
    table, _ = data.table.complete([*x, data.target])
    weights = None if data.weights is None else data.weights[labelled]
    data = replace(data, table=table, weights=weights)
    promise = promise_on(data, model, *data.labelled_rows(X))
    return kept_model(data, "NestedRegressor", model, data.number_columns(x), promise)


def _lines(data: Data, x: list[str], model: Any, *, unlabelled: bool) -> str:
    """Python code that does the same; ``unlabelled``: some rows have no target."""
    if data.ask.weights is not None:
        return ""
    groups = data.groups
    options = ", groups=groups[known]" if groups else ""
    options += ", X_unlabeled=X[has_x & np.isnan(y)]" if unlabelled else ""
    return program(
        *opened_lines(data, all_columns=True),
        *([labels_line("groups", groups)] if groups else []),
        f"X = np.column_stack([table.column(name) for name in {x!r}]).astype(float)",
        f"y = np.asarray(table.column({data.target!r}), dtype=float)",
        "has_x = ~np.isnan(X).any(axis=1)",
        "known = has_x & ~np.isnan(y)",
        f"model = {call(type(model), **model.get_params())}",
        f"model.fit(X[known], y[known]{options})",
        "print(model.n_terms_, model.path_.reason)",
    )
