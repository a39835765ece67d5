"""Profile: what remains of a column, from rows, counts or parts, and as bytes."""

import contextlib
import datetime
import json
from dataclasses import replace
from decimal import Decimal

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings

from holdtrue import Counts, GingerSelector, Profile
from holdtrue.categories import kernel
from holdtrue.categories.score import NUMERIC_CRITERIA, Scoring, score_column
from holdtrue.categories.shrunk_mean import plain_score
from holdtrue.sums import packing
from holdtrue.sums.group_profile import GroupProfile
from holdtrue.sums.profile import distinct_rows, moment_sums


def profile_of(x, y, is_numeric=False, **options):
    frame = pa.table({"x": x, "y": y})
    return Counts.from_frame(frame, "y", numeric_target=is_numeric).profiles(**options)["x"]


def as_set(profile):
    """Distinct rows with the number of values that have each."""
    return dict(zip(map(tuple, profile.rows.tolist()), profile.repeats.tolist(), strict=True))


def assert_same(one, two, **tolerance):
    assert (one.kind, one.classes, len(one.bins)) == (two.kind, two.classes, len(two.bins))
    pairs = [
        (one.rows, two.rows),
        (one.missing, two.missing),
        *zip(one.bins, two.bins, strict=True),
    ]
    for a, b in pairs:
        np.testing.assert_allclose(a, b, **tolerance)
    np.testing.assert_array_equal(one.repeats, two.repeats)


def test_four_values_by_hand():
    # a: 1 and 0; b: 0; c: 0; d: 1; the missing value stands apart.
    profile = profile_of(["a", "a", "b", "c", "d", None], [1, 0, 0, 0, 1, 1])
    assert as_set(profile) == {(1, 1): 1, (1, 0): 2, (0, 1): 1}
    assert profile.missing.tolist() == [[0, 1]]
    assert (profile.n_values, profile.n_samples) == (5, 6)


@pytest.mark.parametrize("is_numeric", [False, True])
def test_missing_rows_count_as_one_value_or_not_at_all(is_numeric):
    y = [0.5, 1.5, 0.5, 3.5, 1.5, 0.5] if is_numeric else [0, 1, 0, 1, 1, 0]
    profile = profile_of(["a", "a", "b", None, None, "c"], y, is_numeric)
    # n_rows, n_units, n_values, n_once, rows_once
    assert profile.read()[0] == (6, 6, 4, 2, 2)
    assert profile.read(with_missing=False)[0] == (4, 4, 3, 2, 2)


def test_an_id_has_one_row_per_class():
    y = np.arange(70_000) % 2
    profile = profile_of([f"u{i}" for i in range(70_000)], y)
    assert as_set(profile) == {(1, 0): 35_000, (0, 1): 35_000}


tables = st.integers(1, 4).flatmap(
    lambda n_classes: st.lists(
        st.lists(st.integers(0, 2**40), min_size=n_classes, max_size=n_classes)
        | st.lists(st.integers(0, 3), min_size=n_classes, max_size=n_classes),
        min_size=1,
        max_size=12,
    ).map(np.array)
)


near = st.floats(-9, 9).map(lambda number: round(number, 9))


@given(tables)
def test_distinct_rows_are_those_of_a_dictionary(counts):
    expected = {}
    for row in map(tuple, counts.tolist()):
        expected[row] = expected.get(row, 0) + 1
    rows, repeats = distinct_rows(counts)
    assert dict(zip(map(tuple, rows.tolist()), repeats.tolist(), strict=True)) == expected
    assert len(rows) == len(expected)


@given(
    st.lists(
        st.tuples(st.sampled_from("abcdefgh"), near, st.integers(0, 2)),
        min_size=4,
        max_size=60,
    )
)
def test_profiles_of_different_keys_add(rows):
    x, numbers, labels = (list(part) for part in zip(*rows, strict=True))
    labels[:3] = [0, 1, 2]
    for y, is_numeric in ((labels, False), (numbers, True)):
        counts = Counts.from_frame(pa.table({"x": x, "y": y}), "y", numeric_target=is_numeric)
        whole = counts.profiles()["x"]
        table, cut = counts.tables[0], len(counts.tables[0]) // 2
        parts = [
            Counts(counts.names, counts.kinds, (counts.values[0][own],), (table[own],),
                   counts.classes).profiles()["x"]
            for own in (slice(0, cut), slice(cut, None)) if len(table[own])
        ]  # fmt: skip
        total = sum(parts)
        assert total.n_samples == whole.n_samples == len(x)
        for one, two in zip(total.read()[1], whole.read()[1], strict=True):
            order = [np.lexsort(way.rows.T[:1] if is_numeric else way.rows.T) for way in (one, two)]
            np.testing.assert_allclose(one.rows[order[0]], two.rows[order[1]], atol=1e-8)
            np.testing.assert_array_equal(one.repeats[order[0]], two.repeats[order[1]])


