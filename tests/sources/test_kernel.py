from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from holdtrue import SourcePool
from holdtrue.sources import choose, kernel, scale
from holdtrue.sources.candidates import CandidateDraws, Candidates, candidate_count
from holdtrue.sources.pool import PoolOn


def standardise(*arrays):
    return [scale.standardised(np.asarray(a, float), np.ones(len(a)))[0] for a in arrays]


def problem(m=12, p=30, seed=0):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(m, p))
    Z, y = standardise(Z, (Z[:, 3] - 0.5 * Z[:, 5] + 0.3 * rng.normal(size=m))[:, None])
    return Z, y[:, 0]


def weight_path(fit):
    """Weights of the sizes 0..k in order of entry."""
    return fit.predictions(np.eye(len(fit.order)))


# The definitions are followed in 60 digits: in floats they lose more digits than what they check.


def decimals(array):
    return np.vectorize(Decimal, otypes=[object])(array)


def quadratic_form(A, b):
    """``bᵀ A⁻¹ b`` by elimination."""
    A, b, value = A.copy(), b.copy(), Decimal(0)
    for j in range(len(b)):
        value += b[j] ** 2 / A[j, j]
        factors = A[j + 1 :, j] / A[j, j]
        b[j + 1 :] -= factors * b[j]
        A[j + 1 :, j + 1 :] -= np.outer(factors, A[j, j + 1 :])
    return value


def lowest_of_ties(values, before):
    """Departure 4: of the candidates whose rise is within 10⁻⁹ of the largest, the first."""
    best = max(values.values())
    least = best - (best - before) / 10**9
    return min(i for i, value in values.items() if value >= least)


def different_columns(Z):
    """Departure 6, by comparing all pairs: columns that equal none before them."""
    apart = distances(Z)
    return [j for j in range(Z.shape[1]) if not (apart[:j, j] < 1e-9).any()]


def distances(Z):
    """``1 - |r|`` of each pair of columns."""
    norms = np.linalg.norm(Z, axis=0)
    return 1 - np.abs(Z.T @ Z) / np.maximum(np.outer(norms, norms), 1e-300)


def brute_force(Z, y, Lam, k):
    """The definition: each step maximises ``b_Sᵀ (C + ΛI)_S⁻¹ b_S``."""
    C, b = Z.T @ Z + Lam * decimals(np.eye(Z.shape[1])), Z.T @ y
    chosen, values = [], [Decimal(0)]
    for _ in range(k):
        gains = {}
        for i in set(range(len(b))) - set(chosen):
            S = [*chosen, i]
            gains[i] = quadratic_form(C[np.ix_(S, S)], b[S])
        chosen.append(lowest_of_ties(gains, values[-1]))
        values.append(gains[chosen[-1]])
    return chosen, np.array(values[1:], dtype=float)


def algorithm_1(Z, y, lam, k):
    """As printed, but for picking k in place of k + 1, and for the tie rule."""
    m, p = Z.shape
    K, G, S = decimals(np.zeros((m, m))), decimals(np.eye(m)) / lam, []
    before = Decimal(0)
    for _ in range(k):
        scores = {}
        for i in set(range(p)) - set(S):
            z = Z[:, i]
            Gz = G @ z
            changed_y = G @ y - Gz * (Gz @ y) / (1 + z @ Gz)  # G'y
            scores[i] = y @ (K @ changed_y + z * (z @ changed_y))
        S.append(lowest_of_ties(scores, before))
        before = scores[S[-1]]
        z = Z[:, S[-1]]
        Gz = G @ z
        K = K + np.outer(z, z)
        G = G - np.outer(Gz, Gz) / (1 + z @ Gz)
    return S, np.array([Z[:, i] @ G @ y for i in S], dtype=float)


# --- by hand ------------------------------------------------------------------------------------


