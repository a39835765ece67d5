"""What the default field chooses is what scikit-learn's own classes choose."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import ElasticNetCV, LogisticRegression, RidgeCV
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold

from holdtrue.compare.field import default_models
from holdtrue.compare.tuned import PathElasticNet, SplitLogistic, SplitRidge, _group_splits

ALPHAS = np.logspace(-3, 5, 17)


def rows(n_rows, n_features, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    y = X[:, 0] + rng.normal(size=n_rows) + 3
    splits = list(GroupKFold(4).split(X, y, np.arange(n_rows) % 7))
    return X, y, splits, rng.integers(1, 4, n_rows).astype(float)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n_rows", "n_features"), [(80, 1), (80, 12), (30, 60)])
def test_ridge_is_that_of_ridge_cv_on_rows_and_columns_of_any_number(n_rows, n_features, weighted):
    for seed in range(5):
        X, y, splits, weight = rows(n_rows, n_features, seed)
        given = {"sample_weight": weight} if weighted else {}
        ours = SplitRidge(ALPHAS, cv=splits).fit(X, y, **given)
        theirs = RidgeCV(ALPHAS, cv=splits).fit(X, y, **given)
        assert ours.alpha_ == theirs.alpha_
        np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9)


def test_ridge_takes_a_number_of_parts_and_equal_columns():
    X, y, _, _ = rows(40, 3, 0)
    X = np.hstack([X, X, np.ones((40, 1))])
    ours, theirs = SplitRidge(ALPHAS, cv=5).fit(X, y), RidgeCV(ALPHAS, cv=5).fit(X, y)
    assert ours.alpha_ == theirs.alpha_
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9)


def test_a_constant_test_part_says_nothing_about_the_penalty():
    X, y, splits, _ = rows(40, 3, 0)
    y[splits[0][1]] = 1.0
    ours = SplitRidge(ALPHAS, cv=splits).fit(X, y)
    assert ours.alpha_ == SplitRidge(ALPHAS, cv=splits[1:]).fit(X, y).alpha_


@pytest.mark.parametrize("weighted", [False, True])
def test_elastic_net_is_that_of_elastic_net_cv_for_y_of_deviation_1(weighted):
    for n_features in (2, 30, 90):
        X, y, splits, weight = rows(60, n_features, n_features)
        given = {"sample_weight": weight} if weighted else {}
        share = weight if weighted else np.ones(60)
        y /= np.sqrt(np.cov(y, aweights=share, ddof=0))
        settings = {"l1_ratio": [0.2, 0.8], "cv": splits, "max_iter": 5000}
        ours = PathElasticNet(**settings).fit(X, y, **given)
        theirs = ElasticNetCV(**settings).fit(X, y, **given)
        assert ours.alpha_ == pytest.approx(theirs.alpha_, rel=1e-9)
        assert ours.l1_ratio_ == theirs.l1_ratio_
        np.testing.assert_allclose(ours.coef_, theirs.coef_, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(ours.mse_path_, theirs.mse_path_, rtol=1e-6)


@pytest.mark.parametrize("name", ["ridge", "elastic_net"])
def test_the_unit_of_y_changes_nothing(name):
    X, y, _, weight = rows(60, 5, 0)
    model = default_models(is_classes=False)[name]
    given = {"groups": np.arange(60) % 6, "sample_weight": weight}
    one = model.fit(X, y, **given).predict(X)
    other = model.fit(X, 1e5 * y, **given).predict(X)
    np.testing.assert_allclose(other, 1e5 * one, rtol=1e-6, atol=1e-3)


def test_classes_of_few_rows_each_are_tuned_in_as_many_parts():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(24, 2)), np.repeat(np.arange(8), 3)
    model = default_models(is_classes=True)["logistic"].fit(X, y)
    assert model.predict(X).shape == (24,)
    for n in (2, 8):  # one row each
        model = default_models(is_classes=True)["logistic"].fit(X[:n], np.arange(n))
        assert model.predict_proba(X).shape == (24, n)


@pytest.mark.parametrize("name", ["ridge", "elastic_net"])
def test_weights_are_repetitions_where_groups_choose_the_penalty(name):
    X, y, _, _ = rows(240, 6, 3)
    groups = np.repeat(np.arange(12), 20)
    y = y + np.random.default_rng(0).normal(size=12)[groups]
    for seed in range(4):
        weight = np.random.default_rng(seed).integers(1, 4, 240)
        copies = np.repeat(np.arange(240), weight)
        model = default_models(is_classes=False)[name]
        one = clone(model).fit(X, y, groups=groups, sample_weight=weight.astype(float))
        other = clone(model).fit(X[copies], y[copies], groups=groups[copies])
        np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-4, atol=1e-4)


def test_splits_by_group_are_those_of_group_k_fold():
    groups = np.random.default_rng(0).integers(0, 17, 200)
    expected = GroupKFold(5).split(groups, groups=groups)
    for ours, theirs in zip(_group_splits(groups, 5, None), expected, strict=True):
        for mine, its in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize("name", ["ridge", "elastic_net", "logistic"])
def test_penalties_follow_neither_the_order_of_rows_nor_how_they_are_repeated(name):
    is_classes = name == "logistic"
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 4))
        y = X @ [1.0, 0.5, 0.0, 0.0] + 2.0 * rng.normal(size=60)
        y = np.where(y > 0, "high", "low") if is_classes else y
        weight = rng.integers(1, 4, 60)
        copies = np.repeat(np.arange(60), weight)
        model = default_models(is_classes=is_classes)[name]
        fits = [
            clone(model).fit(X, y, sample_weight=weight.astype(float)),
            clone(model).fit(X[copies], y[copies]),
            clone(model).fit(X[np.sort(copies)[::-1]], y[np.sort(copies)[::-1]]),
        ]
        outputs = [fit.predict_proba(X)[:, 1] if is_classes else fit.predict(X) for fit in fits]
        for other in outputs[1:]:
            np.testing.assert_allclose(outputs[0], other, rtol=1e-3, atol=1e-3)


def test_logistic_regression_takes_the_penalty_of_a_grid_search():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 5))
    y = rng.integers(0, 2, 80) + 2 * (X[:, 0] > 0)
    penalties, splits = np.logspace(-4, 2, 7), list(StratifiedKFold(5).split(X, y))
    ours = SplitLogistic(penalties, splits).fit(X, y)
    search = GridSearchCV(
        LogisticRegression(max_iter=1000), {"C": penalties}, scoring="neg_log_loss", cv=splits
    ).fit(X, y)
    assert search.best_params_["C"] == ours.best_estimator_.C
    np.testing.assert_allclose(ours.predict_proba(X), search.predict_proba(X), rtol=1e-9)


@pytest.mark.filterwarnings("ignore:The least populated class")
@pytest.mark.parametrize("n_rare", [1, 2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_logistic_regression_is_tuned_where_a_class_has_few_rows(n_rare, weighted):
    X, _, _, weight = rows(30, 3, 0)
    y = np.array(["common"] * (30 - n_rare) + ["rare"] * n_rare)
    model = default_models(is_classes=True)["logistic"]
    model.fit(X, y, sample_weight=weight if weighted else None)
    assert model.predict_proba(X).shape == (30, 2)
    two = default_models(is_classes=True)["logistic"].fit(X[-4 - n_rare :], y[-4 - n_rare :])
    assert len(two.classes_) == 2
