"""The average over sizes and bases, through `NestedRegressor`."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold

from holdtrue import NestedRegressor
from holdtrue.datasets import make_curve
from holdtrue.model_size import average as module
from holdtrue.model_size.bases import Rows
from holdtrue.model_size.bayes import Grid, Sample, fit_posterior, posterior
from holdtrue.model_size.cautions import far_targets
from holdtrue.model_size.kernel import joint_triangle
from holdtrue.model_size.table import CRITERIA


@pytest.fixture
def curve():
    return make_curve("four_terms", n_samples=40, noise=0.1, random_state=0)


@pytest.fixture
def model(curve):
    return NestedRegressor(random_state=0).fit(curve.X, curve.y)


def skewed(n, seed):
    return np.exp(1.5 * np.random.RandomState(seed).standard_normal((n, 1)))


@pytest.fixture
def posteriors(curve, monkeypatch):
    """What `fit` finds of each basis."""
    known = []

    def kept(*arguments):
        known.append(fit_posterior(*arguments))
        return known[-1]

    monkeypatch.setattr(module, "fit_posterior", kept)
    NestedRegressor(random_state=0).fit(curve.X, curve.y)
    return known


def test_predictions_are_the_bases_posterior_means_weighed_by_their_evidence(model, posteriors):
    average = model._average
    evidence = np.array([each.log_evidence for each in posteriors])
    weights = np.sqrt(np.exp(evidence - evidence.max()))
    weights /= weights.sum()
    assert list(model.basis_weights_.values()) == pytest.approx(weights.tolist())
    new = np.linspace(-3, 3, 9)[:, None]
    by_hand = 0.0
    for weight, each in zip(weights, average.curves.values(), strict=True):
        terms = each.basis.terms(each.basis.coordinates(new))
        by_hand = by_hand + weight * terms @ each.posterior.mean
    np.testing.assert_allclose(model.predict(new), by_hand)


def test_the_deviation_has_a_part_within_and_a_part_between_bases(model):
    new = np.linspace(-3, 3, 5)[:, None]
    mean, deviation = model.predict(new, return_std=True)
    np.testing.assert_array_equal(mean, model.predict(new))
    means, variances = [], []
    for basis, known in model._average.curves.values():
        terms = basis.terms(basis.coordinates(new))
        means.append(terms @ known.mean)
        terms = terms - known.centre
        variances.append(np.diag(terms @ known.covariance @ terms.T) + known.beyond)
    weights = model._average.weights
    second = weights @ (np.array(variances) + np.array(means) ** 2)
    np.testing.assert_allclose(deviation**2, second - (weights @ np.array(means)) ** 2, rtol=1e-6)


def test_the_average_predicts_whatever_criterion_explains(curve):
    one = NestedRegressor("cosine", criterion="adj", random_state=0).fit(curve.X, curve.y)
    other = NestedRegressor("cosine", criterion="bayes", random_state=0).fit(curve.X, curve.y)
    np.testing.assert_array_equal(one.predict(curve.X), other.predict(curve.X))
    assert one.n_terms_ == one.choices_["adj"]
    assert "predictions average over all sizes" in one.path_.reason


def test_the_chosen_size_is_the_least_squares_fit_of_its_terms(curve):
    model = NestedRegressor("cosine", criterion="dee", predict="chosen", random_state=0)
    model.fit(curve.X, curve.y)
    unit = (curve.X[:, 0] - curve.X.min()) / np.ptp(curve.X)
    terms = np.cos(np.pi * np.arange(model.n_terms_) * unit[:, None])
    fitted = terms @ np.linalg.lstsq(terms, curve.y, rcond=None)[0]
    np.testing.assert_allclose(model.predict(curve.X), fitted, atol=1e-10)
    assert np.isnan(model.new_error_)
    with pytest.raises(ValueError, match=r"return_std needs the posterior\. Got predict='chosen'"):
        model.predict(curve.X, return_std=True)


def test_the_parameter_and_the_method_share_a_name_in_peace(curve):
    model = NestedRegressor(predict="chosen", random_state=0)
    assert model.get_params()["predict"] == "chosen"
    assert clone(model).get_params() == model.get_params()
    assert "predict='chosen'" in repr(model)
    copy = pickle.loads(pickle.dumps(model.set_params(predict="average").fit(curve.X, curve.y)))
    assert copy.get_params()["predict"] == "average"
    np.testing.assert_array_equal(copy.predict(curve.X), model.predict(curve.X))
    search = GridSearchCV(NestedRegressor(random_state=0), {"predict": ["average", "chosen"]}, cv=3)
    assert search.fit(curve.X, curve.y).best_params_["predict"] in ("average", "chosen")
    with pytest.raises(
        ValueError, match=r"predict must be one of 'average', 'chosen'.*Did you mean"
    ):
        NestedRegressor(predict="averaged").fit(curve.X, curve.y)


@pytest.mark.parametrize("n_features", [1, 3])
def test_weights_are_repetitions_and_rows_of_weight_zero_influence_nothing(n_features):
    rng = np.random.default_rng(0)
    X = np.exp(rng.normal(size=(25, n_features)))
    y = np.log(X[:, 0]) + 0.1 * rng.normal(size=25)
    weight = rng.integers(0, 4, size=25)
    copies = rng.permutation(np.repeat(np.arange(25), weight))
    weighted = NestedRegressor(max_terms=8, random_state=0).fit(X, y, sample_weight=weight)
    repeated = NestedRegressor(max_terms=8, random_state=0).fit(X[copies], y[copies])
    for one, other in zip(
        weighted.predict(X, return_std=True), repeated.predict(X, return_std=True), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9)
    assert weighted.new_error_ == pytest.approx(repeated.new_error_)


def test_the_units_of_inputs_and_targets_do_not_matter(curve, model):
    other = NestedRegressor(random_state=0).fit(1e3 * curve.X - 5, 1e-6 * curve.y + 7)
    new = np.linspace(-3, 3, 9)[:, None]
    mean, deviation = model.predict(new, return_std=True)
    scaled, scaled_deviation = other.predict(1e3 * new - 5, return_std=True)
    np.testing.assert_allclose(1e6 * (scaled - 7), mean, atol=1e-6)
    np.testing.assert_allclose(1e6 * scaled_deviation, deviation, rtol=1e-5)
    assert other.new_error_ * 1e12 == pytest.approx(model.new_error_, rel=1e-5)


def test_nothing_leaves_the_range_of_inputs_and_targets_by_much():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    y = X[:, 0] + rng.normal(size=20)
    model = NestedRegressor(random_state=0).fit(X, y)
    far = model.predict(1e6 * rng.normal(size=(50, 3)))
    margin = 0.1 * np.ptp(y)
    assert far.min() >= y.min() - margin
    assert far.max() <= y.max() + margin


def test_skewed_inputs_are_spread_by_a_logarithm():
    for seed in range(5):
        x, new = skewed(40, seed), skewed(1000, 100 + seed)
        model = NestedRegressor(random_state=0).fit(x, np.log(x[:, 0]))
        assert model.score(new, np.log(new[:, 0])) > 0.95
        assert sum(w for name, w in model.basis_weights_.items() if "log" in name) > 0.9
    assert "log x0" in model.term_names_[1]


def test_an_even_input_has_no_logarithm_to_offer():
    x = np.linspace(0, 1, 30)[:, None]
    model = NestedRegressor(random_state=0).fit(x, np.sin(6 * x[:, 0]))
    assert not any("log" in name for name in model.basis_weights_)


def test_two_deviations_cover_the_curve():
    grid = np.linspace(-3, 3, 60)
    covered = []
    for seed in range(40):
        data = make_curve("four_terms", n_samples=30, noise=0.3, random_state=seed)
        mean, deviation = (
            NestedRegressor(random_state=0).fit(data.X, data.y).predict(grid[:, None], True)
        )
        covered.append(np.mean(np.abs(mean - data.curve(grid)) <= 1.96 * deviation))
    assert 0.88 < np.mean(covered) < 0.995


def test_the_band_of_a_rough_curve_has_room_for_the_terms_beyond_the_last():
    grid, covered = np.linspace(0, 1, 200), []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        steps, x = rng.normal(size=200) / np.sqrt(200), rng.uniform(size=30)
        brownian = np.cumsum(steps)
        y = np.interp(x, grid, brownian) + 0.05 * rng.normal(size=30)
        mean, deviation = (
            NestedRegressor(random_state=0).fit(x[:, None], y).predict(grid[:, None], True)
        )
        covered.append(np.mean(np.abs(mean - brownian) <= 1.96 * deviation))
    assert 0.9 < np.mean(covered) < 0.99  # .86 without that room


def test_the_expected_error_is_that_on_new_rows():
    ratios = []
    for seed in range(40):
        data = make_curve("four_terms", n_samples=30, noise=0.3, random_state=seed)
        model = NestedRegressor(random_state=0).fit(data.X, data.y)
        error = np.mean((model.predict(data.X_unlabeled) - data.curve(data.X_unlabeled[:, 0])) ** 2)
        ratios.append(model.new_error_ / (error + 0.09))
    assert 0.8 < np.median(ratios) < 1.25


def test_averaging_beats_picking_on_a_step():
    errors = {"average": [], "chosen": []}
    for seed in range(30):
        data = make_curve("step", n_samples=20, noise=0.1, random_state=seed)
        for predict, losses in errors.items():
            model = NestedRegressor("cosine", predict=predict, random_state=0)
            predicted = model.fit(data.X, data.y).predict(data.X_unlabeled)
            losses.append(np.mean((predicted - data.curve(data.X_unlabeled[:, 0])) ** 2))
    assert np.mean(errors["average"]) < 0.9 * np.mean(errors["chosen"])


def test_curves_of_one_basis_have_all_the_weight(curve):
    alone = NestedRegressor("cosine", random_state=0).fit(curve.X, curve.y)
    assert alone.basis_weights_ == {"cosine": 1.0}


def test_a_constant_target_has_no_deviation():
    X = np.arange(10.0)[:, None]
    model = NestedRegressor(random_state=0).fit(X, np.full(10, 7.0))
    mean, deviation = model.predict([[3.0], [99.0]], return_std=True)
    np.testing.assert_allclose(mean, 7)
    np.testing.assert_allclose(deviation, 0, atol=1e-9)


def test_between_two_values_of_an_input_the_deviation_is_that_of_the_targets():
    X = np.repeat([0.0, 1.0], 15)[:, None]
    y = 0.8 * X[:, 0] + 0.1 * np.random.default_rng(0).random(30)
    model = NestedRegressor(random_state=0).fit(X, y)
    _, (there, between) = model.predict([[0.0], [0.5]], return_std=True)
    assert there < 0.03
    assert 0.2 < between <= 1.2 * np.ptp(y)


# --- groups -------------------------------------------------------------------------------------


def grouped(seed=0):
    """Ten sites with a level each: rows of one site say more about each other than about others."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(10), 6)
    X = np.repeat(rng.uniform(size=10), 6)[:, None] + 0.001 * rng.normal(size=(60, 1))
    y = X[:, 0] + np.repeat(rng.normal(size=10), 6) + 0.1 * rng.normal(size=60)
    return X, y, groups


