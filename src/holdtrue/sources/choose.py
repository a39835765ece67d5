"""From rows, columns and folds to a choice: which candidates, how many, under which penalty.

Everything here is data passed down: a `Task` says what to predict and how rows count, `Candidates`
hold the columns, folds are weights, a `Search` says how to search. The notation is that of
`kernel`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches

from holdtrue.progress import progress
from holdtrue.row_copies import in_order
from holdtrue.sources.calibrate import thresholds
from holdtrue.sources.candidates import CandidateDraws, Candidates
from holdtrue.sources.kernel import (
    GreedyFit,
    greedy,
    greedy_from_gram,
    greedy_together,
    reached,
    searches_by_precision,
)
from holdtrue.sources.scale import first_of_equals, standardised, standardised_each

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
_COLUMNS = 1024  # made dense at a time


# --- the task and its folds ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be predicted, and how much each row counts."""

    targets: np.ndarray  # numbers, or ±1 for each class against the rest; (n_rows, n_targets)
    weight: np.ndarray  # of each row, positive; weights are repetitions
    balanced: bool = False  # both sides of a target get the same sum of weights
    row_factor: np.ndarray | None = None  # weight of each row's class, where the caller gave them
    groups: np.ndarray | None = None  # rows of one number are left out together
    truncated: bool = False  # targets are ±1: a score beyond them is judged as ±1
    X: Any = None  # the columns, by which rows are put in order, however they are stored

    @property
    def n_targets(self) -> int:
        """Number of targets."""
        return self.targets.shape[1]

    def order(self) -> np.ndarray:
        """Rows in order of the target, then of X; classes in that of their first rows in X."""
        keys = () if self.X is None else _far_out(self.X, self.weight)
        if not self.truncated:
            return in_order(itertools.chain(self.targets.T[::-1], keys), len(self.weight))
        order = in_order(keys, len(self.weight))
        label = self.targets.argmax(axis=1) if self.n_targets > 1 else self.targets[:, 0] > 0
        _, first, codes = np.unique(label[order], return_index=True, return_inverse=True)
        return order[np.argsort(first[codes], kind="stable")]

    @cached_property
    def full_weights(self) -> list[np.ndarray]:
        """Weights of all rows, for each target."""
        return [self.class_weights(self.weight, t) for t in range(self.n_targets)]

    def class_weights(self, weight: np.ndarray, t: int) -> np.ndarray:
        """Weights of the rows for target t; they have the same sum as ``weight``."""
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


class Fold(NamedTuple):
    """Weights of the rows to fit with, shape (n_rows,), and the rows that are left out."""

    train: np.ndarray
    rows: np.ndarray


def _far_out(X: Any, weight: np.ndarray) -> Iterator[np.ndarray]:
    """How far out each row lies, whatever the units and the order of columns are.

    Rows that lie equally far out are told apart by their products with a fixed vector. `row_copies`
    sorts by one column after another, so that its order depends on theirs.
    """
    keys = np.zeros((2, len(weight)))
    for part in gen_batches(X.shape[1], _COLUMNS):
        columns = X[:, part].toarray() if sparse.issparse(X) else X[:, part]
        with np.errstate(over="ignore", invalid="ignore"):  # of columns that only sources read
            Z = standardised(columns.astype(np.float64), weight)[0] / np.sqrt(weight)[:, None]
            fixed = np.sin(np.square(np.arange(part.start + 1.0, part.stop + 1)))
            keys += np.einsum("ij,ij->i", Z, Z), Z @ fixed
    yield from np.round(keys, 9)


def one_at_a_time(weight: np.ndarray) -> bool:
    """Whether rows are so few that copies of a row are left out one at a time."""
    return bool(weight.sum() <= MOST_LEFT_OUT)


def make_folds(task: Task, *, in_parts: bool = False) -> list[Fold]:
    """Folds that leave out every row once: one copy of a row, a group, or a tenth of them.

    With ``in_parts`` a tenth is left out however few the rows are.
    """
    weight = task.weight
    taken, part = weight, np.arange(len(weight))
    unit = part if task.groups is None else task.groups
    n_units = int(unit.max()) + 1
    is_few = one_at_a_time(weight) if task.groups is None else n_units <= MOST_LEFT_OUT
    each_alone = is_few and not (in_parts and n_units > _N_PARTS)
    if each_alone and task.groups is None:
        taken = np.minimum(weight, 1.0)
    else:
        # Dealt in order of the target, so that every part has its share of each class.
        order, place = task.order(), np.empty(len(weight))
        place[order] = np.cumsum(weight[order]) - weight[order] / 2
        means = np.bincount(unit, weight * place) / np.bincount(unit, weight)
        by_place = np.argsort(means, kind="stable")
        part_of_unit = np.empty(n_units, dtype=np.intp)
        part_of_unit[by_place] = np.arange(n_units) % (n_units if each_alone else _N_PARTS)
        part = part_of_unit[unit]
    return [
        Fold(np.where(part == f, weight - taken, weight), np.flatnonzero(part == f))
        for f in range(int(part.max()) + 1)
    ]


