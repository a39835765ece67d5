"""Forests: averages of trees on part of the rows each, calibrated on the rows left out.

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
5. Numbers, minus their mean: ``s f``, f the trees' average. The slope s is that of least squares on
   rows out of bag and five more rows of slope 1; the weight of a parent's mean in its children's
   is the one of least error there. Nearly without noise a weight of 0 and s > 1 are best, and
   s < 1 where columns say little.
"""

from __future__ import annotations

import math
import numbers
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from sklearn.base import RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from holdtrue.categories.cells import read_table
from holdtrue.categories.grow import FeatureDraws, grow_tree, work
from holdtrue.categories.shrunk import prior
from holdtrue.categories.tree import (
    SHRUNK,
    WORTH_COMPILING,
    WORTH_COMPILING_GROUPS,
    Sample,
    Tree,
    node_means,
    staged_scores,
)
from holdtrue.categories.tree_estimator import UNITS, Grown, PredictsClasses, class_shares
from holdtrue.errors import InputError, shown, speaks
from holdtrue.path import SelectionPath
from holdtrue.progress import progress
from holdtrue.validation import check_count, is_number

# Rows that a tree of a forest sees: as many as a bootstrap sample has distinct ones.
_SHARE = 1 - math.exp(-1)
_WIDEST = 3.0  # of log T: a factor of 20
_USUAL = math.log(0.5)  # log T_0 (departure 2)
_TIMID = 0.5
_ROWS_FOR_HALVES = 2000  # on which halves of a forest are compared
_PARENT_WEIGHTS = np.array([1.0, 0.0, 0.5, 2.0, 4.0])  # the first where all err alike
_PRIOR_ROWS = 5.0  # of slope 1 (departure 5)


# --- bags ---------------------------------------------------------------------------------------


class Bags(NamedTuple):
    """Rows that trees are drawn from, in an order that depends on their values alone.

    Equal rows are one row: weights are repetitions.
    """

    sample: Sample
    # shape (n_rows,): rows of a group are in the bag together, or out of it
    group: np.ndarray | None
    # shape (Σ weight,): the row at each place of a line on which rows are as long as their weights
    line: np.ndarray

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
        line = np.repeat(np.arange(len(kept)), weight)
        group = None if group is None else group[kept]
        return cls(sample.at(kept)._replace(weight=weight), group, line)

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Rows drawn without replacement, as the weight of each row in the bag."""
        weight = self.sample.weight
        if self.group is not None:
            n_groups = int(self.group.max()) + 1
            drawn = rng.permutation(n_groups)[: max(1, round(_SHARE * n_groups))]
            in_bag = np.zeros(n_groups, dtype=bool)
            in_bag[drawn] = True
            return weight * in_bag[self.group]
        # Places left out are fewer than those drawn.
        n_places = len(self.line)
        n_out = n_places - max(1, round(_SHARE * n_places))
        places = rng.choice(n_places, n_out, replace=False, shuffle=False)
        return weight - np.bincount(self.line[places], minlength=len(weight))


class GrownTree(NamedTuple):
    """A tree of a forest, and where the rows out of its bag end."""

    tree: Tree
    rows: np.ndarray  # shape (n_out,): rows out of the bag
    node: np.ndarray  # shape (n_out,)
    weight: np.ndarray  # shape (n_out,): repetitions of the row out of the bag


def grow_on_part(
    bags: Bags, criterion: str, feature: np.ndarray, n_drawn: int, seed: int, limits: dict[str, Any]
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


def out_of_bag_shares(
    n_rows: int, grown: list[GrownTree], shares: list[np.ndarray], *, compiled: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Sums of the shares of rows' nodes in trees that have not seen them, and the trees' number.

    Shapes (2, n_rows, n_classes) and (2, n_rows): over every other tree.
    """
    totals, n_trees = np.zeros((2, n_rows, shares[0].shape[1])), np.zeros((2, n_rows))
    add_shares: Any = None
    if compiled:
        from holdtrue.categories.loops import add_shares
    for at, (each, share) in enumerate(zip(grown, shares, strict=True)):
        if add_shares is not None:
            add_shares(each.rows, each.node, each.weight, share, totals[at % 2], n_trees[at % 2])
        else:
            totals[at % 2, each.rows] += each.weight[:, None] * share[each.node]
            n_trees[at % 2, each.rows] += each.weight
    return totals, n_trees


