"""The deployed predictor's losses: by hand, by deleting rows or groups, by two routes."""

import math
from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, example, given
from scipy.stats import norm

from holdtrue.categories import (
    group_pairs,
    grouped,
    kernel,
    shrunk,
    shrunk_mean,
)
from holdtrue.categories.estimate import LARGEST
from holdtrue.categories.grouped import group_scores
from holdtrue.categories.shrunk import LOSSES, STRENGTHS
from holdtrue.sums.group_profile import GroupGrid, GroupTable, meet
from holdtrue.sums.profile import moment_sums

INF = math.inf
strengths_ = st.sampled_from(STRENGTHS)
losses_ = st.sampled_from(LOSSES)


def tables_with(least_classes, largest=4):
    return st.integers(least_classes, 4).flatmap(
        lambda n_classes: st.lists(
            st.lists(st.integers(0, largest), min_size=n_classes, max_size=n_classes),
            min_size=1,
            max_size=6,
        ).map(np.array)
    )


tables = tables_with(1)


@st.composite
def grouped_rows(draw, max_classes=3):
    """Value, group and class of each row; at least two groups have rows."""
    n_classes = draw(st.integers(1, max_classes))
    row = st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, n_classes - 1))
    rows = np.array(draw(st.lists(row, min_size=2, max_size=25)))
    assume(len(np.unique(rows[:, 1])) >= 2)
    return *rows.T, n_classes


def rows_of(counts):
    v, k = np.nonzero(counts)
    return np.repeat(v, counts[v, k]), np.repeat(k, counts[v, k])


def table(v, k, n_values, n_classes):
    counts = np.zeros((n_values, n_classes), dtype=np.int64)
    np.add.at(counts, (v, k), 1)
    return counts


def one_hot(k, n_classes):
    return np.eye(n_classes, dtype=np.int64)[k]


def moments_alone(y):
    """Moments of rows by themselves."""
    return np.stack([np.ones(len(y)), y, *np.zeros((3, len(y)))], axis=1)


def moments_of(v, y):
    """Count, mean and second to fourth moment of the target by value."""
    rows = []
    for value in np.unique(v):
        part = y[v == value]
        e = part - part.mean()
        rows.append([len(part), part.mean(), (e**2).sum(), (e**3).sum(), (e**4).sum()])
    return np.array(rows)


def exact_shares(counts, total, a):
    """The definition, in whole-number fractions."""
    K = len(total)
    prior = [(Fraction(int(N)) + Fraction(1, K)) / (int(sum(total)) + 1) for N in total]
    if math.isinf(a):
        return prior
    n, a = int(sum(counts)), Fraction(a)
    return [(int(c) + a * p) / (n + a) for c, p in zip(counts, prior, strict=True)]


def loss_of(loss, shares, label, total):
    if loss == "log_loss":
        return -math.log(shares[label])
    if loss == "brier":
        return float(sum((q - (k == label)) ** 2 for k, q in enumerate(shares)))
    best = max(range(len(shares)), key=lambda k: (shares[k], total[k], -k))
    return float(best != label)


def one_class_by_halves(k, group):
    """Without a column, departure 6: losses of rows by a half of the groups, its lead normal."""
    by_size = np.argsort(-np.bincount(k), kind="stable")
    losses = np.ones(len(k))
    if len(np.unique(k)) == 1:
        return losses - 1
    sign = (k == by_size[0]) * 1.0 - (k == by_size[1])
    D, S, s = sign.sum(), np.abs(sign).sum(), len(k) * clustered(sign, group)
    if D <= 1:
        first, extra = 0.5, 0.0
    elif s > 0:
        first, extra = norm.cdf(-D / s), s * norm.pdf(D / s) / S
    else:
        first, extra = 0.0, 0.0
    losses[sign > 0] = first + extra
    losses[sign < 0] = min(1 - first + extra, 1)
    return losses


def brute_force(loss, v, k, group, n_classes, a):
    """Losses of rows whose group is deleted before everything is fitted again."""
    if loss == "error" and math.isinf(a):
        return one_class_by_halves(k, group)
    losses = []
    for i in range(len(v)):
        kept = group != group[i]
        less = table(v[kept], k[kept], v.max() + 1, n_classes)
        total = less.sum(axis=0)
        losses.append(loss_of(loss, exact_shares(less[v[i]], total, a), k[i], total))
    return np.array(losses)


def gains_of(loss, losses, without, k, a):
    """Gains of rows; in the share wrong beside the class of all rows, see departure 7."""
    if loss == "error" and math.isfinite(a):
        return (k != np.bincount(k).argmax()) - losses
    return without - losses


def brute_force_mean(v, y, group, a):
    residuals = []
    for i in range(len(v)):
        kept = group != group[i]
        same = kept & (v == v[i])
        middle = y[kept].mean()
        n = same.sum()
        if math.isinf(a) or n + a == 0:
            predicted = middle
        else:
            predicted = (y[same].sum() + a * middle) / (n + a)
        residuals.append(y[i] - predicted)
    return np.square(residuals)


def clustered(losses, group):
    """The cluster standard error, term by term."""
    _, code = np.unique(group, return_inverse=True)
    G, N = code.max() + 1, len(losses)
    mean = losses.mean()
    squares = sum(((losses[code == g] - mean).sum()) ** 2 for g in range(G))
    return math.sqrt(G / (G - 1) * squares) / N


def same(first, second, digits=1e-11):
    for name, one, other in zip(first._fields, first, second, strict=True):
        if name != "loss":
            assert one == pytest.approx(other, rel=digits, abs=digits, nan_ok=True), name


# --- by hand ------------------------------------------------------------------------------------


