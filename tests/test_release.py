"""What is released: one version, and archives that work in a clean environment."""

import os
import re
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import holdtrue

ROOT = Path(__file__).parents[1]
USES = """
from holdtrue import NestedRegressor, Ranking, SelectionPath, rank_columns

model = NestedRegressor(random_state=0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
path: SelectionPath = model.path_
ranking: Ranking = rank_columns("customers.csv", "left")
reason: str = path.reason
"""


def test_version_citation_and_changelog_agree():
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    assert cited[1] == holdtrue.__version__
    assert f"## {holdtrue.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def run(*command, **options):
    done = subprocess.run(
        [str(part) for part in command], capture_output=True, text=True, timeout=3600, **options
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def clean(tmp_path_factory):
    """A new environment with the wheel that the sdist makes, and what `plot` and `skops` bring."""
    folder = tmp_path_factory.mktemp("release")
    run(sys.executable, "-m", "venv", folder / "env")
    python = folder / "env" / "bin" / "python"
    pip = (python, "-m", "pip", "--quiet", "--disable-pip-version-check")
    try:
        run(*pip, "install", "hatchling>=1.26")
    except AssertionError as error:
        pytest.skip(f"no package index to install from: {str(error).splitlines()[-1]}")
    build = "import hatchling.build as b, sys; print(b.build_sdist(sys.argv[1]))"
    sdist = folder / run(python, "-c", build, folder, cwd=ROOT).splitlines()[-1]
    run(*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, sdist)
    (wheel,) = folder.glob("*.whl")
    run(*pip, "install", f"{wheel}[plot,skops]")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "CITATION.cff", "src/holdtrue/py.typed", "tests/test_release.py"} <= names
    return folder


@pytest.mark.slow
def test_the_readme_works_in_the_environment_that_it_creates(clean):
    """Commands and Python of the README, which print what it shows."""
    environment = {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        **{"COLUMNS": "90", "NO_COLOR": "1", "MPLBACKEND": "Agg"},
    }
    here = {"cwd": clean, "env": environment}
    assert "pandas" not in run(clean / "env/bin/python", "-m", "pip", "list", **here)
    readme = (ROOT / "README.md").read_text("utf-8")
    blocks = re.findall(r"^```(console|python|text)\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    code = "".join(block for kind, block in blocks if kind == "python")
    shown = "".join(block for kind, block in blocks if kind == "text")
    printed = run(clean / "env/bin/python", "-c", code, **here)
    assert "".join(f"{line.rstrip()}\n" for line in printed.splitlines()) == shown
    for block in (block for kind, block in blocks if kind == "console"):
        printed = ""
        for line in re.findall(r"^\$ holdtrue (.+)$", block, re.MULTILINE):
            printed += f"$ holdtrue {line}\n"
            printed += (
                run(clean / "env/bin/holdtrue", *shlex.split(line), **here).strip("\n") + "\n"
            )
        assert [line.rstrip() for line in printed.splitlines()] == block.splitlines()


@pytest.mark.slow
def test_types_are_seen_from_outside(clean):
    (clean / "uses.py").write_text(USES)
    (clean / "misuses.py").write_text(USES + "rank_columns('customers.csv', nonsense=1)\n")
    mypy = (
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--python-executable",
        clean / "env/bin/python",
    )
    assert "Success" in run(*mypy, clean / "uses.py", cwd=clean)
    done = subprocess.run(
        [*map(str, mypy), "misuses.py"], capture_output=True, text=True, cwd=clean
    )
    assert 'Unexpected keyword argument "nonsense"' in done.stdout, done.stdout
