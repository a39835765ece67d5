"""Losses of the shrunk predictor and groups, by every way into them."""

import itertools
import math
import warnings
from decimal import Decimal

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from holdtrue import Counts, GingerSelector, rank_columns
from holdtrue.categories import shrunk, shrunk_mean
from holdtrue.categories.score import CRITERIA, NUMERIC_CRITERIA
from holdtrue.categories.shrunk import finer_gain
from holdtrue.categories.shrunk_mean import finer_mean_gain
from holdtrue.columns.bins import grouped_moments
from holdtrue.sums.group_profile import sums_by_value
from holdtrue.sums.profile import moment_sums

LOSSES = ("log_loss", "brier", "error", "ginger", "majority")


def make_visits(n=240, seed=0):
    """Visits of 40 patients; plan and age predict, the ward is the patient's own."""
    rng = np.random.default_rng(seed)
    patient = rng.integers(0, 40, n)
    age = 20 + patient
    plan = rng.choice(["free", "basic", "pro"], n)
    frame = pd.DataFrame(
        {
            "id": [f"u{i:05d}" for i in rng.permutation(n)],
            "age": age,
            "plan": plan,
            "height": np.where(rng.random(n) < 0.1, np.nan, rng.normal(170, 9, n)),
            "room": rng.integers(0, 15, n),
            "patient": [f"p{i}" for i in patient],
        }
    )
    frame["left"] = rng.random(n) < 0.1 + 0.3 * (age > 40) + 0.4 * (plan == "free")
    frame["cost"] = 3 * (plan == "pro") + age / 20 + rng.normal(size=n)
    return frame


@pytest.fixture(scope="module")
def visits():
    return make_visits()


def numbers_of(ranking):
    """Every number of a ranking by column."""
    evidence = ranking.path.evidence
    fields = ("scores", "standard_errors", "low", "high", "no_column", "gain_low", "gain_high",
              "coverage", "share_wrong", "no_column_wrong")  # fmt: skip
    table = np.stack([getattr(evidence, field) for field in fields], axis=1)
    return dict(zip(evidence.names, table, strict=True))


def assert_same(one, two, **tolerance):
    one, two = numbers_of(one), numbers_of(two)
    assert set(one) == set(two)
    for name in one:
        np.testing.assert_allclose(one[name], two[name], **{"rtol": 1e-9, "atol": 1e-9} | tolerance)


# --- the table of criteria ----------------------------------------------------------------------


@pytest.mark.parametrize("criterion", [*CRITERIA, "squared_error"])
def test_intervals_stay_inside_the_range_of_the_loss(visits, criterion):
    target = "cost" if criterion == "squared_error" else "left"
    few = visits[:12].drop(columns=["patient", "left" if target == "cost" else "cost"])
    evidence = rank_columns(few, target, criterion=criterion, target_type="auto").path.evidence
    assert (evidence.low >= 0).all()
    assert (evidence.low <= evidence.scores).all()
    assert (evidence.scores <= evidence.high + 1e-12).all()
    most = {"log_loss": math.inf, "squared_error": math.inf, "information_gain": math.inf}
    assert (evidence.high <= most.get(criterion, 2.0 if criterion == "brier" else 1.0)).all()


@pytest.mark.parametrize("criterion", LOSSES)
def test_rows_counts_profiles_and_parts_give_one_estimate(visits, criterion, tmp_path):
    frame = visits.drop(columns=["cost", "patient"])
    X, y = frame.drop(columns="left"), frame["left"]
    selector = GingerSelector(criterion).fit(X, y)
    counts = sum(Counts.from_frame(frame[i::5], "left") for i in range(5))
    for other in (counts, counts.profiles(), Counts.from_bytes(counts.to_bytes())):
        again = GingerSelector(criterion).fit_statistics(other)
        assert again.path_.order.tolist() == selector.path_.order.tolist()
        np.testing.assert_allclose(again.scores_, selector.scores_, rtol=1e-12)
        np.testing.assert_allclose(again.intervals_, selector.intervals_, rtol=1e-9)
        np.testing.assert_allclose(again.share_wrong_, selector.share_wrong_, rtol=1e-12)
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "t.parquet", row_group_size=70)
    ranking = rank_columns(frame, "left", criterion=criterion)
    assert_same(rank_columns(tmp_path / "t.parquet", "left", criterion=criterion), ranking)
    np.testing.assert_allclose(ranking.path.evidence.scores, selector.scores_)


