"""Folds for cross-validation, as weights: a row of weight 2 may train with 1 and test with 1."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from holdtrue.model_size.kernel import fold_weights

Fold = tuple[np.ndarray, np.ndarray]


def split_rows(
    cv: Any, X: np.ndarray, y: np.ndarray, weight: np.ndarray, rng: np.random.RandomState
) -> list[Fold]:
    """Training and test weights of the rows of positive weight, fold by fold.

    Parameters
    ----------
    cv : int, splitter or iterable of (train, test)
        A number is that many shuffled folds. A splitter sees the rows of positive weight, pairs of
        indices count all rows.
    X : ndarray of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,)
    weight : ndarray of shape (n_rows,)
    rng : RandomState
    """
    used = weight > 0
    if isinstance(cv, numbers.Integral):
        order = sorted_rows(X[used], y[used])
        test = np.zeros((int(cv), len(order)))
        test[:, order] = fold_weights(weight[used][order], int(cv), rng)
        return [(weight[used] - part, part) for part in test if part.any()]
    if hasattr(cv, "split"):
        X, y, weight, used = X[used], y[used], weight[used], np.ones(used.sum(), dtype=bool)
    try:
        pairs = [
            (_held(train, weight)[used], _held(test, weight)[used])
            for train, test in check_cv(cv).split(X, y)
        ]
    except (TypeError, ValueError, IndexError) as error:
        raise ValueError(
            f"NestedRegressor: cv must be a number of folds, a splitter, or pairs of row indices "
            f"(train, test) of the {len(y)} rows. Got {cv!r}, which did not split them ({error}). "
            "If it needs groups, pass list(splitter.split(X, y, groups))."
        ) from error
    if not pairs:
        raise ValueError(
            "NestedRegressor: cv gave no folds. A generator can be used once: pass a list."
        )
    if not all(train.any() and test.any() for train, test in pairs):
        raise ValueError(
            "NestedRegressor: every fold of cv must train and test on at least one row of positive "
            "weight. Pass fewer folds."
        )
    return pairs


def _held(rows: Any, weight: np.ndarray) -> np.ndarray:
    """The weights of those rows, zero elsewhere."""
    held = np.zeros(len(weight))
    held[rows] = weight[rows]
    return held


def sorted_rows(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Order of the rows by their values alone, so that draws do not follow storage."""
    return np.lexsort((y, *X.T[::-1]))
