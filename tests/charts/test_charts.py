import json
import math
import xml.etree.ElementTree as ET
from dataclasses import replace
from itertools import pairwise

import matplotlib
import numpy as np
import pytest

from holdtrue import SelectionPath
from holdtrue.charts import Chart, Dot, Dots, Heat, Lines, Series, axes, number, svg
from holdtrue.charts.chart import short_names
from holdtrue.charts.layout import Scale, dot_scale, line_scales, off_scale, spans

matplotlib.use("Agg")
import matplotlib.pyplot as plt

EVIL = "<script>alert(1)</script>\x07\"'&"
NAN = math.nan


def lines(y, **changed):
    given = {"series": [Series("error", range(len(y)), y)], "chosen": 1.0}
    return Lines("title", "text", "steps", "error", **(given | changed))


def dots(*given):
    given = given or [
        Dot("age", 0.1, 0.05, 0.2, 0.3, "kept"),
        Dot(EVIL, 0.4, NAN, NAN, 0.3, "id", f"a long note {EVIL}"),
    ]
    return Dots("title", EVIL, "error", given, "no column", {"kept": "kept", "id": "an id"})


def heat():
    values = [[0.5, -0.4], [0.01, NAN]]
    return Heat("title", "text", ["dose", EVIL], ["A", "B"], values, [True, False])


CHARTS = {
    "lines": lambda: lines([1.0, 0.4, 0.5]),
    "log": lambda: lines([1.0, 0.01, 1e9, math.inf]),
    "gaps": lambda: lines([1.0, NAN, 0.3, -0.2]),
    "flat": lambda: lines([1.0, 1.0]),
    "one": lambda: lines([1.0], chosen=0.0),
    "absurd": lambda: lines([1e308, -1e308, 1e-320, 1e150, -1e149], chosen=1e300),
    "tiny": lambda: lines([1e-310, 3e-310, 5e-324]),
    "least of floats": lambda: lines([0.0, 5e-324], scale="from zero"),
    "band": lambda: lines(
        [1.0, 2.0],
        series=[
            Series("mean", [0.5, 1.5], [1.0, 2.0], "main", [0.5, NAN], [1.5, 2.5]),
            Series("missing", [3], [1.5], "main", [1.0], [2.0]),
        ],
        ticks=["low", "high", "higher", "missing"],
        scale="plain",
    ),
    "dots": dots,
    "equal dots": lambda: dots(Dot("a", 0.3, reference=0.3), Dot("b", 0.3, reference=0.3)),
    "a note at either side": lambda: dots(Dot("a", 0.0, note="n" * 99), Dot("b", 1.0, note="m")),
    "no dots": lambda: Dots("t", "t", "x", [], "no column", {}),
    "no legend": lambda: Dots("t", "t", "x", [Dot("a", 1.0)], "", {}),
    "no number": lambda: dots(Dot("a", NAN, reference=math.inf)),
    "heat": heat,
    "groups": lambda: Heat(
        "t", "t", ["a", "b"], ["c", "d"], [[1, 2], [3, -4]], (), ["x", "x"], ["y", "z"]
    ),
    "zero heat": lambda: Heat("t", "t", ["a"], ["b"], [[0.0]], [False]),
    "wide heat": lambda: Heat(
        "t", "t", ["a"], [f"d{i}" for i in range(200)], [[0.1] * 200], [True]
    ),
}


@pytest.mark.parametrize("given_width", [340, 1000])
@pytest.mark.parametrize("make", CHARTS.values(), ids=CHARTS)
def test_every_chart_is_well_formed_and_stays_on_its_canvas(make, given_width):
    root = ET.fromstring(svg.draw(make(), given_width))
    _, _, width, height = map(float, root.get("viewBox").split())
    for inner in [e for e in root if e.tag.endswith("svg")]:  # cuts off what stands out
        inner[:] = []
    for element in root.iter():
        for name in ("x", "x1", "x2", "cx"):
            assert -1 <= float(element.get(name, 0)) <= width + 1, ET.tostring(element)
        for name in ("y", "y1", "y2", "cy"):
            assert -1 <= float(element.get(name, 0)) <= height + 1, ET.tostring(element)


