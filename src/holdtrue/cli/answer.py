"""From an opened table to an answer: one function per command.

Each opens the table, calls its family, and gives the summary of what that found. Nothing is printed
or written here.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from holdtrue.cli.ask import Ask, Data, SumsData
from holdtrue.cli.python_lines import (
    compare_lines,
    rank_lines,
    select_lines,
    size_lines,
    transfer_lines,
)
from holdtrue.errors import InputError, check_choice, did_you_mean
from holdtrue.path import SelectionPath
from holdtrue.report.summary import Summary
from holdtrue.targets import TargetKind

if TYPE_CHECKING:
    from holdtrue.deployed import SavedModel
    from holdtrue.tables.encode import TableMoments, TableRows

__all__ = [
    "Answer",
    "answer_compare",
    "answer_rank",
    "answer_select",
    "answer_select_sums",
    "answer_size",
    "answer_transfer",
    "sums_of_site",
]


_MAX_REPEATED = 10_000_000  # rows, with their repetitions


class Answer(NamedTuple):
    """What a command found.

    Attributes
    ----------
    summary : Summary
    data : Data or SumsData
    settings : dict
        What was asked, in words; None where it does not apply.
    deployed : callable, optional
        Gives the model behind the answer, for ``--save``.
    python : str
        Lines that do the same.
    """

    summary: Summary
    data: Data | SumsData
    settings: dict[str, Any]
    deployed: Callable[[], SavedModel] | None = None
    python: str = ""


def answer_rank(
    ask: Ask,
    target: str,
    *,
    groups: str | None,
    target_type: str,
    engine: str | None,
    address: str | None,
    master: str | None,
    **options: Any,
) -> Answer:
    """Columns by their loss on new rows, or on new groups; ``options`` are `rank_columns`'s."""
    named = [("--target", target), *([("--groups", groups)] if groups else [])]
    if engine is not None:
        from holdtrue.cli.on_engine import data_on_engine

        with data_on_engine(ask, engine, address, master, *named) as data:
            data.check_names()
            table: Any = data.table
            kind = table.target_kind(target, target_type)
            return _rank(table.frame, data, kind, target, groups, options)
    for option, value in (("--address", address), ("--master", master)):
        if value is not None:
            raise InputError(f"{option} needs --engine. Name one, dask or spark.")
    data = ask.open(*named, complete=[column for _, column in named], date_parts=True)
    data.check_names()
    weights = data.whole_weights("a row that is left out stands for one row")
    kind = data.target_kind(target, target_type)
    columns = data.table.only([*data.names, *(column for _, column in named)])
    weighed = {**options, "sample_weight": weights}
    answer = _rank(columns, data, kind, target, groups, weighed)
    path = answer.summary.path
    dates = data.date_notes(path.names[: path.chosen_size])
    answer = answer._replace(summary=answer.summary.with_notes(dates))

    def deployed() -> SavedModel:
        from holdtrue.cli.deploy import rank_model

        chosen = {name: options[name] for name in ("criterion", "min_skill")}
        return rank_model(data, target, kind, groups, **chosen)

    lines = rank_lines(ask, data, target, groups, target_type=target_type, **options)
    return answer._replace(deployed=deployed, python=lines)


def _rank(
    columns: Any,
    data: Data,
    kind: TargetKind,
    target: str,
    groups: str | None,
    options: dict[str, Any],
) -> Answer:
    """Ranking of a Table, or of a frame on an engine, as an answer."""
    from holdtrue.categories import rank_columns
    from holdtrue.evidence import ColumnEvidence
    from holdtrue.report.answers import rank_summary

    with _kept_warnings() as notes:
        ranking = rank_columns(
            columns,
            target,
            groups=groups,
            target_type="numeric" if kind.is_numeric else "classes",
            **options,
        )
    path = ranking.path
    if data.no_values:
        path = replace(path, evidence=replace(path.evidence_as(ColumnEvidence), shapes=()))
    summary = _with_reading(rank_summary(path, target), kind, target)
    settings = {
        "target": target,
        "groups": groups,
        "rows": f"{data.table.n_rows:,}",
        "columns": len(data.names),
        "judged by": path.unit,
    }
    return Answer(summary.with_notes([*data.notes, *notes]), data, settings)


