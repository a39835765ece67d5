import numpy as np
import pytest

from holdtrue.model_size import bayes as module
from holdtrue.model_size import kernel
from holdtrue.model_size.bases import cosine
from holdtrue.model_size.bayes import bayes, prior_grid


def problem(n=20, n_terms=8, seed=0):
    rng = np.random.default_rng(seed)
    u = rng.uniform(size=n)
    y = 1 + np.sin(4 * u) + 0.1 * rng.normal(size=n)
    unlabelled = cosine(rng.uniform(size=300), n_terms)
    return cosine(u, n_terms), y, kernel.moment_factor([unlabelled])


def values(terms, y, C_half):
    return bayes(kernel.nested_fit(terms, y, np.ones(len(y))), C_half)


@pytest.mark.parametrize("n_terms", [1, 2, 14, 35, 199])
def test_shares_and_what_lies_beyond_make_the_whole(n_terms):
    share, ratio, log_weight = prior_grid(n_terms)
    k_and_gs = len(share)
    assert share.shape == (k_and_gs, n_terms)
    assert ratio.shape == (k_and_gs, 11)
    assert (np.diff(share, axis=1) <= 0).all()
    assert np.isfinite(log_weight).all()
    # t' = t/(1 + t u) gives the share beyond back: u = 1/t' - 1/t.
    beyond = 1 / ratio[:, -1] - 1e-8
    np.testing.assert_allclose(share.sum(axis=1) + beyond, 1)
    # The remainder summed term by term.
    v = share[0, 0] * np.arange(1.0, 200_000) ** -2.0
    assert v.sum() == pytest.approx(1, abs=0.05)


def test_one_point_of_the_grid_is_the_textbook_posterior(monkeypatch):
    # Dense formulas: y ~ N(0, σ² (I + Φ Λ Φᵀ)), Λ = diag(a wide constant, t v).
    terms, y, C_half = problem()
    n, D = terms.shape
    C = C_half.T @ C_half
    share, ratio, weight = prior_grid(D - 1)
    monkeypatch.setattr(module, "prior_grid", lambda p: (share[3:4], ratio[3:4, 5:6], weight[3:4]))
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
        estimate = bayes(fit, C_half)
        estimated.append(estimate[4])
        true.append(risk[4])
    assert 0.7 < np.median(estimated) / np.median(true) < 1.5


def test_one_term_and_three_rows_are_enough():
    terms, y, C_half = problem(n=3, n_terms=2)
    assert np.isfinite(values(terms[:, :1], y, C_half[:, :1])).all()
    assert np.isfinite(values(terms, y, C_half)).all()
    assert (values(terms, np.zeros(3), C_half) == 0).all()
