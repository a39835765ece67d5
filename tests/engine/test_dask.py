"""Frames of Dask: the same numbers as on one machine, whatever becomes of workers."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import dask
import dask.dataframe as dd
import joblib
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from distributed import Client, LocalCluster

from holdtrue import (
    GingerForestClassifier,
    GingerSelector,
    Moments,
    SteadyRidgeRegressor,
    TGreedyRegressor,
    rank_columns,
)
from holdtrue.engine import engine_failure, engine_of
from holdtrue.engine.dask import DaskEngine

pytestmark = pytest.mark.filterwarnings("ignore:rank_columns. rows with the same value")


@pytest.fixture
def here():
    """Tasks run in the test's own thread."""
    with dask.config.set(scheduler="synchronous"):
        yield


@contextmanager
def two_workers():
    """A client of two worker processes, which may die often and start slowly."""
    patient = {
        "distributed.scheduler.allowed-failures": 20,
        "distributed.comm.timeouts.connect": "120s",
    }
    with (
        dask.config.set(patient),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as opened,
    ):
        opened.wait_for_workers(2, timeout=300)
        yield opened


@pytest.fixture(scope="module")
def client():
    with two_workers() as opened:
        yield opened


def in_parts(frame, n_parts=5):
    return dd.from_pandas(frame, npartitions=n_parts, sort=False)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("target, other", [("sold", "gain"), ("gain", "sold")])
@pytest.mark.parametrize("groups", [None, "site"])
@pytest.mark.parametrize("large", [False, True])
def test_a_dask_frame_ranks_as_one_machine_does(
    many_buckets, target, other, groups, large, mixed_frame, assert_same_ranking
):
    if large:
        many_buckets()
    frame = mixed_frame().drop(columns=other)
    assert_same_ranking(in_parts(frame), frame, target, groups=groups)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "options",
    [
        {"missing": "ignore", "criterion": "brier"},
        {"categorical_features": ["count", "x", "day", "price"], "criterion": "ginger"},
        {"max_bins": 5, "target_type": "classes", "criterion": "gini"},
    ],
)
def test_options_mean_the_same_on_an_engine(
    many_buckets, options, mixed_frame, assert_same_ranking
):
    many_buckets()
    frame = mixed_frame(1500).drop(columns=["sold", "gain"])
    frame["level"] = np.random.default_rng(1).integers(0, 5, len(frame))
    assert_same_ranking(in_parts(frame), frame, "level", **options)


@pytest.mark.usefixtures("here")
def test_numbers_that_are_read_as_categories_are_so_with_groups_too(
    mixed_frame, assert_same_ranking
):
    frame = mixed_frame(600)[["count", "x", "site", "sold"]]
    options = {"categorical_features": ["count"], "groups": "site"}
    assert_same_ranking(in_parts(frame), frame, "sold", **options)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("target", ["sold", "gain"])
