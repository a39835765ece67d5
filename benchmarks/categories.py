"""Speed of Ginger's family: a Parquet file to a ranking, groups, ready codes to scores, trees,
forests, the encoder.

    python -m benchmarks.categories            run, then tables and figure in benchmarks/results
    python -m benchmarks.categories --only tree
    python -m benchmarks.categories --only fastest   file, with the fastest of the rivals alone
    python -m benchmarks.categories --report   tables and figure from the CSV files alone

Times are CPU times, user and system, of one thread. The ways of a comparison take turns, and the
tables have medians. Each way to rank a file has a process of its own, which has done the whole
work once before it is timed: what is loaded or compiled once is charged to nobody.
HOLDTRUE_BENCH_FOLDER may name a folder to keep the generated tables in.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from experiments.records import markdown_table, progress, read_csv, write_csv
from threadpoolctl import threadpool_limits

RESULTS = Path(__file__).parent / "results" / "categories"
PACKAGES = ("pyarrow", "numba", "duckdb", "polars", "lightgbm", "Orange3")
OWN_TREE = "GingerTreeClassifier.fit"
OWN, TWO = "holdtrue.rank_columns", "holdtrue.rank_columns, n_jobs=2"
N_ROWS = 5_000_000
FILE_KINDS = ("even", "skewed")
AGAIN = "The fastest of the rivals once more (`--only fastest`), after counting became faster:\n"
N_VALUES = (2, 5, 20, 100, 500, 2_000, 10_000, 100_000, 1_000_000, 5_000_000)


# --- a Parquet file to a ranking ----------------------------------------------------------------


def write_file(path: Path, kind: str, seed: int) -> None:
    """20 columns, text and integers in turn, with 2 to 5M values; as pyarrow writes by default.

    Of kind "even" values are drawn evenly, integers lie in a dense range and nothing is missing. Of
    kind "skewed" text follows Zipf's law, integers are spread over all of 64 bits, and a twentieth
    of each column is missing.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
    skewed = kind == "skewed"
    columns = {}
    for k in N_VALUES:
        for of in ("text", "integer"):
            if of == "text" and skewed:
                reach = np.cumsum(1 / np.arange(1, k + 1))
                codes = np.searchsorted(reach, reach[-1] * rng.random(N_ROWS))
            else:
                codes = rng.permutation(N_ROWS) if k == N_ROWS else rng.integers(0, k, N_ROWS)
            missing = rng.random(N_ROWS) < 0.05 if skewed else None
            if of == "text":
                values = pa.array([f"value{i:08d}" if k > 1000 else f"v{i}" for i in range(k)])
                columns[f"text_{k}"] = values.take(pa.array(codes, mask=missing))
            else:
                wide = rng.integers(-(2**63), 2**63, k) if skewed else np.arange(k)
                columns[f"integer_{k}"] = pa.array(wide[codes], mask=missing)
    columns["target"] = pa.array(rng.random(N_ROWS) < 0.3)
    pq.write_table(pa.table(columns), path)