def test_three_rows_by_hand():
    # a: classes 0, 0; b: class 1. N = 3, K = 2. Left out, π⁻ of class 0 is (1 + ½)/3 = ½ for a row
    # of class 0, and of class 1 (0 + ½)/3 = 1/6 for the row of class 1.
    counts = np.array([[2, 0], [0, 1]])
    # a = 1: rows of a (1 + ½)/(1 + 1) = ¾; the row of b (0 + 1/6)/(0 + 1) = 1/6.
    scores = shrunk.strength_scores("log_loss", counts, strengths=[1.0, INF])
    assert scores[0] == pytest.approx(-(2 * math.log(3 / 4) + math.log(1 / 6)) / 3)
    assert scores[1] == pytest.approx(-(2 * math.log(1 / 2) + math.log(1 / 6)) / 3)
    # Brier: 2·2·(1/4)², 2·(5/6)²
    brier = shrunk.strength_scores("brier", counts, strengths=[1.0])[0]
    assert brier == pytest.approx((2 * 2 / 16 + 2 * 25 / 36) / 3)
    # Only the row of b is lost.
    result = shrunk.estimate("error", counts, strengths=[1.0])
    assert result.score == result.share_wrong == pytest.approx(1 / 3)
    # Without a column: two rows and one are as good as equal.
    assert result.no_column == pytest.approx(1 / 2)
    # Losses 0, 0, 1: Σ (l - 1/3)² = 2/3, over N (N - 1) = 6.
    assert result.row_error == pytest.approx(1 / 3)
    # Weights N c + a N_k: a 8 to 1, a lead of 7/4 rows, lost without both rows of class 0: 2·1/2.
    # b has one row. A third of the rows is left to the prior, 2 to 1: a lead of one row, 2·1/2,
    # times 1/9.
    assert result.pair_error == pytest.approx(math.sqrt(1 + 1 / 9) / 3)
    assert result.standard_error == pytest.approx(math.sqrt(1 / 9 + 10 / 81))
    # The class of all rows is wrong for 1/3 too, that of half of them for 1/6 more.
    assert (result.gain, result.gain_standard_error) == (pytest.approx(0), 0)
    assert (result.half_cost, result.skill) == (pytest.approx(1 / 6), pytest.approx(1 / 3))


@pytest.mark.parametrize("total", [[261, 240], [300, 200], [151, 149], [90, 80, 30]])
def test_without_a_column_the_class_of_one_half_is_wrong_as_often_in_the_other(total):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(len(total)), total)
    half = len(y) // 2 + 1 - len(y) // 2 % 2  # odd: no ties of two classes
    wrong = []
    for _ in range(4000):
        y = rng.permutation(y)
        wrong.append(np.mean(y[half:] != np.bincount(y[:half]).argmax()))
    estimate = shrunk.estimate("error", np.array([total]), strengths=[INF])
    assert estimate.score == pytest.approx(np.mean(wrong), abs=0.003)
    assert 0.45 < estimate.standard_error * math.sqrt(len(y)) < 0.9


@pytest.mark.parametrize("share", [0.5, 0.53, 0.56, 0.6])
def test_without_a_column_the_interval_holds_the_share_wrong_of_new_rows(share):
    rng = np.random.default_rng(0)
    held = []
    for n in rng.binomial(500, share, 400):
        low, high = shrunk.estimate("error", np.array([[n, 500 - n]]), strengths=[INF]).interval()
        held.append(low <= (1 - share if n >= 250 else share) <= high)
    assert np.mean(held) > 0.85


@pytest.mark.parametrize("is_grouped", [False, True])
def test_a_column_that_names_the_same_class_for_every_value_gains_nothing(is_grouped):
    counts = np.array([[60, 38], [60, 42]])
    result = shrunk.estimate("error", counts, strengths=[1.0])
    if is_grouped:
        parts = np.random.default_rng(0).multinomial(5, [0.6, 0.4], 40)
        met = GroupTable(np.repeat([0, 1], 20), np.tile(np.arange(20), 2), parts)
        result = grouped.estimate_groups("error", met, strengths=[1.0])
    assert result.score < result.no_column
    assert (result.gain, result.gain_standard_error) == (pytest.approx(0), pytest.approx(0))
    assert not result.judged(0.05, 1.0, 0.005)[2]


@pytest.mark.parametrize("share", [0.5, 0.6])
def test_few_columns_of_noise_are_wrong_clearly_less_often_than_no_column(share):
    rng = np.random.default_rng(0)
    kept = []
    for _ in range(300):
        y = (rng.random(200) < share).astype(int)
        counts = np.bincount(2 * rng.integers(2, size=200) + y, minlength=4).reshape(2, 2)
        kept.append(shrunk.estimate("error", counts).judged(0.05, 1.0, 0.005)[2])
    assert np.mean(kept) < 0.08


def test_finer_values_that_name_the_same_class_gain_nothing():
    # The coarse column has one value; the finer ones name the class that all rows name.
    gained, _ = shrunk.finer_gain("error", np.array([[60, 38], [60, 42]]), np.zeros(2, int))
    assert gained == pytest.approx(0)


def test_without_a_column_the_share_wrong_is_that_of_new_groups():
    # Groups of 20 differ in their share of a class; all together have as many of either.
    rng = np.random.default_rng(0)
    off, held = [], []
    for _ in range(300):
        p = rng.beta(2, 2, 20)
        n = rng.binomial(25, p)
        met = GroupTable(np.zeros(20, int), np.arange(20), np.stack([n, 25 - n], axis=1))
        estimate = grouped.estimate_groups("error", met, strengths=[INF])
        low, high = estimate.interval()
        off.append(estimate.score - 0.5)
        held.append(low <= 0.5 <= high)
    assert abs(np.mean(off)) < 0.01
    assert np.mean(held) > 0.9


