import functools
import importlib.util
import pickle
import sys
import threading
import time

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from holdtrue import GreedyTLClassifier, SourcePool
from holdtrue.sources import pool as pool_module

FILES = all(importlib.util.find_spec(name) for name in ("onnxruntime", "skl2onnx", "skops"))
needs_files = pytest.mark.skipif(not FILES, reason="onnxruntime, skl2onnx or skops is missing")


@pytest.fixture(scope="module")
def rows():
    return make_classification(200, 5, n_informative=4, n_redundant=0, random_state=0)


@pytest.fixture(scope="module")
def three_classes():
    return make_classification(200, 5, n_informative=4, n_redundant=0, n_classes=3, random_state=0)


class Counting:
    """A callable that counts its runs; may fail, be slow or be broken."""

    def __init__(self, value=0.0, error=None):
        self.value, self.error, self.runs = value, error, 0

    def __call__(self, X):
        self.runs += 1
        if self.error is not None:
            raise self.error
        return np.asarray(X)[:, 0] + self.value


def counting(n, **options):
    sources = [(f"s{i}", Counting(i)) for i in range(n)]
    return [source for _, source in sources], SourcePool(sources, **options)


# --- models and callables -----------------------------------------------------------------------


def test_each_kind_of_model_gives_its_most_telling_score(rows):
    X, y = rows
    svm = LinearSVC().fit(X, y)
    bayes = GaussianNB().fit(X, y)
    linear = LinearRegression().fit(X, y)
    pool = SourcePool(
        [("svm", svm), ("bayes", bayes), ("linear", linear), ("f", lambda X: X[:, 1])]
    )
    scores = pool.scores(X)
    np.testing.assert_allclose(scores[:, 0], svm.decision_function(X))
    p = np.clip(bayes.predict_proba(X)[:, 1], 1e-15, 1 - 1e-15)
    np.testing.assert_allclose(scores[:, 1], np.log(p / (1 - p)), rtol=1e-6)
    np.testing.assert_allclose(scores[:, 2], linear.predict(X))
    np.testing.assert_array_equal(scores[:, 3], X[:, 1])


def test_a_model_of_three_classes_gives_three_sources_in_one_run(three_classes):
    X, y = three_classes
    model = LogisticRegression().fit(X, np.array(["cat", "dog", "owl"])[y])
    pool = SourcePool([("pets", model), ("forest", RandomForestClassifier(3).fit(X, y))])
    assert pool.names == [
        "pets: cat",
        "pets: dog",
        "pets: owl",
        *(f"forest: {k}" for k in range(3)),
    ]
    scores = pool.scores(X)
    np.testing.assert_allclose(scores[:, :3], model.decision_function(X))
    assert np.isfinite(scores).all()
    assert pool.n_runs == 2


def test_a_model_fitted_on_names_gets_names(rows):
    X, y = rows
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = make_pipeline(StandardScaler(), RidgeClassifier()).fit(frame, y)
    pool = SourcePool([("ridge", model)])
    np.testing.assert_allclose(pool.scores(frame)[:, 0], model.decision_function(frame))
    fitted = GreedyTLClassifier(pool).fit(frame[:20], y[:20], sample_weight=np.arange(20) > 0)
    fitted.predict(frame[20:])


def test_columns_that_are_scores_already_are_sources_by_name_or_number(rows):
    X, _ = rows
    frame = pd.DataFrame(X, columns=list("abcde"))
    np.testing.assert_array_equal(SourcePool.from_columns(["d", "b"]).scores(frame), X[:, [3, 1]])
    np.testing.assert_array_equal(SourcePool.from_columns([4]).scores(X), X[:, [4]])
    csr = sparse.csr_array(X)
    np.testing.assert_array_equal(SourcePool.from_columns([4]).scores(csr), X[:, [4]])
    with pytest.raises(ValueError, match=r"source 0 \('dd'\) must be a column of X. Did you mean"):
        SourcePool.from_columns(["dd"]).scores(pd.DataFrame(X, columns=[*"abc", "d", "e"]))
    with pytest.raises(ValueError, match="must be a column of X, from 0 to 4"):
        SourcePool.from_columns([5]).scores(X)


