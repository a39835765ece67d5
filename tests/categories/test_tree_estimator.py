"""Trees and forests on tables: column types, weights, exports, bad input."""

import datetime
import json
import re
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score

from holdtrue import (
    GingerForestClassifier,
    GingerForestRegressor,
    GingerSelector,
    GingerTreeClassifier,
    GingerTreeRegressor,
    TreeDisplay,
    export_text,
)
from holdtrue.categories import grow
from holdtrue.categories.cells import ColumnEncoder, IntegerRows
from holdtrue.categories.forest import Bags, grow_on_part, out_of_bag_stretch
from holdtrue.categories.kernel import TERMS
from holdtrue.categories.tree import Sample
from holdtrue.errors import InputError


def pandas_frame(columns):
    """Dates in pandas' own type: as Python objects they would be categories."""
    frame = pd.DataFrame(columns)
    return frame.assign(day=pd.to_datetime(frame["day"]))


FRAMES = {"pandas": pandas_frame, "polars": pl.DataFrame, "arrow": pa.table}
every_frame = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())


def shop(n=600, seed=0):
    """Columns of every type; whether something is bought depends on town and price."""
    rng = np.random.default_rng(seed)
    town = rng.choice(["Bath", "Cork", "Derby", None], n).astype(object)
    price = rng.gamma(2.0, size=n)
    price[rng.random(n) < 0.1] = np.nan
    member = rng.random(n) < 0.5
    day = [datetime.date(2024, 1, 1) + datetime.timedelta(int(d)) for d in rng.integers(0, 300, n)]
    bought = (np.nan_to_num(price, nan=9.0) < 1.2) ^ (town == "Cork") ^ (rng.random(n) < 0.05)
    columns = {
        "ident": [f"c{i}" for i in range(n)],
        "town": town.tolist(),
        "price": price,
        "member": member,
        "visits": rng.integers(0, 200, n),
        "day": day,
    }
    return columns, np.where(bought, "yes", "no")


@pytest.fixture(scope="module")
def fitted():
    columns, y = shop()
    return GingerTreeClassifier().fit(pl.DataFrame(columns), y)


# --- tables ---


@every_frame
def test_every_kind_of_column_and_frame_gives_the_same_tree(frame, fitted):
    columns, y = shop()
    tree = GingerTreeClassifier().fit(frame(columns), y)
    assert tree.path_ == fitted.path_
    new, truth = shop(seed=1)
    np.testing.assert_array_equal(tree.predict(frame(new)), fitted.predict(pl.DataFrame(new)))
    assert tree.score(frame(new), truth) > 0.75


def test_the_columns_that_matter_are_found_and_the_id_is_not(fitted):
    names = fitted.feature_names_in_[fitted.support_]
    assert set(fitted.path_.names[:2]) == {"town", "price"}
    assert "ident" not in names
    assert fitted.feature_importances_.sum() == pytest.approx(
        fitted.path_.scores[0] - fitted.path_.scores[fitted.path_.chosen_size]
    )
    assert (fitted.feature_importances_[~fitted.support_] == 0).all()


def test_categories_and_text_are_the_same():
    columns, y = shop()
    plain = pd.DataFrame(columns)[["town", "member"]]
    category = plain.assign(town=plain["town"].astype("category"))
    a, b = (GingerTreeClassifier().fit(X, y) for X in (plain, category))
    np.testing.assert_array_equal(a.predict_proba(plain), b.predict_proba(category))


def test_text_in_arrays_and_lists_is_taken_by_value():
    X = [["red", 1], ["red", 2], ["red", 1], ["blue", 2], ["blue", 1], ["blue", 2]]
    y = [1, 1, 1, 0, 0, 0]
    for rows in (np.array(X, dtype=object), X, pd.DataFrame(X)):
        if isinstance(rows, pd.DataFrame):
            rows.columns = ["a", "b"]
        tree = GingerTreeClassifier().fit(rows, y)
        assert tree.support_.tolist() == [True, False]
        assert tree.predict(rows).tolist() == y


def test_missing_is_a_value_of_its_own():
    X = pd.DataFrame({"a": ["x", None] * 20, "b": [1.0, np.nan] * 20})
    y = np.array([0, 1] * 20)
    for column in ("a", "b"):
        tree = GingerTreeClassifier().fit(X[[column]], y)
        assert tree.predict(X[[column]]).tolist() == y.tolist()
    assert "is missing" in export_text(tree)


def test_a_missing_value_that_the_fit_had_not_is_predicted_from_the_node():
    tree = GingerTreeClassifier().fit([[0.0]] * 5 + [[1.0]] * 4, [0] * 5 + [1] * 4)
    assert tree.predict([[np.nan]]).tolist() == [0]
    assert tree.apply([[np.nan]]).tolist() == [0]


def test_whole_numbers_stay_the_same_values_when_missing_ones_make_them_decimal():
    X, y = pd.DataFrame({"a": [0, 1, 2] * 10}), [0, 1, 0] * 10
    tree = GingerTreeClassifier().fit(X, y)
    new = pd.DataFrame({"a": [1.0, 2.0, np.nan, 1.5]})
    assert tree.predict(new).tolist() == [1, 0, 0, 0]
    assert tree.apply(new).tolist()[2:] == [0, 0]