def test_three_numbers_by_hand():
    # a: 1, 3; b: 8; strength 1. Row 1: value 3, others' mean 5.5: (3 + 5.5)/2 = 4.25, residual
    # -3.25. Row 3: (1 + 4.5)/2 = 2.75, residual .25. Row 8: others' mean 2, residual 6.
    v, y = np.array([0, 0, 1]), np.array([1.0, 3, 8])
    squares = np.array([3.25**2, 0.25**2, 36])
    result = shrunk_mean.estimate_mean(*moment_sums(moments_of(v, y))[:2], strengths=[1.0])
    assert result.score == pytest.approx(squares.mean())
    assert result.row_error == pytest.approx(squares.std(ddof=1) / math.sqrt(3))
    # Pairs: within a, variance 2 and d = 2, 4·2·2²/4; the mean of the others has weight ½, ½, 1 in
    # the predictions, 4·(¼ + ¼ + 1)/3 times the squared variance 13 of all rows.
    assert result.pair_error == pytest.approx(math.sqrt(8 + 2 * 13**2) / 3)
    without = np.array([4.5**2, 1.5**2, 36])
    assert result.no_column == pytest.approx(without.mean())
    assert result.gain_standard_error == pytest.approx(
        (without - squares).std(ddof=1) / math.sqrt(3)
    )


def test_a_value_not_seen_gets_the_prior_and_shares_sum_to_one():
    counts = np.array([[3, 1, 0], [0, 0, 0]])
    total = np.array([5, 3, 1])
    for a in (0.5, 8.0, INF):
        q = shrunk.shares(counts, total, a)
        np.testing.assert_allclose(q.sum(axis=1), 1)
        np.testing.assert_allclose(q[1], shrunk.prior(total))
    np.testing.assert_allclose(shrunk.prior(total), (total + 1 / 3) / 10)


def test_ties_of_the_likeliest_class_go_to_the_larger_total_then_to_the_first():
    counts = np.array([[1, 1, 0], [0, 0, 0], [2, 0, 2]])
    np.testing.assert_array_equal(shrunk.likeliest(counts, np.array([4, 9, 9]), 0.5), [1, 1, 2])
    np.testing.assert_array_equal(shrunk.likeliest(counts, np.array([5, 5, 5]), 0.5), [0, 0, 0])


# --- by deleting rows and groups ----------------------------------------------------------------


@given(tables, losses_, strengths_)
def test_losses_are_those_of_a_refit_without_the_row(counts, loss, a):
    assume(counts.sum() >= 2)
    v, k = rows_of(counts)
    losses = brute_force(loss, v, k, np.arange(len(v)), counts.shape[1], a)
    result = shrunk.estimate(loss, counts, strengths=[a])
    assert result.score == pytest.approx(losses.mean(), rel=1e-12, abs=1e-14)
    assert result.row_error == pytest.approx(
        losses.std(ddof=1) / math.sqrt(len(v)), rel=1e-10, abs=1e-12
    )
    without = brute_force(loss, v, k, np.arange(len(v)), counts.shape[1], INF)
    assert result.no_column == pytest.approx(without.mean(), rel=1e-12, abs=1e-14)
    gains = gains_of(loss, losses, without, k, a)
    assert result.gain == pytest.approx(gains.mean(), rel=1e-10, abs=1e-12)
    assert result.gain_standard_error == pytest.approx(
        gains.std(ddof=1) / math.sqrt(len(v)), rel=1e-10, abs=1e-12
    )
    wrong = brute_force("error", v, k, np.arange(len(v)), counts.shape[1], a)
    assert result.share_wrong == pytest.approx(wrong.mean())


@given(grouped_rows(), losses_, strengths_)
def test_losses_with_groups_are_those_of_a_refit_without_the_group(rows, loss, a):
    v, group, k, n_classes = rows
    losses = brute_force(loss, v, k, group, n_classes, a)
    met = meet(v, group, one_hot(k, n_classes))
    result = grouped.estimate_groups(loss, met, strengths=[a])
    assert result.score == pytest.approx(losses.mean(), rel=1e-12, abs=1e-14)
    assert result.row_error == pytest.approx(clustered(losses, group), rel=1e-9, abs=1e-12)
    without = brute_force(loss, v, k, group, n_classes, INF)
    assert result.no_column == pytest.approx(without.mean(), rel=1e-12, abs=1e-14)
    gains = gains_of(loss, losses, without, k, a)
    assert result.gain == pytest.approx(gains.mean(), rel=1e-9, abs=1e-12)
    assert result.gain_standard_error == pytest.approx(clustered(gains, group), rel=1e-9, abs=1e-12)
    assert result.share_wrong == pytest.approx(
        brute_force("error", v, k, group, n_classes, a).mean()
    )
    sizes = np.unique(group, return_counts=True)[1]
    assert result.n_units == pytest.approx(max(sizes.sum() ** 2 / (sizes**2).sum(), 2))


def test_groups_of_unequal_sizes_count_as_fewer():
    # sizes 1, 1, 1, 3: 6² / 12 = 3; one of 98 rows beside two of one: 1.04, and at least 2
    assert grouped.effective_groups(np.array([1.0, 1, 1, 3])) == 3
    assert grouped.effective_groups(np.array([98.0, 1, 0, 1])) == 2
    assert grouped.effective_groups(np.array([5.0, 5, 5])) == 3
    assert grouped.effective_groups(np.array([7.0])) == 1


numbers = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(-50, 50)), min_size=2, max_size=25
)


@given(numbers, st.sampled_from([0.0, *STRENGTHS]), st.sampled_from([0.0, 1e6]))
def test_squared_errors_are_those_of_a_refit_without_the_row(rows, a, offset):
    v, _, y = np.array(rows, dtype=float).T
    losses = brute_force_mean(v, y, np.arange(len(v)), a)
    sums = moment_sums(moments_of(v, y + offset))[:2]
    result = shrunk_mean.estimate_mean(*sums, strengths=[a])
    without = brute_force_mean(v, y, np.arange(len(v)), INF)
    digits = 1e-9 * max(1, without.max())
    assert result.score == pytest.approx(losses.mean(), rel=1e-8, abs=digits)
    assert result.no_column == pytest.approx(without.mean(), rel=1e-8, abs=digits)
    root = math.sqrt(len(v))
    # A spread of 0 is the root of rounding.
    digits = 1e-6 * max(1, without.max())
    assert result.row_error == pytest.approx(losses.std(ddof=1) / root, abs=digits)
    assert result.gain_standard_error == pytest.approx(
        (without - losses).std(ddof=1) / root, abs=digits
    )


