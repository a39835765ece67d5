"""compare_models: the same left-out domains for every model, by brute force and by hand."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import BaggingRegressor, ExtraTreesRegressor, RandomForestRegressor
from sklearn.feature_selection import RFE, SelectKBest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.metrics import make_scorer, precision_score, recall_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    RepeatedKFold,
    ShuffleSplit,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from holdtrue import DomainAverageRegressor, SteadyRidgeRegressor, TGreedyRegressor, compare_models
from holdtrue.compare.checkpoint import fingerprint
from holdtrue.compare.comparison import Comparison
from holdtrue.compare.contest import rows_in_parts
from holdtrue.compare.field import Rows
from holdtrue.datasets import make_domains


@pytest.fixture(scope="module")
def data():
    return make_domains(n_domains=6, n_samples=40, random_state=0)


MODELS = {"line": LinearRegression(), "mean": DummyRegressor()}


def test_errors_are_those_of_refitting_without_each_domain(data):
    contest = compare_models(MODELS, data.X, data.y, groups=data.groups)
    for train, test in LeaveOneGroupOut().split(data.X, data.y, data.groups):
        model = LinearRegression().fit(data.X[train], data.y[train])
        error = np.mean((model.predict(data.X[test]) - data.y[test]) ** 2)
        domain = contest.units.index(str(data.groups[test][0]))
        assert contest.errors[0, domain] == pytest.approx(error, rel=1e-12)
        mean = np.mean((data.y[test] - data.y[train].mean()) ** 2)
        assert contest.null[domain] == pytest.approx(mean, rel=1e-12)
        assert contest.errors[1, domain] == pytest.approx(mean, rel=1e-12)


def test_without_groups_every_row_is_judged_once(data):
    contest = compare_models(MODELS, data.X, data.y, cv=KFold(4))
    errors = np.empty(len(data.y))
    for train, test in KFold(4).split(data.X):
        model = LinearRegression().fit(data.X[train], data.y[train])
        errors[test] = (model.predict(data.X[test]) - data.y[test]) ** 2
    np.testing.assert_allclose(contest.errors[0], errors, rtol=1e-10)
    assert not contest.is_grouped
    low, high = contest.interval("line")
    assert low < errors.mean() < high


def test_more_than_twenty_domains_are_left_out_in_twenty_parts():
    data = make_domains(n_domains=30, random_state=0)
    seen = []

    class Watch(RegressorMixin, BaseEstimator):
        def fit(self, X, y, *, groups=None):
            seen.append(len(np.unique(groups)))
            return self

        def predict(self, X):
            return np.zeros(len(X))

    contest = compare_models({"watch": Watch()}, data.X, data.y, groups=data.groups)
    assert len(seen) == 20
    assert len(contest.units) == 30
    assert max(seen) == 29


def test_groups_reach_only_models_that_take_them(data):
    short = TGreedyRegressor(stop="max_steps", max_steps=5)
    contest = compare_models(
        {
            "t": short,
            "in a pipeline": make_pipeline(StandardScaler(), short),
            "plain": Ridge(),
        },
        data.X,
        data.y,
        groups=data.groups,
    )
    np.testing.assert_allclose(contest.errors[0], contest.errors[1], rtol=1e-6)


def test_classes_are_judged_by_the_share_wrong(data):
    y = np.where(data.y > 0, "high", "low")
    models = {"logistic": LogisticRegression(), "majority": DummyClassifier()}
    contest = compare_models(models, data.X, y, groups=data.groups)
    assert contest.scoring == "share wrong"
    assert ((contest.errors >= 0) & (contest.errors <= 1)).all()
    for name in models:
        low, high = contest.interval(name)
        assert 0 <= low <= high <= 1


def test_splits_may_be_masks(data):
    n = len(data.y)
    splits = [(np.arange(n) % 3 != k, np.arange(n) % 3 == k) for k in range(3)]
    weight = np.where(np.arange(n) % 7, 1.0, 0.0)
    at = [tuple(map(np.flatnonzero, split)) for split in splits]
    by_mask, by_index = (
        compare_models(MODELS, data.X, data.y, cv=cv, sample_weight=weight) for cv in (splits, at)
    )
    np.testing.assert_array_equal(by_mask.errors, by_index.errors)


def test_a_scorer_judges_each_domain(data):
    y = data.y > 0
    models = {"logistic": LogisticRegression(), "majority": DummyClassifier(strategy="prior")}
    contest = compare_models(models, data.X, y, groups=data.groups, scoring="roc_auc")
    assert contest.errors[1].tolist() == [-0.5] * 6
    assert contest.best == "logistic"


def comparison(errors, n_features=(5, 1), seconds=(1.0, 1.0), units=("a", "b", "c", "d")):
    errors = np.array(errors, dtype=float)
    names = tuple(f"m{i}" for i in range(len(errors)))
    return Comparison(
        names,
        errors,
        np.full(errors.shape[1], 4.0),
        units,
        np.array(n_features, float),
        np.array(seconds, float),
        "mean squared error",
    )


@pytest.mark.parametrize("cv", [RepeatedKFold(n_splits=4, n_repeats=2), ShuffleSplit(6)])
def test_a_scorer_judges_each_part_as_a_whole_where_rows_are_in_several(data, cv):
    cv.random_state = 0
    contest = compare_models(MODELS, data.X, data.y, cv=cv, scoring="r2")
    scores = cross_val_score(LinearRegression(), data.X, data.y, cv=cv, scoring="r2")
    np.testing.assert_allclose(contest.errors[0], -scores, rtol=1e-10)


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored by KFold")
@pytest.mark.parametrize("scoring", [None, "neg_mean_squared_error"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_error_of_a_domain_that_parts_divide_is_that_of_its_rows(data, scoring, weighted):
    rng = np.random.default_rng(0)
    at = rng.permutation(240)[:70]  # 9 to 14 rows of a domain, of which a part judges 1 to 5
    X, y, groups = data.X[at], data.y[at], data.groups[at]
    weight = rng.integers(1, 4, 70) if weighted else None
    cv = KFold(6, shuffle=True, random_state=0)
    given = {"groups": groups, "cv": cv, "scoring": scoring, "sample_weight": weight}
    with pytest.warns(UserWarning, match="compare_models: .* at known domains"):
        errors = compare_models({"line": LinearRegression()}, X, y, **given).errors[0]
    squares = np.empty(70)
    for train, test in cv.split(X):
        line = LinearRegression().fit(X[train], y[train], None if weight is None else weight[train])
        squares[test] = (y[test] - line.predict(X[test])) ** 2
    of_rows = [
        np.average(squares[groups == d], weights=None if weight is None else weight[groups == d])
        for d in range(6)
    ]
    np.testing.assert_allclose(errors, of_rows)


def test_the_simplest_within_one_standard_error_is_recommended():
    # Differences to m0: 1, -1, 1, 1: mean ½, standard error ½ (deviations ½, -3/2, ½, ½; s = 1).
    near = comparison([[1, 2, 1, 1], [2, 1, 2, 2]])
    assert (near.best, near.recommended) == ("m0", "m1")
    assert "simplest model within one standard error" in near.reason
    # A single row that differs is one standard error, 1/n, whatever rounding says.
    for n_rows in range(4, 70):
        better = np.arange(n_rows) < 3
        worse = np.roll(np.arange(n_rows) < 4, n_rows // 2)
        one_more = np.arange(n_rows) < 4
        assert comparison([better, one_more]).recommended == "m1"
        assert comparison([np.roll(better, n_rows // 2), worse]).recommended == "m1"
    # 1, 1, 1, 1: no doubt.
    far = comparison([[1, 2, 1, 1], [2, 3, 2, 2]])
    assert far.recommended == far.best == "m0"
    # Equal features: the quicker one.
    quick = comparison([[1, 2, 1, 1], [2, 1, 2, 2]], n_features=(3, 3), seconds=(2.0, 1.0))
    assert quick.recommended == "m1"


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_the_table_is_best_first_with_skill(backend):
    table = comparison([[2, 3, 2, 2], [1, 2, 1, 1]]).to_frame(backend)
    columns = (
        table.to_dict("list")
        if backend == "pandas"
        else table.to_pydict()
        if (backend == "pyarrow")
        else table.to_dict(as_series=False)
    )
    assert columns["model"] == ["m1", "m0"]
    assert columns["skill"] == [1 - 1.25 / 4, 1 - 2.25 / 4]
    assert columns["difference"] == [0, 1]
    assert "m1" in str(comparison([[2, 3, 2, 2], [1, 2, 1, 1]]))


def test_an_interrupted_contest_goes_on_where_it_stopped(data, tmp_path):
    fits = []

    class Interrupted(RegressorMixin, BaseEstimator):
        def __init__(self, limit=0):
            self.limit = limit

        def fit(self, X, y):
            if Interrupted.left <= 0:
                raise KeyboardInterrupt
            Interrupted.left -= 1
            fits.append(len(y))
            self.mean_ = y.mean()
            return self

        def predict(self, X):
            return np.full(len(X), self.mean_)

    place = tmp_path / "contest.jsonl"
    models, given = {"slow": Interrupted()}, {"groups": data.groups, "checkpoint": place}
    Interrupted.left = 3
    with pytest.raises(KeyboardInterrupt):
        compare_models(models, data.X, data.y, **given)
    place.write_text(place.read_text() + '{"model": "slow", "par')  # and a line was cut off
    Interrupted.left = 10
    contest = compare_models(models, data.X, data.y, **given)
    assert len(fits) == 6
    np.testing.assert_allclose(contest.errors[0], contest.null)
    with pytest.raises(ValueError, match="belongs to another comparison"):
        compare_models(models, data.X, data.y + 1, **given)
    place.write_text(json.dumps({"format": "else"}))
    with pytest.raises(ValueError, match="belongs to another comparison"):
        compare_models(models, data.X, data.y, **given)


@pytest.mark.filterwarnings("ignore:.*known domains")
def test_a_checkpoint_answers_the_same_question_only(data, tmp_path):
    place, y = tmp_path / "contest.jsonl", data.y > 0
    given = {"cv": list(KFold(4).split(y)), "groups": data.groups}
    given["scoring"] = make_scorer(recall_score)
    models = {"logistic": LogisticRegression()}
    compare_models(models, data.X, y, checkpoint=place, **given)
    others = (
        {"groups": data.groups[::-1].copy()},
        {"scoring": make_scorer(precision_score)},
        {"scoring": lambda model, X, y: 0.0},
    )
    for other in others:
        with pytest.raises(ValueError, match="belongs to another comparison"):
            compare_models(models, data.X, y, checkpoint=place, **{**given, **other})
    with pytest.raises(ValueError, match="must be a file"):
        compare_models(models, data.X, y, checkpoint=tmp_path, **given)


@pytest.mark.parametrize("how", ["closure", "default", "scorer", "model"])
def test_a_checkpoint_tells_functions_apart_by_what_they_hold(data, tmp_path, how):
    def asked(q):
        def default(model, X, y, q=q):
            return -np.quantile(abs(y - model.predict(X)), q)

        scoring = {
            "closure": lambda model, X, y: default(model, X, y, q),
            "default": default,
            "scorer": make_scorer(lambda y, predicted: -np.quantile(abs(y - predicted), q)),
        }.get(how)
        first = FunctionTransformer(lambda X: X[:, : int(10 * q)])
        models = {"line": make_pipeline(first if how == "model" else None, LinearRegression())}
        place = tmp_path / "contest.jsonl"
        return compare_models(models, data.X, data.y, cv=3, scoring=scoring, checkpoint=place)

    one = asked(0.2)
    np.testing.assert_array_equal(asked(0.2).errors, one.errors)
    with pytest.raises(ValueError, match="belongs to another comparison"):
        asked(0.8)


def test_a_function_is_the_same_in_another_run():
    source = "def score(model, X, y):\n    return -max(a for a in map(abs, y - model.predict(X)))"
    runs: list[dict] = [{"__name__": "__main__"}, {"__name__": "__main__"}]
    for run in runs:
        exec(source, run)  # code objects, of the generator too, at other places in memory
    one, other = (fingerprint(make_scorer(run["score"])) for run in runs)
    assert one == other
    assert fingerprint(runs[0]["score"]) == fingerprint(runs[1]["score"])
    assert "0x" not in fingerprint(runs[0]["score"])


def test_frames_reach_the_models_as_they_are(data):
    X = pd.DataFrame(data.X).rename(columns=str)

    class NeedsFrame(RegressorMixin, BaseEstimator):
        def fit(self, X, y):
            assert X.columns[0] == "0"
            return self

        def predict(self, X):
            return np.zeros(len(X))

    compare_models({"frame": NeedsFrame()}, X, data.y, groups=data.groups)


def test_names_choose_from_the_default_field(data):
    names = ["mean", "t_greedy", "steady_ridge"]
    contest = compare_models(names, data.X[:, :5], data.y, groups=data.groups)
    assert contest.names == ("mean", "t_greedy", "steady_ridge")
    assert contest.n_features[[0, 2]].tolist() == [0, 5]


class Silent(RegressorMixin, BaseEstimator):
    """Tells nothing of its features."""

    def fit(self, X, y):
        self.mean_ = np.mean(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


@pytest.mark.parametrize(
    "model, n_features",
    [
        (RandomForestRegressor(3), 5),  # its estimator_ is a tree that is not fitted
        (BaggingRegressor(n_estimators=2), 5),
        (GridSearchCV(RandomForestRegressor(2), {"max_depth": [1, 2]}, cv=2), 5),
        (make_pipeline(StandardScaler(), SelectKBest(k=2), ExtraTreesRegressor(2)), 2),
        (RFE(Ridge(), n_features_to_select=3), 3),
        (Silent(), 5),
        (DummyRegressor(), 0),
    ],
)
def test_a_model_counts_as_simple_only_by_features_that_it_leaves_out(data, model, n_features):
    contest = compare_models({"a": model}, data.X[:, :5], data.y, groups=data.groups)
    assert contest.n_features.tolist() == [n_features]


def test_a_reason_that_begins_with_an_empty_line_is_told(data):
    class Fails(Silent):
        def fit(self, X, y):
            raise ValueError("\nthe reason\nand more")

    with pytest.raises(ValueError, match=r"model 'a' cannot be fitted: the reason\. Leave"):
        compare_models({"a": Fails()}, data.X, data.y, groups=data.groups)


@pytest.mark.parametrize(
    "given, message",
    [
        ({"models": {}}, "needs at least one model"),
        ({"models": ["ridgé"]}, r"no model 'ridgé' in the default field.*Did you mean 'ridge'"),
        ({"models": {"a": Ridge}}, "model 'a' must be an estimator"),
        ({"models": {"a": LogisticRegression()}}, "model 'a' must be a regressor"),
        ({"groups": ["one"] * 480}, "needs at least 2 domains"),
        ({"groups": [1, 2]}, "groups must have one value per row"),
        ({"cv": 1}, "cv must be a whole number of at least 2"),
        ({"cv": True}, "cv must be a whole number of at least 2"),
        ({"cv": "tme"}, "cv must be a whole number of at least 2"),
        ({"models": {"a": Ridge(-1)}}, "model 'a' cannot be fitted: .*alpha"),
        ({"cv": 7}, "cv must be at most the number of domains, 6"),
        ({"scoring": "r3"}, "scoring must be one of scikit-learn's scorers"),
        ({"level": 95}, "level must be between 0 and 1"),
        ({"target_type": "number"}, "target_type must be one of"),
        ({"checkpoint": "nowhere/at/all.jsonl"}, "no folder 'nowhere/at'"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(data, given, message):
    n = len(data.y)
    given = {"models": MODELS, "groups": data.groups} | given
    if len(given["groups"]) == 480:
        given["groups"] = ["one"] * n
    models = given.pop("models")
    with pytest.raises((ValueError, TypeError, OSError), match=f"compare_models: .*{message}"):
        compare_models(models, data.X, data.y, **given)


@pytest.mark.parametrize(
    "years", [[9, 10, 11, 12, 100], ["2019-05", "2019-11", "2020-01", "2020-02", "2020-03"]]
)
def test_later_domains_are_predicted_from_earlier_ones(years):
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat(years, 4))
    y = np.array([years.index(year) for year in groups], dtype=float)
    _, parts = rows_in_parts(Rows(None, y, groups), "time", is_classes=False, random_state=None)
    assert [sorted(set(y[test])) for _, test in parts] == [[3], [4]]
    assert all(y[train].max() < y[test].min() for train, test in parts)
    with pytest.warns(UserWarning, match="of 'mean', the errors at two left-out domains"):
        contest = compare_models(["mean"], np.zeros((20, 1)), y, groups=groups, cv="time")
    # The mean of 0, 1, 2 misses 3 by 2, that of 0, 1, 2, 3 misses 4 by 2.5.
    np.testing.assert_allclose(contest.errors, [[4.0, 6.25]])
    assert contest.units == tuple(map(str, years[3:]))


@pytest.mark.parametrize("form", ["%B", "%m/%d/%Y", "%d.%m.%Y", "%d-%b-%Y"])
def test_words_and_dates_without_the_year_first_are_said_to_be_sorted_as_text(data, form):
    days = np.array([f"{pd.Timestamp(2020, 2 * d + 1, 5):{form}}" for d in range(6)])
    for groups, is_said in (
        (days[data.groups], True),
        (np.array(["2020-01", "2020-03", "w 3", "4.5", "2020/5/1", "Q1 2021"])[data.groups], False),
        (data.groups - 3.5, False),
    ):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            compare_models(MODELS, data.X, data.y, groups=groups, cv="time")
        assert [str(one.message).endswith("Pass numbers or dates as groups.") for one in said] == (
            [True] * is_said
        )


@pytest.mark.parametrize("as_type", [pd.Interval, lambda low, high: pd.Timedelta(low, "D")])
def test_groups_that_have_an_order_of_their_own_are_judged_in_it(as_type):
    # As text "(-2, -1]" comes after "(1, 2]", and "-1 days" after "-2 days".
    spans = np.array([as_type(low, low + 1) for low in range(-2, 4)], dtype=object)
    y = np.repeat(np.arange(6.0), 2)
    contest = compare_models(
        ["mean"], np.zeros((12, 1)), y, groups=np.repeat(spans, 2), cv="time", target_type="numeric"
    )
    assert contest.units == tuple(map(str, spans[3:]))
    np.testing.assert_allclose(contest.errors, [[4.0, 6.25, 9.0]])


def test_many_domains_in_time_are_judged_in_twenty_parts():
    groups = np.arange(203)
    _, parts = rows_in_parts(
        Rows(None, groups * 1.0, groups), "time", is_classes=False, random_state=None
    )
    assert len(parts) == 20
    assert [len(test) for _, test in parts] == [10] * 20
    assert [len(train) for train, _ in parts] == list(range(3, 203, 10))


def test_an_order_in_time_needs_domains():
    y = np.arange(8.0)
    with pytest.raises(ValueError, match='cv="time" needs groups: the year'):
        compare_models(["mean"], y[:, None], y, cv="time")
    for n_domains in (2, 4):
        with pytest.raises(ValueError, match=rf'"time" needs at least 5 domains.* Got {n_domains}'):
            compare_models(["mean"], y[:, None], y, groups=y % n_domains, cv="time")


def test_no_row_wrong_is_not_never_wrong():
    """Wilson's interval of 0 wrong of n ends at z² / (n + z²)."""
    errors = np.zeros((1, 50))
    contest = Comparison(("sure",), errors, np.ones(50), (), np.ones(1), np.zeros(1), "share wrong")
    low, high = contest.interval("sure")
    assert low == pytest.approx(0, abs=1e-12)
    assert high == pytest.approx(1.959964**2 / (50 + 1.959964**2))


