"""Trees grown by a criterion of the column that they construct: one child per value.

Paper
-----
Sabato & Shalev-Shwartz, "Ranking Categorical Features Using Generalization Properties", Journal of
Machine Learning Research 9 (2008) 1083-1114: section 5.3. The criteria are (1), (2) and (7).

Notation
--------
===================  ===================================================================
paper                here
===================  ===================================================================
m                    ``n_samples``; with weights their sum, because weights are repetitions
T: rows → leaves     `grow.Leaves`, the rows of each leaf
k leaves             the nodes of `Tree` that no split has
c_v, c_v⁺            row of ``counts``, shape (n_leaves, n_classes): leaves are the values v
criterion of T       sum of `leaf_terms` over the leaves, over m
(none)               ``sums`` of a leaf: class counts (K,); of a numeric target rows, Σ y, Σ y²
                     (3,), with y minus the mean of all rows
(none)               ``term``: the leaf's share of the criterion times m, in ticks of ``1/scale``
(none)               P_k, q_k: shares of the parent, of the child, ``q_k = (c_k + P_k)/(n + 1)``
(none)               P⁻, q⁻: shares that a node gives to one of its rows of class j if that row is
                     left out of the node *and of every ancestor*:
                     ``q⁻_jk = (c_k - [k=j] + P⁻_jk)/n``
(none)               α, β: left out, the row y of a numeric target is predicted ``α + β y``
(none)               ``state``: what a child needs of its parent: nothing, or P⁻_jj by class (K,),
                     or (α, β)
===================  ===================================================================

Why that state suffices: the rows of class j of a node have passed the same ancestors, and each
ancestor loses the same counts with any of them, so that they share one left-out prediction. A child
needs its counts and its parent's state, nothing of the rows. With log loss the diagonal alone
suffices, because ``q⁻_jj`` depends on ``P⁻_jj`` only. With a number the left-out mean of any
ancestor is linear in y. With the row kept in P a split into single rows would gain a false nat.

Where to find it
----------------
===========================================  =======================================================
(1), (2), (7), information gain, majority    `kernel.TERMS`, `CountTerms`
left-out log loss of the shrunk shares       `ShareTerms`
left-out squared error of the shrunk mean    `MeanTerms`
growing, section 5.3                         `grow.grow_tree`
score of the tree after each split           `staged_scores`
leaf of new rows                             `Tree.apply`, `Tree.staged_changes`
beyond the paper                             `least_estimate`, `node_probabilities`
===========================================  =======================================================

Departures
----------
1. All criteria but gain ratio are sums of non-negative terms over leaves, so a split changes one
   term and can gain no more than that: a leaf is scored only when its own term is the best bound
   left. The tree is the one that scoring every leaf would grow.
2. Terms are whole multiples of a tick, which is far below any difference that matters. Sums of
   them are exact in every order, so that all routes grow the same tree. Gains are compared in
   steps of 65,536 ticks; then unscored leaves come first, then the leaf and the column of lower
   number. A row's log loss is a whole number of ticks, so that rows alone in their leaves cost
   together exactly what they cost their parent. Squared errors are not whole: gains are compared
   in steps of 2⁻³² of the root's error.
3. A leaf of one class is not split, nor is a leaf split on a column that is constant in it.
4. Growing stops by itself when no split lowers the estimate (the paper grows on). The leaf to be
   split counts here as no worse than chance, 1 - 1/K per row: leaving one row out of a balanced
   leaf tips it to the other side, so that its estimate is above chance, and children of one row
   each, which are charged chance, would beat it. Its children count as they are: capped, a column
   of pairs would seem to err on a quarter of the rows where its labels are tosses of a coin.
5. The best of p columns looks better than it is. On noise (20 columns of 30 values, 1,000 rows) a
   tree that splits while the estimate falls makes 56 splits and promises .31 where the truth is
   .50. So a single tree that stops by itself, by a criterion that leaves rows out, asks more: a
   split must gain more than ``sqrt(2 ln p)`` standard errors (`kernel`, departure 7), with p
   columns to choose from in the leaf. If the best column does not, the next best is tried. Forests
   do without: the average of trees undoes what each of them believes too easily, and on most data
   they err less with deeper trees.
6. ``log_loss`` and ``squared_error``, of children that are shrunk to their parent, are not in the
   paper. A leaf's term then depends on the way to it, but not on its siblings: departures 1 and 2
   hold. The parent weighs one row. The root is the child of a uniform parent, which is π of
   `shrunk`.
7. A column of numbers may be cut in two, a missing value apart, instead of split by its bins. In a
   leaf at most `grow.MOST_CUTS` cuts are tried, evenly spread over the bins of its rows. By gain
   ratio a column is cut where it gains most.
8. With K classes ``2q(1-q)`` becomes ``1 - Σ q_k²`` and a leaf of one row is charged ``1 - 1/K``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from holdtrue.categories.kernel import LEAVE_ONE_OUT, TERMS, entropy_terms, ginger_gain
from holdtrue.errors import InputError

SHRUNK = ("log_loss", "squared_error")
# By their place the compiled loops know them.
CRITERIA = (*TERMS, *SHRUNK)
COARSE = 2.0**-16  # gains are compared in steps of 65,536 ticks, which rounding does not reach
NO_STATE = np.zeros(0)
# Cells of the table from which compiled loops repay the seconds of loading them; where groups are
# left out NumPy takes a hundred times as long.
WORTH_COMPILING = 2_000_000
WORTH_COMPILING_GROUPS = 20_000


class Sample(NamedTuple):
    """Rows as whole numbers. A cell is a value of a column: cells are numbered column by column."""

    # shape (n_rows, n_columns): cell of each row in each column; rows lie together in memory
    cells: np.ndarray
    # shape (n_columns + 1,): cells of column j are ``offsets[j]`` to ``offsets[j + 1] - 1``. At
    # prediction the number ``offsets[-1]`` stands for a value that no row of the fit had.
    offsets: np.ndarray
    # shape (n_columns,): bins of a column that is cut in two, its first cells in order; a further
    # cell is for missing values. 0 for a column that is split by value.
    n_bins: np.ndarray
    # shape (n_rows,): class, from 0 to ``n_classes - 1``; or number, minus the mean of all rows
    label: np.ndarray
    weight: np.ndarray  # shape (n_rows,): whole and positive: repetitions
    n_classes: int  # 0 for numbers

    @classmethod
    def from_codes(
        cls, codes: np.ndarray, label: np.ndarray, weight: np.ndarray | None = None
    ) -> Sample:
        """Sample of values coded from 0 in every column, shape (n_rows, n_columns), and labels."""
        offsets = np.concatenate([[0], np.cumsum(codes.max(axis=0) + 1)]).astype(np.int64)
        ones = np.ones(len(codes), dtype=np.int64)
        return cls(
            np.ascontiguousarray(codes + offsets[:-1], dtype=cell_type(offsets)),
            offsets,
            np.zeros(codes.shape[1], dtype=np.int64),
            label.astype(np.int64),
            ones if weight is None else weight.astype(np.int64),
            int(label.max()) + 1,
        )

    def at(self, rows: np.ndarray) -> Sample:
        """Some of the rows, in their order."""
        return self._replace(
            cells=self.cells[rows], label=self.label[rows], weight=self.weight[rows]
        )


def cell_type(offsets: np.ndarray) -> type:
    """The narrower of two unsigned types that holds all cells: memory is what growing waits for."""
    return np.uint16 if offsets[-1] < 2**16 else np.uint32


# --- terms of leaves ------------------------------------------------------------------------------


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


@lru_cache(maxsize=1)  # shared by the trees of a forest, and by the scores of a tree
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
        return np.full(self.width, 1 / self.width)

    def terms(self, sums: np.ndarray, state: np.ndarray) -> np.ndarray:
        # A row alone costs the very number that `children` has for it in the parent.
        log = np.log(np.where(sums > 0, sums - 1 + state, 1.0))
        losses = np.rint((self.table[self.rows(sums).astype(np.int64)][:, None] - log) * self.scale)
        return np.einsum("vk,vk->v", sums, losses)

    def children(self, sums: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        states = self._states(sums, state)
        return np.einsum("vk,vk->v", sums, np.rint(-np.log(states) * self.scale)), states

    def _states(self, sums: np.ndarray, state: np.ndarray) -> np.ndarray:
        """Left-out share of a row's own class, by leaf and class."""
        total = self.rows(sums)[:, None]
        return np.where(sums > 0, (sums - 1 + state) / total, state / (total + 1))

    def gain(
        self, child: np.ndarray, label: np.ndarray, weight: np.ndarray, state: np.ndarray
    ) -> tuple[float, float]:
        sums = self.cell_sums(child, int(child.max()) + 1, label, weight)
        return _paired(np.log(self._states(sums, state)) - np.log(state), sums)