def answer_select(
    ask: Ask, target: str, domain: str, *, target_type: str, average: bool, **settings: Any
) -> Answer:
    """Steady features, and which predictor is better at left-out domains.

    ``settings`` are those of `TGreedyRegressor`, and ``keep``; ``average`` lets the average of the
    default field compete, which needs the rows.
    """
    roles = ("--target", target), ("--domain", domain)
    data = ask.open(*roles, complete=[target, domain], date_parts=True)
    kind = data.target_kind(target, target_type)
    from holdtrue.tables.encode import moments_of, rows_of

    reading: dict[str, Any] = {
        "target_type": "numeric" if kind.is_numeric else "classes",
        "leave_out": data.dropped,
    }
    with _kept_warnings() as notes:
        encoded = moments_of(data.table, target, domain, sample_weight=data.weights, **reading)
    encoded = replace(encoded, target_kind=kind)
    notes = [*data.time_notes(domain), *notes]
    rows = None
    if average:
        rows = _repeated(rows_of(data.table, target, domain, **reading), data)
    answer, model, others, contest = _select(data, encoded, target, domain, notes, rows, **settings)

    def deployed() -> SavedModel:
        from holdtrue.cli.deploy import select_model

        return select_model(data, target, domain, {"T-Greedy": model, **others}, encoded, contest)

    lines = select_lines(ask, data, target, domain, model, target_type)
    return answer._replace(deployed=deployed, python=lines)


def answer_select_sums(ask: Ask, files: list[str], **settings: Any) -> Answer:
    """As `answer_select`, from the sums of sites."""
    data = ask.open_sums(files)
    from holdtrue.tables.joined_sums import joined

    with _kept_warnings() as notes:
        encoded = joined(data.sites, leave_out=data.dropped)
    site = next(iter(data.sites.values())).site
    return _select(data, encoded, site.target.name, site.domain.name, notes, None, **settings)[0]


def _select(
    data: Data | SumsData,
    encoded: TableMoments,
    target: str,
    domain: str,
    notes: list[tuple[str, str]],
    rows: TableRows | None,
    *,
    keep: list[str],
    **settings: Any,
) -> tuple[Answer, Any, dict[str, Any], Any]:
    """The answer from sums, T-Greedy's model, its rivals and the contest."""
    from holdtrue.domains import TGreedyClassifier, TGreedyRegressor
    from holdtrue.report.answers import columns_notes, select_summary

    if data.no_values:
        encoded = _without_values(encoded, domain)
    moments = encoded.moments
    features = moments.feature_names or ()
    for name in keep:
        if name not in features:
            raise InputError(f"no feature {name!r} (--keep).{did_you_mean(name, features)}")
    settings = {**settings, "fixed_features": keep or None}
    model: Any
    with _kept_warnings() as fit_notes:
        if encoded.classes is None:
            model = TGreedyRegressor(**settings).fit_statistics(moments)
        else:
            model = TGreedyClassifier(**settings)
            model.fit_statistics(moments, classes=encoded.classes)
    contest, others = _predictors(model.path_, encoded, rows)
    contest_path = None if contest is None else contest.to_path()
    path = model.path_
    if data.no_values:
        path = _without_classes(path, target)
        fit_notes = [(what, _without_examples(why)) for what, why in fit_notes]
    summary = select_summary(path, target, domain, contest_path)
    if others:
        summary = replace(summary, answer=f"{summary.answer} {_pooled(others['SteadyRidge'])}")
    summary = _with_reading(summary, encoded.target_kind, target)
    summary = summary.with_notes([*data.notes, *columns_notes(encoded.columns), *notes, *fit_notes])
    settled = {
        "target": target,
        "domain": f"{domain} ({model.n_domains_:g})",
        "rows": f"{encoded.n_rows:,}",
        "features": moments.n_features,
        "rule": model.rule_,
        "stop": settings["stop"],
    }
    return Answer(summary, data, settled), model, others, contest


