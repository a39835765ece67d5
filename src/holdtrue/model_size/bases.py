"""Ordered families of functions: the terms of a nested model, simplest first.

A basis is fitted to the inputs (and, for the orders that look at it, the target), then turns rows
into *coordinates* and coordinates into *terms*. Coordinates are where a kernel density of the
inputs is drawn when no unlabelled rows are given. The first term is always the constant.
"""

from __future__ import annotations

import itertools
import math
import warnings
from bisect import bisect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import BSpline
from scipy.spatial.distance import cdist, pdist
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import lars_path, orthogonal_mp
from sklearn.utils.extmath import svd_flip

from holdtrue.errors import InputError
from holdtrue.path import SelectionPath

NAMES = ("bspline", "columns", "cosine", "fourier", "lars", "legendre", "omp", "pca", "rbf")
AUTO = ("bspline", "legendre", "cosine")  # of one input; products of Legendre's with several

_WIDTHS = (2, 4, 8, 16)  # of Gaussian kernels of several inputs
_WIDTHS_OF_ONE = (0.4, 0.8)
_WIDE = 200  # terms of an average that has more of them than the sample could fit
_MOST_FIRST = 1000  # of the first degree: their covariance is held
# A value this many times farther from the median than nine tenths of the values is wild.
_WILD = 25.0
# Fewer values than these have no tails to speak of.
_FEW = 10
# Of the distance between the outer tenths; a sample of an even input reaches about 0.15 by chance.
_SKEWED = 0.2


# --- functions of one variable on a fixed interval, and products of them ---


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
    height = np.eye(7)[3]
    for k in range(4, n_terms):
        i = k - 3  # its binary digits, turned round behind the point, are the knot
        knot = sum(((i >> bit) & 1) / 2 ** (bit + 1) for bit in range(i.bit_length()))
        at = bisect(knots, knot)
        knots.insert(at, knot)
        # `BSpline.basis_element` of the five knots, which spends most of its time around this.
        five = knots[at - 2 : at + 3]
        padded = np.array([five[0] - 1] * 3 + five + [five[-1] + 1] * 3)
        bump = BSpline.construct_fast(padded, height, 3, extrapolate=False)
        values[:, k] = bump(u)
    return np.nan_to_num(values, copy=False)


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


@lru_cache(maxsize=32)
def total_degree_terms(n_inputs: int, per_degree: int, n_terms: int) -> tuple[Product, ...]:
    """The first n_terms products of functions of single inputs, in order of total degree.

    ``per_degree`` functions of one input share a degree (2 for Fourier's cosine and sine).
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

    return tuple(itertools.islice(products(), n_terms))


# --- maps of one input to [0, 1] ---
#
# A basis on an interval treats all parts of the interval alike. An input whose values crowd at one
# end of the range leaves most of the interval empty; a logarithm spreads them out.


@dataclass(frozen=True)
class InputMap:
    """Map of one input from [low, high] to [0, 1], held at the ends.

    With a ``shift`` it is ``log(shift + distance)``, the distance counted from ``low``, or from
    ``high`` if ``reverse``; without one it is linear.
    """

    low: float
    high: float
    shift: float | None = None
    reverse: bool = False

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """The values on [0, 1]."""
        held = np.clip(values, self.low, self.high)
        width = self.high - self.low
        if self.shift is None:
            return np.asarray((held - self.low) / width)
        distance = self.high - held if self.reverse else held - self.low
        unit = np.log1p(distance / self.shift) / np.log1p(width / self.shift)
        return 1 - unit if self.reverse else unit


def quantiles(values: np.ndarray, weight: np.ndarray, at: tuple[float, ...]) -> list[float]:
    """Quantiles of values with weights; a weight of 2 stands for two equal values."""
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weight[order]) / weight.sum()
    places = np.searchsorted(share, np.asarray(at) - 1e-12)
    return [float(values[order[min(place, len(values) - 1)]]) for place in places]


def fences(values: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Low and high end beyond which a value is wild: it alone would take most of the range."""
    low, middle, high = quantiles(values, weight, (0.1, 0.5, 0.9))
    reach = _WILD * max(high - middle, middle - low)
    if reach == 0 or weight.sum() < _FEW:
        return -np.inf, np.inf
    return middle - reach, middle + reach


