"""Sums of each site's rows; added up, they give the fit on the rows of all sites.

A site cannot know how the others' rows are encoded: which values a category has there, and what
the mean over all rows is. `site_sums` therefore sums finer features: one for each value that the
site has, and for numbers a mark of the missing ones beside the number, which is filled with the
site's own mean. The features of all rows are linear in these, ``x = z T + c``, and so `joined`
gets their moments from the moments of z: ``T' S T``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.linalg import block_diag

from holdtrue.errors import InputError, caution, did_you_mean, speaks
from holdtrue.records import Record
from holdtrue.sums.moments import Moments
from holdtrue.sums.packing import labels_from_json, labels_to_json, pack, unpack
from holdtrue.tables.column_summary import (
    CATEGORY,
    LARGEST,
    MAX_LEVELS,
    NOTES,
    ColumnSummary,
    Encoding,
    FeatureColumn,
    check_domain_count,
    check_options,
    column_summaries,
    encoding_of,
    kind_of_target,
)
from holdtrue.tables.encoder import TableMoments, check_memory, summed
from holdtrue.tables.table import Table
from holdtrue.targets import TargetKind

_SHOWN = 5  # most differences in a message
_NAMED = 100  # most values of a category that a site names
EMPTY = "empty"  # a column without a value can be of any kind
_WITHHELD = {
    "id": "it looks like an id",
    "few": "a value has too few rows",
    "large": "its numbers are too large to be squared",
}


@dataclass(frozen=True, eq=False)
class SiteColumn(Record):
    """What a site tells of a column besides moments."""

    # name, read_as: ``read_as`` is one of the kinds of `ColumnSummary`, or empty
    name: str
    read_as: str
    # n_missing, n_numbers: rows without a number, and with one
    n_missing: int = 0
    n_numbers: int = 0
    mean: float = 0.0  # of the numbers; it fills the missing ones
    # is_constant, marks_missing: whether there is one number only, and whether a second feature
    # marks the missing ones
    is_constant: bool = False
    marks_missing: bool = False
    # Values of a category, as `labels_to_json` writes them; each has a feature
    levels: Sequence[object] = ()
    counts: Sequence[int] = ()  # rows of each level
    n_joined: int = 0  # values that are not named and share the last feature
    withheld: Literal["", "id", "few", "large"] = ""  # why the column has no feature

    @property
    def n_features(self) -> int:
        """Features that the site summed for this column."""
        if self.read_as == CATEGORY:
            return len(self.levels) + (self.n_joined > 0)
        if self.read_as == EMPTY or self.withheld:
            return 0
        return 1 + self.marks_missing

    @property
    def contents(self) -> str:
        """What the sums tell of the column, in words."""
        if self.withheld:
            return f"nothing, {_WITHHELD[self.withheld]}"
        if self.read_as == EMPTY:
            return "that it is empty"
        if self.levels or self.n_joined:
            joined = f", and {self.n_joined:,} more together" * (self.n_joined > 0)
            return f"{len(self.levels):,} values by name{joined}"
        return self.read_as + ", with a mark of those that are missing" * self.marks_missing

    @property
    def labels(self) -> list[Any]:
        """The levels as Python values."""
        return labels_from_json(self.levels)

    def summary(self, kind: str) -> ColumnSummary:
        """The summary of the column read as ``kind``; an empty column can be of any kind."""
        summary = ColumnSummary(
            kind,
            n_missing=self.n_missing,
            n_numbers=self.n_numbers,
            mean=self.mean,
            low=self.mean if self.is_constant else -LARGEST,  # the range itself is not told
            high=self.mean if self.is_constant else LARGEST,
            values=dict(zip(self.labels, self.counts, strict=True)),
            n_joined=self.n_joined,
            withheld=f"{_WITHHELD[self.withheld]} at one site" if self.withheld else "",
        )
        if self.read_as == EMPTY and kind == CATEGORY:
            summary.values = {None: self.n_missing}
        return summary


@dataclass(frozen=True, eq=False)
class Site(Record):
    """What the sums of a site describe: columns, target, domain and numbers of rows."""

    # target, domain: the levels of a target are its classes; a domain tells its name and kind alone
    target: SiteColumn
    domain: SiteColumn
    # is_numeric, is_decided: whether the target is a number, and whether the site said so
    is_numeric: bool
    is_decided: bool
    columns: Sequence[SiteColumn]
    # n_rows, n_rows_in_file: rows that are summed, and all
    n_rows: int
    n_rows_in_file: int
    incomplete: Mapping[str, int]  # rows that lack a target or domain
    # Least number of rows that a value, class or domain needs; 1 without a floor
    min_count: int = 1


@dataclass(frozen=True)
class SiteSums:
    """Sums of one site's rows by domain, and what they are of; `site_sums` makes them."""

    site: Site
    # Of the finer features; a target of classes has a column for each, +1 or -1
    moments: Moments

    @speaks
    def to_bytes(self) -> bytes:
        """The sums as bytes (Arrow's IPC format with a head in JSON); nothing is pickled."""
        moments = np.frombuffer(self.moments.to_bytes(), dtype=np.uint8)
        return pack("SiteSums", {"site": self.site.to_dict()}, {"moments": moments})

    @classmethod
    @speaks
    def from_bytes(cls, data: bytes) -> SiteSums:
        """The sums that `to_bytes` gave. Anything else is refused with a `ValueError`."""
        head, arrays = unpack("SiteSums", data)
        moments = arrays.get("moments")
        if not isinstance(moments, np.ndarray) or moments.dtype != np.uint8:
            raise InputError("the bytes are damaged: they hold no moments. Write them again.")
        sums = cls(Site.from_dict(head.get("site")), Moments.from_bytes(moments.tobytes()))
        _check_consistent(sums)
        return sums


