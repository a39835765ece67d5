"""Similarity: closed form against enumeration and draws, and the classes nobody has seen."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from holdtrue import SimilarityLearner
from holdtrue.domains import choose, kernel
from holdtrue.domains.similarity import AllPairs, SampledPairs, plain_errors


def classes(seed=0, sizes=(4, 6, 5, 1), p=3):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, p)) + rng.normal(size=p) for n in sizes]


def enumerated(rows, c, held=()):
    """Products, targets and weights of every pair of class c, each pair once in each order."""
    products, targets, weights = [], [], []
    own = [(a, b) for a in range(len(rows[c])) for b in range(len(rows[c])) if a != b]
    for a, b in own:
        products.append(rows[c][a] * rows[c][b])
        targets.append(1.0)
        weights.append(0.5 / len(own))
    others = [d for d in range(len(rows)) if d != c and d not in held]
    for d in others:
        for x in rows[c]:
            for z in rows[d]:
                products.append(x * z)
                targets.append(-1.0)
                weights.append(0.5 / len(others) / len(rows[c]) / len(rows[d]))
    return np.array(products), np.array(targets), np.array(weights)


def test_random_state_draws_the_flips(monkeypatch):
    seeds = []
    select = choose.select

    def watched(walks, sums, plan):
        seeds.append(plan.seed)
        return select(walks, sums, plan)

    monkeypatch.setattr(choose, "select", watched)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 20
    for random_state in (0, 0, 1):
        SimilarityLearner(stop="sign_flip", max_steps=1, random_state=random_state).fit(X, y)
    assert seeds[0] == seeds[1] != seeds[2]


@pytest.mark.parametrize("held", [[], [1]])
@pytest.mark.parametrize("room", [1e9, 0])
def test_all_pairs_in_closed_form_are_those_of_enumeration(held, room):
    rows = classes()
    plural = np.array([0, 1, 2])
    made = AllPairs(rows, plural, room).without(np.array(held, dtype=int))
    position = kernel.Walk(made, np.ones(3), rule="t", center="none").position
    for d, c in enumerate(plural):
        products, targets, weights = enumerated(rows, c, held)
        assert weights.sum() == pytest.approx(1)
        np.testing.assert_allclose(made.cov_xy[0, d], weights * targets @ products)
        second = products.T @ (weights[:, None] * products)
        np.testing.assert_allclose(made.var_x[d], np.diag(second))
        for i in range(3):
            np.testing.assert_allclose(made.columns.get(i, position)[d], second[i])


def test_compiled_steps_over_pairs_are_the_steps_of_the_walk():
    data = AllPairs(classes(sizes=(9, 7, 8, 6, 1), p=6), np.arange(4), 1e9).without(np.array([2]))
    weight = np.array([1.0, 1, 0, 1])
    plain, fast = (kernel.Walk(data, weight, rule="t", center="none") for _ in range(2))
    assert plain.run(12) == fast.run(12, compiled=True) == 12
    assert fast.order == plain.order
    for name in ("t", "losses"):
        np.testing.assert_allclose(getattr(fast, name), getattr(plain, name), rtol=1e-7)


@pytest.mark.parametrize("room", [1e9, 0])
def test_the_plain_product_is_judged_as_by_enumeration(room):
    rows = classes()
    plural = np.array([0, 1, 2])
    errors = plain_errors(AllPairs(rows, plural, room))
    for held in range(3):
        moments = {}
        for c in plural:
            products, targets, weights = enumerated(rows, c, [plural[held]])
            s = products.sum(axis=1)
            moments[c] = weights @ (s * targets), weights @ s**2
        kept = [moments[c] for c in plural if c != plural[held]]
        scale = sum(g for g, _ in kept) / sum(q for _, q in kept)
        effect, square = moments[plural[held]]
        assert errors[held] == pytest.approx(1 - 2 * scale * effect + scale**2 * square)


def test_drawn_pairs_judge_the_plain_product_alike():
    rows = classes(sizes=(8, 9, 7, 3))
    exact = plain_errors(AllPairs(rows, np.arange(4), 1e9))
    drawn = SampledPairs(rows, np.arange(4), 40_000, np.random.RandomState(0), 1e9)
    np.testing.assert_allclose(plain_errors(drawn), exact, rtol=0.05)


def test_the_path_says_whether_the_plain_product_is_beaten(digits, learner):
    verdict = "better than" if learner.new_domain_score_ < learner.plain_score_ else "worse than"
    assert f"{verdict} the plain product x·x' on held-out classes" in learner.path_.reason
    X, y = digits
    whole = SimilarityLearner(stop="max_steps", max_steps=3).fit(X, y)
    assert np.isnan(whole.plain_score_)


def test_two_rows_of_a_class_by_hand():
    # Class A: 1, 3; class B: 2, 2. Same in A: 1·3 = 3; different: mean 2·2 = 4. ½(3 - 4) = -½.
    made = AllPairs([np.array([[1.0], [3]]), np.array([[2.0], [2]])], np.arange(2), 1e9)
    domains = made.without(np.empty(0, int))
    assert domains.cov_xy[0, 0, 0] == pytest.approx(-0.5)
    # E[x²x'²]: same 9, different mean(1, 9)·4 = 20: ½ (9 + 20).
    assert domains.var_x[0, 0] == pytest.approx(14.5)


@pytest.mark.parametrize("held", [[], [2]])
def test_drawn_pairs_converge_to_all_of_them(held):
    rows = classes(sizes=(8, 9, 7, 3))
    plural, held = np.arange(4), np.array(held, dtype=int)
    exact = AllPairs(rows, plural, 1e9).without(held)
    rng = np.random.RandomState(0)
    drawn = SampledPairs(rows, plural, 40_000, rng, 1e9).without(held)
    weight = np.ones(4)
    weight[held] = 0
    walks = [kernel.Walk(d, weight, rule="t", center="none") for d in (exact, drawn)]
    np.testing.assert_allclose(walks[0].start, walks[1].start, atol=0.03)
    np.testing.assert_allclose(walks[0].e2, walks[1].e2, rtol=0.03)
    for walk in walks:
        walk.step()
    assert walks[0].order == walks[1].order
    np.testing.assert_allclose(walks[0].losses, walks[1].losses, atol=0.02)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    X = X[:, X.std(axis=0) > 2]
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.fixture(scope="module")
def learner(digits):
    X, y = digits
    return SimilarityLearner().fit(X[y < 7], y[y < 7])


def test_digits_nobody_has_seen_are_told_apart(digits, learner):
    X, y = digits
    scores = learner.zero_shot_auroc(X[y >= 7], y[y >= 7], X_others=X[y < 7][::7])
    assert set(scores) == {7, 8, 9}
    assert np.mean(list(scores.values())) > 0.65


def test_the_auroc_is_that_of_scikit_learn(digits, learner):
    X, y = digits
    X, y = X[y >= 7][:60], y[y >= 7][:60]
    s = learner.similarity(X, X)
    own = y == 8
    upper = np.triu(np.ones((own.sum(), own.sum()), bool), 1)
    same, different = s[own][:, own][upper], s[own][:, ~own].ravel()
    expected = roc_auc_score(
        np.r_[np.ones(len(same)), np.zeros(len(different))], np.r_[same, different]
    )
    assert learner.zero_shot_auroc(X, y)[8] == pytest.approx(expected)


def test_similarity_pairs_and_transform_say_the_same(digits, learner):
    X = digits[0]
    s = learner.similarity(X[:5], X[5:9])
    pairs = np.array([[X[0], X[5]], [X[4], X[8]]])
    np.testing.assert_allclose(learner.pair_score(pairs), [s[0, 0], s[4, 3]])
    a, b = learner.transform(X[:5]), learner.transform(X[5:9])
    np.testing.assert_allclose(a @ (learner.signs_ * b).T, s)
    assert a.shape[1] == learner.support_.sum() == len(learner.signs_)


def test_the_fit_explains_itself(digits, learner):
    assert "7 classes as domains" in learner.path_.reason
    assert learner.held_out_scores_.shape == (learner.path_.n_steps + 1, 7)
    low, high = learner.new_domain_interval_
    assert low <= learner.new_domain_score_ <= high
    assert len(learner.t_statistics_) == len(learner.chance_levels_) == learner.path_.n_steps


def test_a_held_out_class_is_in_no_other_classs_pairs(digits):
    X, y = digits
    X, y = X[y < 5], y[y < 5]
    whole = SimilarityLearner("t", max_steps=5).fit(X, y)
    apart = SimilarityLearner("t", stop="max_steps", max_steps=5).fit(X[y != 2], y[y != 2])
    own, rest = X[y == 2], [X[y == c] for c in (0, 1, 3, 4)]
    s = own @ np.diag(apart.coef_) @ own.T
    same = np.mean((1 - s[~np.eye(len(own), dtype=bool)]) ** 2)
    different = np.mean([np.mean((-1 - (own * apart.coef_) @ r.T) ** 2) for r in rest])
    assert whole.held_out_scores_[5, 2] == pytest.approx((same + different) / 2)


def test_names_pass_through_to_the_output(digits):
    X, y = digits
    frame = pd.DataFrame(X, columns=[f"pixel {j}" for j in range(45)])
    learner = SimilarityLearner(stop="max_steps", max_steps=4).set_output(transform="pandas")
    made = learner.fit(frame, y).transform(frame)
    assert list(made.columns) == [f"pixel {j}" for j in np.flatnonzero(learner.support_)]
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        learner.get_feature_names_out(["a"] * 45)


def test_large_features_are_walked_column_by_column_with_the_same_picks(digits):
    X, y = digits
    stored = SimilarityLearner(stop="max_steps", max_steps=20).fit(X, y)
    with sklearn.config_context(working_memory=0.01):
        made = SimilarityLearner(stop="max_steps", max_steps=20).fit(X, y)
    np.testing.assert_array_equal(made.path_.order, stored.path_.order)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"pairs": "some"}, "pairs must be 'all' or a whole number of at least 1. Got 'some'"),
        ({"pairs": 0}, "pairs must be 'all' or a whole number"),
        ({"rule": "best"}, "rule must be one of"),
        ({"stop": "bound"}, r"Theorem 1 needs at least \d+ domains for 2 candidates"),
        ({"stop": "sign_flip"}, "cannot reject with 3 domains"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    X = np.arange(18.0).reshape(9, 2) ** 2 % 7
    with pytest.raises(ValueError, match=message):
        SimilarityLearner(**parameters).fit(X, np.repeat([0, 1, 2], 3))


def test_classes_without_pairs_are_refused_or_serve_the_others(learner):
    X = np.arange(10.0).reshape(5, 2) % 3
    with pytest.raises(ValueError, match=r"2 classes with 2 rows or more.*Got 1 of 4"):
        SimilarityLearner().fit(X, [0, 0, 1, 2, 3])
    with pytest.raises(ValueError, match=r"needs at least 2 classes. Got 1 class, 0\."):
        SimilarityLearner().fit(X, [0] * 5)
    assert SimilarityLearner().fit(X, [0, 0, 1, 1, 2]).domains_.tolist() == [0, 1]
    with pytest.raises(ValueError, match=r"shape \(n_pairs, 2, 45\). Got shape \(2, 3\)"):
        learner.pair_score(np.ones((2, 3)))
    with pytest.raises(ValueError, match="class 1 has no other rows to be told from"):
        learner.zero_shot_auroc(np.ones((3, 45)), [1, 1, 1])
    with pytest.raises(ValueError, match=r"y must have shape \(3,\)"):
        learner.zero_shot_auroc(np.ones((3, 45)), [1])


def test_a_feature_quiet_in_all_classes_but_one_is_no_candidate(digits):
    X, y = digits
    loud = np.where(y == 3, 1.0, 1e-3) * np.random.default_rng(0).normal(size=(40, len(y)))
    learner = SimilarityLearner(max_steps=60).fit(np.column_stack([X, loud.T]), y)
    assert learner.path_.order.max() < X.shape[1]
    assert learner.held_out_scores_.max() < 10


@pytest.mark.parametrize("unit, size", [(1e100, r"e\+10\d"), (1e-100, "e-100")])
def test_products_that_leave_the_range_of_numbers_are_refused(unit, size, digits):
    X, y = digits
    message = f"SimilarityLearner: the fourth powers of X must fit into float64. Got .*{size}. Ch"
    with pytest.raises(ValueError, match=message):
        SimilarityLearner().fit(unit * X, y)


def test_an_interrupted_fit_leaves_a_path_that_says_so(monkeypatch):
    X = np.random.default_rng(0).normal(size=(30, 4))
    calls = iter(range(100))
    step = kernel.Walk.step

    def interrupted(self):
        if next(calls) == 3:
            raise KeyboardInterrupt
        return step(self)

    monkeypatch.setattr(kernel.Walk, "step", interrupted)
    learner = SimilarityLearner()
    with pytest.raises(KeyboardInterrupt):
        learner.fit(X, np.arange(30) % 3)
    assert (learner.path_.reason, learner.path_.n_steps) == ("interrupted", 3)


def test_classes_may_be_text(digits, learner):
    X, y = digits
    names = np.array([f"digit {c}" for c in range(10)], dtype=object)
    by_text = learner.zero_shot_auroc(X, pd.Series(names[y]))
    by_number = learner.zero_shot_auroc(X, y)
    assert by_text == {names[c]: value for c, value in by_number.items()}
