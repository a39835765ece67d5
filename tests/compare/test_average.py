"""DomainAverage: weights by brute force, a nested error, calibrated shares."""

import re
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GroupKFold, GroupShuffleSplit
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from holdtrue import (
    DomainAverageClassifier,
    DomainAverageRegressor,
    TGreedyClassifier,
    compare_models,
)
from holdtrue.datasets import make_domains
from holdtrue.errors import InputError

MODELS = {"line": LinearRegression(), "stiff": Ridge(1e4), "mean": DummyRegressor()}


@pytest.fixture(scope="module")
def data():
    return make_domains(n_domains=7, random_state=0)


def brute_force(X, y, groups, power, parts):
    """Nested predictions and final weights, refitting everything each time."""

    def weights(rows):
        losses = []
        for model in MODELS.values():
            errors = {}
            for part in np.unique(parts[rows]):
                train, test = rows[parts[rows] != part], rows[parts[rows] == part]
                predicted = model.fit(X[train], y[train]).predict(X[test])
                for domain in np.unique(groups[test]):
                    at = groups[test] == domain
                    errors[domain] = np.mean((predicted[at] - y[test][at]) ** 2)
            losses.append(np.mean(list(errors.values())))
        raw = np.array(losses) ** -power
        return raw / raw.sum()

    nested = np.empty(len(y))
    every = np.arange(len(y))
    for part in np.unique(parts):
        train, test = every[parts != part], every[parts == part]
        share = weights(train)
        nested[test] = sum(
            w * m.fit(X[train], y[train]).predict(X[test])
            for w, m in zip(share, MODELS.values(), strict=True)
        )
    return nested, weights(every)


def test_weights_and_nested_error_are_those_of_refitting_everything(data):
    model = DomainAverageRegressor(MODELS, power=3, cv=4)
    model.fit(data.X, data.y, groups=data.groups)
    parts = np.empty(len(data.y), int)
    from holdtrue.compare.contest import rows_in_parts
    from holdtrue.compare.field import Rows

    _, split = rows_in_parts(Rows(None, data.y, data.groups), 4, is_classes=False, random_state=0)
    for k, (_, test) in enumerate(split):
        parts[test] = k
    nested, weights = brute_force(data.X, data.y, data.groups, 3, parts)
    np.testing.assert_allclose(list(model.weights_.values()), weights, rtol=1e-9)
    errors = [np.mean((nested - data.y)[data.groups == d] ** 2) for d in np.unique(data.groups)]
    assert model.new_domain_score_ == pytest.approx(np.mean(errors), rel=1e-9)
    low, high = model.new_domain_interval_
    assert low < model.mean_interval_[0] < model.new_domain_score_ < model.mean_interval_[1] < high


def test_predictions_are_the_weighted_mean(data):
    model = DomainAverageRegressor(MODELS).fit(data.X, data.y, groups=data.groups)
    wanted = sum(
        model.weights_[name] * m.fit(data.X, data.y).predict(data.X) for name, m in MODELS.items()
    )
    np.testing.assert_allclose(model.predict(data.X), wanted)
    assert sum(model.weights_.values()) == pytest.approx(1)
    assert model.comparison_.names == (*MODELS, "average")


def test_power_zero_weighs_all_alike_and_a_perfect_model_takes_all(data):
    even = DomainAverageRegressor(MODELS, power=0).fit(data.X, data.y, groups=data.groups)
    np.testing.assert_allclose(list(even.weights_.values()), 1 / 3)
    X = np.arange(40.0)[:, None]
    perfect = DomainAverageRegressor({"mean": DummyRegressor(), "also": DummyRegressor()})
    perfect.fit(X, np.zeros(40), groups=np.repeat(range(8), 5))
    assert list(perfect.weights_.values()) == [0.5, 0.5]


def test_decisions_become_shares_by_left_out_rows(data):
    y = np.where(data.y > 0, "high", "low")
    short = TGreedyClassifier(stop="max_steps", max_steps=10)
    models = {"logistic": LogisticRegression(), "t": short, "r": RidgeClassifier()}
    model = DomainAverageClassifier(models).fit(data.X, y, groups=data.groups)
    shares = model.predict_proba(data.X)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert np.mean(model.predict(data.X) == y) > 0.7
    assert 0 < model.new_domain_score_ < 1


