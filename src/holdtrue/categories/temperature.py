"""Shares calibrated by one temperature, about shares of the classes that are fitted with it.

Paper
-----
Guo, Pleiss, Sun & Weinberger, "On Calibration of Modern Neural Networks", Proceedings of the 34th
International Conference on Machine Learning (2017): section 4.2, temperature scaling.

Notation
--------
=====  ============================================================================
T      ``temperature``
π_k    ``prior``, shares of the classes among all rows
α_k    ``anchor``, what a row is given whose shares are π
p_k    ``shares``, calibrated ``α_k (p_k/π_k)^(1/T)`` over their sum
=====  ============================================================================

Where to find it
----------------
=======================  ============
temperature and anchor   `calibrated`
scaling                  `tempered`
=======================  ============

Departures
----------
1. The paper has neither π nor α: its shares sharpen away from uniform ones. A forest's are too near
   to π, and with a rare class sharpening would only make every row less likely to be of it. About π
   itself slopes stay above 1 where a class is rare: rows of many doubtful ones share its mean.
2. ``log α/π`` and ``log T/T_0`` have standard normal priors, which weigh about one row: without
   them a handful of rows, all of them right, would ask for certainty. Above ``T_0 = 1/2`` the prior
   of T is narrower, of deviation .5: averages of shrunk trees are too timid by about a half on
   every table, and where rows out of bag say little they say T > 1 as often as not.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

_WIDEST = 3.0  # of log T: a factor of 20
_USUAL = math.log(0.5)  # log T_0 (departure 2)
_TIMID = 0.5


class Calibration(NamedTuple):
    """Temperature and anchor, shape (n_classes,)."""

    temperature: float
    anchor: np.ndarray


def tempered(shares: np.ndarray, prior: np.ndarray, calibration: Calibration) -> np.ndarray:
    """Shares over the prior to the power ``1/T``, times the anchor, in proportion.

    Parameters
    ----------
    shares : ndarray of shape (n_rows, n_classes)
        Above 0.
    prior : ndarray of shape (n_classes,)
        Above 0.
    calibration : Calibration
    """
    temperature, anchor = calibration
    return np.asarray(softmax(np.log(shares / prior) / temperature + np.log(anchor), axis=1))


def calibrated(
    shares: np.ndarray, prior: np.ndarray, label: np.ndarray, weight: np.ndarray
) -> Calibration:
    """Temperature and anchor of least log loss; 1/2 and the prior without rows.

    Parameters
    ----------
    shares : ndarray of shape (n_rows, n_classes)
        Of rows that the predictor has not seen.
    prior : ndarray of shape (n_classes,)
    label : ndarray of int, shape (n_rows,)
    weight : ndarray of shape (n_rows,)
    """
    logs, log_prior = np.log(shares / prior), np.log(prior)
    rows = np.arange(len(label))

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        log_t, offset = parameters[0], parameters[1:]
        stretched = math.exp(-log_t) * logs
        log_share = log_softmax(stretched + log_prior + offset, axis=1)
        away = log_t - _USUAL
        precision = 1 / _TIMID**2 if away > 0 else 1.0
        value = (precision * away**2 + float(offset @ offset)) / 2
        value -= float(weight @ log_share[rows, label])
        residual = np.exp(log_share)
        residual[rows, label] -= 1
        residual *= weight[:, None]
        on_t = precision * away - np.vdot(residual, stretched)
        return value, np.append(on_t, residual.sum(axis=0) + offset)

    bounds = [(-_WIDEST, _WIDEST), *[(None, None)] * len(prior)]
    best = minimize(loss, np.zeros(1 + len(prior)), jac=True, method="L-BFGS-B", bounds=bounds).x
    return Calibration(math.exp(float(best[0])), softmax(log_prior + best[1:]))
