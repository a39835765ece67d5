import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from scipy.special import expit
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, log_loss, make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from holdtrue import (
    GreedyTLClassifier,
    GreedyTLRegressor,
    PathDisplay,
    SelectionPath,
    SourcePool,
)
from holdtrue.datasets import make_sources
from holdtrue.sources import DAM, AverageKT, RegularizedLeastSquares, choose
from holdtrue.sources.choose import LAMBDAS, Task, make_folds


@pytest.fixture(scope="module")
def task():
    return make_sources(n_samples=20, n_sources=200, n_helpful=20, random_state=0)


def three_classes(n=30, seed=0):
    rng = np.random.default_rng(seed)
    centres = 3 * rng.normal(size=(3, 4))
    y = np.arange(n) % 3
    X = centres[y] + rng.normal(size=(n, 4))
    sources = [(f"centre{k}", lambda X, k=k: -np.square(X - centres[k]).sum(1)) for k in range(3)]
    sources += [(f"noise{j}", lambda X, j=j: np.sin(37 * (j + 1) * X[:, 0])) for j in range(20)]
    return X, np.array(["ant", "bee", "cow"])[y], sources


def test_the_sources_that_help_are_found_and_help(task):
    model = GreedyTLClassifier(task.sources, max_selected=3, guard=True).fit(task.X, task.y)
    alone = GreedyTLClassifier(max_selected=3).fit(task.X, task.y)
    assert model.guard_ is True
    assert len(set(model.selected_) & set(task.helpful)) >= 2  # of 3; a tenth of the pool helps
    assert model.used_sources_
    assert model.score(task.X_test, task.y_test) > alone.score(task.X_test, task.y_test) + 0.1
    assert model.loo_errors_["with_sources"] < model.loo_errors_["without_sources"]
    assert "sources help (left-out error" in model.path_.reason
    assert "max_selected=3 was reached" in model.path_.reason
    assert model.source_names_ == [name for name, _ in task.sources]


def test_weights_path_and_support_tell_the_same(task):
    model = GreedyTLClassifier(task.sources, max_selected=4).fit(task.X, task.y)
    d, n = 40, 200
    assert model.feature_weights_.shape == (d,)
    assert model.source_weights_.shape == (n,)
    effects = np.concatenate([model.feature_weights_, model.source_weights_])
    np.testing.assert_array_equal(np.flatnonzero(effects), np.flatnonzero(model.support_))
    assert set(model.path_.order) == set(np.flatnonzero(model.support_))
    assert model.ranking_[model.path_.order].tolist() == [1, 2, 3, 4]
    assert model.path_.train_scores[0] == pytest.approx(1.0)  # balanced ±1
    assert model.path_.train_scores[-1] < model.path_.train_scores[0]
    # The path is that of the scores, the error that of the scores less their threshold.
    assert model.loo_errors_ == {"with_sources": pytest.approx(model.path_.scores[-1], rel=0.03)}
    assert not hasattr(model, "guard_")
    # The raw weights, columns first, give the decision.
    both = np.column_stack([task.X, *(source(task.X) for _, source in task.sources)])
    np.testing.assert_allclose(
        model.decision_function(task.X), model.intercept_ + both @ model.coef_
    )
    evidence = model.path_.evidence
    assert evidence.n_features == d
    assert evidence.names[d:] == tuple(model.source_names_)
    np.testing.assert_array_equal(evidence.weights, effects[None])
    assert evidence.errors == model.loo_errors_
    assert evidence.targets == ("1",)
    assert SelectionPath.from_json(model.path_.to_json()) == model.path_
    # An effect is what one standard deviation adds.
    on_average = np.array([source(task.X) for _, source in task.sources])
    j = int(np.flatnonzero(model.source_weights_)[0])
    moved = model.coef_[d + j] * on_average[j].std()
    assert model.source_weights_[j] == pytest.approx(moved)


def test_the_fit_is_the_kernels(task):
    model = GreedyTLRegressor(task.sources, passthrough=False, lam=0.3, max_selected=5)
    y = 5.0 + 2.0 * task.y + np.linspace(0, 1, 20)
    model.fit(task.X, y)
    Z = np.column_stack([source(task.X) for _, source in task.sources])
    search = choose.Search(5, 1e-4, Z, np.arange(200))
    ((fit, _),) = choose.fit_each(None, search, y[None], np.ones((1, 20)), [0.3])
    np.testing.assert_array_equal(model.path_.order, 40 + fit.order)
    np.testing.assert_allclose(model.source_weights_[fit.order], fit.effects)
    intercept, weights = fit.raw()
    np.testing.assert_allclose(model.predict(task.X), intercept + Z[:, fit.order] @ weights)


