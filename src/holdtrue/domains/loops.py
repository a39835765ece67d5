"""Stagewise steps of `kernel.Walk` as compiled loops; importing this module imports numba.

Held-out domains and pairs of them make hundreds of walks. Array operations read the effects of all
features seven times a step, these loops twice. Equations and departures are those of `kernel`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from holdtrue.columns.loops import compiled

# Without a check for division by 0, which would keep loops from several features at once.
part: Callable[..., Any] = numba.njit(error_model="numpy")
# Sums may be reordered as well, since nothing here is nan.
reordered: Callable[..., Any] = numba.njit(error_model="numpy", fastmath={"reassoc", "nnan"})

_HALF_BITS = 0x3FE6A09E667F3BCD  # of sqrt(1/2)


@part
def _polygamma(x: float) -> tuple[float, float, float]:
    """``ψ(x)``, ``ψ'(x)`` and ``ψ''(x)``: recurrence up to 15, then the asymptotic series."""
    zero = one = two = 0.0
    while x < 15.0:
        zero -= 1 / x
        one += 1 / x**2
        two -= 2 / x**3
        x += 1.0
    y = 1 / x**2
    zero += math.log(x) - 0.5 / x - y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y / 240)))
    one += 1 / x + y / 2 + y / x * (1 / 6 - y * (1 / 30 - y * (1 / 42 - y / 30)))
    two -= y + y / x + y**2 * (1 / 2 - y * (1 / 6 - y * (1 / 6 - 0.3 * y)))
    return zero, one, two


@part
def _shrinkage(variance: float, mean: float, mean_v: float, df: float, p: int) -> Any:
    """``ṽ = add + times v`` of `kernel.moderated_t`, and the degrees of freedom of T."""
    half = _polygamma(df / 2)
    excess = variance - half[1]
    if excess <= 0.0:
        return mean_v, 0.0, p * df
    if excess > 1e7:
        y = 1 / math.sqrt(excess)
    elif excess < 1e-6:
        y = 1 / excess
    else:
        y = (1 + math.sqrt(1 + 2 * excess)) / (2 * excess)
        for _ in range(50):
            _, one, two = _polygamma(y)
            step = one * (1 - one / excess) / two
            y += step
            if abs(step) <= 1e-5 * y:
                break
    d0 = 2 * y
    s0 = math.exp(mean + math.log(df / d0) + _polygamma(y)[0] - half[0])
    return d0 * s0 / (d0 + df), df / (d0 + df), min(d0 + df, p * df)


@part
def _logs(v: np.ndarray) -> np.ndarray:
    """Natural logarithms, to 1e-12, several at once: the library's goes one by one.

    ``v = 2^e m`` with m from sqrt(1/2) to sqrt(2), and ``log m = 2 artanh((m - 1)/(m + 1))``.
    """
    bits, exponents = v.view(np.int64), np.empty(len(v))
    fractions = np.empty(len(v), np.int64)
    for j in range(len(v)):
        exponent = (bits[j] - _HALF_BITS) >> 52
        fractions[j] = bits[j] - (exponent << 52)
        exponents[j] = exponent
    m, logs = fractions.view(np.float64), np.empty(len(v))
    for j in range(len(v)):
        s = (m[j] - 1) / (m[j] + 1)
        z = s * s
        series = 1 / 9 + z * (1 / 11 + z * (1 / 13 + z / 15))
        series = 1 + z * (1 / 3 + z * (1 / 5 + z * (1 / 7 + z * series)))
        logs[j] = exponents[j] * math.log(2) + 2 * s * series
    return logs


@part
def _ends(v: np.ndarray) -> Any:
    """Least and largest of numbers from 0 on: their bits are in the same order, several at once."""
    bits = v.view(np.int64)
    low = high = bits[0]
    for j in range(len(v)):
        low, high = min(low, bits[j]), max(high, bits[j])
    ends = np.array([low, high]).view(np.float64)
    return ends[0], ends[1]


@reordered
def _moderate(s2: np.ndarray, e2: np.ndarray, usable: np.ndarray, df: float) -> float:
    """Shrink the variances s2 as `kernel.moderated_t` does; the degrees of freedom of T."""
    p = len(usable)
    v = np.empty(p)
    if p == len(s2):
        for j in range(p):
            v[j] = s2[j] / e2[j]
    else:
        for j in range(p):
            v[j] = s2[usable[j]] / e2[usable[j]]
    low, high = _ends(v)
    if low < 1e-5 * high:
        least = 1e-5 * np.median(v)
        for j in range(p):
            v[j] = max(v[j], least)
    logs = _logs(v)
    mean, mean_v, variance = 0.0, 0.0, 0.0
    for j in range(p):
        mean += logs[j]
        mean_v += v[j]
    mean, mean_v = mean / p, mean_v / p
    for j in range(p):
        variance += (logs[j] - mean) ** 2
    add, times, total = _shrinkage(variance / (p - 1), mean, mean_v, df, p)
    if p == len(s2):
        for j in range(p):
            s2[j] = (add + times * v[j]) * e2[j]
    else:
        for j in range(p):
            s2[usable[j]] = (add + times * v[j]) * e2[usable[j]]
    return total


