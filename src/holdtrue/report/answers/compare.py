"""The answer of `holdtrue compare`: the model to take, and what the others would cost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from holdtrue.charts import Chart, Heat, number
from holdtrue.compare.comparison import contest_chart
from holdtrue.errors import counted
from holdtrue.evidence import ContestEvidence, natural_order
from holdtrue.path import SelectionPath
from holdtrue.report.summary import Summary, Table, an

_FEW_DOMAINS = 6
_MOST_DRAWN = 60  # domains
_WORST = -1.0  # skill below which a cell is simply dark


def compare_summary(
    path: SelectionPath, target: str, domain: str | None, *, in_time: bool = False
) -> Summary:
    """Summary of a contest between models, a path of `Comparison.to_path`.

    ``domain`` is what a domain is called, None where rows were left out; ``in_time``: each was
    predicted from those before it.
    """
    evidence = path.evidence_as(ContestEvidence)
    skill = evidence.skill.tolist()
    where = "on new rows" if domain is None else f"at {an(domain)} nobody has seen"
    columns: dict[str, tuple[str, Any]] = {
        "model": ("model", evidence.names),
        "chosen": ("recommended", [name == evidence.recommended for name in evidence.names]),
        "error": ("error", evidence.errors.tolist()),
        "low": ("low", evidence.low.tolist()),
        "high": ("high", evidence.high.tolist()),
        "difference": ("more than best", evidence.differences.tolist()),
        "standard_error": ("±", evidence.standard_errors.tolist()),
        "skill": ("skill", [round(x, 3) if math.isfinite(x) else None for x in skill]),
        "features": ("features", [round(n) for n in evidence.n_features.tolist()]),
        "seconds": ("seconds", [round(seconds, 3) for seconds in evidence.seconds.tolist()]),
    }
    charts: list[Chart] = [contest_chart(path, domain or "domain")]
    is_narrow = 0 < len(evidence.domains) <= _MOST_DRAWN
    if domain is not None and is_narrow and np.isfinite(evidence.skill).all():
        charts.append(_by_domain(evidence, domain))
    return Summary(
        command="compare",
        question=f"Which model predicts {target!r} best {where}?",
        answer=_answer(evidence, domain, in_time=in_time),
        path=path,
        table=Table.from_columns(
            f"Models by their error ({evidence.scoring}) {where}, the least first.",
            columns,
            [name for name in columns if name != "seconds"],
        ),
        charts=charts,
        wary=_notes(evidence, domain),
    )


def _answer(evidence: ContestEvidence, domain: str | None, *, in_time: bool) -> str:
    """The model to take, the error to expect of it, and how many were tried."""
    i = evidence.names.index(evidence.recommended)
    n_features = float(evidence.n_features[i])  # on average over the fits
    features = "" if n_features.is_integer() else "about "
    features += counted(round(n_features), "feature")
    answer = f"Take {evidence.recommended!r} ({features}), "
    if i == 0:
        answer += "which has the least error."
    else:
        more, spread = (float(p[i]) for p in (evidence.differences, evidence.standard_errors))
        answer += (
            "the simplest model within one standard error of the best, "
            f"{evidence.names[0]!r} ({number(more)} ± {number(spread)} more)."
        )
    n = len(evidence.names)
    tried = counted(len(evidence.domains), "domain") if domain else "parts of the rows"
    tried += ", each from those before it." if in_time else " left out in turn."
    return (
        f"{answer} {_expectation(evidence, i, domain)} "
        f"{counted(n, 'model')} {'was' if n == 1 else 'were'} tried on {tried}"
    )


def _expectation(evidence: ContestEvidence, i: int, domain: str | None) -> str:
    """The error of a model with its interval and skill, in a sentence."""
    where = "on new rows" if domain is None else f"at a new {domain}"
    columns = (evidence.errors, evidence.low, evidence.high)
    error, low, high = (number(float(column[i])) for column in columns)
    sentence = f"Expect {an(evidence.scoring)} of {error} ({low} to {high}) {where}"
    skill = float(evidence.skill[i])
    if not math.isfinite(skill):
        return f"{sentence}."
    if skill <= 0:
        return f"{sentence}, no better than without a model, {number(evidence.no_model)}."
    return f"{sentence}, {skill:.0%} less than without a model (skill {skill:.2f})."


def _by_domain(evidence: ContestEvidence, domain: str) -> Heat:
    """Skill of each model at each domain that was left out."""
    skill = 1 - evidence.domain_errors / evidence.no_model
    order = natural_order(evidence.domains)
    return Heat(
        title=f"Skill of each model at each {domain}",
        text=f"1 is perfect, 0 as good as no model at an average {domain}, below 0 worse; shown "
        "down to -1.",
        rows=evidence.names,
        columns=[evidence.domains[d] for d in order],
        values=np.maximum(skill[:, order], _WORST).tolist(),
        kept=[name == evidence.recommended for name in evidence.names],
        plus="better than no model",
        minus="worse",
    )


def _notes(evidence: ContestEvidence, domain: str | None) -> list[tuple[str, str]]:
    notes = []
    n_domains = len(evidence.domains)
    if domain is not None and n_domains < _FEW_DOMAINS:
        text = f"With {n_domains} domains the models can hardly be told apart, and the interval "
        notes.append(("Few domains", text + "for a new one is wide."))
    i = evidence.names.index(evidence.recommended)
    if evidence.skill[i] <= 0:
        text = "None of these models predicts better than the mean (or the most frequent class)"
        clearly = " by more than one standard error" if evidence.skill.max() > 0 else ""
        notes.append(("Nothing holds", f"{text}{clearly} where it was not fitted."))
    if domain is None:
        text = "If new data come from new places, people or years, name their column with --domain:"
        notes.append(
            ("Rows were left out, not groups", f"{text} the errors here are too low then.")
        )
    return notes
