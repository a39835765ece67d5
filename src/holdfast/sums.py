"""Sums that add: what a fit needs of the rows, so that parts of a table can be summed apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Moments"]


@dataclass(frozen=True, eq=False)
class Moments:
    """First and second moments of X, and of y where there is one, domain by domain.

    ``a + b`` gives the moments of the rows of both; neither is changed. Second moments are kept
    about each domain's own mean, and merged by the formula of Chan, Golub & LeVeque (1983), so
    that adding a thousand parts loses no digits to a large mean.

    Build one with `from_arrays`.

    Parameters
    ----------
    domains : tuple
        Labels of the domains, sorted as they came.
    n_samples : ndarray of shape (n_domains,)
        Rows per domain; with weights, their sum.
    mean_x : ndarray of shape (n_domains, n_features)
    scatter_xx : ndarray of shape (n_domains, n_features, n_features)
        ``Σ w (x - mean_x)(x - mean_x)ᵀ``.
    mean_y : ndarray of shape (n_domains,), optional
    scatter_xy : ndarray of shape (n_domains, n_features), optional
    scatter_yy : ndarray of shape (n_domains,), optional
        Absent, all three, for rows without a target.

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

    def __post_init__(self) -> None:
        n_domains, n_features = np.shape(self.mean_x)
        shapes = {
            "n_samples": (n_domains,),
            "scatter_xx": (n_domains, n_features, n_features),
            "mean_y": (n_domains,),
            "scatter_xy": (n_domains, n_features),
            "scatter_yy": (n_domains,),
        }
        if len(self.domains) != n_domains or len(set(self.domains)) != n_domains:
            raise ValueError(
                f"Moments: expected {n_domains} distinct domains. Got {list(self.domains)}."
            )
        for name, shape in shapes.items():
            value = getattr(self, name)
            if value is None and name in ("mean_y", "scatter_xy", "scatter_yy"):
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

    @property
    def n_features(self) -> int:
        """Number of columns of X."""
        return int(self.mean_x.shape[1])

    @property
    def has_target(self) -> bool:
        """Whether the moments of y are there."""
        return not (self.mean_y is None and self.scatter_xy is None and self.scatter_yy is None)

    @classmethod
    def from_arrays(
        cls,
        X: np.ndarray,
        y: np.ndarray | None = None,
        *,
        groups: np.ndarray | None = None,
        sample_weight: np.ndarray | None = None,
    ) -> Moments:
        """Moments of the rows of X (n_samples, n_features) and y (n_samples,).

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,), optional
        groups : array-like of shape (n_samples,), optional
            Domain of each row; without it all rows belong to one domain, ``None``.
        sample_weight : ndarray of shape (n_samples,), optional
            Weights are repetitions; a row of weight 0 counts for nothing.
        """
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2:
            raise ValueError(f"Moments: X must have 2 dimensions. Got shape {X.shape}.")
        columns = {"y": y, "groups": groups, "sample_weight": sample_weight}
        for name, column in columns.items():
            if column is not None and np.shape(column) != (len(X),):
                raise ValueError(
                    f"Moments: {name} must have one value per row of X, shape ({len(X)},). "
                    f"Got shape {np.shape(column)}."
                )
        weight = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, float)
        if not (np.isfinite(weight).all() and (weight >= 0).all()):
            raise ValueError("Moments: sample_weight must be finite and not negative.")
        if not weight.any():
            raise ValueError(f"Moments: no row has a positive weight. Got {len(X)} rows.")
        present = weight > 0
        target = None if y is None else np.asarray(y, dtype=np.float64)
        if groups is None:
            domains: tuple[Any, ...] = (None,)
            masks = [present]
        else:
            labels = np.asarray(groups)
            domains = tuple(np.unique(labels[present]).tolist())
            masks = [present & (labels == domain) for domain in domains]
        parts = [
            _moments_of_one(X[mask], None if target is None else target[mask], weight[mask])
            for mask in masks
        ]
        return cls(domains, *_stacked(parts))

    def __add__(self, other: Moments) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        if self.n_features != other.n_features:
            raise ValueError(
                "Moments: sums of tables with different columns do not add. "
                f"Got {self.n_features} and {other.n_features} features."
            )
        if self.has_target != other.has_target:
            raise ValueError(
                "Moments: sums with a target and sums without one do not add. "
                "Build both with y, or both without."
            )
        merged = dict(zip(self.domains, self._by_domain(), strict=True))
        for domain, part in zip(other.domains, other._by_domain(), strict=True):
            merged[domain] = _merged(merged[domain], part) if domain in merged else part
        return Moments(tuple(merged), *_stacked(list(merged.values())))

    def second_moment(self) -> np.ndarray:
        """``E[X Xᵀ]`` of every domain, about zero, shape (n_domains, n_features, n_features)."""
        outer = self.mean_x[:, :, None] * self.mean_x[:, None, :]
        return self.scatter_xx / self.n_samples[:, None, None] + outer

    def _by_domain(self) -> list[tuple[Any, ...]]:
        sums = (self.n_samples, self.mean_x, self.scatter_xx)
        target_sums = (self.mean_y, self.scatter_xy, self.scatter_yy)
        return [
            tuple(s[d] for s in sums) + tuple(None if s is None else s[d] for s in target_sums)
            for d in range(len(self.domains))
        ]


def _moments_of_one(X: np.ndarray, y: np.ndarray | None, weight: np.ndarray) -> tuple[Any, ...]:
    """Weight, means and scatters of one domain's rows, in the order of the class's fields."""
    total = weight.sum()
    mean_x = weight @ X / total
    root = np.sqrt(weight)
    centred = root[:, None] * (X - mean_x)
    x_sums = (total, mean_x, centred.T @ centred)
    if y is None:
        return (*x_sums, None, None, None)
    mean_y = weight @ y / total
    residual = root * (y - mean_y)
    return (*x_sums, mean_y, residual @ centred, residual @ residual)


def _merged(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """Moments of the rows of a and b together (Chan, Golub & LeVeque 1983, eq. 2.1)."""
    total = a[0] + b[0]
    share = b[0] / total
    dx = b[1] - a[1]
    factor = a[0] * share
    x_sums = (total, a[1] + share * dx, a[2] + b[2] + factor * np.outer(dx, dx))
    if a[3] is None:
        return (*x_sums, None, None, None)
    dy = b[3] - a[3]
    return (
        *x_sums,
        a[3] + share * dy,
        a[4] + b[4] + factor * dy * dx,
        a[5] + b[5] + factor * dy**2,
    )


def _stacked(parts: list[tuple[Any, ...]]) -> list[Any]:
    """One array per field from one tuple per domain."""
    return [
        None if column[0] is None else np.array(column, dtype=np.float64)
        for column in zip(*parts, strict=True)
    ]