def test_far_from_zero_no_digits_are_lost():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 30, 400).astype(str), rng.normal(size=400)
    for name in ("squared_error", "ginger"):
        how = Scoring(NUMERIC_CRITERIA[name])
        near = score_column(profile_of(x, y, True), how).estimate
        far = score_column(profile_of(x, y + 1e6, True), how).estimate
        np.testing.assert_allclose(far[1:], near[1:], rtol=1e-7)
        parts = [profile_of(x[x < "2"], y[x < "2"] + 1e6, True)]
        parts.append(profile_of(x[x >= "2"], y[x >= "2"] + 1e6, True))
        np.testing.assert_allclose(score_column(sum(parts), how).estimate[1:], near[1:], rtol=1e-7)


@given(
    st.lists(st.tuples(st.integers(0, 9), near), min_size=4, max_size=50),
    st.booleans(),
)
def test_a_numeric_profile_scores_as_the_definition(rows, is_missing):
    x, y = zip(*rows, strict=True)
    column = pa.array([None if is_missing and v == 0 else str(v) for v in x], pa.string())
    profile = profile_of(column, list(y), True)
    y = np.array(y)
    loss = 0.0
    for i in range(len(y)):
        others = np.array([x[j] == x[i] and j != i for j in range(len(y))])
        if others.any():
            loss += (y[i] - y[others].mean()) ** 2
        else:
            m = len(y)
            loss += m * ((y - y.mean()) ** 2).sum() / (m - 1) ** 2
    _, [way] = profile.read()
    assert plain_score(way.rows, way.repeats) == pytest.approx(loss / len(y), abs=1e-9)


def test_missing_rows_can_be_left_out():
    profile = profile_of(["a", None, "b", None], [1.0, 50.0, 3.0, 70.0], True)
    _, [way] = profile.read(with_missing=False)
    rows, repeats, center = moment_sums(np.array([[1, 1, 0, 0, 0], [1, 3, 0, 0, 0.0]]))
    np.testing.assert_allclose(way.rows, rows)
    assert (way.repeats.tolist(), center, repeats.tolist()) == ([2], 2.0, [2])


@pytest.mark.parametrize("criterion", kernel.TERMS)
def test_counts_and_their_profiles_fit_alike(criterion):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "id": [f"u{i}" for i in range(300)],
            "age": rng.integers(18, 60, 300),
            "plan": rng.choice(np.array(["a", "b", None], dtype=object), 300),
            "height": np.where(rng.random(300) < 0.1, np.nan, rng.normal(size=300)),
            "left": rng.random(300) < 0.4,
        }
    )
    counts = Counts.from_frame(frame, "left")
    selector = GingerSelector(criterion, n_features_to_select=2)
    by_counts = selector.fit_statistics(counts).path_
    received = {name: Profile.from_bytes(p.to_bytes()) for name, p in counts.profiles().items()}
    nameless = replace(by_counts.evidence, shapes=())  # a profile does not know its values
    assert selector.fit_statistics(received).path_ == replace(by_counts, evidence=nameless)
    rows = selector.fit(frame.drop(columns="left"), frame["left"])
    assert rows.path_ == by_counts


def test_what_does_not_add_is_refused():
    one = profile_of(["a", "b"], [0, 1])
    with pytest.raises(ValueError, match="different kinds or classes"):
        one + profile_of(["a", "b"], [1, 2])
    numbers = profile_of([1.0, 2.0], [0, 1])
    with pytest.raises(ValueError, match="profiles with bins do not add"):
        numbers + numbers
    with pytest.raises(TypeError):
        one + 1
    with pytest.raises(ValueError, match=r"rows must have shape \(n, 2\)"):
        Profile("category", (0, 1), np.ones((3, 4), dtype=np.int64), one.repeats, one.missing)
    with pytest.raises(ValueError, match="one target"):
        GingerSelector().fit_statistics({"a": one, "b": profile_of(["a"], [2])})


# --- bytes --------------------------------------------------------------------------------------