def of_rows(errors, scoring):
    errors = np.atleast_2d(errors)
    return Comparison(("a",), errors, errors[0], (), np.ones(1), np.zeros(1), scoring)


@pytest.mark.parametrize("n_rows", [20, 60])
def test_few_rows_rarely_promise_too_small_a_squared_error(n_rows):
    rng = np.random.default_rng(0)
    highs = [
        of_rows(rng.chisquare(1, n_rows), "mean squared error").interval("a")[1] for _ in range(600)
    ]
    assert np.mean(np.array(highs) < 1) < 0.065  # .11 with 20 rows if it were symmetric


def test_squared_errors_of_rows_have_an_interval_of_the_logarithm():
    # Mean 2, standard error 1/sqrt(3), Student's quantile 4.3027 on 2 degrees: 2 exp(± 1.2421).
    interval = of_rows([1.0, 2.0, 3.0], "mean squared error").interval("a")
    assert interval == pytest.approx((2 * np.exp(-1.2421), 2 * np.exp(1.2421)), rel=1e-4)
    assert of_rows(np.zeros(5), "mean squared error").interval("a") == (0, 0)


def test_few_parts_judged_by_a_scorer_have_an_interval_of_student():
    # Mean 2, standard error 1/sqrt(3), Student's quantile 4.3027 on 2 degrees: 2 ± 2.4841.
    interval = of_rows([1.0, 2.0, 3.0], "mean absolute error").interval("a")
    assert interval == pytest.approx((2 - 2.4841, 2 + 2.4841), rel=1e-4)