@pytest.mark.parametrize("noise", [0.0, 1e-6])
def test_a_bare_fit_takes_equal_columns_for_one_as_a_fit_with_an_estimate_does(noise):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(20, 60))
    X[:, 30:] = 1 - 2 * X[:, :30] + noise * rng.normal(size=(20, 30))
    y = X[:, :5].sum(axis=1)
    bare, whole = (GreedyTLRegressor(estimate=which).fit(X, y) for which in (False, True))
    assert len({j % 30 for j in bare.path_.order.tolist()}) == len(bare.path_.order)
    np.testing.assert_array_equal(bare.path_.order, whole.path_.order)
    np.testing.assert_allclose(bare.coef_, whole.coef_)


def test_sources_that_do_harm_are_reported_and_used_all_the_same():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(16, 2))
    y = X[:, 0] > 0
    sources = [(f"s{j}", lambda X, j=j: np.sin(1e3 * (j + 1) * X[:, 0])) for j in range(300)]
    with pytest.warns(UserWarning, match=r"do not lower the error on left-out rows: .* with them"):
        model = GreedyTLClassifier(sources, guard=True).fit(X, y)
    assert model.guard_ is False
    assert model.used_sources_
    assert model.loo_errors_["with_sources"] > model.loo_errors_["without_sources"]
    assert "sources do not help" in model.path_.reason
    plain = GreedyTLClassifier(sources).fit(X, y)
    np.testing.assert_array_equal(plain.coef_, model.coef_)
    alone = GreedyTLClassifier().fit(X, y)
    assert alone.loo_errors_ == {
        "without_sources": pytest.approx(model.loo_errors_["without_sources"])
    }


def test_a_model_is_never_empty():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(16, 3)), np.arange(16) % 2
    sources = [(f"s{j}", lambda X, j=j: np.sin(1e3 * (j + 1) * X[:, 0])) for j in range(30)]
    for options in ({"max_selected": "loo"}, {"tol": 10.0}, {"lam": 1e9}, {"lam": 1e18}):
        model = GreedyTLClassifier(sources, passthrough=False, **options).fit(X, y)
        assert model.path_.chosen_size >= 1
        assert model.used_sources_


def test_without_the_estimate_the_selection_is_the_same_and_scores_are_nan(task):
    whole = GreedyTLClassifier(task.sources, max_selected=4).fit(task.X, task.y)
    bare = GreedyTLClassifier(task.sources, max_selected=4, estimate=False).fit(task.X, task.y)
    assert bare.selected_ == whole.selected_
    np.testing.assert_allclose(bare.coef_, whole.coef_, rtol=1e-12)
    assert np.isnan(bare.path_.scores).all()
    assert bare.loo_errors_ == {}
    assert not hasattr(bare, "predict_proba")
    for options in ({"lam": "loo"}, {"max_selected": "loo"}):
        bare = GreedyTLClassifier(task.sources, estimate=False, **options).fit(task.X, task.y)
        whole = GreedyTLClassifier(task.sources, **options).fit(task.X, task.y)
        assert bare.selected_ == whole.selected_
        assert np.isnan(bare.path_.scores).all()
        assert bare.loo_errors_ == {}
        assert not hasattr(bare, "temperature_")
    with pytest.raises(ValueError, match="guard=True compares errors on left-out rows"):
        GreedyTLClassifier(task.sources, guard=True, estimate=False).fit(task.X, task.y)


def test_a_bare_fit_takes_one_of_two_near_copies_though_their_scores_differ():
    rng = np.random.default_rng(0)
    y = rng.normal(size=20)
    X = rng.normal(size=(20, 3))
    X[:, 0] -= y * (y @ X[:, 0]) / (y @ y) * 0.9  # hardly tells anything of y
    X[:, 2] = X[:, 0] + 3e-5 * y  # 1 - r is some 5e-10, the score another by 1e-3
    assert 1 - np.corrcoef(X.T)[0, 2] < 1e-9
    options = {"lam": 0.01, "tol": 0.0, "random_state": 0}
    bare = GreedyTLRegressor(estimate=False, **options).fit(X, y)
    assert bare.selected_ == GreedyTLRegressor(**options).fit(X, y).selected_
    assert sorted(bare.selected_) == ["x0", "x1"]


def test_copies_of_a_column_count_once(task):
    S = np.column_stack([source(task.X) for _, source in task.sources])
    one = GreedyTLClassifier(lam=0.5).fit(S, task.y)
    copied = int(one.path_.order[2])
    factors = [f for f in np.linspace(-2, 2, 51) if f]
    copies = np.column_stack([S, *(S[:, [copied]] * f + 1 for f in factors)])
    many = GreedyTLClassifier(lam=0.5).fit(copies, task.y)
    np.testing.assert_array_equal(one.path_.order, many.path_.order)
    assert many.selected_ == one.selected_
    np.testing.assert_allclose(many.decision_function(copies), one.decision_function(S), rtol=1e-6)
    np.testing.assert_allclose(many.coef_, np.append(one.coef_, np.zeros(50)))
    drawn = GreedyTLClassifier(
        SourcePool([(f"s{j}", lambda X, j=j: copies[:, j]) for j in range(copies.shape[1])]),
        passthrough=False, n_candidates=120, random_state=0,
    ).fit(task.X, task.y)  # fmt: skip
    families = [copied if j >= S.shape[1] else j for j in drawn.path_.order - task.X.shape[1]]
    assert len(set(families)) == len(families)


