"""Frames of Spark: Arrow batches through `mapInArrow`, and an exchange as a shuffle of pieces."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa

from holdtrue.columns.values import same_names
from holdtrue.engine import Join, Split, speaking
from holdtrue.errors import InputError, SpokenError

# Rows of a partition that are cut at a time.
_ROWS = 1 << 20
_PIECES = "bucket int, piece binary"


class SparkEngine:
    """A data frame of Spark, in the session that made it."""

    def __init__(self, frame: Any):
        self._frame = frame
        if len(set(frame.columns)) < len(frame.columns):
            raise same_names(frame.columns)
        with speaking("Spark"), _quiet():
            schema = frame.limit(0).toArrow().schema
        self.types = dict(zip(schema.names, schema.types, strict=True))

    def select(self, columns: Sequence[str]) -> Any:
        """As in `Engine`."""
        return self._frame.select(*("`" + name.replace("`", "``") + "`" for name in columns))

    def exchange(
        self, columns: Sequence[str], split: Split, join: Join, n_buckets: int
    ) -> list[Any]:
        """As in `Engine`."""

        # Functions, because Spark counts the arguments of what it is given.
        def cut(batches: Any) -> Any:
            return _cut(split, list(columns), batches)

        def joined_bucket(rows: Any) -> Any:
            return _joined_bucket(join, rows)

        # Names with a dot would be read as fields of a struct, "a" and "A" as one column.
        places = {name: f"c{i}" for i, name in enumerate(self.types)}
        with speaking("Spark"), _quiet():
            plain = self._frame.toDF(*places.values()).select([places[name] for name in columns])
            pieces = plain.mapInArrow(cut, _PIECES)
            joined = pieces.groupBy("bucket").applyInArrow(joined_bucket, _PIECES).collect()
        results = [pickle.loads(row["piece"]) for row in sorted(joined, key=lambda r: r["bucket"])]
        for result in results:
            if isinstance(result, _Refusal):
                raise InputError(result.sentence)
        return results


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Spark's warnings about pandas versions; nothing here depends on those."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


class _Refusal(NamedTuple):
    """What was refused on a worker; a result, so that Spark does not try again."""

    sentence: str


def _cut(split: Split, names: list[str], batches: Iterator[Any]) -> Iterator[Any]:
    """``split`` for the batches of a partition; pieces come as rows of bytes."""
    from pyspark import TaskContext

    context = TaskContext.get()
    number = 0 if context is None else context.partitionId()
    for table in _tables(batches):
        try:
            pieces = split(number, table.rename_columns(names))
        except SpokenError as error:
            pieces = [_Refusal(error.sentence)]
        for bucket, piece in enumerate(pieces):
            if piece is not None:
                yield _row(bucket, piece)


def _joined_bucket(join: Join, rows: Any) -> Any:
    """``join`` for the rows of a bucket."""
    bucket = rows.column("bucket")[0].as_py()
    pieces = [pickle.loads(piece.as_buffer()) for piece in rows.column("piece")]
    refusals = [piece for piece in pieces if isinstance(piece, _Refusal)]
    try:
        result = refusals[0] if refusals else join(bucket, pieces)
    except SpokenError as error:
        result = _Refusal(error.sentence)
    return pa.Table.from_batches([_row(bucket, result)])


def _row(bucket: int, piece: Any) -> Any:
    arrays = [pa.array([bucket], pa.int32()), pa.array([pickle.dumps(piece, 5)], pa.binary())]
    return pa.RecordBatch.from_arrays(arrays, ["bucket", "piece"])


def _tables(batches: Iterator[Any]) -> Iterator[Any]:
    """Tables of about `_ROWS` rows from small batches; none without rows."""
    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        if sum(one.num_rows for one in waiting) >= _ROWS:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if any(one.num_rows for one in waiting):
        yield pa.Table.from_batches(waiting)
