"""Checks shared by the estimators.

scikit-learn is imported by the checks that use it: `rank_columns` does without.
"""

from __future__ import annotations

import numbers
import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, NoReturn

import narwhals as nw
import numpy as np
import pyarrow as pa

from holdtrue.errors import InputError, did_you_mean, named, shown
from holdtrue.targets import check_class_count

# Weights are repetitions of rows; larger ones leave the range of whole numbers and of float32.
_LARGEST_WEIGHT = 1e15
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
    finite: bool = True,
) -> Any:
    """X, or X and y where y is given, as float arrays; float32 is kept, and CSR where accepted.

    scikit-learn's `validate_data`, which also keeps and compares the columns' names, behind a
    message that names the first column that does not hold numbers. ``finite=False``: whether X is
    finite is left to a caller who sees it from sums.
    """
    from sklearn.utils.validation import validate_data

    if _column_names("X", X) is not None:
        X = readable_names(X)
    wanted = {
        "dtype": [np.float64, np.float32],
        "reset": reset,
        "accept_sparse": "csr" if accept_sparse else False,
        "ensure_all_finite": finite,
    }
    try:
        if not reset:
            return validate_data(estimator, X, **wanted)
        if y is not None and not y_numeric:
            _refuse_unclear("y", "class", np.asarray(y))
        X, y = validate_data(estimator, X, y, y_numeric=y_numeric, **wanted)
        if y_numeric:
            y = y.astype(np.float32 if y.dtype == np.float32 else np.float64, copy=False)
        return X, y
    except ValueError as error:
        raise _not_finite(X, error) or _in_words(error) from error


def readable_names(X: Any) -> Any:
    """X, or its Arrow table where scikit-learn below 1.9 would not see its columns' names.

    It reads them by a protocol that newer Polars has dropped.
    """
    frame = None if hasattr(X, "__dataframe__") else eager_frame(X)
    return X if frame is None else frame.to_arrow()


def eager_frame(X: Any) -> nw.DataFrame[Any] | None:
    """X as a frame of narwhals, if it is a frame in memory whose columns differ in their names."""
    try:
        frame = nw.from_native(X, eager_only=True, pass_through=True)
    except nw.exceptions.DuplicateError:
        return None
    return frame if isinstance(frame, nw.DataFrame) else None


def _not_finite(X: Any, error: ValueError) -> InputError | None:
    """scikit-learn's error about NaN or infinity, with the columns of a frame named."""
    frame = eager_frame(X) if "X contains" in str(error) else None
    if frame is None:
        return None
    missing, infinite = [], []
    for name, dtype in frame.schema.items():
        column, is_float = frame[name], dtype.is_float()
        if column.is_null().any() or (is_float and column.is_nan().any()):
            missing.append(name)
        elif is_float and np.isinf(column.to_numpy()).any():
            infinite.append(name)
    what, columns, advice = "missing", missing, "Fill them, for example with SimpleImputer,"
    if not missing:
        what, columns, advice = "infinite", infinite, "Replace them,"
    if not columns:
        return None
    return InputError(
        f"X has {what} values in {named(columns)}. {advice} or leave those rows or columns out."
        f"\n{error}"
    )


def check_count(name: str, value: Any, least: int, other: str = "") -> None:
    """Refuse what is not a whole number of at least that size.

    ``other`` names further values that are fine, such as ``"None or 'loo'"``.
    """
    if not _is_other(value, other) and not (is_number(value, numbers.Integral) and value >= least):
        _refuse(name, f"a whole number of at least {least}", other, value)


def check_number(name: str, value: Any, least: float = 0, other: str = "") -> None:
    """Refuse what is not a number of at least that size; ``other`` as in `check_count`."""
    if not _is_other(value, other) and not (is_number(value) and value >= least):
        _refuse(name, f"a number of at least {least}", other, value)


def check_flags(**flags: Any) -> None:
    """Refuse options that are neither True nor False."""
    for name, value in flags.items():
        if not isinstance(value, (bool, np.bool_)):
            _refuse(name, "True or False", "", value)


def _is_other(value: Any, other: str) -> bool:
    return (value is None or isinstance(value, str)) and repr(value) in other


def _refuse(name: str, expected: str, other: str, value: Any) -> NoReturn:
    expected += f", {other}" if other else ""
    raise InputError(f"{name} must be {expected}. Got {shown(value)}.")