def test_with_one_row_of_each_class_all_columns_share_the_weight():
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(2, 30)), rng.normal(size=(50, 30))
    model = GreedyTLClassifier().fit(X, [0, 1])
    assert model.selected_ == ["x0"]
    ridge = RegularizedLeastSquares(lam=1.0).fit(X, [0, 1])
    assert np.corrcoef(model.decision_function(new), ridge.decision_function(new))[0, 1] > 1 - 1e-9


def test_candidates_of_few_values_that_are_equal_by_chance_share_the_weight():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 3))
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    votes = [(f"v{j}", lambda X, j=j: j - (2 * j - 5) * (X[:, 0] > 0.1 * j)) for j in range(6)]
    votes.append(("copy", lambda X: 7 * X[:, 1]))
    X[:, 0] = np.where(y, 3, -3)
    for options in ({}, {"n_candidates": 6, "random_state": 0}):
        model = GreedyTLClassifier(votes, max_selected=1, passthrough=False, **options).fit(X, y)
        shared = model.source_weights_ != 0
        assert len(model.selected_) == 1
        assert shared.sum() >= (5 if options else 6)  # of the seven, six are drawn
        assert not shared[6]
        np.testing.assert_allclose(np.ptp(np.abs(model.source_weights_[shared])), 0, atol=1e-12)
        assert model.path_.evidence.weights.sum() != 0
        scores = np.column_stack([vote(X) for _, vote in votes])
        decided = model.intercept_ + scores @ model.coef_[3:]
        np.testing.assert_allclose(model.decision_function(X), decided)
        assert "more equal one of them on these rows and share its weight" in model.path_.reason


def test_groups_are_left_out_whole_and_the_reason_says_so():
    # Each group has its own offset in a column that names it: known groups only.
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(8), 5)
    offset = rng.normal(size=8)
    X = np.column_stack([np.eye(8)[groups], rng.normal(size=(40, 2))])
    y = 3 * offset[groups] + 0.1 * rng.normal(size=40)
    rows = GreedyTLRegressor(lam=0.01).fit(X, y)
    whole = GreedyTLRegressor(lam=0.01).fit(X, y, groups=groups.astype(str))
    np.testing.assert_array_equal(rows.path_.order, whole.path_.order)
    assert "new rows: squared error" in rows.path_.reason
    assert "new groups: squared error" in whole.path_.reason
    assert rows.path_.skill[-1] > 0.9
    assert whole.path_.skill[-1] < 0.1
    with pytest.raises(ValueError, match=r"groups must name at least 2 groups. Got one \('a'\)"):
        GreedyTLRegressor().fit(X, y, groups=["a"] * 40)


def test_a_constant_column_does_not_change_the_error_on_left_out_rows():
    rng = np.random.RandomState(0)
    X = rng.normal(size=(60, 3))
    y, groups = X[:, 0] + rng.normal(size=60), np.repeat(np.arange(6), 10)
    constant = np.column_stack([X, np.full(60, 7.0)])
    for given in ({"groups": groups}, {}):
        alone = GreedyTLRegressor(tol=0).fit(X, y, **given).loo_errors_["without_sources"]
        beside = GreedyTLRegressor(tol=0).fit(constant, y, **given).loo_errors_["without_sources"]
        assert beside == pytest.approx(alone, rel=1e-9)


def test_the_penalty_can_be_chosen_by_left_out_rows(task):
    S = np.column_stack([source(task.X) for _, source in task.sources])
    model = GreedyTLClassifier(lam="loo", max_selected=5).fit(S, task.y)
    search = choose.Search(5, 1e-4, S, np.arange(200))
    target = Task(
        np.where(task.y == 1, 1.0, -1.0)[:, None], np.ones(20), balanced=True, truncated=True, X=S
    )

    class Stored:
        def columns(self, wanted):
            return S[:, wanted]

    folds = make_folds(target, in_parts=True)
    outcomes = choose.leave_out(Stored(), target, folds, LAMBDAS, search)
    errors = [outcome.errors.sum(axis=0)[-1] / outcome.total for outcome in outcomes]
    assert model.lam_ == LAMBDAS[int(np.argmin(errors))]
    assert model.path_.scores[-1] == pytest.approx(min(errors))
    assert "the choice of lam repeated" in model.path_.reason


