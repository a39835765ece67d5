"""SteadyRidge's kernel by hand, by brute force, by two routes and by invariance."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from holdtrue import Moments
from holdtrue.domains import choose, steady
from holdtrue.domains.bounds import mean_interval, new_domain_interval

SPREADS = [(A, R) for R in steady.SLOPE_SPREADS for A in steady.INTERCEPT_SPREADS]


def rows_of(n_domains=5, p=4, seed=0, n_targets=1, least=3, most=12):
    """Unequal domains, correlated columns in different units, slopes and intercepts that vary."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_domains), rng.integers(least, most, n_domains))
    X = rng.normal(size=(len(groups), p)) @ rng.normal(size=(p, p))
    X = (X + rng.normal(size=(n_domains, p))[groups]) * 10.0 ** rng.integers(-2, 3, p)
    slopes = rng.normal(size=(n_domains, p, n_targets)) + 1
    y = np.einsum("ij,ijk->ik", (X - X.mean(0)) / X.std(0), slopes[groups])
    y += 2 * rng.normal(size=(n_domains, n_targets))[groups] + rng.normal(size=y.shape)
    return X, y, groups


def fitted(X, y, groups, *, nested=True, centre=True, weight=None):
    moments = Moments.from_arrays(X, y, groups=groups, sample_weight=weight)
    return fitted_from(moments, nested=nested, centre=centre)


def fitted_from(moments, *, nested=True, centre=True):
    sums = steady.standardised(moments, centre=centre)
    n_domains = len(sums.n_samples)
    part_of, omega = choose.held_out_parts(n_domains), np.ones(n_domains)
    intercepts = steady.INTERCEPT_SPREADS if centre else (math.inf,)
    fits = []
    for R in steady.SLOPE_SPREADS:
        fits += steady.held_out_fits(sums, part_of, omega, intercepts, R, nested=nested)
    return sums, fits, steady.combined(sums, part_of, omega, fits)


def by_hand(X, y, groups, A, R, *, like, multiple):
    """Generalised least squares with a ridge, by the covariance of all rows.

    ``like`` has all rows, whose means, deviations and median number per domain count.
    """
    X_all, groups_all = like
    p = X.shape[1]
    Z = np.column_stack([np.ones(len(X)), (X - X_all.mean(0)) / X_all.std(0)])
    median = np.median(np.unique(groups_all, return_counts=True)[1])
    slopes = 0.0 if multiple is None else R / max(median, p)
    T = np.diag([A / median] + [slopes] * p)
    same = groups[:, None] == groups
    V = np.eye(len(X)) + same * (Z @ T @ Z.T)
    H, h = Z.T @ np.linalg.solve(V, Z), Z.T @ np.linalg.solve(V, y)
    slopes_only = H[1:, 1:] - np.outer(H[1:, 0], H[0, 1:]) / H[0, 0]
    if multiple is None:  # the null
        return np.r_[h[:1] / H[0, 0], np.zeros((p, y.shape[1]))], Z, T, V
    penalty = np.eye(p + 1) * multiple * np.trace(slopes_only) / p
    penalty[0, 0] = 0
    return np.linalg.solve(H + penalty, h), Z, T, V


# --- by hand ------------------------------------------------------------------------------------


@pytest.mark.parametrize("A", [0.0, 1.0])
@pytest.mark.parametrize("R", steady.SLOPE_SPREADS)
def test_with_known_variances_it_is_generalised_least_squares(A, R):
    X, y, groups = rows_of(n_targets=2)
    sums, fits, _ = fitted(X, y, groups)
    fit = fits[SPREADS.index((A, R))]
    for k, multiple in enumerate([None, *steady.PENALTIES]):
        solution, *_ = by_hand(X, y, groups, A, R, like=(X, groups), multiple=multiple)
        np.testing.assert_allclose(fit.coef[-1, k], solution[1:], rtol=1e-8, atol=1e-8)
        intercept = fit.intercept[-1, k] + sums.centre_y
        np.testing.assert_allclose(intercept, solution[0], rtol=1e-8)