def test_many_whole_numbers_are_tried_by_value_and_by_bins():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 1000, (3000, 1))
    by_size = GingerTreeClassifier().fit(X, X[:, 0] > 500)
    assert by_size.score(X, X[:, 0] > 500) > 0.97
    assert by_size.n_leaves_ < 100
    with pytest.warns(UserWarning, match="almost alike in their target"):  # 200 values say it all
        parity = GingerTreeClassifier().fit(X % 200, X[:, 0] % 2)
    assert parity.score(X % 200, X[:, 0] % 2) == 1.0
    assert parity.n_leaves_ == 200


@pytest.mark.parametrize("dtype", [np.int64, np.uint8])
@pytest.mark.parametrize(("n_values", "step"), [(10, 1), (10, 3), (35, 3)])
def test_arrays_of_integers_are_encoded_in_one_pass_as_column_by_column(
    monkeypatch, dtype, n_values, step
):
    rng = np.random.default_rng(0)
    X = np.stack(
        [rng.integers(0, 2, 400), step * rng.integers(5, 5 + n_values, 400), np.full(400, 7)],
        axis=1,
    )
    X, weight = X.astype(dtype), rng.integers(0, 3, 400)
    monkeypatch.setattr("holdtrue.categories.cells.WORTH_COMPILING", 0)
    integers = IntegerRows.of(X, weight)
    tables = integers, {f"x{j}": pa.array(X[:, j]) for j in range(3)}
    (one, cells), (two, expected) = (
        ((encoded := ColumnEncoder(list(tables[1]), np.zeros(3, dtype=bool), 16)),
         encoded.fit_transform(table, weight))
        for table in tables
    )  # fmt: skip
    np.testing.assert_array_equal(cells, expected)
    np.testing.assert_array_equal(one.offsets, two.offsets)
    assert [c.describe(0) for c in one.columns] == [c.describe(0) for c in two.columns]
    # Integers beyond what the first rows show, or too far apart, are left to the columns' route.
    monkeypatch.setattr("holdtrue.categories.cells._BLOCK", 100)
    X[-1, 0] = 50
    assert IntegerRows.of(X, weight) is None
    assert IntegerRows.of(np.array([[0], [1 << 40]]), np.ones(2, dtype=int)) is None


def test_edges_are_values_of_the_data_and_bins_have_equal_weight():
    def edges(values, weight, max_bins):
        columns = ColumnEncoder(["a"], np.array([False]), max_bins)
        columns.fit_transform({"a": pa.array(values)}, np.array(weight))
        return columns.columns[-1].edges

    values = np.array([3.0, 1.0, 2.0, 2.0, 10.0])
    assert edges(values, [1] * 5, 64).tolist() == [1.0, 2.0, 3.0]
    # Repeated by weight 1 2 2 3 10 10 10 10: the lower half ends with 3.
    assert edges(values, [1, 1, 1, 1, 4], 2).tolist() == [3.0]
    values = np.random.default_rng(0).normal(size=1000)
    found = edges(values, [1] * 1000, 10)
    assert np.isin(found, values).all()
    assert np.bincount(np.searchsorted(found, values)).tolist() == [100] * 10


def test_a_forest_cuts_numbers_in_two_and_reads_whole_ones_by_value_too():
    values = {
        "decimal": np.append(np.arange(39.0), np.nan),
        "whole": np.arange(40) % 20,
        "two": np.arange(40) % 2,
        "one": np.full(40, 7.5),
        "text": np.array(["a", "b"] * 20, dtype=object),
    }
    table = {name: pa.array(column, from_pandas=True) for name, column in values.items()}
    columns = ColumnEncoder(list(table), np.zeros(5, dtype=bool), 2, in_two=True)
    cells = columns.fit_transform(table, np.ones(40, dtype=np.int64))
    assert columns.feature.tolist() == [0, 1, 1, 2, 3, 4]
    # 39 values in 32 bins; 20 values, in bins and by value.
    assert columns.n_bins.tolist() == [32, 20, 0, 0, 1, 0]
    assert columns.columns[0].has_missing
    assert cells[-1, 0] == columns.offsets[1] - 1
    assert cells[:20, 1].tolist() == (columns.offsets[1] + np.arange(20)).tolist()
    assert columns.describe(2, columns.offsets[2]) == "= 0"


def test_a_forest_parts_classes_anywhere_on_a_number():
    rng = np.random.default_rng(0)
    X, new = rng.uniform(size=(2, 600, 3))
    forest = GingerForestClassifier(30, random_state=0).fit(X, X[:, 0] > 0.7)
    assert forest.score(new, new[:, 0] > 0.7) > 0.97


def test_a_forest_follows_a_number_closely():
    rng = np.random.default_rng(0)
    X, new = rng.uniform(size=(2, 800, 3))
    forest = GingerForestRegressor(30, random_state=0).fit(X, X[:, 0])
    assert forest.score(new, new[:, 0]) > 0.998


def test_a_forest_parts_missing_numbers_from_all_others():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(200, 2)).astype(float)
    X[::2, 0] = np.nan
    y = np.isnan(X[:, 0])
    forest = GingerForestClassifier(30, random_state=0).fit(X, y)
    assert forest.score(X, y) == 1.0


