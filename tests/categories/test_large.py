"""Columns in parts: the same estimates as from the whole table."""

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings

from holdtrue import values
from holdtrue.categories import large
from holdtrue.categories.counting import Scoring, column_estimate
from holdtrue.tables import open_table
from holdtrue.tally import Target, counted
from holdtrue.values import column_kind


@pytest.fixture
def small(monkeypatch):
    """Parts of a few rows."""
    monkeypatch.setattr(large, "LARGE", 1)
    monkeypatch.setattr(values, "_SAMPLE", 0)
    return monkeypatch


def both_ways(column, target, kind, how):
    """Estimates from parts and from the whole; the first may be None."""
    table = open_table("us", pa.table({"x": column}))
    found = large.estimate_in_parts(table, "x", kind, target, how)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "_SAMPLE", 1 << 15)
        _, own, table = counted("x", column, target, keep_values=False)
    return found, column_estimate(kind, own, table, how)


def assert_same(found, whole):
    assert found.reading.n_bins == whole.reading.n_bins
    assert (found.n_values, found.n_once) == (whole.n_values, whole.n_once)
    for name in ("score", "no_column", "standard_error", "interval", "gain_interval", "coverage"):
        np.testing.assert_allclose(getattr(found, name), getattr(whole, name), atol=1e-12)
    np.testing.assert_array_equal(found.reading.ends, whole.reading.ends)
    if found.reading.n_bins:
        np.testing.assert_array_equal(found.reading.table, whole.reading.table)


def column(kind, codes):
    if kind == "text":
        texts = [None if code is None else f"v{code}" for code in codes]
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
@given(data=st.data(), kept=st.integers(-1, 8), part=st.integers(1, 9), n_classes=st.integers(2, 4))
@settings(deadline=None, max_examples=60)
def test_parts_give_the_estimate_of_the_whole(kind, missing, data, kept, part, n_classes):
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
            (large, "LARGE", 1),
            (large, "PART", part),
            (large, "TEXT_PART", part),
            (large, "KEPT", kept),
            (values, "_SAMPLE", 0),
        ):
            patch.setattr(module, name, value)
        found, whole = both_ways(chunks, target, column_kind(chunks), how)
    assert_same(found, whole)


@pytest.mark.parametrize("kind", ["text", "float", "integer"])
@pytest.mark.parametrize("forced", [False, True])
def test_many_rows_in_many_parts(small, kind, forced):
    rng = np.random.default_rng(0)
    n = 60_000
    codes = rng.integers(0, 10**6, n)
    own = column(
        kind, [None if gone else int(c) for c, gone in zip(codes, rng.random(n) < 0.1, strict=True)]
    )
    target = Target.from_column(rng.random(n) < 0.2 + 0.5 * (codes > 700_000), False)
    small.setattr(large, "PART", 1000)
    small.setattr(large, "TEXT_PART", 3000)
    small.setattr(large, "KEPT", 5000)
    read_as = "category" if forced or kind == "text" else column_kind(own)
    found, whole = both_ways(pa.chunked_array([own]), target, read_as, Scoring())
    assert_same(found, whole)
    assert found.beats_no_column == (not forced and kind != "text")


def test_what_fits_is_left_as_it_was(small):
    rng = np.random.default_rng(0)
    target = Target.from_column(rng.random(100) < 0.5, False)
    for whole in (
        pa.array(["a", "b"] * 50).dictionary_encode(),
        pa.nulls(100),
        np.array([1, "x"] * 50, dtype=object),
    ):
        table = open_table(
            "us",
            pd.DataFrame({"x": whole}) if isinstance(whole, np.ndarray) else pa.table({"x": whole}),
        )
        assert large.estimate_in_parts(table, "x", table.kinds["x"], target, Scoring()) is None
    numbers = open_table("us", pa.table({"x": rng.random(100)}))
    numeric = Target.from_column(rng.random(100), True)
    assert large.estimate_in_parts(numbers, "x", "number", numeric, Scoring(numeric=True)) is None
    weighted = Target.from_column(rng.random(100) < 0.5, False, np.ones(100))
    assert large.estimate_in_parts(numbers, "x", "number", weighted, Scoring()) is None
