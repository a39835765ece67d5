"""Moments from frames, batches, sparse rows and files; domains taken and left out."""

import contextlib
import os
from datetime import date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from holdtrue import Moments
from holdtrue.sums.packing import pack, unpack

FIELDS = ("n_samples", "mean_x", "scatter_xx", "mean_y", "scatter_xy", "scatter_yy")


def rows(seed=0, n=60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) + 5
    return X, X[:, 0] + rng.normal(size=n), rng.choice(["a", "b", "c"], size=n)


def assert_same(one, other, **tolerance):
    assert set(one.domains) == set(other.domains)
    order = [one.domains.index(d) for d in other.domains]
    for name in FIELDS:
        np.testing.assert_allclose(
            getattr(one, name)[order], getattr(other, name), err_msg=name, **tolerance
        )


def columns(X, y, groups):
    return {"u": X[:, 0], "v": X[:, 1], "w": X[:, 2], "y": y, "site": groups}


@pytest.mark.parametrize(
    "frame", [pd.DataFrame, pl.DataFrame, pa.table, pa.RecordBatch.from_pydict]
)
def test_frames_of_every_kind_give_the_sums_of_arrays(frame):
    X, y, groups = rows()
    table = frame({**columns(X, y, groups), "times": np.ones(60)})
    sums = Moments.from_frame(table, target="y", domain="site", weight="times")
    assert sums.feature_names == ("u", "v", "w")
    assert_same(sums, Moments.from_arrays(X, y, groups=groups))


def test_batches_are_summed_one_at_a_time():
    X, y, groups = rows()
    batches = pa.table(columns(X, y, groups)).to_batches(max_chunksize=7)
    alive = 0

    def stream():
        nonlocal alive
        for batch in [*batches, batches[0].slice(0, 0)]:
            alive += 1
            assert alive == 1
            yield batch
            alive -= 1

    sums = Moments.from_batches(stream(), target="y", domain="site")
    assert_same(sums, Moments.from_arrays(X, y, groups=groups), rtol=1e-12)
    with pytest.raises(ValueError, match="expected at least one batch with rows"):
        Moments.from_batches([])


def test_further_rows_are_added_and_nothing_is_changed():
    X, y, groups = rows()
    first = Moments.from_arrays(X[:20], y[:20], groups=groups[:20])
    before = first.scatter_xx.copy()
    assert_same(
        first.partial_fit(X[20:], y[20:], groups=groups[20:]),
        Moments.from_arrays(X, y, groups=groups),
    )
    np.testing.assert_array_equal(first.scatter_xx, before)


def test_sparse_rows_and_several_targets():
    X, y, groups = rows()
    X[X < 5] = 0
    Y = np.column_stack([y, y**2])
    weight = np.random.default_rng(1).uniform(size=60)
    dense = Moments.from_arrays(X, Y, groups=groups, sample_weight=weight)
    assert dense.scatter_xy.shape == (3, 3, 2)
    assert_same(
        Moments.from_arrays(sparse.csr_array(X), Y, groups=groups, sample_weight=weight), dense
    )
    one = Moments.from_arrays(X, Y[:, 1], groups=groups, sample_weight=weight)
    np.testing.assert_allclose(dense.scatter_xy[:, :, 1], one.scatter_xy)
    parts = [
        Moments.from_arrays(X[i::3], Y[i::3], groups=groups[i::3], sample_weight=weight[i::3])
        for i in range(3)
    ]
    assert_same(parts[0] + parts[1] + parts[2], dense)


def test_float32_is_kept_through_sums():
    X, y, groups = rows()
    sums = Moments.from_arrays(X, y, groups=groups, dtype=np.float32)
    assert sums.scatter_xx.dtype == (sums + sums).scatter_xx.dtype == np.float32
    assert sums.mean_x.dtype == np.float64
    assert_same(sums, Moments.from_arrays(X, y, groups=groups), rtol=1e-4)


