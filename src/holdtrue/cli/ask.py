"""What a command asks of a table: the file is opened, and the target decoded, once."""

from __future__ import annotations

import hashlib
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdtrue.columns.values import holds_numbers, python_values
from holdtrue.errors import FileError, InputError, MissingFileError, check_choice
from holdtrue.tables import Fingerprint, Table, open_table
from holdtrue.tables.column_summary import FeatureColumn, as_numbers, feature_columns
from holdtrue.targets import MAX_CLASSES, TARGET_TYPES, TargetKind, target_kind

if TYPE_CHECKING:  # scikit-learn is loaded by what passes the checks here
    from holdtrue.tables.encoder import TableRows
    from holdtrue.tables.site_sums import SiteSums

_IN_TIME = 5  # least number of domains for --domain-order time
_YEARS = (1500, 2200)
_NUMBER = TargetKind(True, 0, True)
MAX_REPEATED = 10_000_000  # rows, with their repetitions


@dataclass(frozen=True)
class Data:
    """An opened table: the part of it that a command works on, and the roles of its columns."""

    ask: Ask
    # Without the rows that lack a target, domain or weight; of the columns, those to choose from,
    # those that options name, and those that --drop leaves out
    table: Table
    names: list[str]  # columns to choose from, with the parts of dates
    dropped: tuple[str, ...]  # columns that --drop leaves out
    n_rows_in_file: int
    # Columns that must have a value in every row, with the number of rows that lacked one
    incomplete: Mapping[str, int]
    target: str
    groups: str | None  # column of domains, or groups
    kind: TargetKind = _NUMBER  # how the target is read
    nested: Sequence[str] = ()  # columns of lists and the like, which are left out
    weights: np.ndarray | None = None  # shape (n_rows,)

    @property
    def notes(self) -> list[tuple[str, str]]:
        """What was left out and how columns were read, for the reader of the answer."""
        notes = []
        for name, count in self.incomplete.items():
            what = f"weight in {name!r}, or 0," if name == self.ask.weights else repr(name)
            text = f"{count:,} of {self.n_rows_in_file:,} rows have no {what} and are left out. "
            text += "If they differ from the others, so does what predicts them."
            notes += [(f"Rows without {name!r}", text)] if count else []
        if self.nested:
            names = ", ".join(map(repr, self.nested))
            notes.append(("Columns left out", f"{names}: lists and objects are not values."))
        read = {k: one for k, one in self.table.readings.items() if k in self.table.names}
        for what in ("numbers", "dates"):
            examples = [
                repr(name) + ("" if self.ask.no_values else f" ({one.written!r} is {one.meant})")
                for name, one in read.items()
                if one.what == what
            ]
            if examples:
                how = f"Text is read as {what} in {', '.join(examples)}."
                notes.append((f"Texts that are {what}", f"{how} --type NAME=text keeps it."))
        return notes

    def time_notes(self, domain_order: str) -> list[tuple[str, str]]:
        """Note on domains in time: left out in any order, or predicted from earlier ones."""
        domain = self.groups
        check_choice("--domain-order", domain_order, ("any", "time"))
        if domain_order == "time":
            if domain is None:
                raise InputError("--domain-order time needs a domain, such as --domain year.")
            n_domains = len(set(self.labels(domain).tolist()))
            if n_domains < _IN_TIME:
                raise InputError(
                    f"--domain-order time needs at least {_IN_TIME} domains: the first three are "
                    f"not judged. Got {n_domains} in {domain!r}. Leave it out, or name a finer one."
                )
            why = f"Each {domain!r} is predicted from those before it; the first three are not "
            return [("Later domains from earlier ones", why + "judged.")]
        column = None if domain is None else self.table.column(domain)
        if column is None or isinstance(column, np.ndarray):
            return []
        is_time = pa.types.is_temporal(column.type)
        if pa.types.is_integer(column.type):
            least, most = pc.min_max(column).values()
            is_time = _YEARS[0] <= least.as_py() and most.as_py() <= _YEARS[1]
        if not is_time:
            return []
        return [
            (
                "Domains in time",
                f"{domain!r} is a time. Here each is predicted from all others, later ones too. "
                "How well the next is predicted from those before it, --domain-order time says.",
            )
        ]

    def date_notes(self, kept: Sequence[str]) -> list[tuple[str, str]]:
        """Note on dates that predict: new rows will have later ones."""
        kinds = {name: str(self.table.types[name]) for name in kept}
        dates = [repr(name) for name in kept if kinds[name].startswith(("date", "timestamp"))]
        if not dates:
            return []
        why = "new rows are taken to have dates from the same time. Later ones fall into the last "
        why += "bin, and may be predicted worse than said here."
        return [("Dates", f"{', '.join(dates)}: {why}")]

    def whole_weights(self, why: str) -> np.ndarray | None:
        """Weights that are whole numbers; others are refused."""
        if self.weights is not None and (self.weights % 1).any():
            value = self.weights[self.weights % 1 > 0][0]
            raise InputError(
                f"--weights must name a column of whole numbers: {why}. Got {value:g} in "
                f"{self.ask.weights!r}."
            )
        return self.weights

    def repetitions(self) -> np.ndarray | None:
        """How often each row is repeated, shape (n_rows,); whole numbers, and not too many."""
        weights = self.whole_weights("rows are repeated as often as they say")
        if weights is not None and weights.sum() > MAX_REPEATED:
            raise InputError(
                f"--weights repeat the rows {weights.sum():,.0f} times, above the limit of "
                f"{MAX_REPEATED:,}. Divide them by a common factor."
            )
        return None if weights is None else weights.astype(int)

    def repeated(self, *rows: Any) -> list[Any]:
        """Arrays with each row as often as its weight says; None stays None."""
        repetitions = self.repetitions()
        if repetitions is None:
            return list(rows)
        from sklearn.utils import _safe_indexing

        places = np.repeat(np.arange(len(repetitions)), repetitions)
        return [None if each is None else _safe_indexing(each, places) for each in rows]

    def labelled_rows(self, X: Any) -> list[Any]:
        """X, target and groups that a saved model is judged on, each row as often as its weight."""

        def as_texts(name: str) -> np.ndarray:
            return np.array([str(value) for value in python_values(self.table.column(name))])

        target, is_numeric = self.target, self.kind.is_numeric
        y = as_numbers(self.table.column(target)) if is_numeric else as_texts(target)
        return self.repeated(X, y, None if self.groups is None else as_texts(self.groups))

    def encoded_rows(self) -> TableRows:
        """Rows of the table as numbers, each as often as its weight says; domains stay whole."""
        from holdtrue.tables.encoder import rows_of

        rows = rows_of(
            self.table,
            self.target,
            self.groups,
            target_type=self.kind.target_type,
            leave_out=self.dropped,
            sample_weight=self.weights,
        )
        X, y, groups = self.repeated(rows.X, rows.y, rows.groups)
        return replace(rows, X=X, y=y, groups=groups)

    def number_columns(self, names: Sequence[str]) -> list[FeatureColumn]:
        """Columns read as numbers, missing values not filled in."""
        return [
            replace(column, features=(column.name,), fill=float("nan"), note="number")
            for column in feature_columns(self.table.only(names))
        ]

    def check_names(self) -> None:
        """Refuse a table without columns to choose from."""
        if not self.names:
            raise InputError(
                f"no column is left to choose from: {self.table.description} has no other "
                f"columns, or --drop and --only leave them out."
            )

    def labels(self, name: str) -> np.ndarray:
        """Values of a column as labels, shape (n_rows,)."""
        return np.asarray(python_values(self.table.column(name)))

    def numbers(self, names: Sequence[str], *, allow_missing: bool = False) -> np.ndarray:
        """Columns as float64, shape (n_rows, n_names); nan is a missing value, where allowed."""
        columns = []
        for name in names:
            column = self.table.column(name)
            if isinstance(column, np.ndarray) or not (
                self.table.kinds[name] in ("integer", "number") or pa.types.is_boolean(column.type)
            ):
                raise InputError(
                    f"column {name!r} must hold numbers. Got {self.table.types[name]}. Leave it "
                    f"out with --drop {shlex.quote(name)}, or say how to read it with --type."
                )
            numbers = as_numbers(column)
            if not allow_missing and not np.isfinite(numbers).all():
                row = int(np.flatnonzero(~np.isfinite(numbers))[0]) + 1
                left = f" of the {len(numbers):,} that are left" * any(self.incomplete.values())
                raise InputError(
                    f"column {name!r} must have a finite number in every row. Got "
                    f"{numbers[row - 1]} in row {row:,}{left}. Fill it in, or leave the column "
                    f"out with --drop {shlex.quote(name)}."
                )
            columns.append(numbers)
        return np.column_stack(columns)


