"""Moments: first and second moments of rows, domain by domain, that add over parts of a table."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from scipy import sparse

from holdtrue.files import written_whole
from holdtrue.validation import check_groups, check_magnitude

__all__ = ["Moments"]

_FORMAT = "holdtrue.Moments"
_ARRAYS = ("n_samples", "mean_x", "scatter_xx", "mean_y", "scatter_xy", "scatter_yy")
_TARGET = ("mean_y", "scatter_xy", "scatter_yy")


@dataclass(frozen=True, eq=False)
class Moments:
    """First and second moments of X, and of y where there is one, domain by domain.

    ``a + b`` gives the moments of the rows of both; neither is changed. Second moments are kept
    about each domain's own mean, and merged by the formula of Chan, Golub & LeVeque (1983), so
    that adding a thousand parts loses no digits to a large mean.

    Build one with `from_arrays`, `from_frame` or, part by part, with `from_batches`.

    Parameters
    ----------
    domains : tuple
        Labels of the domains, sorted as they came.
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

    def __post_init__(self) -> None:
        n_domains, n_features = np.shape(self.mean_x)
        targets = np.shape(self.mean_y)[1:] if self.mean_y is not None else ()
        shapes = {
            "n_samples": (n_domains,),
            "scatter_xx": (n_domains, n_features, n_features),
            "mean_y": (n_domains, *targets),
            "scatter_xy": (n_domains, n_features, *targets),
            "scatter_yy": (n_domains, *targets),
        }
        if len(self.domains) != n_domains or len(set(self.domains)) != n_domains:
            raise ValueError(
                f"Moments: expected {n_domains} distinct domains. Got {list(self.domains)}."
            )
        for name, shape in shapes.items():
            value = getattr(self, name)
            if value is None and name in _TARGET:
                if self.has_target:
                    raise ValueError(
                        "Moments: mean_y, scatter_xy and scatter_yy belong together. "
                        f"Got {name}=None. Pass all three or none."
                    )
            elif np.shape(value) != shape:
                raise ValueError(
                    f"Moments: {name} must have shape {shape} for {n_domains} domains and "
                    f"{n_features} features. Got {np.shape(value)}."
                )
        if self.feature_names is not None and len(self.feature_names) != n_features:
            raise ValueError(
                f"Moments: feature_names must name {n_features} features. "
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
            raise ValueError(f"Moments: dtype must be float64 or float32. Got {dtype!r}.")
        X = sparse.csr_array(X, dtype=dtype) if sparse.issparse(X) else np.asarray(X, dtype=dtype)
        if X.ndim != 2:
            raise ValueError(f"Moments: X must have 2 dimensions. Got shape {X.shape}.")
        n_rows = X.shape[0]
        columns = {"y": y, "groups": groups, "sample_weight": sample_weight}
        for name, column in columns.items():
            shape = np.shape(column)[:1] if name == "y" and np.ndim(column) == 2 else None
            if column is not None and (np.shape(column) if shape is None else shape) != (n_rows,):
                raise ValueError(
                    f"Moments: {name} must have one value per row of X, shape ({n_rows},). "
                    f"Got shape {np.shape(column)}."
                )
        weight = np.ones(n_rows) if sample_weight is None else np.asarray(sample_weight, float)
        if not (np.isfinite(weight).all() and (weight >= 0).all()):
            raise ValueError("Moments: sample_weight must be finite and not negative.")
        if not weight.any():
            raise ValueError(f"Moments: no row has a positive weight. Got {n_rows} rows.")
        present = weight > 0
        target = None if y is None else np.asarray(y, dtype=np.float64)
        if groups is None:
            domains: tuple[Any, ...] = (None,)
            masks: Any = [present]
        else:
            labels = check_groups("Moments", groups, n_rows)
            found, codes = np.unique(labels[present], return_inverse=True)
            if found.dtype.kind == "M":  # of nanoseconds, `tolist` would make whole numbers
                found = found.astype("datetime64[us]")
            domains = tuple(found.tolist())
            every = np.full(n_rows, -1)
            every[present] = codes
            masks = (every == code for code in range(len(domains)))
        scatter = np.empty((len(domains), X.shape[1], X.shape[1]), dtype=dtype)
        parts = []
        for d, mask in enumerate(masks):
            rows = X if mask.all() else X[mask]
            own_y = None if target is None else target[mask]
            with np.errstate(over="ignore", invalid="ignore"):  # checked there
                total, mean_x, scatter[d], *rest = _moments_of_one(rows, own_y, weight[mask])
            parts.append((total, mean_x, *rest))
        names = None if feature_names is None else tuple(map(str, feature_names))
        return cls._of(domains, [*_stacked(parts)[:2], scatter, *_stacked(parts)[2:]], names)

    @classmethod
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
        if type(frame).__name__ == "RecordBatch":  # narwhals takes Arrow tables only
            import pyarrow as pa

            frame = pa.Table.from_batches([frame])
        table = nw.from_native(frame, eager_only=True, pass_through=True)
        if not isinstance(table, nw.DataFrame):
            raise TypeError(
                "Moments.from_frame: expected a data frame (pandas, Polars, Arrow). "
                f"Got {type(frame).__name__}. For arrays call Moments.from_arrays."
            )
        roles = [name for name in (target, domain, weight) if name is not None]
        for name in roles:
            if name not in table.columns:
                raise ValueError(
                    f"Moments.from_frame: no column {name!r}. Got {list(table.columns)}."
                )
        features = [name for name in table.columns if name not in roles]
        for name in (*features, *roles):
            column = table[name]
            if name != domain and not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
                raise ValueError(
                    f"Moments.from_frame: expected numbers. Got {column.dtype} in column {name!r}. "
                    "Encode it or leave it out."
                )
            if column.null_count():
                raise ValueError(
                    f"Moments.from_frame: column {name!r} has missing values. "
                    "Fill them or leave those rows out."
                )
        if not features:
            raise ValueError(
                "Moments.from_frame: expected at least one feature. Got the columns "
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
            for domain, own in zip(part.domains, part._by_domain(), strict=True):
                sums[domain] = _merged(sums[domain], own) if domain in sums else own
        if first is None:
            raise ValueError("Moments.from_batches: expected at least one batch with rows. Got 0.")
        return cls._ordered(sums, first.feature_names)

    def partial_fit(self, X: Any, y: np.ndarray | None = None, **arguments: Any) -> Moments:
        """Moments with further rows added: ``self + from_arrays(X, y, ...)``; self stays as it is.

        Parameters
        ----------
        X, y, **arguments
            As in `from_arrays`.
        """
        names = self.feature_names
        own = {"feature_names": names, "dtype": self.scatter_xx.dtype}
        return self + Moments.from_arrays(X, y, **{**own, **arguments})

    # --- sums of sums ---

    def __add__(self, other: Moments) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        self._check_same_columns(other)
        merged = dict(zip(self.domains, self._by_domain(), strict=True))
        for domain, part in zip(other.domains, other._by_domain(), strict=True):
            merged[domain] = _merged(merged[domain], part) if domain in merged else part
        return Moments._ordered(merged, self.feature_names or other.feature_names)

    def __radd__(self, other: Any) -> Moments:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # for `sum`

    def take(self, domains: Iterable[Any]) -> Moments:
        """The moments of these domains alone, in this order."""
        wanted = list(domains)
        missing = [domain for domain in wanted if domain not in self.domains]
        if missing or not wanted:
            raise ValueError(
                f"Moments: expected some of the domains {list(self.domains)}. Got {wanted}."
            )
        at = [self.domains.index(domain) for domain in wanted]
        kept = [None if array is None else array[at] for array in self._arrays().values()]
        return Moments._of(wanted, kept, self.feature_names)

    def without(self, domain: Any) -> Moments:
        """The moments with one domain left out."""
        if domain not in self.domains:
            self.take([domain])
        return self.take([other for other in self.domains if other != domain])

    def second_moment(self) -> np.ndarray:
        """``E[X Xᵀ]`` of every domain, about zero, shape (n_domains, n_features, n_features)."""
        outer = self.mean_x[:, :, None] * self.mean_x[:, None, :]
        return self.scatter_xx / self.n_samples[:, None, None] + outer

    # --- on disk ---

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sums to one ``.npz`` file without pickles, whole or not at all.

        Labels of domains must be text, numbers or None.
        """
        try:
            labels = json.dumps(list(self.domains), allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValueError(
                "Moments.save: labels of domains must be text, numbers or None. "
                f"Got {list(self.domains)}. Rename them."
            ) from error
        head = {"format": _FORMAT, "version": 1, "names": self.feature_names}
        contents: dict[str, Any] = {"head": json.dumps(head), "domains": labels}
        contents |= {name: value for name, value in self._arrays().items() if value is not None}
        with written_whole(path) as file:
            np.savez(file, **contents)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Moments:
        """The sums that `save` wrote. Anything else is refused with a `ValueError`."""
        try:
            # Opened here: NumPy leaves a broken file open.
            with Path(path).open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                head = json.loads(str(file["head"]))
                if head["format"] != _FORMAT or head["version"] != 1:
                    raise ValueError(f"it says {head['format']!r}, version {head['version']!r}")
                arrays = {name: file[name] for name in _ARRAYS if name in file}
                domains, names = json.loads(str(file["domains"])), head["names"]
            for name, array in arrays.items():
                if array.dtype not in (np.float32, np.float64) or not np.isfinite(array).all():
                    raise ValueError(f"{name} does not hold finite numbers")
            if not (arrays["n_samples"] > 0).all():
                raise ValueError("n_samples is not positive")
            return cls(
                domains=tuple(domains),
                feature_names=None if names is None else tuple(names),
                **arrays,
            )
        except FileNotFoundError:
            raise
        except (OSError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile) as error:
            raise ValueError(
                f"Moments.load: expected a file that Moments.save wrote. Got {str(path)!r}: "
                f"{error}. Write it again with Moments.save."
            ) from error

    def _check_same_columns(self, other: Moments) -> None:
        if self.n_features != other.n_features:
            raise ValueError(
                "Moments: sums of tables with different columns do not add. "
                f"Got {self.n_features} and {other.n_features} features."
            )
        names = (self.feature_names, other.feature_names)
        if None not in names and names[0] != names[1]:
            raise ValueError(
                "Moments: sums of tables with different columns do not add. "
                f"Got the columns {names[0]} and {names[1]}. Put them in one order."
            )
        if self.has_target != other.has_target:
            raise ValueError(
                "Moments: sums with a target and sums without one do not add. "
                "Build both with y, or both without."
            )
        if self.mean_y is None or other.mean_y is None:
            return
        if self.mean_y.shape[1:] != other.mean_y.shape[1:]:
            counts = (self.mean_y[0].size, other.mean_y[0].size)
            raise ValueError(
                "Moments: sums with different targets do not add. "
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

    def _by_domain(self) -> list[tuple[Any, ...]]:
        arrays = list(self._arrays().values())
        return [
            tuple(None if array is None else array[d] for array in arrays)
            for d in range(len(self.domains))
        ]


def _moments_of_one(X: Any, y: np.ndarray | None, weight: np.ndarray) -> tuple[Any, ...]:
    """Weight, means and scatters of one domain's rows, in the order of the class's fields."""
    total = weight.sum()
    weighted_sum = weight @ X if sparse.issparse(X) or (weight != 1).any() else X.sum(0, float)
    mean_x = np.asarray(weighted_sum) / total
    mean_y = None if y is None else weight @ y / total
    for name, mean in (("X", mean_x), ("y", mean_y)):
        if mean is not None and not np.isfinite(mean).all():
            raise ValueError(
                f"Moments: {name} must hold finite numbers. Got NaN or infinity. Fill or leave out "
                "those rows."
            )
    if sparse.issparse(X):
        # About zero, then moved: centred rows would be dense. Sparse columns have small means.
        weighted = X.astype(np.float64).multiply(weight[:, None]).tocsr()
        scatter = (weighted.T @ X).toarray()
        square = np.diag(scatter).copy()
        scatter -= total * np.outer(mean_x, mean_x)
        constant = without_rounding(np.diag(scatter), square, X.shape[0]) == 0
        scatter[constant] = scatter[:, constant] = 0.0
        scatter = scatter.astype(X.dtype)
        centred = None
    else:
        centred = X - mean_x.astype(X.dtype)
        if (weight != 1).any():
            centred *= np.sqrt(weight).astype(X.dtype)[:, None]
        scatter = centred.T @ centred
    if not np.isfinite(np.diag(scatter)).all():
        check_magnitude("Moments", "X", np.diag(scatter)[:, None], dtype=X.dtype)
    if y is None:
        return total, mean_x, scatter, None, None, None
    column = (slice(None),) + (None,) * (y.ndim - 1)
    residual = y - mean_y
    if centred is None:
        weighted_residual = weight[column] * residual
        scatter_xy = X.T @ weighted_residual
    else:
        weighted_residual = np.sqrt(weight)[column] * residual
        scatter_xy = centred.T @ weighted_residual
    scatter_yy = np.einsum("i...,i...->...", residual, weight[column] * residual)
    return total, mean_x, scatter, mean_y, scatter_xy, scatter_yy


def without_rounding(variance: np.ndarray, square: np.ndarray, n_rows: int) -> np.ndarray:
    """Differences ``E[x²] - E[x]²``, 0 where they are rounding error of the square."""
    rounding = 8 * np.finfo(np.float64).eps * np.sqrt(n_rows) * square
    return np.where(variance > rounding, variance, 0.0)


def _merged(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """Moments of the rows of a and b together (Chan, Golub & LeVeque 1983, eq. 2.1)."""
    total = a[0] + b[0]
    share = b[0] / total
    dx = b[1] - a[1]
    factor = a[0] * share
    outer = (factor * np.outer(dx, dx)).astype(a[2].dtype, copy=False)
    x_sums = (total, a[1] + share * dx, a[2] + b[2] + outer)
    if a[3] is None:
        return (*x_sums, None, None, None)
    dy = b[3] - a[3]
    return (
        *x_sums,
        a[3] + share * dy,
        a[4] + b[4] + factor * np.multiply.outer(dx, dy),
        a[5] + b[5] + factor * dy**2,
    )


def _stacked(parts: list[tuple[Any, ...]]) -> list[Any]:
    """One array per field from one tuple per domain."""
    return [None if column[0] is None else np.array(column) for column in zip(*parts, strict=True)]
