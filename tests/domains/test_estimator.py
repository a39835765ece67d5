"""The estimators: from rows and from sums, what they report, and what they refuse."""

import io
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from holdtrue import (
    Moments,
    SimilarityLearner,
    TGreedyClassifier,
    TGreedyRegressor,
    TGreedySelector,
    progress,
)
from holdtrue.datasets import make_domains
from holdtrue.domains import kernel

RULES = ("greedy", "t", "moderated")


@pytest.fixture(scope="module")
def data():
    return make_domains(n_domains=8, n_samples=60, n_features=15, random_state=3)


def regressor(data, *arguments, **parameters):
    return TGreedyRegressor(*arguments, **parameters).fit(data.X, data.y, groups=data.groups)


# --- what is chosen, and the evidence -----------------------------------------------------------


@pytest.mark.parametrize("stop", ["held_out_domain", "bonferroni", "sign_flip"])
def test_steady_features_are_kept_and_flipping_ones_are_not(stop, data):
    selector = TGreedySelector(stop=stop).fit(data.X, data.y, groups=data.groups)
    assert set(data.steady) <= set(selector.path_.chosen)
    assert len(set(data.fickle) & set(selector.path_.chosen)) <= 1
    assert selector.n_domains_ == 8
    assert selector.transform(data.X).shape == (480, selector.support_.sum())


def test_the_evidence_is_complete(data):
    model = regressor(data)
    n_steps = model.path_.n_steps
    assert model.held_out_scores_.shape == (n_steps + 1, 8)
    np.testing.assert_allclose(model.path_.scores, model.held_out_scores_.mean(axis=1))
    assert model.path_.chosen_size == np.argmin(model.path_.scores)
    assert model.domain_effects_.shape == (15, 8)
    assert len(model.t_statistics_) == len(model.chance_levels_) == n_steps
    low, high = model.new_domain_interval_
    assert low < model.new_domain_score_ < high
    assert model.domain_gap_ == pytest.approx(model.new_domain_score_ - model.source_score_)
    assert "holding out each of 8; 8 domains" in model.path_.reason
    flips = np.sign(model.domain_effects_[data.fickle])
    assert (np.abs(flips.sum(axis=1)) < 8).all()
    assert ((model.domain_effects_[data.steady] > 0).sum(axis=1) >= 7).all()


def test_source_and_held_out_scores_are_those_of_predictions(data):
    model = regressor(data, max_steps=6)
    error = (model.predict(data.X) - data.y) ** 2
    by_domain = [error[data.groups == d].mean() for d in range(8)]
    assert model.source_score_ == pytest.approx(np.mean(by_domain))
    for d in (0, 5):
        kept = data.groups != d
        alone = TGreedyRegressor(stop="max_steps", max_steps=4)
        alone.fit(data.X[kept], data.y[kept], groups=data.groups[kept])
        error = np.mean((alone.predict(data.X[~kept]) - data.y[~kept]) ** 2)
        assert model.held_out_scores_[4, d] == pytest.approx(error)


@pytest.mark.parametrize("rule", ["moderated", "auto"])
def test_the_score_on_a_new_domain_is_nested(rule, data):
    few = data.groups < 5
    X, y, groups = data.X[few], data.y[few], data.groups[few]
    model = TGreedyRegressor(rule, max_steps=5).fit(X, y, groups=groups)
    scores = []
    for d in range(5):
        kept = groups != d
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inner = TGreedyRegressor(rule, max_steps=5).fit(X[kept], y[kept], groups=groups[kept])
        scores.append(np.mean((inner.predict(X[~kept]) - y[~kept]) ** 2))
    assert model.new_domain_score_ == pytest.approx(np.mean(scores))


def test_auto_takes_the_rule_with_the_least_held_out_error(data):
    model = regressor(data, "auto", max_steps=10)
    best = {rule: regressor(data, rule, max_steps=10).path_.scores.min() for rule in RULES}
    assert best[model.rule_] == pytest.approx(min(best.values()))
    assert set(model.rule_scores_) == set(RULES)
    assert f"rule {model.rule_!r} has the least error" in model.path_.reason


def test_one_standard_error_is_no_longer_than_the_least_error(data):
    one_se = regressor(data, stop="held_out_domain_1se")
    assert one_se.path_.chosen_size <= regressor(data).path_.chosen_size
    assert "within one standard error" in one_se.path_.reason