def test_folds_leave_out_whole_groups():
    X, y, groups = grouped()
    options = {"basis": "cosine", "criterion": "cv", "predict": "chosen", "random_state": 0}
    by_row = NestedRegressor(**options).fit(X, y)
    by_group = NestedRegressor(**options).fit(X, y, groups=groups)
    assert by_group.n_terms_ < by_row.n_terms_
    assert list(by_group.choices_) == ["cv"]
    assert "new data are new groups" in by_group.path_.reason
    splits = list(GroupKFold(10).split(X, y, groups))
    pairs = NestedRegressor(**options | {"cv": splits}).fit(X, y)
    ten = NestedRegressor(**options | {"cv": 10}).fit(X, y, groups=groups)
    splitter = NestedRegressor(**options | {"cv": GroupKFold(10)}).fit(X, y, groups=groups)
    for other in (ten, splitter):
        np.testing.assert_allclose(other.criteria_["cv"], pairs.criteria_["cv"])


def test_the_names_of_groups_do_not_matter_and_auto_works_with_them():
    X, y, groups = grouped()
    names = np.array([f"site {g}" for g in groups])
    one = NestedRegressor(criterion="cv", predict="chosen", random_state=0)
    other = clone(one).fit(X, y, groups=names)
    one.fit(X, y, groups=groups)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    assert sorted(one.basis_weights_.values())[-1] == 1


