"""From rows, columns and folds to a choice: which candidates, how many, under which penalty.

Everything here is data passed down: a `Task` says what to predict and how rows count, `Candidates`
hold the columns, folds are weights, a `Search` says how to search. The notation is that of
`kernel`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from holdtrue.progress import progress_bar
from holdtrue.sources.calibrate import thresholds, truncate
from holdtrue.sources.candidates import CandidateDraws, Candidates
from holdtrue.sources.kernel import (
    GreedyFit,
    greedy,
    greedy_from_gram,
    greedy_together,
    reached,
    searches_by_precision,
)
from holdtrue.sources.scale import first_of_equals, standardised

LAMBDAS = tuple(10.0**power for power in range(-4, 5))
# Columns of so few values can be equal by chance.
_BY_CHANCE = 3
# A Gram matrix of more candidates than this (512 MB) is not formed.
_MOST_IN_GRAM = 8_000
# Scores of this many pairs of search and column are held at a time: more would leave the cache.
_MOST_PAIRS = 2**19
# Columns are read for this many steps of GreedyTL-59 at a time.
_STEPS = 16
# Up to this many rows, copies counted, or groups, one is left out at a time; above, a tenth.
MOST_LEFT_OUT = 50
_N_PARTS = 10


# --- the task and its folds ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be predicted, and how rows count."""

    targets: np.ndarray  # numbers, or ±1 for each class against the rest; (n_rows, n_targets)
    weight: np.ndarray  # of each row, positive; weights are repetitions
    balanced: bool = False  # both sides of a target get the same sum of weights
    row_factor: np.ndarray | None = None  # weight of each row's class, where the caller gave them
    groups: np.ndarray | None = None  # rows of one number are left out together
    truncated: bool = False  # targets are ±1: a score beyond them is judged as ±1

    @property
    def n_targets(self) -> int:
        """Number of targets."""
        return self.targets.shape[1]

    @cached_property
    def full_weights(self) -> list[np.ndarray]:
        """Weights of all rows, for each target."""
        return [self.class_weights(self.weight, t) for t in range(self.n_targets)]

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

    With ``in_parts`` a tenth is left out however few the rows are.
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