def test_skill_and_the_share_wrong_stand_beside_the_score(visits):
    frame = visits.drop(columns=["cost", "patient"])
    ranking = rank_columns(frame, "left")
    table = ranking.to_frame()
    np.testing.assert_allclose(table["skill"], 1 - table["score"] / table["no_column"])
    by_error = rank_columns(frame, "left", criterion="error").to_frame().set_index("column")
    wrong = table.set_index("column")["share_wrong"]
    assert wrong["plan"] == pytest.approx(by_error["score"]["plan"])
    assert "log loss on new rows, of class shares shrunk to those of all rows" in str(ranking)
    assert "wrong" in str(ranking).splitlines()[0]
    numbers = rank_columns(visits[["plan", "age", "cost"]], "cost")
    assert "share_wrong" not in numbers.to_frame()
    assert "squared error on new rows, of a mean shrunk to that of all rows" in str(numbers)


def test_a_numeric_target_has_the_shrunk_mean_and_the_plain_one(visits):
    X = visits[["plan", "age"]]
    ones = np.stack([np.ones(len(X)), visits["cost"], *np.zeros((3, len(X)))], axis=1)
    moments = grouped_moments(pd.factorize(X["plan"])[0], 3, ones)
    for name in ("squared_error", "log_loss", "brier"):
        score = GingerSelector(name).fit(X, visits["cost"]).scores_[0]
        expected = shrunk_mean.estimate_mean(*moment_sums(moments)[:2])
        assert score == pytest.approx(expected.score)
    plain = GingerSelector("ginger").fit(X, visits["cost"]).scores_[0]
    scores = shrunk_mean.mean_scores(*moment_sums(moments)[:2], strengths=[0.0])
    assert plain == pytest.approx(scores[0])
    assert set(NUMERIC_CRITERIA) == {"squared_error", "log_loss", "brier", "ginger"}
    with pytest.raises(ValueError, match="'error' needs classes, and the target is numeric"):
        GingerSelector("error").fit(X, visits["cost"])
    with pytest.raises(ValueError, match=r"'squared_error' needs a numeric target. Got 2 classes"):
        GingerSelector("squared_error").fit(X, visits["left"])


def test_more_standard_errors_keep_fewer_columns(visits):
    X, y = visits[["id", "age", "plan", "room", "height"]], visits["left"]
    kept = [
        set(GingerSelector(min_gain_se=se, min_features=1).fit(X, y).get_feature_names_out())
        for se in (0, 1, 4, 100)
    ]
    assert all(fewer <= more for more, fewer in itertools.pairwise(kept))
    assert {"plan", "age"} <= kept[1]
    assert len(kept[3]) == 1
    every = GingerSelector(min_gain_se=0).fit(X, y)
    gain = every.no_column_scores_ - every.scores_
    np.testing.assert_array_equal(every.support_, gain > 1e-12 * every.no_column_scores_)
    assert every.path_.reason.endswith("columns beat no column")


