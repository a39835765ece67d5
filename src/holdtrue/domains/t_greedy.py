"""The fit that the selector and the predictors of T-Greedy share."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from holdtrue.domains import covariances, plan
from holdtrue.domains.base import (
    DomainEstimator,
    Walked,
    WalksDomains,
    check_domain_count,
    check_moments,
    coded_targets,
    dense_rows,
    working_memory,
)
from holdtrue.domains.bounds import guarantees
from holdtrue.domains.kernel import Domains
from holdtrue.errors import InputError, caution, check_choice
from holdtrue.path import fits_whole
from holdtrue.sums import Moments
from holdtrue.validation import check_columns, check_level, unlabeled_rows


class TGreedyBase(WalksDomains, DomainEstimator):
    """What the selector and the predictors share: parameters, checks and the fit."""

    def __init__(
        self,
        rule: str = "moderated",
        *,
        stop: str = "auto",
        max_steps: int | None = None,
        stepwise: bool = False,
        fit_intercept: bool = True,
        domain_weight: str = "equal",
        center: str = "auto",
        fixed_features: Any = None,
        alpha: float = 0.05,
        random_state: Any = None,
        n_jobs: int | None = None,
    ):
        self.rule = rule
        self.stop = stop
        self.max_steps = max_steps
        self.stepwise = stepwise
        self.fit_intercept = fit_intercept
        self.domain_weight = domain_weight
        self.center = center
        self.fixed_features = fixed_features
        self.alpha = alpha
        self.random_state = random_state
        self.n_jobs = n_jobs

    @fits_whole
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        groups: Any = None,
        sample_weight: Any = None,
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
            version); not with effects within domains.

        Returns
        -------
        self : object
        """
        return self._fit_rows(X, y, groups, sample_weight, X_unlabeled)

    def _fit_rows(
        self,
        X: Any,
        y: Any,
        groups: Any,
        sample_weight: Any,
        X_unlabeled: Any = None,
        *,
        nested: bool = True,
    ) -> Any:
        self._check_parameters()
        numeric = self._reads_numbers(y, sample_weight)
        X, y, labels, weight = self._checked_rows(X, y, groups, sample_weight, y_numeric=numeric)
        unlabelled = None
        if X_unlabeled is not None:
            rows = unlabeled_rows(self, X_unlabeled, accept_sparse=True)
            no_target = np.empty((rows.shape[0], 0))
            mean, variance, *_ = covariances.first_moments(rows, no_target, np.ones(rows.shape[0]))
            unlabelled = mean, variance
        classes, Y = coded_targets(y, numeric=numeric)
        if labels is None:
            covariances.check_row_count(weight)
            held_out = self.rule == "auto" or self.stop.startswith("held_out")
            dense = dense_rows(X, working_memory())
            sums = covariances.rows_as_domains(dense, Y, weight, held_out=held_out)
            if held_out:
                covariances.check_can_be_held_out(np.bincount(sums.units, weight))
            return self._fit_sums(sums, None, classes, unlabelled, nested=nested)
        names, domain_of_row = np.unique(labels, return_inverse=True)
        check_domain_count(names)
        # Walks that hold out different domains ask for different columns, soon for most of them.
        alone = self.stop == "max_steps" and "auto" not in (self.rule, self.domain_weight)
        n_columns = int(self.max_steps) if alone and self.max_steps else X.shape[1]
        with np.errstate(over="ignore", invalid="ignore"):  # checked before the walk
            sums = covariances.domains_from_rows(
                X, Y, domain_of_row, weight, n_columns=n_columns, max_bytes=working_memory()
            )
        return self._fit_sums(sums, names, classes, unlabelled, nested=nested)

    @fits_whole
    def fit_statistics(
        self, moments: Moments, *, unlabeled: Moments | None = None, classes: Any = None
    ) -> Any:
        """Fit from sums: what `fit` with groups does once it has summed the rows.

        Parameters
        ----------
        moments : Moments
            One entry per domain, with the target. Classes are coded +1 and -1: one target for two
            classes (+1 is the second), else one per class (+1 is the class).
        unlabeled : Moments, optional
            Of rows without labels, in one domain.
        classes : array-like, optional
            The classes' names, sorted. Default: -1 and 1, or 0, 1, ...; a selector takes one target
            for a number. Not for a regressor.

        Returns
        -------
        self : object
        """
        self._check_parameters()
        labels = check_moments(moments)
        sums = covariances.domains_from_moments(moments)
        classes = self._given_classes(classes, len(sums.mean_y))
        known = None if unlabeled is None else covariances.unlabeled_moments(unlabeled, moments)
        self._keep_columns(moments)
        return self._fit_sums(sums, labels, classes, known)

    def _fit_sums(
        self,
        sums: Domains,
        labels: np.ndarray | None,
        classes: np.ndarray | None,
        unlabelled: tuple[np.ndarray, np.ndarray] | None,
        *,
        nested: bool = True,
    ) -> Any:
        """The fit, wherever the sums come from: walk, choose, keep.

        ``labels`` is None where every row is its own domain, ``classes`` where y is a number.
        ``unlabelled``: mean and variance over rows without labels, each (n_features,). ``nested``:
        see `Plan`.
        """
        covariances.check_sizes(sums)
        settled = self._plan(sums, labels is not None, unlabelled, nested)
        n = float(sums.copies.sum())
        counted = f"{n:g} {'rows as domains' if labels is None else 'domains'}"
        walked = self._take_walks(sums, settled, labels, classes, counted)
        if classes is not None:
            self.classes_ = classes
        self.n_domains_ = int(n) if n == int(n) else n
        self._keep(walked, labels)
        evidence: Any = self.path_.evidence
        for note in evidence.notes:
            caution(f"{type(self).__name__}: {note}")
        return self

    def _plan(self, sums: Domains, grouped: bool, unlabelled: Any, nested: bool) -> plan.Plan:
        """Which walks to take; what cannot be done is refused."""
        n_targets, n_features = len(sums.mean_y), sums.mean_x.shape[1]
        n = float(sums.copies.sum())
        fixed = check_columns(self, "fixed_features", self.fixed_features)
        stop = plan.resolved_stop(
            self.stop,
            grouped=grouped,
            n=n,
            n_candidates=n_features * n_targets,
            alpha=self.alpha,
        )
        if stop == "sign_flip" and not np.array_equal(sums.copies, np.rint(sums.copies)):
            fraction = sums.copies[sums.copies != np.rint(sums.copies)][0]
            raise InputError(
                "stop='sign_flip' without groups flips whole rows, so weights must be "
                f"whole numbers. Got {fraction:g}."
            )
        estimate = grouped and stop != "max_steps"
        if not self.fit_intercept:
            centers: tuple[str, ...] = ("none",)
        elif self.center != "auto":
            centers = (self.center,)
        else:
            compared = estimate and n >= 3 and plan.means_differ(sums)
            centers = plan.CENTERS if compared else ("global",)
        if self.center == "domain" and not grouped:
            raise InputError(
                "center='domain' takes effects from within domains. Got no groups, so that every "
                "row is its own domain. Pass fit(X, y, groups=...), or center='global'."
            )
        weighting = self.domain_weight if grouped else "equal"
        steps = self.max_steps or plan.default_steps(n_features, n_targets, self.stepwise)
        seed = check_random_state(self.random_state).randint(2**31) if stop == "sign_flip" else 0
        return plan.Plan(
            plan.variants_of(self.rule, weighting, centers, n),
            stop,
            steps + len(fixed),
            tuple(fixed),
            stepwise=self.stepwise,
            unlabelled=unlabelled,
            alpha=self.alpha,
            estimate=estimate,
            nested=nested,
            seed=seed,
            n_jobs=self.n_jobs,
        )

    def _keep(self, walked: Walked, labels: np.ndarray | None) -> None:
        """Fitted attributes."""
        walk, selection, expected = walked
        path: Any = self.path_
        _, self.domain_weight_, self.center_ = selection.variant
        self.t_scores_ = _single(walk.first_t)
        coef = walk.coefficients(selection.size)
        self._keep_coefficients(coef, walk.center_y - coef @ walk.center_x)
        if selection.held_out is not None:
            self.held_out_scores_ = selection.held_out
            self.rule_scores_ = selection.rule_curves
        if labels is None:
            return
        self.domains_ = labels
        self.domain_effects_ = _single(path.evidence.effects)
        self.source_score_ = float(path.train_scores[selection.size])
        self.guarantees_ = guarantees(walk, coef, self.alpha)
        if selection.new_errors is not None:
            self.new_domain_score_, self.new_domain_interval_, self.mean_interval_ = expected
            self.domain_gap_ = self.new_domain_score_ - self.source_score_

    def _check_parameters(self) -> None:
        plan.check_parameters(self.rule, self.stop, self.max_steps)
        check_choice("domain_weight", self.domain_weight, ("auto", *plan.WEIGHTINGS))
        check_choice("center", self.center, ("auto", *plan.CENTERS))
        if self.center == "domain" and not self.fit_intercept:
            raise InputError(
                "center='domain' needs an intercept. Got fit_intercept=False, which centres "
                "nothing. Pass fit_intercept=True, or center='auto'."
            )
        check_level("alpha", self.alpha)


def _single(values: np.ndarray) -> np.ndarray:
    """Without the axis of targets where there is one target."""
    return values[0] if len(values) == 1 else values
