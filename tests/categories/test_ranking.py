"""Tables to read: rank_columns, audit_importances, ginger_score."""

from dataclasses import replace
from decimal import Decimal
from functools import partial
from types import SimpleNamespace

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import DataConversionWarning
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from holdtrue import (
    Counts,
    GingerSelector,
    GingerTreeClassifier,
    Ranking,
    SelectionPath,
    audit_importances,
    rank_columns,
)
from holdtrue.categories import OneColumnClassifier, ginger_score
from holdtrue.columns import counting
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


def rows_by_column(ranking):
    return {row["column"]: row for row in ranking}


def assert_same(one, two):
    assert list(one) == list(two)
    assert one.path == two.path


def test_the_table_is_sorted_and_says_why(people):
    ranking = rank_columns(people, "left")
    table = ranking.to_frame()
    assert table["score"].is_monotonic_increasing
    rows = rows_by_column(ranking)
    assert set(table["column"][:3]) == {"age", "plan", "income"}
    assert rows["plan"]["verdict"].startswith("predicts new rows: wrong for 32.2% of rows against")
    assert rows["id"]["id_like"]
    assert rows["id"]["verdict"].startswith(
        "looks like an id: 500 of its 500 values occur once, so that 100% of new rows bring"
    )
    assert "it does not beat no column: wrong for" in rows["id"]["verdict"]
    assert rows["number"]["id_like"]
    # Whole numbers whose bins predict are numbers, however few of them come back.
    assert rows["income"]["coverage"] < 0.5
    assert not rows["income"]["id_like"]
    assert rows["income"]["verdict"].startswith("predicts new rows")
    assert not rows["height"]["id_like"]
    assert rows["height"]["verdict"].startswith("does not beat no column")
    assert rows["country"]["verdict"] == "constant: it has one value only"
    assert rows["height"]["read_as"].endswith("bins")
    assert (rows["plan"]["kind"], rows["plan"]["n_values"]) == ("category", 3)


def test_every_source_gives_the_same_ranking(people, tmp_path):
    expected = rows_by_column(rank_columns(people, "left"))
    arrow = pa.Table.from_pandas(people, preserve_index=False)
    pq.write_table(arrow, tmp_path / "p.parquet", row_group_size=99)
    feather.write_feather(arrow, tmp_path / "p.feather")
    people.to_csv(tmp_path / "p.csv", index=False)
    sources = {
        "polars": pl.from_pandas(people),
        "arrow": arrow,
        "parquet": tmp_path / "p.parquet",
        "feather": str(tmp_path / "p.feather"),
        "csv": tmp_path / "p.csv",
        "table": open_table(people),
    }
    for name, source in sources.items():
        found = rows_by_column(rank_columns(source, "left"))
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
    assert_same(rank_columns(X, people["left"]), rank_columns(people, "left"))
    first = next(iter(rank_columns(people, "height")))
    assert first["no_column"] == pytest.approx(81, rel=0.2)
    array = rank_columns(X[["age", "number"]].to_numpy(), people["left"])
    assert [row["column"] for row in array] == ["x0", "x1"]


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
    wanted = list(rank_columns(tmp_path / "shop.parquet", "y"))
    assert [row["kind"] for row in wanted] == ["number"] * 3
    assert all(row["predicts"] for row in wanted)
    assert list(rank_columns(frame, "y")) == wanted
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
            assert_same(rank_columns(X, target), rank_columns(X, y))
        with pytest.warns(DataConversionWarning):
            assert ginger_score(numbers, target) == ginger_score(numbers, y)
    with pytest.raises(ValueError, match="1d array"):
        rank_columns(X, people[["left", "age"]])
    with pytest.raises(ValueError, match="rank_columns: the target must not be missing"):
        rank_columns(X, np.where(y, np.nan, 1.5))


@pytest.mark.filterwarnings("ignore:GingerSelector. keeps nothing")
@pytest.mark.parametrize("mixed", [False, True])
def test_numbers_kept_as_objects_are_a_numeric_target(people, mixed):
    X, y = people[["age", "left"]], people["height"].to_numpy(copy=True)
    objects = y.astype(object)
    if mixed:
        y[0], objects[0] = 171, 171
    assert_same(rank_columns(X, objects), rank_columns(X, y))
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


