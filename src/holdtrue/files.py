"""Files written whole or not at all; models in skops files, read only if every type is known.

A skops file is a zip archive of arrays and a schema that names types. Before anything is
built its unpacked size and the name of every type are checked.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO

from holdtrue.errors import FileError, MissingPackageError

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its name only when all has been written.

    Until then the bytes are in a file beside it, which is removed if anything goes wrong; what
    stood under the name before stays as it was. Of a symbolic link the target is replaced.
    """
    name, path = os.fspath(path), Path(path).resolve()
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    try:
        with partial.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException as error:
        partial.unlink(missing_ok=True)
        if isinstance(error, OSError) and (
            error.filename == str(partial) or error.errno in _NO_ROOM
        ):
            raise FileError(f"{name} cannot be written ({error.strerror}).") from error
        raise


# --- models in skops files ------------------------------------------------------------------------

_SCHEMA = "schema.json"
_MAX_SCHEMA = 1 << 27
# Bytes that a file may unpack to, and times its own size where it is larger than the second.
_MAX_BYTES, _SMALL, _MAX_RATIO = 1 << 32, 1 << 26, 50
# How the parts of a file are put together; others call functions and methods that it names.
_LOADERS = {
    "BytesNode", "ConstructorFromReduceNode", "DictNode", "JsonNode", "ListNode", "LossNode",
    "NdArrayNode", "ObjectNode", "TreeNode", "TupleNode", "TypeNode",
}  # fmt: skip


class UnfitFile(Exception):  # noqa: N818  (the caller names the file)
    """A file that cannot be loaded; the message continues the name of the file."""


def dump_skops(model: Any, path: str | Path, known: Collection[str]) -> None:
    """Write a model whole or not at all, if `load_skops` will read it with these known types."""
    io = _skops()
    try:
        data = io.dumps(model, compression=zipfile.ZIP_DEFLATED)
    except Exception as error:  # skops names the type that it cannot write
        raise UnfitFile(f"cannot be written: {' '.join(str(error).split())}") from error
    with zipfile.ZipFile(BytesIO(data)) as archive:
        _check_types(json.loads(archive.read(_SCHEMA)), known)
    with written_whole(path) as file:
        file.write(data)


def load_skops(path: str | Path, known: Collection[str] | None = None) -> Any:
    """The model in a file, if it holds only types that are known.

    ``known`` has the full names of all types that may be in the file. Default: those that skops
    knows as safe.
    """
    path = Path(path)
    try:
        schema = _schema(path)
        if known is None:
            io = _skops()
            unknown = io.get_untrusted_types(file=path)
            if unknown:
                raise UnfitFile(
                    f"holds types that skops does not know as safe: "
                    f"{', '.join(map(str, unknown))}. Look at them; if you trust them, load the "
                    "file with skops.io.load(file, trusted=[...]) and pass the model itself."
                )
            return io.load(path, trusted=[])
        _check_types(schema, known)
        return _skops().load(path, trusted=sorted(known))
    except (MissingPackageError, UnfitFile):
        raise
    except Exception as error:  # a damaged file may fail with anything
        message = getattr(error, "strerror", None) or str(error)
        reason = " ".join(message.split())[:200].rstrip(".") or type(error).__name__
        what = "read" if isinstance(error, OSError) else "loaded"
        raise UnfitFile(f"cannot be {what}: {reason}.") from error


def _schema(path: Path) -> Any:
    """What the file says is in it; refused if it is not a skops file, or unpacks to too much."""
    with path.open("rb") as file:
        head = file.read(2)
    if not head:
        raise UnfitFile("is empty.")
    if not zipfile.is_zipfile(path):
        looks = " It looks like a pickle, which runs code when loaded." if head[0] == 0x80 else ""
        raise UnfitFile(f"is not a skops file, whatever its name says.{looks}")
    with zipfile.ZipFile(path) as archive:
        sizes = {member.filename: member.file_size for member in archive.infolist()}
        if _SCHEMA not in sizes:
            raise UnfitFile("is a zip archive, not a skops file.")
        total, limit = sum(sizes.values()), max(_SMALL, _MAX_RATIO * path.stat().st_size)
        if total > min(limit, _MAX_BYTES) or sizes[_SCHEMA] > _MAX_SCHEMA:
            raise UnfitFile(f"would unpack to {total:,} bytes, more than any model needs.")
        return json.loads(archive.read(_SCHEMA))


def _check_types(schema: Any, known: Collection[str]) -> None:
    for name, loader in _types(schema):
        if name not in known or loader not in _LOADERS:
            raise UnfitFile(
                f"holds {name} ({loader}), which no model of holdtrue has. It is neither written "
                "nor loaded: a file could hide code behind a type of its own."
            )


def _types(schema: Any) -> Iterator[tuple[str, str]]:
    """Full name of every type that a schema mentions, and what would build it."""
    parts = [schema]
    while parts:
        part = parts.pop()
        if isinstance(part, dict):
            if "__loader__" in part and not isinstance(part["__loader__"], dict):
                yield f"{part.get('__module__')}.{part.get('__class__')}", str(part["__loader__"])
            parts.extend(part.values())
        elif isinstance(part, list):
            parts.extend(part)


def _skops() -> Any:
    try:
        from skops import io
    except ImportError as error:
        raise MissingPackageError(
            "models are kept in skops files, and skops is not installed. "
            "Run `pip install 'holdtrue[skops]'`."
        ) from error
    return io
