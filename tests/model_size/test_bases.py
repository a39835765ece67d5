import itertools

import numpy as np
import pytest
from sklearn.linear_model import lars_path, orthogonal_mp
from sklearn.preprocessing import PolynomialFeatures

from holdtrue import SelectionPath
from holdtrue.model_size import bases


def rows(n=30, p=1, seed=0, unlabeled=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 5, size=(n, p))
    return bases.Rows(X, X[:, 0] ** 2, np.ones(n), rng.uniform(-3, 5, size=(unlabeled, p)))


def made(name, sample, max_terms=8, interval=None):
    names = [f"x{j}" for j in range(sample.X.shape[1])]
    (basis,) = bases.unfitted_bases(name, interval, names, averaged=False).values()
    basis.fit(sample, max_terms)
    return basis, basis.terms(basis.coordinates(sample.X))


def test_fourier_is_as_printed():
    u = np.array([0.3, -1.0])
    expected = [np.ones(2), np.cos(u), np.sin(u), np.cos(2 * u), np.sin(2 * u)]
    got = bases.fourier(u, 5)
    np.testing.assert_allclose(got[:, 0], 1)
    np.testing.assert_allclose(got[:, 1:], np.sqrt(2) * np.array(expected[1:]).T)


@pytest.mark.parametrize("name", ["fourier", "cosine", "legendre"])
def test_functions_are_orthonormal_on_their_interval(name):
    family = bases.FAMILIES[name]
    points, weights = np.polynomial.legendre.leggauss(200)
    u = family.low + (family.high - family.low) * (points + 1) / 2
    values = family.evaluate(u, 9)
    np.testing.assert_allclose(values.T @ (weights[:, None] / 2 * values), np.eye(9), atol=1e-12)


def test_splines_of_every_size_are_the_whole_space_of_their_knots():
    u = np.linspace(0, 1, 400)
    knots = [1 / 2, 1 / 4, 3 / 4, 1 / 8, 5 / 8, 3 / 8, 7 / 8]
    for k in range(len(knots) + 1):
        powers = np.column_stack([u**j for j in range(4)])
        truncated = np.column_stack([powers, *(np.maximum(u - t, 0) ** 3 for t in knots[:k])])
        values = bases.bspline(u, 4 + k)
        assert np.linalg.matrix_rank(values) == 4 + k
        both = np.column_stack([values, truncated])
        assert np.linalg.matrix_rank(both, tol=1e-9) == 4 + k


def test_functions_of_a_size_are_the_first_of_every_larger_one():
    u = np.linspace(0, 1, 50)
    for family in bases.FAMILIES.values():
        at = family.low + (family.high - family.low) * u
        np.testing.assert_allclose(family.evaluate(at, 12)[:, :5], family.evaluate(at, 5))


def test_products_come_in_order_of_total_degree():
    products = bases.total_degree_terms(2, 1, 10)
    degrees = [sum(k for _, k in product) for product in products]
    assert degrees == [0, 1, 1, 2, 2, 2, 3, 3, 3, 3]
    assert len(set(products)) == 10
    assert products[3] == ((0, 2),)
    assert products[4] == ((0, 1), (1, 1))


def test_fourier_products_pair_cosine_and_sine():
    products = bases.total_degree_terms(2, 2, 13)
    # Degree 1: cos and sin of each input; degree 2: of 2x0, the four products, of 2x1.
    assert products[1:5] == (((0, 1),), ((0, 2),), ((1, 1),), ((1, 2),))
    assert products[5:7] == (((0, 3),), ((0, 4),))
    assert set(products[7:11]) == {((0, a), (1, b)) for a, b in itertools.product((1, 2), repeat=2)}


def test_several_inputs_multiply():
    sample = rows(p=2)
    basis, values = made("cosine", sample, max_terms=6)
    unit = (sample.X - sample.X.min(axis=0)) / np.ptp(sample.X, axis=0)
    np.testing.assert_allclose(values[:, 4], 2 * np.cos(np.pi * unit).prod(axis=1))
    assert basis.names == ["1", "cos(1π x0)", "cos(1π x1)", "cos(2π x0)", "cos(1π x0) cos(1π x1)",
                           "cos(2π x1)"]  # fmt: skip


def test_the_range_is_that_of_all_rows_and_beyond_it_inputs_are_clipped():
    sample = rows(unlabeled=20)
    basis, _ = made("fourier", sample)
    everything = np.concatenate([sample.X, sample.unlabeled])
    ends = np.array([everything.min(axis=0), everything.max(axis=0)])
    np.testing.assert_allclose(basis.coordinates(ends)[:, 0], [-np.pi, np.pi])
    np.testing.assert_allclose(basis.coordinates(ends + [[-9], [9]])[:, 0], [-np.pi, np.pi])


def test_a_given_interval_fixes_the_range():
    basis, _ = made("cosine", rows(), interval=(-4, 6))
    np.testing.assert_allclose(basis.coordinates(np.array([[1.0]])), [[0.5]])
    basis, _ = made("cosine", rows(p=2), interval=[(-4, 6), (-2, 8)])
    np.testing.assert_allclose(basis.coordinates(np.array([[1.0, 3.0]])), [[0.5, 0.5]])


def test_an_interval_that_leaves_rows_out_is_refused_with_both_ranges():
    with pytest.raises(ValueError, match=r"interval=\(0, 1\) must contain every value of 'x0'"):
        made("cosine", rows(), interval=(0, 1))


