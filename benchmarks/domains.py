"""Speed of T-Greedy, SteadyRidge and SimilarityLearner beside NumPy and scikit-learn.

    python -m benchmarks.domains            run, then tables and figure in benchmarks/results
    python -m benchmarks.domains steady     some sections; the rows of the others are kept
    python -m benchmarks.domains --report   tables and figure from the CSV alone
    python -m benchmarks.domains similarity --before FOLDER     beside the first round's code, the
        package `holdfast`: git worktree add FOLDER 7149d4a^

Times are CPU seconds, one thread, both sides in turn in one process on the same rows.
The plain way updates the residual of every row at each step and recomputes each domain's
covariance of the features with it. It must pick the same features, or the run stops.
"""

from __future__ import annotations

import argparse
import importlib
import os
import resource
import shlex
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import matplotlib
import numpy as np
from experiments.records import markdown_table, progress, read_csv, write_csv
from sklearn.datasets import load_digits
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.linear_model import LinearRegression, OrthogonalMatchingPursuit, RidgeCV
from sklearn.model_selection import LeaveOneGroupOut
from threadpoolctl import threadpool_limits

from holdtrue import Moments, SimilarityLearner, SteadyRidgeRegressor, TGreedySelector

matplotlib.use("Agg")
import matplotlib.pyplot as plt

RESULTS = Path(__file__).parent / "results" / "domains"
N_DOMAINS, N_ROWS, N_FEATURES, N_STEPS = 9, 2000, 2000, 300
DTYPES = ("float64", "float32")
PLAIN_STEPS = 60  # each costs the same; the time of all is that of these times 5
SFS_SHAPE, SFS_FEATURES = (8, 250, 100), 15
WIDE = (9, 500, 20_000)
SIMILAR = (9, 500, 1_280)
STEADY = {"p = 100": (50, 100, 100), "many domains": (5_000, 4, 10), "wide": (3, 100, 1_280)}


