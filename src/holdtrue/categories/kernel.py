"""Which columns predict and which only remember: the error of a column's predictor on new rows.

Paper
-----
Sabato & Shalev-Shwartz, "Ranking Categorical Features Using Generalization Properties", Journal of
Machine Learning Research 9 (2008) 1083-1114.

Notation
--------
===================  ====================================================================
paper                here
===================  ====================================================================
m                    ``n_samples``, the sum of a table; with weights, of the weights
v in V, c_v, c_v⁺    rows of ``counts``, shape (n_values, K); their sums; column 1 if K = 2
p̂_v, q̂_v             ``c_v/m``; the row divided by its sum
ℓ̂                    `ginger`
h_S^Gini, h_S^Bayes  `gini_rule`, `majority_rule`, rows of probabilities of the K classes
M_k                  `good_turing`, mass of the values seen k times
δ                    ``alpha``
(none)               ``terms``: m times what each value adds to a criterion
(none)               K, the number of classes; the paper has 2
===================  ====================================================================

Where to find it
----------------
============================  ==========================================
(1) misclassification error   `misclassification_terms`
(2) Gini index                `gini_terms`
(3) error of a rule           `rule_error`
(4), (5)                      `gini_rule`, `majority_rule`
(6) and Good (1953)           `good_turing`, `coverage`
(7), (13) Ginger              `ginger_terms`, `ginger`
Theorem 2                     `theorem2_radius`
(10)                          `bayes_gap`
information gain, its ratio   `entropy_terms`, `criterion_value`
beyond the paper              `majority_terms`, `jackknife`, `ginger_gain`
============================  ==========================================

Departures
----------
1. K classes: ``2 q (1 - q)`` becomes ``1 - Σ_k q_k²`` and the ½ of a value seen once ``1 - 1/K``.
   With K = 2 these are (2) and (7).
2. `majority_terms`, the leave-one-out error of rule (5), is the estimator that §3 and §6 leave
   open: t labels tied for the most cost ``1 - 1/t`` if the row's label is one of them, else 1.
3. A numeric target, in `shrunk_mean`: leave-one-out squared error of the value's mean.
4. The bounds (10) and Theorem 2 are proved for two classes.
5. Information gain is scored as the entropy that is left, gain ratio as one minus the ratio, so
   that lower is better throughout. Entropies are in bits.
6. Without a column one may still guess: `no_column` is never above ``1 - 1/K``. Left out of a
   balanced sample a row finds its own class in the minority, and (7) gives a constant column more
   than ½; an id would seem to beat it.
7. The best of p columns looks better than it is. Where columns are added one by one (trees, the
   selector's ``mode="forward"``) a column must gain more than ``sqrt(2 ln p)`` standard errors of
   `ginger_gain`, about the largest of p standard normal numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import xlogy

from holdtrue.columns.bins import row_sums as row_sums

# --- what each value adds -----------------------------------------------------------------------


def misclassification_terms(counts: np.ndarray) -> np.ndarray:
    """Training errors of the majority rule by value, ``m p̂_v (1 - max_k q̂_vk)`` (1)."""
    return row_sums(counts) - counts.max(axis=1)


def gini_terms(counts: np.ndarray) -> np.ndarray:
    """Gini index by value, ``m p̂_v (1 - Σ_k q̂_vk²)`` (2)."""
    c = row_sums(counts)
    return _pairs(counts, c) / np.maximum(c, 1)


def ginger_terms(counts: np.ndarray) -> np.ndarray:
    """Ginger by value (13): ``c/(c - 1)`` times Gini's term, or ``1 - 1/K`` for a value seen once.

    ``c² - Σ_k c_k²`` counts the ordered pairs of rows with different labels, (12).
    """
    c = row_sums(counts)
    seen_once = 1 - 1 / counts.shape[1]
    return np.where(c == 1, seen_once, _pairs(counts, c) / np.maximum(c - 1, 1))


def _pairs(counts: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Ordered pairs of rows of one value whose labels differ."""
    c = c.astype(np.float64)
    return c * c - np.einsum("vk,vk->v", counts, counts, dtype=np.float64)


