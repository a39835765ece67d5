import json
import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from holdtrue import SelectionPath
from holdtrue.charts import Dots, Heat, Lines, Series, chart_from_dict, number

EVIL = "<script>alert(1)</script>\x07\"'&"
NAN = math.nan


def lines(y, **changed):
    given = {"series": [Series("error", range(len(y)), y)], "chosen": 1.0}
    return Lines("title", "text", "steps", "error", **(given | changed))


def dots(**changed):
    given = {
        "labels": ["age", EVIL],
        "values": [0.1, 0.4],
        "low": [0.05, NAN],
        "high": [0.2, NAN],
        "marks": ["kept", "id"],
        "reference": 0.3,
        "reference_label": "no column",
    }
    return Dots("title", EVIL, "error", **(given | changed))


def heat():
    values = [[0.5, -0.4], [0.01, NAN]]
    return Heat("title", "text", ["dose", EVIL], ["A", "B"], values, [True, False])


CHARTS = {
    "lines": lambda: lines([1.0, 0.4, 0.5]),
    "log": lambda: lines([1.0, 0.01, 1e9, math.inf]),
    "gaps": lambda: lines([1.0, NAN, 0.3, -0.2]),
    "flat": lambda: lines([1.0, 1.0]),
    "one": lambda: lines([1.0], chosen=0.0),
    "dots": dots,
    "equal dots": lambda: dots(values=[0.3, 0.3], low=[NAN] * 2, high=[NAN] * 2),
    "no dots": lambda: dots(labels=[], values=[], low=[], high=[], marks=[]),
    "heat": heat,
    "zero heat": lambda: Heat("t", "t", ["a"], ["b"], [[0.0]], [False]),
    "wide heat": lambda: Heat(
        "t", "t", ["a"], [f"d{i}" for i in range(200)], [[0.1] * 200], [True]
    ),
}


@pytest.mark.parametrize("make", CHARTS.values(), ids=CHARTS)
def test_every_chart_is_well_formed_and_stays_on_its_canvas(make):
    root = ET.fromstring(make().svg())
    _, _, width, height = map(float, root.get("viewBox").split())
    for element in root.iter():
        for name in ("x", "x1", "x2", "cx"):
            assert -1 <= float(element.get(name, 0)) <= width + 1, ET.tostring(element)
        for name in ("y", "y1", "y2", "cy"):
            assert -1 <= float(element.get(name, 0)) <= height + 1, ET.tostring(element)
        for pair in (element.get("points") or "0,0").split():
            x, y = map(float, pair.split(","))
            assert 0 <= x <= width
            assert 0 <= y <= height


@pytest.mark.parametrize("make", [dots, heat], ids=["dots", "heat"])
def test_names_from_data_are_text_and_never_markup(make):
    drawn = make().svg()
    assert "<script" not in drawn
    assert "&lt;script&gt;" in drawn
    assert "\x07" not in drawn


@pytest.mark.parametrize("make", CHARTS.values(), ids=CHARTS)
def test_a_chart_survives_json(make):
    chart = make()
    again = chart_from_dict(json.loads(json.dumps(chart.to_dict(), allow_nan=False)))
    assert again.svg() == chart.svg()


def test_a_point_of_the_path_is_where_the_axis_says():
    # Three sizes: size 1 stands in the middle, and so does the line of the choice.
    drawn = ET.fromstring(lines([3.0, 1.0, 2.0]).svg())
    first, middle, last = (float(e.get("cx")) for e in drawn.iter() if e.tag.endswith("circle"))
    assert first < middle < last == 706
    assert middle == pytest.approx((first + last) / 2, abs=0.1)
    chosen = [e for e in drawn.iter() if "d55e00" in e.get("style", "") and e.get("x1")]
    assert float(chosen[-1].get("x1")) == pytest.approx(middle, abs=0.1)


def test_lower_errors_are_drawn_lower():
    drawn = ET.fromstring(lines([3.0, 1.0, 2.0]).svg())
    heights = [float(e.get("cy")) for e in drawn.iter() if e.tag.endswith("circle")]
    assert heights[1] > heights[2] > heights[0]


def test_a_path_that_was_never_scored_says_so():
    assert "no step was scored" in lines([NAN, NAN]).svg()


@pytest.mark.parametrize(
    "record, message",
    [
        ({"kind": "Pie"}, "Pie"),
        ({"kind": "Lines", "title": "t"}, "missing"),
        (heat().to_dict() | {"kept": []}, "one entry per row"),
        (dots().to_dict() | {"marks": ["red", "id"]}, "marks"),
        (dots().to_dict() | {"values": ["x", 1]}, "could not convert"),
        (lines([1.0, 2.0]).to_dict() | {"series": [{"name": "", "x": [1], "y": []}]}, "x has 1"),
    ],
)
def test_a_damaged_chart_is_refused(record, message):
    with pytest.raises((ValueError, TypeError), match=message):
        chart_from_dict(record)


@pytest.mark.parametrize(
    "value, text",
    [
        (0.12345, "0.123"),
        (12345.6, "12,346"),
        (3, "3"),
        (1.0, "1"),
        (-0.5, "−0.5"),
        (1e-7, "1e−7"),
        (2.5e12, "2.5e12"),
        (math.inf, "∞"),
        (NAN, "–"),
        (0.0, "0"),
    ],
)
def test_numbers_are_written_as_people_write_them(value, text):
    assert number(value) == text


def test_a_path_shows_itself_in_a_notebook():
    path = SelectionPath([0, 1], ["dose", EVIL], [1.0, 0.4, 0.5], 2, "least <b>here</b>")
    shown = path._repr_html_()
    assert "<svg" in shown
    assert "least &lt;b&gt;here" in shown
    assert "<script" not in shown


def test_many_chosen_names_are_counted_rather_than_listed():
    path = SelectionPath(range(30), map(str, range(30)), np.linspace(1, 0, 31), 30, "all")
    assert "and 18 more" in path._repr_html_()
