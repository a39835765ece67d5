"""Kuzborskij, Orabona & Caputo (2017) again: Figures 1 to 7, Table 1, and λ by leave-one-out.

python -m experiments.sources                    every part, then every table and figure
python -m experiments.sources figure1            one part (figure1, figure2, figure3, lambda,
                                                 guard, matrix)
python -m experiments.sources --full             every target and ten draws, as in the paper (hours)
python -m experiments.sources --report           tables and figures from the CSVs alone

Caltech-101 has the 1,000 ImageNet heads of the network that made its features as sources. CIFAR-10,
Isolet and ORL follow the paper: some classes are held out and merged into a negative class, half of
it to train the sources, half for the target; each other class is in turn the target, and linear
SVMs of the remaining ones against the source negatives are its sources.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from experiments.records import data_file, progress, write_csv
from joblib import Parallel, delayed
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from holdfast import GreedyTLClassifier, SourcePool, transfer_matrix
from holdfast.sources import (
    DAM,
    AverageKT,
    BestSource,
    ForwardRegression,
    MultiKT,
    RegularizedLeastSquares,
)

N_JOBS = int(os.environ.get("HOLDFAST_JOBS", "2"))
RESULTS = Path(__file__).parent / "results" / "sources"
POSITIVES = (2, 5, 10)
N_NEGATIVE, N_TEST = 10, 50
PENALTIES = tuple(10.0**power for power in range(-4, 5))

# --- data ---------------------------------------------------------------------------------------

# Held-out classes that make the negatives, rows a class for the sources (None: all).
LEFT_OUT = {"CIFAR-10": 2, "Isolet": 6, "ORL": 10}
PUBLIC = {
    "Caltech-101": "https://data.caltech.edu/records/mzrjq-6wc02, through EfficientNet-Lite0",
    "CIFAR-10": "https://www.cs.toronto.edu/~kriz/cifar.html, through EfficientNet-Lite0",
    "Isolet": "https://jundongl.github.io/scikit-feature/datasets.html",
    "ORL": "https://jundongl.github.io/scikit-feature/datasets.html",
}


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
    heads: Heads  # row c is the classifier of class c, or of ImageNet's
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
    rng = np.random.RandomState(0)
    if name == "CIFAR-10":
        with np.load(data_file("cifar10_effnetlite0_20k.npz", PUBLIC[name])) as file:
            X, y = file["X_test"].astype(np.float64), file["y_test"].astype(int)
            X_source, y_source = file["X_train"].astype(np.float64), file["y_train"].astype(int)
            names = list(file["classes"])
        few = np.concatenate([np.flatnonzero(y_source == c)[:200] for c in range(10)])
        X_source, y_source = X_source[few], y_source[few]
    else:
        with np.load(data_file(f"small_wide/{name}.npz", PUBLIC[name])) as file:
            X = file["X"].astype(np.float64)
            y = np.unique(file[file.files[1]].ravel(), return_inverse=True)[1]
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
        svm = LinearSVC(C=0.01, class_weight="balanced")
        svm.fit(X_source[rows], y_source[rows] == c)
        weights[c], bias[c] = svm.coef_[0], svm.intercept_[0]
    heads = Heads(weights[kept], bias[kept])
    codes = np.searchsorted(kept, y)
    codes[~np.isin(y, kept)] = -1
    names = [names[c] for c in kept]
    return Data(X, codes, names, list(range(len(kept))), negatives, heads, True)


class Task(NamedTuple):
    """One draw of a target's rows."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    pool: SourcePool
    seed: int


