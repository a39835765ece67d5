"""A table of every kind of column, and what two rankings of it must share."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from holdtrue import rank_columns
from holdtrue.engine import exchange


@pytest.fixture
def mixed_frame():
    """Makes a table of every kind of column."""
    return _mixed_frame


def _mixed_frame(n_rows=3000, seed=0):
    """Ids, texts, whole numbers, numbers with -0.0 and NaN, dates, decimals; two targets."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n_rows).round(2)
    x[::11], x[1::11] = -0.0, 0.0
    z = rng.normal(size=n_rows)
    z[::7] = np.nan
    days = pd.to_timedelta(rng.integers(0, 1000, n_rows), unit="D")
    prices = pa.array([Decimal(int(cents)) / 100 for cents in rng.integers(0, 900, n_rows)])
    prices = prices.cast(pa.decimal128(10, 2))
    return pd.DataFrame(
        {
            "id": [f"u{i}" for i in range(n_rows)],
            "zip": rng.integers(0, 400, n_rows).astype(str),
            "colour": pd.Series(rng.choice(["rot", "grün", "", None], n_rows), dtype="str"),
            "count": rng.integers(0, 500, n_rows),
            "x": x,
            "z": z,
            "day": (pd.Timestamp("2020-01-01") + days).astype("datetime64[us]"),
            "price": pd.Series(prices, dtype=pd.ArrowDtype(prices.type)),
            "flag": rng.random(n_rows) < 0.3,
            "site": rng.integers(0, 40, n_rows),
            "sold": np.where((x > 0) ^ (rng.random(n_rows) < 0.2), "yes", "no"),
            "gain": 2 * x + rng.normal(size=n_rows),
        }
    )


@pytest.fixture
def many_buckets(monkeypatch):
    """Lets small tables take the way of large ones: several exchanges, many buckets, ranges."""

    def apply():
        monkeypatch.setattr(exchange, "_BUCKET", 700)
        monkeypatch.setattr(exchange, "_MOVED", 9000)

    return apply


@pytest.fixture
def assert_same_ranking():
    """Compares the ranking of a frame on an engine with that of the same rows here."""
    return _assert_same_ranking


def _assert_same_ranking(frame, here, target, **options):
    """A frame on an engine ranks as the same rows on this machine do."""
    one = {row["column"]: row for row in rank_columns(here, target, **options)}
    other = {row["column"]: row for row in rank_columns(frame, target, **options)}
    assert list(one) == list(other)
    for name, row in one.items():
        for field, value in row.items():
            if field in ("score", "no_column", "skill", "share_wrong", "low", "high"):
                np.testing.assert_allclose(other[name][field], value, rtol=1e-12, atol=1e-12)
            elif field == "standard_error":
                np.testing.assert_allclose(other[name][field], value, rtol=1e-9)
            elif field != "verdict":  # words of rounded numbers
                assert other[name][field] == value, (name, field)