def file_ways() -> dict[str, Callable[[str, list[str]], Any]]:
    """Ways to go through the file; all but "read" count every value by class, column by column."""

    def ours(path: str, names: list[str], n_jobs: int = 1) -> Any:
        from holdtrue import rank_columns

        return rank_columns(path, "target", n_jobs=n_jobs)

    def read(path: str, names: list[str]) -> None:
        import pyarrow.parquet as pq

        text = [name for name in names if name.startswith("text")]
        file = pq.ParquetFile(path, read_dictionary=text)
        for name in names:
            file.read([name], use_threads=False)

    def duckdb_pairs(path: str, names: list[str]) -> None:
        duckdb_query(path, names, "SELECT {0}, target, count(*) AS n FROM '{1}' GROUP BY ALL")

    def duckdb_sum(path: str, names: list[str]) -> None:
        duckdb_query(
            path, names, "SELECT {0}, count(*) AS n, sum(target::INT) AS p FROM '{1}' GROUP BY 1"
        )

    def duckdb_query(path: str, names: list[str], query: str) -> None:
        import duckdb

        connection = duckdb.connect()
        connection.execute(f"SET threads = {os.environ['POLARS_MAX_THREADS']}")
        for name in names:
            connection.execute(query.format(name, path)).to_arrow_table()

    def polars_pairs(path: str, names: list[str]) -> None:
        import polars as pl

        for name in names:
            pl.scan_parquet(path).group_by(name, "target").len().collect(engine="streaming")

    def polars_sum(path: str, names: list[str]) -> None:
        import polars as pl

        for name in names:
            counts = pl.scan_parquet(path).group_by(name).agg(pl.len(), pl.col("target").sum())
            counts.collect(engine="streaming")

    return {
        OWN: ours,
        TWO: partial(ours, n_jobs=2),
        "read as dictionaries (pyarrow)": read,
        "DuckDB, group by value and class": duckdb_pairs,
        "DuckDB, group by value, sum of class": duckdb_sum,
        "Polars streaming, value and class": polars_pairs,
        "Polars streaming, value, sum of class": polars_sum,
    }


def write_texts(path: Path, seed: int) -> None:
    """10M different texts of 40 to 60 bytes, and a target of two classes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
    numbers = rng.permutation(10_000_000)
    schema = pa.schema([("text", pa.string()), ("target", pa.bool_())])
    with pq.ParquetWriter(path, schema) as writer:
        for some in np.split(numbers, 10):
            sizes = rng.integers(40, 61, len(some))
            offsets = np.append(0, np.cumsum(sizes)).astype(np.int32)
            letters = rng.integers(97, 123, offsets[-1]).astype(np.uint8)
            for digit in range(8):  # a text begins with its number
                letters[offsets[:-1] + digit] = 48 + some // 10**digit % 10
            texts = pa.StringArray.from_buffers(
                len(some), pa.py_buffer(offsets), pa.py_buffer(letters)
            )
            target = pa.array(rng.random(len(some)) < 0.3)
            writer.write_table(pa.table([texts, target], schema=schema))


def child(way: str, path: str) -> None:
    """Do it twice; print the CPU and wall time of the second and the peak memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    names = [name for name in pq.read_schema(path).names if name != "target"]
    work = file_ways()[way]
    work(path, names)
    start, wall = time.process_time(), time.perf_counter()
    work(path, names)
    seconds, wall = time.process_time() - start, time.perf_counter() - wall
    print(json.dumps({"seconds": seconds, "wall": wall, "peak_mb": peak_mb()}))


def peak_mb() -> float:
    """Peak memory of this program; getrusage's would include that of the one that started it."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(x for x in status.read_text().splitlines() if x.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_file(repeats: int, seed: int) -> list[dict[str, Any]]:
    """The ways take turns, each in a process of its own."""
    return _run_file(repeats, seed, [way for way in file_ways() if way != TWO])


def run_fastest(repeats: int, seed: int) -> list[dict[str, Any]]:
    """The same with the fastest rivals alone, in half of the time."""
    return _run_file(repeats, seed, [OWN, *(way for way in file_ways() if "sum of" in way)])


def run_threads(repeats: int, seed: int) -> list[dict[str, Any]]:
    """Two threads each, and one of ours: wall times, with the machine's load beside them."""
    fastest = (way for way in file_ways() if "sum of" in way)
    return _run_file(repeats, seed, [OWN, TWO, *fastest], n_threads=2)


def run_texts(repeats: int, seed: int) -> list[dict[str, Any]]:
    """One column of 10M different texts, with one thread and with two."""
    ways = [OWN, *(way for way in file_ways() if "sum of" in way)]
    return [
        {"threads": n_threads, **row}
        for n_threads in (1, 2)
        for row in _run_file(repeats, seed, ways, n_threads, ("texts",))
    ]


