"""New data are new groups: the losses of `shrunk` and `kernel` with a whole group left out.

Notation
--------
============  ====================================================================================
c_vgk, n_vg   ``counts``: a row per value v and group g that meet; its sum
C_vk, N_v     sums of a value over groups
M_gk, M_g     sums of a group over values
N_k, N        sums of everything; G groups with rows
π⁻            ``(N_k - M_gk + 1/K)/(N - M_g + 1)``
q⁻            ``(C_vk - c_vgk + a π_k⁻)/(N_v - n_vg + a)``, the same for all rows of (v, g)
L_g, L̄        sum of the losses of a group's rows; sum over groups divided by N
============  ====================================================================================

Where to find it
----------------
=======================================  ==========================================================
sums by value and group                  `holdtrue.sums.group_profile.meet`
shrunk shares                            `group_scores`, `estimate_groups`
rules (4) and (5)                        `estimate_rule_groups`
a numeric target                         `estimate_mean_groups`
cluster standard error                   `cluster_error`, with the t quantile of `effective_groups`
=======================================  ==========================================================

With a group per row every one of them is its namesake without groups. Standard errors have a part
from groups and one from pairs of groups (`group_pairs`; none yet for a numeric target).

Departures
----------
Those of `shrunk`; and a value that no other group has is a value not seen: π for shrunk shares,
the paper's chance (or the other groups' rows, ``unseen="prior"``) for rules (4) and (5), the mean
of the other groups for a number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from holdtrue.categories.estimate import Estimate
from holdtrue.categories.group_pairs import group_most_frequent, rule_pairs, shrunk_pairs
from holdtrue.categories.kernel import majority_rule, row_sums
from holdtrue.categories.shrunk import (
    CHOSEN_BY,
    STRENGTHS,
    clearly_least,
    column_total,
    estimate,
    estimate_rule,
    least,
    pair,
    prior,
    rival_losses,
    together,
)
from holdtrue.categories.shrunk_mean import estimate_mean, plain_score
from holdtrue.columns.bins import N_MOMENTS, grouped_moments
from holdtrue.sums.group_profile import GroupGrid, GroupTable
from holdtrue.sums.profile import moment_sums

_BLOCK = 1 << 18
_NEAR = 1 / 64  # relative distance of priors that are taken together
_LEFT_OUT = 1e-16  # of a mean loss, by ending a series


# --- classes ------------------------------------------------------------------------------------


def _others(table: GroupTable) -> np.ndarray:
    """``N_k - M_gk``, shape (n_groups, n_classes)."""
    by_group = table.by_group
    return column_total(by_group) - by_group


def _rest(table: GroupTable) -> np.ndarray:
    """``C_vk - c_vgk``, what other groups have of each pair's value, shape (n_pairs, n_classes)."""
    return table.by_value[table.value] - table.sums


class _Cells(NamedTuple):
    """Cells with rows, and what is known of them from other groups."""

    # rest, total, shape (n_pairs, n_classes): counts of the value, and of all values, in other
    # groups
    rest: np.ndarray
    total: np.ndarray
    # row, label, group, shape (n_cells,): pair, class and group of a cell
    row: np.ndarray
    label: np.ndarray
    group: np.ndarray
    weight: np.ndarray  # shape (n_cells,): rows in the cell


def _losses(loss: str, cells: _Cells, strengths: Sequence[float]) -> np.ndarray:
    """Loss of a row of each cell with its group left out, shape (n_strengths, n_cells)."""
    rest, total, row, label, *_ = cells
    n_classes = rest.shape[1]
    n_rest, N = row_sums(rest), row_sums(total)
    if loss == "log_loss":
        s, t = (weight[:, None] for weight in pair(strengths))
        left = (total[row, label] + 1 / n_classes) / (N[row] + 1)
        share = s * rest[row, label] + t * left
        share /= s * n_rest[row] + t
        np.log(share, out=share)
        return np.negative(share, out=share)
    s, t = (weight[:, None, None] for weight in pair(strengths))
    if loss == "brier":
        left = (total + 1 / n_classes) / (N + 1)[:, None]
        shares = (s * rest + t * left) / (s * n_rest[:, None] + t)
        mine = shares[:, row, label]
        squares = np.einsum("avk,avk->av", shares, shares)[:, row] - mine * mine
        return np.square(1 - mine) + np.maximum(squares, 0.0)
    # Whole numbers that order as the shares do; ties to the larger total, then the first class.
    weight = s * (N + 1)[:, None] * rest + t * total
    leading = weight == weight.max(axis=2, keepdims=True)
    named = np.where(leading, total, -1.0).argmax(axis=2)
    return (named[:, row] != label).astype(np.float64)


