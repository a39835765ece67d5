"""From a model, a callable or a file to columns of scores. Files are opened here, and only here."""

from __future__ import annotations

import functools
import hashlib
import threading
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from holdtrue.errors import MissingPackageError, did_you_mean
from holdtrue.files import UnfitFile, load_skops

PICKLES = (".pkl", ".pickle", ".joblib")
# Columns of scores of one model; the largest shelves of classes have some 20,000.
MAX_WIDTH = 50_000


class Refused(Exception):  # noqa: N818  (not an error yet: the pool decides)
    """A source that cannot be used; the message continues "source 'name' ..."."""


class Allowed(NamedTuple):
    """What may be done to open a file."""

    pickle: bool
    external_data: bool


class Output(NamedTuple):
    """One column of scores: the model that makes it, and which of its columns it is.

    ``columns`` are the names of the columns that the model was fitted on, where it knows them.
    """

    name: str
    model: Callable[[Any], Any]
    fingerprint: Callable[[], str | None]
    position: int = 0
    width: int = 1
    columns: Sequence[str] | None = None


class Column:
    """A column of X that holds scores already."""

    def __init__(self, key: str | int):
        self.key = key

    def place(self, n_columns: int, names: Sequence[str] | None) -> int:
        """Which column of X it is."""
        if isinstance(self.key, str):
            known = [] if names is None else [str(name) for name in names]
            if self.key not in known:
                hint = did_you_mean(self.key, known) or " Name a column of the fitted table."
                raise Refused(f"must be a column of X.{hint}")
            return known.index(self.key)
        if not 0 <= self.key < n_columns:
            raise Refused(f"must be a column of X, from 0 to {n_columns - 1}.")
        return self.key

    def scores(self, X: Any, names: Sequence[str] | None) -> Any:
        """The column, shape (n_rows, 1)."""
        column = X[:, [self.place(X.shape[1], names)]]
        return column.toarray() if sparse.issparse(column) else column


def model_names(name: str, model: Any) -> list[str]:
    """Names of a model's columns of scores: one, or one for each of K > 2 classes."""
    if isinstance(model, Column) or not hasattr(model, "predict"):
        return [name]
    classes = getattr(model, "classes_", None) if _method(model) != "predict" else None
    if classes is None or len(classes) <= 2:
        return [name]
    if len(classes) > MAX_WIDTH:
        raise Refused(f"has {len(classes):,} classes, more than {MAX_WIDTH:,}.")
    return [f"{name}: {label}" for label in classes]


def model_outputs(name: str, model: Any) -> list[Output]:
    """Outputs of a fitted estimator, a callable or a column."""
    if isinstance(model, Column) or not hasattr(model, "predict"):
        return [Output(name, model, lambda: _fingerprint((name, model)))]
    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise Refused(f"({type(model).__name__}) is not fitted. Fit it first.") from error
    except TypeError:
        pass  # not of scikit-learn's kind: its own predict will tell
    score = functools.partial(_model_scores, model)
    names = model_names(name, model)
    columns = getattr(model, "feature_names_in_", None)
    return [
        Output(each, score, lambda: _fingerprint(model), j, len(names), columns)
        for j, each in enumerate(names)
    ]


def scored(model: Callable[[Any], Any], rows: Any) -> Any:
    """Scores of a model that may change its rows, but not its caller's: read-only, or a copy."""
    if not isinstance(rows, np.ndarray):  # frames that cannot be changed have no copy
        return model(rows.copy() if hasattr(rows, "copy") else rows)
    view = rows.view()
    view.flags.writeable = False
    try:
        return model(view)
    except Exception as error:
        if not any(word in str(error) for word in ("read-only", "readonly")):
            raise
    return model(rows.copy())


def _method(model: Any) -> str:
    """The method that gives a model's most telling score."""
    return next(
        name for name in ("decision_function", "predict_proba", "predict") if hasattr(model, name)
    )


