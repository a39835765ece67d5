"""The walk by hand, by brute force, by two routes, by invariance and by the paper."""

import itertools
import math

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.special import polygamma

from holdtrue import Moments
from holdtrue.datasets import make_domains
from holdtrue.domains import bounds, covariances, kernel
from holdtrue.domains.covariances import domains_from_moments, domains_from_rows


def made(seed=0, n_domains=6, n_rows=30, p=8):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_domains), n_rows)
    X = rng.normal(size=(len(groups), p)) @ rng.normal(size=(p, p)) + 3
    y = X @ rng.normal(size=p) + (X[:, 0] * rng.normal(size=n_domains)[groups]) + 5
    return X, y, groups


def walked(X, y, groups, n_steps, rule="t", weight=None, **options):
    sums = Moments.from_arrays(X, y, groups=groups)
    weight = np.ones(len(sums.domains)) if weight is None else weight
    walk = kernel.Walk(domains_from_moments(sums), weight, rule=rule, **options)
    for _ in range(n_steps):
        if not walk.step():
            break
    return walk


# --- by hand ------------------------------------------------------------------------------------


def test_one_feature_by_hand():
    # Two domains; x = ±1, so E[x²] = 1. E[xy|A] = (2·1 + (-1)·(-2))/2 = 2, E[xy|B] = 4.
    # mu = 3, s² = ((2-3)² + (4-3)²)/1 = 2, T = 3/sqrt(2/2) = 3, w = 3.
    X = np.array([[1.0], [-1.0], [1.0], [-1.0]])
    y = np.array([2.0, -2.0, 4.0, -4.0])
    walk = walked(X, y, ["A", "A", "B", "B"], 1)
    assert walk.t == [pytest.approx(3.0)]
    assert walk.coefficients(1)[0, 0] == pytest.approx(3.0)
    # Losses: E[y²] = 4 and 16; then (2 - 3)² = 1 and (4 - 3)² = 1.
    np.testing.assert_allclose(walk.losses, [[4, 16], [1, 1]])
    # Bonferroni with one candidate: Student's quantile on 1 degree of freedom.
    assert walk.levels()[0] == pytest.approx(stats.t.isf(0.025, 1))


def test_a_feature_that_flips_its_sign_comes_last_though_its_mean_effect_is_largest():
    X, y, groups = [], [], []
    for d, slope in enumerate([5.0, -2.0, 5.0, -2.0]):  # mean 1.5 against a steady 1
        X += [[1, 1], [1, -1], [-1, 1], [-1, -1]]
        y += [1 + slope, 1 - slope, -1 + slope, -1 - slope]
        groups += [d] * 4
    rows = np.array(X, float), np.array(y), groups
    assert walked(*rows, 1, "t").order == [0]
    assert walked(*rows, 1, "greedy").order == [1]


def test_levels_and_conditions_of_theorem_1_and_corollary_3():
    assert bounds.bound_factor(100, 0.05) == pytest.approx(math.sqrt(4 * math.log(4000)))
    # p <= (δ/2) e^{n/8}  <=>  n >= 8 log(2 p/δ) = 8 log 4000 = 66.4
    assert bounds.domains_needed(math.log(100), 0.05) == 67
    g = np.array([[1.0, 0.0], [3.0, 2.0]] * 200)
    bound = bounds.regret_bound(g, np.ones(400), np.diag([4.0, 1.0]), 3, 0.1)
    # In the orthonormal basis: (½, 1½) and (0, 2), spreads n/(n-1) (¼, 1).
    assert bound == pytest.approx(400 / 399 * 1.25 * (16 * math.log(3) + 4 * math.log(20)) / 400)
    assert bounds.regret_domains_needed(2, 3, 0.1) == math.ceil(8 * math.log(2 * 3**2 * 2 / 0.1))
    assert bounds.regret_bound(g[:, :0], np.ones(400), np.eye(0), 3, 0.1) == 0


# --- Smyth's moderation -------------------------------------------------------------------------


