"""The command line: one function per command.

Exit codes: 0 done, 2 a mistake in what was given (one sentence on standard error), 130
interrupted. Libraries are imported inside the commands, so that ``--help`` is quick.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdtrue import __version__
from holdtrue.charts import printable
from holdtrue.progress import silent
from holdtrue.validation import did_you_mean

if TYPE_CHECKING:
    from holdtrue.question import Question

_UsageError: Any = typer.BadParameter.__mro__[1]  # of click, or of the typer that has its own

app = typer.Typer(
    name="holdtrue",
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)

# --- options that commands share ----------------------------------------------------------------

_TABLE = "CSV, Parquet (file or folder), Feather, JSON lines or DuckDB file."
File = Annotated[str, typer.Argument(help=_TABLE, metavar="FILE", show_default=False)]
Target = Annotated[str, typer.Option("--target", "-t", help="Column to predict.")]
Types = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        help="How to read a column, NAME=KIND: text, category, integer, number, date or bool.",
        metavar="NAME=KIND",
    ),
]
Drop = Annotated[list[str] | None, typer.Option("--drop", help="Column to leave out; repeatable.")]
From = Annotated[
    str | None, typer.Option("--table", help="Table or SELECT query, of a DuckDB file.")
]
Encoding = Annotated[str | None, typer.Option(help="Encoding of a text file, such as latin-1.")]
Alpha = Annotated[float, typer.Option(help="Intervals have level 1 - alpha.")]
Out = Annotated[
    str | None,
    typer.Option("--out", "-o", help="Report to write: .html, .md or .json by its ending."),
]
Json = Annotated[
    str | None,
    typer.Option("--json", help="Summary as JSON; without a name, to standard output."),
]
Csv = Annotated[
    str | None,
    typer.Option("--csv", help="Table as CSV; without a name, to standard output."),
]
Top = Annotated[
    int | None,
    typer.Option(help="Rows of the table. Default: 20 on the terminal, all in files.", min=1),
]
Seed = Annotated[int, typer.Option(help="Seed of whatever is drawn.", min=0, max=2**32 - 1)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No table and no progress bar.")]
Force = Annotated[bool, typer.Option("--force", help="Replace output files that exist.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]

# Those of every command that asks a question of a table.
_SHARED = {
    name: inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default
    )
    for name, annotation, default in (
        ("file", File, inspect.Parameter.empty),
        ("drop", Drop, None),
        ("type_", Types, None),
        ("table", From, None),
        ("encoding", Encoding, None),
        ("out", Out, None),
        ("json", Json, None),
        ("csv", Csv, None),
        ("top", Top, None),
        ("seed", Seed, 0),
        ("quiet", Quiet, False),
        ("force", Force, False),
        ("debug", Debug, False),
    )
}


def main() -> None:
    """Run the command line."""
    if hasattr(signal, "SIGTERM"):
        # Ended from outside: clean up as for Ctrl-C.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    arguments = _with_standard_output(sys.argv[1:]) or ["--help"]
    try:
        sys.exit(app(args=arguments, prog_name="holdtrue", standalone_mode=False))
    except _UsageError as error:
        _say(_usage_sentence(error, arguments[0]))
        sys.exit(2)


def _usage_sentence(error: Any, first: str) -> str:
    """A mistake in the options, as one sentence; the first argument names the command."""
    who = error.ctx.command_path if error.ctx else f"holdtrue {first}"
    wrong = getattr(error, "option_name", None)
    if isinstance(wrong, str) and hasattr(error, "possibilities"):
        known = [name for option in error.ctx.command.params for name in option.opts]
        told = f"no option {wrong}.{did_you_mean(wrong, known)}"
    else:
        told = error.format_message()
        told += "" if told.endswith((".", "?")) else "."
    return f"{who}: {told[0].lower()}{told[1:]} See {who} --help."


def _with_standard_output(arguments: Sequence[str]) -> list[str]:
    """Let ``--json`` and ``--csv`` stand alone: a name must end as the option says, or be -."""
    given: list[str] = []
    for place, argument in enumerate(arguments):
        given.append(argument)
        if argument in ("--json", "--csv"):
            name = arguments[place + 1] if place + 1 < len(arguments) else ""
            if name != "-" and not name.endswith(f".{argument[2:]}"):
                given.append("-")
    return given


def _command(function: Callable[..., None]) -> Callable[..., None]:
    """Mistakes become one sentence and exit code 2, Ctrl-C becomes 130."""
    who = f"holdtrue {function.__name__}"

    @functools.wraps(function)
    def run(**given: Any) -> None:
        silenced = silent.set(given["quiet"])
        try:
            function(**given)
        except KeyboardInterrupt:
            _say(f"{who}: interrupted. No file was left half-written.")
            raise typer.Exit(130) from None
        except BrokenPipeError:  # the reader of a pipe has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
            if given["debug"]:
                raise
            _say(_sentence(who, error))
            raise typer.Exit(2) from None
        except Exception as error:
            if given["debug"] or isinstance(error, RuntimeError):  # typer's own exits among them
                raise
            _say(
                f"{who}: a bug of holdtrue ({type(error).__name__}: {error}). Please report it "
                "with what --debug shows."
            )
            raise typer.Exit(1) from None
        finally:
            silent.reset(silenced)

    return app.command()(run)


def _say(text: str) -> None:
    print(printable(text), file=sys.stderr)


def _sentence(who: str, error: BaseException) -> str:
    """The error in the command's name, where the library has put its own."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{who}: {error.filename}: {error.strerror}."
    text = str(error) or type(error).__name__
    if text.startswith(who):
        return text
    return f"{who}: " + re.sub(r"^[A-Za-z]\w*(\.\w+)?: ", "", text)


