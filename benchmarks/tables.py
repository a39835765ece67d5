"""A CSV file of 3 GB to a ranking: memory, rate beside DuckDB's plain scan, and an interruption.

    python -m benchmarks.tables            run, then the table in benchmarks/results
    python -m benchmarks.tables --report   the table from the CSV files alone

Each way has a process of its own, one after the other on the same file, with the machine's cores
to itself as far as others leave them. Times are those of the clock and of the processor (user and
system, of all threads). HOLDTRUE_BENCH_CSV may name a file to keep the generated table in.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.categories import peak_mb
from experiments.records import markdown_table, read_csv, write_csv

RESULTS = Path(__file__).parent / "results" / "tables"
PACKAGES = ("pyarrow", "numba", "duckdb")
OWN = "holdtrue.rank_columns"
N_ROWS = 18_000_000
_BLOCK = 250_000


def write_file(path: Path, n_rows: int, seed: int) -> None:
    """18 columns: an id, texts of 3 to 1M values, whole numbers, numbers, dates, missing values."""
    import pyarrow as pa
    from pyarrow import csv

    rng = np.random.default_rng(seed)
    texts = {
        "user": pa.array([f"user{i:07d}" for i in range(1_000_000)]),
        "zip": pa.array([f"{i:05d}" for i in range(30_000)]),
        "city": pa.array([f"city {i}" for i in range(5_000)]),
        "channel": pa.array(["web", "shop", "phone", "?"]),
    }
    writer = None
    for start in range(0, n_rows, _BLOCK):
        n = min(_BLOCK, n_rows - start)
        ids = (np.arange(start, start + n) * 2654435761) % 2**40
        plan, age = rng.integers(0, 3, n), rng.integers(18, 90, n)
        seconds = rng.integers(15_000 * 86_400, 19_000 * 86_400, n)
        columns: dict[str, Any] = {"id": pa.array([f"{i:010x}" for i in ids.tolist()])}
        for name, values in texts.items():
            columns[name] = values.take(pa.array(rng.integers(0, len(values), n)))
        columns |= {
            "plan": pa.array(["free", "paid", "team"]).take(pa.array(plan)),
            "age": pa.array(age),
            "code": pa.array(rng.integers(0, 10**6, n)),
            "number": pa.array(rng.integers(0, 10**12, n)),
            "visits": pa.array(rng.poisson(7, n), mask=rng.random(n) < 0.1),
            "price": pa.array(np.round(rng.gamma(2, 30, n), 2)),
            "score": pa.array(rng.normal(size=n)),
            "latitude": pa.array(np.round(rng.uniform(-90, 90, n), 5)),
            "longitude": pa.array(
                np.round(rng.uniform(-180, 180, n), 5), mask=rng.random(n) < 0.05
            ),
            "day": pa.array((seconds // 86_400).astype("datetime64[D]")),
            "seen": pa.array(seconds.astype("datetime64[s]")),
            "member": pa.array(rng.random(n) < 0.5),
            "left": pa.array(rng.random(n) < 0.15 + 0.1 * plan + 0.003 * (age - 18)),
        }
        table = pa.table(columns)
        writer = writer or csv.CSVWriter(str(path), table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def ways() -> dict[str, Callable[[str], Any]]:
    """Ways to go through the file; all parse every column."""

    def ours(path: str) -> int:
        from holdtrue import rank_columns

        return len(rank_columns(path, "left"))

    def reading(path: str) -> int:
        from holdtrue.tables import open_table

        return open_table(path).n_rows

    def duckdb_scan(path: str) -> int:
        import duckdb

        connection = duckdb.connect()
        names = [row[0] for row in connection.execute(
            "DESCRIBE SELECT * FROM read_csv(?)", [path]).fetchall()]  # fmt: skip
        found = ", ".join(f'max("{name}")' for name in names)
        query = f"SELECT count(*), {found} FROM read_csv(?)"
        return int(connection.execute(query, [path]).fetchall()[0][0])

    return {OWN: ours, "of which reading (open_table)": reading, "DuckDB, plain scan": duckdb_scan}


def child(way: str, path: str) -> None:
    """Do it once; print times and peak memory."""
    start = time.perf_counter()
    result = ways()[way](path)
    print(
        json.dumps(
            {
                "result": result,
                "wall": time.perf_counter() - start,
                "cpu": time.process_time(),
                "peak_mb": peak_mb(),
            }
        )
    )


def run_file(path: Path, repeats: int) -> list[dict[str, Any]]:
    """The ways take turns, each in a process of its own."""
    rows = []
    size = path.stat().st_size / 1e6
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.tables", "--child"]
    for turn in range(repeats):
        for way in ways():
            made = subprocess.run(
                [*command, way, str(path)], stdout=subprocess.PIPE, check=True, text=True
            )
            rows.append({"way": way, "turn": turn, "file_mb": size, **json.loads(made.stdout)})
            print(rows[-1], file=sys.stderr, flush=True)
    return rows


def run_interrupted(path: Path, wall: float) -> list[dict[str, Any]]:
    """The command, interrupted at half of the time that it took: what it leaves."""
    rows = []
    # Where a shell started this in the background, signals of the keyboard are ignored, by
    # children too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    script = "import sys; from holdtrue.cli import main; sys.argv[0] = 'holdtrue'; main()"
    with tempfile.TemporaryDirectory() as folder:
        temporary, work = Path(folder, "tmp"), Path(folder, "work")
        temporary.mkdir()
        work.mkdir()
        started = subprocess.Popen(
            [sys.executable, "-c", script, "rank", str(path), "--target", "left",
             "--out", "report.html"],
            cwd=work,
            env={**os.environ, "TMPDIR": str(temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        time.sleep(wall / 2)
        running = started.poll() is None
        started.send_signal(signal.SIGINT)
        start = time.perf_counter()
        _, told = started.communicate(timeout=600)
        left = [str(p) for base in (temporary, work) for p in base.rglob("*")]
        rows.append(
            {
                "after_s": wall / 2,
                "still_running": running,
                "exit_code": started.returncode,
                "files_left": len(left),
                "seconds_to_stop": time.perf_counter() - start,
                "told": told.strip().splitlines()[-1] if told.strip() else "",
            }
        )
        print(rows[-1], left, file=sys.stderr, flush=True)
    return rows


def report(folder: Path) -> None:
    rows = read_csv(folder / "file.csv")
    size = rows[0]["file_mb"]
    table = []
    for way in dict.fromkeys(row["way"] for row in rows):
        own = [row for row in rows if row["way"] == way]
        cpu, wall = (float(np.median([row[key] for row in own])) for key in ("cpu", "wall"))
        peak = max(row["peak_mb"] for row in own) * 2**20 / 1e6
        table.append([way, wall, f"{size / wall:.0f}", cpu, f"{size / cpu:.0f}", f"{peak:.0f}"])
    header = ["way", "clock s", "MB/s", "CPU s", "MB per CPU s", "peak MB"]
    parts = [
        "# tables: a CSV file of 3 GB to a ranking\n",
        "Made by `python -m benchmarks.tables`; the CSV files say with which versions. "
        f"{size / 1000:.2f} GB, {N_ROWS:,} rows, 18 columns: an id, texts of 3 to 1M values (one"
        " with leading zeros), whole numbers, numbers, dates, truth values, missing values. A"
        " megabyte is a million bytes. Others shared the machine: the clock says little, the"
        " processor's time more. DuckDB parses every column and takes its maximum; holdtrue reads,"
        " checks and keeps the columns in a temporary file without a name, then counts every value"
        " of each by class and scores it.\n",
        markdown_table(header, table) + "\n",
    ]
    if (folder / "interrupted.csv").exists():
        row = read_csv(folder / "interrupted.csv")[0]
        parts += [
            "## Interrupted\n",
            f"`holdtrue rank FILE --target left --out report.html`, interrupted (SIGINT) after "
            f"{row['after_s']:.0f} s: exit code {row['exit_code']}, {row['files_left']} files left "
            f"in the working and temporary folders, {row['seconds_to_stop']:.1f} s to stop.\n",
        ]
    (folder / "README.md").write_text("\n".join(parts), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--rows", type=int, default=N_ROWS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--only", choices=("file", "interrupted"))
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return
    runs = [options.only] if options.only else ["file", "interrupted"]
    if not options.report:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(os.environ.get("HOLDTRUE_BENCH_CSV") or Path(folder) / "table.csv")
            if not path.exists():
                write_file(path, options.rows, options.seed)
            for name in runs:
                command = f"python -m benchmarks.tables --only {name} --repeats {options.repeats}"
                if name == "file":
                    rows = run_file(path, options.repeats)
                else:
                    known = read_csv(options.out / "file.csv")
                    wall = next(row["wall"] for row in known if row["way"] == OWN)
                    rows = run_interrupted(path, wall)
                write_csv(
                    options.out / f"{name}.csv",
                    rows,
                    command=command,
                    seed=options.seed,
                    packages=PACKAGES,
                )
    report(options.out)
    print((options.out / "README.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
