"""What a reader of a fit might trust wrongly, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from holdtrue.model_size.bases import Rows
from holdtrue.model_size.inputs import fences

# Corrections for many rows: on small samples they now and then run to the largest size.
RUNAWAY = ("aic", "aicc", "adjusted_r2", "bic", "cpm", "fpe", "gcv", "ric")
_SMALL = 100


def chosen_size(
    criterion: str, n_samples: float, first_degree: int, max_terms: int
) -> Iterator[str]:
    """Cautions about one size: by a criterion for many rows, or that late columns cannot reach."""
    if criterion in RUNAWAY and n_samples < _SMALL:
        yield (
            f"criterion={criterion!r} is made for many rows. On small real samples (here "
            f"{n_samples:g} rows) it takes far too many terms in 15 to 30 % of cases, with errors "
            "many times the variance of y. Pass criterion='bayes', 'dee' or 'adj', or "
            "predict='average'."
        )
    if first_degree > max_terms:
        yield (
            f"sizes end at {max_terms} terms, in a fixed order, where {first_degree} are needed "
            "before every column of X has had its turn: columns late in the order cannot enter. "
            "Put the columns that matter first, pass basis='lars' or 'omp', whose orders look at "
            "y, or predict='average', which uses all."
        )


def wild_inputs(rows: Rows, names: list[str], *, held: bool) -> list[str]:
    """A caution for each input of which a few values lie far outside all others."""
    cautions = []
    for column, name in zip(rows.X.T, names, strict=True):
        low, high = fences(column, rows.weight)
        wild = (column < low) | (column > high)
        if wild.any():
            value = column[wild][np.abs(column[wild]).argmax()]
            done = (
                "The average holds such values at a limit."
                if held
                else "Such values stretch the range until all other rows lie in one spot. Check "
                "them, take the logarithm, or pass basis='auto'."
            )
            cautions.append(
                f"{_values(wild.sum())} of {name!r} far outside the others, such as "
                f"{value:g} where nearly all lie between {column[~wild].min():g} and "
                f"{column[~wild].max():g}. {done}"
            )
    return cautions


def wild_targets(y: np.ndarray) -> str:
    """A caution where the fit follows wild targets, whose values are given."""
    return (
        f"{_values(len(y))} of y far from what the others say, such as {y[np.abs(y).argmax()]:g}. "
        "Squared error follows such values: check them, leave them out, or take the logarithm of y."
    )


def targets_aside(places: np.ndarray, y: np.ndarray) -> str:
    """A caution that rows were set aside, with their places and targets."""
    shown = ", ".join(f"{value:g} in row {place}" for place, value in zip(places, y, strict=True))
    return (
        f"{_values(len(y))} of y set aside, more than three times the range of the others away "
        f"from them: {shown} (the first row is 0). Predictions, criteria and new_error_ are those "
        "of the other rows. Check such values. If they are real, take the logarithm of y, or pass "
        "predict='chosen', which follows them."
    )


def _values(count: int) -> str:
    return "1 value" if count == 1 else f"{count} values"