@pytest.mark.filterwarnings("ignore:.*exceeds that of the empty selection")
def test_the_estimate_for_new_domains_is_near_the_truth():
    errors, expected = [], []
    for seed in range(10):
        data = make_domains(8, 60, n_features=15, n_new_domains=30, random_state=seed)
        model = regressor(data, max_steps=8)
        errors.append(np.mean((model.predict(data.X_new) - data.y_new) ** 2))
        expected.append(model.new_domain_score_)
    assert np.mean(expected) == pytest.approx(np.mean(errors), rel=0.2)


def test_guarantees_say_how_many_domains_they_need(data):
    few = regressor(data).guarantees_
    assert np.isinf(few["effect_low"]).all()
    assert np.isinf(few["regret"]).all()
    many = make_domains(150, 20, n_features=3, n_steady=1, n_fickle=1, random_state=0)
    given = regressor(many, stop="bound", stepwise=True)
    assert given.guarantees_["effect_domains_needed"] <= 150
    # E[x y] is 1 for the steady feature and 0 for the others.
    assert given.guarantees_["effect_low"][0, 0] < 1 < given.guarantees_["effect_high"][0, 0]
    assert given.guarantees_["effect_low"][0, 2] < 0 < given.guarantees_["effect_high"][0, 2]
    assert np.isfinite(given.guarantees_["regret"]).all()
    assert given.path_.chosen.tolist() == [0]
    assert given.path_.reason.startswith("bound: the next |T|")


def test_many_domains_are_held_out_in_parts():
    data = make_domains(30, 20, n_features=10, random_state=0)
    model = regressor(data, max_steps=5)
    assert "holding out 10 parts of 30" in model.path_.reason
    assert np.isfinite(model.held_out_scores_).all()
    assert np.isfinite(model.new_domain_score_)


def test_threads_change_nothing(data):
    assert regressor(data, n_jobs=2).path_ == regressor(data).path_


# --- two routes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
def test_sums_give_the_fit_of_rows(rule, data):
    unlabeled = data.X_new[:50]
    rows = TGreedyRegressor(rule).fit(data.X, data.y, groups=data.groups, X_unlabeled=unlabeled)
    sums = TGreedyRegressor(rule).fit_statistics(
        Moments.from_arrays(data.X, data.y, groups=data.groups),
        unlabeled=Moments.from_arrays(unlabeled),
    )
    np.testing.assert_array_equal(rows.path_.order, sums.path_.order)
    np.testing.assert_allclose(rows.coef_, sums.coef_)
    assert sums.new_domain_score_ == pytest.approx(rows.new_domain_score_)
    np.testing.assert_array_equal(sums.domains_, rows.domains_)


@pytest.mark.parametrize(
    "estimator", [TGreedyRegressor(), TGreedyRegressor(stop="max_steps", max_steps=9)]
)
def test_little_memory_gives_the_same_picks(estimator, data):
    whole = sklearn.clone(estimator).fit(data.X, data.y, groups=data.groups)
    with sklearn.config_context(working_memory=0):
        parts = sklearn.clone(estimator).fit(data.X, data.y, groups=data.groups)
    np.testing.assert_array_equal(whole.path_.order, parts.path_.order)
    np.testing.assert_allclose(whole.coef_, parts.coef_)


@pytest.mark.parametrize("memory", [0, 1024])
@pytest.mark.parametrize("groups", [True, False])
def test_csr_rows_give_what_dense_rows_give(memory, groups, data):
    X = np.where(data.X > 1, data.X, 0.0)
    given = data.groups if groups else None
    dense = TGreedyRegressor().fit(X, data.y, groups=given)
    if not groups and memory == 0:
        with (
            sklearn.config_context(working_memory=0),
            pytest.raises(ValueError, match="sparse rows are made dense"),
        ):
            TGreedyRegressor().fit(sparse.csr_matrix(X), data.y)
        return
    with sklearn.config_context(working_memory=memory):
        thin = TGreedyRegressor().fit(sparse.csr_matrix(X), data.y, groups=given)
    np.testing.assert_array_equal(dense.path_.order, thin.path_.order)
    np.testing.assert_allclose(thin.predict(sparse.csr_matrix(X)), dense.predict(X))
    selector = TGreedySelector().fit(sparse.csr_matrix(X), data.y, groups=given)
    assert sparse.issparse(selector.transform(sparse.csr_matrix(X)))


