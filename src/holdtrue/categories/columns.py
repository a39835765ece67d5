"""From tables to whole numbers: every value of every column becomes a cell.

Columns are read as the selector reads them (`holdtrue.values`, `counting.readings`), but for one
thing: whole numbers of no more values than bins are taken by value alone, because every further
reading is one more column to try at every node.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sklearn.utils.validation import check_consistent_length

from holdtrue.categories.counting import (
    Reading,
    Scoring,
    categorical_mask,
    check_classes,
    is_numeric,
    readings,
)
from holdtrue.categories.new_rows import as_at_fit, as_numbers, bin_places, read_rows
from holdtrue.categories.tree import Sample, cell_type
from holdtrue.tally import Target, label_order
from holdtrue.validation import target_rows
from holdtrue.values import column_kind, columns_of, distinct, joined, python_values

_BLOCK = 1 << 13


class Column(NamedTuple):
    """One way to cut a feature into cells.

    ``values`` lists them in order, missing last; or ``edges`` are the bins' upper ends, data
    values themselves, and a last cell holds missing values, if the fit had any.
    """

    feature: int
    values: Any
    edges: np.ndarray | None
    n_cells: int

    @property
    def has_missing(self) -> bool:
        """Whether the last cell is for missing values."""
        if self.edges is not None:
            return self.n_cells > len(self.edges) + 1
        return python_values(self.values[-1:])[0] is None


def read_table(estimator: Any, X: Any, *, reset: bool) -> dict[str, Any]:
    """Columns of X by name; their names are kept or compared."""
    return columns_of(type(estimator).__name__, read_rows(estimator, X, reset=reset))


def _in_order(values: Any) -> np.ndarray:
    """Places of the values from the least to the greatest, the missing one last."""
    if isinstance(values, np.ndarray):
        missing = np.array([value is None for value in values])
        there = np.flatnonzero(~missing)
        order = there[label_order(values[there].tolist())]
        return np.append(order, np.flatnonzero(missing))
    if pa.types.is_null(values.type):
        return np.arange(len(values))
    return np.asarray(pc.array_sort_indices(values))


def _fill(cells: np.ndarray, cell_of: list[tuple[np.ndarray, np.ndarray]]) -> None:
    """Write the cell of each row, given per column the rows' codes and the cell of each code."""
    # Rows lie together in memory: in blocks of them that stay in the cache.
    for start in range(0, len(cells), _BLOCK):
        block = cells[start : start + _BLOCK]
        for at, (codes, own) in enumerate(cell_of):
            # Codes are within bounds; to be told so ("clip") saves NumPy a check.
            block[:, at] = own.take(codes[start : start + _BLOCK], mode="clip")


