"""What the estimators of this family share: rows and sums in, a path and predictions out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from holdtrue.domains import choose
from holdtrue.domains.bounds import interval_notes, mean_interval, new_domain_interval
from holdtrue.domains.choose import Plan, Selection
from holdtrue.domains.kernel import Domains, Walk
from holdtrue.errors import InputError, counted, shown, speaks
from holdtrue.evidence import DomainEvidence
from holdtrue.path import SelectionPath, ShowsPath, fits_whole
from holdtrue.sums import Moments
from holdtrue.validation import (
    check_groups,
    check_weights,
    class_signs,
    feature_names,
    numeric_rows,
)

SINGLE_ROWS = (
    "every domain has a single row, so that what varies between domains cannot be told from noise. "
    "Leave groups out if new data are new rows."
)

ONE_SIDED_ERRORS = (
    "The error at such a domain judges only the classes that it has, so that new_domain_score_ may "
    "be too low for a domain with every class. If new domains have every class, leave it out or "
    "merge it with another."
)


class DomainEstimator(ShowsPath, BaseEstimator):
    """An estimator that is fitted to rows in domains, or to their moments."""

    def _checked_rows(
        self,
        X: Any,
        y: Any,
        groups: Any,
        sample_weight: Any,
        *,
        y_numeric: bool,
        finite: bool = True,
    ) -> tuple[Any, np.ndarray, np.ndarray | None, np.ndarray]:
        """X, target, domains and weights of the rows whose weight is above 0.

        ``finite=False``: X may hold nan and infinite numbers.
        """
        X, y = numeric_rows(
            self, X, y, reset=True, accept_sparse=True, y_numeric=y_numeric, finite=finite
        )
        X = _contiguous(X)
        weight = check_weights(sample_weight, X.shape[0])
        labels = None if groups is None else check_groups(groups, X.shape[0])
        used = weight > 0
        if not used.all():
            X, y, weight = X[used], y[used], weight[used]
            labels = None if labels is None else labels[used]
        n = float(weight.sum())
        if len(y) < 2 or n < 2:
            scaled = (
                f" sample_weight sums to {n:g}: weights are repetitions, so do not scale them to 1."
            )
            raise InputError(
                f"needs at least 2 rows. Got {counted(len(y), 'sample')}.{scaled * (len(y) > 1)}"
            )
        return X, y, labels, weight

    @fits_whole
    def _fit_unscored(
        self, X: Any, y: Any, *, groups: Any = None, sample_weight: Any = None
    ) -> Any:
        """The predictor of `fit`, for a caller that judges it by other domains.

        The score at a new domain is not nested, which takes most of the time of `fit`.
        """
        return self._fit_rows(X, y, groups, sample_weight, nested=False)

    def _fit_rows(self, X: Any, y: Any, groups: Any, sample_weight: Any, *, nested: bool) -> Any:
        raise NotImplementedError

    def _keep_columns(self, moments: Moments) -> None:
        """Number and names of the features, as `fit` would learn them from X."""
        self.n_features_in_ = moments.n_features
        if moments.feature_names is not None:
            self.feature_names_in_ = np.array(moments.feature_names, dtype=object)

    # --- how selectors, regressors and classifiers differ ---

    def _reads_numbers(self, y: Any, sample_weight: Any) -> bool:
        """Whether y is a number to predict; else it is classes."""
        raise NotImplementedError

    def _given_classes(self, classes: Any, n_targets: int) -> np.ndarray | None:
        """Names of the classes of sums with that many targets; None for a number."""
        raise NotImplementedError

    def _keep_coefficients(self, coef: np.ndarray, intercept: np.ndarray) -> None:
        """Keep coefficients (n_targets, n_features) and intercepts (n_targets,)."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


class PredictsNumbers(RegressorMixin):
    """A linear regressor of one target."""

    def _reads_numbers(self, y: Any, sample_weight: Any) -> bool:
        return True

    def _given_classes(self, classes: Any, n_targets: int) -> np.ndarray | None:
        if classes is not None:
            raise InputError(
                f"classes are for a classifier; a number has none. Got classes={shown(classes)}."
            )
        if n_targets != 1:
            raise InputError(
                f"expected the moments of one target. Got {n_targets}. Fit one target at a time."
            )
        return None

    def _keep_coefficients(self, coef: np.ndarray, intercept: np.ndarray) -> None:
        self.coef_, self.intercept_ = coef[0], float(intercept[0])

    @speaks
    def predict(self, X: Any) -> np.ndarray:
        """Predictions for X, shape (n_samples,); float32 for float32."""
        X = new_rows(self, X)
        return X @ self.coef_.astype(X.dtype) + X.dtype.type(self.intercept_)


