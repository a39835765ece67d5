"""Many searches of the same columns, one step of all of them at a time.

Left-out rows, targets and penalties change the weights, y and λ, but not the columns. The notation
is that of `kernel`; ``Z`` here are the columns standardised with equal weights. Under the weights w
of one search, column j of Z has a mean ``μ_j`` and a deviation ``σ_j``, and `kernel` searches
``sqrt(w) (Z_j - μ_j)/σ_j``. The residual and every u are orthogonal to ``sqrt(w)``, so that μ falls
out of ``v_j = u·sqrt(w) (Z_j - μ_j)/σ_j``. Hence ``σ v``, ``a' = σ a`` and ``den' = σ² den`` follow
from products with Z itself, one matrix product for all searches; and ``a'²/den' = a²/den``, the
score.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from holdtrue.sources.candidates import Candidates
from holdtrue.sources.draws import CandidateDraws
from holdtrue.sources.kernel import SCREEN, TIE, GreedyFit, least_to_win, reached, stopped
from holdtrue.sources.scale import standardised

# Below this variance under other weights, a column of variance 1 has lost digits.
_LOST = 0.05
# Makes UᵀU, whose largest eigenvalue is at most 1, positive definite.
_NOTHING = 1e-13
# Scores of this many pairs of search and column are held at a time: more would leave the cache.
_MOST_PAIRS = 2**19
# Columns are read for this many steps of GreedyTL-59 at a time.
STEPS = 16


def batches(n_searches: int, n_columns: int) -> list[slice]:
    """Searches to run together."""
    size = max(_MOST_PAIRS // max(n_columns, 1), 1)
    return [slice(start, start + size) for start in range(0, n_searches, size)]


def greedy_together(
    raw: np.ndarray,
    Z: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray,
    lams: Sequence[float],
    max_selected: int,
    tol: float,
) -> list[GreedyFit]:
    """`kernel.greedy` for each row of Y, with weights and a λ above 0 of its own.

    ``raw`` are the columns as they are, ``Z`` the same standardised with equal weights. Y and the
    weights have shape (n_searches, n_rows); Y is standardised with the weights of its search.
    """
    fits: dict[int, GreedyFit] = {}
    for searches in _by_precision(Y, weights, lams):
        searches.look_at(np.arange(raw.shape[1]), raw, Z)
        for _ in range(min(max_selected, raw.shape[1])):
            fits.update(searches.step(tol))
            if not len(searches.number):
                break
        fits.update(searches.rest(reached(max_selected, raw.shape[1])))
    return [fits[number] for number in range(len(Y))]


def sampled_together(
    candidates: Candidates,
    draws: CandidateDraws,
    Y: np.ndarray,
    weights: np.ndarray,
    lams: Sequence[float],
    max_selected: int,
    tol: float,
) -> list[GreedyFit]:
    """GreedyTL-59: `greedy_together` where a step looks at the candidates drawn for it alone.

    Columns are read for a few steps at a time; those that no step draws are never read.
    """
    fits: dict[int, GreedyFit] = {}
    most = min(max_selected, draws.n_total)
    for searches in _by_precision(Y, weights, lams):
        for t in range(most):
            if t % STEPS == 0:
                steps = draws.steps(t, min(t + STEPS, most), searches.order[:, :t])
                drawn = np.unique(np.concatenate(steps))
                first_equal = candidates.compared(drawn)
                looked_at = np.unique(first_equal)
                raw = candidates.columns(looked_at)
                searches.look_at(looked_at, raw, standardised(raw, np.ones(len(raw)))[0])
                searches.exclude(candidates.equal_to)
            places = np.searchsorted(looked_at, candidates.equal_to[steps[t % STEPS]])
            fits.update(searches.step(tol, places, draws.size))
            if not len(searches.number):
                break
        fits.update(searches.rest(reached(max_selected, draws.n_total)))
    return [fits[number] for number in range(len(Y))]


def _by_precision(Y: np.ndarray, weights: np.ndarray, lams: Sequence[float]) -> Iterator[_Searches]:
    """Searches in float32, and those in float64 because of a small λ (`kernel`, departure 4)."""
    lam = np.array(lams)
    for kind, is_of_kind in ((np.float32, lam >= SCREEN), (np.float64, lam < SCREEN)):
        if is_of_kind.any():
            yield _Searches(Y, weights, lam, np.flatnonzero(is_of_kind), kind)


class _Searches:
    """Searches that go on; the first axis of every array but searched, raw and Z is theirs."""

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
        """Go on with these columns: candidates ``searched``, as they are and standardised."""
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
            square = entered.transpose(0, 2, 1) @ entered + _NOTHING * np.eye(entered.shape[2])
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
        """Columns standardised in float64, each for its search; by default one for each."""
        z = self.raw[:, wanted].T.astype(np.float64)
        weight, n = self.weight[search], self.n[search, None]
        z -= np.einsum("ij,ij->i", z, weight)[:, None] / n
        z *= self.root[search]
        scale = np.sqrt(np.einsum("ij,ij->i", z, z)[:, None] / n)
        scale[scale == 0] = 1
        z /= scale
        return z

    def _best(self, places: np.ndarray | None, n_looked_at: int) -> np.ndarray:
        """Place of the candidate of the largest score, of each search; -1 where none is free."""
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
        least = least_to_win(np.maximum(best, 0), self.n, self.lam, self.size, score.dtype)
        score[each, first] = -np.inf
        second = score[each, score.argmax(axis=1)]
        taken = first if places is None else places[first]
        taken[best < 0] = -1
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
            taken[f] = near[part][exact >= exact.max() * (1 - TIE)].min()
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
        reasons = [stopped(fall, tol, self.size) for fall in falls.tolist()]
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
        """Add one candidate to each search, as `kernel.greedy` does."""
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
                fits[int(self.number[f])] = GreedyFit(
                    self.order[f, :t].copy(), R, self.q[f, :t].copy(), float(self.n[f]),
                    float(self.lam[f]), reason,
                )  # fmt: skip
        return fits