# --- finer values -------------------------------------------------------------------------------


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2), st.floats(-5, 5)),
        min_size=4,
        max_size=40,
    ),
    st.sampled_from(shrunk.LOSSES),
)
def test_finer_values_gain_the_difference_of_the_gains(rows, loss):
    coarse, fine, k, y = (np.array(part) for part in zip(*rows, strict=True))
    fine = np.unique(coarse * 3 + fine, return_inverse=True)[1]
    parent = np.zeros(fine.max() + 1, dtype=int)
    parent[fine] = coarse
    one_hot = np.eye(3, dtype=int)[k]
    counts = sums_by_value(fine, fine.max() + 1, one_hot)
    gained, error = finer_gain(loss, counts, parent)
    before, after = (
        shrunk.estimate(loss, sums_by_value(code, code.max() + 1, one_hot))
        for code in (coarse, fine)
    )
    assert gained == pytest.approx(len(y) * (after.gain - before.gain), abs=1e-9)
    assert error >= 0
    ones = np.stack([np.ones(len(y)), y, *np.zeros((3, len(y)))], axis=1)
    moments = grouped_moments(fine, fine.max() + 1, ones)
    gained, _ = finer_mean_gain(moments, parent)
    scores = []
    for code in (coarse, fine):
        table = grouped_moments(code, code.max() + 1, ones)
        sums = moment_sums(table[table[:, 0] > 0])[:2]
        scores.append(shrunk_mean.mean_scores(*sums).min())
    assert gained == pytest.approx(len(y) * (scores[0] - scores[1]), abs=1e-7)


def test_the_error_of_a_gain_is_that_of_rows_one_by_one():
    rng = np.random.default_rng(0)
    coarse, y = rng.integers(0, 3, 90), rng.normal(size=90)
    fine = coarse * 2 + rng.integers(0, 2, 90)
    ones = np.stack([np.ones(90), y, *np.zeros((3, 90))], axis=1)
    moments = grouped_moments(fine, 6, ones)
    _, error = finer_mean_gain(moments, np.arange(6) // 2)
    losses = []
    for code in (coarse, fine):
        sums = moment_sums(grouped_moments(code, code.max() + 1, ones))[:2]
        a = shrunk.STRENGTHS[shrunk.least(shrunk_mean.mean_scores(*sums), 0.0)]
        rows = []
        for i in range(90):
            rest = np.arange(90) != i
            value, whole = y[rest & (code == code[i])], y[rest].mean()
            mean = whole if math.isinf(a) else (value.sum() + a * whole) / (len(value) + a)
            rows.append((y[i] - mean) ** 2)
        losses.append(np.array(rows))
    gains = losses[0] - losses[1]
    assert error >= math.sqrt(((gains - gains.mean()) ** 2).sum()) - 1e-9
    assert shrunk_mean.plain_gain(moments, np.arange(6) // 2)[1] > 0


# --- groups -------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", [*LOSSES, "squared_error"])
def test_a_group_per_row_is_no_groups(visits, criterion):
    target, other = ("cost", "left") if criterion == "squared_error" else ("left", "cost")
    frame = visits.drop(columns=[other, "patient"])
    with_groups = rank_columns(frame, target, criterion=criterion, groups=np.arange(len(frame)))
    assert_same(with_groups, rank_columns(frame, target, criterion=criterion), rtol=1e-6)
    assert with_groups.path.unit.endswith("new groups")
    assert with_groups.path.reason.endswith("new data are new groups")


@pytest.mark.parametrize("criterion", [*LOSSES, "squared_error"])
def test_rows_and_counts_in_parts_agree_with_groups(visits, criterion):
    target, other = ("cost", "left") if criterion == "squared_error" else ("left", "cost")
    frame = visits.drop(columns=other)
    numeric_target = target == "cost"
    X, y = frame.drop(columns=[target, "patient"]), frame[target]
    selector = GingerSelector(criterion).fit(X, y, groups=frame["patient"])
    parts = [
        Counts.from_frame(frame[i::5], target, groups="patient", numeric_target=numeric_target)
        for i in range(5)
    ]
    by_site = [part for _, part in frame.groupby("patient")]  # a part may hold a single group
    sites = Counts.from_batches(by_site, target, groups="patient", numeric_target=numeric_target)
    whole = Counts.from_arrays(X, y, groups=frame["patient"], numeric_target=numeric_target)
    for counts in (sum(parts), sites, whole, Counts.from_bytes(sum(parts).to_bytes())):
        assert counts.n_samples == len(frame)
        again = GingerSelector(criterion).fit_statistics(counts)
        np.testing.assert_allclose(again.scores_, selector.scores_, rtol=1e-10)
        np.testing.assert_allclose(again.intervals_, selector.intervals_, rtol=1e-6)
        np.testing.assert_array_equal(again.support_, selector.support_)
    ranking = rank_columns(frame, target, criterion=criterion, groups="patient")
    np.testing.assert_allclose(ranking.path.evidence.scores, selector.scores_)
    assert "patient" not in ranking.path.names
    plain = Counts.from_frame(frame.drop(columns="patient"), target, numeric_target=numeric_target)
    assert whole.column("plan").keys() == plain.column("plan").keys()
    for value, row in plain.column("plan").items():
        assert whole.column("plan")[value] == pytest.approx(row)


@pytest.mark.parametrize("criterion", ["log_loss", "ginger"])
def test_a_column_is_judged_on_groups_that_are_left_out_whole(visits, criterion):
    """The definition: delete a group, count again, predict its rows."""
    X, y, group = visits[["plan"]], visits["left"].to_numpy(), visits["patient"].to_numpy()
    selector = GingerSelector(criterion).fit(X, y, groups=group)
    value = pd.factorize(X["plan"])[0]
    strength = selector.path_.evidence.strengths[0]
    losses = []
    for one in np.unique(group):
        rest = group != one
        counts = np.array(
            [[np.sum(rest & (value == v) & (y == k)) for k in (0, 1)] for v in range(3)]
        )
        if criterion == "log_loss":
            q = shrunk.shares(counts, counts.sum(axis=0), strength)
        else:
            q = counts / counts.sum(axis=1, keepdims=True)
        chance = q[value[~rest], y[~rest].astype(int)]
        losses += list(-np.log(chance) if criterion == "log_loss" else 1 - chance)
    assert selector.scores_[0] == pytest.approx(np.mean(losses))


def test_weights_are_repetitions_with_groups(visits):
    weight = np.random.default_rng(0).integers(0, 3, len(visits))
    repeated = visits.loc[visits.index.repeat(weight)]
    for target, other in (("left", "cost"), ("cost", "left")):
        weighted = rank_columns(
            visits.drop(columns=other), target, groups="patient", sample_weight=weight
        )
        again = rank_columns(repeated.drop(columns=other), target, groups="patient")
        assert_same(weighted, again)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "parquet"])
