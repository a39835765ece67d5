"""The answer of `holdtrue transfer`: sources that help."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdtrue.charts import Chart, Dots, number
from holdtrue.report.answers.words import DRAWN, count, listed, verb
from holdtrue.report.summary import Summary, Table


def transfer_summary(model: Any, target: str) -> Summary:
    """Summary of a fitted `GreedyTLClassifier` or `GreedyTLRegressor`."""
    path = model.path_
    features = getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)])
    names = [*map(str, features), *model.source_names_]
    weights = np.concatenate(
        [np.atleast_2d(model.feature_weights_), np.atleast_2d(model.source_weights_)], axis=1
    )
    strength = np.abs(weights).max(axis=0)
    signed = np.take_along_axis(weights, np.abs(weights).argmax(axis=0)[None], axis=0)[0]
    used = np.flatnonzero(strength).tolist()
    used.sort(key=lambda j: (int(model.ranking_[j]), j))
    n_sources = len(model.source_names_)
    helping = [names[j] for j in used if j >= model.n_features_in_]
    rows = [
        {
            "name": names[j],
            "kind": "source" if j >= model.n_features_in_ else "column",
            "enters": int(model.ranking_[j]),
            "weight": float(signed[j]),
        }
        for j in used
    ]
    errors = model.loo_errors_
    if helping:
        answer = (
            f"{count(len(helping), 'source')} of {n_sources} {verb(len(helping), 'help')} "
            f"{target!r}: {listed(helping)}."
        )
    else:
        which = (
            "The source does not help"
            if n_sources == 1
            else f"None of the {n_sources:,} sources helps"
        )
        answer = f"{which} {target!r}: left out."
    if "with_sources" in errors:
        answer += (
            f" The squared error on left-out rows is {number(errors['with_sources'])} with sources "
            f"and {number(errors['without_sources'])} without."
        )
    charts: list[Chart] = [path.chart()]
    if used:
        shown = used[:DRAWN]
        blank = [float("nan")] * len(shown)
        charts.append(
            Dots(
                "Weight of what was chosen",
                "What one standard deviation adds to the score of the target.",
                "weight",
                [names[j] for j in shown],
                signed[shown].tolist(),
                blank,
                blank,
                ["kept"] * len(shown),
                0.0,
                "no weight",
            )
        )
    columns = {"name": "name", "kind": "kind", "enters": "enters at", "weight": "weight"}
    notes = []
    if n_sources and not helping:
        notes.append(
            (
                "Sources that would do harm",
                "With them the error on left-out rows is higher than without, so the model uses "
                "the columns alone.",
            )
        )
    against = [row["name"] for row in rows if row["kind"] == "source" and row["weight"] < 0]
    if against:
        notes.append(
            (
                "Sources used in reverse",
                f"{listed(against)}: a high score speaks against the target. That can be right "
                "(a rival class), or chance with so few rows.",
            )
        )
    if len(helping) > 0 and len(used) >= 10:
        notes.append(
            (
                "Many chosen for few rows",
                f"{len(used)} columns and sources carry weight. Pass --max-selected to keep fewer.",
            )
        )
    return Summary(
        command="transfer",
        question=f"Which of {count(n_sources, 'trained model')} help {target!r}?"
        if n_sources != 1
        else f"Does the trained model help {target!r}?",
        answer=answer,
        path=path,
        table=Table("Columns and sources that carry weight", columns, rows, tuple(columns)),
        charts=charts,
        wary=notes,
    )
