"""What models say of columns, beside each column's error on new rows."""

from __future__ import annotations

import math
import warnings
from typing import Any

import narwhals as nw
import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.utils import _safe_indexing, column_or_1d

from holdtrue.categories.estimate import ColumnEstimate, best_first
from holdtrue.categories.rank import score_table
from holdtrue.categories.score import DEFAULT_CRITERION, check_classes, check_scoring, scoring
from holdtrue.columns.counting import Target
from holdtrue.columns.values import frame_of, missing_objects
from holdtrue.errors import InputError, InputTypeError, speaks
from holdtrue.row_copies import Splits
from holdtrue.tables import Table, open_table
from holdtrue.validation import classes_of, fresh_copy

__all__ = ["audit_importances", "ginger_score"]

_FOLDS = 5
_SHUFFLES = 5  # of each column
_WORTH_ASKING = 0.01  # share of the importance


@speaks
def ginger_score(X: Any, y: Any, *, criterion: str = "ginger") -> np.ndarray:
    """How much error each column removes, ``no column - score``: higher is better.

    A score function for `sklearn.feature_selection.SelectKBest` and its like, which keep the
    highest. For another criterion pass ``functools.partial(ginger_score, criterion="majority")``.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), or data frame
        `SelectKBest` hands over numbers: integers are read as values and in bins, floats in bins.
    y : array-like of shape (n_samples,)
    criterion : str
        As in `GingerSelector`.

    Returns
    -------
    gains : ndarray of shape (n_features,)

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.feature_selection import SelectKBest
    >>> from holdtrue.categories import ginger_score
    >>> X = np.array([[i, i % 3] for i in range(60)])
    >>> SelectKBest(ginger_score, k=1).fit(X, X[:, 1] == 0).get_support()
    array([False,  True])
    """
    check_scoring(criterion)
    columns = _estimates(open_table(X), y, criterion)
    return np.array([column.no_column - column.score for column in columns])


@speaks
def audit_importances(model: Any, X: Any, y: Any) -> Any:
    """Table of a model's importances beside each column's error on new rows.

    Importances of trees count the gain on the rows of the fit, which a column with many values
    has by chance; importances by permutation do so on rows that the model was fitted on. A column
    is flagged where the model gives it a hundredth of the importance or more, while it does not
    predict new rows and the model loses nothing without it: the model is fitted again, in five
    folds, with the column held constant, and its loss on the rows left out must not rise; for a
    column that looks like an id, not by more than a standard error. ``cost`` is what it rises by.

    Parameters
    ----------
    model : fitted estimator
        With ``feature_importances_`` (scikit-learn's trees, forests and boosting, XGBoost,
        LightGBM by gain); any other predictor, a pipeline too, through permutation.
    X : data frame or ndarray of shape (n_samples, n_features)
        The columns that the model was fitted on, encoded or as they were. Those of a frame are
        found by their names where the model knows any, others by their order.
    y : array-like of shape (n_samples,)

    Returns
    -------
    table : the caller's kind of frame; an Arrow table for an array
        ``column``, ``importance`` (its share), ``importance_rank``, ``score`` (left-out log loss),
        ``score_rank``, ``no_column``, ``n_values``, ``coverage``, ``predicts`` (new rows, by
        itself), ``cost`` and ``cost_standard_error``, ``flagged``, ``why``. The most important
        first. The cost is that of leaving out the column and those flagged above it, in the squared
        error of the probabilities (the share wrong of a model that has none, the squared error of a
        numeric target). It is measured where a column does not predict and has a hundredth of the
        importance, and NaN elsewhere. A forest of full-grown trees may lose a little without
        columns of mere noise, which smooth its votes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.ensemble import RandomForestClassifier
    >>> from holdtrue import audit_importances
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.permutation(400), rng.integers(0, 2, 400)])
    >>> y = X[:, 1] ^ (rng.random(400) < 0.3)
    >>> forest = RandomForestClassifier(20, random_state=0).fit(X, y)
    >>> table = audit_importances(forest, X, y).to_pydict()
    >>> list(zip(table["column"], table["importance_rank"], table["score_rank"], table["flagged"]))
    [('x0', 1, 2, True), ('x1', 2, 1, False)]
    >>> np.round(table["cost"], 2)
    array([-0.21,   nan])
    """
    table = X if isinstance(X, Table) else open_table(X)
    names = table.names
    importance = _importances(model)
    if importance is None:
        importance = _by_permutation(model, X, y)
    elif len(importance) != len(names):
        raise InputError(
            f"X must have the {len(importance)} columns that the model was fitted on. "
            f"Got {len(names)}. Pass what the model's fit was given."
        )
    elif not isinstance(X, np.ndarray):
        importance = importance[_places(model, names)]
    estimates = _estimates(table, y, DEFAULT_CRITERION)
    share = importance / (importance.sum() or 1.0)
    order = np.argsort(-share, kind="stable")
    rank = np.argsort(order) + 1
    score_rank = np.argsort(best_first(estimates)) + 1
    suspects = [
        int(j) for j in order if share[j] >= _WORTH_ASKING and not estimates[j].beats_no_column
    ]
    id_like = [column.is_id_like for column in estimates]
    cost, cost_error, is_missed = _costs(model, X, y, suspects, id_like)
    flagged = [j for j in suspects if not is_missed[j]]
    why = {j: _flag_words(j, share, cost[j], names, rank, estimates) for j in flagged}
    columns = {
        "column": [names[j] for j in order],
        "importance": share[order].tolist(),
        "importance_rank": rank[order].tolist(),
        "score": [estimates[j].score for j in order],
        "score_rank": score_rank[order].tolist(),
        "no_column": [estimates[j].no_column for j in order],
        "n_values": [estimates[j].n_values for j in order],
        "coverage": [estimates[j].coverage for j in order],
        "predicts": [estimates[j].beats_no_column for j in order],
        "cost": cost[order].tolist(),
        "cost_standard_error": cost_error[order].tolist(),
        "flagged": [j in flagged for j in order],
        "why": [
            why.get(j) or _kept_words(cost[j], cost_error[j], estimates[j]) for j in order.tolist()
        ],
    }
    frame = frame_of(X)
    backend = frame.implementation if isinstance(frame, nw.DataFrame) else "pyarrow"
    return nw.from_dict(columns, backend=backend).to_native()


