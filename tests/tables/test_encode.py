"""Features of a table: what becomes of each column, and the moments of its rows."""

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from holdtrue import Moments, TGreedyClassifier, TGreedyRegressor
from holdtrue.tables import column_summary, open_table
from holdtrue.tables import encoder as features
from holdtrue.tables.encoder import moments_of, rows_of


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    n = 300
    frame = pd.DataFrame(
        {
            "dose": rng.normal(50, 9, n),
            "visits": rng.integers(0, 9, n),
            "smoker": rng.random(n) < 0.3,
            "plan": rng.choice(["free", "paid", "team"], n),
            "sex": rng.choice(["f", "m"], n),
            "code": rng.choice([f"c{i}" for i in range(40)], n),
            "seen": pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 99, n), "D"),
            "id": [f"u{i}" for i in range(n)],
            "one": 7,
            "same": "x",
            "site": rng.choice(["N", "S", "W"], n),
        }
    )
    frame["y"] = frame["dose"] / 9 + 2 * (frame["plan"] == "paid") + rng.normal(0, 1, n)
    return frame


def found_in(frame, target="y", domain="site", **options):
    types = options.pop("types", None)
    return moments_of(open_table(frame, types=types), target, domain, **options)


def as_numbers(found, frame):
    """The matrix that the columns describe, by pandas."""
    X = {}
    for column in found.columns:
        values = frame[column.name]
        if column.levels:
            for feature, level in zip(column.features, column.levels, strict=False):
                X[feature] = (values.isna() if level is None else values == level).astype(float)
            if len(column.features) > len(column.levels):
                X[column.features[-1]] = (~values.isin(column.levels)).astype(float)
        elif column.features:
            if values.dtype.kind == "M":
                values = (values - pd.Timestamp(0)) / pd.Timedelta("1D")
            X[column.name] = values.astype(float).fillna(values.astype(float).mean())
    return pd.DataFrame(X)


def test_the_moments_are_those_of_the_features(rows, monkeypatch):
    rows.loc[::7, "dose"] = np.nan
    rows.loc[::5, "plan"] = None
    found = found_in(rows)
    X = as_numbers(found, rows)
    whole = Moments.from_arrays(X.to_numpy(), rows["y"].to_numpy(), groups=rows["site"].to_numpy())
    assert found.moments.feature_names == tuple(X)
    assert found.moments.domains == ("N", "S", "W")
    for name in ("n_samples", "mean_x", "scatter_xx", "mean_y", "scatter_xy", "scatter_yy"):
        np.testing.assert_allclose(
            getattr(found.moments, name), getattr(whole, name), rtol=1e-9, atol=1e-7
        )
    monkeypatch.setattr(column_summary, "ROWS", 17)
    monkeypatch.setattr(features, "ROWS", 17)
    parts = found_in(rows)
    assert [c.features for c in parts.columns] == [c.features for c in found.columns]
    np.testing.assert_allclose(parts.moments.scatter_xx, found.moments.scatter_xx, atol=1e-7)


def test_each_column_says_what_became_of_it(rows):
    rows.loc[:29, "dose"] = np.nan
    rows.loc[:9, "plan"] = None
    rows["gone"] = None
    found = {column.name: column for column in found_in(rows).columns}
    assert found["dose"].note.startswith("number; 30 missing, filled with the mean ")
    assert found["dose"].fill == pytest.approx(rows["dose"].mean())
    assert found["visits"].note == "number"
    assert found["smoker"].note == "truth value"
    assert found["seen"].note == "date, in days"
    assert found["plan"].note == "category of 4 values; 10 missing"
    assert set(found["plan"].features) == {"plan=free", "plan=paid", "plan=team", "plan=(missing)"}
    assert len(found["sex"].features) == 1
    assert found["code"].note == "category of 40 values; the 20 least frequent are taken together"
    assert len(found["code"].features) == 21
    assert found["code"].features[-1] == "code=(other)"
    assert found["id"].note == "left out: 300 values in 300 rows look like an id"
    assert found["one"].note == "left out: its only value is 7"
    assert found["same"].note == "left out: its only value is 'x'"
    assert found["gone"].note == "left out: all values are missing"
    assert not any(found[name].features for name in ("id", "one", "same", "gone"))