def test_two_columns_by_hand():
    # y = ±1; z_0 = y but for one row, z_1 = orthogonal to z_0. Λ = mλ = 4.
    y = np.array([1.0, 1, -1, -1])
    Z = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    fit = kernel.greedy(Z, y, 4.0, 1.0, 2, 0.0)
    # a_0 = 4, den = 4 + 4: score 2, fall 2/4. z_1 ⊥ y: nothing further.
    assert fit.order.tolist() == [0]
    np.testing.assert_allclose(fit.q**2 / 4, [0.5])
    np.testing.assert_allclose(weight_path(fit), [[0], [0.5]])  # 4/(4 + 4)
    np.testing.assert_allclose(fit.regularised_errors, [1, 0.5])  # (1 - .5)² + λ .5²
    assert fit.reason == "no further candidate lowers the error"


def test_the_59_trick_by_its_formula():
    assert candidate_count() == 59  # log(.05)/log(.95) = 58.4
    assert candidate_count(0.99, 0.99) == 459
    assert candidate_count(0.5, 0.5) == 1
    with pytest.raises(ValueError, match=r"quantile must lie between 0 and 1\. Got 1"):
        candidate_count(quantile=1)


def test_standardised_columns_by_hand():
    # Weights 1, 3: mean (0 + 3·4)/4 = 3, variance (9 + 3)/4 = 3.
    made, mean, width = scale.standardised(np.array([[0.0, 7], [4, 7]]), np.array([1.0, 3]))
    np.testing.assert_allclose(mean, [3, 7])
    np.testing.assert_allclose(width, [np.sqrt(3), 1])
    np.testing.assert_allclose(made, [[-np.sqrt(3), 0], [1, 0]])


@pytest.mark.parametrize("unit", [1e-40, 1e-30, 1e-20, 1.0, 1e20, 4e37])
def test_float32_columns_of_any_size_are_standardised_as_in_float64(unit):
    rng = np.random.default_rng(0)
    Z = np.column_stack([rng.normal(size=40), 5 + rng.normal(size=40), np.zeros(40), np.ones(40)])
    Z, weight = (Z * unit).astype(np.float32), rng.uniform(0.5, 2, size=40)
    single, double = scale.standardised(Z, weight), scale.standardised(Z.astype(float), weight)
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
    single, double = (scale.standardised(Z.astype(kind), np.ones(n_rows)) for kind in ("f4", "f8"))
    np.testing.assert_allclose(single[0], double[0], atol=1e-5)
    np.testing.assert_allclose(single[1], double[1], rtol=1e-12)
    np.testing.assert_allclose(single[2], double[2])
    assert single[0][:, :2].any(axis=0).all()
    assert not single[0][:, 2].any()


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


@settings(max_examples=150)
@given(problems())
def test_picks_are_those_of_brute_force_and_of_algorithm_1(case):
    Z, y, lam = case
    m, p = Z.shape
    Z, y = standardise(Z, y[:, None])
    y = y[:, 0]
    fit = kernel.greedy(Z, y, m, lam, p, 0.0)
    k = len(fit.order)
    exact_Z, exact_y, Lam = decimals(Z), decimals(y), Decimal(m * lam)
    with localcontext(prec=60):
        order, values = brute_force(exact_Z, exact_y, Lam, k)
        printed, weights = algorithm_1(exact_Z, exact_y, Lam, k)
    assert fit.order.tolist() == order
    np.testing.assert_allclose(np.cumsum(fit.q**2), values, rtol=1e-9)
    assert printed == order
    np.testing.assert_allclose(weight_path(fit)[-1], weights, rtol=1e-6, atol=1e-9)
    gram = kernel.greedy_from_gram(Z.T @ Z, Z.T @ y, m, lam, p, 0.0)
    assert gram.order.tolist() == order
    np.testing.assert_allclose(weight_path(gram), weight_path(fit), rtol=1e-6, atol=1e-9)