@pytest.mark.parametrize("large", [False, True])
def test_a_column_whose_values_repeat_in_some_parts_only(
    many_buckets, large, target, mixed_frame, assert_same_ranking
):
    if large:
        many_buckets()
    frame = mixed_frame().drop(columns="sold" if target == "gain" else "gain")
    half = len(frame) // 2
    for name in ("id", "count", "z", "day", "price"):  # a few values, then as many as there are
        frame[name] = pd.concat(
            [frame[name][:4].repeat(half // 4)[:half], frame[name][half:]]
        ).array
    assert_same_ranking(in_parts(frame, 6), frame, target)


@pytest.mark.usefixtures("here")
def test_a_part_without_rows_changes_nothing(mixed_frame, assert_same_ranking):
    frame = mixed_frame(600).drop(columns="gain")
    parts = dd.concat([in_parts(frame[:300], 2), in_parts(frame[:0], 1), in_parts(frame[300:], 1)])
    assert_same_ranking(parts, frame, "sold")


@pytest.mark.usefixtures("here")
def test_the_selector_takes_a_frame_of_dask_and_gives_one_back(mixed_frame):
    frame = mixed_frame().drop(columns="gain")
    one = GingerSelector().fit(frame.drop(columns="sold"), frame["sold"])
    other = GingerSelector().fit(in_parts(frame), "sold")
    np.testing.assert_allclose(other.scores_, one.scores_, rtol=1e-12)
    assert other.path_.names == one.path_.names
    kept = other.transform(in_parts(frame))
    assert isinstance(kept, dd.DataFrame)
    assert list(kept.columns) == list(one.get_feature_names_out())
    first = kept.columns[0]
    with pytest.raises(ValueError, match=rf"GingerSelector: .* differ\. Missing: '{first}'\."):
        other.transform(in_parts(frame.drop(columns=first)))


@pytest.mark.usefixtures("here")
def test_columns_may_be_named_by_numbers(mixed_frame, assert_same_ranking):
    frame = mixed_frame(600)[["zip", "x", "site", "sold"]].set_axis([0, 1, 2, 3], axis=1)
    assert_same_ranking(in_parts(frame), frame, 3, groups=2)


@pytest.mark.usefixtures("here")
def test_moments_of_a_dask_frame_fit_as_those_of_one_machine(mixed_frame):
    frame = mixed_frame()[["count", "x", "flag", "site", "gain"]]
    one = Moments.from_frame(frame, target="gain", domain="site")
    other = Moments.from_engine(in_parts(frame, 7), target="gain", domain="site")
    assert other.domains == one.domains
    for name in ("n_samples", "mean_x", "scatter_xx", "mean_y", "scatter_xy", "scatter_yy"):
        wanted = getattr(one, name)
        tolerance = 1e-12 * np.abs(wanted).max()
        np.testing.assert_allclose(getattr(other, name), wanted, rtol=1e-12, atol=tolerance)
    for model in (TGreedyRegressor(), SteadyRidgeRegressor()):
        weights = [model.fit_statistics(sums).coef_.copy() for sums in (one, other)]
        np.testing.assert_allclose(weights[1], weights[0], rtol=1e-9, atol=1e-12)


# --- what is refused ------------------------------------------------------------------------------


def refused(frame, target="sold", **options):
    with pytest.raises((ValueError, TypeError)) as caught:
        rank_columns(frame, target, **options)
    sentence = str(caught.value)
    assert sentence.startswith("rank_columns: "), sentence
    return sentence


@pytest.mark.usefixtures("here")
def test_what_an_engine_cannot_do_is_refused_in_a_sentence(mixed_frame):
    frame = mixed_frame(100)
    parts = in_parts(frame, 2)
    assert "no column 'solt'. Did you mean 'sold'?" in refused(parts, "solt")
    assert "target must be the name of a column" in refused(parts, frame["sold"])
    assert "sample_weight is for data on this machine" in refused(parts, sample_weight=[1])
    assert "n_jobs is for data on this machine" in refused(parts, n_jobs=2)
    assert "no column to rank" in refused(parts[["sold"]])
    assert "expected a data frame of Dask. Got Series" in refused(parts["sold"])
    assert "at most 100 classes. Got 101 or more." in refused(in_parts(mixed_frame(300)), "zip")
    assert "target and groups must name different columns" in refused(parts, groups="sold")
    assert "expected a data frame of Dask. Got Delayed" in refused(dask.delayed(frame))
    periods = in_parts(frame.assign(month=frame["day"].dt.to_period("M")), 2)
    assert "column 'month' holds values that cannot be counted. Got period" in refused(periods)
    assert "at least 2 groups" in refused(parts.assign(one=1), groups="one")
    assert "at least 2 classes" in refused(parts.assign(one="a"), "one")
    with pytest.raises(ValueError, match="mode='forward' needs the rows on this machine"):
        GingerSelector(mode="forward").fit(parts, "sold")
    with pytest.raises(TypeError, match="Moments: expected a data frame of Dask or Spark"):
        Moments.from_engine(frame)
    with pytest.raises(ValueError, match=r"\.compute\(\) first.*Moments\.from_engine"):
        TGreedyRegressor().fit(parts[["count", "x"]], frame["gain"])


def with_part(frame, change):
    """A frame whose second part is changed behind Dask's back."""

    def changed(part, partition_info=None):
        second = partition_info is not None and partition_info["number"] == 1
        return change(part.copy()) if second else part

    return in_parts(frame, 3).map_partitions(changed, meta=frame.iloc[:0])


@pytest.mark.usefixtures("here")
def test_a_part_with_other_types_is_refused(mixed_frame):
    frame = mixed_frame(90)[["count", "zip", "x", "sold"]]
    numbers = with_part(frame, lambda part: part.assign(zip=part["zip"].astype(int)))
    assert "string by the frame's types. Got int64 in a partition" in refused(numbers)
    texts = with_part(frame, lambda part: part.assign(count=part["count"].astype(str)))
    assert "column 'count' is int64" in refused(texts)
    mixed = with_part(frame, lambda part: part.assign(zip=[1, "a"] * (len(part) // 2)))
    assert "Got values of several types" in refused(mixed)
    days = mixed_frame(90)[["day", "sold"]]
    zones = with_part(days, lambda part: part.assign(day=part["day"].dt.tz_localize("UTC")))
    assert "is timestamp[us] by the frame's types. Got timestamp[us, tz=UTC]" in refused(zones)


@pytest.mark.usefixtures("here")
def test_whole_numbers_that_a_part_has_as_floats_are_the_same_numbers(
    mixed_frame, assert_same_ranking
):
    frame = mixed_frame(90)[["count", "zip", "sold"]]
    parts = with_part(frame, lambda part: part.assign(count=part["count"].astype(float)))
    assert_same_ranking(parts, frame, "sold")
    broken = with_part(frame, lambda part: part.assign(count=part["count"] + 0.5))
    assert "column 'count' is int64" in refused(broken)


@pytest.mark.usefixtures("here")
def test_a_target_that_one_part_lacks_is_refused(mixed_frame):
    frame = mixed_frame(90)[["count", "zip", "sold"]]
    empty = with_part(frame, lambda part: part.assign(sold=None))
    assert "the target must not be missing. Got 30 missing in 90 rows" in refused(empty)
    gone = with_part(frame, lambda part: part.drop(columns="sold"))
    with pytest.raises(RuntimeError, match=r"rank_columns: Dask failed: .*sold"):
        rank_columns(gone, "sold")


@pytest.mark.usefixtures("here")
def test_categories_of_which_dask_does_not_know_the_values(mixed_frame, assert_same_ranking):
    frame = mixed_frame(90)[["count", "zip", "sold"]]
    texts = in_parts(frame)
    texts["zip"] = texts["zip"].astype("category")
    assert not texts["zip"].cat.known
    assert_same_ranking(texts, frame, "sold")
    numbers = in_parts(frame)
    numbers["count"] = numbers["count"].astype("category")
    assert "make its categories known with frame.categorize()" in refused(numbers)
    known = numbers.categorize()
    assert_same_ranking(known, frame.assign(count=frame["count"].astype("category")), "sold")


@pytest.mark.usefixtures("here")
def test_lists_are_refused_before_any_work():
    frame = pd.DataFrame({"a": [[1], [2]], "y": [0, 1]})
    frame["a"] = frame["a"].astype(pd.ArrowDtype(pa.list_(pa.int64())))
    parts = in_parts(frame, 1)
    assert "column 'a' holds values that cannot be counted. Got list" in refused(parts, "y")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("groups", [None, "site"])
@pytest.mark.parametrize("large", [False, True])
def test_a_table_that_changes_between_passes_is_refused(many_buckets, large, groups, mixed_frame):
    if large:
        many_buckets()
    frame = mixed_frame()[["zip", "x", "site", "sold"]]
    n_calls = iter(range(1000))

    def changing(part):
        return part[: 600 - next(n_calls)]

    parts = in_parts(frame).map_partitions(changing, meta=frame.iloc[:0])
    assert "the table changed between passes" in refused(parts, groups=groups)


def test_failures_of_an_engine_become_sentences():
    lost = engine_failure("Dask", ConnectionError("CommClosedError: in <TCP>"))
    assert "the connection to Dask was lost" in str(lost)
    absent = engine_failure(
        "Spark", RuntimeError("ModuleNotFoundError: No module named 'holdtrue'")
    )
    assert "a worker of Spark has no holdtrue" in str(absent)
    killed = engine_failure("Dask", RuntimeError("KilledWorker('join', ...)"))
    assert "died again and again" in str(killed)


def test_nothing_of_an_engine_is_loaded_for_other_frames():
    code = (
        "import sys, pyarrow as pa; from holdtrue import rank_columns;"
        "rank_columns(pa.table({'a': [1, 2, 1, 2], 'y': [0, 1, 0, 1]}), 'y');"
        "print([m for m in ('dask', 'distributed', 'pyspark') if m in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
    assert engine_of(pd.DataFrame()) is None


# --- a cluster of processes -----------------------------------------------------------------------


@pytest.fixture
def bounded():
    """Ends a test that waits for ever, on a machine however busy."""

    def late(*_):
        raise TimeoutError("not done after five minutes")

    signal.signal(signal.SIGALRM, late)
    signal.alarm(300)
    yield
    signal.alarm(0)


@pytest.fixture
def check_survival(bounded, many_buckets, mixed_frame, assert_same_ranking, monkeypatch):
    """A ranking and moments are right though a worker is killed in each of their passes.

    Nannies start workers again, so that the loss of both is survived.
    """
    many_buckets()
    frame = mixed_frame(1500)[["id", "x", "count", "site", "sold"]]

    def slow(part):  # defined here, because workers cannot import this module
        time.sleep(0.05)
        return part

    parts = in_parts(frame, 6).map_partitions(slow, meta=frame.iloc[:0])
    numbers = ["x", "count", "site"]
    wanted = Moments.from_frame(frame[numbers], target="x", domain="site")
    exchange = DaskEngine.exchange

    def check(chance, client):
        killers = []

        def kill():
            pids = [nanny.pid for nanny in client.cluster.workers.values() if nanny.pid]
            if pids:
                os.kill(chance.choice(pids), signal.SIGKILL)

        def deadly(engine, *arguments):
            killers.append(threading.Timer(chance.uniform(0, 0.4), kill))
            killers[-1].start()
            return exchange(engine, *arguments)

        def last_and_first(engine, columns, *arguments):
            """The pass that reads the target, and the one that counts."""
            is_deadly = columns == ["sold"] or "id" in columns
            return (deadly if is_deadly else exchange)(engine, columns, *arguments)

        monkeypatch.setattr(DaskEngine, "exchange", last_and_first)
        assert_same_ranking(parts, frame, "sold")
        monkeypatch.setattr(DaskEngine, "exchange", deadly)
        sums = Moments.from_engine(parts[numbers], target="x", domain="site")
        np.testing.assert_allclose(sums.scatter_xx, wanted.scatter_xx, rtol=1e-12, atol=1e-9)
        for killer in killers:
            killer.join()
        assert len(killers) == 3

    return check


def test_a_worker_killed_in_each_pass_changes_nothing(check_survival):
    with two_workers() as client:
        check_survival(random.Random(0), client)


@pytest.mark.cluster
@pytest.mark.skipif(not os.environ.get("HOLDTRUE_CLUSTER"), reason="minutes; run by `make cluster`")
@pytest.mark.parametrize("seed", range(1, 6))
def test_workers_killed_at_random_times_change_nothing_five_times_of_five(check_survival, seed):
    with two_workers() as client:
        check_survival(random.Random(seed), client)


@pytest.mark.usefixtures("bounded")
def test_workers_without_holdtrue_are_said_to_lack_it(tmp_path, mixed_frame):
    absent = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] == 'holdtrue':\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
    )
    (tmp_path / "absent.py").write_text(absent)
    where = {"n_workers": 1, "preload": str(tmp_path / "absent.py"), "dashboard_address": ":0"}
    with (
        LocalCluster(**where) as cluster,
        Client(cluster),
        pytest.raises(RuntimeError, match="rank_columns: a worker of Dask has no holdtrue"),
    ):
        rank_columns(in_parts(mixed_frame(60)[["x", "sold"]], 2), "sold")


@pytest.mark.usefixtures("bounded")
def test_a_cluster_that_lost_all_its_workers_is_not_waited_for_for_ever(mixed_frame, monkeypatch):
    parts = in_parts(mixed_frame(60)[["x", "sold"]], 2)
    exchange = DaskEngine.exchange
    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster),
        dask.config.set({"distributed.scheduler.no-workers-timeout": "1s"}),
    ):

        def last(engine, *arguments):
            joined = exchange(engine, *arguments)
            cluster.scale(0)
            return joined

        monkeypatch.setattr(DaskEngine, "exchange", last)
        with pytest.raises(RuntimeError) as caught:
            rank_columns(parts, "sold")
    assert str(caught.value).startswith("rank_columns: Dask has had no worker for 1 seconds.")


def test_the_command_ranks_parquet_files_by_dask_as_without_it(
    client, holdtrue, tmp_path, mixed_frame
):
    frame = mixed_frame(800).drop(columns=["gain", "price", "day"])
    frame.loc[::50, "sold"] = None
    (tmp_path / "parts").mkdir()
    for i in range(4):
        frame[200 * i : 200 * (i + 1)].to_parquet(tmp_path / "parts" / f"{i}.parquet")
    ask = ("--target", "sold", "--drop", "id", "--csv")
    engine = ("--engine", "dask", "--address", client.scheduler.address)
    with Client(client.scheduler.address):
        by_dask = holdtrue("rank", "parts/*.parquet", *ask, *engine)
    assert by_dask == holdtrue("rank", "parts", *ask)
    missing = holdtrue.refuses(
        "rank", "parts/*.parquet", *ask, "--missing-target", "error", *engine
    )
    assert missing.startswith("the target 'sold' must not be missing. Got 16 missing of 800 rows")


def test_the_command_refuses_what_does_not_go_with_an_engine(holdtrue, tmp_path):
    ask = ("--target", "y", "--engine")
    assert holdtrue.refuses("rank", "none/*.parquet", *ask, "dask").startswith("no file")
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    assert "--master does not go with --engine dask" in holdtrue.refuses(
        "rank", "a.parquet", *ask, "dask", "--master", "local"
    )
    assert "--type does not go" in holdtrue.refuses(
        "rank", "a.parquet", *ask, "dask", "--type", "a=text"
    )
    assert "--engine must be one of 'dask', 'spark'" in holdtrue.refuses(
        "rank", "a.parquet", *ask, "ray"
    )
    assert "--address needs --engine" in holdtrue.refuses(
        "rank", "a.parquet", "--target", "y", "--address", "tcp://h"
    )


def test_joblib_carries_forests_and_held_out_walks_to_dask(client, mixed_frame):
    frame = mixed_frame(400)
    X, y = frame[["zip", "colour", "x", "count"]], frame["sold"]
    forest = GingerForestClassifier(4, random_state=0)
    alone = forest.fit(X, y).predict_proba(X)
    numbers, walk = frame[["x", "count", "z"]].fillna(0), TGreedyRegressor(n_jobs=2)
    coefficients = walk.fit(numbers, frame["gain"], groups=frame["site"]).coef_
    with joblib.parallel_config(backend="dask"):
        np.testing.assert_array_equal(forest.set_params(n_jobs=2).fit(X, y).predict_proba(X), alone)
        walk.fit(numbers, frame["gain"], groups=frame["site"])
    np.testing.assert_array_equal(walk.coef_, coefficients)
