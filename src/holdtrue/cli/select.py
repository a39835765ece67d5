"""`holdtrue select`: steady features, and which predictor is better at left-out domains."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from holdtrue.charts import number
from holdtrue.cli.answer import (
    Answer,
    Name,
    answered,
    call,
    kept_model,
    kept_warnings,
    opened_lines,
    program,
    promise_on,
    without_classes,
    without_examples,
    without_values,
)
from holdtrue.cli.ask import Ask, Data
from holdtrue.compare import (
    Comparison,
    DomainAverageClassifier,
    DomainAverageRegressor,
    compare_models,
)
from holdtrue.compare.comparison import SQUARED_ERROR
from holdtrue.deployed import Promise, SavedModel
from holdtrue.deployed.contents import on_needed_columns, slim
from holdtrue.domains import (
    SteadyRidgeClassifier,
    SteadyRidgeRegressor,
    TGreedyClassifier,
    TGreedyRegressor,
)
from holdtrue.errors import InputError, did_you_mean, named
from holdtrue.evidence import DomainEvidence, PenaltyEvidence
from holdtrue.path import SelectionPath
from holdtrue.report.answers.select import columns_notes, select_summary
from holdtrue.report.summary import an
from holdtrue.tables.encoder import TableMoments, TableRows, moments_of, rows_of
from holdtrue.tables.site_sums import joined


def answer(
    ask: Ask,
    target: str | None,
    domain: str | None,
    *,
    domain_order: str,
    more: list[str] | None,
    sums: bool,
    target_type: str,
    average: bool | None,
    **settings: Any,
) -> Answer:
    """Steady features, from a table or from the sums of sites.

    ``settings`` are those of `TGreedyRegressor`, and ``keep``; ``average`` lets the average of the
    default field compete, which needs the rows. None: where that takes a minute at most.
    """
    if sums:
        _check_sums_options(ask, target, domain, target_type)
        for option, given in (("--average", average), ("--domain-order", domain_order != "any")):
            if given:
                raise InputError(f"{option} needs rows, and sums have none. Leave it out.")
        data = ask.open_sums([ask.file, *(more or [])])
        files: Any = data.table
        with kept_warnings() as notes:
            encoded = joined(files.sites, leave_out=data.dropped)
        return _selected(replace(data, kind=encoded.target_kind), encoded, notes, **settings)
    if more:
        raise InputError(
            f"expected one FILE. Got {1 + len(more)}. Several files of sums need --sums."
        )
    if target is None or domain is None:
        missing = "--target" if target is None else "--domain"
        raise InputError(f"missing option '{missing}'. See holdtrue select --help.")
    data = ask.open(target, domain, "--domain", target_type=target_type, date_parts=True)
    with kept_warnings() as notes:
        encoded = moments_of(
            data.table,
            target,
            domain,
            target_type=data.kind.target_type,
            leave_out=data.dropped,
            sample_weight=data.weights,
        )
    notes = [*data.time_notes(domain_order), *notes]
    in_time = domain_order == "time"
    if average is None:
        # In time it would be fitted anew for every domain.
        average = not in_time and encoded.n_rows * encoded.moments.n_features <= _MOST_CELLS
    settings |= {"average": average, "in_time": in_time, "target_type": target_type}
    rows = data.encoded_rows() if average or in_time else None
    return _selected(data, encoded, notes, rows, **settings)


def _check_sums_options(ask: Ask, target: str | None, domain: str | None, target_type: str) -> None:
    """Refuse options that the sites have decided."""
    at_sites = {
        "--target": target,
        "--domain": domain,
        "--target-type": target_type != "auto",
        "--type": ask.types,
        "--only": ask.only,
        "--weights": ask.weights,
        "--table": ask.table,
        "--encoding": ask.encoding,
        "--missing-target": ask.missing_target != "drop",
    }
    for option, given in at_sites.items():
        if given:
            raise InputError(f"{option} goes with holdtrue sums, at each site. Leave it out.")


_MOST_CELLS = 100_000  # rows times features that the average takes about a minute for
# What `experiments.contest` found, said where the average did not compete.
_AVERAGE = "An average of six models often predicts better; --average lets it compete."


def _selected(
    data: Data,
    encoded: TableMoments,
    notes: list[tuple[str, str]],
    rows: TableRows | None = None,
    *,
    keep: list[str] | None,
    average: bool = False,
    in_time: bool = False,
    target_type: str | None = None,
    **settings: Any,
) -> Answer:
    """The answer from sums; ``rows`` are for the average and the contest in time.

    Without a ``target_type``, as it was typed, there are no rows to write lines of Python for.
    """
    target, domain = data.target, str(data.groups)
    named_columns, labels = encoded.columns, encoded.moments.domains
    if data.ask.no_values:
        encoded = _numbered(encoded, domain)
    features = encoded.moments.feature_names or ()
    for name in keep or ():
        if name not in features:
            close = did_you_mean(name, features) or f" There are {named(features)}."
            raise InputError(f"no feature {name!r} (--keep).{close}")
    settings |= {"fixed_features": keep or None}
    with kept_warnings() as fit_notes:
        model = _fitted(TGreedyRegressor, TGreedyClassifier, encoded, **settings)
    models, contest = _contest(model, encoded, labels, rows if average else None)
    path = model.path_
    if data.ask.no_values:
        path = without_classes(path, target)
        fit_notes = [(what, without_examples(why)) for what, why in fit_notes]
    summary = select_summary(path, target, domain, None if contest is None else contest.to_path())
    answer = summary.answer
    if "SteadyRidge" in models:
        steady = models["SteadyRidge"].path_.evidence_as(PenaltyEvidence)
        answer += f" A ridge on all rows pooled has {number(steady.pooled_error)}, with the "
        answer += "penalty that turned out best."
    if target_type is not None and contest is not None and not average:
        answer += f" {_AVERAGE}"
    if in_time and rows is not None:
        contest = _next_in_time(models, rows, data)
        answer += f" {_time_words(contest, domain)}"
    best = "T-Greedy" if contest is None else contest.recommended
    evidence = path.evidence_as(DomainEvidence)
    settled = {
        "target": target,
        "domain": f"{domain} ({len(evidence.domains)})",
        "rows": f"{encoded.n_rows:,}",
        "features": len(features),
        "rule": evidence.rule,
        "stop": settings["stop"],
    }
    return answered(
        replace(summary, answer=answer),
        data,
        settled,
        [*columns_notes(encoded.columns, has_domains=True), *notes, *fit_notes],
        deployed=partial(_model, data, best, models[best], contest, named_columns),
        python="" if target_type is None else _lines(data, target_type, model, models[best]),
    )


def _fitted(regressor: Any, classifier: Any, encoded: TableMoments, **settings: Any) -> Any:
    """The estimator for the kind of the target, fitted to the sums."""
    if encoded.classes is None:
        return regressor(**settings).fit_statistics(encoded.moments)
    return classifier(**settings).fit_statistics(encoded.moments, classes=encoded.classes)


def _contest(
    model: Any, encoded: TableMoments, labels: Sequence[Any], rows: TableRows | None
) -> tuple[dict[str, Any], Comparison | None]:
    """T-Greedy, SteadyRidge and, where rows are given, DomainAverage at left-out domains.

    ``labels`` are the domains as the rows name them. Returns the fitted models, and the contest
    where domains were left out.
    """
    path: SelectionPath = model.path_
    evidence, moments, classes = path.evidence_as(DomainEvidence), encoded.moments, encoded.classes
    models = {"T-Greedy": model}
    if not len(evidence.new_errors):
        return models, None
    errors = {"T-Greedy": evidence.new_errors}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # T-Greedy's fit has said the same
        steady = _fitted(SteadyRidgeRegressor, SteadyRidgeClassifier, encoded)
        models["SteadyRidge"] = steady
        errors["SteadyRidge"] = steady.path_.evidence_as(PenaltyEvidence).new_errors
        if rows is not None:
            average: Any = DomainAverageClassifier() if classes else DomainAverageRegressor()
            models["DomainAverage"] = average.fit(rows.X, rows.y, groups=rows.groups)
            judged = average.comparison_
            by_label = dict(zip(judged.units, judged.errors[-1], strict=True))
            # Squared errors of shares, summed over K classes, in the units of codes -1 and +1.
            scale = 4 / len(classes) if classes else 1.0
            by_domain = [by_label[str(label)] for label in labels]
            errors["DomainAverage"] = scale * np.array(by_domain)
    n_features = [float(len(path.chosen)), *[float(moments.n_features)] * (len(models) - 1)]
    contest = Comparison(
        names=tuple(errors),
        errors=np.array(list(errors.values())),
        null=evidence.held_out[0],
        units=evidence.domains,
        n_features=np.array(n_features),
        seconds=np.arange(len(errors), dtype=np.float64),  # in the order of their cost
        scoring=SQUARED_ERROR,
        prefer_simple=False,  # T-Greedy's few features are told all the same
    )
    return models, contest


def _next_in_time(models: dict[str, Any], rows: TableRows, data: Data) -> Comparison:
    """The same models at domains that are predicted from those before them."""
    field = {name: clone(model) for name, model in models.items()}
    if keep := field["T-Greedy"].fixed_features:
        field["T-Greedy"].set_params(fixed_features=[rows.feature_names.index(k) for k in keep])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the fit to all domains has said the same
        contest = compare_models(
            field,
            rows.X,
            rows.y,
            groups=rows.groups,
            cv="time",
            target_type=data.kind.target_type,
            random_state=data.ask.seed,
        )
    return replace(contest, prefer_simple=False)


def _time_words(contest: Comparison, domain: str) -> str:
    """What the contest in time says, in a sentence."""
    unit = f"has {an(contest.scoring)} of"
    models = []
    for name, errors in zip(contest.names, contest.errors, strict=True):
        low, high = map(number, contest.interval(name))
        models.append(f"{name} {unit} {number(float(errors.mean()))} ({low} to {high})")
        unit = ""
    without = "the mean" if contest.scoring == SQUARED_ERROR else "the most frequent class"
    return (
        f"Each {domain!r} from those before it: {', '.join(models)}, {without} "
        f"{number(float(contest.null.mean()))}; take {contest.recommended}."
    ).replace("  ", " ")


def _numbered(encoded: TableMoments, domain: str) -> TableMoments:
    """Moments of a table whose domains and levels are numbered instead of named."""
    columns = tuple(without_values(column) for column in encoded.columns)
    new_names: dict[str, str] = {}
    for old, new in zip(encoded.columns, columns, strict=True):
        new_names |= dict(zip(old.features, new.features, strict=True))
    moments = replace(
        encoded.moments,
        feature_names=tuple(new_names[name] for name in encoded.moments.feature_names or ()),
        domains=tuple(f"{domain} {i}" for i in range(1, len(encoded.moments.domains) + 1)),
    )
    return replace(encoded, moments=moments, columns=columns)


def _model(
    data: Data, name: str, model: Any, contest: Comparison | None, columns: Sequence[Any]
) -> SavedModel:
    """The predictor that the answer recommends, on those of ``columns`` that it needs.

    Without a contest, or with one by squared error of classes, the promise comes from fits to the
    rows; the average has judged its classes itself.
    """
    if contest is not None and (data.kind.is_numeric or contest.scoring != SQUARED_ERROR):
        promise = Promise.from_contest(contest, name, data.groups)
    elif isinstance(model, DomainAverageClassifier):
        promise = Promise.from_contest(model.share_wrong_, "average", data.groups)
    else:
        rows = data.encoded_rows()
        promise = promise_on(data, model, rows.X, rows.y, rows.groups)
    model, needed = on_needed_columns(slim(model), columns)
    return kept_model(data, name, model, needed, promise)


def _lines(data: Data, target_type: str, model: Any, best: Any) -> str:
    """Python code that does the same; ``model`` has the settings, ``best`` errs least."""
    columns: dict[str, Any] = {"target_type": target_type, "leave_out": tuple(data.dropped)}
    weights = {"sample_weight": Name("weights")} if data.ask.weights else {}
    sums = call(moments_of, Name("table"), data.target, data.groups, **columns, **weights)
    fit = f"fit_statistics(sums.moments{', classes=sums.classes' * hasattr(model, 'classes_')})"
    lines = [
        f"sums = {sums}",
        f"model = {call(type(model), **model.get_params())}.{fit}",
        "print(model.feature_names_in_[model.support_], model.path_.reason)",
    ]
    if isinstance(best, DomainAverageClassifier | DomainAverageRegressor):
        rows = call(rows_of, Name("table"), data.target, data.groups, **columns, **weights)
        lines.append(f"rows = {rows}")
        fit = f"fit(rows.X, rows.y, groups=rows.groups{', sample_weight=weights' * bool(weights)})"
    if best is not model:
        lines.append(f"best = {call(type(best))}.{fit}")
        lines.append("print(best.new_domain_score_, best.new_domain_interval_)")
    return program(*opened_lines(data), *lines)
