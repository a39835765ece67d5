"""Which candidates, features or scores of trained models, predict a target with a dozen labels.

Paper
-----
Kuzborskij, Orabona & Caputo, "Scalable Greedy Algorithms for Transfer Learning", Computer Vision
and Image Understanding 156 (2017) 174-185.

Notation
--------
==================  ====================================================================
paper               here
==================  ====================================================================
m                   ``n_samples``; with weights their sum, because weights are repetitions
d + n               ``n_candidates``: features first, then sources
Z                   ``Z``, shape (n_rows, d + n), standardised: weighted mean 0, variance 1,
                    rows times ``sqrt(w)``, so that a column's squared length is m
y                   ``y``, standardised in the same way
λ                   ``lam``, per row as in (2); ``Lam`` is ``m λ``, which Proposition 1 adds to ZᵀZ
k                   ``max_selected``
δ                   ``tol``
S, in order         ``fit.order``
G                   not formed; ``H = Λ (Z_S Z_Sᵀ + Λ I)⁻¹`` is ``Λ G``
(none)              ``a = Zᵀ H y``, ``den = Λ + diag(Zᵀ H Z)``: a candidate's score is ``a²/den``
(none)              ``R``, upper triangle with ``RᵀR = (C + Λ I)_S``, and ``q = R⁻ᵀ b_S``
==================  ====================================================================

Where to find it
----------------
=================================  ===================================
(1), columns of variance 1         module `scale`
(2), Algorithm 1                   `greedy`; many at a time: module `together`
(2) from C = ZᵀZ and b = Zᵀy       `greedy_from_gram`
GreedyTL-59                        `together.sampled_together`
Theorem 1                          module `draws`
(1), on the scale of the columns   module `choose`
Theorems 2 and 3, Corollary 1      module `bounds`
=================================  ===================================

Departures
----------
1. Algorithm 1 evaluates ``yᵀ(K + z zᵀ)G'y`` anew for every candidate, O(m²) each. Adding i raises
   it by ``a_i²/(Λ + c_i)``; a and c follow from one product ``Zᵀu`` a step, O(m) a candidate. The
   picks are the same.
2. Λ = mλ. Algorithm 1 starts with ``G = λ⁻¹ I``, which is Λ = λ: pass ``lam / m`` for that.
3. The printed loop runs while ``|S| ≤ k`` and so picks k + 1. Here k are picked.
4. a and c are first kept in float32, at half the reading. Candidates that rounding could let win
   are scored again in float64, from the definition: the picks are those of float64. Scores within
   10⁻⁹ of the largest are a tie, and the lowest column wins.
5. δ is tested before a candidate is added: the one that gains too little stays out. The first
   enters whatever it gains, so that a model is never empty.
6. Columns that are equal up to sign and scale are one candidate (`scale.first_of_equals`): copies
   would share the penalty, and so count more than one column does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg.blas import daxpy, saxpy
from scipy.linalg.lapack import dtrtrs

# Falls of the error below this, where the target's variance is 1, are rounding.
_NOTHING = 1e-14
TIE = 1e-9
# Scores of columns that count as equal (departure 6) are closer than this.
_NEAR = 1e-4
# A column whose part outside those chosen is this share of its squared length depends on them.
_DEPENDENT = 1e-10
# From this λ on, float32 is good enough to say which candidates might win.
SCREEN = 1e-2


@dataclass(frozen=True, eq=False)
class GreedyFit:
    """Candidates in order of entry, and what gives their weights at every size."""

    order: np.ndarray
    R: np.ndarray  # its upper triangle has ``RᵀR = (C + Λ I)_S``; the rest is not used
    q: np.ndarray  # ``R⁻ᵀ b_S``; the regularised error falls by ``q²/m`` at each step
    n_samples: float
    lam: float
    reason: str  # why it stopped, in words
    # Of `greedy`: whether two candidates might have won a step, as columns that are equal do.
    had_ties: bool = False

    @cached_property
    def weights(self) -> np.ndarray:
        """Weights in order of entry, shape (k,): ``R⁻¹ q``."""
        return dtrtrs(self.R, self.q)[0] if len(self.order) else np.empty(0)

    def predictions(self, Z: np.ndarray) -> np.ndarray:
        """Of every size 0..k for rows of the chosen columns, shape (k + 1, n_rows).

        Sums of ``q`` times the rows of ``R⁻ᵀ Zᵀ``.
        """
        steps = np.zeros((len(self.order) + 1, len(Z)))
        if len(self.order):
            steps[1:] = self.q[:, None] * dtrtrs(self.R, Z.T, trans=1)[0]
        return np.cumsum(steps, axis=0, out=steps)

    @property
    def regularised_errors(self) -> np.ndarray:
        """The objective of (2) at the sizes 0..k, where the target's variance is 1."""
        return 1.0 - np.append(0.0, np.cumsum(self.q**2)) / self.n_samples


