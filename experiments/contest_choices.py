"""How `DomainAverage` weighs its field: decided here, before the other half of the contest's sets.

    python -m experiments.contest_choices              generated and real domains, then the table
    python -m experiments.contest_choices --report     the table from the files alone

Fixed before the first run. Draws are those of `experiments.contest`, on every second of its sets,
and `GENERATED` generated ones. Every member is fitted to all training domains and without each of
five parts of them. Of each draw the products of the members' residuals are kept, by training domain
(left out) and at the test domain, so that any weights can be judged without another fit.

A choice is a field (`FIELDS`) and a rule of weights (`RULES`). Measure: log(error / error of the
first choice, the one that is built in), mean over the draws of a set, then over sets; all generated
draws of one number of domains are a set. Generated and real sets count one half each. Taken is the
least measure if it is below the first by more than one standard error over sets (paired); of those
within one standard error of the least the first in the order of the list, which goes from plain to
contrived and costly.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: one process a core
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from experiments import contest
from experiments.records import asked_options, markdown_table, progress
from scipy.optimize import nnls
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

from holdtrue.compare.contest import rows_in_parts
from holdtrue.compare.field import Rows, default_models, fit_with_groups

DEVELOPED = contest.SETS[::2]
GENERATED = 48
N_PARTS = 5
LINEAR = ("ridge", "elastic_net", "t_greedy", "steady_ridge")
FIELD = ("mean", *LINEAR, "boosting")
FIELDS = {
    "field of the contest": FIELD,
    "small trees": tuple("small_boosting" if m == "boosting" else m for m in FIELD),
    "both boostings": (*FIELD, "small_boosting"),
    "with a forest": (*FIELD, "forest"),
}


def members() -> dict[str, Any]:
    """Every model of any field, in the order of the stored products."""
    known = default_models(is_classes=False)
    few = {"max_leaf_nodes": 6, "learning_rate": 0.05, "max_iter": 150}
    return {
        **{name: known[name] for name in contest.FIELD if name != "forest"},
        "small_boosting": HistGradientBoostingRegressor(random_state=0, **few),
        "forest": RandomForestRegressor(
            200, min_samples_leaf=3, max_features=1 / 3, random_state=0
        ),
    }


# --- draws ----------------------------------------------------------------------------------------


def generated(seed: int) -> tuple[np.ndarray, ...]:
    """Rows, target and domains of training, rows and target of one new domain."""
    rng = np.random.default_rng([seed, 7])
    n_domains, p = (3, 5, 9, 15)[seed % 4], int(rng.choice([4, 12, 40]))
    sizes = np.maximum(8, rng.lognormal(np.log(rng.choice([15, 40, 80])), 0.6, n_domains + 10))
    groups = np.repeat(np.arange(n_domains + 10), sizes.astype(int))
    means = rng.choice([0.0, 0.5, 1.5]) * rng.normal(size=(n_domains + 10, p))
    X = rng.normal(size=(len(groups), p)) + means[groups]
    common = rng.normal(size=p) * (rng.random(p) < rng.choice([0.2, 1.0])) / np.sqrt(p)
    slopes = rng.choice([0.0, 0.3, 1.0]) * rng.normal(size=(n_domains + 10, p)) / np.sqrt(p)
    slopes += common
    bent = rng.choice([0.0, 0.0, 1.0, 2.0])  # steps and a product: what trees see and lines do not
    y = (
        np.einsum("ij,ij->i", X, slopes[groups])
        + rng.choice([0.0, 0.5, 1.5]) * rng.normal(size=n_domains + 10)[groups]
    )
    y += bent * ((X[:, 0] > 0.5) + (X[:, 1] * X[:, 2] > 0) - 0.8)
    y += rng.choice([0.5, 1.0, 2.0]) * rng.normal(size=len(y))
    train = groups < n_domains
    return X[train], y[train], groups[train], X[~train], y[~train]


def draws(name: str, seed: int) -> Iterator[tuple[np.ndarray, ...]]:
    if name == "generated":
        for k in range(GENERATED):
            yield generated(seed + k)
        return
    for draw in contest.draws(name, seed):
        yield draw[1:]


def products(draw: tuple[np.ndarray, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Mean products of residuals: (n_domains, m, m) of left-out rows, and (m, m) at the new one."""
    X, y, groups, X_new, y_new = draw
    n_parts = min(N_PARTS, len(np.unique(groups)))
    _, parts = rows_in_parts(Rows(X, y, groups), n_parts, is_classes=False, random_state=0)
    models = members()
    left, new = np.empty((len(models), len(y))), np.empty((len(models), len(y_new)))
    for m, model in enumerate(models.values()):
        new[m] = fit_with_groups(model, X, y, groups).predict(X_new) - y_new
        for train, test in parts:
            fit = fit_with_groups(model, X[train], y[train], groups[train])
            left[m, test] = fit.predict(X[test]) - y[test]
    by_domain = [left[:, groups == d] for d in np.unique(groups)]
    return np.array([r @ r.T / r.shape[1] for r in by_domain]), new @ new.T / len(y_new)


# --- rules: from products of left-out residuals to weights --------------------------------------

Rule = Callable[[np.ndarray, tuple[str, ...]], np.ndarray]


def by_power(losses: np.ndarray, e: float) -> np.ndarray:
    weights = (losses.min() / losses) ** e
    return weights / weights.sum()


