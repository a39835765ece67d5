"""Files of models that are not what they say: a sentence, and nothing is run."""

import importlib.util
import io
import pickle
import random
import zipfile

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression

from holdtrue import SteadyRidgeRegressor, deploy, load_model
from holdtrue.errors import SpokenError

pytestmark = [
    pytest.mark.attack,
    pytest.mark.skipif(not importlib.util.find_spec("skops"), reason="skops is missing"),
]
ROWS = pd.DataFrame(
    {"dose": np.arange(40) % 7 / 3, "plan": ["a", "b", None, "d"] * 10, "site": list("NSWE") * 10}
)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Files of a linear model, of trees and of a classifier."""
    folder = tmp_path_factory.mktemp("models")
    target = ROWS["dose"] + (ROWS["plan"] == "a")
    numbers, classes = ROWS.assign(y=target), ROWS.assign(y=np.where(target > 1, "yes", "no"))
    trees = HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=2)
    deploy(SteadyRidgeRegressor(), numbers, "y", groups="site").save(folder / "0.skops")
    deploy(trees, numbers, "y").save(folder / "1.skops")
    deploy(LogisticRegression(), classes, "y").save(folder / "2.skops")
    return folder


@pytest.fixture
def file(saved, tmp_path):
    (tmp_path / "model.skops").write_bytes((saved / "0.skops").read_bytes())
    return tmp_path / "model.skops"


class Hostile:
    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return self.trace.touch, ()


def damaged(file, change):
    """The archive with its members changed."""
    out = io.BytesIO()
    with zipfile.ZipFile(file) as archive, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        members = {name: archive.read(name) for name in archive.namelist()}
        for name, content in change(members).items():
            new.writestr(name, content)
    return out.getvalue()


def changed_schema(old, new):
    def change(members):
        text = members["schema.json"].decode()
        assert old in text
        return {**members, "schema.json": text.replace(old, new).encode()}

    return change


RIDGE = '"SteadyRidgeRegressor"'
ATTACKS = {
    "another type": (changed_schema(RIDGE, '"Popen"'), "which no model of holdtrue has"),
    "a function": (
        changed_schema('"__loader__": "TupleNode"', '"__loader__": "FunctionNode"'),
        r"FunctionNode.*which no model",
    ),
    "a method": (
        changed_schema('"__loader__": "DictNode"', '"__loader__": "MethodNode"'),
        r"MethodNode.*which no model",
    ),
    "no arrays": (lambda m: {"schema.json": m["schema.json"]}, "cannot be loaded"),
    "no schema": (lambda m: {"a": b"1"}, "is a zip archive, not a skops file"),
    "not JSON": (lambda m: {"schema.json": b"{"}, "cannot be loaded"),
    "nested": (lambda m: {"schema.json": b'{"a":' * 90_000 + b"1" + b"}" * 90_000}, "cannot be"),
    "a bomb": (lambda m: {**m, "x.npy": bytes(1 << 26)}, "would unpack to 67,.* bytes"),
    "a promise of text": (changed_schema('"content": "0.95"', '"content": "\\"x\\""'), "cannot be"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_hostile_files_are_refused_in_a_sentence(attack, file):
    change, message = ATTACKS[attack]
    file.write_bytes(damaged(file, change))
    with pytest.raises(ValueError, match=f"^load_model: model.skops .*{message}"):
        load_model(file)


def test_pickles_and_cut_files_are_refused_and_run_nothing(file, tmp_path):
    whole = file.read_bytes()
    for stop in (0, 1, 30, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:stop])
        with pytest.raises(ValueError, match=r"is empty|not a skops file|cannot be loaded"):
            load_model(file)
    trace = tmp_path / "trace"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        file.write_bytes(pickle.dumps(Hostile(trace), protocol))
        with pytest.raises(ValueError, match="is not a skops file, whatever its name says"):
            load_model(file)
    assert not trace.exists()
    with pytest.raises(FileNotFoundError, match=r"no file 'none\.skops'"):
        load_model("none.skops")


@settings(max_examples=60)
@given(which=st.integers(0, 2), seed=st.integers(0, 2**32))
def test_a_damaged_file_gives_a_model_or_a_sentence(which, seed, saved, tmp_path):
    rng = random.Random(seed)

    def change(members):
        for _ in range(rng.choice([1, 1, 2, 5])):
            name = rng.choice(sorted(members))
            content, how = bytearray(members[name]), rng.random()
            place = rng.randrange(len(content) or 1)
            if how < 0.6 and content:
                content[place] = rng.randrange(256)
            elif how < 0.8:
                del content[place : place + rng.choice([1, 8, 100])]
            elif how < 0.9:
                content = bytearray(members[rng.choice(sorted(members))])
            elif len(members) > 1:
                del members[name]
                continue
            members[name] = bytes(content)
        return members

    file = tmp_path / "model.skops"
    file.write_bytes(damaged(saved / f"{which}.skops", change))
    sentence = "A model."
    try:
        assert len(load_model(file).predict(ROWS)) == len(ROWS)
    except SpokenError as error:
        sentence = str(error)
    assert "\n" not in sentence
    assert sentence.endswith((".", "?"))