def test_leave_one_out_shows_its_progress_in_a_terminal(task, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("holdtrue.progress._PATIENCE", -1.0)
    GreedyTLClassifier(task.sources, lam="loo", max_selected=2).fit(task.X, task.y)
    assert "left-out rows" in (shown := capsys.readouterr().err)
    assert "10/10" in shown


def test_the_path_can_stop_where_the_left_out_error_is_least(task):
    whole = GreedyTLClassifier(task.sources).fit(task.X, task.y)
    model = GreedyTLClassifier(task.sources, max_selected="loo").fit(task.X, task.y)
    size = 1 + int(whole.path_.scores[1:].argmin())
    assert 0 < size < len(whole.path_.order)
    np.testing.assert_array_equal(model.path_.order, whole.path_.order)
    assert model.path_.chosen_size == size == len(model.selected_)
    assert model.loo_errors_["with_sources"] >= whole.path_.scores.min()
    assert "the error on left-out rows is least here" in model.path_.reason
    cut = GreedyTLClassifier(task.sources, max_selected=size).fit(task.X, task.y)
    np.testing.assert_allclose(model.coef_, cut.coef_)


def test_every_class_stops_at_the_common_size_of_least_error():
    X, y, sources = three_classes()
    model = GreedyTLClassifier(sources, max_selected="loo").fit(X, y)
    weights = np.concatenate([model.source_weights_, model.feature_weights_], axis=1)
    counts = (weights != 0).sum(axis=1)
    assert 0 < counts[0] == counts[1] == counts[2]
    assert model.path_.chosen_size == counts.sum() < len(model.path_.order)
    assert model.path_.scores[model.path_.chosen_size] == model.path_.scores[1:].min()


def test_more_classes_are_one_against_the_rest():
    X, y, sources = three_classes()
    model = GreedyTLClassifier(sources, max_selected=2).fit(X, y)
    assert model.decision_function(X).shape == (30, 3)
    assert model.source_weights_.shape == (3, 23)
    assert model.score(X, y) > 0.9
    assert len(model.path_.order) == 6
    assert model.path_.train_scores[-1] < 0.5
    alone = GreedyTLClassifier(max_selected=2).fit(X, y)
    for k, label in enumerate(["ant", "bee", "cow"]):
        own = GreedyTLClassifier(max_selected=2).fit(X, y == label)
        np.testing.assert_allclose(alone.decision_function(X)[:, k], own.decision_function(X))


def test_classes_that_share_their_weights_share_one_gram():
    X, y, sources = three_classes()
    X = np.column_stack([X, *(source(X) for _, source in sources)])
    model = GreedyTLClassifier(class_weight=None, max_selected=4).fit(X, y)
    for k, label in enumerate(["ant", "bee", "cow"]):
        own = GreedyTLClassifier(class_weight=None, max_selected=4).fit(X, y == label)
        np.testing.assert_allclose(model.decision_function(X)[:, k], own.decision_function(X))


def test_balanced_weights_move_the_threshold_between_unequal_classes():
    rng = np.random.default_rng(0)
    y = np.arange(24) < 3
    X = rng.normal(size=(24, 3)) + 1.2 * y[:, None]
    balanced = GreedyTLClassifier().fit(X, y)
    plain = GreedyTLClassifier(class_weight=None).fit(X, y)
    assert balanced.predict(X)[y].mean() > plain.predict(X)[y].mean()
    by_hand = GreedyTLClassifier(class_weight={True: 7, False: 1}).fit(X, y)
    np.testing.assert_allclose(by_hand.coef_, balanced.coef_)


@pytest.mark.parametrize("most", [None, "loo"])
@pytest.mark.parametrize("n_rows, total", [(14, 17), (10, 50)])
def test_weights_are_repetitions(n_rows, total, most):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 6))
    y = X[:, 0] + rng.normal(size=n_rows)
    weight = np.bincount(rng.integers(n_rows, size=total), minlength=n_rows)
    copies = np.repeat(np.arange(n_rows), weight)
    sources = [("s", lambda X: X[:, 0] - X[:, 1])]
    for kind, target in ((GreedyTLRegressor, y), (GreedyTLClassifier, y > 0)):
        model = kind(sources, max_selected=most)
        weighted = clone(model).fit(X, target, sample_weight=weight)
        repeated = clone(model).fit(X[copies], target[copies])
        np.testing.assert_allclose(weighted.path_.scores, repeated.path_.scores)
        assert weighted.selected_ == repeated.selected_
        np.testing.assert_allclose(weighted._decisions(X), repeated._decisions(X))
        assert weighted.loo_errors_ == pytest.approx(repeated.loo_errors_)


