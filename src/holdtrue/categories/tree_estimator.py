"""GingerTreeClassifier and GingerTreeRegressor: trees that do not believe an id."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from holdtrue.categories.cells import Cells, ColumnEncoder, read_groups, read_sample, read_table
from holdtrue.categories.grow import grow_tree
from holdtrue.categories.kernel import LEAVE_ONE_OUT, TERMS
from holdtrue.categories.ranking import warn_of_groups
from holdtrue.categories.score import (
    CRITERIA,
    NUMERIC_CRITERIA,
    looks_like_group,
    may_be_group,
)
from holdtrue.categories.tree import (
    SHRUNK,
    WORTH_COMPILING,
    Sample,
    Tree,
    least_estimate,
    node_means,
    node_probabilities,
    staged_scores,
    staged_train_losses,
)
from holdtrue.columns.bins import Part, is_present
from holdtrue.columns.counting import Target, table_of
from holdtrue.errors import InputError, check_choice, speaks
from holdtrue.path import SelectionPath, ShowsPath, fits_whole
from holdtrue.sums import Profile
from holdtrue.validation import check_count, check_weights

# What a tree of classes may be grown by.
OF_CLASSES = ("log_loss", *TERMS)
# Columns that are asked whether they look like groups. Such a one takes nearly all of the loss
# away, and is split first.
_ASKED = 3


class Grown(ShowsPath, BaseEstimator):
    """What trees and forests share, of classes and of numbers."""

    _encoder: ColumnEncoder
    _criteria: tuple[str, ...] = OF_CLASSES
    _cuts_numbers = False  # see `cells`

    @fits_whole
    def fit(self, X: Any, y: Any, *, groups: Any = None, sample_weight: Any = None) -> Self:
        """Grow the tree, or the trees of a forest with a bar on the terminal.

        Parameters
        ----------
        X : table or array-like of shape (n_samples, n_features)
            pandas, Polars or Arrow table, or array. Missing values are values of their own.
        y : array-like of shape (n_samples,)
            Classes, or the numbers of a regressor.
        groups : array-like of shape (n_samples,), optional
            New rows will be of new groups (patients, sites): splits by ``"log_loss"`` and
            ``"squared_error"`` leave the rows of a group out together. In a forest they are in a
            tree's bag together or out of it; a tree has no other use for them.
        sample_weight : array-like of shape (n_samples,), optional
            Whole numbers: weights are repetitions.

        Returns
        -------
        self : object
        """
        self._check_parameters()
        group = read_groups(groups, y, sample_weight)
        self._check_groups(group)
        is_numeric = self._criteria is not OF_CLASSES
        read = read_sample(self, X, y, sample_weight, is_numeric=is_numeric)
        if is_numeric:
            self._encoder, sample, self._unit = read
        else:
            self._encoder, sample, self.classes_ = read
        trees = self._grow(sample, group, self._unit.scale**2 if is_numeric else 1.0)
        if group is None:
            alike = [self._encoder.names[j] for j in self._like_groups(sample, trees)]
            warn_of_groups(type(self).__name__, alike, by_name=False)
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _check_parameters(self) -> None:
        """Refuse parameters that cannot be."""
        check_choice("criterion", self.criterion, self._criteria)
        if self._criteria is OF_CLASSES:
            check_choice("unseen", self.unseen, ("uniform", "prior"))
        check_count("min_samples_split", self.min_samples_split, 2)
        check_count("max_bins", self.max_bins, 2)
        for name in ("max_splits", "max_depth"):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name), 0)

    def _check_groups(self, group: np.ndarray | None) -> None:
        """Refuse groups where the criterion does not leave them out."""

    def _grow(self, sample: Sample, group: np.ndarray | None, unit: float) -> list[Tree]:
        """Grow, and set the attributes of the fit; the trees.

        ``unit`` is what a score of the sample is worth in the target's unit.
        """
        raise NotImplementedError

    def _like_groups(self, sample: Sample, trees: list[Tree]) -> list[int]:
        """Features by whose values trees are split first, and which look like groups."""
        first = np.array([tree.column[0] for tree in trees if len(tree.column)], dtype=np.int64)
        n_first = np.bincount(first, minlength=len(self._encoder.columns))
        asked = [at for at in np.argsort(-n_first, kind="stable")[:_ASKED] if n_first[at]]
        return [
            int(self._encoder.feature[at])
            for at in asked
            if _looks_like_group(sample, at, self._encoder.columns[at])
        ]

    def _limits(self) -> dict[str, Any]:
        names = ("max_splits", "max_depth", "min_samples_split")
        return {name: getattr(self, name) for name in names}


class _Tree(Grown):
    """What trees of classes and of numbers share."""

    def _check_groups(self, group: np.ndarray | None) -> None:
        if group is not None and self.criterion not in SHRUNK:
            raise InputError(
                f"groups need criterion='log_loss'. Got criterion={self.criterion!r}. Pass "
                "criterion='log_loss', or leave groups out."
            )

    def _grow(self, sample: Sample, group: np.ndarray | None, unit: float) -> list[Tree]:
        limits = self._limits()
        tree = grow_tree(sample, self.criterion, group=group, **limits)
        n_splits = least_estimate(tree)
        order = self._encoder.feature[tree.column]
        scores = staged_scores(tree, self.criterion) * unit
        if self.criterion in SHRUNK:
            train_scores = staged_train_losses(tree) * unit
        else:
            train_scores = staged_scores(tree, CRITERIA[self.criterion].on_fit)
        self.path_ = SelectionPath(
            order=order,
            names=tuple(self._encoder.names[j] for j in order),
            scores=scores,
            chosen_size=n_splits,
            reason=_reason(tree, n_splits, limits),
            unit=UNITS[self.criterion],
            train_scores=train_scores,
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
        self._explored = tree
        self._predictions = self._node_predictions(tree)
        return [self.tree_]

    @speaks
    def apply(self, X: Any) -> np.ndarray:
        """Number of the node in ``tree_`` that each row ends in.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            With the columns of the fit.

        Returns
        -------
        nodes : ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "tree_")
        cells = self._encoder.transform(read_table(self, X))
        return self.tree_.apply(cells, compiled=cells.size >= WORTH_COMPILING)

    def get_depth(self) -> int:
        """Most splits on the way from the root to a leaf."""
        check_is_fitted(self, "tree_")
        return int(self.tree_.depth.max())

    def to_dict(self) -> dict[str, Any]:
        """The tree as nested dicts of plain values.

        Each node has ``node`` (its number), ``rows``, and what it predicts: ``counts`` (rows per
        class), ``probability`` and ``class``, or ``mean``. One that is split has ``column`` and
        ``children`` too, and every child ``when``, the values that lead to it in words.
        """
        check_is_fitted(self, "tree_")
        tree, nodes = self.tree_, []
        for node, split in enumerate(tree.born.tolist()):
            record: dict[str, Any] = {"node": node}
            if split >= 0:
                record["when"] = self._encoder.describe(
                    int(tree.column[split]), int(tree.cell[node])
                )
            record |= self._prediction(node)
            nodes.append(record)
            if split >= 0:
                above = nodes[int(tree.node[split])]
                above.setdefault("column", self.path_.names[split])
                above.setdefault("children", []).append(record)
        return nodes[0]

    def _node_predictions(self, tree: Tree) -> np.ndarray:
        """What each node predicts."""
        raise NotImplementedError

    def _prediction(self, node: int) -> dict[str, Any]:
        """What `to_dict` says of a node."""
        raise NotImplementedError


