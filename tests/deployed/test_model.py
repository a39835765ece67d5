"""Saved models: what they read, what they predict, and what a file may hold."""

import importlib.util
import json
import pickle
import warnings
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import RidgeCV
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeRegressor

from holdtrue import NestedRegressor, SavedModel, SteadyRidgeRegressor, deploy, load_model
from holdtrue.compare import DomainAverageClassifier
from holdtrue.compare.field import default_models
from holdtrue.deployed.contents import KNOWN_TYPES, slim
from holdtrue.files import UnfitFile, _types, dump_skops, load_skops
from holdtrue.tables import TableEncoder

pytestmark = pytest.mark.skipif(not importlib.util.find_spec("skops"), reason="skops is missing")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    n = 120
    frame = pd.DataFrame(
        {
            "dose": rng.normal(50, 9, n).round(3),
            "plan": rng.choice(["free", "paid", "team"], n),
            "smoker": rng.random(n) < 0.3,
            "seen": pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 99, n), "D"),
            "site": rng.choice(list("NSWE"), n),
        }
    )
    frame.loc[::9, "dose"] = np.nan
    frame["y"] = frame["dose"].fillna(50) / 9 + 2 * (frame["plan"] == "paid") + rng.normal(0, 1, n)
    frame["sick"] = np.where(frame["y"] > 6, "yes", "no")
    return frame


@pytest.fixture(scope="module")
def model(rows):
    return deploy(SteadyRidgeRegressor(), rows.drop(columns="sick"), "y", groups="site")


@pytest.fixture
def file(model, tmp_path):
    model.save(tmp_path / "model.skops")
    return tmp_path / "model.skops"


# --- what it predicts ---


def test_a_loaded_model_predicts_what_the_saved_one_does(model, file, rows):
    again = load_model(file)
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    assert again.promise == model.promise
    assert again.promise.groups == "site"
    assert repr(again) == repr(model)


def test_columns_may_come_in_any_order_and_kind_of_frame(model, rows):
    expected = model.predict(rows)
    shuffled = rows[["seen", "y", "smoker", "plan", "site", "dose"]].assign(extra=1)
    np.testing.assert_array_equal(model.predict(shuffled), expected)
    np.testing.assert_allclose(model.predict(pa.Table.from_pandas(shuffled)), expected)


def test_a_file_is_read_as_at_the_fit(model, rows, tmp_path):
    rows.to_csv(tmp_path / "new.csv", index=False)
    np.testing.assert_allclose(model.predict(tmp_path / "new.csv"), model.predict(rows))
    empty = rows.head(3).assign(dose=None, plan=["9", "8", "7"])  # looks like numbers, was text
    empty.to_csv(tmp_path / "odd.csv", index=False)
    assert np.isfinite(model.predict(tmp_path / "odd.csv")).all()


def test_columns_that_differ_are_told_with_a_guess(model, rows):
    other = rows.rename(columns={"plan": "Plan"}).drop(columns=["smoker", "sick"])
    with pytest.raises(
        ValueError,
        match=r"^SavedModel: the columns differ .* Missing: 'plan' Did you mean 'Plan'\?; "
        r"'smoker'\. New: 'Plan'\.",
    ):
        model.predict(other)


def test_a_column_of_another_kind_is_refused_with_the_row(model, rows):
    with pytest.raises(ValueError, match=r"column 'dose' .* cannot be read as 'number'.* 'many'"):
        model.predict(rows.astype({"dose": object}).assign(dose="many"))


def test_what_was_not_there_is_counted(model, rows):
    from holdtrue.deployed.model import News

    new = rows.head(10).copy()
    new.loc[:1, "plan"] = "gold"
    new.loc[2, "plan"] = None
    new.loc[:3, "dose"] = 1e6
    news = News()
    list(model.batches(model.read(new), news))
    assert news.unseen == {"plan": 2}
    assert news.outside == {"dose": 4}
    notes = dict(news.notes())
    assert notes["Unseen values"].endswith("'plan' (2), of 10 rows.")


def test_classes_keep_their_type_and_have_probabilities(rows):
    for target in (rows["sick"], rows["sick"] == "yes", (rows["sick"] == "yes").astype(int)):
        frame = rows[["dose", "plan"]].assign(out=target)
        model = deploy(default_models(is_classes=True)["majority"], frame, "out")
        assert set(model.predict(frame).tolist()) <= set(target.tolist())
        shares = model.predict_proba(frame)
        np.testing.assert_allclose(shares[0], [np.mean(target == c) for c in model.classes])