def test_the_share_wrong_is_that_of_the_likeliest_class_left_out(data):
    X, y, groups = data.X, np.digitize(data.y, [-1, 1]), data.groups
    models = {"l": LogisticRegression(), "t": DecisionTreeClassifier(max_depth=2, random_state=0)}
    model = DomainAverageClassifier(models, cv=GroupKFold(4)).fit(X, y, groups=groups)
    wrong = np.empty((2, len(y)))
    null = np.empty(len(y))
    for fit, test in GroupKFold(4).split(X, y, groups):
        null[test] = y[test] != np.bincount(y[fit]).argmax()
        for row, one in zip(wrong, models.values(), strict=True):
            row[test] = clone(one).fit(X[fit], y[fit]).predict(X[test]) != y[test]
    by_domain = np.array([rows[groups == d].mean() for d in np.unique(groups) for rows in wrong])
    assert model.share_wrong_.names == ("l", "t", "average")
    np.testing.assert_allclose(model.share_wrong_.errors[:2].T.ravel(), by_domain)
    np.testing.assert_allclose(
        model.share_wrong_.null, [null[groups == d].mean() for d in np.unique(groups)]
    )
    assert model.share_wrong_.scoring == "share wrong"


def test_decisions_are_calibrated_by_fits_that_have_not_seen_the_domain(data):
    X, y, groups = data.X, (data.y > 0).astype(int), data.groups
    model = DomainAverageClassifier({"r": RidgeClassifier()}, cv=GroupKFold(4))
    model.fit(X, y, groups=groups)
    parts = [test for _, test in GroupKFold(4).split(X, y, groups)]
    loss = np.empty(len(y))
    for k, test in enumerate(parts):
        decisions, truth = [], []
        for j in {0, 1, 2, 3} - {k}:
            fitted = np.delete(np.arange(len(y)), [*test, *parts[j]])
            one = RidgeClassifier().fit(X[fitted], y[fitted])
            decisions += one.decision_function(X[parts[j]]).tolist()
            truth += y[parts[j]].tolist()
        calibration = LogisticRegression(C=100).fit(np.array(decisions)[:, None], truth)
        others = np.delete(np.arange(len(y)), test)
        decision = RidgeClassifier().fit(X[others], y[others]).decision_function(X[test])
        loss[test] = 2 * (calibration.predict_proba(decision[:, None])[:, 1] - y[test]) ** 2
    errors = [loss[groups == domain].mean() for domain in np.unique(groups)]
    np.testing.assert_allclose(model.comparison_.errors[0], errors, rtol=1e-4)


def test_a_class_that_some_domains_lack_keeps_its_column():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    groups = np.repeat(range(6), 20)
    y = np.where(X[:, 0] > 0, "a", "b")
    y[groups == 5] = "c"  # met in one domain only
    models = {"logistic": LogisticRegression(), "r": RidgeClassifier()}
    model = DomainAverageClassifier(models)
    said = "^DomainAverageClassifier: 6 of 6 domains lack a class, such as class 'c' in domain 0"
    with pytest.warns(UserWarning, match=said):
        model.fit(X, y, groups=groups)
    assert model.predict_proba(X).shape == (120, 3)


def test_parts_of_domains_are_the_same_in_every_fit(data):
    one = DomainAverageRegressor(MODELS).fit(data.X, data.y, groups=data.groups)
    two = DomainAverageRegressor(MODELS).fit(data.X, data.y, groups=data.groups)
    assert one.weights_ == two.weights_
    assert one.new_domain_score_ == two.new_domain_score_
    other = DomainAverageRegressor(MODELS, random_state=3)
    assert other.fit(data.X, data.y, groups=data.groups).weights_ != one.weights_


def test_a_harmful_field_is_said():
    class Wild(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, X):
            return np.tile([1.0, 0.0], (len(X), 1))

        def predict(self, X):
            return self.classes_[np.zeros(len(X), int)]

    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.tile([0, 1, 1], 20)
    with pytest.warns(UserWarning, match="Nothing in X holds there") as caught:
        DomainAverageClassifier({"wild": Wild()}).fit(X, y, groups=np.repeat(range(6), 10))
    assert {warning.filename for warning in caught} == {__file__}  # the caller's line is shown


