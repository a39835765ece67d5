"""GingerSelector: what it keeps, from rows or from counts, and what it refuses."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from holdtrue import (
    Counts,
    GingerEncoder,
    GingerForestClassifier,
    GingerForestRegressor,
    GingerSelector,
    GingerTreeClassifier,
    GingerTreeRegressor,
)
from holdtrue.categories import OneColumnClassifier, kernel, shrunk


def make_people(n=600, seed=0):
    """Mixed columns: plan and age predict, the others do not."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n)
    plan = rng.choice(["free", "basic", "pro"], n)
    chance = 0.15 + 0.3 * (age > 50) + 0.4 * (plan == "free")
    X = pd.DataFrame(
        {
            "id": [f"u{i:05d}" for i in rng.permutation(n)],
            "age": age,
            "plan": plan,
            "colour": pd.Categorical(rng.choice(["r", "g", "b"], n)),
            "height": rng.normal(170, 9, n),
            "member": rng.random(n) < 0.5,
            "empty": np.full(n, np.nan),
        }
    )
    return X, np.where(rng.random(n) < chance, "left", "stayed")


@pytest.fixture(scope="module")
def people():
    return make_people()


def test_columns_that_predict_are_kept_and_the_id_is_not(people):
    selector = GingerSelector().fit(*people)
    assert list(selector.get_feature_names_out()) == ["age", "plan"]
    # An id says nothing: all weight is on the shares of all rows.
    assert selector.scores_[0] == selector.no_column_scores_[0]
    assert selector.coverage_[0] == 0
    assert set(selector.path_.names[:2]) == {"age", "plan"}
    assert selector.path_.reason == "2 of 7 columns beat no column by more than 1 standard error"
    paper = GingerSelector("ginger").fit(*people)
    assert list(paper.get_feature_names_out()) == ["age", "plan"]
    assert paper.scores_[0] == 0.5
    assert paper.ranking_[0] == 7
    # An empty column is a constant one.
    assert selector.scores_[-1] == pytest.approx(selector.no_column_scores_[-1])


def test_other_criteria_rank_the_id_first(people):
    for criterion in ("gini", "misclassification", "information_gain"):
        selector = GingerSelector(criterion, n_features_to_select=1).fit(*people)
        assert list(selector.get_feature_names_out()) == ["id"]
    majority = GingerSelector("majority", n_features_to_select=2).fit(*people)
    assert set(majority.get_feature_names_out()) == {"age", "plan"}
    ratio = GingerSelector("gain_ratio").fit(*people)
    assert ratio.path_.unit == "1 - gain ratio"


def test_scores_are_the_kernels(people):
    X, y = people
    counts = pd.crosstab(X["plan"], y).to_numpy()
    for criterion in ("ginger", "majority"):
        selector = GingerSelector(criterion).fit(X, y)
        value = kernel.criterion_value(criterion, counts)
        assert selector.scores_[2] == pytest.approx(value)
        assert selector.no_column_scores_[2] == pytest.approx(kernel.no_column(criterion, counts))
        expected = shrunk.estimate_rule(criterion, counts).interval()
        np.testing.assert_allclose(selector.intervals_[2], expected)
    for criterion in shrunk.LOSSES:
        selector = GingerSelector(criterion).fit(X, y)
        expected = shrunk.estimate(criterion, counts)
        assert selector.scores_[2] == pytest.approx(expected.score)
        assert selector.no_column_scores_[2] == pytest.approx(expected.no_column)
        assert selector.share_wrong_[2] == pytest.approx(expected.share_wrong)
        np.testing.assert_allclose(selector.intervals_[2], expected.interval())
        np.testing.assert_allclose(selector.gain_intervals_[2], expected.gain_interval())


