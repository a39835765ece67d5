import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import gaussian_kde

from holdtrue.model_size import kernel
from holdtrue.model_size.bases import fourier, legendre
from holdtrue.model_size.bayes import bayes
from holdtrue.model_size.table import CRITERIA, UNITS


def problem(n=12, n_terms=5, seed=0, weights=False):
    """Terms, target, weights and unlabelled terms."""
    rng = np.random.default_rng(seed)
    terms = np.column_stack([np.ones(n), rng.normal(size=(n, n_terms - 1))])
    y = terms @ rng.normal(size=n_terms) + rng.normal(size=n)
    weight = rng.integers(1, 4, size=n).astype(float) if weights else np.ones(n)
    unlabelled = np.column_stack([np.ones(50), rng.normal(size=(50, n_terms - 1))])
    return terms, y, weight, unlabelled


def fitted(**options):
    terms, y, weight, unlabelled = problem(**options)
    fit = kernel.nested_fit(terms, y, weight)
    return fit, kernel.moment_triangle(unlabelled) / np.sqrt(len(unlabelled))


# --- by hand ------------------------------------------------------------------------------------


def test_three_rows_by_hand():
    # x = -1, 0, 1; y = 0, 3, 3. Mean 2: residuals -2, 1, 1, RSS_1 = 6.
    # Slope Σxy/Σx² = 3/2: fit .5, 2, 3.5, residuals -.5, 1, -.5, RSS_2 = 1.5. RSS_0 = 18.
    terms = np.array([[1.0, -1], [1, 0], [1, 1]])
    fit = kernel.nested_fit(terms, np.array([0.0, 3, 3]), np.ones(3))
    np.testing.assert_allclose(fit.rss, [18, 6, 1.5])
    np.testing.assert_allclose(kernel.coefficient_path(fit), [[2, 0], [2, 1.5]], atol=1e-15)
    # Leverages 1/3 each; then 1/3 + x²/2 = 5/6, 1/3, 5/6.
    # PRESS_1 = ((2/(2/3))² + 2 (1/(2/3))²)/3 = (9 + 4.5)/3. PRESS_2 = (2 (.5·6)² + (1.5)²)/3.
    np.testing.assert_allclose(kernel.leave_one_out(fit), [13.5 / 3, (18 + 2.25) / 3])
    # RSS_2 = .5² + 1² + .5² over 3 - 2 degrees of freedom.
    assert kernel.noise_variance(fit) == pytest.approx(1.5)


def test_each_correction_by_hand():
    # n = 10, d = 4, Remp = 2: d/n = .4.
    remp, d, n = np.array([2.0]), np.array([4]), 10.0
    assert kernel.fpe(remp, d, n) == pytest.approx(2 * 1.4 / 0.6)
    assert kernel.gcv(remp, d, n) == pytest.approx(2 / 0.36)
    # n = 100 leaves room for the bounds: (4 (ln 25 + 1) + 3)/100 and (4 (ln 50 + 1) + 4)/100.
    ucb = 2 / (1 - math.sqrt((4 * (math.log(25) + 1) + 3) / 100))
    assert kernel.ucb(remp, d, 100.0) == pytest.approx(ucb)
    k = 1 - math.sqrt((4 * (math.log(50) + 1) + 4) / 100)
    assert kernel.seb(remp, d, 100.0) == pytest.approx(2 / 0.96 * (1 + 4 / (100 * k)))
    assert kernel.cpm(remp, d, n, 3.0) == pytest.approx(2 + 2 * 4 * 3 / 10)
    assert kernel.bic(remp, d, n, 3.0) == pytest.approx(2 + math.log(10) * 4 * 3 / 10)
    sizes = np.arange(1, 9)
    ric = kernel.ric(np.full(8, 2.0), sizes, n, 3.0)
    assert ric[3] == pytest.approx(2 + 2 * math.log(8) * 4 * 3 / 10)
    assert kernel.aic(remp, d, n) == pytest.approx(10 * math.log(2) + 2 * 5)
    # k = 5 parameters: 2·5·6/(10 - 5 - 1) = 15.
    assert kernel.aicc(remp, d, n) == pytest.approx(10 * math.log(2) + 10 + 15)
    # n = 4, d = 1: one degree of freedom is left, 2·2·3/(4 - 2 - 1) = 12. None is left for d = 2.
    few = kernel.aicc(np.array([2.0, 2.0]), np.array([1, 2]), 4.0)
    np.testing.assert_allclose(few, [4 * math.log(2) + 4 + 12, np.inf])
    assert kernel.adjusted_r2(remp, d, n, 5.0) == pytest.approx((20 / 6) / 5)


