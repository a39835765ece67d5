"""Compiled loops that find equal rows and count them. Importing this module imports numba.

Nothing is taken for equal by its hash: a hash says where to look, and whole keys are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numba
import numpy as np
import pyarrow as pa

# Longest text, in bytes, that a key of whole words holds; a UUID has 36.
MAX_TEXT = 39

# Rows of a part: its table of groups stays in the cache.
_PART = 1 << 13
_MAX_BITS = 12
# Room for distinct keys that are counted in one table, at first and at most: a small table stays in
# the cache.
_FEW_KEYS, _MAX_KEYS = 1 << 13, 1 << 20
# Rows whose keys are made at a time.
_BLOCK = 1 << 12
_MIX = np.uint64(0x9E3779B97F4A7C15)
_MISSING = np.uint64(255 << 56)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled at its first call and kept on disk where a folder can be written."""
    try:
        return numba.njit(cache=True)(function)
    except RuntimeError:
        # numba's word for: neither the package's folder nor the user's cache is writable.
        return numba.njit(function)


def room(n_rows: int, n_columns: int, dtype: type) -> np.ndarray:
    """Array that holds anything, in memory that Arrow keeps when it is freed.

    A large array of NumPy's is new memory each time, which takes the system as long to give as the
    loops take to fill it.
    """
    n_bytes = n_rows * n_columns * np.dtype(dtype).itemsize
    return np.ndarray((n_rows, n_columns), dtype, buffer=pa.allocate_buffer(n_bytes))


@numba.njit
def _mixed(mixed: Any, word: Any) -> Any:
    mixed = (mixed ^ word) * _MIX
    return mixed ^ (mixed >> np.uint64(29))


@compiled
def text_keys(
    offsets: np.ndarray, text: np.ndarray, words: np.ndarray, valid: np.ndarray, keys: np.ndarray
) -> None:
    """Write each text as a key, a row of 64-bit words; different texts have different keys.

    Zeros fill a key up. Its last byte is the length, which is far below 255: 255 is a missing text.

    Parameters
    ----------
    offsets : ndarray of int, shape (n_rows + 1,)
        Where in ``text`` each row begins.
    text : ndarray of uint8
    words : ndarray of uint64, shape (max(len(text) - 7, 0),)
        The eight bytes from each place of ``text`` on.
    valid : ndarray of bool, shape (n_rows,) or (0,)
        Rows that are not missing; empty if none is.
    keys : ndarray of uint64, shape (n_rows, n_words)
        No text is longer than ``8 n_words - 1``.
    """
    last = keys.shape[1] - 1
    for i in range(len(keys)):
        start, stop = offsets[i], offsets[i + 1]
        missing = len(valid) > 0 and not valid[i]
        for w in range(keys.shape[1]):
            at = start + 8 * w
            left = 0 if missing else stop - at
            word = np.uint64(0)
            if left > 0:
                if at < len(words):
                    word = words[at]
                    if left < 8:
                        word &= (np.uint64(1) << np.uint64(8 * left)) - np.uint64(1)
                else:
                    for b in range(left):
                        word |= np.uint64(text[at + b]) << np.uint64(8 * b)
            keys[i, w] = word
        keys[i, last] |= _MISSING if missing else np.uint64(stop - start) << np.uint64(56)


@compiled
def add_sizes(keys: np.ndarray, n_bits: int, sizes: np.ndarray) -> None:
    """Add the keys, shape (n_rows, n_words), to the sizes of their parts, shape (2**n_bits,)."""
    for i in range(len(keys)):
        mixed = np.uint64(0)
        for w in range(keys.shape[1]):
            mixed = _mixed(mixed, keys[i, w])
        sizes[(mixed * _MIX) >> np.uint64(64 - n_bits)] += 1


@compiled
def place_keys(
    keys: np.ndarray,
    first_row: int,
    n_bits: int,
    first_part: int,
    places: np.ndarray,
    placed: np.ndarray,
    rows: np.ndarray,
) -> None:
    """Write each key and its row number to the next place of its part.

    Keys of parts before ``first_part``, and after those that have places, are passed over.

    Parameters
    ----------
    keys : ndarray of uint64, shape (n_rows, n_words)
        Of the rows from ``first_row`` on.
    first_row, n_bits, first_part : int
    places : ndarray of int64, shape (n_parts,)
        Next place of each part from the first on; moved on.
    placed : ndarray of uint64, shape (n_placed, n_words)
    rows : ndarray of uint32, shape (n_placed,)
    """
    for i in range(len(keys)):
        mixed = np.uint64(0)
        for w in range(keys.shape[1]):
            mixed = _mixed(mixed, keys[i, w])
        part = np.int64((mixed * _MIX) >> np.uint64(64 - n_bits)) - first_part
        if part < 0 or part >= len(places):
            continue
        to = places[part]
        places[part] = to + 1
        rows[to] = first_row + i
        for w in range(keys.shape[1]):
            placed[to, w] = keys[i, w]


