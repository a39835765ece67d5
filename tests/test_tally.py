"""Columns counted without a code for every row: the same as with one."""

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from holdtrue import grouping, tally, values
from holdtrue.tally import Target, counted

small = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def both_ways(monkeypatch, column, label, keep_values=True):
    """Values and tables by codes and without them."""
    target = Target.from_column(label, False)
    monkeypatch.setattr(tally, "_LONG", 1 << 62)
    kind, values_, table = counted("x", column, target)
    monkeypatch.setattr(tally, "_LONG", 0)
    direct = counted("x", column, target, keep_values=keep_values)
    return (kind, values_, table), direct


wide = st.one_of(st.none(), st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))
number = st.one_of(st.none(), st.sampled_from([0.0, -0.0, float("nan")]), st.floats(width=64))


@pytest.mark.parametrize("share", [0.0, 2.0], ids=["sorted", "hashed"])
@pytest.mark.parametrize(
    ("kind", "element"), [(pa.int64(), wide), (pa.float64(), number)], ids=["int", "float"]
)
@small
@given(data=st.data())
def test_numbers_are_counted_alike(data, share, kind, element, monkeypatch):
    rows = data.draw(st.lists(st.tuples(element, st.integers(0, 2)), min_size=2, max_size=30))
    column = pa.array([row[0] for row in rows], kind)
    cut = data.draw(st.integers(0, len(rows)))
    column = pa.chunked_array([column.slice(0, cut), column.slice(cut)])
    monkeypatch.setattr(tally, "mostly_differ", lambda column, _: share == 0.0)
    expected, found = both_ways(monkeypatch, column, np.array([row[1] for row in rows]))
    assert found[0] == expected[0]
    assert found[1].to_pylist() == expected[1].to_pylist()
    np.testing.assert_array_equal(found[2], expected[2])


@small
@given(
    st.lists(
        st.tuples(st.one_of(st.none(), st.text(max_size=9)), st.integers(0, 2)),
        min_size=2,
        max_size=30,
    )
)
def test_texts_are_counted_alike(monkeypatch, rows):
    monkeypatch.setattr(values, "_SAMPLE", 0)
    monkeypatch.setattr(tally, "mostly_differ", lambda column, _: False)
    column = pa.array([row[0] for row in rows], pa.string())
    expected, (kind, places, table) = both_ways(
        monkeypatch, column, np.array([row[1] for row in rows]), keep_values=False
    )
    # Values are given by the row of their first; null is the row of a missing one.
    at = [column.null_count and column.to_pylist().index(None) if p is None else p
          for p in places.to_pylist()]  # fmt: skip
    found = dict(zip(column.take(at).to_pylist(), table.tolist(), strict=True))
    assert (kind, found) == (
        expected[0], dict(zip(expected[1].to_pylist(), expected[2].tolist(), strict=True))
    )  # fmt: skip


def test_a_table_of_keys_grows_and_gives_up(monkeypatch):
    monkeypatch.setattr(grouping, "_FEW_KEYS", 4)
    monkeypatch.setattr(grouping, "_MAX_KEYS", 1 << 10)
    monkeypatch.setattr(tally, "mostly_differ", lambda column, _: False)
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 5000)
    for n_values in (900, 3000):  # the second does not fit, and is sorted
        column = pa.array(rng.integers(-(2**63), 2**63, n_values)[rng.integers(0, n_values, 5000)])
        expected, found = both_ways(monkeypatch, column, label)
        assert found[1].equals(expected[1])
        np.testing.assert_array_equal(found[2], expected[2])


def test_numbers_all_missing_are_one_value(monkeypatch):
    for kind in (pa.int64(), pa.float64()):
        expected, found = both_ways(monkeypatch, pa.nulls(4, kind), np.array([0, 1, 1, 0]))
        assert found[1].to_pylist() == expected[1].to_pylist() == [None]
        np.testing.assert_array_equal(found[2], expected[2])