def test_a_curve_that_leaves_the_scale_is_cut_off_and_not_bent():
    values = [1.0, 0.4, 1e30, 0.5]
    (inner,) = [e for e in ET.fromstring(svg.draw(lines(values))) if e.tag.endswith("svg")]
    left, top, width, height = map(float, inner.get("viewBox").split())
    assert (float(inner.get("y")), float(inner.get("height"))) == (top, height)
    (curve,) = [e for e in inner if e.tag.endswith("polyline")]
    points = [tuple(map(float, pair.split(","))) for pair in curve.get("points").split()]
    assert [top <= y <= top + height for _, y in points] == [True, True, False, True]
    assert all(left <= x <= left + width for x, _ in points)


@pytest.mark.parametrize("make", [dots, heat], ids=["dots", "heat"])
def test_names_from_data_are_text_and_never_markup(make):
    drawn = svg.draw(make())
    assert "<script" not in drawn
    assert "&lt;script&gt;" in drawn
    assert "\x07" not in drawn


@pytest.mark.parametrize("make", CHARTS.values(), ids=CHARTS)
def test_a_chart_survives_json(make):
    chart = make()
    again = Chart.from_dict(json.loads(json.dumps(chart.to_dict(), allow_nan=False)))
    assert again == chart
    assert svg.draw(again) == svg.draw(chart)


@pytest.mark.parametrize("make", CHARTS.values(), ids=CHARTS)
def test_matplotlib_draws_every_chart_too(make):
    figure, ax = plt.subplots()
    axes.draw(make(), ax)
    figure.canvas.draw()
    plt.close(figure)


def test_both_pens_draw_the_same_curve_ticks_and_legend():
    chart = lines([1.0, 0.4, 50.0], series=[Series("error", range(3), [1.0, 0.4, 50.0])])
    figure, ax = plt.subplots()
    (line,) = axes.draw(chart, ax)
    assert line.get_xydata().tolist() == [[0, 1.0], [1, 0.4], [2, 50.0]]
    words = {e.text for e in ET.fromstring(svg.draw(chart)).iter() if e.tag.endswith("text")}
    assert {tick.get_text() for tick in ax.get_yticklabels()} <= words
    assert {text.get_text() for text in ax.get_legend().get_texts()} <= words
    assert {ax.get_xlabel(), ax.get_ylabel()} <= words
    plt.close(figure)


def test_a_point_of_the_path_is_where_the_axis_says():
    # Three sizes: size 1 stands in the middle, and so does the line of the choice.
    drawn = ET.fromstring(svg.draw(lines([3.0, 1.0, 2.0])))
    first, middle, last, dot = (
        float(e.get("cx")) for e in drawn.iter() if e.tag.endswith("circle")
    )
    assert dot == middle  # marks the choice on the curve
    assert first < middle < last == 706
    assert middle == pytest.approx((first + last) / 2, abs=0.1)
    chosen = [e for e in drawn.iter() if e.get("x1") and e.get("x1") == e.get("x2")]
    assert float(chosen[-1].get("x1")) == pytest.approx(middle, abs=0.1)


def test_what_is_off_the_scale_is_marked_where_it_leaves():
    chart = lines([1.0, 0.4, 1e30, 1e31, 0.5, math.inf])
    _, vertical = line_scales(chart)
    assert off_scale(chart.series[0], vertical) == [(2.0, True), (5.0, True)]
    drawn = svg.draw(chart)
    assert "off the scale" in drawn
    assert drawn.count("<path") == 3  # two places and the legend
    figure, ax = plt.subplots()
    axes.draw(chart, ax)
    marks = [line.get_xydata().tolist() for line in ax.lines if line.get_marker() == "^"]
    assert marks == [[[2.0, vertical.high]], [[5.0, vertical.high]]]
    plt.close(figure)
    assert "off the scale" not in svg.draw(lines([1.0, 0.4, 0.5]))


def test_both_pens_draw_a_band_and_name_the_places():
    chart = CHARTS["band"]()
    drawn = svg.draw(chart)
    words = {e.text for e in ET.fromstring(drawn).iter() if e.tag.endswith("text")}
    assert {"low", "high", "higher", "missing"} <= words
    assert drawn.count("<polygon") + drawn.count("stroke-width:3;opacity") == 2
    figure, ax = plt.subplots()
    axes.draw(chart, ax)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == list(chart.ticks)
    assert len(ax.collections) == 2
    plt.close(figure)
    with pytest.raises(ValueError, match="low and high must have 2 numbers each"):
        Series("a", [1, 2], [1, 2], "main", [1.0], [2.0])


