"""Errors of models at left-out domains or rows, and decisions as shares of the classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from holdtrue.compare.field import Rows
from holdtrue.domains.base import distinct_rows


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

    def mean(self, errors: np.ndarray) -> float:
        """Mean over the units that have an error."""
        known = ~np.isnan(errors)
        return float(np.average(errors[known], weights=self.unit_weights[known]))

    def calibration(self, held_out: np.ndarray) -> Any:
        """Logistic regression of left-out decisions; None if they are shares, or numbers.

        Where each domain has one class, a fit without the domain leans to the others: decisions
        rank the wrong way at left-out domains only. The shares of the classes are all that is kept.
        """
        n_outputs = self.targets.shape[1]
        if n_outputs == 1 or (
            held_out.shape[1] == n_outputs and np.allclose(held_out.sum(axis=1), 1)
        ):
            return None
        logistic = LogisticRegression(C=100.0, max_iter=1000)
        codes, weight = self.targets.argmax(axis=1), self.rows.weight
        logistic.fit(held_out, codes, sample_weight=weight)
        if np.trace(logistic.coef_) <= 0:
            logistic.fit(np.zeros_like(held_out), codes, sample_weight=weight)
        return logistic


def calibrated(output: np.ndarray, calibration: Any) -> np.ndarray:
    """Output as it is, or decisions as shares by `Judge.calibration`."""
    return output if calibration is None else calibration.predict_proba(output)


def judged_units(rows: Rows) -> np.ndarray:
    """Domain of each row, from 0; without groups each distinct row."""
    if rows.groups is not None:
        return np.unique(rows.groups, return_inverse=True)[1]
    X, is_frame = rows.X, hasattr(rows.X, "columns")
    columns = [rows.y, *([np.asarray(X[name]) for name in X.columns] if is_frame else X.T)]
    numbers = [
        column
        if column.dtype.kind in "fiub"
        else np.unique(column.astype(str), return_inverse=True)[1]
        for column in columns
    ]
    return distinct_rows(*numbers)
