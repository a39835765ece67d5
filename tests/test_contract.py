"""What every public estimator promises, whatever its family."""

import inspect
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone, is_classifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from holdfast import GreedyTLClassifier, GreedyTLRegressor, NestedRegressor, SelectionPath

ESTIMATORS = [NestedRegressor(), GreedyTLClassifier(), GreedyTLRegressor()]
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}

every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
every_frame = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks_pass(estimator, check):
    check(estimator)


@pytest.fixture
def rows(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X[:, 0] - X[:, 2] + 0.1 * rng.normal(size=40)
    return X, (y > 0).astype(float) if is_classifier(estimator) else y


def predictions(fitted, X):
    """Numbers, whatever the estimator's kind."""
    return fitted.decision_function(X) if is_classifier(fitted) else fitted.predict(X)


def seeded(estimator):
    estimator = clone(estimator)
    return estimator.set_params(random_state=0) if hasattr(estimator, "random_state") else estimator


@every_estimator
def test_every_parameter_and_attribute_is_documented(estimator, rows):
    text = inspect.getdoc(type(estimator))
    for name in estimator.get_params():
        assert f"\n{name} : " in text, name
    fitted = seeded(estimator).fit(pd.DataFrame(rows[0], columns=list("abc")), rows[1])
    attributes = text[text.index("Attributes\n") :]
    for name in vars(fitted):
        if name.endswith("_") and not name.startswith("_") and name != "basis_":
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
        np.testing.assert_array_equal(predictions(other, rows[0]), predictions(fitted, rows[0]))
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
    np.testing.assert_array_equal(
        predictions(fitted, table), predictions(seeded(estimator).fit(X, y), X)
    )
    swapped = frame({name: X[:, j] for j, name in enumerate(["dose", "age", "time"])})
    with pytest.raises(ValueError, match="feature names"):
        fitted.predict(swapped)


@every_estimator
def test_float32_stays_float32(estimator, rows):
    X, y = (part.astype(np.float32) for part in rows)
    fitted = seeded(estimator).fit(X, y)
    assert predictions(fitted, X).dtype == np.float32
    wide = seeded(estimator).fit(X.astype(float), y.astype(float))
    expected = predictions(wide, X.astype(float))
    np.testing.assert_allclose(predictions(fitted, X), expected, rtol=1e-5, atol=1e-5)


@every_estimator
def test_read_only_input_is_fine_and_left_alone(estimator, rows):
    X, y = (part.copy() for part in rows)
    X.flags.writeable = y.flags.writeable = False
    weight = np.ones(len(y))
    weight.flags.writeable = False
    seeded(estimator).fit(X, y, sample_weight=weight).predict(X)
    np.testing.assert_array_equal(X, rows[0])
