"""A column as numbers: counted once by value and fold, then encoded without each fold.

The encoding of a fold is what a fit on the rows of the other folds gives its rows: bins and
strength are chosen there, by the loss of rows (or groups) left out of those rows.
"""

from __future__ import annotations

import math
import numbers
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from holdtrue.categories.cells import Cells, in_order
from holdtrue.categories.grouped import estimate_mean_groups, group_scores
from holdtrue.categories.shrunk import (
    STRENGTHS,
    best_reading,
    clearly_least,
    least,
    shares,
    strength_scores,
)
from holdtrue.categories.shrunk_mean import mean_scores, shrunk_means
from holdtrue.columns.bins import (
    Reading,
    grouped_moments,
    holds_moments,
    is_present,
    readings,
    rows_by_value,
)
from holdtrue.columns.counting import Target, count_pairs, table_of
from holdtrue.columns.distinct import distinct
from holdtrue.columns.values import ORDERED, arrow_of, filtered
from holdtrue.errors import InputError, shown
from holdtrue.sums.group_profile import GroupTable, meet
from holdtrue.sums.packing import pack, refuses_damaged, unpack
from holdtrue.sums.profile import moment_sums
from holdtrue.validation import is_number

_NEGLIGIBLE = 1e-6  # weight in an average, of the largest
_MOST_STEPS = 1024  # cells of a number whose averages are interpolated, beside the bins' own


class Settings(NamedTuple):
    """How columns are encoded; the same for all columns of a fit."""

    loss: str  # "log_loss", "brier" or "squared_error"
    max_bins: int
    output: str  # "log_odds", "probability" or "mean"
    average: bool = False  # over strengths and bins, instead of one chosen


# --- folds ----------------------------------------------------------------------------------------


class Folds(NamedTuple):
    """The fold of every row."""

    fold: np.ndarray  # shape (n_rows,)
    # Where rows are dealt one by one, those of weight 0 have a fold of their own, the last: nothing
    # is left out for them
    n_folds: int


def check_folds(cv: Any) -> None:
    """Refuse what is neither a number of folds nor a way to make them."""
    if is_number(cv, numbers.Integral) and cv >= 2:
        return
    is_number_like = isinstance(cv, (bool, np.bool_, numbers.Number, str)) or cv is None
    if is_number_like or not (hasattr(cv, "split") or hasattr(cv, "__iter__")):
        raise InputError(
            f"cv must be a whole number of at least 2, a splitter of scikit-learn, or pairs of "
            f"row numbers (train, test). Got {shown(cv)}."
        )


def folds_of(
    cv: Any, target: Target, group: np.ndarray | None, rng: np.random.RandomState
) -> Folds:
    """The fold of every row, dealt or as ``cv`` says.

    Every row must be in one test part of ``cv``; it learns from the rows of all other parts.
    """
    if is_number(cv, numbers.Integral):
        return deal_folds(int(cv), target, group, rng)
    from sklearn.model_selection import check_cv

    n_rows = len(target.codes)
    fold, n_times, n_folds = np.zeros(n_rows, np.int32), np.zeros(n_rows, np.intp), 0
    for _, test in check_cv(cv).split(np.zeros((n_rows, 1)), target.codes, group):
        fold[test] = n_folds
        n_times[np.arange(n_rows)[test]] += 1
        n_folds += 1
    if (n_times != 1).any():
        row = int(np.argmax(n_times != 1))
        raise InputError(
            f"cv must put every row into one test part. Row {row} is in {n_times[row]}. "
            "Pass a number of folds, or a splitter such as KFold."
        )
    weight = np.bincount(fold, target.weight, n_folds)
    if np.count_nonzero(weight) < 2:
        raise InputError(
            "cv must leave rows to learn from for every fold. Got all rows of positive weight in "
            "one test part."
        )
    if group is not None:
        counts = slice(None) if target.weight is None else target.weight > 0
        fold_of_group = np.zeros(int(group.max()) + 1, dtype=np.int32)
        fold_of_group[group[counts]] = fold[counts]
        if (fold_of_group[group] != fold)[counts].any():
            raise InputError(
                "the rows of a group must be in one test part of cv. Got a group in several. Pass "
                "a number of folds, or a splitter such as GroupKFold."
            )
        fold = fold_of_group[group]
    return Folds(fold, n_folds)


