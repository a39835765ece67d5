"""Folds of rows for encodings that must not see their own row."""

from __future__ import annotations

import numbers
from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import check_cv

from holdtrue.columns.counting import Target, table_of
from holdtrue.errors import InputError, shown
from holdtrue.validation import is_number


class Folds(NamedTuple):
    """The fold of every row."""

    fold: np.ndarray  # shape (n_rows,)
    # Where folds are dealt, rows that count nowhere (weight 0) have one of their own, the last:
    # nothing is left out for them
    n_folds: int


def check_folds(cv: Any) -> None:
    """Refuse what is neither a number of folds nor a way to make them."""
    if is_number(cv, numbers.Integral) and cv >= 2:
        return
    is_number_like = isinstance(cv, (bool, np.bool_, numbers.Number, str)) or cv is None
    if is_number_like or not (hasattr(cv, "split") or hasattr(cv, "__iter__")):
        raise InputError(
            f"cv must be a whole number of at least 2, a splitter of scikit-learn, or pairs of "
            f"row numbers (train, test). Got {shown(cv)}."
        )


def folds_of(
    cv: Any, target: Target, group: np.ndarray | None, rng: np.random.RandomState
) -> Folds:
    """The fold of every row, dealt or as ``cv`` says.

    Every row must be in one test part of ``cv``; it learns from the rows of all other parts.
    """
    if is_number(cv, numbers.Integral):
        return deal_folds(int(cv), target, group, rng)
    n_rows = len(target.codes)
    fold, n_times, n_folds = np.zeros(n_rows, np.int32), np.zeros(n_rows, np.intp), 0
    for _, test in check_cv(cv).split(np.zeros((n_rows, 1)), target.codes, group):
        fold[test] = n_folds
        n_times[np.arange(n_rows)[test]] += 1
        n_folds += 1
    if (n_times != 1).any():
        row = int(np.argmax(n_times != 1))
        raise InputError(
            f"cv must put every row into one test part. Row {row} is in {n_times[row]}. "
            "Pass a number of folds, or a splitter such as KFold."
        )
    weight = np.bincount(fold, target.weight, n_folds)
    if np.count_nonzero(weight) < 2:
        raise InputError(
            "cv must leave rows to learn from for every fold. Got all rows of positive weight in "
            "one test part."
        )
    if group is not None:
        fold_of_group = np.zeros(int(group.max()) + 1, dtype=np.int32)
        fold_of_group[group] = fold
        if (fold_of_group[group] != fold).any():
            raise InputError(
                "the rows of a group must be in one test part of cv. Got a group in several. Pass "
                "a number of folds, or a splitter such as GroupKFold."
            )
    return Folds(fold, n_folds)


def deal_folds(
    n_folds: int, target: Target, group: np.ndarray | None, rng: np.random.RandomState
) -> Folds:
    """Rows, or whole groups, dealt to folds at random, so that each fold has its share of classes.

    Rows are shuffled and sorted by class, groups by their most frequent class and then by size;
    then they are dealt one by one, as cards are. There are no more folds than rows or groups.
    """
    n_rows = len(target.codes)
    if group is None:
        size = target.weight
        label = target.codes if target.classes is not None else None
        n_units = n_rows
    else:
        size = np.bincount(group, target.weight)
        n_units = len(size)
        label = None
        if target.classes is not None:
            label = table_of(group, n_units, target).argmax(axis=1)
    used = np.arange(n_units) if size is None else np.flatnonzero(size > 0)
    order = rng.permutation(used)
    if size is not None:
        order = order[np.argsort(-size[order], kind="stable")]
    if label is not None:
        order = order[np.argsort(label[order], kind="stable")]
    n_folds = min(n_folds, len(order))
    dealt = np.full(n_units, n_folds, dtype=np.int32)
    dealt[order] = np.arange(len(order), dtype=np.int32) % n_folds
    fold = dealt if group is None else dealt[group]
    return Folds(fold, n_folds + int(fold.max() == n_folds))
