"""Scores kept on disk, so that a second fit on the same rows runs no source again."""

from __future__ import annotations

import functools
import hashlib
import secrets
import types
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from scipy import sparse

from holdtrue.errors import InputError, caution
from holdtrue.sources.source import Source


class ScoreCache:
    """Scores of models on the rows of one fit: one whole file for each model and set of rows.

    A file is named by the fingerprints of the model, with its weights, and of the rows. Before the
    scores it holds their checksum and that of its name. It is written whole under another name and
    then renamed, so that processes which share a folder never see a part of it.
    """

    def __init__(self, folder: Path, X: Any, names: Sequence[str] | None):
        if folder.is_file():
            raise InputError(f"cache must be a folder. Got the file {str(folder)!r}.")
        content = (X.shape, X.data, X.indices, X.indptr) if sparse.issparse(X) else X
        columns = None if names is None else [str(name) for name in names]
        self._rows = str(joblib.hash((content, columns)))
        self._n_rows = int(X.shape[0])
        self._folder = folder
        self._is_told = False

    def scores(self, source: Source, compute: Callable[[Source], np.ndarray]) -> np.ndarray:
        """Scores of a source, shape (n_rows, n_scores): those on disk, or computed and kept."""
        # Before the run, which may change what a source holds, such as a count of its runs.
        fingerprint = _fingerprint(source.content)
        if fingerprint is None:
            return compute(source)
        name = hashlib.sha256(f"3/{self._rows}/{fingerprint}".encode()).hexdigest()[:40]
        path = self._folder / f"rows-{self._rows}" / f"{name}.scores"
        scores = self._load(path, source)
        if scores is None:
            scores = compute(source)
            self._save(path, scores)
        return scores

    def _load(self, path: Path, source: Source) -> np.ndarray | None:
        """The scores in a file; None where there is none, or it is damaged."""
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            problem = f"cannot be read ({error})"
        else:
            scores = content[hashlib.sha256().digest_size :]
            whole = len(scores) == 8 * self._n_rows * len(source.names)
            if whole and content == _checksum(path, scores) + scores:
                return np.frombuffer(scores, dtype="<f8").reshape(self._n_rows, -1)
            problem = "has other scores than were written"
        caution(
            f"SourcePool: the kept scores of source {source.names[0]!r} are damaged: {path.name} "
            f"{problem}. They are computed again."
        )
        return None

    def _save(self, path: Path, scores: np.ndarray) -> None:
        """Keep the scores; a warning, once, where that fails."""
        content = scores.astype("<f8").tobytes()
        partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                partial.write_bytes(_checksum(path, content) + content)
                partial.replace(path)
            finally:
                partial.unlink(missing_ok=True)
        except OSError as error:
            if not self._is_told:
                caution(
                    f"SourcePool: scores cannot be kept in {str(self._folder)!r} ({error}). "
                    "A second fit will run the sources again."
                )
                self._is_told = True


def _checksum(path: Path, scores: bytes) -> bytes:
    return hashlib.sha256(path.name.encode() + scores).digest()


def _fingerprint(content: Any) -> str | None:
    """Hash of what a source holds; None for what cannot be pickled."""
    try:
        return str(joblib.hash(_taken_apart(content, {})))
    except Exception:  # a pickle may fail with anything
        return None


def _taken_apart(value: Any, seen: dict[int, int]) -> Any:
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
        return {key: _taken_apart(item, seen) for key, item in value.items()}
    elif type(value) in (tuple, list):
        parts = value
    elif isinstance(value, types.ModuleType):
        return value.__name__
    else:
        call = type(value).__call__ if callable(value) else None
        return (_taken_apart(call, seen), value) if isinstance(call, types.FunctionType) else value
    return tuple(_taken_apart(part, seen) for part in parts)
