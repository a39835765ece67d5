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
(2), Algorithm 1                   `greedy`; many at a time: `greedy_together`
(2) from C = ZᵀZ and b = Zᵀy       `greedy_from_gram`
GreedyTL-59                        `Searches.step`; its columns: `choose.sampled_together`
Theorem 1                          `candidates.candidate_count`
(1), on the scale of the columns   `GreedyFit`, `GreedyFit.scaled`
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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg.lapack import dtrtrs

from holdtrue.sources.scale import standardised

# Falls of the error below this, where the target's variance is 1, are rounding.
_NOTHING = 1e-14
_TIE = 1e-9
# Scores of columns that count as equal (departure 6) are closer than this.
_NEAR = 1e-4
# A column whose part outside those chosen is this share of its squared length depends on them.
_DEPENDENT = 1e-10
# From this λ on, float32 is good enough to say which candidates might win.
_SCREEN = 1e-2


@dataclass(frozen=True, eq=False)
class GreedyFit:
    """Candidates in order of entry, and what gives their weights at every size.

    ``h(x) = ȳ + s_y Σ w_j (x_j - mean_j)/scale_j`` over the j of ``order``, where the search was of
    standardised columns and targets; see `scaled`.
    """

    order: np.ndarray
    R: np.ndarray  # its upper triangle has ``RᵀR = (C + Λ I)_S``; the rest is not used
    q: np.ndarray  # ``R⁻ᵀ b_S``; the regularised error falls by ``q²/m`` at each step
    n_samples: float
    reason: str  # why it stopped, in words
    # Of `greedy`: whether two candidates might have won a step, as columns that are equal do.
    had_ties: bool = False
    mean: Any = 0.0  # of the columns of ``order``, as scale
    scale: Any = 1.0
    y_mean: float = 0.0
    y_scale: float = 1.0

    def scaled(
        self, order: np.ndarray, mean: np.ndarray, scale: np.ndarray, y_mean: float, y_scale: float
    ) -> GreedyFit:
        """The fit in the units of the raw columns, whose candidates are ``order``."""
        return replace(
            self, order=order, mean=mean, scale=scale, y_mean=float(y_mean), y_scale=float(y_scale)
        )

    def first(self, size: int) -> GreedyFit:
        """The `scaled` fit of the first ``size`` picks, or itself if it has no more."""
        if size >= len(self.order):
            return self
        return replace(
            self, order=self.order[:size], R=self.R[:size, :size], q=self.q[:size],
            mean=self.mean[:size], scale=self.scale[:size],
        )  # fmt: skip

    @cached_property
    def weights(self) -> np.ndarray:
        """Weights of standardised columns in order of entry, shape (k,): ``R⁻¹ q``."""
        return dtrtrs(self.R, self.q)[0] if len(self.order) else np.empty(0)

    @property
    def effects(self) -> np.ndarray:
        """What one standard deviation of each chosen candidate adds to the prediction."""
        return self.y_scale * self.weights

    def raw(self) -> tuple[float, np.ndarray]:
        """Intercept, and weights of the chosen candidates in their own units."""
        weights = self.effects / self.scale
        return self.y_mean - float(weights @ self.mean), weights

    def predictions(self, Z: np.ndarray) -> np.ndarray:
        """Predictions of every size 0..k for rows of the chosen columns, shape (k + 1, n_rows).

        Sums of ``q`` times the rows of ``R⁻ᵀ Zᵀ``.
        """
        steps = np.zeros((len(self.order) + 1, len(Z)))
        if len(self.order):
            Z = (Z - self.mean) / self.scale
            steps[1:] = self.q[:, None] * dtrtrs(self.R, Z.T, trans=1)[0]
        return self.y_mean + self.y_scale * np.cumsum(steps, axis=0, out=steps)

    @property
    def regularised_errors(self) -> np.ndarray:
        """The objective of (2) at the sizes 0..k on the rows of the fit; the search lowers it."""
        falls = np.append(0.0, np.cumsum(self.q**2)) / self.n_samples
        return (1.0 - falls) * self.y_scale**2


def _fit(
    order: list[int],
    rows: list[tuple[np.ndarray, float]],
    q: list[float],
    n_samples: float,
    reason: str,
    had_ties: bool = False,
) -> GreedyFit:
    L = np.zeros((len(order), len(order)))
    for t, (above, root) in enumerate(rows):
        L[t, :t] = above
        L[t, t] = root
    return GreedyFit(np.array(order, dtype=np.intp), L.T, np.array(q), n_samples, reason, had_ties)