def test_trigamma_is_inverted():
    x = np.array([1e-8, 1e-5, 0.01, 0.5, 1, 5, 1e3, 1e6, 1e9])
    np.testing.assert_allclose(polygamma(1, kernel.inverse_trigamma(x)), x, rtol=1e-3)
    np.testing.assert_allclose(polygamma(1, kernel.inverse_trigamma(x[1:-1])), x[1:-1], rtol=1e-7)


def test_the_prior_is_found_where_it_is_true():
    rng = np.random.default_rng(0)
    d0, s0, n, p = 6.0, 2.0, 9, 200_000
    true = d0 * s0 / rng.chisquare(d0, size=p)
    s2 = true * rng.chisquare(n - 1, size=p) / (n - 1)
    mu = rng.normal(size=p) * np.sqrt(true / n)
    t, df = kernel.moderated_t(mu, s2, np.ones(p), n)
    assert df == pytest.approx(d0 + n - 1, rel=0.03)
    # Under the null the moderated T has Student's distribution on d0 + n - 1.
    assert stats.kstest(t, stats.t(df).cdf).pvalue > 0.01


def test_equal_spreads_are_pooled_wholly():
    rng = np.random.default_rng(0)
    s2 = np.full(50, 2.0)
    mu = rng.normal(size=50)
    t, df = kernel.moderated_t(mu, s2, np.ones(50), 5)
    np.testing.assert_allclose(t, mu / np.sqrt(2 / 5))
    assert df == 50 * 4


def test_without_other_features_the_moderated_t_is_the_ordinary_one():
    X, y, groups = made(p=1)
    assert walked(X, y, groups, 1, "moderated").t == walked(X, y, groups, 1, "t").t


# --- by brute force -----------------------------------------------------------------------------


def brute_force(X, y, groups, n_steps, rule, centre=True, stepwise=False):
    """Residual covariances recomputed from the rows at every step; the papers' §3.3."""
    names = np.unique(groups)
    n = len(names)
    if centre:
        X = X - np.mean([X[groups == d].mean(axis=0) for d in names], axis=0)
        y = y - np.mean([y[groups == d].mean() for d in names])
    e2 = np.mean([np.mean(X[groups == d] ** 2, axis=0) for d in names], axis=0)
    share = sum(np.where(groups == d, 1 / (n * (groups == d).sum()), 0) for d in names)
    w, order, out = np.zeros(X.shape[1]), [], []
    for _ in range(n_steps):
        r = y - X @ w
        g = np.array([(X[groups == d] * r[groups == d, None]).mean(axis=0) for d in names])
        mu, s2 = g.mean(axis=0), g.var(axis=0, ddof=1)
        t = mu / np.sqrt(s2 / n)
        strength = {
            "greedy": mu**2 / e2,
            "t": np.abs(t),
            "moderated": np.abs(kernel.moderated_t(mu, s2, e2, n)[0]),
        }[rule]
        if stepwise:
            strength[order] = -1
        i = int(np.argmax(strength))
        order.append(i)
        if stepwise:
            root = np.sqrt(share)
            w = np.zeros(X.shape[1])
            w[order] = np.linalg.lstsq(root[:, None] * X[:, order], root * y)[0]
        else:
            w[i] += mu[i] / e2[i]
        out.append([np.mean((y - X @ w)[groups == d] ** 2) for d in names])
    return order, w, np.array(out)


@pytest.mark.parametrize("rule", kernel.RULES)
@pytest.mark.parametrize("centre", [True, False])
@pytest.mark.parametrize("stepwise", [True, False])
def test_the_walk_is_that_of_brute_force(rule, centre, stepwise):
    X, y, groups = made()
    n_steps = 8 if stepwise else 25
    order, w, losses = brute_force(X, y, groups, n_steps, rule, centre, stepwise)
    walk = walked(
        X, y, groups, n_steps, rule, center="global" if centre else "none", stepwise=stepwise
    )
    assert walk.order == order
    np.testing.assert_allclose(walk.coefficients(n_steps)[0], w, rtol=1e-6)
    np.testing.assert_allclose(walk.losses[1:], losses, rtol=1e-6, atol=1e-9)


