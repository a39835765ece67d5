"""Generators whose right answer is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import Bunch, check_random_state

from holdfast.validation import check_choice, is_number

__all__ = ["make_curve", "make_domains"]


def _sinc(x: np.ndarray) -> np.ndarray:
    return np.sinc(4 * x / np.pi)


def _step(x: np.ndarray) -> np.ndarray:
    return (x > 0).astype(np.float64)


def _parabola(x: np.ndarray) -> np.ndarray:
    return (x + 1.5) ** 2 / 10


def _four_terms(x: np.ndarray) -> np.ndarray:
    u = (x + np.pi) / (2 * np.pi)
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
    _check_counts("make_curve", n_samples=(n_samples, 1), n_unlabeled=(n_unlabeled, 0))
    rng = check_random_state(random_state)
    X = rng.uniform(-np.pi, np.pi, size=(int(n_samples), 1))
    curve = _CURVES[target]
    y = curve(X[:, 0]) + noise * rng.standard_normal(int(n_samples))
    X_unlabeled = rng.uniform(-np.pi, np.pi, size=(int(n_unlabeled), 1))
    return Bunch(X=X, y=y, X_unlabeled=X_unlabeled, curve=curve)


def make_domains(
    n_domains: int = 8,
    n_samples: int = 100,
    *,
    n_features: int = 40,
    n_steady: int = 3,
    n_fickle: int = 4,
    noise: float = 1.0,
    n_new_domains: int = 20,
    random_state: Any = None,
) -> Bunch:
    """Domains that share a few steady effects, for asking which features hold in a new domain.

    ``y = Σ x_i + Σ b_dj x_j + noise`` over the steady features i and the fickle features j. The
    slope ``b_dj`` of a fickle feature is Gaussian with mean 0 and standard deviation 1.5 and
    differs from domain to domain: in a handful of domains its average looks like an effect, in a
    new one it is as likely to be the opposite. The other features are noise. All are standard
    normal.

    Parameters
    ----------
    n_domains, n_samples : int
        Domains, and rows in each.
    n_features, n_steady, n_fickle : int
        Of which the first are steady and the next fickle.
    noise : float
        Standard deviation.
    n_new_domains : int
        Domains for judging, which no fit should see.
    random_state : int, RandomState or None

    Returns
    -------
    data : Bunch
        ``X``, ``y``, ``groups``; ``X_new``, ``y_new``, ``groups_new`` from the new domains; and the
        right answer, ``steady``, beside ``fickle``: indices of features.

    Examples
    --------
    >>> from holdfast.datasets import make_domains
    >>> data = make_domains(n_domains=4, n_samples=10, random_state=0)
    >>> data.X.shape, data.steady
    ((40, 40), array([0, 1, 2]))
    """
    _check_counts(
        "make_domains",
        n_domains=(n_domains, 1),
        n_samples=(n_samples, 1),
        n_steady=(n_steady, 0),
        n_fickle=(n_fickle, 0),
        n_features=(n_features, n_steady + n_fickle),
        n_new_domains=(n_new_domains, 0),
    )
    rng = check_random_state(random_state)
    slopes = np.zeros((n_domains + n_new_domains, n_features))
    slopes[:, :n_steady] = 1.0
    fickle = np.arange(n_steady, n_steady + n_fickle)
    slopes[:, fickle] = 1.5 * rng.standard_normal((len(slopes), n_fickle))
    groups = np.repeat(np.arange(len(slopes)), n_samples)
    X = rng.standard_normal((len(groups), n_features))
    y = np.einsum("ij,ij->i", X, slopes[groups]) + noise * rng.standard_normal(len(groups))
    old = groups < n_domains
    return Bunch(
        X=X[old],
        y=y[old],
        groups=groups[old],
        X_new=X[~old],
        y_new=y[~old],
        groups_new=groups[~old],
        steady=np.arange(n_steady),
        fickle=fickle,
    )


def _check_counts(owner: str, **counts: tuple[Any, int]) -> None:
    """Refuse a count that is not a whole number of at least its least value."""
    for name, (count, least) in counts.items():
        if not is_number(count) or count != int(count) or count < least:
            raise ValueError(
                f"{owner}: {name} must be a whole number of at least {least}. Got {count!r}."
            )
