"""Checks that the estimators share."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from holdtrue import (
    GingerSelector,
    GingerTreeClassifier,
    GreedyTLRegressor,
    NestedRegressor,
    SteadyRidgeRegressor,
    TGreedyRegressor,
)
from holdtrue.validation import check_weights


@pytest.mark.parametrize("weight", [1e300, 1e16, 1e-16, 1e-300])
@pytest.mark.parametrize(
    "estimator", [GingerSelector(), GingerTreeClassifier(), GreedyTLRegressor(), NestedRegressor()]
)
def test_weights_that_are_no_number_of_rows_are_refused(estimator, weight):
    X = np.random.default_rng(0).integers(0, 3, size=(60, 1)).astype(float)
    with pytest.raises(ValueError, match="the largest sample_weight must lie between"):
        estimator.fit(X, X[:, 0], sample_weight=np.full(60, weight))


def test_a_tiny_weight_beside_others_is_a_weight():
    weight = np.array([1.0, 1e-300, 0.0, 2.0])
    assert check_weights(weight, 4).tolist() == weight.tolist()


@pytest.mark.parametrize(
    "estimator",
    [
        TGreedyRegressor(),
        SteadyRidgeRegressor(),
        NestedRegressor(criterion="gcv", predict="chosen"),
    ],
)
def test_a_warning_points_at_the_line_of_the_caller(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1))
    groups = {} if isinstance(estimator, NestedRegressor) else {"groups": np.arange(60) % 3}
    with pytest.warns(UserWarning, match=f"^{type(estimator).__name__}: ") as warned:
        estimator.fit(X, X[:, 0] + rng.normal(size=60), **groups)
    assert {warning.filename for warning in warned} == {__file__}


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_columns_with_missing_values_are_named(frame):
    X = frame({"age": [1.0, 2.0, 3.0, 4.0], "dose": [1.0, None, float("nan"), 2.0]})
    message = r"TGreedyRegressor: X has missing values in 'dose'. Fill them"
    with pytest.raises(ValueError, match=message):
        TGreedyRegressor().fit(X, np.arange(4.0))


@pytest.mark.parametrize(
    "estimator", [TGreedyRegressor(), SteadyRidgeRegressor(), GreedyTLRegressor()]
)
def test_columns_of_polars_keep_their_names(estimator):
    X = np.random.default_rng(0).normal(size=(40, 2))
    frame = pl.DataFrame({"dose": X[:, 0], "age": X[:, 1]})
    model = estimator.fit(frame, X[:, 0])
    assert model.feature_names_in_.tolist() == ["dose", "age"]
    expected = clone(estimator).fit(X, X[:, 0]).predict(X)
    np.testing.assert_array_equal(model.predict(frame), expected)
    with pytest.raises(ValueError, match=r"columns at fit and now differ\. Missing: 'dose'"):
        model.predict(frame.rename({"dose": "weight"}))


@pytest.mark.parametrize(
    "values, given",
    [
        ([[1, 2], [3]] * 10, "list"),
        (pd.period_range("2020", periods=20, freq="M"), "Period"),
        ([1j] * 20, "complex"),
        ([1, "a"] * 10, "the text 'a'"),
    ],
)
@pytest.mark.parametrize("estimator", [TGreedyRegressor(), NestedRegressor("columns")], ids=str)
def test_a_column_of_objects_that_are_no_numbers_is_named(estimator, values, given):
    frame = pd.DataFrame({"a": np.arange(20.0), "odd": values})
    with pytest.raises(ValueError, match=f"Got {given} in column 'odd'. Encode it"):
        clone(estimator).fit(frame, np.arange(20.0))


def test_objects_that_are_numbers_are_numbers():
    rng = np.random.default_rng(0)
    frame, y = pd.DataFrame(rng.normal(size=(30, 2)), columns=["a", "b"]), rng.normal(size=30)
    one, other = (TGreedyRegressor().fit(X, y) for X in (frame, frame.astype(object)))
    np.testing.assert_array_equal(one.coef_, other.coef_)


@pytest.mark.parametrize("as_frame", [pd.DataFrame, pl.DataFrame])
def test_columns_with_infinite_values_are_named(as_frame):
    frame = as_frame({"a": [1.0, 2.0, 3.0, 5.0], "b": [1.0, np.inf, 0.0, 2.0]})
    with pytest.raises(ValueError, match=r"X has infinite values in 'b'. Replace"):
        TGreedyRegressor().fit(frame, [1.0, 2.0, 3.0, 4.0])


def test_objects_that_become_infinite_are_refused_without_a_column_to_name():
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0, 5.0], "b": [1, float("inf"), 0, 2]})
    with pytest.raises(ValueError, match=r"^(?!.*none).*contains infinity"):
        TGreedyRegressor().fit(frame.astype(object), [1.0, 2.0, 3.0, 4.0])


def test_a_frame_without_columns_and_groups_without_rows_are_refused_in_a_sentence():
    with pytest.raises(ValueError, match="X must have at least one column"):
        TGreedyRegressor().fit(pd.DataFrame(index=range(4)), [1.0, 2.0, 3.0, 4.0])
    with pytest.raises(ValueError, match=r"groups must name at least 2 groups.*Got none"):
        GingerTreeClassifier().fit(pd.DataFrame({"a": []}), [], groups=[])