def _blocks(table: GroupTable, n_strengths: int) -> Iterator[_Cells]:
    """Cells in parts whose arrays over all strengths stay in the cache."""
    rest, others = _rest(table), _others(table)
    n_pairs = max(_BLOCK // (n_strengths * table.sums.shape[1]), 1)
    for start in range(0, len(table.value), n_pairs):
        part = slice(start, start + n_pairs)
        counts, group = table.sums[part], table.group[part]
        row, label = np.nonzero(counts)
        yield _Cells(rest[part], others[group], row, label, group[row], counts[row, label])


def _no_column(loss: str, table: GroupTable) -> np.ndarray:
    """Losses of groups without a column, summed over their rows, shape (n_groups,)."""
    by_group, others = table.by_group, _others(table)
    if loss == "error":
        return by_group @ group_most_frequent(by_group)[0]
    left = prior(others)
    if loss == "log_loss":
        return -np.einsum("gk,gk->g", by_group, np.log(left))
    hit, squares = (np.einsum("gk,gk->g", each, left) for each in (by_group, left))
    return row_sums(by_group) * (1 + squares) - 2 * hit


def group_no_column(loss: str, table: GroupTable) -> float:
    """Mean loss on new groups without a column."""
    return float(_no_column(loss, table).sum()) / float(table.by_group.sum())


def group_scores(
    loss: str, tables: Sequence[GroupTable], *, strengths: Sequence[float] = STRENGTHS
) -> np.ndarray:
    """Mean left-out loss on new groups for each strength, shape (n_tables, n_strengths).

    The tables are readings of one column. Strengths rise.
    """
    finite = [a for a in strengths if not math.isinf(a)]
    sums = np.zeros((len(tables), len(finite)))
    priors = None
    for row, table in zip(sums, tables, strict=True):
        if loss == "log_loss" and table.is_long:
            priors = priors or _Priors.of(table)
            row += _log_sums(table, finite, priors)
        elif loss == "brier":
            row += (_long_brier_sums if table.is_long else _brier_sums)(table, finite)
        else:
            for cells in _blocks(table, len(strengths)):
                row += _losses(loss, cells, finite) @ cells.weight
    sums /= float(tables[0].by_group.sum())
    if len(finite) == len(strengths):
        return sums
    no_column = np.full((len(tables), 1), group_no_column(loss, tables[0]))
    return np.append(sums, no_column, axis=1)


def best_shares(loss: str, tables: Sequence[GroupTable]) -> tuple[int, Estimate]:
    """Place of the best of several readings of one column, and its estimate."""
    by_strength = group_scores(CHOSEN_BY[loss], tables)
    strengths = [[STRENGTHS[least(scores)]] for scores in by_strength]
    scores = by_strength.min(axis=1)
    if CHOSEN_BY[loss] != loss:
        readings = zip(tables, strengths, strict=True)
        scores = np.concatenate(
            [group_scores(loss, [table], strengths=a)[0] for table, a in readings]
        )
    at = clearly_least(scores)
    return at, estimate_groups(loss, tables[at], strengths=strengths[at])


class _Priors(NamedTuple):
    """π⁻ of each group and class as one of a few priors, times ``1 + ε``, for `log_sums`."""

    near: np.ndarray  # shape (n_groups, n_classes): which prior
    apart: np.ndarray  # shape (n_groups, n_classes): ε
    logs: np.ndarray  # shape (n_groups, n_classes): ``log π⁻``
    priors: np.ndarray
    terms: tuple[int, ...]

    @classmethod
    def of(cls, table: GroupTable) -> _Priors:
        by_group, left = table.by_group, prior(_others(table))
        logs = np.log(left)
        step = np.floor(logs / _NEAR).astype(np.intp)
        step -= step.min()
        n_near = np.bincount(step.ravel())
        near = (np.cumsum(n_near > 0, dtype=np.int32) - np.int32(1))[step]
        priors = np.bincount(near.ravel(), left.ravel()) / n_near[n_near > 0]
        apart = left / priors[near] - 1
        # The first term left out is ``ε^n/n``; two lengths, for two compiled loops.
        left_out = float(np.vdot(by_group, np.square(apart * apart))) / 4
        n_terms = 4 if left_out < _LEFT_OUT * float(by_group.sum()) else 8
        return cls(near, apart, logs, np.append(priors, 1.0), (0,) * n_terms)


def _log_sums(table: GroupTable, strengths: Sequence[float], known: _Priors) -> np.ndarray:
    """Sum of log losses by strength, ``q⁻ = (π⁻ + rest/a)/(1 + n_rest/a)``, of a long table."""
    from holdtrue.categories.group_loops import grid_log_sums, log_sums

    s, t = pair(strengths)
    near, apart, logs, priors, terms = known
    rest = priors, s / t, terms
    sums: np.ndarray
    if isinstance(table, GroupGrid):
        near, apart = (np.ascontiguousarray(each.T) for each in (near, apart))
        sums = grid_log_sums(table.cells, table.by_value, near, apart, *rest)
    else:
        pairs = table.value, table.group, table.sums
        sums = log_sums(*pairs, table.by_value, near, apart, logs, *rest)
    return sums


def _brier_sums(table: GroupTable, strengths: Sequence[float]) -> np.ndarray:
    """Sum of Brier losses by strength, ``n (1 + Σ_k q_k²) - 2 Σ_k c_k q_k`` for a pair (v, g)."""
    s, t = (weight[:, None] for weight in pair(strengths))
    rest, left = _rest(table), prior(_others(table))[table.group]
    n, all_rest = row_sums(table.sums), row_sums(rest)
    products = (
        n * np.einsum("vk,vk->v", rest, rest),
        n * np.einsum("vk,vk->v", rest, left),
        n * np.einsum("vk,vk->v", left, left),
        np.einsum("vk,vk->v", table.sums, rest),
        np.einsum("vk,vk->v", table.sums, left),
    )
    n_rest, squares = together(all_rest, products[0])
    cross, left_squares, hit, left_hit = (together(all_rest, each)[1] for each in products[1:])
    d = s * n_rest + t
    second = (s * squares + 2 * s * t * cross + t * t * left_squares) / d**2
    return n.sum() + (second - 2 * (s * hit + t * left_hit) / d).sum(axis=1)


def _long_brier_sums(table: GroupTable, strengths: Sequence[float]) -> np.ndarray:
    """`_brier_sums` of a long table."""
    from holdtrue.categories.group_loops import brier_sums

    pairs = table.value, table.group, table.sums, table.by_value
    sums: np.ndarray = brier_sums(*pairs, prior(_others(table)), np.array(strengths))
    return sums


def estimate_groups(
    loss: str, table: GroupTable, *, strengths: Sequence[float] = STRENGTHS
) -> Estimate:
    """Left-out loss of the shrunk shares on new groups, with the strength of least loss."""
    n_rows = row_sums(table.by_group)
    if n_rows.max() <= 1:
        return estimate(loss, table.by_value, strengths=strengths)
    chosen = 0
    if len(strengths) > 1:
        chosen = least(group_scores(CHOSEN_BY[loss], [table], strengths=strengths)[0])
    strength = strengths[chosen]
    group_losses = base = rival = _no_column(loss, table)
    share_wrong = no_column_wrong = group_no_column("error", table)
    if not math.isinf(strength):
        group_losses, wrong = _group_losses(loss, table, strength)
        if loss == "error":
            rival = table.by_group @ rival_losses(loss, column_total(table.by_group))
        share_wrong = wrong / float(n_rows.sum())
    pairs = shrunk_pairs(loss, table, strength)
    result = _estimate(loss, group_losses, rival, n_rows, pairs, share_wrong, strength)
    no_column = float(base.sum()) / float(n_rows.sum())
    result = result._replace(no_column=no_column, half_cost=no_column - result.no_column)
    # Some group left out changes which class is the most frequent.
    is_tied = bool((_others(table).argmax(axis=1) != column_total(table.by_group).argmax()).any())
    return result._replace(no_column_wrong=no_column_wrong, is_tied=is_tied)


def _group_losses(loss: str, table: GroupTable, strength: float) -> tuple[np.ndarray, float]:
    """Losses summed over the rows of each group, and the number of rows whose class is wrong."""
    group_losses, wrong = np.zeros(len(table.by_group)), 0.0
    for cells in _blocks(table, 1):
        losses = cells.weight * _losses(loss, cells, [strength])[0]
        group_losses += np.bincount(cells.group, losses, len(group_losses))
        wrong += float(cells.weight @ _losses("error", cells, [strength])[0])
    return group_losses, wrong


def _estimate(
    loss: str,
    group_losses: np.ndarray,
    rival: np.ndarray,
    n_rows: np.ndarray,
    pairs: float,
    share_wrong: float | None,
    strength: float,
) -> Estimate:
    """Estimate from the losses of groups, with the column and without (``rival``)."""
    N = float(n_rows.sum())
    score, no_column = float(group_losses.sum()) / N, float(rival.sum()) / N
    return Estimate(
        loss,
        score,
        cluster_error(group_losses, n_rows),
        math.sqrt(pairs) / N,
        no_column,
        cluster_error(rival - group_losses, n_rows),
        score if share_wrong is None else share_wrong,
        float(strength),
        effective_groups(n_rows),
        no_column if share_wrong is None else math.nan,
    )


def cluster_error(group_losses: np.ndarray, n_rows: np.ndarray) -> float:
    """``sqrt(G/(G-1) Σ_g (L_g - n_g L̄)²)/N``, standard error of the mean over rows; NaN for one.

    Losses are summed over the rows of each group; groups without rows do not count.
    """
    n_groups = np.count_nonzero(n_rows)
    if n_groups < 2:
        return math.nan
    N = float(n_rows.sum())
    centred = group_losses - n_rows * (float(group_losses.sum()) / N)
    return math.sqrt(n_groups / (n_groups - 1) * float(centred @ centred)) / N


def effective_groups(n_rows: np.ndarray) -> float:
    """``N²/Σ_g n_g²``: groups of equal size that a mean over rows would vary with as much (Kish).

    Where a few groups have most of the rows, the standard error rests on these few alone. At least
    2, where there are as many.
    """
    N, n_groups = float(n_rows.sum()), int(np.count_nonzero(n_rows))
    return max(N * N / float(n_rows @ n_rows), min(n_groups, 2))


# --- rules (4) and (5) --------------------------------------------------------------------------


def estimate_rule_groups(criterion: str, table: GroupTable, *, unseen: str = "uniform") -> Estimate:
    """Left-out error of rule (4) or (5) on new groups.

    ``unseen`` says how a value that no other group has is predicted: "uniform", any class alike, or
    "prior", by the same rule from all rows of the other groups.
    """
    n_classes, by_group = table.sums.shape[1], table.by_group
    n_rows = row_sums(by_group)
    if n_classes > 1 and n_rows.max() <= 1:
        return estimate_rule(criterion, table.by_value, unseen=unseen)
    group_losses = _rule_group_losses(criterion, table, unseen)
    base = np.einsum("gk,gk->g", by_group, _rule_losses(criterion, _others(table)))
    chance = 1 - 1 / n_classes
    if base.sum() > chance * n_rows.sum() * (1 + 1e-12):  # `kernel`, departure 6
        base = chance * n_rows
    pairs = rule_pairs(criterion, table)
    return _estimate(criterion, group_losses, base, n_rows, pairs, None, math.nan)


def best_rule(criterion: str, tables: Sequence[GroupTable], *, unseen: str) -> tuple[int, Estimate]:
    """Place of the best of several readings of one column, and its estimate."""
    at = 0
    if len(tables) > 1:
        at = clearly_least([_rule_group_losses(criterion, table, unseen).sum() for table in tables])
    return at, estimate_rule_groups(criterion, tables[at], unseen=unseen)


def _rule_group_losses(criterion: str, table: GroupTable, unseen: str) -> np.ndarray:
    """Errors of the rule summed over the rows of each group, shape (n_groups,)."""
    others = _others(table)
    cost = np.full(others.shape, 1 - 1 / others.shape[1])
    if unseen == "prior":
        cost = _rule_losses(criterion, others)
    if criterion == "ginger" and table.is_long:
        from holdtrue.categories.group_loops import ginger_losses

        group_losses = np.zeros(len(cost))
        known = table.value, table.group, table.sums, table.by_value
        ginger_losses(*known, cost, group_losses)
        return group_losses
    rest = _rest(table)
    is_seen = (row_sums(rest) > 0)[:, None]
    losses = np.where(is_seen, _rule_losses(criterion, rest), cost[table.group])
    return np.bincount(table.group, np.einsum("vk,vk->v", table.sums, losses))


def _rule_losses(criterion: str, counts: np.ndarray) -> np.ndarray:
    """Error of the rule fitted on ``counts`` for a row of each class; chance where it has none."""
    n = row_sums(counts)[:, None]
    if criterion == "ginger":
        losses = (n - counts) / np.where(n > 0, n, 1.0)
    else:
        losses = 1 - majority_rule(counts)
    return np.where(n > 0, losses, 1 - 1 / counts.shape[1])


# --- a numeric target ---------------------------------------------------------------------------


class _Means(NamedTuple):
    """What the pairs of value and group say of a numeric target, about its mean."""

    n: np.ndarray
    mean: np.ndarray
    squares: np.ndarray  # M_2
    n_rest: np.ndarray  # rows of the value in other groups, and their sum
    sum_rest: np.ndarray
    middle: np.ndarray  # μ⁻
    base: np.ndarray  # squared errors without a column

    @classmethod
    def of(cls, table: GroupTable) -> _Means:
        n, mean, squares = table.sums[:, :3].T
        mean = mean - float(n @ mean / n.sum())
        n_rest = np.bincount(table.value, n)[table.value] - n
        # A difference of sums, exactly 0 where no other group has the value.
        rest = np.bincount(table.value, n * mean)[table.value] - n * mean
        sum_rest = np.where(n_rest > 0, rest, 0.0)
        n_rows, group_sums = np.bincount(table.group, n), np.bincount(table.group, n * mean)
        n_others = n_rows.sum() - n_rows
        middle = (group_sums.sum() - group_sums) / np.where(n_others > 0, n_others, 1.0)
        middle = middle[table.group]
        base = squares + n * np.square(mean - middle)
        return cls(n, mean, squares, n_rest, sum_rest, middle, base)

    def losses(self, strengths: Sequence[float]) -> np.ndarray:
        """Squared errors by strength, shape (n_strengths, n_pairs)."""
        s, t = (weight[:, None] for weight in pair(strengths))
        d = s * self.n_rest + t
        predicted = (s * self.sum_rest + t * self.middle) / np.where(d > 0, d, 1.0)
        off = self.mean - np.where(d > 0, predicted, self.middle)
        losses: np.ndarray = self.squares + self.n * np.square(off)
        losses[np.isinf(strengths)] = self.base
        return losses


def estimate_mean_groups(table: GroupTable, *, strengths: Sequence[float] = STRENGTHS) -> Estimate:
    """Left-out squared error of the shrunk mean on new groups, with the strength of least error.

    The rows of (v, g) are predicted ``p = (S_v - S_vg + a μ⁻)/(N_v - n_vg + a)``, μ⁻ the mean of
    the other groups, and cost ``M_2 + n (mean - p)²``.
    """
    alone = _by_value_alone(table)
    if alone is not None:
        return estimate_mean(*alone, strengths=strengths)
    means = _Means.of(table)
    chosen = least(means.losses(strengths).sum(axis=1), 0.0)
    return _estimate(
        "squared_error",
        np.bincount(table.group, means.losses(strengths[chosen : chosen + 1])[0]),
        np.bincount(table.group, means.base),
        np.bincount(table.group, means.n),
        0.0,
        math.nan,
        strengths[chosen],
    )


def _by_value_alone(table: GroupTable) -> tuple[np.ndarray, np.ndarray] | None:
    """The profile of the column where every row is a group of its own; else None."""
    if np.bincount(table.group, table.sums[:, 0]).max() > 1:
        return None
    rows = np.pad(table.sums[:, :2], ((0, 0), (0, N_MOMENTS - 2)))
    moments = grouped_moments(table.value, int(table.value.max()) + 1, rows)
    return moment_sums(moments[moments[:, 0] > 0])[:2]


def plain_mean_score(table: GroupTable) -> float:
    """Left-out squared error of the value's mean; see `shrunk_mean.plain_score`.

    A row whose value no other group has costs what no column does on average.
    """
    alone = _by_value_alone(table)
    if alone is not None:
        return plain_score(*alone)
    means = _Means.of(table)
    n_rows = float(means.n.sum())
    unseen = means.n * (float(means.base.sum()) / n_rows)
    losses = np.where(means.n_rest > 0, means.losses([0.0])[0], unseen)
    return float(losses.sum()) / n_rows


def best_mean(tables: Sequence[GroupTable]) -> tuple[int, Estimate]:
    """Place of the best of several readings of one column, and its estimate."""
    estimates = [estimate_mean_groups(table) for table in tables]
    at = clearly_least([estimate.score for estimate in estimates])
    return at, estimates[at]
