"""Pools of sources that lie, break or were changed: right scores, or an error that names them."""

import json
import random
import warnings
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from holdtrue import SourcePool

pytestmark = pytest.mark.attack
X = np.random.default_rng(0).normal(size=(12, 3))
GOOD = X @ [1.0, -2.0, 0.5]
fuzzed = settings(max_examples=100, phases=[Phase.generate])


def good(X):
    return X @ [1.0, -2.0, 0.5]


def check_is_ours(error):
    assert str(error).startswith("SourcePool: "), error


def check(pool, n_good):
    """Scores of a pool whose first sources are good: finite, the good ones as they should be."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # sources that are left out
            scores = pool.scores(X)
    except ValueError as error:
        check_is_ours(error)
        return
    assert scores.shape == (len(X), len(pool.names))
    assert np.isfinite(scores).all()
    for column in range(n_good):
        np.testing.assert_array_equal(scores[:, column], GOOD)


# --- models in memory ---

RETURNED = {
    "masked": lambda X: np.ma.masked_less(X[:, 0], 0),
    "whole mask": lambda X: np.ma.masked_less(X[:, 0], -99),
    "nan": lambda X: np.full(len(X), np.nan),
    "infinite": lambda X: np.full(len(X), -np.inf),
    "large": lambda X: np.full(len(X), 1e308),
    "small": lambda X: X[:, 0] * 1e-310,
    "complex": lambda X: X[:, 0] * 1j,
    "text": lambda X: np.array(["a"] * len(X)),
    "numbers as text": lambda X: X[:, 0].astype(str),
    "objects": lambda X: np.array([object()] * len(X)),
    "ragged": lambda X: [[1]] * (len(X) - 1) + [[1, 2]],
    "dates": lambda X: np.array(["2020-01-01"] * len(X), dtype="M8[D]"),
    "short": lambda X: X[1:, 0],
    "long": lambda X: np.append(X[:, 0], 1.0),
    "wide": lambda X: X,
    "10^7 scores a row": lambda X: np.broadcast_to(1.0, (len(X), 10**7)),
    "scalar": lambda X: 1.0,
    "nothing": lambda X: None,
    "generator": lambda X: (1.0 for _ in X),
    "sparse": lambda X: sparse.csr_matrix(X[:, :1]),
    "truth": lambda X: X[:, 0] > 0,
    "itself": lambda X: X[:, 0],
}


def changes_its_rows(X):
    X[:] = 0
    return X[:, 0]


def raising(kind):
    def source(X):
        raise kind("a\nb \ud800 <b>")

    return source


class ManyClasses:
    classes_ = range(10**6)

    def predict(self, X):
        return np.zeros(len(X))

    def decision_function(self, X):
        return np.zeros((len(X), 10**6))


SOURCES = {
    **RETURNED,
    "changes": changes_its_rows,
    "many classes": ManyClasses(),
    **{kind.__name__: raising(kind) for kind in (ValueError, KeyError, MemoryError, RecursionError,
                                                 AssertionError, StopIteration, OSError)},
}  # fmt: skip


@given(names=st.lists(st.sampled_from(list(SOURCES)), min_size=1, max_size=3, unique=True),
       on_error=st.sampled_from(["raise", "skip"]), keep=st.booleans())  # fmt: skip
@fuzzed
def test_sources_that_return_anything_are_scored_or_named(names, on_error, keep):
    with TemporaryDirectory() as folder:
        pool = SourcePool(
            [("good", good), *((name, SOURCES[name]) for name in names)],
            on_error=on_error,
            cache=folder if keep else None,
        )
        before = X.copy()
        check(pool, n_good=1)
        np.testing.assert_array_equal(X, before)


@given(keys=st.lists(st.one_of(st.integers(-3, 5), st.text(max_size=3), st.none(), st.floats()),
                     max_size=3))  # fmt: skip
@fuzzed
def test_columns_of_any_name_are_scored_or_refused(keys):
    try:
        pool = SourcePool.from_columns(keys)
    except (TypeError, ValueError) as error:
        check_is_ours(error)
    else:
        check(pool, n_good=0)


# --- files ---


@pytest.fixture(scope="module")
def skops_file(tmp_path_factory):
    from skops import io

    path = tmp_path_factory.mktemp("skops") / "model.skops"
    io.dump(LogisticRegression().fit(X, GOOD > 0), path)
    return path.read_bytes()


ODD = [None, True, -1, 10**30, "", "os", "system", "builtins", "eval", "__reduce__", "../../x", [],
       {}, [[]], "numpy", "ndarray", "MethodNode", "FunctionNode"]  # fmt: skip


def with_other_schema(content, draw):
    """The archive with one part of its schema replaced or removed, and sound otherwise."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.zip"
        path.write_bytes(content)
        with zipfile.ZipFile(path) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        node = record = json.loads(parts["schema.json"])
        while True:
            key = draw.choice(list(node) if isinstance(node, dict) else range(len(node)))
            if not (isinstance(node[key], (dict, list)) and node[key]) or draw.random() < 0.1:
                break
            node = node[key]
        if draw.random() < 0.2:
            del node[key]
        else:
            node[key] = draw.choice(ODD)
        parts["schema.json"] = json.dumps(record).encode()
        with zipfile.ZipFile(path, "w") as archive:
            for name, part in parts.items():
                archive.writestr(name, part)
        return path.read_bytes()


@given(seed=st.integers(0, 2**32), how=st.sampled_from(["bytes", "cut", "schema", "schema"]))
@fuzzed
def test_skops_files_that_were_changed_are_scored_or_refused(seed, how, skops_file):
    draw, content = random.Random(seed), skops_file
    if how == "schema":
        content = with_other_schema(content, draw)
    elif how == "cut":
        content = content[: draw.randrange(len(content))]
    else:
        content = bytearray(content)
        for _ in range(draw.randrange(1, 6)):
            content[draw.randrange(len(content))] = draw.randrange(256)
    with TemporaryDirectory() as folder:
        Path(folder, "model.skops").write_bytes(content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(SourcePool.from_folder(folder), n_good=0)
        assert [path.name for path in Path(folder).iterdir()] == ["model.skops"]