# statsmodels 0.15.0, REML on the rows below, E = (1, standardised x):
#   MixedLM(y, E, groups).fit(), and with independent intercepts and slopes of equal variance
#   MixedLM(y, E, groups, exog_vc=VCSpec(["a", "r"], ...)).fit().
# (variance of intercepts, of slopes, both over that of the noise, fixed effects)
MIXED = [
    (2.049339642496012, 0.0,
     [1.3701112305716263, 0.6669149143600903, -1.2840862649310658, 0.25594544470373776]),
    (3.08120267065914, 0.1471819681937971,
     [1.3653044329195092, 0.6949193114551107, -1.3099423006969617, 0.29933543650808386]),
]  # fmt: skip


@pytest.mark.parametrize("a, r, effects", MIXED)
def test_with_its_variances_and_no_ridge_it_is_statsmodels_mixed_model(a, r, effects):
    i = np.arange(60)
    groups = i // 10
    X = np.column_stack([np.sin(1.7 * i), np.cos(2.3 * i * i), np.sin(0.9 * i + groups)])
    y = 1 + X @ [1.0, -2.0, 0.5] + 0.8 * np.cos(5.0 * groups)
    y += 0.6 * np.sin(3.0 * groups + 1) * X[:, 1] + 0.5 * np.sin(11.0 * i * i)
    sums = steady.standardised(Moments.from_arrays(X, y, groups=groups))
    # 10 rows in every domain: A = 10 a, R = 10 r.
    (of_all,) = steady.part_equations(sums, np.zeros(6, int), [10 * a], 10 * r)
    H = np.block([[of_all.weight, of_all.x0], [of_all.x0.T, of_all.xx[0]]])
    solution = np.linalg.solve(H, np.concatenate([of_all.y0[0], of_all.xy[0, :, 0]]))
    np.testing.assert_allclose(solution + [y.mean(), 0, 0, 0], effects, rtol=1e-10)


@pytest.mark.parametrize("R", steady.SLOPE_SPREADS)
def test_centred_within_domains_is_the_limit_of_a_large_spread_of_intercepts(R):
    X, y, groups = rows_of()
    sums, fits, _ = fitted(X, y, groups)
    fit = fits[SPREADS.index((math.inf, R))]
    for k in (0, 1, 10, 20):
        multiple = None if k == 0 else steady.PENALTIES[k - 1]
        solution, *_ = by_hand(X, y, groups, 1e8, R, like=(X, groups), multiple=multiple)
        np.testing.assert_allclose(fit.coef[-1, k], solution[1:], rtol=1e-4, atol=1e-5)
        intercept = fit.intercept[-1, k] + sums.centre_y
        np.testing.assert_allclose(intercept, solution[0], rtol=1e-4)


def test_slopes_of_domains_are_the_expected_ones():
    # E[u_d | y] = T Z'V⁻¹(y - Zw), the best linear predictor.
    X, y, groups = rows_of(n_targets=2)
    sums, fits, _ = fitted(X, y, groups)
    weights = np.zeros((len(SPREADS), len(steady.PENALTIES) + 1))
    expected = np.zeros((5, 4, 2))
    for spread, k, weight in [((0.0, 10.0), 5, 0.25), ((1.0, 1.0), 20, 0.5), ((1.0, 0.0), 9, 0.25)]:
        weights[SPREADS.index(spread), k] = weight
        multiple = steady.PENALTIES[k - 1]
        solution, Z, T, V = by_hand(X, y, groups, *spread, like=(X, groups), multiple=multiple)
        left = np.linalg.solve(V, y - Z @ solution)
        for d in range(5):
            u = T @ Z[groups == d].T @ left[groups == d]
            expected[d] += weight * (solution + u)[1:]
    slopes = steady.domain_slopes(sums, SPREADS, fits, weights)
    np.testing.assert_allclose(slopes, expected, rtol=1e-8, atol=1e-10)


def test_without_a_centre_it_is_ridge_through_the_origin():
    X, y, groups = rows_of()
    _, fits, _ = fitted(X, y, groups, centre=False)
    Z = X / np.sqrt((X**2).mean(0))
    H = Z.T @ Z
    for k in (1, 12, 25):
        penalty = steady.PENALTIES[k - 1] * np.trace(H) / 4
        solution = np.linalg.solve(H + penalty * np.eye(4), Z.T @ y)
        np.testing.assert_allclose(fits[0].coef[-1, k], solution, rtol=1e-8)
    assert not fits[0].intercept.any()