def test_a_domain_of_weight_zero_decides_nothing_and_is_scored():
    X, y, groups = made()
    weight = np.array([1.0, 1, 0, 1, 1, 1])
    held = walked(X, y, groups, 10, "moderated", weight)
    kept = groups != 2
    alone = walked(X[kept], y[kept], groups[kept], 10, "moderated")
    assert held.order == alone.order
    intercept = held.center_y - held.coefficients(10) @ held.center_x
    error = y - X @ held.coefficients(10)[0] - intercept
    assert held.losses[10][2] == pytest.approx(np.mean(error[groups == 2] ** 2))


def test_several_targets_interleave_the_walks_that_each_would_take():
    X, y, groups = made()
    Y = np.column_stack([y, X[:, 3] ** 2, y * X[:, 1]])
    sums = Moments.from_arrays(X, Y, groups=groups)
    walk = kernel.Walk(domains_from_moments(sums), np.ones(6), rule="t")
    for _ in range(30):
        walk.step()
    for k in range(3):
        own = [i for i, target in zip(walk.order, walk.targets, strict=True) if target == k]
        assert own == walked(X, Y[:, k], groups, len(own), "t").order


def test_fixed_features_enter_first_by_least_squares():
    X, y, groups = made()
    walk = walked(X, y, groups, 4, "t", fixed=[5, 2])
    assert walk.order[:2] == [5, 2]
    assert np.isnan(walk.t[:2]).all()
    _, _, losses = brute_force(X[:, [5, 2]], y, groups, 2, "greedy", stepwise=True)
    np.testing.assert_allclose(walk.losses[2], losses[1])


def test_unlabelled_rows_give_the_second_moment():
    X, y, groups = made()
    sums = domains_from_moments(Moments.from_arrays(X, y, groups=groups))
    wide = kernel.Walk(sums, np.ones(6), rule="t", unlabelled=(X.mean(axis=0), 4 * X.var(axis=0)))
    usual = kernel.Walk(sums, np.ones(6), rule="t")
    wide.step()
    usual.step()
    assert wide.order == usual.order
    i = wide.order[0]
    assert wide.w[0, i] == pytest.approx(usual.w[0, i] * usual.e2[i] / wide.e2[i])
    assert wide.e2[i] == pytest.approx(4 * X[:, i].var(), rel=1e-6)


# --- by two routes ------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", kernel.RULES)
@pytest.mark.parametrize("stepwise", [True, False])
def test_columns_made_when_needed_give_the_picks_of_stored_matrices(rule, stepwise):
    X, y, groups = made(p=100, n_rows=20)
    shuffled = np.random.default_rng(1).permutation(len(y))
    weight = np.random.default_rng(2).uniform(0.5, 2, size=len(y))
    walks = []
    for rows, room in ((np.arange(len(y)), 1e9), (shuffled, 0), (shuffled, 6 * 100 * 8 * 40)):
        domains = domains_from_rows(
            X[rows], y[rows, None], groups[rows], weight[rows], n_columns=100, max_bytes=room
        )
        walk = kernel.Walk(domains, np.ones(6), rule=rule, stepwise=stepwise)
        for _ in range(40):
            walk.step()
        walks.append(walk)
    assert type(walks[0].domains.columns) is not type(walks[1].domains.columns)
    for other in walks[1:]:
        assert other.order == walks[0].order
        np.testing.assert_allclose(other.losses, walks[0].losses, rtol=1e-6)


