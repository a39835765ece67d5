"""What columns say at their values: the deployed predictor's numbers, with intervals that hold."""

import warnings

import numpy as np
import pandas as pd
import pytest

from holdtrue import Counts, GingerEncoder, GingerSelector, SelectionPath, rank_columns
from holdtrue.categories.display import RankingDisplay, shape_chart
from holdtrue.categories.shape import share_interval, texts
from holdtrue.charts import Dots, Lines
from holdtrue.columns import parts


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    n = 1500
    frame = pd.DataFrame(
        {
            "plan": rng.choice(["free", "basic", "paid"], n, p=[0.5, 0.3, 0.2]),
            "age": rng.integers(18, 60, n),
            "spend": rng.lognormal(size=n),
            "city": [f"city {i}" for i in rng.geometric(0.05, n)],
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D"),
        }
    )
    risk = 0.1 + 0.3 * (frame["plan"] == "free") + 0.01 * (frame["age"] - 18)
    risk += 0.1 * (frame["spend"] < 1) + 0.3 * frame["city"].str.endswith("1")
    risk += 0.0003 * (frame["since"] - frame["since"].min()).dt.days
    frame.loc[rng.random(n) < 0.1, "spend"] = np.nan
    return frame.assign(left=rng.random(n) < np.clip(risk, 0, 1))


def shapes_of(ranking):
    return {shape.column: shape for shape in ranking.path.evidence.shapes}


@pytest.mark.parametrize("target", ["left", "bill"])
def test_a_shape_holds_what_the_deployed_predictor_says(people, target):
    X, y = people.drop(columns="left"), people["left"]
    if target == "bill":
        y = 10.0 * y + 0.1 * people["age"] + np.arange(len(y)) % 7
    shapes = shapes_of(rank_columns(X, y.to_numpy()))
    output = "mean" if target == "bill" else "probability"
    said = GingerEncoder(output=output).set_output(transform="pandas").fit(X, y).transform(X)
    plan = shapes["plan"]
    for value, share, n_rows in zip(plan.labels, plan.values, plan.n_rows, strict=True):
        rows = X["plan"] == value
        assert said["plan"][rows].tolist() == pytest.approx([share] * rows.sum())
        assert n_rows == rows.sum()
    missing = X["spend"].isna()
    assert shapes["spend"].labels[-1] == "missing"
    assert said["spend"][missing].iloc[0] == pytest.approx(shapes["spend"].values[-1])
    assert set(np.round(said["spend"], 9)) == set(np.round(shapes["spend"].values, 9))
    assert plan.reference == pytest.approx(y.mean(), abs=1e-3)


def test_many_values_are_the_frequent_ones_and_the_others(people):
    city = shapes_of(rank_columns(people, "left"))["city"]
    assert len(city.labels) == 9
    assert city.labels[-1] == f"{people['city'].nunique() - 8} others"
    assert city.n_rows.sum() == len(people)
    rest = ~people["city"].isin(city.labels)
    assert city.values[-1] == pytest.approx(people["left"][rest].mean(), abs=0.05)


def test_the_others_of_a_numeric_target_keep_their_mean():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"c": [f"c{i}" for i in rng.geometric(0.1, 3000)]})
    y = frame["c"].str[1:].astype(int) + 10 * rng.normal(size=3000)
    shape = shapes_of(rank_columns(frame, y.to_numpy()))["c"]
    rest = ~frame["c"].isin(shape.labels)
    assert shape.values[-1] == pytest.approx(y[rest].mean(), rel=0.01)
    assert (shape.low < shape.values).all()


def test_values_with_an_order_are_shown_in_it(people):
    shapes = shapes_of(rank_columns(people, "left"))
    since = shapes["since"]
    assert since.ticks[0] == str(people["since"].min().date())
    assert since.ticks[-1] == str(people["since"].max().date())
    assert list(since.ticks) == sorted(since.ticks)
    assert since.labels[0] == f"up to {since.ticks[1]}"
    ages = [float(tick) for tick in shapes["age"].ticks]
    assert ages == sorted(ages)


def test_of_several_classes_the_one_that_moves_most_is_shown():
    rng = np.random.default_rng(0)
    c = rng.integers(0, 2, 900)
    y = np.where(c == 1, rng.choice(["a", "b"], 900), rng.choice(["a", "b", "z"], 900))
    shape = shapes_of(rank_columns(pd.DataFrame({"c": c.astype(str)}), y))["c"]
    assert shape.of == "share of 'z'"


