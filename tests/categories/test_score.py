"""How a column's values are read, and what is made of them."""

import datetime

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given

from holdtrue import Counts, GingerSelector
from holdtrue.categories import kernel
from holdtrue.categories.estimate import score_order
from holdtrue.categories.score import (
    CRITERIA,
    Scoring,
    categorical_mask,
    check_classes,
    criterion_for,
    looks_like_group,
    score_column,
)
from holdtrue.columns.bins import readings, whole_part
from holdtrue.errors import InputError
from holdtrue.sums import Profile


def one_column(column, y, numeric=False, **options):
    """Counts of one column: kind, values, table."""
    frame = pa.table({"c": column, "y": y}) if not isinstance(column, pd.Series) else None
    if frame is None:
        frame = pd.DataFrame({"c": column, "y": y})
    counts = Counts.from_frame(frame, "y", numeric_target=numeric, **options)
    return counts.kinds[0], counts.values[0], counts.tables[0]


def column_estimate(kind, values, table, how):
    """Score of one column from its counts."""
    is_numeric = table.dtype == float
    classes = None if is_numeric else tuple(range(table.shape[1]))
    n_rows = table[:, 0].sum() if is_numeric else table.sum()
    parts = [whole_part(kind, values, table)]
    profile = Profile.from_parts(kind, parts, n_rows, classes, how.max_bins)
    return score_column(profile, how._replace(criterion=criterion_for("ginger", classes)))


KINDS = {
    "text": (["a", "b", "a", "b"], "category"),
    "truth": ([True, False, True, None], "category"),
    "category of numbers": (pd.Series(pd.Categorical([3, 1, 3, 1])), "category"),
    "integer": ([1, 2, 3, 4], "integer"),
    "number": ([1.5, 2.0, 3.0, None], "number"),
    "date": ([datetime.date(2020, 1, d) for d in (1, 2, 3, 4)], "number"),
    "time": ([datetime.datetime(2020, 1, d) for d in (1, 2, 3, 4)], "number"),
    "nothing": ([None, None, None, None], "empty"),
}


@pytest.mark.parametrize("name", KINDS)
def test_types_say_how_a_column_is_read(name):
    column, kind = KINDS[name]
    found, values, table = one_column(column, [0, 1, 0, 1])
    assert found == kind
    bins = [reading.n_bins for reading in readings(kind, values, table, 64)]
    # Four rows are too few for more than 2 bins.
    assert bins == {"category": [0], "empty": [0], "integer": [0, 2], "number": [2]}[kind]


@pytest.mark.parametrize(
    ("n_rows", "n_values", "expected"),
    [
        (31, 31, [2]),
        (32, 32, [2, 4]),
        (500, 500, [2, 4, 8, 16, 32]),
        (10_000, 10_000, [2, 4, 8, 16, 32, 64]),
        (20, 5, [2, 5]),  # few values, four rows each: every value is a bin too
        (19, 5, [2]),
        (24, 2, [2]),
    ],
)
def test_bins_have_eight_rows_or_more(n_rows, n_values, expected):
    _, values, table = one_column(np.arange(n_rows) % n_values + 0.5, np.arange(n_rows) % 2)
    ways = readings("number", values, table, 64)
    assert [reading.n_bins for reading in ways] == expected
    assert all(len(reading.table) == reading.n_bins for reading in ways)


def test_bins_by_hand():
    # Rows 1,1,1,1,2,3,4,9: half of them are reached at 1, so bins end at 1 and 9.
    _, values, table = one_column([1.0, 1, 1, 1, 2, 3, 4, 9], [0, 0, 0, 1, 1, 1, 1, 1])
    two = readings("number", values, table, 64)[0]
    np.testing.assert_array_equal(two.table, [[3, 1], [0, 4]])
    np.testing.assert_array_equal(two.groups(values), [0, 1, 1, 1, 1])


def test_a_missing_number_has_a_bin_of_its_own():
    _, values, table = one_column([1.0, 2, 3, 4, None, None], [0, 0, 1, 1, 0, 1])
    for reading in readings("number", values, table, 64):
        np.testing.assert_array_equal(reading.table[-1], [1, 1])
        assert reading.groups(values)[-1] == reading.n_bins
        assert reading.table.sum() == 6


