"""`holdtrue demo`: the four questions on data whose right answer is known, and a check of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
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
from holdtrue.report.answers import rank_summary, select_summary, size_summary, transfer_summary
from holdtrue.report.render import to_html
from holdtrue.report.summary import Summary
from holdtrue.report.terminal import Terminal, show
from holdtrue.sources import GreedyTLClassifier, SourcePool

__all__ = ["tell", "write_data"]

_INTRO = (
    "Four small samples, generated so that the right answer is known, and what holdtrue makes of "
    "them. Each choice is then checked on fresh data that no fit has seen."
)
_N_MODELS = 40
_STEADY = ("age", "blood_pressure", "cholesterol")
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

    ``customers.csv``, ``hospitals.csv``, ``points.csv`` (of which most have no y), and
    ``new_task.csv`` with a ``shelf`` of models for it, where skops is installed.
    """
    import pyarrow as pa
    from pyarrow import csv

    def save(name: str, columns: dict[str, Any]) -> str:
        with written_whole(folder / name) as file:
            csv.write_csv(pa.table(columns), file)
        return str(folder / name)

    folder.mkdir(parents=True, exist_ok=True)
    customers = make_customers(2000, random_state=seed)
    name = save("customers.csv", {**customers.columns, "left": customers.left})
    commands = [f"holdtrue rank {name} --target left"]
    data, names, hospitals = _hospital_data(seed)
    columns = dict(zip(names, data.X.round(4).T, strict=True))
    name = save("hospitals.csv", {"hospital": hospitals, **columns, "recovery": data.y.round(4)})
    commands.append(f"holdtrue select {name} --target recovery --domain hospital")
    points = _curve_data(seed)
    x = np.concatenate([points.X[:, 0], points.X_unlabeled[:, 0]]).round(4)
    y = [*points.y.round(4).tolist(), *[None] * len(points.X_unlabeled)]
    name = save("points.csv", {"x": x, "y": y})
    commands.append(f"holdtrue size {name} --x x --y y")
    try:
        from skops.io import dump
    except ImportError:
        return commands
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((2, 10))
    shelf = folder / "shelf"
    shelf.mkdir(exist_ok=True)
    for i in range(_N_MODELS):
        # A tenth of the models were trained for a task like the new one.
        similar = i < _N_MODELS // 10
        own = rng.standard_normal(truth.shape)
        own = truth + 0.3 * own if similar else own
        rows = rng.standard_normal((500, 10))
        model = make_pipeline(PolynomialFeatures(2), LogisticRegression(max_iter=1000))
        model.fit(rows, _sign_of_product(rows, own))
        with written_whole(shelf / f"{'similar' if similar else 'other'}_{i:02}.skops") as file:
            dump(model, file)
    rows = rng.standard_normal((20, 10)).round(4)
    features = {f"f{j}": column for j, column in enumerate(rows.T)}
    name = save("new_task.csv", {**features, "label": _sign_of_product(rows, truth)})
    commands.append(f"holdtrue transfer {name} --target label --sources {shelf}")
    return commands