def draw(name: str, target: int, draw: int, positives: int, seed: int) -> Task:
    """Rows of one target; those of 2 positives are among those of 5 and 10; one test set for all.

    Tests are 50 + 50, or as many positives as the class has beyond the training rows.
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
    X = np.concatenate([data.X[own[n_test : n_test + positives]], others[:N_NEGATIVE]])
    X_test = np.concatenate([data.X[own[:n_test]], others[N_NEGATIVE:]])
    y = np.repeat([1, -1], [positives, N_NEGATIVE])
    y_test = np.repeat([1, -1], [n_test, len(others) - N_NEGATIVE])
    heads = data.heads
    if data.leave_one_out:
        keep = np.arange(len(heads.bias)) != target
        heads = Heads(heads.weights[keep], heads.bias[keep])
    pool = SourcePool([("source", heads)])
    return Task(X, y, X_test, y_test, pool, seed + draw)


def positives_of(name: str) -> tuple[int, ...]:
    """ORL has ten rows a class: not ten to train on."""
    return (2, 5) if name == "ORL" else POSITIVES


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
}
# Up to hundreds of fits each: run on fewer targets and draws.
SLOW = ("GreedyTL-59", "MultiKT, 2-norm", "MultiKT, 1-norm", "L1 logistic", "elastic net")


def measured(task: Task, method: Callable[[Task], np.ndarray]) -> tuple[float, float, float]:
    """Class-balanced accuracy, AUROC and CPU seconds."""
    start = time.process_time()
    score = method(task)
    seconds = time.process_time() - start
    positive = task.y_test > 0
    accuracy = ((score[positive] > 0).mean() + (score[~positive] <= 0).mean()) / 2
    return float(accuracy), float(roc_auc_score(positive, score)), seconds


Outcome = dict[str, Any]


def summary(outcomes: list[Outcome], by: tuple[str, ...], base: str) -> list[dict[str, Any]]:
    """Means with standard errors over targets, and the gap to ``base`` on the same draws."""
    cells: dict[tuple[Any, ...], list[Outcome]] = {}
    for outcome in outcomes:
        cells.setdefault(tuple(outcome[key] for key in by), []).append(outcome)
    at = {(*(o[key] for key in by if key != "method"), o["method"], o["target"], o["draw"]): o
          for o in outcomes}  # fmt: skip
    rows = []
    for key, own in cells.items():
        rest = tuple(o for o, name in zip(key, by, strict=True) if name != "method")
        per: dict[int, list[list[float]]] = {}
        for o in own:
            beside = at[(*rest, base, o["target"], o["draw"])]
            per.setdefault(o["target"], []).append(
                [o["accuracy"], o["auroc"], o["accuracy"] - beside["accuracy"],
                 o["auroc"] - beside["auroc"], o["seconds"]]
            )  # fmt: skip
        means = np.array([np.mean(values, axis=0) for values in per.values()])
        mean = means.mean(axis=0)
        error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
        rows.append(
            {**dict(zip(by, key, strict=True)), "targets": len(per), "tasks": len(own),
             "accuracy": float(mean[0]), "accuracy_se": float(error[0]),
             "auroc": float(mean[1]), "auroc_se": float(error[1]),
             "gap": float(mean[2]), "gap_se": float(error[2]),
             "auroc_gap": float(mean[3]), "auroc_gap_se": float(error[3]),
             "cpu_s": float(mean[4])}
        )  # fmt: skip
    return rows


def some_targets(name: str, count: int) -> list[int]:
    """That many targets, at equal steps over the classes."""
    all_of = load(name).targets
    return all_of if count >= len(all_of) else all_of[:: len(all_of) // count][:count]


# --- Figure 1 -----------------------------------------------------------------------------------

# Targets and draws of the fast methods, then of the slow ones.
FIGURE1 = {
    "Caltech-101": (40, 1, 5, 1),
    "CIFAR-10": (8, 1, 3, 1),
    "Isolet": (10, 1, 4, 1),
    "ORL": (10, 1, 4, 1),
}
ALL = (1_000, 10)  # every target, ten draws


def figure1_tasks(name: str, target: int, seed: int, draws: int, slow: int) -> list[Outcome]:
    outcomes = []
    for number in range(draws):
        for positives in positives_of(name):
            task = draw(name, target, number, positives, seed)
            for method, run_it in METHODS.items():
                if method in SLOW and number >= slow:
                    continue
                accuracy, auroc, seconds = measured(task, run_it)
                outcomes.append(
                    {"data": name, "positives": positives, "method": method, "target": target,
                     "draw": number, "accuracy": accuracy, "auroc": auroc, "seconds": seconds}
                )  # fmt: skip
    return outcomes


def run_figure1(seed: int, full: bool) -> Iterator[list[dict[str, Any]]]:
    """All rivals on the four data sets."""
    for name, size in FIGURE1.items():
        targets, draws, slow_targets, slow_draws = (*ALL, *ALL) if full else size
        slow = some_targets(name, slow_targets)
        jobs = [
            delayed(figure1_tasks)(name, target, seed, draws, slow_draws if target in slow else 0)
            for target in sorted({*some_targets(name, targets), *slow})
        ]
        outcomes = [o for block in run(jobs, f"Figure 1, {name}") for o in block]
        yield summary(outcomes, ("data", "positives", "method"), "GreedyTL")


# --- Figure 2 -----------------------------------------------------------------------------------

NOISE = (0, 10, 100, 1_000)
# GreedyTL-59 and elastic net, the slowest, only in a full run.
NOISY = ("GreedyTL", "RLS src+feat", "forward regression", "L1 logistic")
NOISY_FULL = (*NOISY, "GreedyTL-59", "elastic net")
FIGURE2 = (6, 1)


class Ahead:
    """A model that reads the first columns and leaves the noise alone."""

    def __init__(self, heads: Heads):
        self.heads = heads
        self.classes_ = heads.classes_

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Scores of all classifiers."""
        return self.heads.decision_function(X[:, : self.heads.weights.shape[1]])

    def predict(self, X: np.ndarray) -> np.ndarray:
        """As in Heads."""
        return self.decision_function(X).argmax(axis=1)


