"""What encoding a column needs to know: its kind, mean, and values with their counts.

`column_summaries` is the first pass over a table. Summaries of parts of a table merge, so that
`encoding_of` decides for tables that never meet as it would for all their rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdtrue.columns.counting import label_order
from holdtrue.columns.values import holds_numbers, one_array, python_values
from holdtrue.errors import InputError, check_choice
from holdtrue.records import Record
from holdtrue.tables.table import Table
from holdtrue.targets import TARGET_TYPES, TargetKind, check_class_count, target_kind
from holdtrue.validation import check_count

# Columns with more different values than this are not counted value by value.
MAX_VALUES = 10_000
MAX_LEVELS = 20  # values of a category that have a feature each, unless the caller says otherwise
ROWS = 1 << 16  # of a batch
LARGEST = 1e140  # sums of squares of larger numbers leave the range of floats
CATEGORY = "text"
NOTES = {
    "text": "category",
    "bool": "truth value",
    "time": "time, in days",
    "date": "date, in days",
    "number": "number",
}
_IN_A_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_OTHER, _MISSING = "(other)", "(missing)"


@dataclass(frozen=True, eq=False)
class FeatureColumn(Record):
    """How a column was encoded, and what it held."""

    name: str
    # Names of its features: the column's name for a number, ``plan=paid`` for a value of a
    # category; none if the column was left out
    features: tuple[str, ...]
    note: str  # what was done, in words
    n_missing: int
    fill: float | None = None  # replaces missing numbers: the mean over all rows that have one
    levels: tuple[object, ...] = ()  # values that have a feature each; None is the missing value
    kind: str = "number"  # how the column is read: "text", "number", "date", "time" or "bool"
    # low, high: range of numbers, as they are encoded
    low: float | None = None
    high: float | None = None
    # All values of a category; none where they were too many to be kept
    seen: tuple[object, ...] = ()


@dataclass(frozen=True)
class Encoding:
    """How the second pass encodes a table, decided by the first."""

    target: str
    domain: str | None
    kind: TargetKind
    classes: tuple[Any, ...] | None
    domains: tuple[Any, ...]  # empty where there are none, or too many
    columns: tuple[FeatureColumn, ...]

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        return [feature for column in self.columns for feature in column.features]


def table_encoding(
    table: Table,
    target: str,
    domain: str | None,
    target_type: str,
    leave_out: Iterable[str],
    max_levels: int,
    sample_weight: np.ndarray | None = None,
) -> Encoding:
    """How each column of a table becomes numbers: the first pass; weights are positive."""
    check_options(target_type, max_levels)
    summaries = column_summaries(table, target, domain, leave_out, sample_weight)
    # Weights that are not repetitions may have any scale: there are as many rows as are stored.
    n_rows = table.n_rows if sample_weight is None else max(sample_weight.sum(), table.n_rows)
    return encoding_of(summaries, n_rows, target, domain, target_type, max_levels)


def column_summaries(
    table: Table,
    target: str,
    domain: str | None,
    leave_out: Iterable[str],
    sample_weight: np.ndarray | None = None,
) -> dict[str, ColumnSummary]:
    """First pass over a table: a summary of target, domain and every column that may be used.

    Weights are positive; a row counts in means and counts of values as often as its weight says.
    """
    roles = {"target": target} | ({} if domain is None else {"domain": domain})
    left_out = list(leave_out)
    for name in (*roles.values(), *left_out):
        table.check_name(name)
    if target == domain:
        raise InputError(f"target and domain must be two columns. Got {target!r} for both.")
    names = [name for name in table.plain_names if name not in (*roles.values(), *left_out)]
    summaries = _summaries(table, names, tuple(roles.values()), sample_weight)
    for role, name in roles.items():
        if summaries[name].n_missing:
            raise InputError(
                f"the {role} {name!r} must not be missing or infinite. Got "
                f"{summaries[name].n_missing:,} such values in {table.n_rows:,} rows. Leave those "
                "rows out."
            )
    return summaries


def feature_columns(table: Table, max_levels: int = MAX_LEVELS) -> tuple[FeatureColumn, ...]:
    """How each column of a table is encoded."""
    check_options("auto", max_levels)
    summaries = _summaries(table, table.names)
    return tuple(
        summary.encoding(name, table.n_rows, max_levels) for name, summary in summaries.items()
    )


def _summaries(
    table: Table,
    names: Iterable[str],
    counted: tuple[str, ...] = (),
    sample_weight: np.ndarray | None = None,
) -> dict[str, ColumnSummary]:
    """Summary of each column; in those of ``counted``, distinct numbers are counted too."""
    needed = [*counted, *names]
    summaries = {
        name: ColumnSummary(stored_kind(table.types[name]), name in counted) for name in needed
    }
    start = 0
    for batch in table.batches(needed, ROWS):
        rows = slice(start, start + batch.num_rows)
        weight = None if sample_weight is None else sample_weight[rows]
        for name, column in zip(needed, batch.columns, strict=True):
            summaries[name].add(column, weight)
        start = rows.stop
    return summaries


def encoding_of(
    summaries: dict[str, ColumnSummary],
    n_rows: float,
    target: str,
    domain: str | None,
    target_type: str,
    max_levels: int,
) -> Encoding:
    """How each column becomes numbers; what cannot be fitted is refused."""
    kind = kind_of_target(target, summaries[target], target_type)
    _check_varies(target, summaries[target], kind)
    names = [name for name in summaries if name not in (target, domain)]
    columns = tuple(summaries[name].encoding(name, n_rows, max_levels) for name in names)
    check_features(columns)
    if domain is not None:
        _check_domains(domain, summaries[domain])
    classes = None if kind.is_numeric else summaries[target].sorted_values()
    domains = () if domain is None else summaries[domain].sorted_values()
    return Encoding(target, domain, kind, classes, domains, columns)


def check_options(target_type: str, max_levels: Any) -> None:
    """Refuse options that are wrong for any table."""
    check_choice("target_type", target_type, TARGET_TYPES)
    check_count("max_levels", max_levels, 1)


@dataclass
class ColumnSummary:
    """Counts of a category's values, or mean and range of numbers, over the batches so far.

    With weights, ``n_numbers`` and the counts in ``values`` are sums of weights; ``n_missing`` is a
    number of rows as they are stored.

    ``n_joined`` and ``withheld`` are set in summaries that come from a site: the number of values
    without a name, and why the column is left out.
    """

    kind: str  # as `stored_kind` says
    counts_numbers: bool = False  # whether different numbers are counted too
    n_missing: int = 0
    n_numbers: float = 0
    mean: float = 0.0
    low: float = np.inf
    high: float = -np.inf
    values: dict[Any, float] = field(default_factory=dict)
    too_many: bool = False
    n_joined: int = 0
    withheld: str = ""

    def __post_init__(self) -> None:
        self.is_category = self.kind == CATEGORY  # its values are counted, not averaged

    @property
    def is_empty(self) -> bool:
        """Whether all values are missing."""
        if self.is_category:
            return not (self.too_many or self.n_joined or self.values.keys() - {None})
        return not self.n_numbers

    @property
    def is_constant(self) -> bool:
        """Whether it has one number only."""
        return self.low == self.high

    @property
    def largest(self) -> float:
        """Largest absolute number."""
        return max(-self.low, self.high)

    @property
    def n_values(self) -> int:
        """Different values of a category."""
        return len(self.values) + self.n_joined

    def add(self, column: pa.Array, weight: np.ndarray | None = None) -> None:
        """Add the values of a batch; weights are positive."""
        if not self.is_category:
            numbers = as_numbers(column)
            is_finite = np.isfinite(numbers)
            finite = numbers[is_finite]
            self.n_missing += len(numbers) - len(finite)
            if len(finite):
                low, high = float(finite.min()), float(finite.max())
                # By parts, so that the mean of many large numbers does not overflow.
                if weight is None:
                    rest = float(np.mean(finite - self.mean))
                    self._add_numbers(len(finite), rest, low, high)
                else:
                    total = float(weight[is_finite].sum())
                    rest = float((weight[is_finite] / total) @ (finite - self.mean))
                    self._add_numbers(total, rest, low, high)
        else:
            self.n_missing += column.null_count
        if self.too_many or not (self.is_category or self.counts_numbers):
            return
        if weight is None:
            values, counts = column.value_counts().flatten()
            sums = counts.to_pylist()
        else:
            codes = one_array(column).dictionary_encode(null_encoding="encode")
            values, sums = codes.dictionary, np.bincount(codes.indices, weight).tolist()
        self._add_values(dict(zip(python_values(values), sums, strict=True)))

    def merge(self, other: ColumnSummary) -> None:
        """Add the rows of another summary of the same kind."""
        self.n_missing += other.n_missing
        if other.n_numbers:
            self._add_numbers(other.n_numbers, other.mean - self.mean, other.low, other.high)
        self.too_many |= other.too_many
        self.n_joined = max(self.n_joined, other.n_joined)
        self.withheld = self.withheld or other.withheld
        self._add_values(other.values)

    def _add_numbers(self, n_numbers: float, step: float, low: float, high: float) -> None:
        self.n_numbers += n_numbers
        self.mean += step * n_numbers / self.n_numbers
        self.low, self.high = min(self.low, low), max(self.high, high)

    def _add_values(self, counts: dict[Any, float]) -> None:
        for value, count in counts.items():
            self.values[value] = self.values.get(value, 0) + count
        if self.too_many or len(self.values) > MAX_VALUES:
            self.values, self.too_many = {}, True

    def looks_like_an_id(self, n_rows: float, max_levels: int) -> bool:
        """Whether a category has too many values to be one."""
        return self.is_category and (self.too_many or self.n_values > max(n_rows / 2, max_levels))

    def encoding(self, name: str, n_rows: float, max_levels: int) -> FeatureColumn:
        """How the column is encoded, and what it holds."""
        missing = f"; {self.n_missing:,} missing" if self.n_missing else ""
        features, fill = [name], None
        levels: list[Any] = []
        if reason := self._unfit(n_rows, max_levels, missing):
            features, note = [], f"left out: {reason}"
        elif self.is_category:
            levels, n_rest = self._levels(max_levels)
            features = [f"{name}={_as_text(label)}" for label in levels]
            note = f"category of {self.n_values} values{missing}"
            if n_rest:
                features.append(f"{name}={_OTHER}")
                note += f"; the {n_rest:,} least frequent are taken together"
        else:
            fill, note = self.mean, NOTES[self.kind]
            note += f"{missing}, filled with the mean {fill:.4g}" if missing else ""
        low, high = (self.low, self.high) if self.n_numbers else (None, None)
        seen = tuple(self.values) if self.is_category else ()
        encoded = (tuple(features), note, self.n_missing, fill, tuple(levels), self.kind)
        return FeatureColumn(name, *encoded, low=low, high=high, seen=seen)

    def _unfit(self, n_rows: float, max_levels: int, missing: str) -> str:
        """Why the column is left out; empty if it is not."""
        if self.withheld:
            return self.withheld
        if self.is_empty:
            return "all values are missing"
        if not self.is_category:
            if self.is_constant:
                return f"its only value is {self.low:g}{missing}"
            too_large = self.largest > LARGEST
            return f"{self.largest:g} is too large to be squared" if too_large else ""
        if self.looks_like_an_id(n_rows, max_levels):
            count = f"more than {MAX_VALUES:,}" if self.too_many else f"{self.n_values:,}"
            return f"{count} values in {n_rows:,.12g} rows look like an id"
        if self.n_values == 1:
            only = repr(next(iter(self.values))) if self.values else "not named"
            return f"its only value is {only}"
        return ""

    def _levels(self, max_levels: int) -> tuple[list[Any], int]:
        """Values of a category that have a feature each, and how many others share one."""
        values = self.frequent_values()
        if self.n_values == 2 and not self.n_joined:
            return [label for label in values if label is not None][-1:], 0
        return values[:max_levels], self.n_values - len(values[:max_levels])

    def frequent_values(self) -> list[Any]:
        """The values, the most frequent first, ties in the order of the values."""
        labels = list(self.values)
        ordered = [labels[i] for i in label_order([_as_text(label) for label in labels])]
        return sorted(ordered, key=lambda label: -self.values[label])

    def sorted_values(self) -> tuple[Any, ...]:
        """The values in their own order."""
        labels = list(self.values)
        return tuple(labels[i] for i in label_order(labels))


def _as_text(label: Any) -> str:
    return _MISSING if label is None else str(label)


def holds_quantities(kind: Any) -> bool:
    """Whether a type holds numbers, dates or truth values."""
    return holds_numbers(kind) or bool(pa.types.is_temporal(kind))


def stored_kind(kind: Any) -> str:
    """How a column of an Arrow type is read: "text", "number", "date", "time" or "bool"."""
    if not holds_quantities(kind):
        return CATEGORY
    if pa.types.is_boolean(kind):
        return "bool"
    if pa.types.is_time(kind) or pa.types.is_duration(kind):
        return "time"
    return "date" if pa.types.is_temporal(kind) else "number"


def as_numbers(column: Any) -> np.ndarray:
    """Values as float64; missing ones are NaN, dates and times are in days."""
    column = one_array(column)
    kind = column.type
    if pa.types.is_date(kind):
        column = pc.cast(pc.cast(column, pa.date32()), pa.int32())
    elif pa.types.is_temporal(kind):
        return as_numbers(column.view(f"int{kind.bit_width}")) / (_IN_A_SECOND[kind.unit] * 86_400)
    elif pa.types.is_boolean(kind):
        column = pc.cast(column, pa.int8())
    return np.array(pc.cast(column, pa.float64(), safe=False).fill_null(np.nan))


def kind_of_target(name: str, summary: ColumnSummary, target_type: str) -> TargetKind:
    """Whether the target is read as a number.

    Numbers that cannot be squared, and more classes than anyone means, are refused.
    """
    if target_type == "numeric" and summary.is_category:
        raise InputError(
            f"the target {name!r} must hold numbers for target_type='numeric'. Got a category."
        )
    if target_type == "auto" and (summary.too_many or summary.kind in ("date", "time")):
        kind = TargetKind(not summary.is_category, len(summary.values), False)
    else:
        counts = np.array(list(summary.values.values()), dtype=np.float64)
        values = np.array(list(summary.values), dtype=object if summary.is_category else None)
        kind = target_kind(values, target_type, counts)
    if not kind.is_numeric:
        check_class_count(MAX_VALUES if summary.too_many else len(summary.values))
    elif summary.largest > LARGEST:
        raise InputError(
            f"the target {name!r} goes up to {summary.largest:g}, which is "
            "too large to be squared. Divide it by a constant."
        )
    return kind


def _check_varies(name: str, summary: ColumnSummary, kind: TargetKind) -> None:
    """Refuse a target that is the same in every row."""
    if kind.is_numeric and summary.is_constant:
        raise InputError(
            f"the target {name!r} is {summary.low:g} in every row. There is nothing to predict."
        )
    if not kind.is_numeric and len(summary.values) == 1:
        raise InputError(
            f"needs at least 2 classes in {name!r}. Got 1 class, "
            f"{next(iter(summary.values))!r} in every row. There is nothing to predict."
        )


def check_features(columns: tuple[FeatureColumn, ...]) -> None:
    """Refuse columns without any feature, or with two features of one name."""
    features = [feature for column in columns for feature in column.features]
    if not features:
        notes = "; ".join(f"{column.name!r} {column.note}" for column in columns[:5])
        raise InputError(f"no column is left as a feature ({notes or 'it has none'}).")
    if len(set(features)) < len(features):
        twice = next(name for name in features if features.count(name) > 1)
        raise InputError(f"two features would be called {twice!r}. Rename the column {twice!r}.")


def check_domain_count(domain: str, summary: ColumnSummary) -> None:
    """Refuse more domains than can be counted."""
    if summary.too_many:
        raise InputError(
            f"the domain {domain!r} must have at most {MAX_VALUES:,} values. Got more. Name a "
            "domain with fewer values."
        )


def _check_domains(domain: str, summary: ColumnSummary) -> None:
    """Refuse a single domain, and more than can be counted."""
    check_domain_count(domain, summary)
    if len(summary.values) < 2:
        raise InputError(
            f"needs at least 2 domains, got 1 ({next(iter(summary.values))!r} in every row "
            f"of {domain!r}). Name a column with the domain of each row."
        )