def power(e: float) -> Rule:
    return lambda G, names: by_power(np.diag(G.mean(axis=0)), e)


def stacked(G: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """Weights that sum to 1, none negative, with the least left-out error of the average."""
    mean = G.mean(axis=0)
    size = np.trace(mean) / len(mean)
    root = np.linalg.cholesky(mean + 1e-9 * size * np.eye(len(mean))).T
    sum_to_one = 1e4 * np.sqrt(size) * np.ones(len(mean))
    weights = nnls(np.vstack([root, sum_to_one]), np.append(np.zeros(len(mean)), sum_to_one[0]))[0]
    return weights / weights.sum()


def halves(G: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    return (power(6)(G, names) + stacked(G, names)) / 2


def kinds(e: float) -> Rule:
    """Linear models are averaged first, and enter as one."""

    def weights(G: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
        mean, linear = G.mean(axis=0), np.isin(names, LINEAR)
        groups = [linear, *(np.arange(len(names)) == i for i in np.flatnonzero(~linear))]
        inner = np.array([at * np.nan_to_num(by_power(np.where(at, np.diag(mean), np.inf), 6))
                          for at in groups])  # fmt: skip
        return by_power(np.einsum("ki,ij,kj->k", inner, mean, inner), e) @ inner

    return weights


def single(G: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    losses = np.diag(G.mean(axis=0))
    return (losses == losses.min()).astype(float)


RULES: dict[str, Rule] = {
    "L^-6": power(6),
    "L^-12": power(12),
    "L^-24": power(24),
    "one winner": single,
    "linear models as one, L^-6": kinds(6),
    "linear models as one, L^-12": kinds(12),
    "least error of the average": stacked,
    "half L^-6, half least error": halves,
}


def report(folder: Any) -> str:
    with np.load(folder / "choices.npz") as arrays:
        names = list(members())
        by_set: dict[str, list[dict[tuple[str, str], float]]] = {}
        for key in sorted(arrays, key=lambda k: int(k.split("|")[1])):
            if key.endswith("new"):
                continue
            name = key.split("|")[0]
            G, new = arrays[key], arrays[key.replace("left", "new")]
            cell = f"generated, {len(G)} domains" if name == "generated" else name
            errors = {}
            for field, of in FIELDS.items():
                at = [names.index(m) for m in of]
                for rule, weigh in RULES.items():
                    w = weigh(G[:, at][:, :, at], of)
                    errors[field, rule] = float(w @ new[np.ix_(at, at)] @ w)
            errors |= {("alone", m): float(new[i, i]) for i, m in enumerate(names)}
            by_set.setdefault(cell, []).append(errors)
    choices = [(field, rule) for field in FIELDS for rule in RULES] + [("alone", m) for m in names]
    first = choices[0]
    cells = list(by_set)
    logs = np.array(
        [[np.mean([np.log(e[c] / e[first]) for e in by_set[cell]]) for c in choices]
         for cell in cells]
    )  # fmt: skip
    real = np.array([not cell.startswith("generated") for cell in cells])
    weight = np.where(real, 0.5 / real.sum(), 0.5 / (~real).sum())
    overall = weight @ logs
    error = np.sqrt(weight**2 @ (logs - overall) ** 2)
    near = [_near(by_set, cells, choice, real) for choice in choices]
    lines = [
        [*choice, f"{100 * logs[~real, i].mean():+.1f}", f"{100 * logs[real, i].mean():+.1f}",
         f"{100 * overall[i]:+.2f} ± {100 * error[i]:.2f}", near[i]]
        for i, choice in enumerate(choices)
    ]  # fmt: skip
    header = ["field", "rule", "generated", "real", "overall ± s.e.", "first or within one s.e."]
    return "\n\n".join([
        "# How the field is weighed",
        "Made by `python -m experiments.contest_choices`; its first lines say what was fixed before"
        " the run. 100 × log(error / error of the first line); below 0 is better. Last column: of"
        f" the {int(real.sum())} real sets, beside the single models of the contest's field.",
        markdown_table(header, lines),
        "Taken by that rule: the field with a forest, weights L^-6. What is built in has 100 trees"
        " of at most 256 leaves instead of 200 without a limit, for the sake of time and of the"
        " size of a saved model.",
    ])  # fmt: skip


def _near(by_set: Any, cells: list[str], choice: tuple[str, str], real: np.ndarray) -> int:
    count = 0
    for cell in np.array(cells)[real]:
        singles = {m: np.array([e["alone", m] for e in by_set[cell]]) for m in FIELD}
        chosen = np.array([e[choice] for e in by_set[cell]])
        best = min([*singles.values(), chosen], key=np.mean)
        paired = chosen - best
        count += paired.mean() <= paired.std(ddof=1) / np.sqrt(len(paired))
    return count


def main() -> None:
    options = asked_options(__doc__, dict.fromkeys(("generated", *DEVELOPED)), contest.RESULTS)
    path = options.out / "choices.npz"
    kept = dict(np.load(path)) if path.exists() else {}
    for name in progress(options.parts, len(options.parts), "sets"):
        for number, draw in enumerate(draws(name, options.seed)):
            left, new = products(draw)
            kept |= {f"{name}|{number}|left": left, f"{name}|{number}|new": new}
        np.savez_compressed(path, **kept)
    (options.out / "choices.md").write_text(report(options.out) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