@pytest.mark.parametrize("rule", kernel.RULES)
@pytest.mark.parametrize("stepwise", [True, False])
@pytest.mark.parametrize("far", [0.0, 1e8])
def test_steps_ahead_change_no_pick(rule, stepwise, far, monkeypatch):
    monkeypatch.setattr(covariances, "_FIRST", 8)
    X, y, groups = made(p=100, n_rows=40)
    Y = np.stack([y, y * X[:, 1]], axis=1)
    X[groups == 2] += far
    weight = np.random.default_rng(2).uniform(0.5, 2, size=len(y))
    walks = []
    for rows, n_columns, room in (
        (X, 100, 1e9),
        (X, 30, 1e9),
        (X, 30, 6 * 100 * 8 * 40),
        (X if far else sparse.csr_array(X), 30, 1e9),
    ):
        domains = domains_from_rows(rows, Y, groups, weight, n_columns=n_columns, max_bytes=room)
        walks.append(
            kernel.Walk(domains, np.ones(6), rule=rule, stepwise=stepwise, center="domain")
        )
        walks[-1].run(30)
    assert type(walks[0].domains.columns) is not type(walks[1].domains.columns)
    for other in walks[1:]:
        assert other.order == walks[0].order
        np.testing.assert_allclose(other.losses, walks[0].losses, rtol=1e-5)


def test_seven_parts_give_the_walk_of_one():
    X, y, groups = made()
    parts = [Moments.from_arrays(X[i::7], y[i::7], groups=groups[i::7]) for i in range(7)]
    total = sum(parts[1:], parts[0])
    walk = kernel.Walk(domains_from_moments(total), np.ones(6), rule="moderated")
    for _ in range(20):
        walk.step()
    assert walk.order == walked(X, y, groups, 20, "moderated").order


def test_float32_matrices_give_the_picks_of_float64():
    data = make_domains(n_features=60, random_state=1)
    walks = []
    for dtype in (np.float64, np.float32):
        sums = Moments.from_arrays(data.X, data.y, groups=data.groups, dtype=dtype)
        assert sums.scatter_xx.dtype == dtype
        walk = kernel.Walk(domains_from_moments(sums), np.ones(8), rule="moderated")
        for _ in range(20):
            walk.step()
        walks.append(walk)
    assert walks[0].order == walks[1].order
    np.testing.assert_allclose(walks[0].losses, walks[1].losses, rtol=1e-4)


# --- by invariance ------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", kernel.RULES)
def test_the_scale_of_features_and_of_the_target_does_not_matter(rule):
    X, y, groups = made()
    scale = 10.0 ** np.arange(-4, 4)
    one, other = walked(X, y, groups, 15, rule), walked(X * scale, 1e3 * y, groups, 15, rule)
    assert one.order == other.order
    np.testing.assert_allclose(one.t, other.t, rtol=1e-6)


def test_neither_the_order_of_rows_nor_the_names_of_domains_matter():
    X, y, groups = made()
    order = np.random.default_rng(0).permutation(len(y))
    names = np.array(["f", "e", "d", "c", "b", "a"])
    one, other = walked(X, y, groups, 15), walked(X[order], y[order], names[groups][order], 15)
    assert one.order == other.order
    np.testing.assert_allclose(one.t, other.t)


@pytest.mark.parametrize("rule", kernel.RULES)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("n_targets", [1, 2])
def test_equal_features_are_entered_by_their_first_whatever_rounding_says(
    rule, compiled, n_targets
):
    rng = np.random.default_rng(0)
    X, y, groups = made(p=4)
    X = np.hstack([X, X / 3, X * 2.54])  # other units
    Y = np.column_stack([y, -y])[:, :n_targets]
    for _ in range(5):
        at = rng.permutation(len(X))
        data = domains_from_moments(Moments.from_arrays(X[at], Y[at], groups=groups[at]))
        walk = kernel.Walk(data, np.ones(6), rule=rule)
        walk.run(12, compiled=compiled)
        assert set(walk.order) <= {0, 1, 2, 3}
        assert walk.targets[0] == 0


def test_a_domain_counts_once_however_many_rows_it_has():
    X, y, groups = made()
    twice = np.concatenate([np.arange(len(y)), np.flatnonzero(groups == 3)])
    one, other = walked(X, y, groups, 15), walked(X[twice], y[twice], groups[twice], 15)
    assert one.order == other.order
    np.testing.assert_allclose(one.t, other.t)


# --- odd data -----------------------------------------------------------------------------------


