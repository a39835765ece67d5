"""What every public estimator promises, whatever its family."""

import contextlib
import inspect
import pickle
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

import holdtrue
from holdtrue import (
    DomainAverageClassifier,
    DomainAverageRegressor,
    GingerEncoder,
    GingerForestClassifier,
    GingerForestRegressor,
    GingerSelector,
    GingerTreeClassifier,
    GingerTreeRegressor,
    GreedyTLClassifier,
    GreedyTLRegressor,
    NestedRegressor,
    SelectionPath,
    SimilarityLearner,
    SteadyRidgeClassifier,
    SteadyRidgeRegressor,
    TableEncoder,
    TGreedyClassifier,
    TGreedyRegressor,
    TGreedySelector,
)
from holdtrue.charts import svg
from holdtrue.model_size.bases import NAMES

ESTIMATORS = [
    GingerEncoder(),
    GingerForestClassifier(n_estimators=10),
    GingerForestRegressor(n_estimators=10),
    GingerSelector(),
    GingerSelector(mode="forward"),
    GingerTreeClassifier(),
    GingerTreeRegressor(),
    GreedyTLClassifier(),
    GreedyTLRegressor(),
    NestedRegressor(),
    SimilarityLearner(),
    SteadyRidgeClassifier(),
    SteadyRidgeRegressor(),
    TGreedyClassifier(),
    TGreedyRegressor(),
    TGreedySelector(),
]
# Small fields of models, so that the checks are quick. They have a contest instead of a path.
AVERAGES = [
    DomainAverageClassifier(["majority", "steady_ridge"]),
    DomainAverageRegressor(["mean", "steady_ridge"]),
]
# Further settings, for scikit-learn's checks alone.
SETTINGS = [
    GingerEncoder("brier", output="probability", pairs=2, target_type="classes", cv=3),
    GingerEncoder(target_type="numeric", drop_useless=True, max_bins=4),
    GingerForestClassifier(n_estimators=10, criterion="ginger"),
    GingerTreeClassifier("ginger"),
    *(NestedRegressor(basis) for basis in NAMES if basis != "cosine"),
    NestedRegressor(PolynomialFeatures(2)),
    NestedRegressor(criterion="cv", cv=KFold(3)),
    NestedRegressor(criterion="bayes"),
    SimilarityLearner("t", pairs=30),
    SteadyRidgeClassifier(fit_intercept=False),
    SteadyRidgeRegressor(fit_intercept=False),
    TableEncoder(),  # has no path
    TableEncoder(max_levels=2),
    TGreedyClassifier(stepwise=True, fit_intercept=False),
    TGreedyRegressor("auto", stop="held_out_domain", max_steps=5),
    TGreedySelector("greedy", stop="sign_flip"),
]
PACKAGE = str(Path(holdtrue.__file__).parent)
INTERRUPTED = SelectionPath((), (), [np.nan], 0, "interrupted")
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}

every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
every_model = pytest.mark.parametrize(
    "estimator", ESTIMATORS + AVERAGES, ids=lambda e: type(e).__name__
)
every_frame = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())


@pytest.mark.filterwarnings("ignore:GingerSelector. keeps nothing")  # of noise
@parametrize_with_checks(ESTIMATORS + SETTINGS + AVERAGES)
def test_scikit_learn_checks_pass(estimator, check):
    check(estimator)


