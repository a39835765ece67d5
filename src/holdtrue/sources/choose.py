"""From rows, columns and folds to a choice: which candidates, how many, under which penalty.

Everything here is data passed down: a `Task` says what to predict and how rows count, `Candidates`
hold the columns, folds are weights, a `Search` says how to search. The notation is that of
`kernel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from holdtrue.progress import progress_bar
from holdtrue.sources.calibrate import truncate
from holdtrue.sources.candidates import Candidates
from holdtrue.sources.draws import CandidateDraws
from holdtrue.sources.kernel import (
    GreedyFit,
    SampledSearch,
    first_of_equals,
    greedy,
    greedy_from_gram,
    standardised,
)

LAMBDAS = tuple(10.0**power for power in range(-4, 5))
# Up to this many rows, copies counted, or groups, one is left out at a time; above, a tenth.
MOST_LEFT_OUT = 50
_N_PARTS = 10
# A Gram matrix of more candidates than this (512 MB) is not formed.
_MOST_IN_GRAM = 8_000


# --- rows ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be predicted, and how rows count.

    Attributes
    ----------
    targets : ndarray of shape (n_rows, n_targets)
        Numbers, or ±1 for each class against the rest.
    weight : ndarray of shape (n_rows,)
        Positive; weights are repetitions.
    balanced : bool
        Whether both sides of a target get the same sum of weights.
    row_factor : ndarray of shape (n_rows,), optional
        Weight of each row's class, where the caller gave weights by class.
    groups : ndarray of int, shape (n_rows,), optional
        Rows that are left out together.
    truncated : bool
        Whether targets are ±1, so that a score beyond them counts as ±1 when it is judged.
    """

    targets: np.ndarray
    weight: np.ndarray
    balanced: bool = False
    row_factor: np.ndarray | None = None
    groups: np.ndarray | None = None
    truncated: bool = False

    @property
    def n_targets(self) -> int:
        """Number of targets."""
        return self.targets.shape[1]

    def class_weights(self, weight: np.ndarray, t: int) -> np.ndarray:
        """Weights of the rows for target t, with the sum of those given."""
        total = weight.sum()
        if self.row_factor is not None:
            factored = weight * self.row_factor
            return factored * (total / factored.sum()) if factored.sum() > 0 else weight
        if not self.balanced or not total:
            return weight
        positive = self.targets[:, t] > 0
        sides = [weight @ ~positive, weight @ positive]
        present = sum(side > 0 for side in sides)
        share = [total / (present * side) if side else 0.0 for side in sides]
        return weight * np.where(positive, share[1], share[0])


@dataclass(frozen=True, eq=False)
class Fold:
    """Weights of the rows to fit with, and of those left out; shape (n_rows,) each."""

    train: np.ndarray
    left_out: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        """Rows that are left out."""
        return np.flatnonzero(self.left_out)


def one_at_a_time(weight: np.ndarray) -> bool:
    """Whether rows are so few that copies of a row are left out one at a time."""
    return bool(weight.sum() <= MOST_LEFT_OUT)


def make_folds(task: Task, *, in_parts: bool = False) -> list[Fold]:
    """Folds that leave out every row once: one copy of a row, a group, or a tenth of them.

    Parameters
    ----------
    task : Task
    in_parts : bool
        Whether a tenth is left out at a time however few the rows are.
    """
    weight = task.weight
    if task.groups is None and one_at_a_time(weight) and not (in_parts and len(weight) > _N_PARTS):
        folds = []
        for i in range(len(weight)):
            left_out = np.zeros(len(weight))
            left_out[i] = weight[i]
            train = weight.copy()
            train[i] = max(weight[i] - 1, 0)
            folds.append(Fold(train, left_out))
        return folds
    # Dealt in order of the target, so that every part has its share of each class.
    by_target = np.lexsort(task.targets.T)
    if task.groups is None:
        part = np.empty(len(weight), dtype=np.intp)
        part[by_target] = np.arange(len(weight)) % _N_PARTS
    else:
        n_groups = int(task.groups.max()) + 1
        place = np.empty(len(weight))
        place[by_target] = np.arange(len(weight))
        mean_place = np.bincount(task.groups, place) / np.bincount(task.groups)
        part_of_group = np.empty(n_groups, dtype=np.intp)
        n_parts = n_groups if n_groups <= MOST_LEFT_OUT and not in_parts else _N_PARTS
        part_of_group[np.argsort(mean_place, kind="stable")] = np.arange(n_groups) % n_parts
        part = part_of_group[task.groups]
    return [
        Fold(np.where(part == f, 0, weight), np.where(part == f, weight, 0))
        for f in range(int(part.max()) + 1)
    ]


