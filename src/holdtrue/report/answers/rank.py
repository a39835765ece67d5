"""The answer of `holdtrue rank`: columns that predict, and columns that only remember."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from holdtrue.categories.display import ranking_chart, shape_chart
from holdtrue.categories.ranking import like_groups, short_verdict
from holdtrue.charts import number
from holdtrue.evidence import ColumnEvidence
from holdtrue.path import SelectionPath, skill_of
from holdtrue.report.answers.words import (
    an,
    capitalised,
    counted,
    itemised,
    listed,
    skill_words,
    table_skill,
    verb,
)
from holdtrue.report.summary import Summary, Table

_MOST_IDS = 5  # the ids that look best on these rows are worth a row of the picture
_FEWER = 0.98  # of the rows that are wrong without any column: what counts as fewer
_WEAK = 0.01  # skill below which a column hardly predicts
_COPY = 0.02  # a column that leaves less of the error than this may be a copy of the target


def rank_summary(path: SelectionPath, target: str) -> Summary:
    """Summary of a ranking of columns, the path of a `Ranking` or of `GingerSelector`."""
    evidence = path.evidence_as(ColumnEvidence)
    rows = _rows(path, evidence)
    columns = {
        "rank": "rank",
        "column": "column",
        "says": "in short",
        "skill": "skill",
        "wrong": "wrong, %",
        "score": "score" if evidence.in_sample else "loss",
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
    has_shares = any(row["wrong"] is not None for row in rows)
    brief = ["rank", "column", "says", "skill", "wrong", "n_values", "score", "low", "high"]
    if evidence.in_sample:
        columns.pop("skill")
        brief.remove("skill")
    if not has_shares:
        columns.pop("wrong")
        brief[brief.index("wrong")] = "known"
    return Summary(
        command="rank",
        question=f"Which columns predict {target!r}, and which only remember?",
        answer=_answer(rows, target, path.unit, evidence),
        path=path,
        table=Table(
            f"All columns by their {path.unit}"
            + (f", of {evidence.predictor}" if evidence.predictor else "")
            + ".",
            columns,
            [{key: row[key] for key in columns} for row in rows],
            tuple(brief),
        ),
        charts=(ranking_chart(path, max_ids=_MOST_IDS),),
        shapes=[shape_chart(shape, target) for shape in evidence.shapes],
        wary=_notes(rows, target, path.unit, evidence),
    )


def _rows(path: SelectionPath, evidence: ColumnEvidence) -> list[dict[str, Any]]:
    """The columns as rows of the table, best first."""
    rows = []
    for rank, j in enumerate(path.order.tolist(), 1):
        score, no_column = float(evidence.scores[j]), float(evidence.no_column[j])
        rows.append(
            {
                "rank": rank,
                "column": evidence.names[j],
                "score": score,
                "wrong": _percent(evidence.share_wrong, j),
                "wrong_without": _percent(evidence.no_column_wrong, j),
                "skill": None if evidence.in_sample else table_skill(score, no_column),
                "low": float(evidence.low[j]),
                "high": float(evidence.high[j]),
                "no_column": no_column,
                "n_values": int(evidence.n_values[j]),
                "coverage": float(evidence.coverage[j]),
                "known": round(100 * float(evidence.coverage[j]), 4),
                "kind": evidence.kinds[j],
                "read_as": evidence.read_as[j],
                "predicts": bool(evidence.predicts[j]),
                "id_like": bool(evidence.id_like[j]),
                "verdict": evidence.verdicts[j] if evidence.verdicts else "",
            }
        )
        rows[-1]["says"] = short_verdict(evidence, j)
    return rows


def _percent(shares: np.ndarray, j: int) -> float | None:
    """A share in percent; None where the criterion has none."""
    if not len(shares) or not np.isfinite(shares[j]):
        return None
    return round(100 * float(shares[j]), 2)


def _best_words(best: Mapping[str, Any], unit: str, where: str, *, in_sample: bool) -> str:
    """The end of the first sentence: the best column, and what it does about the error."""
    measure = unit.split(" on ")[0].split(",")[0]
    share = float(skill_of(best["score"], best["no_column"]))
    if not in_sample and share < _WEAK:
        return (
            f", but hardly: the best, {best['column']!r}, takes away {share:.1%} of the {measure} "
            "without any column."
        )
    skill = "" if in_sample else skill_words(best["score"], best["no_column"])
    losses = f"{number(best['score'])} against {number(best['no_column'])} without any column"
    words = f"; the best is {best['column']!r}, "
    if best["wrong"] is None:
        return f"{words}with {an(measure)} of {losses}{skill}."
    if best["wrong"] < _FEWER * best["wrong_without"]:
        return (
            f"{words}alone wrong for {best['wrong']:.3g}% of {where} against "
            f"{best['wrong_without']:.3g}% without any column{skill}."
        )
    return (  # shares move, and the likeliest class stays
        f"{words}with {an(measure)} of {losses}{skill}; alone it hardly changes which class is "
        f"likeliest, and {best['wrong']:.3g}% stay wrong."
    )


def _answer(
    rows: Sequence[Mapping[str, Any]], target: str, unit: str, evidence: ColumnEvidence
) -> str:
    in_sample = evidence.in_sample
    where = "the rows of the fit" if in_sample else evidence.new_data
    predicting = [row for row in rows if row["predicts"]]
    if predicting:
        n = len(predicting)
        answer = f"{counted(n, 'column')} of {len(rows)} {verb(n, 'predict')} {target!r} on {where}"
        answer += _best_words(predicting[0], unit, where, in_sample=in_sample)
        same = [(name, twin[0]) for name, twin in _twins(evidence) if twin[1]]
        if same:
            pairs = [f"{name!r} tells the same as {other!r}" for name, other in same]
            answer += f" {itemised(pairs, 3)}."
    else:
        answer = f"No column of {len(rows)} predicts {target!r} on {where} better than none at all."
    ids = [row["column"] for row in rows if row["id_like"]]
    only = [row["column"] for row in rows if row["id_like"] and not row["predicts"]]
    if only:
        answer += (
            f" {counted(len(only), 'column')} {verb(len(only), 'look')} like "
            f"{'an id' if len(only) == 1 else 'ids'} and would only remember: {listed(only)}."
        )
    elif not ids:
        answer += " No column looks like an id."
    return answer


def _twins(evidence: ColumnEvidence) -> list[tuple[str, tuple[str, bool]]]:
    """Columns to which a better one leaves little to add, with that."""
    each = ((name, evidence.twin(j)) for j, name in enumerate(evidence.names))
    return [(name, twin) for name, twin in each if twin is not None]


def _twin_notes(evidence: ColumnEvidence) -> list[tuple[str, str]]:
    """Columns that repeat others, and columns that add little to them."""
    others: dict[tuple[bool, str], list[str]] = {}
    for name, (other, is_same) in _twins(evidence):
        others.setdefault((is_same, other), []).append(name)
    beside = {
        is_same: [
            f"{listed(names)} beside {other!r}"
            for (same, other), names in others.items()
            if same == is_same
        ]
        for is_same in (True, False)
    }
    notes = []
    if beside[True]:
        text = f"One of each is enough: {itemised(beside[True])}. Neither adds to the other."
        notes.append(("Columns that tell the same", text))
    if beside[False]:
        text = f"They say little that a better column does not: {itemised(beside[False])}."
        notes.append(("Columns that add little", text))
    return notes


def _how_it_predicts(row: Mapping[str, Any]) -> str:
    if row["read_as"].endswith("bins"):
        return "in bins, as a number, it predicts"
    return "it predicts all the same"


def _notes(
    rows: Sequence[Mapping[str, Any]], target: str, unit: str, evidence: ColumnEvidence
) -> list[tuple[str, str]]:
    notes = []
    in_sample = evidence.in_sample
    alike = [name for name, one in zip(evidence.names, evidence.group_like, strict=False) if one]
    if alike:
        notes.append(("Rows that belong together", f"{capitalised(like_groups(alike))}."))
    if in_sample:
        text = f"The {unit} favours columns with many values. Leave out --criterion for the error "
        notes.append(("Not about new rows", text + "on new rows."))
    ids = [
        f"{row['column']!r} ({row['n_values']:,} values, "
        f"{1 - row['coverage']:.0%} of new rows bring another"
        + (f"; {_how_it_predicts(row)})" if row["predicts"] and not in_sample else ")")
        for row in rows
        if row["id_like"]
    ]
    if ids:
        text = "Information gain and the importances of forests favour such columns, because on "
        text += "the rows of the fit they explain everything."
        notes.append(("Columns that look like ids", f"{itemised(ids)}. {text}"))
    predicting = [row for row in rows if row["predicts"]]
    copies = [r["column"] for r in predicting if r["score"] <= _COPY * r["no_column"]]
    if copies and not in_sample:
        text = f"{listed(copies)} {verb(len(copies), 'predict')} {target!r} almost without error. "
        text += "Make sure that it is known before the target is, and not a copy of it."
        notes.append(("Almost without error", text))
    constant = [row["column"] for row in rows if row["n_values"] <= 1]
    if constant:
        notes.append(("Constant columns", f"{listed(constant)}: one value only, nothing to learn."))
    notes += _twin_notes(evidence)
    if len(predicting) > 1:
        text = "Each column is judged alone: columns that work only together may be missing."
        if evidence.new_data == "new rows":
            text += " With several rows per person or place, errors will be higher for people or "
            text += "places not in the data."
        notes.append(("One column at a time", text))
    return notes
