"""Finished fits of a contest in a file, so that it goes on where it was interrupted."""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np
from joblib.hashing import NumpyHasher

from holdtrue.errors import InputError, MissingFileError


class Checkpoint(dict[tuple[str, int], dict[str, Any]]):
    """Record of each finished fit by model and part, in a file of JSON lines if one is named.

    The first line is the question. A line that was cut off by a crash is ignored: its fit is done
    again. A record holds numbers and arrays.
    """

    def __init__(self, path: Any, question: Any, models: Mapping[str, Any]):
        super().__init__()
        self._path = None if path is None else Path(path)
        if self._path is None:
            return
        if not self._path.parent.is_dir():
            raise MissingFileError(f"no folder {str(self._path.parent)!r} for the checkpoint.")
        if self._path.is_dir():
            raise InputError(f"checkpoint must be a file. Got the folder {str(self._path)!r}.")
        head: dict[str, Any] = {"format": "holdtrue.checkpoint", "version": 2}
        head["question"] = fingerprint(question)
        head["models"] = {name: fingerprint(model) for name, model in models.items()}
        lines = self._path.read_text("utf-8").splitlines() if self._path.exists() else []
        if not lines:
            self._path.write_text(json.dumps(head) + "\n", "utf-8")
        elif _record(lines[0]) != head:
            raise InputError(
                f"{self._path} belongs to another comparison: data, models, scoring or parts "
                "differ. Name another checkpoint, or remove it."
            )
        for record in map(_record, lines[1:]):
            if isinstance(record, dict):
                place = record.pop("model"), record.pop("part")
                self[place] = {
                    name: np.array(value) if isinstance(value, list) else value
                    for name, value in record.items()
                }

    def add(self, name: str, part: int, record: dict[str, Any]) -> None:
        """Keep the record of a fit, in the file too."""
        self[name, part] = record
        if self._path is not None:
            line = json.dumps({"model": name, "part": part, **record}, default=np.ndarray.tolist)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")


class _Hasher(NumpyHasher):
    """The hash of joblib; a function without a name elsewhere is what it does, wherever it is."""

    def reducer_override(self, thing: Any) -> Any:
        """See `pickle.Pickler.reducer_override`."""
        if isinstance(thing, CodeType):
            return tuple, ((thing.co_code, thing.co_consts, thing.co_names),)
        if isinstance(thing, FunctionType) and (
            thing.__module__ == "__main__" or "<" in thing.__qualname__  # <lambda>, <locals>
        ):
            return tuple, (_content(thing),)
        return NotImplemented


def _content(function: FunctionType) -> tuple[Any, ...]:
    """What a function does: its code, and the values that come with it."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return function.__code__, function.__defaults__, function.__kwdefaults__, cells


def fingerprint(thing: Any) -> str:
    """Hash of an object, or of its parameters as text where it cannot be pickled."""
    try:
        given = _content(thing) if isinstance(thing, FunctionType) else thing
        return str(_Hasher("md5").hash(given))
    except (pickle.PicklingError, AttributeError, TypeError, ValueError, RecursionError):
        return repr(thing)


def _record(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None