near = st.floats(-9, 9).map(lambda number: round(number, 9))


@given(
    st.lists(
        st.tuples(st.one_of(st.none(), st.integers(0, 30)), st.integers(0, 2), near),
        min_size=3,
        max_size=60,
    ),
    st.integers(2, 9),
)
def test_bins_are_what_grouping_the_rows_gives(rows, max_bins):
    x, labels, numbers = (list(part) for part in zip(*rows, strict=True))
    for y, numeric in ((labels, False), (numbers, True)):
        kind, values, table = one_column(pa.array(x, pa.int64()), y, numeric)
        place = {value: i for i, value in enumerate(values.to_pylist())}
        for reading in readings(kind, values, table, max_bins):
            groups = reading.groups(values)
            text = pa.array([f"g{groups[place[value]]:03d}" for value in x])
            _, names, expected = one_column(text, y, numeric)
            order = np.argsort(names.to_pylist())
            np.testing.assert_allclose(reading.table, expected[order], atol=1e-9)
            assert reading.n_bins <= max_bins
            present = [value for value in values.to_pylist() if value is not None]
            by_bin = [groups[place[value]] for value in sorted(present)]
            assert not reading.n_bins or by_bin == sorted(by_bin)


def test_the_criterion_chooses_as_many_bins_as_the_target_needs():
    rng = np.random.default_rng(0)
    x = rng.permutation(4096) / 4096  # so that the ends of the bins are those of the steps
    for n_steps in (2, 8):
        steps = np.floor(x * n_steps) % 2
        y = np.where(rng.random(4096) < 0.1, 1 - steps, steps).astype(int)
        found = column_estimate(*one_column(x, y), Scoring())
        assert found.n_bins >= n_steps
        assert found.score == pytest.approx(2 * 0.1 * 0.9, abs=0.02)


def test_values_and_bins_of_integers_compete():
    rng = np.random.default_rng(0)
    parity = rng.integers(0, 40, 3000)
    by_value = column_estimate(*one_column(parity, parity % 2), Scoring(max_bins=8))
    assert (by_value.n_bins, by_value.score) == (0, 0)
    income = rng.integers(0, 10**6, 3000)
    by_bin = column_estimate(*one_column(income, (income > 500_000).astype(int)), Scoring())
    assert by_bin.n_bins > 0
    assert by_bin.score < 0.02
    # What it looks like is judged on the raw values.
    assert by_bin.coverage < 0.01
    assert by_bin.n_once > 2900


def test_missing_rows_may_be_left_out():
    column = ["a", "a", "a", "b", "b", "b", None, None]
    y = [0, 0, 0, 1, 1, 1, 0, 1]
    kind, values, table = one_column(column, y)
    kept = column_estimate(kind, values, table, Scoring())
    left = column_estimate(kind, values, table, Scoring(missing="ignore"))
    assert (kept.n_values, left.n_values) == (3, 2)
    assert kept.score == pytest.approx(2 / 8)
    assert (left.score, left.no_column) == (0, pytest.approx(kernel.ginger(np.array([[3, 3]])), 1))
    nothing = column_estimate(*one_column(pa.nulls(8), y), Scoring(missing="ignore"))
    assert nothing.score == nothing.no_column
    assert not nothing.beats_no_column


def test_weights_are_repetitions_for_bins_too():
    rng = np.random.default_rng(0)
    x, y, weight = rng.normal(size=80), rng.integers(0, 2, 80), rng.integers(0, 4, 80)
    weighted = column_estimate(*one_column(x, y, sample_weight=weight), Scoring())
    repeated = column_estimate(*one_column(x.repeat(weight), y.repeat(weight)), Scoring())
    assert weighted.score == repeated.score
    assert weighted.interval == pytest.approx(repeated.interval)
    assert weighted.n_bins == repeated.n_bins