def make_rows(shape: tuple[int, int, int], seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Float32 rows of correlated features; a tenth of the effects is steady, the rest is not."""
    n_domains, n_rows, p = shape
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_domains * n_rows, p), dtype=np.float32)
    X += 0.5 * rng.standard_normal((len(X), 1), dtype=np.float32)
    groups = np.repeat(np.arange(n_domains), n_rows)
    steady = np.where(np.arange(p) < p // 10, rng.standard_normal(p), 0.0)
    y = rng.standard_normal(len(X)).astype(np.float32)
    for d in range(n_domains):
        own = (steady + 0.5 * rng.standard_normal(p)) / np.sqrt(p)
        y[groups == d] += X[groups == d] @ own.astype(np.float32)
    return X, y, groups


def plain_walk(X: np.ndarray, y: np.ndarray, n_domains: int, steps: int) -> list[int]:
    """T-Greedy (rule "t") as one writes it from §3.3; rows of a domain lie together."""
    X = (X - X.mean(axis=0)).reshape(n_domains, -1, X.shape[1])
    residual = (y - y.mean()).reshape(n_domains, -1)
    rows = X.shape[1]
    e2 = np.array([np.einsum("ij,ij->j", own, own) for own in X]).mean(axis=0) / rows
    order = []
    for _ in range(steps):
        g = np.array([r @ own for own, r in zip(X, residual, strict=True)]) / rows
        mu = g.mean(axis=0)
        t = np.abs(mu) / g.std(axis=0, ddof=1)
        i = int(np.argmax(t))
        residual = residual - mu[i] / e2[i] * X[:, :, i]
        order.append(i)
    return order


def cpu(function: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    value = function()
    return time.process_time() - start, value


def reference(seed: int, repeats: int, dtype: str) -> list[dict[str, Any]]:
    """9 × 2,000 rows × 2,000 features, 300 steps, rows of that dtype on all sides."""
    X, y, groups = make_rows((N_DOMAINS, N_ROWS, N_FEATURES), seed)
    X, y = X.astype(dtype), y.astype(dtype)
    times: dict[str, list[float]] = {}
    ours: list[int] = []
    same = distinct = 0

    def walk(rule: str, rows: Callable[[], np.ndarray]) -> list[int]:
        selector = TGreedySelector(rule, stop="max_steps", max_steps=N_STEPS)
        return selector.fit(rows(), y, groups=groups).path_.order.tolist()

    for _ in range(repeats):
        for rule in ("t", "moderated", "greedy"):
            seconds, order = cpu(lambda r=rule: walk(r, lambda: X))
            times.setdefault(f"holdtrue, {rule}", []).append(seconds)
            ours = order if rule == "t" else ours
        if dtype == "float64":
            seconds, order = cpu(lambda: walk("t", lambda: X.astype(np.float32)))
            times.setdefault("holdtrue, t, rows cast to float32", []).append(seconds)
            if order != ours:
                raise AssertionError("float32 columns give other picks")
        seconds, order = cpu(lambda: plain_walk(X, y, N_DOMAINS, PLAIN_STEPS))
        times.setdefault("NumPy, residual covariances", []).append(seconds * N_STEPS / PLAIN_STEPS)
        same, distinct = sum(a == b for a, b in zip(order, ours, strict=False)), len(set(ours))
        if same < PLAIN_STEPS // 2:  # float32: a near tie may go the other way, late
            raise AssertionError(f"{same} of {PLAIN_STEPS} picks agree: {order} {ours[:60]}")
        omp = OrthogonalMatchingPursuit(n_nonzero_coefs=N_STEPS)
        seconds, _ = cpu(lambda model=omp: model.fit(X, y))
        times.setdefault("scikit-learn OMP, pooled rows", []).append(seconds)
    ours_s = float(np.median(times["holdtrue, t"]))
    return [
        {"part": f"reference {dtype}", "what": name, "cpu_s": float(np.median(values)),
         "ratio": float(np.median(values)) / ours_s,
         "note": f"{same} of {PLAIN_STEPS} picks agree; {distinct} different features"}
        for name, values in times.items()
    ]  # fmt: skip


def length(seed: int) -> list[dict[str, Any]]:
    """Length by leave-one-domain-out: against SequentialFeatureSelector."""
    X, y, groups = make_rows(SFS_SHAPE, seed)
    X, y = X.astype(float), y.astype(float)
    rows = []
    for label, settings in (
        (f"holdtrue, {SFS_FEATURES} steps", {"max_steps": SFS_FEATURES}),
        (f"holdtrue, {SFS_FEATURES} steps, stepwise",
         {"max_steps": SFS_FEATURES, "stepwise": True}),
        ("holdtrue, default length", {}),
    ):  # fmt: skip
        selector = TGreedySelector("t", stop="held_out_domain", **settings)
        seconds = min(cpu(lambda s=selector: s.fit(X, y, groups=groups))[0] for _ in range(3))
        rows.append({"part": "length", "what": label, "cpu_s": seconds})
    splits = list(LeaveOneGroupOut().split(X, groups=groups))
    sfs = SequentialFeatureSelector(
        LinearRegression(), n_features_to_select=SFS_FEATURES, cv=splits
    )
    seconds, _ = cpu(lambda: sfs.fit(X, y))
    rows.append({"part": "length", "what": "SFS + LeaveOneGroupOut", "cpu_s": seconds})
    return [{**row, "ratio": row["cpu_s"] / rows[0]["cpu_s"], "note": ""} for row in rows]


def steady(seed: int) -> list[dict[str, Any]]:
    """All candidates by left-out domains: SteadyRidge beside RidgeCV with as many penalties."""
    rows = []
    for name, shape in STEADY.items():
        X, y, groups = make_rows(shape, seed)
        X, y = X.astype(float), y.astype(float)
        moments = Moments.from_arrays(X, y, groups=groups)
        fits: dict[str, Callable[[], Any]] = {
            "SteadyRidge, from rows": lambda: SteadyRidgeRegressor().fit(X, y, groups=groups),  # noqa: B023
            "SteadyRidge, from moments": lambda: SteadyRidgeRegressor().fit_statistics(moments),  # noqa: B023
        }
        if name == "p = 100":
            splits = list(LeaveOneGroupOut().split(X, groups=groups))
            ridge = RidgeCV(alphas=np.logspace(-6, 2, 25) * len(X), cv=splits)
            fits["RidgeCV, the same domains left out"] = lambda: ridge.fit(X, y)  # noqa: B023
        times = {label: min(cpu(fit)[0] for _ in range(3)) for label, fit in fits.items()}
        first = next(iter(times.values()))
        rows += [
            {"part": "steady", "what": label, "cpu_s": seconds, "ratio": seconds / first,
             "note": "{} domains × {} rows × {} features".format(*shape)}
            for label, seconds in times.items()
        ]  # fmt: skip
    return rows


def similarity(seed: int, before: Path | None) -> list[dict[str, Any]]:
    """SimilarityLearner: every class and pair of classes held out, and one walk alone.

    Beside it, in turn, the first round's where its code is given.
    """
    learners: dict[str, Any] = {"now": SimilarityLearner}
    if before is not None:
        sys.path.append(str(before / "src"))
        learners["before"] = importlib.import_module("holdfast").SimilarityLearner
    X, _, groups = make_rows(SIMILAR, seed)
    X += np.random.default_rng(seed).normal(size=(SIMILAR[0], SIMILAR[2]))[groups] / 2
    digits = load_digits()
    tables = {
        "digits, 10 classes, 1,797 rows × 64 features": (digits.data, digits.target),
        "{} classes × {} rows × {:,} features, float32".format(*SIMILAR): (X, groups),
    }
    fits = {"every held-out class": {}, "one walk": {"stop": "max_steps", "max_steps": N_STEPS}}
    rows = []
    for note, (rows_of, classes) in tables.items():
        for label, settings in fits.items():
            seconds = dict.fromkeys(learners, np.inf)
            for when, learner in [*learners.items()] * 3:
                fit = learner(**settings).fit
                seconds[when] = min(seconds[when], cpu(lambda: fit(rows_of, classes))[0])  # noqa: B023
            rows += [
                {"part": "similarity", "what": f"{label}, {when}", "cpu_s": value,
                 "ratio": value / seconds["now"], "note": note}
                for when, value in seconds.items()
            ]  # fmt: skip
    return rows


def wide(seed: int) -> None:
    """Print CPU seconds and peak memory of one fit with p = 20,000; for a process of its own."""
    X, y, groups = make_rows(WIDE, seed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    selector = TGreedySelector("moderated", stop="max_steps", max_steps=100)
    with threadpool_limits(1):
        seconds, _ = cpu(lambda: selector.fit(X, y, groups=groups))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(seconds, X.nbytes / 2**20, before / 2**10, after / 2**10)


def run_wide(seed: int) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "benchmarks.domains", "--wide", "--seed", str(seed)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds, rows, before, after = map(float, said.split())
    grams = WIDE[0] * WIDE[2] ** 2 * 4 / 2**20
    note = (
        f"rows {rows:.0f} MiB; peak {before:.0f} MiB before the fit, {after:.0f} MiB in it; whole"
        f" matrices would need {grams:.0f} MiB"
    )
    return [{"part": "wide", "what": "p = 20,000, 100 steps", "cpu_s": seconds,
             "ratio": float("nan"), "note": note}]  # fmt: skip


GROWTH = {
    "features": [(9, 500, p) for p in (250, 500, 1000, 2000, 4000)],
    "rows in a domain": [(9, rows, 500) for rows in (125, 250, 500, 1000, 2000, 4000)],
    "domains": [(n, 250, 500) for n in (3, 6, 12, 24, 48)],
}


def growth(seed: int) -> list[dict[str, Any]]:
    rows = []
    for what, shapes in GROWTH.items():
        for shape in shapes:
            X, y, groups = make_rows(shape, seed)
            for stop in ("max_steps", "held_out_domain"):
                if stop == "held_out_domain" and np.prod(shape) > 5_000_000:
                    continue
                selector = TGreedySelector("t", stop=stop, max_steps=50)
                seconds = min(
                    cpu(lambda s=selector: s.fit(X, y, groups=groups))[0]  # noqa: B023
                    for _ in range(2)
                )
                at = shape[("domains", "rows in a domain", "features").index(what)]
                rows.append({"part": f"growth: {what}", "what": stop, "cpu_s": seconds,
                             "ratio": float(at), "note": "×".join(map(str, shape))})  # fmt: skip
    return rows


def ratios(rows: list[dict[str, Any]], dtype: str) -> str:
    """How many times as long the peers take as holdtrue's t, with the rows as they are and cast."""
    cast = [r["cpu_s"] for r in rows if r["what"].endswith("cast to float32")]
    header = [f"{dtype} rows", "CPU s", "over holdtrue's t", *("over t, cast" for _ in cast)]
    return markdown_table(
        header,
        [[r["what"], r["cpu_s"], f"**{r['ratio']:.1f}×**",
          *(f"**{r['cpu_s'] / own:.1f}×**" for own in cast)] for r in rows],
    )  # fmt: skip


def bound(note: str) -> str:
    """What the arithmetic allows."""
    distinct = int(note.split("; ")[1].split()[0])
    n_rows = N_DOMAINS * N_ROWS
    return (
        f"What the arithmetic allows: OMP's time is one symmetric product of all columns,"
        f" {n_rows * N_FEATURES**2 / 1e9:.0f} Gflop at full speed. A walk of {N_STEPS} steps picks"
        f" {distinct} different features, whose columns are"
        f" {2 * n_rows * N_FEATURES * distinct / 1e9:.0f} Gflop, so that no walk by columns is more"
        f" than {N_FEATURES / (2 * distinct):.1f} times as fast as OMP. Which columns come next is"
        " not known. The first block has 100 columns, of the features at both ends of the signed"
        " strengths, and lasts for some 40 steps. Then the walk goes on among the strongest 590 of"
        " the others alone, whose matrices are 6 Gflop, and the columns of these steps, about 210,"
        " are computed in a second block, without the entries that the matrices hold: 23 Gflop in"
        " all. Tried without gain: blocks by strength alone: 360 to 450 columns in 3 to 5 blocks,"
        " each of which reads all rows again; steps ahead from the first step on: 353 columns; two"
        " or four steps ahead at a time: 5 to 12 blocks; columns not known yet taken from those"
        " picked (Nyström): 374 columns in 5 blocks; to rank by what least squares on the known"
        " columns leaves, or by T with spreads shrunk towards each other: 400 to 580 columns;"
        " whole columns in the second block; steps ahead among 460 features:"
        " a third block in 10 of 12 walks (3 rules, seeds 0 to 3), where 590 have one in 2; the"
        " transposed product, which is faster with OpenBLAS 0.3.30 alone; 64 to 160 columns in the"
        " first block. Whole matrices of every domain would cost what OMP costs. At float32 the"
        " products take half of the time; the rest is to gather columns of the rows (a fifth), the"
        " steps and those ahead (an eighth) and first moments."
    )


def report(folder: Path) -> None:
    rows = read_csv(folder / "speed.csv")
    names = ("reference float64", "reference float32", "length", "steady", "similarity")
    part = {name: [r for r in rows if r["part"] == name] for name in names}
    text = [
        "# domains: T-Greedy and SteadyRidge beside NumPy and scikit-learn",
        "Made by `python -m benchmarks.domains`; `speed.csv` says with which versions. CPU seconds"
        " of one thread, the sides in turn in one process. Times are this machine's, shared with"
        " other work; the ratios are the result.",
        f"## {N_DOMAINS} × {N_ROWS:,} rows × {N_FEATURES:,} features, {N_STEPS} steps",
        "Asked for: at least 6 times (goal 9) as fast as NumPy, at least 2 times as fast as"
        " OrthogonalMatchingPursuit. The reference that these came from had float32 Grams beside"
        " peers on rows as they are.",
        *(ratios(part[f"reference {dtype}"], dtype) for dtype in DTYPES),
        f"The plain way took {PLAIN_STEPS} steps, and the table has that time"
        f" × {N_STEPS // PLAIN_STEPS}. Casting is part of the time of *rows cast to float32*; its"
        " picks are those of float64, all of them, or the run stops.",
        bound(part["reference float32"][0]["note"]),
        "## Length by leaving one domain out",
        "{} domains × {} rows × {} features; scikit-learn's selector stops at"
        " {} features.".format(*SFS_SHAPE, SFS_FEATURES),
        markdown_table(
            ["", "CPU s", "over the first"],
            [[r["what"], r["cpu_s"], f"**{r['ratio']:.0f}×**"] for r in part["length"]],
        ),
        "holdtrue's time includes the nested estimate of the error on a new domain (pairs of"
        " domains held out), which scikit-learn's selector does not give.",
        "## SteadyRidge: every candidate by left-out domains",
        "Nine spreads of intercepts and slopes × 25 penalties, nested estimate included, never from"
        " rows twice. Asked for: at most twice RidgeCV's time at p = 100 and 50 domains; 5,000 × 4"
        " rows in under a second.",
        markdown_table(
            ["", "", "CPU s", "over the first"],
            [[r["note"], r["what"], r["cpu_s"], f"**{r['ratio']:.2f}×**"] for r in part["steady"]],
        ),
        "## SimilarityLearner",
        f"At most {N_STEPS} steps. Every class and every pair of classes is held out in turn, with"
        " the sums of pairs of rows taken from moments of the classes; *before*: the first round's"
        " code. Asked for: at least 5 times as fast.",
        markdown_table(
            ["", "", "CPU s", "over now"],
            [[r["note"], r["what"], r["cpu_s"], f"**{r['ratio']:.1f}×**"]
             for r in part["similarity"]],
        ),
    ]  # fmt: skip
    for r in rows:
        if r["part"] == "wide":
            n, m, p = WIDE
            text += [
                "## p = 20,000",
                f"{n} × {m} rows × {p:,} features, 100 steps, within scikit-learn's default"
                f" `working_memory` of 1 GiB for the columns: {r['cpu_s']:.1f} s CPU; {r['note']}.",
            ]
    figure, axes = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
    for ax, what in zip(axes, GROWTH, strict=True):
        for stop, colour in (("max_steps", "#0072B2"), ("held_out_domain", "#D55E00")):
            found = [r for r in rows if r["part"] == f"growth: {what}" and r["what"] == stop]
            if found:
                xs, ys = [r["ratio"] for r in found], [r["cpu_s"] for r in found]
                ax.loglog(xs, ys, "o-", color=colour, label=stop)
        at = sorted({r["ratio"] for r in rows if r["part"] == f"growth: {what}"})
        ax.set(xlabel=what)
        ax.set_xticks(at, [f"{x:g}" for x in at])
        ax.minorticks_off()
    axes[0].set_ylabel("CPU seconds, 50 steps")
    axes[0].legend(frameon=False)
    figure.savefig(folder / "growth.png", dpi=80)
    plt.close(figure)
    text += [
        "## How time grows",
        "![CPU time against features, rows and domains](growth.png)",
        "50 steps, rule t. Features: 9 × 500 rows; rows: 9 domains, 500 features; domains: 250 rows"
        " each, 500 features. With held-out domains the walks number about n²/2 up to 20"
        " domains, then 55.",
    ]
    (folder / "README.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--before", type=Path, help="folder of the first round's code")
    parser.add_argument("--wide", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.wide:
        wide(options.seed)
        return
    path = options.out / "speed.csv"
    sections: dict[str, Callable[[], list[dict[str, Any]]]] = {
        "length": lambda: length(options.seed),
        "steady": lambda: steady(options.seed),
        "similarity": lambda: similarity(options.seed, options.before),
        **{
            f"reference {d}": lambda d=d: reference(options.seed, options.repeats, d)
            for d in DTYPES
        },
        "wide": lambda: run_wide(options.seed),
        "growth": lambda: growth(options.seed),
    }
    asked = [] if options.report else options.sections or list(sections)
    rows = read_csv(path) if path.exists() else []
    for name in progress(asked, len(asked), "domains"):
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # three domains are few
            new = sections[name]()
        rows = [row for row in rows if not str(row["part"]).startswith(name)] + new
        command = f"python -m benchmarks.domains {shlex.join(asked)} --repeats {options.repeats}"
        command += " --before FOLDER" if options.before else ""
        command += (
            "" if len(asked) == len(sections) else "; other sections as an earlier run left them"
        )
        write_csv(path, rows, command=command, seed=options.seed)
    report(options.out)
    print((options.out / "README.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
