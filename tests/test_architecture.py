"""Who may import whom, and what `import holdtrue` may load."""

import ast
import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import holdtrue

SRC = Path(holdtrue.__file__).parent
ROOT = Path(__file__).parent.parent
FAMILIES = ("categories", "domains", "model_size", "sources")

# The table of layers stands beside the script that draws it.
DRAWING = runpy.run_path(str(ROOT / "docs" / "draw_modules.py"))
LAYERS = DRAWING["LAYERS"]
KERNEL_MAY_USE = {"numpy", "scipy", "numba", "holdtrue"}


def modules():
    return sorted(p for p in SRC.rglob("*.py") if p.name != "__init__.py")


KERNELS = [
    p
    for p in modules()
    if p.name in ("bayes.py", "bounds.py", "kernel.py", "shrunk.py", "steady.py")
]


def imported(path):
    """Modules named by the import statements of a file, wherever they stand in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            for alias in node.names:
                yield f"{node.module}.{alias.name}"


def layer(part):
    """Layer of a module or package directly below `holdtrue`, 0 at the top."""
    for height, names in enumerate(LAYERS):
        if part in names or (part == "__main__" and "cli" in names):
            return height
    raise AssertionError(f"{part} has no place in LAYERS")


def imports_of(path):
    """Modules of ours that a module imports, as parts of their path below `holdtrue`."""
    for name in imported(path):
        parts = tuple(name.split("."))
        if parts[0] != "holdtrue" or len(parts) == 1:
            continue
        # `from holdtrue.path import SelectionPath` names a thing in a module; find the module.
        parts = parts[1:]
        while parts and not SRC.joinpath(*parts).with_suffix(".py").exists():
            if SRC.joinpath(*parts, "__init__.py").exists():
                break
            parts = parts[:-1]
        if parts:
            yield parts


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SRC)))
def test_imports_go_downwards_only(path):
    box = path.relative_to(SRC).with_suffix("").parts[0]
    for parts in imports_of(path):
        assert layer(parts[0]) >= layer(box), f"{path} imports {'.'.join(parts)}"
        if box in FAMILIES and parts[0] in FAMILIES:
            assert parts[0] == box, f"{path}: families never import each other"
        assert parts[0] != "cli" or box in ("cli", "__main__"), f"{path} imports cli"


def test_the_drawing_of_the_modules_is_that_of_the_source():
    picture, now = DRAWING["PICTURE"], DRAWING["drawing"]()
    if os.environ.get("HOLDTRUE_WRITE_DOCS"):
        picture.write_text(now, encoding="utf-8")
    committed = picture.read_text(encoding="utf-8")
    assert committed == now, "run python docs/draw_modules.py"


def test_no_imports_in_a_circle():
    graph = {
        path.relative_to(SRC).with_suffix("").parts: set(imports_of(path)) for path in modules()
    }
    done = set()

    def visit(module, trail):
        assert module not in trail, " → ".join(".".join(m) for m in (*trail, module))
        if module not in done:
            for target in graph.get(module, ()):
                visit(target, (*trail, module))
            done.add(module)

    for module in graph:
        visit(module, ())


@pytest.mark.parametrize("path", KERNELS, ids=str)
def test_kernels_import_only_numerical_libraries(path):
    assert {name.split(".")[0] for name in imported(path)} - set(
        sys.stdlib_module_names
    ) <= KERNEL_MAY_USE


@pytest.mark.parametrize("path", KERNELS, ids=str)
def test_kernels_open_with_the_paper(path):
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    parts = ["Paper\n-----", "Notation\n---", "Where to find it\n---", "Departures\n---"]
    places = [text.find(part) for part in parts]
    assert -1 not in places
    assert places == sorted(places)


@pytest.mark.parametrize("path", [*SRC.glob("cli/*.py"), *SRC.glob("report/**/*.py")], ids=str)
def test_commands_and_reports_read_only_the_path_of_a_fit(path):
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    read = {node.attr for node in nodes if isinstance(getattr(node, "ctx", None), ast.Load)
            and isinstance(node, ast.Attribute)}  # fmt: skip
    fitted = {name for name in read if name.endswith("_") and not name.startswith("_")}
    assert fitted <= {"path_", "comparison_", "share_wrong_"}  # all are records


def test_locals_are_named_for_what_they_hold():
    vague = {"own", "found", "made", "said", "told", "there"}
    for path in modules():
        names = {
            node.id
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Name)
        }
        assert not names & vague, f"{path}: {names & vague}"


def test_importing_holdtrue_stays_light():
    heavy = "matplotlib numba duckdb dask pyspark polars pandas onnxruntime pyarrow"
    code = f"import sys, holdtrue; print([m for m in {heavy.split()} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=1800
    )
    assert done.stdout.strip() == "[]"


def test_columns_are_ranked_without_scikit_learn():
    code = """import sys, pyarrow as pa
from holdtrue import rank_columns
data = pa.table({"plan": ["free", "free", "paid"] * 50, "n": range(150), "left": [1, 1, 0] * 50})
print(len(rank_columns(data, "left", n_jobs=2)), "sklearn" in sys.modules)"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=1800
    )
    assert done.stdout.strip() == "2 False"


@pytest.mark.parametrize("names", [["-t", "lft"], ["-t", "left", "--domain", "sit"]])
@pytest.mark.parametrize("command", ["rank", "select"])
def test_a_misspelt_column_is_refused_without_scikit_learn(command, names, tmp_path):
    (tmp_path / "t.csv").write_text("left,site,x\n" + "0,a,1\n1,b,2\n" * 9)
    code = f"""import sys
from holdtrue.cli.app import main
sys.argv = ["holdtrue", {command!r}, "t.csv", *{names!r}]
try:
    main()
except SystemExit as ended:
    print(ended.code, "sklearn" in sys.modules)"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=1800,
    )
    assert done.stdout.strip() == "2 False"


def test_columns_of_a_file_are_ranked_without_pandas_and_joblib(tmp_path):
    rng = np.random.default_rng(0)
    n = 1000
    columns = {
        "plan": pa.array(["free", None, "paid", "free"] * (n // 4)),
        "id": pa.array([f"u{i}" for i in range(n)]),
        "n": pa.array(rng.integers(0, 9, n), mask=rng.random(n) < 0.1),
        "x": pa.array(rng.normal(size=n)),
        "is_new": pa.array(rng.random(n) < 0.5, mask=rng.random(n) < 0.1),
        "day": pa.array(rng.integers(0, 99, n).astype("datetime64[D]")),
        "left": pa.array([False, True] * (n // 2)),
    }
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    code = f"""import sys
from holdtrue import rank_columns
ranking = rank_columns({str(tmp_path / "rows.parquet")!r}, "left", n_jobs=2)
print(len(ranking), [name for name in ("pandas", "joblib") if name in sys.modules])"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=1800
    )
    assert done.stdout.strip() == "6 []"


def test_public_names_are_those_of_the_package():
    for name in holdtrue.__all__:
        assert hasattr(holdtrue, name)
        assert getattr(holdtrue, name).__doc__