def _predictors(path: Any, encoded: Any, rows: Any) -> tuple[Any, dict[str, Any]]:
    """T-Greedy, SteadyRidge and, where rows are given, DomainAverage at left-out domains.

    The contest, None where T-Greedy left no domain out, and the fitted rivals by name.
    """
    import numpy as np

    from holdtrue.compare import Comparison, DomainAverageClassifier, DomainAverageRegressor
    from holdtrue.compare.comparison import SQUARED_ERROR
    from holdtrue.domains import SteadyRidgeClassifier, SteadyRidgeRegressor

    evidence, moments = path.evidence, encoded.moments
    if not len(evidence.new_errors):
        return None, {}
    n_features = {"T-Greedy": len(path.chosen), "SteadyRidge": moments.n_features}
    errors = {"T-Greedy": evidence.new_errors}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # T-Greedy's fit has said the same
        steady: Any
        if encoded.classes is None:
            steady = SteadyRidgeRegressor().fit_statistics(moments)
        else:
            steady = SteadyRidgeClassifier().fit_statistics(moments, classes=encoded.classes)
        errors["SteadyRidge"] = steady.new_domain_errors_
        fitted = {"SteadyRidge": steady}
        if rows is not None:
            estimator = DomainAverageRegressor() if encoded.classes is None else None
            average: Any = estimator or DomainAverageClassifier()
            fitted["DomainAverage"] = average.fit(rows.X, rows.y, groups=rows.groups)
            by_label = dict(
                zip(average.comparison_.units, average.comparison_.errors[-1], strict=True)
            )
            # Squared errors of shares, summed over K classes, in the units of codes -1 and +1.
            scale = 1.0 if encoded.classes is None else 4 / len(encoded.classes)
            labels = [str(label) for label in moments.domains]
            errors["DomainAverage"] = scale * np.array([by_label[label] for label in labels])
            n_features["DomainAverage"] = moments.n_features
    contest = Comparison(
        names=tuple(errors),
        errors=np.array(list(errors.values())),
        null=evidence.held_out[0],
        units=evidence.domains,
        n_features=np.array([n_features[name] for name in errors], dtype=np.float64),
        seconds=np.arange(len(errors), dtype=np.float64),  # in the order of their cost
        scoring=SQUARED_ERROR,
    )
    return contest, fitted


def _pooled(steady: Any) -> str:
    """The error of the usual baseline, which is one of SteadyRidge's candidates, in a sentence."""
    from holdtrue.charts import number

    table = steady.candidates_
    is_pooled = (table["intercept_spread"] == 0) & (table["slope_spread"] == 0)
    least = float(table["score"][is_pooled].min())
    return f"A ridge on all rows pooled has {number(least)} at best."


def sums_of_site(
    ask: Ask, target: str, domain: str, *, target_type: str, min_count: int
) -> tuple[bytes, list[str]]:
    """The sums of a site as bytes, and what they tell, line by line."""
    data = ask.open(("--target", target), ("--domain", domain), complete=[target, domain])
    from holdtrue.tables.site_sums import site_sums

    sums = site_sums(
        data.table,
        target,
        domain,
        target_type=target_type,
        leave_out=data.dropped,
        min_count=min_count,
        n_rows_in_file=data.n_rows_in_file,
        incomplete=data.incomplete,
    )
    names: dict[str, list[str]] = {}
    for column in (sums.site.target, *sums.site.columns):
        names.setdefault(column.told, []).append(column.name)
    n_domains, n_features = len(sums.moments.domains), sums.moments.n_features
    told = [
        f"Sums of {sums.site.n_rows:,} rows tell, for each of {n_domains:,} domains, its rows, and "
        f"means and covariances of {target!r} and {n_features:,} features.",
        *(f"{what}: {', '.join(columns)}" for what, columns in names.items()),
    ]
    return sums.to_bytes(), told


