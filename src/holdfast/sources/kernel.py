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
(1), on the scale of the columns   `TargetFit`, `fit_target`
leave-one-out, selection repeated  `held_out_errors`
leave-one-out, selection kept      `ridge_leave_one_out`
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
   are scored again in float64, from the definition: the picks are those of float64. Scores that
   differ by less than float64's rounding are a tie, and the lowest column wins.
5. δ is tested before a candidate is added: the one that gains too little stays out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

Columns = Callable[[np.ndarray | slice], np.ndarray]

_EPS = float(np.finfo(np.float64).eps)
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
    def weight_path(self) -> np.ndarray:
        """Weights of the sizes 0..k, shape (k + 1, k), in order of entry: ``R_t⁻¹ q_t``."""
        k = len(self.order)
        path = np.zeros((k + 1, k))
        if k:
            # R is triangular, so the inverse of its leading block is the leading block.
            inverse = solve_triangular(self.R, np.eye(k))
            path[1:] = np.cumsum(inverse * self.q, axis=1).T
        return path

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
        entered = self.entered
        g = entered @ z
        u = z - g @ entered
        d = self.Lam + float(u @ z)
        self._next = g, u, math.sqrt(d), float(self.residual @ z)
        return self._next[3] ** 2 / d

    def enter(self, i: int) -> np.ndarray:
        """Add candidate i, whose column was scored last; returns ``H z / sqrt(d)``."""
        g, u, root, a = self._next
        t = len(self.order)
        if t == len(self._U):
            self._U = np.concatenate([self._U, np.empty_like(self._U)])
        u /= root
        self.residual -= a / root * u
        self._U[t] = u
        self.order.append(int(i))
        self.q.append(a / root)
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
    Z: np.ndarray, y: np.ndarray, n_samples: float, lam: float, max_selected: int, tol: float
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
    Lam = n_samples * lam
    rows = _Rows(y, Lam)
    # Departure 4. Without a strong penalty `den` may come near zero, too near for float32.
    screen = Z.astype(np.float32, copy=False) if lam >= _SCREEN else Z
    kind = screen.dtype
    a = y.astype(kind) @ screen
    den = np.full(len(a), Lam + n_samples, dtype=kind)
    score, change, v = np.empty_like(a), np.empty_like(a), np.empty_like(a)
    # What rounding may do to a and den, both of which are at most about m.
    blur = 32 * float(np.finfo(kind).eps) * math.sqrt(len(y)) * n_samples
    reason = _reached(max_selected, len(a))
    while len(rows.order) < min(max_selected, len(a)):
        np.multiply(a, a, out=score)
        score /= den
        i = int(score.argmax())
        best = float(score[i])
        if stopped := _stopped(best / n_samples, _NOTHING):
            reason = stopped
            break
        slack = 2 * (2 * math.sqrt(best / Lam) + best / Lam) * blur if Lam else 0.0
        least = best - max(slack, _TIE * best)
        score[i] = -1
        if score.max(initial=-1) >= least:
            score[i] = best
            near = np.flatnonzero(score >= least)
            near = near[np.isfinite(den[near])]
            exact_a, exact_den = rows.terms(Z[:, near])
            i = int(near[_lowest_of_ties(exact_a**2 / exact_den)])
        z = Z[:, i].astype(np.float64)
        if stopped := _stopped(rows.score(z) / n_samples, tol):
            reason = stopped
            break
        u = rows.enter(i)
        np.dot(u.astype(kind), screen, out=v)
        np.multiply(v, rows.q[-1], out=change)
        a -= change
        np.multiply(v, v, out=change)
        den -= change
        if not Lam:
            # A column that depends on those chosen has nothing left to add.
            den[den <= _DEPENDENT * n_samples] = np.inf
        den[i] = np.inf
    return rows.result(n_samples, lam, reason)


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
    while len(rows.order) < min(max_selected, n_total):
        drawn = draws(len(rows.order))
        drawn = np.sort(drawn[~np.isin(drawn, rows.order)][:size])
        Z = columns(drawn)
        a, den = rows.terms(Z)
        score = a * a / den
        found = _lowest_of_ties(score)
        if stopped := _stopped(rows.score(Z[:, found].astype(np.float64)) / n_samples, tol):
            reason = stopped.replace("the next candidate", f"the best of {len(drawn)} drawn")
            break
        rows.enter(int(drawn[found]))
    return rows.result(n_samples, lam, reason)


