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

from collections.abc import Sequence
from typing import Any

import numpy as np

from holdtrue.sources.draws import CandidateDraws
from holdtrue.sources.kernel import (
    SCREEN,
    TIE,
    GreedyFit,
    least_to_win,
    of_drawn,
    reached,
    stopped,
)
from holdtrue.sources.scale import standardised

# Below this variance under other weights, a column of variance 1 has lost digits.
_LOST = 0.05
# Scores of this many pairs of search and column are held at a time: more would leave the cache.
_MOST_PAIRS = 2**19


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
    draws: CandidateDraws | None = None,
) -> list[GreedyFit]:
    """`kernel.greedy` for each row of Y, with weights and a λ of its own.

    Parameters
    ----------
    raw : ndarray of shape (n_rows, n_candidates)
        Columns as they are.
    Z : ndarray of shape (n_rows, n_candidates)
        The same, standardised with equal weights.
    Y : ndarray of shape (n_searches, n_rows)
        Targets, standardised with the weights of their search.
    weights : ndarray of shape (n_searches, n_rows)
    lams : sequence of float
        Above 0.
    max_selected, tol : as in `kernel.greedy`
    draws : CandidateDraws, optional
        Candidates that each step looks at, as in `kernel.SampledSearch`. Default: all.
    """
    lam = np.array(lams)
    fits: dict[int, GreedyFit] = {}
    for kind, numbers in (
        (np.float32, np.flatnonzero(lam >= SCREEN)),
        (np.float64, np.flatnonzero(lam < SCREEN)),
    ):
        if len(numbers):
            searches = _Searches(raw, Z.astype(kind, copy=False), Y, weights, lam, numbers)
            fits.update(searches.run(max_selected, tol, draws))
    return [fits[number] for number in range(len(Y))]


