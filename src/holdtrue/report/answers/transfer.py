"""The answer of `holdtrue transfer`: sources that help."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from holdtrue.charts import number
from holdtrue.errors import counted
from holdtrue.evidence import SourceEvidence
from holdtrue.path import SelectionPath
from holdtrue.report.summary import (
    Summary,
    Table,
    listed,
    skill_words,
    step_columns,
    verb,
)
from holdtrue.sources.display import strongest_weights, weights_chart

_MANY = 10


def transfer_summary(path: SelectionPath, target: str) -> Summary:
    """Summary of GreedyTL's path."""
    evidence = path.evidence_as(SourceEvidence)
    n_sources = evidence.n_sources
    weights = strongest_weights(evidence)
    used = np.flatnonzero(weights)  # in order of entry
    used = used[np.argsort(path.ranking(len(weights))[used], kind="stable")]
    is_source = (used >= evidence.n_features).tolist()
    names = [evidence.names[j] for j in used]
    helping = [name for name, is_one in zip(names, is_source, strict=True) if is_one]
    columns_used = [name for name, is_one in zip(names, is_source, strict=True) if not is_one]
    drawn = weights_chart(path)
    return Summary(
        command="transfer",
        question=f"Which of {counted(n_sources, 'trained model')} help {target!r}?"
        if n_sources != 1
        else f"Does the trained model help {target!r}?",
        answer=_answer(path, evidence, helping, columns_used, target),
        path=path,
        table=Table.from_columns(
            "Columns and sources that carry weight, with the error and skill on left-out rows once "
            "each is in.",
            {
                "name": ("name", names),
                "kind": ("kind", ["source" if is_one else "column" for is_one in is_source]),
                **step_columns(path, used.tolist()),
                "weight": ("weight", weights[used].tolist()),
            },
        ),
        charts=(path.chart(), drawn) if drawn else (path.chart(),),
        wary=_notes(
            helping,
            [evidence.names[j] for j in used if j >= evidence.n_features and weights[j] < 0],
            len(used),
            evidence.errors,
        ),
    )


def _answer(
    path: SelectionPath,
    evidence: SourceEvidence,
    helping: Sequence[str],
    columns: Sequence[str],
    target: str,
) -> str:
    n_sources = evidence.n_sources
    if helping:
        n = len(helping)
        does = f"{verb(n, 'help')} {target!r}"
        if evidence.errors.get("with_sources", -math.inf) >= path.scores[0]:
            does = f"{verb(n, 'be')} used for {target!r}, but no better than without a model"
        answer = f"{counted(n, 'source')} of {n_sources} {does}: {listed(helping)}."
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
    helping: Sequence[str], against: Sequence[str], n_used: int, errors: Mapping[str, float]
) -> list[tuple[str, str]]:
    notes = []
    if errors.get("with_sources", 0.0) > errors.get("without_sources", math.inf):
        text = "With them the error on left-out rows is higher than without. They are used all the "
        text += "same: fit without sources to leave them out."
        notes.append(("Sources that may do harm", text))
    if against:
        text = f"{listed(against)}: a high score speaks against the target. That can be right (a "
        text += "rival class), or chance with few rows."
        notes.append(("Sources used in reverse", text))
    if helping and n_used >= _MANY:
        text = f"{n_used} columns and sources carry weight. --max-selected loo stops where the "
        text += "error on left-out rows is least, --max-selected 5 after five."
        notes.append(("Many chosen for few rows", text))
    return notes