@pytest.mark.parametrize("criterion", sorted(set(CRITERIA) - {"cv"}))
def test_criteria_that_take_rows_for_independent_are_refused_with_groups(criterion):
    X, y, groups = grouped()
    with pytest.raises(ValueError, match=rf"criterion='{criterion}' assumes.*Pass criterion='cv'"):
        NestedRegressor(criterion=criterion).fit(X, y, groups=groups)


def test_groups_are_checked():
    X, y, groups = grouped()
    cv = NestedRegressor(criterion="cv", predict="chosen")
    with pytest.raises(ValueError, match="predict='average' assumes that all rows"):
        NestedRegressor(criterion="cv").fit(X, y, groups=groups)
    with pytest.raises(ValueError, match=r"needs at least 2 groups, got 1 \('a' in every row"):
        cv.fit(X, y, groups=["a"] * 60)
    with pytest.raises(ValueError, match=r"groups must have one value per row, shape \(60,\)"):
        cv.fit(X, y, groups=groups[:5])


def test_rows_and_weights_are_passed_by_name(curve):
    with pytest.raises(TypeError):
        NestedRegressor().fit(curve.X, curve.y, np.ones(40))


# --- cautions -----------------------------------------------------------------------------------


def cautions(model, X, y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    return " ".join(str(each.message) for each in caught)


def test_criteria_for_many_rows_are_cautioned_about_on_small_samples(curve):
    for criterion in ("aicc", "bic", "gcv"):
        chosen = NestedRegressor("cosine", criterion=criterion, predict="chosen", random_state=0)
        assert "is made for many rows" in cautions(chosen, curve.X, curve.y)
        averaged = clone(chosen).set_params(predict="average")
        assert cautions(averaged, curve.X, curve.y) == ""
    large = make_curve("step", n_samples=150, noise=0.1, random_state=0)
    assert cautions(chosen, large.X, large.y) == ""


def test_columns_that_come_too_late_are_pointed_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 40))
    y = 2 * X[:, 35] - 1.5 * X[:, 38] + 0.3 * rng.normal(size=30)
    new = rng.normal(size=(500, 40))
    truth = 2 * new[:, 35] - 1.5 * new[:, 38]
    chosen = NestedRegressor("columns", criterion="dee", predict="chosen", random_state=0)
    text = cautions(chosen, X, y)
    assert "sizes end at 22 terms" in text
    assert "41 are needed" in text
    average = NestedRegressor("columns", random_state=0)
    assert cautions(average, X, y) == ""
    assert "columns late in the order enter the average alone" in average.path_.reason
    assert average.score(new, truth) > chosen.score(new, truth)
    advised = NestedRegressor("omp", random_state=0)
    assert cautions(advised, X, y) == ""
    assert advised.score(new, truth) > 0.8


