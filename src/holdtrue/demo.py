"""`holdtrue demo`: the four questions on data whose right answer is known, and a check of each."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv
from rich.rule import Rule
from rich.text import Text
from sklearn.linear_model import LassoCV, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from holdtrue.categories import OneColumnClassifier, rank_columns
from holdtrue.datasets import make_curve, make_customers, make_domains, make_sources
from holdtrue.domains import TGreedyRegressor
from holdtrue.files import written_whole
from holdtrue.model_size import NestedRegressor
from holdtrue.report.answers.rank import rank_summary
from holdtrue.report.answers.select import select_summary
from holdtrue.report.answers.size import size_summary
from holdtrue.report.answers.transfer import transfer_summary
from holdtrue.report.render import to_html
from holdtrue.report.summary import Summary
from holdtrue.report.terminal import Terminal, show
from holdtrue.sources import GreedyTLClassifier, SourcePool

_INTRO = (
    "Four small samples, generated so that the right answer is known, and what holdtrue makes of "
    "them. Each choice is then checked on fresh data that no fit has seen. The draws are "
    "typical ones; those of another seed may be luckier or worse."
)
_N_MODELS = 40
_N_NEW_CUSTOMERS = 10_000
_NOISE = 0.3
_N_HOSPITALS = 12
_STEADY = ("age", "blood_pressure", "cholesterol", "glucose", "creatinine")
_FICKLE = ("coding_practice", "scanner", "referrals", "ward")


def tell(seed: int, *, quiet: bool = False) -> str:
    """Ask the four questions, print the story, and give the page that holds all of it."""
    console = Terminal(quiet=quiet)
    console.print(Text(_INTRO, style="italic"))
    parts: dict[str, Callable[[int], Summary]] = {
        "The id that information gain loves": _ids,
        "The feature that flips its sign at the new hospital": _hospitals,
        "The trained models that help": _shelf,
        "The size that twenty points afford": _curve,
    }
    summaries = []
    for title, part in parts.items():
        console.print()
        console.print(Rule(Text(title, style="bold"), align="left"))
        summary = part(seed)
        console.print()
        show(summary, 6, console, whole="in the report")
        checked = Text.assemble(("On fresh data: ", "bold green"), summary.asked["on fresh data"])
        console.print(checked)
        summaries.append(summary)
    console.print()
    return to_html(summaries, title="What holds on data nobody has seen?", intro=_INTRO)


def write_data(folder: Path, seed: int) -> list[str]:
    """Write the samples as files, to be tried by hand, and give the commands to type.

    ``customers.csv``, ``hospitals.csv``, ``points.csv`` (of which most have no y), and later
    customers and hospitals to check a saved model on. Where skops is installed, ``new_task.csv``
    with a ``shelf`` of models for it; else a line says what is left out.
    """

    def save(name: str, columns: dict[str, Any]) -> str:
        with written_whole(folder / name) as file:
            csv.write_csv(pa.table(columns), file)
        return str(folder / name)

    folder.mkdir(parents=True, exist_ok=True)
    customers = _customer_data(seed)
    name = save("customers.csv", {**customers.columns, "left": customers.left})
    save("new_customers.csv", {**customers.new_columns, "left": customers.new_left})
    commands = [f"holdtrue rank {name} --target left"]
    data, names, hospitals = _hospital_data(seed)
    for file_name, rows, sites, recovery in (
        ("new_hospitals.csv", data.X_new, _hospital_names(data.groups_new), data.y_new),
        ("hospitals.csv", data.X, hospitals, data.y),
    ):
        columns = dict(zip(names, rows.round(4).T, strict=True))
        name = save(file_name, {"hospital": sites, **columns, "recovery": recovery.round(4)})
    commands.append(f"holdtrue select {name} --target recovery --domain hospital")
    commands.append(f"holdtrue compare {name} --target recovery --domain hospital")
    points = _curve_data(seed)
    x = np.concatenate([points.X[:, 0], points.X_unlabeled[:, 0]]).round(4)
    y = [*points.y.round(4).tolist(), *[None] * len(points.X_unlabeled)]
    name = save("points.csv", {"x": x, "y": y})
    commands.append(f"holdtrue size {name} --x x --y y")
    try:
        from skops.io import dump
    except ImportError:
        left_out = "# left out: transfer, --save, predict and check, which need skops:"
        return [*commands, left_out, "pip install 'holdtrue[skops]'"]
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((2, 10))
    shelf = folder / "shelf"
    shelf.mkdir(exist_ok=True)
    for i in range(_N_MODELS):
        # A tenth of the models were trained for a task like the new one.
        similar = i < _N_MODELS // 10
        directions = rng.standard_normal(truth.shape)
        if similar:
            directions = truth + 0.3 * directions
        rows = rng.standard_normal((500, 10))
        model = make_pipeline(PolynomialFeatures(2), LogisticRegression(max_iter=1000))
        model.fit(rows, _sign_of_product(rows, directions))
        with written_whole(shelf / f"{'similar' if similar else 'other'}_{i:02}.skops") as file:
            dump(model, file)
    rows = rng.standard_normal((20, 10)).round(4)
    features = {f"f{j}": column for j, column in enumerate(rows.T)}
    name = save("new_task.csv", {**features, "label": _sign_of_product(rows, truth)})
    commands.append(f"holdtrue transfer {name} --target label --sources {shelf} --max-selected loo")
    model, new = folder / "left.skops", folder / "new_customers.csv"
    commands.append(f"{commands[0]} --save {model}")
    commands.append(f"holdtrue predict {model} {new} --out {folder / 'predictions.csv'}")
    commands.append(f"holdtrue check {model} {new}")
    return commands


def _sign_of_product(rows: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """A class that no linear function of the columns shows."""
    return np.prod(rows @ directions.T, axis=1) > 0


def _ids(seed: int) -> Summary:
    """Columns of customers who leave or stay, by Ginger and by information gain."""
    data = _customer_data(seed)
    table, fresh = pa.table(data.columns), pa.table(data.new_columns)
    ranking = rank_columns(table, data.left)
    best = next(iter(ranking))["column"]
    by_gain = [
        row["column"] for row in rank_columns(table, data.left, criterion="information_gain")
    ]
    wrong = {
        name: 1
        - OneColumnClassifier("majority")
        .fit(table.select([name]), data.left)
        .score(fresh.select([name]), data.new_left)
        for name in (by_gain[0], best)
    }
    return _checked(
        rank_summary(ranking.path, "left"),
        f"information gain ranks {by_gain[0]!r} first; on {_N_NEW_CUSTOMERS:,} new customers a "
        f"rule on it is wrong for {wrong[by_gain[0]]:.1%}, one on {best!r} for {wrong[best]:.1%}.",
        "2,000 customers, generated: leaving depends on plan and spend only",
    )


def _customer_data(seed: int) -> Any:
    return make_customers(2000, n_new=_N_NEW_CUSTOMERS, random_state=seed)


def _hospitals(seed: int) -> Summary:
    """Features of patients in hospitals, some of which change their meaning."""
    data, names, hospitals = _hospital_data(seed)
    frame, fresh = (pa.table(dict(zip(names, X.T, strict=True))) for X in (data.X, data.X_new))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the answer has what the warnings say
        model = TGreedyRegressor().fit(frame, data.y, groups=hospitals)
    pooled = LassoCV(random_state=seed).fit(data.X, data.y)
    errors = [
        float(np.mean((predicted - data.y_new) ** 2))
        for predicted in (model.predict(fresh), pooled.predict(data.X_new))
    ]
    trusted = [name for name in names[np.argsort(-np.abs(pooled.coef_))[:6]] if name in _FICKLE]
    misled = (
        f"among the six largest weights of a pooled Lasso: {', '.join(trusted)}" if trusted else ""
    )
    return _checked(
        select_summary(model.path_, "recovery", "hospital"),
        f"at 20 new hospitals the squared error is {errors[0]:.1f}, a pooled Lasso has "
        f"{errors[1]:.1f}, the mean {np.mean((data.y_new - data.y.mean()) ** 2):.1f}"
        + (f"; {misled}." if misled else "."),
        f"{_N_HOSPITALS} hospitals with 100 patients each, generated: {len(_STEADY)} features, "
        f"{_STEADY[0]} to {_STEADY[-1]}, work everywhere, four change from hospital to hospital, "
        "the rest is noise. Chosen so that the steady features carry a third of what varies and "
        "the hospitals are enough to see it: with 8 hospitals and 3 such features the error at a "
        "new one is hardly below that of the mean",
    )


def _hospital_data(seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Rows of the hospitals, the features' names, and each row's hospital."""
    data = make_domains(_N_HOSPITALS, 100, n_features=40, n_steady=len(_STEADY), random_state=seed)
    labs = [f"lab_{j}" for j in range(1, data.X.shape[1] - len(_STEADY + _FICKLE) + 1)]
    names = np.array([*_STEADY, *_FICKLE, *labs], dtype=object)
    return data, names, _hospital_names(data.groups)


