"""Bytes of a text file, in UTF-8 and in blocks of whole records."""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa

from holdtrue.errors import InputError
from holdtrue.tables.files import FILES, check_unpacked

BLOCK = 1 << 22
# A record longer than this is a quote that was never closed.
MAX_RECORD = 1 << 27
SEPARATORS = (",", ";", "\t", "|")
_SEPARATOR_LINE = re.compile(rb'"?[Ss]ep=([,;\t|])"?')
_BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


class Block(NamedTuple):
    """Whole records of a text file."""

    content: bytes  # UTF-8
    offset: int  # place of the first byte in the text as UTF-8, without a byte order mark
    file: TextFile

    def reader(self) -> Any:
        """The content as an Arrow file, in memory that Arrow's threads can free."""
        buffer = pa.allocate_buffer(len(self.content))
        with pa.FixedSizeBufferWriter(buffer) as writer:
            writer.write(self.content)
        return pa.BufferReader(buffer)


def _refuse_utf_16(name: str, start: bytes) -> None:
    """Refuse text that begins with two printable characters of two bytes each."""
    letters = start.replace(b"\0", b"").decode("latin-1")
    for encoding in ("utf-16-le", "utf-16-be"):
        if len(letters) == 2 and letters.isprintable() and letters.encode(encoding) == start:
            raise InputError(
                f"{name} looks like UTF-16 without a byte order mark. Pass its encoding, "
                f"encoding={encoding!r}."
            )