def test_one_wild_input_does_not_collapse_the_default_and_is_pointed_out():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(40, 1))
    y = np.sin(6 * x[:, 0]) + 0.1 * rng.normal(size=40)
    x[0] = 1e4
    new = rng.uniform(size=(500, 1))
    model = NestedRegressor(random_state=0)
    assert "1 value of 'x0' far outside the others, such as 10000" in cautions(model, x, y)
    assert model.score(new, np.sin(6 * new[:, 0])) > 0.9
    paper = NestedRegressor("cosine", criterion="dee", predict="chosen", random_state=0)
    assert "pass basis='auto'" in cautions(paper, x, y)


def test_one_wild_target_is_set_aside_and_named_and_a_jump_is_not():
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(40, 1))
    y = np.sin(6 * x[:, 0]) + 0.1 * rng.normal(size=40)
    assert cautions(NestedRegressor(random_state=0), x, y) == ""
    y[5] = 100.0
    model = NestedRegressor(random_state=0)
    assert "1 value of y set aside" in (text := cautions(model, x, y))
    assert "100 in row 5" in text
    assert model.path_.reason.endswith("1 wild target set aside")
    new = np.linspace(x.min(), x.max(), 200)[:, None]
    # The draws of inputs differ, so the curves do in the third digit.
    without = NestedRegressor(random_state=0).fit(x, y, sample_weight=np.arange(40) != 5)
    np.testing.assert_allclose(model.predict(new), without.predict(new), atol=0.02)
    assert model.new_error_ == pytest.approx(without.new_error_, rel=0.05)
    step = make_curve("step", n_samples=50, noise=0.01, random_state=0)
    assert cautions(NestedRegressor(random_state=0), step.X, step.y) == ""


