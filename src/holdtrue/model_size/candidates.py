"""The bases of a fit, with their terms at the rows and over the inputs to predict at."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from holdtrue.model_size import bases, kernel
from holdtrue.model_size.folds import sorted_rows

_N_DRAWS = 1000
_FEW_UNLABELED = 30
_FEW_VALUES = 3
_BATCH = 10_000


class Candidate(NamedTuple):
    """A fitted basis with its D terms."""

    basis: bases.Basis
    terms: np.ndarray  # shape (n_rows, D): at the labelled rows
    # From `moment_factor`, over inputs like those to come; a process has its prior whatever they
    # are.
    C_half: np.ndarray | None


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

    ``widened``: an average may have more terms than the path, which has ``max_terms``.
    ``averaged``: predictions are an average, for which few unlabelled rows do not stand for all
    inputs.
    """
    candidates = {}
    for name, basis in unfitted.items():
        basis.fit(rows, basis.wide(rows.X.shape[1], max_terms) if widened else max_terms)
        if isinstance(basis, bases.IntervalBasis) and basis.even and not basis.is_warped:
            continue  # the same as without the logarithm
        coordinates = basis.coordinates(rows.X)
        terms = basis.terms(coordinates)
        C_half = None
        if basis.explains:
            elsewhere = _elsewhere(basis, coordinates, rows, rng, averaged=averaged)
            batches = gen_batches(len(elsewhere), _BATCH)
            C_half = kernel.moment_factor(basis.terms(elsewhere[batch]) for batch in batches)
        candidates[name] = Candidate(basis, terms, C_half)
    return candidates


def _elsewhere(
    basis: bases.Basis,
    coordinates: np.ndarray,
    rows: bases.Rows,
    rng: np.random.RandomState,
    *,
    averaged: bool,
) -> np.ndarray:
    """Coordinates where predictions will be made: the unlabelled rows, drawn ones if too few."""
    given = basis.coordinates(rows.unlabeled)
    if len(given) >= (_FEW_UNLABELED if averaged else 1):
        return given
    if len(given) and isinstance(basis, bases.TransformerBasis):
        return np.concatenate([given, coordinates])  # it may refuse inputs that are drawn
    order = sorted_rows(rows.X, rows.y)
    ends = basis.bounds(np.concatenate([coordinates, given]))
    # New rows will have the few values of an input too: what a curve does between them, which
    # nothing tells, must not count as its error.
    smooth = [not averaged or len(np.unique(column)) > _FEW_VALUES for column in coordinates.T]
    weight = rows.weight[order]
    drawn = kernel.parzen_sample(coordinates[order], weight, *ends, _N_DRAWS, rng, np.array(smooth))
    return np.concatenate([given, drawn])
