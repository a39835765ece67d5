"""Checks shared by the estimators, and the wording of their errors.

Every message says who, what was expected, what was given, and what to do.
"""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Iterable
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.utils.validation import check_array, validate_data

_NOT_NUMBERS = (
    nw.String,
    nw.Categorical,
    nw.Enum,
    nw.Date,
    nw.Datetime,
    nw.Duration,
    nw.Time,
    nw.List,
    nw.Struct,
)


def did_you_mean(given: Any, choices: Iterable[str]) -> str:
    """`` Did you mean 'x'?`` when a choice is close to what was given, else nothing."""
    close = difflib.get_close_matches(str(given).lower(), list(choices), n=1)
    return f" Did you mean {close[0]!r}?" if close else ""


def check_choice(owner: str, name: str, value: Any, choices: Iterable[str]) -> None:
    """Refuse a value that is not one of the choices."""
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(map(repr, choices))
        raise ValueError(
            f"{owner}: {name} must be one of {listed}. Got {value!r}."
            + did_you_mean(value, choices)
        )


def is_number(value: Any, kind: type = numbers.Real) -> bool:
    """Whether value is a finite number of that kind; True and False are not."""
    return (
        isinstance(value, kind)
        and not isinstance(value, (bool, np.bool_))
        and bool(np.isfinite(value))  # type: ignore[call-overload]
    )


def numeric_rows(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    reset: bool,
    accept_sparse: bool = False,
    y_numeric: bool = True,
) -> Any:
    """X, or X and y where y is given, as float arrays; float32 is kept, and CSR where accepted.

    scikit-learn's `validate_data`, which also keeps and compares the columns' names, behind a
    message that names the column when one holds no numbers.
    """
    owner = type(estimator).__name__
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        for column, dtype in frame.schema.items():
            if isinstance(dtype, _NOT_NUMBERS):
                raise ValueError(
                    f"{owner}: expected numbers in every column. "
                    f"Got {dtype} in column {column!r}. Encode it or leave it out."
                )
    wanted = {
        "dtype": [np.float64, np.float32],
        "reset": reset,
        "accept_sparse": "csr" if accept_sparse else False,
    }
    try:
        if not reset:
            return validate_data(estimator, X, **wanted)
        return validate_data(estimator, X, y, y_numeric=y_numeric, **wanted)
    except ValueError as error:
        if "could not convert string to float" not in str(error):
            raise
        value = str(error).partition("float: ")[2]
        raise ValueError(
            f"{owner}: expected numbers. Got the text {value}. Encode it or leave it out."
        ) from error


def check_weights(owner: str, sample_weight: Any, n_rows: int) -> np.ndarray:
    """Weights as float64, shape (n_rows,); ones where none are given."""
    if sample_weight is None:
        return np.ones(n_rows)
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.shape != (n_rows,):
        raise ValueError(
            f"{owner}: sample_weight must have one value per row, shape ({n_rows},). "
            f"Got shape {weight.shape}."
        )
    if not np.isfinite(weight).all() or (weight < 0).any():
        bad = weight[~np.isfinite(weight) | (weight < 0)][0]
        raise ValueError(
            f"{owner}: sample_weight must be finite and not negative. Got {bad:g}. "
            "A weight of 0 leaves a row out."
        )
    if not weight.any():
        raise ValueError(
            f"{owner}: sample_weight must be above 0 for some row. Got a weight of zero in all "
            f"{n_rows} rows."
        )
    return weight


def check_unlabeled(estimator: Any, X_unlabeled: Any, *, accept_sparse: bool = False) -> Any:
    """Unlabelled rows as float64; no rows where none are given."""
    owner, n_features = type(estimator).__name__, estimator.n_features_in_
    if X_unlabeled is None:
        return np.empty((0, n_features))
    columns = getattr(X_unlabeled, "columns", None)
    if columns is not None and hasattr(estimator, "feature_names_in_"):
        given = [str(name) for name in columns]
        if given != list(estimator.feature_names_in_):
            raise ValueError(
                f"{owner}: the columns of X_unlabeled must be those of X, in the same "
                f"order. Expected {list(estimator.feature_names_in_)}. Got {given}."
            )
    extra = check_array(
        X_unlabeled,
        dtype=np.float64,
        input_name="X_unlabeled",
        accept_sparse="csr" if accept_sparse else False,
    )
    if extra.shape[1] != n_features:
        raise ValueError(
            f"{owner}: X_unlabeled must have the columns of X, shape "
            f"(n_unlabeled, {n_features}). Got shape {extra.shape}."
        )
    return extra


def check_groups(owner: str, groups: Any, n_rows: int) -> np.ndarray:
    """Domain of each row, shape (n_rows,), none missing."""
    labels = np.asarray(groups)
    if labels.shape != (n_rows,):
        raise ValueError(
            f"{owner}.fit: groups must have one value per row, shape ({n_rows},). "
            f"Got shape {labels.shape}."
        )
    missing = labels != labels
    if labels.dtype == object:
        missing = np.array([label is None or label != label for label in labels], dtype=bool)
        if len({isinstance(label, str) for label in labels}) > 1 and not missing.any():
            raise ValueError(
                f"{owner}.fit: groups must be all text or all numbers. Got both. "
                "Pass [str(group) for group in groups]."
            )
    if missing.any():
        raise ValueError(
            f"{owner}.fit: groups must name a domain for every row. "
            f"Got a missing value in row {int(np.argmax(missing))}. Name it or leave the row out."
        )
    return labels


def check_columns(estimator: Any, name: str, given: Any) -> list[int]:
    """Indices of columns that were given as indices, names or a mask; none for None."""
    if given is None:
        return []
    n_features = estimator.n_features_in_
    names = list(getattr(estimator, "feature_names_in_", []))
    listed = np.asarray(given)
    kind = listed.dtype.kind if listed.size else "i"
    indices: list[int] | None = None
    if listed.ndim == 1 and kind == "b" and len(listed) == n_features:
        indices = np.flatnonzero(listed).tolist()
    elif listed.ndim == 1 and kind in "iu":
        indices = [int(i) for i in listed]
    elif listed.ndim == 1 and kind in "OU" and set(listed.tolist()) <= set(names):
        indices = [names.index(label) for label in listed.tolist()]
    if indices is None or sorted(set(indices)) != sorted(i for i in indices if 0 <= i < n_features):
        known = f"columns {names}" if names else f"columns 0 to {n_features - 1}"
        raise ValueError(
            f"{type(estimator).__name__}: {name} must name {known}, each once, or be a mask of "
            f"length {n_features}. Got {given!r}."
        )
    return indices
