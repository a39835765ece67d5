"""Sabato & Shalev-Shwartz (2008) again: Figures 1 to 5, Theorem 1, and the rivals of today.

python -m experiments.categories                 every part, then every table and figure
python -m experiments.categories census          one part (figure1, census, trees, rankers, ...)
python -m experiments.categories --trials 2      fewer draws, written elsewhere with --out
python -m experiments.categories --report        tables and figures from the CSVs alone
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from experiments.records import Rows, asked_options, data_file, progress, results, write_csv
from joblib import Parallel, delayed
from scipy.stats import spearmanr

from holdtrue import GingerTreeClassifier
from holdtrue.categories import kernel
from holdtrue.categories.estimate import score_order

RESULTS = results("categories")
CRITERIA = ("ginger", "majority", "gain_ratio", "gini", "information_gain")


class Problem(NamedTuple):
    """Columns as codes; codes are shared by training and test rows.

    Attributes
    ----------
    name : str
    columns : list of str
    train, test : ndarray of int, shape (n_rows, n_columns)
    y, y_test : ndarray of int, shape (n_rows,)
        0 or 1.
    """

    name: str
    columns: list[str]
    train: np.ndarray
    y: np.ndarray
    test: np.ndarray
    y_test: np.ndarray


def table(codes: np.ndarray, y: np.ndarray, n_values: int) -> np.ndarray:
    """Class counts by value, shape (n_values, 2)."""
    return np.bincount(codes * 2 + y, minlength=2 * n_values).reshape(-1, 2)


def judged(problem: Problem, criteria: tuple[str, ...] = CRITERIA) -> dict[str, np.ndarray]:
    """Scores of every column, and the test errors of rules (4) and (5) on it."""
    names = (*criteria, "rule4", "rule5")
    found: dict[str, list[float]] = {name: [] for name in names}
    for column in range(problem.train.shape[1]):
        codes, new = problem.train[:, column], problem.test[:, column]
        n_values = int(max(codes.max(), new.max())) + 1
        counts = table(codes, problem.y, n_values)
        joint = table(new, problem.y_test, n_values) / len(new)
        seen = counts[counts.any(axis=1)]
        for criterion in criteria:
            found[criterion].append(kernel.criterion_value(criterion, seen))
        found["rule4"].append(kernel.rule_error(kernel.gini_rule(counts), joint))
        found["rule5"].append(kernel.rule_error(kernel.majority_rule(counts), joint))
    return {name: np.array(values) for name, values in found.items()}


def agreement(scores: np.ndarray, errors: np.ndarray) -> float:
    """Spearman's correlation of a ranking with the test error; 0 where all columns tie."""
    scores = np.round(scores / (np.abs(scores).max() or 1.0), 12)
    if np.ptp(scores) == 0 or np.ptp(errors) == 0:
        return 0.0
    return float(spearmanr(scores, errors).statistic)


# --- Figure 1 -----------------------------------------------------------------------------------

N_SYNTHETIC = 5000


def synthetic(seed: int) -> Problem:
    """Data set III of section 5.1; I is its first 11 columns, II its first 12."""
    rng = np.random.default_rng(seed)
    parts = []
    for part in range(2):
        y = rng.integers(0, 2, N_SYNTHETIC)
        same = rng.random((N_SYNTHETIC, 11)) < (1 + 0.1 * np.arange(11)) / 2
        binary = np.where(same, y[:, None], 1 - y[:, None])
        index = np.arange(N_SYNTHETIC) + part * N_SYNTHETIC  # X11, never the same in the test rows
        many = rng.integers(0, 2000, N_SYNTHETIC) + 2000 * (1 - y)  # X12
        parts += [np.column_stack([binary, index, many]), y]
    return Problem("III", [f"X{i}" for i in range(13)], *parts)


def figure1_draw(seed: int) -> tuple[dict[str, np.ndarray], dict[tuple[str, str], np.ndarray]]:
    """Scores and errors of the 13 columns; places of the columns of each set by criterion."""
    found = judged(synthetic(seed))
    places = {}
    for name, size in (("I", 11), ("II", 12), ("III", 13)):
        for criterion in CRITERIA:
            place = np.empty(size)
            place[score_order(found[criterion][:size])] = np.arange(1, size + 1)
            places[name, criterion] = place
    return found, places


