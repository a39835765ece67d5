import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.sources import kernel


def standardise(*arrays, weight=None):
    weight = np.ones(len(arrays[0])) if weight is None else weight
    return [kernel.standardised(np.asarray(a, float), weight)[0] for a in arrays]


def problem(m=12, p=30, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(m, p))
    Z, y = standardise(Z, (Z[:, 3] - 0.5 * Z[:, 5] + 0.3 * rng.normal(size=m))[:, None])
    return Z, y[:, 0]


def brute_force(Z, y, Lam, k):
    """The definition: each step maximises ``b_Sᵀ (C + ΛI)_S⁻¹ b_S``; the lowest of ties wins."""
    chosen, values = [], []
    for _ in range(k):
        gains = np.full(Z.shape[1], -np.inf)
        for i in set(range(Z.shape[1])) - set(chosen):
            S = Z[:, [*chosen, i]]
            b = S.T @ y
            gains[i] = b @ np.linalg.solve(S.T @ S + Lam * np.eye(S.shape[1]), b)
        best = gains.max()
        rise = best - (values[-1] if values else 0)
        chosen.append(int(np.flatnonzero(gains >= best - 1e-9 * rise)[0]))
        values.append(best)
    return chosen, np.array(values)


def algorithm_1(Z, y, lam, k):
    """As printed, but for picking k in place of k + 1, and for the tie rule."""
    m, p = Z.shape
    K, G, S = np.zeros((m, m)), np.eye(m) / lam, []
    before = 0.0
    for _ in range(k):
        scores = np.full(p, -np.inf)
        for i in set(range(p)) - set(S):
            z = Z[:, i]
            changed = G - np.outer(G @ z, z @ G) / (1 + z @ G @ z)
            scores[i] = y @ (K + np.outer(z, z)) @ changed @ y
        best = scores.max()
        i = int(np.flatnonzero(scores >= best - 1e-9 * (best - before))[0])
        before = best
        z = Z[:, i]
        S.append(i)
        K = K + np.outer(z, z)
        G = G - np.outer(G @ z, z @ G) / (1 + z @ G @ z)
    return S, np.array([Z[:, i] @ G @ y for i in S])


# --- by hand ------------------------------------------------------------------------------------


def test_two_columns_by_hand():
    # y = ±1; z_0 = y but for one row, z_1 = orthogonal to z_0. Λ = mλ = 4.
    y = np.array([1.0, 1, -1, -1])
    Z = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    fit = kernel.greedy(Z, y, 4.0, 1.0, 2, 0.0)
    # a_0 = 4, den = 4 + 4: score 2, fall 2/4. z_1 ⊥ y: nothing further.
    assert fit.order.tolist() == [0]
    np.testing.assert_allclose(fit.q**2 / 4, [0.5])
    np.testing.assert_allclose(fit.weight_path, [[0], [0.5]])  # 4/(4 + 4)
    np.testing.assert_allclose(fit.train_errors, [1, 0.25])  # (1 - .5)²
    assert fit.reason == "no further candidate lowers the error"


def test_standardised_columns_by_hand():
    # Weights 1, 3: mean (0 + 3·4)/4 = 3, variance (9 + 3)/4 = 3.
    made, mean, scale = kernel.standardised(np.array([[0.0, 7], [4, 7]]), np.array([1.0, 3]))
    np.testing.assert_allclose(mean, [3, 7])
    np.testing.assert_allclose(scale, [np.sqrt(3), 1])
    np.testing.assert_allclose(made, [[-np.sqrt(3), 0], [1, 0]])


def test_the_59_trick_by_its_formula():
    assert kernel.candidate_count() == 59  # log(.05)/log(.95) = 58.4
    assert kernel.candidate_count(0.99, 0.99) == 459
    assert kernel.candidate_count(0.5, 0.5) == 1
    with pytest.raises(ValueError, match=r"quantile must lie between 0 and 1\. Got 1"):
        kernel.candidate_count(quantile=1)


# --- by brute force -----------------------------------------------------------------------------


