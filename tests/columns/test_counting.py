"""Columns counted without a code for every row: the same as with one."""

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from holdtrue.columns import counting, distinct, key_loops, pair_loops
from holdtrue.columns.counting import Groups, Target, column_parts, count_column, count_groups

small = settings(max_examples=40)


def both_ways(monkeypatch, column, label):
    """Values and tables by codes and without them."""
    target = Target.from_column(label, False)
    monkeypatch.setattr(counting, "LONG", 1 << 62)
    monkeypatch.setattr(counting, "_loops_count_codes", lambda n_rows: False)
    by_codes = count_column("x", column, target)
    monkeypatch.setattr(counting, "LONG", 0)
    monkeypatch.setattr(counting, "_loops_count_codes", lambda n_rows: True)
    return by_codes, count_column("x", column, target)


wide = st.one_of(st.none(), st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1))
narrow = st.integers(-3, 3)
instant = st.one_of(st.none(), narrow, st.integers(-(2**40), 2**40))
number = st.one_of(st.none(), st.sampled_from([0.0, -0.0, float("nan")]), st.floats(width=64))


@pytest.mark.parametrize("share", [0.0, 2.0], ids=["sorted", "hashed"])
@pytest.mark.parametrize(
    ("kind", "element"),
    [
        (pa.int64(), wide),
        (pa.int8(), st.one_of(st.none(), narrow)),
        (pa.float64(), number),
        (pa.timestamp("us", "UTC"), instant),
        (pa.duration("ms"), instant),
        (pa.date32(), st.one_of(st.none(), narrow)),
    ],
    ids=["wide", "dense", "float", "time", "duration", "date"],
)
@small
@given(data=st.data())
def test_numbers_are_counted_alike(data, share, kind, element, monkeypatch):
    rows = data.draw(st.lists(st.tuples(element, st.integers(0, 2)), min_size=2, max_size=30))
    column = pa.array([row[0] for row in rows], kind)
    cut = data.draw(st.integers(0, len(rows)))
    column = pa.chunked_array([column.slice(0, cut), column.slice(cut)])
    monkeypatch.setattr(counting, "mostly_differ", lambda column, _: share == 0.0)
    expected, found = both_ways(monkeypatch, column, np.array([row[1] for row in rows]))
    assert found[0].type == expected[0].type
    assert found[0].to_pylist() == expected[0].to_pylist()
    np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("differ", [False, True], ids=["coded", "grouped"])
@small
@given(
    rows=st.lists(
        st.tuples(st.one_of(st.none(), st.text(max_size=9)), st.integers(0, 2)),
        min_size=2,
        max_size=30,
    )
)
def test_texts_are_counted_alike(monkeypatch, rows, differ):
    texts = pa.array([row[0] for row in rows], pa.string())
    column = pa.chunked_array([texts.slice(0, 1), texts.slice(1)])
    target = Target.from_column(np.array([row[1] for row in rows]), False)
    monkeypatch.setattr(distinct, "_SAMPLE", 1 << 62)
    expected = count_column("x", column, target)
    monkeypatch.setattr(distinct, "_SAMPLE", 0)
    monkeypatch.setattr(distinct, "mostly_differ", lambda column, _: differ)
    [part] = column_parts("category", "x", column, target)
    texts = (column.take(part.values) if differ else part.values).to_pylist()
    texts += [None] * len(part.missing)
    table = part.table.tolist() + part.missing.tolist()
    wanted = dict(zip(expected[0].to_pylist(), expected[1].tolist(), strict=True))
    assert dict(zip(texts, table, strict=True)) == wanted


@small
@given(data=st.data())
def test_codes_of_dictionaries_are_counted_alike(data, monkeypatch):
    # Chunks with dictionaries of their own, that repeat values, hold null or are not used.
    value = st.sampled_from(["a", "b", "c", None])
    chunks = []
    for _ in range(data.draw(st.integers(1, 3))):
        dictionary = pa.array(data.draw(st.lists(value, min_size=1, max_size=4)), pa.string())
        code = st.one_of(st.none(), st.integers(0, len(dictionary) - 1))
        codes = pa.array(data.draw(st.lists(code, min_size=2, max_size=9)), pa.int32())
        chunks.append(pa.DictionaryArray.from_arrays(codes, dictionary)[1:])
    column = pa.chunked_array(chunks)
    label = np.arange(len(column)) % 3
    expected, found = both_ways(monkeypatch, column, label)
    rows = [dict(zip(v.to_pylist(), t.tolist(), strict=True)) for v, t in (expected, found)]
    assert rows[0] == rows[1]


