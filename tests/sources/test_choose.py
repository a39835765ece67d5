import numpy as np
import pytest

from holdtrue.sources import SourcePool, choose, rivals
from holdtrue.sources.calibrate import thresholds
from holdtrue.sources.candidates import Candidates
from holdtrue.sources.choose import Search, Task, make_folds
from holdtrue.sources.pool import PoolOn
from holdtrue.sources.scale import standardised


def columns_of(X):
    return Candidates(X, np.arange(X.shape[1]), PoolOn(SourcePool([]), X, X, None), 0)


def search(X, **changes):
    limits = {"max_selected": 6, "tol": 0.0, **changes}
    return Search(matrix=X, searched=np.arange(X.shape[1]), **limits)


def fit_one(X, y, weight, lam=0.5, **changes):
    ((fit, _),) = choose.fit_each(columns_of(X), search(X, **changes), y[None], weight[None], [lam])
    return fit


def raw(m=14, p=25, seed=0):
    rng = np.random.default_rng(seed)
    X = 5 + rng.normal(size=(m, p)) * rng.uniform(0.1, 10, size=p)
    return X, 3 + X[:, 2] - X[:, 5] + rng.normal(size=m), rng


def test_weights_are_repetitions_and_zero_influences_nothing():
    X, y, rng = raw()
    weight = rng.integers(0, 3, size=14).astype(float)
    copies = np.repeat(np.arange(14), weight.astype(int))
    weighted = fit_one(X, y, weight)
    repeated = fit_one(X[copies], y[copies], np.ones(len(copies)))
    np.testing.assert_array_equal(weighted.order, repeated.order)
    assert weighted.raw()[0] == pytest.approx(repeated.raw()[0])
    np.testing.assert_allclose(weighted.raw()[1], repeated.raw()[1])


def test_units_of_the_columns_change_nothing():
    X, y, rng = raw()
    scale, shift = rng.uniform(0.01, 100, size=25), rng.normal(size=25)
    one = fit_one(X, y, np.ones(14))
    moved = X * scale + shift
    two = fit_one(moved, 7 * y - 2, np.ones(14))
    np.testing.assert_array_equal(one.order, two.order)
    chosen = one.order
    np.testing.assert_allclose(
        7 * one.predictions(X[:, chosen]) - 2, two.predictions(moved[:, chosen])
    )


def test_many_targets_through_one_gram_are_the_targets_one_by_one():
    X, y, rng = raw()
    Y = np.column_stack([y, rng.normal(size=(14, 4))])
    weight = rng.uniform(0.5, 2, size=14)
    together = choose.fit_targets(Y, weight, 0.5, search(X))
    for t, fit in enumerate(together):
        alone = fit_one(X, Y[:, t], weight)
        np.testing.assert_array_equal(fit.order, alone.order)
        np.testing.assert_allclose(fit.raw()[1], alone.raw()[1])
        assert fit.raw()[0] == pytest.approx(alone.raw()[0])


# --- left-out rows ------------------------------------------------------------------------------


def path(outcome):
    """Mean squared error of each size on left-out rows."""
    return outcome.errors.sum(axis=0) / outcome.total


def left_out_errors(X, y, lams, **changes):
    task = Task(y[:, None], np.ones(len(y)))
    folds = make_folds(task)
    return choose.leave_out(columns_of(X), task, folds, lams, search(X, **changes))


def test_honest_leave_one_out_is_refitting_without_the_row():
    X, y, _ = raw()
    outcomes = left_out_errors(X, y, [0.5, 2.0])
    assert [len(path(outcome)) for outcome in outcomes] == [7, 7]
    expected = np.zeros(7)
    for i in range(14):
        rest = np.arange(14) != i
        fit = fit_one(X[rest], y[rest], np.ones(13))
        predicted = fit.predictions(X[[i]][:, fit.order])[:, 0]
        expected += (predicted - y[i]) ** 2 / 14
        np.testing.assert_allclose(outcomes[0].predictions[i][0][:, 0], predicted)
    np.testing.assert_allclose(path(outcomes[0]), expected)


def test_honest_leave_one_out_does_not_fall_on_pure_noise():
    kept, honest = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(20, 1000)), rng.normal(size=20)
        (outcome,) = left_out_errors(X, y, [1.0], max_selected=10)
        honest.append(path(outcome)[-1] / path(outcome)[0])
        fit = fit_one(X, y, np.ones(20), lam=1.0, max_selected=10)
        Z, target = (standardised(part, np.ones(20))[0] for part in (X[:, fit.order], y[:, None]))
        left_out = rivals.ridge_leave_one_out(Z, target[:, 0], np.ones(20), [1.0])
        kept.append(np.mean((target[:, 0] - left_out[0]) ** 2))
    assert np.mean(kept) < 0.5  # with the selection kept, noise seems to predict
    assert np.mean(honest) > 0.95


def times_left_out(folds):
    return np.bincount(np.concatenate([fold.rows for fold in folds]))


def test_above_fifty_rows_a_tenth_is_left_out_at_a_time():
    y = np.random.default_rng(0).normal(size=80)
    folds = make_folds(Task(y[:, None], np.ones(80)))
    assert len(folds) == 10
    np.testing.assert_array_equal(times_left_out(folds), np.ones(80))
    assert all(not fold.train[fold.rows].any() for fold in folds)