def test_what_fewer_rows_cost_is_shared_by_copies_alike_where_the_size_is_chosen():
    rng = np.random.default_rng(20)
    X = rng.normal(size=(10, 6))
    y = X[:, 0] + rng.normal(size=10)
    weight = rng.choice([1, 1, 1, 6], size=10)
    copies = np.repeat(np.arange(10), weight)
    weighted = GreedyTLRegressor(max_selected="loo").fit(X, y, sample_weight=weight)
    repeated = GreedyTLRegressor(max_selected="loo").fit(X[copies], y[copies])
    assert weighted.loo_errors_ == pytest.approx(repeated.loo_errors_)


def test_the_error_of_many_rows_or_many_copies_is_honest():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5))
    y = X[:, 0] + 0.5 * rng.normal(size=80)
    model = GreedyTLRegressor([("s", lambda X: X[:, 0] + X[:, 1])]).fit(X, y)
    assert 0.2 < model.loo_errors_["with_sources"] < 0.6
    for n_rows in (4, 11, 40):
        X, y = rng.normal(size=(n_rows, 30)), rng.normal(size=n_rows)
        weight = np.full(n_rows, 20.0)
        noise = GreedyTLRegressor([("s", lambda X: np.sin(99 * X[:, 0]))])
        noise.fit(X, y, sample_weight=weight)
        # Pure noise: had a copy of the row stayed, its error would be next to nothing.
        assert noise.loo_errors_["with_sources"] > 0.5 * y.var()


def test_the_penalty_is_not_chosen_by_copies_that_stayed():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10, 30)), np.arange(10) % 2
    alone = RegularizedLeastSquares().fit(X, y)
    assert RegularizedLeastSquares().fit(X, y, sample_weight=np.full(10, 20.0)).lam_ == alone.lam_


def test_randomised_search_is_repeatable_and_runs_few_sources(task):
    pool = SourcePool(task.sources)
    one = GreedyTLClassifier(pool, n_candidates=59, max_selected=3, random_state=0)
    one.fit(task.X, task.y)
    assert pool.n_runs < 3 * 62 * 200 / 240 + 30
    two = clone(one).fit(task.X, task.y)
    assert one.path_ == two.path_
    every = GreedyTLClassifier(pool, n_candidates=10_000, max_selected=3).fit(task.X, task.y)
    exact = GreedyTLClassifier(pool, max_selected=3).fit(task.X, task.y)
    assert every.selected_ == exact.selected_


def test_columns_that_are_scores_are_sources_and_no_longer_features(task):
    scores = np.column_stack([source(task.X) for _, source in task.sources[:20]])
    names = [*(f"x{j}" for j in range(40)), *(name for name, _ in task.sources[:20])]
    table = pd.DataFrame(np.column_stack([task.X, scores]), columns=names)
    pool = SourcePool.from_columns(names[40:])
    model = GreedyTLClassifier(pool).fit(table, task.y)
    run = GreedyTLClassifier(task.sources[:20]).fit(task.X, task.y)
    assert model.selected_ == run.selected_
    np.testing.assert_allclose(model.decision_function(table), run.decision_function(task.X))
    assert len(model.support_) == 60 + 20
    assert not model.support_[40:60].any()
    with pytest.raises(ValueError, match=r"source 0 \('gone'\) must be a column of X"):
        GreedyTLClassifier(SourcePool.from_columns(["gone"])).fit(table, task.y)


def test_indices_put_columns_first_whatever_passthrough_says(task):
    both = GreedyTLClassifier(task.sources, max_selected=3).fit(task.X, task.y)
    only = GreedyTLClassifier(task.sources, max_selected=3, passthrough=False)
    only.fit(task.X, task.y)
    np.testing.assert_array_equal(both.path_.order, only.path_.order)
    assert (only.path_.order >= 40).all()
    assert len(only.support_) == 240


# --- in scikit-learn's company ------------------------------------------------------------------


def test_cloning_shares_the_sources_and_clones_the_rest(task):
    fitted = LogisticRegression().fit(task.X, task.y)
    rng = np.random.RandomState(0)
    model = GreedyTLClassifier([("old", fitted)], lam=2.0, random_state=rng)
    twin = clone(model)
    assert twin.sources is model.sources
    assert twin.sources[0][1] is fitted
    assert twin.lam == 2.0
    assert twin.random_state is not rng
    assert not hasattr(twin, "path_")


@pytest.mark.parametrize("routing", [False, True])
def test_grid_search_over_lam_in_a_pipeline(task, routing):
    fitted = SVC().fit(task.X_test[500:], task.y_test[500:])
    with sklearn.config_context(enable_metadata_routing=routing):
        inner = GreedyTLClassifier([("old", fitted)], passthrough=False)
        # A scorer that says what it wants: the default one of scikit-learn 1.7 cannot be asked.
        scorer = make_scorer(accuracy_score)
        if routing:
            inner.set_fit_request(sample_weight=True)
            scorer.set_score_request(sample_weight=True)
        scaler = StandardScaler(with_mean=False, with_std=False)
        if routing:
            scaler.set_fit_request(sample_weight=False)
        steps = make_pipeline(scaler, inner)
        grid = GridSearchCV(
            steps, {"greedytlclassifier__lam": [0.1, 1.0, "loo"]}, cv=3, scoring=scorer
        )
        grid.fit(task.X, task.y, **({"sample_weight": np.ones(20)} if routing else {}))
        assert grid.score(task.X_test[:500], task.y_test[:500]) > 0.8
        best = grid.best_estimator_[-1]
        assert best.sources[0][1] is fitted


