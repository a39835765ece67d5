"""Means and scatters of one domain: of its rows, of two parts together, and which are possible.

An entry is a tuple: weight, means of x, scatter of x, means of y, scatter of x and y, scatter of y,
and what rounding took from both means; None where there is no y.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from holdtrue.errors import InputError
from holdtrue.validation import check_magnitude

_EPS = float(np.finfo(np.float64).eps)
_SLACK = 1e-3  # relative rounding error of float32 sums, generously


def moments_of_one(X: Any, y: np.ndarray | None, weight: np.ndarray) -> tuple[Any, ...]:
    """Weight, means, scatters and rests of one domain's rows, in the order of ``_ARRAYS``."""
    total = weight.sum()
    is_sparse, weighted = sparse.issparse(X), bool((weight != 1).any())
    mean_x = np.asarray(weight @ X if is_sparse or weighted else X.sum(0, float)) / total
    mean_y = None if y is None else weight @ y / total
    for name, mean in (("X", mean_x), ("y", mean_y)):
        if mean is not None and not np.isfinite(mean).all():
            raise InputError(
                f"{name} must hold finite numbers. Got NaN or infinity. Fill or leave out "
                "those rows."
            )
    rest_x = np.zeros(len(mean_x))
    if is_sparse:
        # About zero, then moved: centred rows would be dense. Sparse columns have small means.
        scatter = (X.astype(np.float64).multiply(weight[:, None]).tocsr().T @ X).toarray()
        square = np.diag(scatter).copy()
        scatter -= total * np.outer(mean_x, mean_x)
        constant = without_rounding(np.diag(scatter), square, X.shape[0]) == 0
        scatter[constant] = scatter[:, constant] = 0.0
        scatter = scatter.astype(X.dtype)
    else:
        X = X - mean_x.astype(X.dtype)
        if X.dtype == np.float64:
            rest_x = weight @ X / total
        if weighted:
            X *= np.sqrt(weight).astype(X.dtype)[:, None]
        scatter = X.T @ X
        if (total * rest_x**2 > _EPS * np.diag(scatter)).any():
            scatter -= total * np.outer(rest_x, rest_x)
            np.fill_diagonal(scatter, np.maximum(np.diag(scatter), 0.0))
    if not np.isfinite(np.diag(scatter)).all():
        check_magnitude("X", np.diag(scatter)[:, None], dtype=X.dtype)
    if y is None:
        return total, mean_x, scatter, None, None, None, rest_x, None
    column = (slice(None),) + (None,) * (y.ndim - 1)
    residual = y - mean_y
    rest_y = weight @ residual / total
    residual -= rest_y
    scatter_yy = np.einsum("i...,i...->...", residual, weight[column] * residual)
    residual *= (weight if is_sparse else np.sqrt(weight))[column]
    return total, mean_x, scatter, mean_y, X.T @ residual, scatter_yy, rest_x, rest_y


def without_rounding(variance: np.ndarray, square: np.ndarray, n_rows: int) -> np.ndarray:
    """Differences ``E[x²] - E[x]²``, 0 where they are rounding error of the square."""
    rounding = 8 * np.finfo(np.float64).eps * np.sqrt(n_rows) * square
    return np.where(variance > rounding, variance, 0.0)


def merged(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """Moments of the rows of a and b together (Chan, Golub & LeVeque 1983, eq. 2.1)."""
    total = a[0] + b[0]
    share = b[0] / total
    factor = a[0] * share
    dx, mean_x, rest_x = _moved_mean(a[1], a[6], b[1], b[6], share)
    outer = (factor * np.outer(dx, dx)).astype(a[2].dtype, copy=False)
    scatter_xx = a[2] + b[2] + outer
    if a[3] is None:
        return total, mean_x, scatter_xx, None, None, None, rest_x, None
    dy, mean_y, rest_y = _moved_mean(a[3], a[7], b[3], b[7], share)
    scatter_xy = a[4] + b[4] + factor * np.multiply.outer(dx, dy)
    scatter_yy = a[5] + b[5] + factor * dy**2
    return total, mean_x, scatter_xx, mean_y, scatter_xy, scatter_yy, rest_x, rest_y


def _moved_mean(
    mean_a: Any, rest_a: Any, mean_b: Any, rest_b: Any, share: float
) -> tuple[Any, Any, Any]:
    """Difference ``b - a``, and ``a + share (b - a)`` as a rounded mean and what rounding took."""
    difference = (mean_b - mean_a) + (rest_b - rest_a)
    step = rest_a + share * difference
    mean = mean_a + step
    # Knuth's two-sum: what the addition rounded away.
    moved = mean - mean_a
    return difference, mean, (mean_a - (mean - moved)) + (step - moved)


def check_possible(
    n: np.ndarray, mean_x: np.ndarray, scatter: np.ndarray, scatter_yy: np.ndarray | None
) -> None:
    """Refuse sums that no rows have with a `ValueError`.

    Parameters
    ----------
    n : ndarray of shape (n_domains,)
    mean_x : ndarray of shape (n_domains, n_features)
    scatter : ndarray of shape (n_domains, n_features, n_features)
    scatter_yy : ndarray of shape (n_domains, ...) or None
    """
    if not (n > 0).all():
        raise ValueError("n_samples is not positive")
    spread = np.einsum("dii->di", scatter)
    if (spread < 0).any() or (scatter_yy is not None and (scatter_yy < 0).any()):
        raise ValueError("a variance is negative")
    for d, matrix in enumerate(scatter):
        # Covariances obey Cauchy-Schwarz, but for rounding error of the second moments about zero.
        with np.errstate(over="ignore", invalid="ignore"):  # nan is not below a limit
            root, size = np.sqrt(spread[d]), np.sqrt(spread[d] + n[d] * mean_x[d] ** 2)
            limit = (1 + _SLACK) * np.outer(root, root) + _SLACK**2 * np.outer(size, size)
            if not (np.abs(matrix) <= limit).all():
                raise ValueError("scatter_xx holds covariances above their variances")
            if not (np.abs(matrix - matrix.T) <= _SLACK * limit).all():
                raise ValueError("scatter_xx is not symmetric")


def stacked(parts: list[tuple[Any, ...]]) -> list[Any]:
    """One array per field from one tuple per domain."""
    return [None if column[0] is None else np.array(column) for column in zip(*parts, strict=True)]
