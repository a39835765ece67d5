"""TGreedySelector, TGreedyClassifier, TGreedyRegressor: features that hold in new domains."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from holdtrue.domains import choose, covariances
from holdtrue.domains.base import (
    DomainEstimator,
    PredictsClasses,
    PredictsNumbers,
    WalksDomains,
    check_domain_count,
    check_moments,
    coded_targets,
    dense_rows,
    named_classes,
    working_memory,
)
from holdtrue.domains.bounds import guarantees
from holdtrue.domains.kernel import Domains, Walk
from holdtrue.errors import InputError, caution, check_choice
from holdtrue.evidence import DomainEvidence
from holdtrue.path import fits_whole
from holdtrue.sums import Moments
from holdtrue.targets import target_kind
from holdtrue.validation import (
    check_columns,
    check_level,
    check_weights,
    feature_names,
    readable_names,
    unlabeled_rows,
)

PARAMETERS = """
    Answers *which features will still work at the next hospital, user or year?* A feature is worth
    adding only if its effect is steady across the domains [1]_ [2]_.

    Parameters
    ----------
    rule : {"moderated", "t", "greedy", "auto"}, default="moderated"
        What a step maximises. ``"t"``: ``|T|``, the mean of the feature's effect over the domains
        by its standard error. ``"moderated"``: the same with spreads shrunk towards each other,
        for few domains and many features. ``"greedy"``: the fall of the squared error, blind to
        the spread. ``"auto"``: whichever has the least error on held-out domains.
    stop : str, default="auto"
        ``"held_out_domain"``: the length with the least error on held-out domains (one
        by one, more than 20 in 10 parts); ``"held_out_domain_1se"``: the smallest length within one
        standard error (of the difference) of it;
        ``"bonferroni"``: while ``|T|`` exceeds Student's quantile at ``alpha/(2 n_features)``;
        ``"bound"``: while it exceeds the level of Theorem 1; ``"sign_flip"``: while flips of whole
        domains say that it is not chance; ``"max_steps"``: exactly that many steps, and nothing is
        held out (unless to choose rule or weighting). ``"auto"`` is ``"held_out_domain"`` with
        groups (``"bonferroni"`` if there are only two) and ``"bonferroni"`` without.
    max_steps : int, optional
        Most steps, fixed features not counted. Default: ``min(3 n_features, 300)`` for each target;
        stepwise ``min(n_features, 300)``.
    stepwise : bool, default=False
        Refit all weights at each step, each feature picked once. Otherwise a step moves one weight
        and a feature may be picked again (stagewise, as in the papers).
    fit_intercept : bool, default=True
        False: nothing is centred, the papers' literal version.
    domain_weight : {"equal", "rows", "auto"}, default="equal"
        How much a domain counts in the fit: once, or by its rows (then T and its degrees of freedom
        are those of the effective number of domains). ``"auto"``: whichever has the least error on
        held-out domains, each of which counts once. Without groups all rows are domains alike.
    center : {"global", "domain", "auto"}, default="auto"
        What effects are about: the mean over the domains, or each domain's own mean. ``"domain"``
        takes effects from within domains, so that differences between the domains' means, however
        large, do not hide them; the length is then chosen by the error about the mean of each
        held-out domain. ``"auto"``: ``"domain"`` where it lowers that error by more than one
        standard error, and by a larger factor than it raises the whole error; considered only where
        domains are held out and their means of y differ: by a tenth of the variance within, beyond
        what the sampling of rows explains. Two domains whose means differ so: ``"domain"``, because
        what their means say of an effect is the same at both, by construction.
    fixed_features : array-like of int, str or bool, optional
        Features that are always kept. They enter first.
    alpha : float, default=0.05
        Level of the tests; intervals are at ``1 - alpha``.
    random_state : int, RandomState or None, default=None
        Draws the flips of ``stop="sign_flip"`` where there are more than 16 domains.
    n_jobs : int, optional
        Threads for the held-out domains.