def test_a_tree_of_an_earlier_version_is_refused():
    tree = GingerTreeClassifier().fit(np.arange(40)[:, None], np.arange(40) > 19).tree_
    state = {name: value for name, value in vars(tree).items() if name != "is_cut"}
    with pytest.raises(InputError, match=r"earlier version cannot be read\. Fit it again"):
        tree.__setstate__(state)


def test_the_tree_reads_a_column_as_the_selector_does():
    columns, y = shop()
    frame = pl.DataFrame(columns)
    for name in columns:
        X = frame.select(name)
        selector = GingerSelector("ginger", min_features=1).fit(X, y)
        tree = GingerTreeClassifier("ginger", max_splits=1).fit(X, y)
        assert tree.path_.scores[1] == pytest.approx(selector.scores_[0], abs=1e-9)


def test_new_columns_may_be_stored_otherwise():
    day = [datetime.date(2024, 1, 1 + d % 28) for d in range(56)]
    X = pd.DataFrame({"day": pd.to_datetime(day), "size": np.arange(56, dtype=np.int16)})
    tree = GingerTreeClassifier().fit(X, np.array([d.day > 14 for d in day]))
    expected = tree.predict_proba(X)
    other = pl.DataFrame({"day": day, "size": np.arange(56.0)}).cast({"day": pl.Datetime("ms")})
    np.testing.assert_array_equal(tree.predict_proba(other), expected)


def test_bins_depend_on_order_alone():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    a = GingerTreeClassifier().fit(X, y)
    b = GingerTreeClassifier().fit(np.exp(X), y)
    np.testing.assert_array_equal(a.predict(X), b.predict(np.exp(X)))


def test_categorical_features_by_place_name_and_mask():
    columns, y = shop()
    X = pd.DataFrame(columns)[["visits", "price"]]
    trees = [
        GingerTreeClassifier("gini", max_splits=1, categorical_features=listed).fit(X, y)
        for listed in ([1], ["price"], [False, True])
    ]
    for tree in trees:
        assert tree.n_leaves_ > 500
        assert tree.path_ == trees[0].path_


# --- what is fitted ---


def test_on_noise_nothing_but_chance_is_promised():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"ident": np.arange(300).astype(str)})
    y = rng.integers(0, 2, 300)
    tree = GingerTreeClassifier().fit(X, y)
    assert (tree.n_leaves_, tree.path_.n_steps, tree.get_depth()) == (1, 0, 0)
    assert "nothing is split" in tree.path_.reason
    greedy = GingerTreeClassifier("gini").fit(X, y)
    assert greedy.n_leaves_ == 300


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        ({}, "after 3 splits no further split clearly lowers the estimate"),
        (
            {"max_depth": 9, "min_samples_split": 9},
            "after 3 splits no further split clearly lowers the estimate",
        ),
        (
            {"max_depth": 1},
            "after 1 split no further split within max_depth=1 clearly lowers the estimate",
        ),
        (
            {"max_depth": 0},
            "no split within max_depth=0 clearly lowers the estimate, so nothing is split",
        ),
        (
            {"min_samples_split": 250},
            "after 1 split no further split within min_samples_split=250 clearly lowers the "
            "estimate",
        ),
        (
            {"max_depth": 1, "min_samples_split": 250, "max_splits": 5},
            "the estimate is least after 1 split of 1 explored; "
            "no leaf is left to split within min_samples_split=250",
        ),
        (
            {"max_depth": 1, "max_splits": 5},
            "the estimate is least after 1 split of 1 explored; "
            "no leaf is left to split within max_depth=1",
        ),
        ({"max_depth": 1, "max_splits": 1}, "the estimate is least after 1 split of 1 explored"),
    ],
    ids=str,
)
def test_the_reason_names_the_limit_that_stopped_it(limits, reason):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(400, 2))
    y = np.where(rng.random(400) < 0.1, 4, X @ [2, 1])
    tree = GingerTreeClassifier(**limits).fit(X, y)
    assert tree.path_.reason == reason


@pytest.mark.parametrize("criterion", TERMS)
def test_every_criterion_grows_a_tree(criterion):
    columns, y = shop()
    X = pl.DataFrame(columns).drop("ident")
    tree = GingerTreeClassifier(criterion, max_splits=15).fit(X, y)
    assert tree.path_.n_steps == 15
    assert tree.path_.chosen_size == np.argmin(np.round(tree.path_.scores, 9))
    assert tree.get_depth() >= 1
    probability = tree.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    assert ((probability > 0) & (probability < 1)).all()


def test_three_classes_and_their_labels():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (300, 2))
    y = np.array(["a", "b", "c"])[X[:, 0]]
    for model in (GingerTreeClassifier(), GingerForestClassifier(10, random_state=0)):
        model.fit(X, y)
        assert model.score(X, y) == 1.0
        assert model.predict_proba(X).shape == (300, 3)


def test_predictions_are_the_majority_and_ties_are_broken_above():
    # Value 2 has one row of each class; the root has more of class 1.
    X = np.array([0, 0, 0, 1, 1, 1, 1, 1, 2, 2])[:, None]
    y = np.array([0, 0, 0, 1, 1, 1, 1, 1, 0, 1])
    tree = GingerTreeClassifier().fit(X, y)
    assert tree.predict([[0], [1], [2], [7]]).tolist() == [0, 1, 1, 1]
    # Root (4 + ½)/11 of class 0; value 0 has 3 of 3 rows: (3 + 4.5/11)/4.
    assert tree.predict_proba([[0]])[0, 0] == pytest.approx((3 + 4.5 / 11) / 4)
    prior = GingerTreeClassifier("ginger", unseen="prior").fit(X, y)
    assert prior.predict_proba([[7]])[0].tolist() == pytest.approx([0.4, 0.6])


