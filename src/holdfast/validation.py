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
from sklearn.utils.validation import validate_data

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
    y_numeric: bool = True,
    accept_sparse: str | bool = False,
) -> Any:
    """X, or X and y where y is given, as float arrays; float32 is kept.

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
        "accept_sparse": accept_sparse,
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
