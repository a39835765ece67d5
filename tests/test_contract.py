"""What every public estimator promises, whatever its family."""

import inspect
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import has_fit_parameter

from holdtrue import (
    GingerForestClassifier,
    GingerSelector,
    GingerTreeClassifier,
    GreedyTLClassifier,
    GreedyTLRegressor,
    NestedRegressor,
    SelectionPath,
    SimilarityLearner,
    TGreedyClassifier,
    TGreedyRegressor,
    TGreedySelector,
)
from holdtrue.model_size.bases import NAMES

ESTIMATORS = [
    GingerForestClassifier(n_trees=10),
    GingerSelector(),
    GingerSelector(mode="forward"),
    GingerTreeClassifier(),
    GreedyTLClassifier(),
    GreedyTLRegressor(),
    NestedRegressor(),
    SimilarityLearner(),
    TGreedyClassifier(),
    TGreedyRegressor(),
    TGreedySelector(),
]
# Further settings, for scikit-learn's checks alone.
SETTINGS = [
    *(NestedRegressor(basis) for basis in NAMES if basis != "cosine"),
    NestedRegressor(PolynomialFeatures(2)),
    NestedRegressor(criterion="cv", cv=KFold(3)),
    NestedRegressor(criterion="bayes"),
    SimilarityLearner("t", pairs=30),
    TGreedyClassifier(stepwise=True, fit_intercept=False),
    TGreedyRegressor("auto", stop="held_out_domain", max_steps=5),
    TGreedySelector("greedy", stop="sign_flip"),
]
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}

every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
every_frame = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())


@parametrize_with_checks(ESTIMATORS + SETTINGS)
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
    assert shown.count("<figure") == 1
    assert fitted.path_.chart().svg() in shown
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
