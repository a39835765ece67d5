"""Which candidates, features or scores of trained models, predict a target with a dozen labels.

Paper
-----
Kuzborskij, Orabona & Caputo, "Scalable Greedy Algorithms for Transfer Learning", Computer Vision
and Image Understanding 156 (2017) 174-185. The leave-one-out formula is that of ridge regression.

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
(2), Algorithm 1                   `greedy`
(2) from C = ZᵀZ and b = Zᵀy       `greedy_from_gram`
GreedyTL-59, Theorem 1             `greedy_sampled`, `candidate_draws`, `candidate_count`
(1), on the scale of the columns   module `targets`
leave-one-out                      module `leave_one_out`
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
   10⁻⁹ of the largest are a tie, and the lowest column wins: of equal columns, the first.
5. δ is tested before a candidate is added: the one that gains too little stays out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

Columns = Callable[[np.ndarray | slice], np.ndarray]

# Falls of the error below this, where the target's variance is 1, are rounding.
_NOTHING = 1e-14
_TIE = 1e-9
# A column whose part outside those chosen is this share of its squared length depends on them.
_DEPENDENT = 1e-10
# From this λ on, float32 is good enough to say which candidates might win.
_SCREEN = 1e-2


@dataclass(frozen=True, eq=False)
class GreedyFit:
    """Candidates in order of entry, and what gives their weights at every size.

    Attributes
    ----------
    order : ndarray of int, shape (k,)
    R : ndarray of shape (k, k)
        Upper triangle with ``RᵀR = (C + Λ I)_S``.
    q : ndarray of shape (k,)
        ``R⁻ᵀ b_S``; the regularised error falls by ``q²/m`` at each step.
    n_samples : float
    lam : float
    reason : str
        Why it stopped, in words.
    """

    order: np.ndarray
    R: np.ndarray
    q: np.ndarray
    n_samples: float
    lam: float
    reason: str

    @property
    def weights(self) -> np.ndarray:
        """Weights in order of entry, shape (k,): ``R⁻¹ q``."""
        return solve_triangular(self.R, self.q) if len(self.order) else np.empty(0)

    @property
    def weight_path(self) -> np.ndarray:
        """Weights of the sizes 0..k, shape (k + 1, k), in order of entry: ``R_t⁻¹ q_t``."""
        k = len(self.order)
        path = np.zeros((k + 1, k))
        if k:
            # R is triangular, so the inverse of its leading block is the leading block.
            inverse = solve_triangular(self.R, np.eye(k))
            path[1:] = np.cumsum(inverse * self.q, axis=1).T
        return path

    def predictions(self, Z: np.ndarray) -> np.ndarray:
        """Of every size 0..k for rows of the chosen columns, shape (k + 1, n_rows).

        ``weight_path @ Z.T``, as sums of ``q`` times the rows of ``R⁻ᵀ Zᵀ``.
        """
        made = np.zeros((len(self.order) + 1, len(Z)))
        if len(self.order):
            made[1:] = self.q[:, None] * solve_triangular(self.R, Z.T, trans="T")
        return np.cumsum(made, axis=0, out=made)

    @property
    def train_errors(self) -> np.ndarray:
        """Mean squared error of the sizes 0..k where the target's variance is 1."""
        regularised = 1.0 - np.append(0.0, np.cumsum(self.q**2)) / self.n_samples
        return np.maximum(regularised - self.lam * (self.weight_path**2).sum(axis=1), 0.0)


