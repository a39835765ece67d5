"""GingerEncoder against its definition: fit on the other folds, transform this one."""

import math
import pickle
import warnings
from datetime import date, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from holdtrue import GingerEncoder, GingerSelector, GingerTreeClassifier, GingerTreeRegressor
from holdtrue.categories.encoding import deal_folds
from holdtrue.categories.shrunk import STRENGTHS, prior
from holdtrue.columns.counting import Target


def customers(n=300, seed=0):
    """Columns of every kind, of which some predict; a class, three classes and a number."""
    rng = np.random.default_rng(seed)
    colour = rng.choice(["red", "blue", "green"], n)
    spend = rng.gamma(2.0, 20.0, n)
    town = rng.integers(0, 40, n)
    level = (colour == "red") + 0.02 * spend + rng.normal(0, 0.5, n)
    X = pd.DataFrame(
        {
            "id": [f"u{i}" for i in range(n)],
            "colour": pd.Series(colour).where(rng.random(n) > 0.1),
            "spend": np.where(rng.random(n) < 0.1, np.nan, spend),
            "town": town,
            "since": [date(2020, 1, 1) + timedelta(days=int(d)) for d in 10 * level],
            "paid": rng.random(n) < 0.3,
        }
    )
    targets = {
        "two": np.where(level > np.median(level), "yes", "no"),
        "three": np.array(["low", "mid", "top"])[np.searchsorted([1.2, 2.0], level)],
        "number": level,
    }
    return X, targets


def row_folds(encoder, X, y, groups=None, weight=None):
    """The folds that `fit_transform` deals."""
    target = Target.from_column(y, y.dtype.kind == "f", weight)
    codes = None if groups is None else np.unique(groups, return_inverse=True)[1]
    rng = np.random.RandomState(encoder.random_state)
    return deal_folds(encoder.cv, target, codes, rng).fold


# --- the definition ------------------------------------------------------------------------------


def by_definition(encoder, X, y, fold, groups=None):
    """Every fold transformed by an encoder fitted on the other folds; useless columns constant."""
    whole = clone(encoder).fit(X, y, groups=groups)
    expected = whole.transform(X)
    n_outputs = expected.shape[1] // (X.shape[1] + len(whole.pairs_))
    says_something = [*np.isfinite(whole.strengths_), *(True for _ in whole.pairs_)]
    changes = np.repeat(says_something, n_outputs)
    for f in np.unique(fold):
        others, held_out = np.flatnonzero(fold != f), np.flatnonzero(fold == f)
        part = clone(encoder).fit(
            X.iloc[others], y[others], groups=None if groups is None else groups[others]
        )
        rows = part.transform(X.iloc[held_out])
        expected[np.ix_(held_out, changes)] = rows[:, changes]
    return expected


