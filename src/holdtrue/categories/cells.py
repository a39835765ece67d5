"""From tables to whole numbers: every value or bin of a column becomes a cell.

Columns are read as the selector reads them (`holdtrue.columns.bins`), with two exceptions. For a
tree, integers with no more values than bins are read by value alone, because every further reading
is one more column to try at every node. For a forest, numbers are read in many bins and cut in two
between them: 17 tables, 300 and 1,000 rows, a mean log loss of .413 where bins have .445; a single
tree, which cannot afford many splits, errs less with bins.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdtrue.categories.score import categorical_mask, check_classes
from holdtrue.categories.tree import WORTH_COMPILING, Sample, cell_type
from holdtrue.columns.bins import Reading, readings
from holdtrue.columns.counting import (
    Groups,
    Target,
    check_group_count,
    label_order,
    table_of,
    whole_weights,
)
from holdtrue.columns.distinct import distinct, joined
from holdtrue.columns.values import (
    ORDERED,
    array_column,
    column_kind,
    columns_of,
    frame_of,
    numpy_of,
    python_values,
)
from holdtrue.errors import InputError
from holdtrue.validation import check_row_count, mixed_rows, target_rows

_BLOCK = 1 << 13
_COPIED = 1 << 10


# --- rows in ------------------------------------------------------------------------------------


def read_rows(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as a frame or array with the columns of the fit."""
    frame_of(X)  # refuses repeated names
    return mixed_rows(estimator, X, reset=reset)


def read_table(estimator: Any, X: Any) -> dict[str, Any]:
    """Columns of X by name, those of the fit."""
    return _columns(read_rows(estimator, X, reset=False))


def _columns(rows: Any) -> dict[str, Any]:
    if isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.dtype != object:
        rows = _by_column(rows)
    return columns_of(rows)


def _by_column(rows: np.ndarray) -> np.ndarray:
    """The array with its columns in one piece each, copied in blocks that stay in the cache."""
    if rows.flags.f_contiguous:
        return rows
    columns = np.empty_like(rows, order="F")
    for start in range(0, len(rows), _COPIED):
        columns[start : start + _COPIED] = rows[start : start + _COPIED]
    return columns


class IntegerRows(NamedTuple):
    """Codes of a large array of integers that lie close together, from one pass over it."""

    codes: np.ndarray  # shape (n_rows, n_columns): ``value - low``
    low: np.ndarray  # shape (n_columns,)
    counts: list[np.ndarray]  # weight of each integer from ``low`` on, column by column

    @classmethod
    def of(cls, rows: Any, weight: np.ndarray) -> IntegerRows | None:
        """Codes of rows that are a large array of close integers; None for other rows."""
        if not isinstance(rows, np.ndarray) or rows.ndim != 2 or rows.size < WORTH_COMPILING:
            return None
        if not rows.flags.c_contiguous or rows.dtype.kind not in "iu":
            return None
        # The first rows show where the others lie: there, or as far again to either side.
        low, high = (end(rows[:_BLOCK], axis=0).astype(float) for end in (np.min, np.max))
        spans = high - low + 1
        if 3 * spans.max() > 1 << 16 or max(-low.min(), high.max()) > 1 << 53:
            return None
        from holdtrue.categories.cell_loops import code_integers

        least = (low - spans).astype(np.int64)
        first = np.append(0, np.cumsum(3 * spans)).astype(np.int64)
        codes = np.empty(rows.shape, dtype=np.uint16)
        counts = np.zeros(first[-1], dtype=np.int64)
        if not code_integers(rows, least, first, weight, codes, counts):
            return None
        return cls(codes, least, np.split(counts, first[1:-1]))


def class_labels(y: Any) -> np.ndarray:
    """Labels of a classifier as an array; numbers with fractions are refused."""
    labels = target_rows(y)
    column = array_column(labels)
    is_float = hasattr(column, "type") and (
        pa.types.is_floating(column.type) or pa.types.is_decimal(column.type)
    )
    if is_float:
        numbers = np.asarray(column.cast(pa.float64()))
        if (np.isfinite(numbers) & (numbers != np.floor(numbers))).any():
            raise InputError(
                "y must hold classes. Unknown label type: continuous. "
                "Cut y into classes, or take a regressor."
            )
    return labels


