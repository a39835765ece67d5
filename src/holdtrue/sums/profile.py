"""Profile: what the score of one column depends on, however many values it has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Any, NamedTuple

import numpy as np

from holdtrue.columns.bins import (
    N_MOMENTS,
    BinCounter,
    Outline,
    Part,
    holds_moments,
    row_sums,
    sum_between,
)
from holdtrue.columns.counting import loops_pay
from holdtrue.columns.values import KINDS, ORDERED
from holdtrue.errors import InputError, speaks
from holdtrue.sums.packing import labels_from_json, labels_to_json, pack, refuses_damaged, unpack

__all__ = ["Profile"]

_BLOCK = 1 << 16
# Bits of a key by which rows of small counts are counted.
_KEY_BITS = 16
# Width of a row for a numeric target: the number of rows c of a value, and sums over the values
# with that c, with b the value's mean minus the center and M2 to M4 its moments about its mean:
# Σ b, b², b³, b⁴, M2, M2 b, M2 b², M3, M3 b, M4.
N_SUMS = 11
C, B, B2, B3, B4, M2, M2B, M2B2, M3, M3B, M4 = range(N_SUMS)


class ProfileTable(NamedTuple):
    """A column in one reading: rows of its values or bins, and how many have each."""

    n_bins: int  # 0 where the column is read by value
    rows: np.ndarray  # shape (n_rows, width): as in `Profile`, the missing value included
    repeats: np.ndarray  # shape (n_rows,)

    @property
    def rows_once(self) -> float:
        """Rows of the sample whose value no other row has."""
        sizes = self.rows[:, C] if holds_moments(self.rows) else row_sums(self.rows)
        return float(self.repeats[sizes == 1].sum())


class Seen(NamedTuple):
    """How often the values of a column recur."""

    # n_rows, n_units: rows; rows or groups that can be left out
    n_rows: float
    n_units: float
    # n_values, n_once: distinct values, and those that occur once, or in one group only
    n_values: int
    n_once: int
    rows_once: float  # rows with such a value


@dataclass(frozen=True, eq=False)
class Profile:
    """Distinct rows of class counts of a column, with the number of values that have each.

    Every criterion depends on a column only through its profile, and a profile is small: an id of
    five million values, each seen once, has one row per class. Profiles of parts that share no
    value add, such as the parts of a table that is distributed by a hash of the column.

    With a numeric target a row stands for all values with the same number of rows, and holds the
    sums over them that the score and its standard error need.

    Build them with `Counts.profiles`.

    Parameters
    ----------
    kind : str
        How the column's values are read: ``"category"``, ``"integer"``, ``"number"`` (dates too),
        or ``"empty"``.
    classes : tuple or None
        The classes in order; None with a numeric target.
    rows : ndarray of int64, shape (n_rows, n_classes), or of float64, shape (n_rows, 11)
        Of values that are not missing.
    repeats : ndarray of int64, shape (n_rows,)
        Number of values that have each row.
    missing : ndarray of shape (0, width) or (1, width)
        Class counts of the missing value, or its count, mean and second to fourth moment.
    bins : tuple of ndarray of shape (n_bins, width)
        Class counts or moments of the bins, for every number of bins that is tried.
    center : float
        What the means of values are measured from, with a numeric target.
    outline : Outline, optional
        What shows the column's values. It is not written as bytes, and not added.

    Examples
    --------
    >>> import numpy as np
    >>> from holdtrue import Counts
    >>> X = np.array([["a"], ["b"], ["c"], ["d"], ["d"]], dtype=object)
    >>> profile = Counts.from_arrays(X, [0, 1, 1, 0, 1]).profiles()["x0"]
    >>> profile.rows.tolist(), profile.repeats.tolist()
    ([[1, 0], [0, 1], [1, 1]], [1, 2, 1])
    """

    kind: str
    classes: tuple[Any, ...] | None
    rows: np.ndarray
    repeats: np.ndarray
    missing: np.ndarray
    bins: tuple[np.ndarray, ...] = ()
    center: float = 0.0
    outline: Outline | None = None

    @speaks
    def __post_init__(self) -> None:
        is_numeric = self.classes is None
        width = N_MOMENTS if self.classes is None else len(self.classes)
        dtype = np.dtype(np.float64 if is_numeric else np.int64)
        if self.kind not in KINDS:
            raise InputError(f"kind must be one of {', '.join(KINDS)}. Got {self.kind!r}.")
        tables = {"rows": self.rows, "missing": self.missing}
        tables |= {f"bins[{i}]": table for i, table in enumerate(self.bins)}
        for name, table in tables.items():
            wanted = N_SUMS if is_numeric and name == "rows" else width
            if table.ndim != 2 or table.shape[1] != wanted or table.dtype != dtype:
                raise InputError(
                    f"{name} must have shape (n, {wanted}) and type {dtype}. "
                    f"Got {table.shape} and {table.dtype}."
                )
            if not np.isfinite(table).all() or (table[:, : 1 if is_numeric else None] < 0).any():
                raise InputError(f"counts must be finite and not negative. Got others in {name}.")
        if self.repeats.shape != (len(self.rows),) or self.repeats.dtype != np.int64:
            raise InputError(f"repeats must hold {len(self.rows)} whole numbers, one per row.")
        if (self.repeats < 1).any() or len(self.missing) > 1:
            raise InputError("every row must stand for some value, and missing is one value.")

    @classmethod
    def from_parts(
        cls,
        kind: str,
        parts: Iterable[Part],
        n_rows: float,
        classes: tuple[Any, ...] | None,
        max_bins: int = 64,
        *,
        keep_values: bool = False,
    ) -> Profile:
        """Profile of a column from its table, in one part or in several.

        Parameters
        ----------
        kind : str
        parts : iterable of Part
            Where the column has bins, values in order, and the missing value in the first part.
        n_rows : float
            Rows of all parts together, missing ones included.
        classes : tuple or None
        max_bins : int
        keep_values : bool
            Whether to make an outline of the values; the parts must have theirs.
        """
        width = N_MOMENTS if classes is None else len(classes)
        missing = np.zeros((0, width), dtype=np.float64 if classes is None else np.int64)
        counter: BinCounter | None = None
        sums: list[_Sums] = []
        outline = Outline(kind) if keep_values else None
        parts = iter(parts)
        while (part := next(parts, None)) is not None:
            if len(part.missing):
                missing = part.missing
            ends = None
            if kind in ORDERED:
                n_missing = float(missing[:, :1].sum() if classes is None else missing.sum())
                counter = counter or BinCounter(n_rows - n_missing, max_bins)
                ends = counter.add(part.table)
            if outline is not None:
                outline.add(part, ends)
            sums.append(_summed(part.table, classes))
            del part  # free the memory before the next part
        rows, repeats, center = _added(sums)
        readings = counter.bins() if counter else []
        if outline is not None:
            outline.bins, outline.missing = readings, missing
        bins = tuple(table for _, table in readings)
        return cls(kind, classes, rows, repeats, missing, bins, center or 0.0, outline)

    @property
    def n_samples(self) -> int:
        """Number of rows counted; with weights, their sum."""
        missing = self.missing[:, :1] if self.classes is None else self.missing
        return int(self.repeats @ self.rows_by_value) + int(missing.sum())

    @property
    def n_values(self) -> int:
        """Number of distinct values, missing included."""
        return int(self.repeats.sum()) + len(self.missing)

    @cached_property
    def rows_by_value(self) -> np.ndarray:
        """Rows of the sample that a value of each row of the profile has."""
        return self.rows[:, C] if self.classes is None else self.rows.sum(axis=1)

    def read(self, *, with_missing: bool = True) -> tuple[Seen, list[ProfileTable]]:
        """How often raw values recur, and the ways to read the column.

        Rows of a numeric target are centered at the mean of the rows counted.

        Parameters
        ----------
        with_missing : bool
            Whether missing is a value; otherwise its rows are left out.
        """
        missing = self.missing if with_missing else self.missing[:0]
        n_missing = missing[:, 0] if self.classes is None else missing.sum(axis=1)
        sizes = np.append(self.rows_by_value, n_missing)
        repeats = np.append(self.repeats, np.ones(len(missing), dtype=np.int64))
        n_rows, n_once = float(repeats @ sizes), int(repeats[sizes == 1].sum())
        seen = Seen(n_rows, n_rows, int(repeats.sum()), n_once, float(n_once))
        ways = []
        if self.kind != "number" or not self.bins:
            values = self._sums
            if len(missing):
                values = _added([values, _summed(missing, self.classes)])
            ways.append(ProfileTable(0, values.about_mean(), values.repeats))
        for table in self.bins:
            rows = np.concatenate([table, missing]) if len(missing) else table
            if self.classes is None:
                c, terms, _ = _moment_terms(rows)
                rows = np.stack([c, *terms], axis=1)
            ways.append(ProfileTable(len(table), rows, np.ones(len(rows), dtype=np.int64)))
        return seen, ways

    def outline_of(self, reading: int) -> Outline | None:
        """Outline of the values in one of the readings; None where values were not kept."""
        return self.outline

    @property
    def _sums(self) -> _Sums:
        return _Sums(self.rows, self.repeats, self.center if self.classes is None else None)

    @speaks
    def __add__(self, other: Profile) -> Profile:
        if not isinstance(other, Profile):
            return NotImplemented
        if (self.kind, self.classes) != (other.kind, other.classes):
            raise InputError("profiles of columns of different kinds or classes do not add.")
        if self.bins or other.bins:
            raise InputError(
                "profiles with bins do not add, because the bins of a sum end elsewhere. Add parts "
                "without bins."
            )
        missing = np.concatenate([self.missing, other.missing])
        if len(missing):
            missing = sum_between(missing, np.array([len(missing) - 1]))
        rows, repeats, center = _added([self._sums, other._sums])
        return Profile(self.kind, self.classes, rows, repeats, missing, center=center or 0.0)

    def __radd__(self, other: int) -> Profile:
        return self if other == 0 else NotImplemented  # sum() starts with 0

    @speaks
    def to_bytes(self) -> bytes:
        """The profile as bytes (Arrow IPC); `from_bytes` gives back an equal one."""
        classes = None if self.classes is None else labels_to_json(self.classes)
        head = {
            "columns": self.kind,
            "classes": classes,
            "n_bins": len(self.bins),
            "center": self.center.hex(),
        }
        arrays = {"rows": self.rows, "repeats": self.repeats, "missing": self.missing}
        arrays |= {f"bins{i}": table for i, table in enumerate(self.bins)}
        return pack("Profile", head, arrays)

    @classmethod
    @speaks
    def from_bytes(cls, data: bytes) -> Profile:
        """Profile written by `to_bytes`. Anything else is refused with a `ValueError`."""
        head, arrays = unpack("Profile", data)
        with refuses_damaged("Profile"):
            classes = head["classes"]
            return cls(
                head["columns"],
                None if classes is None else tuple(labels_from_json(classes)),
                arrays["rows"],
                arrays["repeats"],
                arrays["missing"],
                tuple(arrays[f"bins{i}"] for i in range(len(arrays) - 3)),
                float.fromhex(head["center"]),
            )


class _Sums(NamedTuple):
    """Rows and repeats of a profile, and the center of a numeric target; None with classes."""

    rows: np.ndarray
    repeats: np.ndarray
    center: float | None

    def about_mean(self) -> np.ndarray:
        """The rows, for a numeric target about the mean of all rows of the sample."""
        if self.center is None or not len(self.rows):
            return self.rows
        return _shifted(self.rows, self.repeats, self.mean - self.center)

    @property
    def n_samples(self) -> float:
        return float(self.repeats @ self.rows[:, C])

    @property
    def mean(self) -> float:
        away = float(self.rows[:, C] @ self.rows[:, B]) / max(self.n_samples, 1.0)
        return (self.center or 0.0) + away


def _summed(table: np.ndarray, classes: tuple[Any, ...] | None) -> _Sums:
    """Sums of the values of a table."""
    return _Sums(*moment_sums(table)) if classes is None else _Sums(*distinct_rows(table), None)


def _added(parts: list[_Sums]) -> _Sums:
    """Sums of the values of all parts."""
    if len(parts) == 1:
        return parts[0]
    repeats = np.concatenate([part.repeats for part in parts])
    if parts[0].center is None:
        rows = np.concatenate([part.rows for part in parts])
        return _Sums(*distinct_rows(rows, repeats), None)
    # About the mean of all rows, so that no digits are lost far from it.
    n_samples = sum(part.n_samples for part in parts)
    center = sum(part.n_samples * part.mean for part in parts) / max(n_samples, 1.0)
    shifted = [_shifted(p.rows, p.repeats, center - (p.center or 0.0)) for p in parts]
    rows = np.concatenate(shifted)
    return _Sums(*_by_size(rows[:, C], rows.T[1:], repeats), center)


def distinct_rows(
    counts: np.ndarray, repeats: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows of a table of class counts, and the number of values that have each.

    Parameters
    ----------
    counts : ndarray of int64, shape (n_values, n_classes)
    repeats : ndarray of int64, shape (n_values,), optional
        Values that each row stands for; by default 1.
    """
    n_classes = counts.shape[1]
    if repeats is None and n_classes <= _KEY_BITS and loops_pay(len(counts)):
        return _distinct_small_rows(counts)
    n_bits = int(counts.max(initial=0)).bit_length()
    keys, axis = (_keys(counts, n_bits), None) if n_classes * n_bits < 64 else (counts, 0)
    _, first, place = np.unique(keys, axis=axis, return_index=True, return_inverse=True)
    times = np.bincount(place.ravel(), repeats, minlength=len(first))
    return counts[first], times.astype(np.int64)


