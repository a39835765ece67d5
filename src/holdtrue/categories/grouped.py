"""New data are new groups: the losses of `shrunk` and `kernel` with a whole group left out.

Paper
-----
None; for rules (4) and (5) see `kernel`.

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
counts by value and group                `meet`
shrunk shares                            `group_scores`, `estimate_groups`
rules (4) and (5)                        `estimate_rule_groups`
a numeric target                         `meet_moments`, `estimate_mean_groups`
cluster standard error                   `cluster_error`
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

from holdtrue.categories.group_pairs import rule_pairs, shrunk_pairs, sums_by
from holdtrue.categories.kernel import majority_rule, row_sums
from holdtrue.categories.left_out import Estimate
from holdtrue.categories.rule_estimate import estimate_rule
from holdtrue.categories.shrunk import CHOSEN_BY, STRENGTHS, estimate, least, pair, prior, together
from holdtrue.categories.shrunk_numeric import count_sums, estimate_mean
from holdtrue.columns.counting import LONG, N_MOMENTS, grouped_moments

_BLOCK = 1 << 18


class Met(NamedTuple):
    """Values and groups that meet, each pair once."""

    # value, group, shape (n_pairs,): codes from 0
    value: np.ndarray
    group: np.ndarray
    # shape (n_pairs, n_classes): class counts; or count, mean and sum of squares about the mean
    sums: np.ndarray


def meet(value: np.ndarray, group: np.ndarray, counts: np.ndarray) -> Met:
    """Counts by value and group from rows in any order, pairs that come twice added.

    Parameters
    ----------
    value, group : ndarray of int, shape (n_rows,)
    counts : ndarray of shape (n_rows, n_classes)
    """
    value, group, inverse, n_pairs = _pairs(value, group)
    if inverse is None:
        return Met(value, group, counts.astype(np.float64))
    columns = [np.bincount(inverse, counts[:, k], n_pairs) for k in range(counts.shape[1])]
    return Met(value, group, np.stack(columns, axis=1))


def meet_moments(value: np.ndarray, group: np.ndarray, moments: np.ndarray) -> Met:
    """Moments by value and group from rows in any order, pairs that come twice added.

    Parameters
    ----------
    value, group : ndarray of int, shape (n_rows,)
    moments : ndarray of shape (n_rows, 3 or more)
        Count, mean, sum of squares about it; further columns are left aside.
    """
    value, group, inverse, n_pairs = _pairs(value, group)
    if inverse is None:
        return Met(value, group, moments[:, :3].astype(np.float64))
    n, mean, squares = moments[:, 0], moments[:, 1], moments[:, 2]
    n_all = np.bincount(inverse, n, n_pairs)
    centre = float(n @ mean / n.sum())  # sums of y far from 0 would lose the digits of the means
    mean_all = np.bincount(inverse, n * (mean - centre), n_pairs) / n_all + centre
    between = n * (mean - mean_all[inverse]) ** 2
    return Met(
        value,
        group,
        np.stack([n_all, mean_all, np.bincount(inverse, squares + between, n_pairs)], axis=1),
    )


def _pairs(
    value: np.ndarray, group: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, int]:
    """Different pairs, and the pair of each row; None if the rows are the pairs, in order."""
    n_groups = int(group.max()) + 1
    key = value.astype(np.int64) * n_groups + group
    if np.all(key[1:] > key[:-1]):
        return value, group, None, len(key)
    n_keys = (int(value.max()) + 1) * n_groups
    if n_keys <= 4 * len(key):  # a table is faster than sorting
        met = np.zeros(n_keys, dtype=bool)
        met[key] = True
        pairs = np.flatnonzero(met)
        inverse = (np.cumsum(met) - 1)[key]
    else:
        pairs, inverse = np.unique(key, return_inverse=True)
    return pairs // n_groups, pairs % n_groups, inverse, len(pairs)


# --- classes ------------------------------------------------------------------------------------


class _Totals(NamedTuple):
    """Sums over pairs."""

    by_value: np.ndarray  # shape (n_values, n_classes): ``C_vk``
    by_group: np.ndarray  # shape (n_groups, n_classes): ``M_gk``
    others: np.ndarray  # shape (n_groups, n_classes): ``N_k - M_gk``


def _totals(met: Met) -> _Totals:
    by_group = sums_by(met.group, met.sums)
    return _Totals(sums_by(met.value, met.sums), by_group, by_group.sum(axis=0) - by_group)


def _is_long(met: Met) -> bool:
    """Whether the rows are so many that compiled loops have been loaded to count them."""
    return met.sums.dtype == np.int64 and int(met.sums.sum()) >= LONG


class _Rest(NamedTuple):
    """What other groups have: of each pair's value, and of everything, by group."""

    counts: np.ndarray  # shape (n_pairs, n_classes): ``C_vk - c_vgk``
    n: np.ndarray  # shape (n_pairs,)
    total: np.ndarray  # shape (n_groups, n_classes): ``N_k - M_gk``


