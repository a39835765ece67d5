"""GreedyTL: a few sources and features, chosen for a new task with a dozen labels."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from holdtrue.path import SelectionPath
from holdtrue.progress import progress_bar
from holdtrue.sources import bounds
from holdtrue.sources.base import (
    LAMBDAS,
    Candidates,
    SourceEstimator,
    TransferClassifier,
    TransferRegressor,
)
from holdtrue.sources.kernel import Columns, candidate_draws
from holdtrue.sources.leave_one_out import held_out_errors, padded
from holdtrue.sources.targets import Search, TargetFit, fit_target, fit_targets, standardised
from holdtrue.validation import is_number, shown

# A Gram matrix of more candidates than this (512 MB) is not formed.
_MOST_IN_GRAM = 8_000
# The compiled loop is faster while Z stays in the processor's cache. Numbers that all fits together
# read from which on (seconds of work) it repays its loading. Without a limit a fit takes about five
# steps a row.
_MOST_IN_CACHE = 500_000
_WORTH_COMPILING = 5_000_000_000
_STEPS_PER_ROW = 5


class _GreedyTL(SourceEstimator):
    """Search, guard and path, for classes and numbers alike."""

    lam: Any
    max_selected: Any
    tol: Any
    n_candidates: Any
    passthrough: Any
    random_state: Any

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Choose sources and features, and their weights.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            What the sources read. Its columns are candidates too, unless ``passthrough=False``.
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            Weights are repetitions: n is their sum.

        Returns
        -------
        self : the fitted estimator
        """
        self._check_parameters()
        candidates, targets, weight = self._prepare(
            X, y, sample_weight, passthrough=self.passthrough
        )
        try:
            self._select(candidates, targets, weight)
        except KeyboardInterrupt:
            nothing = np.empty(0, dtype=np.intp)
            self.path_ = SelectionPath(nothing, (), np.array([np.nan]), 0, "interrupted")
            raise
        return self

    def _check_parameters(self) -> None:
        who, lam = self._owner, self.lam
        if not (isinstance(lam, str) and lam == "loo") and not (is_number(lam) and lam > 0):
            raise ValueError(
                f"{who}: lam must be a number above 0, or 'loo' to choose it by leave-one-out. "
                f"Got {shown(lam)}."
            )
        for name, other in (("max_selected", "None or 'loo'"), ("n_candidates", "or None")):
            value = getattr(self, name)
            said = isinstance(value, str) and value == "loo" and name == "max_selected"
            whole = is_number(value, numbers.Integral) and value >= 1
            if not (value is None or said or whole):
                raise ValueError(
                    f"{who}: {name} must be a whole number of at least 1, {other}. "
                    f"Got {shown(value)}."
                )
        if not (is_number(self.tol) and self.tol >= 0):
            raise ValueError(f"{who}: tol must be a number of at least 0. Got {shown(self.tol)}.")
        if not isinstance(self.passthrough, (bool, np.bool_)):
            raise ValueError(
                f"{who}: passthrough must be True or False. Got {shown(self.passthrough)}."
            )

    def _select(self, candidates: Candidates, targets: np.ndarray, weight: np.ndarray) -> None:
        rng = check_random_state(self.random_state)
        lams = LAMBDAS if isinstance(self.lam, str) else (float(self.lam),)
        n_features = len(candidates.features)
        n_rows, n_targets = targets.shape
        n_folds = n_targets * self._n_folds(weight)
        n_fits = len(lams) * n_folds
        searches = {"with_sources": self._search(len(candidates), rng, n_rows, n_fits)}
        if candidates.n_sources:
            searches["without_sources"] = self._search(n_features, rng, n_rows, n_fits)
        with progress_bar("leave-one-out", n_folds * len(searches)) as tick:
            errors = {
                kind: self._held_out(lams, kind, candidates, targets, weight, search, tick)
                for kind, search in searches.items()
            }
        # Where on the path to stop, and the larger λ of equals.
        size = np.argmin if self._stops_by_error else lambda path: len(path) - 1
        best = {
            kind: len(lams) - 1 - int(np.argmin([path[size(path)] for path in paths[::-1]]))
            for kind, paths in errors.items()
        }
        paths = {kind: errors[kind][best[kind]] for kind in errors}
        final = {kind: float(path[size(path)]) for kind, path in paths.items()}
        kind = min(final, key=lambda name: final[name])
        self.lam_ = lams[best[kind]]
        if candidates.n_sources:
            self.loo_errors_ = final
        else:
            self.loo_errors_ = {"without_sources": final["with_sources"]}
        search = Search(**{**vars(searches[kind]), "lam": self.lam_})
        fits = self._fits(kind, candidates, targets, weight, search)
        most = int(size(paths[kind])) if self._stops_by_error else search.n_total
        self._finish(fits, most, paths[kind], kind, candidates)

    @property
    def _stops_by_error(self) -> bool:
        return isinstance(self.max_selected, str)

    def _search(self, n_total: int, rng: np.random.RandomState, n_rows: int, n_fits: int) -> Search:
        limited = self.max_selected is not None and not self._stops_by_error
        most = min(int(self.max_selected), n_total) if limited else n_total
        size = None if self.n_candidates is None else int(self.n_candidates)
        if size is None or size >= n_total:
            cells = n_rows * n_total
            steps = min(most, _STEPS_PER_ROW * n_rows)
            compiled = cells <= _MOST_IN_CACHE and n_fits * steps * cells >= _WORTH_COMPILING
            return Search(0.0, most, float(self.tol), n_total, compiled=compiled)
        draws = candidate_draws(rng, n_total, size)
        return Search(0.0, most, float(self.tol), n_total, draws, size)

    def _held_out(
        self,
        lams: tuple[float, ...],
        kind: str,
        candidates: Candidates,
        targets: np.ndarray,
        weight: np.ndarray,
        search: Search,
        tick: Callable[[], None],
    ) -> list[np.ndarray]:
        """Error on left-out rows for every λ and size, the mean over the targets."""
        columns = _columns(kind, candidates)
        made = [
            held_out_errors(lams, columns, y, _ticked(self._folds(weight, y), tick), search)
            for y in targets.T
        ]
        return [padded(paths).mean(axis=0) for paths in zip(*made, strict=True)]

    def _fits(
        self,
        kind: str,
        candidates: Candidates,
        targets: np.ndarray,
        weight: np.ndarray,
        search: Search,
    ) -> list[TargetFit]:
        columns = _columns(kind, candidates)
        weights = [self._weights(weight, y) for y in targets.T]
        shared = all(np.array_equal(own, weights[0]) for own in weights[1:])
        # A step reads p|S| numbers through the Gram and pm through the rows; the Gram takes p²m.
        reach = 8 * len(weights) * search.max_selected
        if (
            shared
            and len(weights) > 1
            and search.draws is None
            and 4 * search.max_selected <= len(weight)
            and 0 < search.n_total <= min(reach, _MOST_IN_GRAM)
        ):
            return fit_targets(columns, targets, weights[0], search)
        return [
            fit_target(columns, y, own, search) for y, own in zip(targets.T, weights, strict=True)
        ]

    def _finish(
        self,
        fits: list[TargetFit],
        most: int,
        held_out: np.ndarray,
        kind: str,
        candidates: Candidates,
    ) -> None:
        n_all = self.n_features_in_ + candidates.n_sources
        raw, effects = np.zeros((n_all, len(fits))), np.zeros((n_all, len(fits)))
        intercepts = np.empty(len(fits))
        for t, fit in enumerate(fit.first(most) for fit in fits):
            chosen = candidates.indices[fit.greedy.order]
            intercepts[t], raw[chosen, t] = fit.raw()
            effects[chosen, t] = fit.effects
        self._keep(intercepts, raw, effects)
        self.used_sources_ = bool(raw[self.n_features_in_ :].any())

        # Targets take turns: each one's first pick, then each one's second.
        turns = [
            (step, t)
            for step in range(max(len(fit.greedy.order) for fit in fits))
            for t, fit in enumerate(fits)
            if step < len(fit.greedy.order)
        ]
        order = candidates.indices[[fits[t].greedy.order[step] for step, t in turns]]
        train = [fit.greedy.train_errors * fit.y_scale**2 for fit in fits]
        changes = [(train[t][step + 1] - train[t][step]) / len(fits) for step, t in turns]
        start = float(np.mean([path[0] for path in train]))
        # The error of a round stands at its last turn; between, it is that of the round before.
        rounds = np.array([0, *(step + 1 for step, _ in turns)])
        if len(fits) > 1:
            last = np.append(rounds[1:] != rounds[:-1], True)
            rounds = np.where(last, rounds, rounds - 1)
            rounds[0] = 0
        self.path_ = SelectionPath(
            order=order,
            names=tuple(self._candidate_names(order)),
            scores=held_out[np.minimum(rounds, len(held_out) - 1)],
            chosen_size=sum(step < most for step, _ in turns),
            reason=self._reason(fits, kind, candidates),
            unit="mean squared error",
            train_scores=np.maximum(start + np.append(0.0, np.cumsum(changes)), 0.0),
        )
        self.selected_ = self._candidate_names(self.path_.chosen)
        self.support_ = self.path_.support(n_all)
        self.ranking_ = self.path_.ranking(n_all)

    def _reason(self, fits: list[TargetFit], kind: str, candidates: Candidates) -> str:
        said = fits[0].greedy.reason
        if len(fits) > 1 and len({fit.greedy.reason for fit in fits}) > 1:
            said = "each class stopped where no candidate was worth adding, or at max_selected"
        if self._stops_by_error:
            said = "the left-out error is least here"
        if not candidates.n_sources:
            return said
        with_sources = self.loo_errors_["with_sources"]
        without = self.loo_errors_["without_sources"]
        figures = f"left-out error {with_sources:.3g} with sources, {without:.3g} without"
        if kind == "without_sources" and not len(candidates.features):
            said = f"sources do not help ({figures}): none is used"
        elif kind == "without_sources":
            said = f"sources do not help ({figures}): features alone; {said}"
        else:
            said = f"sources help ({figures}); {said}"
        if candidates.on.skipped:
            said += f"; {_count(len(candidates.on.skipped))} failed"
        if stuck := candidates.constant_sources():
            names = ", ".join(repr(self.source_names_[i]) for i in stuck[:3])
            more = ", ..." if len(stuck) > 3 else ""
            said += f"; {_count(len(stuck))} gave one score in every row: {names}{more}"
        return said


