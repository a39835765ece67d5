"""The result that every family returns: candidates in order of entry, and where to stop."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from html import escape
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike

from holdtrue.charts import Lines, Series

__all__ = ["SelectionPath", "ShowsPath"]

_FORMAT = "holdtrue.SelectionPath"
_FRAMES = ("pandas", "polars", "pyarrow")


@dataclass(frozen=True, eq=False)
class SelectionPath:
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

    if TYPE_CHECKING:  # what the constructor takes, where the fields above say what it keeps

        def __init__(
            self,
            order: ArrayLike,
            names: Iterable[str],
            scores: ArrayLike,
            chosen_size: int,
            reason: str,
            unit: str = "error",
            train_scores: ArrayLike | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        def keep(name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

        if isinstance(self.names, str):
            raise ValueError(f"SelectionPath: names must be a list of names. Got {self.names!r}.")
        for name in ("reason", "unit"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(
                    f"SelectionPath: {name} must be text. Got {getattr(self, name)!r}."
                )
        keep("order", _frozen("order", self.order, np.intp))
        keep("names", tuple(str(name) for name in self.names))
        keep("scores", _frozen("scores", self.scores, np.float64))
        keep("chosen_size", int(_frozen("chosen_size", [self.chosen_size], np.intp)[0]))
        if self.train_scores is not None:
            keep("train_scores", _frozen("train_scores", self.train_scores, np.float64))
        if (self.order < 0).any():
            raise ValueError(
                f"SelectionPath: order must name candidates by index, 0 or more. "
                f"Got {self.order.min()}."
            )

        n_steps = len(self.order)
        lengths = {"names": n_steps, "scores": n_steps + 1, "train_scores": n_steps + 1}
        for name, expected in lengths.items():
            values = getattr(self, name)
            if values is not None and len(values) != expected:
                raise ValueError(
                    f"SelectionPath: {name} must have length {expected} for {n_steps} steps. "
                    f"Got length {len(values)}. Scores start with the empty selection."
                )
        if not 0 <= self.chosen_size <= n_steps:
            raise ValueError(
                f"SelectionPath: chosen_size must be between 0 and the number of steps. "
                f"Got chosen_size={self.chosen_size} with {n_steps} steps."
            )

    @property
    def n_steps(self) -> int:
        """Number of steps explored, chosen or not."""
        return len(self.order)

    @property
    def chosen(self) -> np.ndarray:
        """Indices of the chosen candidates in order of entry, each named once."""
        return np.array(list(dict.fromkeys(self.order[: self.chosen_size].tolist())), dtype=np.intp)

    def support(self, n_candidates: int) -> np.ndarray:
        """Mask of the chosen candidates, shape (n_candidates,)."""
        if self.n_steps and n_candidates <= self.order.max():
            raise ValueError(
                f"SelectionPath.support: n_candidates must exceed every index of the path. "
                f"Got {n_candidates}, and {self.order.max()} in the path."
            )
        mask = np.zeros(n_candidates, dtype=bool)
        mask[self.order[: self.chosen_size]] = True
        return mask

    def ranking(self, n_candidates: int) -> np.ndarray:
        """Rank of every candidate by first entry, shape (n_candidates,): 1 is the best.

        Candidates that never enter share the last rank.
        """
        entered = list(dict.fromkeys(self.order.tolist()))
        rank = np.full(n_candidates, len(entered) + 1, dtype=np.intp)
        rank[entered] = np.arange(1, len(entered) + 1)
        return rank

    def to_frame(self, backend: str = "pandas") -> Any:
        """Table with one row per size, from the empty selection to the whole path.

        Parameters
        ----------
        backend : {"pandas", "polars", "pyarrow"}
            Kind of data frame. The library must be installed.

        Returns
        -------
        frame : data frame with columns size, index, name, score, train_score, chosen
            ``index`` is -1 and ``name`` empty in the row of the empty selection; ``chosen`` marks
            the sizes up to the chosen one.
        """
        if backend not in _FRAMES:
            raise ValueError(
                f"SelectionPath.to_frame: backend must be one of {', '.join(map(repr, _FRAMES))}. "
                f"Got {backend!r}."
            )
        sizes = np.arange(self.n_steps + 1)
        train = np.full(len(sizes), np.nan) if self.train_scores is None else self.train_scores
        columns = {
            "size": sizes.tolist(),
            "index": [-1, *self.order.tolist()],
            "name": ["", *self.names],
            "score": self.scores.tolist(),
            "train_score": train.tolist(),
            "chosen": (sizes <= self.chosen_size).tolist(),
        }
        try:
            return nw.from_dict(columns, backend=backend).to_native()  # type: ignore[arg-type]
        except ModuleNotFoundError as error:
            raise ImportError(
                f"SelectionPath.to_frame: backend={backend!r} needs {backend}, which is not "
                f"installed. Run `pip install {backend}` or pass another backend."
            ) from error

    def chart(self) -> Lines:
        """The path as a chart: the error on unseen data against the size of the selection."""
        sizes = range(self.n_steps + 1)
        series = [Series("estimated on unseen data", sizes, self.scores.tolist())]
        if self.train_scores is not None:
            train = Series("on the rows of the fit", sizes, self.train_scores.tolist(), "train")
            series.insert(0, train)
        return Lines(
            "Estimated error along the path",
            f"{self.chosen_size} of {self.n_steps} steps chosen: {self.reason}.",
            "size of the selection",
            self.unit,
            series,
            chosen=self.chosen_size,
        )

    def _repr_html_(self) -> str:
        """Picture of the path, for notebooks."""
        steps = [escape(name) for name in self.names[: self.chosen_size]]
        shown = ", ".join(steps[:12]) + (f" and {len(steps) - 12} more" if len(steps) > 12 else "")
        return (
            f"<figure style='margin:0;max-width:720px'>{self.chart().svg()}<figcaption>"
            f"{escape(self.reason)}{': ' if steps else ''}{shown}</figcaption></figure>"
        )

    def to_json(self) -> str:
        """The path as strict JSON; `from_json` gives back an equal path, to the last bit."""
        return json.dumps(
            {
                "format": _FORMAT,
                "version": 1,
                "order": self.order.tolist(),
                "names": list(self.names),
                "scores": [_to_json_number(score) for score in self.scores],
                "chosen_size": self.chosen_size,
                "reason": self.reason,
                "unit": self.unit,
                "train_scores": None
                if self.train_scores is None
                else [_to_json_number(score) for score in self.train_scores],
            },
            allow_nan=False,
            ensure_ascii=False,
        )

    @classmethod
    def from_json(cls, text: str) -> SelectionPath:
        """Path written by `to_json`. Anything else is refused with a `ValueError`."""
        try:
            record = json.loads(text, parse_constant=_not_json)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"SelectionPath.from_json: this is not JSON ({error}).") from error
        if not isinstance(record, dict) or record.get("format") != _FORMAT:
            raise ValueError(
                f"SelectionPath.from_json: expected an object with format={_FORMAT!r}. "
                "Pass the text that SelectionPath.to_json wrote."
            )
        if record.get("version") != 1:
            raise ValueError(
                "SelectionPath.from_json: this holdtrue reads version 1. "
                f"Got version {record.get('version')!r}. Update holdtrue to read it."
            )
        try:
            train_scores = record["train_scores"]
            return cls(
                order=np.array([_whole(index) for index in record["order"]], dtype=np.intp),
                names=tuple(_text(name) for name in _list(record["names"])),
                scores=_from_json_numbers(record["scores"]),
                chosen_size=_whole(record["chosen_size"]),
                reason=_text(record["reason"]),
                unit=_text(record["unit"]),
                train_scores=None if train_scores is None else _from_json_numbers(train_scores),
            )
        except (KeyError, TypeError, OverflowError) as error:
            raise ValueError(
                f"SelectionPath.from_json: the field {error} is missing or of the wrong type. "
                "The file is damaged; write it again with SelectionPath.to_json."
            ) from error

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, so that a copy's arrays are read-only too.
        return SelectionPath, tuple(getattr(self, field.name) for field in fields(self))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SelectionPath):
            return NotImplemented
        if (self.train_scores is None) != (other.train_scores is None):
            return False
        return (
            (self.names, self.chosen_size, self.reason, self.unit)
            == (other.names, other.chosen_size, other.reason, other.unit)
            and np.array_equal(self.order, other.order)
            and np.array_equal(self.scores, other.scores, equal_nan=True)
            and (
                self.train_scores is None
                or other.train_scores is None
                or np.array_equal(self.train_scores, other.train_scores, equal_nan=True)
            )
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"SelectionPath({self.chosen_size} of {self.n_steps} steps chosen: {self.reason})"


class ShowsPath:
    """Estimators whose view in a notebook adds the path to scikit-learn's diagram."""

    def _html_repr(self) -> str:
        diagram: str = super()._html_repr()  # type: ignore[misc]
        path = getattr(self, "path_", None)
        return diagram if path is None else diagram + path._repr_html_()


def _frozen(name: str, values: Any, dtype: type) -> np.ndarray:
    """Own, read-only, one-dimensional copy; indices must be whole."""
    given = np.asarray(values)
    array: np.ndarray = given.astype(dtype)
    if array.ndim != 1 or (dtype is np.intp and (array != given).any()):
        kind = "whole numbers" if dtype is np.intp else "numbers"
        raise ValueError(f"SelectionPath: {name} must be a list of {kind}. Got {values!r}.")
    array.flags.writeable = False
    return array


def _to_json_number(value: float) -> float | str:
    """A float as JSON has it; what JSON cannot say (inf, nan) becomes its name."""
    return float(value) if math.isfinite(value) else str(float(value))


def _from_json_numbers(values: Iterable[Any]) -> np.ndarray:
    numbers = []
    for value in values:
        if not (type(value) in (int, float) or value in ("inf", "-inf", "nan")):
            raise TypeError(f"scores ({value!r})")
        numbers.append(float(value))
    return np.array(numbers, dtype=np.float64)


def _not_json(name: str) -> None:
    raise ValueError(f"{name} is no JSON number")


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"order or chosen_size ({value!r})")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"names ({value!r})")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"text ({value!r})")
    return value
