"""Options that commands share, each declared once."""

from __future__ import annotations

import functools
import inspect
from typing import Annotated, Any

import typer

_TABLE = (
    "CSV, Parquet (file or folder), Feather, JSON, Excel or DuckDB file, a pattern such as "
    "'data/*.csv', or - for standard input."
)


def column_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Columns of the file that begin so, for the shell."""
    from holdtrue.tables.opening import first_names

    *before, last = incomplete.split(",")
    # An option without its value leaves the file among what has not been parsed.
    left = [argument for argument in ctx.args if not argument.startswith("-")]
    names = first_names(ctx.params.get("file") or next(iter(left), ""))
    return [",".join([*before, name]) for name in names if name.startswith(last)]


_column = functools.partial(typer.Option, autocompletion=column_names)
File = Annotated[str, typer.Argument(help=_TABLE, metavar="FILE", show_default=False)]
Target = Annotated[
    str, _column("--target", "-t", help="Column to predict; several, one after the other, as a,b.")
]
Groups = Annotated[
    str | None,
    _column(
        *("--domain", "--groups", "-d"),
        help="Column of hospitals, users or years: new data are new ones. Default: new rows.",
    ),
]
DOMAIN = _column(
    *("--domain", "--groups", "-d"), help="Column that tells hospitals, users or years apart."
)
Types = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        help="How to read a column, NAME=KIND: text, category, integer, number, date or bool.",
        metavar="NAME=KIND",
    ),
]
Drop = Annotated[list[str] | None, _column(help="Columns to leave out: a,b.")]
Only = Annotated[list[str] | None, _column(help="Columns to choose from: a,b.")]
Weights = Annotated[str | None, _column(help="Column of the rows' weights.")]
From = Annotated[
    str | None, typer.Option(help="Of a DuckDB file, table or SELECT; of an Excel file, sheet.")
]
Encoding = Annotated[str | None, typer.Option(help="Encoding of a text file, such as latin-1.")]
Alpha = Annotated[float, typer.Option(help="Intervals have level 1 - alpha.")]
Out = Annotated[
    str | None,
    typer.Option("--out", "-o", help="Report to write: .html, .md or .json by its ending."),
]
Json = Annotated[
    str | None, typer.Option(help="Summary as JSON; without a name, to standard output.")
]
Csv = Annotated[str | None, typer.Option(help="Table as CSV; without a name, to standard output.")]
Top = Annotated[
    int | None,
    typer.Option(help="Rows of the table. Default: 20 on the terminal, all in files.", min=1),
]
MissingTarget = Annotated[str, typer.Option(help="Rows without a target or domain: drop or error.")]
NoValues = Annotated[
    bool, typer.Option("--no-values", help="Keep values of the data out of the report.")
]
DomainOrder = Annotated[
    str,
    typer.Option(
        help="any: each domain is predicted from all others; time: from those before it, "
        "as the next year is."
    ),
]
TargetType = Annotated[str, typer.Option(help="auto, classes or numeric.")]
Seed = Annotated[int, typer.Option(help="Seed of whatever is drawn.", min=0, max=2**32 - 1)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No table and no progress bar.")]
Save = Annotated[
    str | None, typer.Option(help="File to keep the model in, for predict and check: .skops.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace output files that exist.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]

# Options of every command that reads a table: what to read, and where the answer goes.
ASK: dict[str, Any] = {
    "file": (File, inspect.Parameter.empty),
    "drop": (Drop, None),
    "only": (Only, None),
    "weights": (Weights, None),
    "type_": (Types, None),
    "table": (From, None),
    "encoding": (Encoding, None),
    "missing_target": (MissingTarget, "drop"),
    "seed": (Seed, 0),
    "no_values": (NoValues, False),
}
WRITE: dict[str, Any] = {
    "out": (Out, None),
    "json": (Json, None),
    "csv": (Csv, None),
    "top": (Top, None),
    "save": (Save, None),
    "quiet": (Quiet, False),
    "force": (Force, False),
}
