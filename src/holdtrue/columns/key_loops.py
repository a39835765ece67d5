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
# Room for distinct keys that are counted in one table, at first, and for words of keys at most; a
# small table stays in the cache. Most rows of other keys.
_FEW_KEYS, _MAX_WORDS = 1 << 13, 1 << 17
_SLOTS = 4  # for each key
_MAX_LEFT = 1 << 23
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
    label: np.ndarray,
    label_bits: int,
    first_row: int,
    n_bits: int,
    places: np.ndarray,
    placed: np.ndarray,
    rows: np.ndarray,
    words: tuple[int, ...],
) -> None:
    """Write each key, and its row number with its class, to the next place of its part.

    Parameters
    ----------
    keys : ndarray of uint64, shape (n_rows, n_words)
        Of the rows from ``first_row`` on.
    label : ndarray of int, shape (n_rows,) or (0,)
        Their classes; empty where rows are not counted.
    label_bits, first_row, n_bits : int
    places : ndarray of int64, shape (2**n_bits,)
        Next place of each part; moved on.
    placed : ndarray of uint64, shape (n_placed, n_words)
    rows : ndarray of uint32 or uint64, shape (n_placed,)
        The last ``label_bits`` bits are the class.
    """
    n_words = _width(keys, words)
    for i in range(len(keys)):
        part = _row_hash(keys, i, n_words) >> np.uint64(64 - n_bits)
        to = places[part]
        places[part] = to + 1
        rows[to] = (first_row + i) << label_bits
        if len(label) > 0:
            rows[to] |= label[i]
        for w in range(n_words):
            placed[to, w] = keys[i, w]


@compiled
def group_keys(
    keys: np.ndarray,
    rows: np.ndarray,
    label_bits: int,
    stops: np.ndarray,
    codes: np.ndarray,
    first: np.ndarray,
    counts: np.ndarray,
    words: tuple[int, ...],
) -> Any:
    """Number of groups of equal keys, found part by part.

    Parameters
    ----------
    keys : ndarray of uint64, shape (n_rows, n_words)
        Equal keys lie in one part.
    rows, label_bits
        As in `place_keys`.
    stops : ndarray of int64, shape (n_parts,)
    codes : ndarray of int32, shape (n_rows,)
        Written: group of each key; groups are numbered part by part.
    first : ndarray of uint32, shape (n_rows,)
        Written, up to the number of groups: the row of each group's first key.
    counts : ndarray of int64, shape (n_rows, n_classes)
        Written likewise: rows of each group by class, if there are any.
    """
    n_classes = counts.shape[1]
    in_label = (1 << label_bits) - 1
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
                    first[n_groups] = np.int64(rows[at]) >> label_bits
                    for k in range(n_classes):
                        counts[n_groups, k] = 0
                    n_groups += 1
                    break
                if _same_key(keys, seen, keys, at, n_words):
                    codes[at] = codes[seen]
                    break
                slot = (slot + 1) & (size - 1)
            if n_classes > 0:
                counts[np.uint64(codes[at]), np.uint64(np.int64(rows[at]) & in_label)] += 1
        start = stop
    return n_groups


@compiled
def fill_slots(table: np.ndarray, n_words: int, n_seen: int, slots: np.ndarray) -> None:
    """Write to empty slots, 0 everywhere, where `count_keys` finds the keys of a table."""
    mask = np.uint64(len(slots) - 1)
    for at in range(1, n_seen):
        slot = (_row_hash(table, at, n_words) >> np.uint64(20)) & mask
        while slots[slot] > 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = at