@pytest.mark.parametrize("target", ["two", "three", "number"])
@pytest.mark.parametrize("criterion", ["log_loss", "brier"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("average", [False, True])
def test_fit_transform_is_a_fit_on_the_other_folds(target, criterion, grouped, average):
    X, targets = customers()
    y = targets[target]
    groups = np.arange(len(y)) % 23 if grouped else None
    encoder = GingerEncoder(criterion, average=average, random_state=3, cv=4)
    given_ = clone(encoder).fit_transform(X, y, groups=groups)
    fold = row_folds(encoder, X, y, groups)
    expected = by_definition(encoder, X, y, fold, groups)
    np.testing.assert_allclose(given_, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("target", ["two", "three", "number"])
@pytest.mark.parametrize("average", [False, True])
def test_fit_transform_of_a_pair_is_a_fit_on_the_other_folds(target, average):
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"a": rng.choice(list("xyz"), 400), "b": rng.normal(size=400)})
    sign = (X["a"] == "x") ^ (X["b"] > 0.3)
    y = {
        "two": np.where(sign, "yes", "no"),
        "three": np.where(sign, np.where(X["a"] == "y", "r", "s"), "t"),
        "number": sign + rng.normal(0, 0.2, 400),
    }[target]
    encoder = GingerEncoder(average=average, random_state=0, cv=3, pairs=1)
    encoded = encoder.fit_transform(X, y)
    assert encoder.pairs_ == [(0, 1)]
    again = pickle.loads(pickle.dumps(encoder))
    np.testing.assert_array_equal(again.transform(X), encoder.transform(X))
    expected = by_definition(encoder, X, y, row_folds(encoder, X, y))
    np.testing.assert_allclose(encoded, expected, rtol=1e-9, atol=1e-12)


def test_transform_shrinks_the_share_of_a_value_by_hand():
    # 3 red of 4 are 1, 1 blue of 6 is: c = (1, 3) and (5, 1), N = (6, 4),
    # π = (6.5, 4.5)/11; q_1 = (c_1 + a π_1)/(n + a), and π_1 for a value not seen.
    X = pd.DataFrame({"colour": ["red"] * 40 + ["blue"] * 60})
    y = np.array([0] * 10 + [1] * 30 + [0] * 50 + [1] * 10)
    encoder = GingerEncoder(output="probability").fit(X, y)
    a = encoder.strengths_[0]
    new = pd.DataFrame({"colour": ["red", "blue", "green", None]})
    pi = 40.5 / 101
    expected = [(30 + a * pi) / (40 + a), (10 + a * pi) / (60 + a), pi, pi]
    np.testing.assert_allclose(encoder.transform(new)[:, 0], expected)
    odds = GingerEncoder().fit(X, y).transform(new)[:, 0]
    np.testing.assert_allclose(odds, np.log(np.array(expected) / (1 - np.array(expected))))


def test_the_mean_of_a_number_is_shrunk_by_hand():
    X = pd.DataFrame({"colour": ["red"] * 40 + ["blue"] * 60})
    y = np.append(np.full(40, 5.0), np.full(60, 1.0)) + np.tile([-0.5, 0.5], 50)
    encoder = GingerEncoder().fit(X, y)
    a, mean = encoder.strengths_[0], y.mean()
    expected = [(200 + a * mean) / (40 + a), (60 + a * mean) / (60 + a), mean]
    new = pd.DataFrame({"colour": ["red", "blue", "green"]})
    np.testing.assert_allclose(encoder.transform(new)[:, 0], expected)


@pytest.mark.parametrize("target", ["two", "number"])
def test_an_average_is_over_strengths_and_bins_by_the_likelihood_of_rows_left_out(target):
    rng = np.random.default_rng(0)
    spend = rng.permutation(64).astype(float)
    y = (spend > 20) ^ (rng.random(64) < 0.3) if target == "two" else spend + rng.normal(0, 9, 64)
    encoder = GingerEncoder(output="auto", max_bins=4, average=True)
    given_ = encoder.fit(spend[:, None], y).transform(np.arange(64.0)[:, None])[:, 0]
    total, weights = np.zeros(64), 0.0
    for n_bins in (2, 4):
        cell = np.arange(64) * n_bins // 64  # bins of as many rows each, edges are data values
        of_row = cell[spend.astype(int)]
        for a in STRENGTHS:
            losses, numbers = np.zeros(64), np.zeros(64)
            for i in range(-1, 64):  # -1: no row is left out
                used = np.arange(64) != i
                count = np.bincount(of_row[used], minlength=n_bins)
                mean = (y[used].sum() + (0.5 if target == "two" else 0)) / (
                    used.sum() + (1 if target == "two" else 0)
                )
                sums = np.bincount(of_row[used], y[used], minlength=n_bins)
                q = (sums + a * mean) / (count + a) if np.isfinite(a) else np.full(n_bins, mean)
                if i < 0:  # linear between the middles of the bins, flat beyond
                    middle = (np.arange(n_bins) + 0.5) * 64 / n_bins
                    numbers = np.log(q / (1 - q)) if target == "two" else q
                    numbers = np.interp(np.arange(64) + 0.5, middle, numbers)
                elif target == "two":
                    losses[i] = -math.log(q[of_row[i]] if y[i] else 1 - q[of_row[i]])
                else:
                    losses[i] = (y[i] - q[of_row[i]]) ** 2
            log_likelihood = -losses.sum() if target == "two" else -32 * math.log(losses.mean())
            total += math.exp(log_likelihood) * numbers
            weights += math.exp(log_likelihood)
    np.testing.assert_allclose(given_, total / weights, rtol=1e-5)
    chosen = GingerEncoder(max_bins=4).fit(spend[:, None], y)
    assert encoder.n_bins_ == chosen.n_bins_
    np.testing.assert_array_equal(encoder.strengths_, chosen.strengths_)


def test_an_average_over_bins_depends_on_the_order_of_numbers_alone():
    rng = np.random.default_rng(2)
    spend = np.append(rng.normal(size=3000).round(3), [np.nan] * 20)  # more values than cells
    y = rng.random(3020) < 1 / (1 + np.exp(-np.nan_to_num(spend)))
    new = np.append(rng.choice(spend[:3000], 50), [-9.0, 9.0, np.nan])
    encoder = GingerEncoder(average=True)
    plain = encoder.fit(spend[:, None], y).transform(new[:, None])
    assert len(np.unique(plain)) > encoder.n_bins_[0]  # not a staircase of the bins
    assert np.all(np.diff(plain[np.argsort(new[:50])][:, 0]) >= -0.5)
    with np.errstate(over="ignore"):
        stretched, stretched_new = np.exp(9 * spend), np.exp(9 * new)
    again = encoder.fit(stretched[:, None], y).transform(stretched_new[:, None])
    np.testing.assert_array_equal(again, plain)


@settings(max_examples=25)
@given(st.data())
def test_the_strength_is_that_of_least_loss_on_rows_left_out(data):
    n = data.draw(st.integers(6, 25))
    value = data.draw(st.lists(st.sampled_from("abcd"), min_size=n, max_size=n))
    y = np.array(data.draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    y[:2] = 0, 1
    X = pd.DataFrame({"value": value})
    encoder = GingerEncoder(output="probability", target_type="classes").fit(X, y)
    losses = []
    for a in STRENGTHS:
        loss = 0.0
        for i in range(n):
            others = np.arange(n) != i
            same = others & (X["value"] == value[i]).to_numpy()
            pi = prior(np.bincount(y[others], minlength=2))
            q = (
                pi
                if math.isinf(a)
                else (np.bincount(y[same], minlength=2) + a * pi) / (same.sum() + a)
            )
            loss -= math.log(q[y[i]])
        losses.append(loss / n)
    if len(set(value)) > 1:
        at = STRENGTHS.index(encoder.strengths_[0])
        assert losses[at] <= min(losses) + 1e-9
    assert encoder.path_.scores[0] == pytest.approx(losses[-1])


# --- leaks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["two", "three", "number"])
def test_an_id_encodes_to_what_all_rows_say(target):
    X, targets = customers()
    y = targets[target]
    encoder = GingerEncoder(random_state=0).set_output(transform="pandas")
    ids = encoder.fit_transform(X[["id"]], y)
    assert (ids.nunique() == 1).all()
    np.testing.assert_array_equal(ids, encoder.transform(X[["id"]]))
    assert math.isinf(encoder.strengths_[0])
    assert not encoder.support_[0]


def test_the_encoding_of_noise_does_not_know_the_target():
    # In sample a column of 300 values in 600 rows separates the classes; out of fold it must not.
    rng = np.random.default_rng(0)
    gaps = []
    for seed in range(20):
        y = rng.integers(0, 2, 600)
        X = pd.DataFrame({"town": rng.integers(0, 60, 600).astype(str), "u": rng.random(600)})
        encoder = GingerEncoder(random_state=seed)
        out_of_fold = encoder.fit_transform(X, y)
        gaps.append(out_of_fold[y == 1].mean(axis=0) - out_of_fold[y == 0].mean(axis=0))
    assert np.mean(gaps) < 0.02


def test_a_row_does_not_change_its_own_encoding():
    X, targets = customers()
    X, y = X.drop(columns="id"), targets["number"].copy()
    folds = list(KFold(5).split(X))
    encoder = GingerEncoder(cv=folds)
    before, said_something = encoder.fit_transform(X, y), encoder.support_
    held_out = folds[2][1]
    y[held_out] = y[held_out][::-1] * 2
    after = encoder.fit_transform(X, y)
    # Whether a column says anything at all is decided on all rows.
    useful = said_something & encoder.support_
    assert useful.sum() >= 3
    np.testing.assert_array_equal(after[held_out][:, useful], before[held_out][:, useful])
    assert (after != before).any()


# --- folds and groups ----------------------------------------------------------------------------


def test_classes_are_spread_evenly_over_folds():
    y = np.repeat([0, 1, 2], [50, 7, 23])
    fold, n_folds = deal_folds(5, Target.from_column(y, False), None, np.random.RandomState(0))
    assert n_folds == 5
    table = np.array([np.bincount(fold[y == k], minlength=5) for k in range(3)])
    assert (np.ptp(table, axis=1) <= 1).all()
    assert np.ptp(table.sum(axis=0)) <= 1


def test_the_rows_of_a_group_stay_together():
    rng = np.random.default_rng(0)
    group = rng.integers(0, 31, 500)
    y = rng.integers(0, 2, 500)
    fold, n_folds = deal_folds(5, Target.from_column(y, False), group, np.random.RandomState(0))
    assert n_folds == 5
    assert all(len(np.unique(fold[group == g])) == 1 for g in range(31))


def test_groups_shrink_what_only_a_group_knows():
    # Ten rows per patient with one answer: the ward of a patient says nothing about new patients.
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(60), 10)
    y = rng.integers(0, 2, 60)[patient]
    X = pd.DataFrame({"ward": (patient // 2).astype(str)})
    without = GingerEncoder(random_state=0).fit(X, y)
    grouped = GingerEncoder(random_state=0).fit(X, y, groups=patient)
    assert without.strengths_[0] < 4
    assert grouped.strengths_[0] > 100


@pytest.mark.parametrize("target", ["two", "three", "number"])
@pytest.mark.parametrize("average", [False, True])
def test_a_group_per_row_equals_no_groups(target, average):
    X, targets = customers(150)
    y = targets[target]
    encoder = GingerEncoder(average=average, random_state=0)
    plain = encoder.fit_transform(X, y)
    strengths, scores = encoder.strengths_, encoder.scores_
    grouped = encoder.fit_transform(X, y, groups=np.arange(len(y)))
    np.testing.assert_array_equal(encoder.strengths_, strengths)
    np.testing.assert_allclose(encoder.scores_, scores, rtol=1e-12)
    np.testing.assert_allclose(grouped, plain, rtol=1e-9)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_a_column_that_looks_like_a_group_is_named_at_the_callers_line(kind):
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(60), 5)
    y = (rng.integers(0, 2, 60) if kind == "classes" else rng.normal(size=60))[person]
    names = [None if i == 7 else f"p{i}" for i in person]
    X = pd.DataFrame({"person": names, "other": rng.integers(0, 25, 300)})
    words = r"GingerEncoder: rows with the same value of 'person' are .* pass groups=X\['person'\]"
    with pytest.warns(UserWarning, match=words) as caught:
        make_pipeline(GingerEncoder(random_state=0), StandardScaler()).fit(X, y)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GingerEncoder().fit(X, y, groups=person)
        GingerEncoder().fit(X, rng.permutation(y))


def test_fewer_groups_than_folds_make_as_many_folds_as_groups():
    X, targets = customers(60)
    groups = np.array(["a", "b", "c"])[np.arange(60) % 3]
    encoder = GingerEncoder(cv=5, random_state=0)
    encoded = encoder.fit_transform(X, targets["two"], groups=groups)
    fold = row_folds(encoder, X, targets["two"], groups)
    assert len(np.unique(fold)) == 3
    assert np.isfinite(encoded).all()


def test_two_groups_leave_one_to_learn_from():
    X, targets = customers(60)
    for target in targets.values():
        encoder = GingerEncoder(random_state=0)
        encoded = encoder.fit_transform(X, target, groups=np.arange(60) % 2)
        assert np.isfinite(encoded).all()


@pytest.mark.parametrize("average", [False, True])
def test_a_group_of_one_row_may_be_all_there_is_to_learn_from(average):
    X = pd.DataFrame({"a": list("xyyx")})
    encoder = GingerEncoder(target_type="numeric", average=average, random_state=0)
    encoded = encoder.fit_transform(X, [5.0, 1.0, 2.0, 3.0], groups=[0, 1, 1, 1])
    # Of one row, or of one group, nothing can be left out: the mean is all there is.
    np.testing.assert_allclose(encoded.ravel(), [2.0, 5.0, 5.0, 5.0])


def test_a_splitter_and_its_splits_give_the_same():
    X, targets = customers()
    groups = np.arange(len(X)) % 11
    splitter = GroupKFold(4)
    splits = list(splitter.split(X, targets["two"], groups))
    a, b = (
        GingerEncoder(cv=cv).fit_transform(X, targets["two"], groups=groups)
        for cv in (splitter, splits)
    )
    np.testing.assert_array_equal(a, b)


# --- weights -------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["two", "three", "number"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("average", [False, True])
def test_weights_are_repetitions(target, grouped, average):
    X, targets = customers(120)
    y = targets[target]
    weight = np.random.default_rng(0).integers(0, 4, 120)
    repeated = np.repeat(np.arange(120), weight)
    groups = np.arange(120) // 4 if grouped else None
    kept = {"groups": groups}, {"groups": groups[repeated] if grouped else None}
    encoder = GingerEncoder(average=average, pairs=1, target_type="auto")
    weighted = clone(encoder).fit(X, y, sample_weight=weight, **kept[0])
    plain = clone(encoder).fit(X.iloc[repeated], y[repeated], **kept[1])
    np.testing.assert_array_equal(weighted.strengths_, plain.strengths_)
    assert weighted.pairs_ == plain.pairs_
    np.testing.assert_allclose(weighted.transform(X), plain.transform(X), rtol=1e-9)


def test_weights_are_repetitions_out_of_fold():
    X, targets = customers(120)
    y = targets["two"]
    weight = np.random.default_rng(0).integers(1, 4, 120)
    repeated = np.repeat(np.arange(120), weight)
    groups = np.arange(120) // 3
    encoder = GingerEncoder(random_state=0)
    weighted = encoder.fit_transform(X, y, sample_weight=weight, groups=groups)
    plain = encoder.fit_transform(X.iloc[repeated], y[repeated], groups=groups[repeated])
    np.testing.assert_allclose(weighted[repeated], plain, rtol=1e-9)


def test_a_group_of_weight_0_changes_nothing_wherever_its_rows_are():
    X, targets = customers(120)
    y, fold = targets["two"], np.arange(120) % 3
    groups = np.char.add("g", (3 * (np.arange(120) % 15 // 3) + fold).astype(str)).astype(object)
    groups[:12] = "odd"
    weight = np.where(groups == "odd", 0, 1)
    used = weight > 0
    whole, rest = (
        GingerEncoder(cv=[(np.flatnonzero(f != k), np.flatnonzero(f == k)) for k in range(3)])
        for f in (fold, fold[used])
    )
    weighted = whole.fit_transform(X, y, groups=groups, sample_weight=weight)
    alone = rest.fit_transform(X[used], y[used], groups=groups[used])
    np.testing.assert_array_equal(weighted[used], alone)
    np.testing.assert_array_equal(whole.scores_, rest.scores_)


def test_a_row_of_weight_0_changes_nothing_and_is_encoded_by_all_rows():
    X, targets = customers(120)
    y = targets["number"]
    weight = (np.arange(120) % 5 > 0).astype(int)
    used = weight > 0
    encoder = GingerEncoder(random_state=0, pairs=1)
    encoded = encoder.fit_transform(X, y, sample_weight=weight)
    np.testing.assert_allclose(encoded[~used], encoder.transform(X[~used]))
    np.testing.assert_allclose(encoded[used], encoder.fit_transform(X[used], y[used]))


# --- values out ----------------------------------------------------------------------------------


def test_three_classes_give_three_columns_named_by_class():
    X, targets = customers()
    encoder = GingerEncoder(output="probability").set_output(transform="pandas")
    shares = encoder.fit(X[["colour", "paid"]], targets["three"]).transform(X[["colour", "paid"]])
    assert list(shares) == [
        f"{column}_{label}" for column in ("colour", "paid") for label in ("low", "mid", "top")
    ]
    np.testing.assert_allclose(shares.iloc[:, :3].sum(axis=1), 1)
    odds = clone(encoder).set_params(output="log_odds").fit(X[["colour", "paid"]], targets["three"])
    expected = np.log(shares / (1 - shares))
    np.testing.assert_allclose(odds.transform(X[["colour", "paid"]]), expected, rtol=1e-9)


def test_two_classes_give_the_share_of_the_second():
    X = pd.DataFrame({"c": list("aabb") * 10})
    y = np.array(["no", "no", "yes", "yes"] * 10)
    encoder = GingerEncoder(output="probability").fit(X, y)
    assert encoder.classes_.tolist() == ["no", "yes"]
    low, high = encoder.transform(pd.DataFrame({"c": ["a", "b"]}))[:, 0]
    assert low < 0.1
    assert high > 0.9
    assert encoder.get_feature_names_out().tolist() == ["c"]


def test_a_missing_value_has_its_own_number_where_the_fit_saw_one():
    X = pd.DataFrame({"c": ["a", None] * 50, "x": [1.0, np.nan] * 50, "d": ["a", "b"] * 50})
    y = np.array([0, 1] * 50)
    encoder = GingerEncoder(output="probability").fit(X, y)
    new = pd.DataFrame({"c": [None, "a"], "x": [np.nan, 7.0], "d": [None, "a"]})
    encoded = encoder.transform(new)
    assert (encoded[0, :2] > 0.9).all()
    assert (encoded[1] < 0.1).all()
    assert encoded[0, 2] == pytest.approx(0.5)


def test_numbers_beyond_the_range_fall_into_the_outer_bins():
    x = np.linspace(0, 1, 200)
    encoder = GingerEncoder().fit(x[:, None], x > 0.5)
    ends = encoder.transform([[0.0], [1.0]])
    np.testing.assert_array_equal(encoder.transform([[-9.0], [9.0]]), ends)
    assert encoder.n_bins_[0] >= 2


def test_integers_by_value_where_values_win():
    rng = np.random.default_rng(0)
    code = rng.integers(0, 300, 6000)
    y = rng.random(300)[code] < 0.5
    with pytest.warns(UserWarning, match="almost alike in their target"):
        encoder = GingerEncoder(max_bins=16).fit(code[:, None], y)
    assert encoder.n_bins_[0] == 0
    smooth = GingerEncoder(max_bins=16).fit(code[:, None], code + rng.normal(0, 99, 6000))
    assert smooth.n_bins_[0] > 0


def test_useless_columns_are_constant_or_dropped():
    X, targets = customers()
    kept = GingerEncoder().fit(X, targets["two"])
    dropped = GingerEncoder(drop_useless=True, random_state=0)
    encoded = dropped.fit_transform(X, targets["two"])
    useless = np.isinf(kept.strengths_)
    assert useless[0]
    assert (np.ptp(kept.transform(X)[:, useless], axis=0) == 0).all()
    assert encoded.shape[1] == (~useless).sum() == len(dropped.get_feature_names_out())
    np.testing.assert_array_equal(dropped.transform(X), kept.transform(X)[:, ~useless])


def test_a_constant_column_is_useless():
    X = np.column_stack([np.ones(60), np.arange(60) % 2])
    encoder = GingerEncoder().fit(X, np.arange(60) % 2)
    assert encoder.support_.tolist() == [False, True]


def test_nothing_left_is_said_and_gives_no_columns():
    X, targets = customers()
    encoder = GingerEncoder(drop_useless=True, random_state=0)
    with pytest.warns(UserWarning, match=r"GingerEncoder: no column says anything about new rows"):
        encoded = encoder.fit_transform(X[["id"]], targets["two"])
    assert encoded.shape == (300, 0)
    assert encoder.transform(X[["id"]]).shape == (300, 0)
    assert encoder.get_feature_names_out().tolist() == []


# --- pairs ---------------------------------------------------------------------------------------


def exclusive_or(n=500, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": rng.choice(["x", "y"], n),
            "b": rng.choice(["u", "v"], n),
            "c": rng.choice(["p", "q", "r"], n),
            "d": rng.normal(size=n),
        }
    )
    return X, (X["a"] == "x").to_numpy() ^ (X["b"] == "u").to_numpy()


def test_the_pair_that_gains_most_over_its_better_half_is_added():
    X, y = exclusive_or()
    encoder = GingerEncoder(pairs=1, random_state=0)
    encoded = encoder.fit_transform(X, y)
    assert encoder.pairs_ == [(0, 1)]
    assert encoder.get_feature_names_out().tolist() == ["a", "b", "c", "d", "a&b"]
    assert ((encoded[:, -1] > 0) == y).all()
    new = X.head(2).assign(b=["u", "never seen"])
    prior_odds = math.log((y.sum() + 0.5) / ((~y).sum() + 0.5))
    assert encoder.transform(new)[1, -1] == pytest.approx(prior_odds)


def test_pairs_that_do_not_gain_are_not_added():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(["x", "y"], 500), "b": rng.choice(["u", "v"], 500)})
    encoder = GingerEncoder(pairs=5, random_state=0)
    assert encoder.fit_transform(X, X["a"] == "x").shape == (500, 2)
    assert encoder.pairs_ == []


def test_pairs_work_where_their_halves_are_dropped():
    X, y = exclusive_or()
    encoder = GingerEncoder(pairs=1, drop_useless=True, random_state=0)
    encoded = encoder.fit_transform(X[["a", "b", "c"]], y)
    assert "a&b" in encoder.get_feature_names_out()
    assert encoder.transform(X[["a", "b", "c"]]).shape == encoded.shape


# --- frames --------------------------------------------------------------------------------------


def test_every_kind_of_frame_gives_the_same():
    X, targets = customers()
    encoder = GingerEncoder(random_state=0, pairs=1)
    expected = encoder.fit_transform(X, targets["two"])
    later = encoder.transform(X)
    arrow = pa.Table.from_pandas(X)
    objects = X.astype(object).to_numpy()
    for frame in (arrow, pl.from_arrow(arrow), objects):
        other = clone(encoder)
        np.testing.assert_array_equal(other.fit_transform(frame, targets["two"]), expected)
        np.testing.assert_array_equal(other.transform(frame), later)


def test_text_and_categories_give_the_same():
    X, targets = customers()
    text = X[["colour"]]
    encoder = GingerEncoder(random_state=0)
    np.testing.assert_array_equal(
        encoder.fit_transform(text.astype("category"), targets["two"]),
        encoder.fit_transform(text, targets["two"]),
    )


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_set_output_names_the_columns(library):
    X, targets = customers()
    X.index = np.arange(len(X)) * 2
    encoder = GingerEncoder(random_state=0).set_output(transform=library)
    for encoded in (encoder.fit_transform(X, targets["two"]), encoder.transform(X)):
        assert isinstance(encoded, {"pandas": pd, "polars": pl}[library].DataFrame)
        assert list(encoded.columns) == list(X.columns)
    if library == "pandas":
        assert encoded.index.equals(X.index)


def test_float32_in_float32_out():
    X = np.random.default_rng(0).normal(size=(80, 2)).astype(np.float32)
    y = X[:, 0] > 0
    encoder = GingerEncoder(random_state=0)
    assert encoder.fit_transform(X, y).dtype == np.float32
    assert encoder.transform(pl.DataFrame(X, schema=["x0", "x1"]).to_numpy()).dtype == np.float32
    assert encoder.fit_transform(pl.DataFrame(X, schema=["a", "b"]), y).dtype == np.float32
    assert encoder.fit_transform(X.astype(float), y).dtype == np.float64


def test_columns_out_can_be_written():
    X, targets = customers()
    encoder = GingerEncoder(random_state=0)
    for encoded in (encoder.fit_transform(X, targets["two"]), encoder.transform(X)):
        encoded[:] = 0


def test_pickle_and_clone():
    X, targets = customers()
    encoder = GingerEncoder(random_state=0, pairs=1).fit(X, targets["three"])
    again = pickle.loads(pickle.dumps(encoder))
    np.testing.assert_array_equal(again.transform(X), encoder.transform(X))
    assert clone(encoder).get_params() == encoder.get_params()


def test_the_same_seed_gives_the_same_folds():
    X, targets = customers()
    a, b, c = (
        GingerEncoder(random_state=seed).fit_transform(X, targets["two"]) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()


def test_the_order_of_rows_does_not_matter_to_transform():
    X, targets = customers()
    order = np.random.default_rng(0).permutation(len(X))
    a = GingerEncoder().fit(X, targets["two"])
    b = GingerEncoder().fit(X.iloc[order], targets["two"][order])
    np.testing.assert_allclose(b.transform(X), a.transform(X), rtol=1e-12)
    np.testing.assert_allclose(a.transform(X.iloc[order]), a.transform(X)[order])


@pytest.mark.parametrize("target", ["two", "three", "number"])
def test_rows_are_encoded_each_on_its_own(target):
    X, targets = customers(60)
    encoder = GingerEncoder(pairs=1).fit(X, targets[target])
    whole = encoder.transform(X)
    for batch in (slice(0, 1), slice(7, 20), slice(59, 60)):
        np.testing.assert_array_equal(encoder.transform(X[batch]), whole[batch])


def test_a_pipeline_of_the_encoder_alone_transforms_as_the_encoder():
    X, targets = customers()
    alone = GingerEncoder(random_state=0).fit(X, targets["two"])
    piped = make_pipeline(GingerEncoder(random_state=0)).fit(X, targets["two"])
    np.testing.assert_array_equal(piped.transform(X), alone.transform(X))
    out_of_fold = make_pipeline(GingerEncoder(random_state=0)).fit_transform(X, targets["two"])
    np.testing.assert_array_equal(out_of_fold, alone.fit_transform(X, targets["two"]))
    np.testing.assert_array_equal(alone.transform(X), piped.transform(X))


def test_a_pipeline_learns_out_of_fold_and_a_search_tunes_it():
    X, targets = customers()
    encoder = GingerEncoder(random_state=0)
    model = make_pipeline(encoder, LogisticRegression()).fit(X, targets["two"])
    alone = LogisticRegression().fit(
        clone(encoder).fit_transform(X, targets["two"]), targets["two"]
    )
    np.testing.assert_allclose(model[-1].coef_, alone.coef_)
    search = GridSearchCV(model, {"gingerencoder__pairs": [0, 1]}, cv=3).fit(X, targets["two"])
    assert search.best_score_ > 0.7


def test_groups_reach_it_through_a_pipeline():
    X, targets = customers()
    groups = np.arange(len(X)) % 17
    model = make_pipeline(GingerEncoder(random_state=0), LogisticRegression())
    model.fit(X, targets["two"], gingerencoder__groups=groups)
    alone = GingerEncoder(random_state=0).fit_transform(X, targets["two"], groups=groups)
    np.testing.assert_allclose(
        model[-1].coef_, LogisticRegression().fit(alone, targets["two"]).coef_
    )


def test_it_works_beside_other_columns():
    X, targets = customers()
    mixed = make_column_transformer(
        (GingerEncoder(random_state=0), ["colour", "town"]), remainder="passthrough"
    ).fit(X, targets["two"])
    assert mixed.get_feature_names_out()[0] == "gingerencoder__colour"


# --- what is refused -----------------------------------------------------------------------------


def refusal(call):
    with pytest.raises(ValueError, match=r"[.?]") as caught:
        call()
    message = str(caught.value)
    assert "np." not in message
    return message


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"criterion": "ginger"}, "criterion must be one of 'log_loss', 'brier'. Got 'ginger'."),
        ({"output": "logit"}, "output must be one of"),
        ({"pairs": -1}, "pairs must be a whole number of at least 0. Got -1."),
        ({"cv": 1}, "cv must be a whole number of at least 2, a splitter"),
        ({"cv": "five"}, "cv must be a whole number of at least 2, a splitter"),
        ({"cv": TimeSeriesSplit(3)}, "cv must put every row into one test part. Row 0 is in 0."),
        ({"max_bins": 1}, "max_bins must be a whole number of at least 2. Got 1."),
        ({"drop_useless": "no"}, "drop_useless must be True or False. Got 'no'."),
        ({"output": "mean"}, "output='mean' needs a numeric target. Got classes."),
        ({"categorical_features": ["size"]}, "categorical_features must name columns of X"),
    ],
)
def test_a_wrong_option_is_refused_in_a_sentence(options, sentence):
    X, targets = customers(40)
    message = refusal(lambda: GingerEncoder(**options).fit_transform(X, targets["two"]))
    assert message.startswith(f"GingerEncoder: {sentence}")