# --- by brute force -----------------------------------------------------------------------------


@pytest.mark.parametrize("n_domains", [2, 3, 4, 23])
def test_held_out_errors_are_those_of_a_refit_from_rows(n_domains):
    X, y, groups = rows_of(n_domains, seed=n_domains, n_targets=2)
    _, fits, _ = fitted(X, y, groups, nested=False)
    part_of = choose.held_out_parts(n_domains)
    if n_domains == 23:
        assert part_of.max() == 9
    for A, R in [(0.0, 0.0), (1.0, 1.0), (0.0, 10.0)]:
        losses = fits[SPREADS.index((A, R))].losses
        for d in (0, n_domains - 1):
            kept = part_of[groups] != part_of[d]
            for k in (0, 1, 13, 25):
                solution, *_ = by_hand(
                    X[kept], y[kept], groups[kept], A, R, like=(X, groups),
                    multiple=None if k == 0 else steady.PENALTIES[k - 1],
                )  # fmt: skip
                Z = np.column_stack([np.ones(len(X)), (X - X.mean(0)) / X.std(0)])[groups == d]
                error = ((y[groups == d] - Z @ solution) ** 2).mean()
                assert losses[k, d] == pytest.approx(error, rel=1e-8)


def test_nested_errors_choose_anew_without_the_domain():
    X, y, groups = rows_of(5, seed=3)
    moments = Moments.from_arrays(X, y, groups=groups)
    sums, fits, fit = fitted_from(moments)
    for d in range(5):
        losses = np.zeros((len(SPREADS), len(steady.PENALTIES) + 1))
        for other in set(range(5)) - {d}:
            kept = np.array(sorted(set(range(5)) - {d, other}))
            for s, (A, R) in enumerate(SPREADS):
                # The equations of the three domains that are left; their T is that of all five.
                (equations,) = steady.part_equations(sums, np.arange(5), [A], R)
                left = np.isin(np.arange(5), kept).astype(float)
                (coef,), (intercept,) = steady.fits_to(equations, left[None], sums)
                rows = (X[groups == other] - sums.centre_x) @ sums.back
                target = y[groups == other] - sums.centre_y
                predicted = np.einsum("ij,cjk->cik", rows, coef) + intercept[:, None]
                losses[s] += ((target - predicted) ** 2).mean(axis=(1, 2)) / 4
        weights = steady.candidate_weights(losses)
        coef = sum(np.tensordot(w, one.coef[d], 1) for w, one in zip(weights, fits, strict=True))
        b = sum(np.tensordot(w, one.intercept[d], 1) for w, one in zip(weights, fits, strict=True))
        rows = (X[groups == d] - sums.centre_x) @ sums.back
        error = ((y[groups == d] - sums.centre_y - rows @ coef - b) ** 2).mean()
        assert fit.nested[d] == pytest.approx(error, rel=1e-8)


def test_the_path_chooses_from_one_more_penalty_at_each_step():
    X, y, groups = rows_of(4, seed=1)
    sums, fits, fit = fitted(X, y, groups)
    for step, d in [(0, 1), (7, 2), (25, 0)]:
        best = [min(range(step + 1), key=lambda k: one.losses[k].mean()) for one in fits]
        least = np.array([one.losses[k].mean() for one, k in zip(fits, best, strict=True)])
        weights = least**-12.0 / (least**-12.0).sum()
        chosen = list(zip(weights, fits, best, strict=True))
        rows, target = (X[groups == d] - sums.centre_x) @ sums.back, y[groups == d] - sums.centre_y
        for of, errors in [(d, fit.curve), (4, fit.train)]:
            coef = sum(w * one.coef[of, k] for w, one, k in chosen)
            b = sum(w * one.intercept[of, k] for w, one, k in chosen)
            error = ((target - rows @ coef - b) ** 2).mean()
            assert errors[step, d] == pytest.approx(error, rel=1e-8)
    coef = sum(w * one.coef[-1, k] for w, one, k in chosen)  # of the last step, all penalties
    np.testing.assert_allclose(fit.coef, coef)