@pytest.mark.parametrize("seed", range(6))
def test_a_wild_target_is_pointed_out_even_where_the_curve_follows_it(seed):
    rng = np.random.RandomState(seed)
    x = rng.uniform(0, 1, (40, 1))
    y = np.sin(5 * x[:, 0]) + 0.1 * rng.standard_normal(40)
    y[3] += 5
    assert f"far from what the others say, such as {y[3]:g}" in cautions(
        NestedRegressor(random_state=0), x, y
    )
    chosen = NestedRegressor(criterion="dee", predict="chosen", random_state=0)
    assert f"far from what the others say, such as {y[3]:g}" in cautions(chosen, x, y)


def a_spike(place):
    """40 rows in order of x; the one at that place has 100 where the others have -1 to 1."""
    rng = np.random.RandomState(0)
    x = np.sort(rng.uniform(0, 1, (40, 1)), axis=0)
    y = np.sin(5 * x[:, 0]) + 0.1 * rng.standard_normal(40)
    y[place] = 100.0
    return x, y


@pytest.mark.parametrize(
    ("place", "why"),
    [(39, "a curve may be steep at its end"), ([20, 21], "one speaks for the other")],
)
def test_a_wild_target_that_may_be_real_is_kept_and_pointed_out(place, why):
    text = cautions(NestedRegressor(random_state=0), *a_spike(place))
    assert "of y far from what the others say, such as 100." in text, why
    assert "set aside" not in text, why


def test_targets_beside_equal_ones_and_repeated_ones_are_kept():
    x, y = a_spike(20)
    fitted = np.sin(5 * x[:, 0])
    weight = np.ones(40)
    rows = Rows(x, y, weight, np.empty((0, 1)))
    assert far_targets(rows, fitted)[1].tolist() == (np.arange(40) == 20).tolist()
    weight[20] = 5.0  # five copies
    wild, alone = far_targets(rows, fitted)
    assert wild[20]
    assert not alone.any()
    event = rows._replace(y=np.where(np.arange(40) == 20, 10.0, 0.0), weight=np.ones(40))
    wild, alone = far_targets(event, np.zeros(40))
    assert wild[20]
    assert not alone.any()


def test_folds_that_hold_the_wild_row_alone_are_dropped_with_it():
    x, y = a_spike(20)
    rest = np.delete(np.arange(40), 20)
    folds = [(rest, [20]), (np.arange(20, 40), np.arange(20))]
    assert "set aside" in cautions(NestedRegressor(cv=folds, random_state=0), x, y)
    assert "set aside" not in cautions(NestedRegressor(cv=folds[:1], random_state=0), x, y)


@pytest.mark.parametrize("basis", ["columns", "pca", "lars", "omp", "rbf", "bspline"])
@pytest.mark.parametrize("predict", ["average", "chosen"])
def test_a_wild_input_is_pointed_out_whatever_the_basis(basis, predict):
    rng = np.random.RandomState(1)
    X = rng.uniform(0, 1, (40, 2))
    y = np.sin(5 * X[:, 0]) + 0.1 * rng.standard_normal(40)
    X[0, 1] = 1e4
    text = cautions(NestedRegressor(basis, predict=predict, random_state=0), X, y)
    assert "1 value of 'x1' far outside the others, such as 10000" in text
    assert "of y far" not in text


def test_the_top_of_a_steep_curve_is_no_wild_target():
    x = np.linspace(0, 1, 20)[:, None]
    assert cautions(NestedRegressor(random_state=0), x, np.exp(20 * x[:, 0])) == ""


def test_columns_that_tell_nothing_leave_the_mean():
    # A rare large target: bases that follow it err more on new rows than the mean does.
    rng = np.random.RandomState(1)
    X, new = rng.binomial(1, 0.3, (20, 8)).astype(float), rng.binomial(1, 0.3, (500, 8))
    y, truth = (5.0 * (rng.uniform(size=n) < 0.05) for n in (20, 500))
    y[0] = 5.0
    model = NestedRegressor(random_state=0).fit(X, y)
    assert sum(model.basis_weights_.values()) == pytest.approx(1)
    assert model.basis_weights_["constant"] > 0.2
    assert model.basis_.explains
    assert np.mean((model.predict(new) - truth) ** 2) < 1.5 * truth.var()
    steady = NestedRegressor(random_state=0).fit(X, X @ np.arange(8.0))
    assert "constant" not in steady.basis_weights_