def _asks(function: Callable[..., None]) -> Callable[..., None]:
    """A command that asks a question of a table: ``function(question, ...its own options)``.

    The options that all such commands have come after its own.
    """

    @functools.wraps(function)
    def ask(**given: Any) -> None:
        from holdtrue.question import Question

        shared = {name: given.pop(name) for name in _SHARED}
        del shared["debug"]
        file, types, drop = shared.pop("file"), shared.pop("type_"), shared.pop("drop")
        question = Question(
            f"holdtrue {function.__name__}", file, types=types or (), drop=drop or (), **shared
        )
        function(question, **given)

    known = {"Question": Any}  # imported when it is asked
    own = list(inspect.signature(function, locals=known, eval_str=True).parameters.values())[1:]
    parameters = [*(p.replace(kind=p.KEYWORD_ONLY) for p in own), *_SHARED.values()]
    parameters.sort(key=lambda p: p.name != "file")  # as it stands in the command
    ask.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    ask.__annotations__ = {p.name: p.annotation for p in parameters}
    return _command(ask)


# --- commands -----------------------------------------------------------------------------------


@_asks
def rank(
    question: Question,
    target: Target,
    criterion: Annotated[
        str,
        typer.Option(
            help="What ranks: ginger, majority; on the rows of the fit: gini, misclassification, "
            "information_gain, gain_ratio."
        ),
    ] = "ginger",
    target_type: Annotated[str, typer.Option(help="auto, classes or numeric.")] = "auto",
    alpha: Alpha = 0.05,
) -> None:
    """Which columns predict, and which only remember?

    Ranks the columns by their estimated error on new rows. Ids and postcodes, which explain
    everything on the rows at hand, are marked.

    **Examples**

    ```
    $ holdtrue rank customers.csv --target left
    $ holdtrue rank flights.parquet --target carrier --drop tailnum --out report.html
    $ holdtrue rank people.csv --target income --type zip=text --csv > ranking.csv
    ```
    """
    names = question.open(("--target", target))
    question.check_left(names)
    numeric = question.is_numeric(target, target_type)
    from holdtrue.categories import rank_columns
    from holdtrue.categories.kernel import IN_SAMPLE, UNITS
    from holdtrue.report.answers import rank_summary

    with question.warnings_kept():
        ranked = rank_columns(
            question.data.only([*names, target]),
            target,
            criterion=criterion,
            target_type=target_type,
            alpha=alpha,
        )
    unit = UNITS["numeric" if numeric else criterion]
    honest = numeric or criterion not in IN_SAMPLE
    summary = rank_summary(ranked.to_pydict(), target, names=names, unit=unit, honest=honest)
    summary = summary.with_notes(question.classes_notes(target, target_type))
    question.answer(summary, target=target, criterion=criterion)