def test_log_odds_of_a_number_are_refused():
    X, targets = customers(40)
    message = refusal(lambda: GingerEncoder(output="log_odds").fit(X, targets["number"]))
    assert message == (
        "GingerEncoder: output='log_odds' needs classes, and the target is numeric. Pass "
        "output='mean', or target_type='classes'."
    )


def test_labels_that_are_tuples_are_refused():
    X, targets = customers(40)
    y = np.empty(40, dtype=object)
    y[:] = [(0, bool(label)) for label in targets["two"] == targets["two"][0]]
    for model in (GingerEncoder(), GingerSelector(), GingerTreeClassifier()):
        with pytest.raises(TypeError, match=r"'target' holds values that .* Got tuple;"):
            model.fit(X, y)


@pytest.mark.parametrize("size", [1e-80, 1e80])
def test_numbers_whose_fourth_powers_do_not_fit_are_refused(size):
    X, targets = customers(40)
    y = targets["number"] / np.abs(targets["number"]).max() * size
    for model in (GingerEncoder(), GingerSelector(), GingerTreeRegressor()):
        message = refusal(lambda model=model: model.fit(X, y))
        assert message.startswith(
            f"{type(model).__name__}: the fourth powers of the target must fit into float64. "
            f"Got values of size {size:g}. Change the unit."
        )


