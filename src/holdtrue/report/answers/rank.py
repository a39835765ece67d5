"""The answer of `holdtrue rank`: columns that predict, and columns that only remember."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdtrue.categories.display import ranking_chart, shape_chart
from holdtrue.categories.ranking import like_groups, short_verdict
from holdtrue.charts import number
from holdtrue.errors import counted
from holdtrue.evidence import ColumnEvidence
from holdtrue.path import SelectionPath, skill_of
from holdtrue.report.summary import (
    Summary,
    Table,
    an,
    capitalised,
    itemised,
    listed,
    skill_words,
    table_skill,
    verb,
)

_MOST_IDS = 5  # the ids that look best on these rows are worth a row of the picture
_FEWER = 0.98  # of the rows that are wrong without any column: what counts as fewer
_WEAK = 0.01  # skill below which a column hardly predicts
_COPY = 0.02  # a column that leaves less of the error than this may be a copy of the target


def rank_summary(path: SelectionPath, target: str) -> Summary:
    """Summary of a ranking of columns, the path of a `Ranking` or of `GingerSelector`."""
    evidence = path.evidence_as(ColumnEvidence)
    order = path.order.tolist()
    scores, no_column = evidence.scores.tolist(), evidence.no_column.tolist()
    wrong = [_percent(evidence.share_wrong, j) for j in order]
    columns: dict[str, tuple[str, Any]] = {
        "rank": ("rank", range(1, len(order) + 1)),
        "column": ("column", [evidence.names[j] for j in order]),
        "says": ("in short", [short_verdict(evidence, j) for j in order]),
        "skill": ("skill", [table_skill(scores[j], no_column[j]) for j in order]),
        "wrong": ("wrong, %", wrong),
        "score": ("score" if evidence.in_sample else "loss", [scores[j] for j in order]),
        "low": ("from", evidence.low[order].tolist()),
        "high": ("to", evidence.high[order].tolist()),
        "no_column": ("without it", [no_column[j] for j in order]),
        "n_values": ("values", evidence.n_values[order].astype(int).tolist()),
        "known": ("known, %", [round(100 * float(evidence.coverage[j]), 4) for j in order]),
        "kind": ("kind", [evidence.kinds[j] for j in order]),
        "read_as": ("read as", [evidence.read_as[j] for j in order]),
        "predicts": ("predicts", evidence.predicts[order].astype(bool).tolist()),
        "verdict": ("verdict", [evidence.verdicts[j] if evidence.verdicts else "" for j in order]),
    }
    brief = ["rank", "column", "says", "skill", "wrong", "n_values", "score", "low", "high"]
    if evidence.in_sample:
        columns.pop("skill")
        brief.remove("skill")
    if all(share is None for share in wrong):
        columns.pop("wrong")
        brief[brief.index("wrong")] = "known"
    return Summary(
        command="rank",
        question=f"Which columns predict {target!r}, and which only remember?",
        answer=_answer(path, evidence, target),
        path=path,
        table=Table.from_columns(
            f"All columns by their {path.unit}"
            + (f", of {evidence.predictor}" if evidence.predictor else "")
            + ".",
            columns,
            brief,
        ),
        charts=(ranking_chart(path, max_ids=_MOST_IDS),),
        shapes=[shape_chart(shape, target) for shape in evidence.shapes],
        wary=_notes(path, evidence, target),
    )


def _percent(shares: np.ndarray, j: int) -> float | None:
    """A share in percent; None where the criterion has none."""
    if not len(shares) or not np.isfinite(shares[j]):
        return None
    return round(100 * float(shares[j]), 2)


def _best_words(evidence: ColumnEvidence, j: int, unit: str, where: str) -> str:
    """The end of the first sentence: the best column, and what it does about the error."""
    measure = unit.split(" on ")[0].split(",")[0]
    name, score, empty = evidence.names[j], float(evidence.scores[j]), float(evidence.no_column[j])
    share = float(skill_of(score, empty))
    if not evidence.in_sample and share < _WEAK:
        return (
            f", but hardly: the best, {name!r}, takes away {share:.1%} of the {measure} "
            "without any column."
        )
    skill = "" if evidence.in_sample else skill_words(score, empty)
    losses = f"{number(score)} against {number(empty)} without any column"
    words = f"; the best is {name!r}, "
    wrong, without = (_percent(x, j) for x in (evidence.share_wrong, evidence.no_column_wrong))
    if wrong is None or without is None:
        return f"{words}with {an(measure)} of {losses}{skill}."
    rows = where.replace("new groups", "the rows of new groups")
    if wrong < _FEWER * without:
        return (
            f"{words}alone wrong for {wrong:.3g}% of {rows} against "
            f"{without:.3g}% without any column{skill}."
        )
    words += f"with {an(measure)} of {losses}{skill}; "
    if _FEWER * wrong > without:  # classes that nearly tie
        return (
            f"{words}the class that it makes likeliest is wrong for {wrong:.3g}% of {rows}, the "
            f"most frequent one for {without:.3g}%."
        )
    return (  # shares move, and the likeliest class stays
        f"{words}alone it hardly changes which class is likeliest, and {wrong:.3g}% stay wrong."
    )


def _how_many(evidence: ColumnEvidence, predicting: list[int]) -> str:
    """How many columns predict, and how many may: their interval includes no gain."""
    n = len(predicting)
    n_sure = n if evidence.in_sample else int(np.sum(evidence.gain_low[predicting] > 0))
    words = f"{counted(n_sure or n, 'column')} of {len(evidence.names)} "
    if not n_sure:
        return f"{words}may predict"
    words += verb(n_sure, "predict")
    return words if n_sure == n else f"{words}, and {n - n_sure} may predict,"


def _answer(path: SelectionPath, evidence: ColumnEvidence, target: str) -> str:
    where = "the rows of the fit" if evidence.in_sample else evidence.new_data
    predicting = [j for j in path.order if evidence.predicts[j]]
    if predicting:
        answer = f"{_how_many(evidence, predicting)} {target!r} on {where}"
        answer += _best_words(evidence, predicting[0], path.unit, where)
        same = [(name, twin[0]) for name, twin in _twins(evidence) if twin[1]]
        if same:
            pairs = [f"{name!r} tells the same as {other!r}" for name, other in same]
            answer += f" {itemised(pairs, 3)}."
    else:
        n_columns = len(path.order)
        answer = f"No column of {n_columns} predicts {target!r} on {where} better than none at all."
    ids = [j for j in path.order if evidence.id_like[j]]
    only = [evidence.names[j] for j in ids if not evidence.predicts[j]]
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


def _id_words(evidence: ColumnEvidence, j: int) -> str:
    """A column that looks like an id: how many values are new, and whether it predicts."""
    words = f"{evidence.names[j]!r} ({int(evidence.n_values[j]):,} values, "
    words += f"{1 - float(evidence.coverage[j]):.0%} of new rows bring another"
    if evidence.predicts[j] and not evidence.in_sample:
        does = "predicts" if evidence.gain_low[j] > 0 else "may predict"
        in_bins = evidence.read_as[j].endswith("bins")
        words += f"; in bins, as a number, it {does}" if in_bins else f"; it {does} all the same"
    return f"{words})"


def _notes(path: SelectionPath, evidence: ColumnEvidence, target: str) -> list[tuple[str, str]]:
    notes = []
    in_sample, names = evidence.in_sample, evidence.names
    alike = [name for name, one in zip(names, evidence.group_like, strict=False) if one]
    if alike:
        notes.append(("Rows that belong together", f"{capitalised(like_groups(alike))}."))
    if in_sample:
        text = f"The {path.unit} favours columns with many values. Leave out --criterion for the "
        notes.append(("Not about new rows", text + "error on new rows."))
    ids = [_id_words(evidence, j) for j in path.order if evidence.id_like[j]]
    if ids:
        text = "Information gain and the importances of forests favour such columns, because on "
        text += "the rows of the fit they explain everything."
        notes.append(("Columns that look like ids", f"{itemised(ids)}. {text}"))
    predicting = [j for j in path.order if evidence.predicts[j]]
    copies = [names[j] for j in predicting if evidence.scores[j] <= _COPY * evidence.no_column[j]]
    if copies and not in_sample:
        text = f"{listed(copies)} {verb(len(copies), 'predict')} {target!r} almost without error. "
        text += "Make sure that it is known before the target is, and not a copy of it."
        notes.append(("Almost without error", text))
    constant = [names[j] for j in path.order if evidence.n_values[j] <= 1]
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