def reached(max_selected: int, n_total: int) -> str:
    """Reason of a search that has taken its last step, given the number of candidates."""
    if max_selected < n_total:
        return f"max_selected={max_selected} was reached"
    return "every candidate was chosen" if n_total else "there was no candidate"


def _stopped(fall: float, tol: float, size: int) -> str:
    """Reason to stop after ``size`` candidates; empty if another one is added."""
    if fall <= (_NOTHING if size else 0.0):  # departure 5
        return "no further candidate lowers the error"
    if fall < tol and size:
        return f"the next candidate would lower the regularised error by less than tol={tol:g}"
    return ""


def _lowest_of_ties(scores: np.ndarray) -> int:
    """Departure 4. First of the scores that equal the largest but for rounding."""
    best = int(scores.argmax())
    ties = np.flatnonzero(scores[:best] >= scores[best] * (1 - _TIE))
    return int(ties[0]) if len(ties) else best


def _without_dependent(den: np.ndarray, n_samples: float) -> np.ndarray:
    """``den`` without a penalty: a column that depends on those chosen has nothing left to add."""
    return np.where(den > _DEPENDENT * n_samples, den, np.inf)


def _least_to_win(best: Any, n_samples: Any, lam: Any, size: int, kind: np.dtype) -> Any:
    """Departure 4. Scores above this might be the largest but for rounding, after ``size`` steps.

    With errors ``ρm`` of a and ``ρ(Λ + m)`` of den, and ``den ≥ Λ``, the score ``a²/den`` is off by
    up to ``2 sqrt(best/Λ) ρm + best ρ (1 + 1/λ)``. In trials with up to 600 steps ρ was at most a
    third of what it is here.
    """
    share = 4 * (4 + size**0.5) * float(np.finfo(kind).eps)
    slack = 2 * (n_samples * best / lam) ** 0.5 + best * (1 + 1 / lam)
    return best * (1 - _TIE) - 2 * share * slack


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
    if lam >= _SCREEN:
        screen = Z.astype(np.float32, copy=False)
        den = np.full(n_columns, Lam + n_samples, dtype=np.float32)
    else:
        # Departure 4. `den` may come near zero, too near for float32.
        screen = Z.astype(np.float64, copy=False)
        den = Lam + np.einsum("ij,ij->j", screen, screen)
        if not Lam:
            den = _without_dependent(den, n_samples)
    kind = screen.dtype
    residual = y.astype(np.float64)  # ``H y``
    U = np.empty((16, len(y)))  # a row ``H z / sqrt(d)`` for each that has entered
    order: list[int] = []
    q: list[float] = []
    rows: list[tuple[np.ndarray, float]] = []
    a = residual.astype(kind) @ screen
    score, v = np.empty_like(a), np.empty_like(a)
    most, had_ties = min(max_selected, n_columns), False
    # `dot` costs half of what `@` does on a dozen rows.
    while (size := len(order)) < most:
        np.square(a, out=score)
        score /= den
        i = int(score.argmax())
        best = float(score[i])
        if reason := _stopped(best / n_samples, 0.0, size):
            break
        least = best * (1 - _TIE)
        if lam:
            least = _least_to_win(best, n_samples, lam, size, kind)
        score[i] = -1
        second = score[score.argmax()]
        had_ties = had_ties or bool(second >= best * (1 - _NEAR))
        entered = U[:size]
        if second >= least:  # departure 4: from the definition of a and c
            score[i] = best
            near = np.flatnonzero(score >= least)
            near = near[np.isfinite(den[near])]
            close = Z[:, near].astype(np.float64, copy=False)
            g = entered.dot(close)
            c = n_samples - np.einsum("ij,ij->j", g, g)
            exact = Lam + np.maximum(c, 0.0) if Lam else _without_dependent(c, n_samples)
            i = int(near[_lowest_of_ties(residual.dot(close) ** 2 / exact)])
        z = Z[:, i].astype(np.float64)
        g = entered.dot(z)
        u = z - g.dot(entered)
        d, a_i = Lam + float(u.dot(z)), float(residual.dot(z))
        if reason := _stopped(a_i * a_i / d / n_samples, tol, size):
            break
        if size == len(U):
            U = np.concatenate([U, np.empty_like(U)])
        root = math.sqrt(d)
        u /= root
        U[size] = u
        order.append(i)
        q.append(a_i / root)
        rows.append((g, root))
        residual -= q[-1] * u
        u.astype(kind).dot(screen, out=v)
        a -= np.multiply(v, q[-1], out=score)
        den -= np.square(v, out=v)
        if not Lam:
            den = _without_dependent(den, n_samples)
        den[i] = np.inf
    else:
        reason = reached(max_selected, n_columns)
    return _fit(order, rows, q, n_samples, reason, had_ties)


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
        if reason := _stopped(score[i] / n_samples, tol, t):
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
    return _fit(order, rows, q, n_samples, reason)


