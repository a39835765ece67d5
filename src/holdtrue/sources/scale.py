"""Columns on one scale: weighted mean 0, variance 1; and which of them are equal.

The notation is that of `kernel`: (1) asks for columns of variance 1.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

# Columns are equal where 1 - |r| is less.
_TIE = 1e-9
# A mean is off by about eps·sqrt(n) of its size. A column whose scale is up to _CONSTANT times that
# is a constant. Up to _COARSE times that, or outside of _SMALL to _LARGE, where squares leave its
# range, float32 is too coarse.
_CONSTANT = 8
_COARSE = 1_000
_SMALL, _LARGE = 1e-16, 1e16
_PAIRS_AT_ONCE = 4_096
# Of variances below this, of columns of variance 1, a difference of means leaves too few digits.
_LOST = {np.float64: 1e-4, np.float32: 0.05}


def standardised(Z: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``sqrt(w) (Z - mean)/scale``, and in float64 the weighted means and scales of the columns.

    A constant column becomes zeros and has scale 1. What float32 is too coarse for is done in
    float64 and rounded at the end.

    Parameters
    ----------
    Z : ndarray of shape (n_rows, n_columns), float64 or float32
        Squares must fit into float64.
    weight : ndarray of shape (n_rows,)
        Not negative, and positive somewhere.
    """
    n = weight.sum()
    share = (weight / n).astype(Z.dtype, copy=False)
    mean = share @ Z
    with np.errstate(over="ignore", invalid="ignore"):  # of float32; done again below
        scaled = np.subtract(Z, mean, order="C")
        if not (weight == 1).all():
            scaled *= np.sqrt(weight).astype(Z.dtype, copy=False)[:, None]
        scale = np.sqrt(np.einsum("ij,ij->j", scaled, scaled) / n)
    single = Z.dtype == np.float32
    rounding = float(np.finfo(Z.dtype).eps) * math.sqrt(len(Z))
    least = (_COARSE if single else _CONSTANT) * rounding * np.abs(mean)
    if single:
        odd = np.flatnonzero(~((scale > np.maximum(least, _SMALL)) & (scale < _LARGE)))
        is_zero = (scale[odd] == 0) & (mean[odd] == 0)
        constant, coarse = odd[is_zero], odd[~is_zero]
    else:
        constant, coarse = np.flatnonzero(scale <= least), np.empty(0, dtype=np.intp)
    scale[constant] = 1
    scale[coarse] = 1
    scaled *= 1 / scale
    mean, scale = mean.astype(np.float64, copy=False), scale.astype(np.float64, copy=False)
    if len(constant):
        scaled[:, constant] = 0
    if len(coarse):
        exact = standardised(Z[:, coarse].astype(np.float64), weight)
        scaled[:, coarse], mean[coarse], scale[coarse] = exact
    return scaled, mean, scale


def first_of_equals(Z: np.ndarray) -> np.ndarray:
    """For each column the first one that equals it up to sign, shape (n_columns,).

    Equal means ``1 - |r| < 10⁻⁹``. Two products with fixed vectors tell most columns apart;
    columns close in both are compared.

    Parameters
    ----------
    Z : ndarray of shape (n_rows, n_columns)
        Standardised.
    """
    n_rows, p = Z.shape
    first = np.arange(p)
    probes = np.sin(np.square(np.arange(1.0, 2 * n_rows + 1))).reshape(2, n_rows)
    probes /= np.linalg.norm(probes, axis=1)[:, None] * math.sqrt(n_rows)
    marks = np.abs(probes.astype(Z.dtype) @ Z)
    order = np.argsort(marks[0])
    marks = marks[:, order]
    if p and not marks[0, 0]:  # constants equal no other column
        varies = marks.any(axis=0)
        order, marks = order[varies], marks[:, varies]
    # Unit vectors with 1 - |r| < tie are at most sqrt(2 tie) apart, and so are their marks.
    apart = math.sqrt(2 * _TIE) + 8 * float(np.finfo(Z.dtype).eps)
    start, shift = np.flatnonzero(np.diff(marks[0]) <= apart), 1
    while len(start):
        close = start[np.abs(marks[1][start + shift] - marks[1][start]) <= apart]
        for at in range(0, len(close), _PAIRS_AT_ONCE):
            part = close[at : at + _PAIRS_AT_ONCE]
            i, j = order[part], order[part + shift]
            left, right = Z[:, i].astype(np.float64), Z[:, j].astype(np.float64)
            products = np.abs(np.einsum("ij,ij->j", left, right))
            products /= np.linalg.norm(left, axis=0) * np.linalg.norm(right, axis=0)
            equal = 1 - products < _TIE
            low, high = np.minimum(i, j)[equal], np.maximum(i, j)[equal]
            np.minimum.at(first, high, low)
        shift += 1
        start = start[: np.searchsorted(start, len(order) - shift)]
        start = start[marks[0][start + shift] - marks[0][start] <= apart]
    while (first[first] != first).any():
        first = first[first]
    return first


