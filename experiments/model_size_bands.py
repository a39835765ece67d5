"""How often the band of the average holds the curve, on generated curves that decided its width.

python -m experiments.model_size_bands                every kind of curve, then the report
python -m experiments.model_size_bands --draws 2      a quick look, written elsewhere with --out

Six kinds of random curves on [-1, 1], 20, 30 and 50 rows, noise of .05 and .3 of the curve's
deviation. *Coverage* is the share of 300 new inputs at which the curve lies within 1.96 deviations
of the average; *without* leaves out the room for the terms beyond the last of a basis.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from experiments.model_size import RESULTS
from experiments.records import progress, write_csv

from holdtrue import NestedRegressor

Curve = Callable[[np.ndarray], np.ndarray]


def waves(rng: np.random.RandomState, count: int, power: float) -> Curve:
    """Sum of waves whose heights fall with that power of their number."""
    number = np.arange(1, count + 1)
    height, phase = rng.normal(size=count) / number**power, rng.uniform(0, 2 * np.pi, count)
    return lambda x: np.sin(np.pi * np.multiply.outer(x, number) + phase) @ height


def curves(rng: np.random.RandomState) -> dict[str, Curve]:
    """One random curve of each kind."""
    knots, heights = np.sort(rng.uniform(-1, 1, 5)), rng.normal(size=7)
    frequency, bend = rng.uniform(3, 5), 0.3 * rng.normal()
    return {
        "smooth waves": waves(rng, 8, 1.5),
        "rough waves": waves(rng, 60, 1.0),
        "broken line": lambda x: np.interp(x, [-1, *knots, 1], heights),
        "jump": lambda x: (x > knots[2]) + 0.5 * x,
        "cubic": lambda x: x**3 - x + bend * x**2,
        "four periods": lambda x: np.sin(np.pi * frequency * x),
    }


def coverage(curve: Curve, n: int, noise: float, rng: np.random.RandomState) -> tuple[float, float]:
    """Share of new inputs whose curve lies in the band, and without the terms beyond the last."""
    x, new = rng.uniform(-1, 1, n), rng.uniform(-1, 1, 300)
    spread = noise * np.std(curve(np.linspace(-1, 1, 500)))
    model = NestedRegressor(random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a wild target by chance
        model.fit(x[:, None], curve(x) + spread * rng.normal(size=n))
    mean, deviation = model.predict(new[:, None], return_std=True)
    average = model._average
    beyond = average.weights @ [known.beyond for _, known in average.curves.values()]
    without = np.sqrt(np.maximum(deviation**2 - beyond, 0))
    off = np.abs(curve(new) - mean)
    return float(np.mean(off <= 1.96 * deviation)), float(np.mean(off <= 1.96 * without))


def run(draws: int, seed: int) -> Iterator[dict[str, Any]]:
    """Means over the draws, by kind, n and noise."""
    covered: dict[tuple[str, int, float], list[tuple[float, float]]] = {}
    for number in progress(range(draws), draws, "bands"):
        rng = np.random.RandomState(seed + number)
        for kind, curve in curves(rng).items():
            for n in (20, 30, 50):
                for noise in (0.05, 0.3):
                    covered.setdefault((kind, n, noise), []).append(coverage(curve, n, noise, rng))
    for (kind, n, noise), values in covered.items():
        with_room, without = np.mean(values, axis=0)
        yield {"curve": kind, "n": n, "noise": noise, "draws": draws, "coverage": with_room,
               "without": without}  # fmt: skip


def main() -> None:
    """Run, then make every table of model_size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=type(RESULTS), default=RESULTS)
    options = parser.parse_args()
    command = f"python -m experiments.model_size_bands --draws {options.draws}"
    rows = list(run(options.draws, options.seed))
    write_csv(options.out / "bands.csv", rows, command=command, seed=options.seed)
    from experiments.model_size_report import report

    report(options.out)


if __name__ == "__main__":
    main()