@given(numbers, st.sampled_from([0.0, *STRENGTHS]), st.sampled_from([0.0, 1e6]))
def test_squared_errors_with_groups_are_those_of_a_refit_without_the_group(rows, a, offset):
    v, group, y = np.array(rows).T
    assume(len(np.unique(group)) >= 2)
    losses = brute_force_mean(v, y.astype(float), group, a)
    alone = moments_alone(y + offset)
    result = grouped.estimate_mean_groups(meet(v, group, alone), strengths=[a])
    assert result.score == pytest.approx(losses.mean(), rel=1e-8, abs=1e-6)
    assert result.row_error == pytest.approx(clustered(losses, group), rel=1e-8, abs=1e-6)
    without = brute_force_mean(v, y.astype(float), group, INF)
    assert result.gain_standard_error == pytest.approx(
        clustered(without - losses, group), rel=1e-8, abs=1e-6
    )
    assert math.isnan(result.share_wrong)


def rule_brute_force(criterion, v, k, group, n_classes, unseen):
    rule = {"ginger": kernel.gini_rule, "majority": kernel.majority_rule}[criterion]
    losses = []
    for i in range(len(v)):
        kept = group != group[i]
        less = table(v[kept], k[kept], v.max() + 1, n_classes)
        rest = less[v[i]]
        if not rest.any() and unseen == "prior":
            rest = less.sum(axis=0)
        losses.append(1 - rule(rest[None])[0, k[i]])
    return np.array(losses)


rules = st.sampled_from(["ginger", "majority"])
unseens = st.sampled_from(["uniform", "prior"])


@given(tables_with(2), rules, unseens)
def test_rules_4_and_5_have_the_standard_error_of_their_rows(counts, criterion, unseen):
    assume(counts.sum() >= 2)
    v, k = rows_of(counts)
    group = np.arange(len(v))
    losses = rule_brute_force(criterion, v, k, group, counts.shape[1], unseen)
    without = rule_brute_force(criterion, 0 * v, k, group, counts.shape[1], unseen)
    chance = 1 - 1 / counts.shape[1]
    if without.mean() > chance + 1e-12:
        without[:] = chance
    seen = counts[counts.any(axis=1)]
    result = shrunk.estimate_rule(criterion, counts, unseen=unseen)
    assert result.score == pytest.approx(losses.mean())
    assert result.score == pytest.approx(kernel.criterion_value(criterion, seen, unseen=unseen))
    assert result.no_column == pytest.approx(kernel.no_column(criterion, seen))
    root = math.sqrt(len(v))
    assert result.row_error == pytest.approx(losses.std(ddof=1) / root, abs=1e-12)
    assert result.gain_standard_error == pytest.approx(
        (without - losses).std(ddof=1) / root, abs=1e-12
    )


@given(grouped_rows(), rules, unseens)
def test_rules_4_and_5_leave_groups_out(rows, criterion, unseen):
    v, group, k, n_classes = rows
    losses = rule_brute_force(criterion, v, k, group, n_classes, unseen)
    met = meet(v, group, one_hot(k, n_classes))
    result = grouped.estimate_rule_groups(criterion, met, unseen=unseen)
    assert result.score == pytest.approx(losses.mean(), abs=1e-14)
    assert result.row_error == pytest.approx(clustered(losses, group), abs=1e-12)
    without = rule_brute_force(criterion, 0 * v, k, group, n_classes, unseen).mean()
    assert result.no_column == pytest.approx(min(without, 1 - 1 / n_classes), abs=1e-14)


# --- two routes ---------------------------------------------------------------------------------


@given(tables, losses_)
def test_a_profile_with_repeats_is_its_counts_repeated(counts, loss):
    assume(counts.sum() >= 2)
    repeated = np.concatenate([counts, counts[:2], counts[:1]])
    profile, repeats = np.unique(repeated, axis=0, return_counts=True)
    same(shrunk.estimate(loss, profile, repeats), shrunk.estimate(loss, repeated))


@given(tables_with(2), rules)
def test_repeats_are_repetitions_for_rules_4_and_5_too(counts, criterion):
    assume(counts.sum() >= 2)
    repeats = np.arange(1, len(counts) + 1)
    same(
        shrunk.estimate_rule(criterion, counts, repeats),
        shrunk.estimate_rule(criterion, np.repeat(counts, repeats, axis=0)),
    )


@given(tables, losses_)
def test_a_group_per_row_is_no_groups(counts, loss):
    assume(counts.sum() >= 2)
    v, k = rows_of(counts)
    met = meet(v, np.arange(len(v)), one_hot(k, counts.shape[1]))
    same(grouped.estimate_groups(loss, met), shrunk.estimate(loss, counts))


@given(tables_with(2), rules, unseens)
def test_a_group_per_row_is_no_groups_for_rules_4_and_5(counts, criterion, unseen):
    assume(counts.sum() >= 2)
    v, k = rows_of(counts)
    met = meet(v, np.arange(len(v)), one_hot(k, counts.shape[1]))
    same(
        grouped.estimate_rule_groups(criterion, met, unseen=unseen),
        shrunk.estimate_rule(criterion, counts, unseen=unseen),
    )


@given(numbers)
def test_a_group_per_row_is_no_groups_for_numbers(rows):
    v, _, y = np.array(rows).T
    alone = moments_alone(y)
    met = meet(v, np.arange(len(v)), alone)
    sums = moment_sums(moments_of(v, y.astype(float)))[:2]
    same(
        grouped.estimate_mean_groups(met)._replace(strength=0),
        shrunk_mean.estimate_mean(*sums)._replace(strength=0),
        1e-5,
    )


