"""Two columns together: their values joined, and columns that tell the same about the target.

With f_i and f_j two columns encoded out of fold (`encoding`), g their products with the target and
G those with each other, ``R²_i = g_i²/(G_ii y'y)`` is what a column explains alone and R²_ij what
both do in a sum. A column adds ``(R²_ij - R²_i)/R²_j`` of its own to a better one. Where that is
little, beyond chance, the joint column must not gain either: two columns may work together without
adding up.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from holdtrue.categories.encoding import (
    Counted,
    Encoding,
    Rows,
    Settings,
    choose,
    count_by_fold,
    deal_folds,
    encode_out_of_fold,
    learn,
    no_column_loss,
)
from holdtrue.categories.estimate import ColumnEstimate, best_first
from holdtrue.columns.bins import is_present
from holdtrue.columns.counting import Groups, Target
from holdtrue.columns.distinct import distinct
from holdtrue.columns.parts import LARGE
from holdtrue.columns.values import ORDERED, arrow_of, chunks_of, taken_rows
from holdtrue.evidence import SAME
from holdtrue.tables import Table

_MOST_COLUMNS = 16
_MOST_ROWS = 10_000
# Chance may hide what a column adds: the upper end of its interval is below this share.
_AT_MOST = 0.5
_FOLDS = 2


# --- joint columns --------------------------------------------------------------------------------


def joint_column(first: np.ndarray, second: np.ndarray, n_second: int) -> Any:
    """Column of the pairs of cells of two columns; null where one is -1."""
    return arrow_of(first.astype(np.int64) * n_second + second, (first < 0) | (second < 0))


class Half(NamedTuple):
    """A column that may be joined: its counts, its encoding and the cell of each row."""

    counted: Counted
    encoding: Encoding
    cell: np.ndarray


def count_pair(first: Half, second: Half, rows: Rows) -> Counted:
    """Tables of a joint column by value, from all rows."""
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
    chosen = choose(count_pair(first, second, rows), -1, settings._replace(average=False))
    gain = min(first.encoding.score, second.encoding.score) - chosen.score
    return gain if gain > 1e-12 * abs(chosen.score) and np.isfinite(chosen.strength) else 0.0


def pair_out_of_fold(first: Half, second: Half, rows: Rows, settings: Settings) -> np.ndarray:
    """Numbers of every row from the other folds, whose halves too are read as those would."""
    assert rows.folds is not None
    halves = (first.counted, second.counted)
    numbers = np.empty((len(rows.folds.fold), first.encoding.numbers.shape[1]))
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
        numbers[held_out] = encoding.numbers[encoding.cells.of_values(values)][codes]
    return numbers


# --- columns that tell the same -------------------------------------------------------------------


def same_columns(
    table: Table,
    names: Sequence[str],
    target: Target,
    groups: Groups | None,
    estimates: Sequence[ColumnEstimate],
    max_bins: int,
) -> dict[str, Any]:
    """For each column a better one to which it adds little: fields of `ColumnEvidence`.

    The best columns are compared, on some of the rows where there are many.
    """
    given = np.full(len(names), -1)
    adds, misses = np.full((2, len(names)), np.nan)
    result = {"adds_to": given, "adds": adds, "misses": misses}
    best = [j for j in best_first(estimates) if estimates[j].beats_no_column][:_MOST_COLUMNS]
    if len(best) < 2:
        return result
    rng = np.random.RandomState(0)
    at = np.arange(len(target.codes))
    if target.weight is not None:
        at = np.flatnonzero(target.weight)
    if len(at) > _MOST_ROWS:  # a RandomState would shuffle all rows
        at = at[np.sort(np.random.default_rng(0).choice(len(at), _MOST_ROWS, replace=False))]
    group = None if groups is None else np.unique(groups.codes[at], return_inverse=True)[1]
    rows = Rows(target.at(at), group, None)
    rows = rows._replace(folds=deal_folds(_FOLDS, rows.target, group, rng))
    is_numeric = target.classes is None
    settings = Settings(
        "squared_error" if is_numeric else "log_loss",
        max_bins,
        "mean" if is_numeric else "probability",
    )
    halves, encoded = [], []
    for j in best:
        column = _cells(table, names[j], at)
        counted = count_by_fold(names[j], estimates[j].kind, column, rows)
        encoded.append(encode_out_of_fold(counted, settings)[counted.cell])
        encoding, place = learn(counted, settings)
        halves.append(Half(counted, encoding, place[counted.codes]))
    nothing = no_column_loss(halves[-1].counted, settings.loss)
    alone, both = _explained(encoded, rows.target)
    n_units = len(at) if group is None else int(group.max()) + 1
    for b in range(1, len(best)):
        for a in (a for a in range(b) if given[best[a]] < 0):
            added = max(both[a, b] - alone[a], 0.0)
            share = added / max(alone[b], 1e-300)
            at_most = (np.sqrt(added) + 2 / np.sqrt(n_units)) ** 2  # two standard errors
            is_sure = at_most <= _AT_MOST * alone[b]
            if _is_renamed(halves[a], halves[b]):
                is_sure, share = True, 0.0
            if not is_sure or share > SAME or share >= np.nan_to_num(adds[best[b]], nan=1.0):
                continue
            gain_alone = nothing - halves[b].encoding.score
            if joint_gain(halves[a], halves[b], rows, settings) <= SAME * gain_alone:
                given[best[b]], adds[best[b]] = best[a], share
                misses[best[b]] = share and (both[a, b] - alone[b]) / max(alone[a], 1e-300)
    return result


def _is_renamed(first: Half, second: Half) -> bool:
    """Whether each value of one column is one value of the other.

    Where values hardly repeat that is so of any two columns, and their order must agree too.
    """
    columns = first.counted, second.counted
    n_first, n_second = (int(is_present(column.total).sum()) for column in columns)
    if n_first != n_second:
        return False
    keys = columns[0].codes.astype(np.int64) * len(columns[1].values) + columns[1].codes
    pairs = np.unique(keys)
    if len(pairs) != n_first or 2 * n_first <= len(keys):
        return len(pairs) == n_first
    steps = np.diff(pairs % len(columns[1].values))[:-1]  # the last may lead to the missing value
    return all(column.kind in ORDERED for column in columns) and len(set(np.sign(steps))) == 1


def _cells(table: Table, name: str, at: np.ndarray) -> Any:
    """Some rows of a column, which is read batch by batch where it is counted in parts."""
    if table.n_rows < LARGE or name not in table.plain_names:
        column = table.column(name)
        if len(at) == table.n_rows:
            return column
        if isinstance(column, np.ndarray):
            return column[at]
        return taken_rows(chunks_of(column), at)
    return taken_rows((batch.column(0) for batch in table.batches([name])), at)


def _explained(encoded: Sequence[np.ndarray], target: Target) -> tuple[np.ndarray, np.ndarray]:
    """Share of the target's squares that each column explains, and each two in a sum."""
    n_outputs = encoded[0].shape[1]
    weight = np.ones(len(target.codes)) if target.weight is None else target.weight
    y = target.codes[:, None].astype(np.float64)
    if n_outputs > 1:
        y = (target.codes[:, None] == np.arange(n_outputs)).astype(np.float64)

    def centred(numbers: np.ndarray) -> np.ndarray:
        away = numbers - weight @ numbers / weight.sum()
        return (away * np.sqrt(weight)[:, None]).ravel()

    F, target_part = np.stack([centred(numbers) for numbers in encoded]), centred(y)
    G, g = F @ F.T, F @ target_part
    squares = np.maximum(np.diag(G), 1e-300)
    whole = max(float(target_part @ target_part), 1e-300)
    alone = g * g / squares
    determinant = np.outer(squares, squares) - G * G
    joint = np.outer(g * g, squares) + np.outer(squares, g * g) - 2 * np.outer(g, g) * G
    is_one = determinant <= 1e-9 * np.outer(squares, squares)  # one is a multiple of the other
    both = np.where(
        is_one, np.maximum.outer(alone, alone), joint / np.where(is_one, 1.0, determinant)
    )
    return alone / whole, both / whole
