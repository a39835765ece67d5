import numpy as np
import pytest

from holdtrue import Moments


def rows(seed=0, n=60, p=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + 5
    return X, X[:, 0] + rng.normal(size=n), rng.choice(["a", "b", "c"], size=n)


FIELDS = ("n_samples", "mean_x", "scatter_xx", "mean_y", "scatter_xy", "scatter_yy")


def assert_same(one, other, **tolerance):
    assert one.domains == other.domains
    for name in FIELDS:
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), **tolerance)


def test_two_rows_by_hand():
    # x = 1, 3; y = 0, 4: means 2 and 2, deviations ∓1 and ∓2.
    sums = Moments.from_arrays(np.array([[1.0], [3.0]]), np.array([0.0, 4.0]))
    assert (sums.n_samples[0], sums.mean_x[0, 0], sums.mean_y[0]) == (2, 2, 2)
    assert (sums.scatter_xx[0, 0, 0], sums.scatter_xy[0, 0], sums.scatter_yy[0]) == (2, 4, 8)
    assert sums.second_moment()[0, 0, 0] == 5  # (1 + 9)/2


def test_moments_are_numpys_domain_by_domain():
    X, y, groups = rows()
    sums = Moments.from_arrays(X, y, groups=groups)
    assert sums.domains == ("a", "b", "c")
    for d, domain in enumerate(sums.domains):
        own = groups == domain
        np.testing.assert_allclose(sums.mean_x[d], X[own].mean(axis=0))
        joint = np.cov(np.column_stack([X, y])[own].T, ddof=0) * own.sum()
        np.testing.assert_allclose(sums.scatter_xx[d], joint[:3, :3])
        np.testing.assert_allclose(sums.scatter_xy[d], joint[:3, 3])
        np.testing.assert_allclose(sums.scatter_yy[d], joint[3, 3])
        np.testing.assert_allclose(sums.second_moment()[d], X[own].T @ X[own] / own.sum())


def test_seven_parts_equal_one_and_adding_changes_neither():
    X, y, groups = rows()
    parts = [Moments.from_arrays(X[i::7], y[i::7], groups=groups[i::7]) for i in range(7)]
    before = parts[0].scatter_xx.copy()
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    whole = Moments.from_arrays(X, y, groups=groups)
    order = [total.domains.index(d) for d in whole.domains]
    for name in FIELDS:
        np.testing.assert_allclose(getattr(total, name)[order], getattr(whole, name), rtol=1e-12)
    np.testing.assert_array_equal(parts[0].scatter_xx, before)


def test_a_large_mean_costs_no_digits():
    X, y, _ = rows(n=1000)
    X, y = X + 1e9, y - 3e8  # rounded here; what follows is exact for these numbers
    total = sum(Moments.from_arrays(X[i : i + 1], y[i : i + 1]) for i in range(len(y)))
    joint = np.column_stack([X - 1e9, y + 3e8])  # exact: these numbers are near each other
    joint -= joint.mean(axis=0)
    exact = joint.T @ joint
    for sums in (total, Moments.from_arrays(X, y)):
        np.testing.assert_allclose(sums.scatter_xx[0], exact[:3, :3], rtol=1e-12, atol=1e-10)
        np.testing.assert_allclose(sums.scatter_xy[0], exact[:3, 3], rtol=1e-12, atol=1e-10)
        assert sums.scatter_yy[0] == pytest.approx(exact[3, 3], rel=1e-12)


def test_weights_are_repetitions_and_weight_zero_is_nothing():
    X, y, groups = rows()
    weight = np.random.default_rng(1).integers(0, 3, size=len(y))
    copies = np.repeat(np.arange(len(y)), weight)
    assert_same(
        Moments.from_arrays(X, y, groups=groups, sample_weight=weight),
        Moments.from_arrays(X[copies], y[copies], groups=groups[copies]),
    )
    only_b = np.where(groups == "b", 1.0, 0.0)
    assert Moments.from_arrays(X, groups=groups, sample_weight=only_b).domains == ("b",)


def test_sums_that_do_not_belong_together_do_not_add():
    X, y, _ = rows()
    with pytest.raises(ValueError, match="Got 3 and 2 features"):
        Moments.from_arrays(X) + Moments.from_arrays(X[:, :2])
    with pytest.raises(ValueError, match="with a target and sums without"):
        Moments.from_arrays(X) + Moments.from_arrays(X, y)
    with pytest.raises(TypeError):
        Moments.from_arrays(X) + 1


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"X": np.ones(3)}, "X must have 2 dimensions"),
        ({"y": np.ones(2)}, r"y must have one value per row of X, shape \(3,\). Got shape \(2,\)"),
        ({"groups": ["a"]}, "groups must have one value per row"),
        ({"sample_weight": [1.0, -1, 1]}, "finite and not negative"),
        ({"sample_weight": [0.0, 0, 0]}, "sample_weight must be above 0 for some row"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Moments.from_arrays(**{"X": np.ones((3, 2)), **arguments})


def test_parts_of_wrong_shape_are_refused():
    sums = Moments.from_arrays(*rows()[:2])
    fields = {name: getattr(sums, name) for name in ("domains", *FIELDS)}
    for changes, message in [
        ({"scatter_xx": np.ones((1, 2, 2))}, r"scatter_xx must have shape \(1, 3, 3\)"),
        ({"mean_y": None}, "belong together"),
        ({"domains": ("a", "b")}, "expected 1 distinct domains"),
    ]:
        with pytest.raises(ValueError, match=message):
            Moments(**{**fields, **changes})