# --- many searches of the same columns ---
#
# Left-out rows, targets and penalties change the weights, y and λ, but not the columns. ``Z`` here
# are the columns standardised with equal weights. Under the weights w of one search, column j of Z
# has a mean ``μ_j`` and a deviation ``σ_j``, and `greedy` searches ``sqrt(w) (Z_j - μ_j)/σ_j``. The
# residual and every u are orthogonal to ``sqrt(w)``, so that μ falls out of
# ``v_j = u·sqrt(w) (Z_j - μ_j)/σ_j``. Hence ``σ v``, ``a' = σ a`` and ``den' = σ² den`` follow from
# products with Z itself, one matrix product for all searches; and ``a'²/den' = a²/den``, the score.

# Below this variance under other weights, a column of variance 1 has lost digits.
_LOST = 0.05
# Makes UᵀU, whose largest eigenvalue is at most 1, positive definite.
_POSITIVE = 1e-13


def greedy_together(
    raw: np.ndarray,
    Z: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray,
    lams: Sequence[float],
    max_selected: int,
    tol: float,
) -> list[GreedyFit]:
    """`greedy` for each row of Y, with weights and a λ above 0 of its own.

    ``raw`` are the columns as they are, ``Z`` the same standardised with equal weights. Y and the
    weights have shape (n_searches, n_rows); Y is standardised with the weights of its search.
    """
    fits: dict[int, GreedyFit] = {}
    for searches in searches_by_precision(Y, weights, lams):
        searches.look_at(np.arange(raw.shape[1]), raw, Z)
        for _ in range(min(max_selected, raw.shape[1])):
            fits.update(searches.step(tol))
            if not len(searches.number):
                break
        fits.update(searches.rest(reached(max_selected, raw.shape[1])))
    return [fits[number] for number in range(len(Y))]


def searches_by_precision(
    Y: np.ndarray, weights: np.ndarray, lams: Sequence[float]
) -> Iterator[Searches]:
    """Searches in float32, and those in float64 because of a small λ (departure 4)."""
    lam = np.array(lams)
    for kind, is_of_kind in ((np.float32, lam >= _SCREEN), (np.float64, lam < _SCREEN)):
        if is_of_kind.any():
            yield Searches(Y, weights, lam, np.flatnonzero(is_of_kind), kind)