def _rest(met: Met, totals: _Totals) -> _Rest:
    counts = totals.by_value[met.value] - met.sums
    return _Rest(counts, row_sums(counts), totals.others)


class _Cells(NamedTuple):
    """Cells with rows, and what is known of them from other groups."""

    # rest, total, shape (n_pairs, n_classes): counts of the value, and of all values, in other
    # groups
    rest: np.ndarray
    total: np.ndarray
    n_rest: np.ndarray  # shape (n_pairs,)
    # row, label, group, shape (n_cells,): pair, class and group of a cell
    row: np.ndarray
    label: np.ndarray
    group: np.ndarray
    weight: np.ndarray  # shape (n_cells,): rows in the cell


def _losses(loss: str, cells: _Cells, strengths: Sequence[float]) -> np.ndarray:
    """Loss of a row of each cell with its group left out, shape (n_strengths, n_cells).

    Parameters
    ----------
    loss : {"log_loss", "brier", "error"}
    cells : _Cells
    strengths : sequence of float
    """
    rest, total, n_rest, row, label, *_ = cells
    n_classes = rest.shape[1]
    N = row_sums(total)
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


def _blocks(met: Met, rest: _Rest, n_strengths: int) -> Iterator[_Cells]:
    """Cells in parts whose arrays over all strengths stay in the cache."""
    n_pairs = max(_BLOCK // (n_strengths * met.sums.shape[1]), 1)
    for start in range(0, len(met.value), n_pairs):
        part = slice(start, start + n_pairs)
        counts, group = met.sums[part], met.group[part]
        row, label = np.nonzero(counts)
        weight = counts[row, label]
        yield _Cells(
            rest.counts[part], rest.total[group], rest.n[part], row, label, group[row], weight
        )


def _no_column(loss: str, totals: _Totals) -> np.ndarray:
    """Losses of groups without a column, summed over their rows, shape (n_groups,)."""
    by_group, others = totals.by_group, totals.others
    group, label = np.nonzero(by_group)
    weight = by_group[group, label]
    cells = _Cells(others, others, row_sums(others), group, label, group, weight)
    return np.bincount(group, weight * _losses(loss, cells, [math.inf])[0], len(by_group))


def group_scores(loss: str, met: Met, *, strengths: Sequence[float] = STRENGTHS) -> np.ndarray:
    """Mean left-out loss on new groups for each strength, shape (n_strengths,).

    Parameters
    ----------
    loss : {"log_loss", "brier", "error"}
    met : Met
    strengths : sequence of float
        Rising.
    """
    return _scores(loss, met, _totals(met), strengths)


def _scores(loss: str, met: Met, totals: _Totals, strengths: Sequence[float]) -> np.ndarray:
    sums = np.zeros(len(strengths))
    if loss == "log_loss" and _is_long(met):
        from holdtrue.categories.group_loops import log_sums

        s, t = pair(strengths)
        finite = np.flatnonzero(s)
        sums[finite] = log_sums(*met, totals.by_value, prior(totals.others), (s / t)[finite])
    elif loss == "error":
        for cells in _blocks(met, _rest(met, totals), len(strengths)):
            sums += _losses(loss, cells, strengths) @ cells.weight
    else:
        sum_losses = _log_sums if loss == "log_loss" else _brier_sums
        sums = sum_losses(met, _rest(met, totals), strengths)
    sums[np.isinf(strengths)] = _no_column(loss, totals).sum()
    return sums / float(totals.by_group.sum())


def _log_sums(met: Met, rest: _Rest, strengths: Sequence[float]) -> np.ndarray:
    """Sum of log losses by strength, ``q⁻ = (π⁻ + rest/a)/(1 + n_rest/a)``, as in `shrunk`.

    Many cells share the rest of their value and the prior, and many more the number of rows.
    """
    s, t = pair(strengths)
    inverse = (s / t)[:, None]
    priors, code_of = np.unique(prior(rest.total), return_inverse=True)
    code_of = code_of.reshape(rest.total.shape)
    row, label = np.nonzero(met.sums)
    weight, others = met.sums[row, label], rest.counts[row, label]
    code = code_of[met.group[row], label]
    n_codes = int(others.max()) * len(priors) + len(priors)
    if n_codes <= 4 * len(row):
        weight = np.bincount(code + others.astype(np.intp) * len(priors), weight, n_codes)
        place = np.flatnonzero(weight)
        weight, code, others = weight[place], place % len(priors), place // len(priors)
    # Classes that no other group has with the value rest on the prior, whatever the strength.
    alone = others == 0
    on_prior = np.bincount(code[alone], weight[alone], len(priors))
    weight, code, others = weight[~alone], code[~alone], others[~alone]
    sums = np.full(len(strengths), -float(on_prior @ np.log(priors)))
    for start in range(0, len(weight), _BLOCK // len(strengths)):
        part = slice(start, start + _BLOCK // len(strengths))
        sums -= np.log(priors[code[part]] + inverse * others[part]) @ weight[part]
    n, n_weight = together(rest.n, row_sums(met.sums))
    return sums + np.log1p(inverse * n) @ n_weight


def _brier_sums(met: Met, rest: _Rest, strengths: Sequence[float]) -> np.ndarray:
    """Sum of Brier losses by strength, ``n (1 + Σ_k q_k²) - 2 Σ_k c_k q_k`` for a pair (v, g)."""
    s, t = (weight[:, None] for weight in pair(strengths))
    left = prior(rest.total)[met.group]
    n = row_sums(met.sums)
    products = (
        n * np.einsum("vk,vk->v", rest.counts, rest.counts),
        n * np.einsum("vk,vk->v", rest.counts, left),
        n * np.einsum("vk,vk->v", left, left),
        np.einsum("vk,vk->v", met.sums, rest.counts),
        np.einsum("vk,vk->v", met.sums, left),
    )
    n_rest, squares = together(rest.n, products[0])
    cross, left_squares, hit, left_hit = (together(rest.n, each)[1] for each in products[1:])
    d = s * n_rest + t
    second = (s * squares + 2 * s * t * cross + t * t * left_squares) / d**2
    return n.sum() + (second - 2 * (s * hit + t * left_hit) / d).sum(axis=1)


def estimate_groups(loss: str, met: Met, *, strengths: Sequence[float] = STRENGTHS) -> Estimate:
    """Left-out loss of the shrunk shares on new groups, with the strength of least loss.

    Parameters
    ----------
    loss, met, strengths
        As in `group_scores`; at least 2 groups.
    """
    totals = _totals(met)
    n_rows = row_sums(totals.by_group)
    if n_rows.max() <= 1:
        return estimate(loss, totals.by_value, strengths=strengths)
    chosen = 0
    if len(strengths) > 1:
        chosen = least(_scores(CHOSEN_BY[loss], met, totals, strengths))
    group_losses, wrong = _group_losses(loss, met, totals, strengths[chosen])
    base = _no_column(loss, totals)
    if math.isinf(strengths[chosen]):
        group_losses = base  # to the last digit
    N = float(n_rows.sum())
    pairs = shrunk_pairs(loss, *met, strengths[chosen])
    result = _estimate(loss, group_losses, base, n_rows, pairs, wrong / N, strengths[chosen])
    return result._replace(no_column_wrong=float(_no_column("error", totals).sum()) / N)


def _group_losses(
    loss: str, met: Met, totals: _Totals, strength: float
) -> tuple[np.ndarray, float]:
    """Losses summed over the rows of each group, and the number of rows whose class is wrong."""
    group_losses = np.zeros(len(totals.by_group))
    if loss == "log_loss" and _is_long(met):
        from holdtrue.categories.group_loops import log_losses

        s, t = (float(weight) for weight in pair(strength))
        others, priors = totals.others, prior(totals.others)
        wrong = log_losses(*met, totals.by_value, others, priors, s, t, group_losses)
        return group_losses, float(wrong)
    wrong = 0.0
    for cells in _blocks(met, _rest(met, totals), 1):
        losses = cells.weight * _losses(loss, cells, [strength])[0]
        group_losses += np.bincount(cells.group, losses, len(group_losses))
        wrong += float(cells.weight @ _losses("error", cells, [strength])[0])
    return group_losses, wrong


def _estimate(
    loss: str,
    group_losses: np.ndarray,
    base: np.ndarray,
    n_rows: np.ndarray,
    pairs: float,
    share_wrong: float | None,
    strength: float,
) -> Estimate:
    N = float(n_rows.sum())
    score, no_column = float(group_losses.sum()) / N, float(base.sum()) / N
    return Estimate(
        loss,
        score,
        cluster_error(group_losses, n_rows),
        math.sqrt(pairs) / N,
        no_column,
        no_column - score,
        cluster_error(base - group_losses, n_rows),
        score if share_wrong is None else share_wrong,
        float(strength),
        float(np.count_nonzero(n_rows)),
        no_column if share_wrong is None else math.nan,
    )


def cluster_error(group_losses: np.ndarray, n_rows: np.ndarray) -> float:
    """``sqrt(G/(G-1) Σ_g (L_g - n_g L̄)²)/N``, standard error of the mean over rows; NaN for one.

    Parameters
    ----------
    group_losses : ndarray of shape (n_groups,)
        Summed over the rows of each group.
    n_rows : ndarray of shape (n_groups,)
        Groups without rows do not count.
    """
    n_groups = np.count_nonzero(n_rows)
    if n_groups < 2:
        return math.nan
    N = float(n_rows.sum())
    centred = group_losses - n_rows * (float(group_losses.sum()) / N)
    return math.sqrt(n_groups / (n_groups - 1) * float(centred @ centred)) / N


# --- rules (4) and (5) --------------------------------------------------------------------------


def estimate_rule_groups(criterion: str, met: Met, *, unseen: str = "uniform") -> Estimate:
    """Left-out error of rule (4) or (5) on new groups.

    Parameters
    ----------
    criterion : {"ginger", "majority"}
    met : Met
        At least 2 groups.
    unseen : {"uniform", "prior"}
        How a value that no other group has is predicted: any class alike, or by the same rule from
        all rows of the other groups.
    """
    n_classes = met.sums.shape[1]
    totals = _totals(met)
    n_rows = row_sums(totals.by_group)
    if n_classes > 1 and n_rows.max() <= 1:
        return estimate_rule(criterion, totals.by_value, unseen=unseen)
    group_losses = _rule_group_losses(criterion, met, totals, unseen)
    base = np.einsum("gk,gk->g", totals.by_group, _rule_losses(criterion, totals.others))
    chance = 1 - 1 / n_classes
    if base.sum() > chance * n_rows.sum() * (1 + 1e-12):  # `kernel`, departure 6
        base = chance * n_rows
    pairs = rule_pairs(criterion, *met)
    return _estimate(criterion, group_losses, base, n_rows, pairs, None, math.nan)


def rule_group_score(criterion: str, met: Met, *, unseen: str = "uniform") -> float:
    """Left-out error of rule (4) or (5) on new groups, without standard errors."""
    totals = _totals(met)
    n_rows = row_sums(totals.by_group)
    if met.sums.shape[1] > 1 and n_rows.max() <= 1:
        return estimate_rule(criterion, totals.by_value, unseen=unseen).score
    return float(_rule_group_losses(criterion, met, totals, unseen).sum()) / float(n_rows.sum())


def _rule_group_losses(criterion: str, met: Met, totals: _Totals, unseen: str) -> np.ndarray:
    """Errors of the rule summed over the rows of each group, shape (n_groups,)."""
    n_classes = met.sums.shape[1]
    cost = np.full(totals.others.shape, 1 - 1 / n_classes)
    if unseen == "prior":
        cost = _rule_losses(criterion, totals.others)
    if criterion == "ginger" and _is_long(met):
        from holdtrue.categories.group_loops import ginger_losses

        group_losses = np.zeros(len(cost))
        ginger_losses(*met, totals.by_value, cost, group_losses)
        return group_losses
    rest = _rest(met, totals)
    losses = np.where((rest.n > 0)[:, None], _rule_losses(criterion, rest.counts), cost[met.group])
    return np.bincount(met.group, np.einsum("vk,vk->v", met.sums, losses))


def _rule_losses(criterion: str, counts: np.ndarray) -> np.ndarray:
    """Error of the rule fitted on ``counts`` for a row of each class; chance where it has none."""
    n = row_sums(counts)[:, None]
    if criterion == "ginger":
        losses = (n - counts) / np.where(n > 0, n, 1.0)
    else:
        losses = 1 - majority_rule(counts)
    return np.where(n > 0, losses, 1 - 1 / counts.shape[1])


# --- a numeric target ---------------------------------------------------------------------------


def estimate_mean_groups(met: Met, *, strengths: Sequence[float] = STRENGTHS) -> Estimate:
    """Left-out squared error of the shrunk mean on new groups, with the strength of least error.

    The rows of (v, g) are predicted ``p = (S_v - S_vg + a μ⁻)/(N_v - n_vg + a)``, μ⁻ the mean of
    the other groups, and cost ``M_2 + n (mean - p)²``.

    Parameters
    ----------
    met : Met
        From `meet_moments`; at least 2 groups.
    strengths : sequence of float
        Rising; 0 does not shrink.
    """
    n, mean, squares = met.sums.T
    if np.bincount(met.group, n).max() <= 1:
        alone = np.pad(met.sums[:, :2], ((0, 0), (0, N_MOMENTS - 2)))
        moments = grouped_moments(met.value, int(met.value.max()) + 1, alone)
        return estimate_mean(count_sums(moments[moments[:, 0] > 0]), strengths=strengths)
    mean = mean - float(n @ mean / n.sum())
    n_rest = np.bincount(met.value, n)[met.value] - n
    # A difference of sums, exactly 0 where no other group has the value.
    sum_rest = np.where(n_rest > 0, np.bincount(met.value, n * mean)[met.value] - n * mean, 0.0)
    n_rows, group_sums = np.bincount(met.group, n), np.bincount(met.group, n * mean)
    n_others = n_rows.sum() - n_rows
    middle = ((group_sums.sum() - group_sums) / np.where(n_others > 0, n_others, 1.0))[met.group]
    base = squares + n * np.square(mean - middle)

    def pair_losses(a: Sequence[float]) -> np.ndarray:
        s, t = (weight[:, None] for weight in pair(a))
        d = s * n_rest + t
        predicted = (s * sum_rest + t * middle) / np.where(d > 0, d, 1.0)
        return squares + n * np.square(mean - np.where(d > 0, predicted, middle))

    scores = pair_losses(strengths).sum(axis=1)
    scores[np.isinf(strengths)] = base.sum()
    chosen = least(scores, 0.0)
    infinite = math.isinf(strengths[chosen])
    losses = base if infinite else pair_losses(strengths[chosen : chosen + 1])[0]
    return _estimate(
        "squared_error",
        np.bincount(met.group, losses),
        np.bincount(met.group, base),
        n_rows,
        0.0,
        math.nan,
        strengths[chosen],
    )
