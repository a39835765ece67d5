"""Folds for cross-validation, as weights: a row of weight 2 may train with 1 and test with 1."""

from __future__ import annotations

import copy
import numbers
import warnings
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv

from holdtrue.errors import InputError
from holdtrue.model_size import kernel
from holdtrue.model_size.bases import Basis, Rows

Fold = tuple[np.ndarray, np.ndarray]


def split_rows(
    cv: Any,
    X: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    groups: np.ndarray | None,
    rng: np.random.RandomState,
) -> list[Fold]:
    """Training and test weights of the rows of positive weight, fold by fold.

    A number is that many shuffled folds, of groups if there are any. A splitter sees the rows of
    positive weight, pairs of indices count all rows.
    """
    used = weight > 0
    if isinstance(cv, numbers.Integral) and groups is not None:
        names, group = np.unique(groups[used], return_inverse=True)
        fold = rng.permutation(len(names)) % int(cv)
        return [
            (np.where(held, 0.0, weight[used]), np.where(held, weight[used], 0.0))
            for held in (fold[group] == k for k in range(min(int(cv), len(names))))
        ]
    if isinstance(cv, numbers.Integral):
        order = sorted_rows(X[used], y[used])
        test = np.zeros((int(cv), len(order)))
        test[:, order] = kernel.fold_weights(weight[used][order], int(cv), rng)
        return [(weight[used] - part, part) for part in test if part.any()]
    if hasattr(cv, "split"):
        groups = None if groups is None else groups[used]
        X, y, weight, used = X[used], y[used], weight[used], np.ones(used.sum(), dtype=bool)
    try:
        pairs = [
            (_held(train, weight)[used], _held(test, weight)[used])
            for train, test in check_cv(cv).split(X, y, groups)
        ]
    except (TypeError, ValueError, IndexError) as error:
        raise InputError(
            f"cv must be a number of folds, a splitter, or pairs of row indices "
            f"(train, test) of the {len(y)} rows. Got {cv!r}, which did not split them ({error}). "
            "If it needs groups, pass fit(X, y, groups=...)."
        ) from error
    if not pairs:
        raise InputError("cv gave no folds. A generator can be used once: pass a list.")
    if not all(train.any() and test.any() for train, test in pairs):
        raise InputError(
            "every fold of cv must train and test on at least one row of positive "
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


def held_out_error(
    basis: Basis, rows: Rows, folds: list[Fold], terms: np.ndarray, kept: np.ndarray | None = None
) -> np.ndarray:
    """Mean squared error of held-out rows for every size of a fitted basis.

    The basis is fitted anew in every fold if it looks at the target. ``terms`` are its terms at the
    rows, ``kept`` those that do not depend on earlier ones (found out by default).
    """
    kept = kernel.independent_terms(terms, rows.weight) if kept is None else kept

    used = terms if len(kept) == terms.shape[1] else terms[:, kept]
    parts = []
    for train_weight, test_weight in folds:
        train, test = train_weight > 0, test_weight > 0
        y, weight = rows.y[train], train_weight[train]
        if basis.uses_target:
            refitted = copy.copy(basis)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # said once, by the fit on all rows
                refitted.fit(Rows(rows.X[train], y, weight, rows.unlabeled), terms.shape[1])
                used = refitted.values(rows.X)
            # Sizes count independent terms, here as on the path.
            used = used[:, kernel.independent_terms(used[train], weight)[: len(kept)]]
        parts.append((used[train], y, weight, used[test], rows.y[test], test_weight[test]))
    return kernel.cross_validation(parts, len(kept))