class PredictsClasses(ClassifierMixin):
    """What classifiers share: a tree and a forest."""

    classes_: np.ndarray

    @speaks
    def predict(self, X: Any) -> np.ndarray:
        """Class of each row: the most probable one, of a tree the majority of the leaf.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            With the columns of the fit.

        Returns
        -------
        classes : ndarray of shape (n_samples,)
        """
        probability = self.predict_proba(X)
        return self.classes_[probability.argmax(axis=1)]


class GingerTreeClassifier(PredictsClasses, _Tree):
    """Decision tree with one child per value, split by the estimated loss on new rows.

    A column with many values (an id, a postcode) looks perfect on the rows it was measured on, and
    ordinary trees split on it. Here a split is worth what it takes off the loss that the tree
    would have on rows it has not seen [1]_, and growing stops when no split clearly takes off
    anything: more than ``sqrt(2 ln p)`` standard errors, for the best of p columns seems better
    than it is.

    Parameters
    ----------
    criterion : str, default="log_loss"
        ``"log_loss"`` is the log loss on new rows of the shares that the tree predicts, each row
        left out of its leaf and of every node above it. ``"ginger"`` and ``"majority"``, the
        paper's and its sister, estimate the error on new rows of a label drawn from the leaf and of
        the leaf's majority. ``"gini"``, ``"misclassification"``, ``"information_gain"`` and
        ``"gain_ratio"`` measure the rows of the fit; they are here to compare with.
    max_splits : int, optional
        Explore that many splits, even where the estimate rises, and keep as many as make it
        least. Default: stop where no split lowers it by more than ``sqrt(2 ln p)`` standard
        errors, with p columns to choose from (``"log_loss"``, ``"ginger"`` and ``"majority"``), or
        at all (the others).
    max_depth : int, optional
        Nodes at this depth are not split.
    min_samples_split : int, default=2
        Nodes of fewer rows are not split.
    categorical_features : "from_dtype" or array-like
        Columns to read by value whatever their type: names, indices or a mask. The others follow
        their type: text,
        categories and truth values by value; decimal numbers and dates by quantile bins; whole
        numbers by value, and where they have more than ``max_bins`` values by bins too. Bins come
        at several resolutions (2, 4, ... up to ``max_bins``), and the criterion takes its pick.
    max_bins : int, default=64
        Most bins of a column. Their edges are values of the data.
    unseen : {"uniform", "prior"}, default="uniform"
        What is believed before any row is seen, all classes alike or the classes' shares in the
        fit. Each node's shares are mixed with its parent's, which weigh one row; the root's are
        mixed with this. With ``"log_loss"`` always all classes alike, which is what it estimates.

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
    When **not** to use it: when rows repeat (several per patient, say) and no ``groups`` are given,
    for leaving one of them out then hides nothing. The estimate of the *best* of many splits is too
    good, the more so the more columns there are; judge the tree on held-out rows. For smooth
    functions of decimal numbers gradient boosting is the better tool.

    A value that a node has not seen is predicted from the node. ``"log_loss"`` charges such a row
    what the node costs, ``"ginger"`` and ``"majority"`` chance.

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
        criterion: str = "log_loss",
        *,
        max_splits: int | None = None,
        max_depth: int | None = None,
        min_samples_split: int = 2,
        categorical_features: Any = "from_dtype",
        max_bins: int = 64,
        unseen: str = "uniform",
    ):
        self.criterion = criterion
        self.max_splits = max_splits
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.categorical_features = categorical_features
        self.max_bins = max_bins
        self.unseen = unseen

    def _node_predictions(self, tree: Tree) -> np.ndarray:
        return class_shares(tree, self.unseen)

    @speaks
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class.

        The class shares of the row's leaf, mixed with one row's worth of its parent's, and so on
        up: never 0 or 1, and near the parent's where the leaf has few rows.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            With the columns of the fit.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
        """
        node = self.apply(X)
        return self._predictions[node]

    def staged_errors(self, X: Any, y: Any, *, sample_weight: Any = None) -> np.ndarray:
        """Share of rows wrong after 0, 1, ... of the splits in ``path_``.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            With the columns of the fit.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional

        Returns
        -------
        errors : ndarray of shape (n_splits + 1,)
        """
        check_is_fitted(self, "tree_")
        cells = self._encoder.transform(read_table(self, X))
        y = column_or_1d(y)
        check_consistent_length(cells, y)
        weight = check_weights(sample_weight, len(y))
        guess = self.classes_[self._predictions.argmax(axis=1)]

        def loss(rows: np.ndarray, nodes: Any) -> np.ndarray:
            return weight[rows] * (guess[nodes] != y[rows])

        first = loss(np.arange(len(y)), 0).sum()
        change = self._explored.staged_changes(cells, loss)
        return np.cumsum(np.append(first, change)) / weight.sum()

    def _prediction(self, node: int) -> dict[str, Any]:
        counts, probability = self.tree_.counts[node], self._predictions[node]
        return {
            "rows": int(counts.sum()),
            "counts": counts.tolist(),
            "probability": probability.tolist(),
            "class": self.classes_.tolist()[int(probability.argmax())],
        }


