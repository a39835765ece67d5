"""The options and the help of the commands; what each does is in the module of its name."""

from __future__ import annotations

import sys
import textwrap
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdtrue.cli.app import (
    ASK,
    DOMAIN,
    WRITE,
    Alpha,
    Csv,
    DomainOrder,
    Force,
    Groups,
    Quiet,
    Seed,
    Target,
    TargetType,
    Top,
    asks,
    column_names,
    command,
)
from holdtrue.errors import InputError, MissingFileError, SpokenError

if TYPE_CHECKING:
    from holdtrue.tables.site_sums import SiteSums


@asks
def rank(
    target: Target,
    criterion: Annotated[
        str,
        typer.Option(
            help="What ranks: log_loss, brier, error, squared_error (of a number), ginger, "
            "majority; on the rows of the fit: gini, misclassification, information_gain, "
            "gain_ratio."
        ),
    ] = "log_loss",
    groups: Groups = None,
    target_type: TargetType = "auto",
    min_skill: Annotated[
        float, typer.Option(help="Least share of the loss that a column must remove to be kept.")
    ] = 0.005,
    alpha: Alpha = 0.05,
    engine: Annotated[
        str | None,
        typer.Option(help="Count Parquet files where they live: dask or spark. FILE may have *."),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(help="Scheduler of Dask, tcp://host:8786. Default: a cluster started here."),
    ] = None,
    master: Annotated[
        str | None, typer.Option(help="Master of Spark, spark://host:7077. Default: this machine.")
    ] = None,
) -> None:
    """Which columns predict, and which only remember?

    Ranks the columns by their estimated error on new rows. Ids and postcodes, which explain
    everything on the rows at hand, are marked.

    **Examples**

    ```
    $ holdtrue rank customers.csv --target left
    $ holdtrue rank flights.parquet --target carrier --drop tailnum --out report.html
    $ holdtrue rank people.csv --target income --type zip=text --csv > ranking.csv
    $ holdtrue rank 'visits/*.parquet' --target left --engine dask --address tcp://10.0.0.1:8786
    ```
    """


@asks
def select(
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", help="Further files, of --sums.", show_default=False),
    ] = None,
    target: Annotated[str | None, typer.Option("--target", "-t", help="Column to predict.")] = None,
    domain: Annotated[str | None, DOMAIN] = None,
    domain_order: DomainOrder = "any",
    sums: Annotated[
        bool, typer.Option("--sums", help="The files are what holdtrue sums wrote at each site.")
    ] = False,
    target_type: TargetType = "auto",
    rule: Annotated[str, typer.Option(help="moderated, t, greedy or auto.")] = "moderated",
    stop: Annotated[
        str,
        typer.Option(help="auto, held_out_domain, held_out_domain_1se, bonferroni, sign_flip, ..."),
    ] = "auto",
    max_steps: Annotated[int | None, typer.Option(help="Most steps.", min=1)] = None,
    stepwise: Annotated[bool, typer.Option(help="Refit all weights at each step.")] = False,
    keep: Annotated[
        list[str] | None, typer.Option("--keep", help="Feature to keep always; repeatable.")
    ] = None,
    average: Annotated[
        bool | None,
        typer.Option(
            "--average/--no-average",
            help="Let an average of six models compete too. Default: where it takes a minute at "
            "most, up to 100,000 rows × features.",
            show_default=False,
        ),
    ] = None,
    alpha: Alpha = 0.05,
) -> None:
    """Which features will still work at the next hospital, user or year?

    Holds out each domain in turn and keeps the features whose effect is steady across the others.
    Says too whether SteadyRidge, which uses all features, or an average of six models predicts
    better at a new domain.
    Categories become one column for each value; missing numbers take the column's mean.

    **Examples**

    ```
    $ holdtrue select patients.csv --target disease --domain hospital
    $ holdtrue select crime.parquet --target rate --domain state --rule auto --out report.html
    $ holdtrue select --sums *.sums
    ```
    """


@asks
def compare(
    target: Target,
    domain: Groups = None,
    domain_order: DomainOrder = "any",
    models: Annotated[
        str | None,
        typer.Option(
            help="Names with commas: ridge, elastic_net (numbers), logistic (classes), boosting, "
            "forest, t_greedy, steady_ridge, mean or majority. Default: all."
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Further model to compare, an unfitted or fitted estimator in a .skops file; "
            "repeatable. It is fitted anew, on the columns that it was fitted on."
        ),
    ] = None,
    scoring: Annotated[
        str | None,
        typer.Option(help="A scorer of scikit-learn. Default: share wrong, squared error."),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(help="File that keeps finished fits; the same command goes on from there."),
    ] = None,
    target_type: TargetType = "auto",
    alpha: Alpha = 0.05,
) -> None:
    """Which model predicts best at the next hospital, user or year?

    Fits every model without each domain in turn (more than 20: in 20 parts), and recommends the
    simplest within one standard error of the best. Columns become numbers as in select.

    **Examples**

    ```
    $ holdtrue compare patients.csv --target disease --domain hospital
    $ holdtrue compare crime.parquet --target rate --domain state --models ridge,t_greedy,boosting
    $ holdtrue compare big.csv --target y --domain site --checkpoint contest.jsonl
    ```
    """