def test_probabilities_are_those_of_left_out_scores(task):
    model = GreedyTLClassifier(task.sources).fit(task.X, task.y)
    shares = model.predict_proba(task.X_test)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(model.classes_[shares.argmax(axis=1)], model.predict(task.X_test))
    honest = log_loss(task.y_test, shares)
    assert honest < 0.6
    # Scores of the rows of the fit are too good: a temperature from them would be too low.
    steep = expit(model.decision_function(task.X_test) / (model.temperature_ / 20))
    assert honest < log_loss(task.y_test, steep)
    noise = GreedyTLClassifier().fit(task.X[:, :10], task.y[np.r_[10:20, :10]])
    assert np.abs(noise.predict_proba(task.X_test[:, :10])[:, 1] - 0.5).max() < 0.45
    calibrated = CalibratedClassifierCV(model, cv=3).fit(task.X, task.y)
    assert calibrated.predict_proba(task.X_test).shape == (1000, 2)
    X, y, sources = three_classes()
    many = GreedyTLClassifier(sources).fit(X, y)
    shares = many.predict_proba(X)
    assert shares.shape == (30, 3)
    np.testing.assert_array_equal(many.classes_[shares.argmax(axis=1)], many.predict(X))


def test_sparse_rows_give_what_dense_rows_give(task):
    X = np.where(np.abs(task.X) > 0.5, task.X, 0)
    csr = sparse.csr_array(X)
    sources = [("sum", lambda X: np.asarray(X.sum(axis=1)).ravel())]
    one = GreedyTLClassifier(sources).fit(csr, task.y)
    two = GreedyTLClassifier(sources).fit(X, task.y)
    np.testing.assert_allclose(one.decision_function(csr), two.decision_function(X))


def test_the_path_is_drawn(task):
    import matplotlib

    matplotlib.use("Agg")
    model = GreedyTLClassifier(task.sources, max_selected=4).fit(task.X, task.y)
    display = PathDisplay.from_estimator(model)
    assert len(display.line_.get_xdata()) == 5
    matplotlib.pyplot.close("all")


def test_guarantees_are_numbers_with_what_they_assume(task):
    model = GreedyTLClassifier(task.sources, max_selected=3).fit(task.X, task.y)
    numbers = model.guarantees_
    assert 0 <= numbers["source_risk"] <= 4
    assert numbers["rate"] > 0
    assert numbers["regime"] in ("fast", "slow")
    assert not numbers["coherence_holds"]
    assert numbers["labels_are_signs"]
    assert not numbers["rows_within_unit_ball"]
    drawn = GreedyTLClassifier(task.sources, max_selected=3, n_candidates=59, random_state=0)
    assert drawn.fit(task.X, task.y).guarantees_.keys() == numbers.keys()
    X, y, sources = three_classes()
    assert GreedyTLClassifier(sources).fit(X, y).guarantees_ == {}
    assert not hasattr(GreedyTLRegressor(sources).fit(X, X[:, 0]), "guarantees_")


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options, message",
    [
        ({"lam": 0}, r"lam must be a number above 0, or 'loo'.*Got 0"),
        ({"lam": -1.0}, "lam must be a number above 0"),
        ({"lam": "LOO"}, "Got 'LOO'"),
        ({"lam": np.nan}, "Got nan"),
        ({"max_selected": 0}, "max_selected must be a whole number of at least 1, None or 'loo'"),
        ({"max_selected": "all"}, "max_selected must be .*Got 'all'"),
        ({"n_candidates": "loo"}, "n_candidates must be a whole number of at least 1, or None"),
        ({"n_candidates": 2.5}, "n_candidates must be a whole number"),
        ({"tol": -1}, "tol must be a number of at least 0. Got -1"),
        ({"lam": np.float64(-0.5)}, "Got -0.5"),
        ({"max_selected": np.int64(0)}, "Got 0"),
        ({"passthrough": "yes"}, "passthrough must be True or False. Got 'yes'"),
        ({"class_weight": "auto"}, "class_weight must be 'balanced', None or a dict.*Got 'auto'"),
        ({"class_weight": np.ones(2)}, "class_weight must be 'balanced', None or a dict"),
        (
            {"class_weight": {0: 1, 1: -5.0}},
            "class_weight must be a number above 0 for every class. Got -5.0 for class 1. Leave",
        ),
        ({"class_weight": {0: np.nan, 1: 1}}, "Got nan for class 0"),
        ({"class_weight": {0: 1, 1: np.inf}}, "Got inf for class 1"),
        ({"class_weight": {0: 1, np.int64(1): np.float64(0)}}, "Got 0.0 for class 1"),
        ({"passthrough": False}, "nothing to choose from. Got no sources and passthrough=False"),
    ],
)
def test_bad_parameters_are_refused(options, message, task):
    with pytest.raises(ValueError, match=f"GreedyTLClassifier: .*{message}"):
        GreedyTLClassifier(**options).fit(task.X, task.y)