@st.composite
def problems(draw):
    m = draw(st.integers(3, 9))
    p = draw(st.integers(1, 8))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    Z = rng.normal(size=(m, p))
    for _ in range(draw(st.integers(0, 4))):
        source, target = rng.integers(p, size=2)
        Z[:, target] = Z[:, source] * draw(st.sampled_from([1.0, -1.0, 2.5]))
        near = draw(st.sampled_from([0.0, 0.0, 1e-3, 1e-5]))
        Z[:, target] += near * rng.normal(size=m)
    if draw(st.booleans()):
        Z[:, 0] = 3.0
    y = np.sign(rng.normal(size=m)) if draw(st.booleans()) else rng.normal(size=m)
    lam = draw(st.sampled_from([1e-3, 0.1, 1.0, 10.0]))
    return Z, y, lam


@settings(max_examples=150, deadline=None)
@given(problems())
def test_picks_are_those_of_brute_force_and_of_algorithm_1(case):
    Z, y, lam = case
    m, p = Z.shape
    Z, y = standardise(Z, y[:, None])
    y = y[:, 0]
    # Steps that gain less than 1e-5 (the paper has 1e-4) are rounding error beside small λ: which
    # of two equal columns takes such a step is not determined.
    tol = 1e-5
    fit = kernel.greedy(Z, y, m, lam, p, tol)
    k = len(fit.order)
    # Equal columns are one candidate: which of them enters first is left to rounding.
    first = [
        next(j for j in range(p) if np.allclose(Z[:, j], Z[:, i], atol=1e-8)) for i in range(p)
    ]

    def same(one, other):
        return [first[i] for i in one] == [first[i] for i in other]

    order, values = brute_force(Z, y, m * lam, k)
    assert same(fit.order, order)
    np.testing.assert_allclose(np.cumsum(fit.q**2), values, rtol=1e-7)
    printed, weights = algorithm_1(Z, y, m * lam, k)
    assert same(printed, order)
    np.testing.assert_allclose(fit.weight_path[-1], weights, rtol=1e-6, atol=1e-9)
    gram = kernel.greedy_from_gram(Z.T @ Z, Z.T @ y, m, lam, p, tol)
    assert same(gram.order, order)
    np.testing.assert_allclose(gram.weight_path, fit.weight_path, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_weights_at_every_size_are_those_of_ridge_regression(seed):
    Z, y = problem(seed=seed)
    fit = kernel.greedy(Z, y, 12.0, 0.3, 8, 0.0)
    for size in range(9):
        S = Z[:, fit.order[:size]]
        ridge = np.linalg.solve(S.T @ S + 12 * 0.3 * np.eye(size), S.T @ y)
        np.testing.assert_allclose(fit.weight_path[size, :size], ridge, rtol=1e-9)
        assert not fit.weight_path[size, size:].any()
        assert fit.train_errors[size] == pytest.approx(np.mean((y - S @ ridge) ** 2))


def test_without_a_penalty_it_is_forward_regression():
    Z, y = problem(m=10, p=6)
    Z = np.column_stack([Z, Z[:, 0] + Z[:, 1]])
    Z = standardise(Z)[0]
    fit = kernel.greedy(Z, y, 10.0, 0.0, 7, 0.0)
    chosen = []
    for i in fit.order:
        errors = {}
        for j in set(range(7)) - set(chosen):
            S = Z[:, [*chosen, j]]
            errors[j] = np.sum((y - S @ np.linalg.lstsq(S, y, rcond=None)[0]) ** 2)
        assert errors[int(i)] == pytest.approx(min(errors.values()))
        chosen.append(int(i))
    assert len(chosen) == 6  # the sum of two columns adds nothing


def test_columns_in_float32_are_picked_as_in_float64():
    for seed in range(20):
        Z, y = problem(m=20, p=300, seed=seed)
        Z[:, 200:] = Z[:, :100]  # duplicates
        Z32 = Z.astype(np.float32)
        narrow = kernel.greedy(Z32, y, 20.0, 1.0, 15, 0.0)
        wide = kernel.greedy(Z32.astype(np.float64), y, 20.0, 1.0, 15, 0.0)
        assert narrow.order.tolist() == wide.order.tolist()


def test_near_ties_below_float32_are_decided_in_float64():
    Z, y = problem(m=20, p=50)
    rng = np.random.default_rng(1)
    best = kernel.greedy(Z, y, 20.0, 1.0, 1, 0.0).order[0]
    twins = Z[:, [best]] + 1e-8 * rng.normal(size=(20, 40))
    Z = standardise(np.column_stack([Z, twins]))[0]
    fit = kernel.greedy(Z, y, 20.0, 1.0, 1, 0.0)
    scores = (Z.T @ y) ** 2
    assert scores[fit.order[0]] >= scores.max() * (1 - 1e-9)


# --- stopping -----------------------------------------------------------------------------------


def test_a_candidate_that_gains_less_than_tol_stays_out():
    Z, y = problem()
    whole = kernel.greedy(Z, y, 12.0, 1.0, 30, 0.0)
    falls = whole.q**2 / 12
    fit = kernel.greedy(Z, y, 12.0, 1.0, 30, float(falls[3]) * 1.001)
    assert len(fit.order) == 3
    assert "less than tol" in fit.reason
    exactly = kernel.greedy(Z, y, 12.0, 1.0, 5, 0.0)
    assert len(exactly.order) == 5
    assert exactly.reason == "max_selected=5 was reached"


# --- GreedyTL-59 --------------------------------------------------------------------------------


def sampled(Z, y, size, seed=0, k=10, seen=None):
    draws = kernel.candidate_draws(np.random.RandomState(seed), Z.shape[1], size)

    def columns(indices):
        if seen is not None:
            seen.update(indices.tolist())
        return Z[:, indices]

    return kernel.greedy_sampled(columns, draws, size, Z.shape[1], y, len(y), 1.0, k, 0.0)


def test_drawing_all_candidates_is_the_exact_search():
    Z, y = problem()
    exact = kernel.greedy(Z, y, 12.0, 1.0, 10, 0.0)
    np.testing.assert_array_equal(sampled(Z, y, 30).order, exact.order)
    np.testing.assert_allclose(sampled(Z, y, 30).q, exact.q)


def test_only_the_drawn_candidates_are_asked_for():
    Z, y = problem(p=3000)
    seen = set()
    fit = sampled(Z, y, 59, seen=seen)
    assert len(fit.order) == 10
    assert len(seen) <= 10 * 59
    assert set(fit.order.tolist()) <= seen


def test_draws_are_uniform_distinct_and_independent_of_the_choices():
    step = kernel.candidate_draws(np.random.RandomState(0), 20, 5)
    first, second = step(0).copy(), step(1)
    assert len(set(first.tolist())) == 5
    assert len(second) == 6
    np.testing.assert_array_equal(step(0), first)
    counts = np.zeros(20)
    for seed in range(2000):
        counts[kernel.candidate_draws(np.random.RandomState(seed), 20, 5)(0)] += 1
    assert np.abs(counts - 500).max() < 100


def test_the_best_of_59_is_among_the_best_five_percent_nineteen_times_in_twenty():
    values = np.random.default_rng(0).normal(size=2000)
    threshold = np.quantile(values, 0.95)
    hits = [
        values[kernel.candidate_draws(np.random.RandomState(seed), 2000, 59)(0)].max() >= threshold
        for seed in range(600)
    ]
    assert 0.92 < np.mean(hits) < 0.98


# --- targets, rows and weights ------------------------------------------------------------------


def search(p, **changes):
    return kernel.Search(**{"lam": 0.5, "max_selected": 6, "tol": 0.0, "n_total": p, **changes})


def raw(m=14, p=25, seed=0):
    rng = np.random.default_rng(seed)
    X = 5 + rng.normal(size=(m, p)) * rng.uniform(0.1, 10, size=p)
    return X, 3 + X[:, 2] - X[:, 5] + rng.normal(size=m), rng


def test_weights_are_repetitions_and_zero_influences_nothing():
    X, y, rng = raw()
    weight = rng.integers(0, 3, size=14).astype(float)
    copies = np.repeat(np.arange(14), weight.astype(int))
    weighted = kernel.fit_target(lambda i: X[:, i], y, weight, search(25))
    repeated = kernel.fit_target(
        lambda i: X[copies][:, i], y[copies], np.ones(len(copies)), search(25)
    )
    np.testing.assert_array_equal(weighted.greedy.order, repeated.greedy.order)
    assert weighted.raw()[0] == pytest.approx(repeated.raw()[0])
    np.testing.assert_allclose(weighted.raw()[1], repeated.raw()[1])


def test_units_of_the_columns_change_nothing():
    X, y, rng = raw()
    scale, shift = rng.uniform(0.01, 100, size=25), rng.normal(size=25)
    one = kernel.fit_target(lambda i: X[:, i], y, np.ones(14), search(25))
    moved = X * scale + shift
    two = kernel.fit_target(lambda i: moved[:, i], 7 * y - 2, np.ones(14), search(25))
    np.testing.assert_array_equal(one.greedy.order, two.greedy.order)
    chosen = one.greedy.order
    np.testing.assert_allclose(
        7 * one.predictions(X[:, chosen]) - 2, two.predictions(moved[:, chosen])
    )


def test_many_targets_through_one_gram_are_the_targets_one_by_one():
    X, y, rng = raw()
    Y = np.column_stack([y, rng.normal(size=(14, 4))])
    weight = rng.uniform(0.5, 2, size=14)
    together = kernel.fit_targets(lambda i: X[:, i], Y, weight, search(25))
    for t, fit in enumerate(together):
        alone = kernel.fit_target(lambda i: X[:, i], Y[:, t], weight, search(25))
        np.testing.assert_array_equal(fit.greedy.order, alone.greedy.order)
        np.testing.assert_allclose(fit.raw()[1], alone.raw()[1])
        assert fit.raw()[0] == pytest.approx(alone.raw()[0])


# --- leave-one-out ------------------------------------------------------------------------------


def one_by_one(m):
    for i in range(m):
        test = np.zeros(m)
        test[i] = 1.0
        yield 1 - test, test


def test_honest_leave_one_out_is_refitting_without_the_row():
    X, y, _ = raw()
    errors = kernel.held_out_errors([0.5, 2.0], lambda i: X[:, i], y, one_by_one(14), search(25))
    assert [len(path) for path in errors] == [7, 7]
    expected = np.zeros(7)
    for i in range(14):
        rest = np.arange(14) != i
        fit = kernel.fit_target(
            lambda j, rest=rest: X[rest][:, j], y[rest], np.ones(13), search(25)
        )
        expected += (fit.predictions(X[[i]][:, fit.greedy.order])[:, 0] - y[i]) ** 2 / 14
    np.testing.assert_allclose(errors[0], expected)


def test_honest_leave_one_out_does_not_fall_on_pure_noise():
    kept, honest = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(20, 1000)), rng.normal(size=20)
        find = search(1000, lam=1.0, max_selected=10)
        errors = kernel.held_out_errors([1.0], lambda i, X=X: X[:, i], y, one_by_one(20), find)
        honest.append(errors[0][-1] / errors[0][0])
        fit = kernel.fit_target(lambda i, X=X: X[:, i], y, np.ones(20), find)
        Z, target = standardise(X[:, fit.greedy.order], y[:, None])
        left_out = kernel.ridge_leave_one_out(Z, target[:, 0], np.ones(20), [1.0])
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
    got = kernel.ridge_leave_one_out(Z, y, weight, [lam])[0]
    root = np.sqrt(weight)
    for i in range(9):
        rest = np.arange(9) != i
        design = np.column_stack([root, Z])[rest]
        penalty = np.diag([0.0, *[n * lam] * 4])
        beta = np.linalg.solve(design.T @ design + penalty, design.T @ y[rest])
        assert got[i] == pytest.approx(beta[0] + Z[i] / root[i] @ beta[1:])