def test_a_regressor_with_an_empty_list_of_classes_predicts_numbers(rows):
    class Tree(DecisionTreeRegressor):  # as CatBoost's regressors
        classes_ = ()

    frame = rows[["dose", "y"]]
    model = deploy(Tree(random_state=0), frame, "y")
    wanted = deploy(DecisionTreeRegressor(random_state=0), frame, "y")
    assert model.predict(frame).tolist() == wanted.predict(frame).tolist()
    assert model.baseline == wanted.baseline


def test_classes_in_one_column_are_classes(rows):
    class Column(KNeighborsClassifier):  # as CatBoost's classifiers of several classes
        def predict(self, X):
            return super().predict(X)[:, None]

    frame = rows[["dose", "plan"]]
    wanted = deploy(KNeighborsClassifier(), frame, "plan").predict(frame)
    assert deploy(Column(), frame, "plan").predict(frame).tolist() == wanted.tolist()


def test_a_model_without_probabilities_says_so(model, rows):
    with pytest.raises(ValueError, match="has no probabilities"):
        model.predict_proba(rows)


def test_the_promise_comes_from_rows_that_were_left_out(rows):
    frame = rows[["dose"]].assign(y=rows["y"])
    model = deploy(KNeighborsRegressor(1), frame, "y")
    fitted = np.mean((model.predict(frame) - frame["y"]) ** 2)
    assert model.promise.error > 2 * fitted
    assert model.promise.low < model.promise.error < model.promise.high


def test_a_class_of_one_row_asks_whether_the_target_is_an_amount(rows):
    frame = rows[["dose"]].assign(visits=[5, *[0, 1] * 59, 0])
    with pytest.raises(ValueError, match=r"Got 1 of '5'.*target_type='numeric'"):
        deploy(KNeighborsRegressor(1), frame, "visits")
    assert deploy(KNeighborsRegressor(1), frame, "visits", target_type="numeric").promise.error > 0


# --- what a file holds ---