def test_domains_are_taken_and_left_out():
    X, y, groups = rows()
    sums = Moments.from_arrays(X, y, groups=groups)
    keep = groups != "b"
    assert_same(sums.without("b"), Moments.from_arrays(X[keep], y[keep], groups=groups[keep]))
    assert sums.take(["c", "a"]).domains == ("c", "a")
    assert_same(sums.take(["c", "a"]), sums.without("b"))
    for call in (lambda: sums.without("z"), lambda: sums.take(["z"]), lambda: sums.take([])):
        with pytest.raises(ValueError, match=r"some of the domains \['a', 'b', 'c'\]"):
            call()


@pytest.mark.parametrize("target", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_file_gives_back_the_same_sums(tmp_path, target, dtype):
    X, y, groups = rows()
    sums = Moments.from_arrays(
        X, y if target else None, groups=groups, feature_names=["ä", "b", "c"], dtype=dtype
    )
    sums.save(tmp_path / "sums")
    again = Moments.load(tmp_path / "sums")
    assert (again.domains, again.feature_names) == (sums.domains, sums.feature_names)
    for name in FIELDS:
        one, other = getattr(again, name), getattr(sums, name)
        if not target and "y" in name:
            assert one is other is None
        else:
            np.testing.assert_array_equal(one, other)
            assert one.dtype == other.dtype
    assert [path.name for path in tmp_path.iterdir()] == ["sums"]


def test_labels_keep_their_types_in_a_file(tmp_path):
    one = Moments.from_arrays(np.ones((2, 1)))
    total = one + Moments((7, "7"), np.ones(2), np.ones((2, 1)), np.ones((2, 1, 1)))
    total.save(tmp_path / "sums.npz")
    assert Moments.load(tmp_path / "sums.npz").domains == (None, 7, "7")
    days = Moments((np.datetime64("2020-01-01"),), np.ones(1), np.ones((1, 1)), np.ones((1, 1, 1)))
    with pytest.raises(ValueError, match="a value of type datetime64 cannot be written"):
        days.save(tmp_path / "days.npz")


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "sums.npz"
    Moments.from_arrays(np.ones((2, 1))).save(path)
    before = path.read_bytes()

    def full(*arguments, **keywords):
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        Moments.from_arrays(np.ones((3, 2))).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def changed(data, **changes):
    """Bytes of sums with fields of the head, or arrays, replaced."""
    head, arrays = unpack("Moments", data)
    del head["kind"], head["version"], head["shapes"]
    for name, value in changes.items():
        (arrays if name in arrays else head)[name] = value
    return pack("Moments", head, arrays)


def test_bytes_give_back_the_same_sums():
    X, y, groups = rows()
    sums = Moments.from_arrays(X, y, groups=groups)
    again = Moments.from_bytes(sums.to_bytes())
    for name in (*FIELDS, "rest_x", "rest_y"):
        np.testing.assert_array_equal(getattr(again, name), getattr(sums, name))
    assert changed(sums.to_bytes()) == sums.to_bytes()
    days = Moments.from_arrays(X, groups=np.array(["2020-01-01", "2020-01-02"] * 30, "M8[D]"))
    assert Moments.from_bytes(days.to_bytes()).domains == days.domains


def test_foreign_and_broken_files_are_refused(tmp_path):
    path = tmp_path / "sums"
    whole = Moments.from_arrays(*rows()[:2]).to_bytes()
    for text in (b"", b"hello", whole[: len(whole) // 2], pack("Counts", {}, {})):
        path.write_bytes(text)
        with pytest.raises(ValueError, match=r"^Moments: expected a file that Moments\.save"):
            Moments.load(path)
    with pytest.raises(FileNotFoundError):
        Moments.load(tmp_path / "nothing")


LOPSIDED = np.eye(3)[None] + [[[0, 0.5, 0], [0, 0, 0], [0, 0, 0]]]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"mean_x": np.full((1, 3), np.nan)}, "mean_x does not hold finite numbers"),
        ({"n_samples": np.zeros(1)}, "n_samples is not positive"),
        ({"mean_x": np.ones((1, 2))}, "must have shape"),
        ({"mean_x": np.ones((1, 3), dtype=int)}, "an array 'mean_x' of type int64"),
        ({"scatter_xx": LOPSIDED}, "scatter_xx is not symmetric"),
        ({"scatter_xx": -np.eye(3)[None]}, "a variance is negative"),
        ({"scatter_yy": np.array([-1.0])}, "a variance is negative"),
        ({"scatter_xx": np.eye(3)[None] + 9 - 9 * np.eye(3)}, "covariances above their variances"),
        ({"shapes": {"mean_x": [10**9, 10**9]}}, "or not written by Moments"),
        ({"shapes": {"mean_x": [-1, 3]}}, "or not written by Moments"),
        ({"domains": [[1]]}, "a label cannot be read"),
        ({"domains": [["str", "a"], ["str", "b"]]}, "expected 1 distinct domains"),
        ({"names": [1, 2, 3]}, "names are not text"),
        ({"names": ["a"]}, "feature_names must name 3 features"),
        ({"names": 3}, "names are not text"),
    ],
)
def test_bytes_that_no_sums_have_are_refused(changes, message):
    data = changed(Moments.from_arrays(*rows()[:2]).to_bytes(), **changes)
    with pytest.raises(ValueError, match="^Moments: the bytes are damaged.*" + message):
        Moments.from_bytes(data)