def _kept_words(cost: float, error: float, column: ColumnEstimate) -> str:
    """Words about a column that is not flagged."""
    if math.isnan(cost):
        return column.verdict
    misses = "misses it" if cost > error else "may miss it"
    return f"{column.verdict}; the model {misses}: leaving it out costs {cost:.2g} ± {error:.2g}"


def _flag_words(
    j: int,
    share: np.ndarray,
    cost: float,
    names: list[str],
    rank: np.ndarray,
    estimates: list[ColumnEstimate],
) -> str:
    """Why a column is flagged."""
    column = estimates[j]
    words = f"has {share[j]:.0%} of the importance with {column.n_values:,} values"
    behind = [i for i, other in enumerate(estimates) if rank[i] > rank[j] and other.beats_no_column]
    if behind:
        best = min(behind, key=lambda i: estimates[i].score)
        words += (
            f", more than {names[best]!r} ({estimates[best].n_values:,} values), which predicts"
        )
    words += f"; does not predict new rows: {column.score:.3g} against {column.no_column:.3g} "
    words += "without it"
    return words + ("" if math.isnan(cost) else f"; leaving it out costs {cost:.2g}")


# --- importances, and what a column is worth to the model ----------------------------------------


def _importances(model: Any) -> np.ndarray | None:
    """The model's own importances; None for a model that has none but predicts."""
    if hasattr(model, "booster_"):  # LightGBM, whose own attribute counts splits
        return np.asarray(model.booster_.feature_importance("gain"), dtype=np.float64)
    if hasattr(model, "feature_importances_"):
        return np.asarray(model.feature_importances_, dtype=np.float64)
    if not hasattr(model, "predict"):
        raise InputTypeError(
            f"expected a fitted model that predicts, or has feature_importances_. "
            f"Got {type(model).__name__}. Fit it first."
        )
    return None


def _by_permutation(model: Any, X: Any, y: Any) -> np.ndarray:
    """Mean rise of the loss where a column's rows are shuffled; at least 0."""
    target, rng = column_or_1d(y), np.random.RandomState(0)
    loss = _losses(model, X, target).mean()
    columns = range(np.shape(X)[1])
    risen = np.zeros(len(columns))
    for j in columns:
        for _ in range(_SHUFFLES):
            shuffled = _with_rows(X, j, rng.permutation(len(target)))
            risen[j] += _losses(model, shuffled, target).mean() - loss
    return np.maximum(risen / _SHUFFLES, 0.0)