@pytest.mark.parametrize("small", [0, 32, 1000])
def test_penalty_paths_are_ridges_at_every_penalty(small, monkeypatch):
    monkeypatch.setattr(steady, "_SMALL", small)
    rng = np.random.default_rng(0)
    for p in (2, 7, 40):
        root = rng.normal(size=(3, p, max(p - 2, 1)))  # H is singular, the last even 0
        root[2] = 0
        H, h = root @ root.transpose(0, 2, 1), rng.normal(size=(3, p, 2))
        paths = steady.penalty_paths(H, h, p, 1e-15 * np.einsum("fjj->f", H))
        for one, target, path in zip(H[:2], h, paths, strict=False):
            for penalty, w in zip(steady.PENALTIES, path[1:], strict=True):
                expected = np.linalg.solve(one + penalty * np.trace(one) / p * np.eye(p), target)
                np.testing.assert_allclose(w, expected, atol=1e-8 * np.abs(expected).max())
        assert not paths[:, 0].any()
        assert not paths[2].any()


# --- by two routes ------------------------------------------------------------------------------


def same_fit(one, other, rtol=1e-8):
    (sums, _, fit), (sums2, _, fit2) = one, other
    for a, b in [
        (sums.back @ fit.coef, sums2.back @ fit2.coef),
        (
            fit.intercept + sums.centre_y - sums.centre_x @ sums.back @ fit.coef,
            fit2.intercept + sums2.centre_y - sums2.centre_x @ sums2.back @ fit2.coef,
        ),
        (fit.weights, fit2.weights),
        (fit.curve, fit2.curve),
        (fit.train, fit2.train),
    ]:
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-10)
    if fit.nested is not None:
        np.testing.assert_allclose(fit.nested, fit2.nested, rtol=rtol)


@given(seed=st.integers(0, 10_000), n_parts=st.integers(2, 7))
@settings(max_examples=15)
def test_parts_add_up_to_the_whole(seed, n_parts):
    X, y, groups = rows_of(seed=seed)
    part = np.random.default_rng(seed).integers(0, n_parts, len(X))
    parts = [
        Moments.from_arrays(X[part == a], y[part == a], groups=groups[part == a])
        for a in np.unique(part)
    ]
    whole = Moments.from_arrays(X, y, groups=groups)
    same_fit(fitted_from(sum(parts)), fitted_from(whole))


def test_more_columns_than_rows_take_the_short_way_to_the_same_fit(monkeypatch):
    X, y, groups = rows_of(4, p=60, least=5, most=8)
    short = fitted(X, y, groups)
    assert short[0].mean_x.shape[1] < len(X)
    monkeypatch.setattr(steady, "_spanned", lambda sums: sums)
    long = fitted(X, y, groups)
    assert long[0].mean_x.shape[1] == 60
    same_fit(short, long, rtol=1e-7)


def test_large_matrices_are_inverted_one_by_one_with_the_same_result(monkeypatch):
    rows = rows_of(4, p=6)
    whole = fitted(*rows)
    monkeypatch.setattr(steady, "_BATCHED", 2)
    monkeypatch.setattr(steady, "_CELLS", 40)
    same_fit(whole, fitted(*rows))


def test_many_columns_are_made_tridiagonal_with_the_same_result(monkeypatch):
    rows = rows_of(5, p=6, n_targets=2)
    whole = fitted(*rows)
    monkeypatch.setattr(steady, "_SMALL", 1)
    same_fit(whole, fitted(*rows))


def test_several_targets_share_their_candidates():
    X, y, groups = rows_of(n_targets=3, seed=2)
    _, fits, _ = fitted(X, y, groups)
    alone = [fitted(X, y[:, [k]], groups)[1] for k in range(3)]
    for s in range(len(SPREADS)):
        for k in range(3):
            np.testing.assert_allclose(fits[s].coef[..., [k]], alone[k][s].coef, rtol=1e-8)
        mean = np.mean([one[s].losses for one in alone], axis=0)
        np.testing.assert_allclose(fits[s].losses, mean, rtol=1e-8)


# --- by invariance ------------------------------------------------------------------------------


