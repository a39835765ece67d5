"""Tables and figure of `benchmarks.sources`, made from its CSVs alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib
from experiments.records import markdown_table, read_csv

matplotlib.use("Agg")
import matplotlib.pyplot as plt

# Ratios asked for at the three sizes, by rival.
GOALS = {
    "OMP": (2.5, 1.8, 1.5), "Algorithm 1": (6.0, 30.0, None),
    "abess": (1.0, 1.0, 1.0),
}  # fmt: skip


def report(folder: Path) -> None:
    """README.md and its figure from the CSVs that are there."""
    text = [
        "# sources: speed of GreedyTL",
        "Made by `python -m benchmarks.sources`; each CSV says with which versions. One process,"
        " one thread, CPU time, the ways in turn, medians. Times are this machine's, shared with"
        " others; the ratios are the result.",
    ]
    for name, write in (
        ("kernel", report_kernel), ("estimate", report_estimate), ("lazy", report_lazy),
        ("targets", report_targets), ("files", report_files),
    ):  # fmt: skip
        if (folder / f"{name}.csv").exists():
            text.append(write(read_csv(folder / f"{name}.csv"), folder))
    (folder / "README.md").write_text("\n\n".join(text) + "\n", encoding="utf-8")


def report_kernel(rows: list[dict[str, Any]], folder: Path) -> str:
    sizes = list(dict.fromkeys((r["m"], r["p"], r["k"]) for r in rows))
    ms = {(r["m"], r["p"], r["k"], r["way"]): r["cpu_ms"] for r in rows}
    ways = list(dict.fromkeys(r["way"] for r in rows))
    header = ["CPU ms", *(f"m = {m:,}, p = {p:,}, k = {k}" for m, p, k in sizes)]
    lines = [[way, *(ms[(*size, way)] for size in sizes)] for way in ways]
    notes = sorted({f"{r['way']}, m = {r['m']}: {r['note']}" for r in rows if r["note"]})
    text = ["## One fit of k candidates", markdown_table(header, lines)]
    ratios = []
    for label, top, below, goals in (
        ("scikit-learn's OMP / holdtrue, float64", "OMP", "holdtrue", GOALS["OMP"]),
        ("OMP given its own memory order / holdtrue", "OMP, column order", "holdtrue", None),
        ("OMP / holdtrue, float32", "OMP, float32", "holdtrue, float32", None),
        ("Algorithm 1 vectorised / holdtrue", "Algorithm 1", "holdtrue", GOALS["Algorithm 1"]),
        ("abess's path / holdtrue", "abess", "holdtrue", GOALS["abess"]),
        ("holdtrue / read Z k times, float64", "holdtrue", "read Z k times", None),
        ("holdtrue / read Z k times, float32", "holdtrue, float32", "read Z k times, float32",
         None),
    ):  # fmt: skip
        cells = []
        for place, size in enumerate(sizes):
            a, b = ms[(*size, top)], ms[(*size, below)]
            if isinstance(a, str):
                cells.append(a)
                continue
            goal = goals[place] if goals else None
            asked = (
                ""
                if goal is None
                else f" (asked: {goal:g}, {'met' if a / b >= goal else 'missed'})"
            )
            cells.append(f"**{a / b:.1f}×**{asked}")
        ratios.append([label, *cells])
    text.append(markdown_table(["ratio", *header[1:]], ratios))
    text.append(
        "holdtrue picks with λ = 1 and gives weights for every size; OMP picks without a penalty"
        " and gives the weights of the last. Algorithm 1's picks and those in float32 are checked"
        " to be holdtrue's. holdtrue reads a float32 copy of Z, so it can fall below the bound in"
        " float64."
    )
    if notes:
        text.append("\n".join(f"- {note}" for note in notes))
    return "\n\n".join(text)


def report_estimate(rows: list[dict[str, Any]], folder: Path) -> str:
    """Whole fits with the error on left-out rows, and without."""
    sizes = list(dict.fromkeys((r["m"], r["p"], r["k"]) for r in rows))
    ways = list(dict.fromkeys(r["way"] for r in rows))
    ms = {(r["m"], r["p"], r["k"], r["way"]): r["cpu_ms"] for r in rows}
    header = ["CPU ms", *(f"m = {m:,}, p = {p:,}, k = {k}" for m, p, k in sizes)]
    lines = [[way, *(ms.get((*size, way), "") for size in sizes)] for way in ways]
    for label, top, below in (
        ("OMPCV / GreedyTL", "OMPCV", "GreedyTL"),
        ("OMP / GreedyTL, estimate=False", "OMP", "GreedyTL, estimate=False"),
        ("OMP / classes, estimate=False", "OMP", "classes, estimate=False"),
        ("GreedyTL / GreedyTL-59", "GreedyTL", "GreedyTL-59"),
    ):
        cells = [
            f"**{ms[(*size, top)] / ms[(*size, below)]:.2f}×**" if (*size, top) in ms else ""
            for size in sizes
        ]
        lines.append([label, *cells])
    return "\n\n".join(
        [
            "## Whole fits, with the error on left-out rows",
            markdown_table(header, lines),
            "GreedyTL repeats the selection without each row, or each of ten parts above 50 rows;"
            " OMPCV has as many folds. All columns are in memory: GreedyTL-59 then saves nothing"
            " that it would save on models to be run, but for columns that no step can draw."
            " k = tol: no limit but the tolerance. Asked: OMPCV 6× and 2.5×, OMP 1×, GreedyTL-59 no"
            " slower, `lam='loo'` below 1 s. Compare the ratios. All left-out rows are searched"
            " together, one step of each at a time; GreedyTL-59 reads the columns of 16 steps at a"
            " time. With `estimate=False` columns are searched for equal ones only if two might"
            " have won a step. *Classes* is the same fit of a classifier, whose classes are not"
            " balanced, with what the theorems say of it.",
        ]
    )


def report_lazy(rows: list[dict[str, Any]], folder: Path) -> str:
    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    ways = {"GreedyTL-59, 20": "o-", "GreedyTL-59, none": "^-", "GreedyTL, 20": "s--"}
    for way, style in ways.items():
        own = [r for r in rows if f"{r['method']}, {r['max_selected']}" == way]
        for ax, value in zip(axes, ("sources_run", "fit_ms"), strict=True):
            ax.loglog([r["pool"] for r in own], [r[value] for r in own], style, label=way)
    axes[0].set(xlabel="sources in the pool", ylabel="sources run by the fit")
    axes[1].set(xlabel="sources in the pool", ylabel="fit, CPU ms")
    axes[0].legend(frameon=False, title="method, max_selected")
    figure.savefig(folder / "lazy.png", dpi=80)
    plt.close(figure)
    table = markdown_table(
        ["", "max_selected", "pool", "list the pool, once (ms)", "fit (ms)", "sources run",
         "chosen", "predict 100 rows (ms)", "sources run"],
        [[r["method"], r["max_selected"], f"{r['pool']:,}", r["list_ms"], r["fit_ms"],
          f"{r['sources_run']:,.0f}", f"{r['selected']:.0f}", r["predict_ms"],
          f"{r['sources_run_predict']:.0f}"] for r in rows],
    )  # fmt: skip
    return (
        "## Lazy sources\n\n20 rows, 40 features, leave-one-out included (20 further"
        " selections). A source draws its weights when it is run."
        " GreedyTL was not run on 100,000. A fit of GreedyTL-59 runs at most 59 sources a step, and"
        " a little more as left-out rows choose otherwise; a small pool is run almost whole, and"
        " from there on the number does not depend on the pool. Without `max_selected` the number"
        " of steps is bounded by `1/tol` alone, because each lowers an error of 1 by `tol` or more."
        f"\n\n{table}\n\n![Sources run and time by size of the pool](lazy.png)"
    )


def report_targets(rows: list[dict[str, Any]], folder: Path) -> str:
    table = markdown_table(
        ["m", "p", "k", "one Gram for 1,000 targets (ms a target)", "each alone (ms a target)",
         "ratio"],
        [[r["m"], r["p"], r["k"], r["gram_ms_per_target"], r["alone_ms_per_target"],
          f"**{r['ratio']:.1f}×**"] for r in rows],
    )  # fmt: skip
    return (
        "## 1,000 targets that share rows\n\nThe Gram's own cost and the standardisation are in"
        " the first figure; the second, from 20 of the targets, gets Z standardised. The picks are"
        f" checked to be the same.\n\n{table}"
    )


def report_files(rows: list[dict[str, Any]], folder: Path) -> str:
    table = markdown_table(
        ["stage", "wall (s)", "CPU (s)", "sources run", "files left out", ""],
        [[r["stage"], r["wall_s"], r["cpu_s"], r["sources_run"], r["left_out"], r["note"]]
         for r in rows],
    )  # fmt: skip
    return (
        f"## A pool of {rows[0]['files']:,} files\n\nLogistic regressions on 30 columns, half saved"
        " as ONNX, half as skops. Five are forests, slow to open and to run. Six files are bad:"
        " empty, noise, cut short, words, a pickle, and a hostile pickle named `.onnx`, which is"
        " checked not to have been opened. The fit is interrupted half-way and resumed; the run"
        " stops unless every source was run exactly once in all."
        f"\n\n{table}"
    )
