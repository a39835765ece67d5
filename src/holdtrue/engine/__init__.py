"""Tables that live elsewhere: frames of Dask and Spark, tables of databases.

A database sums by itself (`holdtrue.engine.database`). An engine of Dask or Spark has the types of
its columns and one verb, `Engine.exchange`: cut every part of the table into buckets, bring equal
buckets together, join each. Sums (`ExchangeTable.sum`), classes and profiles are made of it, by the
code that counts on one machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from holdtrue.errors import EngineError, InputTypeError, MissingPackageError, SpokenError

if TYPE_CHECKING:
    from holdtrue.engine.table import EngineTable

__all__ = [
    "Engine",
    "Join",
    "Split",
    "engine_failure",
    "engine_of",
    "frame_engine",
    "missing_engine",
    "speaking",
]

# Pieces of a part by bucket, None where a bucket gets nothing; and the join of a bucket's pieces.
Split = Callable[[int, Any], list[Any]]
Join = Callable[[int, list[Any]], Any]
# What errors of engines say when their scheduler or driver is gone.
_LOST = (
    "CommClosedError", "CancelledError", "FutureCancelled", "StreamClosed", "TimeoutError",
    "Timed out", "Py4JNetworkError", "ConnectionRefused", "ConnectionReset",
    "Answer from Java side is empty", "SparkContext was shut down", "stopped SparkContext",
    "no attribute 'setCallSite'",
)  # fmt: skip


class Engine(Protocol):
    """Where a table lives in parts on many machines.

    Functions that an engine is given are pure, so that it may run them again when a worker dies.

    Attributes
    ----------
    types : dict from name to pyarrow.DataType
        By the engine's schema, in the order of the columns.
    """

    types: dict[str, Any]

    def select(self, columns: Sequence[str]) -> Any:
        """The frame with these columns only; nothing is computed."""

    def exchange(
        self, columns: Sequence[str], split: Split, join: Join, n_buckets: int
    ) -> list[Any]:
        """Cut every part of some columns into buckets, and join the pieces of each bucket.

        Parameters
        ----------
        columns : sequence of str
        split : callable
            ``split(number, table)`` gives ``n_buckets`` pieces of an Arrow table that holds rows
            of the part of that number, at least one.
        join : callable
            ``join(bucket, pieces)`` of all pieces of a bucket that are not None.
        n_buckets : int

        Returns
        -------
        joined : list
            Of the buckets in order that have a piece.
        """


def engine_of(data: Any) -> EngineTable | None:
    """The table of a frame of Dask or Spark, or in a database; None for anything else."""
    home = type(data).__module__
    if home == "holdtrue.engine.database":
        return data
    if home.split(".")[0] not in ("dask", "dask_expr", "pyspark"):
        return None
    from holdtrue.engine.exchange import ExchangeTable

    return ExchangeTable(frame_engine(data))


def frame_engine(frame: Any) -> Engine:
    """The engine of a frame of Dask or Spark."""
    home = type(frame).__module__.split(".")
    if home[:2] == ["pyspark", "pandas"] and hasattr(frame, "to_spark"):
        frame = frame.to_spark()
    kind = type(frame)  # a Delayed of Dask has every attribute
    if hasattr(kind, "mapInArrow"):
        from holdtrue.engine.spark import SparkEngine

        return SparkEngine(frame)
    if hasattr(kind, "to_delayed") and hasattr(kind, "columns") and frame.ndim == 2:
        from holdtrue.engine.dask import DaskEngine

        return DaskEngine(frame)
    name = "Spark" if home[0] == "pyspark" else "Dask"
    raise InputTypeError(
        f"expected a data frame of {name}. Got {type(frame).__name__}. Turn it into one."
    )


def missing_engine(name: str) -> MissingPackageError:
    """The error of an engine that is not installed."""
    return MissingPackageError(
        f"the engine {name} is not installed. Run `pip install 'holdtrue[{name}]'`"
        + (" and install Java 17 or newer." if name == "spark" else ".")
    )


@contextmanager
def speaking(name: str) -> Iterator[None]:
    """Turn failures of an engine into `engine_failure`; what is a sentence stays as it is."""
    try:
        yield
    except SpokenError:
        raise
    except Exception as error:
        raise engine_failure(name, error) from error


def engine_failure(name: str, error: BaseException) -> EngineError:
    """An engine's own failure in a sentence.

    Parameters
    ----------
    name : str
        Of the engine, such as "Dask".
    error : Exception
    """
    text = f"{type(error).__name__}: {error}"
    if "No module named 'holdtrue" in f"{text} {error.__cause__!r}":
        return EngineError(
            f"a worker of {name} has no holdtrue. Install the version that runs here on every "
            "worker (and on the scheduler), and start again."
        )
    if any(sign in text for sign in ("KilledWorker", "ExecutorLostFailure", "OutOfMemory")):
        return EngineError(
            f"workers of {name} died again and again at the same work, most often for want of "
            "memory. Give them more, or make the partitions smaller."
        )
    if any(sign in text for sign in _LOST):
        return EngineError(
            f"the connection to {name} was lost. Nothing was written. See whether its "
            "scheduler or driver still runs, and start again."
        )
    lines = [line for line in str(error).splitlines() if line.strip()]
    return EngineError(f"{name} failed: {type(error).__name__}: {' '.join(lines[:4])[:500]}")