def test_one_class_is_refused():
    message = refusal(lambda: GingerEncoder().fit([["a"], ["b"]], ["yes", "yes"]))
    assert message == (
        "GingerEncoder: needs at least 2 classes in y. Got 1 class, 'yes' in every row. There is "
        "nothing to predict."
    )


@pytest.mark.parametrize("weight", [None, [1, 1, 1, 0]])
def test_one_group_is_refused(weight):
    groups = ["A", "A", "A", "A" if weight is None else "B"]
    message = refusal(
        lambda: GingerEncoder().fit(
            [["a"], ["b"], ["a"], ["b"]], [0, 1, 0, 1], groups=groups, sample_weight=weight
        )
    )
    assert message == (
        "GingerEncoder: groups must name at least 2 groups, so that one can be left out. Got 1, "
        "'A' in every row. Leave groups out if new data are new rows."
    )


def test_a_missing_group_is_refused():
    message = refusal(
        lambda: GingerEncoder().fit([["a"], ["b"], ["a"]], [0, 1, 0], groups=["A", None, "B"])
    )
    assert message.startswith("GingerEncoder: groups must name a domain for every row.")


def test_folds_that_cut_a_group_are_refused():
    X, targets = customers(40)
    encoder = GingerEncoder(cv=list(KFold(4).split(X)))
    message = refusal(lambda: encoder.fit_transform(X, targets["two"], groups=np.arange(40) % 3))
    assert message.startswith("GingerEncoder: the rows of a group must be in one test part of cv.")


