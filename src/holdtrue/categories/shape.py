"""What a column says at each of its values or bins: the deployed predictor's numbers, as a `Shape`.

The predictor is that of `shrunk` and `shrunk_mean`.

Notation
--------
========  =========================================================================================
q_k, a    share of class k of a value, shrunk by the strength a
n, M_2    rows of a value; sum of squares about its mean
σ²        mean square within values
d         what groups of rows do to a variance, `Outline.spread`; 1 without groups
========  =========================================================================================

Departures
----------
1. Where a criterion shrinks nothing, half a row stands for a.
2. ``v = (M_2 + (a + 1) σ²)/(n + a)``, between the value's own variance and that of all values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtri

from holdtrue.categories.estimate import MOST_SHAPES, ColumnEstimate, best_first
from holdtrue.categories.score import Scoring
from holdtrue.categories.shrunk import column_total, prior, shares
from holdtrue.categories.shrunk_mean import shrunk_means
from holdtrue.columns.bins import Outline, grouped_moments, holds_moments, rows_by_value
from holdtrue.columns.values import ORDERED
from holdtrue.evidence import Shape

_LEAST_STRENGTH = 0.5
_MIDNIGHT = re.compile(r"[ T]00:00:00(\.0+)?Z?$")


def best_shapes(
    names: Sequence[str],
    estimates: Sequence[ColumnEstimate],
    classes: tuple[Any, ...] | None,
    how: Scoring,
) -> tuple[Shape, ...]:
    """Shapes of the best columns that predict and whose values are known, the best first."""
    shown = [j for j in best_first(estimates) if estimates[j].outline is not None][:MOST_SHAPES]
    return tuple(column_shape(names[j], estimates[j], classes, how) for j in shown)


def column_shape(
    name: str, column: ColumnEstimate, classes: tuple[Any, ...] | None, how: Scoring
) -> Shape:
    """Shape of a column that predicts.

    Values without an order are the most frequent ones, and the others together. Values with an
    order are those of the bins, or all of them where they are few.
    """
    outline, strength = column.outline, column.estimate.strength
    assert outline is not None
    strength = _LEAST_STRENGTH if math.isnan(strength) else strength
    missing = outline.missing if how.missing == "category" else outline.missing[:0]
    ticks: list[str] = []
    reading = _ordered_reading(column, outline)
    if reading is None:
        labels, table = _frequent(outline, column.kind in ORDERED)
    else:
        ends, table = outline.bins[reading]
        edges = outline.edges(ends)
        is_each = len(table) == outline.n_values  # a bin is a value
        ticks = labels = texts(edges[1:] if is_each else edges)
        if not is_each:
            between = [f"{low} to {high}" for low, high in pairwise(labels[1:])]
            labels = [f"up to {labels[1]}", *between]
    table = np.concatenate([table, missing])
    labels = [*labels, *["missing"] * len(missing)]
    n = rows_by_value(table).astype(np.float64)
    if classes is None:
        of, numbers = "mean", shrunk_means(table, strength)
        whole = float(n @ table[:, 1] / n.sum())
        low, high = mean_interval(numbers, table, strength, how.alpha, outline.spread)
    else:
        total = column_total(table)
        q, in_all = shares(table, total, strength), prior(total)
        k = 1
        if len(in_all) > 2:  # the class about which the column says most
            k = int(np.argmax(n @ np.square(q - in_all) / (in_all * (1 - in_all))))
        of, numbers, whole = f"share of {str(classes[k])!r}", q[:, k], float(in_all[k])
        low, high = share_interval(numbers, n, strength, how.alpha, outline.spread)
    return Shape(name, of, tuple(labels), tuple(ticks), numbers, low, high, n, whole)


def _ordered_reading(column: ColumnEstimate, outline: Outline) -> int | None:
    """Index of the bins that show the column; None for values without an order, or too many."""
    if column.kind not in ORDERED or not outline.bins:
        return None
    if column.n_bins:
        return column.reading - (column.kind != "number")
    is_whole = len(outline.bins[-1][1]) == outline.n_values
    return len(outline.bins) - 1 if is_whole else None


def _frequent(outline: Outline, is_number: bool) -> tuple[list[str], np.ndarray]:
    """The most frequent values in words, and the others together; and their table."""
    order = list(range(len(outline.frequent)))
    if is_number:
        order.sort(key=lambda i: outline.frequent[i])
    labels, table = texts([outline.frequent[i] for i in order]), outline.tables[order]
    n_others = outline.n_values - len(labels)
    if not n_others:
        return labels, table
    labels = [*labels, f"{n_others:,} other" + "s" * (n_others > 1)]
    if not holds_moments(table):
        return labels, np.concatenate([table, outline.total - table.sum(axis=0)])
    n, mean, m2 = outline.total[0, :3]
    # What is left of the whole once the values shown are taken away.
    rest = np.zeros((1, table.shape[1]))
    shown = grouped_moments(np.zeros(len(table), dtype=np.intp), 1, table)[0]
    rest[0, 0] = n - shown[0]
    rest[0, 1] = (n * mean - shown[0] * shown[1]) / max(rest[0, 0], 1.0)
    apart = (shown[1] - rest[0, 1]) ** 2 * shown[0] * rest[0, 0] / n
    rest[0, 2] = max(m2 - shown[2] - apart, 0.0)
    return labels, np.concatenate([table, rest])


def texts(values: Sequence[Any]) -> list[str]:
    """Values as people write them; numbers to as many digits as tell them apart."""
    floats = [value for value in values if isinstance(value, float)]
    n_different = len(set(floats))
    digits = next(d for d in range(3, 18) if len({_digits(v, d) for v in floats}) == n_different)
    are_days = all(isinstance(value, str) and _MIDNIGHT.search(value) for value in values)
    return [
        _digits(value, digits)
        if isinstance(value, float)
        else _MIDNIGHT.sub("", str(value))
        if are_days
        else str(value)
        for value in values
    ]


def _digits(value: float, digits: int) -> str:
    """A number rounded to that many digits, without an exponent unless very large or small."""
    if abs(value) < 1e9 and value == round(value):
        return f"{value:.0f}"
    if not 1e-4 < abs(value) < 1e9:
        return f"{value:.{digits}g}"
    return np.format_float_positional(value, precision=digits, fractional=False, trim="-")


# --- numbers ------------------------------------------------------------------------------------


def share_interval(
    q: np.ndarray, n: np.ndarray, strength: float, alpha: float, spread: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Ends that hold the share with probability 1 - α: a Beta of mean q and ``(n + a)/d`` rows."""
    rows = (n + strength) / spread
    low, high = (betaincinv(rows * q, rows * (1 - q), p) for p in (alpha / 2, 1 - alpha / 2))
    return np.minimum(low, q), np.maximum(high, q)


def mean_interval(
    means: np.ndarray, moments: np.ndarray, strength: float, alpha: float, spread: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Ends that hold the mean with probability 1 - α, of variance ``d v/(n + a)``."""
    n, m2 = moments[:, 0], moments[:, 2]
    within = float(m2.sum()) / max(float(n.sum()) - len(n), 1.0)
    variance = (m2 + (strength + 1) * within) / (n + strength)
    radius = -float(ndtri(alpha / 2)) * np.sqrt(spread * variance / (n + strength))
    return means - radius, means + radius