def test_parts_counts_and_rows_give_the_same_shapes(people, monkeypatch):
    frame = people.drop(columns="since").assign(spend=people["spend"].round(1))
    wanted = rank_columns(frame, "left").path.evidence.shapes
    selector = GingerSelector().fit(frame.drop(columns="left"), frame["left"])
    assert selector.path_.evidence.shapes == wanted
    halves = [Counts.from_frame(half, "left") for half in (frame[:700], frame[700:])]
    from_counts = GingerSelector().fit_statistics(halves[0] + halves[1]).path_.evidence.shapes
    assert [shape.column for shape in from_counts] == [shape.column for shape in wanted]
    for shape, other in zip(from_counts, wanted, strict=True):
        np.testing.assert_allclose(sorted(shape.values), sorted(other.values))
    monkeypatch.setattr(parts, "LARGE", 1)
    monkeypatch.setattr(parts, "PART", 300)
    in_parts = rank_columns(frame, "left").path.evidence.shapes
    assert [shape.to_dict() for shape in in_parts] == [shape.to_dict() for shape in wanted]


def test_an_interval_holds_the_share_as_often_as_it_says():
    # The share of a value is drawn about the prior as the strength says: Beta(a π, a (1 - π)).
    rng = np.random.default_rng(0)
    a, prior, n = 8.0, 0.3, np.array([1.0, 5.0, 50.0])
    held = []
    for _ in range(2000):
        share = rng.beta(a * prior, a * (1 - prior), 3)
        c = rng.binomial(n.astype(int), share)
        low, high = share_interval((c + a * prior) / (n + a), n, a, 0.1)
        held.append((low <= share) & (share <= high))
    assert np.mean(held, axis=0) == pytest.approx([0.9] * 3, abs=0.025)


def test_groups_widen_intervals_and_a_group_per_row_does_not():
    rng = np.random.default_rng(0)
    person = np.repeat(np.arange(150), 10)
    plan = rng.choice(["a", "b"], 150)[person]
    effect = rng.normal(size=150)[person]
    y = rng.random(1500) < 1 / (1 + np.exp(-effect * 2 - 2 * (plan == "a")))
    frame = pd.DataFrame({"plan": plan})
    (alone,) = rank_columns(frame, y).path.evidence.shapes
    (grouped,) = rank_columns(frame, y, groups=person).path.evidence.shapes
    (single,) = rank_columns(frame, y, groups=np.arange(1500)).path.evidence.shapes
    width = {
        id(shape): float(np.mean(shape.high - shape.low)) for shape in (alone, grouped, single)
    }
    assert width[id(grouped)] > 1.5 * width[id(alone)]
    assert width[id(single)] == pytest.approx(width[id(alone)], rel=0.01)


def test_shapes_survive_json_and_are_drawn(people):
    ranking = rank_columns(people, "left")
    again = SelectionPath.from_json(ranking.path.to_json())
    assert again.evidence.shapes == ranking.path.evidence.shapes
    kinds = {shape.column: type(shape_chart(shape)) for shape in again.evidence.shapes}
    assert kinds["plan"] is Dots
    assert kinds["age"] is Lines
    html = ranking._repr_html_()
    assert html.count('role="img"') == len(kinds)
    assert "up to" not in html.split("<svg")[0]


def test_a_display_draws_the_shapes(people):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    display = RankingDisplay(rank_columns(people, "left").path)
    display.plot_shapes(max_columns=4)
    assert [ax.get_title(loc="left") for ax in display.figure_.axes][:1] == ["plan"]
    noise = RankingDisplay(rank_columns(pd.DataFrame({"c": ["a", "b"] * 30}), [0, 0, 1] * 20).path)
    with pytest.raises(ValueError, match="no column predicts"):
        noise.plot_shapes()


def test_a_selector_shows_its_ranking_in_a_notebook(people):
    X, y = people.drop(columns="left"), people["left"]
    each = GingerSelector().fit(X, y)._repr_html_()
    assert "<th>in short</th>" in each
    assert "Estimated error along the path" not in each
    forward = GingerSelector(mode="forward").fit(X[["plan", "age"]], y)._repr_html_()
    assert "Estimated error along the path" in forward
    assert "<th>in short</th>" not in GingerSelector()._repr_html_()


def test_columns_that_do_not_predict_have_no_shape():
    frame = pd.DataFrame({"id": [f"u{i}" for i in range(200)], "one": "x"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert rank_columns(frame, [0, 1] * 100).path.evidence.shapes == ()


def test_numbers_are_written_with_as_few_digits_as_tell_them_apart():
    assert texts([0.5, 1234.0, 20.25]) == ["0.5", "1234", "20.2"]
    assert texts([1.0001, 1.0002]) == ["1.0001", "1.0002"]
    assert texts([1e-9, 2e12, np.inf]) == ["1e-09", "2e+12", "inf"]
    assert texts(["2020-01-01 00:00:00", "2021-01-01 00:00:00"]) == ["2020-01-01", "2021-01-01"]
    assert texts([True, "a", 3]) == ["True", "a", "3"]
