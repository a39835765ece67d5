"""OneColumnClassifier: shrunk shares, and rules (4) and (5), on one column."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator

from holdtrue import GingerSelector, GingerTreeClassifier
from holdtrue.categories import OneColumnClassifier, kernel


# Its accuracy on two-dimensional blobs is that of one dimension: no single column reaches what
# check_classifiers_train asks of a classifier. All other checks are run.
@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=getattr(check, "func", check).__name__)
        for _, check in estimator_checks_generator(OneColumnClassifier())
        if getattr(check, "func", check).__name__ != "check_classifiers_train"
    ],
)
def test_scikit_learn_checks_pass_but_one(check):
    check(OneColumnClassifier())


COLUMN = ["a", "a", "a", "b", "b", "c"]
Y = np.array([0, 0, 1, 0, 1, 1])


def column(values):
    return pd.DataFrame({"v": values})


def test_both_rules_by_hand():
    # a: 2 of 0 and 1 of 1; b: a tie; c: one row of 1; d: not seen.
    new, labels = column(["a", "b", "c", "d"]), np.array([0, 0, 0, 0])
    majority = OneColumnClassifier("majority").fit(column(COLUMN), Y)
    assert majority.predict(new).tolist() == [0, 0, 1, 0]
    assert majority.expected_error(new, labels) == pytest.approx((0 + 1 / 2 + 1 + 1 / 2) / 4)
    gini = OneColumnClassifier("gini", random_state=0).fit(column(COLUMN), Y)
    assert gini.expected_error(new, labels) == pytest.approx((1 / 3 + 1 / 2 + 1 + 1 / 2) / 4)
    prior = OneColumnClassifier("gini", unseen="prior").fit(column(COLUMN), Y)
    assert prior.expected_error(new[3:], labels[3:]) == pytest.approx(1 / 2)
    assert gini.score_ == pytest.approx(kernel.ginger(np.array([[2, 1], [1, 1], [0, 1]])))


def test_shrunk_shares_by_hand():
    X, y = column(["a"] * 40 + ["b"] * 60), np.array([0] * 10 + [1] * 30 + [0] * 50 + [1] * 10)
    model = OneColumnClassifier().fit(X, y)
    a, pi = model.strength_, 40.5 / 101
    expected = [(30 + a * pi) / (40 + a), (10 + a * pi) / (60 + a), pi]
    new = column(["a", "b", "c"])
    np.testing.assert_allclose(model.predict_proba(new)[:, 1], expected)
    np.testing.assert_allclose(model.predict_proba(new).sum(axis=1), 1)
    assert model.predict(new).tolist() == [1, 0, 0]
    assert model.expected_error(new, [1, 1, 1]) == pytest.approx(2 / 3)
    assert model.score_ == GingerSelector().fit(X, y).scores_[0]
    assert not hasattr(OneColumnClassifier("gini"), "predict_proba")


def test_an_id_predicts_what_all_rows_say():
    ids = column([f"u{i}" for i in range(30)])
    model = OneColumnClassifier().fit(ids, np.arange(30) < 20)
    assert np.isinf(model.strength_)
    assert model.predict(ids).all()


def test_rule_4_draws_with_the_frequencies_of_the_value():
    model = OneColumnClassifier("gini", random_state=0).fit(column(COLUMN), Y)
    drawn = model.predict(column(["a"] * 6000))
    assert np.mean(drawn == 1) == pytest.approx(1 / 3, abs=0.02)
    np.testing.assert_array_equal(drawn, model.predict(column(["a"] * 6000)))


def test_the_column_with_the_least_error_is_taken_unless_one_is_named():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"id": np.arange(200).astype(str), "plan": rng.choice(list("xyz"), 200)})
    y = X["plan"] == "x"
    assert OneColumnClassifier().fit(X, y).column_ == 1
    assert OneColumnClassifier().fit(X, y).score(X, y) == 1
    assert OneColumnClassifier("majority", column="id").fit(X, y).score_ == 0.5
    assert OneColumnClassifier(column=0).fit(X, y).column_ == 0
    with pytest.raises(ValueError, match=r"column must name columns of X.*Did you mean 'plan'"):
        OneColumnClassifier(column="pln").fit(X, y)
    with pytest.raises(ValueError, match=r"from 0 to 1.*Got \[2\]"):
        OneColumnClassifier(column=2).fit(X, y)
    with pytest.raises(ValueError, match="rule must be one of"):
        OneColumnClassifier("bayes").fit(X, y)


def test_numbers_go_to_the_bin_they_fall_in_and_missing_to_its_own():
    days = [datetime.datetime(2020, 1, 1) + datetime.timedelta(days=i) for i in range(40)]
    for values, new in (
        (np.arange(40.0), [-5.0, 3.5, 33.2, 99.0, np.nan]),
        (days, [days[0], days[3], days[33], datetime.datetime(2030, 1, 1), None]),
    ):
        frame = pd.DataFrame({"v": [*values, None, None]})
        y = [0] * 20 + [1] * 20 + [1, 1]
        model = OneColumnClassifier(max_bins=4).fit(frame, y)
        assert model.predict(column(new)).tolist() == [0, 0, 1, 1, 1]
    seen = OneColumnClassifier("majority", max_bins=4).fit(frame[:40], y[:40])
    assert seen.expected_error(column(new[4:]), [1]) == 0.5
    with pytest.raises(ValueError, match=r"column 'v' was timestamp.* at fit. Got "):
        seen.predict(column(["soon"]))


@pytest.mark.parametrize(
    "model", [OneColumnClassifier(max_bins=4), GingerTreeClassifier(max_bins=4)]
)
@pytest.mark.parametrize("make", [pa.timestamp, pa.duration])
def test_times_in_another_unit_go_to_the_bin_they_fall_in(model, make):
    def table(numbers, unit):
        return pa.table({"t": pa.array(numbers).view(make(unit))})

    second, y = np.arange(-200, 200) * 10**8 + 7, np.arange(-200, 200) >= 0
    near = slice(120, 280)
    model.fit(table(second[near] * 10**9, "ns"), y[near])
    # Half of these are beyond what 64 bits of nanoseconds hold.
    np.testing.assert_array_equal(model.predict(table(second * 1000, "ms")), y)
    # The last value of a bin belongs to it, the next moment does not, whatever the units.
    model.fit(table(second, "s"), y)
    last = second[199] * 10**9
    new = table(np.array([last - 1, last, last + 1]), "ns")
    np.testing.assert_array_equal(model.predict(new), [False, False, True])
    model.fit(table(second[near] * 10**9 - 1, "ns"), y[near])
    new = table(np.array([second[199] - 1, second[199]]), "s")
    np.testing.assert_array_equal(model.predict(new), [False, True])


def test_a_date_beyond_nanoseconds_is_a_value_not_seen():
    days = pd.DataFrame({"t": pd.to_datetime(["2020-01-01", "2020-01-02"] * 10).astype("M8[ns]")})
    new = pd.DataFrame({"t": np.array(["2020-01-02", "9999-12-31"], "M8[us]")})
    for model in (OneColumnClassifier, GingerTreeClassifier):
        fitted = model(categorical_features=["t"], unseen="prior").fit(days, [0, 1] * 9 + [0, 0])
        assert fitted.predict(new).tolist() == [1, 0]


def test_new_values_of_other_types_are_compared_or_refused():
    X = pd.DataFrame({"v": np.arange(40.0)})
    model = OneColumnClassifier(max_bins=4).fit(X, np.arange(40) >= 20)
    new = pd.DataFrame({"v": [Decimal("3.5"), None, Decimal(33)]})
    assert model.predict(new).tolist()[::2] == [False, True]
    assert model.predict(pd.DataFrame({"v": [None, None]})).tolist() == [False, False]
    with pytest.raises(ValueError, match=r"column 'v' was double at fit. Got several types"):
        model.predict(pd.DataFrame({"v": [1, "a"]}))


def test_integers_by_value_meet_floats_by_equality():
    X = np.tile(np.arange(10), 20)[:, None]
    model = OneColumnClassifier("majority", categorical_features=[0]).fit(X, X[:, 0] % 2)
    assert model.predict(np.array([[3.0], [4.0]])).tolist() == [1, 0]
    assert model.expected_error(np.array([[3.5]]), [1]) == 0.5
