"""`holdtrue sums`: what a site may send in place of its rows."""

from __future__ import annotations

import sys
import textwrap
from typing import Annotated

import typer

from holdtrue.cli.app import command
from holdtrue.cli.options import (
    Debug,
    Drop,
    Encoding,
    File,
    Force,
    From,
    MissingTarget,
    Only,
    Quiet,
    Target,
    TargetType,
    Types,
    column_names,
)

__all__ = ["sums"]


@command
def sums(
    file: File,
    target: Target,
    domain: Annotated[
        str,
        typer.Option(
            "--domain",
            "--groups",
            "-d",
            help="Column that tells hospitals, users or years apart.",
            autocompletion=column_names,
        ),
    ],
    out: Annotated[str, typer.Option("--out", "-o", help="File to write, such as site.sums.")],
    target_type: TargetType = "auto",
    min_count: Annotated[
        int,
        typer.Option(
            help="Values, classes and domains of fewer rows than this are not told.", min=1
        ),
    ] = 1,
    drop: Drop = None,
    only: Only = None,
    type_: Types = None,
    table: From = None,
    encoding: Encoding = None,
    missing_target: MissingTarget = "drop",
    quiet: Quiet = False,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """Sum the rows of one site, for a fit over sites that may not share rows.

    Writes means and covariances by domain, and the values of categories: no row. Whoever has the
    files of all sites gets from `holdtrue select --sums` what it would say of all rows.

    **Examples**

    ```
    $ holdtrue sums site.parquet --target y --domain site --out site.sums
    $ holdtrue sums site.csv --target y --domain site --drop name --min-count 10 --out site.sums
    ```
    """
    from holdtrue.cli.write import check_output, save

    check_output(out, force=force, source=file)
    from holdtrue.cli.answer import sums_of_site
    from holdtrue.cli.ask import Ask

    ask = Ask.from_options(
        file=file,
        target=target,
        drop=drop,
        only=only,
        weights=None,
        type_=type_,
        table=table,
        encoding=encoding,
        missing_target=missing_target,
        seed=0,
        no_values=False,
    )
    content, told = sums_of_site(ask, target, domain, target_type=target_type, min_count=min_count)
    save(out, content, force=force)
    if not quiet:
        for line in told:
            print(textwrap.fill(line, 90, subsequent_indent="  "))
        print(f"wrote {out}", file=sys.stderr)
