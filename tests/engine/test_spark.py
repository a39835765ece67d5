"""Frames of Spark on a standalone cluster: the same numbers as on one machine, or a sentence."""

import os
import random
import runpy
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from holdtrue import GingerSelector, Moments, SteadyRidgeRegressor, rank_columns

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(
        not os.environ.get("HOLDTRUE_CLUSTER"),
        reason="needs Java and pyspark; run by `make cluster`",
    ),
    pytest.mark.filterwarnings("default"),  # Spark warns of pandas, sockets and itself
]
ROOT = Path(__file__).parents[2]
EXECUTOR = "CoarseGrainedExecutorBackend"
# Workers on which holdtrue cannot be imported, as if it were not installed.
ABSENT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "holdtrue":
            raise ModuleNotFoundError("No module named 'holdtrue'", name=name)
sys.meta_path.insert(0, Absent())
"""


@pytest.fixture(scope="module")
def tools():
    return runpy.run_path(str(ROOT / "benchmarks" / "spark_cluster.py"))


@pytest.fixture(scope="module")
def cluster(tools, tmp_path_factory):
    """Address of the master, and pids of its workers."""
    with tools["spark_cluster"](tmp_path_factory.mktemp("spark"), n_cores=2) as started:
        yield started


@pytest.fixture(scope="module")
def session(cluster):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(cluster[0]).config("spark.log.level", "ERROR")
    builder = builder.config("spark.ui.enabled", "false").config("spark.executor.memory", "1g")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.cores.max", "2")  # the others are for commands
    started = builder.config("spark.sql.shuffle.partitions", "4").getOrCreate()
    yield started
    started.stop()


@pytest.fixture(scope="module")
def parts(session, tmp_path_factory):
    """Makes a frame of Spark of a pandas one, in parts, by way of Parquet files."""

    def make(frame, n_parts=4):
        folder = tmp_path_factory.mktemp("parts")
        step = -(-len(frame) // n_parts)
        for i in range(n_parts):
            frame[i * step : (i + 1) * step].to_parquet(folder / f"{i}.parquet", index=False)
        return session.read.parquet(str(folder)).repartition(n_parts)

    return make


@pytest.mark.parametrize("target, other", [("sold", "gain"), ("gain", "sold")])
@pytest.mark.parametrize("groups", [None, "site"])
def test_a_spark_frame_ranks_as_one_machine_does(
    parts, many_buckets, mixed_frame, assert_same_ranking, target, other, groups
):
    many_buckets()
    frame = mixed_frame().drop(columns=other)
    on_spark = parts(frame)
    assert_same_ranking(on_spark, on_spark.toArrow(), target, groups=groups)


def test_the_selector_takes_a_frame_of_spark_and_gives_one_back(parts, mixed_frame):
    frame = mixed_frame(600).drop(columns=["gain", "price"])
    one = GingerSelector().fit(frame.drop(columns="sold"), frame["sold"])
    other = GingerSelector().fit(parts(frame), "sold")
    np.testing.assert_allclose(other.scores_, one.scores_, rtol=1e-12)
    assert other.transform(parts(frame)).columns == list(one.get_feature_names_out())


def moments_agree(one, other):
    assert one.domains == other.domains
    for name in ("n_samples", "mean_x", "scatter_xx", "mean_y", "scatter_xy", "scatter_yy"):
        wanted = getattr(one, name)
        tolerance = 1e-12 * np.abs(wanted).max()
        np.testing.assert_allclose(getattr(other, name), wanted, rtol=1e-12, atol=tolerance)


def test_moments_of_a_spark_frame_are_those_of_one_machine(parts, mixed_frame):
    frame = mixed_frame()[["count", "x", "flag", "site", "gain"]]
    one = Moments.from_frame(frame, target="gain", domain="site")
    other = Moments.from_engine(parts(frame), target="gain", domain="site")
    moments_agree(one, other)
    SteadyRidgeRegressor().fit_statistics(other)


def test_decimals_dates_and_odd_names_are_read_and_nested_columns_refused(
    session, assert_same_ranking
):
    frame = session.sql(
        "SELECT id % 2 = 0 AS y, CAST(id / 7 AS DECIMAL(38, 10)) AS wide, CAST(id % 9 AS "
        "DECIMAL(5, 2)) AS `a.b`, DATE'2020-01-01' + CAST(id % 30 AS INT) AS day, "
        "CASE WHEN id % 5 = 0 THEN DOUBLE('NaN') WHEN id % 5 = 1 THEN -0.0D ELSE 0.0D END AS zero,"
        " CAST(NULL AS STRING) AS nothing FROM range(200)"
    )
    assert_same_ranking(frame, frame.toArrow(), "y")
    for nested in ("array(id)", "struct(id)", "map(id, id)"):
        given = session.sql(f"SELECT id % 2 = 0 AS y, {nested} AS n FROM range(9)")
        with pytest.raises(TypeError, match="rank_columns: column 'n' holds values that cannot"):
            rank_columns(given, "y")


def test_what_is_refused_on_a_worker_is_said_here(session, mixed_frame, parts):
    frame = parts(mixed_frame(900).drop(columns="gain"))
    with pytest.raises(
        ValueError, match=r"the target must not be missing\. Got \d+ missing in 900 rows"
    ):
        rank_columns(frame.selectExpr("*", "nullif(site % 6, 0) AS t"), "t")
    numbers = session.sql("SELECT id AS x, double('inf') AS y FROM range(9)")
    with pytest.raises(ValueError, match="Moments: y must hold finite numbers"):
        Moments.from_engine(numbers, target="y")

    def shrinking(batches):
        for batch in batches:
            yield batch.slice(time.time_ns() // 1000 % 50)

    with pytest.raises(ValueError, match="the table changed between passes"):
        rank_columns(frame.mapInArrow(shrinking, frame.schema), "sold")


@pytest.mark.parametrize("seed", range(5))
def test_executors_killed_at_random_times_change_nothing_five_times_of_five(
    tools, cluster, parts, many_buckets, mixed_frame, assert_same_ranking, seed
):
    many_buckets()
    frame = mixed_frame(1500)[["id", "x", "count", "site", "sold"]]

    def slow(batches):
        for batch in batches:
            time.sleep(0.2)
            yield batch

    on_spark = parts(frame, 6)
    on_spark = on_spark.mapInArrow(slow, on_spark.schema)
    wanted = Moments.from_frame(frame[["x", "count", "site"]], target="x", domain="site")
    killer = kill_one(tools, cluster[1], seed, 8.0)
    assert_same_ranking(on_spark, frame, "sold")
    killer.join()
    killer = kill_one(tools, cluster[1], seed + 100, 2.0)
    numbers = on_spark.select("x", "count", "site")
    moments_agree(wanted, Moments.from_engine(numbers, target="x", domain="site"))
    killer.join()


def kill_one(tools, workers, seed, longest):
    """Kill an executor by its own pid, after a random time."""
    chance = random.Random(seed)

    def kill():
        time.sleep(chance.uniform(0, longest))
        for _ in range(600):
            executors = tools["java_of"](chance.choice(workers), EXECUTOR)
            if executors:
                os.kill(executors[0], signal.SIGKILL)
                return
            time.sleep(0.1)  # it is being started again

    killer = threading.Thread(target=kill)
    killer.start()
    return killer


# --- the command ----------------------------------------------------------------------------------


def command(folder, *options):
    """The command in a process of its own, on Parquet files in the folder."""
    arguments = [sys.executable, "-m", "holdtrue", "rank", "parts/*.parquet", "--target", "sold"]
    return subprocess.Popen(
        [*arguments, *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def folder(tmp_path, mixed_frame):
    (tmp_path / "parts").mkdir()
    frame = mixed_frame(2000).drop(columns=["gain", "price", "day"])
    for i in range(4):
        frame[i * 500 : (i + 1) * 500].to_parquet(tmp_path / "parts" / f"{i}.parquet", index=False)
    return tmp_path


def test_the_command_ranks_by_spark_as_without_it(cluster, folder):
    by_spark, alone = (
        command(folder, "--csv", *options).communicate()[0]
        for options in (["--engine", "spark", "--master", cluster[0]], [])
    )
    assert by_spark == alone
    assert by_spark.count("\n") == 9


def ends_in_a_sentence(process, folder, sentence):
    _, err = process.communicate(timeout=300)
    assert process.returncode == 2, err
    assert err.strip().splitlines()[-1].startswith(f"holdtrue rank: {sentence}"), err
    assert [path.name for path in folder.iterdir()] == ["parts"]


@pytest.mark.parametrize("seed", range(2))
def test_the_death_of_sparks_driver_ends_in_a_sentence(tools, cluster, folder, seed):
    def at_work():
        executors = [pid for worker in cluster[1] for pid in tools["java_of"](worker, EXECUTOR)]
        return {pid for pid in executors if len(list(tools["family"](pid))) > 1}

    before = at_work()
    process = command(folder, "--engine", "spark", "--master", cluster[0], "--out", "r.html")
    while not at_work() - before and process.poll() is None:
        time.sleep(0.1)
    time.sleep(random.Random(seed).uniform(0, 2))
    (driver,) = tools["java_of"](process.pid, "SparkSubmit")
    os.kill(driver, signal.SIGKILL)
    ends_in_a_sentence(process, folder, "the connection to Spark was lost")


def test_the_death_of_dasks_scheduler_ends_in_a_sentence(folder):
    from distributed import Client

    address = f"tcp://127.0.0.1:{20_000 + os.getpid() % 20_000}"
    run = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    dask = [str(Path(sys.executable).with_name("dask"))]
    port = ["--port", address.rpartition(":")[2]]
    processes = [
        subprocess.Popen([*dask, "scheduler", *port, "--dashboard-address", ":0"], **run),
        subprocess.Popen([*dask, "worker", address, "--dashboard-address", ":0"], **run),
    ]
    try:
        client = Client(address, timeout=120)
        process = command(folder, "--engine", "dask", "--address", address, "--out", "r.html")
        while not client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
            time.sleep(0.05)
        processes[0].kill()
        ends_in_a_sentence(process, folder, "the connection to Dask was lost")
        client.close(timeout=1)
    finally:
        for one in processes:
            one.kill()
            one.wait()


def test_workers_without_holdtrue_are_said_to_lack_it(cluster, folder):
    (folder / "absent").mkdir()
    (folder / "absent" / "sitecustomize.py").write_text(ABSENT)
    code = (
        "from pyspark.sql import SparkSession; from holdtrue import rank_columns;"
        f"builder = SparkSession.builder.master({cluster[0]!r});"
        f"builder.config('spark.executorEnv.PYTHONPATH', {str(folder / 'absent')!r});"
        "builder.config('spark.cores.max', '1').config('spark.executor.memory', '512m');"
        "frame = builder.getOrCreate().read.parquet('parts'); rank_columns(frame, 'sold')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert "rank_columns: a worker of Spark has no holdtrue" in ended.stderr
