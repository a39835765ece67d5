"""From the counts of a column to the estimate of its error: how its values are read, and how well.

A column of numbers is read in bins, a category by its values, a column of integers both ways; the
reading with the least estimate stands. Bins end at values of the data and hold about the same
number of rows; their number is chosen by the criterion itself.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

from holdtrue.categories import kernel, numeric
from holdtrue.tally import grouped_moments
from holdtrue.validation import check_choice, is_number
from holdtrue.values import array_column, filtered


class Scoring(NamedTuple):
    """How columns are scored; the same for all columns of a fit.

    Attributes
    ----------
    criterion : str
        One of `kernel.CRITERIA`; with a numeric target always "ginger".
    numeric : bool
        Whether tables hold moments of a numeric target.
    max_bins : int
    missing : {"category", "ignore"}
    unseen : {"uniform", "prior"}
    alpha : float
        One minus the confidence of the intervals.
    """

    criterion: str = "ginger"
    numeric: bool = False
    max_bins: int = 64
    missing: str = "category"
    unseen: str = "uniform"
    alpha: float = 0.05

    @property
    def unit(self) -> str:
        """What the scores measure."""
        return kernel.UNITS["numeric" if self.numeric else self.criterion]

    @property
    def lowers(self) -> str:
        """What a column must do to the estimate to be added to others, in words."""
        leaves_rows_out = self.numeric or self.criterion in ("ginger", "majority")
        return "clearly lowers" if leaves_rows_out else "lowers"

    def score(self, table: np.ndarray, repeats: np.ndarray | None = None) -> float:
        """Value of the criterion for a table; lower is better."""
        if self.numeric:
            return numeric.score(table)
        return kernel.criterion_value(self.criterion, table, repeats, unseen=self.unseen)

    def no_column(self, table: np.ndarray) -> float:
        """Value of the criterion for a constant column on the rows of the table."""
        if self.numeric:
            return numeric.no_column(table)
        return kernel.no_column(self.criterion, table)

    def is_clear(self, table: np.ndarray, parent: np.ndarray, n_tried: int) -> bool:
        """Whether finer values gain more than the best of n_tried columns does by chance.

        That is ``sqrt(2 ln p)`` standard errors (`kernel`, departure 7). Criteria that look at the
        rows of the fit only have none: there every gain counts.
        """
        if self.numeric:
            gain, error = numeric.gain(table, parent)
        elif self.criterion in ("ginger", "majority"):
            gain, error = kernel.ginger_gain(table, parent, unseen=self.unseen)
        else:
            return True
        return gain > math.sqrt(2 * math.log(n_tried)) * error


class Reading(NamedTuple):
    """One way to read a column.

    Attributes
    ----------
    n_bins : int
        0 where every value stands for itself.
    ends : ndarray of int, shape (n_bins,)
        Last place of each bin among the values in order; empty where there are no bins.
    table : ndarray of shape (n_groups, ...)
        Values or bins; a missing value has the last row for itself.
    """

    n_bins: int
    ends: np.ndarray
    table: np.ndarray

    def groups(self, values: Any) -> np.ndarray:
        """Row of the table that each value of the column belongs to, shape (n_values,)."""
        if not self.n_bins:
            return np.arange(len(values))
        groups = np.full(len(values), self.n_bins, dtype=np.intp)
        groups[_order(values)] = np.repeat(np.arange(self.n_bins), np.diff(self.ends, prepend=-1))
        return groups


_NO_ENDS = np.zeros(0, dtype=np.intp)


class ColumnEstimate(NamedTuple):
    """A column's estimated error and what is needed to judge it.

    Attributes
    ----------
    score, no_column : float
        The criterion of the column, and of a constant one on the same rows.
    standard_error : float
        Of the score, by the jackknife.
    interval : pair of float
        For the score.
    gain_interval : pair of float
        For ``no_column - score``; the column beats no column if it lies above 0.
    coverage : float
        Share of new rows whose value has been seen: of raw values for categories and integers,
        of bins for other numbers.
    n_values, n_once : int
        Distinct raw values, missing included, and how many of them occur once.
    reading : Reading
        The one with the least score.
    """

    score: float
    no_column: float
    standard_error: float
    interval: tuple[float, float]
    gain_interval: tuple[float, float]
    coverage: float
    n_values: int
    n_once: int
    reading: Reading

    def without_table(self) -> ColumnEstimate:
        """The estimate without the counts it was made from."""
        return self._replace(reading=self.reading._replace(ends=_NO_ENDS, table=np.zeros((0, 0))))

    @property
    def beats_no_column(self) -> bool:
        """Whether the error falls by more than the interval, and by more than rounding."""
        return self.gain_interval[0] > 1e-12 * self.no_column


def column_estimate(kind: str, values: Any, table: np.ndarray, how: Scoring) -> ColumnEstimate:
    """Estimate of one column from its counts.

    Parameters
    ----------
    kind : str
        One of `holdtrue.values.KINDS`.
    values : pyarrow.Array or ndarray of object, length n_values
    table : ndarray of shape (n_values, n_classes), or (n_values, 5) for a numeric target
    how : Scoring
    """
    whole = table
    if how.missing == "ignore":
        present = ~_missing(values)
        if not present.all():
            values, table = filtered(values, present), table[present]
    own = shortened(table, how)

    def tried() -> Iterator[tuple[Reading, Shortened]]:
        for reading in readings(kind, values, table, how):
            yield reading, own if reading.table is table else shortened(reading.table, how)

    return judged(kind, own, len(table), tried(), lambda: how.no_column(whole), how)


# Different rows of a table, and how many values have each.
Shortened = tuple[np.ndarray, np.ndarray]


def shortened(table: np.ndarray, how: Scoring) -> Shortened:
    """A table with rows that are the same taken together, where that is possible."""
    return (table, np.ones(len(table))) if how.numeric else kernel.distinct_rows(table)


def judged(
    kind: str,
    own: Shortened,
    n_values: int,
    tried: Iterable[tuple[Reading, Shortened]],
    no_rows: Callable[[], float],
    how: Scoring,
) -> ColumnEstimate:
    """Estimate of a column by the best of its readings.

    Parameters
    ----------
    kind : str
    own : pair of ndarray
        The shortened table of its values.
    n_values : int
    tried : iterable of (Reading, shortened table)
    no_rows : callable
        The criterion of no column, for a column of which hardly any row can be used.
    how : Scoring
    """
    rows, repeats = _rows(own[0], how), own[1]
    n_rows = float(repeats @ rows)
    if n_rows < (3 if how.numeric else 2):
        nothing = no_rows()
        return ColumnEstimate(
            nothing, nothing, 0.0, (nothing, nothing), (0.0, 0.0), 0.0, n_values, n_values,
            Reading(0, _NO_ENDS, own[0]),
        )  # fmt: skip
    best, short, score = None, None, np.inf
    for reading, table in tried:
        found = how.score(*table)
        # Rounding must not choose between readings that are the same.
        if best is None or found < score - 1e-12 * abs(score):
            best, short, score = reading, table, found
    assert best is not None
    assert short is not None
    if how.numeric:
        nothing = how.no_column(best.table)
        errors = kernel.Jackknife(*numeric.jackknife(best.table))
    else:
        nothing = how.no_column((short[1] @ short[0]).astype(np.int64)[None])
        errors = kernel.jackknife(how.criterion, *short, unseen=how.unseen)
    z = float(norm.ppf(1 - how.alpha / 2))
    gain = nothing - score
    once = int(repeats[rows == 1].sum())
    return ColumnEstimate(
        score=score,
        no_column=nothing,
        standard_error=errors.score,
        interval=(max(score - z * errors.score, 0.0), score + z * errors.score),
        gain_interval=(gain - z * errors.gain, gain + z * errors.gain),
        coverage=kernel.coverage(_rows(best.table, how)) if kind == "number" else 1 - once / n_rows,
        n_values=n_values,
        n_once=once,
        reading=best,
    )


def readings(kind: str, values: Any, table: np.ndarray, how: Scoring) -> Iterator[Reading]:
    """Ways to read a column: its values, or 2, 4, 8, ... up to ``max_bins`` quantile bins."""
    has_order = kind in ("integer", "number") and values.null_count < len(values)
    if kind != "number" or not has_order:
        yield Reading(0, _NO_ENDS, table)
    if not has_order:
        return
    in_order = table[_order(values)]
    reached = _rows(in_order, how)
    reached = np.cumsum(reached, out=None if how.numeric else reached)
    ends = [_bin_ends(reached, size) for size in bin_numbers(len(in_order), how)]
    # Values are summed once, between all ends of all sizes; bins are sums of those.
    fine = np.unique(np.concatenate(ends))
    parts = _summed(in_order, fine, how)
    missing = table[_missing(values)]
    for own in ends:
        binned = _summed(parts, np.searchsorted(fine, own), how)
        yield Reading(len(own), own, np.concatenate([binned, missing]))


def bin_numbers(n_values: int, how: Scoring) -> list[int]:
    """Numbers of bins that are tried for a column of so many values."""
    sizes = [2]
    while sizes[-1] < min(how.max_bins, n_values):
        sizes.append(min(2 * sizes[-1], how.max_bins))
    return sizes


def _bin_ends(reached: np.ndarray, n_bins: int) -> np.ndarray:
    """Last place of each bin: the first value that b/n_bins of the rows do not exceed.

    Parameters
    ----------
    reached : ndarray of shape (n_values,)
        Rows up to each value, in order.
    n_bins : int
    """
    if len(reached) <= n_bins:
        return np.arange(len(reached))
    # In the type of the others, or NumPy would copy all of those.
    wanted = bin_sizes(reached[-1], n_bins).astype(reached.dtype)
    return np.unique(np.append(np.searchsorted(reached, wanted), len(reached) - 1))


def bin_sizes(n_rows: float, n_bins: int) -> np.ndarray:
    """Rows up to the end of each bin but the last, whole numbers."""
    return np.ceil(np.arange(1, n_bins) * (n_rows / n_bins))


def _summed(table: np.ndarray, ends: np.ndarray, how: Scoring) -> np.ndarray:
    """Sums of the rows of a table from after one end to the next."""
    if how.numeric:
        groups = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=-1))
        return grouped_moments(groups, len(ends), table)
    # Class by class: along rows of a few numbers NumPy is slow.
    starts = np.append(0, ends[:-1] + 1)
    summed = [np.add.reduceat(table[:, k], starts) for k in range(table.shape[1])]
    return np.stack(summed, axis=1)


def _rows(table: np.ndarray, how: Scoring) -> np.ndarray:
    """Rows of the sample that have each value."""
    return table[:, 0] if how.numeric else kernel.row_sums(table)


def _missing(values: Any) -> np.ndarray:
    """Mask of the missing value."""
    if isinstance(values, np.ndarray):
        return np.array([value is None for value in values], dtype=bool)
    return np.asarray(values.is_null())


def _order(values: Any) -> Any:
    """Places of the values that are not missing, from the least to the greatest."""
    import pyarrow.compute as pc

    n_present = len(values) - values.null_count
    start = values.slice(0, n_present)
    if not start.null_count:
        numbers = np.asarray(start)
        if (numbers[1:] > numbers[:-1]).all():
            return slice(0, n_present)
    return np.asarray(pc.array_sort_indices(values))[:n_present]


# --- what the estimators and tables of the family share ---------------------------------------


def score_order(scores: np.ndarray) -> np.ndarray:
    """Columns from the least score to the greatest; ties keep their order."""
    scale = np.abs(scores).max(initial=0) or 1.0
    return np.argsort(np.round(scores / scale, 12), kind="stable")


def is_numeric(target: Any, target_type: str) -> bool:
    """Whether the target is a number to predict: as target_type says, or by its fractions."""
    if target_type != "auto":
        return target_type == "numeric"
    if isinstance(target, np.ndarray) and target.dtype.kind == "O":
        target = array_column(target)
    if hasattr(target, "type"):
        import pyarrow as pa

        if not (pa.types.is_floating(target.type) or pa.types.is_decimal(target.type)):
            return False
        target = np.asarray(target.cast("float64"))
    with np.errstate(invalid="ignore"):
        return bool(target.dtype.kind == "f" and (target != np.floor(target)).any())


def check_scoring(
    owner: str, criterion: Any, max_bins: Any, missing: Any, unseen: Any, alpha: Any
) -> None:
    """Refuse options that no column can be scored with."""
    check_choice(owner, "criterion", criterion, kernel.CRITERIA)
    check_choice(owner, "missing", missing, ("category", "ignore"))
    check_choice(owner, "unseen", unseen, ("uniform", "prior"))
    if not (is_number(max_bins, numbers.Integral) and max_bins >= 2):
        raise ValueError(
            f"{owner}: max_bins must be a whole number of at least 2. Got {max_bins!r}."
        )
    if not (is_number(alpha) and 0 < alpha < 1):
        raise ValueError(f"{owner}: alpha must lie between 0 and 1. Got {alpha!r}.")


def check_classes(
    owner: str, classes: tuple[Any, ...] | None, n_samples: int, criterion: str
) -> None:
    """Refuse a target by which no columns can be told apart.

    Parameters
    ----------
    owner : str
    classes : tuple, or None for a numeric target
    n_samples : int
    criterion : str
    """
    if n_samples < 2:
        raise ValueError(
            f"{owner}: needs at least 2 rows. Got {n_samples} sample"
            f"{'' if n_samples == 1 else 's'}."
        )
    if classes is None and criterion != "ginger":
        raise ValueError(
            f"{owner}: criterion={criterion!r} needs classes, and the target is numeric. "
            "Pass criterion='ginger', or target_type='classes'."
        )
    if classes is not None and len(classes) < 2:
        raise ValueError(
            f"{owner}: needs at least 2 classes in y. Got 1 class, {classes[0]!r} in every row. "
            "There is nothing to predict."
        )


def categorical_mask(owner: str, given: Any, names: Sequence[str]) -> np.ndarray:
    """Mask of the columns to take by value whatever their type.

    Parameters
    ----------
    owner : str
    given : "from_dtype", or names, indices or a mask
    names : sequence of str
    """
    mask = np.zeros(len(names), dtype=bool)
    if isinstance(given, str) and given == "from_dtype":
        return mask
    listed = np.asarray(given)
    if listed.dtype.kind == "b" and listed.shape == mask.shape:
        return listed
    if listed.dtype.kind in "iu" and listed.ndim == 1:
        if len(listed) and not (listed.min() >= 0 and listed.max() < len(names)):
            raise ValueError(
                f"{owner}: categorical_features must name columns 0 to {len(names) - 1}. "
                f"Got {listed.tolist()}."
            )
        mask[listed] = True
        return mask
    if listed.ndim == 1 and (listed.dtype.kind in "UO" or not len(listed)):
        unknown = [name for name in listed.tolist() if name not in names]
        if unknown:
            raise ValueError(f"{owner}: categorical_features names no column of X: {unknown}.")
        return np.isin(np.array(names, dtype=object), listed.astype(object))
    raise ValueError(
        f"{owner}: categorical_features must be 'from_dtype', or names, indices or a mask of "
        f"{len(names)} columns. Got {given!r}."
    )
