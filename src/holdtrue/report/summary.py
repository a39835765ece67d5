"""The numbers of a report: one answer with its path, charts, table and warnings, as plain data."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from holdtrue.charts import Chart, number
from holdtrue.errors import InputError, speaks
from holdtrue.path import SelectionPath, skill_of
from holdtrue.records import Document, Record, parse_json, read

_READS = (
    "Pass a file that `holdtrue rank`, select, compare, transfer or size wrote with --json, or the "
    "text of SelectionPath.to_json."
)
_NO_VOWEL = ("eu", "one", "uni", "use", "usu", "uti")
_CELL = (str, int, float, bool, type(None))


@dataclass(frozen=True, eq=False)
class Table(Record):
    """Rows under labelled columns."""

    caption: str
    columns: Mapping[str, str]  # from the keys of the rows to what stands above the column
    rows: Sequence[Mapping[str, Any]]  # text, numbers, truth values or None
    # Keys of the columns that matter most; a terminal has no room for the others, and a page folds
    # them
    brief: Sequence[str]
    n_left_out: int = 0  # further rows, which are not here

    def __post_init__(self) -> None:
        super().__post_init__()
        if not set(self.brief) <= set(self.columns):
            raise InputError(f"brief must name columns of the table. Got {list(self.brief)}.")
        for row in self.rows:
            if set(row) != set(self.columns):
                raise InputError(f"a row has {list(row)} where the table has {list(self.columns)}.")
            if not all(isinstance(value, _CELL) for value in row.values()):
                raise InputError(f"a row holds more than text and numbers: {dict(row)}.")

    @classmethod
    def from_columns(
        cls,
        caption: str,
        columns: Mapping[str, tuple[str, Iterable[Any]]],
        brief: Sequence[str] | None = None,
    ) -> Table:
        """The table of columns, each a key with its label and cells; all are brief by default."""
        labels = {key: label for key, (label, _) in columns.items()}
        cells = zip(*(cells for _, cells in columns.values()), strict=True)
        rows = [dict(zip(labels, row, strict=True)) for row in cells]
        return cls(caption, labels, rows, tuple(labels if brief is None else brief))

    def to_dict(self) -> dict[str, Any]:
        """The table, ready for JSON; numbers that JSON cannot say are marked as such."""
        rows = [{key: _to_cell(value) for key, value in row.items()} for row in self.rows]
        return self._fields() | {"rows": rows}

    @classmethod
    def from_dict(cls, record: Any) -> Table:
        """The table that `to_dict` wrote. Anything else is refused with an `InputError`."""
        parts = read(dict[str, object], record, "table")
        rows = read(Sequence[dict[str, object]], parts.get("rows"), "rows")
        cells = [{key: _from_cell(cell, key) for key, cell in row.items()} for row in rows]
        return super().from_dict({**parts, "rows": cells})


@dataclass(frozen=True, eq=False)
class Summary(Document):
    """What was asked, the answer, and all that a reader needs to trust it.

    Parameters
    ----------
    command : str
        The command that was asked, such as ``"rank"``.
    question : str
    answer : str
        Two sentences.
    path : SelectionPath
    table : Table
    charts : sequence of Chart
    shapes : sequence of Chart
        Small ones, one for each of the columns that matter.
    wary : sequence of (str, str)
        What to be wary of: a few words, and the sentences behind them.
    asked : mapping of str to str
        Data and settings.
    reproduce : mapping of str to str
        Command, versions, seed, fingerprint of the data.

    Examples
    --------
    >>> from holdtrue import SelectionPath
    >>> from holdtrue.report.summary import Summary
    >>> path = SelectionPath([0], ["dose"], [1.0, 0.4], 1, "the error is least at 1 feature")
    >>> summary = Summary.from_json(path.to_json())
    >>> summary.answer
    'The path takes 1 of 1 steps: the error is least at 1 feature (skill 0.6).'
    >>> Summary.from_json(summary.to_json()).to_json() == summary.to_json()
    True
    """

    command: str
    question: str
    answer: str
    path: SelectionPath
    table: Table
    charts: Sequence[Chart] = ()
    shapes: Sequence[Chart] = ()
    wary: Sequence[tuple[str, str]] = ()
    asked: Mapping[str, str] = field(default_factory=dict)
    reproduce: Mapping[str, str] = field(default_factory=dict)

    def with_notes(self, notes: Sequence[tuple[str, str]], **changed: Any) -> Summary:
        """The same with further things to be wary of, and other fields changed.

        A warning that only says again what a note says is left out.
        """
        wary = list(self.wary)
        for what, why in notes:
            sentence = why.partition(": ")[2].casefold() or why.casefold()
            if not any(sentence in known.casefold() for _, known in wary):
                wary.append((what, why))
        return replace(self, wary=wary, **changed)

    def to_dict(self) -> dict[str, Any]:
        """The fields, ready for JSON."""
        wary = [{"what": what, "why": why} for what, why in self.wary]
        return super().to_dict() | {"wary": wary}

    @speaks
    def to_json(self) -> str:
        """The summary as strict JSON, the path in it as `SelectionPath.to_json` has it."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False, indent=1) + "\n"

    @classmethod
    @speaks
    def from_json(cls, text: str) -> Summary:
        """The summary that `to_json` wrote, or that of a bare path. All else is a ValueError."""
        try:
            record = parse_json(text)
            if isinstance(record, dict) and record.get("format") == "holdtrue.SelectionPath":
                return _of_path(SelectionPath.from_dict(record))
            if isinstance(record, dict):
                notes = read(Sequence[dict[str, str]], record.get("wary"), "wary")
                record["wary"] = [(note.get("what"), note.get("why")) for note in notes]
            return cls.from_dict(record)
        except InputError as error:
            raise InputError(f"{error.sentence} {_READS}") from error