@pytest.fixture
def rows(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X[:, 0] - X[:, 2] + 0.1 * rng.normal(size=40)
    classes = is_classifier(estimator) or isinstance(estimator, SimilarityLearner)
    return X, (np.where(y > 0, "high", "low") if classes else y)


def seeded(estimator):
    estimator = clone(estimator)
    return estimator.set_params(random_state=0) if hasattr(estimator, "random_state") else estimator


def is_fitted(estimator):
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def output(fitted, X):
    """What a fitted estimator makes of X: scores, predictions, or the columns it keeps."""
    for method in ("decision_function", "predict", "transform"):
        if hasattr(fitted, method):
            return np.asarray(getattr(fitted, method)(X))
    raise AssertionError(f"{fitted} makes nothing")


@every_estimator
def test_every_parameter_and_attribute_is_documented(estimator, rows):
    text = inspect.getdoc(type(estimator))
    for name in estimator.get_params():
        assert f"\n{name} : " in text, name
    fitted = seeded(estimator).fit(pd.DataFrame(rows[0], columns=list("abc")), rows[1])
    attributes = text[text.index("Attributes\n") :]
    for name in vars(fitted):
        if name.endswith("_") and not name.startswith("_"):
            assert name in attributes, name


@every_estimator
def test_fit_leaves_constructor_arguments_alone(estimator, rows):
    fitted = seeded(estimator)
    before = fitted.get_params()
    fitted.fit(*rows)
    assert all(fitted.get_params()[name] is value for name, value in before.items())


@every_estimator
def test_clone_and_pickle_give_the_same_fit(estimator, rows):
    fitted = seeded(estimator).fit(*rows)
    again = pickle.loads(pickle.dumps(fitted))
    anew = clone(fitted).fit(*rows)
    for other in (again, anew):
        np.testing.assert_array_equal(output(other, rows[0]), output(fitted, rows[0]))
        assert other.path_ == fitted.path_


@every_estimator
def test_the_path_explains_the_fit(estimator, rows):
    fitted = seeded(estimator).fit(*rows)
    path = fitted.path_
    assert isinstance(path, SelectionPath)
    assert len(path.scores) == len(path.order) + 1
    if hasattr(fitted, "support_"):  # SteadyRidge's path is over the penalty
        assert set(np.flatnonzero(fitted.support_)) == set(path.order[: path.chosen_size])
        assert fitted.ranking_.min() == 1
    assert path.reason


@every_estimator
@every_frame
def test_frames_give_what_arrays_give_and_keep_names(estimator, frame, rows):
    X, y = rows
    table = frame({name: X[:, j] for j, name in enumerate(["age", "dose", "time"])})
    fitted = seeded(estimator).fit(table, y)
    assert list(fitted.feature_names_in_) == ["age", "dose", "time"]
    expected = output(seeded(estimator).fit(X, y), X)
    np.testing.assert_array_equal(output(fitted, table), expected)
    swapped = frame({name: X[:, j] for j, name in enumerate(["dose", "age", "time"])})
    with pytest.raises(ValueError, match="feature names"):
        output(fitted, swapped)


@every_estimator
def test_float32_stays_float32(estimator, rows):
    X, y = rows[0].astype(np.float32), rows[1]
    wide = output(seeded(estimator).fit(X.astype(float), y), X.astype(float))
    narrow = output(seeded(estimator).fit(X, y if y.dtype.kind == "U" else y.astype("f")), X)
    if wide.dtype.kind == "f":
        assert narrow.dtype == np.float32
        np.testing.assert_allclose(narrow, wide, rtol=1e-5, atol=1e-5)
    else:
        np.testing.assert_array_equal(narrow, wide)


@every_estimator
def test_read_only_input_is_fine_and_left_alone(estimator, rows):
    X, y = (part.copy() for part in rows)
    X.flags.writeable = y.flags.writeable = False
    weight = np.ones(len(y))
    weight.flags.writeable = False
    weights = {"sample_weight": weight} if has_fit_parameter(estimator, "sample_weight") else {}
    output(seeded(estimator).fit(X, y, **weights), X)
    np.testing.assert_array_equal(X, rows[0])


@every_estimator
def test_a_notebook_shows_the_path_once_fitted_and_the_diagram_before(estimator, rows):
    X, y = rows
    frame = pd.DataFrame(X, columns=["<script>alert(1)</script>", "<b>b</b>", "<img src=x>"])
    fresh = clone(estimator)
    assert "<svg" not in fresh._repr_html_()
    assert "<figure" not in fresh._repr_html_()
    fitted = seeded(estimator).fit(frame, y)
    shown = fitted._repr_html_()
    assert type(estimator).__name__ in shown  # scikit-learn's diagram
    if isinstance(estimator, GingerSelector):  # its ranking, with the shapes of what predicts
        assert "<table" in shown
        assert "<table" in fitted._repr_mimebundle_()["text/html"]
    else:
        assert shown.count("<figure") == 1
        assert svg.draw(fitted.path_.chart()) in shown
        assert fitted._repr_mimebundle_()["text/html"].count("<figure") == 1
    for markup in ("<script>alert", "<b>b", "<img"):
        assert markup not in shown


LABELS = {
    "None": np.array(["a", None, "b", "a"], dtype=object),
    "nan": np.array(["a", np.nan, "b", "a"], dtype=object),
    "pandas.NA": pd.Series(["a", pd.NA, "b", "a"]),
    "numbers": np.array([0, None, 1, 0], dtype=object),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize(
    "estimator",
    [GreedyTLClassifier(), TGreedyClassifier(), TGreedySelector(), SimilarityLearner()],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_class_or_a_domain_that_is_missing_is_named(estimator, labels):
    X = np.arange(8.0).reshape(4, 2)
    with pytest.raises(ValueError, match=r"y must name a class for every row\. Got .* in row 1\."):
        estimator.fit(X, labels)
    with pytest.raises(
        ValueError, match=r"groups must name a domain for every row\. .* in row 1\."
    ):
        TGreedySelector().fit(X, [0, 1, 0, 1], groups=labels)
    mixed = np.array(["a", 1, "b", "a"], dtype=object)
    with pytest.raises(ValueError, match="y must be all text or all numbers"):
        estimator.fit(X, mixed)


# --- fits that end early ------------------------------------------------------------------------


class Interruption:
    """Fits an estimator and raises `KeyboardInterrupt` at one of its lines, or at a call below."""

    def __init__(self, at=None):
        self.at, self.n_places = at, 0

    def fit(self, estimator, X, y):
        self.estimator, before = estimator, sys.gettrace()
        sys.settrace(self.trace)
        try:
            return estimator.fit(X, y)
        finally:
            sys.settrace(before)

    def trace(self, frame, *_):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        self.n_places += 1
        if self.n_places == self.at:
            raise KeyboardInterrupt
        return self.trace if frame.f_locals.get("self") is self.estimator else None


@pytest.mark.attack
@every_model
@given(place=st.floats(0, 1), at_the_end=st.booleans())
@settings(max_examples=4)
@pytest.mark.filterwarnings("ignore")
def test_a_fit_that_is_interrupted_anywhere_leaves_no_half_of_one(
    estimator, rows, place, at_the_end
):
    X, y = rows
    old, new = X, X[:, :2]
    if not hasattr(estimator, "n_places"):
        counted = Interruption()
        counted.fit(seeded(estimator), new, y)
        estimator.n_places = counted.n_places  # or nearly as many at the next fit
    behind = 40 * place if at_the_end else estimator.n_places * place
    model = seeded(estimator).fit(old, y)
    with contextlib.suppress(KeyboardInterrupt):
        Interruption(int(estimator.n_places - behind)).fit(model, new, y)
    if not is_fitted(model):
        assert getattr(model, "path_", INTERRUPTED).reason == "interrupted"
        with pytest.raises(NotFittedError):
            output(model, new)
        return
    seen = old if model.n_features_in_ == 3 else new  # before it had begun, or when it was done
    np.testing.assert_array_equal(output(model, seen), output(seeded(estimator).fit(seen, y), seen))


@every_model
@pytest.mark.filterwarnings("ignore")
def test_a_fit_that_is_refused_leaves_the_estimator_as_it_was(estimator, rows):
    X, y = rows
    model = seeded(estimator).fit(X, y)
    before, expected = dict(vars(model)), output(model, X)
    with pytest.raises(ValueError, match=r"row|sample"):
        model.fit(X[:, :2], y[:-1])
    assert vars(model) == before
    np.testing.assert_array_equal(output(model, X), expected)
