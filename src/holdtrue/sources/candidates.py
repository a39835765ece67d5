"""Candidates: columns of X and scores of sources side by side, read when they are needed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from holdtrue.errors import InputError, speaks
from holdtrue.sources.pool import PoolOn
from holdtrue.sources.scale import first_of_equals, standardised


class Candidates:
    """Columns of X and scores of sources, side by side, each read once.

    ``features`` are the columns of X that are candidates.

    Attributes
    ----------
    indices : ndarray of int, shape (n_candidates,)
        Place of each candidate where columns of X come first, then sources in pool order.
    equal_to : ndarray of int, shape (n_candidates,)
        The first candidate that equals each one, of those compared so far.
    has_copies : bool
        Whether some candidate equals another, of those compared so far.
    """

    def __init__(self, X: Any, features: np.ndarray, on: PoolOn, n_sources: int):
        self.X = X
        self.features = features
        self.on = on
        self.n_sources = n_sources
        self.indices = np.concatenate([features, X.shape[1] + np.arange(n_sources)])
        # Columns read so far, and where each candidate's is; -1 where it was not read.
        self._columns = np.empty((X.shape[0], 0), dtype=X.dtype)
        self._slot = np.full(len(self.indices), -1)
        self._n_read = 0
        self.equal_to = np.arange(len(self.indices))
        self.has_copies = False

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """How many candidates are columns of X; they come first."""
        return len(self.features)

    def without_sources(self) -> Candidates:
        """The columns of X alone."""
        return Candidates(self.X, self.features, self.on, 0)

    def matrix(self) -> np.ndarray:
        """Raw columns of all candidates, shape (n_rows, n_candidates)."""
        everything = np.arange(len(self))
        if self._n_read:
            return self.columns(everything)
        is_x = not self.n_sources and self.n_features == self.X.shape[1]
        stored = is_x and isinstance(self.X, np.ndarray) and self.X.flags.c_contiguous
        self._columns = self.X if stored else self._fetch(everything)
        self._slot, self._n_read = everything, len(self)
        return self._columns

    def columns(self, wanted: np.ndarray) -> np.ndarray:
        """Raw columns of the given candidates, shape (n_rows, n_wanted)."""
        new = wanted[self._slot[wanted] < 0]
        if len(new):
            stop = self._n_read + len(new)
            if stop > self._columns.shape[1]:
                larger = np.empty((len(self._columns), 2 * stop), dtype=self._columns.dtype)
                larger[:, : self._n_read] = self._columns[:, : self._n_read]
                self._columns = larger
            self._columns[:, self._n_read : stop] = self._fetch(new)
            self._slot[new] = np.arange(self._n_read, stop)
            self._n_read = stop
        return self._columns[:, self._slot[wanted]]

    def compare(self, read: np.ndarray, Z: np.ndarray) -> None:
        """Note which of the candidates ``read`` are equal, from their standardised columns."""
        first = read[first_of_equals(Z)]
        self.equal_to[read] = first
        self.has_copies = not np.array_equal(first, read)

    def compared(self, wanted: np.ndarray) -> np.ndarray:
        """For each of the wanted candidates the first that equals it, of those read so far."""
        if (self._slot[wanted] < 0).any():
            self.columns(wanted)
            read = np.flatnonzero(self._slot >= 0)
            self.compare(read, standardised(self.columns(read), np.ones(self.n_rows))[0])
        return self.equal_to[wanted]

    def _fetch(self, wanted: np.ndarray) -> np.ndarray:
        of_x = self.X[:, self.features[wanted[wanted < self.n_features]]]
        scores = self.on.columns(wanted[wanted >= self.n_features] - self.n_features)
        if scores.shape[1] == 0 and not sparse.issparse(of_x):
            return np.ascontiguousarray(of_x)
        columns = np.empty((self.X.shape[0], len(wanted)), dtype=self.X.dtype)
        columns[:, wanted < self.n_features] = of_x.toarray() if sparse.issparse(of_x) else of_x
        columns[:, wanted >= self.n_features] = scores
        return columns


# --- random candidates: GreedyTL-59 ---


@speaks
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
            raise InputError(f"{name} must lie between 0 and 1. Got {value!r}.")
    return math.ceil(math.log1p(-confidence) / math.log(quantile))


class CandidateDraws:
    """For each step, candidates in random order, ``size`` of them and one more per earlier step.

    Step t looks at the first ``size`` that are not chosen yet. The draws do not depend on what was
    chosen, so that every left-out row looks at (almost) the same candidates, and a source that no
    step draws is never run. They are made when asked for, at a cost that does not depend on
    ``n_total``.
    """

    def __init__(self, rng: np.random.RandomState, n_total: int, size: int):
        self.n_total = n_total
        self.size = size
        self._rng = rng
        self._drawn: list[np.ndarray] = []
        self._first = np.empty(n_total, dtype=np.intp)  # room to find what was drawn twice

    def step(self, t: int) -> np.ndarray:
        """Candidates drawn for step t, chosen before or not."""
        while len(self._drawn) <= t:
            self._drawn.append(self._different(min(self.size + len(self._drawn), self.n_total)))
        return self._drawn[t]

    def steps(self, start: int, stop: int, chosen: np.ndarray) -> list[np.ndarray]:
        """Candidates that steps ``start`` to ``stop - 1`` may look at, after those chosen."""
        beginnings = []
        is_free = np.ones(self.n_total, dtype=bool)
        is_free[chosen] = False
        for t in range(start, stop):
            n_free = np.cumsum(is_free[self.step(t)])
            enough = np.searchsorted(n_free, self.size + t - start)  # each step may choose one
            beginnings.append(self.step(t)[: enough + 1])
        return beginnings

    def _different(self, count: int) -> np.ndarray:
        """``count`` different candidates in random order."""
        if 4 * count > self.n_total:
            return self._rng.permutation(self.n_total)[:count]
        drawn = np.empty(0, dtype=np.intp)
        while len(drawn) < count:  # seldom more than once
            drawn = np.append(drawn, self._rng.randint(self.n_total, size=2 * count))
            place = np.arange(len(drawn))
            self._first[drawn[::-1]] = place[::-1]  # the last to be written is the first drawn
            drawn = drawn[self._first[drawn] == place]
        return drawn[:count]
