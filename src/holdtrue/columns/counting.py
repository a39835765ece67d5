"""Counting: for every value of a column, its rows by class or the moments of a numeric target."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from holdtrue.columns.bins import (
    N_MOMENTS,
    Part,
    grouped_moments,
    is_present,
    present_values,
    row_sums,
    whole_part,
)
from holdtrue.columns.distinct import (
    dense_ends,
    distinct,
    mostly_differ,
    sorted_distinct,
    text_groups,
    with_one_dictionary,
)
from holdtrue.columns.values import (
    array_column,
    arrow_of,
    chunks_of,
    code_counts,
    filtered,
    is_missing,
    numpy_of,
    python_values,
    refused,
    type_kind,
    valid_mask,
)
from holdtrue.errors import InputError, shown
from holdtrue.targets import check_class_count, target_kind
from holdtrue.validation import check_groups, check_weights

if TYPE_CHECKING:
    from holdtrue.columns.key_loops import Groups as TextGroups

# Rows from which, and classes up to which, columns are counted without a code per row.
LONG = 1 << 17
_SHORT = 1 << 12
PART = 1 << 20  # rows of a part
_FEW_CLASSES = 8
_MAX_CELLS = 1 << 30
_MAX_TARGET = 1e70
# Rows from which compiled loops repay the time of loading them.
_WORTH_LOADING = 1 << 21


def loops_pay(n_rows: int) -> bool:
    """Whether compiled loops over this number of rows save more time than loading them takes."""
    return n_rows >= (_SHORT if "holdtrue.columns.loops" in sys.modules else LONG)


def _loops_count_codes(n_rows: int) -> bool:
    """`loops_pay` for loops that count codes, which NumPy can do too."""
    loaded = "holdtrue.columns.loops" in sys.modules
    return n_rows >= (1 << 16 if loaded else _WORTH_LOADING)


def load_loops(n_rows: int) -> None:
    """Begin to load compiled loops on a thread, if this number of rows will need them.

    Loading runs on one thread and takes half a second, most of it before the first loop.
    """

    def first_loop() -> None:
        from holdtrue.columns.loops import count_codes

        piece = np.zeros(1, dtype=np.int32), np.zeros(0, dtype=bool)
        count_codes([piece], 0, 1, np.zeros(1, dtype=np.uint8), 1)

    if n_rows >= _WORTH_LOADING and "holdtrue.columns.loops" not in sys.modules:
        threading.Thread(target=first_loop).start()


class Target(NamedTuple):
    """The target of every row, and how often each row counts."""

    # shape (n_rows,): index of the row's class among the classes, or the number itself
    codes: np.ndarray
    classes: tuple[Any, ...] | None
    weight: np.ndarray | None  # shape (n_rows,)

    @classmethod
    def from_column(cls, y: Any, numeric: bool, sample_weight: Any = None) -> Target:
        """Target from an array-like or Arrow column, with no missing value and <= 100 classes."""
        return cls.by_rule(y, "numeric" if numeric else "classes", sample_weight)

    @classmethod
    def by_rule(cls, y: Any, target_type: str, sample_weight: Any = None) -> Target:
        """Target of a column, read as classes or a number by the rule of `holdtrue.targets`."""
        column = y if hasattr(y, "type") else array_column(np.asarray(y))
        if not len(column):
            raise InputError("expected at least one row. Got a target without rows.")
        weight = whole_weights(sample_weight, len(column))
        if target_type == "auto" and _are_floats(column):
            is_numeric = target_kind(column, "auto", weight).is_numeric
            target_type = "numeric" if is_numeric else "classes"
        if target_type == "numeric":
            return cls(_target_numbers(column), None, weight)
        values, codes = distinct("target", column)
        if isinstance(values, np.ndarray) and any(isinstance(label, tuple) for label in values):
            raise refused("target", "tuple")  # an array of labels would have two dimensions
        if weight is None:
            rows = code_counts(codes, len(values))
        else:
            rows = np.bincount(codes, weight, minlength=len(values))
        if hasattr(values, "type") and type_kind(values.type) == "category":
            target_type = "classes"
        if target_type == "auto" and target_kind(values, "auto", rows).is_numeric:
            return cls(_target_numbers(column), None, weight)
        labels = python_values(values)
        if None in labels:
            _refuse_missing(codes != labels.index(None))
        in_use = np.flatnonzero(rows)
        check_class_count(len(in_use))
        in_use = in_use[label_order([labels[i] for i in in_use])]
        place = np.zeros(len(values), dtype=np.min_scalar_type(len(values)))
        place[in_use] = np.arange(len(in_use))
        # Mostly the labels are in order already, and all in use.
        moved = codes if np.array_equal(in_use, np.arange(len(values))) else place[codes]
        classes = tuple(labels[i] for i in in_use)
        return cls(moved.astype(place.dtype, copy=False), classes, weight)

    @property
    def n_samples(self) -> int:
        """Number of rows; with weights, their sum."""
        return len(self.codes) if self.weight is None else int(self.weight.sum())

    def at(self, rows: np.ndarray) -> Target:
        """The target of some rows, in their order."""
        weight = None if self.weight is None else self.weight[rows]
        return Target(self.codes[rows], self.classes, weight)


class Groups(NamedTuple):
    """The group of every row: a patient, a site, a user."""

    labels: Any  # the groups
    codes: np.ndarray  # shape (n_rows,): index of the row's group among them
    # shape (n_groups, n_classes): class counts; rows alone, in one column, for a numeric target
    sums: np.ndarray

    @classmethod
    def from_column(cls, column: Any, target: Target) -> Groups:
        """Groups of the rows that count, from an array-like or Arrow column; none missing."""
        n_rows = len(target.codes)
        if not hasattr(column, "type"):
            column = array_column(check_groups(column, n_rows))
        if len(column) != n_rows:
            raise InputError(
                f"groups must have one value per row, {n_rows}. Got {len(column)} values."
            )
        labels, codes = distinct("groups", column)
        if target.classes is None:
            sums = np.bincount(codes, target.weight, minlength=len(labels))[:, None]
        else:
            sums = table_of(codes, len(labels), target)
        n_times = row_sums(sums)
        missing = n_times[is_missing(labels)].sum()
        if missing:
            raise InputError(
                f"groups must not be missing. Got {missing:.0f} missing in {n_rows} rows. "
                "Leave those rows out, or give them a group."
            )
        used = n_times > 0
        if not used.all():
            labels, codes = filtered(labels, used), np.maximum(np.cumsum(used) - 1, 0)[codes]
        return cls(labels, codes.astype(np.int32, copy=False), sums[used].astype(np.float64))


def check_group_count(labels: Any) -> None:
    """Refuse fewer than two groups: none could be left out."""
    if len(labels) < 2:
        given = [f"1, {shown(label)} in every row" for label in python_values(labels)]
        raise InputError(
            "groups must name at least 2 groups, so that one can be left out. Got "
            f"{given[0] if given else 'none'}. Leave groups out if new data are new rows."
        )


def whole_weights(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Weights as whole numbers, None for None; fractions are refused."""
    if sample_weight is None:
        return None
    weight = check_weights(sample_weight, n_rows)
    if (weight != np.floor(weight)).any():
        bad = weight[weight != np.floor(weight)][0]
        raise InputError(
            f"sample_weight must hold whole numbers, because a weight is the number of "
            f"times that a row is repeated. Got {bad:g}. Round them, or leave them out."
        )
    return weight.astype(np.int64)


