import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, LeaveOneGroupOut
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)

from holdtrue import NestedRegressor, SelectionPath
from holdtrue.datasets import make_curve
from holdtrue.model_size import bases, kernel
from holdtrue.model_size.table import CRITERIA, UNITS

PAPER = {"basis": "cosine", "criterion": "dee", "predict": "chosen"}


@pytest.fixture
def curve():
    return make_curve("four_terms", n_samples=40, noise=0.1, random_state=0)


def test_four_terms_are_found_by_most_criteria(curve):
    model = NestedRegressor(**PAPER, random_state=0, interval=(-np.pi, np.pi))
    model.fit(curve.X, curve.y)
    assert model.n_terms_ == 4
    assert sum(size == 4 for size in model.choices_.values()) > len(CRITERIA) / 2
    new = np.linspace(-3, 3, 50)
    assert np.abs(model.predict(new[:, None]) - curve.curve(new)).max() < 0.3


def test_every_size_predicts_in_turn_and_rows_are_checked_when_asked(curve):
    model = NestedRegressor(predict="chosen", random_state=0).fit(curve.X, curve.y)
    stages = list(model.staged_predict(curve.X))
    assert len(stages) == model.path_.n_steps
    np.testing.assert_allclose(stages[model.n_terms_ - 1], model.predict(curve.X))
    with pytest.raises(ValueError, match=r"^NestedRegressor: expected numbers"):
        model.staged_predict([["a"]])  # at the call, not when the first stage is taken


def test_a_warning_shows_the_line_of_the_caller(curve):
    with pytest.warns(UserWarning, match="is made for many rows") as caught:
        NestedRegressor(criterion="fpe", predict="chosen", random_state=0).fit(curve.X, curve.y)
    assert {warning.filename for warning in caught} == {__file__}


def test_the_table_and_the_path_tell_the_same(curve):
    model = NestedRegressor(criterion="adj", random_state=0).fit(curve.X, curve.y)
    assert list(model.criteria_) == ["n_terms", "train", *CRITERIA]
    assert {len(column) for column in model.criteria_.values()} == {30}
    np.testing.assert_array_equal(model.path_.scores[1:], model.criteria_["adj"])
    np.testing.assert_array_equal(model.path_.train_scores[1:], model.criteria_["train"])
    assert model.path_.chosen_size == model.n_terms_ == model.choices_["adj"]
    assert model.path_.scores[0] == pytest.approx(np.mean(curve.y**2))
    assert "adj is least at" in model.path_.reason
    assert len(model.coef_) == model.n_terms_
    assert len(model.term_names_) == len(model.path_.names) == 30


@pytest.mark.parametrize("criterion", CRITERIA)
def test_each_criterion_can_choose(criterion, curve):
    model = NestedRegressor(criterion=criterion, random_state=0).fit(curve.X, curve.y)
    assert model.n_terms_ == np.argmin(model.criteria_[criterion]) + 1
    assert model.path_.unit == UNITS.get(criterion, "mean squared error")
    assert np.isfinite(model.path_.scores[0])
    assert model.score(curve.X, curve.y) > 0.8


@pytest.mark.parametrize("n_unlabeled", [0, 1, 3, 30])
@pytest.mark.parametrize("basis", bases.NAMES)
def test_no_estimate_of_an_error_is_negative(basis, n_unlabeled):
    # Rows in clusters, with repeats: most terms of a large size nearly depend on earlier ones.
    rng = np.random.default_rng(0)
    x = np.round(rng.choice([2.0, 15.0, 30.0, 55.0], size=90) + 4 * rng.normal(size=90), 1)
    X = np.column_stack([x, x + 1e-6 * rng.normal(size=90), rng.normal(size=90)])
    y = np.sin(x / 9) * 50 + 10 * rng.normal(size=90)
    model = NestedRegressor(basis, random_state=0)
    model.fit(X, y, X_unlabeled=X[:n_unlabeled] + 1 if n_unlabeled else None)
    one = NestedRegressor(basis, random_state=0)
    one.fit(X[:, :1], y, X_unlabeled=X[:n_unlabeled, :1] + 1 if n_unlabeled else None)
    for fitted in (model, one):
        for name in set(fitted.choices_) - set(UNITS):
            assert (fitted.criteria_[name] >= 0).all(), name
        assert (fitted.criteria_["adj"] > 0).all()  # 0 would win