def _keys(counts: np.ndarray, n_bits: int) -> np.ndarray:
    """One whole number per row, from counts below ``2**n_bits``."""
    keys = counts[:, 0].copy()
    for k in range(1, counts.shape[1]):
        keys |= counts[:, k] << (k * n_bits)
    return keys


def _distinct_small_rows(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`distinct_rows` of many values: rows of small counts are counted without sorting."""
    from holdtrue.columns.loops import count_small_rows

    n_classes = counts.shape[1]
    n_bits = _KEY_BITS // n_classes
    times = np.zeros(1 << (n_bits * n_classes), dtype=np.int64)
    is_large = np.empty(len(counts), dtype=bool)
    count_small_rows(counts, n_bits, times, is_large)
    keys = np.flatnonzero(times)
    digits = [(keys >> (k * n_bits)) & ((1 << n_bits) - 1) for k in range(n_classes)]
    rows, repeats = np.stack(digits, axis=1), times[keys]
    if is_large.any():
        table = counts[is_large]
        more_rows, more_repeats = distinct_rows(table, np.ones(len(table), dtype=np.int64))
        rows, repeats = np.concatenate([rows, more_rows]), np.append(repeats, more_repeats)
    return rows, repeats


def moment_sums(moments: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Rows and repeats of a profile for a numeric target, and their center, the mean of all rows.

    Parameters
    ----------
    moments : ndarray of shape (n_values, 5)
    """
    # One term at a time: all of them would take ten times the memory of a column.
    c, terms, center = _moment_terms(moments)
    return *_by_size(c, terms, np.ones(len(c))), center


def _moment_terms(moments: np.ndarray) -> tuple[np.ndarray, Iterator[np.ndarray], float]:
    """Number of rows of each value, its terms in the order of the sums, and their center."""
    c, mean, m2, m3, m4 = moments.T
    center = float(c @ mean / max(float(c.sum()), 1.0))
    b = mean - center

    def terms() -> Iterator[np.ndarray]:
        yield b
        b2 = b * b
        yield b2
        yield b2 * b
        yield b2 * b2
        yield m2
        yield m2 * b
        yield m2 * b2
        yield m3
        yield m3 * b
        yield m4

    return c, terms(), center


def _by_size(
    c: np.ndarray, terms: Iterable[np.ndarray], repeats: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of terms over the values with the same number of rows c of the sample."""
    if c.max(initial=0.0) < min(_BLOCK, 4 * len(c)):  # a table is faster than sorting
        place = c.astype(np.intp)
        sizes = np.arange(place.max(initial=0) + 1, dtype=np.float64)
    else:
        sizes, place = np.unique(c, return_inverse=True)
    times = np.bincount(place, repeats, minlength=len(sizes))
    sums = [sizes, *(np.bincount(place, term, minlength=len(sizes)) for term in terms)]
    return np.stack(sums, axis=1)[times > 0], times[times > 0].astype(np.int64)


def _shifted(rows: np.ndarray, repeats: np.ndarray, shift: float) -> np.ndarray:
    """The sums about a center that is larger by ``shift``, by the binomial formula."""
    powers = [-shift, shift**2, -(shift**3), shift**4]
    shifted = rows.copy()
    plain = [repeats.astype(np.float64), *rows.T[B : B4 + 1]]  # Σ b^0 to Σ b^4
    for columns, first in ((plain, B - 1), (rows.T[M2 : M2B2 + 1], M2), (rows.T[M3 : M3B + 1], M3)):
        for k in range(1, len(columns)):
            for i in range(k):
                shifted[:, first + k] += comb(k, i) * powers[k - i - 1] * columns[i]
    return shifted
