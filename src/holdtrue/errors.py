"""The wording of errors: who · what was expected · what was given · what to do.

Code anywhere below raises `InputError("max_terms must be below the number of rows. Got ...")` and
does not know on whose behalf it runs. The public function or method that the user called adds its
name with `speaks`; the outermost one wins, so that a sentence about weights begins with
``GingerSelector:`` in Python and with ``holdtrue rank:`` on the command line.

Standard library only: the command line answers a wrong option without loading NumPy.
"""

from __future__ import annotations

import difflib
import functools
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])


class SpokenError(Exception):
    """An error in a sentence, to which the outermost boundary adds ``who`` speaks.

    The sentence says what was expected, what was given, what to do.
    """

    def __init__(self, sentence: str):
        super().__init__(sentence)
        self.sentence = sentence
        self.who = ""

    def __str__(self) -> str:
        return f"{self.who}: {self.sentence}" if self.who else self.sentence


class InputError(SpokenError, ValueError):
    """A value that cannot be worked with."""


class InputTypeError(SpokenError, TypeError):
    """A value of the wrong type."""


class MissingPackageError(SpokenError, ImportError):
    """An optional dependency that is not installed."""


class EngineError(SpokenError, RuntimeError):
    """A failure of Dask or Spark that is not one of the data."""


class FileError(SpokenError, OSError):
    """A file that cannot be read or written."""


class MissingFileError(FileError, FileNotFoundError):
    """A file that does not exist."""


@contextmanager
def speaking_as(who: str) -> Iterator[None]:
    """Put ``who`` before the sentence of an error raised inside."""
    try:
        yield
    except SpokenError as error:
        error.who = who
        raise


def speaks(function: _Function) -> _Function:
    """Decorate a public function or method: its errors begin with its name, or its class's."""
    name = function.__qualname__
    is_method = "." in name and "<locals>" not in name

    @functools.wraps(function)
    def spoken(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except SpokenError as error:
            error.who = name
            if is_method:  # of an instance or, for a class method, of the class itself
                error.who = (args[0] if isinstance(args[0], type) else type(args[0])).__name__
            raise

    return spoken  # type: ignore[return-value]


def caution(message: str) -> None:
    """Warn, at the line outside this package, and scikit-learn around it, that led here."""
    level, frame = 2, sys._getframe(1)
    inside = (__name__.partition(".")[0], "sklearn", "joblib")
    while frame.f_back and str(frame.f_globals.get("__name__")).partition(".")[0] in inside:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


def did_you_mean(given: Any, choices: Iterable[str]) -> str:
    """`` Did you mean 'x'?`` when a choice is close to what was given, else nothing."""
    wanted = str(given).lower()
    by_lower = {str(choice).lower(): choice for choice in choices}
    close = difflib.get_close_matches(wanted, by_lower, n=1)
    if not close and len(wanted) > 2:  # a part of a name is close too, the shortest first
        close = sorted((name for name in by_lower if wanted in name), key=len)[:1]
    return f" Did you mean {by_lower[close[0]]!r}?" if close else ""


def plain(value: Any) -> Any:
    """A NumPy scalar as the Python value that it stands for; anything else unchanged."""
    is_scalar = type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0
    return value.item() if is_scalar else value


def shown(value: Any) -> str:
    """The value as it would be typed: 0 for ``np.int64(0)``, also in a list."""
    if type(value) in (list, tuple):
        value = type(value)(map(plain, value))
    return repr(plain(value))


def first_line(error: BaseException) -> str:
    """First line of a message that another library wrote; its type where there is none."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def counted(n: int, noun: str) -> str:
    """The number and the noun, such as "3 columns"."""
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def named(names: Iterable[Any]) -> str:
    """Names in a message: the first ten, and how many more; "none" for none."""
    texts = [repr(name) for name in names]
    more = f" and {len(texts) - 10:,} more" if len(texts) > 10 else ""
    return (", ".join(texts[:10]) or "none") + more


def check_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Refuse a value that is not one of the choices."""
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(map(repr, choices))
        raise InputError(
            f"{name} must be one of {listed}. Got {shown(value)}." + did_you_mean(value, choices)
        )