# --- cells of one column ------------------------------------------------------------------------


class Cells(NamedTuple):
    """Cells of a column in one reading: its values, or its bins."""

    name: str  # of the column, for the messages
    dtype: Any  # Arrow's type of the values at fit; None for Python objects
    values: Any  # the value of each cell; None where there are bins
    # shape (n_bins - 1,): upper ends of all bins but the last, values of the fit as numbers; None
    # where there are no bins
    edges: np.ndarray | None
    n_cells: int  # a last cell may hold missing values

    @classmethod
    def from_reading(cls, name: str, values: Any, reading: Reading) -> Cells:
        """Cells of a column whose values are in order, missing last, in one reading."""
        edges = _as_numbers(values)[reading.ends[:-1]] if reading.n_bins else None
        kept = None if reading.n_bins else values
        return cls(name, getattr(values, "type", None), kept, edges, len(reading.table))

    @property
    def has_missing(self) -> bool:
        """Whether the last cell is for missing values."""
        if self.edges is not None:
            return self.n_cells > len(self.edges) + 1
        return python_values(self.values[-1:])[0] is None

    def of_values(self, values: Any) -> np.ndarray:
        """Cell of each of some distinct values, from 0 to ``n_cells - 1``; -1 if never seen."""
        if self.edges is None:
            every = joined(self.name, [self.values, self._as_at_fit(values)])
            cells = np.full(len(every.values), -1)
            cells[every.codes[: self.n_cells]] = np.arange(self.n_cells)
            return cells[every.codes[self.n_cells :]]
        self._check_type(getattr(values, "type", None))
        cells = np.full(len(values), self.n_cells - 1 if self.has_missing else -1)
        if not pa.types.is_null(values.type):
            cells[numpy_of(values.is_valid())] = self._bins(values)
        return cells

    def _bins(self, values: Any) -> np.ndarray:
        """Bin of each value that is not missing."""
        assert self.edges is not None
        edges, numbers = self.edges, _as_numbers(values)
        # In the coarser of two units of time, which cannot overflow; rounded so that no value
        # changes its side of an edge.
        at_fit, now = _ticks_per_second(self.dtype), _ticks_per_second(values.type)
        if at_fit > now:
            edges = edges // (at_fit // now)
        elif at_fit < now:
            step = now // at_fit
            numbers = numbers // step + (numbers % step > 0)
        return np.searchsorted(edges, numbers)

    def _as_at_fit(self, values: Any) -> Any:
        """Values in a type that compares with that at fit; 3 and 3.0 are the same value."""
        dtype = getattr(values, "type", None)
        if self.dtype is None or dtype is None or pa.types.is_null(self.dtype):
            return values
        self._check_type(dtype)
        if pa.types.is_timestamp(dtype) and dtype.tz != self.dtype.tz:
            return values.cast(pa.timestamp(dtype.unit, self.dtype.tz))
        return values

    def _check_type(self, dtype: Any) -> None:
        """Refuse a type that does not compare with that at fit; a column of nulls does."""
        if dtype is None or not (
            pa.types.is_null(dtype) or _comparable(self.dtype) == _comparable(dtype)
        ):
            raise InputError(
                f"column {self.name!r} was {self.dtype} at fit. "
                f"Got {'several types' if dtype is None else dtype}. Convert it to what it was."
            )

    def describe(self, cell: int) -> str:
        """A cell in words, such as ``"= 'red'"`` or ``"> 3"``."""
        if self.has_missing and cell == self.n_cells - 1:
            return "is missing"
        if self.edges is None:
            return f"= {python_values(self.values[cell : cell + 1])[0]!r}"
        ends = [self._edge(k) for k in (cell - 1, cell) if 0 <= k < len(self.edges)]
        if cell == 0:
            return f"≤ {ends[0]}" if ends else "is present"
        return f"in ({ends[0]}, {ends[1]}]" if len(ends) == 2 else f"> {ends[0]}"

    def _edge(self, k: int) -> str:
        assert self.edges is not None
        if pa.types.is_temporal(self.dtype):
            number = pa.array(self.edges[k : k + 1]).cast(f"int{self.dtype.bit_width}")
            return str(number.view(self.dtype)[0])
        return _as_texts(self.edges)[k]