class TextFile:
    """A text file, plain or compressed by gzip.

    Without an encoding it is what the byte order mark says, or else UTF-8.
    """

    def __init__(self, path: Path, encoding: str | None = None, block_size: int = BLOCK):
        self.path, self.block_size = path, block_size
        with path.open("rb") as file:
            self.is_gzip = file.read(2) == b"\x1f\x8b"
            self._n_packed = os.fstat(file.fileno()).st_size
        try:
            with self._open() as file:
                start = file.read(4)
        except (OSError, EOFError, zlib.error) as error:
            raise self._corrupt(0, error) from error
        mark = next((bom for bom in _BOMS if start.startswith(bom)), b"")
        self.encoding = _BOMS[mark] if mark else "utf-8"
        if encoding is not None:
            try:
                self.encoding = codecs.lookup(encoding).name
                io.TextIOWrapper(io.BytesIO(), encoding)  # "rot13" is not an encoding of text
            except LookupError as error:
                raise InputError(
                    f"no encoding {encoding!r}. Pass one that Python knows, such as "
                    "'utf-8', 'latin-1', 'cp1252' or 'utf-16'."
                ) from error
        elif not mark:
            _refuse_utf_16(path.name, start)
        self.encoding = self.encoding.removesuffix("-sig")
        # Other decoders pass over a byte order mark themselves.
        self._n_mark = len(mark) if _BOMS.get(mark) == self.encoding else 0
        self._end_of_line = b"\n"

    def _open(self) -> BinaryIO:
        return gzip.open(self.path) if self.is_gzip else self.path.open("rb")  # type: ignore[return-value]

    def _corrupt(self, n_read: int, error: Exception) -> ValueError:
        return InputError(
            f"{self.path.name} cannot be unpacked after {n_read:,} bytes of text "
            f"({error or type(error).__name__}): the gzip file is damaged or cut off. "
            "Fetch or write it again."
        )

    def chunks(self, size: int = BLOCK) -> Iterator[bytes]:
        """The text as UTF-8, piece by piece; whether it is UTF-8 is checked where it is parsed."""
        decoder = None
        if self.encoding != "utf-8":
            decoder = codecs.getincrementaldecoder(self.encoding)()
        n_read = 0
        with self._open() as file:
            file.read(self._n_mark)
            while True:
                try:
                    raw = file.read(size)
                except (OSError, EOFError, zlib.error) as error:
                    raise self._corrupt(n_read, error) from error
                if decoder is None:
                    chunk = raw
                else:
                    try:
                        chunk = decoder.decode(raw, final=not raw).encode("utf-8", "surrogatepass")
                    except UnicodeError as error:  # without a place where the mark is missing
                        at = self._n_mark + n_read + getattr(error, "start", 0)
                        raise InputError(
                            f"{self.path.name} is not {self.encoding}: "
                            f"{getattr(error, 'reason', error)} near byte {at:,}. Pass another "
                            "encoding= (--encoding)."
                        ) from error
                n_read += len(raw)
                if self.is_gzip:
                    check_unpacked(self.path.name, n_read, self._n_packed, "Unpack it with gunzip")
                if chunk:
                    yield chunk
                if not raw:
                    return

    def blocks(self, offset: int, separator: str | None) -> Iterator[Block]:
        """Blocks of whole records from a place on; without a separator every line is a record."""
        at, skip, end_of_line = offset, offset, self._end_of_line
        # Chunks since the last whole record. An open quote is looked for again only when their size
        # has doubled, so that the time stays in proportion to the file.
        waiting, n_waiting, next_look = [], 0, 0
        for chunk in self.chunks(self.block_size):
            if skip:
                skipped = min(skip, len(chunk))
                skip, chunk = skip - skipped, chunk[skipped:]
            waiting.append(chunk)
            n_waiting += len(chunk)
            if n_waiting < next_look:
                continue
            content = b"".join(waiting)
            cut = last_end(content, end_of_line, separator)
            if cut:
                yield Block(content[:cut], at, self)
                at, content, next_look = at + cut, content[cut:], 0
            elif n_waiting > MAX_RECORD:
                raise self._endless(content, at, separator)
            else:
                next_look = min(2 * n_waiting, MAX_RECORD + 1)
            waiting, n_waiting = [content], len(content)
        rest = b"".join(waiting)
        if not rest:
            return
        if separator is not None and b'"' in rest:
            opened = _quoted(rest, separator)[1]
            if opened is not None:
                line = self.line(at) + rest.count(end_of_line, 0, opened)
                raise InputError(
                    f"{self.path.name} ends inside a quote that opens in line {line:,}. Close it, "
                    "or look whether the file was cut off."
                )
        yield Block(rest, at, self)

    def _endless(self, content: bytes, at: int, separator: str | None) -> ValueError:
        """The error about a record that is too long."""
        opened = _quoted(content, separator)[1] if separator is not None else None
        line = self.line(at) + content.count(self._end_of_line, 0, opened or 0)
        hint = "Look for a quote that is not closed." if opened is not None else "Break the line."
        return InputError(
            f"{self.path.name} has a record of more than {MAX_RECORD >> 20} MB from line {line:,} "
            f"on. {hint}"
        )

    def line(self, offset: int) -> int:
        """Number of the line that holds this byte of the text; the first is 1."""
        n_lines, left = 1, offset
        for chunk in self.chunks():
            n_lines += chunk.count(self._end_of_line, 0, left)
            left -= len(chunk)
            if left <= 0:
                break
        return n_lines

    def check_utf8(self, block: Block) -> None:
        """Refuse a block that is not UTF-8, naming the byte and the line."""
        try:
            block.content.decode("utf-8")
        except UnicodeDecodeError as error:
            at = block.offset + error.start
            raise InputError(
                f"{self.path.name} is not UTF-8: byte "
                f"0x{block.content[error.start]:02x} at position {at + self._n_mark:,}, "
                f"line {self.line(at):,}. Pass its encoding, such as encoding='latin-1' or "
                "'cp1252'."
            ) from error

    def header(self, separator: str | None) -> tuple[list[str], str, int]:
        """Fields of the first record, the separator, and where the second record begins.

        Without a separator it is the one of `SEPARATORS` that the first line has most of. A line
        ``sep=;`` above the header, which Excel understands, names it and is left out.
        """
        content, next_look = b"", 0
        for chunk in chain(self.chunks(), [b""]):
            content += chunk
            if b"\0" in chunk:
                raise InputError(
                    f"{self.path.name} is not a table: it holds bytes that are not text. "
                    f"Pass {FILES}."
                )
            # A header that is not whole is looked at again when the text has doubled.
            if content.strip() and (len(content) >= next_look or not chunk):
                fields, used, end = self._first_record(content, separator)
                if end < len(content) or not chunk:
                    return fields, used, end
                next_look = 2 * len(content)
            if len(content) > MAX_RECORD:
                raise InputError(
                    f"the header of {self.path.name} is longer than {MAX_RECORD >> 20} MB. Look "
                    "for a quote that is not closed."
                )
        raise InputError(f"{self.path.name} is empty. Expected a header line.")

    def _first_record(self, content: bytes, separator: str | None) -> tuple[list[str], str, int]:
        """Fields of the first record of a text that is not blank, the separator, and its end."""
        if b"\n" not in content and b"\r" in content:
            self._end_of_line = b"\r"
        lines = content.splitlines(keepends=True)
        filled = (i for i, line in enumerate(lines) if line.strip())
        n_blank = next(filled)
        if named := _SEPARATOR_LINE.fullmatch(lines[n_blank].rstrip(b"\r\n")):
            separator = named.group(1).decode()
            n_blank = next(filled, n_blank)
        start = sum(map(len, lines[:n_blank]))
        if lines[n_blank].endswith((b"\n", b"\r")):
            self.check_utf8(Block(lines[n_blank], start, self))
        first = lines[n_blank].decode("utf-8", "replace")
        if separator is None:
            outside = re.sub('"[^"]*"', "", first)
            separator = max(SEPARATORS, key=outside.count)
        texts = (line.decode("utf-8", "replace") for line in lines[n_blank:])
        reader = csv.reader(texts, delimiter=separator)
        try:
            fields = next(reader)
        except csv.Error as error:
            raise InputError(f"the header of {self.path.name} cannot be read ({error}).") from error
        end = start + sum(map(len, lines[n_blank : n_blank + reader.line_num]))
        return fields, separator, end

    def records(self, block: Block, separator: str) -> Iterator[tuple[int, list[str]]]:
        """Line number and fields of each record of a block; slow, for error messages.

        Stops at a field of more than 128 kB, which Python's reader refuses.
        """
        first = self.line(block.offset)
        lines = block.content.splitlines(keepends=True)
        texts = (line.decode("utf-8", "replace") for line in lines)
        reader = csv.reader(texts, delimiter=separator)
        last = 0
        with contextlib.suppress(csv.Error):
            for fields in reader:
                if fields:
                    yield first + last, fields
                last = reader.line_num