def answer_compare(
    ask: Ask,
    target: str,
    domain: str | None,
    *,
    domain_order: str,
    target_type: str,
    models: str | None,
    own: list[str],
    scoring: str | None,
    checkpoint: str | None,
    alpha: float,
) -> Answer:
    """Models on the same left-out domains, or rows; ``own`` are files of further ones."""
    named = [("--target", target)] + ([] if domain is None else [("--domain", domain)])
    data = ask.open(*named, complete=[name for _, name in named], date_parts=True)
    kind = data.target_kind(target, target_type)
    check_choice("--domain-order", domain_order, ("any", "time"))
    if domain is None and domain_order == "time":
        raise InputError("--domain-order time needs a domain, such as --domain year.")
    if domain is None and data.weight is not None:
        raise InputError("--weights in compare needs --domain. Leave it out, or name a domain.")
    if not 0 < alpha < 1:
        raise InputError(f"--alpha must lie between 0 and 1. Got {alpha:g}.")
    from holdtrue.compare import compare_models
    from holdtrue.compare.field import named_models
    from holdtrue.report.answers import columns_notes, compare_summary
    from holdtrue.tables.encode import rows_of

    names = None if models is None else [name.strip() for name in models.split(",")]
    field = named_models(names, is_classes=not kind.is_numeric)
    own_files = {Path(file).stem: file for file in own}
    if len(own_files) < len(own):
        raise InputError(f"models of --model must have different names. Got {', '.join(own)}.")
    field |= _own_models(own_files, field)
    with _kept_warnings() as notes:
        rows = rows_of(
            data.table,
            target,
            domain,
            target_type="numeric" if kind.is_numeric else "classes",
            leave_out=data.dropped,
        )
        rows = _repeated(rows, data)
        contest = compare_models(
            field,
            rows.X,
            rows.y,
            groups=rows.groups,
            cv=None if domain_order == "any" else "time",
            scoring=scoring,
            target_type="numeric" if kind.is_numeric else "classes",
            level=1 - alpha,
            checkpoint=checkpoint,
            random_state=ask.seed,
        )
    columns, judged = rows.columns, contest
    in_time = data.time_notes(domain)
    if domain_order == "time":
        why = f"Each {domain!r} is predicted from those before it; the first three are not judged."
        in_time = [("Later domains from earlier ones", why)]
    if data.no_values:
        columns = tuple(_column_without_values(column) for column in columns)
        numbered = [f"{domain} {i}" for i in range(1, len(contest.units) + 1)]
        contest = replace(contest, units=tuple(numbered))
    summary = compare_summary(contest.to_path(), target, domain)
    summary = _with_reading(summary, kind, target)

    def deployed() -> SavedModel:
        from holdtrue.cli.deploy import compare_model

        return compare_model(data, target, domain, field, rows, judged)

    return Answer(
        summary.with_notes([*data.notes, *in_time, *columns_notes(columns), *notes]),
        data,
        {
            "target": target,
            "domain": None if domain is None else f"{domain} ({len(contest.units)})",
            "domain order": None if domain_order == "any" else domain_order,
            "rows": f"{len(rows.y):,}",
            "features": len(rows.feature_names),
            "models": ", ".join(contest.names),
            "scoring": contest.scoring,
        },
        deployed,
        compare_lines(
            ask,
            data,
            target,
            domain,
            names,
            own_files,
            kind,
            target_type,
            cv=None if domain_order == "any" else "time",
            scoring=scoring,
            level=1 - alpha,
            random_state=ask.seed,
        ),
    )


def _own_models(files: dict[str, str], field: dict[str, Any]) -> dict[str, Any]:
    """The user's models, which are fitted anew, from their files."""
    from holdtrue.skops_files import UnfitFile, load_skops

    own: dict[str, Any] = {}
    for name, file in files.items():
        if name in field:
            raise InputError(f"{name!r} is a model of the field (--model). Rename {file}.")
        try:
            own[name] = load_skops(file)
        except UnfitFile as error:
            raise InputError(f"{file} {error}") from error
    return own