def test_frames_of_all_kinds_take_groups(visits, kind, tmp_path):
    frame = visits.drop(columns="cost")
    expected = rank_columns(frame, "left", groups=frame["patient"].to_numpy())
    if kind == "parquet":
        frame.to_parquet(tmp_path / "t.parquet")
        data = tmp_path / "t.parquet"
    else:
        make = {"pandas": lambda f: f, "polars": pl.from_pandas, "arrow": pa.Table.from_pandas}
        data = make[kind](frame)
    found = rank_columns(data, "left", groups="patient")
    wanted = numbers_of(expected)
    del wanted["patient"]
    for name, row in numbers_of(found).items():
        np.testing.assert_allclose(row, wanted[name])


def test_missing_rows_may_be_left_out_with_groups(visits):
    frame = visits.drop(columns="cost")
    present = frame["height"].notna()
    ignored = rank_columns(frame, "left", groups="patient", missing="ignore")
    alone = rank_columns(frame[present], "left", groups="patient")
    np.testing.assert_allclose(numbers_of(ignored)["height"], numbers_of(alone)["height"])


def test_values_and_classes_of_one_group_are_new_to_the_others():
    group = np.repeat(np.arange(12), 10)
    rng = np.random.default_rng(0)
    y = np.where(group == 3, "rare", rng.choice(["no", "yes"], 120))
    X = pd.DataFrame({"own": [f"g{g}" for g in group], "other": rng.choice(list("abc"), 120)})
    ranking = rank_columns(X, y, groups=group)
    rows = {row["column"]: row for row in ranking}
    assert rows["own"]["coverage"] == 0
    assert rows["own"]["score"] == pytest.approx(rows["own"]["no_column"])
    assert "occur in one group" in rows["own"]["verdict"]
    assert all(math.isfinite(row["score"]) for row in ranking)
    mixed = X.assign(mixed=np.array([1, "1", 2.5, None] * 30, dtype=object))
    assert math.isfinite(numbers_of(rank_columns(mixed, y, groups=group))["mixed"][0])


