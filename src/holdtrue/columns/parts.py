"""Counting a column of very many rows in parts, in less memory than a table of all its values.

Numbers are distributed over parts by their order. Of texts that mostly differ only a hash stays in
memory: a text whose hash no other row has occurs once, and the other rows are read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from holdtrue.columns.bins import Part
from holdtrue.columns.counting import (
    PART,
    Target,
    column_parts,
    dense_counts,
    is_counted_by_number,
    number_buffers,
    stored_numbers,
    typed_numbers,
    within,
)
from holdtrue.columns.distinct import is_text, mostly_differ
from holdtrue.columns.hashed_texts import hashed_counts

# Rows from which a column is counted in parts. Below, one table of all values takes less time, and
# for five million rows less than a gigabyte.
LARGE = 1 << 23
# Rows of numbers that are sorted at a time, and the step of the sample that says where to cut.
RANGE = 1 << 23
_SAMPLED = 64
# Cells of a table of integers that lie close together.
DENSE = 1 << 20
_BATCH = 1 << 16


class ColumnSource(Protocol):
    """Where columns are read from, such as `holdtrue.tables.Table`."""

    n_rows: int
    types: dict[str, Any]

    def column(self, name: str) -> Any:
        """The whole column."""

    def batches(self, columns: Iterable[str] | None = None, rows: int = 0) -> Iterator[Any]:
        """Record batches of some columns."""


def table_parts(source: ColumnSource, kind: str, name: str, target: Target) -> Iterator[Part]:
    """Parts of a column of a table, which is read in parts where it has very many rows."""
    parts = None
    if source.n_rows == len(target.codes):
        parts = count_in_parts(source, name, target)
    return column_parts(kind, name, source.column(name), target) if parts is None else parts


def count_in_parts(source: ColumnSource, name: str, target: Target) -> Iterator[Part] | None:
    """Parts of a column of very many rows; None where it is better counted as a whole.

    Parameters
    ----------
    source : ColumnSource
    name : str
        Of the column.
    target : Target
    """
    if source.n_rows < LARGE or target.classes is None or target.weight is not None:
        return None
    pa.default_memory_pool().release_unused()  # of the column before
    kind = source.types[name]
    if is_text(kind):

        def texts() -> Iterator[Any]:
            return (batch.column(0) for batch in source.batches([name], _BATCH))

        some = next(texts())
        if not mostly_differ(some, 0.5):
            return None
        counted = hashed_counts(name, texts, some.nbytes / len(some), target)
        return (Part(table, missing, values) for values, table, missing in counted)
    if not (is_counted_by_number(kind) or pa.types.is_boolean(kind)):
        return None
    if not pa.types.is_floating(kind):
        low, high = _range(source, name)
        if (high - low + 1) * len(target.classes) <= DENSE:
            return _dense_tables(source, name, target, low, high)
    return _sorted_tables(source, name, target)


def _sorted_tables(source: ColumnSource, name: str, target: Target) -> Iterator[Part]:
    """Parts of a column of numbers, in their order; the missing value comes first.

    One range of numbers at a time is in memory, so that many rows cost time and not memory.
    """
    from holdtrue.columns.loops import sorted_counts

    dtype = np.float64 if pa.types.is_floating(source.types[name]) else np.int64
    n_classes = len(target.classes or ())
    missing, ends = _missing_and_ends(source, name, target)
    yield Part(missing[None][:0], missing[None][: int(missing.any())])
    for low, high in pairwise([None, *ends, None]):
        pieces = (within(low, high, *piece) for piece in _numbers(source, name))
        _, counts = sorted_counts(pieces, dtype, target.codes, n_classes, PART)
        for values, table in counts:
            yield Part(table, table[:0], typed_numbers(values, source.types[name]))
        del counts  # free the memory before the next range


def _missing_and_ends(
    source: ColumnSource, name: str, target: Target
) -> tuple[np.ndarray, np.ndarray]:
    """Missing rows by class, and the upper ends of ranges of about `RANGE` rows, but the last."""
    missing = np.zeros(len(target.classes or ()), dtype=np.int64)
    samples, start = [], 0
    for numbers, valid in _numbers(source, name):
        if len(valid):
            labels = target.codes[start : start + len(numbers)]
            missing += np.bincount(labels[~valid], minlength=len(missing))
        samples.append((numbers[valid] if len(valid) else numbers)[::_SAMPLED].copy())
        start += len(numbers)
    sample = np.sort(np.concatenate(samples))
    n_ranges = -(-source.n_rows // RANGE) if len(sample) else 1
    return missing, np.unique(sample[np.arange(1, n_ranges) * len(sample) // n_ranges])


def _dense_tables(
    source: ColumnSource, name: str, target: Target, low: int, high: int
) -> Iterator[Part]:
    """The one part of a column of whole numbers in a narrow range."""
    numbers, table, missing = dense_counts(_numbers(source, name), low, high, target)
    yield Part(table, missing, typed_numbers(numbers, source.types[name]))


def _range(source: ColumnSource, name: str) -> tuple[int, int]:
    """Least and greatest whole number; 0 and 0 where all are missing."""
    present = (
        (numbers[valid] if len(valid) else numbers) for numbers, valid in _numbers(source, name)
    )
    ends = [(int(numbers.min()), int(numbers.max())) for numbers in present if len(numbers)]
    return min((low for low, _ in ends), default=0), max((high for _, high in ends), default=0)


def _numbers(source: ColumnSource, name: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Numbers, and masks of those that are not missing, batch by batch."""
    for batch in source.batches([name], PART):
        yield number_buffers(stored_numbers(batch.column(0)))
