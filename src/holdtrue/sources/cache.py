"""Scores that are kept on disk: one whole file for each model and set of rows."""

from __future__ import annotations

import hashlib
import os
import secrets
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from scipy import sparse

from holdtrue.errors import InputError, caution

_MAGIC = b"holdtrue scores 2\n"
# Key, checksum of the scores, number of rows, number of columns.
_HEADER = struct.Struct("<32s32sqq")
_START = len(_MAGIC) + _HEADER.size


class ScoreCache:
    """Scores of models on the rows of one fit.

    A file is named and marked by a key: the fingerprint of the model, with its weights, and that of
    the rows. It is written whole under another name and then renamed, so that processes which share
    a folder never see a part of it. On reading key, size, checksum and finiteness are checked.
    ``names`` are those of the columns of X.
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

    def load(self, name: str, fingerprint: str, width: int) -> np.ndarray | None:
        """Scores of a model, shape (n_rows, width); None where they are not kept, or damaged."""
        key = self._key(fingerprint)
        path = self._path(key)
        try:
            size = path.stat().st_size
            if size != _START + 8 * self._n_rows * width:
                problem = f"has {size:,} bytes"
            else:
                content = path.read_bytes()
                scores = np.frombuffer(content[_START:], dtype="<f8").reshape(-1, width)
                header = _MAGIC + _HEADER.pack(key, _checksum(scores), self._n_rows, width)
                if content[:_START] == header and np.isfinite(scores).all():
                    return scores
                problem = "has other scores than were written"
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            problem = f"cannot be read ({error})"
        caution(
            f"SourcePool: the kept scores of source {name!r} are damaged: {path.name} {problem}. "
            "They are computed again."
        )
        return None

    def save(self, fingerprint: str, scores: np.ndarray) -> None:
        """Keep the scores of a model, shape (n_rows, width); a warning where that fails."""
        key = self._key(fingerprint)
        scores = np.ascontiguousarray(scores, dtype="<f8")
        header = _HEADER.pack(key, _checksum(scores), *scores.shape)
        path = self._path(key)
        partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with partial.open("xb") as file:
                    if hasattr(os, "posix_fallocate"):  # a full disk is found out now
                        os.posix_fallocate(file.fileno(), 0, _START + scores.nbytes)
                    file.write(_MAGIC + header)
                    file.write(scores.data)
                partial.replace(path)
            except BaseException:
                partial.unlink(missing_ok=True)
                raise
        except OSError as error:
            if not self._is_told:
                caution(
                    f"SourcePool: scores cannot be kept in {str(self._folder)!r} ({error}). "
                    "A second fit will run the sources again."
                )
                self._is_told = True

    def _key(self, fingerprint: str) -> bytes:
        return hashlib.sha256(f"{self._rows}/{fingerprint}".encode()).digest()

    def _path(self, key: bytes) -> Path:
        return self._folder / f"rows-{self._rows}" / f"{key.hex()[:40]}.scores"


def _checksum(scores: np.ndarray) -> bytes:
    return hashlib.sha256(scores.data).digest()
