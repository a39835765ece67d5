"""Columns on one scale: weighted mean 0, variance 1; and which of them are equal.

The notation is that of `kernel`: (1) asks for columns of variance 1.
"""

from __future__ import annotations

import math

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
    if p and not marks[0, order[0]]:  # constants equal no other column
        order = order[marks[:, order].any(axis=0)]
    first_mark, second_mark = marks[0, order], marks[1]
    # Unit vectors with 1 - |r| < tie are at most sqrt(2 tie) apart, and so are their marks.
    apart = math.sqrt(2 * _TIE) + 8 * float(np.finfo(Z.dtype).eps)
    start, shift = np.flatnonzero(np.diff(first_mark) <= apart), 1
    while len(start):
        pairs = order[start], order[start + shift]
        close = start[np.abs(second_mark[pairs[0]] - second_mark[pairs[1]]) <= apart]
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
        start = start[first_mark[start + shift] - first_mark[start] <= apart]
    while (first[first] != first).any():
        first = first[first]
    return first
