from dataclasses import replace

import matplotlib
import numpy as np
import pytest

from holdtrue import GingerSelector, NestedRegressor, RankingDisplay
from holdtrue.categories.display import shape_chart
from holdtrue.evidence import Shape

matplotlib.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def test_a_ranking_is_drawn_best_first_with_ids_marked():
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "blue", "green"], 300)
    X = np.column_stack([[f"u{i}" for i in range(300)], colour]).astype(object)
    selector = GingerSelector().fit(X, colour == "red")
    display = RankingDisplay.from_estimator(selector)
    assert [tick.get_text() for tick in display.ax_.get_yticklabels()] == ["x1", "x0"]
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert labels[:2] == ["kept", "left out, looks like an id"]
    assert labels[2].startswith("no column: ")
    assert [text.get_text() for text in display.ax_.texts] == ["100% of new rows: new value"]
    display.figure_.canvas.draw()
    few = RankingDisplay.from_estimator(selector, max_columns=1, ax=plt.subplots()[1])
    assert "1 more not shown" in few.ax_.get_title(loc="left").replace("\n", " ")


def test_a_shape_shows_large_numbers_short_and_small_shares_as_such():
    ends, none = ("18", "2986", "35788", "30050028"), ()
    line = Shape("votes", "mean", ends[1:], ends, *np.ones((3, 3)), np.full(3, 5.0), 1.0)
    assert shape_chart(line).ticks == ("18", "2986", "35,788", "30.1M")
    days = ("20240105", "20240210", "20240311", "20240415")  # each of them is 20.2M
    assert shape_chart(replace(line, ticks=days)).ticks == days
    values = Shape("who", "mean", ("a", "b"), none, *np.ones((3, 2)), np.array([1.0, 999.0]), 1.0)
    assert [dot.label for dot in shape_chart(values).dots] == ["a (<1%)", "b (100%)"]


def test_a_path_of_another_family_is_refused():
    model = NestedRegressor().fit(np.arange(9.0)[:, None], np.arange(9.0))
    with pytest.raises(TypeError, match=r"^RankingDisplay: expected .* ColumnEvidence. Got .*Size"):
        RankingDisplay.from_estimator(model)


def test_each_row_has_its_own_line_where_missing_rows_are_left_out():
    X = np.array([["a", None], ["a", "c"], ["b", "c"], ["b", "d"]] * 10, dtype=object)
    selector = GingerSelector(missing="ignore").fit(X, [0, 0, 1, 1] * 10)
    line = RankingDisplay.from_estimator(selector).ax_.lines[0].get_xdata()
    order = selector.path_.order
    np.testing.assert_array_equal(line[::2], selector.no_column_scores_[order])
    assert line[0] != line[2]


def test_names_with_signs_of_formulas_are_drawn_as_they_are():
    X = np.array([["a", "x"], ["b", "y"]] * 9, dtype=object)
    import pandas as pd

    frame = pd.DataFrame(X, columns=["$\\frac$", "cost_$"])
    RankingDisplay.from_estimator(GingerSelector().fit(frame, [0, 1] * 9)).figure_.canvas.draw()