def test_rows_of_positive_weight_in_one_fold_are_refused():
    X, targets = customers(40)
    weight = (np.arange(40) < 10).astype(int)
    message = refusal(
        lambda: GingerEncoder(cv=KFold(4)).fit_transform(X, targets["two"], sample_weight=weight)
    )
    assert message.startswith("GingerEncoder: cv must leave rows to learn from for every fold.")


def test_a_column_it_has_not_seen_is_named():
    X, targets = customers(40)
    encoder = GingerEncoder().fit(X, targets["two"])
    message = refusal(lambda: encoder.transform(X.rename(columns={"town": "Town"})))
    assert message.startswith(
        "GingerEncoder: columns at fit and now differ. Missing: 'town'. New: 'Town'.\n"
    )
    assert "feature names should match" in message  # scikit-learn's own checks look for it


def test_a_column_of_another_type_is_named():
    X, targets = customers(40)
    encoder = GingerEncoder().fit(X, targets["two"])
    message = refusal(lambda: encoder.transform(X.assign(spend="much")))
    assert message.startswith("GingerEncoder: column 'spend' was double at fit.")


def test_times_with_and_without_a_zone_are_refused():
    day = pd.date_range("2024-01-01", periods=40).as_unit("us")
    encoder = GingerEncoder().fit(pd.DataFrame({"day": day}), np.arange(40) > 20)
    zoned = pd.DataFrame({"day": day.tz_localize("Europe/Rome")})
    assert refusal(lambda: encoder.transform(zoned)).startswith(
        "GingerEncoder: column 'day' was timestamp[us] at fit. Got timestamp[us, tz=Europe/Rome]."
    )


