"""README and examples: every block of code runs, and commands print what the pages show.

Run with HOLDTRUE_WRITE_DOCS=1 to put the commands' present output into the pages.
"""

import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_the_code_of_a_document_runs_from_top_to_bottom(document):
    names = {}
    for block in BLOCK.findall(document.read_text(encoding="utf-8")):
        exec(compile(block, str(document), "exec"), names)


def printed(block, folder):
    """A block of commands with what they print now, standard error first."""
    lines = []
    for line in block.splitlines():
        if line.startswith("$ "):
            command = shlex.split(line[2:])
            assert command[0] == "holdtrue", line
            done = subprocess.run(
                [Path(sys.executable).with_name("holdtrue"), *command[1:]],
                cwd=folder,
                env={**os.environ, "COLUMNS": "90", "NO_COLOR": "1"},
                capture_output=True,
                text=True,
                timeout=300,
            )
            said = (done.stderr + done.stdout).strip("\n").splitlines()
            lines += [line, *(text.rstrip() for text in said)]
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize(
    "document",
    [path for path in DOCUMENTS if CONSOLE.search(path.read_text(encoding="utf-8"))],
    ids=lambda p: p.name,
)
def test_commands_of_a_document_print_what_it_shows(document, tmp_path):
    text = document.read_text(encoding="utf-8")
    if "demo --data try" not in text:
        printed("$ holdtrue demo --data try", tmp_path)
    now = CONSOLE.sub(lambda found: f"```console\n{printed(found[1], tmp_path)}```", text)
    if os.environ.get("HOLDTRUE_WRITE_DOCS"):
        document.write_text(now, encoding="utf-8")
    assert now == text


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_links_lead_to_files_that_are_there(document):
    for link in re.findall(r"\]\(([^)#]+)", document.read_text(encoding="utf-8")):
        if not link.startswith("http"):
            assert (document.parent / link).exists(), link


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda p: p.stem)
def test_examples_run_and_leave_their_picture(example, tmp_path, monkeypatch):
    picture = tmp_path / "picture.png"
    monkeypatch.setattr(sys, "argv", [str(example), str(picture)])
    runpy.run_path(str(example), run_name="__main__")
    assert picture.stat().st_size > 10_000


def test_no_document_speaks_of_one_machine():
    for path in [*DOCUMENTS, *EXAMPLES]:
        assert not re.search(r"/(?:home|root|work|tmp)/", path.read_text(encoding="utf-8")), path
