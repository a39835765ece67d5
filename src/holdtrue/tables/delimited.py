"""Delimited text (CSV, TSV) of any size to typed columns, in one pass where the types hold.

The texts of a block take the types of those before it. Where one does not fit, the types are
widened. Only if values that were kept already cannot be turned into the wider type (a number whose
column turns out to be text) the file is read once more, with the types that are known by then.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate, islice
from pathlib import Path

import pyarrow as pa

from holdtrue.columns.values import one_array
from holdtrue.errors import InputError, counted, first_line
from holdtrue.tables import text_types
from holdtrue.tables.files import check_same_columns
from holdtrue.tables.source import Spill
from holdtrue.tables.text import BLOCK, Block, TextFile

# Changes of kind after which the values that were kept can still be used.
_CASTS = {
    ("integer", "number"), ("integer", "pointless"), ("integer", "comma"), ("pointless", "number"),
    ("pointless", "comma"), ("date", "timestamp"), ("long", "text"),
}  # fmt: skip
# Bytes of a block for every column, so that a block of a wide table has some rows.
_BYTES_PER_COLUMN = 1 << 12
_MAX_BLOCK = 1 << 27
_THREADS = 2


@dataclass
class _Column:
    """What is known of a column."""

    name: str
    kind: str = "empty"  # of `text_types`
    fits: tuple[str, ...] | None = None  # kinds that the caller wants; any other becomes text


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
        self.columns = [*map(_Column, names, kinds, fits)]
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
            for texts in self._ahead():
                arrays = [*map(self._values, self.columns, texts)]
                self._block_rows.append(len(arrays[0]))
                if not self._stale:
                    spill.append(pa.RecordBatch.from_arrays(arrays, self.names))
            for column in self.columns:
                if column.kind in ("long", "marked"):
                    self._widen(column, "text")
            if not self._stale:
                break
        if not spill.n_rows:
            raise InputError(
                f"{self.path.name} has a header of {len(self.columns)} columns and no rows."
            )
        return spill.finish(
            {column.name: text_types.arrow_type(column.kind) for column in self.columns}
        )

    def _ahead(self) -> Iterator[list[pa.Array]]:
        """Texts of each block, parsed by other threads while this one keeps what came before."""
        waiting: deque[Future[list[pa.Array]]] = deque()
        with ThreadPoolExecutor(_THREADS) as pool:
            for block in self._blocks():
                waiting.append(pool.submit(self._texts, block))
                if len(waiting) > _THREADS:
                    yield waiting.popleft().result()
            yield from (parsed.result() for parsed in waiting)

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

    def _texts(self, block: Block) -> list[pa.Array]:
        """Texts of a block, column by column; a block that cannot be parsed is refused."""
        from pyarrow import csv

        n_columns = len(self.columns)
        labels = [str(j) for j in range(n_columns)]
        try:
            table = csv.read_csv(
                block.reader(),
                read_options=csv.ReadOptions(
                    column_names=labels, block_size=len(block.content) + 1, use_threads=False
                ),
                parse_options=csv.ParseOptions(delimiter=self.separator, newlines_in_values=True),
                convert_options=csv.ConvertOptions(
                    column_types=dict.fromkeys(labels, pa.string()),
                    null_values=text_types.MISSING,
                    strings_can_be_null=True,
                ),
            )
            return [one_array(column) for column in table.columns]
        except pa.ArrowInvalid as error:
            file = block.file
            file.check_utf8(block)
            for line, fields in file.records(block, self.separator):
                if len(fields) != n_columns:
                    raise InputError(
                        f"line {line:,} of {file.path.name} has "
                        f"{counted(len(fields), 'field')}, expected {n_columns} as in the header. "
                        f"Got {self.separator.join(fields)[:60]!r}. Mend the line, or put "
                        "quotes around a field that holds the separator."
                    ) from error
            raise InputError(
                f"{file.path.name} cannot be read after line "
                f"{file.line(block.offset):,} ({first_line(error)})."
            ) from error

    def _values(self, column: _Column, texts: pa.Array) -> pa.Array:
        """Values of a column in a block; what is known of the column is widened where it must."""
        values = text_types.values_of(texts, column.kind)
        if values is not None:
            return values
        kind = text_types.wider(column.kind, text_types.classified(texts, comma=self.has_commas))
        self._widen(column, kind if column.fits is None or kind in column.fits else "text")
        try:
            return text_types.converted(texts, column.kind)
        except pa.ArrowInvalid:  # a year that nanoseconds cannot hold
            self._widen(column, "text")
            return texts

    def _widen(self, column: _Column, kind: str) -> None:
        was_missing = column.kind == "empty" or (
            column.kind == "marked" and kind not in ("text", "long")
        )
        if kind != column.kind and not was_missing and (column.kind, kind) not in _CASTS:
            self._stale = True
        column.kind = kind


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