@pytest.mark.attack
@given(st.binary(max_size=200), st.integers(0, 400), st.integers(0, 8))
def test_bytes_damaged_anywhere_give_sums_or_a_value_error(noise, at, cut):
    data = Moments.from_arrays(*rows(n=5)[:2]).to_bytes()
    at = at % len(data)
    with contextlib.suppress(ValueError):
        Moments.from_bytes(data[:at] + noise + data[at + cut :])


@pytest.mark.parametrize(
    "frame, roles, message",
    [
        (pl.DataFrame({"a": ["x"]}), {}, "Got String in column 'a'"),
        (pl.DataFrame({"a": [1.0, None]}), {}, "column 'a' has missing values"),
        (pl.DataFrame({"a": [1.0]}), {"target": "b"}, r"no column 'b'. Got \['a'\]"),
    ],
)
def test_frames_that_cannot_be_summed_are_refused(frame, roles, message):
    with pytest.raises(ValueError, match=message):
        Moments.from_frame(frame, **roles)
    with pytest.raises(TypeError, match=r"For arrays call Moments\.from_arrays"):
        Moments.from_frame(np.ones((2, 2)))


def test_columns_of_other_names_do_not_add():
    one, other = (pl.DataFrame({name: [1.0, 2.0]}) for name in "ab")
    with pytest.raises(ValueError, match=r"Got the columns \('a',\) and \('b',\)"):
        Moments.from_frame(one) + Moments.from_frame(other)
    with pytest.raises(ValueError, match="feature_names must name 1 features"):
        Moments.from_arrays(np.ones((2, 1)), feature_names=["a", "b"])
    with pytest.raises(ValueError, match="dtype must be float64 or float32"):
        Moments.from_arrays(np.ones((2, 1)), dtype=int)


def test_groups_that_name_no_domain_or_two_kinds_are_refused():
    X = np.arange(8.0).reshape(4, 2)
    with pytest.raises(ValueError, match=r"Moments: groups must name a domain.*in row 1"):
        Moments.from_arrays(X, groups=np.array([1, np.nan, 1, 2]))
    days = [date(2020, 1, 1), datetime(2020, 1, 1, 12), date(2020, 1, 2)]
    with pytest.raises(
        ValueError, match=r"groups must have an order\. Got date and datetime, which"
    ):
        Moments.from_arrays(np.ones((3, 1)), np.ones(3), groups=days)
    with pytest.raises(ValueError, match="Moments: groups must be all text or all numbers"):
        Moments.from_arrays(X, groups=[1, "a", 1, "a"])


