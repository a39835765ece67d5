"""SteadyRidgeRegressor and SteadyRidgeClassifier: doors, promises, sentences."""

import math
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import LeaveOneGroupOut, cross_val_score

from holdtrue import Moments, SteadyRidgeClassifier, SteadyRidgeRegressor, TGreedyRegressor
from holdtrue.domains import steady
from holdtrue.domains.bounds import mean_interval, new_domain_interval


def rows_of(n_domains=6, n_rows=20, p=4, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    groups = np.repeat([f"site {d}" for d in range(n_domains)], n_rows)
    codes = np.repeat(np.arange(n_domains), n_rows)
    X = rng.normal(size=(len(groups), p)) + rng.normal(size=(n_domains, p))[codes]
    slopes = np.arange(1, p + 1) + 0.5 * rng.normal(size=(n_domains, p))
    y = np.einsum("ij,ij->i", X, slopes[codes]) + rng.normal(size=n_domains)[codes]
    return X, y + noise * rng.normal(size=len(y)), groups


def classes_of(y):
    return np.array(["low", "middle", "high"])[np.digitize(y, np.quantile(y, [0.3, 0.6]))]


def same(one, other, rtol=1e-7):
    for name in ("coef_", "intercept_", "held_out_scores_", "domain_effects_", "new_domain_score_"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=rtol, atol=1e-9)


# --- two doors ----------------------------------------------------------------------------------


def test_rows_and_sums_give_the_same_fit():
    X, y, groups = rows_of()
    from_rows = SteadyRidgeRegressor().fit(X, y, groups=groups)
    parts = sum(Moments.from_arrays(X[i::3], y[i::3], groups=groups[i::3]) for i in range(3))
    same(from_rows, SteadyRidgeRegressor().fit_statistics(parts))
    labels = classes_of(y)
    from_rows = SteadyRidgeClassifier().fit(X, labels, groups=groups)
    names = np.unique(labels)
    coded = np.where(labels[:, None] == names, 1.0, -1.0)
    moments = Moments.from_arrays(X, coded, groups=groups)
    from_sums = SteadyRidgeClassifier().fit_statistics(moments, classes=names)
    same(from_rows, from_sums)
    np.testing.assert_array_equal(from_sums.predict(X), from_rows.predict(X))
    assert SteadyRidgeClassifier().fit_statistics(moments).classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_sparse_rows_give_what_dense_ones_give(fit_intercept):
    X, y, groups = rows_of()
    X[np.abs(X) < 0.7] = 0
    model = SteadyRidgeRegressor(fit_intercept=fit_intercept)
    dense = model.fit(X, y, groups=groups).predict(X)
    compressed = model.fit(sparse.csr_array(X), y, groups=groups).predict(sparse.csr_array(X))
    np.testing.assert_allclose(compressed, dense, rtol=1e-7)
    rows = SteadyRidgeRegressor().fit(X, y).predict(X)
    np.testing.assert_allclose(SteadyRidgeRegressor().fit(sparse.csr_array(X), y).predict(X), rows)


@pytest.mark.parametrize("grouped", [True, False])
def test_weights_are_repetitions(grouped):
    X, y, groups = rows_of(n_rows=8)
    times = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = {"groups": groups} if grouped else {}
    repeated = {"groups": np.repeat(groups, times)} if grouped else {}
    one = SteadyRidgeRegressor().fit(X, y, sample_weight=times, **weighted)
    other = SteadyRidgeRegressor().fit(np.repeat(X, times, axis=0), np.repeat(y, times), **repeated)
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=1e-8)
    np.testing.assert_allclose(one.held_out_scores_, other.held_out_scores_, rtol=1e-8)
    assert one.n_domains_ == other.n_domains_ == (6 if grouped else times.sum())


def test_threads_change_nothing():
    X, y, groups = rows_of()
    one = SteadyRidgeRegressor().fit(X, y, groups=groups)
    same(one, SteadyRidgeRegressor(n_jobs=2).fit(X, y, groups=groups), rtol=1e-12)


# --- what is fitted -----------------------------------------------------------------------------


def test_without_groups_it_is_plain_ridge():
    X, y, _ = rows_of()
    model = SteadyRidgeRegressor().fit(X, y)
    table = model.candidates_
    assert not table["intercept_spread"].any()
    assert not table["slope_spread"].any()
    (at,) = np.flatnonzero(table["weight"])
    Z = (X - X.mean(0)) / X.std(0)
    H = Z.T @ Z
    ridge = H + table["penalty"][at] * np.trace(H) / 4 * np.eye(4)
    coef = np.linalg.solve(ridge, Z.T @ (y - y.mean())) / X.std(0)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-8)
    np.testing.assert_allclose(model.intercept_, y.mean() - X.mean(0) @ coef, rtol=1e-8)
    assert model.held_out_scores_.shape == (26, 10)
    assert "holding out 10 parts of 120; largest weight: penalty" in model.path_.reason
    assert not hasattr(model, "new_domain_score_")