def out_of_bag_calibration(
    bags: Bags,
    grown: list[GrownTree],
    shares: list[np.ndarray],
    whole_prior: np.ndarray,
    *,
    compiled: bool = False,
) -> Calibration:
    """Calibration of least log loss of rows predicted by the trees that have not seen them.

    ``shares`` are those of the nodes of each tree, ``whole_prior`` those of all rows.
    """
    sample, group = bags.sample, bags.group
    weight = sample.weight.astype(np.float64)
    totals, n_trees = out_of_bag_shares(len(weight), grown, shares, compiled=compiled)
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


def out_of_bag_stretch(bags: Bags, grown: list[GrownTree]) -> tuple[float, float]:
    """Slope, and weight of a parent's mean, of least squared error out of bag (departure 5)."""
    sample = bags.sample
    totals = np.zeros((len(sample.label), len(_PARENT_WEIGHTS)))
    n_trees = np.zeros(len(sample.label))
    for each in grown:
        means = node_means(each.tree, _PARENT_WEIGHTS)
        totals[each.rows] += each.weight[:, None] * means[each.node]
        n_trees[each.rows] += each.weight
    rows = np.flatnonzero(n_trees)
    average = totals[rows] / n_trees[rows, None]
    label, weight = sample.label[rows], sample.weight[rows].astype(np.float64)
    squares = weight @ np.square(average)
    more = _PRIOR_ROWS * squares / max(float(weight.sum()), 1.0)
    slopes = np.ones(len(squares))
    np.divide((weight * label) @ average + more, squares + more, out=slopes, where=squares > 0)
    slopes = np.maximum(slopes, 0.0)
    best = int((weight @ np.square(label[:, None] - slopes * average)).argmin())
    return float(slopes[best]), float(_PARENT_WEIGHTS[best])


# --- estimators -----------------------------------------------------------------------------------


class _Forest(Grown):
    """What forests of classes and of numbers share."""

    _cuts_numbers = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_estimators", self.n_estimators, 1)

    def _grow(self, sample: Sample, group: np.ndarray | None, unit: float) -> list[Tree]:
        bags = Bags.from_sample(sample, group)
        n_features, sample = self.n_features_in_, bags.sample
        n_drawn = self._columns_to_draw(n_features)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_estimators)
        limits = self._limits()
        worth = WORTH_COMPILING if group is None else WORTH_COMPILING_GROUPS
        compiled = limits["compiled"] = work(sample) * self.n_estimators >= worth
        feature = self._encoder.feature
        jobs = [
            delayed(grow_on_part)(bags, self.criterion, feature, n_drawn, int(seed), limits)
            for seed in seeds
        ]
        grown = self._grown(jobs)
        self.trees_ = [each.tree for each in grown]
        start, removed = 0.0, np.zeros(n_features)
        for tree in self.trees_:
            scores = staged_scores(tree, self.criterion) * (unit / self.n_estimators)
            start += scores[0]
            removed += np.bincount(feature[tree.column], -np.diff(scores), minlength=n_features)
        self.feature_importances_ = removed
        used = np.unique(np.concatenate([feature[tree.column] for tree in self.trees_]))
        ranked = used[np.argsort(-removed[used], kind="stable")]
        self.path_ = SelectionPath(
            order=ranked,
            names=tuple(self._encoder.names[j] for j in ranked),
            scores=start - np.cumsum(np.append(0.0, removed[ranked])),
            chosen_size=len(ranked),
            reason=f"{len(ranked)} of {n_features} columns are split on by some of the "
            f"{self.n_estimators} trees",
            unit=UNITS[self.criterion],
        )
        self.support_ = self.path_.support(n_features)
        self.ranking_ = self.path_.ranking(n_features)
        self._learn_predictions(bags, grown, compiled=compiled)
        return self.trees_

    def _learn_predictions(self, bags: Bags, grown: list[GrownTree], *, compiled: bool) -> None:
        """Set what the nodes of the trees predict, and how their average is calibrated."""
        raise NotImplementedError

    def _average(self, X: Any, values: list[np.ndarray]) -> np.ndarray:
        """Average over the trees of the value of each row's node."""
        check_is_fitted(self, "trees_")
        cells = self._encoder.transform(read_table(self, X))
        compiled = cells.size * len(self.trees_) >= WORTH_COMPILING
        total = np.zeros((len(cells), *values[0].shape[1:]))
        for tree, value in zip(self.trees_, values, strict=True):
            total += value[tree.apply(cells, compiled=compiled)]
        return total / len(self.trees_)

    def _grown(self, jobs: list[Any]) -> list[GrownTree]:
        """What the jobs give, in their order."""
        trees: list[GrownTree] = []
        growing = Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs)
        try:
            trees.extend(progress("trees", growing, len(jobs)))
        except KeyboardInterrupt as stop:
            growing.throw(stop)  # which ends the other processes too
        return trees

    def _columns_to_draw(self, n_features: int) -> int:
        given = self.max_features
        if given is None:
            return n_features
        if isinstance(given, str) and given == "sqrt":
            return max(1, round(math.sqrt(n_features)))
        if is_number(given, numbers.Integral) and given >= 1:
            return min(int(given), n_features)
        if is_number(given) and not isinstance(given, numbers.Integral) and 0 < given <= 1:
            return max(1, round(given * n_features))
        raise InputError(
            "max_features must be 'sqrt', a whole number of at least 1, a "
            f"share between 0 and 1, or None. Got {shown(given)}."
        )


