"""Tasks and methods of `experiments.sources`: data with sources, draws of rows, all rivals.

Caltech-101 has the 1,000 ImageNet heads of the network that made its features as sources. CIFAR-10,
Isolet and ORL follow the paper: some classes are held out and merged into a negative class, half of
it to train the sources, half for the target; each other class is in turn the target, and linear
SVMs of the remaining ones against the source negatives are its sources, with C of 10^-4 to 10^4 by
5-fold cross-validation.

Wide sets of few rows have no sources: their columns are the candidates. Those of two classes and
many rows (madelon, RELATHE) have 200 ridge classifiers as sources, each trained on a tenth of the
columns and on the half of the rows that serves no task, every other one on shuffled labels.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from experiments.records import data_file
from sklearn.decomposition import MiniBatchDictionaryLearning
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from holdtrue import GreedyTLClassifier, SourcePool
from holdtrue.sources import (
    DAM,
    AverageKT,
    BestSource,
    ForwardRegression,
    MultiKT,
    RegularizedLeastSquares,
)

POSITIVES = (2, 5, 10)
N_NEGATIVE, N_TEST = 10, 50
PENALTIES = tuple(10.0**power for power in range(-4, 5))

# --- data ---------------------------------------------------------------------------------------

# Held-out classes that make the negatives, rows a class for the sources (None: all).
LEFT_OUT = {"CIFAR-10": 2, "Isolet": 6, "ORL": 10}
# Wide sets: how many models are trained elsewhere.
WIDE = {"colon": 0, "leukemia": 0, "GLIOMA": 0, "lung_small": 0, "nci9": 0,
        "madelon": 200, "RELATHE": 200}  # fmt: skip
LEAST_CLASS = 7  # rows of the smallest class that is a target
PUBLIC = {
    "Caltech-101": "https://data.caltech.edu/records/mzrjq-6wc02, through EfficientNet-Lite0",
    "CIFAR-10": "https://www.cs.toronto.edu/~kriz/cifar.html, through EfficientNet-Lite0",
}
SCIKIT_FEATURE = "https://jundongl.github.io/scikit-feature/datasets.html"


class Heads:
    """Linear classifiers as one model: a column of scores for each."""

    def __init__(self, weights: np.ndarray, bias: np.ndarray):
        self.weights = weights
        self.bias = bias
        self.classes_ = np.arange(len(bias))

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Scores of all classifiers."""
        return X @ self.weights.T + self.bias

    def predict(self, X: np.ndarray) -> np.ndarray:
        """The largest score's class; here so that the pool takes it for a model."""
        return self.decision_function(X).argmax(axis=1)


class Data(NamedTuple):
    """Rows of the target classes, rows of the negative class, and what the sources know."""

    X: np.ndarray
    y: np.ndarray
    names: list[str]
    targets: list[int]
    negatives: np.ndarray | None  # None: rows of all other classes
    heads: Heads | None  # row c is the classifier of class c, or of ImageNet's; None: no sources
    leave_one_out: bool  # whether row t must not serve target t


