"""Tables of a command that live on Dask or Spark: connecting, reading Parquet, letting go."""

from __future__ import annotations

import hashlib
import logging
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from glob import glob
from pathlib import Path
from typing import Any

from holdtrue.cli.ask import Ask, Data
from holdtrue.engine import engine_failure, frame_engine, missing_engine
from holdtrue.engine.table import ExchangeTable
from holdtrue.errors import EngineError, InputError, MissingFileError, check_choice
from holdtrue.tables.table import Fingerprint

ENGINES = ("dask", "spark")


class EngineFiles(ExchangeTable):
    """Parquet files as an engine reads them; what a summary says of its data."""

    n_rows = 0  # known after the first pass
    readings: Mapping[str, Any] = {}  # an engine guesses no types

    def __init__(self, frame: Any, pattern: str, engine: str):
        super().__init__(frame_engine(frame))
        self.frame, self._pattern = frame, pattern
        self.description = f"{Path(pattern).name} (Parquet, by {engine.title()})"

    def has(self, name: str) -> bool:
        """Whether there is a column of that name."""
        return name in self.types

    def fingerprint(self) -> Fingerprint:
        """Of the files' names and sizes, where this machine sees them."""
        digest = hashlib.sha256()
        files = _files(self._pattern)
        for file in files:
            digest.update(f"{Path(file).name} {Path(file).stat().st_size} ".encode())
        digest.update(b"" if files else self._pattern.encode())
        names = f"the names and sizes of its {len(files)} files" if files else "its path"
        return Fingerprint(digest.hexdigest(), names)


def _files(pattern: str) -> list[str]:
    paths = [Path(path) for path in glob(pattern)]  # noqa: PTH207 (the pattern may be absolute)
    files = [file for path in paths for file in (path.rglob("*") if path.is_dir() else [path])]
    return sorted(str(file) for file in files if file.is_file())


@contextmanager
def data_on_engine(
    ask: Ask,
    engine: str,
    address: str | None,
    master: str | None,
    target: str,
    groups: str | None,
    target_type: str,
) -> Iterator[Data]:
    """The table of a command on an engine, without rows that lack a target or group.

    By default a cluster of Dask is started here, and Spark runs on this machine.
    """
    check_choice("--engine", engine, ENGINES)
    others = {"--address": address} if engine == "spark" else {"--master": master}
    others |= {"--table": ask.table, "--encoding": ask.encoding, "--weights": ask.weights}
    for option, value in [*others.items(), ("--type", ask.types), ("--only", ask.only)]:
        if value:
            raise InputError(f"{option} does not go with --engine {engine}. Leave it out.")
    if "://" not in ask.file and not _files(ask.file):
        raise MissingFileError(f"no file {ask.file!r}. Pass Parquet files or a folder of them.")
    with ExitStack() as open_things:
        read = _dask(open_things, address) if engine == "dask" else _spark(open_things, master)
        try:
            frame = read(ask.file)
        except Exception as error:
            reason = str(error.__cause__ or error).splitlines()[0]
            raise InputError(f"{ask.file} cannot be read as Parquet ({reason}).") from error
        table = EngineFiles(frame, ask.file, engine)
        option_of, drop, _ = ask.roles(table, ("--target", target), ("--groups", groups))
        names = [name for name in table.names if name not in {*option_of, *drop}]
        columns = list(option_of)
        n_missing, n_rows = table.missing(columns)
        ask.check_missing(option_of, n_missing, n_rows)
        frame = table.select([*names, *columns])
        if any(n_missing.values()):
            frame = frame.dropna(subset=columns)
        table = EngineFiles(frame, ask.file, engine)
        table.n_rows = table.missing(columns)[1]
        kept: Any = table
        data = Data(ask, kept, names, tuple(drop), n_rows, n_missing, target, groups)
        data.check_names()
        yield replace(data, kind=table.target_kind(target, target_type))


def _dask(open_things: ExitStack, address: str | None) -> Any:
    try:
        import dask.dataframe
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise missing_engine("dask") from error
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what fails is said once
    try:
        if address is None:
            folder = open_things.enter_context(
                tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
            )
            cluster = LocalCluster(
                threads_per_worker=1,
                dashboard_address=":0",
                local_directory=folder,
                silence_logs=logging.CRITICAL,
            )
            address = open_things.enter_context(cluster)
        open_things.enter_context(Client(address))
    except (OSError, ValueError) as error:
        raise EngineError(f"no scheduler of Dask answers at {address} ({error}).") from error
    return dask.dataframe.read_parquet


def _spark(open_things: ExitStack, master: str | None) -> Any:
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise missing_engine("spark") from error
    builder = SparkSession.builder.appName("holdtrue").config("spark.log.level", "ERROR")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    try:
        session = builder.master(master or "local[*]").getOrCreate()
    except Exception as error:
        if "JAVA_GATEWAY_EXITED" in str(error):
            raise EngineError("Spark did not start. It needs Java 17 or newer.") from error
        raise engine_failure("Spark", error) from error
    open_things.callback(_stop, session)
    return session.read.parquet


def _stop(session: Any) -> None:
    with suppress(Exception):  # a driver that has died is not there to be stopped
        session.stop()