class _Rows:
    """What has entered, in the space of the rows: ``H y`` and the ``H z / sqrt(d)``."""

    def __init__(self, y: np.ndarray, Lam: float):
        self.residual = y.astype(np.float64)
        self.Lam = Lam
        self.order: list[int] = []
        self.q: list[float] = []
        self._U = np.empty((16, len(y)))
        self._R: list[tuple[np.ndarray, float]] = []
        self._next: tuple[np.ndarray, np.ndarray, float, float]

    @property
    def entered(self) -> np.ndarray:
        return self._U[: len(self.order)]

    def terms(self, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """``a`` and ``Λ + c`` of the columns of Z, from their definition, in float64."""
        Z = Z.astype(np.float64, copy=False)
        g = self.entered @ Z
        squares = np.einsum("ij,ij->j", Z, Z)
        c = squares - np.einsum("ij,ij->j", g, g)
        # Without a penalty, a column that depends on those chosen has nothing to add.
        den = np.where(c > _DEPENDENT * squares, self.Lam + c, self.Lam or np.inf)
        return self.residual @ Z, den

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
        self._R.append((g, root))
        return u

    def result(self, n_samples: float, lam: float, reason: str) -> GreedyFit:
        return _fit(self.order, self._R, self.q, n_samples, lam, reason)


def _fit(
    order: list[int],
    rows: list[tuple[np.ndarray, float]],
    q: list[float],
    n_samples: float,
    lam: float,
    reason: str,
) -> GreedyFit:
    R = np.zeros((len(order), len(order)))
    for t, (above, root) in enumerate(rows):
        R[:t, t] = above
        R[t, t] = root
    return GreedyFit(np.array(order, dtype=np.intp), R, np.array(q), n_samples, lam, reason)


def _reached(max_selected: int, n_total: int) -> str:
    if max_selected < n_total:
        return f"max_selected={max_selected} was reached"
    return "every candidate was chosen" if n_total else "there was no candidate"


def _stopped(fall: float, tol: float) -> str:
    """Why no candidate is added, or nothing where one is."""
    if fall <= _NOTHING:
        return "no further candidate lowers the error"
    if fall < tol:
        return f"the next candidate would lower the regularised error by less than tol={tol:g}"
    return ""


def _lowest_of_ties(scores: np.ndarray) -> int:
    """Departure 4. First of the scores that equal the largest but for rounding."""
    best = int(scores.argmax())
    ties = np.flatnonzero(scores[:best] >= scores[best] * (1 - _TIE))
    return int(ties[0]) if len(ties) else best


def greedy(
    Z: np.ndarray,
    y: np.ndarray,
    n_samples: float,
    lam: float,
    max_selected: int,
    tol: float,
    *,
    compiled: bool = False,
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
    compiled : bool
        Which route, the compiled loop or NumPy; both make the same picks.
    """
    Lam = n_samples * lam
    if lam >= _SCREEN:
        screen = Z.astype(np.float32, copy=False)
        den = np.full(Z.shape[1], Lam + n_samples, dtype=np.float32)
    else:
        # Departure 4. `den` may come near zero, too near for float32.
        screen = Z.astype(np.float64, copy=False)
        den = Lam + np.einsum("ij,ij->j", screen, screen)
        if not Lam:
            den[den <= _DEPENDENT * n_samples] = np.inf
    # What rounding may do to a and den, both of which are at most about m.
    blur = 32 * float(np.finfo(screen.dtype).eps) * math.sqrt(len(y)) * n_samples
    if compiled:
        from holdtrue.sources import loops  # imports numba

        order, R, q, fall = loops.select(
            Z, screen, np.array(y, dtype=np.float64), den,
            float(Lam), float(n_samples), int(max_selected), float(tol),
            blur, _TIE, _NOTHING, _DEPENDENT,
        )  # fmt: skip
        reason = _stopped(fall, tol) or _reached(max_selected, Z.shape[1])
        return GreedyFit(order, R, q, n_samples, lam, reason)
    rows = _Rows(y, Lam)
    reason = _pick(rows, Z, screen, den, n_samples, max_selected, tol, blur)
    return rows.result(n_samples, lam, reason)


def _pick(
    rows: _Rows,
    Z: np.ndarray,
    screen: np.ndarray,
    den: np.ndarray,
    n_samples: float,
    max_selected: int,
    tol: float,
    blur: float,
) -> str:
    """The loop of `greedy`; returns why it stopped. Its compiled twin is `loops.select`."""
    Lam, kind = rows.Lam, screen.dtype
    a = rows.residual.astype(kind) @ screen
    score, change, v = np.empty_like(a), np.empty_like(a), np.empty_like(a)
    most = min(max_selected, len(a))
    while len(rows.order) < most:
        np.multiply(a, a, out=score)
        np.divide(score, den, out=score)
        i = int(score.argmax())
        best = float(score[i])
        if stopped := _stopped(best / n_samples, _NOTHING):
            return stopped
        slack = 2 * (2 * math.sqrt(best / Lam) + best / Lam) * blur if Lam else 0.0
        least = best - max(slack, _TIE * best)
        score[i] = -1
        if score[score.argmax()] >= least:
            score[i] = best
            near = np.flatnonzero(score >= least)
            near = near[np.isfinite(den[near])]
            exact_a, exact_den = rows.terms(Z[:, near])
            i = int(near[_lowest_of_ties(exact_a**2 / exact_den)])
        z = Z[:, i].astype(np.float64)
        if stopped := _stopped(rows.score(z) / n_samples, tol):
            return stopped
        u = rows.enter(i)
        u.astype(kind).dot(screen, out=v)
        np.multiply(v, rows.q[-1], out=change)
        np.subtract(a, change, out=a)
        np.multiply(v, v, out=v)
        np.subtract(den, v, out=den)
        if not Lam:
            # A column that depends on those chosen has nothing left to add.
            den[den <= _DEPENDENT * n_samples] = np.inf
        den[i] = np.inf
    return _reached(max_selected, len(a))


def greedy_from_gram(
    C: np.ndarray, b: np.ndarray, n_samples: float, lam: float, max_selected: int, tol: float
) -> GreedyFit:
    """The picks of `greedy` from the sums ``C = ZᵀZ`` and ``b = Zᵀy`` alone.

    Targets that share rows and weights share C: a step costs O(|S| p) in place of O(m p), by
    ``v = C[:, i] - Vᵀ V[:, i]``.

    Parameters
    ----------
    C : ndarray of shape (n_candidates, n_candidates)
    b : ndarray of shape (n_candidates,)
    n_samples, lam, max_selected, tol : as in `greedy`
    """
    Lam = n_samples * lam
    a = b.astype(np.float64)
    den = Lam + np.diagonal(C).astype(np.float64)
    V = np.empty((16, len(a)))
    order: list[int] = []
    q: list[float] = []
    rows: list[tuple[np.ndarray, float]] = []
    reason = _reached(max_selected, len(a))
    while len(order) < min(max_selected, len(a)):
        score = a * a / den
        i = _lowest_of_ties(score)
        if stopped := _stopped(score[i] / n_samples, tol):
            reason = stopped
            break
        t = len(order)
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
    return _fit(order, rows, q, n_samples, lam, reason)


def candidate_count(quantile: float = 0.95, confidence: float = 0.95) -> int:
    """How many random candidates hold one of the best, Theorem 1: ``log(η)/log(n/m)``, rounded up.

    Parameters
    ----------
    quantile : float
        The best of the draw is to be at least as good as this share of all candidates.
    confidence : float
        The probability, ``1 - η``, that it is.

    Examples
    --------
    >>> candidate_count()
    59
    >>> candidate_count(quantile=0.99)
    299
    """
    for name, value in (("quantile", quantile), ("confidence", confidence)):
        if not 0 < value < 1:
            raise ValueError(f"candidate_count: {name} must lie between 0 and 1. Got {value!r}.")
    return math.ceil(math.log1p(-confidence) / math.log(quantile))


def candidate_draws(
    rng: np.random.RandomState, n_total: int, size: int
) -> Callable[[int], np.ndarray]:
    """For each step, candidates in random order, ``size`` of them and one more per earlier step.

    Step t looks at the first ``size`` that are not chosen yet. The draws do not depend on what was
    chosen, so that every left-out row looks at (almost) the same candidates, and a source that no
    step draws is never run. They are made when asked for, at a cost that does not depend on
    ``n_total``, by Floyd's algorithm.
    """
    drawn: list[np.ndarray] = []

    def step(t: int) -> np.ndarray:
        while len(drawn) <= t:
            count = min(size + len(drawn), n_total)
            chosen: dict[int, None] = {}
            for last in range(n_total - count, n_total):
                j = int(rng.randint(last + 1))
                chosen[last if j in chosen else j] = None
            drawn.append(rng.permutation(np.fromiter(chosen, dtype=np.intp, count=count)))
        return drawn[t]

    return step


def greedy_sampled(
    columns: Columns,
    draws: Callable[[int], np.ndarray],
    size: int,
    n_total: int,
    y: np.ndarray,
    n_samples: float,
    lam: float,
    max_selected: int,
    tol: float,
) -> GreedyFit:
    """GreedyTL-59: as `greedy`, but each step looks at a random ``size`` of the candidates.

    Parameters
    ----------
    columns : callable
        Standardised columns of given indices, shape (n_rows, len(indices)).
    draws : callable
        From `candidate_draws`.
    size : int
    n_total : int
        Number of candidates.
    y, n_samples, lam, max_selected, tol : as in `greedy`
    """
    rows = _Rows(y, n_samples * lam)
    reason = _reached(max_selected, n_total)
    is_left = np.ones(n_total, dtype=bool)
    while len(rows.order) < min(max_selected, n_total):
        drawn = draws(len(rows.order))
        drawn = np.sort(drawn[is_left[drawn]][:size])
        Z = columns(drawn)
        a, den = rows.terms(Z)
        score = a * a / den
        found = _lowest_of_ties(score)
        if stopped := _stopped(rows.score(Z[:, found].astype(np.float64)) / n_samples, tol):
            reason = stopped.replace("the next candidate", f"the best of {len(drawn)} drawn")
            break
        rows.enter(int(drawn[found]))
        is_left[drawn[found]] = False
    return rows.result(n_samples, lam, reason)