@pytest.mark.parametrize("n_rows", [4, 9, 10, 11, 40])
def test_many_copies_of_a_row_are_left_out_together(n_rows):
    weight = np.full(n_rows, 20.0)
    y = np.random.default_rng(0).normal(size=n_rows)
    folds = make_folds(Task(y[:, None], weight))
    assert len(folds) == min(n_rows, 10)
    np.testing.assert_array_equal(times_left_out(folds), np.ones(n_rows))
    assert all(len(fold.rows) and not fold.train[fold.rows].any() for fold in folds)


@pytest.mark.parametrize("n_groups, n_folds", [(2, 2), (7, 7), (50, 50), (60, 10)])
def test_groups_are_left_out_whole(n_groups, n_folds):
    rng = np.random.default_rng(0)
    groups = np.append(np.arange(n_groups), rng.integers(n_groups, size=100))
    y = rng.normal(size=len(groups))
    folds = make_folds(Task(y[:, None], np.ones(len(y)), groups=groups))
    assert len(folds) == n_folds
    np.testing.assert_array_equal(times_left_out(folds), np.ones(len(y)))
    for fold in folds:
        assert not set(groups[fold.train > 0]) & set(groups[fold.rows])


def test_the_estimate_repeats_the_choice_of_penalty_and_size_without_each_part():
    X, y, _ = raw(m=30, p=60)
    task, lams = Task(y[:, None], np.ones(30)), (0.01, 1.0, 100.0)
    find = search(X, max_selected=8)
    for stop in (False, True):
        choice = choose.choose(columns_of(X), task, lams, find, stop_by_error=stop, estimate=True)
        folds = make_folds(task, in_parts=True)
        assert len(folds) == 10
        outcomes = choose.leave_out(columns_of(X), task, folds, lams, find)
        expected = 0.0
        for f in range(10):
            others = [np.delete(outcome.errors, f, axis=0).sum(axis=0) for outcome in outcomes]
            sizes = range(1, 9) if stop else [8]
            k, size = min(
                ((k, s) for k in range(3) for s in sizes), key=lambda pair: others[pair[0]][pair[1]]
            )
            expected += outcomes[k].errors[f, size] / 30
        assert choice.error == pytest.approx(expected)
        assert choice.error >= min(path(outcome).min() for outcome in outcomes) - 1e-12


def test_leaving_out_single_rows_is_corrected_for_the_row_that_each_fit_lacks():
    X, y, _ = raw()
    task, find = Task(y[:, None], np.ones(14)), search(X)
    choice = choose.choose(columns_of(X), task, [0.5], find, stop_by_error=False, estimate=True)
    (outcome,) = left_out_errors(X, y, [0.5])
    fits = [fit_one(X, y, 1.0 * (np.arange(14) != i)) for i in range(14)]
    on_all = [np.mean((fit.predictions(X[:, fit.order]) - y) ** 2, axis=1) for fit in fits]
    whole = fit_one(X, y, np.ones(14))
    of_fit = np.mean((whole.predictions(X[:, whole.order]) - y) ** 2, axis=1)
    expected = path(outcome) - np.mean(on_all, axis=0) + of_fit
    np.testing.assert_allclose(choice.scores, expected)
    assert choice.error == pytest.approx(expected[-1])
    # Of the mean alone that gives s²(1 + 1/n), where leaving out gives s² n/(n - 1).
    assert choice.scores[0] == pytest.approx(y.var(ddof=1) * (1 + 1 / 14), rel=0.02)


def test_the_estimate_of_classes_is_that_of_scores_less_the_threshold_of_the_others():
    X = raw(m=16)[0]
    sign = np.where(np.arange(16) < 4, 1.0, -1.0)
    task = Task(sign[:, None], np.ones(16), balanced=True, truncated=True)
    choice = choose.choose(
        columns_of(X), task, [0.5], search(X), stop_by_error=False, estimate=True
    )
    expected, weight = 0.0, task.class_weights(np.ones(16), 0)
    for i in range(16):
        rest = task.class_weights((np.arange(16) != i).astype(float), 0)
        ((threshold,),) = thresholds(choice.decisions, task.targets, [rest[:, None]])
        score = np.clip(choice.decisions[i, 0] - threshold, -1, 1)
        expected += weight[i] * (score - sign[i]) ** 2 / 16
    plain = weight @ (np.clip(choice.decisions[:, 0], -1, 1) - sign) ** 2 / 16
    assert choice.error == pytest.approx(expected + choice.scores[-1] - plain)


@pytest.mark.parametrize("n_rows", [60, 14])
def test_tenths_and_groups_are_not_corrected(n_rows):
    X, y, _ = raw(m=n_rows)
    groups = None if n_rows > 50 else np.arange(14) // 2
    task = Task(y[:, None], np.ones(n_rows), groups=groups)
    choice = choose.choose(
        columns_of(X), task, [0.5], search(X), stop_by_error=False, estimate=True
    )
    (outcome,) = choose.leave_out(columns_of(X), task, make_folds(task), [0.5], search(X))
    np.testing.assert_allclose(choice.scores, path(outcome))
