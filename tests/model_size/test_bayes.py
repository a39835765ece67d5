import numpy as np
import pytest

from holdtrue.model_size import bayes as module
from holdtrue.model_size import kernel
from holdtrue.model_size.bases import cosine
from holdtrue.model_size.bayes import Grid, bayes, prior_grid


def bayes_of(fit, C_half):
    return bayes(fit, C_half, kernel.spread(fit, C_half[:, fit.kept]))


def problem(n=20, n_terms=8, seed=0):
    rng = np.random.default_rng(seed)
    u = rng.uniform(size=n)
    y = 1 + np.sin(4 * u) + 0.1 * rng.normal(size=n)
    unlabelled = cosine(rng.uniform(size=300), n_terms)
    return cosine(u, n_terms), y, kernel.moment_triangle(unlabelled) / np.sqrt(len(unlabelled))


def values(terms, y, C_half):
    return bayes_of(kernel.nested_fit(terms, y, np.ones(len(y))), C_half)


@pytest.mark.parametrize("n_terms", [1, 2, 14, 35, 199])
def test_shares_and_what_lies_beyond_make_the_whole(n_terms):
    share, ratio, log_weight, u = prior_grid(n_terms)
    k_and_gs = len(share)
    assert share.shape == (k_and_gs, n_terms)
    assert ratio.shape == (k_and_gs, 11)
    assert (np.diff(share, axis=1) <= 0).all()
    assert np.isfinite(log_weight).all()
    # t' = t/(1 + t u) gives the share beyond back: u = 1/t' - 1/t.
    beyond = 1 / ratio[:, -1] - 1e-8
    np.testing.assert_allclose(beyond, u[:, 0])
    np.testing.assert_allclose(share.sum(axis=1) + beyond, 1)
    # At every t, however small.
    of_every_t = 1 / ratio - 10.0 ** -np.arange(-2.0, 9)
    np.testing.assert_allclose(of_every_t - beyond[:, None], 0, atol=1e-6)
    # The remainder summed term by term.
    v = share[0, 0] * np.arange(1.0, 200_000) ** -2.0
    assert v.sum() == pytest.approx(1, abs=0.05)


def test_one_point_of_the_grid_is_the_textbook_posterior(monkeypatch):
    # Dense formulas: y ~ N(0, σ² (I + Φ Λ Φᵀ)), Λ = diag(a wide constant, t v).
    terms, y, C_half = problem()
    n, D = terms.shape
    C = C_half.T @ C_half
    share, ratio, weight, _ = prior_grid(D - 1)
    monkeypatch.setattr(
        module, "prior_grid", lambda p: Grid(share[3:4], ratio[3:4, 5:6], weight[3:4])
    )
    scale = np.sqrt(np.diag(C))
    design = terms / scale
    prior = np.append(1e9, ratio[3, 5] * share[3])
    K = np.eye(n) + design * prior @ design.T
    mean = prior * (design.T @ np.linalg.solve(K, y))
    noise = y @ np.linalg.solve(K, y) / (n - 1 - 2)
    covariance = np.diag(prior) - np.outer(prior, prior) * (design.T @ np.linalg.solve(K, design))
    known = noise + noise * np.trace(covariance @ (C / np.outer(scale, scale)))
    for d in range(1, D + 1):
        alpha = np.zeros(D)
        alpha[:d] = np.linalg.lstsq(terms[:, :d], y, rcond=None)[0]
        away = alpha - mean / scale
        assert values(terms, y, C_half)[d - 1] == pytest.approx(known + away @ C @ away, rel=1e-6)


def test_units_of_the_target_and_of_the_terms_do_not_matter():
    terms, y, C_half = problem()
    expected = values(terms, y, C_half)
    for unit in (1e-140, 1e-6, 1e120):
        np.testing.assert_allclose(values(terms, unit * y, C_half) / unit**2, expected, rtol=1e-8)
    units = 10.0 ** np.array([0, 3, -4, 2, 0, 1, -2, 4])
    np.testing.assert_allclose(values(terms * units, y, C_half * units), expected, rtol=1e-8)


def test_the_estimate_has_the_size_of_the_error():
    grid = (np.arange(2000) + 0.5) / 2000
    estimated, true = [], []
    for seed in range(60):
        terms, y, C_half = problem(n=30, n_terms=20, seed=seed)
        fit = kernel.nested_fit(terms, y, np.ones(30))
        error = cosine(grid, 20) @ kernel.coefficient_path(fit).T - (1 + np.sin(4 * grid))[:, None]
        risk = 0.01 + np.mean(error**2, axis=0)
        estimate = bayes_of(fit, C_half)
        estimated.append(estimate[4])
        true.append(risk[4])
    assert 0.7 < np.median(estimated) / np.median(true) < 1.5