def _target_kind(
    table: Table, name: str, target_type: str, weights: np.ndarray | None
) -> TargetKind:
    """Whether the target is read as classes or as a number; refused if neither is possible."""
    check_choice("--target-type", target_type, TARGET_TYPES)
    kind = table.types[name]
    if target_type == "numeric" and not holds_numbers(kind):
        raise InputError(
            f"the target {name!r} must hold numbers for --target-type numeric. Got {kind}."
        )
    column = table.column(name)
    read_as = target_kind(column, target_type, weights)
    if read_as.n_values <= 1:
        value = python_values(column[:1])[0]
        raise InputError(
            f"the target {name!r} is {value!r} in every row. There is nothing to predict."
        )
    if not read_as.is_numeric and read_as.n_values > MAX_CLASSES:
        as_number = "If it is a quantity, pass --target-type numeric; otherwise join"
        raise InputError(
            f"the target {name!r} must have at most {MAX_CLASSES} classes. Got "
            f"{read_as.n_values:,}. {as_number if holds_numbers(kind) else 'Join'} rare "
            "classes into one, or name another target."
        )
    return read_as


class SumsFiles:
    """Files that `holdtrue sums` wrote, in the place of a table; ``sites`` by the file's name."""

    readings: Mapping[str, Any] = {}

    def __init__(self, sites: dict[str, SiteSums], digest: str):
        self.sites, self._digest = sites, digest
        self.description = f"{', '.join(sites)} (sums)"

    def fingerprint(self) -> Fingerprint:
        """Fingerprint of all files together."""
        return Fingerprint(self._digest, f"the bytes of {len(self.sites)} files")


