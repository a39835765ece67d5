"""Ginger's kernel: by hand, by deleting rows, by two routes, by invariance, by the paper."""

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given, settings

from holdtrue import Counts
from holdtrue.categories import kernel
from holdtrue.categories.shrunk_mean import plain_gain, plain_no_column, plain_score
from holdtrue.sums.profile import distinct_rows, moment_sums

LEAVE_ONE_OUT = ("ginger", "majority")


def rows_of(counts):
    """The rows (value, label) that a table counts."""
    v, k = np.nonzero(counts)
    return np.repeat(v, counts[v, k]), np.repeat(k, counts[v, k])


def table(v, k, n_values, n_classes):
    counts = np.zeros((n_values, n_classes), dtype=np.int64)
    np.add.at(counts, (v, k), 1)
    return counts


def moments_of(v, y):
    X = np.array(v, dtype=object)[:, None]
    return Counts.from_arrays(X, np.asarray(y, float), numeric_target=True).tables[0]


def sums(moments):
    """Rows and repeats of the profile of a table of moments."""
    return moment_sums(moments)[:2]


tables = st.integers(2, 4).flatmap(
    lambda n_classes: st.lists(
        st.lists(st.integers(0, 4), min_size=n_classes, max_size=n_classes), min_size=1, max_size=6
    ).map(np.array)
)


def test_three_values_by_hand():
    # c = 1, 2, 3 with c⁺ = 1, 1, 1 and m = 6.
    counts = np.array([[0, 1], [1, 1], [2, 1]])
    # ½/6 + (2/1)(2/6)(2)(½)(½) + (3/2)(3/6)(2)(⅓)(⅔) = 1/12 + 1/3 + 1/3
    assert kernel.ginger(counts) == pytest.approx(1 / 12 + 1 / 3 + 1 / 3)
    # errors on the rows: 0, 1, 1 of 6; Gini 2(2/6)/4 + 2(3/6)(2/9)
    assert kernel.criterion_value("misclassification", counts) == pytest.approx(2 / 6)
    assert kernel.criterion_value("gini", counts) == pytest.approx(1 / 6 + 2 / 9)
    # left out: ½; both rows of the pair lost; of three the odd one lost, the two tie 1:1 each
    assert kernel.criterion_value("majority", counts) == pytest.approx((0.5 + 2 + 1 + 2 / 2) / 6)
    # H(Y) = 1 bit; left (2·1 + 3·H(⅓))/6
    left = (2 + 3 * (math.log2(3) - 2 / 3)) / 6
    assert kernel.criterion_value("information_gain", counts) == pytest.approx(left)
    assert kernel.no_column("information_gain", counts) == pytest.approx(1)
    # entropy of the column 1/6, 2/6, 3/6
    own = math.log2(6) - (2 + 3 * math.log2(3)) / 6
    assert kernel.criterion_value("gain_ratio", counts) == pytest.approx(1 - (1 - left) / own)


def test_numeric_target_by_hand():
    # a: 1, 3; b: 8. SS_a = 2, mean 4, SS = 26, m = 3: (4·2 + 3·26/4)/3.
    moments = moments_of(["a", "a", "b"], [1, 3, 8])
    assert plain_score(*sums(moments)) == pytest.approx((8 + 19.5) / 3)
    # no column: each row from the mean of the others, (4.5² + 1.5² + 6²)/3
    assert plain_no_column(*sums(moments)) == pytest.approx((4.5**2 + 1.5**2 + 6**2) / 3)


@given(tables, st.sampled_from(["uniform", "prior"]))
def test_ginger_and_majority_are_leave_one_out_errors(counts, unseen):
    assume(counts.sum() >= 2)
    v, k = rows_of(counts)
    expected = dict.fromkeys(LEAVE_ONE_OUT, 0.0)
    for i in range(len(v)):
        less = table(np.delete(v, i), np.delete(k, i), *counts.shape)
        rest = less[v[i]]
        if unseen == "prior" and not rest.any():
            rest = less.sum(axis=0)
        expected["ginger"] += 1 - kernel.gini_rule(rest[None])[0, k[i]]
        expected["majority"] += 1 - kernel.majority_rule(rest[None])[0, k[i]]
    for criterion, loss in expected.items():
        found = kernel.criterion_value(criterion, counts, unseen=unseen)
        assert found == pytest.approx(loss / len(v))


