"""Forests: rows in and out of the bags, a tree on one bag, and shares calibrated out of bag.

Paper
-----
Guo, Pleiss, Sun & Weinberger, "On Calibration of Modern Neural Networks", Proceedings of the 34th
International Conference on Machine Learning (2017): section 4.2, temperature scaling.

Notation
--------
=====  ============================================================================
T      ``temperature``
π_k    ``prior``, shares of the classes among all rows
α_k    ``anchor``, what a row is given whose shares are π
p_k    ``shares``, calibrated ``α_k (p_k/π_k)^(1/T)`` over their sum
=====  ============================================================================

Departures
----------
1. The paper has neither π nor α: its shares sharpen away from uniform ones. A forest's are too near
   to π, and with a rare class sharpening would only make every row less likely to be of it. About π
   itself slopes stay above 1 where a class is rare: rows of many doubtful ones share its mean.
2. ``log α/π`` and ``log T/T_0`` have standard normal priors, which weigh about one row: without
   them a handful of rows, all of them right, would ask for certainty. Above ``T_0 = 1/2`` the prior
   of T is narrower, of deviation .5: averages of shrunk trees are too timid by about a half on
   every table, and where rows out of bag say little they say T > 1 as often as not.
3. A row out of bag is missing from its own class, which is therefore rarer than for a new row. Its
   shares are held against a prior that misses it too (with groups, its group): with 15 rows of a
   class the trees seem too sure otherwise.
4. Only m of the B trees have not seen a row. Their average is noisier than that of all trees, and
   noise asks for a larger T. ``log T`` is taken as linear in 1/m: what it rises by from m trees to
   halves of them (every other tree), times ``1 - m/B``, is taken away; T is never raised.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from holdtrue.categories.grow import grow_tree
from holdtrue.categories.leaf_terms import SHRUNK
from holdtrue.categories.leaves import FeatureDraws
from holdtrue.categories.shrunk import prior
from holdtrue.categories.tree import Sample, Tree

# Rows that a tree of a forest sees: as many as a bootstrap sample has distinct ones.
_SHARE = 1 - math.exp(-1)
_WIDEST = 3.0  # of log T: a factor of 20
_USUAL = math.log(0.5)  # log T_0 (departure 2)
_TIMID = 0.5
_ROWS_FOR_HALVES = 2000  # on which halves of a forest are compared


# --- bags ---------------------------------------------------------------------------------------


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
        kept, weight = order[starts], np.add.reduceat(sample.weight[order], starts)
        return cls(sample.at(kept)._replace(weight=weight), None if group is None else group[kept])

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


# --- calibration --------------------------------------------------------------------------------


class Calibration(NamedTuple):
    """Temperature and anchor, shape (n_classes,)."""

    temperature: float
    anchor: np.ndarray


def tempered(shares: np.ndarray, prior: np.ndarray, calibration: Calibration) -> np.ndarray:
    """Shares, above 0, over the prior to the power ``1/T``, times the anchor, in proportion."""
    temperature, anchor = calibration
    return np.asarray(softmax(np.log(shares / prior) / temperature + np.log(anchor), axis=1))


def calibrated(
    shares: np.ndarray, prior: np.ndarray, label: np.ndarray, weight: np.ndarray
) -> Calibration:
    """Temperature and anchor of least log loss; 1/2 and the prior without rows.

    The shares, shape (n_rows, n_classes), are of rows that the predictor has not seen.
    """
    # Classes first: NumPy is slow along rows of a few numbers.
    logs, log_prior = np.ascontiguousarray(np.log(shares / prior).T), np.log(prior)
    rows = np.arange(len(label))

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        log_t, offset = parameters[0], parameters[1:]
        stretched = math.exp(-log_t) * logs
        log_share = log_softmax(stretched + (log_prior + offset)[:, None], axis=0)
        away = log_t - _USUAL
        precision = 1 / _TIMID**2 if away > 0 else 1.0
        value = (precision * away**2 + float(offset @ offset)) / 2
        value -= float(weight @ log_share[label, rows])
        residual = np.exp(log_share)
        residual[label, rows] -= 1
        residual *= weight
        on_t = precision * away - np.vdot(residual, stretched)
        return value, np.append(on_t, residual.sum(axis=1) + offset)

    bounds = [(-_WIDEST, _WIDEST), *[(None, None)] * len(prior)]
    best = minimize(loss, np.zeros(1 + len(prior)), jac=True, method="L-BFGS-B", bounds=bounds).x
    return Calibration(math.exp(float(best[0])), softmax(log_prior + best[1:]))


def out_of_bag_calibration(
    bags: Bags, grown: list[GrownTree], shares: list[np.ndarray], whole_prior: np.ndarray
) -> Calibration:
    """Calibration of least log loss of rows predicted by the trees that have not seen them.

    ``shares`` are those of the nodes of each tree, ``whole_prior`` those of all rows.
    """
    sample, group = bags.sample, bags.group
    weight = sample.weight.astype(np.float64)
    totals = np.zeros((2, len(weight), sample.n_classes))  # over every other tree
    n_trees = np.zeros((2, len(weight)))
    for at, (each, share) in enumerate(zip(grown, shares, strict=True)):
        totals[at % 2, each.rows] += each.weight[:, None] * share[each.node]
        n_trees[at % 2, each.rows] += each.weight
    left_out = np.eye(sample.n_classes)[sample.label]
    if group is not None:
        of_group = np.zeros((int(group.max()) + 1, sample.n_classes))
        np.add.at(of_group, (group, sample.label), weight)
        left_out = of_group[group]
    # Without the row its class is rarer than for a new row (departure 3).
    other_rows = np.bincount(sample.label, weight, sample.n_classes) - left_out

    def fitted(halves: list[int], rows: np.ndarray) -> Calibration:
        average = totals[halves].sum(axis=0)[rows] / n_trees[halves].sum(axis=0)[rows, None]
        average *= whole_prior / prior(other_rows[rows])
        return calibrated(average, whole_prior, sample.label[rows], weight[rows])

    calibration = fitted([0, 1], np.flatnonzero(n_trees.sum(axis=0)))
    rows = np.flatnonzero(n_trees.all(axis=0))  # (departure 4)
    if not len(rows):
        return calibration
    rows = rows[:: -(-len(rows) // _ROWS_FOR_HALVES)]
    log_t = [math.log(fitted(halves, rows).temperature) for halves in ([0], [1], [0, 1])]
    rise = max((log_t[0] + log_t[1]) / 2 - log_t[2], 0.0)
    share_out = float(n_trees.sum() / (weight.sum() * len(grown)))
    return calibration._replace(
        temperature=calibration.temperature * math.exp(-rise * (1 - share_out))
    )