@pytest.mark.parametrize(
    "given, message",
    [
        ({"power": -1}, "power must be a number of at least 0"),
        ({"level": 2}, "level must be between 0 and 1"),
        ({"cv": 20}, "cv must be at most the number of domains"),
        ({"models": {"a": 3}}, "model 'a' must be an estimator"),
        ({"models": {"average": Ridge()}}, "'average' is the name of the average itself"),
        ({"cv": GroupShuffleSplit(3, random_state=0)}, "every row exactly once"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(data, given, message):
    model = DomainAverageRegressor(**({"models": MODELS} | given))
    with pytest.raises((ValueError, TypeError), match=f"DomainAverageRegressor: .*{message}"):
        model.fit(data.X, data.y, groups=data.groups)


@pytest.mark.parametrize("n_domains", [2, 3, 4])
def test_a_few_domains_are_enough_for_the_whole_linear_field(n_domains):
    data = make_domains(n_domains, 40, n_features=6, n_fickle=0, random_state=0)
    names = ["mean", "ridge", "elastic_net", "t_greedy", "steady_ridge"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = DomainAverageRegressor(names).fit(data.X, data.y, groups=data.groups)
    expected = ["is not nested.* needs 3", "two left-out domains say nothing"]
    for warning, words in zip(caught, expected if n_domains == 2 else [], strict=True):
        assert re.search(words, str(warning.message))
    assert model.n_domains_ == n_domains
    assert model.new_domain_score_ < model.comparison_.null.mean()


class Says(RegressorMixin, BaseEstimator):
    """Predicts 0, or ``answer`` where the first column is above 2."""

    def __init__(self, answer):
        self.answer = answer

    def fit(self, X, y):
        return self

    def predict(self, X):
        if self.answer is None and (X[:, 0] > 2).any():
            raise ValueError("found unknown categories")
        return np.where(X[:, 0] > 2, self.answer, 0.0)


@pytest.mark.parametrize(
    "answer, message",
    [
        (np.nan, "'odd' predicts a number that is not finite"),
        (None, "'odd' cannot predict rows that it has not seen: found unknown categories"),
        (np.zeros((3, 1)), r"'odd' must predict \d+ rows, shape \(\d+,\). Got shape \(3, "),
    ],
)
def test_a_model_that_does_not_predict_a_left_out_domain_is_named(data, answer, message):
    X = data.X.copy()
    X[:, 0] = np.where(data.groups == data.groups[0], 3.0, 0.0)  # one domain is unlike the others
    models = {"odd": Says(answer), "mean": DummyRegressor()}
    with pytest.raises(ValueError, match=message):
        DomainAverageRegressor(models).fit(X, data.y, groups=data.groups)


def test_predictions_may_be_a_column(data):
    class Column(LinearRegression):
        def predict(self, X):
            return super().predict(X)[:, None]

    contest = compare_models({"a": Column(), "b": LinearRegression()}, data.X, data.y)
    np.testing.assert_array_equal(*contest.errors)


def test_domains_of_one_row_are_said(data):
    few = slice(None, None, 5)
    with pytest.warns(UserWarning, match="every domain has a single row"):
        DomainAverageRegressor(MODELS).fit(
            data.X[few], data.y[few], groups=np.arange(len(data.y[few]))
        )


def weighted(data, seed=0):
    """Weights from 0 to 3, and the rows repeated as often."""
    weight = np.random.RandomState(seed).randint(0, 4, len(data.y))
    return weight, np.repeat(np.arange(len(data.y)), weight)


@pytest.mark.parametrize("grouped", [True, False])
def test_weights_are_repetitions(data, grouped):
    weight, repeated = weighted(data)
    groups = data.groups if grouped else None
    once = DomainAverageRegressor(MODELS).fit(data.X, data.y, groups=groups, sample_weight=weight)
    again = DomainAverageRegressor(MODELS).fit(
        data.X[repeated], data.y[repeated], groups=None if groups is None else groups[repeated]
    )
    assert once.weights_ == pytest.approx(again.weights_, rel=1e-8)
    assert once.new_domain_score_ == pytest.approx(again.new_domain_score_, rel=1e-8)
    assert once.new_domain_interval_ == pytest.approx(again.new_domain_interval_, rel=1e-8)
    assert once.n_domains_ == (7 if grouped else weight.sum())
    np.testing.assert_allclose(once.predict(data.X), again.predict(data.X), rtol=1e-8)
    means = [once.comparison_.mean_errors, again.comparison_.mean_errors]
    np.testing.assert_allclose(*means, rtol=1e-8)


def test_weights_of_classes_are_repetitions(data):
    weight, repeated = weighted(data)
    models = {"logistic": LogisticRegression(), "decisions": RidgeClassifier()}
    y = np.where(data.y > 0, "ill", "well")
    once = DomainAverageClassifier(models).fit(data.X, y, groups=data.groups, sample_weight=weight)
    again = DomainAverageClassifier(models).fit(
        data.X[repeated], y[repeated], groups=data.groups[repeated]
    )
    shares = [model.predict_proba(data.X) for model in (once, again)]
    np.testing.assert_allclose(*shares, atol=1e-4)


def test_a_row_of_weight_zero_influences_nothing(data):
    weight = np.ones(len(data.y))
    weight[data.groups == data.groups[-1]] = 0.0
    wild = np.where(weight[:, None] > 0, data.X, 1e6)
    fits = [
        DomainAverageRegressor(MODELS).fit(X, data.y, groups=data.groups, sample_weight=weight)
        for X in (data.X, wild)
    ]
    assert fits[0].weights_ == fits[1].weights_
    assert fits[0].n_domains_ == 6
    assert len(fits[0].comparison_.units) == 6


@pytest.mark.parametrize(
    ("models", "weight", "message"),
    [
        ({"near": KNeighborsRegressor()}, 2.0, "model 'near' does not take sample_weight. Leave"),
        ({"near": make_pipeline(StandardScaler(), KNeighborsRegressor())}, 2.0, "does not take"),
        (MODELS, 1 / 1000, "sums to 0.7: weights are repetitions, so do not scale them to 1"),
    ],
)
def test_weights_that_cannot_be_used_are_refused_in_a_sentence(data, models, weight, message):
    X, y, groups = data.X[:700], data.y[:700], data.groups[:700]
    with pytest.raises(ValueError, match=message):
        DomainAverageRegressor(models).fit(X, y, groups=groups, sample_weight=np.full(700, weight))


def test_text_to_predict_as_a_number_is_a_sentence(data):
    frame = pd.DataFrame(data.X)
    text = np.where(data.y > 0, "ill", "well")
    with pytest.raises(ValueError, match=r"expected numbers in y. Got the text '(ill|well)'"):
        DomainAverageRegressor(MODELS).fit(frame, text, groups=data.groups)


@pytest.mark.filterwarnings("ignore:DomainAverageClassifier. 6 of 6 domains lack a class")
@pytest.mark.filterwarnings("ignore:DomainAverageClassifier. the error expected")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_domains_of_one_class_each_promise_nothing(n_classes):
    X = np.random.default_rng(0).normal(size=(120, 3))
    groups = np.repeat(range(6), 20)
    y = np.array(["a", "b", "c"])[groups % n_classes]
    model = DomainAverageClassifier({"r": RidgeClassifier()}).fit(X, y, groups=groups)
    assert model.new_domain_score_ > 0.9 * (1 - 1 / n_classes)  # of equal shares


def test_one_weight_for_all_rows_is_that_weight_in_every_row(data):
    models = {"ridge": Ridge()}
    given = (data.X, data.y)
    one = DomainAverageRegressor(models).fit(*given, groups=data.groups, sample_weight=2)
    all_rows = np.full(len(data.y), 2)
    other = DomainAverageRegressor(models).fit(*given, groups=data.groups, sample_weight=all_rows)
    assert one.new_domain_score_ == other.new_domain_score_


def test_decisions_for_every_pair_of_classes_are_refused_in_a_sentence(data):
    y = np.digitize(data.y, np.quantile(data.y, [0.2, 0.5, 0.8]))
    models = {"pairs": SVC(decision_function_shape="ovo")}
    with pytest.raises(ValueError, match="model 'pairs' has 6 outputs for 4 classes"):
        DomainAverageClassifier(models).fit(data.X, y, groups=data.groups)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_a_missing_class_is_named(data, missing):
    y = np.where(data.y > 0, "high", "low").astype(object)
    y[3] = missing
    message = "y must name a class for every row. Got a missing value in row 3"
    with pytest.raises(ValueError, match=f"DomainAverageClassifier: {message}"):
        DomainAverageClassifier(["majority"]).fit(data.X, y, groups=data.groups)
    with pytest.raises(ValueError, match=f"compare_models: {message}"):
        compare_models(["majority"], data.X, y, groups=data.groups)


def test_columns_of_one_name_are_refused_in_a_sentence(data):
    frame = pd.DataFrame(data.X[:, :2], columns=["a", "a"])
    with pytest.raises(InputError, match=r"different names. Got some twice .* Rename them"):
        DomainAverageRegressor(["mean"]).fit(frame, data.y, groups=data.groups)


def coins(n_rows, seed):
    """Four cells, each with its own share of heads: new rows fall into cells that were seen."""
    rng = np.random.default_rng(seed)
    cell = rng.integers(0, 4, n_rows)
    heads = rng.random(n_rows) < np.array([0.1, 0.9, 0.2, 0.7])[cell]
    return np.c_[cell // 2, cell % 2].astype(float), heads


def test_rows_that_come_again_are_new_rows_all_the_same():
    # Left out with all its copies, a row would be judged by what the other class says of its cell.
    X, y = coins(1000, 0)
    X_new, y_new = coins(20_000, 1)
    models = {"tree": DecisionTreeClassifier(), "none": DummyClassifier()}
    average = DomainAverageClassifier(models).fit(X, y)
    met = 2 * np.mean((average.predict_proba(X_new)[:, 1] - y_new) ** 2)
    assert average.new_domain_score_ == pytest.approx(met, abs=0.04)
    assert average.weights_["tree"] > 0.9
    contest = compare_models(models, X, y)
    wrong = np.mean(average.models_["tree"].predict(X_new) != y_new)
    assert contest.mean_errors[0] == pytest.approx(wrong, abs=0.04)


def test_a_calibration_is_judged_on_rows_that_it_has_not_seen():
    # Ten classes: by its own 120 rows, a calibration promised half of the error that was met.
    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 3120)
    X = rng.normal(size=(10, 8))[y] + rng.normal(size=(3120, 8))
    average = DomainAverageClassifier({"ridge": RidgeClassifier()}).fit(X[:120], y[:120])
    met = ((average.predict_proba(X[120:]) - np.eye(10)[y[120:]]) ** 2).sum(axis=1).mean()
    assert 0.9 * met < average.new_domain_score_ < 1.5 * met


def numbered(columns):
    """A frame whose columns are called 0, 1, ..."""
    return pd.DataFrame(np.column_stack(list(columns.values())))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table, numbered])
def test_frames_of_any_kind_have_the_parts_of_an_array(data, frame):
    X = data.X[:60, :3]
    columns = {f"x{j}": X[:, j] for j in range(3)}
    one = DomainAverageRegressor(["mean", "steady_ridge"]).fit(X, data.y[:60])
    other = DomainAverageRegressor(["mean", "steady_ridge"]).fit(frame(columns), data.y[:60])
    assert one.new_domain_score_ == pytest.approx(other.new_domain_score_, rel=1e-9)


def test_the_order_of_rows_says_nothing(data):
    y = np.where(data.y > 0, "ill", "well")
    at = np.random.default_rng(0).permutation(len(y))
    for models in (["steady_ridge"], ["logistic"]):
        one = DomainAverageClassifier(models, random_state=0).fit(data.X, y)
        other = DomainAverageClassifier(models, random_state=0).fit(data.X[at], y[at])
        assert one.new_domain_score_ == pytest.approx(other.new_domain_score_, rel=1e-6)


@pytest.mark.parametrize("is_grouped", [True, False])
def test_the_contest_has_the_interval_of_the_average(is_grouped):
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(40, 3)), np.repeat(range(4), 10) if is_grouped else None
    y = X[:, 0] + 0.5 * rng.normal(size=4).repeat(10) > 0
    model = DomainAverageClassifier({"logistic": LogisticRegression()}).fit(X, y, groups=groups)
    assert model.comparison_.interval("average") == pytest.approx(model.new_domain_interval_)
    assert 0 < model.new_domain_interval_[0] < model.new_domain_score_
    assert model.new_domain_score_ < model.new_domain_interval_[1] <= 2  # no squared error is more
