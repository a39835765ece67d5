"""Compiled loops of `grouped`, and of trees with groups; importing this module imports numba.

They give what the NumPy functions there give, but for the last digits: logarithms of products, and
series, take the place of sums of logarithms.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from holdtrue.categories.term_loops import add_row, rows_in
from holdtrue.columns.loops import compiled

_PLACES = 1 << 13  # of all priors together
_MOST = 1 << 8  # cells of fewer rows are taken together
_RESTS = 1 << 12  # places of pairs with as many rows in other groups


@compiled
def add_logs(
    rest: float, powers: np.ndarray, prior: float, inverse: np.ndarray, sums: np.ndarray
) -> None:
    """Take ``Σ log(π⁻ + rest/a)`` of some rows from the sums by strength.

    With ``π⁻ = π (1 + ε)`` and ``q = π + rest/a`` that is ``Σ log q - Σ_j (-π ε/q)^j/j``; powers
    are ``Σ ε^j`` for j from 0 on.
    """
    if powers[0] == 0.0:
        return
    for a in range(len(inverse)):
        q = prior + inverse[a] * rest
        ratio = -prior / q
        factor, total = ratio, powers[0] * math.log(q)
        for j in range(1, len(powers)):
            total -= factor * powers[j] / j
            factor *= ratio
        sums[a] -= total


@compiled
def log_sums(
    value: np.ndarray,
    group: np.ndarray,
    counts: np.ndarray,
    by_value: np.ndarray,
    near: np.ndarray,
    apart: np.ndarray,
    logs: np.ndarray,
    priors: np.ndarray,
    inverse: np.ndarray,
    terms: tuple[int, ...],
) -> Any:
    """Sum of ``log(1 + n_rest/a) - log(π⁻ + rest/a)`` over rows, by strength, shape (n_strengths,).

    Rows with the same rest and nearly the same π⁻ are taken together, so that few logarithms are
    needed. A place holds such rows until those of another rest need it.

    Parameters
    ----------
    value, group : ndarray of int32, shape (n_pairs,)
        In the order of the values, or places change hands often.
    counts : ndarray of int32, shape (n_pairs, n_classes)
    by_value : ndarray of shape (n_values, n_classes)
        ``C_vk``
    near : ndarray of int32, shape (n_groups, n_classes)
        Which of ``priors`` is near ``π_k⁻``.
    apart, logs : ndarray of shape (n_groups, n_classes)
        ε of ``π_k⁻ = π (1 + ε)``, π the prior that is near; ``log π_k⁻``.
    priors : ndarray of shape (n_priors,)
        The last is 1, for the first term.
    inverse : ndarray of shape (n_strengths,)
        ``1/a``
    terms : tuple of length n_terms
        Powers of ε in a series; their number is known when the loop is compiled.
    """
    n_places = 1
    while 2 * n_places * len(priors) <= _PLACES:
        n_places *= 2
    last = (len(priors) - 1) * n_places
    sums = np.zeros(len(inverse))
    held = np.zeros((len(priors) * n_places, len(terms)))
    rests = np.zeros(len(held))
    unseen = 0.0
    for i in range(len(value)):
        v, g = np.uint64(value[i]), np.uint64(group[i])
        n_rest, n_rows, first = 0.0, 0, 0
        for k in range(counts.shape[1]):
            n_rest += by_value[v, k] - counts[i, k]
            n_rows += counts[i, k]
            first += k * counts[i, k]
        if n_rest == 0.0:
            for k in range(counts.shape[1]):
                unseen -= counts[i, k] * logs[g, k]
            continue
        # Of one row the class is known, and no branch depends on it.
        for k in range(first, first + 1) if n_rows == 1 else range(0, counts.shape[1]):
            c = counts[i, k]
            rest = by_value[v, k] - c
            if c > 0:
                at = np.uint64(near[g, k] * n_places + (np.int64(rest) & (n_places - 1)))
                if rests[at] != rest:
                    add_logs(rests[at], held[at], priors[near[g, k]], inverse, sums)
                    rests[at], held[at] = rest, 0.0
                term = np.float64(c)
                for j in range(len(terms)):
                    held[at, j] += term
                    term *= apart[g, k]
        at = np.uint64(last + (np.int64(n_rest) & (n_places - 1)))
        if rests[at] != n_rest:
            add_logs(rests[at], held[at], 1.0, inverse, sums)
            rests[at], held[at] = n_rest, 0.0
        held[at, 0] -= n_rows
    for place in range(len(held)):
        add_logs(rests[place], held[place], priors[place // n_places], inverse, sums)
    return sums + unseen


@compiled
def grid_log_sums(
    cells: np.ndarray,
    by_value: np.ndarray,
    near: np.ndarray,
    apart: np.ndarray,
    priors: np.ndarray,
    inverse: np.ndarray,
    terms: tuple[int, ...],
) -> Any:
    """The sums of `log_sums`, from a dense table of counts: few values, each in many groups.

    Cells of a value and class with the same count have the same rest.

    Parameters
    ----------
    cells : ndarray of int32, shape (n_values, n_classes, n_groups)
    by_value, priors, inverse, terms
        As in `log_sums`.
    near, apart : ndarray of shape (n_classes, n_groups)
    """
    n_values, n_classes, n_groups = cells.shape
    sums, last = np.zeros(len(inverse)), len(priors) - 1
    held, alone = np.zeros((len(priors), _MOST, len(terms))), np.zeros(len(terms))
    for v in range(n_values):
        n_all = by_value[v].sum()
        for g in range(n_groups):
            n = 0
            for k in range(n_classes):
                n += cells[v, k, g]
            if n < _MOST:
                held[last, np.uint64(n), 0] -= n
            else:
                alone[:] = 0.0
                alone[0] = -n
                add_logs(n_all - n, alone, 1.0, inverse, sums)
        for n in range(_MOST):
            if held[last, n, 0] < 0.0:
                add_logs(n_all - n, held[last, n], 1.0, inverse, sums)
                held[last, n] = 0.0
        for k in range(n_classes):
            for g in range(n_groups):
                c, at, term = cells[v, k, g], np.uint64(near[k, g]), 1.0
                if c < _MOST:
                    for j in range(len(terms)):
                        held[at, np.uint64(c), j] += term
                        term *= apart[k, g]
                else:
                    term = np.float64(c)
                    for j in range(len(terms)):
                        alone[j] = term
                        term *= apart[k, g]
                    add_logs(by_value[v, k] - c, alone, priors[at], inverse, sums)
            for p in range(last):
                for n in range(_MOST):
                    if held[p, n, 0] > 0.0:
                        held[p, n] *= n
                        add_logs(by_value[v, k] - n, held[p, n], priors[p], inverse, sums)
                        held[p, n] = 0.0
    return sums


@compiled
def brier_sums(
    value: np.ndarray,
    group: np.ndarray,
    counts: np.ndarray,
    by_value: np.ndarray,
    left: np.ndarray,
    strengths: np.ndarray,
) -> Any:
    """Sum of ``n (1 + Σ_k q_k²) - 2 Σ_k c_k q_k`` over pairs, by strength, shape (n_strengths,).

    With ``q = (rest + a π⁻)/(n_rest + a)`` a pair has five sums that do not depend on the strength.
    Those of pairs with the same n_rest are added in a place until those of another need it.

    Parameters
    ----------
    value, group, counts, by_value
        As in `log_sums`.
    left : ndarray of shape (n_groups, n_classes)
        ``π_k⁻``
    strengths : ndarray of shape (n_strengths,)
        Finite.
    """
    sums, held, rests = np.zeros(len(strengths)), np.zeros((_RESTS, 5)), np.zeros(_RESTS)
    n_all = 0.0
    for i in range(len(value)):
        v, g = np.uint64(value[i]), np.uint64(group[i])
        n, n_rest, rest_rest, rest_left, left_left, hit, left_hit = (
            0.0,
            0.0,
            0.0,
            0.0,
            0.0,
            0.0,
            0.0,
        )
        for k in range(counts.shape[1]):
            c, q = np.float64(counts[i, k]), left[g, k]
            rest = by_value[v, k] - c
            n += c
            n_rest += rest
            rest_rest += rest * rest
            rest_left += rest * q
            left_left += q * q
            hit += c * rest
            left_hit += c * q
        n_all += n
        at = np.uint64(np.int64(n_rest) & (_RESTS - 1))
        if rests[at] != n_rest:
            _add_brier(rests[at], held[at], strengths, sums)
            rests[at], held[at] = n_rest, 0.0
        held[at, 0] += n * rest_rest
        held[at, 1] += n * rest_left
        held[at, 2] += n * left_left
        held[at, 3] += hit
        held[at, 4] += left_hit
    for place in range(_RESTS):
        _add_brier(rests[place], held[place], strengths, sums)
    return sums + n_all


@compiled
def _add_brier(n_rest: float, held: np.ndarray, strengths: np.ndarray, sums: np.ndarray) -> None:
    """Add ``Σ n Σ_k q_k² - 2 Σ c_k q_k`` of pairs with the same n_rest to the sums by strength."""
    for j in range(len(strengths)):
        a = strengths[j]
        d = n_rest + a
        squares = (held[0] + 2.0 * a * held[1] + a * a * held[2]) / (d * d)
        sums[j] += squares - 2.0 * (held[3] + a * held[4]) / d


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
    child: np.ndarray,
    label: np.ndarray,
    weight: np.ndarray,
    group: np.ndarray,
    guess: np.ndarray,
    criterion: int,
    scale: float,
    whole: np.ndarray,
    inside: np.ndarray,
) -> Any:
    """Twin of `grow.GroupLeaves.score_splits`. Rows of a group lie together.

    ``whole`` and ``inside``, shape (width, n_children), are all zeros before and after.
    """
    n_rows, n_splits = len(child), child.shape[1]
    terms = np.empty(n_splits)
    for at in range(n_splits):
        n_children, term = 0, 0.0
        for i in range(n_rows):
            v = np.uint64(child[i, at])
            n_children += rows_in(whole, v, criterion) == 0.0
            add_row(whole, v, label[i], weight[i], criterion)
        first = 0
        while first < n_rows:
            last = first
            while last < n_rows and group[last] == group[first]:
                add_row(inside, np.uint64(child[last, at]), label[last], weight[last], criterion)
                last += 1
            for i in range(first, last):
                v = np.uint64(child[i, at])
                n_left = rows_in(whole, v, criterion) - rows_in(inside, v, criterion)
                if criterion == 7:
                    sum_left = whole[1, v] - inside[1, v]
                    residual = label[i] - (sum_left + guess[i]) / (n_left + 1.0)
                    term += weight[i] * (residual * residual * scale)
                else:
                    y = np.uint64(label[i])
                    share = (whole[y, v] - inside[y, v] + guess[i]) / (n_left + 1.0)
                    term += weight[i] * np.rint(-math.log(share) * scale)
            for i in range(first, last):
                for k in range(len(inside)):
                    inside[k, child[i, at]] = 0.0
            first = last
        for i in range(n_rows):
            for k in range(len(whole)):
                whole[k, child[i, at]] = 0.0
        terms[at] = term if n_children > 1 else np.inf
    return terms