@pytest.mark.parametrize("scoring", [None, "neg_mean_absolute_error"])
def test_weights_are_repetitions(data, scoring):
    weight = np.random.RandomState(0).randint(0, 4, len(data.y))
    repeated = np.repeat(np.arange(len(data.y)), weight)
    models = {**MODELS, "scaled": make_pipeline(StandardScaler(), Ridge(5.0))}
    once = compare_models(
        models, data.X, data.y, groups=data.groups, sample_weight=weight, scoring=scoring
    )
    again = compare_models(
        models, data.X[repeated], data.y[repeated], groups=data.groups[repeated], scoring=scoring
    )
    np.testing.assert_allclose(once.errors, again.errors, rtol=1e-9)
    np.testing.assert_allclose(once.null, again.null, rtol=1e-9)


def test_without_groups_a_weighted_row_counts_as_often(data):
    weight = np.random.RandomState(0).randint(0, 4, len(data.y))
    repeated = np.random.RandomState(1).permutation(np.repeat(np.arange(len(data.y)), weight))
    once = compare_models(MODELS, data.X, data.y, sample_weight=weight)
    again = compare_models(MODELS, data.X[repeated], data.y[repeated])
    np.testing.assert_allclose(once.mean_errors, again.mean_errors)
    np.testing.assert_allclose(once.differences, again.differences, atol=1e-12)
    np.testing.assert_allclose(once.interval("line"), again.interval("line"))
    assert once.no_model == pytest.approx(again.no_model)