def test_the_order_of_values_is_found_where_it_is_not_given():
    how = Scoring()
    kind, values, table = one_column([1.0, 2, 3, None], [0, 0, 1, 1])
    mixed = np.array([3, 2, 0, 1])
    one = column_estimate(kind, values, table, how)
    two = column_estimate(kind, values.take(pa.array(mixed)), table[mixed], how)
    assert one.score == two.score


def test_ties_keep_their_order_in_spite_of_rounding():
    scores = np.array([0.3, 0.1 + 0.2, 0.3, 0.1])
    assert score_order(scores).tolist() == [3, 0, 1, 2]


def test_categorical_features_may_be_named_numbered_or_masked():
    names = ("a", "b", "c")
    for given_, expected in (
        ("from_dtype", [0, 0, 0]),
        (["c"], [0, 0, 1]),
        ([0, 2], [1, 0, 1]),
        ([True, False, True], [1, 0, 1]),
        ([], [0, 0, 0]),
    ):
        assert categorical_mask(given_, names).tolist() == [bool(e) for e in expected]
    for bad, message in (
        (["d"], r"must name columns of X.*Got \['d'\]"),
        ([3], r"indices from 0 to 2.*Got \[3\]"),
        ([1, 1], "each once"),
        ([1.5], "or be a mask of length 3"),
        ("all", "must name columns of X"),
        ([True], "a mask of length 3"),
    ):
        with pytest.raises(ValueError, match=message):
            categorical_mask(bad, names)


def test_two_rows_are_enough_and_one_is_not():
    check_classes(("a", "b"), 2)
    with pytest.raises(InputError, match=r"needs at least 2 rows\. Got 1 sample\."):
        check_classes(None, 1)


@pytest.mark.parametrize("n_mixed, is_group", [(1, True), (2, False)])
def test_rows_of_a_subject_have_a_tenth_of_the_pairs_that_differ(n_mixed, is_group):
    # 20 values of 3 rows: 120 pairs of rows of one value, of which 4 for each mixed value differ;
    # of all pairs about half do, of which a tenth is .051: between 4/120 and 8/120.
    labels = np.repeat(np.arange(20) % 2, 3)
    labels[: 6 * n_mixed : 6] = 1  # one row of some values of class 0
    profile = Profile.from_parts(
        "category",
        [whole_part(*one_column([f"v{i // 3}" for i in range(60)], labels.tolist()))],
        60,
        (0, 1),
        64,
    )
    assert looks_like_group(profile) is is_group


def test_the_misclassified_share_is_known_to_the_criterion_that_is_one():
    parts = [whole_part(*one_column(["a", "a", "b", "b"], [0, 1, 1, 1]))]
    table = Profile.from_parts("category", parts, 4, (0, 1), 64).read()[1][0]
    wrong = CRITERIA["misclassification"].estimate(table, "uniform")
    assert (wrong.share_wrong, wrong.no_column_wrong) == (0.25, 0.25)
    assert np.isnan(CRITERIA["gini"].estimate(table, "uniform").share_wrong)


@pytest.mark.parametrize(
    "criterion, numeric, grouped, n_known",
    [
        ("log_loss", False, False, 1),
        ("ginger", False, True, 2),  # of one group
        ("squared_error", True, False, 1),
        ("ginger", True, False, 2),
    ],
)
def test_a_column_known_in_too_few_rows_is_worth_no_column(criterion, numeric, grouped, n_known):
    rng = np.random.default_rng(0)
    y = rng.normal(size=40) if numeric else rng.integers(0, 3, 40)
    rare = ["a"] * n_known + [None] * (40 - n_known)
    selector = GingerSelector(criterion, missing="ignore", min_features=1, min_gain_se=0)
    selector.fit(
        pd.DataFrame({"rare": rare, "other": list("abcd") * 10}),
        y,
        groups=np.repeat(np.arange(8), 5) if grouped else None,
    )
    evidence = selector.path_.evidence
    assert evidence.scores[0] == evidence.no_column[0] == pytest.approx(evidence.no_column[1])
    # One more row is enough where rows are left out.
    rare[n_known] = "a"
    selector.fit(pd.DataFrame({"rare": rare, "other": list("abcd") * 10}), y)
    assert selector.path_.evidence.standard_errors[0] > 0
