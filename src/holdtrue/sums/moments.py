"""Moments: first and second moments of rows, domain by domain, that add over parts of a table."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pyarrow as pa
from scipy import sparse

from holdtrue.errors import InputError, InputTypeError, speaks
from holdtrue.files import written_whole
from holdtrue.sums.packing import labels_from_json, labels_to_json, pack, unpack
from holdtrue.validation import check_groups, check_magnitude, check_weights

__all__ = ["Moments"]

_ARRAYS = (
    "n_samples", "mean_x", "scatter_xx", "mean_y", "scatter_xy", "scatter_yy", "rest_x", "rest_y",
)  # fmt: skip
_TARGET = ("mean_y", "scatter_xy", "scatter_yy")
_EPS = float(np.finfo(np.float64).eps)
_SLACK = 1e-3  # relative rounding error of float32 sums, generously


@dataclass(frozen=True, eq=False)
class Moments:
    """First and second moments of X, and of y where there is one, domain by domain.

    ``a + b`` gives the moments of the rows of both; neither is changed. Second moments are kept
    about each domain's own mean and merged by the formula of Chan, Golub & LeVeque (1983), with
    means of twice the usual precision: a thousand parts of one row at a mean of 1e9 add up to the
    moments of the whole to 1e-12.

    Build one with `from_arrays`, `from_frame` or, part by part, with `from_batches`.

    Parameters
    ----------
    domains : tuple
        Labels of the domains.
    n_samples : ndarray of shape (n_domains,)
        Rows per domain; with weights, their sum.
    mean_x : ndarray of shape (n_domains, n_features)
    scatter_xx : ndarray of shape (n_domains, n_features, n_features)
        ``Σ w (x - mean_x)(x - mean_x)ᵀ``; float32 or float64.
    mean_y : ndarray of shape (n_domains,) or (n_domains, n_targets), optional
    scatter_xy : ndarray of shape (n_domains, n_features) or (..., n_targets), optional
    scatter_yy : ndarray of shape (n_domains,) or (n_domains, n_targets), optional
        Absent, all three, for rows without a target.
    feature_names : tuple of str, optional
    rest_x, rest_y : ndarray of the shape of mean_x and mean_y, optional
        What rounding took from the means; they serve when parts are added.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[1.0], [3.0], [8.0]]), np.array([0.0, 2.0, 1.0])
    >>> whole = Moments.from_arrays(X, y)
    >>> parts = Moments.from_arrays(X[:1], y[:1]) + Moments.from_arrays(X[1:], y[1:])
    >>> parts.n_samples, parts.mean_x[0]
    (array([3.]), array([4.]))
    >>> np.allclose(parts.scatter_xx, whole.scatter_xx)
    True
    """

    domains: tuple[Any, ...]
    n_samples: np.ndarray
    mean_x: np.ndarray
    scatter_xx: np.ndarray
    mean_y: np.ndarray | None = None
    scatter_xy: np.ndarray | None = None
    scatter_yy: np.ndarray | None = None
    feature_names: tuple[str, ...] | None = None
    rest_x: np.ndarray | None = None
    rest_y: np.ndarray | None = None

    @speaks
    def __post_init__(self) -> None:
        n_domains, n_features = np.shape(self.mean_x)
        targets = np.shape(self.mean_y)[1:] if self.mean_y is not None else ()
        shapes = {
            "n_samples": (n_domains,),
            "scatter_xx": (n_domains, n_features, n_features),
            "mean_y": (n_domains, *targets),
            "scatter_xy": (n_domains, n_features, *targets),
            "scatter_yy": (n_domains, *targets),
            "rest_x": (n_domains, n_features),
            "rest_y": (n_domains, *targets),
        }
        if len(self.domains) != n_domains or len(set(self.domains)) != n_domains:
            raise InputError(f"expected {n_domains} distinct domains. Got {list(self.domains)}.")
        for name, shape in shapes.items():
            value = getattr(self, name)
            if value is None and name in (*_TARGET, "rest_x", "rest_y"):
                if name in _TARGET and self.has_target:
                    raise InputError(
                        "mean_y, scatter_xy and scatter_yy belong together. "
                        f"Got {name}=None. Pass all three or none."
                    )
            elif np.shape(value) != shape:
                raise InputError(
                    f"{name} must have shape {shape} for {n_domains} domains and "
                    f"{n_features} features. Got {np.shape(value)}."
                )
        if self.feature_names is not None and len(self.feature_names) != n_features:
            raise InputError(
                f"feature_names must name {n_features} features. "
                f"Got {len(self.feature_names)} names."
            )

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return int(self.mean_x.shape[1])

    @property
    def has_target(self) -> bool:
        """Whether the moments of y are there."""
        return not (self.mean_y is None and self.scatter_xy is None and self.scatter_yy is None)

    # --- from rows ---

    @classmethod
    @speaks
    def from_arrays(
        cls,
        X: Any,
        y: np.ndarray | None = None,
        *,
        groups: Any = None,
        sample_weight: np.ndarray | None = None,
        feature_names: Iterable[str] | None = None,
        dtype: Any = np.float64,
    ) -> Moments:
        """Moments of the rows of X (n_samples, n_features) and y (n_samples,).

        Parameters
        ----------
        X : ndarray or sparse matrix of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,) or (n_samples, n_targets), optional
        groups : array-like of shape (n_samples,), optional
            Domain of each row; without it all rows belong to one domain, ``None``.
        sample_weight : ndarray of shape (n_samples,), optional
            Weights are repetitions; a row of weight 0 counts for nothing.
        feature_names : iterable of str, optional
        dtype : {float64, float32}
            In which ``scatter_xx`` is computed and kept. The rest is float64.
        """
        if np.dtype(dtype) not in (np.float64, np.float32):
            raise InputError(f"dtype must be float64 or float32. Got {dtype!r}.")
        X = sparse.csr_array(X, dtype=dtype) if sparse.issparse(X) else np.asarray(X, dtype=dtype)
        if X.ndim != 2:
            raise InputError(f"X must have 2 dimensions. Got shape {X.shape}.")
        n_rows = X.shape[0]
        target = None if y is None else np.asarray(y, dtype=np.float64)
        if target is not None and (target.ndim not in (1, 2) or len(target) != n_rows):
            raise InputError(
                f"y must have one value per row of X, shape ({n_rows},). Got shape {target.shape}."
            )
        weight = check_weights(sample_weight, n_rows)
        names = None if feature_names is None else tuple(map(str, feature_names))
        present = weight > 0
        domains: tuple[Any, ...] = (None,)
        codes = np.zeros(n_rows, dtype=np.intp)
        if groups is not None:
            labels, present_codes = np.unique(
                check_groups(groups, n_rows)[present], return_inverse=True
            )
            if labels.dtype.kind == "M":  # `tolist` would turn nanoseconds into whole numbers
                labels = labels.astype("datetime64[us]")
            domains = tuple(labels.tolist())
            codes[present] = present_codes
        if not present.all():
            X, codes, weight = X[present], codes[present], weight[present]
            target = None if target is None else target[present]
        return moments_by_code(X, target, codes, weight, domains, names)

    @classmethod
    @speaks
    def from_frame(
        cls,
        frame: Any,
        *,
        target: str | None = None,
        domain: str | None = None,
        weight: str | None = None,
        dtype: Any = np.float64,
    ) -> Moments:
        """Moments of a data frame (pandas, Polars, Arrow table or record batch) by column names.

        Parameters
        ----------
        frame : data frame
            Every column that is not named below is a feature.
        target, domain, weight : str, optional
            Columns of y, of the domains and of the weights.
        dtype : {float64, float32}

        Examples
        --------
        >>> import pyarrow as pa
        >>> table = pa.table({"dose": [1.0, 3.0], "sick": [0, 1], "site": ["A", "A"]})
        >>> sums = Moments.from_frame(table, target="sick", domain="site")
        >>> sums.domains, sums.feature_names, sums.mean_x[0]
        (('A',), ('dose',), array([2.]))
        """
        if isinstance(frame, pa.RecordBatch):  # narwhals takes Arrow tables only
            frame = pa.Table.from_batches([frame])
        table = nw.from_native(frame, eager_only=True, pass_through=True)
        if not isinstance(table, nw.DataFrame):
            raise InputTypeError(
                "expected a data frame (pandas, Polars, Arrow). "
                f"Got {type(frame).__name__}. For arrays call Moments.from_arrays."
            )
        roles = [name for name in (target, domain, weight) if name is not None]
        for name in roles:
            if name not in table.columns:
                raise InputError(f"no column {name!r}. Got {list(table.columns)}.")
        features = [name for name in table.columns if name not in roles]
        for name in (*features, *roles):
            column = table[name]
            if name != domain and not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
                raise InputError(
                    f"expected numbers. Got {column.dtype} in column {name!r}. "
                    "Encode it or leave it out."
                )
            if column.null_count():
                raise InputError(
                    f"column {name!r} has missing values. Fill them or leave those rows out."
                )
        if not features:
            raise InputError(
                "expected at least one feature. Got the columns "
                f"{list(table.columns)}, all of which are target, domain or weight."
            )
        X = np.column_stack([table[name].to_numpy().astype(dtype) for name in features])
        given = [None if name is None else table[name].to_numpy() for name in (target, weight)]
        return cls.from_arrays(
            X,
            given[0],
            groups=None if domain is None else table[domain].to_list(),
            sample_weight=given[1],
            feature_names=features,
            dtype=dtype,
        )

    @classmethod
    @speaks
    def from_batches(cls, batches: Iterable[Any], **columns: Any) -> Moments:
        """Moments of many frames or record batches, one in memory at a time.

        Parameters
        ----------
        batches : iterable of data frames
            Such as a generator over files, or ``pyarrow.dataset(...).to_batches()``. Batches
            without rows are passed over.
        **columns
            As in `from_frame`.
        """
        sums: dict[Any, tuple[Any, ...]] = {}
        first: Moments | None = None
        for batch in batches:
            if not len(batch):
                continue
            part = cls.from_frame(batch, **columns)
            first = first or part
            first._check_same_columns(part)
            part._add_to(sums)
        if first is None:
            raise InputError("expected at least one batch with rows. Got 0.")
        return cls._ordered(sums, first.feature_names)

    @classmethod
    @speaks
    def from_engine(
        cls, frame: Any, *, target: str | None = None, domain: str | None = None
    ) -> Moments:
        """Moments of a frame of Dask or Spark, made where its parts are; only sums come here.

        Of a `holdtrue.engine.database.DatabaseTable` the rows come here, some at a time.

        Parameters
        ----------
        frame : data frame of Dask or Spark, or DatabaseTable
            Every column that is not named below is a feature.
        target, domain : str, optional
            Columns of y and of the domains.
        """
        from holdtrue.engine import engine_of

        table = engine_of(frame)
        if table is None:
            raise InputTypeError("expected a data frame of Dask or Spark. Got another.")
        roles = {"target": target, "domain": domain}
        table.check_names(**{role: name for role, name in roles.items() if name is not None})
        return table.sum(partial(cls.from_frame, target=target, domain=domain), table.names)

    @speaks
    def partial_fit(self, X: Any, y: np.ndarray | None = None, **arguments: Any) -> Moments:
        """Moments with further rows added: ``self + from_arrays(X, y, ...)``; self stays as it is.

        Parameters
        ----------
        X, y, **arguments
            As in `from_arrays`.
        """
        defaults = {"feature_names": self.feature_names, "dtype": self.scatter_xx.dtype}
        return self + Moments.from_arrays(X, y, **{**defaults, **arguments})

    # --- sums of sums ---

    @speaks
    def __add__(self, other: Moments) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        self._check_same_columns(other)
        sums: dict[Any, tuple[Any, ...]] = {}
        self._add_to(sums)
        other._add_to(sums)
        return Moments._ordered(sums, self.feature_names or other.feature_names)

    def __radd__(self, other: Any) -> Moments:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # for `sum`

    @speaks
    def take(self, domains: Iterable[Any]) -> Moments:
        """The moments of these domains alone, in this order."""
        wanted = list(domains)
        missing = [domain for domain in wanted if domain not in self.domains]
        if missing or not wanted:
            raise InputError(f"expected some of the domains {list(self.domains)}. Got {wanted}.")
        at = [self.domains.index(domain) for domain in wanted]
        kept = [None if array is None else array[at] for array in self._arrays().values()]
        return Moments._of(wanted, kept, self.feature_names)

    @speaks
    def without(self, domain: Any) -> Moments:
        """The moments with one domain left out."""
        if domain not in self.domains:
            self.take([domain])
        return self.take([other for other in self.domains if other != domain])

    @speaks
    def second_moment(self) -> np.ndarray:
        """``E[X Xᵀ]`` of every domain, about zero, shape (n_domains, n_features, n_features)."""
        outer = self.mean_x[:, :, None] * self.mean_x[:, None, :]
        return self.scatter_xx / self.n_samples[:, None, None] + outer

    # --- as bytes and on disk ---

    @speaks
    def to_bytes(self) -> bytes:
        """The sums as bytes (Arrow's IPC format with a head in JSON); nothing is pickled."""
        arrays = {name: value for name, value in self._arrays().items() if value is not None}
        head = {"domains": labels_to_json(self.domains), "names": self.feature_names}
        return pack("Moments", head, arrays)

    @classmethod
    @speaks
    def from_bytes(cls, data: bytes) -> Moments:
        """The sums that `to_bytes` gave. Anything else is refused with a `ValueError`."""
        head, arrays = unpack("Moments", data)
        try:
            names, domains = head["names"], tuple(labels_from_json(head["domains"]))
            if names is not None and not (
                isinstance(names, list) and all(isinstance(name, str) for name in names)
            ):
                raise ValueError("names are not text")
            for name, array in arrays.items():
                kind = getattr(array, "dtype", type(array).__name__)
                if name not in _ARRAYS or kind not in (np.float32, np.float64):
                    raise ValueError(f"an array {name!r} of type {kind}")
                if not np.isfinite(array).all():
                    raise ValueError(f"{name} does not hold finite numbers")
            names = None if names is None else tuple(names)
            sums = cls(domains, feature_names=names, **arrays)
            _check_possible(sums.n_samples, sums.mean_x, sums.scatter_xx, sums.scatter_yy)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise InputError(f"the bytes are damaged: {error}. Write them again.") from error
        return sums

    @speaks
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sums to one file (`to_bytes`), whole or not at all."""
        data = self.to_bytes()
        with written_whole(path) as file:
            file.write(data)

    @classmethod
    @speaks
    def load(cls, path: str | os.PathLike[str]) -> Moments:
        """The sums that `save` wrote. Anything else is refused with a `ValueError`."""
        try:
            return cls.from_bytes(Path(path).read_bytes())
        except InputError as error:
            raise InputError(
                f"expected a file that Moments.save wrote. Got {str(path)!r}: {error.sentence}"
            ) from error

    def _check_same_columns(self, other: Moments) -> None:
        if self.n_features != other.n_features:
            raise InputError(
                "sums of tables with different columns do not add. "
                f"Got {self.n_features} and {other.n_features} features."
            )
        names = (self.feature_names, other.feature_names)
        if None not in names and names[0] != names[1]:
            raise InputError(
                "sums of tables with different columns do not add. "
                f"Got the columns {names[0]} and {names[1]}. Put them in one order."
            )
        if self.has_target != other.has_target:
            raise InputError(
                "sums with a target and sums without one do not add. "
                "Build both with y, or both without."
            )
        if self.mean_y is None or other.mean_y is None:
            return
        if self.mean_y.shape[1:] != other.mean_y.shape[1:]:
            counts = (self.mean_y[0].size, other.mean_y[0].size)
            raise InputError(
                "sums with different targets do not add. "
                f"Got y of {counts[0]} and of {counts[1]} columns. Build both with the same y."
            )

    @classmethod
    def _ordered(cls, sums: dict[Any, tuple[Any, ...]], names: tuple[str, ...] | None) -> Moments:
        """Domains in the order of `from_arrays`: parts add up to the whole in any order."""
        order = sorted(sums, key=lambda domain: (type(domain).__name__, domain))
        return cls._of(order, _stacked([sums[domain] for domain in order]), names)

    @classmethod
    def _of(
        cls, domains: Iterable[Any], arrays: list[Any], names: tuple[str, ...] | None
    ) -> Moments:
        fields = dict(zip(_ARRAYS, arrays, strict=True))
        return cls(domains=tuple(domains), feature_names=names, **fields)

    def _arrays(self) -> dict[str, np.ndarray | None]:
        return {name: getattr(self, name) for name in _ARRAYS}

    def _add_to(self, sums: dict[Any, tuple[Any, ...]]) -> None:
        """Add to the entries of domains; rests are there wherever means are."""
        *arrays, rest_x, rest_y = self._arrays().values()
        for mean, rest in ((self.mean_x, rest_x), (self.mean_y, rest_y)):
            arrays.append(np.zeros(np.shape(mean)) if rest is None and mean is not None else rest)
        for d, domain in enumerate(self.domains):
            entry = tuple(None if array is None else array[d] for array in arrays)
            sums[domain] = _merged(sums[domain], entry) if domain in sums else entry


def moments_by_code(
    X: Any,
    y: np.ndarray | None,
    codes: np.ndarray,
    weight: np.ndarray,
    domains: tuple[Any, ...],
    feature_names: tuple[str, ...] | None = None,
) -> Moments:
    """Moments of clean rows; ``scatter_xx`` has the dtype of X.

    Parameters
    ----------
    X : ndarray or CSR array of shape (n_rows, n_features)
    y : ndarray of shape (n_rows,) or (n_rows, n_targets), or None
    codes : ndarray of int, shape (n_rows,)
        Index in ``domains`` of each row's domain; each has a row.
    weight : ndarray of shape (n_rows,)
        Positive.
    domains : tuple
    feature_names : tuple of str, optional
    """
    order = None if (np.diff(codes) >= 0).all() else np.argsort(codes, kind="stable")
    ordered = codes if order is None else codes[order]
    scatter = np.empty((len(domains), X.shape[1], X.shape[1]), dtype=X.dtype)
    parts = []
    ends = np.searchsorted(ordered, np.arange(len(domains) + 1))
    for d, (start, stop) in enumerate(pairwise(ends.tolist())):
        at: Any = slice(start, stop) if order is None else order[start:stop]
        with np.errstate(over="ignore", invalid="ignore"):  # checked there
            entry = _moments_of_one(X[at], None if y is None else y[at], weight[at])
        scatter[d] = entry[2]
        parts.append((*entry[:2], 0.0, *entry[3:]))
    arrays = _stacked(parts)
    arrays[2] = scatter
    return Moments._of(domains, arrays, feature_names)


# --- entries of one domain: of its rows, of two parts together, and which are possible ---
#
# An entry is a tuple in the order of `_ARRAYS`: weight, means of x, scatter of x, means of y,
# scatter of x and y, scatter of y, and what rounding took from both means; None where there is no
# y.


def _moments_of_one(X: Any, y: np.ndarray | None, weight: np.ndarray) -> tuple[Any, ...]:
    """Weight, means, scatters and rests of one domain's rows, in the order of ``_ARRAYS``."""
    total = weight.sum()
    is_sparse, weighted = sparse.issparse(X), bool((weight != 1).any())
    mean_x = np.asarray(weight @ X if is_sparse or weighted else X.sum(0, float)) / total
    mean_y = None if y is None else weight @ y / total
    for name, mean in (("X", mean_x), ("y", mean_y)):
        if mean is not None and not np.isfinite(mean).all():
            raise InputError(
                f"{name} must hold finite numbers. Got NaN or infinity. Fill or leave out "
                "those rows."
            )
    rest_x = np.zeros(len(mean_x))
    if is_sparse:
        # About zero, then moved: centred rows would be dense. Sparse columns have small means.
        scatter = (X.astype(np.float64).multiply(weight[:, None]).tocsr().T @ X).toarray()
        square = np.diag(scatter).copy()
        scatter -= total * np.outer(mean_x, mean_x)
        constant = without_rounding(np.diag(scatter), square, X.shape[0]) == 0
        scatter[constant] = scatter[:, constant] = 0.0
        scatter = scatter.astype(X.dtype)
    else:
        X = X - mean_x.astype(X.dtype)
        if X.dtype == np.float64:
            rest_x = weight @ X / total
        if weighted:
            X *= np.sqrt(weight).astype(X.dtype)[:, None]
        scatter = X.T @ X
        if (total * rest_x**2 > _EPS * np.diag(scatter)).any():
            scatter -= total * np.outer(rest_x, rest_x)
            np.fill_diagonal(scatter, np.maximum(np.diag(scatter), 0.0))
    if not np.isfinite(np.diag(scatter)).all():
        check_magnitude("X", np.diag(scatter)[:, None], dtype=X.dtype)
    if y is None:
        return total, mean_x, scatter, None, None, None, rest_x, None
    column = (slice(None),) + (None,) * (y.ndim - 1)
    residual = y - mean_y
    rest_y = weight @ residual / total
    residual -= rest_y
    scatter_yy = np.einsum("i...,i...->...", residual, weight[column] * residual)
    residual *= (weight if is_sparse else np.sqrt(weight))[column]
    return total, mean_x, scatter, mean_y, X.T @ residual, scatter_yy, rest_x, rest_y


def without_rounding(variance: np.ndarray, square: np.ndarray, n_rows: int) -> np.ndarray:
    """Differences ``E[x²] - E[x]²``, 0 where they are rounding error of the square."""
    rounding = 8 * np.finfo(np.float64).eps * np.sqrt(n_rows) * square
    return np.where(variance > rounding, variance, 0.0)


def _merged(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """Moments of the rows of a and b together (Chan, Golub & LeVeque 1983, eq. 2.1)."""
    total = a[0] + b[0]
    share = b[0] / total
    factor = a[0] * share
    dx, mean_x, rest_x = _moved_mean(a[1], a[6], b[1], b[6], share)
    outer = (factor * np.outer(dx, dx)).astype(a[2].dtype, copy=False)
    scatter_xx = a[2] + b[2] + outer
    if a[3] is None:
        return total, mean_x, scatter_xx, None, None, None, rest_x, None
    dy, mean_y, rest_y = _moved_mean(a[3], a[7], b[3], b[7], share)
    scatter_xy = a[4] + b[4] + factor * np.multiply.outer(dx, dy)
    scatter_yy = a[5] + b[5] + factor * dy**2
    return total, mean_x, scatter_xx, mean_y, scatter_xy, scatter_yy, rest_x, rest_y


def _moved_mean(
    mean_a: Any, rest_a: Any, mean_b: Any, rest_b: Any, share: float
) -> tuple[Any, Any, Any]:
    """Difference ``b - a``, and ``a + share (b - a)`` as a rounded mean and what rounding took."""
    difference = (mean_b - mean_a) + (rest_b - rest_a)
    step = rest_a + share * difference
    mean = mean_a + step
    # Knuth's two-sum: what the addition rounded away.
    moved = mean - mean_a
    return difference, mean, (mean_a - (mean - moved)) + (step - moved)


def _check_possible(
    n: np.ndarray, mean_x: np.ndarray, scatter: np.ndarray, scatter_yy: np.ndarray | None
) -> None:
    """Refuse sums that no rows have with a `ValueError`.

    Parameters
    ----------
    n : ndarray of shape (n_domains,)
    mean_x : ndarray of shape (n_domains, n_features)
    scatter : ndarray of shape (n_domains, n_features, n_features)
    scatter_yy : ndarray of shape (n_domains, ...) or None
    """
    if not (n > 0).all():
        raise ValueError("n_samples is not positive")
    spread = np.einsum("dii->di", scatter)
    if (spread < 0).any() or (scatter_yy is not None and (scatter_yy < 0).any()):
        raise ValueError("a variance is negative")
    for d, matrix in enumerate(scatter):
        # Covariances obey Cauchy-Schwarz, but for rounding error of the second moments about zero.
        with np.errstate(over="ignore", invalid="ignore"):  # nan is not below a limit
            root, size = np.sqrt(spread[d]), np.sqrt(spread[d] + n[d] * mean_x[d] ** 2)
            limit = (1 + _SLACK) * np.outer(root, root) + _SLACK**2 * np.outer(size, size)
            if not (np.abs(matrix) <= limit).all():
                raise ValueError("scatter_xx holds covariances above their variances")
            if not (np.abs(matrix - matrix.T) <= _SLACK * limit).all():
                raise ValueError("scatter_xx is not symmetric")


def _stacked(parts: list[tuple[Any, ...]]) -> list[Any]:
    """One array per field from one tuple per domain."""
    return [None if column[0] is None else np.array(column) for column in zip(*parts, strict=True)]