def test_a_search_by_domain_gets_the_groups_and_the_weights(data):
    search = GridSearchCV(Ridge(), {"alpha": [1.0, 100.0]}, cv=GroupKFold(3))
    weight = np.ones(len(data.y))
    alone = compare_models({"ridge": search}, data.X, data.y, groups=data.groups)
    weighted = compare_models(
        {"ridge": search}, data.X, data.y, groups=data.groups, sample_weight=weight
    )
    np.testing.assert_allclose(alone.errors, weighted.errors, rtol=1e-9)


def test_metadata_routing_changes_nothing(data):
    nested = make_pipeline(StandardScaler(), make_pipeline(SteadyRidgeRegressor()))
    models = {"pipeline": make_pipeline(StandardScaler(), TGreedyRegressor()), "nested": nested}
    weight = np.random.RandomState(0).randint(0, 3, len(data.y))
    given = {"groups": data.groups, "sample_weight": weight}
    for field in (models, ["ridge", "elastic_net"]):
        one = compare_models(field, data.X, data.y, **given)
        with config_context(enable_metadata_routing=True):
            other = compare_models(field, data.X, data.y, **given)
        np.testing.assert_array_equal(one.errors, other.errors)


def test_workers_hand_on_the_groups_as_the_caller_asks(data):
    with config_context(enable_metadata_routing=True):
        asks = SteadyRidgeRegressor().set_fit_request(groups=True)
        search = GridSearchCV(asks, {"fit_intercept": [True]}, cv=GroupKFold(3))
        models = {"search": search, "alone": SteadyRidgeRegressor()}
        contest = compare_models(models, data.X, data.y, groups=data.groups, n_jobs=2)
    np.testing.assert_array_equal(*contest.errors)