def test_staged_errors_are_those_of_smaller_trees():
    columns, y = shop()
    new, truth = shop(seed=1)
    X, X_new = (pl.DataFrame(rows).drop("ident") for rows in (columns, new))
    tree = GingerTreeClassifier("gini", max_splits=10).fit(X, y)
    errors = tree.staged_errors(X_new, truth)
    for n_splits in (0, 3, 10):
        small = GingerTreeClassifier("gini", max_splits=n_splits).fit(X, y)
        assert errors[n_splits] == pytest.approx(1 - small.score(X_new, truth))
    weight = np.arange(len(truth))
    weighted = tree.staged_errors(X_new, truth, sample_weight=weight)
    assert weighted[-1] == pytest.approx(1 - tree.score(X_new, truth, sample_weight=weight))


def test_weights_are_repetitions_and_zero_is_absence():
    columns, y = shop(200)
    weight = np.random.default_rng(0).integers(0, 4, 200)
    X = pd.DataFrame(columns)
    rows = np.repeat(np.arange(200), weight)
    for model in (GingerTreeClassifier(), GingerForestClassifier(5, random_state=0)):
        weighted = model.fit(X, y, sample_weight=weight).predict_proba(X)
        np.testing.assert_array_equal(model.fit(X.iloc[rows], y[rows]).predict_proba(X), weighted)


def test_permuted_rows_change_nothing():
    columns, y = shop(200)
    order = np.random.default_rng(0).permutation(200)
    X = pd.DataFrame(columns)
    for model in (GingerTreeClassifier(), GingerForestClassifier(5, random_state=0)):
        first = model.fit(X, y).predict_proba(X)
        np.testing.assert_array_equal(model.fit(X.iloc[order], y[order]).predict_proba(X), first)


def test_renamed_values_change_nothing():
    columns, y = shop()
    town = pd.DataFrame({"town": pd.Series(columns["town"]).fillna("none"), "m": columns["member"]})
    renamed = town.assign(town=town["town"].map(lambda name: name[::-1]))
    a, b = GingerTreeClassifier().fit(town, y), GingerTreeClassifier().fit(renamed, y)
    np.testing.assert_array_equal(a.predict_proba(town), b.predict_proba(renamed))
    assert a.path_ == b.path_


def test_an_interrupted_fit_leaves_its_path(monkeypatch):
    def split(self, node, column, cut, original=grow.Leaves.split):
        if len(self.counts) > 3:
            raise KeyboardInterrupt
        return original(self, node, column, cut)

    monkeypatch.setattr(grow.Leaves, "split", split)
    columns, y = shop()
    tree = GingerTreeClassifier(max_splits=20)
    with pytest.raises(KeyboardInterrupt):
        tree.fit(pl.DataFrame(columns), y)
    assert (tree.path_.reason, tree.path_.n_steps) == ("interrupted", 3)
    forest = GingerForestClassifier(5, max_splits=20)
    with pytest.raises(KeyboardInterrupt):
        forest.fit(pl.DataFrame(columns), y)
    assert forest.path_.reason == "interrupted"


@pytest.mark.parametrize("model", [GingerTreeClassifier(), GingerForestClassifier(5)])
def test_an_interrupted_second_fit_does_not_mix_two_models(model, monkeypatch):
    columns, y = shop(200)
    X = pl.DataFrame(columns)
    model.fit(X.drop("ident"), y)

    def split(*_args):
        raise KeyboardInterrupt

    monkeypatch.setattr(grow.Leaves, "split", split)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


# --- forest ---


def test_the_forest_beats_its_tree_and_ignores_the_id():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (900, 8))
    noisy = X[:, :5].sum(axis=1) + rng.normal(size=900) > 12
    X[:, 7] = np.arange(900)
    settings = {"categorical_features": list(range(8))}
    tree = cross_val_score(GingerTreeClassifier(**settings), X, noisy, cv=3).mean()
    forest = GingerForestClassifier(30, random_state=0, **settings)
    assert cross_val_score(forest, X, noisy, cv=3).mean() > tree + 0.05
    forest.fit(X, noisy)
    assert not forest.support_[7]
    assert set(np.argsort(forest.ranking_)[:5]) == set(range(5))


def test_the_compiled_route_grows_the_same_forest(monkeypatch):
    columns, y = shop(150)
    X = pl.DataFrame(columns).with_columns(number=np.random.default_rng(0).normal(size=150))
    forest = GingerForestClassifier(4, random_state=0).fit(X, y).predict_proba(X)
    monkeypatch.setattr("holdtrue.categories.forest.WORTH_COMPILING", 0)
    again = GingerForestClassifier(4, random_state=0).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(again, forest)


