"""Columns on one scale: weighted mean 0, variance 1; and which of them are equal.

The notation is that of `kernel`: (1) asks for columns of variance 1.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

# Columns are equal where 1 - |r| is less.
_TIE = 1e-9
# A mean is off by about eps·sqrt(n) of its size. A column whose scale is up to _CONSTANT times that
# is a constant. Up to _COARSE times that, or outside of _SMALL to _LARGE, where squares leave its
# range, float32 is too coarse.
_CONSTANT = 8
_COARSE = 1_000
_SMALL, _LARGE = 1e-16, 1e16
_PAIRS_AT_ONCE = 4_096
_CELL = 16  # width of a cell of marks, in the distance that equal columns may have
_SECOND, _COLUMN = 16, 32  # bits of the second mark and of the column


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


def standardised_each(
    Y: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of Y `standardised` with the weights of their own, and their means and scales."""
    scaled = [
        standardised(y[:, None], w) for y, w in zip(Y.astype(np.float64), weights, strict=True)
    ]
    rows, means, scales = (np.array(part) for part in zip(*scaled, strict=True))
    return rows[:, :, 0], means[:, 0], scales[:, 0]


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
    probes = np.sin(np.square(np.arange(1.0, 2 * n_rows + 1))).reshape(2, n_rows)
    probes /= np.sqrt(n_rows * np.square(probes).sum(axis=1, keepdims=True))
    marks = np.abs(probes.astype(Z.dtype) @ Z).astype(np.float64, copy=False)
    # Unit vectors with 1 - |r| < tie are at most sqrt(2 tie) apart, and so are their marks.
    apart = math.sqrt(2 * _TIE) + 8 * float(np.finfo(Z.dtype).eps)
    # A whole number for each column: the cell of its first mark, then its second mark in units of
    # ``apart``, then the column. In order of these numbers, columns close in both marks are
    # neighbours; one near the end of its cell stands in the next cell too.
    place = marks * np.array([[1 / (_CELL * apart)], [1 / apart]])
    cell, second = np.floor(place)
    key = ((cell * 2**_SECOND + second).astype(np.int64) << _COLUMN) + np.arange(p)
    near_end = place[0] - cell > 1 - 2 / _CELL
    key = np.append(key, key[near_end] + (1 << _SECOND + _COLUMN))
    key.sort()
    order = key & ((1 << _COLUMN) - 1)
    key >>= _COLUMN
    if p and not key[0]:  # constants equal no other column
        varies = marks[:, order].any(axis=0)
        order, key = order[varies], key[varies]
    pairs = []
    shift = 1
    while len(start := np.flatnonzero(key[shift:] - key[:-shift] <= 1)):
        equal = start[_are_equal(Z, order[start], order[start + shift])]
        pairs.append(order[[equal, equal + shift]])
        if shift == 1 and len(equal):  # of a row of copies the first will do
            order, key = np.delete(order, equal + 1), np.delete(key, equal + 1)
        else:
            shift += 1
    if not any(ends.size for ends in pairs):
        return np.arange(p)
    ends = np.hstack(pairs)
    graph = sparse.coo_array((np.ones(ends.shape[1]), (ends[0], ends[1])), shape=(p, p))
    family = sparse.csgraph.connected_components(graph, directed=False)[1]
    _, first, place = np.unique(family, return_index=True, return_inverse=True)
    return first[place]


def _are_equal(Z: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Whether columns i and j are equal up to sign, pair by pair."""
    equal = np.empty(len(i), dtype=bool)
    for start in range(0, len(i), _PAIRS_AT_ONCE):
        part = slice(start, start + _PAIRS_AT_ONCE)
        left, right = (Z[:, columns[part]].astype(np.float64) for columns in (i, j))
        product = np.abs(np.einsum("ij,ij->j", left, right))
        squares = np.einsum("ij,ij->j", left, left) * np.einsum("ij,ij->j", right, right)
        equal[part] = product > (1 - _TIE) * np.sqrt(squares)
    return equal