def answer_transfer(
    ask: Ask,
    target: str,
    sources: str,
    *,
    groups: str | None,
    target_type: str,
    max_selected: str | None,
    lam: str,
    candidates: int | None,
    passthrough: bool,
    skip_broken: bool,
    allow_pickle: bool,
    cache: str | None,
) -> Answer:
    """Trained models and columns that help a new task."""
    settings: dict[str, Any] = {
        "lam": lam if lam == "loo" else _number("--lam", lam),
        "max_selected": max_selected
        if max_selected in (None, "loo")
        else _count("--max-selected", max_selected),
        "n_candidates": candidates,
        "passthrough": passthrough,
        "random_state": ask.seed,
    }
    named = [("--target", target), *([("--groups", groups)] if groups else [])]
    data = ask.open(*named, complete=[column for _, column in named])
    data.check_names()
    if not Path(sources).is_dir():
        raise InputError(f"--sources must be a folder of models. Got {sources!r}.")
    if cache is not None and Path(cache).exists() and not Path(cache).is_dir():
        raise InputError(f"--cache must be a folder. Got {cache!r}.")
    kind = data.target_kind(target, target_type)
    X = data.numbers(data.names)
    from holdtrue.report.answers import transfer_summary
    from holdtrue.sources import GreedyTLClassifier, GreedyTLRegressor, SourcePool

    y = data.labels(target)
    pool_options: dict[str, Any] = {
        "allow_pickle": allow_pickle,
        "on_error": "skip" if skip_broken else "raise",
        "cache": cache,
    }
    pool = SourcePool.from_folder(sources, **pool_options)
    model = (GreedyTLRegressor if kind.is_numeric else GreedyTLClassifier)(pool, **settings)
    subjects = data.labels(groups) if groups else None
    with _kept_warnings() as notes:
        model.fit(X, y, groups=subjects, sample_weight=data.weights)
    if not model.source_names_:
        why = notes[0][1] if notes else "it has none."
        raise InputError(f"no model in {sources} can be used: {why}")
    path = _without_classes(model.path_, target) if data.no_values else model.path_
    summary = transfer_summary(path, target, columns=data.names)
    summary = _with_groups(_with_reading(summary, kind, target), groups)

    def deployed() -> SavedModel:
        from holdtrue.cli.deploy import transfer_model

        return transfer_model(data, target, kind, groups, model, X)

    return Answer(
        summary.with_notes([*data.notes, *notes]),
        data,
        {
            "target": target,
            "groups": groups,
            "sources": f"{len(model.source_names_):,} in {Path(sources).name or sources}",
            "rows": len(y),
            "columns": len(data.names),
            "lam": model.lam_,
        },
        deployed,
        transfer_lines(ask, data, target, groups, model, sources, **pool_options),
    )


def answer_size(
    ask: Ask,
    x: list[str],
    y: str,
    *,
    groups: str | None,
    basis: str,
    criterion: str | None,
    max_terms: int | None,
) -> Answer:
    """Number of terms that the points afford."""
    named = [*(("--x", name) for name in x), ("--y", y)]
    named += [("--groups", groups)] if groups else []
    data = ask.open(*named, complete=[groups] if groups else [])
    criterion = criterion or ("cv" if groups else "bayes")
    import numpy as np

    from holdtrue.model_size import NestedRegressor
    from holdtrue.report.answers import size_summary

    rows = data.numbers([*x, y], allow_missing=True)
    inputs, target = rows[:, :-1], rows[:, -1]
    has_inputs = ~np.isnan(inputs).any(axis=1)
    labelled = has_inputs & ~np.isnan(target)
    unlabelled = inputs[has_inputs & ~labelled]
    model = NestedRegressor(
        basis,
        criterion=criterion,
        predict="chosen" if groups else "average",
        max_terms=max_terms,
        random_state=ask.seed,
    )
    with _kept_warnings() as notes:
        model.fit(
            inputs[labelled],
            target[labelled],
            groups=data.labels(groups)[labelled] if groups else None,
            sample_weight=None if data.weights is None else data.weights[labelled],
            X_unlabeled=unlabelled if len(unlabelled) else None,
        )
    summary = size_summary(
        model.path_,
        inputs[labelled],
        target[labelled],
        predict=partial(model.predict, return_std=groups is None),
        x_names=x,
        y_name=y,
        n_unlabelled=len(unlabelled),
    )
    summary = _with_groups(summary, groups)
    if data.no_values:
        summary = replace(summary, charts=[c for c in summary.charts if not _has_points(c)])
    n_without = int(np.count_nonzero(~has_inputs))
    if n_without:
        left_out = f"{n_without:,} of {len(rows):,} rows lack an input and are left out."
        notes.insert(0, ("Rows without inputs", left_out))

    def deployed() -> SavedModel:
        from holdtrue.cli.deploy import size_model

        return size_model(data, x, y, groups, model, inputs, target)

    return Answer(
        summary.with_notes([*data.notes, *notes]),
        data,
        {
            "input": ", ".join(x),
            "target": y,
            "groups": groups,
            "points": int(labelled.sum()),
            "points without a target": len(unlabelled) or None,
            "basis": basis,
            "criterion": criterion,
        },
        deployed,
        size_lines(ask, x, y, groups, model, unlabelled=len(unlabelled) > 0),
    )