def test_float32_rows_give_the_picks_of_float64(data):
    wide = regressor(data)
    narrow = TGreedyRegressor().fit(
        data.X.astype(np.float32), data.y.astype(np.float32), groups=data.groups
    )
    size = wide.path_.chosen_size
    assert narrow.path_.chosen_size == size
    np.testing.assert_array_equal(narrow.path_.order[:size], wide.path_.order[:size])
    assert narrow.new_domain_score_ == pytest.approx(wide.new_domain_score_, rel=1e-3)


def test_without_groups_t_is_students(data):
    X, y = data.X[:, :1], data.y
    model = TGreedyRegressor("t").fit(X, y)
    effect = (X[:, 0] - X.mean()) * (y - y.mean())
    t = effect.mean() / (effect.std(ddof=1) / np.sqrt(len(y)))
    assert model.t_statistics_[0] == pytest.approx(t)
    assert model.n_domains_ == 480
    assert "rows as domains" in model.path_.reason
    assert not hasattr(model, "domain_effects_")
    assert np.isnan(model.path_.scores).all()


def test_rows_as_named_domains_are_the_same_as_no_groups(data):
    X, y = data.X[:40], data.y[:40]
    with pytest.warns(UserWarning, match="every domain has a single row"):
        named = TGreedyRegressor("t", stop="max_steps", max_steps=8).fit(X, y, groups=np.arange(40))
    bare = TGreedyRegressor("t", stop="max_steps", max_steps=8).fit(X, y)
    np.testing.assert_array_equal(named.path_.order, bare.path_.order)
    np.testing.assert_allclose(named.coef_, bare.coef_)


def test_weights_are_repetitions_with_groups_and_without(data):
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 3, size=480)
    copies = rng.permutation(np.repeat(np.arange(480), weight))
    for groups in (data.groups, None):
        for parameters in ({}, {"rule": "auto", "stop": "held_out_domain", "max_steps": 4}):
            one = TGreedyRegressor(**parameters).fit(
                data.X, data.y, groups=groups, sample_weight=weight
            )
            own = None if groups is None else groups[copies]
            other = TGreedyRegressor(**parameters).fit(data.X[copies], data.y[copies], groups=own)
            np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-6)
            assert one.path_.reason == other.path_.reason


# --- classes ------------------------------------------------------------------------------------


def test_two_classes_are_a_regression_on_plus_and_minus_one(data):
    y = np.where(data.y > 0, "up", "down")
    model = TGreedyClassifier().fit(data.X, y, groups=data.groups)
    numbers = TGreedyRegressor().fit(data.X, np.where(data.y > 0, 1.0, -1), groups=data.groups)
    np.testing.assert_array_equal(model.path_.order, numbers.path_.order)
    np.testing.assert_allclose(model.decision_function(data.X), numbers.predict(data.X))
    assert model.score(data.X, y) > 0.65
    assert not hasattr(model, "predict_proba")


def test_several_classes_share_one_path(data):
    y = np.digitize(data.y, [-2, 2])
    model = TGreedyClassifier().fit(data.X, y, groups=data.groups)
    assert model.coef_.shape == (3, 15)
    assert model.domain_effects_.shape == (3, 15, 8)
    assert model.decision_function(data.X).shape == (480, 3)
    assert model.score(data.X, y) > 0.45
    text = TGreedySelector().fit(data.X, y.astype(str), groups=data.groups)
    np.testing.assert_array_equal(text.path_.order, model.path_.order)
    coded = np.where(y[:, None] == np.arange(3), 1.0, -1.0)
    sums = Moments.from_arrays(data.X, coded, groups=data.groups)
    again = TGreedyClassifier().fit_statistics(sums, classes=["a", "b", "c"])
    np.testing.assert_allclose(again.coef_, model.coef_)
    assert set(again.predict(data.X)) <= set("abc")
    with pytest.raises(ValueError, match="classes must name 3"):
        TGreedyClassifier().fit_statistics(sums, classes=["a", "b"])
    with pytest.raises(ValueError, match="expected the moments of one target"):
        TGreedyRegressor().fit_statistics(sums)


def test_a_class_missing_from_a_domain_is_said(data):
    y = np.where((data.groups == 2) | (data.y > 0), "up", "down")
    with pytest.warns(
        UserWarning, match="1 of 8 domains lacks a class, such as class 'down' in domain 2"
    ):
        TGreedyClassifier().fit(data.X, y, groups=data.groups)