def _refuse_missing(present: np.ndarray) -> None:
    if not present.all():
        raise InputError(
            f"the target must not be missing or infinite. "
            f"Got {int((~present).sum())} such values in {len(present)} rows. Leave those rows out."
        )


def _are_floats(column: Any) -> bool:
    return not isinstance(column, np.ndarray) and bool(pa.types.is_floating(column.type))


def _target_numbers(column: Any) -> np.ndarray:
    """A numeric target as floats; text, missing, and huge or tiny values are refused."""
    try:
        numbers = np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError) as error:
        _, is_text, value = str(error).partition("could not convert string to float: ")
        given = f"the text {value}" if is_text else getattr(column, "type", "several types")
        raise InputError(
            f"a numeric target must hold numbers. Got {given}. Turn it into numbers, or "
            "take it as classes."
        ) from error
    _refuse_missing(np.isfinite(numbers))
    largest = float(np.abs(numbers).max(initial=0.0))
    if largest > _MAX_TARGET or 0 < largest < 1 / _MAX_TARGET:
        raise InputError(
            f"the fourth powers of the target must fit into float64. Got values "
            f"of size {largest:g}. Change the unit."
        )
    return numbers


def label_key(label: Any) -> tuple[bool, Any]:
    """A key by which True and 1 differ."""
    return isinstance(label, bool), label


