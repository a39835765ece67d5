"""Python objects of one type as an Arrow column: dates, times, decimals, NumPy's scalars."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

# Types of objects that Arrow reads as they are meant, if a column holds one of them.
_PYTHON = {str, np.str_, int, float, bool, date, time, Decimal}


def objects_column(values: np.ndarray, missing: np.ndarray) -> Any:
    """Arrow column of objects of one type, or of whole and other numbers; None for others."""
    import pyarrow as pa

    present = values[~missing]
    types = set(map(type, present))
    kind = None
    if all(issubclass(own, datetime) for own in types):  # pandas.Timestamp is one
        local = {value.tzinfo is None for value in present}
        if len(local) > 1:  # with a time zone and without: no two of them are equal
            return None
        kind = pa.timestamp(_unit(present, "nanosecond"), None if True in local else "UTC")
    elif all(issubclass(own, timedelta) for own in types):
        kind = pa.duration(_unit(present, "nanoseconds"))
    elif len(types) > 1:
        floats = _are_floats(types, present)
        return _scattered(present.astype(np.float64), missing) if floats else None
    elif all(issubclass(own, np.generic) and np.dtype(own).kind in "biufmM" for own in types):
        return _scattered(np.array(present.tolist()), missing)
    elif not types <= _PYTHON or (types == {time} and any(v.tzinfo for v in present)):
        return None
    return pa.array(values, kind, mask=missing, from_pandas=False)


def _unit(times: np.ndarray, part: str) -> str:
    """Unit that holds times or spans: Python's, or that of pandas if it says more."""
    return "ns" if any(getattr(value, part, 0) for value in times) else "us"


def _are_floats(types: set[type], values: np.ndarray) -> bool:
    """Whether all are numbers that a float holds: above 2⁵³ it would take neighbours for one."""
    return all(np.dtype(own).kind in "iuf" for own in types) and all(
        isinstance(value, (float, np.floating)) or abs(int(value)) <= 2**53 for value in values
    )


def _scattered(present: np.ndarray, missing: np.ndarray) -> Any:
    """Arrow column of the values that are there."""
    import pyarrow as pa

    column = np.zeros(len(missing), dtype=present.dtype)
    column[~missing] = present
    return pa.array(column, mask=missing)