@dataclass(eq=False)
class Search:
    """What to search and how."""

    max_selected: int
    tol: float
    # Raw columns of the candidates that are searched, shape (n_rows, n_searched). With draws it has
    # none: they are read as they are drawn.
    matrix: np.ndarray
    searched: np.ndarray  # which candidates they are
    draws: CandidateDraws | None = None  # candidates that a step looks at; None: all
    _scaled: tuple[Any, ...] = (None, None)

    def standardised(self, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`scale.standardised` columns of ``matrix``; those of the last call are kept."""
        asked = weight.tobytes()
        if self._scaled[0] != asked:
            self._scaled = asked, standardised(self.matrix, weight)
        scaled: tuple[np.ndarray, np.ndarray, np.ndarray] = self._scaled[1]
        return scaled


def make_search(
    candidates: Candidates,
    max_selected: int | None,
    tol: float,
    n_candidates: int | None,
    rng: np.random.RandomState,
) -> Search:
    """What to search and how; reads the columns of all candidates where all are looked at."""
    n_total = len(candidates)
    most = n_total if max_selected is None else max_selected
    everything = np.arange(n_total)
    if n_candidates is not None and n_candidates < n_total:
        none_yet = np.empty((candidates.n_rows, 0))
        return Search(most, tol, none_yet, everything, CandidateDraws(rng, n_total, n_candidates))
    return Search(most, tol, candidates.matrix(), everything)


def without_copies(candidates: Candidates, search: Search, weight: np.ndarray) -> Search:
    """The search with one of those candidates that are equal, which ``candidates`` note.

    Columns are standardised with ``weight``.
    """
    if search.draws is not None:  # they are compared as they are read
        return search
    candidates.compare(search.searched, search.standardised(weight)[0])
    if not candidates.has_copies:
        return search
    different = np.flatnonzero(candidates.equal_to == search.searched)
    matrix = np.ascontiguousarray(search.matrix[:, different])
    return Search(min(search.max_selected, len(different)), search.tol, matrix, different)


def _might_have_copies(search: Search, fit: TargetFit, weight: np.ndarray) -> bool:
    """Whether columns of a search among all are equal: two of the chosen, or one that had a tie."""
    if search.draws is not None or fit.greedy.had_ties:
        return fit.greedy.had_ties
    chosen = search.standardised(weight)[0][:, fit.greedy.order]
    return bool((first_of_equals(chosen) != np.arange(len(fit.order))).any())


@dataclass(frozen=True, eq=False)
class TargetFit:
    """A `GreedyFit` with what brings its weights to the scale of the raw columns.

    ``h(x) = ȳ + s_y Σ w_j (x_j - mean_j)/scale_j`` over the j of ``order``.
    """

    greedy: GreedyFit
    order: np.ndarray  # candidates; ``greedy.order`` counts among the columns that were searched
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


def shared_weights(
    candidates: Candidates, fit: TargetFit, weight: np.ndarray
) -> tuple[float, np.ndarray, np.ndarray, np.ndarray]:
    """Intercept; the candidates with a weight; their raw weights and effects.

    Candidates of at most three values that are equal on the rows of the fit share the weight of the
    chosen one evenly: so few values agree by chance, on new rows the candidates may differ, and
    nothing says which of them is right. Others that are equal are copies, which need no weight.
    """
    if not candidates.has_copies:
        intercept, raw = fit.raw()
        return intercept, fit.order, raw, fit.effects
    family = candidates.equal_to[fit.order]
    n_values = [len(np.unique(column)) for column in candidates.columns(fit.order).T]
    sharing = np.isin(candidates.equal_to, family[np.array(n_values, dtype=int) <= _BY_CHANCE])
    members = np.union1d(fit.order, np.flatnonzero(sharing))
    by_family = np.argsort(family)
    place = by_family[np.searchsorted(family[by_family], candidates.equal_to[members])]
    Z, mean, scale = standardised(candidates.columns(members), weight)
    chosen = Z[:, np.searchsorted(members, fit.order)[place]]
    sign = np.where(np.einsum("ij,ij->j", Z, chosen) < 0, -1.0, 1.0)
    effects = fit.effects[place] * sign / np.bincount(place)[place]
    raw = effects / scale
    return fit.y_mean - float(raw @ mean), members, raw, effects


class Problem(NamedTuple):
    """A target and the weights of the rows, shape (n_rows,) each; rows of weight 0 are left out."""

    y: np.ndarray
    weight: np.ndarray
    lam: float


def fit_each(
    candidates: Candidates, problems: Sequence[Problem], search: Search
) -> Iterator[TargetFit]:
    """Standardise, select and bring back to the scale of the columns; a fit for each problem."""
    limits = (search.max_selected, search.tol)
    n_columns = len(search.searched)
    if search.draws is not None:
        n_columns = min(n_columns, 2 * _STEPS * search.draws.size)
    for part in _batches(len(problems), n_columns):
        together = problems[part]
        # Rows of weight 0 become zeros, which is cheaper than to copy the others.
        scaled = [standardised(y[:, None].astype(np.float64), w) for y, w, _ in together]
        Y, lams = np.array([y[:, 0] for y, _, _ in scaled]), [lam for _, _, lam in together]
        weights = np.array([weight for _, weight, _ in together])
        if search.draws is None and len(together) == 1:
            Z, *moments = search.standardised(weights[0])
            fit = greedy(Z, Y[0], float(weights[0].sum()), lams[0], *limits)
            yield _target_fit(fit, search, moments, scaled[0][1:])
            continue
        if search.draws is not None:
            fits = sampled_together(candidates, search.draws, Y, weights, lams, *limits)
        else:
            Z = search.standardised(np.ones(len(weights[0])))[0]
            fits = greedy_together(search.matrix, Z, Y, weights, lams, *limits)
        for fit, problem, (_, y_mean, y_scale) in zip(fits, together, scaled, strict=True):
            order = search.searched[fit.order]
            _, mean, scale = standardised(candidates.columns(order), problem.weight)
            yield TargetFit(fit, order, mean, scale, float(y_mean[0]), float(y_scale[0]))


def _batches(n_searches: int, n_columns: int) -> list[slice]:
    """Searches to run together."""
    size = max(_MOST_PAIRS // max(n_columns, 1), 1)
    return [slice(start, start + size) for start in range(0, n_searches, size)]


def sampled_together(
    candidates: Candidates,
    draws: CandidateDraws,
    Y: np.ndarray,
    weights: np.ndarray,
    lams: Sequence[float],
    max_selected: int,
    tol: float,
) -> list[GreedyFit]:
    """GreedyTL-59: `greedy_together` where a step looks at the candidates drawn for it alone.

    Columns are read for a few steps at a time; those that no step draws are never read.
    """
    fits: dict[int, GreedyFit] = {}
    most = min(max_selected, draws.n_total)
    for searches in searches_by_precision(Y, weights, lams):
        for t in range(most):
            if t % _STEPS == 0:
                steps = draws.steps(t, min(t + _STEPS, most), searches.order[:, :t])
                drawn = np.unique(np.concatenate(steps))
                first_equal = candidates.compared(drawn)
                looked_at = np.unique(first_equal)
                raw = candidates.columns(looked_at)
                searches.look_at(looked_at, raw, standardised(raw, np.ones(len(raw)))[0])
                searches.exclude(candidates.equal_to)
            places = np.searchsorted(looked_at, candidates.equal_to[steps[t % _STEPS]])
            fits.update(searches.step(tol, places, draws.size))
            if not len(searches.number):
                break
        fits.update(searches.rest(reached(max_selected, draws.n_total)))
    return [fits[number] for number in range(len(Y))]


def _target_fit(
    fit: GreedyFit,
    search: Search,
    moments: Sequence[np.ndarray],
    target_moments: Sequence[np.ndarray],
    t: int = 0,
) -> TargetFit:
    """The fit of target t, from means and scales of all columns and all targets."""
    mean, scale = (of_columns[fit.order] for of_columns in moments)
    y_mean, y_scale = (float(of_targets[t]) for of_targets in target_moments)
    return TargetFit(fit, search.searched[fit.order], mean, scale, y_mean, y_scale)


def fit_targets(
    columns: np.ndarray, Y: np.ndarray, weight: np.ndarray, lam: float, search: Search
) -> list[TargetFit]:
    """Fits of every column of Y with the same positive weights, through one Gram matrix."""
    n = float(weight.sum())
    Z, *moments = standardised(columns.astype(np.float64, copy=False), weight)
    T, *target_moments = standardised(Y.astype(np.float64, copy=False), weight)
    C, B = Z.T @ Z, Z.T @ T
    fits = []
    for t in range(Y.shape[1]):
        fit = greedy_from_gram(C, B[:, t], n, lam, search.max_selected, search.tol)
        fits.append(_target_fit(fit, search, moments, target_moments, t))
    return fits


def fit_whole(candidates: Candidates, task: Task, lam: float, search: Search) -> list[TargetFit]:
    """The fit of every target to all rows."""
    weights = task.full_weights
    shared = all(np.array_equal(weight, weights[0]) for weight in weights[1:])
    # A step reads p|S| numbers through the Gram and pm through the rows; the Gram takes p²m.
    n_columns, most = len(search.searched), search.max_selected
    if (
        shared
        and task.n_targets > 1
        and search.draws is None
        and 4 * most <= len(task.weight)
        and 0 < n_columns <= min(8 * task.n_targets * most, _MOST_IN_GRAM)
    ):
        return fit_targets(search.matrix, task.targets, weights[0], lam, search)
    problems = [Problem(y, w, lam) for y, w in zip(task.targets.T, weights, strict=True)]
    return list(fit_each(candidates, problems, search))


# --- left-out rows ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Predictions for left-out rows, everything fitted anew without them.

    Means, scales and selection are those of the other rows. With the selection kept, the error
    would fall on pure noise.
    """

    # By fold and target, shape (n_sizes, n_left_out); paths that stop earlier have fewer sizes.
    predictions: list[list[np.ndarray]]
    # Weighted sums of squared errors, mean over the targets, shape (n_folds, n_sizes). Paths that
    # stop earlier stay as they are, so that the last entry is the error of the whole procedure.
    errors: np.ndarray
    # The same of all rows, those of the fit too, mean over the folds; nan if not asked for.
    errors_on_all: np.ndarray
    total: float  # sum of the weights of left-out rows
    whole: list[TargetFit]  # of each target to all rows, where errors on all rows were asked for

    @property
    def path(self) -> np.ndarray:
        """Mean squared error of each size."""
        return self.errors.sum(axis=0) / self.total

    def corrected(self, errors_of_fit: np.ndarray) -> np.ndarray:
        """``errors``, less what it costs to fit to one row less (Burman 1989).

        That is the error of the folds' fits on all rows less that of the fit to all rows: nothing
        with many rows, a tenth of the error where each class has five.
        """
        last = len(self.errors_on_all) - 1
        whole = errors_of_fit[np.minimum(np.arange(last + 1), len(errors_of_fit) - 1)]
        return self.errors + (whole - self.errors_on_all) / len(self.errors)


def row_errors(
    task: Task, t: int, predictions: np.ndarray, rows: np.ndarray | slice = slice(None)
) -> np.ndarray:
    """Squared errors for target t of predictions, rows last; scores of classes are cut to ±1."""
    judged = truncate(predictions) if task.truncated else predictions
    return np.square(judged - task.targets[rows, t])


def leave_out(
    candidates: Candidates,
    task: Task,
    folds: Sequence[Fold],
    lams: Sequence[float],
    search: Search,
    *,
    on_all_rows: bool = False,
) -> list[LeftOut]:
    """Predictions and errors on left-out rows, for each λ."""
    predictions: list[list[list[np.ndarray]]] = [[] for _ in lams]
    errors: list[list[np.ndarray]] = [[] for _ in lams]
    on_all: list[list[np.ndarray]] = [[] for _ in lams]
    full = task.full_weights
    total = 0.0
    trains = [fold.train for fold in folds] + [task.weight] * on_all_rows
    problems = [
        Problem(y, task.class_weights(train, t), lam)
        for train in trains
        for lam in lams
        for t, y in enumerate(task.targets.T)
    ]
    fits = fit_each(candidates, problems, search)
    with progress_bar("left-out rows", len(folds)) as tick:
        for fold in folds:
            rows = fold.rows
            left_out = float(np.mean([weight[rows].sum() for weight in full]))
            for k in range(len(lams)):
                of_lam = [next(fits) for _ in full]
                judged = slice(None) if on_all_rows else rows
                paths = [fit.predictions(candidates.columns(fit.order)[judged]) for fit in of_lam]
                squares = [
                    row_errors(task, t, path, judged) * full[t][judged]
                    for t, path in enumerate(paths)
                ]
                if on_all_rows:
                    on_all[k].append(left_out * _mean_path([each.sum(axis=1) for each in squares]))
                    paths = [path[:, rows] for path in paths]
                    squares = [each[:, rows] for each in squares]
                predictions[k].append(paths)
                errors[k].append(_mean_path([each.sum(axis=1) for each in squares]))
            total += left_out
            tick()
    return [
        LeftOut(
            paths,
            _padded(of_rows),
            _padded(of_all).sum(axis=0) / total if on_all_rows else np.array([np.nan]),
            total,
            [next(fits) for _ in full] if on_all_rows else [],
        )
        for paths, of_rows, of_all in zip(predictions, errors, on_all, strict=True)
    ]


def _padded(paths: Sequence[np.ndarray]) -> np.ndarray:
    """Error paths as rows of equal length; those that stop earlier stay as they are."""
    sizes = np.arange(max(map(len, paths)))
    return np.array([path[np.minimum(sizes, len(path) - 1)] for path in paths])


def _mean_path(paths: Sequence[np.ndarray]) -> np.ndarray:
    return paths[0] if len(paths) == 1 else _padded(paths).mean(axis=0)


# --- the choice ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Choice:
    """Penalty, fits to all rows, size, and the error on left-out rows."""

    search: Search  # of the candidates that differ, or of all where no chosen one has an equal
    lam: float
    fits: list[TargetFit]  # of each target, all steps
    size: int | None  # steps to take for each target; None takes all
    scores: np.ndarray  # error on left-out rows of each size, or one nan where not estimated
    # Error on left-out rows of what was chosen, with the choices of λ, size and threshold repeated
    # without those rows.
    error: float
    decisions: np.ndarray  # for left-out rows, shape (n_rows, n_targets); empty if not estimated

    def cut(self, t: int) -> TargetFit:
        """The fit of target t at the size that was chosen."""
        return self.fits[t] if self.size is None else self.fits[t].first(self.size)


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

    Of several λ the one of least error on left-out rows is taken, the larger of equals. With
    ``stop_by_error`` the path ends where that error is least, otherwise where the search does.
    """
    best, size, single = 0, None, False
    is_chosen = estimate or stop_by_error or len(lams) > 1
    fits: list[TargetFit] = []
    if not is_chosen and task.n_targets == 1:
        fits = fit_whole(candidates, task, lams[0], search)
    if not fits or _might_have_copies(search, fits[0], task.full_weights[0]):
        search = without_copies(candidates, search, task.full_weights[0])
        fits = []
    if is_chosen:
        folds = make_folds(task, in_parts=len(lams) > 1)
        each_alone = task.groups is None and one_at_a_time(task.weight)
        single = each_alone and len(folds) == len(task.weight)
        left_out = leave_out(candidates, task, folds, lams, search, on_all_rows=single)
        errors = [outcome.errors for outcome in left_out]
        if single:
            errors = [
                outcome.corrected(_errors_of_fit(candidates, task, outcome.whole))
                for outcome in left_out
            ]
        sums = [of_lam.sum(axis=0) for of_lam in errors]
        best, size = _least(sums, stop_by_error)
        fits = left_out[best].whole
    fits = fits or fit_whole(candidates, task, lams[best], search)
    if not estimate:
        nothing = np.empty((0, task.n_targets))
        return Choice(search, lams[best], fits, size, np.array([np.nan]), np.nan, nothing)
    # Each fold's choice of λ and size rests on the others' errors: the least of many estimates
    # would be too low.
    repeated = [
        _least(
            [total - of_lam[f] for total, of_lam in zip(sums, errors, strict=True)], stop_by_error
        )
        for f in range(len(folds))
    ]
    decisions = _decisions(left_out, folds, [(best, size)] * len(folds))
    same = all(choice == (best, size) for choice in repeated)
    nested = decisions if same else _decisions(left_out, folds, repeated)
    total = left_out[best].total
    correction = float(
        (errors[best] - left_out[best].errors)[:, -1 if size is None else size].sum()
    )
    return Choice(
        search=search,
        lam=lams[best],
        fits=fits,
        size=size,
        scores=np.maximum(sums[best] / total, 0.0),
        error=max(_deployed_error(task, folds, nested) + correction / total, 0.0),
        decisions=decisions,
    )


def _errors_of_fit(candidates: Candidates, task: Task, fits: Sequence[TargetFit]) -> np.ndarray:
    """Weighted sums of squared errors of each size on the rows of the fit, mean over targets."""
    return _mean_path(
        [
            row_errors(task, t, fit.predictions(candidates.columns(fit.order)))
            @ task.full_weights[t]
            for t, fit in enumerate(fits)
        ]
    )


def _decisions(
    left_out: Sequence[LeftOut], folds: Sequence[Fold], choices: Sequence[tuple[int, int | None]]
) -> np.ndarray:
    """Predictions for left-out rows by each fold's λ and size, shape (n_rows, n_targets)."""
    decisions = np.empty((len(folds[0].train), len(left_out[0].predictions[0])))
    for f, (fold, (k, size)) in enumerate(zip(folds, choices, strict=True)):
        for t, path in enumerate(left_out[k].predictions[f]):
            last = len(path) - 1
            decisions[fold.rows, t] = path[last if size is None else min(size, last)]
    return decisions


def _deployed_error(task: Task, folds: Sequence[Fold], decisions: np.ndarray) -> float:
    """Mean squared error of left-out decisions, each less the threshold of the other rows."""
    if task.truncated:
        moved = decisions.copy()
        for fold in folds:
            weights = [task.class_weights(fold.train, t) for t in range(task.n_targets)]
            moved[fold.rows] -= thresholds(decisions, task.targets, np.array(weights).T)
        decisions = moved
    errors = [
        np.average(row_errors(task, t, decisions[:, t]), weights=weight)
        for t, weight in enumerate(task.full_weights)
    ]
    return float(np.mean(errors))


def _least(sums: Sequence[np.ndarray], stop_by_error: bool) -> tuple[int, int | None]:
    """λ and size of least error; the larger λ of equals, and at least one candidate."""
    sizes = [
        1 + int(np.argmin(path[1:])) if stop_by_error and len(path) > 1 else len(path) - 1
        for path in sums
    ]
    values = [path[size] for path, size in zip(sums, sizes, strict=True)]
    best = len(sums) - 1 - int(np.argmin(values[::-1]))
    return best, sizes[best] if stop_by_error else None