@given(numbers)
def test_a_group_per_row_is_no_groups_for_the_plain_mean(rows):
    v, _, y = np.array(rows).T
    met = meet(v, np.arange(len(v)), moments_alone(y))
    by_rows = shrunk_mean.plain_score(*moment_sums(moments_of(v, y.astype(float)))[:2])
    assert grouped.plain_mean_score(met) == pytest.approx(by_rows, rel=1e-9, abs=1e-9)


def test_the_plain_mean_of_new_groups_by_hand():
    # groups A: a 0, b 6; B: a 2, c 4; the others' mean is 3 for both. Pairs (a, A) and (a, B) miss
    # by 2; b and c, in one group each, cost what no column does: (9 + 9 + 1 + 1)/4.
    v, group, y = np.array([0, 1, 0, 2]), np.array([0, 0, 1, 1]), np.array([0.0, 6, 2, 4])
    met = meet(v, group, moments_alone(y))
    assert grouped.plain_mean_score(met) == pytest.approx((4 + 4 + 5 + 5) / 4)


@given(grouped_rows(), st.randoms(use_true_random=False))
def test_order_and_parts_of_grouped_counts_do_not_matter(rows, random):
    v, group, k, n_classes = rows
    counts = one_hot(k, n_classes)
    whole = meet(v, group, counts)
    order = np.array(random.sample(range(len(v)), len(v)))
    shuffled = meet(v[order], group[order], counts[order])
    again = meet(whole.value, whole.group, whole.sums)
    for other in (shuffled, again):
        for field in ("value", "group", "sums"):
            np.testing.assert_array_equal(getattr(whole, field), getattr(other, field))


@given(
    st.integers(2, 40), st.integers(2, 4), st.sampled_from([1, 5, 300, 100_000]), st.integers(0, 99)
)
def test_rows_taken_together_lose_what_they_lose_one_by_one(n_groups, n_classes, most, seed):
    """With rare classes, some in one group only, and more rests than there are places for."""
    rng = np.random.default_rng(seed)
    pairs = np.argwhere(rng.random((50, n_groups)) < rng.random())
    chances = rng.random((1, n_classes)) ** rng.integers(1, 12)
    counts = rng.binomial(rng.integers(1, most + 1, size=(len(pairs), 1)), chances)
    counts[:, 0] += pairs[:, 1] == 0
    assume(len(pairs) and pairs[:, 1].max() == n_groups - 1)
    assume(len(np.unique(pairs[counts.sum(axis=1) > 0, 1])) > 1)
    long, short = (
        GroupTable(*pairs.T.astype(dtype, order="C"), counts.astype(dtype))
        for dtype in (np.int32, np.int64)
    )
    finite = STRENGTHS[:-1]
    cells = np.zeros((50, n_classes, n_groups), dtype=np.int32)
    cells[pairs[:, 0], :, pairs[:, 1]] = counts
    one_by_one = group_scores("log_loss", [short], strengths=finite)[0]
    for table in (long, GroupGrid(cells, 50, long.by_group)):
        together = grouped._log_sums(table, finite, grouped._Priors.of(long)) / counts.sum()
        np.testing.assert_allclose(together, one_by_one, rtol=1e-12, atol=5e-14)
        together = grouped._long_brier_sums(table, finite) / counts.sum()
        one_way = grouped._brier_sums(short, finite) / counts.sum()
        np.testing.assert_allclose(together, one_way, rtol=1e-12, atol=5e-14)


@given(numbers)
def test_moments_of_a_value_and_group_add(rows):
    v, group, y = np.array(rows).T
    alone = moments_alone(y)
    met = meet(v, group, alone)
    for value, code, (n, mean, squares, *_) in zip(met.value, met.group, met.sums, strict=True):
        part = y[(v == value) & (group == code)]
        assert (n, mean) == pytest.approx((len(part), part.mean()))
        assert squares == pytest.approx(((part - part.mean()) ** 2).sum(), abs=1e-9)


def test_strength_0_is_the_criterion_without_shrinkage_where_every_value_comes_back():
    rng = np.random.default_rng(0)
    v, y = np.arange(60) % 7, rng.normal(size=60)
    moments = moments_of(v, y)
    scores = shrunk_mean.mean_scores(*moment_sums(moments)[:2], strengths=[0.0])
    assert scores[0] == pytest.approx(shrunk_mean.plain_score(*moment_sums(moments)[:2]))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 7])
def test_large_profiles_in_parts_are_the_sum_of_cells(loss, n_classes):
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 5, size=(30_000, n_classes))
    repeats = rng.integers(1, 4, size=30_000)
    result = shrunk.estimate(loss, counts, repeats)
    total = repeats @ counts
    cells = shrunk.cells_of(counts, repeats)
    losses = shrunk.left_out_losses(loss, cells, total, [result.strength])[0]
    N = total.sum()
    mean = cells.weight @ losses / N
    assert result.score == pytest.approx(mean)
    spread = math.sqrt(cells.weight @ (losses - mean) ** 2 / N / (N - 1))
    assert result.row_error == pytest.approx(spread)


@given(tables, losses_)
def test_readings_scored_together_are_scored_one_by_one(counts, loss):
    assume(counts.sum() >= 2)
    coarse = np.add.reduceat(counts, np.arange(0, len(counts), 2), axis=0)
    profile, repeats = np.unique(counts, axis=0, return_counts=True)
    readings = [(counts, None), (coarse, None), (profile, repeats), (counts.sum(0)[None], None)]
    scores, strengths = shrunk.best_readings(loss, readings)
    for reading, score, strength in zip(readings, scores, strengths, strict=True):
        result = shrunk.estimate(loss, *reading)
        assert score == pytest.approx(result.score, rel=1e-12, abs=1e-14)
        assert strength == result.strength


def test_long_readings_are_scored_one_by_one():
    counts = np.random.default_rng(0).integers(0, 4, size=(20_000, 2))
    coarse = np.add.reduceat(counts, np.arange(0, len(counts), 100), axis=0)
    for loss in LOSSES:
        scores, _ = shrunk.best_readings(loss, [(counts, None), (coarse, None)])
        assert scores[0] == pytest.approx(shrunk.estimate(loss, counts).score)
        assert scores[1] == pytest.approx(shrunk.estimate(loss, coarse).score)


