"""Which features hold in a domain nobody has seen: greedy selection by T-statistics over domains.

Paper
-----
Foster, Kakade & Salakhutdinov, "Domain Adaptation: Overfitting and Small Sample Statistics" (2011),
in two versions. The moderated T is from Smyth, "Linear models and empirical Bayes methods for
assessing differential expression in microarray experiments" (2004).

Notation
--------
===========================  =================================================================
paper                        here
===========================  =================================================================
n                            ``weight.sum()``: the number of domains, or the effective number where
                             they are weighted (`domain_weights`); weight 0 holds a domain out
p, F                         features, the set of them
E[X_i (Y - w·X) | d_k]       ``g[k, d, i]``, for target k: the classes one against the rest
E[X Xᵀ | d]                  ``column(i)``, shape (n_domains, n_features): column i, every domain
Ê[X_i²]                      ``e2``, or that of unlabelled rows: the unbiased version
μ̂_i, σ̂_i², T_i               ``mu``, ``s2``, ``t``
===========================  =================================================================

Where to find it
----------------
==============================  ====================================
§3.1: μ̂, σ̂², T                  `domain_weights`, `effects`, `t_statistic`
Smyth's moderation              `moderated_t`, `inverse_trigamma`
§3.3 T-Greedy                   `Walk`
Theorem 1, Corollary 3          `holdtrue.domains.bounds`
Bonferroni's level (§5)         `chance_level`
flips of whole domains          `sign_patterns`, `sign_flip_p_value`
==============================  ====================================

Departures
----------
1. ``|T|`` where §3.3 prints T: a negative effect is as good as a positive one. Ties, also those
   that rounding hides, go to the first feature.
2. Rows are centred with the mean over domains, or with the mean of their own domain
   (``center="domain"``: effects within domains); the papers centre nothing (``center="none"``).
3. Effects that are rounding error of the target are zero, and spreads are at least that, so that
   a walk ends where nothing is left to explain.
4. Several targets share the Gram columns. A step takes the best pair of feature and target, which
   interleaves the walks that each target would take alone.
5. Stepwise, a feature that depends linearly on the picked ones is passed over.
6. A feature with nine tenths of its second moment in one domain is excluded: only that domain can
   judge it, and without that domain its weight rests on little data and its prediction there
   extrapolates without limit. A held-out domain's inputs, not its target, take part in this.
7. Domains may be weighted, for instance by their rows; every domain counts once in the papers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import digamma, stdtrit, zeta

RULES = ("greedy", "t", "moderated")
TESTS = ("bonferroni", "bound", "sign_flip")

TIE = 1e-9  # relative difference below which two numbers are equal but for rounding
_TINY = float(np.finfo(np.float64).tiny)
_MAX_EXACT = 16  # domains of which all sign patterns are tried
_MOST = 0.9  # share of a second moment that one domain may have (departure 6)
_PATTERN_CELLS = 1_000_000  # numbers in one temporary array


class Position(NamedTuple):
    """Where a walk stands: what its next steps depend on, for those who prepare for them."""

    g: np.ndarray  # effects, shape (n_targets, n_domains, n_features)
    mu: np.ndarray  # their means over the domains, shape (n_targets, n_features), as the next three
    strength: np.ndarray  # what a step maximises
    floor: np.ndarray  # the least variances
    is_open: np.ndarray  # features that may be picked
    e2: np.ndarray  # shape (n_features,)
    # of the domains' means from the center, shape (n_domains, n_features); none if they are there
    shift: np.ndarray | None
    weight: np.ndarray  # shape (n_domains,)
    rule: str
    stepwise: bool


class Columns(Protocol):
    """Where the columns of every domain's covariance matrix come from."""

    eps: float

    def get(self, i: int, position: Position) -> np.ndarray:
        """Column i of every domain, shape (n_domains, n_features).

        ``position``: that of the walk that asks; it tells which columns come next.
        """

    def for_loops(self, shift: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """What `loops.take_steps` needs to make a column; None if they are not in memory.

        Matrices M, further ones Q, the place of each domain in M, weights k over M (or none),
        factors f of shape (3, n_domains), and the shift. Column i of a domain is row i of
        ``f_1 M + shift shiftᵀ``; with weights that of ``M (f_0 Σ k M + f_1 M) - f_2 Q``.
        """


class StoredColumns:
    """Columns of matrices that fit in memory.

    Parameters
    ----------
    matrices : ndarray of shape (n_domains, n_features, n_features)
        Symmetric.
    total : ndarray of shape (n_domains,), optional
        Divides the matrices.
    """

    def __init__(self, matrices: np.ndarray, total: np.ndarray | None = None):
        self._matrices = matrices
        self._share = None if total is None else (1 / total).astype(matrices.dtype)[:, None]
        self.eps = float(np.finfo(matrices.dtype).eps)

    def get(self, i: int, position: Position) -> np.ndarray:
        """Column i of every domain, read as a row, which is contiguous."""
        row = self._matrices[:, i]
        return row if self._share is None else row * self._share

    def for_loops(self, shift: np.ndarray) -> tuple[np.ndarray, ...]:
        """See `Columns`."""
        n = len(self._matrices)
        factors = np.ones((3, n))
        if self._share is not None:
            factors[1] = self._share[:, 0]
        none = np.empty((0, 1, 1), self._matrices.dtype)
        return self._matrices, none, np.arange(n), np.empty(0), factors, shift

    def traces(self) -> np.ndarray:
        """``tr(C_a C_b)`` of every two undivided matrices, shape (n_domains, n_domains)."""
        flat = self._matrices.reshape(len(self._matrices), -1)
        return flat @ flat.T


@dataclass(frozen=True, eq=False)
class Domains:
    """What a walk needs of the data, domain by domain.

    Attributes
    ----------
    mean_x : ndarray of shape (n_domains, n_features)
    var_x : ndarray of shape (n_domains, n_features)
        Variances about the domain's own mean.
    mean_y : ndarray of shape (n_targets, n_domains)
    cov_xy : ndarray of shape (n_targets, n_domains, n_features)
    var_y : ndarray of shape (n_targets, n_domains)
    columns : Columns or None
        Covariances about the domain's own mean; None if all are 0 (one row per domain).
    n_rows : ndarray of shape (n_domains,)
        Rows of each domain, or the sum of their weights.
    copies : ndarray of shape (n_domains,)
        How many domains an entry stands for: 1, or the weight of a row that is its own domain.
    units : ndarray of int, shape (n_domains,)
        Entries of one number are held out together.
    """

    mean_x: np.ndarray
    var_x: np.ndarray
    mean_y: np.ndarray
    cov_xy: np.ndarray
    var_y: np.ndarray
    columns: Columns | None
    n_rows: np.ndarray
    copies: np.ndarray
    units: np.ndarray

    def without(self, held: np.ndarray) -> Domains:
        """Sums for a walk that holds these domains out: the same, since their weight is 0."""
        return self


# --- §3.1: one feature --------------------------------------------------------------------------


def domain_weights(domains: Domains, weighting: str, held: np.ndarray) -> np.ndarray:
    """Weight of each domain, shape (n_domains,); 0 for those held out.

    ``"equal"``: every domain counts once. ``"rows"``: in proportion to its rows, scaled such that
    ``Σ w = Σ w²``. The sum is then the effective number of domains ``(Σ w)²/Σ w²``, and `effects`
    and `t_statistic` give the unbiased variance and the standard error of the weighted mean.

    Parameters
    ----------
    domains : Domains
    weighting : {"equal", "rows"}
    held : ndarray of int
        Indices of the domains held out.
    """
    weight = np.array(domains.copies if weighting == "equal" else domains.n_rows, dtype=float)
    weight[held] = 0.0
    return weight if weighting == "equal" else weight * (weight.sum() / (weight @ weight))


def effects(g: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance ``μ̂, σ̂²`` over the domains of each feature's effect.

    Parameters
    ----------
    g : ndarray of shape (n_domains, n_features)
    weight : ndarray of shape (n_domains,)
        How many domains each entry stands for.
    """
    n = weight.sum()
    mu = weight @ g / n
    deviation = g - mu
    np.square(deviation, out=deviation)
    return mu, weight @ deviation / (n - 1)


def t_statistic(mu: np.ndarray, s2: np.ndarray, n: float) -> np.ndarray:
    """``T = μ̂/(σ̂/√n)``."""
    return mu * math.sqrt(n) / np.sqrt(s2)


def moderated_t(
    mu: np.ndarray, s2: np.ndarray, e2: np.ndarray, n: float
) -> tuple[np.ndarray, np.ndarray]:
    """Smyth's moderated T and its degrees of freedom, for each row of features.

    With ``v = σ̂²/e2`` and ``df = n - 1``: ``v ~ s0² F(df, d0)`` is fitted by the mean and the
    variance of ``log v``; then ``ṽ = (d0 s0² + df v)/(d0 + df)`` and ``T̃ = (μ̂/√e2)/√(ṽ/n)``.

    Parameters
    ----------
    mu, s2 : ndarray of shape (..., n_features)
        s2 is positive.
    e2 : ndarray of shape (n_features,)
    n : float

    Returns
    -------
    t : ndarray of shape (..., n_features)
    df : ndarray of shape (...)
        ``min(d0 + df, n_features · df)``.
    """
    df, p = n - 1, mu.shape[-1]
    if p < 2:  # no other feature to learn the spread from
        return t_statistic(mu, s2, n), np.full(mu.shape[:-1], df)
    v = s2 / e2
    if v.min() < 1e-5 * v.max():  # else the floor is below them all
        v = np.maximum(v, 1e-5 * np.median(v, axis=-1, keepdims=True))
    e = np.log(v)
    mean_e = e.sum(axis=-1, keepdims=True) / p
    e -= mean_e
    excess = np.einsum("...i,...i->...", e, e)[..., None] / (p - 1) - zeta(2, df / 2)
    if mu.ndim == 1:  # plain numbers where there is one row: a walk spends its time here
        excess, mean_e = excess[0], mean_e[0]
        if excess <= 0:
            return mu * np.sqrt(n / e2) / math.sqrt(v.sum() / p), np.array(p * df)
    d0 = 2 * inverse_trigamma(np.where(excess > 0, excess, 1.0)[()])
    s0 = np.exp(mean_e + np.log(df / d0) + digamma(d0 / 2) - digamma(df / 2))
    shrunk, total = (d0 * s0 + df * v) / (d0 + df), np.minimum(d0 + df, p * df)
    if mu.ndim > 1:
        shrunk = np.where(excess > 0, shrunk, v.mean(axis=-1, keepdims=True))
        total = np.where(excess > 0, total, p * df)[..., 0]
    return mu * np.sqrt(n / e2) / np.sqrt(shrunk), total


def inverse_trigamma(x: np.ndarray) -> np.ndarray:
    """Y with ``ψ'(y) = x``, by Newton's method on ``1/ψ'`` (Smyth 2004, appendix)."""
    inside = np.minimum(np.maximum(x, 1e-6), 1e7)
    y = (1 + np.sqrt(1 + 2 * inside)) / (2 * inside)  # of the first two terms of the series
    for _ in range(50):
        trigamma = zeta(2, y)
        step = trigamma * (1 - trigamma / inside) / (-2 * zeta(3, y))
        y = y + step
        if (abs(step) <= 1e-5 * y).all():  # the next step would be the square of this one
            break
    # Beyond, the first term of the series is all that is left.
    return np.where(x > 1e7, 1 / np.sqrt(x), np.where(x < 1e-6, 1 / x, y))[()]


def strengths(
    mu: np.ndarray, s2: np.ndarray, e2: np.ndarray, n: float, rule: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """T, what the rule maximises, and the degrees of freedom of T, for each row of features."""
    if rule == "moderated":
        t, df = moderated_t(mu, s2, e2, n)
        return t, np.abs(t), df
    t = t_statistic(mu, s2, n)
    return t, np.abs(t) if rule == "t" else mu**2 / e2, np.full(mu.shape[:-1], n - 1)


# --- when to stop ----------------------------------------------------------------------------


def chance_level(alpha: float, df: np.ndarray, n_candidates: int) -> np.ndarray:
    """Bonferroni's level: the quantile of Student's t at ``alpha/(2 n_candidates)``."""
    return -stdtrit(df, alpha / (2 * n_candidates))


def sign_patterns(n_domains: int, n_draws: int, rng: np.random.RandomState) -> np.ndarray:
    """Signs of the domains, shape (n_patterns, n_domains), the identity first.

    All ``2^(n-1)`` patterns up to 16 domains (a pattern and its opposite give the same |T|), else
    ``n_draws`` of them at random.
    """
    if n_domains <= _MAX_EXACT:
        codes = np.arange(2 ** (n_domains - 1))[:, None] >> np.arange(n_domains)
        return 1.0 - 2.0 * (codes & 1)
    signs = rng.choice([-1.0, 1.0], size=(n_draws, n_domains))
    signs[0] = 1.0
    return signs


def sign_flip_p_value(
    g: np.ndarray,
    weight: np.ndarray,
    e2: np.ndarray,
    floor: np.ndarray,
    rule: str,
    signs: np.ndarray,
) -> float:
    """Share of the patterns whose strongest feature is at least as strong as the identity's.

    Exact if the domains are independent and their effects symmetric about 0.

    Parameters
    ----------
    g : ndarray of shape (n_targets, n_domains, n_features)
    weight : ndarray of shape (n_domains,)
    e2 : ndarray of shape (n_features,)
    floor : ndarray of shape (n_targets, n_features)
        Variances below this are rounding error.
    rule : {"greedy", "t", "moderated"}
    signs : ndarray of shape (n_patterns, n_domains)
        From `sign_patterns`.
    """
    n = float(weight.sum())
    strongest = np.zeros(len(signs))
    rows = max(1, _PATTERN_CELLS // g.shape[2])
    for target_effects, least in zip(g, floor, strict=True):
        weighted = weight[:, None] * target_effects
        squares = np.einsum("dp,dp->p", weighted, target_effects)
        for start in range(0, len(signs), rows):
            block = slice(start, start + rows)
            mu = signs[block] @ weighted / n
            s2 = np.maximum((squares - n * mu**2) / (n - 1), least)
            strength = strengths(mu, s2, e2, n, rule)[1]
            strongest[block] = np.maximum(strongest[block], strength.max(axis=1))
    # A pattern that ties with the identity counts, whatever the last bit says.
    return float(np.mean(strongest >= strongest[0] * (1 - TIE)))


# --- §3.3: the walk -----------------------------------------------------------------------------


class Walk:
    """T-Greedy, step by step; what has been walked stays readable if it is interrupted.

    Parameters
    ----------
    domains : Domains
    weight : ndarray of shape (n_domains,)
        From `domain_weights`. 0 holds a domain out: it decides nothing, and its error is measured.
    rule : {"greedy", "t", "moderated"}
    stepwise : bool
        Refit the weights of all picked features at each step; each is picked once.
    center : {"global", "domain", "none"}
        What effects and second moments are about (departure 2): the mean over domains, each
        domain's own mean, or zero.
    unlabelled : pair of ndarray of shape (n_features,), optional
        Mean and variance of the features over rows without labels; not used with
        ``center="domain"``, since they do not say what varies within domains.
    fixed : sequence of int
        Features that enter first, by least squares.
    alpha : float
        Of Bonferroni's level.

    Attributes
    ----------
    order, targets : list of int
        Feature and target of each step; target -1 is all of them.
    t, df : list of float
        T of each step's feature as it enters, and its degrees of freedom; nan for fixed features.
    losses : list of ndarray of shape (n_domains,)
        Mean squared error in every domain about the center, from the empty selection on; see
        `errors`.
    ended : bool
        Whether nothing is left to explain.
    start : ndarray of shape (n_targets, n_domains, n_features)
        ``E[X Y | d]`` about the center, before any step.
    scale : ndarray of shape (n_targets, n_features)
        ``sqrt(E[Y²] e2)``, the unit of an effect.
    first_t : ndarray of shape (n_targets, n_features)
        T before any step.
    position : Position
        Where the walk stands; its arrays follow the steps.
    """

    def __init__(
        self,
        domains: Domains,
        weight: np.ndarray,
        *,
        rule: str,
        stepwise: bool = False,
        center: str = "global",
        unlabelled: tuple[np.ndarray, np.ndarray] | None = None,
        fixed: Sequence[int] = (),
        alpha: float = 0.05,
    ):
        self.domains, self.weight = domains, weight
        self.rule, self.stepwise, self.alpha = rule, stepwise, alpha
        self._within = center == "domain"
        n = self._n = float(weight.sum())
        scale = 0.0 if center == "none" else 1 / n
        self.center_x = weight @ domains.mean_x * scale
        self.center_y = domains.mean_y @ weight * scale
        self._shift = domains.mean_x - self.center_x
        self._shift_y = domains.mean_y - self.center_y[:, None]
        self._is_shifted = not self._within and bool(self._shift.any())
        if self._within:
            self._g = domains.cov_xy.copy()
            self._square_y = domains.var_y.copy()
            second = domains.var_x
        else:
            self._g = domains.cov_xy + self._shift_y[:, :, None] * self._shift
            self._square_y = domains.var_y + self._shift_y**2
            second = domains.var_x + self._shift**2
        self.start = self._g.copy()

        e2 = mean_second = weight @ second / n
        if unlabelled is not None and not self._within:
            e2 = unlabelled[1] + (unlabelled[0] - self.center_x) ** 2
        # A constant feature's variance is rounding error of its mean.
        large = weight @ domains.mean_x**2 / n
        self.usable = (mean_second > 1e-24 * large) & (e2 > 0)
        self.e2 = np.where(self.usable, e2, 1.0)
        eps = np.finfo(np.float64).eps if domains.columns is None else domains.columns.eps
        self.scale = np.sqrt(np.outer(self._square_y @ weight / n, self.e2))
        # Departure 3.
        self._tol = 100 * eps
        # Above 0 in units of e2 too, where a target is constant.
        self._floor = (self._tol * self.scale) ** 2 + _TINY * np.maximum(self.e2, 1.0)
        # Departure 6; of two domains neither is the odd one. A held-out row counts once.
        copies = np.where(weight > 0, domains.copies, 1.0)
        most = (np.minimum(copies, 1.0)[:, None] * second).max(axis=0)
        judged = self.usable & ((most <= _MOST * (copies @ second)) | (len(weight) < 3))
        self.n_candidates = max(1, int(judged.sum())) * len(self._g)
        self._open = np.tile(judged, (len(self._g), 1))
        self._mean_column: dict[int, np.ndarray] = {}

        self.w = np.zeros(self._open.shape)
        self._picked: list[list[int]] = [[] for _ in self._g]
        self._changes: list[list[tuple[int, list[int], np.ndarray | float]]] = []
        self._loss = self._square_y.copy()
        self.order: list[int] = []
        self.targets: list[int] = []
        self.t: list[float] = []
        self.df: list[float] = []
        self.losses: list[np.ndarray] = [self._loss.mean(axis=0)]
        self.ended = False

        self._measured = slice(None) if self.usable.all() else self.usable
        self._nothing = self._tol * self.scale
        shape = self._open.shape
        self._mu, self._t, self._strength = np.zeros((3, *shape))
        self._df = np.empty(shape[0])
        for k in range(shape[0]):
            self._measure(k)
        self.first_t = np.where(self.usable, self._t, 0.0)
        self.position = Position(
            self._g,
            self._mu,
            self._strength,
            self._floor,
            self._open,
            self.e2,
            self._shift if self._is_shifted else None,
            weight,
            rule,
            stepwise,
        )
        for i in fixed:
            self._enter_fixed(int(i))

    def _measure(self, k: int) -> None:
        """T and strength of every feature for target k."""
        if not self.usable.any():
            self._mu[k] = self._t[k] = self._strength[k] = 0.0
            return
        at = self._measured
        mu, s2 = effects(self._g[k], self.weight)
        mu, s2 = mu[at], s2[at]
        self._mu[k, at] = mu
        self._t[k, at], self._strength[k, at], self._df[k] = strengths(
            mu, np.maximum(s2, self._floor[k, at]), self.e2[at], self._n, self.rule
        )
        self._strength[k] *= (np.abs(self._mu[k]) > self._nothing[k]) & self._open[k]

    def step(self) -> bool:
        """Take the strongest feature; False if there is none."""
        while True:
            least = self._strength.max() * (1 - TIE)
            k, i = divmod(int(np.argmax(self._strength >= least)), len(self.e2))
            if not self._strength[k, i] > 0:
                self.ended = True
                return False
            if not self.stepwise or self._is_independent(k, i):
                break
            self._open[k, i] = False
            self._strength[k, i] = 0.0
        self.t.append(float(self._t[k, i]))
        self.df.append(float(self._df[k]))
        if self.stepwise:
            self._picked[k].append(i)
            self._open[k, i] = False
            self._refit(k)
        else:
            delta = float(self._mu[k, i] / self.e2[i])
            column = self._column(i)
            self._loss[k] += delta * (delta * column[:, i] - 2 * self._g[k][:, i])
            self._g[k] -= delta * column
            self.w[k, i] += delta
        self._record(i, k, [i])
        return True

    def run(
        self,
        max_steps: int,
        *,
        test: str | None = None,
        bound: float = math.inf,
        n_draws: int = 0,
        rng: np.random.RandomState | None = None,
        least: int | None = None,
        compiled: bool = False,
    ) -> int:
        """Take up to ``max_steps`` steps; the size at which the test stops the walk.

        Parameters
        ----------
        max_steps : int
        test : {"bonferroni", "bound", "sign_flip"}, optional
        bound : float
            Level of ``"bound"``.
        n_draws : int
        rng : RandomState, optional
            For ``"sign_flip"``; see `sign_patterns`.
        least : int, optional
            Walk on to this size although the test has failed. None: up to the step that fails it.
        compiled : bool
            Whether to take steps in compiled loops where there are any for them.
        """
        size: int | None = None
        if test == "sign_flip":
            # Each training domain as often as it counts.
            copies = np.where(self.weight > 0, np.rint(self.domains.copies), 0).astype(int)
            flipped = np.repeat(np.arange(len(copies)), copies)
            signs = sign_patterns(len(flipped), n_draws, rng or np.random.RandomState(0))
        if compiled and test is None:
            self._take_steps(max_steps - len(self.order))
        while len(self.order) < max_steps:
            passed = True
            if size is None and test == "sign_flip":
                passed = self.p_value(signs, flipped) <= self.alpha
            if not self.step():
                break
            if size is None and test in ("bonferroni", "bound"):
                chance = chance_level(self.alpha, np.array(self.df[-1]), self.n_candidates)
                passed = bool(abs(self.t[-1]) >= (chance if test == "bonferroni" else bound))
            if not passed:
                size = len(self.order) - 1
            if size is not None and (least is None or len(self.order) >= least):
                break
        return len(self.order) if size is None else size

    def _take_steps(self, n_steps: int) -> None:
        """Stagewise steps in compiled loops, for columns in memory."""
        shift = self._shift if self._is_shifted else np.zeros_like(self._shift)
        stored = None if self.domains.columns is None else self.domains.columns.for_loops(shift)
        if stored is None or self.stepwise:
            return
        from holdtrue.domains.loops import take_steps

        targets, features = np.empty((2, n_steps), np.intp)
        deltas, t, df = np.empty((3, n_steps))
        steps = targets, features, deltas, t, df, np.empty((n_steps, len(self.weight)))
        nothing = np.where(self._open, self._nothing, np.inf)
        moments = self.weight, self.e2, self._floor, nothing, np.flatnonzero(self.usable)
        rule = RULES.index(self.rule)
        taken = take_steps(self._g, self._loss, *moments, stored, rule, TIE, steps)
        picks = list(zip(targets[:taken].tolist(), features[:taken].tolist(), strict=True))
        w: Any = self.w.tolist()
        for (k, i), delta in zip(picks, deltas.tolist(), strict=False):
            w[k][i] += delta
            self._changes.append([(k, [i], w[k][i])])
        self.w[:] = w
        self.t += t[:taken].tolist()
        self.df += df[:taken].tolist()
        self.losses += list(steps[-1][:taken])
        self.targets += [k for k, _ in picks]
        self.order += [i for _, i in picks]
        for k in range(len(self._g)):
            self._measure(k)
        self.ended = taken < n_steps

    def levels(self) -> np.ndarray:
        """Bonferroni's level for the T of each step; nan for fixed features."""
        return chance_level(self.alpha, np.array(self.df), self.n_candidates)

    def p_value(self, signs: np.ndarray, flipped: np.ndarray) -> float:
        """Sign-flip p-value of the step that comes next."""
        left = self._open.any(axis=0)
        if not left.any():
            return 1.0
        weight = (self.weight / self.domains.copies)[flipped]
        g = self._g[:, flipped][:, :, left]
        return sign_flip_p_value(g, weight, self.e2[left], self._floor[:, left], self.rule, signs)

    def coefficients(self, size: int) -> np.ndarray:
        """Weights after ``size`` steps, shape (n_targets, n_features)."""
        w = np.zeros(self._open.shape)
        for changes in self._changes[:size]:
            for k, at, values in changes:
                w[k, at] = values
        return w

    def errors(self) -> np.ndarray:
        """Mean squared error at every domain, shape (n_steps + 1, n_domains)."""
        losses = np.array(self.losses[: len(self.order) + 1])
        return losses + self._between() if self._within else losses

    def errors_within(self) -> np.ndarray:
        """`errors` about each domain's own mean: without the error of its mean prediction."""
        losses = np.array(self.losses[: len(self.order) + 1])
        return losses if self._within else np.maximum(losses - self._between(), 0.0)

    def _between(self) -> np.ndarray:
        """Squared error of each domain's mean prediction, shape (n_steps + 1, n_domains)."""
        w, off = np.zeros(self._open.shape), self._shift_y.copy()
        squares = [off**2]
        for changes in self._changes[: len(self.order)]:
            for k, at, values in changes:
                off[k] -= self._shift[:, at] @ (values - w[k, at])
                w[k, at] = values
            squares.append(off**2)
        return np.array(squares).mean(axis=1)

    def mean_gram(self, features: Sequence[int]) -> np.ndarray:
        """``E[X_S X_Sᵀ]`` over the training domains, shape (q, q)."""
        at = list(features)
        return np.array([self._averaged(i)[at] for i in at]).reshape(len(at), len(at))

    def first_effects(self) -> np.ndarray:
        """`start` in units of `scale`; 0 where it is rounding error."""
        units = self.start / np.where(self.scale > 0, self.scale, 1.0)[:, None]
        return np.where(self.usable & (np.abs(units) > self._tol), units, 0.0)

    def _enter_fixed(self, i: int) -> None:
        for k in range(len(self._g)):
            if self.usable[i] and self._is_independent(k, i):
                self._picked[k].append(i)
                self._open[k, i] = not self.stepwise
                self._refit(k)
        self.t.append(math.nan)
        self.df.append(math.nan)
        self._record(i, -1)

    def _record(self, i: int, k: int, changed: list[int] | None = None) -> None:
        targets = range(len(self._g)) if k < 0 else [k]
        changes: list[tuple[int, list[int], np.ndarray | float]] = []
        for target in targets:
            at = list(self._picked[target]) if self.stepwise or changed is None else changed
            changes.append((target, at, self.w[target, at]))
            self._measure(target)
        self._changes.append(changes)
        self.losses.append(np.maximum(self._loss, 0.0).sum(axis=0) / len(self._loss))
        self.targets.append(k)
        self.order.append(i)  # last: what is read after an interruption is as long as this

    def _column(self, i: int) -> np.ndarray:
        """``E[X X_i | d]`` about the center, shape (n_domains, n_features)."""
        outer = self._shift * self._shift[:, i, None] if self._is_shifted else None
        columns = self.domains.columns
        if columns is None:
            return np.zeros(self._shift.shape) if outer is None else outer
        column = columns.get(i, self.position)
        if outer is None:
            return column
        outer += column
        return outer

    def _averaged(self, i: int) -> np.ndarray:
        if i not in self._mean_column:
            self._mean_column[i] = self.weight @ self._column(i) / self._n
        return self._mean_column[i]

    def _is_independent(self, k: int, i: int) -> bool:
        column = self._averaged(i)
        at = self._picked[k]
        if not at:
            return True
        cross = column[at]
        left = column[i] - cross @ cho_solve(cho_factor(self.mean_gram(at)), cross)
        return bool(left > max(1e-10, self._tol) * column[i])

    def _refit(self, k: int) -> None:
        """Least squares on the averaged moments of the picked features."""
        at = self._picked[k]
        mean = self.weight @ self.start[k][:, at] / self._n
        w = cho_solve(cho_factor(self.mean_gram(at)), mean)
        self.w[k, at] = w
        self._g[k] = self.start[k]
        for i, coefficient in zip(at, w, strict=True):
            self._g[k] -= coefficient * self._column(i)
        self._loss[k] = self._square_y[k] - (self.start[k] + self._g[k])[:, at] @ w
