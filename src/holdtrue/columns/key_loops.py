"""Compiled loops that find equal keys and count them. Importing this module imports numba.

A hash only says where to look: whole keys are compared. A key is a row of ``n_words`` words. Loops
over one or two words are unrolled: their number is the length of a tuple, ``words``, and so known
when a loop is compiled. Wider keys have an empty tuple, and one compiled loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numba
import numpy as np

from holdtrue.columns.loops import compiled, room

# Rows of a part: its table of groups stays in the cache.
_PART = 1 << 15
_MAX_BITS = 12
_FEW_KEYS = 1 << 13  # that a table has room for at first: a small one stays in the cache
_SLOTS = 4  # for each key
# Rows whose keys are made at a time, and rows that are looked up at a time.
_BLOCK = 1 << 12
_ROWS = 1 << 8
_MIX = np.uint64(0x9E3779B97F4A7C15)
_MISSING = np.uint64(255 << 56)


def _words(n_words: int) -> tuple[int, ...]:
    return (0,) * n_words if n_words <= 2 else ()


@numba.njit(inline="always")
def _width(keys: Any, words: Any) -> Any:
    return len(words) if len(words) > 0 else keys.shape[1]


@numba.njit
def _mixed(mixed: Any, word: Any) -> Any:
    mixed = (mixed ^ word) * _MIX
    return mixed ^ (mixed >> np.uint64(29))


@numba.njit(inline="always")
def _row_hash(keys: Any, i: Any, n_words: Any) -> Any:
    mixed = np.uint64(0)
    for w in range(n_words):
        mixed = _mixed(mixed, keys[i, w])
    return mixed * _MIX


@numba.njit(inline="always")
def _same_key(seen: Any, at: Any, keys: Any, i: Any, n_words: Any) -> Any:
    same = True
    for w in range(n_words):
        same &= seen[at, w] == keys[i, w]
    return same


@compiled
def hash_texts(
    offsets: np.ndarray, text: np.ndarray, eights: np.ndarray, hashes: np.ndarray
) -> None:
    """Write a hash of each text, the same on every machine.

    Parameters
    ----------
    offsets, text, eights
        As in `text_keys`.
    hashes : ndarray of uint64, shape (n_rows,)
    """
    n_eights = np.uint64(len(eights))
    for i in range(len(hashes)):
        at, stop = np.uint64(offsets[i]), np.uint64(offsets[i + 1])
        mixed = (stop - at) * _MIX
        while at + np.uint64(8) <= stop:
            mixed = _mixed(mixed, eights[at])
            at += np.uint64(8)
        if at < stop:
            word, bits = np.uint64(0), np.uint64(8) * (stop - at)
            if at < n_eights:
                word = eights[at] & ((np.uint64(1) << bits) - np.uint64(1))
            else:
                for b in range(stop - at):
                    word |= np.uint64(text[at + b]) << (np.uint64(8) * b)
            mixed = _mixed(mixed, word)
        hashes[i] = (mixed ^ (mixed >> np.uint64(32))) * _MIX


@compiled
def find_hashes(
    hashes: np.ndarray, valid: np.ndarray, known: np.ndarray, stops: np.ndarray, places: np.ndarray
) -> None:
    """Write the place of each hash among known ones, -1 for other hashes and missing rows.

    Parameters
    ----------
    hashes : ndarray of uint64, shape (n_rows,)
    valid : ndarray of bool, shape (n_rows,) or (0,)
        Rows that are not missing; empty if none is.
    known : ndarray of uint64, shape (n_known,)
        In order.
    stops : ndarray of int64
        Known hashes up to each value of their first bits; a power of two.
    places : ndarray of int64, shape (n_rows,)
    """
    n_bits = 0
    while 1 << n_bits < len(stops):
        n_bits += 1
    shift = np.uint64(64 - n_bits)
    for i in range(len(hashes)):
        places[i] = -1
        if len(valid) > 0 and not valid[i]:
            continue
        bucket = hashes[i] >> shift
        for at in range(stops[bucket - np.uint64(1)] if bucket > 0 else 0, stops[bucket]):
            if known[at] == hashes[i]:
                places[i] = at


@compiled
def compare_texts(
    offsets: np.ndarray,
    text: np.ndarray,
    eights: np.ndarray,
    places: np.ndarray,
    first: np.ndarray,
    kept: np.ndarray,
    kept_eights: np.ndarray,
    n_kept: int,
    differs: np.ndarray,
) -> Any:
    """Keep the first text of each place, and mark places of another; the number of bytes kept.

    Parameters
    ----------
    offsets, text, eights
        As in `text_keys`.
    places : ndarray of int64, shape (n_rows,)
        From `find_hashes`.
    first : ndarray of int64, shape (n_places, 2)
        Where in ``kept`` the first text of each place begins and ends; -1 for none so far.
    kept : ndarray of uint8
        With room for all of the texts.
    kept_eights
        Of ``kept``, as ``eights`` of ``text``.
    n_kept : int
    differs : ndarray of bool, shape (n_places,)
    """
    for i in range(len(places)):
        place, at, stop = places[i], np.uint64(offsets[i]), np.uint64(offsets[i + 1])
        if place < 0:
            continue
        length = np.int64(stop - at)
        if first[place, 0] < 0:
            first[place, 0], first[place, 1] = n_kept, n_kept + length
            for b in range(length):
                kept[n_kept + b] = text[at + np.uint64(b)]
            n_kept += int(length)
        elif first[place, 1] - first[place, 0] != length:
            differs[place] = True
        else:
            other, to = np.uint64(0), np.uint64(first[place, 0])
            while at + np.uint64(8) <= stop:
                other |= eights[at] ^ kept_eights[to]
                at += np.uint64(8)
                to += np.uint64(8)
            while at < stop:
                other |= np.uint64(text[at] ^ kept[to])
                at += np.uint64(1)
                to += np.uint64(1)
            differs[place] |= other > 0
    return n_kept


@compiled
def text_keys(
    offsets: np.ndarray,
    text: np.ndarray,
    eights: np.ndarray,
    valid: np.ndarray,
    keys: np.ndarray,
    words: tuple[int, ...],
) -> None:
    """Write each text as a key, a row of 64-bit words; different texts have different keys.

    Zeros fill a key up. Its last byte is the length, which is far below 255: 255 is a missing text.

    Parameters
    ----------
    offsets : ndarray of int, shape (n_rows + 1,)
        Where in ``text`` each row begins.
    text : ndarray of uint8
    eights : ndarray of uint64, shape (max(len(text) - 7, 0),)
        The eight bytes from each place of ``text`` on.
    valid : ndarray of bool, shape (n_rows,) or (0,)
        Rows that are not missing; empty if none is.
    keys : ndarray of uint64, shape (n_rows, n_words)
        No text is longer than ``8 n_words - 1``.
    """
    n_words = _width(keys, words)
    last = n_words - 1
    for i in range(len(keys)):
        start, stop = offsets[i], offsets[i + 1]
        missing = len(valid) > 0 and not valid[i]
        for w in range(n_words):
            at = start + 8 * w
            left = 0 if missing else stop - at
            word = np.uint64(0)
            if left > 0:
                if at < len(eights):
                    word = eights[at]
                    if left < 8:
                        word &= (np.uint64(1) << np.uint64(8 * left)) - np.uint64(1)
                else:
                    for b in range(left):
                        word |= np.uint64(text[at + b]) << np.uint64(8 * b)
            keys[i, w] = word
        keys[i, last] |= _MISSING if missing else np.uint64(stop - start) << np.uint64(56)


@compiled
def add_sizes(keys: np.ndarray, n_bits: int, sizes: np.ndarray, words: tuple[int, ...]) -> None:
    """Add the keys, shape (n_rows, n_words), to the sizes of their parts, shape (2**n_bits,)."""
    n_words = _width(keys, words)
    for i in range(len(keys)):
        sizes[_row_hash(keys, i, n_words) >> np.uint64(64 - n_bits)] += 1


@compiled
def place_keys(
    keys: np.ndarray,
    first_row: int,
    n_bits: int,
    places: np.ndarray,
    placed: np.ndarray,
    rows: np.ndarray,
    words: tuple[int, ...],
) -> None:
    """Write each key, and the number of its row, to the next place of its part.

    Parameters
    ----------
    keys : ndarray of uint64, shape (n_rows, n_words)
        Of the rows from ``first_row`` on.
    first_row, n_bits : int
    places : ndarray of int64, shape (2**n_bits,)
        Next place of each part; moved on.
    placed : ndarray of uint64, shape (n_placed, n_words)
    rows : ndarray of uint32, shape (n_placed,)
    """
    n_words = _width(keys, words)
    for i in range(len(keys)):
        part = _row_hash(keys, i, n_words) >> np.uint64(64 - n_bits)
        to = places[part]
        places[part] = to + 1
        rows[to] = first_row + i
        for w in range(n_words):
            placed[to, w] = keys[i, w]


@compiled
def group_keys(
    keys: np.ndarray,
    rows: np.ndarray,
    stops: np.ndarray,
    codes: np.ndarray,
    first: np.ndarray,
    words: tuple[int, ...],
) -> Any:
    """Number of groups of equal keys, found part by part.

    Parameters
    ----------
    keys : ndarray of uint64, shape (n_rows, n_words)
        Equal keys lie in one part.
    rows
        As in `place_keys`.
    stops : ndarray of int64, shape (n_parts,)
    codes : ndarray of int32, shape (n_rows,)
        Written: group of each key; groups are numbered part by part.
    first : ndarray of uint32, shape (n_rows,)
        Written, up to the number of groups: the row of each group's first key.
    """
    table = np.empty(0, dtype=np.int32)
    n_words = _width(keys, words)
    n_groups, start = 0, 0
    for stop in stops:
        size = 16
        while size < 2 * (stop - start):
            size *= 2
        if size > len(table):
            table = np.empty(size, dtype=np.int32)
        table[:size] = -1
        for at in range(start, stop):
            slot = np.int64(_row_hash(keys, at, n_words) >> np.uint64(20)) & (size - 1)
            while True:
                seen = table[slot]
                if seen < 0:
                    table[slot] = at
                    codes[at] = n_groups
                    first[n_groups] = rows[at]
                    n_groups += 1
                    break
                if _same_key(keys, seen, keys, at, n_words):
                    codes[at] = codes[seen]
                    break
                slot = (slot + 1) & (size - 1)
        start = stop
    return n_groups


@compiled
def fill_slots(table: np.ndarray, n_words: int, n_seen: int, slots: np.ndarray) -> None:
    """Write to empty slots, 0 everywhere, where `code_keys` finds the keys of a table."""
    mask = np.uint64(len(slots) - 1)
    for at in range(1, n_seen):
        slot = (_row_hash(table, at, n_words) >> np.uint64(20)) & mask
        while slots[slot] > 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = at


@compiled
def code_keys(
    keys: np.ndarray,
    first_row: int,
    slots: np.ndarray,
    table: np.ndarray,
    first: np.ndarray,
    n_seen: int,
    codes: np.ndarray,
    words: tuple[int, ...],
) -> Any:
    """Rows of the table in use, and rows that have been coded, all if there was room.

    Rows are looked up some at a time: slots, then keys. The loads of the first step do not wait for
    one another. Indices are unsigned: NumPy's negative ones would cost a comparison each.

    Parameters
    ----------
    keys : ndarray of uint64, shape (n_rows, n_words)
        Of the rows from ``first_row`` on.
    first_row : int
    slots : ndarray of uint32
        From `fill_slots`; a power of two, more than there is room for.
    table : ndarray of uint64, shape (n_keys, n_words)
        A row for each key that there is room for; the first row is not used.
    first : ndarray of uint32, shape (n_keys,) or more
        The first row of each key.
    n_seen : int
        Rows of the table in use.
    codes : ndarray of int32, shape (n_rows,)
        Written: place of each key in the table, less 1.
    """
    n_words = _width(keys, words)
    mask, n_rows = np.uint64(len(slots) - 1), np.uint64(len(keys))
    hashed, places = np.empty(_ROWS, dtype=np.uint64), np.empty(_ROWS, dtype=np.uint32)
    for start in range(np.uint64(0), n_rows, np.uint64(_ROWS)):
        n = min(np.uint64(_ROWS), n_rows - start)
        for i in range(n):
            hashed[i] = (_row_hash(keys, start + i, n_words) >> np.uint64(20)) & mask
            places[i] = slots[hashed[i]]
        for i in range(n):
            at, row, slot = places[i], start + i, hashed[i]
            if at == 0 or not _same_key(table, at, keys, row, n_words):
                at = slots[slot]
                while at > 0 and not _same_key(table, at, keys, row, n_words):
                    slot = (slot + np.uint64(1)) & mask
                    at = slots[slot]
                if at == 0:
                    if n_seen == len(table):
                        return n_seen, np.int64(row)
                    at = np.uint32(n_seen)
                    slots[slot] = at
                    for w in range(n_words):
                        table[at, w] = keys[row, w]
                    first[at] = first_row + row
                    n_seen += 1
            codes[row] = np.int32(at) - 1
    return n_seen, np.int64(n_rows)


class Coded(NamedTuple):
    """Distinct keys, in the order of their first rows, and the place of each row's key."""

    codes: np.ndarray  # shape (n_rows,)
    first: np.ndarray  # shape (n_keys,): the first row of each
    keys: np.ndarray  # shape (n_keys, n_words)


