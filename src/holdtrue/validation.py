"""Checks shared by the estimators, and the wording of their errors.

Every message says who, what was expected, what was given, and what to do.
"""

from __future__ import annotations

import difflib
import numbers
from collections.abc import Callable, Iterable
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.utils import assert_all_finite, column_or_1d
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
    wanted = str(given).lower()
    by_lower = {str(choice).lower(): choice for choice in choices}
    close = difflib.get_close_matches(wanted, by_lower, n=1)
    if not close and wanted:  # a part of a name is close too, the shortest first
        close = sorted((name for name in by_lower if wanted in name), key=len)[:1]
    return f" Did you mean {by_lower[close[0]]!r}?" if close else ""


def shown(value: Any) -> str:
    """The value as it would be typed: 0 for ``np.int64(0)``."""
    return repr(value.item() if isinstance(value, np.generic) else value)


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
    accept_sparse: bool = False,
) -> Any:
    """X, or X and y where y is given, as float arrays; float32 is kept, and CSR where accepted.

    scikit-learn's `validate_data`, which also keeps and compares the columns' names, behind a
    message that names the column when one holds no numbers.
    """
    owner = type(estimator).__name__
    _column_names(owner, "X", X)
    wanted = {
        "dtype": [np.float64, np.float32],
        "reset": reset,
        "accept_sparse": "csr" if accept_sparse else False,
    }
    try:
        if not reset:
            return validate_data(estimator, X, **wanted)
        if y is not None and not y_numeric:
            _refuse_unclear(owner, "y", "class", np.asarray(y))
        X, y = validate_data(estimator, X, y, y_numeric=y_numeric, **wanted)
        if y_numeric:
            y = y.astype(np.float32 if y.dtype == np.float32 else np.float64, copy=False)
        return X, y
    except ValueError as error:
        raise _no_text(owner, error) from error


def unlabeled_rows(estimator: Any, X_unlabeled: Any, *, accept_sparse: bool = False) -> Any:
    """Rows without labels as float64, or CSR where accepted; no rows where none are given.

    They must have the columns that the estimator has just seen in X.
    """
    owner = type(estimator).__name__
    n_features = estimator.n_features_in_
    if X_unlabeled is None:
        return np.empty((0, n_features))
    names = _column_names(owner, "X_unlabeled", X_unlabeled)
    expected = getattr(estimator, "feature_names_in_", None)
    if names is not None and expected is not None and names != list(expected):
        raise ValueError(
            f"{owner}: the columns of X_unlabeled must be those of X, in the same order. "
            f"Expected {list(expected)}. Got {names}."
        )
    if np.shape(X_unlabeled)[:1] == (0,):
        raise ValueError(f"{owner}: X_unlabeled has no rows. Pass None if there are none.")
    try:
        rows = check_array(
            X_unlabeled,
            dtype=np.float64,
            input_name="X_unlabeled",
            accept_sparse="csr" if accept_sparse else False,
        )
    except ValueError as error:
        raise _no_text(owner, error) from error
    if rows.shape[1] != n_features:
        raise ValueError(
            f"{owner}: X_unlabeled must have the columns of X, shape (n_unlabeled, {n_features}). "
            f"Got shape {rows.shape}."
        )
    return rows


def _column_names(owner: str, what: str, X: Any) -> list[Any] | None:
    """Names of a frame's columns, or None; a frame that holds no numbers is refused."""
    if isinstance(X, np.ndarray) and X.dtype.kind in "mM":
        raise ValueError(f"{owner}: expected numbers in {what}. Got dates. Encode them.")
    try:
        frame = nw.from_native(X, pass_through=True)
        if isinstance(frame, nw.LazyFrame):
            raise ValueError(
                f"{owner}: {what} is a query that has not been run ({type(X).__name__}). "
                "Call its .collect() first."
            )
        if not isinstance(frame, nw.DataFrame):
            return None
        schema = frame.schema
    except nw.exceptions.DuplicateError as error:
        raise ValueError(
            f"{owner}: the columns of {what} must have different names. Got some twice ({error})."
        ) from error
    for column, dtype in schema.items():
        if isinstance(dtype, _NOT_NUMBERS):
            raise ValueError(
                f"{owner}: expected numbers in every column of {what}. "
                f"Got {dtype} in column {column!r}. Encode it or leave it out."
            )
    return list(frame.columns)