@given(tables)
def test_training_criteria_are_errors_on_the_rows(counts):
    assume(counts.sum() >= 1)
    joint = counts / counts.sum()
    for criterion, rule in (("gini", "gini_rule"), ("misclassification", "majority_rule")):
        error = kernel.rule_error(getattr(kernel, rule)(counts), joint)
        assert kernel.criterion_value(criterion, counts) == pytest.approx(error)
    p, q = joint.sum(axis=1), kernel.gini_rule(counts)
    entropies = [-sum(x * math.log2(x) for x in row if x > 0) for row in q]
    label = joint.sum(axis=0)
    gain = -sum(x * math.log2(x) for x in label if x > 0) - p @ entropies
    own = -sum(x * math.log2(x) for x in p if x > 0)
    left = kernel.criterion_value("information_gain", counts)
    assert kernel.no_column("information_gain", counts) - left == pytest.approx(gain, abs=1e-12)
    ratio = gain / own if own > 1e-9 else 0.0
    assert kernel.criterion_value("gain_ratio", counts) == pytest.approx(1 - ratio, abs=1e-12)


@given(tables, st.sampled_from(tuple(kernel.TERMS)), st.sampled_from(["uniform", "prior"]))
@settings(max_examples=200)
def test_the_jackknife_is_what_deleting_rows_gives(counts, criterion, unseen):
    m = int(counts.sum())
    assume(m >= 3)
    v, k = rows_of(counts)
    left, gain = [], []
    for i in range(m):
        less = table(np.delete(v, i), np.delete(k, i), *counts.shape)
        left.append(kernel.criterion_value(criterion, less, unseen=unseen))
        gain.append(kernel.no_column(criterion, less) - left[-1])
    expected = [math.sqrt((m - 1) * np.var(part)) for part in (left, gain)]
    found = kernel.jackknife(criterion, counts, unseen=unseen)
    np.testing.assert_allclose(found, expected, atol=1e-9)


near = st.floats(-10, 10).map(lambda number: round(number, 9))
numeric_rows = st.lists(st.tuples(st.integers(0, 4), near), min_size=3, max_size=15)


@given(numeric_rows)
def test_the_numeric_score_is_a_leave_one_out_error(rows):
    v, y = (np.array(part) for part in zip(*rows, strict=True))
    no_column = np.mean([(y[i] - np.delete(y, i).mean()) ** 2 for i in range(len(v))])
    assert plain_no_column(*sums(moments_of(v, y))) == pytest.approx(no_column, abs=1e-9)
    loss = 0.0
    for i in range(len(v)):
        same = np.delete(y, i)[np.delete(v, i) == v[i]]
        loss += (y[i] - same.mean()) ** 2 if len(same) else no_column
    assert plain_score(*sums(moments_of(v, y))) == pytest.approx(loss / len(v), abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=8))
def test_two_classes_give_the_binary_formulas(pairs):
    counts = np.array(pairs)
    counts = counts[counts.sum(axis=1) > 0]
    assume(len(counts))
    c, plus = counts.sum(axis=1), counts[:, 1]
    m, q = c.sum(), plus / c
    several = c > 1
    ell = np.sum(c == 1) / (2 * m) + np.sum(
        2 * c[several] / (c[several] - 1) * c[several] / m * q[several] * (1 - q[several])
    )
    assert kernel.ginger(counts) == pytest.approx(ell)
    assert kernel.criterion_value("gini", counts) == pytest.approx(2 * np.sum(c / m * q * (1 - q)))
    error = np.sum(c / m * np.minimum(q, 1 - q))
    assert kernel.criterion_value("misclassification", counts) == pytest.approx(error)


