"""Growing a tree: of all leaves and columns, split the pair that makes the best tree.

The paper, the notation and the departures are in `tree`; here are departures 1 to 5.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from holdtrue.categories.grouped import cluster_error
from holdtrue.categories.tree import (
    COARSE,
    WORTH_COMPILING,
    WORTH_COMPILING_GROUPS,
    Sample,
    Tree,
    leaf_terms,
)

_WORD = 2**64 - 1
MOST_CUTS = 4  # of a column, tried at a leaf
MIDDLE = 1 << 15  # of what is drawn for the first cut, from 0 to 2^16 - 1


def grow_tree(
    sample: Sample,
    criterion: str = "ginger",
    *,
    max_splits: int | None = None,
    max_depth: int | None = None,
    min_samples_split: int = 2,
    group: np.ndarray | None = None,
    draws: FeatureDraws | None = None,
    compiled: bool | None = None,
) -> Tree:
    """Tree whose every split is the one that makes the best tree (section 5.3).

    Parameters
    ----------
    sample : Sample
        Rows of weight 0 are left out.
    criterion : str
        One of `tree.CRITERIA`; for numbers ``squared_error``.
    max_splits : int, optional
        Explore that many splits, even if they raise the estimate. Without it growing stops when
        no split lowers it, or clearly lowers it if all columns are tried (departure 5).
    max_depth : int, optional
        Leaves at this depth stay.
    min_samples_split : int
        Leaves of fewer rows stay.
    group : ndarray of int, shape (n_rows,), optional
        Rows of a group are left out together (`tree.SHRUNK` alone); see `GroupLeaves`.
    draws : FeatureDraws, optional
        Gives the columns to try at each leaf. Without ``max_splits`` leaves are then split in
        their order, as far as they gain: the tree is the same, and the best need not be sought.
    compiled : bool, optional
        Which route, compiled loops or NumPy; both grow the same tree. Default: by size.
    """
    if compiled is None:
        worth = WORTH_COMPILING if group is None else WORTH_COMPILING_GROUPS
        compiled = work(sample) >= worth
    in_order = draws is not None and max_splits is None and criterion != "gain_ratio"
    limits = {"max_splits": max_splits, "max_depth": max_depth, "min_rows": min_samples_split}
    if compiled and group is None and criterion != "gain_ratio":
        return _grow_compiled(sample, criterion, draws, in_order, limits)
    leaves: Leaves
    if group is not None:
        leaves = GroupLeaves(*by_group(sample, group), criterion, draws, compiled)
    else:
        sample = sample if sample.weight.all() else sample.at(np.flatnonzero(sample.weight))
        leaves = Leaves(sample, criterion, draws)
    frontier: _Heap | _Ratios = _Heap(leaves, max_splits is None, in_order)
    if criterion == "gain_ratio":
        frontier = _Ratios(leaves, max_splits is None)
    splits: list[tuple[int, int, int]] = []
    stopped = "gain" if max_splits is None else "leaves"
    withheld = set()
    try:
        new = slice(0, 1)
        while True:
            large, small = leaves.mixed(new, min_samples_split)
            if small:
                withheld.add("min_samples_split")
            if max_depth is None or leaves.depth[new.start] < max_depth:
                frontier.push(large)
            elif large:
                withheld.add("max_depth")
            if len(splits) == max_splits:
                stopped = "max_splits"
                break
            best = frontier.pop()
            if best is None:
                break
            new = leaves.split(*best)
            splits.append(best)
    except KeyboardInterrupt:
        stopped = "interrupted"
    n_splits = len(splits)
    blocks, counts = leaves.cells[: n_splits + 1], leaves.counts[: n_splits + 1]
    node, column, cut = np.array(splits, dtype=np.int64).reshape(-1, 3).T
    born = np.repeat(np.arange(-1, n_splits), [len(block) for block in blocks])
    cell, sums = np.concatenate(blocks), stored_sums(sample, np.concatenate(counts))
    terms = np.array(leaves.term[: len(cell)])
    limited_by = tuple(sorted(withheld))
    return Tree(node, column, cut >= 0, born, cell, sums, terms, criterion, stopped, limited_by)


def work(sample: Sample) -> int:
    """Cells of the table, by which routes are chosen.

    Columns cut in two count several times: trees are deep with them, and deeper for numbers.
    """
    of_cuts = 16 if sample.n_classes else 64
    return len(sample.cells) * int(np.where(sample.n_bins > 0, of_cuts, 1).sum())


class _Heap:
    """Leaves by the gain of their best split, or by their own term until they are scored.

    ``in_order`` they come by their numbers, and those are split that gain.
    """

    def __init__(self, leaves: Leaves, only_gains: bool, in_order: bool):
        self.leaves = leaves
        self.only_gains = only_gains
        self.in_order = in_order
        self.only_clear = only_gains and leaves.terms.leaves_out and leaves.draws is None
        # (-gain, scored, leaf, column, cut): the order of the tuple is the rule for ties.
        self.heap: list[tuple[float, bool, int, int, int]] = []

    def push(self, nodes: list[int]) -> None:
        """Add leaves that may be split."""
        for node in nodes:
            bound = 0 if self.in_order else -round(self.leaves.term[node] * COARSE)
            heapq.heappush(self.heap, (bound, False, node, -1, -1))

    def pop(self) -> tuple[int, int, int] | None:
        """The best leaf, column and cut, or None when nothing is left to split."""
        while self.heap:
            _, scored, node, column, cut = heapq.heappop(self.heap)
            if scored:
                return node, column, cut
            splits, children, _ = self.leaves.score(node)
            term = self.leaves.term[node]
            charged = self.leaves.terms.charged(term, self.leaves.total[node])
            gain = np.rint(((charged if self.in_order else term) - children) * COARSE)
            least = -np.inf
            if self.only_gains:
                least = 0 if self.in_order else round((term - charged) * COARSE)
            at = self._first(node, splits, children, gain, least)
            if at is None:
                continue
            column, cut = splits[at].tolist()
            if self.in_order:
                return node, column, cut
            heapq.heappush(self.heap, (-float(gain[at]), True, node, column, cut))
        return None

    def _first(
        self,
        node: int,
        splits: np.ndarray,
        children: np.ndarray,
        gain: np.ndarray,
        least: float,
    ) -> int | None:
        """Place of the split with the largest gain, above the least, that is clear if need be."""
        best = int(gain.argmax())
        if not gain[best] > least:
            return None
        if not self.only_clear:
            return best
        errors = math.sqrt(2.0 * math.log(np.isfinite(children).sum()))
        for at in np.argsort(-gain, kind="stable").tolist():
            if not gain[at] > least:
                break
            removed, standard_error = self.leaves.gain(node, *splits[at].tolist())
            if removed > errors * standard_error:  # departure 5
                return at
        return None


class _Ratios:
    """Leaves by the gain ratio ``(A + a)/(B + b)`` that the whole tree has after a split.

    A and B are the information gain and the entropy of the tree's leaves so far, a and b what a
    split adds. A and B change with every split, so that all columns of all scored leaves are
    compared anew. A leaf of label entropy t is bounded by ``(A + t)/(B + t)``, as a ≤ t and a ≤ b.
    """

    def __init__(self, leaves: Leaves, only_gains: bool):
        self.leaves = leaves
        self.only_gains = only_gains
        self.gain, self.entropy = 0.0, 0.0  # A, B
        self.unscored: list[tuple[float, int]] = []
        self.scored: list[int] = []
        # a, b, and the cut: one row per scored leaf, and room for more; one column per column.
        self.added = np.empty((3, 16, leaves.sample.cells.shape[1]))

    def push(self, nodes: list[int]) -> None:
        """Add leaves that may be split."""
        for node in nodes:
            heapq.heappush(self.unscored, (-self.leaves.term[node], node))

    def pop(self) -> tuple[int, int, int] | None:
        """The best leaf, column and cut, or None when nothing is left to split."""
        best = self._ratio(self.added[:, : len(self.scored)]).max(initial=-np.inf)
        while self.unscored:
            bound = -self.unscored[0][0]
            if self._ratio(np.array([[bound], [bound]]))[0] < best:
                break
            best = max(best, self._score(heapq.heappop(self.unscored)[1]).max())
        now = self._ratio(np.zeros((2, 1)))[0] if self.entropy > 0 else 0.0
        if best == -np.inf or (self.only_gains and best <= now):
            return None
        ties = np.argwhere(self._ratio(self.added[:, : len(self.scored)]) == best).tolist()
        node, column, at = min((self.scored[at], column, at) for at, column in ties)
        gain, entropy, cut = self.added[:, at, column].tolist()
        self.gain += gain
        self.entropy += entropy
        last = self.scored.pop()
        if at < len(self.scored):
            self.scored[at] = last
            self.added[:, at] = self.added[:, len(self.scored)]
        return node, column, int(cut)

    def _score(self, node: int) -> np.ndarray:
        """Ratios of a leaf's columns, each at the cut that gains most; what they add is kept."""
        splits, children, logs = self.leaves.score(node)
        order = np.lexsort((splits[:, 1], children, splits[:, 0]))
        order = order[np.diff(splits[order, 0], prepend=-1) > 0]
        columns, cuts = splits[order].T
        at = len(self.scored)
        if at == self.added.shape[1]:
            self.added = np.concatenate([self.added, np.empty_like(self.added)], axis=1)
        self.added[0, at], self.added[1, at] = -np.inf, 0.0
        self.added[0, at, columns] = self.leaves.term[node] - children[order]
        whole = self.leaves.terms.table[int(self.leaves.total[node])]
        self.added[1, at, columns] = whole - logs[order]
        self.added[2, at, columns] = cuts
        self.scored.append(node)
        return self._ratio(self.added[:, at])

    def _ratio(self, added: np.ndarray) -> np.ndarray:
        """``(A + a)/(B + b)``, rounded to 40 bits so that ties are ties."""
        gain, entropy = self.gain + added[0], self.entropy + added[1]
        ratio = np.divide(gain, entropy, out=np.full(gain.shape, -np.inf), where=entropy > 0)
        return np.rint(ratio * 2.0**40)


