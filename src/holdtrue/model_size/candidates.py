"""The bases of a fit, with their terms at the rows and the inputs to predict at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from holdtrue.errors import InputError
from holdtrue.model_size import bases, kernel
from holdtrue.model_size.folds import sorted_rows

_N_DRAWS = 1000
_FEW_UNLABELED = 30
_BATCH = 10_000


class Candidate(NamedTuple):
    """A fitted basis, its terms at the labelled rows, and inputs elsewhere, as coordinates."""

    basis: bases.Basis
    terms: np.ndarray
    elsewhere: np.ndarray

    def terms_elsewhere(self) -> Iterator[np.ndarray]:
        """Terms at the inputs elsewhere, part by part."""
        for batch in gen_batches(len(self.elsewhere), _BATCH):
            yield self.basis.terms(self.elsewhere[batch])


def fit_candidates(
    unfitted: dict[str, bases.Basis],
    rows: bases.Rows,
    max_terms: int,
    rng: np.random.RandomState,
    *,
    widened: bool,
    averaged: bool,
) -> dict[str, Candidate]:
    """The bases fitted to the rows, by name; without those that say the same as another.

    Parameters
    ----------
    unfitted : dict of Basis
    rows : Rows
    max_terms : int
        Largest size of the path.
    rng : RandomState
    widened : bool
        Whether an average may have more terms than the path.
    averaged : bool
        Whether predictions are an average: then a few unlabelled rows do not stand for all inputs.
    """
    candidates = {}
    for name, basis in unfitted.items():
        basis.fit(rows, basis.wide(rows.X.shape[1], max_terms) if widened else max_terms)
        if isinstance(basis, bases.IntervalBasis) and basis.even and not basis.is_warped:
            continue  # the same as without the logarithm
        coordinates = basis.coordinates(rows.X)
        terms = basis.terms(coordinates)
        enough = _FEW_UNLABELED if averaged else 1
        elsewhere = _elsewhere(basis, coordinates, rows, enough, rng)
        candidates[name] = Candidate(basis, terms, elsewhere)
    return candidates


def _elsewhere(
    basis: bases.Basis,
    coordinates: np.ndarray,
    rows: bases.Rows,
    enough: int,
    rng: np.random.RandomState,
) -> np.ndarray:
    """Coordinates where predictions will be made: the unlabelled rows, drawn ones if too few."""
    given = basis.coordinates(rows.unlabeled)
    if len(given) >= enough:
        return given
    is_transformer = isinstance(basis, bases.TransformerBasis)
    if len(given) and is_transformer:
        return np.concatenate([given, coordinates])  # it may refuse inputs that are drawn
    order = sorted_rows(rows.X, rows.y)
    ends = basis.bounds(np.concatenate([coordinates, given]))
    drawn = kernel.parzen_sample(coordinates[order], rows.weight[order], *ends, _N_DRAWS, rng)
    if is_transformer:
        _check_drawn(basis, drawn)
    return np.concatenate([given, drawn])


def _check_drawn(basis: Any, drawn: np.ndarray) -> None:
    try:
        basis.terms(drawn)
    except ValueError as error:
        raise InputError(
            f"basis {basis.named} could not transform inputs drawn from "
            f"a kernel density of X ({error}). Pass inputs that it knows as X_unlabeled."
        ) from error
