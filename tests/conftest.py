"""Settings of all tests, and the command line run inside the test's process."""

import io
import os
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from holdtrue import cli

# On a busy machine draws are slow, which says nothing about the code.
settings.register_profile(
    "unhurried",
    settings.default,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("unhurried")


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str


class CommandLine:
    """`holdtrue ...` in a folder, with the exit code and the output that a shell would see."""

    def __init__(self, folder: Path):
        self.folder = folder

    def __call__(self, *arguments: object) -> Ended:
        out, err = io.StringIO(), io.StringIO()
        given = sys.argv
        code = 0
        try:
            with chdir(self.folder), redirect_stdout(out), redirect_stderr(err):
                sys.argv = ["holdtrue", *map(str, arguments)]
                cli.main()
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            sys.argv = given
        return Ended(code, out.getvalue(), err.getvalue())

    def refuses(self, *arguments: object) -> str:
        """The one sentence with which a command ends that was given a mistake; no file is left."""
        before = self.files()
        ended = self(*arguments)
        assert ended.code == 2, ended
        assert ended.out == "", ended
        assert ended.err.endswith("\n")
        assert ended.err.count("\n") == 1, ended.err
        assert ended.err.startswith(f"holdtrue {arguments[0]}: "), ended.err
        assert ended.err.rstrip().endswith((".", "?")), ended.err
        assert self.files() == before
        return ended.err[len(f"holdtrue {arguments[0]}: ") :].rstrip("\n")

    def files(self) -> dict[str, tuple[int, int]]:
        """Every file of the folder, with its size and time."""
        found = (Path(root, name) for root, _, names in os.walk(self.folder) for name in names)
        return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in found}


@pytest.fixture
def holdtrue(tmp_path: Path) -> CommandLine:
    """The command line in the test's own folder."""
    return CommandLine(tmp_path)


@pytest.fixture(scope="session")
def command_line() -> type[CommandLine]:
    """For fixtures that run commands in a folder of theirs."""
    return CommandLine