@dataclass(frozen=True)
class Ask:
    """Options that say what to read; those of every command that reads a table."""

    file: str
    types: Mapping[str, str]
    # drop, only: names of columns, or several with commas between them
    drop: tuple[str, ...]
    only: tuple[str, ...]
    target: str | None  # column to predict, or several with commas between them
    # table, encoding: as in `open_table`
    table: str | None
    encoding: str | None
    missing_target: str  # "drop" or "error": rows that lack a target or domain
    weights: str | None = None  # column of the rows' weights
    seed: int = 0
    no_values: bool = False
    is_saved: bool = False  # whether the model behind the answer is kept, for which rows repeat

    @classmethod
    def from_options(cls, *, type_: Any, drop: Any, only: Any, **options: Any) -> Ask:
        """Options as they were typed, checked as far as that is possible without the file."""
        types = {}
        for option in type_ or ():
            name, equals, kind = option.rpartition("=")
            if not equals:
                raise InputError(f"--type expects NAME=KIND, such as zip=text. Got {option!r}.")
            types[name] = kind
        check_choice("--missing-target", options["missing_target"], ("drop", "error"))
        return cls(types=types, drop=tuple(drop or ()), only=tuple(only or ()), **options)

    @cached_property
    def opened(self) -> Table:
        """The whole table."""
        return open_table(
            self.file, types=self.types or None, table=self.table, encoding=self.encoding
        )

    @cached_property
    def targets(self) -> list[str]:
        """Columns to predict, one after the other; none of them predicts another."""
        if self.target is None:
            return []
        if "," not in self.target:
            return [self.target]
        names = _columns(self.opened, [self.target])
        for name in names:
            self.opened.check_name(name)
        return names

    def open(
        self,
        target: str,
        groups: str | None,
        groups_option: str = "--groups",
        *,
        inputs: Sequence[str] | None = None,
        target_type: str | None = None,
        date_parts: bool = False,
    ) -> Data:
        """Open the table, without the rows that lack a target, group or weight.

        ``inputs`` are the columns of ``--x``: they and the target, ``--y``, may be missing then.
        With ``target_type`` the target is decoded. ``date_parts`` adds month, weekday and hour of
        dates to the columns to choose from.
        """
        table = self.opened
        option_of, drop, only = self.roles(
            table,
            *(("--x", name) for name in inputs or ()),
            ("--target" if inputs is None else "--y", target),
            (groups_option, groups),
            ("--weights", self.weights),
        )
        names = [name for name in only or table.names if name not in option_of]
        plain = set(names) if only else set(table.plain_names)
        nested = [name for name in names if name not in plain]
        left_out = {*drop, *nested, *self.targets}
        names = [name for name in names if name not in left_out]
        if date_parts:
            parts = table.varying_parts(names)
            taken = {*names, *drop, *option_of}
            names += [name for name in parts if name not in taken]
        n_rows = table.n_rows
        weight = [] if self.weights is None else [self.weights]
        self._check_weights(table)
        complete = [*([target] if inputs is None else []), *([groups] if groups else [])]
        table, incomplete = table.complete([*complete, *weight], nonzero=weight)
        weights = [np.asarray(table.column(name).cast(pa.float64())) for name in weight]
        table = table.only([*names, *(name for name in option_of if name not in weight), *drop])
        self.check_missing(option_of, incomplete, n_rows)
        data = Data(
            self,
            table,
            names,
            tuple(drop),
            n_rows,
            incomplete,
            target,
            groups,
            nested=nested,
            weights=weights[0] if weights else None,
        )
        if self.is_saved:
            data.repetitions()  # refused before any work
        if target_type is not None:
            data = replace(data, kind=_target_kind(table, target, target_type, data.weights))
        return data

    def roles(
        self, table: Any, *named: tuple[str, str | None]
    ) -> tuple[dict[str, str], list[str], list[str]]:
        """The option that names each column, and the columns of ``--drop`` and ``--only``.

        All must exist, and have one role each.
        """
        option_of: dict[str, str] = {}
        for option, column in named:
            if column is None:
                continue
            table.check_name(column)
            if column in option_of:
                raise InputError(
                    f"{option_of[column]} and {option} must name different columns. "
                    f"Got {column!r} for both."
                )
            option_of[column] = option
        drop, only = _columns(table, self.drop), _columns(table, self.only)
        for option, names in (("--drop", drop), ("--only", only)):
            for name in names:
                if name in option_of:
                    raise InputError(
                        f"{name!r} is the column of {option_of[name]} and cannot be in {option}. "
                        "Leave it out there, or name another."
                    )
                table.check_name(name)
        return option_of, drop, only

    def check_missing(
        self, option_of: Mapping[str, str], incomplete: Mapping[str, int], n_rows: int
    ) -> None:
        """Refuse rows without a target or domain, where ``--missing-target error`` says so."""
        for name, count in incomplete.items():
            if count and name != self.weights and self.missing_target == "error":
                raise InputError(
                    f"the {option_of[name].removeprefix('--')} {name!r} must not be missing. "
                    f"Got {count:,} missing of {n_rows:,} rows. Fill them in, or leave out "
                    "--missing-target error."
                )

    def _check_weights(self, table: Table) -> None:
        """Refuse weights that are not numbers of at least 0."""
        if self.weights is None:
            return
        column = table.column(self.weights)
        given = str(table.types[self.weights])
        if not isinstance(column, np.ndarray) and holds_numbers(column.type):
            least = pc.min(column.cast(pa.float64())).as_py()
            if least is None or least >= 0:
                return
            given = f"{least:g}"
        raise InputError(
            f"--weights must name a column of numbers that are not negative. Got {given} in "
            f"{self.weights!r}."
        )

    def open_sums(self, files: Sequence[str]) -> Data:
        """The sums of sites, one file each, in the place of a table."""
        from holdtrue.tables.site_sums import SiteSums

        sites: dict[str, SiteSums] = {}
        written: dict[bytes, str] = {}
        digest = hashlib.sha256()
        for name in files:
            if not Path(name).exists():
                raise MissingFileError(f"no file {name!r}. Pass files that holdtrue sums wrote.")
            try:
                data = Path(name).read_bytes()
            except OSError as error:
                raise FileError(f"{name} cannot be read ({error.strerror or error}).") from error
            if data in written:
                raise InputError(
                    f"{written[data]} and {name} hold the same sums. Name each site once."
                )
            written[data] = name
            digest.update(data)
            try:
                sites[name] = SiteSums.from_bytes(data)
            except InputError as error:
                raise InputError(
                    f"{name} is not a file that holdtrue sums wrote: {error.sentence}"
                ) from error
        incomplete = Counter[str]()
        for sums in sites.values():
            incomplete.update(sums.site.incomplete)
        n_rows = sum(sums.site.n_rows_in_file for sums in sites.values())
        table: Any = SumsFiles(sites, digest.hexdigest())
        target, domain = sums.site.target.name, sums.site.domain.name
        return Data(self, table, [], self.drop, n_rows, incomplete, target, domain)


def _columns(table: Any, texts: Sequence[str]) -> list[str]:
    """Names of columns that may have been typed with commas between them, each once."""
    names: list[str] = []
    for text in texts:
        names += [text] if table.has(text) else [name.strip() for name in text.split(",")]
    return list(dict.fromkeys(name for name in names if name))