def test_a_scorer_without_weights_is_refused_with_them(data):
    def score(model, X, y):
        return 0.0

    with pytest.raises(ValueError, match="scoring 'score' does not take sample_weight"):
        compare_models(
            MODELS,
            data.X,
            data.y,
            groups=data.groups,
            scoring=score,
            sample_weight=np.ones(len(data.y)),
        )


def test_weeks_in_words_are_in_their_order():
    weeks = np.repeat([f"week {k}" for k in (1, 2, 3, 9, 10, 11)], 5)
    _, parts = rows_in_parts(
        Rows(None, np.arange(30.0), weeks), "time", is_classes=False, random_state=None
    )
    assert [weeks[test[0]] for _, test in parts] == ["week 9", "week 10", "week 11"]


@pytest.mark.parametrize(
    ("models", "message"),
    [
        (Ridge(), "models must be a dict of name to estimator"),
        ([Ridge()], r"Got Ridge\(\) without a name. Pass {'mine': Ridge\(\)}"),
    ],
)
def test_models_without_names_are_refused_in_a_sentence(data, models, message):
    with pytest.raises(TypeError, match=message):
        compare_models(models, data.X, data.y, groups=data.groups)


def test_a_column_of_text_is_named(data):
    frame = pd.DataFrame(data.X[:, :2], columns=["a", "b"]).assign(town="north")
    message = "model 'line' cannot be fitted: .* Not numbers: 'town'. Encode them"
    with pytest.raises(ValueError, match=message):
        compare_models(MODELS, frame, data.y, groups=data.groups)