def test_a_constant_feature_is_never_picked_and_an_exact_fit_ends_the_walk():
    X, y, groups = made()
    X[:, 2] = 0.1
    walk = walked(X, X[:, 5] * 2 + 1, groups, 50, "t", stepwise=True)
    assert walk.order[0] == 5
    assert 2 not in walk.order
    assert walk.ended
    assert len(walk.order) < 8
    nothing = walked(np.full((6, 2), 7.0), y[:6], [0, 0, 1, 1, 2, 2], 5)
    assert nothing.order == []
    assert nothing.ended


def test_stepwise_passes_over_a_feature_that_depends_on_the_picked_ones():
    X, y, groups = made()
    X = np.column_stack([X, X[:, 0] + 2 * X[:, 1], X[:, 0]])
    walk = walked(X, y, groups, 20, "greedy", stepwise=True)
    assert len(walk.order) == 8


# --- sign flips ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", kernel.RULES)
def test_the_sign_flip_p_value_is_that_of_enumeration(rule):
    rng = np.random.default_rng(0)
    g = rng.normal(size=(2, 5, 7)) + 0.4
    e2 = rng.uniform(1, 2, size=7)

    def strongest(signs):
        best = 0.0
        for own in g * np.array(signs)[:, None]:
            mu, s2 = own.mean(axis=0), own.var(axis=0, ddof=1)
            best = max(best, kernel.strengths(mu, s2, e2, 5, rule)[1].max())
        return best

    everything = [strongest(signs) for signs in itertools.product([1, -1], repeat=5)]
    expected = np.mean(np.array(everything) >= everything[0] * (1 - 1e-9))
    patterns = kernel.sign_patterns(5, 1000, np.random.RandomState(0))
    assert patterns.shape == (16, 5)
    assert (patterns[0] == 1).all()
    floor = np.full((2, 7), 1e-300)
    assert kernel.sign_flip_p_value(g, np.ones(5), e2, floor, rule, patterns) == pytest.approx(
        expected
    )


def test_many_domains_are_flipped_at_random():
    patterns = kernel.sign_patterns(20, 500, np.random.RandomState(0))
    assert patterns.shape == (500, 20)
    assert set(np.unique(patterns)) == {-1.0, 1.0}
    assert (patterns[0] == 1).all()


@pytest.mark.parametrize("rule", kernel.RULES)
def test_the_first_step_holds_its_level_under_the_null(rule):
    # Effects of no feature: heavy tails, correlated features, unequal spreads.
    rng = np.random.default_rng(0)
    patterns = kernel.sign_patterns(8, 0, np.random.RandomState(0))
    mixing = rng.normal(size=(10, 30))
    p_values = np.array(
        [
            kernel.sign_flip_p_value(
                (rng.standard_t(2, size=(8, 10)) * rng.uniform(0.2, 3, size=(8, 1)) @ mixing)[None],
                np.ones(8),
                np.ones(30),
                np.full((1, 30), 1e-300),
                rule,
                patterns,
            )
            for _ in range(600)
        ]
    )
    for alpha in (0.05, 0.2):
        share = np.mean(p_values <= alpha)
        assert abs(share - alpha) < 4 * math.sqrt(alpha / 600)


@pytest.mark.parametrize("rule", ["t", "moderated"])
def test_bonferroni_does_not_exceed_its_level_under_the_null(rule):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(8), 20)
    rejected = 0
    for _ in range(400):
        X = rng.normal(size=(160, 25))
        walk = walked(X, rng.normal(size=160), groups, 1, rule)
        rejected += abs(walk.t[0]) >= walk.levels()[0]
    assert rejected / 400 < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


# --- the paper's claim --------------------------------------------------------------------------


def test_greedy_parts_from_its_source_score_where_t_greedy_stays():
    gaps = {rule: [] for rule in ("greedy", "t", "moderated")}
    unseen = {rule: [] for rule in gaps}
    for seed in range(12):
        data = make_domains(8, 60, n_fickle=12, n_new_domains=8, random_state=seed)
        X = np.concatenate([data.X, data.X_new])
        y = np.concatenate([data.y, data.y_new])
        groups = np.concatenate([data.groups, data.groups_new])
        weight = np.where(np.arange(16) < 8, 1.0, 0.0)
        for rule, found in gaps.items():
            losses = walked(X, y, groups, 6, rule, weight).losses[6]
            found.append(losses[8:].mean() - losses[:8].mean())
            unseen[rule].append(losses[8:].mean())
    for rule in ("t", "moderated"):
        assert np.mean(gaps[rule]) < np.mean(gaps["greedy"])
        assert np.mean(unseen[rule]) < np.mean(unseen["greedy"])


