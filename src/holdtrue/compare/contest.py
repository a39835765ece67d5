"""`compare_models`: every model fitted without a part of the data and asked about that part.

A model that tunes itself tunes on the other parts only, so that all errors are honest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold, check_cv
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import indexable

from holdtrue.compare.checkpoint import Checkpoint, fingerprint
from holdtrue.compare.comparison import SHARE_WRONG, SQUARED_ERROR, Comparison
from holdtrue.compare.field import (
    NULL,
    Rows,
    features_used,
    named_models,
    null_model,
    outputs_of,
    timed_fit,
)
from holdtrue.domains.base import SINGLE_ROWS
from holdtrue.domains.bounds import interval_notes
from holdtrue.errors import (
    InputError,
    InputTypeError,
    SpokenError,
    caution,
    did_you_mean,
    first_line,
    shown,
    speaks,
)
from holdtrue.evidence import natural_order
from holdtrue.progress import progress
from holdtrue.row_copies import Splits, dealt_splits, row_copies
from holdtrue.targets import target_kind
from holdtrue.validation import check_groups, check_level, class_codes, is_number, target_rows

__all__ = ["compare_models", "rows_in_parts"]

_MAX_PARTS = 20  # parts of domains that are held out in turn
_ROW_PARTS = 10  # parts of rows, without groups
_DIVIDED = (
    "cv leaves out rows of domains whose other rows are fitted: errors are those at known domains, "
    "not at new ones. Leave cv out, or pass a splitter by group, such as GroupKFold."
)
# Numbers in it are in the order of time: not "March", nor "12/31/2019".
_HAS_ORDER = re.compile(r"(?!.*\b\d{1,2}([/.-])(\d{1,2}|\w{3,9})\1\d{4}\b).*\d").match
_EARLIER = 3  # domains that come before the first that is predicted from earlier ones


@speaks
def compare_models(
    models: Any,
    X: Any,
    y: Any,
    *,
    groups: Any = None,
    sample_weight: Any = None,
    cv: Any = None,
    scoring: Any = None,
    target_type: str = "auto",
    level: float = 0.95,
    checkpoint: Any = None,
    random_state: Any = None,
    n_jobs: int | None = None,
) -> Comparison:
    """Compare models on the same left-out domains or rows.

    Parameters
    ----------
    models : mapping of str to estimator, sequence of str, or None
        Any scikit-learn estimators, or names of `default_models`; None takes all of those.
    X : array-like or data frame of shape (n_samples, n_features)
        As the models take it.
    y : array-like of shape (n_samples,)
    groups : array-like of shape (n_samples,), optional
        Domain of each row. New data are new domains: one is left out as a whole, more than 20 in
        20 parts. Models whose ``fit`` takes ``groups`` get those of their rows.
    sample_weight : array-like of shape (n_samples,), optional
        Weights are repetitions, in the fits and in the errors; a row of weight 0 is left out. A
        domain counts once, whatever its weight. Models that do not take weights are refused.
    cv : int, "time" or scikit-learn splitter, optional
        How rows or domains are left out. Default: domain by domain (at most 20 parts), or 10 parts
        of the rows. With "time" the groups are years, dates or others that have an order, and each
        is predicted from those before it, as the next one will be: later ones may differ more from
        the first than all do from each other. The first three are not judged.
    scoring : str or callable, optional
        A scikit-learn scorer, greater is better; its negative is the error. Default: the share
        wrong of classes, the squared error of numbers.
    target_type : {"auto", "classes", "numeric"}
    level : float
        Of the intervals.
    checkpoint : path, optional
        File to which every finished fit is written. After an interruption the same call goes on
        where it stopped. Data, models, scoring and parts must be the same, or the file is refused.
    random_state : int, RandomState or None, default=None
        Draws the parts, where they are fewer than the domains or rows; None: the same parts in
        every call.
    n_jobs : int, optional
        Fits at the same time.

    Returns
    -------
    comparison : Comparison

    See Also
    --------
    DomainAverageRegressor, DomainAverageClassifier : All models, weighed by their errors.
    sklearn.model_selection.cross_validate : One model, with any number of scores.

    Notes
    -----
    When **not** to use it: to tune one model. The error of the best of many settings is too low;
    tune inside the model, as `GridSearchCV` does, and compare the tuned models here.

    Examples
    --------
    >>> from sklearn.dummy import DummyRegressor
    >>> from sklearn.linear_model import RidgeCV
    >>> from holdtrue import TGreedyRegressor, compare_models
    >>> from holdtrue.datasets import make_domains
    >>> data = make_domains(n_domains=16, n_features=15, random_state=0)
    >>> models = {"t_greedy": TGreedyRegressor(), "ridge": RidgeCV(), "mean": DummyRegressor()}
    >>> contest = compare_models(models, data.X, data.y, groups=data.groups)
    >>> contest.recommended
    't_greedy'
    """
    X, y = indexable(X, target_rows(y))
    n_rows = len(y)
    if n_rows < 4:
        raise InputError(f"needs at least 4 rows. Got {n_rows}.")
    labels = None if groups is None else check_groups(groups, n_rows)
    every = Rows(X, y, labels, sample_weight)
    rows = every.of_positive_weight()
    labels = rows.groups
    kind = target_kind(rows.y, target_type, rows.weight)
    classes = None if kind.is_numeric else class_codes(rows.y)[0]
    if labels is not None and 2 < len(labels) == len(np.unique(labels)):
        caution(f"compare_models: {SINGLE_ROWS}")
    check_level("level", level)
    field = named_models(models, is_classes=classes is not None)
    rows, parts = rows_in_parts(
        every, cv, is_classes=classes is not None, random_state=random_state
    )
    X, y, weight = rows.X, rows.y, rows.weight
    if classes is not None and y.dtype.kind == "f" and (y % 1).any():
        y = y.astype(str)  # scikit-learn's classifiers refuse 0.5 and 1.5
    loss = Loss.of(scoring, classes)
    by_row = labels is None and scoring is None
    # A scorer judges many rows at once: without domains, those of a part.
    unit = rows.domains if by_row or labels is not None else None
    field_and_null = {**field, NULL: null_model(is_classes=classes is not None)}
    question = (X, y, labels, weight, parts, loss.name, fingerprint(loss.scorer))
    log = Checkpoint(checkpoint, question, field_and_null)
    rows = replace(rows, y=y, unit=unit)
    jobs = [(name, k) for k in range(len(parts)) for name in field_and_null if (name, k) not in log]
    results = Parallel(n_jobs=n_jobs, return_as="generator")(
        delayed(_judged)(name, field_and_null[name], rows, k, parts[k], loss) for name, k in jobs
    )
    results = progress("models on left-out parts", results, len(jobs))
    for (name, k), result in zip(jobs, results, strict=True):
        log.add(name, k, vars(result))
    judged = {name: [_Judged(**log[name, k]) for k in range(len(parts))] for name in field_and_null}
    tested = np.unique(np.concatenate([result.units for result in judged[NULL]]))
    errors = {name: _unit_errors(results) for name, results in judged.items()}
    contest = Comparison(
        names=tuple(field),
        errors=np.array([errors[name] for name in field]),
        null=errors[NULL],
        units=() if labels is None else tuple(str(name) for name in np.unique(labels)[tested]),
        n_features=np.array([np.mean([r.n_features for r in judged[name]]) for name in field]),
        seconds=np.array([np.mean([r.seconds for r in judged[name]]) for name in field]),
        scoring=loss.name,
        level=float(level),
        unit_weights=weight[tested] if weight is not None and by_row else None,
    )
    if contest.is_grouped:
        empty = contest.no_model if loss.name == SQUARED_ERROR else None
        for note in interval_notes(errors[contest.recommended], empty):
            caution(f"compare_models: of {contest.recommended!r}, {note}")
    return contest


def rows_in_parts(
    every: Rows,
    cv: Any,
    *,
    is_classes: bool,
    random_state: Any,
    n_parts: int | None = None,
    who: str = "compare_models",
) -> tuple[Rows, Splits]:
    """The rows of positive weight; those to fit on and to judge, for each part that is left out.

    Without groups copies of a weighted row may be in several parts, each as a row of its own.
    ``cv=None``: ``n_parts``, or as `_held_out_parts` says. ``who`` warns of parts that divide
    domains.
    """
    rows, by_splitter = every.of_positive_weight(), hasattr(cv, "split") or np.iterable(cv)
    if every.groups is not None or by_splitter:
        splits = _held_out_parts(every, cv, n_parts, is_classes, random_state)
        known = rows.domains  # without groups every row, which no splitter divides
        if any(np.isin(known[test], known[train]).any() for train, test in splits):
            caution(f"{who}: {_DIVIDED}")
        return rows, splits
    copies = row_copies(rows.X, rows.y, rows.weight)
    dealt = Rows(None, rows.y[copies], None)
    splits = _held_out_parts(dealt, cv, n_parts, is_classes, random_state)
    at, splits, weight = dealt_splits(copies, splits, rows.weight)
    if weight is not None:
        rows = replace(rows.take(at), weight=weight)
    return rows, splits


def _held_out_parts(
    every: Rows, cv: Any, most: int | None, is_classes: bool, random_state: Any
) -> Splits:
    """Rows to fit on and rows to judge, for each part that is left out; domains stay together.

    A splitter sees rows of weight 0 too; the indices returned count the other rows only.
    ``cv=None``: domain by domain, at most 20 parts; 10 parts of rows without groups; or at most
    ``most``.
    """
    used = every.used
    if not (cv is None or is_number(cv) or isinstance(cv, bool | str)):
        splitter: Any = check_cv(cv, every.y, classifier=is_classes)
        splits = splitter.split(np.zeros((len(used), 1)), every.y, every.groups)
        place, every_row = np.cumsum(used) - 1, np.arange(len(used))
        kept = (  # a splitter may give masks
            [place[at[used[at]]] for at in (every_row[rows] for rows in split)] for split in splits
        )
        return [(train, test) for train, test in kept if len(test)]
    y, groups = every.y[used], None if every.groups is None else every.groups[used]
    if cv == "time":
        return _later_parts(groups)
    n_units = len(y) if groups is None else len(np.unique(groups))
    if groups is not None and n_units < 2:
        raise InputError(
            f"needs at least 2 domains, got 1 ({shown(groups[0])} in every row). Pass the "
            "domain of each row as groups."
        )
    wanted = (most or (_ROW_PARTS if groups is None else _MAX_PARTS)) if cv is None else cv
    if not (is_number(wanted) and int(wanted) == wanted and wanted >= 2):
        raise InputError(
            f"cv must be a whole number of at least 2, 'time', or a splitter. Got {shown(cv)}."
        )
    if cv is not None and wanted > n_units:
        what = "rows" if groups is None else "domains"
        raise InputError(f"cv must be at most the number of {what}, {n_units}. Got {cv}.")
    n_parts = min(int(wanted), n_units)
    if groups is None:
        splitter = row_splitter(y, n_parts, is_classes=is_classes, random_state=random_state)
    elif n_parts == n_units:
        splitter = GroupKFold(n_parts)
    else:
        splitter = GroupKFold(n_parts, shuffle=True, random_state=_seed(random_state))
    return list(splitter.split(np.zeros((len(y), 1)), y, groups))


def row_splitter(
    y: np.ndarray, n_parts: int = _ROW_PARTS, *, is_classes: bool, random_state: Any
) -> KFold | StratifiedKFold:
    """Splitter of rows at random; by class where every class has a row for every part."""
    n_parts = min(n_parts, len(y))
    by_class = is_classes and np.unique(y, return_counts=True)[1].min() >= n_parts
    kind = StratifiedKFold if by_class else KFold
    return kind(n_parts, shuffle=True, random_state=_seed(random_state))


def _later_parts(groups: np.ndarray | None) -> Splits:
    """Rows of all earlier domains, and of the next part of them; at most 20 parts are judged."""
    if groups is None:
        raise InputError('cv="time" needs groups: the year, or another time, of each row.')
    labels, codes = np.unique(groups, return_inverse=True)
    names = [str(label) for label in labels]
    # Numbers, dates and the like are in their order.
    is_text = all(isinstance(label, str | bytes) for label in labels)
    order = natural_order(names) if is_text else list(range(len(names)))
    if is_text and not all(map(_HAS_ORDER, names)):
        first = ", ".join(shown(names[i]) for i in order[:3])
        caution(
            f'compare_models: cv="time" sorts words, and dates that do not begin with the year, as '
            f"text: {first}, ... Pass numbers or dates as groups."
        )
    codes = np.argsort(order)[codes]
    n_parts = len(labels) - _EARLIER
    if n_parts < 2:
        raise InputError(
            f'cv="time" needs at least {_EARLIER + 2} domains: the first {_EARLIER} are not '
            f"judged, and one alone has no spread. Got {len(labels)}. Leave cv out, or name a "
            "finer domain."
        )
    starts = np.linspace(_EARLIER, len(labels), min(n_parts, _MAX_PARTS) + 1).astype(int)
    return [
        (np.flatnonzero(codes < start), np.flatnonzero((codes >= start) & (codes < stop)))
        for start, stop in pairwise(starts)
    ]


def _seed(random_state: Any) -> Any:
    """A seed that gives the same parts in every call of one contest."""
    if random_state is None:
        return 0
    return check_random_state(random_state).randint(2**31)


@dataclass(frozen=True)
class Loss:
    """Loss of a prediction: of each row, or by a scorer of scikit-learn."""

    name: str
    scorer: Any  # scikit-learn's, greater is better; None for the loss of each row
    is_classes: bool

    @classmethod
    def of(cls, scoring: Any, classes: np.ndarray | None) -> Loss:
        """The loss that was asked for; by default the share wrong, or the squared error."""
        if scoring is None:
            return cls(SQUARED_ERROR if classes is None else SHARE_WRONG, None, classes is not None)
        from sklearn.metrics import get_scorer, get_scorer_names

        if isinstance(scoring, str):
            if scoring not in get_scorer_names():
                raise InputError(
                    f"scoring must be one of scikit-learn's scorers. Got {scoring!r}."
                    + did_you_mean(scoring, get_scorer_names())
                )
            name = scoring.removeprefix("neg_") if scoring.startswith("neg_") else f"-{scoring}"
            return cls(name.replace("_", " "), get_scorer(scoring), classes is not None)
        if not callable(scoring):
            raise InputTypeError(f"scoring must be a name or a callable. Got {scoring!r}.")
        return cls(f"-{getattr(scoring, '__name__', 'score')}", scoring, classes is not None)

    def score(self, model: Any, X: Any, y: np.ndarray, weight: np.ndarray | None) -> float:
        """The scorer's value; weights reach it if there are any."""
        try:
            return float(
                self.scorer(model, X, y, **({} if weight is None else {"sample_weight": weight}))
            )
        except TypeError as error:
            if weight is None or "sample_weight" not in str(error):
                raise
            raise InputError(
                f"scoring {self.name.removeprefix('-')!r} does not take sample_weight. Choose "
                "another, or pass no weights."
            ) from error

    def rows(self, y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
        """Loss of each row, shape (n_rows,)."""
        if self.is_classes:
            return (np.asarray(predicted) != y).astype(np.float64)
        return (np.asarray(predicted, dtype=np.float64) - y) ** 2


@dataclass(frozen=True)
class _Judged:
    """One model on one part: mean error in each unit of it, features used, seconds of the fit."""

    units: np.ndarray
    errors: np.ndarray
    weights: np.ndarray  # rows of each unit in the part, or the sum of their weights
    n_features: float
    seconds: float


def _judged(
    name: str, model: Any, rows: Rows, k: int, part: tuple[np.ndarray, np.ndarray], loss: Loss
) -> _Judged:
    """The model judged on part k, which is one unit where rows have none."""
    train, test = rows.take(part[0]), rows.take(part[1])
    fitted, seconds = timed_fit(name, model, train, is_classes=loss.is_classes)
    unit = np.full(len(test.y), k) if test.unit is None else test.unit
    units, codes = np.unique(unit, return_inverse=True)
    weight = np.ones(len(codes)) if test.weight is None else test.weight
    weights = np.bincount(codes, weight)
    if loss.scorer is None:
        row_losses = loss.rows(test.y, outputs_of(name, fitted.predict, test.X)[:, 0])
        errors = np.bincount(codes, weight * row_losses) / weights
    else:
        of_units = [test.take(np.flatnonzero(codes == u)) for u in range(len(units))]
        try:
            scores = [loss.score(fitted, rows.X, rows.y, rows.weight) for rows in of_units]
        except (AttributeError, TypeError, ValueError) as error:
            if isinstance(error, SpokenError):
                raise
            reason = first_line(error).rstrip(".")
            raise InputError(
                f"scoring {loss.name.removeprefix('-')!r} cannot judge model {name!r} on a "
                f"left-out part: {reason}. Choose another scoring, or leave the model out."
            ) from error
        errors = -np.array(scores)
    if not np.isfinite(errors).all():
        raise InputError(
            f"model {name!r} has an error that is not finite on a left-out part. Leave it out, or "
            "choose a scoring that every part allows."
        )
    return _Judged(units, errors, weights, float(features_used(fitted, rows.n_columns)), seconds)


def _unit_errors(results: Sequence[_Judged]) -> np.ndarray:
    """Mean error of each unit over its rows in all parts, in the order of the units."""
    parts = ((result.units, result.errors, result.weights) for result in results)
    units, errors, weights = map(np.concatenate, zip(*parts, strict=True))
    _, codes = np.unique(units, return_inverse=True)
    return np.bincount(codes, errors * weights) / np.bincount(codes, weights)
