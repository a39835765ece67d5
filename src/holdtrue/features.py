"""Columns of a table as features, in numbers, and the moments of its rows domain by domain.

Two passes over batches: the first finds what each column needs (its mean, its levels), the second
sums. The table is never held.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from holdtrue.moments import Moments
from holdtrue.tally import label_order
from holdtrue.validation import check_choice, is_number
from holdtrue.values import holds_numbers, python_values

if TYPE_CHECKING:
    import pyarrow as pa

    from holdtrue.tables import Table

__all__ = ["FeatureColumn", "TableMoments", "moments_of"]

# Values of a category that are told apart before it is given up.
MAX_VALUES = 10_000
MAX_CLASSES = 100
_MAX_BYTES = 1 << 31
_ROWS = 1 << 16
_CELLS = 1 << 23
_IN_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_LARGEST = 1e140  # sums of squares of larger numbers leave the range of floats
_OTHER, _MISSING = "(other)", "(missing)"


@dataclass(frozen=True)
class FeatureColumn:
    """What became of a column.

    Attributes
    ----------
    name : str
    features : tuple of str
        Names of its features: its own for a number, ``plan=paid`` for a level; none if left out.
    note : str
        What was done, in words.
    n_missing : int
    fill : float or None
        What stands for a missing number: the mean over all rows that have one.
    levels : tuple
        Values that have a feature each; None is a missing value.
    """

    name: str
    features: tuple[str, ...]
    note: str
    n_missing: int
    fill: float | None = None
    levels: tuple[Any, ...] = ()


@dataclass(frozen=True)
class TableMoments:
    """Moments of a table by domain, and how its columns were read.

    Attributes
    ----------
    moments : Moments
        With two classes the target is +1 for the second, with more one target for each class.
    classes : tuple or None
        None where the target is a number. Pass them to `TGreedyClassifier.fit_statistics`.
    columns : tuple of FeatureColumn
        All columns but target, domain and those that were left out by the caller.
    n_rows : int
    """

    moments: Moments
    classes: tuple[Any, ...] | None
    columns: tuple[FeatureColumn, ...]
    n_rows: int


def moments_of(
    owner: str,
    table: Table,
    target: str,
    domain: str,
    *,
    target_type: str = "auto",
    leave_out: Iterable[str] = (),
    max_levels: int = 20,
) -> TableMoments:
    """Moments of a table by domain, for `TGreedySelector.fit_statistics` and its like.

    Numbers are features as they are; a missing one becomes the mean over all rows, which moves no
    effect. Truth values are 0 and 1, dates are days since 1970. A category has a feature for each
    of its values, from the most frequent on; with two values one feature, with more than
    ``max_levels`` the rest are one feature together; missing is a value of its own. Left out are
    columns with one value, and categories that look like an id (more values than half the rows, or
    than 10,000).

    Parameters
    ----------
    owner : str
        Who asks, for the messages.
    table : Table
    target, domain : str
        Columns of the table, in which no value may be missing.
    target_type : {"auto", "classes", "numeric"}
        "auto": text, truth values and numbers of which there are two are classes.
    leave_out : iterable of str
        Columns that are no features.
    max_levels : int
        Most values of a category that have a feature of their own.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from holdtrue.features import moments_of
    >>> from holdtrue.tables import open_table
    >>> rows = pa.table({
    ...     "dose": [1.0, None, 3.0, 2.0], "plan": ["a", "b", "c", "a"],
    ...     "site": ["N", "N", "S", "S"], "sick": [True, False, True, False]})
    >>> found = moments_of("us", open_table("us", rows), "sick", "site")
    >>> found.moments.feature_names, found.classes
    (('dose', 'plan=a', 'plan=b', 'plan=c'), (False, True))
    >>> found.columns[0].note
    'number; 1 missing, filled with the mean 2'
    """
    check_choice(owner, "target_type", target_type, ("auto", "classes", "numeric"))
    if not (is_number(max_levels) and max_levels == int(max_levels) and max_levels >= 1):
        raise ValueError(
            f"{owner}: max_levels must be a whole number of at least 1. Got {max_levels!r}."
        )
    left_out = list(leave_out)
    for name in (target, domain, *left_out):
        table.check_name(name)
    if target == domain:
        raise ValueError(
            f"{owner}: target and domain must be two columns. Got {target!r} for both."
        )
    names = [name for name in table.names if name not in (target, domain, *left_out)]
    names = [name for name in names if name in table.plain_names]
    every = [target, domain, *names]
    seen = {name: _Seen(table.types[name], name in (target, domain)) for name in every}
    for batch in table.batches(every, _ROWS):
        for name, column in zip(every, batch.columns, strict=True):
            seen[name].add(column)
    for what, name in (("target", target), ("domain", domain)):
        if seen[name].n_missing:
            raise ValueError(
                f"{owner}: the {what} {name!r} must not be missing or infinite. Got "
                f"{seen[name].n_missing:,} such values in {table.n_rows:,} rows. Leave those rows "
                "out."
            )
    classes = _classes(owner, target, seen[target], target_type)
    columns = tuple(seen[name].column(name, table.n_rows, max_levels) for name in names)
    features = [feature for column in columns for feature in column.features]
    _check_size(owner, domain, seen[domain], features, columns)
    domains = _in_order(seen[domain])
    total: Moments | None = None
    used = [column for column in columns if column.features]
    rows = max(1, min(_ROWS, _CELLS // len(features)))
    for batch in table.batches([target, domain, *(column.name for column in used)], rows):
        y = _target(batch.column(0), classes)
        groups = _codes(batch.column(1), domains)
        X = np.column_stack([_matrix(c, batch.column(j)) for j, c in enumerate(used, 2)])
        part = Moments.from_arrays(X, y, groups=groups, feature_names=features)
        total = part if total is None else total + part
    assert total is not None
    named = replace(total, domains=tuple(domains[code] for code in total.domains))
    return TableMoments(named, classes, columns, table.n_rows)


# --- first pass ---------------------------------------------------------------------------------


@dataclass
class _Seen:
    """What the batches so far say of a column; values of numbers only where they are asked for."""

    type: Any
    keeps_numbers: bool
    n_missing: int = 0
    n_numbers: int = 0
    mean: float = 0.0
    low: float = np.inf
    high: float = -np.inf
    values: dict[Any, int] = field(default_factory=dict)
    too_many: bool = False

    @property
    def is_category(self) -> bool:
        return not _is_number(self.type)

    def add(self, column: pa.Array) -> None:
        if not self.is_category:
            numbers = _numbers(column)
            there = numbers[np.isfinite(numbers)]
            self.n_missing += len(numbers) - len(there)
            if len(there):
                self.n_numbers += len(there)
                # By parts, so that the mean of many large numbers does not overflow.
                self.mean += float(np.mean(there - self.mean)) * len(there) / self.n_numbers
                self.low = min(self.low, float(there.min()))
                self.high = max(self.high, float(there.max()))
        else:
            self.n_missing += column.null_count
        if self.too_many or not (self.is_category or self.keeps_numbers):
            return
        values, counts = column.value_counts().flatten()
        for value, count in zip(python_values(values), counts.to_pylist(), strict=True):
            self.values[value] = self.values.get(value, 0) + count
        if len(self.values) > MAX_VALUES:
            self.values, self.too_many = {}, True

    def column(self, name: str, n_rows: int, max_levels: int) -> FeatureColumn:
        """How the column is read."""
        missing = f"; {self.n_missing:,} missing" if self.n_missing else ""
        if self.n_missing == n_rows:
            return FeatureColumn(name, (), "left out: all values are missing", n_rows)
        if not self.is_category:
            if self.low == self.high:
                note = f"left out: its only value is {self.low:g}{missing}"
                return FeatureColumn(name, (), note, self.n_missing)
            if max(-self.low, self.high) > _LARGEST:
                note = f"left out: {max(-self.low, self.high):g} is too large to be squared"
                return FeatureColumn(name, (), note, self.n_missing)
            filled = f"{missing}, filled with the mean {self.mean:.4g}" if missing else ""
            note = f"{_number_note(self.type)}{filled}"
            return FeatureColumn(name, (name,), note, self.n_missing, self.mean)
        if self.too_many or len(self.values) > max(n_rows / 2, max_levels):
            count = f"more than {MAX_VALUES:,}" if self.too_many else f"{len(self.values):,}"
            note = f"left out: {count} values in {n_rows:,} rows look like an id"
            return FeatureColumn(name, (), note, self.n_missing)
        if len(self.values) == 1:
            note = f"left out: its only value is {next(iter(self.values))!r}"
            return FeatureColumn(name, (), note, self.n_missing)
        return self._levels(name, max_levels, missing)

    def _levels(self, name: str, max_levels: int, missing: str) -> FeatureColumn:
        # The most frequent first; of equally frequent ones the first in order.
        labels = list(self.values)
        ordered = [labels[i] for i in label_order([_written(label) for label in labels])]
        ordered.sort(key=lambda label: -self.values[label])
        kept = ordered[:max_levels]
        n_rest = len(ordered) - len(kept)
        if len(ordered) == 2:
            kept = [label for label in kept if label is not None][-1:]
        note = f"category of {len(ordered)} values{missing}"
        if n_rest:
            note += f"; the {n_rest:,} least frequent are taken together"
        features = [f"{name}={_written(label)}" for label in kept]
        if n_rest and len(ordered) > 2:
            features.append(f"{name}={_OTHER}")
        return FeatureColumn(name, tuple(features), note, self.n_missing, levels=tuple(kept))


def _written(label: Any) -> str:
    return _MISSING if label is None else str(label)


def _is_number(kind: Any) -> bool:
    """Whether a type holds numbers, dates or truth values."""
    import pyarrow as pa

    return holds_numbers(kind) or bool(pa.types.is_temporal(kind))


def _number_note(kind: Any) -> str:
    import pyarrow as pa

    if pa.types.is_boolean(kind):
        return "truth value"
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return "time, in days"
    return "date, in days" if pa.types.is_temporal(kind) else "number"


def _numbers(column: pa.Array) -> np.ndarray:
    """Values as float64; missing ones are NaN, dates and times are in days."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_date(kind):
        column = pc.cast(pc.cast(column, pa.date32()), pa.int32())
    elif pa.types.is_temporal(kind):
        return _numbers(column.view(f"int{kind.bit_width}")) / (_IN_A_SECOND[kind.unit] * 86_400)
    elif pa.types.is_boolean(kind):
        column = pc.cast(column, pa.int8())
    return np.array(pc.cast(column, pa.float64(), safe=False).fill_null(np.nan))


