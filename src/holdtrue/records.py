"""Frozen data whose fields have the types that they declare, and that JSON keeps to the last bit.

Charts, evidence, paths and summaries are records. A value of another type is refused with an
`InputError`, whether it comes from code or from a damaged file. Standard library only, NumPy where
a field is an array.
"""

from __future__ import annotations

import functools
import json
import math
import numbers
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, TypeVar

from holdtrue.errors import InputError, plain, shown, speaks

_Self = TypeVar("_Self", bound="Record")
_Document = TypeVar("_Document", bound="Document")
_SCALARS = {
    str: (str, "text"),
    bool: (bool, "true or false"),
    int: (numbers.Integral, "a whole number"),
    float: (numbers.Real, "a number"),
}
_NOT_FINITE = ("inf", "-inf", "nan")  # JSON has no such numbers: they are written by name


@dataclass(frozen=True, eq=False)
class Record:
    """Base of frozen dataclasses that check their fields; two are equal if all fields are."""

    _kinds: ClassVar[dict[str, type[Record]]] = {}
    _noun: ClassVar[str] = ""  # what an error calls it; by default the name of the class

    def __init_subclass__(cls) -> None:
        Record._kinds[cls.__name__] = cls

    def __post_init__(self) -> None:
        cls: Any = type(self)
        for name, kind in _field_types(cls).items():
            object.__setattr__(self, name, read(kind, getattr(self, name), name))

    def to_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON; `from_dict` gives back an equal record."""
        return {"kind": type(self).__name__} | self._fields()

    def _fields(self) -> dict[str, Any]:
        return {field.name: _to_json(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_dict(cls: type[_Self], record: Any) -> _Self:
        """The record that `to_dict` wrote. Anything else is refused with an `InputError`."""
        what = cls._noun or cls.__name__.lower()
        values = dict(record) if isinstance(record, Mapping) else {}
        kind = Record._kinds.get(str(values.pop("kind", cls.__name__)))
        if kind is None or not issubclass(kind, cls) or kind.__subclasses__():
            raise InputError(f"the {what} is damaged: expected one of the known kinds.")
        known = {field.name: field.default is MISSING for field in fields(kind)}
        wrong = [name for name in values if name not in known]
        wrong += [name for name, is_needed in known.items() if is_needed and name not in values]
        if wrong:
            raise InputError(f"the {what} is damaged: {wrong[0]!r} is missing or not known.")
        try:
            return kind(**values)
        except InputError as error:
            raise InputError(f"the {what} is damaged: {error.sentence}") from error

    def __reduce__(self) -> tuple[Any, ...]:
        # Through the constructor, so that a copy's arrays are read-only too.
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    def __eq__(self, other: object) -> bool:
        # As in JSON, where nan is equal to nan.
        return type(other) is type(self) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class Document(Record):
    """A record that is a JSON file of its own, which names its format and version."""

    def to_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON, after the format."""
        return {"format": f"holdtrue.{type(self).__name__}", "version": 1} | self._fields()

    @classmethod
    def from_dict(cls: type[_Document], record: Any) -> _Document:
        """The document that `to_dict` wrote. Anything else is refused with an `InputError`."""
        values = dict(record) if isinstance(record, Mapping) else {}
        wanted, given = f"holdtrue.{cls.__name__}", values.pop("format", None)
        if given != wanted:
            raise InputError(
                f"expected an object with format={wanted!r}. Got {_brief(given)}. "
                f"Pass the text that {cls.__name__}.to_json wrote."
            )
        version = values.pop("version", None)
        if version != 1:
            raise InputError(
                f"this holdtrue reads version 1. Got version {_brief(version)}. "
                "Update holdtrue to read it."
            )
        return super().from_dict(values)

    @speaks
    def to_json(self) -> str:
        """The document as strict JSON; `from_json` gives back an equal one, to the last bit."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False)

    @classmethod
    @speaks
    def from_json(cls: type[_Document], text: str) -> _Document:
        """The document that `to_json` wrote. Anything else is refused with a `ValueError`."""
        return cls.from_dict(parse_json(text))


def read(kind: Any, value: Any, name: str) -> Any:
    """The value as the declared type; a sequence as a tuple, an array as a read-only copy.

    A ``kind`` is str, bool, int, float, a literal, an array, a record, object for anything, or an
    optional, a sequence or a mapping of these. ``name`` is for the error, an `InputError`.
    """
    if kind is object or kind is Any:
        return value
    if kind in _SCALARS:
        return _scalar(kind, value, name)
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return None if value is None else read(inner[0], value, name)
    if origin is typing.Literal:
        if not isinstance(value, str) or value not in inner:
            listed = ", ".join(map(repr, inner))
            raise InputError(f"{name} must be one of {listed}. Got {_brief(value)}.")
        return value
    if origin in (tuple, Sequence):
        if isinstance(value, (str, Mapping)) or not isinstance(value, Iterable):
            raise InputError(f"{name} must be a list. Got {_brief(value)}.")
        items = tuple(value)
        if inner[0] is str and set(map(type, items)) <= {str}:
            return items  # thousands of names, at once
        return tuple(read(inner[0], item, name) for item in items)
    if origin in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise InputError(f"{name} must be a table of names. Got {_brief(value)}.")
        return {
            _scalar(str, key, name): read(inner[1], item, f"{name} {key!r}")
            for key, item in value.items()
        }
    if issubclass(kind, Record):
        return value if isinstance(value, kind) else kind.from_dict(value)
    return _array(value, name)


def _to_json(value: Any) -> Any:
    """The value in lists, dicts, text and numbers; those that are not finite by name."""
    if isinstance(value, Record):
        return value.to_dict()
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_to_json(item) for item in value]
    if isinstance(value, Mapping):
        return {name: _to_json(item) for name, item in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def parse_json(text: str) -> Any:
    """What the text says, if it is valid JSON; `InputError` otherwise."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"this is not valid JSON ({error}).") from error


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number in JSON")


@functools.cache
def _field_types(cls: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in fields(cls)}


def _scalar(kind: type, value: Any, name: str) -> Any:
    if type(value) is kind:
        return value
    value = plain(value)
    expected, word = _SCALARS[kind]
    if kind is float and isinstance(value, str) and value in _NOT_FINITE:
        return float(value)
    if not isinstance(value, expected) or (isinstance(value, bool) and kind is not bool):
        raise InputError(f"{name} must be {word}. Got {_brief(value)}.")
    try:
        return kind(value)
    except OverflowError as error:
        raise InputError(f"{name} must be {word}. Got {_brief(value)}.") from error


def _array(value: Any, name: str) -> Any:
    import numpy as np

    try:
        array = np.array(value)
    except ValueError as error:
        raise InputError(f"{name} must be an array of numbers. Got {_brief(value)}.") from error
    if array.dtype.kind in "UO":
        array = np.array(_numbers(value, name), dtype=np.float64)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be an array of numbers. Got {_brief(value)}.")
    array.flags.writeable = False
    return array


def _numbers(value: Any, name: str) -> Any:
    if isinstance(value, (list, tuple)):
        return [_numbers(item, name) for item in value]
    return _scalar(float, value, name)


def _brief(value: Any) -> str:
    text = shown(value)
    return text if len(text) <= 60 else text[:59] + "…"
