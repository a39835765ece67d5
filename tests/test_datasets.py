import numpy as np
import pytest

from holdtrue import datasets
from holdtrue.datasets import make_curve, make_customers, make_domains, make_sources


@pytest.mark.parametrize("target", ["sinc", "step", "parabola", "four_terms"])
def test_the_noise_is_what_was_asked_for(target):
    data = make_curve(target, n_samples=4000, noise=0.3, n_unlabeled=5, random_state=0)
    assert data.X.shape == (4000, 1)
    assert data.X_unlabeled.shape == (5, 1)
    assert np.abs(data.X).max() <= np.pi
    assert np.std(data.y - data.curve(data.X[:, 0])) == pytest.approx(0.3, rel=0.05)


def test_curves_by_hand():
    at = np.array([-1.0, 0.0, 2.0])
    np.testing.assert_allclose(make_curve("sinc", 1).curve(at), [np.sin(4) / 4, 1, np.sin(8) / 8])
    np.testing.assert_allclose(make_curve("step", 1).curve(at), [0, 0, 1])
    np.testing.assert_allclose(make_curve("parabola", 1).curve(at), [0.025, 0.225, 1.225])


def test_a_seed_gives_the_same_data():
    np.testing.assert_array_equal(make_curve(random_state=1).y, make_curve(random_state=1).y)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"target": "stepp"}, "make_curve: target must be one of.*Did you mean 'step'"),
        ({"noise": -1}, "noise must be a number of at least 0. Got -1"),
        ({"n_samples": 0}, "n_samples must be a whole number of at least 1. Got 0"),
        ({"n_unlabeled": 2.5}, "n_unlabeled must be a whole number"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_curve(**arguments)


def test_noise_of_domains_is_checked_as_that_of_curves():
    with pytest.raises(ValueError, match="make_domains: noise must be a number of at least 0"):
        make_domains(noise="loud")


def test_helpful_sources_know_the_class_and_the_others_do_not():
    data = make_sources(12, 30, 5, n_test=4000, random_state=0)
    assert data.X.shape == (12, 40)
    assert data.y.sum() == 6
    assert len(data.sources) == 30
    for name, source in data.sources:
        right = np.mean((source(data.X_test) > 0) == data.y_test)
        if name in data.helpful:
            assert right == pytest.approx(0.79, abs=0.04)
        else:
            assert right == pytest.approx(0.5, abs=0.05)
    together = sum(source(data.X_test) for name, source in data.sources if name in data.helpful)
    assert np.mean((together > 0) == data.y_test) > 0.93


def test_more_helpful_sources_than_sources_are_refused():
    with pytest.raises(ValueError, match=r"n_sources must be a whole number of at least 3. Got 2"):
        make_sources(n_sources=2, n_helpful=3)


def test_domains_share_the_steady_effects_alone():
    data = make_domains(200, 100, n_features=9, noise=0.5, n_new_domains=2, random_state=0)
    assert data.X.shape == (20_000, 9)
    assert data.X_new.shape == (200, 9)
    assert not set(data.groups) & set(data.groups_new)
    slopes = np.array(
        [np.linalg.lstsq(data.X[data.groups == d], data.y[data.groups == d])[0] for d in range(200)]
    )
    np.testing.assert_allclose(slopes[:, data.steady], 1, atol=0.3)
    assert (slopes[:, data.fickle].std(axis=0) > 1.2).all()
    np.testing.assert_allclose(slopes[:, 7:], 0, atol=0.3)
    with pytest.raises(ValueError, match="make_domains: n_features must be a whole number of at"):
        make_domains(n_features=5)


def test_customers_leave_by_plan_and_spend_alone():
    data = make_customers(20_000, n_new=0, random_state=0)
    share = {name: data.left[data.columns["plan"] == name].mean() for name in ("free", "pro")}
    assert share["free"] - share["pro"] == pytest.approx(0.4, abs=0.03)
    region = [data.left[data.columns["region"] == name].mean() for name in ("north", "south")]
    assert region[0] == pytest.approx(region[1], abs=0.03)
    assert len(set(data.columns["customer"])) == 20_000


def test_every_generator_is_listed():
    generators = {name for name in vars(datasets) if name.startswith("make_")}
    assert generators == set(datasets.__all__)


def test_a_message_shows_numbers_as_they_are_typed():
    with pytest.raises(ValueError, match=r"n_samples must be .* Got 0\."):
        make_customers(np.int64(0))