@speaks
def site_sums(
    table: Table,
    target: str,
    domain: str,
    *,
    target_type: str = "auto",
    leave_out: Iterable[str] = (),
    min_count: int = 1,
    n_rows_in_file: int | None = None,
    incomplete: Mapping[str, int] | None = None,
) -> SiteSums:
    """Sums of one site's rows, for `joined`.

    A category tells its 100 most frequent values; one that looks like an id (more values than 20,
    and than half the rows) tells nothing. Of numbers neither least nor largest is told.

    Parameters
    ----------
    table : Table
    target, domain : str
        Columns of the table, in which no value may be missing.
    target_type : {"auto", "classes", "numeric"}
        All sites must read the target alike.
    leave_out : iterable of str
        Columns that are not summed.
    min_count : int
        Where a value of a category has fewer rows than this at a domain, but at least one, it is
        not named, and missing numbers are not told from the mean; a truth value is left out. A
        domain or class with fewer rows is refused.
    n_rows_in_file, incomplete : optional
        Rows before those without target or domain were left out, and how many lacked which.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from holdtrue.tables import open_table
    >>> from holdtrue.tables.site_sums import joined, site_sums
    >>> north = pa.table({"dose": [1.0, 2.0, 4.0], "plan": ["a", "b", "a"],
    ...                   "sick": ["no", "yes", "no"], "site": ["N", "N", "N"]})
    >>> south = pa.table({"dose": [3.0, None, 5.0], "plan": ["c", "b", "b"],
    ...                   "sick": ["no", "no", "no"], "site": ["S", "S", "S"]})
    >>> sums = [site_sums(open_table(rows), "sick", "site") for rows in (north, south)]
    >>> both = joined({"north": sums[0], "south": sums[1]})
    >>> both.moments.domains, both.moments.feature_names, both.classes
    (('N', 'S'), ('dose', 'plan=b', 'plan=a', 'plan=c'), ('no', 'yes'))
    """
    check_options(target_type, MAX_LEVELS)
    summaries = column_summaries(table, target, domain, leave_out)
    kind = kind_of_target(target, summaries[target], target_type)
    check_domain_count(domain, summaries[domain])
    names = [name for name in summaries if name not in (target, domain)]
    columns = [_site_column(name, summaries[name], table.n_rows) for name in names]
    if not sum(column.n_features for column in columns):
        raise InputError("no column is left to sum.")
    classes = None if kind.is_numeric else summaries[target].sorted_values()
    domains = summaries[domain].sorted_values()
    encoding = Encoding(target, domain, kind, classes, domains, tuple(map(_finer, columns)))
    moments = summed(table, encoding, every_class=True)
    moments = replace(moments, feature_names=None)
    if min_count > 1:
        _check_floor(moments, encoding, min_count)
        columns, moments = _with_floor(columns, moments, min_count)
    shown_target = _site_column(target, summaries[target], table.n_rows)
    if classes is not None:
        shown_target = SiteColumn(target, shown_target.read_as)
        shown_target = _with_levels(shown_target, classes, summaries[target])
    site = Site(
        target=shown_target,
        domain=SiteColumn(domain, summaries[domain].kind),
        is_numeric=kind.is_numeric,
        is_decided=kind.is_decided,
        columns=columns,
        n_rows=table.n_rows,
        n_rows_in_file=table.n_rows if n_rows_in_file is None else n_rows_in_file,
        incomplete=incomplete or {},
        min_count=min_count,
    )
    return SiteSums(site, moments)


