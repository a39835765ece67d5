import copy

import matplotlib
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from holdtrue import CriteriaDisplay, NestedRegressor, compare_criteria
from holdtrue.datasets import make_curve

matplotlib.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def model():
    data = make_curve("step", n_samples=20, random_state=0)
    return NestedRegressor(random_state=0).fit(data.X, data.y)


def test_criteria_are_compared_on_one_path(model):
    display = compare_criteria(model)
    assert len(display.axes_) == 2
    curves, votes = display.axes_
    labels = [line.get_label() for line in curves.lines]
    assert {"on these points", "dee", "adj", "bayes"} <= set(labels)
    assert "aic" not in labels  # has a unit of its own
    assert {tick.get_text() for tick in votes.get_yticklabels()} == set(model.choices_)
    assert f"bayes chooses {model.n_terms_}" in display.answer
    display.figure_.canvas.draw()


def test_agreement_is_said_plainly():
    data = make_curve("four_terms", n_samples=20, noise=0.25, random_state=3)
    model = NestedRegressor(
        "cosine", criterion="dee", interval=(-np.pi, np.pi), random_state=0
    ).fit(data.X, data.y)
    assert compare_criteria(model).answer == "dee chooses 4; all 15 criteria agree"


def test_one_axes_where_two_are_needed_is_refused(model):
    with pytest.raises(ValueError, match=r"axes must be a pair.*plt\.subplots"):
        compare_criteria(model, axes=plt.subplots()[1])


def test_the_criterion_that_chose_is_named_whatever_was_set_since(model):
    changed = copy.copy(model).set_params(criterion="aic")
    assert compare_criteria(changed).answer.startswith("bayes chooses")


def test_what_has_no_criteria_is_refused():
    with pytest.raises(NotFittedError):
        compare_criteria(NestedRegressor())
    with pytest.raises(TypeError, match=r"expected an estimator with path_\. Got LinearReg"):
        compare_criteria(LinearRegression().fit([[0], [1]], [0, 1]))


def test_the_display_is_the_same_from_the_estimator_and_from_its_path(model):
    assert CriteriaDisplay.from_estimator(model).answer == compare_criteria(model).answer
    assert CriteriaDisplay.from_path(model.path_).answer == compare_criteria(model).answer


@pytest.mark.parametrize("predict", ["average", "chosen"])
def test_the_curve_stands_over_the_points_beside_the_criteria(predict):
    data = make_curve("step", n_samples=20, random_state=0)
    model = NestedRegressor(predict=predict, random_state=0).fit(data.X, data.y)
    display = compare_criteria(model, data.X, data.y)
    curve, estimates, choices = display.axes_
    points, line = curve.lines
    np.testing.assert_array_equal(points.get_xdata(), data.X[:, 0])
    np.testing.assert_allclose(line.get_ydata(), model.predict(line.get_xdata()[:, None]))
    assert bool(curve.collections) == (predict == "average")  # the band
    assert estimates.get_xlabel() == choices.get_xlabel() == "number of terms"
    display.figure_.canvas.draw()


def test_a_curve_needs_one_input_and_three_axes(model):
    data = make_curve("step", n_samples=20, random_state=0)
    with pytest.raises(ValueError, match=r"axes must be three, for the curve, the estimates"):
        compare_criteria(model, data.X, data.y, axes=plt.subplots(2)[1])
    wide = np.column_stack([data.X, data.X**2])
    with pytest.raises(ValueError, match=r"a curve needs one input\. Got X with 2"):
        compare_criteria(NestedRegressor("columns").fit(wide, data.y), wide, data.y)


def test_a_curve_of_a_model_fitted_to_a_frame_is_drawn_without_a_warning():
    data = make_curve(n_samples=20, random_state=0)
    frame = pd.DataFrame({"age": data.X[:, 0]})
    fitted = NestedRegressor(random_state=0).fit(frame, data.y)
    assert compare_criteria(fitted, frame, data.y).axes_[0].get_xlabel() == "age"


@pytest.mark.parametrize("given", [{"X": [[0.0]]}, {"y": [0.0]}])
def test_points_need_both_their_coordinates(model, given):
    with pytest.raises(ValueError, match="X and y must be given together"):
        compare_criteria(model, **given)