@pytest.mark.filterwarnings("ignore:.*(lack|exceeds)")
@pytest.mark.parametrize("unit", [1e8, 1e-8])
def test_a_class_of_one_domain_alone_is_a_constant_target_without_it_in_any_unit(unit, data):
    at = data.groups < 5
    X, groups = data.X[at], data.groups[at]
    y = np.where((groups == 2) & (data.y[at] > 1), 2, data.y[at] > 0)
    one, other = (TGreedyClassifier().fit(X * u, y, groups=groups) for u in (1.0, unit))
    np.testing.assert_array_equal(other.path_.order, one.path_.order)
    np.testing.assert_allclose(other.held_out_scores_, one.held_out_scores_)
    np.testing.assert_allclose(other.t_scores_, one.t_scores_)
    assert other.new_domain_score_ == pytest.approx(one.new_domain_score_)
    still = TGreedyRegressor().fit(X * unit, np.ones(len(X)), groups=groups)
    np.testing.assert_array_equal(still.t_scores_, 0.0)


# --- fixed features -----------------------------------------------------------------------------


@pytest.mark.parametrize("fixed", [[9, 4], ["x9", "x4"], None])
def test_fixed_features_are_always_kept(fixed, data):
    X = pd.DataFrame(data.X, columns=[f"x{j}" for j in range(15)])
    mask = np.isin(np.arange(15), [4, 9]) if fixed is None else fixed
    model = TGreedyRegressor(fixed_features=mask).fit(X, data.y, groups=data.groups)
    assert set(model.path_.order[:2]) == {4, 9}
    assert model.path_.chosen_size >= 2
    assert model.support_[[4, 9]].all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        none = TGreedySelector(fixed_features=[1], stop="bonferroni", alpha=1e-9)
        none.fit(data.X, data.y, groups=data.groups)
    assert none.path_.chosen.tolist() == [1]


# --- beside scikit-learn ------------------------------------------------------------------------


def test_selector_works_in_a_pipeline_and_names_its_columns(data):
    X = pl.DataFrame({f"gene {j}": data.X[:, j] for j in range(15)})
    selector = TGreedySelector(stop="bonferroni").set_output(transform="polars")
    kept = selector.fit(X, data.y, groups=data.groups).transform(X)
    assert kept.columns == [f"gene {j}" for j in np.flatnonzero(selector.support_)]
    pipeline = make_pipeline(StandardScaler(), TGreedySelector(), LinearRegression())
    assert pipeline.fit(data.X, data.y).score(data.X, data.y) > 0.1


def test_groups_and_unlabelled_rows_are_routed(data):
    with sklearn.config_context(enable_metadata_routing=True):
        last = TGreedyRegressor().set_fit_request(groups=True, X_unlabeled=True)
        pipeline = Pipeline(
            [("scale", StandardScaler()), ("model", last)], transform_input=["X_unlabeled"]
        )
        pipeline.fit(data.X, data.y, groups=data.groups, X_unlabeled=data.X_new)
        assert pipeline[-1].n_domains_ == 8
        scores = cross_val_score(
            TGreedyRegressor().set_fit_request(groups=True),
            data.X,
            data.y,
            cv=GroupKFold(4),
            params={"groups": data.groups},
        )
    assert len(scores) == 4
    search = GridSearchCV(TGreedyRegressor(), {"rule": RULES}, cv=GroupKFold(4))
    search.fit(data.X, data.y, groups=data.groups)  # without routing, groups serve the splits only


def test_choosing_nothing_is_an_answer(data):
    noise = np.random.default_rng(0).normal(size=480)
    selector = TGreedySelector(stop="bonferroni", alpha=1e-6)
    assert selector.fit(data.X, noise, groups=data.groups).transform(data.X).shape == (480, 0)
    model = TGreedyRegressor(stop="bonferroni", alpha=1e-6)
    model.fit(data.X, noise, groups=data.groups)
    np.testing.assert_allclose(model.predict(data.X), noise.mean())
    frame = pd.DataFrame(data.X)
    frame.columns = frame.columns.astype(str)
    selector.set_output(transform="pandas").fit(frame, noise, groups=data.groups)
    assert selector.transform(frame).shape == (480, 0)


def test_a_refit_without_groups_forgets_the_domains(data):
    model = regressor(data)
    model.fit(data.X, data.y)
    assert not hasattr(model, "held_out_scores_")
    assert not hasattr(model, "new_domain_score_")


