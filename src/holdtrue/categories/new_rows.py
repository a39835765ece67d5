"""Rows of a fit and those that come after: what is kept of them, and how their values compare."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdtrue.validation import mixed_rows
from holdtrue.values import frame_of


def read_rows(estimator: Any, X: Any, *, reset: bool) -> Any:
    """What `mixed_rows` gives; at fit nothing of an earlier one is left, should this one fail."""
    frame_of(type(estimator).__name__, X)  # refuses names that come twice
    if reset:
        forget(estimator)
    return mixed_rows(estimator, X, reset=reset)


def forget(estimator: Any) -> None:
    """Take the attributes of a fit away."""
    for name in [name for name in vars(estimator) if name.endswith("_")]:
        delattr(estimator, name)


def as_numbers(values: Any) -> np.ndarray:
    """Values that are there, as numbers; times in their own unit."""
    import pyarrow as pa

    if pa.types.is_temporal(values.type):
        values = values.view(f"int{values.type.bit_width}")
    elif pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    return values.drop_null().to_numpy(zero_copy_only=False)


def bin_places(owner: str, name: Any, edges: np.ndarray, wanted: Any, values: Any) -> np.ndarray:
    """Bin of each value that is there, by the upper ends of all bins but the last.

    Parameters
    ----------
    owner, name : str
        Who asks and about which column, for the messages.
    edges : ndarray of shape (n_bins - 1,)
        Values of the fit, as numbers.
    wanted : pyarrow.DataType
        That of the fit.
    values : pyarrow.Array, or ndarray of object, which is refused
    """
    import pyarrow as pa

    given = getattr(values, "type", None)
    _check_sort(owner, name, wanted, given)
    if pa.types.is_null(given):
        return np.zeros(0, dtype=np.intp)
    numbers = as_numbers(values)
    # In the coarser of two units of time, which cannot overflow; rounded so that no value changes
    # its side of an edge.
    own, new = _per_second(wanted), _per_second(given)
    if own > new:
        edges = edges // (own // new)
    elif own < new:
        step = new // own
        numbers = numbers // step + (numbers % step > 0)
    return np.searchsorted(edges, numbers)


def as_at_fit(owner: str, name: Any, wanted: Any, values: Any) -> Any:
    """Values in a type that compares with that at fit; 3 and 3.0 are the same value."""
    import pyarrow as pa

    given = getattr(values, "type", None)
    if wanted is None or given is None or pa.types.is_null(wanted):  # Python's own objects, or none
        return values
    _check_sort(owner, name, wanted, given)
    if pa.types.is_timestamp(given) and given.tz != wanted.tz:
        return values.cast(pa.timestamp(given.unit, wanted.tz))
    return values


def _check_sort(owner: str, name: Any, wanted: Any, given: Any) -> None:
    """Refuse a type that does not compare with that at fit; that of no value does."""
    import pyarrow as pa

    if given is None or not (pa.types.is_null(given) or _sort_of(wanted) == _sort_of(given)):
        raise ValueError(
            f"{owner}: column {name!r} was {wanted} at fit. "
            f"Got {'several types' if given is None else given}. Convert it to what it was."
        )


def _sort_of(kind: Any) -> Any:
    """What kinds of values can be compared with; numbers with numbers, whatever their width."""
    import pyarrow as pa

    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "number"
    return kind.id


def _per_second(kind: Any) -> int:
    """Ticks of a type in a second; 1 for a type that has none."""
    return {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[getattr(kind, "unit", "s")]
