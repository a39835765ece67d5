"""Part `choices` of `experiments.categories`: how many columns of noise are kept, and what for.

Three of the manual's sentences, by simulation: a smaller alpha for many columns, the stop of
``mode="forward"``, and trees where most values are new.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from experiments.categories import Rows, run
from experiments.records import markdown_table, read_csv
from joblib import delayed

from holdtrue import GingerSelector, GingerTreeClassifier

N_COLUMNS = 100


def noise_job(n_values: int, m: int, share: float, trials: int, seed: int) -> dict[str, Any]:
    """Columns of noise, of 100, that ``mode="each"`` keeps at alpha .05 and at .05/100.

    ``n_values`` 0 stands for decimal numbers, of which the criterion picks the number of bins.
    """
    rng = np.random.default_rng(seed)
    row: dict[str, Any] = {"values": n_values, "m": m, "share": share, "samples": trials}
    kept: dict[str, list[int]] = {"all": [], "few": []}
    by_value = list(range(N_COLUMNS)) if n_values else "from_dtype"
    for _ in range(trials):
        X = rng.random((m, N_COLUMNS))
        X = (X * n_values).astype(np.int64) if n_values else X
        y = rng.random(m) < share
        for name, alpha in (("all", 0.05), ("few", 0.05 / N_COLUMNS)):
            selector = GingerSelector(alpha=alpha, categorical_features=by_value)
            kept[name].append(int(selector.fit(X, y).support_.sum()))
    for name, counts in kept.items():
        row |= {
            f"{name}_kept": float(np.mean(counts)),
            f"{name}_any": float(np.mean(np.sign(counts))),
        }
    return row


def power_job(lift: float, m: int, trials: int, seed: int) -> dict[str, Any]:
    """How often a column of 10 values that shifts the odds is kept, at both alphas."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(trials):
        X = rng.integers(0, 10, (m, 1))
        y = rng.random(m) < 0.5 + lift * np.where(X[:, 0] % 2, 1, -1)
        found.append(
            [GingerSelector(alpha=alpha, categorical_features=[0]).fit(X, y).support_[0]
             for alpha in (0.05, 0.05 / N_COLUMNS)]
        )  # fmt: skip
    kept, few = np.mean(found, axis=0)
    return {
        "lift": lift,
        "m": m,
        "samples": trials,
        "all_kept": float(kept),
        "few_kept": float(few),
    }


def forward_job(source: str, m: int, criterion: str, seed: int) -> dict[str, Any]:
    """Columns and test error of ``mode="forward"`` while the estimate falls, and by default.

    The error is that of the majority of the rows with the same values; a combination never seen is
    guessed.
    """
    if source == "noise":
        rng = np.random.default_rng(seed)
        n_values = np.array([2, 3, 4, 6, 8, 12, 20, 40, 80, 160])
        inputs = (rng.random((m + 10_000, len(n_values))) * n_values).astype(np.int64)
        label = rng.integers(0, 2, len(inputs))
        train, y, test, y_test = inputs[:m], label[:m], inputs[m:], label[m:]
    else:
        from experiments import categories_rivals

        _, _, train, y, test, y_test = categories_rivals.binned(source, seed, m)
    every = list(range(train.shape[1]))
    options: dict[str, Any] = {"mode": "forward", "categorical_features": every}
    clear = GingerSelector(criterion, **options).fit(train, y).path_
    longer = min(clear.chosen_size + 6, len(every))
    path = GingerSelector(criterion, n_features_to_select=longer, **options).fit(train, y).path_
    rises = np.flatnonzero(np.diff(path.scores) >= -1e-12)
    any_gain = int(rises[0]) if len(rises) else longer
    row: dict[str, Any] = {"data": source, "m": m, "criterion": criterion, "seed": seed}
    for name, chosen, score in (
        ("any", path.order[:any_gain], path.scores[any_gain]),
        ("clear", clear.order[: clear.chosen_size], clear.scores[clear.chosen_size]),
    ):
        error = majority_error(train[:, chosen], y, test[:, chosen], y_test)
        row |= {
            f"{name}_columns": len(chosen),
            f"{name}_estimate": float(score),
            f"{name}_test": error,
        }
    return row


def majority_error(train: np.ndarray, y: np.ndarray, test: np.ndarray, y_test: np.ndarray) -> float:
    """Test error of rule (5) on the joint column; a combination never seen costs a half."""
    _, codes = np.unique(np.concatenate([train, test]), axis=0, return_inverse=True)
    codes = codes.ravel()
    lead = np.bincount(codes[: len(y)], 2 * y - 1.0, minlength=codes.max() + 1)[codes[len(y) :]]
    return float(np.mean(np.where(lead == 0, 0.5, (lead > 0) != (y_test == 1))))


def unseen_job(
    n_values: int, m: int, base: float, max_splits: int | None, trials: int, seed: int
) -> dict[str, Any]:
    """Estimate of a tree beside the test error of a label drawn from the row's last node.

    The odds depend on a column of four values, and on one of many values; ``base`` is their
    logarithm where neither adds to them.
    """
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(trials):
        shift = rng.normal(scale=1.6, size=n_values)
        group, place = rng.integers(0, 4, m + 10_000), rng.integers(0, n_values, m + 10_000)
        chance = 1 / (1 + np.exp(-(base + 1.5 * (group == 0) + shift[place])))
        label = (rng.random(m + 10_000) < chance).astype(int)
        X = np.column_stack([group, place])
        tree = GingerTreeClassifier(max_splits=max_splits, categorical_features=[0, 1])
        tree.fit(X[:m], label[:m])
        ends = tree.apply(X[m:])
        counts = tree.tree_.counts
        stuck = np.isin(ends, tree.tree_.node)  # in a node that is split: a value not seen
        error = 1 - (counts / counts.sum(axis=1, keepdims=True))[ends, label[m:]]
        size = tree.path_.chosen_size
        own = error[stuck].mean() if stuck.any() else np.nan
        found.append([stuck.mean(), tree.path_.scores[size], error.mean(), own, size])
    unseen, estimate, error, own, splits = (
        float(np.nanmean(part)) if np.isfinite(part).any() else float("nan")
        for part in np.array(found).T
    )
    return {"values": n_values, "m": m, "base": base, "max_splits": max_splits or "",
            "samples": trials, "unseen": unseen, "estimate": estimate, "test": error,
            "test_unseen": own, "splits": splits}  # fmt: skip


