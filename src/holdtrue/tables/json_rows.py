"""JSON of any size to typed columns: one object a line, or an array of objects."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdtrue.errors import InputError, first_line
from holdtrue.tables.files import check_same_columns
from holdtrue.tables.source import Spill
from holdtrue.tables.text import BLOCK, MAX_RECORD, Block, TextFile

_SHAPES = "Expected one object a line, or an array of objects: [{...}, {...}]."
# What JSON begins with, where the name of a file does not say that it is JSON.
_STARTS = re.compile(rb'\s*(\{\s*("|\}|\Z)|\[\s*(\{|\]|\Z))')


def looks_like_json(start: bytes) -> bool:
    """Whether a text that begins with these bytes is JSON and not a table with separators."""
    return bool(_STARTS.match(start))


class JsonRows:
    """Reader of objects, one a line or in an array; a missing key is a missing value.

    A column that has numbers or truth values in some objects and texts in others is text, and so is
    one with whole numbers beyond 64 bits. Files of one table have the same keys. The size of a
    block does not change the result.
    """

    def __init__(self, paths: list[Path], *, encoding: str | None = None, block_size: int = BLOCK):
        self.files = [TextFile(path, encoding, block_size) for path in paths]
        self.types: dict[str, Any] = {}
        self._is_array = False
        self._dates_as_text: set[str] = set()
        self._mixed: set[str] = set()
        self._keys: dict[str, None] = {}

    def read(self) -> Spill:
        """All rows."""
        while True:
            spill, is_stale, keys = Spill(), False, []
            for file in self.files:
                of_file: dict[str, None] = {}
                for block in self._blocks(file):
                    n_texts = len(self._dates_as_text) + len(self._mixed)
                    batch = self._parsed(block)
                    if batch is None:
                        continue
                    for field in batch.schema:
                        self.types[field.name] = self._wider(field.name, field.type, block)
                    of_file |= dict.fromkeys(batch.schema.names)
                    # What turns out to be text is read again, as it was written.
                    is_stale |= n_texts < len(self._dates_as_text) + len(self._mixed)
                    if not is_stale:
                        spill.append(batch)
                keys.append(list(of_file))
            if not is_stale:
                break
        for file, names in zip(self.files, keys, strict=True):
            check_same_columns(self.files[0].path.name, keys[0], file.path.name, names)
        if not spill.n_rows or not self.types:
            raise InputError(f"{self.files[0].path.name} is empty. {_SHAPES}")
        if spill.n_rows == 1 and all(map(pa.types.is_nested, self.types.values())):
            raise InputError(
                f"{self.files[0].path.name} is one object that holds others. {_SHAPES} pandas "
                "writes that with to_json(orient='records')."
            )
        return spill.finish(self.types)

    def first_keys(self) -> list[str]:
        """Keys of the first object."""
        for block in self._blocks(self.files[0]):
            for _, content in self._lines(block):
                return list(json.loads(content))
        return []

    # --- blocks of one object a line ---

    def _blocks(self, file: TextFile) -> Iterator[Block]:
        start = next((chunk.lstrip() for chunk in file.chunks(1 << 12) if chunk.strip()), b"")
        self._is_array = start.startswith(b"[")
        return _array_blocks(file) if self._is_array else file.blocks(0, None)

    def _parsed(self, block: Block) -> pa.RecordBatch | None:
        if not block.content.strip():
            return None
        if not self._is_array:
            block.file.check_utf8(block)  # Arrow does not check names and texts
        table = None
        while table is None:
            try:
                table = self._arrow(self._with_texts(block) if self._mixed else block)
            except pa.ArrowInvalid as error:
                self._look_for_mixed(block, error)
                continue
            if long := self._long_numbers(table, block):
                self._mixed |= long
                table = None
        if self._mixed:  # Arrow puts them first
            order = dict.fromkeys([*self.types, *self._keys])
            table = table.select([name for name in order if name in set(table.column_names)])
        batches = table.combine_chunks().to_batches()
        return batches[0] if batches else None

    def _arrow(self, block: Block) -> pa.Table:
        from pyarrow import json as arrow_json

        texts = sorted(self._dates_as_text | self._mixed)
        return arrow_json.read_json(
            block.reader(),
            read_options=arrow_json.ReadOptions(
                use_threads=False, block_size=len(block.content) + 1
            ),
            parse_options=arrow_json.ParseOptions(
                explicit_schema=pa.schema([(name, pa.string()) for name in texts])
            ),
        )

    def _with_texts(self, block: Block) -> Block:
        """The block with all values of mixed columns as texts."""
        lines = []
        for where, content in self._lines(block):
            record = _record(where, content)
            self._keys |= dict.fromkeys(record)
            for name in self._mixed & record.keys():
                value = record[name]
                if value is not None and not isinstance(value, str):
                    record[name] = json.dumps(value)
            lines.append(json.dumps(record).encode())
        return block._replace(content=b"\n".join(lines))

    def _long_numbers(self, table: pa.Table, block: Block) -> set[str]:
        """Columns with whole numbers beyond 64 bits; as floats, neighbours would be equal."""
        large = {
            name
            for name, column in zip(table.column_names, table.columns, strict=True)
            if pa.types.is_floating(column.type) and (pc.max(pc.abs(column)).as_py() or 0) >= 2**63
        }
        records = (_record(*line).items() for line in (self._lines(block) if large else ()))
        values = (pair for record in records for pair in record if pair[0] in large)
        return {name for name, value in values if type(value) is int and abs(value) >= 2**63}

    def _wider(self, name: str, kind: Any, block: Block) -> Any:
        """Type that holds the values of a column in this block and those before it."""
        known = self.types.get(name, kind)
        if known == kind or pa.types.is_null(kind):
            return known
        if pa.types.is_null(known):
            return kind
        pair = {known, kind}
        if pair == {pa.int64(), pa.float64()}:
            return pa.float64()
        if pa.types.is_nested(known) or pa.types.is_nested(kind):
            if not (pa.types.is_nested(known) and pa.types.is_nested(kind)):
                self._look_for_mixed(block, pa.ArrowInvalid(f"types in {name!r} differ"))
            return known  # refused where it is used
        if all(pa.types.is_string(one) or pa.types.is_timestamp(one) for one in pair):
            self._dates_as_text.add(name)
        else:
            self._mixed.add(name)
        return pa.string()

    # --- what is wrong with a block ---

    def _look_for_mixed(self, block: Block, error: Exception) -> None:
        """Find the columns of several types in a block; whatever else is wrong is refused."""
        arrow_names = {name: re.split(r"\W", str(kind))[0] for name, kind in self.types.items()}
        kinds = {name: _KINDS.get(kind, "a number") for name, kind in arrow_names.items()}
        mixed = set()
        for where, content in self._lines(block):
            for name, value in _record(where, content).items():
                kind = _KINDS.get(type(value), "a number")
                known = kinds.setdefault(name, kind) or kind
                kinds[name] = known
                if kind and kind != known:
                    if {kind, known} & {"a list", "an object"}:
                        raise InputError(
                            f"{where} has {kind} in {name!r}, where those before it have {known}. "
                            "Write the values of a column in one type."
                        ) from error
                    mixed.add(name)
        if not mixed - self._mixed:
            first = next(self._lines(block))[0]
            raise InputError(
                f"{first} and what follows it cannot be read ({first_line(error)}). Mend it."
            ) from error
        self._mixed |= mixed

    def _lines(self, block: Block) -> Iterator[tuple[str, bytes]]:
        """Where each object of a block is, and its text."""
        what, first = "object", block.offset + 1
        if not self._is_array:
            what, first = "line", block.file.line(block.offset)
        for number, content in enumerate(block.content.split(b"\n"), first):
            if content.strip():
                yield f"{what} {number:,} of {block.file.path.name}", content


def _record(where: str, content: bytes) -> dict[str, Any]:
    """An object that must be valid JSON."""
    try:
        record = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{where} is not valid JSON ({error}). Mend or remove it. {_SHAPES}"
        ) from error
    if not isinstance(record, dict):
        raise InputError(
            f"{where} must hold one JSON object, {{...}}. Got {content[:40].decode()!r}. {_SHAPES}"
        )
    return record


# What values are called, by their types in Python and by what Arrow calls them; else numbers.
_KINDS = {
    type(None): "", bool: "a truth value", str: "text", list: "a list", dict: "an object",
    "null": "", "bool": "a truth value", "string": "text", "timestamp": "text", "list": "a list",
    "struct": "an object",
}  # fmt: skip


# --- arrays -------------------------------------------------------------------------------------

_DEPTH = np.zeros(256, dtype=np.int8)
_DEPTH[[*b"[{"]], _DEPTH[[*b"]}"]] = 1, -1
_STRUCTURE = _DEPTH != 0
_STRUCTURE[ord(",")] = True
_LINE_ENDS = bytes.maketrans(b"\r\n", b"  ")
_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_BLANK = re.compile(rb"(?:\A|\n)\s*(?:\n|\Z)")


def _array_blocks(file: TextFile) -> Iterator[Block]:
    """Blocks of an array's elements, one a line; their offset is the number of those before."""
    rest, at, n_before, next_look = b"", 0, 0, 0
    is_open = is_closed = False
    for chunk in chain(file.chunks(file.block_size), [b""]):
        rest += chunk
        if not is_open and b"[" in rest:
            is_open, at = True, rest.index(b"[") + 1
            rest = rest[at:]
        # As in TextFile.blocks: time in proportion to the file.
        if is_open and not is_closed and (len(rest) >= next_look or not chunk):
            commas, end = _element_ends(rest)
            is_closed = end is not None
            if end is None and not len(commas):
                if len(rest) > MAX_RECORD:
                    raise InputError(
                        f"object {n_before + 1:,} of {file.path.name} is longer than "
                        f"{MAX_RECORD >> 20} MB. Look for a quote or bracket that is not closed."
                    )
                next_look = 2 * len(rest)
                continue
            stop = int(commas[-1]) if end is None else end
            file.check_utf8(Block(rest[:stop], at, file))
            lines = bytearray(rest[:stop].translate(_LINE_ENDS))
            np.frombuffer(lines, dtype=np.uint8)[commas[commas < stop]] = ord("\n")
            if n_before or not is_closed or lines.strip():
                if blank := _BLANK.search(lines):
                    number = n_before + lines.count(b"\n", 0, blank.start() + 1) + 1
                    raise InputError(
                        f"object {number:,} of {file.path.name} is empty: a comma too many. "
                        "Remove it."
                    )
                yield Block(bytes(lines), n_before, file)
            n_before += lines.count(b"\n") + 1
            at, rest, next_look = at + stop + 1, rest[stop + 1 :], 0
        if is_closed and rest.strip():
            raise InputError(
                f"{file.path.name} goes on after the end of its array, with "
                f"{rest.strip()[:40].decode('utf-8', 'replace')!r}. {_SHAPES}"
            )
    if not is_closed:
        raise InputError(
            f"{file.path.name} ends inside its array, after {n_before:,} objects. Look whether it "
            "was cut off."
        )


def _element_ends(content: bytes) -> tuple[np.ndarray, int | None]:
    """Places of the commas between elements of an array, and of its end, None if it is not there.

    The content begins inside the array.
    """
    characters = np.frombuffer(_ESCAPED.sub(b"  ", content), dtype=np.uint8)
    quotes = np.flatnonzero(characters == ord('"'))
    places = np.flatnonzero(_STRUCTURE[characters])
    places = places[np.searchsorted(quotes, places) % 2 == 0]  # not inside a text
    depth = np.cumsum(_DEPTH[characters[places]], dtype=np.int64)
    closed = np.flatnonzero(depth < 0)
    end = None
    if len(closed):
        end = int(places[closed[0]])
        places, depth = places[: closed[0]], depth[: closed[0]]
    return places[(depth == 0) & (characters[places] == ord(","))], end
