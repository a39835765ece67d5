"""What `NestedRegressor` refuses before any work."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from holdtrue.errors import InputError, check_choice, shown
from holdtrue.model_size import bases
from holdtrue.model_size.families import FAMILIES
from holdtrue.model_size.table import CRITERIA
from holdtrue.path import SelectionPath
from holdtrue.validation import check_count, check_groups, is_number

_BASES = ("auto", *bases.NAMES)
_MIN_ROWS = 3


def check_parameters(model: Any, predict: Any, n_features: int) -> None:
    """Refuse wrong parameters of `NestedRegressor`."""
    check_choice("criterion", model.criterion, CRITERIA)
    check_choice("predict", predict, ("average", "chosen"))
    basis = model.basis
    if isinstance(basis, str):
        check_choice("basis", basis, _BASES)
    elif not isinstance(basis, SelectionPath) and (
        isinstance(basis, type) or not (hasattr(basis, "fit") and hasattr(basis, "transform"))
    ):
        raise InputError(
            f"basis must be one of {', '.join(map(repr, _BASES))}, a transformer "
            f"or a SelectionPath. Got {basis!r}."
        )
    elif isinstance(basis, SelectionPath) and basis.n_steps and basis.order.max() >= n_features:
        raise InputError(
            f"the path given as basis must name columns of X, 0 to {n_features - 1}. "
            f"Got column {basis.order.max()}."
        )
    if model.interval is not None:
        _check_interval(basis, model.interval, n_features)
    if model.max_terms is not None:
        check_count("max_terms", model.max_terms, 1)
    noise = model.noise_variance
    if noise is not None and not (is_number(noise) and noise >= 0):
        raise InputError(
            "noise_variance must be a number of at least 0, or None to estimate it. "
            f"Got {shown(noise)}."
        )
    if isinstance(model.cv, numbers.Integral) and (isinstance(model.cv, bool) or model.cv < 2):
        raise InputError(f"cv must be at least 2 folds. Got cv={shown(model.cv)}.")


def _check_interval(basis: Any, interval: Any, n_features: int) -> None:
    if not (isinstance(basis, str) and (basis == "auto" or basis in FAMILIES)):
        raise InputError(
            f"interval is for the bases 'auto', {', '.join(map(repr, FAMILIES))}. "
            f"Got interval={shown(interval)} with basis={basis!r}. Pass interval=None."
        )
    try:
        ends = np.asarray(interval, dtype=np.float64)
    except (TypeError, ValueError):
        ends = np.empty(0)
    fits = ends.shape in ((2,), (n_features, 2)) and np.isfinite(ends).all()
    if not fits or not (ends[..., 0] < ends[..., 1]).all():
        raise InputError(
            "interval must be (low, high) with low < high, or one such pair per feature, shape "
            f"({n_features}, 2). Got {shown(interval)}."
        )


def grouped_rows(groups: Any, used: np.ndarray, criterion: str, predict: str) -> Any:
    """Group of each row, or None; refused where rows are taken for independent."""
    if groups is None:
        return None
    labels = check_groups(groups, len(used))
    if criterion != "cv" or predict != "chosen":
        what = f"criterion={criterion!r}" if criterion != "cv" else "predict='average'"
        raise InputError(
            f"with groups, new data are new groups; {what} assumes that all rows are "
            "independent. Pass criterion='cv' and predict='chosen', which leave out whole groups."
        )
    names = np.unique(labels[used])
    if len(names) < 2:
        raise InputError(
            f"needs at least 2 groups, got 1 ({shown(names[0])} in every row of positive "
            "weight). Pass the group of each row as fit(X, y, groups=...), or leave groups out."
        )
    return labels


def largest_size(max_terms: int | None, rows: bases.Rows) -> int:
    """The largest number of terms to consider."""
    n, n_rows = float(rows.weight.sum()), len(rows.y)
    if n_rows < _MIN_ROWS or n < _MIN_ROWS:
        hint = (
            f"sample_weight sums to {n:g}: weights are repetitions, so do not scale them to 1."
            if n < _MIN_ROWS <= n_rows
            else "Two points fit every line."
        )
        raise InputError(
            f"needs at least {_MIN_ROWS} rows to tell one size from another. "
            f"Got {n_rows} sample{'s' if n_rows != 1 else ''}. {hint}"
        )
    # As many terms as different rows fit them all exactly, however often each is repeated.
    different = len(np.unique(np.column_stack([rows.X, rows.y]), axis=0))
    limit = min(n, different)
    if max_terms is None:
        return max(1, min(int(3 * limit // 4), 200))
    if max_terms >= limit:
        what = "rows" if different >= n else "different rows"
        raise InputError(
            f"max_terms must be below the number of rows. "
            f"Got max_terms={max_terms} with {limit:g} {what}. "
            f"Pass max_terms={max(1, int(np.ceil(limit)) - 1)} or less, or None."
        )
    return int(max_terms)