def test_the_share_beside_the_mean_without_a_row_that_outweighs_the_others_by_hand():
    # Squares about the mean 2: 4, 1, 4, 1, 64 of 74. Without the last row the others, each left
    # out, have the means 2/3, 1/3, 2/3, 1/3, and the predictions are those: no gain, share 1.
    y = np.array([0.0, 1.0, 0.0, 1.0, 10.0])
    rows = Rows(np.zeros((5, 2)), y, np.ones(5), np.empty((0, 2)))
    left_out = np.array([2 / 3, 1 / 3, 2 / 3, 1 / 3, 5.0])
    share, together = module._beside_mean(left_out, rows)
    assert share == 1
    assert together == pytest.approx(left_out)
    # Predictions on the far side of the mean have no share, although they gain over the mean of
    # all others, 3 and 2.75; the row of 10 would have given them one.
    left_out = np.array([1.0, 0.0, 1.0, 0.0, 5.0])
    share, together = module._beside_mean(left_out, rows)
    assert share == 0
    assert together == pytest.approx([3.0, 2.75, 3.0, 2.75, 0.5])


@pytest.mark.parametrize("n_values", [2, 3])
def test_the_estimate_of_an_input_of_few_values_is_that_of_new_rows_with_the_same_values(n_values):
    # Between the values nothing is known; a curve over the whole range would seem to err hugely.
    rng = np.random.RandomState(0)
    x = rng.randint(n_values, size=(30, 1)).astype(float)
    y = x[:, 0] + 0.3 * rng.standard_normal(30)
    model = NestedRegressor(random_state=0).fit(x, y)
    assert model.n_terms_ > 1
    assert model.criteria_["bayes"].min() == pytest.approx(model.new_error_, rel=0.25)


@pytest.mark.parametrize("n_features", [1, 2])
def test_no_basis_of_the_average_has_more_terms_than_asked_for(curve, n_features):
    X = np.column_stack([curve.X, np.cos(curve.X)])[:, :n_features]
    model = NestedRegressor(max_terms=2, random_state=0).fit(X, curve.y)
    assert all(len(each.posterior.mean) <= 2 for each in model._average.curves.values())
    constant = NestedRegressor(max_terms=1, random_state=0).fit(X, curve.y)
    np.testing.assert_allclose(constant.predict(X), curve.y.mean())


def test_values_that_many_targets_have_are_not_called_wild():
    # One row on the wrong side of a jump from 0 to 1. Any warning would fail.
    x = np.linspace(0, 1, 40)[:, None]
    y = (x[:, 0] > 0.5).astype(float)
    y[5] = 1.0
    NestedRegressor(random_state=0).fit(x, y)


def test_a_row_of_a_huge_weight_makes_no_other_wild():
    rng = np.random.default_rng(0)
    x, weight = rng.uniform(size=(30, 1)), np.ones(30)
    weight[7] = 1e6
    NestedRegressor(random_state=0).fit(x, rng.normal(size=30), sample_weight=weight)


def test_copies_of_columns_leave_the_expected_error_as_it_is():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6))
    y = X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=40)
    near = X[:, :3] + 1e-6 * rng.normal(size=(40, 3))
    least = [
        NestedRegressor("columns", random_state=0).fit(design, y).criteria_["bayes"]
        for design in (X, np.hstack([X, X[:, :3]]), np.hstack([X, near]))
    ]
    for values in least:
        assert values.min() == pytest.approx(least[0].min(), rel=0.1)
        assert values.max() < 3


# --- left-out rows ------------------------------------------------------------------------------


def one_prior(n_terms):
    share = 1.0 / np.arange(1.0, n_terms + 1)[None]
    return Grid(share, np.array([[3.0]]), np.zeros((1, 1)))