@pytest.mark.parametrize("criterion", TERMS)
def test_every_criterion_grows_a_forest(criterion):
    columns, y = shop(200)
    X = pl.DataFrame(columns).drop("ident")
    forest = GingerForestClassifier(5, criterion=criterion, max_splits=8, random_state=0)
    assert forest.fit(X, y).score(X, y) > 0.6


def test_processes_grow_the_same_forest():
    columns, y = shop(150)
    X = pl.DataFrame(columns)
    one, two = (GingerForestClassifier(4, random_state=0, n_jobs=n).fit(X, y) for n in (None, 2))
    np.testing.assert_array_equal(one.predict_proba(X), two.predict_proba(X))


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_the_forest_shows_its_progress_on_a_terminal(n_jobs, monkeypatch, capsys):
    columns, y = shop(150)
    forest = GingerForestClassifier(4, random_state=0, n_jobs=n_jobs)
    forest.fit(pl.DataFrame(columns), y)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("holdtrue.progress._PATIENCE", -1.0)
    forest.fit(pl.DataFrame(columns), y)
    assert capsys.readouterr().err.endswith("# 4/4\n")


# A thread of joblib's may stumble over the work that it has just given up (KeyError, its own).
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_interruption_ends_the_other_processes(monkeypatch):
    def one_piece(_label, trees, _total):
        yield next(trees)
        raise KeyboardInterrupt

    monkeypatch.setattr("holdtrue.categories.forest.progress", one_piece)
    columns, y = shop(150)
    forest = GingerForestClassifier(50, random_state=0, n_jobs=2)
    with pytest.raises(KeyboardInterrupt):
        forest.fit(pl.DataFrame(columns), y)
    assert forest.path_.reason == "interrupted"
    monkeypatch.undo()
    assert len(forest.fit(pl.DataFrame(columns), y).trees_) == 50


# --- exports ---


def test_exports_show_every_leaf(fitted):
    text = export_text(fitted, max_children=1000)
    assert len(text.splitlines()) == len(fitted.tree_.born)
    assert re.search(r"^  (town|price) ", text, re.MULTILINE)
    short = export_text(fitted, max_depth=1, max_children=2)
    assert len(short.splitlines()) <= 4
    record = fitted.to_dict()
    assert json.loads(json.dumps(record)) == record
    assert sum(record["counts"]) == 600
    assert sum(sum(child["counts"]) for child in record["children"]) == 600


def test_dates_are_written_as_dates():
    columns, _ = shop()
    X = pl.DataFrame(columns).select("day")
    tree = GingerTreeClassifier().fit(X, X["day"] > datetime.date(2024, 6, 1))
    assert "2024-0" in export_text(tree)


def test_different_edges_are_written_differently():
    day = 20240000 + np.arange(80)
    X = pd.DataFrame({"day": day, "second": 1.7e9 + (day - 20240000) / 4})
    for name, edge in (("day", "20240039"), ("second", "1700000010")):
        tree = GingerTreeClassifier(max_splits=1, max_bins=4).fit(X[[name]], day > 20240039)
        assert f"\n  {name} > {edge}: 40 rows" in export_text(tree)
        tree = GingerTreeClassifier(max_splits=1, max_bins=4).fit(X[[name]], day // 20 % 2)
        lines = [line.split(":")[0] for line in export_text(tree).splitlines()]
        assert len(lines) == len(set(lines)) == 5


def test_trees_are_drawn(fitted):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    display = TreeDisplay.from_estimator(fitted, max_children=4)
    assert display.figure_ is display.ax_.figure
    words = [text.get_text() for text in display.ax_.texts]
    assert words[0].startswith("600 rows")
    plt.close(display.figure_)


# --- bad input ---


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"criterion": "giny"}, "criterion must be one of .* Did you mean 'gini'"),
        ({"unseen": "half"}, "unseen must be one of 'uniform', 'prior'. Got 'half'"),
        ({"min_samples_split": 1}, "min_samples_split must be a whole number of at least 2. Got 1"),
        ({"max_bins": 1.5}, "max_bins must be a whole number of at least 2. Got 1.5"),
        ({"max_splits": -1}, "max_splits must be a whole number of at least 0. Got -1"),
        ({"max_depth": True}, "max_depth must be a whole number of at least 0. Got True"),
        ({"categorical_features": ["a"]}, "must name columns of X.*Got \\['a'\\]"),
        ({"categorical_features": [True]}, "a mask of length 2. Got \\[True\\]"),
        ({"categorical_features": "all"}, "must name columns of X"),
    ],
)
def test_parameters_are_checked(parameters, message):
    for model in (GingerTreeClassifier(), GingerForestClassifier(2)):
        with pytest.raises(ValueError, match=message):
            model.set_params(**parameters).fit([[0, 1], [1, 0]], [0, 1])


@pytest.mark.parametrize("given", ["log", 0, 1.5, -1])
def test_the_forest_checks_its_own_parameters(given):
    with pytest.raises(ValueError, match="max_features must be"):
        GingerForestClassifier(2, max_features=given).fit([[0], [1]], [0, 1])
    with pytest.raises(ValueError, match="n_estimators must be"):
        GingerForestClassifier(0).fit([[0], [1]], [0, 1])


