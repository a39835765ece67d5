"""Change one operator, comparison or constant at a time and see whether a test notices.

    python tests/mutate.py SECONDS [SEED] [FILE ...]
    python tests/mutate.py named

Mutants are drawn at random, one file after the other, until the CPU time is up; each runs the tests
of its file in a forked process. Survivors are printed as they come, a table at the end. ``named``
tries the changes in `NAMED`, which tests once let pass. Needs Linux.
"""

from __future__ import annotations

import ast
import copy
import os
import random
import resource
import signal
import sys
from collections import Counter
from importlib import import_module
from importlib.machinery import SourceFileLoader
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "holdtrue"
CPU_SECONDS = 60
# The tests that must notice a change in a file.
FILES = {
    "targets.py": "test_targets.py",
    "categories/kernel.py": "categories/test_kernel.py",
    "categories/estimate.py": "categories/test_losses.py categories/test_score.py",
    "categories/score.py": "categories/test_losses.py categories/test_score.py",
    "categories/shrunk.py": "categories/test_shrunk.py categories/test_losses.py",
    "categories/tree.py": "categories/test_shrunk_tree.py categories/test_tree.py",
    "categories/shrunk_mean.py": "categories/test_shrunk.py categories/test_losses.py",
    "categories/grouped.py": "categories/test_shrunk.py categories/test_losses.py",
    "domains/kernel.py": "domains/test_kernel.py",
    "domains/steady.py": "domains/test_steady.py",
    "model_size/kernel.py": "model_size/test_kernel.py",
    "model_size/bayes.py": "model_size/test_bayes.py model_size/test_average.py",
    "model_size/average.py": "model_size/test_average.py",
    "sources/kernel.py": "sources/test_kernel.py",
    "sums/counts.py": "sums",
    "sums/moments.py": "sums",
    "sums/profile.py": "sums",
    "sums/group_profile.py": "sums/test_profile.py categories/test_losses.py",
    "report/answers/select.py": "report/test_answers.py",
    "report/answers/size.py": "report/test_answers.py",
}
# Changes that a test must notice: file, code, and what it becomes.
NAMED = [
    ("sources/kernel.py", "- 2 * share * slack", "- 0 * share * slack"),  # of float32
    ("model_size/kernel.py", "n ** (-1 / (n_inputs + 4))", "n ** (-1 / (n_inputs + 5))"),  # Parzen
    ("model_size/kernel.py", "n ** (-1 / (n_inputs + 4))", "n ** (-2 / (n_inputs + 4))"),
    ("targets.py", "_MAX_WHOLE_CLASSES = 20", "_MAX_WHOLE_CLASSES = 21"),
    ("targets.py", "_MAX_WHOLE_CLASSES = 20", "_MAX_WHOLE_CLASSES = 19"),
    ("targets.py", "_ROWS_PER_CLASS = 5", "_ROWS_PER_CLASS = 6"),
    ("targets.py", "_ROWS_PER_CLASS = 5", "_ROWS_PER_CLASS = 4"),
    ("targets.py", "MAX_CLASSES = 100", "MAX_CLASSES = 101"),
    ("report/answers/select.py", "_CHANCE = 4.0", "_CHANCE = 5.0"),
    ("report/answers/select.py", "_CHANCE = 4.0", "_CHANCE = 3.0"),
    ("report/answers/select.py", "_STRONG = 0.1", "_STRONG = 0.15"),
    ("report/answers/size.py", "len(sizes) // 5", "len(sizes) // 4"),
    ("report/answers/size.py", "len(sizes) // 5", "len(sizes) // 6"),
]
COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


def changed(node: ast.AST) -> ast.AST | None:
    """The node with one thing changed; None where there is nothing to change."""
    node = copy.deepcopy(node)
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        node.ops[0] = COMPARISONS[type(node.ops[0])]()
    elif isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in OPERATORS:
        node.op = OPERATORS[type(node.op)]()
    elif isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.USub, ast.Invert)):
        return node.operand
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        node.value = (
            node.value * 1.5 if isinstance(node.value, float) and node.value else node.value + 1
        )
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        node.value = not node.value
    else:
        return None
    return node