def majority_terms(counts: np.ndarray) -> np.ndarray:
    """Leave-one-out errors of rule (5) by value (departure 2).

    Without a row of the most frequent label that label leads, ties with the u labels that had one
    row less, or is beaten by a label it was tied with. Rows of other labels are always lost.
    """
    n_classes = counts.shape[1]
    c = row_sums(counts)
    two = np.partition(counts, n_classes - 2, axis=1)[:, -2:]
    second, most = two[:, 0], two[:, 1]
    level = np.count_nonzero(counts == second[:, None], axis=1)  # u, where second is most - 1
    ties = np.where(most - 1 == second, most * (1 - 1 / (1 + level)), 0.0)
    terms = np.where(second == most, c, c - most + ties)
    return np.where(c == 1, 1 - 1 / n_classes, terms)


def entropy_terms(
    counts: np.ndarray, c_log_c: Callable[[np.ndarray], np.ndarray] | None = None
) -> np.ndarray:
    """Entropy of the label by value, ``m p̂_v H(q̂_v)`` in bits: ``c log₂ c - Σ_k c_k log₂ c_k``.

    ``c_log_c`` gives ``c log₂ c`` of every number of an array; a tree looks it up.
    """
    if c_log_c is not None:
        return c_log_c(row_sums(counts)) - c_log_c(counts).sum(axis=1)
    counts = counts.astype(np.float64)
    c = row_sums(counts)
    return (xlogy(c, c) - xlogy(counts, counts).sum(axis=1)) / math.log(2)


# Named here; `score.CRITERIA` says what each measures.
TERMS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "ginger": ginger_terms,
    "gini": gini_terms,
    "majority": majority_terms,
    "misclassification": misclassification_terms,
    "information_gain": entropy_terms,
    "gain_ratio": entropy_terms,
}
# Criteria that leave each row out; the others judge the rows of the fit.
LEAVE_ONE_OUT = ("ginger", "majority")


# --- criteria -----------------------------------------------------------------------------------


def ginger(counts: np.ndarray) -> float:
    """Estimate of the error of ``h(v) = q̂_v`` on new rows (7)."""
    return criterion_value("ginger", counts)


def criterion_value(
    criterion: str,
    counts: np.ndarray,
    repeats: np.ndarray | None = None,
    *,
    unseen: str = "uniform",
) -> float:
    """Value of a criterion, one of `TERMS`; lower is better.

    Parameters
    ----------
    criterion : str
    counts : ndarray of shape (n_values, n_classes)
    repeats : ndarray of shape (n_values,), optional
        Number of values that have each row of counts, as in `holdtrue.sums.Profile`.
    unseen : {"uniform", "prior"}
        How a value not seen is predicted, which is what a value seen once costs `ginger` and
        `majority`: any class alike, or as the other rows have it.
    """
    repeats = np.ones(len(counts)) if repeats is None else repeats
    total = repeats @ counts
    c = row_sums(counts)
    m = float(total.sum())
    cost = unseen_cost(criterion, total, unseen)
    mean = float(repeats @ _terms(criterion, counts, cost)) / m
    if criterion != "gain_ratio":
        return mean
    entropy = entropy_terms(total[None])[0] / m
    split = (math.log(m) - float(repeats @ xlogy(c, c)) / m) / math.log(2)
    return 1 - (entropy - mean) / split if split > 1e-12 else 1.0


def unseen_cost(criterion: str, total: np.ndarray, unseen: str) -> np.ndarray:
    """Error of a row of each class whose value no other row has, shape (n_classes,).

    ``total`` are all rows, the row itself included.
    """
    n_classes = len(total)
    if unseen == "uniform" or total.sum() < 2:
        return np.full(n_classes, 1 - 1 / n_classes)
    others = np.maximum(total[None] - np.eye(n_classes), 0)
    rule = majority_rule if criterion == "majority" else gini_rule
    return 1 - np.diag(rule(others))