def label_order(labels: list[Any]) -> list[int]:
    """Indices that sort the labels; labels of several types are sorted type by type."""
    places = range(len(labels))
    try:
        return sorted(places, key=lambda i: labels[i])
    except TypeError:
        return sorted(places, key=lambda i: (type(labels[i]).__name__, labels[i]))


def count_column(name: str, column: Any, target: Target) -> tuple[Any, np.ndarray]:
    """Distinct values of one column and their table.

    Parameters
    ----------
    name : str
        The column, for the messages.
    column : pyarrow.Array, pyarrow.ChunkedArray or ndarray of object
    target : Target

    Returns
    -------
    values : pyarrow.Array or ndarray of object
    table : ndarray of shape (n_values, n_classes) or (n_values, 5)
        As in `table_of`; no row is empty.
    """
    numbers = number_counts(column, target)
    if numbers is None:
        return count_by_code(name, column, target)
    missing, parts = numbers
    values, counts = next(parts)
    if not len(missing):
        return values, counts
    return pa.concat_arrays([values, pa.nulls(1, values.type)]), np.vstack([counts, missing])


def count_by_code(name: str, column: Any, target: Target) -> tuple[Any, np.ndarray]:
    """`count_column` for columns that `number_counts` does not count: by a code for each row."""
    if not isinstance(column, np.ndarray) and pa.types.is_dictionary(column.type):
        column = with_one_dictionary(column)
        is_encoded = pa.types.is_dictionary(column.type)
        if is_encoded and _loops_count(column, target) and _loops_count_codes(len(column)):
            return _dictionary_counts(name, column, target)
    values, codes = distinct(name, column)
    return present_values(values, table_of(codes, len(values), target))


def column_parts(kind: str, name: str, column: Any, target: Target) -> Iterator[Part]:
    """Parts of a column in memory; parameters as in `whole_part` and `count_column`."""
    numbers = number_counts(column, target, PART)
    if numbers is not None:
        missing, parts = numbers
        return (
            Part(table, missing[:0] if i else missing, values)
            for i, (values, table) in enumerate(parts)
        )
    groups = text_groups(column)
    if groups is not None:
        return iter([_text_part(column, groups, target)])
    return iter([whole_part(kind, *count_by_code(name, column, target))])


def _text_part(column: Any, groups: TextGroups, target: Target) -> Part:
    """The part of a column of text whose rows are grouped by value."""
    table = table_of(groups.codes, len(groups.first), target.at(groups.rows))
    rows, table = present_values(groups.first, table)
    missing = numpy_of(column.is_null())[rows] if column.null_count else None
    return whole_part("category", arrow_of(rows, missing), table)._replace(column=column)