def run_choices(trials: int, seed: int) -> dict[str, Rows]:
    """Columns of noise that are kept, the forward stop, trees and values never seen."""
    noise = [
        delayed(noise_job)(n_values, m, share, 4 * trials, seed)
        for share in (0.5, 0.1)
        for n_values in (2, 10, 100, 0)
        for m in (200, 2000)
    ]
    power = [
        delayed(power_job)(lift, m, 40 * trials, seed)
        for m in (200, 2000)
        for lift in (0.05, 0.1, 0.2)
    ]
    forward = [
        delayed(forward_job)(source, m, criterion, seed + draw)
        for source in ("noise", "Adult", "Census-Income", "Mushroom", "flights", "acs_sdnist")
        for m in (500, 2000)
        for criterion in ("ginger", "majority")
        for draw in range(trials)
    ]
    unseen = [
        delayed(unseen_job)(n_values, m, base, max_splits, 4 * trials, seed)
        for max_splits in (None, 8)
        for base in (-0.5, -2.5)
        for n_values in (20, 200, 2000)
        for m in (500, 2000)
    ]
    return {
        "choices_noise": list(run(noise, "noise")),
        "choices_power": list(run(power, "power")),
        "choices_forward": list(run(forward, "forward")),
        "choices_unseen": list(run(unseen, "unseen")),
    }


# --- tables ---------------------------------------------------------------------------------------


def choices(folder: Path) -> str:
    """What the three sentences become."""
    noise, power, forward, unseen = (
        read_csv(folder / f"choices_{name}.csv") for name in ("noise", "power", "forward", "unseen")
    )
    most = max(row["all_kept"] for row in noise)
    lines = []
    for data in dict.fromkeys(row["data"] for row in forward):
        for m in dict.fromkeys(row["m"] for row in forward):
            line: list[Any] = [data, m]
            for criterion in ("ginger", "majority"):
                own = [r for r in forward if (r["data"], r["m"]) == (data, m)]
                own = [r for r in own if r["criterion"] == criterion]
                for rule in ("any", "clear"):
                    columns, test, promised = (
                        float(np.mean([row[f"{rule}_{key}"] for row in own]))
                        for key in ("columns", "test", "estimate")
                    )
                    line.append(f"{test:.3f} ({columns:.1f}; {promised:.3f})")
            lines.append(line)
    worse = [row for row in unseen if row["test"] > row["estimate"] and row["unseen"] > 0.1]
    common = [row for row in unseen if row["unseen"] > 0.1]
    return "\n\n".join(
        [
            "## Columns of noise that are kept, and values never seen\n\n100 columns of noise, "
            f"{noise[0]['samples']} samples each: how many `GingerSelector` keeps, and in what "
            "share of the samples any. *share*: of the rarer class.",
            markdown_table(
                ["values", "m", "share", "kept, alpha .05", "any", "kept, alpha .05/100", "any"],
                [[r["values"] or "decimal", r["m"], r["share"], r["all_kept"], r["all_any"],
                  r["few_kept"], r["few_any"]] for r in noise],
            ),
            "How often one column of 10 values is kept that moves the odds from ½ by *lift* either "
            f"way, {power[0]['samples']} samples each:",
            markdown_table(
                ["lift", "m", "alpha .05", "alpha .05/100"],
                [[r["lift"], r["m"], r["all_kept"], r["few_kept"]] for r in power],
            ),
            f"The intervals err on the wide side: of 100 columns of noise at most {most:g} are "
            "kept on average at the default alpha. A hundredth of it is not needed against noise, "
            "and loses columns that predict.",
            '### The stop of mode="forward"\n\nTest error of the majority rule on the columns '
            "chosen (a combination never seen costs ½); in brackets their number and what the "
            "criterion promises. *Any*: while the estimate falls. *Clear*, the default: while a "
            "column lowers it by more than sqrt(2 ln p) standard errors. Draws, of which these are "
            f"means: {len({row['seed'] for row in forward})}.",
            markdown_table(
                ["data", "rows", "ginger, any", "ginger, clear", "majority, any",
                 "majority, clear"], lines,
            ),
            "### Trees and values never seen\n\nA column of four values and one of many move the "
            "odds; *base* is their logarithm without either. *Estimate* is what the tree promises, "
            "*test error* that of a label drawn from the row's last node, *unseen* the share of "
            "test rows that a node has no child for, and then their own test error, where the "
            f"estimate charges ½. {unseen[0]['samples']} samples each.",
            markdown_table(
                ["max_splits", "base", "values", "m", "splits", "unseen", "its error", "estimate",
                 "test error"],
                [[r["max_splits"] or "default", r["base"], r["values"], r["m"], r["splits"],
                  r["unseen"], r["test_unseen"], r["estimate"], r["test"]] for r in unseen],
            ),
            "Rows whose value was not seen err no more than the ½ they are charged, but the best "
            f"of many splits promises too much: of {len(common)} cases with more than a tenth of "
            f"such rows the tree does worse than its estimate in {len(worse)}.",
        ]
    )  # fmt: skip