def _costs(
    model: Any, X: Any, y: Any, suspects: list[int], id_like: list[bool]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rise of the left-out loss without each suspect and those before it that are not missed.

    With its standard error, and whether the column is missed. NaN and False for the other columns,
    and for a model that cannot be fitted again, or not without some rows. What an id seems to be
    worth is chance: it is missed where its cost is beyond that.
    """
    n_columns = np.shape(X)[1] if hasattr(X, "shape") else len(X.names)
    cost, error = np.full((2, n_columns), np.nan)
    is_missed = np.zeros(n_columns, dtype=bool)
    is_copied = hasattr(model, "get_params") or hasattr(model, "__sklearn_clone__")
    if not suspects or isinstance(X, Table) or not (hasattr(model, "fit") and is_copied):
        return cost, error, is_missed
    target = column_or_1d(y)
    splits = _splits(target, is_classes=classes_of(model) is not None)
    if not splits:
        return cost, error, is_missed
    whole = _left_out_losses(model, X, target, splits)
    for j in suspects:
        first = int(np.argmax(~_missing(X, j)))
        without = _with_rows(X, j, np.full(len(target), first))
        risen = _left_out_losses(model, without, target, splits) - whole
        cost[j], error[j] = risen.mean(), risen.std(ddof=1) / np.sqrt(len(risen))
        is_missed[j] = cost[j] > (error[j] if id_like[j] else 0.0)
        if not is_missed[j]:
            X = without
    return cost, error, is_missed


def _splits(y: np.ndarray, *, is_classes: bool) -> Splits:
    """Rows of the fit and rows left out, in five folds; none where there are too few rows.

    Folds have alike shares of the classes. A row that is alone in its class is in every fit, so
    that each of them knows all classes.
    """
    if not is_classes:
        n_folds = min(_FOLDS, len(y))
        return list(KFold(n_folds, shuffle=True, random_state=0).split(y))
    _, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    n_folds = min(_FOLDS, int(counts.max()))
    if n_folds < 2:
        return []
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    with warnings.catch_warnings():  # of classes with fewer rows than there are folds
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        splits = list(folds.split(codes, codes))
    alone = np.flatnonzero(counts[codes] == 1)
    kept = [(np.union1d(fit, alone), np.setdiff1d(left, alone)) for fit, left in splits]
    return [(fit, left) for fit, left in kept if len(left)]


def _left_out_losses(model: Any, X: Any, y: np.ndarray, splits: Splits) -> np.ndarray:
    """Loss of each row left out, of a model fitted without its fold."""
    losses = []
    for fit, left in splits:
        fitted = fresh_copy(model).fit(_safe_indexing(X, fit), y[fit])
        losses.append(_losses(fitted, _safe_indexing(X, left), y[left]))
    return np.concatenate(losses)


def _losses(model: Any, X: Any, y: np.ndarray) -> np.ndarray:
    """Squared error of the probabilities or numbers, or whether the class is wrong, row by row."""
    classes = classes_of(model)
    if classes is not None and hasattr(model, "predict_proba"):
        shares = np.asarray(model.predict_proba(X))
        return np.square(shares - (y[:, None] == np.asarray(classes))).sum(axis=1)
    predicted = np.asarray(model.predict(X)).reshape(len(y))
    if classes is None and predicted.dtype.kind == "f":
        return np.square(predicted - y)
    return (predicted != y).astype(np.float64)


def _with_rows(X: Any, j: int, rows: np.ndarray) -> Any:
    """X with one column taken from other rows."""
    if isinstance(X, np.ndarray):
        changed = X.copy()
        changed[:, j] = X[rows, j]
        return changed
    frame = nw.from_native(X, eager_only=True)
    return frame.with_columns(frame[:, j][rows.tolist()]).to_native()


def _missing(X: Any, j: int) -> np.ndarray:
    column = X[:, j] if isinstance(X, np.ndarray) else nw.from_native(X, eager_only=True)[:, j]
    if isinstance(column, np.ndarray):
        return missing_objects(column.astype(object))
    return column.is_null().to_numpy()


def _places(model: Any, names: list[str]) -> list[int]:
    """Index of each column of X among the model's; in order if the model knows no names."""
    known = [str(name) for name in getattr(model, "feature_names_in_", ())]
    given = names
    if hasattr(model, "booster_"):  # LightGBM writes _ for a space, and may name an array's columns
        given = [name.replace(" ", "_") for name in names]
        known = [] if known == [f"Column_{j}" for j in range(len(known))] else known
    if not known or given == known:
        return list(range(len(names)))
    if set(given) != set(known):
        raise InputError(
            f"X must have the columns that the model was fitted on. "
            f"Missing: {[name for name in known if name not in given]}. "
            f"New: {[name for name in given if name not in known]}. "
            "Pass what the model's fit was given, or an array if only the names differ."
        )
    return [known.index(name) for name in given]


def _estimates(table: Table, y: Any, criterion: str) -> list[ColumnEstimate]:
    """Estimates of the columns of a table, in their order."""
    target = column_or_1d(y, warn=True)
    rows = Target.by_rule(target, "auto")
    check_classes(rows.classes, len(target))
    how = scoring(criterion, rows.classes, has_groups=False)
    return list(score_table(table, table.names, [table.kinds[n] for n in table.names], rows, how))
