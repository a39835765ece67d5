"""One source: a fitted model, a callable or a column of X, as one or more columns of scores."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from holdtrue.errors import did_you_mean
from holdtrue.sources.formats import MAX_WIDTH, OnnxModel, Refused, log_odds, sentence


class Column:
    """A column of X that holds scores already."""

    def __init__(self, key: str | int):
        self.key = key

    def place(self, n_columns: int, names: Sequence[str] | None) -> int:
        """Which column of X it is."""
        if isinstance(self.key, str):
            known = [] if names is None else [str(name) for name in names]
            if self.key not in known:
                hint = did_you_mean(self.key, known) or " Name a column of the fitted table."
                raise Refused(f"must be a column of X.{hint}")
            return known.index(self.key)
        if not 0 <= self.key < n_columns:
            raise Refused(f"must be a column of X, from 0 to {n_columns - 1}.")
        return self.key

    def of(self, X: Any, names: Sequence[str] | None) -> Any:
        """The column, shape (n_rows, 1)."""
        column = X[:, [self.place(X.shape[1], names)]]
        return column.toarray() if sparse.issparse(column) else column


class Source(NamedTuple):
    """How to run a model, and what the cache knows it by."""

    names: list[str]  # of its columns of scores
    score: Any  # from rows to scores, or a `Column`
    content: Any  # all that its scores depend on, besides the rows
    columns: Sequence[str] | None = None  # that it was fitted on, where it knows their names

    @classmethod
    def of(cls, name: str, model: Any) -> Source:
        """The model as a source; one that is not fitted is refused."""
        names = score_names(name, model)
        if isinstance(model, OnnxModel):
            return cls(names, model, model.fingerprint)
        if isinstance(model, Column) or not hasattr(model, "predict"):
            return cls(names, model, (name, model))
        with _refusing_damage(model):
            _check_fitted(model)
            columns = getattr(model, "feature_names_in_", None)
        return cls(names, functools.partial(_model_scores, model), model, columns)

    def run(self, rows: Any, names: Sequence[str] | None) -> np.ndarray:
        """Scores of the rows, float64 of shape (n_rows, n_scores); other outputs are refused.

        ``names`` are those of the columns of X.
        """
        if isinstance(self.score, Column):
            output = self.score.of(rows, names)
        else:
            output = _scored(self.score, rows)
        if isinstance(output, np.ma.MaskedArray) and np.any(output.mask):
            raise Refused(
                f"returned a masked array with {int(np.sum(output.mask))} hidden scores. "
                "A source must return a score for every row."
            )
        scores = np.asarray(output, dtype=np.float64)
        shape: tuple[int, ...] = (rows.shape[0], len(self.names))
        if scores.shape == shape[:1] and shape[1] == 1:
            return scores[:, None]
        if scores.shape != shape:
            raise Refused(
                f"returned shape {scores.shape}, expected {shape if shape[1] > 1 else shape[:1]}. "
                "A source must return one score per row."
            )
        return scores


def score_names(name: str, model: Any) -> list[str]:
    """Names of a model's columns of scores: one, or one for each of K > 2 classes."""
    classes: Sequence[Any] | None = None
    with _refusing_damage(model):
        if isinstance(model, OnnxModel):
            classes = range(model.width) if model.width > 1 else None
        elif not isinstance(model, Column) and hasattr(model, "predict"):
            classes = getattr(model, "classes_", None) if _method(model) != "predict" else None
            if classes is not None and len(classes) > MAX_WIDTH:
                raise Refused(f"has {len(classes):,} classes, more than {MAX_WIDTH:,}.")
            classes = None if classes is None or len(classes) <= 2 else classes
        return [name] if classes is None else [f"{name}: {label}" for label in classes]


@contextmanager
def _refusing_damage(model: Any) -> Iterator[None]:
    """Refuse a model that fails when it is looked at, such as one read from a damaged file."""
    try:
        yield
    except Refused:
        raise
    except Exception as error:
        problem = f"{type(error).__name__}: {sentence(error)}"
        raise Refused(f"({type(model).__name__}) is damaged or incomplete: {problem}") from error


def _check_fitted(model: Any) -> None:
    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise Refused(f"({type(model).__name__}) is not fitted. Fit it first.") from error
    except TypeError:
        pass  # not of scikit-learn's kind: its own predict will tell


def _method(model: Any) -> str:
    """The method that gives a model's most telling score."""
    return next(
        name for name in ("decision_function", "predict_proba", "predict") if hasattr(model, name)
    )


def _model_scores(model: Any, X: Any) -> np.ndarray:
    """Scores of a fitted estimator: decision function, log-odds or predictions."""
    method = _method(model)
    scores = np.asanyarray(getattr(model, method)(X))
    if method == "predict_proba":
        return log_odds(scores)
    if method == "predict" and scores.dtype.kind not in "fiub":
        raise Refused("returned labels that are not numbers. A source must return scores.")
    return scores


def _scored(model: Callable[[Any], Any], rows: Any) -> Any:
    """Scores of a model that may change its rows, but not its caller's: read-only, or a copy."""
    if not isinstance(rows, np.ndarray):  # frames that cannot be changed have no copy
        return model(rows.copy() if hasattr(rows, "copy") else rows)
    view = rows.view()
    view.flags.writeable = False
    try:
        return model(view)
    except Exception as error:
        if not any(word in str(error) for word in ("read-only", "readonly")):
            raise
    return model(rows.copy())