@compiled
def count_keys(
    keys: np.ndarray,
    valid: np.ndarray,
    label: np.ndarray,
    first_row: int,
    slots: np.ndarray,
    table: np.ndarray,
    first: np.ndarray,
    n_seen: int,
    left: np.ndarray,
    left_rows: np.ndarray,
    n_left: int,
    words: tuple[int, ...],
) -> Any:
    """Count the keys; rows whose key finds no room in the table are left for later.

    Rows are looked up some at a time: slots, then keys, then counts. Only the last step branches,
    so the loads of the others do not wait for one another. A key and its counts lie in one line of
    the cache. Indices are unsigned: NumPy's negative ones would cost a comparison each.

    Parameters
    ----------
    keys : ndarray of uint64, shape (n_rows, n_words)
        Of the rows from ``first_row`` on.
    valid : ndarray of bool, shape (n_rows,) or (0,)
        Rows that are not missing; empty if none is.
    label : ndarray of int, shape (n_rows,)
    first_row : int
    slots : ndarray of uint32
        From `fill_slots`; a power of two, more than there is room for.
    table : ndarray of uint64, shape (n_keys, n_words + n_classes)
        A row for each key that there is room for: the key, and its rows by class. The first row
        counts missing rows.
    first : ndarray of uint32, shape (n_keys,) or more
        The first row of each key.
    n_seen : int
        Rows of the table in use.
    left, left_rows : ndarray of uint64, shape (n, n_words), and of uint32, shape (n,)
        Keys that are left over, and their rows; none for them: the first such key ends the loop.
    n_left : int

    Returns
    -------
    n_seen, n_left, n_done : int
        Rows of the table in use, keys left over, and rows that have been looked at.
    """
    n_words = _width(keys, words)
    mask, n_rows = np.uint64(len(slots) - 1), np.uint64(len(keys))
    hashed, places = np.empty(_ROWS, dtype=np.uint64), np.empty(_ROWS, dtype=np.uint32)
    is_seen = np.empty(_ROWS, dtype=np.bool_)
    for start in range(np.uint64(0), n_rows, np.uint64(_ROWS)):
        n = min(np.uint64(_ROWS), n_rows - start)
        for i in range(n):
            hashed[i] = (_row_hash(keys, start + i, n_words) >> np.uint64(20)) & mask
            places[i] = slots[hashed[i]]
        for i in range(n):
            at = places[i]
            is_seen[i] = (at > 0) & _same_key(table, at, keys, start + i, n_words)
        if len(valid) > 0:
            for i in range(n):
                places[i] *= valid[start + i]
                is_seen[i] |= not valid[start + i]
        for i in range(n):
            at, row = places[i], start + i
            if not is_seen[i]:
                slot = hashed[i]
                at = slots[slot]
                while at > 0 and not _same_key(table, at, keys, row, n_words):
                    slot = (slot + np.uint64(1)) & mask
                    at = slots[slot]
                if at == 0 and n_seen == len(table):
                    if n_left == len(left):
                        return n_seen, n_left, np.int64(row)
                    for w in range(n_words):
                        left[n_left, w] = keys[row, w]
                    left_rows[n_left] = first_row + row
                    n_left += 1
                    continue
                if at == 0:
                    at = np.uint32(n_seen)
                    slots[slot] = at
                    table[at] = 0
                    for w in range(n_words):
                        table[at, w] = keys[row, w]
                    first[at] = first_row + row
                    n_seen += 1
            table[at, np.uint64(n_words) + np.uint64(label[row])] += np.uint64(1)
    return n_seen, n_left, np.int64(n_rows)


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

    Rows are looked up as in `count_keys`, which has the other parameters; a missing text is a key.

    Parameters
    ----------
    table : ndarray of uint64, shape (n_keys, n_words)
        The first row is not used.
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


def codes_in_one_pass(
    blocks: Iterator[tuple[np.ndarray, np.ndarray]], n_words: int, n_rows: int
) -> tuple[np.ndarray, np.ndarray]:
    """Code of each row, and the first row of each code, which rise.

    Parameters
    ----------
    blocks : iterator of (keys, valid), as in `text_blocks`
    n_words, n_rows : int
    """
    table, first = room(_FEW_KEYS, n_words, np.uint64), room(n_rows + 1, 1, np.uint32)[:, 0]
    slots = np.zeros(_SLOTS * _FEW_KEYS, dtype=np.uint32)
    codes = np.empty(n_rows, dtype=np.int32)
    n_seen, start = 1, 0
    for keys, _ in blocks:
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
    return codes, first[1:n_seen].copy()


class KeyCounts(NamedTuple):
    """Distinct keys in any order."""

    keys: np.ndarray  # shape (n_keys, n_words)
    first: np.ndarray  # shape (n_keys,): the first row of each
    counts: np.ndarray  # shape (n_keys, n_classes)
    missing: np.ndarray  # shape (0, n_classes) or (1, n_classes)


