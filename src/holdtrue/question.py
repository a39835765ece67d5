"""A question that a command asks of a table: what it reads, and where its answer goes."""

from __future__ import annotations

import platform
import shlex
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import numpy as np
import pyarrow as pa

from holdtrue import __version__
from holdtrue.categories.counting import is_numeric
from holdtrue.report.outputs import Outputs
from holdtrue.report.summary import Summary
from holdtrue.tables import Table, open_table
from holdtrue.validation import check_choice, did_you_mean
from holdtrue.values import holds_numbers

__all__ = ["Question"]

# Whole numbers of more values than these are hardly classes; the fewer if most are rare.
_MANY_CLASSES, _FEW_CLASSES = 20, 5


class Question:
    """The options that all such commands share, checked before any work.

    Parameters
    ----------
    who : str
        The command, for the messages.
    file : str
    types : sequence of str
        ``NAME=KIND`` each.
    table, encoding : str or None
        As in `open_table`.
    drop : sequence of str
        Columns to leave out.
    seed : int
    outputs : dict
        The options of `Outputs`.

    Attributes
    ----------
    data : Table
        Once it is open.
    """

    data: Table

    def __init__(
        self,
        who: str,
        file: str,
        *,
        types: Sequence[str] = (),
        table: str | None = None,
        encoding: str | None = None,
        drop: Sequence[str] = (),
        seed: int = 0,
        **outputs: Any,
    ):
        self.who, self.file, self.drop, self.seed = who, file, tuple(drop), seed
        self._outputs = Outputs(who, source=file, **outputs)
        self._read = {"table": table, "encoding": encoding}
        self._types = {}
        for given in types:
            name, found, kind = given.rpartition("=")
            if not found:
                raise ValueError(
                    f"{who}: --type expects NAME=KIND, such as zip=text. Got {given!r}."
                )
            self._types[name] = kind
        self._caught: list[warnings.WarningMessage] = []

    def open(self, *needed: tuple[str, str]) -> list[str]:
        """Open the table and give the names of the columns to choose from.

        Parameters
        ----------
        needed : pairs of str
            Options, and the columns that they name: they must be there, each once.
        """
        self.data = open_table(self.who, self.file, types=self._types or None, **self._read)
        named: dict[str, str] = {}
        for option, column in needed:
            self.data.check_name(column)
            if column in named:
                raise ValueError(
                    f"{self.who}: {named[column]} and {option} must name different columns. "
                    f"Got {column!r} for both."
                )
            named[column] = option
        names = [name for name in self.data.names if name not in named]
        for name in self.drop:
            if name in named:
                raise ValueError(
                    f"{self.who}: {name!r} is the column of {named[name]} and cannot be dropped. "
                    f"Leave out --drop {shlex.quote(name)}, or name another."
                )
            if name not in names:
                hint = did_you_mean(name, names)
                raise ValueError(f"{self.who}: no column {name!r} (--drop).{hint}")
        return [name for name in names if name not in self.drop]

    def check_left(self, names: Sequence[str]) -> None:
        """Refuse to choose from nothing."""
        if not names:
            raise ValueError(
                f"{self.who}: no column is left to choose from. The table has "
                f"{len(self.data.names)}, and --drop leaves out {len(self.drop)}."
            )

    def numbers(self, names: Sequence[str], *, missing: bool = False) -> np.ndarray:
        """Columns as a matrix of numbers; nan where one is missing, if that is allowed."""
        who, data = self.who, self.data
        columns = []
        for name in names:
            column = data.column(name)
            if isinstance(column, np.ndarray) or not (
                data.kinds[name] in ("integer", "number") or pa.types.is_boolean(column.type)
            ):
                raise ValueError(
                    f"{who}: column {name!r} must hold numbers. Got {data.types[name]}. Leave it "
                    f"out with --drop {shlex.quote(name)}, or say how to read it with --type."
                )
            if pa.types.is_temporal(column.type):
                column = (
                    column.cast(pa.int64()) if column.type.bit_width == 64 else column.cast("int32")
                )
            numbers = np.asarray(column.cast(pa.float64(), safe=False).fill_null(np.nan))
            if not missing and not np.isfinite(numbers).all():
                row = int(np.flatnonzero(~np.isfinite(numbers))[0]) + 1
                raise ValueError(
                    f"{who}: column {name!r} must have a finite number in every row. Got "
                    f"{numbers[row - 1]} in row {row:,}. Fill it in, or leave the column out with "
                    f"--drop {shlex.quote(name)}."
                )
            columns.append(numbers)
        return np.column_stack(columns)

    def is_numeric(self, target: str, target_type: str) -> bool:
        """Whether the target is a number to predict; refused if it is missing or never changes."""
        who, data = self.who, self.data
        check_choice(who, "--target-type", target_type, ("auto", "classes", "numeric"))
        column = data.column(target)
        if not isinstance(column, np.ndarray) and column.null_count:
            raise ValueError(
                f"{who}: the target {target!r} must not be missing. Got {column.null_count:,} "
                f"missing of {len(column):,} rows. Leave those rows out."
            )
        if target_type == "numeric" and not holds_numbers(data.types[target]):
            raise ValueError(
                f"{who}: the target {target!r} must hold numbers for --target-type numeric. "
                f"Got {data.types[target]}."
            )
        numeric = is_numeric(column, target_type)
        if numeric and len(column.unique()) == 1:
            raise ValueError(
                f"{who}: the target {target!r} is {column[0]} in every row. "
                "There is nothing to predict."
            )
        return numeric

    def classes_notes(self, target: str, target_type: str) -> list[tuple[str, str]]:
        """A warning where whole numbers, taken as classes, look like a quantity."""
        column, kind = self.data.column(target), self.data.types[target]
        quantity = holds_numbers(kind) and not pa.types.is_boolean(kind)
        if target_type != "auto" or not quantity or is_numeric(column, target_type):
            return []
        sizes = np.asarray(column.value_counts().field("counts"))
        if len(sizes) <= _MANY_CLASSES and (len(sizes) <= _FEW_CLASSES or np.median(sizes) >= 5):
            return []
        said = f"{target!r} is taken as {len(sizes):,} classes"
        return [("Numbers as classes", f"{said}; pass --target-type numeric if it is a quantity.")]

    @contextmanager
    def warnings_kept(self) -> Iterator[None]:
        """Keep the warnings of a fit for the report, away from the terminal."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            try:
                yield
            finally:
                self._caught += caught

    @property
    def first_warning(self) -> str | None:
        """What was warned of first."""
        return str(self._caught[0].message) if self._caught else None

    def answer(self, summary: Summary, **asked: Any) -> None:
        """Write and show the summary, with what was asked and how to do it again.

        Parameters
        ----------
        summary : Summary
        asked : settings in words; those that were not given are left out
        """
        settings: Mapping[str, Any] = {
            "data": self.data.description,
            **asked,
            "left out": ", ".join(self.drop),
        }
        said = {
            key.replace("_", " "): str(value)
            for key, value in settings.items()
            if value not in (None, "")
        }
        versions = {"holdtrue": __version__, "Python": platform.python_version()}
        versions |= {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "pyarrow")}
        reproduce = {
            "command": shlex.join(["holdtrue", *sys.argv[1:]]),
            "versions": ", ".join(f"{name} {number}" for name, number in versions.items()),
            "seed": str(self.seed),
            "data": str(self.data.fingerprint()),
        }
        notes = [("A warning of the fit", str(w.message)) for w in self._caught]
        self._outputs.write(summary.with_notes(notes, asked=said, reproduce=reproduce))
