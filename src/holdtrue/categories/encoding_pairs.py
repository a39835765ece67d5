"""Joint columns: two columns whose values are taken together."""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from holdtrue.categories.encoding import (
    Counted,
    Encoding,
    Rows,
    Settings,
    choose,
    count_by_fold,
    learn,
)
from holdtrue.columns.distinct import distinct


def joint_column(first: np.ndarray, second: np.ndarray, n_second: int) -> Any:
    """Column of the pairs of cells of two columns; null where one is -1."""
    return pa.array(first.astype(np.int64) * n_second + second, mask=(first < 0) | (second < 0))


class Half(NamedTuple):
    """A column that may be joined: its counts, its encoding and the cell of each row."""

    counted: Counted
    encoding: Encoding
    cell: np.ndarray


def _count(first: Half, second: Half, rows: Rows) -> Counted:
    column = joint_column(first.cell, second.cell, second.encoding.n_joined)
    name = f"{first.counted.name}&{second.counted.name}"
    return count_by_fold(name, "category", column, rows._replace(folds=None))


def best_pairs(
    halves: list[Half], rows: Rows, settings: Settings, n_pairs: int
) -> list[tuple[int, int]]:
    """Pairs whose joint column gains most over the better of the two; none that does not gain."""
    gains = {
        (i, j): joint_gain(halves[i], halves[j], rows, settings)
        for i, j in combinations(range(len(halves)), 2)
    }
    gaining = [pair for pair in gains if gains[pair] > 0]
    return sorted(gaining, key=lambda pair: -gains[pair])[:n_pairs]


def joint_gain(first: Half, second: Half, rows: Rows, settings: Settings) -> float:
    """Loss that the joint column of two takes off the better one; 0 where it takes nothing."""
    chosen = choose(_count(first, second, rows), -1, settings._replace(average=False))
    gain = min(first.encoding.score, second.encoding.score) - chosen.score
    return gain if gain > 1e-12 * abs(chosen.score) and np.isfinite(chosen.strength) else 0.0


def learn_pair(first: Half, second: Half, rows: Rows, settings: Settings) -> Encoding:
    """Encoding of a joint column from all rows."""
    return learn(_count(first, second, rows), settings)[0]


def pair_out_of_fold(first: Half, second: Half, rows: Rows, settings: Settings) -> np.ndarray:
    """Numbers of every row from the other folds, whose halves too are read as those would."""
    assert rows.folds is not None
    result: np.ndarray | None = None
    halves = (first.counted, second.counted)
    for fold in range(rows.folds.n_folds):
        left, right = (choose(half, fold, settings) for half in halves)
        column = joint_column(
            left.place[halves[0].codes], right.place[halves[1].codes], len(right.table)
        )
        held_out = rows.folds.fold == fold
        others = np.flatnonzero(~held_out)
        counted = count_by_fold("pair", "category", column.take(others), rows.at(others))
        encoding, _ = learn(counted, settings)
        values, codes = distinct("pair", column.filter(held_out))
        numbers = encoding.numbers[encoding.cells.of_values(values)][codes]
        if result is None:
            result = np.empty((len(held_out), numbers.shape[1]))
        result[held_out] = numbers
    assert result is not None
    return result