def test_an_interrupted_fit_leaves_the_path_so_far(monkeypatch, data):
    calls = iter(range(1000))
    step = kernel.Walk.step

    def interrupted(self):
        if next(calls) == 7:
            raise KeyboardInterrupt
        return step(self)

    monkeypatch.setattr(kernel.Walk, "step", interrupted)
    model = TGreedyRegressor()
    with pytest.raises(KeyboardInterrupt):
        model.fit(data.X, data.y, groups=data.groups)
    assert (model.path_.reason, model.path_.n_steps) == ("interrupted", 7)
    with pytest.raises(NotFittedError):
        model.predict(data.X)


def test_held_out_walks_are_counted_on_a_terminal(monkeypatch, data):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(progress, "_PATIENCE", -1.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    regressor(data, max_steps=2)
    # Each of 8 domains, and each of their 28 pairs.
    assert sys.stderr.getvalue().endswith("# 36/36\n")
    assert sys.stderr.getvalue().startswith("\rheld-out walks ")
    SimilarityLearner(max_steps=2).fit(data.X, data.groups)
    assert sys.stderr.getvalue().count("# 36/36\n") == 2


def test_an_interruption_among_held_out_walks_keeps_the_whole_path(monkeypatch, data):
    step = kernel.Walk.step

    def interrupted(self):
        if not self.weight.all():
            raise KeyboardInterrupt
        return step(self)

    monkeypatch.setattr(kernel.Walk, "step", interrupted)
    model = TGreedyRegressor(max_steps=9)
    with pytest.raises(KeyboardInterrupt):
        model.fit(data.X, data.y, groups=data.groups)
    assert (model.path_.reason, model.path_.n_steps) == ("interrupted", 9)


# --- bad input ----------------------------------------------------------------------------------

X6 = np.arange(12.0).reshape(6, 2) ** 2 % 7
y6 = np.array([1.0, 2, 4, 3, 5, 2])
sites = ["A", "A", "B", "B", "C", "C"]


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"rule": "moderate"}, "rule must be one of.*Did you mean 'moderated'"),
        ({"stop": "held_out"}, "stop must be one of.*Did you mean 'held_out_domain'"),
        ({"max_steps": 0}, "max_steps must be a whole number of at least 1, or None. Got 0"),
        ({"max_steps": 2.5}, "max_steps must be a whole number"),
        ({"stop": "max_steps"}, "stop='max_steps' needs the number of steps"),
        ({"alpha": 1.5}, "alpha must be between 0 and 1. Got 1.5"),
        ({"alpha": "x"}, "alpha must be between 0 and 1"),
        ({"fixed_features": [5]}, "fixed_features must name columns of X.*from 0 to 1"),
        ({"fixed_features": [0, 0]}, "each once"),
        ({"fixed_features": ["age"]}, "fixed_features must name"),
        ({"fixed_features": [0.5]}, "fixed_features must name"),
        ({"fixed_features": [True]}, "a mask of length 2"),
        ({"fixed_features": 3}, "fixed_features must name"),
        ({"stop": "sign_flip"}, "cannot reject with 3 domains.*0.25, above alpha=0.05.*needs 6"),
        ({"stop": "bound"}, r"Theorem 1 needs at least 36 domains for 2 candidates.*Got 3"),
    ],
)
def test_bad_parameters_are_refused_before_any_work(parameters, message):
    with pytest.raises(ValueError, match=message) as caught:
        TGreedyRegressor(**parameters).fit(X6, y6, groups=sites)
    assert str(caught.value).startswith("TGreedyRegressor: ")


ROWS = [
    ({"groups": ["A"] * 6}, r"needs at least 2 domains, got 1 \('A' in every row\). Pass the"),
    ({"groups": ["A", "B"]}, r"groups must have one value per row, shape \(6,\). Got shape \(2,\)"),
    ({"groups": ["A", None, "B", "B", "A", "A"]}, "Got a missing value in row 1"),
    ({"groups": [0, np.nan, 1, 1, 0, 0]}, "Got a missing value in row 1"),
    ({"groups": np.array(["A", 1, "B", "B", "A", "A"], dtype=object)}, "all text or all numbers"),
    ({"X": np.where(X6 == 4, np.nan, X6)}, "X contains NaN"),
    ({"y": np.where(y6 == 5, np.nan, y6)}, "y contains NaN"),
    ({"y": np.column_stack([y6, y6])}, "y should be a 1d array"),
    ({"X_unlabeled": np.ones((2, 3))}, r"\(n_unlabeled, 2\). Got shape \(2, 3\)"),
    ({"sample_weight": -np.ones(6)}, "finite and not negative"),
    ({"X": X6[:1], "y": y6[:1], "groups": None}, "Got 1 sample"),
    ({"groups": None, "sample_weight": np.full(6, 0.1)}, "weights are repetitions"),
    ({"X": 1e160 * X6}, "the squares of X must fit into float64. Got values of size"),
    ({"X": 1e160 * X6, "groups": None}, "the squares of X must fit into float64. Got values of"),
    ({"X": (1e25 * X6).astype(np.float32)}, "the squares of X must fit into float32. Got values"),
    ({"X": 1e-160 * X6}, r"the squares of X must fit into float64. Got values of size .*e-160"),
    (
        {"y": 1e100 * y6},
        r"the fourth powers of y must fit into float64. Got values .*e\+100. Change",
    ),
]


