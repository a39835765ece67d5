"""Random candidates for GreedyTL-59: how many to draw, and which ones (Theorem 1)."""

from __future__ import annotations

import math

import numpy as np

from holdtrue.errors import InputError, speaks


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
        """What the steps ``start`` to ``stop - 1`` can look at, if ``chosen`` are those before."""
        beginnings = []
        is_free = np.ones(self.n_total, dtype=bool)
        is_free[chosen] = False
        for t in range(start, stop):
            n_free = np.cumsum(is_free[self.step(t)])
            enough = np.searchsorted(n_free, self.size + t - start)  # each step may choose one
            beginnings.append(self.step(t)[: enough + 1])
        return beginnings

    def _different(self, count: int) -> np.ndarray:
        """That many different candidates in random order."""
        if 4 * count > self.n_total:
            return self._rng.permutation(self.n_total)[:count]
        drawn = np.empty(0, dtype=np.intp)
        while len(drawn) < count:  # seldom more than once
            drawn = np.append(drawn, self._rng.randint(self.n_total, size=2 * count))
            place = np.arange(len(drawn))
            self._first[drawn[::-1]] = place[::-1]  # the last to be written is the first drawn
            drawn = drawn[self._first[drawn] == place]
        return drawn[:count]
