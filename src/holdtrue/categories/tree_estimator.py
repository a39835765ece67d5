"""GingerTreeClassifier and GingerForestClassifier: trees that do not believe an id."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from holdtrue.categories.columns import read_sample, read_table
from holdtrue.categories.growing import WORTH_COMPILING, grow_on_part, grow_tree, row_order
from holdtrue.categories.tree import (
    CRITERIA,
    IN_SAMPLE,
    Tree,
    least_estimate,
    node_probabilities,
    staged_scores,
)
from holdtrue.path import SelectionPath, ShowsPath
from holdtrue.progress import progress_bar
from holdtrue.validation import check_choice, check_weights, is_number

UNITS = {
    "ginger": "error of a label drawn from the leaf",
    "majority": "error of the leaf's majority",
    "gini": "Gini impurity",
    "misclassification": "error on the rows of the fit",
    "information_gain": "entropy of the label, bits",
    "gain_ratio": "1 - gain ratio",
}


class GingerTreeClassifier(ClassifierMixin, ShowsPath, BaseEstimator):
    """Decision tree with one child per value, split by the estimated error on new rows.

    A column with many values (an id, a postcode) looks perfect on the rows it was measured on, and
    ordinary trees split on it. Here a split is worth what it takes off the error that the tree
    would make on rows it has not seen [1]_, and growing stops when no split clearly takes off
    anything: more than ``sqrt(2 ln p)`` standard errors, for the best of p columns seems better
    than it is.

    Parameters
    ----------
    criterion : str, default="ginger"
        ``"ginger"`` or ``"majority"`` estimate the error on new rows, of a label drawn from the
        leaf and of the leaf's majority. ``"gini"``, ``"misclassification"``,
        ``"information_gain"`` and ``"gain_ratio"`` measure the rows of the fit; they are here to
        compare with.
    max_splits : int, optional
        Explore that many splits, even where the estimate rises, and keep as many as make it
        least. Default: stop where no split lowers it by more than ``sqrt(2 ln p)`` standard
        errors, with p columns to choose from (``"ginger"`` and ``"majority"``), or at all (the
        others).
    max_depth : int, optional
        Nodes at this depth are not split.
    min_rows : int, default=2
        Nodes of fewer rows are not split.
    categorical_features : "from_dtype" or list of names, places or truth values
        Columns to be taken by value whatever their type. The others follow their type: text,
        categories and truth values by value; decimal numbers and dates by quantile bins; whole
        numbers by value, and where they have more than ``max_bins`` values by bins too. Bins come
        at several resolutions (2, 4, ... up to ``max_bins``), and the criterion takes its pick.
    max_bins : int, default=64
        Most bins of a column. Their edges are values of the data.
    unseen : {"uniform", "prior"}, default="uniform"
        What is believed before any row is seen, all classes alike or the classes' shares in the
        fit. Each node's shares are mixed with its parent's, which weigh one row; the root's are
        mixed with this.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    path_ : SelectionPath
        The splits explored: ``order`` is the column of each, ``scores`` the criterion after it (for
        gain ratio one minus it), ``train_scores`` the same on the rows of the fit without leaving
        any out.
    support_, ranking_ : ndarray of shape (n_features,)
        Mask of the columns that are split on, and their order of entry.
    feature_importances_ : ndarray of shape (n_features,)
        What the splits on each column take off the score: error removed, not shares of 1. Below
        0 where ``max_splits`` led over splits that raise it.
    n_leaves_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        When the columns of X have names.
    tree_ : Tree
        The nodes and their class counts.

    See Also
    --------
    export_text : The tree in words.
    TreeDisplay : The tree drawn.
    GingerForestClassifier : Many such trees.

    Notes
    -----
    When **not** to use it: when rows repeat (several per patient, say), for leaving one of them out
    then hides nothing. The estimate of the *best* of many splits is too good, the more so the more
    columns there are; judge the tree on held-out rows. For smooth functions of decimal numbers
    gradient boosting is the better tool.

    A value that a node has not seen is predicted from the node. The estimate charges such a row
    with chance.

    ``predict`` takes the majority of the leaf; where classes tie, the node above decides.

    References
    ----------
    .. [1] S. Sabato, S. Shalev-Shwartz, "Ranking Categorical Features Using Generalization
       Properties", Journal of Machine Learning Research 9 (2008) 1083-1114.

    Examples
    --------
    >>> import numpy as np
    >>> from holdtrue import GingerTreeClassifier
    >>> rng = np.random.default_rng(0)
    >>> town, ident = rng.integers(0, 8, 400), np.arange(400)
    >>> bought = (town < 3) ^ (rng.random(400) < 0.1)
    >>> X = np.column_stack([ident, town])
    >>> tree = GingerTreeClassifier(categorical_features=[0, 1]).fit(X, bought)
    >>> tree.support_, tree.n_leaves_
    (array([False,  True]), 8)
    """

    def __init__(
        self,
        criterion: str = "ginger",
        *,
        max_splits: int | None = None,
        max_depth: int | None = None,
        min_rows: int = 2,
        categorical_features: Any = "from_dtype",
        max_bins: int = 64,
        unseen: str = "uniform",
    ):
        self.criterion = criterion
        self.max_splits = max_splits
        self.max_depth = max_depth
        self.min_rows = min_rows
        self.categorical_features = categorical_features
        self.max_bins = max_bins
        self.unseen = unseen

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GingerTreeClassifier:
        """Grow the tree.

        Parameters
        ----------
        X : table or array-like of shape (n_samples, n_features)
            pandas, Polars or Arrow table, or array. Missing values are values of their own.
        y : array-like of shape (n_samples,)
            Classes.
        sample_weight : array-like of shape (n_samples,), optional
            Whole numbers: weights are repetitions.

        Returns
        -------
        self : GingerTreeClassifier
        """
        _check_parameters(self)
        self._encoder, sample, self.classes_ = read_sample(self, X, y, sample_weight)
        limits = {name: getattr(self, name) for name in ("max_splits", "max_depth", "min_rows")}
        tree = grow_tree(sample, self.criterion, **limits)
        self._explored = tree
        self._probability = node_probabilities(tree, self.unseen)
        n_splits = least_estimate(tree)
        order = self._encoder.feature[tree.column]
        scores = staged_scores(tree, self.criterion)
        self.path_ = SelectionPath(
            order=order,
            names=tuple(self._encoder.names[j] for j in order),
            scores=scores,
            chosen_size=n_splits,
            reason=_reason(tree, n_splits, limits),
            unit=UNITS[self.criterion],
            train_scores=staged_scores(tree, IN_SAMPLE.get(self.criterion, self.criterion)),
        )
        if tree.stopped == "interrupted":
            raise KeyboardInterrupt
        n_features = self.n_features_in_
        self.tree_ = tree.cut(n_splits)
        self.n_leaves_ = len(self.tree_.born) - n_splits
        self.support_ = self.path_.support(n_features)
        self.ranking_ = self.path_.ranking(n_features)
        self.feature_importances_ = np.bincount(
            order[:n_splits], -np.diff(scores[: n_splits + 1]), minlength=n_features
        )
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class, shape (n_samples, n_classes).

        The class shares of the row's leaf, mixed with one row's worth of its parent's, and so on
        up: never 0 or 1, and near the parent's where the leaf has few rows.
        """
        node = self.apply(X)
        return self._probability[node]

    def predict(self, X: Any) -> np.ndarray:
        """Class of each row, shape (n_samples,): the majority of its leaf."""
        probability = self.predict_proba(X)
        return self.classes_[probability.argmax(axis=1)]

    def apply(self, X: Any) -> np.ndarray:
        """Number of the node in ``tree_`` that each row ends in, shape (n_samples,)."""
        check_is_fitted(self, "tree_")
        return self.tree_.apply(self._encoder.transform(read_table(self, X, reset=False)))

    def staged_errors(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        """Share of rows predicted wrongly after 0, 1, ... of the splits in ``path_``.

        Parameters
        ----------
        X : table or array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        errors : ndarray of shape (n_splits + 1,)
        """
        check_is_fitted(self, "tree_")
        cells = self._encoder.transform(read_table(self, X, reset=False))
        y = column_or_1d(y)
        check_consistent_length(cells, y)
        weight = check_weights(type(self).__name__, sample_weight, len(y))
        guess = self.classes_[self._probability.argmax(axis=1)]

        def loss(rows: np.ndarray, nodes: Any) -> np.ndarray:
            return weight[rows] * (guess[nodes] != y[rows])

        first = loss(np.arange(len(y)), 0).sum()
        change = self._explored.staged_changes(cells, loss)
        return np.cumsum(np.append(first, change)) / weight.sum()

    def get_depth(self) -> int:
        """Most splits on the way from the root to a leaf."""
        check_is_fitted(self, "tree_")
        return int(self.tree_.depth.max())

    def to_dict(self) -> dict[str, Any]:
        """The tree as nested dicts of plain values.

        Each node has ``node`` (its number), ``counts`` (rows per class), ``probability`` and
        ``class``; one that is split has ``column`` and ``children`` too, and every child ``when``,
        the values that lead to it in words.
        """
        check_is_fitted(self, "tree_")
        tree, nodes = self.tree_, []
        classes = self.classes_.tolist()
        for node, split in enumerate(tree.born.tolist()):
            probability = self._probability[node]
            own: dict[str, Any] = {"node": node}
            if split >= 0:
                own["when"] = self._encoder.describe(int(tree.column[split]), int(tree.cell[node]))
            own["counts"] = tree.counts[node].tolist()
            own["probability"] = probability.tolist()
            own["class"] = classes[int(probability.argmax())]
            nodes.append(own)
            if split >= 0:
                above = nodes[int(tree.node[split])]
                above.setdefault("column", self.path_.names[split])
                above.setdefault("children", []).append(own)
        return nodes[0]


class GingerForestClassifier(ClassifierMixin, ShowsPath, BaseEstimator):
    """Average of many Ginger trees, each grown on part of the rows and trying part of the columns.

    Rows are drawn **without** replacement. A bootstrap sample holds many rows twice; leaving one
    copy out then leaves the other in, and an id column would seem to predict: on pure noise it
    would be estimated to err on .18 of new rows where the truth is .50.

    Each tree grows while any split lowers the estimate, clearly or not, because the average undoes
    what single trees believe too easily.

    Parameters
    ----------
    n_trees : int, default=100
    criterion : str, default="ginger"
        As in `GingerTreeClassifier`, as are the next six.
    max_splits : int, optional
    max_depth : int, optional
    min_rows : int, default=2
    categorical_features : "from_dtype" or list of names, places or truth values
    max_bins : int, default=64
    unseen : {"uniform", "prior"}, default="uniform"
    max_columns : "sqrt", int, float or None, default="sqrt"
        Columns that are tried at each node: the root of their number, a number, a share, or all.
    random_state : int, RandomState or None, default=None
        Draws the rows and the columns.
    n_jobs : int, optional
        Processes that grow trees.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    trees_ : list of Tree
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
    >>> forest.path_.names[:2]
    ('x0', 'x1')
    """

    def __init__(
        self,
        n_trees: int = 100,
        *,
        criterion: str = "ginger",
        max_splits: int | None = None,
        max_depth: int | None = None,
        min_rows: int = 2,
        categorical_features: Any = "from_dtype",
        max_bins: int = 64,
        unseen: str = "uniform",
        max_columns: Any = "sqrt",
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.n_trees = n_trees
        self.criterion = criterion
        self.max_splits = max_splits
        self.max_depth = max_depth
        self.min_rows = min_rows
        self.categorical_features = categorical_features
        self.max_bins = max_bins
        self.unseen = unseen
        self.max_columns = max_columns
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> GingerForestClassifier:
        """Grow the trees; a bar on the terminal says how many there are.

        Parameters
        ----------
        X : table or array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Whole numbers: weights are repetitions.

        Returns
        -------
        self : GingerForestClassifier
        """
        _check_parameters(self)
        _check_count("GingerForestClassifier", "n_trees", self.n_trees, 1)
        self._encoder, sample, self.classes_ = read_sample(self, X, y, sample_weight)
        n_features = self.n_features_in_
        n_drawn = self._columns_to_draw(n_features)
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=self.n_trees)
        limits = {name: getattr(self, name) for name in ("max_splits", "max_depth", "min_rows")}
        limits["compiled"] = sample.cells.size * self.n_trees >= WORTH_COMPILING
        order, feature = row_order(sample), self._encoder.feature
        jobs = [
            delayed(grow_on_part)(sample, order, self.criterion, feature, n_drawn, seed, limits)
            for seed in seeds
        ]
        try:
            self.trees_ = self._grown(jobs)
        except KeyboardInterrupt:
            nothing = np.empty(0)
            self.path_ = SelectionPath(nothing, (), np.append(nothing, np.nan), 0, "interrupted")
            raise
        self._probability = [node_probabilities(tree, self.unseen) for tree in self.trees_]
        start, removed = 0.0, np.zeros(n_features)
        for tree in self.trees_:
            scores = staged_scores(tree, self.criterion) / self.n_trees
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
            f"{self.n_trees} trees",
            unit=UNITS[self.criterion],
        )
        self.support_ = self.path_.support(n_features)
        self.ranking_ = self.path_.ranking(n_features)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class, shape (n_samples, n_classes): the trees' average."""
        check_is_fitted(self, "trees_")
        cells = self._encoder.transform(read_table(self, X, reset=False))
        total = np.zeros((len(cells), len(self.classes_)))
        for tree, probability in zip(self.trees_, self._probability, strict=True):
            total += probability[tree.apply(cells)]
        return total / self.n_trees

    def predict(self, X: Any) -> np.ndarray:
        """Class of each row, shape (n_samples,): the most probable one."""
        probability = self.predict_proba(X)
        return self.classes_[probability.argmax(axis=1)]

    def _grown(self, jobs: list[Any]) -> list[Tree]:
        """What the jobs give, in their order."""
        trees: list[Tree] = []
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
        given = self.max_columns
        if given is None:
            return n_features
        if isinstance(given, str) and given == "sqrt":
            return max(1, round(math.sqrt(n_features)))
        if is_number(given, numbers.Integral) and given >= 1:
            return min(int(given), n_features)
        if is_number(given) and not isinstance(given, numbers.Integral) and 0 < given <= 1:
            return max(1, round(given * n_features))
        raise ValueError(
            "GingerForestClassifier: max_columns must be 'sqrt', a whole number of at least 1, a "
            f"share between 0 and 1, or None. Got {given!r}."
        )


