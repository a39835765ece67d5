"""The answer of `holdtrue transfer`: sources that help."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from holdtrue.charts import number
from holdtrue.evidence import SourceEvidence
from holdtrue.path import SelectionPath
from holdtrue.report.answers.words import (
    at_step,
    counted,
    entry_steps,
    listed,
    skill_words,
    verb,
)
from holdtrue.report.summary import Summary, Table
from holdtrue.sources.display import strongest_weights, weights_chart

_MANY = 10


def transfer_summary(
    path: SelectionPath, target: str, *, columns: Sequence[str] | None = None
) -> Summary:
    """Summary of GreedyTL's path; ``columns`` names those of X, if the fit was given an array."""
    if columns is not None:
        path = _with_column_names(path, columns)
    evidence = path.evidence_as(SourceEvidence)
    n_sources = evidence.n_sources
    rows = _rows(path, evidence)
    helping = [row["name"] for row in rows if row["kind"] == "source"]
    labels = {
        "name": "name",
        "kind": "kind",
        "enters": "enters at",
        "error": "error",
        "skill": "skill",
        "weight": "weight",
    }
    weights = weights_chart(path)
    return Summary(
        command="transfer",
        question=f"Which of {counted(n_sources, 'trained model')} help {target!r}?"
        if n_sources != 1
        else f"Does the trained model help {target!r}?",
        answer=_answer(path, evidence, rows, n_sources, target),
        path=path,
        table=Table(
            "Columns and sources that carry weight, with the error and skill on left-out rows once "
            "each is in.",
            labels,
            rows,
            tuple(labels),
        ),
        charts=(path.chart(), weights) if weights else (path.chart(),),
        wary=_notes(rows, helping, evidence.errors),
    )


def _with_column_names(path: SelectionPath, columns: Sequence[str]) -> SelectionPath:
    """The same path with names for the columns of X."""
    evidence = path.evidence_as(SourceEvidence)
    names = (*map(str, columns), *evidence.names[evidence.n_features :])
    return replace(
        path,
        names=tuple(names[j] for j in path.order),
        evidence=replace(evidence, names=names),
    )


def _rows(path: SelectionPath, evidence: SourceEvidence) -> list[dict[str, Any]]:
    """What carries weight as rows of the table, in order of entry."""
    weights, steps = strongest_weights(evidence), entry_steps(path)
    used = np.flatnonzero(weights).tolist()
    return [
        {
            "name": evidence.names[j],
            "kind": "source" if j >= evidence.n_features else "column",
            **at_step(path, steps.get(j)),
            "weight": float(weights[j]),
        }
        for j in sorted(used, key=lambda j: (steps.get(j, len(path.order) + 1), j))
    ]


def _answer(
    path: SelectionPath,
    evidence: SourceEvidence,
    rows: Sequence[Mapping[str, Any]],
    n_sources: int,
    target: str,
) -> str:
    helping = [row["name"] for row in rows if row["kind"] == "source"]
    columns = [row["name"] for row in rows if row["kind"] == "column"]
    if helping:
        answer = (
            f"{counted(len(helping), 'source')} of {n_sources} {verb(len(helping), 'help')} "
            f"{target!r}: {listed(helping)}."
        )
    elif n_sources == 1:
        answer = f"The source does not help {target!r}: left out."
    else:
        answer = f"None of the {n_sources:,} sources helps {target!r}: left out."
    if helping and columns:
        answer += f" {counted(len(columns), 'column')} {verb(len(columns), 'be')} used beside "
        answer += f"{'it' if len(helping) == 1 else 'them'}: {listed(columns)}."
    words = {"with_sources": "with sources", "without_sources": "without"}
    errors = [
        f"{number(error)} {words[name]}{skill_words(error, path.scores[0])}"
        for name, error in evidence.errors.items()
        if n_sources and name in words and math.isfinite(error)
    ]
    if errors:
        answer += f" The squared error on left-out rows is {' and '.join(errors)}."
        error, in_table = evidence.errors.get("with_sources", 0.0), path.scores[path.chosen_size]
        if error > in_table and number(error) != number(in_table):
            answer += " It counts what choosing costs; errors in the table do not."
    return answer


def _notes(
    rows: Sequence[Mapping[str, Any]], helping: Sequence[str], errors: Mapping[str, float]
) -> list[tuple[str, str]]:
    notes = []
    if errors.get("with_sources", 0.0) > errors.get("without_sources", math.inf):
        text = "With them the error on left-out rows is higher than without. They are used all the "
        text += "same: fit without sources to leave them out."
        notes.append(("Sources that may do harm", text))
    against = [row["name"] for row in rows if row["kind"] == "source" and row["weight"] < 0]
    if against:
        text = f"{listed(against)}: a high score speaks against the target. That can be right (a "
        text += "rival class), or chance with few rows."
        notes.append(("Sources used in reverse", text))
    if helping and len(rows) >= _MANY:
        text = f"{len(rows)} columns and sources carry weight. --max-selected loo stops where the "
        text += "error on left-out rows is least, --max-selected 5 after five."
        notes.append(("Many chosen for few rows", text))
    return notes
