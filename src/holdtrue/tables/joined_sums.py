"""Sums of sites added up: the moments of all rows in one encoding."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from holdtrue.errors import InputError, caution, did_you_mean, speaks
from holdtrue.sums.moments import Moments
from holdtrue.tables.column_summary import (
    CATEGORY,
    MAX_LEVELS,
    NOTES,
    ColumnSummary,
    Encoding,
    FeatureColumn,
    check_options,
    encoding_of,
    kind_of_target,
)
from holdtrue.tables.encode import TableMoments, check_memory
from holdtrue.tables.site_sums import EMPTY, Site, SiteColumn, SiteSums, mapped
from holdtrue.targets import TargetKind

_SHOWN = 5  # most differences in a message


@speaks
def joined(
    sites: Mapping[str, SiteSums], *, leave_out: Iterable[str] = (), max_levels: int = MAX_LEVELS
) -> TableMoments:
    """Moments of the rows of all sites, encoded as `moments_of` would encode them in one table.

    ``sites`` are by the name that an error calls them; the other parameters are those of
    `moments_of`.
    """
    check_options("auto", max_levels)
    if not sites:
        raise InputError("expected the sums of at least one site. Got none.")
    left_out = set(leave_out)
    _check_alike(sites, left_out)
    heads = [sums.site for sums in sites.values()]
    target, domain = heads[0].target.name, heads[0].domain.name
    names = [column.name for column in heads[0].columns if column.name not in left_out]
    by_name = [{column.name: column for column in head.columns} for head in heads]
    summaries = {
        target: _merged([head.target for head in heads]),
        domain: ColumnSummary(heads[0].domain.read_as),
        **{name: _merged([columns[name] for columns in by_name]) for name in names},
    }
    labels = [label for sums in sites.values() for label in sums.moments.domains]
    summaries[domain].values = dict.fromkeys(labels, 1)
    n_rows = sum(head.n_rows for head in heads)
    numeric = heads[0].is_numeric
    target_type = "numeric" if numeric else "classes"
    encoding = encoding_of(summaries, n_rows, target, domain, target_type, max_levels)
    is_decided = all(head.is_decided for head in heads)
    if not (numeric or is_decided):
        _check_reading(target, summaries[target])
    check_memory(domain, len(encoding.domains), len(encoding.features))
    total: Any = sum(
        _features_of_all(sums, columns, encoding)
        for sums, columns in zip(sites.values(), by_name, strict=True)
    )
    _warn_of_joined(sites, encoding)
    kind = TargetKind(numeric, encoding.kind.n_values, is_decided)
    return TableMoments(total, encoding.classes, kind, encoding.columns, n_rows)


def _features_of_all(
    sums: SiteSums, columns: Mapping[str, SiteColumn], encoding: Encoding
) -> Moments:
    """The moments of a site in the features of all sites."""
    starts, start = {}, 0
    for column in sums.site.columns:
        starts[column.name] = start
        start += column.n_features
    T = np.zeros((sums.moments.n_features, len(encoding.features)))
    offset = np.zeros(len(encoding.features))
    first = 0
    for wanted in encoding.columns:
        at = slice(first, first + len(wanted.features))
        first = at.stop
        if wanted.features:
            column = columns[wanted.name]
            rows = slice(starts[wanted.name], starts[wanted.name] + column.n_features)
            T[rows, at], offset[at] = _block(column, wanted)
    moments = replace(mapped(sums.moments, T, offset), feature_names=tuple(encoding.features))
    return _with_all_classes(moments, sums.site.target.labels, encoding.classes)


def _block(column: SiteColumn, wanted: FeatureColumn) -> tuple[np.ndarray, np.ndarray]:
    """Which features of the site make those wanted, and what is added."""
    n_wanted = len(wanted.features)
    if not wanted.levels:
        assert wanted.fill is not None
        if column.read_as == EMPTY:
            return np.zeros((0, n_wanted)), np.array([wanted.fill])
        block = np.full((column.n_features, 1), wanted.fill - column.mean)  # where it is missing
        block[0] = 1.0
        return block, np.zeros(n_wanted)
    # The last place is for values that share a feature; none does where a category has two values.
    one_hot = np.eye(len(wanted.levels) + 1)[:, :n_wanted]
    place_of = {label: j for j, label in enumerate(wanted.levels)}
    if column.read_as == EMPTY:
        return np.zeros((0, n_wanted)), one_hot[place_of.get(None, -1)]
    places = [place_of.get(label, -1) for label in column.labels] + [-1] * (column.n_joined > 0)
    return one_hot[places], np.zeros(n_wanted)


def _with_all_classes(
    moments: Moments, known: list[Any], classes: tuple[Any, ...] | None
) -> Moments:
    """The moments with the targets of all classes; no row has one that the site does not know."""
    if classes is None:
        return moments
    wanted = classes[1:] if len(classes) == 2 else classes
    at = [known.index(label) if label in known else len(known) for label in wanted]
    fields: dict[str, Any] = {}
    for name in ("mean_y", "scatter_xy", "scatter_yy", "rest_y"):
        values = getattr(moments, name)
        if values is not None:
            absent = np.full((*values.shape[:-1], 1), -1.0 if name == "mean_y" else 0.0)
            taken = np.concatenate([values, absent], axis=-1)[..., at]
            fields[name] = taken[..., 0] if len(wanted) == 1 else taken
    return replace(moments, **fields)


def _merged(columns: list[SiteColumn]) -> ColumnSummary:
    """Summary of a column over all sites."""
    kind = next((column.read_as for column in columns if column.read_as != EMPTY), CATEGORY)
    total = ColumnSummary(kind)
    for column in columns:
        total.merge(column.summary(kind))
    return total


# --- what sites must have in common ---------------------------------------------------------------


def _check_alike(sites: Mapping[str, SiteSums], left_out: set[str]) -> None:
    """Refuse sites whose tables differ, and show how."""
    (first, sums), *others = sites.items()
    names = [column.name for column in sums.site.columns]
    for name in left_out.difference(names):
        raise InputError(f"no column {name!r} in {first}.{did_you_mean(name, names)}")
    known = _contents(sums.site, left_out)
    for other, other_sums in others:
        contents = _contents(other_sums.site, left_out)
        differences = [f"no column {what}" for what in known.keys() - contents.keys()]
        differences += [f"a column {what} more" for what in contents.keys() - known.keys()]
        for what in known.keys() & contents.keys():
            here, elsewhere = known[what], contents[what]
            if here and elsewhere and here != elsewhere:
                differences.append(f"{what} is {elsewhere}, not {here}")
            known[what] = here or elsewhere
        if differences:
            shown = "; ".join(sorted(differences)[:_SHOWN])
            more = f"; and {len(differences) - _SHOWN} more" * (len(differences) > _SHOWN)
            raise InputError(
                f"sites must have the same columns. {other} differs from {first}: {shown}{more}. "
                "Write its sums again, with other types or without those columns."
            )


def _contents(site: Site, left_out: set[str]) -> dict[str, str]:
    """What target, domain and columns of a site hold, in words; nothing where one is empty."""
    target, domain = site.target, site.domain
    kind = "a number" if site.is_numeric else f"classes ({NOTES[target.read_as]})"
    columns = [column for column in site.columns if column.name not in left_out]
    return {
        "the target": f"{target.name!r}, {kind}",
        "the domain": f"{domain.name!r} ({NOTES[domain.read_as]})",
        **{repr(c.name): "" if c.read_as == EMPTY else f"a {NOTES[c.read_as]}" for c in columns},
    }


def _check_reading(target: str, summary: ColumnSummary) -> None:
    """Refuse classes that all sites together would read as a number."""
    if kind_of_target(target, summary, "auto").is_numeric:
        raise InputError(
            f"each site reads {target!r} as classes, but all rows together as a number. Write the "
            "sums again with target_type classes or numeric."
        )


def _warn_of_joined(sites: Mapping[str, SiteSums], encoding: Encoding) -> None:
    """Warn where values without a name may be among those that have a feature."""
    levels = {column.name: set(column.levels) for column in encoding.columns if column.features}
    unsure = {
        column.name: None
        for sums in sites.values()
        for column in sums.site.columns
        if column.n_joined and levels.get(column.name, set()) - set(column.labels)
    }
    if unsure:
        caution(
            f"sites did not name rare values of {', '.join(map(repr, unsure))}. They are taken "
            "together, and the answer may differ from that on all rows."
        )