def test_one_row_without_a_label_takes_no_absurd_size():
    # As the motorcycle data: dense in the middle, repeated times. DEE was -1e17 at 98 terms.
    rng = np.random.default_rng(0)
    x = np.sort(np.round(np.append(20 + 8 * rng.normal(size=100), rng.uniform(2, 58, 32)), 1))
    y = -80 * np.exp(-(((x - 22) / 6) ** 2)) + 20 * rng.normal(size=132)
    alone = NestedRegressor(random_state=0).fit(x[:, None], y)
    model = NestedRegressor(random_state=0).fit(x[:, None], y, X_unlabeled=[[30.0]])
    assert abs(model.n_terms_ - alone.n_terms_) <= 3
    remp = model.criteria_["train"]
    assert (model.criteria_["dee"] >= remp).all()


@pytest.mark.parametrize("basis", [*bases.NAMES, PolynomialFeatures(2), FunctionTransformer()])
def test_each_basis_can_be_fitted_and_predicts_from_any_batch(basis):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    y = X[:, 0] - 2 * X[:, 1] + 0.1 * rng.normal(size=50)
    model = NestedRegressor(basis, criterion="cv", random_state=0).fit(X, y)
    assert model.score(X, y) > 0.5
    np.testing.assert_allclose(model.predict(X)[:7], model.predict(X[:7]))


def test_weights_are_repetitions_in_every_criterion_and_basis():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    weight = rng.integers(0, 4, size=20)
    copies = rng.permutation(np.repeat(np.arange(20), weight))
    for basis in (*bases.NAMES, PCA(2), SplineTransformer(4, knots="quantile")):
        weighted = NestedRegressor(basis, max_terms=8, random_state=0).fit(
            X, y, sample_weight=weight
        )
        repeated = NestedRegressor(basis, max_terms=8, random_state=0).fit(X[copies], y[copies])
        for name, column in weighted.criteria_.items():
            np.testing.assert_allclose(
                column, repeated.criteria_[name], rtol=1e-6, err_msg=f"{basis} {name}"
            )


@pytest.mark.parametrize("cv", [5, KFold(4)], ids=str)
@pytest.mark.parametrize("basis", [*bases.NAMES, PolynomialFeatures(2)], ids=str)
def test_rows_of_weight_zero_influence_nothing(basis, cv):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 1)), rng.normal(size=20)
    far = np.vstack([[[-1e6]], X, [[1e6]]])
    weight = np.array([0.0, *np.ones(20), 0.0])
    one = NestedRegressor(basis, cv=cv, random_state=0).fit(X, y)
    other = NestedRegressor(basis, cv=cv, random_state=0).fit(
        far, [1e9, *y, 1e9], sample_weight=weight
    )
    for name in one.criteria_:
        np.testing.assert_array_equal(one.criteria_[name], other.criteria_[name], err_msg=name)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


def test_predictions_outside_the_range_are_those_at_its_end():
    data = make_curve(random_state=0)
    for basis in bases.FAMILIES:
        model = NestedRegressor(basis, random_state=0).fit(data.X, data.y)
        ends = np.array([data.X.min(axis=0), data.X.max(axis=0)])
        np.testing.assert_array_equal(
            model.predict(ends), model.predict(ends + [[-100.0], [100.0]])
        )


def test_without_unlabelled_rows_the_kernel_density_serves_as_well(curve):
    given = NestedRegressor(random_state=0, interval=(-np.pi, np.pi))
    given.fit(curve.X, curve.y, X_unlabeled=curve.X_unlabeled)
    drawn = NestedRegressor(random_state=0, interval=(-np.pi, np.pi)).fit(curve.X, curve.y)
    ratio = drawn.criteria_["dee"][:10] / given.criteria_["dee"][:10]
    assert ((ratio > 0.8) & (ratio < 1.25)).all()


def test_many_unlabelled_rows_are_summed_in_batches(curve, monkeypatch):
    whole = NestedRegressor(random_state=0).fit(curve.X, curve.y, X_unlabeled=curve.X_unlabeled)
    monkeypatch.setattr("holdtrue.model_size.estimator._BATCH", 7)
    parts = NestedRegressor(random_state=0).fit(curve.X, curve.y, X_unlabeled=curve.X_unlabeled)
    np.testing.assert_allclose(whole.criteria_["dee"], parts.criteria_["dee"], rtol=1e-9)
    np.testing.assert_allclose(whole.predict(curve.X), parts.predict(curve.X))


