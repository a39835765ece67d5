"""What a summary says: the answer, and what to be wary of."""

import numpy as np
import pyarrow as pa
import pytest

from holdtrue import GreedyTLClassifier, NestedRegressor, SourcePool, TGreedyRegressor, rank_columns
from holdtrue.categories.kernel import UNITS
from holdtrue.datasets import make_curve, make_customers, make_domains, make_sources
from holdtrue.report.answers import rank_summary, select_summary, size_summary, transfer_summary


def notes(summary):
    return dict(summary.wary)


def ranked(columns, target, **options):
    table = rank_columns(pa.table(columns), target, **options)
    criterion = options.get("criterion", "ginger")
    return rank_summary(
        table.to_pydict(),
        "left",
        names=list(columns),
        unit=UNITS[criterion],
        honest=criterion == "ginger",
    )


@pytest.fixture(scope="module")
def customers():
    return make_customers(1000, n_new=0, random_state=0)


def test_the_answer_names_the_columns_that_predict_and_those_that_remember(customers):
    summary = ranked(customers.columns, customers.left)
    assert summary.answer.startswith(
        "2 columns of 5 predict 'left' on new rows; the best is 'plan'"
    )
    assert "would only remember: 'customer' and 'postcode'" in summary.answer.replace(
        "'postcode' and 'customer'", "'customer' and 'postcode'"
    )
    assert summary.path.names[:2] == ("plan", "spend")
    assert summary.path.chosen.tolist() == [2, 4]
    assert summary.path.chosen_size == 2
    assert (
        "'customer' (1,000 values, 100% of new rows bring another)"
        in notes(summary)["Columns that look like ids"]
    )


def test_an_id_that_is_first_by_information_gain_comes_with_a_warning(customers):
    summary = ranked(customers.columns, customers.left, criterion="information_gain")
    assert summary.path.names[0] == "customer"
    assert "on the rows of the fit" in summary.answer
    assert "new rows" not in summary.answer
    assert "Not about new rows" in notes(summary)
    assert summary.table.rows[0]["says"] == "looks like an id; explains these rows"
    assert "explains the rows of the fit" in summary.table.rows[0]["verdict"]


def test_a_copy_of_the_target_and_a_constant_are_pointed_out(customers):
    columns = {"same": customers.left, "one": np.ones(1000), "plan": customers.columns["plan"]}
    found = notes(ranked(columns, customers.left))
    assert found["Almost without error"].startswith("'same' predicts 'left' almost without error")
    assert found["Constant columns"].startswith("'one'")


def test_the_picture_has_the_intervals_of_the_table(customers):
    summary = ranked(customers.columns, customers.left)
    (picture,) = summary.charts
    rows = {row["column"]: row for row in summary.table.rows}
    for label, low, high in zip(picture.labels, picture.low, picture.high, strict=True):
        assert (low, high) == (rows[label]["low"], rows[label]["high"])


def test_no_column_at_all_is_an_answer():
    rng = np.random.default_rng(0)
    summary = ranked({"noise": rng.integers(0, 2, 200)}, rng.integers(0, 2, 200))
    assert summary.answer.startswith("No column of 1 predicts 'left'")
    assert summary.path.chosen_size == 0


def fitted(seed=1, n_domains=8):
    data = make_domains(n_domains, 200, n_features=10, random_state=seed)
    names = [f"f{j}" for j in range(10)]
    frame = pa.table(dict(zip(names, data.X.T, strict=True)))
    return TGreedyRegressor().fit(frame, data.y, groups=data.groups)


def test_features_that_flip_are_named_and_steady_or_idle_ones_are_not():
    model = fitted()
    summary = select_summary(model, "y", "site", sizes=[200] * 8)
    said = notes(summary)["Features that flip their sign"]
    named = {j for j in range(10) if f"'f{j}'" in said}
    assert len(named) >= 3
    assert named <= {3, 4, 5, 6}  # the fickle ones
    assert "at a new site expect a mean squared error of" in summary.answer.lower()
    row = next(row for row in summary.table.rows if row["feature"] == "f0")
    assert (row["chosen"], row["plus"], row["minus"]) == (True, 8, 0)


def test_few_domains_are_said_to_be_few():
    assert (
        "With 4 domains" in notes(select_summary(fitted(n_domains=4), "y", "site"))["Few domains"]
    )
    assert "Few domains" not in notes(select_summary(fitted(), "y", "site"))


def test_sources_that_help_are_named_and_those_that_do_not_are_left_out():
    task = make_sources(n_samples=20, n_sources=100, n_helpful=10, random_state=0)
    model = GreedyTLClassifier(SourcePool(task.sources), max_selected=3).fit(task.X, task.y)
    summary = transfer_summary(model, "label")
    assert summary.answer.startswith(f"{len(model.selected_)} sources of 100 help 'label'")
    assert [row["name"] for row in summary.table.rows] == model.selected_
    rng = np.random.default_rng(0)
    useless = SourcePool([(f"s{i}", lambda X, i=i: np.sin(99 * X[:, i])) for i in range(3)])
    X = rng.standard_normal((40, 4))
    X[:, 0] += 3 * np.repeat([0, 1], 20)
    summary = transfer_summary(
        GreedyTLClassifier(useless, max_selected=3).fit(X, np.repeat([0, 1], 20)), "label"
    )
    assert [row["kind"] for row in summary.table.rows] == ["column"] * len(summary.table.rows)
    assert "Sources that would do harm" in notes(summary)
    assert summary.answer.startswith("None of the 3 sources helps 'label'")


def sized(**options):
    data = make_curve("four_terms", n_samples=30, noise=0.3, random_state=0)
    model = NestedRegressor(random_state=0, **options).fit(data.X, data.y)
    return size_summary(model, data.X, data.y, x_names=["x"], y_name="y"), model


def test_the_size_is_in_the_answer_and_every_criterion_in_the_table():
    summary, model = sized()
    assert summary.answer.startswith(f"30 points afford {model.n_terms_} terms of 22 (dee: ")
    assert {row["criterion"]: row["chooses"] for row in summary.table.rows} == model.choices_


def test_a_size_at_the_limit_is_pointed_out():
    assert "The largest size was chosen" in notes(sized(max_terms=2)[0])


def test_noise_is_hardly_better_than_a_constant():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(size=(30, 1)), rng.standard_normal(30)
    model = NestedRegressor(criterion="ric", random_state=0).fit(x, y)
    summary = size_summary(model, x, y, x_names=["x"], y_name="y")
    assert "Hardly better than a constant" in notes(summary)