class GingerTreeRegressor(RegressorMixin, _Tree):
    """Regression tree with one child per value, split by the estimated error on new rows.

    The mean of a node is shrunk to its parent's, which weighs one row, and a split is worth what
    it takes off the squared error of these means on rows left out: of the node and of every node
    above it. An id gains nothing by that measure. Growing stops when no split clearly gains, as in
    `GingerTreeClassifier`.

    Parameters
    ----------
    criterion : {"squared_error"}, default="squared_error"
    max_splits : int, optional
        As in `GingerTreeClassifier`, as are the next four.
    max_depth : int, optional
    min_samples_split : int, default=2
    categorical_features : "from_dtype" or array-like
    max_bins : int, default=64

    Attributes
    ----------
    path_, support_, ranking_, feature_importances_, n_leaves_, n_features_in_, feature_names_in_
        As in `GingerTreeClassifier`, in squared error.
    tree_ : Tree
        The nodes and their sums, of y standardised.

    See Also
    --------
    export_text : The tree in words.
    GingerForestRegressor : Many such trees.

    Notes
    -----
    When **not** to use it: when rows repeat (several per patient, say) and no ``groups`` are given,
    for leaving one of them out then hides nothing. For smooth functions of decimal numbers gradient
    boosting is the better tool.

    Examples
    --------
    >>> import numpy as np
    >>> from holdtrue import GingerTreeRegressor
    >>> rng = np.random.default_rng(0)
    >>> town, ident = rng.integers(0, 8, 400), np.arange(400)
    >>> spent = 10.0 * (town < 3) + rng.normal(size=400)
    >>> X = np.column_stack([ident, town])
    >>> tree = GingerTreeRegressor(categorical_features=[0, 1]).fit(X, spent)
    >>> tree.support_, tree.n_leaves_
    (array([False,  True]), 8)
    """

    _criteria = ("squared_error",)

    def __init__(
        self,
        criterion: str = "squared_error",
        *,
        max_splits: int | None = None,
        max_depth: int | None = None,
        min_samples_split: int = 2,
        categorical_features: Any = "from_dtype",
        max_bins: int = 64,
    ):
        self.criterion = criterion
        self.max_splits = max_splits
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.categorical_features = categorical_features
        self.max_bins = max_bins

    def _node_predictions(self, tree: Tree) -> np.ndarray:
        return self._unit.back(node_means(tree))

    @speaks
    def predict(self, X: Any) -> np.ndarray:
        """Number for each row: the shrunk mean of its leaf.

        Parameters
        ----------
        X : data frame or array-like of shape (n_samples, n_features)
            With the columns of the fit.

        Returns
        -------
        predicted : ndarray of shape (n_samples,)
        """
        node = self.apply(X)
        return self._predictions[node]

    def _prediction(self, node: int) -> dict[str, Any]:
        return {"rows": int(self.tree_.counts[node, 0]), "mean": float(self._predictions[node])}


