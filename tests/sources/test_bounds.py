import numpy as np
import pytest

from holdtrue.sources import bounds
from holdtrue.sources.scale import standardised


def test_guarantees_by_hand():
    # One feature, one source equal to y; weight .5 on the source, λ = 1, m = 4.
    y = np.array([1.0, 1, -1, -1])
    Z = np.array([[1.0, 1], [-1, 1], [1, -1], [-1, -1]])
    numbers = bounds.guarantees(Z, y, np.ones(4), np.array([0.0, 0.5]), 1, 1.0)
    assert numbers["source_risk"] == pytest.approx(0.25)  # (.5 - 1)²
    assert numbers["rate"] == pytest.approx((1 + 1 * 1) / 4)
    assert numbers["regime"] == "fast"
    assert numbers["coherence"] == 0
    assert numbers["coherence_limit"] == pytest.approx(2 / 6)
    assert numbers["coherence_holds"]
    assert numbers["factor"] == 1
    assert numbers["best_sources_risk"] == pytest.approx(1.0)  # λ/1 + 0
    assert numbers["labels_are_signs"]
    assert numbers["rows_within_unit_ball"]


def test_correlated_candidates_break_corollary_1():
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(12, 31))
    Z[:, 30] = Z[:, 0] + 0.1 * Z[:, 1]
    Z, y = (standardised(part, np.ones(12))[0] for part in (Z, rng.normal(size=(12, 1))))
    numbers = bounds.guarantees(Z, y[:, 0], np.ones(12), np.ones(31), 5, 1.0)
    assert not numbers["coherence_holds"]
    assert numbers["factor"] == np.inf
    assert not numbers["rows_within_unit_ball"]
    assert not numbers["labels_are_signs"]
