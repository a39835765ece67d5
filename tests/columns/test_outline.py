"""The few values that are kept of a column, whole or in parts."""

import numpy as np
import pyarrow as pa
import pytest

from holdtrue.columns import parts
from holdtrue.columns.bins import MOST_VALUES, whole_part
from holdtrue.columns.counting import Target, count_column
from holdtrue.columns.parts import count_in_parts
from holdtrue.sums import Profile
from holdtrue.tables import open_table


def outline_of(kind, pieces, target, max_bins=8):
    known = target.n_samples, target.classes, max_bins
    profile = Profile.from_parts(kind, pieces, *known, keep_values=True)
    return profile.outline, profile


def by_hand(values, codes):
    counts = {}
    for value, code in zip(values, codes, strict=True):
        counts.setdefault(value, [0, 0])[code] += 1
    return counts


@pytest.mark.parametrize("block", [10, 1 << 16])
def test_the_most_frequent_values_are_kept_with_their_counts(block, monkeypatch):
    monkeypatch.setattr("holdtrue.columns.bins._BLOCK", block)
    rng = np.random.default_rng(0)
    texts = [f"v{i}" for i in rng.geometric(0.1, 2000)]
    target = Target.from_column(rng.integers(0, 2, 2000), False)
    column = pa.array(texts)
    piece = whole_part("category", *count_column("c", column, target))
    outline, _ = outline_of("category", [piece], target)
    wanted = by_hand(texts, target.codes)
    assert len(outline.frequent) == MOST_VALUES
    assert all(
        wanted[value] == row.tolist()
        for value, row in zip(outline.frequent, outline.tables, strict=True)
    )
    least = min(sum(wanted[value]) for value in outline.frequent)
    assert all(sum(c) <= least for v, c in wanted.items() if v not in outline.frequent)
    assert outline.total.tolist() == [np.bincount(target.codes).tolist()]


@pytest.mark.parametrize("kind", ["integer", "number", "date", "dense", "text"])
def test_parts_of_a_column_keep_what_the_whole_keeps(kind, monkeypatch):
    rng = np.random.default_rng(1)
    n = 3000
    numbers = np.minimum(rng.geometric(0.01, n), 400)
    column = {
        "integer": pa.array(numbers * 10_000_019),
        "number": pa.array(numbers / 7),
        "date": pa.array(numbers, pa.int32()).cast(pa.date32()),
        "dense": pa.array(numbers),
        "text": pa.array([f"value {i}" for i in numbers]),
    }[kind]
    table = open_table(pa.table({"c": column}))
    read_as = table.kinds["c"]
    target = Target.from_column(rng.integers(0, 2, n), False)
    whole, profile = outline_of(
        read_as, [whole_part(read_as, *count_column("c", column, target))], target
    )
    monkeypatch.setattr(parts, "LARGE", 1)
    monkeypatch.setattr(parts, "PART", 500)
    monkeypatch.setattr("holdtrue.columns.distinct._SAMPLE", 0)
    pieces = count_in_parts(table, "c", target)
    if pieces is None:
        pytest.skip("texts that come back are counted as a whole")
    some, in_parts = outline_of(read_as, pieces, target)
    assert sorted(some.tables.sum(axis=1)) == sorted(whole.tables.sum(axis=1))
    assert some.total.tolist() == whole.total.tolist()
    for (ends, _), (wanted, _) in zip(some.bins, whole.bins, strict=True):
        assert some.edges(ends) == whole.edges(wanted)
    assert [b.tolist() for b in in_parts.bins] == [b.tolist() for b in profile.bins]


def test_bins_end_at_values_of_the_data():
    target = Target.from_column([0, 1] * 50, False)
    column = pa.array(np.arange(100.0))
    piece = whole_part("number", *count_column("c", column, target))
    outline, _ = outline_of("number", [piece], target, max_bins=4)
    assert outline.edges(outline.bins[-1][0]) == [0.0, 24.0, 49.0, 74.0, 99.0]
