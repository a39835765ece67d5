"""Columns counted in parts: the same profiles as from the whole table."""

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings

from holdtrue.categories.score import CRITERIA, Scoring, score_column
from holdtrue.columns import distinct as values
from holdtrue.columns import parts
from holdtrue.columns.bins import whole_part
from holdtrue.columns.counting import Target, count_column
from holdtrue.columns.values import column_kind
from holdtrue.sums import Profile
from holdtrue.tables import open_table


@pytest.fixture
def small(monkeypatch):
    """Parts of a few rows."""
    monkeypatch.setattr(parts, "LARGE", 1)
    monkeypatch.setattr(values, "_SAMPLE", 0)
    return monkeypatch


def both_ways(column, target, kind, how):
    """Profiles from parts and from the whole; the first may be None."""
    table = open_table(pa.table({"x": column}))
    some = parts.count_in_parts(table, "x", target)
    if some is not None:
        some = Profile.from_parts(kind, some, target.n_samples, target.classes, how.max_bins)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "_SAMPLE", 1 << 15)
        counts = count_column("x", column, target)
    whole = [whole_part(kind, *counts)]
    return some, Profile.from_parts(kind, whole, target.n_samples, target.classes, how.max_bins)


def in_order(profile):
    return sorted(zip(profile.rows.tolist(), profile.repeats.tolist(), strict=True))


def assert_same(some, whole, how):
    assert in_order(some) == in_order(whole)
    np.testing.assert_array_equal(some.missing, whole.missing)
    assert len(some.bins) == len(whole.bins)
    for one, two in zip(some.bins, whole.bins, strict=True):
        np.testing.assert_array_equal(one, two)
    one, two = score_column(some, how), score_column(whole, how)
    np.testing.assert_allclose(one.estimate[1:], two.estimate[1:], atol=1e-12)


def column(kind, codes):
    if kind in ("text", "wide text", "long text"):
        phrase = "a text above a key of few words, by some bytes: "
        word = {"text": "v", "wide text": phrase, "long text": 3 * phrase}[kind]
        texts = [None if code is None else f"{word}{code}" for code in codes]
        return pa.array(texts, pa.string())
    if kind == "float":
        return pa.array([None if code is None else 0.5 * code for code in codes], pa.float64())
    if kind == "bool":
        return pa.array([None if code is None else code > 0 for code in codes], pa.bool_())
    if kind == "date":
        return pa.array(codes, pa.int32()).cast(pa.date32())
    return pa.array(codes, pa.int64())


@pytest.mark.parametrize("kind", ["text", "float", "date", "integer", "bool"])
@pytest.mark.parametrize("missing", ["category", "ignore"])
@given(
    data=st.data(),
    dense=st.integers(0, 99),
    part=st.integers(1, 9),
    n_classes=st.integers(2, 4),
    reach=st.integers(1, 70),
)
@settings(max_examples=60)
def test_parts_give_the_estimate_of_the_whole(kind, missing, data, dense, part, n_classes, reach):
    codes = data.draw(st.lists(st.one_of(st.none(), st.integers(-20, 20)), min_size=4, max_size=60))
    labels = data.draw(
        st.lists(st.integers(0, n_classes - 1), min_size=len(codes), max_size=len(codes))
    )
    labels[:n_classes] = range(min(n_classes, len(codes)))
    target = Target.from_column(np.array(labels), False)
    given_column = column(kind, codes)
    chunks = pa.chunked_array([given_column.slice(0, 3), given_column.slice(3)])
    how = Scoring(missing=missing, max_bins=4)
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in (
            (parts, "LARGE", 1),
            (parts, "PART", part),
            (parts, "DENSE", dense),
            (parts, "RANGE", reach),
            (parts, "_SAMPLED", 2),
            (values, "_SAMPLE", 0),
        ):
            patch.setattr(module, name, value)
        some, whole = both_ways(chunks, target, column_kind(chunks), how)
    assert_same(some, whole, how)


@pytest.mark.parametrize("kind", ["text", "wide text", "long text", "float", "integer"])
@pytest.mark.parametrize("forced", [False, True])
def test_many_rows_in_many_parts(small, kind, forced):
    rng = np.random.default_rng(0)
    n = 60_000
    codes = rng.integers(0, 10**6, n)
    own = column(
        kind, [None if gone else int(c) for c, gone in zip(codes, rng.random(n) < 0.1, strict=True)]
    )
    target = Target.from_column(rng.random(n) < 0.2 + 0.5 * (codes > 700_000), False)
    small.setattr(parts, "PART", 1000)
    small.setattr(parts, "DENSE", 5000)
    small.setattr(parts, "RANGE", 20_000)
    read_as = "category" if forced or "text" in kind else column_kind(own)
    some, whole = both_ways(pa.chunked_array([own]), target, read_as, Scoring())
    assert_same(some, whole, Scoring())
    paper = Scoring(CRITERIA["ginger"])
    assert_same(some, whole, paper)
    assert score_column(some, paper).beats_no_column == (not forced and "text" not in kind)


def test_what_fits_is_left_as_it_was(small):
    small.setattr(values, "_SAMPLE", 1 << 15)
    rng = np.random.default_rng(0)
    target = Target.from_column(rng.random(100) < 0.5, False)
    for whole in (
        pa.array(["a", "b"] * 50).dictionary_encode(),
        pa.nulls(100),
        np.array([1, "x"] * 50, dtype=object),
    ):
        table = open_table(
            pd.DataFrame({"x": whole}) if isinstance(whole, np.ndarray) else pa.table({"x": whole})
        )
        assert parts.count_in_parts(table, "x", target) is None
    numbers = open_table(pa.table({"x": rng.random(100)}))
    numeric = Target.from_column(rng.random(100), True)
    assert parts.count_in_parts(numbers, "x", numeric) is None
    weighted = Target.from_column(rng.random(100) < 0.5, False, np.ones(100))
    assert parts.count_in_parts(numbers, "x", weighted) is None
