import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import estimator_checks_generator

from holdtrue.datasets import make_sources
from holdtrue.sources import (
    DAM,
    AverageKT,
    BestSource,
    ForwardRegression,
    MultiKT,
    RegularizedLeastSquares,
    SourcePool,
    rivals,
)
from holdtrue.sources.choose import LAMBDAS
from holdtrue.sources.scale import standardised

ALL = [
    RegularizedLeastSquares(),
    BestSource(),
    AverageKT(),
    MultiKT(),
    MultiKT(norm=1),
    DAM(),
    ForwardRegression(),
]
every_rival = pytest.mark.parametrize("rival", ALL, ids=str)


@pytest.fixture(scope="module")
def task():
    return make_sources(n_samples=14, n_sources=30, n_helpful=10, random_state=0)


@pytest.fixture
def signs(task):
    return np.where(task.y == 1, 1.0, -1.0)


@every_rival
def test_every_rival_works_on_the_pool_and_shares_its_sources(rival, task):
    model = clone(rival).set_params(sources=task.sources).fit(task.X, task.y)
    assert model.source_weights_.shape == (30,)
    assert model.feature_weights_.shape == (40,)
    assert clone(model).sources is task.sources
    # DAM predicts from the features, which show nothing here.
    assert model.score(task.X_test, task.y_test) > (0.45 if "DAM" in str(rival) else 0.65)
    assert set(model.predict(task.X)) <= {0, 1}


def fails(X):
    raise RuntimeError("no GPU")


@every_rival
def test_a_source_that_was_left_out_has_no_say(rival, task):
    pool = SourcePool([("gone", fails), *task.sources, ("gone too", fails)], on_error="skip")
    with pytest.warns(UserWarning, match="It is left out"):
        model = clone(rival).set_params(sources=pool).fit(task.X, task.y)
    rest = clone(rival).set_params(sources=task.sources).fit(task.X, task.y)
    assert not model.source_weights_[[0, -1]].any()
    np.testing.assert_allclose(model.source_weights_[1:-1], rest.source_weights_)
    np.testing.assert_allclose(model.decision_function(task.X), rest.decision_function(task.X))


@pytest.mark.parametrize("rival", [BestSource(), AverageKT(), MultiKT(), DAM()], ids=str)
def test_a_rival_whose_sources_were_all_left_out_says_so(rival, task):
    pool = SourcePool([("gone", fails)], on_error="skip")
    message = r"needs a source that runs. Got 1, all left out. Pass on_error='raise'"
    with pytest.warns(UserWarning, match="no GPU"), pytest.raises(ValueError, match=message):
        rival.set_params(sources=pool).fit(task.X, task.y)


@pytest.mark.slow
@pytest.mark.parametrize(
    "rival",
    [RegularizedLeastSquares(), DAM(), ForwardRegression()],
    ids=str,
)
def test_rivals_that_fit_features_pass_scikit_learns_checks(rival):
    for instance, check in estimator_checks_generator(rival):
        if "array_api" not in str(check):
            check(instance)


def test_grid_search_over_a_rival(task):
    fitted = LogisticRegression().fit(task.X_test, task.y_test)
    model = RegularizedLeastSquares([("old", fitted)])
    grid = GridSearchCV(model, {"lam": [0.1, 1.0]}, cv=2).fit(task.X, task.y)
    assert grid.best_estimator_.sources[0][1] is fitted


def test_least_squares_are_scikit_learns(task, signs):
    S = np.column_stack([source(task.X) for _, source in task.sources])
    Z = np.column_stack([task.X, S])
    Z = (Z - Z.mean(0)) / Z.std(0)
    model = RegularizedLeastSquares(task.sources, lam=0.5).fit(task.X, task.y)
    ridge = Ridge(alpha=14 * 0.5).fit(Z, signs)
    np.testing.assert_allclose(model.decision_function(task.X), ridge.predict(Z))
    effects = np.concatenate([model.feature_weights_, model.source_weights_])
    np.testing.assert_allclose(effects, ridge.coef_)


def test_the_penalty_of_least_squares_is_the_one_of_least_leave_one_out_error(task, signs):
    Z = (task.X - task.X.mean(0)) / task.X.std(0)
    errors = []
    for lam in LAMBDAS:
        left_out = []
        for i in range(14):
            rest = np.arange(14) != i
            # The penalty is that of all 14 rows, and so are the scales.
            model = Ridge(alpha=14 * lam).fit(Z[rest], signs[rest])
            left_out.append(model.predict(Z[[i]])[0])
        errors.append(np.sum((np.array(left_out) - signs) ** 2))
    model = RegularizedLeastSquares().fit(task.X, task.y)
    assert model.lam_ == [LAMBDAS[int(np.argmin(errors))]]