def _of_path(path: SelectionPath) -> Summary:
    """The summary of a path alone."""
    size = path.chosen_size
    sizes = range(path.n_steps + 1)
    columns: dict[str, tuple[str, Any]] = {
        "size": ("size", sizes),
        "name": ("enters", ["", *path.names]),
        "score": (path.unit, path.scores.tolist()),
        "skill": ("skill", path.skill.tolist()),
        "chosen": ("chosen", [step <= size for step in sizes]),
    }
    skill = f" (skill {number(path.skill[size])})" if math.isfinite(path.skill[size]) else ""
    return Summary(
        command="path",
        question="Which candidates enter, and where does the path stop?",
        answer=f"The path takes {path.size_words}: {path.reason}{skill}.",
        path=path,
        table=Table.from_columns("Every size of the path.", columns),
        charts=(path.chart(),),
    )


def _to_cell(value: Any) -> Any:
    """A cell as JSON has it; numbers that JSON cannot say are marked as such."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    return value


def _from_cell(cell: Any, name: str) -> Any:
    if isinstance(cell, dict):
        return read(float, cell.get("number"), name)
    if type(cell) is int:
        read(float, cell, name)  # refuses what is too large to be shown
    return cell


# --- words that answers share ---------------------------------------------------------------------


def capitalised(clause: str) -> str:
    """The clause as the beginning of a sentence."""
    return clause[:1].upper() + clause[1:]


def an(noun: str) -> str:
    """The noun with its article: "a site", "an id", "a user"."""
    sounds = noun.lower()
    is_vowel = sounds.startswith(("a", "e", "i", "o", "u"))
    return f"an {noun}" if is_vowel and not sounds.startswith(_NO_VOWEL) else f"a {noun}"


def verb(n: int, verb: str) -> str:
    """The verb for one thing or for several."""
    if verb == "be":
        return "is" if n == 1 else "are"
    return verb + ("s" if n == 1 else "")


def listed(names: Sequence[str], limit: int = 6) -> str:
    """Names in a sentence: the first few, and how many more."""
    shown = [repr(str(name)) for name in names[:limit]]
    if len(names) > limit:
        return f"{', '.join(shown)} and {len(names) - limit} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def itemised(items: Sequence[str], limit: int = 8) -> str:
    """Clauses joined by semicolons: the first few, and how many more."""
    more = f"; and {len(items) - limit} more" if len(items) > limit else ""
    return "; ".join(items[:limit]) + more


def table_skill(score: float, empty: float) -> float:
    """The skill of a score, to three decimals: more would be noise."""
    return round(float(skill_of(score, empty)), 3)


def skill_words(score: float, empty: float) -> str:
    """The skill of a score in brackets, to two decimals; nothing where it is not known."""
    skill = float(skill_of(score, empty))
    return f" (skill {number(round(skill, 2))})" if math.isfinite(skill) else ""


def step_columns(path: SelectionPath, candidates: Sequence[int]) -> dict[str, tuple[str, Any]]:
    """Columns of a table: when candidates first enter, and the error and skill reached then."""
    first = dict(zip(path.order.tolist()[::-1], range(path.n_steps, 0, -1), strict=True))
    steps = [first.get(j) for j in candidates]
    errors = [None if step is None else float(path.scores[step]) for step in steps]
    skills = [None if error is None else table_skill(error, path.scores[0]) for error in errors]
    return {"enters": ("enters at", steps), "error": ("error", errors), "skill": ("skill", skills)}