@given(seed=st.integers(0, 10_000))
@settings(max_examples=10)
def test_the_order_of_domains_and_rows_does_not_matter(seed):
    X, y, groups = rows_of(seed=seed)
    rng = np.random.default_rng(seed)
    names, order = rng.permutation(5), rng.permutation(len(X))
    sums, _, fit = fitted(X, y, groups)
    sums2, _, fit2 = fitted(X[order], y[order], names[groups][order])
    np.testing.assert_allclose(sums.back @ fit.coef, sums2.back @ fit2.coef, rtol=1e-8, atol=1e-10)
    for a, b in [(fit.curve[-1], fit2.curve[-1]), (fit.nested, fit2.nested)]:
        np.testing.assert_allclose(a, b[names], rtol=1e-8)


def test_weights_are_repetitions():
    X, y, groups = rows_of()
    times = np.random.default_rng(0).integers(1, 4, len(X))
    repeated = [np.repeat(array, times, axis=0) for array in (X, y, groups)]
    same_fit(fitted(X, y, groups, weight=times.astype(float)), fitted(*repeated))


def test_units_do_not_matter():
    X, y, groups = rows_of()
    factor, shift = np.array([1e-5, -2.0, 1e6, 3.0]), np.array([0.0, 1e3, -5e6, 2.0])
    sums, _, fit = fitted(X, y, groups)
    sums2, _, fit2 = fitted(X * factor + shift, 10 * y + 7, groups)
    expected = (sums.back @ fit.coef)[:, 0] * 10
    np.testing.assert_allclose((sums2.back @ fit2.coef)[:, 0] * factor, expected, rtol=1e-6)
    np.testing.assert_allclose(fit2.nested, 100 * fit.nested, rtol=1e-6)


def test_constant_columns_have_no_effect():
    X, y, groups = rows_of()
    wide = np.column_stack([X, np.full(len(X), 0.1), groups * 0.0])
    sums, _, fit = fitted(wide, y, groups)
    coef = sums.back @ fit.coef
    assert not coef[4:].any()
    assert np.isfinite(coef).all()
    for n_constant in (2, 500):  # more columns than rows in all
        wide = np.column_stack([X, np.full((len(X), n_constant), 0.1)])
        _, _, plain = fitted(X, y, groups)
        sums, _, fit = fitted(wide, y, groups)
        np.testing.assert_allclose(fit.losses, plain.losses, rtol=1e-9)
        np.testing.assert_allclose((sums.back @ fit.coef)[4:], 0.0, atol=1e-12)
    _, _, nothing = fitted(np.ones((len(X), 2)), y, groups)
    np.testing.assert_allclose(nothing.curve, np.tile(nothing.curve[:1], (26, 1)))


def test_domains_far_apart_keep_the_slopes_within_them():
    # The domains' means differ by 1e6 times the spread within them.
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(5), 40)
    X = rng.normal(size=(200, 2)) + 1e6 * rng.normal(size=(5, 2))[groups]
    y = X[:, :1] - rng.normal(size=5)[groups][:, None] * 1e6 + 0.1 * rng.normal(size=(200, 1))
    sums, fits, _ = fitted(X, y, groups)
    fit = fits[SPREADS.index((math.inf, 0.0))]
    np.testing.assert_allclose((sums.back @ fit.coef[-1, -1])[:, 0], [1, 0], atol=0.02)


@pytest.mark.parametrize("n_domains", [2, 3])
def test_few_domains_have_no_nested_errors(n_domains):
    _, _, fit = fitted(*rows_of(n_domains), nested=False)
    assert fit.nested is None
    assert np.isfinite(fit.curve).all()


def test_what_is_left_of_one_row_is_rounding_error_and_gives_the_null():
    X, y = np.array([[4.87, 5.13], [5.64, 5.1]]), np.array([[1.0], [2.0]])
    _, fits, fit = fitted(X, y, np.arange(2), nested=False)  # one row is left for each fit
    for one in fits:
        assert not one.coef[:2].any()
    np.testing.assert_allclose(fit.curve, 1.0)


