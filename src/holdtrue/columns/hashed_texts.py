"""Counting texts that mostly differ, with only a hash of each row in memory.

Texts of different hashes differ: a text whose hash no other row has occurs once. The other rows are
read again, and each text is compared with the first of its hash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from holdtrue.columns.bins import MOST_VALUES, row_sums
from holdtrue.columns.counting import Target, count_by_code, within
from holdtrue.columns.distinct import text_buffers, text_hashes
from holdtrue.columns.values import code_counts, filtered, valid_mask
from holdtrue.errors import InputError

# Hashes that are sorted at a time, values of a part, and bytes of repeated texts in memory.
RANGE = 1 << 25
PART = 1 << 20
TEXT_BYTES = 1 << 29

Batches = Callable[[], Iterable[Any]]


def hashed_counts(
    name: str, batches: Batches, n_bytes: float, target: Target
) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
    """Texts, their class counts, and class counts of missing rows, in parts.

    Texts are None in parts of texts that occur once, if enough others are known to be shown.

    Parameters
    ----------
    name : str
        The column, for the messages.
    batches : callable
        Gives its texts, Arrow arrays, batch by batch; called several times.
    n_bytes : float
        About how many bytes a text has.
    target : Target
        Classes, without weights.
    """
    n_classes = len(target.classes or ())
    known, table, once = _repeated(batches, target)
    missing = code_counts(target.codes, n_classes) - once - table.sum(axis=0)
    none = missing[None][:0]
    yield None, none, missing[None][: int(missing.any())]
    n_turns = min(int(np.ceil(len(known) * n_bytes / TEXT_BYTES)), len(known))
    ends = [turn * len(known) // n_turns for turn in range(1, n_turns + 1)]
    for start, stop in pairwise([0, *ends]):
        some, counts = known[start:stop], table[start:stop]
        values, places, differ = _first_texts(batches, some, n_bytes)
        yield values, counts[places], none
        if len(differ):
            column, rows = _texts_of(batches, differ)
            yield *count_by_code(name, column, target.at(rows)), none
        del values
    one_row = np.eye(n_classes, dtype=np.int64)
    if len(known) < MOST_VALUES:
        values, rows = _others(batches, known)
        shown = one_row[target.codes[rows]]
        once -= shown.sum(axis=0)
        yield values, shown, none
    for row, n_once in zip(one_row, once.tolist(), strict=True):
        for start in range(0, n_once, PART):
            yield None, np.tile(row, (min(PART, n_once - start), 1)), none


def _repeated(batches: Batches, target: Target) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Hashes of several rows in order, their class counts, and rows of other hashes by class."""
    from holdtrue.columns.loops import sorted_counts

    n_classes = len(target.classes or ())
    known, tables = [], []
    once = np.zeros(n_classes, dtype=np.int64)
    n_turns = -(-len(target.codes) // RANGE)
    ends = [np.uint64((turn << 64) // n_turns) for turn in range(1, n_turns)]
    for low, high in pairwise([None, *ends, None]):
        pieces = (within(low, high, text_hashes(texts), valid_mask(texts)) for texts in batches())
        _, parts = sorted_counts(pieces, np.uint64, target.codes, n_classes, PART)
        for hashes, table in parts:
            again = row_sums(table) > 1
            known.append(hashes[again])
            tables.append(table[again])
            once += [np.count_nonzero(~again & (counts > 0)) for counts in table.T]
        del parts  # free the memory before the next range
    return np.concatenate(known), np.concatenate(tables), once


def _first_texts(
    batches: Batches, known: np.ndarray, n_bytes: float
) -> tuple[Any, np.ndarray, np.ndarray]:
    """Texts of hashes that all of their rows share, their places, and hashes of several texts.

    Parameters
    ----------
    batches, n_bytes
        As in `hashed_counts`.
    known : ndarray of uint64, shape (n_known,)
        Hashes in order.
    """
    from holdtrue.columns.key_loops import compare_texts, find_hashes, words_of

    n_bits = len(known).bit_length()
    buckets = known >> np.uint64(64 - n_bits)
    stops = np.searchsorted(buckets, np.arange(1 << n_bits, dtype=np.uint64), side="right")
    first, differs = np.full((len(known), 2), -1), np.zeros(len(known), dtype=bool)
    kept, n_kept = np.empty(int(1.1 * n_bytes * len(known)), dtype=np.uint8), 0
    kind: Any = None
    for texts in batches():
        offsets, bytes_, valid = text_buffers(texts)
        places = np.empty(len(texts), dtype=np.int64)
        find_hashes(text_hashes(texts), valid, known, stops, places)
        n_room = n_kept + int(offsets[-1] - offsets[0])
        if n_room > len(kept):
            kept = np.append(kept[:n_kept], np.empty(n_room, dtype=np.uint8))
        n_kept = compare_texts(
            offsets, bytes_, words_of(bytes_), places, first, kept, words_of(kept), n_kept, differs
        )
        kind = texts.type
    if (first < 0).any():
        raise InputError("the table changed while it was read. Wait until it is written.")
    order = np.argsort(first.sum(axis=1))  # an empty text begins where the next one does
    starts = np.append(first[order, 0], n_kept)
    kind = pa.large_binary() if pa.types.is_binary(kind) else pa.large_string()
    buffers = [None, pa.py_buffer(starts), pa.py_buffer(kept)]
    values = pa.Array.from_buffers(kind, len(order), buffers)
    is_one = ~differs[order]
    if not is_one.all():
        values, order = filtered(values, is_one), order[is_one]
    return values, order, known[differs]


def _texts_of(batches: Batches, hashes: np.ndarray) -> tuple[Any, np.ndarray]:
    """All texts of some hashes, and their rows."""
    pieces, rows, start = [], [], 0
    for texts in batches():
        chosen = np.isin(text_hashes(texts), hashes)
        if texts.null_count:
            chosen &= valid_mask(texts)
        pieces.append(filtered(texts, chosen))
        rows.append(start + np.flatnonzero(chosen))
        start += len(texts)
    return pa.chunked_array(pieces), np.concatenate(rows)


def _others(batches: Batches, hashes: np.ndarray) -> tuple[Any, np.ndarray]:
    """A few texts with hashes other than those given, and their rows."""
    pieces, rows, start, n_left = [], [], 0, MOST_VALUES
    for texts in batches():
        chosen = ~np.isin(text_hashes(texts), hashes)
        if texts.null_count:
            chosen &= valid_mask(texts)
        some = np.flatnonzero(chosen)[:n_left]
        pieces.append(texts.take(pa.array(some)))
        rows.append(start + some)
        start += len(texts)
        n_left -= len(some)
        if not n_left:
            break
    return pa.chunked_array(pieces), np.concatenate(rows)
