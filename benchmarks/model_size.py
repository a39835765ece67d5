"""Speed of NestedRegressor: all criteria on one path beside the plain way; the default beside a GP.

    python -m benchmarks.model_size            run, then tables in benchmarks/results
    python -m benchmarks.model_size --report   tables from the CSVs alone

The plain way is what one writes without the path: one least-squares fit per size for the
criteria with a formula, with one more solve per size for DEE's trace and leave-one-out's closed
form, the pairs of sizes for ADJ, and scikit-learn's ``cross_val_score`` per size. Both sides
get the terms' matrix in the same way, run in one process on one thread, in turn; the table has
ratios of medians. Both must find the same numbers, or the run stops.

The default, an average over sizes and bases with all criteria, is timed beside scikit-learn's
Gaussian process (Gaussian kernel, constant and noise, one start), CPU time of fit in turn.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from experiments.model_size_contest import gaussian_process
from experiments.records import markdown_table, progress, read_csv, write_csv
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import PredefinedSplit, cross_val_score
from threadpoolctl import threadpool_limits

from holdtrue import NestedRegressor
from holdtrue.datasets import make_curve
from holdtrue.model_size import bases, kernel

RESULTS = Path(__file__).parent / "results" / "model_size"
N_TERMS = 40
SIZES = (50, 500, 5000)
DEFAULT_SIZES = (20, 50, 100)


def plain(x: np.ndarray, y: np.ndarray, unlabelled: np.ndarray) -> dict:
    """Every criterion of every size, each from its own definition."""
    n = len(y)
    terms, other = bases.cosine(x, N_TERMS), bases.cosine(unlabelled, N_TERMS)
    C = other.T @ other / len(other)
    d = np.arange(1, N_TERMS + 1)
    remp, trace, press = np.empty(N_TERMS), np.empty(N_TERMS), np.empty(N_TERMS)
    on_training, on_unlabelled = [], []
    for k in d:
        design = terms[:, :k]
        alpha = np.linalg.lstsq(design, y, rcond=None)[0]
        residual = y - design @ alpha
        remp[k - 1] = residual @ residual / n
        inverse = np.linalg.inv(design.T @ design)
        trace[k - 1] = np.trace(inverse @ C[:k, :k])
        leverage = np.einsum("ij,jk,ik->i", design, inverse, design, optimize=True)
        press[k - 1] = np.mean((residual / (1 - leverage)) ** 2)
        on_training.append(design @ alpha)
        on_unlabelled.append(other[:, :k] @ alpha)
    adj = remp.copy()
    for size in range(1, N_TERMS):
        adj[size] *= max(
            np.mean((on_unlabelled[size] - on_unlabelled[k]) ** 2)
            / np.mean((on_training[size] - on_training[k]) ** 2)
            for k in range(size)
        )
    return {
        "dee": remp / (1 - d / n) * (1 + trace),
        "adj": adj,
        "loo": press,
        "fpe": kernel.fpe(remp, d, n),
        "gcv": kernel.gcv(remp, d, n),
        "ucb": kernel.ucb(remp, d, n),
        "seb": kernel.seb(remp, d, n),
        "aic": kernel.aic(remp, d, n),
        "aicc": kernel.aicc(remp, d, n),
    }


def plain_cv(x: np.ndarray, y: np.ndarray, fold: np.ndarray) -> dict:
    """Five-fold cross-validation of every size by scikit-learn."""
    terms = bases.cosine(x, N_TERMS)
    model = LinearRegression(fit_intercept=False)
    scores = [
        -cross_val_score(
            model, terms[:, :k], y, cv=PredefinedSplit(fold), scoring="neg_mean_squared_error"
        ).mean()
        for k in range(1, N_TERMS + 1)
    ]
    return {"cv": np.array(scores)}


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    value = function()
    return time.perf_counter() - start, value


def run(repeats: int, seed: int) -> list[dict[str, Any]]:
    """Median times of both ways, side by side."""
    rows = []
    for n in progress(SIZES, len(SIZES), "model_size"):
        data = make_curve("step", n, noise=0.2, random_state=seed)
        x = (data.X[:, 0] + np.pi) / (2 * np.pi)
        unlabelled = (data.X_unlabeled[:, 0] + np.pi) / (2 * np.pi)
        fold = np.arange(n) % 5  # equal folds, so that mean over folds is mean over rows
        model = NestedRegressor(
            "cosine",
            criterion="dee",
            predict="chosen",
            max_terms=N_TERMS,
            interval=(0, 1),
            cv=PredefinedSplit(fold),
            random_state=seed,
        )

        def ours(model=model, x=x, y=data.y, unlabelled=unlabelled):
            return model.fit(x[:, None], y, X_unlabeled=unlabelled[:, None]).criteria_

        def theirs(x=x, y=data.y, unlabelled=unlabelled):
            return plain(x, y, unlabelled)

        def theirs_cv(x=x, y=data.y, fold=fold):
            return plain_cv(x, y, fold)

        ours()
        times: dict[str, list[float]] = {"holdtrue": [], "plain": [], "plain cv": []}
        for _ in range(repeats):
            for name, function in (
                ("holdtrue", ours), ("plain", theirs), ("plain cv", theirs_cv)
            ):  # fmt: skip
                seconds, values = timed(function)
                times[name].append(seconds)
                if name == "holdtrue":
                    found = values
                for criterion in values if name != "holdtrue" else ():
                    # Sizes near 40 of 50 rows are hardly determined; both ways lose digits there.
                    sound = slice(0, N_TERMS if n > 100 else 20)
                    np.testing.assert_allclose(
                        found[criterion][sound], values[criterion][sound], rtol=1e-6
                    )
        median = {name: float(np.median(values)) for name, values in times.items()}
        rows.append(
            {"n": n, "terms": N_TERMS, "repeats": repeats,
             **{f"{name}_ms": 1000 * value for name, value in median.items()},
             "ratio": (median["plain"] + median["plain cv"]) / median["holdtrue"],
             "ratio_without_cv": median["plain"] / median["holdtrue"]}
        )  # fmt: skip
    return rows


def run_default(repeats: int, seed: int) -> list[dict[str, Any]]:
    """Median CPU times of the default and of a Gaussian process, side by side."""
    rows = []
    for n in DEFAULT_SIZES:
        data = make_curve("step", n, noise=0.2, random_state=seed)
        model = NestedRegressor(random_state=seed)
        ways = {
            "holdtrue": lambda model=model, data=data: model.fit(data.X, data.y),
            "process": lambda data=data: gaussian_process(data.X, data.y, data.X[:1]),
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for turn in range(repeats + 1):
            for name, way in ways.items():
                start = time.process_time()
                way()
                if turn:  # the first warms up
                    times[name].append(time.process_time() - start)
        median = {name: float(np.median(values)) for name, values in times.items()}
        rows.append(
            {"n": n, "bases": len(model.basis_weights_), "repeats": repeats,
             **{f"{name}_ms": 1000 * value for name, value in median.items()},
             "ratio": median["holdtrue"] / median["process"]}
        )  # fmt: skip
    return rows


def report(folder: Path) -> None:
    rows = read_csv(folder / "speed.csv")
    table = markdown_table(
        ["n", "terms", "holdtrue, all criteria (ms)", "plain, without CV (ms)",
         "plain CV by scikit-learn (ms)", "ratio", "ratio, CV only on our side"],
        [[r["n"], r["terms"], r["holdtrue_ms"], r["plain_ms"], r["plain cv_ms"],
          f"**{r['ratio']:.0f}×**", f"{r['ratio_without_cv']:.1f}×"] for r in rows],
    )  # fmt: skip
    text = (
        "# model_size: one path for all criteria and all sizes, beside the plain way\n\n"
        "Made by `python -m benchmarks.model_size`; `speed.csv` says with which versions. One"
        " process, one thread, the two ways in turn, medians. Times are this machine's; the ratios"
        " are the result. The last column charges holdtrue with its own cross-validation, all"
        " fifteen criteria and the checks of `fit`, and the plain way with neither.\n\n"
    )
    text += table
    default = markdown_table(
        ["n", "bases", "holdtrue, the default (ms)", "Gaussian process (ms)", "ratio"],
        [[r["n"], r["bases"], r["holdtrue_ms"], r["process_ms"], f"**{r['ratio']:.1f}×**"]
         for r in read_csv(folder / "default.csv")],
    )  # fmt: skip
    text += (
        "\n\n## The default beside a Gaussian process\n\n"
        "CPU time of one fit, in turn, medians (`default.csv`). The default averages over sizes and"
        " the bases of one even input (three families and two processes), and has all fifteen"
        " criteria, folds and left-out rows with it.\n\n"
    )
    (folder / "README.md").write_text(text + default + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    if not options.report:
        command = f"python -m benchmarks.model_size --repeats {options.repeats}"
        for name, measure in (("speed", run), ("default", run_default)):
            with threadpool_limits(1):
                rows = measure(options.repeats, options.seed)
            write_csv(options.out / f"{name}.csv", rows, command=command, seed=options.seed)
    report(options.out)
    print((options.out / "README.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
