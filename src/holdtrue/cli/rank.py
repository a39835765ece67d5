"""`holdtrue rank`: columns by their loss on new rows or new groups, here or on Dask and Spark."""

from __future__ import annotations

import hashlib
import logging
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.pipeline import make_pipeline

from holdtrue.categories import GingerEncoder, GingerSelector, rank_columns
from holdtrue.cli.answer import (
    Answer,
    Name,
    answered,
    call,
    kept_model,
    kept_warnings,
    opened_lines,
    program,
    promise_on,
)
from holdtrue.cli.ask import Ask, Data
from holdtrue.compare.field import fit_with_groups
from holdtrue.deployed import SavedModel
from holdtrue.deployed.contents import slim
from holdtrue.deployed.model import plain_rows
from holdtrue.engine import engine_failure, frame_engine, missing_engine
from holdtrue.engine.exchange import ExchangeTable
from holdtrue.errors import EngineError, InputError, MissingFileError, check_choice
from holdtrue.evidence import ColumnEvidence
from holdtrue.report.answers.rank import rank_summary
from holdtrue.tables.column_summary import feature_columns
from holdtrue.tables.table import Fingerprint

_MAX_BYTES = 1 << 31
_ENGINES = ("dask", "spark")


def answer(
    ask: Ask,
    target: str,
    *,
    groups: str | None,
    target_type: str,
    engine: str | None,
    address: str | None,
    master: str | None,
    **options: Any,
) -> Answer:
    """Columns by their loss; ``options`` are `rank_columns`'s."""
    if engine is not None:
        where = (engine, address, master)
        with _data_on_engine(ask, *where, target, groups, target_type) as data:
            table: Any = data.table
            return _ranked(table.frame, data, options)
    for option, value in (("--address", address), ("--master", master)):
        if value is not None:
            raise InputError(f"{option} needs --engine. Name one, dask or spark.")
    data = ask.open(target, groups, target_type=target_type, date_parts=True)
    data.check_names()
    columns = data.table.only([*data.names, target, *([groups] if groups else [])])
    chosen = {name: options[name] for name in ("criterion", "min_skill")}
    python = _lines(data, groups=groups, target_type=target_type, **options)
    options["sample_weight"] = data.whole_weights("a row that is left out stands for one row")
    return _ranked(columns, data, options, deployed=partial(_model, data, **chosen), python=python)


def _ranked(columns: Any, data: Data, options: dict[str, Any], **more: Any) -> Answer:
    """Ranking of a Table, or of a frame on an engine, as an answer with ``more``."""
    options |= {"groups": data.groups, "target_type": data.kind.target_type}
    with kept_warnings() as notes:
        path = rank_columns(columns, data.target, **options).path
    notes += data.date_notes(path.names[: path.chosen_size])
    if data.ask.no_values:
        path = replace(path, evidence=replace(path.evidence_as(ColumnEvidence), shapes=()))
    settings = {
        "target": data.target,
        "groups": data.groups,
        "rows": f"{data.table.n_rows:,}",
        "columns": len(data.names),
        "judged by": path.unit,
    }
    return answered(rank_summary(path, data.target), data, settings, notes, **more)


def _model(data: Data, **settings: Any) -> SavedModel:
    """`GingerEncoder` and a linear model on the columns that predict.

    ``settings`` are those of `GingerSelector`. The choice of columns and the encoding are repeated
    in every part that makes the promise.
    """
    rows = plain_rows(pa.Table.from_batches(data.table.batches(data.names)))
    if rows.nbytes > _MAX_BYTES:
        raise InputError(
            f"{rows.num_rows:,} rows of {len(data.names):,} columns need {rows.nbytes / 2**30:.1f} "
            f"GB, above the limit of {_MAX_BYTES >> 30} GB of a model. Leave rows or columns out, "
            "or leave out --save."
        )
    linear, name = LogisticRegression(max_iter=1000), "logistic regression"
    if data.kind.is_numeric:
        linear, name = RidgeCV(np.logspace(-3, 5, 17)), "ridge regression"
    kind = data.kind.target_type
    model = make_pipeline(
        GingerSelector(min_features=1, target_type=kind, **settings),
        # Before a linear model averages err less than one strength (experiments/encoder.py).
        GingerEncoder(average=True, target_type=kind, random_state=data.ask.seed),
        linear,
    )
    rows, y, labels = data.labelled_rows(rows)
    promise = promise_on(data, model, rows, y, labels)
    selector, encoder, estimator = fit_with_groups(model, rows, y, labels)
    kept = selector.get_feature_names_out().tolist()
    encoder = slim(encoder)
    encoder.feature_names_in_ = np.array(kept, dtype=object)
    columns = feature_columns(data.table.only(kept))
    name = f"GingerEncoder and {name}"
    return kept_model(data, name, estimator, columns, promise, encoder=encoder)


def _lines(data: Data, **options: Any) -> str:
    """Python code that does the same."""
    lines = opened_lines(data)
    if data.dropped:
        kept = f"[name for name in table.names if name not in {list(data.dropped)!r}]"
        lines.append(f"table = table.only({kept})")
    options |= {"sample_weight": Name("weights")} if data.ask.weights else {}
    return program(*lines, f"print({call(rank_columns, Name('table'), data.target, **options)})")


# --- Parquet files on Dask or Spark ---------------------------------------------------------------


class _EngineFiles(ExchangeTable):
    """Parquet files that an engine reads, with what a summary says of its data."""

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
        """Fingerprint of the files' names and sizes, where this machine sees them."""
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
def _data_on_engine(
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
    check_choice("--engine", engine, _ENGINES)
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
        table = _EngineFiles(frame, ask.file, engine)
        option_of, drop, _ = ask.roles(table, ("--target", target), ("--groups", groups))
        names = [name for name in table.names if name not in {*option_of, *drop}]
        columns = list(option_of)
        n_missing, n_rows = table.missing(columns)
        ask.check_missing(option_of, n_missing, n_rows)
        frame = table.select([*names, *columns])
        if any(n_missing.values()):
            frame = frame.dropna(subset=columns)
        table = _EngineFiles(frame, ask.file, engine)
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
