import matplotlib
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from holdtrue import GreedyTLClassifier, TransferDisplay, transfer_matrix
from holdtrue.datasets import make_sources
from holdtrue.sources import RegularizedLeastSquares

matplotlib.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def task():
    return make_sources(n_samples=12, n_sources=30, n_helpful=10, random_state=1)


@pytest.fixture(scope="module")
def models(task):
    """Three targets: the task, its opposite, and noise."""
    rng = np.random.default_rng(0)
    fit = GreedyTLClassifier(task.sources, max_selected=3).fit
    return {
        "task": fit(task.X, task.y),
        "opposite": GreedyTLClassifier(task.sources, max_selected=3).fit(task.X, 1 - task.y),
        "noise": RegularizedLeastSquares(task.sources).fit(task.X, rng.permutation(task.y)),
    }


def test_rows_are_the_targets_weights(models):
    matrix = transfer_matrix(models)
    assert matrix.targets == ["task", "opposite", "noise"]
    assert matrix.sources == models["task"].source_names_
    np.testing.assert_array_equal(matrix.weights[0], models["task"].source_weights_)
    np.testing.assert_allclose(matrix.weights[1], -matrix.weights[0])
    table = matrix.to_dict()
    assert len(table["weight"]) == np.count_nonzero(matrix.weights)


def test_draws_of_one_target_are_averaged(models, task):
    other = GreedyTLClassifier(task.sources, lam=0.1, max_selected=2).fit(task.X, task.y)
    matrix = transfer_matrix({"task": [models["task"], other]})
    mean = (models["task"].source_weights_ + other.source_weights_) / 2
    np.testing.assert_allclose(matrix.weights, [mean])


def test_a_model_of_three_classes_has_three_rows(task):
    model = RegularizedLeastSquares(task.sources).fit(
        task.X, np.array(list("abc"))[np.arange(12) % 3]
    )
    assert transfer_matrix(model).targets == ["a", "b", "c"]
    assert transfer_matrix([model], targets=["x", "y", "z"]).targets == ["x", "y", "z"]


def test_groups_stand_together_between_lines(models):
    matrix = transfer_matrix(models)
    groups = ["odd" if j % 2 else "even" for j in range(30)]
    display = matrix.plot(target_groups=["real", "noise", "real"], source_groups=groups)
    drawn = np.asarray(display.image_.get_array())
    assert drawn.shape == (30, 3)
    order = [*range(0, 30, 2), *range(1, 30, 2)]
    np.testing.assert_array_equal(drawn, matrix.weights[[0, 2, 1]][:, order].T)
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["real", "noise"]
    assert len(display.ax_.lines) == 2
    display.figure_.canvas.draw()


def test_one_model_is_drawn_by_itself(models):
    display = TransferDisplay.from_estimator(models["task"])
    np.testing.assert_array_equal(display.weights[0], models["task"].source_weights_)
    assert display.figure_ is display.ax_.figure


def test_without_groups_names_are_shown(models):
    display = transfer_matrix(models).plot()
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == ["task", "opposite", "noise"]


def test_models_of_columns_alone_have_no_source_to_draw(task):
    display = transfer_matrix(GreedyTLClassifier().fit(task.X, task.y))
    assert display.weights.shape == (1, 0)
    with pytest.raises(ValueError, match="no source to draw: the models were fitted on columns"):
        display.plot()


def test_what_does_not_fit_together_is_refused(models, task):
    with pytest.raises(NotFittedError):
        transfer_matrix([GreedyTLClassifier()])
    with pytest.raises(ValueError, match="expected at least one fitted model"):
        transfer_matrix([])
    fewer = GreedyTLClassifier(task.sources[:5]).fit(task.X, task.y)
    with pytest.raises(ValueError, match=r"must share their sources.*'b' has 5 sources"):
        transfer_matrix({"a": models["task"], "b": fewer})
    with pytest.raises(ValueError, match=r"targets must name 3 rows\. Got 1"):
        transfer_matrix(list(models.values()), targets=["a"])
    with pytest.raises(ValueError, match="target_groups must have one label for each of 3"):
        transfer_matrix(models).plot(target_groups=["a"])
    with pytest.raises(ValueError, match=r"a row per target.*\(1, 2\)\. Got shape \(2, 2\)"):
        TransferDisplay(np.eye(2), ["a"], ["b", "c"])
