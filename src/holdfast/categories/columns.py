"""From tables to whole numbers: every value of every column becomes a cell.

Text, categories and truth values are taken by value; decimal numbers and dates by quantile bins at
several resolutions, which compete; whole numbers by value, and by bins too where they have more
values than bins. Missing is a value of its own.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import assert_all_finite, check_consistent_length, validate_data

from holdfast.categories.tree import Sample, cell_type
from holdfast.validation import check_weights, did_you_mean


class Column(NamedTuple):
    """One way to cut a feature into cells.

    ``values`` lists them in order; or ``edges`` are the bins' upper ends, data values themselves.
    A last cell holds missing values, if the fit had any.
    """

    feature: int
    values: Any
    edges: np.ndarray | None
    has_missing: bool

    @property
    def n_cells(self) -> int:
        """Number of cells, the missing one included."""
        present = len(self.values) if self.edges is None else len(self.edges) + 1
        return present + self.has_missing


def read_table(estimator: Any, X: Any, *, reset: bool) -> list[pa.Array]:
    """Columns of X as Arrow arrays, NaN made null; keeps or compares the columns' names.

    Takes pandas, Polars and Arrow tables, arrays and nested lists.
    """
    owner = type(estimator).__name__
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        if 0 in frame.shape:
            raise ValueError(
                f"{owner}: needs rows and columns. Got {frame.shape[0]} sample(s) and "
                f"{frame.shape[1]} feature(s)."
            )
        parts = [(str(column.name), column) for column in frame.iter_columns()]
    else:
        X = validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite=False)
        parts = [(f"x{j}", column) for j, column in enumerate(X.T)]
    return [_to_arrow(owner, name, column) for name, column in parts]


def _to_arrow(owner: str, name: str, column: Any) -> pa.Array:
    try:
        if isinstance(column, nw.Series):
            array = column.to_arrow()
        else:
            array = pa.array(np.ascontiguousarray(column), from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise TypeError(
            f"{owner}: column {name!r} mixes types or holds things that are neither ({error}). "
            "Each value of the argument must be a string or a number, one kind per column. "
            "Convert the column, or leave it out."
        ) from error
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    # One type for each kind of value, however wide it is stored.
    kind = array.type
    if pa.types.is_integer(kind):
        array = array.cast(pa.float64() if pa.types.is_uint64(kind) else pa.int64(), safe=False)
    elif pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        array = array.cast(pa.float64())
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, pa.float64()), array)
    elif pa.types.is_string(kind) or pa.types.is_string_view(kind):
        array = array.cast(pa.large_string())
    if pa.types.is_nested(array.type):
        raise TypeError(
            f"{owner}: column {name!r} holds {array.type}. Each value of the argument must be a "
            "string or a number. Split the column into simple ones, or leave it out."
        )
    return array


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _numbers(array: pa.Array) -> np.ndarray:
    """Values that are there, as numbers."""
    if pa.types.is_temporal(array.type):
        array = array.view(pa.int32() if array.type.bit_width == 32 else pa.int64())
    return array.drop_null().to_numpy(zero_copy_only=False)


def _places(array: pa.Array, values: pa.Array) -> np.ndarray:
    """Place of each value in values; -1 where it is not there, -2 where it is missing."""
    found = pc.index_in(array, value_set=values.cast(array.type), skip_nulls=True)
    place = np.asarray(found.fill_null(-1))
    return np.where(np.asarray(pc.is_null(array)), -2, place) if array.null_count else place


def _bins(array: pa.Array, edges: np.ndarray) -> np.ndarray:
    """Bin of each value; -2 where it is missing."""
    bins = np.searchsorted(edges, _numbers(array))
    if not array.null_count:
        return bins
    place = np.full(len(array), -2)
    place[np.asarray(pc.is_valid(array))] = bins
    return place


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
        In order of features; where several resolutions of a feature compete, the coarsest first.
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

    def fit(self, table: list[pa.Array], weight: np.ndarray) -> ColumnEncoder:
        """Learn the cells from columns of rows that weigh something."""
        self.types = [array.type for array in table]
        self.columns: list[Column] = []
        for j, array in enumerate(table):
            self.columns += self._cuts(j, array, weight)
        sizes = [column.n_cells for column in self.columns]
        self.offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.feature = np.array([column.feature for column in self.columns], dtype=np.int64)
        return self

    def _cuts(self, j: int, array: pa.Array, weight: np.ndarray) -> list[Column]:
        has_missing = array.null_count > 0
        kind = array.type
        ordered = _is_number(kind) or pa.types.is_temporal(kind)
        cuts: list[Column] = []
        values = None
        if not ordered or self.by_value[j] or pa.types.is_integer(kind):
            values = pc.unique(array).drop_null()
            values = values.take(pc.sort_indices(values))
        if ordered and not self.by_value[j] and (values is None or len(values) > self.max_bins):
            present = np.asarray(pc.is_valid(array))
            edges = quantile_edges(_numbers(array), weight[present], self.max_bins)
            cuts.append(Column(j, None, edges, has_missing))
            while len(edges) > 1:
                edges = edges[1::2]
                cuts.insert(0, Column(j, None, edges, has_missing))
        if values is not None:
            cuts.append(Column(j, values, None, has_missing))
        return cuts

    def transform(self, table: list[pa.Array]) -> np.ndarray:
        """Cells of each row, shape (n_rows, n_columns); ``offsets[-1]`` for values never seen."""
        unseen = self.offsets[-1]
        # One more number than there are cells is needed.
        kind = cell_type(self.offsets + 1)
        cells: np.ndarray = np.empty((len(table[0]), len(self.columns)), dtype=kind)
        feature, finest = -1, None
        for at in reversed(range(len(self.columns))):
            column, first = self.columns[at], self.offsets[at]
            if column.feature != feature:
                feature, finest = column.feature, None
                array = self._as_at_fit(feature, table[feature])
            if column.edges is None:
                place = _places(array, column.values)
                numbers = np.arange(len(column.values))
            else:
                if finest is None:
                    finest, place = column.edges, _bins(array, column.edges)
                # A coarse bin is a run of fine ones.
                numbers = np.append(np.searchsorted(column.edges, finest), len(column.edges))
            # Place -1 stands for what was never seen, -2 for what is missing.
            missing = self.offsets[at + 1] - 1 if column.has_missing else unseen
            cells[:, at] = np.concatenate([first + numbers, [missing, unseen]]).astype(kind)[place]
        return cells

    def _as_at_fit(self, feature: int, array: pa.Array) -> pa.Array:
        """The column in a type that compares with that at fit; 3 and 3.0 are the same value."""
        wanted = self.types[feature]
        if array.type == wanted or (_is_number(array.type) and _is_number(wanted)):
            return array
        if pa.types.is_null(array.type):
            return pa.nulls(len(array), wanted)
        if pa.types.is_null(wanted):
            return array
        if type(array.type) is type(wanted) and pa.types.is_temporal(wanted):
            return array.cast(wanted, safe=False)
        raise ValueError(
            f"{self.owner}: column {self.names[feature]!r} was {wanted} at fit. "
            f"Got {array.type}. Convert it to what it was."
        )

    def describe(self, at: int, cell: int) -> str:
        """The cell of a column in words, such as ``"= 'red'"`` or ``"> 3"``."""
        column, code = self.columns[at], int(cell - self.offsets[at])
        if column.has_missing and code == column.n_cells - 1:
            return "is missing"
        if column.edges is None:
            return f"= {column.values[code].as_py()!r}"
        ends = [self._edge(column, k) for k in (code - 1, code) if 0 <= k < len(column.edges)]
        if code == 0:
            return f"≤ {ends[0]}" if ends else "is there"
        return f"in ({ends[0]}, {ends[1]}]" if len(ends) == 2 else f"> {ends[0]}"

    def _edge(self, column: Column, k: int) -> str:
        assert column.edges is not None
        kind = self.types[column.feature]
        if pa.types.is_temporal(kind):
            number = pa.array(column.edges[k : k + 1])
            return str(
                number.cast(pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)[0]
            )
        return f"{column.edges[k]:g}"


def quantile_edges(values: np.ndarray, weight: np.ndarray, max_bins: int) -> np.ndarray:
    """Upper ends of at most max_bins bins of equal weight, but for the last, which has none.

    An end is the value at a quantile, ``sorted[⌈i m / max_bins⌉]`` with values repeated by weight,
    so that bins follow the order of the values and not their scale. Where values are no more than
    max_bins, each has its own bin.
    """
    order = np.argsort(values, kind="stable")
    values, end = values[order], np.cumsum(weight[order])
    if not len(values):
        return values
    last = np.append(values[1:] != values[:-1], True)
    values, end = values[last], end[last]
    if len(values) > max_bins:
        wanted = np.arange(1, max_bins) * int(end[-1]) / max_bins
        values = np.unique(np.append(values[np.searchsorted(end, wanted)], values[-1]))
    return values[:-1]


def by_value_mask(owner: str, given: Any, names: list[str]) -> np.ndarray:
    """Mask of the features that ``categorical_features`` names, by name, place or mask."""
    mask = np.zeros(len(names), dtype=bool)
    if isinstance(given, str) and given == "from_dtype":
        return mask
    listed = np.asarray(given)
    if listed.ndim != 1 or isinstance(given, str):
        raise ValueError(
            f"{owner}: categorical_features must be 'from_dtype', or a list of names, of places "
            f"or of truth values. Got {given!r}."
        )
    if listed.dtype == bool:
        if len(listed) != len(names):
            raise ValueError(
                f"{owner}: categorical_features as truth values needs one per column, "
                f"{len(names)}. Got {len(listed)}."
            )
        return listed
    for item in listed.tolist():
        if isinstance(item, str) and item in names:
            mask[names.index(item)] = True
        elif isinstance(item, int) and 0 <= item < len(names):
            mask[item] = True
        else:
            raise ValueError(
                f"{owner}: categorical_features names {item!r}, which is no column of X. "
                f"Got {len(names)} columns." + did_you_mean(item, names)
            )
    return mask


def read_sample(
    estimator: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[ColumnEncoder, Sample, np.ndarray]:
    """Encoder, sample and classes of the rows that weigh something."""
    owner = type(estimator).__name__
    if y is None:
        raise ValueError(f"{owner}: requires y to be passed, but the target y is None.")
    table = read_table(estimator, X, reset=True)
    y = column_or_1d(y, warn=True)
    check_consistent_length(table[0], y)
    _check_target(owner, y)
    weight = check_weights(owner, sample_weight, len(y))
    if (weight != np.rint(weight)).any() or weight.sum() >= 2**31:
        part = weight[weight != np.rint(weight)]
        given = f"the weight {part[0]:g}" if len(part) else f"a sum of {weight.sum():g}"
        raise ValueError(
            f"{owner}: sample_weight must be whole numbers with a sum below 2^31, because weights "
            f"are repetitions of rows. Got {given}. Leave rates and costs out of sample_weight."
        )
    used = np.flatnonzero(weight > 0)
    if len(used) < len(y):
        table = [array.take(used) for array in table]
    classes, label = np.unique(y[used], return_inverse=True)
    if len(classes) < 2:
        raise ValueError(
            f"{owner}: needs at least 2 classes. Got 1 class ({classes[0]!r}) in "
            f"{len(used)} sample{'s' if len(used) > 1 else ''}."
        )
    names = getattr(estimator, "feature_names_in_", None)
    names = [f"x{j}" for j in range(len(table))] if names is None else [str(n) for n in names]
    by_value = by_value_mask(owner, estimator.categorical_features, names)
    weight = weight[used].astype(np.int64)
    encoder = ColumnEncoder(owner, names, by_value, int(estimator.max_bins)).fit(table, weight)
    cells = encoder.transform(table)
    return encoder, Sample(cells, encoder.offsets, label, weight, len(classes)), classes


def _check_target(owner: str, y: np.ndarray) -> None:
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y", estimator_name=owner)
    elif y.dtype == object and any(v is None or v != v for v in y):
        raise ValueError(f"{owner}: y has missing values. Leave those rows out.")
    kind = type_of_target(y, input_name="y", raise_unknown=True)
    if kind not in ("binary", "multiclass"):
        raise ValueError(
            f"{owner}: y must hold classes; numbers as targets are not supported yet. "
            f"Unknown label type: {kind}. Cut y into classes, or take another estimator."
        )