def test_names_that_would_meet_are_thinned_out():
    ticks = [f"value {i}" for i in range(40)]
    chart = lines(range(40), ticks=ticks, scale="from zero")
    places = sorted(
        (float(e.get("x")), e.text)
        for e in ET.fromstring(svg.draw(chart, 340)).iter()
        if e.tag.endswith("text") and (e.text or "").startswith("value ")
    )
    assert 2 <= len(places) < 10
    assert places[-1][1] == "value 39"  # the last is named in any case
    _, ax = plt.subplots()
    axes.draw(chart, ax)
    assert [tick.get_text() for tick in ax.get_xticklabels()][-1] == "value 39"
    plt.close("all")
    assert all(right - left > 6 * len(name) for (left, _), (right, name) in pairwise(places))


SURVEY = [f"a question that begins like all others do, part {i}" for i in range(3)]


@pytest.mark.parametrize("width", [340, 720])
def test_long_names_that_begin_alike_are_told_apart(width):
    charts = (
        dots(*(Dot(name, i) for i, name in enumerate([*SURVEY, "age"]))),
        Heat("t", "t", [*SURVEY, "age"], SURVEY, [[1.0] * 3] * 4, [True, False, False, False]),
    )
    for chart in charts:
        drawn = [e.text for e in ET.fromstring(svg.draw(chart, width)).iter() if e.text]
        for i in range(3):
            assert any("…" in text and text.endswith(f"part {i}") for text in drawn)
        assert "age" in drawn
        _, ax = plt.subplots()
        axes.draw(chart, ax)
        labels = [label.get_text() for label in ax.get_yticklabels()]
        assert len({*labels}) == 4
        assert max(map(len, labels)) <= 40
        plt.close("all")
    assert short_names(["abcdefgh", "abc", "xyzabcde"], 6) == ["abcde…", "abc", "xyzab…"]
    assert short_names(["abcdefg1", "abcdefg2"], 6) == ["ab…fg1", "ab…fg2"]


@pytest.mark.parametrize("width", [340, 1000])
@pytest.mark.parametrize(
    "name", ["HOUSING_TYPE_OF_THE_HOUSEHOLD", "M" * 40, "年齢と性別と職業" * 3]
)
def test_names_in_capitals_and_broad_letters_stay_on_the_canvas(name, width):
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    for chart in (dots(Dot(name, 0.1), Dot("age", 0.4)), replace(heat(), rows=[name, "age"])):
        (drawn,) = (
            element
            for element in ET.fromstring(svg.draw(chart, width)).iter()
            if element.tag.endswith("text") and name[:3] in (element.text or "")
        )
        latin = "".join(letter for letter in drawn.text if letter < "⺀")
        path = TextPath((0, 0), latin, prop=FontProperties(family="DejaVu Sans", size=12))
        size = path.get_extents().width + 12 * (len(drawn.text) - len(latin))
        assert drawn.get("text-anchor") == "end"
        assert float(drawn.get("x")) - size >= 0


def test_a_title_is_as_wide_as_its_axes_and_a_legend_of_dots_covers_none():
    figure, grid = plt.subplots(1, 2, figsize=(7, 3), layout="constrained")
    title = "a title that is much longer than one line " * 2
    for ax in grid:
        chart = dots(Dot("a", 0.0, -1.0, 1.0, 0.3), Dot("b", 1.0, -1.0, 1.0, 0.3))
        axes.draw(replace(chart, title=title), ax)
    figure.canvas.draw()
    for ax in grid:
        written = ax.title if ax.get_title() else ax._left_title
        legend, frame = ax.get_legend().get_window_extent(), ax.get_window_extent()
        assert written.get_window_extent().x1 < frame.x1 + 20
        first = ax.transData.transform((0, -0.4))[1]
        assert first < legend.y0 < legend.y1 < frame.y1 < written.get_window_extent().y0
        assert written.get_window_extent().y1 < figure.bbox.y1
    plt.close("all")


def test_lower_errors_are_drawn_lower():
    drawn = ET.fromstring(svg.draw(lines([3.0, 1.0, 2.0])))
    heights = [float(e.get("cy")) for e in drawn.iter() if e.tag.endswith("circle")]
    assert heights[1] > heights[2] > heights[0]