@settings(max_examples=150)
@given(problems())
def test_equal_columns_are_those_of_comparing_all_pairs(case):
    (Z,) = standardise(case[0])
    apart = distances(Z)
    # At the limit itself two columns may equal a third, and not each other.
    assume(not ((apart > 1e-10) & (apart < 1e-8)).any())
    first = scale.first_of_equals(Z)
    assert np.flatnonzero(first == np.arange(Z.shape[1])).tolist() == different_columns(Z)
    rows = columns_of(case[0])
    for j in range(Z.shape[1]):  # read one after the other
        rows.compared(np.array([j]))
    np.testing.assert_array_equal(rows.equal_to, first)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_columns_equal_up_to_sign_and_scale_share_the_first(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2000))
    X[:, 1000:1200] = X[:, [7]] * rng.choice([-2, -1, 0.5, 3], size=200) + 3
    X[:, 1500] = 5.0  # constants equal nothing
    X[:, 1501] = 6.0
    X[:, 1600] = X[:, 8] + 1e-3 * rng.normal(size=20)  # 1 - r is some 1e-6
    Z = scale.standardised(X.astype(kind), np.ones(20))[0]
    first = scale.first_of_equals(Z)
    assert (first[1000:1200] == 7).all()
    rest = np.setdiff1d(np.arange(2000), np.arange(1000, 1200))
    np.testing.assert_array_equal(first[rest], rest)


@pytest.mark.parametrize("lam", [0.0, 1e-4, 1.0])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_of_equal_columns_the_first_enters_first(lam, kind):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        m, p = rng.integers(5, 40), rng.integers(10, 100)
        source = rng.integers(p, size=3 * p)
        sign = rng.choice([-1.0, 1.0], size=3 * p)
        Z, y = standardise(rng.normal(size=(m, p))[:, source] * sign, rng.normal(size=(m, 1)))
        fit = kernel.greedy(Z.astype(kind), y[:, 0], m, lam, 3 * p, 0.0)
        waiting = {s: np.flatnonzero(source == s).tolist() for s in set(source)}
        for i in fit.order:
            assert waiting[source[i]].pop(0) == i


@pytest.mark.parametrize("seed", range(5))
def test_weights_at_every_size_are_those_of_ridge_regression(seed):
    Z, y = problem(seed=seed)
    fit = kernel.greedy(Z, y, 12.0, 0.3, 8, 0.0)
    for size in range(9):
        S = Z[:, fit.order[:size]]
        ridge = np.linalg.solve(S.T @ S + 12 * 0.3 * np.eye(size), S.T @ y)
        np.testing.assert_allclose(weight_path(fit)[size, :size], ridge, rtol=1e-9)
        assert not weight_path(fit)[size, size:].any()
        regularised = np.mean((y - S @ ridge) ** 2) + 0.3 * ridge @ ridge
        assert fit.regularised_errors[size] == pytest.approx(regularised)
        np.testing.assert_allclose(fit.predictions(Z[:, fit.order])[size], S @ ridge, atol=1e-12)
    np.testing.assert_allclose(fit.weights, ridge, rtol=1e-9)


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


def float64_picks(Z, y, lam, k):
    """Each step scores every candidate in float64 from the definition."""
    m = len(y)
    order = []
    for _ in range(k):
        S = Z[:, order]
        H = np.eye(m) - S @ np.linalg.solve(S.T @ S + m * lam * np.eye(len(order)), S.T)
        scores = (Z.T @ H @ y) ** 2 / (m * lam + np.einsum("ij,ij->j", Z, H @ Z))
        scores[order] = -1
        order.append(int(np.flatnonzero(scores >= scores.max() * (1 - 1e-9))[0]))
    return order


@pytest.mark.parametrize("lam", [0.01, 0.1, 1.0])
def test_candidates_that_rounding_could_let_win_are_scored_again(lam):
    # Twins whose scores differ by a few 1e-7: float32 alone would take the wrong one.
    for seed in range(12):
        rng = np.random.default_rng(seed)
        Z, y = problem(m=24, p=6, seed=seed)
        twins = np.repeat(Z, 60, axis=1) + 3e-7 * rng.normal(size=(24, 360))
        (Z,) = standardise(twins)
        fit = kernel.greedy(Z, y, 24.0, lam, 5, 0.0)
        assert fit.order.tolist() == float64_picks(Z, y, lam, 5)


