"""How commands are registered and run: options, ask, answer, write; mistakes in one sentence.

Exit codes: 0 done, 1 a bug, 2 a mistake in what was given (one sentence on standard error), 130
interrupted. Everything beyond typer is imported inside the commands: ``--help`` and a wrong option
are answered without NumPy.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, Any

import typer

from holdtrue import __version__
from holdtrue.errors import InputError, SpokenError, did_you_mean
from holdtrue.progress import silent

# --- options that commands share, each declared once ----------------------------------------------

_TABLE = (
    "CSV, Parquet (file or folder), Feather, JSON, Excel or DuckDB file, a pattern such as "
    "'data/*.csv', or - for standard input."
)


def column_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Columns of the file whose names begin with what was typed, to complete it in a shell."""
    from holdtrue.tables.table import first_names

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


# --- running --------------------------------------------------------------------------------------

_INTERRUPTED = 130  # exit code, of typer too
_UsageError: Any = typer.BadParameter.__mro__[1]  # of click, or of the typer that has its own

app = typer.Typer(name="holdtrue", rich_markup_mode="markdown", pretty_exceptions_enable=False)


def main() -> None:
    """Run the command line."""
    arguments = _with_standard_output(sys.argv[1:]) or ["--help"]
    run: Any = typer.main.get_command(app)
    who = f"holdtrue {arguments[0]}"
    if arguments[0] in run.commands:  # at once: typer loads much to read its own options first
        run, name, arguments = run.commands[arguments[0]], who, arguments[1:]
    else:
        name = "holdtrue"
    try:
        code = run(args=arguments, prog_name=name, standalone_mode=False)
        if code == _INTERRUPTED:
            print_error(f"{who}: interrupted. No file was left half-written.")
        sys.exit(code)
    except _UsageError as error:
        print_error(_usage_sentence(error, who))
        sys.exit(2)


@app.callback(invoke_without_command=True)
def _holdtrue(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    """Choose the features, sources and model sizes that hold on data nobody has seen."""
    if version:
        print(f"holdtrue {__version__}")
        raise typer.Exit


def _usage_sentence(error: Any, who: str) -> str:
    """A mistake in the options, as one sentence of ``who``, the command."""
    who = error.ctx.command_path if error.ctx else who
    arguments = sys.argv[1:]
    option, param = getattr(error, "option_name", None), getattr(error, "param", None)
    if isinstance(option, str) and hasattr(error, "possibilities"):
        known = [name for param in error.ctx.command.get_params(error.ctx) for name in param.opts]
        close = did_you_mean(option.strip("-"), [name.strip("-") for name in known])
        sentence = f"no option {option}." + close.replace(" '", " '--")
    elif error.ctx and "file" in error.ctx.params and "extra argument" in error.format_message():
        more = error.format_message().rpartition(" (")[2].rstrip(").")
        sentence = (
            f"takes one FILE. Got {more!r} too. For several files of one table put a pattern "
        )
        sentence += "in quotes: 'data/*.csv'."
        for output in ("--json", "--csv"):
            if (output, more) in pairwise(arguments):
                sentence = f"{output} must end in .{output[2:]}, or stand alone. Got {more!r}."
    elif type(error) is typer.BadParameter and param is not None:
        typed = [*pairwise(arguments), *(a.partition("=")[::2] for a in arguments)]
        given = [value for name, value in typed if name in param.opts and value]
        sentence = f"{param.opts[0]} must be {_expected(param)}. Got {(given or [''])[0]!r}."
    else:
        sentence = error.format_message()
        sentence += "" if sentence.endswith((".", "?")) else "."
    return f"{who}: {sentence[0].lower()}{sentence[1:]} See {who} --help."


def _expected(param: Any) -> str:
    """What an option that takes a number must be, in words."""
    bounds = param if hasattr(param, "min") else getattr(param, "type", None)  # new typer, or old
    low, high = getattr(bounds, "min", None), getattr(bounds, "max", None)
    words = "a number" if isinstance(param.default, float) else "a whole number"
    words += "" if low is None else f" of at least {low}"
    return words + ("" if high is None else f" and at most {high:,}")


def _with_standard_output(arguments: Sequence[str]) -> list[str]:
    """Arguments in which ``--json`` and ``--csv`` without a file name write to standard output.

    A name must end in .json or .csv, or be -.
    """
    completed: list[str] = []
    for argument, name in pairwise([*arguments, ""]):
        completed.append(argument)
        is_named = name == "-" or name.endswith(f".{argument[2:]}")
        if argument in ("--json", "--csv") and not is_named:
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


def command(
    function: Callable[..., None], shared: Mapping[str, Any] = MappingProxyType({})
) -> Callable[..., None]:
    """Register a command: its mistakes become one sentence and exit code 2, Ctrl-C becomes 130.

    The ``shared`` options come after its own, and reach it by keyword.
    """
    who = f"holdtrue {function.__name__}"

    @functools.wraps(function)
    def run(*, debug: bool, **options: Any) -> None:
        silenced = silent.set(options["quiet"])
        try:
            function(**options)
        except (typer.Exit, typer.Abort):
            raise
        except BrokenPipeError:  # the reader of a pipe has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except (KeyboardInterrupt, Exception) as error:
            if (sign := _signal_that_came()) or isinstance(error, KeyboardInterrupt):
                raise typer.Exit(128 + sign if sign else _INTERRUPTED) from None
            if debug:
                raise
            is_mistake = isinstance(
                error, (SpokenError, ValueError, TypeError, OSError, ImportError, MemoryError)
            )
            sentence = _with_option_names(_sentence(error), options) if is_mistake else _bug(error)
            print_error(f"{who}: {sentence}")
            raise typer.Exit(2 if is_mistake else 1) from None
        finally:
            silent.reset(silenced)

    parameters = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for each in inspect.signature(function, eval_str=True).parameters.values()
        if each.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
        for name, (kind, default) in {**shared, "debug": (Debug, False)}.items()
    ]
    if "file" in shared:  # it comes first in the command
        parameters.sort(key=lambda each: each.name != "file")
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return app.command(cls=_Command)(run)