def _classes(owner: str, name: str, seen: _Seen, target_type: str) -> tuple[Any, ...] | None:
    """The classes in order; None where the target is a number."""
    import pyarrow as pa

    numeric = not seen.is_category and not pa.types.is_boolean(seen.type)
    if target_type == "numeric" and seen.is_category:
        raise ValueError(
            f"{owner}: the target {name!r} must hold numbers for target_type='numeric'. "
            f"Got {seen.type}."
        )
    n_values = len(seen.values)
    if target_type == "numeric" or (
        target_type == "auto" and numeric and (seen.too_many or n_values != 2)
    ):
        if seen.low == seen.high:
            raise ValueError(
                f"{owner}: the target {name!r} is {seen.low:g} in every row. There is nothing to "
                "predict."
            )
        if max(-seen.low, seen.high) > _LARGEST:
            raise ValueError(
                f"{owner}: the target {name!r} goes up to {max(-seen.low, seen.high):g}, which is "
                "too large to be squared. Divide it by a constant."
            )
        return None
    if n_values == 1:
        raise ValueError(
            f"{owner}: needs at least 2 classes in {name!r}. Got 1 class, "
            f"{next(iter(seen.values))!r} in every row. There is nothing to predict."
        )
    if seen.too_many or n_values > MAX_CLASSES:
        count = f"more than {MAX_VALUES:,}" if seen.too_many else f"{n_values:,}"
        raise ValueError(
            f"{owner}: the target {name!r} has {count} classes, above the limit of {MAX_CLASSES}. "
            "Join rare classes, or name another target."
        )
    return _in_order(seen)