def test_frequent_levels_come_first_and_ties_in_order():
    frame = pa.table({"c": ["b", "a", "c", "c"] * 9, "s": ["N", "S"] * 18, "y": np.arange(36.0)})
    (column,) = found_in(frame, domain="s").columns
    assert column.levels == ("c", "a", "b")
    (column,) = found_in(frame, domain="s", max_levels=1).columns
    assert column.features == ("c=c", "c=(other)")


def test_columns_can_be_left_out_or_taken_as_categories(rows):
    found = found_in(rows, leave_out=["dose", "id"], types={"visits": "category"})
    names = [column.name for column in found.columns]
    assert "dose" not in names
    assert "id" not in names
    assert "visits=3" in found.moments.feature_names


def test_the_fit_on_sums_is_that_on_rows(rows):
    found = found_in(rows)
    model = TGreedyRegressor(stop="max_steps", max_steps=5).fit_statistics(found.moments)
    X = as_numbers(found, rows).to_numpy()
    same = TGreedyRegressor(stop="max_steps", max_steps=5).fit(X, rows["y"], groups=rows["site"])
    assert model.path_.order.tolist() == same.path_.order.tolist()
    np.testing.assert_allclose(model.coef_, same.coef_, rtol=1e-6)


@pytest.mark.parametrize(
    "target, classes",
    [
        (["no", "yes"], ("no", "yes")),
        ([False, True], (False, True)),
        ([0, 1], (0, 1)),
        ([1.0, 2.0], (1.0, 2.0)),
        (["a", "b", "c"], ("a", "b", "c")),
    ],
)
def test_classes_are_plus_and_minus_one(rows, target, classes):
    rng = np.random.default_rng(1)
    rows["y"] = [target[i] for i in rng.integers(0, len(target), len(rows))]
    found = found_in(rows)
    assert found.classes == classes
    X = as_numbers(found, rows).to_numpy()
    model = TGreedyClassifier(stop="max_steps", max_steps=4)
    sums = model.fit_statistics(found.moments, classes=found.classes).coef_
    np.testing.assert_allclose(sums, model.fit(X, rows["y"], groups=rows["site"]).coef_, rtol=1e-6)
    if isinstance(target[0], (int, float)) and not isinstance(target[0], bool):
        assert found_in(rows, target_type="numeric").classes is None


def test_the_target_is_read_by_the_common_rule(rows):
    rows["y"] = np.arange(len(rows)) % 3
    assert found_in(rows).classes == (0, 1, 2)
    assert "3 classes" in found_in(rows).target_kind.sentence("y")
    assert found_in(rows, target_type="numeric").classes is None
    rows["y"] = np.arange(len(rows)) % 21  # above 20 different values
    assert found_in(rows).classes is None
    assert found_in(rows[:100].assign(y=np.arange(100) % 20)).classes == tuple(range(20))
    assert found_in(rows[:99].assign(y=np.arange(99) % 20)).classes is None  # under 5 rows each
    days = rows.assign(y=pd.Timestamp("2020-01-01") + pd.to_timedelta(rows["y"] % 3, unit="D"))
    assert found_in(days).classes is None


def test_infinite_numbers_are_missing(rows):
    rows.loc[0, "dose"] = np.inf
    assert found_in(rows).columns[0].n_missing == 1


def test_domains_may_be_dates_and_numbers(rows):
    rows["year"] = rows.index % 4 + 2000
    assert found_in(rows, domain="year").moments.domains == (2000, 2001, 2002, 2003)
    days = pa.array([dt.date(2024, 1, 1 + i % 3) for i in range(len(rows))])
    table = pa.Table.from_pandas(rows).append_column("day", days)
    assert found_in(table, domain="day").moments.domains[0] == dt.date(2024, 1, 1)


@pytest.mark.parametrize(
    "columns, options, message",
    [
        ({}, {"target": "z"}, r"no column 'z'"),
        ({}, {"domain": "sit"}, r"no column 'sit'. Did you mean 'site'"),
        ({}, {"leave_out": ["doze"]}, r"no column 'doze'. Did you mean 'dose'"),
        ({}, {"target": "site"}, r"target and domain must be two columns. Got 'site' for both"),
        ({}, {"max_levels": 0}, r"max_levels must be a whole number of at least 1. Got 0"),
        ({}, {"target_type": "text"}, r"target_type must be one of"),
        ({"y": np.nan}, {}, r"the target 'y' must not be missing or infinite. Got 300 such"),
        ({"y": 1.5}, {}, r"the target 'y' is 1.5 in every row"),
        ({"y": "a"}, {}, r"needs at least 2 classes in 'y'. Got 1 class, 'a'"),
        (
            {"y": "a"},
            {"target_type": "numeric"},
            r"'y' must hold numbers for target_type='numeric'",
        ),
        ({"site": "N"}, {}, r"needs at least 2 domains, got 1 \('N' in every row of 'site'\)"),
        ({"site": None}, {}, r"the domain 'site' must not be missing"),
        ({}, {"target": "id"}, r"the target must have at most 100 classes. Got 300"),
    ],
)
def test_what_cannot_be_summed_is_refused(rows, columns, options, message):
    with pytest.raises(ValueError, match="^moments_of: .*" + message):
        found_in(rows.assign(**columns), **options)


