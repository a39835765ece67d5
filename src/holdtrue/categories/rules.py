"""OneColumnClassifier: rules (4) and (5) of the paper, on one column."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from holdtrue.categories import kernel
from holdtrue.categories.counting import (
    ColumnEstimate,
    Scoring,
    categorical_mask,
    check_classes,
    check_scoring,
    column_estimate,
    is_numeric,
    score_order,
)
from holdtrue.categories.new_rows import as_numbers, bin_places, read_rows
from holdtrue.sums import Counts
from holdtrue.tally import whole_weights
from holdtrue.validation import check_choice, did_you_mean, is_number, target_rows
from holdtrue.values import columns_of, distinct, joined

__all__ = ["OneColumnClassifier"]

_CRITERIA = {"majority": "majority", "gini": "ginger"}


class OneColumnClassifier(ClassifierMixin, BaseEstimator):
    """Predict from the value of one column, as the rows with the same value had it.

    A measuring stick for rankings, and the simplest model that a larger one has to beat. Not to
    be used where several columns matter together.

    Parameters
    ----------
    rule : {"majority", "gini"}
        Name the most frequent class of the value (5), or a class drawn with the frequencies of
        the value's rows (4).
    column : int or str, optional
        The column. By default the one whose estimated error under the rule is least.
    categorical_features, max_bins
        As in `GingerSelector`.
    unseen : {"uniform", "prior"}
        A value not seen in the fit is taken for a tie of all classes, or for all rows of the fit.
    random_state : int, RandomState instance or None
        For the draws of ``rule="gini"``.

    Attributes
    ----------
    column_ : int
        The column used.
    score_ : float
        Its estimated error on new rows.
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
        rule: str = "majority",
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OneColumnClassifier:
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
        who = "OneColumnClassifier"
        check_choice(who, "rule", self.rule, _CRITERIA)
        criterion = _CRITERIA[self.rule]
        check_scoring(who, criterion, self.max_bins, "category", self.unseen, 0.05)
        table = read_rows(self, X, reset=True)
        target = target_rows(who, y)
        if is_numeric(target, "auto"):
            raise ValueError(
                f"{who}: Unknown label type: continuous. Expected classes. Got a target with "
                "fractions. Turn it into classes first."
            )
        counts = Counts.from_arrays(
            table, target, sample_weight=whole_weights(who, sample_weight, len(table))
        )
        check_classes(who, counts.classes, counts.n_samples, criterion)
        how = Scoring(criterion, max_bins=self.max_bins, unseen=self.unseen)
        by_value = categorical_mask(who, self.categorical_features, counts.names)
        kinds = ["category" if by_value[j] else kind for j, kind in enumerate(counts.kinds)]
        candidates = range(counts.n_features) if self.column is None else [self._place(counts)]
        found: list[ColumnEstimate] = [
            column_estimate(kinds[j], counts.values[j], counts.tables[j], how) for j in candidates
        ]
        best = int(score_order(np.array([column.score for column in found]))[0])
        self.column_ = int(candidates[best])
        self.score_ = found[best].score
        self.classes_ = np.array(counts.classes)
        self._values = counts.values[self.column_]
        self._reading = found[best].reading
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Classes of the rows of X; a tie goes to the first class."""
        chance = self._chances(X)
        if self.rule == "majority":
            return self.classes_[chance.argmax(axis=1)]
        drawn = check_random_state(self.random_state).random_sample((len(chance), 1))
        named = (drawn > np.cumsum(chance, axis=1)).sum(axis=1)
        return self.classes_[np.minimum(named, len(self.classes_) - 1)]

    def expected_error(self, X: Any, y: Any) -> float:
        """Share of the rows that the rule gets wrong on average over its ties and draws, (3)."""
        chance = self._chances(X)
        right = self.classes_[None] == np.asarray(y)[:, None]
        return 1 - float((chance * right).sum() / len(chance))

    def _place(self, counts: Counts) -> int:
        who, names = "OneColumnClassifier", [str(n) for n in getattr(self, "feature_names_in_", ())]
        column = self.column
        if isinstance(column, str) and column in names:
            return names.index(column)
        if is_number(column, numbers.Integral) and 0 <= column < counts.n_features:  # type: ignore[operator]
            return int(column)  # type: ignore[arg-type]
        raise ValueError(
            f"{who}: column must name a column of X or number it from 0 to "
            f"{counts.n_features - 1}. Got {column!r}." + did_you_mean(column, names)
        )

    def _chances(self, X: Any) -> np.ndarray:
        """Probabilities with which the rule names each class, shape (n_samples, n_classes)."""
        check_is_fitted(self, "column_")
        table = read_rows(self, X, reset=False)
        name, column = list(columns_of("OneColumnClassifier", table).items())[self.column_]
        values, codes = distinct("OneColumnClassifier", name, column)
        counts = self._reading.table
        unseen = counts.sum(axis=0) if self.unseen == "prior" else np.zeros_like(counts[0])
        rule = kernel.majority_rule if self.rule == "majority" else kernel.gini_rule
        # The last row is for values not seen, which have place -1.
        chance = rule(np.concatenate([counts, unseen[None]]))
        return chance[self._groups(name, values)[codes]]

    def _groups(self, name: str, values: Any) -> np.ndarray:
        """Row of the counts that each value belongs to; -1 for one not seen."""
        n_own, own = len(self._values), self._reading.groups(self._values)
        if not self._reading.n_bins:
            every = joined("OneColumnClassifier", name, [self._values, values])
            group = np.full(len(every.values), -1)
            group[every.codes[:n_own]] = own
            return group[every.codes[n_own:]]
        n_bins = self._reading.n_bins
        groups = np.full(len(values), n_bins if len(self._reading.table) > n_bins else -1)
        edges = np.sort(as_numbers(self._values))[self._reading.ends[:-1]]
        place = bin_places("OneColumnClassifier", name, edges, self._values.type, values)
        groups[np.asarray(values.is_valid())] = place
        return groups

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