class GreedyTLClassifier(_GreedyTL, TransferClassifier):
    """Classifier on the few sources and features that help a new task with a dozen labels.

    Answers *which of a thousand trained models help here?* Candidates, sources and columns of X
    alike, enter one at a time; each is the one that most lowers the squared error with an L2
    penalty [1]_. Sources are black boxes: only their scores on the new rows are used.

    Parameters
    ----------
    sources : SourcePool or list of (name, source), default=()
        Trained models; see `SourcePool`. Without any, the columns of X are the candidates. Cloning
        the estimator shares them.
    lam : float or "loo", default=1.0
        The penalty λ per row: the larger, the more sources share the weight. ``"loo"`` takes the
        best of 10⁻⁴, 10⁻³, ..., 10⁴ by leave-one-out. The paper's pseudocode read to the letter
        has ``lam = 1/n_samples``.
    max_selected : int, "loo" or None, default=None
        Most candidates to choose. None, the paper's rule: as many as ``tol`` lets in, about five a
        row. ``"loo"``: as many as give the least error on left-out rows; better where few of many
        sources help, worse where most do.
    tol : float, default=1e-4
        A candidate that lowers the regularised error by less, where the target's variance is 1,
        stays out. There are at most ``1/tol`` steps.
    n_candidates : int, optional
        Look at this many random candidates at each step, 59 for GreedyTL-59: sources that are
        never drawn are never run. See `candidate_count`. Default: look at all. The number of
        sources run is at most this times the number of steps, whatever the size of the pool: a
        whole number for ``max_selected`` keeps it small.
    class_weight : "balanced", dict or None, default="balanced"
        With 2 positives and 10 negatives the threshold matters more than the method: balanced
        weights give both sides the same sum.
    passthrough : bool, default=True
        Whether the columns of X are candidates beside the sources.
    random_state : int, RandomState or None, default=None
        Draws the candidates if ``n_candidates`` is given.

    Attributes
    ----------
    selected_ : list of str
        Names of the chosen sources and features in order of entry.
    source_weights_ : ndarray of shape (n_sources,) or (n_classes, n_sources)
        What one standard deviation of a source adds to the score; 0 where it was not chosen.
    feature_weights_ : ndarray of shape (n_features,) or (n_classes, n_features)
        The same for the columns of X.
    intercept_ : float or ndarray of shape (n_classes,)
        Score where all chosen sources and features are 0.
    used_sources_ : bool
        Whether any source was chosen. Where leave-one-out finds that sources do not help, the fit
        is that of the features alone, and ``path_.reason`` says so.
    loo_errors_ : dict of float
        Mean squared error on left-out rows, ``"with_sources"`` and ``"without_sources"``. The
        selection is repeated without each row. Above 50 rows, or a sum of weights above 50, a
        tenth of the rows is left out at a time, each with its whole weight.
    lam_ : float
        The penalty that was used.
    path_ : SelectionPath
        Candidates in order of entry with the error on left-out rows. With more than two classes
        they take turns, and a candidate may enter for several.
    support_, ranking_ : ndarray of shape (n_features + n_sources,)
        Mask of the chosen, and order of entry: columns of X first, then sources in pool order.
    source_names_ : list of str
    classes_ : ndarray of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        When the columns of X have names.

    See Also
    --------
    GreedyTLRegressor : The same for numbers.
    SourcePool : Models, callables and files as sources.
    transfer_matrix : Which source serves which target.
    sklearn.ensemble.StackingClassifier : Fits the models too, and weighs all of them.

    Notes
    -----
    When **not** to use it: with thousands of labels, train on them. With a handful of sources,
    weigh them all (`sklearn.ensemble.StackingClassifier` with ``cv="prefit"``). If sources were
    trained on the rows of this fit, their scores are too good to be true and so is the error here.

    References
    ----------
    .. [1] I. Kuzborskij, F. Orabona, B. Caputo, "Scalable Greedy Algorithms for Transfer Learning",
       Computer Vision and Image Understanding 156 (2017) 174-185.

    Examples
    --------
    >>> from holdtrue import GreedyTLClassifier
    >>> from holdtrue.datasets import make_sources
    >>> data = make_sources(n_samples=20, n_sources=1000, n_helpful=20, random_state=0)
    >>> model = GreedyTLClassifier(data.sources, max_selected=5).fit(data.X, data.y)
    >>> model.selected_
    ['helpful4', 'other422', 'helpful10', 'other569', 'helpful18']
    >>> model.score(data.X_test, data.y_test) > 0.85
    True
    """

    def __init__(
        self,
        sources: Any = (),
        *,
        lam: Any = 1.0,
        max_selected: Any = None,
        tol: float = 1e-4,
        n_candidates: int | None = None,
        class_weight: Any = "balanced",
        passthrough: bool = True,
        random_state: Any = None,
    ):
        self.sources = sources
        self.lam = lam
        self.max_selected = max_selected
        self.tol = tol
        self.n_candidates = n_candidates
        self.class_weight = class_weight
        self.passthrough = passthrough
        self.random_state = random_state

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_class_weight()

    def guarantees(self, X: Any, y: Any, sample_weight: Any = None) -> dict[str, Any]:
        """What the paper's theorems say of this fit, from the rows that it was fitted on.

        The theorems hide constants and logarithms, and standardised columns leave the unit ball
        that they assume: read the numbers as what drives the error, not as a bound on it.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`; two classes

        Returns
        -------
        numbers : dict
            See `holdtrue.sources.bounds.guarantees`. With ``n_candidates``, only the chosen
            candidates are looked at.
        """
        check_is_fitted(self, "support_")
        fitted = type(self)(**self.get_params(deep=False))
        candidates, targets, weight = fitted._prepare(
            X, y, sample_weight, passthrough=self.passthrough
        )
        if targets.shape[1] > 1:
            raise ValueError(
                f"{self._owner}.guarantees: the theorems are about 2 classes. "
                f"Got {targets.shape[1]}."
            )
        wanted = np.arange(len(candidates))
        if self.n_candidates is not None:
            wanted = wanted[self.support_[candidates.indices]]
        own = fitted._weights(weight, targets[:, 0])
        Z, _, _ = standardised(candidates.columns(wanted).astype(np.float64), own)
        target, _, y_scale = standardised(targets, own)
        effects = np.concatenate([self.feature_weights_, self.source_weights_])
        n_features = int((wanted < len(candidates.features)).sum())
        weights = effects[candidates.indices[wanted]] / float(y_scale[0])
        return bounds.guarantees(Z, target[:, 0], own, weights, n_features, self.lam_)


