"""From a model, a callable or a file to columns of scores. Files are opened here, and only here."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from holdtrue.errors import did_you_mean
from holdtrue.skops_files import UnfitFile, load_skops

PICKLES = (".pkl", ".pickle", ".joblib")
# Columns of scores of one model; the largest shelves of classes have some 20,000.
MAX_WIDTH = 50_000


class Refused(Exception):  # noqa: N818  (not an error yet: the pool decides)
    """A source that cannot be used; the message continues "source 'name' ..."."""


class Allowed(NamedTuple):
    """What may be done to open a file."""

    pickle: bool
    external_data: bool


class Output(NamedTuple):
    """One column of scores: the model that makes it, and which of its columns it is.

    ``columns`` are the names of the columns that the model was fitted on, where it knows them.
    """

    name: str
    model: Callable[[Any], Any]
    fingerprint: Callable[[], str | None]
    position: int = 0
    width: int = 1
    columns: Sequence[str] | None = None


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

    def scores(self, X: Any, names: Sequence[str] | None) -> Any:
        """The column, shape (n_rows, 1)."""
        column = X[:, [self.place(X.shape[1], names)]]
        return column.toarray() if sparse.issparse(column) else column


def model_names(name: str, model: Any) -> list[str]:
    """Names of a model's columns of scores: one, or one for each of K > 2 classes."""
    if isinstance(model, Column) or not hasattr(model, "predict"):
        return [name]
    classes = getattr(model, "classes_", None) if _method(model) != "predict" else None
    if classes is None or len(classes) <= 2:
        return [name]
    if len(classes) > MAX_WIDTH:
        raise Refused(f"has {len(classes):,} classes, more than {MAX_WIDTH:,}.")
    return [f"{name}: {label}" for label in classes]


def model_outputs(name: str, model: Any) -> list[Output]:
    """Outputs of a fitted estimator, a callable or a column."""
    if isinstance(model, Column) or not hasattr(model, "predict"):
        return [Output(name, model, lambda: _fingerprint((name, model)))]
    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise Refused(f"({type(model).__name__}) is not fitted. Fit it first.") from error
    except TypeError:
        pass  # not of scikit-learn's kind: its own predict will tell
    score = functools.partial(_model_scores, model)
    names = model_names(name, model)
    columns = getattr(model, "feature_names_in_", None)
    return [
        Output(each, score, lambda: _fingerprint(model), j, len(names), columns)
        for j, each in enumerate(names)
    ]


def scored(model: Callable[[Any], Any], rows: Any) -> Any:
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


def log_odds(probability: np.ndarray) -> np.ndarray:
    """``log(p/(1 - p))`` of each class, of the second where there are two; bounded at 1e-15."""
    if probability.ndim == 2 and probability.shape[1] == 2:
        probability = probability[:, 1]
    p = np.clip(probability.astype(np.float64), 1e-15, 1 - 1e-15)
    return np.log(p) - np.log1p(-p)


def _fingerprint(source: Any) -> str | None:
    """What the cache knows a source by; None for one that cannot be pickled."""
    try:
        return str(joblib.hash(_content(source, {})))
    except Exception:  # a pickle may fail with anything
        return None


def _content(value: Any, seen: dict[int, int]) -> Any:
    """The value, with functions taken apart: code, defaults and what they enclose."""
    if id(value) in seen:  # a function that calls itself
        return f"function {seen[id(value)]}"
    parts: Iterable[Any]
    if isinstance(value, types.FunctionType):
        seen[id(value)] = len(seen)
        cells = tuple(cell.cell_contents for cell in value.__closure__ or ())
        parts = (value.__code__, value.__defaults__, value.__kwdefaults__, cells)
    elif isinstance(value, types.CodeType):
        parts = (value.co_code, value.co_consts, value.co_names)
    elif isinstance(value, types.MethodType):
        parts = (value.__func__, value.__self__)
    elif isinstance(value, functools.partial):
        parts = (value.func, value.args, value.keywords)
    elif type(value) is dict:
        return {key: _content(item, seen) for key, item in value.items()}
    elif type(value) in (tuple, list):
        parts = value
    elif isinstance(value, types.ModuleType):
        return value.__name__
    else:
        call = type(value).__call__ if callable(value) else None
        return (_content(call, seen), value) if isinstance(call, types.FunctionType) else value
    return tuple(_content(part, seen) for part in parts)


def sentence(error: BaseException | str) -> str:
    """What an error says, in one line with a full stop."""
    return f"{' '.join(str(error).split()).rstrip(' .')}."


# --- files ---


def check_format(file: Path, *, starts: tuple[bytes, ...], wanted: str) -> None:
    """Refuse a file whose first bytes are not those of its format, without reading further."""
    try:
        with file.open("rb") as stream:
            head = stream.read(8)
    except OSError as error:
        raise Refused(f"cannot be read: {sentence(error)}") from error
    if not head:
        raise Refused(f"({file.name}) is empty.")
    if not head.startswith(starts):
        looks = " It looks like a pickle, which runs code when loaded." if head[0] == 0x80 else ""
        raise Refused(f"({file.name}) is not {wanted}, whatever its name says.{looks}")


def pickle_outputs(name: str, file: Path, allowed: Allowed) -> list[Output]:
    """Outputs of a pickled model, if pickles are allowed."""
    if not allowed.pickle:
        raise Refused(
            f"({file.name}) is a pickle, and loading one runs whatever code it holds. Save the "
            "model as .onnx or .skops, or pass allow_pickle=True if you trust who wrote it."
        )
    try:
        model = joblib.load(file)  # reads plain pickles too
    except Exception as error:
        raise Refused(f"({file.name}) cannot be loaded: {sentence(error)}") from error
    return model_outputs(name, model)


def skops_outputs(name: str, file: Path, _: Allowed) -> list[Output]:
    """Outputs of a skops file whose types are all known as safe."""
    try:
        model = load_skops(file)
    except UnfitFile as error:
        raise Refused(f"({file.name}) {error}") from error
    return model_outputs(name, model)
