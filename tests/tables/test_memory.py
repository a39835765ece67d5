"""A file is not held in memory, and an interruption leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from holdtrue.tables import open_table
from holdtrue.tables.text import Block

# What ranking 50 MB may take above ranking three rows; the columns alone are 60 MB in memory, and
# what Arrow, NumPy and compiled loops ask for at most at a time does not grow with the file.
MAX_MB = 300

RANK = """
import json, resource, sys
from pathlib import Path
from holdtrue import rank_columns
table = rank_columns(sys.argv[1], "left")
status = Path("/proc/self/status")
if status.exists():  # getrusage's would include the memory of the program that started this one
    lines = status.read_text().splitlines()
    peak = int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024
else:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"peak_mb": peak, "best": next(iter(table))["column"]}))
"""


def write_file(path, n_rows):
    rng = np.random.default_rng(0)
    plan = rng.integers(0, 3, n_rows)
    columns = {
        "id": pa.array([f"{i:010x}" for i in rng.permutation(n_rows).tolist()]),
        "zip": pa.array([f"{i:05d}" for i in rng.integers(0, 30_000, n_rows).tolist()]),
        "plan": pa.array(["free", "paid", "team"]).take(pa.array(plan)),
        "score": pa.array(rng.normal(size=n_rows)),
        "width": pa.array(rng.normal(size=n_rows)),
        "number": pa.array(rng.integers(0, 10**12, n_rows)),
        "left": pa.array(rng.random(n_rows) < 0.2 + 0.2 * plan),
    }
    csv.write_csv(pa.table(columns), path)


def ranked(path):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", RANK, str(path)],
        stdout=subprocess.PIPE,
        check=True,
        timeout=600,
    )
    return json.loads(done.stdout)


@pytest.mark.slow
def test_fifty_megabytes_are_ranked_in_little_memory(tmp_path):
    write_file(tmp_path / "small.csv", 3)
    write_file(tmp_path / "large.csv", 620_000)
    assert (tmp_path / "large.csv").stat().st_size > 50e6
    small, large = ranked(tmp_path / "small.csv"), ranked(tmp_path / "large.csv")
    assert large["best"] == "plan"
    assert large["peak_mb"] - small["peak_mb"] < MAX_MB


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals as POSIX has them")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interruption_leaves_no_file_behind(tmp_path, how):
    write_file(tmp_path / "large.csv", 400_000)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    code = (
        "import signal, sys\nfrom holdtrue.tables import open_table, source\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job ignores it\n"
        "source._PART = 1 << 20\nsource.IN_MEMORY = 0\nprint('ready', flush=True)\n"
        "while True: open_table(sys.argv[1])"
    )
    started = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "large.csv")],
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with started:
        assert started.stdout.readline() == b"ready\n"
        time.sleep(1.0)
        while started.poll() is None:  # an interruption may be lost, in __del__ say
            started.send_signal(how)
            time.sleep(1.0)
        assert started.returncode != 0
    assert list(temporary.iterdir()) == []


def test_arrow_reads_from_memory_that_its_threads_can_free_without_python(tmp_path, monkeypatch):
    # One of Arrow's threads that lets go of a Python object as the interpreter ends aborts it.
    sources = []
    parquet_file = pq.ParquetFile
    monkeypatch.setattr(
        pq,
        "ParquetFile",
        lambda source, **given: sources.append(source) or parquet_file(source, **given),
    )
    monkeypatch.setattr("holdtrue.tables.source.IN_MEMORY", 0)
    write_file(tmp_path / "a.csv", 20_000)
    table = open_table(tmp_path / "a.csv")
    assert len(table.column("score")) == 20_000
    assert table._source._path  # not in memory
    assert {type(source) for source in sources} == {pa.BufferReader}
    content = bytes(bytearray(b"1,2\n" * 10))
    n_owners = sys.getrefcount(content)
    reader = Block(content, 0, None).reader()
    assert sys.getrefcount(content) == n_owners
    assert reader.read() == content