def test_columns_of_one_name_are_refused_in_a_sentence(data):
    frame = pd.DataFrame(np.asarray(data.X)[:, :2], columns=["dose", "dose"])
    with pytest.raises(ValueError, match=r"cannot be fitted: .*must have different names.*'dose'"):
        compare_models(["t_greedy"], frame, data.y, groups=data.groups)


def test_the_name_of_a_column_is_not_groups(data):
    with pytest.raises(ValueError, match=r"Got the text 'site'. Pass the column itself"):
        compare_models(MODELS, data.X, data.y, groups="site")


def test_a_scorer_that_fails_is_a_sentence(data):
    y = np.digitize(data.y, [-1.0, 1.0])
    models = {"logistic": LogisticRegression()}
    with pytest.raises(ValueError, match=r"scoring 'roc auc' cannot judge .* Choose another"):
        compare_models(models, data.X, y, groups=data.groups, scoring="roc_auc")


def test_domains_of_one_row_are_said(data):
    with pytest.warns(UserWarning, match="every domain has a single row"):
        compare_models(MODELS, data.X[:20], data.y[:20], groups=np.arange(20))


def test_a_class_of_one_domain_alone_is_missed_there():
    X = np.random.default_rng(0).normal(size=(60, 2))
    groups = np.repeat(range(6), 10)
    y = np.where(groups == 2, "only here", "elsewhere")
    contest = compare_models({"logistic": LogisticRegression()}, X, y, groups=groups)
    assert contest.errors[0].tolist() == [0, 0, 1, 0, 0, 0]


