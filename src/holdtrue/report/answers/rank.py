"""The answer of `holdtrue rank`: columns that predict, and columns that remember."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdtrue.charts import Chart, Dots, number
from holdtrue.path import SelectionPath
from holdtrue.report.answers.words import DRAWN, count, listed, verb
from holdtrue.report.summary import Summary, Table


def rank_summary(
    ranked: Mapping[str, Sequence[Any]],
    target: str,
    *,
    names: Sequence[str],
    unit: str,
    honest: bool = True,
) -> Summary:
    """Summary of the table that `rank_columns` gives.

    Parameters
    ----------
    ranked : mapping of str to sequence
        The table's columns.
    target : str
    names : sequence of str
        The columns in the order of the data.
    unit : str
        What the scores measure.
    honest : bool
        Whether that is the error on new rows; not so for the usual criteria of trees.
    """
    where = "new rows" if honest else "the rows of the fit"
    rows = [dict(zip(ranked, values, strict=True)) for values in zip(*ranked.values(), strict=True)]
    # Those that predict come first, each part by its score.
    rows.sort(key=lambda row: not row["predicts"])
    kept = [row for row in rows if row["predicts"]]
    ids = [row for row in rows if row["id_like"]]
    n_columns = len(rows)
    for rule in (" of rule (4)", " of rule (5)"):
        unit = unit.replace(rule, "")
    noun = unit.split(" on ")[0].split(",")[0]
    path = SelectionPath(
        order=[names.index(row["column"]) for row in rows],
        names=[row["column"] for row in rows],
        scores=[max(row["no_column"] for row in rows), *(row["score"] for row in rows)],
        chosen_size=len(kept),
        reason=f"{len(kept)} of {n_columns} columns beat no column by more than their interval",
        unit=unit,
    )
    if kept:
        best = kept[0]
        answer = (
            f"{count(len(kept), 'column')} of {n_columns} {verb(len(kept), 'predict')} "
            f"{target!r} on {where}; the best is {best['column']!r}, with "
            f"{'an estimated' if honest else 'an'} {noun} of "
            f"{number(best['score'])} against {number(best['no_column'])} without any column."
        )
    else:
        answer = f"No column of {n_columns} predicts {target!r} on {where} better than none at all."
    only = [row["column"] for row in ids if not row["predicts"]]
    if only:
        answer += (
            f" {count(len(only), 'column')} {verb(len(only), 'look')} like "
            f"{'an id' if len(only) == 1 else 'ids'} and would only remember: {listed(only)}."
        )
    elif not ids:
        answer += " No column looks like an id."
    columns = {
        "rank": "rank",
        "column": "column",
        "says": "in short",
        "score": "error" if honest else "score",
        "low": "from",
        "high": "to",
        "no_column": "without it",
        "n_values": "values",
        "known": "known, %",
        "kind": "kind",
        "read_as": "read as",
        "predicts": "predicts",
        "verdict": "verdict",
    }
    for rank, row in enumerate(rows, 1):
        row["rank"] = rank
        row["says"] = _in_short(row, honest)
        row["known"] = round(100 * row["coverage"], 4)
    return Summary(
        command="rank",
        question=f"Which columns predict {target!r}, and which only remember?",
        answer=answer,
        path=path,
        table=Table(
            f"All columns by their {unit}. Known: the share of new rows that "
            "bring a value seen before.",
            columns,
            [{key: row[key] for key in columns} for row in rows],
            ("rank", "column", "score", "low", "high", "n_values", "known", "says"),
        ),
        charts=(_ranking_chart(rows, unit),),
        wary=_rank_notes(rows, kept, ids, target, unit, honest),
    )


def _in_short(row: Mapping[str, Any], honest: bool) -> str:
    if row["n_values"] <= 1:
        return "constant"
    said = "predicts" if honest else "explains these rows"
    if not row["predicts"]:
        said = "no better than no column"
    return f"looks like an id; {said}" if row["id_like"] else said


def _ranking_chart(rows: Sequence[Mapping[str, Any]], unit: str) -> Chart:
    # The id that looks best on these rows is worth a row of the picture.
    shown = list(rows[:DRAWN]) + [row for row in rows[DRAWN:] if row["id_like"]][:5]
    marks = ["kept" if r["predicts"] else "id" if r["id_like"] else "" for r in shown]
    line = max(row["no_column"] for row in rows)
    return Dots(
        f"Each column's {unit}",
        f"Kept: {listed([row['column'] for row in shown if row['predicts']]) or 'none'}. A column "
        "is kept if its gain on the dashed line, the error without any column, is beyond chance. "
        "Bars are the errors' intervals; the gain has its own, so that the bar of a kept column "
        "may reach the line."
        + (f" {len(rows) - len(shown)} more columns are in the table." if shown != rows else ""),
        unit,
        [row["column"] for row in shown],
        [row["score"] for row in shown],
        [row["low"] for row in shown],
        [row["high"] for row in shown],
        marks,
        line,
        f"no column: {number(line)}",
    )


def _rank_notes(
    rows: Sequence[Mapping[str, Any]],
    kept: Sequence[Mapping[str, Any]],
    ids: Sequence[Mapping[str, Any]],
    target: str,
    unit: str,
    honest: bool,
) -> list[tuple[str, str]]:
    notes = []
    if not honest:
        notes.append(
            (
                "Not about new rows",
                f"The {unit} favours columns with many values. Leave out --criterion for the error "
                "on new rows.",
            )
        )
    if ids:
        said = "; ".join(
            f"{row['column']!r} ({row['n_values']:,} values, "
            f"{1 - row['coverage']:.0%} of new rows bring another"
            + ("; in bins, as a number, it predicts)" if row["predicts"] and honest else ")")
            for row in ids[:8]
        )
        more = f"; and {len(ids) - 8} more" if len(ids) > 8 else ""
        notes.append(
            (
                "Columns that look like ids",
                f"{said}{more}. Information gain and the importances of forests favour such "
                "columns, because on the rows of the fit they explain everything.",
            )
        )
    copies = [row["column"] for row in kept if row["score"] <= 0.02 * row["no_column"]]
    if copies and honest:
        notes.append(
            (
                "Almost without error",
                f"{listed(copies)} {verb(len(copies), 'predict')} {target!r} almost without "
                "error. Make sure that it is known before the target is, and not a copy of it.",
            )
        )
    constant = [row["column"] for row in rows if row["n_values"] <= 1]
    if constant:
        notes.append(("Constant columns", f"{listed(constant)}: one value only, nothing to learn."))
    if len(kept) > 1:
        notes.append(
            (
                "One column at a time",
                "Each column is judged alone: two that tell the same may both be here, and columns "
                "that work only together may be missing. With several rows per person or place, "
                "new rows of the old ones are easier than new ones.",
            )
        )
    return notes
