"""The answer of `holdtrue size`: how many terms, and whether the criteria agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from holdtrue.charts import Chart, number
from holdtrue.errors import counted
from holdtrue.evidence import SizeEvidence
from holdtrue.model_size.display import choices_chart, criteria_chart, curve_chart
from holdtrue.model_size.table import UNITS, agreement
from holdtrue.path import SelectionPath
from holdtrue.report.summary import (
    Summary,
    Table,
    capitalised,
    listed,
    skill_words,
    table_skill,
    verb,
)

_FEW_UNLABELLED = 30
_HARDLY_BETTER = 0.05  # skill against a constant


def size_summary(
    path: SelectionPath,
    x: np.ndarray,
    y: np.ndarray,
    *,
    predict: Callable[[np.ndarray], Any],
    x_names: Sequence[str],
    y_name: str,
    n_unlabelled: int = 0,
    promise: Any = None,
) -> Summary:
    """Summary of the path of `NestedRegressor`, fitted to these points.

    ``predict`` gives the curve at inputs of shape (n_points, n_inputs), or the curve and its
    deviations. ``n_unlabelled`` rows without a target were given to the fit. The ``promise`` of a
    model that is saved takes the place of the estimate, which becomes a note.
    """
    evidence = path.evidence_as(SizeEvidence)
    choices, size = evidence.choices, path.chosen_size
    constant = float(evidence.criteria["train"][0])  # of the rows that the fit has kept
    names = sorted(choices, key=lambda name: (choices[name], name))
    estimates = {name: _estimate(evidence, name, choices[name]) for name in names}
    skills = [None if name in UNITS else table_skill(estimates[name], constant) for name in names]
    columns: dict[str, tuple[str, Any]] = {
        "criterion": ("criterion", names),
        "chooses": ("chooses", [choices[name] for name in names]),
        "estimate": ("estimate there", estimates.values()),
        "skill": ("skill", skills),
        "unit": ("of", [UNITS.get(name, "mean squared error") for name in names]),
    }
    judge, expected = "those left out", evidence.new_error
    if np.isnan(expected):  # one size predicts; dee stands in for criteria with units of their own
        judge = "dee" if evidence.criterion in UNITS else evidence.criterion
        expected = _estimate(evidence, judge, size)
    estimate = f"mean squared error of {number(expected)} at new points (judged by {judge}), where "
    estimate += f"a constant has {number(constant)}{skill_words(expected, constant)}"
    wary = _notes(evidence, size, expected, constant, n_unlabelled)
    if promise is not None:
        text = f"The fit to all points has an estimated {estimate}. The expected error comes from "
        wary.append(("Another estimate", text + "fits without parts of the points."))
    answer = f"{len(y)} points afford {counted(size, 'term')} of {evidence.n_terms[-1]}. "
    answer += f"Expect a {promise or estimate}."
    if len(choices) > 1:
        answer += f" Do the criteria agree? {capitalised(agreement(choices))}."
    charts: list[Chart] = [path.chart(), criteria_chart(path), choices_chart(path)]
    if x.shape[1] == 1:
        charts.insert(0, curve_chart(x[:, 0], y, size, predict, x_names[0], y_name))
    return Summary(
        command="size",
        question=f"How large a model of {y_name!r} can {len(y)} points afford?",
        answer=answer,
        path=path,
        table=Table.from_columns(
            "What each criterion would choose. Skill: the share of the error of a constant that "
            "goes.",
            columns,
        ),
        charts=charts,
        wary=wary,
    )


def _estimate(evidence: SizeEvidence, name: str, size: int) -> float:
    return float(evidence.criteria[name][size - 1])


def _notes(
    evidence: SizeEvidence, size: int, expected: float, constant: float, n_unlabelled: int
) -> list[tuple[str, str]]:
    notes = []
    sizes = sorted(evidence.choices.values())
    # A fifth of the criteria at either end may differ before they are said to disagree.
    fifth = len(sizes) // 5
    least, most = sizes[fifth], sizes[-1 - fifth]
    if most > 1.5 * least and most > least + 2:
        low = [name for name, choice in evidence.choices.items() if choice <= least]
        high = [name for name, choice in evidence.choices.items() if choice >= most]
        text = f"{listed(low)} {verb(len(low), 'choose')} {least} or fewer, {listed(high)} {most} "
        text += "or more. Between them the sample does not decide: look at the curves before you "
        notes.append(("Criteria disagree", text + "rely on one size."))
    if expected > (1 - _HARDLY_BETTER) * constant:
        text = f"The estimate, {number(expected)}, is close to the variance, {number(constant)}."
        notes.append(("Hardly better than a constant", text))
    if size == evidence.n_terms[-1]:
        text = "A larger model might be better still: pass --max-terms if the sample allows."
        notes.append(("The largest size was chosen", text))
    if 0 < n_unlabelled < _FEW_UNLABELLED:
        users = [name for name in ("dee", "adj", "bayes") if name in evidence.choices]
        text = f"{listed(users)} judge the sizes at {counted(n_unlabelled, 'row')} only. Leave "
        text += "it" if n_unlabelled == 1 else "them"
        text += " out to have them judged over the range of the points."
        notes.append(("Few rows without a target", text))
    return notes