class GingerForestClassifier(PredictsClasses, _Forest):
    """Average of many Ginger trees, each grown on part of the rows and trying part of the columns.

    Rows are drawn **without** replacement. A bootstrap sample holds many rows twice; leaving one
    copy out then leaves the other in, and an id column would seem to predict: on pure noise it
    would be estimated to err on .18 of new rows where the truth is .50.

    Each tree grows while any split lowers the estimate, clearly or not, because the average undoes
    what single trees believe too easily. Numbers are cut in two, at the ends of up to
    ``16 * max_bins`` quantile bins; at each node two to four cuts of a column are tried, evenly
    spread over its rows.

    Parameters
    ----------
    n_estimators : int, default=100
    criterion : str, default="log_loss"
        As in `GingerTreeClassifier`, as are the next six but ``max_bins``.
    max_splits : int, optional
    max_depth : int, optional
    min_samples_split : int, default=2
    categorical_features : "from_dtype" or array-like
    max_bins : int, default=64
        Numbers are cut at the ends of 16 times as many quantile bins.
    unseen : {"uniform", "prior"}, default="uniform"
    max_features : "sqrt", int, float or None, default="sqrt"
        Columns that are tried at each node: the root of their number, a number, a share, or all.
    random_state : int, RandomState or None, default=None
        Draws the rows and the columns.
    n_jobs : int, optional
        Processes that grow trees.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    trees_ : list of Tree
    temperature_ : float
        Below 1 where the trees' average is too cautious. It is chosen, together with the shares
        of a row of which the trees know nothing, by the log loss of rows predicted by the trees
        that have not seen them.
    feature_importances_ : ndarray of shape (n_features,)
        What the splits on each column take off the score, averaged over the trees.
    path_ : SelectionPath
        Columns by importance; ``scores`` are the trees' average, as if only splits on the first
        so many columns counted.
    support_, ranking_ : ndarray of shape (n_features,)
        Mask of the columns that any tree splits on, and their order by importance.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        When the columns of X have names.

    See Also
    --------
    GingerTreeClassifier : One tree, which can be read.

    Notes
    -----
    When **not** to use it: where the answer should be read. Otherwise as for the tree.

    Examples
    --------
    >>> import numpy as np
    >>> from holdtrue import GingerForestClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 6, size=(300, 4))
    >>> y = X[:, 0] + X[:, 1] > 5
    >>> forest = GingerForestClassifier(20, random_state=0).fit(X, y)
    >>> sorted(forest.path_.names[:2])
    ['x0', 'x1']
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "log_loss",
        max_splits: int | None = None,
        max_depth: int | None = None,
        min_samples_split: int = 2,
        categorical_features: Any = "from_dtype",
        max_bins: int = 64,
        unseen: str = "uniform",
        max_features: Any = "sqrt",
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_splits = max_splits
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.categorical_features = categorical_features
        self.max_bins = max_bins
        self.unseen = unseen
        self.max_features = max_features
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _learn_predictions(self, bags: Bags, grown: list[GrownTree], *, compiled: bool) -> None:
        self._shares = [class_shares(tree, self.unseen, compiled=compiled) for tree in self.trees_]
        self._prior = prior(np.bincount(bags.sample.label, bags.sample.weight))
        self.temperature_, self._anchor = out_of_bag_calibration(
            bags, grown, self._shares, self._prior, compiled=compiled
        )

    @speaks
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class.

        The trees' average, its distance from the classes' shares in the fit stretched by
        ``1/temperature_`` (in logarithms), about shares that rows out of bag agree with.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            With the columns of the fit.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self, "trees_")
        calibration = Calibration(self.temperature_, self._anchor)
        return tempered(self._average(X, self._shares), self._prior, calibration)


class GingerForestRegressor(RegressorMixin, _Forest):
    """Average of many Ginger regression trees, on part of the rows and columns each.

    Rows are drawn without replacement, trees grow while any split lowers the estimate, and numbers
    are cut in two, as in `GingerForestClassifier`.

    Parameters
    ----------
    n_estimators : int, default=100
    criterion : {"squared_error"}, default="squared_error"
    max_splits : int, optional
        As in `GingerTreeRegressor`, as are the next three.
    max_depth : int, optional
    min_samples_split : int, default=2
    categorical_features : "from_dtype" or array-like
    max_bins : int, default=64
        As in `GingerForestClassifier`.
    max_features : "sqrt", int, float or None, default=0.5
        Columns that are tried at each node: the root of their number, a number, a share, or all.
        As many more are tried where none of them gains.
    random_state : int, RandomState or None, default=None
        Draws the rows and the columns.
    n_jobs : int, optional
        Processes that grow trees.

    Attributes
    ----------
    stretch_ : float
        Above 1 where the trees' average is too cautious: predictions are stretched about the mean
        by what suits rows that are predicted by the trees that have not seen them.
    parent_weight_ : float
        Rows that the mean of a node weighs in those of its children, chosen on the same rows.
    trees_, feature_importances_, path_, support_, ranking_, n_features_in_, feature_names_in_
        As in `GingerForestClassifier`, in squared error.

    See Also
    --------
    GingerTreeRegressor : One tree, which can be read.

    Notes
    -----
    When **not** to use it: where the answer should be read. Otherwise as for the tree.

    Examples
    --------
    >>> import numpy as np
    >>> from holdtrue import GingerForestRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.integers(0, 6, size=(300, 4))
    >>> y = 1.0 * X[:, 0] + X[:, 1]
    >>> forest = GingerForestRegressor(20, random_state=0).fit(X, y)
    >>> sorted(forest.path_.names[:2])
    ['x0', 'x1']
    """

    _criteria = ("squared_error",)

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "squared_error",
        max_splits: int | None = None,
        max_depth: int | None = None,
        min_samples_split: int = 2,
        categorical_features: Any = "from_dtype",
        max_bins: int = 64,
        max_features: Any = 0.5,
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_splits = max_splits
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.categorical_features = categorical_features
        self.max_bins = max_bins
        self.max_features = max_features
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _learn_predictions(self, bags: Bags, grown: list[GrownTree], *, compiled: bool) -> None:
        self.stretch_, self.parent_weight_ = out_of_bag_stretch(bags, grown)
        self._range = float(bags.sample.label.min()), float(bags.sample.label.max())
        self._means = [node_means(tree, self.parent_weight_) for tree in self.trees_]

    @speaks
    def predict(self, X: Any) -> np.ndarray:
        """Number for each row: the trees' average, stretched about the mean by ``stretch_``.

        It stays within the range of the targets of the fit.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            With the columns of the fit.

        Returns
        -------
        predicted : ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "trees_")
        stretched = self.stretch_ * self._average(X, self._means)
        return self._unit.back(np.clip(stretched, *self._range))
