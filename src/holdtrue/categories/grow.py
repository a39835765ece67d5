"""Growing a tree: of all leaves and columns, split the pair that makes the best tree.

The paper, the notation and the departures are in `tree`; here are departures 1 to 5.
"""

from __future__ import annotations

import heapq
import math

import numpy as np

from holdtrue.categories.leaf_terms import COARSE, leaf_terms
from holdtrue.categories.leaves import (
    FeatureDraws,
    GroupLeaves,
    Leaves,
    by_group,
    root_sums,
    stored_sums,
)
from holdtrue.categories.tree import WORTH_COMPILING, WORTH_COMPILING_GROUPS, Sample, Tree


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
        One of `leaf_terms.CRITERIA`; for numbers ``squared_error``.
    max_splits : int, optional
        Explore that many splits, even if they raise the estimate. Without it growing stops when
        no split lowers it, or clearly lowers it if all columns are tried (departure 5).
    max_depth : int, optional
        Leaves at this depth stay.
    min_samples_split : int
        Leaves of fewer rows stay.
    group : ndarray of int, shape (n_rows,), optional
        Rows of a group are left out together (`leaf_terms.SHRUNK` alone); see `GroupLeaves`.
    draws : FeatureDraws, optional
        Gives the columns to try at each leaf. Without ``max_splits`` leaves are then split in
        their order, as far as they gain: the tree is the same, and the best need not be sought.
    compiled : bool, optional
        Which route, compiled loops or NumPy; both grow the same tree. Default: by size.
    """
    if compiled is None:
        worth = WORTH_COMPILING if group is None else WORTH_COMPILING_GROUPS
        compiled = sample.cells.size >= worth
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
    splits: list[tuple[int, int]] = []
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
    node, column = np.array(splits, dtype=np.int64).reshape(-1, 2).T
    born = np.repeat(np.arange(-1, n_splits), [len(block) for block in blocks])
    cell, sums = np.concatenate(blocks), stored_sums(sample, np.concatenate(counts))
    terms = np.array(leaves.term[: len(cell)])
    limited_by = tuple(sorted(withheld))
    return Tree(node, column, born, cell, sums, terms, criterion, stopped, limited_by)


class _Heap:
    """Leaves by the gain of their best split, or by their own term until they are scored.

    ``in_order`` they come by their numbers, and those are split that gain.
    """

    def __init__(self, leaves: Leaves, only_gains: bool, in_order: bool):
        self.leaves = leaves
        self.only_gains = only_gains
        self.in_order = in_order
        self.only_clear = only_gains and leaves.terms.leaves_out and leaves.draws is None
        # (-gain, scored, leaf, column): the order of the tuple is the rule for ties.
        self.heap: list[tuple[float, bool, int, int]] = []

    def push(self, nodes: list[int]) -> None:
        """Add leaves that may be split."""
        for node in nodes:
            bound = 0 if self.in_order else -round(self.leaves.term[node] * COARSE)
            heapq.heappush(self.heap, (bound, False, node, -1))

    def pop(self) -> tuple[int, int] | None:
        """The best leaf and column, or None when nothing is left to split."""
        while self.heap:
            _, scored, node, column = heapq.heappop(self.heap)
            if scored:
                return node, column
            columns, children, _ = self.leaves.score(node)
            term = self.leaves.term[node]
            charged = self.leaves.terms.charged(term, self.leaves.total[node])
            gain = np.rint(((charged if self.in_order else term) - children) * COARSE)
            least = -np.inf
            if self.only_gains:
                least = 0 if self.in_order else round((term - charged) * COARSE)
            at = self._first(node, columns, children, gain, least)
            if at is not None and self.in_order:
                return node, int(columns[at])
            if at is not None:
                heapq.heappush(self.heap, (-float(gain[at]), True, node, int(columns[at])))
        return None

    def _first(
        self,
        node: int,
        columns: np.ndarray,
        children: np.ndarray,
        gain: np.ndarray,
        least: float,
    ) -> int | None:
        """Place of the column with the largest gain, above the least, that is clear if need be."""
        best = int(gain.argmax())
        if not gain[best] > least:
            return None
        if not self.only_clear:
            return best
        errors = math.sqrt(2.0 * math.log(np.isfinite(children).sum()))
        for at in np.argsort(-gain, kind="stable").tolist():
            if not gain[at] > least:
                break
            removed, standard_error = self.leaves.gain(node, int(columns[at]))
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
        # a, b: one row per scored leaf, and room for more; one column per column.
        self.added = np.empty((2, 16, len(leaves.all_columns)))

    def push(self, nodes: list[int]) -> None:
        """Add leaves that may be split."""
        for node in nodes:
            heapq.heappush(self.unscored, (-self.leaves.term[node], node))

    def pop(self) -> tuple[int, int] | None:
        """The best leaf and column, or None when nothing is left to split."""
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
        self.gain += self.added[0, at, column]
        self.entropy += self.added[1, at, column]
        last = self.scored.pop()
        if at < len(self.scored):
            self.scored[at] = last
            self.added[:, at] = self.added[:, len(self.scored)]
        return node, column

    def _score(self, node: int) -> np.ndarray:
        """Ratios of a leaf's columns; what they add is kept."""
        columns, children, logs = self.leaves.score(node)
        at = len(self.scored)
        if at == self.added.shape[1]:
            self.added = np.concatenate([self.added, np.empty_like(self.added)], axis=1)
        self.added[0, at], self.added[1, at] = -np.inf, 0.0
        self.added[0, at, columns] = self.leaves.term[node] - children
        self.added[1, at, columns] = self.leaves.terms.table[int(self.leaves.total[node])] - logs
        self.scored.append(node)
        return self._ratio(self.added[:, at])

    def _ratio(self, added: np.ndarray) -> np.ndarray:
        """``(A + a)/(B + b)``, rounded to 40 bits so that ties are ties."""
        gain, entropy = self.gain + added[0], self.entropy + added[1]
        ratio = np.divide(gain, entropy, out=np.full(gain.shape, -np.inf), where=entropy > 0)
        return np.rint(ratio * 2.0**40)


# --- the same, compiled ------------------------------------------------------------------------


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
    drawing = draws or FeatureDraws(np.arange(n_columns), n_columns, 0)
    most = {name: 2**31 - 1 if limit is None else limit for name, limit in limits.items()}
    max_splits = -1 if limits["max_splits"] is None else most["max_splits"]
    dtype = np.int32 if sample.n_classes else np.float64  # narrow ones stay in the cache
    node, column, born, cell, sums, node_terms, too_deep, too_small = loops.grow_whole(
        sample.cells, sample.label, sample.weight,
        np.flatnonzero(sample.weight).astype(np.int32), sample.offsets,
        drawing.first_column, drawing.n_drawn, drawing.again, drawing.seed,
        terms.width, terms.number, terms.scale, terms.table, term, state,
        np.zeros(int(sample.offsets[-1]) * terms.width, dtype), in_order, only_clear,
        max_splits, most["max_depth"], most["min_rows"],
    )  # fmt: skip
    stopped = "gain" if max_splits < 0 else "leaves"
    if len(node) == max_splits:
        stopped = "max_splits"
    withheld = ("max_depth",) * too_deep + ("min_samples_split",) * too_small
    sums = stored_sums(sample, sums)
    return Tree(node, column, born, cell, sums, node_terms, criterion, stopped, withheld)