@compiled
def group_keys(
    keys: np.ndarray, rows: np.ndarray, stops: np.ndarray, codes: np.ndarray, first: np.ndarray
) -> Any:
    """Number of groups of equal keys, found part by part.

    Parameters
    ----------
    keys : ndarray of uint64, shape (n_rows, n_words)
        Equal keys lie in one part.
    rows : ndarray of uint32, shape (n_rows,)
    stops : ndarray of int64, shape (n_parts,)
    codes : ndarray of int32, shape (n_rows,)
        Written: group of each key; groups are numbered part by part.
    first : ndarray of uint32, shape (n_rows,)
        Written, up to the number of groups: the row of each group's first key.
    """
    table = np.empty(0, dtype=np.int32)
    n_groups, start = 0, 0
    for stop in stops:
        size = 16
        while size < 2 * (stop - start):
            size *= 2
        if size > len(table):
            table = np.empty(size, dtype=np.int32)
        table[:size] = -1
        for at in range(start, stop):
            mixed = np.uint64(0)
            for w in range(keys.shape[1]):
                mixed = _mixed(mixed, keys[at, w])
            slot = np.int64((mixed * _MIX) >> np.uint64(20)) & (size - 1)
            while True:
                seen = table[slot]
                if seen < 0:
                    table[slot] = at
                    codes[at] = n_groups
                    first[n_groups] = rows[at]
                    n_groups += 1
                    break
                same = True
                for w in range(keys.shape[1]):
                    same &= keys[seen, w] == keys[at, w]
                if same:
                    codes[at] = codes[seen]
                    break
                slot = (slot + 1) & (size - 1)
        start = stop
    return n_groups


@compiled
def add_counts(codes: np.ndarray, label: np.ndarray, counts: np.ndarray) -> None:
    """Add rows to the counts of their value and class, shape (n_values, n_classes)."""
    cells = counts.reshape(-1)
    width = np.uint64(counts.shape[1])
    for i in range(len(codes)):
        cells[np.uint64(codes[i]) * width + np.uint64(label[i])] += 1


def class_counts(codes: np.ndarray, label: np.ndarray, n_values: int, n_classes: int) -> np.ndarray:
    """Rows by value and class, shape (n_values, n_classes).

    Parameters
    ----------
    codes, label : ndarray of int, shape (n_rows,)
    n_values, n_classes : int
    """
    counts = room(n_values, n_classes, np.int64)
    counts.fill(0)
    add_counts(codes, label, counts)
    return counts


@compiled
def slots_of(found: np.ndarray, n_found: int, n_slots: int) -> Any:
    """Table of places that `count_keys` finds its keys by, for the first n_found of them."""
    slots = np.full(n_slots, -1, dtype=np.int32)
    mask = np.uint64(n_slots - 1)
    for at in range(n_found):
        mixed = np.uint64(0)
        for w in range(found.shape[1]):
            mixed = _mixed(mixed, found[at, w])
        slot = ((mixed * _MIX) >> np.uint64(20)) & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = at
    return slots


@compiled
def count_keys(
    keys: np.ndarray,
    valid: np.ndarray,
    label: np.ndarray,
    first_row: int,
    slots: np.ndarray,
    found: np.ndarray,
    first: np.ndarray,
    counts: np.ndarray,
    n_found: int,
    missing: np.ndarray,
) -> Any:
    """Add the keys to the counts of those found before, as long as there is room.

    Parameters
    ----------
    keys : ndarray of uint64, shape (n_rows, n_words)
        Of the rows from ``first_row`` on.
    valid : ndarray of bool, shape (n_rows,) or (0,)
        Rows that are not missing; empty if none is.
    label : ndarray of int, shape (n_rows,)
    first_row : int
    slots : ndarray of int32
        From `slots_of`; a power of two, more than there is room for.
    found, first, counts : ndarray with a row per key that there is room for
        The keys, the row of the first of each, and their rows by class.
    n_found : int
    missing : ndarray of int64, shape (n_classes,)
        Missing rows by class, which are added.

    Returns
    -------
    n_found, n_done : int
        Keys found now, and rows that have been counted.
    """
    mask = np.uint64(len(slots) - 1)
    for i in range(len(keys)):
        y = np.uint64(label[i])
        if len(valid) > 0 and not valid[i]:
            missing[y] += 1
            continue
        mixed = np.uint64(0)
        for w in range(keys.shape[1]):
            mixed = _mixed(mixed, keys[i, w])
        slot = ((mixed * _MIX) >> np.uint64(20)) & mask
        while True:
            at = slots[slot]
            if at < 0:
                if n_found == len(found):
                    return n_found, i
                slots[slot] = n_found
                at = n_found
                for w in range(keys.shape[1]):
                    found[at, w] = keys[i, w]
                first[at] = first_row + i
                counts[at] = 0
                n_found += 1
                break
            same = True
            for w in range(keys.shape[1]):
                same &= found[at, w] == keys[i, w]
            if same:
                break
            slot = (slot + np.uint64(1)) & mask
        counts[at, y] += 1
    return n_found, len(keys)