def test_a_table_of_keys_grows(monkeypatch):
    monkeypatch.setattr(key_loops, "_FEW_KEYS", 4)
    monkeypatch.setattr(counting, "mostly_differ", lambda column, _: False)
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 5000)
    for n_values in (900, 3000):
        column = pa.array(rng.integers(-(2**63), 2**63, n_values)[rng.integers(0, n_values, 5000)])
        expected, found = both_ways(monkeypatch, column, label)
        assert found[0].equals(expected[0])
        np.testing.assert_array_equal(found[1], expected[1])


def test_numbers_all_missing_are_one_value(monkeypatch):
    for kind in (pa.int64(), pa.float64()):
        expected, found = both_ways(monkeypatch, pa.nulls(4, kind), np.array([0, 1, 1, 0]))
        assert found[0].to_pylist() == expected[0].to_pylist() == [None]
        np.testing.assert_array_equal(found[1], expected[1])


@small
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(0, 2)), min_size=3, max_size=40
    )
)
def test_pairs_of_value_and_group_are_counted_alike(monkeypatch, rows):
    codes, group, label = np.array(rows).T
    target = Target(label.astype(np.uint8), (0, 1, 2), None)
    groups = Groups.from_column(group, target)
    found = {}
    for long in (1 << 62, 0):
        monkeypatch.setattr(counting, "LONG", long)
        values, pairs, table = count_groups("x", pa.array(codes), target, groups)
        found[long] = sorted(
            (values[int(v)].as_py(), int(g), *map(int, counts))
            for (v, g), counts in zip(pairs, table, strict=True)
        )
        assert (np.diff(pairs[:, 0]) >= 0).all()
    assert found[0] == found[1 << 62]


def test_pairs_beyond_63_bits_are_counted_alike(monkeypatch):
    monkeypatch.setattr(counting, "LONG", 0)
    label = np.array([0, 1, 2, 0, 1, 2], dtype=np.uint8)
    target = Target(label, (0, 1, 2), None)
    groups = Groups(range(1 << 60), np.array([4, 4, 2, 2, 1, 1]), np.zeros((0, 3)))
    values, pairs, table = count_groups("x", pa.array([3, 3, 3, 0, 2, 1]), target, groups)
    assert values.to_pylist() == [0, 1, 2, 3]
    assert pairs.tolist() == [[0, 2], [1, 1], [2, 1], [3, 2], [3, 4]]
    assert table.tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 0, 1], [1, 1, 0]]


@small
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=40
    ),
    st.sampled_from([0, 100]),
)
def test_pairs_of_joined_values_are_added_up(monkeypatch, rows, most_cells):
    codes, group, label = np.array(rows).T
    monkeypatch.setattr(pair_loops, "_CELLS_PER_ROW", most_cells)
    pairs, counts = pair_loops.pair_counts(codes, group, label.astype(np.uint8), (6, 5, 3))
    joined = np.array([0, 0, 1, 1, 1, 2])
    cells = pair_loops.joined_cells(joined, *pairs, counts, 5)
    assert (cells is None) == (most_cells == 0)
    if cells is None:
        (value, group_of), counts = pair_loops.joined_counts(joined, *pairs, counts, 5)
    else:
        (value, group_of), counts = pair_loops.pairs_of_cells(cells)
    assert (np.diff(value) >= 0).all()
    found = {(v, g): tuple(c) for v, g, c in zip(value, group_of, counts.tolist(), strict=True)}
    assert len(found) == len(value)
    for v, g in set(zip(joined[codes].tolist(), group.tolist(), strict=True)):
        at = (joined[codes] == v) & (group == g)
        assert found[v, g] == tuple(np.bincount(label[at], minlength=3))