def figure2_tasks(target: int, seed: int, draws: int, methods: tuple[str, ...]) -> list[Outcome]:
    outcomes = []
    name = "Caltech-101"
    for number in range(draws):
        for positives in POSITIVES:
            clean = draw(name, target, number, positives, seed)
            rng = np.random.RandomState([seed, target, number, positives])
            noise = [rng.standard_normal((len(X), max(NOISE))) for X in (clean.X, clean.X_test)]
            pool = SourcePool([("source", Ahead(load(name).heads))])
            for columns in NOISE:
                task = clean._replace(
                    X=np.hstack([clean.X, noise[0][:, :columns]]),
                    X_test=np.hstack([clean.X_test, noise[1][:, :columns]]),
                    pool=pool,
                )
                for method in methods:
                    accuracy, auroc, seconds = measured(task, METHODS[method])
                    outcomes.append(
                        {"noise": columns, "positives": positives, "method": method,
                         "target": target, "draw": number, "accuracy": accuracy, "auroc": auroc,
                         "seconds": seconds}
                    )  # fmt: skip
    return outcomes


def run_figure2(seed: int, full: bool) -> list[dict[str, Any]]:
    """Columns of standard normal noise beside the features of Caltech-101."""
    targets, draws = ALL if full else FIGURE2
    methods = NOISY_FULL if full else NOISY
    jobs = [
        delayed(figure2_tasks)(target, seed, draws, methods)
        for target in some_targets("Caltech-101", targets)
    ]
    outcomes = [o for block in run(jobs, "Figure 2") for o in block]
    return summary(outcomes, ("noise", "positives", "method"), "GreedyTL")


# --- Figure 3 and Table 1 -----------------------------------------------------------------------

# Candidates in all: 1,280 features, 1,000 ImageNet heads, the rest are models never trained.
FIGURE3 = {2_280: (5, 1), 10_000: (3, 1), 100_000: (2, 1)}