class PredictsClasses(ClassifierMixin):
    """A linear classifier: one score for two classes, else one per class against the rest."""

    classes_: np.ndarray

    def _reads_numbers(self, y: Any, sample_weight: Any) -> bool:
        return False

    def _given_classes(self, classes: Any, n_targets: int) -> np.ndarray | None:
        return named_classes(classes, n_targets)

    def _keep_coefficients(self, coef: np.ndarray, intercept: np.ndarray) -> None:
        self.coef_, self.intercept_ = coef, intercept

    @speaks
    def decision_function(self, X: Any) -> np.ndarray:
        """Scores, shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        X = new_rows(self, X)
        scores = X @ self.coef_.T.astype(X.dtype) + self.intercept_.astype(X.dtype)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @speaks
    def predict(self, X: Any) -> np.ndarray:
        """Classes of the rows of X, shape (n_samples,)."""
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(1)]


def new_rows(estimator: Any, X: Any) -> Any:
    """Rows to predict, as a contiguous array or CSR matrix."""
    check_is_fitted(estimator, "coef_")
    return _contiguous(numeric_rows(estimator, X, reset=False, accept_sparse=True))


def _contiguous(X: Any) -> Any:
    """X in one memory layout, so that sums and predictions do not depend on it."""
    return X if sparse.issparse(X) else np.ascontiguousarray(X)


def coded_targets(y: np.ndarray, *, numeric: bool) -> tuple[np.ndarray | None, np.ndarray]:
    """Classes, None for a number, and the targets of least squares, shape (n_rows, n_targets)."""
    return (None, y.astype(np.float64)[:, None]) if numeric else class_signs(y)


def named_classes(classes: Any, n_targets: int) -> np.ndarray:
    """Classes of targets coded +1 and -1; by default -1 and 1, or 0, 1, ..."""
    n_classes = 2 if n_targets == 1 else n_targets
    default = [-1, 1] if n_classes == 2 else range(n_classes)
    names = np.array(list(default) if classes is None else list(classes))
    if len(names) != n_classes:
        raise InputError(
            f"the moments have {n_targets} targets, so "
            f"classes must name {n_classes}. Got {len(names)}."
        )
    return names


def class_shares(mean_y: np.ndarray) -> np.ndarray:
    """Share of each class in each domain, shape (n_domains, n_classes).

    Parameters
    ----------
    mean_y : ndarray of shape (n_domains, n_targets)
        Means of targets coded +1 and -1; see `coded_targets`.
    """
    shares = (1 + mean_y) / 2
    return np.hstack([1 - shares, shares]) if shares.shape[1] == 1 else shares


def missing_classes(
    shares: np.ndarray, n_rows: np.ndarray, labels: Any, classes: Any, meaning: str
) -> list[str]:
    """A sentence on domains of two rows or more that lack a class; none if there are none.

    ``shares`` has shape (n_domains, n_classes); ``meaning`` is what follows for the reader, and
    what to do.
    """
    missing = np.argwhere((shares < 1e-9) & (n_rows > 1)[:, None])  # 0 but for rounding
    if not len(missing):
        return []
    domain, k = missing[0]
    n_lacking = len(np.unique(missing[:, 0]))
    return [
        f"{n_lacking} of {len(shares)} domains {'lacks' if n_lacking == 1 else 'lack'} a class, "
        f"such as class {shown(classes[k])} in domain {shown(labels[domain])}. {meaning}"
    ]


def check_moments(moments: Any) -> np.ndarray:
    """Domains of the moments, shape (n_domains,); refused without a target or a second domain."""
    if not isinstance(moments, Moments) or not moments.has_target:
        given = "Moments without one" if isinstance(moments, Moments) else type(moments)
        raise InputError(
            f"expected Moments with a target. Got {given}. "
            "Build them with Moments.from_arrays(X, y, groups=...)."
        )
    check_domain_count(moments.domains)
    names = np.empty(len(moments.domains), dtype=object)
    names[:] = moments.domains
    return names


def check_domain_count(names: Any) -> None:
    """Refuse groups that name a single domain."""
    if len(names) < 2:
        raise InputError(
            f"needs at least 2 domains, got 1 ({shown(names[0])} in every row). "
            "Pass the domain of each row as fit(X, y, groups=...)."
        )


def dense_rows(X: Any, max_bytes: float) -> np.ndarray:
    """X as float64; sparse rows that would not fit in ``max_bytes`` are refused."""
    if sparse.issparse(X):
        size = X.shape[0] * X.shape[1] * 8
        if size > max_bytes:
            raise InputError(
                f"without groups, sparse rows are made dense: "
                f"{size / 2**20:.0f} MiB, above the working_memory of {max_bytes / 2**20:.0f}. "
                "Pass groups, or sklearn.set_config(working_memory=...)."
            )
        X = X.toarray()
    return X.astype(np.float64, copy=False)


def working_memory() -> float:
    """scikit-learn's ``working_memory`` in bytes."""
    return float(get_config()["working_memory"] * 2**20)


