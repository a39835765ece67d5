"""Classes or a number to predict: the one rule, for every estimator and every command.

``target_type="auto"``:

- text, truth values, categories and dates are classes;
- two different values are classes, whatever their type;
- whole numbers, integer or float, are classes if they have at most 20 different values, and these
  are at most a fifth of the rows;
- anything else is a number.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdtrue.errors import InputError, check_choice

TARGET_TYPES = ("auto", "classes", "numeric")
# A target with more classes is refused: it is rarely intended, and tables grow with it.
MAX_CLASSES = 100
# Whole numbers with more different values, or with fewer rows for each, are quantities.
_MAX_WHOLE_CLASSES = 20
_ROWS_PER_CLASS = 5


class TargetKind(NamedTuple):
    """How a target is read."""

    is_numeric: bool
    n_values: int  # different values
    is_decided: bool  # whether the caller said so; otherwise the rule above did

    @property
    def target_type(self) -> str:
        """The reading as an option: "classes" or "numeric"."""
        return "numeric" if self.is_numeric else "classes"

    def sentence(self, name: str, option: str = "target_type='{}'") -> str:
        """How the target is read and how to have it otherwise; nothing where the caller said so.

        ``option`` is how the caller writes the other reading, such as ``"--target-type {}"``.
        """
        if self.is_decided:
            return ""
        if self.is_numeric:
            return f"{name!r} is taken as a number; {option.format('classes')} otherwise"
        return f"{name!r} is taken as {self.n_values} classes; {option.format('numeric')} otherwise"


def target_kind(y: Any, target_type: str = "auto", weight: np.ndarray | None = None) -> TargetKind:
    """Whether y is read as classes or as a number, by the module's rule.

    Parameters
    ----------
    y : ndarray or pyarrow.Array or pyarrow.ChunkedArray of shape (n_rows,)
        Missing values do not count as a value.
    target_type : {"auto", "classes", "numeric"}
    weight : ndarray of shape (n_rows,), optional
        Weights are repetitions: n is their sum, and rows of weight 0 do not count.
    """
    check_choice("target_type", target_type, TARGET_TYPES)
    values, n_rows = _different_values(y, weight)
    n_values = len(values)
    if target_type != "auto":
        return TargetKind(target_type == "numeric", n_values, True)
    if values.dtype.kind not in "iuf" or n_values == 2:
        return TargetKind(False, n_values, values.dtype.kind not in "iuf")
    is_whole = values.dtype.kind in "iu" or bool(np.equal(np.floor(values), values).all())
    few = n_values <= _MAX_WHOLE_CLASSES and _ROWS_PER_CLASS * n_values <= n_rows
    return TargetKind(not (is_whole and few), n_values, False)


def check_class_count(n_classes: int, more: str = "") -> None:
    """Refuse too many classes; ``more`` may say that not all were counted."""
    if n_classes > MAX_CLASSES:
        raise InputError(
            f"the target must have at most {MAX_CLASSES} classes. Got {n_classes:,}{more}. If it "
            "is a quantity, take it as a number (target_type='numeric', or a regressor); otherwise "
            "join rare classes into one."
        )


def _different_values(y: Any, weight: np.ndarray | None) -> tuple[np.ndarray, float]:
    """Different values that are not missing, as an array, and the number of rows that have one.

    Numbers keep a numeric dtype; everything else becomes an array of another kind.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kept = slice(None) if weight is None else weight > 0
    if hasattr(y, "type"):
        column = y if weight is None else y.filter(pa.array(kept))
    else:
        labels = np.asarray(y)[kept]
        try:
            column = pa.array(labels, from_pandas=True)
        except (
            OverflowError,
            pa.ArrowInvalid,
            pa.ArrowTypeError,
            pa.ArrowNotImplementedError,
        ):
            # Whole numbers beyond 64 bits, values of several types, or of one unknown to Arrow.
            listed = labels.tolist()
            if all(type(value) is int for value in listed):
                return np.array([float(value) for value in set(listed)]), float(len(listed))
            return np.array(list({str(value) for value in listed})), float(len(listed))
    if pa.types.is_decimal(column.type) or pa.types.is_float16(column.type):
        column = column.cast(pa.float64())
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_finite(column), column, None)
    present = np.asarray(column.is_valid())
    n_rows = float(present.sum() if weight is None else weight[kept][present].sum())
    values = column.drop_null().unique()
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return values.to_numpy(zero_copy_only=False), n_rows
    return np.arange(len(values)).astype(str), n_rows
