import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from holdtrue import GreedyTLClassifier
from holdtrue.sources.calibrate import calibrated


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    t = np.where(rng.random(n) < 0.3, 1.0, -1.0)[:, None]
    return 0.4 * t - 0.2 + 0.5 * rng.normal(size=(n, 1)), t


def test_many_rows_give_the_logistic_regression():
    d, t = rows(20_000)
    d = d.clip(-1, 1)
    (threshold,), temperature = calibrated(d, t, np.ones_like(d))
    plain = LogisticRegression(C=1e12).fit(d, t[:, 0])
    assert 1 / temperature == pytest.approx(plain.coef_[0, 0], rel=0.01)
    assert threshold == pytest.approx(-plain.intercept_[0] / plain.coef_[0, 0], abs=0.01)


def test_few_rows_that_are_separable_give_no_certainty():
    d = np.linspace(-1, 1, 12)[:, None]
    (threshold,), temperature = calibrated(d, np.sign(d), np.ones_like(d))
    assert abs(threshold) < 1e-3
    assert 0.9 < expit(1 / temperature) < 0.9999


def test_a_giant_score_says_no_more_than_one():
    d, t = rows(30)
    large = np.where(np.abs(d) > 0.9, 1_000 * np.sign(d), d)
    least = np.where(np.abs(d) > 0.9, np.sign(d), d)
    assert calibrated(large, t, np.ones_like(d)) == calibrated(least, t, np.ones_like(d))


def test_weights_are_repetitions():
    d, t = rows(30)
    weight = np.random.default_rng(1).integers(1, 4, size=(30, 1)).astype(float)
    copies = np.repeat(np.arange(30), weight[:, 0].astype(int))
    one = calibrated(d, t, weight)
    two = calibrated(d[copies], t[copies], np.ones((len(copies), 1)))
    np.testing.assert_allclose(one[0], two[0], atol=1e-4)
    assert one[1] == pytest.approx(two[1], rel=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_decisions_that_say_nothing_give_a_high_temperature(seed):
    t = np.where(np.arange(40) % 2, 1.0, -1.0)[:, None]
    d = np.random.default_rng(seed).normal(size=(40, 1))
    _, temperature = calibrated(d, t, np.ones_like(d))
    _, of_good_ones = calibrated(t + 0.3 * d, t, np.ones_like(d))
    assert temperature > 3 * of_good_ones


def test_a_loss_that_hardly_bends_where_the_search_begins_has_its_least_value_found():
    # Newton's first step would take the slope to exp(thousands).
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    rng.normal(size=120)
    y = X[:, 0] + 0.5 * rng.normal(size=120) > 0
    model = GreedyTLClassifier().fit(X[20:], y[20:])
    assert model.score(X[20:], y[20:]) > 0.8
    assert 0.1 < model.temperature_ < 1


def test_several_classes_share_one_temperature():
    rng = np.random.default_rng(0)
    label = rng.integers(3, size=3000)
    t = np.where(label[:, None] == np.arange(3), 1.0, -1.0)
    d = 0.3 * t + 0.6 * rng.normal(size=t.shape) + [0.3, 0, 0]
    thresholds, temperature = calibrated(d, t, np.ones_like(d))
    assert thresholds[0] > thresholds[1:].max() + 0.15
    shares = np.exp((d - thresholds) / temperature)
    shares /= shares.sum(axis=1)[:, None]
    sure = shares.max(axis=1) > 0.7
    right = (shares.argmax(axis=1) == label)[sure].mean()
    assert right == pytest.approx(shares.max(axis=1)[sure].mean(), abs=0.05)