def test_counts_in_seven_parts_give_the_fit_on_the_rows(people):
    X, y = people
    rows = GingerSelector().fit(X, y)
    table = X.assign(y=y)
    parts = [Counts.from_frame(table.iloc[i::7], "y") for i in range(7)]
    sums = GingerSelector().fit_statistics(sum(parts))
    assert sums.path_ == rows.path_
    np.testing.assert_array_equal(sums.scores_, rows.scores_)
    np.testing.assert_allclose(sums.intervals_, rows.intervals_, rtol=1e-12)
    np.testing.assert_array_equal(sums.transform(X), rows.transform(X))


def test_counts_of_arrays_and_frames_know_their_columns(people):
    X, y = people
    selector = GingerSelector().fit_statistics(Counts.from_arrays(X, y))
    assert list(selector.feature_names_in_) == list(X)
    rows = X[["age", "height"]].to_numpy()
    selector.fit_statistics(Counts.from_arrays(rows, y))
    assert not hasattr(selector, "feature_names_in_")
    assert selector.transform(rows).shape == (len(X), 1)


def test_a_numeric_target_is_seen_by_its_fractions(people):
    X, _ = people
    rng = np.random.default_rng(0)
    price = 100 + 20 * (X["plan"] == "pro") + rng.normal(size=len(X))
    selector = GingerSelector().fit(X, price)
    assert list(selector.get_feature_names_out()) == ["plan"]
    assert selector.path_.unit == "squared error on new rows"
    assert selector.scores_[2] == pytest.approx(1, abs=0.2)
    assert selector.scores_[0] == pytest.approx(selector.no_column_scores_[0])
    parts = [
        Counts.from_frame(X.assign(y=price).iloc[i::7], "y", numeric_target=True) for i in range(7)
    ]
    sums = GingerSelector().fit_statistics(sum(parts))
    np.testing.assert_allclose(sums.scores_, selector.scores_, rtol=1e-12)


def test_the_numeric_rule_can_be_forced(people):
    X, y = people
    left = (y == "left").astype(int)
    numeric = GingerSelector(target_type="numeric").fit(X, left)
    assert numeric.path_.unit == "squared error on new rows"
    classes = GingerSelector(target_type="classes").fit(X, left + 0.5)
    np.testing.assert_allclose(classes.scores_, GingerSelector().fit(X, y).scores_)


@pytest.mark.parametrize("numeric", [False, True])
@pytest.mark.parametrize("mode", ["each", "forward"])
def test_weights_are_repetitions(people, mode, numeric):
    X, y = people
    X = X.iloc[:150]
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    if numeric:
        y = X["age"] / 10 + np.random.default_rng(1).normal(size=len(X))
    y = np.asarray(y)[: len(X)]
    weighted = GingerSelector(mode=mode).fit(X, y, sample_weight=weight)
    repeated = GingerSelector(mode=mode).fit(X.loc[X.index.repeat(weight)], y.repeat(weight))
    np.testing.assert_allclose(weighted.scores_, repeated.scores_)
    np.testing.assert_allclose(weighted.gain_intervals_, repeated.gain_intervals_, atol=1e-12)
    np.testing.assert_array_equal(weighted.path_.order, repeated.path_.order)


def test_names_and_order_of_values_rows_and_columns_do_not_matter(people):
    X, y = people
    expected = GingerSelector().fit(X, y).scores_
    renamed = X.assign(
        id=X["id"].str[::-1], plan=X["plan"].map({"free": "z", "basic": "a", "pro": ""})
    )
    np.testing.assert_allclose(GingerSelector().fit(renamed, y).scores_, expected)
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_allclose(GingerSelector().fit(X.iloc[order], y[order]).scores_, expected)
    turned = GingerSelector().fit(X[X.columns[::-1]], y)
    np.testing.assert_allclose(turned.scores_[::-1], expected)
    labels = np.where(y == "left", 0, 1)
    np.testing.assert_allclose(GingerSelector().fit(X, labels).scores_, expected)


