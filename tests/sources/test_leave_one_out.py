import numpy as np
import pytest

from holdtrue.sources import leave_one_out, targets


def standardise(*arrays, weight=None):
    weight = np.ones(len(arrays[0])) if weight is None else weight
    return [targets.standardised(np.asarray(a, float), weight)[0] for a in arrays]


def one_by_one(m):
    for i in range(m):
        test = np.zeros(m)
        test[i] = 1.0
        yield 1 - test, test


def test_honest_leave_one_out_is_refitting_without_the_row():
    rng = np.random.default_rng(0)
    X = 5 + rng.normal(size=(14, 25)) * rng.uniform(0.1, 10, size=25)
    y = 3 + X[:, 2] - X[:, 5] + rng.normal(size=14)
    search = targets.Search(0.5, 6, 0.0, 25)
    errors = leave_one_out.held_out_errors([0.5, 2.0], lambda i: X[:, i], y, one_by_one(14), search)
    assert [len(path) for path in errors] == [7, 7]
    expected = np.zeros(7)
    for i in range(14):
        rest = np.arange(14) != i
        fit = targets.fit_target(lambda j, rest=rest: X[rest][:, j], y[rest], np.ones(13), search)
        expected += (fit.predictions(X[[i]][:, fit.greedy.order])[:, 0] - y[i]) ** 2 / 14
    np.testing.assert_allclose(errors[0], expected)


def test_honest_leave_one_out_does_not_fall_on_pure_noise():
    kept, honest = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(20, 1000)), rng.normal(size=20)
        find = targets.Search(1.0, 10, 0.0, 1000)
        errors = leave_one_out.held_out_errors(
            [1.0], lambda i, X=X: X[:, i], y, one_by_one(20), find
        )
        honest.append(errors[0][-1] / errors[0][0])
        fit = targets.fit_target(lambda i, X=X: X[:, i], y, np.ones(20), find)
        Z, target = standardise(X[:, fit.greedy.order], y[:, None])
        left_out = leave_one_out.ridge_leave_one_out(Z, target[:, 0], np.ones(20), [1.0])
        kept.append(np.mean((target[:, 0] - left_out[0]) ** 2))
    assert np.mean(kept) < 0.5  # with the selection kept, noise seems to predict
    assert np.mean(honest) > 0.95


@pytest.mark.parametrize("lam", [0.01, 1.0, 100.0])
def test_the_formula_for_a_kept_selection_is_refitting_without_the_row(lam):
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2, size=9)
    n = weight.sum()
    Z, y = standardise(rng.normal(size=(9, 4)), rng.normal(size=(9, 1)), weight=weight)
    y = y[:, 0]
    got = leave_one_out.ridge_leave_one_out(Z, y, weight, [lam])[0]
    root = np.sqrt(weight)
    for i in range(9):
        rest = np.arange(9) != i
        design = np.column_stack([root, Z])[rest]
        penalty = np.diag([0.0, *[n * lam] * 4])
        beta = np.linalg.solve(design.T @ design + penalty, design.T @ y[rest])
        assert got[i] == pytest.approx(beta[0] + Z[i] / root[i] @ beta[1:])
