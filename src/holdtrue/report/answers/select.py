"""The answer of `holdtrue select`: steady features, those used for prediction, and flips."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from holdtrue.charts import number
from holdtrue.compare.comparison import contest_chart
from holdtrue.domains.display import effects_chart, errors_chart, strongest_effects, t_chart
from holdtrue.errors import counted
from holdtrue.evidence import ContestEvidence, DomainEvidence
from holdtrue.path import SelectionPath
from holdtrue.report.summary import (
    Summary,
    Table,
    an,
    itemised,
    listed,
    skill_words,
    step_columns,
    verb,
)

_STRONG = 0.1  # an effect below this, in standard deviations, is not worth a warning
_CHANCE = 4.0  # standard errors within which an effect has no sign
_FEW_DOMAINS = 6
_WIDE_GAP = 0.25  # of the error where the model was fitted


def select_summary(
    path: SelectionPath, target: str, domain: str, contest: SelectionPath | None = None
) -> Summary:
    """Summary of T-Greedy's path; ``domain`` is what a domain is called, such as "hospital".

    ``contest`` is T-Greedy against predictors that use more features, at the same left-out domains,
    a path of `Comparison.to_path`.
    """
    evidence = path.evidence_as(DomainEvidence)
    columns = _columns(path, evidence)
    return Summary(
        command="select",
        question=f"Which features still predict {target!r} at {an(domain)} nobody has seen?",
        answer=_answer(path, evidence, target, domain, contest),
        path=path,
        table=Table.from_columns(
            f"Features in order of entry: steady beyond chance or not, used for prediction or not, "
            f"the error and skill at {an(domain)} held out once each is in, and effects across "
            f"domains{_sign_words(evidence, target)}.",
            columns,
            [name for name in columns if name != "error"],
        ),
        charts=(
            errors_chart(path, domain),
            effects_chart(path, domain),
            t_chart(path),
            *([] if contest is None else [contest_chart(contest, domain)]),
        ),
        wary=_notes(path, evidence, domain),
    )


def columns_notes(columns: Sequence[Any], *, has_domains: bool) -> list[tuple[str, str]]:
    """What became of the columns, each a `FeatureColumn`, that are not plain numbers."""
    notes = []
    left = [f"{c.name!r} ({c.note.removeprefix('left out: ')})" for c in columns if not c.features]
    if left:
        notes.append(("Columns left out", f"{itemised(left)}."))
    filled = [
        f"{c.name!r} ({c.n_missing:,})"
        for c in columns
        if c.features and c.n_missing and c.fill is not None
    ]
    if filled:
        text = f"Filled with the column's mean: {itemised(filled)}."
        if has_domains:
            text += " Where a whole domain lacks a column, its effect there is not known: what is "
            text += "shown compares means only."
        notes.append(("Missing numbers", text))
    return notes


def flipping_features(evidence: DomainEvidence) -> list[int]:
    """Features with a clear effect of either sign within domains, the strongest first.

    An effect is clear beyond 0.1 standard deviations and four standard errors, ``4 / sqrt(n)`` in a
    domain of n rows. What a domain's means are off by has no sign: a feature that is the same in
    all rows of a domain does not go with the target there.
    """
    effects = strongest_effects(evidence, within=True)
    noise = _CHANCE / np.sqrt(evidence.n_rows) if evidence.n_rows.size else 0.0
    clear = np.where(np.abs(effects) > np.maximum(noise, _STRONG), effects, 0.0)
    weaker_side = np.minimum(clear.max(axis=1, initial=0.0), -clear.min(axis=1, initial=0.0))
    order = np.argsort(-weaker_side, kind="stable")
    return [int(j) for j in order if weaker_side[j] > 0]


def _steady_beside_others(path: SelectionPath, evidence: DomainEvidence) -> list[int]:
    """Steady features whose T before any step is below the level of chance, in order of entry."""
    levels = evidence.chance_levels[np.isfinite(evidence.chance_levels)]
    if not len(levels):
        return []
    alone = np.abs(evidence.t_scores).max(axis=0) < levels[0]
    return [j for j in dict.fromkeys(path.order.tolist()) if evidence.steady[j] and alone[j]]


def _columns(path: SelectionPath, evidence: DomainEvidence) -> dict[str, tuple[str, Any]]:
    """Columns of the table: features in order of entry and then by the size of T.

    With several classes T and effects are those of the class where |T| is largest.
    """
    each = np.arange(len(evidence.names))
    strongest = np.abs(evidence.t_scores).argmax(axis=0)
    t, effects = evidence.t_scores[strongest, each], evidence.effects[strongest, each]
    order = np.lexsort((-np.abs(t), path.ranking(len(each))))
    effects = effects[order]
    ends = [(min(row), max(row)) if row else (None, None) for row in effects.tolist()]
    classes = [evidence.targets[k] for k in strongest[order]] if len(evidence.targets) > 1 else []
    return {
        "feature": ("feature", [evidence.names[j] for j in order]),
        "steady": ("steady", evidence.steady[order].astype(bool).tolist()),
        "chosen": ("used", np.isin(order, path.chosen).tolist()),
        **({"class": ("class", classes)} if classes else {}),
        **step_columns(path, order.tolist()),
        "t": ("T", t[order].tolist()),
        "plus": ("domains +", (effects > 0).sum(axis=1).tolist()),
        "minus": ("domains −", (effects < 0).sum(axis=1).tolist()),
        "least": ("least", [low for low, _ in ends]),
        "most": ("largest", [high for _, high in ends]),
    }


def _sign_words(evidence: DomainEvidence, target: str) -> str:
    """What + means, for classes."""
    if len(evidence.targets) == 1:
        return f"; + goes with {target} = {evidence.targets[0]!r}"
    return "; + goes with the class named" if evidence.targets else ""


def _answer(
    path: SelectionPath,
    evidence: DomainEvidence,
    target: str,
    domain: str,
    contest: SelectionPath | None,
) -> str:
    """What is steady beyond chance, what is used for prediction, and what to expect of it."""
    chosen, n_features = path.chosen.tolist(), len(evidence.names)
    steady = [j for j in dict.fromkeys(path.order.tolist()) if evidence.steady[j]]
    if steady:
        answer = (
            f"{counted(len(steady), 'feature')} of {n_features} {verb(len(steady), 'be')} steady "
            f"beyond chance across {len(evidence.domains)} domains: "
            f"{listed([evidence.names[j] for j in steady])}{_sign_words(evidence, target)}."
        )
    else:
        answer = f"No feature of {n_features} is steady beyond chance"
        answer += f" across {len(evidence.domains)} domains." if evidence.domains else "."
    if not chosen:
        used = f"None predicts {target!r} well enough to be used."
    elif set(chosen) == set(steady):
        used = f"{'It is' if len(chosen) == 1 else 'They are'} used for prediction."
    else:
        used = (
            f"{counted(len(chosen), 'feature')} {verb(len(chosen), 'be')} used for prediction: "
            f"{listed([evidence.names[j] for j in chosen])}."
        )
    answer = f"{answer} {used}"
    expected, empty = evidence.new_domain_score, float(path.scores[0])
    if not np.isfinite(expected) or not empty > 0:
        return f"{answer} The path stops here because {path.reason}."
    gain = 1 - expected / empty
    than_mean = (
        f"{gain:.0%} less than predicting the mean{skill_words(expected, empty)}."
        if gain > 0
        else f"no better than predicting the mean, {number(empty)}{skill_words(expected, empty)}."
    )
    low, high = number(evidence.new_domain_low), number(evidence.new_domain_high)
    return (
        f"{answer} At a new {domain} expect {an(path.unit)} of {number(expected)} "
        f"({low} to {high}), {than_mean}"
        f"{_contest_words(contest, domain)}"
    )


def _contest_words(contest: SelectionPath | None, domain: str) -> str:
    """Which predictor is better at left-out domains, in a sentence."""
    if contest is None:
        return ""
    evidence = contest.evidence_as(ContestEvidence)
    best, where = evidence.recommended, f"on the same {len(evidence.domains)} left-out domains"
    errors = {
        name: f"{name} has {number(float(error))}"
        for name, error in zip(evidence.names, evidence.errors, strict=True)
        if name != "T-Greedy"
    }
    i, ours = (evidence.names.index(name) for name in (best, "T-Greedy"))
    if not evidence.errors[i] < evidence.no_model:
        return f" No other model is better than the mean: {where} {' and '.join(errors.values())}."
    if best == "T-Greedy":
        return f" T-Greedy serves for prediction: {where} {' and '.join(errors.values())}."
    paired = evidence.domain_errors[ours] - evidence.domain_errors[i]
    less, spread = float(paired.mean()), float(paired.std(ddof=1) / np.sqrt(len(paired)))
    errors[best] += f" ({number(less)} ± {number(spread)} less)"
    chance = ", by what chance may give" if less <= spread else ""
    return (
        f" To predict at a new {domain}, {best} errs least{chance}: {where} "
        f"{' and '.join(errors.values())}."
    )


def _notes(path: SelectionPath, evidence: DomainEvidence, domain: str) -> list[tuple[str, str]]:
    notes = []
    flipping = flipping_features(evidence)
    if flipping:
        chosen = set(path.chosen.tolist())
        text = f"{listed([evidence.names[j] for j in flipping])}: with the target at one {domain}, "
        text += "against it at another. A pooled fit would trust such a feature."
        kept = [evidence.names[j] for j in flipping if j in chosen]
        if kept:
            text += f" {listed(kept)} {verb(len(kept), 'be')} chosen all the same: look at the "
            text += "picture of effects."
        notes.append(("Features that flip their sign", text))
    beside = _steady_beside_others(path, evidence)
    if beside:
        text = f"{listed([evidence.names[j] for j in beside])}: alone no more than chance (T in "
        text += "the table), steady once the features that entered before are in."
        notes.append(("Steady beside others only", text))
    n_domains = len(evidence.domains)
    if n_domains < _FEW_DOMAINS:
        text = f"With {n_domains} domains a steady effect can hardly be told from a lucky one, and "
        notes.append(("Few domains", text + "the interval for a new one is wide."))
    expected = evidence.new_domain_score
    fitted = np.nan if path.train_scores is None else float(path.train_scores[path.chosen_size])
    if expected - fitted > _WIDE_GAP * fitted:
        text = f"The error is {number(fitted)} where the model was fitted and {number(expected)} "
        text += f"at {an(domain)} that it has not seen."
        notes.append(("A gap between old and new domains", text))
    return notes
