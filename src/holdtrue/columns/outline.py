"""What is kept of a column's values beside its counts: the frequent ones, and where bins end.

Scores need no values, and are counted without. To show what a column says its values must be named:
a few of them, however many there are and in however many parts they come.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from holdtrue.columns.counting import rows_by_value, sum_between
from holdtrue.columns.hashed_texts import MOST_VALUES
from holdtrue.columns.parts import Part
from holdtrue.columns.values import python_values

_BLOCK = 1 << 16  # values whose rows stay in the cache


class Outline:
    """The most frequent values of a column, and the values at which its bins end.

    Attributes
    ----------
    frequent : list
        Values that are not missing, the most frequent first.
    tables : ndarray of shape (n_frequent, width)
    total : ndarray of shape (1, width)
        Of all values that are not missing.
    bin_ends : list of ndarray of int
        For every number of bins: index of the last value of each bin among the values in order.
    """

    def __init__(self) -> None:
        self.frequent: list[Any] = []
        self.tables = np.zeros((0, 0))
        self.total = np.zeros((0, 0))
        self.bin_ends: list[np.ndarray] = []
        self._n_values = 0
        self._first: list[Any] = []
        self._named: list[Any] = []  # values at some ends, and their indices
        self._at: list[np.ndarray] = []

    def add(self, part: Part, ends: np.ndarray | None) -> None:
        """Keep what is wanted of the next values.

        Parameters
        ----------
        part : Part
            With its values.
        ends : ndarray of int, optional
            Values at which a bin may end, where they have an order.
        """
        table = part.table
        if not len(table):
            return
        if ends is not None:
            self._first = self._first or _taken(part, np.array([0]))
            self._named += _taken(part, ends)
            self._at.append(self._n_values + ends)
        self._n_values += len(table)
        total = sum_between(table, np.array([len(table) - 1]))
        if len(self.total):
            total = sum_between(np.concatenate([self.total, total]), np.array([1]))
        self.total = total
        for start in range(0, len(table), _BLOCK):
            self._keep_frequent(part, start)

    def _keep_frequent(self, part: Part, start: int) -> None:
        """The most frequent of the values kept and of a block of a part; of equals, the first."""
        rows = rows_by_value(part.table[start : start + _BLOCK])
        least = rows_by_value(self.tables)[-1] if len(self.frequent) == MOST_VALUES else 0
        places = np.flatnonzero(rows > least)
        if not len(places):
            return
        best = start + places[np.argsort(-rows[places], kind="stable")[:MOST_VALUES]]
        values, tables = self.frequent + _taken(part, best), part.table[best]
        if self.frequent:
            tables = np.concatenate([self.tables, tables])
        order = np.argsort(-rows_by_value(tables), kind="stable")[:MOST_VALUES]
        self.frequent, self.tables = [values[i] for i in order], tables[order]

    def edges(self, ends: np.ndarray) -> list[Any]:
        """The least value, and the last value of each bin."""
        places = np.searchsorted(np.concatenate(self._at), ends)
        return self._first + [self._named[place] for place in places]


def _taken(part: Part, places: np.ndarray) -> list[Any]:
    """Some values of a part as Python objects."""
    values = part.values
    if isinstance(values, np.ndarray):
        return values[places].tolist()
    values = values.take(pa.array(places))
    if part.column is not None:  # one by one: `take` would join all chunks of the column
        return [part.column[row].as_py() for row in values.to_pylist()]
    if not pa.types.is_temporal(values.type):
        return python_values(values)
    try:  # as text: Python has no nanoseconds, nor years beyond 9999
        return values.cast(pa.string()).to_pylist()
    except pa.ArrowException:
        return values.cast(pa.int64()).to_pylist()