def codes_in_one_pass(blocks: Iterable[np.ndarray], n_words: int, n_rows: int) -> Coded:
    """Codes of the rows by their keys, which come in blocks, each of shape (n, n_words)."""
    table, first = room(_FEW_KEYS, n_words, np.uint64), room(n_rows + 1, 1, np.uint32)[:, 0]
    slots = np.zeros(_SLOTS * _FEW_KEYS, dtype=np.uint32)
    codes = room(n_rows, 1, np.int32)[:, 0]
    n_seen, start = 1, 0
    for keys in blocks:
        n_done = 0
        while n_done < len(keys):
            if n_seen == len(table):
                seen, table = table, room(4 * n_seen, n_words, np.uint64)
                table[:n_seen] = seen
                slots = np.zeros(_SLOTS * len(table), dtype=np.uint32)
                fill_slots(table, n_words, n_seen, slots)
            at = start + n_done
            n_seen, n_more = code_keys(
                keys[n_done:], at, slots, table, first, n_seen, codes[at:], _words(n_words)
            )
            n_done += n_more
        start += len(keys)
    return Coded(codes, first[1:n_seen].copy(), table[1:n_seen])


class Groups(NamedTuple):
    """Rows by their key, in an order that keeps equal keys near one another."""

    rows: np.ndarray  # shape (n_rows,): a permutation of all rows; rows of one group ascend
    codes: np.ndarray  # shape (n_rows,): group of each of ``rows``
    first: np.ndarray  # shape (n_groups,): the first row of each group