def test_groups_that_say_nothing_are_refused_in_words(visits):
    frame, y = visits[["plan", "age"]], visits["left"]
    for fit in (
        lambda groups, **options: rank_columns(frame, y, groups=groups, **options),
        lambda groups, **options: GingerSelector(**options).fit(frame, y, groups=groups),
    ):
        with pytest.raises(ValueError, match=r"at least 2 groups, .* Got 1, 'A' in every row"):
            fit(["A"] * len(y))
        missing = np.array(["A", None] * (len(y) // 2), dtype=object)
        with pytest.raises(ValueError, match=r"groups.* missing"):
            fit(missing)
        with pytest.raises(ValueError, match=r"groups must be all text or all numbers"):
            fit(np.array(["A", 1] * (len(y) // 2), dtype=object))
        with pytest.raises(ValueError, match=r"groups must have one value per row"):
            fit([1, 2, 3])
        with pytest.raises(ValueError, match="'gini' judges the rows of the fit and leaves no"):
            fit(visits["patient"], criterion="gini")
    with pytest.raises(ValueError, match=r"no column 'patent'. Did you mean 'patient'"):
        rank_columns(visits, "left", groups="patent")
    with pytest.raises(ValueError, match="mode='forward' leaves out rows, not groups"):
        GingerSelector(mode="forward").fit(frame, y, groups=visits["patient"])
    gone = visits.assign(patient=visits["patient"].where(visits["age"] > 30))
    with pytest.raises(ValueError, match=r"groups must not be missing. Got "):
        rank_columns(gone, "left", groups="patient")
    one, two = Counts.from_arrays(frame, y), Counts.from_arrays(frame, y, groups=visits["patient"])
    with pytest.raises(ValueError, match="counts with groups and counts without do not add"):
        one + two
    single = Counts.from_arrays(frame, y, groups=["A"] * len(y))
    with pytest.raises(ValueError, match="GingerSelector: groups must name at least 2 groups"):
        GingerSelector().fit_statistics(single)


def test_a_column_that_looks_like_a_group_is_named():
    rng = np.random.default_rng(0)
    patient = rng.integers(0, 60, 600)
    sick = rng.random(60) < 0.5
    frame = pd.DataFrame(
        {
            "patient": [f"p{i}" for i in patient],
            "age": rng.integers(20, 90, 60)[patient],
            "noise": rng.integers(0, 60, 600).astype(str),
            "left": sick[patient] ^ (rng.random(600) < 0.01),
        }
    )
    words = r"rows with the same value of 'patient'.*pass groups='patient'"
    with pytest.warns(UserWarning, match=f"rank_columns: {words}") as caught:
        ranking = rank_columns(frame, "left")
    assert caught[0].filename == __file__
    assert "pass groups='patient'" in str(ranking)
    X, y = frame[["patient", "noise"]], frame["left"]
    in_fit = r"GingerSelector: rows with the same value of 'patient'.*pass groups=X\['patient'\]"
    with pytest.warns(UserWarning, match=in_fit) as caught:
        GingerSelector().fit(X, y)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match=words):
        rank_columns(frame.assign(left=frame["left"] + 0.1 * rng.random(600)), "left")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        grouped_ranking = rank_columns(frame, "left", groups="patient")
    assert not grouped_ranking.path.evidence.group_like.any()


# --- how columns are read -----------------------------------------------------------------------


def test_decimals_with_infinity_are_numbers():
    numbers = [Decimal(i) / 4 for i in range(60)]
    numbers[7] = Decimal("Infinity")
    y = np.arange(60) > 30
    for column in (numbers, [*numbers[:-1], None], [*numbers[:-1], 3.5], [*numbers[:-1], 3]):
        table = rank_columns(pd.DataFrame({"price": pd.Series(column, dtype=object)}), y)
        row = next(iter(table))
        assert row["kind"] == "number"
        assert row["predicts"]


def test_values_of_integer_ids_win_where_they_predict():
    rng = np.random.default_rng(0)
    shop = rng.integers(0, 100, 1500) * 7 + 1000
    level = dict(zip(np.unique(shop), rng.random(100), strict=False))
    y = rng.random(1500) < np.array([level[one] for one in shop])
    row = next(iter(rank_columns(pd.DataFrame({"shop": shop}), y)))
    assert row["read_as"] == "values"
    assert row["predicts"]


def test_whole_numbers_that_seldom_come_back_are_no_ids_if_their_bins_predict():
    rng = np.random.default_rng(0)
    weight = rng.integers(1600, 5200, 400)
    heavy = weight + rng.normal(0, 300, 400) > 3000
    number = rng.permutation(400) + 5000
    rows = {
        row["column"]: row
        for row in rank_columns(pd.DataFrame({"Weight_in_lbs": weight, "number": number}), heavy)
    }
    assert rows["Weight_in_lbs"]["predicts"]
    assert not rows["Weight_in_lbs"]["id_like"]
    assert rows["number"]["id_like"]


def test_a_gain_that_is_sure_but_of_no_use_is_not_kept_unless_asked_for():
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], 200_000)
    weak = np.where(rng.random(len(y)) < 0.02, y, rng.integers(0, 2, len(y)))  # skill 3e-4
    X = pd.DataFrame(
        {"strong": (y ^ (rng.random(len(y)) < 0.2)).astype(str), "weak": weak.astype(str)}
    )
    selector = GingerSelector().fit(X, y)
    assert selector.gain_intervals_[1, 0] > 0
    assert selector.get_support().tolist() == [True, False]
    assert selector.path_.reason.endswith("; 1 more by a skill of less than 0.005")
    assert selector.path_.evidence.verdicts[1].startswith("predicts new rows too little to matter")
    assert GingerSelector(min_skill=0).fit(X, y).get_support().all()
    every = GingerSelector(min_gain_se=0).fit(X, y)
    assert every.get_support().all()
    assert every.path_.reason == "2 of 2 columns beat no column"
    assert not GingerSelector(min_gain_se=0, min_skill=0.01).fit(X, y).get_support()[1]
    frame = X.assign(y=y)
    assert rank_columns(frame, "y").path.chosen_size == 1
    assert rank_columns(frame, "y", min_skill=0).path.chosen_size == 2
    assert rank_columns(frame, "y", min_skill=0.5).path.chosen_size == 0


def test_two_groups_are_enough_for_the_rule_of_a_numeric_target():
    rng = np.random.default_rng(0)
    plan, site = rng.choice(list("abc"), 40), rng.integers(0, 2, 40)
    cost = 2.0 * (plan == "a") + rng.normal(size=40)
    rows = pd.DataFrame({"plan": plan, "cost": cost, "site": site})
    ranking = rank_columns(rows, "cost", groups="site", criterion="ginger")
    predicted = [cost[(plan == plan[i]) & (site != site[i])].mean() for i in range(40)]
    assert ranking.to_frame("pandas")["score"][0] == pytest.approx(np.mean((cost - predicted) ** 2))
