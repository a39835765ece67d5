"""Threshold and probabilities of a classifier, from its decisions on left-out rows.

A dozen left-out decisions say little, and those of separable classes ask for infinite slopes. So
both the slope and the threshold of the logistic regression have a prior, and a score beyond ±1, the
targets themselves, says no more than ±1: a column that hardly varies over a dozen rows can be a
hundred times larger in a new one. Prior and bound were picked among some thirty by the log loss on
five pools of ``experiments/sources_rivals.py``; on the six others it fell as much.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax

# Penalty of the log slope, in nats: _PRIOR_WEIGHT (log slope - _PRIOR_SLOPE)². Targets are ±1, so
# that the slope has a natural unit. The penalty of the threshold, in log-odds, is its square.
_PRIOR_SLOPE = 0.75
_PRIOR_WEIGHT = 2.0
_MOST_STEPS, _LEAST_STEP = 50, 1e-7  # the step after one of 1e-7 would be of 1e-14
_LONGEST_STEP = 4.0  # of the log slope; where the loss hardly bends, Newton's is thousands


def thresholds(
    decisions: np.ndarray, targets: np.ndarray, weights: Sequence[np.ndarray]
) -> np.ndarray:
    """Threshold of each target as in `calibrated`, for each of several sets of row weights.

    A set of weights has shape (n_rows, n_targets), the result (n_sets, n_targets).
    """
    return np.array([[x for x, _ in _fits(decisions, targets, each)] for each in weights])


def calibrated(
    decisions: np.ndarray, targets: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, float]:
    """Thresholds of the targets, and one temperature for all, from left-out decisions.

    Decisions, targets (±1) and weights have shape (n_rows, n_targets). Probabilities are the
    softmax of ``(decision - threshold)/temperature``; of two classes the logistic function of
    ``decision - threshold``, cut to ±1, by the temperature. (Of several, cut scores could tie.)
    """
    fits = _fits(decisions, targets, weights)
    offsets = np.array([threshold for threshold, _ in fits])
    if len(fits) == 1:
        return offsets, float(np.exp(-fits[0][1]))
    moved = decisions - offsets
    row, weight, label = np.arange(len(moved)), weights.mean(axis=1), targets.argmax(axis=1)

    def loss(log_slope: float) -> float:
        shares = log_softmax(np.exp(log_slope) * moved, axis=1)
        return float(_penalty(log_slope) - weight @ shares[row, label])

    ends = (_PRIOR_SLOPE - 10, _PRIOR_SLOPE + 10)
    log_slope = minimize_scalar(loss, bounds=ends, method="bounded").x
    return offsets, float(np.exp(-log_slope))


def _fits(
    decisions: np.ndarray, targets: np.ndarray, weights: np.ndarray
) -> list[tuple[float, float]]:
    columns = zip(np.clip(decisions, -1, 1).T, targets.T, weights.T, strict=True)
    return [_logistic(*of_target) for of_target in columns]


def _penalty(log_slope: float) -> float:
    return _PRIOR_WEIGHT * (log_slope - _PRIOR_SLOPE) ** 2


def _logistic(
    decisions: np.ndarray, targets: np.ndarray, weight: np.ndarray
) -> tuple[float, float]:
    """Threshold and log slope of the logistic regression of the target on the decision."""

    def loss(log_slope: float, offset: float) -> float:
        margins = targets * (math.exp(log_slope) * decisions - offset)
        return float(weight @ np.logaddexp(0, -margins)) + offset**2 + _penalty(log_slope)

    log_slope, offset = _PRIOR_SLOPE, 0.0
    value = loss(log_slope, offset)
    for _ in range(_MOST_STEPS):  # Newton's, a handful, halved where the loss would rise
        scaled = math.exp(log_slope) * decisions
        wrong = expit(-targets * (scaled - offset))
        pull, curve = weight * targets * wrong, weight * wrong * (1 - wrong)
        by_slope = 2 * _PRIOR_WEIGHT * (log_slope - _PRIOR_SLOPE) - float(pull @ scaled)
        by_offset = 2 * offset + float(pull.sum())
        bend = float(curve @ scaled**2) + 2 * _PRIOR_WEIGHT
        both, bend_offset = -float(curve @ scaled), float(curve.sum()) + 2
        whole = bend - float(pull @ scaled)
        if whole * bend_offset > both**2:  # else the loss is not convex here
            bend = whole
        determinant = bend * bend_offset - both**2
        step = (
            (bend_offset * by_slope - both * by_offset) / determinant,
            (bend * by_offset - both * by_slope) / determinant,
        )
        share = 1.0 / max(1.0, abs(step[0]) / _LONGEST_STEP)
        while (new := loss(log_slope - share * step[0], offset - share * step[1])) > value:
            share /= 2
            if share < _LEAST_STEP:
                break
        log_slope, offset, value = log_slope - share * step[0], offset - share * step[1], new
        if abs(step[0]) + abs(step[1]) < _LEAST_STEP:
            break
    return offset * math.exp(-log_slope), log_slope