def test_many_rows_are_scored_in_batches(rows, monkeypatch):
    X, y = rows
    monkeypatch.setattr(pool_module, "_BATCH", 30)
    model = LogisticRegression().fit(pd.DataFrame(X, columns=list("abcde")), y)
    for given in (X, pd.DataFrame(X, columns=list("abcde"))):
        if given is X:
            pool = SourcePool([("f", lambda X: X[:, 0])])
            expected = X[:, 0]
        else:
            pool, expected = SourcePool([("m", model)]), model.decision_function(given)
        np.testing.assert_allclose(pool.scores(given)[:, 0], expected)
        assert pool.n_runs == 7


def doubles(X):
    X *= 2.0
    return np.asarray(X[:, [0]].sum(axis=1)).ravel()


class Careless(BaseEstimator):
    """A model that was fitted on names and changes its rows."""

    def fit(self, X, y):
        self.feature_names_in_ = np.array(X.columns)
        return self

    def predict(self, X):
        X["a"] *= 2.0
        return X["a"].to_numpy()


@pytest.mark.parametrize("batch", [1000, 30])
def test_a_source_that_changes_its_rows_changes_nobody_elses(batch, rows, monkeypatch):
    monkeypatch.setattr(pool_module, "_BATCH", batch)
    X, y = rows
    in_place = make_pipeline(StandardScaler(copy=False), LinearSVC()).fit(X.copy(), y)
    expected = np.column_stack(
        [2 * X[:, 0], in_place.decision_function(X.copy()), X[:, 0], 2 * X[:, 0]]
    )
    frame = pd.DataFrame(X, columns=list("abcde"))
    named = Careless().fit(frame, y)
    first = ("first", lambda X: np.asarray(X[:, [0]].sum(axis=1)).ravel())
    pool = SourcePool([("doubles", doubles), ("svm", in_place), first])
    given = X.copy()
    np.testing.assert_allclose(pool.scores(given), expected[:, :3])
    np.testing.assert_array_equal(given, X)
    csr = sparse.csr_array(X)
    pool = SourcePool([("doubles", doubles), first])
    np.testing.assert_allclose(pool.scores(csr), expected[:, [0, 2]])
    np.testing.assert_array_equal(csr.toarray(), X)
    pool = SourcePool([("named", named), ("again", named)])
    np.testing.assert_allclose(pool.scores(frame), expected[:, [0, 3]])
    np.testing.assert_array_equal(frame, X)
    model = GreedyTLClassifier([("doubles", doubles)], passthrough=False).fit(given[:40], y[:40])
    model.predict(given)
    np.testing.assert_array_equal(given, X)


# --- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sources, message",
    [
        ([("a", len), ("a", abs)], r"names must differ\. Got 'a' twice"),
        ("folder", r"expected a list of sources\. Got the path 'folder'.*from_folder"),
        (3, r"expected a list of \(name, source\)\. Got int"),
        (make_pipeline(StandardScaler(), LinearSVC()), r"expected a list.*Got Pipeline"),
        (
            [("a", 3)],
            r"source 'a' must be a fitted model, a callable or the path of a file\. Got 3",
        ),
        ([("a", LinearSVC)], "must be a fitted model"),
        (["model.h5"], r"source 'model' must be a file that ends in \.onnx"),
    ],
)
def test_what_is_no_source_is_refused_at_once(sources, message):
    with pytest.raises(ValueError, match=message):
        SourcePool(sources)


@pytest.mark.parametrize("on_error", ["Raise", None])
def test_other_options_are_refused(on_error):
    with pytest.raises(ValueError, match="on_error must be one of 'raise', 'skip'"):
        SourcePool([], on_error=on_error)
    with pytest.raises(ValueError, match=r"allow_pickle must be True or False. Got 'yes'"):
        SourcePool([], allow_pickle="yes")


def damaged(**attributes):
    """A fitted model without its solver, as a changed file can hold, or with other attributes."""
    model = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    vars(model).update(attributes)
    if not attributes:
        del model.solver
    return model


BROKEN = [
    (LinearSVC(), r"source 1 \('bad'\) \(LinearSVC\) is not fitted"),
    (Counting(error=RuntimeError("no GPU")), r"source 1 \('bad'\) failed: RuntimeError: no GPU"),
    (lambda X: np.zeros((len(X), 2)), r"returned shape \(200, 2\), expected \(200,\).*one score"),
    (lambda X: np.zeros(3), r"returned shape \(3,\), expected \(200,\)"),
    (lambda X: np.full(len(X), np.nan), "returned 200 scores that are NaN or infinite"),
    (lambda X: ["a"] * len(X), r"source 1 \('bad'\) failed: ValueError"),
    # Old versions of scikit-learn look at the solver only where they fit.
    (damaged(), r"source 1 \('bad'\) (\(LogisticRegression\) is damaged or incomplete|failed):"),
    (damaged(classes_=3), r"\(LogisticRegression\) is damaged or incomplete: TypeError: .*len"),
]


