"""The answer of `holdtrue check`: was the promise kept on labelled rows?"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from holdtrue.charts import Dot, Dots, number
from holdtrue.deployed import Promise
from holdtrue.deployed.model import Measured
from holdtrue.errors import counted
from holdtrue.path import SelectionPath
from holdtrue.report.summary import Summary, Table, table_skill, verb

_MOST_DRAWN = 40  # groups
_ALL = "all rows"


def check_summary(promise: Promise, measured: Measured, target: str, group: str) -> Summary:
    """Summary of what a saved model did on labelled rows; ``group`` is what a group is called."""
    rows = _rows(measured)
    if promise.groups is None:
        error, without = rows[0]["error"], rows[0]["without"]
        verdict = promise.of_rows(measured.losses)
    else:  # every group counts once, as in the promise
        groups = rows[1:] or rows
        error, without = (
            float(np.mean([row[key] for row in groups])) for key in ("error", "without")
        )
        verdict = promise.of_groups(np.array([row["error"] for row in groups]))
        for row in groups:
            is_worse, is_better = row["error"] > promise.high, row["error"] < promise.low
            row["within"] = "worse" if is_worse else "better" if is_better else "yes"
    columns = {
        "group": group,
        "rows": "rows",
        "error": promise.unit,
        "within": "as promised",
        "standard_error": "±",
        "without": "without a model",
        "skill": "skill",
    }
    if promise.groups is None:
        columns.pop("within")
    if without > 0:
        skill = table_skill(error, without)
        than = f"{abs(skill):.0%} {'less' if skill > 0 else 'more'} than"
        than = "as much as" if than.startswith("0%") else than
        baseline = f" That is {than} without a model, {number(without)}."
    else:
        baseline = f" Without a model it would be {number(without)}."
    return Summary(
        command="check",
        question=f"Was the promise about {target!r} kept?",
        answer=verdict.sentence + baseline,
        path=SelectionPath([0], ["model"], [without, error], 1, verdict.sentence, promise.unit),
        table=Table(
            f"The model on labelled rows, with the {promise.unit} of predicting the mean, or most "
            "frequent class, of the fit.",
            columns,
            [{key: row[key] for key in columns} for row in rows],
            tuple(columns),
        ),
        charts=(_chart(promise, rows, group),),
        wary=_notes(promise, measured, group),
    )


def _rows(measured: Measured) -> list[dict[str, Any]]:
    """All rows, and each group, the largest error first."""
    rows = [_row(_ALL, measured.losses, measured.without)]
    if measured.groups is None:
        return rows
    groups = [
        _row(str(name), measured.losses[at], measured.without[at])
        for name in np.unique(measured.groups)
        for at in [measured.groups == name]
    ]
    return rows + sorted(groups, key=lambda row: -row["error"])


def _row(name: str, losses: np.ndarray, without: np.ndarray) -> dict[str, Any]:
    error, empty = float(losses.mean()), float(without.mean())
    spread = float(losses.std(ddof=1) / math.sqrt(len(losses))) if len(losses) > 1 else None
    return {
        "group": name,
        "rows": len(losses),
        "error": error,
        "standard_error": spread,
        "without": empty,
        "skill": table_skill(error, empty) if empty > 0 else None,
        "within": None,
    }


def _chart(promise: Promise, rows: list[dict[str, Any]], group: str) -> Dots:
    what = "one new group" if promise.groups else "the mean over new rows"
    dots = [Dot("promised", promise.error, promise.low, promise.high, promise.without, "")]
    for row in rows[: 1 + _MOST_DRAWN]:
        half = 2 * (row["standard_error"] or math.nan)
        ends = (row["error"] - half, row["error"] + half)
        dots.append(Dot(row["group"], row["error"], *ends, promise.without))
    return Dots(
        "Promised and measured",
        f"The promise with its {promise.level:.0%} interval, which is about {what}; measured "
        "errors with two standard errors on either side"
        + (f", the {group} with the largest first." if len(rows) > 1 else "."),
        promise.unit,
        dots,
        f"no model, when it was fitted: {number(promise.without)}",
        {"": "promised", "kept": "measured"},
    )


def _notes(promise: Promise, measured: Measured, group: str) -> list[tuple[str, str]]:
    notes = list(measured.news.notes())
    if measured.n_unlabelled:
        n = measured.n_unlabelled
        text = f"{counted(n, 'row')} without a target or {group} {verb(n, 'be')} left out."
        notes.append(("Rows that cannot be judged", text))
    if measured.new_classes:
        n = measured.new_classes
        text = f"{counted(n, 'row')} of a class that the model does not know "
        notes.append(("New classes", f"{text}{verb(n, 'count')} as wrong."))
    if promise.groups is not None and measured.groups is None:
        text = f"The promise is about a new {promise.groups}, and the rows do not tell them apart: "
        notes.append(("One group", text + "they are taken as one."))
    return notes