@pytest.mark.filterwarnings("ignore:.*left-out domains are equal")
def test_logistic_regression_is_tuned_where_groups_lack_a_class():
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(80, 2)), np.repeat(range(4), 20)
    y = np.where(X[:, 0] > 0, "up", "down")
    y[(groups < 2) & (X[:, 1] > 1)] = "rare"
    contest = compare_models(["majority", "logistic"], X, y, groups=groups)
    assert contest.errors[1].mean() < contest.errors[0].mean() / 2
    X[groups < 2, 0] -= 9  # "up" in two domains: one is left out, one is a part to tune on
    y = np.where(X[:, 0] > 0, "up", "down")
    contest = compare_models(["majority", "logistic"], X, y, groups=groups)
    assert contest.errors[1].mean() < contest.errors[0].mean() / 2


@pytest.mark.parametrize("kind", [TGreedyRegressor, SteadyRidgeRegressor])
def test_our_models_predict_the_same_where_only_the_contest_judges_them(data, kind):
    contest = compare_models({"ours": kind()}, data.X, data.y, groups=data.groups)
    for train, test in LeaveOneGroupOut().split(data.X, data.y, data.groups):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = kind().fit(data.X[train], data.y[train], groups=data.groups[train])
        error = np.mean((model.predict(data.X[test]) - data.y[test]) ** 2)
        domain = contest.units.index(str(data.groups[test][0]))
        assert contest.errors[0, domain] == pytest.approx(error, rel=1e-9)


