"""A command that is ended in the middle leaves nothing behind, and what was there as it was."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

COMMAND = Path(sys.executable).parent / "holdtrue"
COPIES = 60

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A CSV of some 60 MB: the same rows again and again."""
    rng = np.random.default_rng(0)
    n_rows = 10_000
    table = pa.table(
        {f"x{j}": rng.normal(size=n_rows) for j in range(4)}
        | {f"c{j}": rng.integers(0, 5000, n_rows).astype(str) for j in range(4)}
        | {"y": rng.integers(0, 2, n_rows), "place": rng.integers(0, 9, n_rows)}
    )
    stream = pa.BufferOutputStream()
    pa.csv.write_csv(table, stream, pa.csv.WriteOptions(include_header=False))
    path = tmp_path_factory.mktemp("large") / "large.csv"
    with path.open("wb") as file:
        file.write((",".join(table.column_names) + "\n").encode())
        for _ in range(COPIES):
            file.write(stream.getvalue())
    return path


class Running:
    """The installed command, with folders of its own for its outputs and temporary files."""

    def __init__(self, folder, *arguments):
        self.folder, self.temporary = folder, folder / "temporary"
        self.temporary.mkdir()
        self.process = subprocess.Popen(
            [COMMAND, *map(str, arguments)],
            cwd=folder,
            env=os.environ | {"TMPDIR": str(self.temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_until_it_has_read(self, path, share):
        """Wait until so much of the file is read."""
        while self.process.poll() is None:
            if self._place(path) >= share * path.stat().st_size:
                return
            time.sleep(0.002)
        raise AssertionError(f"ended too early: {self.process.communicate()}")

    def _place(self, path):
        """How far the process has read in the file; 0 where it is not open."""
        process = Path(f"/proc/{self.process.pid}")
        for link in (process / "fd").iterdir():
            with suppress(OSError):  # closed in the meantime
                if link.readlink() == path:
                    told = (process / "fdinfo" / link.name).read_text()
                    return int(told.split("pos:")[1].split()[0])
        return 0

    def ended_by(self, sign):
        self.process.send_signal(sign)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


needs_proc = pytest.mark.skipif(not Path("/proc/self/fdinfo").exists(), reason="needs /proc")
QUESTIONS = {"rank": ("-t", "y"), "select": ("-t", "y", "-d", "place")}


@needs_proc
@pytest.mark.parametrize("command", QUESTIONS)
@pytest.mark.parametrize("sign, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_command_that_is_ended_while_it_reads_leaves_nothing(
    command, sign, code, large, tmp_path
):
    (tmp_path / "old.html").write_text("as it was")
    outputs = ("--out", "old.html", "--force", "--json", "new.json", "--csv", "new.csv")
    running = Running(tmp_path, command, large, *QUESTIONS[command], *outputs)
    running.wait_until_it_has_read(large, 0.4)
    ended, out, err = running.ended_by(sign)
    assert ended == code, err
    assert out == ""
    told = f"holdtrue {command}: interrupted. No file was left half-written.\n"
    assert err == (told if sign == signal.SIGINT else "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.html", "temporary"]
    assert list((tmp_path / "temporary").iterdir()) == []
    assert (tmp_path / "old.html").read_text() == "as it was"


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("seconds", [0.0, 0.3, 1.5])
def test_a_command_that_is_ended_at_any_time_leaves_nothing(sign, seconds, large, tmp_path):
    running = Running(tmp_path, "rank", large, "-t", "y", "--out", "new.html")
    time.sleep(seconds)
    ended, out, err = running.ended_by(sign)
    assert ended in (128 + sign, -sign), err
    assert out == ""
    assert list((tmp_path / "temporary").iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["temporary"]


def test_an_interruption_while_libraries_are_imported_is_no_traceback(tmp_path):
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n")
    ended = subprocess.run(
        [sys.executable, "-m", "holdtrue", "rank", "t.csv"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 130
    assert ended.stderr == "holdtrue: interrupted before anything was done.\n"


def test_python_m_holdtrue_is_the_command():
    asked = [sys.executable, "-m", "holdtrue", "--version"]
    assert subprocess.run(asked, capture_output=True, check=True).stdout.startswith(b"holdtrue ")