def _no_text(owner: str, error: ValueError) -> ValueError:
    """The error in our words if it is about text, else as it is."""
    _, found, value = str(error).partition("could not convert string to float: ")
    if not found:
        return error
    return ValueError(
        f"{owner}: expected numbers. Got the text {value}. Encode it or leave it out."
    )


def check_magnitude(
    owner: str,
    what: str | Callable[[int], str],
    values: np.ndarray,
    *,
    dtype: Any = np.float64,
    power: int = 2,
) -> None:
    """Refuse numbers whose squares, or fourth powers, and sums of them leave the dtype's range.

    ``what`` names the numbers, or is called with the column that is refused.
    """
    for column, size in unfit_sizes(values, dtype=dtype, power=power):
        raise ValueError(
            f"{owner}: the {'squares' if power == 2 else 'fourth powers'} of "
            f"{what if isinstance(what, str) else what(column)} must fit into "
            f"{np.dtype(dtype)}. Got values of size {size:g}. Change the unit."
        )


def unfit_sizes(values: np.ndarray, *, dtype: Any, power: int) -> list[tuple[int, float]]:
    """Columns whose largest number, to that power, leaves the dtype's range, and that number."""
    bound = 10.0 ** ((300 if np.dtype(dtype) == np.float64 else 32) // power)
    ends = values.max(axis=0, initial=0.0), values.min(axis=0, initial=0.0)
    largest = np.atleast_1d(np.maximum(ends[0], -ends[1]))
    fits = (largest <= bound) & ((largest == 0) | (largest >= 1 / bound))
    return [(int(column), float(largest[column])) for column in np.flatnonzero(~fits)]


def mixed_rows(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as the frame it is, or as an array of two dimensions; columns of any type.

    The columns' names and number are kept at fit and compared later, as scikit-learn does.
    """
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        if not len(frame) or not len(frame.columns):
            raise ValueError(
                f"{type(estimator).__name__}: found a frame with {len(frame)} sample(s) and "
                f"{len(frame.columns)} feature(s), while a minimum of 1 is required."
            )
        return X
    if isinstance(X, (list, tuple)) and np.asarray(X).dtype.kind in "US":
        X = np.array(X, dtype=object)  # numpy would turn the numbers into text
    return validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite=False)


def target_rows(owner: str, y: Any) -> np.ndarray:
    """The target as an array of one dimension; NaN, infinity and complex numbers are refused."""
    if y is None:
        raise ValueError(
            f"{owner}: requires y to be passed, but the target y is None. Call fit(X, y)."
        )
    target = np.asarray(column_or_1d(y, warn=True))
    if target.dtype.kind == "f":
        assert_all_finite(target, input_name="y")
    if target.dtype.kind == "c":
        raise ValueError(f"{owner}: Complex data not supported. Got complex numbers in y.")
    return target


def check_weights(owner: str, sample_weight: Any, n_rows: int) -> np.ndarray:
    """Weights as float64, shape (n_rows,); ones where none are given."""
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{owner}: sample_weight must be numbers, one per row. Got {sample_weight!r}."
        ) from error
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


def check_groups(owner: str, groups: Any, n_rows: int) -> np.ndarray:
    """Domain of each row, shape (n_rows,), none missing."""
    labels = np.asarray(groups)
    if labels.dtype.kind == "U" and not isinstance(groups, np.ndarray):
        labels = np.asarray(groups, dtype=object)  # numbers beside text must not become text
    if labels.shape != (n_rows,):
        raise ValueError(
            f"{owner}: groups must have one value per row, shape ({n_rows},). "
            f"Got shape {labels.shape}."
        )
    _refuse_unclear(owner, "groups", "domain", labels)
    return labels


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA is neither true nor false
        return True


def _refuse_unclear(owner: str, name: str, what: str, labels: np.ndarray) -> None:
    """Refuse labels of which some are missing, or that are text and numbers mixed."""
    if labels.dtype != object:
        missing = labels != labels
    else:
        labels = labels.ravel()
        missing = np.array([_is_missing(label) for label in labels], dtype=bool)
        if len({isinstance(label, str) for label in labels}) > 1 and not missing.any():
            raise ValueError(
                f"{owner}: {name} must be all text or all numbers. Got both. "
                f"Pass [str(label) for label in {name}]."
            )
    if missing.any():
        raise ValueError(
            f"{owner}: {name} must name a {what} for every row. "
            f"Got a missing value in row {int(np.argmax(missing))}. Name it or leave the row out."
        )


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