class _Searches:
    """Searches that go on; the first axis of every array but raw and Z is theirs."""

    _PER_SEARCH = ("number", "weight", "root", "n", "lam", "Lam", "residual", "a", "den", "is_free",
                   "H", "U", "order", "q", "diagonal")  # fmt: skip

    def __init__(
        self,
        raw: np.ndarray,
        Z: np.ndarray,
        Y: np.ndarray,
        weights: np.ndarray,
        lam: np.ndarray,
        numbers: np.ndarray,
    ):
        self.raw, self.Z, self.number = raw, Z, numbers
        self.weight, self.lam, self.residual = weights[numbers], lam[numbers], Y[numbers]
        self.root, self.n = np.sqrt(self.weight), self.weight.sum(axis=1)
        self.Lam = self.n * self.lam
        self.U = np.empty((len(numbers), 0, len(raw)))
        self.order = np.empty((len(numbers), 0), dtype=np.intp)
        self.q = self.diagonal = np.empty((len(numbers), 0))
        self.is_free = np.ones((len(numbers), 0), dtype=bool)
        self.H = np.empty((len(numbers), 0, 0))
        share = (self.weight / self.n[:, None]).astype(Z.dtype)
        variance = share @ np.square(Z) - np.square(share @ Z)
        self._standardise_lost(variance)
        variance *= (self.Lam + self.n).astype(Z.dtype)[:, None]
        self.den = variance
        self.den[self.den == 0] = np.inf
        # What a step needs and no longer: to take it anew from the system costs as much as a step.
        self.room, self.extra = np.empty((2, *variance.shape), dtype=Z.dtype)
        self.a = self._products(self.residual).copy()

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

    def _best(self, t: int, draws: CandidateDraws | None) -> np.ndarray:
        """The candidate of the largest score, of each search."""
        drawn = None if draws is None else draws.step(t)
        a, den = (self.a, self.den) if drawn is None else (self.a[:, drawn], self.den[:, drawn])
        score = np.square(a, out=self.room[: len(a)] if drawn is None else None)
        score /= den
        if draws is not None:
            is_free = self.is_free[:, drawn]
            score[~is_free | (np.cumsum(is_free, axis=1) > draws.size)] = -1
        each = np.arange(len(score))
        first = score.argmax(axis=1)
        best = score[each, first].astype(np.float64)
        least = least_to_win(best, self.n, self.lam, t, score.dtype)
        score[each, first] = -1
        second = score[each, score.argmax(axis=1)]
        taken = first if drawn is None else drawn[first]
        unclear = np.flatnonzero((second >= least) & (best > 0))
        if not len(unclear):
            return taken
        score[unclear, first[unclear]] = best[unclear]
        search, near = np.nonzero(score[unclear] >= least[unclear, None])
        search = unclear[search]
        near = near if drawn is None else drawn[near]
        is_open = np.isfinite(self.den[search, near])
        search, near = search[is_open], near[is_open]
        z = self._columns(near, search)
        a_squared = np.einsum("ij,ij->i", self.residual[search], z) ** 2
        for f in unclear:
            part = slice(*np.searchsorted(search, [f, f + 1]))
            if t > len(self.raw):
                c = np.einsum("ij,ij->i", z[part] @ self.H[f], z[part])
            else:
                g = z[part] @ self.U[f, :t].T
                c = self.n[f] - np.einsum("ij,ij->i", g, g)
            exact = a_squared[part] / (self.Lam[f] + np.maximum(c, 0.0))
            taken[f] = near[part][exact >= exact.max() * (1 - TIE)].min()
        return taken

    def run(
        self, max_selected: int, tol: float, draws: CandidateDraws | None
    ) -> dict[int, GreedyFit]:
        """The fits, by number."""
        n_columns = self.Z.shape[1]
        fits: dict[int, GreedyFit] = {}
        if draws is not None:
            self.is_free = np.ones(self.a.shape, dtype=bool)
        for t in range(min(max_selected, n_columns)):
            if t == self.U.shape[1]:
                self._make_room(t + 16)
            taken = self._best(t, draws)
            z = self._columns(taken)
            u = self._outside(z, t)
            d = self.Lam + np.einsum("ij,ij->i", u, z)
            a = np.einsum("ij,ij->i", self.residual, z)
            reasons = [stopped(fall, tol, t) for fall in (a * a / d / self.n).tolist()]
            if any(reasons):
                fits.update(self._fits(t, reasons, draws))
                going = np.array([not reason for reason in reasons])
                self._keep(going)
                taken, u, d, a = taken[going], u[going], d[going], a[going]
            if not len(taken):
                return fits
            self._enter(t, taken, u, np.sqrt(d), a)
        reasons = [reached(max_selected, n_columns)] * len(self.number)
        return fits | self._fits(min(max_selected, n_columns), reasons, None)

    def _outside(self, z: np.ndarray, t: int) -> np.ndarray:
        """``Hz``, of each search: ``z - Uᵀ(Uz)``, or from m steps on by H itself."""
        if t < z.shape[1]:
            U = self.U[:, :t]
            return z - ((U @ z[:, :, None]).transpose(0, 2, 1) @ U)[:, 0]
        if t == z.shape[1]:
            self.H = np.eye(t) - self.U[:, :t].transpose(0, 2, 1) @ self.U[:, :t]
        return (self.H @ z[:, :, None])[:, :, 0]

    def _enter(
        self, t: int, taken: np.ndarray, u: np.ndarray, root: np.ndarray, a: np.ndarray
    ) -> None:
        """Add one candidate to each search, as `kernel.greedy` does."""
        u /= root[:, None]
        q = a / root
        self.residual -= q[:, None] * u
        self.U[:, t], self.order[:, t], self.q[:, t], self.diagonal[:, t] = u, taken, q, root
        if t >= u.shape[1]:
            self.H -= u[:, :, None] * u[:, None, :]
        v = self._products(u)
        each = np.arange(len(taken))
        self.a -= np.multiply(v, q.astype(v.dtype)[:, None], out=self.extra[: len(v)])
        v *= v
        self.den -= v
        self.den[each, taken] = np.inf
        if self.is_free.size:
            self.is_free[each, taken] = False

    def _make_room(self, more: int) -> None:
        for name in ("U", "order", "q", "diagonal"):
            steps = getattr(self, name)
            room = np.empty((len(steps), more, *steps.shape[2:]), dtype=steps.dtype)
            setattr(self, name, np.concatenate([steps, room], axis=1))

    def _keep(self, going: np.ndarray) -> None:
        """Drop the searches that are over."""
        search, column = self.lost_at
        is_going = going[search]
        self.lost = self.lost[is_going]
        self.lost_at = (np.cumsum(going) - 1)[search[is_going]], column[is_going]
        for name in self._PER_SEARCH:
            setattr(self, name, getattr(self, name)[going])

    def _fits(
        self, t: int, reasons: Sequence[str], draws: CandidateDraws | None
    ) -> dict[int, GreedyFit]:
        """Fits of t candidates, of the searches with a reason to stop."""
        fits = {}
        for f, reason in enumerate(reasons):
            if reason:
                order = self.order[f, :t]
                R = self.U[f, :t] @ self._columns(order, np.full(t, f)).T
                R[np.diag_indices(t)] = self.diagonal[f, :t]
                fits[int(self.number[f])] = GreedyFit(
                    order.copy(), R, self.q[f, :t].copy(), float(self.n[f]), float(self.lam[f]),
                    reason if draws is None else of_drawn(reason, draws.size),
                )  # fmt: skip
        return fits
