"""GingerForestClassifier and GingerForestRegressor: averages of many Ginger trees."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted

from holdtrue.categories.encoder import read_table
from holdtrue.categories.forest import (
    Bags,
    Calibration,
    GrownTree,
    grow_on_part,
    out_of_bag_calibration,
    tempered,
)
from holdtrue.categories.shrunk import prior
from holdtrue.categories.tree import (
    WORTH_COMPILING,
    WORTH_COMPILING_GROUPS,
    Sample,
    node_means,
    staged_scores,
)
from holdtrue.categories.tree_estimator import UNITS, Grown, class_shares
from holdtrue.errors import InputError, shown, speaks
from holdtrue.path import SelectionPath
from holdtrue.progress import progress_bar
from holdtrue.validation import check_count, is_number


class _Forest(Grown):
    """What forests of classes and of numbers share."""

    _cuts_numbers = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_estimators", self.n_estimators, 1)

    def _grow(self, sample: Sample, group: np.ndarray | None, unit: float) -> None:
        bags = Bags.from_sample(sample, group)
        n_features, sample = self.n_features_in_, bags.sample
        n_drawn = self._columns_to_draw(n_features)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_estimators)
        limits = self._limits()
        worth = WORTH_COMPILING if group is None else WORTH_COMPILING_GROUPS
        compiled = limits["compiled"] = sample.cells.size * self.n_estimators >= worth
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
        with progress_bar("trees", len(jobs)) as tick:
            try:
                for tree in growing:
                    trees.append(tree)
                    tick()
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


class GingerForestClassifier(ClassifierMixin, _Forest):
    """Average of many Ginger trees, each grown on part of the rows and trying part of the columns.

    Rows are drawn **without** replacement. A bootstrap sample holds many rows twice; leaving one
    copy out then leaves the other in, and an id column would seem to predict: on pure noise it
    would be estimated to err on .18 of new rows where the truth is .50.

    Each tree grows while any split lowers the estimate, clearly or not, because the average undoes
    what single trees believe too easily. Numbers are cut in two, at the ends of
    ``max_bins // 4`` quantile bins, of which every other one is tried at a node.

    Parameters
    ----------
    n_estimators : int, default=100
    criterion : str, default="log_loss"
        As in `GingerTreeClassifier`, as are the next six.
    max_splits : int, optional
    max_depth : int, optional
    min_samples_split : int, default=2
    categorical_features : "from_dtype" or array-like
    max_bins : int, default=64
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
            bags, grown, self._shares, self._prior
        )

    @speaks
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class, shape (n_samples, n_classes).

        The trees' average, its distance from the classes' shares in the fit stretched by
        ``1/temperature_`` (in logarithms), about shares that rows out of bag agree with.
        """
        check_is_fitted(self, "trees_")
        calibration = Calibration(self.temperature_, self._anchor)
        return tempered(self._average(X, self._shares), self._prior, calibration)

    @speaks
    def predict(self, X: Any) -> np.ndarray:
        """Class of each row, shape (n_samples,): the most probable one."""
        probability = self.predict_proba(X)
        return self.classes_[probability.argmax(axis=1)]


class GingerForestRegressor(RegressorMixin, _Forest):
    """Average of many Ginger regression trees, on part of the rows and columns each.

    Rows are drawn without replacement, and trees grow while any split lowers the estimate, as in
    `GingerForestClassifier`.

    Parameters
    ----------
    n_estimators : int, default=100
    criterion : {"squared_error"}, default="squared_error"
    max_splits : int, optional
        As in `GingerTreeRegressor`, as are the next four.
    max_depth : int, optional
    min_samples_split : int, default=2
    categorical_features : "from_dtype" or array-like
    max_bins : int, default=64
    max_features : "sqrt", int, float or None, default=0.5
        Columns that are tried at each node: the root of their number, a number, a share, or all.
        As many more are tried where none of them gains.
    random_state : int, RandomState or None, default=None
        Draws the rows and the columns.
    n_jobs : int, optional
        Processes that grow trees.

    Attributes
    ----------
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
        self._means = [node_means(tree) for tree in self.trees_]

    @speaks
    def predict(self, X: Any) -> np.ndarray:
        """Number for each row, shape (n_samples,): the trees' average."""
        check_is_fitted(self, "trees_")
        return self._unit.back(self._average(X, self._means))