# --- one fit ------------------------------------------------------------------------------------


@dataclass(eq=False)
class Search:
    """Columns to search, and the limits of the search."""

    max_selected: int
    tol: float
    # Raw columns of the candidates that are searched, shape (n_rows, n_searched). With draws it has
    # none: they are read as they are drawn.
    matrix: np.ndarray
    searched: np.ndarray  # which candidates they are
    draws: CandidateDraws | None = None  # candidates that a step looks at; None: all
    _scaled: tuple[Any, ...] = (None, None)

    def standardised(self, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """`scale.standardised` of ``matrix``; the result of the last call is kept."""
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
    """The search of all candidates, whose columns are read now, or of those drawn at each step."""
    n_total = len(candidates)
    most = n_total if max_selected is None else max_selected
    everything = np.arange(n_total)
    if n_candidates is not None and n_candidates < n_total:
        none_yet = np.empty((candidates.n_rows, 0))
        return Search(most, tol, none_yet, everything, CandidateDraws(rng, n_total, n_candidates))
    return Search(most, tol, candidates.matrix(), everything)


def without_copies(candidates: Candidates, search: Search, weight: np.ndarray) -> Search:
    """The same search without candidates that equal an earlier one.

    ``candidates`` keeps which equal which; columns are compared standardised with ``weight``.
    """
    if search.draws is not None:  # they are compared as they are read
        return search
    candidates.compare(search.searched, search.standardised(weight)[0])
    if not candidates.has_copies:
        return search
    different = np.flatnonzero(candidates.equal_to == search.searched)
    matrix = np.ascontiguousarray(search.matrix[:, different])
    return Search(min(search.max_selected, len(different)), search.tol, matrix, different)


def _might_have_copies(search: Search, fit: GreedyFit, weight: np.ndarray) -> bool:
    """Whether searched columns may be equal: two chosen ones are, or a step had a tie."""
    if search.draws is not None or fit.had_ties:
        return fit.had_ties
    chosen = search.standardised(weight)[0][:, fit.order]
    return bool((first_of_equals(chosen) != np.arange(len(fit.order))).any())


def shared_weights(
    candidates: Candidates, fit: GreedyFit, weight: np.ndarray
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


def fit_each(
    candidates: Candidates,
    search: Search,
    all_targets: np.ndarray,
    all_weights: np.ndarray,
    all_lams: Sequence[float],
) -> Iterator[tuple[GreedyFit, np.ndarray]]:
    """Standardise and select: fits, and the raw columns that each one chose.

    A fit has a target and weights of the rows, shape (n_fits, n_rows) both, and a λ of its own.
    """
    limits = (search.max_selected, search.tol)
    n_columns = len(search.searched)
    if search.draws is not None:
        n_columns = min(n_columns, 2 * _STEPS * search.draws.size)
    at_once = max(_MOST_PAIRS // max(n_columns, 1), 1)
    for start in range(0, len(all_lams), at_once):
        together = slice(start, start + at_once)
        weights, lams = all_weights[together], all_lams[together]
        # Rows of weight 0 become zeros, which is cheaper than to copy the others.
        Y, y_mean, y_scale = standardised_each(all_targets[together], weights)
        if search.draws is None and len(lams) == 1:
            Z, mean, scale = search.standardised(weights[0])
            fit = greedy(Z, Y[0], float(weights[0].sum()), lams[0], *limits)
            order, at = search.searched[fit.order], fit.order
            fit = fit.scaled(order, mean[at], scale[at], y_mean[0], y_scale[0])
            yield fit, search.matrix[:, at]
            continue
        if search.draws is not None:
            fits = sampled_together(candidates, search.draws, Y, weights, lams, *limits)
        else:
            Z = search.standardised(np.ones(len(weights[0])))[0]
            fits = greedy_together(search.matrix, Z, Y, weights, lams, *limits)
        orders = [search.searched[fit.order] for fit in fits]
        chosen = np.unique(np.concatenate(orders))
        columns = candidates.columns(chosen)
        for i, (fit, order) in enumerate(zip(fits, orders, strict=True)):
            raw = columns[:, np.searchsorted(chosen, order)]
            _, mean, scale = standardised(raw, weights[i])
            yield fit.scaled(order, mean, scale, y_mean[i], y_scale[i]), raw


def sampled_together(
    candidates: Candidates,
    draws: CandidateDraws,
    Y: np.ndarray,
    weights: np.ndarray,
    lams: Sequence[float],
    max_selected: int,
    tol: float,
) -> list[GreedyFit]:
    """GreedyTL-59: as `greedy_together`, but a step looks only at the candidates drawn for it.

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


def fit_targets(Y: np.ndarray, weight: np.ndarray, lam: float, search: Search) -> list[GreedyFit]:
    """Fits of every column of Y with the same positive weights, through one Gram matrix."""
    n = float(weight.sum())
    Z, mean, scale = standardised(search.matrix.astype(np.float64, copy=False), weight)
    T, y_mean, y_scale = standardised(Y.astype(np.float64, copy=False), weight)
    C, B = Z.T @ Z, Z.T @ T
    fits = []
    for t in range(Y.shape[1]):
        fit = greedy_from_gram(C, B[:, t], n, lam, search.max_selected, search.tol)
        at = fit.order
        fits.append(fit.scaled(search.searched[at], mean[at], scale[at], y_mean[t], y_scale[t]))
    return fits


def fit_whole(candidates: Candidates, task: Task, lam: float, search: Search) -> list[GreedyFit]:
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
        return fit_targets(task.targets, weights[0], lam, search)
    lams = [lam] * task.n_targets
    fits = fit_each(candidates, search, task.targets.T, np.array(weights), lams)
    return [fit for fit, _ in fits]


# --- left-out rows ------------------------------------------------------------------------------


class LeftOut(NamedTuple):
    """Predictions for left-out rows, everything fitted anew without them.

    Means, scales and selection are those of the other rows. With the selection kept, the error
    would fall on pure noise.
    """

    # By fold and target, shape (n_sizes, n_left_out); paths that stop earlier have fewer sizes.
    predictions: list[list[np.ndarray]]
    # Weighted sums of squared errors, mean over the targets, shape (n_folds, n_sizes). Paths that
    # stop earlier stay as they are, so that the last entry is the error of the whole procedure.
    errors: np.ndarray
    # The same, less what it costs to fit to one row less (Burman 1989), where it was asked for.
    corrected: np.ndarray
    total: float  # sum of the weights of left-out rows
    whole: list[GreedyFit]  # of each target to all rows, where the correction was asked for


def row_errors(
    task: Task, t: int, predictions: np.ndarray, rows: np.ndarray | slice = slice(None)
) -> np.ndarray:
    """Squared errors for target t of predictions, rows last; scores of classes are cut to ±1."""
    judged = np.clip(predictions, -1.0, 1.0) if task.truncated else predictions
    return np.square(judged - task.targets[rows, t])


def leave_out(
    candidates: Candidates,
    task: Task,
    folds: Sequence[Fold],
    lams: Sequence[float],
    search: Search,
    *,
    correct: bool = False,
) -> list[LeftOut]:
    """Predictions and errors on left-out rows, for each λ.

    The correction is the error of the folds' fits on all rows less that of the fit to all rows:
    nothing with many rows, a tenth of the error where each class has five.
    """
    predictions: list[list[list[np.ndarray]]] = [[] for _ in lams]
    errors: list[list[np.ndarray]] = [[] for _ in lams]
    on_all: list[list[np.ndarray]] = [[] for _ in lams]
    full = task.full_weights
    shares = [float(np.mean([weight[fold.rows].sum() for weight in full])) for fold in folds]
    trains = [fold.train for fold in folds] + [task.weight] * correct
    # A fit for each set of training weights, λ and target, the targets in turn.
    n_targets, n_repeats = task.n_targets, len(trains) * len(lams)
    weights = [[task.class_weights(train, t) for t in range(n_targets)] for train in trains]
    fits = fit_each(
        candidates,
        search,
        np.tile(task.targets.T, (n_repeats, 1)),
        np.repeat(weights, len(lams), axis=0).reshape(n_repeats * n_targets, -1),
        np.tile(np.repeat(lams, n_targets), len(trains)).tolist(),
    )

    def predicted(rows: np.ndarray | slice) -> tuple[list[GreedyFit], list[np.ndarray], Any]:
        """The next fits of all targets, their predictions, and their squared errors."""
        of_lam, columns = zip(*itertools.islice(fits, len(full)), strict=True)
        paths = [fit.predictions(raw[rows]) for fit, raw in zip(of_lam, columns, strict=True)]
        squares = [row_errors(task, t, path, rows) for t, path in enumerate(paths)]
        return list(of_lam), paths, squares

    for fold, share in progress("left-out rows", zip(folds, shares, strict=True), len(folds)):
        for k in range(len(lams)):
            judged = slice(None) if correct else fold.rows
            _, scores, squares = predicted(judged)
            squares = [each * full[t][judged] for t, each in enumerate(squares)]
            if correct:
                on_all[k].append(share * _mean_path([each.sum(axis=1) for each in squares]))
                scores = [path[:, fold.rows] for path in scores]
                squares = [each[:, fold.rows] for each in squares]
            predictions[k].append(scores)
            errors[k].append(_mean_path([each.sum(axis=1) for each in squares]))
    total = sum(shares)
    outcomes = []
    for paths, of_folds, of_all in zip(predictions, map(_padded, errors), on_all, strict=True):
        corrected, whole = of_folds, list[GreedyFit]()
        if correct:
            whole, _, squares = predicted(slice(None))
            of_fit = _mean_path([each @ full[t] for t, each in enumerate(squares)])
            at = np.minimum(np.arange(of_folds.shape[1]), len(of_fit) - 1)
            gap = of_fit[at] - _padded(of_all).sum(axis=0) / total
            corrected = of_folds + np.outer(shares, gap) / total
        outcomes.append(LeftOut(paths, of_folds, corrected, total, whole))
    return outcomes


def _padded(paths: Sequence[np.ndarray]) -> np.ndarray:
    """Error paths as rows of equal length; those that stop earlier stay as they are."""
    sizes = np.arange(max(map(len, paths)))
    return np.array([path[np.minimum(sizes, len(path) - 1)] for path in paths])


def _mean_path(paths: Sequence[np.ndarray]) -> np.ndarray:
    return paths[0] if len(paths) == 1 else _padded(paths).mean(axis=0)


# --- the choice ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Choice:
    """Penalty, fits to all rows, size, and the error on left-out rows where it was estimated."""

    search: Search  # of the candidates that differ, or of all where no chosen one has an equal
    lam: float
    fits: list[GreedyFit]  # of each target, all steps
    size: int | None = None  # steps to take for each target; None takes all
    # Error on left-out rows of what was chosen, with the choices of λ, size and threshold repeated
    # without those rows.
    error: float = np.nan
    scores: np.ndarray = field(default_factory=lambda: np.array([np.nan]))  # of each size
    decisions: np.ndarray | None = None  # for left-out rows, shape (n_rows, n_targets)

    def cut(self, t: int) -> GreedyFit:
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
    weight = task.full_weights[0]
    if not (estimate or stop_by_error or len(lams) > 1):
        if task.n_targets == 1:
            fits = fit_whole(candidates, task, lams[0], search)
            if not _might_have_copies(search, fits[0], weight):
                return Choice(search, lams[0], fits)
        search = without_copies(candidates, search, weight)
        return Choice(search, lams[0], fit_whole(candidates, task, lams[0], search))
    search = without_copies(candidates, search, weight)
    folds = make_folds(task, in_parts=len(lams) > 1)
    each_alone = task.groups is None and one_at_a_time(task.weight)
    correct = each_alone and len(folds) == len(task.weight)
    left_out = leave_out(candidates, task, folds, lams, search, correct=correct)
    errors = [outcome.corrected for outcome in left_out]
    sums = [of_lam.sum(axis=0) for of_lam in errors]
    best, size = _least(sums, stop_by_error)
    fits = left_out[best].whole or fit_whole(candidates, task, lams[best], search)
    if not estimate:
        return Choice(search, lams[best], fits, size)
    # Each fold's choice of λ and size rests on the others' errors: the least of many estimates
    # would be too low.
    repeated = []
    for f, fold in enumerate(folds):
        left = 1 - fold.train[fold.rows].sum() / task.weight[fold.rows].sum()  # of copies one alone
        others = [total - left * of_lam[f] for total, of_lam in zip(sums, errors, strict=True)]
        repeated.append(_least(others, stop_by_error))
    decisions = _decisions(left_out, folds, [(best, size)] * len(folds))
    same = all(choice == (best, size) for choice in repeated)
    nested = decisions if same else _decisions(left_out, folds, repeated)
    total = left_out[best].total
    correction = float(
        (errors[best] - left_out[best].errors)[:, -1 if size is None else size].sum()
    )
    error = max(_deployed_error(task, folds, nested) + correction / total, 0.0)
    scores = np.maximum(sums[best] / total, 0.0)
    return Choice(search, lams[best], fits, size, error, scores, decisions)


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
        weights = [
            np.transpose([task.class_weights(fold.train, t) for t in range(task.n_targets)])
            for fold in folds
        ]
        offsets = thresholds(decisions, task.targets, weights)
        decisions = decisions.copy()
        for fold, offset in zip(folds, offsets, strict=True):
            decisions[fold.rows] -= offset
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
