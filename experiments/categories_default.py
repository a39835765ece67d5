"""Which criterion ranks columns best? The rule that decides the default, and its result.

python -m experiments.categories_default               the run, then the table
python -m experiments.categories_default --report      the table from the CSV alone

The rule, fixed before the run: a criterion ranks the columns of a training sample; on all other
rows (at most 40,000) the deployed one-column predictor, shares shrunk with the strength of least
left-out log loss, has a log loss and an AUROC. The Spearman correlation of the ranking with each of
the two is averaged over problems, then over sizes, then over the two. Of the criteria that have a
closed form (ginger, majority, log_loss, brier, error) the one with the largest average becomes the
default.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from experiments.records import (
    Rows,
    asked_options,
    data_file,
    markdown_table,
    progress,
    read_csv,
    results,
    write_csv,
)
from experiments.shrunk_honesty import Problem, census_problems, codes_of, problems, table_of
from scipy.stats import rankdata
from sklearn.metrics import adjusted_mutual_info_score

from holdtrue.categories import kernel, shrunk

RESULTS = results("categories")
SIZES = (500, 2_000, 10_000)
N_TEST = 40_000
N_FOLDS = 5
CLOSED = ("ginger", "majority", "log_loss", "brier", "error")
CRITERIA = (*CLOSED, "cv_error", "cv_brier", "ami")
SHOWN = {"cv_error": "5-fold CV, error", "cv_brier": "5-fold CV, Brier", "ami": "AMI"}


def all_problems() -> Iterator[Problem]:
    """All tables, and the 62 census problems of the paper."""
    for problem in problems(False):
        if not problem.name.startswith("census "):
            yield problem
    yield from more_tables()
    yield from census_problems()


def more_tables() -> Iterator[Problem]:
    """Tables of numbers, each column in 16 quantile bins and, with few values, as it is."""
    forest = np.load(data_file("covtype.npz", "UCI Covertype"))
    tables = {"covtype": (forest["X"][::5], forest["y"][::5])}
    wine = pq.read_table(data_file("wine_quality.parquet", "UCI Wine Quality"))
    inputs = [name for name in wine.column_names if name != "quality"]
    numbers = [wine[name].to_numpy() for name in inputs]
    columns = [codes_of(c.astype(str)) if c.dtype == object else c for c in numbers]
    tables["wine"] = (np.stack(columns, axis=1), wine["quality"].to_numpy() >= 6)
    for name, (X, y) in tables.items():
        columns = {}
        for j in range(X.shape[1]):
            codes = codes_of(X[:, j])
            columns[f"x{j}"] = codes
            if codes.max() >= 64:
                ends = np.quantile(X[:, j], np.arange(1, 16) / 16)
                columns[f"x{j} in bins"] = codes_of(np.searchsorted(ends, X[:, j]))
        yield Problem(name, columns, codes_of(y), None)


def judged(problem: Problem, n_rows: int, draw: int) -> dict[str, Any] | None:
    """Spearman correlations of every criterion with the test log loss and the test AUROC."""
    rng = np.random.default_rng([draw, n_rows])
    order = rng.permutation(len(problem.y))
    train, test = order[:n_rows], order[n_rows : n_rows + N_TEST]
    n_classes = int(problem.y.max()) + 1
    y = problem.y[train]
    if len(np.unique(y)) < 2:
        return None
    fold = rng.permutation(n_rows) % N_FOLDS
    losses, aurocs, scores = [], [], []
    for codes in problem.columns.values():
        n_values = int(codes.max()) + 1
        counts = table_of(codes[train], y, n_values, n_classes)
        new = table_of(codes[test], problem.y[test], n_values, n_classes)
        seen = counts[counts.any(axis=1)]
        strength = float(shrunk.best_readings("log_loss", [(seen, None)])[1][0])
        q = shrunk.shares(counts, counts.sum(axis=0), strength)
        losses.append(-float((new * np.log(q)).sum() / new.sum()))
        aurocs.append(auroc(q, new))
        cv_error, cv_brier = cross_validated(codes[train], y, fold, n_values, n_classes)
        scores.append(
            [
                kernel.criterion_value("ginger", seen),
                kernel.criterion_value("majority", seen),
                *(shrunk.best_readings(loss, [(seen, None)])[0][0] for loss in shrunk.LOSSES),
                cv_error,
                cv_brier,
                -adjusted_mutual_info_score(y, codes[train]),
            ]
        )
    table = np.array(scores)
    row: dict[str, Any] = {"problem": problem.name, "rows": n_rows, "draw": draw,
                           "columns": len(losses)}  # fmt: skip
    for k, criterion in enumerate(CRITERIA):
        row[f"{criterion} log_loss"] = spearman(table[:, k], np.array(losses))
        row[f"{criterion} auroc"] = spearman(table[:, k], -np.array(aurocs))
        best = int(np.argmin(np.round(table[:, k], 12)))
        row[f"{criterion} top"] = losses[best] - min(losses)
    return row


def auroc(q: np.ndarray, new: np.ndarray) -> float:
    """Area under the ROC curve of each class against the rest, by the classes' test rows."""
    areas, weights = [], []
    for k in range(q.shape[1]):
        order = np.argsort(q[:, k])
        _, tie = np.unique(q[order, k], return_inverse=True)
        positive = np.bincount(tie, new[order, k])
        negative = np.bincount(tie, new[order].sum(axis=1)) - positive
        if positive.sum() and negative.sum():
            below = np.cumsum(negative) - negative / 2
            areas.append(float(positive @ below / (positive.sum() * negative.sum())))
            weights.append(float(positive.sum()))
    return float(np.average(areas, weights=weights))


