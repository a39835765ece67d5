"""Delimited text (CSV, TSV) of any size to typed columns, in one pass where the types hold.

Every block is parsed with the types of those before it. Where one does not fit, the types are
widened. Only if values that were kept already cannot be turned into the wider type (a number whose
column turns out to be text) the file is read once more, with the types that are known by then.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from holdtrue.errors import InputError, first_line
from holdtrue.tables import text_types
from holdtrue.tables.files import check_same_columns
from holdtrue.tables.source import Spill, one_array
from holdtrue.tables.text import BLOCK, Block, TextFile, columns_at, likely_zeros

# Changes of kind after which the values that were kept can still be used.
_CASTS = {
    ("integer", "number"), ("integer", "pointless"), ("integer", "comma"), ("pointless", "number"),
    ("pointless", "comma"), ("date", "timestamp"), ("long", "text"),
}  # fmt: skip
# Kinds that Arrow does not read, or confuses with another.
_BY_HAND = ("long", "precise", "pointless", "comma")
# Bytes of a block for every column, so that a block of a wide table has some rows.
_BYTES_PER_COLUMN = 1 << 12
_MAX_BLOCK = 1 << 27
_THREADS = 2

# Columns of a block, and the places of those that are texts yet to be looked at.
_Parsed = tuple[list[Any], list[int]]


@dataclass
class _Column:
    """What is known of a column."""

    name: str
    kind: str = "empty"  # of `text_types`
    # Whether a mark stands for a missing value, so that Arrow alone cannot read it
    marks: bool = False
    fits: tuple[str, ...] | None = None  # kinds that the caller wants; any other becomes text

    @property
    def by_hand(self) -> bool:
        """Whether its texts are converted after parsing."""
        return self.kind in _BY_HAND or (self.marks and self.kind != "text")


class Delimited:
    """Reader of delimited text files that have the same header.

    Parameters
    ----------
    paths : list of Path
    types : dict from name to one of `text_types.WANTED`
        What is not of the wanted type is read as text and left to the caller, and so are the types
        of columns that the files lack.
    encoding, separator : str, optional
    block_size : int
        The result does not depend on it.
    """

    def __init__(
        self,
        paths: list[Path],
        *,
        types: dict[str, str],
        encoding: str | None = None,
        separator: str | None = None,
        block_size: int = BLOCK,
    ):
        self.files = [TextFile(path, encoding, block_size) for path in paths]
        self.path = self.files[0].path
        fields, self.separator, start = self.files[0].header(separator)
        names = self.names = _names(self.path, fields)
        self._starts = [start, *(self._same_header(file, names) for file in self.files[1:])]
        if block_size == BLOCK:
            for file in self.files:
                file.block_size = min(max(BLOCK, _BYTES_PER_COLUMN * len(names)), _MAX_BLOCK)
        fits = [text_types.WANTED[types[name]] if name in types else None for name in names]
        kinds = ["text" if kinds == () else "empty" for kinds in fits]
        self.columns = [*map(_Column, names, kinds, [False] * len(names), fits)]
        self.has_commas = self.separator == ";"
        self._stale = False
        self._block_rows: list[int] = []

    def _same_header(self, file: TextFile, expected: list[str]) -> int:
        """Where the rows of a further file begin; a header other than the first is refused."""
        fields, _, start = file.header(self.separator)
        names = _names(file.path, fields)
        check_same_columns(self.path.name, expected, file.path.name, names)
        if names != expected:
            raise InputError(
                f"files of one table must have their columns in one order. {file.path.name} "
                f"differs from {self.path.name}: {names[:5]} and {expected[:5]}, ..."
            )
        return start

    def read(self) -> Spill:
        """All rows."""
        while True:
            spill, self._stale, self._block_rows = Spill(), False, []
            for block, parsed in self._ahead():
                batch = self._checked(block, parsed)
                self._block_rows.append(batch.num_rows)
                if not self._stale:
                    spill.append(batch)
            for column in self.columns:
                if column.kind == "long" or (column.kind == "empty" and column.marks):
                    self._widen(column, "text", False)
            if not self._stale:
                break
        if not spill.n_rows:
            raise InputError(
                f"{self.path.name} has a header of {len(self.columns)} columns and no rows."
            )
        return spill.finish(
            {column.name: text_types.arrow_type(column.kind) for column in self.columns}
        )

    def _ahead(self) -> Iterator[tuple[Block, _Parsed | None]]:
        """Blocks, parsed by other threads while this one writes what came before."""
        waiting: deque[tuple[Block, Any, Any]] = deque()
        with ThreadPoolExecutor(_THREADS) as pool:
            for block in chain(self._blocks(), [None] * _THREADS):
                if block is not None:
                    plan = self._plan()
                    waiting.append((block, plan, pool.submit(self._parsed, block, plan)))
                if waiting and (block is None or len(waiting) > _THREADS):
                    done, plan, parsed = waiting.popleft()
                    # What was parsed with types that have been widened since is parsed again.
                    same = plan == self._plan()
                    yield done, parsed.result() if same else self._parsed(done, self._plan())

    def _blocks(self) -> Iterator[Block]:
        for file, start in zip(self.files, self._starts, strict=True):
            yield from file.blocks(start, self.separator)

    def place(self, row: int) -> tuple[str, str]:
        """The file that holds a row, counted from 0, and where; slow, for error messages."""
        stops = list(accumulate(self._block_rows))
        i = bisect_right(stops, row)
        block = next(islice(self._blocks(), i, None))
        lines = [line for line, _ in block.file.records(block, self.separator)]
        row -= stops[i] - self._block_rows[i]
        where = f"in line {lines[row]:,}" if row < len(lines) else "further down"
        return block.file.path.name, where

    # --- one block ---

    def _plan(self) -> list[tuple[str, bool]]:
        """Kind of every column, and whether its texts are converted after parsing."""
        return [(column.kind, column.by_hand) for column in self.columns]

    def _parsed(self, block: Block, plan: list[tuple[str, bool]]) -> _Parsed | None:
        """Columns of a block as planned, and which are texts to look at; None if it does not fit.

        Changes nothing, so that threads may call it.
        """
        types = [text_types.arrow_type("text" if by_hand else kind) for kind, by_hand in plan]
        try:
            arrays = self._arrow(block, types)
        except pa.ArrowInvalid:
            return None
        texts = [j for j, (_, by_hand) in enumerate(plan) if by_hand]
        numbers = [
            j
            for j, (kind, by_hand) in enumerate(plan)
            if kind in ("integer", "number") and not by_hand
        ]
        zeros = likely_zeros(block.content, self.separator)
        if numbers and len(zeros):
            with_zeros = columns_at(block.content, zeros, self.separator, len(plan))
            if with_zeros is not None:
                numbers = sorted(set(numbers) & set(with_zeros.tolist()))
            for j, column in zip(numbers, self._texts(block, numbers), strict=True):
                if text_types.has_leading_zeros(column):
                    arrays[j] = column
                    texts.append(j)
        return arrays, texts

    def _checked(self, block: Block, parsed: _Parsed | None) -> pa.RecordBatch:
        """Values of a block in types that fit it and the blocks before."""
        everything = range(len(self.columns))
        arrays, texts = parsed or (self._texts(block, everything), list(everything))
        for j in texts:
            self._look(self.columns[j], arrays[j])
        if parsed is None:
            # Arrow converts all columns at once where it can do so alone.
            converted = self._parsed(block, self._plan())
            arrays, texts = converted or (arrays, texts)
        for j in texts:
            arrays[j] = self._values(self.columns[j], arrays[j])
        return pa.RecordBatch.from_arrays(arrays, [column.name for column in self.columns])

    def _arrow(self, block: Block, types: list[Any], places: Any = None) -> list[Any]:
        """Columns of a block in these types, those at the places only."""
        from pyarrow import csv

        labels = [str(j) for j in range(len(self.columns))]
        places = range(len(labels)) if places is None else places
        table = csv.read_csv(
            block.reader(),
            read_options=csv.ReadOptions(
                column_names=labels, block_size=len(block.content) + 1, use_threads=False
            ),
            parse_options=csv.ParseOptions(delimiter=self.separator, newlines_in_values=True),
            convert_options=csv.ConvertOptions(
                column_types=dict(zip(labels, types, strict=True)),
                null_values=text_types.MISSING,
                true_values=text_types.TRUE,
                false_values=text_types.FALSE,
                strings_can_be_null=True,
                include_columns=[labels[j] for j in places],
            ),
        )
        return [one_array(column) for column in table.columns]

    def _texts(self, block: Block, places: Any) -> list[Any]:
        """Texts of a block; a block that cannot be parsed is refused."""
        if not len(places):
            return []
        try:
            return self._arrow(block, [pa.string()] * len(self.columns), places)
        except pa.ArrowInvalid as error:
            file, n_columns = block.file, len(self.columns)
            file.check_utf8(block)
            for line, fields in file.records(block, self.separator):
                if len(fields) != n_columns:
                    raise InputError(
                        f"line {line:,} of {file.path.name} has {len(fields)} "
                        f"field{'s' if len(fields) != 1 else ''}, expected {n_columns} as in the "
                        f"header. Got {self.separator.join(fields)[:60]!r}. Mend the line, or put "
                        "quotes around a field that holds the separator."
                    ) from error
            raise InputError(
                f"{file.path.name} cannot be read after line "
                f"{file.line(block.offset):,} ({first_line(error)})."
            ) from error

    def _look(self, column: _Column, texts: Any) -> None:
        """Widen what is known of a column by its texts in a block."""
        if column.fits != ():
            kind, marks = text_types.classified(texts, comma=self.has_commas)
            kind = text_types.wider(column.kind, kind)
            is_fit = column.fits is None or kind in column.fits
            self._widen(column, kind if is_fit else "text", is_fit and (column.marks or marks))

    def _widen(self, column: _Column, kind: str, marks: bool) -> None:
        was_empty = column.kind == "empty" and not (column.marks and kind in ("text", "long"))
        if kind != column.kind and not was_empty and (column.kind, kind) not in _CASTS:
            self._stale = True
        column.kind, column.marks = kind, marks

    def _values(self, column: _Column, texts: Any) -> Any:
        try:
            return text_types.converted(texts, column.kind)
        except pa.ArrowInvalid:  # a year that nanoseconds cannot hold
            self._widen(column, "text", False)
            return texts


def _names(path: Path, fields: list[str]) -> list[str]:
    """Names of the columns; one column, or two of a name, are refused."""
    names = [field.strip() or f"column {j}" for j, field in enumerate(fields, 1)]
    if len(names) < 2:
        raise InputError(
            f"{path.name} has one column only, {names[0][:40]!r}. Expected "
            "a header line of names with a comma, semicolon, tab or bar between them."
        )
    seen: dict[str, int] = {}
    for j, name in enumerate(names, 1):
        if name in seen:
            raise InputError(
                f"column names must be distinct. {path.name} has {name!r} "
                f"as column {seen[name]} and column {j}. Rename one."
            )
        seen[name] = j
    return names