@pytest.mark.parametrize("bad, message", BROKEN, ids=range(len(BROKEN)))
def test_a_source_that_fails_is_named_or_skipped(bad, message, rows):
    X, y = rows
    sources = [("good", lambda X: X[:, 0]), ("bad", bad)]
    with pytest.raises(ValueError, match=message):
        SourcePool(sources).scores(X)
    pool = SourcePool(sources, on_error="skip")
    with pytest.warns(UserWarning, match=f"{message}.*It is left out"):
        model = GreedyTLClassifier(pool, passthrough=False).fit(X[:200], y[:200])
    assert set(model.selected_) <= {"good"}
    model.predict(X)


def test_a_chosen_source_that_fails_later_is_an_error_even_if_failures_are_skipped(rows):
    X, y = rows
    source = Counting()
    source.value = 10 * y[:40]
    pool = SourcePool([("s", source)], on_error="skip")
    model = GreedyTLClassifier(pool, passthrough=False).fit(X[:40], y[:40])
    assert model.selected_ == ["s"]
    source.error = OSError("gone")
    with pytest.raises(ValueError, match=r"source 0 \('s'\) failed: OSError: gone"):
        model.predict(X[:40])


# --- laziness and the cache ---------------------------------------------------------------------


def test_a_source_never_drawn_is_never_run(rows):
    X, y = rows
    calls, pool = counting(2000)
    model = GreedyTLClassifier(pool, n_candidates=10, max_selected=5, random_state=0)
    model.fit(X[:30], y[:30])
    assert sum(source.runs for source in calls) <= 5 * (10 + 5)
    assert max(source.runs for source in calls) == 1


class Shy:
    """A source that tells how often anyone looked into it."""

    looked = 0

    def __getattr__(self, name):
        if name != "predict":  # the pool asks once what kind of source it is
            Shy.looked += 1
        raise AttributeError(name)

    def __call__(self, X):
        return np.sin(np.arange(len(X)) * id(self) % 7)


def test_a_source_never_drawn_is_never_looked_into(rows, tmp_path):
    X, y = rows
    pool = SourcePool([(f"s{i}", Shy()) for i in range(500)], cache=tmp_path)
    model = GreedyTLClassifier(pool, n_candidates=10, max_selected=3, random_state=0)
    Shy.looked = 0
    model.fit(X[:30], y[:30])
    assert 0 < pool.n_runs < 60
    assert Shy.looked <= 4 * pool.n_runs
    assert len(pool._opened) == pool.n_runs


def test_an_unfitted_source_is_refused_before_any_is_run(rows):
    X, y = rows
    first = Counting()
    with pytest.raises(ValueError, match=r"source 1 \('new'\) \(LinearSVC\) is not fitted"):
        GreedyTLClassifier([("first", first), ("new", LinearSVC())]).fit(X[:30], y[:30])
    assert first.runs == 0


def test_only_chosen_sources_are_run_at_prediction(rows):
    X, y = rows
    rng = np.random.default_rng(0)
    sources = [(f"s{i}", Counting(rng.normal())) for i in range(20)]
    sources[7][1].value = 5.0 * y[:30]
    model = GreedyTLClassifier(sources, max_selected=1, passthrough=False).fit(X[:30], y[:30])
    assert model.selected_ == ["s7"]
    for _, source in sources:
        source.runs = 0
    model.predict(X[:30])
    assert [source.runs for _, source in sources] == [int(i == 7) for i in range(20)]


def test_a_second_fit_on_the_same_rows_runs_nothing(rows, tmp_path):
    X, y = rows
    calls, pool = counting(6, cache=tmp_path / "scores")
    first = GreedyTLClassifier(pool).fit(X[:30], y[:30])
    assert [source.runs for source in calls] == [1] * 6
    again, other = counting(6, cache=tmp_path / "scores")
    second = GreedyTLClassifier(other).fit(X[:30], y[:30])
    assert [source.runs for source in again] == [0] * 6
    assert first.path_ == second.path_
    GreedyTLClassifier(other).fit(X[1:31], y[1:31])
    assert [source.runs for source in again] == [1] * 6


