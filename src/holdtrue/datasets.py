"""Generators whose right answer is known."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils import Bunch, check_random_state

from holdtrue.errors import check_choice, speaks
from holdtrue.validation import check_count, check_number

__all__ = ["make_curve", "make_customers", "make_domains", "make_sources"]


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


@speaks
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
    >>> from holdtrue.datasets import make_curve
    >>> data = make_curve("step", n_samples=20, random_state=0)
    >>> data.X.shape, data.y.shape, data.X_unlabeled.shape
    ((20, 1), (20,), (1000, 1))
    >>> data.curve(data.X[:2, 0])
    array([1., 1.])
    """
    check_choice("target", target, _CURVES)
    check_number("noise", noise)
    _check_counts(n_samples=(n_samples, 1), n_unlabeled=(n_unlabeled, 0))
    rng = check_random_state(random_state)
    X = rng.uniform(-np.pi, np.pi, size=(n_samples, 1))
    curve = _CURVES[target]
    y = curve(X[:, 0]) + noise * rng.standard_normal(n_samples)
    X_unlabeled = rng.uniform(-np.pi, np.pi, size=(n_unlabeled, 1))
    return Bunch(X=X, y=y, X_unlabeled=X_unlabeled, curve=curve)


@speaks
def make_customers(n_samples: int = 2000, *, n_new: int = 2000, random_state: Any = None) -> Bunch:
    """Customers who leave or stay, for asking which columns predict and which only remember.

    Whether one leaves depends on the plan, and a little on what was spent; on nothing else. The
    customer's number and postcode have so many values that on the rows at hand they explain
    everything.

    Parameters
    ----------
    n_samples : int
    n_new : int
        Further customers for judging, which no fit should see.
    random_state : int, RandomState or None

    Returns
    -------
    data : Bunch
        ``columns``, a dict of arrays that any data frame takes, and ``left``; ``new_columns`` and
        ``new_left`` of the new customers; and the right answer, ``predictive``: names of columns.

    Examples
    --------
    >>> from holdtrue.datasets import make_customers
    >>> data = make_customers(100, random_state=0)
    >>> list(data.columns), data.predictive
    (['customer', 'postcode', 'plan', 'region', 'spend'], ['plan', 'spend'])
    """
    _check_counts(n_samples=(n_samples, 1), n_new=(n_new, 0))
    rng = check_random_state(random_state)
    n = n_samples + n_new
    plan = rng.choice(["free", "basic", "pro"], n)
    spend = rng.gamma(2.0, 20.0, n)
    chance = np.select([plan == "free", plan == "basic"], [0.6, 0.4], 0.2) + 0.25 * (spend < 20)
    columns = {
        "customer": np.array([f"c{i}" for i in rng.permutation(max(10**6, n))[:n]]),
        "postcode": rng.randint(10_000, 99_999, n).astype(str),
        "plan": plan,
        "region": rng.choice(["north", "south", "east", "west"], n),
        "spend": spend,
    }
    left = rng.uniform(size=n) < chance
    return Bunch(
        columns={name: values[:n_samples] for name, values in columns.items()},
        left=left[:n_samples],
        new_columns={name: values[n_samples:] for name, values in columns.items()},
        new_left=left[n_samples:],
        predictive=["plan", "spend"],
    )


@speaks
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
    >>> from holdtrue.datasets import make_domains
    >>> data = make_domains(n_domains=4, n_samples=10, random_state=0)
    >>> data.X.shape, data.steady
    ((40, 40), array([0, 1, 2]))
    """
    _check_counts(
        n_domains=(n_domains, 1),
        n_samples=(n_samples, 1),
        n_steady=(n_steady, 0),
        n_fickle=(n_fickle, 0),
        n_features=(n_features, n_steady + n_fickle),
        n_new_domains=(n_new_domains, 0),
    )
    check_number("noise", noise)
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


class _Model:
    """A source that knows a product of two directions, and has a fault of its own."""

    def __init__(self, first: np.ndarray, second: np.ndarray, fault: np.ndarray):
        self.first, self.second, self.fault = first, second, fault

    def __call__(self, X: np.ndarray) -> np.ndarray:
        return np.tanh((X @ self.first) * (X @ self.second)) + 1.2 * np.sin(3 * X @ self.fault)


@speaks
def make_sources(
    n_samples: int = 20,
    n_sources: int = 1000,
    n_helpful: int = 20,
    *,
    n_features: int = 40,
    n_test: int = 1000,
    random_state: Any = None,
) -> Bunch:
    """Rows with two classes, and a shelf of trained models of which a few help.

    The class is the sign of the product of two hidden directions, which no linear function of the
    features shows. Each helpful source knows this product and has a fault of its own: alone it is
    right in about 80 % of the rows, together with four others in about 95 %. The other sources know
    products of other directions: whatever they seem to say about the class is chance.

    Parameters
    ----------
    n_samples : int
        Labelled rows, as many of one class as of the other.
    n_sources : int
    n_helpful : int
        How many of the sources help.
    n_features : int
        At least 6.
    n_test : int
        Further rows.
    random_state : int, RandomState or None

    Returns
    -------
    data : Bunch
        ``X``, ``y``, ``X_test``, ``y_test``, ``sources`` (a list of (name, callable), in random
        order) and ``helpful`` (the names of those that help).

    Examples
    --------
    >>> from holdtrue.datasets import make_sources
    >>> data = make_sources(n_samples=12, n_sources=50, n_helpful=2, random_state=0)
    >>> data.X.shape, len(data.sources), data.helpful
    ((12, 40), 50, ['helpful0', 'helpful1'])
    """
    _check_counts(
        n_samples=(n_samples, 2),
        n_helpful=(n_helpful, 1),
        n_sources=(n_sources, n_helpful),
        n_features=(n_features, 6),
        n_test=(n_test, 0),
    )
    rng = check_random_state(random_state)
    basis = np.linalg.qr(rng.standard_normal((n_features, n_features)))[0]
    hidden, others = basis[:, :2], basis[:, 2:]

    def direction() -> np.ndarray:
        mix = rng.standard_normal(n_features - 2)
        return others @ (mix / np.linalg.norm(mix))

    pool = [_Model(2 * hidden[:, 0], 2 * hidden[:, 1], direction()) for _ in range(n_helpful)]
    pool += [
        _Model(2 * direction(), 2 * direction(), direction()) for _ in range(n_sources - n_helpful)
    ]
    helpful = [f"helpful{j}" for j in range(n_helpful)]
    names = helpful + [f"other{j}" for j in range(n_sources - n_helpful)]
    sources = [(names[i], pool[i]) for i in rng.permutation(n_sources)]

    def rows(count: int) -> tuple[np.ndarray, np.ndarray]:
        y = rng.permutation(np.arange(count) % 2)
        first = rng.choice([-2.0, 2.0], size=count)
        X = rng.standard_normal((count, n_features))
        X += np.outer(first, hidden[:, 0]) + np.outer(first * (2 * y - 1), hidden[:, 1])
        return X, y

    (X, y), (X_test, y_test) = rows(n_samples), rows(n_test)
    return Bunch(X=X, y=y, X_test=X_test, y_test=y_test, sources=sources, helpful=helpful)


def _check_counts(**counts: tuple[Any, int]) -> None:
    """Refuse a count that is not a whole number of at least its least value."""
    for name, (count, least) in counts.items():
        check_count(name, count, least)