def in_order(values: Any) -> np.ndarray:
    """Indices that sort the values, the missing one last."""
    if isinstance(values, np.ndarray):
        missing = np.array([value is None for value in values])
        present = np.flatnonzero(~missing)
        order = present[label_order(values[present].tolist())]
        return np.append(order, np.flatnonzero(missing))
    if pa.types.is_null(values.type):
        return np.arange(len(values))
    return numpy_of(pc.array_sort_indices(values))


def _as_numbers(values: Any) -> np.ndarray:
    """Values that are not missing, as numbers; times in their own unit."""
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    return numpy_of(values.drop_null())


def _as_texts(numbers: np.ndarray) -> list[str]:
    """Different numbers as different texts: of six digits, or all before the point, or more."""
    if numbers.dtype.kind in "iu":
        return [str(number) for number in numbers]
    largest = float(np.abs(numbers).max())
    n_whole = len(f"{largest:.0f}") if largest < 1e15 else 0
    for n_digits in range(max(6, n_whole), 18):
        texts = [f"{number:.{n_digits}g}" for number in numbers]
        if len(set(texts)) == len(texts):
            break
    return texts


def _comparable(dtype: Any) -> Any:
    """A key that types share whose values compare: numbers of any width, times of any unit."""
    if pa.types.is_integer(dtype) or pa.types.is_floating(dtype) or pa.types.is_decimal(dtype):
        return "number"
    if pa.types.is_timestamp(dtype):  # nobody knows the zone of one that has none
        return dtype.id, dtype.tz is None
    return dtype.id