def test_a_pool_that_has_grown_runs_only_what_is_new(rows, tmp_path):
    X, _ = rows
    _, pool = counting(4, cache=tmp_path)
    before = pool.scores(X)
    calls, larger = counting(6, cache=tmp_path)
    np.testing.assert_array_equal(larger.scores(X)[:, :4], before)
    assert [source.runs for source in calls] == [0, 0, 0, 0, 1, 1]


def test_what_was_computed_before_an_interruption_is_kept(rows, tmp_path):
    X, y = rows
    calls, pool = counting(6, cache=tmp_path)
    calls[3].error = KeyboardInterrupt()
    model = GreedyTLClassifier(pool)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:30], y[:30])
    assert model.path_.reason == "interrupted"
    resumed, pool = counting(6, cache=tmp_path)
    GreedyTLClassifier(pool).fit(X[:30], y[:30])
    assert [source.runs for source in resumed] == [0, 0, 0, 1, 1, 1]


def test_a_changed_model_is_run_again(rows, tmp_path):
    X, y = rows
    one = SourcePool([("m", LogisticRegression(C=1).fit(X, y))], cache=tmp_path).scores(X)
    model = LogisticRegression(C=0.01).fit(X, y)
    two = SourcePool([("m", model)], cache=tmp_path).scores(X)
    np.testing.assert_allclose(two[:, 0], model.decision_function(X))
    assert np.abs(one - two).max() > 0.1
    f = SourcePool([("f", lambda X: X[:, 0])], cache=tmp_path).scores(X)
    g = SourcePool([("f", lambda X: X[:, 1])], cache=tmp_path).scores(X)
    assert np.abs(f - g).max() > 0.1


class Linear:
    def __init__(self, weight, shift=0.0):
        self.weight, self.shift = weight, shift

    def __call__(self, X):
        return self.score(X)

    def score(self, X):
        return X @ self.weight + self.shift


def enclosing(column):
    return lambda X: X[:, column]


def calling(inner):
    return lambda X: inner(X)


def with_default(column):
    def score(X, column=column):
        return X[:, column]

    return score


def with_keyword(column):
    def score(X, *, column=column):
        return X[:, column]

    return score


def recursive(column):
    def score(X, depth=2):
        return score(X, depth - 1) if depth else X[:, column]

    return score


LIKE = [
    lambda j: Linear(np.eye(5)[j]),
    lambda j: Linear(np.eye(5)[j]).score,
    lambda j: functools.partial(Linear.score, Linear(np.eye(5)[j])),
    enclosing,
    lambda j: calling(enclosing(j)),
    lambda j: calling(Linear(np.eye(5)[j])),
    with_default,
    with_keyword,
    recursive,
]


@pytest.mark.parametrize("make", LIKE, ids=range(len(LIKE)))
def test_the_cache_knows_a_callable_by_what_it_holds(make, rows, tmp_path):
    X, _ = rows
    for column in (0, 1):
        pool = SourcePool([("f", make(column))], cache=tmp_path)
        np.testing.assert_array_equal(pool.scores(X)[:, 0], X[:, column])
    again = SourcePool([("f", make(1))], cache=tmp_path)
    np.testing.assert_array_equal(again.scores(X)[:, 0], X[:, 1])
    assert again.n_runs == 0


def test_the_cache_does_not_trust_what_it_cannot_pickle(rows, tmp_path):
    X, _ = rows
    for column in (0, 1):
        source = Linear(np.eye(5)[column])
        source.lock = threading.Lock()
        pool = SourcePool([("f", source)], cache=tmp_path)
        np.testing.assert_array_equal(pool.scores(X)[:, 0], X[:, column])


def test_progress_is_shown_in_a_terminal_only(rows, monkeypatch, capsys):
    X, _ = rows
    counting(30)[1].scores(X)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("holdtrue.progress._PATIENCE", -1.0)
    counting(30)[1].scores(X)
    assert "30/30" in capsys.readouterr().err


# --- files --------------------------------------------------------------------------------------


