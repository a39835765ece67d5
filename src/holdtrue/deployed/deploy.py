"""From a model that was chosen to a `SavedModel`: its promise, then its last fit on all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from holdtrue.columns.values import python_values
from holdtrue.compare import compare_models
from holdtrue.compare.field import fit_with_groups
from holdtrue.deployed.contents import slim
from holdtrue.deployed.model import SavedModel
from holdtrue.deployed.promise import Promise
from holdtrue.errors import InputError, counted, speaks
from holdtrue.tables import Table, TableEncoder, open_table, rows_of
from holdtrue.tables.column_summary import FeatureColumn, as_numbers, stored_kind

_PARTS = 10  # of the rows, left out in turn


@speaks
def deploy(
    model: Any,
    data: Any,
    target: str,
    *,
    groups: str | None = None,
    target_type: str = "auto",
    max_levels: int = 20,
    random_state: Any = None,
) -> SavedModel:
    """A model fitted on a table, with the error to expect of it on new data.

    The columns are encoded by `TableEncoder`. The error comes from fits without parts of the rows,
    or of the groups, as in `compare_models`.

    Parameters
    ----------
    model : estimator
        Any that takes numbers. To be written to a file it must be one of holdtrue's, or of those
        that `compare_models` has by name.
    data : path, data frame (pandas, Polars, Arrow) or Table
    target : str
        Rows without it are left out.
    groups : str, optional
        Column of sites, people or years: new data are new ones.
    target_type : {"auto", "classes", "numeric"}
    max_levels : int
        As in `TableEncoder`.
    random_state : int, RandomState or None
        Draws the parts.

    Returns
    -------
    SavedModel

    Examples
    --------
    >>> import pandas as pd
    >>> from holdtrue import SteadyRidgeRegressor
    >>> from holdtrue.deployed import deploy
    >>> from holdtrue.datasets import make_domains
    >>> data = make_domains(n_domains=8, n_features=7, random_state=0)
    >>> rows = pd.DataFrame(data.X).add_prefix("lab ").assign(y=data.y, site=data.groups)
    >>> model = deploy(SteadyRidgeRegressor(), rows, "y", groups="site")
    >>> model.promise.groups
    'site'
    """
    opened = data if isinstance(data, Table) else open_table(data)
    table, _ = opened.complete([target, *([groups] if groups else [])])
    rows = rows_of(table, target, groups, target_type=target_type, max_levels=max_levels)
    used = [column for column in rows.columns if column.features]
    promise = promise_of(model, rows.X, rows.y, rows.groups, groups, random_state=random_state)
    fitted = fit_with_groups(model, rows.X, rows.y, rows.groups)
    return saved_model(type(model).__name__, fitted, used, table, target, promise)


def promise_of(
    model: Any,
    X: Any,
    y: np.ndarray,
    labels: np.ndarray | None,
    groups: str | None,
    *,
    random_state: Any = None,
) -> Promise:
    """The error of a model, everything about it chosen anew without the rows that judge it.

    ``y`` holds numbers, or classes as text; ``labels`` the group of each row, which are left out as
    a whole and called ``groups``.
    """
    is_numeric = y.dtype.kind == "f"
    parts = None
    if not is_numeric and labels is None:
        values, counts = np.unique(y, return_counts=True)
        if counts.min() < 2:
            raise InputError(
                f"the error on new rows needs at least 2 rows of each class. Got 1 of "
                f"{str(values[counts.argmin()])!r}. Leave that row out, or if the values "
                "are amounts pass target_type='numeric'."
            )
        parts = int(min(_PARTS, counts.min()))
    contest = compare_models(
        {"model": model},
        X,
        y,
        groups=labels,
        cv=parts,
        target_type="numeric" if is_numeric else "classes",
        random_state=random_state,
    )
    return Promise.from_contest(contest, "model", groups)


def saved_model(
    name: str,
    estimator: Any,
    columns: Sequence[FeatureColumn],
    table: Table,
    target: str,
    promise: Promise,
    encoder: Any = None,
    *,
    sources: Mapping[str, bytes] | None = None,
    sample_weight: np.ndarray | None = None,
) -> SavedModel:
    """A fitted model as it is saved.

    ``table`` has the target of every row of the fit, ``sample_weight`` their weights. The default
    encoder is that of the columns.
    """
    estimator = slim(estimator)
    column = table.column(target)
    kind = stored_kind(column.type)
    classes: tuple[Any, ...] | None = None
    baseline: Any
    if len(getattr(estimator, "classes_", ())):  # of CatBoost's regressors an empty list
        values = python_values(column)
        by_text = {str(value): value for value in values}
        if not all(isinstance(value, (bool, int, float, str)) for value in by_text.values()):
            kind, by_text = "text", {text: text for text in by_text}
        classes = tuple(by_text[str(name)] for name in estimator.classes_.tolist())
        texts, codes = np.unique([str(value) for value in values], return_inverse=True)
        baseline = by_text[str(texts[np.bincount(codes, sample_weight).argmax()])]
    else:
        baseline = float(np.average(as_numbers(column), weights=sample_weight))
    used = counted(len(columns), "column") if sources is None else counted(len(sources), "source")
    return SavedModel(
        label=f"{name} {'on' if sources is None else 'with'} {used}",
        encoder=encoder or TableEncoder.from_columns(columns),
        estimator=estimator,
        columns=tuple(columns),
        target=target,
        target_kind=kind,
        classes=classes,
        baseline=baseline,
        promise=promise,
        made_by={},
        sources=dict(sources or {}),
    )