class Head:
    """One classifier of ImageNet."""

    def __init__(self, weights: np.ndarray, bias: float):
        self.weights = weights
        self.bias = bias

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Scores of the rows."""
        return X @ self.weights + self.bias


class Untrained:
    """A linear model with random weights, drawn when it is run."""

    def __init__(self, seed: int):
        self.seed = seed

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """Scores of the rows."""
        rng = np.random.Generator(np.random.SFC64(self.seed))
        return X @ rng.standard_normal(X.shape[1])


@cache
def shelf(size: int) -> list[tuple[str, Any]]:
    """That many sources, the ImageNet heads in random places among them."""
    heads = load("Caltech-101").heads
    made: list[tuple[str, Any]] = [
        (f"imagenet{j}", Head(heads.weights[j], heads.bias[j])) for j in range(len(heads.bias))
    ]
    made += [(f"untrained{j}", Untrained(j)) for j in range(size - len(made))]
    order = np.random.RandomState(0).permutation(size)
    return [made[i] for i in order]


def figure3_tasks(target: int, seed: int, candidates: int, draws: int) -> list[Outcome]:
    outcomes = []
    for number in range(draws):
        for positives in POSITIVES:
            task = draw("Caltech-101", target, number, positives, seed)
            for method, count in (("GreedyTL", None), ("GreedyTL-59", 59)):
                pool = SourcePool(shelf(candidates - task.X.shape[1]))
                model = GreedyTLClassifier(pool, n_candidates=count, random_state=task.seed)
                start = time.process_time()
                model.fit(task.X, task.y)
                seconds = time.process_time() - start
                runs = pool.n_runs
                accuracy, auroc, _ = measured(
                    task, lambda task, model=model: model.decision_function(task.X_test)
                )
                outcomes.append(
                    {"candidates": candidates, "positives": positives, "method": method,
                     "target": target, "draw": number, "accuracy": accuracy, "auroc": auroc,
                     "seconds": seconds, "runs": runs, "selected": len(model.selected_)}
                )  # fmt: skip
    return outcomes


def run_figure3(seed: int, full: bool) -> Iterator[list[dict[str, Any]]]:
    """GreedyTL-59 beside GreedyTL as the pool grows; the CPU time is that of the fit."""
    for candidates, size in FIGURE3.items():
        targets, draws = ALL if full else size
        jobs = [
            delayed(figure3_tasks)(target, seed, candidates, draws)
            for target in some_targets("Caltech-101", targets)
        ]
        outcomes = [o for block in run(jobs, f"Figure 3, {candidates:,}") for o in block]
        rows = summary(outcomes, ("candidates", "positives", "method"), "GreedyTL")
        for row in rows:
            same = ("positives", "method")
            own = [o for o in outcomes if all(o[key] == row[key] for key in same)]
            row["sources_run"] = float(np.mean([o["runs"] for o in own]))
            row["selected"] = float(np.mean([o["selected"] for o in own]))
            row["cpu_s_sd"] = float(np.std([o["seconds"] for o in own], ddof=1))
        yield rows


# --- λ and the guard ----------------------------------------------------------------------------

# Pools: the ImageNet heads; the same with their weights shuffled (useless); leave-one-class-out.
LAMBDA = {"heads": (6, 1)}
# The guard with λ = 1 alone, which is cheap.
GUARD = {"useless": (12, 1), "Isolet": (12, 1), "ORL": (12, 1)}


@cache
def useless() -> Heads:
    heads = load("Caltech-101").heads
    rng = np.random.default_rng(1)
    return Heads(rng.permuted(heads.weights, axis=1), heads.bias)


def lambda_tasks(
    setting: str, target: int, seed: int, draws: int, guard_only: bool
) -> list[Outcome]:
    """GreedyTL as it is, without its guard, without sources, and with other λ."""
    name = setting if setting in LEFT_OUT else "Caltech-101"
    outcomes = []
    for number in range(draws):
        for positives in positives_of(name):
            task = draw(name, target, number, positives, seed)
            if setting == "useless":
                task = task._replace(pool=SourcePool([("source", useless())]))
            # Scores given as features are candidates that the guard cannot drop.
            bare = task._replace(
                X=np.hstack([task.X, task.pool.scores(task.X)]),
                X_test=np.hstack([task.X_test, task.pool.scores(task.X_test)]),
            )
            letter = 1 / len(task.y)
            models = {
                "λ = 1": (task, GreedyTLClassifier(task.pool)),
                "λ = 1, no guard": (bare, GreedyTLClassifier()),
                "λ = 1, features alone": (task, GreedyTLClassifier()),
                "λ by leave-one-out": (task, GreedyTLClassifier(task.pool, lam="loo")),
                "λ = 1/m (Algorithm 1 to the letter)": (
                    task, GreedyTLClassifier(task.pool, lam=letter)
                ),
                "λ = 1, unweighted": (task, GreedyTLClassifier(task.pool, class_weight=None)),
            }  # fmt: skip
            for method, (rows, model) in list(models.items())[: 3 if guard_only else None]:
                accuracy, auroc, seconds = measured(rows, fitted(lambda t, model=model: model))
                outcomes.append(
                    {"setting": setting, "positives": positives, "method": method,
                     "target": target, "draw": number, "accuracy": accuracy, "auroc": auroc,
                     "seconds": seconds, "used_sources": getattr(model, "used_sources_", True),
                     "guarded": "without_sources" in model.loo_errors_
                     and len(model.loo_errors_) == 2
                     and model.loo_errors_["without_sources"] < model.loo_errors_["with_sources"],
                     "lam": model.lam_}
                )  # fmt: skip
    return outcomes


def run_lambda(seed: int, full: bool) -> Iterator[list[dict[str, Any]]]:
    """Choices of λ, and what the guard saves and costs."""
    return lambda_settings({**LAMBDA, **GUARD} if full else LAMBDA, seed, full, guard_only=False)


def run_guard(seed: int, full: bool) -> Iterator[list[dict[str, Any]]]:
    """What the guard saves and costs with λ = 1, where sources are useless and where they help."""
    return lambda_settings(GUARD, seed, full, guard_only=True)


def lambda_settings(
    settings: dict[str, tuple[int, int]], seed: int, full: bool, *, guard_only: bool
) -> Iterator[list[dict[str, Any]]]:
    for setting, size in settings.items():
        targets, draws = ALL if full else size
        name = setting if setting in LEFT_OUT else "Caltech-101"
        jobs = [
            delayed(lambda_tasks)(setting, target, seed, draws, guard_only)
            for target in some_targets(name, targets)
        ]
        yield lambda_rows([o for block in run(jobs, f"λ, {setting}") for o in block])


def lambda_rows(outcomes: list[Outcome]) -> list[dict[str, Any]]:
    """Means by variant, with how often the guard acted, saved and cost."""
    rows = summary(outcomes, ("setting", "positives", "method"), "λ = 1")
    at = {(o["setting"], o["positives"], o["method"], o["target"], o["draw"]): o["accuracy"]
          for o in outcomes}  # fmt: skip
    for row in rows:
        key = ("setting", "positives", "method")
        own = [o for o in outcomes if all(o[k] == row[k] for k in key)]
        closed = [o for o in own if o["guarded"]]
        beside = f"{row['method']}, no guard"
        change = [
            o["accuracy"] - at[o["setting"], o["positives"], beside, o["target"], o["draw"]]
            for o in closed
            if (o["setting"], o["positives"], beside, o["target"], o["draw"]) in at
        ]
        row["guard_acted"] = len(closed)
        row["saved"] = sum(c > 0 for c in change)
        row["cost"] = sum(c < 0 for c in change)
        row["guard_change"] = float(np.mean(change)) if change else 0.0
        row["median_lam"] = float(np.median([o["lam"] for o in own]))
    return rows


# --- Figures 4 to 7 -----------------------------------------------------------------------------

MATRIX = (101, 1)


def matrix_rows(target: int, seed: int, draws: int) -> list[dict[str, Any]]:
    """Mean weights of the ImageNet heads for one target, by method and positives."""
    data = load("Caltech-101")
    rows = []
    for positives in (2, 10):
        models: dict[str, list[Any]] = {}
        for number in range(draws):
            task = draw("Caltech-101", target, number, positives, seed)
            kinds: dict[str, Any] = {
                "GreedyTL": GreedyTLClassifier(task.pool),
                "RLS src+feat": RegularizedLeastSquares(task.pool),
            }
            if draws > 1:  # a full run: it takes longer than all others together
                kinds["GreedyTL-59"] = GreedyTLClassifier(
                    task.pool, n_candidates=59, random_state=number
                )
            for method, model in kinds.items():
                models.setdefault(method, []).append(model.fit(task.X, task.y))
        for method, fits in models.items():
            weights = transfer_matrix({data.names[target]: fits}).weights[0]
            rows += [
                {"method": method, "positives": positives, "target": data.names[target],
                 "source": int(j), "weight": float(f"{weights[j]:.3g}")}
                for j in np.flatnonzero(weights)
            ]  # fmt: skip
    return rows


def run_matrix(seed: int, full: bool) -> list[dict[str, Any]]:
    """Weights above 0.001 in size; RLS, which weighs everything, only as sums over groups."""
    from experiments.sources_report import SOURCE_GROUPS

    targets, draws = ALL if full else MATRIX
    jobs = [
        delayed(matrix_rows)(target, seed, draws) for target in some_targets("Caltech-101", targets)
    ]
    rows = []
    for block in run(jobs, "Figures 4 to 7"):
        sums: dict[tuple[Any, ...], float] = {}
        for row in block:
            key = (row["method"], row["positives"], row["target"], SOURCE_GROUPS[row["source"]])
            sums[key] = sums.get(key, 0.0) + abs(row["weight"])
            if row["method"] != "RLS src+feat" and abs(row["weight"]) >= 1e-3:
                rows.append({"kind": "weight", **row})
        rows += [
            {"kind": "sum", "method": method, "positives": positives, "target": target,
             "source": group, "weight": total}
            for (method, positives, target, group), total in sums.items()
        ]  # fmt: skip
    return rows


# --- running ------------------------------------------------------------------------------------


def run(jobs: list[Any], label: str) -> Iterator[Any]:
    """Results of the jobs in order, from a few processes, with a progress bar."""
    results = Parallel(n_jobs=N_JOBS, return_as="generator")(jobs)
    return progress(results, len(jobs), label)


PARTS = {
    "figure1": run_figure1,
    "figure2": run_figure2,
    "figure3": run_figure3,
    "lambda": run_lambda,
    "guard": run_guard,
    "matrix": run_matrix,
}


def main() -> None:
    """Run the parts that were asked for, then make every table and figure there are CSVs for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; default all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--full", action="store_true", help="every target, ten draws, as in the paper (hours)"
    )
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder of the results")
    parser.add_argument("--report", action="store_true", help="only make tables and figures")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    if not options.report:
        for part in options.parts or PARTS:
            command = f"python -m experiments.sources {part}{' --full' * options.full}"
            made = PARTS[part](options.seed, options.full)
            rows: list[dict[str, Any]] = []
            # Some parts come in blocks: a run that is stopped keeps those that are done.
            for block in [made] if isinstance(made, list) else made:
                rows += block
                write_csv(options.out / f"{part}.csv", rows, command=command, seed=options.seed)
    from experiments.sources_report import report

    report(options.out)
    print(f"Tables and figures: {options.out / 'README.md'}")


if __name__ == "__main__":
    # By its own name, so that the other processes find what it caches.
    from experiments.sources import main as run_main

    run_main()