# --- pairs of rows ------------------------------------------------------------------------------


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=5))
def test_pairs_of_rows_have_the_trace_of_the_loss(weights):
    q = np.array(weights) / sum(weights)
    sigma = np.diag(q) - np.outer(q, q)
    for loss, hessian in (
        ("log_loss", np.diag(1 / q)),
        ("brier", 2 * np.eye(len(q))),
        ("ginger", np.eye(len(q))),
    ):
        expected = np.trace(hessian @ sigma @ hessian @ sigma)
        assert shrunk.share_pairs(loss, q[None])[0] == pytest.approx(expected)


def test_a_pair_of_coin_tosses_has_variance_one_by_rules_4_and_5():
    # 50 values seen twice: half of them lost whole, half not at all; N = 100.
    counts, repeats = np.array([[1, 1], [2, 0], [0, 2]]), np.array([26, 12, 12])
    for criterion in ("ginger", "majority"):
        result = shrunk.estimate_rule(criterion, counts, repeats)
        # Rule (4) knows that pairs of one class are no coins: 26 of 50 terms of ½.
        pairs = 26 * 0.5 if criterion == "ginger" else 50 * 0.5
        assert result.pair_error == pytest.approx(math.sqrt(pairs) / 100)


@given(grouped_rows(), st.sampled_from(["log_loss", "brier", "ginger"]))
@example((np.array([0, 3, 3]), np.array([2, 0, 2]), np.array([2, 2, 0]), 3), "log_loss")
def test_pairs_of_groups_are_summed_over_all_pairs(rows, loss):
    v, group, k, n_classes = rows
    table = meet(v, group, one_hot(k, n_classes))
    value, group, counts = table.value, table.group, table.sums
    rng = np.random.default_rng(0)
    q = rng.dirichlet(np.ones(n_classes), size=v.max() + 2)
    rest = rng.uniform(1, 5, size=v.max() + 2)
    found = group_pairs.share_pairs_sum(loss, table, np.arange(v.max() + 1), q, rest)
    expected = of_all = 0.0
    for g in np.unique(group):
        for h in np.unique(group):
            b = 0.0
            for code in range(v.max() + 2):
                both = []
                for each in (g, h):
                    mine = (group == each) & ((value == code) | (code == v.max() + 1))
                    c = counts[mine].sum(axis=0)
                    both.append(c - c.sum() * q[code])
                scale = {"log_loss": 1 / q[code], "brier": 2.0, "ginger": 1.0}[loss]
                b += (both[0] * scale * both[1]).sum() / rest[code]
            expected += b * b * (g != h)
            of_all += b * b
    # A difference of sums of squares, those of all groups and of each with itself.
    assert found == pytest.approx(expected, rel=1e-6, abs=max(1e-9, 1e-13 * of_all))


@pytest.mark.parametrize("criterion", [*LOSSES, "ginger", "majority"])
def test_with_groups_the_standard_error_is_the_spread_of_estimate_minus_new_loss(criterion):
    rng = np.random.default_rng(6)
    slope = rng.normal(size=20)

    def draw(n_groups):
        """Ten rows a group; half of them have the group's value, all share its level."""
        group = np.repeat(np.arange(n_groups), 10)
        v = np.where(
            rng.random(len(group)) < 0.5,
            rng.integers(0, 20, n_groups)[group],
            rng.integers(0, 20, len(group)),
        )
        level = slope[v] + rng.normal(scale=1.5, size=n_groups)[group]
        return v, group, (rng.random(len(group)) < 1 / (1 + np.exp(-level))).astype(int)

    v, _, k = draw(10_000)
    joint = table(v, k, 20, 2) / len(v)
    differences, errors = [], []
    for _ in range(200):
        v, group, k = draw(80)
        counts = table(v, k, 20, 2)
        met = meet(v, group, one_hot(k, 2))
        if criterion in ("ginger", "majority"):
            result = grouped.estimate_rule_groups(criterion, met)
        else:
            result = grouped.estimate_groups(criterion, met)
        losses = new_losses(criterion, counts, result.strength)
        differences.append(result.score - (joint * losses).sum())
        errors.append(result.standard_error)
    ratio = math.sqrt(np.mean(np.square(errors))) / np.std(differences)
    assert 0.8 < ratio < 1.3
    assert abs(np.mean(differences)) < 0.01


def new_losses(criterion, counts, strength):
    """Loss of a new row of each value and class."""
    if criterion in ("ginger", "majority"):
        return 1 - {"ginger": kernel.gini_rule, "majority": kernel.majority_rule}[criterion](counts)
    total = counts.sum(axis=0)
    q = shrunk.shares(counts, total, strength)
    named = shrunk.likeliest(counts, total, strength)
    return {
        "log_loss": -np.log(q),
        "brier": (q**2).sum(axis=1, keepdims=True) - 2 * q + 1,
        "error": (named[:, None] != [0, 1]).astype(float),
    }[criterion]


@pytest.mark.parametrize("criterion", [*LOSSES, "ginger", "majority"])
@pytest.mark.parametrize("n_values", [3, 40])
def test_the_standard_error_is_the_spread_of_estimate_minus_new_loss(criterion, n_values):
    rng = np.random.default_rng(5)
    joint = rng.dirichlet(np.ones(n_values))[:, None] * rng.dirichlet([1, 1], size=n_values)
    differences, errors = [], []
    for _ in range(400):
        counts = rng.multinomial(200, joint.ravel()).reshape(joint.shape)
        seen = counts[counts.any(axis=1)]
        if criterion in ("ginger", "majority"):
            result = shrunk.estimate_rule(criterion, seen)
        else:
            result = shrunk.estimate(criterion, seen)
        losses = new_losses(criterion, counts, result.strength)
        differences.append(result.score - (joint * losses).sum())
        errors.append(result.standard_error)
    ratio = math.sqrt(np.mean(np.square(errors))) / np.std(differences)
    assert 0.85 < ratio < 1.25
    assert abs(np.mean(differences)) < 0.01