def _terms(criterion: str, counts: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Terms of a criterion; values seen once at the given cost where it leaves rows out."""
    terms = TERMS[criterion](counts)
    if criterion not in LEAVE_ONE_OUT:
        return terms
    return np.where(row_sums(counts) == 1, counts @ cost, terms)


def no_column(criterion: str, counts: np.ndarray) -> float:
    """Value of the criterion for a constant column on the same rows (departure 6)."""
    value = criterion_value(criterion, counts.sum(axis=0, keepdims=True))
    return min(value, _guess(criterion, counts.shape[1]))


def _guess(criterion: str, n_classes: int) -> float:
    """Error of naming any class alike, for the criteria that leave rows out."""
    return 1 - 1 / n_classes if criterion in LEAVE_ONE_OUT else math.inf


# --- rules (4) and (5), and their error (3) -----------------------------------------------------


def gini_rule(counts: np.ndarray) -> np.ndarray:
    """Probabilities with which rule (4) names each class, ``q̂_v``; uniform for a value not seen."""
    c = counts.sum(axis=1, keepdims=True)
    return np.where(c > 0, counts / np.maximum(c, 1), 1 / counts.shape[1])


def majority_rule(counts: np.ndarray) -> np.ndarray:
    """Probabilities with which rule (5) names each class; labels tied for the most share it."""
    most = counts == counts.max(axis=1, keepdims=True)
    return most / most.sum(axis=1, keepdims=True)


def rule_error(rule: np.ndarray, joint: np.ndarray) -> float:
    """Probability that a rule names a wrong class (3), ``Σ_v Σ_k P(v, k) (1 - h_k(v))``.

    ``joint`` are probabilities of value and class, or the counts of a test sample over its size.
    """
    return float(np.sum(joint * (1 - rule)))


# --- how often values recur ---------------------------------------------------------------------


def good_turing(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers k and estimates ``M_k ≈ (k + 1) n_{k+1}/m`` of the mass of values seen k times.

    Only the k with a mass above 0 are listed; the masses add up to 1.
    """
    c = counts if counts.ndim == 1 else row_sums(counts)
    seen, n_values = np.unique(c[c > 0], return_counts=True)
    return seen.astype(np.intp) - 1, seen * n_values / c.sum()


def coverage(counts: np.ndarray) -> float:
    """Share of new rows whose value has been seen, ``1 - M_0 = 1 - n_1/m``."""
    c = counts if counts.ndim == 1 else row_sums(counts)
    return 1 - float(np.count_nonzero(c == 1) / c.sum())


def bayes_gap(counts: np.ndarray) -> float:
    """Right side of (10): what rule (5) may lose to the best rule there is, on average.

    ``½ M_0 + ⅛ M_1 + ⅛ M_2 + Σ_{k≥3} M_k/sqrt(e k)`` with the masses of `good_turing`.
    """
    k, mass = good_turing(counts)
    factor = 1 / np.sqrt(math.e * np.maximum(k, 1))
    factor = np.where(k == 0, 1 / 2, np.where(k <= 2, 1 / 8, factor))
    return float(factor @ mass)


def theorem2_radius(n_samples: float, alpha: float = 0.05) -> float:
    """Theorem 2 with the constants of its proof: with probability 1 - α, ``|ℓ - ℓ̂|`` is below it.

    ``2/m + 12 ln(8m/α) sqrt(ln(8/α))/sqrt(2m) + 12 sqrt(ln(4/α)/(2m))``, whatever the column.
    """
    m = n_samples
    return (
        2 / m
        + 12 * math.log(8 * m / alpha) * math.sqrt(math.log(8 / alpha) / (2 * m))
        + 12 * math.sqrt(math.log(4 / alpha) / (2 * m))
    )


# --- jackknife ----------------------------------------------------------------------------------


def jackknife(
    criterion: str,
    counts: np.ndarray,
    repeats: np.ndarray | None = None,
    *,
    unseen: str = "uniform",
) -> tuple[float, float]:
    """Jackknife standard errors of a criterion and of its gain over `no_column`.

    A row of value v and label k left out changes the sum T of the terms by ``t'_v - t_v`` alone
    (and the cost of values seen once, if unseen values follow the other rows), so that the
    estimate without it is ``(T - t_v + t'_v)/(m - 1)``, one number for all ``c_vk`` rows of the
    cell. T, the same for all rows, is left out: beside it the change would lose digits.

    At least 2 rows in all.
    """
    repeats = np.ones(len(counts)) if repeats is None else repeats
    n_classes = counts.shape[1]
    c = row_sums(counts)
    total = repeats @ counts
    m = float(total.sum())
    split = float(repeats @ xlogy(c, c))
    once = (repeats * (c == 1)) @ counts
    cost_before = unseen_cost(criterion, total, unseen)
    T = float(repeats @ _terms(criterion, counts, cost_before))
    parts = []  # by class: rows of each cell, score and gain without one of them
    for k in np.flatnonzero(total):
        held = np.flatnonzero(counts[:, k])
        rows, total_less = counts[held], total.copy()
        total_less[k] -= 1
        cost = unseen_cost(criterion, total_less, unseen)
        less = rows.copy()
        less[:, k] -= 1
        change = _terms(criterion, less, cost) - _terms(criterion, rows, cost)
        if criterion in LEAVE_ONE_OUT:
            change = change + float(once @ (cost - cost_before))
        left = change / (m - 1)
        left0 = float(_terms(criterion, total_less[None], cost)[0]) / (m - 1)
        left0 = min(left0, _guess(criterion, n_classes))
        if criterion == "gain_ratio":
            c = rows.sum(axis=1)
            bits = math.log(m - 1) - (split - xlogy(c, c) + xlogy(c - 1, c - 1)) / (m - 1)
            bits /= math.log(2)
            constant = bits <= 1e-12
            gained = left0 - T / (m - 1) - left
            left = np.where(constant, 1.0, 1 - gained / np.where(constant, 1.0, bits))
            left0 = 1.0
        parts.append(np.stack([rows[:, k] * repeats[held], left, left0 - left]))
    weight, *estimates = np.concatenate(parts, axis=1)
    # Variance (m - 1)/m Σ_i (ℓ̂_(i) - mean)².
    squares = [weight @ np.square(each - weight @ each / m) for each in estimates]
    score, gain = (math.sqrt((m - 1) / m * float(each)) for each in squares)
    return score, gain


# --- what cutting the values finer gains (departure 7) ------------------------------------------


def ginger_gain(
    counts: np.ndarray, parent: np.ndarray | None = None, *, unseen: str = "uniform"
) -> tuple[float, float]:
    """Rows that finer values take off Ginger's estimate, and their standard error.

    A row of class k, of the value v cut out of the value V, gains
    ``d = (1 - (C_Vk-1)/(C_V-1)) - (1 - (c_vk-1)/(c_v-1))``, its estimate in V minus that in v,
    where a row alone is charged ``1 - 1/K``. Every pair of rows enters the d of both, so that where
    the cut says nothing the variance of the sum is twice ``Σ (d - mean)²``: a pair of coin tosses
    loses 0 or 2, variance 1, while its rows' own variances add up to ½.

    Parameters
    ----------
    counts : ndarray of int, shape (n_values, n_classes)
        Of the finer values, none of them empty.
    parent : ndarray of int, shape (n_values,), optional
        The coarser value that each is cut out of; by default there is one. It counts as no worse
        than chance, 1 - 1/K per row.
    unseen : {"uniform", "prior"}
        As in `criterion_value`.
    """
    parent = np.zeros(len(counts), dtype=np.intp) if parent is None else parent
    n_classes = counts.shape[1]
    whole = np.stack([np.bincount(parent, counts[:, k]) for k in range(n_classes)], axis=1)
    cost = unseen_cost("ginger", counts.sum(axis=0), unseen)
    before = _left_out(whole, cost)
    difference = before[parent] - _left_out(counts, cost)
    gain = float((counts * difference).sum())
    spread = float((counts * np.square(difference - gain / counts.sum())).sum())
    above_chance = (whole * (before - (1 - 1 / n_classes))).sum(axis=1)
    return gain - float(np.maximum(above_chance, 0).sum()), math.sqrt(2 * spread)


def _left_out(counts: np.ndarray, cost: np.ndarray) -> np.ndarray:
    """Estimated error of a row of each value and class, shape (n_values, n_classes)."""
    c = row_sums(counts)[:, None]
    return np.where(c == 1, cost, 1 - (counts - 1) / np.maximum(c - 1, 1))
