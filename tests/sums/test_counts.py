"""Counts: values keep their type, nothing collides, and parts add up to the whole."""

import datetime
import pickle

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given

from holdtrue import Counts

FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}


def objects(rows):
    """Array of Python objects, one column."""
    column = np.empty((len(rows), 1), dtype=object)
    column[:, 0] = rows
    return column


def as_dict(counts, name="x0"):
    """Rows by (type, value): the identity that values must keep."""
    j = counts.names.index(name)
    values = counts.values[j]
    values = values.tolist() if isinstance(values, np.ndarray) else values.to_pylist()
    keys = [(isinstance(v, bool), v) for v in values]
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, map(tuple, counts.tables[j].tolist()), strict=True))


def brute_force(rows, y, classes):
    table = {}
    for value, label in zip(rows, y, strict=True):
        value = None if value is None or value != value else value
        row = table.setdefault((isinstance(value, bool), value), [0] * len(classes))
        row[classes.index(label)] += 1
    return {key: tuple(row) for key, row in table.items()}


def test_three_rows_by_hand():
    # red: one row of class 0 and one of class 1; blue: one row of class 1.
    counts = Counts.from_arrays(objects(["red", "red", "blue"]), [0, 1, 1])
    assert counts.column("x0") == {"red": [1, 1], "blue": [0, 1]}
    assert (counts.n_samples, counts.n_features, counts.classes) == (3, 1, (0, 1))


def test_numeric_target_by_hand():
    # y = 1, 3 with "a": mean 2, Σ(y-2)² = 2, Σ(y-2)³ = 0, Σ(y-2)⁴ = 2.
    counts = Counts.from_arrays(objects(["a", "a", "b"]), [1.0, 3.0, 7.0], numeric_target=True)
    assert counts.column("x0") == {"a": [2, 2, 2, 0, 2], "b": [1, 7, 0, 0, 0]}


def test_values_keep_their_type():
    rows = [1, "1", True, 1.0, b"1", None, float("nan"), False, 0, -0.0, datetime.date(2020, 1, 1)]
    counts = Counts.from_arrays(objects(rows), [0] * 10 + [1])
    assert as_dict(counts) == brute_force(rows, [0] * 10 + [1], [0, 1])
    assert as_dict(counts)[(False, 1)] == (2, 0)
    assert as_dict(counts)[(False, None)] == (2, 0)
    assert as_dict(counts + counts) == {k: (2 * a, 2 * b) for k, (a, b) in as_dict(counts).items()}


simple = st.one_of(
    st.integers(-3, 3), st.integers(2**53, 2**53 + 3), st.sampled_from("ab1"), st.booleans(),
    st.sampled_from([0.0, -0.0, 1.0, 2.5, float("nan")]), st.none(),
)  # fmt: skip


@given(
    st.one_of(
        *(
            st.lists(st.tuples(strategy, st.integers(0, 2)), min_size=1, max_size=25)
            for strategy in (
                simple,
                st.integers(-(2**62), 2**62),
                st.sampled_from([-1.5, 0.0, -0.0, 7.0, None, float("nan")]),
                st.one_of(st.text(max_size=2), st.none()),
                st.one_of(st.booleans(), st.none()),
            )
        )
    )
)
def test_counts_are_those_of_a_dictionary_of_rows(rows):
    column, y = [value for value, _ in rows], [label for _, label in rows]
    counts = Counts.from_arrays(objects(column), y)
    assert as_dict(counts) == brute_force(column, y, list(counts.classes))
    # One row at a time, whatever the types of the parts.
    parts = sum(
        Counts.from_arrays(objects([value]), [label])
        for value, label in zip(column, y, strict=True)
    )
    assert parts.classes == counts.classes
    assert as_dict(parts) == as_dict(counts)


@pytest.fixture
def mixed():
    rng = np.random.default_rng(0)
    n = 211
    return pd.DataFrame(
        {
            "text": rng.choice(np.array(["a", "bb", "ccc", None], dtype=object), n),
            "group": pd.Categorical(rng.choice([3, 1, 2], n), categories=[1, 2, 3, 9]),
            "flag": rng.random(n) < 0.4,
            "age": rng.integers(18, 90, n),
            "big": rng.integers(-(2**60), 2**60, n),
            "dose": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "day": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 9, n), "D"),
            "label": rng.choice(["yes", "no", "maybe"], n),
            "price": 300 + rng.normal(size=n),
        }
    )


def equal(a, b, exact=True):
    assert (a.names, a.kinds, a.classes) == (b.names, b.kinds, b.classes)
    for name in a.names:
        one, two = as_dict(a, name), as_dict(b, name)
        assert one.keys() == two.keys()
        for key in one:
            if exact:
                assert one[key] == two[key]
            else:
                np.testing.assert_allclose(one[key], two[key], rtol=1e-12, atol=1e-11)


def test_seven_parts_equal_one(mixed):
    classes = mixed.drop(columns="price")
    parts = [classes.iloc[i::7] for i in range(7)]
    equal(sum(Counts.from_frame(p, "label") for p in parts), Counts.from_frame(classes, "label"))


