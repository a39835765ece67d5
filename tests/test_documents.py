"""README, manual and examples: code and commands run, and print what the pages show.

Run with HOLDTRUE_WRITE_DOCS=1 to put the present output into the pages.
"""

import contextlib
import io
import json
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

import holdtrue

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CONSOLE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
EXAMPLES = sorted((ROOT / "examples").rglob("plot_*.py"))
PICTURES = runpy.run_path(str(ROOT / "docs" / "make_images.py"))
# What `pip install '.[plot]'` does not bring, as the README says.
BARRED = """
import sys
class Barred:
    def find_spec(self, name, path=None, target=None):
        if name in ("pandas", "polars", "skops", "onnx", "onnxruntime", "skl2onnx"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Barred())
"""

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def with_output(document):
    """The page with, in every block of text, what the code before it prints."""
    names, said = {}, ""

    def run(found):
        nonlocal said
        kind, block = found.groups()
        if kind == "text":
            return f"```text\n{said}```"
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(block, str(document), "exec"), names)
        said = "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())
        return found[0]

    return BLOCK.sub(run, document.read_text(encoding="utf-8"))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_the_code_of_a_document_runs_and_prints_what_it_shows(document):
    check(document, with_output(document))


def check(document, now):
    if os.environ.get("HOLDTRUE_WRITE_DOCS"):
        document.write_text(now, encoding="utf-8")
    assert now == document.read_text(encoding="utf-8")


def test_every_block_of_the_readme_shows_its_output():
    kinds = [kind for kind, _ in BLOCK.findall(DOCUMENTS[0].read_text(encoding="utf-8"))]
    assert kinds == ["python", "text"] * 4