def test_a_model_that_copies_its_parameters_takes_part(data):
    class CopiesItsColumns(Ridge):  # as CatBoost its cat_features
        def __init__(self, columns=()):
            super().__init__()
            self.columns = list(columns)

    models = {"copies": CopiesItsColumns([1]), "ridge": Ridge()}
    contest = compare_models(models, data.X, data.y, groups=data.groups)
    assert contest.errors[0].tolist() == contest.errors[1].tolist()


def test_a_subclass_of_our_models_is_fitted_by_its_own_fit(data):
    class Mine(SteadyRidgeRegressor):
        def fit(self, X, y, *, groups=None):
            super().fit(X, y, groups=groups)
            self.intercept_ = 1e3
            return self

    contest = compare_models({"mine": Mine()}, data.X, data.y, groups=data.groups)
    assert contest.errors.min() > 1e5


@pytest.mark.filterwarnings("ignore:.*is not below that of predicting")
@pytest.mark.parametrize(
    "judge",
    [
        lambda *rows, groups: compare_models(["mean"], *rows, groups=groups),
        lambda *rows, groups: DomainAverageRegressor(["mean"]).fit(*rows, groups=groups),
    ],
)
def test_errors_of_0_at_some_domains_make_an_interval_that_tells_nothing(judge):
    groups = np.repeat(np.arange(6), 10)
    y = np.where(groups == 0, np.linspace(-1, 1, 60) - np.linspace(-1, 1, 60)[:10].mean(), 0.0)
    with pytest.warns(UserWarning, match="is 0 but for rounding, so that the interval for one"):
        judge(np.eye(60)[:, :3], y, groups=groups)


@pytest.mark.parametrize("scoring", [None, "balanced_accuracy"])
def test_equal_scores_at_all_domains_make_an_interval_that_tells_nothing(scoring):
    X = np.tile([0.0, 1.0], 10)[:, None]
    said = "of 'tree', the errors at the 5 left-out domains are equal, so that"
    with pytest.warns(UserWarning, match=said):
        contest = compare_models(
            {"tree": DecisionTreeClassifier()},
            X,
            X[:, 0] > 0,
            groups=np.repeat(range(5), 4),
            scoring=scoring,
        )
    assert len(set(contest.interval("tree"))) == 1