def test_constants_of_the_bounds_can_be_given():
    remp, d = np.array([1.0]), np.array([2])
    xi = (2 * (math.log(50) + 1) - math.log(0.2)) / 100
    expected = 1 / (1 - 0.5 * math.sqrt(xi))
    assert kernel.ucb(remp, d, 100.0, c=0.5, eta=0.2) == pytest.approx(expected)
    xi = (2 * (math.log(100) + 1) - math.log(0.1 / 4)) / 100
    expected = (1 + 2 / (100 * (1 - 1.2 * math.sqrt(xi)))) / 0.98
    assert kernel.seb(remp, d, 100.0, v_d=1.2, delta=0.1) == pytest.approx(expected)


def test_seb_as_printed_forbids_six_terms_of_twenty_points():
    values = kernel.seb(np.ones(15), np.arange(1, 16), 20.0)
    assert np.isfinite(values).tolist() == [True] * 5 + [False] * 10


def test_a_factor_without_a_positive_denominator_is_infinite_even_for_an_exact_fit():
    remp, d = np.zeros(3), np.array([1, 10, 12])
    for criterion in (kernel.fpe, kernel.gcv, kernel.ucb, kernel.seb, kernel.aicc):
        assert np.isinf(criterion(remp, d, 10.0)[1:]).all()
    assert not np.isnan(kernel.aicc(remp, d, 10.0)).any()


# --- by brute force -----------------------------------------------------------------------------


@pytest.mark.parametrize("weights", [False, True])
def test_one_qr_equals_a_least_squares_fit_per_size(weights):
    terms, y, weight, _ = problem(weights=weights)
    fit = kernel.nested_fit(terms, y, weight)
    path = kernel.coefficient_path(fit)
    root = np.sqrt(weight)
    for d in range(1, 6):
        alpha = np.linalg.lstsq(root[:, None] * terms[:, :d], root * y, rcond=None)[0]
        np.testing.assert_allclose(path[d - 1, :d], alpha)
        assert not path[d - 1, d:].any()
        residual = y - terms[:, :d] @ alpha
        assert fit.rss[d] == pytest.approx(weight @ residual**2)
        assert fit.remp[d - 1] == pytest.approx(np.average(residual**2, weights=weight))


def test_dee_is_the_trace_form_of_the_paper():
    terms = problem()[0]
    fit, C_half = fitted()
    C = C_half.T @ C_half
    values = kernel.dee(fit.remp, fit.n_terms, fit.n_samples, kernel.spread(fit, C_half))
    for d in range(1, 6):
        c_emp = terms[:, :d].T @ terms[:, :d] / 12
        trace = np.trace(np.linalg.solve(c_emp, C[:d, :d]))
        assert values[d - 1] == pytest.approx(fit.remp[d - 1] / (1 - d / 12) * (1 + trace / 12))
        # The same through the eigenvalues of (15) in a basis orthonormal over U (remark 3).
        whiten = np.linalg.inv(np.linalg.cholesky(C[:d, :d])).T
        assert np.sum(1 / np.linalg.eigvalsh(whiten.T @ c_emp @ whiten)) == pytest.approx(trace)


def test_adj_is_its_definition():
    terms, y, weight, unlabelled = problem(weights=True)
    fit = kernel.nested_fit(terms, y, weight)
    C_half = kernel.moment_triangle(unlabelled) / np.sqrt(len(unlabelled))
    path = kernel.coefficient_path(fit)
    expected = [fit.remp[0]]
    for size in range(1, 5):
        ratios = []
        for k in range(size):
            difference = path[size] - path[k]
            on_unlabelled = np.mean((unlabelled @ difference) ** 2)
            on_training = np.average((terms @ difference) ** 2, weights=weight)
            ratios.append(on_unlabelled / on_training)
        expected.append(fit.remp[size] * max(ratios))
    np.testing.assert_allclose(kernel.adj(fit, kernel.spread(fit, C_half)), expected)


