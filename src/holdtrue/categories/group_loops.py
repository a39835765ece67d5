"""Compiled loops of `grouped`, and of trees with groups; importing this module imports numba.

They give what the NumPy functions there give, but for the last digits: logarithms of products of a
few numbers take the place of sums of logarithms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from holdtrue.categories.loops import add_row, rows_in
from holdtrue.columns.loops import compiled

# Factors lie between 1e-12 and 1e12 up to 1e11 rows: so many of them make a finite product.
_FACTORS = 24
_FEW = 8  # a power up to this is a product
_SMALL = 1 << 12  # losses of values with fewer rows elsewhere are taken together


@compiled
def log_sums(
    value: np.ndarray,
    group: np.ndarray,
    counts: np.ndarray,
    by_value: np.ndarray,
    priors: np.ndarray,
    inverse: np.ndarray,
) -> Any:
    """Sum of log losses by strength, ``q⁻ = (π⁻ + rest/a)/(1 + n_rest/a)``.

    Parameters
    ----------
    value, group : ndarray of int, shape (n_pairs,)
    counts : ndarray of int64, shape (n_pairs, n_classes)
    by_value : ndarray of shape (n_values, n_classes)
        ``C_vk``
    priors : ndarray of shape (n_groups, n_classes)
        ``π_k⁻``
    inverse : ndarray of shape (n_strengths,)
        ``1/a``
    """
    n_strengths = len(inverse)
    sums = np.zeros(n_strengths)
    above, below = np.ones(n_strengths), np.ones(n_strengths)
    n_above, n_below, n_alone = 0, 0, 0
    rows_by_rest = np.zeros(_SMALL)
    alone, on_prior = 1.0, 0.0  # whatever the strength
    for i in range(len(value)):
        n_rest, n_rows = 0.0, 0
        for k in range(counts.shape[1]):
            c = counts[i, k]
            rest = by_value[value[i], k] - c
            n_rest += rest
            n_rows += c
            if c == 0:
                continue
            share = priors[group[i], k]
            if rest == 0.0:
                if c > _FEW:
                    on_prior -= c * math.log(share)
                    continue
                for _ in range(c):
                    alone *= share
                n_alone += c
                if n_alone >= _FACTORS - _FEW:
                    on_prior -= math.log(alone)
                    alone, n_alone = 1.0, 0
            elif c > _FEW:
                for a in range(n_strengths):
                    sums[a] -= c * math.log(share + inverse[a] * rest)
            else:
                for _ in range(c):
                    for a in range(n_strengths):
                        above[a] *= share + inverse[a] * rest
                n_above += c
                if n_above >= _FACTORS - _FEW:
                    for a in range(n_strengths):
                        sums[a] -= math.log(above[a])
                        above[a] = 1.0
                    n_above = 0
        if n_rest < _SMALL:
            rows_by_rest[np.int64(n_rest)] += n_rows
        elif n_rows > _FEW:
            for a in range(n_strengths):
                sums[a] += n_rows * math.log(1.0 + inverse[a] * n_rest)
        else:
            for _ in range(n_rows):
                for a in range(n_strengths):
                    below[a] *= 1.0 + inverse[a] * n_rest
            n_below += n_rows
            if n_below >= _FACTORS - _FEW:
                for a in range(n_strengths):
                    sums[a] += math.log(below[a])
                    below[a] = 1.0
                n_below = 0
    on_prior -= math.log(alone)
    for a in range(n_strengths):
        sums[a] += on_prior - math.log(above[a]) + math.log(below[a])
        for n in range(1, _SMALL):
            if rows_by_rest[n] > 0.0:
                sums[a] += rows_by_rest[n] * math.log1p(inverse[a] * n)
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

    Parameters
    ----------
    value, group, counts, by_value, priors
        As in `log_sums`.
    others : ndarray of shape (n_groups, n_classes)
        ``N_k - M_gk``
    s, t : float
        Weights of the value and of the prior, as `shrunk.pair` gives them.
    group_losses : ndarray of shape (n_groups,)
    """
    n_classes = counts.shape[1]
    n_others = np.zeros(len(others))
    for g in range(len(others)):
        n_others[g] = others[g].sum()
    wrong = 0.0
    for i in range(len(value)):
        v, g = value[i], group[i]
        n_rest, n_rows, lost = 0.0, 0, 0.0
        named, most = 0, -1.0
        for k in range(n_classes):
            rest = by_value[v, k] - counts[i, k]
            n_rest += rest
            n_rows += counts[i, k]
            # Ties to the larger total, then the first class.
            weight = s * (n_others[g] + 1.0) * rest + t * others[g, k]
            if weight > most or (weight == most and others[g, k] > others[g, named]):
                named, most = k, weight
            if counts[i, k]:
                lost -= counts[i, k] * math.log(s * rest + t * priors[g, k])
        group_losses[g] += lost + n_rows * math.log(s * n_rest + t)
        wrong += n_rows - counts[i, named]
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

    Parameters
    ----------
    value, group, counts, by_value, group_losses
        As in `log_losses`.
    cost : ndarray of shape (n_groups, n_classes)
        Of a row whose value no other group has.
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
    """Twin of `leaves.GroupLeaves.score_columns`. Rows of a group lie together.

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
