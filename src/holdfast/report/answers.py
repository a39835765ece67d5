"""From a fitted family to a `Summary`: the answer in two sentences, and what to be wary of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from holdfast.charts import Chart, Dots, Heat, Lines, Series, number
from holdfast.model_size.table import UNITS, agreement
from holdfast.path import SelectionPath
from holdfast.report.summary import Summary, Table

__all__ = ["rank_summary", "select_summary", "size_summary", "transfer_summary"]

_DRAWN = 25  # rows of a chart
_DOMAINS = 40  # most domains with a curve of their own
_STRONG = 0.1  # an effect below this, in standard deviations, is not worth a warning
_CHANCE = 4.0  # standard errors within which an effect has no sign


# --- holdfast rank ------------------------------------------------------------------------------


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
            f"{_count(len(kept), 'column')} of {n_columns} {_verb(len(kept), 'predict')} "
            f"{target!r} on {where}; the best is {best['column']!r}, with "
            f"{'an estimated' if honest else 'an'} {noun} of "
            f"{number(best['score'])} against {number(best['no_column'])} without any column."
        )
    else:
        answer = f"No column of {n_columns} predicts {target!r} on {where} better than none at all."
    only = [row["column"] for row in ids if not row["predicts"]]
    if only:
        answer += (
            f" {_count(len(only), 'column')} {_verb(len(only), 'look')} like "
            f"{'an id' if len(only) == 1 else 'ids'} and would only remember: {_listed(only)}."
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
    shown = list(rows[:_DRAWN]) + [row for row in rows[_DRAWN:] if row["id_like"]][:5]
    marks = ["kept" if r["predicts"] else "id" if r["id_like"] else "" for r in shown]
    line = max(row["no_column"] for row in rows)
    return Dots(
        f"Each column's {unit}",
        f"Kept: {_listed([row['column'] for row in shown if row['predicts']]) or 'none'}. A bar "
        "that ends before the dashed line, the error without any column, is a gain beyond chance."
        + (f" {len(rows) - len(shown)} more columns are in the table." if shown != rows else ""),
        unit,
        [row["column"] for row in shown],
        [row["score"] for row in shown],
        [row["no_column"] - row["gain_high"] for row in shown],
        [row["no_column"] - row["gain_low"] for row in shown],
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
                f"{_listed(copies)} {_verb(len(copies), 'predict')} {target!r} almost without "
                "error. Make sure that it is known before the target is, and not a copy of it.",
            )
        )
    constant = [row["column"] for row in rows if row["n_values"] <= 1]
    if constant:
        notes.append(
            ("Constant columns", f"{_listed(constant)}: one value only, nothing to learn.")
        )
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


# --- holdfast select ----------------------------------------------------------------------------


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
        f"{_count(len(chosen), 'feature')} of {model.n_features_in_} "
        f"{'holds' if len(chosen) == 1 else 'hold'} across {model.n_domains_:g} "
        f"domains: {_listed(chosen)}."
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
    shown = list(dict.fromkeys([*chosen, *entered[:8], *rest]))[:_DRAWN]
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
        said = f"{_listed([name for name, _ in flips])}: with the target at one {place}, against "
        said += "it at another. A pooled fit would trust such a feature."
        if kept:
            said += f" {_listed(kept)} {_verb(len(kept), 'be')} chosen all the same: look at the "
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


# --- holdfast transfer --------------------------------------------------------------------------


def transfer_summary(model: Any, target: str) -> Summary:
    """Summary of a fitted `GreedyTLClassifier` or `GreedyTLRegressor`."""
    path = model.path_
    features = getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)])
    names = [*map(str, features), *model.source_names_]
    weights = np.concatenate(
        [np.atleast_2d(model.feature_weights_), np.atleast_2d(model.source_weights_)], axis=1
    )
    strength = np.abs(weights).max(axis=0)
    signed = np.take_along_axis(weights, np.abs(weights).argmax(axis=0)[None], axis=0)[0]
    used = np.flatnonzero(strength).tolist()
    used.sort(key=lambda j: (int(model.ranking_[j]), j))
    n_sources = len(model.source_names_)
    helping = [names[j] for j in used if j >= model.n_features_in_]
    rows = [
        {
            "name": names[j],
            "kind": "source" if j >= model.n_features_in_ else "column",
            "enters": int(model.ranking_[j]),
            "weight": float(signed[j]),
        }
        for j in used
    ]
    errors = model.loo_errors_
    if helping:
        answer = (
            f"{_count(len(helping), 'source')} of {n_sources} {_verb(len(helping), 'help')} "
            f"{target!r}: {_listed(helping)}."
        )
    else:
        which = (
            "The source does not help"
            if n_sources == 1
            else f"None of the {n_sources:,} sources helps"
        )
        answer = f"{which} {target!r}: left out."
    if "with_sources" in errors:
        answer += (
            f" The squared error on left-out rows is {number(errors['with_sources'])} with sources "
            f"and {number(errors['without_sources'])} without."
        )
    charts: list[Chart] = [path.chart()]
    if used:
        shown = used[:_DRAWN]
        blank = [float("nan")] * len(shown)
        charts.append(
            Dots(
                "Weight of what was chosen",
                "What one standard deviation adds to the score of the target.",
                "weight",
                [names[j] for j in shown],
                signed[shown].tolist(),
                blank,
                blank,
                ["kept"] * len(shown),
                0.0,
                "no weight",
            )
        )
    columns = {"name": "name", "kind": "kind", "enters": "enters at", "weight": "weight"}
    notes = []
    if n_sources and not helping:
        notes.append(
            (
                "Sources that would do harm",
                "With them the error on left-out rows is higher than without, so the model uses "
                "the columns alone.",
            )
        )
    against = [row["name"] for row in rows if row["kind"] == "source" and row["weight"] < 0]
    if against:
        notes.append(
            (
                "Sources used in reverse",
                f"{_listed(against)}: a high score speaks against the target. That can be right "
                "(a rival class), or chance with so few rows.",
            )
        )
    if len(helping) > 0 and len(used) >= 10:
        notes.append(
            (
                "Many chosen for few rows",
                f"{len(used)} columns and sources carry weight. Pass --max-selected to keep fewer.",
            )
        )
    return Summary(
        command="transfer",
        question=f"Which of {_count(n_sources, 'trained model')} help {target!r}?"
        if n_sources != 1
        else f"Does the trained model help {target!r}?",
        answer=answer,
        path=path,
        table=Table("Columns and sources that carry weight", columns, rows, tuple(columns)),
        charts=charts,
        wary=notes,
    )


# --- holdfast size ------------------------------------------------------------------------------


def size_summary(
    model: Any, x: np.ndarray, y: np.ndarray, *, x_names: Sequence[str], y_name: str
) -> Summary:
    """Summary of a fitted `NestedRegressor`.

    Parameters
    ----------
    model : fitted NestedRegressor
    x : ndarray of shape (n_samples, n_inputs)
    y : ndarray of shape (n_samples,)
    x_names : sequence of str
    y_name : str
    """
    path, choices = model.path_, model.choices_
    size, criterion = model.n_terms_, model.criterion_
    by_choice = sorted(choices, key=lambda name: (choices[name], name))
    rows = [
        {
            "criterion": name,
            "chooses": choices[name],
            "estimate": float(model.criteria_[name][choices[name] - 1]),
            "unit": UNITS.get(name, "mean squared error"),
        }
        for name in by_choice
    ]
    columns = {
        "criterion": "criterion",
        "chooses": "chooses",
        "estimate": "estimate there",
        "unit": "of",
    }
    estimate = model.criteria_[criterion][size - 1]
    mean = float(np.mean((y - y.mean()) ** 2))
    expected = float(model.criteria_["dee" if criterion in UNITS else criterion][size - 1])
    answer = (
        f"{len(y)} points afford {_count(size, 'term')} of {model.criteria_['n_terms'][-1]} "
        f"({criterion}: {number(float(estimate))}), where a constant has a mean squared error of "
        f"{number(mean)}. Do the criteria agree? {_sentence(agreement(choices))}."
    )
    charts: list[Chart] = []
    if x.shape[1] == 1:
        grid = np.linspace(x.min(), x.max(), 200)
        charts.append(
            Lines(
                "The points and the curve",
                f"{len(y)} points with a curve of {_count(size, 'term')}.",
                x_names[0],
                y_name,
                [
                    Series("points", x[:, 0].tolist(), y.tolist(), "points"),
                    Series(
                        f"{_count(size, 'term')}",
                        grid.tolist(),
                        model.predict(grid[:, None]).tolist(),
                    ),
                ],
                whole=False,
            )
        )
    charts.append(path.chart())
    charts.append(_criteria_chart(model))
    return Summary(
        command="size",
        question=f"How large a model of {y_name!r} can {len(y)} points afford?",
        answer=answer,
        path=path,
        table=Table("What each criterion would choose", columns, rows, tuple(columns)),
        charts=charts,
        wary=_size_notes(model, expected, mean),
    )


def _criteria_chart(model: Any) -> Chart:
    sizes = model.criteria_["n_terms"].tolist()
    others = [n for n in ("dee", "adj", "cv", "bayes", "seb", "bic") if n in model.choices_]
    series = [
        Series(name, sizes, model.criteria_[name].tolist(), "other")
        for name in others
        if name != model.criterion_
    ]
    if model.criterion_ not in UNITS:  # the others have units of their own
        own = model.criteria_[model.criterion_].tolist()
        series.append(Series(model.criterion_, sizes, own))
    series.append(Series("on these points", sizes, model.criteria_["train"].tolist(), "train"))
    return Lines(
        "Criteria along the sizes",
        f"{_sentence(agreement(model.choices_))}.",
        "terms",
        "mean squared error",
        series,
        chosen=model.n_terms_,
    )


def _size_notes(model: Any, expected: float, mean: float) -> list[tuple[str, str]]:
    notes = []
    sizes = sorted(model.choices_.values())
    # One voice in five at either end does not make a quarrel.
    fifth = len(sizes) // 5
    least, most = sizes[fifth], sizes[-1 - fifth]
    if most > 1.5 * least and most > least + 2:
        low = [name for name, size in model.choices_.items() if size <= least]
        high = [name for name, size in model.choices_.items() if size >= most]
        notes.append(
            (
                "Criteria disagree",
                f"{_listed(low)} {_verb(len(low), 'choose')} {least} or fewer, {_listed(high)} "
                f"{most} or more. Between them the sample does not decide: look at the curves "
                "before you rely on one size.",
            )
        )
    if expected > 0.95 * mean:
        notes.append(
            (
                "Hardly better than a constant",
                f"The estimate, {number(expected)}, is close to the variance, {number(mean)}.",
            )
        )
    if model.n_terms_ == model.criteria_["n_terms"][-1]:
        notes.append(
            (
                "The largest size was chosen",
                "A larger model might be better still: pass --max-terms if the sample allows.",
            )
        )
    return notes


# --- words --------------------------------------------------------------------------------------


def _sentence(clause: str) -> str:
    return clause[:1].upper() + clause[1:]


def _count(count: int, thing: str) -> str:
    return f"{count:,} {thing}" + ("" if count == 1 else "s")


def _verb(count: int, verb: str) -> str:
    if verb == "be":
        return "is" if count == 1 else "are"
    return verb + ("s" if count == 1 else "")


def _listed(names: Sequence[str], limit: int = 6) -> str:
    """Names in a sentence: the first few, and how many more."""
    shown = [repr(str(name)) for name in names[:limit]]
    if len(names) > limit:
        return f"{', '.join(shown)} and {len(names) - limit} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)
