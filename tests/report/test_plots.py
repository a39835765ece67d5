import copy
import sys

import matplotlib
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from holdtrue import (
    GingerSelector,
    NestedRegressor,
    PathDisplay,
    RankingDisplay,
    SelectionPath,
    compare_criteria,
)
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


def path(**changes):
    fields = {
        "order": [0, 1],
        "names": ["dose", "age"],
        "scores": [1.0, 0.4, 0.5],
        "chosen_size": 1,
        "reason": "least at 1 feature",
        "unit": "squared error",
    }
    return SelectionPath(**{**fields, **changes})


def test_a_path_is_drawn_with_its_numbers_unit_and_reason():
    display = PathDisplay.from_path(path())
    np.testing.assert_array_equal(display.line_.get_xdata(), [0, 1, 2])
    np.testing.assert_array_equal(display.line_.get_ydata(), [1.0, 0.4, 0.5])
    assert display.ax_.get_ylabel() == "squared error"
    assert display.ax_.get_title(loc="left") == "least at 1 feature"
    assert display.figure_ is display.ax_.figure


def test_an_estimators_path_is_drawn_where_asked(model):
    _, ax = plt.subplots()
    display = PathDisplay.from_estimator(model, ax=ax)
    assert display.ax_ is ax
    assert len(ax.lines) == 4  # training, estimates, the choice's line and dot


def test_absurd_sizes_do_not_flatten_the_plot():
    wild = path(scores=[1.0, 0.4, 1e30], train_scores=[1.0, 0.3, 1e-20])
    low, high = PathDisplay.from_path(wild).ax_.get_ylim()
    assert 1e-5 < low < 0.4
    assert high < 1e5


@pytest.mark.parametrize(
    "changes",
    [
        {"scores": [1.0, np.inf, np.nan]},
        {"scores": [np.nan] * 3, "chosen_size": 0},
        {"scores": [0.0, 0.0, 0.0]},
        {"scores": [-5.0, -7.0, -6.0]},
        {"order": [], "names": [], "scores": [1.0], "chosen_size": 0},
    ],
)
def test_odd_paths_are_drawn_without_a_warning(changes):
    PathDisplay.from_path(path(**changes)).figure_.canvas.draw()


def test_criteria_are_compared_on_one_path(model):
    display = compare_criteria(model)
    assert len(display.axes_) == 2
    curves, votes = display.axes_
    labels = [line.get_label() for line in curves.lines]
    assert {"train", "dee", "adj", "bayes"} <= set(labels)
    assert {tick.get_text() for tick in votes.get_yticklabels()} == set(model.choices_)
    assert f"dee chooses {model.n_terms_}" in display.answer
    display.figure_.canvas.draw()


def test_agreement_is_said_plainly():
    data = make_curve("four_terms", n_samples=20, noise=0.25, random_state=3)
    model = NestedRegressor(random_state=0, interval=(-np.pi, np.pi)).fit(data.X, data.y)
    assert compare_criteria(model).answer == "dee chooses 4; all 15 criteria agree"


def test_a_ranking_is_drawn_best_first_with_ids_marked():
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "blue", "green"], 300)
    X = np.column_stack([[f"u{i}" for i in range(300)], colour]).astype(object)
    selector = GingerSelector().fit(X, colour == "red")
    display = RankingDisplay.from_estimator(selector)
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == ["x1", "x0"]
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels == ["kept", "left out, looks like an id", "no column"]
    assert [text.get_text() for text in display.ax_.texts] == ["100% of new rows: value never seen"]
    display.figure_.canvas.draw()
    few = RankingDisplay.from_estimator(selector, max_columns=1, ax=plt.subplots()[1])
    assert "1 more not shown" in few.ax_.get_title(loc="left")
    with pytest.raises(TypeError, match="gain_intervals_"):
        RankingDisplay.from_estimator(LinearRegression().fit([[0], [1]], [0, 1]))


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(NotFittedError):
        PathDisplay.from_estimator(NestedRegressor())
    with pytest.raises(NotFittedError):
        compare_criteria(NestedRegressor())
    line = LinearRegression().fit([[0], [1]], [0, 1])
    with pytest.raises(TypeError, match=r"expected an estimator with path_\. Got LinearReg"):
        PathDisplay.from_estimator(line)
    with pytest.raises(TypeError, match=r"expected an estimator with criteria_\. Got LinearReg"):
        compare_criteria(line)
    with pytest.raises(TypeError, match=r"expected a SelectionPath\. Got NestedRegressor"):
        PathDisplay.from_path(NestedRegressor())


def test_one_axes_where_two_are_needed_is_refused(model):
    with pytest.raises(ValueError, match=r"axes must be a pair.*plt\.subplots"):
        compare_criteria(model, axes=plt.subplots()[1])


def test_the_criterion_that_chose_is_named_whatever_was_set_since(model):
    changed = copy.copy(model).set_params(criterion="aic")
    assert compare_criteria(changed).answer.startswith("dee chooses")


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'holdtrue\[plot\]'"):
        PathDisplay.from_path(path())