def deal_folds(
    n_folds: int, target: Target, group: np.ndarray | None, rng: np.random.RandomState
) -> Folds:
    """Rows, or whole groups, dealt to folds at random, so that each fold has its share of classes.

    Rows are shuffled and sorted by class, groups by their most frequent class and then by size;
    then they are dealt one by one, as cards are. There are no more folds than rows or groups.
    """
    n_rows = len(target.codes)
    if group is None:
        size = target.weight
        label = target.codes if target.classes is not None else None
        n_units = n_rows
    else:
        size = np.bincount(group, target.weight)
        n_units = len(size)
        label = None
        if target.classes is not None:
            label = table_of(group, n_units, target).argmax(axis=1)
    used = np.arange(n_units) if size is None else np.flatnonzero(size > 0)
    order = rng.permutation(used)
    if size is not None:
        order = order[np.argsort(-size[order], kind="stable")]
    if label is not None:
        order = order[np.argsort(label[order], kind="stable")]
    n_folds = min(n_folds, len(order))
    dealt = np.full(n_units, n_folds, dtype=np.int32)
    dealt[order] = np.arange(len(order), dtype=np.int32) % n_folds
    fold = dealt if group is None else dealt[group]
    return Folds(fold, n_folds + int(fold.max() == n_folds))


# --- counting -----------------------------------------------------------------------------------


class Rows(NamedTuple):
    """What is known of every row besides its columns."""

    target: Target
    group: np.ndarray | None  # shape (n_rows,)
    folds: Folds | None  # none where nothing is to be encoded out of fold

    def at(self, rows: np.ndarray) -> Rows:
        """Target and group of some rows, without folds."""
        return Rows(self.target.at(rows), None if self.group is None else self.group[rows], None)


class Met(NamedTuple):
    """Pairs of value and group that have rows: indices, table and fold of each pair."""

    value: np.ndarray
    group: np.ndarray
    table: np.ndarray
    fold: np.ndarray

    def without(self, fold: int) -> Met:
        """The pairs of groups in other folds."""
        kept = self.fold != fold
        return Met(self.value[kept], self.group[kept], self.table[kept], self.fold[kept])

    def read(self, place: np.ndarray) -> GroupTable:
        """Sums by cell and group in a reading, given the cell of each value."""
        return meet(place[self.value], self.group, self.table)


class Counted(NamedTuple):
    """A column counted by value and fold."""

    name: str
    kind: str
    values: Any  # numbers in order, missing last
    cell: np.ndarray  # shape (n_rows,): ``value * n_folds + fold`` of each row
    tables: np.ndarray  # shape (n_values, n_folds, width): class counts or moments
    total: np.ndarray  # shape (n_values, width): of all folds
    met: Met | None  # with groups

    @property
    def codes(self) -> np.ndarray:
        """Place of each row's value."""
        return self.cell // self.tables.shape[1]

    def without(self, fold: int) -> tuple[np.ndarray, Met | None]:
        """Table of values, and pairs with groups, from the rows out of a fold (-1: all rows)."""
        if fold < 0:
            return self.total, self.met
        met = None if self.met is None else self.met.without(fold)
        if not holds_moments(self.tables):
            return self.total - self.tables[:, fold], met
        # Moments are added rather than taken away, which would cost digits.
        used = self.tables[:, :, 0] > 0
        used[:, fold] = False
        return _sum_of_moments(self.tables, used), met