@pytest.mark.parametrize("arguments, message", ROWS)
def test_bad_rows_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        TGreedyRegressor().fit(**{"X": X6, "y": y6, "groups": sites, **arguments})


@pytest.mark.parametrize(
    "value, message", [(np.nan, "missing values"), (np.inf, "infinite values")]
)
@pytest.mark.parametrize("steps", [{}, {"stop": "max_steps", "max_steps": 2}])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_value_that_is_not_finite_is_refused_by_its_column(value, message, steps, dtype):
    # Sums say that there is one, of whole matrices and of the columns of a few steps alike.
    X = np.random.default_rng(0).normal(size=(60, 12)).astype(dtype)
    X[7, 2] = value
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(12)])
    with pytest.raises(ValueError, match=f"TGreedyRegressor: X has {message} in 'c2'"):
        TGreedyRegressor(**steps).fit(frame, X[:, 0], groups=np.arange(60) % 6)


def test_two_domains_can_be_tested_but_not_held_out():
    two = ["A", "A", "A", "B", "B", "B"]
    with pytest.warns(UserWarning, match=r"of 2 domains none can be held out.*needs 3 domains"):
        model = TGreedyRegressor().fit(X6, y6, groups=two)
    assert "bonferroni" in model.path_.reason
    assert np.isnan(model.new_domain_score_)
    TGreedyRegressor(stop="max_steps", max_steps=1).fit(X6, y6, groups=two)  # claims nothing
    for parameters in ({"stop": "held_out_domain"}, {"rule": "auto"}):
        with pytest.raises(ValueError, match="needs at least 3 domains"):
            TGreedyRegressor(**parameters).fit(X6, y6, groups=two)
    with pytest.warns(UserWarning, match="with 3 domains new_domain_score_ is not nested"):
        three = TGreedyRegressor().fit(X6, y6, groups=sites)
    assert three.new_domain_score_ == pytest.approx(three.path_.scores[three.path_.chosen_size])
    assert "needs 4 domains" in three.path_.evidence.notes[-1]


@pytest.mark.filterwarnings("ignore:.*is not nested")
def test_a_domain_with_one_row_is_said():
    with pytest.warns(UserWarning, match="1 of 3 domains has a single row, such as 'C'"):
        TGreedyRegressor().fit(X6[:5], y6[:5], groups=sites[:5])


def test_sign_flips_without_groups_need_whole_weights():
    X, y = np.tile(X6, (2, 1)), np.tile(y6, 2)
    weight = np.linspace(0.5, 2, 12)
    with pytest.raises(ValueError, match="weights must be whole numbers"):
        TGreedyRegressor(stop="sign_flip").fit(X, y, sample_weight=weight)


def test_sums_that_cannot_be_fitted_are_refused():
    for sums in (Moments.from_arrays(X6), "sums"):
        with pytest.raises(ValueError, match="expected Moments with a target"):
            TGreedyRegressor().fit_statistics(sums)
    with pytest.raises(ValueError, match="needs at least 2 domains"):
        TGreedyRegressor().fit_statistics(Moments.from_arrays(X6, y6))
    with pytest.raises(ValueError, match="unlabeled must be one domain of 2 features"):
        TGreedyRegressor().fit_statistics(
            Moments.from_arrays(X6, y6, groups=sites), unlabeled=Moments.from_arrays(X6[:, :1])
        )


