"""Kuzborskij, Orabona & Caputo (2017) again: Figures 1 to 7, Table 1, and λ by leave-one-out.

python -m experiments.sources                    every part, then every table and figure
python -m experiments.sources figure1            one part (figure1, again, threshold, figure2,
                                                 figure2again, figure3, lambda, guard, stop, matrix)
python -m experiments.sources --full             every target and ten draws, as in the paper (hours)
python -m experiments.sources --report           tables and figures from the CSVs alone

The tasks and the methods are in `experiments.sources_tasks`. A run that is stopped keeps the
targets that are done. Run it with OMP_NUM_THREADS=1: the problems are too small for threads.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from experiments.records import asked_options, progress, write_csv
from experiments.sources_tasks import (
    LEFT_OUT,
    METHODS,
    POSITIVES,
    SLOW,
    Heads,
    draw,
    fitted,
    load,
    measured,
    positives_of,
)
from joblib import Parallel, delayed
from sklearn.metrics import roc_auc_score

from holdtrue import GreedyTLClassifier, SourcePool, transfer_matrix
from holdtrue.datasets import make_sources
from holdtrue.sources import RegularizedLeastSquares

N_JOBS = int(os.environ.get("HOLDTRUE_JOBS", "2"))
RESULTS = Path(__file__).parent / "results" / "sources"

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
        error = means.std(axis=0, ddof=1 if len(means) > 1 else 0) / np.sqrt(len(means))
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
    places = np.linspace(0, len(all_of) - 1, min(count, len(all_of))).astype(int)
    return [all_of[place] for place in places]


# --- Figure 1 -----------------------------------------------------------------------------------

# Targets and draws of the fast methods, then of the slow ones.
FIGURE1 = {
    "Caltech-101": (101, 10, 101, 2),
    "CIFAR-10": (8, 10, 8, 4),
    "Isolet": (20, 10, 20, 3),
    "ORL": (30, 10, 30, 2),
}
ALL = (1_000, 10)  # every target, ten draws


def figure1_tasks(
    name: str, target: int, seed: int, draws: int, slow: int, methods: tuple[str, ...]
) -> list[Outcome]:
    outcomes = []
    for number in range(draws):
        for positives in positives_of(name):
            task = draw(name, target, number, positives, seed)
            for method in methods:
                if method in SLOW and number >= slow:
                    continue
                accuracy, auroc, seconds = measured(task, METHODS[method])
                outcomes.append(
                    {"data": name, "positives": positives, "method": method, "target": target,
                     "draw": number, "accuracy": accuracy, "auroc": auroc, "seconds": seconds}
                )  # fmt: skip
    return outcomes


def run_figure1(seed: int, full: bool) -> Iterator[list[dict[str, Any]]]:
    """All rivals on the four data sets."""
    done: list[dict[str, Any]] = []
    for name, size in FIGURE1.items():
        targets, draws, slow_targets, slow_draws = (*ALL, *ALL) if full else size
        slow = some_targets(name, slow_targets)
        jobs = [
            delayed(figure1_tasks)(
                name, target, seed, draws, slow_draws if target in slow else 0, tuple(METHODS)
            )
            for target in sorted({*some_targets(name, targets), *slow})
        ]
        for outcomes in growing(jobs, f"Figure 1, {name}"):
            rows = figure1_rows(outcomes)
            yield done + rows
        done += rows


def figure1_rows(outcomes: list[Outcome]) -> list[dict[str, Any]]:
    """All methods on the draws that the slow ones were run on, and the fast ones on all draws."""
    by = ("data", "positives", "method")
    shared = {(o["target"], o["draw"]) for o in outcomes if o["method"] in SLOW}
    same = [o for o in outcomes if (o["target"], o["draw"]) in shared]
    fast = [o for o in outcomes if o["method"] not in SLOW]
    return [
        {"design": design, **row}
        for design, own in (("same draws", same), ("all draws", fast))
        for row in summary(own, by, "GreedyTL")
    ]


def run_again(seed: int, full: bool) -> Iterator[list[dict[str, Any]]]:
    """GreedyTL alone, on those draws of Figure 1 on which all methods were run."""
    done: list[dict[str, Any]] = []
    for name, (_, _, targets, draws) in FIGURE1.items():
        jobs = [
            delayed(figure1_tasks)(name, target, seed, ALL[1] if full else draws, 0, ("GreedyTL",))
            for target in some_targets(name, targets)
        ]
        for outcomes in growing(jobs, f"Figure 1 again, {name}"):
            rows = summary(outcomes, ("data", "positives", "method"), "GreedyTL")
            yield done + rows
        done += rows


# As it is, and with the threshold left at 0, where balanced weights put it.
THRESHOLDS = {
    "GreedyTL": METHODS["GreedyTL"],
    "GreedyTL, threshold 0": fitted(lambda t: GreedyTLClassifier(t.pool, estimate=False)),
}


def threshold_tasks(target: int, seed: int) -> list[Outcome]:
    task = draw("Caltech-101", target, 0, 2, seed)
    outcomes = []
    for method, score in THRESHOLDS.items():
        accuracy, auroc, seconds = measured(task, score)
        outcomes.append(
            {"positives": 2, "method": method, "target": target, "draw": 0, "accuracy": accuracy,
             "auroc": auroc, "seconds": seconds}
        )  # fmt: skip
    return outcomes


def run_threshold(seed: int, full: bool) -> Iterator[list[dict[str, Any]]]:
    """What the threshold from left-out rows changes with 2+10 rows of Caltech-101."""
    targets = some_targets("Caltech-101", ALL[0])
    jobs = [delayed(threshold_tasks)(target, seed) for target in targets]
    for outcomes in growing(jobs, "threshold"):
        yield summary(outcomes, ("positives", "method"), "GreedyTL")


# --- Figure 2 -----------------------------------------------------------------------------------

NOISE = (0, 10, 100, 1_000)
NOISY = (
    "GreedyTL", "GreedyTL-59", "RLS src+feat", "forward regression", "L1 logistic", "elastic net",
)  # fmt: skip
FIGURE2 = (17, 1)


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


def run_figure2(seed: int, full: bool) -> Iterator[list[dict[str, Any]]]:
    """Columns of standard normal noise beside the features of Caltech-101."""
    targets, draws = ALL if full else FIGURE2
    jobs = [
        delayed(figure2_tasks)(target, seed, draws, NOISY)
        for target in some_targets("Caltech-101", targets)
    ]
    for outcomes in growing(jobs, "Figure 2"):
        yield summary(outcomes, ("noise", "positives", "method"), "GreedyTL")


def run_figure2again(seed: int, full: bool) -> Iterator[list[dict[str, Any]]]:
    """GreedyTL alone, on the draws of Figure 2."""
    jobs = [
        delayed(figure2_tasks)(target, seed, FIGURE2[1], ("GreedyTL",))
        for target in some_targets("Caltech-101", FIGURE2[0])
    ]
    for outcomes in growing(jobs, "Figure 2 again"):
        yield summary(outcomes, ("noise", "positives", "method"), "GreedyTL")


# --- Figure 3 and Table 1 -----------------------------------------------------------------------

# Candidates in all: 1,280 features, 1,000 ImageNet heads, the rest are models never trained.
FIGURE3 = {2_280: (17, 1), 10_000: (8, 1), 100_000: (4, 1)}


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
    done: list[dict[str, Any]] = []
    for candidates, size in FIGURE3.items():
        targets, draws = ALL if full else size
        jobs = [
            delayed(figure3_tasks)(target, seed, candidates, draws)
            for target in some_targets("Caltech-101", targets)
        ]
        for outcomes in growing(jobs, f"Figure 3, {candidates:,}"):
            rows = figure3_rows(outcomes)
            yield done + rows
        done += rows


def figure3_rows(outcomes: list[Outcome]) -> list[dict[str, Any]]:
    """Means, with how many sources were run and chosen, and the spread of the time."""
    rows = summary(outcomes, ("candidates", "positives", "method"), "GreedyTL")
    for row in rows:
        same = ("positives", "method")
        own = [o for o in outcomes if all(o[key] == row[key] for key in same)]
        row["sources_run"] = float(np.mean([o["runs"] for o in own]))
        row["selected"] = float(np.mean([o["selected"] for o in own]))
        row["cpu_s_sd"] = float(np.std([o["seconds"] for o in own]))
    return rows


# --- λ and the guard ----------------------------------------------------------------------------

# Pools: the ImageNet heads; the same with their weights shuffled (useless); leave-one-class-out.
LAMBDA = {"heads": (17, 1), "useless": (8, 1), "Isolet": (8, 1), "ORL": (8, 1)}
# The guard with λ = 1 alone, which is cheap.
GUARD = {"heads": (26, 1), "useless": (17, 1), "Isolet": (20, 1), "ORL": (30, 1)}


@cache
def useless() -> Heads:
    heads = load("Caltech-101").heads
    rng = np.random.default_rng(1)
    return Heads(rng.permuted(heads.weights, axis=1), heads.bias)


def lambda_tasks(
    setting: str, target: int, seed: int, draws: int, guard_only: bool
) -> list[Outcome]:
    """GreedyTL with its guard acted on, as it is, without sources, and with other λ."""
    name = setting if setting in LEFT_OUT else "Caltech-101"
    outcomes = []
    for number in range(draws):
        for positives in positives_of(name):
            task = draw(name, target, number, positives, seed)
            if setting == "useless":
                task = task._replace(pool=SourcePool([("source", useless())]))
            letter = 1 / len(task.y)
            models = {
                "λ = 1, no guard": GreedyTLClassifier(task.pool, guard=True),
                "λ = 1, features alone": GreedyTLClassifier(),
                "λ by leave-one-out": GreedyTLClassifier(task.pool, lam="loo"),
                "λ = 1/m (Algorithm 1 to the letter)": GreedyTLClassifier(task.pool, lam=letter),
                "λ = 1, unweighted": GreedyTLClassifier(task.pool, class_weight=None),
                "λ = 1, stop by leave-one-out": GreedyTLClassifier(task.pool, max_selected="loo"),
            }
            for method, model in list(models.items())[: 2 if guard_only else None]:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # the guard's report is what is counted
                    figures = measured(task, fitted(lambda t, model=model: model))
                outcomes.append(
                    {"setting": setting, "positives": positives, "method": method,
                     "target": target, "draw": number,
                     **dict(zip(("accuracy", "auroc", "seconds"), figures, strict=True)),
                     "used_sources": model.used_sources_,
                     "guarded": not getattr(model, "guard_", True), "lam": model.lam_}
                )  # fmt: skip
            # What a guard that is acted on would give: features alone where sources do not help.
            with_sources, alone = outcomes[-len(models) :][:2] if not guard_only else outcomes[-2:]
            acted = alone if with_sources["guarded"] else with_sources
            outcomes.append(
                {**acted, "method": "λ = 1", "guarded": with_sources["guarded"],
                 "seconds": with_sources["seconds"]}
            )  # fmt: skip
    return outcomes


def run_lambda(seed: int, full: bool) -> Iterator[list[dict[str, Any]]]:
    """Choices of λ, and what the guard saves and costs."""
    return lambda_settings(LAMBDA, seed, full, guard_only=False)


def run_guard(seed: int, full: bool) -> Iterator[list[dict[str, Any]]]:
    """What the guard saves and costs with λ = 1, where sources are useless and where they help."""
    return lambda_settings(GUARD, seed, full, guard_only=True)


def lambda_settings(
    settings: dict[str, tuple[int, int]], seed: int, full: bool, *, guard_only: bool
) -> Iterator[list[dict[str, Any]]]:
    done: list[dict[str, Any]] = []
    for setting, size in settings.items():
        targets, draws = ALL if full else size
        name = setting if setting in LEFT_OUT else "Caltech-101"
        jobs = [
            delayed(lambda_tasks)(setting, target, seed, draws, guard_only)
            for target in some_targets(name, targets)
        ]
        for outcomes in growing(jobs, f"λ, {setting}"):
            rows = lambda_rows(outcomes)
            yield done + rows
        done += rows


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


# --- where to stop, on generated shelves --------------------------------------------------------

STOP_ROWS, STOP_HELPFUL, STOP_SHELVES = (12, 20, 40), (1, 5, 20, 100), 8


def stop_tasks(rows: int, helpful: int, seed: int) -> list[Outcome]:
    """The rules of stopping on one shelf of 500 sources; the target is the shelf."""
    data = make_sources(n_samples=rows, n_sources=500, n_helpful=helpful, random_state=seed)
    sign = np.where(data.y_test == 1, 1.0, -1.0)
    outcomes = []
    for most in (None, "loo", 5):
        start = time.process_time()
        model = GreedyTLClassifier(data.sources, max_selected=most).fit(data.X, data.y)
        seconds = time.process_time() - start
        score = model.decision_function(data.X_test)
        outcomes.append(
            {"rows": rows, "helpful": helpful, "method": f"max_selected={most!r}", "target": seed,
             "draw": 0, "accuracy": float(np.mean((score > 0) == (sign > 0))),
             "auroc": float(roc_auc_score(sign, score)), "seconds": seconds,
             "squared": float(np.mean((score - sign) ** 2)), "chosen": model.path_.chosen_size}
        )  # fmt: skip
    return outcomes


def run_stop(seed: int, full: bool) -> Iterator[list[dict[str, Any]]]:
    """All that tol lets in, the size of least left-out error, or five."""
    jobs = [
        delayed(stop_tasks)(rows, helpful, seed + shelf)
        for rows in STOP_ROWS
        for helpful in STOP_HELPFUL
        for shelf in range(100 if full else STOP_SHELVES)
    ]
    by = ("rows", "helpful", "method")
    for outcomes in growing(jobs, "stopping"):
        rows = summary(outcomes, by, "max_selected=None")
        for row in rows:
            own = [o for o in outcomes if all(o[key] == row[key] for key in by)]
            for key in ("squared", "chosen"):
                row[key] = float(np.mean([o[key] for o in own]))
        yield rows


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
                "GreedyTL-59": GreedyTLClassifier(task.pool, n_candidates=59, random_state=number),
                "RLS src+feat": RegularizedLeastSquares(task.pool),
            }
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


def run_matrix(seed: int, full: bool) -> Iterator[list[dict[str, Any]]]:
    """Weights above 0.001 in size; RLS, which weighs everything, only as sums over groups."""
    from experiments.sources_report import SOURCE_GROUPS

    targets, draws = ALL if full else MATRIX
    jobs = [
        delayed(matrix_rows)(target, seed, draws) for target in some_targets("Caltech-101", targets)
    ]
    rows: list[dict[str, Any]] = []
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
    yield rows


# --- running ------------------------------------------------------------------------------------


def run(jobs: list[Any], label: str) -> Iterator[Any]:
    """Results of the jobs in order, from a few processes, with a progress bar."""
    results = Parallel(n_jobs=N_JOBS, return_as="generator")(jobs)
    return progress(results, len(jobs), label)


def growing(jobs: list[Any], label: str) -> Iterator[list[Outcome]]:
    """All outcomes so far, after each job."""
    outcomes: list[Outcome] = []
    for block in run(jobs, label):
        outcomes += block
        yield outcomes


PARTS = {
    "figure1": run_figure1,
    "again": run_again,
    "threshold": run_threshold,
    "figure2": run_figure2,
    "figure2again": run_figure2again,
    "figure3": run_figure3,
    "lambda": run_lambda,
    "guard": run_guard,
    "stop": run_stop,
    "matrix": run_matrix,
}


def main() -> None:
    """Run the parts that were asked for, then make every table and figure there are CSVs for."""
    full = {"action": "store_true", "help": "every target, ten draws, as in the paper (hours)"}
    options = asked_options(__doc__, PARTS, RESULTS, full=full)
    for part in options.parts:
        command = f"python -m experiments.sources {part}{' --full' * options.full}"
        for rows in PARTS[part](options.seed, options.full):
            write_csv(options.out / f"{part}.csv", rows, command=command, seed=options.seed)
    from experiments.sources_report import report

    report(options.out)
    print(f"Tables and figures: {options.out / 'README.md'}")


if __name__ == "__main__":
    # By its own name, so that the other processes find what it caches.
    from experiments.sources import main as run_main

    run_main()
