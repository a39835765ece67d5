"""Plots of paths. A display holds a path and draws it when asked; Matplotlib is imported then."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, TypeVar

from sklearn.utils.validation import check_is_fitted

from holdtrue.charts.axes import draw, new_axes
from holdtrue.errors import InputTypeError, speaks
from holdtrue.evidence import Evidence
from holdtrue.path import SelectionPath

_Self = TypeVar("_Self", bound="Display")


class Display:
    """A plot of a path and its evidence; a child says in `plot` what is drawn.

    Parameters
    ----------
    path : SelectionPath
    """

    _evidence: ClassVar[type[Evidence] | None] = None

    @speaks
    def __init__(self, path: SelectionPath):
        if not isinstance(path, SelectionPath):
            raise InputTypeError(
                f"expected a SelectionPath. Got {type(path).__name__}. "
                f"For a fitted estimator call {type(self).__name__}.from_estimator."
            )
        if self._evidence is not None:
            path.evidence_as(self._evidence)
        self.path = path

    @classmethod
    @speaks
    def from_estimator(cls: type[_Self], estimator: Any, **options: Any) -> _Self:
        """Draw the ``path_`` of a fitted estimator; options are those of `plot`."""
        check_is_fitted(estimator)
        path = getattr(estimator, "path_", None)
        if path is None:
            raise InputTypeError(
                f"expected an estimator with path_. Got {type(estimator).__name__}."
            )
        return cls.from_path(path, **options)

    @classmethod
    @speaks
    def from_path(cls: type[_Self], path: SelectionPath, **options: Any) -> _Self:
        """Draw a path; options are those of `plot`."""
        return cls(path).plot(**options)

    def plot(self: _Self) -> _Self:
        """Draw the path."""
        raise NotImplementedError


class PathDisplay(Display):
    """Plot of a path: the estimated error on unseen data against the number of steps.

    Build one with `from_estimator` or `from_path`; call `plot` to draw it again.

    Parameters
    ----------
    path : SelectionPath

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : matplotlib Line2D
        The estimates.

    See Also
    --------
    RankingDisplay, DomainsDisplay, CriteriaDisplay, TransferDisplay : What a family's path rests
        on.

    Examples
    --------
    >>> from holdtrue import PathDisplay, SelectionPath
    >>> path = SelectionPath([0, 1], ["dose", "age"], [1.0, 0.4, 0.5], 1, "least at 1 feature")
    >>> display = PathDisplay.from_path(path)  # doctest: +SKIP
    """

    ax_: Any
    figure_: Any
    line_: Any

    @speaks
    def plot(self, ax: Any = None) -> PathDisplay:
        """Draw the path, on ``ax`` if given."""
        ax = new_axes(size=(7, 4.2)) if ax is None else ax
        self.line_ = draw(replace(self.path.chart(), title=self.path.reason), ax)[-1]
        self.ax_, self.figure_ = ax, ax.figure
        return self