def run_figure1(trials: int, seed: int) -> dict[str, Rows]:
    """Mean score, place and test errors per data set, criterion and column."""
    draws = list(run([delayed(figure1_draw)(seed + i) for i in range(10 * trials)], "Figure 1"))
    rows = []
    for name, size in (("I", 11), ("II", 12), ("III", 13)):
        for criterion in CRITERIA:
            score = np.array([found[criterion][:size] for found, _ in draws])
            place = np.array([places[name, criterion] for _, places in draws])
            for j in range(size):
                errors = {
                    rule: float(np.mean([found[rule][j] for found, _ in draws]))
                    for rule in ("rule4", "rule5")
                }
                rows.append(
                    {"data": name, "criterion": criterion, "column": f"X{j}", "draws": len(draws),
                     "score": float(score[:, j].mean()), "place": float(place[:, j].mean()),
                     "first_draw": int(place[0, j]), **errors}
                )  # fmt: skip
    return {"figure1": rows}


# --- Figures 2 and 3 ----------------------------------------------------------------------------

N_TRAIN, N_TEST = 2000, 25_000
SHOWN = slice(0, None, 10)  # problems drawn in Figures 2 and 4: every tenth in file order


def census() -> tuple[list[str], np.ndarray, list[tuple[int, int]]]:
    """Columns, codes (50,000 × 125), and (column, most frequent code) of each problem."""
    import pyarrow.parquet as pq

    file = data_file("uscensus1990raw_50k.parquet", "UCI, USCensus1990raw")
    data = pq.read_table(file)
    codes = np.column_stack(
        [np.unique(column.to_numpy(), return_inverse=True)[1] for column in data.columns]
    ).astype(np.int32)
    problems = []
    for j in range(codes.shape[1]):
        counts = np.bincount(codes[:, j])
        if 0.1 <= counts.max() / len(codes) <= 0.9:
            problems.append((j, int(counts.argmax())))
    return data.column_names, codes, problems


def census_problem(
    columns: list[str], codes: np.ndarray, target: int, value: int, draw: int
) -> Problem:
    """One of the 62 problems, on rows drawn at random."""
    order = np.random.default_rng(draw).permutation(len(codes))
    train, test = order[:N_TRAIN], order[N_TRAIN : N_TRAIN + N_TEST]
    label = (codes[:, target] == value).astype(np.int64)
    rest = np.delete(np.arange(codes.shape[1]), target)
    inputs = codes[:, rest].astype(np.int64)
    return Problem(
        columns[target], [columns[j] for j in rest],
        inputs[train], label[train], inputs[test], label[test],
    )  # fmt: skip


def census_job(columns: list[str], codes: np.ndarray, key: tuple[int, int], draw: int) -> tuple:
    """The row of a problem and draw; the columns' errors and scores for Figure 2."""
    problem = census_problem(columns, codes, *key, draw)
    found = judged(problem)
    error = found["rule5"]
    row: dict[str, Any] = {
        "draw": draw, "problem": problem.name, "positive": float(problem.y_test.mean()),
        "no_column": float(min(problem.y_test.mean(), 1 - problem.y_test.mean())),
        "best": float(error.min()), "best_column": problem.columns[int(error.argmin())],
    }  # fmt: skip
    for criterion in CRITERIA:
        top = int(score_order(found[criterion])[0])
        row |= {
            f"{criterion}": float(error[top]),
            f"{criterion}_column": problem.columns[top],
            f"{criterion}_spearman": agreement(found[criterion], error),
            f"{criterion}_spearman4": agreement(found[criterion], found["rule4"]),
        }
    return row, problem.columns, found


def run_census(trials: int, seed: int) -> dict[str, Rows]:
    """Test error of the column that each criterion puts first, per problem and draw."""
    columns, codes, problems = census()
    jobs = [
        delayed(census_job)(columns, codes, key, seed + draw)
        for draw in range(trials)
        for key in problems
    ]
    rows, ranks = [], []
    shown = {columns[j] for j, _ in problems[SHOWN]}
    for row, names, found in run(jobs, "census"):
        rows.append(row)
        if row["draw"] != seed or row["problem"] not in shown:
            continue
        places = {}
        for criterion in CRITERIA:
            place = np.empty(len(names), dtype=int)
            place[score_order(found[criterion])] = np.arange(1, len(names) + 1)
            places[criterion] = place
        for j, name in enumerate(names):
            ranks.append(
                {"problem": row["problem"], "column": name, "error": round(found["rule5"][j], 4),
                 **{criterion: int(places[criterion][j]) for criterion in CRITERIA}}
            )  # fmt: skip
    return {"census": rows, "census_ranks": ranks}


