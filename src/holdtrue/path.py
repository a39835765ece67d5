"""The result that every family returns: candidates in order of entry, where to stop, a picture."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike

from holdtrue.charts import Lines, Series, svg
from holdtrue.charts.axes import draw, new_axes
from holdtrue.errors import (
    InputError,
    InputTypeError,
    MissingPackageError,
    check_choice,
    shown,
    speaking_as,
    speaks,
)
from holdtrue.evidence import Evidence
from holdtrue.records import Document

_Evidence = TypeVar("_Evidence", bound=Evidence)
_Method = TypeVar("_Method", bound=Callable[..., Any])
_Self = TypeVar("_Self", bound="Display")
_FRAMES = ("pandas", "polars", "pyarrow")


@dataclass(frozen=True, eq=False)
class SelectionPath(Document):
    """Candidates in the order in which they enter, each step's error, and the size that was chosen.

    Plots, reports and the command line read only this. A path cannot be changed, and its arrays
    are read-only.

    Parameters
    ----------
    order : array-like of int, shape (n_steps,)
        Index of the candidate that enters at each step, over the whole path explored. A
        stagewise path may name one twice.
    names : sequence of str, length n_steps
        The candidates' names, step by step.
    scores : array-like of float, shape (n_steps + 1,)
        Estimate of the error on unseen data of each size; ``scores[0]`` is the empty selection.
        Lower is better. ``inf`` marks a size that is never chosen, ``nan`` one that was not scored.
    chosen_size : int
        How many steps to take.
    reason : str
        Why the path stops there, in words.
    unit : str
        What ``scores`` measures, such as ``"mean squared error"``.
    train_scores : array-like of float, shape (n_steps + 1,), optional
        The error on the rows of the fit, size by size, in the same unit.
    evidence : Evidence, optional
        What the path rests on, in the class of its family (`holdtrue.evidence`).

    Attributes
    ----------
    skill : ndarray of float, shape (n_steps + 1,)
        ``1 - scores / scores[0]``: 1 is perfect, 0 no better than the empty selection, below 0
        harmful. For squared errors it is R² on unseen data.

    See Also
    --------
    PathDisplay : Draws a path.

    Examples
    --------
    >>> path = SelectionPath(
    ...     order=[2, 0], names=["dose", "age"], scores=[1.0, 0.4, 0.5], chosen_size=1,
    ...     reason="the error is least at 1 feature", unit="mean squared error")
    >>> path
    SelectionPath(1 of 2 steps chosen: the error is least at 1 feature)
    >>> path.chosen
    array([2])
    >>> SelectionPath.from_json(path.to_json()) == path
    True
    """

    order: np.ndarray
    names: tuple[str, ...]
    scores: np.ndarray
    chosen_size: int
    reason: str
    unit: str = "error"
    train_scores: np.ndarray | None = None
    evidence: Evidence | None = None
    _noun: ClassVar[str] = "path"

    if TYPE_CHECKING:  # what the constructor takes, where the fields above say what it keeps

        @speaks
        def __init__(
            self,
            order: ArrayLike,
            names: Iterable[str],
            scores: ArrayLike,
            chosen_size: int,
            reason: str,
            unit: str = "error",
            train_scores: ArrayLike | None = None,
            evidence: Evidence | None = None,
        ) -> None: ...

    @speaks
    def __post_init__(self) -> None:
        super().__post_init__()
        for name, dtype in (("order", np.intp), ("scores", float), ("train_scores", float)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _frozen(name, getattr(self, name), dtype))
        if (self.order < 0).any():
            raise InputError(
                f"order must name candidates by index, 0 or more. Got {self.order.min()}."
            )

        n_steps = len(self.order)
        lengths = {"names": n_steps, "scores": n_steps + 1, "train_scores": n_steps + 1}
        for name, expected in lengths.items():
            values = getattr(self, name)
            if values is not None and len(values) != expected:
                raise InputError(
                    f"{name} must have length {expected} for {n_steps} steps. "
                    f"Got length {len(values)}. Scores start with the empty selection."
                )
        if not 0 <= self.chosen_size <= n_steps:
            raise InputError(
                f"chosen_size must be between 0 and the number of steps. "
                f"Got chosen_size={self.chosen_size} with {n_steps} steps."
            )

    @property
    def n_steps(self) -> int:
        """Number of steps explored, chosen or not."""
        return len(self.order)

    @property
    def skill(self) -> np.ndarray:
        """Share of the empty selection's error that each size removes, shape (n_steps + 1,)."""
        return skill_of(self.scores, self.scores[0])

    @property
    def chosen(self) -> np.ndarray:
        """Indices of the chosen candidates in order of entry, each named once."""
        return np.array(list(dict.fromkeys(self.order[: self.chosen_size].tolist())), dtype=np.intp)

    @property
    def size_words(self) -> str:
        """How far the path goes: steps, and features where a stagewise path names some twice."""
        words, n_features = f"{self.chosen_size} of {self.n_steps} steps", len(self.chosen)
        if n_features < self.chosen_size:
            words += f", with {n_features} feature{'s' * (n_features > 1)}"
        return words

    def evidence_as(self, kind: type[_Evidence]) -> _Evidence:
        """The evidence, which must be of this class: a path of another family is refused."""
        if not isinstance(self.evidence, kind):
            given = type(self.evidence).__name__ if self.evidence else "no evidence"
            raise InputTypeError(f"expected a path with {kind.__name__}. Got one with {given}.")
        return self.evidence

    @speaks
    def support(self, n_candidates: int) -> np.ndarray:
        """Mask of the chosen candidates, shape (n_candidates,)."""
        self._check_holds(n_candidates)
        mask = np.zeros(n_candidates, dtype=bool)
        mask[self.order[: self.chosen_size]] = True
        return mask

    @speaks
    def ranking(self, n_candidates: int) -> np.ndarray:
        """Rank of every candidate by first entry, shape (n_candidates,): 1 is the best.

        Candidates that never enter share the last rank.
        """
        self._check_holds(n_candidates)
        entered = list(dict.fromkeys(self.order.tolist()))
        rank = np.full(n_candidates, len(entered) + 1, dtype=np.intp)
        rank[entered] = np.arange(1, len(entered) + 1)
        return rank

    def _check_holds(self, n_candidates: int) -> None:
        if n_candidates <= self.order.max(initial=-1):
            raise InputError(
                f"n_candidates must exceed every index of the path. "
                f"Got {n_candidates}, and {self.order.max()} in the path."
            )

    @speaks
    def to_frame(self, backend: str = "pandas") -> Any:
        """Table with one row per size, from the empty selection to the whole path.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}
            Kind of data frame. The library must be installed.

        Returns
        -------
        frame : data frame with columns size, index, name, score, skill, train_score, chosen
            ``index`` is -1 and ``name`` empty in the row of the empty selection; ``chosen`` marks
            the sizes up to the chosen one.
        """
        sizes = np.arange(self.n_steps + 1)
        train = np.full(len(sizes), np.nan) if self.train_scores is None else self.train_scores
        columns = {
            "size": sizes.tolist(),
            "index": [-1, *self.order.tolist()],
            "name": ["", *self.names],
            "score": self.scores.tolist(),
            "skill": self.skill.tolist(),
            "train_score": train.tolist(),
            "chosen": (sizes <= self.chosen_size).tolist(),
        }
        return data_frame(columns, backend)

    @speaks
    def chart(self) -> Lines:
        """The path as a chart: the error on unseen data against the size of the selection."""
        sizes = range(self.n_steps + 1)
        series = [Series("estimated on unseen data", sizes, self.scores.tolist())]
        if self.train_scores is not None:
            train = Series("on the rows of the fit", sizes, self.train_scores.tolist(), "train")
            series.insert(0, train)
        return Lines(
            "Estimated error along the path",
            f"{self.size_words}: {self.reason}.",
            "steps taken",
            self.unit,
            series,
            chosen=self.chosen_size,
            chosen_label=f"chosen: {self.size_words}",
        )

    def _repr_html_(self) -> str:
        """Picture of the path, for notebooks."""
        steps = [escape(name) for name in dict.fromkeys(self.names[: self.chosen_size])]
        listed = ", ".join(steps[:12]) + (f" and {len(steps) - 12} more" if len(steps) > 12 else "")
        return (
            f"<figure style='margin:0;max-width:720px'>{svg.draw(self.chart())}<figcaption>"
            f"{escape(self.reason)}{': ' if steps else ''}{listed}</figcaption></figure>"
        )

    def __repr__(self) -> str:
        return f"SelectionPath({self.chosen_size} of {self.n_steps} steps chosen: {self.reason})"