def test_more_columns_than_rows_are_fine():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(15, 40))
    y = 3 * X[:, 7] + 0.1 * rng.normal(size=15)
    model = NestedRegressor("lars", random_state=0).fit(X, y)
    assert model.term_names_[1] == "x7"
    assert model.predict(X).shape == (15,)


def test_an_order_that_looks_at_the_target_is_repeated_in_each_fold():
    # Pure noise: an order chosen on all rows would make held-out rows look predictable.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 200)), rng.normal(size=30)
    model = NestedRegressor("omp", criterion="cv", max_terms=10, random_state=0).fit(X, y)
    assert model.criteria_["cv"][5] > model.criteria_["cv"][0]
    assert model.criteria_["loo"][5] < model.criteria_["loo"][0]


def test_a_path_found_elsewhere_gives_the_order():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    path = SelectionPath([2, 0], ["c", "a"], [3, 2, 1], 2, "elsewhere")
    model = NestedRegressor(path, random_state=0).fit(X, X[:, 2])
    assert model.term_names_ == ["1", "x2", "x0"]
    with pytest.raises(ValueError, match=r"columns of X, 0 to 1\. Got column 2"):
        NestedRegressor(path).fit(X[:, :2], X[:, 2])


def test_given_and_estimated_noise(curve):
    assert NestedRegressor(noise_variance=0.01).fit(curve.X, curve.y).noise_variance_ == 0.01
    estimated = NestedRegressor().fit(curve.X, curve.y)
    assert estimated.noise_variance_ == pytest.approx(
        estimated.criteria_["train"][-1] * 40 / (40 - 30)
    )
    assert 0.003 < estimated.noise_variance_ < 0.03


# --- beside scikit-learn ------------------------------------------------------------------------


def test_grid_search_over_criteria_and_bases(curve):
    grid = {"criterion": ["dee", "adj", "aic"], "basis": ["cosine", "legendre"]}
    search = GridSearchCV(NestedRegressor(random_state=0), grid, cv=3).fit(curve.X, curve.y)
    assert search.best_score_ > 0.8


@pytest.mark.parametrize("cv", [3, KFold(4), "splits"])
def test_folds_may_be_a_number_a_splitter_or_pairs(cv, curve):
    if cv == "splits":
        groups = np.arange(40) % 5
        cv = list(LeaveOneGroupOut().split(curve.X, groups=groups))
    model = NestedRegressor(criterion="cv", cv=cv, random_state=0).fit(curve.X, curve.y)
    assert 3 <= model.n_terms_ <= 8


def test_the_same_seed_gives_the_same_fit_and_rows_may_come_in_any_order(curve):
    order = np.random.default_rng(0).permutation(40)
    one = NestedRegressor(max_terms=12, random_state=3).fit(curve.X, curve.y)
    other = NestedRegressor(max_terms=12, random_state=3).fit(curve.X[order], curve.y[order])
    for name in one.criteria_:
        np.testing.assert_allclose(one.criteria_[name], other.criteria_[name], rtol=1e-8)


def test_unlabelled_rows_reach_the_last_step_of_a_pipeline(curve):
    with sklearn.config_context(enable_metadata_routing=True):
        last = NestedRegressor("columns", random_state=0).set_fit_request(X_unlabeled=True)
        pipeline = Pipeline(
            [("scale", StandardScaler()), ("model", last)], transform_input=["X_unlabeled"]
        )
        pipeline.fit(curve.X, curve.y, X_unlabeled=curve.X_unlabeled)
        scaled = pipeline[0].transform(curve.X_unlabeled)
    by_hand = NestedRegressor("columns", random_state=0)
    by_hand.fit(StandardScaler().fit_transform(curve.X), curve.y, X_unlabeled=scaled)
    np.testing.assert_allclose(pipeline[-1].criteria_["dee"], by_hand.criteria_["dee"])


def test_without_routing_a_pipeline_fits_as_usual(curve):
    assert make_pipeline(StandardScaler(), NestedRegressor()).fit(curve.X, curve.y)


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"]
)
def test_frames_name_the_terms_and_unlabelled_frames_must_match(frame, curve):
    X = frame({"time": curve.X[:, 0]})
    model = NestedRegressor("legendre", random_state=0)
    model.fit(X, curve.y, X_unlabeled=frame({"time": curve.X_unlabeled[:, 0]}))
    assert model.term_names_[:2] == ["1", "P1(time)"]
    with pytest.raises(ValueError, match=r"Expected \['time'\]. Got \['hour'\]"):
        model.fit(X, curve.y, X_unlabeled=frame({"hour": curve.X_unlabeled[:, 0]}))