def _hospital_names(groups: np.ndarray) -> np.ndarray:
    return np.array([f"hospital {group + 1}" for group in groups.tolist()], dtype=object)


def _shelf(seed: int) -> Summary:
    """A task with twenty labels, and a shelf of trained models of which a few help."""
    task = make_sources(n_samples=20, n_sources=500, n_helpful=20, random_state=seed)
    pool = SourcePool(task.sources)
    model = GreedyTLClassifier(pool, max_selected=5, random_state=seed).fit(task.X, task.y)
    alone = GreedyTLClassifier(max_selected=5).fit(task.X, task.y)
    right = [100 * each.score(task.X_test, task.y_test) for each in (model, alone)]
    return _checked(
        transfer_summary(model.path_, "label"),
        f"on {len(task.y_test):,} new rows {right[0]:.0f}% right with the models, {right[1]:.0f}% "
        "without.",
        "20 labelled rows and 500 trained models, generated: 20 of them help",
    )


def _curve(seed: int) -> Summary:
    """Twenty points of a curve of four terms, and models of growing size."""
    data = _curve_data(seed)
    model = NestedRegressor(random_state=seed).fit(data.X, data.y, X_unlabeled=data.X_unlabeled)
    truth = data.curve(data.X_unlabeled[:, 0])
    many = model.choices_["aic"]
    rival = list(model.staged_predict(data.X_unlabeled))[many - 1]
    errors = [  # of new points, whose noise is part of it as of the estimates
        float(np.mean((each - truth) ** 2)) + _NOISE**2
        for each in (model.predict(data.X_unlabeled), rival)
    ]
    summary = size_summary(
        model.path_,
        data.X,
        data.y,
        predict=partial(model.predict, return_std=True),
        x_names=["x"],
        y_name="y",
    )
    return _checked(
        summary,
        f"the average over all sizes has a squared error of {errors[0]:.3f} on new points; "
        f"AIC takes {many} terms, which alone have {errors[1]:,.3g}.",
        "20 noisy points of a curve of four terms, generated, and 1,000 inputs without a label",
    )


def _curve_data(seed: int) -> Any:
    return make_curve("four_terms", n_samples=20, noise=_NOISE, random_state=seed)


def _checked(summary: Summary, verdict: str, data: str) -> Summary:
    return replace(summary, asked={"data": data, "on fresh data": verdict})