# --- Figures 4 and 5 ----------------------------------------------------------------------------

MAX_SPLITS = 300
STAGES = np.unique(np.round(np.geomspace(1, MAX_SPLITS + 1, 40)).astype(int)) - 1
TREE_CRITERIA = ("ginger", "majority", "gain_ratio", "gini", "information_gain")


def tree_job(
    columns: list[str], codes: np.ndarray, key: tuple[int, int], draw: int, criterion: str
) -> dict[str, Any]:
    """Training and test error against splits; where the least estimate and the default stop."""
    problem = census_problem(columns, codes, *key, draw)
    every = list(range(problem.train.shape[1]))
    model = GingerTreeClassifier(criterion, max_splits=MAX_SPLITS, categorical_features=every)
    model.fit(problem.train, problem.y)
    test = model.staged_errors(problem.test, problem.y_test)
    train = model.staged_errors(problem.train, problem.y)
    stopped = GingerTreeClassifier(criterion, categorical_features=every)
    stopped.fit(problem.train, problem.y)
    at = int(stopped.path_.chosen_size)
    wrong = stopped.predict(problem.test) != problem.y_test
    return {
        "problem": problem.name, "criterion": criterion, "draw": draw,
        "explored": len(test) - 1, "root": float(test[0]),
        "least_test": float(test.min()), "least_at": int(test.argmin()),
        "last_test": float(test[-1]), "last_train": float(train[-1]),
        "default_splits": at, "default_test": float(wrong.mean()),
        "default_estimate": float(stopped.path_.scores[at]),
        "train": train, "test": test,
    }  # fmt: skip


def run_trees(trials: int, seed: int) -> dict[str, Rows]:
    """Least test error and the default stop per problem and criterion; curves of some problems."""
    columns, codes, problems = census()
    jobs = [
        delayed(tree_job)(columns, codes, key, seed, criterion)
        for key in problems
        for criterion in TREE_CRITERIA
    ]
    shown = {columns[j] for j, _ in problems[SHOWN]}
    rows, curves = [], []
    for row in run(jobs, "trees"):
        train, test = row.pop("train"), row.pop("test")
        rows.append(row)
        if row["problem"] in shown:
            curves += [
                {"problem": row["problem"], "criterion": row["criterion"], "splits": int(k),
                 "train": float(train[k]), "test": float(test[k])}
                for k in STAGES
                if k < len(test)
            ]  # fmt: skip
    return {"trees": rows, "tree_curves": curves}


# --- Theorem 1, intervals, and where the estimate misleads ---------------------------------------


def values_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """``p_v`` and ``q_v`` of a distribution, fixed once and for all."""
    rng = np.random.default_rng(2008)
    shares = {
        "10 values": np.full(10, 0.1),
        "100 values": np.full(100, 0.01),
        "1,000 values": np.full(1000, 0.001),
        "Zipf, 10,000 values": 1 / np.arange(1, 10_001) ** 1.1,
        "half one value, half an id": np.append(0.5, np.full(1_000_000, 0.5 / 1_000_000)),
        "id": np.full(1_000_000, 1e-6),
    }
    kind, rates = name.split("; ")
    p = shares[kind] / shares[kind].sum()
    q = {
        "coin": lambda: np.full(len(p), 0.5),
        "U-shaped": lambda: rng.beta(0.5, 0.5, len(p)),
        "certain": lambda: rng.integers(0, 2, len(p)).astype(float),
        "rare": lambda: rng.beta(1, 9, len(p)),
    }[rates]()
    return p, q


DISTRIBUTIONS = (
    "10 values; coin", "10 values; U-shaped", "10 values; rare", "100 values; U-shaped",
    "100 values; coin", "1,000 values; U-shaped", "1,000 values; certain",
    "Zipf, 10,000 values; U-shaped", "Zipf, 10,000 values; certain",
    "half one value, half an id; rare", "id; coin",
)  # fmt: skip
SAMPLES = (10, 30, 100, 1000)