def test_ticks_are_round_and_inside_the_scale():
    assert [label for _, label in Scale(0, 1).ticks()] == ["0", "0.2", "0.4", "0.6", "0.8", "1"]
    assert [label for _, label in Scale(1, 3, whole=True).ticks()] == ["1", "2", "3"]
    assert [value for value, _ in Scale(0.03, 300, log=True).ticks()] == [0.1, 1, 10, 100]
    assert [value for value, _ in Scale(0.8, 40, log=True).ticks()] == [1, 2, 5, 10, 20]
    assert len(Scale(1e-90, 1e90, log=True).ticks()) <= 12
    assert (Scale(2, 2).low, Scale(2, 2, whole=True).high) == (1.8, 3)


@pytest.mark.parametrize("values", [(4.0, 4.0), (4.0, 6.0), (4.0, 90.0)])
def test_dots_of_whole_numbers_have_whole_ticks(values):
    chart = dots(*(Dot(str(i), value, reference=4.0) for i, value in enumerate(values)))
    labels = [label for _, label in dot_scale(chart).ticks()]
    assert labels
    assert all(label.isdecimal() for label in labels)
    _, ax = plt.subplots()
    axes.draw(chart, ax)
    assert all(tick == int(tick) for tick in ax.get_xticks())
    plt.close("all")
    assert not dot_scale(dots(Dot("a", 4.5, reference=4.0))).whole


@pytest.mark.parametrize(
    "low, high, first",
    [
        (2020.1, 2020.9, "2,020.2"),
        (1e6, 1e6 + 3, "1,000,000"),
        (0.69312, 0.69318, "0.69312"),
        (-1000.3, -999.6, "−1,000.2"),
    ],
)
def test_ticks_that_are_close_have_as_many_digits_as_tell_them_apart(low, high, first):
    labels = [label for _, label in Scale(low, high).ticks()]
    assert labels[0] == first
    assert len({*labels}) == len(labels) > 3


def test_a_log_scale_is_for_errors_that_span_decades_and_is_cropped_to_the_choice():
    assert not line_scales(lines([1.0, 29.0]))[1].log
    vertical = line_scales(lines([1.0, 0.4, 1e30]))[1]
    assert vertical.log
    assert vertical.high == pytest.approx(1.3 * 400)  # a thousand times the least
    train = Series("", [0, 1], [1e-20, 1.0], "train")
    cropped = line_scales(lines([], series=[Series("", [0, 1], [0.4, 20.0]), train]))[1]
    assert cropped.low == pytest.approx(0.4e-3 / 1.3)


def test_groups_are_runs_of_equal_labels():
    assert spans(["a", "a", "b"]) == [("a", 0, 2), ("b", 2, 3)]
    assert spans([]) == []


def test_a_path_that_was_never_scored_says_so():
    assert "no step was scored" in svg.draw(lines([NAN, NAN]))


@pytest.mark.parametrize(
    "record, message",
    [
        ({"kind": "Pie"}, "known kinds"),
        ({"kind": "Chart", "title": "t", "text": "t"}, "known kinds"),
        ({"kind": "Series", "name": "t", "x": [], "y": []}, "known kinds"),
        ([], "known kinds"),
        ({"kind": "Lines", "title": "t"}, "'text' is missing"),
        (heat().to_dict() | {"kept": [True]}, "kept must have 2 entries"),
        (heat().to_dict() | {"values": [[1, 2]]}, "one entry per row and column"),
        (heat().to_dict() | {"rows": "ab"}, "rows must be a list. Got 'ab'"),
        (dots().to_dict() | {"dots": [{"label": "a", "value": 1, "mark": "red"}]}, "mark must be"),
        (dots().to_dict() | {"dots": [{"label": "a", "value": "x"}]}, "must be a number. Got 'x'"),
        (dots().to_dict() | {"dots": [{"label": "a", "value": True}]}, "must be a number. Got T"),
        (dots().to_dict() | {"dots": [{"label": "a", "value": 10**400}]}, "must be a number"),
        (dots().to_dict() | {"legend": []}, "legend must be a table of names"),
        (lines([1.0, 2.0]).to_dict() | {"series": [{"name": "", "x": [1], "y": []}]}, "x has 1"),
    ],
)
def test_a_damaged_chart_is_refused(record, message):
    with pytest.raises(ValueError, match=f"the chart is damaged: .*{message}"):
        Chart.from_dict(record)


@pytest.mark.parametrize(
    "value, text",
    [
        (0.12345, "0.123"),
        (12345.6, "12,346"),
        (999.7, "1,000"),
        (1e6, "1e6"),
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