def mixed_counts():
    day = datetime.date(2020, 1, 1)
    frame = pd.DataFrame(
        {
            "text": ["a", "b", None, "a"],
            "number": [1.5, -0.0, 0.0, np.nan],
            "mixed": np.array([1, "1", True, 2**80], dtype=object),
            "day": [day, day, None, datetime.date(2021, 1, 1)],
            "price": [Decimal("1.50"), None, Decimal("1.5"), Decimal("2")],
            "time": pd.to_datetime(["2020-01-01", None, "2020-01-01", "2020-01-02"]),
            "label": ["x", "y", "x", "x"],
        }
    )
    return Counts.from_frame(frame, "label")


def test_counts_survive_bytes():
    counts = mixed_counts()
    received = Counts.from_bytes(counts.to_bytes())
    assert (received.names, received.kinds, received.classes) == (
        counts.names, counts.kinds, counts.classes
    )  # fmt: skip
    for j in range(counts.n_features):
        one, two = counts.values[j], received.values[j]
        assert type(one) is type(two)
        values = [list(map(repr, column.tolist())) for column in (one, two)]
        assert values[0] == values[1]
        np.testing.assert_array_equal(counts.tables[j], received.tables[j])
    assert (received + counts).n_samples == 8


@pytest.mark.parametrize("is_numeric", [False, True])
def test_profiles_survive_bytes(is_numeric):
    rng = np.random.default_rng(0)
    y = rng.normal(size=50) if is_numeric else rng.integers(0, 3, 50)
    for x in (rng.normal(size=50), rng.integers(0, 9, 50).astype(str)):
        profile = profile_of(x, y, is_numeric)
        assert_same(Profile.from_bytes(profile.to_bytes()), profile, rtol=0)


TIMES = (
    st.datetimes().map(lambda value: value.replace(fold=0))
    | st.times().map(lambda value: value.replace(fold=0))
    | st.dates()
    | st.timedeltas()
)
NUMBERS = st.integers() | st.floats(allow_nan=False) | st.decimals(allow_nan=False)


@given(st.lists(st.none() | st.booleans() | NUMBERS | TIMES | st.text() | st.binary()))
def test_labels_survive_json(labels):
    received = packing.labels_from_json(json.loads(json.dumps(packing.labels_to_json(labels))))
    assert list(map(repr, received)) == list(map(repr, labels))


def test_values_that_have_no_bytes_are_refused():
    counts = Counts.from_arrays(np.array([[1], ["a"], [(1, 2)]], dtype=object), [0, 1, 1])
    with pytest.raises(ValueError, match="Counts: a value of type tuple cannot be written"):
        counts.to_bytes()


@pytest.mark.attack
@given(st.data())
@settings(max_examples=300)
def test_damaged_bytes_are_refused_or_harmless(data):
    kind, whole = data.draw(
        st.sampled_from(
            [(Counts, mixed_counts().to_bytes()),
             (Profile, mixed_counts().profiles()["number"].to_bytes())]
        )
    )  # fmt: skip
    damaged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    damaged = (
        damaged[: data.draw(st.integers(0, len(damaged)))] if data.draw(st.booleans()) else damaged
    )
    with contextlib.suppress(ValueError):  # a changed digit gives other counts
        kind.from_bytes(bytes(damaged))


@pytest.mark.parametrize(
    "head",
    [
        {},
        {"names": "abc"},
        {"names": ["x", "x"]},
        {"kinds": ["shape"]},
        {"classes": [["os.system", "true"]]},
        {"classes": [["int", "1"], ["int", "1"]]},
        {"classes": [["timedelta", [1e300, 0, 0]]]},
        {"shapes": {"table0": [10**30, 10**30]}},
        {"shapes": {"table0": [-1, "x"]}},
    ],
)
def test_hostile_heads_are_refused(head):
    counts = Counts.from_arrays(np.array([["a"], ["b"]], dtype=object), [0, 1])
    good = {"names": ["x0"], "kinds": ["category"], "objects": {},
            "classes": [["int", "0"], ["int", "1"]]}  # fmt: skip
    arrays = {"table0": counts.tables[0], "values0": counts.values[0]}
    assert Counts.from_bytes(packing.pack("Counts", good, arrays)).names == ("x0",)
    bad = good | head if head else {}
    with pytest.raises(ValueError, match="Counts: "):
        Counts.from_bytes(packing.pack("Counts", bad, arrays))


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_compressed_bytes_are_refused_because_few_may_stand_for_many(compression):
    counts = Counts.from_arrays(np.array([["a"], ["b"]], dtype=object), [0, 1])
    batch = pa.ipc.open_stream(counts.to_bytes()).read_next_batch()
    sink, options = pa.BufferOutputStream(), pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    with pytest.raises(ValueError, match="Counts: the bytes are damaged"):
        Counts.from_bytes(sink.getvalue().to_pybytes())