def _sum_of_moments(tables: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Moments of each value from some folds, given a mask of shape (n_values, n_folds)."""
    value, fold = np.nonzero(used)
    return grouped_moments(value, len(tables), tables[value, fold])


def _total(tables: np.ndarray) -> np.ndarray:
    """Tables of all folds together, shape (n_values, width)."""
    if tables.shape[1] == 1:
        return tables[:, 0]
    if holds_moments(tables):
        return _sum_of_moments(tables, tables[:, :, 0] > 0)
    return np.einsum("vfk->vk", tables)


def count_by_fold(name: str, kind: str, column: Any, rows: Rows) -> Counted:
    """Tables of a column by value and fold, from one pass over its rows."""
    values, codes = distinct(name, column)
    if kind in ORDERED:
        order = in_order(values)
        if (order != np.arange(len(order))).any():
            place = np.empty(len(order), dtype=np.intp)
            place[order] = np.arange(len(order))
            values, codes = values.take(arrow_of(order)), place[codes]
    target, group, folds = rows
    n_values, n_folds = len(values), 1 if folds is None else folds.n_folds
    cell = codes
    if folds is not None:
        fits = n_values * n_folds < 2**31
        cell = np.multiply(codes, n_folds, dtype=np.int32 if fits else np.int64)
        cell += folds.fold
    tables = table_of(cell, n_values * n_folds, target).reshape(n_values, n_folds, -1)
    met = None if group is None else _met(codes, n_values, group, rows)
    return Counted(name, kind, values, cell, tables, _total(tables), met)


def _met(codes: np.ndarray, n_values: int, group: np.ndarray, rows: Rows) -> Met:
    n_groups = int(group.max()) + 1
    pairs, table = count_pairs(codes, group, (n_values, n_groups), rows.target)
    value, group_of_pair = pairs.T
    fold_of_group = np.zeros(n_groups, dtype=np.int32)
    if rows.folds is not None:
        fold_of_group[group] = rows.folds.fold
    return Met(value, group_of_pair, table, fold_of_group[group_of_pair])


# --- choosing a reading and a strength ----------------------------------------------------------


class Way(NamedTuple):
    """A reading in an average; fields as in `Chosen`."""

    n_bins: int
    place: np.ndarray
    table: np.ndarray
    weights: np.ndarray  # shape (n_strengths,): of the reading with each of `STRENGTHS`


class Chosen(NamedTuple):
    """The reading and strength of a column with the least left-out loss."""

    n_bins: int  # 0 where the column is read by value
    cells: Cells | None  # none where the column is read by value
    # shape (n_values,): cell of each value; -1 for a value that the rows of the choice do not have
    place: np.ndarray
    table: np.ndarray  # shape (n_cells, width): none of its rows is empty
    score: float  # left-out loss
    strength: float  # infinite where the column says nothing
    averaged: tuple[Way, ...] = ()  # what the encoding averages over; empty: the chosen one alone
    fine: Cells | None = None  # narrow cells, for averages over bins
    # shape (n_values,): rows of the choice below the fine cell of each value, and half of its own
    rank: np.ndarray | None = None


def choose(counted: Counted, fold: int, settings: Settings) -> Chosen:
    """Reading and strength of a column, from all rows but those of a fold (-1: from all rows).

    Where readings tie, bins come before values and few bins before many.
    """
    table, met = counted.without(fold)
    present = is_present(table)
    table = table if present.all() else table[present]
    values = filtered(counted.values, present) if counted.kind in ORDERED else None
    ways = readings(counted.kind, values, table, settings.max_bins)
    ways.sort(key=lambda way: not way.n_bins)

    @cache
    def cells_of(at: int) -> tuple[Cells | None, np.ndarray]:
        if not ways[at].n_bins:
            return None, np.where(present, np.cumsum(present) - 1, -1)
        cells = Cells.from_reading(counted.name, values, ways[at])
        return cells, cells.of_values(counted.values)

    by_group: list[GroupTable | None] = [None] * len(ways)
    if met is not None:
        by_group = [met.read(cells_of(at)[1]) for at in range(len(ways))]
    best, score, strength = _best([way.table for way in ways], by_group, settings.loss)
    strength = strength if len(ways[best].table) > 1 else math.inf
    cells, place = cells_of(best)
    chosen = Chosen(ways[best].n_bins, cells, place, ways[best].table, score, strength)
    if not settings.average or chosen.strength == math.inf:
        return chosen
    averaged = [at for at, way in enumerate(ways) if bool(way.n_bins) == (cells is not None)]
    known = [(ways[at].n_bins, cells_of(at)[1], ways[at].table) for at in averaged]
    weighed = _averaged(known, [by_group[at] for at in averaged], settings.loss)
    chosen = chosen._replace(averaged=weighed)
    if cells is None:
        return chosen
    all_ends = [ways[at].ends for at in averaged]
    steps = np.linspace(0, all_ends[0][-1], _MOST_STEPS).astype(np.intp)
    ends = np.unique(np.concatenate([steps, *all_ends]))
    union = Reading(len(ends), ends, np.zeros((len(ends) + int(cells.has_missing), 0)))
    fine = Cells.from_reading(counted.name, values, union)
    n_rows = np.bincount(fine.of_values(values), rows_by_value(table), minlength=len(union.table))
    rank = (np.cumsum(n_rows) - n_rows / 2)[fine.of_values(counted.values)]
    return chosen._replace(fine=fine, rank=rank)


def _averaged(
    readings: list[tuple[int, np.ndarray, np.ndarray]], by_group: list[GroupTable | None], loss: str
) -> tuple[Way, ...]:
    """Readings, given as bins, places and tables, with every strength, weighed by their promise.

    A weight is in proportion to the likelihood of the rows (or groups, one by one) left out,
    ``exp(-n loss)``, for squared error ``loss^(-n/2)``.
    """
    tables = [table for _, _, table in readings]
    losses = np.stack([_by_strength(*each, loss) for each in zip(tables, by_group, strict=True)])
    n_units = float(rows_by_value(tables[0]).sum())
    if by_group[0] is not None:
        n_units = len(np.unique(by_group[0].group))
    if loss == "squared_error":
        losses = np.log(np.maximum(losses, 1e-300)) / 2
    weights = np.exp(-n_units * (losses - losses.min()))
    weights[weights < _NEGLIGIBLE * weights.max()] = 0.0
    weights /= weights.sum()
    return tuple(
        Way(*reading, weight)
        for reading, weight in zip(readings, weights, strict=True)
        if weight.any()
    )


def _by_strength(table: np.ndarray, by_group: GroupTable | None, loss: str) -> np.ndarray:
    """Left-out loss of a reading for every strength; with groups, of these."""
    if by_group is None:
        if loss == "squared_error":
            return mean_scores(*moment_sums(table)[:2])
        return strength_scores(loss, table)
    if loss == "squared_error":
        return np.array([estimate_mean_groups(by_group, strengths=[a]).score for a in STRENGTHS])
    return group_scores(loss, [by_group])[0]


def _best(
    tables: list[np.ndarray], by_group: list[GroupTable | None], loss: str
) -> tuple[int, float, float]:
    """Place of the best reading, its loss on rows, or groups, left out, and its strength."""
    is_numeric = loss == "squared_error"
    if by_group[0] is None and not is_numeric:
        return best_reading(loss, [(table, None) for table in tables])
    if is_numeric and tables[0][:, 0].sum() < 2:  # nothing is left without a row
        return 0, 0.0, math.inf
    scores = [_by_strength(*each, loss) for each in zip(tables, by_group, strict=True)]
    chosen = [least(row, 0.0) if is_numeric else least(row) for row in scores]
    losses = [float(row[k]) for row, k in zip(scores, chosen, strict=True)]
    best = clearly_least(losses)
    return best, losses[best], STRENGTHS[chosen[best]]


def no_column_loss(counted: Counted, loss: str) -> float:
    """Left-out loss without a column: that of an infinite strength, in any reading."""
    table, met = counted.without(-1)
    by_group = None if met is None else met.read(np.zeros(len(table), dtype=np.intp))
    return float(_by_strength(table[is_present(table)], by_group, loss)[-1])


# --- numbers out --------------------------------------------------------------------------------


def encode(table: np.ndarray, strength: float, output: str) -> np.ndarray:
    """Numbers of each cell, shape (n_cells + 1, n_outputs); the last row is for values not seen.

    Of two classes the second one's share is given, of more every class's.
    """
    table = np.concatenate([table, np.zeros((1, table.shape[1]), dtype=table.dtype)])
    if output == "mean":
        return shrunk_means(table, strength)[:, None]
    q = shares(table, table.sum(axis=0), strength)
    n_classes = q.shape[1]
    if output == "probability":
        return q[:, 1:] if n_classes == 2 else q
    if n_classes == 2:
        return np.log(q[:, 1:] / q[:, :1])
    # 1 - q as the sum of the other shares, which keeps the digits where q is near 1.
    return np.log(q / (q @ (1 - np.eye(n_classes))))


def encode_values(chosen: Chosen, output: str) -> np.ndarray:
    """Numbers of each value, shape (n_values + 1, n_outputs); the last row as in `encode`.

    An average over bins is linear between the middles of the bins, in ranks, and flat beyond the
    first and the last.
    """
    if not chosen.averaged:
        return encode(chosen.table, chosen.strength, output)[np.append(chosen.place, -1)]
    result = np.zeros(1)
    for n_bins, place, table, weights in chosen.averaged:
        used = np.flatnonzero(weights)
        numbers = np.sum([weights[k] * encode(table, STRENGTHS[k], output) for k in used], axis=0)
        of_values = numbers[np.append(place, -1)]
        if chosen.rank is not None:
            n_rows = rows_by_value(table)
            middle = (np.cumsum(n_rows) - n_rows / 2)[:n_bins]
            inside = np.flatnonzero((place >= 0) & (place < n_bins))
            for column, known in zip(of_values.T, numbers.T, strict=True):
                column[inside] = np.interp(chosen.rank[inside], middle, known[:n_bins])
        result = result + of_values
    return result


def encode_out_of_fold(counted: Counted, settings: Settings) -> np.ndarray:
    """Numbers of each value and fold, learned from the other folds, as rows of ``cell``.

    Returns
    -------
    ndarray of shape (n_values * n_folds, n_outputs)
    """
    by_fold = []
    for fold in range(counted.tables.shape[1]):
        chosen = choose(counted, fold, settings)
        by_fold.append(encode_values(chosen, settings.output)[:-1])
    return np.stack(by_fold, axis=1).reshape(-1, by_fold[0].shape[1])


class Encoding(NamedTuple):
    """How a column is encoded."""

    cells: Cells
    numbers: np.ndarray  # shape (n_cells + 1, n_outputs): the last row is for values not seen
    n_bins: int  # 0 where the column is read by value
    score: float
    strength: float
    # shape (n_cells,): of averages over bins, the cell of the best bins that each cell lies in
    coarse: np.ndarray | None = None

    @property
    def n_joined(self) -> int:
        """Cells of the column where it is joined with another."""
        return self.cells.n_cells if self.coarse is None else int(self.coarse.max()) + 1

    def joined(self, cell: np.ndarray) -> np.ndarray:
        """Cells of the column, -1 for values not seen, as cells of a half of a joint column."""
        return cell if self.coarse is None else np.append(self.coarse, -1)[cell]

    @property
    def is_useless(self) -> bool:
        """Whether every value gets the same number."""
        return math.isinf(self.strength)

    def to_bytes(self) -> bytes:
        """The encoding as bytes (Arrow IPC), of a column whose values have one type."""
        name, dtype, values, edges, n_cells = self.cells
        head = {"name": name, "n_cells": n_cells, "n_bins": int(self.n_bins)}
        head |= {"score": float(self.score).hex(), "strength": float(self.strength).hex()}
        arrays = {"values": pa.array([], dtype) if values is None else values}
        arrays |= {"numbers": self.numbers} | ({} if edges is None else {"edges": edges})
        arrays |= {} if self.coarse is None else {"coarse": self.coarse}
        return pack("Encoding", head, arrays)

    @classmethod
    def from_bytes(cls, data: bytes) -> Encoding:
        """Encoding written by `to_bytes`. Anything else is refused with a `ValueError`."""
        head, arrays = unpack("Encoding", data)
        with refuses_damaged("Encoding"):
            n_cells, n_bins = int(head["n_cells"]), int(head["n_bins"])
            score, strength = float.fromhex(head["score"]), float.fromhex(head["strength"])
            values, numbers, edges = arrays["values"], arrays["numbers"], arrays.get("edges")
            n_known = len(values) if edges is None else n_cells
            is_whole = numbers.ndim == 2 and len(numbers) == n_cells + 1 == n_known + 1
            if not is_whole or numbers.dtype.kind != "f" or (edges is None) != (n_bins == 0):
                raise ValueError
            coarse = arrays.get("coarse")
            if coarse is not None and (coarse.dtype.kind != "i" or coarse.shape != (n_cells,)):
                raise ValueError
            cells = Cells(head["name"], values.type, None if n_bins else values, edges, n_cells)
        return cls(cells, numbers, n_bins, score, strength, coarse)


def learn(counted: Counted, settings: Settings) -> tuple[Encoding, np.ndarray]:
    """Encoding of a column from all rows, and the cell of each of its values, as pairs have it."""
    chosen = choose(counted, -1, settings)
    cells = chosen.fine or chosen.cells
    if cells is None:
        values = filtered(counted.values, chosen.place >= 0)
        by_value = Reading(0, np.zeros(0, dtype=np.intp), chosen.table)
        cells = Cells.from_reading(counted.name, values, by_value)
    coarse = None
    if chosen.averaged:
        place = chosen.place if chosen.fine is None else cells.of_values(counted.values)
        cell, at = np.unique(place, return_index=True)
        at = at[cell >= 0]  # a value of each cell, whose numbers are the cell's
        numbers = encode_values(chosen, settings.output)[np.append(at, -1)]
        coarse = None if chosen.fine is None else chosen.place[at]
    else:
        numbers = encode(chosen.table, chosen.strength, settings.output)
    scored = (chosen.n_bins, chosen.score, chosen.strength)
    return Encoding(cells, numbers, *scored, coarse), chosen.place