@pytest.mark.parametrize("label", ["aa", "z"])
def test_a_class_of_weight_0_changes_nothing_wherever_its_rows_are(label):
    # The last class, on a row with the last value, was counted beyond the end of the table.
    X = pd.DataFrame({"x": ["u", "v", "w", "w", "u", "v"]})
    y, weight = np.array(["a", "b", "a", label, "b", "a"]), np.array([1, 2, 1, 0, 1, 1])
    used = weight > 0
    rest = rank_columns(X[used], y[used], sample_weight=weight[used])
    assert list(rank_columns(X, y, sample_weight=weight)) == list(rest)


def test_what_cannot_be_ranked_is_refused(people, tmp_path):
    with pytest.raises(ValueError, match=r"rank_columns: no column 'lft'. Did you mean 'left'"):
        rank_columns(people, "lft")
    people.to_csv(tmp_path / "train.csv", index=False)
    with pytest.raises(ValueError, match=r"no column 'lft' in train.csv. Did you mean 'left'"):
        rank_columns(tmp_path / "train.csv", "lft")
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    with pytest.raises(ValueError, match=r"rank_columns: a.png is not a table"):
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
        rows = rows_by_column(table.to_dict("records"))
        assert not rows["age"]["flagged"]
        assert not rows["plan"]["flagged"]
        for name in ("id", "height"):
            cost, error = rows[name]["cost"], rows[name]["cost_standard_error"]
            is_missed = cost > (error if name == "id" else 0)
            assert rows[name]["flagged"] != is_missed
            before = rows[name]["importance_rank"] < rows["plan"]["importance_rank"]
            is_said = "more than 'plan' (3 values), which predicts" in rows[name]["why"]
            assert is_said == (before and not is_missed)
            assert ("miss it" in rows[name]["why"]) == (is_missed and cost <= error)
        assert np.isnan(rows["age"]["cost"])
        assert rows["id"]["flagged"]
    assert rows["age"]["score_rank"] == 1


def test_the_gain_of_lightgbm_is_asked_for(people):
    class Booster:
        def feature_importance(self, kind):
            assert kind == "gain"
            return [30, 10]

    class LightGBM:
        booster_ = Booster()

    X = people[["height", "age"]]
    table = audit_importances(LightGBM(), X, people["left"])
    assert table["importance"].tolist() == [0.75, 0.25]
    assert table["flagged"].tolist() == [True, False]


def test_importances_follow_the_names_of_the_columns(people):
    X, y = people[["number", "age", "height"]], people["left"]
    forest = RandomForestClassifier(10, random_state=0).fit(X, y)
    wanted = audit_importances(forest, X, y)
    turned = audit_importances(forest, X[["height", "age", "number"]], y)
    fixed = ["column", "importance", "score", "n_values"]  # a forest draws other columns
    pd.testing.assert_frame_equal(turned[fixed], wanted[fixed])
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
    table = rows_by_column(audit_importances(LightGBM(), X, people["left"]).to_dict("records"))
    assert table["age"]["importance"] == (0.75 if own[0] == "age" else 0.25)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_pipeline_is_audited_through_permutation(people, library):
    X, y = people[["id", "plan", "height"]].iloc[::-1], people["left"].to_numpy()[::-1]
    X = X if library == "pandas" else pl.from_pandas(X)
    texts = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["id", "plan"]), (StandardScaler(), ["height"])
    )
    model = make_pipeline(texts, LogisticRegression()).fit(X, y)
    table = audit_importances(model, X, y)
    assert isinstance(table, type(X))
    rows = rows_by_column(table.to_dict("records") if library == "pandas" else table.to_dicts())
    # The ids are learned by heart on these rows, and worth nothing on others.
    assert rows["id"]["importance"] > 0.05
    assert abs(rows["id"]["cost"]) < 0.001
    assert rows["id"]["flagged"]
    assert not rows["plan"]["flagged"]