def test_rows_that_take_no_bytes_are_refused():
    head = {"names": ["x"], "kinds": ["empty"], "objects": {}, "classes": [["int", "0"]]}
    counts = packing.pack("Counts", head, {"table0": np.ones((1, 1), int), "values0": pa.nulls(1)})
    assert Counts.from_bytes(counts).n_samples == 1
    many = {"table0": np.ones((1, 1), int), "values0": pa.nulls(1 << 20)}
    with pytest.raises(ValueError, match="Counts: the bytes are damaged"):
        Counts.from_bytes(packing.pack("Counts", head, many))


def test_a_deep_head_is_refused_and_not_followed():
    deep = "[" * 100_000 + "]" * 100_000
    schema = pa.schema([pa.field("x", pa.int64())], metadata={b"holdtrue": deep.encode()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.record_batch([[1]], schema=schema))
    for kind in (Counts, Profile):
        with pytest.raises(ValueError, match="damaged"):
            kind.from_bytes(sink.getvalue().to_pybytes())
        for other in (b"", b"\x00" * 99, b"PK\x03\x04", b"\xff" * 64):
            with pytest.raises(ValueError, match="damaged"):
                kind.from_bytes(other)
    with pytest.raises(
        ValueError, match=r"bytes of 'Profile', version 1.*reads version 1 of Counts"
    ):
        Counts.from_bytes(profile_of(["a"], [0]).to_bytes())
    with pytest.raises(ValueError, match=r"expected bytes. Got str"):
        Counts.from_bytes("abc")


@pytest.mark.parametrize("moments", [False, True], ids=["classes", "numbers"])
@pytest.mark.parametrize("missing", [False, True])
def test_values_of_groups_in_any_order_have_the_same_readings(moments, missing):
    rng = np.random.default_rng(0)
    values = [*range(40), *[None] * missing]
    pairs = np.argwhere(rng.random((len(values), 7)) < 0.4)
    pairs = np.concatenate([pairs, np.stack([np.arange(len(values)), np.full(len(values), 7)]).T])
    pairs = pairs[np.argsort(pairs[:, 0], kind="stable")]
    sums = rng.integers(1, 9, size=(len(pairs), 5))
    sums = sums.astype(float) if moments else sums
    order = rng.permutation(len(values))
    place = np.argsort(order)
    moved = np.argsort(place[pairs[:, 0]], kind="stable")
    shuffled = np.stack([place[pairs[moved, 0]], pairs[moved, 1]], axis=1)
    classes = None if moments else tuple("abcde")
    ways = [
        GroupProfile.from_pairs("integer", pa.array(v), p, s, classes, 8)
        for v, p, s in (
            (values, pairs, sums), ([values[i] for i in order], shuffled, sums[moved]),
        )
    ]  # fmt: skip
    for with_missing in (True, False):
        tables = [way.read(with_missing=with_missing)[1] for way in ways]
        assert [table.n_bins for table in tables[0]] == [0, 2, 4, 8]
        for one, two in zip(*tables, strict=True):
            expected, found = (
                {(v, g): row.tolist() for v, g, row in zip(t.value, t.group, t.sums, strict=True)}
                for t in (one, two)
            )
            assert found.keys() == expected.keys()
            for pair, row in expected.items():
                assert found[pair] == pytest.approx(row)
            assert one.seen() == two.seen()


def test_many_pairs_of_groups_may_come_in_any_order():
    """As from a database; so many that compiled loops join them to bins."""
    rng = np.random.default_rng(0)
    n_values, n_groups = 50_000, 60_000
    keys = np.unique(rng.integers(0, n_values * n_groups, 200_000))
    pairs = np.stack([keys // n_groups, keys % n_groups], axis=1)
    is_first = rng.random(len(pairs)) < 0.3 + 0.4 * pairs[:, 0] / n_values
    sums = np.stack([is_first, ~is_first], axis=1).astype(np.int64)
    order = rng.permutation(len(pairs))
    how = Scoring(new_data="new groups")
    estimates = [
        score_column(GroupProfile.from_pairs("number", values, p, s, ("a", "b")), how)
        for values in [pa.array(np.arange(float(n_values)))]
        for p, s in ((pairs, sums), (pairs[order], sums[order]))
    ]
    assert estimates[1].score == pytest.approx(estimates[0].score, rel=1e-12)