def test_numbers_that_are_none_are_refused():
    X = np.arange(8.0).reshape(4, 2)
    with pytest.raises(ValueError, match="X must hold finite numbers"):
        Moments.from_arrays(np.where(X == 3, np.nan, X))
    with pytest.raises(ValueError, match="y must hold finite numbers"):
        Moments.from_arrays(X, np.array([1, 2, np.nan, 3]))


def test_parts_add_up_in_any_order_and_under_sum():
    X = np.arange(8.0).reshape(4, 2)
    b, a = (Moments.from_arrays(X[i : i + 2], groups=[g] * 2) for i, g in ((0, "b"), (2, "a")))
    assert (a + b).domains == (b + a).domains == sum([b, a]).domains == ("a", "b")
    np.testing.assert_array_equal((a + b).mean_x, sum([b, a]).mean_x)


def test_squares_that_leave_the_range_of_the_dtype_are_refused():
    X = np.array([[1e25], [2e25]])
    assert np.isfinite(Moments.from_arrays(X).scatter_xx).all()
    with pytest.raises(ValueError, match="Moments: the squares of X must fit into float32"):
        Moments.from_arrays(X, dtype=np.float32)


def test_sparse_float32_sums_lose_no_digits():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(2000, 2)) + 1000).astype(np.float32)
    exact = X.astype(float)
    for weight in (None, np.full(2000, 2.0)):
        sums = Moments.from_arrays(sparse.csr_array(X), sample_weight=weight, dtype=np.float32)
        np.testing.assert_allclose(sums.mean_x[0], exact.mean(axis=0), rtol=1e-12)
        covariance = sums.scatter_xx[0] / sums.n_samples[0]
        np.testing.assert_allclose(covariance, np.cov(exact.T, ddof=0), atol=1e-5)


def test_sums_of_different_targets_do_not_add():
    X, y, groups = rows()
    one = Moments.from_arrays(X, y, groups=groups)
    two = Moments.from_arrays(X, np.column_stack([y, y]), groups=groups)
    with pytest.raises(ValueError, match=r"Got y of 1 and of 2 columns"):
        one + two


def test_domains_of_a_frame_keep_their_type():
    frame = pa.table({"x": [1.0, 2.0, 3.0], "site": [1, 2, 1]})
    assert Moments.from_frame(frame, domain="site").domains == (1, 2)
    mixed = pd.DataFrame({"x": [1.0, 2, 3, 4], "site": [1, "1", "b", "b"]})
    with pytest.raises(ValueError, match="all text or all numbers"):
        Moments.from_frame(mixed, domain="site")
    with pytest.raises(ValueError, match="expected at least one feature"):
        Moments.from_frame(frame.select(["site"]), domain="site")


def test_dates_are_domains():
    X, y, _ = rows()
    days = np.repeat(np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[ns]"), 30)
    sums = Moments.from_arrays(X, y, groups=days)
    assert [day.isoformat() for day in sums.domains] == [
        "2024-01-01T00:00:00",
        "2024-01-02T00:00:00",
    ]
    np.testing.assert_allclose(sums.mean_x[1], X[30:].mean(axis=0))


def test_batches_give_domains_in_the_order_of_the_whole():
    X, y, groups = rows()
    frame = pd.DataFrame(columns(X, y, groups))
    parts = [frame[frame["site"] == site] for site in ("c", "a", "b")]
    sums = Moments.from_batches(parts, target="y", domain="site")
    assert sums.domains == ("a", "b", "c")
    assert_same(sums, Moments.from_arrays(X, y, groups=groups), rtol=1e-12)