def test_the_best_source_is_used_as_it_is(task):
    y = task.y
    sources = [
        ("half", lambda X: np.ones(len(X))),
        ("right", lambda X: np.where(y == 1, 0.1, -0.2)),
        ("inverse", lambda X: np.where(y == 1, -3.0, 3.0)),
        ("almost", lambda X: np.where(np.arange(14) == 0, -9.0, 9.0) * np.where(y == 1, 1, -1)),
    ]
    model = BestSource(sources).fit(task.X, y)
    assert np.flatnonzero(model.source_weights_).tolist() == [1]
    np.testing.assert_allclose(model.decision_function(task.X), np.where(y == 1, 0.1, -0.2))


def test_the_average_is_the_mean_of_the_scores(task):
    model = AverageKT(task.sources).fit(task.X, task.y)
    mean = np.mean([source(task.X_test) for _, source in task.sources], axis=0)
    np.testing.assert_allclose(model.decision_function(task.X_test), mean)
    with pytest.raises(ValueError, match=r"needs 2 classes.*Got 3 classes"):
        AverageKT(task.sources).fit(task.X, np.arange(14) % 3)


# --- MultiKT ------------------------------------------------------------------------------------


def hinge_problem(m=6, seed=0):
    rng = np.random.default_rng(seed)
    n = 9
    return rng.normal(size=n) + 0.5, rng.normal(size=(n, m)), rng.dirichlet(np.ones(n))


@pytest.mark.parametrize("seed", range(4))
def test_the_hinge_loss_under_the_1_norm_is_that_of_linear_programming(seed):
    offset, slopes, share = hinge_problem(seed=seed)
    n, m = slopes.shape
    tau = 0.7
    # Variables β⁺, β⁻, ξ: min share·ξ with ξ ≥ offset - slopes·β and Σ(β⁺ + β⁻) ≤ τ.
    exact = linprog(
        np.concatenate([np.zeros(2 * m), share]),
        A_ub=np.vstack(
            [
                np.column_stack([-slopes, slopes, -np.eye(n)]),
                np.concatenate([np.ones(2 * m), np.zeros(n)])[None],
            ]
        ),
        b_ub=np.append(-offset, tau),
    )
    beta, loss = rivals.least_hinge(offset, slopes, share, tau, 1)
    assert np.abs(beta).sum() <= tau * (1 + 1e-9)
    assert exact.fun - 1e-9 <= loss <= exact.fun + 0.01


@pytest.mark.parametrize("seed", range(4))
def test_the_hinge_loss_under_the_2_norm_is_that_of_a_general_solver(seed):
    offset, slopes, share = hinge_problem(m=2, seed=seed)
    angles, radii = np.meshgrid(np.linspace(0, 2 * np.pi, 721), np.linspace(0, 0.7, 141))
    grid = np.stack([radii * np.cos(angles), radii * np.sin(angles)], axis=-1)
    least = (np.maximum(offset - grid @ slopes.T, 0) @ share).min()
    beta, loss = rivals.least_hinge(offset, slopes, share, 0.7, 2)
    assert np.linalg.norm(beta) <= 0.7 * (1 + 1e-9)
    assert loss == pytest.approx(least, abs=0.01)


def test_projections_are_the_nearest_points():
    rng = np.random.default_rng(0)
    for norm in (1, 2):
        beta = rng.normal(size=4)
        made = rivals.projected(beta, 1.0, norm)
        assert np.linalg.norm(made, norm) == pytest.approx(1)
        bound = {"type": "ineq", "fun": lambda b, norm=norm: 1 - np.linalg.norm(b, norm)}
        exact = minimize(
            lambda b, beta=beta: np.sum((b - beta) ** 2), np.zeros(4), constraints=bound
        )
        np.testing.assert_allclose(made, exact.x, atol=1e-3)
        np.testing.assert_array_equal(rivals.projected(0.01 * beta, 1.0, norm), 0.01 * beta)


def test_left_out_residuals_of_multikt_are_those_of_refitting(task, signs):
    rng = np.random.default_rng(0)
    F, weight = rng.normal(size=(14, 3)), rng.uniform(0.5, 2, size=14)
    P = rivals.rows_inverse(F, weight, 0.3)
    got = (P @ signs) / P.diagonal()
    for i in range(14):
        rest = np.arange(14) != i
        model = Ridge(alpha=weight.sum() * 0.3)
        model.fit(F[rest], signs[rest], sample_weight=weight[rest])
        assert got[i] == pytest.approx(signs[i] - model.predict(F[[i]])[0])


