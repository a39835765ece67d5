"""Pictures of a fitted `NestedRegressor`: its curve, and every criterion on one path."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted, check_X_y

from holdtrue.charts import Dot, Dots, Lines, Series
from holdtrue.charts.axes import draw, new_axes
from holdtrue.errors import InputError, counted, speaks
from holdtrue.evidence import SizeEvidence
from holdtrue.model_size.table import UNITS, agreement
from holdtrue.path import Display, SelectionPath

__all__ = ["CriteriaDisplay", "choices_chart", "compare_criteria", "criteria_chart", "curve_chart"]


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
        chosen_label=f"chosen: {counted(path.chosen_size, 'term')}",
    )


def choices_chart(path: SelectionPath) -> Dots:
    """The size that each criterion chooses, smallest first."""
    evidence = path.evidence_as(SizeEvidence)
    return Dots(
        title="The size that each criterion chooses",
        text=f"The dashed line is the size that was chosen, by {evidence.criterion}.",
        x_label="number of terms",
        dots=[
            Dot(
                name,
                size,
                reference=path.chosen_size,
                mark="kept" if name == evidence.criterion else "",
                note=str(size),
            )
            for size, name in sorted((size, name) for name, size in evidence.choices.items())
        ],
        reference_label=f"chosen: {path.chosen_size}",
        legend={"kept": "the criterion that chose", "": "the others"},
    )


def curve_chart(
    x: np.ndarray,
    y: np.ndarray,
    size: int,
    predict: Callable[[np.ndarray], Any],
    x_name: str,
    y_name: str,
) -> Lines:
    """The points, and the curve through them: of one size, or an average with its band.

    ``predict`` leads from inputs, shape (n, 1), to predictions, or to these and their deviations.
    """
    grid = np.linspace(x.min(), x.max(), 200)
    curve = predict(grid[:, None])
    label = counted(size, "term")
    shown = f"a curve of {label}"
    low = high = ()
    if isinstance(curve, tuple):
        curve, deviation = curve
        label = "average, with two deviations on either side"
        shown = "the average over all sizes, between two deviations on either side"
        low, high = ((curve + side * deviation).tolist() for side in (-2, 2))
    return Lines(
        title="The points and the curve",
        text=f"{len(y)} points with {shown}.",
        x_label=x_name,
        y_label=y_name,
        series=[
            Series("points", x.tolist(), y.tolist(), "points"),
            Series(label, grid.tolist(), curve.tolist(), "main", low, high),
        ],
        whole=False,
        scale="plain",
    )


class CriteriaDisplay(Display):
    """Plot of every criterion on one path: the estimates above, each one's choice below.

    Made by `compare_criteria`; with the points of one input, the curve through them stands on the
    left.

    Parameters
    ----------
    path : SelectionPath
        Of a fitted `NestedRegressor`.

    Attributes
    ----------
    axes_ : array of matplotlib Axes
    figure_ : matplotlib Figure

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

    @classmethod
    @speaks
    def from_estimator(
        cls, estimator: Any, X: Any = None, y: Any = None, **options: Any
    ) -> CriteriaDisplay:
        """Draw a fitted `NestedRegressor`, and its curve over the points if they are given."""
        if X is None and y is None:
            return super().from_estimator(estimator, **options)
        check_is_fitted(estimator)
        if X is None or y is None:
            raise InputError("X and y must be given together. Got one of them.")
        X, y = check_X_y(X, y)
        if X.shape[1] != 1:
            raise InputError(
                f"a curve needs one input. Got X with {X.shape[1]} columns. Leave X and y out."
            )
        band = bool(np.isfinite(estimator.new_error_))

        def predict(grid: np.ndarray) -> Any:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "X does not have valid feature names")
                return estimator.predict(grid, return_std=band)

        (name,) = getattr(estimator, "feature_names_in_", ["x"])
        curve = curve_chart(X[:, 0], y, estimator.n_terms_, predict, str(name), "y")
        return super().from_estimator(estimator, curve=curve, **options)

    @speaks
    def plot(self, axes: Any = None, *, curve: Lines | None = None) -> CriteriaDisplay:
        """Draw the comparison, on a pair of axes if given, or on three with a curve."""
        if axes is None:
            two = curve is None
            axes = (
                new_axes(2, size=(7.5, 7), sharex=True) if two else new_axes(1, 3, size=(15, 4.6))
            )
        wanted = ("a pair, for ", 2) if curve is None else ("three, for the curve, ", 3)
        if np.size(axes) != wanted[1]:
            raise InputError(
                f"axes must be {wanted[0]}the estimates and the choices. Got {axes!r}. Make them "
                f"with plt.subplots({wanted[1]}, 1)."
            )
        *first, estimates, choices = np.ravel(axes)
        chart = criteria_chart(self.path)
        if curve is None:
            chart = replace(chart, title=self.answer)
        else:
            draw(replace(curve, title=""), first[0])
            first[0].figure.suptitle(self.answer, x=0.01, ha="left", fontsize="medium")
        draw(chart, estimates)
        draw(choices_chart(self.path), choices)
        self.axes_, self.figure_ = axes, estimates.figure
        return self


@speaks
def compare_criteria(
    estimator: Any, X: Any = None, y: Any = None, *, axes: Any = None
) -> CriteriaDisplay:
    """Plot every criterion on the path of a fitted `NestedRegressor`, its choice marked.

    ``answer`` of what it returns says in a sentence whether the criteria agree.

    Parameters
    ----------
    estimator : NestedRegressor
        Fitted.
    X, y : array-like of shape (n_samples, 1) and (n_samples,), optional
        Points to draw with the curve, of one input.
    axes : array of matplotlib Axes, optional
        For the estimates and for the choices, before them one for the curve if there are points.

    Examples
    --------
    >>> from holdtrue import NestedRegressor, compare_criteria
    >>> from holdtrue.datasets import make_curve
    >>> data = make_curve("four_terms", n_samples=30, random_state=0)
    >>> model = NestedRegressor(random_state=0).fit(data.X, data.y)
    >>> compare_criteria(model, data.X, data.y).answer  # doctest: +SKIP
    """
    return CriteriaDisplay.from_estimator(estimator, X, y, axes=axes)
