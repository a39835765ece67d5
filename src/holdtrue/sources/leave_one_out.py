"""Errors on left-out rows: with the selection repeated for each, and with the selection kept.

The notation is that of `kernel`. On pure noise the first stays where it is and the second falls,
because the rows that are left out have already had their say in what was chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from holdtrue.sources.kernel import Columns
from holdtrue.sources.targets import Search, fit_target_for

_EPS = float(np.finfo(np.float64).eps)


def held_out_errors(
    lams: Sequence[float],
    columns: Columns,
    y: np.ndarray,
    folds: Iterable[tuple[np.ndarray, np.ndarray]],
    search: Search,
) -> list[np.ndarray]:
    """Mean squared errors on left-out rows, one array for each λ; everything is fitted anew.

    Means, scales and selection are those of the other rows. With the selection kept, the error
    would fall on pure noise. Entry t of an array is the error at size t; paths that stop earlier
    stay as they are, so that the last entry is the error of the whole procedure.

    Parameters
    ----------
    lams : sequence of float
    columns, y, search : as in `fit_target`
    folds : iterable of (weight to fit with, weight to test with), each of shape (n_rows,)
    """
    errors: list[list[np.ndarray]] = [[] for _ in lams]
    weight = 0.0
    for train, test in folds:
        held_out = np.flatnonzero(test)
        for own, fit in zip(errors, fit_target_for(lams, columns, y, train, search), strict=True):
            predicted = fit.predictions(columns(fit.greedy.order)[held_out])
            own.append((predicted - y[held_out]) ** 2 @ test[held_out])
        weight += test.sum()
    return [padded(own).sum(axis=0) / weight for own in errors]


def padded(paths: Sequence[np.ndarray]) -> np.ndarray:
    """Error paths as rows of equal length; those that stop earlier stay as they are."""
    sizes = np.arange(max(map(len, paths)))
    return np.array([path[np.minimum(sizes, len(path) - 1)] for path in paths])


def ridge_leave_one_out(
    Z: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    lams: Sequence[float],
    one: np.ndarray | float = 1.0,
) -> np.ndarray:
    """Left-out predictions of ridge regression on all columns of Z, shape (n_lams, n_rows).

    ``y_i - r_i/(1 - w_i/m - h_ii)``: the residual of row i over what the row leaves to the others.
    Exact for columns as they stand; means are fitted anew, scales and selection are not.

    Parameters
    ----------
    Z : ndarray of shape (n_rows, n_columns)
        Standardised.
    y : ndarray of shape (n_rows,)
        Standardised.
    weight : ndarray of shape (n_rows,)
    lams : sequence of float
    one : ndarray of shape (n_rows,) or float
        Share of a row to leave out: 1/3 for a row that stands for three.
    """
    n = weight.sum()
    values, vectors = np.linalg.eigh(Z @ Z.T)
    values = np.maximum(values, 0)
    image = vectors.T @ y
    predicted = np.empty((len(lams), len(y)))
    for row, lam in enumerate(lams):
        shrink = values / (values + n * lam)
        leverage = weight / n + vectors**2 @ shrink
        residual = y - vectors @ (shrink * image)
        predicted[row] = y - residual / np.maximum(1 - one * leverage, _EPS)
    return predicted / np.sqrt(weight)
