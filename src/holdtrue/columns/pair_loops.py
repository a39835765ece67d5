"""Compiled loops over pairs of value and group. Importing this module imports numba.

Codes and counts of pairs are int32: each row of a table is in one pair only.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from holdtrue.columns.loops import compiled, room

# Cells of a table of all values, groups and classes that is counted directly, for each row.
_CELLS_PER_ROW = 2


@compiled
def add_cells(codes: np.ndarray, group: np.ndarray, label: np.ndarray, cells: np.ndarray) -> None:
    """Add rows to the cells of their value, group and class.

    Parameters
    ----------
    codes, group, label : ndarray of int, shape (n_rows,)
    cells : ndarray of int32, shape (n_values, n_classes, n_groups)
    """
    for i in range(len(codes)):
        cells[np.uint64(codes[i]), np.uint64(label[i]), np.uint64(group[i])] += 1


@compiled
def add_pairs(
    joined: np.ndarray, value: np.ndarray, group: np.ndarray, counts: np.ndarray, cells: np.ndarray
) -> None:
    """Add pairs to the cells of their joined value and group; parameters as in `join_pairs`."""
    for i in range(len(value)):
        v, g = np.uint64(joined[value[i]]), np.uint64(group[i])
        n_rows, first = 0, 0
        for k in range(counts.shape[1]):
            n_rows += counts[i, k]
            first += k * counts[i, k]
        if n_rows == 1:
            cells[v, np.uint64(first), g] += 1
            continue
        for k in range(counts.shape[1]):
            cells[v, k, g] += counts[i, k]


@compiled
def add_cells_of(joined: np.ndarray, finer: np.ndarray, cells: np.ndarray) -> None:
    """Add the cells of values to those of their joined value."""
    for v in range(len(finer)):
        into = cells[joined[v]]
        for k in range(finer.shape[1]):
            for g in range(finer.shape[2]):
                into[k, g] += finer[v, k, g]


@compiled
def take_cells(cells: np.ndarray, pairs: np.ndarray, counts: np.ndarray) -> Any:
    """Number of pairs with rows; they are written as by `count_sorted`, with room for one more."""
    n_values, n_classes, n_groups = cells.shape
    n_pairs = 0
    for v in range(n_values):
        for g in range(n_groups):
            # Written even if nobody has both, and then overwritten: a branch would be slower.
            pairs[0, n_pairs], pairs[1, n_pairs] = v, g
            met = 0
            for k in range(n_classes):
                counts[n_pairs, k] = cells[v, k, g]
                met |= cells[v, k, g]
            n_pairs += met > 0
    return n_pairs


@compiled
def pack_rows(
    codes: np.ndarray,
    group: np.ndarray,
    label: np.ndarray,
    group_bits: int,
    label_bits: int,
    keys: np.ndarray,
) -> None:
    """Write value, group and class of each row as one number that sorts by them in turn.

    Parameters
    ----------
    codes, group, label : ndarray of int, shape (n_rows,)
    group_bits, label_bits : int
        Of a group, and of a class.
    keys : ndarray of int32 or int64, shape (n_rows,)
    """
    for i in range(len(codes)):
        pair = (np.int64(codes[i]) << group_bits) | np.int64(group[i])
        keys[i] = (pair << label_bits) | np.int64(label[i])


@compiled
def count_sorted(
    keys: np.ndarray, group_bits: int, label_bits: int, pairs: np.ndarray, counts: np.ndarray
) -> Any:
    """Number of pairs of value and group; the pairs and their class counts are written.

    Parameters
    ----------
    keys, group_bits, label_bits
        From `pack_rows`, the keys sorted.
    pairs : ndarray of int32, shape (2, n_rows)
    counts : ndarray of int32, shape (n_rows, n_classes)
        All 0; overwritten.
    """
    in_group, in_label = (1 << group_bits) - 1, (1 << label_bits) - 1
    n_pairs, latest = 0, np.int64(-1)
    for i in range(len(keys)):
        # A pair is written again for each of its rows: a branch would be slower.
        pair = np.int64(keys[i]) >> label_bits
        n_pairs += pair != latest
        latest, at = pair, np.uint64(n_pairs - 1)
        pairs[0, at], pairs[1, at] = pair >> group_bits, pair & in_group
        counts[at, np.uint64(keys[i] & in_label)] += 1
    return n_pairs


@compiled
def join_pairs(
    joined: np.ndarray,
    value: np.ndarray,
    group: np.ndarray,
    counts: np.ndarray,
    latest: np.ndarray,
    joined_pairs: np.ndarray,
    joined_counts: np.ndarray,
) -> Any:
    """Number of pairs once values are joined; those pairs and their counts are written.

    Parameters
    ----------
    joined : ndarray of int64, shape (n_values,)
        What each value becomes, rising.
    value, group : ndarray of int32, shape (n_pairs,)
        In the order of the values.
    counts : ndarray of int32, shape (n_pairs, n_classes)
    latest : ndarray of int32, shape (n_groups,)
        -1 everywhere; overwritten.
    joined_pairs, joined_counts
        As in `count_sorted`.
    """
    n_pairs, first, current = 0, 0, -1
    for i in range(len(value)):
        v, g = joined[value[i]], group[i]
        if v != current:
            first, current = n_pairs, v
        pair = latest[g]
        if pair < first:
            pair = n_pairs
            latest[g] = pair
            joined_pairs[0, pair], joined_pairs[1, pair] = v, g
            for k in range(counts.shape[1]):
                joined_counts[pair, k] = 0
            n_pairs += 1
        for k in range(counts.shape[1]):
            joined_counts[pair, k] += counts[i, k]
    return n_pairs


@compiled
def add_totals(
    codes: np.ndarray, counts: np.ndarray, sums: np.ndarray, n_pairs: np.ndarray
) -> None:
    """Add the counts of pairs to those of their value or group, and count its pairs.

    Parameters
    ----------
    codes : ndarray of int32, shape (n_pairs,)
    counts : ndarray of int32, shape (n_pairs, n_classes)
    sums : ndarray of float64, shape (n_codes, n_classes)
    n_pairs : ndarray of int64, shape (n_codes,)
    """
    for i in range(len(codes)):
        code = np.uint64(codes[i])
        n_pairs[code] += 1
        for k in range(counts.shape[1]):
            sums[code, k] += counts[i, k]


def sums_of_pairs(codes: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Counts by value or by group, and its number of pairs; parameters as in `add_totals`."""
    n_codes = int(codes.max()) + 1
    sums, n_pairs = room(n_codes, counts.shape[1], np.float64), room(n_codes, 1, np.int64)[:, 0]
    sums.fill(0)
    n_pairs.fill(0)
    add_totals(codes, counts, sums, n_pairs)
    return sums, n_pairs