@cache
def load(name: str) -> Data:
    """A data set with its sources, made once in each process."""
    if name == "Caltech-101":
        with np.load(data_file("caltech101_effnetlite0.npz", PUBLIC[name])) as file:
            X, y, names = file["X"].astype(np.float64), file["y"].astype(int), list(file["classes"])
        with np.load(data_file("effnetlite0_imagenet_head.npz", "EfficientNet-Lite0")) as file:
            heads = Heads(file["W"].astype(np.float64), file["b"].astype(np.float64))
        return Data(X, y, names, list(range(1, 102)), None, heads, False)
    if name in WIDE:
        return load_wide(name)
    rng = np.random.RandomState(0)
    if name == "CIFAR-10":
        with np.load(data_file("cifar10_effnetlite0_20k.npz", PUBLIC[name])) as file:
            X, y = file["X_test"].astype(np.float64), file["y_test"].astype(int)
            X_source, y_source = file["X_train"].astype(np.float64), file["y_train"].astype(int)
            names = list(file["classes"])
        few = np.concatenate([np.flatnonzero(y_source == c)[:200] for c in range(10)])
        X_source, y_source = X_source[few], y_source[few]
    else:
        X, y = scikit_feature(name)
        names = [str(c) for c in range(y.max() + 1)]
        X_source, y_source = X, y
    scale = StandardScaler().fit(X_source)
    X, X_source = scale.transform(X), scale.transform(X_source)
    classes = rng.permutation(len(names))
    out, kept = classes[: LEFT_OUT[name]], np.sort(classes[LEFT_OUT[name] :])
    # Rows of the held-out classes: the first half trains the sources, the second is the target's.
    mine = np.flatnonzero(np.isin(y_source, out))
    rng.shuffle(mine)
    theirs = mine[: len(mine) // 2]
    others = np.isin(y, out) if name == "CIFAR-10" else mine[len(mine) // 2 :]
    negatives = X[others]
    weights, bias = np.zeros((len(names), X.shape[1])), np.zeros(len(names))
    for c in kept:
        rows = np.concatenate([np.flatnonzero(y_source == c), theirs])
        svm = source_svm(X_source[rows], y_source[rows] == c)
        weights[c], bias[c] = svm.coef_[0], svm.intercept_[0]
    heads = Heads(weights[kept], bias[kept])
    codes = np.searchsorted(kept, y)
    codes[~np.isin(y, kept)] = -1
    names = [names[c] for c in kept]
    return Data(X, codes, names, list(range(len(kept))), negatives, heads, True)


def scikit_feature(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows and class numbers."""
    with np.load(data_file(f"small_wide/{name}.npz", SCIKIT_FEATURE)) as file:
        X = file["X"].astype(np.float64)
        return X, np.unique(file["y"].ravel(), return_inverse=True)[1]


def load_wide(name: str) -> Data:
    """A wide set: its columns are the candidates, beside models trained on half of the rows."""
    X, y = scikit_feature(name)
    counts = np.bincount(y)
    targets = [1] if len(counts) == 2 else np.flatnonzero(counts >= LEAST_CLASS).tolist()
    heads = None
    if count := WIDE[name]:
        rng = np.random.RandomState(0)
        rows = rng.permutation(len(y))
        elsewhere, here = rows[: len(rows) // 2], rows[len(rows) // 2 :]
        weights, bias = np.zeros((count, X.shape[1])), np.zeros(count)
        for j in range(count):
            columns = rng.permutation(X.shape[1])[: X.shape[1] // 10]
            labels = y[rng.permutation(elsewhere) if j % 2 else elsewhere]
            model = RidgeClassifier(alpha=100.0).fit(X[np.ix_(elsewhere, columns)], labels)
            weights[j, columns], bias[j] = model.coef_[0], model.intercept_[0]
        heads = Heads(weights, bias)
        X, y = X[here], y[here]
    return Data(X, y, [str(c) for c in range(len(counts))], targets, None, heads, False)


def source_svm(X: np.ndarray, y: np.ndarray) -> LinearSVC:
    """Linear SVM with C of the largest balanced accuracy; the smallest of equals."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the largest C do not converge, nor need they
        models = [LinearSVC(C=C, class_weight="balanced", random_state=0) for C in PENALTIES]
        right = [cross_val_score(m, X, y, cv=5, scoring="balanced_accuracy").mean() for m in models]
        return models[int(np.argmax(np.round(right, 9)))].fit(X, y)


class Task(NamedTuple):
    """One draw of a target's rows."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    pool: SourcePool
    seed: int


def draw(
    name: str, target: int, draw: int, positives: int, seed: int, negatives: int = N_NEGATIVE
) -> Task:
    """Rows of one target; those of 2 positives are among those of 5 and 10; one test set for all.

    Tests are 50 + 50, or as many as the class has beyond the training rows.
    """
    data = load(name)
    rng = np.random.RandomState([seed, target, draw])
    own = rng.permutation(np.flatnonzero(data.y == target))
    most = max(positives_of(name))
    n_test = min(N_TEST, len(own) - most)
    if data.negatives is None:
        others = data.X[rng.permutation(np.flatnonzero(data.y != target))[: N_NEGATIVE + N_TEST]]
    else:
        others = data.negatives[rng.permutation(len(data.negatives))[: N_NEGATIVE + N_TEST]]
    X = np.concatenate([data.X[own[n_test : n_test + positives]], others[:negatives]])
    X_test = np.concatenate([data.X[own[:n_test]], others[N_NEGATIVE:]])
    y = np.repeat([1, -1], [positives, negatives])
    y_test = np.repeat([1, -1], [n_test, len(others) - N_NEGATIVE])
    heads = data.heads
    if data.leave_one_out:
        keep = np.arange(len(heads.bias)) != target
        heads = Heads(heads.weights[keep], heads.bias[keep])
    pool = SourcePool([("source", heads)] if heads else [])
    return Task(X, y, X_test, y_test, pool, seed + draw)


def positives_of(name: str) -> tuple[int, ...]:
    """Sizes that leave rows to test on: ORL has ten a class."""
    return (2, 5) if name in ("ORL", "GLIOMA", "lung_small", "nci9") else POSITIVES


# --- methods ------------------------------------------------------------------------------------


def logistic(task: Task, l1_ratio: float) -> np.ndarray:
    """Test scores of scikit-learn's logistic regression; C of the least left-out log loss."""
    Z = np.hstack([task.X, task.pool.scores(task.X)])
    scale = StandardScaler().fit(Z)
    Z = scale.transform(Z)
    balance = np.where(task.y > 0, 0.5 / (task.y > 0).sum(), 0.5 / (task.y < 0).sum())
    kind: dict[str, Any] = {"l1_ratio": l1_ratio, "class_weight": "balanced", "random_state": 0}
    if l1_ratio == 1:
        kind.update(solver="liblinear", penalty="l1", l1_ratio=None, max_iter=100)
    else:
        kind.update(solver="saga", penalty="elasticnet", max_iter=30, tol=1e-3, warm_start=True)
    loss = np.zeros(len(PENALTIES))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few steps from a warm start are meant
        for i in range(len(Z)):
            rest = np.arange(len(Z)) != i
            model = LogisticRegression(**kind)
            for j, C in enumerate(PENALTIES):
                model.set_params(C=C).fit(Z[rest], task.y[rest])
                margin = task.y[i] * model.decision_function(Z[[i]])[0]
                loss[j] += balance[i] * np.logaddexp(0, -margin)
        model = LogisticRegression(**{**kind, "C": PENALTIES[int(loss.argmin())], "max_iter": 300})
        model.fit(Z, task.y)
    return model.decision_function(
        scale.transform(np.hstack([task.X_test, task.pool.scores(task.X_test)]))
    )


def dictionary(task: Task) -> np.ndarray:
    """Test scores of ridge regression on codes in a dictionary of the sources' scores.

    As many atoms as rows; otherwise scikit-learn's defaults.
    """
    scale = StandardScaler().fit(task.pool.scores(task.X))
    atoms = MiniBatchDictionaryLearning(n_components=len(task.y), random_state=0)
    codes = [scale.transform(task.pool.scores(X)) for X in (task.X, task.X_test)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # atoms that depend on one another
        atoms.fit(codes[0])
        train, test = (atoms.transform(rows) for rows in codes)
    return RegularizedLeastSquares().fit(train, task.y).decision_function(test)


def ceiling(task: Task) -> np.ndarray:
    """Scores of the source that does best on the test rows: not a method."""
    scores = task.pool.scores(task.X_test)
    positive = task.y_test > 0
    right = (scores[positive] > 0).mean(axis=0) + (scores[~positive] <= 0).mean(axis=0)
    return scores[:, right.argmax()]


def fitted(make: Callable[[Task], Any]) -> Callable[[Task], np.ndarray]:
    return lambda task: make(task).fit(task.X, task.y).decision_function(task.X_test)


METHODS: dict[str, Callable[[Task], np.ndarray]] = {
    "GreedyTL": fitted(lambda t: GreedyTLClassifier(t.pool)),
    "GreedyTL-59": fitted(
        lambda t: GreedyTLClassifier(t.pool, n_candidates=59, random_state=t.seed)
    ),
    "RLS src+feat": fitted(lambda t: RegularizedLeastSquares(t.pool)),
    "no transfer": fitted(lambda t: RegularizedLeastSquares()),
    "best source": fitted(lambda t: BestSource(t.pool)),
    "best source on test (ceiling)": ceiling,
    "AverageKT": fitted(lambda t: AverageKT(t.pool)),
    "DAM": fitted(lambda t: DAM(t.pool)),
    "forward regression": fitted(lambda t: ForwardRegression(t.pool)),
    "MultiKT, 2-norm": fitted(lambda t: MultiKT(t.pool, norm=2)),
    "MultiKT, 1-norm": fitted(lambda t: MultiKT(t.pool, norm=1)),
    "L1 logistic": lambda t: logistic(t, 1.0),
    "elastic net": lambda t: logistic(t, 0.5),
    "dictionary learning": dictionary,
}
# Up to hundreds of fits each: run on fewer targets and draws.
SLOW = (
    "GreedyTL-59", "MultiKT, 2-norm", "MultiKT, 1-norm", "L1 logistic", "elastic net",
    "dictionary learning",
)  # fmt: skip


def measured(task: Task, method: Callable[[Task], np.ndarray]) -> tuple[float, float, float]:
    """Class-balanced accuracy, AUROC and CPU seconds."""
    start = time.process_time()
    score = method(task)
    seconds = time.process_time() - start
    positive = task.y_test > 0
    accuracy = ((score[positive] > 0).mean() + (score[~positive] <= 0).mean()) / 2
    return float(accuracy), float(roc_auc_score(positive, score)), seconds