class _Rows:
    """What has entered, in the space of the rows: ``H y`` and the ``H z / sqrt(d)``."""

    def __init__(self, y: np.ndarray, n_samples: float, Lam: float):
        self.residual = y.astype(np.float64)
        self.n_samples = n_samples
        self.Lam = Lam
        self.order: list[int] = []
        self.q: list[float] = []
        self._U = np.empty((16, len(y)))
        self.R: list[tuple[np.ndarray, float]] = []
        self._next: tuple[np.ndarray, np.ndarray, float, float]

    @property
    def entered(self) -> np.ndarray:
        return self._U[: len(self.order)]

    def terms(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``a`` and ``Λ + c`` of the columns of Z, float64, from their definition."""
        g = self.entered.dot(Z)
        c = self.n_samples - np.einsum("ij,ij->j", g, g)
        if self.Lam:
            return self.residual.dot(Z), self.Lam + np.maximum(c, 0.0)
        # Without a penalty, a column that depends on those chosen has nothing to add.
        return self.residual.dot(Z), np.where(c > _DEPENDENT * self.n_samples, c, np.inf)

    def score(self, z: np.ndarray) -> float:
        """``a²/(Λ + c)`` of the column z; what it takes is kept for `enter`."""
        # `dot`, here and below, costs half of what `@` does on a dozen rows.
        entered = self._U[: len(self.order)]
        g = entered.dot(z)
        u = z - g.dot(entered)
        d = self.Lam + float(u.dot(z))
        a = float(self.residual.dot(z))
        self._next = g, u, math.sqrt(d), a
        return a * a / d

    def enter(self, i: int) -> np.ndarray:
        """Add candidate i, whose column was scored last; returns ``H z / sqrt(d)``."""
        g, u, root, a = self._next
        t = len(self.order)
        if t == len(self._U):
            self._U = np.concatenate([self._U, np.empty_like(self._U)])
        u /= root
        q = a / root
        self.residual -= q * u
        self._U[t] = u
        self.order.append(i)
        self.q.append(q)
        self.R.append((g, root))
        return u


def _fit(
    order: list[int],
    rows: list[tuple[np.ndarray, float]],
    q: list[float],
    n_samples: float,
    lam: float,
    reason: str,
    had_ties: bool = False,
) -> GreedyFit:
    L = np.zeros((len(order), len(order)))
    for t, (above, root) in enumerate(rows):
        L[t, :t] = above
        L[t, t] = root
    picks = np.array(order, dtype=np.intp)
    return GreedyFit(picks, L.T, np.array(q), n_samples, lam, reason, had_ties)


def reached(max_selected: int, n_total: int) -> str:
    """Why a search of that many candidates ends with its last step."""
    if max_selected < n_total:
        return f"max_selected={max_selected} was reached"
    return "every candidate was chosen" if n_total else "there was no candidate"


def stopped(fall: float, tol: float, size: int) -> str:
    """Why no candidate is added to ``size`` of them; empty where one is."""
    if fall <= (_NOTHING if size else 0.0):  # departure 5
        return "no further candidate lowers the error"
    if fall < tol and size:
        return f"the next candidate would lower the regularised error by less than tol={tol:g}"
    return ""


def _lowest_of_ties(scores: np.ndarray) -> int:
    """Departure 4. First of the scores that equal the largest but for rounding."""
    best = int(scores.argmax())
    ties = np.flatnonzero(scores[:best] >= scores[best] * (1 - TIE))
    return int(ties[0]) if len(ties) else best


def least_to_win(best: Any, n_samples: Any, lam: Any, size: int, kind: np.dtype) -> Any:
    """Departure 4. Scores above this might be the largest but for rounding, after ``size`` steps.

    With errors ``ρm`` of a and ``ρ(Λ + m)`` of den, and ``den ≥ Λ``, the score ``a²/den`` is off by
    up to ``2 sqrt(best/Λ) ρm + best ρ (1 + 1/λ)``. In trials with up to 600 steps ρ was at most a
    third of what it is here.
    """
    share = 4 * (4 + size**0.5) * float(np.finfo(kind).eps)
    slack = 2 * (n_samples * best / lam) ** 0.5 + best * (1 + 1 / lam)
    return best * (1 - TIE) - 2 * share * slack


def greedy(
    Z: np.ndarray,
    y: np.ndarray,
    n_samples: float,
    lam: float,
    max_selected: int,
    tol: float,
) -> GreedyFit:
    """Candidates picked one by one, each the one that most lowers the regularised error of (2).

    The score of adding i is ``a_i²/(Λ + c_i)`` with ``a = ZᵀHy`` and ``c = diag(ZᵀHZ)``, the rise
    of ``b_Sᵀ (C + ΛI)_S⁻¹ b_S``. After i has entered, with ``u = Hz_i``, ``d = Λ + c_i`` and
    ``v = Zᵀu``: ``a -= v a_i/d`` and ``c -= v²/d``.

    Parameters
    ----------
    Z : ndarray of shape (n_rows, n_candidates), float64 or float32
        Standardised, C-contiguous: columns of squared length ``n_samples``, or of zeros.
    y : ndarray of shape (n_rows,)
        Standardised.
    n_samples : float
        Sum of the weights.
    lam : float
        λ of (2). Zero gives forward regression.
    max_selected : int
    tol : float
    """
    n_columns = Z.shape[1]
    Lam = n_samples * lam
    if lam >= SCREEN:
        screen = Z.astype(np.float32, copy=False)
        den = np.full(n_columns, Lam + n_samples, dtype=np.float32)
    else:
        # Departure 4. `den` may come near zero, too near for float32.
        screen = Z.astype(np.float64, copy=False)
        den = Lam + np.einsum("ij,ij->j", screen, screen)
        if not Lam:
            den[den <= _DEPENDENT * n_samples] = np.inf
    kind = screen.dtype
    rows = _Rows(y, n_samples, Lam)
    a = rows.residual.astype(kind) @ screen
    score, v = np.empty_like(a), np.empty_like(a)
    add = saxpy if kind == np.float32 else daxpy
    most, had_ties = min(max_selected, n_columns), False
    while (size := len(rows.order)) < most:
        np.multiply(a, a, out=score)
        np.divide(score, den, out=score)
        i = int(score.argmax())
        best = float(score[i])
        if reason := stopped(best / n_samples, 0.0, size):
            break
        least = best * (1 - TIE)
        if lam:
            least = least_to_win(best, n_samples, lam, size, kind)
        score[i] = -1
        second = score[score.argmax()]
        had_ties = had_ties or bool(second >= best * (1 - _NEAR))
        if second >= least:
            score[i] = best
            near = np.flatnonzero(score >= least)
            near = near[np.isfinite(den[near])]
            exact_a, exact_den = rows.terms(Z[:, near].astype(np.float64, copy=False))
            i = int(near[_lowest_of_ties(exact_a**2 / exact_den)])
        if reason := stopped(rows.score(Z[:, i].astype(np.float64)) / n_samples, tol, size):
            break
        u = rows.enter(i)
        u.astype(kind).dot(screen, out=v)
        add(v, a, a=-rows.q[-1])
        np.multiply(v, v, out=v)
        np.subtract(den, v, out=den)
        if not Lam:
            # A column that depends on those chosen has nothing left to add.
            den[den <= _DEPENDENT * n_samples] = np.inf
        den[i] = np.inf
    else:
        reason = reached(max_selected, n_columns)
    return _fit(rows.order, rows.R, rows.q, n_samples, lam, reason, had_ties)


def greedy_from_gram(
    C: np.ndarray, b: np.ndarray, n_samples: float, lam: float, max_selected: int, tol: float
) -> GreedyFit:
    """The picks of `greedy` from the sums ``C = ZᵀZ`` and ``b = Zᵀy`` alone.

    Targets that share rows and weights share C: a step costs O(|S| p) in place of O(m p), by
    ``v = C[:, i] - Vᵀ V[:, i]``.
    """
    Lam = n_samples * lam
    a = b.astype(np.float64)
    den = Lam + np.diagonal(C).astype(np.float64)
    V = np.empty((16, len(a)))
    order: list[int] = []
    q: list[float] = []
    rows: list[tuple[np.ndarray, float]] = []
    while len(order) < min(max_selected, len(a)):
        score = a * a / den
        i = _lowest_of_ties(score)
        t = len(order)
        if reason := stopped(score[i] / n_samples, tol, t):
            break
        if t == len(V):
            V = np.concatenate([V, np.empty_like(V)])
        g = V[:t, i].copy()
        root = math.sqrt(den[i])
        V[t] = (C[i] - g @ V[:t]) / root
        q.append(float(a[i] / root))
        rows.append((g, root))
        order.append(i)
        a -= q[-1] * V[t]
        den -= V[t] ** 2
        den[i] = np.inf
    else:
        reason = reached(max_selected, len(a))
    return _fit(order, rows, q, n_samples, lam, reason)
