"""Rows in and out of the bags of a forest, and a tree on one bag."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from holdtrue.categories.grow import grow_tree
from holdtrue.categories.leaf_terms import SHRUNK
from holdtrue.categories.leaves import FeatureDraws
from holdtrue.categories.tree import Sample, Tree

# Rows that a tree of a forest sees: as many as a bootstrap sample has distinct ones.
_SHARE = 1 - math.exp(-1)


class Bags(NamedTuple):
    """Rows that trees are drawn from, in an order that depends on their values alone.

    Equal rows are one row: weights are repetitions.
    """

    sample: Sample
    # shape (n_rows,): rows of a group are in the bag together, or out of it
    group: np.ndarray | None

    @classmethod
    def from_sample(cls, sample: Sample, group: np.ndarray | None = None) -> Bags:
        """Bags from rows in any order; equal groups have equal numbers, from 0."""
        rng = np.random.default_rng(0)
        # Rows that differ and yet hash alike only lie closer together.
        mixed = np.zeros(len(sample.cells), dtype=np.uint64)
        for column in sample.cells.T:
            mixed += column.astype(np.uint64) * rng.integers(2**64, dtype=np.uint64)
        keys = (sample.label, mixed) if group is None else (sample.label, mixed, group)
        order = np.lexsort(keys)
        first = np.ones(len(order), dtype=bool)
        same = (np.diff(mixed[order]) == 0) & (np.diff(sample.label[order]) == 0)
        if group is not None:
            same &= np.diff(group[order]) == 0
        at = np.flatnonzero(same)
        first[at + 1] = (sample.cells[order[at + 1]] != sample.cells[order[at]]).any(axis=1)
        starts = np.flatnonzero(first)
        kept = order[starts]
        return cls(
            sample._replace(
                cells=sample.cells[kept],
                label=sample.label[kept],
                weight=np.add.reduceat(sample.weight[order], starts),
            ),
            None if group is None else group[kept],
        )

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Rows drawn without replacement, as the weight of each row in the bag."""
        weight = self.sample.weight
        if self.group is not None:
            n_groups = int(self.group.max()) + 1
            drawn = rng.permutation(n_groups)[: max(1, round(_SHARE * n_groups))]
            in_bag = np.zeros(n_groups, dtype=bool)
            in_bag[drawn] = True
            return weight * in_bag[self.group]
        # Places are drawn on a line on which a row is as long as its weight; those left out are
        # fewer than those drawn.
        row = np.repeat(np.arange(len(weight)), weight)
        n_out = len(row) - max(1, round(_SHARE * len(row)))
        places = rng.choice(len(row), n_out, replace=False, shuffle=False)
        return weight - np.bincount(row[places], minlength=len(weight))


class GrownTree(NamedTuple):
    """A tree of a forest, and where the rows out of its bag end."""

    tree: Tree
    rows: np.ndarray  # shape (n_out,): rows out of the bag
    node: np.ndarray  # shape (n_out,)
    weight: np.ndarray  # shape (n_out,): repetitions of the row out of the bag


def grow_on_part(
    bags: Bags,
    criterion: str,
    feature: np.ndarray,
    n_drawn: int,
    seed: int,
    limits: dict[str, Any],
) -> GrownTree:
    """Tree on rows drawn without replacement, trying n_drawn features at each node."""
    sample, group = bags.sample, bags.group if criterion in SHRUNK else None
    drawn = bags.draw(np.random.default_rng(seed))
    part = sample._replace(weight=drawn)
    # Trees that stop because the draw was bad pull the average to the prior. A temperature mends
    # that for classes, nothing for numbers.
    draws = FeatureDraws(feature, n_drawn, seed, again=not sample.n_classes)
    tree = grow_tree(part, criterion, group=group, draws=draws, **limits)
    if tree.stopped == "interrupted":
        raise KeyboardInterrupt  # or the forest would go on with its next tree
    left = sample.weight - drawn
    rows = np.flatnonzero(left)
    ends = tree.apply(sample.cells, rows, compiled=bool(limits["compiled"]))
    return GrownTree(tree, rows, ends, left[rows])
