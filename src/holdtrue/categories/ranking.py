"""Tables to read: columns of a frame or a file by their error on new rows, and what models say."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
from sklearn.utils import column_or_1d

from holdtrue.categories.counting import (
    ColumnEstimate,
    Scoring,
    categorical_mask,
    check_classes,
    check_scoring,
    column_estimate,
    is_numeric,
    score_order,
)
from holdtrue.categories.kernel import IN_SAMPLE
from holdtrue.categories.large import estimate_in_parts
from holdtrue.progress import progress_bar
from holdtrue.tables import Table, open_table
from holdtrue.tally import Target, counted, whole_weights
from holdtrue.validation import check_choice
from holdtrue.values import columns_of, frame_of

__all__ = ["audit_importances", "ginger_score", "rank_columns"]


def rank_columns(
    data: Any,
    target: Any,
    *,
    criterion: str = "ginger",
    target_type: str = "auto",
    categorical_features: Any = "from_dtype",
    max_bins: int = 64,
    missing: str = "category",
    unseen: str = "uniform",
    alpha: float = 0.05,
    sample_weight: Any = None,
) -> Any:
    """Table of the columns, from the one that predicts best on new rows to the worst.

    A file may be larger than memory: it is read column by column, a CSV or JSON lines file after
    one pass that keeps its columns in a temporary file. With classes as the target and without
    weights, columns of millions of different values are counted in parts: numbers, and texts of
    up to 39 bytes. Otherwise one column at a time is in memory, with its counts.

    Parameters
    ----------
    data : data frame (pandas, Polars, Arrow), ndarray, path of a file, or Table
        Files as in `holdtrue.tables.open_table`, which can be told the types of columns, an
        encoding or a query, and gives a Table.
    target : str or array-like of shape (n_rows,)
        Name of the target's column, or the target itself.
    criterion, target_type, categorical_features, max_bins, missing, unseen, alpha
        As in `GingerSelector`.
    sample_weight : array-like of shape (n_rows,), optional
        Whole numbers: weights are repetitions.

    Returns
    -------
    table : the caller's kind of frame; an Arrow table for a file or an array
        ``column``; ``kind`` (category, integer, number, empty); ``read_as`` (its values, or
        how many bins); ``n_values``; ``score``, lower is better; ``standard_error``; ``low`` and
        ``high``, its interval; ``no_column``, the score without the column; ``gain_low`` and
        ``gain_high``, the interval of what the column gains on it; ``coverage``, the share of new
        rows whose value has been seen; ``predicts``, whether the gain is beyond that interval;
        ``id_like``; ``verdict``, in words.

    See Also
    --------
    GingerSelector : The same as a step of a pipeline.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from holdtrue import rank_columns
    >>> data = pa.table({
    ...     "id": [f"u{i}" for i in range(60)],
    ...     "plan": ["free", "free", "paid"] * 20,
    ...     "left": [True, True, False] * 20})
    >>> for row in rank_columns(data, "left").to_pylist():
    ...     print(row["column"], row["score"], row["verdict"])
    plan 0.0 predicts new rows: 0 against 0.452 without it
    id 0.5 looks like an id: 60 of its 60 values occur once, so that 100% of new rows bring ...
    """
    who = "rank_columns"
    check_scoring(who, criterion, max_bins, missing, unseen, alpha)
    check_choice(who, "target_type", target_type, ("auto", "classes", "numeric"))
    table, backend = _source(who, data)
    names = table.names
    if isinstance(target, str):
        y = table.column(target)
        names = [name for name in names if name != target]
    else:
        y = column_or_1d(target, warn=True)
    weight = whole_weights(who, sample_weight, len(y))
    rows = Target.from_column(y, is_numeric(y, target_type), weight, owner=who)
    numeric = rows.classes is None
    n_rows = len(y) if weight is None else int(weight.sum())
    check_classes(who, rows.classes, n_rows, criterion)
    how = Scoring(criterion, numeric, max_bins, missing, unseen, alpha)
    by_value = categorical_mask(who, categorical_features, names)
    kinds, found = [], []
    with progress_bar("columns", len(names)) as tick:
        for name, forced in zip(names, by_value, strict=True):
            # One column at a time: its counts are dropped before the next is read.
            kinds.append("category" if forced else table.kinds[name])
            found.append(_estimate(who, table, name, kinds[-1], rows, how))
            tick()
    order = score_order(np.array([column.score for column in found]))
    honest = numeric or criterion not in IN_SAMPLE
    records = [_record(names[j], kinds[j], found[j], honest) for j in order]
    return _frame({key: [record[key] for record in records] for key in _RECORD}, backend)


def _estimate(
    who: str, table: Table, name: str, kind: str, rows: Target, how: Scoring
) -> ColumnEstimate:
    """Estimate of one column, without its counts."""
    found = None
    if table.n_rows == len(rows.codes):
        found = estimate_in_parts(table, name, kind, rows, how)
    if found is None:
        _, values, counts = counted(name, table.column(name), rows, owner=who, keep_values=False)
        found = column_estimate(kind, values, counts, how)
    return found.without_table()


_RECORD = (
    "column", "kind", "read_as", "n_values", "score", "standard_error", "low", "high",
    "no_column", "gain_low", "gain_high", "coverage", "predicts", "id_like", "verdict",
)  # fmt: skip


def _record(name: str, kind: str, found: ColumnEstimate, honest: bool) -> dict[str, Any]:
    n_bins = found.reading.n_bins
    return {
        "column": name,
        "kind": kind,
        "read_as": f"{n_bins} bins" if n_bins else "values",
        "n_values": found.n_values,
        "score": found.score,
        "standard_error": found.standard_error,
        "low": found.interval[0],
        "high": found.interval[1],
        "no_column": found.no_column,
        "gain_low": found.gain_interval[0],
        "gain_high": found.gain_interval[1],
        "coverage": found.coverage,
        "predicts": found.beats_no_column,
        "id_like": is_id_like(kind, found),
        "verdict": verdict(kind, found, honest=honest),
    }


def is_id_like(kind: str, found: ColumnEstimate) -> bool:
    """Whether most new rows would bring a raw value never seen; numbers are not read as ids."""
    return kind in ("category", "integer") and found.coverage < 0.5


def verdict(kind: str, found: ColumnEstimate, *, honest: bool = True) -> str:
    """What to think of a column, in words; ``honest`` if the score is that of new rows."""
    against = f"{found.score:.3g} against {found.no_column:.3g} without it"
    if found.n_values <= 1:
        return "constant: it has one value only"
    said = "predicts new rows: " if honest else "explains the rows of the fit: "
    if not found.beats_no_column:
        said = "does not beat no column: "
    said += against
    if not is_id_like(kind, found):
        return said
    why = (
        f"looks like an id: {found.n_once:,} of its {found.n_values:,} values occur once, so that "
        f"{100 * (1 - found.coverage):.3g}% of new rows bring a value never seen"
    )
    if found.reading.n_bins and found.beats_no_column:
        return f"{why}; as a number in {found.reading.n_bins} bins it {said}"
    return f"{why}; it {said}"


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
    check_scoring("ginger_score", criterion, 64, "category", "uniform", 0.05)
    _, found = _estimates("ginger_score", X, y, criterion)
    return np.array([column.no_column - column.score for column in found])


def audit_importances(model: Any, X: Any, y: Any) -> Any:
    """Table of a fitted tree ensemble's importances beside each column's error on new rows.

    Importances of trees count the gain on the rows of the fit, which a column with many values
    has by chance. A column is flagged where the model puts it before another that does predict
    new rows and has fewer values, while it does not predict new rows itself. A column that works
    only together with others may be flagged wrongly: leave it out and measure before you drop it.

    Parameters
    ----------
    model : fitted estimator with ``feature_importances_``
        scikit-learn's trees, forests and boosting, XGBoost, LightGBM (by gain).
    X : data frame or ndarray of shape (n_samples, n_features)
        The columns that the model was fitted on, encoded or as they were. Those of a frame are
        found by their names where the model knows any, others by their order.
    y : array-like of shape (n_samples,)

    Returns
    -------
    table : the caller's kind of frame; an Arrow table for an array
        ``column``, ``importance`` (its share), ``importance_rank``, ``score`` (Ginger's estimate),
        ``score_rank``, ``no_column``, ``n_values``, ``coverage``, ``flagged``, ``why``. The most
        important first.

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
    """
    who = "audit_importances"
    table, backend = _source(who, X)
    names = table.names
    importance = _importances(who, model)
    if len(importance) != len(names):
        raise ValueError(
            f"{who}: X must have the {len(importance)} columns that the model was fitted on. "
            f"Got {len(names)}. Pass what the model's fit was given."
        )
    if not isinstance(X, np.ndarray):
        importance = importance[_places(who, model, names)]
    kinds, found = _estimates(who, X, y, "ginger")
    share = importance / (importance.sum() or 1.0)
    order = np.argsort(-share, kind="stable")
    rank = np.empty(len(names), dtype=int)
    rank[order] = np.arange(1, len(names) + 1)
    score_rank = np.empty(len(names), dtype=int)
    score_rank[score_order(np.array([column.score for column in found]))] = np.arange(
        1, len(names) + 1
    )
    why = [_flag(j, names, rank, found) for j in range(len(names))]
    columns = {
        "column": [names[j] for j in order],
        "importance": share[order].tolist(),
        "importance_rank": rank[order].tolist(),
        "score": [found[j].score for j in order],
        "score_rank": score_rank[order].tolist(),
        "no_column": [found[j].no_column for j in order],
        "n_values": [found[j].n_values for j in order],
        "coverage": [found[j].coverage for j in order],
        "flagged": [bool(why[j]) for j in order],
        "why": [why[j] or verdict(kinds[j], found[j]) for j in order],
    }
    return _frame(columns, backend)


def _flag(j: int, names: list[str], rank: np.ndarray, found: list[ColumnEstimate]) -> str:
    """Why a column's rank is owed to its number of values; nothing where it is not."""
    if found[j].beats_no_column:
        return ""
    behind = [
        i
        for i, column in enumerate(found)
        if rank[i] > rank[j] and column.beats_no_column and column.n_values < found[j].n_values
    ]
    if not behind:
        return ""
    best = min(behind, key=lambda i: found[i].score)
    return (
        f"ranked {rank[j]} by its {found[j].n_values:,} values, before {names[best]!r} "
        f"({found[best].n_values:,} values), which predicts new rows while this one does not: "
        f"{found[j].score:.3g} against {found[j].no_column:.3g} without it"
    )


def _importances(who: str, model: Any) -> np.ndarray:
    if hasattr(model, "booster_"):  # LightGBM, whose own attribute counts splits
        return np.asarray(model.booster_.feature_importance("gain"), dtype=np.float64)
    if not hasattr(model, "feature_importances_"):
        raise TypeError(
            f"{who}: expected a fitted model with feature_importances_. "
            f"Got {type(model).__name__}. Fit it first; of a pipeline pass the last step, with "
            "the X that reaches it."
        )
    return np.asarray(model.feature_importances_, dtype=np.float64)


def _places(who: str, model: Any, names: list[str]) -> list[int]:
    """Place of each column of X among the model's; as they stand if that knows no names."""
    own = [str(name) for name in getattr(model, "feature_names_in_", ())]
    given = names
    if hasattr(model, "booster_"):  # LightGBM writes _ for a space, and may name an array's columns
        given = [name.replace(" ", "_") for name in names]
        own = [] if own == [f"Column_{j}" for j in range(len(own))] else own
    if not own or given == own:
        return list(range(len(names)))
    if set(given) != set(own):
        raise ValueError(
            f"{who}: X must have the columns that the model was fitted on. "
            f"Missing: {[name for name in own if name not in given]}. "
            f"New: {[name for name in given if name not in own]}. "
            "Pass what the model's fit was given, or an array if only the names differ."
        )
    return [own.index(name) for name in given]


# --- shared -------------------------------------------------------------------------------------


def _estimates(who: str, X: Any, y: Any, criterion: str) -> tuple[list[str], list[ColumnEstimate]]:
    """Kinds and estimates of the columns of X, in their order."""
    target = column_or_1d(y, warn=True)
    rows = Target.from_column(target, is_numeric(target, "auto"), owner=who)
    check_classes(who, rows.classes, len(target), criterion)
    how = Scoring(criterion, rows.classes is None)
    kinds, found = [], []
    for name, column in columns_of(who, X).items():
        kind, values, table = counted(name, column, rows, owner=who, keep_values=False)
        kinds.append(kind)
        found.append(column_estimate(kind, values, table, how).without_table())
    return kinds, found


def _source(who: str, data: Any) -> tuple[Table, Any]:
    """The table, and the kind of frame to answer in."""
    if isinstance(data, Table):
        return data, "pyarrow"
    frame = frame_of(who, data)
    backend = frame.implementation if isinstance(frame, nw.DataFrame) else "pyarrow"
    return open_table(who, data), backend


def _frame(columns: dict[str, list[Any]], backend: Any) -> Any:
    return nw.from_dict(columns, backend=backend).to_native()