def test_sums_that_fill_the_memory_are_refused(rows, monkeypatch):
    monkeypatch.setattr(features, "_MAX_BYTES", 1000)
    with pytest.raises(ValueError, match=r"the sums of 3 domains of 'site' and .* features"):
        found_in(rows)
    monkeypatch.setattr(column_summary, "MAX_VALUES", 2)
    with pytest.raises(ValueError, match=r"the domain 'site' must have at most 2 values"):
        found_in(rows)


def test_without_a_feature_there_is_nothing_to_sum():
    frame = pa.table({"one": [1, 1], "site": ["N", "S"], "y": [1.0, 2.0]})
    with pytest.raises(ValueError, match=r"no column is left as a feature \('one' left out"):
        found_in(frame)


def test_numbers_whose_squares_overflow_are_left_out_and_refused_as_a_target(rows):
    found = found_in(rows.assign(huge=np.where(rows["dose"] > 50, 1e300, -1.0)))
    (column,) = (column for column in found.columns if column.name == "huge")
    assert column.features == ()
    assert column.note == "left out: 1e+300 is too large to be squared"
    with pytest.raises(ValueError, match=r"^moments_of: the target 'y' goes up to .* too large"):
        found_in(rows.assign(y=rows["y"] * 1e200))


def test_two_features_of_one_name_are_refused():
    frame = pa.table(
        {"a": ["x", "y", "z"], "a=x": [1, 2, 3], "site": ["N", "S", "S"], "y": [1.0, 2.0, 3.0]}
    )
    with pytest.raises(ValueError, match=r"two features would be called 'a=x'. Rename"):
        found_in(frame)


