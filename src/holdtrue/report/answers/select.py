"""The answer of `holdtrue select`: features that hold, and features that flip their sign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from holdtrue.charts import Chart, Heat, Lines, Series, number
from holdtrue.report.answers.words import DRAWN, count, listed, verb
from holdtrue.report.summary import Summary, Table

_DOMAINS = 40  # most domains with a curve of their own
_STRONG = 0.1  # an effect below this, in standard deviations, is not worth a warning
_CHANCE = 4.0  # standard errors within which an effect has no sign


def select_summary(
    model: Any, target: str, domain: str, *, sizes: Sequence[float] | None = None
) -> Summary:
    """Summary of a fitted `TGreedyRegressor` or `TGreedyClassifier`.

    Parameters
    ----------
    model : fitted estimator
    target : str
    domain : str
        What tells the domains, such as ``"hospital"``.
    sizes : sequence of float, optional
        Rows of each domain: an effect within four standard errors of 0 has no sign.
    """
    names = [str(name) for name in model.feature_names_in_]
    path, chosen = model.path_, model.path_.chosen.tolist()
    effects = _effects(model)
    noise = 0.0 if sizes is None else _CHANCE / np.sqrt(np.asarray(sizes, dtype=float))
    rows, flipping = [], []
    for j in np.lexsort((-np.abs(model.scores_), model.ranking_)).tolist():
        own = effects[j]
        rows.append(
            {
                "feature": names[j],
                "chosen": j in chosen,
                "enters": int(model.ranking_[j]) if j in path.order else None,
                "t": float(model.scores_[j]),
                "plus": int((own > 0).sum()),
                "minus": int((own < 0).sum()),
                "least": float(own.min()),
                "most": float(own.max()),
            }
        )
        beyond = np.where(np.abs(own) > np.maximum(noise, _STRONG), own, 0.0)
        if beyond.min() < 0 < beyond.max():
            flipping.append((min(-beyond.min(), beyond.max()), names[j], j in chosen))
    flips = [(name, kept) for _, name, kept in sorted(flipping, reverse=True)]
    columns = {
        "feature": "feature",
        "chosen": "chosen",
        "enters": "enters at",
        "t": "T",
        "plus": "domains +",
        "minus": "domains −",
        "least": "least effect",
        "most": "largest",
    }
    return Summary(
        command="select",
        question=f"Which features still predict {target!r} at a {domain} nobody has seen?",
        answer=_select_answer(model, target, domain, [names[j] for j in chosen]),
        path=path,
        table=Table(
            "Features in order of entry, and their effects across domains",
            columns,
            rows,
            tuple(columns),
        ),
        charts=_select_charts(model, names, effects, domain),
        wary=_select_notes(model, domain, flips),
    )


def columns_notes(columns: Sequence[Any]) -> list[tuple[str, str]]:
    """What became of the columns that are no plain features.

    Parameters
    ----------
    columns : sequence of FeatureColumn
        As `moments_of` gives them.
    """
    notes = []
    left = [f"{c.name!r} ({c.note.removeprefix('left out: ')})" for c in columns if not c.features]
    if left:
        more = f"; and {len(left) - 8} more" if len(left) > 8 else ""
        notes.append(("Columns left out", "; ".join(left[:8]) + more + "."))
    filled = [c for c in columns if c.features and c.n_missing and c.fill is not None]
    if filled:
        named = [f"{c.name!r} ({c.n_missing:,})" for c in filled[:8]]
        more = f" and {len(filled) - 8} more" if len(filled) > 8 else ""
        notes.append(
            (
                "Missing numbers",
                f"Filled with the column's mean: {', '.join(named)}{more}. Where a whole domain "
                "lacks a column, its effect there is 0.",
            )
        )
    return notes


def _effects(model: Any) -> np.ndarray:
    """Effects feature × domain; those of the strongest target where there are several."""
    effects: np.ndarray = model.domain_effects_
    if effects.ndim == 2:
        return effects
    strongest = np.abs(effects.mean(axis=2)).argmax(axis=0)
    picked: np.ndarray = effects[strongest, np.arange(effects.shape[1])]
    return picked


def _select_answer(model: Any, target: str, place: str, chosen: Sequence[str]) -> str:
    said = (
        f"{count(len(chosen), 'feature')} of {model.n_features_in_} "
        f"{'holds' if len(chosen) == 1 else 'hold'} across {model.n_domains_:g} "
        f"domains: {listed(chosen)}."
        if chosen
        else f"No feature of {model.n_features_in_} predicts {target!r} steadily enough to be kept."
    )
    expected = getattr(model, "new_domain_score_", np.nan)
    empty = model.path_.scores[0]
    if np.isfinite(expected) and empty > 0:
        low, high = model.new_domain_interval_
        share = 1 - expected / empty
        said += (
            f" At a new {place} expect a mean squared error of {number(expected)} "
            f"({number(low)} to {number(high)}), "
            + (
                f"{share:.0%} less than predicting the mean."
                if share > 0
                else f"no better than predicting the mean ({number(empty)})."
            )
        )
    else:
        said += f" The path stops here because {model.path_.reason}."
    return said


def _select_charts(
    model: Any, names: Sequence[str], effects: np.ndarray, place: str
) -> list[Chart]:
    path = model.path_
    sizes = range(path.n_steps + 1)
    held_out = getattr(model, "held_out_scores_", None)
    series = []
    if held_out is not None and np.isfinite(path.scores).any():
        if held_out.shape[1] <= _DOMAINS:
            series += [Series("", sizes, column.tolist(), "thin") for column in held_out.T]
        series.append(Series(f"at each {place} held out (mean)", sizes, path.scores.tolist()))
    if path.train_scores is not None:
        series.append(Series("where it was fitted", sizes, path.train_scores.tolist(), "train"))
    charts: list[Chart] = [
        Lines(
            "Error where it was fitted and where it was not",
            f"{path.chosen_size} of {path.n_steps} steps chosen: {path.reason}.",
            "steps",
            path.unit,
            series,
            chosen=path.chosen_size,
        )
    ]
    entered = list(dict.fromkeys(path.order.tolist()))
    rest = np.argsort(-np.abs(effects).max(axis=1), kind="stable").tolist()
    chosen = path.chosen.tolist()
    shown = list(dict.fromkeys([*chosen, *entered[:8], *rest]))[:DRAWN]
    charts.append(
        Heat(
            f"Effect of each feature at each {place}",
            "Rows are features, columns domains; a row with both signs is a feature that "
            "does not carry over.",
            [names[j] for j in shown],
            [str(label) for label in model.domains_],
            effects[shown].tolist(),
            [j in chosen for j in shown],
        )
    )
    steps = range(1, len(model.t_statistics_) + 1)
    charts.append(
        Lines(
            "T of each feature as it enters",
            "Above the dotted line a step is beyond chance (Bonferroni).",
            "step",
            "|T|",
            [
                Series("|T| on entry", steps, np.abs(model.t_statistics_).tolist()),
                Series("level of chance", steps, model.chance_levels_.tolist(), "level"),
            ],
            chosen=path.chosen_size or None,
            from_zero=True,
        )
    )
    return charts


def _select_notes(
    model: Any, place: str, flips: Sequence[tuple[str, bool]]
) -> list[tuple[str, str]]:
    notes = []
    if flips:
        kept = [name for name, chosen in flips if chosen]
        said = f"{listed([name for name, _ in flips])}: with the target at one {place}, against "
        said += "it at another. A pooled fit would trust such a feature."
        if kept:
            said += f" {listed(kept)} {verb(len(kept), 'be')} chosen all the same: look at the "
            said += "picture of effects."
        notes.append(("Features that flip their sign", said))
    if model.n_domains_ < 6:
        notes.append(
            (
                "Few domains",
                f"With {model.n_domains_:g} domains a steady effect can hardly be told from a "
                "lucky one, and the interval for a new one is wide.",
            )
        )
    gap = getattr(model, "domain_gap_", np.nan)
    if np.isfinite(gap) and gap > 0.25 * model.source_score_:
        notes.append(
            (
                "A gap between old and new domains",
                f"The error is {number(model.source_score_)} where the model was fitted and "
                f"{number(model.new_domain_score_)} at a {place} that it has not seen.",
            )
        )
    return notes