def test_one_term_and_three_rows_are_enough():
    terms, y, C_half = problem(n=3, n_terms=2)
    assert np.isfinite(values(terms[:, :1], y, C_half[:, :1])).all()
    assert np.isfinite(values(terms, y, C_half)).all()
    assert (values(terms, np.zeros(3), C_half) == 0).all()


def dense(terms, y, scale, n_bands=8):
    """Posterior over the whole grid from the definition: y ~ N(α_1, σ² (I + t Φ diag(v) Φᵀ))."""
    n, D = terms.shape
    share, ratio, log_weight, _ = prior_grid(D - 1, n_bands)
    design = terms / scale
    log_p, means, covariances, noises, beyond = [], [], [], [], []
    for v, ts, weight in zip(share, ratio, log_weight[:, 0], strict=True):
        for t in ts:
            prior = np.append(1e10, t * v)  # a constant of any size
            K = np.eye(n) + design * prior @ design.T
            S = y @ np.linalg.solve(K, y)
            means.append(prior * (design.T @ np.linalg.solve(K, y)))
            gain = np.outer(prior, prior) * (design.T @ np.linalg.solve(K, design))
            noises.append(S / (n - 3))
            beyond.append(noises[-1] * t * (1 - v.sum()))  # σ² t u = σ'² t' u
            covariances.append(noises[-1] * (np.diag(prior) - gain))
            log_p.append(weight - np.linalg.slogdet(K)[1] / 2 - (n - 1) / 2 * np.log(S))
    log_p = np.array(log_p)
    p = np.exp(log_p - log_p.max())
    evidence = log_p.max() + np.log(p.sum())
    p /= p.sum()
    mean = np.einsum("g,gi", p, means)
    away = np.array(means) - mean
    covariance = np.einsum("g,gij", p, covariances) + np.einsum("g,gi,gj", p, away, away)
    return evidence, mean / scale, covariance / np.outer(scale, scale), p @ noises, p @ beyond


@pytest.mark.parametrize("n_terms", [6, 12, 30])  # fewer and more than the 15 rows
def test_the_posterior_is_the_average_of_its_definition_over_the_grid(n_terms):
    terms, y, C_half = problem(n=15, n_terms=n_terms)
    scale = np.sqrt(np.sum(C_half**2, axis=0))
    R, z, rss = kernel.joint_triangle(terms, y, np.ones(15))
    got = module.posterior(R, z, rss, 15, scale, prior_grid(n_terms - 1, 8))
    evidence, mean, covariance, noise, beyond = dense(terms, y, scale)
    np.testing.assert_allclose(got.mean, mean, rtol=1e-4, atol=1e-6)
    # The variance of the constant suffers from its wide prior in the dense formula.
    about_means = np.eye(n_terms)
    about_means[0] -= got.centre
    about_zero = about_means @ got.covariance @ about_means.T
    np.testing.assert_allclose(about_zero[1:, 1:], covariance[1:, 1:], rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(about_zero[0, 0], covariance[0, 0], rtol=1e-2)
    assert got.noise == pytest.approx(noise, rel=1e-4)
    assert got.beyond == pytest.approx(beyond, rel=1e-3)
    # y is scaled to length 1 about its mean, and the wide constant costs a fixed amount.
    length = np.sqrt(np.sum((y - y.mean()) ** 2))
    expected = evidence + 14 * np.log(length) + 0.5 * np.log(1 + 15 * 1e10)
    assert got.log_evidence == pytest.approx(expected, abs=1e-3)


def test_both_routes_to_the_posterior_agree_where_rows_and_terms_are_about_as_many():
    # 12 rows and 12 terms go one way; a thirteenth term of no spread at all goes the other.
    terms, y, C_half = problem(n=12, n_terms=12)
    scale = np.sqrt(np.sum(C_half**2, axis=0))
    wide = np.column_stack([terms, np.zeros(12)])

    def curve(design, scale, grid):
        R, z, rss = kernel.joint_triangle(design, y, np.ones(12))
        return module.posterior(R, z, rss, 12, scale, grid)

    share, ratio, weight, _ = prior_grid(12)
    narrow = Grid(share[:, :11] / share[:, :11].sum(axis=1, keepdims=True), ratio, weight)
    one = curve(terms, scale, narrow)
    padded = Grid(np.column_stack([narrow[0], np.zeros(len(share))]), ratio, weight)
    other = curve(wide, np.append(scale, 1.0), padded)
    np.testing.assert_allclose(one.mean, other.mean[:-1], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(one.covariance, other.covariance[:-1, :-1], rtol=1e-6, atol=1e-9)
    assert one.log_evidence == pytest.approx(other.log_evidence)


def test_the_grids_weights_sum_to_one():
    for n_terms in (1, 5, 40):
        _, ratio, log_weight, _ = prior_grid(n_terms, 8)
        assert np.exp(log_weight).sum() * ratio.shape[1] == pytest.approx(1)