def test_constant_inputs_make_no_terms():
    sample = rows(p=2)
    sample.X[:, 0] = 3.0
    basis, _ = made("legendre", sample, max_terms=4)
    assert basis.names == ["1", "P1(x1)", "P2(x1)", "P3(x1)"]
    sample.X[:, 1] = 3.0
    assert made("legendre", sample)[0].names == ["1"]
    assert made("rbf", sample)[0].names == ["1"]


def test_lars_and_omp_orders_are_scikit_learns():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6)) * [1, 9, 0.1, 3, 1, 1] + 10
    y = X @ [0, 0.05, 20, 1, 0, 0.3] + rng.normal(size=40)
    sample = bases.Rows(X, y, np.ones(40), X[:0])
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    _, active, _ = lars_path(scaled, y - y.mean(), method="lar")
    assert made("lars", sample)[0].columns.tolist() == list(active)
    order = made("omp", sample)[0].columns
    for k in range(1, 7):
        coefficients = orthogonal_mp(scaled, y - y.mean(), n_nonzero_coefs=k)
        assert set(np.flatnonzero(coefficients)) == set(order[:k])


def test_a_path_gives_its_order():
    sample = rows(p=3)
    path = SelectionPath([2, 0, 2, 1], list("caca"), np.zeros(5), 2, "by hand")
    basis, values = made(path, sample)
    assert basis.columns.tolist() == [2, 0, 1]
    np.testing.assert_array_equal(values, np.column_stack([np.ones(30), sample.X[:, [2, 0, 1]]]))


def test_principal_components_are_those_of_all_rows():
    sample = rows(n=10, p=4, unlabeled=50)
    basis, values = made("pca", sample)
    everything = np.concatenate([sample.X, sample.unlabeled])
    _, vectors = np.linalg.eigh(np.cov(everything.T))
    expected = (sample.X - everything.mean(axis=0)) @ vectors[:, ::-1]
    np.testing.assert_allclose(np.abs(values[:, 1:]), np.abs(expected))
    assert basis.names == ["1", "pc1", "pc2", "pc3", "pc4"]


def test_principal_components_without_spread_are_left_out():
    sample = rows(p=3)
    sample.X[:, 2] = sample.X[:, 0] + sample.X[:, 1]
    assert made("pca", sample)[0].names == ["1", "pc1", "pc2"]


def test_radial_centres_lie_apart():
    sample = rows(n=60)
    basis, values = made("rbf", sample, max_terms=4)
    assert values.shape == (60, 4)
    # The middle, then the two ends.
    centres = basis.centres[:, 0]
    assert abs(centres[0] - basis.coordinates(sample.X).mean()) < 0.1
    assert sorted(centres[1:3]) == [0.0, 1.0]
    assert values.max() == pytest.approx(1.0)


def test_a_transformers_columns_are_taken_in_order():
    sample = rows()
    _, values = made(PolynomialFeatures(3, include_bias=False), sample, max_terms=3)
    np.testing.assert_allclose(values, np.column_stack([np.ones(30), sample.X, sample.X**2]))


@pytest.mark.parametrize("name", bases.NAMES)
def test_no_basis_exceeds_the_number_of_terms_asked_for(name):
    for max_terms in (1, 2, 3, 7):
        basis, values = made(name, rows(p=3), max_terms)
        assert values.shape[1] <= max_terms
        assert len(basis.names) == values.shape[1]
        np.testing.assert_array_equal(values[:, 0], 1)


@pytest.mark.parametrize("name", ["columns", "lars", "omp", "pca"])
def test_columns_and_components_are_held_at_the_ends_of_their_ranges(name):
    sample = rows(p=3)
    basis, values = made(name, sample)
    far = basis.terms(basis.coordinates(np.array([[-1e6] * 3, [1e6] * 3])))
    assert (far >= values.min(axis=0)).all()
    assert (far <= values.max(axis=0)).all()


def test_terms_of_single_inputs_come_degree_by_degree():
    single = bases.IntervalBasis("legendre", None, ["a", "b"], max_degree=2).fit(rows(p=2), 9)
    assert single.products == [(), ((0, 1),), ((1, 1),), ((0, 2),), ((1, 2),)]


def test_auto_offers_three_families_of_one_input_and_polynomials_of_several():
    one = bases.unfitted_bases("auto", None, ["x"], averaged=False)
    assert list(one) == ["bspline", "legendre", "cosine"] + [
        "bspline, log", "legendre, log", "cosine, log"
    ]  # fmt: skip
    several = bases.unfitted_bases("auto", None, ["a", "b"], averaged=False)
    assert all(basis.name == "legendre" for basis in several.values())
    for names in (["x"], ["a", "b"]):  # an average has processes too
        averaged = bases.unfitted_bases("auto", None, names, averaged=True)
        without = bases.unfitted_bases("auto", None, names, averaged=False)
        assert [name for name, basis in averaged.items() if basis.explains] == list(without)
        assert len(averaged) > len(without)


def test_wild_inputs_do_not_take_the_range_of_auto():
    sample = rows()
    far = np.vstack([sample.X, [[1e4]]])
    wide = bases.Rows(far, far[:, 0], np.ones(31), sample.unlabeled)
    basis = bases.unfitted_bases("auto", None, ["x"], averaged=True)["legendre"].fit(wide, 5)
    assert np.ptp(basis.coordinates(sample.X)) > 0.05
    plain = bases.IntervalBasis("legendre", None, ["x"]).fit(wide, 5)
    assert np.ptp(plain.coordinates(sample.X)) < 0.01