@pytest.mark.filterwarnings("ignore:.*is not nested")
def test_a_constant_target_or_feature_is_no_trouble():
    model = TGreedyRegressor().fit(X6, np.full(6, 3.0), groups=sites)
    assert model.path_.chosen_size == 0
    np.testing.assert_allclose(model.predict(X6), 3.0)
    X = np.column_stack([np.full(6, 0.1), X6])
    assert 0 not in TGreedyRegressor().fit(X, y6, groups=sites).path_.order


@pytest.mark.parametrize("unit", [1e-100, 1e100])
def test_large_and_small_units_change_nothing(unit, data):
    moved = TGreedyRegressor().fit(unit * data.X, data.y, groups=data.groups)
    np.testing.assert_array_equal(moved.path_.order, regressor(data).path_.order)


@pytest.mark.parametrize("rule", ["greedy", "t", "moderated"])
def test_a_feature_quiet_in_all_domains_but_one_is_no_candidate(rule, data):
    rng = np.random.default_rng(0)
    loud = np.where(data.groups == 2, 1.0, 1e-6) * rng.normal(size=(20, len(data.y)))
    X = np.column_stack([data.X, loud.T])
    model = TGreedyRegressor(rule).fit(X, data.y, groups=data.groups)
    assert model.path_.order.max() < data.X.shape[1]
    # Without domain 2 such a feature has a weight of about 1e6, which ruins the error there.
    assert model.held_out_scores_.max() < 10 * data.y.var()
    kept = TGreedyRegressor(rule, fixed_features=[len(X.T) - 1])
    with pytest.warns(UserWarning, match="exceeds that of the empty selection"):
        assert kept.fit(X, data.y, groups=data.groups).support_[-1]


# --- rows as people have them -------------------------------------------------------------------


def far_rows(seed=0, n_domains=8, mean=1e4):
    """Float32 rows of large means, and a target that three of the fifty features explain."""
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(250 * n_domains, 50)) + mean).astype(np.float32)
    y = X[:, :3].astype(float).sum(axis=1) - 3 * mean + 0.1 * rng.normal(size=len(X))
    return X, y, np.repeat(np.arange(n_domains), 250)


@pytest.mark.parametrize("as_given", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_float32_rows_of_large_means_lose_no_digits_by_columns(as_given):
    X, y, groups = far_rows()
    by_columns, whole = (
        TGreedyRegressor(stop="max_steps", max_steps=steps).fit(as_given(X), y, groups=groups)
        for steps in (12, 13)  # of 50 features: columns as they are asked for, whole matrices
    )
    np.testing.assert_array_equal(by_columns.path_.order[:6], whole.path_.order[:6])
    assert set(by_columns.path_.order[:3].tolist()) == {0, 1, 2}
    for model in (by_columns, whole):
        error = np.mean((y - model.predict(X.astype(float))) ** 2)
        assert model.source_score_ == pytest.approx(error, rel=0.02)


def test_a_constant_column_is_no_feature_of_sparse_rows(data):
    X = np.column_stack([data.X[:, :3], np.full((len(data.X), 3), [0.1, 0.3, 0.7])])
    for memory in (0, 1024):  # columns as they are asked for, whole matrices
        with sklearn.config_context(working_memory=memory):
            selector = TGreedySelector("t", stop="max_steps", max_steps=6)
            selector.fit(sparse.csr_array(X), data.y, groups=data.groups)
        assert selector.path_.order.max() < 3
        assert (selector.t_scores_[3:] == 0).all()


@pytest.mark.parametrize("weight", [1.0, 0.2, 0.05])
def test_small_weights_of_rows_as_domains_leave_every_feature_a_candidate(weight):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    model = TGreedyRegressor("greedy", stop="max_steps", max_steps=3)
    model.fit(X, y, sample_weight=np.full(60, weight))
    assert model.path_.order[0] == 0
    assert model.coef_[0] == pytest.approx(1, abs=0.1)


def test_sign_flips_end_where_no_candidate_is_left(data):
    model = TGreedyRegressor(stop="sign_flip")
    model.fit(np.ones_like(data.X), data.y, groups=data.groups)
    assert model.path_.n_steps == 0
    X = data.X[:, :3]
    y = X @ [1.0, 1, 1] + 0.001 * data.y
    model = TGreedyRegressor(stop="sign_flip", stepwise=True, fixed_features=[0])
    assert model.fit(X, y, groups=data.groups).path_.n_steps == 3


def test_guarantees_of_dependent_features_count_those_that_are_not():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(90), 6)
    H = np.eye(3)[rng.integers(0, 3, 540)]
    y = H @ [1.0, 2, 4] + 0.1 * rng.normal(size=540)
    model = TGreedyRegressor(stop="bonferroni", max_steps=30).fit(H, y, groups=groups)
    assert np.isfinite(model.guarantees_["regret"]).all()
    twice = TGreedyRegressor(stop="bonferroni", max_steps=30)
    twice.fit(np.column_stack([H[:, :2], H[:, :2]]), y, groups=groups)
    assert (twice.guarantees_["regret"] >= 0).all()