def count_groups(
    name: str, column: Any, target: Target, groups: Groups
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Distinct values of one column, the pairs of value and group that occur, and their table.

    Parameters
    ----------
    name, column, target
        As in `count_column`.
    groups : Groups

    Returns
    -------
    values : pyarrow.Array or ndarray of object
    pairs : ndarray of int, shape (n_pairs, 2)
        Index of the value and of the group, in the order of the values.
    table : ndarray of shape (n_pairs, n_classes) or (n_pairs, 5)
    """
    _check_length(column, target)
    values, codes = distinct(name, column)
    sizes = len(values), len(groups.labels)
    pairs, table = count_pairs(codes, groups.codes, sizes, target)
    return *present_pairs(values, pairs), table


def count_pairs(
    codes: np.ndarray, group: np.ndarray, sizes: tuple[int, int], target: Target
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of value and group that have rows, in the order of the values, and their table.

    Parameters
    ----------
    codes, group : ndarray of int, shape (n_rows,)
    sizes : (n_values, n_groups)
    target : Target

    Returns
    -------
    pairs : ndarray of int, shape (n_pairs, 2)
    table : ndarray of shape (n_pairs, n_classes) or (n_pairs, 5)
    """
    if target.classes is not None and target.weight is None and len(codes) >= LONG:
        cells = *sizes, len(target.classes)
        if sum(size.bit_length() for size in cells) <= 63:
            from holdtrue.columns.pair_loops import pair_counts

            pairs, table = pair_counts(codes, group, target.codes, cells)
            return pairs.T, table
    keys, places = distinct_keys(codes.astype(np.int64) * sizes[1] + group, sizes[0] * sizes[1])
    table = table_of(places, len(keys), target)
    keys, table = present_values(keys, table)  # some may have rows of weight 0 only
    return np.stack(np.divmod(keys, sizes[1])).T, table


def present_pairs(values: Any, pairs: np.ndarray) -> tuple[Any, np.ndarray]:
    """Values that occur in some pair of value and group, and the pairs, now with their indices.

    Parameters
    ----------
    values : pyarrow.Array or ndarray of object
    pairs : ndarray of int, shape (n_pairs, 2)
        In the order of the values; overwritten.
    """
    value = pairs[:, 0]
    if np.count_nonzero(value[1:] != value[:-1]) + 1 < len(values):
        used = np.zeros(len(values), dtype=bool)
        used[value] = True
        values = filtered(values, used)
        value[:] = (np.cumsum(used, dtype=value.dtype) - 1)[value]
    return values, pairs


def distinct_keys(keys: np.ndarray, n_keys: int) -> tuple[np.ndarray, np.ndarray]:
    """Distinct keys in order, and the index of each key among them.

    Parameters
    ----------
    keys : ndarray of int64, shape (n,)
        From 0 to ``n_keys - 1``.
    n_keys : int
    """
    if n_keys <= 4 * len(keys):  # a table is faster than sorting
        is_used = np.zeros(n_keys, dtype=bool)
        is_used[keys] = True
        return np.flatnonzero(is_used), (np.cumsum(is_used) - 1)[keys]
    n_bits = len(keys).bit_length()
    if int(n_keys).bit_length() + n_bits > 63:
        return sorted_distinct(keys)
    # Key and row in one number: sorting numbers is several times faster than their indices.
    packed = keys << n_bits
    packed |= np.arange(len(keys))
    packed.sort()
    ordered = packed >> n_bits
    first = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    places = np.empty(len(ordered), dtype=np.intp)
    places[packed & ((1 << n_bits) - 1)] = np.cumsum(first) - 1
    return ordered[first], places


def _check_length(column: Any, target: Target) -> None:
    if len(column) != len(target.codes):
        raise InputError(
            f"y must have one value per row of X, {len(column)}. Got {len(target.codes)}."
        )


def _loops_count(column: Any, target: Target) -> bool:
    """Whether compiled loops count a column without a code per row, if its type allows it."""
    return (
        not isinstance(column, np.ndarray)
        and len(column) >= LONG
        and target.classes is not None
        and target.weight is None
        and len(target.classes) <= _FEW_CLASSES
    )


def number_counts(
    column: Any, target: Target, max_rows: int | None = None
) -> tuple[np.ndarray, Iterator[tuple[Any, np.ndarray]]] | None:
    """Class counts of missing rows, and numbers of a long column in order with theirs, in parts.

    Dates and times are numbers. None for other columns, and for integers that NumPy counts as codes
    before loops are loaded.

    Parameters
    ----------
    column : pyarrow.Array, pyarrow.ChunkedArray or ndarray of object
    target : Target
    max_rows : int, optional
        About how many rows a part counts at most, where numbers mostly differ; by default there is
        one part.

    Returns
    -------
    missing : ndarray of int64, shape (0, n_classes) or (1, n_classes)
    parts : iterator of (values, counts)
        A pyarrow.Array, and an ndarray of int64, shape (n_values, n_classes).
    """
    _check_length(column, target)
    if not _loops_count(column, target) or column.null_count == len(column):
        return None
    kind, ends = column.type, None
    if not is_counted_by_number(kind):
        return None
    column = pa.chunked_array([stored_numbers(chunk) for chunk in chunks_of(column)])
    if not pa.types.is_floating(kind):
        ends = dense_ends(column)
        if ends is not None and not _loops_count_codes(len(column)):
            return None
    from holdtrue.columns.key_loops import codes_in_one_pass
    from holdtrue.columns.loops import sorted_counts

    pieces = [number_buffers(chunk) for chunk in column.chunks]
    n_classes, dtype = len(target.classes or ()), pieces[0][0].dtype
    # Cells at random places of a table beyond the cache take longer than sorting.
    if ends is not None and (ends[1] - ends[0] + 1) * n_classes <= len(column):
        values, counts, missing = dense_counts(pieces, *ends, target)
        return missing, iter([(typed_numbers(values, kind), counts)])
    if mostly_differ(column, 0.9):
        missing, parts = sorted_counts(pieces, dtype, target.codes, n_classes, max_rows)
        return missing, ((typed_numbers(values, kind), counts) for values, counts in parts)
    keys = (numbers.view(np.uint64)[:, None] for numbers, _ in pieces)
    coded = codes_in_one_pass(keys, 1, len(column))
    stops = np.cumsum([len(numbers) for numbers, _ in pieces])
    masks = (valid for _, valid in pieces)
    codes = zip(np.split(coded.codes, stops[:-1]), masks, strict=True)
    # Keys of missing rows alone are left out.
    used, counts, missing = dense_counts(codes, 0, len(coded.keys) - 1, target)
    values = coded.keys[used, 0].view(dtype)
    order = np.argsort(values)
    return missing, iter([(typed_numbers(values[order], kind), counts[order])])


def dense_counts(
    pieces: Iterable[tuple[np.ndarray, np.ndarray]], low: int, high: int, target: Target
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whole numbers from low to high that occur, their class counts, and those of missing rows.

    Parameters
    ----------
    pieces : iterable of (numbers, valid), as in `number_buffers`
    low, high : int
    target : Target
    """
    from holdtrue.columns.loops import count_codes

    n_classes = len(target.classes or ())
    counts, missing = count_codes(pieces, low, high - low + 1, target.codes, n_classes)
    used = np.flatnonzero(is_present(counts))
    counts = counts if len(used) == len(counts) else counts[used]
    return low + used, counts, missing[None][: int(missing.any())]


def is_counted_by_number(kind: Any) -> bool:
    """Whether values of an Arrow type are numbers of 64 bits at most, or dates and times."""
    return bool(
        pa.types.is_floating(kind)
        or (pa.types.is_integer(kind) and kind != pa.uint64())
        or (pa.types.is_temporal(kind) and not pa.types.is_interval(kind))
    )


def stored_numbers(values: Any) -> Any:
    """An Arrow array of numbers, dates or truth values as one of int64 or float64."""
    kind = values.type
    if pa.types.is_floating(kind):
        return values.cast(pa.float64())
    if pa.types.is_temporal(kind):
        values = values.view(f"int{kind.bit_width}")
    elif pa.types.is_boolean(kind):
        values = values.cast(pa.int8())
    return values.cast(pa.int64())


def typed_numbers(numbers: np.ndarray, kind: Any) -> Any:
    """Inverse of `stored_numbers`: the numbers in their Arrow type again."""
    values = arrow_of(numbers)
    if pa.types.is_temporal(kind):
        return values.cast(f"int{kind.bit_width}").view(kind)
    return values.cast(pa.bool_()) if pa.types.is_boolean(kind) else values


def number_buffers(numbers: Any) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of an Arrow array, and a mask of those that are not missing (empty if none is)."""
    stored, valid = numpy_of(numbers), valid_mask(numbers)
    if not pa.types.is_floating(numbers.type):
        return stored, valid
    present = ~np.isnan(stored)
    if not present.all():
        valid = present & valid if len(valid) else present
    # -0.0 + 0.0 is 0.0: the two are equal, but not bit by bit.
    return stored + 0.0, valid


def within(
    low: Any, high: Any, numbers: np.ndarray, valid: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The numbers, and a mask of those in (low, high]; None leaves that side open."""
    if low is None and high is None:
        return numbers, valid
    inside = np.ones(len(numbers), dtype=bool) if low is None else numbers > low
    if high is not None:
        inside &= numbers <= high
    return numbers, inside & valid if len(valid) else inside


def _dictionary_counts(name: str, column: Any, target: Target) -> tuple[Any, np.ndarray]:
    """Class counts of a long column with one dictionary, whose codes are counted as they are."""
    from holdtrue.columns.loops import count_codes

    chunks = [chunk for chunk in chunks_of(column) if len(chunk)]
    dictionary = chunks[0].dictionary
    pieces = [number_buffers(chunk.indices) for chunk in chunks]
    n_classes = len(target.classes or ())
    counts, missing = count_codes(pieces, 0, len(dictionary), target.codes, n_classes)
    # A dictionary may repeat values, or hold null.
    values, places = distinct(name, pa.concat_arrays([dictionary, pa.nulls(1, dictionary.type)]))
    table = np.zeros((len(values), n_classes), dtype=np.int64)
    np.add.at(table, places, np.concatenate([counts, missing[None]]))
    return present_values(values, table)


def table_of(codes: np.ndarray, n_values: int, target: Target) -> np.ndarray:
    """Counts by value and class, or moments by value, of coded rows.

    Parameters
    ----------
    codes : ndarray of int, shape (n_rows,)
    n_values : int
    target : Target
    """
    if target.classes is not None:
        return _class_counts(codes, n_values, target, len(target.classes))
    weight = np.ones(len(codes)) if target.weight is None else target.weight
    ones = np.zeros((len(codes), N_MOMENTS))
    ones[:, 0], ones[:, 1] = weight, target.codes
    return grouped_moments(codes, n_values, ones)


def _class_counts(codes: np.ndarray, n_values: int, target: Target, n_classes: int) -> np.ndarray:
    n_cells = n_values * n_classes
    if n_cells > _MAX_CELLS:
        raise InputError(
            f"{n_values:,} values by {n_classes:,} classes make a table of "
            f"{n_cells / 2**27:.0f} GB, above the limit of {_MAX_CELLS / 2**27:.0f} GB. Join rare "
            "classes, or pass target_type='numeric' if the target is a number."
        )
    if target.weight is None and _loops_count_codes(len(codes)):
        from holdtrue.columns.loops import count_codes

        piece = codes, np.zeros(0, dtype=bool)
        return count_codes([piece], 0, n_values, target.codes, n_classes)[0]
    cell = np.multiply(codes, n_classes, dtype=np.intp)
    cell += target.codes
    counts = np.bincount(cell, target.weight, minlength=n_cells)
    return counts.astype(np.int64, copy=False).reshape(n_values, n_classes)