def test_seven_parts_equal_one_for_a_numeric_target_with_a_large_mean(mixed):
    def counts(frame):
        return Counts.from_frame(frame, "price", numeric_target=True)

    # From Σy² the second moment would keep 11 digits, the fourth 6.
    few = mixed[["text", "group", "price"]]
    equal(sum(counts(few.iloc[i::7]) for i in range(7)), counts(few), exact=False)


def test_adding_leaves_its_inputs_alone(mixed):
    a, b = (Counts.from_frame(mixed.iloc[part], "label") for part in (slice(90), slice(90, None)))
    before = [table.copy() for table in (*a.tables, *b.tables)]
    assert (a + b).n_samples == len(mixed)
    for table, old in zip((*a.tables, *b.tables), before, strict=True):
        np.testing.assert_array_equal(table, old)


def test_frames_batches_and_files_give_the_same(mixed, tmp_path):
    mixed = mixed.drop(columns="group")  # Polars has no categories of numbers
    expected = Counts.from_frame(mixed, "label")
    table = pa.Table.from_pandas(mixed, preserve_index=False)
    equal(Counts.from_frame(pl.from_pandas(mixed), "label"), expected)
    equal(Counts.from_frame(table, "label"), expected)
    equal(Counts.from_batches(table.to_batches(max_chunksize=17), "label"), expected)
    equal(Counts.from_arrays(mixed.drop(columns="label"), mixed["label"]), expected)
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=50)
    file = pq.ParquetFile(tmp_path / "t.parquet", read_dictionary=["text"])
    equal(Counts.from_batches(file.iter_batches(batch_size=30), "label"), expected)
    equal(Counts.from_frame(file.read(), "label"), expected)


@pytest.mark.parametrize("numeric", [False, True])
def test_parts_without_rows_are_passed_over(mixed, numeric):
    target = "price" if numeric else "label"
    whole = Counts.from_frame(mixed, target, numeric_target=numeric)
    empty = mixed.iloc[:0]
    batches = [empty, mixed[:50], empty, pa.Table.from_pandas(mixed[50:]), pl.from_pandas(empty)]
    equal(Counts.from_batches(batches, target, numeric_target=numeric), whole, exact=not numeric)
    with pytest.raises(ValueError, match="at least one batch with rows"):
        Counts.from_batches([empty, empty], target, numeric_target=numeric)
    with pytest.raises(ValueError, match=r"at least one row. Got a target without rows"):
        Counts.from_frame(empty, target, numeric_target=numeric)
    with pytest.raises(ValueError, match="Counts: expected at least one row"):
        Counts.from_arrays(np.empty((0, 2)), [], numeric_target=numeric)


def test_weights_are_repetitions(mixed):
    weight = np.random.default_rng(1).integers(0, 4, len(mixed))
    for target, numeric in (("label", False), ("price", True)):
        weighted = Counts.from_frame(mixed, target, numeric_target=numeric, sample_weight=weight)
        repeated = mixed.loc[mixed.index.repeat(weight)]
        equal(weighted, Counts.from_frame(repeated, target, numeric_target=numeric), not numeric)
    with pytest.raises(ValueError, match=r"whole numbers.*Got 0\.5"):
        Counts.from_frame(mixed, "label", sample_weight=np.full(len(mixed), 0.5))


def test_unused_categories_and_classes_are_not_there(mixed):
    counts = Counts.from_frame(mixed[["group", "label"]], "label")
    assert set(counts.column("group")) == {1, 2, 3}
    one = Counts.from_arrays(objects(["a", "b"]), ["x", "y"], sample_weight=[0, 1])
    assert (one.classes, one.column("x0")) == (("y",), {"b": [1]})


def test_dictionaries_may_hold_a_value_twice_or_null():
    column = pa.DictionaryArray.from_arrays([0, 1, 2, None, 3], ["a", "a", "b", None])
    counts = Counts.from_frame(pa.table({"c": column, "y": [0, 0, 0, 1, 1]}), "y")
    assert counts.column("c") == {"a": [2, 0], "b": [1, 0], None: [0, 2]}


def test_parts_may_keep_time_in_different_units():
    day = datetime.datetime(2020, 1, 1)
    parts = [
        Counts.from_frame(pa.table({"t": pa.array([day], pa.timestamp(unit)), "y": [0]}), "y")
        for unit in ("ms", "us")
    ]
    assert sum(parts).column("t") == {day: [2]}
    assert sum(parts).kinds == ("number",)