def test_leave_one_out_equals_refitting_without_each_copy_of_a_row():
    terms, y, weight, _ = problem(weights=True)
    fit = kernel.nested_fit(terms, y, weight)
    loss = np.zeros(5)
    for i in range(len(y)):
        left = weight.copy()
        left[i] -= 1
        rest = left > 0
        path = kernel.coefficient_path(kernel.nested_fit(terms[rest], y[rest], left[rest]))
        loss += weight[i] * (y[i] - path @ terms[i]) ** 2
    np.testing.assert_allclose(kernel.leave_one_out(fit), loss / weight.sum())


def test_a_row_that_decides_a_term_alone_makes_leave_one_out_infinite():
    terms = np.column_stack([np.ones(5), [0, 0, 0, 0, 1.0]])
    fit = kernel.nested_fit(terms, np.arange(5.0) ** 2, np.ones(5))
    assert np.isinf(kernel.leave_one_out(fit)).tolist() == [False, True]


def folds_of(terms, y, weight, held_out):
    for part in held_out:
        train, test = weight - part > 0, part > 0
        yield (
            *(terms[train], y[train], (weight - part)[train]),
            *(terms[test], y[test], part[test]),
        )


def test_cross_validation_equals_refitting_each_fold_and_size():
    terms, y, weight, _ = problem()
    held_out = kernel.fold_weights(weight, 3, np.random.RandomState(0))
    values = kernel.cross_validation(folds_of(terms, y, weight, held_out), 5)
    for d in range(1, 6):
        loss = 0.0
        for part in held_out:
            test = part > 0
            alpha = np.linalg.lstsq(terms[~test, :d], y[~test], rcond=None)[0]
            loss += np.sum((y[test] - terms[test, :d] @ alpha) ** 2)
        assert values[d - 1] == pytest.approx(loss / 12)


def test_cross_validation_forbids_sizes_above_a_folds_rows():
    terms, y, weight, _ = problem(n=6, n_terms=5)
    held_out = kernel.fold_weights(weight, 2, np.random.RandomState(0))
    values = kernel.cross_validation(folds_of(terms, y, weight, held_out), 5)
    assert np.isfinite(values).tolist() == [True, True, True, False, False]


# --- by two routes and by invariance ------------------------------------------------------------

NAMES = [name for name in CRITERIA if name != "cv"]


def table(terms, y, weight, unlabelled, variance=0.5):
    fit = kernel.nested_fit(terms, y, weight)
    C_half = kernel.moment_triangle(unlabelled) / np.sqrt(len(unlabelled))
    S = kernel.spread(fit, C_half[:, fit.kept])
    table = kernel.criteria(fit, S, variance, np.ones(len(fit.z)))
    return {**table, "bayes": bayes(fit, C_half, S)}


def test_weights_are_repetitions():
    terms, y, weight, unlabelled = problem(weights=True)
    copies = np.repeat(np.arange(len(y)), weight.astype(int))
    repeated = table(terms[copies], y[copies], np.ones(len(copies)), unlabelled)
    weighted = table(terms, y, weight, unlabelled)
    for name in NAMES:
        np.testing.assert_allclose(weighted[name], repeated[name], err_msg=name)


def test_the_order_of_rows_does_not_matter():
    terms, y, weight, unlabelled = problem(weights=True)
    mixed = np.random.default_rng(1).permutation(len(y))
    one = table(terms, y, weight, unlabelled)
    other = table(terms[mixed], y[mixed], weight[mixed], unlabelled)
    for name in NAMES:
        np.testing.assert_allclose(one[name], other[name], err_msg=name)


def test_a_nested_change_of_basis_changes_no_criterion_but_the_bayesian_one():
    # Remark 3: an upper triangular map keeps every space, so every fit.
    terms, y, weight, unlabelled = problem()
    change = np.triu(np.random.default_rng(3).normal(size=(5, 5))) + 3 * np.eye(5)
    change[:, 0] = [1, 0, 0, 0, 0]
    one = table(terms, y, weight, unlabelled)
    other = table(terms @ change, y, weight, unlabelled @ change)
    for name in NAMES:
        if name != "bayes":
            np.testing.assert_allclose(one[name], other[name], err_msg=name, rtol=1e-6)