def asks(function: Callable[..., None]) -> Callable[..., None]:
    """Register a command that reads a table; ``function`` declares its options and help.

    The options that all such commands have come after its own. ``answer`` in the module of the
    command's name gives the answer.
    """

    @functools.wraps(function)
    def run(**options: Any) -> None:
        from holdtrue.cli.write import Outputs

        written = {"source": options["file"], **{name: options.pop(name) for name in WRITE}}
        written["reading"] = tuple((k, options[k]) for k in ("table", "encoding") if options[k])
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
        name = function.__name__
        is_saved = written["save"] is not None
        ask = Ask.from_options(target=options[predicted], is_saved=is_saved, **asked)
        targets = ask.targets or [options[predicted]]  # sums have a target of their own
        if not any(options.get(name) for name in ("sums", "engine", "address", "master")):
            for column in (*ask.targets, options.get("groups", options.get("domain"))):
                if column is not None:  # refused before scikit-learn is loaded
                    ask.opened.check_name(column)
        answer_of = import_module(f"holdtrue.cli.{name}").answer
        for target, outputs in zip(targets, Outputs.of_targets(targets, **written), strict=True):
            answer = answer_of(ask, **{**options, predicted: target})
            if _signal_that_came():
                raise KeyboardInterrupt
            outputs.write(*answer)

    return command(run, {**ASK, **WRITE})


def _signal_that_came() -> int:
    """SIGINT or SIGTERM, or 0 if none came; also if a library lost the exception."""
    handlers = map(signal.getsignal, (signal.SIGINT, signal.SIGTERM))
    return max(getattr(handler, "came", 0) for handler in handlers)


def print_error(text: str) -> None:
    """Print a line on standard error, without control characters."""
    from holdtrue.charts import printable

    print(printable(text), file=sys.stderr)


def _sentence(error: BaseException) -> str:
    if isinstance(error, SpokenError):
        return error.sentence
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return f"{error.filename}: {error.strerror}."
    return str(error) or type(error).__name__


def _with_option_names(sentence: str, options: Iterable[str]) -> str:
    """The sentence with options in the place of parameters: ``--max-terms 3`` of max_terms=3."""
    for name in options:
        option = f"--{name.replace('_', '-')}"
        if sentence.startswith((f"{name} must ", f"{name} is for ")):
            sentence = sentence.replace(name, option, 1).replace(", or None.", ", or leave it out.")
        sentence = re.sub(rf"\b{name}=(?=[\w'])", f"{option} ", sentence)
    return sentence


def _bug(error: BaseException) -> str:
    name = type(error).__name__
    return f"a bug of holdtrue ({name}: {error}). Please report it with what --debug shows."