def even_map(values: np.ndarray, weight: np.ndarray, low: float, high: float) -> InputMap:
    """Map by the logarithm that puts the median midway between the tenths at both ends.

    ``(q₁ + c)(q₉ + c) = (q₅ + c)²`` gives the shift c of a logarithm under which the quantiles
    .1, .5 and .9 are evenly spaced. The map of an input that is nearly even already is linear.
    """
    q1, q5, q9 = quantiles(values, weight, (0.1, 0.5, 0.9))
    reverse = q9 - q5 < q5 - q1
    # Distances from the end where the values crowd.
    a, b, c = (high - q9, high - q5, high - q1) if reverse else (q1 - low, q5 - low, q9 - low)
    skew = a + c - 2 * b
    if skew <= _SKEWED * (c - a):
        return InputMap(low, high)
    # Below a twentieth of the median's distance the crowded end itself would be torn apart.
    shift = max((b * b - a * c) / skew, 0.05 * b, 1e-12 * (high - low), 1e-300)
    return InputMap(low, high, shift, reverse)


# --- bases ---


class Rows(NamedTuple):
    """The sample: labelled rows of positive weight, and inputs without labels (maybe none)."""

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    unlabeled: np.ndarray

    def inputs(self) -> np.ndarray:
        """All inputs, labelled or not."""
        return np.concatenate([self.X, self.unlabeled])

    def input_weights(self) -> np.ndarray:
        """Weights of all inputs; one without a label counts once."""
        return np.concatenate([self.weight, np.ones(len(self.unlabeled))])