def test_the_path_ends_in_the_predictor_and_starts_at_the_null():
    X, y, groups = rows_of(seed=1)
    model = SteadyRidgeRegressor().fit(X, y, groups=groups)
    path, table = model.path_, model.candidates_
    assert path.names[0] == "penalty 1e+02"
    assert path.names[-1] == "penalty 1e-06"
    np.testing.assert_allclose(path.scores, model.held_out_scores_.mean(1))
    np.testing.assert_allclose(path.scores[path.chosen_size :], path.scores[-1])
    # The null predicts a mean of the other domains, of rows or of domains.
    names = np.unique(groups)
    errors = [np.mean((y[groups == d] - y[groups != d].mean()) ** 2) for d in names]
    null = table["penalty"] == math.inf
    np.testing.assert_allclose(table["score"][null][0], np.mean(errors))
    assert path.scores[0] == pytest.approx(np.mean(errors), rel=0.1)
    assert table["weight"].sum() == pytest.approx(1)
    assert len(np.flatnonzero(table["weight"])) == 9
    assert "holding out each of 6; largest weight: penalty" in path.reason
    train = np.mean([np.mean((y - model.predict(X))[groups == d] ** 2) for d in names])
    assert path.train_scores[-1] == pytest.approx(train)


def test_effects_of_domains_lie_between_their_own_and_the_common_ones():
    X, y, groups = rows_of(n_rows=200, seed=2)
    model = SteadyRidgeRegressor().fit(X, y, groups=groups)
    assert model.domain_effects_.shape == (4, 6)
    for d, name in enumerate(model.domains_):
        at = groups == name
        alone = np.linalg.lstsq(np.column_stack([X[at], np.ones(at.sum())]), y[at], rcond=None)[0]
        nearer = np.abs(model.domain_effects_[:, d] - alone[:4])
        assert (nearer <= np.abs(model.coef_ - alone[:4]) + 1e-6).mean() >= 0.75


def test_errors_and_intervals_are_those_of_nested_errors():
    X, y, groups = rows_of()
    model = SteadyRidgeRegressor(level=0.9).fit(X, y, groups=groups)
    sums_model = SteadyRidgeRegressor().fit(X, y, groups=groups)
    narrow, wide = (m.new_domain_interval_ for m in (model, sums_model))
    assert wide[0] < narrow[0] < model.new_domain_score_ < narrow[1] < wide[1]
    assert wide[0] < sums_model.mean_interval_[0] < sums_model.mean_interval_[1] < wide[1]


def test_three_domains_have_an_error_that_is_not_nested_and_say_so():
    X, y, groups = rows_of(3)
    with pytest.warns(
        UserWarning, match=r"with 3 domains new_domain_score_ is not nested.*needs 4"
    ) as caught:
        model = SteadyRidgeRegressor().fit(X, y, groups=groups)
    assert {warning.filename for warning in caught} == {__file__}  # the caller's line is shown
    errors = model.held_out_scores_[-1]
    assert model.new_domain_score_ == pytest.approx(errors.mean())
    expected = new_domain_interval(errors, 0.95, 1e-16)
    assert model.new_domain_interval_ == pytest.approx(expected)
    assert model.mean_interval_ == pytest.approx(mean_interval(errors, 0.95))
    X, y, groups = rows_of(4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SteadyRidgeRegressor().fit(X, y, groups=groups)


def test_two_domains_say_nothing_of_the_error_at_a_third():
    # Their means differ by 10: each misses the other by that, a third may be anywhere. The interval
    # of 22.2 to 27.5 held it in four of ten draws.
    X, y, groups = rows_of(2)
    with (
        pytest.warns(UserWarning, match="with 2 domains new_domain_score_ is not nested"),
        pytest.warns(UserWarning, match="two left-out domains say nothing.* It needs 3 domains"),
    ):
        model = SteadyRidgeRegressor().fit(X, y + 10 * (groups == groups[0]), groups=groups)
    assert model.new_domain_interval_ == (0.0, np.inf)


def test_an_error_above_the_null_is_said():
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(5), 30)
    X = rng.normal(size=(150, 3))
    y = np.einsum("ij,ij->i", X, np.array([3, -3, 3, -3, 3])[groups][:, None] * np.ones(3))
    with pytest.warns(
        UserWarning, match=r"exceeds that of predicting the mean.*do not predict y there"
    ):
        model = SteadyRidgeRegressor().fit(X, y, groups=groups)
    assert model.new_domain_score_ > model.path_.scores[0]


