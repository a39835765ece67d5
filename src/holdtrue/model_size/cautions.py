"""What a reader of a fit might trust wrongly, in sentences."""

from __future__ import annotations

import numpy as np

from holdtrue.model_size.bases import Rows
from holdtrue.model_size.inputs import fences, quantiles

# Corrections for many rows: on small samples they now and then run to the largest size.
RUNAWAY = ("aic", "aicc", "adjusted_r2", "bic", "cpm", "fpe", "gcv", "ric")
_SMALL = 100
_WILD_TARGET = 20.0  # robust deviations from the curve
_FEW_TARGETS = 0.05
_MANY_ALIKE = 0.1


def runaway_criterion(criterion: str, n_samples: float) -> str | None:
    """A caution where a criterion for many rows chooses the size of a small sample."""
    if criterion not in RUNAWAY or n_samples >= _SMALL:
        return None
    return (
        f"criterion={criterion!r} is made for many rows. On small real samples (here "
        f"{n_samples:g} rows) it takes far too many terms in 15 to 30 % of cases, with errors many "
        "times the variance of y. Pass criterion='bayes', 'dee' or 'adj', or predict='average'."
    )


def unreached_columns(first_degree: int, max_terms: int) -> str | None:
    """A caution where columns that stand late in the order cannot enter at any size."""
    if first_degree <= max_terms:
        return None
    return (
        f"sizes end at {max_terms} terms, in a fixed order, where {first_degree} are needed "
        "before every column of X has had its turn: columns late in the order cannot enter. Put "
        "the columns that matter first, pass basis='lars' or 'omp', whose orders look at y, or "
        "predict='average', which uses all."
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
                f"{_values(wild)} of {name!r} far outside the others, such as "
                f"{value:g} where nearly all lie between {column[~wild].min():g} and "
                f"{column[~wild].max():g}. {done}"
            )
    return cautions


def wild_targets(rows: Rows, fitted: np.ndarray) -> str | None:
    """A caution where a few targets lie far from all others, or from the curve of the others."""
    # Every different row counts once: one row of a huge weight has no say in what is far.
    _, first = np.unique(np.column_stack([rows.X, rows.y]), axis=0, return_index=True)
    rows = rows._replace(X=rows.X[first], y=rows.y[first], weight=np.ones(len(first)))
    distance = np.abs(rows.y - fitted[first])
    deviation = 1.4826 * quantiles(distance, rows.weight, (0.5,))[0]
    tenth, ninth = quantiles(rows.y, rows.weight, (0.1, 0.9))
    low, high = fences(rows.y, rows.weight)
    wild = (rows.y < low) | (rows.y > high) | _takes_half(rows)
    # The small residuals of a nearly exact fit have outliers too, which are harmless.
    wild |= distance > max(_WILD_TARGET * deviation, 0.5 * (ninth - tenth))
    # A value that many rows have, such as 0 of 0 and 1, is no slip of the pen.
    _, value_of, count = np.unique(rows.y, return_inverse=True, return_counts=True)
    wild &= count[value_of] < _MANY_ALIKE * len(first)
    # Where there are many, they have a cause, such as a jump that the curve rounds off.
    if not 0 < wild.sum() <= max(1.0, _FEW_TARGETS * len(first)):
        return None
    value = rows.y[wild][np.abs(rows.y[wild] - np.median(rows.y)).argmax()]
    return (
        f"{_values(wild)} of y far from what the others say, such as {value:g}. Squared error "
        "follows such values: check them, leave them out, or take the logarithm of y."
    )


def _takes_half(rows: Rows) -> np.ndarray:
    """Mask of the one target, if any, that takes more than half of the range of y for itself.

    A curve may follow it, so the distance from the curve does not show it. At the end of an input's
    range it may be the top of a steep curve.
    """
    order = np.argsort(rows.y)
    wild = np.zeros(len(order), dtype=bool)
    for extreme, others in ((order[-1], order[:-1]), (order[0], order[1:])):
        reach = np.ptp(rows.y[others])
        gap = np.abs(rows.y[others] - rows.y[extreme]).min()
        x, X = rows.X[extreme], rows.X[others]
        inside = (X.min(axis=0) < x) & (x < X.max(axis=0))
        wild[extreme] |= bool(gap > reach > 0 and inside.all())
    return wild


def _values(wild: np.ndarray) -> str:
    count = int(wild.sum())
    return "1 value" if count == 1 else f"{count} values"
