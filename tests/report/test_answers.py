"""What a summary says: the answer, and what to be wary of."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from holdtrue import (
    GreedyTLClassifier,
    NestedRegressor,
    SelectionPath,
    SourcePool,
    TGreedyClassifier,
    TGreedyRegressor,
    rank_columns,
)
from holdtrue.charts import number
from holdtrue.compare.comparison import Comparison
from holdtrue.datasets import make_curve, make_customers, make_domains, make_sources
from holdtrue.deployed import Promise
from holdtrue.deployed.model import Measured, News
from holdtrue.evidence import DomainEvidence, SizeEvidence, SourceEvidence
from holdtrue.report.answers.check import check_summary
from holdtrue.report.answers.compare import compare_summary
from holdtrue.report.answers.rank import rank_summary
from holdtrue.report.answers.select import columns_notes, select_summary
from holdtrue.report.answers.size import size_summary
from holdtrue.report.answers.transfer import transfer_summary
from holdtrue.tables.column_summary import FeatureColumn


def notes(summary):
    return dict(summary.wary)


def ranked(columns, target, **options):
    return rank_summary(rank_columns(pa.table(columns), target, **options).path, "left")


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
    assert "skill" not in summary.answer  # which is about new rows
    assert "skill" not in summary.table.columns
    assert summary.table.rows[0]["says"] == "looks like an id; explains these rows"
    assert "explains the rows of the fit" in summary.table.rows[0]["verdict"]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (0.3, "alone wrong for 30% of new rows against 40% without any column"),
        (0.4, "alone it hardly changes which class is likeliest, and 40% stay wrong."),
        (0.5, "the class that it makes likeliest is wrong for 50% of new rows, the most frequent"),
    ],
)
def test_the_share_wrong_is_told_as_it_is_beside_none(customers, wrong, words):
    path = rank_columns(pa.table(customers.columns), customers.left).path
    evidence = replace(
        path.evidence, share_wrong=np.full(5, wrong), no_column_wrong=np.full(5, 0.4)
    )
    assert words in rank_summary(replace(path, evidence=evidence), "left").answer


def test_an_id_whose_order_may_predict_is_not_said_to_predict():
    rng = np.random.default_rng(0)
    told = set()
    for _ in range(20):
        number = rng.permutation(100)
        columns = {"number": number, "left": rng.random(100) < 0.3 + 0.2 * (number > 60)}
        summary = ranked(columns, "left")
        [says] = [row["says"] for row in summary.table.rows]
        words = notes(summary).get("Columns that look like ids", "")
        if "may predict" in says:
            assert "in bins, as a number, it may predict)" in words
            told.add(says)
        else:
            assert "in bins" not in words
    assert told == {"looks like an id; may predict"}


def test_a_copy_of_the_target_and_a_constant_are_pointed_out(customers):
    columns = {"same": customers.left, "one": np.ones(1000), "plan": customers.columns["plan"]}
    wary = notes(ranked(columns, customers.left))
    assert wary["Almost without error"].startswith("'same' predicts 'left' almost without error")
    assert wary["Constant columns"].startswith("'one'")


def test_the_picture_has_the_intervals_of_the_table(customers):
    summary = ranked(customers.columns, customers.left)
    (picture,) = summary.charts
    rows = {row["column"]: row for row in summary.table.rows}
    for dot in picture.dots:
        assert (dot.low, dot.high) == (rows[dot.label]["low"], rows[dot.label]["high"])


def test_the_skill_of_a_column_is_the_share_of_the_error_that_goes(customers):
    summary = ranked(customers.columns, customers.left)
    for row in summary.table.rows:
        assert row["skill"] == pytest.approx(1 - row["score"] / row["no_column"], abs=5e-4)
    assert "% of new rows against 45% without any column (skill 0.07)" in summary.answer


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
    summary = select_summary(model.path_, "y", "site")
    said = notes(summary)["Features that flip their sign"]
    named = {j for j in range(10) if f"'f{j}'" in said}
    assert len(named) >= 3
    assert named <= {3, 4, 5, 6}  # the fickle ones
    assert "at a new site expect a mean squared error of" in summary.answer.lower()
    row = next(row for row in summary.table.rows if row["feature"] == "f0")
    assert (row["chosen"], row["plus"], row["minus"]) == (True, 8, 0)


def domain_path(effects, n_rows):
    """A path of two features over as many domains as there are effects of the first."""
    n_domains = len(effects)
    evidence = DomainEvidence(
        names=["first", "second"],
        domains=[f"d{i}" for i in range(n_domains)],
        targets=[],
        effects=np.array([[effects, [1.0] * n_domains]]),
        n_rows=np.array(n_rows),
        t_scores=np.array([[1.0, 9.0]]),
        step_t=np.array([9.0]),
        chance_levels=np.array([3.0]),
        steady=np.array([False, True]),
        held_out=np.empty((0, 0)),
        held_out_within=np.empty((0, 0)),
        new_errors=np.empty(0),
        new_domain_score=0.5,
        new_domain_low=0.4,
        new_domain_high=0.6,
        mean_low=0.45,
        mean_high=0.55,
        rule="moderated",
        domain_weight="equal",
        center="global",
        notes=[],
    )
    return SelectionPath(
        [1], ["second"], [1.0, 0.5], 1, "least", "mean squared error", [1.0, 0.45], evidence
    )


@pytest.mark.parametrize(
    "effects, n_rows, flips",
    [
        # 4 standard errors are 4/sqrt(100) = 0.4 in a domain of 100 rows.
        ([0.41, -0.41], [100, 100], True),
        ([0.41, -0.399], [100, 100], False),
        ([0.399, -0.41], [100, 100], False),
        ([0.41, -0.41], [100, 90], False),  # 4/sqrt(90) = 0.42
        ([0.21, -0.21], [400, 400], True),
        # However many rows, an effect below 0.1 is not worth a warning.
        ([0.11, -0.11], [10**6, 10**6], True),
        ([0.11, -0.09], [10**6, 10**6], False),
    ],
)
def test_an_effect_within_four_standard_errors_of_0_has_no_sign(effects, n_rows, flips):
    wary = notes(select_summary(domain_path(effects, n_rows), "y", "site"))
    assert ("Features that flip their sign" in wary) == flips


def test_what_a_domain_without_a_column_shows_is_not_called_an_effect():
    dose = FeatureColumn("dose", ("dose",), "number", 3, 1.5)
    ((what, why),) = columns_notes([dose], has_domains=True)
    assert what == "Missing numbers"
    assert why.startswith("Filled with the column's mean: 'dose' (3). Where a whole domain lacks")
    assert "its effect there is not known" in why
    assert "domain" not in columns_notes([dose], has_domains=False)[0][1]


def test_a_feature_that_is_the_same_in_all_rows_of_a_domain_does_not_flip():
    rng = np.random.default_rng(0)
    domain, private = np.repeat(np.arange(12), 50), np.arange(12) % 2
    y = rng.normal(size=600) + 2 * rng.normal(size=12)[domain]
    X = np.column_stack([private[domain], (1 - 2 * private[domain]) * y])
    model = TGreedyRegressor(center="global", stop="bonferroni").fit(X, y, groups=domain)
    effects = model.domain_effects_[0]
    assert effects.min() < -0.5  # of its mean and that of y
    assert effects.max() > 0.5
    said = notes(select_summary(model.path_, "y", "site"))["Features that flip their sign"]
    assert said.startswith("'x1': with")


@pytest.mark.parametrize("t, is_told", [(9.0, False), (-0.2, True)])
def test_a_feature_that_is_steady_beside_others_only_is_told(t, is_told):
    path = domain_path([0.5, 0.5], [9, 9])
    path = replace(path, evidence=replace(path.evidence, t_scores=np.array([[1.0, t]])))
    wary = notes(select_summary(path, "y", "site"))
    assert ("Steady beside others only" in wary) == is_told
    if is_told:
        assert wary["Steady beside others only"].startswith("'second': alone no more than chance")


def test_the_level_of_chance_is_drawn_beside_t():
    chart = select_summary(domain_path([0.5, 0.5], [9, 9]), "y", "site").charts[2]
    levels = {series.name: list(series.y) for series in chart.series}
    assert levels == {"|T| on entry": [9.0], "level of chance": [3.0]}


def test_the_error_at_a_new_domain_comes_with_its_interval_and_skill():
    path = domain_path([0.5, 0.5], [9, 9])
    assert select_summary(path, "y", "site").answer == (
        "1 feature of 2 is steady beyond chance across 2 domains: 'second'. It is used for "
        "prediction. At a new site expect a mean squared error of 0.5 (0.4 to 0.6), 50% less than "
        "predicting the mean (skill 0.5)."
    )
    worse = replace(path, evidence=replace(path.evidence, new_domain_score=1.5))
    answer = select_summary(worse, "y", "site").answer
    assert answer.endswith("no better than predicting the mean, 1 (skill −0.5).")


@pytest.mark.parametrize("expected, is_told", [(0.57, True), (0.56, False)])
def test_a_gap_of_a_quarter_between_old_and_new_domains_is_told(expected, is_told):
    path = domain_path([0.5, 0.5], [9, 9])  # 0.45 where it was fitted
    path = replace(path, evidence=replace(path.evidence, new_domain_score=expected))
    wary = notes(select_summary(path, "y", "site"))
    assert ("A gap between old and new domains" in wary) == is_told


def test_few_domains_are_said_to_be_few():
    assert (
        "With 4 domains"
        in notes(select_summary(fitted(n_domains=4).path_, "y", "site"))["Few domains"]
    )
    assert "Few domains" not in notes(select_summary(fitted().path_, "y", "site"))


def test_sources_that_help_are_named_and_those_that_may_do_harm_too():
    task = make_sources(n_samples=20, n_sources=100, n_helpful=10, random_state=0)
    model = GreedyTLClassifier(SourcePool(task.sources), max_selected=3).fit(task.X, task.y)
    summary = transfer_summary(model.path_, "label")
    assert summary.answer.startswith(f"{len(model.selected_)} sources of 100 help 'label'")
    assert [row["name"] for row in summary.table.rows] == model.selected_
    rng = np.random.default_rng(0)
    useless = SourcePool([(f"s{i}", lambda X, i=i: np.sin(99 * X[:, i])) for i in range(3)])
    X = rng.standard_normal((40, 4))
    X[:, 0] += 3 * np.repeat([0, 1], 20)
    with pytest.warns(UserWarning, match="do not lower the error"):
        model = GreedyTLClassifier(useless, guard=True).fit(X, np.repeat([0, 1], 20))
    summary = transfer_summary(model.path_, "label")
    assert "Sources that may do harm" in notes(summary)
    assert "without" in summary.answer
    few = GreedyTLClassifier(useless, max_selected=1).fit(X, np.repeat([0, 1], 20))
    summary = transfer_summary(few.path_, "label")
    assert [row["kind"] for row in summary.table.rows] == ["column"]
    assert summary.answer.startswith("None of the 3 sources helps 'label'")


def test_sources_without_skill_are_used_and_not_said_to_help():
    rng = np.random.default_rng(0)
    X, label = rng.standard_normal((40, 4)), np.repeat([0, 1], 20)
    useless = SourcePool([(f"s{i}", lambda X, i=i: np.sin(99 * X[:, i])) for i in range(4)])
    path = GreedyTLClassifier(useless, passthrough=False).fit(X, label).path_
    assert path.evidence.errors["with_sources"] >= path.scores[0]
    answer = transfer_summary(path, "label").answer
    assert "used for 'label', but no better than without a model" in answer
    assert "help" not in answer


def size_answer(model, x, y, **options):
    names = {"x_names": ["x"], "y_name": "y"}
    return size_summary(model.path_, x, y, predict=model.predict, **names, **options)


def sized(**options):
    data = make_curve("four_terms", n_samples=30, noise=0.3, random_state=0)
    model = NestedRegressor(random_state=0, **options).fit(data.X, data.y)
    return size_answer(model, data.X, data.y), model


def test_the_answer_names_the_error_of_the_model_that_is_saved_and_no_other():
    data = make_curve("four_terms", n_samples=30, noise=0.3, random_state=0)
    model = NestedRegressor(random_state=0).fit(data.X, data.y)
    summary = size_answer(model, data.X, data.y, promise="mean squared error of 7")
    assert "Expect a mean squared error of 7." in summary.answer
    assert number(model.new_error_) not in summary.answer
    assert number(model.new_error_) in notes(summary)["Another estimate"]


def test_the_size_is_in_the_answer_and_every_criterion_in_the_table():
    summary, model = sized()
    assert summary.answer.startswith(
        f"30 points afford {model.n_terms_} terms of 19. Expect a mean squared error of "
        f"{number(model.new_error_)} at new points (judged by those left out), where a "
    )
    assert {row["criterion"]: row["chooses"] for row in summary.table.rows} == model.choices_
    summary, model = sized(criterion="dee")  # the average predicts, whatever names the size
    assert f"error of {number(model.new_error_)} at new points (judged by those" in summary.answer
    summary, model = sized(predict="chosen", criterion="dee")
    estimate = model.criteria_["dee"][model.n_terms_ - 1]
    assert f"error of {number(estimate)} at new points (judged by dee), where" in summary.answer


def criteria_that_choose(*sizes, estimate=0.5, n_unlabelled=0):
    """The notes where criteria c0, c1, ... choose these sizes of 20."""
    names = [f"c{i}" for i in range(len(sizes))]
    y = np.arange(9.0)
    evidence = SizeEvidence(
        n_terms=np.arange(1, 21),
        criteria={**dict.fromkeys(names, np.full(20, estimate)), "train": np.full(20, y.var())},
        choices=dict(zip(names, sizes, strict=True)),
        criterion="c0",
    )
    path = SelectionPath(
        range(20), map(str, range(20)), np.full(21, estimate), 3, "least", evidence=evidence
    )
    x = np.zeros((9, 2))
    named = {"x_names": ["a", "b"], "y_name": "y", "n_unlabelled": n_unlabelled}
    return notes(size_summary(path, x, y, predict=None, **named))


@pytest.mark.parametrize(
    "sizes, disagree",
    [
        # Of ten criteria two may differ at either end, of nine only one.
        ((3,) * 8 + (9, 9), False),
        ((3,) * 7 + (9, 9, 9), True),
        ((9,) * 8 + (3, 3), False),
        ((9,) * 7 + (3, 3, 3), True),
        ((3,) * 7 + (9, 9), True),
        # Neither a difference of two terms counts, nor one of less than half.
        ((3, 3, 3, 5, 5, 5), False),
        ((3, 3, 3, 6, 6, 6), True),
        ((8, 8, 8, 12, 12, 12), False),
        ((8, 8, 8, 13, 13, 13), True),
    ],
)
def test_criteria_disagree_if_more_than_a_fifth_at_either_end_differs(sizes, disagree):
    assert ("Criteria disagree" in criteria_that_choose(*sizes)) == disagree


def test_who_disagrees_is_named():
    said = criteria_that_choose(3, 3, 4, 4, 9, 9)["Criteria disagree"]
    assert said.startswith("'c0' and 'c1' choose 3 or fewer, 'c4' and 'c5' 9 or more.")


@pytest.mark.parametrize("share, is_told", [(0.949, False), (0.951, True)])
def test_a_skill_below_a_twentieth_is_hardly_better_than_a_constant(share, is_told):
    wary = criteria_that_choose(3, estimate=share * np.arange(9.0).var())
    assert ("Hardly better than a constant" in wary) == is_told


@pytest.mark.parametrize("n_unlabelled, is_told", [(0, False), (1, True), (29, True), (30, False)])
def test_few_rows_without_a_target_are_pointed_out(n_unlabelled, is_told):
    wary = criteria_that_choose(3, n_unlabelled=n_unlabelled)
    assert ("Few rows without a target" in wary) == is_told


@pytest.mark.parametrize("n_used, is_told", [(9, False), (10, True)])
def test_ten_that_carry_weight_are_many(n_used, is_told):
    names = [f"s{j}" for j in range(n_used)]
    evidence = SourceEvidence(names, 0, np.ones((1, n_used)), [], {"with_sources": 0.25})
    path = SelectionPath(
        range(n_used), names, np.linspace(1, 0.25, n_used + 1), n_used, "least", evidence=evidence
    )
    summary = transfer_summary(path, "label")
    assert ("Many chosen for few rows" in notes(summary)) == is_told
    assert summary.answer.endswith("error on left-out rows is 0.25 with sources (skill 0.75).")


def test_columns_beside_sources_and_the_cost_of_choosing_are_said():
    evidence = SourceEvidence(["x", "s"], 1, np.ones((1, 2)), [], {"with_sources": 0.5})
    path = SelectionPath(range(2), ["x", "s"], [1, 0.5, 0.25], 2, "least", evidence=evidence)
    assert transfer_summary(path, "label").answer == (
        "1 source of 1 helps 'label': 's'. 1 column is used beside it: 'x'. The squared error on "
        "left-out rows is 0.5 with sources (skill 0.5). It counts what choosing costs; errors in "
        "the table do not."
    )


def test_skill_stands_beside_every_score():
    summary, _ = sized()
    y = make_curve("four_terms", n_samples=30, noise=0.3, random_state=0).y
    for row in summary.table.rows:
        expected = 1 - row["estimate"] / y.var() if row["unit"] == "mean squared error" else None
        assert row["skill"] == pytest.approx(expected, abs=5e-4)
    path = domain_path([0.5, 0.5], [9, 9])
    rows = select_summary(path, "y", "site").table.rows
    assert [(row["error"], row["skill"]) for row in rows] == [(0.5, 0.5), (None, None)]


def test_a_size_at_the_limit_is_pointed_out():
    assert "The largest size was chosen" in notes(sized(max_terms=2)[0])


def test_noise_is_hardly_better_than_a_constant():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(size=(30, 1)), rng.standard_normal(30)
    model = NestedRegressor(criterion="ric", random_state=0).fit(x, y)
    summary = size_answer(model, x, y)
    assert "Hardly better than a constant" in notes(summary)


def contest(errors, n_features, null=4.0):
    """A contest between models named by the letters, over four domains."""
    errors = np.array(errors)
    return Comparison(
        names=tuple("abc"[: len(errors)]),
        errors=errors,
        null=np.full(4, null),
        units=("N", "S", "W", "E"),
        n_features=np.array(n_features, dtype=float),
        seconds=np.ones(len(errors)),
        scoring="mean squared error",
    )


def test_the_simplest_model_within_a_standard_error_is_recommended_in_a_sentence():
    # b - a = (.5, -.3, .5, -.3): mean .1, standard error .462/2 = .231.
    path = contest([[1.0, 1.0, 2.0, 2.0], [1.5, 0.7, 2.5, 1.7], [4.0] * 4], [9, 2, 0]).to_path()
    summary = compare_summary(path, "y", "site")
    assert summary.answer.startswith(
        "Take 'b' (2 features), the simplest model within one standard error of the best, 'a' "
        "(0.1 ± 0.231 more). Expect a mean squared error of 1.6 ("
    )
    assert "at a new site, 60% less than without a model (skill 0.60)." in summary.answer
    assert summary.answer.endswith("3 models were tried on 4 domains left out in turn.")
    in_time = compare_summary(path, "y", "year", in_time=True)
    assert in_time.answer.endswith("3 models were tried on 4 domains, each from those before it.")
    assert [row["model"] for row in summary.table.rows] == ["a", "b", "c"]
    assert [row["chosen"] for row in summary.table.rows] == [False, True, False]
    assert summary.charts[1].values[2] == (0.0,) * 4 or not any(summary.charts[1].values[2])
    assert "Few domains" in notes(summary)
    assert type(summary).from_json(summary.to_json()).to_json() == summary.to_json()


def test_a_contest_that_nothing_wins_says_so():
    summary = compare_summary(contest([[5.0, 6.0, 5.0, 6.0]], [3]).to_path(), "y", "site")
    assert "which has the least error" in summary.answer
    assert "no better than without a model, 4." in summary.answer
    assert notes(summary)["Nothing holds"].endswith(
        "(or the most frequent class) where it was not fitted."
    )
    near = contest([[4.0, 4.0, 4.0, 4.0], [1.0, 5.0, 4.5, 4.5]], [0, 3])  # 0.25 ± 0.93 below
    told = notes(compare_summary(near.to_path(), "y", "site"))["Nothing holds"]
    assert "by more than one standard error where it was not fitted" in told


def test_scores_that_may_be_negative_have_no_skill():
    path = contest([[-0.9, -0.8, -0.9, -0.8]], [3], null=-0.5).to_path()
    summary = compare_summary(path, "y", "site")
    assert summary.table.rows[0]["skill"] is None
    assert "skill" not in summary.answer
    assert len(summary.charts) == 1


def with_contest(steady, ridge):
    names = ("T-Greedy", "SteadyRidge")
    found = replace(contest([steady, ridge], [1, 2]), names=names, prefer_simple=False)
    return select_summary(domain_path([0.5, 0.5], [9, 9]), "y", "site", found.to_path())


def test_select_says_which_predictor_is_better_at_left_out_domains():
    # The difference is 1 in each domain but one: mean .75, standard error .25.
    better = with_contest([2.0, 2.0, 2.0, 2.0], [1.0, 1.0, 1.0, 2.0])
    assert better.answer.endswith(
        " To predict at a new site, SteadyRidge errs least: on the same 4 left-out domains "
        "SteadyRidge has 1.25 (0.75 ± 0.25 less)."
    )
    # 1, -1, 1, -.9: mean .025, standard error .56.
    near = with_contest([2.0, 1.0, 2.0, 1.0], [1.0, 2.0, 1.0, 1.9])
    assert "SteadyRidge errs least, by what chance may give: on the same 4" in near.answer
    worse = with_contest([2.0, 1.0, 2.0, 1.0], [1.0, 2.0, 1.0, 2.1])
    assert worse.answer.endswith(
        "T-Greedy serves for prediction: on the same 4 left-out domains SteadyRidge has 1.52."
    )
    assert len(worse.charts) == 4


@pytest.mark.parametrize("ridge", [[5.0, 6.0, 4.0, 5.9], [4.0, 5.0, 4.0, 5.0]])
def test_select_recommends_no_predictor_that_is_no_better_than_the_mean(ridge):
    answer = with_contest([5.0, 6.0, 5.0, 4.8], ridge).answer  # the mean has 4
    assert "T-Greedy serves" not in answer
    assert "errs least" not in answer
    assert "No other model is better than the mean: on the same 4 left-out domains" in answer


def test_used_and_steady_are_told_apart():
    path = domain_path([0.5, 0.5], [9, 9])
    none = replace(path, evidence=replace(path.evidence, steady=np.array([False, False])))
    summary = select_summary(none, "y", "site")
    assert summary.answer.startswith(
        "No feature of 2 is steady beyond chance across 2 domains. 1 feature is used for "
        "prediction: 'second'."
    )
    row = summary.table.rows[0]
    assert (row["feature"], row["steady"], row["chosen"]) == ("second", False, True)


def test_with_classes_the_answer_says_what_plus_is_and_a_line_is_about_one_class():
    rng = np.random.default_rng(0)
    X, sites = rng.normal(size=(600, 3)), np.repeat(np.arange(6), 100)
    two = np.where(X[:, 0] + 0.3 * rng.normal(size=600) > 0, "sick", "well")
    summary = select_summary(TGreedyClassifier().fit(X, two, groups=sites).path_, "state", "site")
    assert "; + goes with state = 'well'." in summary.answer
    assert "class" not in summary.table.columns
    three = np.array(["a", "b", "c"])[np.argmax(X + 0.3 * rng.normal(size=X.shape), axis=1)]
    model = TGreedyClassifier().fit(X, three, groups=sites)
    evidence = model.path_.evidence
    for row in select_summary(model.path_, "state", "site").table.rows:
        k, j = evidence.targets.index(row["class"]), evidence.names.index(row["feature"])
        assert row["t"] == evidence.t_scores[k, j]
        assert row["least"] == evidence.effects[k, j].min()
        assert row["class"] == "abc"[j]


@pytest.mark.parametrize(
    "seed, n_may, words",
    [
        (0, 1, "1 column of 2 may predict 'left' on new rows"),
        (1, 0, "1 column of 2 predicts 'left' on new rows"),
        (2, 1, "1 column of 2 predicts, and 1 may predict, 'left' on new rows"),
        (3, 2, "2 columns of 2 may predict 'left' on new rows"),
    ],
)
def test_columns_whose_gain_may_be_chance_only_may_predict(seed, n_may, words):
    rng = np.random.default_rng(seed)
    rng.integers(0, 2, 60)
    side = rng.integers(0, 2, 60)
    left = np.where(rng.random(60) < 0.2 + 0.5 * side, "yes", "no")
    weak = np.where(rng.random(60) < 0.5 + 0.25 * (left == "yes"), "u", "v")
    summary = ranked({"weak": weak, "side": side.astype(str)}, left)
    assert summary.answer.startswith(words)
    assert [row["says"] for row in summary.table.rows].count("may predict") == n_may


def test_a_column_that_takes_away_almost_nothing_is_said_to_predict_hardly():
    rng = np.random.default_rng(0)
    side = rng.integers(0, 2, 20_000)
    left = rng.random(20_000) < 0.5 + 0.08 * side
    said = ranked({"side": side}, left).answer
    assert said.startswith(
        "1 column of 1 predicts 'left' on new rows, but hardly: the best, 'side'"
    )
    assert "takes away 0." in said


def test_a_check_of_groups_compares_their_mean_error_with_their_mean_without_a_model():
    promise = Promise("mean squared error", 1.0, 0.5, 5.0, 0.2, 8.0, 0.95, "site", 6)
    losses = np.array([1.0] * 8 + [3.0] * 2)  # by row .70 less than without, by site .60
    without = np.array([5.0] * 8 + [5.0] * 2)
    sites = np.array(["a"] * 8 + ["b"] * 2)
    measured = Measured(losses, without, sites, 0, 0, News())
    said = check_summary(promise, measured, "y", "site").answer
    assert "their mean squared error is 2 on average, promised was 1. That is 60% less" in said
    measured = Measured(without, without, sites, 0, 0, News())
    said = check_summary(promise, measured, "y", "site").answer
    assert said.endswith("That is as much as without a model, 5.")


def test_one_row_that_cannot_be_judged_is_one_row():
    promise = Promise("share wrong", 0.2, 0.1, 0.3, 0.05, 0.5, 0.95, None, 60)
    measured = Measured(np.array([0.0, 1.0]), np.ones(2), None, 1, 1, News())
    notes = [why for _, why in check_summary(promise, measured, "y", "group").wary]
    assert "1 row without a target or group is left out." in notes
    assert "1 row of a class that the model does not know counts as wrong." in notes


def test_a_share_wrong_on_new_groups_is_of_their_rows():
    left = np.tile(["yes", "no", "yes", "no"], 15)
    said = ranked({"side": left}, left, groups=np.repeat(np.arange(15), 4)).answer
    assert "alone wrong for 0% of the rows of new groups against" in said