def test_the_target_in_other_units_changes_no_choice():
    terms, y, weight, unlabelled = problem(seed=4)
    one = table(terms, y, weight, unlabelled)
    other = table(terms, 1000 * y, weight, unlabelled, 0.5 * 1000**2)
    for name in NAMES:
        assert np.argmin(one[name]) == np.argmin(other[name]), name
        if name not in UNITS:
            np.testing.assert_allclose(1e6 * one[name], other[name], err_msg=name)


@settings(max_examples=100)
@given(
    arrays(np.float64, (9, 4), elements=st.floats(-5, 5, width=16)),
    arrays(np.float64, 9, elements=st.floats(-5, 5, width=16)),
)
def test_no_input_makes_a_criterion_nan_and_residuals_never_grow(columns, y):
    terms = np.column_stack([np.ones(9), columns])
    values = table(terms, y, np.ones(9), terms)
    for name in NAMES:
        assert not np.isnan(values[name]).any(), name
    assert (np.diff(values["train"]) <= 0).all()


@settings(max_examples=200)
@given(st.integers(0, 10**6), st.integers(1, 4), st.floats(1e-13, 1.0), st.floats(1e-9, 1.0))
def test_no_estimate_of_an_error_is_negative_however_close_the_terms(seed, n_other, apart, noise):
    # Each column is the one before it but for a part in `apart`; a few unlabelled rows.
    rng = np.random.default_rng(seed)
    columns = rng.normal(size=(30 + n_other, 1)) + apart * np.cumsum(
        rng.normal(size=(30 + n_other, 10)), axis=1
    )
    terms = np.column_stack([np.ones(len(columns)), columns])
    y = columns[:30, 0] + noise * rng.normal(size=30)
    values = table(terms[:30], y, np.ones(30), terms[30:])
    for name in NAMES:
        if name not in UNITS:
            assert (values[name] >= 0).all(), name


def test_dee_and_adj_keep_their_digits_where_terms_nearly_depend_on_each_other():
    # Powers of x + 3 span what Legendre polynomials of x do, with a condition number of 1e12.
    rng = np.random.default_rng(0)
    x, new = rng.uniform(-1, 1, size=40), rng.uniform(-1, 1, size=3)
    y = np.exp(x) + 0.1 * rng.normal(size=40)
    good = table(legendre(x, 10), y, np.ones(40), legendre(new, 10))
    powers = [np.vander(u + 3, 10, increasing=True) for u in (x, new)]
    assert np.linalg.cond(powers[0]) > 1e12
    bad = table(powers[0], y, np.ones(40), powers[1])
    for name in ("dee", "adj"):
        np.testing.assert_allclose(bad[name], good[name], err_msg=name, rtol=1e-3)


def test_parts_of_the_unlabelled_rows_add_up():
    unlabelled = problem()[3]
    whole = kernel.moment_triangle(unlabelled) / np.sqrt(len(unlabelled))
    parts = None
    for part in np.array_split(unlabelled, [3, 20]):
        parts = kernel.moment_triangle(part, parts)
    parts = parts / np.sqrt(len(unlabelled))
    np.testing.assert_allclose(parts.T @ parts, whole.T @ whole)
    np.testing.assert_allclose(whole.T @ whole, unlabelled.T @ unlabelled / len(unlabelled))


def test_dependent_terms_are_dropped_and_later_ones_kept():
    terms, y, weight, _ = problem()
    doubled = np.column_stack([terms[:, :3], terms[:, 1] - 2 * terms[:, 2], terms[:, 3:]])
    fit = kernel.nested_fit(doubled, y, weight)
    assert fit.kept.tolist() == [0, 1, 2, 4, 5]
    np.testing.assert_allclose(fit.rss, kernel.nested_fit(terms, y, weight).rss)


def test_a_zero_column_and_more_columns_than_rows_are_dropped():
    rng = np.random.default_rng(0)
    terms = np.column_stack([np.ones(4), np.zeros(4), rng.normal(size=(4, 6))])
    fit = kernel.nested_fit(terms, rng.normal(size=4), np.ones(4))
    assert fit.kept.tolist() == [0, 2, 3, 4]


