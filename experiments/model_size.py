"""Chapelle, Vapnik & Bengio (2002) again: Tables 1 and 2, Figures 1 to 4, and beyond the paper.

python -m experiments.model_size                 every part, then every table and figure
python -m experiments.model_size tables          one part (tables, figures, targets, real)
python -m experiments.model_size --trials 50     a quick look, written elsewhere with --out
python -m experiments.model_size --report        tables and figures from the CSVs alone
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from experiments.records import asked_options, data_file, progress, write_csv
from joblib import Parallel, delayed

from holdtrue import NestedRegressor
from holdtrue.datasets import make_curve
from holdtrue.model_size import bases

RESULTS = Path(__file__).parent / "results" / "model_size"
N_UNLABELED = 1000
BLOCK = 25  # trials per job

# --- Tables 1 and 2, Figures 3 and 4 ------------------------------------------------------------

# The captions with the settings are lost; these reproduce the tables (letter: target, σ, n).
PAPER = {
    "a": ("sinc", 0.05, 20), "b": ("sinc", 0.05, 50), "c": ("sinc", 0.01, 20),
    "d": ("sinc", 0.01, 50), "e": ("sinc", 0.2, 20), "f": ("sinc", 0.2, 50),
    "g": ("step", 0.05, 20), "h": ("step", 0.05, 50), "i": ("step", 0.01, 20),
    "j": ("step", 0.01, 50), "k": ("step", 0.2, 20), "l": ("step", 0.2, 50),
}  # fmt: skip
MAX_TERMS = {20: 15, 50: 36}

# As printed, rows a to l.
PRINTED_MEDIAN = {
    "adj": [1.11, 1.05, 1.42, 1.11, 1.17, 1.08, 1.37, 1.28, 1.44, 1.41, 1.18, 1.10],
    "seb": [1.01, 1.05, 1.91, 1.14, 1.18, 1.00, 1.45, 1.33, 1.50, 1.49, 1.20, 1.12],
    "cv": [1.12, 1.05, 1.75, 1.18, 1.21, 1.02, 1.49, 1.36, 1.52, 1.49, 1.21, 1.11],
    "dee": [1.09, 1.05, 1.48, 1.13, 1.15, 1.01, 1.55, 1.36, 1.63, 1.72, 1.24, 1.11],
    "ucb": [1.02, 1.05, 1.91, 1.15, 1.90, 1.07, 1.64, 1.45, 1.67, 2.12, 1.15, 1.23],
    "gcv": [1.16, 1.05, 1.94, 1.21, 1.21, 1.01, 2.60, 2.34, 3.19, 18.11, 1.37, 1.16],
    "ric": [1.01, 1.04, 1.70, 1.22, 1.25, 1.15, 4.00, 2.03, 6.94, 36.01, 1.22, 1.18],
    "bic": [1.04, 1.05, 1.70, 1.15, 1.15, 1.00, 4.60, 5.45, 7.06, 36.05, 1.31, 1.11],
    "fpe": [1.48, 1.10, 2.32, 1.74, 1.50, 1.13, 4.21, 12.33, 4.52, 30.22, 1.98, 1.84],
    "cpm": [1.13, 1.05, 1.97, 1.16, 1.17, 1.01, 5.77, 13.14, 7.14, 42.93, 1.61, 1.20],
}
PRINTED_MEAN = {
    "adj": [2.63, 1.1, 3.51, 1.26, 1.42, 1.12, 1.69, 1.44, 2.39, 1.8, 1.32, 1.14],
    "dee": [2.48, 1.16, 3.12, 1.29, 1.44, 1.07, 2.44, 1.69, 3.67, 2.69, 1.49, 1.19],
    "seb": [1.77, 1.09, 2.71, 1.27, 1.47, 1.06, 2.44, 1.43, 2.21, 8.29, 1.38, 1.15],
    "cv": [2.85, 1.1, 7.45, 1.31, 1.58, 1.08, 2.53, 1.48, 2.36, 2.28, 1.94, 1.16],
    "ucb": [2.27, 1.09, 2.67, 1.32, 1.93, 1.08, 1.88, 12.2, 2.18, 156, 1.22, 1.24],
    "ric": [1.64, 1.05, 19.5, 1.35, 1.59, 1.14, 3.1e4, 637, 4e3, 1.8e4, 15.3, 1.21],
    "gcv": [3.6e3, 1.31, 158, 2.4e3, 139, 7.15, 3.4e4, 464, 3.8e3, 5.4e4, 615, 17.9],
    "fpe": [4.3e3, 26, 1.3e4, 6.5e3, 3.5e4, 1e4, 3.4e4, 3.4e3, 4e3, 1e5, 9.7e5, 1.5e3],
    "bic": [7, 1.09, 289, 1.33, 1.51, 1.05, 3.5e4, 5.9e8, 4e3, 1.8e4, 159, 1.48],
    "cpm": [327, 1.2, 1.3e4, 11.3, 1.2e4, 1.06, 3.5e4, 5.9e8, 4e3, 5.6e4, 700, 63.5],
}

# Averages of medians that an independent prototype reached with the same settings.
PROTOTYPE_MEDIAN = {
    "adj": 1.19, "cv": 1.25, "dee": 1.25, "ucb": 1.39, "gcv": 2.56, "ric": 4.72, "bic": 5.72,
    "cpm": 7.67, "fpe": 5.96,
}  # fmt: skip


class FourierTruth:
    """The exact risk of a Fourier series against a target on [-π, π], by orthonormality (8)."""

    def __init__(self, curve: Callable[[np.ndarray], np.ndarray], n_terms: int):
        # Midpoints: the step's jump at 0 lies between two of them.
        x = (np.arange(20_000) + 0.5) / 20_000 * 2 * np.pi - np.pi
        values = curve(x)
        self.coefficients = bases.fourier(x, n_terms).T @ values / len(x)
        self.tail = np.mean(values**2) - np.sum(self.coefficients**2)

    def risk(self, coefficient_path: np.ndarray, noise: float) -> np.ndarray:
        """``R(f_d)`` of every row of coefficients, noise included."""
        return noise**2 + np.sum((coefficient_path - self.coefficients) ** 2, axis=1) + self.tail


def softer_seb(remp: np.ndarray, d: np.ndarray, n: float) -> np.ndarray:
    """SEB with ``k = (1 - 0.7 (d (ln(2n/d) + 1) + 3)/n)₊``, which fits the printed medians."""
    k = np.maximum(1 - 0.7 * (d * (np.log(2 * n / d) + 1) + 3) / n, 0)
    with np.errstate(divide="ignore"):
        return np.where(k > 0, remp / (1 - d / n) * (1 + d / (n * k)), np.inf)


def paper_trials(target: str, noise: float, n: int, seeds: range) -> list[dict[str, float]]:
    """Ratio to the best size, and size, of every criterion, for one trial per seed."""
    truth = FourierTruth(make_curve(target, 1).curve, MAX_TERMS[n])
    trials = []
    for seed in seeds:
        rng = np.random.RandomState(seed)
        data = make_curve(target, n, noise=noise, n_unlabeled=N_UNLABELED, random_state=rng)
        model = NestedRegressor(
            "fourier", criterion="dee", predict="chosen", max_terms=MAX_TERMS[n],
            interval=(-np.pi, np.pi), noise_variance=noise**2, random_state=rng,
        )  # fmt: skip
        model.fit(data.X, data.y, X_unlabeled=data.X_unlabeled)
        risk = truth.risk(model.coef_path_, noise)
        choices = dict(model.choices_)
        table = model.criteria_
        soft = softer_seb(table["train"], table["n_terms"], n)
        choices["seb (softer)"] = int(np.argmin(soft)) + 1
        drawn = model.fit(data.X, data.y).choices_
        choices["dee (drawn)"], choices["adj (drawn)"] = drawn["dee"], drawn["adj"]
        trials.append({name: (risk[size - 1] / risk.min(), size) for name, size in choices.items()})
    return trials


def run_tables(trials: int, seed: int) -> list[dict[str, Any]]:
    """Median, mean and quantiles of the ratio, per experiment and criterion."""
    jobs = [
        (letter, delayed(paper_trials)(*setting, block))
        for letter, setting in PAPER.items()
        for block in blocks(seed, trials)
    ]
    results = run([job for _, job in jobs], "Tables 1 and 2")
    ratios: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for (letter, _), block in zip(jobs, results, strict=True):
        for trial in block:
            for name, outcome in trial.items():
                ratios.setdefault((letter, name), []).append(outcome)
    rows = []
    for (letter, name), outcomes in sorted(ratios.items()):
        target, noise, n = PAPER[letter]
        ratio, size = np.array(outcomes).T
        rows.append(
            {"experiment": letter, "target": target, "noise": noise, "n": n, "criterion": name,
             "trials": len(ratio), "median": float(np.median(ratio)), "mean": float(ratio.mean()),
             "mean_se": float(ratio.std(ddof=1) / np.sqrt(len(ratio))),
             **{f"q{q}": float(np.percentile(ratio, q)) for q in (5, 25, 75, 95)},
             "median_size": float(np.median(size))}
        )  # fmt: skip
    return rows


# --- Figures 1 and 2 ----------------------------------------------------------------------------


def figure_trials(figure: int, seeds: range) -> np.ndarray:
    """Shape (trials, sizes, 6): risk, training error, then DEE, CV5, FPE and ADJ."""
    target, noise, n, max_terms = {1: ("step", 0.05, 50, 45), 2: ("parabola", 0.05, 40, 23)}[figure]
    truth = FourierTruth(make_curve(target, 1).curve, max_terms)
    trials = []
    for seed in seeds:
        rng = np.random.RandomState(seed)
        data = make_curve(target, n, noise=noise, n_unlabeled=N_UNLABELED, random_state=rng)
        model = NestedRegressor(
            "fourier",
            criterion="dee",
            predict="chosen",
            max_terms=max_terms,
            interval=(-np.pi, np.pi),
            random_state=rng,
        ).fit(data.X, data.y, X_unlabeled=data.X_unlabeled)
        table = model.criteria_
        trials.append(
            [truth.risk(model.coef_path_, noise), table["train"], table["dee"], table["cv"],
             table["fpe"], table["adj"]]
        )  # fmt: skip
    return np.array(trials).transpose(0, 2, 1)


def run_figures(trials: int, seed: int) -> list[dict[str, Any]]:
    """Medians and means over trials of risk and estimates, per figure and size."""
    rows = []
    for figure in (1, 2):
        jobs = [delayed(figure_trials)(figure, block) for block in blocks(seed, trials)]
        values = np.concatenate(list(run(jobs, f"Figure {figure}")))
        names = ("risk", "train", "dee", "cv", "fpe", "adj")
        # Figure 1 plots factors: the estimate over the training error of the same trial.
        factor = np.median(values[:, :, 2] / values[:, :, 1], axis=0)
        median, mean = np.median(values, axis=0), values.mean(axis=0)
        for d in range(values.shape[1]):
            rows.append(
                {"figure": figure, "n_terms": d + 1, "trials": len(values),
                 "dee_factor": float(factor[d]),
                 **{f"median_{k}": float(median[d, j]) for j, k in enumerate(names)},
                 **{f"mean_{k}": float(mean[d, j]) for j, k in enumerate(names)}}
            )  # fmt: skip
    return rows


# --- Further targets: where a smoothness prior helps and where it hurts --------------------------


def brownian(u: np.ndarray) -> np.ndarray:
    """A fixed rough path."""
    steps = np.random.RandomState(7).standard_normal(2048) / np.sqrt(2048)
    return np.interp(u, np.linspace(0, 1, 2049), np.append(0, 2 * np.cumsum(steps)))


# Each: target on [0, 1], standard deviation of the noise at u, and the quantile of the inputs.
TARGETS: dict[str, tuple[Callable, Callable, Callable]] = {
    "smooth exp": (lambda u: np.exp(u), lambda u: 0.1, lambda q: q),
    "smooth bump": (lambda u: np.exp(-50 * (u - 0.4) ** 2), lambda u: 0.05, lambda q: q),
    "rough, square root": (lambda u: np.sqrt(np.abs(u - 0.3)), lambda u: 0.05, lambda q: q),
    "rough, Brownian": (brownian, lambda u: 0.1, lambda q: q),
    "12 periods": (lambda u: np.sin(24 * np.pi * u), lambda u: 0.1, lambda q: q),
    "one late term": (lambda u: np.cos(11 * np.pi * u), lambda u: 0.1, lambda q: q),
    "heteroscedastic": (lambda u: np.sin(2 * np.pi * u), lambda u: 0.02 + 0.6 * u**2, lambda q: q),
    "crowded inputs": (lambda u: np.sin(2 * np.pi * u), lambda u: 0.1, lambda q: q**2.5),
    "pure noise": (lambda u: 0 * u, lambda u: 1.0, lambda q: q),
}


def target_trials(name: str, n: int, seeds: range) -> list[dict[str, float]]:
    curve, spread, quantile = TARGETS[name]
    grid = quantile((np.arange(5000) + 0.5) / 5000)
    noise = np.mean(np.square(spread(grid) + 0 * grid))
    trials = []
    for seed in seeds:
        rng = np.random.RandomState(seed)
        u = quantile(rng.uniform(size=n))
        y = curve(u) + spread(u) * rng.standard_normal(n)
        unlabeled = quantile(rng.uniform(size=(N_UNLABELED, 1)))
        model = NestedRegressor(
            "cosine", criterion="dee", predict="chosen", interval=(0, 1), random_state=rng
        )
        model.fit(u[:, None], y, X_unlabeled=unlabeled)
        values = bases.cosine(grid, len(model.coef_path_)) @ model.coef_path_.T
        risk = noise + np.mean((values - curve(grid)[:, None]) ** 2, axis=0)
        trials.append({k: risk[size - 1] / risk.min() for k, size in model.choices_.items()})
    return trials


def run_targets(trials: int, seed: int) -> list[dict[str, Any]]:
    """Median and mean ratio per target, n and criterion."""
    keys = [(name, n) for name in TARGETS for n in (20, 30, 50)]
    jobs = [
        (key, delayed(target_trials)(*key, block)) for key in keys for block in blocks(seed, trials)
    ]
    ratios: dict[tuple[str, int, str], list[float]] = {}
    for (key, _), block in zip(jobs, run([job for _, job in jobs], "targets"), strict=True):
        for trial in block:
            for criterion, ratio in trial.items():
                ratios.setdefault((*key, criterion), []).append(ratio)
    return [
        {"target": name, "n": n, "criterion": criterion, "trials": len(values),
         "median": float(np.median(values)), "mean": float(np.mean(values))}
        for (name, n, criterion), values in ratios.items()
    ]  # fmt: skip


# --- Real small data ----------------------------------------------------------------------------


def parquet(name: str, target: str, inputs: Callable[[str], bool], source: str) -> tuple:
    import pyarrow.parquet as pq

    table = pq.read_table(data_file(f"regression/{name}.parquet", source))
    columns = [column for column in table.column_names if inputs(column)]
    X = np.column_stack([np.asarray(table[column], dtype=float) for column in columns])
    return X, np.asarray(table[target], dtype=float)


def archive(name: str, key: str, source: str) -> tuple:
    arrays = np.load(data_file(f"regression/{name}.npz", source), allow_pickle=False)
    if key == "":
        return arrays["X"].astype(float), arrays["y"].astype(float)
    return arrays[key][:, :-1].astype(float), arrays[key][:, -1].astype(float)


def all_but(*left_out: str) -> Callable[[str], bool]:
    return lambda column: column not in left_out


# Basis and largest n were fixed before the first run. Rivals see the same terms.
REAL: dict[str, tuple[Callable[[], tuple], str, tuple[int, ...]]] = {
    "mcycle": (
        lambda: parquet("r_MASS_mcycle", "accel", all_but("rownames", "accel"), "R, MASS"),
        "bspline", (20, 30, 50),
    ),
    "prostate": (
        lambda: parquet(
            "esl_prostate", "lpsa", all_but("row_names", "lpsa", "train"), "ESL"
        ),
        "pca", (20, 30, 50),
    ),
    "longley": (
        lambda: parquet("r_datasets_longley", "Employed", all_but("rownames", "Employed"), "R"),
        "pca", (10,),
    ),
    "swiss": (
        lambda: parquet("r_datasets_swiss", "Fertility", all_but("rownames", "Fertility"), "R"),
        "pca", (20, 30),
    ),
    "diabetes": (lambda: archive("sk_diabetes", "", "scikit-learn"), "pca", (20, 30, 50)),
    "yacht": (lambda: archive("uci_regression", "yacht", "UCI"), "legendre", (20, 30, 50)),
    "meats": (
        lambda: parquet("r_modeldata_meats", "fat", lambda c: c.startswith("x_"), "R, modeldata"),
        "pca", (20, 30, 50),
    ),
}  # fmt: skip


def rivals() -> dict[str, Any]:
    from sklearn.linear_model import LassoLarsIC, OrthogonalMatchingPursuitCV, RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    models = {
        "LassoLarsIC": LassoLarsIC(),
        "RidgeCV": RidgeCV(),
        "OrthogonalMatchingPursuitCV": OrthogonalMatchingPursuitCV(),
    }
    return {name: make_pipeline(StandardScaler(), model) for name, model in models.items()}


def real_splits(name: str, n: int, seeds: range) -> list[dict[str, float]]:
    """Test error of every choice over that of the best size, split by split."""
    load, basis, _ = REAL[name]
    X, y = load()
    splits = []
    for seed in seeds:
        order = np.random.RandomState(seed).permutation(len(y))
        train, test = order[:n], order[n:]
        scale = X[train].std(axis=0)
        Z = (X - X[train].mean(axis=0)) / np.where(scale > 0, scale, 1.0)

        def errors(model: NestedRegressor) -> np.ndarray:
            staged = np.array(list(model.staged_predict(Z[test])))  # noqa: B023
            return np.mean((staged - y[test]) ** 2, axis=1)  # noqa: B023

        # Once as most people would, once with the inputs of the other rows, labels hidden.
        paper = {"criterion": "dee", "predict": "chosen", "random_state": seed}
        drawn = NestedRegressor(basis, **paper).fit(Z[train], y[train])
        error = errors(drawn)
        split = {c: error[size - 1] / error.min() for c, size in drawn.choices_.items()}
        given = NestedRegressor(basis, **paper)
        given.fit(Z[train], y[train], X_unlabeled=Z[test])
        known = errors(given)
        for criterion in ("dee", "adj", "bayes"):
            size = given.choices_[criterion]
            # Known inputs change the path itself; all are judged by the best size of the other.
            split[f"{criterion} (inputs known)"] = known[size - 1] / error.min()
        made = drawn.basis_.terms(drawn.basis_.coordinates(Z))[:, 1:]
        for rival, model in rivals().items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # convergence on few rows
                try:
                    predicted = model.fit(made[train], y[train]).predict(made[test])
                    split[rival] = float(np.mean((predicted - y[test]) ** 2) / error.min())
                except ValueError:  # LassoLarsIC refuses more terms than rows
                    split[rival] = np.nan
        splits.append(split)
    return splits


def run_real(trials: int, seed: int) -> list[dict[str, Any]]:
    """Median, mean and 90 % quantile of the ratio per data set, n and method."""
    splits = max(1, trials // 5)  # 200 splits where the tables have 1,000 trials
    keys = [(name, n) for name, (_, _, sizes) in REAL.items() for n in sizes]
    jobs = [
        (key, delayed(real_splits)(*key, block)) for key in keys for block in blocks(seed, splits)
    ]
    ratios: dict[tuple[str, int, str], list[float]] = {}
    for (key, _), block in zip(jobs, run([job for _, job in jobs], "real data"), strict=True):
        for split in block:
            for method, ratio in split.items():
                ratios.setdefault((*key, method), []).append(ratio)
    rows = []
    for (name, n, method), outcomes in ratios.items():
        values = np.array(outcomes)
        ran = values[np.isfinite(values)]
        rows.append(
            {"data": name, "basis": REAL[name][1], "n": n, "method": method,
             "splits": len(values), "not_run": len(values) - len(ran),
             "median": float(np.median(ran)) if len(ran) else float("nan"),
             "mean": float(np.mean(ran)) if len(ran) else float("nan"),
             "q90": float(np.percentile(ran, 90)) if len(ran) else float("nan")}
        )  # fmt: skip
    return rows


# --- Running and reporting ----------------------------------------------------------------------


def blocks(seed: int, trials: int) -> Iterator[range]:
    """Seeds of the trials in blocks, one job each."""
    for start in range(0, trials, BLOCK):
        yield range(seed + start, seed + min(start + BLOCK, trials))


def run(jobs: list[Any], label: str) -> Iterator[Any]:
    """Results of the jobs in order, from two processes, with a progress bar."""
    results = Parallel(n_jobs=2, return_as="generator")(jobs)
    return progress(results, len(jobs), label)


PARTS = {
    "tables": run_tables,
    "figures": run_figures,
    "targets": run_targets,
    "real": run_real,
}


def main() -> None:
    """Run the parts that were asked for, then make every table and figure there are CSVs for."""
    trials = {"type": int, "default": 1000, "help": "per experiment (default 1000)"}
    options = asked_options(__doc__, PARTS, RESULTS, trials=trials)
    for part in options.parts:
        command = f"python -m experiments.model_size {part} --trials {options.trials}"
        rows = PARTS[part](options.trials, options.seed)
        write_csv(options.out / f"{part}.csv", rows, command=command, seed=options.seed)
    from experiments.model_size_report import report

    report(options.out)
    print(f"Tables and figures: {options.out / 'README.md'}")


if __name__ == "__main__":
    main()