def theorem_job(name: str, m: int, trials: int, seed: int) -> list[dict[str, Any]]:
    """Estimate minus true error, and whether the interval holds it, for both estimators."""
    p, q = values_of(name)
    rng = np.random.default_rng(seed)
    reach = np.cumsum(p)
    rules = {"ginger": kernel.gini_rule, "majority": kernel.majority_rule}
    found: dict[str, list[tuple[float, float, float]]] = {rule: [] for rule in rules}
    for _ in range(trials):
        value = np.minimum(np.searchsorted(reach, rng.random(m)), len(p) - 1)
        label = (rng.random(m) < q[value]).astype(np.int64)
        seen, code = np.unique(value, return_inverse=True)
        counts = table(code, label, len(seen))
        joint = np.stack([p[seen] * (1 - q[seen]), p[seen] * q[seen]], axis=1)
        for criterion, rule in rules.items():
            # Values not seen are guessed: they cost a half.
            true = kernel.rule_error(rule(counts), joint) + (1 - p[seen].sum()) / 2
            spread = kernel.jackknife(criterion, counts)[0]
            found[criterion].append((kernel.criterion_value(criterion, counts), true, spread))
    rows = []
    for criterion, outcomes in found.items():
        estimate, true, spread = np.array(outcomes).T
        gap = estimate - true
        rows.append(
            {"distribution": name, "m": m, "criterion": criterion, "samples": trials,
             "true": float(true.mean()), "gap": float(gap.mean()),
             "gap_se": float(gap.std(ddof=1) / np.sqrt(trials)), "bound": 1 / (2 * m),
             "spread": float(gap.std(ddof=1)), "jackknife_se": float(spread.mean()),
             "coverage": float(np.mean(np.abs(gap) <= 1.959964 * spread)),
             "no_width": float(np.mean(spread == 0))}
        )  # fmt: skip
    return rows


def optimism_job(p: int, m: int, n_values: int, signal: float, trials: int, seed: int) -> dict:
    """Estimate of the best of p columns against its true error."""
    rng = np.random.default_rng(seed)
    outcomes: dict[str, list[tuple[float, float, float]]] = {"ginger": [], "majority": []}
    rules = {"ginger": kernel.gini_rule, "majority": kernel.majority_rule}
    for _ in range(trials):
        label = rng.integers(0, 2, m)
        # Given the label the value is drawn from one of two lists of shares.
        lean = 1 + signal * rng.uniform(-1, 1, (p, n_values))
        shares = np.stack([2 - lean, lean], axis=2) / n_values / 2
        shares /= shares.sum(axis=1, keepdims=True)
        tables = np.zeros((p, n_values, 2), dtype=np.int64)
        size = np.bincount(label, minlength=2)
        for k in (0, 1):
            tables[:, :, k] = rng.multinomial(size[k], shares[:, :, k])
        for criterion, rule in rules.items():
            flat = tables.reshape(-1, 2)
            scores = kernel.TERMS[criterion](flat).reshape(p, -1).sum(axis=1) / m
            wrong = 1 - rule(flat).reshape(tables.shape)
            true = np.sum(shares / 2 * wrong, axis=(1, 2))
            top = int(scores.argmin())
            outcomes[criterion].append((scores[top], true[top], true.min()))
    row: dict[str, Any] = {
        "columns": p, "m": m, "values": n_values, "signal": signal, "samples": trials,
    }  # fmt: skip
    for criterion, found in outcomes.items():
        estimate, true, best = np.array(found).T
        row |= {
            f"{criterion}_estimate": float(estimate.mean()),
            f"{criterion}_true": float(true.mean()),
            f"{criterion}_optimism": float((true - estimate).mean()),
            f"{criterion}_regret": float((true - best).mean()),
        }
    return row