def test_holding_out_rows_needs_three():
    X, y = np.array([[0.0], [1.0]]), np.array([0.0, 1.0])
    for model in (TGreedyRegressor("auto"), TGreedyRegressor(stop="held_out_domain")):
        with pytest.raises(ValueError, match="needs at least 3 rows, and a weight"):
            model.fit(X, y)
    equal = TGreedyRegressor(stop="held_out_domain").fit(np.ones((4, 1)), np.ones(4))
    np.testing.assert_array_equal(equal.predict(np.zeros((2, 1))), 1.0)
    with pytest.raises(ValueError, match=r"in all but the heaviest\. Got 4 .* 1\."):
        TGreedyRegressor(stop="held_out_domain").fit(
            np.arange(4.0)[:, None], [0, 1, 0, 1], sample_weight=[1, 0.4, 0.3, 0.3]
        )


@pytest.mark.parametrize("seed", range(6))
def test_weights_are_repetitions_within_one_standard_error_too(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(15, 3))
    y = X[:, 0] + rng.normal(size=15)
    copies = rng.integers(1, 5, size=15)
    weighted, repeated = (
        TGreedyRegressor("greedy", stop="held_out_domain_1se", max_steps=5).fit(
            *rows, sample_weight=weight
        )
        for *rows, weight in (
            (X, y, copies),
            (np.repeat(X, copies, axis=0), np.repeat(y, copies), None),
        )
    )
    assert weighted.path_.chosen_size == repeated.path_.chosen_size


def test_what_the_target_is_does_not_depend_on_its_container(data):
    decimals = pl.Series(data.y).cast(pl.Decimal(None, 3))
    y = decimals.cast(pl.Float64).to_numpy()
    plain = TGreedySelector().fit(data.X, y, groups=data.groups)
    for same in (y.astype(object), decimals):
        selector = TGreedySelector().fit(data.X, same, groups=data.groups)
        np.testing.assert_allclose(selector.domain_effects_, plain.domain_effects_)
    classes = np.where(y > 0, 2, 7)
    with pytest.warns(UserWarning, match="A column-vector y was passed"):
        column = TGreedySelector().fit(data.X, classes[:, None], groups=data.groups)
    assert column.classes_.tolist() == [2, 7]
    as_classes = TGreedyClassifier().fit(data.X, classes, groups=data.groups)
    selector = TGreedySelector().fit(
        data.X, pd.Series(classes).astype("category"), groups=data.groups
    )
    np.testing.assert_allclose(selector.domain_effects_, as_classes.domain_effects_)


def test_unlabelled_sums_must_be_of_the_same_columns(data):
    names = [f"c{j}" for j in range(15)]
    sums = Moments.from_arrays(data.X, data.y, groups=data.groups, feature_names=names)
    other = Moments.from_arrays(data.X, feature_names=names[::-1])
    with pytest.raises(ValueError, match="unlabeled must have the columns of moments"):
        TGreedyRegressor().fit_statistics(sums, unlabeled=other)
    with pytest.raises(ValueError, match=r"unlabeled must be Moments\. Got ndarray"):
        TGreedyRegressor().fit_statistics(sums, unlabeled=data.X)


def test_weighted_rows_are_held_out_as_repeated_ones_are():
    model = TGreedyRegressor("auto", domain_weight="auto", stop="held_out_domain_1se")
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = np.exp(2 * rng.normal(size=(30, 4)))
        y = X[:, 0] + rng.standard_t(2, size=30)
        weight = rng.integers(0, 4, 30)
        copies = rng.permutation(np.repeat(np.arange(30), weight))
        once = clone(model).fit(X, y, sample_weight=weight)
        again = clone(model).fit(X[copies], y[copies])
        assert once.path_.chosen_size == again.path_.chosen_size
        np.testing.assert_allclose(once.path_.scores, again.path_.scores)
        np.testing.assert_allclose(once.coef_, again.coef_)
