"""Models from files: ONNX, skops, and pickles where allowed. Files are opened here alone."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from scipy import sparse

from holdtrue.errors import MissingPackageError
from holdtrue.files import UnfitFile, load_skops

PICKLES = (".pkl", ".pickle", ".joblib")
FORMATS = (".onnx", ".skops", *PICKLES)
# Columns of scores of one model; the largest shelves of classes have some 20,000.
MAX_WIDTH = 50_000


class Refused(Exception):  # noqa: N818  (not an error yet: the pool decides)
    """A source that cannot be used; the message continues "source 'name' ..."."""


def open_model(file: Path, *, allow_pickle: bool, allow_external_data: bool) -> Any:
    """The model in a file of one of the `FORMATS`."""
    kind = file.suffix.lower()
    if kind == ".onnx":
        return OnnxModel(file, allow_external_data=allow_external_data)
    if kind == ".skops":  # if all its types are known as safe
        try:
            return load_skops(file)
        except UnfitFile as error:
            raise Refused(f"({file.name}) {error}") from error
    if not allow_pickle:
        raise Refused(
            f"({file.name}) is a pickle, and loading one runs whatever code it holds. Save the "
            "model as .onnx or .skops, or pass allow_pickle=True if you trust who wrote it."
        )
    try:
        return joblib.load(file)  # reads plain pickles too
    except Exception as error:
        raise Refused(f"({file.name}) cannot be loaded: {sentence(error)}") from error


def sentence(error: BaseException | str) -> str:
    """What an error says, in one line with a full stop."""
    return f"{' '.join(str(error).split()).rstrip(' .')}."


def log_odds(probability: np.ndarray) -> np.ndarray:
    """``log(p/(1 - p))`` of each class, of the second where there are two; bounded at 1e-15."""
    if probability.ndim == 2 and probability.shape[1] == 2:
        probability = probability[:, 1]
    p = np.clip(probability.astype(np.float64), 1e-15, 1 - 1e-15)
    return np.log(p) - np.log1p(-p)


# --- ONNX ---
#
# A model is data, but data that can name other files, declare millions of outputs, and loop for
# ever. So what a file declares is looked at before anything is loaded: the file is first read as
# what it is, a Protocol Buffers message, by a few lines of our own.

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


def _checked_files(file: Path, content: bytes, *, are_allowed: bool) -> list[Path]:
    """The files beside the model that hold its weights; refused unless that is allowed."""
    try:
        names = sorted(set(_external_files(memoryview(content), "model")))
    except (ValueError, IndexError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "it ends in the middle"
        raise Refused(f"({file.name}) cannot be opened as ONNX: {sentence(reason)}") from error
    if names and not are_allowed:
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


def _files_fingerprint(content: bytes, beside: list[Path]) -> str:
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


class OnnxModel:
    """A callable from rows to scores: the first table of numbers that an ONNX model gives.

    Attributes
    ----------
    width : int
        Scores of a row.
    fingerprint : str
        Of what was loaded: the file may be another one when a fit asks for scores.
    """

    def __init__(self, file: Path, *, allow_external_data: bool):
        content = _onnx_content(file)
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingPackageError(
                f"reading {file.name} needs onnxruntime, which is not installed. "
                "Run `pip install 'holdtrue[onnx]'`."
            ) from error
        beside = _checked_files(file, content, are_allowed=allow_external_data)
        self.fingerprint = _files_fingerprint(content, beside)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        options.add_session_config_entry("session.load_model_format", "ONNX")
        try:
            self._session = onnxruntime.InferenceSession(
                file if beside else content,  # what was looked at is what is loaded
                sess_options=options,
                providers=["CPUExecutionProvider"],
                # A constant that takes for ever to compute would be computed while loading.
                disabled_optimizers=["ConstantFolding"],
            )
        except Exception as error:
            raise Refused(f"({file.name}) cannot be opened as ONNX: {sentence(error)}") from error
        self._options = onnxruntime.RunOptions
        inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        floats = [o for o in outputs if o.type in ("tensor(float)", "tensor(double)")]
        if len(inputs) != 1 or inputs[0].type not in ("tensor(float)", "tensor(double)"):
            raise Refused(f"({file.name}) must have one input of numbers.")
        if not floats:
            raise Refused(
                f"({file.name}) gives no table of numbers. Convert a classifier with "
                "options={'zipmap': False}."
            )
        self._input, self._output = inputs[0], floats[0]
        # A label beside it makes the numbers those of a classifier.
        self._is_classifier = len(outputs) > len(floats)
        shape = self._output.shape
        width = shape[1] if len(shape) == 2 and isinstance(shape[1], int) else 1
        if not 1 <= width <= MAX_WIDTH:
            raise Refused(f"({file.name}) declares {width:,} scores a row, not 1 to {MAX_WIDTH:,}.")
        self.width = 1 if self._is_classifier and width == 2 else width

    def __call__(self, X: Any) -> np.ndarray:
        """Scores of the rows, shape (n_rows,) or (n_rows, width)."""
        kind = np.float32 if self._input.type == "tensor(float)" else np.float64
        rows = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=kind)
        scores: np.ndarray = _run(
            self._session, self._options(), self._output.name, {self._input.name: rows}
        )
        if self._is_classifier and "prob" in self._output.name.lower():
            return log_odds(scores)
        # Two raw scores of a classifier are -s and s.
        is_pair = self._is_classifier and scores.ndim == 2 and scores.shape[1] == 2
        return scores[:, 1] if is_pair else scores


def _onnx_content(file: Path) -> bytes:
    """What a file holds; one that does not begin as an ONNX model is not read further."""
    start = b"\x08"  # the tag of the first field, ir_version
    try:
        with file.open("rb") as stream:
            content = stream.read(8)
            if content.startswith(start):
                return content + stream.read()
    except OSError as error:
        raise Refused(f"cannot be read: {sentence(error)}") from error
    if not content:
        raise Refused(f"({file.name}) is empty.")
    looks = " It looks like a pickle, which runs code when loaded." * (content[0] == 0x80)
    raise Refused(f"({file.name}) is not an ONNX model, whatever its name says.{looks}")
