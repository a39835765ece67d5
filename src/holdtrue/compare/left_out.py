"""Models fitted without parts of the rows, and what they predict for these parts."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

from holdtrue.compare.field import Rows, fit_with_groups


class Fit(NamedTuple):
    """A model fitted without some parts; the model itself is kept where none is left out."""

    model: Any
    seconds: float
    outputs: dict[int, np.ndarray]  # of each part left out


def fit_without(
    left_out: tuple[int, ...],
    name: str,
    model: Any,
    rows: Rows,
    part_of_row: np.ndarray,
    classes: np.ndarray | None,
) -> Fit:
    """The model fitted without these parts, and its outputs for them."""
    train = rows.take(np.flatnonzero(~np.isin(part_of_row, left_out)))
    tests = {k: rows.take(np.flatnonzero(part_of_row == k)) for k in left_out}
    if classes is not None and (train.y == train.y[0]).all():
        # One class is left, which few models fit: it is what they would predict.
        has_shares = hasattr(model, "predict_proba")
        sure = {k: np.ones((len(test.y), 1)) for k, test in tests.items()}
        return Fit(
            None,
            0.0,
            {k: _placed(one, train.y[:1], classes, has_shares) for k, one in sure.items()},
        )
    start = time.perf_counter()
    fitted = fit_with_groups(
        model, train.X, train.y, train.groups, name, train.weight, scored=not left_out
    )
    seconds = time.perf_counter() - start
    outputs = {k: raw_output(fitted, test.X, classes) for k, test in tests.items()}
    return Fit(None if left_out else fitted, seconds, outputs)


def raw_output(model: Any, X: Any, classes: np.ndarray | None) -> np.ndarray:
    """Predictions of shape (n_rows, 1); shares (n_rows, n_classes); or decisions.

    Decisions have a column for each class, but one alone for two classes.
    """
    if classes is None:
        return np.asarray(model.predict(X), dtype=np.float64).reshape(-1, 1)
    has_shares = hasattr(model, "predict_proba")
    output = np.asarray(model.predict_proba(X) if has_shares else model.decision_function(X))
    output = output.astype(np.float64).reshape(len(output), -1)
    return _placed(output, model.classes_, classes, has_shares)


def _placed(
    output: np.ndarray, seen: np.ndarray, classes: np.ndarray, has_shares: bool
) -> np.ndarray:
    """Output for the classes that a model has seen as one for all classes.

    Others have share 0, or the decision -1 that least squares gives the rest.
    """
    if len(seen) == len(classes):
        return output
    if len(seen) == 2 and output.shape[1] == 1:
        output = np.hstack([-output, output])
    whole = np.full((len(output), len(classes)), 0.0 if has_shares else -1.0)
    whole[:, np.searchsorted(classes, seen)] = output
    return whole[:, 1:] if len(classes) == 2 and not has_shares else whole


def left_out_outputs(
    fits: dict[Any, Fit], name: str, part_of_row: np.ndarray, without: int | None = None
) -> np.ndarray:
    """Outputs of rows by the fit without their part, shape (n_rows, n_outputs).

    ``without`` a part: of the other rows, by fits that have not seen that part either.
    """
    parts = part_of_row if without is None else part_of_row[part_of_row != without]
    outputs = {}
    for j in np.unique(parts).tolist():
        pair = () if without is None else (min(j, without), max(j, without))
        fit = fits.get((name, pair)) if pair else None
        outputs[j] = (fit or fits[name, (j,)]).outputs[j]  # of two parts, one must be seen
    whole = np.empty((len(parts), max(output.shape[1] for output in outputs.values())))
    for j, output in outputs.items():
        whole[parts == j] = output
    return whole