def sampled_picks(Z, y, n, lam, most, tol, drawn):
    """GreedyTL-59 by its definition: a step looks at the first of its draws that are free."""
    order, falls = [], []
    for t in range(min(most, Z.shape[1])):
        free = [j for j in drawn.step(t).tolist() if j not in order][: drawn.size]
        S = Z[:, order]
        H = np.eye(len(y)) - S @ np.linalg.solve(S.T @ S + n * lam * np.eye(t), S.T)
        scores = {j: (Z[:, j] @ H @ y) ** 2 / (n * lam + Z[:, j] @ H @ Z[:, j]) for j in free}
        best = max(scores.values())
        if best / n < tol and order:
            break
        order.append(min(j for j in free if scores[j] >= best * (1 - 1e-9)))
        falls.append(best)
    return order, falls


def columns_of(X):
    return Candidates(X, np.arange(X.shape[1]), PoolOn(SourcePool([]), X, X, None), 0)


# --- many searches together ----------------------------------------------------------------------


def unlike_searches(seed, kind):
    """Raw columns, one of them constant and some without a row; targets, weights and λ."""
    rng = np.random.default_rng(seed)
    m, p = 12, 60
    raw = 3 + rng.normal(size=(m, p)) * rng.uniform(0.1, 10, size=p)
    raw[:, 5] = 2.0  # a constant
    raw[:, 6] = np.arange(m) == 3  # one without row 3
    raw[4, 7:20] += 1e4  # almost one without row 4
    raw = raw.astype(kind)
    weights = rng.uniform(0.3, 3, size=(14, m))
    weights[:4] = 1.0
    weights[np.arange(14), np.resize([3, 4, 5, 6], 14)] = 0  # left-out rows
    targets = rng.normal(size=(m, 14)) + raw[:, :14]
    Y = np.hstack([scale.standardised(targets[:, [f]], weights[f])[0] for f in range(14)]).T
    return raw, Y, weights, np.resize([1.0, 1e-3, 30.0, 0.1, 1e-2], 14)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(4))
def test_searches_that_go_together_are_those_that_go_alone(seed, kind):
    raw, Y, weights, lams = unlike_searches(seed, kind)
    Z = scale.standardised(raw, np.ones(len(raw)))[0]
    for most, tol in ((60, 1e-4), (5, 0.0)):
        fits = kernel.greedy_together(raw, Z, Y, weights, lams, most, tol)
        for f, fit in enumerate(fits):
            own = scale.standardised(raw.astype(float), weights[f])[0]
            one = kernel.greedy(own, Y[f], weights[f].sum(), lams[f], most, tol)
            assert fit.order.tolist() == one.order.tolist()
            assert fit.reason == one.reason
            np.testing.assert_allclose(fit.q, one.q, rtol=1e-6)
            np.testing.assert_allclose(fit.weights, one.weights, rtol=1e-5, atol=1e-9)
            chosen = own[:, fit.order]
            np.testing.assert_allclose(
                fit.predictions(chosen), one.predictions(chosen), rtol=1e-6, atol=1e-8
            )


@pytest.mark.parametrize("lam", [1.0, 1e-3])
def test_no_candidate_enters_twice_where_only_constants_are_left(lam):
    rng = np.random.RandomState(0)
    raw = np.column_stack([rng.normal(size=(30, 3)), np.full(30, 7.0)])
    y = raw[:, 0] + raw[:, 1] + rng.normal(size=30)
    Y, weights = scale.standardised_each(np.array([y, -y]), np.ones((2, 30)))[0], np.ones((2, 30))
    Z = scale.standardised(raw, np.ones(30))[0]
    for fit in kernel.greedy_together(raw, Z, Y, weights, [lam, lam], 10, 0.0):
        assert sorted(fit.order.tolist()) == [0, 1, 2]
        assert fit.reason == "no further candidate lowers the error"


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("seed", range(4))
def test_sampled_searches_pick_the_best_of_what_each_step_draws(seed, kind):
    raw, Y, weights, lams = unlike_searches(seed, kind)
    for most, tol in ((60, 1e-4), (5, 0.0)):
        drawn = CandidateDraws(np.random.RandomState(1), 60, 9)
        fits = choose.sampled_together(columns_of(raw), drawn, Y, weights, lams, most, tol)
        for f, fit in enumerate(fits):
            own = scale.standardised(raw.astype(float), weights[f])[0]
            order, falls = sampled_picks(own, Y[f], weights[f].sum(), lams[f], most, tol, drawn)
            assert fit.order.tolist() == order
            np.testing.assert_allclose(fit.q**2, falls, rtol=1e-5)
            chosen = own[:, order]
            penalty = weights[f].sum() * lams[f] * np.eye(len(order))
            exact = np.linalg.solve(chosen.T @ chosen + penalty, chosen.T @ Y[f])
            np.testing.assert_allclose(fit.weights, exact, rtol=1e-4, atol=1e-7)
            wanted = "max_selected=5 was reached" if most == 5 else "the best of 9 drawn would"
            assert wanted in fit.reason or len(order) == 60