@asks
def transfer(
    target: Target,
    sources: Annotated[
        str,
        typer.Option("--sources", "-s", help="Folder of trained models: .onnx and .skops files."),
    ],
    groups: Groups = None,
    target_type: TargetType = "auto",
    max_selected: Annotated[
        str | None,
        typer.Option(help="Most sources and columns, or loo: as many as help on left-out rows."),
    ] = None,
    lam: Annotated[str, typer.Option(help="Strength of the penalty, or loo to choose it.")] = "1",
    candidates: Annotated[
        int | None,
        typer.Option(help="Random candidates to look at in each step: 59 for GreedyTL-59.", min=1),
    ] = None,
    passthrough: Annotated[
        bool, typer.Option(help="Whether the columns are candidates beside the sources.")
    ] = True,
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="Leave out models that fail, with a warning.")
    ] = False,
    allow_pickle: Annotated[
        bool, typer.Option("--allow-pickle", help="Load pickles too. They run any code they hold.")
    ] = False,
    cache: Annotated[
        str | None, typer.Option(help="Folder that keeps the models' scores for a second run.")
    ] = None,
) -> None:
    """Which of a thousand trained models help a new task with a dozen labels?

    Runs the models of a folder on the rows and chooses greedily among their scores and the
    columns. The models read all columns but the target, in the order of the file.

    **Examples**

    ```
    $ holdtrue transfer new_task.csv --target label --sources shelf/
    $ holdtrue transfer new_task.csv --target label --sources shelf/ --candidates 59 --skip-broken
    ```
    """


@asks
def size(
    x: Annotated[
        list[str],
        typer.Option("--x", help="Input column; repeatable.", autocompletion=column_names),
    ],
    y: Annotated[str, typer.Option("--y", help="Column to predict.", autocompletion=column_names)],
    groups: Groups = None,
    basis: Annotated[
        str,
        typer.Option(
            help="auto, cosine, fourier, legendre, bspline, rbf, pca, columns, lars, omp."
        ),
    ] = "auto",
    criterion: Annotated[
        str | None,
        typer.Option(
            help="What chooses the size: dee, adj, bayes, cv, loo, seb, ucb, aicc, gcv, fpe, aic, "
            "adjusted_r2, cpm, bic, ric. Default: bayes; with --groups cv, by whole groups."
        ),
    ] = None,
    max_terms: Annotated[int | None, typer.Option(help="Largest size.", min=1)] = None,
) -> None:
    """How large a model can thirty points afford?

    Fits terms of growing complexity and chooses how many to keep by their estimated error on new
    points. Rows without --y still tell where new points will be.

    **Examples**

    ```
    $ holdtrue size mcycle.csv --x times --y accel
    $ holdtrue size spectra.csv --x moisture --y fat --basis legendre --criterion bayes
    ```
    """


@command
def report(
    path: Annotated[
        str, typer.Argument(metavar="PATH.json", help="Summary or path.", show_default=False)
    ],
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="Report: .html or .md. Default: PATH.html.")
    ] = None,
    csv: Csv = None,
    top: Top = None,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Write the report of a summary that was kept as JSON.

    Reads what the other commands write with --json, and what SelectionPath.to_json gives.

    **Examples**

    ```
    $ holdtrue rank customers.csv --target left --json left.json
    $ holdtrue report left.json
    ```
    """
    from holdtrue.cli.write import Outputs
    from holdtrue.report.summary import Summary

    source = Path(path)
    if not source.is_file():
        raise MissingFileError(
            f"no file {path!r}. Pass a file that another command wrote with --json."
        )
    out = out or str(source.with_suffix(".html"))
    outputs = Outputs(out, None, csv, top, quiet=quiet, force=force, source=path)
    try:
        text = source.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not valid JSON: byte {error.start} is not UTF-8.") from error
    try:
        summary = Summary.from_json(text)
    except InputError as error:
        raise InputError(f"{path}: {error.sentence}") from error
    try:
        outputs.write(summary)
    except (OSError, SpokenError):
        raise
    except Exception as error:  # values that fit the format and mean nothing
        raise InputError(
            f"{path}: the file is damaged ({type(error).__name__}: {error}). Write it again with "
            "the command that made it."
        ) from error


@command
def demo(
    out: Annotated[
        str, typer.Option("--out", "-o", help="Report to leave behind.")
    ] = "holdtrue-demo.html",
    data: Annotated[
        str | None,
        typer.Option("--data", help="Write the data into this new folder instead, to try by hand."),
    ] = None,
    seed: Seed = 1,  # of the first seeds the one whose four draws are typical ones
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """All four questions on data whose right answer is known, in seconds.

    **Examples**

    ```
    $ holdtrue demo
    $ holdtrue demo --data try
    ```
    """
    from holdtrue.cli.write import check_output, save

    if data is not None:
        if Path(data).exists():
            raise InputError(f"{data} exists already. Name a new folder.")
        from holdtrue.demo import write_data

        for command in write_data(Path(data), seed):
            print(command)
        return
    if Path(out).suffix != ".html":
        raise InputError(f"--out must end in .html. Got {out!r}.")
    check_output(out, force=force)
    from holdtrue.demo import tell

    save(out, tell(seed, quiet=quiet), force=force)
    if not quiet:
        print(f"The whole story, with its pictures: {Path(out).resolve()}")


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
