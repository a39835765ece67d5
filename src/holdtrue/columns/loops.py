"""Compiled loops that count codes and numbers. Importing this module imports numba."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numba
import numpy as np
import pyarrow as pa

from holdtrue.columns.values import code_counts


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, compiled at its first call and cached on disk where a folder is writable.

    Columns are counted by several threads at once: the functions run without Python's lock.
    """
    try:
        return numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:
        # What numba raises if neither the package's folder nor the user's cache is writable.
        return numba.njit(function, nogil=True)


def room(n_rows: int, n_columns: int, dtype: type) -> np.ndarray:
    """Array of arbitrary content, in memory from Arrow's pool.

    A large NumPy array is new memory each time, which the system takes as long to provide as the
    loops take to fill it.
    """
    n_bytes = n_rows * n_columns * np.dtype(dtype).itemsize
    return np.ndarray((n_rows, n_columns), dtype, buffer=pa.allocate_buffer(n_bytes))


@compiled
def add_counts(
    codes: np.ndarray,
    valid: np.ndarray,
    low: int,
    label: np.ndarray,
    counts: np.ndarray,
    missing: np.ndarray,
) -> None:
    """Add rows to the counts of their value and class; parameters as in `count_codes`."""
    cells = counts.reshape(-1)
    width = np.uint64(counts.shape[1])
    for i in range(len(codes)):
        y = np.uint64(label[i])
        if len(valid) > 0 and not valid[i]:
            missing[y] += 1
        else:
            cells[np.uint64(codes[i] - low) * width + y] += 1


def count_codes(
    pieces: Iterable[tuple[np.ndarray, np.ndarray]],
    low: int,
    n_values: int,
    label: np.ndarray,
    n_classes: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Rows by value and class, shape (n_values, n_classes), and missing rows by class.

    Parameters
    ----------
    pieces : iterable of (codes, valid)
        The rows one after the other: whole numbers from ``low`` to ``low + n_values - 1``, and a
        mask of those that are not missing, empty if none is.
    low, n_values : int
    label : ndarray of int, shape (n_rows,)
    n_classes : int
    """
    counts, missing = room(n_values, n_classes, np.int64), np.zeros(n_classes, dtype=np.int64)
    counts.fill(0)
    start = 0
    for codes, valid in pieces:
        add_counts(codes, valid, low, label[start : start + len(codes)], counts, missing)
        start += len(codes)
    return counts, missing


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
def count_small_rows(
    counts: np.ndarray, n_bits: int, times: np.ndarray, is_large: np.ndarray
) -> None:
    """Add rows of small counts to the times of their key; the others are marked.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_values, n_classes)
    n_bits : int
        Counts below ``2**n_bits`` are small; each takes ``n_bits`` bits of the key.
    times : ndarray of int64, shape (2**(n_bits n_classes),)
    is_large : ndarray of bool, shape (n_values,)
    """
    for i in range(len(counts)):
        key, bits = 0, 0
        for k in range(counts.shape[1]):
            bits |= counts[i, k]
            key |= counts[i, k] << (k * n_bits)
        is_large[i] = bits >> n_bits > 0
        if not is_large[i]:
            times[key] += 1


@compiled
def merge_counts(
    numbers: np.ndarray,
    starts: np.ndarray,
    stops: np.ndarray,
    values: np.ndarray,
    counts: np.ndarray,
) -> Any:
    """Number of distinct numbers, which are written in order with their counts by class.

    Parameters
    ----------
    numbers : ndarray of shape (n_numbers,)
        Class after class, in order within each.
    starts, stops : ndarray of int64, shape (n_classes,)
        Where the numbers of each class lie.
    values : ndarray of shape (n_rows,)
    counts : ndarray of int64, shape (n_rows, n_classes)
    """
    n_rows = len(values)
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
    return n_values


def sorted_counts(
    pieces: Iterable[tuple[np.ndarray, np.ndarray]],
    dtype: Any,
    label: np.ndarray,
    n_classes: int,
    max_rows: int | None = None,
) -> tuple[np.ndarray, Iterator[tuple[np.ndarray, np.ndarray]]]:
    """Missing rows by class, and distinct numbers in order with their rows by class, in parts.

    Numbers are sorted class by class: no row needs a code.

    Parameters
    ----------
    pieces : iterable of (numbers, valid), as in `place_by_class`
        The rows one after the other.
    dtype : dtype of the numbers
    label : ndarray of int, shape (n_rows,)
    n_classes : int
    max_rows : int, optional
        About how many rows a part counts; by default there is one part.
    """
    sizes = code_counts(label, n_classes)
    starts = np.cumsum(sizes) - sizes
    stops, missing = starts.copy(), np.zeros(n_classes, dtype=np.int64)
    placed = room(len(label), 1, dtype)[:, 0]
    first = 0
    for numbers, valid in pieces:
        labels = label[first : first + len(numbers)]
        place_by_class(numbers, valid, labels, stops, placed, missing)
        first += len(numbers)
    by_class = [placed[start:stop] for start, stop in zip(starts, stops, strict=True)]
    for numbers in by_class:
        numbers.sort()

    def parts() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        cuts = np.zeros(0, dtype=dtype)
        if max_rows is not None:
            step = max(max_rows // n_classes, 1)
            cuts = np.unique(np.concatenate([numbers[step::step] for numbers in by_class]))
        ends = [np.append(np.searchsorted(n, cuts, side="right"), len(n)) for n in by_class]
        start = starts
        for stop in starts + np.stack(ends, axis=1):
            n_rows = int((stop - start).sum())
            values = room(n_rows, 1, dtype)[:, 0]
            counts = room(n_rows, n_classes, np.int64)
            n_values = merge_counts(placed, start, stop, values, counts)
            yield values[:n_values], counts[:n_values]
            start = stop

    return missing[None][: int(missing.any())], parts()