class Hostile:
    """A pickle that leaves a trace when it is loaded."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return open, (str(self.trace), "w")


def save_onnx(model, X, file, **options):
    from skl2onnx import to_onnx

    made = to_onnx(model, X[:1].astype(np.float32), options={id(model): options})
    file.write_bytes(made.SerializeToString())


@pytest.fixture
def folder(rows, three_classes, tmp_path):
    """Twenty files: 9 skops, 8 ONNX, a broken one of each, and a hostile pickle named .onnx."""
    from skops import io

    X, y = rows
    place = tmp_path / "models"
    place.mkdir()
    for i in range(9):
        io.dump(LogisticRegression(C=0.01 * 2**i).fit(X, y), place / f"skops{i}.skops")
    for i in range(7):
        model = LogisticRegression(C=0.01 * 2**i).fit(X, y)
        save_onnx(model, X, place / f"onnx{i}.onnx", zipmap=False)
    pets = LogisticRegression().fit(*three_classes)
    save_onnx(pets, X, place / "pets.onnx", zipmap=False)
    (place / "broken.skops").write_bytes(b"PK\x03\x04 nothing")
    (place / "torn.onnx").write_bytes((place / "onnx0.onnx").read_bytes()[:50])
    (place / "hostile.onnx").write_bytes(pickle.dumps(Hostile(tmp_path / "trace")))
    return place


@needs_files
def test_a_folder_of_twenty_files_is_read_and_the_bad_ones_skipped_by_name(
    folder, rows, three_classes, tmp_path
):
    X, y = rows
    pool = SourcePool.from_folder(folder, on_error="skip", cache=tmp_path / "cache")
    with pytest.warns(UserWarning, match="It is left out") as caught:
        names = pool.names
    told = " ".join(str(warning.message) for warning in caught)
    assert (
        "hostile.onnx) is not an ONNX model, whatever its name says. It looks like a pickle" in told
    )
    assert "(broken.skops) is not a skops file" in told
    assert "(torn.onnx) cannot be opened as ONNX" in told
    assert not (tmp_path / "trace").exists()
    assert len(names) == 9 + 7 + 3
    scores = pool.scores(X)
    expected = LogisticRegression(C=0.04).fit(X, y).decision_function(X)
    np.testing.assert_allclose(scores[:, names.index("skops2")], expected)
    np.testing.assert_allclose(scores[:, names.index("onnx2")], expected, atol=1e-4)
    p = LogisticRegression().fit(*three_classes).predict_proba(X)
    np.testing.assert_allclose(
        scores[:, names.index("pets: 1")], np.log(p[:, 1] / (1 - p[:, 1])), atol=1e-3
    )
    model = GreedyTLClassifier(pool).fit(X[:20], y[:20])
    copy = pickle.loads(pickle.dumps(model))
    with pytest.warns(UserWarning, match="It is left out"):
        np.testing.assert_array_equal(copy.predict(X), model.predict(X))


@needs_files
def test_the_first_bad_file_is_an_error_by_default(folder, rows):
    with pytest.raises(ValueError, match=r"source 0 \('broken'\) \(broken.skops\) is not a skops"):
        _ = SourcePool.from_folder(folder).names


@needs_files
def test_types_that_skops_does_not_know_are_never_trusted(rows, tmp_path):
    from skops import io

    model = LogisticRegression().fit(*rows)
    model.extra = Counting()
    io.dump(model, tmp_path / "odd.skops")
    with pytest.raises(ValueError, match=r"types that skops does not know as safe: .*Counting"):
        _ = SourcePool([tmp_path / "odd.skops"], allow_pickle=True).names


@needs_files
def test_an_onnx_model_that_gives_maps_is_told_how_to_be_converted(rows, tmp_path):
    X, y = rows
    save_onnx(LogisticRegression().fit(X, y), X, tmp_path / "maps.onnx", zipmap=True)
    with pytest.raises(ValueError, match=r"options=\{'zipmap': False\}"):
        _ = SourcePool([tmp_path / "maps.onnx"]).names


@pytest.mark.parametrize("suffix", [".pkl", ".pickle", ".joblib"])
def test_nothing_is_unpickled_unless_allowed(suffix, rows, tmp_path):
    X, y = rows
    trap = tmp_path / f"trap{suffix}"
    joblib.dump(Hostile(tmp_path / "trace"), trap)
    with pytest.raises(ValueError, match=r"is a pickle, and loading one runs whatever code.*allow"):
        _ = SourcePool([trap]).names
    assert not (tmp_path / "trace").exists()
    model = LogisticRegression().fit(X, y)
    good = tmp_path / f"good{suffix}"
    joblib.dump(model, good)
    pool = SourcePool([good], allow_pickle=True)
    assert pool.names == ["good"]
    np.testing.assert_allclose(pool.scores(X)[:, 0], model.decision_function(X))


@pytest.mark.parametrize("suffix", [".onnx", ".skops"])
def test_a_pickle_under_another_name_is_not_run(suffix, tmp_path):
    file = tmp_path / f"model{suffix}"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        file.write_bytes(pickle.dumps(Hostile(tmp_path / "trace"), protocol=protocol))
        with pytest.raises(ValueError, match="whatever its name says"):
            _ = SourcePool([file], allow_pickle=True).names
    file.write_bytes(b"")
    with pytest.raises(ValueError, match="is empty"):
        _ = SourcePool([file]).names
    with pytest.raises(ValueError, match="cannot be read"):
        _ = SourcePool([tmp_path / f"none{suffix}"]).names
    assert not (tmp_path / "trace").exists()


def test_a_slow_source_holds_up_nothing_that_does_not_need_it(rows):
    X, y = rows

    def slow(X):
        time.sleep(60)

    sources = [(f"s{i}", Counting(i)) for i in range(500)] + [("slow", slow)]
    model = GreedyTLClassifier(sources, n_candidates=3, max_selected=2, random_state=0)
    model.fit(X[:20], y[:20])
    assert "slow" not in model.selected_


@pytest.mark.parametrize("name, package", [("onnx", "onnxruntime"), ("skops", "skops")])
def test_a_missing_reader_is_named(name, package, tmp_path, monkeypatch):
    import zipfile

    monkeypatch.setitem(sys.modules, package, None)
    file = tmp_path / f"model.{name}"
    if name == "onnx":
        file.write_bytes(b"\x08\x0a")
    else:
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("schema.json", "{}")
    with pytest.raises(ImportError, match=rf"pip install 'holdtrue\[{name}\]'"):
        _ = SourcePool([file]).names


def test_a_folder_without_models_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no model files in"):
        SourcePool.from_folder(tmp_path)
    with pytest.raises(ValueError, match="is not a folder"):
        SourcePool.from_folder(tmp_path / "none")


# --- what users pass ----------------------------------------------------------------------------


@pytest.mark.parametrize("n_rows", [20, 10_001])
@pytest.mark.parametrize("backend", [pl.from_pandas, pa.Table.from_pandas])
def test_named_columns_are_read_from_frames_of_polars_and_arrow(backend, n_rows):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(n_rows, 4)), columns=list("abcd"))
    y = frame["b"] > 0
    model = LogisticRegression().fit(frame[["d", "b"]], y)
    pool = SourcePool([("model", model)])
    expected = model.decision_function(frame[["d", "b"]])
    np.testing.assert_allclose(pool.scores(backend(frame))[:, 0], expected)
    columns = SourcePool.from_columns(["c"]).scores(backend(frame))
    np.testing.assert_array_equal(columns[:, 0], frame["c"])
    fitted = GreedyTLClassifier(pool, passthrough=False)
    fitted.fit(backend(frame[:20]), y[:20], sample_weight=np.arange(20) > 0)
    assert fitted.score(backend(frame), y) > 0.9


def test_a_model_fitted_on_named_columns_reads_these_of_a_wider_frame():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 4)), columns=list("abcd"))
    y = frame["b"] > 0
    model = LogisticRegression().fit(frame[["d", "b"]], y)
    pool = SourcePool([("own", model)])
    np.testing.assert_allclose(pool.scores(frame)[:, 0], model.decision_function(frame[["d", "b"]]))
    fitted = GreedyTLClassifier(pool, passthrough=False).fit(frame, y)
    assert fitted.score(frame, y) > 0.9
    with pytest.raises(ValueError, match=r"\('own'\) was fitted on column 'd', which X does not"):
        pool.scores(frame[["a", "b"]])


def test_a_mapping_of_names_to_sources_is_a_pool():
    pool = SourcePool({"first": lambda X: X[:, 0], "second": lambda X: X[:, 1]})
    assert pool.names == ["first", "second"]


def test_a_column_is_a_name_or_a_whole_number():
    with pytest.raises(ValueError, match=r"columns must be names or whole numbers\. Got 4\.0"):
        SourcePool.from_columns([4.0])
    assert SourcePool.from_columns(np.array([4, 5])).columns == [4, 5]


def test_what_a_source_says_when_it_fails_is_one_line():
    def failing(X):
        raise ValueError("expected 6:\n  got 3\n  index 1.")

    with pytest.raises(ValueError, match=r"failed: ValueError: expected 6: got 3 index 1\.$"):
        SourcePool([("bad", failing)]).scores(np.ones((3, 3)))


def test_a_callable_that_expects_a_frame_is_told_that_it_got_an_array():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
    with pytest.raises(ValueError, match=r"It was given an array, not the frame\.$"):
        SourcePool([("bad", lambda X: X["a"])]).scores(frame)
