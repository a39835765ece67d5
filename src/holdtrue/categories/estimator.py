"""GingerSelector: keep the columns that predict new rows."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from holdtrue.categories.counting import (
    ColumnEstimate,
    Reading,
    Scoring,
    categorical_mask,
    check_classes,
    check_scoring,
    column_estimate,
    is_numeric,
    readings,
    score_order,
)
from holdtrue.categories.new_rows import forget, read_rows
from holdtrue.path import SelectionPath, ShowsPath
from holdtrue.sums import Counts
from holdtrue.tally import Target, is_present, present_values, table_of, whole_weights
from holdtrue.validation import check_choice, is_number, target_rows
from holdtrue.values import columns_of, distinct

__all__ = ["GingerSelector"]


class GingerSelector(SelectorMixin, ShowsPath, BaseEstimator):
    """Keep the columns whose own predictor errs less on new rows than no column at all.

    Each column is scored by the error that it alone would make on rows not yet seen, estimated
    from counts by Ginger. A column that only remembers its rows, such as an id or a postcode,
    scores like a guess, however many values it has. Text, categories, truth values, integers,
    numbers and dates are taken as they are; a missing value is a value of its own.

    Not to be used where rows repeat the same subject (each row must be drawn on its own), nor
    to read the error of the best of very many columns off its score: the least of many estimates
    is too low. A column that helps only together with another is found by ``mode="forward"`` at
    most.

    Parameters
    ----------
    criterion : {"ginger", "majority", "gini", "misclassification", "information_gain", \
"gain_ratio"}
        ``"ginger"`` and ``"majority"`` estimate the error on new rows of the rules that predict
        as a random row, or as the majority, of the same value. The others look at the rows of the
        fit only and are there to compare with. Lower is better for all: information gain is given
        as the entropy that is left, gain ratio as one minus the ratio.
    n_features_to_select : int, optional
        How many columns to keep. By default those that beat "no column" by more than the interval,
        or with ``mode="forward"`` as many as clearly lower the estimate.
    mode : {"each", "forward"}
        Score columns one by one, or given those already chosen: by the score of their joint
        column, while one lowers it by more than ``sqrt(2 ln p)`` standard errors, p being the
        number of columns left. The best of p seems better than it is.
    target_type : {"auto", "classes", "numeric"}
        ``"auto"`` takes a target with fractions as numeric and any other as classes.
    categorical_features : "from_dtype" or array-like
        Columns to take by value whatever their type: names, indices or a mask. The others go by
        their type: text, categories and truth values by value, floats and dates in bins, integers
        both ways, of which the better stands.
    max_bins : int
        Most bins of a column of numbers. The criterion chooses how many.
    missing : {"category", "ignore"}
        Take missing as a value of its own, or leave those rows out of that column.
    unseen : {"uniform", "prior"}
        How a value not seen is predicted: all classes alike, as in the paper, or as the other rows
        have it.
    alpha : float
        One minus the confidence of the intervals, column by column.

    Attributes
    ----------
    scores_ : ndarray of shape (n_features,)
        Estimate of each column; lower is better.
    no_column_scores_ : ndarray of shape (n_features,)
        The same without the column. It differs between columns only where missing rows are left
        out.
    intervals_ : ndarray of shape (n_features, 2)
        For the scores, by the jackknife.
    gain_intervals_ : ndarray of shape (n_features, 2)
        For ``no_column_scores_ - scores_``. A column beats "no column" if it lies above 0.
    coverage_ : ndarray of shape (n_features,)
        Share of new rows whose value has been seen (Good-Turing). Low for an id.
    n_bins_ : ndarray of shape (n_features,)
        Bins that a column is read in; 0 where it is read by value.
    ranking_ : ndarray of shape (n_features,)
        1 for the best: columns kept, then the others, each by score.
    support_ : ndarray of shape (n_features,)
        Mask of the columns kept.
    path_ : SelectionPath
        Columns in that order. With ``mode="each"`` a score is that of the column alone, with
        ``mode="forward"`` that of all columns up to it.
    n_features_in_ : int
    feature_names_in_ : ndarray of str

    See Also
    --------
    rank_columns : The same as a table to read, from a frame or a file.
    Counts : What `fit_statistics` needs of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from holdtrue import GingerSelector
    >>> rng = np.random.default_rng(0)
    >>> colour = rng.choice(["red", "blue", "green"], 300)
    >>> X = pd.DataFrame({"id": [f"u{i}" for i in range(300)], "colour": colour})
    >>> y = (colour == "red") ^ (rng.random(300) < 0.1)
    >>> selector = GingerSelector().fit(X, y)
    >>> selector.get_feature_names_out()
    array(['colour'], dtype=object)
    >>> selector.scores_.round(2)
    array([0.5 , 0.17])
    """

    feature_names_in_: np.ndarray

    def __init__(
        self,
        criterion: str = "ginger",
        *,
        n_features_to_select: int | None = None,
        mode: str = "each",
        target_type: str = "auto",
        categorical_features: Any = "from_dtype",
        max_bins: int = 64,
        missing: str = "category",
        unseen: str = "uniform",
        alpha: float = 0.05,
    ):
        self.criterion = criterion
        self.n_features_to_select = n_features_to_select
        self.mode = mode
        self.target_type = target_type
        self.categorical_features = categorical_features
        self.max_bins = max_bins
        self.missing = missing
        self.unseen = unseen
        self.alpha = alpha

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GingerSelector:
        """Score every column and choose.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Classes, or numbers.
        sample_weight : array-like of shape (n_samples,), optional
            Whole numbers: weights are repetitions.

        Returns
        -------
        self : GingerSelector
        """
        self._check_parameters()
        if y is None:
            raise ValueError(
                "GingerSelector: requires y to be passed, but the target y is None. Call fit(X, y)."
            )
        table = read_rows(self, X, reset=True)
        target = target_rows("GingerSelector", y)
        numeric = is_numeric(target, self.target_type)
        weight = whole_weights("GingerSelector", sample_weight, len(table))
        counts = Counts.from_arrays(
            table,
            target,
            names=self._names(),
            numeric_target=numeric,
            sample_weight=weight,
        )
        if self.mode == "each":
            return self._choose(counts)
        columns = list(columns_of("GingerSelector", table).values())
        return self._choose(counts, columns, Target.from_column(target, numeric, weight))

    def fit_statistics(self, counts: Counts) -> GingerSelector:
        """Score every column from counts, which may be the sum over parts of a table, and choose.

        Parameters
        ----------
        counts : Counts
            Of classes, or with ``numeric_target=True``; refused where `target_type` says otherwise.

        Returns
        -------
        self : GingerSelector
        """
        self._check_parameters()
        if not isinstance(counts, Counts):
            raise TypeError(
                f"GingerSelector.fit_statistics: expected Counts. Got {type(counts).__name__}. "
                "Build them with Counts.from_frame, or call fit(X, y)."
            )
        if self.mode == "forward":
            raise ValueError(
                "GingerSelector.fit_statistics: mode='forward' needs the rows, because the counts "
                "of single columns do not hold those of joint ones. Call fit(X, y), or pass "
                "mode='each'."
            )
        self._check_target(counts.classes)
        forget(self)
        self.n_features_in_ = counts.n_features
        if list(counts.names) != self._names():  # columns of an array have no names
            self.feature_names_in_ = np.array(counts.names, dtype=object)
        return self._choose(counts)

    def transform(self, X: Any) -> Any:
        """X with the chosen columns only; a frame comes back as its own kind of frame.

        Where none is chosen the rows stay: of pandas as a frame with its index, of Arrow and
        Polars, which need a column to hold rows, as an array of shape (n_samples, 0).
        """
        check_is_fitted(self, "support_")
        table = read_rows(self, X, reset=False)
        kept = np.flatnonzero(self.support_).tolist()
        if isinstance(table, np.ndarray):
            return table[:, kept]
        frame = nw.from_native(table, eager_only=True)
        if not kept:
            is_pandas = frame.implementation.is_pandas_like()
            return table.iloc[:, :0] if is_pandas else np.empty((len(frame), 0))
        frame = frame[:, kept]
        own: dict[str, str] = getattr(self, "_sklearn_output_config", {})
        wanted = own.get("transform", get_config()["transform_output"])
        if wanted == "pandas":
            return frame.to_pandas()
        return frame.to_polars() if wanted == "polars" else frame.to_native()

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self, "support_")
        return self.support_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        return tags

    # --- checks, all before any work ---

    def _check_parameters(self) -> None:
        who = "GingerSelector"
        check_scoring(who, self.criterion, self.max_bins, self.missing, self.unseen, self.alpha)
        check_choice(who, "mode", self.mode, ("each", "forward"))
        check_choice(who, "target_type", self.target_type, ("auto", "classes", "numeric"))
        if self.mode == "forward" and self.missing == "ignore":
            raise ValueError(
                f"{who}: mode='forward' compares joint columns on the same rows. "
                "Got missing='ignore', which leaves out others for each column. "
                "Pass missing='category'."
            )
        wanted = self.n_features_to_select
        if wanted is not None and not (is_number(wanted, numbers.Integral) and wanted >= 1):
            raise ValueError(
                f"{who}: n_features_to_select must be a whole number of at least 1, or None. "
                f"Got {wanted!r}."
            )

    def _check_target(self, classes: tuple[Any, ...] | None) -> None:
        """Refuse counts that were not made for this target_type."""
        who, kind = "GingerSelector.fit_statistics", self.target_type
        if classes is None:
            if kind == "classes":
                raise ValueError(
                    f"{who}: target_type='classes' needs counts of classes. Got sums of a numeric "
                    "target. Build them with numeric_target=False, or pass target_type='auto'."
                )
            return
        if kind == "numeric":
            raise ValueError(
                f"{who}: target_type='numeric' needs sums of a numeric target. Got counts of "
                f"{len(classes)} classes. Build them with numeric_target=True."
            )
        if is_numeric(np.array(classes, dtype=object), kind):
            raise ValueError(
                f"{who}: a target with fractions is a number. Got counts of {len(classes)} "
                f"classes, such as {classes[0]!r}. Build them with numeric_target=True, or pass "
                "target_type='classes'."
            )

    def _names(self) -> list[str]:
        if hasattr(self, "feature_names_in_"):
            return [str(name) for name in self.feature_names_in_]
        return [f"x{j}" for j in range(self.n_features_in_)]

    # --- pieces of fit ---

    def _choose(
        self, counts: Counts, columns: Sequence[Any] = (), rows: Target | None = None
    ) -> GingerSelector:
        who, n_columns = "GingerSelector", counts.n_features
        numeric = counts.classes is None
        check_classes(who, counts.classes, counts.n_samples, self.criterion)
        if (self.n_features_to_select or 0) > n_columns:
            raise ValueError(
                f"{who}: n_features_to_select must not exceed the number of columns. "
                f"Got n_features_to_select={self.n_features_to_select} with {n_columns} columns."
            )
        by_value = categorical_mask(who, self.categorical_features, counts.names)
        kinds = tuple(
            "category" if forced else kind
            for kind, forced in zip(counts.kinds, by_value, strict=True)
        )
        counts = replace(counts, kinds=kinds)
        how = Scoring(self.criterion, numeric, self.max_bins, self.missing, self.unseen, self.alpha)
        found: list[ColumnEstimate] = []
        try:
            for kind, values, table in zip(kinds, counts.values, counts.tables, strict=True):
                found.append(column_estimate(kind, values, table, how))
            self._keep(found)
            if rows is None:
                self.path_ = self._each(found, counts.names, how)
            else:
                self.path_ = self._forward(counts, columns, rows, how)
        except KeyboardInterrupt:
            empty = np.array([found[0].no_column if found else np.nan])
            self.path_ = SelectionPath(np.array([]), (), empty, 0, "interrupted", how.unit)
            raise
        self.support_ = self.path_.support(n_columns)
        self.ranking_ = self.path_.ranking(n_columns)
        return self

    def _keep(self, found: list[ColumnEstimate]) -> None:
        self.scores_ = np.array([column.score for column in found])
        self.no_column_scores_ = np.array([column.no_column for column in found])
        self.intervals_ = np.array([column.interval for column in found])
        self.gain_intervals_ = np.array([column.gain_interval for column in found])
        self.coverage_ = np.array([column.coverage for column in found])
        self.n_bins_ = np.array([column.reading.n_bins for column in found])

    def _each(
        self, found: list[ColumnEstimate], names: Sequence[str], how: Scoring
    ) -> SelectionPath:
        order = score_order(self.scores_)
        if self.n_features_to_select is None:
            beats = np.array([column.beats_no_column for column in found])
            order = order[np.argsort(~beats[order], kind="stable")]
            size = int(beats.sum())
            reason = (
                f"{size} of {len(order)} columns beat no column by more than the "
                f"{100 * (1 - self.alpha):g}% interval"
            )
        else:
            size = int(self.n_features_to_select)
            reason = f"the {size} best of {len(order)} columns, as n_features_to_select says"
        return SelectionPath(
            order=order,
            names=tuple(names[j] for j in order),
            scores=np.append(np.max(self.no_column_scores_), self.scores_[order]),
            chosen_size=size,
            reason=reason,
            unit=how.unit,
        )

    def _forward(
        self, counts: Counts, columns: Sequence[Any], rows: Target, how: Scoring
    ) -> SelectionPath:
        """Add the column whose joint column with those chosen scores best, of those that are clear.

        The last column of the path is the first that was not, unless there is none left.
        """
        ways = []
        for j, (column, name) in enumerate(zip(columns, counts.names, strict=True)):
            values, codes = distinct("GingerSelector", name, column)
            table = table_of(codes, len(values), rows)
            # Rows of weight 0 may have values that are not there; they count nowhere.
            codes = np.maximum(np.cumsum(is_present(table)) - 1, 0)[codes]
            values, table = present_values(values, table)
            for reading in readings(counts.kinds[j], values, table, how):
                ways.append(_Way(j, values, codes, reading))
        joint = _Joint(np.zeros(len(rows.codes), dtype=np.intp), 1)
        order: list[int] = []
        scores = [float(self.no_column_scores_[0])]
        wanted = self.n_features_to_select
        size = 0
        while len(order) < (wanted or len(columns)):
            left = [way for way in ways if way.column not in order]
            tried = np.array([how.score(joint.counts(way, rows)[0]) for way in left])
            n_columns = len({way.column for way in left if len(way.values) > 1})
            best = score_order(tried)
            enough = (
                at
                for at in best
                if wanted is not None
                or (
                    tried[at] < scores[-1] - 1e-12 * abs(scores[-1])
                    and how.is_clear(*joint.counts(left[at], rows), n_columns)
                )
            )
            chosen = next(enough, None)
            at = best[0] if chosen is None else chosen
            order.append(left[at].column)
            scores.append(float(tried[at]))
            if chosen is None:
                break
            size += 1
            joint = joint.cut(left[at])[0]
        reason = (
            f"the {size} columns that n_features_to_select asks for"
            if wanted is not None
            else f"after {size} of {len(columns)} columns no further one {how.lowers} the estimate"
        )
        names = tuple(counts.names[j] for j in order)
        return SelectionPath(np.array(order), names, np.array(scores), size, reason, how.unit)


class _Way(NamedTuple):
    """A column in one reading; values of the column and the rows' places among them."""

    column: int
    values: Any
    codes: np.ndarray
    reading: Reading


class _Joint(NamedTuple):
    """The column of which each value is a combination of values of those chosen."""

    codes: np.ndarray
    n_values: int

    def cut(self, way: _Way) -> tuple[_Joint, np.ndarray]:
        """The same with one column more, and the value of this one that each of its is part of."""
        n_groups = len(way.reading.table)
        codes = self.codes * n_groups + way.reading.groups(way.values)[way.codes]
        if self.n_values * n_groups <= 4 * len(codes):
            parent = np.repeat(np.arange(self.n_values), n_groups)
            return _Joint(codes, len(parent)), parent
        seen, codes = np.unique(codes, return_inverse=True)
        return _Joint(codes, len(seen)), seen // n_groups

    def counts(self, way: _Way, rows: Target) -> tuple[np.ndarray, np.ndarray]:
        """Table of the same with one column more, and what each value is part of."""
        finer, parent = self.cut(way)
        table = table_of(finer.codes, finer.n_values, rows)
        there = is_present(table)
        return table[there], parent[there]