class Basis:
    """What `NestedRegressor` asks of a basis."""

    uses_target = False  # may the order look at y? Then every fold of cross-validation fits anew
    explains = True  # do the terms mean something to a reader? Else they serve averages alone
    repeats = False  # are the terms those of another basis of ``"auto"``?
    names: list[str]  # of the terms

    def fit(self, rows: Rows, max_terms: int) -> Basis:
        """Learn at most max_terms terms from the rows."""
        raise NotImplementedError

    def coordinates(self, X: np.ndarray) -> np.ndarray:
        """Rows as points of the space in which the terms are functions."""
        raise NotImplementedError

    def terms(self, coordinates: np.ndarray, count: int | None = None) -> np.ndarray:
        """Values of the first count terms, or of all, shape (n_rows, n_terms).

        Unless a basis has others, they are the constant and the coordinates.
        """
        return _with_constant(coordinates, count)

    def values(self, X: np.ndarray) -> np.ndarray:
        """Values of all terms at rows, shape (n_rows, n_terms)."""
        return self.terms(self.coordinates(X))

    def bounds(self, coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the range of each coordinate: those of the training rows, unless known."""
        return coordinates.min(axis=0), coordinates.max(axis=0)

    def first_degree(self, n_features: int) -> int:
        """Terms needed before every column of X has had its turn; 0 if the order looks at y."""
        return 0

    def wide(self, n_features: int, max_terms: int) -> int:
        """Terms of an average over sizes, which may have more of them than there are rows."""
        return max(max_terms, min(self.first_degree(n_features), _MOST_FIRST))


@dataclass(eq=False)
class IntervalBasis(Basis):
    """Products of a family's functions of inputs, mapped from their ranges to its interval."""

    name: str  # key of FAMILIES
    interval: Any  # fixes the ranges; without it they are those of the rows, labelled or not
    input_names: list[str]
    even: bool = False  # map crowded inputs by a logarithm
    hold_wild: bool = False  # hold values far outside all others at a fence
    max_degree: int | None = None  # functions of single inputs up to that degree, no products

    @property
    def family(self) -> Family:
        return FAMILIES[self.name]

    def fit(self, rows: Rows, max_terms: int) -> IntervalBasis:
        inputs, weight = rows.inputs(), rows.input_weights()
        low, high = inputs.min(axis=0), inputs.max(axis=0)
        if self.interval is not None:
            fixed = np.broadcast_to(np.asarray(self.interval, dtype=float), (len(low), 2))
            outside = np.flatnonzero((low < fixed[:, 0]) | (high > fixed[:, 1]))
            if len(outside):
                j = outside[0]
                raise InputError(
                    f"interval=({fixed[j, 0]:g}, {fixed[j, 1]:g}) must contain "
                    f"every value of {self.input_names[j]!r}. Got values from {low[j]:g} to "
                    f"{high[j]:g}. Widen interval, or pass None to take the range of the data."
                )
            low, high = fixed[:, 0], fixed[:, 1]
        elif self.hold_wild:
            ends = np.array([fences(column, weight) for column in inputs.T])
            low, high = np.maximum(low, ends[:, 0]), np.minimum(high, ends[:, 1])
        self.low, self.high = low, high
        # A constant input has no range. Left out here, it would only repeat the constant term.
        self.inputs = np.flatnonzero(high > low)
        self.maps = [
            even_map(inputs[:, j], weight, float(low[j]), float(high[j]))
            if self.even
            else InputMap(float(low[j]), float(high[j]))
            for j in self.inputs
        ]
        self.repeats = self.even and all(each.shift is None for each in self.maps)
        self.products: list[Product] = [()]
        n_inputs, degrees = len(self.inputs), range(1, (self.max_degree or 0) + 1)
        if n_inputs and self.max_degree is not None:
            self.products += [((j, k),) for k in degrees for j in range(n_inputs)][: max_terms - 1]
        elif n_inputs:
            self.products = list(total_degree_terms(n_inputs, self.family.per_degree, max_terms))
        names = [
            self.input_names[j] if each.shift is None else f"log {self.input_names[j]}"
            for j, each in zip(self.inputs, self.maps, strict=True)
        ]
        self.names = [
            " ".join(self.family.name(k, names[j]) for j, k in product) or "1"
            for product in self.products
        ]
        return self

    def coordinates(self, X: np.ndarray) -> np.ndarray:
        """Inputs on the family's interval. Outside the range they are clipped, never wrapped."""
        unit = np.empty((len(X), len(self.inputs)))
        for column, (j, to_unit) in enumerate(zip(self.inputs, self.maps, strict=True)):
            unit[:, column] = to_unit(X[:, j])
        return self.family.low + (self.family.high - self.family.low) * unit

    def first_degree(self, n_features: int) -> int:
        return 1 + self.family.per_degree * n_features if n_features > 1 else 0

    def wide(self, n_features: int, max_terms: int) -> int:
        if n_features == 1:
            return max_terms
        second_degree = (n_features + 1) * (n_features + 2) // 2
        return max(super().wide(n_features, max_terms), min(second_degree, _WIDE))

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


class GaussianBasis(IntervalBasis):
    """Functions of several inputs at once, as smooth as a Gaussian process with a Gaussian kernel.

    Inputs, mapped as in `IntervalBasis`, have unit variance. With the kernel K between centres,
    ``K = U E Uᵀ``, the terms are ``k(x) U E^(-1/2)``: coefficients of equal prior variance then are
    the process. The centres are the rows, a hundred at most. Widths are in units of
    the root of the number of inputs.
    """

    explains = False
    _MOST = 100

    def __init__(self, width: float, interval: Any, input_names: list[str], *, even: bool = False):
        super().__init__("legendre", interval, input_names, even=even, hold_wild=True)
        self.width = width

    def fit(self, rows: Rows, max_terms: int) -> GaussianBasis:
        super().fit(rows, 1)
        points = super().coordinates(rows.X)
        share = rows.weight / rows.weight.sum()
        self.middle = share @ points
        spread = np.sqrt(share @ (points - self.middle) ** 2)
        self.spread = np.where(spread > 0, spread, 1.0) * np.sqrt(max(points.shape[1], 1))
        points = np.unique(self.coordinates(rows.X), axis=0)
        self.centres = points = _thinned(points, self._MOST)
        e, U = np.linalg.eigh(self._kernel(points))
        kept = np.flatnonzero(e > 1e-10 * e[-1])[::-1][: max_terms - 1]
        self.projection = np.ascontiguousarray(U[:, kept] / np.sqrt(e[kept]))
        self.names = ["1", *(f"smooth{k + 1}" for k in range(len(kept)))]
        return self

    def wide(self, n_features: int, max_terms: int) -> int:
        return 1 + self._MOST

    def _kernel(self, points: np.ndarray) -> np.ndarray:
        if not points.shape[1]:
            return np.ones((len(points), len(self.centres)))
        return _bumps(points, self.centres, self.width)

    def coordinates(self, X: np.ndarray) -> np.ndarray:
        return (super().coordinates(X) - self.middle) / self.spread

    def terms(self, coordinates: np.ndarray, count: int | None = None) -> np.ndarray:
        return _with_constant(self._kernel(coordinates) @ self.projection, count)


class ColumnBasis(Basis):
    """The constant, then columns of X: those given, or in an order ("lars", "omp") that sees y."""

    def __init__(self, order: str | np.ndarray, input_names: list[str]):
        self.order = order
        self.input_names = input_names
        self.uses_target = isinstance(order, str)

    def fit(self, rows: Rows, max_terms: int) -> ColumnBasis:
        order: Any = self.order
        if isinstance(order, str):
            order = _looked_up(order, rows, max_terms - 1) if max_terms > 1 else []
        self.columns = np.asarray(order, dtype=np.intp)[: max_terms - 1]
        self.names = ["1", *(self.input_names[j] for j in self.columns)]
        inputs = rows.inputs()[:, self.columns]
        self.low, self.high = inputs.min(axis=0), inputs.max(axis=0)
        return self

    def coordinates(self, X: np.ndarray) -> np.ndarray:
        """The columns in order, held at the ends of their ranges."""
        return np.clip(X[:, self.columns], self.low, self.high)

    def first_degree(self, n_features: int) -> int:
        return 0 if isinstance(self.order, str) else 1 + len(self.order)


def _looked_up(order: str, rows: Rows, max_columns: int) -> Any:
    """Columns in the order in which least-angle regression or matching pursuit takes them."""
    share = rows.weight / rows.weight.sum()
    root = np.sqrt(share)
    centred = root[:, None] * (rows.X - share @ rows.X)
    scale = np.sqrt(np.einsum("ij,ij->j", centred, centred))
    # A constant column centres to rounding error, which must not be scaled up.
    centred /= np.where(scale > 1e-12 * np.abs(share @ rows.X), scale, np.inf)
    target = root * (rows.y - share @ rows.y)
    with warnings.catch_warnings():
        # They warn of dependent columns, which the estimator leaves out and reports.
        for kind in (ConvergenceWarning, RuntimeWarning):
            warnings.simplefilter("ignore", kind)
        if order == "lars":
            options = {"method": "lar", "max_iter": max_columns, "return_path": False}
            return lars_path(centred, target, **options)[1]
        n_columns = min(max_columns, *centred.shape)
        path = orthogonal_mp(centred, target, n_nonzero_coefs=n_columns, return_path=True)
    # One column of the path per step; a step's own column has its first coefficient there.
    steps = path.reshape(len(scale), -1).T != 0
    return list(dict.fromkeys(np.nonzero(steps)[1].tolist()))


class PrincipalComponents(Basis):
    """The constant, then principal components by falling variance (principal-component regression).

    The directions are those of all rows, labelled or not.
    """

    def fit(self, rows: Rows, max_terms: int) -> PrincipalComponents:
        inputs = rows.inputs()
        share = rows.input_weights() / rows.input_weights().sum()
        self.mean = share @ inputs
        centred = np.sqrt(share)[:, None] * (inputs - self.mean)
        U, spread, directions = np.linalg.svd(centred, full_matrices=False)
        # The sign of a singular vector is arbitrary: its largest entry is made positive.
        _, directions = svd_flip(U, directions, u_based_decision=False)
        # Directions without spread are rounding error.
        count = min(max_terms - 1, int(np.sum(spread > max(inputs.shape) * 1e-15 * spread[0])))
        self.directions = directions[:count]
        self.names = ["1", *(f"pc{k + 1}" for k in range(count))]
        components = (inputs - self.mean) @ self.directions.T
        self.low, self.high = components.min(axis=0), components.max(axis=0)
        return self

    def coordinates(self, X: np.ndarray) -> np.ndarray:
        """The components, held at the ends of their ranges."""
        return np.clip((X - self.mean) @ self.directions.T, self.low, self.high)


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
        points = self.coordinates(_thinned(inputs, self._MOST))
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
        return _with_constant(_bumps(coordinates, self.centres, self.width), count)


class TransformerBasis(Basis):
    """The constant, then a transformer's columns in the order in which it makes them."""

    def __init__(self, transformer: Any):
        self.transformer = transformer
        self.named = type(transformer).__name__
        self.uses_target = True  # it is shown y, and may look

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
        """X and y with every row repeated by its weight: few transformers take weights so."""
        whole = np.round(rows.weight)
        if (whole != rows.weight).any() or whole.sum() > 10_000_000:
            raise InputError(
                f"with basis {self.named}, a transformer, sample_weight must be "
                "whole numbers (rows are repeated for it). Round the weights, or pass a basis by "
                "name."
            )
        return rows.X.repeat(whole.astype(int), axis=0), rows.y.repeat(whole.astype(int))

    def coordinates(self, X: np.ndarray) -> np.ndarray:
        return X

    def terms(self, coordinates: np.ndarray, count: int | None = None) -> np.ndarray:
        try:
            output = self.fitted.transform(coordinates)
        except ValueError as error:
            raise InputError(
                f"basis {self.named} could not transform {len(coordinates)} rows that it was not "
                f"fitted on ({error}). If they were drawn from a kernel density of X, pass inputs "
                "that it knows as X_unlabeled."
            ) from error
        try:
            values = np.asarray(getattr(output, "toarray", lambda: output)(), dtype=float)
        except (TypeError, ValueError) as error:
            raise InputError(f"basis {self.named} must make numbers ({error}).") from error
        if values.ndim != 2 or len(values) != len(coordinates):
            raise InputError(
                f"basis {self.named} must transform {len(coordinates)} rows to as "
                f"many rows of terms. Got shape {values.shape}."
            )
        if not np.isfinite(values).all():
            raise InputError(
                f"basis {self.named} gave values that are not finite. Pass a "
                "transformer whose columns are numbers for every row."
            )
        return _with_constant(values[:, : self.max_terms - 1], count)


def _bumps(points: np.ndarray, centres: np.ndarray, width: float) -> np.ndarray:
    """Gaussian bumps at the centres."""
    return np.asarray(np.exp(-cdist(points, centres, "sqeuclidean") / (2 * width**2)))


def _thinned(points: np.ndarray, most: int) -> np.ndarray:
    """At most ``most`` of the points, evenly spaced in their order."""
    if len(points) <= most:
        return points
    return points[np.linspace(0, len(points) - 1, most).astype(int)]


def _with_constant(values: np.ndarray, count: int | None = None) -> np.ndarray:
    return np.column_stack([np.ones(len(values)), values])[:, :count]


def unfitted_bases(
    basis: Any, interval: Any, input_names: list[str], *, averaged: bool
) -> dict[str, Basis]:
    """Bases by name, not fitted yet: one for a name, path or transformer, several for ``"auto"``.

    ``"auto"`` has three families of one input, of several Legendre's polynomials with products of
    inputs and without, and for an average Gaussian kernels; each with the inputs as they are, and
    with crowded ones spread by a logarithm.
    """
    if not isinstance(basis, str):
        name = type(basis).__name__
        if not isinstance(basis, SelectionPath):
            return {name: TransformerBasis(basis)}
        entered = dict.fromkeys(basis.order.tolist())  # a column enters once
        return {name: ColumnBasis(np.array(list(entered), dtype=np.intp), input_names)}
    if basis in FAMILIES:
        return {basis: IntervalBasis(basis, interval, input_names)}
    if basis == "columns":
        return {basis: ColumnBasis(np.arange(len(input_names)), input_names)}
    if basis in ("lars", "omp"):
        return {basis: ColumnBasis(basis, input_names)}
    if basis != "auto":
        return {basis: PrincipalComponents() if basis == "pca" else RadialBasis()}
    one = len(input_names) == 1
    candidates: dict[str, Basis] = {}
    for even, suffix in ((False, ""), (True, ", log")):
        make = partial(
            IntervalBasis, interval=interval, input_names=input_names, even=even, hold_wild=True
        )
        for name in AUTO if one else ("legendre",):
            candidates[f"{name}{suffix}"] = make(name)
        if not one:
            candidates[f"legendre, single inputs{suffix}"] = make("legendre", max_degree=4)
        for width in (_WIDTHS_OF_ONE if one else _WIDTHS) if averaged else ():
            smooth = GaussianBasis(width, interval, input_names, even=even)
            candidates[f"smooth, width {width:g}{suffix}"] = smooth
    return candidates


def fit_bases(
    bases: dict[str, Basis], rows: Rows, max_terms: int, *, widened: bool
) -> dict[str, Basis]:
    """The bases fitted to the rows, without those that repeat another.

    ``widened``: an average may have more terms than the path, which has ``max_terms``.
    """
    n_varying = int(np.count_nonzero(np.ptp(rows.inputs(), axis=0)))
    for each in bases.values():
        each.fit(rows, each.wide(n_varying, max_terms) if widened else max_terms)
    return {name: each for name, each in bases.items() if not each.repeats}


def constant_basis(rows: Rows) -> Basis:
    """Fitted basis of the constant alone."""
    basis = ColumnBasis(np.arange(0), []).fit(rows, 1)
    basis.explains = False
    return basis
