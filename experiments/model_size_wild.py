"""What one wild target does to the average, which sets it aside if it is wild beyond doubt.

python -m experiments.model_size_wild                every kind of noise, then the report
python -m experiments.model_size_wild --draws 1      a quick look, written elsewhere with --out

The nine targets of model_size and the paper's two, scaled to deviation 1, 20, 40 and 60 rows, noise
of .1 and .3. The rule was made on other curves (those of model_size_bands) and draws, in three
variants. A fourth, stricter one is in use since model_size_contest showed a false alarm on the
paper's sinc and harm on counts that are mostly 0, so it has seen these. *Error* is that of the
curve, squared; *followed* is the same fit with every row.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
from experiments.model_size import RESULTS, TARGETS
from experiments.records import progress, write_csv

from holdtrue import NestedRegressor
from holdtrue.datasets import make_curve
from holdtrue.model_size import cautions

Curve = Callable[[np.ndarray], np.ndarray]
KINDS = (
    "clean",
    "one of 10",
    "one of 30",
    "one of 100",
    "two of 30",
    "t, 3 degrees",
    "lognormal",
    "real peak",
)


def curves() -> dict[str, tuple[Curve, Curve]]:
    """Curve and quantiles of its input, by name."""
    found = {name: (curve, quantile) for name, (curve, _, quantile) in TARGETS.items()}
    for name in ("sinc", "step"):
        curve = make_curve(name, n_samples=2, random_state=0).curve
        found[name] = (curve, lambda u: np.pi * (2 * u - 1))
    return found


def sample(kind: str, curve: Curve, x: np.ndarray, noise: float, rng: np.random.RandomState):
    """Targets of x, and the curve that they are judged by: about 0, of deviation 1."""
    n, values = len(x), curve(x)
    mean, spread = values.mean(), values.std() or 1.0
    truth: Curve = lambda new: (curve(new) - mean) / spread  # noqa: E731
    some = rng.permutation(n)[:2]
    y, error = truth(x), noise * rng.standard_normal(n)
    if kind.startswith(("one", "two")):
        some = some[: 1 if kind.startswith("one") else 2]
        error[some] += float(kind.split()[-1]) * rng.choice([-1, 1], len(some))
    elif kind.startswith("t,"):
        error = noise * rng.standard_t(3, n)
    elif kind == "lognormal":
        error = noise * (np.exp(rng.standard_normal(n)) - np.exp(0.5))
    elif kind == "real peak":
        centre, width = x[some[0]], 0.02 * np.ptp(x)
        plain = truth
        truth = lambda new: plain(new) + 10 * np.exp(-(((new - centre) / width) ** 2) / 2)  # noqa: E731
        y = truth(x)
    return y + error, truth


def fitted_error(x: np.ndarray, y: np.ndarray, new: np.ndarray, truth: np.ndarray) -> Any:
    """Squared error of the average on new inputs, and whether rows were set aside."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they say what is counted here
        model = NestedRegressor(random_state=0).fit(x[:, None], y)
    error = float(np.mean((model.predict(new[:, None]) - truth) ** 2))
    return error, "set aside" in model.path_.reason


def run(draws: int, seed: int) -> Iterator[dict[str, Any]]:
    """One line per kind of noise: how often rows are set aside, and the errors of those fits."""
    for kind in progress(KINDS, len(KINDS), "wild"):
        errors = []
        n_fits = 0
        for number in range(draws):
            rng = np.random.RandomState(seed + number)
            for curve, quantile in curves().values():
                for n in (20, 40, 60):
                    for noise in (0.1, 0.3):
                        x, new = quantile(rng.uniform(size=n)), quantile(rng.uniform(size=500))
                        y, truth = sample(kind, curve, x, noise, rng)
                        n_fits += 1
                        error, aside = fitted_error(x, y, new, truth(new))
                        if aside:
                            with patch.object(cautions, "beyond_doubt", lambda *_: False):
                                errors.append((error, fitted_error(x, y, new, truth(new))[0]))
        aside, followed = np.array(errors).reshape(-1, 2).T
        ratio = np.exp(np.mean(np.log(aside / followed))) if errors else np.nan
        yield {"kind": kind, "fits": n_fits, "set_aside": len(errors),
               "error": aside.mean() if errors else np.nan,
               "followed": followed.mean() if errors else np.nan, "ratio": ratio,
               "worse": int(np.sum(aside > followed))}  # fmt: skip


def main() -> None:
    """Run, then make every table of model_size."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--out", type=type(RESULTS), default=RESULTS)
    options = parser.parse_args()
    command = f"python -m experiments.model_size_wild --draws {options.draws}"
    rows = list(run(options.draws, options.seed))
    write_csv(options.out / "wild.csv", rows, command=command, seed=options.seed)
    from experiments.model_size_report import report

    report(options.out)


if __name__ == "__main__":
    main()