def test_columns_constant_within_domains_say_nothing_within_them():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(5), 10)
    X = (rng.normal(size=(5, 2)) * 100 + 0.1)[groups]
    _, fits, _ = fitted(X, rng.normal(size=(50, 1)), groups)
    for (A, _), one in zip(SPREADS, fits, strict=True):
        assert one.coef.any() == math.isfinite(A)


def test_single_row_domains_are_fine():
    X, y, _ = rows_of(8)
    _, _, fit = fitted(X, y, np.arange(len(X)))
    assert np.isfinite(fit.nested).all()


def test_float32_moments_give_nearly_the_same():
    X, y, groups = rows_of(4, p=3, least=20, most=30)
    low = Moments.from_arrays(X, y, groups=groups, dtype=np.float32)
    high = Moments.from_arrays(X, y, groups=groups)
    (sums, _, fit), (sums2, _, fit2) = fitted_from(low), fitted_from(high)
    np.testing.assert_allclose(sums.back @ fit.coef, sums2.back @ fit2.coef, rtol=1e-3)


# --- weights and intervals ----------------------------------------------------------------------


def test_weights_of_candidates_by_hand():
    # Each spread at its least loss, 1 and 2, of equal ones at the first: 1 and 2^-12.
    losses = np.array([[3.0, 1.0, 1.0], [4.0, 5.0, 2.0]])
    expected = np.array([[0, 1, 0], [0, 0, 2.0**-12]]) / (1 + 2.0**-12)
    np.testing.assert_allclose(steady.candidate_weights(losses), expected)
    # A perfect candidate takes all.
    perfect = [[0, 1, 0], [0, 0, 0]]
    np.testing.assert_array_equal(steady.candidate_weights(losses - 1), perfect)


def test_the_interval_of_one_new_domain_by_hand():
    # Logs 0, 1, 2: mean 1, sd 1, D = 3; t_2 at .975 is 4.3027; half = 4.3027 sqrt(4/3) = 4.9683.
    low, high = new_domain_interval(np.exp([0.0, 1.0, 2.0]), 0.95, 1e-16)
    assert low == pytest.approx(math.exp(1 - 4.96829), rel=1e-4)
    assert high == pytest.approx(math.exp(1 + 4.96829), rel=1e-4)
    # Without the logarithm: -1, 0 and 1, mean 0, sd 1, half = 4.3027 sqrt(4/3).
    low, high = new_domain_interval(np.array([-1.0, 0.0, 1.0]), 0.95, None)
    assert (low, high) == pytest.approx((-4.96829, 4.96829), rel=1e-4)
    # Each of two domains is judged by the other.
    assert new_domain_interval(np.array([1.0, 2.0]), 0.95, 1e-16) == (0.0, math.inf)
    assert new_domain_interval(np.array([1.0, 2.0]), 0.95, None) == (-math.inf, math.inf)
    # Student's interval of the mean of 1, 2, 3: 2 ± 4.3027/sqrt(3).
    low, high = mean_interval(np.array([1.0, 2.0, 3.0]), 0.95)
    assert (low, high) == pytest.approx((0.0, 2 + 4.302653 / math.sqrt(3)))


def test_zero_errors_are_raised_to_eps_times_the_null():
    errors, null = np.array([0.0, 1.0, 1.0, 1.0]), 2.0
    raised = np.array([2 * np.finfo(float).eps, 1, 1, 1])
    assert new_domain_interval(errors, 0.9, null) == new_domain_interval(raised, 0.9, null)
    assert new_domain_interval(np.zeros(3), 0.9, 0.0) == (0.0, 0.0)
    assert new_domain_interval(np.array([1e-99, 1e-9, 1.0]), 0.999, 1e-200)[1] == math.inf


@pytest.mark.parametrize("n_domains", [3, 5, 20])
def test_the_interval_holds_a_new_domain_as_often_as_it_says(n_domains):
    rng = np.random.default_rng(0)
    draws = rng.lognormal(sigma=0.7, size=(4000, n_domains + 1))
    held = [
        low <= row[-1] <= high
        for row in draws
        for low, high in [new_domain_interval(row[:-1], 0.9, 1e-16)]
    ]
    assert stats.binomtest(sum(held), len(held), 0.9).pvalue > 0.001
