"""What a reader of a fit might trust wrongly: values far from all others, sizes that run away."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.spatial import KDTree

from holdtrue.errors import counted
from holdtrue.model_size.average import Average
from holdtrue.model_size.bases import Rows, fences, quantiles

# Corrections for many rows: on small samples they now and then run to the largest size.
RUNAWAY = ("aic", "aicc", "adjusted_r2", "bic", "cpm", "fpe", "gcv", "ric")
_SMALL = 100
_WILD = 20.0  # robust deviations from the curve
_FEW = 0.05  # of the rows
_MANY_ALIKE = 0.1
_ENOUGH = 10  # rows to tell what is far
# Set aside: so many ranges of the other targets away from them (the peak of a sinc is 2.5 away from
# its tails), ...
_FAR = 3.0
# ... which without it have at most this part of their left-out squared error.
_GAIN = 0.75


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
                f"{counted(wild.sum(), 'value')} of {name!r} far outside the others, such as "
                f"{value:g} where nearly all lie between {column[~wild].min():g} and "
                f"{column[~wild].max():g}. {done}"
            )
    return cautions


def wild_targets(y: np.ndarray) -> str:
    """A caution where the fit follows wild targets, whose values are given."""
    return (
        f"{counted(len(y), 'value')} of y far from what the others say, such as "
        f"{y[np.abs(y).argmax()]:g}. Squared error follows such values: check them, leave them "
        "out, or take the logarithm of y."
    )


def targets_aside(places: np.ndarray, y: np.ndarray) -> str:
    """A caution that rows were set aside, with their places and targets."""
    shown = ", ".join(f"{value:g} in row {place}" for place, value in zip(places, y, strict=True))
    return (
        f"{counted(len(y), 'value')} of y set aside, more than three times the range of the others "
        f"away from them: {shown} (the first row is 0). Predictions, criteria and new_error_ are "
        "those of the other rows. Check such values. If they are real, take the logarithm of y, or "
        "pass predict='chosen', which follows them."
    )


# --- targets far from what the other rows say, and when they are set aside ---


def far_targets(rows: Rows, fitted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Masks of a few targets far from all others or from the fit, and of those that stand alone.

    A target stands alone if no other row speaks for it. It is more than three ranges of the others
    away from them. It lies between other rows, not at an end, where a curve may be steep. The
    nearest row is not wild too, and the row is not repeated many times. Most targets differ: where
    more than half are one value, such as 0, any other is an event.
    """
    # Every different row counts once: one row of a huge weight has no say in what is far.
    _, first, row_of = np.unique(
        np.column_stack([rows.X, rows.y]), axis=0, return_index=True, return_inverse=True
    )
    row_of = row_of.ravel()
    X, y, once = rows.X[first], rows.y[first], np.ones(len(first))
    few = max(1, int(_FEW * len(y)))
    distance = np.abs(y - fitted[first])
    deviation = 1.4826 * quantiles(distance, once, (0.5,))[0]
    tenth, ninth = quantiles(y, once, (0.1, 0.9))
    low, high = fences(y, once)
    ranges = _ranges_away(y, few)
    # A curve may follow a target, so the distance from it does not show all.
    wild = (y < low) | (y > high) | ((ranges > 1) & _between(X, X[ranges <= 1]))
    # The small residuals of a nearly exact fit have outliers too, which are harmless.
    wild |= distance > max(_WILD * deviation, 0.5 * (ninth - tenth))
    # A value that many rows have, such as 0 of 0 and 1, is no slip of the pen.
    _, value_of, count = np.unique(y, return_inverse=True, return_counts=True)
    wild &= count[value_of] < _MANY_ALIKE * len(y)
    # Where there are many, they have a cause, such as a jump that the curve rounds off.
    wild &= wild.sum() <= few
    alone = wild & (ranges > _FAR)
    if alone.any() and len(y) >= _ENOUGH and 2 * count.max() <= len(y):
        weight = np.bincount(row_of, rows.weight)
        alone &= (weight <= max(1.0, _FEW * weight.sum())) & _between(X, X[~wild])
        scale = X.std(axis=0)
        Z = X / np.where(scale > 0, scale, 1.0)
        _, near = KDTree(Z).query(Z, k=2)  # the row itself and its nearest
        alone &= wild[near].sum(axis=1) == 1
    else:
        alone[:] = False
    return wild[row_of], alone[row_of]


def _ranges_away(y: np.ndarray, few: int) -> np.ndarray:
    """Distance of each target from all but a few, in units of the range of these."""
    ordered = np.sort(y)
    starts, ends = ordered[: few + 1], ordered[-few - 1 :]
    shortest = int(np.argmin(ends - starts))
    low, high = starts[shortest], ends[shortest]
    return np.asarray(np.maximum(low - y, y - high) / (high - low if high > low else np.inf))


def _between(X: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Mask of the rows that lie within the range of others in every input."""
    low, high = others.min(axis=0), others.max(axis=0)
    return np.asarray(((low <= X) & (high >= X)).all(axis=1))


def beyond_doubt(rows: Rows, aside: np.ndarray, average: Average, others: Average) -> bool:
    """Whether the rows that are kept, each left out, are predicted much better without the others.

    A narrow peak of one row cannot be told from a slip of the pen; one of several rows can:
    without its top the others are predicted worse. ``average`` is that of all rows, ``others`` of
    those that are not aside.
    """
    kept = ~aside
    squares = (average.left_out[kept] - rows.y[kept]) ** 2
    before = rows.weight[kept] @ squares / rows.weight[kept].sum()
    return bool(others.new_error < _GAIN * before)