def _model_scores(model: Any, X: Any) -> np.ndarray:
    """Scores of a fitted estimator: decision function, log-odds or predictions."""
    method = _method(model)
    scores = np.asanyarray(getattr(model, method)(X))
    if method == "predict_proba":
        return log_odds(scores)
    if method == "predict" and scores.dtype.kind not in "fiub":
        raise Refused("returned labels that are not numbers. A source must return scores.")
    return scores


def log_odds(probability: np.ndarray) -> np.ndarray:
    """``log(p/(1 - p))`` of each class, of the second where there are two; bounded at 1e-15."""
    if probability.ndim == 2 and probability.shape[1] == 2:
        probability = probability[:, 1]
    p = np.clip(probability.astype(np.float64), 1e-15, 1 - 1e-15)
    return np.log(p) - np.log1p(-p)


def _fingerprint(source: Any) -> str | None:
    """What the cache knows a source by; None for one that cannot be pickled."""
    try:
        return str(joblib.hash(_content(source, {})))
    except Exception:  # a pickle may fail with anything
        return None


def _content(value: Any, seen: dict[int, int]) -> Any:
    """The value, with functions taken apart: code, defaults and what they enclose."""
    if id(value) in seen:  # a function that calls itself
        return f"function {seen[id(value)]}"
    parts: Iterable[Any]
    if isinstance(value, types.FunctionType):
        seen[id(value)] = len(seen)
        cells = tuple(cell.cell_contents for cell in value.__closure__ or ())
        parts = (value.__code__, value.__defaults__, value.__kwdefaults__, cells)
    elif isinstance(value, types.CodeType):
        parts = (value.co_code, value.co_consts, value.co_names)
    elif isinstance(value, types.MethodType):
        parts = (value.__func__, value.__self__)
    elif isinstance(value, functools.partial):
        parts = (value.func, value.args, value.keywords)
    elif type(value) is dict:
        return {key: _content(item, seen) for key, item in value.items()}
    elif type(value) in (tuple, list):
        parts = value
    elif isinstance(value, types.ModuleType):
        return value.__name__
    else:
        call = type(value).__call__ if callable(value) else None
        return (_content(call, seen), value) if isinstance(call, types.FunctionType) else value
    return tuple(_content(part, seen) for part in parts)


def sentence(error: BaseException | str) -> str:
    """What an error says, in one line with a full stop."""
    return f"{' '.join(str(error).split()).rstrip(' .')}."


# --- files ---


def check_format(file: Path, *, starts: tuple[bytes, ...], wanted: str) -> None:
    """Refuse a file whose first bytes are not those of its format, without reading further."""
    try:
        with file.open("rb") as stream:
            head = stream.read(8)
    except OSError as error:
        raise Refused(f"cannot be read: {sentence(error)}") from error
    if not head:
        raise Refused(f"({file.name}) is empty.")
    if not head.startswith(starts):
        looks = " It looks like a pickle, which runs code when loaded." if head[0] == 0x80 else ""
        raise Refused(f"({file.name}) is not {wanted}, whatever its name says.{looks}")


def pickle_outputs(name: str, file: Path, allowed: Allowed) -> list[Output]:
    """Outputs of a pickled model, if pickles are allowed."""
    if not allowed.pickle:
        raise Refused(
            f"({file.name}) is a pickle, and loading one runs whatever code it holds. Save the "
            "model as .onnx or .skops, or pass allow_pickle=True if you trust who wrote it."
        )
    try:
        model = joblib.load(file)  # reads plain pickles too
    except Exception as error:
        raise Refused(f"({file.name}) cannot be loaded: {sentence(error)}") from error
    return model_outputs(name, model)


def skops_outputs(name: str, file: Path, _: Allowed) -> list[Output]:
    """Outputs of a skops file whose types are all known as safe."""
    try:
        model = load_skops(file)
    except UnfitFile as error:
        raise Refused(f"({file.name}) {error}") from error
    return model_outputs(name, model)


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
    fingerprint = _files_fingerprint(content, beside)
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
