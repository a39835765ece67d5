import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdtrue.model_size.bases import InputMap, even_map, fences, quantiles


def test_quantiles_by_hand_and_weights_are_repetitions():
    values = np.array([3.0, 1.0, 2.0])
    assert quantiles(values, np.ones(3), (0.1, 0.5, 0.9)) == [1, 2, 3]
    # 1, 2, 2, 2, 2, 2, 2, 2, 2, 3: a tenth lies at or below 1, nine tenths at or below 2.
    weight = np.array([1.0, 1, 8])
    assert quantiles(values, weight, (0.1, 0.5, 0.9)) == [1, 2, 2]
    repeated = values.repeat([1, 1, 8])
    assert quantiles(repeated, np.ones(10), (0.1, 0.5, 0.9)) == [1, 2, 2]


def test_a_linear_map_is_held_at_the_ends():
    to_unit = InputMap(2.0, 6.0)
    assert to_unit(np.array([-9.0, 2, 3, 6, 99])).tolist() == [0, 0, 0.25, 1, 1]


def test_powers_of_ten_become_even():
    # .1, 1, 10 at the tenths: (.1 + c)(10 + c) = (1 + c)² holds for c = 0, that is a plain log.
    values = np.array([0.1] * 2 + [1.0] * 6 + [10.0] * 2)
    to_unit = even_map(values, np.ones(10), 0.1, 10.0)
    np.testing.assert_allclose(to_unit(np.array([0.1, 1, 10])), [0, 0.5, 1], atol=1e-12)


def test_a_mirrored_input_has_the_mirrored_map():
    rng = np.random.default_rng(0)
    values = np.exp(rng.normal(size=50))
    one = even_map(values, np.ones(50), values.min(), values.max())
    other = even_map(-values, np.ones(50), -values.max(), -values.min())
    assert one.shift is not None
    assert other.reverse
    # The tenths are values, and not the same ones from both sides.
    np.testing.assert_allclose(other(-values), 1 - one(values), atol=0.1)


def test_an_even_input_is_left_alone():
    values = np.linspace(0, 1, 101)
    assert even_map(values, np.ones(101), 0.0, 1.0).shift is None


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=3, max_size=40),
    st.floats(0.1, 10),
    st.floats(-100, 100),
)
def test_every_map_rises_from_0_to_1(values, scale, shift):
    values = scale * np.array(values) + shift
    low, high = float(values.min()), float(values.max())
    if not high - low > 1e-9 * max(abs(low), abs(high)):
        return
    unit = even_map(values, np.ones(len(values)), low, high)(np.sort(values))
    assert unit[0] == 0
    assert unit[-1] == pytest.approx(1)
    assert (np.diff(unit) >= -1e-12).all()


def test_one_value_in_forty_is_beyond_the_fences_and_a_lognormal_input_is_not():
    rng = np.random.default_rng(0)
    values = rng.uniform(size=40)
    low, high = fences(np.append(values, 1e4), np.ones(41))
    assert low < 0
    assert 1 < high < 1e3
    skewed = np.exp(1.5 * rng.normal(size=40))
    assert fences(skewed, np.ones(40))[1] > skewed.max()
    assert fences(values[:5], np.ones(5)) == (-np.inf, np.inf)
    assert fences(np.zeros(40), np.ones(40)) == (-np.inf, np.inf)