def all_models(rows):
    """Every model that a command may save, fitted."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 3)), rng.normal(size=80)
    labels, groups = np.array(list("abc"))[np.arange(80) % 3], np.arange(80) // 10
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for is_classes, target in ((False, y), (True, labels), (True, labels > "a")):
            for name, model in default_models(is_classes=is_classes).items():
                options = {"groups": groups} if name in ("t_greedy", "steady_ridge") else {}
                yield model.fit(X, target, **options)
        average = DomainAverageClassifier(["majority", "steady_ridge"])
        yield average.fit(X, labels, groups=groups)
        for basis in ("auto", "rbf", "pca", "lars", "columns", "fourier"):
            yield NestedRegressor(basis, max_terms=4).fit(X, y)


def test_every_model_of_ours_is_kept_whole_and_no_type_is_known_in_vain(rows, file, tmp_path):
    used = set()
    X = np.random.default_rng(1).normal(size=(9, 3))
    for fitted in all_models(rows):
        dump_skops(slim(fitted), tmp_path / "one.skops", KNOWN_TYPES)
        with zipfile.ZipFile(tmp_path / "one.skops") as archive:
            used |= {name for name, _ in _types(json.loads(archive.read("schema.json")))}
        loaded = load_skops(tmp_path / "one.skops", KNOWN_TYPES)
        np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    with zipfile.ZipFile(file) as archive:
        used |= {name for name, _ in _types(json.loads(archive.read("schema.json")))}
    assert used <= KNOWN_TYPES
    elsewhere = {"GingerEncoder", "GreedyTLClassifier", "GreedyTLRegressor"}  # test_cli_saved
    elsewhere |= {"DomainAverageRegressor", "bytes", "int64"}  # int64: by versions
    elsewhere |= {"ElasticNetCV", "RidgeCV"}  # `rank --save`, and models of one's own
    # Losses have one module in scikit-learn 1.7 and another from 1.8 on.
    elsewhere |= {name.rpartition(".")[2] for name in used if ".CyHalf" in name}
    assert {name.rpartition(".")[2] for name in KNOWN_TYPES - used} <= elsewhere


def test_what_explains_the_fit_does_not_leave_with_the_model(rows, file):
    with zipfile.ZipFile(file) as archive:
        schema = archive.read("schema.json").decode()
    assert "path_" not in schema
    assert "domain_effects_" not in schema
    assert "new_domain_errors_" not in schema


def test_a_type_that_is_not_ours_is_named_and_not_written(rows, tmp_path):
    model = deploy(make_pipeline(PCA(1), RidgeCV()), rows[["dose", "plan", "y"]], "y")
    with pytest.raises(ValueError, match=r"holds sklearn\.decomposition\._pca\.PCA \(ObjectNode\)"):
        model.save(tmp_path / "other.skops")
    assert not list(tmp_path.iterdir())


def test_other_objects_of_known_types_are_no_model(tmp_path, rows):
    from skops.io import dump

    dump(RidgeCV().fit([[0.0], [1.0]], [0.0, 1.0]), tmp_path / "ridge.skops")
    with pytest.raises(ValueError, match="holds a RidgeCV, not a model that --save has written"):
        load_model(tmp_path / "ridge.skops")
    assert isinstance(load_skops(tmp_path / "ridge.skops"), RidgeCV)
    with pytest.raises(UnfitFile, match="which no model of holdtrue has"):
        load_skops(tmp_path / "ridge.skops", known=["builtins.str"])


def test_trees_that_lead_out_of_themselves_are_refused(rows):
    frame = rows[["dose", "y"]]
    model = deploy(HistGradientBoostingRegressor(max_iter=2), frame, "y")
    for field, value in (("left", 10**6), ("right", 0), ("feature_idx", 7)):
        nodes = model.estimator._predictors[0][0].nodes.copy()
        nodes[field][0] = value
        estimator = pickle.loads(pickle.dumps(model.estimator))
        estimator._predictors[0][0].nodes = nodes
        with pytest.raises(ValueError, match="a tree leads out of itself"):
            SavedModel(**{**vars(model), "estimator": estimator})


@pytest.mark.parametrize(
    ("field", "value"), [("left_child", 10**6), ("right_child", 0), ("feature", 7)]
)
def test_forests_that_lead_out_of_themselves_are_refused(rows, field, value):
    model = deploy(RandomForestRegressor(2, random_state=0), rows[["dose", "y"]], "y")
    estimator = pickle.loads(pickle.dumps(model.estimator))
    tree = estimator.estimators_[1].tree_
    state = tree.__getstate__()
    state["nodes"][field][0] = value
    tree.__setstate__(state)
    with pytest.raises(ValueError, match="a tree leads out of itself"):
        SavedModel(**{**vars(model), "estimator": estimator})
    estimator = pickle.loads(pickle.dumps(model.estimator))
    tree = estimator.estimators_[1].tree_
    tree.__setstate__({**tree.__getstate__(), "node_count": 10**6})
    with pytest.raises(ValueError, match="a tree leads out of itself"):
        SavedModel(**{**vars(model), "estimator": estimator})
    estimator = pickle.loads(pickle.dumps(model.estimator))
    estimator.estimators_[1].n_features_in_ = 3
    with pytest.raises(ValueError, match="its trees are of other columns"):
        SavedModel(**{**vars(model), "estimator": estimator})


def test_a_model_that_does_not_fit_its_encoder_is_called_damaged(model, rows):
    wrong = {**vars(model), "encoder": TableEncoder().fit(rows[["dose"]])}
    with pytest.raises(ValueError, match="the model is damaged: its encoder reads other columns"):
        SavedModel(**wrong)
    with pytest.raises(ValueError, match="its classes have no names"):
        SavedModel(**{**vars(model), "estimator": model.encoder, "classes": ("a",)})


def test_numbers_as_people_write_them_are_predicted_in_frames_as_in_files(tmp_path):
    rows = pd.DataFrame({"pay": 1000.0 + 37 * np.arange(20), "plan": ["a", "b"] * 10})
    model = deploy(KNeighborsRegressor(1), rows.assign(y=rows["pay"] / 100), "y")
    new = pd.DataFrame({"pay": ["$1,000", "$1,185"], "plan": ["a", "b"]})
    new.to_csv(tmp_path / "new.csv", index=False)
    np.testing.assert_allclose(model.predict(new), [10.0, 11.85])
    np.testing.assert_allclose(model.predict(tmp_path / "new.csv"), [10.0, 11.85])