def test_the_cost_of_dropping_is_that_of_a_fit_without_the_column(people):
    X, y = people[["height", "age"]].to_numpy(), people["left"].to_numpy()
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X, y)
    table = rows_by_column(audit_importances(model, X, y).to_pylist())
    folds = StratifiedKFold(5, shuffle=True, random_state=0)

    def loss(columns):
        q = cross_val_predict(clone(model), columns, y, cv=folds, method="predict_proba")
        return np.square(q - (y[:, None] == [False, True])).sum(axis=1).mean()

    assert table["x0"]["cost"] == pytest.approx(loss(X[:, 1:]) - loss(X), abs=1e-12)


def test_a_column_that_helps_only_with_another_is_not_flagged():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (800, 3))
    y = X[:, 0] ^ X[:, 1]
    model = RandomForestClassifier(20, random_state=0).fit(X, y)
    table = rows_by_column(audit_importances(model, X, y).to_pylist())
    assert not table["x0"]["flagged"]
    assert not table["x1"]["flagged"]
    assert table["x0"]["cost"] > 0.3
    assert "the model misses it" in table["x0"]["why"]


@pytest.mark.parametrize("rare", [["rare"], ["rare", "rarest"], ["rare", "rare", "rarest"]])
def test_a_row_alone_in_its_class_is_in_every_fit_of_the_audit(rare):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.permutation(40), rng.normal(size=40)])
    y = np.array(["most"] * 40, dtype=object)
    y[: len(rare)] = rare
    # Logistic regression refuses to be fitted on one class.
    for model in (LogisticRegression(max_iter=5000), DecisionTreeClassifier(random_state=0)):
        table = rows_by_column(audit_importances(model.fit(X, y), X, y).to_pylist())
        assert np.isfinite([row["cost"] for row in table.values() if row["flagged"]]).all()


@pytest.mark.parametrize("n_rows", [2, 3, 4, 5])
def test_few_rows_are_audited_in_as_many_folds_as_there_are(n_rows):
    rng = np.random.default_rng(n_rows)
    X = np.column_stack([rng.permutation(n_rows), rng.normal(size=n_rows)])
    number = DecisionTreeRegressor(random_state=0).fit(X, np.arange(n_rows) / 3)
    table = audit_importances(number, X, np.arange(n_rows) / 3).to_pylist()
    suspects = [row for row in table if row["importance"] >= 0.01 and not row["predicts"]]
    assert np.isfinite([row["cost"] for row in suspects]).all()
    names = [f"class {i}" for i in range(n_rows)]  # each row alone in its class: none is left out
    tree = DecisionTreeClassifier(random_state=0).fit(X, names)
    table = audit_importances(tree, X, names).to_pylist()
    assert np.isnan([row["cost"] for row in table]).all()


def test_classes_that_are_decimals_are_right_or_wrong():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 2)), np.repeat([0.0, 7.0, 14.0], 30)
    with_decimals = audit_importances(LinearSVC(random_state=0).fit(X, y), X, y)
    y = y.astype(int)
    whole = audit_importances(LinearSVC(random_state=0).fit(X, y), X, y)
    for name in ("importance", "cost"):
        costs = whole[name].to_numpy()
        np.testing.assert_allclose(with_decimals[name].to_numpy(), costs, atol=1e-12)
    assert np.isfinite(costs).any()


def test_rows_without_a_class_that_the_model_knows_are_audited():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 2)), np.repeat(["a", "b", "c"], 30)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    assert audit_importances(model, X[:60], y[:60]).num_rows == 2


def test_names_of_columns_may_be_numbers(people):
    X, y = people[["height", "number"]], people["left"]
    forest = RandomForestClassifier(10, random_state=0).fit(X.to_numpy(), y)
    wanted = audit_importances(forest, X, y)
    table = audit_importances(forest, X.set_axis([0, 1], axis=1), y)
    np.testing.assert_allclose(table["cost"], wanted["cost"], atol=1e-12)
    assert np.isfinite(table["cost"]).any()


class CopiesItsColumns(DecisionTreeRegressor):
    """A regressor as CatBoost writes them: no class is an empty list, a parameter is a copy."""

    classes_ = ()

    def __init__(self, columns=()):
        super().__init__(random_state=0)
        self.columns = list(columns)


