"""Pairs of groups: what `shrunk` says of pairs of rows, for groups that are left out whole.

Notation
--------
=========  =========================================================================================
c_vg, N_v  class counts of value v in group g; rows of the value
u_vg       ``c_vg - n_vg q_v``, what the group has beyond the shares of the value
d_v        ``N_v - n + a``, n the rows of an average group of the value
b_gh       ``Σ_v u_vg' H_v u_vh/d_v``, what group h changes about the losses of g, H the Hessian of
           the loss; it is the product of rows g and h of a matrix U, and so is the prior's part
x_vg       rows of the leading class of v in g minus those of the second
=========  =========================================================================================

Departures
----------
1. Where the product of U with itself would take too long (values in hundreds of groups, and groups
   with hundreds of values) pairs are taken as 0: there N is so large that rows say it all.
2. `tie_pairs_sum`: a value may change its leader if the lead is below two typical swings
   ``Σ x²/Σ |x|`` of its groups; half of the squared rows that would change sides are charged, as
   `shrunk.tie_pairs` does with swings of one row.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.sparse import csr_array

from holdtrue.categories.kernel import row_sums
from holdtrue.categories.shrunk import column_total, most_frequent, pair, prior, shares
from holdtrue.sums.group_profile import GroupTable

_MOST_PRODUCTS = 3e6


def shrunk_pairs(loss: str, table: GroupTable, strength: float) -> float:
    """Sum of ``b_gh b_hg`` over pairs of groups, for shrunk shares."""
    if loss != "error" and _takes_long(table):
        return 0.0
    by_value, by_group, n_groups = table.by_value, table.by_group, table.n_by_value
    total = by_group.sum(axis=0)
    n, N = table.rows_by_value, float(total.sum())
    s, t = pair(strength)
    if loss == "error":
        if not s:
            return group_most_frequent(by_group)[1]
        weight = (N + 1) * by_value + t * total
        pairs = _tie_sum(table.value, table.sums, weight, N + strength, shared=False)
        alone = float(n @ (n_groups == 1)) / N
        everything = np.zeros(len(by_group), dtype=np.intp)
        whole = _tie_sum(everything, by_group, total[None], 1.0, shared=False)
        return pairs + alone**2 * whole
    # A value of one group is in no pair of groups, nor does a value count at infinite strength.
    shared = np.flatnonzero((n_groups > 1) & (s > 0))
    n = n[shared]
    d = s * _rows_left(n, n_groups[shared]) + t
    of_prior = N - n.sum() + n @ np.square(t / d)  # rows, by the prior's weight in their shares
    q = np.append(shares(by_value[shared], total, strength), prior(total)[None], axis=0)
    return share_pairs_sum(loss, table, shared, q, np.append(d, N * N / of_prior))


def group_most_frequent(by_group: np.ndarray) -> tuple[np.ndarray, float]:
    """`shrunk.most_frequent`, the random halves made of whole groups; rows by group and class."""
    total, n_rows = column_total(by_group), row_sums(by_group)
    n_groups = np.count_nonzero(n_rows)
    if n_groups < 2 or len(total) < 2:
        return most_frequent(total, 0.0)
    first, second = np.argsort(-total, kind="stable")[:2]
    lead = by_group[:, first] - by_group[:, second]
    lead = lead - n_rows * (float(lead.sum()) / float(n_rows.sum()))
    return most_frequent(total, n_groups / (n_groups - 1) * float(lead @ lead))


def rule_pairs(criterion: str, table: GroupTable) -> float:
    """Sum of ``b_gh b_hg`` over pairs of groups, for rule (4) or (5)."""
    by_value, n_groups = table.by_value, table.n_by_value
    if criterion == "majority":
        return _tie_sum(table.value, table.sums, by_value, 1.0, shared=True)
    if _takes_long(table):
        return 0.0
    shared = np.flatnonzero(n_groups > 1)
    n = row_sums(by_value[shared])
    q = np.append(by_value[shared] / n[:, None], np.zeros((1, by_value.shape[1])), axis=0)
    d = np.append(_rows_left(n, n_groups[shared]), math.inf)  # no prior
    return share_pairs_sum("ginger", table, shared, q, d)


def _takes_long(table: GroupTable) -> bool:
    """Whether neither of the products of U with itself is small."""
    by_value, n_groups = _products_by_value(table), len(table.by_group)
    # By groups there are at least as many products as if all had the same number of values.
    n_pairs = float(table.n_by_value.sum() + n_groups)
    least = table.by_group.shape[1] ** 2 * n_pairs**2 / n_groups
    if min(by_value, least) > _MOST_PRODUCTS:
        return True
    return min(by_value, _products_by_group(table)) > _MOST_PRODUCTS


def _products_by_value(table: GroupTable) -> float:
    """Products that ``U U'`` needs."""
    n_groups, n_classes = table.by_group.shape
    per_value = table.n_by_value.astype(np.float64)
    return n_classes * (float(per_value @ per_value) + n_groups**2)