def pair_counts(
    codes: np.ndarray, group: np.ndarray, label: np.ndarray, sizes: tuple[int, int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of value and group that occur, in the order of the values, and their class counts.

    Parameters
    ----------
    codes, group, label : ndarray of int, shape (n_rows,)
    sizes : (n_values, n_groups, n_classes)

    Returns
    -------
    pairs : ndarray of int32, shape (2, n_pairs)
    counts : ndarray of int32, shape (n_pairs, n_classes)
    """
    n_values, n_groups, n_classes = sizes
    codes, group = (array.astype(np.int32, copy=False) for array in (codes, group))
    if n_values * n_groups * n_classes <= _CELLS_PER_ROW * len(codes):
        cells = _no_rows(n_values, n_classes, n_groups)
        add_cells(codes, group, label, cells)
        return pairs_of_cells(cells)
    group_bits, label_bits = (n_groups - 1).bit_length(), (n_classes - 1).bit_length()
    pairs, counts = room(2, len(codes), np.int32), room(len(codes), n_classes, np.int32)
    is_short = (n_values - 1).bit_length() + group_bits + label_bits <= 31
    keys = room(len(codes), 1, np.int32 if is_short else np.int64)[:, 0]
    pack_rows(codes, group, label, group_bits, label_bits, keys)
    keys.sort()  # faster than a place for each row by its value, which is at random
    counts.fill(0)
    n_pairs = count_sorted(keys, group_bits, label_bits, pairs, counts)
    return pairs[:, :n_pairs], counts[:n_pairs]


def joined_counts(
    joined: np.ndarray, value: np.ndarray, group: np.ndarray, counts: np.ndarray, n_groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """`pair_counts` for joined values; parameters as in `join_pairs`."""
    pairs, into = room(2, len(value), np.int32), room(len(value), counts.shape[1], np.int32)
    latest = np.full(n_groups, -1, dtype=np.int32)
    n_pairs = join_pairs(joined, value, group, counts, latest, pairs, into)
    return pairs[:, :n_pairs], into[:n_pairs]


def joined_cells(
    joined: np.ndarray, value: np.ndarray, group: np.ndarray, counts: np.ndarray, n_groups: int
) -> np.ndarray | None:
    """Counts by joined value, class and group; None where too few of them have rows.

    Parameters as in `join_pairs`.
    """
    sizes = int(joined.max()) + 1, counts.shape[1], n_groups
    if math.prod(sizes) > _CELLS_PER_ROW * len(value):
        return None
    cells = _no_rows(*sizes)
    add_pairs(joined, value, group, counts, cells)
    return cells


def coarser_cells(joined: np.ndarray, finer: np.ndarray) -> np.ndarray:
    """Cells of joined values from those of values."""
    cells = _no_rows(int(joined.max()) + 1, *finer.shape[1:])
    add_cells_of(joined, finer, cells)
    return cells


def _no_rows(n_values: int, n_classes: int, n_groups: int) -> np.ndarray:
    """Cells of all values, classes and groups, all 0."""
    cells = room(n_values, n_classes * n_groups, np.int32)
    cells.fill(0)
    return cells.reshape(n_values, n_classes, n_groups)


def pairs_of_cells(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pairs with rows, in the order of the values, and their class counts."""
    n_values, n_classes, n_groups = cells.shape
    n_most = n_values * n_groups + 1
    pairs, counts = room(2, n_most, np.int32), room(n_most, n_classes, np.int32)
    n_pairs = take_cells(cells, pairs, counts)
    return pairs[:, :n_pairs], counts[:n_pairs]