def test_small_residuals_keep_their_digits():
    # RSS_3 is 1e-20 of the sum of squares: by subtraction nothing would be left of it.
    x = np.linspace(-1, 1, 9)
    terms = np.column_stack([np.ones(9), x, x**3])
    noise = 1e-6 * (-1.0) ** np.arange(9)
    fit = kernel.nested_fit(terms, 1e4 * x + noise, np.ones(9))
    projected = noise - terms @ np.linalg.lstsq(terms, noise, rcond=None)[0]
    assert fit.rss[3] == pytest.approx(projected @ projected, rel=1e-4)


def test_among_exact_fits_the_smallest_wins():
    terms, _, weight, unlabelled = problem()
    values = table(terms, terms[:, :2] @ [1.0, 2.0], weight, unlabelled)
    for name in NAMES:
        if name not in ("cpm", "bic", "ric"):  # with σ² = .5 they are far from 0 either way
            assert np.argmin(values[name]) == 1, name


# --- draws --------------------------------------------------------------------------------------


def test_parzen_draws_follow_the_kernel_density_and_stay_in_range():
    rng = np.random.default_rng(0)
    points = np.sort(rng.normal(size=(200, 1)), axis=0)
    low, high = points.min(axis=0), points.max(axis=0)
    drawn = kernel.parzen_sample(points, np.ones(200), low, high, 20_000, np.random.RandomState(0))
    assert drawn.shape == (20_000, 1)
    assert ((drawn >= low) & (drawn <= high)).all()
    density = gaussian_kde(points[:, 0], bw_method="scott")
    for at in (-1.0, 0.0, 0.7):
        share = np.mean((drawn > at - 0.2) & (drawn < at + 0.2))
        assert share == pytest.approx(density.integrate_box_1d(at - 0.2, at + 0.2), abs=0.012)


@pytest.mark.parametrize("n_inputs", [1, 3])
def test_parzen_draws_have_scotts_bandwidth(n_inputs):
    points = np.random.default_rng(0).normal(size=(30, n_inputs)) * [1.0, 20.0, 0.3][:n_inputs]
    far = np.full(n_inputs, 1e3)  # nothing is reflected
    drawn = kernel.parzen_sample(points, np.ones(30), -far, far, 50, np.random.RandomState(0))
    rng = np.random.RandomState(0)
    rng.uniform(size=50)  # the points
    noise = rng.standard_normal((50, n_inputs))
    values, vectors = np.linalg.eigh(np.atleast_2d(np.corrcoef(points.T)))
    noise = noise @ (vectors * np.sqrt(values)) @ vectors.T
    bandwidth = gaussian_kde(points.T, "scott").factor * points.std(axis=0, ddof=1)
    off = np.abs((drawn - bandwidth * noise)[:, None] - points).max(axis=2)
    assert off.min(axis=1).max() < 1e-12


def test_inputs_that_depend_on_each_other_do_so_in_parzen_draws():
    points = np.random.default_rng(0).normal(size=(20, 2))
    points = np.column_stack([points, points[:, 0] - 2 * points[:, 1], -3 * points[:, 0]])
    far = np.full(4, 1e3)  # nothing is reflected
    drawn = kernel.parzen_sample(points, np.ones(20), -far, far, 50, np.random.RandomState(0))
    np.testing.assert_allclose(drawn[:, 2], drawn[:, 0] - 2 * drawn[:, 1], atol=1e-9)
    np.testing.assert_allclose(drawn[:, 3], -3 * drawn[:, 0], atol=1e-9)


def test_parzen_draws_take_weights_as_repetitions_and_leave_constant_inputs_alone():
    points = np.column_stack([np.arange(5.0), np.full(5, 7.0)])
    weight = np.array([1.0, 3, 1, 2, 1])
    copies = np.repeat(np.arange(5), weight.astype(int))
    ends = points.min(axis=0), points.max(axis=0)
    one = kernel.parzen_sample(points, weight, *ends, 50, np.random.RandomState(0))
    other = kernel.parzen_sample(points[copies], np.ones(8), *ends, 50, np.random.RandomState(0))
    np.testing.assert_allclose(one, other)
    assert (one[:, 1] == 7).all()


