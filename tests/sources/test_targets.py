import numpy as np
import pytest

from holdtrue.sources import targets


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


@pytest.mark.parametrize("unit", [1e-40, 1e-30, 1e-20, 1.0, 1e20, 4e37])
def test_float32_columns_of_any_size_are_standardised_as_in_float64(unit):
    rng = np.random.default_rng(0)
    Z = np.column_stack([rng.normal(size=40), 5 + rng.normal(size=40), np.zeros(40), np.ones(40)])
    Z, weight = (Z * unit).astype(np.float32), rng.uniform(0.5, 2, size=40)
    single, double = targets.standardised(Z, weight), targets.standardised(Z.astype(float), weight)
    assert single[0].dtype == np.float32
    for one, other in zip(single, double, strict=True):
        np.testing.assert_allclose(
            one, other, rtol=1e-4, atol=1e-5 * unit if one.ndim == 1 else 1e-5
        )
    assert not single[0][:, 2:].any()
    assert single[2][2:].tolist() == [1, 1]


@pytest.mark.parametrize("n_rows", [12, 1000])
@pytest.mark.parametrize("spread", [2.0, 0.05])
def test_a_float32_column_far_from_zero_is_not_taken_for_a_constant(n_rows, spread):
    rng = np.random.default_rng(0)
    Z = (1e5 + spread * rng.normal(size=(n_rows, 3))).astype(np.float32)
    Z[:, 2] = 1e5 + 0.1
    single, double = (
        targets.standardised(Z.astype(kind), np.ones(n_rows)) for kind in ("f4", "f8")
    )
    np.testing.assert_allclose(single[0], double[0], atol=1e-5)
    np.testing.assert_allclose(single[1], double[1], rtol=1e-12)
    np.testing.assert_allclose(single[2], double[2])
    assert single[0][:, :2].any(axis=0).all()
    assert not single[0][:, 2].any()


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
