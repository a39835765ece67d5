"""Columns of large Parquet tables ranked on one machine and on engines: time, memory, bytes.

    python -m benchmarks.scale                    5M rows × 20 columns, all ways
    python -m benchmarks.scale --rows 20000000 --columns 10
    python -m benchmarks.scale --growth           cost against rows and columns
    python -m benchmarks.scale --ways Dask+Spark  these alone; what the CSV file has of others stays
    python -m benchmarks.scale --report           tables and figures from the CSV files alone

Each way has a process of its own, one after the other on the same folder of Parquet files. Engines
are real clusters on this machine: a scheduler and two worker processes of one thread each. CPU is
that of all their processes, without and with their start. DuckDB
and Polars group every column by value and class and count, which is less than a ranking: no bins,
no scores. HOLDTRUE_BENCH_FOLDER may name a folder to keep the tables in.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from benchmarks.categories import peak_mb
from benchmarks.spark_cluster import family, spark_cluster
from experiments.records import markdown_table, read_csv, write_csv

RESULTS = Path(__file__).parent / "results" / "scale"
PACKAGES = ("dask", "distributed", "pyspark", "duckdb", "polars", "pyarrow", "numba")
N_FILES = 20


def write_folder(folder: Path, n_rows: int, n_columns: int, seed: int) -> None:
    """Parquet files with a target and columns of all kinds: ids, texts, numbers, dates, nulls."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(seed)
    texts = {
        "user": pa.array([f"user{i:07d}" for i in range(1_000_000)]),
        "zip": pa.array([f"{i:05d}" for i in range(30_000)]),
        "city": pa.array([f"city {i}" for i in range(5_000)]),
        "channel": pa.array(["web", "shop", "phone", "?"]),
    }
    folder.mkdir(parents=True)
    per_file = -(-n_rows // N_FILES)
    for number in range(N_FILES):
        start = number * per_file
        n = min(per_file, n_rows - start)
        ids = (np.arange(start, start + n) * 2654435761) % 2**40
        plan, age = rng.integers(0, 3, n), rng.integers(18, 90, n)
        seconds = rng.integers(15_000 * 86_400, 19_000 * 86_400, n)
        word = np.minimum(rng.zipf(1.3, n), 200_000)
        price = np.round(rng.gamma(2, 30, n), 2)
        # The most different kinds first, so that ten columns have them too.
        columns: dict[str, Any] = {
            "left": pa.array(rng.random(n) < 0.15 + 0.1 * plan + 0.003 * (age - 18)),
            "id": pa.array([f"{i:010x}" for i in ids.tolist()]),
            "user": texts["user"].take(pa.array(rng.integers(0, 1_000_000, n))),
            "plan": pa.array(["free", "paid", "team"]).take(pa.array(plan)),
            "age": pa.array(age),
            "number": pa.array(rng.integers(0, 10**12, n)),
            "price": pa.array(price),
            "score": pa.array(rng.normal(size=n)),
            "day": pa.array((seconds // 86_400).astype("datetime64[D]")),
            "zip": texts["zip"].take(pa.array(rng.integers(0, 30_000, n))),
            "city": texts["city"].take(pa.array(rng.integers(0, 5_000, n))),
            "channel": texts["channel"].take(pa.array(rng.integers(0, 4, n))),
            "word": pa.array(np.char.add("w", word.astype(str))),
            "code": pa.array(rng.integers(0, 10**6, n)),
            "visits": pa.array(rng.poisson(7, n), mask=rng.random(n) < 0.1),
            "latitude": pa.array(np.round(rng.uniform(-90, 90, n), 5)),
            "longitude": pa.array(np.round(rng.uniform(-180, 180, n), 5), mask=age > 85),
            "amount": pa.array(np.round(price * rng.integers(1, 9, n), 2)),
            "seen": pa.array(seconds.astype("datetime64[us]")),
            "member": pa.array(rng.random(n) < 0.5),
        }
        table = pa.table({name: columns[name] for name in list(columns)[:n_columns]})
        parquet.write_table(table, folder / f"part{number:03d}.parquet")


# --- ways ---------------------------------------------------------------------------------------


def one_machine(folder: str, n_jobs: int) -> Any:
    from holdtrue import rank_columns

    return rank_columns(folder, "left", n_jobs=n_jobs)


class Serial:
    """An engine in this process, a file at a time, that counts bytes.

    Pieces do not depend on who moves them: the bytes between workers, and to the driver, are those
    of an engine whose partitions are the files.
    """

    def __init__(self, folder: str):
        from pyarrow import parquet

        self._read, self._files = parquet.read_table, sorted(Path(folder).iterdir())
        schema = parquet.read_schema(self._files[0])
        self.types = dict(zip(schema.names, schema.types, strict=True))
        self.moved = self.came = 0

    def select(self, columns: Any) -> Any:
        """Not used: nothing is transformed."""

    def exchange(self, columns: Any, split: Any, join: Any, n_buckets: int) -> list[Any]:
        """As in `holdtrue.engine.Engine`."""
        buckets: list[list[bytes]] = [[] for _ in range(n_buckets)]
        for number, file in enumerate(self._files):
            for bucket, piece in enumerate(split(number, self._read(file, columns=list(columns)))):
                if piece is not None:
                    buckets[bucket].append(pickle.dumps(piece, 5))
        results = []
        for bucket, pieces in enumerate(buckets):
            self.moved += sum(map(len, pieces))
            if pieces:
                results.append(pickle.dumps(join(bucket, list(map(pickle.loads, pieces))), 5))
        self.came += sum(map(len, results))
        return list(map(pickle.loads, results))


def bytes_moved(folder: str) -> dict[str, Any]:
    from holdtrue import rank_columns
    from holdtrue.categories import rank
    from holdtrue.engine.exchange import ExchangeTable

    engine = Serial(folder)
    with mock.patch.object(rank, "engine_of", return_value=ExchangeTable(engine)):
        ranked = rank_columns(folder, "left")
    return {"ranking": ranked, "moved": engine.moved, "came": engine.came}


def rank_frame(frame: Any) -> Any:
    from holdtrue import rank_columns

    return rank_columns(frame, "left")


def dask(folder: str) -> dict[str, Any]:
    import dask.dataframe
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        client.run(lambda: __import__("holdtrue.engine.exchange"))
        return timed(rank_frame, dask.dataframe.read_parquet(folder))


def spark(folder: str) -> dict[str, Any]:
    from pyspark.sql import SparkSession

    with tempfile.TemporaryDirectory() as logs, spark_cluster(Path(logs)) as (master, _):
        builder = SparkSession.builder.master(master).config("spark.log.level", "ERROR")
        builder = builder.config("spark.ui.showConsoleProgress", "false")
        builder = builder.config("spark.executor.memory", "1g").config("spark.driver.memory", "1g")
        session = builder.config("spark.sql.shuffle.partitions", "16").getOrCreate()
        session.range(2).count()  # executors are up
        result = timed(rank_frame, session.read.parquet(folder))
        session.stop()
        return result


def duckdb(folder: str) -> Any:
    import duckdb

    connection = duckdb.connect()
    connection.execute("SET threads = 2")
    source = f"read_parquet('{folder}/*.parquet')"
    names = [row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()]
    for name in names:
        query = f'SELECT "{name}" AS v, count(*) FILTER ("left"), count(*) FROM {source} GROUP BY v'
        connection.execute(f"SELECT count(*) FROM ({query})").fetchall()


def polars(folder: str) -> Any:
    import polars

    frame = polars.scan_parquet(f"{folder}/*.parquet")
    for name in frame.collect_schema().names():
        counts = frame.group_by(name).agg(polars.col("left").sum().alias("n1"), polars.len())
        counts.select(polars.len()).collect(engine="streaming")


def timed(function: Callable[..., Any], *args: Any, **options: Any) -> dict[str, Any]:
    """What a function gives, with the wall time and the CPU of this process and its children."""
    before, start = tree_cpu(), time.perf_counter()
    result = function(*args, **options)
    wall, cpu = time.perf_counter() - start, tree_cpu() - before
    result = result if isinstance(result, dict) else {"ranking": result}
    ranking = result.pop("ranking")
    if ranking is not None:
        result["best"] = next(iter(ranking))["column"]
    return {**result, "wall": wall, "cpu": cpu}


BYTES = "bytes of an engine"
WAYS: dict[str, Callable[[str], Any]] = {
    "one core": partial(timed, one_machine, n_jobs=1),
    "Dask": dask,
    "Spark": spark,
    "two cores": partial(timed, one_machine, n_jobs=2),
    "DuckDB, grouping alone": partial(timed, duckdb),
    "Polars, grouping alone": partial(timed, polars),
    BYTES: partial(timed, bytes_moved),
}


# --- measuring ------------------------------------------------------------------------------------


def tree_cpu() -> float:
    """CPU seconds of this process, its living descendants and those that have ended."""
    ticks = 0
    for pid in family(os.getpid()):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))
        except OSError:
            continue
    return ticks / os.sysconf("SC_CLK_TCK")


class PeakMemory:
    """Peaks of resident memory, of this process and of the largest descendant and their sum."""

    def __init__(self) -> None:
        self.largest = self.sum = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stop.wait(0.2):
            sizes = []
            for pid in list(family(os.getpid()))[1:]:
                try:
                    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
                    sizes.append(pages * resource.getpagesize() / 1e6)
                except OSError:
                    continue
            self.largest = max([self.largest, *sizes])
            self.sum = max(self.sum, sum(sizes))

    def stop(self) -> None:
        """End watching."""
        self._stop.set()
        self._thread.join()


def child(way: str, folder: str) -> None:
    """Do it once; print times, memory and bytes."""
    memory = PeakMemory()
    result = WAYS[way](folder)
    memory.stop()
    # Java is a child of Spark's driver process, and so is counted among the workers.
    peaks = {"largest_worker_mb": memory.largest, "workers_mb": memory.sum}
    print(json.dumps({**result, "cpu_with_start": tree_cpu(), "driver_mb": peak_mb(), **peaks}))


def run(
    folder: Path, ways: list[str], shape: tuple[int, int], repeats: int
) -> Iterator[dict[str, Any]]:
    """The ways take turns, each in a process of its own."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "POLARS_MAX_THREADS": "2"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # else every process compiles every module
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.scale", "--folder", str(folder)]
    for turn, way in ((turn, way) for turn in range(repeats) for way in ways):
        ended = subprocess.run(
            [*command, "--child", way], capture_output=True, check=False, text=True, env=environment
        )
        if ended.returncode:
            raise RuntimeError(f"{way}: {ended.stderr[-3000:]}")
        row = {"rows": shape[0], "columns": shape[1], "way": way, "turn": turn}
        yield {**row, **dict.fromkeys(FIELDS, ""), **json.loads(ended.stdout.splitlines()[-1])}


FIELDS = ("best", "wall", "cpu", "cpu_with_start", "driver_mb", "largest_worker_mb", "workers_mb")
FIELDS += ("moved", "came")


# --- tables and figures ---------------------------------------------------------------------------


def median(rows: list[dict[str, Any]], field: str) -> float:
    return float(np.median([float(row[field]) for row in rows]))


def report(out: Path) -> None:
    """README.md from the CSV files, and the figure of growth."""
    about = " ".join((__doc__ or "").split("\n\n")[2].split())
    text = ["# scale: large Parquet tables on one machine and on engines", ""]
    text += [
        "Made by `python -m benchmarks.scale`; the CSV files say with which versions.",
        about,
        "Medians of the turns in the CSV files, taken one after the other with nothing else on the",
        "two cores: at 5M × 20 seven of one core and two cores, two of Dask, DuckDB, Polars, one",
        "of Spark; at 20M × 10 one of each, earlier and on a machine half as fast. Java and its",
        "workers are among the others of Spark.",
        "",
    ]
    head = ["way", "wall s", "CPU s", "of one core", "CPU s with start", "driver MB"]
    head.append("others MB")
    for path in sorted(out.glob("shape-*.csv")):
        rows = read_csv(path)
        alone = median([row for row in rows if row["way"] == "one core"], "cpu")
        lines = []
        for way in WAYS:
            of_way = [row for row in rows if row["way"] == way]
            if way == BYTES or not of_way:
                continue
            cpu = median(of_way, "cpu")
            line = [way, median(of_way, "wall"), cpu, f"{cpu / alone:.2f}×"]
            line.append(f"{median(of_way, 'cpu_with_start'):.1f}")
            line += [f"{median(of_way, name):,.0f}" for name in ("driver_mb", "workers_mb")]
            lines.append(line)
        moved = ""
        for row in (row for row in rows if row["way"] == BYTES):  # the same in every turn
            moved = (
                f"An engine with the files as partitions moves {row['moved'] / 1e6:.1f} MB between "
                f"workers and brings {row['came'] / 1e6:.2f} MB to the driver."
            )
        shape = f"{rows[0]['rows']:,} rows × {rows[0]['columns']} columns"
        text += [f"## {shape}", "", markdown_table(head, lines), "", moved, ""]
    if (out / "growth.csv").exists():
        draw_growth(read_csv(out / "growth.csv"), out / "growth.svg")
        text += ["## Cost against rows and columns", "", "![CPU seconds](growth.svg)", ""]
    (out / "README.md").write_text("\n".join(text), "utf-8")


def draw_growth(rows: list[dict[str, Any]], path: Path) -> None:
    """CPU of one core and of Dask against rows, with twenty columns, and against columns."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "holdtrue"
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.4))
    most = {of: max(row[of] for row in rows) for of in ("rows", "columns")}
    for axis, of, other in ((axes[0], "rows", "columns"), (axes[1], "columns", "rows")):
        for way in dict.fromkeys(row["way"] for row in rows):
            points = sorted(
                (row[of], row["cpu"])
                for row in rows
                if row["way"] == way and row[other] == most[other]
            )
            axis.plot(*zip(*points, strict=True), marker="o", label=way)
        axis.set(xlabel=f"{of}, with {most[other]:,} {other}", ylabel="CPU seconds", ylim=(0, None))
    axes[0].legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Options of the command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--growth", action="store_true", help="one core and Dask, growing tables")
    parser.add_argument("--ways", help="such as Dask+Spark; default all")
    parser.add_argument("--report", action="store_true", help="only make tables and figures")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.folder)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    ways = options.ways.split("+") if options.ways else list(WAYS)
    with tempfile.TemporaryDirectory() as made_here:
        place = Path(os.environ.get("HOLDTRUE_BENCH_FOLDER", made_here))
        shapes = [(options.rows, options.columns)]
        name = f"shape-{options.rows}-{options.columns}.csv"
        command = f"python -m benchmarks.scale --rows {options.rows} --columns {options.columns}"
        if options.growth:
            command = "python -m benchmarks.scale --growth"
            name, ways = "growth.csv", ["one core", "Dask"]
            shapes = [(n, 20) for n in (500_000, 1_000_000, 2_000_000)]
            shapes += [(2_000_000, p) for p in (5, 10)]
        # Of ways that are not run now the rows stay.
        kept = read_csv(options.out / name) if (options.out / name).exists() else []
        rows = [row for row in kept if row["way"] not in ways]
        for n_rows, n_columns in [] if options.report else shapes:
            folder = place / f"{n_rows}x{n_columns}"
            if not folder.exists():
                write_folder(folder, n_rows, n_columns, seed=0)
            for row in run(folder, ways, (n_rows, n_columns), options.repeats):
                rows.append(row)
                print(row, file=sys.stderr, flush=True)
                write_csv(options.out / name, rows, command=command, seed=0, packages=PACKAGES)
    report(options.out)


if __name__ == "__main__":
    main()
