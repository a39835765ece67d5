"""Models fitted without parts of the rows: their predictions and errors on those parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from holdtrue.compare.field import Rows, outputs_of, timed_fit
from holdtrue.errors import InputError

# Penalties of calibrations: of two classes, and of more, which have a slope for every pair.
_LOOSE, _TIGHT = 100.0, 10.0


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
    fitted, seconds = timed_fit(
        name, model, train, is_classes=classes is not None, scored=not left_out
    )
    tests = {k: rows.take(np.flatnonzero(part_of_row == k)).X for k in left_out}
    has_shares = hasattr(model, "predict_proba")
    outputs = {k: raw_output(name, fitted, X, classes, has_shares) for k, X in tests.items()}
    if not all(np.isfinite(output).all() for output in outputs.values()):
        raise InputError(
            f"model {name!r} predicts a number that is not finite on a left-out part. Leave it out."
        )
    return Fit(None if left_out else fitted, seconds, outputs)


def raw_output(
    name: str, model: Any, X: Any, classes: np.ndarray | None, as_shares: bool | None = None
) -> np.ndarray:
    """Predictions of shape (n_rows, 1); shares (n_rows, n_classes); or decisions.

    Decisions have a column for each class, but a single one for two classes. ``as_shares`` asks for
    shares or for decisions; by default for what the model has.
    """
    if classes is None:
        return outputs_of(name, model.predict, X).astype(np.float64)
    has_shares = hasattr(model, "predict_proba")
    method = model.predict_proba if has_shares else model.decision_function
    output = outputs_of(name, method, X, single=False).astype(np.float64)
    n_seen, n_outputs = len(model.classes_), output.shape[1]
    if n_outputs != n_seen and (n_outputs, n_seen) != (1, 2):  # such as one for every pair
        raise InputError(
            f"model {name!r} has {n_outputs} outputs for {n_seen} classes, expected one for each. "
            "Pass decision_function_shape='ovr' to an SVC, or leave the model out."
        )
    as_shares = has_shares if as_shares is None else as_shares
    return _placed(output, model.classes_, classes, as_shares)


def _placed(
    output: np.ndarray, seen: np.ndarray, classes: np.ndarray, has_shares: bool
) -> np.ndarray:
    """Output with a column for every class, from that for the classes a model has seen.

    Classes not seen have share 0, or the decision -1 that least squares gives the rest.
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

    With ``without``, a part: outputs of the other rows by fits that have not seen that part either.
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


# --- errors, and decisions as shares of the classes ---


class Judge:
    """Errors of outputs: the squared error of a number, or of the shares of the classes.

    Parameters
    ----------
    rows : Rows
    targets : ndarray of shape (n_rows, n_outputs)
    """

    def __init__(self, rows: Rows, targets: np.ndarray):
        self.rows, self.targets = rows, targets
        self._weight = np.ones(len(targets)) if rows.weight is None else rows.weight
        self._unit = rows.unit
        # A domain counts once, a row as often as it is repeated.
        counts = np.bincount(self._unit, self._weight)
        self.unit_weights = counts if rows.groups is None else np.ones(len(counts))

    def unit_errors(self, predicted: np.ndarray, at: Any = slice(None)) -> np.ndarray:
        """Mean squared error in each unit, shape (n_units,); of the rows ``at`` alone if given."""
        row_errors = ((self.targets[at] - predicted) ** 2).sum(axis=1)
        unit, weight = self._unit[at], self._weight[at]
        n_units = len(self.unit_weights)
        with np.errstate(invalid="ignore"):  # nan where a unit has none of the rows
            return np.bincount(unit, weight * row_errors, n_units) / np.bincount(
                unit, weight, n_units
            )

    def shares_wrong(self, shares: np.ndarray) -> np.ndarray:
        """Share of rows in each unit whose class is not the likeliest, shape (n_units,)."""
        likeliest = np.eye(shares.shape[1])[shares.argmax(axis=1)]
        return self.unit_errors(likeliest) / 2  # two outputs are off by 1 where the class is wrong

    def mean(self, errors: np.ndarray) -> float:
        """Mean over the units that have an error."""
        known = ~np.isnan(errors)
        return float(np.average(errors[known], weights=self.unit_weights[known]))

    def calibration(self, decisions: np.ndarray, at: Any = slice(None)) -> Any:
        """Logistic regression of the classes of the rows ``at`` on their left-out decisions.

        None if they are shares, or numbers. Where each domain has one class, a fit without the
        domain leans to the others: decisions rank the wrong way at left-out domains only. The
        shares of the classes are all that is kept.
        """
        if not self._are_decisions(decisions):
            return None
        codes = self.targets[at].argmax(axis=1)
        weight = None if self.rows.weight is None else self.rows.weight[at]
        if (codes == codes[0]).all():  # which logistic regression does not fit
            return DummyClassifier().fit(decisions, codes)
        logistic = LogisticRegression(C=_LOOSE if self.targets.shape[1] == 2 else _TIGHT)
        logistic.set_params(max_iter=1000).fit(decisions, codes, sample_weight=weight)
        slopes = logistic.coef_ if decisions.shape[1] == 1 else logistic.coef_[:, logistic.classes_]
        if np.trace(slopes) <= 0:
            logistic.fit(np.zeros_like(decisions), codes, sample_weight=weight)
        return logistic

    def left_out_shares(
        self,
        outputs: np.ndarray,
        part: np.ndarray,
        at: Any = slice(None),
        without: Sequence[np.ndarray] | None = None,
    ) -> np.ndarray:
        """Outputs for the rows ``at``; decisions as shares, calibrated by the other parts' rows.

        Judged on the rows it was fitted to, a calibration looks better than it is. ``without[k]``
        are outputs for those rows by fits that have not seen part k either; without them they are
        the outputs themselves, whose fits have: where part k has many of a class, they lean to it,
        the calibration leans away, and part k looks harder than it is.
        """
        if not self._are_decisions(outputs):
            return outputs
        parts, rows = np.unique(part), np.arange(len(self.targets))[at]
        shares = np.zeros((len(outputs), self.targets.shape[1]))
        for k in parts:
            others = part != k if len(parts) > 1 else part == k
            decisions = outputs[others] if without is None else without[k]
            calibration = self.calibration(decisions, rows[others])
            judged = np.ix_(part == k, calibration.classes_)
            shares[judged] = calibration.predict_proba(outputs[part == k])
        return shares

    def _are_decisions(self, outputs: np.ndarray) -> bool:
        """Whether these are neither numbers nor shares of the classes."""
        n_outputs = self.targets.shape[1]
        are_shares = outputs.shape[1] == n_outputs and np.allclose(outputs.sum(axis=1), 1)
        return n_outputs > 1 and not are_shares