@pytest.mark.parametrize("n_rows", [12, 5])  # more rows than terms, and fewer
def test_left_out_predictions_are_those_of_fits_without_the_row(n_rows):
    rng = np.random.RandomState(0)
    terms = np.column_stack([np.ones(n_rows), rng.standard_normal((n_rows, 6))])
    y = terms @ rng.standard_normal(7) + rng.standard_normal(n_rows)
    weight = np.ones(n_rows)
    weight[0] = 3

    def fitted(weight):
        use = weight > 0
        sample = Sample(terms[use], y[use], weight[use])
        R, z, rss = joint_triangle(*sample)
        return posterior(R, z, rss, float(weight.sum()), np.ones(7), one_prior(6), sample)

    closed = fitted(weight).left_out.predicted
    for i in range(n_rows):
        without = fitted(weight - (np.arange(n_rows) == i))
        assert closed[i] == pytest.approx(terms[i] @ without.mean)


@pytest.mark.parametrize("n_inputs", [1, 3])
def test_the_error_on_new_rows_is_close_to_that_of_fits_without_each_row(n_inputs):
    rng = np.random.RandomState(1)
    X = rng.uniform(-2, 2, size=(24, n_inputs))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.standard_normal(24)
    model = NestedRegressor(random_state=0).fit(X, y)
    errors = []
    for i in range(24):
        rest = np.arange(24) != i
        other = NestedRegressor(random_state=0).fit(X[rest], y[rest])
        errors.append((other.predict(X[[i]])[0] - y[i]) ** 2)
    assert model.new_error_ == pytest.approx(np.mean(errors), rel=0.25)
    assert model.path_.scores[model.n_terms_] == pytest.approx(model.new_error_)


def test_a_smooth_surface_without_noise_is_found_by_the_kernels():
    rng = np.random.RandomState(2)
    X, new = rng.uniform(-1, 1, size=(2, 60, 3))
    new *= 0.8  # predictions beyond the rows are held at their range

    def surface(X):
        return np.exp(X[:, 0] * X[:, 1]) / (2 + X[:, 2])

    model = NestedRegressor(random_state=0).fit(X, surface(X))
    smooth = sum(w for name, w in model.basis_weights_.items() if name.startswith("smooth"))
    assert smooth > 0.9
    assert model.score(new, surface(new)) > 0.995
    assert model.basis_.explains


@pytest.mark.parametrize("basis", ["columns", "omp", "lars"])
def test_columns_far_from_zero_have_the_predictions_and_deviations_of_those_near_it(basis):
    rng = np.random.RandomState(1)
    X, new = rng.standard_normal((20, 2)), rng.standard_normal((5, 2))
    y = X[:, 0] + 0.3 * rng.standard_normal(20)
    near = NestedRegressor(basis, random_state=0).fit(X, y)
    for away in (1e6, 1e9):
        far = NestedRegressor(basis, random_state=0).fit(X + away, y)
        moved = far.predict(new + away, return_std=True)
        np.testing.assert_allclose(moved, near.predict(new, return_std=True), rtol=2e-5)


@pytest.mark.parametrize(("n_rows", "seed"), [(3, 3), (3, 29), (5, 11)])
def test_a_few_targets_far_from_zero_are_averaged_with_their_mean_as_those_near_it(n_rows, seed):
    rng = np.random.RandomState(seed)
    X = rng.uniform(size=(n_rows, 2))
    y = np.round((X[:, 0] + rng.standard_normal(n_rows)) * 64) / 64
    near = NestedRegressor(random_state=0).fit(X, y)
    far = NestedRegressor(random_state=0).fit(X, y + 2.0**30)
    got, deviation = far.predict(X, return_std=True)
    expected, expected_deviation = near.predict(X, return_std=True)
    np.testing.assert_allclose(got - 2.0**30, expected, atol=1e-6)
    np.testing.assert_allclose(deviation, expected_deviation, rtol=1e-6)
    assert far.basis_weights_ == pytest.approx(near.basis_weights_)


@pytest.mark.parametrize("basis", ["auto", "bspline", "columns", "rbf"])
def test_a_constant_column_leaves_the_average_as_it_was(basis):
    rng = np.random.RandomState(1)
    X = rng.uniform(size=(12, 3))
    y = np.sin(3 * X[:, 0]) + 0.1 * rng.standard_normal(12)
    without = NestedRegressor(basis, random_state=0).fit(X, y)
    beside = NestedRegressor(basis, random_state=0).fit(np.column_stack([X, np.full(12, 7.0)]), y)
    assert beside.n_terms_ == without.n_terms_
    np.testing.assert_allclose(
        beside.predict(np.column_stack([X, np.zeros(12)])), without.predict(X), rtol=1e-9
    )
