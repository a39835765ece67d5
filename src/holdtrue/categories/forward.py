"""Columns one by one, each given those chosen before it: by the score of their joint column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from holdtrue.categories.estimate import ColumnEstimate, column_evidence, score_order
from holdtrue.categories.score import Scoring
from holdtrue.categories.shape import best_shapes
from holdtrue.columns.bins import Part, is_present, present_values, readings
from holdtrue.columns.counting import Target, table_of
from holdtrue.columns.distinct import distinct
from holdtrue.path import SelectionPath
from holdtrue.sums import Profile


class Candidate(NamedTuple):
    """A column in one reading: its values, or its bins."""

    column: int
    cells: np.ndarray  # shape (n_rows,): value or bin of each row, from 0
    n_cells: int


def candidates_of(
    columns: Mapping[str, Any], kinds: Sequence[str], rows: Target, max_bins: int
) -> list[Candidate]:
    """Every column in every reading."""
    candidates = []
    for j, (name, column) in enumerate(columns.items()):
        values, codes = distinct(name, column)
        table = table_of(codes, len(values), rows)
        # Values of rows of weight 0 only are not counted; their rows may have any cell.
        place = np.maximum(np.cumsum(is_present(table)) - 1, 0)
        values, table = present_values(values, table)
        for reading in readings(kinds[j], values, table, max_bins):
            n_cells = len(reading.table)
            cells = reading.groups(values)[place].astype(np.min_scalar_type(n_cells))
            candidates.append(Candidate(j, cells[codes], n_cells))
    return candidates


def forward_path(
    names: Sequence[str],
    estimates: Sequence[ColumnEstimate],
    candidates: Sequence[Candidate],
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
        left = [candidate for candidate in candidates if candidate.column not in order]
        tried = np.array([joint.score(candidate, rows, how) for candidate in left])
        n_columns = len({candidate.column for candidate in left if candidate.n_cells > 1})
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
    shapes = best_shapes(names, estimates, rows.classes, how)
    return SelectionPath(
        order=order,
        names=[names[j] for j in order],
        scores=scores,
        chosen_size=size,
        reason=reason,
        unit=how.unit,
        evidence=column_evidence(names, estimates, how.criterion.predictor, shapes),
    )


class _Joint(NamedTuple):
    """The column whose values are the combinations of values of the chosen columns."""

    codes: np.ndarray
    n_values: int

    def cut(self, by: Candidate) -> tuple[_Joint, np.ndarray]:
        """The joint column with one column more, and the old value that each new one is part of."""
        codes = self.codes * by.n_cells + by.cells
        if self.n_values * by.n_cells <= 4 * len(codes):
            parent = np.repeat(np.arange(self.n_values), by.n_cells)
            return _Joint(codes, len(parent)), parent
        seen, codes = np.unique(codes, return_inverse=True)
        return _Joint(codes, len(seen)), seen // by.n_cells

    def counts(self, by: Candidate, rows: Target) -> tuple[np.ndarray, np.ndarray]:
        """Table of the joint column with one column more, and the old value of each new one."""
        finer, parent = self.cut(by)
        table = table_of(finer.codes, finer.n_values, rows)
        present = is_present(table)
        return table[present], parent[present]

    def score(self, by: Candidate, rows: Target, how: Scoring) -> float:
        """Score of the joint column with one column more."""
        part = Part(self.counts(by, rows)[0], np.zeros((0, 0)))
        profile = Profile.from_parts("category", [part], rows.n_samples, rows.classes)
        return float(how.criterion.scores(profile.read()[1], how.unseen)[0])