def test_stepwise_passes_over_a_near_copy_of_a_picked_feature():
    # The copy differs by a millionth, which follows y: 1e-12 of its square, below the limit.
    rng = np.random.default_rng(0)
    groups, X = np.repeat(np.arange(6), 50), rng.normal(size=(300, 3))
    left = rng.normal(size=300)
    X[:, 1] = X[:, 0] + 1e-6 * left
    walk = walked(X, 3 * X[:, 0] + left, groups, 3, "greedy", stepwise=True)
    assert sorted(walk.order) in ([0, 2], [1, 2])


@pytest.mark.parametrize("n_targets", [1, 5])
@pytest.mark.parametrize("away", [0.0, 1e4])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_first_moments_are_those_of_the_definition(n_targets, away, dtype, monkeypatch):
    monkeypatch.setattr(covariances, "_BATCH_CELLS", 40)
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(60, 4)) + away).astype(dtype)
    X[:, 3] = 7
    Y, weight = rng.normal(size=(60, n_targets)), rng.uniform(1, 2, size=60)
    mean_x, var_x, mean_y, cov_xy, var_y = covariances.first_moments(X, Y, weight)
    share = weight / weight.sum()
    moved, moved_y = X.astype(float) - share @ X.astype(float), Y - share @ Y
    rtol = 1e-9 if dtype is np.float64 else 1e-4
    np.testing.assert_allclose(mean_x, share @ X.astype(float), rtol=rtol, atol=rtol)
    np.testing.assert_allclose(var_x, share @ moved**2, rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(cov_xy, (share[:, None] * moved).T @ moved_y, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(mean_y, share @ Y)
    np.testing.assert_allclose(var_y, share @ moved_y**2)


@pytest.mark.parametrize("rule", kernel.RULES)
@pytest.mark.parametrize("center", ["global", "domain", "none"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_targets", [1, 3])
def test_compiled_steps_are_the_steps_of_the_walk(rule, center, dtype, n_targets):
    rng = np.random.default_rng(3)
    X = (rng.normal(size=(240, 12)) + rng.normal(size=12)).astype(dtype)
    Y = X[:, :3].sum(axis=1, keepdims=True) + rng.normal(size=(240, n_targets))
    codes = np.repeat(np.arange(6), 40)
    X[:, 7] = codes  # nothing varies within domains
    data = domains_from_rows(X, Y, codes, np.ones(240), n_columns=12, max_bytes=2**20)
    weight = np.array([1.0, 1, 1, 0, 1, 1])
    plain, fast = (kernel.Walk(data, weight, rule=rule, center=center, fixed=[5]) for _ in range(2))
    assert plain.run(25) == fast.run(25, compiled=True) == 25
    assert fast.order == plain.order
    assert fast.targets == plain.targets
    for name in ("t", "df", "losses"):
        np.testing.assert_allclose(getattr(fast, name), getattr(plain, name), rtol=1e-5)
    np.testing.assert_allclose(fast.coefficients(25), plain.coefficients(25), atol=1e-6)
    assert fast.step()
    assert plain.step()
    assert fast.order == plain.order


def test_compiled_steps_end_where_nothing_is_left():
    X = np.repeat(np.eye(4)[:, :2], 3, axis=0) + np.arange(12)[:, None] % 3
    y = np.zeros((12, 1))
    data = domains_from_rows(
        X, y, np.repeat(np.arange(4), 3), np.ones(12), n_columns=2, max_bytes=2**20
    )
    walk = kernel.Walk(data, np.ones(4), rule="moderated")
    assert walk.run(5, compiled=True) == 0
    assert walk.ended
