"""How many terms a small sample can afford: estimates of the error of nested linear models.

Paper
-----
Chapelle, Vapnik & Bengio, "Model Selection for Small Sample Regression", Machine Learning 48
(2002) 9-23. ADJ is from Schuurmans, "A new metric-based approach to model selection" (1997).

Notation
--------
==================  ====================================================================
paper               here
==================  ====================================================================
n                   ``n_samples``; with weights their sum, because weights are repetitions
d, d = 1..D         ``n_terms``; arrays over sizes have length D and start at one term
Φ, Φ_ip = φ_p(x_i)  ``terms``, shape (n_rows, D), first column the constant
Remp(f_d)           ``fit.remp``, the mean squared residual with d terms
C                   ``C_halfᵀ C_half``, second moment of the terms over inputs without labels
C_emp               ``RᵀR/n``, with ``Φ = QR``
α̂                   row d of ``coefficient_path``
(none)              ``z = Qᵀy``: the coefficients in the basis orthonormal on the sample
(none)              ``S = C_half R⁻¹``: that basis over the other inputs,
                    ``tr(C_emp⁻¹ C)/n = ‖S‖²``
==================  ====================================================================

Where to find it
----------------
==============================  ===============================
(11), (12) for every d at once  `nested_fit`, `coefficient_path`
(4) FPE                         `fpe`
GCV                             `gcv`
(5) UCB                         `ucb`
(15)-(17) DEE                   `moment_triangle`, `spread`, `dee`
(18)-(21) SEB                   `seb`
Mallows' Cp, BIC, RIC           `cpm`, `bic`, `ric`
ADJ                             `adj`
5-fold CV                       `cross_validation`
unlabelled points by Parzen     `parzen_sample`
beyond the paper                `leave_one_out`, `aic`, `aicc`, `adjusted_r2`, and module `bayes`
all of them                     `criteria`
==============================  ===============================

Departures
----------
1. One QR in place of one least-squares fit per size: ``RSS_d = Σ_{i>d} z_i² + ‖r‖²``. Summed from
   the tail: by subtraction the small sums, which decide, would lose all their digits.
2. A term that depends linearly on earlier ones leaves every model as it was. It is dropped, and d
   counts the terms that are left.
3. SEB: (19) is printed with δ = 0.1, and (21) with 4 where ``-ln(δ/4)`` is 3.69. (21) is kept,
   so δ is ``4 e⁻⁴`` here. Lemma 1 prints ``sqrt(V_d ξ)``; its proof gives ``V_d sqrt(ξ)``, which
   stands here. With the paper's V_d = 1 both are the same.
4. Sums of squares that are rounding error of y are zero, so that among sizes that fit exactly
   the smallest is chosen.
5. C is never formed. ``R⁻ᵀ C R⁻¹`` has the condition of the terms squared, and where they nearly
   depend on each other its trace comes out negative; the norm of S cannot.
6. What the first term alone explains is taken out of y before the decomposition and put back into
   z_1 after it: y + 1e12 has the criteria of y, as far as y itself has kept its digits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import pdist, squareform

_EPS = float(np.finfo(np.float64).eps)
_MAX_PIECES = 1_000_000
_ROWS = 10_000  # at a time: memory


@dataclass(frozen=True, eq=False)
class NestedFit:
    """Least-squares fits of every size, in the basis that is orthonormal on the sample.

    ``sqrt(w) Φ = Q R`` for the D columns of Φ that do not depend on earlier ones.
    """

    n_samples: float  # sum of the weights
    kept: np.ndarray  # shape (D,): those columns
    R: np.ndarray  # shape (D, D), upper triangle
    z: np.ndarray  # shape (D,): Qᵀ sqrt(w) y
    rss: np.ndarray  # shape (D + 1,): residual sum of squares of 0, 1, ..., D terms
    Q: np.ndarray  # shape (n_rows, D)
    weight: np.ndarray  # shape (n_rows,)
    residual: np.ndarray  # shape (n_rows,): sqrt(w) (y - f_D)

    @property
    def n_terms(self) -> np.ndarray:
        """The sizes 1..D."""
        return np.arange(1, len(self.z) + 1)

    @property
    def remp(self) -> np.ndarray:
        """Mean squared residual of the sizes 1..D, (12)."""
        return self.rss[1:] / self.n_samples


def nested_fit(terms: np.ndarray, y: np.ndarray, weight: np.ndarray) -> NestedFit:
    """Least-squares fits of y on the first 1, 2, ..., D columns of terms, by one QR.

    ``terms`` has shape (n_rows, n_columns); weights are positive.
    """
    root = np.sqrt(weight)
    design = root[:, None] * terms
    Q, R = np.linalg.qr(design)
    kept = independent_columns(R, tol=10 * _EPS * max(design.shape))
    if len(kept) < terms.shape[1]:
        Q, R = np.linalg.qr(design[:, kept])
    level = level_of(terms[:, kept[0]], y, weight)
    target = root * (y - level * terms[:, kept[0]])
    z = target @ Q
    residual = target - Q @ z
    # Departure 1: (12) summed from the tail.
    tail = np.append(z**2, residual @ residual)
    rss = np.cumsum(tail[::-1])[::-1]
    # Departure 4: z and the residual carry an error of about eps ‖y‖ each.
    length = weight @ y**2
    rss[rss <= (10 * _EPS) ** 2 * len(y) * length] = 0.0
    # Departure 6: the first term's part comes back.
    z[0] += level * R[0, 0]
    rss[0] = length
    return NestedFit(float(weight.sum()), kept, R, z, rss, Q, weight, residual)


def level_of(first_term: np.ndarray, y: np.ndarray, weight: np.ndarray) -> float:
    """Coefficient of the first term alone: the mean of y if that term is the constant."""
    return float(weight @ (first_term * y) / (weight @ first_term**2))


def independent_columns(R: np.ndarray, tol: float) -> np.ndarray:
    """Indices of the columns whose part outside the earlier ones exceeds ``tol`` of their length.

    R is their triangular factor, whose columns depend on each other as they do.
    """
    n_rows, n_columns = R.shape
    length = np.sqrt(np.einsum("ij,ij->j", R, R))
    if n_columns <= n_rows and (np.abs(np.diag(R)) > tol * length).all():
        return np.arange(n_columns)
    # Behind a dependent column the rows of R are rounding error: orthogonalise once more, in order.
    basis = np.empty((n_rows, min(n_rows, n_columns)))
    kept: list[int] = []
    for j in range(n_columns):
        done = basis[:, : len(kept)]
        rest = R[:, j] - done @ (done.T @ R[:, j])
        rest -= done @ (done.T @ rest)  # twice is enough (Kahan)
        size = math.sqrt(rest @ rest)
        if len(kept) < n_rows and size > tol * length[j]:
            basis[:, len(kept)] = rest / size
            kept.append(j)
    return np.array(kept, dtype=np.intp)


def independent_terms(terms: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Columns of terms that `nested_fit` would keep."""
    R: np.ndarray = np.asarray(np.linalg.qr(np.sqrt(weight)[:, None] * terms, mode="r"))
    return independent_columns(R, tol=10 * _EPS * max(terms.shape))


