"""Sums of sites that do not share rows: their sum is that of the joined rows."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from holdtrue import SteadyRidgeClassifier, SteadyRidgeRegressor, TGreedyClassifier
from holdtrue.sums.packing import pack, unpack
from holdtrue.tables import open_table
from holdtrue.tables import site_sums as site_module
from holdtrue.tables.encoder import moments_of
from holdtrue.tables.site_sums import SiteSums, joined, site_sums

FIELDS = ("n_samples", "mean_x", "scatter_xx", "mean_y", "scatter_xy", "scatter_yy")


@pytest.fixture
def rows():
    """Three sites with two domains each; values, classes and missing numbers differ by site."""
    rng = np.random.default_rng(0)
    n = 900
    site = np.repeat(["A", "B", "C"], n // 3)
    frame = pd.DataFrame(
        {
            "site": site,
            "ward": [f"{s}{i % 2}" for i, s in enumerate(site)],
            "dose": rng.normal(1e6, 9, n),
            "visits": rng.integers(0, 9, n),
            "smoker": rng.random(n) < 0.3,
            "plan": rng.choice(["free", "paid", "team"], n),
            "sex": rng.choice(["f", "m"], n),
            "code": [f"c{i}" for i in rng.zipf(1.3, n) % 60],
            "seen": pd.to_datetime("2024-01-01") + pd.to_timedelta(rng.integers(0, 99, n), "D"),
            "same": "x",
            "one": 7,
        }
    )
    frame.loc[(site == "B") & (frame["plan"] == "team"), "plan"] = "gold"  # never at A and C
    frame.loc[(site == "C"), "sex"] = "f"  # constant there
    frame.loc[rng.random(n) < 0.1, "dose"] = np.nan
    frame.loc[site == "C", "dose"] = 1e6 + 3.0  # complete and constant there
    frame.loc[(site == "A") & (rng.random(n) < 0.2), "plan"] = None
    frame["gone"] = np.where(site == "B", np.nan, rng.normal(size=n))  # empty at B
    frame["word"] = np.where(site == "B", None, rng.choice(["up", "down", "left"], n))
    frame["y"] = frame["visits"] + (frame["plan"] == "paid") + rng.normal(0, 1, n)
    frame["kind"] = np.where(frame["y"] > 6, "high", np.where(site == "C", "low", "mid"))
    return frame


def by_site(frame, target, **options):
    sums = {}
    for name, part in frame.groupby("site"):
        table = open_table(part.drop(columns="site").reset_index(drop=True))
        written = site_sums(table, target, "ward", **options).to_bytes()
        sums[f"{name}.sums"] = SiteSums.from_bytes(written)
    return sums


def of_all(frame, target, **options):
    return moments_of(open_table(frame.drop(columns="site")), target, "ward", **options)


def assert_same(found, whole):
    assert found.moments.feature_names == whole.moments.feature_names
    assert found.moments.domains == whole.moments.domains
    assert found.classes == whole.classes
    assert found.n_rows == whole.n_rows
    for ours, theirs in zip(found.columns, whole.columns, strict=True):
        assert (ours.name, ours.features, ours.levels) == (
            theirs.name,
            theirs.features,
            theirs.levels,
        )
        assert ours.note == theirs.note
        assert ours.n_missing == theirs.n_missing
    for name in FIELDS:
        ours, theirs = getattr(found.moments, name), getattr(whole.moments, name)
        scale = np.abs(theirs).max()
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12 * scale, err_msg=name)


@pytest.mark.parametrize("target", ["y", "kind", "smoker", "plan"])
def test_sums_of_sites_add_up_to_those_of_the_joined_rows(rows, target):
    rows = rows.dropna(subset=["plan"]) if target == "plan" else rows
    assert_same(joined(by_site(rows, target)), of_all(rows, target))


@pytest.mark.filterwarnings("ignore::UserWarning")  # some domains lack a class
def test_the_fit_is_that_on_the_joined_rows(rows):
    rows = rows.drop(columns="code")
    found, whole = joined(by_site(rows, "kind")), of_all(rows, "kind")
    for model in (TGreedyClassifier(), SteadyRidgeClassifier()):
        ours = model.fit_statistics(found.moments, classes=found.classes)
        coef, score = ours.coef_, ours.new_domain_score_
        theirs = model.fit_statistics(whole.moments, classes=whole.classes)
        scale = np.abs(theirs.coef_).max()
        np.testing.assert_allclose(coef, theirs.coef_, rtol=1e-9, atol=1e-9 * scale)
        assert score == pytest.approx(theirs.new_domain_score_, rel=1e-9)
    found, whole = joined(by_site(rows, "y")), of_all(rows, "y")
    ours = SteadyRidgeRegressor().fit_statistics(found.moments).new_domain_score_
    theirs = SteadyRidgeRegressor().fit_statistics(whole.moments).new_domain_score_
    assert ours == pytest.approx(theirs, rel=1e-9)


def test_one_domain_over_several_sites_and_columns_in_another_order_add_too(rows):
    rows["ward"] = np.arange(len(rows)) % 4
    sums = by_site(rows, "y")
    other = rows[rows["site"] == "B"].drop(columns="site").iloc[:, ::-1].reset_index(drop=True)
    sums["B.sums"] = site_sums(open_table(other), "y", "ward")
    assert_same(joined(sums), of_all(rows, "y"))


def test_columns_can_be_left_out_at_the_centre(rows):
    dropped = ["code", "gone"]
    found = joined(by_site(rows, "y"), leave_out=dropped)
    assert_same(found, of_all(rows, "y", leave_out=dropped))
    with pytest.raises(ValueError, match=r"^joined: no column 'kode' in A.sums. Did you mean"):
        joined(by_site(rows, "y"), leave_out=["kode"])


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda b: b.rename(columns={"visits": "Visits"}), r"a column 'Visits' more; no column 'v"),
        (
            lambda b: b.assign(visits=b["visits"].astype(str)),
            r"'visits' is a category, not a number",
        ),
        (lambda b: b.assign(ward=1), r"the domain is 'ward' \(number\), not 'ward' \(category\)"),
        (lambda b: b.assign(y="a"), r"the target is 'y', classes \(category\), not 'y', a number"),
    ],
)
def test_sites_that_differ_are_refused_with_the_difference(rows, change, message):
    sums = by_site(rows, "y")
    changed = change(rows[rows["site"] == "B"].drop(columns="site").reset_index(drop=True))
    sums["B.sums"] = site_sums(open_table(changed), "y", "ward")
    with pytest.raises(
        ValueError, match=r"^joined: sites must .* B.sums differs from A.* " + message
    ):
        joined(sums)


def test_classes_that_are_a_number_in_all_rows_together_are_refused(rows):
    # ten whole numbers at each site, thirty in all
    rows["y"] = np.arange(len(rows)) % 10 + rows["site"].map({"A": 0, "B": 10, "C": 20})
    with pytest.raises(ValueError, match=r"each site reads 'y' as classes, but all rows together"):
        joined(by_site(rows, "y"))
    found = joined(by_site(rows, "y", target_type="classes"))
    assert_same(found, of_all(rows, "y", target_type="classes"))


def test_a_column_that_looks_like_an_id_at_a_site_keeps_its_values(rows):
    rows["id"] = [f"patient-{i}" for i in range(len(rows))]
    sums = by_site(rows, "y")
    assert all(b"patient-" not in site.to_bytes() for site in sums.values())
    (column,) = (c for c in joined(sums).columns if c.name == "id")
    assert column.note == "left out: it looks like an id at one site"


def test_the_range_of_numbers_is_not_told(rows):
    rows.loc[5, "dose"] = 1234567.875
    head = json.dumps(unpack("SiteSums", by_site(rows, "y")["A.sums"].to_bytes())[0])
    assert "1234567.875" not in head
    assert str(rows["y"].max()) not in head


def test_a_site_names_its_most_frequent_values_only(rows, monkeypatch):
    monkeypatch.setattr(site_module, "_NAMED", 30)
    sums = by_site(rows, "y")
    with pytest.warns(UserWarning, match=r"sites did not name rare values of 'code'"):
        found = joined(sums)
    (column,) = (c for c in found.columns if c.name == "code")
    assert column.features[-1] == "code=(other)"


def small_counts(sums):
    """Rows of each value, of each class and of missing numbers at each domain of a site."""
    site, moments = sums.site, sums.moments
    start, counts = 0, []
    for column in site.columns:
        block = moments.mean_x[:, start : start + column.n_features] * moments.n_samples[:, None]
        start += column.n_features
        if column.read_as == "text":
            counts += [*block.T]
        elif column.read_as == "bool" and column.n_features:
            counts += [block[:, 0], moments.n_samples - block[:, 0]]
        elif column.marks_missing:
            counts.append(block[:, 1])
    return np.rint(np.concatenate(counts))


def test_nothing_below_the_floor_is_told(rows):
    rows["dose"] = rows["dose"].fillna(1e6)
    rows.loc[[3, 4], "dose"] = np.nan  # two at A
    rows["rare"] = rows.index == 7
    open_sums, sums = by_site(rows, "y"), by_site(rows, "y", min_count=5)
    assert any(((small_counts(s) > 0) & (small_counts(s) < 5)).any() for s in open_sums.values())
    for site in sums.values():
        counts = small_counts(site)
        assert not ((counts > 0) & (counts < 5)).any()
        assert all(count >= 5 for column in site.site.columns for count in column.counts)
        assert site.site.min_count == 5
    with pytest.warns(UserWarning, match=r"sites did not name rare values of 'code'"):
        found = joined(sums)
    notes = {column.name: column.note for column in found.columns}
    assert notes["rare"] == "left out: a value has too few rows at one site"
    whole = of_all(rows, "y")
    at = [whole.moments.feature_names.index(name) for name in ("visits", "plan=paid", "sex=m")]
    here = [found.moments.feature_names.index(name) for name in ("visits", "plan=paid", "sex=m")]
    np.testing.assert_allclose(found.moments.mean_x[:, here], whole.moments.mean_x[:, at])


@pytest.mark.parametrize(
    "columns, target, message",
    [
        ({"ward": "W"}, "y", r"the domain 'W' of 'ward' has 4 rows, below the min_count of 5"),
        (
            {"kind": "odd"},
            "kind",
            r"the class 'odd' of 'kind' has 2 rows in the domain 'A0', below",
        ),
    ],
)
def test_domains_and_classes_below_the_floor_are_refused(rows, columns, target, message):
    for name, value in columns.items():
        rows.loc[:3, name] = value
    with pytest.raises(ValueError, match=r"^site_sums: " + message):
        by_site(rows, target, min_count=5)


@pytest.mark.parametrize(
    "change",
    [
        {"n_rows": 7},
        {"n_rows": "many"},
        {"columns": []},
        {"columns": "text"},
        {"is_numeric": False},
        {"min_count": None},
        {"target": {"name": "y", "read_as": "sound"}},
        {"target": {"name": "y", "read_as": "number", "mean": "nan"}},
        {"more": 1},
        {"incomplete": [1]},
    ],
)
def test_a_head_that_contradicts_the_sums_is_refused(rows, change):
    sums = by_site(rows, "y")["A.sums"]
    moments = np.frombuffer(sums.moments.to_bytes(), dtype=np.uint8)
    head = {"site": {**sums.site.to_dict(), **change}}
    with pytest.raises(ValueError, match=r"^SiteSums: .*damaged"):
        SiteSums.from_bytes(pack("SiteSums", head, {"moments": moments}))
    with pytest.raises(ValueError, match=r"they hold no moments"):
        SiteSums.from_bytes(pack("SiteSums", head, {}))


def test_damaged_bytes_are_refused_or_read_as_sums(rows):
    written = bytearray(by_site(rows, "y")["A.sums"].to_bytes())
    rng = np.random.default_rng(0)
    for _ in range(200):
        damaged = bytearray(written)
        for place in rng.integers(0, len(damaged) if rng.random() < 0.3 else 6000, 3):
            damaged[place] = rng.integers(256)
        try:
            SiteSums.from_bytes(bytes(damaged[: rng.integers(len(damaged)) or None]))
            SiteSums.from_bytes(bytes(damaged))
        except ValueError:
            continue


def test_labels_of_levels_that_are_damaged_are_refused(rows):
    sums = by_site(rows, "y")["A.sums"]
    site = sums.site.to_dict()
    plan = next(column for column in site["columns"] if column["name"] == "plan")
    for levels in ([["str", "a"]] * len(plan["levels"]), [["code", "x"]], [3], ["a"] * 4):
        plan["levels"] = levels
        moments = np.frombuffer(sums.moments.to_bytes(), dtype=np.uint8)
        with pytest.raises(ValueError, match=r"damaged"):
            SiteSums.from_bytes(pack("SiteSums", {"site": site}, {"moments": moments}))


def test_a_table_without_a_feature_is_refused():
    frame = pa.table({"y": [1.0, 2.0], "ward": ["a", "b"], "gone": pa.nulls(2)})
    with pytest.raises(ValueError, match=r"^site_sums: no column is left to sum"):
        site_sums(open_table(frame), "y", "ward")


def test_a_number_that_was_damaged_on_its_way_is_refused():
    rows = pa.table({"x": np.arange(40.0), "y": np.arange(40.0) ** 2, "site": ["a", "b"] * 20})
    content = bytearray(site_sums(open_table(rows), "y", "site").to_bytes())
    at = content.rindex(np.float64(rows["x"].to_numpy()[::2].mean()).tobytes())
    content[at] ^= 1
    with pytest.raises(ValueError, match="SiteSums: the bytes are damaged"):
        SiteSums.from_bytes(bytes(content))