class ColumnEncoder:
    """Cells of tables, learned from the rows of a fit.

    Parameters
    ----------
    owner : str
        Who speaks in error messages.
    names : list of str
        The features' names.
    by_value : ndarray of bool, shape (n_features,)
        Features to be taken by value whatever their type.
    max_bins : int

    Attributes
    ----------
    columns : list of Column
        In order of features; where several readings of a feature compete, the coarsest first.
    offsets : ndarray of int64, shape (n_columns + 1,)
        See `tree.Sample`.
    feature : ndarray of int64, shape (n_columns,)
        The feature of each column.
    """

    def __init__(self, owner: str, names: list[str], by_value: np.ndarray, max_bins: int):
        self.owner = owner
        self.names = names
        self.by_value = by_value
        self.max_bins = max_bins

    def fit_transform(self, table: dict[str, Any], weight: np.ndarray) -> np.ndarray:
        """Learn the cells, and give those of the rows that weigh something."""
        used = weight > 0
        all_used = bool(used.all())
        repeats = None if (weight == 1).all() else weight
        self.types: list[Any] = []
        self.columns: list[Column] = []
        coded: list[tuple[np.ndarray, np.ndarray]] = []
        for j, (name, column) in enumerate(table.items()):
            values, codes = distinct(self.owner, name, column)
            self.types.append(getattr(values, "type", None))
            rows = np.bincount(codes, repeats, minlength=len(values))
            order = _in_order(values)
            order = order[rows[order] > 0]
            values, rows = values.take(order), rows[order]
            place = np.zeros(int(order.max()) + 1, dtype=np.int32)
            place[order] = np.arange(len(order))
            codes = codes if all_used else codes[used]
            for reading in self._readings(j, column_kind(column), values, rows):
                edges = as_numbers(values)[reading.ends[:-1]] if reading.n_bins else None
                kept = None if reading.n_bins else values
                self.columns.append(Column(j, kept, edges, len(reading.table)))
                coded.append((codes, reading.groups(values)[place]))
        sizes = [column.n_cells for column in self.columns]
        self.offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.feature = np.array([column.feature for column in self.columns], dtype=np.int64)
        cells = self._empty(int(used.sum()))
        cell_of = [
            (codes, (first + groups).astype(cells.dtype))
            for first, (codes, groups) in zip(self.offsets, coded, strict=False)
        ]
        _fill(cells, cell_of)
        return cells

    def _readings(self, j: int, kind: str, values: Any, rows: np.ndarray) -> list[Reading]:
        """Ways to read a feature, bins first; each cuts it differently."""
        if self.by_value[j] or (kind == "integer" and len(values) <= self.max_bins):
            kind = "category"
        ways: list[Reading] = []
        for reading in readings(kind, values, rows[:, None], Scoring(max_bins=self.max_bins)):
            if not (ways and np.array_equal(reading.ends, ways[-1].ends)):
                ways.append(reading)
        return sorted(ways, key=lambda reading: not reading.n_bins)

    def _empty(self, n_rows: int) -> np.ndarray:
        # One more number than there are cells is needed, for values never seen.
        return np.empty((n_rows, len(self.columns)), dtype=cell_type(self.offsets + 1))

    def transform(self, table: dict[str, Any]) -> np.ndarray:
        """Cells of each row, shape (n_rows, n_columns); ``offsets[-1]`` for values never seen."""
        coded = [distinct(self.owner, name, column) for name, column in table.items()]
        cells = self._empty(len(coded[0].codes))
        cell_of = [
            (coded[column.feature].codes, self._cells(at, coded[column.feature].values))
            for at, column in enumerate(self.columns)
        ]
        _fill(cells, [(codes, own.astype(cells.dtype)) for codes, own in cell_of])
        return cells

    def _cells(self, at: int, values: Any) -> np.ndarray:
        """Cell of each of the values, which are distinct."""
        column, first, unseen = self.columns[at], self.offsets[at], self.offsets[-1]
        name, wanted = self.names[column.feature], self.types[column.feature]
        if column.edges is None:
            values = as_at_fit(self.owner, name, wanted, values)
            every = joined(self.owner, name, [column.values, values])
            cells = np.full(len(every.values), unseen)
            cells[every.codes[: column.n_cells]] = np.arange(first, self.offsets[at + 1])
            return cells[every.codes[column.n_cells :]]
        missing = self.offsets[at + 1] - 1 if column.has_missing else unseen
        cells = np.full(len(values), missing)
        bins = bin_places(self.owner, name, column.edges, wanted, values)
        cells[np.asarray(values.is_valid())] = first + bins
        return cells

    def describe(self, at: int, cell: int) -> str:
        """The cell of a column in words, such as ``"= 'red'"`` or ``"> 3"``."""
        column, code = self.columns[at], int(cell - self.offsets[at])
        if column.has_missing and code == column.n_cells - 1:
            return "is missing"
        if column.edges is None:
            return f"= {python_values(column.values[code : code + 1])[0]!r}"
        ends = [self._edge(column, k) for k in (code - 1, code) if 0 <= k < len(column.edges)]
        if code == 0:
            return f"≤ {ends[0]}" if ends else "is there"
        return f"in ({ends[0]}, {ends[1]}]" if len(ends) == 2 else f"> {ends[0]}"

    def _edge(self, column: Column, k: int) -> str:
        assert column.edges is not None
        kind = self.types[column.feature]
        if pa.types.is_temporal(kind):
            number = pa.array(column.edges[k : k + 1]).cast(f"int{kind.bit_width}")
            return str(number.view(kind)[0])
        return f"{column.edges[k]:g}"


def read_sample(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[ColumnEncoder, Sample, np.ndarray]:
    """Encoder, sample and classes of the rows that weigh something."""
    owner = type(estimator).__name__
    label = target_rows(owner, y)
    table = read_table(estimator, X, reset=True)
    check_consistent_length(next(iter(table.values())), label)
    if is_numeric(label, "auto"):
        raise ValueError(
            f"{owner}: y must hold classes; numbers as targets are not supported yet. "
            "Unknown label type: continuous. Cut y into classes, or take another estimator."
        )
    target = Target.from_column(label, False, sample_weight, owner=owner)
    weight = np.ones(len(label), dtype=np.int64) if target.weight is None else target.weight
    if weight.sum() >= 2**31:
        raise ValueError(
            f"{owner}: the sum of sample_weight must be below 2^31, because weights are "
            f"repetitions of rows. Got {weight.sum():g}. Divide them by a common factor."
        )
    assert target.classes is not None
    check_classes(owner, target.classes, int(weight.sum()), estimator.criterion)
    names = list(table)
    by_value = categorical_mask(owner, estimator.categorical_features, names)
    encoder = ColumnEncoder(owner, names, by_value, int(estimator.max_bins))
    cells = encoder.fit_transform(table, weight)
    used = weight > 0
    sample = Sample(cells, encoder.offsets, target.codes[used], weight[used], len(target.classes))
    return encoder, sample, np.array(target.classes, dtype=label.dtype)
