"""`holdtrue predict` and `holdtrue check`: what to do with a model that ``--save`` kept."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from holdtrue.cli.app import WRITE, Encoding, File, Force, From, Quiet, command, print_error
from holdtrue.errors import InputError

Model = Annotated[
    str, typer.Argument(help="What --save has written.", metavar="MODEL.skops", show_default=False)
]


@command
def predict(
    model: Model,
    file: File,
    out: Annotated[
        str | None,
        typer.Option(
            "--out", "-o", help="File to write: .csv or .parquet. Default: CSV to standard output."
        ),
    ] = None,
    table: From = None,
    encoding: Encoding = None,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Predict the rows of a table with a model that --save has kept.

    One line for every row, in the order of the table: the prediction, and the probabilities of
    classes where the model has them. Columns may come in any order; values that were not there
    when the model was fitted are counted.

    **Examples**

    ```
    $ holdtrue rank customers.csv --target left --save left.skops
    $ holdtrue predict left.skops new.csv --out predictions.csv
    ```
    """
    from holdtrue.cli.write import check_output

    if out is not None:
        if Path(out).suffix not in (".csv", ".parquet"):
            raise InputError(f"--out must end in .csv or .parquet. Got {out!r}.")
        for source in (model, file):
            check_output(out, force=force, source=source)
    from holdtrue.deployed import load_model
    from holdtrue.deployed.model import News
    from holdtrue.files import written_whole

    saved = load_model(model)
    rows = saved.read(file, table=table, encoding=encoding)
    news = News()
    batches = saved.batches(rows, news)
    if out is None:
        for text in _csv_texts(saved, batches):
            sys.stdout.write(text)
        sys.stdout.flush()
    else:
        with written_whole(out) as stream:
            if out.endswith(".parquet"):
                _write_parquet(stream, saved, batches)
            else:
                for text in _csv_texts(saved, batches):
                    stream.write(text.encode("utf-8", "backslashreplace"))
    if not quiet:
        for what, why in news.notes():
            print_error(f"{what}. {why}")
        print_error(f"Expect a {saved.promise}.")
        if out is not None:
            print_error(f"wrote {news.n_rows:,} predictions to {out}")


@partial(command, shared={name: WRITE[name] for name in WRITE if name != "save"})
def check(
    model: Model,
    file: File,
    groups: Annotated[
        str | None,
        typer.Option(
            "--groups",
            "--domain",
            "-d",
            help="Column to judge by. Default: that of the promise, where it has one.",
        ),
    ] = None,
    table: From = None,
    encoding: Encoding = None,
    **written: Any,
) -> None:
    """Was the promise kept? A saved model on labelled rows that it has not seen.

    The error that was promised, with its interval, beside the one that is measured, by group. The
    exit code is 0 either way.

    **Examples**

    ```
    $ holdtrue compare patients.csv --target disease --domain hospital --save disease.skops
    $ holdtrue check disease.skops next_year.csv
    ```
    """
    from holdtrue.cli.write import Outputs

    outputs = Outputs(source=file, **written)
    from holdtrue.cli.answer import completed
    from holdtrue.deployed import load_model
    from holdtrue.report.answers.check import check_summary

    saved = load_model(model)
    rows = saved.read(file, with_target=True, table=table, encoding=encoding)
    if groups is None and saved.promise.groups and rows.has(saved.promise.groups):
        groups = saved.promise.groups
    if groups is not None:
        rows.check_name(groups)
    measured = saved.measure(rows, groups)
    summary = check_summary(saved.promise, measured, saved.target, groups or "group")
    settings = {"model": f"{Path(model).name} ({saved.label})", "promised": str(saved.promise)}
    outputs.write(completed(summary, rows, settings))


def _csv_texts(saved: Any, batches: Any) -> Iterator[str]:
    """Predictions as CSV, batch by batch, after a header."""
    from holdtrue.report.render import csv_cell

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["prediction", *_share_names(saved)])
    for X in batches:
        predicted, shares = saved.predictions(X)
        for answer, row in zip(predicted.tolist(), shares.tolist(), strict=True):
            writer.writerow([csv_cell(value) for value in (_shown(answer), *row)])
        yield text.getvalue()
        text.seek(0)
        text.truncate()


def _write_parquet(stream: Any, saved: Any, batches: Any) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    writer = None
    for X in batches:
        predicted, shares = saved.predictions(X)
        columns = {"prediction": pa.array(predicted.tolist(), from_pandas=True)}
        columns |= dict(zip(_share_names(saved), shares.T, strict=True))
        rows = pa.table(columns)
        writer = writer or parquet.ParquetWriter(stream, rows.schema)
        writer.write_table(rows.cast(writer.schema))
    if writer is not None:
        writer.close()


def _share_names(saved: Any) -> list[str]:
    classes = saved.classes if saved.has_probabilities else ()
    return [f"probability of {_shown(value)}" for value in classes]


def _shown(value: Any) -> Any:
    """A prediction as a CSV file has it."""
    return str(value).lower() if isinstance(value, bool) else value
