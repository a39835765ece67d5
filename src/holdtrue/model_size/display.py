"""Pictures of a fitted `NestedRegressor`: every criterion on one path."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from holdtrue.charts import Dot, Dots, Lines, Series
from holdtrue.charts.axes import draw, new_axes
from holdtrue.display import Display
from holdtrue.errors import InputError, speaks
from holdtrue.evidence import SizeEvidence
from holdtrue.model_size.table import UNITS, agreement
from holdtrue.path import SelectionPath

__all__ = ["CriteriaDisplay", "choices_chart", "compare_criteria", "criteria_chart"]


def criteria_chart(path: SelectionPath) -> Lines:
    """Every criterion that estimates the squared error, size by size, and the training error."""
    evidence = path.evidence_as(SizeEvidence)
    sizes = evidence.n_terms.tolist()
    others = [name for name in evidence.choices if name not in (*UNITS, evidence.criterion)]
    series = [Series(name, sizes, evidence.criteria[name].tolist(), "other") for name in others]
    series.append(Series("on these points", sizes, evidence.criteria["train"].tolist(), "train"))
    if evidence.criterion not in UNITS:  # a criterion with a unit of its own has no curve here
        values = evidence.criteria[evidence.criterion].tolist()
        series.append(Series(evidence.criterion, sizes, values))
    clause = agreement(evidence.choices)
    return Lines(
        title="Criteria along the sizes",
        text=f"{clause[0].upper()}{clause[1:]}.",
        x_label="number of terms",
        y_label="mean squared error",
        series=series,
        chosen=path.chosen_size,
        chosen_label=f"chosen: {path.chosen_size} terms",
    )


def choices_chart(path: SelectionPath) -> Dots:
    """The size that each criterion chooses, smallest first."""
    evidence = path.evidence_as(SizeEvidence)
    choices = evidence.choices
    return Dots(
        title="The size that each criterion chooses",
        text=f"The dashed line is the size that was chosen, by {evidence.criterion}.",
        x_label="number of terms",
        dots=[
            Dot(
                name,
                choices[name],
                reference=path.chosen_size,
                mark="kept" if name == evidence.criterion else "",
                note=str(choices[name]),
            )
            for name in sorted(choices, key=lambda name: (choices[name], name))
        ],
        reference_label=f"chosen: {path.chosen_size}",
        legend={"kept": "the criterion that chose", "": "the others"},
    )


class CriteriaDisplay(Display):
    """Plot of every criterion on one path: the estimates above, each one's choice below.

    Parameters
    ----------
    path : SelectionPath
        Of a fitted `NestedRegressor`.

    Attributes
    ----------
    axes_ : pair of matplotlib Axes
    figure_ : matplotlib Figure

    See Also
    --------
    compare_criteria : The same in one call.
    PathDisplay : The criterion that chose, alone.

    Examples
    --------
    >>> from holdtrue import CriteriaDisplay, NestedRegressor
    >>> from holdtrue.datasets import make_curve
    >>> data = make_curve("four_terms", n_samples=30, random_state=0)
    >>> model = NestedRegressor(random_state=0).fit(data.X, data.y)
    >>> CriteriaDisplay.from_estimator(model)  # doctest: +SKIP
    """

    _evidence = SizeEvidence
    axes_: Any
    figure_: Any

    @property
    def answer(self) -> str:
        """Whether the criteria agree, in a sentence."""
        evidence = self.path.evidence_as(SizeEvidence)
        chosen = evidence.choices[evidence.criterion]
        return f"{evidence.criterion} chooses {chosen}; {agreement(evidence.choices)}"

    @speaks
    def plot(self, axes: Any = None) -> CriteriaDisplay:
        """Draw the comparison, on a pair of axes if given."""
        axes = new_axes(2, size=(7.5, 7), sharex=True) if axes is None else axes
        if np.size(axes) != 2:
            raise InputError(
                "axes must be a pair, for the estimates and for the choices. "
                f"Got {axes!r}. Make one with plt.subplots(2, 1, sharex=True)."
            )
        above, below = np.ravel(axes)
        draw(replace(criteria_chart(self.path), title=self.answer), above)
        draw(choices_chart(self.path), below)
        self.axes_, self.figure_ = axes, above.figure
        return self


@speaks
def compare_criteria(estimator: Any, *, axes: Any = None) -> CriteriaDisplay:
    """Plot every criterion on the path of a fitted `NestedRegressor`, its choice marked.

    Parameters
    ----------
    estimator : NestedRegressor
        Fitted.
    axes : pair of matplotlib Axes, optional
        For the estimates and for the choices.

    Returns
    -------
    display : CriteriaDisplay
        ``display.answer`` says in a sentence whether the criteria agree.

    See Also
    --------
    CriteriaDisplay : The plot, from a path.

    Examples
    --------
    >>> from holdtrue import NestedRegressor, compare_criteria
    >>> from holdtrue.datasets import make_curve
    >>> data = make_curve("four_terms", n_samples=30, random_state=0)
    >>> model = NestedRegressor(random_state=0).fit(data.X, data.y)
    >>> compare_criteria(model).answer  # doctest: +SKIP
    """
    return CriteriaDisplay.from_estimator(estimator, axes=axes)
