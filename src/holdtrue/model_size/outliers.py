"""Targets far from what the other rows say, and when they are set aside."""

from __future__ import annotations

import numpy as np
from scipy.spatial import KDTree

from holdtrue.model_size.average import Average
from holdtrue.model_size.bases import Rows
from holdtrue.model_size.inputs import fences, quantiles

_WILD = 20.0  # robust deviations from the curve
_FEW = 0.05  # of the rows; where more are wild, they have a cause
_MANY_ALIKE = 0.1
_ENOUGH = 10  # rows to tell what is far
# Set aside: so many times farther from the curve of the others than left-out rows are, ...
_BEYOND_DOUBT = 10.0
# ... which without the wild ones have at most this part of their squared error.
_GAIN = 0.75


def wild_targets(rows: Rows, fitted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Masks of a few targets far from all others or from the fit, and of those that stand alone.

    A target stands alone if no other row speaks for it: see `_alone`.
    """
    # Every different row counts once: one row of a huge weight has no say in what is far.
    _, first, row_of = np.unique(
        np.column_stack([rows.X, rows.y]), axis=0, return_index=True, return_inverse=True
    )
    row_of = row_of.ravel()
    X, y, once = rows.X[first], rows.y[first], np.ones(len(first))
    few = max(1, int(_FEW * len(y)))
    distance = np.abs(y - fitted[first])
    deviation = 1.4826 * quantiles(distance, once, (0.5,))[0]
    tenth, ninth = quantiles(y, once, (0.1, 0.9))
    low, high = fences(y, once)
    wild = (y < low) | (y > high) | _far_out(X, y, few)
    # The small residuals of a nearly exact fit have outliers too, which are harmless.
    wild |= distance > max(_WILD * deviation, 0.5 * (ninth - tenth))
    # A value that many rows have, such as 0 of 0 and 1, is no slip of the pen.
    _, value_of, count = np.unique(y, return_inverse=True, return_counts=True)
    wild &= count[value_of] < _MANY_ALIKE * len(y)
    # Where there are many, they have a cause, such as a jump that the curve rounds off.
    wild &= wild.sum() <= few
    alone = _alone(X, y, np.bincount(row_of, rows.weight), wild)
    return wild[row_of], alone[row_of]


def _far_out(X: np.ndarray, y: np.ndarray, few: int) -> np.ndarray:
    """Mask of targets farther from all but a few than these are from one another.

    A curve may follow them, so the distance from the curve does not show them. At the end of an
    input's range they may be the top of a steep curve.
    """
    ordered = np.sort(y)
    starts, ends = ordered[: few + 1], ordered[-few - 1 :]
    shortest = int(np.argmin(ends - starts))
    low, high = starts[shortest], ends[shortest]
    far = (np.maximum(low - y, y - high) > high - low) & (high > low)
    return far & _between(X, X[~far])


def _alone(X: np.ndarray, y: np.ndarray, weight: np.ndarray, wild: np.ndarray) -> np.ndarray:
    """Mask of the wild targets that no other row speaks for.

    They lie between other rows, not at an end, where a curve may be steep. The nearest row is not
    wild too, and the row is not repeated many times. The other targets differ: among equal ones
    any other value is an event.
    """
    if not wild.any() or len(y) < _ENOUGH or np.ptp(y[~wild]) == 0:
        return np.zeros(len(y), dtype=bool)
    scale = X.std(axis=0)
    Z = X / np.where(scale > 0, scale, 1.0)
    _, near = KDTree(Z).query(Z[wild], k=2)  # the row itself and its nearest
    alone = wild & (weight <= max(1.0, _FEW * weight.sum())) & _between(X, X[~wild])
    alone[wild] &= wild[near].sum(axis=1) == 1
    return alone


def _between(X: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Mask of the rows that lie within the range of others in every input."""
    low, high = others.min(axis=0), others.max(axis=0)
    return np.asarray(((low <= X) & (high >= X)).all(axis=1))


def beyond_doubt(rows: Rows, aside: np.ndarray, average: Average, others: Average) -> bool:
    """Whether rows are predicted better without those aside, which are far from all they say.

    A narrow peak of one row cannot be told from a slip of the pen; one of several rows can:
    without its top the others are predicted worse.

    Parameters
    ----------
    rows : Rows
    aside : ndarray of bool, shape (n_rows,)
    average, others : Average
        Of all rows, and of those that are not aside.
    """
    kept = ~aside
    squares = (average.left_out[kept] - rows.y[kept]) ** 2
    before = rows.weight[kept] @ squares / rows.weight[kept].sum()
    off = np.abs(others.predict(rows.X[aside]) - rows.y[aside])
    far = off > _BEYOND_DOUBT * np.sqrt(others.new_error)
    return bool(others.new_error < _GAIN * before and far.all())