# --- invariance and range -----------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
def test_an_id_ties_with_no_column_exactly(loss):
    # 7 and 13 rows, each of its own value.
    result = shrunk.estimate(loss, np.array([[1, 0], [0, 1]]), np.array([7, 13]))
    assert result.score == result.no_column
    assert result.strength == INF
    assert (result.gain, result.gain_standard_error, result.skill) == (0, 0, 0)


def test_an_id_ties_with_no_column_for_numbers_and_with_groups():
    y = np.random.default_rng(0).normal(size=30)
    v = np.arange(30)
    result = shrunk_mean.estimate_mean(*moment_sums(moments_of(v, y))[:2])
    assert (result.score, result.strength, result.gain) == (result.no_column, INF, 0)
    group = v // 3
    met = meet(group, group, moments_of(v, y))
    result = grouped.estimate_mean_groups(met)
    assert (result.score, result.strength, result.gain) == (result.no_column, INF, 0)
    met = meet(group, group, one_hot((y > 0).astype(int), 2))
    for loss in LOSSES:
        result = grouped.estimate_groups(loss, met)
        assert (result.score, result.strength, result.gain) == (result.no_column, INF, 0)


@given(tables, losses_)
def test_no_strength_is_better_and_intervals_stay_in_range(counts, loss):
    assume(counts.sum() >= 2)
    result = shrunk.estimate(loss, counts)
    scores = shrunk.strength_scores(shrunk.CHOSEN_BY[loss], counts)
    if loss != "error":
        assert result.score == pytest.approx(scores.min(), abs=1e-14)
        assert result.score <= result.no_column
        assert result.skill >= -1e-12
    tied = np.flatnonzero(scores <= scores.min() + 1e-13 * abs(scores.min()))
    assert result.strength >= STRENGTHS[tied[-1]]
    low, high = result.interval()
    assert 0 <= low <= result.score <= high <= LARGEST.get(loss, 1.0)
    assert 0 <= result.share_wrong <= 1
    assert result.skill <= 1
    low, high = result.gain_interval()
    assert low <= result.gain <= high


@given(tables_with(2), rules)
def test_intervals_of_rules_4_and_5_stay_in_range(counts, criterion):
    assume(counts.sum() >= 2)
    result = shrunk.estimate_rule(criterion, counts)
    low, high = result.interval()
    assert 0 <= low <= result.score <= high <= 1


def test_an_interval_is_that_of_the_logarithm_of_the_loss():
    known = shrunk.estimate("log_loss", np.array([[6, 2], [1, 7]]))
    # With five units t is 2.776: 0.4 exp(± 2.776 * 0.1/0.4).
    five = known._replace(score=0.4, row_error=0.06, pair_error=0.08, n_units=5)
    assert five.interval() == pytest.approx(
        (0.4 * math.exp(-0.694), 0.4 * math.exp(0.694)), abs=1e-4
    )
    assert five._replace(loss="error", score=0.9).interval()[1] == 1.0
    # Where the error is above the score the exponential goes on in a straight line: e times 0.2776.
    perfect = five._replace(score=0.0)
    assert perfect.interval() == pytest.approx((0, 0.7547), abs=1e-4)
    assert five._replace(score=0.2777).interval()[1] == pytest.approx(0.7547, abs=1e-3)


@given(tables, losses_, st.randoms(use_true_random=False))
def test_the_order_of_values_and_of_classes_does_not_matter(counts, loss, random):
    # Equal totals would tie by the order of classes.
    assume(counts.sum() >= 2)
    rows = random.sample(range(len(counts)), len(counts))
    same(shrunk.estimate(loss, counts[rows]), shrunk.estimate(loss, counts))
    totals = counts.sum(axis=0)
    assume(np.all(np.abs(totals[:, None] - totals)[~np.eye(len(totals), dtype=bool)] > 1))
    classes = random.sample(range(len(totals)), len(totals))
    same(shrunk.estimate(loss, counts[:, classes]), shrunk.estimate(loss, counts))


@pytest.mark.parametrize("loss", LOSSES)
def test_one_value_only_is_no_column(loss):
    # Shares of one value shrunk to themselves; only the 1/K of the prior differs.
    result = shrunk.estimate(loss, np.array([[40, 60]]))
    assert result.score == pytest.approx(result.no_column, abs=1e-3)
    assert result.skill == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_perfect_column_has_skill_near_one(loss):
    result = shrunk.estimate(loss, np.array([[500, 0], [0, 500]]))
    assert result.skill > 0.99
    assert result.share_wrong == 0
    assert result.strength == 0.5 or loss == "error"


@pytest.mark.parametrize("loss", LOSSES)
def test_one_class_costs_nothing(loss):
    result = shrunk.estimate(loss, np.array([[4], [1], [3]]))
    assert result.score == pytest.approx(0, abs=1e-15)
    assert result.skill == 0


@pytest.mark.parametrize("loss", LOSSES)
def test_a_class_with_one_row_and_many_classes_have_finite_losses(loss):
    rng = np.random.default_rng(2)
    counts = rng.poisson(0.3, size=(400, 100))
    counts[:, 17] = 0
    counts[3, 17] = 1
    counts[:, 18] = 0
    result = shrunk.estimate(loss, counts, strengths=[0.5, 8.0])
    assert all(math.isfinite(x) for x in result[1:])
    assert result.n_units == counts.sum()


