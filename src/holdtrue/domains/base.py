"""What the selector and the predictors of T-Greedy share: parameters, checks and the fit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from holdtrue.domains import kernel
from holdtrue.domains.bounds import guarantees
from holdtrue.domains.columns import (
    check_sizes,
    domains_from_moments,
    domains_from_rows,
    first_moments,
    rows_as_domains,
)
from holdtrue.domains.held_out import (
    Plan,
    Selection,
    check_parameters,
    default_steps,
    interval,
    path_of,
    resolved_stop,
    select,
)
from holdtrue.path import ShowsPath
from holdtrue.sums import Moments
from holdtrue.validation import (
    check_columns,
    check_groups,
    check_weights,
    is_number,
    numeric_rows,
    unlabeled_rows,
)

_WITH_DOMAINS = {
    "domain_effects_",
    "domain_gap_",
    "domains_",
    "guarantees_",
    "held_out_scores_",
    "new_domain_interval_",
    "new_domain_score_",
    "rule_scores_",
    "source_score_",
}

PARAMETERS = """
    Answers *which features will still work at the next hospital, user or year?* Every domain counts
    once, and a feature is worth adding only if its effect is steady across the domains [1]_ [2]_.

    Parameters
    ----------
    rule : {"moderated", "t", "greedy", "auto"}, default="moderated"
        What a step maximises. ``"t"``: ``|T|``, the mean of the feature's effect over the domains
        by its standard error. ``"moderated"``: the same with spreads shrunk towards each other,
        for few domains and many features. ``"greedy"``: the fall of the squared error, blind to
        the spread. ``"auto"``: whichever has the least error on held-out domains.
    stop : str, default="auto"
        ``"held_out_domain"``: the length with the least error on held-out domains (one
        by one, more than 20 in 10 parts); ``"held_out_domain_1se"``: the least length within one
        standard error (of the difference) of it;
        ``"bonferroni"``: while ``|T|`` exceeds Student's quantile at ``alpha/(2 n_features)``;
        ``"bound"``: while it exceeds the level of Theorem 1; ``"sign_flip"``: while flips of whole
        domains say that it is not chance; ``"max_steps"``: so many steps, and nothing is held out
        (unless to choose the rule). ``"auto"`` is ``"held_out_domain"`` with
        groups (``"bonferroni"`` if there are only two) and ``"bonferroni"`` without.
    max_steps : int, optional
        Most steps, fixed features not counted. Default: ``min(3 n_features, 300)`` for each target;
        stepwise ``min(n_features, 300)``.
    stepwise : bool, default=False
        Refit all weights at each step, each feature picked once. Otherwise a step moves one weight
        and a feature may be picked again (stagewise, as in the papers).
    fit_intercept : bool, default=True
        Centre with the mean over the domains. False: the papers' literal version.
    fixed_features : array-like of int, str or bool, optional
        Features that are always kept. They enter first.
    alpha : float, default=0.05
        Level of the tests and of the intervals.
    n_jobs : int, optional
        Threads for the held-out domains.
