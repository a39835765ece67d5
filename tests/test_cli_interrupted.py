"""A command that is ended in the middle leaves nothing behind, and what was there as it was."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import holdtrue

COMMAND = Path(sys.executable).parent / "holdtrue"
COPIES = 60
N_REFUSALS = 50 if "HOLDTRUE_ATTACK" in os.environ else 1
PATHS = os.environ.get("PYTHONPATH", "").split(os.pathsep)
# A signal whose exception is lost.
SIGNAL = """
import contextlib, signal
with contextlib.suppress(KeyboardInterrupt, SystemExit):
    signal.raise_signal(signal.{})
"""
CTRL_C, ENDED = SIGNAL.format("SIGINT"), SIGNAL.format("SIGTERM")

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
        with suppress(OSError):  # closed or ended in the meantime
            for link in (process / "fd").iterdir():
                if link.readlink() == path:
                    told = (process / "fdinfo" / link.name).read_text()
                    return int(told.split("pos:")[1].split()[0])
        return 0

    def ended_by(self, sign):
        self.process.send_signal(sign)
        out, err = self.process.communicate(timeout=600)
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


@pytest.mark.attack
def test_a_refusal_after_threads_have_read_ends_cleanly(tmp_path):
    with (tmp_path / "t.csv").open("w") as file:  # three blocks
        file.write("name,number,y\n")
        file.writelines(f"t{i % 700},{i},{i % 2}\n" for i in range(900_000))
    for _ in range(N_REFUSALS):
        asked = [COMMAND, "rank", "t.csv", "-t", "yy"]
        ended = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ended.returncode == 2, ended
        assert ended.stderr.count("\n") == 1, ended


TOLD = (
    "",
    "holdtrue: interrupted before anything was done.\n",
    "holdtrue rank: interrupted. No file was left half-written.\n",
)


@pytest.mark.attack
@given(sign=st.sampled_from([signal.SIGINT, signal.SIGTERM]), seconds=st.floats(0, 2.5))
@settings(max_examples=6, phases=[Phase.generate])
def test_a_command_that_is_ended_at_any_time_leaves_nothing(sign, seconds, large):
    with TemporaryDirectory() as name:
        folder = Path(name).resolve()
        running = Running(folder, "rank", large, "-t", "y", "--out", "new.html")
        time.sleep(seconds)
        ended, out, err = running.ended_by(sign)
        assert list(running.temporary.iterdir()) == []
        running.temporary.rmdir()
        if written := list(folder.iterdir()):  # it was done before, if not quite at its end
            assert [path.name for path in written] == ["new.html"]
            assert written[0].read_text().endswith("</html>")
            err = err.removeprefix("wrote new.html\n")
        else:
            assert out == ""
        if "Traceback" in err:  # of Python's own start or end, outside any of our code
            assert str(Path(holdtrue.__file__).parent) not in err
        else:
            assert ended in ((0 if written else 128 + sign), 128 + sign, -sign), err
            assert err in TOLD


@pytest.mark.parametrize(
    "module, code, ended",
    [
        ("typer", "raise KeyboardInterrupt", (130, TOLD[1])),
        # Python 3.11 makes a RuntimeError of what is raised in __set_name__, C code an ImportError.
        ("typer", CTRL_C + "raise RuntimeError", (130, TOLD[1])),
        ("pyarrow", CTRL_C + "raise ImportError('initialization failed')", (130, TOLD[2])),
        ("typer", ENDED + "raise RuntimeError", (143, "")),
        ("pyarrow", ENDED + "raise ImportError('initialization failed')", (143, "")),
    ],
)
def test_an_interruption_while_libraries_are_imported_is_no_traceback(
    module, code, ended, tmp_path
):
    (tmp_path / f"{module}.py").write_text(code + "\n")
    done = subprocess.run(
        [sys.executable, "-m", "holdtrue", "rank", "t.csv", "-t", "y"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *PATHS])},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == ended


def test_python_m_holdtrue_is_the_command():
    asked = [sys.executable, "-m", "holdtrue", "--version"]
    assert subprocess.run(asked, capture_output=True, check=True).stdout.startswith(b"holdtrue ")
