"""Tables to read: rank_columns, audit_importances, ginger_score."""

from decimal import Decimal
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import DataConversionWarning
from sklearn.feature_selection import SelectKBest

from holdtrue import (
    Counts,
    GingerSelector,
    GingerTreeClassifier,
    audit_importances,
    rank_columns,
)
from holdtrue.categories import OneColumnClassifier, ginger_score
from holdtrue.tables import open_table


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    n = 500
    age = rng.integers(18, 80, n)
    plan = rng.choice(["free", "basic", "pro"], n)
    return pd.DataFrame(
        {
            "id": [f"u{i:05d}" for i in rng.permutation(n)],
            "number": rng.permutation(n) + 10_000,
            "income": np.round(age * 1000 + rng.normal(0, 5000, n)).astype(int),
            "age": age,
            "plan": plan,
            "height": rng.normal(170, 9, n),
            "country": ["no"] * n,
            "left": rng.random(n) < 0.1 + 0.4 * (age > 50) + 0.3 * (plan == "free"),
        }
    )


def rows_by_column(table):
    table = pa.Table.from_pandas(table) if isinstance(table, pd.DataFrame) else table
    rows = table.to_dicts() if isinstance(table, pl.DataFrame) else table.to_pylist()
    return {row["column"]: row for row in rows}


def test_the_table_is_sorted_and_says_why(people):
    table = rank_columns(people, "left")
    assert table["score"].is_monotonic_increasing
    rows = rows_by_column(table)
    assert set(table["column"][:3]) == {"age", "plan", "income"}
    assert rows["plan"]["verdict"].startswith("predicts new rows: 0.")
    assert rows["id"]["id_like"]
    assert rows["id"]["verdict"].startswith(
        "looks like an id: 500 of its 500 values occur once, so that 100% of new rows bring"
    )
    assert "does not beat no column: 0.5" in rows["id"]["verdict"]
    assert rows["number"]["id_like"]
    assert rows["income"]["id_like"]
    assert "as a number in" in rows["income"]["verdict"]
    assert not rows["height"]["id_like"]
    assert rows["height"]["verdict"].startswith("does not beat no column")
    assert rows["country"]["verdict"] == "constant: it has one value only"
    assert rows["height"]["read_as"].endswith("bins")
    assert (rows["plan"]["kind"], rows["plan"]["n_values"]) == ("category", 3)


def test_every_source_gives_the_same_table_in_its_own_kind(people, tmp_path):
    expected = rows_by_column(rank_columns(people, "left"))
    arrow = pa.Table.from_pandas(people, preserve_index=False)
    pq.write_table(arrow, tmp_path / "p.parquet", row_group_size=99)
    feather.write_feather(arrow, tmp_path / "p.feather")
    people.to_csv(tmp_path / "p.csv", index=False)
    sources = {
        "polars": (pl.from_pandas(people), pl.DataFrame),
        "arrow": (arrow, pa.Table),
        "parquet": (tmp_path / "p.parquet", pa.Table),
        "feather": (str(tmp_path / "p.feather"), pa.Table),
        "csv": (tmp_path / "p.csv", pa.Table),
        "table": (open_table("us", people), pa.Table),
    }
    for name, (source, kind) in sources.items():
        table = rank_columns(source, "left")
        assert isinstance(table, kind), name
        found = rows_by_column(table)
        assert list(found) == list(expected), name
        assert found == expected, name


def test_the_scores_are_the_selectors(people):
    X = people.drop(columns="left")
    for criterion in ("ginger", "majority", "gain_ratio"):
        rows = rows_by_column(rank_columns(people, "left", criterion=criterion))
        selector = GingerSelector(criterion).fit(X, people["left"])
        for j, name in enumerate(X):
            assert rows[name]["score"] == selector.scores_[j]
            assert rows[name]["low"] == selector.intervals_[j, 0]


def test_the_target_may_stand_apart_and_be_numeric(people):
    X = people.drop(columns="left")
    pd.testing.assert_frame_equal(rank_columns(X, people["left"]), rank_columns(people, "left"))
    table = rank_columns(people, "height")
    assert table["no_column"][0] == pytest.approx(81, rel=0.2)
    array = rank_columns(X[["age", "number"]].to_numpy(), people["left"])
    assert array["column"].to_pylist() == ["x0", "x1"]