# --- a walk, and what was chosen from it, as a path with its evidence ----------------------------


class WalksDomains(ShowsPath):
    """An estimator whose answer is a walk over domains."""

    def _take_walks(
        self,
        sums: choose.Sums,
        plan: Plan,
        labels: np.ndarray | None,
        classes: np.ndarray | None,
        counted: str,
        *,
        nested_only: bool = False,
    ) -> tuple[Walk, Selection]:
        """Walk, choose, and keep the path and what follows from it; an interrupted path too.

        ``labels`` is None where every row is its own domain, ``classes`` where y is a number.
        ``counted`` says what the domains are, such as ``"8 domains"``, and ends the reason.
        ``nested_only``: expect nothing where the choice has seen the domain that is judged.
        """
        names = feature_names(self)
        walks = {variant: choose.new_walk(sums, plan, variant) for variant in plan.variants}
        try:
            selection = choose.select(walks, sums, plan)
        except KeyboardInterrupt:
            longest = max(walks.values(), key=lambda walk: len(walk.order))
            self.path_ = _path(longest, names, None, 0, "interrupted", None)
            raise
        walk = walks[selection.variant]
        evidence = domain_evidence(
            walk, selection, names, labels, classes, 1 - plan.alpha, nested_only=nested_only
        )
        reason = f"{selection.reason}; {counted}"
        self.path_ = _path(walk, names, selection.held_out, selection.size, reason, evidence)
        self.support_ = self.path_.support(len(names))
        self.ranking_ = self.path_.ranking(len(names))
        self.steady_ = evidence.steady
        self.rule_ = selection.variant.rule
        self.t_statistics_, self.chance_levels_ = np.array(walk.t), walk.levels()
        return walk, selection


def _path(
    walk: Walk,
    names: Sequence[str],
    held_out: np.ndarray | None,
    size: int,
    reason: str,
    evidence: DomainEvidence | None,
) -> SelectionPath:
    share = walk.domains.copies / walk.domains.copies.sum()
    order = list(walk.order)
    return SelectionPath(
        order=order,
        names=tuple(names[i] for i in order),
        scores=np.full(len(order) + 1, np.nan) if held_out is None else held_out @ share,
        chosen_size=size,
        reason=reason,
        unit="mean squared error",
        train_scores=walk.errors()[: len(order) + 1] @ share,
        evidence=evidence,
    )