# --- what both share ---


def _check_count(owner: str, name: str, value: Any, least: int) -> None:
    if not (is_number(value, numbers.Integral) and value >= least):
        raise ValueError(
            f"{owner}: {name} must be a whole number of at least {least}. Got {value!r}."
        )


def _check_parameters(estimator: Any) -> None:
    owner = type(estimator).__name__
    check_choice(owner, "criterion", estimator.criterion, CRITERIA)
    check_choice(owner, "unseen", estimator.unseen, ("uniform", "prior"))
    _check_count(owner, "min_rows", estimator.min_rows, 2)
    _check_count(owner, "max_bins", estimator.max_bins, 2)
    for name in ("max_splits", "max_depth"):
        if getattr(estimator, name) is not None:
            _check_count(owner, name, getattr(estimator, name), 0)


def _reason(tree: Tree, n_splits: int, limits: dict[str, Any]) -> str:
    if tree.stopped == "interrupted":
        return "interrupted"
    after = "1 split" if n_splits == 1 else f"{n_splits} splits"
    limit = " and ".join(f"{name}={limits[name]}" for name in tree.withheld)
    within = f" within {limit}" if limit else ""
    if tree.stopped == "gain":
        lowers = "clearly lowers" if tree.criterion in IN_SAMPLE else "lowers"
        if n_splits == 0:
            return f"no split{within} {lowers} the estimate, so nothing is split"
        return f"after {after} no further split{within} {lowers} the estimate"
    said = f"the estimate is least after {after} of {tree.n_splits} explored"
    return said + ("" if tree.stopped == "max_splits" else f"; no leaf is left to split{within}")