@reordered
def _strongest(
    mu: np.ndarray, s2: np.ndarray, e2: np.ndarray, nothing: np.ndarray, by_loss: bool, tie: float
) -> Any:
    """The largest ``T²/n``, or fall of the loss, and its feature; -1 if nothing is left."""
    strength, scale = np.empty(len(mu)), e2 if by_loss else s2
    for j in range(len(mu)):
        strength[j] = mu[j] ** 2 / scale[j] if abs(mu[j]) > nothing[j] else 0.0
    _, best = _ends(strength)
    least, at = best * (1 - tie), 0
    while strength[at] < least:
        at += 1
    return best, at if best > 0.0 else -1


@part
def _count_in(
    effects: np.ndarray, weight: float, total: float, mu: np.ndarray, s2: np.ndarray
) -> float:
    """Another domain in the mean and the sum of squares about it; the weight of all so far."""
    if weight == 0.0:
        return total
    share = weight / (total + weight)
    for j in range(len(mu)):
        off = effects[j] - mu[j]
        mu[j] += share * off
        s2[j] += total * share * off * off
    return total + weight


@part
def _settle(moments: Any, rule: int, s2: np.ndarray) -> float:
    """Sums of squares made variances, shrunk by the rule; the degrees of freedom of T."""
    weight, e2, floor, usable = moments
    df = weight.sum() - 1
    for j in range(len(s2)):
        s2[j] = max(s2[j] / df, floor[j])
    return _moderate(s2, e2, usable, df) if rule == 2 and len(usable) > 1 else df


@part
def _subtract_column(
    i: int, delta: float, columns: Any, weight: np.ndarray, of_target: Any
) -> None:
    """``g_d -= delta E[X X_i | d]``, and the loss and the moments of g that follow.

    See `kernel.Columns`.
    """
    matrices, others, at, kept, factors, shift = columns
    g, loss, mu, s2 = of_target
    n, p = g.shape
    total = np.zeros(p)
    for c in range(len(kept)):
        for j in range(p):
            total[j] += kept[c] * matrices[c, i, j]
    mu[:] = 0.0
    s2[:] = 0.0
    counted = 0.0
    for d in range(n):
        row, beside, before = matrices[at[d], i], shift[d, i], g[d, i]
        among, with_itself, itself = factors[:, d]
        if len(kept):
            other = others[d, i]
            square = row[i] * (among * total[i] + with_itself * row[i]) - itself * other[i]
            for j in range(p):
                column = row[j] * (among * total[j] + with_itself * row[j]) - itself * other[j]
                g[d, j] -= delta * column
        else:
            square = with_itself * row[i] + beside * shift[d, i]
            for j in range(p):
                g[d, j] -= delta * (with_itself * row[j] + beside * shift[d, j])
        loss[d] += delta * (delta * square - 2 * before)
        counted = _count_in(g[d], weight[d], counted, mu, s2)


@compiled
def take_steps(
    g: np.ndarray,
    loss: np.ndarray,
    weight: np.ndarray,
    e2: np.ndarray,
    floor: np.ndarray,
    nothing: np.ndarray,
    usable: np.ndarray,
    columns: Any,
    rule: int,
    tie: float,
    steps: Any,
) -> int:
    """Take stagewise steps, and say how many were possible.

    Parameters
    ----------
    g : ndarray of shape (n_targets, n_domains, n_features)
        Effects; changed, as is ``loss``.
    loss : ndarray of shape (n_targets, n_domains)
    weight : ndarray of shape (n_domains,)
    e2 : ndarray of shape (n_features,)
    floor : ndarray of shape (n_targets, n_features)
    nothing : ndarray of shape (n_targets, n_features)
        Effects that are rounding error; inf where a feature may not be picked.
    usable : ndarray of int
        Features that vary: those whose spreads are shrunk towards each other.
    columns : tuple
        Where columns come from.
    rule : int
        Place in `kernel.RULES`.
    tie : float
        Relative difference below which strengths are equal.
    steps : tuple
        Arrays to fill, as long as the steps to take: targets, features, changes of their weight, T,
        degrees of freedom, and losses of shape (n_steps, n_domains).
    """
    targets, features, deltas, t, df, losses = steps
    n_targets, n, p = g.shape
    mu, s2 = np.empty((n_targets, p)), np.empty((n_targets, p))
    df_of, best, at = np.empty(n_targets), np.empty(n_targets), np.empty(n_targets, np.intp)
    mu[:] = 0.0
    s2[:] = 0.0
    for k in range(n_targets):
        counted = 0.0
        for d in range(n):
            counted = _count_in(g[k, d], weight[d], counted, mu[k], s2[k])
        df_of[k] = _settle((weight, e2, floor[k], usable), rule, s2[k])
        best[k], at[k] = _strongest(mu[k], s2[k], e2, nothing[k], rule == 0, tie)
    for s in range(len(features)):
        least, k = best.max() * (1 - tie), 0
        while best[k] < least:
            k += 1
        i = at[k]
        if i < 0:
            return s
        targets[s], features[s], deltas[s], df[s] = k, i, mu[k, i] / e2[i], df_of[k]
        t[s] = mu[k, i] * math.sqrt(weight.sum() / s2[k, i])
        _subtract_column(i, deltas[s], columns, weight, (g[k], loss[k], mu[k], s2[k]))
        for d in range(n):
            losses[s, d] = np.maximum(loss[:, d], 0.0).sum() / n_targets
        df_of[k] = _settle((weight, e2, floor[k], usable), rule, s2[k])
        best[k], at[k] = _strongest(mu[k], s2[k], e2, nothing[k], rule == 0, tie)
    return len(features)