# --- bad input: a sentence before any work, or a stated answer ----------------------------------

X10, y10 = np.arange(10.0)[:, None], np.arange(10.0) ** 2

PARAMETERS = [
    ({"criterion": "dea"}, "criterion must be one of 'dee'.*Got 'dea'. Did you mean 'dee'"),
    ({"criterion": None}, "criterion must be one of.*Got None"),
    ({"basis": "cosinus"}, "basis must be one of.*Did you mean 'cosine'"),
    ({"basis": 3}, "a transformer or a SelectionPath. Got 3"),
    ({"basis": StandardScaler}, "a transformer or a SelectionPath"),
    ({"max_terms": 0}, "max_terms must be a whole number of at least 1, or None. Got 0"),
    ({"max_terms": 2.5}, "max_terms must be a whole number"),
    ({"max_terms": True}, "max_terms must be a whole number"),
    (
        {"max_terms": 40},
        "max_terms must be below the number of rows. Got max_terms=40 with 10 rows. "
        "Pass max_terms=9 or less, or None",
    ),
    ({"max_terms": 10}, "Pass max_terms=9 or less"),
    ({"interval": (1, 0)}, "low < high"),
    ({"interval": "all"}, r"interval must be \(low, high\)"),
    ({"interval": (0, np.inf)}, r"interval must be \(low, high\)"),
    ({"interval": (0, 5)}, r"interval=\(0, 5\) must contain every value of 'x0'.*from 0 to 9"),
    (
        {"interval": [(0, 9), (0, 9)]},
        r"pair per feature, shape \(1, 2\). Got \[\(0, 9\), \(0, 9\)\]",
    ),
    ({"interval": (0, 9), "basis": "pca"}, "interval is for the bases"),
    ({"noise_variance": -1}, "noise_variance must be a number of at least 0"),
    ({"noise_variance": "x"}, "noise_variance must be a number"),
    ({"cv": 1}, "cv must be at least 2 folds. Got cv=1"),
]


@pytest.mark.parametrize("parameters, message", PARAMETERS)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message) as caught:
        NestedRegressor(**parameters).fit(X10, y10)
    assert str(caught.value).startswith("NestedRegressor: ")


ROWS = [
    (X10[:2], y10[:2], {}, "needs at least 3 rows.*Got 2 samples"),
    (X10[:1], y10[:1], {}, "Got 1 sample"),
    (X10, y10, {"sample_weight": np.full(10, 0.1)}, "weights are repetitions"),
    (X10, y10, {"sample_weight": -np.ones(10)}, "finite and not negative. Got -1"),
    (X10, y10, {"sample_weight": np.ones(3)}, r"shape \(10,\). Got shape \(3,\)"),
    (X10, y10, {"X_unlabeled": np.ones((5, 2))}, r"\(n_unlabeled, 1\). Got shape \(5, 2\)"),
    (X10, y10, {"X_unlabeled": np.ones(5)}, "Expected 2D array"),
    (X10, y10, {"X_unlabeled": np.full((5, 1), np.nan)}, "X_unlabeled contains NaN"),
    (X10, y10, {"X_unlabeled": np.empty((0, 1))}, "X_unlabeled has no rows"),
    (np.where(X10 == 3, np.nan, X10), y10, {}, "X contains NaN"),
    (X10, np.where(y10 == 9, np.nan, y10), {}, "y contains NaN"),
    (X10, np.column_stack([y10, y10]), {}, "y should be a 1d array"),
    (np.array([["a"]] * 10), y10, {}, "expected numbers. Got the text 'a'. Encode it"),
    (pd.DataFrame({"site": ["a"] * 10}), y10, {}, "Got String in column 'site'. Encode it"),
    (pl.DataFrame({"site": ["a"] * 10}), y10, {}, "Got String in column 'site'. Encode it"),
    (X10[:, :0], y10, {}, "0 feature"),
    (X10, list("abcdefghij"), {}, "expected numbers. Got the text 'a'"),
    (X10, y10, {"sample_weight": ["a"] * 10}, "sample_weight must be numbers"),
    (X10, y10, {"X_unlabeled": [["q"]]}, "expected numbers. Got the text 'q'"),
    (X10, y10, {"X_unlabeled": pd.DataFrame({"x": ["q"]})}, "Got String in column 'x'"),
    (X10.astype("datetime64[s]"), y10, {}, "Got dates"),
    (pd.DataFrame([[1.0, 2]] * 10, columns=["a", "a"]), y10, {}, "must have different names"),
    (pl.LazyFrame({"a": y10}), y10, {}, r"Call its \.collect\(\) first"),
    (1e160 * X10, y10, {}, "squares of X must fit into float64. Got values of size 9e.160"),
    (X10, 1e-170 * y10, {}, "squares of y must fit"),
]