def unlabeled_rows(estimator: Any, X_unlabeled: Any, *, accept_sparse: bool = False) -> Any:
    """Rows without labels as float64, or CSR where accepted; no rows where none are given.

    They must have the columns that the estimator has just seen in X.
    """
    from sklearn.utils.validation import check_array

    n_features = estimator.n_features_in_
    if X_unlabeled is None:
        return np.empty((0, n_features))
    names = _column_names("X_unlabeled", X_unlabeled)
    expected = getattr(estimator, "feature_names_in_", None)
    if names is not None and expected is not None and names != list(expected):
        raise InputError(
            f"the columns of X_unlabeled must be those of X, in the same order. "
            f"Expected {list(expected)}. Got {names}."
        )
    if np.shape(X_unlabeled)[:1] == (0,):
        raise InputError("X_unlabeled has no rows. Pass None if there are none.")
    try:
        rows = check_array(
            X_unlabeled,
            dtype=np.float64,
            input_name="X_unlabeled",
            accept_sparse="csr" if accept_sparse else False,
        )
    except ValueError as error:
        raise _in_words(error) from error
    if rows.shape[1] != n_features:
        raise InputError(
            f"X_unlabeled must have the columns of X, shape (n_unlabeled, {n_features}). "
            f"Got shape {rows.shape}."
        )
    return rows


def _column_names(what: str, X: Any) -> list[Any] | None:
    """Names of a frame's columns, or None; a column that does not hold numbers is refused."""
    if isinstance(X, np.ndarray):
        if X.dtype.kind in "mM":
            raise InputError(f"expected numbers in {what}. Got dates. Encode them.")
        return None
    try:
        frame = nw.from_native(X, pass_through=True)
        if isinstance(frame, nw.LazyFrame):
            raise _not_run(what, X, "Moments.from_engine(X, target=...) sums where the rows are.")
        if not isinstance(frame, nw.DataFrame):
            return None
        schema = frame.schema
    except nw.exceptions.DuplicateError as error:
        raise _same_names(what, error) from error
    if not schema:
        raise InputError(
            f"{what} must have at least one column. Got 0 feature(s) (shape={frame.shape}) while a "
            "minimum of 1 is required."
        )
    for column, dtype in schema.items():
        given: Any = dtype if isinstance(dtype, _NOT_NUMBERS) else None
        if isinstance(dtype, (nw.Object, nw.Unknown)):
            given = _first_type_of_no_number(frame[column])
        if given is not None:
            raise InputError(
                f"expected numbers in every column of {what}. "
                f"Got {given} in column {column!r}. Encode it, for example with TableEncoder, "
                "or leave it out."
            )
    return list(frame.columns)


def _first_type_of_no_number(series: Any) -> str | None:
    """Type of the first object that is neither missing nor becomes a number, or None."""
    for value in series.to_native():
        if _is_missing(value):
            continue
        try:
            float(value)
        except (TypeError, ValueError):
            return "the text " + repr(value) if isinstance(value, str) else type(value).__name__
    return None


def _same_names(what: str, error: Exception) -> ValueError:
    """Error for a frame some of whose columns have one name."""
    twice = " ".join(str(error).split())
    return InputError(
        f"the columns of {what} must have different names. Got some twice ({twice}). Rename them."
    )


def _not_run(what: str, X: Any, on_engine: str) -> ValueError:
    """Error for a query; ``on_engine`` says what works on the cluster of one."""
    home = type(X).__module__.split(".")[0]
    verb = {"dask": "compute", "pyspark": "toPandas"}.get(home, "collect")
    advice = "" if verb == "collect" else f" {on_engine}"
    return InputError(
        f"{what} is a query of {home} that has not been run. Call its .{verb}() first.{advice}"
    )


def _in_words(error: ValueError) -> ValueError:
    """The error in our words if it is about text or the columns' names, else as it is."""
    if str(error).startswith("The feature names should match"):
        new, missing = (
            ", ".join(map(repr, re.findall("^- (.*)$", part, re.MULTILINE)))
            for part in str(error).partition("yet now missing:")[::2]
        )
        words = (f" Missing: {missing}." if missing else "") + (f" New: {new}." if new else "")
        return InputError(f"columns at fit and now differ.{words or ' Their order does.'}\n{error}")
    _, is_text, value = str(error).partition("could not convert string to float: ")
    if not is_text:
        return error
    text = value.removeprefix("np.str_(").removesuffix(")") if value.startswith("np.") else value
    return InputError(f"expected numbers. Got the text {text}. Encode it or leave it out.")


def check_magnitude(
    what: str | Callable[[int], str], values: np.ndarray, *, dtype: Any = np.float64, power: int = 2
) -> None:
    """Refuse numbers whose squares, or fourth powers, and sums of them leave the dtype's range.

    ``what`` names the numbers, or is called with the column that is refused.
    """
    for column, size in unfit_sizes(values, dtype=dtype, power=power):
        raise InputError(
            f"the {'squares' if power == 2 else 'fourth powers'} of "
            f"{what if isinstance(what, str) else what(column)} must fit into "
            f"{np.dtype(dtype)}. Got values of size {size:g}. Change the unit."
        )