def test_bad_rows_are_refused(task):
    model = GreedyTLClassifier(task.sources[:3])
    with pytest.raises(ValueError, match=r"at least 2 classes\. Got 1 class, 0"):
        model.fit(task.X, np.zeros(20, dtype=int))
    with pytest.raises(ValueError, match=r"at least 2 classes\. Got 1 class, 'dog'"):
        model.fit(task.X, np.full(20, "dog"))
    with pytest.raises(ValueError, match=r"at most 100 classes. Got 101"):
        GreedyTLClassifier().fit(
            np.random.default_rng(0).normal(size=(202, 2)), np.arange(202) % 101
        )
    with pytest.raises(ValueError, match=r"needs at least 2 rows\. Got 1 sample"):
        model.fit(task.X[:1], task.y[:1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(task.X, task.y[:-1])
    with pytest.raises(ValueError, match="contains NaN"):
        model.fit(np.where(task.X > 2, np.nan, task.X), task.y)
    with pytest.raises(ValueError, match=r"must differ. Got 'a' twice"):
        GreedyTLClassifier([(np.str_("a"), len), ("a", len)]).fit(task.X, task.y)
    names, models = zip(*task.sources[:3], strict=True)
    with pytest.raises(ValueError, match=r"Got zip, which one fit would use up. Pass list\("):
        GreedyTLClassifier(zip(names, models, strict=True)).fit(task.X, task.y)
    with pytest.raises(ValueError, match=r"source 0 \('nan'\) returned 20 scores that are NaN"):
        GreedyTLClassifier([("nan", lambda X: X[:, 0] * np.nan)]).fit(task.X, task.y)


@pytest.mark.parametrize("unit", [1e200, 1e-170])
@pytest.mark.parametrize("convert", [np.array, sparse.csr_array, sparse.csr_matrix, pd.DataFrame])
def test_numbers_that_cannot_be_squared_are_refused_by_name(convert, unit, task):
    X = task.X.copy()
    X[:, 3] *= unit
    X[0, 5] = 1e200  # in a row that does not count
    given, weight = convert(X), np.arange(20) > 0
    if convert is pd.DataFrame:
        given.columns = [f"c{j}" for j in range(40)]
    name = "'c3'" if convert is pd.DataFrame else "3"
    message = f"the squares of column {name} of X must fit into float64. Got values of size"
    with pytest.raises(ValueError, match=message):
        GreedyTLClassifier([("s", lambda X: np.arange(X.shape[0]))]).fit(
            given, task.y, sample_weight=weight
        )
    with pytest.raises(ValueError, match=r"GreedyTLRegressor: the squares of y must fit"):
        GreedyTLRegressor().fit(task.X, task.y * unit)


@pytest.mark.parametrize("model", [GreedyTLClassifier(), AverageKT(), DAM()], ids=str)
@pytest.mark.parametrize(
    "kind, unit, message",
    [
        ("f8", 1e200, r"size .*e\+200, too large or too small to be squared in float64. Scale"),
        ("f8", 1e-170, r"size .*e-170, too large or too small to be squared in float64. Scale"),
        ("f4", 1e39, r"size .*e\+39, too large or too small for float32.*pass X in float64"),
        ("f4", 1e-40, r"size .*e-40, too large or too small for float32.*pass X in float64"),
    ],
)
def test_scores_that_do_not_fit_are_refused_or_skipped_by_name(kind, unit, message, model, task):
    X = task.X.astype(kind)
    sources = [("good", task.sources[0][1]), ("huge", lambda X: X[:, 0].astype("f8") * unit)]
    for on_error in ("raise", "skip"):
        model = clone(model).set_params(sources=SourcePool(sources, on_error=on_error))
        if on_error == "raise":
            with pytest.raises(ValueError, match=rf"source 1 \('huge'\) returned.*{message}"):
                model.fit(X, task.y)
        else:
            with pytest.warns(UserWarning, match=message):
                model.fit(X, task.y)
    assert model.source_weights_[1] == 0
    np.testing.assert_array_equal(SourcePool(sources).scores(X)[:, 1], X[:, 0].astype("f8") * unit)


@pytest.mark.parametrize("unit", [1e-20, 1e20])
def test_float32_rows_of_any_size_give_what_float64_rows_give(unit, task):
    X = (task.X * unit).astype(np.float32)
    sources = [("sum", lambda X: X.sum(axis=1)), ("large", lambda X: X[:, 1] * 1e5)]
    for model in (GreedyTLClassifier(sources), RegularizedLeastSquares(sources)):
        single, double = clone(model).fit(X, task.y), clone(model).fit(X.astype(float), task.y)
        assert np.count_nonzero(single.feature_weights_)
        np.testing.assert_allclose(
            single.decision_function(X), double.decision_function(X.astype(float)), atol=1e-4
        )


def test_a_constant_source_is_never_chosen_and_said_to_be_one(task):
    sources = [("stuck", lambda X: np.full(len(X), 0.1)), *task.sources[:10]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GreedyTLClassifier(sources, passthrough=False).fit(task.X, task.y)
    assert "stuck" not in model.selected_
    assert "1 source gave one score in every row: 'stuck'" in model.path_.reason


def test_a_constant_target_is_predicted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10, 3))
    model = GreedyTLRegressor([("s", lambda X: X[:, 0])]).fit(X, np.full(10, 2.5))
    assert model.path_.chosen_size == 0
    np.testing.assert_allclose(model.predict(X), 2.5)


def test_an_estimate_without_the_only_group_of_a_class_says_that_it_says_little(task):
    model = GreedyTLClassifier(task.sources)
    model.fit(task.X, task.y, groups=task.y)
    assert "which says little with 1 group of a class" in model.path_.reason
    model.fit(task.X, task.y, groups=np.arange(20) // 2)
    assert "says little" not in model.path_.reason


@pytest.mark.parametrize(("rows", "words"), [(2, "says little"), (4, "is rough"), (5, "")])
def test_an_estimate_from_few_rows_of_a_class_says_so(task, rows, words):
    used = np.concatenate([np.flatnonzero(task.y == side)[:rows] for side in np.unique(task.y)])
    reason = GreedyTLClassifier(task.sources).fit(task.X[used], task.y[used]).path_.reason
    assert ("of a class" in reason) == bool(words)
    assert not words or f", which {words} with {rows} rows of a class" in reason


def classes(n_rows, seed=1):
    rng = np.random.RandomState(seed)
    X = rng.standard_normal((n_rows, 30))
    score = X[:, 0] + X[:, 1] + 0.7 * rng.standard_normal(n_rows)
    return X, np.array(["low", "middle", "high"])[np.digitize(score, [-1, 1])]


PARTS = [(30, {"lam": "loo"}), (60, {}), (60, {"max_selected": "loo"})]


@pytest.mark.parametrize("n_rows, changes", PARTS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_parts_depend_on_values_and_not_on_how_rows_columns_and_classes_are_stored(
    n_rows, changes, n_classes
):
    X, y = classes(n_rows)
    y = y if n_classes == 3 else np.where(y == "high", "high", "low")
    model = GreedyTLClassifier(**changes).fit(X, y)
    rng = np.random.RandomState(0)
    rows, columns = rng.permutation(n_rows), rng.permutation(30)
    renamed = {"low": "b", "middle": "c", "high": "a"}
    units = np.exp(rng.uniform(-9, 9, size=30))
    proba, at = model.predict_proba(X), {name: k for k, name in enumerate(model.classes_)}
    for data, labels, new, names in (
        (X[rows], y[rows], X, at),
        (X[:, columns], y, X[:, columns], at),
        (X * units + units, y, X * units + units, at),
        (sparse.csr_array(X), y, sparse.csr_array(X), at),
        (X, np.array([renamed[name] for name in y]), X, {renamed[n]: k for n, k in at.items()}),
    ):
        other = GreedyTLClassifier(**changes).fit(data, labels)
        assert other.lam_ == model.lam_
        assert other.loo_errors_["without_sources"] == pytest.approx(
            model.loo_errors_["without_sources"], rel=1e-6
        )
        order = [names[name] for name in other.classes_]
        np.testing.assert_allclose(other.predict_proba(new), proba[:, order], atol=1e-6)


def test_parts_of_groups_take_weights_for_repetitions():
    X, y = classes(40)
    rng = np.random.RandomState(0)
    groups, weight = rng.randint(15, size=40), rng.randint(1, 4, size=40)
    rows = np.repeat(np.arange(40), weight)
    one = GreedyTLClassifier(lam="loo").fit(X, y, groups=groups, sample_weight=weight)
    other = GreedyTLClassifier(lam="loo").fit(X[rows], y[rows], groups=groups[rows])
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), atol=1e-6)
    assert one.loo_errors_["without_sources"] == pytest.approx(other.loo_errors_["without_sources"])
