"""The leaves of a tree that grows: their rows, their terms, and what splits would make of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from holdtrue.categories.grouped import cluster_error
from holdtrue.categories.leaf_terms import COARSE, leaf_terms
from holdtrue.categories.tree import Sample

_WORD = 2**64 - 1
MOST_READINGS = 8  # of a feature, tried at a leaf


class FeatureDraws:
    """Features drawn without replacement, anew for each leaf; the compiled loop draws the same.

    Of a feature with more than ``MOST_READINGS`` columns every second, third, ... is tried, from a
    start that is drawn too, and the last, which reads integers by value.

    Parameters
    ----------
    feature : ndarray of int, shape (n_columns,)
        Of each column, ascending.
    n_drawn, seed : int
    again : bool
        Draw further features where none of those drawn gains.
    """

    def __init__(self, feature: np.ndarray, n_drawn: int, seed: int, *, again: bool = False):
        self.n_drawn = n_drawn
        self.seed = seed
        self.again = again
        self.first_column = np.searchsorted(feature, np.arange(int(feature[-1]) + 2))
        self._features = list(range(len(self.first_column) - 1))
        self._now = seed

    def batches(self) -> Iterator[np.ndarray]:
        """Columns of n_drawn features, ascending; then of others, until all have been drawn."""
        features = self._features
        for start in range(0, len(features) if self.again else self.n_drawn, self.n_drawn):
            stop = min(start + self.n_drawn, len(features))
            tried = []
            for f in range(start, stop):  # Fisher and Yates, with the numbers of splitmix64
                self._now = (self._now + 0x9E3779B97F4A7C15) & _WORD
                mixed = ((self._now ^ (self._now >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
                mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _WORD
                mixed = (mixed ^ (mixed >> 31)) >> 32
                other = f + ((mixed * (len(features) - f)) >> 32)
                features[f], features[other] = features[other], features[f]
                tried.append(self._columns(features[f], mixed))
            yield np.sort(np.concatenate(tried))

    def _columns(self, feature: int, mixed: int) -> np.ndarray:
        """Columns of a feature that are tried, with the number that it was drawn by."""
        columns = np.arange(self.first_column[feature], self.first_column[feature + 1])
        step = -(-len(columns) // MOST_READINGS)
        if step < 2 or self.n_drawn >= len(self._features):
            return columns
        return np.union1d(columns[mixed % step :: step], columns[-1:])


class Leaves:
    """The nodes, and the rows of each. In NumPy."""

    def __init__(self, sample: Sample, criterion: str, draws: FeatureDraws | None):
        self.sample = sample
        root = root_sums(sample)
        self.terms = leaf_terms(criterion, root)
        self.draws = draws
        self.all_columns = np.arange(sample.cells.shape[1])
        # Blocks of siblings; the lists below have one entry per node.
        self.cells, self.counts = [np.array([-1])], [root[None]]
        self.rows, self.depth = [np.arange(len(sample.cells))], [0]
        term, state = self.terms.root(root)
        self.term, self.state = [term], [state]
        self.total = self.terms.rows(root[None]).tolist()

    def mixed(self, new: slice, min_samples_split: int) -> tuple[list[int], bool]:
        """New nodes of several classes with enough rows, and whether others have too few."""
        counts = self.counts[-1]
        total = self.terms.rows(counts)
        at = np.flatnonzero(self.terms.mixed(counts))
        large = at[total[at] >= min_samples_split]
        return (new.start + large).tolist(), len(large) < len(at)

    def score(self, node: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Columns, and for each the Σ of the children's terms and of their ``c log₂ c``.

        The former is inf for a column that is constant in the leaf.
        """
        rows, state = self.rows[node], self.state[node]
        if self.draws is None:
            return self.all_columns, *self.score_columns(rows, self.all_columns, state)
        charged = self.terms.charged(self.term[node], self.total[node])
        for columns in self.draws.batches():
            terms, logs = self.score_columns(rows, columns, state)
            # No further features where one of these gains.
            if np.rint((charged - terms.min()) * COARSE) > 0:
                break
        return columns, terms, logs

    def gain(self, node: int, column: int) -> tuple[float, float]:
        """What a split gains, and its standard error."""
        cells, _, label, weight, _ = self.sample.at(self.rows[node])
        child = np.unique(cells[:, column], return_inverse=True)[1]
        return self.terms.gain(child, label, weight, self.state[node])

    def split(self, node: int, column: int) -> slice:
        """Split a leaf; the numbers of its children."""
        first, values = len(self.rows), self.sample.cells[self.rows[node], column]
        rows = self.rows[node][np.argsort(values, kind="stable")]
        cells, sizes = np.unique(values, return_counts=True)
        child = np.repeat(np.arange(len(cells)), sizes)
        label, weight = self.sample.label[rows], self.sample.weight[rows]
        counts = self.terms.cell_sums(child, len(cells), label, weight)
        terms, states = self.children(node, counts, rows, child)
        self.rows += np.split(rows, np.cumsum(sizes)[:-1])
        self.depth += [self.depth[node] + 1] * len(cells)
        self.term += terms.tolist()
        self.state += list(states)
        self.total += self.terms.rows(counts).tolist()
        self.cells.append(cells.astype(np.int64))
        self.counts.append(counts)
        return slice(first, len(self.rows))

    def children(
        self, node: int, counts: np.ndarray, rows: np.ndarray, child: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Terms and states of the children of a leaf, given its rows and the child of each."""
        return self.terms.children(counts, self.state[node])

    def score_columns(
        self, rows: np.ndarray, columns: np.ndarray, state: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """What `score` gives, for these rows of a leaf with this state."""
        cells, offsets, label, weight, _ = self.sample.at(rows)
        tried = cells[:, columns].astype(np.int64)
        present, n_cells = np.arange(offsets[-1]), int(offsets[-1])
        if tried.size < n_cells:
            present, tried = np.unique(tried, return_inverse=True)
            n_cells = len(present)
        n_tried = len(columns)
        counts = self.terms.cell_sums(
            tried.ravel(), n_cells, np.repeat(label, n_tried), np.repeat(weight, n_tried)
        )
        used = self.terms.rows(counts) > 0
        counts, present = counts[used], present[used]
        at = np.searchsorted(offsets[columns], present, side="right") - 1
        terms = np.bincount(at, self.terms.terms(counts, state), minlength=len(columns))
        terms[np.bincount(at, minlength=len(columns)) == 1] = np.inf
        if not self.terms.uses_logs:
            return terms, np.zeros(len(columns))
        total = counts.sum(axis=1).astype(np.int64)
        return terms, np.bincount(at, self.terms.table[total], minlength=len(columns))


class GroupLeaves(Leaves):
    """The nodes where the rows of a group are left out together.

    With every row goes its *guess*: what its node predicts once the row's group is left out of it
    and of every ancestor, for classes the share of the row's own class. In a child with the sums
    S, of which s are the group's, the guess g becomes ``(S - s + g)/(N - n + 1)``, as
    `leaf_terms` has it for single rows. A value met in one group alone changes no guess.

    Rows of a group lie together in the sample.
    """

    def __init__(
        self,
        sample: Sample,
        group: np.ndarray,
        criterion: str,
        draws: FeatureDraws | None,
        compiled: bool,
    ):
        super().__init__(sample, criterion, draws)
        self.group = group
        label, weight = sample.label, sample.weight
        inside = self.terms.cell_sums(group, int(group.max()) + 1, label, weight)
        left = self.counts[0][0] - inside[group]
        if sample.n_classes:
            self.guess = self._guesses(left, label, np.full(len(label), 1 / sample.n_classes))
        else:
            self.guess = left[:, 1] / np.maximum(left[:, 0], 1.0)
        self.term = [float(weight @ self._losses(label, self.guess))]
        self._loops: Any = None
        if compiled:
            from holdtrue.categories import group_loops  # imports numba

            self._loops = group_loops
            self._counters = np.zeros((2, int(sample.offsets[-1]) * self.terms.width))

    def _guesses(self, left: np.ndarray, label: np.ndarray, guess: np.ndarray) -> np.ndarray:
        """Guesses in a child, from its sums without the group, row by row."""
        if self.sample.n_classes:
            same_class = left[np.arange(len(label)), label]
            return np.asarray((same_class + guess) / (left.sum(axis=1) + 1.0))
        return np.asarray((left[:, 1] + guess) / (left[:, 0] + 1.0))

    def _losses(self, label: np.ndarray, guess: np.ndarray) -> np.ndarray:
        """Loss of each row, in ticks."""
        if self.sample.n_classes:
            return np.rint(-np.log(guess) * self.terms.scale)
        return np.asarray(np.square(label - guess) * self.terms.scale)

    def _split_guesses(self, rows: np.ndarray, child: np.ndarray) -> np.ndarray:
        """Guesses of rows in their children, numbered from 0."""
        _, _, label, weight, _ = self.sample.at(rows)
        key = child * (int(self.group.max()) + 1) + self.group[rows]
        pairs, pair = np.unique(key, return_inverse=True)
        whole = self.terms.cell_sums(child, int(child.max()) + 1, label, weight)
        inside = self.terms.cell_sums(pair, len(pairs), label, weight)
        return self._guesses(whole[child] - inside[pair], label, self.guess[rows])

    def gain(self, node: int, column: int) -> tuple[float, float]:
        """What a split gains, and its standard error from the groups' sums."""
        rows = self.rows[node]
        cells, _, label, weight, _ = self.sample.at(rows)
        child = np.unique(cells[:, column], return_inverse=True)[1]
        after = self._losses(label, self._split_guesses(rows, child))
        gained = weight * (self._losses(label, self.guess[rows]) - after) / self.terms.scale
        _, place = np.unique(self.group[rows], return_inverse=True)
        by_group, n_rows = np.bincount(place, gained), np.bincount(place, weight)
        error = cluster_error(by_group, n_rows) * float(n_rows.sum())
        return (0.0, 0.0) if len(n_rows) == 1 else (float(gained.sum()), error)

    def children(
        self, node: int, counts: np.ndarray, rows: np.ndarray, child: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Terms of the children of a leaf, whose rows get their guesses."""
        self.guess[rows] = self._split_guesses(rows, child)
        losses = self._losses(self.sample.label[rows], self.guess[rows])
        return np.bincount(child, self.sample.weight[rows] * losses), np.zeros((len(counts), 0))

    def score_columns(
        self, rows: np.ndarray, columns: np.ndarray, state: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """What `score` gives, for these rows of a leaf."""
        cells, _, label, weight, _ = self.sample.at(rows)
        nothing = np.zeros(len(columns))
        if self._loops is not None:
            terms = self._loops.score_groups(
                cells, label, weight, self.group[rows], self.guess[rows], columns,
                self.terms.width, self.terms.number, self.terms.scale, *self._counters,
            )  # fmt: skip
            return terms, nothing
        terms = np.full(len(columns), np.inf)
        for at, j in enumerate(columns):
            values, child = np.unique(cells[:, j], return_inverse=True)
            if len(values) > 1:
                losses = self._losses(label, self._split_guesses(rows, child))
                terms[at] = float((weight * losses).sum())
        return terms, nothing


def by_group(sample: Sample, group: np.ndarray) -> tuple[Sample, np.ndarray]:
    """Sample without rows of weight 0, and its groups; rows of a group lie together."""
    rows = np.argsort(group, kind="stable")
    rows = rows[sample.weight[rows] > 0]
    return sample.at(rows), np.unique(group[rows], return_inverse=True)[1]


def root_sums(sample: Sample) -> np.ndarray:
    """Sums over all rows, shape (width,)."""
    label, weight = sample.label, sample.weight.astype(np.float64)
    if sample.n_classes:
        return np.bincount(label, weight, minlength=sample.n_classes)
    return np.array([weight.sum(), weight @ label, weight @ (label * label)])


def stored_sums(sample: Sample, sums: np.ndarray) -> np.ndarray:
    """Sums of the nodes as a tree keeps them: counts are whole numbers."""
    return sums.astype(np.int64) if sample.n_classes else sums
