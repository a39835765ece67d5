"""JSON lines of any size to typed columns."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdtrue.tables.spill import Spill
from holdtrue.tables.text import BLOCK, Block, TextFile

if TYPE_CHECKING:
    import pyarrow as pa


class JsonLines:
    """Reader of a file with one JSON object a line; a key that a line lacks is missing.

    Parameters
    ----------
    owner : str
        Who asks, for the messages.
    path : Path
    encoding : str, optional
    block_size : int
        The result does not depend on it.
    """

    def __init__(
        self, owner: str, path: Path, *, encoding: str | None = None, block_size: int = BLOCK
    ):
        self.owner, self.path = owner, path
        self.file = TextFile(owner, path, encoding, block_size)
        self.types: dict[str, Any] = {}

    def read(self) -> tuple[Spill, dict[str, Any]]:
        """All rows, and the type of every column."""
        import pyarrow as pa

        texts: set[str] = set()
        while True:
            spill, stale = Spill(), False
            for block in self.file.blocks(0, None):
                batch = self._parsed(block, texts)
                if batch is None:
                    continue
                for field in batch.schema:
                    kind = self._wider(field.name, field.type, block)
                    # A date that turns out to be text is read again, as it was written.
                    met = {field.type, self.types.get(field.name, field.type)}
                    if pa.types.is_string(kind) and any(map(pa.types.is_timestamp, met)):
                        texts.add(field.name)
                        stale = True
                    self.types[field.name] = kind
                if not stale:
                    spill.append(batch)
            if not stale:
                break
        spill.finish()
        if not spill.n_rows or not self.types:
            raise ValueError(f"{self.owner}: {self.path.name} is empty. Expected JSON objects.")
        return spill, self.types

    def _parsed(self, block: Block, texts: set[str]) -> pa.RecordBatch | None:
        import pyarrow as pa
        from pyarrow import json as arrow_json

        if not block.content.strip():
            return None
        try:
            table = arrow_json.read_json(
                pa.BufferReader(block.content),
                read_options=arrow_json.ReadOptions(
                    use_threads=False, block_size=len(block.content) + 1
                ),
                parse_options=arrow_json.ParseOptions(
                    explicit_schema=pa.schema([(name, pa.string()) for name in sorted(texts)])
                ),
            )
        except pa.ArrowInvalid as error:
            raise self._wrong(block, error) from error
        batches = table.combine_chunks().to_batches()
        return batches[0] if batches else None

    def _wider(self, name: str, kind: Any, block: Block) -> Any:
        """Type that holds the values of a column in this block and those before it."""
        import pyarrow as pa

        known = self.types.get(name, kind)
        if known == kind or pa.types.is_null(kind):
            return known
        if pa.types.is_null(known):
            return kind
        pair = {known, kind}
        if pair == {pa.int64(), pa.float64()}:
            return pa.float64()
        if pa.string() in pair and any(map(pa.types.is_timestamp, pair)):
            return pa.string()
        if pa.types.is_nested(known) and pa.types.is_nested(kind):
            return known  # refused where it is used
        raise self._wrong(block, None, name)

    def _wrong(self, block: Block, error: Exception | None, name: str | None = None) -> ValueError:
        """What is wrong with a block, and in which line."""
        self.file.check_utf8(block)
        kinds = {key: _json_kind(kind) for key, kind in self.types.items()}
        first = self.file.line(block.offset)
        for line, content in enumerate(block.content.split(b"\n"), first):
            if not content.strip():
                continue
            where = f"{self.owner}: line {line:,} of {self.path.name}"
            try:
                record = json.loads(content)
            except ValueError as reason:
                return ValueError(f"{where} is no JSON ({reason}). Mend or remove it.")
            if not isinstance(record, dict):
                return ValueError(
                    f"{where} must hold one JSON object, {{...}}. Got {content[:40].decode()!r}."
                )
            for key, value in record.items():
                kind = _value_kind(value)
                known = kinds.get(key) or kind
                if kind and kind != known:
                    return ValueError(
                        f"{where} has {kind} in {key!r}, where lines before it have {known}. "
                        "Write the values of a column in one type."
                    )
                kinds[key] = known
        told = str(error).splitlines()[0] if error else f"types in {name!r} differ"
        return ValueError(
            f"{self.owner}: {self.path.name} cannot be read from line {first:,} on ({told})."
        )


def _value_kind(value: Any) -> str:
    if value is None:
        return ""
    kinds = {bool: "a truth value", str: "text", list: "a list", dict: "an object"}
    return kinds.get(type(value), "a number")


def _json_kind(kind: Any) -> str:
    import pyarrow as pa

    if pa.types.is_null(kind):
        return ""
    if pa.types.is_boolean(kind):
        return "a truth value"
    if pa.types.is_string(kind) or pa.types.is_timestamp(kind):
        return "text"
    if pa.types.is_list(kind):
        return "a list"
    return "an object" if pa.types.is_struct(kind) else "a number"