class ShowsPath:
    """Estimators with a path, which is added to scikit-learn's diagram in a notebook."""

    path_: SelectionPath

    def __sklearn_is_fitted__(self) -> bool:
        return any(name.endswith("_") and name != "path_" for name in vars(self))

    def _html_repr(self) -> str:
        diagram: str = super()._html_repr()  # type: ignore[misc]
        path = getattr(self, "path_", None)
        return diagram if path is None else diagram + path._repr_html_()


def fits_whole(method: _Method) -> _Method:
    """Decorate a public method that fits: its errors begin with its class's name, as by `speaks`.

    A fit is whole or not there. It starts with nothing of an earlier one; an error leaves the
    estimator as it was before, an interruption leaves it unfitted with the path so far.
    """

    @functools.wraps(method)
    def fit(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            _unfit(self)
            with speaking_as(type(self).__name__):
                return method(self, *args, **kwargs)
        except Exception:
            vars(self).update(before)
            for name in vars(self).keys() - before.keys():
                delattr(self, name)
            raise
        except BaseException:
            path = vars(self).get("path_")
            _unfit(self)
            if isinstance(self, ShowsPath):
                so_far = path is not None and path.reason == _INTERRUPTED.reason
                self.path_ = path if so_far else _INTERRUPTED
            raise

    return fit  # type: ignore[return-value]


def _unfit(estimator: Any) -> None:
    """Remove the attributes of a fit; private ones mean nothing without them."""
    for name in [name for name in vars(estimator) if name.endswith("_")]:
        delattr(estimator, name)


def data_frame(columns: dict[str, Any], backend: str) -> Any:
    """The columns as a data frame of "pandas", "polars" or "pyarrow"."""
    check_choice("backend", backend, _FRAMES)
    try:
        return nw.from_dict(columns, backend=backend).to_native()  # type: ignore[arg-type]
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            f"backend={backend!r} needs {backend}, which is not "
            f"installed. Run `pip install {backend}` or pass another backend."
        ) from error


def skill_of(score: ArrayLike, empty: float) -> np.ndarray:
    """``1 - score / empty``, and 0 where both are 0."""
    scores = np.asarray(score, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((scores == 0) & (empty == 0), 0.0, 1 - scores / np.float64(empty))


def _frozen(name: str, given: np.ndarray, dtype: type) -> np.ndarray:
    """Read-only, one-dimensional copy; indices must be whole."""
    with np.errstate(invalid="ignore"):  # of numbers beyond the range of indices
        array: np.ndarray = given.astype(dtype)
    if array.ndim != 1 or (dtype is np.intp and (array != given).any()):
        kind = "whole numbers" if dtype is np.intp else "numbers"
        raise InputError(f"{name} must be a list of {kind}. Got {shown(given.tolist())}.")
    array.flags.writeable = False
    return array


_INTERRUPTED = SelectionPath((), (), (np.nan,), 0, "interrupted")


# --- displays -------------------------------------------------------------------------------------


class Display:
    """A plot of a path and its evidence, drawn when asked; a child says in `plot` what is drawn.

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
        from sklearn.utils.validation import check_is_fitted

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