def test_the_readme_runs_without_packages_that_its_install_line_does_not_bring(tmp_path):
    blocks = BLOCK.findall(DOCUMENTS[0].read_text(encoding="utf-8"))
    code = "\n".join(block for kind, block in blocks if kind == "python")
    done = subprocess.run(
        [sys.executable, "-c", BARRED + code],
        cwd=tmp_path,
        env={**os.environ, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr
    shown = "".join(block for kind, block in blocks if kind == "text")
    assert "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines()) == shown


def printed(block, run):
    """A block of commands with what they print now, standard error first."""
    lines = []
    for line in block.splitlines():
        if line.startswith("$ "):
            command = shlex.split(line[2:])
            assert command[0] == "holdtrue", line
            ended = run(*command[1:])
            said = (ended.err + ended.out).strip("\n").splitlines()
            lines += [line, *(text.rstrip() for text in said)]
    assert lines, "a block of console holds commands of holdtrue; others belong to bash"
    return "".join(f"{line}\n" for line in lines)


@pytest.mark.parametrize(
    "document",
    [path for path in DOCUMENTS if CONSOLE.search(path.read_text(encoding="utf-8"))],
    ids=lambda p: p.name,
)
def test_commands_of_a_document_print_what_it_shows(document, holdtrue, monkeypatch):
    monkeypatch.setenv("COLUMNS", "90")
    monkeypatch.setenv("NO_COLOR", "1")
    text = document.read_text(encoding="utf-8")
    if "$ holdtrue demo --data try" not in text:
        printed("$ holdtrue demo --data try", holdtrue)
    now = CONSOLE.sub(lambda found: f"```console\n{printed(found[1], holdtrue)}```", text)
    check(document, now)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_links_lead_to_files_that_are_there(document):
    for link in re.findall(r"\]\(([^)#]+)", document.read_text(encoding="utf-8")):
        if not link.startswith("http"):
            assert (document.parent / link).exists(), link


def ratios_of(page):
    """Ratios in the tables of a page of benchmarks, such as 2.5×."""
    text = (ROOT / "benchmarks/results" / page / "README.md").read_text("utf-8")
    return [float(ratio) for ratio in re.findall(r"\b(\d+(?:\.\d+)?)×", text)]


def test_speeds_of_the_page_of_results_are_those_of_the_benchmarks():
    section = (ROOT / "docs/results.md").read_text("utf-8").split("## Speed")[1]
    rows = re.findall(r"^\| .*\(results/(\w+)\.md\).*? \| (.*) \| .*\|$", section, re.MULTILINE)
    assert len(rows) > 10
    for page, result in rows:
        ratios = ratios_of(page)
        for quoted in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?= (?:and|to|times|on)|$)", result):
            n_decimals = len(quoted.partition(".")[2])
            rounded = {f"{ratio:.{n_decimals}f}" for ratio in ratios}
            assert quoted in rounded or not ratios, (page, quoted)


def test_the_readme_quotes_the_speed_of_the_benchmark():
    lines = (ROOT / "benchmarks/results/model_size/speed.csv").read_text("utf-8").splitlines()
    names, *rows = [line.split(",") for line in lines if not line.startswith("#")]
    ratios = [float(row[names.index("ratio")]) for row in rows]
    readme = DOCUMENTS[0].read_text(encoding="utf-8")
    assert f"[{min(ratios):.0f} to {max(ratios):.0f} times faster]" in readme


def test_every_example_has_a_card_as_its_thumbnail():
    stems = {path.relative_to(ROOT / "examples").with_suffix("").as_posix() for path in EXAMPLES}
    assert set(PICTURES["EXAMPLES"].values()) == stems
    for name, stem in PICTURES["EXAMPLES"].items():
        thumbnail = f'# sphinx_gallery_thumbnail_path = "images/card_{name}.svg"\n'
        assert thumbnail in (ROOT / "examples" / f"{stem}.py").read_text("utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", PICTURES["EXAMPLES"])
def test_examples_run_and_draw_the_committed_pictures(name, monkeypatch):
    monkeypatch.setattr(sys, "argv", [PICTURES["EXAMPLES"][name]])
    for file, figure in PICTURES["drawn_by"](name).items():
        assert figure.axes
        same_picture(Path(file).stem, PICTURES["described"](figure))


def test_the_picture_of_a_report_shows_the_report_of_today(tmp_path):
    same_picture("report", PICTURES["report"](tmp_path))


def same_picture(name, now):
    committed = json.loads(PICTURES["DRAWN"].read_text("utf-8"))[name]
    stale = f"docs/images/{name} is stale: run `make pictures`, and look at it"
    words, numbers = [], []
    for what in (committed, json.loads(json.dumps(now))):
        flat = list(leaves(what))
        words.append([leaf for leaf in flat if not isinstance(leaf, float)])
        numbers.append([leaf for leaf in flat if isinstance(leaf, float)])
    assert words[0] == words[1], stale
    assert numbers[1] == pytest.approx(numbers[0], rel=0.02, abs=1e-3, nan_ok=True), stale


def leaves(tree):
    """Words and numbers of nested lists and dicts, in order; whole numbers are words."""
    if isinstance(tree, dict | list):
        for part in tree.values() if isinstance(tree, dict) else tree:
            yield from leaves(part)
    else:
        yield tree


def test_the_reference_has_every_public_name_and_every_method_is_documented():
    listed = re.findall(r"^   ([\w.]+)$", (ROOT / "docs/api.md").read_text("utf-8"), re.MULTILINE)
    assert set(holdtrue.__all__) <= set(listed)
    for name in holdtrue.__all__:
        thing = getattr(holdtrue, name)
        parts = [thing, *(getattr(thing, part) for part in dir(thing) if not part.startswith("_"))]
        for part in parts if isinstance(thing, type) else [thing]:
            assert not callable(part) or part.__doc__, (name, part)


def test_no_document_speaks_of_one_machine():
    for path in [*DOCUMENTS, *EXAMPLES]:
        assert not re.search(r"/(?:home|root|work|tmp)/", path.read_text(encoding="utf-8")), path