def _run_file(
    repeats: int, seed: int, ways: list[str], n_threads: int = 1, kinds: Sequence[str] = FILE_KINDS
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    threads = {"POLARS_MAX_THREADS": str(n_threads), "OMP_NUM_THREADS": "1"}
    environment = {**os.environ, **threads}
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.categories", "--child"]
    with tempfile.TemporaryDirectory() as made_here:
        folder = Path(os.environ.get("HOLDTRUE_BENCH_FOLDER", made_here))
        for kind in kinds:
            path = folder / f"categories-{kind}.parquet"
            if not path.exists():
                write_texts(path, seed) if kind == "texts" else write_file(path, kind, seed)
            for turn in progress(range(repeats), repeats, f"file, {kind}"):
                for way in ways:
                    load = os.getloadavg()[0]
                    made = subprocess.run(
                        [*command, way, str(path)],
                        env=environment,
                        stdout=subprocess.PIPE,
                        check=True,
                    )
                    found = json.loads(made.stdout)
                    rows.append({"file": kind, "way": way, "turn": turn, "load": load, **found})
    return rows


# --- whole groups left out ----------------------------------------------------------------------


def run_groups(
    repeats: int, seed: int, numbers: tuple[int, ...] = (100, 1000, 10_000)
) -> list[dict[str, Any]]:
    """1M rows, 12 columns of 2 to 1M values, 100 to 10,000 groups; the same without groups."""
    import pyarrow as pa

    from holdtrue import rank_columns

    n_rows, rows = 1_000_000, []
    for n_groups in numbers:
        rng = np.random.default_rng(seed)
        group = rng.integers(0, n_groups, n_rows)
        columns: dict[str, Any] = {}
        for k in (2, 20, 500, 10_000, 200_000):
            columns[f"integer_{k}"] = rng.integers(0, k, n_rows)
            values = pa.array([f"value{i:08d}" for i in range(k)])
            columns[f"text_{k}"] = values.take(pa.array(rng.integers(0, k, n_rows)))
        columns |= {"number": rng.normal(size=n_rows), "id": rng.permutation(n_rows)}
        share = 0.3 + 0.2 * rng.normal(size=n_groups)[group] + 0.1 * (columns["integer_20"] % 2)
        plain = pa.table(columns | {"y": rng.random(n_rows) < share})
        grouped = plain.append_column("group", pa.array(group))
        ways = {
            "ginger, no groups": partial(rank_columns, plain, "y", criterion="ginger"),
            "log loss, no groups": partial(rank_columns, plain, "y"),
            "log loss, groups": partial(rank_columns, grouped, "y", groups="group"),
            **{
                f"{name}, groups": partial(
                    rank_columns, grouped, "y", groups="group", criterion=name.lower()
                )
                for name in ("Brier", "error", "ginger")
            },
        }
        found = take_turns(ways, repeats, f"{n_groups} groups")
        rows += [{"n_groups": n_groups, **row} for row in found]
    return rows


# --- ready codes to scores ----------------------------------------------------------------------


def run_codes(repeats: int, seed: int) -> list[dict[str, Any]]:
    """Score of every column of integer codes: 100,000 rows, 20 columns, 2 to 10,000 values."""
    from Orange.data import DiscreteVariable, Domain, Table
    from Orange.preprocess.score import Gini, InfoGain
    from sklearn.feature_selection import mutual_info_classif

    import holdtrue.columns.loops  # noqa: F401 (compiled loops are used once they are loaded)
    from holdtrue.categories import kernel
    from holdtrue.columns.counting import Target, table_of
    from holdtrue.sums.profile import distinct_rows

    rng = np.random.default_rng(seed)
    n_rows = 100_000
    n_values = [k for k in (2, 5, 10, 20, 50, 100, 200, 500, 2000, 10_000) for _ in range(2)]
    codes = np.column_stack([rng.integers(0, k, n_rows) for k in n_values])
    y = rng.random(n_rows) < 0.3 + 0.2 * (codes[:, 0] == 1)
    by_column = np.asfortranarray(codes, dtype=np.int32)
    features = [
        DiscreteVariable(f"x{j}", [str(v) for v in range(k)]) for j, k in enumerate(n_values)
    ]
    domain = Domain(features, DiscreteVariable("y", ["0", "1"]))
    orange = Table.from_numpy(domain, codes.astype(float), y.astype(float))

    def ours(criterion: str) -> list[float]:
        target = Target(y.astype(np.uint8), (0, 1), None)
        return [
            kernel.criterion_value(criterion, *distinct_rows(table_of(by_column[:, j], k, target)))
            for j, k in enumerate(n_values)
        ]

    ways: dict[str, Callable[[], Any]] = {
        "holdtrue, ginger": lambda: ours("ginger"),
        "holdtrue, information gain": lambda: ours("information_gain"),
        "Orange, InfoGain": lambda: InfoGain()(orange),
        "Orange, Gini": lambda: Gini()(orange),
        "mutual_info_classif": lambda: mutual_info_classif(
            codes, y, discrete_features=True, random_state=0
        ),
    }
    rows = take_turns(ways, repeats, "codes")
    # Both must find the same numbers, or the run stops.
    own = np.array(ours("information_gain"))
    share = y.mean()
    entropy = -(share * np.log2(share) + (1 - share) * np.log2(1 - share))
    bits = mutual_info_classif(codes, y, discrete_features=True, random_state=0) / np.log(2)
    np.testing.assert_allclose(entropy - own, bits, atol=1e-9)
    return rows


def take_turns(
    ways: dict[str, Callable[[], Any]], repeats: int, label: str
) -> list[dict[str, Any]]:
    """CPU times of the ways, in turn, after a round without scikit-learn that is not timed."""
    rows = []
    turns = [(-1, way) for way in ways if not way.startswith(("Decision", "mutual", "Target"))]
    turns += [(turn, way) for turn in range(repeats) for way in ways]
    for turn, way in progress(turns, len(turns), label):
        start = time.process_time()
        ways[way]()
        if turn >= 0:
            rows.append({"way": way, "turn": turn, "seconds": time.process_time() - start})
    return rows


# --- trees --------------------------------------------------------------------------------------


def tree_data(n_rows: int, n_columns: int, widest: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes with 2 to ``widest`` values by column, and a label that a few columns shift."""
    rng = np.random.default_rng(seed)
    n_values = np.geomspace(2, widest, n_columns).astype(int)
    codes = np.column_stack([rng.integers(0, k, n_rows) for k in n_values])
    signal = sum((codes[:, j] % 3 == 0) * 0.8 for j in range(0, n_columns, 7))
    return codes, (rng.random(n_rows) < 1 / (1 + np.exp(2 - signal))).astype(np.int64)


def run_tree(
    repeats: int, seed: int, kinds: tuple[tuple[str, int], ...] = (("narrow", 50), ("wide", 5000))
) -> list[dict[str, Any]]:
    """200,000 rows, 60 columns, 500 splits; narrow columns (to 50 values) and wide (to 5,000)."""
    import lightgbm
    from sklearn.tree import DecisionTreeClassifier

    from holdtrue import GingerTreeClassifier
    from holdtrue.categories.grow import grow_tree
    from holdtrue.categories.tree import Sample

    rows, columns = [], list(range(60))
    of_one_tree = {
        "objective": "binary", "num_leaves": 501, "num_threads": 1, "verbose": -1,
        "min_data_in_leaf": 2, "max_depth": -1,
    }  # fmt: skip
    for name, widest in kinds:
        codes, y = tree_data(200_000, 60, widest, seed)
        sample = Sample.from_codes(codes, y)

        def binned(codes: np.ndarray = codes, y: np.ndarray = y) -> Any:
            return lightgbm.Dataset(codes, y, categorical_feature=columns, params=of_one_tree)

        ready = binned().construct()
        ways: dict[str, Callable[[], Any]] = {
            OWN_TREE: lambda c=codes, y=y: GingerTreeClassifier(
                max_splits=500, categorical_features=columns
            ).fit(c, y),
            "the same by ginger": lambda c=codes, y=y: GingerTreeClassifier(
                "ginger", max_splits=500, categorical_features=columns
            ).fit(c, y),
            "LightGBM, one tree": lambda b=binned: lightgbm.train(of_one_tree, b(), 1),
            "DecisionTreeClassifier, on codes": lambda c=codes, y=y: DecisionTreeClassifier(
                max_leaf_nodes=501
            ).fit(c, y),
            "grow_tree, encoded before": lambda s=sample: grow_tree(
                s, "log_loss", max_splits=500, compiled=True
            ),
            "LightGBM, binned before": lambda r=ready: lightgbm.train(of_one_tree, r, 1),
        }
        rows += [
            {"columns": name, "widest": widest, **row}
            for row in take_turns(ways, repeats, f"tree, {name}")
        ]
    return rows


def run_forest(repeats: int, seed: int) -> list[dict[str, Any]]:
    """Forests of 100 trees and LightGBM's 100 on real tables, 10,000 rows (Mushroom: 8,124)."""
    from experiments.categories_rivals import SOURCES, as_categories, is_text, load
    from lightgbm import LGBMClassifier

    from holdtrue import GingerForestClassifier

    rows = []
    for name in SOURCES:
        data, y = load(name)
        kept = np.random.default_rng(seed).permutation(len(y))[:10_000]
        data, y = data.iloc[kept], y[kept]
        text = [column for column in data.columns if is_text(data[column])]
        data[text] = data[text].astype(object).where(data[text].notna(), "missing")
        categories, _ = as_categories(data, data, text)
        ways: dict[str, Callable[[], Any]] = {
            "LightGBM, 100 trees": lambda X=categories, y=y: LGBMClassifier(
                n_jobs=1, verbose=-1
            ).fit(X, y),
            "GingerForestClassifier, 100 trees": lambda X=data, y=y: GingerForestClassifier(
                random_state=seed
            ).fit(X, y),
        }
        rows += [{"data": name, **row} for row in take_turns(ways, repeats, f"forest, {name}")]
    return rows


def run_encoder(repeats: int, seed: int) -> list[dict[str, Any]]:
    """1M rows, ten columns of text and ten of integers with 2 to 100,000 values, two classes.

    Texts as pandas 3 keeps them, and as Python objects, which pandas 2 has by default.
    """
    import pandas as pd
    from sklearn.preprocessing import TargetEncoder

    from holdtrue import GingerEncoder

    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    for k in (2, 5, 20, 100, 500, 1000, 2000, 10_000, 30_000, 100_000):
        columns[f"integer_{k}"] = rng.integers(0, k, 1_000_000)
        values = pd.array([f"value{i:06d}" for i in range(k)], dtype="str")
        columns[f"text_{k}"] = values.take(rng.integers(0, k, 1_000_000))
    frame = pd.DataFrame(columns)
    y = (rng.random(len(frame)) < 0.3 + 0.2 * (frame["integer_20"] % 2)).to_numpy().astype(int)
    texts = {name: object for name in frame if name.startswith("text")}
    rows = []
    for dtype, data in {str(frame["text_2"].dtype): frame, "object": frame.astype(texts)}.items():
        ways: dict[str, Callable[[], Any]] = {
            "GingerEncoder": lambda X=data: GingerEncoder(
                categorical_features=list(X), random_state=0
            ).fit_transform(X, y),
            "TargetEncoder": lambda X=data: TargetEncoder(random_state=0).fit_transform(X, y),
        }
        rows += [{"texts": dtype, **row} for row in take_turns(ways, repeats, f"encoder, {dtype}")]
    return rows


def run_growth(repeats: int, seed: int) -> list[dict[str, Any]]:
    """Time of `grow_tree` as rows, columns and splits grow, one at a time."""
    from holdtrue.categories.grow import grow_tree
    from holdtrue.categories.tree import Sample

    rows = []
    usual = {"rows": 100_000, "columns": 30, "splits": 250}
    for what, sizes in (
        ("rows", (12_500, 25_000, 50_000, 100_000, 200_000, 400_000)),
        ("columns", (8, 15, 30, 60, 120)),
        ("splits", (30, 60, 125, 250, 500, 1000)),
    ):
        for size in progress(sizes, len(sizes), f"growth, {what}"):
            now = {**usual, what: size}
            sample = Sample.from_codes(*tree_data(now["rows"], now["columns"], 50, seed))
            times = []
            for _ in range(repeats + 1):
                start = time.process_time()
                tree = grow_tree(sample, max_splits=now["splits"], compiled=True)
                times.append(time.process_time() - start)
            rows.append(
                {"varied": what, **now, "made": tree.n_splits,
                 "seconds": float(np.median(times[1:]))}
            )  # fmt: skip
    return rows


# --- tables and figure --------------------------------------------------------------------------


def medians(rows: list[dict[str, Any]], field: str = "seconds") -> dict[str, float]:
    ways = list(dict.fromkeys(row["way"] for row in rows))
    return {way: float(np.median([r[field] for r in rows if r["way"] == way])) for way in ways}


def versus(rows: list[dict[str, Any]], own: str) -> list[list[Any]]:
    """Way, median seconds, their range, and how many times longer than ours, of each turn."""
    of = {(r["way"], r["turn"]): r["seconds"] for r in rows}
    table = []
    for way, seconds in medians(rows).items():
        ratios = [of[key] / of[own, key[1]] for key in of if key[0] == way]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}" if way != own else ""
        table.append([way, seconds, f"{np.median(ratios):.2f}×", spread])
    return table


def report(folder: Path) -> None:
    parts = [
        "# categories: from a file to a ranking, from codes to scores, a tree\n",
        "Made by `python -m benchmarks.categories`; the CSV files say with which versions. CPU"
        " time of one thread, user and system; the ways take turns; medians. Times are this"
        " machine's, which others shared; the ratios, taken within each turn, are the result."
        " Above 1 the other way is slower.\n",
    ]
    header = ["way", "CPU s", "times ours", "least and greatest"]
    if (folder / "file.csv").exists():
        rows = read_csv(folder / "file.csv")
        parts += [
            "## A Parquet file to a ranking\n",
            "5M rows, 10 columns of text and 10 of integers with 2 to 5M values each, and a target"
            " of two classes. pyarrow's defaults as a writer: Snappy, dictionaries"
            " up to 1 MB, row groups of 1M rows. The others count every value by class into a"
            " table; holdtrue counts, scores and describes. `rank_columns` reads a column as text"
            " where its dictionary was given up, so it may be faster than reading dictionaries.\n",
        ]
        said = {
            "even": "Values drawn evenly, integers in a dense range, nothing missing:\n",
            "skewed": "Text by Zipf's law, integers spread over all of 64 bits, a twentieth of each"
            " column missing:\n",
        }
        again = folder / "fastest.csv"
        for kind in FILE_KINDS:
            for rows_of, about in ((rows, ""), (read_csv(again) if again.exists() else [], AGAIN)):
                own = [row for row in rows_of if row["file"] == kind]
                peak = medians(own, "peak_mb")
                table = [[*line, f"{peak[line[0]]:.0f}"] for line in versus(own, OWN)]
                if own:
                    parts += [about or said[kind]]
                    parts += [markdown_table([*header, "peak MB"], table) + "\n"]
    if (folder / "threads.csv").exists():
        rows = read_csv(folder / "threads.csv")
        loads = [row["load"] for row in rows]
        table = []
        for kind in FILE_KINDS:
            own = [row for row in rows if row["file"] == kind]
            walls, peak = medians(own, "wall"), medians(own, "peak_mb")
            for way, wall in walls.items():
                ratio = f"{wall / walls[TWO]:.2f}×"
                table.append([kind, way, wall, ratio, medians(own)[way], f"{peak[way]:.0f}"])
        parts += [
            "## One thread and two\n",
            "The same files; the others count with two threads. The machine has two cores, and"
            f" this many processes wanted them meanwhile: {min(loads):.1f} to {max(loads):.1f}."
            " The aim is 2.5 times our wall time with two threads: reached against DuckDB on the"
            " even file alone. Earlier runs, on slower machines, had 2.2× to 3.2× (DuckDB) and 1.8×"
            " to 2.4× (Polars) there, 1.6× to 2.2× and 1.6× to 1.9× on the skewed file. About half"
            " of our time is Arrow's decoding, and the last column leaves one thread waiting for a"
            " tenth of the time or more.\n",
            markdown_table(["file", "way", "wall s", "times two", "CPU s", "peak MB"], table)
            + "\n",
        ]
    if (folder / "texts.csv").exists():
        rows = read_csv(folder / "texts.csv")
        table = []
        for n_threads in dict.fromkeys(row["threads"] for row in rows):
            own = [row for row in rows if row["threads"] == n_threads]
            walls, peak = medians(own, "wall"), medians(own, "peak_mb")
            table += [
                [n_threads, *line[:3], walls[line[0]], f"{peak[line[0]]:.0f}"]
                for line in versus(own, OWN)
            ]
        parts += [
            "## Ten million different texts\n",
            "One column of texts of 40 to 60 bytes, and a target of two classes, in a Parquet file"
            " of 0.5 GB. The others use one thread or two, `rank_columns` one for a column.\n",
            markdown_table(["threads", *header[:3], "wall s", "peak MB"], table) + "\n",
        ]
    if (folder / "groups.csv").exists():
        rows = read_csv(folder / "groups.csv")
        parts += [
            "## Whole groups left out\n",
            "1M rows in memory; five columns of integers and five of text with 2 to 200,000 values,"
            " one of numbers, one id; two classes. The aim is 3× for a proper loss with groups: log"
            " loss or Brier's (12× before its loop was compiled). For log loss, before"
            " rows of nearly the same prior were taken together, and bins scored from counts of"
            " every bin and group, it was 3.0×, 2.8× and 4.1×. At 10,000 groups there are almost as"
            " many pairs of value and group as rows, and hundreds of thousands in bins too. Most of"
            " these columns say nothing; their strength is infinite: the losses are then those"
            " without a column, and take no loop over pairs.\n",
        ]
        for n_groups in dict.fromkeys(row["n_groups"] for row in rows):
            own = [row for row in rows if row["n_groups"] == n_groups]
            parts += [
                f"{n_groups:,} groups:\n",
                markdown_table(
                    [*header[:2], "times ginger's", *header[3:]], versus(own, "ginger, no groups")
                )
                + "\n",
            ]
    if (folder / "codes.csv").exists():
        parts += [
            "## Ready codes to scores\n",
            "100,000 rows, 20 columns of integer codes with 2 to 10,000 values, two classes. Orange"
            " is given its own table, made before; holdtrue's codes are int32, its loops loaded.\n",
            markdown_table(header, versus(read_csv(folder / "codes.csv"), "holdtrue, ginger"))
            + "\n",
        ]
    if (folder / "tree.csv").exists():
        rows = read_csv(folder / "tree.csv")
        for name in dict.fromkeys(row["columns"] for row in rows):
            of_kind = [row for row in rows if row["columns"] == name]
            parts += [
                f"## A tree of 500 splits, columns of 2 to {of_kind[0]['widest']:,} values\n",
                "200,000 rows, 60 columns of integer codes, two classes. Whole fits, from the array"
                " that all are given: encoding and binning included. LightGBM: one tree of 501"
                " leaves with native categories. scikit-learn: 501 leaves on the codes as numbers."
                " A split of ours has one child per value, theirs has two. The aim is 6× LightGBM"
                " and 30× scikit-learn; before the rows of a leaf were fetched ahead of counting"
                " them it was 6.6× and 24.5× for columns of 2 to 50 values, 8.8× and 35.8× for 2"
                " to 5,000. The first tree on a machine also compiles, about 10 s.\n",
                markdown_table(header, versus(of_kind, OWN_TREE)) + "\n",
            ]
    if (folder / "forest.csv").exists():
        rows = read_csv(folder / "forest.csv")
        table = []
        for name in dict.fromkeys(row["data"] for row in rows):
            of_table = [row for row in rows if row["data"] == name]
            table += [[name, *line] for line in versus(of_table, "LightGBM, 100 trees")]
        parts += [
            "## A forest of 100 trees, 10,000 rows\n",
            "Real tables (Mushroom has 8,124 rows), default settings on both sides, one thread;"
            " LightGBM is given pandas categories.\n",
            markdown_table(["table", *header[:2], "times LightGBM's", header[3]], table) + "\n",
        ]
    if (folder / "encoder.csv").exists():
        rows = read_csv(folder / "encoder.csv")
        parts += [
            "## Encoding out of fold\n",
            "`fit_transform` of 1M rows, ten columns of text and ten of integers with 2 to 100,000"
            " values, two classes, five folds. Texts of pandas are Arrow's (`str`, the default of"
            " pandas 3) or Python's (`object`, of pandas 2), where more than half of our time is"
            " Arrow's conversion of ten million objects. The aim is 10×.\n",
        ]
        for dtype in dict.fromkeys(row["texts"] for row in rows):
            of_kind = [row for row in rows if row["texts"] == dtype]
            parts += [
                f"Texts of dtype `{dtype}`:\n",
                markdown_table(header, versus(of_kind, "GingerEncoder")) + "\n",
            ]
    if (folder / "growth.csv").exists():
        draw_growth(folder)
        parts += [
            "## How time grows\n",
            "`grow_tree` on 100,000 rows, 30 columns of 2 to 50 values, 250 splits; one of the"
            " three varied at a time.\n",
            "![Time against rows, columns and splits](growth.png)\n",
        ]
    (folder / "README.md").write_text("\n".join(parts), encoding="utf-8")


def draw_growth(folder: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = read_csv(folder / "growth.csv")
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), sharey=True, layout="constrained")
    for what, axis in zip(("rows", "columns", "splits"), axes, strict=True):
        own = [row for row in rows if row["varied"] == what]
        x = np.array([row[what] for row in own], dtype=float)
        seconds = np.array([row["seconds"] for row in own])
        axis.loglog(x, seconds, "o-", label="grow_tree")
        axis.loglog(x, seconds[-1] * x / x[-1], "--", color="grey", label="in proportion")
        axis.set_xlabel(what)
    axes[0].set_ylabel("CPU s")
    axes[0].legend(frameon=False)
    figure.savefig(folder / "growth.png", dpi=120)
    plt.close(figure)


RUNS = {
    "file": run_file,
    "fastest": run_fastest,
    "threads": run_threads,
    "texts": run_texts,
    "groups": run_groups,
    "codes": run_codes,
    "tree": run_tree,
    "forest": run_forest,
    "encoder": run_encoder,
    "growth": run_growth,
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--only", choices=RUNS)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return
    for name, run in RUNS.items():
        if options.report or options.only not in (None, name):
            continue
        with threadpool_limits(1):
            rows = run(options.repeats, options.seed)
        command = f"python -m benchmarks.categories --only {name} --repeats {options.repeats}"
        path = options.out / f"{name}.csv"
        write_csv(path, rows, command=command, seed=options.seed, packages=PACKAGES)
    report(options.out)
    print((options.out / "README.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