@_asks
def select(
    question: Question,
    target: Target,
    domain: Annotated[
        str,
        typer.Option("--domain", "-d", help="Column that tells hospitals, users or years apart."),
    ],
    target_type: Annotated[str, typer.Option(help="auto, classes or numeric.")] = "auto",
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
    alpha: Alpha = 0.05,
) -> None:
    """Which features will still work at the next hospital, user or year?

    Holds out each domain in turn and keeps the features whose effect is steady across the others.
    Categories become one column for each value; missing numbers take the column's mean.

    **Examples**

    ```
    $ holdtrue select patients.csv --target disease --domain hospital
    $ holdtrue select crime.parquet --target rate --domain state --rule auto --out report.html
    ```
    """
    question.open(("--target", target), ("--domain", domain))
    from holdtrue.domains import TGreedyClassifier, TGreedyRegressor
    from holdtrue.features import moments_of
    from holdtrue.report.answers import columns_notes, select_summary

    settings: dict[str, Any] = {
        "rule": rule,
        "stop": stop,
        "max_steps": max_steps,
        "stepwise": stepwise,
        "fixed_features": keep or None,
        "alpha": alpha,
    }
    with question.warnings_kept():
        found = moments_of(
            question.who,
            question.data,
            target,
            domain,
            target_type=target_type,
            leave_out=question.drop,
        )
        names = found.moments.feature_names or ()
        for name in keep or ():
            if name not in names:
                hint = did_you_mean(name, names)
                raise ValueError(f"{question.who}: no feature {name!r} (--keep).{hint}")
        model: Any
        if found.classes is None:
            model = TGreedyRegressor(**settings).fit_statistics(found.moments)
        else:
            model = TGreedyClassifier(**settings)
            model.fit_statistics(found.moments, classes=found.classes)
    summary = select_summary(model, target, domain, sizes=found.moments.n_samples.tolist())
    summary = summary.with_notes(columns_notes(found.columns))
    question.answer(
        summary,
        target=target,
        domain=f"{domain} ({model.n_domains_:g})",
        rows=f"{found.n_rows:,}",
        features=found.moments.n_features,
        rule=model.rule_,
        stop=stop,
    )