def _site_column(name: str, summary: ColumnSummary, n_rows: int) -> SiteColumn:
    """What a site tells of a column, before the floor is applied."""
    if summary.is_empty:
        return SiteColumn(name, EMPTY, n_rows)
    if summary.looks_like_an_id(n_rows, MAX_LEVELS):
        return SiteColumn(name, CATEGORY, withheld="id")
    column = SiteColumn(name, summary.kind, summary.n_missing)
    if summary.is_category:
        named = summary.frequent_values()[:_NAMED]
        n_joined = len(summary.values) - len(named)
        return replace(_with_levels(column, named, summary), n_joined=n_joined)
    if summary.largest > LARGEST:
        return SiteColumn(name, summary.kind, withheld="large")
    return replace(
        column,
        n_numbers=int(summary.n_numbers),
        mean=summary.mean,
        is_constant=summary.is_constant,
        marks_missing=summary.n_missing > 0,
    )


def _with_levels(column: SiteColumn, labels: Iterable[Any], summary: ColumnSummary) -> SiteColumn:
    """The column with these values as its levels, and the number of rows of each."""
    counts = [int(summary.values[label]) for label in labels]
    return replace(column, levels=labels_to_json(labels), counts=counts)


def _finer(column: SiteColumn) -> FeatureColumn:
    """How a site encodes a column: finer than all sites together would."""
    features = (column.name,) * column.n_features
    levels = tuple(column.labels)
    kind = CATEGORY if column.read_as == EMPTY else column.read_as
    return FeatureColumn(column.name, features, "", column.n_missing, column.mean, levels, kind)


# --- floor on small counts ------------------------------------------------------------------------


def _check_floor(moments: Moments, encoding: Encoding, min_count: int) -> None:
    """Refuse domains, and classes in a domain, of fewer rows than the floor."""
    sizes = moments.n_samples
    what_to_do = "Leave those rows out, or join it with another."
    for d in np.flatnonzero(sizes < min_count)[:1]:
        raise InputError(
            f"the domain {moments.domains[d]!r} of {encoding.domain!r} has {sizes[d]:g} rows, "
            f"below the min_count of {min_count}. {what_to_do}"
        )
    if encoding.classes is None or moments.mean_y is None:
        return
    counts = np.rint(sizes[:, None] * (1 + moments.mean_y) / 2)
    for d, k in np.argwhere((counts > 0) & (counts < min_count))[:1]:
        raise InputError(
            f"the class {encoding.classes[k]!r} of {encoding.target!r} has {counts[d, k]:g} rows "
            f"in the domain {moments.domains[d]!r}, below the min_count of {min_count}. "
            f"{what_to_do}"
        )


def _with_floor(
    columns: list[SiteColumn], moments: Moments, min_count: int
) -> tuple[list[SiteColumn], Moments]:
    """Columns and moments in which nothing but numbers has fewer rows than the floor."""
    sums = moments.n_samples[:, None] * moments.mean_x
    kept, blocks, start = [], [], 0
    for column in columns:
        at = sums[:, start : start + column.n_features]
        start += column.n_features
        block = np.eye(column.n_features)
        if column.read_as == CATEGORY and column.n_features:
            column, block = _joined_levels(column, np.rint(at), min_count)
        elif column.n_features:
            missing = at[:, 1] if column.marks_missing else np.zeros(len(at))
            trues = at[:, 0] - column.mean * missing
            rows = np.column_stack([trues, moments.n_samples - missing - trues])
            if column.read_as == "bool" and _any_few(np.rint(rows), min_count):
                column = SiteColumn(column.name, column.read_as, withheld="few")
                block = block[:, :0]
            elif _any_few(np.rint(missing), min_count):
                n_numbers = column.n_numbers + column.n_missing
                column = replace(column, marks_missing=False, n_missing=0, n_numbers=n_numbers)
                block = block[:, :1]
        kept.append(column)
        blocks.append(block)
    T = block_diag(*blocks)
    return kept, mapped(moments, T, np.zeros(T.shape[1]))