def _in_order(seen: _Seen) -> tuple[Any, ...]:
    labels = list(seen.values)
    return tuple(labels[i] for i in label_order(labels))


def _check_size(
    owner: str, domain: str, seen: _Seen, features: list[str], columns: tuple[FeatureColumn, ...]
) -> None:
    """Refuse what has no features, one domain, or sums that fill the memory."""
    if not features:
        notes = "; ".join(f"{column.name!r} {column.note}" for column in columns[:5])
        raise ValueError(f"{owner}: no column is left as a feature ({notes or 'there is none'}).")
    if len(set(features)) < len(features):
        twice = next(name for name in features if features.count(name) > 1)
        raise ValueError(
            f"{owner}: two features would be called {twice!r}. Rename the column {twice!r}."
        )
    n_domains = MAX_VALUES if seen.too_many else len(seen.values)
    if n_domains < 2:
        raise ValueError(
            f"{owner}: needs at least 2 domains, got 1 ({next(iter(seen.values))!r} in every row "
            f"of {domain!r}). Name a column with the domain of each row."
        )
    n_bytes = 8 * n_domains * len(features) ** 2
    if seen.too_many or n_bytes > _MAX_BYTES:
        count = f"more than {MAX_VALUES:,}" if seen.too_many else f"{n_domains:,}"
        raise ValueError(
            f"{owner}: the sums of {count} domains of {domain!r} and {len(features):,} features "
            f"need {n_bytes / 2**30:.1f} GB or more, above the limit of {_MAX_BYTES >> 30} GB. "
            "Leave columns out, lower max_levels, or name a domain with fewer values."
        )


# --- second pass --------------------------------------------------------------------------------


def _matrix(column: FeatureColumn, values: pa.Array) -> np.ndarray:
    """Features of a column, shape (n_rows, n_features)."""
    if not column.levels:
        numbers = _numbers(values)
        numbers[~np.isfinite(numbers)] = column.fill
        return numbers[:, None]
    # One column more for the values that have no feature of their own.
    hot = np.zeros((len(values), len(column.levels) + 1))
    hot[np.arange(len(values)), _codes(values, column.levels)] = 1.0
    return hot[:, : len(column.features)]


def _target(values: pa.Array, classes: tuple[Any, ...] | None) -> np.ndarray:
    """Numbers to explain: the target's own, or +1 for a class and -1 for the rest."""
    if classes is None:
        return _numbers(values)
    codes = _codes(values, classes)
    if len(classes) == 2:
        return np.where(codes == 1, 1.0, -1.0)
    return np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)


def _codes(values: pa.Array, labels: tuple[Any, ...]) -> np.ndarray:
    """Place of each value among the labels; after the last where it is none of them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    place = pc.index_in(values, value_set=pa.array(labels, values.type))
    return np.asarray(place.fill_null(len(labels)))