def test_folds_share_out_every_row_once_and_take_weights_as_repetitions():
    weight = np.array([1.0, 3, 2, 1, 4, 1])
    held_out = kernel.fold_weights(weight, 3, np.random.RandomState(0))
    np.testing.assert_allclose(held_out.sum(axis=0), weight)
    np.testing.assert_allclose(held_out.sum(axis=1), [4, 4, 4])
    copies = np.repeat(np.arange(6), weight.astype(int))
    repeated = kernel.fold_weights(np.ones(12), 3, np.random.RandomState(0))
    together = np.array([np.bincount(copies, part) for part in repeated])
    np.testing.assert_allclose(held_out, together)


def test_folds_of_fractional_and_of_huge_weights_share_out_the_weight():
    for weight in (np.array([0.5, 1.7, 2.3, 0.9]), np.array([1e9, 3e9, 2e9])):
        held_out = kernel.fold_weights(weight, 2, np.random.RandomState(0))
        np.testing.assert_allclose(held_out.sum(axis=0), weight)


# --- by the paper -------------------------------------------------------------------------------


def test_figure_1_akaikes_factor_falls_short_of_the_true_ratio_and_dee_follows_it():
    # n = 50, step, σ = .05: median generalisation error over median training error.
    rng = np.random.default_rng(0)
    grid = (np.arange(4000) + 0.5) / 4000 * 2 * np.pi - np.pi
    risks, remps, factors = [], [], []
    for _ in range(200):
        x = rng.uniform(-np.pi, np.pi, size=50)
        fit = kernel.nested_fit(fourier(x, 40), (x > 0) + 0.05 * rng.normal(size=50), np.ones(50))
        error = (grid > 0)[:, None] - fourier(grid, 40) @ kernel.coefficient_path(fit).T
        risks.append((error**2).mean(axis=0) + 0.05**2)
        remps.append(fit.remp)
        factors.append(kernel.dee(np.ones(40), fit.n_terms, 50.0, kernel.spread(fit, np.eye(40))))
    true = np.median(risks, axis=0) / np.median(remps, axis=0)
    dee = np.median(factors, axis=0) / true
    fpe = kernel.fpe(np.ones(40), np.arange(1, 41), 50.0) / true
    assert (dee[[4, 9]] > 0.8).all()
    assert (dee[[4, 9]] < 1.2).all()
    assert (dee[[19, 29]] > 0.6).all()
    assert (dee[[19, 29]] < 1.4).all()
    assert 0.3 < dee[39] < 3
    assert fpe[29] < 0.15
    assert fpe[39] < 0.001


def test_a_huge_level_of_y_leaves_every_criterion_as_it_was():
    terms, y, weight, _ = problem(n=20, weights=True)
    y = np.round(y, 3)
    level = 2.0**33  # y + level is exact to 2e-6
    one = kernel.nested_fit(terms, y, weight)
    other = kernel.nested_fit(terms, y + level, weight)
    np.testing.assert_allclose(other.rss[1:], one.rss[1:], rtol=1e-4)
    np.testing.assert_allclose(kernel.leave_one_out(other), kernel.leave_one_out(one), rtol=1e-4)
    np.testing.assert_allclose(
        kernel.coefficient_path(other)[:, 0] - level, kernel.coefficient_path(one)[:, 0], atol=1e-5
    )
    folds = [(terms[5:], y[5:], weight[5:], terms[:5], y[:5], weight[:5])]
    shifted = [(terms[5:], y[5:] + level, weight[5:], terms[:5], y[:5] + level, weight[:5])]
    np.testing.assert_allclose(
        kernel.cross_validation(shifted, 5), kernel.cross_validation(folds, 5), rtol=1e-4
    )


def test_the_joint_triangle_is_that_of_the_nested_fit():
    terms, y, weight, _ = problem(weights=True)
    fit = kernel.nested_fit(terms, y, weight)
    R, z, rss = kernel.joint_triangle(terms, y, weight)
    np.testing.assert_allclose(R.T @ R, fit.R.T @ fit.R, atol=1e-10)
    np.testing.assert_allclose(R.T @ z, fit.R.T @ fit.z, atol=1e-10)
    assert rss == pytest.approx(fit.rss[-1])
    wide_R, wide_z, rest = kernel.joint_triangle(terms[:3], y[:3], weight[:3])
    assert wide_R.shape == (3, 5)
    assert rest == 0
    assert wide_z @ wide_z == pytest.approx(weight[:3] @ y[:3] ** 2)