@_asks
def transfer(
    question: Question,
    target: Target,
    sources: Annotated[
        str,
        typer.Option("--sources", "-s", help="Folder of trained models: .onnx and .skops files."),
    ],
    target_type: Annotated[str, typer.Option(help="auto, classes or numeric.")] = "auto",
    max_selected: Annotated[
        str,
        typer.Option(help="Most sources and columns, or loo: as many as help rows left out."),
    ] = "loo",
    lam: Annotated[str, typer.Option(help="Strength of the penalty, or loo to choose it.")] = "1",
    candidates: Annotated[
        int | None,
        typer.Option(help="Look at so many random candidates at each step: 59 for GreedyTL-59."),
    ] = None,
    passthrough: Annotated[
        bool, typer.Option(help="Whether the columns are candidates beside the sources.")
    ] = True,
    skip_broken: Annotated[
        bool, typer.Option("--skip-broken", help="Leave out models that fail, with a warning.")
    ] = False,
    allow_pickle: Annotated[
        bool,
        typer.Option("--allow-pickle", help="Load pickles too. They run any code they hold."),
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
    who = question.who
    names = question.open(("--target", target))
    question.check_left(names)
    if not Path(sources).is_dir():
        raise ValueError(f"{who}: --sources must be a folder of models. Got {sources!r}.")
    if cache is not None and Path(cache).exists() and not Path(cache).is_dir():
        raise ValueError(f"{who}: --cache must be a folder. Got {cache!r}.")
    import numpy as np

    from holdtrue.report.answers import transfer_summary
    from holdtrue.sources import GreedyTLClassifier, GreedyTLRegressor, SourcePool
    from holdtrue.values import python_values

    X = question.numbers(names)
    y = question.data.column(target)
    pool = SourcePool.from_folder(
        sources,
        allow_pickle=allow_pickle,
        on_error="skip" if skip_broken else "raise",
        cache=cache,
    )
    numeric = question.is_numeric(target, target_type)
    kind = GreedyTLRegressor if numeric else GreedyTLClassifier
    model = kind(
        pool,
        lam=lam if lam == "loo" else _number(who, "--lam", lam),
        max_selected="loo" if max_selected == "loo" else _whole(who, max_selected),
        n_candidates=candidates,
        passthrough=passthrough,
        random_state=question.seed,
    )
    with question.warnings_kept():
        model.fit(X, np.asarray(python_values(y)))
    if not model.source_names_:
        told = question.first_warning or "there is none"
        raise ValueError(f"{who}: no model in {sources} can be used: {told}")
    model.feature_names_in_ = np.array(names, dtype=object)
    summary = transfer_summary(model, target)
    summary = summary.with_notes(question.classes_notes(target, target_type))
    question.answer(
        summary,
        target=target,
        sources=f"{len(model.source_names_):,} in {sources}",
        rows=len(y),
        columns=len(names),
        lam=model.lam_,
    )


@_asks
def size(
    question: Question,
    x: Annotated[list[str], typer.Option("--x", help="Input column; repeatable.")],
    y: Annotated[str, typer.Option("--y", help="Column to predict.")],
    basis: Annotated[
        str, typer.Option(help="cosine, fourier, legendre, bspline, rbf, pca, columns, lars, omp.")
    ] = "cosine",
    criterion: Annotated[
        str,
        typer.Option(
            help="What chooses the size: dee, adj, bayes, cv, loo, seb, ucb, aicc, gcv, fpe, aic, "
            "adjusted_r2, cpm, bic, ric."
        ),
    ] = "dee",
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
    question.open(*(("--x", name) for name in x), ("--y", y))
    import numpy as np

    from holdtrue.model_size import NestedRegressor
    from holdtrue.report.answers import size_summary

    rows = question.numbers([*x, y], missing=True)
    inputs, target = rows[:, :-1], rows[:, -1]
    known = ~np.isnan(inputs).any(axis=1)
    labelled = known & ~np.isnan(target)
    unlabelled = inputs[known & ~labelled]
    model = NestedRegressor(
        basis, criterion=criterion, max_terms=max_terms, random_state=question.seed
    )
    with question.warnings_kept():
        model.fit(
            inputs[labelled],
            target[labelled],
            X_unlabeled=unlabelled if len(unlabelled) else None,
        )
    summary = size_summary(
        model,
        inputs[labelled],
        target[labelled],
        x_names=x,
        y_name=y,
        n_unlabelled=len(unlabelled),
    )
    if not known.all():
        left = f"{np.count_nonzero(~known):,} of {len(known):,} rows lack an input: left out."
        summary = summary.with_notes([("Rows without inputs", left)])
    question.answer(
        summary,
        input=", ".join(x),
        target=y,
        points=int(labelled.sum()),
        points_without_a_target=len(unlabelled) or None,
        basis=basis,
        criterion=criterion,
    )


@_command
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
    debug: Debug = False,
) -> None:
    """Write the report of a summary that was kept as JSON.

    Reads what the other commands write with --json, and what SelectionPath.to_json gives.

    **Examples**

    ```
    $ holdtrue rank customers.csv --target left --json left.json
    $ holdtrue report left.json
    ```
    """
    from holdtrue.report.outputs import Outputs
    from holdtrue.report.summary import Summary

    who = "holdtrue report"
    source = Path(path)
    if not source.is_file():
        raise FileNotFoundError(
            f"{who}: no file {path!r}. Pass a file that another command wrote with --json."
        )
    out = out or str(source.with_suffix(".html"))
    outputs = Outputs(who, out, None, csv, top, quiet, force, path)
    try:
        text = source.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{who}: {path} is no JSON: byte {error.start} is no UTF-8.") from error
    outputs.write(Summary.from_json(text, owner=f"{who}: {path}"))


@_command
def demo(
    out: Annotated[
        str, typer.Option("--out", "-o", help="Report to leave behind.")
    ] = "holdtrue-demo.html",
    data: Annotated[
        str | None,
        typer.Option("--data", help="Write the data into this new folder instead, to try by hand."),
    ] = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    force: Force = False,
    debug: Debug = False,
) -> None:
    """All four questions on data whose right answer is known, in seconds.

    **Examples**

    ```
    $ holdtrue demo
    $ holdtrue demo --data try
    ```
    """
    from holdtrue.report.outputs import check_output, save

    who = "holdtrue demo"
    if data is not None:
        if Path(data).exists():
            raise ValueError(f"{who}: {data} exists already. Name a new folder.")
        from holdtrue.demo import write_data

        for command in write_data(Path(data), seed):
            print(command)
        return
    if Path(out).suffix != ".html":
        raise ValueError(f"{who}: --out must end in .html. Got {out!r}.")
    check_output(who, out, force=force)
    from holdtrue.demo import tell

    save(who, out, tell(seed, quiet=quiet), force=force)
    if not quiet:
        print(f"The whole story, with its pictures: {Path(out).resolve()}")


def _whole(who: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(
            f"{who}: --max-selected must be a whole number of at least 1, or loo. Got {text!r}."
        )
    return int(text)


def _number(who: str, option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ValueError(f"{who}: {option} must be a number or loo. Got {text!r}.") from error


@app.callback(invoke_without_command=True)
def _holdtrue(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    """Choose the features, sources and model sizes that hold on data nobody has seen."""
    if version:
        print(f"holdtrue {__version__}")
        raise typer.Exit


if __name__ == "__main__":
    main()