def grouped(blocks: Callable[[], Iterable[np.ndarray]], n_words: int, n_rows: int) -> Groups:
    """Groups of equal keys, of which most have few rows.

    Rows are distributed over parts by a hash of their key, so that a part's hash table stays in the
    cache.

    Parameters
    ----------
    blocks : callable
        Gives the keys as in `codes_in_one_pass`; called twice.
    n_words, n_rows : int
    """
    n_bits = min(max(n_rows // _PART, 1).bit_length(), _MAX_BITS)
    sizes, words = np.zeros(1 << n_bits, dtype=np.int64), _words(n_words)
    for block in blocks():
        add_sizes(block, n_bits, sizes, words)
    stops = np.cumsum(sizes)
    places = stops - sizes
    rows, placed = room(n_rows, 1, np.uint32)[:, 0], room(n_rows, n_words, np.uint64)
    start = 0
    for block in blocks():
        place_keys(block, start, n_bits, places, placed, rows, words)
        start += len(block)
    codes, first = room(n_rows, 1, np.int32)[:, 0], room(n_rows, 1, np.uint32)[:, 0]
    n_groups = group_keys(placed, rows, stops, codes, first, words)
    return Groups(rows, codes, first[:n_groups].copy())


def words_of(text: np.ndarray) -> np.ndarray:
    """The eight bytes that start at each byte, as integers; a view, nothing is copied."""
    return np.ndarray(max(len(text) - 7, 0), dtype="<u8", buffer=text.data, strides=1)


def text_blocks(
    pieces: list[tuple[np.ndarray, np.ndarray, np.ndarray]], n_words: int
) -> Iterator[np.ndarray]:
    """Keys of texts, block by block; a block of them is overwritten by the next.

    Parameters
    ----------
    pieces : list of (offsets, text, valid), as in `text_keys`
    n_words : int
    """
    keys = np.empty((_BLOCK, n_words), dtype=np.uint64)
    for offsets, text, valid in pieces:
        eights = words_of(text)
        for start in range(0, len(offsets) - 1, _BLOCK):
            ends = offsets[start : start + _BLOCK + 1]
            mask = valid[start : start + _BLOCK]
            text_keys(ends, text, eights, mask, keys[: len(ends) - 1], _words(n_words))
            yield keys[: len(ends) - 1]