def test_forward_leaves_out_what_is_known_already():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 3, 500), rng.integers(0, 3, 500)
    X = pd.DataFrame({"a": a, "copy": a, "b": b, "noise": rng.integers(0, 5, 500)}).astype(str)
    y = (a + b > 2).astype(int)
    each = GingerSelector().fit(X, y)
    assert list(each.get_feature_names_out()) == ["a", "copy", "b"]
    forward = GingerSelector(mode="forward").fit(X, y)
    assert list(forward.get_feature_names_out()) == ["a", "b"]
    assert forward.path_.scores[2] < 0.01
    assert GingerSelector("ginger", mode="forward").fit(X, y).path_.scores[2] == 0
    assert "after 2 of 4 columns no further one clearly lowers" in forward.path_.reason
    np.testing.assert_array_equal(forward.scores_, each.scores_)
    three = GingerSelector(mode="forward", n_features_to_select=3).fit(X, y)
    assert three.support_.sum() == 3


@pytest.mark.parametrize("target", ["classes", "numbers"])
def test_forward_takes_no_noise_that_is_the_best_of_many(target):
    taken = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n_values = [2, 3, 4, 6, 8, 12, 20, 40, 80, 160]
        noise = {f"n{k}": rng.integers(0, k, 1000).astype(str) for k in n_values}
        good = rng.integers(0, 4, 1000)
        shift = rng.normal(size=1000) + (good == 2)
        X = pd.DataFrame({**noise, "good": good.astype(str)})
        y = shift > 0.5 if target == "classes" else shift
        taken += GingerSelector(mode="forward").fit(X, y).get_feature_names_out().tolist()
    assert taken.count("good") == 20
    # Of 20 tries, the largest of 10 normal numbers is above sqrt(2 ln 10) about 3 times.
    assert len(taken) <= 20 + 6


def test_forward_takes_no_noise_on_many_rows():
    rng = np.random.default_rng(0)
    good = rng.integers(0, 6, (100_000, 2))
    X = np.column_stack([rng.integers(0, k, 100_000) for k in (2, 5, 20, 100, 1000)])
    X = np.column_stack([X, good])
    y = rng.random(100_000) < 0.3 + 0.2 * (good[:, 0] > 3) + 0.02 * good[:, 1]
    selector = GingerSelector(mode="forward", categorical_features=list(range(7))).fit(X, y)
    assert np.flatnonzero(selector.support_).tolist() == [5, 6]


def test_forward_scores_joint_columns():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(300, 3)).astype(object)
    y = ((X[:, 0] + X[:, 2]) % 3 + (rng.random(300) < 0.2) > 1).astype(int)
    path = GingerSelector("ginger", mode="forward", n_features_to_select=3).fit(X, y).path_
    for size in (1, 2, 3):
        chosen = X[:, path.order[:size]]
        joint = ["/".join(map(str, row)) for row in chosen]
        table = pd.crosstab(np.array(joint), y).to_numpy()
        assert path.scores[size] <= kernel.ginger(table) + 1e-12


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_frames_keep_their_kind_and_types(people, kind):
    X, y = people
    X = X.drop(columns="empty")
    table = {"pandas": lambda f: f, "polars": pl.from_pandas, "arrow": pa.Table.from_pandas}[kind](
        X
    )
    selector = GingerSelector().fit(table, y)
    made = selector.transform(table)
    assert type(made) is type(table)
    assert list(made.to_pandas() if kind != "pandas" else made) == ["age", "plan"]
    if kind == "pandas":
        pd.testing.assert_frame_equal(made, X[["age", "plan"]])
    as_polars = selector.set_output(transform="polars").transform(table)
    assert as_polars.schema == {"age": pl.Int64, "plan": pl.String}
    as_pandas = selector.set_output(transform="pandas").transform(table)
    assert as_pandas.dtypes.astype(str).tolist() == X[["age", "plan"]].dtypes.astype(str).tolist()