def test_parts_may_keep_time_beyond_the_finest_unit():
    days = [datetime.datetime(2020, 1, 1), datetime.datetime(9999, 1, 1)]
    parts = [
        Counts.from_frame(pa.table({"t": pa.array(own, pa.timestamp(unit)), "y": [0]}), "y")
        for own, unit in (([days[0]], "ns"), ([days[1]], "us"), ([days[1]], "s"))
    ]
    assert sum(parts).column("t") == {days[0]: [1], days[1]: [2]}
    assert sum(parts).kinds == ("number",)
    spans = [
        Counts.from_frame(pa.table({"t": pa.array([day], pa.duration(unit)), "y": [0]}), "y")
        for day, unit in ((datetime.timedelta(1), "ns"), (datetime.timedelta(10**6), "s"))
    ]
    assert sum(spans).values[0].to_pylist() == [datetime.timedelta(1), datetime.timedelta(10**6)]
    assert sum(spans).kinds == ("number",)


def test_classes_are_joined_and_ordered():
    a = Counts.from_arrays(objects(["u"]), ["late"])
    b = Counts.from_arrays(objects(["u", "v"]), ["early", "late"])
    assert (a + b).classes == ("early", "late")
    assert (a + b).column("x0") == {"u": [1, 1], "v": [0, 1]}
    c = Counts.from_arrays(objects(["u", "u", "u"]), np.array([1, "1", True], dtype=object))
    assert (c + c).tables[0].tolist() == [[2, 2, 2]]


def test_a_copy_is_a_copy(mixed):
    counts = Counts.from_frame(mixed, "label")
    equal(pickle.loads(pickle.dumps(counts)), counts)


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
def test_a_column_of_lists_is_refused_by_name(frame):
    table = frame({"tags": [["a"], ["b", "c"]], "y": [0, 1]})
    with pytest.raises(TypeError, match=r"Counts: column 'tags' holds values.*list"):
        Counts.from_frame(table, "y")


def test_a_table_beyond_the_limit_is_refused_with_both_numbers(monkeypatch):
    monkeypatch.setattr("holdtrue.columns.counting._MAX_CELLS", 5)
    with pytest.raises(ValueError, match=r"3 values by 2 classes make a table of .* GB, above"):
        Counts.from_arrays(objects(["a", "b", "c"]), [0, 1, 1])


def test_what_does_not_add_is_refused():
    a = Counts.from_arrays(objects(["u"]), [1])
    with pytest.raises(ValueError, match=r"different columns.*Missing: \['x0'\]. New: \['b'\]"):
        a + Counts.from_arrays(objects(["u"]), [1], names=["b"])
    with pytest.raises(ValueError, match="same numeric_target"):
        a + Counts.from_arrays(objects(["u"]), [1.0], numeric_target=True)
    with pytest.raises(TypeError):
        a + 1


def test_bad_input_is_refused_in_words():
    X = objects(["a", "b"])
    with pytest.raises(ValueError, match=r"must not be missing.*Got 1 such value"):
        Counts.from_arrays(X, np.array(["p", None], dtype=object))
    with pytest.raises(ValueError, match="must not be missing"):
        Counts.from_arrays(X, [1.0, np.nan], numeric_target=True)
    with pytest.raises(ValueError, match=r"one value per row of X, 2. Got 3"):
        Counts.from_arrays(X, [0, 1, 1])
    with pytest.raises(ValueError, match="2 dimensions"):
        Counts.from_arrays(np.arange(3), [0, 1, 1])
    with pytest.raises(TypeError, match=r"expected a data frame.*Got str"):
        Counts.from_frame("train.csv", "y")
    with pytest.raises(ValueError, match=r"no column 'lable'. Did you mean 'label'"):
        Counts.from_frame(pd.DataFrame({"a": [1], "label": [1]}), "lable")
    with pytest.raises(TypeError, match=r"Got LazyFrame. Call its collect\(\) first"):
        Counts.from_frame(pl.LazyFrame({"y": [1]}), "y")
    with pytest.raises(ValueError, match="at least one batch"):
        Counts.from_batches([], "y")
    good = Counts.from_arrays(X, [0, 1])
    with pytest.raises(ValueError, match=r"must have shape \(2, 2\)"):
        Counts(good.names, good.kinds, good.values, (np.ones((1, 2)),), good.classes)
    with pytest.raises(ValueError, match="same rows"):
        Counts(
            ("a", "b"), good.kinds * 2, good.values * 2,
            (good.tables[0], 2 * good.tables[0]), good.classes,
        )  # fmt: skip


def test_parts_whose_groups_or_classes_have_another_type_are_refused():
    table = {"x": list("aabb"), "t": [0, 1, 0, 1], "g": [1, 1, 2, 2]}
    whole = Counts.from_frame(pa.table(table), "t", groups="g")
    as_text = Counts.from_frame(pa.table(table | {"g": list("1122")}), "t", groups="g")
    with pytest.raises(ValueError, match=r"groups must have one type in all parts\. Got numbers"):
        whole + as_text
    truths = Counts.from_frame(pa.table(table | {"t": [False, True] * 2}), "t", groups="g")
    with pytest.raises(ValueError, match="the target's classes must have one type in all parts"):
        Counts.merge([whole, truths])
    as_floats = Counts.from_frame(pa.table(table | {"g": [1.0, 1, 2, 2]}), "t", groups="g")
    assert len((whole + as_floats).groups) == 2