def domain_evidence(
    walk: Walk,
    selection: Selection,
    names: Sequence[str],
    labels: np.ndarray | None,
    classes: np.ndarray | None,
    level: float,
    *,
    nested_only: bool,
) -> DomainEvidence:
    """What the selection rests on, for displays, reports and commands.

    ``level`` is that of the intervals, the rest as in `WalksDomains._take_walks`.
    """
    none = np.empty((len(walk.order) + 1, 0))
    held_out = none if selection.held_out is None else selection.held_out
    errors, score = selection.new_errors, math.nan
    one = mean = (math.nan, math.nan)
    if errors is None or np.isnan(errors).any() or (nested_only and not selection.is_nested):
        errors = np.empty(0)
    else:
        score = float(errors.mean())
        one = new_domain_interval(errors, level, float(held_out[0].mean()))
        mean = mean_interval(errors, level)
    n_rows, effects = np.empty(0), np.empty((len(walk.start), len(names), 0))
    within = np.empty(0)
    if labels is not None:
        effects = walk.first_effects().transpose(0, 2, 1)
        if selection.variant.center == "global":
            about_own = Walk(walk.domains, walk.weight, rule=walk.rule, center="domain")
            within = about_own.first_effects().transpose(0, 2, 1)
        n_rows = walk.domains.n_rows
    return DomainEvidence(
        names=tuple(names),
        domains=() if labels is None else tuple(str(label) for label in labels),
        targets=() if classes is None else tuple(str(c) for c in classes[len(classes) == 2 :]),
        effects=effects,
        n_rows=n_rows,
        t_scores=walk.first_t,
        step_t=np.array(walk.t),
        chance_levels=walk.levels(),
        steady=steady_mask(walk, selection),
        held_out=held_out,
        held_out_within=none if selection.within is None else selection.within,
        new_errors=errors,
        new_domain_score=score,
        new_domain_low=one[0],
        new_domain_high=one[1],
        mean_low=mean[0],
        mean_high=mean[1],
        rule=selection.variant.rule,
        domain_weight=selection.variant.domain_weight,
        center=selection.variant.center,
        notes=tuple(notes_on(walk.domains, labels, classes, selection, errors)),
        effects_within=within,
    )


def steady_mask(walk: Walk, selection: Selection) -> np.ndarray:
    """Which features entered beyond chance, shape (n_features,); fixed ones were not tested."""
    steady = np.zeros(len(walk.e2), dtype=bool)
    for i, t in zip(walk.order[: selection.steady_size], walk.t, strict=False):
        steady[i] |= not math.isnan(t)
    return steady


# --- notes for the reader -----------------------------------------------------------------------


def notes_on(
    sums: Domains,
    labels: np.ndarray | None,
    classes: np.ndarray | None,
    selection: Selection,
    errors: np.ndarray,
) -> list[str]:
    """What a reader of the result must know, in sentences.

    ``errors`` are those at new domains, empty where they are not known.
    """
    if labels is None:
        return []
    notes = _thin_domains(sums, labels)
    if classes is not None:
        meaning = (
            "Their effects compare the domain with the others, not its classes. Leave them out if "
            "that is not meant."
        )
        shares = class_shares(sums.mean_y.T)
        notes += missing_classes(shares, sums.n_rows, labels, classes, meaning)
    if selection.new_errors is not None and choose.effects_repeat(sums, selection.variant.center):
        notes.append(
            "what the means of 2 domains say of an effect is the same at both, by construction, so "
            "that no feature is called steady. Pass center='domain'."
        )
    if len(labels) < 3 and selection.new_errors is not None:
        notes.append(
            "of 2 domains none can be held out, so that new_domain_score_ is not known (nan). It "
            "needs 3 domains, and 4 to be nested."
        )
    if selection.held_out is None or not len(errors):
        return notes
    if not selection.is_nested:
        notes.append(
            f"with {len(labels)} domains new_domain_score_ is not nested: the length was "
            "chosen with the help of the domain that is judged, so that it may be too low. A "
            "nested score needs 4 domains."
        )
    score, empty = float(errors.mean()), float(selection.held_out[0].mean())
    notes += interval_notes(errors, empty)
    if score > empty and selection.size:
        meaning = (
            "Effects may hold within new domains, but do not tell their means."
            if selection.variant.center == "domain"
            else "What these features say does not carry over to new domains."
        )
        notes.append(
            f"the squared error to expect at a new domain, {score:.4g}, exceeds that of the "
            f"empty selection, {empty:.4g}. {meaning}"
        )
    return notes


def _thin_domains(sums: Domains, labels: np.ndarray) -> list[str]:
    single = np.flatnonzero(sums.n_rows <= 1)
    if len(single) == len(labels):
        return [SINGLE_ROWS]
    if not len(single):
        return []
    return [
        f"{len(single)} of {len(labels)} domains {'has' if len(single) == 1 else 'have'} a single "
        "row, such as "
        f"{shown(labels[single[0]])}. Each counts as much as a large one. Leave them out if one "
        "row cannot speak for its domain, or pass domain_weight='rows'."
    ]
