"""The answer of `holdtrue size`: how many terms, and whether the criteria agree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from holdtrue.charts import Chart, Lines, Series, number
from holdtrue.model_size.table import UNITS, agreement
from holdtrue.report.answers.words import count, listed, sentence, verb
from holdtrue.report.summary import Summary, Table

_FEW_UNLABELLED = 30


def size_summary(
    model: Any,
    x: np.ndarray,
    y: np.ndarray,
    *,
    x_names: Sequence[str],
    y_name: str,
    n_unlabelled: int = 0,
) -> Summary:
    """Summary of a fitted `NestedRegressor`.

    Parameters
    ----------
    model : fitted NestedRegressor
    x : ndarray of shape (n_samples, n_inputs)
    y : ndarray of shape (n_samples,)
    x_names : sequence of str
    y_name : str
    n_unlabelled : int
        Rows without a target that the fit was given.
    """
    path, choices = model.path_, model.choices_
    size, criterion = model.n_terms_, model.criterion_
    by_choice = sorted(choices, key=lambda name: (choices[name], name))
    rows = [
        {
            "criterion": name,
            "chooses": choices[name],
            "estimate": float(model.criteria_[name][choices[name] - 1]),
            "unit": UNITS.get(name, "mean squared error"),
        }
        for name in by_choice
    ]
    columns = {
        "criterion": "criterion",
        "chooses": "chooses",
        "estimate": "estimate there",
        "unit": "of",
    }
    estimate = model.criteria_[criterion][size - 1]
    mean = float(np.mean((y - y.mean()) ** 2))
    expected = float(model.criteria_["dee" if criterion in UNITS else criterion][size - 1])
    answer = (
        f"{len(y)} points afford {count(size, 'term')} of {model.criteria_['n_terms'][-1]} "
        f"({criterion}: {number(float(estimate))}), where a constant has a mean squared error of "
        f"{number(mean)}. Do the criteria agree? {sentence(agreement(choices))}."
    )
    charts: list[Chart] = []
    if x.shape[1] == 1:
        grid = np.linspace(x.min(), x.max(), 200)
        charts.append(
            Lines(
                "The points and the curve",
                f"{len(y)} points with a curve of {count(size, 'term')}.",
                x_names[0],
                y_name,
                [
                    Series("points", x[:, 0].tolist(), y.tolist(), "points"),
                    Series(
                        f"{count(size, 'term')}",
                        grid.tolist(),
                        model.predict(grid[:, None]).tolist(),
                    ),
                ],
                whole=False,
            )
        )
    charts.append(path.chart())
    charts.append(_criteria_chart(model))
    return Summary(
        command="size",
        question=f"How large a model of {y_name!r} can {len(y)} points afford?",
        answer=answer,
        path=path,
        table=Table("What each criterion would choose", columns, rows, tuple(columns)),
        charts=charts,
        wary=_size_notes(model, expected, mean, n_unlabelled),
    )


def _criteria_chart(model: Any) -> Chart:
    sizes = model.criteria_["n_terms"].tolist()
    others = [n for n in ("dee", "adj", "cv", "bayes", "seb", "bic") if n in model.choices_]
    series = [
        Series(name, sizes, model.criteria_[name].tolist(), "other")
        for name in others
        if name != model.criterion_
    ]
    if model.criterion_ not in UNITS:  # the others have units of their own
        own = model.criteria_[model.criterion_].tolist()
        series.append(Series(model.criterion_, sizes, own))
    series.append(Series("on these points", sizes, model.criteria_["train"].tolist(), "train"))
    return Lines(
        "Criteria along the sizes",
        f"{sentence(agreement(model.choices_))}.",
        "terms",
        "mean squared error",
        series,
        chosen=model.n_terms_,
    )


def _size_notes(
    model: Any, expected: float, mean: float, n_unlabelled: int
) -> list[tuple[str, str]]:
    notes = []
    sizes = sorted(model.choices_.values())
    # One voice in five at either end does not make a quarrel.
    fifth = len(sizes) // 5
    least, most = sizes[fifth], sizes[-1 - fifth]
    if most > 1.5 * least and most > least + 2:
        low = [name for name, size in model.choices_.items() if size <= least]
        high = [name for name, size in model.choices_.items() if size >= most]
        notes.append(
            (
                "Criteria disagree",
                f"{listed(low)} {verb(len(low), 'choose')} {least} or fewer, {listed(high)} "
                f"{most} or more. Between them the sample does not decide: look at the curves "
                "before you rely on one size.",
            )
        )
    if expected > 0.95 * mean:
        notes.append(
            (
                "Hardly better than a constant",
                f"The estimate, {number(expected)}, is close to the variance, {number(mean)}.",
            )
        )
    if model.n_terms_ == model.criteria_["n_terms"][-1]:
        notes.append(
            (
                "The largest size was chosen",
                "A larger model might be better still: pass --max-terms if the sample allows.",
            )
        )
    if 0 < n_unlabelled < _FEW_UNLABELLED:
        users = [name for name in ("dee", "adj", "bayes") if name in model.choices_]
        notes.append(
            (
                "Few rows without a target",
                f"{listed(users)} judge the sizes at {count(n_unlabelled, 'row')} only. Leave "
                f"{'it' if n_unlabelled == 1 else 'them'} out to have them judged over the range "
                "of the points.",
            )
        )
    return notes
