"""ONNX files as sources: what a file declares is looked at before anything is loaded.

A model is data, but data that can name other files, declare millions of outputs, and loop for ever.
So the file is first read as what it is, a Protocol Buffers message, by a few lines of our own.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from holdtrue.errors import MissingPackageError
from holdtrue.sources.formats import (
    MAX_WIDTH,
    Allowed,
    Output,
    Refused,
    check_format,
    log_odds,
    sentence,
)

# Outputs of a graph; a model has a label and a table of numbers.
_MAX_OUTPUTS = 100
_MAX_DEPTH = 32
# Seconds that a model may take for one batch of rows.
MAX_SECONDS = 600.0
_POLL = 0.05
# Seconds to wait for the end of a run that was told to stop.
_PATIENCE = 10.0

# Fields of ONNX messages that lead to tensors: {message: {field: message}}.
_PATHS: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
_GRAPH_OUTPUT = 12


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def _fields(data: memoryview) -> Iterator[tuple[int, memoryview | None]]:
    """Number of each field of a message, and its bytes where it has a length."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        value = None
        if wire == 0:
            _, at = _varint(data, at)
        elif wire in (1, 5):
            at += 8 if wire == 1 else 4
        elif wire == 2:
            length, at = _varint(data, at)
            if length > len(data) - at:
                raise ValueError("a field that is longer than the file")
            value, at = data[at : at + length], at + length
        else:
            raise ValueError(f"a field of the unknown type {wire}")
        yield tag >> 3, value


def _external_files(data: memoryview, kind: str, depth: int = 0) -> Iterator[str]:
    """Names of the files in which tensors of a message keep their data."""
    if depth > _MAX_DEPTH:
        raise ValueError(f"graphs nested more than {_MAX_DEPTH} deep")
    n_outputs = 0
    for number, value in _fields(data):
        if kind == "graph" and number == _GRAPH_OUTPUT:
            n_outputs += 1
            if n_outputs > _MAX_OUTPUTS:
                raise ValueError(f"more than {_MAX_OUTPUTS} outputs")
        inner = _PATHS.get(kind, {}).get(number)
        if inner is None or value is None:
            continue
        if inner == "entry":
            entry = {key: bytes(text or b"") for key, text in _fields(value)}
            if entry.get(1) == b"location":
                yield entry.get(2, b"").decode("utf-8", "replace")
        else:
            yield from _external_files(value, inner, depth + (inner == "graph"))


def _checked_files(file: Path, content: bytes, allowed: Allowed) -> list[Path]:
    """The files beside the model that hold its weights; refused unless that is allowed."""
    try:
        names = sorted(set(_external_files(memoryview(content), "model")))
    except (ValueError, IndexError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "it ends in the middle"
        raise Refused(f"({file.name}) cannot be opened as ONNX: {sentence(reason)}") from error
    if names and not allowed.external_data:
        raise Refused(
            f"({file.name}) keeps its weights in other files, such as {names[0]!r}, which are not "
            "read by default. Save the model in one file, or pass allow_external_data=True to read "
            "files of its own folder."
        )
    folder = file.resolve().parent
    paths = []
    for name in names:
        path = folder / name
        if Path(name).is_absolute() or not path.resolve().is_relative_to(folder):
            raise Refused(
                f"({file.name}) keeps its weights in {name!r}, outside its own folder. Such files "
                "are never read."
            )
        if not path.is_file():
            raise Refused(f"({file.name}) keeps its weights in {name!r}, which is not a file.")
        paths.append(path)
    return paths


def _fingerprint(content: bytes, beside: list[Path]) -> str:
    digest = hashlib.sha256(content)
    for path in beside:
        digest.update(path.name.encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _run(session: Any, options: Any, output: str, inputs: dict[str, np.ndarray]) -> Any:
    """Run a session in a thread, so that it can be interrupted and ends after `MAX_SECONDS`."""
    outcome: list[Any] = []
    done = threading.Event()

    def work() -> None:
        try:
            outcome.append(session.run([output], inputs, options)[0])
        except Exception as error:
            outcome.append(error)
        finally:
            done.set()

    thread = threading.Thread(target=work, daemon=True)
    try:
        thread.start()  # which may be interrupted too
        # An event, not `thread.join`: interrupted, that would call the thread ended.
        waited = 0.0
        while not done.wait(_POLL) and waited < MAX_SECONDS:
            waited += _POLL
    finally:
        is_late = not done.is_set()
        if is_late:
            # onnxruntime looks at this flag between two operations. A process must not end while
            # the thread runs.
            options.terminate = True
            done.wait(_PATIENCE)
    if is_late:
        raise Refused(f"did not answer within {MAX_SECONDS:g} seconds.")
    thread.join()
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    return outcome[0]


def onnx_outputs(name: str, file: Path, allowed: Allowed) -> list[Output]:
    """Outputs of an ONNX model: the first table of numbers that it gives."""
    # The first field of an ONNX model is its ir_version: tag 0x08.
    check_format(file, starts=(b"\x08",), wanted="an ONNX model")
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingPackageError(
            f"reading {file.name} needs onnxruntime, which is not installed. "
            "Run `pip install 'holdtrue[onnx]'`."
        ) from error
    content = file.read_bytes()
    beside = _checked_files(file, content, allowed)
    # Of what is loaded here: the file may be another one when a fit asks for scores.
    fingerprint = _fingerprint(content, beside)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.add_session_config_entry("session.load_model_format", "ONNX")
    try:
        session = onnxruntime.InferenceSession(
            file if beside else content,  # what was looked at is what is loaded
            sess_options=options,
            providers=["CPUExecutionProvider"],
            # A constant that takes for ever to compute would be computed while loading.
            disabled_optimizers=["ConstantFolding"],
        )
    except Exception as error:
        raise Refused(f"({file.name}) cannot be opened as ONNX: {sentence(error)}") from error
    inputs, outputs = session.get_inputs(), session.get_outputs()
    floats = [o for o in outputs if o.type in ("tensor(float)", "tensor(double)")]
    if len(inputs) != 1 or inputs[0].type not in ("tensor(float)", "tensor(double)"):
        raise Refused(f"({file.name}) must have one input of numbers.")
    if not floats:
        raise Refused(
            f"({file.name}) gives no table of numbers. Convert a classifier with "
            "options={'zipmap': False}."
        )
    kind = np.float32 if inputs[0].type == "tensor(float)" else np.float64
    output = floats[0]
    # A label beside it makes the numbers those of a classifier.
    classifier = len(outputs) > len(floats)
    odds = classifier and "prob" in output.name.lower()
    shape = output.shape
    width = shape[1] if len(shape) == 2 and isinstance(shape[1], int) else 1
    if not 1 <= width <= MAX_WIDTH:
        raise Refused(f"({file.name}) declares {width:,} scores a row, not 1 to {MAX_WIDTH:,}.")
    if classifier and width == 2:
        width = 1

    def score(X: Any) -> np.ndarray:
        rows = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=kind)
        scores: np.ndarray = _run(
            session, onnxruntime.RunOptions(), output.name, {inputs[0].name: rows}
        )
        if odds:
            return log_odds(scores)
        # Two raw scores of a classifier are -s and s.
        is_pair = classifier and scores.ndim == 2 and scores.shape[1] == 2
        return scores[:, 1] if is_pair else scores

    names = [name] if width == 1 else [f"{name}: {j}" for j in range(width)]
    return [Output(each, score, lambda: fingerprint, j, width) for j, each in enumerate(names)]