def all_mutants(tree: ast.Module) -> list[tuple[int, ast.AST, str, ast.AST]]:
    """Line, parent, field and new node of every change; annotations and raised errors stay."""
    mutants, waiting = [], [(tree, name, value) for name, value in ast.iter_fields(tree)]
    while waiting:
        parent, name, value = waiting.pop()
        for node in value if isinstance(value, list) else [value]:
            if not isinstance(node, ast.AST) or isinstance(node, (ast.Raise, ast.JoinedStr)):
                continue
            new = changed(node)
            if new is not None:
                mutants.append((node.lineno, parent, name, node, new))
            skipped = {"annotation", "returns", "decorator_list"}
            waiting += [(node, n, v) for n, v in ast.iter_fields(node) if n not in skipped]
    return mutants


def mutated(path: Path, rng: random.Random) -> tuple[str, ast.Module]:
    """A change in words, and the module with it."""
    tree = ast.parse(path.read_text("utf-8"))
    line, parent, name, old, new = rng.choice(all_mutants(tree))
    change = f"{path.relative_to(SOURCE)}:{line}: {ast.unparse(old)} -> {ast.unparse(new)}"
    value = getattr(parent, name)
    if isinstance(value, list):
        value[[each is old for each in value].index(True)] = new
    else:
        setattr(parent, name, new)
    return change, ast.fix_missing_locations(tree)


def try_named() -> int:
    """Try the changes in `NAMED`; the number of those that no test notices."""
    n_survivors = 0
    for name, old, new in NAMED:
        text = (SOURCE / name).read_text("utf-8")
        assert text.count(old) == 1, f"{name}: expected {old!r} once"
        outcome = run(SOURCE / name, ast.parse(text.replace(old, new)), tests_of(name))
        print(f"{outcome}: {name}: {old} -> {new}", flush=True)
        n_survivors += outcome == "survived"
    return n_survivors


def tests_of(name: str) -> list[str]:
    return [str(TESTS / each) for each in FILES[name].split()]


def run(path: Path, tree: ast.Module, tests: list[str]) -> str:
    """What becomes of a mutant: killed, survived or too slow."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        source_to_code = SourceFileLoader.source_to_code
        get_code = SourceFileLoader.get_code

        def compiled(self, fullname):  # past the cache of bytecode
            if Path(self.path) != path:
                return get_code(self, fullname)
            return source_to_code(self, tree, self.path)

        SourceFileLoader.get_code = compiled
        options = ["-q", "-x", "-n", "0", "-p", "no:cacheprovider"]
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
        os._exit(int(pytest.main([*options, *tests])))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code in (-signal.SIGXCPU, -signal.SIGKILL):
        return "too slow"
    return "survived" if code == 0 else "killed"


def cpu_time() -> float:
    """Seconds that the mutants have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(seconds: float, seed: int = 0, *names: str) -> int:
    """Draw mutants until the CPU time is up."""
    rng, table = random.Random(seed), Counter()
    tests = {name: tests_of(name) for name in names or FILES}
    while cpu_time() < seconds:
        for name, its_tests in tests.items():
            path = SOURCE / name
            if not any(each == name for each, _ in table):
                unchanged = ast.parse(path.read_text("utf-8"))
                if run(path, unchanged, its_tests) != "survived":
                    print(f"{name}: its tests fail without a change")
                    return 1
            change, tree = mutated(path, rng)
            outcome = run(path, tree, its_tests)
            table[name, outcome] += 1
            print(f"{outcome}: {change}", flush=True)
            if cpu_time() > seconds:
                break
    outcomes = ("killed", "survived", "too slow")
    print("| file | " + " | ".join(outcomes) + " |\n|---|--:|--:|--:|")
    for name in names or FILES:
        print(f"| {name} | " + " | ".join(str(table[name, each]) for each in outcomes) + " |")
    return 0


if __name__ == "__main__":
    os.environ["CI"] = "true"  # hypothesis then draws the same examples
    # Loaded once, so that a mutant starts sooner; holdtrue itself is loaded by each.
    for library in ("hypothesis", "pandas", "scipy.stats", "sklearn.linear_model"):
        import_module(library)
    if sys.argv[1] == "named":
        sys.exit(try_named())
    sys.exit(main(float(sys.argv[1]), *map(int, sys.argv[2:3]), *sys.argv[3:]))