def _joined_levels(
    column: SiteColumn, rows: np.ndarray, min_count: int
) -> tuple[SiteColumn, np.ndarray]:
    """A category whose small levels share a feature, and which features go where.

    ``rows`` has shape (n_domains, n_features): rows of each level, and of those not named.
    """
    n_levels = len(column.levels)
    order = sorted(range(n_levels), key=lambda j: (not _any_few(rows[:, [j]], min_count), -j))
    hidden: list[int] = []
    other = rows[:, n_levels:].sum(axis=1, keepdims=True)
    for j in order:  # small ones first, then the least frequent while what they share is small
        if not (_any_few(rows[:, [j]], min_count) or _any_few(other, min_count)):
            break
        hidden.append(j)
        other = other + rows[:, [j]]
    named = [j for j in range(n_levels) if j not in hidden]
    n_joined = column.n_joined + len(hidden)
    block = np.zeros((rows.shape[1], len(named) + (n_joined > 0)))
    block[named, np.arange(len(named))] = 1.0
    block[hidden, -1] = 1.0
    block[n_levels:, -1] = 1.0
    levels = [column.levels[j] for j in named]
    counts = [column.counts[j] for j in named]
    column = replace(column, levels=levels, counts=counts, n_joined=n_joined)
    return replace(column, n_missing=column.n_missing if None in column.labels else 0), block


def _any_few(rows: np.ndarray, min_count: int) -> bool:
    return bool(((rows > 0) & (rows < min_count)).any())


def mapped(moments: Moments, T: np.ndarray, offset: np.ndarray) -> Moments:
    """Moments of ``X T + offset`` from those of X."""
    assert moments.scatter_xy is not None
    scatter = np.einsum("jp,djk,kq->dpq", T, moments.scatter_xx, T, optimize=True)
    diagonal = np.einsum("dii->di", scatter)
    diagonal[:] = np.maximum(diagonal, 0.0)  # rounding
    return replace(
        moments,
        mean_x=moments.mean_x @ T + offset,
        scatter_xx=scatter,
        scatter_xy=np.einsum("jp,dj...->dp...", T, moments.scatter_xy),
        rest_x=None if moments.rest_x is None else moments.rest_x @ T,
        feature_names=None,
    )


def _check_consistent(sums: SiteSums) -> None:
    """Refuse sums whose parts contradict each other."""
    site, moments = sums.site, sums.moments
    columns = [site.target, site.domain, *site.columns]
    n_classes = len(site.target.levels)
    right = moments.mean_y is not None and (
        sum(column.n_features for column in site.columns) == moments.n_features
        and moments.mean_y.shape[1:] == (() if site.is_numeric else (n_classes,))
        and len({column.name for column in columns}) == len(columns)
        and moments.n_samples.sum() == site.n_rows
        and site.n_rows <= site.n_rows_in_file
    )
    for column in columns:
        labels = column.labels
        numbers = (column.n_missing, column.n_numbers, column.n_joined, *column.counts)
        right = (
            right
            and len(set(labels)) == len(column.counts) == len(labels)
            and all(0 <= number <= site.n_rows for number in numbers)
            and abs(column.mean) <= LARGEST
            and column.read_as in (*NOTES, EMPTY)
        )
    if not right:
        raise InputError(
            "the bytes are damaged: what they say of the columns contradicts the sums. Write them "
            "again."
        )


# --- sites added up -------------------------------------------------------------------------------


@speaks
def joined(sites: Mapping[str, SiteSums], *, leave_out: Iterable[str] = ()) -> TableMoments:
    """Moments of the rows of all sites, encoded as `moments_of` would encode them in one table.

    Parameters
    ----------
    sites : dict of SiteSums
        By the name that an error calls the site, such as that of its file.
    leave_out : iterable of str
        Columns that are not used as features.

    Returns
    -------
    TableMoments
    """
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
    encoding = encoding_of(summaries, n_rows, target, domain, target_type, MAX_LEVELS)
    is_decided = all(head.is_decided for head in heads)
    if not (numeric or is_decided):
        _check_reading(target, summaries[target])
    check_memory(encoding)
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
    """Kinds of a site's target, domain and columns, in words; none for an empty one."""
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
