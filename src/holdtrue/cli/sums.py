"""`holdtrue sums`: what a site may send in place of its rows."""

from __future__ import annotations

import sys
import textwrap
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdtrue.cli.app import command
from holdtrue.cli.options import ASK, DOMAIN, WRITE, Target, TargetType

if TYPE_CHECKING:
    from holdtrue.tables.site_sums import SiteSums

_READ = {name: ASK[name] for name in ASK if name not in ("weights", "seed", "no_values")}


@partial(command, shared={**_READ, "quiet": WRITE["quiet"], "force": WRITE["force"]})
def sums(
    target: Target,
    domain: Annotated[str, DOMAIN],
    out: Annotated[str, typer.Option("--out", "-o", help="File to write, such as site.sums.")],
    target_type: TargetType = "auto",
    min_count: Annotated[
        int,
        typer.Option(
            help="Values, classes and domains of fewer rows than this are not told.", min=1
        ),
    ] = 1,
    **options: Any,
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

    quiet, force = options.pop("quiet"), options.pop("force")
    check_output(out, force=force, source=options["file"])
    from holdtrue.cli.ask import Ask
    from holdtrue.tables.site_sums import site_sums

    data = Ask.from_options(target=target, **options).open(target, domain, "--domain")
    sums_of_rows = site_sums(
        data.table,
        target,
        domain,
        target_type=target_type,
        leave_out=data.dropped,
        min_count=min_count,
        n_rows_in_file=data.n_rows_in_file,
        incomplete=data.incomplete,
    )
    save(out, sums_of_rows.to_bytes(), force=force)
    if not quiet:
        for line in _contents(sums_of_rows):
            print(textwrap.fill(line, 90, subsequent_indent="  "))
        print(f"wrote {out}", file=sys.stderr)


def _contents(sums: SiteSums) -> list[str]:
    """What the sums contain, line by line."""
    names: dict[str, list[str]] = {}
    for column in (sums.site.target, *sums.site.columns):
        names.setdefault(column.contents, []).append(column.name)
    n_domains, n_features = len(sums.moments.domains), sums.moments.n_features
    return [
        f"Sums of {sums.site.n_rows:,} rows tell, for each of {n_domains:,} domains, its rows, and "
        f"means and covariances of {sums.site.target.name!r} and {n_features:,} features.",
        *(f"{what}: {', '.join(columns)}" for what, columns in names.items()),
    ]