class GreedyTLRegressor(_GreedyTL, TransferRegressor):
    """Regressor on the few sources and features that help a new task with a dozen labels.

    As `GreedyTLClassifier`, for numbers: the squared error is the aim itself.

    Parameters
    ----------
    sources : SourcePool or list of (name, source), default=()
        Trained models; see `SourcePool`. Without any, the columns of X are the candidates.
    lam : float or "loo", default=1.0
        The penalty λ per row.
    max_selected : int, "loo" or None, default=None
        Most candidates to choose; ``"loo"`` as many as give the least error on left-out rows.
    tol : float, default=1e-4
        A candidate that lowers the regularised error by less, where the target's variance is 1,
        stays out.
    n_candidates : int, optional
        Look at this many random candidates at each step; sources never drawn are never run.
    passthrough : bool, default=True
        Whether the columns of X are candidates beside the sources.
    random_state : int, RandomState or None, default=None
        Draws the candidates if ``n_candidates`` is given.

    Attributes
    ----------
    selected_, source_weights_, feature_weights_, intercept_, used_sources_, loo_errors_, lam_
        As in `GreedyTLClassifier`.
    path_, support_, ranking_, source_names_, n_features_in_, feature_names_in_
        As in `GreedyTLClassifier`.

    See Also
    --------
    GreedyTLClassifier : The same for classes.

    Examples
    --------
    >>> import numpy as np
    >>> from holdtrue import GreedyTLRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(15, 2))
    >>> sources = [("old_site", lambda X: X.sum(axis=1)), ("noise", lambda X: np.sin(99 * X[:, 0]))]
    >>> model = GreedyTLRegressor(sources, max_selected=1).fit(X, 3 * X.sum(axis=1))
    >>> model.selected_
    ['old_site']
    """

    def __init__(
        self,
        sources: Any = (),
        *,
        lam: Any = 1.0,
        max_selected: Any = None,
        tol: float = 1e-4,
        n_candidates: int | None = None,
        passthrough: bool = True,
        random_state: Any = None,
    ):
        self.sources = sources
        self.lam = lam
        self.max_selected = max_selected
        self.tol = tol
        self.n_candidates = n_candidates
        self.passthrough = passthrough
        self.random_state = random_state


def _count(count: int) -> str:
    return "1 source" if count == 1 else f"{count} sources"


def _columns(kind: str, candidates: Candidates) -> Columns:
    return candidates.columns if kind == "with_sources" else candidates.feature_columns


def _ticked(folds: Iterable[Any], tick: Callable[[], None]) -> Iterator[Any]:
    for fold in folds:
        yield fold
        tick()