@pytest.mark.parametrize("X, y, arguments, message", ROWS)
def test_bad_rows_are_refused(X, y, arguments, message):
    with pytest.raises(ValueError, match=message):
        NestedRegressor().fit(X, y, **arguments)


def test_a_criterion_that_is_infinite_everywhere_says_so():
    with pytest.raises(ValueError, match="criterion='seb' is infinite at every size with 5 rows"):
        NestedRegressor(criterion="seb").fit(X10[:5], y10[:5])


def test_a_transformer_that_makes_no_numbers_is_named():
    broken = FunctionTransformer(lambda X: X / 0.0 * 0)
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="FunctionTransformer gave"):
        NestedRegressor(broken).fit(X10, y10)
    flat = FunctionTransformer(lambda X: X[:, 0])
    with pytest.raises(ValueError, match="as many rows of terms"):
        NestedRegressor(flat).fit(X10, y10)


@pytest.mark.parametrize(
    "cv, message",
    [
        ([(np.arange(10), np.arange(0))], "every fold of cv must train and test"),
        ([], r"cv gave no folds\. A generator can be used once"),
        ([([0, 1, 2], [99])], "did not split them .*out of bounds"),
        ([1, 2, 3], "pairs of row indices"),
        (GroupKFold(2), r"If it needs groups, pass fit\(X, y, groups=\.\.\.\)"),
    ],
)
def test_folds_that_are_none_are_refused(cv, message):
    with pytest.raises(ValueError, match=message):
        NestedRegressor(cv=cv).fit(X10, y10)


@pytest.mark.parametrize("basis", bases.NAMES)
def test_a_constant_target_takes_one_term_and_says_why(basis):
    model = NestedRegressor(basis).fit(np.column_stack([X10, y10]), np.full(10, 7.0))
    assert model.n_terms_ == 1
    assert "target is constant" in model.path_.reason
    np.testing.assert_allclose(model.predict([[3.0, 9.0], [4.0, 16.0]]), 7.0)


@pytest.mark.parametrize("basis", bases.NAMES)
def test_a_constant_input_leaves_the_mean(basis):
    y = np.array([1.0, 2, 3, 4, 5, 6])
    model = NestedRegressor(basis).fit(np.full((6, 1), 3.0), y)
    assert model.n_terms_ == 1
    np.testing.assert_allclose(model.predict([[3.0], [8.0]]), 3.5)


def test_dependent_columns_are_left_out_and_counted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    X = np.column_stack([X[:, 0], 2 * X[:, 0] + 1, X[:, 1]])
    model = NestedRegressor("columns", random_state=0).fit(X, X[:, 2] + rng.normal(size=20))
    assert model.term_names_ == ["1", "x0", "x2"]
    assert model.path_.order.tolist() == [0, 1, 3]
    assert model.support_.tolist()[2] is False
    assert "1 term depended on earlier ones and was left out" in model.path_.reason


def test_three_rows_are_enough():
    model = NestedRegressor(random_state=0).fit([[0.0], [1], [2]], [1.0, 2, 4])
    assert model.n_terms_ in (1, 2)


@pytest.mark.parametrize("moment", ["nested_fit", "cross_validation"])
def test_an_interrupted_fit_leaves_a_path_that_says_so_and_nothing_of_earlier_fits(
    moment, monkeypatch
):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    model = NestedRegressor().fit(X10, -y10)
    monkeypatch.setattr(kernel, moment, interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X10, y10)
    assert model.path_.reason == "interrupted"
    assert model.path_.n_steps == 0
    with pytest.raises(sklearn.exceptions.NotFittedError):
        model.predict(X10)


def test_a_fit_that_fails_leaves_the_one_before_whole():
    model = NestedRegressor().fit(X10, y10)
    path, before = model.path_, model.predict(X10)
    model.set_params(basis="legendre", criterion="seb")
    with pytest.raises(ValueError, match="infinite at every size"):
        model.fit(X10[:5], y10[:5])
    assert model.path_ is path
    np.testing.assert_array_equal(model.predict(X10), before)