class Scaled:
    """Standardised columns: a matrix to search in, and single columns in float64.

    Parameters
    ----------
    Z : ndarray of shape (n_rows, n_columns)
        Standardised, with rows times ``sqrt(w)``.
    mean, scale : ndarray of shape (n_columns,), optional
        Of the raw columns.
    """

    def __init__(
        self, Z: np.ndarray, mean: np.ndarray | None = None, scale: np.ndarray | None = None
    ):
        self._Z = Z
        self.mean = np.zeros(Z.shape[1]) if mean is None else mean
        self.scale = np.ones(Z.shape[1]) if scale is None else scale

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._Z.shape[0], self._Z.shape[1]

    def matrix(self, dtype: type[np.floating]) -> np.ndarray:
        """All columns."""
        return self._Z.astype(dtype, copy=False)

    def columns(self, wanted: np.ndarray) -> np.ndarray:
        """The wanted columns in float64, shape (n_rows, n_wanted)."""
        return self._Z[:, wanted].astype(np.float64, copy=False)

    def column(self, i: int) -> np.ndarray:
        """One column in float64, shape (n_rows,)."""
        return self._Z[:, i].astype(np.float64)


class Weighable(Scaled):
    """Raw columns that are standardised for weights of the rows again and again.

    They are standardised once with equal weights. Other weights then take two products, for the
    means of the columns and of their squares. Where their difference loses digits, a column is
    standardised from the start.

    Parameters
    ----------
    raw : ndarray of shape (n_rows, n_columns)
    """

    def __init__(self, raw: np.ndarray):
        super().__init__(*standardised(raw, np.ones(len(raw))))
        self.raw = raw

    @cached_property
    def squares(self) -> np.ndarray:
        """Squares of the columns at equal weights."""
        return np.square(self._Z)

    @cached_property
    def single(self) -> np.ndarray:
        """The columns at equal weights in float32."""
        return self._Z.astype(np.float32, copy=False)

    def at(self, weight: np.ndarray) -> Scaled:
        """The columns for given weights."""
        return self if (weight == 1).all() else _Weighted(self, weight)


class _Weighted(Scaled):
    """The columns of a `Weighable` for given weights, made from those for equal weights."""

    def __init__(self, evenly: Weighable, weight: np.ndarray):
        Z = evenly._Z
        share = (weight / weight.sum()).astype(Z.dtype, copy=False)
        centre = share @ Z
        variance = share @ evenly.squares - centre * centre
        lost = np.flatnonzero(variance < _LOST[Z.dtype.type])
        variance[lost] = 1
        spread = np.sqrt(variance)
        super().__init__(
            Z, evenly.mean + evenly.scale * centre, evenly.scale * spread.astype(np.float64)
        )
        self._evenly, self._centre, self._inverse = evenly, centre, 1 / spread
        self._root = np.sqrt(weight)
        self._place = None
        if len(lost):
            exact = standardised(evenly.raw[:, lost], weight)
            self._lost, self.mean[lost], self.scale[lost] = exact
            self._place = np.full(len(centre), -1)
            self._place[lost] = np.arange(len(lost))

    def matrix(self, dtype: type[np.floating]) -> np.ndarray:
        single = dtype == np.float32
        Z = self._evenly.single if single else self._Z.astype(dtype, copy=False)
        scaled = Z - self._centre.astype(dtype, copy=False)
        scaled *= self._inverse.astype(dtype, copy=False)
        scaled *= self._root.astype(dtype)[:, None]
        if self._place is not None:
            scaled[:, self._place >= 0] = self._lost
        return scaled

    def columns(self, wanted: np.ndarray) -> np.ndarray:
        Z = (self._Z[:, wanted] - self._centre[wanted]).astype(np.float64, copy=False)
        Z *= self._inverse[wanted]
        Z *= self._root[:, None]
        if self._place is not None:
            is_lost = self._place[wanted] >= 0
            Z[:, is_lost] = self._lost[:, self._place[wanted[is_lost]]]
        return Z

    def column(self, i: int) -> np.ndarray:
        if self._place is not None and self._place[i] >= 0:
            return self._lost[:, self._place[i]].astype(np.float64)
        return (self._Z[:, i] - self._centre[i]) * (float(self._inverse[i]) * self._root)
