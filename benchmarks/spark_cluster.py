"""A standalone master and workers of Spark on loopback, for benchmarks and tests."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def spark_cluster(
    logs: Path, n_workers: int = 2, n_cores: int = 1
) -> Iterator[tuple[str, list[int]]]:
    """Address of a master, and the pids of its workers of so many cores; ended at the end."""
    import pyspark

    home = Path(pyspark.__file__).parent
    settings = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    os.environ |= settings
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m"}
    run = [str(home / "bin" / "spark-class")]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"spark://127.0.0.1:{port}"
    shared = ["-h", "127.0.0.1", "--webui-port", "0"]
    place = "org.apache.spark.deploy"
    commands = [[*run, f"{place}.master.Master", *shared, "-p", str(port)]]
    for i in range(n_workers):
        folder = str(logs / f"worker{i}")
        worker = [*run, f"{place}.worker.Worker", *shared, "-m", "3g", "-d", folder]
        commands.append([*worker, "-c", str(n_cores), address])
    with (logs / "log").open("wb") as log:
        processes = [
            subprocess.Popen(command, env=environment, stdout=log, stderr=log)
            for command in commands
        ]
        try:
            yield address, [process.pid for process in processes[1:]]
        finally:
            for process in reversed(processes):
                process.terminate()
            for process in processes:
                process.wait()


def family(pid: int) -> Iterator[int]:
    """A process and all its descendants."""
    yield pid
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from family(int(child))
    except OSError:
        return


def java_of(pid: int, main_class: str) -> list[int]:
    """Java processes below a process that run this class."""
    found = []
    for one in family(pid):
        try:
            command = Path(f"/proc/{one}/cmdline").read_bytes().decode(errors="replace")
        except OSError:
            continue
        if main_class in command and "java" in command.split("\0")[0]:
            found.append(one)
    return found
