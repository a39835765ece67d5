"""What a walk needs of the rows, domain by domain: from moments, from rows, or row by row.

The columns of the domains' covariance matrices are stored whole where they fit in memory; otherwise
they are computed when a walk asks for them.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import gen_batches

from holdtrue.domains.choose import held_out_parts
from holdtrue.domains.kernel import Domains, Position, StoredColumns, effects, strengths
from holdtrue.errors import InputError
from holdtrue.row_copies import dealt_rows, row_copies
from holdtrue.sums import Moments
from holdtrue.sums.moments import moments_by_code, without_rounding
from holdtrue.validation import check_magnitude

_FIRST, _SPARE, _MOST = 100, 20, 256  # columns computed at once: see `RowColumns`
_FAR = 1e-5
_BATCH_CELLS = 200_000  # so that a batch stays in cache
_FEW = 4  # vectors up to which products one by one are faster: a matrix product packs the batch


class RowColumns:
    """Columns computed from the rows on request, together with those likely to be next.

    Parameters
    ----------
    rows : sequence of ndarray or CSR array of shape (n_rows, n_features)
        One per domain.
    weights : sequence of ndarray of shape (n_rows,)
    means, variances : ndarray of shape (n_domains, n_features)
        The means are subtracted.
    n_columns : int
        Rough number of columns that will be asked for. Reading all rows for a block takes as long
        as computing about 40 of its columns, so that blocks should be few and large. The first has
        `_FIRST` columns, since the order of the features changes most at the first steps. If fewer
        columns than features will be asked for, the others are those of `steps_ahead`
        among so many features that their matrix takes a third of the time of the columns that are
        left; otherwise blocks have `_MOST` columns.
    max_bytes : float
        Of the columns that are kept; the oldest are dropped first.
    """

    def __init__(
        self,
        rows: Sequence[Any],
        weights: Sequence[np.ndarray],
        means: np.ndarray,
        variances: np.ndarray,
        n_columns: int,
        max_bytes: float,
    ):
        self._rows, self._weights, self._means = rows, weights, means
        dtype = rows[0].dtype
        self.eps = float(np.finfo(dtype).eps)
        self._max_kept = max(_SPARE, int(max_bytes / (means.size * dtype.itemsize)))
        self._n_columns = n_columns
        self._far = [
            is_far(mean, var, self.eps) for mean, var in zip(means, variances, strict=True)
        ]
        self._asked: set[int] = set()
        self._kept: dict[int, np.ndarray] = {}
        self._lock = threading.Lock()

    def get(self, i: int, position: Position) -> np.ndarray:
        """Column i of every domain; if it is not there, likely ones are computed with it."""
        with self._lock:
            if i not in self._kept:
                self._compute_with_next(i, position)
            self._asked.add(i)
            return self._kept[i]

    def for_loops(self, shift: np.ndarray) -> None:
        """None: what is not in memory is computed in blocks."""

    def _compute_with_next(self, i: int, position: Position) -> None:
        """Compute column i, and those of steps ahead or of the largest and least strengths."""
        p, left = len(position.e2), max(1, self._n_columns - len(self._asked))
        if not self._kept or self._n_columns >= p:
            n = min(_MOST if self._kept else _FIRST, left + _SPARE, self._max_kept)
            self._compute(np.union1d(self._strongest(n, position)[: self._max_kept - 1], i))
            return
        n = int(math.sqrt(p * min(2 * left / 3, self._max_kept)))
        features, matrices = self._matrices(np.union1d(self._strongest(n, position), i))
        ahead = steps_ahead(position, features, matrices, left)
        new = [j for j in dict.fromkeys([i, *ahead]) if j not in self._kept]
        self._compute(np.sort(new[: self._max_kept]), features, matrices)

    def _strongest(self, n: int, position: Position) -> np.ndarray:
        """N features whose columns are not kept: half of the largest, half of the least strengths.

        Strengths have the sign of the effect.
        """
        strength = np.copysign(position.strength, position.mu).sum(axis=0)
        lacking = strength != 0
        lacking[list(self._kept)] = False
        order = np.flatnonzero(lacking)
        order = order[np.argsort(strength[order])]
        return np.concatenate([order[: n // 2], order[max(n // 2, len(order) - n // 2) :]])

    def _matrices(self, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """These features and those that are kept, and their covariances in every domain."""
        features, q = np.array([*new, *self._kept]), len(new)
        matrices = np.empty((len(self._rows), len(features), len(features)), self._rows[0].dtype)
        room = self._room(q)
        for d, weight in enumerate(self._weights):
            centred = self._taken(d, new, q, np.sqrt(weight / weight.sum()), room)
            np.matmul(centred.T, centred, out=matrices[d, :q, :q], casting="same_kind")
        for a, column in enumerate(self._kept.values(), start=q):
            matrices[:, a] = column.take(features, axis=1)
        matrices[:, :q, q:] = matrices[:, q:, :q].swapaxes(1, 2)
        return features, matrices

    def _room(self, n_columns: int) -> np.ndarray:
        """Room for so many columns of any domain: new memory for each takes longer than a copy."""
        n_rows = max(rows.shape[0] for rows in self._rows)
        return np.empty((n_rows, n_columns), self._rows[0].dtype)

    def _taken(
        self, d: int, features: np.ndarray, n_centred: int, factors: np.ndarray, room: np.ndarray
    ) -> np.ndarray:
        """These columns of a domain's rows; the first are about their mean, times the factors."""
        rows = self._rows[d]
        if sparse.issparse(rows):
            part = rows[:, features].toarray()
        else:
            part = rows.take(features, axis=1, out=room[: len(rows)], mode="clip")
        if self._far[d]:
            part = part.astype(np.float64)
        centred = part[:, :n_centred]
        centred -= self._means[d][features[:n_centred]].astype(part.dtype)
        centred *= factors.astype(part.dtype)[:, None]
        return part

    def _compute(
        self,
        wanted: np.ndarray,
        known: np.ndarray | None = None,
        matrices: np.ndarray | None = None,
    ) -> None:
        """Compute and keep these columns, given the covariances of the known features."""
        (n, p), q = self._means.shape, len(wanted)
        block, taken = np.empty((n, q, p), dtype=self._rows[0].dtype), wanted
        is_sparse = sparse.issparse(self._rows[0])
        if known is not None and not is_sparse:
            at = np.flatnonzero(np.isin(known, wanted))  # sorted, as new ones are
            rest = np.delete(np.arange(p), known)
            place = np.argsort(np.concatenate([rest, known]))
            joined = np.empty((q, p), block.dtype)
            taken = np.concatenate([wanted, rest])
        room = self._room(len(taken))
        for d, (rows, weight) in enumerate(zip(self._rows, self._weights, strict=True)):
            if self._far[d]:
                block[d] = self._far_columns(rows, weight, self._means[d], wanted)
                continue
            # Centring one side is enough: its weighted sum is 0.
            part = self._taken(d, taken, q, weight / weight.sum(), room)
            centred = part[:, :q]
            if is_sparse:
                block[d] = (rows.T @ centred).T
            elif matrices is None:
                np.matmul(centred.T, rows, out=block[d])
            else:
                np.matmul(centred.T, part[:, q:], out=joined[:, : len(rest)])
                joined[:, len(rest) :] = matrices[d, at]
                joined.take(place, axis=1, out=block[d], mode="clip")
        self._kept.update(zip(wanted.tolist(), block.swapaxes(0, 1), strict=True))
        for old in list(self._kept)[: -self._max_kept]:
            del self._kept[old]

    def _far_columns(
        self, rows: Any, weight: np.ndarray, mean: np.ndarray, wanted: np.ndarray
    ) -> np.ndarray:
        """Columns of one domain where a mean is far above its spread: both sides centred."""
        share = weight / weight.sum()
        columns = np.zeros((len(wanted), len(mean)))
        for at in gen_batches(rows.shape[0], max(1, 5 * _BATCH_CELLS // len(mean))):
            part = rows[at].toarray() if sparse.issparse(rows) else rows[at]
            moved = part.astype(np.float64) - mean
            columns += (moved[:, wanted] * share[at, None]).T @ moved
        return columns


def steps_ahead(
    position: Position, features: np.ndarray, matrices: np.ndarray, n_steps: int
) -> list[int]:
    """The features of stagewise steps ahead, as if there were none but these.

    Parameters
    ----------
    position : Position
    features : ndarray of int, shape (q,)
    matrices : ndarray of shape (n_domains, q, q)
        Their covariances in every domain.
    n_steps : int
    """
    # `take` leaves features next to each other in memory; an index would not.
    g, mu, strength, floor, is_open = (part.take(features, axis=-1) for part in position[:5])
    weight, e2 = position.weight, position.e2[features]
    shift = None if position.shift is None else position.shift.take(features, axis=1)
    picked: list[int] = []
    for _ in range(n_steps):
        k, a = divmod(int(np.argmax(strength)), len(features))
        picked.append(int(features[a]))
        is_open[k, a] = not position.stepwise
        column = matrices[:, a] if shift is None else matrices[:, a] + shift * shift[:, a, None]
        g[k] -= mu[k, a] / e2[a] * column
        mu[k], s2 = effects(g[k], weight)
        s2 = np.maximum(s2, floor[k])
        strength[k] = strengths(mu[k], s2, e2, float(weight.sum()), position.rule)[1] * is_open[k]
    return picked


def is_far(mean: np.ndarray, variance: np.ndarray, eps: float) -> bool:
    """Whether the square of some mean, times eps, is not small beside its variance."""
    return bool((eps * mean**2 > _FAR * variance)[variance > 0].any())


# --- what a walk needs, from sums or from rows --------------------------------------------------


def domains_from_moments(moments: Moments) -> Domains:
    """What a walk needs, from sums with a target."""
    total = moments.n_samples
    n = len(total)
    mean_y = np.asarray(moments.mean_y).reshape(n, -1)
    cov_xy = np.asarray(moments.scatter_xy).reshape(n, moments.n_features, -1)
    var_y = np.asarray(moments.scatter_yy).reshape(n, -1)
    return Domains(
        mean_x=moments.mean_x,
        var_x=np.einsum("dii->di", moments.scatter_xx) / total[:, None],
        mean_y=mean_y.T,
        cov_xy=np.ascontiguousarray((cov_xy / total[:, None, None]).transpose(2, 0, 1)),
        var_y=(var_y / total[:, None]).T,
        columns=StoredColumns(moments.scatter_xx, total),
        n_rows=total,
        copies=np.ones(n),
        units=np.arange(n),
    )


def domains_from_rows(
    X: Any,
    Y: np.ndarray,
    codes: np.ndarray,
    weight: np.ndarray,
    *,
    n_columns: int,
    max_bytes: float,
) -> Domains:
    """What a walk needs, from rows: through `Moments` where that is best, else by columns.

    Whole matrices cost as much as half of their columns computed one by one, since they are
    symmetric, and columns a third more than those that are asked for.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_rows, n_features)
        Matrices have its dtype.
    Y : ndarray of shape (n_rows, n_targets)
    codes : ndarray of int, shape (n_rows,)
        Domain of each row, from 0.
    weight : ndarray of shape (n_rows,)
        Positive.
    n_columns : int
        Rough number of columns that will be asked for.
    max_bytes : float
        For the matrices, or for the columns that are kept.
    """
    n, p = int(codes.max()) + 1, X.shape[1]
    if p <= 3 * n_columns and n * p**2 * X.dtype.itemsize <= max_bytes:
        return domains_from_moments(moments_by_code(X, Y, codes, weight, tuple(range(n))))
    order = np.argsort(codes, kind="stable")
    if (np.diff(codes) < 0).any():
        X, Y, codes, weight = X[order], Y[order], codes[order], weight[order]
    slices = [slice(*ends) for ends in pairwise(np.searchsorted(codes, np.arange(n + 1)))]
    sums = [first_moments(X[at], Y[at], weight[at]) for at in slices]
    mean_x, var_x, mean_y, cov_xy, var_y = (np.array(field) for field in zip(*sums, strict=True))
    rows, weights = [X[at] for at in slices], [weight[at] for at in slices]
    return Domains(
        mean_x=mean_x,
        var_x=var_x,
        mean_y=mean_y.T,
        cov_xy=np.ascontiguousarray(cov_xy.transpose(2, 0, 1)),
        var_y=var_y.T,
        columns=RowColumns(rows, weights, mean_x, var_x, n_columns, max_bytes),
        n_rows=np.array([part.sum() for part in weights]),
        copies=np.ones(n),
        units=np.arange(n),
    )


def check_sizes(domains: Domains) -> None:
    """Refuse rows whose moments leave the range of their dtype."""
    single = domains.columns is not None and domains.columns.eps > np.finfo(np.float64).eps
    for name, mean, var, dtype, power in (
        ("X", domains.mean_x, domains.var_x, np.float32 if single else np.float64, 2),
        ("y", domains.mean_y, domains.var_y, np.float64, 4),  # intervals square the squared error
    ):
        largest = np.hypot(max(mean.max(), -mean.min()), np.sqrt(var.max()))
        check_magnitude(name, np.array([largest]), dtype=dtype, power=power)


def unlabeled_moments(unlabeled: Any, moments: Moments) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of rows without labels, of the columns of ``moments``."""
    if not isinstance(unlabeled, Moments):
        raise InputError(
            f"unlabeled must be Moments. Got {type(unlabeled).__name__}. Build them "
            "with Moments.from_arrays(X_unlabeled)."
        )
    given = (moments.feature_names, unlabeled.feature_names)
    if None not in given and given[0] != given[1]:
        raise InputError(
            f"unlabeled must have the columns of moments. Got {given[1]} beside "
            f"{given[0]}. Put them in one order."
        )
    if len(unlabeled.domains) != 1 or unlabeled.n_features != moments.n_features:
        raise InputError(
            f"unlabeled must be one domain of {moments.n_features} features. Got "
            f"{len(unlabeled.domains)} domains of {unlabeled.n_features} features."
        )
    variance = np.diag(unlabeled.scatter_xx[0]) / unlabeled.n_samples[0]
    return unlabeled.mean_x[0], variance.astype(np.float64)


def check_can_be_held_out(weight: np.ndarray) -> None:
    """Refuse parts, of these weights, where leaving one out leaves too few."""
    left = float(weight.sum() - weight.max())
    if len(weight) < 3 or not left > 1:
        raise InputError(
            f"without groups, holding rows out needs at least 3 "
            "rows, and a weight above 1 in all but the heaviest. Got "
            f"{len(weight)} rows, and {left:g}. Pass stop='bonferroni' or "
            "stop='max_steps' with a rule other than 'auto', or more rows."
        )


def rows_as_domains(X: np.ndarray, Y: np.ndarray, weight: np.ndarray, *, held_out: bool) -> Domains:
    """What a walk needs where every row is its own domain, without any spread within.

    A row of weight w counts as w domains, which may be held out in different parts.
    """
    units = np.arange(len(X))
    if held_out:
        copies = row_copies(X, Y, weight)
        rows, units, weight = dealt_rows(copies, held_out_parts(len(copies)), weight)
        X, Y = X[rows], Y[rows]
    zeros = np.broadcast_to(0.0, (Y.shape[1], *X.shape))
    return Domains(X, zeros[0], Y.T, zeros, zeros[:, :, 0], None, weight, weight, units)


def first_moments(X: Any, Y: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, ...]:
    """Means and variances of the columns of X and Y, and the covariances between the two.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_rows, n_features)
    Y : ndarray of shape (n_rows, n_targets)
    weight : ndarray of shape (n_rows,)

    Returns
    -------
    mean_x, var_x : ndarray of shape (n_features,)
    mean_y : ndarray of shape (n_targets,)
    cov_xy : ndarray of shape (n_features, n_targets)
    var_y : ndarray of shape (n_targets,)
    """
    share = weight / weight.sum()
    mean_y = share @ Y
    weighted = share[:, None] * (Y - mean_y)
    var_y = np.einsum("ij,ij->j", weighted, Y - mean_y)
    if sparse.issparse(X):
        X = X.astype(np.float64)
        mean_x = np.asarray(share @ X)
        square = np.asarray(share @ X.multiply(X).tocsr())
        var_x = without_rounding(square - mean_x**2, square, X.shape[0])
        return mean_x, var_x, mean_y, X.T @ weighted, var_y
    # One pass in batches, in the dtype of X. If a mean of the first batch is above its spread, all
    # is about these means: near enough to the mean that nothing cancels, and exact where a feature
    # is constant.
    n_rows = max(1, _BATCH_CELLS // X.shape[1])
    pivot = X[:n_rows].mean(axis=0, dtype=np.float64).astype(X.dtype)
    is_near = bool((pivot**2 <= X[:n_rows].var(axis=0)).all())
    factors = np.vstack([share, weighted.T]).astype(X.dtype)
    sums, squares = np.zeros((len(factors), X.shape[1])), np.zeros(X.shape[1])
    batch = np.empty((n_rows, X.shape[1]), X.dtype)
    for at in gen_batches(len(X), n_rows):
        room = batch[: at.stop - at.start]
        moved = X[at] if is_near else np.subtract(X[at], pivot, out=room)
        if len(factors) <= _FEW:
            for total, factor in zip(sums, factors[:, at], strict=True):
                total += factor @ moved
        else:
            sums += factors[:, at] @ moved
        squares += factors[0, at] @ np.square(moved, out=room)
    var_x = np.maximum(squares - sums[0] ** 2, 0.0)
    return sums[0] + (0.0 if is_near else pivot), var_x, mean_y, sums[1:].T, var_y