"""

ATTRIBUTES = """
    path_ : SelectionPath
        Features in order of entry. ``scores`` is the mean squared error on held-out domains (nan
        where none were held out), ``train_scores`` that on the source domains.
    support_, ranking_ : ndarray of shape (n_features,)
    scores_ : ndarray of shape (n_features,)
        T of every feature before any step; with several targets the largest in size.
    t_statistics_, chance_levels_ : ndarray of shape (n_steps,)
        T of each step's feature as it enters, and Bonferroni's level for it; nan for fixed ones.
    rule_ : str
        The rule that was used.
    n_domains_ : int or float
        How many domains were seen; without groups, the rows or the sum of their weights.
    domains_ : ndarray of shape (n_domains,)
        Their labels. This and all that follow: only with groups.
    domain_effects_ : ndarray of shape (n_features, n_domains) or (n_targets, ...)
        Effect of each feature in each domain before any step: ``E[x y | domain]`` in units of the
        standard deviations of x and y. A sign that differs is a feature that does not hold.
    held_out_scores_ : ndarray of shape (n_steps + 1, n_domains)
        Mean squared error in each domain of the walk that did not see it, size by size.
    rule_scores_ : dict of ndarray of shape (n_steps + 1,)
        Mean error on held-out domains for each rule that was tried.
    source_score_ : float
        Mean squared error on the source domains at the chosen size.
    new_domain_score_ : float
        Mean squared error to expect on a new domain: rule and length chosen anew without each
        domain in turn. nan with too few domains to do so; not with ``stop="max_steps"``.
    new_domain_interval_ : (float, float)
        Student's interval for it at level ``1 - alpha``, over domains.
    domain_gap_ : float
        ``new_domain_score_ - source_score_``.
    guarantees_ : dict
        Theorem 1: ``effect_low`` and ``effect_high`` (n_targets, n_features), which hold for all
        ``E[x y]`` at once with probability ``1 - alpha``, infinite with fewer than
        ``effect_domains_needed`` domains. Corollary 3: ``regret`` (n_targets,) of the least-squares
        fit on the chosen features, infinite with fewer than ``regret_domains_needed`` (n_targets,).
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        When the columns of X have names.
"""

NOTES = """
    Notes
    -----
    When **not** to use it: when the next rows come from the same domains as these, a pooled fit
    (`LassoCV`, `RidgeCV`) has more to learn from. With two or three domains nothing can tell a
    steady effect from a lucky one. Domains that share rows are not independent: their T is too
    large, and ``"sign_flip"`` and ``"bonferroni"`` reject too often. All tests are exact, or nearly
    so, at the first step only: later ones have looked at the data. Where ``new_domain_score_`` is
    no lower than ``path_.scores[0]``, the error of the empty selection, no feature holds.

    A feature of whose second moment one domain holds nine tenths can be judged by that domain alone
    and is no candidate.

    Sums are all it needs: `fit_statistics` takes `Moments` that were added up elsewhere. Where
    there are many more features than steps and nothing is held out, or where the second moments of
    all features do not fit in scikit-learn's ``working_memory`` (1 GiB unless set otherwise), only
    the columns that are picked are made, with the same picks. Rows of float32 have moments of
    float32.

    References
    ----------
    .. [1] D. Foster, S. Kakade, R. Salakhutdinov, "Domain Adaptation: Overfitting and Small Sample
       Statistics" (2011).
    .. [2] G. Smyth, "Linear models and empirical Bayes methods for assessing differential
       expression in microarray experiments", Stat. Appl. Genet. Mol. Biol. 3 (2004).
