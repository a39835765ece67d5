"""Maps of one input to [0, 1]: by its range, or by the logarithm that makes it even.

A basis on an interval treats all parts of the interval alike. An input whose values crowd at one
end of the range leaves most of the interval empty; a logarithm spreads them out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# A value this many times farther from the median than nine tenths of the values is wild.
_WILD = 25.0
# Fewer values than these have no tails to speak of.
_FEW = 10
# Of the distance between the outer tenths; a sample of an even input reaches about 0.15 by chance.
_SKEWED = 0.2


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
    """Values below which those shares of the weight lie; a weight of 2 is two values."""
    order = np.argsort(values, kind="stable")
    share = np.cumsum(weight[order]) / weight.sum()
    places = np.searchsorted(share, np.asarray(at) - 1e-12)
    return [float(values[order[min(place, len(values) - 1)]]) for place in places]


def fences(values: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Ends beyond which a value is wild: it would take nearly all of the range for itself."""
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