# --- one fit ------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Search:
    """What to search and how.

    Attributes
    ----------
    max_selected : int
    tol : float
    matrix : ndarray of shape (n_rows, n_searched), optional
        Raw columns of the candidates that are searched. None: read as they are drawn.
    searched : ndarray of int, shape (n_searched,)
        Which candidates they are.
    draws : CandidateDraws, optional
        Candidates that a step looks at. None: all.
    """

    max_selected: int
    tol: float
    matrix: np.ndarray | None
    searched: np.ndarray
    draws: CandidateDraws | None = None

    def standardised(self, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The columns of ``matrix`` standardised; with equal weights once for all targets."""
        assert self.matrix is not None
        return self._evenly if (weight == 1).all() else standardised(self.matrix, weight)

    @cached_property
    def _evenly(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        assert self.matrix is not None
        return standardised(self.matrix, np.ones(len(self.matrix)))


def make_search(
    candidates: Candidates,
    max_selected: int | None,
    tol: float,
    n_candidates: int | None,
    rng: np.random.RandomState,
) -> Search:
    """What to search and how; reads the columns of all candidates where all are looked at."""
    n_total = len(candidates)
    drawn = n_candidates if n_candidates is not None and n_candidates < n_total else None
    most = n_total if max_selected is None else max_selected
    search = Search(most, tol, None, np.arange(n_total))
    if drawn is None or candidates.is_stored:
        matrix = candidates.matrix()
        search = replace(search, matrix=matrix)
        evenly = search.standardised(np.ones(len(matrix)))[0]
        different = np.flatnonzero(first_of_equals(evenly) == search.searched)
        if len(different) < n_total:
            n_total, matrix = len(different), np.ascontiguousarray(matrix[:, different])
            search = Search(min(most, n_total), tol, matrix, different)
    return search if drawn is None else replace(search, draws=CandidateDraws(rng, n_total, drawn))


@dataclass(frozen=True, eq=False)
class TargetFit:
    """A `GreedyFit` with what brings its weights to the scale of the raw columns.

    ``h(x) = ȳ + s_y Σ w_j (x_j - mean_j)/scale_j`` over the j of ``order``.

    Attributes
    ----------
    greedy : GreedyFit
    order : ndarray of int
        The chosen candidates; ``greedy.order`` counts among the columns that were searched.
    mean, scale : ndarray
        Of the chosen candidates.
    y_mean, y_scale : float
    """

    greedy: GreedyFit
    order: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    y_mean: float
    y_scale: float

    def first(self, size: int) -> TargetFit:
        """The fit of the first ``size`` picks, or itself if it has no more."""
        if size >= len(self.order):
            return self
        whole = self.greedy
        cut = replace(whole, order=whole.order[:size], R=whole.R[:size, :size], q=whole.q[:size])
        return replace(
            self, greedy=cut, order=self.order[:size], mean=self.mean[:size],
            scale=self.scale[:size],
        )  # fmt: skip

    @property
    def effects(self) -> np.ndarray:
        """What one standard deviation of each chosen candidate adds to the prediction."""
        return self.y_scale * self.greedy.weights

    def raw(self) -> tuple[float, np.ndarray]:
        """Intercept, and weights of the chosen candidates in their own units."""
        weights = self.effects / self.scale
        return self.y_mean - float(weights @ self.mean), weights

    def predictions(self, Z: np.ndarray) -> np.ndarray:
        """Of every size 0..k for rows of the chosen candidates, shape (k + 1, n_rows)."""
        return self.y_mean + self.y_scale * self.greedy.predictions((Z - self.mean) / self.scale)

    @property
    def regularised_errors(self) -> np.ndarray:
        """The regularised error of the sizes 0..k on the rows of the fit; the search lowers it."""
        return self.greedy.regularised_errors * self.y_scale**2


def fit_target(
    candidates: Candidates,
    y: np.ndarray,
    weight: np.ndarray,
    lams: Sequence[float],
    search: Search,
) -> list[TargetFit]:
    """Standardise, select and bring back to the scale of the columns; a fit for each λ.

    Parameters
    ----------
    candidates : Candidates
    y, weight : ndarray of shape (n_rows,)
        Rows of weight 0 are left out.
    lams : sequence of float
    search : Search
    """
    n = float(weight.sum())
    # Rows of weight 0 become zeros, which is cheaper than to copy the others.
    target, y_mean, y_scale = standardised(y[:, None].astype(np.float64), weight)
    t = target[:, 0]
    limits = (search.max_selected, search.tol)
    fits = []
    if search.matrix is not None:
        Z, means, scales = search.standardised(weight)
        for lam in lams:
            fit = greedy(Z, t, n, lam, *limits, search.draws)
            order = search.searched[fit.order]
            fits.append((fit, order, means[fit.order], scales[fit.order]))
    elif search.draws is not None:
        for lam in lams:
            sampled = SampledSearch(t, n, lam, *limits, search.draws)
            while len(wanted := candidates.different(sampled.wanted(), sampled.order)):
                Z, _, _ = standardised(candidates.columns(wanted), weight)
                sampled.step(wanted, Z)
            fit = sampled.result()
            _, mean, scale = standardised(candidates.columns(fit.order), weight)
            fits.append((fit, fit.order, mean, scale))
    return [TargetFit(*fit, float(y_mean[0]), float(y_scale[0])) for fit in fits]


def fit_targets(
    columns: np.ndarray, Y: np.ndarray, weight: np.ndarray, lam: float, search: Search
) -> list[TargetFit]:
    """`fit_target` for every column of Y with the same weights, through one Gram matrix.

    Parameters
    ----------
    columns : ndarray of shape (n_rows, n_searched)
        Raw columns of the candidates that are searched.
    Y : ndarray of shape (n_rows, n_targets)
    weight : ndarray of shape (n_rows,)
        Positive.
    lam : float
    search : Search
        Without draws.
    """
    n = float(weight.sum())
    Z, mean, scale = standardised(columns.astype(np.float64, copy=False), weight)
    T, y_mean, y_scale = standardised(Y.astype(np.float64, copy=False), weight)
    C, B = Z.T @ Z, Z.T @ T
    fits = []
    for t in range(Y.shape[1]):
        fit = greedy_from_gram(C, B[:, t], n, lam, search.max_selected, search.tol)
        order = search.searched[fit.order]
        fits.append(
            TargetFit(
                fit, order, mean[fit.order], scale[fit.order], float(y_mean[t]), float(y_scale[t])
            )
        )
    return fits


def fit_whole(candidates: Candidates, task: Task, lam: float, search: Search) -> list[TargetFit]:
    """The fit of every target to all rows."""
    weights = [task.class_weights(task.weight, t) for t in range(task.n_targets)]
    shared = all(np.array_equal(weight, weights[0]) for weight in weights[1:])
    # A step reads p|S| numbers through the Gram and pm through the rows; the Gram takes p²m.
    n_columns, most = len(search.searched), search.max_selected
    if (
        shared
        and task.n_targets > 1
        and search.matrix is not None
        and search.draws is None
        and 4 * most <= len(task.weight)
        and 0 < n_columns <= min(8 * task.n_targets * most, _MOST_IN_GRAM)
    ):
        return fit_targets(search.matrix, task.targets, weights[0], lam, search)
    return [
        fit_target(candidates, y, weight, [lam], search)[0]
        for y, weight in zip(task.targets.T, weights, strict=True)
    ]


# --- left-out rows ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Predictions for left-out rows, everything fitted anew without them.

    Means, scales and selection are those of the other rows. With the selection kept, the error
    would fall on pure noise.

    Attributes
    ----------
    predictions : list of list of ndarray of shape (n_sizes, n_left_out)
        By fold and target; paths that stop earlier have fewer sizes.
    errors : ndarray of shape (n_folds, n_sizes)
        Weighted sums of squared errors of the targets, mean over the targets. Paths that stop
        earlier stay as they are, so that the last entry is the error of the whole procedure.
    total : float
        Sum of the weights of left-out rows.
    """

    predictions: list[list[np.ndarray]]
    errors: np.ndarray
    total: float

    @property
    def path(self) -> np.ndarray:
        """Mean squared error of each size."""
        return self.errors.sum(axis=0) / self.total

    def decisions(self, folds: Sequence[Fold], size: int | None, n_rows: int) -> np.ndarray:
        """Predictions of one size, or of each fold's last, shape (n_rows, n_targets)."""
        decisions = np.empty((n_rows, len(self.predictions[0])))
        for fold, targets in zip(folds, self.predictions, strict=True):
            for t, path in enumerate(targets):
                last = len(path) - 1
                decisions[fold.rows, t] = path[last if size is None else min(size, last)]
        return decisions


def leave_out(
    candidates: Candidates,
    task: Task,
    folds: Sequence[Fold],
    lams: Sequence[float],
    search: Search,
) -> list[LeftOut]:
    """Predictions and errors on left-out rows, for each λ."""
    predictions: list[list[list[np.ndarray]]] = [[] for _ in lams]
    errors: list[list[np.ndarray]] = [[] for _ in lams]
    full = [task.class_weights(task.weight, t) for t in range(task.n_targets)]
    total = 0.0
    with progress_bar("left-out rows", len(folds)) as tick:
        for fold in folds:
            rows = fold.rows
            by_target = []
            for t, y in enumerate(task.targets.T):
                train = task.class_weights(fold.train, t)
                fits = fit_target(candidates, y, train, lams, search)
                by_target.append(
                    [fit.predictions(candidates.columns(fit.order)[rows]) for fit in fits]
                )
            for k in range(len(lams)):
                paths = [fits_of_target[k] for fits_of_target in by_target]
                judged = [truncate(path) for path in paths] if task.truncated else paths
                squares = [
                    (path - task.targets[rows, t]) ** 2 @ full[t][rows]
                    for t, path in enumerate(judged)
                ]
                predictions[k].append(paths)
                errors[k].append(_padded(squares).mean(axis=0))
            total += float(np.mean([weight[rows].sum() for weight in full]))
            tick()
    return [
        LeftOut(paths, _padded(squares), total)
        for paths, squares in zip(predictions, errors, strict=True)
    ]


def _padded(paths: Sequence[np.ndarray]) -> np.ndarray:
    """Error paths as rows of equal length; those that stop earlier stay as they are."""
    sizes = np.arange(max(map(len, paths)))
    return np.array([path[np.minimum(sizes, len(path) - 1)] for path in paths])


# --- the choice ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Choice:
    """Penalty, fits to all rows, size, and the error on left-out rows.

    Attributes
    ----------
    lam : float
    fits : list of TargetFit
        Of each target, all steps.
    size : int or None
        Steps to take for each target; None takes all.
    scores : ndarray
        Error on left-out rows of each size, or one nan where it was not estimated.
    error : float
        Error on left-out rows of what was chosen, with the choices of λ and size repeated
        without those rows.
    decisions : ndarray of shape (n_rows, n_targets)
        Predictions for left-out rows; empty where they were not estimated.
    """

    lam: float
    fits: list[TargetFit]
    size: int | None
    scores: np.ndarray
    error: float
    decisions: np.ndarray


def choose(
    candidates: Candidates,
    task: Task,
    lams: Sequence[float],
    search: Search,
    *,
    stop_by_error: bool,
    estimate: bool,
) -> Choice:
    """The choice of penalty, size and candidates.

    Parameters
    ----------
    candidates : Candidates
    task : Task
    lams : sequence of float
        Of several, the one of least error on left-out rows is taken, the larger of equals.
    search : Search
    stop_by_error : bool
        Whether to stop where the error on left-out rows is least; otherwise where the search does.
    estimate : bool
        Whether to estimate the error on left-out rows where nothing is chosen by it.
    """
    if len(lams) == 1 and not stop_by_error and not estimate:
        fits = fit_whole(candidates, task, lams[0], search)
        nothing = np.empty((0, task.n_targets))
        return Choice(lams[0], fits, None, np.array([np.nan]), np.nan, nothing)
    folds = make_folds(task, in_parts=len(lams) > 1)
    left_out = leave_out(candidates, task, folds, lams, search)
    sums = [outcome.errors.sum(axis=0) for outcome in left_out]
    best, size = _least(sums, stop_by_error)
    chosen = left_out[best]
    # Each fold's choice of λ and size rests on the others' errors: the least of many estimates
    # would be too low.
    repeated = 0.0
    for f in range(len(folds)):
        others = [total - outcome.errors[f] for total, outcome in zip(sums, left_out, strict=True)]
        k, s = _least(others, stop_by_error)
        repeated += float(left_out[k].errors[f, -1 if s is None else s])
    return Choice(
        lam=lams[best],
        fits=fit_whole(candidates, task, lams[best], search),
        size=size,
        scores=chosen.path,
        error=repeated / chosen.total,
        decisions=chosen.decisions(folds, size, len(task.weight)),
    )


def _least(sums: Sequence[np.ndarray], stop_by_error: bool) -> tuple[int, int | None]:
    """λ and size of least error; the larger λ of equals, and at least one candidate."""
    sizes = [
        1 + int(np.argmin(path[1:])) if stop_by_error and len(path) > 1 else len(path) - 1
        for path in sums
    ]
    values = [path[size] for path, size in zip(sums, sizes, strict=True)]
    best = len(sums) - 1 - int(np.argmin(values[::-1]))
    return best, sizes[best] if stop_by_error else None
