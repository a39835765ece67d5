"""Ordered families of functions: the terms of a nested model, simplest first.

A basis is fitted to the inputs (and, for the orders that look at it, the target), then turns rows
into *coordinates* and coordinates into *terms*. Coordinates are where a kernel density of the
inputs is drawn when no unlabelled rows are given. The first term is always the constant.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import BSpline
from scipy.spatial.distance import cdist, pdist
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lars_path, orthogonal_mp

from holdtrue.path import SelectionPath

NAMES = ("bspline", "columns", "cosine", "fourier", "lars", "legendre", "omp", "pca", "rbf")


class Rows(NamedTuple):
    """The sample: labelled rows of positive weight, and inputs without labels (maybe none)."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    unlabeled: np.ndarray

    def inputs(self) -> np.ndarray:
        """All inputs, labelled or not."""
        return np.concatenate([self.X, self.unlabeled])


class Basis:
    """What `NestedRegressor` asks of a basis.

    Attributes
    ----------
    uses_target : bool
        Whether the order of the terms may depend on y. Cross-validation then fits the basis anew
        in every fold.
    names : list of str
        The terms' names, once fitted.
    """

    uses_target = False
    names: list[str]

    def fit(self, rows: Rows, max_terms: int) -> Basis:
        """Learn at most max_terms terms from the rows."""
        raise NotImplementedError

    def coordinates(self, X: np.ndarray) -> np.ndarray:
        """Rows as points of the space in which the terms are functions."""
        raise NotImplementedError

    def terms(self, coordinates: np.ndarray, count: int | None = None) -> np.ndarray:
        """Values of the first count terms, or of all, shape (n_rows, n_terms)."""
        raise NotImplementedError

    def bounds(self, coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the range of each coordinate: those of the training rows, unless known."""
        return coordinates.min(axis=0), coordinates.max(axis=0)


# --- Functions of one input on a fixed interval -------------------------------------------------


@dataclass(frozen=True)
class Family:
    """Functions of one variable: ``evaluate(u, n)`` gives the first n of them, shape (len(u), n).

    ``per_degree`` functions share each degree above 0; ``name(k, x)`` is function k of the
    input called x.
    """

    low: float
    high: float
    per_degree: int
    evaluate: Callable[[np.ndarray, int], np.ndarray]
    name: Callable[[int, str], str]


def fourier(u: np.ndarray, n_terms: int) -> np.ndarray:
    """``1, √2 cos u, √2 sin u, √2 cos 2u, √2 sin 2u, ...`` on [-π, π] (section 4)."""
    values = np.ones((len(u), n_terms))
    for k in range(1, n_terms):
        frequency = (k + 1) // 2
        wave = np.cos if k % 2 else np.sin
        values[:, k] = math.sqrt(2) * wave(frequency * u)
    return values


def cosine(u: np.ndarray, n_terms: int) -> np.ndarray:
    """``1, √2 cos πu, √2 cos 2πu, ...`` on [0, 1]."""
    values = math.sqrt(2) * np.cos(np.pi * np.arange(n_terms) * u[:, None])
    values[:, 0] = 1.0
    return values


def legendre(u: np.ndarray, n_terms: int) -> np.ndarray:
    """``√(2k+1) P_k(u)`` on [-1, 1]: polynomials of mean square 1."""
    return np.polynomial.legendre.legvander(u, n_terms - 1) * np.sqrt(2 * np.arange(n_terms) + 1)


def bspline(u: np.ndarray, n_terms: int) -> np.ndarray:
    """Cubic splines on [0, 1], one knot more with each term behind the fourth.

    The first four terms are the cubic polynomials. Knots enter at 1/2, 1/4, 3/4, 1/8, 5/8, ...
    (van der Corput). With each the B-spline of the knots so far that has the new one in its
    middle is added: it alone bends there, so every size is exactly a space of splines.
    """
    values = np.empty((len(u), n_terms))
    values[:, : min(4, n_terms)] = legendre(2 * u - 1, min(4, n_terms))
    knots = [0.0] * 4 + [1.0] * 4
    for k, knot in zip(range(4, n_terms), _van_der_corput(), strict=False):
        at = int(np.searchsorted(knots, knot))
        knots.insert(at, knot)
        element = BSpline.basis_element(knots[at - 2 : at + 3], extrapolate=False)
        values[:, k] = np.nan_to_num(element(u))
    return values


def _van_der_corput() -> Iterator[float]:
    for i in itertools.count(1):
        yield sum(((i >> bit) & 1) / 2 ** (bit + 1) for bit in range(i.bit_length()))


FAMILIES = {
    "fourier": Family(
        -math.pi,
        math.pi,
        2,
        fourier,
        lambda k, x: f"{'cos' if k % 2 else 'sin'}({(k + 1) // 2} {x})",
    ),
    "cosine": Family(0.0, 1.0, 1, cosine, lambda k, x: f"cos({k}π {x})"),
    "legendre": Family(-1.0, 1.0, 1, legendre, lambda k, x: f"P{k}({x})"),
    "bspline": Family(
        0.0, 1.0, 1, bspline, lambda k, x: f"P{k}({x})" if k < 4 else f"spline{k - 3}({x})"
    ),
}


# ((input, function), ...); the constant is ().
Product = tuple[tuple[int, int], ...]


def total_degree_terms(n_inputs: int, per_degree: int, n_terms: int) -> list[Product]:
    """Products of functions of single inputs, in order of total degree.

    Parameters
    ----------
    n_inputs : int
    per_degree : int
        Functions of one input that share a degree (2 for Fourier's cosine and sine).
    n_terms : int
        How many products to list.

    Returns
    -------
    products : list of tuples
        Each product as ((input, function), ...), the constant as ().
    """

    def products() -> Iterator[Product]:
        yield ()
        for degree in itertools.count(1):
            for inputs in itertools.combinations_with_replacement(range(n_inputs), degree):
                powers = [(j, len(list(run))) for j, run in itertools.groupby(inputs)]
                # Degree g of one input has the functions per_degree (g-1) + 1, ..., per_degree g.
                choices = [
                    [(j, per_degree * (g - 1) + 1 + phase) for phase in range(per_degree)]
                    for j, g in powers
                ]
                yield from itertools.product(*choices)

    return list(itertools.islice(products(), n_terms))


class IntervalBasis(Basis):
    """Products of a family's functions, each input mapped from its range to the family's interval.

    Parameters
    ----------
    name : key of FAMILIES
    interval : array-like of shape (2,) or (n_features, 2), optional
        Fixes the ranges; without it they are those of the rows, labelled or not.
    """

    def __init__(self, name: str, interval: Any, input_names: list[str]):
        self.name = name
        self.interval = interval
        self.input_names = input_names

    @property
    def family(self) -> Family:
        return FAMILIES[self.name]

    def fit(self, rows: Rows, max_terms: int) -> IntervalBasis:
        inputs = rows.inputs()
        low, high = inputs.min(axis=0), inputs.max(axis=0)
        if self.interval is not None:
            fixed = np.broadcast_to(np.asarray(self.interval, dtype=float), (len(low), 2))
            outside = np.flatnonzero((low < fixed[:, 0]) | (high > fixed[:, 1]))
            if len(outside):
                j = outside[0]
                raise ValueError(
                    f"NestedRegressor: interval=({fixed[j, 0]:g}, {fixed[j, 1]:g}) must contain "
                    f"every value of {self.input_names[j]!r}. Got values from {low[j]:g} to "
                    f"{high[j]:g}. Widen interval, or pass None to take the range of the data."
                )
            low, high = fixed[:, 0], fixed[:, 1]
        self.low, self.high = low, high
        # A constant input has no range. Left out here, it would only repeat the constant term.
        self.inputs = np.flatnonzero(high > low)
        self.products: list[Product] = [()]
        if len(self.inputs):
            self.products = total_degree_terms(len(self.inputs), self.family.per_degree, max_terms)
        self.names = [
            " ".join(self.family.name(k, self.input_names[self.inputs[j]]) for j, k in product)
            or "1"
            for product in self.products
        ]
        return self

    def coordinates(self, X: np.ndarray) -> np.ndarray:
        """Inputs on the family's interval. Outside the range they are clipped, never wrapped."""
        low, high = self.low[self.inputs], self.high[self.inputs]
        unit = (np.clip(X[:, self.inputs], low, high) - low) / (high - low)
        return self.family.low + (self.family.high - self.family.low) * unit

    def bounds(self, coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        n_inputs = coordinates.shape[1]
        return np.full(n_inputs, self.family.low), np.full(n_inputs, self.family.high)

    def terms(self, coordinates: np.ndarray, count: int | None = None) -> np.ndarray:
        products = self.products[:count]
        used = sorted({j for product in products for j, _ in product})
        n_functions = 1 + max((k for product in products for _, k in product), default=0)
        functions = {j: self.family.evaluate(coordinates[:, j], n_functions) for j in used}
        values = np.ones((len(coordinates), len(products)))
        for column, product in enumerate(products):
            for j, k in product:
                values[:, column] *= functions[j][:, k]
        return values


# --- Columns of X in an order ------------------------------------------------------------------


class ColumnBasis(Basis):
    """The constant, then columns of X in an order that may look at the target.

    Parameters
    ----------
    order : callable
        ``order(X, y, max_columns)``, on rows centred and scaled by √weight, gives column indices.
    """

    def __init__(
        self,
        order: Callable[[np.ndarray, np.ndarray, int], Any],
        uses_target: bool,
        input_names: list[str],
    ):
        self.order = order
        self.uses_target = uses_target
        self.input_names = input_names

    def fit(self, rows: Rows, max_terms: int) -> ColumnBasis:
        X, y = rows.X, rows.y
        share = rows.weight / rows.weight.sum()
        root = np.sqrt(share)
        centred = root[:, None] * (X - share @ X)
        scale = np.sqrt(np.einsum("ij,ij->j", centred, centred))
        # A constant column centres to rounding error, which must not be scaled up.
        centred /= np.where(scale > 1e-12 * np.abs(share @ X), scale, np.inf)
        order: Any = []
        if max_terms > 1:
            with warnings.catch_warnings():
                # They warn of dependent columns, which the estimator leaves out and reports.
                for kind in (ConvergenceWarning, RuntimeWarning):
                    warnings.simplefilter("ignore", kind)
                order = self.order(centred, root * (y - share @ y), max_terms - 1)
        self.columns = np.asarray(order, dtype=np.intp)[: max_terms - 1]
        self.names = ["1", *(self.input_names[j] for j in self.columns)]
        return self

    def coordinates(self, X: np.ndarray) -> np.ndarray:
        return X[:, self.columns]

    def terms(self, coordinates: np.ndarray, count: int | None = None) -> np.ndarray:
        return _with_constant(coordinates, count)


def given_order(X: np.ndarray, y: np.ndarray, max_columns: int) -> np.ndarray:
    """Columns as they stand."""
    return np.arange(X.shape[1])


def lars_order(X: np.ndarray, y: np.ndarray, max_columns: int) -> np.ndarray:
    """Columns in the order in which least-angle regression lets them in."""
    _, active, _ = lars_path(X, y, method="lar", max_iter=max_columns, return_path=False)
    return np.asarray(active)


def omp_order(X: np.ndarray, y: np.ndarray, max_columns: int) -> np.ndarray:
    """Columns in the order in which orthogonal matching pursuit picks them."""
    n_columns = min(max_columns, *X.shape)
    path = orthogonal_mp(X, y, n_nonzero_coefs=n_columns, return_path=True)
    # One column of the path per step; a step's own column has its first coefficient there.
    steps = path.reshape(X.shape[1], -1).T != 0
    return np.array(list(dict.fromkeys(np.nonzero(steps)[1].tolist())), dtype=np.intp)


def path_order(path: SelectionPath, X: np.ndarray, y: np.ndarray, max_columns: int) -> np.ndarray:
    """Columns in the order in which they first enter a path."""
    return np.array(list(dict.fromkeys(path.order.tolist())), dtype=np.intp)


ORDERS = {"columns": given_order, "lars": lars_order, "omp": omp_order}


class PrincipalComponents(Basis):
    """The constant, then principal components by falling variance (principal-component regression).

    The directions are those of all rows, labelled or not.
    """

    def fit(self, rows: Rows, max_terms: int) -> PrincipalComponents:
        inputs = rows.inputs()
        share = np.concatenate([rows.weight, np.ones(len(rows.unlabeled))])
        share /= share.sum()
        self.mean = share @ inputs
        _, spread, directions = np.linalg.svd(
            np.sqrt(share)[:, None] * (inputs - self.mean), full_matrices=False
        )
        # Directions without spread are rounding error.
        count = min(max_terms - 1, int(np.sum(spread > max(inputs.shape) * 1e-15 * spread[0])))
        directions = directions[:count]
        # The sign of a singular vector is arbitrary: its largest entry is made positive.
        largest = np.abs(directions).argmax(axis=1)
        signs = np.sign(directions[np.arange(count), largest])
        self.directions = directions * signs[:, None]
        self.names = ["1", *(f"pc{k + 1}" for k in range(count))]
        return self

    def coordinates(self, X: np.ndarray) -> np.ndarray:
        return (X - self.mean) @ self.directions.T

    def terms(self, coordinates: np.ndarray, count: int | None = None) -> np.ndarray:
        return _with_constant(coordinates, count)


# --- Centres, and whatever a transformer makes ---------------------------------------------------


class RadialBasis(Basis):
    """The constant, then Gaussian bumps at inputs far from one another (the paper's closing wish).

    Inputs are mapped from their ranges to [0, 1]. The first centre is the row nearest to the middle
    of the rows, each further one the row farthest from all centres so far. Every bump has as width
    half the median distance between rows.
    """

    _MOST = 2000  # rows that may be centres: all distances between them are held

    def fit(self, rows: Rows, max_terms: int) -> RadialBasis:
        inputs = np.unique(rows.inputs(), axis=0)
        self.low, self.high = inputs.min(axis=0), inputs.max(axis=0)
        if len(inputs) > self._MOST:
            inputs = inputs[np.linspace(0, len(inputs) - 1, self._MOST).astype(int)]
        points = self.coordinates(inputs)
        self.width = float(np.median(pdist(points))) / 2 if len(points) > 1 else 1.0
        chosen: list[int] = []
        distance = -cdist(points, points.mean(axis=0)[None]).ravel()  # the middle comes first
        for k in range(min(max_terms - 1, len(points) - 1)):
            chosen.append(int(distance.argmax()))
            newest = cdist(points, points[chosen[-1:]]).ravel()
            distance = newest if k == 0 else np.minimum(distance, newest)
        self.centres = points[chosen]
        self.names = ["1", *(f"centre{k + 1}" for k in range(len(chosen)))]
        return self

    def coordinates(self, X: np.ndarray) -> np.ndarray:
        width = np.where(self.high > self.low, self.high - self.low, 1.0)
        return (np.clip(X, self.low, self.high) - self.low) / width

    def terms(self, coordinates: np.ndarray, count: int | None = None) -> np.ndarray:
        squared = cdist(coordinates, self.centres, "sqeuclidean")
        return _with_constant(np.exp(-squared / (2 * self.width**2)), count)


class TransformerBasis(Basis):
    """The constant, then a transformer's columns in the order in which it makes them."""

    def __init__(self, transformer: Any):
        self.transformer = transformer
        # The transformer is shown y, and may look.
        self.uses_target = True

    def fit(self, rows: Rows, max_terms: int) -> TransformerBasis:
        self.fitted = clone(self.transformer).fit(*self._copies(rows))
        self.max_terms = max_terms
        n_terms = self.terms(rows.X).shape[1]
        try:
            names = list(self.fitted.get_feature_names_out())
        except (AttributeError, ValueError, TypeError):  # many transformers have none
            names = [f"term{k + 1}" for k in range(n_terms - 1)]
        self.names = ["1", *names[: n_terms - 1]]
        return self

    def _copies(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Rows as often as their weights say: few transformers take weights as repetitions."""
        if (rows.weight == 1).all():
            return rows.X, rows.y
        whole = np.round(rows.weight)
        if (whole != rows.weight).any() or whole.sum() > 10_000_000:
            raise ValueError(
                f"NestedRegressor: with basis {self.named}, a transformer, sample_weight must be "
                "whole numbers (rows are repeated for it). Round the weights, or pass a basis by "
                "name."
            )
        return rows.X.repeat(whole.astype(int), axis=0), rows.y.repeat(whole.astype(int))

    @property
    def named(self) -> str:
        return type(self.transformer).__name__

    def coordinates(self, X: np.ndarray) -> np.ndarray:
        return X

    def terms(self, coordinates: np.ndarray, count: int | None = None) -> np.ndarray:
        try:
            made = self.fitted.transform(coordinates)
        except ValueError as error:
            raise ValueError(
                f"NestedRegressor: basis {self.named} could not transform {len(coordinates)} rows "
                f"that it was not fitted on ({error})."
            ) from error
        try:
            values = np.asarray(made.toarray() if hasattr(made, "toarray") else made, dtype=float)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"NestedRegressor: basis {self.named} must make numbers ({error})."
            ) from error
        if values.ndim != 2 or len(values) != len(coordinates):
            raise ValueError(
                f"NestedRegressor: basis {self.named} must transform {len(coordinates)} rows to as "
                f"many rows of terms. Got shape {values.shape}."
            )
        if not np.isfinite(values).all():
            raise ValueError(
                f"NestedRegressor: basis {self.named} gave values that are not finite. Pass a "
                "transformer whose columns are numbers for every row."
            )
        return _with_constant(values[:, : self.max_terms - 1], count)


def _with_constant(values: np.ndarray, count: int | None = None) -> np.ndarray:
    return np.column_stack([np.ones(len(values)), values])[:, :count]


def make_basis(basis: Any, interval: Any, input_names: list[str]) -> Basis:
    """Unfitted basis of that name; a path or a transformer is taken as it is."""
    if isinstance(basis, SelectionPath):
        return ColumnBasis(partial(path_order, basis), False, input_names)
    if not isinstance(basis, str):
        return TransformerBasis(basis)
    if basis in FAMILIES:
        return IntervalBasis(basis, interval, input_names)
    if basis in ORDERS:
        return ColumnBasis(ORDERS[basis], basis != "columns", input_names)
    return PrincipalComponents() if basis == "pca" else RadialBasis()