def test_nothing_kept_is_no_columns():
    X = np.arange(40.0).reshape(20, 2)
    y = np.tile([0, 1], 10)
    with pytest.warns(UserWarning, match="GingerSelector: keeps nothing, because 0 of 2 columns"):
        selector = GingerSelector().fit(X, y)
    assert selector.transform(X).shape == (20, 0)
    assert selector.path_.chosen_size == 0
    for mode in ("each", "forward"):
        kept = GingerSelector(min_features=1, mode=mode).fit(X, y)
        assert kept.transform(X).shape == (20, 1)
        assert kept.ranking_[kept.support_] == [1]
        assert "min_features=1 keeps " in kept.path_.reason


@pytest.mark.filterwarnings("ignore:GingerSelector. keeps nothing")
@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_rows_stay_where_no_column_does(kind):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=50), "b": rng.normal(size=50)}, index=range(7, 57))
    y = rng.integers(0, 2, 50)
    table = {
        "pandas": lambda f: f,
        "polars": pl.from_pandas,
        "arrow": lambda f: pa.Table.from_pandas(f, preserve_index=False),
    }[kind](X)
    selector = GingerSelector().fit(table, y)
    assert selector.path_.chosen_size == 0
    made = selector.transform(table)
    assert made.shape == (50, 0)
    assert isinstance(made, pd.DataFrame if kind == "pandas" else np.ndarray)
    if kind == "pandas":
        pd.testing.assert_index_equal(made.index, X.index)
    for wanted in ("pandas", "polars"):
        made = selector.set_output(transform=wanted).transform(table)
        assert type(made) is {"pandas": pd.DataFrame, "polars": pl.DataFrame}[wanted]
    assert selector.set_output(transform="pandas").transform(table).shape == (50, 0)
    both = FeatureUnion(
        [("none", GingerSelector()), ("one", GingerSelector(n_features_to_select=1))]
    )
    assert both.fit_transform(table, y).shape == (50, 1)


def test_lists_of_rows_keep_numbers_apart_from_text():
    rows = [[1, "a"], [2, "b"], [3, "a"], [4, "b"]] * 5
    selector = GingerSelector().fit(rows, [0, 1, 0, 1] * 5)
    np.testing.assert_array_equal(selector.n_bins_, [0, 0])
    assert Counts.from_arrays(np.array(rows, dtype=object), [0, 1] * 10).kinds[0] == "integer"


def test_categorical_features_are_taken_by_value(people):
    X, y = people
    assert GingerSelector().fit(X, y).n_bins_[4] > 0
    by_value = GingerSelector(categorical_features=["height"]).fit(X, y)
    assert by_value.n_bins_[4] == 0
    assert by_value.scores_[4] == by_value.no_column_scores_[4]


def test_unseen_values_may_follow_the_prior(people):
    X, y = people
    prior = GingerSelector("ginger", unseen="prior").fit(X, y)
    assert prior.scores_[0] == pytest.approx(prior.no_column_scores_[0])


def test_missing_rows_may_be_ignored(people):
    X, y = people
    X = X.assign(plan=X["plan"].where(np.arange(len(X)) % 5 > 0))
    kept = np.arange(len(X)) % 5 > 0
    ignored = GingerSelector(missing="ignore").fit(X, y)
    alone = GingerSelector().fit(X[kept], y[kept])
    assert ignored.scores_[2] == pytest.approx(alone.scores_[2])


def test_it_works_in_pipelines_and_searches(people):
    X, y = people
    encode = ColumnTransformer(
        [("text", OneHotEncoder(), lambda frame: frame.select_dtypes(exclude="number").columns)],
        remainder="passthrough",
    )
    model = make_pipeline(GingerSelector(), encode, DecisionTreeClassifier(max_depth=3))
    search = GridSearchCV(model, {"gingerselector__n_features_to_select": [1, 2]}, cv=3)
    search.fit(X.drop(columns="empty"), y)
    assert search.best_score_ > 0.6


def test_an_interrupted_fit_says_so(people, monkeypatch):
    def interrupt(*_args, **_kwargs):
        raise KeyboardInterrupt

    selector = GingerSelector().fit(*people)
    monkeypatch.setattr("holdtrue.categories.estimator.score_column", interrupt)
    with pytest.raises(KeyboardInterrupt):
        selector.fit(*people)
    assert selector.path_.reason == "interrupted"
    with pytest.raises(NotFittedError):
        selector.get_support()


