"""What a leaf adds to the criterion of its tree, in ticks, from sums over its rows.

Paper
-----
As `tree`. Log loss and squared error, of children that are shrunk to their parent, are ours.

Notation
--------
=============  ====================================================================================
sums           of a leaf: class counts (K,); of a numeric target rows, Σ y, Σ y² (3,), with y minus
               the mean of all rows
term           the leaf's share of the criterion times m, in ticks of ``1/scale``
c_k, n         class counts of a node and their sum
P_k, q_k       shares of the parent, of the child: ``q_k = (c_k + w P_k)/(n + w)``
P⁻, q⁻         shares that a node gives to one of its rows of class j if that row is left out of the
               node *and of every ancestor*: ``q⁻_jk = (c_k - [k=j] + w P⁻_jk)/(n - 1 + w)``
α, β           of a numeric target: left out, the row y is predicted ``α + β y``
state          what a child needs of its parent: nothing, or P⁻_jj by class (K,), or (α, β)
=============  ====================================================================================

Where to find it
----------------
==========================================  =====================================
(1), (2), (7), information gain, majority   `CountTerms`
left-out log loss of the shrunk shares      `ShareTerms`
left-out squared error of the shrunk mean   `MeanTerms`
shares of children                          `child_shares`
==========================================  =====================================

Why that state suffices: the rows of class j of a node have passed the same ancestors, and each
ancestor loses the same counts with any of them, so that they share one left-out prediction. A child
needs its counts and its parent's state, nothing of the rows. With log loss the diagonal alone
suffices, because ``q⁻_jj`` depends on ``P⁻_jj`` only. With a number the left-out mean of any
ancestor is linear in y. With the row kept in P a split into single rows would gain a false nat.

Departures
----------
1. Ticks: departure 2 of `tree`. A row's log loss is a whole number of ticks, so that rows alone
   in their leaves cost together exactly what they cost their parent.
2. Squared errors are not whole: gains are compared in steps of 2⁻³² of the root's error.
3. The weight w of the parent is 1. The root is the child of a uniform parent, which is π of
   `shrunk`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from holdtrue.categories.kernel import LEAVE_ONE_OUT, TERMS, entropy_terms, ginger_gain, row_sums

SHRUNK = ("log_loss", "squared_error")
# By their place the compiled loops know them.
CRITERIA = (*TERMS, *SHRUNK)
COARSE = 2.0**-16  # gains are compared in steps of 65,536 ticks, which rounding does not reach
NO_STATE = np.zeros(0)


def child_shares(counts: np.ndarray, parent: np.ndarray) -> np.ndarray:
    """Shares of children, ``q_k = (c_k + P_k)/(n + 1)``; the parent's for a value not seen.

    The parent of the root has the shares ``1/K``.
    """
    return (counts + parent) / (row_sums(counts) + 1)[:, None]


def leaf_terms(criterion: str, root: np.ndarray) -> CountTerms | ShareTerms | MeanTerms:
    """Terms of a criterion for trees whose root has these sums."""
    if criterion == "squared_error":
        return MeanTerms(root)
    n_samples = int(root.sum())
    return (ShareTerms if criterion == "log_loss" else CountTerms)(criterion, len(root), n_samples)


class CountTerms:
    """`kernel.TERMS`, rounded: a leaf's term depends on its own class counts alone."""

    number: int  # by which the compiled loops know the criterion
    width: int  # sums of a leaf
    scale: float  # ticks in 1
    table: np.ndarray  # ``c log₂ c`` in ticks, or ``log c``, for criteria that need it

    def __init__(self, criterion: str, n_classes: int, n_samples: int):
        self.criterion = criterion
        self.number = CRITERIA.index(criterion)
        self.width = n_classes
        self.uses_logs = TERMS.get(criterion) is entropy_terms
        # No sum reaches 2^52 ticks, so that all of them are exact in float64. Chance, 1 - 1/K, is
        # a whole number of ticks: rows charged with it add up to chance to the last bit.
        largest = 2.0 * n_samples * self._largest_loss(n_samples)
        self.scale = n_classes * 2.0 ** (51 - math.ceil(math.log2(largest * n_classes)))
        # c log₂ c; one table for all routes, whose logarithms may differ in the last bit.
        self.table = self._logs(n_samples)

    def _logs(self, n_samples: int) -> np.ndarray:
        count = np.arange(n_samples + 1 if self.uses_logs else 1, dtype=np.float64)
        return np.rint(count * np.log2(np.maximum(count, 1.0)) * self.scale)

    def _largest_loss(self, n_samples: int) -> float:
        return math.log2(n_samples + 1) if self.uses_logs else 1.0

    def root(self, sums: np.ndarray) -> tuple[float, np.ndarray]:
        """Term and state of the root."""
        terms, states = self.children(sums[None], self.above_root)
        return float(terms[0]), states[0]

    @property
    def above_root(self) -> np.ndarray:
        """State of the root's parent."""
        return NO_STATE

    def terms(self, sums: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Terms of leaves with these sums (n_leaves, width), none of them empty.

        ``state`` is that of their parent, or one per leaf.
        """
        if self.uses_logs:
            return entropy_terms(sums, lambda counts: self.table[counts.astype(np.int64)])
        return np.rint(TERMS[self.criterion](sums) * self.scale)

    def children(self, sums: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Terms and states of leaves, as in `terms`."""
        return self.terms(sums, state), np.zeros((len(sums), 0))

    def charged(self, terms: Any, total: Any) -> Any:
        """Terms of leaves with ``total`` rows, none of them worse than chance (departure 4)."""
        if self.criterion not in LEAVE_ONE_OUT:
            return terms
        return np.minimum(terms, np.rint(total * ((1.0 - 1.0 / self.width) * self.scale)))

    @property
    def leaves_out(self) -> bool:
        """Whether the criterion estimates the loss on new rows."""
        return self.criterion in (*LEAVE_ONE_OUT, *SHRUNK)

    def rows(self, sums: np.ndarray) -> np.ndarray:
        """Rows of leaves."""
        return sums.sum(axis=1)

    def mixed(self, sums: np.ndarray) -> np.ndarray:
        """Mask of leaves whose rows differ in their labels."""
        return sums.max(axis=1) < self.rows(sums)

    def cell_sums(
        self, cell: np.ndarray, n_cells: int, label: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        """Sums over the rows of each cell, shape (n_cells, width)."""
        key = cell * self.width + label
        return np.bincount(key, weight, minlength=n_cells * self.width).reshape(n_cells, -1)

    def gain(
        self, child: np.ndarray, label: np.ndarray, weight: np.ndarray, state: np.ndarray
    ) -> tuple[float, float]:
        """What a split gains, in rows or losses, and its standard error (departure 5 of `tree`).

        ``child`` is that of each row, from 0, none of them empty; ``state`` that of the leaf.
        """
        return ginger_gain(self.cell_sums(child, int(child.max()) + 1, label, weight))


@lru_cache(maxsize=1)  # all trees of a forest, and all that is said of a tree, need the same one
def _log_table(n_samples: int) -> np.ndarray:
    """``log c`` for c up to n_samples, 0 for none."""
    return np.log(np.maximum(np.arange(n_samples + 1, dtype=np.float64), 1.0))


class ShareTerms(CountTerms):
    """Left-out log loss of shares shrunk to the parent's, the row left out of every ancestor."""

    def _largest_loss(self, n_samples: int) -> float:
        return 16.0  # nats a row, on average over the tree

    def _logs(self, n_samples: int) -> np.ndarray:
        return _log_table(n_samples)

    @property
    def above_root(self) -> np.ndarray:
        """All classes alike."""
        return np.full(self.width, 1 / self.width)

    def terms(self, sums: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Terms of leaves with these sums, none of them empty."""
        # A row alone costs the very number that `children` has for it in the parent.
        log = np.log(np.where(sums > 0, sums - 1 + state, 1.0))
        losses = np.rint((self.table[self.rows(sums).astype(np.int64)][:, None] - log) * self.scale)
        return np.einsum("vk,vk->v", sums, losses)

    def children(self, sums: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Terms and states of leaves."""
        states = self._states(sums, state)
        return np.einsum("vk,vk->v", sums, np.rint(-np.log(states) * self.scale)), states

    def _states(self, sums: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Left-out share of a row's own class, by leaf and class."""
        total = self.rows(sums)[:, None]
        return np.where(sums > 0, (sums - 1 + state) / total, state / (total + 1))

    def gain(
        self, child: np.ndarray, label: np.ndarray, weight: np.ndarray, state: np.ndarray
    ) -> tuple[float, float]:
        """What a split gains, summed over the rows, and its standard error."""
        sums = self.cell_sums(child, int(child.max()) + 1, label, weight)
        return _paired(np.log(self._states(sums, state)) - np.log(state), sums)


class MeanTerms(CountTerms):
    """Left-out squared error of means shrunk to the parent's, as `ShareTerms` has it of shares."""

    def __init__(self, root: np.ndarray):
        self.criterion, self.number, self.width = (
            "squared_error",
            CRITERIA.index("squared_error"),
            3,
        )
        self.uses_logs, self.table, self.scale = False, NO_STATE, 1.0
        error = self.root(root)[0]
        self.scale = 2.0**48 / error if error > 0 else 1.0

    def root(self, sums: np.ndarray) -> tuple[float, np.ndarray]:
        """Term and state of the root, the plain mean of the other rows."""
        n, total, squares = sums
        if n < 2:
            return 0.0, np.array([total, 0.0])
        residual = n / (n - 1)
        error = residual**2 * max(squares - total**2 / n, 0.0)
        return float(error * self.scale), np.array([total / (n - 1), -1 / (n - 1)])

    def terms(self, sums: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Terms of leaves with these sums, none of them empty."""
        n = sums[:, 0]
        alpha, beta = state[..., 0], state[..., 1]
        mean = sums[:, 1] / n
        squares = np.maximum(sums[:, 2] - n * mean * mean, 0.0)
        level = ((1.0 - beta) * mean - alpha) / n
        slope = (n + (1.0 - beta)) / n
        return np.asarray((n * level * level + slope * slope * squares) * self.scale)

    def children(self, sums: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Terms and states of leaves."""
        n = sums[:, 0]
        states = np.stack([(sums[:, 1] + state[..., 0]) / n, (state[..., 1] - 1.0) / n], axis=1)
        return self.terms(sums, state), states

    def rows(self, sums: np.ndarray) -> np.ndarray:
        """Rows of leaves."""
        return sums[:, 0]

    def mixed(self, sums: np.ndarray) -> np.ndarray:
        """Mask of leaves whose rows differ in their numbers."""
        mean = sums[:, 1] / sums[:, 0]
        return sums[:, 2] - sums[:, 0] * mean * mean > 1e-12 * sums[:, 2]

    def cell_sums(
        self, cell: np.ndarray, n_cells: int, label: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        """Sums over the rows of each cell."""
        summands = (weight, weight * label, weight * label * label)
        return np.stack([np.bincount(cell, each, minlength=n_cells) for each in summands], axis=1)

    def gain(
        self, child: np.ndarray, label: np.ndarray, weight: np.ndarray, state: np.ndarray
    ) -> tuple[float, float]:
        """What a split gains, summed over the rows, and its standard error."""
        sums = self.cell_sums(child, int(child.max()) + 1, label, weight)
        below = self.children(sums, state)[1][child]
        before = np.square(label - state[0] - state[1] * label)
        return _paired(before - np.square(label - below[:, 0] - below[:, 1] * label), weight)


def _paired(difference: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Sum of rows' gains, and its standard error from the rows' own gains.

    Unlike in `ginger_gain` it is not doubled for pairs of rows: where the split says nothing, it is
    1.2 to 1.4 times the spread of the gain as it is (shrunk, two rows of a child gain unlike).
    """
    gain, n_rows = float((weight * difference).sum()), float(weight.sum())
    spread = float((weight * np.square(difference - gain / n_rows)).sum())
    return gain, math.sqrt(n_rows / max(n_rows - 1, 1) * spread)