def repeated_job(rows_each: int, noise: float, trials: int, seed: int) -> dict[str, Any]:
    """What the id of 200 subjects seems to be worth when each has several rows.

    ``noise`` is the share of rows whose label is not the subject's. The column ``group`` has 10
    values, the same in all rows of a subject, and says nothing.
    """
    rng = np.random.default_rng(seed)
    n_subjects = 200
    found = []
    for _ in range(trials):
        outcome = rng.integers(0, 2, n_subjects)
        group = rng.integers(0, 10, n_subjects)
        subject = np.repeat(np.arange(n_subjects), rows_each)
        label = outcome[subject] ^ (rng.random(len(subject)) < noise)
        by_id, by_group = table(subject, label, n_subjects), table(group[subject], label, 10)
        gap = [kernel.no_column("ginger", t) - kernel.ginger(t) for t in (by_id, by_group)]
        width = [1.959964 * kernel.jackknife("ginger", t)[1] for t in (by_id, by_group)]
        found.append(
            [kernel.ginger(by_id), kernel.criterion_value("majority", by_id),
             kernel.ginger(by_group), gap[0] > width[0], gap[1] > width[1]]
        )  # fmt: skip
    mean = np.array(found, dtype=float).mean(axis=0)
    names = ("id_ginger", "id_majority", "group_ginger", "id_kept", "group_kept")
    return {"subjects": n_subjects, "rows_each": rows_each, "noise": noise, "samples": trials,
            **{name: float(value) for name, value in zip(names, mean, strict=True)},
            "true": 0.5}  # fmt: skip


def run_theorem(trials: int, seed: int) -> dict[str, Rows]:
    """Theorem 1 and coverage; optimism of the best of p columns; repeated measures."""
    jobs = [
        delayed(theorem_job)(name, m, 200 * trials, seed) for name in DISTRIBUTIONS for m in SAMPLES
    ]
    theorem = [row for rows in run(jobs, "Theorem 1") for row in rows]
    jobs = [
        delayed(optimism_job)(p, m, n_values, signal, 20 * trials, seed)
        for signal in (0.0, 0.5)
        for n_values in (10, 100)
        for m in (200, 2000)
        for p in (1, 10, 100, 1000)
    ]
    optimism = list(run(jobs, "optimism"))
    jobs = [
        delayed(repeated_job)(rows_each, noise, 40 * trials, seed)
        for noise in (0.0, 0.1, 0.5)
        for rows_each in (1, 2, 3, 5, 10)
    ]
    return {"theorem": theorem, "optimism": optimism, "repeated": list(run(jobs, "repeated"))}


# --- Running and reporting ----------------------------------------------------------------------


def run(jobs: list[Any], label: str) -> Iterator[Any]:
    """Results of the jobs in order, from two processes, with a progress bar."""
    results = Parallel(n_jobs=2, return_as="generator")(jobs)
    return progress(results, len(jobs), label)


def run_rankers(trials: int, seed: int) -> Iterator[dict[str, Rows]]:
    """See `categories_rivals`, which needs libraries that the others do not."""
    from experiments import categories_rivals

    yield from categories_rivals.run_rankers(trials, seed)


def run_models(size: int, trials: int, seed: int) -> Iterator[dict[str, Rows]]:
    """See `categories_rivals`."""
    from experiments import categories_rivals

    for rows in categories_rivals.run_models(size, trials, seed):
        yield {f"models_{size}": rows}


def run_choices(trials: int, seed: int) -> dict[str, Rows]:
    """See `categories_choices`."""
    from experiments import categories_choices

    return categories_choices.run_choices(trials, seed)


# Long parts give what they have after each job, so that a run cut short leaves something.
PARTS: dict[str, Callable[[int, int], dict[str, Rows] | Iterator[dict[str, Rows]]]] = {
    "figure1": run_figure1,
    "census": run_census,
    "trees": run_trees,
    "rankers": run_rankers,
    "theorem": run_theorem,
    "choices": run_choices,
    "models_500": partial(run_models, 500),
    "models_2000": partial(run_models, 2000),
    "models_10000": partial(run_models, 10_000),
}
PACKAGES = (
    "pandas", "feature-engine", "ppscore", "Orange3", "khiops", "lightgbm", "xgboost", "catboost",
)  # fmt: skip


def main() -> None:
    """Run the parts that were asked for, then make every table and figure there are CSVs for."""
    trials = {"type": int, "default": 5, "help": "draws of the rows (default 5)"}
    options = asked_options(__doc__, PARTS, RESULTS, trials=trials)
    for part in options.parts:
        command = f"python -m experiments.categories {part} --trials {options.trials}"
        found = PARTS[part](options.trials, options.seed)
        for tables in [found] if isinstance(found, dict) else found:
            for name, rows in tables.items():
                path = options.out / f"{name}.csv"
                write_csv(path, rows, command=command, seed=options.seed, packages=PACKAGES)
    from experiments.categories_report import report

    report(options.out)


if __name__ == "__main__":
    main()
