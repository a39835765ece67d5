"""Who may import whom, and what `import holdtrue` may load."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import holdtrue

SRC = Path(holdtrue.__file__).parent
FAMILIES = ("categories", "domains", "model_size", "sources")

# Lower layers first; a module imports only from layers below its own. Families are kept apart.
LAYERS = [
    {"charts", "files", "grouping", "objects", "progress", "validation"},
    {"path"},
    {"moments", "values"},
    {"tables", "tally"},
    {"features", "loops", "sums"},
    {"datasets", "formats", "hinge", "kernel", "numeric", "tree"},
    {"bases", "bayes", "bounds", "counting", "folds", "growing", "new_rows", "pool", "targets"},
    {"columns", "held_out", "large", "leave_one_out", "table"},
    {"base"},
    {"estimator", "ranking", "rivals", "rules", "similarity", "tree_estimator"},
    {"report"},
    {"demo", "question"},
    {"cli"},
    {"__main__"},
]
PARTS = ("report", "tables")  # one layer each
KERNEL_MAY_USE = {"numpy", "scipy", "numba", "holdtrue"}


def modules():
    return sorted(p for p in SRC.rglob("*.py") if p.name != "__init__.py")


KERNELS = [p for p in modules() if p.name in ("kernel.py", "bayes.py", "bounds.py")]


def imported(path):
    """Modules named by the import statements of a file, wherever they stand in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            for alias in node.names:
                yield f"{node.module}.{alias.name}"


def layer(parts):
    """Layer of a module of ours, given its path below `holdtrue`."""
    name = parts[0] if parts[0] in PARTS or len(parts) == 1 else parts[1]
    for height, names in enumerate(LAYERS):
        if name in names:
            return height
    raise AssertionError(f"{'.'.join(parts)} has no place in LAYERS")


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SRC)))
def test_imports_go_downwards_only(path):
    own = path.relative_to(SRC).with_suffix("").parts
    for name in imported(path):
        if not name.startswith("holdtrue."):
            continue
        parts = tuple(name.split(".")[1:])
        if parts[0] in FAMILIES and own[0] in FAMILIES:
            assert parts[0] == own[0], f"{path}: families never import each other ({name})"
        # `from holdtrue.path import SelectionPath` names a thing in a module; find the module.
        while parts and not (SRC.joinpath(*parts).with_suffix(".py")).exists():
            parts = parts[:-1]
        if parts and parts != own and parts[0] != own[0]:
            assert layer(parts) < layer(own), f"{path} imports {name}"
        elif parts and parts != own:
            assert own[0] in PARTS or layer(parts) < layer(own), f"{path} imports {name}"


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


def test_importing_holdtrue_stays_light():
    heavy = "matplotlib numba duckdb dask pyspark polars pandas onnxruntime pyarrow"
    code = f"import sys, holdtrue; print([m for m in {heavy.split()} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == "[]"


def test_public_names_are_those_of_the_package():
    for name in holdtrue.__all__:
        assert hasattr(holdtrue, name)
        assert getattr(holdtrue, name).__doc__