@pytest.mark.parametrize(
    "X, y, error, message",
    [
        ([[0.0], [1.0]], [1, 1], ValueError, "needs at least 2 classes in y. Got 1 class"),
        ([[0.0]], [1], ValueError, "1 sample"),
        (
            [[0.0], [1.0], [2.0]],
            [0.1, 0.7, 0.2],
            ValueError,
            "y must hold classes. Unknown label type: continuous",
        ),
        ([[0.0], [1.0]], ["a", None], ValueError, "the target must not be missing"),
        ([[0.0], [1.0]], None, ValueError, "requires y"),
        (pd.DataFrame({"t": [[1], [2]]}), [0, 1], TypeError, "column 't' holds .*list"),
        (pd.DataFrame({"t": []}), [], ValueError, "a frame with 0 sample"),
    ],
)
def test_bad_tables_are_refused_in_words(X, y, error, message):
    with pytest.raises(error, match=message):
        GingerTreeClassifier().fit(X, y)


def test_weights_that_are_no_repetitions_are_refused():
    with pytest.raises(ValueError, match=r"whole numbers.* Got 0.5"):
        GingerTreeClassifier().fit([[0], [1]], [0, 1], sample_weight=[1, 0.5])
    with pytest.raises(ValueError, match=r"below 2\^31.* Got 4e"):
        GingerTreeClassifier().fit([[0], [1]], [0, 1], sample_weight=[2e9, 2e9])


def test_a_column_that_changes_its_type_is_refused():
    tree = GingerTreeClassifier().fit(pd.DataFrame({"a": ["x", "y"] * 4}), [0, 1] * 4)
    with pytest.raises(ValueError, match=r"column 'a' was large_string at fit. Got int64"):
        tree.predict(pd.DataFrame({"a": [1, 2]}))
    with pytest.raises(ValueError, match="feature names"):
        tree.predict(pd.DataFrame({"b": ["x"]}))


def test_values_of_several_types_are_several_values():
    X = pd.DataFrame({"a": [1, "1", True, None] * 6}, dtype=object)
    tree = GingerTreeClassifier().fit(X, [0, 1, 1, 0] * 6)
    assert tree.predict(X.iloc[:4]).tolist() == [0, 1, 1, 0]
    # New rows that happen to hold one type only, and a value never seen.
    assert tree.predict(pd.DataFrame({"a": ["1", "2"]})).tolist() == [1, 0]


def test_all_missing_columns_are_never_split_on():
    X = pd.DataFrame({"void": [None] * 8, "a": ["x", "y"] * 4})
    tree = GingerTreeClassifier().fit(X, [0, 1] * 4)
    assert tree.support_.tolist() == [False, True]
    assert GingerTreeClassifier().fit(X[["void"]], [0, 1] * 4).n_leaves_ == 1


def test_ids_mislead_gini_and_not_this_tree():
    columns, y = shop()
    new, truth = shop(seed=1)
    used = ["ident", "town", "price"]
    tree = GingerTreeClassifier().fit(pl.DataFrame(columns)[used], y)
    gini = GingerTreeClassifier("gini").fit(pl.DataFrame(columns)[used], y)
    right, fooled = (model.score(pl.DataFrame(new)[used], truth) for model in (tree, gini))
    assert right > fooled + 0.1


# --- numbers ---


def prices(n=600, seed=0):
    """What is spent depends on town and size; ident is an id, noise a column of 20 values."""
    rng = np.random.default_rng(seed)
    town, size = rng.integers(0, 6, n), rng.gamma(2.0, size=n)
    X = pd.DataFrame(
        {
            "ident": [f"{seed}-{i}" for i in range(n)],
            "town": town.astype(str),
            "size": size,
            "noise": rng.integers(0, 20, n).astype(str),
        }
    )
    return X, 50 + 10.0 * (town % 3) + 5 * np.minimum(size, 3) + rng.normal(size=n)


def test_regression_finds_the_columns_that_matter():
    X, y = prices()
    new, truth = prices(seed=1)
    tree = GingerTreeRegressor().fit(X, y)
    assert set(tree.path_.names[:2]) == {"town", "size"}
    assert not tree.support_[0]
    forest = GingerForestRegressor(30, random_state=0).fit(X, y)
    for model in (tree, forest):
        assert model.score(new, truth) > 0.8
        assert model.path_.scores[0] == pytest.approx(np.var(y), rel=0.05)
    assert forest.score(new, truth) > tree.score(new, truth)
    # The estimate is that of the shrunk means on new rows.
    error = np.mean((tree.predict(new) - truth) ** 2)
    assert tree.path_.scores[tree.path_.chosen_size] == pytest.approx(error, rel=0.2)
    text = export_text(tree)
    assert re.match(r"600 rows: mean \d", text)
    assert json.loads(json.dumps(tree.to_dict())) == tree.to_dict()


def test_regression_predicts_the_shrunk_means():
    tree = GingerTreeRegressor(max_splits=1).fit([["a"]] * 3 + [["b"]] * 2, [1.0, 3, 2, 0, 0])
    # Root 6/5; a (6 + 1.2)/4, b (0 + 1.2)/3; a value not seen gets the root's.
    found = tree.predict([["a"], ["b"], ["c"]])
    np.testing.assert_allclose(found, [1.8, 0.4, 1.2])


