"""GreedyTL beside other classifiers on eleven real pools, few rows of each class.

python -m experiments.sources_rivals               what is missing of every pool, then the tables
python -m experiments.sources_rivals ORL colon     these pools alone (written elsewhere with --out)
python -m experiments.sources_rivals --again       GreedyTL's lines anew, beside the others' as kept
python -m experiments.sources_rivals --report      tables from the CSV alone

Pools and draws are those of `experiments.sources_tasks`. All methods see the same rows, balanced by
class. *Accuracy* is class-balanced, by each method's own threshold. *Log loss* is class-balanced,
of each method's own probabilities, or where it has none of `CalibratedClassifierCV` (sigmoid, up to
three folds). *Estimate* is GreedyTL's own, of its squared error with scores cut to [-1, 1]. CPU
time is that of the fit, and of the fit with the probabilities. MultiKT needs sources, so it is not
run on the pools that have columns alone. The pools marked `decided` took part in choosing settings
of GreedyTL (with other draws); the others did not. The methods were fixed before the first run, but
for GreedyTL on sources alone (``passthrough=False``), which decides nothing.
Lines that the CSV has are kept, so that a run that was stopped goes on; draws depend on the seed
alone.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from experiments.records import asked_options, progress, read_csv, write_csv
from experiments.sources import some_targets
from experiments.sources_tasks import Task, draw, positives_of
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils import compute_sample_weight

from holdtrue import GreedyTLClassifier
from holdtrue.sources import MultiKT, RegularizedLeastSquares

RESULTS = Path(__file__).parent / "results" / "sources"
DECIDED = ("Caltech-101", "ORL", "colon", "madelon", "GLIOMA")
# Most targets, then draws of each.
POOLS = {"Caltech-101": (24, 1), "CIFAR-10": (8, 3), "Isolet": (20, 1), "ORL": (24, 1),
         "colon": (1, 16), "leukemia": (1, 16), "GLIOMA": (4, 4), "lung_small": (4, 4),
         "nci9": (4, 4), "madelon": (1, 16), "RELATHE": (1, 16)}  # fmt: skip


def regimes(name: str) -> list[tuple[int, int]]:
    """Positives and negatives to train on."""
    return [*((count, count) for count in positives_of(name)), (2, 10)]


class OnScores:
    """A scikit-learn classifier on [features, scores], standardised; weights balanced by class."""

    def __init__(self, model: Any):
        self.model = model

    def __call__(self, task: Task) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
        """Predictions, scores and probabilities of the test rows; CPU s without and with them."""
        both = [
            np.hstack([X, task.pool.scores(X)]) if len(task.pool) else X
            for X in (task.X, task.X_test)
        ]
        return judged(make_pipeline(StandardScaler(), self.model(task)), both[0], task.y, both[1])


class OnPool:
    """A classifier of `holdtrue.sources`."""

    def __init__(self, model: Any, **options: Any):
        self.model, self.options = model, options

    def __call__(self, task: Task) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
        """As `OnScores`."""
        self.fitted = self.model(task.pool, **self.options)
        return judged(self.fitted, task.X, task.y, task.X_test)


def judged(
    model: Any, X: np.ndarray, y: np.ndarray, new: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
    start = time.process_time()
    model.fit(X, y)
    alone = time.process_time() - start
    predicted, scores = model.predict(new), model.decision_function(new)
    if hasattr(model, "predict_proba"):
        return predicted, scores, model.predict_proba(new)[:, 1], alone, alone
    folds = int(min(3, np.bincount(y > 0).min()))
    sigmoid = CalibratedClassifierCV(model, cv=folds, ensemble=False)
    sigmoid.fit(X, y, sample_weight=compute_sample_weight("balanced", y))
    with_probabilities = time.process_time() - start
    return predicted, scores, sigmoid.predict_proba(new)[:, 1], alone, with_probabilities


def logistic(task: Task) -> Any:
    folds = int(min(5, np.bincount(task.y > 0).min()))
    return LogisticRegressionCV(
        cv=folds, class_weight="balanced", scoring="neg_log_loss", use_legacy_attributes=False,
        l1_ratios=(0,),
    )  # fmt: skip


METHODS = {
    "GreedyTL": OnPool(GreedyTLClassifier),
    "GreedyTL, max_selected='loo'": OnPool(GreedyTLClassifier, max_selected="loo"),
    "GreedyTL, passthrough=False": OnPool(GreedyTLClassifier, passthrough=False),
    "RLS": OnPool(RegularizedLeastSquares),
    "MultiKT": OnPool(MultiKT),
    "LogisticRegressionCV": OnScores(logistic),
    "LinearSVC": OnScores(lambda task: LinearSVC(class_weight="balanced", random_state=0)),
}
NEED_SOURCES = ("MultiKT", "GreedyTL, passthrough=False")

Line = tuple[str, str, int, int, str]  # pool, rows, target, draw, method


def key_of(row: dict[str, Any]) -> Line:
    return row["pool"], row["rows"], row["target"], row["draw"], row["method"]


def outcomes(
    name: str, target: int, number: int, seed: int, done: dict[Line, dict[str, Any]]
) -> None:
    """Add one line for each size and method that has none."""
    for positives, negatives in regimes(name):
        task = draw(name, target, number, positives, seed, negatives)
        weight = compute_sample_weight("balanced", task.y_test)
        for method, run in METHODS.items():
            row = {
                "pool": name, "decided": int(name in DECIDED), "rows": f"{positives}+{negatives}",
                "target": target, "draw": number, "method": method,
            }  # fmt: skip
            if key_of(row) in done or (method in NEED_SOURCES and not len(task.pool)):
                continue  # without sources MultiKT would take every column for one
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # convergence
                predicted, scores, shares, alone, whole = run(task)
            estimate = squared = np.nan
            if isinstance(run, OnPool) and run.model is GreedyTLClassifier:
                estimate = run.fitted.loo_errors_.popitem()[1]
                squared = np.average((np.clip(scores, -1, 1) - task.y_test) ** 2, weights=weight)
            done[key_of(row)] = {
                **row,
                "accuracy": float(balanced_accuracy_score(task.y_test, predicted)),
                "auroc": float(roc_auc_score(task.y_test, scores)),
                "log_loss": float(log_loss(task.y_test > 0, shares, sample_weight=weight)),
                "estimate": float(estimate), "squared_error": float(squared), "cpu_s": alone,
                "cpu_with_probabilities_s": whole,
            }  # fmt: skip


def place(row: dict[str, Any]) -> tuple[int, ...]:
    """Where a line stands in the CSV."""
    sizes = [f"{positives}+{negatives}" for positives, negatives in regimes(row["pool"])]
    methods = list(METHODS).index(row["method"])
    pool = list(POOLS).index(row["pool"])
    return pool, row["target"], row["draw"], sizes.index(row["rows"]), methods


def main() -> None:
    """Run what is missing of the pools that were asked for, then make every table."""
    again = {"action": "store_true", "help": "run GreedyTL's lines anew"}
    options = asked_options(__doc__, POOLS, RESULTS, again=again)
    path = options.out / "rivals.csv"
    done = {key_of(row): row for row in (read_csv(path) if path.exists() else [])}
    if options.again:
        asked = [key for key in done if key[0] in options.parts and key[4].startswith("GreedyTL")]
        for key in asked:
            del done[key]
    tasks = [
        (name, target, number)
        for name in options.parts
        for target in some_targets(name, POOLS[name][0])
        for number in range(POOLS[name][1])
    ]
    for name, target, number in progress(tasks, len(tasks), "rivals"):
        outcomes(name, target, number, options.seed, done)
        rows = sorted(done.values(), key=place)
        command = "python -m experiments.sources_rivals"
        write_csv(path, rows, command=command, seed=options.seed)
    from experiments.sources_report import report

    report(options.out)
    print(f"Tables: {options.out / 'README.md'}")


if __name__ == "__main__":
    main()