# --- shared -------------------------------------------------------------------------------------


def _with_groups(summary: Summary, groups: str | None) -> Summary:
    """The summary with what new data are, where the question names groups."""
    if groups is None:
        return summary
    sentence = f"New data are new groups: each value of {groups!r} is left out as a whole."
    return replace(summary, answer=f"{summary.answer} {sentence}")


def _with_reading(summary: Summary, kind: TargetKind, target: str) -> Summary:
    """The summary with how the target was read, where the caller did not say, at its head."""
    sentence = kind.sentence(target, "--target-type {}")
    return replace(summary, answer=f"{sentence}. {summary.answer}") if sentence else summary


@contextmanager
def _kept_warnings() -> Iterator[list[tuple[str, str]]]:
    """Keep the warnings of a fit away from the terminal; they are notes of the answer."""
    notes: list[tuple[str, str]] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            yield notes
        finally:
            notes += [("A warning of the fit", str(warning.message)) for warning in caught]


def _repeated(rows: Any, data: Data) -> Any:
    """Rows as often as their weights say: weights are repetitions, and domains stay whole."""
    weights = data.whole_weights("rows are repeated as often as they say")
    if weights is None:
        return rows
    if weights.sum() > _MAX_REPEATED:
        raise InputError(
            f"--weights repeat the rows {weights.sum():,.0f} times, above the limit of "
            f"{_MAX_REPEATED:,}. Divide them by a common factor."
        )
    times = weights.astype(int)
    again = {name: getattr(rows, name).repeat(times, axis=0) for name in ("X", "y", "groups")}
    return replace(rows, **again)


def _without_values(encoded: Any, domain: str) -> Any:
    """Moments of a table whose domains and levels are numbered instead of named."""
    columns = [_column_without_values(column) for column in encoded.columns]
    new_names: dict[str, str] = {}
    for old, new in zip(encoded.columns, columns, strict=True):
        new_names |= dict(zip(old.features, new.features, strict=True))
    moments = replace(
        encoded.moments,
        feature_names=tuple(new_names[name] for name in encoded.moments.feature_names),
        domains=tuple(f"{domain} {i}" for i in range(1, len(encoded.moments.domains) + 1)),
    )
    return replace(encoded, moments=moments, columns=tuple(columns))


def _without_classes(path: SelectionPath, target: str) -> SelectionPath:
    """The path with the classes of the target numbered instead of named."""
    evidence: Any = path.evidence
    changed = {"targets": tuple(f"{target} {i + 1}" for i in range(len(evidence.targets)))}
    if hasattr(evidence, "notes"):
        changed["notes"] = tuple(map(_without_examples, evidence.notes))
    return replace(path, evidence=replace(evidence, **changed))


def _without_examples(note: str) -> str:
    """A note of a fit without the class that it names as an example."""
    return re.sub(r" a class, such as .*\. Their effects", " a class. Their effects", note)


def _column_without_values(column: Any) -> Any:
    """How a column was encoded, its levels numbered instead of named."""
    features = column.features
    if column.levels:
        features = tuple(f"{column.name}=value {i}" for i in range(1, len(features) + 1))
    note = column.note.split(": its only value")[0]
    if note != column.note:
        note += ": it has one value"
    return replace(column, features=features, note=note)


def _has_points(chart: Any) -> bool:
    return any(series.look == "points" for series in getattr(chart, "series", ()))


def _count(option: str, text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise InputError(f"{option} must be a whole number of at least 1, or loo. Got {text!r}.")
    return int(text)


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"{option} must be a number or loo. Got {text!r}.") from error