def last_end(content: bytes, end_of_line: bytes, separator: str | None) -> int:
    """Where the last whole record ends; 0 if none does. The content begins with a record."""
    if separator is None or b'"' not in content:
        return content.rfind(end_of_line) + 1
    characters = np.frombuffer(content, dtype=np.uint8)
    quotes = np.flatnonzero(characters == ord('"'))
    borders = np.array([ord(separator), *b'\r\n"'], dtype=np.uint8)
    before = characters[quotes[::2][quotes[::2] > 0] - 1]
    after = characters[quotes[1::2][quotes[1::2] + 1 < len(characters)] + 1]
    # Quotes that open after a separator and close before one, or are doubled, come in pairs.
    if not (np.isin(before, borders).all() and np.isin(after, borders).all()):
        spans = _quoted(content, separator)[0]
        quotes = np.array([(start, stop - 1) for start, stop in spans], dtype=np.int64).ravel()
    ends = np.flatnonzero(characters == ord(end_of_line))
    outside = ends[np.searchsorted(quotes, ends) % 2 == 0]
    return int(outside[-1]) + 1 if len(outside) else 0


def _quoted(content: bytes, separator: str) -> tuple[list[tuple[int, int]], int | None]:
    """Spans of the quoted fields, and where one opens that the content does not close."""
    pattern = rb'(?:(?<=[\r\n%s])|\A)"(?:[^"]++|"")*+("|\Z)' % re.escape(separator.encode())
    spans, opened = [], None
    for match in re.finditer(pattern, content):
        spans.append(match.span())
        opened = None if match.group(1) else match.start()
    return spans, opened