def standardised(Z: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``sqrt(w) (Z - mean)/scale``, the weighted means and the scales of the columns.

    A constant column becomes zeros and has scale 1.

    Parameters
    ----------
    Z : ndarray of shape (n_rows, n_columns)
    weight : ndarray of shape (n_rows,)
        Positive.
    """
    n = weight.sum()
    share = (weight / n).astype(Z.dtype, copy=False)
    mean = share @ Z
    made = np.subtract(Z, mean, order="C")
    made *= np.sqrt(weight).astype(Z.dtype, copy=False)[:, None]
    scale = np.sqrt(np.einsum("ij,ij->j", made, made) / n)
    # What the subtraction leaves of a constant is rounding, at most about eps of its size.
    rounding = 8 * np.finfo(Z.dtype).eps * math.sqrt(len(Z)) * np.abs(mean)
    constant = scale <= np.maximum(rounding, np.finfo(Z.dtype).tiny)
    scale[constant] = 1
    made /= scale
    if constant.any():
        made[:, constant] = 0
    return made, mean, scale


@dataclass(frozen=True, eq=False)
class TargetFit:
    """A `GreedyFit` with what brings its weights to the scale of the raw columns.

    ``h(x) = ȳ + s_y Σ w_j (x_j - mean_j)/scale_j`` over the j of ``greedy.order``.
    """

    greedy: GreedyFit
    mean: np.ndarray
    scale: np.ndarray
    y_mean: float
    y_scale: float

    @property
    def effects(self) -> np.ndarray:
        """What one standard deviation of each chosen candidate adds to the prediction."""
        return self.y_scale * self.greedy.weight_path[-1]

    def raw(self) -> tuple[float, np.ndarray]:
        """Intercept, and weights of the chosen candidates as they stand."""
        weights = self.effects / self.scale
        return self.y_mean - float(weights @ self.mean), weights

    def predictions(self, Z: np.ndarray) -> np.ndarray:
        """Of every size 0..k for rows of the chosen candidates, shape (k + 1, n_rows)."""
        made = (Z - self.mean) / self.scale
        return self.y_mean + self.y_scale * (self.greedy.weight_path @ made.T)


@dataclass(frozen=True)
class Search:
    """How to search: the parameters of `greedy`, and the draws where there are any."""

    lam: float
    max_selected: int
    tol: float
    n_total: int
    draws: Callable[[int], np.ndarray] | None = None
    size: int = 0


def fit_target(columns: Columns, y: np.ndarray, weight: np.ndarray, search: Search) -> TargetFit:
    """Standardise, select and bring back to the scale of the columns.

    Parameters
    ----------
    columns : callable
        Raw columns of given indices, or of ``slice(None)`` for all, shape (n_rows, n_columns).
    y, weight : ndarray of shape (n_rows,)
        Rows of weight 0 are left out.
    search : Search
    """
    return next(fit_target_for([search.lam], columns, y, weight, search))


def fit_target_for(
    lams: Sequence[float], columns: Columns, y: np.ndarray, weight: np.ndarray, search: Search
) -> Iterator[TargetFit]:
    """`fit_target` for several λ, which share what does not depend on it."""
    used = weight > 0
    w = weight[used]
    n = float(w.sum())
    target, y_mean, y_scale = standardised(y[used][:, None].astype(np.float64), w)

    def made(indices: np.ndarray | slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        raw = columns(indices)
        return standardised(raw if used.all() else raw[used], w)

    if search.draws is None:
        Z, means, scales = made(slice(None))
    limits = (search.max_selected, search.tol)
    for lam in lams:
        if search.draws is None:
            fit = greedy(Z, target[:, 0], n, lam, *limits)
            mean, scale = means[fit.order], scales[fit.order]
        else:
            fit = greedy_sampled(
                lambda indices: made(indices)[0],
                *(search.draws, search.size, search.n_total, target[:, 0], n, lam, *limits),
            )
            _, mean, scale = made(fit.order)
        yield TargetFit(fit, mean, scale, float(y_mean[0]), float(y_scale[0]))


def fit_targets(
    columns: Columns, Y: np.ndarray, weight: np.ndarray, search: Search
) -> list[TargetFit]:
    """`fit_target` for every column of Y with the same rows and weights, through one Gram matrix.

    Parameters
    ----------
    columns, weight, search : as in `fit_target`; ``search.draws`` must be None
    Y : ndarray of shape (n_rows, n_targets)
    """
    used = weight > 0
    w = weight[used]
    n = float(w.sum())
    Z, mean, scale = standardised(columns(slice(None))[used].astype(np.float64, copy=False), w)
    T, y_mean, y_scale = standardised(Y[used].astype(np.float64, copy=False), w)
    C, B = Z.T @ Z, Z.T @ T
    fits = []
    for t in range(Y.shape[1]):
        fit = greedy_from_gram(C, B[:, t], n, search.lam, search.max_selected, search.tol)
        fits.append(
            TargetFit(fit, mean[fit.order], scale[fit.order], float(y_mean[t]), float(y_scale[t]))
        )
    return fits


def held_out_errors(
    lams: Sequence[float],
    columns: Columns,
    y: np.ndarray,
    folds: Iterable[tuple[np.ndarray, np.ndarray]],
    search: Search,
) -> list[np.ndarray]:
    """Mean squared errors on left-out rows, one array for each λ; everything is fitted anew.

    Means, scales and selection are those of the other rows. With the selection kept, the error
    would fall on pure noise. Entry t of an array is the error at size t; paths that stop earlier
    stay as they are, so that the last entry is the error of the whole procedure.

    Parameters
    ----------
    lams : sequence of float
    columns, y, search : as in `fit_target`
    folds : iterable of (weight to fit with, weight to test with), each of shape (n_rows,)
    """
    errors: list[list[np.ndarray]] = [[] for _ in lams]
    weight = 0.0
    for train, test in folds:
        held_out = np.flatnonzero(test)
        for own, fit in zip(errors, fit_target_for(lams, columns, y, train, search), strict=True):
            predicted = fit.predictions(columns(fit.greedy.order)[held_out])
            own.append((predicted - y[held_out]) ** 2 @ test[held_out])
        weight += test.sum()
    totals = []
    for own in errors:
        sizes = np.arange(max(map(len, own)))
        padded = [path[np.minimum(sizes, len(path) - 1)] for path in own]
        totals.append(np.sum(padded, axis=0) / weight)
    return totals


def ridge_leave_one_out(
    Z: np.ndarray,
    y: np.ndarray,
    weight: np.ndarray,
    lams: Sequence[float],
    one: np.ndarray | float = 1.0,
) -> np.ndarray:
    """Left-out predictions of ridge regression on all columns of Z, shape (n_lams, n_rows).

    ``y_i - r_i/(1 - w_i/m - h_ii)``: the residual of row i over what the row leaves to the others.
    Exact for columns as they stand; means are fitted anew, scales and selection are not.

    Parameters
    ----------
    Z : ndarray of shape (n_rows, n_columns)
        Standardised.
    y : ndarray of shape (n_rows,)
        Standardised.
    weight : ndarray of shape (n_rows,)
    lams : sequence of float
    one : ndarray of shape (n_rows,) or float
        Share of a row to leave out: 1/3 for a row that stands for three.
    """
    n = weight.sum()
    values, vectors = np.linalg.eigh(Z @ Z.T)
    values = np.maximum(values, 0)
    image = vectors.T @ y
    predicted = np.empty((len(lams), len(y)))
    for row, lam in enumerate(lams):
        shrink = values / (values + n * lam)
        leverage = weight / n + vectors**2 @ shrink
        residual = y - vectors @ (shrink * image)
        predicted[row] = y - residual / np.maximum(1 - one * leverage, _EPS)
    return predicted / np.sqrt(weight)