def test_what_an_earlier_fit_left_is_forgotten():
    X, y, groups = rows_of()
    model = SteadyRidgeRegressor().fit(X, y, groups=groups)
    model.fit(X, y)
    left = {"domains_", "domain_effects_", "new_domain_score_", "new_domain_interval_"}
    assert not left & set(vars(model))


def test_more_classes_than_anyone_means_are_refused():
    X, y, groups = rows_of(n_rows=40)
    with pytest.raises(ValueError, match=r"SteadyRidgeClassifier: .*at most 100 classes\. Got 120"):
        SteadyRidgeClassifier().fit(X, np.arange(len(y)) // 2, groups=groups)


def test_every_domain_of_one_row_is_said():
    X, y, _ = rows_of()
    with pytest.warns(UserWarning, match="every domain has a single row"):
        SteadyRidgeRegressor().fit(X, y, groups=np.arange(len(y)))


def test_classes_share_spreads_and_penalty():
    X, y, groups = rows_of()
    labels = classes_of(y)
    model = SteadyRidgeClassifier().fit(X, labels, groups=groups)
    assert model.coef_.shape == (3, 4)
    assert model.domain_effects_.shape == (3, 4, 6)
    assert model.decision_function(X).shape == (120, 3)
    assert np.mean(model.predict(X) == labels) > 0.6
    two = SteadyRidgeClassifier().fit(X, labels == "high", groups=groups)
    assert two.decision_function(X).shape == (120,)
    np.testing.assert_array_equal(two.predict(X), two.decision_function(X) > 0)
    coded = SteadyRidgeRegressor().fit(X, np.where(labels == "high", 1.0, -1.0), groups=groups)
    np.testing.assert_allclose(two.coef_[0], coded.coef_)


def test_a_later_fit_without_groups_forgets_the_domains():
    X, y, groups = rows_of()
    model = SteadyRidgeRegressor().fit(X, y, groups=groups)
    model.fit(X, y)
    for name in ("domains_", "domain_effects_", "new_domain_score_", "new_domain_interval_"):
        assert not hasattr(model, name)
    assert model.n_domains_ == 120


def test_cross_validation_hands_groups_on_when_asked():
    X, y, groups = rows_of()
    with config_context(enable_metadata_routing=True):
        scores = cross_val_score(
            SteadyRidgeRegressor().set_fit_request(groups=True), X, y,
            cv=LeaveOneGroupOut(), params={"groups": groups},
        )  # fmt: skip
    assert len(scores) == 6
    first = groups == "site 0"
    model = SteadyRidgeRegressor().fit(X[~first], y[~first], groups=groups[~first])
    assert scores[0] == pytest.approx(model.score(X[first], y[first]))


def test_an_interruption_leaves_a_path_that_says_so(monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(steady, "held_out_fits", interrupted)
    model = SteadyRidgeRegressor()
    X, y, groups = rows_of()
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y, groups=groups)
    assert model.path_.reason == "interrupted"


def test_the_interval_holds_the_error_at_a_new_domain():
    held = 0
    for seed in range(40):
        X, y, groups = rows_of(9, seed=seed)
        new = groups == "site 8"
        model = SteadyRidgeRegressor().fit(X[~new], y[~new], groups=groups[~new])
        low, high = model.new_domain_interval_
        held += low <= np.mean((y - model.predict(X))[new] ** 2) <= high
    assert held >= 34  # at 95 %, fewer happen once in a hundred times


# --- sentences ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"groups": ["A"] * 120}, r"needs at least 2 domains, got 1 \('A' in every row\)\. Pass"),
        ({"groups": np.zeros(120, int)}, r"got 1 \(0 in every row\)"),
        ({"groups": [None] * 120}, "must name a domain for every row"),
        ({"groups": ["A"] * 3}, r"one value per row, shape \(120,\)"),
        ({"sample_weight": -np.ones(120)}, "finite and not negative"),
        ({"sample_weight": [1.0] + [0.0] * 119}, r"needs at least 2 rows\. Got 1 sample\."),
        ({"sample_weight": 1 / 120}, "sums to 1: weights are repetitions, so do not scale them"),
    ],
)
def test_what_cannot_be_fitted_is_refused_in_a_sentence(arguments, message):
    X, y, groups = rows_of()
    for model, target in [(SteadyRidgeRegressor(), y), (SteadyRidgeClassifier(), classes_of(y))]:
        with pytest.raises(ValueError, match=f"^{type(model).__name__}.*{message}"):
            model.fit(X, target, **arguments)
    if "sample_weight" in arguments:
        with pytest.raises(ValueError, match=f"^TGreedyRegressor.*{message}"):
            TGreedyRegressor().fit(X, y, groups=groups, **arguments)