def test_regression_takes_any_unit_and_weights_as_repetitions():
    X, y = prices(200)
    weight = np.random.default_rng(0).integers(0, 4, 200)
    rows = np.random.default_rng(1).permutation(np.repeat(np.arange(200), weight))
    for model in (GingerTreeRegressor(), GingerForestRegressor(5, random_state=0)):
        predicted = model.fit(X, y, sample_weight=weight).predict(X)
        again = model.fit(X.iloc[rows], y[rows]).predict(X)
        np.testing.assert_allclose(again, predicted)
        for unit in (1e-30, 1e30):
            other = model.fit(X, unit * y, sample_weight=weight).predict(X)
            np.testing.assert_allclose(other, unit * predicted)
        assert np.ptp(model.fit(X, np.full(200, 3.25)).predict(X)) == 0


def test_a_forest_of_numbers_is_stretched_as_rows_out_of_bag_ask():
    rng = np.random.default_rng(0)
    X, new = rng.uniform(size=(2, 300, 4))
    clear = GingerForestRegressor(40, random_state=0).fit(X, 10 * X[:, 0] + 5 * X[:, 1])
    assert clear.stretch_ > 1.02
    assert clear.parent_weight_ < 1
    noise = GingerForestRegressor(40, random_state=0).fit(X, rng.normal(size=300))
    assert noise.stretch_ < 0.5
    assert np.var(noise.predict(new)) < 0.05


def test_a_stretched_forest_stays_within_the_range_of_the_fit():
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(200, 2))
    y = np.exp(3 * X[:, 0]).round(1)
    predicted = GingerForestRegressor(30, random_state=0).fit(X, y).predict(X)
    assert predicted.min() >= y.min()
    assert predicted.max() <= y.max()


@pytest.mark.parametrize("weighted", [False, True])
def test_the_stretch_is_that_of_least_squares_by_hand(weighted):
    X, y = prices(120)
    weight = np.random.default_rng(0).integers(1, 3, 120) if weighted else np.ones(120, int)
    cells = np.column_stack([X["town"].astype("category").cat.codes, X["size"]]).astype(np.int64)
    sample = Sample.from_codes(cells, np.zeros(120, int), weight)
    centred = y - np.average(y, weights=weight)
    bags = Bags.from_sample(sample._replace(label=centred, n_classes=0))
    limits = {"max_splits": None, "max_depth": None, "min_samples_split": 2, "compiled": False}
    features = np.arange(2)
    grown = [grow_on_part(bags, "squared_error", features, 2, seed, limits) for seed in range(6)]

    def mean_of(tree, node, parent_weight):
        n, total = tree.counts[node, :2]
        if node == 0:
            return total / n
        above = mean_of(tree, tree.parent[node], parent_weight)
        return (total + parent_weight * above) / (n + parent_weight)

    best = None
    for parent_weight in (1.0, 0.0, 0.5, 2.0, 4.0):
        average, label, n = [], [], []
        for row in range(len(bags.sample.weight)):
            guesses = [
                (each.weight[k], mean_of(each.tree, each.node[k], parent_weight))
                for each in grown
                for k in np.flatnonzero(each.rows == row)
            ]
            if guesses:
                average.append(sum(w * g for w, g in guesses) / sum(w for w, _ in guesses))
                label.append(bags.sample.label[row])
                n.append(bags.sample.weight[row])
        average, label, n = map(np.array, (average, label, n))
        slope = (n * average * label).sum() / (n * average**2).sum()
        slope = (n.sum() * slope + 5) / (n.sum() + 5)  # five rows of slope 1
        error = (n * (label - slope * average) ** 2).sum()
        if best is None or error < best[0]:
            best = error, slope, parent_weight
    assert out_of_bag_stretch(bags, grown) == pytest.approx(best[1:])


# --- groups and calibration ---


def patients(n_patients=60, per_patient=8, seed=0, numeric=False):
    """Several rows of each patient, whose name tells the answer; so does, a little, the drug."""
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(n_patients), per_patient)
    drug = rng.integers(0, 3, n_patients * per_patient)
    level = 3 * (drug == 0) + 1.5 * rng.normal(size=n_patients)[patient]
    y = level if numeric else (level + rng.logistic(size=len(level)) > 1).astype(int)
    X = pd.DataFrame({"patient": (1000 * seed + patient).astype(str), "drug": drug.astype(str)})
    return X, y, patient


@pytest.mark.parametrize("numeric", [False, True])
def test_a_group_that_is_left_out_whole_does_not_believe_its_own_name(numeric):
    X, y, patient = patients(numeric=numeric)
    new, truth, _ = patients(seed=1, numeric=numeric)
    make = GingerTreeRegressor if numeric else GingerTreeClassifier
    plain, grouped = make().fit(X, y), make().fit(X, y, groups=patient)
    assert plain.support_[0]
    assert grouped.support_.tolist() == [False, True]
    assert grouped.score(new, truth) > 0.0
    forests = GingerForestRegressor if numeric else GingerForestClassifier
    forest = forests(20, random_state=0, max_features=None).fit(X, y, groups=patient)
    assert forest.support_.tolist() == [False, True]


@pytest.mark.parametrize("numeric", [False, True])
def test_a_group_per_row_is_no_groups(numeric):
    X, y, _ = patients(30, numeric=numeric)
    tree, forest = (
        (GingerTreeRegressor(), GingerForestRegressor(4, random_state=0))
        if numeric
        else (GingerTreeClassifier(), GingerForestClassifier(4, random_state=0))
    )
    rows = np.random.default_rng(0).permutation(len(y))
    for model in (tree, forest):
        plain = model.fit(X, y).predict(X)
        np.testing.assert_array_equal(model.fit(X, y, groups=rows).predict(X), plain)