def test_dates_and_decimals_of_pandas_are_those_of_the_file(tmp_path):
    rng = np.random.default_rng(0)
    days = rng.permutation(300)
    table = pa.table(
        {
            "day": pa.array(days.astype("M8[D]")),
            "price": pa.array([Decimal(int(i)).scaleb(-2) for i in days]),
            "opens": pa.array(days * 60, pa.int32()).cast(pa.time32("s")),
            "y": (days > 150) ^ (rng.random(300) < 0.1),
        }
    )
    pq.write_table(table, tmp_path / "shop.parquet")
    frame = pd.read_parquet(tmp_path / "shop.parquet")
    assert {frame[name].dtype for name in ("day", "price", "opens")} == {np.dtype(object)}
    wanted = rank_columns(tmp_path / "shop.parquet", "y").to_pylist()
    assert [row["kind"] for row in wanted] == ["number"] * 3
    assert all(row["predicts"] for row in wanted)
    assert rank_columns(frame, "y").to_dict("records") == wanted
    X = frame.drop(columns="y")
    selector = GingerSelector().fit(X, frame["y"])
    assert selector.support_.all()
    assert GingerTreeClassifier().fit(X, frame["y"]).score(X, frame["y"]) > 0.8
    parts = Counts.from_batches([frame[:7], frame[7:90], frame[90:]], "y")
    np.testing.assert_array_equal(GingerSelector().fit_statistics(parts).scores_, selector.scores_)


def test_a_target_of_one_column_is_taken_as_the_selector_takes_it(people):
    X, y = people[["age", "plan"]], people["left"]
    numbers = X[["age"]].to_numpy()
    for target in (y.to_numpy()[:, None], y.to_frame(), pl.DataFrame({"left": y})):
        with pytest.warns(DataConversionWarning):
            pd.testing.assert_frame_equal(rank_columns(X, target), rank_columns(X, y))
        with pytest.warns(DataConversionWarning):
            assert ginger_score(numbers, target) == ginger_score(numbers, y)
    with pytest.raises(ValueError, match="1d array"):
        rank_columns(X, people[["left", "age"]])
    with pytest.raises(ValueError, match="rank_columns: the target must not be missing"):
        rank_columns(X, np.where(y, np.nan, 1.5))


@pytest.mark.parametrize("mixed", [False, True])
def test_numbers_kept_as_objects_are_a_numeric_target(people, mixed):
    X, y = people[["age", "left"]], people["height"].to_numpy(copy=True)
    objects = y.astype(object)
    if mixed:
        y[0], objects[0] = 171, 171
    pd.testing.assert_frame_equal(rank_columns(X, objects), rank_columns(X, y))
    selector = GingerSelector().fit(X, objects)
    np.testing.assert_array_equal(selector.scores_, GingerSelector().fit(X, y).scores_)
    for model in (GingerTreeClassifier(), OneColumnClassifier()):
        with pytest.raises(ValueError, match="Unknown label type: continuous"):
            model.fit(X, objects)


def test_weights_are_repetitions(people):
    weight = np.random.default_rng(0).integers(0, 3, len(people))
    repeated = people.loc[people.index.repeat(weight)]
    weighted = rows_by_column(rank_columns(people, "left", sample_weight=weight))
    for name, row in rows_by_column(rank_columns(repeated, "left")).items():
        assert weighted[name]["score"] == row["score"]


def test_what_cannot_be_ranked_is_refused(people, tmp_path):
    with pytest.raises(ValueError, match=r"rank_columns: no column 'lft'. Did you mean 'left'"):
        rank_columns(people, "lft")
    people.to_csv(tmp_path / "train.csv", index=False)
    with pytest.raises(ValueError, match=r"no column 'lft' in train.csv. Did you mean 'left'"):
        rank_columns(tmp_path / "train.csv", "lft")
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    with pytest.raises(ValueError, match=r"rank_columns: a.png is no table"):
        rank_columns(tmp_path / "a.png", "left")
    for target in ("plan", people["plan"]):
        with pytest.raises(ValueError, match=r"rank_columns: a numeric target .* the text '"):
            rank_columns(people, target, target_type="numeric")
    twice = people.rename(columns={"age": "plan"})
    with pytest.raises(
        ValueError, match=r"rank_columns: column names must .* Got 'plan' more than"
    ):
        rank_columns(twice, "left")
    with pytest.raises(FileNotFoundError, match="rank_columns: no file"):
        rank_columns(tmp_path / "gone.parquet", "left")
    with pytest.raises(ValueError, match=r"rank_columns: criterion must be one of"):
        rank_columns(people, "left", criterion="entropy")
    with pytest.raises(ValueError, match=r"rank_columns: the target must not be missing"):
        rank_columns(people.assign(left=None), "left")
    with pytest.raises(ValueError, match="rank_columns: needs at least 2 classes"):
        rank_columns(people, "country")
    with pytest.raises(TypeError, match="rank_columns: expected a data frame"):
        rank_columns([1, 2], "left")
    with pytest.raises(TypeError, match="rank_columns: column 'tags' holds"):
        rank_columns(people.assign(tags=[["a"]] * len(people)), "left")