def test_dates_and_times_are_in_days(rows):
    micro = np.arange(len(rows)) * 250_000
    rows["at"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(micro, unit="us")
    rows["waited"] = pd.to_timedelta(micro, unit="us")
    found = found_in(rows)
    notes = {column.name: column.note for column in found.columns}
    assert notes["at"] == "date, in days"
    assert notes["waited"] == "time, in days"
    at, waited = (found.moments.feature_names.index(name) for name in ("at", "waited"))
    n = found.moments.n_samples
    spread = np.diagonal(found.moments.scatter_xx, axis1=1, axis2=2) / n[:, None]
    np.testing.assert_allclose(spread[:, at], spread[:, waited], rtol=1e-3)
    assert found.moments.mean_x[:, waited] @ n / n.sum() == pytest.approx(micro.mean() / 86.4e9)


@pytest.mark.parametrize("target", ["y", "plan", "smoker"])
def test_rows_add_up_to_the_moments(rows, target, monkeypatch):
    monkeypatch.setattr(features, "_CELLS", 500)  # several batches
    frame = rows.assign(dose=rows["dose"].where(rows["visits"] > 1))
    matrix = rows_of(open_table(frame), target, "site")
    sums = found_in(frame, target=target)
    classes = [None] if sums.classes is None else [str(label) for label in sums.classes]
    y = matrix.y
    if len(classes) == 2:
        y = np.where(y == classes[1], 1.0, -1.0)
    elif len(classes) > 2:
        y = np.where(y[:, None] == np.array(classes), 1.0, -1.0)
    again = Moments.from_arrays(matrix.X, y, groups=matrix.groups)
    assert tuple(matrix.feature_names) == sums.moments.feature_names
    assert matrix.columns == sums.columns
    assert again.domains == sums.moments.domains
    np.testing.assert_allclose(again.mean_x, sums.moments.mean_x, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(again.mean_y, sums.moments.mean_y, rtol=1e-10, atol=1e-12)


def test_rows_need_no_domain_and_must_fit_in_memory(rows, monkeypatch):
    whole = rows_of(open_table(rows), "y", leave_out=["code"])
    assert whole.groups is None
    assert "site=S" in whole.feature_names
    assert not any(name.startswith("code=") for name in whole.feature_names)
    monkeypatch.setattr(features, "_MAX_BYTES", 1000)
    with pytest.raises(ValueError, match=r"^rows_of: 300 rows of .* features need"):
        rows_of(open_table(rows), "y", "site")


@pytest.mark.parametrize("missing", [slice(0, 70_000), slice(65_536, 131_072)])
def test_a_whole_batch_without_targets_changes_nothing(missing):
    n = 2 * column_summary.ROWS + 1000
    x = np.arange(n) % 7.0
    rows = pd.DataFrame({"x": x, "y": x % 3, "site": np.where(np.arange(n) % 2, "N", "S")})
    rows.loc[missing, "y"] = np.nan
    expected = found_in(rows.dropna())
    table, _ = open_table(rows).complete(["y", "site"])
    found = moments_of(table, "y", "site")
    np.testing.assert_array_equal(found.moments.n_samples, expected.moments.n_samples)
    np.testing.assert_allclose(found.moments.scatter_xx, expected.moments.scatter_xx, rtol=1e-12)
    assert len(rows_of(table, "y", "site").y) == len(rows.dropna())


def test_rows_of_weight_0_are_left_out_even_where_a_whole_batch_has_no_other():
    n = column_summary.ROWS + 1000
    x, weight = np.arange(n) % 7.0, np.zeros(n)
    rows = pd.DataFrame({"x": x, "y": x % 3, "site": np.where(np.arange(n) % 2, "N", "S")})
    rows["plan"], rows.loc[3, "plan"] = np.where(x % 2, "a", "b"), "rare"
    rows.loc[::5, "x"] = np.nan
    weight[column_summary.ROWS :] = 2.0
    found = found_in(rows, sample_weight=weight)
    expected = found_in(rows[weight > 0], sample_weight=weight[weight > 0])
    assert found.columns == expected.columns
    np.testing.assert_allclose(found.moments.scatter_xy, expected.moments.scatter_xy, rtol=1e-12)


def test_weights_must_be_one_for_each_row():
    rows = pa.table({"x": [1.0, 2.0, 3.0], "y": [1.0, 2.0, 4.0], "site": ["N", "S", "S"]})
    with pytest.raises(ValueError, match=r"^moments_of: sample_weight .* Got shape \(5,\)"):
        found_in(rows, sample_weight=np.ones(5))


def test_weights_are_repetitions_in_means_and_in_which_values_are_frequent():
    rows = pa.table(
        {
            "dose": [1.0, None, 4.0, 2.0, 100.0],
            "plan": ["a", "a", "b", None, "z"],
            "shop": ["s", "t", "u", "v", "w"],  # four values in ten rows are no id
            "sick": [1.5, 2.5, 3.5, 0.5, 9.0],
            "site": ["N", "N", "S", "S", "S"],
        }
    )
    weight = np.array([2, 1, 4, 3, 0])
    often = open_table(rows.take(np.repeat(np.arange(5), weight)))
    once = open_table(rows)
    options = {"target_type": "numeric", "max_levels": 2}
    asked = {**options, "sample_weight": weight}
    sums, repeated = (
        moments_of(once, "sick", "site", **asked),
        moments_of(often, "sick", "site", **options),
    )
    assert sums.columns[0].fill == pytest.approx((2 * 1 + 4 * 4 + 3 * 2) / 9)
    assert sums.columns[1].levels == ("b", None)
    for column, other in zip(sums.columns, repeated.columns, strict=True):
        assert (column.features, column.levels) == (other.features, other.levels)
    np.testing.assert_allclose(sums.moments.mean_x, repeated.moments.mean_x)
    encoded, of_copies = rows_of(once, "sick", **asked), rows_of(often, "sick", **options)
    np.testing.assert_allclose(encoded.X.repeat(weight[:4], axis=0), of_copies.X)


def test_weights_far_below_1_make_no_id_of_a_category():
    n = 100
    shop = [f"p{i % 25}" for i in range(n)]
    rows = pd.DataFrame({"shop": shop, "y": np.sqrt(np.arange(n)), "site": ["N", "S"] * (n // 2)})
    assert found_in(rows, sample_weight=np.full(n, 0.01)).columns == found_in(rows).columns