def unfit_sizes(values: np.ndarray, *, dtype: Any, power: int) -> list[tuple[int, float]]:
    """Columns whose largest number, to that power, leaves the dtype's range, and that number."""
    bound = 10.0 ** ((300 if np.dtype(dtype) == np.float64 else 32) // power)
    if (
        values.size
        and values.max() <= bound
        and values.min() >= -bound
        and (np.abs(values[0]) >= 1 / bound).all()
    ):
        return []  # as below for most tables, in half of the time
    ends = values.max(axis=0, initial=0.0), values.min(axis=0, initial=0.0)
    largest = np.atleast_1d(np.maximum(ends[0], -ends[1]))
    fits = (largest <= bound) & ((largest == 0) | (largest >= 1 / bound))
    return [(int(column), float(largest[column])) for column in np.flatnonzero(~fits)]


def mixed_rows(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as the frame it is, or as an array of two dimensions; columns of any type.

    The columns' names and number are kept at fit and compared later, as scikit-learn does.
    """
    from sklearn.utils.validation import validate_data

    if isinstance(X, pa.RecordBatch):  # narwhals takes Arrow tables only
        X = pa.Table.from_batches([X])
    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise _same_names("X", error) from error
    if isinstance(frame, nw.LazyFrame):
        raise _not_run("X", X, "rank_columns(X, target) counts where the rows are.")
    if isinstance(frame, nw.DataFrame):
        # scikit-learn below 1.9 reads names by a protocol that newer Polars has dropped
        named = X if hasattr(X, "__dataframe__") else pa.table({n: [] for n in frame.columns})
        try:
            validate_data(estimator, named, reset=reset, skip_check_array=True)
        except ValueError as error:
            raise _in_words(error) from error
        if not len(frame) or not len(frame.columns):
            raise InputError(
                f"found a frame with {len(frame)} sample(s) and "
                f"{len(frame.columns)} feature(s), while a minimum of 1 is required."
            )
        return X
    if isinstance(X, (list, tuple)) and np.asarray(X).dtype.kind in "US":
        X = np.array(X, dtype=object)  # numpy would turn the numbers into text
    return validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite=False)


def fresh_copy(model: Any) -> Any:
    """A copy of a model, to be fitted; where scikit-learn refuses to clone it, of all it holds.

    It refuses a model that keeps a copy of a parameter, as CatBoost of its ``cat_features``.
    """
    from sklearn.base import clone

    try:
        return clone(model)
    except RuntimeError:
        return deepcopy(model)


def classes_of(model: Any) -> Any:
    """Classes that a fitted model tells apart; None where it predicts a number.

    Regressors of CatBoost have an empty list of them.
    """
    classes = getattr(model, "classes_", None)
    return None if classes is None or not len(classes) else classes


def target_rows(y: Any) -> np.ndarray:
    """The target as an array of one dimension; NaN, infinity and complex numbers are refused."""
    from sklearn.utils import assert_all_finite, column_or_1d

    if y is None:
        raise InputError("requires y to be passed, but the target y is None. Call fit(X, y).")
    try:
        target = np.asarray(column_or_1d(y, warn=True))
        if target.dtype.kind == "f":
            assert_all_finite(target, input_name="y")
    except ValueError as error:
        raise InputError(f"y must hold one finite value per row. {error}") from error
    if target.dtype.kind == "c":
        raise InputError("Complex data not supported. Got complex numbers in y.")
    return target


def check_row_count(y: np.ndarray, n_rows: int) -> None:
    """Refuse a target of another length than X."""
    if len(y) != n_rows:
        raise InputError(f"y must have one value per row of X, {n_rows}. Got {len(y)}.")


def class_codes(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Classes in order, shape (n_classes,), and the class of each row as their index."""
    from sklearn.utils.multiclass import check_classification_targets

    _refuse_unclear("y", "class", y)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) != 2:  # two values are classes, even if they are not whole
        check_classification_targets(y)
    if len(classes) < 2:
        raise InputError(f"needs at least 2 classes. Got 1 class, {shown(classes[0])}.")
    check_class_count(len(classes))
    return classes, codes


def class_signs(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Classes in order, and the targets of least squares, shape (n_rows, n_targets).

    A target has +1 for one class and -1 for the rest; two classes have one target.
    """
    classes, codes = class_codes(y)
    first = 1 if len(classes) == 2 else 0
    return classes, np.where(codes[:, None] == np.arange(first, len(classes)), 1.0, -1.0)


def feature_names(estimator: Any) -> list[str]:
    """Names of the columns that a fitted estimator has seen; x0, x1, ... where they had none."""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"x{j}" for j in range(estimator.n_features_in_)] if names is None else list(names)


def check_level(name: str, value: Any) -> None:
    """Refuse what is not a number between 0 and 1."""
    if not (is_number(value) and 0 < value < 1):
        raise InputError(f"{name} must be between 0 and 1. Got {shown(value)}.")


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Weights as float64, shape (n_rows,); ones where none are given."""
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        weight = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"sample_weight must be numbers, one per row. Got {shown(sample_weight)}."
        ) from error
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.shape != (n_rows,):
        raise InputError(
            f"sample_weight must have one value per row, shape ({n_rows},). "
            f"Got shape {weight.shape}."
        )
    if not np.isfinite(weight).all() or (weight < 0).any():
        bad = weight[~np.isfinite(weight) | (weight < 0)][0]
        raise InputError(
            f"sample_weight must be finite and not negative. Got {bad:g}. "
            "A weight of 0 leaves a row out."
        )
    if not weight.any():
        raise InputError(
            f"sample_weight must be above 0 for some row. Got a weight of zero in all "
            f"{n_rows} rows."
        )
    largest = float(weight.max())
    if not 1 / _LARGEST_WEIGHT <= largest <= _LARGEST_WEIGHT:
        raise InputError(
            f"the largest sample_weight must lie between {1 / _LARGEST_WEIGHT:g} and "
            f"{_LARGEST_WEIGHT:g}. Got {largest:g}. Divide all weights by a common factor."
        )
    return weight


def check_groups(groups: Any, n_rows: int) -> np.ndarray:
    """Domain of each row, shape (n_rows,), none missing."""
    if isinstance(groups, str):
        raise InputError(
            f"groups must have one value per row. Got the text {groups!r}. Pass the column itself, "
            f"as in groups=frame[{groups!r}]."
        )
    labels = np.asarray(groups)
    if labels.dtype.kind == "U" and not isinstance(groups, np.ndarray):
        labels = np.asarray(groups, dtype=object)  # numbers beside text must not become text
    if labels.shape != (n_rows,):
        raise InputError(
            f"groups must have one value per row, shape ({n_rows},). Got shape {labels.shape}."
        )
    _refuse_unclear("groups", "domain", labels)
    return labels


def _is_missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas.NA is neither true nor false
        return True


def _refuse_unclear(name: str, what: str, labels: np.ndarray) -> None:
    """Refuse missing labels, and those of types without a common order, as text and numbers."""
    if labels.dtype != object:
        missing = labels != labels
    else:
        labels = labels.ravel()
        missing = np.array([_is_missing(label) for label in labels], dtype=bool)
        if len({isinstance(label, str) for label in labels}) > 1 and not missing.any():
            raise InputError(
                f"{name} must be all text or all numbers. Got both. "
                f"Pass [str(label) for label in {name}]."
            )
    if missing.any():
        raise InputError(
            f"{name} must name a {what} for every row. "
            f"Got a missing value in row {int(np.argmax(missing))}. Name it or leave the row out."
        )
    types = {type(label) for label in labels} if labels.dtype == object else set()
    if len(types) > 1:
        try:
            sorted(set(labels))
        except TypeError as error:
            listed = " and ".join(sorted(kind.__name__ for kind in types))
            raise InputError(
                f"{name} must have an order. Got {listed}, which cannot be compared. "
                f"Pass [str(label) for label in {name}]."
            ) from error


def check_columns(name: str, given: Any, names: Sequence[str]) -> list[int]:
    """Indices of columns that were given as indices, names or a mask."""
    listed, n_columns = np.asarray(given), len(names)
    kind = listed.dtype.kind if listed.size else "i"
    indices: list[int] | None = None
    if listed.ndim == 1 and kind == "b" and len(listed) == n_columns:
        indices = np.flatnonzero(listed).tolist()
    elif listed.ndim == 1 and kind in "iu":
        indices = [int(i) for i in listed]
    elif listed.ndim == 1 and kind in "OU" and set(listed.tolist()) <= set(names):
        indices = [list(names).index(label) for label in listed.tolist()]
    if indices is None or sorted(set(indices)) != sorted(i for i in indices if 0 <= i < n_columns):
        unknown = [label for label in listed.ravel().tolist() if label not in names]
        raise InputError(
            f"{name} must name columns of X, each once, by their names or by indices from 0 to "
            f"{n_columns - 1}, or be a mask of length {n_columns}. Got {shown(given)}."
            + (did_you_mean(unknown[0], names) if unknown else "")
        )
    return indices
