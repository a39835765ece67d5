"""Growing a tree: of all leaves and columns, split the pair that makes the best tree.

The paper, the notation and the departures are in `tree`; here are departures 1 to 5.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from holdtrue.categories.kernel import ginger_gain
from holdtrue.categories.tree import COARSE, IN_SAMPLE, LeafTerms, Sample, Tree

# Cells of the table from which compiled loops repay the seconds that they take to load.
WORTH_COMPILING = 2_000_000
# Rows that a tree of a forest sees: as many as a bootstrap sample has distinct ones.
_SHARE = 1 - math.exp(-1)


def grow_tree(
    sample: Sample,
    criterion: str = "ginger",
    *,
    max_splits: int | None = None,
    max_depth: int | None = None,
    min_rows: int = 2,
    draw_columns: Callable[[], np.ndarray] | None = None,
    compiled: bool | None = None,
) -> Tree:
    """Tree whose every split is the one that makes the best tree (section 5.3).

    Parameters
    ----------
    sample : Sample
    criterion : one of CRITERIA
    max_splits : int, optional
        Explore that many splits, even such as raise the estimate. Without it growing stops when
        no split lowers it; clearly lowers it, if all columns are tried (departure 5).
    max_depth : int, optional
        Leaves at this depth stay.
    min_rows : int
        Leaves of fewer rows stay.
    draw_columns : callable, optional
        Called for each leaf that is scored; gives the columns to try there, ascending.
    compiled : bool, optional
        Which route, compiled loops or NumPy; both grow the same tree. Default: by size.
    """
    if compiled is None:
        compiled = sample.cells.size >= WORTH_COMPILING
    leaves = (_CompiledLeaves if compiled else _Leaves)(sample, criterion, draw_columns)
    frontier: _Heap | _Ratios
    frontier = (_Ratios if criterion == "gain_ratio" else _Heap)(leaves, max_splits is None)
    splits: list[tuple[int, int]] = []
    stopped = "gain" if max_splits is None else "leaves"
    withheld = set()
    try:
        made = slice(0, 1)
        while True:
            large, small = leaves.mixed(made, min_rows)
            if small:
                withheld.add("min_rows")
            if max_depth is None or leaves.depth[made.start] < max_depth:
                frontier.push(large)
            elif large:
                withheld.add("max_depth")
            if len(splits) == max_splits:
                stopped = "max_splits"
                break
            best = frontier.pop()
            if best is None:
                break
            made = leaves.split(*best)
            splits.append(best)
    except KeyboardInterrupt:
        stopped = "interrupted"
    n_splits = len(splits)
    node, column = np.array(splits, dtype=np.int64).reshape(-1, 2).T
    return Tree(
        node,
        column,
        np.repeat(np.arange(-1, n_splits), [len(c) for c in leaves.cells[: n_splits + 1]]),
        np.concatenate(leaves.cells[: n_splits + 1]),
        np.concatenate(leaves.counts[: n_splits + 1]),
        criterion,
        stopped,
        tuple(sorted(withheld)),
    )


class _Leaves:
    """The nodes, and the rows kept leaf by leaf. In NumPy."""

    def __init__(
        self, sample: Sample, criterion: str, draw_columns: Callable[[], np.ndarray] | None
    ):
        self.sample = sample
        self.terms = LeafTerms(criterion, sample.n_classes, int(sample.weight.sum()))
        self.draw_columns = draw_columns
        self.all_columns = np.arange(sample.cells.shape[1])
        # The rows of a leaf lie together, so that they are read in one sweep. Depth 0 is the
        # sample itself, left alone; below, a split copies its rows to and fro between two stores.
        rows = (sample.cells, sample.label, sample.weight)
        self.stores = (rows, *(tuple(np.empty_like(part) for part in rows) for _ in range(2)))
        root = np.bincount(sample.label, sample.weight, minlength=sample.n_classes)
        # Blocks of siblings; the lists below have one entry per node.
        self.cells, self.counts = [np.array([-1])], [root.astype(np.int64)[None]]
        self.start, self.stop, self.depth = [0], [len(sample.cells)], [0]
        self.term = self.terms(self.counts[0]).tolist()
        self.total = self.counts[0].sum(axis=1).tolist()

    def rows(self, node: int, below: bool = False) -> tuple[np.ndarray, ...]:
        """Cells, labels and weights of a leaf; or where those of its children will be."""
        depth = self.depth[node] + below
        own = slice(self.start[node], self.stop[node])
        return tuple(part[own] for part in self.stores[0 if depth == 0 else 1 + depth % 2])

    def mixed(self, made: slice, min_rows: int) -> tuple[list[int], bool]:
        """Nodes made last of several classes and rows enough, and whether others have too few."""
        counts = self.counts[-1]
        total = counts.sum(axis=1)
        at = np.flatnonzero(counts.max(axis=1) < total)
        large = at[total[at] >= min_rows]
        return (made.start + large).tolist(), len(large) < len(at)

    def score(self, node: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Columns, and for each the Σ of the children's terms and of their ``c log₂ c``.

        The former is inf for a column that is constant in the leaf.
        """
        columns = self.all_columns if self.draw_columns is None else self.draw_columns()
        return columns, *self.score_columns(self.rows(node), columns)

    def children_counts(self, node: int, column: int) -> np.ndarray:
        """Class counts of the children that a split would make, (n_children, n_classes)."""
        cells, label, weight = self.rows(node)
        own, n_classes = np.unique(cells[:, column], return_inverse=True)[1], self.sample.n_classes
        counts = np.bincount(own * n_classes + label, weight, (own.max() + 1) * n_classes)
        return counts.astype(np.int64).reshape(-1, n_classes)

    def split(self, node: int, column: int) -> slice:
        """Split a leaf; the numbers of its children."""
        start, first = self.start[node], len(self.start)
        cells, sizes, counts = self.partition(self.rows(node), column, self.rows(node, below=True))
        stop = start + np.cumsum(sizes)
        self.start += (stop - sizes).tolist()
        self.stop += stop.tolist()
        self.depth += [self.depth[node] + 1] * len(cells)
        self.term += self.terms(counts).tolist()
        self.total += counts.sum(axis=1).tolist()
        self.cells.append(cells)
        self.counts.append(counts)
        return slice(first, len(self.start))

    def score_columns(
        self, rows: tuple[np.ndarray, ...], columns: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """What `score` gives, for these rows."""
        cells, label, weight = rows
        offsets, n_classes = self.sample.offsets, self.sample.n_classes
        own = cells[:, columns].astype(np.int64)
        present, n_cells = np.arange(offsets[-1]), int(offsets[-1])
        if own.size < n_cells:
            present, own = np.unique(own, return_inverse=True)
            n_cells = len(present)
        key = own.reshape(len(cells), -1) * n_classes + label[:, None]
        repeated = np.repeat(weight, len(columns))
        counts = np.bincount(key.ravel(), repeated, minlength=n_cells * n_classes)
        counts = counts.astype(np.int64).reshape(n_cells, n_classes)
        used = counts.any(axis=1)
        counts, present = counts[used], present[used]
        at = np.searchsorted(offsets[columns], present, side="right") - 1
        terms = np.bincount(at, self.terms(counts), minlength=len(columns))
        terms[np.bincount(at, minlength=len(columns)) == 1] = np.inf
        if not self.terms.uses_logs:
            return terms, np.zeros(len(columns))
        total = counts.sum(axis=1)
        return terms, np.bincount(at, self.terms.table[total], minlength=len(columns))

    def partition(
        self, rows: tuple[np.ndarray, ...], column: int, below: tuple[np.ndarray, ...]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Children's cells, ascending, numbers of rows and class counts; rows go ``below``."""
        n_classes = self.sample.n_classes
        own = rows[0][:, column]
        order = np.argsort(own, kind="stable")
        for part, new in zip(rows, below, strict=True):
            new[:] = part[order]
        cells, sizes = np.unique(own, return_counts=True)
        key = np.repeat(np.arange(len(cells)), sizes) * n_classes + below[1]
        counts = np.bincount(key, below[2], minlength=len(cells) * n_classes)
        return cells.astype(np.int64), sizes, counts.astype(np.int64).reshape(-1, n_classes)


class _CompiledLeaves(_Leaves):
    """The same, in compiled loops."""

    def __init__(
        self, sample: Sample, criterion: str, draw_columns: Callable[[], np.ndarray] | None
    ):
        super().__init__(sample, criterion, draw_columns)
        from holdtrue.categories import loops  # imports numba

        self._loops = loops
        self._counters = np.zeros(int(sample.offsets[-1]) * sample.n_classes, dtype=np.int64)

    def score_columns(
        self, rows: tuple[np.ndarray, ...], columns: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        offsets, n_classes, terms = self.sample.offsets, self.sample.n_classes, self.terms
        return self._loops.score_columns(
            *rows, columns, offsets,
            n_classes, terms.number, terms.scale, terms.table, self._counters,
        )  # fmt: skip

    def partition(
        self, rows: tuple[np.ndarray, ...], column: int, below: tuple[np.ndarray, ...]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        offsets, n_classes = self.sample.offsets, self.sample.n_classes
        if offsets[column + 1] - offsets[column] > 4 * len(rows[0]):
            return super().partition(rows, column, below)
        return self._loops.partition(*rows, column, offsets, n_classes, *below)


class _Heap:
    """Leaves by the gain of their best split, or by their own term until they are scored."""

    def __init__(self, leaves: _Leaves, only_gains: bool):
        self.leaves = leaves
        self.only_gains = only_gains
        self.only_clear = (
            only_gains and leaves.terms.criterion in IN_SAMPLE and leaves.draw_columns is None
        )
        # (-gain, scored, leaf, column): the order of the tuple is the rule for ties.
        self.heap: list[tuple[float, bool, int, int]] = []

    def push(self, nodes: list[int]) -> None:
        """Add leaves that may be split."""
        for node in nodes:
            heapq.heappush(self.heap, (-round(self.leaves.term[node] * COARSE), False, node, -1))

    def pop(self) -> tuple[int, int] | None:
        """The best leaf and column, or None when nothing is left to split."""
        while self.heap:
            _, scored, node, column = heapq.heappop(self.heap)
            if scored:
                return node, column
            columns, children, _ = self.leaves.score(node)
            term = self.leaves.term[node]
            gain = np.rint((term - children) * COARSE)
            least = -np.inf
            if self.only_gains:
                charged = self.leaves.terms.charged(term, self.leaves.total[node])
                least = round((term - charged) * COARSE)
            at = self._first(node, columns, children, gain, least)
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
            counts = self.leaves.children_counts(node, int(columns[at]))
            removed, standard_error = ginger_gain(counts)
            if removed > errors * standard_error:  # departure 5
                return at
        return None


class _Ratios:
    """Leaves by the gain ratio ``(A + a)/(B + b)`` that the whole tree has after a split.

    A and B are the information gain and the entropy of the tree's leaves so far, a and b what a
    split adds. A and B change with every split, so that all columns of all scored leaves are
    compared anew. A leaf of label entropy t is bounded by ``(A + t)/(B + t)``, as a ≤ t and a ≤ b.
    """

    def __init__(self, leaves: _Leaves, only_gains: bool):
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
        self.added[1, at, columns] = self.leaves.terms.table[self.leaves.total[node]] - logs
        self.scored.append(node)
        return self._ratio(self.added[:, at])

    def _ratio(self, added: np.ndarray) -> np.ndarray:
        """``(A + a)/(B + b)``, rounded to 40 bits so that ties are ties."""
        gain, entropy = self.gain + added[0], self.entropy + added[1]
        ratio = np.divide(gain, entropy, out=np.full(gain.shape, -np.inf), where=entropy > 0)
        return np.rint(ratio * 2.0**40)


# --- A tree of a forest -----------------------------------------------------------------------


def row_order(sample: Sample) -> np.ndarray:
    """Order of the rows that depends on their values alone, so that draws do not follow storage.

    By a hash of the cells: rows that differ and yet hash alike only lie closer together.
    """
    rng = np.random.default_rng(0)
    mixed = np.zeros(len(sample.cells), dtype=np.uint64)
    for column in sample.cells.T:
        mixed += column.astype(np.uint64) * rng.integers(2**64, dtype=np.uint64)
    return np.lexsort((sample.label, mixed))


def grow_on_part(
    sample: Sample,
    order: np.ndarray,
    criterion: str,
    feature: np.ndarray,
    n_drawn: int,
    seed: int,
    limits: dict[str, Any],
) -> Tree:
    """Tree on rows drawn without replacement, trying n_drawn features at each node."""
    rng = np.random.default_rng(seed)
    # Weights are repetitions: places are drawn on a line on which a row is as long as its weight.
    end = np.cumsum(sample.weight[order])
    n_places = max(1, round(_SHARE * int(end[-1])))
    places = rng.choice(int(end[-1]), n_places, replace=False, shuffle=False)
    drawn = np.bincount(np.searchsorted(end, places, side="right"), minlength=len(order))
    kept = np.flatnonzero(drawn)
    rows = order[kept]
    part = sample._replace(
        cells=sample.cells[rows], label=sample.label[rows], weight=drawn[kept].astype(np.int64)
    )
    n_features = int(feature[-1]) + 1

    def draw_columns() -> np.ndarray:
        chosen = np.zeros(n_features, dtype=bool)
        chosen[rng.permutation(n_features)[:n_drawn]] = True
        return np.flatnonzero(chosen[feature])

    tree = grow_tree(part, criterion, draw_columns=draw_columns, **limits)
    if tree.stopped == "interrupted":
        raise KeyboardInterrupt  # or the forest would go on with its next tree
    return tree
