"""Columns one by one, each given those before it: by the score of their joint column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from holdtrue.categories.ranking import column_evidence
from holdtrue.categories.score import ColumnEstimate, Scoring, score_order
from holdtrue.columns.bins import Reading, readings
from holdtrue.columns.counting import Target, is_present, present_values, table_of
from holdtrue.columns.distinct import distinct
from holdtrue.columns.parts import Part
from holdtrue.path import SelectionPath
from holdtrue.sums import Profile


class Way(NamedTuple):
    """A column in one reading; values of the column and the rows' places among them."""

    column: int
    values: Any
    codes: np.ndarray
    reading: Reading


def column_ways(
    columns: Mapping[str, Any], kinds: Sequence[str], rows: Target, max_bins: int
) -> list[Way]:
    """Every column in every reading."""
    ways = []
    for j, (name, column) in enumerate(columns.items()):
        values, codes = distinct(name, column)
        table = table_of(codes, len(values), rows)
        # Values of rows of weight 0 only are not counted; their rows may have any code.
        codes = np.maximum(np.cumsum(is_present(table)) - 1, 0)[codes]
        values, table = present_values(values, table)
        ways += [
            Way(j, values, codes, reading)
            for reading in readings(kinds[j], values, table, max_bins)
        ]
    return ways


def forward_path(
    names: Sequence[str],
    estimates: Sequence[ColumnEstimate],
    ways: Sequence[Way],
    rows: Target,
    how: Scoring,
    n_wanted: int | None,
    min_features: int,
) -> SelectionPath:
    """Add the column whose joint column with those chosen scores best, if it gains clearly.

    The last column of the path is the first that does not, unless none is left.

    ``n_wanted`` columns are added whether they gain or not, the best ``min_features`` in any case.
    """
    joint = _Joint(np.zeros(len(rows.codes), dtype=np.intp), 1)
    order: list[int] = []
    scores = [estimates[0].no_column]
    size = forced = 0
    while len(order) < (n_wanted or len(names)):
        left = [way for way in ways if way.column not in order]
        tried = np.array([joint.score(way, rows, how) for way in left])
        n_columns = len({way.column for way in left if len(way.values) > 1})
        best = score_order(tried)
        clear = (
            at
            for at in best
            if n_wanted is not None
            or (
                tried[at] < scores[-1] - 1e-12 * abs(scores[-1])
                and how.is_clear(*joint.counts(left[at], rows), n_columns)
            )
        )
        chosen = next(clear, None)
        at = best[0] if chosen is None else chosen
        order.append(left[at].column)
        scores.append(float(tried[at]))
        if chosen is None:
            if size >= min_features:
                break
            forced += 1
        size += 1
        joint = joint.cut(left[at])[0]
    lowers = "lowers" if how.criterion.in_sample else "clearly lowers"
    reason = f"the {size} columns that n_features_to_select asks for"
    if n_wanted is None:
        reason = f"after {size - forced} of {len(names)} columns "
        reason += f"no further one {lowers} the estimate"
    if forced:
        reason += f"; min_features={min_features} keeps {forced} more"
    return SelectionPath(
        order=order,
        names=[names[j] for j in order],
        scores=scores,
        chosen_size=size,
        reason=reason,
        unit=how.unit,
        evidence=column_evidence(names, estimates, how),
    )


class _Joint(NamedTuple):
    """The column whose values are the combinations of values of the chosen columns."""

    codes: np.ndarray
    n_values: int

    def cut(self, way: Way) -> tuple[_Joint, np.ndarray]:
        """The joint column with one column more, and the old value that each new one is part of."""
        n_groups = len(way.reading.table)
        codes = self.codes * n_groups + way.reading.groups(way.values)[way.codes]
        if self.n_values * n_groups <= 4 * len(codes):
            parent = np.repeat(np.arange(self.n_values), n_groups)
            return _Joint(codes, len(parent)), parent
        seen, codes = np.unique(codes, return_inverse=True)
        return _Joint(codes, len(seen)), seen // n_groups

    def counts(self, way: Way, rows: Target) -> tuple[np.ndarray, np.ndarray]:
        """Table of the joint column with one column more, and the old value of each new one."""
        finer, parent = self.cut(way)
        table = table_of(finer.codes, finer.n_values, rows)
        present = is_present(table)
        return table[present], parent[present]

    def score(self, way: Way, rows: Target, how: Scoring) -> float:
        """Score of the joint column with one column more."""
        table, _ = self.counts(way, rows)
        profile = Profile.from_parts(
            "category", [Part(table, table[:0])], rows.n_samples, rows.classes
        )
        return how.criterion.score(profile.tables()[0], how.unseen)
