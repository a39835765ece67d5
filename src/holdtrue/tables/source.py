"""Where the columns of a table come from, and columns that are computed from stored ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from holdtrue.columns.values import missing_objects, refused, value_type


class Source(Protocol):
    """Columns of a file or a frame, by name."""

    types: dict[str, Any]
    n_rows: int

    def column(self, name: str) -> Any:
        """The whole column."""

    def batches(self, kinds: dict[str, Any], rows: int) -> Iterator[pa.RecordBatch]:
        """Batches of at most ``rows`` rows, of these columns in these types."""


# Name of a table, and where in it a row is, counted from 0; for errors
Place = Callable[[int], tuple[str, str]]


class Computed(NamedTuple):
    """A column that is computed from a stored one, piece by piece."""

    stored: str  # name of the stored column
    type: Any  # Arrow type of the values
    # Values for a piece of the stored column, and for the number of rows before that piece
    values: Callable[[Any, int], Any]


class ComputedColumns:
    """Columns of a source, of which some are computed: converted, or parts of dates."""

    def __init__(self, source: Source, computed: Mapping[str, Computed]):
        self._source, self._computed, self.n_rows = source, computed, source.n_rows
        of_computed = {name: column.type for name, column in computed.items()}
        self.types: dict[str, Any] = {**source.types, **of_computed}

    def column(self, name: str) -> Any:
        """The whole column."""
        if name not in self._computed:
            return self._source.column(name)
        stored, kind, values = self._computed[name]
        column = self._source.column(stored)
        if isinstance(column, np.ndarray):
            column = as_text(stored, column)
        pieces = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        starts = np.cumsum([0, *map(len, pieces)]).tolist()
        chunks = [values(piece, start) for piece, start in zip(pieces, starts[:-1], strict=True)]
        return pa.chunked_array(chunks, type=kind)

    def batches(self, kinds: dict[str, Any], rows: int) -> Iterator[pa.RecordBatch]:
        """Batches of at most ``rows`` rows, of these columns in these types."""
        read = [self._computed[name].stored if name in self._computed else name for name in kinds]
        n_before = 0
        for batch in self._source.batches(
            {n: value_type(self._source.types[n]) for n in read}, rows
        ):
            stored = dict(zip(dict.fromkeys(read), batch.columns, strict=True))
            columns = [
                self._computed[name].values(stored[of], n_before)
                if name in self._computed
                else stored[of]
                for name, of in zip(kinds, read, strict=True)
            ]
            yield batch_of(columns, kinds)
            n_before += batch.num_rows


def batch_of(columns: list[Any], kinds: Mapping[str, Any]) -> pa.RecordBatch:
    """Columns as a batch with these names and types."""
    arrays = [
        one_array(
            widened(as_text(name, column) if isinstance(column, np.ndarray) else column, kind)
        )
        for column, (name, kind) in zip(columns, kinds.items(), strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(list(kinds.items())))


def widened(column: Any, kind: Any) -> Any:
    """A column in a type that holds its values; whole numbers become the nearest float."""
    stored = column.type
    if pa.types.is_dictionary(stored) and pa.types.is_string_view(stored.value_type):
        column = column.cast(pa.dictionary(stored.index_type, pa.large_string()))
    return column if column.type == kind else column.cast(kind, safe=False)


def as_text(name: str, column: np.ndarray) -> Any:
    """Objects of several types as text; lists and the like are refused."""
    for value in column:
        try:
            hash(value)
        except TypeError as error:
            raise refused(name, type(value).__name__) from error
    missing = missing_objects(column)
    pairs = zip(column, missing, strict=True)
    return pa.array([None if gone else str(value) for value, gone in pairs], pa.string())


def one_array(column: Any) -> Any:
    """A chunked array as one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