@compiled
def place_by_class(
    numbers: np.ndarray,
    valid: np.ndarray,
    label: np.ndarray,
    places: np.ndarray,
    placed: np.ndarray,
    missing: np.ndarray,
) -> None:
    """Write each number to the next place of its class.

    Parameters
    ----------
    numbers : ndarray of shape (n_rows,)
    valid : ndarray of bool, shape (n_rows,) or (0,)
        Rows that are not missing; empty if none is.
    label : ndarray of int, shape (n_rows,)
    places : ndarray of int64, shape (n_classes,)
        Next place of each class; moved on.
    placed : ndarray of shape (n_all_rows,)
    missing : ndarray of int64, shape (n_classes,)
        Missing rows by class, which are added.
    """
    for i in range(len(numbers)):
        y = np.uint64(label[i])
        if len(valid) > 0 and not valid[i]:
            missing[y] += 1
        else:
            placed[places[y]] = numbers[i]
            places[y] += 1


@compiled
def merge_counts(numbers: np.ndarray, starts: np.ndarray, stops: np.ndarray) -> Any:
    """Distinct numbers in order, and how often each occurs in each class.

    Parameters
    ----------
    numbers : ndarray of shape (n_numbers,)
        Class after class, in order within each.
    starts, stops : ndarray of int64, shape (n_classes,)
        Where the numbers of each class lie.
    """
    n_rows = (stops - starts).sum()
    values = np.empty(n_rows, dtype=numbers.dtype)
    counts = np.empty((n_rows, len(stops)), dtype=np.int64)
    at = starts.copy()
    n_values, n_done = 0, 0
    least = numbers[0]
    while n_done < n_rows:
        none = True
        for k in range(len(stops)):
            if at[k] < stops[k] and (none or numbers[at[k]] < least):
                least = numbers[at[k]]
                none = False
        values[n_values] = least
        for k in range(len(stops)):
            start = at[k]
            while at[k] < stops[k] and numbers[at[k]] == least:
                at[k] += 1
            counts[n_values, k] = at[k] - start
            n_done += at[k] - start
        n_values += 1
    return values[:n_values], counts[:n_values]


class KeyCounts(NamedTuple):
    """Distinct keys in the order of their first rows.

    Attributes
    ----------
    keys : ndarray of uint64, shape (n_keys, n_words)
    first : ndarray of uint32, shape (n_keys,)
        The first row of each.
    counts : ndarray of int64, shape (n_keys, n_classes)
    missing : ndarray of int64, shape (n_classes,)
    """

    keys: np.ndarray
    first: np.ndarray
    counts: np.ndarray
    missing: np.ndarray


def counted_keys(
    blocks: Iterator[tuple[np.ndarray, np.ndarray]],
    n_words: int,
    label: np.ndarray,
    n_classes: int,
) -> KeyCounts | None:
    """Rows by key and class in one pass; None where there are too many different keys.

    For keys of which most come back: those seen often lie together at the beginning.

    Parameters
    ----------
    blocks : iterator of (keys, valid), as in `count_keys`
    n_words : int
    label : ndarray of int, shape (n_rows,)
    n_classes : int
    """
    found, first = room(_MAX_KEYS, n_words, np.uint64), room(_MAX_KEYS, 1, np.uint32)[:, 0]
    counts = room(_MAX_KEYS, n_classes, np.int64)
    missing = np.zeros(n_classes, dtype=np.int64)
    most, n_found, start = _FEW_KEYS, 0, 0
    slots = slots_of(found, 0, 2 * most)
    for keys, valid in blocks:
        done = 0
        while True:
            n_found, n_done = count_keys(
                keys[done:], valid[done:], label[start + done : start + len(keys)], start + done,
                slots, found[:most], first, counts, n_found, missing,
            )  # fmt: skip
            done += n_done
            if done == len(keys):
                break
            if most == _MAX_KEYS:
                return None
            most = min(4 * most, _MAX_KEYS)
            slots = slots_of(found, n_found, 2 * most)
        start += len(keys)
    return KeyCounts(found[:n_found], first[:n_found], counts[:n_found], missing)


