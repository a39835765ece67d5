"""Compiled loops of `grouped`, and of trees with groups; importing this module imports numba.

They give what the NumPy functions there give, but for the last digits: logarithms of products take
the place of sums of logarithms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from holdtrue.categories.loops import add_row, rows_in
from holdtrue.columns.loops import compiled

_FEW = 4  # a power up to this is a product
_DIGITS = 31  # binary digits of a count
_LANES = 64  # products side by side, for the processor's vectors
_FACTORS = 16  # of a product: each lies between 1e-12 and 1e12 up to 1e11 rows
_EXPONENT, _ONE = 52, 1023  # where a float64 has its exponent, and the exponent of 1


@compiled
def multiply(
    share: np.ndarray, rest: np.ndarray, inverse: np.ndarray, products: np.ndarray
) -> None:
    """Multiply products, shape (n_strengths, _LANES), by ``share + rest/a``, lane by lane."""
    for a in range(len(inverse)):
        for i in range(_LANES):
            products[a, i] *= share[i] + inverse[a] * rest[i]


@compiled
def move_exponents(products: np.ndarray, exponents: np.ndarray) -> None:
    """Divide products by powers of 2 to lie in [1, 2), and add those powers to ``exponents``."""
    bits = products.view(np.int64)
    for a in range(len(bits)):
        for i in range(_LANES):
            exponents[a, i] += (bits[a, i] >> _EXPONENT) - _ONE
            bits[a, i] = (bits[a, i] & ((1 << _EXPONENT) - 1)) | (_ONE << _EXPONENT)


@compiled
def log_sums(
    value: np.ndarray,
    group: np.ndarray,
    counts: np.ndarray,
    by_value: np.ndarray,
    priors: np.ndarray,
    inverse: np.ndarray,
    rows_by_rest: np.ndarray,
) -> Any:
    """Sum of ``log(1 + n_rest/a) - log(π⁻ + rest/a)`` over rows, by strength, shape (n_strengths,).

    A cell of c rows is a factor of one product for each binary digit of c, so that a logarithm is
    taken of products only: ``Π x^c = Π_d (Π_{cells with digit d} x)^(2^d)``.

    Parameters
    ----------
    value, group : ndarray of int32, shape (n_pairs,)
    counts : ndarray of int32, shape (n_pairs, n_classes)
    by_value : ndarray of shape (n_values, n_classes)
        ``C_vk``
    priors : ndarray of shape (n_groups, n_classes)
        ``π_k⁻``
    inverse : ndarray of shape (n_strengths,)
        ``1/a``
    rows_by_rest : ndarray of shape (n,)
        Rows of pairs are added to the place of their ``n_rest``; the first term of those below n is
        left to the caller.
    """
    n_strengths = len(inverse)
    sums = np.zeros(n_strengths)
    products = np.ones((_DIGITS, n_strengths, _LANES))
    exponents = np.zeros((_DIGITS, n_strengths, _LANES), dtype=np.int64)
    share, rest = np.ones((_DIGITS, _LANES)), np.zeros((_DIGITS, _LANES))
    n_waiting, n_turns = np.zeros(_DIGITS, dtype=np.int64), np.zeros(_DIGITS, dtype=np.int64)
    for i in range(len(value)):
        v, g = np.uint64(value[i]), np.uint64(group[i])
        n_rest, n_rows = 0.0, 0
        for k in range(counts.shape[1]):
            left, digit = counts[i, k], 0
            rest_k = by_value[v, k] - left
            n_rest += rest_k
            n_rows += left
            while True:
                # Written even if the digit is 0, and then overwritten: a branch would be slower.
                at = n_waiting[digit]
                share[digit, at], rest[digit, at] = priors[g, k], rest_k
                at += left & 1
                if at == _LANES:
                    multiply(share[digit], rest[digit], inverse, products[digit])
                    at = 0
                    n_turns[digit] += 1
                    if n_turns[digit] % _FACTORS == 0:
                        move_exponents(products[digit], exponents[digit])
                n_waiting[digit] = at
                left >>= 1
                if left == 0:
                    break
                digit += 1
        if n_rest < len(rows_by_rest):
            rows_by_rest[np.int64(n_rest)] += n_rows
        else:
            for a in range(n_strengths):
                sums[a] += n_rows * math.log1p(inverse[a] * n_rest)
    for digit in range(_DIGITS):
        share[digit, n_waiting[digit] :], rest[digit, n_waiting[digit] :] = 1.0, 0.0
        if n_waiting[digit] or n_turns[digit]:
            multiply(share[digit], rest[digit], inverse, products[digit])
            move_exponents(products[digit], exponents[digit])
            for a in range(n_strengths):
                for i in range(_LANES):
                    log = math.log(products[digit, a, i]) + exponents[digit, a, i] * math.log(2.0)
                    sums[a] -= log * 2.0**digit
    return sums


@compiled
def log_losses(
    value: np.ndarray,
    group: np.ndarray,
    counts: np.ndarray,
    by_value: np.ndarray,
    others: np.ndarray,
    priors: np.ndarray,
    s: float,
    t: float,
    group_losses: np.ndarray,
) -> Any:
    """Number of rows whose likeliest class is wrong; log losses are added to those of the groups.

    ``others`` are ``N_k - M_gk``; s and t the weights of value and prior that `shrunk.pair` gives.
    """
    n_classes = counts.shape[1]
    n_others = np.zeros(len(others))
    for h in range(len(others)):
        n_others[h] = others[h].sum()
    products = np.ones(len(others))
    wrong = 0
    for i in range(len(value)):
        v, g = np.uint64(value[i]), np.uint64(group[i])
        n_rest = 0.0
        for k in range(n_classes):
            n_rest += by_value[v, k] - counts[i, k]
        named, most, product = 0, -1.0, 1.0
        for k in range(n_classes):
            c = counts[i, k]
            rest = by_value[v, k] - c
            wrong += c
            # Ties to the larger total, then the first class.
            weight = s * (n_others[g] + 1.0) * rest + t * others[g, k]
            if weight > most or (weight == most and others[g, k] > others[g, named]):
                named, most = k, weight
            q = (s * rest + t * priors[g, k]) / (s * n_rest + t)
            if c <= 1:
                product *= q if c else 1.0
            elif c <= _FEW:
                for _ in range(c):
                    product *= q
            else:
                group_losses[g] -= c * math.log(q)
            if product < 1e-150:
                group_losses[g] -= math.log(product)
                product = 1.0
        wrong -= counts[i, named]
        products[g] *= product
        if products[g] < 1e-150:  # another factor is at least 1e-150 too
            group_losses[g] -= math.log(products[g])
            products[g] = 1.0
    for h in range(len(others)):
        group_losses[h] -= math.log(products[h])
    return wrong


@compiled
def ginger_losses(
    value: np.ndarray,
    group: np.ndarray,
    counts: np.ndarray,
    by_value: np.ndarray,
    cost: np.ndarray,
    group_losses: np.ndarray,
) -> None:
    """Add the errors of rule (4) to those of the groups.

    ``cost`` is that of a row whose value no other group has, by group and class.
    """
    for i in range(len(value)):
        v, g = value[i], group[i]
        n_rest, lost, unseen = 0.0, 0.0, 0.0
        for k in range(counts.shape[1]):
            n_rest += by_value[v, k] - counts[i, k]
        for k in range(counts.shape[1]):
            lost += counts[i, k] * (n_rest - (by_value[v, k] - counts[i, k]))
            unseen += counts[i, k] * cost[g, k]
        group_losses[g] += lost / n_rest if n_rest > 0.0 else unseen


@compiled
def score_groups(
    cells: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
    group: np.ndarray,
    guess: np.ndarray,
    columns: np.ndarray,
    width: int,
    criterion: int,
    scale: float,
    whole: np.ndarray,
    inside: np.ndarray,
) -> Any:
    """Twin of `grow.GroupLeaves.score_columns`. Rows of a group lie together.

    ``whole`` and ``inside`` are all zeros before and after.
    """
    step, n_rows = np.uint64(width), len(cells)
    terms = np.empty(len(columns))
    for at in range(len(columns)):
        j = columns[at]
        n_children, term = 0, 0.0
        for i in range(n_rows):
            start = np.uint64(cells[i, j]) * step
            n_children += rows_in(whole, start, width, criterion) == 0.0
            add_row(whole, start, label[i], weight[i], criterion)
        first = 0
        while first < n_rows:
            last = first
            while last < n_rows and group[last] == group[first]:
                start = np.uint64(cells[last, j]) * step
                add_row(inside, start, label[last], weight[last], criterion)
                last += 1
            for i in range(first, last):
                start = np.uint64(cells[i, j]) * step
                n_left = rows_in(whole, start, width, criterion)
                n_left -= rows_in(inside, start, width, criterion)
                if criterion == 7:
                    sum_left = whole[start + np.uint64(1)] - inside[start + np.uint64(1)]
                    residual = label[i] - (sum_left + guess[i]) / (n_left + 1.0)
                    term += weight[i] * (residual * residual * scale)
                else:
                    own_class = start + np.uint64(label[i])
                    share = (whole[own_class] - inside[own_class] + guess[i]) / (n_left + 1.0)
                    term += weight[i] * np.rint(-math.log(share) * scale)
            for i in range(first, last):
                start = np.uint64(cells[i, j]) * step
                for k in range(width):
                    inside[start + np.uint64(k)] = 0.0
            first = last
        for i in range(n_rows):
            start = np.uint64(cells[i, j]) * step
            for k in range(width):
                whole[start + np.uint64(k)] = 0.0
        terms[at] = term if n_children > 1 else np.inf
    return terms