class Searches:
    """Searches that still run: the first axis of every array but searched, raw and Z."""

    _PER_SEARCH = ("number", "weight", "root", "n", "lam", "Lam", "residual", "a", "den", "is_free",
                   "H", "U", "chosen", "order", "q", "diagonal")  # fmt: skip

    def __init__(
        self, Y: np.ndarray, weights: np.ndarray, lam: np.ndarray, numbers: np.ndarray, kind: Any
    ):
        n_searches, n_rows = len(numbers), Y.shape[1]
        self.number, self.kind, self.size = numbers, kind, 0
        self.weight, self.lam, self.residual = weights[numbers], lam[numbers], Y[numbers]
        self.root, self.n = np.sqrt(self.weight), self.weight.sum(axis=1)
        self.Lam = self.n * self.lam
        self.U = self.chosen = np.empty((n_searches, 0, n_rows))
        self.order = np.empty((n_searches, 0), dtype=np.intp)
        self.q = self.diagonal = np.empty((n_searches, 0))
        self.H = np.empty((n_searches, 0, 0))

    def look_at(self, searched: np.ndarray, raw: np.ndarray, Z: np.ndarray) -> None:
        """Continue with other columns: the candidates ``searched``, raw and standardised."""
        self.searched, self.raw, self.Z = searched, raw, Z.astype(self.kind, copy=False)
        share = (self.weight / self.n[:, None]).astype(self.kind)
        variance = share @ np.square(self.Z) - np.square(share @ self.Z)
        self._standardise_lost(variance)
        variance *= (self.Lam + self.n).astype(self.kind)[:, None]
        self.den = variance
        self.den[self.den == 0] = np.inf
        self.is_free = np.ones(variance.shape, dtype=bool)
        # What a step needs and no longer: to take it anew from the system costs as much as a step.
        self.room, self.extra = np.empty((2, *variance.shape), dtype=self.kind)
        entered: np.ndarray = self.U[:, : self.size]
        if self.size > entered.shape[2]:  # only UᵀU counts; a square root of it has fewer rows
            square = entered.transpose(0, 2, 1) @ entered + _POSITIVE * np.eye(entered.shape[2])
            entered = np.linalg.cholesky(square).transpose(0, 2, 1)
        for i in range(entered.shape[1]):
            self.den -= np.square(self._products(entered[:, i]), out=self.extra)
        self.a = self._products(self.residual).copy()

    def exclude(self, equal_to: np.ndarray) -> None:
        """Leave out the columns that equal a chosen one."""
        if self.size:
            first_equal = equal_to[self.order[:, : self.size]]
            place = np.minimum(np.searchsorted(self.searched, first_equal), len(self.searched) - 1)
            search, step = np.nonzero(self.searched[place] == first_equal)
            self.is_free[search, place[search, step]] = False

    def _standardise_lost(self, variance: np.ndarray) -> None:
        """Standardise columns that have lost digits from the start; then their variance is 1."""
        variance[:, ~self.Z.any(axis=0)] = np.inf  # constants under any weights
        search, column = np.nonzero(variance < _LOST)
        values = np.empty((len(column), len(self.raw)))
        for f in np.unique(search):
            of_search = search == f
            columns = self.raw[:, column[of_search]].astype(np.float64)
            values[of_search] = standardised(columns, self.weight[f])[0].T
        varies = values.any(axis=1)
        variance[search, column] = varies
        self.lost, self.lost_at = values[varies], (search[varies], column[varies])

    def _products(self, vectors: np.ndarray) -> np.ndarray:
        """``σ_j`` times the product of column j and the vector, of each search."""
        rows = (vectors * self.root).astype(self.Z.dtype)
        products: np.ndarray = np.matmul(rows, self.Z, out=self.room[: len(rows)])
        if len(self.lost):
            products[self.lost_at] = np.einsum("ij,ij->i", vectors[self.lost_at[0]], self.lost)
        return products

    def _columns(self, wanted: np.ndarray, search: Any = slice(None)) -> np.ndarray:
        """Columns standardised in float64 with the weights of a search; by default one for each."""
        z = self.raw[:, wanted].T.astype(np.float64)
        weight, n = self.weight[search], self.n[search, None]
        z -= np.einsum("ij,ij->i", z, weight)[:, None] / n
        z *= self.root[search]
        scale = np.sqrt(np.einsum("ij,ij->i", z, z)[:, None] / n)
        scale[scale == 0] = 1
        z /= scale
        return z

    def _best(self, places: np.ndarray | None, n_looked_at: int) -> np.ndarray:
        """Place of the candidate of the largest score, of each search; -1 where none is above 0.

        Candidates that have entered, and constants, have a score of 0.
        """
        drawn: Any = slice(None) if places is None else places
        score = np.square(
            self.a[:, drawn], out=self.room[: len(self.a)] if places is None else None
        )
        score /= self.den[:, drawn]
        if places is not None:
            is_free = self.is_free[:, drawn]
            score[~is_free | (np.cumsum(is_free, axis=1) > n_looked_at)] = -np.inf
        each = np.arange(len(score))
        first = score.argmax(axis=1)
        best = score[each, first].astype(np.float64)
        least = _least_to_win(np.maximum(best, 0), self.n, self.lam, self.size, score.dtype)
        score[each, first] = -np.inf
        second = score[each, score.argmax(axis=1)]
        taken = first if places is None else places[first]
        taken[best <= 0] = -1
        unclear = np.flatnonzero((second >= least) & (best > 0))
        if not len(unclear):
            return taken
        score[unclear, first[unclear]] = best[unclear]
        search, near = np.nonzero(score[unclear] >= least[unclear, None])
        search = unclear[search]
        near = near if places is None else places[near]
        is_open = np.isfinite(self.den[search, near])
        search, near = search[is_open], near[is_open]
        z = self._columns(near, search)
        a_squared = np.einsum("ij,ij->i", self.residual[search], z) ** 2
        for f in unclear:
            part = slice(*np.searchsorted(search, [f, f + 1]))
            if self.size > z.shape[1]:
                c = np.einsum("ij,ij->i", z[part] @ self.H[f], z[part])
            else:
                g = z[part] @ self.U[f, : self.size].T
                c = self.n[f] - np.einsum("ij,ij->i", g, g)
            exact = a_squared[part] / (self.Lam[f] + np.maximum(c, 0.0))
            taken[f] = near[part][exact >= exact.max() * (1 - _TIE)].min()
        return taken

    def step(
        self, tol: float, places: np.ndarray | None = None, n_looked_at: int = 0
    ) -> dict[int, GreedyFit]:
        """Add a candidate to each search; returns the fits, by number, of those that stop.

        ``places`` are the columns that the step may look at, of which each search takes the first
        ``n_looked_at`` that are free. Default: all.
        """
        taken = self._best(places, n_looked_at)
        z = self._columns(taken)
        u = self._outside(z)
        d = self.Lam + np.einsum("ij,ij->i", u, z)
        a = np.einsum("ij,ij->i", self.residual, z)
        falls = np.where(taken < 0, 0.0, a * a / d / self.n)
        reasons = [_stopped(fall, tol, self.size) for fall in falls.tolist()]
        fits = {}
        if any(reasons):
            if places is not None:
                best_of = f"the best of {n_looked_at} drawn"
                reasons = [reason.replace("the next candidate", best_of) for reason in reasons]
            fits = self._fits(reasons)
            going = np.array([not reason for reason in reasons])
            self._keep(going)
            taken, z, u, d, a = (values[going] for values in (taken, z, u, d, a))
        if len(taken):
            self._enter(taken, z, u, np.sqrt(d), a)
        return fits

    def rest(self, reason: str) -> dict[int, GreedyFit]:
        """The fits of those that did not stop."""
        return self._fits([reason] * len(self.number))

    def _outside(self, z: np.ndarray) -> np.ndarray:
        """``Hz``, of each search: ``z - Uᵀ(Uz)``, or from m steps on by H itself."""
        t = self.size
        if t < z.shape[1]:
            U = self.U[:, :t]
            return z - ((U @ z[:, :, None]).transpose(0, 2, 1) @ U)[:, 0]
        if t == z.shape[1]:
            self.H = np.eye(t) - self.U[:, :t].transpose(0, 2, 1) @ self.U[:, :t]
        return (self.H @ z[:, :, None])[:, :, 0]

    def _enter(
        self, taken: np.ndarray, z: np.ndarray, u: np.ndarray, root: np.ndarray, a: np.ndarray
    ) -> None:
        """Add one candidate to each search, as `greedy` does."""
        t = self.size
        if t == self.U.shape[1]:
            self._make_room()
        u /= root[:, None]
        q = a / root
        self.residual -= q[:, None] * u
        self.U[:, t], self.chosen[:, t], self.order[:, t] = u, z, self.searched[taken]
        self.q[:, t], self.diagonal[:, t] = q, root
        if t >= u.shape[1]:
            self.H -= u[:, :, None] * u[:, None, :]
        v = self._products(u)
        each = np.arange(len(taken))
        self.a -= np.multiply(v, q.astype(v.dtype)[:, None], out=self.extra[: len(v)])
        v *= v
        self.den -= v
        self.den[each, taken] = np.inf
        self.is_free[each, taken] = False
        self.size += 1

    def _make_room(self) -> None:
        for name in ("U", "chosen", "order", "q", "diagonal"):
            steps = getattr(self, name)
            room = np.empty(
                (len(steps), max(self.size // 4, 16), *steps.shape[2:]), dtype=steps.dtype
            )
            setattr(self, name, np.concatenate([steps, room], axis=1))

    def _keep(self, going: np.ndarray) -> None:
        """Drop the searches that are over."""
        search, column = self.lost_at
        is_going = going[search]
        self.lost = self.lost[is_going]
        self.lost_at = (np.cumsum(going) - 1)[search[is_going]], column[is_going]
        for name in self._PER_SEARCH:
            setattr(self, name, getattr(self, name)[going])

    def _fits(self, reasons: Sequence[str]) -> dict[int, GreedyFit]:
        """Fits of the searches with a reason to stop, by number."""
        t, fits = self.size, {}
        for f, reason in enumerate(reasons):
            if reason:
                R = self.U[f, :t] @ self.chosen[f, :t].T
                R[np.diag_indices(t)] = self.diagonal[f, :t]
                order, q = self.order[f, :t].copy(), self.q[f, :t].copy()
                fits[int(self.number[f])] = GreedyFit(order, R, q, float(self.n[f]), reason)
        return fits