def test_names_that_would_come_twice_are_refused():
    X = pd.DataFrame({"a": list("xy") * 30, "a_b": list("xyz") * 20})
    y = np.array(["b_c", "c", "d"] * 20)
    message = refusal(lambda: GingerEncoder().fit(X, y))
    assert message == (
        "GingerEncoder: columns out must have different names. Got 'a_b_c' more than once. Rename "
        "the columns or classes."
    )


def test_text_and_numbers_in_one_column_are_different_values():
    X = np.array([[1], ["1"]] * 40, dtype=object)
    y = np.array([0, 1] * 40)
    encoded = GingerEncoder().fit(X, y).transform(X)
    assert ((encoded[:, 0] > 0) == (y == 1)).all()


def test_a_class_in_one_group_only_is_encoded():
    X, targets = customers(60)
    groups = np.arange(60) % 6
    y = np.where(groups == 0, "rare", targets["two"])
    encoded = GingerEncoder(random_state=0).fit_transform(X, y, groups=groups)
    assert np.isfinite(encoded).all()


def test_an_interrupted_fit_leaves_a_path_that_says_so(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("holdtrue.categories.encoder.learn", interrupt)
    X, targets = customers(40)
    encoder = GingerEncoder()
    with pytest.raises(KeyboardInterrupt):
        encoder.fit(X, targets["two"])
    assert encoder.path_.reason == "interrupted"


def test_the_path_says_what_is_new():
    X, targets = customers(40)
    encoder = GingerEncoder().fit(X, targets["number"], groups=np.arange(40) % 7)
    assert encoder.path_.unit == "squared error on new groups"
    assert encoder.path_.reason.endswith("about new groups")
    assert GingerEncoder().fit(X, targets["two"]).path_.unit == "log loss on new rows"


def test_the_fewest_rows_that_can_be_encoded():
    for y in ([0, 1], [0.5, 1.5]):
        target_type = "classes" if y[0] == 0 else "numeric"
        encoder = GingerEncoder(target_type=target_type, random_state=0)
        encoded = encoder.fit_transform([["a"], ["b"]], y)
        assert np.isfinite(encoded).all()
