"""Generators whose right answer is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import Bunch, check_random_state

from holdfast.validation import check_choice, is_number

__all__ = ["make_curve"]


def _sinc(x: np.ndarray) -> np.ndarray:
    return np.sinc(4 * np.asarray(x) / np.pi)


def _step(x: np.ndarray) -> np.ndarray:
    return np.where(np.asarray(x) > 0, 1.0, 0.0)


def _parabola(x: np.ndarray) -> np.ndarray:
    return (np.asarray(x) + 1.5) ** 2 / 10


def _four_terms(x: np.ndarray) -> np.ndarray:
    u = (np.asarray(x) + np.pi) / (2 * np.pi)
    return 1 + math.sqrt(2) * (
        np.cos(np.pi * u) + 0.5 * np.cos(2 * np.pi * u) - 0.8 * np.cos(3 * np.pi * u)
    )


_CURVES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "four_terms": _four_terms,
    "parabola": _parabola,
    "sinc": _sinc,
    "step": _step,
}


def make_curve(
    target: str = "sinc",
    n_samples: int = 30,
    *,
    noise: float = 0.05,
    n_unlabeled: int = 1000,
    random_state: Any = None,
) -> Bunch:
    """Noisy points of a known curve, for asking how large a model they can afford.

    Inputs are uniform on [-π, π], noise is Gaussian.

    Parameters
    ----------
    target : {"sinc", "step", "parabola", "four_terms"}
        ``sin(4x)/(4x)``, ``1`` for x > 0, ``(x + 3/2)²/10`` (the curves of Chapelle, Vapnik &
        Bengio 2002), or exactly four terms of the cosine basis: there the right size is 4.
    n_samples : int
    noise : float
        Standard deviation.
    n_unlabeled : int
        Further inputs without a label.
    random_state : int, RandomState or None

    Returns
    -------
    data : Bunch
        ``X`` (n_samples, 1), ``y`` (n_samples,), ``X_unlabeled`` (n_unlabeled, 1), and ``curve``,
        the noiseless function of an array of inputs.

    Examples
    --------
    >>> from holdfast.datasets import make_curve
    >>> data = make_curve("step", n_samples=20, random_state=0)
    >>> data.X.shape, data.y.shape, data.X_unlabeled.shape
    ((20, 1), (20,), (1000, 1))
    >>> data.curve(data.X[:2, 0])
    array([1., 1.])
    """
    check_choice("make_curve", "target", target, _CURVES)
    if not is_number(noise) or noise < 0:
        raise ValueError(f"make_curve: noise must be a number of at least 0. Got {noise!r}.")
    for name, count, least in (("n_samples", n_samples, 1), ("n_unlabeled", n_unlabeled, 0)):
        if not is_number(count) or count != int(count) or count < least:
            raise ValueError(
                f"make_curve: {name} must be a whole number of at least {least}. Got {count!r}."
            )
    rng = check_random_state(random_state)
    X = rng.uniform(-np.pi, np.pi, size=(int(n_samples), 1))
    curve = _CURVES[target]
    y = curve(X[:, 0]) + noise * rng.standard_normal(int(n_samples))
    X_unlabeled = rng.uniform(-np.pi, np.pi, size=(int(n_unlabeled), 1))
    return Bunch(X=X, y=y, X_unlabeled=X_unlabeled, curve=curve)