def test_bad_values_are_refused_in_a_sentence():
    X, y, groups = rows_of()
    with pytest.raises(ValueError, match=r"level must be between 0 and 1\. Got 95\."):
        SteadyRidgeRegressor(level=95).fit(X, y)
    with pytest.raises(ValueError, match=r"squares of column 1 must fit into float64\. Got"):
        SteadyRidgeRegressor().fit(X * [1, 1e200, 1, 1], y, groups=groups)
    with pytest.raises(ValueError, match="fourth powers of y"):
        SteadyRidgeRegressor().fit(X, y * 1e100, groups=groups)
    with pytest.raises(ValueError, match=r"at least 2 different rows\. Got 3 equal rows"):
        SteadyRidgeRegressor().fit(np.ones((3, 2)), np.ones(3))
    with pytest.raises(ValueError, match=r"at least 2 classes\. Got 1 class, 'a'"):
        SteadyRidgeClassifier().fit(X, ["a"] * len(X), groups=groups)
    wide = sparse.csr_array((np.ones(4), ([0, 1, 2, 3], [0, 1, 2, 3])), shape=(4, 10**6))
    with pytest.raises(ValueError, match=r"second moments of 1000000 columns in 2 domains need"):
        SteadyRidgeRegressor().fit(wide, y[:4], groups=[0, 0, 1, 1])
    many = sparse.csr_array((400_000, 400))
    with pytest.raises(ValueError, match=r"sparse rows are made dense: 1221 MiB, above"):
        SteadyRidgeRegressor().fit(many, np.zeros(400_000))


def test_sums_that_do_not_fit_are_refused_in_a_sentence():
    X, y, groups = rows_of()
    model, who = SteadyRidgeRegressor(), "SteadyRidgeRegressor"
    with pytest.raises(ValueError, match=f"{who}: expected Moments with a target. Got Moments"):
        model.fit_statistics(Moments.from_arrays(X, groups=groups))
    with pytest.raises(ValueError, match=f"{who}: expected Moments with a target. Got <class"):
        model.fit_statistics(X)
    with pytest.raises(ValueError, match=f"{who}: needs at least 2 domains, got 1"):
        model.fit_statistics(Moments.from_arrays(X, y))
    two = Moments.from_arrays(X, np.column_stack([y, y, y]), groups=groups)
    with pytest.raises(ValueError, match=r"expected the moments of one target\. Got 3"):
        model.fit_statistics(two)
    with pytest.raises(ValueError, match=r"have 3 targets, so classes must name 3\. Got 2"):
        SteadyRidgeClassifier().fit_statistics(two, classes=["a", "b"])


def test_a_class_missing_from_a_domain_is_said():
    X, y, groups = rows_of()
    labels = classes_of(y)
    labels[(groups == "site 3") & (labels == "low")] = "high"
    said = "1 of 6 domains lacks a class, such as class 'low' in domain 'site 3'.*low"
    with pytest.warns(UserWarning, match=said):
        SteadyRidgeClassifier().fit(X, labels, groups=groups)
    two = np.where((groups == "site 3") | (groups == "site 4") | (y > 0), 1.0, -1.0)
    moments = Moments.from_arrays(X, two, groups=groups)
    with pytest.warns(
        UserWarning, match="2 of 6 domains lack a class, such as class -1 in domain 'site 3'"
    ):
        SteadyRidgeClassifier().fit_statistics(moments)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a number has no classes; neither do single rows lack one
        SteadyRidgeRegressor().fit_statistics(moments)
        alone = np.append(groups, "alone")
        rows, codes = np.vstack([X, X[:1]]), np.append(classes_of(y), "low")
        SteadyRidgeClassifier().fit(rows, codes, groups=alone)


def test_rows_that_come_again_choose_the_penalty_as_new_rows_do():
    # Two cells: without all copies of a row, the other class alone would speak for its cell.
    cell = np.repeat([0.0, 1.0], 100)
    y = np.r_[np.repeat([0, 1], [80, 20]), np.repeat([0, 1], [30, 70])]
    model = SteadyRidgeClassifier().fit(cell[:, None], y)
    expected = LinearRegression().fit(cell[:, None], np.where(y, 1.0, -1.0)).coef_
    np.testing.assert_allclose(model.coef_.ravel(), expected, rtol=0.05)
    weighted = SteadyRidgeClassifier().fit(
        [[0.0], [0.0], [1.0], [1.0]], [0, 1, 0, 1], sample_weight=[80, 20, 30, 70]
    )
    np.testing.assert_allclose(weighted.coef_, model.coef_, rtol=1e-9)
    np.testing.assert_allclose(weighted.path_.scores, model.path_.scores, rtol=1e-9)