def sorted_counts(
    pieces: list[tuple[np.ndarray, np.ndarray]], label: np.ndarray, n_classes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct numbers in order, their rows by class, and the missing rows by class.

    Numbers are sorted class by class: they are their own keys, and no row needs a place.

    Parameters
    ----------
    pieces : list of (numbers, valid), as in `place_by_class`
    label : ndarray of int, shape (n_rows,)
    n_classes : int
    """
    sizes = np.bincount(label, minlength=n_classes)
    starts = np.cumsum(sizes) - sizes
    places, missing = starts.copy(), np.zeros(n_classes, dtype=np.int64)
    placed = np.empty(len(label), dtype=pieces[0][0].dtype)
    first = 0
    for numbers, valid in pieces:
        own = label[first : first + len(numbers)]
        place_by_class(numbers, valid, own, places, placed, missing)
        first += len(numbers)
    for start, stop in zip(starts, places, strict=True):
        placed[start:stop].sort()
    return *merge_counts(placed, starts, places), missing


class Groups(NamedTuple):
    """Rows by their value, in an order that keeps equal values near one another.

    Attributes
    ----------
    rows : ndarray of uint32, shape (n_rows,)
        Of all rows a permutation; rows of one group ascend.
    codes : ndarray of int32, shape (n_rows,)
        Group of each of ``rows``.
    first : ndarray of uint32, shape (n_groups,)
        The first row of each group.
    """

    rows: np.ndarray
    codes: np.ndarray
    first: np.ndarray


def grouped(
    keys: Callable[[], Iterator[np.ndarray]], n_rows: int, n_words: int, max_rows: int
) -> Iterator[Groups]:
    """Groups of equal keys, of about so many rows at a time; equal keys come at one time.

    Rows are parted by a hash of their key, so that the table of a part's groups stays in the cache.

    Parameters
    ----------
    keys : callable
        Gives the keys block by block, each of shape (n, n_words); called once, and once more for
        every time.
    n_rows, n_words, max_rows : int
    """
    n_bits = min(max(n_rows // _PART, 1).bit_length(), _MAX_BITS)
    sizes = np.zeros(1 << n_bits, dtype=np.int64)
    for block in keys():
        add_sizes(block, n_bits, sizes)
    turns = (np.cumsum(sizes) - 1) // max_rows
    for turn in np.unique(turns[sizes > 0]):
        own = np.flatnonzero((turns == turn) & (sizes > 0))
        first, last = int(own[0]), int(own[-1]) + 1
        stops = np.cumsum(sizes[first:last])
        places = stops - sizes[first:last]
        n_placed = int(stops[-1])
        placed, rows = room(n_placed, n_words, np.uint64), room(n_placed, 1, np.uint32)[:, 0]
        start = 0
        for block in keys():
            place_keys(block, start, n_bits, first, places, placed, rows)
            start += len(block)
        codes, seen = room(n_placed, 1, np.int32)[:, 0], room(n_placed, 1, np.uint32)[:, 0]
        n_groups = group_keys(placed, rows, stops, codes, seen)
        found = Groups(rows, codes, seen[:n_groups].copy())
        del placed, rows, codes, seen  # before the next are made
        yield found
        del found


def text_blocks(
    pieces: list[tuple[np.ndarray, np.ndarray, np.ndarray]], n_words: int
) -> Iterator[np.ndarray]:
    """Keys of texts, block by block; a block is overwritten by the next.

    Parameters
    ----------
    pieces : list of (offsets, text, valid), as in `text_keys`
    n_words : int
    """
    keys = np.empty((_BLOCK, n_words), dtype=np.uint64)
    for offsets, text, valid in pieces:
        # Eight bytes from every place on.
        words = np.ndarray(max(len(text) - 7, 0), dtype="<u8", buffer=text.data, strides=1)
        for start in range(0, len(offsets) - 1, _BLOCK):
            own = slice(start, start + _BLOCK)
            ends = offsets[start : start + _BLOCK + 1]
            text_keys(ends, text, words, valid[own], keys[: len(ends) - 1])
            yield keys[: len(ends) - 1]