def cross_validated(
    codes: np.ndarray, y: np.ndarray, fold: np.ndarray, n_values: int, n_classes: int
) -> tuple[float, float]:
    """Error and Brier loss in 5 folds of the value's shares; a value not seen gets all rows'."""
    key = (fold * n_values + codes) * n_classes + y
    by_fold = np.bincount(key, minlength=N_FOLDS * n_values * n_classes)
    by_fold = by_fold.reshape(N_FOLDS, n_values, n_classes)
    rest = (by_fold.sum(axis=0) - by_fold).astype(float)
    rest = np.where(rest.any(axis=2, keepdims=True), rest, rest.sum(axis=1, keepdims=True))
    shares = rest / rest.sum(axis=2, keepdims=True)
    named = shares.argmax(axis=2)
    right = np.take_along_axis(by_fold, named[..., None], 2).sum()
    squares = np.einsum("fvk,fvk->fv", shares, shares)[..., None] - 2 * shares + 1
    return 1 - float(right) / len(y), float((by_fold * squares).sum() / len(y))


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    """Correlation of ranks, 0 where all are equal; differences of 1e-12 are ties."""
    ranks = [rankdata(np.round(part / (np.abs(part).max() or 1), 12)) for part in (a, b)]
    spreads = [part.std() for part in ranks]
    if not all(spreads):
        return 0.0
    return float(
        np.mean(np.prod([part - part.mean() for part in ranks], axis=0)) / np.prod(spreads)
    )


def run(seed: int, draws: int) -> Rows:
    """One row per problem, size and draw; census problems are drawn once."""
    tables = list(all_problems())
    rows: Rows = []
    for problem in progress(tables, len(tables), "problems"):
        for n_rows in SIZES:
            if n_rows <= len(problem.y) / 2:
                n_draws = 1 if problem.name.startswith("census ") else draws
                rows += filter(None, (judged(problem, n_rows, seed + i) for i in range(n_draws)))
    return rows


INTRODUCTION = """# Which criterion ranks columns best?

Made by `python -m experiments.categories_default`. Mean Spearman correlation of the ranking on n \
training rows with the test log loss / with the test AUROC of the deployed one-column predictor \
(shrunk shares), over problems: the 62 census problems of the paper (one draw) and \
{tables} other tables (five draws). CV: shares by value in the other folds. *top*: log loss of \
the column ranked first minus that of the best column.

The rule, fixed before the run: of the criteria with a closed form the one with the largest mean \
over problems, then sizes, then the two correlations becomes the default.
"""


def report(folder: Path) -> None:
    """The table and the decision."""
    rows = read_csv(folder / "default.csv")
    names = {row["problem"] for row in rows}
    others = sorted(name for name in names if not name.startswith("census "))
    parts = [INTRODUCTION.format(tables=len(others)), f"Tables: {', '.join(others)}.\n"]
    means: dict[str, float] = {}
    for title, keep in (
        ("All problems", lambda name: True),
        ("Census problems", lambda name: name.startswith("census ")),
        ("Other tables", lambda name: not name.startswith("census ")),
    ):
        body = []
        for criterion in CRITERIA:
            cells, halves = [], []
            for size in SIZES:
                some = [r for r in rows if r["rows"] == size and keep(r["problem"])]
                pair = [by_problem(some, f"{criterion} {what}") for what in ("log_loss", "auroc")]
                halves += pair
                cells.append(f"{pair[0]:.3f} / {pair[1]:.3f}")
            some = [r for r in rows if keep(r["problem"])]
            mean = float(np.mean(halves))
            if title == "All problems":
                means[criterion] = mean
            top = f"{by_problem(some, f'{criterion} top'):.4f}"
            body.append([SHOWN.get(criterion, criterion), *cells, f"{mean:.3f}", top])
        heads = ["criterion", *(f"{size:,} rows" for size in SIZES), "mean", "top"]
        parts.append(f"## {title}\n\n{markdown_table(heads, body)}\n")
    best = max(CLOSED, key=lambda criterion: means[criterion])
    parts.append(f"**By the rule: `{best}`** ({means[best]:.3f}).\n")
    (folder / "default.md").write_text("\n".join(parts), encoding="utf-8")
    print("\n".join(parts))


def by_problem(rows: Rows, key: str) -> float:
    """Mean over problems of the mean over draws."""
    values: dict[str, list[float]] = {}
    for row in rows:
        values.setdefault(row["problem"], []).append(row[key])
    return float(np.mean([np.mean(some) for some in values.values()]))


if __name__ == "__main__":
    options = asked_options(
        __doc__, {"run": None}, RESULTS, draws={"type": int, "default": 5, "help": "per table"}
    )
    if options.parts:
        write_csv(
            options.out / "default.csv",
            run(options.seed, options.draws),
            command="python -m experiments.categories_default",
            seed=options.seed,
        )
    report(options.out)
