import sys

import matplotlib
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from holdtrue import NestedRegressor, PathDisplay, SelectionPath
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
    names = {line.get_label() for line in ax.lines}
    assert {"on the rows of the fit", "estimated on unseen data"} < names
    assert any(name.startswith("chosen: ") for name in names)


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


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(NotFittedError):
        PathDisplay.from_estimator(NestedRegressor())
    line = LinearRegression().fit([[0], [1]], [0, 1])
    with pytest.raises(TypeError, match=r"expected an estimator with path_\. Got LinearReg"):
        PathDisplay.from_estimator(line)
    with pytest.raises(TypeError, match=r"expected a SelectionPath\. Got NestedRegressor"):
        PathDisplay.from_path(NestedRegressor())


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install 'holdtrue\[plot\]'"):
        PathDisplay.from_path(path())