def test_a_regressor_with_an_empty_list_of_classes_is_audited_as_one(people):
    X, y = people[["number", "age"]], people["height"].to_numpy()
    with pytest.raises(RuntimeError, match="Cannot clone"):
        clone(CopiesItsColumns(["number"]))
    for target in (y, np.round(y)):
        wanted = audit_importances(DecisionTreeRegressor(random_state=0).fit(X, target), X, target)
        table = audit_importances(CopiesItsColumns(["number"]).fit(X, target), X, target)
        assert np.isfinite(table["cost"]).all()
        pd.testing.assert_frame_equal(table, wanted)


def test_a_model_that_cannot_be_copied_has_no_cost(people):
    class Own:
        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.asarray(X)[:, 0] == 10_001

    X = people[["number"]]
    table = audit_importances(Own(), X, X["number"] == 10_001)
    assert table["importance"].tolist() == [1.0]
    assert table["cost"].isna().all()


def test_models_without_importances_are_refused(people):
    X = people[["number", "age"]]
    with pytest.raises(TypeError, match="expected a fitted model that predicts, or has"):
        audit_importances(GingerSelector(), X, people["left"])
    forest = RandomForestClassifier(3).fit(X, people["left"])
    with pytest.raises(ValueError, match=r"the 2 columns that the model was fitted on. Got 1"):
        audit_importances(forest, X[["age"]], people["left"])


# --- the Ranking itself -------------------------------------------------------------------------

COLUMNS = [
    "column", "score", "standard_error", "low", "high", "no_column", "skill",
    "share_wrong", "n_values", "coverage", "kind", "read_as", "id_like", "predicts", "verdict",
]  # fmt: skip


def test_a_ranking_becomes_any_kind_of_frame(people):
    ranking = rank_columns(people, "left")
    frames = {
        "pandas": (ranking.to_frame("pandas"), pd.DataFrame(ranking)),
        "polars": (ranking.to_frame("polars"), pl.DataFrame(ranking)),
        "pyarrow": (ranking.to_frame("pyarrow"), pa.table(ranking)),
    }
    rows = list(ranking)
    assert (len(ranking), list(rows[0])) == (len(people.columns) - 1, COLUMNS)
    for name, pair in frames.items():
        for frame in pair:
            assert list(nw.from_native(frame).columns) == COLUMNS, name
            assert nw.from_native(frame).rows(named=True) == rows, name
    native = nw.from_native(ranking, eager_only=True)
    assert native["column"].to_list() == [row["column"] for row in rows]
    with pytest.raises(ValueError, match=r"Ranking: backend must be one of .*Got 'panda'. Did you"):
        ranking.to_frame("panda")


def test_skill_is_the_share_of_the_error_that_a_column_removes(people):
    for row in rank_columns(people, "left"):
        assert row["skill"] == pytest.approx(1 - row["score"] / row["no_column"])
        assert row["low"] <= row["score"] <= row["high"]


def test_a_ranking_reads_well(people):
    ranking = rank_columns(people, "left")
    lines = str(ranking).splitlines()
    assert lines[0].split() == [
        *("column", "score", "from", "to", "skill", "wrong", "values", "in", "short")
    ]
    assert lines[1].split()[:2] == ["1", next(iter(ranking))["column"]]
    assert any("looks like an id; no better than no column" in line for line in lines)
    assert lines[-1].endswith(
        "beat no column by more than 1 standard error; scores: log loss on new rows, of class "
        "shares shrunk to those of all rows"
    )
    assert repr(ranking) == str(ranking)
    html = rank_columns(people.rename(columns={"plan": "<b>"}), "left")._repr_html_()
    assert "<td>&lt;b&gt;</td>" in html
    wide = pd.DataFrame({f"c{j}": people["age"] for j in range(40)} | {"left": people["left"]})
    assert str(rank_columns(wide, "left")).endswith("; 10 more columns in to_frame()")


def without_pairs(path):
    """The path without what columns add to each other, which a selector does not look at."""
    return replace(path, evidence=replace(path.evidence, adds_to=(), adds=(), misses=()))