# --- stopping -----------------------------------------------------------------------------------


def test_a_candidate_that_gains_less_than_tol_stays_out():
    Z, y = problem()
    whole = kernel.greedy(Z, y, 12.0, 1.0, 30, 0.0)
    falls = whole.q**2 / 12
    fit = kernel.greedy(Z, y, 12.0, 1.0, 30, float(falls[3]) * 1.001)
    assert len(fit.order) == 3
    assert "less than tol" in fit.reason
    high = kernel.greedy(Z, y, 12.0, 1.0, 30, 10.0)
    assert high.order.tolist() == whole.order[:1].tolist()  # never empty
    gram = kernel.greedy_from_gram(Z.T @ Z, Z.T @ y, 12.0, 1.0, 30, 10.0)
    assert gram.order.tolist() == whole.order[:1].tolist()
    exactly = kernel.greedy(Z, y, 12.0, 1.0, 5, 0.0)
    assert len(exactly.order) == 5
    assert exactly.reason == "max_selected=5 was reached"


# --- GreedyTL-59 --------------------------------------------------------------------------------


def sampled(Z, y, size, k=10):
    drawn = CandidateDraws(np.random.RandomState(0), Z.shape[1], size)
    candidates = columns_of(Z)
    ones = np.ones((1, len(y)))
    (fit,) = choose.sampled_together(candidates, drawn, y[None], ones, [1.0], k, 0.0)
    return fit, np.flatnonzero(candidates._slot >= 0)


def test_drawing_all_candidates_is_the_exact_search():
    Z, y = problem()
    exact = kernel.greedy(Z, y, 12.0, 1.0, 10, 0.0)
    fit, _ = sampled(Z, y, 30)
    np.testing.assert_array_equal(fit.order, exact.order)
    np.testing.assert_allclose(fit.q, exact.q)


def test_only_candidates_that_a_step_may_look_at_are_read():
    Z, y = problem(p=3000)
    fit, read = sampled(Z, y, 59)
    assert len(fit.order) == 10
    assert len(read) <= 10 * 59 + sum(range(10))
    assert set(fit.order.tolist()) <= set(read.tolist())


def test_copies_of_a_chosen_candidate_are_not_chosen():
    Z, y = problem()
    source = np.random.default_rng(0).integers(30, size=200)
    fit, _ = sampled(Z[:, source] * np.resize([2.0, -1.0, 3.0], 200), y, 20, k=200)
    assert len(set(source[fit.order].tolist())) == len(fit.order) > 5


def test_draws_are_uniform_distinct_and_independent_of_the_choices():
    step = CandidateDraws(np.random.RandomState(0), 20, 5).step
    first, second = step(0).copy(), step(1)
    assert len(set(first.tolist())) == 5
    assert len(second) == 6
    np.testing.assert_array_equal(step(0), first)
    counts = np.zeros(20)
    for seed in range(2000):
        counts[CandidateDraws(np.random.RandomState(seed), 20, 5).step(0)] += 1
    assert np.abs(counts - 500).max() < 100


def test_the_best_of_59_is_among_the_best_five_percent_nineteen_times_in_twenty():
    values = np.random.default_rng(0).normal(size=2000)
    threshold = np.quantile(values, 0.95)
    hits = [
        values[CandidateDraws(np.random.RandomState(seed), 2000, 59).step(0)].max() >= threshold
        for seed in range(600)
    ]
    assert 0.92 < np.mean(hits) < 0.98