@given(tables, st.randoms())
def test_names_of_values_and_classes_do_not_matter(counts, random):
    assume(counts.sum() >= 2)
    values, classes = list(range(len(counts))), list(range(counts.shape[1]))
    random.shuffle(values)
    random.shuffle(classes)
    moved = counts[values][:, classes]
    for criterion in tuple(kernel.TERMS):
        found = kernel.criterion_value(criterion, moved)
        assert found == pytest.approx(kernel.criterion_value(criterion, counts), abs=1e-12)
        errors = kernel.jackknife(criterion, moved), kernel.jackknife(criterion, counts)
        np.testing.assert_allclose(*errors, atol=1e-12)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_million_values_take_the_short_route_to_the_same_numbers(monkeypatch, compiled):
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.8, size=(3000, 2)) + rng.integers(0, 2, size=(3000, 1))
    counts = np.concatenate([counts[counts.any(axis=1)], [[40, 7], [300, 2]]])
    monkeypatch.setattr("holdtrue.sums.profile.loops_pay", lambda n_rows: compiled)
    rows, repeats = distinct_rows(counts)
    assert len(rows) < 80 < len(counts)
    np.testing.assert_array_equal(repeats @ rows, counts.sum(axis=0))
    for criterion in tuple(kernel.TERMS):
        short = kernel.criterion_value(criterion, rows, repeats)
        assert short == pytest.approx(kernel.criterion_value(criterion, counts), rel=1e-12)
        np.testing.assert_allclose(
            kernel.jackknife(criterion, rows, repeats), kernel.jackknife(criterion, counts)
        )


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_an_id_is_worth_as_much_as_guessing(n_classes):
    ids = np.eye(n_classes, dtype=np.int64)[np.arange(50) % n_classes]
    for criterion in LEAVE_ONE_OUT:
        assert kernel.criterion_value(criterion, ids) == pytest.approx(1 - 1 / n_classes)
        assert kernel.jackknife(criterion, ids)[0] == pytest.approx(0, abs=1e-12)
    assert kernel.criterion_value("gini", ids) == kernel.criterion_value("majority", ids[:1]) * 0
    assert kernel.coverage(ids) == 0


@pytest.mark.parametrize("criterion", LEAVE_ONE_OUT)
def test_an_id_does_not_beat_a_balanced_target(criterion):
    # Left out of 25:25, a row is one of 24:25; (7) gives a constant column 25/49 > ½.
    counts = np.eye(2, dtype=np.int64)[np.arange(50) % 2]
    assert kernel.criterion_value(criterion, counts.sum(axis=0)[None]) > 0.5
    assert kernel.no_column(criterion, counts) == 0.5
    assert kernel.jackknife(criterion, counts)[1] == pytest.approx(0, abs=1e-12)


def test_an_id_ties_a_constant_column_where_unseen_values_follow_the_prior():
    counts = np.repeat([[1, 0], [0, 1]], [40, 10], axis=0)
    score = kernel.criterion_value("ginger", counts, unseen="prior")
    assert score == pytest.approx(kernel.no_column("ginger", counts))
    assert kernel.jackknife("ginger", counts, unseen="prior")[1] == pytest.approx(0, abs=1e-12)


def test_an_id_ties_a_constant_column_for_a_numeric_target():
    y = np.random.default_rng(0).normal(size=20)
    ids, constant = moments_of(range(20), y), moments_of(np.zeros(20), y)
    assert plain_score(*sums(ids)) == pytest.approx(plain_score(*sums(constant)), rel=1e-14)


def two_cuts(seed):
    """A coarse column and a finer one, of 24 rows."""
    rng = np.random.default_rng(seed)
    fine = rng.integers(0, 9, 24)
    return rng, fine, fine // 3


