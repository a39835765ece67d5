import matplotlib
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from holdtrue import DomainsDisplay, SimilarityLearner, TGreedyClassifier, TGreedyRegressor
from holdtrue.datasets import make_domains
from holdtrue.domains.display import effects_chart

matplotlib.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    return make_domains(5, 40, n_features=8, random_state=0)


def test_errors_effects_and_t_are_drawn_from_the_fit(data):
    model = TGreedyRegressor(max_steps=6).fit(data.X, data.y, groups=data.groups)
    display = DomainsDisplay.from_estimator(model)
    errors, effects, t = display.axes_
    lines = {line.get_label(): line.get_ydata() for line in errors.lines}
    np.testing.assert_array_equal(lines["at each domain held out (mean)"], model.path_.scores)
    np.testing.assert_array_equal(lines["where it was fitted"], model.path_.train_scores)
    image = np.asarray(effects.images[0].get_array())
    np.testing.assert_array_equal(image[0], model.domain_effects_[model.path_.order[0]])
    labels = [tick.get_text() for tick in effects.get_yticklabels()]
    assert sum(label.startswith("●") for label in labels) == len(model.path_.chosen)
    lines = {line.get_label(): line.get_ydata() for line in t.lines}
    np.testing.assert_array_equal(lines["|T| on entry"], np.abs(model.t_statistics_))
    np.testing.assert_array_equal(lines["level of chance"], model.chance_levels_)
    display.figure_.canvas.draw()


def test_one_plot_alone_and_several_classes(data):
    y = np.digitize(data.y, [-1, 1])
    model = TGreedyClassifier(max_steps=6).fit(data.X, y, groups=data.groups)
    _, axes = plt.subplots(1, 3)
    display = DomainsDisplay.from_estimator(model, target=2, axes=axes)
    assert display.axes_[0] is axes[0]
    _, ax = plt.subplots()
    display.plot_effects(ax, max_features=3)
    assert np.asarray(ax.images[0].get_array()).shape == (3, 5)


@pytest.mark.parametrize(
    "model",
    [
        TGreedyRegressor(stop="max_steps", max_steps=3),
        TGreedyRegressor(stop="bonferroni", alpha=1e-12, fixed_features=[1]),
    ],
)
def test_short_walks_are_drawn_without_a_warning(model, data):
    model.fit(data.X, data.y, groups=data.groups)
    DomainsDisplay.from_estimator(model).figure_.canvas.draw()
    model.fit(data.X, np.ones(200), groups=data.groups)
    DomainsDisplay.from_estimator(model).figure_.canvas.draw()


def test_classes_as_domains_are_drawn():
    X = np.random.default_rng(0).normal(size=(40, 4)) + np.arange(40)[:, None] % 4
    learner = SimilarityLearner(max_steps=4).fit(X, np.arange(40) % 4)
    assert len(DomainsDisplay.from_estimator(learner).axes_) == 3


def test_what_cannot_be_drawn_is_refused(data):
    with pytest.raises(NotFittedError):
        DomainsDisplay.from_estimator(TGreedyRegressor())
    bare = TGreedyRegressor().fit(data.X, data.y)
    with pytest.raises(ValueError, match=r"fitted without domains. Pass the domain of each row"):
        DomainsDisplay.from_estimator(bare)


def test_domains_named_by_numbers_stand_in_their_order():
    data = make_domains(n_domains=11, random_state=0)
    groups = np.array([str(g) for g in data.groups])
    model = TGreedyRegressor(max_steps=3).fit(data.X, data.y, groups=groups)
    chart = effects_chart(model.path_)
    assert list(chart.columns) == [str(k) for k in sorted(map(int, set(groups)))]
    column = model.domains_.tolist().index("10")
    j = model.path_.order[0]
    row = list(chart.rows).index(model.path_.evidence.names[j])
    at = list(chart.columns).index("10")
    assert chart.values[row][at] == pytest.approx(model.domain_effects_[j, column])