# --- what trees and forests share ---------------------------------------------------------------


UNITS = {name: criterion.unit for name, criterion in (NUMERIC_CRITERIA | CRITERIA).items()}


def class_shares(tree: Tree, unseen: str, *, compiled: bool = False) -> np.ndarray:
    """Class shares of every node, shape (n_nodes, n_classes).

    Those of log loss rest on all classes alike, because these are the shares that it estimates.
    """
    unseen = "uniform" if tree.criterion in SHRUNK else unseen
    return node_probabilities(tree, unseen, compiled=compiled)


def _looks_like_group(sample: Sample, at: int, column: Cells) -> bool:
    """Whether a column is read by value, and rows of one value look like one subject's."""
    n_values = column.n_cells - column.has_missing
    if column.edges is not None or not may_be_group(n_values, sample.weight.sum()):
        return False
    classes = tuple(range(sample.n_classes)) or None
    target = Target(sample.label, classes, sample.weight)
    codes = sample.cells[:, at].astype(np.int64) - sample.offsets[at]
    table = table_of(codes, column.n_cells, target)[:n_values]
    part = Part(table[is_present(table)], table[:0])
    return looks_like_group(Profile.from_parts("category", [part], target.n_samples, classes))


def _reason(tree: Tree, n_splits: int, limits: dict[str, Any]) -> str:
    if tree.stopped == "interrupted":
        return "interrupted"
    after = "1 split" if n_splits == 1 else f"{n_splits} splits"
    limit = " and ".join(f"{name}={limits[name]}" for name in tree.withheld)
    within = f" within {limit}" if limit else ""
    if tree.stopped == "gain":
        lowers = "clearly lowers" if tree.criterion in (*LEAVE_ONE_OUT, *SHRUNK) else "lowers"
        if n_splits == 0:
            return f"no split{within} {lowers} the estimate, so nothing is split"
        return f"after {after} no further split{within} {lowers} the estimate"
    least = f"the estimate is least after {after} of {tree.n_splits} explored"
    return least + ("" if tree.stopped == "max_splits" else f"; no leaf is left to split{within}")
