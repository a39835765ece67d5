"""The same work by the first round's code and by today's, in turn: nothing may become slower.

    python -m benchmarks.house FOLDER     run beside the first round's code, then the table

FOLDER holds ``src/holdfast`` (``git archive c289210 src | tar -x -C FOLDER``). Both packages run in
one process on one thread, each once before it is timed; the table has ratios of median CPU times.
What only today's code can do (proper losses, averages, nested estimates) is switched off.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from experiments.records import markdown_table, one_thread, progress, write_csv

RESULTS = Path(__file__).parent / "results" / "house"
TURNS = 9


def works(seed: int) -> dict[str, Callable[[Any, bool], Any]]:
    """Fits by name, each of a package and whether it is today's."""
    rng = np.random.default_rng(seed)
    n = 200_000
    label = rng.integers(0, 2, n)
    large = pa.table(
        {
            **{f"text {k}": [f"v{i}" for i in rng.integers(0, k, n)] for k in (10, 1_000)},
            **{f"whole {k}": rng.integers(0, k, n) for k in (5, 300, 10**9)},
            "number": rng.normal(size=n) + label,
            "label": np.array(["no", "yes"])[label],
        }
    )
    wide, wide_label = rng.normal(size=(40, 1_500)), rng.integers(0, 2, 40)
    codes = rng.integers(0, 12, (20_000, 20))
    grown = (codes[:, 0] + codes[:, 1] * codes[:, 2] + rng.integers(0, 60, len(codes)) > 75) * 1
    domains = np.repeat(np.arange(30), 60)
    X = rng.normal(size=(len(domains), 120))
    y = X[:, :5].sum(axis=1) + rng.normal(size=30)[domains] + rng.normal(size=len(X))
    scores = rng.normal(size=(60, 3_000))
    new_task = (scores[:, :4].sum(axis=1) + rng.normal(size=60) > 0) * 1
    x = rng.uniform(-1, 1, (200, 1))
    curve = np.sinc(4 * x[:, 0]) + 0.1 * rng.normal(size=200)

    def nested(package: Any, is_today: bool) -> Any:
        further = {"predict": "chosen"} if is_today else {}
        return package.NestedRegressor("cosine", criterion="dee", **further).fit(x, curve)

    def transfer(package: Any, is_today: bool) -> Any:
        further = {"estimate": False} if is_today else {}
        return package.GreedyTLClassifier(max_selected=20, **further).fit(scores, new_task)

    def tree(package: Any, is_today: bool) -> Any:
        return package.GingerTreeClassifier("ginger", max_splits=200).fit(codes, grown)

    def forest(package: Any, is_today: bool) -> Any:
        further = {"n_estimators" if is_today else "n_trees": 20, "criterion": "ginger"}
        return package.GingerForestClassifier(**further, random_state=0).fit(codes, grown)

    return {
        "ranking, 200,000 x 6": lambda package, _: package.rank_columns(
            large, "label", criterion="ginger"
        ),
        "selection, 40 x 1,500": lambda package, _: package.GingerSelector("ginger").fit(
            wide, wide_label
        ),
        "tree, 20,000 x 20": tree,
        "forest of 20 trees": forest,
        "T-Greedy, 30 domains, 1,800 x 120": lambda package, _: package.TGreedyRegressor("t").fit(
            X, y, groups=domains
        ),
        "T-Greedy without domains": lambda package, _: package.TGreedyRegressor("t").fit(X, y),
        "GreedyTL, 60 x 3,000": transfer,
        "criteria, 200 rows": nested,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    one_thread()
    sys.path.append(str(options.folder / "src"))
    packages = {name: importlib.import_module(name) for name in ("holdfast", "holdtrue")}
    asked = works(options.seed)
    rows = []
    for what in progress(asked, len(asked), "house"):
        seconds: dict[str, list[float]] = {name: [] for name in packages}
        for turn in range(1 + TURNS):
            for name, package in packages.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    start = time.process_time()
                    asked[what](package, name == "holdtrue")
                if turn:
                    seconds[name].append(time.process_time() - start)
        before, after = (float(np.median(seconds[name])) for name in ("holdfast", "holdtrue"))
        rows.append({"what": what, "before": before, "after": after, "ratio": after / before})
    write_csv(options.out / "speed.csv", rows, command="benchmarks.house", seed=options.seed)
    table = markdown_table(
        ["work", "after / before"], [[row["what"], f"{row['ratio']:.2f}"] for row in rows]
    )
    text = f"# The first round's work, before and after\n\nMedian CPU time of {TURNS} turns.\n\n"
    (options.out / "README.md").write_text(text + table + "\n", encoding="utf-8")
    print(table)


if __name__ == "__main__":
    main()