def count_keys_in_one_pass(
    blocks: Iterator[tuple[np.ndarray, np.ndarray]],
    n_words: int,
    label: np.ndarray,
    n_classes: int,
) -> KeyCounts | None:
    """Rows by key and class; None where there are too many different keys.

    The first keys, among which are the frequent ones, are counted in a table that stays in the
    cache. Rows of other keys are left over, and then counted by parts.

    Parameters
    ----------
    blocks : iterator of (keys, valid), as in `count_keys`
    n_words : int
    label : ndarray of int, shape (n_rows,)
    n_classes : int
    """
    most, n_seen, n_left, start = _FEW_KEYS, 1, 0, 0
    n_room = max(_MAX_WORDS // n_words, most)
    table = room(n_room, n_words + n_classes, np.uint64)
    table[0] = 0
    first = room(n_room, 1, np.uint32)[:, 0]
    words = _words(n_words)
    slots = np.zeros(_SLOTS * most, dtype=np.uint32)
    left, left_rows = room(0, n_words, np.uint64), room(0, 1, np.uint32)[:, 0]
    for keys, valid in blocks:
        done = 0
        while True:
            n_seen, n_left, n_done = count_keys(
                keys[done:], valid[done:], label[start + done : start + len(keys)], start + done,
                slots, table[:most], first, n_seen, left, left_rows, n_left, words,
            )  # fmt: skip
            done += n_done
            if done == len(keys):
                break
            if most < len(table):
                most = min(4 * most, len(table))
                slots = np.zeros(_SLOTS << (most - 1).bit_length(), dtype=np.uint32)
                fill_slots(table, n_words, n_seen, slots)
            elif len(left):
                return None
            else:
                n_room = min(len(label) - start, _MAX_LEFT)
                left, left_rows = room(n_room, n_words, np.uint64), room(n_room, 1, np.uint32)[:, 0]
        start += len(keys)
    seen, first = table[1:n_seen, :n_words], first[1:n_seen]
    missing, counts = np.split(table[:n_seen, n_words:].astype(np.int64), [1])
    if n_left:
        left, left_rows = left[:n_left], left_rows[:n_left]
        rest = grouped(lambda: [(left, valid)], n_left, n_words, label.take(left_rows), n_classes)
        seen = np.concatenate([seen, left.take(rest.first, axis=0)])
        first = np.concatenate([first, left_rows.take(rest.first)])
        counts = np.concatenate([counts, rest.counts])
    return KeyCounts(seen, first, counts, missing[: int(missing.any())])


class Groups(NamedTuple):
    """Rows by their value, in an order that keeps equal values near one another."""

    # shape (n_rows,): of all rows a permutation; rows of one group ascend. With the class in the
    # last bits where rows are counted.
    rows: np.ndarray
    codes: np.ndarray  # shape (n_rows,): group of each of ``rows``
    first: np.ndarray  # shape (n_groups,): the first row of each group
    counts: np.ndarray  # shape (n_groups, n_classes): rows by class, where they are counted


def grouped(
    blocks: Callable[[], Iterable[tuple[np.ndarray, Any]]],
    n_rows: int,
    n_words: int,
    label: np.ndarray | None = None,
    n_classes: int = 0,
) -> Groups:
    """Groups of equal keys, and their rows by class.

    Rows are distributed over parts by a hash of their key, so that a part's hash table stays in the
    cache.

    Parameters
    ----------
    blocks : callable
        Gives the keys block by block, each of shape (n, n_words), with something beside them;
        called twice.
    n_rows, n_words : int
    label : ndarray of int, shape (n_rows,), optional
        By default rows are not counted.
    n_classes : int
    """
    n_bits = min(max(n_rows // _PART, 1).bit_length(), _MAX_BITS)
    sizes, words = np.zeros(1 << n_bits, dtype=np.int64), _words(n_words)
    for block, _ in blocks():
        add_sizes(block, n_bits, sizes, words)
    stops = np.cumsum(sizes)
    places = stops - sizes
    label = np.zeros(0, dtype=np.uint8) if label is None else label
    label_bits = max(n_classes - 1, 0).bit_length()
    fits_32 = n_rows << label_bits <= 1 << 32
    rows = room(n_rows, 1, np.uint32 if fits_32 else np.uint64)[:, 0]
    placed = room(n_rows, n_words, np.uint64)
    start = 0
    for block, _ in blocks():
        some = label[start : start + len(block)]
        place_keys(block, some, label_bits, start, n_bits, places, placed, rows, words)
        start += len(block)
    codes, first = room(n_rows, 1, np.int32)[:, 0], room(n_rows, 1, np.uint32)[:, 0]
    counts = room(n_rows, n_classes, np.int64)
    n_groups = group_keys(placed, rows, label_bits, stops, codes, first, counts, words)
    return Groups(rows, codes, first[:n_groups].copy(), counts[:n_groups])


def words_of(text: np.ndarray) -> np.ndarray:
    """The eight bytes that start at each byte, as integers; a view, nothing is copied."""
    return np.ndarray(max(len(text) - 7, 0), dtype="<u8", buffer=text.data, strides=1)


def text_blocks(
    pieces: list[tuple[np.ndarray, np.ndarray, np.ndarray]], n_words: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Keys and masks of texts, as in `count_keys`; a block of them is overwritten by the next.

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
            yield keys[: len(ends) - 1], mask