def coefficient_path(fit: NestedFit) -> np.ndarray:
    """Coefficients (11) of every size, shape (D, D): row d - 1 has the first d, then zeros.

    ``α̂ = R⁻¹ z`` accumulated column by column.
    """
    inverse = solve_triangular(fit.R, np.eye(len(fit.z)), check_finite=False)
    return np.cumsum(inverse * fit.z, axis=1).T


def penalised(remp: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """``Remp · T(d, n)`` (3); infinite where the factor is, even if ``Remp`` is 0."""
    return np.where(np.isfinite(factor), remp, np.inf) * np.where(np.isfinite(factor), factor, 1.0)


def _inverse(denominator: np.ndarray) -> np.ndarray:
    """``1/u₊``: infinite where u is not positive."""
    positive = denominator > 0
    return np.where(positive, 1.0 / np.where(positive, denominator, 1.0), np.inf)


def fpe(remp: np.ndarray, d: np.ndarray, n: float) -> np.ndarray:
    """Akaike's future prediction error (4), ``Remp (1 + d/n)/(1 - d/n)``."""
    return penalised(remp, (1 + d / n) * _inverse(1 - d / n))


def gcv(remp: np.ndarray, d: np.ndarray, n: float) -> np.ndarray:
    """Generalised cross-validation, ``Remp/(1 - d/n)²``."""
    return penalised(remp, _inverse(1 - d / n) ** 2)


def ucb(
    remp: np.ndarray, d: np.ndarray, n: float, *, c: float = 1.0, eta: float = math.exp(-3)
) -> np.ndarray:
    """Uniform convergence bound (5), ``Remp/(1 - c sqrt((d (ln(n/d) + 1) - ln η)/n))₊``."""
    xi = (d * (np.log(n / d) + 1) - math.log(eta)) / n
    # d > n makes the logarithm negative; there is no such fit to bound.
    return penalised(remp, np.where(d < n, _inverse(1 - c * np.sqrt(np.maximum(xi, 0))), np.inf))


def moment_triangle(terms: np.ndarray, earlier: np.ndarray | None = None) -> np.ndarray:
    """``√N C_half``, shape (at most D, D), with ``C_halfᵀ C_half = C = E_U[φ φᵀ]``.

    The terms are those over N unlabelled inputs U. Triangles add up: ``earlier`` is that of others.
    """
    joined = terms if earlier is None else np.vstack([earlier, terms])
    return np.asarray(np.linalg.qr(joined, mode="r"))


def spread(fit: NestedFit, C_half: np.ndarray) -> np.ndarray:
    """``S = C_half R⁻¹``, shape of C_half: the sample's own basis over the unlabelled inputs.

    The first d columns have the sum of squares ``tr(C_emp⁻¹ C)/n`` of size d, and ``‖S a‖²`` is
    the mean square over the unlabelled inputs of the function with coordinates a (departure 5).
    ``C_half`` is that of the kept terms.
    """
    return solve_triangular(fit.R, C_half.T, trans="T", check_finite=False).T


def dee(remp: np.ndarray, d: np.ndarray, n: float, S: np.ndarray) -> np.ndarray:
    """Direct eigenvalue estimate (17), ``Remp (1 - d/n)⁻¹ (1 + tr(C_emp⁻¹ C)/n)``."""
    return penalised(remp, _inverse(1 - d / n) * (1 + np.cumsum(np.einsum("ij,ij->j", S, S))))


def seb(
    remp: np.ndarray, d: np.ndarray, n: float, *, v_d: float = 1.0, delta: float = 4 * math.exp(-4)
) -> np.ndarray:
    """Smallest-eigenvalue bound (20), ``Remp (1 - d/n)⁻¹ (1 + d/(n k))``.

    ``k = (1 - V_d sqrt((d (ln(2n/d) + 1) - ln(δ/4))/n))₊`` (21).
    """
    xi = (d * (np.log(2 * n / d) + 1) - math.log(delta / 4)) / n
    k = 1 - v_d * np.sqrt(np.maximum(xi, 0))  # departure 3
    return penalised(remp, _inverse(1 - d / n) * (1 + d / n * _inverse(k)))


def noise_variance(fit: NestedFit) -> float:
    """Variance of the noise as the largest model leaves it, ``RSS_D/(n - D)``."""
    return float(fit.rss[-1] / (fit.n_samples - len(fit.z)))


def cpm(remp: np.ndarray, d: np.ndarray, n: float, variance: float) -> np.ndarray:
    """Mallows' Cp as an error, ``Remp + 2 d σ²/n``."""
    return remp + 2 * d * variance / n


def bic(remp: np.ndarray, d: np.ndarray, n: float, variance: float) -> np.ndarray:
    """Schwarz's criterion with the noise given, ``Remp + ln(n) d σ²/n``."""
    return remp + math.log(n) * d * variance / n


def ric(remp: np.ndarray, d: np.ndarray, n: float, variance: float) -> np.ndarray:
    """Foster & George's risk inflation, ``Remp + 2 ln(d_max) d σ²/n``."""
    return remp + 2 * math.log(len(d)) * d * variance / n


def adj(fit: NestedFit, S: np.ndarray) -> np.ndarray:
    """Schuurmans' ADJ, ``Remp(f_l) · max_{1≤k<l} D_U(f_k, f_l)/D_T(f_k, f_l)``.

    D is the mean squared difference over unlabelled (U) and over training (T) inputs. ``f_l - f_k``
    has the coordinates z_{k+1..l}, so ``D_U = ‖Σ_{k<i≤l} z_i S_i‖²`` and
    ``D_T = Σ_{k<i≤l} z_i²/n``: all pairs of sizes from one table.
    """
    # f_l - f_1 over U, a row for each l.
    over_u = np.zeros((len(fit.z), len(S)))
    np.cumsum((S[:, 1:] * fit.z[1:]).T, axis=0, out=over_u[1:])
    # Row k, column l, of sizes k from 1 and l from 2 on.
    d_unlabelled = squareform(pdist(over_u, "sqeuclidean"))[:-1, 1:]
    squares = np.triu(np.tile(fit.z[1:, None] ** 2, len(fit.z) - 1))
    d_training = np.cumsum(squares[::-1], axis=0)[::-1] / fit.n_samples
    ratio = np.full(d_training.shape, -np.inf)
    np.divide(d_unlabelled, d_training, out=ratio, where=np.triu(d_training > 0))
    factor = np.append(1.0, ratio.max(axis=0, initial=-np.inf))
    return penalised(fit.remp, np.where(np.isneginf(factor), 1.0, factor))


def cross_validation(folds: Iterable[tuple[np.ndarray, ...]], n_terms: int) -> np.ndarray:
    """Mean squared error of held-out rows for every size, shape (n_terms,).

    Each fold has its own path. A size above a fold's number of training rows is infinite. Folds are
    (terms, y, weight, held_out_terms, held_out_y, held_out_weight).
    """
    loss = np.zeros(n_terms)
    total = 0.0
    for terms, y, weight, new_terms, new_y, new_weight in folds:
        level = level_of(terms[:, 0], y, weight)  # departure 6
        y, new_y = y - level * terms[:, 0], new_y - level * new_terms[:, 0]
        R, z, _ = joint_triangle(terms, y, weight)
        kept = independent_columns(R, tol=10 * _EPS * max(terms.shape))
        if len(kept) < terms.shape[1]:
            R, z, _ = joint_triangle(terms[:, kept], y, weight)
        steps = np.zeros((len(new_y), n_terms))
        new = solve_triangular(R, new_terms[:, kept].T, trans="T", check_finite=False)
        steps[:, kept] = z * new.T
        error = new_y[:, None] - np.cumsum(steps, axis=1)
        loss += new_weight @ error**2
        loss[np.arange(1, n_terms + 1) > weight.sum()] = np.inf
        total += float(new_weight.sum())
    return loss / total


def joint_triangle(
    terms: np.ndarray, y: np.ndarray, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray, float]:
    """``R``, ``z`` and what all the terms leave, of any number of terms, dependent ones too.

    With more terms than rows R is a trapezium of shape (n_rows, D), and nothing is left. Without Q
    it takes less than half the time of `nested_fit`.
    """
    joined = np.sqrt(weight)[:, None] * np.column_stack([terms, y])
    R: np.ndarray = np.asarray(np.linalg.qr(joined, mode="r"))
    size = min(len(y), terms.shape[1])
    rest = float(R[size, -1] ** 2) if len(R) > size else 0.0
    return R[:size, :-1], R[:size, -1].copy(), rest


def leave_one_out(fit: NestedFit) -> np.ndarray:
    """Leave-one-out error of every size in closed form (PRESS), ``mean (r_i/(1 - h_ii))²``.

    A row of weight w is w rows, of which one is left out. A size at which a row has leverage 1
    is infinite.
    """
    loss = np.zeros(len(fit.z))
    certain = np.zeros(len(fit.z), dtype=bool)
    for start in range(0, len(fit.Q), _ROWS):
        rows = slice(start, start + _ROWS)
        Q = fit.Q[rows]
        # Rows √w scaled: residuals from the tail, leverages of a single copy.
        steps = np.column_stack([Q * fit.z, fit.residual[rows]])
        residual = np.cumsum(steps[:, ::-1], axis=1)[:, ::-1][:, 1:]
        free = 1 - np.cumsum(Q**2, axis=1) / fit.weight[rows, None]
        alone = free <= 1e-10
        certain |= alone.any(axis=0)
        loss += np.sum((residual / np.where(alone, 1.0, free)) ** 2, axis=0)
    return np.where(certain, np.inf, loss / fit.n_samples)


def aic(remp: np.ndarray, d: np.ndarray, n: float) -> np.ndarray:
    """Akaike's information criterion, ``n ln Remp + 2k`` with k = d + 1 (the noise is one)."""
    with np.errstate(divide="ignore"):  # ln 0 = -inf
        return n * np.log(remp) + 2 * (d + 1)


def aicc(remp: np.ndarray, d: np.ndarray, n: float) -> np.ndarray:
    """AIC corrected for small samples, ``AIC + 2k (k + 1)/(n - k - 1)`` with k = d + 1."""
    k = d + 1
    room = n - k - 1
    correction = 2 * k * (k + 1) / np.where(room > 0, room, 1.0)
    return np.where(room > 0, aic(remp, d, n) + correction, np.inf)


def adjusted_r2(remp: np.ndarray, d: np.ndarray, n: float, variance: float) -> np.ndarray:
    """``1 - adjusted R²``, so that lower is better: ``RSS_d/(n - d)`` over the variance of y."""
    left = penalised(remp, _inverse(1 - d / n))
    return left / variance if variance > 0 else left


def criteria(
    fit: NestedFit, S: np.ndarray | None, variance: float, held_out: np.ndarray
) -> dict[str, np.ndarray]:
    """Table of sizes: ``n_terms``, ``train`` and every criterion, arrays of length D.

    ``S`` is the `spread`; without it there is the one criterion that does not take rows for
    independent. ``variance`` is that of the noise, ``held_out`` from `cross_validation`.
    """
    sizes = fit.remp, fit.n_terms, fit.n_samples
    table = {"n_terms": fit.n_terms, "train": fit.remp}
    if S is None:
        return {**table, "cv": held_out}
    return {
        **table,
        "dee": dee(*sizes, S),
        "adj": adj(fit, S),
        "seb": seb(*sizes),
        "ucb": ucb(*sizes),
        "fpe": fpe(*sizes),
        "gcv": gcv(*sizes),
        "cv": held_out,
        "loo": leave_one_out(fit),
        "cpm": cpm(*sizes, variance),
        "bic": bic(*sizes, variance),
        "ric": ric(*sizes, variance),
        "aic": aic(*sizes),
        "aicc": aicc(*sizes),
        "adjusted_r2": adjusted_r2(*sizes, fit.rss[1] / (fit.n_samples - 1)),
    }


def parzen_sample(
    points: np.ndarray,
    weight: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    n_draws: int,
    rng: np.random.RandomState,
    smooth: np.ndarray | None = None,
) -> np.ndarray:
    """Draws from a Gaussian kernel density of the points, shape (n_draws, n_inputs).

    The paper's conclusion proposes it where no unlabelled points are given. Scott's bandwidth per
    input, ``std · n^(-1/(n_inputs + 4))``, and kernels as correlated as the inputs, so that inputs
    that depend on each other do so in the draws; draws beyond the range are reflected into it.
    Points are sorted, so that the draws depend on values and not on how they are stored. Inputs
    that are not ``smooth`` have no bandwidth: draws have values of the points.
    """
    n, n_inputs = float(weight.sum()), points.shape[1]
    mean = weight @ points / n
    std = np.sqrt(weight @ (points - mean) ** 2 / (n - 1))
    share = np.cumsum(weight) / n
    rows = np.searchsorted(share, rng.uniform(size=n_draws), side="right")
    noise = rng.standard_normal((n_draws, n_inputs))
    if n_inputs > 1:  # times the root of the correlations, V s Vᵀ
        unit = (points - mean) / np.where(std > 0, std, 1.0)
        _, s, V = np.linalg.svd(np.sqrt(weight / (n - 1))[:, None] * unit, full_matrices=False)
        noise = (noise @ V.T * s) @ V
    if smooth is not None:
        std = std * smooth
    drawn = points[np.minimum(rows, len(points) - 1)] + n ** (-1 / (n_inputs + 4)) * std * noise
    # Reflection: the draw runs to and fro between the ends.
    width = np.where(high > low, high - low, 1.0)
    there_and_back = np.mod(drawn - low, 2 * width)
    return np.clip(low + np.minimum(there_and_back, 2 * width - there_and_back), low, high)


def fold_weights(weight: np.ndarray, n_folds: int, rng: np.random.RandomState) -> np.ndarray:
    """Held-out weight of every row in every fold, shape (n_folds, n_rows).

    Weights are repetitions: the rows, in the order given, lie end to end on a line of length Σw,
    which is cut into unit pieces and dealt out at random. Copies of a row may part company, just as
    if it had been repeated. With fewer pieces than folds there is one fold per piece.
    """
    end = np.cumsum(weight)
    n_pieces = max(1, min(round(float(end[-1])), _MAX_PIECES))
    fold = rng.permutation(n_pieces) % n_folds
    at = np.concatenate([[0.0], end * (n_pieces / end[-1])])
    dealt = [
        np.interp(at, np.arange(n_pieces + 1), np.concatenate([[0], np.cumsum(fold == k)]))
        for k in range(n_folds)
    ]
    held_out = np.diff(np.array(dealt), axis=1) * (end[-1] / n_pieces)
    return np.where(held_out > 1e-9 * weight, np.minimum(held_out, weight), 0.0)
