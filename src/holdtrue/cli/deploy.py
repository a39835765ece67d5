"""What ``--save`` keeps: the model behind each answer, fitted on all rows, with its promise."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from holdtrue.cli.ask import Data
from holdtrue.compare import Comparison
from holdtrue.compare.comparison import SHARE_WRONG, SQUARED_ERROR
from holdtrue.compare.field import fit_with_groups
from holdtrue.deployed import Promise, SavedModel
from holdtrue.deployed.build import promise_of, saved_model, target_labels
from holdtrue.deployed.model import plain_rows
from holdtrue.deployed.slim import on_needed_columns, slim, with_features
from holdtrue.errors import InputError
from holdtrue.tables import TableEncoder
from holdtrue.tables.column_summary import feature_columns
from holdtrue.targets import TargetKind

__all__ = ["compare_model", "rank_model", "select_model", "size_model", "transfer_model"]

_MAX_BYTES = 1 << 31


def rank_model(
    data: Data, target: str, kind: TargetKind, groups: str | None, **settings: Any
) -> SavedModel:
    """`GingerEncoder` and a linear model on the columns that predict.

    ``settings`` are those of `GingerSelector`. The choice of columns and the encoding are repeated
    in every part that makes the promise.
    """
    from sklearn.linear_model import LogisticRegression, RidgeCV
    from sklearn.pipeline import make_pipeline

    from holdtrue.categories import GingerEncoder, GingerSelector

    rows = plain_rows(pa.Table.from_batches(data.table.batches(data.names)))
    if rows.nbytes > _MAX_BYTES:
        raise InputError(
            f"{rows.num_rows:,} rows of {len(data.names):,} columns need {rows.nbytes / 2**30:.1f} "
            f"GB, above the limit of {_MAX_BYTES >> 30} GB of a model. Leave rows or columns out, "
            "or leave out --save."
        )
    y = target_labels(data.table.column(target), is_numeric=kind.is_numeric)
    labels = None if groups is None else target_labels(data.table.column(groups))
    target_type = "numeric" if kind.is_numeric else "classes"
    linear = (
        RidgeCV(np.logspace(-3, 5, 17)) if kind.is_numeric else LogisticRegression(max_iter=1000)
    )
    model = make_pipeline(
        GingerSelector(min_features=1, target_type=target_type, **settings),
        GingerEncoder(target_type=target_type, random_state=data.seed),
        linear,
    )
    promise = promise_of(model, rows, y, labels, groups, random_state=data.seed)
    selector, encoder, estimator = fit_with_groups(model, rows, y, labels)
    kept = selector.get_feature_names_out().tolist()
    name = "ridge regression" if kind.is_numeric else "logistic regression"
    return saved_model(
        f"GingerEncoder and {name} on {_columns(kept)}",
        _with_names(slim(encoder), kept),
        estimator,
        feature_columns(data.table.only(kept)),
        data.table,
        target,
        promise,
    )


def select_model(
    data: Data,
    target: str,
    domain: str,
    fitted: dict[str, Any],
    encoded: Any,
    contest: Comparison | None,
) -> SavedModel:
    """The predictor that the answer recommends, on the columns that it needs.

    Parameters
    ----------
    data : Data
    target, domain : str
    fitted : dict of fitted estimators
        By their names in the contest.
    encoded : TableMoments
        Of the columns under their own names.
    contest : Comparison or None
        By squared error, at left-out domains. None, or with classes: the promise comes from fits to
        the rows.
    """
    name = "T-Greedy" if contest is None else contest.recommended
    model = fitted[name]
    if contest is None or encoded.classes is not None:
        from holdtrue.tables import rows_of

        target_type = "numeric" if encoded.classes is None else "classes"
        rows = rows_of(data.table, target, domain, target_type=target_type, leave_out=data.dropped)
        promise = promise_of(model, rows.X, rows.y, rows.groups, domain)
    else:
        promise = Promise.from_contest(contest, name, domain)
    used = [column for column in encoded.columns if column.features]
    model, columns = on_needed_columns(slim(model), used)
    return saved_model(
        f"{name} on {_columns(columns)}",
        TableEncoder.from_columns(columns),
        model,
        columns,
        data.table,
        target,
        promise,
    )


def compare_model(
    data: Data,
    target: str,
    domain: str | None,
    field: dict[str, Any],
    rows: Any,
    contest: Comparison,
) -> SavedModel:
    """The recommended model of a contest."""
    name = contest.recommended
    fitted = fit_with_groups(field[name], rows.X, rows.y, rows.groups)
    used = [column for column in rows.columns if column.features]
    model, columns = on_needed_columns(slim(fitted), used)
    if contest.scoring in (SHARE_WRONG, SQUARED_ERROR):
        promise = Promise.from_contest(contest, name, domain)
    else:  # a scorer judges models; a promise is one that labelled rows can keep
        promise = promise_of(
            field[name], rows.X, rows.y, rows.groups, domain, random_state=data.seed
        )
    return saved_model(
        f"{name} on {_columns(columns)}",
        TableEncoder.from_columns(columns),
        model,
        columns,
        data.table,
        target,
        promise,
    )


def transfer_model(
    data: Data, target: str, kind: TargetKind, groups: str | None, model: Any, X: np.ndarray
) -> SavedModel:
    """GreedyTL with the files of the sources that it uses."""
    n_columns = X.shape[1]
    used = np.flatnonzero(np.atleast_2d(model.coef_)[:, n_columns:].any(axis=0))
    files, of_files = model._pool.files_of(used)
    y = target_labels(data.table.column(target), is_numeric=kind.is_numeric)
    labels = None if groups is None else target_labels(data.table.column(groups))
    promise = promise_of(model, X, y, labels, groups, random_state=data.seed)
    kept = np.append(np.arange(n_columns), n_columns + of_files)
    slimmed = with_features(slim(model), kept).set_params(sources=())
    slimmed.n_features_in_ = n_columns
    slimmed.source_names_ = [model.source_names_[j] for j in of_files]
    columns = _number_columns(data, data.names)
    return saved_model(
        f"GreedyTL with {len(files)} source{'s' * (len(files) != 1)}",
        TableEncoder.from_columns(columns),
        slimmed,
        columns,
        data.table,
        target,
        promise,
        sources={file.name: file.read_bytes() for file in files},
    )


def size_model(
    data: Data,
    x: list[str],
    y_name: str,
    groups: str | None,
    model: Any,
    X: np.ndarray,
    y: np.ndarray,
) -> SavedModel:
    """The average over sizes, or the chosen size; rows of X and y may lack values."""
    columns = _number_columns(data, x)
    table, _ = data.table.complete([*x, y_name])
    labelled = np.isfinite(X).all(axis=1) & np.isfinite(y)
    labels = None if groups is None else target_labels(table.column(groups))
    return saved_model(
        f"NestedRegressor on {_columns(columns)}",
        TableEncoder.from_columns(columns),
        model,
        columns,
        table,
        y_name,
        promise_of(model, X[labelled], y[labelled], labels, groups, random_state=data.seed),
    )


def _number_columns(data: Data, names: list[str]) -> list[Any]:
    """Columns that are read as numbers, of which none is filled in."""
    return [
        replace(column, features=(column.name,), fill=math.nan, note="number")
        for column in feature_columns(data.table.only(names))
    ]


def _with_names(encoder: Any, names: list[str]) -> Any:
    encoder.feature_names_in_ = np.array(names, dtype=object)
    return encoder


def _columns(columns: Any) -> str:
    return "1 column" if len(columns) == 1 else f"{len(columns):,} columns"