@pytest.mark.parametrize(
    "model",
    [
        GingerSelector(),
        GingerTreeClassifier(),
        GingerForestClassifier(3, random_state=0),
        OneColumnClassifier(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_fit_that_fails_leaves_the_one_before_whole(people, model):
    X, y = people
    use = model.transform if isinstance(model, GingerSelector) else model.predict
    model.fit(X, y)
    before = use(X)
    model.set_params(max_bins=0)
    with pytest.raises(ValueError, match="max_bins"):
        model.fit(X[["age"]], y)
    np.testing.assert_array_equal(use(X), before)
    model.set_params(max_bins=64)
    with pytest.raises(ValueError, match="2 classes"):
        model.fit(X[["age"]], np.zeros(len(X)))
    np.testing.assert_array_equal(use(X), before)
    model.fit(X, y)
    np.testing.assert_array_equal(use(X), before)


def test_counts_that_fail_leave_the_fit_before_whole(people):
    X, y = people
    selector = GingerSelector().fit(X, y)
    before = selector.transform(X)
    with pytest.raises(ValueError, match="2 classes"):
        selector.fit_statistics(Counts.from_arrays(X[["age"]], np.zeros(len(X))))
    np.testing.assert_array_equal(selector.transform(X), before)


def refusal(error, match, X=None, y=None, weight=None, **parameters):
    X = pd.DataFrame({"a": ["u", "v", "u", "v"]}) if X is None else X
    y = [0, 1, 0, 1] if y is None else y
    with pytest.raises(error, match=match):
        GingerSelector(**parameters).fit(X, y, sample_weight=weight)


def test_bad_input_is_refused_in_words():
    refusal(ValueError, r"at least 2 classes in y. Got 1 class, 'x' in every row", y=["x"] * 4)
    refusal(ValueError, "needs at least 2 rows. Got 1 sample", X=pd.DataFrame({"a": [1]}), y=[0])
    refusal(TypeError, "column 'a' holds.*list", X=pd.DataFrame({"a": [[1], [2], [3], [4]]}))
    refusal(ValueError, "y contains NaN", y=[0.5, 1.0, np.nan, 2.0])
    refusal(ValueError, "target must not be missing", y=np.array(["a", None, "b", "a"], object))
    refusal(ValueError, r"0 sample\(s\)", X=pd.DataFrame({"a": []}), y=[])
    refusal(ValueError, "one value per row", y=[0, 1, 0])
    refusal(ValueError, r"whole numbers.*Got 0\.5", weight=[0.5, 1, 1, 1])


def test_bad_parameters_are_refused_in_words():
    refusal(ValueError, "criterion must be one of.*Did you mean 'ginger'", criterion="gingr")
    refusal(ValueError, "mode must be one of 'each', 'forward'", mode="backward")
    refusal(ValueError, "target_type must be one of", target_type="binary")
    refusal(ValueError, "missing must be one of", missing="drop")
    refusal(ValueError, "unseen must be one of", unseen="error")
    refusal(ValueError, "max_bins must be a whole number of at least 2. Got 1", max_bins=1)
    refusal(ValueError, "min_gain_se must be a number from 0 on. Got -1", min_gain_se=-1)
    refusal(ValueError, "min_skill must be at least 0 and below 1, which is", min_skill=1)
    refusal(ValueError, "min_features must be a whole number of at least 0", min_features=0.5)
    refusal(ValueError, "alpha must be between 0 and 1. Got 5", alpha=5)
    refusal(ValueError, "n_features_to_select must be a whole", n_features_to_select=0)
    refusal(ValueError, r"n_features_to_select=3 with 1 columns", n_features_to_select=3)
    refusal(ValueError, "'gini' needs classes", criterion="gini", y=[0.5, 1, 2, 3])
    refusal(ValueError, "missing='category'", mode="forward", missing="ignore")


def test_statistics_that_do_not_do_are_refused(people):
    X, y = people
    with pytest.raises(TypeError, match=r"expected Counts, or .* Got DataFrame"):
        GingerSelector().fit_statistics(X)
    with pytest.raises(ValueError, match="mode='forward' needs the rows"):
        GingerSelector(mode="forward").fit_statistics(Counts.from_arrays(X, y))


@pytest.mark.filterwarnings("ignore:GingerSelector. keeps nothing")
def test_statistics_of_another_target_are_refused(people):
    X, y = people
    frame = X[["age", "plan", "height"]][:90]
    labels, numbers = Counts.from_arrays(X, y), Counts.from_frame(frame, "height")
    sums = Counts.from_frame(frame, "height", numeric_target=True)
    with pytest.raises(ValueError, match=r"counts of 90 classes, such as .*numeric_target=True"):
        GingerSelector().fit_statistics(numbers)
    with pytest.raises(ValueError, match=r"Got counts of 2 classes. .*numeric_target=True"):
        GingerSelector(target_type="numeric").fit_statistics(labels)
    with pytest.raises(ValueError, match=r"Got sums of a numeric target. .*numeric_target=False"):
        GingerSelector(target_type="classes").fit_statistics(sums)
    assert GingerSelector(target_type="classes").fit_statistics(numbers).scores_.min() > 0.9
    both = [GingerSelector(target_type=kind).fit_statistics(sums) for kind in ("auto", "numeric")]
    np.testing.assert_array_equal(both[0].scores_, both[1].scores_)


def test_names_that_come_twice_are_refused(people):
    X, y = people
    twice = X.rename(columns={"age": "plan"})
    for model in (GingerSelector(), GingerTreeClassifier(), OneColumnClassifier()):
        with pytest.raises(
            ValueError, match=rf"{type(model).__name__}: column names .* Got 'plan'"
        ):
            model.fit(twice, y)


def test_a_column_not_seen_in_the_fit_is_refused(people):
    X, y = people
    selector = GingerSelector().fit(X, y)
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- Plan"):
        selector.transform(X.rename(columns={"plan": "Plan"}))
    with pytest.raises(ValueError, match="6 features, but GingerSelector is expecting 7"):
        GingerSelector().fit(X.to_numpy(), y).transform(X.to_numpy()[:, 1:])


EVERY = [
    GingerSelector(),
    GingerEncoder(),
    GingerTreeClassifier(),
    GingerTreeRegressor(),
    GingerForestClassifier(2),
    GingerForestRegressor(2),
]


@pytest.mark.parametrize("estimator", EVERY, ids=lambda estimator: type(estimator).__name__)
def test_a_target_that_does_not_fit_is_refused_in_one_sentence(estimator):
    X, y = np.arange(40.0)[:, None], np.arange(40) % 2
    who = type(estimator).__name__
    with pytest.raises(ValueError, match=f"^{who}: y must have one value per row of X, 40. Got 39"):
        clone(estimator).fit(X, y[:-1])
    with pytest.raises(ValueError, match=f"^{who}: y must hold one finite value per row"):
        clone(estimator).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match=f"^{who}: y must hold .* Input y contains NaN"):
        clone(estimator).fit(X, np.where(y > 0, np.nan, 1.0))


@pytest.mark.parametrize("estimator", EVERY, ids=lambda estimator: type(estimator).__name__)
def test_the_names_of_a_polars_frame_are_kept(estimator):
    X = pl.DataFrame({"a": np.arange(40.0), "b": ["x", "y"] * 20})
    fitted = clone(estimator).fit(X, np.arange(40) % 2)
    assert fitted.feature_names_in_.tolist() == ["a", "b"]
    use = fitted.transform if hasattr(fitted, "transform") else fitted.predict
    with pytest.raises(ValueError, match="Their order does"):
        use(X[["b", "a"]])