"""

ATTRIBUTES = """
    path_ : SelectionPath
        Features in order of entry. ``scores`` is the mean squared error on held-out domains (nan
        where none were held out), ``train_scores`` that on the source domains; ``evidence`` is a
        `DomainEvidence`.
    support_ : ndarray of bool, shape (n_features,)
        Features used for prediction: those of the chosen size.
    steady_ : ndarray of bool, shape (n_features,)
        Features that are steady beyond chance: they entered before the test of the rule
        (Bonferroni's, or that of ``stop``) failed for the first time. Fixed features are not
        tested. A feature may help prediction without being steady, and the reverse.
    ranking_ : ndarray of shape (n_features,)
    t_scores_ : ndarray of shape (n_features,) or (n_targets, n_features)
        T of every feature before any step.
    t_statistics_, chance_levels_ : ndarray of shape (n_steps,)
        T of each step's feature as it enters, and Bonferroni's level for it; nan for fixed ones.
    rule_, domain_weight_, center_ : str
        What was used; ``center_`` is ``"none"`` with ``fit_intercept=False``.
    n_domains_ : int or float
        How many domains were seen; without groups, the rows or the sum of their weights.
    domains_ : ndarray of shape (n_domains,)
        Their labels. This and all that follow: only with groups.
    domain_effects_ : ndarray of shape (n_features, n_domains) or (n_targets, ...)
        Effect of each feature in each domain before any step: ``E[x y | domain]`` about the centre,
        in units of the standard deviations of x and y. An effect that changes its sign does not
        hold.
    held_out_scores_ : ndarray of shape (n_steps + 1, n_domains)
        Mean squared error in each domain of the walk that did not see it, size by size.
    rule_scores_ : dict of ndarray of shape (n_steps + 1,)
        Mean error on held-out domains for each rule that was tried.
    source_score_ : float
        Mean squared error on the source domains at the chosen size.
    new_domain_score_ : float
        Mean squared error to expect at a new domain: everything is chosen anew without each domain
        in turn. With 3 domains it cannot be, and the score is that of held-out domains at the
        chosen size; a warning says so. nan with 2. Not with ``stop="max_steps"``.
    new_domain_interval_ : (float, float)
        Holds the error at *one* new domain with probability ``1 - alpha``.
    mean_interval_ : (float, float)
        Student's interval for the mean error over new domains, which is narrower.
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
    not below ``path_.scores[0]``, the error of the empty selection, no feature holds; a warning
    says so.

    A feature with nine tenths of its second moment in one domain can be judged by that domain alone
    and is excluded.

    ``cross_val_score(..., groups=g)`` passes groups to the splitter only, so that every row is its
    own domain in the fits. With metadata routing they reach the fits too::

        with sklearn.config_context(enable_metadata_routing=True):
            model = TGreedyRegressor().set_fit_request(groups=True)
            cross_val_score(model, X, y, cv=GroupKFold(), params={"groups": g})

    Sums are all it needs: `fit_statistics` takes `Moments` that were added up elsewhere. Where
    there are many more features than steps and nothing is held out, or where the second moments of
    all features do not fit in scikit-learn's ``working_memory`` (1 GiB unless set otherwise), only
    the columns that are picked are computed, with the same picks. Rows of float32 have moments of
    float32.

    References
    ----------
    .. [1] D. Foster, S. Kakade, R. Salakhutdinov, "Domain Adaptation: Overfitting and Small Sample
       Statistics" (2011).
    .. [2] G. Smyth, "Linear models and empirical Bayes methods for assessing differential
       expression in microarray experiments", Stat. Appl. Genet. Mol. Biol. 3 (2004).
"""


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
        given = X, y, groups, sample_weight
        # Sums of dense rows tell whether all are finite; a row of weight 0 is not in them.
        by_sums = groups is not None and sample_weight is None and not sparse.issparse(X)
        X, y, labels, weight = self._checked_rows(*given, y_numeric=numeric, finite=not by_sums)
        unlabelled = None
        if X_unlabeled is not None:
            rows = unlabeled_rows(self, X_unlabeled, accept_sparse=True)
            no_target = np.empty((rows.shape[0], 0))
            mean, variance, *_ = covariances.first_moments(rows, no_target, np.ones(rows.shape[0]))
            unlabelled = mean, variance
        classes, Y = coded_targets(y, numeric=numeric)
        if labels is None:
            held_out = self.rule == "auto" or self.stop.startswith("held_out")
            dense = dense_rows(X, working_memory())
            sums = covariances.rows_as_domains(dense, Y, weight, held_out=held_out)
            if held_out:
                covariances.check_can_be_held_out(np.bincount(sums.units, sums.copies))
            return self._fit_sums(sums, None, classes, unlabelled, nested=nested)
        names, domain_of_row = np.unique(labels, return_inverse=True)
        check_domain_count(names)
        # Walks that hold out different domains ask for different columns, soon for most of them.
        alone = self.stop == "max_steps" and "auto" not in (self.rule, self.domain_weight)
        n_columns = int(self.max_steps) if alone and self.max_steps else X.shape[1]
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                sums = covariances.domains_from_rows(
                    X, Y, domain_of_row, weight, n_columns=n_columns, max_bytes=working_memory()
                )
                covariances.check_sizes(sums)
        except InputError:
            if by_sums:
                self._checked_rows(*given, y_numeric=numeric)  # says what is not finite, and where
            raise
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
        walk, selection = self._take_walks(sums, settled, labels, classes, counted)
        if classes is not None:
            self.classes_ = classes
        self.n_domains_ = int(n) if n == int(n) else n
        self._keep(walk, selection, labels)
        for note in self.path_.evidence_as(DomainEvidence).notes:
            caution(f"{type(self).__name__}: {note}")
        return self

    def _plan(self, sums: Domains, grouped: bool, unlabelled: Any, nested: bool) -> choose.Plan:
        """Which walks to take; what cannot be done is refused."""
        n_targets, n_features = len(sums.mean_y), sums.mean_x.shape[1]
        n = float(sums.copies.sum())
        fixed: list[int] = []
        if self.fixed_features is not None:
            fixed = check_columns("fixed_features", self.fixed_features, feature_names(self))
        stop = choose.resolved_stop(
            self.stop, grouped=grouped, n=n, n_candidates=n_features * n_targets, alpha=self.alpha
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
            centers = ("global",)
            if estimate and choose.means_differ(sums):
                centers = choose.CENTERS if n >= 3 else ("domain",)
        if self.center == "domain" and not grouped:
            raise InputError(
                "center='domain' takes effects from within domains. Got no groups, so that every "
                "row is its own domain. Pass fit(X, y, groups=...), or center='global'."
            )
        weighting = self.domain_weight if grouped else "equal"
        steps = self.max_steps or choose.default_steps(n_features, n_targets, self.stepwise)
        seed = check_random_state(self.random_state).randint(2**31) if stop == "sign_flip" else 0
        return choose.Plan(
            choose.variants_of(self.rule, weighting, centers, n),
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

    def _keep(self, walk: Walk, selection: choose.Selection, labels: np.ndarray | None) -> None:
        """Fitted attributes."""
        evidence = self.path_.evidence_as(DomainEvidence)
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
        self.domain_effects_ = _single(evidence.effects)
        self.source_score_ = float(np.asarray(self.path_.train_scores)[selection.size])
        self.guarantees_ = guarantees(walk, coef, self.alpha)
        if selection.new_errors is not None:
            self.new_domain_score_ = evidence.new_domain_score
            self.new_domain_interval_ = (evidence.new_domain_low, evidence.new_domain_high)
            self.mean_interval_ = (evidence.mean_low, evidence.mean_high)
            self.domain_gap_ = self.new_domain_score_ - self.source_score_

    def _check_parameters(self) -> None:
        choose.check_parameters(self.rule, self.stop, self.max_steps)
        check_choice("domain_weight", self.domain_weight, ("auto", *choose.WEIGHTINGS))
        check_choice("center", self.center, ("auto", *choose.CENTERS))
        if self.center == "domain" and not self.fit_intercept:
            raise InputError(
                "center='domain' needs an intercept. Got fit_intercept=False, which centres "
                "nothing. Pass fit_intercept=True, or center='auto'."
            )
        check_level("alpha", self.alpha)


class TGreedySelector(SelectorMixin, TGreedyBase):
    __doc__ = f"""Keep the features whose effect on y is steady from domain to domain.
{PARAMETERS}    target_type : {{"auto", "classes", "numeric"}}, default="auto"
        How y is read. ``"auto"``: text, truth values, categories and two different values are
        classes, as are whole numbers with at most 20 values that are at most a fifth of the rows.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Only where y was read as classes.{ATTRIBUTES}
    See Also
    --------
    TGreedyRegressor, TGreedyClassifier : Predict with the chosen features.
    sklearn.feature_selection.SequentialFeatureSelector : Refits a model for every candidate.
{NOTES}
    Examples
    --------
    >>> from holdtrue import TGreedySelector
    >>> from holdtrue.datasets import make_domains
    >>> data = make_domains(n_domains=8, random_state=0)
    >>> selector = TGreedySelector(stop="bonferroni").fit(data.X, data.y, groups=data.groups)
    >>> selector.path_.chosen.tolist(), data.steady.tolist()
    ([0, 1, 2], [0, 1, 2])
    >>> selector.transform(data.X).shape
    (800, 3)
    """

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
        target_type: str = "auto",
    ):
        super().__init__(
            rule,
            stop=stop,
            max_steps=max_steps,
            stepwise=stepwise,
            fit_intercept=fit_intercept,
            domain_weight=domain_weight,
            center=center,
            fixed_features=fixed_features,
            alpha=alpha,
            random_state=random_state,
            n_jobs=n_jobs,
        )
        self.target_type = target_type

    def _given_classes(self, classes: Any, n_targets: int) -> np.ndarray | None:
        return None if classes is None and n_targets == 1 else named_classes(classes, n_targets)

    def _keep_coefficients(self, coef: np.ndarray, intercept: np.ndarray) -> None:
        pass  # a selector does not predict

    def _reads_numbers(self, y: Any, sample_weight: Any) -> bool:
        is_category = str(getattr(y, "dtype", "")) == "category"  # NumPy has no such type
        target_type = "classes" if is_category and self.target_type == "auto" else self.target_type
        values = np.asarray(y)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]  # scikit-learn warns, and reads it so
        if values.ndim != 1 or not len(values):
            return target_type != "classes"  # refused by the check of the rows
        weight = None if sample_weight is None else check_weights(sample_weight, len(values))
        return target_kind(values, target_type, weight).is_numeric

    def transform(self, X: Any) -> Any:
        """The columns of X that were chosen."""
        return super().transform(readable_names(X))

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self, "support_")
        return self.support_

    def _transform(self, X: Any) -> Any:
        # Choosing nothing is an answer: scikit-learn would warn.
        if self._get_support_mask().any():
            return super()._transform(X)
        return X.iloc[:, :0] if hasattr(X, "iloc") else X[:, :0]


class TGreedyRegressor(PredictsNumbers, TGreedyBase):
    __doc__ = f"""Linear regression on the features whose effect is steady from domain to domain.
{PARAMETERS}
    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        In the units of X and y.
    intercept_ : float{ATTRIBUTES}
    See Also
    --------
    TGreedySelector : Keeps the columns only.
    sklearn.linear_model.OrthogonalMatchingPursuit : Greedy on pooled rows.
{NOTES}
    Examples
    --------
    >>> from holdtrue import TGreedyRegressor
    >>> from holdtrue.datasets import make_domains
    >>> data = make_domains(n_domains=8, random_state=1)
    >>> model = TGreedyRegressor().fit(data.X, data.y, groups=data.groups)
    >>> low, high = model.new_domain_interval_
    >>> bool(low < model.new_domain_score_ < high)
    True
    """


class TGreedyClassifier(PredictsClasses, TGreedyBase):
    __doc__ = f"""Linear classifier on features whose effect is steady from domain to domain.

    Least squares on classes coded +1 and -1; several classes each against the rest, on one path: a
    step moves one feature's weight for one class.
{PARAMETERS}
    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        In the units of X.
    intercept_ : ndarray of shape (1,) or (n_classes,){ATTRIBUTES}
    See Also
    --------
    TGreedySelector : Keeps the columns only.
    sklearn.calibration.CalibratedClassifierCV : Probabilities, which this class does not claim.
{NOTES}
    Examples
    --------
    >>> from holdtrue import TGreedyClassifier
    >>> from holdtrue.datasets import make_domains
    >>> data = make_domains(n_domains=8, random_state=0)
    >>> model = TGreedyClassifier(stop="bonferroni")
    >>> model.fit(data.X, data.y > 0, groups=data.groups).path_.chosen.tolist()
    [0, 2, 1]
    """


def _single(values: np.ndarray) -> np.ndarray:
    """Without the axis of targets where there is one target."""
    return values[0] if len(values) == 1 else values