"""


class TGreedyBase(ShowsPath, BaseEstimator):
    """What the selector and the predictors share."""

    def __init__(
        self,
        rule: str = "moderated",
        *,
        stop: str = "auto",
        max_steps: int | None = None,
        stepwise: bool = False,
        fit_intercept: bool = True,
        fixed_features: Any = None,
        alpha: float = 0.05,
        n_jobs: int | None = None,
    ):
        self.rule = rule
        self.stop = stop
        self.max_steps = max_steps
        self.stepwise = stepwise
        self.fit_intercept = fit_intercept
        self.fixed_features = fixed_features
        self.alpha = alpha
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,
        y: Any,
        groups: Any = None,
        sample_weight: Any = None,
        *,
        X_unlabeled: Any = None,
    ) -> Any:
        """Walk, and choose where to stop.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        groups : array-like of shape (n_samples,), optional
            Domain of each row. Without it every row is its own domain: the ordinary T.
        sample_weight : array-like of shape (n_samples,), optional
            Weights are repetitions. Within a domain they weigh the rows; without groups a row of
            weight w counts as w domains.
        X_unlabeled : array-like of shape (n_unlabeled, n_features), optional
            Inputs without labels, from anywhere. They serve for ``E[x²]`` (the papers' unbiased
            version).

        Returns
        -------
        self : object
        """
        self._check_parameters()
        numeric = self._y_is_numeric(y)
        X, y = numeric_rows(self, X, y, reset=True, accept_sparse=True, y_numeric=numeric)
        X = X if sparse.issparse(X) else np.ascontiguousarray(X)  # sums do not depend on the layout
        owner = type(self).__name__
        weight = check_weights(owner, sample_weight, X.shape[0])
        labels = None if groups is None else check_groups(f"{owner}.fit", groups, X.shape[0])
        unlabeled = unlabeled_rows(self, X_unlabeled, accept_sparse=True)
        used = weight > 0
        if not used.all():
            X, y, weight = X[used], y[used], weight[used]
            labels = None if labels is None else labels[used]
        Y = self._targets(y, numeric)
        known = None
        if unlabeled.shape[0]:
            none = np.empty((unlabeled.shape[0], 0))
            mean, variance, *_ = first_moments(unlabeled, none, np.ones(len(none)))
            known = mean, variance
        max_bytes = get_config()["working_memory"] * 2**20
        if labels is None:
            rows = self._dense_rows(X, max_bytes)
            self._check_domain_count(float(weight.sum()), len(weight), None)
            # Equal rows are held out together, so that weights are repetitions there too.
            units = None
            if self.rule == "auto" or self.stop.startswith("held_out"):
                units = np.unique(np.column_stack([Y, rows]), axis=0, return_inverse=True)[1]
                self._check_can_be_held_out(np.bincount(units, weight))
            return self._walk(rows_as_domains(rows, Y), weight, None, known, units)
        names, codes = np.unique(labels, return_inverse=True)
        self._check_domain_count(len(names), len(names), names)
        self._warn_of_thin_domains(y, codes, names)
        # Walks that hold out different domains ask for different columns, soon for most of them.
        alone = self.stop == "max_steps" and self.rule != "auto"
        n_columns = int(self.max_steps) if alone and self.max_steps else X.shape[1]
        with np.errstate(over="ignore", invalid="ignore"):  # checked before the walk
            domains = domains_from_rows(
                X, Y, codes, weight, n_columns=n_columns, max_bytes=max_bytes
            )
        return self._walk(domains, np.ones(len(names)), names, known)

    def fit_statistics(self, moments: Moments, *, unlabeled: Moments | None = None) -> Any:
        """Fit from sums: what `fit` with groups does once it has summed the rows.

        Parameters
        ----------
        moments : Moments
            One entry per domain, with the target; for classes, see `TGreedyClassifier`.
        unlabeled : Moments, optional
            Of rows without labels, in one domain.

        Returns
        -------
        self : object
        """
        self._check_parameters()
        who = f"{type(self).__name__}.fit_statistics"
        if not isinstance(moments, Moments) or not moments.has_target:
            raise ValueError(
                f"{who}: expected Moments with a target. Got "
                f"{'Moments without one' if isinstance(moments, Moments) else type(moments)}. "
                "Build them with Moments.from_arrays(X, y, groups=...)."
            )
        self.n_features_in_ = moments.n_features
        if moments.feature_names is not None:
            self.feature_names_in_ = np.array(moments.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._check_domain_count(len(moments.domains), len(moments.domains), moments.domains)
        known = None
        if unlabeled is not None:
            if not isinstance(unlabeled, Moments):
                raise ValueError(
                    f"{who}: unlabeled must be Moments. Got {type(unlabeled).__name__}. Build them "
                    "with Moments.from_arrays(X_unlabeled)."
                )
            given = (moments.feature_names, unlabeled.feature_names)
            if None not in given and given[0] != given[1]:
                raise ValueError(
                    f"{who}: unlabeled must have the columns of moments. Got {given[1]} beside "
                    f"{given[0]}. Put them in one order."
                )
            if len(unlabeled.domains) != 1 or unlabeled.n_features != moments.n_features:
                raise ValueError(
                    f"{who}: unlabeled must be one domain of {moments.n_features} features. Got "
                    f"{len(unlabeled.domains)} domains of {unlabeled.n_features} features."
                )
            variance = np.diag(unlabeled.scatter_xx[0]) / unlabeled.n_samples[0]
            known = unlabeled.mean_x[0], variance.astype(np.float64)
        domains = domains_from_moments(moments)
        self._take_targets(len(domains.mean_y))
        names = np.empty(len(moments.domains), dtype=object)
        names[:] = moments.domains
        return self._walk(domains, np.ones(len(names)), names, known)

    def _new_rows(self, X: Any) -> Any:
        check_is_fitted(self, "support_")
        X = numeric_rows(self, X, reset=False, accept_sparse=True)
        return X if sparse.issparse(X) else np.ascontiguousarray(X)

    # --- what the children say ---

    def _y_is_numeric(self, y: Any) -> bool:
        return True

    def _targets(self, y: np.ndarray, numeric: bool) -> np.ndarray:
        """Columns of numbers to explain, shape (n_rows, n_targets)."""
        return y.astype(np.float64)[:, None]

    def _take_targets(self, n_targets: int) -> None:
        """Accept or refuse sums of so many targets."""
        if n_targets != 1:
            raise ValueError(
                f"{type(self).__name__}.fit_statistics: expected the moments of one target. "
                f"Got {n_targets}."
            )

    # --- checks, all before any work ---

    def _check_parameters(self) -> None:
        who = type(self).__name__
        check_parameters(who, self.rule, self.stop, self.max_steps)
        if not (is_number(self.alpha) and 0 < self.alpha < 1):
            raise ValueError(f"{who}: alpha must be between 0 and 1. Got {self.alpha!r}.")

    def _check_domain_count(self, n: float, n_rows: int, names: Any) -> None:
        who = f"{type(self).__name__}.fit"
        if names is not None and len(names) < 2:
            raise ValueError(
                f"{who}: needs at least 2 domains, got 1 ({plain(names[0])!r} in every row). "
                "Pass the domain of each row as fit(X, y, groups=...)."
            )
        if n_rows < 2 or not n > 1:
            hint = (
                "sample_weight sums to {n:g}: weights are repetitions, so do not scale them to 1."
                if n_rows > 1
                else "One row has no spread."
            ).format(n=n)
            raise ValueError(
                f"{who}: needs at least 2 rows where every row is its own domain. "
                f"Got {n_rows} sample{'s' if n_rows != 1 else ''}. {hint}"
            )

    def _check_can_be_held_out(self, weight: np.ndarray) -> None:
        """Refuse different rows of these weights of which none can be left out."""
        left = float(weight.sum() - weight.max())
        if len(weight) < 3 or not left > 1:
            raise ValueError(
                f"{type(self).__name__}.fit: without groups, holding rows out needs at least 3 "
                "different rows, and a weight above 1 in all but the heaviest. Got "
                f"{len(weight)} different rows, and {left:g}. Pass stop='bonferroni' or "
                "stop='max_steps' with a rule other than 'auto', or more rows."
            )

    def _dense_rows(self, X: Any, max_bytes: float) -> np.ndarray:
        if sparse.issparse(X):
            size = X.shape[0] * X.shape[1] * 8
            if size > max_bytes:
                raise ValueError(
                    f"{type(self).__name__}.fit: without groups, sparse rows are made dense: "
                    f"{size / 2**20:.0f} MiB, above the working_memory of {max_bytes / 2**20:.0f}. "
                    "Pass groups, or sklearn.set_config(working_memory=...)."
                )
            X = X.toarray()
        return X.astype(np.float64, copy=False)

    def _warn_of_thin_domains(self, y: np.ndarray, codes: np.ndarray, names: np.ndarray) -> None:
        n_rows = np.bincount(codes)
        single = names[n_rows == 1]
        if 0 < len(single) < len(names):
            warnings.warn(
                f"{type(self).__name__}.fit: {len(single)} of {len(names)} domains have a single "
                f"row, such as {plain(single[0])!r}. Each counts as much as a large one. "
                "Leave them out if one row cannot speak for its domain.",
                UserWarning,
                stacklevel=3,
            )

    # --- the fit ---

    def _walk(
        self,
        domains: kernel.Domains,
        weight: np.ndarray,
        names: np.ndarray | None,
        unlabelled: tuple[np.ndarray, np.ndarray] | None,
        units: np.ndarray | None = None,
    ) -> Any:
        owner, grouped = type(self).__name__, names is not None
        check_sizes(owner, domains)
        n_targets, n_features = len(domains.mean_y), domains.mean_x.shape[1]
        fixed = check_columns(self, "fixed_features", self.fixed_features)
        n = float(weight.sum())
        stop = resolved_stop(
            owner,
            self.rule,
            self.stop,
            grouped=grouped,
            n=n,
            n_candidates=n_features * n_targets,
            alpha=self.alpha,
        )
        if stop == "sign_flip" and not np.array_equal(weight, np.rint(weight)):
            raise ValueError(
                f"{owner}: stop='sign_flip' without groups flips whole rows, so weights must be "
                f"whole numbers. Got {weight[weight != np.rint(weight)][0]:g}."
            )
        steps = self.max_steps or default_steps(n_features, n_targets, self.stepwise)
        plan = Plan(
            stop,
            steps + len(fixed),
            len(fixed),
            self.alpha,
            grouped and stop != "max_steps",
            self.n_jobs,
        )

        def walk_without(rule: str, held: np.ndarray) -> kernel.Walk:
            kept = weight.copy()
            kept[held] = 0.0
            return kernel.Walk(
                domains,
                kept,
                rule=rule,
                stepwise=self.stepwise,
                centre=self.fit_intercept,
                unlabelled=unlabelled,
                fixed=fixed,
                alpha=self.alpha,
            )

        rules = ("moderated", "t", "greedy") if self.rule == "auto" else (self.rule,)
        walks = {rule: walk_without(rule, np.empty(0, int)) for rule in rules}
        try:
            selection = select(walks, walk_without, weight, plan, units)
        except KeyboardInterrupt:
            walk = max(walks.values(), key=lambda walk: len(walk.order))
            self.path_ = path_of(self, walk, weight, None, 0, "interrupted")
            raise
        self._keep(walks[selection.rule], weight, selection, names, n)
        return self

    def _keep(
        self,
        walk: kernel.Walk,
        weight: np.ndarray,
        selection: Selection,
        names: np.ndarray | None,
        n: float,
    ) -> None:
        """Fitted attributes."""
        size = selection.size
        self.rule_ = selection.rule
        self.n_domains_ = int(n) if n == int(n) else n
        counted = "domains" if names is not None else "rows as domains"
        reason = f"{selection.reason}; {n:g} {counted}"
        self.path_ = path_of(self, walk, weight, selection.held_out, size, reason)
        self.support_ = self.path_.support(self.n_features_in_)
        self.ranking_ = self.path_.ranking(self.n_features_in_)
        strongest = np.argmax(np.abs(walk.first_t), axis=0)
        self.scores_ = np.take_along_axis(walk.first_t, strongest[None], axis=0)[0]
        self.t_statistics_ = np.array(walk.t)
        self.chance_levels_ = np.array(walk.levels)
        self._coefficients = walk.coefficients(size)
        self._intercepts = walk.centre_y - self._coefficients @ walk.centre_x
        for name in _WITH_DOMAINS & set(vars(self)):  # of an earlier fit
            delattr(self, name)
        if selection.held_out is not None:
            self.held_out_scores_ = selection.held_out
            self.rule_scores_ = selection.curves
        if names is None:
            return
        self.domains_ = names
        scale = walk.scale[:, None]
        shares = walk.start / np.where(scale > 0, scale, 1.0)
        effects = np.where(walk.usable, shares, 0.0).transpose(0, 2, 1)
        self.domain_effects_ = effects[0] if len(effects) == 1 else effects
        self.source_score_ = float(walk.losses[size] @ weight / n)
        self.guarantees_ = guarantees(walk, self._coefficients, self.alpha)
        if selection.nested is None:
            return
        self.new_domain_score_ = float(selection.nested.mean())
        self.new_domain_interval_ = interval(selection.nested, self.alpha)
        self.domain_gap_ = self.new_domain_score_ - self.source_score_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


def plain(label: Any) -> Any:
    """A label as the caller wrote it, not as NumPy prints it."""
    return label.item() if isinstance(label, np.generic) else label