def test_the_path_of_a_ranking_is_the_selectors(people):
    ranking = rank_columns(people, "left")
    selector = GingerSelector().fit(people.drop(columns="left"), people["left"])
    assert without_pairs(ranking.path) == selector.path_
    assert SelectionPath.from_json(ranking.path.to_json()) == ranking.path
    evidence = ranking.path.evidence
    assert evidence.names == tuple(people.columns[:-1])
    np.testing.assert_array_equal(evidence.predicts, selector.support_)
    np.testing.assert_array_equal(evidence.gain_low, selector.gain_intervals_[:, 0])
    forward = GingerSelector(mode="forward").fit(people.drop(columns="left"), people["left"])
    assert forward.path_.evidence == without_pairs(ranking.path).evidence
    in_sample = rank_columns(people, "left", criterion="gini").path.evidence
    assert (in_sample.in_sample, evidence.in_sample) == (True, False)
    with pytest.raises(TypeError, match=r"Ranking: expected a path with ColumnEvidence"):
        Ranking(SelectionPath([], [], [1.0], 0, "nothing"))


def test_a_ranking_is_drawn(people):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    ranking = rank_columns(people, "left")
    display = ranking.plot(max_columns=2)
    labels = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    assert labels == [row["column"] for row in ranking][:2]
    pyplot.close("all")


@pytest.mark.parametrize("n_jobs", [2, 99, -1])
def test_threads_give_the_same_ranking(people, n_jobs):
    assert_same(rank_columns(people, "left", n_jobs=n_jobs), rank_columns(people, "left"))


def test_an_error_in_a_thread_ends_the_ranking(people):
    lists = people.assign(late=[[1]] * len(people))
    with pytest.raises(TypeError, match="column 'late' holds values that cannot be counted"):
        rank_columns(lists, "left", n_jobs=2)


def test_types_and_encoding_are_those_of_the_file(people, tmp_path):
    people.assign(number=people["age"] + 10).to_csv(tmp_path / "p.csv", index=False)
    rows = rows_by_column(rank_columns(tmp_path / "p.csv", "left", types={"number": "text"}))
    assert rows["number"]["kind"] == "category"
    assert rows["age"]["kind"] == "integer"
    (tmp_path / "latin.csv").write_bytes("plan,left\nä,1\nö,0\n".encode("latin-1") * 1)
    rank_columns(tmp_path / "latin.csv", "left", encoding="latin-1")
    with pytest.raises(ValueError, match="Pass types and encoding to open_table"):
        rank_columns(open_table(people), "left", types={"age": "text"})


# --- classes or a number ------------------------------------------------------------------------


def test_whole_numbers_with_many_values_are_a_number():
    from sklearn.datasets import load_diabetes

    data = load_diabetes(as_frame=True)
    ranking = rank_columns(data.data, data.target)
    assert ranking.path.unit == "squared error on new rows"
    assert ranking.path.chosen_size >= 5
    selector = GingerSelector().fit(data.data, data.target.astype(int))
    assert selector.path_ == without_pairs(ranking.path)


@pytest.mark.parametrize(
    ("n_values", "n_rows", "is_numeric"), [(20, 100, False), (20, 99, True), (21, 200, True)]
)
def test_grades_are_classes_up_to_twenty_values_of_five_rows(n_values, n_rows, is_numeric):
    y = np.arange(n_rows) % n_values
    X = pd.DataFrame({"x": np.where(np.arange(n_rows) % 2, "odd", "even")})
    unit = "squared error on new rows" if is_numeric else "log loss on new rows"
    assert rank_columns(X, y).path.unit == unit
    assert GingerSelector(min_features=1).fit(X, y).path_.unit == unit
    assert rank_columns(X, y, target_type="numeric").path.unit == "squared error on new rows"
    assert rank_columns(X, y, target_type="classes").path.unit == "log loss on new rows"