def _sign_of_product(rows: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """A class that no linear function of the columns shows."""
    return np.prod(rows @ directions.T, axis=1) > 0


def _ids(seed: int) -> Summary:
    """Columns of customers who leave or stay, by Ginger and by information gain."""
    import pyarrow as pa

    data = make_customers(2000, random_state=seed)
    table, fresh = pa.table(data.columns), pa.table(data.new_columns)
    ranked = rank_columns(table, data.left).to_pydict()
    by_gain = rank_columns(table, data.left, criterion="information_gain").to_pydict()["column"]
    best = ranked["column"][0]
    wrong = {
        name: 1
        - OneColumnClassifier()
        .fit(table.select([name]), data.left)
        .score(fresh.select([name]), data.new_left)
        for name in (by_gain[0], best)
    }
    summary = rank_summary(ranked, "left", names=list(data.columns), unit="error on new rows")
    return _checked(
        summary,
        f"information gain ranks {by_gain[0]!r} first; on 2,000 new customers a rule on it is "
        f"wrong for {wrong[by_gain[0]]:.0%}, one on {best!r} for {wrong[best]:.0%}.",
        "2,000 customers, generated: leaving depends on plan and spend only",
    )


def _hospitals(seed: int) -> Summary:
    """Features of patients in eight hospitals, some of which change their meaning."""
    import pyarrow as pa

    data, names, hospitals = _hospital_data(seed)
    frame, fresh = (pa.table(dict(zip(names, X.T, strict=True))) for X in (data.X, data.X_new))
    model = TGreedyRegressor().fit(frame, data.y, groups=hospitals)
    pooled = LassoCV(random_state=seed).fit(data.X, data.y)
    errors = [
        float(np.mean((predicted - data.y_new) ** 2))
        for predicted in (model.predict(fresh), pooled.predict(data.X_new))
    ]
    trusted = [name for name in names[np.argsort(-np.abs(pooled.coef_))[:6]] if name in _FICKLE]
    said = (
        f"among the six largest weights of a pooled Lasso: {', '.join(trusted)}" if trusted else ""
    )
    return _checked(
        select_summary(model, "recovery", "hospital", sizes=[100] * 8),
        f"at 20 new hospitals the squared error is {errors[0]:.1f}, a pooled Lasso has "
        f"{errors[1]:.1f}, the mean {np.mean((data.y_new - data.y.mean()) ** 2):.1f}"
        + (f"; {said}." if said else "."),
        "8 hospitals with 100 patients each, generated: age, blood_pressure and cholesterol work "
        "everywhere, four features change from hospital to hospital, the rest is noise",
    )


def _hospital_data(seed: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Rows of eight hospitals, the features' names, and each row's hospital."""
    data = make_domains(8, 100, n_features=40, random_state=seed)
    labs = [f"lab_{j}" for j in range(1, data.X.shape[1] - len(_STEADY + _FICKLE) + 1)]
    names = np.array([*_STEADY, *_FICKLE, *labs], dtype=object)
    hospitals = np.array([f"hospital {d + 1}" for d in range(8)], dtype=object)
    return data, names, hospitals[data.groups]


def _shelf(seed: int) -> Summary:
    """A task with twenty labels, and a shelf of trained models of which a few help."""
    task = make_sources(n_samples=20, n_sources=500, n_helpful=20, random_state=seed)
    pool = SourcePool(task.sources)
    model = GreedyTLClassifier(pool, max_selected=5, random_state=seed).fit(task.X, task.y)
    alone = GreedyTLClassifier(max_selected=5).fit(task.X, task.y)
    right = [100 * each.score(task.X_test, task.y_test) for each in (model, alone)]
    return _checked(
        transfer_summary(model, "label"),
        f"on {len(task.y_test):,} new rows {right[0]:.0f}% right with the models, {right[1]:.0f}% "
        "without.",
        "20 labelled rows and 500 trained models, generated: 20 of them help",
    )


def _curve(seed: int) -> Summary:
    """Twenty points of a curve of four terms, and models of growing size."""
    data = _curve_data(seed)
    model = NestedRegressor(random_state=seed).fit(data.X, data.y, X_unlabeled=data.X_unlabeled)
    rival = NestedRegressor(criterion="aic", random_state=seed)
    rival.fit(data.X, data.y, X_unlabeled=data.X_unlabeled)
    truth = data.curve(data.X_unlabeled[:, 0])
    errors = [
        float(np.mean((each.predict(data.X_unlabeled) - truth) ** 2)) for each in (model, rival)
    ]
    summary = size_summary(model, data.X, data.y, x_names=["x"], y_name="y")
    return _checked(
        summary,
        f"the curve of {model.n_terms_} terms has a squared error of {errors[0]:.3f} along the "
        f"whole range; AIC takes {rival.n_terms_} terms and has {errors[1]:.3f}.",
        "20 noisy points of a curve of four terms, generated, and 1,000 inputs without a label",
    )


def _curve_data(seed: int) -> Any:
    return make_curve("four_terms", n_samples=20, noise=0.3, random_state=seed)


def _checked(summary: Summary, verdict: str, data: str) -> Summary:
    return replace(summary, asked={"data": data, "on fresh data": verdict})