def test_groups_may_be_named_and_ordered_in_any_way():
    X, y, patient = patients(30)
    names = np.array([f"p{g}" for g in patient])
    order = np.random.default_rng(0).permutation(len(y))
    for model in (GingerTreeClassifier(), GingerForestClassifier(5, random_state=0)):
        first = model.fit(X, y, groups=names).predict_proba(X)
        again = model.fit(X.iloc[order], y[order], groups=names[order]).predict_proba(X)
        np.testing.assert_array_equal(again, first)
        doubled = model.fit(X, y, groups=names, sample_weight=np.full(len(y), 2)).predict_proba(X)
        X2 = pd.concat([X, X])
        twice = model.fit(X2, np.append(y, y), groups=np.append(names, names)).predict_proba(X)
        np.testing.assert_array_equal(doubled, twice)


@pytest.mark.parametrize(
    "groups, message",
    [
        (["a"] * 4, "groups must name at least 2 groups, .* Got 1, 'a' in every row"),
        ([0, 1, 0], r"groups must have one value per row, shape \(4,\)"),
        (["a", None, "b", "a"], "groups must name a domain for every row. .* row 1"),
        (["a", 1, "b", "a"], "groups must be all text or all numbers"),
    ],
)
def test_bad_groups_are_refused_in_words(groups, message):
    for model in (
        GingerTreeClassifier(),
        GingerTreeRegressor(),
        GingerForestClassifier(2),
        GingerForestRegressor(2),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit([[0], [1], [0], [1]], [0, 1, 1, 0], groups=groups)
    with pytest.raises(ValueError, match=r"groups need criterion='log_loss'\. Got .*'gini'"):
        GingerTreeClassifier("gini").fit([[0], [1], [0]], [0, 1, 0], groups=[0, 1, 1])


@pytest.mark.parametrize("intercept", [0.0, -2.0])
def test_the_forests_probabilities_are_calibrated(intercept):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, (8000, 6))
    logit = intercept + 1.2 * (X[:, 0] - 2) + 0.8 * (X[:, 1] == X[:, 2]) - 0.6 * (X[:, 3] > 2)
    y = (rng.random(8000) < 1 / (1 + np.exp(-logit))).astype(int)
    X = pd.DataFrame(X.astype(str)).add_prefix("c")
    forest = GingerForestClassifier(60, random_state=0).fit(X[:2000], y[:2000])

    def slope_and_loss():
        p = forest.predict_proba(X[2000:])[:, [1]]
        odds = np.log(p / (1 - p))
        return LogisticRegression(C=1e6).fit(odds, y[2000:]).coef_[0, 0], log_loss(y[2000:], p)

    slope, loss = slope_and_loss()
    assert 0.8 < slope < 1.25
    forest.temperature_ = 1.0
    dull, more = slope_and_loss()
    assert dull > slope
    assert more > loss


def test_the_temperature_does_not_rise_because_a_row_is_missing_from_its_class():
    # Trees without a split say of a row out of bag that its class is rare, because it lacks the
    # row: taken for an error of the trees, that would make the temperature 0.67.
    y = np.arange(200) < 8
    forest = GingerForestClassifier(100, max_depth=0, random_state=0).fit(np.zeros((200, 1)), y)
    assert forest.temperature_ < 0.6
    forest.fit(np.zeros((200, 1)), y, groups=np.arange(200) // 2)
    assert forest.temperature_ < 0.6


def test_the_temperature_is_that_of_all_trees():
    # A row is out of the bags of 7 trees of 20: so few are noisier than all, not less sure.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 8))
    y = rng.random(600) < 1 / (1 + np.exp(-2 * X[:, 0] - X[:, 1]))
    many = GingerForestClassifier(200, random_state=0).fit(X, y).temperature_
    forests = [GingerForestClassifier(20, random_state=seed).fit(X, y) for seed in range(3)]
    few = [forest.temperature_ for forest in forests]
    assert np.mean(few) < 1.25 * many


@pytest.mark.parametrize("kind", ["text", "integers"])
@pytest.mark.parametrize(
    "model",
    [
        GingerTreeClassifier(),
        GingerForestClassifier(n_estimators=10, random_state=0),
        GingerTreeRegressor(),
        GingerForestRegressor(n_estimators=10, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_column_that_looks_like_a_group_is_named(model, kind):
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(80), 5)
    of_classes = hasattr(model, "predict_proba")
    y = (rng.integers(0, 2, 80) if of_classes else rng.normal(size=80))[person]
    ids = 97 * person if kind == "integers" else [None if i == 7 else f"p{i}" for i in person]
    X = pd.DataFrame({"other": rng.integers(0, 25, 400), "person": ids})
    words = rf"{type(model).__name__}: rows with the same value of 'person' .*=X\['person'\]"
    with pytest.warns(UserWarning, match=words) as caught:
        model.fit(X, y)
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y, groups=person)
        model.fit(X, rng.permutation(y))
        model.fit(X.assign(person=np.nan), y)