def test_score_functions_serve_select_k_best(people):
    X = people[["number", "age", "income"]].to_numpy()
    best = SelectKBest(ginger_score, k=1).fit(X, people["left"])
    assert best.get_support().tolist() == [False, True, False]
    gains = ginger_score(X, people["left"])
    assert gains.argmax() == 1
    majority = SelectKBest(partial(ginger_score, criterion="majority"), k=2)
    assert majority.fit(X, people["left"]).get_support()[1]


def test_importances_owed_to_many_values_are_flagged(people):
    X = people.drop(columns=["left", "country", "income"])
    X = X.assign(id=X["id"].str[1:].astype(int), plan=pd.factorize(X["plan"])[0])
    y = people["left"]
    for model in (RandomForestClassifier(30, random_state=0), GradientBoostingClassifier()):
        table = audit_importances(model.fit(X, y), X, y)
        assert isinstance(table, pd.DataFrame)
        assert table["importance"].sum() == pytest.approx(1)
        assert table["importance_rank"].tolist() == [1, 2, 3, 4, 5]
        rows = rows_by_column(table)
        assert not rows["age"]["flagged"]
        assert not rows["plan"]["flagged"]
        for name in ("id", "number", "height"):
            before = rows[name]["importance_rank"] < rows["plan"]["importance_rank"]
            assert rows[name]["flagged"] == before
            if before:
                assert "before 'plan' (3 values), which predicts" in rows[name]["why"]
    assert rows["age"]["score_rank"] == 1


def test_the_gain_of_lightgbm_is_asked_for(people):
    class Booster:
        def feature_importance(self, kind):
            assert kind == "gain"
            return [30, 10]

    class LightGBM:
        booster_ = Booster()

    X = people[["number", "age"]]
    table = audit_importances(LightGBM(), X, people["left"])
    assert table["importance"].tolist() == [0.75, 0.25]
    assert table["flagged"].tolist() == [True, False]


def test_importances_follow_the_names_of_the_columns(people):
    X, y = people[["number", "age", "height"]], people["left"]
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    wanted = audit_importances(forest, X, y)
    pd.testing.assert_frame_equal(
        audit_importances(forest, X[["height", "age", "number"]], y), wanted
    )
    array = audit_importances(forest, X.to_numpy(), y)
    assert array["importance"].to_pylist() == wanted["importance"].tolist()
    unnamed = RandomForestClassifier(10, random_state=0).fit(X.to_numpy(), y)
    pd.testing.assert_frame_equal(audit_importances(unnamed, X, y), wanted)
    with pytest.raises(ValueError, match=r"Missing: \['age'\]. New: \['Age'\]. Pass what"):
        audit_importances(forest, X.rename(columns={"age": "Age"}), y)


@pytest.mark.parametrize(
    "own", [["a_number", "age"], ["age", "a_number"], ["Column_0", "Column_1"]]
)
def test_names_are_found_as_lightgbm_writes_them(people, own):
    class LightGBM:
        booster_ = SimpleNamespace(feature_importance=lambda kind: [30, 10])
        feature_names_in_ = np.array(own)

    X = people[["number", "age"]].rename(columns={"number": "a number"})
    table = rows_by_column(audit_importances(LightGBM(), X, people["left"]))
    assert table["age"]["importance"] == (0.75 if own[0] == "age" else 0.25)


def test_models_without_importances_are_refused(people):
    X = people[["number", "age"]]
    with pytest.raises(TypeError, match="expected a fitted model with feature_importances_"):
        audit_importances(GingerSelector(), X, people["left"])
    forest = RandomForestClassifier(3).fit(X, people["left"])
    with pytest.raises(ValueError, match=r"the 2 columns that the model was fitted on. Got 1"):
        audit_importances(forest, X[["age"]], people["left"])