def test_a_constant_among_a_transformers_columns_shifts_no_fold():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, size=(20, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=20)

    def held_out(basis, max_terms):
        return NestedRegressor(basis, max_terms=max_terms, random_state=0).fit(X, y).criteria_["cv"]

    with_bias = held_out(PolynomialFeatures(3), 5)
    np.testing.assert_allclose(with_bias, held_out(PolynomialFeatures(3, include_bias=False), 4))
    twice = np.column_stack([X, 2 * X, X**2])
    path = SelectionPath([0, 1, 2], list("abc"), np.zeros(4), 3, "by hand")
    by_path = NestedRegressor(path, random_state=0).fit(twice, y)
    as_they_stand = NestedRegressor("columns", random_state=0).fit(twice, y)
    np.testing.assert_allclose(by_path.criteria_["cv"], as_they_stand.criteria_["cv"])


def test_repeated_rows_do_not_invite_interpolation():
    data = make_curve("sinc", n_samples=20, noise=0.2, random_state=0)
    plain = NestedRegressor(random_state=0).fit(data.X, data.y)
    for weight in (1.5, 2.0, 3.0):
        model = NestedRegressor(random_state=0).fit(
            data.X, data.y, sample_weight=np.full(20, weight)
        )
        assert len(model.criteria_["n_terms"]) == len(plain.criteria_["n_terms"]) == 15
        assert model.n_terms_ < 15
    with pytest.raises(
        ValueError, match=r"max_terms=25 with 20 different rows\. Pass max_terms=19"
    ):
        NestedRegressor(max_terms=25).fit(data.X, data.y, sample_weight=np.full(20, 2.0))


def test_fractional_weights_are_refused_by_a_transformer_and_by_nothing_else():
    weight = np.linspace(0.5, 2, 10)
    NestedRegressor().fit(X10, y10, sample_weight=weight)
    with pytest.raises(ValueError, match=r"PolynomialFeatures.*must be whole numbers"):
        NestedRegressor(PolynomialFeatures(2)).fit(X10, y10, sample_weight=weight)


def test_criteria_that_are_infinite_everywhere_do_not_vote():
    model = NestedRegressor(random_state=0).fit(X10[:5], y10[:5])
    assert np.isinf(model.criteria_["seb"]).all()
    assert "seb" not in model.choices_
    assert f"the {len(model.choices_)} criteria" in model.path_.reason


def test_the_costly_criterion_is_left_out_of_long_paths_unless_asked_for():
    data = make_curve("step", n_samples=100, noise=0.1, random_state=0)
    assert "bayes" not in NestedRegressor(**PAPER).fit(data.X, data.y).choices_
    asked = NestedRegressor(criterion="bayes", random_state=0).fit(data.X, data.y)
    assert asked.n_terms_ == asked.choices_["bayes"]


def test_scores_in_another_unit_have_no_training_error_beside_them():
    for criterion in UNITS:
        model = NestedRegressor(criterion=criterion).fit(X10, y10)
        assert model.path_.train_scores is None


def test_a_transformer_that_knows_no_drawn_inputs_is_named():
    with pytest.raises(ValueError, match=r"drawn from a kernel density.*as X_unlabeled"):
        NestedRegressor(OneHotEncoder()).fit(X10, y10)
    lenient = NestedRegressor(OneHotEncoder(handle_unknown="ignore"), random_state=0)
    lenient.fit(np.tile(X10[:5], (4, 1)), np.arange(20.0), X_unlabeled=X10[:5])
    with pytest.raises(ValueError, match="OneHotEncoder could not transform 5 rows"):
        NestedRegressor(OneHotEncoder(), cv=[([0, 1, 2, 3], [4])]).fit(
            X10[:5], y10[:5], X_unlabeled=X10[:5]
        )


def test_a_transformers_own_names_are_kept():
    model = NestedRegressor(PolynomialFeatures(2, include_bias=False)).fit(X10, y10)
    assert model.term_names_ == ["1", "x0", "x0^2"]


def test_huge_and_tiny_numbers_give_the_same_choice():
    data = make_curve("four_terms", random_state=0)
    sizes = set()
    for scale in (1e-150, 1.0, 1e100):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = NestedRegressor(random_state=0).fit(scale * data.X, scale * data.y)
        sizes.add(model.n_terms_)
    assert len(sizes) == 1