# --- the leaves: their rows, their terms, and what splits would make of them ----------------------


class FeatureDraws:
    """Features drawn without replacement, anew for each leaf; the compiled loop draws the same.

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

    def batches(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Columns of n_drawn features, ascending; then of others, until all have been drawn.

        With each goes a number from 0 to 2^16 - 1, by which its first cut is found.
        """
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
                first, end = self.first_column[features[f] : features[f] + 2].tolist()
                tried += [(column, mixed & 0xFFFF) for column in range(first, end)]
            columns, begin = np.array(sorted(tried)).T
            yield columns, begin


def cuts_between(low: int, high: int, begin: int) -> np.ndarray:
    """Bins after which a column is cut, from ``low`` to ``high - 1``: at most MOST_CUTS.

    Every one, or every second, fourth, ..., from one of the first on that ``begin`` gives.
    """
    shift = 0
    while high - low > MOST_CUTS << shift:
        shift += 1
    return np.arange(low + ((begin << shift) >> 16), high, 1 << shift)


class Leaves:
    """The nodes, and the rows of each. In NumPy."""

    def __init__(self, sample: Sample, criterion: str, draws: FeatureDraws | None):
        self.sample = sample
        root = root_sums(sample)
        self.terms = leaf_terms(criterion, root)
        self.draws = draws
        n_columns = sample.cells.shape[1]
        self._everything = np.arange(n_columns), np.full(n_columns, MIDDLE)
        self._by_value = np.stack([np.arange(n_columns), np.full(n_columns, -1)], axis=1)
        self._has_cuts = bool(sample.n_bins.any())
        self._column_of = np.repeat(np.arange(n_columns), np.diff(sample.offsets))  # by cell
        self._repeats = None if (sample.weight == 1).all() else sample.weight
        # Blocks of siblings; the lists below have one entry per node.
        self.cells, self.counts = [np.array([-1])], [root[None]]
        self.rows, self.depth = [np.arange(len(sample.cells))], [0]
        term, state = self.terms.root(root)
        self.term, self.state = [term], [state]
        self.total = self.terms.rows(root[None]).tolist()

    @cached_property
    def _keys(self) -> np.ndarray:
        """Number of each row's cell and class, shape (n_rows, n_columns)."""
        return self.sample.cells.astype(np.int64) * self.terms.width + self.sample.label[:, None]

    def mixed(self, new: slice, min_samples_split: int) -> tuple[list[int], bool]:
        """New nodes of several classes with enough rows, and whether others have too few."""
        counts = self.counts[-1]
        total = self.terms.rows(counts)
        at = np.flatnonzero(self.terms.mixed(counts))
        large = at[total[at] >= min_samples_split]
        return (new.start + large).tolist(), len(large) < len(at)

    def score(self, node: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Splits, and for each the Σ of the children's terms and of their ``c log₂ c``.

        A split is a column and a cut, -1 for none, shape (n_splits, 2). The first sum is inf where
        all rows are in one child.
        """
        rows, state = self.rows[node], self.state[node]
        if self.draws is None and not self._has_cuts:
            return self._by_value, *self.score_by_value(rows, state)
        charged = self.terms.charged(self.term[node], self.total[node])
        for columns, begin in [self._everything] if self.draws is None else self.draws.batches():
            splits = self._by_value[columns]
            if self._has_cuts:
                splits = np.array(
                    [
                        (column, cut)
                        for column, first in zip(columns.tolist(), begin.tolist(), strict=True)
                        for cut in self._cuts(rows, column, first)
                    ]
                )
            terms, logs = self.score_splits(rows, self._children_by(rows, splits), state)
            # No further features where one of these gains.
            if np.rint((charged - terms.min()) * COARSE) > 0:
                break
        return splits, terms, logs

    def _cuts(self, rows: np.ndarray, column: int, begin: int) -> list[int]:
        """Cuts of a column that are tried; -1 for one that is split by value."""
        if not self.sample.n_bins[column]:
            return [-1]
        cells, last = self.sample.cells[rows, column].astype(np.int64), self._last_bin(column)
        present = cells[cells <= last]
        cuts = []
        if len(present):
            cuts = cuts_between(int(present.min()), int(present.max()), begin).tolist()
        if cuts and len(present) == len(cells):
            return cuts
        return [*cuts, last]  # which parts missing values from all others

    def _last_bin(self, column: int) -> int:
        return int(self.sample.offsets[column] + self.sample.n_bins[column]) - 1

    def child(self, rows: np.ndarray, column: int, cut: int) -> np.ndarray:
        """Child of each row: its value from 0, or 0 up to a cut, 1 above it, 2 if missing."""
        cells = self.sample.cells[rows, column].astype(np.int64)
        if cut < 0:
            return cells - self.sample.offsets[column]
        return (cells > cut).astype(np.int64) + (cells > self._last_bin(column))

    def _children_by(self, rows: np.ndarray, splits: np.ndarray) -> np.ndarray:
        """Child of each row in each split, shape (n_rows, n_splits)."""
        columns, cuts = splits.T
        cells = self.sample.cells[rows[:, None], columns].astype(np.int64)
        first = self.sample.offsets[columns]
        if (cuts < 0).all():
            return cells - first
        in_two = (cells > cuts).astype(np.int64) + (cells >= first + self.sample.n_bins[columns])
        return np.where(cuts < 0, cells - first, in_two)

    def gain(self, node: int, column: int, cut: int) -> tuple[float, float]:
        """What a split gains, and its standard error."""
        rows = self.rows[node]
        child = np.unique(self.child(rows, column, cut), return_inverse=True)[1]
        return self.terms.gain(
            child, self.sample.label[rows], self.sample.weight[rows], self.state[node]
        )

    def split(self, node: int, column: int, cut: int) -> slice:
        """Split a leaf; the numbers of its children."""
        first, values = len(self.rows), self.child(self.rows[node], column, cut)
        sizes = np.bincount(values)
        cells = np.flatnonzero(sizes)
        sizes = sizes[cells]
        # Narrow numbers are sorted by their digits.
        values = values.astype(np.uint16) if cells[-1] < 1 << 16 else values
        rows = self.rows[node][np.argsort(values, kind="stable")]
        child = np.repeat(np.arange(len(cells)), sizes)
        if cut < 0:
            cells = cells + self.sample.offsets[column]
        else:
            last = self._last_bin(column)
            cells = np.array([cut, last, last + 1])[cells]
        label, weight = self.sample.label[rows], self.sample.weight[rows]
        counts = self.terms.cell_sums(child, len(cells), label, weight)
        terms, states = self.children(node, counts, rows, child)
        ends = np.cumsum(sizes).tolist()
        self.rows += [rows[start:stop] for start, stop in pairwise([0, *ends])]
        self.depth += [self.depth[node] + 1] * len(cells)
        self.term += terms.tolist()
        self.state += list(states)
        self.total += self.terms.rows(counts).tolist()
        self.cells.append(cells)
        self.counts.append(counts)
        return slice(first, len(self.rows))

    def children(
        self, node: int, counts: np.ndarray, rows: np.ndarray, child: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Terms and states of the children of a leaf, given its rows and the child of each."""
        return self.terms.children(counts, self.state[node])

    def score_by_value(self, rows: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What `score_splits` gives for all columns, each split by value."""
        n_columns, n_cells = self.sample.cells.shape[1], len(self._column_of)
        if not self.sample.n_classes or len(rows) * n_columns < n_cells:
            cells = self.sample.cells[rows].astype(np.int64)
            return self._score_cells(rows, cells, self.sample.offsets, state)
        repeats = None if self._repeats is None else np.repeat(self._repeats[rows], n_columns)
        counts = np.bincount(
            self._keys[rows].ravel(), repeats, minlength=n_cells * self.terms.width
        )
        counts = counts.reshape(n_cells, -1).astype(np.float64)
        return self._sum_terms(counts, self._column_of, n_columns, state)

    def score_splits(
        self, rows: np.ndarray, child: np.ndarray, state: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """What `score` gives, for these rows of a leaf with this state.

        ``child`` is that of each row in each split, shape (n_rows, n_splits).
        """
        first = np.append(0, np.cumsum(child.max(axis=0) + 1))
        return self._score_cells(rows, child + first[:-1], first, state)

    def _score_cells(
        self, rows: np.ndarray, tried: np.ndarray, first: np.ndarray, state: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """What `score` gives, with children numbered over all splits.

        Those of split s in ``tried`` are from ``first[s]`` to ``first[s + 1] - 1``.
        """
        n_splits = tried.shape[1]
        present, n_cells = np.arange(first[-1]), int(first[-1])
        if tried.size < n_cells:
            present, tried = np.unique(tried, return_inverse=True)
            n_cells = len(present)
        label, weight = (
            np.repeat(each[rows], n_splits) for each in (self.sample.label, self.sample.weight)
        )
        counts = self.terms.cell_sums(tried.ravel(), n_cells, label, weight)
        at = np.searchsorted(first[:-1], present, side="right") - 1
        return self._sum_terms(counts, at, n_splits, state)

    def _sum_terms(
        self, counts: np.ndarray, at: np.ndarray, n_splits: int, state: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """What `score` gives, from the sums of children, some empty, and the split of each."""
        used = self.terms.rows(counts) > 0
        counts, at = counts[used], at[used]
        terms = np.bincount(at, self.terms.terms(counts, state), minlength=n_splits)
        terms[np.bincount(at, minlength=n_splits) == 1] = np.inf
        if not self.terms.uses_logs:
            return terms, np.zeros(n_splits)
        total = counts.sum(axis=1).astype(np.int64)
        return terms, np.bincount(at, self.terms.table[total], minlength=n_splits)


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
            most_values = max(3, int(np.diff(sample.offsets).max()))
            self._counters = np.zeros((2, self.terms.width, most_values))

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
        label, weight = self.sample.label[rows], self.sample.weight[rows]
        key = child * (int(self.group.max()) + 1) + self.group[rows]
        pairs, pair = np.unique(key, return_inverse=True)
        whole = self.terms.cell_sums(child, int(child.max()) + 1, label, weight)
        inside = self.terms.cell_sums(pair, len(pairs), label, weight)
        return self._guesses(whole[child] - inside[pair], label, self.guess[rows])

    def gain(self, node: int, column: int, cut: int) -> tuple[float, float]:
        """What a split gains, and its standard error from the groups' sums."""
        rows = self.rows[node]
        label, weight = self.sample.label[rows], self.sample.weight[rows]
        child = np.unique(self.child(rows, column, cut), return_inverse=True)[1]
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

    def score_by_value(self, rows: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What `score_splits` gives for all columns, each split by value."""
        return self.score_splits(rows, self._children_by(rows, self._by_value), state)

    def score_splits(
        self, rows: np.ndarray, child: np.ndarray, state: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """What `score` gives, for these rows of a leaf."""
        label, weight = self.sample.label[rows], self.sample.weight[rows]
        nothing = np.zeros(child.shape[1])
        if self._loops is not None:
            terms = self._loops.score_groups(
                child, label, weight, self.group[rows], self.guess[rows],
                self.terms.number, self.terms.scale, *self._counters,
            )  # fmt: skip
            return terms, nothing
        terms = np.full(child.shape[1], np.inf)
        for at in range(child.shape[1]):
            values, place = np.unique(child[:, at], return_inverse=True)
            if len(values) > 1:
                losses = self._losses(label, self._split_guesses(rows, place))
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


# --- growing in a compiled loop -------------------------------------------------------------------


def _grow_compiled(
    sample: Sample,
    criterion: str,
    draws: FeatureDraws | None,
    in_order: bool,
    limits: dict[str, int | None],
) -> Tree:
    """`grow_tree` in one compiled loop."""
    from holdtrue.categories import loops  # imports numba

    root = root_sums(sample)
    terms = leaf_terms(criterion, root)
    term, state = terms.root(root)
    n_columns = sample.cells.shape[1]
    only_clear = draws is None and limits["max_splits"] is None and terms.leaves_out
    drawing = draws or FeatureDraws(np.arange(n_columns), 0, 0)
    most = {name: 2**31 - 1 if limit is None else limit for name, limit in limits.items()}
    max_splits = -1 if limits["max_splits"] is None else most["max_splits"]
    # Narrow numbers stay in the cache.
    dtype = np.int32 if sample.n_classes else np.float64
    label, weight = sample.label.astype(dtype), sample.weight.astype(np.int32)
    splits, born, cell, sums, node_terms, too_deep, too_small = loops.grow_whole(
        sample.cells, label, weight,
        np.flatnonzero(weight).astype(np.int32), sample.offsets, sample.n_bins,
        drawing.first_column, drawing.n_drawn, drawing.again, drawing.seed,
        terms.number, terms.scale, terms.table, root, term, state,
        np.zeros((terms.width, int(sample.offsets[-1])), dtype), in_order, only_clear,
        max_splits, most["max_depth"], most["min_rows"],
    )  # fmt: skip
    stopped = "gain" if max_splits < 0 else "leaves"
    if len(splits) == max_splits:
        stopped = "max_splits"
    withheld = ("max_depth",) * too_deep + ("min_samples_split",) * too_small
    node, column, cut = splits.T.copy()
    sums = stored_sums(sample, sums)
    return Tree(node, column, cut >= 0, born, cell, sums, node_terms, criterion, stopped, withheld)