def test_twenty_million_rows_keep_the_digits_of_the_spread():
    # Two values, each class 10⁷ times but for one row in ten million: losses near 0 and near 16.
    counts = np.array([[10_000_000, 1], [1, 10_000_000]])
    result = shrunk.estimate("log_loss", counts, strengths=[0.5])
    N = 20_000_002
    exact = []
    for c, n in ((10_000_000, 10_000_001), (1, 10_000_001)):
        left = (Fraction(10_000_000) + Fraction(1, 2)) / N
        exact.append(-math.log((c - 1 + Fraction(1, 2) * left) / (n - 1 + Fraction(1, 2))))
    mean = (exact[0] * 10_000_000 + exact[1]) * 2 / N
    squares = 2 * (10_000_000 * (exact[0] - mean) ** 2 + (exact[1] - mean) ** 2)
    assert result.score == pytest.approx(mean, rel=1e-9)
    assert result.row_error == pytest.approx(math.sqrt(squares / N / (N - 1)), rel=1e-9)


def test_the_spread_of_equal_losses_is_zero_at_twenty_million_rows():
    # An even coin: every row has the same loss, and the estimate errs by about 1/N.
    result = shrunk.estimate("log_loss", np.array([[10_000_000, 10_000_000]]))
    assert result.row_error < 1e-15
    assert result.standard_error == pytest.approx(1 / 20_000_000, rel=0.5)


def test_one_group_has_no_standard_error():
    met = meet(np.array([0, 1]), np.array([0, 0]), np.array([[1, 0], [0, 1]]))
    assert math.isnan(grouped.estimate_groups("log_loss", met).standard_error)


def test_pairs_of_large_groups_do_not_overflow():
    # Two groups of 65,536 and 65,535 rows, of one class each: the lead, 1, is below their swing.
    counts = np.array([[65_536, 0], [0, 65_535]], dtype=np.int32)
    value, leaders = np.array([0, 0]), np.array([[0, 1]])
    found = group_pairs.tie_pairs_sum(value, counts, leaders, np.array([1.0]), shared=False)
    assert found.tolist() == [131_071.0**2 / 8]


def test_without_a_column_equally_frequent_classes_are_wrong_as_often_as_guessed():
    # Left out, every row (or group) would be of the rarer class, and all of them wrong.
    counts = np.array([[50, 50, 50]])
    for loss in ("log_loss", "error"):
        estimate = shrunk.estimate(loss, counts)
        assert estimate.no_column_wrong == pytest.approx(2 / 3)
        assert estimate.wrong == pytest.approx(2 / 3)
        met = meet(np.zeros(150, int), np.arange(150) // 10, one_hot(np.arange(150) // 50, 3))
        by_groups = grouped.estimate_groups(loss, met)
        assert by_groups.no_column_wrong == pytest.approx(2 / 3)
        assert by_groups.wrong == pytest.approx(2 / 3)
    assert estimate.score == estimate.no_column == pytest.approx(2 / 3)


def test_of_balanced_classes_noise_has_no_skill_by_the_share_wrong():
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([0, 1], 500))
    skills = []
    for _ in range(40):
        v = rng.integers(0, 6, 1000)
        skills.append(shrunk.estimate("error", table(v, y, 6, 2)).skill)
        met = meet(v, np.arange(1000) // 20, one_hot(y, 2))
        skills.append(grouped.estimate_groups("error", met).skill)
    assert abs(np.mean(skills)) < 0.03


def test_of_balanced_classes_no_column_is_wrong_for_half_of_the_rows_of_new_groups():
    rng = np.random.default_rng(1)
    y = rng.permutation(np.repeat([0, 1], 500))
    v = np.where(rng.random(1000) < 0.1, y, rng.integers(0, 2, 1000))
    for n_groups in (20, 50, 200):
        met = meet(v, np.arange(1000) % n_groups, one_hot(y, 2))
        estimate = grouped.estimate_groups("log_loss", met)
        assert (estimate.is_tied, estimate.no_column_wrong) == (True, 0.5)
        assert estimate.wrong <= 0.5


def test_of_tied_classes_a_weak_column_is_not_told_wrong_more_often_than_none():
    # 29 rows of each class: left out, all rows seem wrong at a strength of 256.
    estimate = shrunk.estimate("log_loss", np.array([[11, 9], [13, 18], [5, 2]]))
    assert estimate.gain > 0
    assert (estimate.share_wrong, estimate.wrong) == (1, 0.5)
    clear = shrunk.estimate("log_loss", np.array([[25, 4], [4, 25]]))
    assert clear.wrong == clear.share_wrong == pytest.approx(8 / 58)


def test_a_value_whose_classes_tie_is_not_told_wrong_for_all_of_its_rows():
    # One of three kinds, known from a mark of another: left out, a row of the value whose classes
    # tie always finds its own class in the minority.
    counts = np.array([[30, 30], [30, 0]])
    estimate = shrunk.estimate("log_loss", counts)
    assert estimate.gain > 0
    assert estimate.share_wrong == pytest.approx(2 / 3)
    assert estimate.wrong == pytest.approx(1 / 3, abs=0.001)
    group = np.arange(90) // 2
    met = meet(np.repeat([0, 0, 1], 30), group, one_hot(np.repeat([0, 1, 0], 30), 2))
    estimate = grouped.estimate_groups("log_loss", met)
    assert estimate.gain > 0
    assert estimate.share_wrong == pytest.approx(2 / 3)
    assert estimate.wrong == pytest.approx(1 / 3, abs=0.01)


def test_the_share_wrong_that_is_told_is_nearer_to_that_of_new_rows():
    rng = np.random.default_rng(0)
    told, left_out, met = [], [], []
    for _ in range(300):
        n = rng.binomial(200, 0.6)
        counts = np.array([rng.multinomial(n, [0.5, 0.5]), rng.multinomial(200 - n, [0.75, 0.25])])
        estimate = shrunk.estimate("log_loss", counts)
        told.append(estimate.wrong)
        left_out.append(estimate.share_wrong)
        first = shrunk.likeliest(counts, counts.sum(axis=0), estimate.strength)[1] == 0
        met.append(0.3 + 0.4 * (0.25 if first else 0.75))
    off, off_left_out = np.subtract(told, met), np.subtract(left_out, met)
    assert np.sqrt(np.mean(off**2)) < 0.6 * np.sqrt(np.mean(off_left_out**2))
    assert abs(np.mean(off)) < 0.03
