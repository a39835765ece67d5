"""ONNX files that would read other files, declare too much, or never end."""

import contextlib
import os
import random
import signal
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from holdtrue import SourcePool
from holdtrue.errors import SpokenError
from holdtrue.sources import formats

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

X = np.random.default_rng(0).normal(size=(6, 2)).astype(np.float32)


def save(graph, path):
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    path.write_bytes(model.SerializeToString())
    return path


def rows(width=2):
    return helper.make_tensor_value_info("X", TensorProto.FLOAT, [None, width])


def table(name="Y", width=1):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, width])


def linear(path, location=None, weights=(1.0, 2.0), where="initializer"):
    """``Y = X w``; w is in the file, or in the file at ``location``."""
    w = numpy_helper.from_array(np.array(weights, dtype=np.float32).reshape(2, 1), "w")
    if location is not None:
        w.ClearField("raw_data")
        w.data_location = TensorProto.EXTERNAL
        for key, value in (("location", str(location)), ("offset", "0"), ("length", "8")):
            entry = w.external_data.add()
            entry.key, entry.value = key, value
    nodes = [helper.make_node("MatMul", ["X", "w"], ["Y"])]
    if where == "constant":
        nodes.insert(0, helper.make_node("Constant", [], ["w"], value=w))
    tensors = [w] if where == "initializer" else []
    return save(helper.make_graph(nodes, "g", [rows()], [table()], tensors), path)


def test_a_plain_model_gives_its_scores(tmp_path):
    pool = SourcePool([linear(tmp_path / "m.onnx")])
    np.testing.assert_allclose(pool.scores(X)[:, 0], X @ [1, 2], rtol=1e-6)


@pytest.mark.parametrize("where", ["initializer", "constant"])
def test_weights_in_other_files_are_refused_by_default(where, tmp_path):
    np.array([1, 2], dtype=np.float32).tofile(tmp_path / "w.bin")
    file = linear(tmp_path / "m.onnx", "w.bin", where=where)
    with pytest.raises(ValueError, match=r"keeps its weights in other files, such as 'w.bin'"):
        _ = SourcePool([file]).names


def test_weights_beside_the_model_can_be_allowed_and_are_part_of_its_key(tmp_path):
    file = linear(tmp_path / "m.onnx", "w.bin")
    for weights in ([1, 2], [3, -1]):
        np.array(weights, dtype=np.float32).tofile(tmp_path / "w.bin")
        pool = SourcePool([file], allow_external_data=True, cache=tmp_path / "cache")
        np.testing.assert_allclose(pool.scores(X)[:, 0], X @ weights, rtol=1e-6)


def test_a_file_that_changes_after_it_was_opened_is_kept_as_what_it_was(tmp_path):
    file, cache = linear(tmp_path / "m.onnx"), tmp_path / "cache"
    pool = SourcePool([file], cache=cache)
    assert pool.names == ["m"]  # opens it
    linear(file, weights=(5.0, 7.0))
    np.testing.assert_allclose(pool.scores(X)[:, 0], X @ [1, 2], rtol=1e-6)
    new = SourcePool([file], cache=cache).scores(X)[:, 0]
    np.testing.assert_allclose(new, X @ [5, 7], rtol=1e-6)


@pytest.mark.parametrize("kind", ["absolute", "above", "link", "folder link"])
def test_files_outside_the_models_folder_are_never_read(kind, tmp_path):
    secret = tmp_path / "secret.bin"
    np.array([7, 7], dtype=np.float32).tofile(secret)
    folder = tmp_path / "shelf"
    folder.mkdir()
    location = {"absolute": str(secret), "above": "../secret.bin"}.get(kind, "w.bin")
    if kind == "link":
        (folder / "w.bin").symlink_to(secret)
    if kind == "folder link":
        (folder / "inner").symlink_to(tmp_path)
        location = "inner/secret.bin"
    file = linear(folder / "m.onnx", location)
    with pytest.raises(ValueError, match=r"outside its own folder. Such files are never read"):
        _ = SourcePool([file], allow_external_data=True).names
    missing = linear(folder / "n.onnx", "none.bin")
    with pytest.raises(ValueError, match=r"'none\.bin', which is not a file"):
        _ = SourcePool([missing], allow_external_data=True).names