def _ticks_per_second(dtype: Any) -> int:
    """Ticks of a type in a second; 1 for a type without a unit."""
    return {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[getattr(dtype, "unit", "s")]


# --- cells of a table ---------------------------------------------------------------------------


def _fill(cells: np.ndarray, cell_of: list[tuple[np.ndarray, np.ndarray]]) -> None:
    """Write the cell of each row, given per column the rows' codes and the cell of each code."""
    place_cells: Any = None
    if cells.size >= WORTH_COMPILING:
        from holdtrue.categories.cell_loops import place_cells
    # Rows lie together in memory: in blocks of them that stay in the cache.
    for start in range(0, len(cells), _BLOCK):
        block = cells[start : start + _BLOCK]
        for at, (codes, cell_of_code) in enumerate(cell_of):
            part = codes[start : start + _BLOCK]
            if place_cells is not None:
                place_cells(part, cell_of_code, block, at)
            else:
                block[:, at] = cell_of_code[part]


def _coded_columns(
    table: dict[str, Any] | IntegerRows, weight: np.ndarray, used: np.ndarray
) -> Iterator[tuple[str, Any, np.ndarray, np.ndarray]]:
    """Kind, values and their weight of each column, and the codes of the rows used.

    `IntegerRows` have no codes: an empty array.
    """
    if isinstance(table, IntegerRows):
        for low, counts in zip(table.low, table.counts, strict=True):
            yield "integer", pa.array(low + np.arange(len(counts))), counts, weight[:0]
        return
    repeats = None if (weight == 1).all() else weight
    everything = Target(np.zeros(len(weight), dtype=np.uint8), (0,), repeats)
    all_used = bool(used.all())
    for name, column in table.items():
        values, codes = distinct(name, column)
        rows = table_of(codes, len(values), everything)[:, 0]
        yield column_kind(column), values, rows, codes if all_used else codes[used]


class ColumnEncoder:
    """Cells of tables, learned from the rows of a fit.

    Parameters
    ----------
    names : list of str
        The features' names.
    by_value : ndarray of bool, shape (n_features,)
        Features to be taken by value whatever their type.
    max_bins : int
    in_two : bool
        Read numbers in ``16 * max_bins`` bins to be cut in two, instead of bins to be split by.
    """

    columns: list[Cells]  # by feature; where several readings compete, the coarsest first
    # offsets, n_bins, shape (n_columns + 1,) and (n_columns,): see `tree.Sample`
    offsets: np.ndarray
    n_bins: np.ndarray
    feature: np.ndarray  # shape (n_columns,): the feature of each column

    def __init__(
        self, names: list[str], by_value: np.ndarray, max_bins: int, *, in_two: bool = False
    ):
        self.names = names
        self.by_value = by_value
        self.max_bins = max_bins
        self.in_two = in_two

    def fit_transform(self, table: dict[str, Any] | IntegerRows, weight: np.ndarray) -> np.ndarray:
        """Learn the cells, and give those of the rows with a positive weight."""
        used = weight > 0
        self.columns = []
        feature: list[int] = []
        row_codes: list[np.ndarray] = []
        groups: list[np.ndarray] = []
        for j, (kind, values, rows, codes) in enumerate(_coded_columns(table, weight, used)):
            order = in_order(values)
            order = order[rows[order] > 0]
            values = values.take(order)
            place = np.zeros(len(rows), dtype=np.int32)
            place[order] = np.arange(len(order))
            for reading in self._readings(j, kind, values, rows[order]):
                self.columns.append(Cells.from_reading(self.names[j], values, reading))
                feature.append(j)
                row_codes.append(codes)
                groups.append(reading.groups(values)[place])
        sizes = [column.n_cells for column in self.columns]
        self.offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.feature = np.array(feature, dtype=np.int64)
        bins = [0 if column.edges is None else len(column.edges) + 1 for column in self.columns]
        self.n_bins = np.array(bins, dtype=np.int64) * self.in_two
        dtype = self._cell_type()
        cell_of = [
            (first + group).astype(dtype)
            for first, group in zip(self.offsets, groups, strict=False)
        ]
        if isinstance(table, IntegerRows):
            return self._place(table, used, cell_of)
        cells: np.ndarray = np.empty((int(used.sum()), len(self.columns)), dtype=dtype)
        _fill(cells, list(zip(row_codes, cell_of, strict=True)))
        return cells

    def _place(self, table: IntegerRows, used: np.ndarray, cell_of: list[np.ndarray]) -> np.ndarray:
        """Cells of the rows used, given the cell of each code, column by column."""
        from holdtrue.categories.cell_loops import place_codes

        dtype = cell_of[0].dtype
        codes = table.codes if used.all() else table.codes[used]
        ends = np.array([np.flatnonzero(counts)[[0, -1]] for counts in table.counts])
        n_cells = [0 if column.edges is not None else column.n_cells for column in self.columns]
        if np.array_equal(n_cells, ends[:, 1] - ends[:, 0] + 1):
            # By value and without gaps: a cell is the code and a number, modulo 2^16 or 2^32.
            cells = codes if codes.dtype == dtype else codes.astype(dtype)
            cells += (self.offsets[:-1] - ends[:, 0]).astype(dtype)
            return cells
        first = np.cumsum([0, *map(len, cell_of[:-1])])
        cells = np.empty((len(codes), len(self.columns)), dtype=dtype)
        place_codes(codes, self.feature, first, np.concatenate(cell_of), cells)
        return cells

    def _readings(self, j: int, kind: str, values: Any, rows: np.ndarray) -> list[Reading]:
        """Ways to read a feature, bins first; each cuts it differently."""
        ways: list[Reading] = []
        if self.in_two and kind in ORDERED and not self.by_value[j] and len(values) > 2:
            *ways, finest = readings(kind, values, rows[:, None], 16 * self.max_bins, least_rows=1)
            if finest.n_bins > 1:
                return [finest, *(way for way in ways if not way.n_bins)]
        if self.by_value[j] or (kind == "integer" and len(values) <= self.max_bins):
            kind = "category"
        ways = []
        for reading in readings(kind, values, rows[:, None], self.max_bins, least_rows=1):
            if not (ways and np.array_equal(reading.ends, ways[-1].ends)):
                ways.append(reading)
        return sorted(ways, key=lambda reading: not reading.n_bins)

    def _cell_type(self) -> type:
        # One more number than there are cells is needed, for values never seen.
        return cell_type(self.offsets + 1)

    def transform(self, table: dict[str, Any]) -> np.ndarray:
        """Cells of each row, shape (n_rows, n_columns); ``offsets[-1]`` for values never seen."""
        coded = [distinct(name, column) for name, column in table.items()]
        shape = len(coded[0].codes), len(self.columns)
        cells: np.ndarray = np.empty(shape, dtype=self._cell_type())
        cell_of = []
        for column, j, first in zip(self.columns, self.feature, self.offsets, strict=False):
            codes = column.of_values(coded[j].values)
            codes = np.where(codes < 0, self.offsets[-1], first + codes)
            cell_of.append((coded[j].codes, codes.astype(cells.dtype)))
        _fill(cells, cell_of)
        return cells

    def describe(self, at: int, cell: int) -> str:
        """The cell of a column in words, such as ``"= 'red'"`` or ``"> 3"``."""
        return self.columns[at].describe(int(cell - self.offsets[at]))


def read_groups(groups: Any, y: Any, sample_weight: Any) -> np.ndarray | None:
    """Group of each row with a positive weight, from 0; None for None, and for a group per row."""
    if groups is None:
        return None
    n_rows = len(target_rows(y))
    weight = whole_weights(sample_weight, n_rows)
    everything = Target(np.zeros(n_rows, dtype=np.uint8), (0,), weight)
    labels, codes, _ = Groups.from_column(groups, everything)
    check_group_count(labels)
    if len(labels) == everything.n_samples:
        return None
    codes = np.argsort(label_order(python_values(labels)))[codes]  # in the order of the labels
    return codes if weight is None else codes[weight > 0]


class Unit(NamedTuple):
    """How a numeric target was standardised."""

    origin: float
    scale: float
    dtype: Any  # of the target: float32 stays float32

    def back(self, numbers: np.ndarray) -> np.ndarray:
        """Standardised numbers in the target's unit."""
        return (self.origin + self.scale * numbers).astype(self.dtype)


def read_sample(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, is_numeric: bool
) -> tuple[ColumnEncoder, Sample, Any]:
    """Encoder, sample, and classes or `Unit`, of the rows with a positive weight."""
    labels = target_rows(y)  # before the attributes of an earlier fit go
    rows = read_rows(estimator, X, reset=True)
    labels = labels if is_numeric else class_labels(y)
    check_row_count(labels, len(rows))
    target = Target.from_column(labels, is_numeric, sample_weight)
    weight = np.ones(len(labels), dtype=np.int64) if target.weight is None else target.weight
    if weight.sum() >= 2**31:
        raise InputError(
            f"the sum of sample_weight must be below 2^31, because weights are "
            f"repetitions of rows. Got {weight.sum():g}. Divide them by a common factor."
        )
    check_classes(target.classes, int(weight.sum()))
    table: dict[str, Any] | IntegerRows = IntegerRows.of(rows, weight) or _columns(rows)
    names = [f"x{j}" for j in range(estimator.n_features_in_)]
    if not isinstance(table, IntegerRows):
        names = list(table)
    by_value = categorical_mask(estimator.categorical_features, names)
    in_two = estimator._cuts_numbers
    encoder = ColumnEncoder(names, by_value, int(estimator.max_bins), in_two=in_two)
    cells = encoder.fit_transform(table, weight)
    kept, repeats = target.codes, weight
    if not weight.all():
        kept, repeats = kept[weight > 0], weight[weight > 0]
    if target.classes is not None:
        n_classes = len(target.classes)
        kept = kept.astype(np.int64)
        sample = Sample(cells, encoder.offsets, encoder.n_bins, kept, repeats, n_classes)
        return encoder, sample, np.array(target.classes, dtype=labels.dtype)
    origin = float(np.average(kept, weights=repeats))
    scale = math.sqrt(float(np.average(np.square(kept - origin), weights=repeats))) or 1.0
    unit = Unit(origin, scale, np.float32 if labels.dtype == np.float32 else np.float64)
    kept = (kept - origin) / scale
    return encoder, Sample(cells, encoder.offsets, encoder.n_bins, kept, repeats, 0), unit
