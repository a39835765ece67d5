"""Frames of Dask: partitions become Arrow tables, and an exchange a graph of tasks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import pyarrow as pa

from holdtrue.columns.values import columns_of, is_plain, refused, type_kind, value_type
from holdtrue.engine import Join, Split, speaking
from holdtrue.errors import EngineError, InputError

# Seconds after which workers are looked for, and after which a cluster without any is given up
# unless Dask's own setting, distributed.scheduler.no-workers-timeout, says otherwise.
_LOOK, _GIVEN_UP = 2.0, 300.0


class DaskEngine:
    """A Dask data frame, by its own scheduler or the client that is open."""

    def __init__(self, frame: Any):
        self._frame = frame
        self._labels = {str(label): label for label in frame.columns}
        with speaking("Dask"):  # it cannot make an example of every type
            columns = columns_of(frame._meta_nonempty)
        for name, column in columns.items():
            if not hasattr(column, "type"):  # such as periods
                raise refused(name, str(frame.dtypes[self._labels[name]]))
        self.types = {name: column.type for name, column in columns.items()}

    def select(self, columns: Sequence[str]) -> Any:
        """As in `Engine`."""
        return self._frame[[self._labels[name] for name in columns]]

    def exchange(
        self, columns: Sequence[str], split: Split, join: Join, n_buckets: int
    ) -> list[Any]:
        """As in `Engine`."""
        from dask import delayed

        types = {name: value_type(self.types[name]) for name in columns}
        cut = delayed(partial(_split_frame, types, split, n_buckets), nout=n_buckets, pure=False)
        join_pieces = delayed(partial(_join_present, join), pure=False)
        with speaking("Dask"):
            pieces = [
                cut(number, part) for number, part in enumerate(self.select(columns).to_delayed())
            ]
            joined = [join_pieces(b, [piece[b] for piece in pieces]) for b in range(n_buckets)]
            return [result for result in _computed(joined) if result is not None]


def _computed(tasks: list[Any]) -> Any:
    """Results of tasks, by the scheduler that Dask would choose."""
    from dask.base import compute, get_scheduler

    client = getattr(get_scheduler(collections=tasks), "__self__", None)
    if client is None:  # threads or processes of this machine
        return compute(*tasks)
    homes = client.run(find_spec, "holdtrue", on_error="return")
    if any(home is None or isinstance(home, ImportError) for home in homes.values()):
        # Such a worker would die of its first task, and Dask wait for another.
        raise ModuleNotFoundError("No module named 'holdtrue'")
    futures = client.compute(tasks)
    for future in futures:
        _wait(client, future)
    return client.gather(futures)


def _wait(client: Any, future: Any) -> None:
    """Wait for a task as long as there are workers; Dask itself would wait for them for ever."""
    from dask.config import get
    from dask.utils import parse_timedelta

    limit = parse_timedelta(get("distributed.scheduler.no-workers-timeout", None)) or _GIVEN_UP
    seen = time.monotonic()
    while future.status == "pending":
        try:
            future.exception(timeout=_LOOK)
        except TimeoutError:
            if client.scheduler_info()["workers"]:
                seen = time.monotonic()
            elif time.monotonic() - seen > limit:
                raise EngineError(
                    f"Dask has had no worker for {limit:.0f} seconds. Nothing was written. Start "
                    "workers, and start again. Workers that die at once may lack a package that "
                    "the frame needs: see their logs."
                ) from None


def _join_present(join: Join, bucket: int, pieces: list[Any]) -> Any:
    """``join`` for the pieces of all partitions, of which some may have none."""
    pieces = [piece for piece in pieces if piece is not None]
    return join(bucket, pieces) if pieces else None


def _split_frame(
    types: dict[str, Any], split: Split, n_buckets: int, number: int, part: Any
) -> list[Any]:
    """``split`` for a partition, which is a pandas frame."""
    if not len(part):
        return [None] * n_buckets
    columns = columns_of(part)
    arrays = [_in_type(name, columns[name], kind) for name, kind in types.items()]
    return split(number, pa.table(arrays, names=list(types)))


def _in_type(name: str, column: Any, kind: Any) -> Any:
    """A column of a partition in the type that the frame declares; others are refused."""
    given = "values of several types"
    if hasattr(column, "type"):
        stored = value_type(column.type)
        given = str(stored)
        try:
            if pa.types.is_null(stored) or _family(stored) == _family(kind):
                return column.cast(stored).cast(kind)
        except pa.ArrowInvalid as error:
            given += f" ({error})"
    raise InputError(
        f"column {name!r} is {kind} by the frame's types. Got {given} in a partition. Give it one "
        "type with frame.astype, or make its categories known with frame.categorize()."
    )


def _family(kind: Any) -> tuple[Any, ...]:
    """What types share whose values may be equal."""
    is_time = pa.types.is_temporal(kind)
    has_zone = pa.types.is_timestamp(kind) and kind.tz is not None
    is_truth, is_number = pa.types.is_boolean(kind), type_kind(kind) in ("integer", "number")
    return is_number, is_truth, is_time, has_zone, is_plain(kind)