@pytest.mark.attack
@pytest.mark.parametrize("width", [10**7, 0])
def test_a_model_that_declares_too_many_scores_is_refused(width, tmp_path):
    graph = helper.make_graph(
        [helper.make_node("Identity", ["X"], ["Y"])], "g", [rows(None)], [table(width=width)]
    )
    with pytest.raises(ValueError, match=rf"declares {width:,} scores a row, not 1 to 50,000"):
        _ = SourcePool([save(graph, tmp_path / "m.onnx")]).names


def test_a_model_that_declares_too_many_outputs_is_refused(tmp_path):
    names = [f"Y{i}" for i in range(200)]
    nodes = [helper.make_node("Identity", ["X"], [name]) for name in names]
    graph = helper.make_graph(nodes, "g", [rows()], [table(name, 2) for name in names])
    with pytest.raises(ValueError, match="cannot be opened as ONNX: more than 100 outputs"):
        _ = SourcePool([save(graph, tmp_path / "m.onnx")]).names


def endless(path):
    """A loop whose condition is always true."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Identity", ["x"], ["y"])],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 2]),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 2]),
        ],
    )
    true = numpy_helper.from_array(np.array(True), "true")
    one = numpy_helper.from_array(np.ones((2, 1), dtype=np.float32), "one")
    nodes = [
        helper.make_node("Loop", ["", "true", "X"], ["Z"], body=body),
        helper.make_node("MatMul", ["Z", "one"], ["Y"]),
    ]
    return save(helper.make_graph(nodes, "g", [rows()], [table()], [true, one]), path)


def runs():
    return [thread for thread in threading.enumerate() if thread.name.endswith("(work)")]


def no_run_is_left():
    for thread in runs():
        thread.join(300)
    return not runs()


@pytest.mark.attack
def test_a_model_that_never_ends_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "MAX_SECONDS", 0.3)
    pool = SourcePool([("endless", endless(tmp_path / "m.onnx"))])
    with pytest.raises(ValueError, match=r"source 0 \('endless'\) did not answer within 0.3 sec"):
        pool.scores(X)
    assert no_run_is_left()


@pytest.mark.attack
def test_a_model_that_never_ends_can_be_interrupted(tmp_path, monkeypatch):
    monkeypatch.setattr(formats, "MAX_SECONDS", 60.0)
    # A shell's background jobs ignore it, and then Python does too.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    pool = SourcePool([("endless", endless(tmp_path / "m.onnx"))])
    over = threading.Event()

    def interrupt():
        while not runs() and not over.wait(0.01):
            pass
        if not over.is_set():
            os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            pool.scores(X)
    finally:
        over.set()
        thread.join()
        signal.signal(signal.SIGINT, before)
    assert no_run_is_left()


@pytest.mark.attack
@given(seed=st.integers(0, 2**32))
@settings(max_examples=100, phases=[Phase.generate])
def test_bytes_that_are_no_model_are_refused_in_a_sentence(seed):
    draw = random.Random(seed)
    with TemporaryDirectory() as folder:
        file = linear(Path(folder) / "bad.onnx")
        content = bytearray(file.read_bytes())
        for _ in range(draw.randrange(1, 6)):
            content[draw.randrange(1, len(content))] = draw.randrange(256)
        file.write_bytes(content[: draw.randrange(2, len(content) + 1)])
        with contextlib.suppress(SpokenError):
            scores = SourcePool.from_folder(folder).scores(X)  # some of the models are whole
            assert scores.shape == (6, 1)
            assert np.isfinite(scores).all()