@pytest.mark.parametrize("norm", [1, 2])
def test_multikt_trusts_a_source_that_knows_the_answer(norm, task, signs):
    rng = np.random.default_rng(0)
    sources = [
        ("noise", lambda X: rng.normal(size=len(X))),
        ("knows", lambda X: signs),
    ]
    model = MultiKT(sources, norm=norm).fit(rng.normal(size=(14, 3)), task.y)
    noise, knows = np.abs(model.source_weights_)
    assert knows > 5 * noise


@pytest.mark.parametrize("lam", [0.01, 1.0, 100.0])
def test_the_formula_for_a_kept_selection_is_refitting_without_the_row(lam):
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2, size=9)
    n = weight.sum()
    Z = standardised(rng.normal(size=(9, 4)), weight)[0]
    y = standardised(rng.normal(size=(9, 1)), weight)[0]
    y = y[:, 0]
    got = rivals.ridge_leave_one_out(Z, y, weight, [lam])[0]
    root = np.sqrt(weight)
    for i in range(9):
        rest = np.arange(9) != i
        design = np.column_stack([root, Z])[rest]
        penalty = np.diag([0.0, *[n * lam] * 4])
        beta = np.linalg.solve(design.T @ design + penalty, design.T @ y[rest])
        assert got[i] == pytest.approx(beta[0] + Z[i] / root[i] @ beta[1:])


# --- DAM and forward regression -----------------------------------------------------------------


def test_dam_is_the_minimiser_of_its_objective(task, signs):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(14, 2))
    scores = rng.normal(size=(14, 3)) + signs[:, None]
    sources = [(f"s{j}", lambda X, j=j: scores[:, j]) for j in range(3)]
    model = DAM(sources, lam=0.2, tau=3.0, class_weight=None).fit(X, task.y)
    S = (scores - scores.mean(0)) / scores.std(0)
    gamma = np.exp(-np.mean((S - signs[:, None]) ** 2, axis=0))
    opinion = S @ gamma / gamma.sum()
    F = (X - X.mean(0)) / X.std(0)

    def objective(p):
        f = F @ p[:2] + p[2]
        return (
            np.mean((f - signs) ** 2) + 3 * np.mean((f - opinion) ** 2) + 0.2 * np.sum(p[:2] ** 2)
        )

    best = minimize(objective, np.zeros(3), tol=1e-12).x
    np.testing.assert_allclose(model.decision_function(X), F @ best[:2] + best[2], atol=1e-5)
    assert not model.source_weights_.any()


def test_dam_listens_to_good_sources(task, signs):
    sources = [("knows", lambda X: signs)]
    assert DAM(sources).fit(task.X, task.y).tau_[0] > 0


def test_forward_regression_fits_exactly_where_it_can(task):
    model = ForwardRegression(task.sources, tol=0.0).fit(task.X, task.y)
    np.testing.assert_allclose(
        model.decision_function(task.X), np.where(task.y == 1, 1, -1), atol=1e-6
    )
    chosen = np.count_nonzero(model.source_weights_) + np.count_nonzero(model.feature_weights_)
    assert chosen <= 13


@pytest.mark.parametrize(
    "model, message",
    [
        (RegularizedLeastSquares(lam=0), "RegularizedLeastSquares: lam must be a number above 0"),
        (DAM(tau=-1), "DAM: tau must be a number above 0"),
        (DAM(lam=np.ones(2)), "DAM: lam must be a number above 0"),
        (MultiKT(norm=3), "MultiKT: norm must be 1 or 2. Got 3"),
        (MultiKT(norm=np.ones(2)), "MultiKT: norm must be 1 or 2. Got array"),
        (ForwardRegression(max_selected=0), "ForwardRegression: max_selected must be a whole"),
        (ForwardRegression(tol=-1), "ForwardRegression: tol must be"),
        (BestSource(class_weight="even"), "BestSource: class_weight must be 'balanced'"),
        (DAM(class_weight={0: 0, 1: 1}), r"DAM: class_weight must be a number.*Got 0 for class 0"),
        (RegularizedLeastSquares(passthrough=False), "nothing to choose from"),
    ],
)
def test_bad_parameters_are_refused(model, message, task):
    with pytest.raises(ValueError, match=message):
        model.fit(task.X, task.y)


def test_forward_regression_takes_float32_columns_that_depend_on_one_another():
    rng = np.random.default_rng(11)
    X = rng.normal(size=(12, 8))[:, rng.integers(8, size=40)].astype(np.float32)
    y = np.where(rng.normal(size=12) > 0, 1, 0)
    model = ForwardRegression(tol=0.0).fit(X, y)
    assert 0 < np.count_nonzero(model.feature_weights_) <= 8
