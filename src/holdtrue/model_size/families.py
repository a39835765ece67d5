"""Functions of one variable on a fixed interval, simplest first, and products of them."""

from __future__ import annotations

import itertools
import math
from bisect import bisect
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import BSpline


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


def total_degree_terms(n_inputs: int, per_degree: int, n_terms: int) -> list[Product]:
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

    return list(itertools.islice(products(), n_terms))
