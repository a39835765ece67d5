"""The compiled loop of `kernel.greedy`. Importing this module imports numba; `kernel` does so.

It does what `kernel._pick` does, under the same names. A step there reads the scores some ten
times; here everything about a block of candidates is done while it is in the cache. That tells
while Z fits in the cache too, a dozen rows of some thousand candidates.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np

from holdtrue.grouping import compiled

# Candidates of a block.
_BLOCK = 512


@numba.njit(error_model="numpy")  # a test for zero at each division would halve the speed
def _score(a: np.ndarray, den: np.ndarray, score: np.ndarray, top: np.ndarray) -> None:
    """Scores of a block; ``top`` keeps the largest at each place of the blocks so far."""
    for j in range(len(score)):
        score[j] = a[j] * a[j] / den[j]
        top[j] = score[j] if score[j] > top[j] else top[j]


@numba.njit
def _count(score: np.ndarray, least: float) -> int:
    found = 0
    for j in range(len(score)):
        found += score[j] >= least
    return found


@numba.njit
def _product(u: np.ndarray, screen: np.ndarray, start: int, v: np.ndarray) -> None:
    """``v = uᵀ Z`` for the block of candidates that begins at ``start``."""
    stop = start + len(v)
    for j in range(len(v)):
        v[j] = 0
    r = 0
    while r + 4 <= len(u):
        u0, u1, u2, u3 = u[r], u[r + 1], u[r + 2], u[r + 3]
        # Slices of rows: the compiler must see that they are contiguous.
        z0, z1 = screen[r, start:stop], screen[r + 1, start:stop]
        z2, z3 = screen[r + 2, start:stop], screen[r + 3, start:stop]
        for j in range(len(v)):
            v[j] += (u0 * z0[j] + u1 * z1[j]) + (u2 * z2[j] + u3 * z3[j])
        r += 4
    while r < len(u):
        u0, z0 = u[r], screen[r, start:stop]
        for j in range(len(v)):
            v[j] += u0 * z0[j]
        r += 1


@numba.njit
def _update(a: np.ndarray, den: np.ndarray, v: np.ndarray, entered: float) -> None:
    for j in range(len(v)):
        a[j] -= entered * v[j]
        den[j] -= v[j] * v[j]


@numba.njit
def _terms(
    Z: np.ndarray, i: int, U: np.ndarray, residual: np.ndarray, g: np.ndarray
) -> tuple[float, float, float]:
    """``a``, ``c`` and the squared length of column i in float64; writes its ``g = U z``."""
    square, a = 0.0, 0.0
    for r in range(len(residual)):
        z = float(Z[r, i])
        square += z * z
        a += residual[r] * z
    c = square
    for t in range(len(g)):
        g[t] = 0.0
        for r in range(len(residual)):
            g[t] += U[t, r] * float(Z[r, i])
        c -= g[t] * g[t]
    return a, c, square


@numba.njit
def _grown(array: np.ndarray, n_rows: int, n_columns: int) -> np.ndarray:
    made = np.zeros((n_rows, n_columns))
    for i in range(array.shape[0]):
        for j in range(array.shape[1]):
            made[i, j] = array[i, j]
    return made


@numba.njit
def _largest(values: np.ndarray) -> Any:
    largest = values[0]
    for value in values[1:]:
        largest = max(largest, value)
    return largest


@compiled
def select(
    Z: np.ndarray,
    screen: np.ndarray,
    y: np.ndarray,
    den: np.ndarray,
    Lam: float,
    n_samples: float,
    max_selected: int,
    tol: float,
    blur: float,
    tie: float,
    nothing: float,
    dependent: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Order, R and q of the picks, and the fall of the error that was too small; inf if none was.

    Parameters
    ----------
    Z : ndarray of shape (n_rows, n_candidates)
    screen : ndarray, Z in the type in which scores are kept
    y : ndarray of shape (n_rows,), float64
    den : ndarray of shape (n_candidates,)
        ``Λ + diag(ZᵀZ)`` in the type of ``screen``; overwritten.
    Lam, n_samples, max_selected, tol, blur, tie, nothing, dependent
        As in `kernel.greedy`.
    """
    n_rows, p = Z.shape
    k = min(max_selected, p)
    room = min(16, k)
    order = np.empty(k, dtype=np.intp)
    q = np.empty(k)
    R = np.zeros((room, room))
    U = np.empty((room, n_rows))
    g = np.empty(k)
    residual = y.copy()
    u = np.empty(n_rows)
    a = np.zeros_like(den)
    score = np.empty_like(den)
    v = np.empty_like(den[:_BLOCK])
    narrow = y.astype(screen.dtype)
    top = np.empty_like(v)
    near = np.empty(p, dtype=np.intp)
    step = 0
    entered = narrow[0]
    while step < k:
        # Departure 1. One pass over Z: a and c after the last pick, then the scores.
        for j in range(len(top)):
            top[j] = 0
        for start in range(0, p, _BLOCK):
            stop = min(start + _BLOCK, p)
            part, own_a, own_den = v[: stop - start], a[start:stop], den[start:stop]
            _product(narrow, screen, start, part)
            if step == 0:
                for j in range(len(part)):
                    own_a[j] = part[j]
            else:
                _update(own_a, own_den, part, entered)
                if Lam == 0:
                    for j in range(start, stop):
                        if den[j] <= dependent * n_samples:
                            den[j] = np.inf
            _score(own_a, own_den, score[start:stop], top)
        best = float(_largest(top))
        if best / n_samples <= nothing:
            return order[:step], R[:step, :step], q[:step], best / n_samples
        slack = 0.0
        if Lam > 0:
            slack = 2 * (2 * math.sqrt(best / Lam) + best / Lam) * blur
        least = best - max(slack, tie * best)
        # Departure 4. Those that rounding could let win are scored from the definition.
        count = 0
        limit = screen.dtype.type(least)
        for start in range(0, p, _BLOCK):
            stop = min(start + _BLOCK, p)
            if _count(score[start:stop], limit):
                for j in range(start, stop):
                    if score[j] >= limit and np.isfinite(den[j]):
                        near[count] = j
                        count += 1
        i = near[0]
        if count > 1:
            exact = np.empty(count)
            for place in range(count):
                a_j, c, square = _terms(Z, near[place], U, residual, g[:step])
                if c <= dependent * square:
                    c = 0.0 if Lam > 0 else np.inf
                exact[place] = a_j * a_j / (Lam + c)
            first = _largest(exact) * (1 - tie)
            place = 0
            while exact[place] < first:
                place += 1
            i = near[place]
        a_i, _, _ = _terms(Z, i, U, residual, g[:step])
        d = Lam
        for r in range(n_rows):
            u[r] = Z[r, i]
            for t in range(step):
                u[r] -= g[t] * U[t, r]
            d += u[r] * Z[r, i]
        fall = a_i * a_i / d / n_samples
        if fall <= nothing or fall < tol:
            return order[:step], R[:step, :step], q[:step], fall
        if step == room:
            room = min(2 * room, k)
            R, U = _grown(R, room, room), _grown(U, room, n_rows)
        root = math.sqrt(d)
        order[step], q[step] = i, a_i / root
        for t in range(step):
            R[t, step] = g[t]
        R[step, step] = root
        for r in range(n_rows):
            u[r] /= root
            residual[r] -= q[step] * u[r]
            U[step, r] = narrow[r] = u[r]
        entered = screen.dtype.type(q[step])
        den[i] = np.inf
        step += 1
    return order, R[:step, :step], q, np.inf