def _products_by_group(table: GroupTable) -> float:
    """Products that ``U' U`` needs."""
    per_group = table.n_by_group + 1.0
    return table.by_group.shape[1] ** 2 * float(per_group @ per_group)


def _rows_left(n: np.ndarray, n_groups: np.ndarray) -> np.ndarray:
    """Rows of each value without an average group of it; with a group per row ``n - 1``."""
    return n * (1 - 1 / n_groups)


def _tie_sum(
    value: np.ndarray, counts: np.ndarray, weight: np.ndarray, unit: float, *, shared: bool
) -> float:
    """`tie_pairs_sum` of all values, by the weights of their classes; a row weighs ``unit``."""
    if counts.shape[1] == 1:
        return 0.0
    leaders = np.argsort(-weight, axis=1, kind="stable")[:, :2]
    lead = np.take_along_axis(weight, leaders, 1) @ [1.0, -1.0] / unit
    return float(tie_pairs_sum(value, counts, leaders, lead, shared=shared).sum())


def share_pairs_sum(
    loss: str, table: GroupTable, shared: np.ndarray, q: np.ndarray, d: np.ndarray
) -> float:
    """Sum of ``b_gh b_hg`` over pairs of groups.

    Parameters
    ----------
    loss : {"log_loss", "brier", "ginger"}
    table : GroupTable
    shared : ndarray of int, shape (n_shared,)
        Values that count.
    q : ndarray of shape (n_shared + 1, n_classes)
        Shares of each of them; the last row are those of all rows, the prior.
    d : ndarray of shape (n_shared + 1,)
        ``d_v`` of each of them; last, the number by which the prior's part is divided.
    """
    by_group = table.by_group
    n_groups, n_classes = by_group.shape
    place = np.full(len(table.by_value), -1)
    place[shared] = np.arange(len(shared))
    place = place[table.value]
    kept = np.flatnonzero(place >= 0)
    value, group, counts = place[kept], table.group[kept], table.sums[kept]
    code = np.concatenate([value, np.full(n_groups, len(q) - 1)])
    row = np.concatenate([group, np.arange(n_groups)])
    rows = np.concatenate([counts, by_group])
    excess = rows - rows.sum(axis=1, keepdims=True) * q[code]
    if loss == "log_loss":
        excess = excess / np.sqrt(np.where(q > 0, q, 1.0))[code]
    elif loss == "brier":
        excess = excess * np.sqrt(2.0)
    excess = excess / np.sqrt(d)[code, None]
    alone = np.bincount(row, (excess * excess).sum(axis=1), n_groups)
    width = len(q) * n_classes
    if n_groups * len(q) <= 2 * len(row):  # mostly without zeros
        whole = np.zeros((n_groups, width))
        whole.reshape(n_groups, len(q), n_classes)[row, code] = excess
        products = whole @ whole.T if n_groups < width else whole.T @ whole
    else:
        column = (code[:, None] * n_classes + np.arange(n_classes)).ravel()
        entries = excess.ravel(), (np.repeat(row, n_classes), column)
        U = csr_array(entries, shape=(n_groups, width))
        is_by_value = _products_by_value(table) < _products_by_group(table)
        products = (U @ U.T if is_by_value else U.T @ U).data
    return max(float(np.vdot(products, products)) - float(alone @ alone), 0.0)


def tie_pairs_sum(
    value: np.ndarray, counts: np.ndarray, leaders: np.ndarray, lead: np.ndarray, *, shared: bool
) -> np.ndarray:
    """Sum of ``b_gh b_hg`` over pairs of groups, by value, shape (n_values,).

    Parameters
    ----------
    value : ndarray of int, shape (n_pairs,)
    counts : ndarray of shape (n_pairs, n_classes)
    leaders : ndarray of int, shape (n_values, 2)
        The first and the second class.
    lead : ndarray of shape (n_values,)
        Of the first over the second, in rows.
    shared : bool
        Whether classes that tie share the prediction, as in rule (5).
    """
    n_values = len(leaders)
    pairs = np.arange(len(value))
    x = counts[pairs, leaders[value, 0]] - counts[pairs, leaders[value, 1]].astype(np.float64)
    size = np.bincount(value, np.abs(x), n_values)
    swing = np.bincount(value, x * x, n_values) / np.where(size > 0, size, 1.0)
    several = np.bincount(value, minlength=n_values) > 1
    charged = size**2 / np.where(shared & (lead > 0), 16.0, 8.0)
    return np.where(several & (lead <= 2 * swing), charged, 0.0)
