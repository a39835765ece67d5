"""The numbers of a report: one answer with its path, charts, table and warnings, as plain data."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from holdtrue.charts import Chart, chart_from_dict
from holdtrue.path import SelectionPath

__all__ = ["Summary", "Table"]

_FORMAT = "holdtrue.Summary"
_READS = (
    "Pass a file that `holdtrue rank`, select, transfer or size wrote with --json, or the text of "
    "SelectionPath.to_json."
)
_CELL = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class Table:
    """Rows under labelled columns.

    Parameters
    ----------
    caption : str
    columns : mapping of str to str
        From the keys of the rows to what stands above the column.
    rows : sequence of mappings
        Text, numbers, truth values or None.
    brief : sequence of str
        Keys of the columns that a terminal has room for.
    """

    caption: str
    columns: Mapping[str, str]
    rows: Sequence[Mapping[str, Any]]
    brief: Sequence[str]

    def __post_init__(self) -> None:
        if not set(self.brief) <= set(self.columns):
            raise ValueError(f"brief must name columns of the table. Got {list(self.brief)}.")
        for row in self.rows:
            if set(row) != set(self.columns):
                raise ValueError(f"a row has {list(row)} where the table has {list(self.columns)}.")
            if not all(isinstance(value, _CELL) for value in row.values()):
                raise TypeError(f"a row holds more than text and numbers: {dict(row)}.")


@dataclass(frozen=True)
class Summary:
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
    '1 of 1 steps are taken: the error is least at 1 feature.'
    >>> Summary.from_json(summary.to_json()).to_json() == summary.to_json()
    True
    """

    command: str
    question: str
    answer: str
    path: SelectionPath
    table: Table
    charts: Sequence[Chart] = ()
    wary: Sequence[tuple[str, str]] = ()
    asked: Mapping[str, str] = field(default_factory=dict)
    reproduce: Mapping[str, str] = field(default_factory=dict)

    def with_notes(self, notes: Sequence[tuple[str, str]], **changed: Any) -> Summary:
        """The same with further things to be wary of, and other fields changed."""
        return replace(self, wary=(*self.wary, *notes), **changed)

    def to_json(self) -> str:
        """The summary as strict JSON, the path in it as `SelectionPath.to_json` has it."""
        table = self.table
        record = {
            "format": _FORMAT,
            "version": 1,
            "command": self.command,
            "question": self.question,
            "answer": self.answer,
            "wary": [{"what": what, "why": why} for what, why in self.wary],
            "asked": dict(self.asked),
            "table": {
                "caption": table.caption,
                "columns": dict(table.columns),
                "rows": [{k: _to_cell(v) for k, v in row.items()} for row in table.rows],
                "brief": list(table.brief),
            },
            "path": json.loads(self.path.to_json()),
            "charts": [chart.to_dict() for chart in self.charts],
            "reproduce": dict(self.reproduce),
        }
        return json.dumps(record, allow_nan=False, ensure_ascii=False, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str, *, owner: str = "Summary.from_json") -> Summary:
        """The summary that `to_json` wrote, or that of a bare path. All else is a ValueError."""
        try:
            record = json.loads(text, parse_constant=lambda name: 1 / 0)
        except (ValueError, ZeroDivisionError, RecursionError) as error:
            raise ValueError(f"{owner}: this is not JSON ({error}). {_READS}") from error
        form = record.get("format") if isinstance(record, dict) else None
        if form == "holdtrue.SelectionPath":
            try:
                return _of_path(SelectionPath.from_json(text))
            except ValueError as error:
                told = str(error).removeprefix("SelectionPath.from_json: ")
                raise ValueError(f"{owner}: {told}") from error
        if form != _FORMAT:
            raise ValueError(f"{owner}: expected format={_FORMAT!r}, got {form!r}. {_READS}")
        if record.get("version") != 1:
            raise ValueError(
                f"{owner}: this holdtrue reads version 1. Got version {record.get('version')!r}. "
                "Update holdtrue to read it."
            )
        try:
            table = dict(record["table"])
            table["rows"] = [
                {k: _from_cell(v) for k, v in dict(row).items()} for row in table["rows"]
            ]
            return cls(
                command=str(record["command"]),
                question=str(record["question"]),
                answer=str(record["answer"]),
                path=SelectionPath.from_json(json.dumps(record["path"])),
                table=Table(**table),
                charts=tuple(chart_from_dict(dict(chart)) for chart in record["charts"]),
                wary=tuple((str(note["what"]), str(note["why"])) for note in record["wary"]),
                asked={str(k): str(v) for k, v in dict(record["asked"]).items()},
                reproduce={str(k): str(v) for k, v in dict(record["reproduce"]).items()},
            )
        except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
            raise ValueError(
                f"{owner}: the file is damaged ({type(error).__name__}: {error}). {_READS}"
            ) from error


def _of_path(path: SelectionPath) -> Summary:
    """The summary of a path alone."""
    rows = [
        {"size": size, "name": name, "score": score, "chosen": size <= path.chosen_size}
        for size, name, score in zip(
            range(path.n_steps + 1), ("", *path.names), path.scores.tolist(), strict=True
        )
    ]
    columns = {"size": "size", "name": "enters", "score": path.unit, "chosen": "chosen"}
    return Summary(
        command="path",
        question="Which candidates enter, and where does the path stop?",
        answer=f"{path.chosen_size} of {path.n_steps} steps are taken: {path.reason}.",
        path=path,
        table=Table("Every size of the path", columns, rows, tuple(columns)),
        charts=(path.chart(),),
    )


def _to_cell(value: Any) -> Any:
    """A cell as JSON has it; numbers that JSON cannot say are marked as such."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"number": str(value)}
    return value


def _from_cell(value: Any) -> Any:
    return float(value["number"]) if isinstance(value, dict) else value
