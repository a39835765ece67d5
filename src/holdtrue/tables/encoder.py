"""A table as numbers: its columns encoded, and summed by domain, kept as rows, or given to a model.

Two passes: the first collects what encoding a column needs (its mean, or its values and their
counts), the second encodes batch by batch. For moments the table is never in memory as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from holdtrue.errors import InputError, speaks
from holdtrue.path import fits_whole
from holdtrue.sums.moments import Moments
from holdtrue.tables.column_summary import (
    MAX_LEVELS,
    NOTES,
    ROWS,
    Encoding,
    FeatureColumn,
    as_numbers,
    check_features,
    feature_columns,
    holds_quantities,
    table_encoding,
)
from holdtrue.tables.table import Table, open_table
from holdtrue.targets import TargetKind
from holdtrue.validation import check_weights, feature_names, mixed_rows

_MAX_BYTES = 1 << 31
_CELLS = 1 << 23


@dataclass(frozen=True)
class TableMoments:
    """Moments of a table by domain, and how its columns were encoded."""

    # With two classes the target is +1 for the second, with more one target for each class
    moments: Moments
    # None where the target is a number; an argument of `TGreedyClassifier.fit_statistics`
    classes: tuple[Any, ...] | None
    target_kind: TargetKind  # how the target was read; its ``sentence`` says so
    columns: tuple[FeatureColumn, ...]  # all but target, domain and those that were left out
    n_rows: int


@speaks
def moments_of(
    table: Table,
    target: str,
    domain: str,
    *,
    target_type: str = "auto",
    leave_out: Iterable[str] = (),
    max_levels: int = MAX_LEVELS,
    sample_weight: np.ndarray | None = None,
) -> TableMoments:
    """Moments of a table by domain, for ``fit_statistics`` of the estimators in `domains`.

    Numbers are features as they are; a missing one is replaced by the mean over all rows, which
    does not bias effects. Truth values are 0 and 1, dates are days since 1970. A category has one
    feature for each of its values, the most frequent first, and one for missing values; with two
    values it has one feature, and the values after the first ``max_levels`` share one. Columns with
    one value are left out, and so are categories that look like an id (with more values than half
    the rows, or than 10,000).

    Parameters
    ----------
    table : Table
    target, domain : str
        Columns of the table, in which no value may be missing.
    target_type : {"auto", "classes", "numeric"}
        How the target is read; "auto" is the rule of `holdtrue.targets`, with dates as numbers.
    leave_out : iterable of str
        Columns that are not used as features.
    max_levels : int
        Largest number of values of a category that have a feature each.
    sample_weight : ndarray of shape (n_rows,), optional
        Weights are repetitions, in the sums, in the means that replace missing numbers, and in
        which values of a category are frequent; a row of weight 0 is left out.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from holdtrue.tables.encoder import moments_of
    >>> from holdtrue.tables import open_table
    >>> rows = pa.table({
    ...     "dose": [1.0, None, 3.0, 2.0], "plan": ["a", "b", "c", "a"],
    ...     "site": ["N", "N", "S", "S"], "sick": [True, False, True, False]})
    >>> sums = moments_of(open_table(rows), "sick", "site")
    >>> sums.moments.feature_names, sums.classes
    (('dose', 'plan=a', 'plan=b', 'plan=c'), (False, True))
    >>> sums.columns[0].note
    'number; 1 missing, filled with the mean 2'
    """
    table, sample_weight = _weighted_rows(table, sample_weight)
    encoding = table_encoding(
        table, target, domain, target_type, leave_out, max_levels, sample_weight
    )
    moments = summed(table, encoding, sample_weight)
    return TableMoments(moments, encoding.classes, encoding.kind, encoding.columns, table.n_rows)


def _weighted_rows(
    table: Table, sample_weight: np.ndarray | None
) -> tuple[Table, np.ndarray | None]:
    """The rows of positive weight, and their weights."""
    if sample_weight is None:
        return table, None
    sample_weight = check_weights(sample_weight, table.n_rows)
    is_counted = sample_weight > 0
    return table.where(is_counted), sample_weight[is_counted]


def summed(
    table: Table,
    encoding: Encoding,
    sample_weight: np.ndarray | None = None,
    *,
    every_class: bool = False,
) -> Moments:
    """Second pass: moments of the encoded rows; ``every_class``: two classes have two targets."""
    check_memory(encoding)
    total: Moments | None = None
    start = 0
    for X, target_batch, domain_batch in _encoded_batches(table, encoding):
        weight = None if sample_weight is None else sample_weight[start : start + len(X)]
        start += len(X)
        part = Moments.from_arrays(
            X,
            _coded_target(target_batch, encoding.classes, every_class=every_class),
            groups=codes_of(domain_batch, encoding.domains),
            sample_weight=weight,
            feature_names=encoding.features,
        )
        total = part if total is None else total + part
    assert total is not None
    return replace(total, domains=tuple(encoding.domains[code] for code in total.domains))


@dataclass(frozen=True)
class TableRows:
    """A table as a matrix, for estimators that need rows."""

    X: np.ndarray  # of shape (n_rows, n_features)
    y: np.ndarray  # of shape (n_rows,): numbers, or classes as text
    groups: np.ndarray | None  # of shape (n_rows,): domains as text; None where none was named
    feature_names: list[str]
    columns: tuple[FeatureColumn, ...]  # all but target, domain and those that were left out


@speaks
def rows_of(
    table: Table,
    target: str,
    domain: str | None = None,
    *,
    target_type: str = "auto",
    leave_out: Iterable[str] = (),
    max_levels: int = MAX_LEVELS,
    sample_weight: np.ndarray | None = None,
) -> TableRows:
    """Rows of a table as numbers, encoded as `moments_of` does it.

    Parameters
    ----------
    table, target, target_type, leave_out, max_levels
        As in `moments_of`.
    domain : str, optional
        Column that becomes ``groups``.
    sample_weight : ndarray of shape (n_rows,), optional
        Weights for the encoding, as in `moments_of`; a row of weight 0 is left out. Rows are not
        repeated.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from holdtrue.tables.encoder import rows_of
    >>> from holdtrue.tables import open_table
    >>> rows = rows_of(open_table(pa.table({"dose": [1.0, None, 3.0], "sick": [1.5, 2.5, 9.0]})),
    ...                "sick")
    >>> rows.X.ravel().tolist(), rows.y.tolist(), rows.groups
    ([1.0, 2.0, 3.0], [1.5, 2.5, 9.0], None)
    """
    table, sample_weight = _weighted_rows(table, sample_weight)
    encoding = table_encoding(
        table, target, domain, target_type, leave_out, max_levels, sample_weight
    )
    n_bytes = 8 * table.n_rows * len(encoding.features)
    if n_bytes > _MAX_BYTES:
        raise InputError(
            f"{table.n_rows:,} rows of {len(encoding.features):,} features need "
            f"{n_bytes / 2**30:.1f} GB, above the limit of {_MAX_BYTES >> 30} GB. Leave rows or "
            "columns out."
        )
    X = np.empty((table.n_rows, len(encoding.features)))
    y, groups, start = [], [], 0
    for X_batch, target_batch, domain_batch in _encoded_batches(table, encoding):
        X[start : start + len(X_batch)] = X_batch
        start += len(X_batch)
        if encoding.classes is None:
            y.append(as_numbers(target_batch))
        else:
            y.append(_as_labels(target_batch, encoding.classes))
        if domain is not None:
            groups.append(_as_labels(domain_batch, encoding.domains))
    all_groups = None if domain is None else np.concatenate(groups)
    return TableRows(X, np.concatenate(y), all_groups, encoding.features, encoding.columns)


def check_memory(encoding: Encoding) -> None:
    """Refuse sums that do not fit in memory."""
    n_domains, n_features = len(encoding.domains), len(encoding.features)
    n_bytes = 8 * n_domains * n_features**2
    if n_bytes > _MAX_BYTES:
        raise InputError(
            f"the sums of {n_domains:,} domains of {encoding.domain!r} and {n_features:,} features "
            f"need {n_bytes / 2**30:.1f} GB or more, above the limit of {_MAX_BYTES >> 30} GB. "
            "Leave columns out, lower max_levels, or name a domain with fewer values."
        )


# --- second pass --------------------------------------------------------------------------------


def _encoded_batches(
    table: Table, encoding: Encoding
) -> Iterator[tuple[np.ndarray, pa.Array, Any]]:
    """Features, target and domain (None without one) of the rows, batch by batch."""
    used = [column for column in encoding.columns if column.features]
    roles = [encoding.target] if encoding.domain is None else [encoding.target, encoding.domain]
    n_rows = max(1, min(ROWS, _CELLS // len(encoding.features)))
    for batch in table.batches([*roles, *(column.name for column in used)], n_rows):
        X = encoded_batch(used, batch.columns[len(roles) :])
        yield X, batch.column(0), batch.column(1) if len(roles) > 1 else None


def encoded_batch(columns: Iterable[FeatureColumn], arrays: Iterable[pa.Array]) -> np.ndarray:
    """Features of some rows, given the values of each column, shape (n_rows, n_features)."""
    pairs = zip(columns, arrays, strict=True)
    return np.column_stack([_encoded(column, values) for column, values in pairs])


def _encoded(column: FeatureColumn, values: pa.Array) -> np.ndarray:
    """Features of a column, shape (n_rows, n_features)."""
    is_text = column.kind == "text"
    if pa.types.is_null(values.type):
        values = values.cast(pa.string() if is_text else pa.float64())
    if holds_quantities(values.type) and any(isinstance(value, str) for value in column.seen[:2]):
        raise InputError(f"column {column.name!r} was text. Got {values.type}. Read it as text.")
    if not (is_text or holds_quantities(values.type)):
        raise InputError(
            f"column {column.name!r} was a {NOTES[column.kind]}. Got {values.type}. Convert it."
        )
    if not column.levels:
        numbers = as_numbers(values)
        missing = ~np.isfinite(numbers)
        numbers[missing] = column.fill
        return np.column_stack([numbers, missing][: len(column.features)])
    # The last column is for the values that share a feature, or have none.
    hot = np.zeros((len(values), len(column.levels) + 1))
    hot[np.arange(len(values)), codes_of(values, column.levels)] = 1.0
    return hot[:, : len(column.features)]


def _coded_target(
    values: pa.Array, classes: tuple[Any, ...] | None, *, every_class: bool
) -> np.ndarray:
    """The target as numbers: +1 for a class and -1 for the rest."""
    if classes is None:
        return as_numbers(values)
    codes = codes_of(values, classes)
    if len(classes) == 2 and not every_class:
        return np.where(codes == 1, 1.0, -1.0)
    return np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)


def _as_labels(values: pa.Array, labels: tuple[Any, ...]) -> np.ndarray:
    """The values as text."""
    return np.array([str(label) for label in labels])[codes_of(values, labels)]


def codes_of(values: pa.Array, labels: tuple[Any, ...]) -> np.ndarray:
    """Index of each value among the labels; the number of labels where it is not one of them."""
    place = pc.index_in(values, value_set=pa.array(labels, values.type))
    return np.asarray(place.fill_null(len(labels)))


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
    holdtrue.tables.moments_of : The same encoding of a file larger than memory, as sums.

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
