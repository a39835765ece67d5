"""Texts counted by hashes: as by hand, whatever the hashes are."""

from collections import Counter

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from holdtrue import rank_columns
from holdtrue.columns import distinct, hashed_texts, parts
from holdtrue.columns.bins import MOST_VALUES, Part
from holdtrue.columns.counting import Target
from holdtrue.columns.hashed_texts import hashed_counts
from holdtrue.errors import InputError
from holdtrue.sums import Profile

KINDS = [pa.string(), pa.large_string(), pa.binary()]
TEXTS = st.one_of(
    st.none(),
    st.text(alphabet="ab\0é𝄞", max_size=9),
    st.integers(0, 9).map(lambda i: f"a text of more than forty bytes, whose last are {i}"),
)
true_hashes = distinct.text_hashes


def batches_of(column, size):
    return lambda: (column.slice(start, size) for start in range(0, len(column), size))


def by_hand(texts, labels, n_classes):
    """Class counts of each text."""
    counts = {}
    for text, label in zip(texts, labels, strict=True):
        counts.setdefault(text, [0] * n_classes)[label] += 1
    return counts


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(
    texts=st.lists(TEXTS, min_size=1, max_size=40),
    n_hashes=st.sampled_from([1, 2, 5, None]),
    sizes=st.tuples(*[st.integers(1, 9)] * 3),
    n_bytes=st.sampled_from([0.1, 5.0, 100.0]),
    data=st.data(),
)
@settings(max_examples=80, deadline=None)
def test_counts_are_those_by_hand(kind, texts, n_hashes, sizes, n_bytes, data):
    labels = data.draw(st.lists(st.integers(0, 2), min_size=len(texts), max_size=len(texts)))
    target = Target(np.array(labels, dtype=np.uint8), ("a", "b", "c"), None)
    column = pa.array(["zz", *texts]).cast(kind).slice(1)  # an array that begins later

    def hashes(texts):
        full = true_hashes(texts)
        return full if n_hashes is None else full % np.uint64(n_hashes) << np.uint64(60)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hashed_texts, "text_hashes", hashes)
        for name, value in zip(("RANGE", "PART", "TEXT_BYTES"), sizes[1:] + (40,), strict=True):
            patch.setattr(hashed_texts, name, value)
        counted = list(hashed_counts("c", batches_of(column, sizes[0]), n_bytes, target))
    wanted = by_hand(column.to_pylist(), labels, 3)
    missing = np.concatenate([missing for _, _, missing in counted])
    assert missing.tolist() == ([wanted.pop(None)] if None in wanted else [])
    rows = np.concatenate([table for _, table, _ in counted])
    assert Counter(map(tuple, rows.tolist())) == Counter(map(tuple, wanted.values()))
    n_named = 0
    for values, table, _ in counted:
        if values is None:
            assert (table.sum(axis=1) == 1).all()
            continue
        assert [wanted[value] for value in values.to_pylist()] == table.tolist()
        n_named += len(values)
    assert n_named >= min(MOST_VALUES, len(wanted))


@pytest.mark.parametrize("n_texts", [5, 40, 3000])
def test_the_most_frequent_texts_can_be_shown(n_texts):
    rng = np.random.default_rng(0)
    texts = [f"text {i}" for i in range(n_texts)] + ["text 1"] * 3 + ["text 2"] * 5
    target = Target.from_column(rng.integers(0, 2, len(texts)), False)
    counted = hashed_counts("c", batches_of(pa.array(texts), 1000), 8.0, target)
    pieces = (Part(table, missing, values) for values, table, missing in counted)
    profile = Profile.from_parts("category", pieces, len(texts), target.classes, keep_values=True)
    outline = profile.outline
    assert profile.n_values == n_texts
    assert outline.frequent[:2] == ["text 2", "text 1"]
    assert len(set(outline.frequent)) == min(MOST_VALUES, n_texts)
    wanted = by_hand(texts, target.codes, 2)
    assert [wanted[text] for text in outline.frequent] == outline.tables.tolist()
    assert outline.total.sum() == len(texts)


def test_a_table_that_changes_while_it_is_read_is_refused():
    columns = iter([pa.array(["a", "a", "b", "c"]), pa.array(["d", "e", "f", "g"])])
    target = Target.from_column([0, 1, 0, 1], False)
    with pytest.raises(InputError, match="changed while it was read"):
        list(hashed_counts("c", lambda: [next(columns)], 1.0, target))


@pytest.mark.parametrize("kind", [*KINDS, pa.string_view()], ids=str)
def test_a_ranking_is_the_same_by_hashes_and_whole(kind, monkeypatch):
    rng = np.random.default_rng(0)
    n = 4000
    texts = [f"a text of more than forty bytes, number {i}" for i in rng.integers(0, 3000, n)]
    try:
        column = pa.array(texts, mask=rng.random(n) < 0.1).cast(kind)
    except pa.ArrowNotImplementedError as error:
        pytest.skip(f"pyarrow {pa.__version__} makes no views: {error}")
    table = pa.table({"x": column, "y": rng.random(n) < 0.3})
    whole = rank_columns(table, "y")
    monkeypatch.setattr(parts, "LARGE", 1)
    asked = []
    monkeypatch.setattr(
        parts, "hashed_counts", lambda *given: asked.append(1) or hashed_counts(*given)
    )
    hashed = rank_columns(table, "y")
    assert asked
    assert hashed.to_frame().equals(whole.to_frame())
