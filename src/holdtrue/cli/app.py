"""The commands and their options.

Exit codes: 0 done, 1 a bug, 2 a mistake in what was given (one sentence on standard error), 130
interrupted. Everything beyond typer is imported inside the commands: ``--help`` and a wrong option
are answered without NumPy.
"""

from __future__ import annotations

import functools
import inspect
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdtrue import __version__
from holdtrue.cli.options import (
    ASK,
    WRITE,
    Alpha,
    Csv,
    Debug,
    Force,
    Groups,
    Quiet,
    Seed,
    Target,
    TargetType,
    Top,
    column_names,
)
from holdtrue.errors import InputError, MissingFileError, SpokenError, did_you_mean
from holdtrue.progress import silent

if TYPE_CHECKING:
    from holdtrue.cli.answer import Answer
    from holdtrue.cli.ask import Ask

__all__ = ["command", "main"]

_INTERRUPTED = 130  # exit code, of typer too
_UsageError: Any = typer.BadParameter.__mro__[1]  # of click, or of the typer that has its own

app = typer.Typer(
    name="holdtrue",
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)

_SHARED = {**ASK, **WRITE, "debug": (Debug, False)}


def main() -> None:
    """Run the command line."""
    if hasattr(signal, "SIGTERM"):
        # Ended from outside: clean up as for Ctrl-C.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    arguments = _with_standard_output(sys.argv[1:]) or ["--help"]
    try:
        code = app(args=arguments, prog_name="holdtrue", standalone_mode=False)
        if code == _INTERRUPTED:
            _print_error(f"holdtrue {arguments[0]}: interrupted. No file was left half-written.")
        sys.exit(code)
    except _UsageError as error:
        _print_error(_usage_sentence(error, arguments[0]))
        sys.exit(2)


def _usage_sentence(error: Any, first: str) -> str:
    """A mistake in the options, as one sentence; the first argument names the command."""
    who = error.ctx.command_path if error.ctx else f"holdtrue {first}"
    option = getattr(error, "option_name", None)
    if isinstance(option, str) and hasattr(error, "possibilities"):
        known = [name for param in error.ctx.command.get_params(error.ctx) for name in param.opts]
        sentence = f"no option {option}.{did_you_mean(option, known)}"
    elif error.ctx and "file" in error.ctx.params and "extra argument" in error.format_message():
        sentence = "takes one FILE. For several files of one table put a pattern in quotes: "
        sentence += "'data/*.csv'."
    else:
        sentence = error.format_message()
        sentence += "" if sentence.endswith((".", "?")) else "."
    return f"{who}: {sentence[0].lower()}{sentence[1:]} See {who} --help."


def _with_standard_output(arguments: Sequence[str]) -> list[str]:
    """Let ``--json`` and ``--csv`` stand alone: a name must end as the option says, or be -."""
    completed: list[str] = []
    for place, argument in enumerate(arguments):
        completed.append(argument)
        if argument in ("--json", "--csv"):
            name = arguments[place + 1] if place + 1 < len(arguments) else ""
            if name != "-" and not name.endswith(f".{argument[2:]}"):
                completed.append("-")
    return completed


