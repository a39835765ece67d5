"""Delimited text (CSV, TSV) of any size to typed columns, in one pass where the types hold.

Every block is parsed with the types of those before it. Where one does not fit, the types are
widened. Only if values that were kept already cannot be turned into the wider type (a number whose
column turns out to be text) the file is read once more, with the types that are known by then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdtrue.tables import inference
from holdtrue.tables.spill import Spill
from holdtrue.tables.text import BLOCK, Block, TextFile, columns_at, likely_zeros

if TYPE_CHECKING:
    import pyarrow as pa

# Changes of kind after which the values that were kept can still be used.
_CASTS = {
    ("integer", "number"),
    ("integer", "pointless"),
    ("integer", "comma"),
    ("pointless", "number"),
    ("pointless", "comma"),
    ("date", "timestamp"),
    ("long", "text"),
}
# Kinds that Arrow alone cannot read, or cannot tell from another.
_BY_HAND = ("long", "precise", "pointless", "comma")
# Bytes of a block for every column, so that a block of a wide table has some rows.
_BYTES_PER_COLUMN = 1 << 12
_THREADS = 2

# Columns of a block, and the places of those that are texts yet to be looked at.
_Parsed = tuple[list[Any], list[int]]


@dataclass
class _Column:
    """What is known of a column.

    Attributes
    ----------
    name : str
    kind : str
        Of `inference`.
    marks : bool
        Whether a mark stands for a missing value, so that Arrow alone cannot read it.
    wanted : str or None
        What the caller wants it to be.
    """

    name: str
    kind: str = "empty"
    marks: bool = False
    wanted: str | None = None

    @property
    def by_hand(self) -> bool:
        """Whether its texts are converted after parsing."""
        if self.kind in _BY_HAND or self.wanted == "bool":
            return True
        return self.marks and self.kind != "text"

    def type(self) -> Any:
        """Arrow type of its values."""
        return inference.arrow_type(self.kind)


class Delimited:
    """Reader of a delimited text file.

    Parameters
    ----------
    owner : str
        Who asks, for the messages.
    path : Path
    encoding, separator : str, optional
    types : dict from name to one of `inference.WANTED`
        Those of columns that the file lacks are left to the caller to refuse.
    block_size : int
        The result does not depend on it.
    """

    def __init__(
        self,
        owner: str,
        path: Path,
        *,
        types: dict[str, str],
        encoding: str | None = None,
        separator: str | None = None,
        block_size: int = BLOCK,
    ):
        self.owner, self.path = owner, path
        self.file = TextFile(owner, path, encoding, block_size)
        fields, self.separator, self._start = self.file.header(separator)
        names = self._names(fields)
        if block_size == BLOCK:
            self.file.block_size = max(BLOCK, _BYTES_PER_COLUMN * len(names))
        self.columns = [_Column(name, wanted=types.get(name)) for name in names]
        self._comma = self.separator == ";"
        for column in self.columns:
            if column.wanted in ("text", "category"):
                column.kind = "text"
            elif column.wanted == "number" and self._comma:
                column.kind = "comma"
            elif column.wanted not in (None, "date"):
                column.kind = str(column.wanted)
        self._stale = False

    def _names(self, fields: list[str]) -> list[str]:
        names = [field.strip() or f"column {j}" for j, field in enumerate(fields, 1)]
        if len(names) < 2:
            raise ValueError(
                f"{self.owner}: {self.path.name} has one column only, {names[0][:40]!r}. Expected "
                "a header line of names with a comma, semicolon, tab or bar between them."
            )
        seen: dict[str, int] = {}
        for j, name in enumerate(names, 1):
            if name in seen:
                raise ValueError(
                    f"{self.owner}: column names must be distinct. {self.path.name} has {name!r} "
                    f"as column {seen[name]} and column {j}. Rename one."
                )
            seen[name] = j
        return names

    def read(self) -> tuple[Spill, dict[str, Any]]:
        """All rows, and the type of every column."""
        while True:
            spill, self._stale = Spill(), False
            for block, parsed in self._ahead():
                batch = self._checked(block, parsed)
                if not self._stale:
                    spill.append(batch)
            for column in self.columns:
                if column.kind == "long" or (column.kind == "empty" and column.marks):
                    self._widen(column, "text", False)
            if not self._stale:
                break
        spill.finish()
        if not spill.n_rows:
            raise ValueError(
                f"{self.owner}: {self.path.name} has a header of {len(self.columns)} columns and "
                "no rows."
            )
        return spill, {column.name: column.type() for column in self.columns}

    def _ahead(self) -> Iterator[tuple[Block, _Parsed | None]]:
        """Blocks, parsed by other threads while this one writes what came before."""
        waiting: deque[tuple[Block, Any, Any]] = deque()
        with ThreadPoolExecutor(_THREADS) as pool:
            for block in chain(self.file.blocks(self._start, self.separator), [None] * _THREADS):
                if block is not None:
                    plan = self._plan()
                    waiting.append((block, plan, pool.submit(self._parsed, block, plan)))
                if waiting and (block is None or len(waiting) > _THREADS):
                    done, plan, parsed = waiting.popleft()
                    # What was parsed with types that have been widened since is parsed again.
                    same = plan == self._plan()
                    yield done, parsed.result() if same else self._parsed(done, self._plan())

    # --- one block ---

    def _plan(self) -> list[tuple[str, bool]]:
        """Kind of every column, and whether its texts are converted after parsing."""
        return [(column.kind, column.by_hand) for column in self.columns]

    def _parsed(self, block: Block, plan: list[tuple[str, bool]]) -> _Parsed | None:
        """Columns of a block as planned, and which are texts to look at; None if it does not fit.

        Changes nothing, so that threads may call it.
        """
        import pyarrow as pa

        types = [inference.arrow_type("text" if by_hand else kind) for kind, by_hand in plan]
        try:
            arrays = self._arrow(block, types)
        except pa.ArrowInvalid:
            return None
        texts = [j for j, (_, by_hand) in enumerate(plan) if by_hand]
        numbers = [
            j
            for j, (kind, by_hand) in enumerate(plan)
            if kind in ("integer", "number") and not (by_hand or self.columns[j].wanted)
        ]
        zeros = likely_zeros(block.content, self.separator)
        if numbers and len(zeros):
            found = columns_at(block.content, zeros, self.separator, len(plan))
            numbers = numbers if found is None else sorted(set(numbers) & set(found.tolist()))
            for j, column in zip(numbers, self._texts(block, numbers), strict=True):
                if inference.has_leading_zeros(column):
                    arrays[j] = column
                    texts.append(j)
        return arrays, texts

    def _checked(self, block: Block, parsed: _Parsed | None) -> pa.RecordBatch:
        """Values of a block in types that fit it and the blocks before."""
        import pyarrow as pa

        everything = range(len(self.columns))
        arrays, texts = parsed or (self._texts(block, everything), list(everything))
        for j in texts:
            self._look(self.columns[j], arrays[j], block)
        for j in texts:
            arrays[j] = self._values(self.columns[j], arrays[j])
        return pa.RecordBatch.from_arrays(arrays, [column.name for column in self.columns])

    def _arrow(self, block: Block, types: list[Any], places: Any = None) -> list[Any]:
        """Columns of a block in these types, those at the places only."""
        from pyarrow import csv

        labels = [str(j) for j in range(len(self.columns))]
        places = range(len(labels)) if places is None else places
        table = csv.read_csv(
            _reader(block.content),
            read_options=csv.ReadOptions(
                column_names=labels, block_size=len(block.content) + 1, use_threads=False
            ),
            parse_options=csv.ParseOptions(delimiter=self.separator, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=dict(zip(labels, types, strict=True)),
                null_values=inference.MISSING,
                true_values=inference.TRUE,
                false_values=inference.FALSE,
                strings_can_be_null=True,
                include_columns=[labels[j] for j in places],
            ),
        )
        return [_one(column) for column in table.columns]

    def _texts(self, block: Block, places: Any) -> list[Any]:
        """Texts of a block; a block that is none is refused."""
        import pyarrow as pa

        if not len(places):
            return []
        try:
            return self._arrow(block, [pa.string()] * len(self.columns), places)
        except pa.ArrowInvalid as error:
            self.file.check_utf8(block)
            n_columns = len(self.columns)
            for line, fields in self.file.records(block, self.separator):
                if len(fields) != n_columns:
                    raise ValueError(
                        f"{self.owner}: line {line:,} of {self.path.name} has {len(fields)} "
                        f"field{'s' if len(fields) != 1 else ''}, expected {n_columns} as in the "
                        f"header. Got {self.separator.join(fields)[:60]!r}. Mend the line, or put "
                        "quotes around a field that holds the separator."
                    ) from error
            raise ValueError(
                f"{self.owner}: {self.path.name} cannot be read after line "
                f"{self.file.line(block.offset):,} ({str(error).splitlines()[0]})."
            ) from error

    def _look(self, column: _Column, texts: Any, block: Block) -> None:
        """Widen what is known of a column by its texts in a block."""
        if column.wanted in ("text", "category"):
            return
        if column.wanted is not None:
            place = inference.first_misfit(
                texts, "comma" if column.kind == "comma" else column.wanted
            )
            if place is not None:
                lines = [line for line, _ in self.file.records(block, self.separator)]
                where = f"in line {lines[place]:,}" if place < len(lines) else "further down"
                raise ValueError(
                    f"{self.owner}: column {column.name!r} of {self.path.name} cannot be read as "
                    f"{column.wanted!r}. Got {texts[place].as_py()!r} {where}. Mend it, "
                    "or read the column as 'text'."
                )
        if column.wanted == "bool":
            return
        kind, marks = inference.classified(texts, comma=self._comma)
        if column.wanted in ("integer", "number"):
            kind = column.kind
        self._widen(column, inference.wider(column.kind, kind), column.marks or marks)

    def _widen(self, column: _Column, kind: str, marks: bool) -> None:
        was_empty = column.kind == "empty" and not (column.marks and kind in ("text", "long"))
        if kind != column.kind and not was_empty and (column.kind, kind) not in _CASTS:
            self._stale = True
        column.kind, column.marks = kind, marks

    def _values(self, column: _Column, texts: Any) -> Any:
        import pyarrow as pa

        if column.wanted == "bool":
            return inference.yes_or_no(texts)
        try:
            return inference.converted(texts, column.kind)
        except pa.ArrowInvalid:  # a year that nanoseconds cannot hold
            self._widen(column, "text", False)
            return texts


def _reader(content: bytes) -> Any:
    import pyarrow as pa

    return pa.BufferReader(content)


def _one(column: Any) -> Any:
    """A chunked array as one array."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
