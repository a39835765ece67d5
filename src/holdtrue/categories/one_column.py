"""OneColumnClassifier: shrunk shares, or rules (4) and (5) of the paper, on one column."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from holdtrue.categories import kernel, shrunk
from holdtrue.categories.cells import Cells, class_labels, in_order, read_rows
from holdtrue.categories.estimate import best_first
from holdtrue.categories.score import (
    CRITERIA,
    Scoring,
    check_classes,
    check_scoring,
    kinds_of,
    score_column,
)
from holdtrue.columns.bins import readings
from holdtrue.columns.distinct import distinct
from holdtrue.columns.values import columns_of
from holdtrue.errors import check_choice, speaks
from holdtrue.path import fits_whole
from holdtrue.sums import Counts
from holdtrue.validation import check_columns, feature_names, target_rows

__all__ = ["OneColumnClassifier"]

_CRITERIA = {"shrunk": "log_loss", "majority": "majority", "gini": "ginger"}


class OneColumnClassifier(ClassifierMixin, BaseEstimator):
    """Predict from the value of one column, as the rows with the same value had it.

    A measuring stick for rankings, and the simplest model that a larger one has to beat. Not to
    be used where several columns matter together.

    Parameters
    ----------
    rule : {"shrunk", "majority", "gini"}
        Name the likeliest class by the value's shares, shrunk to those of all rows as
        `GingerSelector` estimates them; by the paper, the most frequent class of the value (5), or
        a class drawn with the frequencies of the value's rows (4).
    column : int or str, optional
        The column. By default the one whose estimated loss under the rule is least.
    categorical_features, max_bins
        As in `GingerSelector`.
    unseen : {"uniform", "prior"}
        For the paper's rules a value not seen in the fit is a tie of all classes, or has the shares
        of all rows; shrunk shares are then those of all rows.
    random_state : int, RandomState instance or None
        For the draws of ``rule="gini"``.

    Attributes
    ----------
    column_ : int
        The column used.
    score_ : float
        Its estimated loss on new rows: log loss, or the share wrong of the paper's rules.
    strength_ : float
        Rows that the shares of all rows count for; NaN for the paper's rules.
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    Examples
    --------
    >>> import numpy as np
    >>> from holdtrue.categories import OneColumnClassifier
    >>> X = np.array([[i, i % 3] for i in range(60)])
    >>> model = OneColumnClassifier().fit(X, X[:, 1] == 0)
    >>> model.column_, model.predict([[100, 0], [101, 1]])
    (1, array([ True, False]))
    """

    def __init__(
        self,
        rule: str = "shrunk",
        *,
        column: int | str | None = None,
        categorical_features: Any = "from_dtype",
        max_bins: int = 64,
        unseen: str = "uniform",
        random_state: Any = None,
    ):
        self.rule = rule
        self.column = column
        self.categorical_features = categorical_features
        self.max_bins = max_bins
        self.unseen = unseen
        self.random_state = random_state

    @fits_whole
    def fit(self, X: Any, y: Any, *, sample_weight: Any = None) -> OneColumnClassifier:
        """Choose the column and keep its counts.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Classes.
        sample_weight : array-like of shape (n_samples,), optional
            Whole numbers: weights are repetitions.

        Returns
        -------
        self : OneColumnClassifier
        """
        check_choice("rule", self.rule, _CRITERIA)
        criterion = _CRITERIA[self.rule]
        check_scoring(criterion, self.max_bins, unseen=self.unseen)
        target_rows(y)  # before the attributes of an earlier fit go
        table = read_rows(self, X, reset=True)
        counts = Counts.from_arrays(table, class_labels(y), sample_weight=sample_weight)
        check_classes(counts.classes, counts.n_samples)
        kinds = kinds_of(self.categorical_features, counts.names, counts.kinds)
        candidates = [*range(counts.n_features)]
        if self.column is not None:
            candidates = check_columns("column", [self.column], feature_names(self))
        profiles = list(replace(counts, kinds=kinds).profiles(self.max_bins).values())
        how = Scoring(CRITERIA[criterion], max_bins=self.max_bins, unseen=self.unseen)
        estimates = [score_column(profiles[j], how) for j in candidates]
        best = best_first(estimates)[0]
        j = self.column_ = candidates[best]
        self.score_ = estimates[best].score
        self.strength_ = float(estimates[best].estimate.strength)
        self.classes_ = np.array(counts.classes)
        order = in_order(counts.values[j])
        values, counted = counts.values[j].take(order), counts.tables[j][order]
        ways = readings(kinds[j], values, counted, self.max_bins)
        reading = ways[estimates[best].reading]
        self._cells = Cells.from_reading(counts.names[j], values, reading)
        self._counts = reading.table
        return self

    @speaks
    def predict(self, X: Any) -> np.ndarray:
        """Class of each row; a tie goes to the first class.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            With the columns of the fit.

        Returns
        -------
        classes : ndarray of shape (n_samples,)
        """
        chance = self._chances(X)
        if self.rule != "gini":
            return self.classes_[chance.argmax(axis=1)]
        drawn = check_random_state(self.random_state).random_sample((len(chance), 1))
        classes = (drawn > np.cumsum(chance, axis=1)).sum(axis=1)
        return self.classes_[np.minimum(classes, len(self.classes_) - 1)]

    @available_if(lambda self: self.rule == "shrunk")  # type: ignore[untyped-decorator]
    @speaks
    def predict_proba(self, X: Any) -> np.ndarray:
        """Shrunk shares of the classes.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            With the columns of the fit.

        Returns
        -------
        shares : ndarray of shape (n_samples, n_classes)
        """
        cell, counts = self._rows(X)
        return shrunk.shares(counts, counts.sum(axis=0), self.strength_)[cell]

    def expected_error(self, X: Any, y: Any) -> float:
        """Share of the rows that the rule gets wrong on average over its ties and draws, (3).

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            With the columns of the fit.
        y : array-like of shape (n_samples,)

        Returns
        -------
        error : float
        """
        chance = self._chances(X)
        right = self.classes_[None] == np.asarray(y)[:, None]
        return 1 - float((chance * right).sum() / len(chance))

    def _rows(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Cell of each row, and the counts of cells; those of values not seen, cell -1, last."""
        check_is_fitted(self, "column_")
        table = read_rows(self, X, reset=False)
        name, column = list(columns_of(table).items())[self.column_]
        values, codes = distinct(name, column)
        counts = np.concatenate([self._counts, np.zeros_like(self._counts[:1])])
        return self._cells.of_values(values)[codes], counts

    def _chances(self, X: Any) -> np.ndarray:
        """Probabilities with which the rule names each class, shape (n_samples, n_classes)."""
        cell, counts = self._rows(X)
        total = counts.sum(axis=0)
        if self.rule == "shrunk":
            return np.eye(len(total))[shrunk.likeliest(counts, total, self.strength_)][cell]
        if self.unseen == "prior":
            counts[-1] = total
        return (kernel.majority_rule if self.rule == "majority" else kernel.gini_rule)(counts)[cell]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