class _Command(typer.core.TyperCommand):
    """A command that refuses an option given twice, unless it may be repeated."""

    def make_parser(self, ctx: Any) -> Any:
        """The parser of typer, whose result is checked once more."""
        parser = super().make_parser(ctx)
        parse = parser.parse_args

        def parse_once(args: list[str]) -> Any:
            values, rest, order = parse(args)
            for param in order:
                may_repeat = getattr(param, "multiple", True) or getattr(param, "is_flag", True)
                if order.count(param) > 1 and not may_repeat:
                    given = f"option {param.opts[0]} must be given once"
                    several = ". Several targets: --target a,b" * (param.name == "target")
                    raise _UsageError(given + several, ctx)
            return values, rest, order

        parser.parse_args = parse_once  # type: ignore[method-assign]
        return parser


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Register a command: its mistakes become one sentence and exit code 2, Ctrl-C becomes 130."""
    who = f"holdtrue {function.__name__}"

    @functools.wraps(function)
    def run(**options: Any) -> None:
        silenced = silent.set(options["quiet"])
        try:
            function(**options)
        except (typer.Exit, typer.Abort):
            raise
        except BrokenPipeError:  # the reader of a pipe has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except (KeyboardInterrupt, Exception) as error:
            if _is_interrupted() or isinstance(error, KeyboardInterrupt):
                raise typer.Exit(_INTERRUPTED) from None
            if options["debug"]:
                raise
            is_mistake = isinstance(
                error, (SpokenError, ValueError, TypeError, OSError, ImportError, MemoryError)
            )
            _print_error(f"{who}: {_sentence(error) if is_mistake else _bug(error)}")
            raise typer.Exit(2 if is_mistake else 1) from None
        finally:
            silent.reset(silenced)

    return app.command(cls=_Command)(run)


def _is_interrupted() -> bool:
    """Whether Ctrl-C came, even if a library lost the exception."""
    return getattr(signal.getsignal(signal.SIGINT), "came", False)


def _print_error(text: str) -> None:
    from holdtrue.charts import printable

    print(printable(text), file=sys.stderr)


def _sentence(error: BaseException) -> str:
    if isinstance(error, SpokenError):
        return error.sentence
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    return str(error) or type(error).__name__


def _bug(error: BaseException) -> str:
    name = type(error).__name__
    return f"a bug of holdtrue ({name}: {error}). Please report it with what --debug shows."


def _asks(function: Callable[..., Answer]) -> Callable[..., None]:
    """Register a command that reads a table: ``function(ask, ...its options)`` gives the answer.

    The options that all such commands have come after its own.
    """

    @functools.wraps(function)
    def run(**options: Any) -> None:
        from holdtrue.cli.write import Outputs, complete_summary

        del options["debug"]
        written = {"source": options["file"], **{name: options.pop(name) for name in WRITE}}
        predicted = "target" if "target" in options else "y"
        for option, rows in (
            ("sums", "rows, and sums have none"),
            ("engine", "rows that are here"),
        ):
            if options.get(option) and written["save"]:
                raise InputError(f"--save needs {rows}. Leave out --save, or --{option}.")
        if "," not in (options[predicted] or ""):
            Outputs(**written)  # refused before the file is opened
        import pyarrow

        from holdtrue.cli.ask import Ask

        pyarrow.enable_signal_handlers(False)  # a Ctrl-C at the end of a block would be lost
        asked = {name: options.pop(name) for name in ASK}
        if asked["weights"] and written["save"]:
            raise InputError("--save keeps models of rows without weights. Leave out one of them.")
        ask = Ask.from_options(target=options[predicted], **asked)
        targets = ask.targets or [options[predicted]]  # sums have a target of their own
        for target, outputs in zip(targets, Outputs.of_targets(targets, **written), strict=True):
            answer = function(ask, **{**options, predicted: target})
            if _is_interrupted():
                raise KeyboardInterrupt
            outputs.write(complete_summary(answer), answer.deployed)

    known = {"Ask": Any, "Answer": Any}  # imported when a command runs
    parameters = list(inspect.signature(function, locals=known, eval_str=True).parameters.values())[
        1:
    ]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for name, (kind, default) in _SHARED.items()
    ]
    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    parameters.sort(key=lambda p: p.name != "file")  # as it stands in the command
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return command(run)


# --- commands -----------------------------------------------------------------------------------


@_asks
def rank(
    ask: Ask,
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
    ] = 0.001,
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
) -> Answer:
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
    from holdtrue.cli.answer import answer_rank

    return answer_rank(
        ask,
        target,
        groups=groups,
        criterion=criterion,
        target_type=target_type,
        min_skill=min_skill,
        alpha=alpha,
        engine=engine,
        address=address,
        master=master,
    )


@_asks
def select(
    ask: Ask,
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", help="Further files, of --sums.", show_default=False),
    ] = None,
    target: Annotated[str | None, typer.Option("--target", "-t", help="Column to predict.")] = None,
    domain: Annotated[
        str | None,
        typer.Option(
            "--domain",
            "--groups",
            "-d",
            help="Column that tells hospitals, users or years apart.",
            autocompletion=column_names,
        ),
    ] = None,
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
        bool,
        typer.Option(
            "--average", help="Let an average of six models compete too. It needs minutes."
        ),
    ] = False,
    alpha: Alpha = 0.05,
) -> Answer:
    """Which features will still work at the next hospital, user or year?

    Holds out each domain in turn and keeps the features whose effect is steady across the others.
    Says too whether SteadyRidge, which uses all features, predicts better at a new domain.
    Categories become one column for each value; missing numbers take the column's mean.

    **Examples**

    ```
    $ holdtrue select patients.csv --target disease --domain hospital
    $ holdtrue select crime.parquet --target rate --domain state --rule auto --out report.html
    $ holdtrue select --sums *.sums
    ```
    """
    settings = {
        "keep": keep or [],
        "rule": rule,
        "stop": stop,
        "max_steps": max_steps,
        "stepwise": stepwise,
        "alpha": alpha,
    }
    if sums:
        at_sites = {
            "--target": target,
            "--domain": domain,
            "--target-type": target_type != "auto",
            "--type": ask.types,
            "--only": ask.only,
            "--weights": ask.weights,
            "--table": ask.table,
            "--encoding": ask.encoding,
            "--missing-target": ask.missing_target != "drop",
        }
        for option, given in at_sites.items():
            if given:
                raise InputError(f"{option} goes with holdtrue sums, at each site. Leave it out.")
        if average:
            raise InputError("--average needs rows, and sums have none. Leave it out.")
        from holdtrue.cli.answer import answer_select_sums

        return answer_select_sums(ask, [ask.file, *(more or [])], **settings)
    if more:
        raise InputError(
            f"expected one FILE. Got {1 + len(more)}. Several files of sums need --sums."
        )
    if target is None or domain is None:
        missing = "--target" if target is None else "--domain"
        raise InputError(f"missing option '{missing}'. See holdtrue select --help.")
    from holdtrue.cli.answer import answer_select

    return answer_select(ask, target, domain, target_type=target_type, average=average, **settings)


@_asks
def compare(
    ask: Ask,
    target: Target,
    domain: Groups = None,
    domain_order: Annotated[
        str,
        typer.Option(
            help="any: each domain is predicted from all others; time: from those before it, "
            "as the next year is."
        ),
    ] = "any",
    models: Annotated[
        str | None,
        typer.Option(
            help="Names with commas: ridge, elastic_net (numbers), logistic (classes), boosting, "
            "forest, t_greedy, steady_ridge, mean or majority. Default: all.",
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="Further model to compare, an unfitted or fitted estimator in a .skops file; "
            "repeatable. It is fitted anew."
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
) -> Answer:
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
    from holdtrue.cli.answer import answer_compare

    return answer_compare(
        ask,
        target,
        domain,
        domain_order=domain_order,
        target_type=target_type,
        models=models,
        own=model or [],
        scoring=scoring,
        checkpoint=checkpoint,
        alpha=alpha,
    )


@_asks
def transfer(
    ask: Ask,
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
        typer.Option(help="Random candidates to look at in each step: 59 for GreedyTL-59."),
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
) -> Answer:
    """Which of a thousand trained models help a new task with a dozen labels?

    Runs the models of a folder on the rows and chooses greedily among their scores and the
    columns. The models read all columns but the target, in the order of the file.

    **Examples**

    ```
    $ holdtrue transfer new_task.csv --target label --sources shelf/
    $ holdtrue transfer new_task.csv --target label --sources shelf/ --candidates 59 --skip-broken
    ```
    """
    from holdtrue.cli.answer import answer_transfer

    return answer_transfer(
        ask,
        target,
        sources,
        groups=groups,
        target_type=target_type,
        max_selected=max_selected,
        lam=lam,
        candidates=candidates,
        passthrough=passthrough,
        skip_broken=skip_broken,
        allow_pickle=allow_pickle,
        cache=cache,
    )


@_asks
def size(
    ask: Ask,
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
) -> Answer:
    """How large a model can thirty points afford?

    Fits terms of growing complexity and chooses how many to keep by their estimated error on new
    points. Rows without --y still tell where new points will be.

    **Examples**

    ```
    $ holdtrue size mcycle.csv --x times --y accel
    $ holdtrue size spectra.csv --x moisture --y fat --basis legendre --criterion bayes
    ```
    """
    from holdtrue.cli.answer import answer_size

    return answer_size(
        ask, x, y, groups=groups, basis=basis, criterion=criterion, max_terms=max_terms
    )


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
    debug: Debug = False,
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
