"""How often a small fit passes from one module of holdtrue to another, for each of the four flows.

Run `python docs/count_switches.py` after a change of structure; CONTRIBUTING.md has the numbers. A
call and a return each count as one switch if they lead to another module; a way is an ordered pair
of modules. The generators of data do not count.
"""

from __future__ import annotations

import itertools
import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

import pyarrow as pa

import holdtrue
from holdtrue.datasets import make_curve, make_customers, make_domains, make_sources


def switches(run: Callable[[], object]) -> tuple[int, int, int]:
    """How often a run passes between modules of ours, by how many ways, and their number."""
    visited: list[str] = []

    def note(frame: FrameType | None, event: str, _: Any) -> None:
        if frame is not None and event == "return":
            frame = frame.f_back
        name = "" if frame is None else str(frame.f_globals.get("__name__"))
        is_ours = (
            event in ("call", "return")
            and name.startswith("holdtrue.")
            and name != "holdtrue.datasets"
        )
        if is_ours and visited[-1:] != [name]:
            visited.append(name)

    run()  # imports and compiled loops are not counted
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    passes = list(itertools.pairwise(visited))
    return len(passes), len(set(passes)), len(set(visited))


def main() -> None:
    """Print a line for each flow."""
    customers = make_customers(300, random_state=0)
    frame = pa.table(customers.columns)
    domains = make_domains(6, 50, n_features=8, random_state=0)
    task = make_sources(20, 30, 5, random_state=0)
    curve = make_curve(n_samples=30, random_state=0)
    flows: dict[str, Callable[[], object]] = {
        "rank_columns, 5 columns": lambda: holdtrue.rank_columns(frame, customers.left),
        "TGreedyRegressor, 6 domains of 8 features": lambda: holdtrue.TGreedyRegressor().fit(
            domains.X, domains.y, groups=domains.groups
        ),
        "GreedyTLClassifier, 20 rows and 30 sources": lambda: holdtrue.GreedyTLClassifier(
            task.sources
        ).fit(task.X, task.y),
        "NestedRegressor, 30 points": lambda: holdtrue.NestedRegressor().fit(curve.X, curve.y),
    }
    for name, run in flows.items():
        n_switches, n_ways, n_modules = switches(run)
        sys.stdout.write(f"{name}: {n_switches} switches, {n_ways} ways, {n_modules} modules\n")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
