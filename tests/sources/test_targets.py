import numpy as np
import pytest

from holdfast.sources import targets


def search(p, **changes):
    return targets.Search(**{"lam": 0.5, "max_selected": 6, "tol": 0.0, "n_total": p, **changes})


def raw(m=14, p=25, seed=0):
    rng = np.random.default_rng(seed)
    X = 5 + rng.normal(size=(m, p)) * rng.uniform(0.1, 10, size=p)
    return X, 3 + X[:, 2] - X[:, 5] + rng.normal(size=m), rng


def test_standardised_columns_by_hand():
    # Weights 1, 3: mean (0 + 3·4)/4 = 3, variance (9 + 3)/4 = 3.
    made, mean, scale = targets.standardised(np.array([[0.0, 7], [4, 7]]), np.array([1.0, 3]))
    np.testing.assert_allclose(mean, [3, 7])
    np.testing.assert_allclose(scale, [np.sqrt(3), 1])
    np.testing.assert_allclose(made, [[-np.sqrt(3), 0], [1, 0]])


def test_weights_are_repetitions_and_zero_influences_nothing():
    X, y, rng = raw()
    weight = rng.integers(0, 3, size=14).astype(float)
    copies = np.repeat(np.arange(14), weight.astype(int))
    weighted = targets.fit_target(lambda i: X[:, i], y, weight, search(25))
    repeated = targets.fit_target(
        lambda i: X[copies][:, i], y[copies], np.ones(len(copies)), search(25)
    )
    np.testing.assert_array_equal(weighted.greedy.order, repeated.greedy.order)
    assert weighted.raw()[0] == pytest.approx(repeated.raw()[0])
    np.testing.assert_allclose(weighted.raw()[1], repeated.raw()[1])


def test_units_of_the_columns_change_nothing():
    X, y, rng = raw()
    scale, shift = rng.uniform(0.01, 100, size=25), rng.normal(size=25)
    one = targets.fit_target(lambda i: X[:, i], y, np.ones(14), search(25))
    moved = X * scale + shift
    two = targets.fit_target(lambda i: moved[:, i], 7 * y - 2, np.ones(14), search(25))
    np.testing.assert_array_equal(one.greedy.order, two.greedy.order)
    chosen = one.greedy.order
    np.testing.assert_allclose(
        7 * one.predictions(X[:, chosen]) - 2, two.predictions(moved[:, chosen])
    )


def test_many_targets_through_one_gram_are_the_targets_one_by_one():
    X, y, rng = raw()
    Y = np.column_stack([y, rng.normal(size=(14, 4))])
    weight = rng.uniform(0.5, 2, size=14)
    together = targets.fit_targets(lambda i: X[:, i], Y, weight, search(25))
    for t, fit in enumerate(together):
        alone = targets.fit_target(lambda i: X[:, i], Y[:, t], weight, search(25))
        np.testing.assert_array_equal(fit.greedy.order, alone.greedy.order)
        np.testing.assert_allclose(fit.raw()[1], alone.raw()[1])
        assert fit.raw()[0] == pytest.approx(alone.raw()[0])