@given(st.integers(0, 10_000))
def test_what_finer_values_gain_is_the_difference_of_the_estimates(seed):
    rng, fine, coarse = two_cuts(seed)
    seen, fine = np.unique(fine, return_inverse=True)
    y = rng.normal(size=24)
    found, _ = plain_gain(moments_of(fine, y), seen // 3)
    expected = plain_score(*sums(moments_of(coarse, y))) - plain_score(*sums(moments_of(fine, y)))
    assert found == pytest.approx(24 * expected, abs=1e-9)
    label = rng.integers(0, 3, 24)
    whole = table(coarse, label, 3, 3)
    terms = kernel.ginger_terms(whole)[whole.any(axis=1)]
    terms = np.minimum(terms, whole.sum(axis=1)[whole.any(axis=1)] * 2 / 3)
    counts = table(fine, label, len(seen), 3)
    found, _ = kernel.ginger_gain(counts, seen // 3)
    assert found == pytest.approx(terms.sum() - kernel.ginger_terms(counts).sum(), abs=1e-9)


@pytest.mark.parametrize("rows_each", [2, 3, 10, 50])
def test_the_standard_error_of_a_numeric_gain_is_that_of_simulated_noise(rows_each):
    rng = np.random.default_rng(0)
    fine = np.repeat(np.arange(40), rows_each)
    found = [
        plain_gain(moments_of(fine, rng.normal(size=len(fine))), np.arange(40) // 10)
        for _ in range(200)
    ]
    gain, standard_error = np.array(found).T
    assert np.mean(standard_error) == pytest.approx(np.std(gain), rel=0.2)


def test_good_turing_masses_add_up_and_the_bound_follows_them():
    counts = np.array([[1, 0], [0, 1], [1, 1], [3, 0], [4, 5]])  # seen 1, 1, 2, 3, 9 times of 16
    k, mass = kernel.good_turing(counts)
    np.testing.assert_array_equal(k, [0, 1, 2, 8])
    np.testing.assert_allclose(mass, np.array([2, 2, 3, 9]) / 16)
    assert kernel.coverage(counts) == pytest.approx(14 / 16)
    bound = (0.5 * 2 + 2 / 8 + 3 / 8 + 9 / math.sqrt(math.e * 8)) / 16
    assert kernel.bayes_gap(counts) == pytest.approx(bound)


def test_theorem_2_says_something_from_half_a_million_rows_on():
    # 2/m + 12 ln(8m/δ) sqrt(ln(8/δ))/sqrt(2m) + 12 sqrt(ln(4/δ)/(2m)) at m = 1000, δ = .05
    expected = 0.002 + 12 * (
        math.log(160_000) * math.sqrt(math.log(160)) + math.sqrt(math.log(80))
    ) / math.sqrt(2000)
    assert kernel.theorem2_radius(1000) == pytest.approx(expected)
    assert kernel.theorem2_radius(530_000) > 0.5 > kernel.theorem2_radius(545_000)
    assert kernel.theorem2_radius(10**6) == pytest.approx(0.38, abs=0.01)


DISTRIBUTIONS = {
    "few values": (np.full(4, 0.25), np.array([0.1, 0.4, 0.8, 0.5])),
    "a long tail": (1 / np.arange(1, 201), np.linspace(0, 1, 200)),
    "ids": (np.ones(3000), np.arange(3000) % 2 * 1.0),
    "rare and sure": (np.append(1.0, np.full(30, 0.01)), np.append(0.3, np.zeros(30))),
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_theorem_1_bounds_the_bias(name):
    p, q = DISTRIBUTIONS[name]
    p = p / p.sum()
    joint = np.stack([p * (1 - q), p * q], axis=1)
    rng = np.random.default_rng(0)
    m = 20
    samples = rng.multinomial(m, joint.ravel(), size=4000).reshape(-1, *joint.shape)
    bias = [
        kernel.ginger(counts) - kernel.rule_error(kernel.gini_rule(counts), joint)
        for counts in samples
    ]
    error = 4 * np.std(bias) / math.sqrt(len(bias))
    assert -error <= np.mean(bias) <= 1 / (2 * m) + error


def test_the_jackknife_interval_covers_the_expected_error():
    p, q = DISTRIBUTIONS["a long tail"]
    joint = np.stack([p * (1 - q), p * q], axis=1) / p.sum()
    rng = np.random.default_rng(0)
    samples = rng.multinomial(200, joint.ravel(), size=600).reshape(-1, *joint.shape)
    scores = np.array([kernel.ginger(counts) for counts in samples])
    errors = np.array([kernel.jackknife("ginger", counts)[0] for counts in samples])
    covered = np.mean(np.abs(scores - scores.mean()) <= 1.96 * errors)
    assert 0.90 <= covered <= 0.99


def test_the_standard_error_of_a_gain_is_by_hand_that_of_pairs_of_rows():
    # One value of four rows, classes 1 1 0 0, cut into 1 1 and 0 0: each row is wrong by 2/3
    # before and by 0 after. Cut into 1 0 and 1 0 each gains 2/3 - 1. No gain varies.
    for counts, gain in (([[0, 2], [2, 0]], 2 / 3), ([[1, 1], [1, 1]], -1 / 3)):
        assert kernel.ginger_gain(np.array(counts)) == pytest.approx(
            (4 * gain - 4 * (2 / 3 - 1 / 2), 0)  # the whole counts as no worse than chance
        )
    # Cut into 1 1 0 and 0: gains 2/3 - 1/2 (two rows), 2/3 - 1 and 2/3 - 1/2 (alone: chance).
    gains = np.array([1 / 6, 1 / 6, -1 / 3, 1 / 6])
    found, error = kernel.ginger_gain(np.array([[1, 2], [1, 0]]))
    assert found == pytest.approx(gains.sum() - 4 * (2 / 3 - 1 / 2))
    assert error == pytest.approx(math.sqrt(2 * np.square(gains - gains.mean()).sum()))


def test_a_class_of_one_row_has_share_0_among_the_others():
    # Classes 0 0 0 1. Without itself a row of class 0 sees 2 of 3 alike, that of class 1 none.
    total = np.array([3, 1])
    np.testing.assert_allclose(kernel.unseen_cost("ginger", total, "prior"), [1 / 3, 1])