class MeanTerms(CountTerms):
    """Left-out squared error of means shrunk to the parent's, as `ShareTerms` has it of shares."""

    def __init__(self, root: np.ndarray):
        self.criterion, self.width = "squared_error", 3
        self.number = CRITERIA.index(self.criterion)
        self.uses_logs, self.table, self.scale = False, NO_STATE, 1.0
        error = self.root(root)[0]
        self.scale = 2.0**48 / error if error > 0 else 1.0

    def root(self, sums: np.ndarray) -> tuple[float, np.ndarray]:
        n, total, squares = sums
        if n < 2:
            return 0.0, np.array([total, 0.0])
        residual = n / (n - 1)  # from the plain mean of the other rows
        error = residual**2 * max(squares - total**2 / n, 0.0)
        return float(error * self.scale), np.array([total / (n - 1), -1 / (n - 1)])

    def terms(self, sums: np.ndarray, state: np.ndarray) -> np.ndarray:
        n = sums[:, 0]
        alpha, beta = state[..., 0], state[..., 1]
        mean = sums[:, 1] / n
        squares = np.maximum(sums[:, 2] - n * mean * mean, 0.0)
        level = ((1.0 - beta) * mean - alpha) / n
        slope = (n + (1.0 - beta)) / n
        return np.asarray((n * level * level + slope * slope * squares) * self.scale)

    def children(self, sums: np.ndarray, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n = sums[:, 0]
        states = np.stack([(sums[:, 1] + state[..., 0]) / n, (state[..., 1] - 1.0) / n], axis=1)
        return self.terms(sums, state), states

    def rows(self, sums: np.ndarray) -> np.ndarray:
        return sums[:, 0]

    def mixed(self, sums: np.ndarray) -> np.ndarray:
        mean = sums[:, 1] / sums[:, 0]
        return sums[:, 2] - sums[:, 0] * mean * mean > 1e-12 * sums[:, 2]

    def cell_sums(
        self, cell: np.ndarray, n_cells: int, label: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        summands = (weight, weight * label, weight * label * label)
        return np.stack([np.bincount(cell, each, minlength=n_cells) for each in summands], axis=1)

    def gain(
        self, child: np.ndarray, label: np.ndarray, weight: np.ndarray, state: np.ndarray
    ) -> tuple[float, float]:
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


# --- trees ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Tree:
    """A tree of all the splits explored, in order; its first s splits are a tree too."""

    # node, column, is_cut, shape (n_splits,): what each split splits, on which column, and whether
    # in two: a child's cell is then the last on its side of the cut
    node: np.ndarray
    column: np.ndarray
    is_cut: np.ndarray
    # shape (n_nodes,): the split that made each node; -1 for the root, node 0. Children of a split
    # are neighbours, their cells ascending.
    born: np.ndarray
    # shape (n_nodes,): the node's value in the column of that split; -1 for the root
    cell: np.ndarray
    # shape (n_nodes, n_classes); or of a numeric target (`Sample`) rows, Σ y and Σ y², shape
    # (n_nodes, 3)
    counts: np.ndarray
    terms: np.ndarray  # shape (n_nodes,): of each by the criterion, as if a leaf (`leaf_terms`)
    criterion: str
    # Why growing ended: "gain", no split (clearly) lowers the estimate; "max_splits", as many as
    # asked for; "leaves", no leaf can be split; or "interrupted"
    stopped: str
    withheld: tuple[str, ...] = ()  # limits that kept some leaf of several classes from being tried

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "is_cut" not in state:
            raise InputError("a tree saved by an earlier version cannot be read. Fit it again.")
        self.__dict__.update(state)

    @property
    def n_splits(self) -> int:
        """Number of splits explored."""
        return len(self.node)

    @cached_property
    def parent(self) -> np.ndarray:
        """Parent of each node, shape (n_nodes,); -1 for the root."""
        return np.append(self.node, -1)[self.born]

    @cached_property
    def split(self) -> np.ndarray:
        """The split of each node, shape (n_nodes,); n_splits for a leaf."""
        split = np.full(len(self.born), self.n_splits, dtype=np.int64)
        split[self.node] = np.arange(self.n_splits)
        return split

    @cached_property
    def first_child(self) -> np.ndarray:
        """First child of each split, shape (n_splits + 1,); last the number of nodes."""
        return np.searchsorted(self.born, np.arange(self.n_splits + 1))

    @cached_property
    def depth(self) -> np.ndarray:
        """Depth of each node, shape (n_nodes,); 0 for the root."""
        depth = np.zeros(len(self.born), dtype=np.int64)
        nodes = np.arange(1, len(depth))
        above = self.parent[1:]
        while len(nodes):  # one step up at a time
            depth[nodes] += 1
            nodes, above = nodes[above > 0], self.parent[above[above > 0]]
        return depth

    def levels(self) -> Iterator[np.ndarray]:
        """Nodes by depth, from 1 on."""
        order = np.argsort(self.depth, kind="stable")
        ends = np.searchsorted(self.depth[order], np.arange(1, int(self.depth.max()) + 2))
        for start, stop in pairwise(ends.tolist()):
            yield order[start:stop]

    def cut(self, n_splits: int) -> Tree:
        """The tree of the first n_splits splits."""
        kept = slice(0, int(np.searchsorted(self.born, n_splits)))
        splits = {name: getattr(self, name)[:n_splits] for name in ("node", "column", "is_cut")}
        nodes = {name: getattr(self, name)[kept] for name in ("born", "cell", "counts", "terms")}
        return replace(self, **splits, **nodes)

    def apply(
        self, cells: np.ndarray, rows: np.ndarray | None = None, *, compiled: bool = False
    ) -> np.ndarray:
        """Node that each row of cells (n_rows, n_columns), or each of some rows, ends in.

        A row whose value was not seen in a node ends in that node.
        """
        if compiled:
            from holdtrue.categories import loops  # imports numba

            rows = np.arange(len(cells)) if rows is None else rows
            splits = self.column, self.is_cut, self.split, self.first_child
            return np.asarray(loops.end_nodes(cells, rows, *splits, self.cell))
        cells = cells if rows is None else cells[rows]
        node = np.zeros(len(cells), dtype=np.int64)
        for rows, _, child in self._descend(cells):
            node[rows] = child
        return node

    def staged_changes(self, cells: np.ndarray, loss: Callable[..., np.ndarray]) -> np.ndarray:
        """Change of a summed loss with each split, shape (n_splits,).

        ``loss(rows, nodes)`` is what those rows lose if predicted from those nodes.
        """
        change = np.zeros(self.n_splits)
        for rows, parent, child in self._descend(cells):
            difference = loss(rows, child) - loss(rows, parent)
            change += np.bincount(self.split[parent], difference, minlength=self.n_splits)
        return change

    def _descend(self, cells: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Rows, their nodes and these nodes' children, level by level, for the rows that go on."""
        width = int(max(self.cell.max(), cells.max(initial=0))) + 1
        # One sorted list of (node, cell) finds the children of all rows of a level at once.
        keys = self.parent[1:] * width + self.cell[1:]
        order = np.argsort(keys)
        keys = np.append(keys[order], -1)
        rows, node = np.arange(len(cells)), np.zeros(len(cells), dtype=np.int64)
        while True:
            inner = self.split[node] < self.n_splits
            rows, node = rows[inner], node[inner]
            split = self.split[node]
            wanted = node * width + cells[rows, self.column[split]]
            at = np.searchsorted(keys[:-1], wanted)
            seen = np.where(self.is_cut[split], keys[at] // width == node, keys[at] == wanted)
            if not seen.any():
                return
            rows, child = rows[seen], 1 + order[at[seen]]
            yield rows, node[seen], child
            node = child


def staged_scores(tree: Tree, criterion: str) -> np.ndarray:
    """A criterion of the tree after 0, 1, ... splits, shape (n_splits + 1,); lower is better.

    Information gain is given as the entropy that is left, gain ratio as one minus the ratio.
    """
    terms = leaf_terms(criterion, tree.counts[0])
    n_samples = float(terms.rows(tree.counts[:1])[0])
    left = _staged(tree, _node_terms(tree, terms))
    if criterion != "gain_ratio":
        return left / (terms.scale * n_samples)
    spread = -_staged(tree, terms.table[tree.counts.sum(axis=1)])
    gain, entropy = left[0] - left, spread - spread[0]
    return 1.0 - np.divide(gain, entropy, out=np.zeros_like(gain), where=entropy > 0)


def staged_train_losses(tree: Tree) -> np.ndarray:
    """Loss of the shrunk predictor on the rows of the fit, after 0, 1, ... splits.

    Log loss, or squared error of a numeric target.
    """
    if tree.criterion == "squared_error":
        n, total, squares = tree.counts.T
        mean = total / n
        losses = squares - n * mean**2 + n * (mean - node_means(tree)) ** 2
        return _staged(tree, losses) / n[0]
    losses = -np.einsum("vk,vk->v", tree.counts, np.log(node_probabilities(tree, "uniform")))
    return _staged(tree, losses) / tree.counts[0].sum()


def least_estimate(tree: Tree) -> int:
    """Number of splits after which the estimate is least, leaves counted as in departure 4."""
    if tree.criterion == "gain_ratio":
        return int(np.argmin(np.round(staged_scores(tree, "gain_ratio"), 12)))
    terms = leaf_terms(tree.criterion, tree.counts[0])
    raw = _node_terms(tree, terms)
    charged = terms.charged(raw, terms.rows(tree.counts))
    children = np.bincount(tree.born[1:], raw[1:], minlength=tree.n_splits)
    gained = np.rint((charged[tree.node] - children) * COARSE)
    return int(np.argmax(np.concatenate([[0.0], np.cumsum(gained)])))


def _node_terms(tree: Tree, terms: CountTerms) -> np.ndarray:
    """Term of every node, as if it were a leaf, shape (n_nodes,)."""
    if terms.criterion == tree.criterion:
        return tree.terms
    return terms.terms(tree.counts, terms.above_root)


def _staged(tree: Tree, terms: np.ndarray) -> np.ndarray:
    """Sum of the leaves' terms after 0, 1, ... splits."""
    children = np.bincount(tree.born[1:], terms[1:], minlength=tree.n_splits)
    return np.cumsum(np.concatenate([terms[:1], children - terms[tree.node]]))


def node_probabilities(tree: Tree, unseen: str, *, compiled: bool = False) -> np.ndarray:
    """Class shares of every node, ``q_k = (c_k + P_k)/(n + 1)``, shape (n_nodes, n_classes).

    The root's parent has the shares ``1/K``, or with ``unseen="prior"`` those of all rows. A lead
    of one row is more than the parent can weigh, so the largest is the node's majority.
    """
    n_nodes, n_classes = tree.counts.shape
    total = tree.counts.sum(axis=1)
    uniform = np.full(n_classes, 1 / n_classes)
    above = uniform if unseen == "uniform" else tree.counts[0] / total[0]
    probability = np.empty((n_nodes, n_classes))
    probability[0] = (tree.counts[0] + above) / (total[0] + 1)
    if compiled:
        from holdtrue.categories import loops  # imports numba

        loops.mix_with_parents(tree.counts, tree.parent, probability)
        return probability
    for at in tree.levels():
        mixed = tree.counts[at] + probability[tree.parent[at]]
        probability[at] = mixed / (total[at] + 1)[:, None]
    return probability


def node_means(tree: Tree, parent_weight: float | np.ndarray = 1.0) -> np.ndarray:
    """Mean of every node, mixed with some rows' worth of its parent's.

    Shape (n_nodes,), and for several weights (n_nodes, n_weights).
    """
    weight = np.asarray(parent_weight)
    n, total = (tree.counts[:, k].reshape(-1, *[1] * weight.ndim) for k in (0, 1))
    means = np.empty((len(n), *weight.shape))
    means[0] = total[0] / n[0]
    for at in tree.levels():
        means[at] = (total[at] + weight * means[tree.parent[at]]) / (n[at] + weight)
    return means