def test_more_than_a_hundred_classes_are_refused():
    y = np.array([f"c{i}" for i in range(101)] * 2)
    X = pd.DataFrame({"x": y})
    for call in (
        lambda: rank_columns(X, y),
        lambda: GingerSelector().fit(X, y),
        lambda: GingerTreeClassifier().fit(X, y),
        lambda: OneColumnClassifier().fit(X, y),
        lambda: Counts.from_arrays(X, y),
        lambda: Counts.from_arrays(X[:60], y[:60]) + Counts.from_arrays(X[60:], y[60:]),
    ):
        with pytest.raises(ValueError, match=r"^\w+: the target must have at most 100 classes"):
            call()
    assert len(rank_columns(X[y != "c0"], y[y != "c0"])) == 1


def test_integers_in_a_classifier_are_classes_however_many_rows():
    X, y = [["a"], ["b"], ["c"], ["a"], ["b"], ["c"]], [1, 2, 3, 1, 2, 3]
    for model in (GingerTreeClassifier(), OneColumnClassifier()):
        assert model.fit(X, y).classes_.tolist() == [1, 2, 3]


@pytest.mark.parametrize("criterion", ["log_loss", "ginger", "brier"])
def test_compiled_loops_score_groups_as_numpy_does(criterion, monkeypatch):
    rng = np.random.default_rng(0)
    n = 3000
    frame = {
        "whole": pa.array(rng.integers(0, 300, n), mask=rng.random(n) < 0.1),
        "number": rng.normal(size=n),
        "text": [f"v{i}" for i in rng.zipf(1.5, n) % 50],
        "id": np.arange(n),
        "y": rng.integers(0, 3, n),
        "who": rng.integers(0, 200, n),
    }
    table = pa.table(frame)
    found = {}
    for long, short in ((1 << 62, 1 << 62), (0, 0)):
        monkeypatch.setattr(counting, "LONG", long)
        monkeypatch.setattr(counting, "_SHORT", short)
        ranking = rank_columns(table, "y", groups="who", criterion=criterion)
        found[long] = ranking.path.evidence
    for field in ("scores", "standard_errors", "no_column", "coverage", "n_values", "share_wrong"):
        np.testing.assert_allclose(
            getattr(found[0], field), getattr(found[1 << 62], field), rtol=1e-12, err_msg=field
        )
    assert found[0].read_as == found[1 << 62].read_as


@pytest.mark.parametrize("kind", [pa.int32(), pa.dictionary(pa.int8(), pa.int64())])
def test_whole_numbers_taken_by_value_are_not_row_numbers(kind):
    codes = pa.array([1000, 2000] * 30)
    column = codes.dictionary_encode() if pa.types.is_dictionary(kind) else codes.cast(kind)
    table = pa.table({"code": column, "y": ["a", "b"] * 30})
    (row,) = rank_columns(table, "y", categorical_features=["code"])
    assert row["kind"] == "category"
    assert row["n_values"] == 2


def test_names_of_pandas_that_are_numbers_are_names():
    rows = np.arange(60)
    frame = pd.DataFrame({0: rows % 2, 1: rows % 2 == 1, 2: rows // 6, "None": rows % 5})
    text = frame.rename(columns=str)
    for options in ({}, {"groups": 2}):
        asked = {name: str(value) for name, value in options.items()}
        assert str(rank_columns(frame, 1, **options)) == str(rank_columns(text, "1", **asked))


@pytest.mark.parametrize("target", [0, None])
def test_a_target_that_is_neither_a_name_nor_rows_is_refused(target):
    with pytest.raises(ValueError, match=f"one value per row. Got {target}"):
        rank_columns(np.zeros((4, 2)), target)


@pytest.mark.parametrize("criterion", ["log_loss", "ginger"])
def test_a_column_known_in_one_group_scores_as_no_column_on_new_groups(criterion):
    rng = np.random.default_rng(0)
    group = np.repeat(["a", "b", "c", "d"], 25)
    y = rng.random(100) < np.repeat([0.1, 0.3, 0.5, 0.7], 25)
    sparse = pa.array(rng.integers(0, 3, 100).astype(str), mask=group != "a")
    data = pa.table({"sparse": sparse, "full": rng.integers(0, 3, 100).astype(str)})
    frame = rank_columns(data, y, groups=group, missing="ignore", criterion=criterion).to_frame()
    rows = frame.set_index("column")
    assert rows.no_column["sparse"] == rows.score["sparse"] == rows.no_column["full"]
