"""TableEncoder: a table as numbers, as the commands read it, for any model of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from holdtrue.errors import InputError, speaks
from holdtrue.path import fits_whole
from holdtrue.tables.column_summary import FeatureColumn, check_features, feature_columns
from holdtrue.tables.encode import encoded_batch
from holdtrue.tables.opening import open_table
from holdtrue.validation import feature_names, mixed_rows


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode text, dates, truth values and missing values as numbers, without the target.

    `holdtrue select` and `holdtrue compare` read their tables in this way. Numbers stay as they
    are, a missing one becomes the mean; truth values are 0 and 1, dates are days since 1970. A
    category has one feature for each of its values, the most frequent first, and one for missing
    values; with two values it has one feature. Columns with one value are left out, and so are
    categories that look like an id: with more values than half the rows, or than 10,000.

    Not to be used for categories of many values: what they say about the target is lost among the
    values after the first ``max_levels``. `GingerEncoder` keeps it.

    Parameters
    ----------
    max_levels : int, default=20
        Largest number of values of a category that have a feature each; the others share one.

    Attributes
    ----------
    columns_ : tuple of FeatureColumn
        What became of each column: its features, and a ``note`` in words.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        When the columns of X have names.

    See Also
    --------
    GingerEncoder : One number for each column, from what its values say about the target.
    holdtrue.tables.moments_of : The same of a file larger than memory, as sums.

    Examples
    --------
    >>> import pandas as pd
    >>> from holdtrue import TableEncoder
    >>> X = pd.DataFrame({"dose": [1.0, None, 3.0], "plan": ["a", "b", "b"], "smokes": [True, False,
    ...                   True]})
    >>> encoder = TableEncoder().fit(X)
    >>> encoder.get_feature_names_out().tolist()
    ['dose', 'plan=a', 'smokes']
    >>> encoder.transform(X).tolist()
    [[1.0, 1.0, 1.0], [2.0, 0.0, 0.0], [3.0, 0.0, 1.0]]
    >>> [column.note for column in encoder.columns_]
    ['number; 1 missing, filled with the mean 2', 'category of 2 values', 'truth value']
    """

    feature_names_in_: np.ndarray

    def __init__(self, max_levels: int = 20):
        self.max_levels = max_levels

    @classmethod
    def from_columns(cls, columns: Sequence[FeatureColumn]) -> TableEncoder:
        """The encoder of columns that `moments_of` or `rows_of` has described."""
        encoder = cls()
        encoder.columns_ = tuple(columns)
        encoder.n_features_in_ = len(encoder.columns_)
        encoder.feature_names_in_ = np.array([column.name for column in columns], dtype=object)
        return encoder

    @fits_whole
    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Learn what the columns hold.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
        y : None
            Not used.

        Returns
        -------
        self : TableEncoder
        """
        table = open_table(mixed_rows(self, X, reset=True))
        if table.n_rows < 2:
            raise InputError(
                "needs at least 2 rows to tell a constant from a column. Got 1 sample."
            )
        columns = feature_columns(table, self.max_levels)
        check_features(columns)
        self.columns_ = columns
        return self

    @speaks
    def transform(self, X: Any) -> np.ndarray:
        """Features of the rows of X, shape (n_samples, n_features_out).

        A value that was not seen has 0 in all features of its column, or 1 in that of the values
        that share one.
        """
        check_is_fitted(self, "columns_")
        table = open_table(mixed_rows(self, X, reset=False))
        used = [j for j, column in enumerate(self.columns_) if column.features]
        columns = [self.columns_[j] for j in used]
        batches = table.batches([table.names[j] for j in used])
        return np.vstack([encoded_batch(columns, batch.columns) for batch in batches])

    @speaks
    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the features: of the column, or ``column=value``.

        Parameters
        ----------
        input_features : array-like of str, optional
            The names of the columns; others are refused.
        """
        check_is_fitted(self, "columns_")
        if input_features is not None and list(input_features) != feature_names(self):
            raise InputError("input_features is not equal to feature_names_in_.")
        return np.array([name for column in self.columns_ for name in column.features], object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
