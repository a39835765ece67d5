"""Trees by the left-out loss of the shrunk predictor: by definition, two routes, invariance."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdtrue.categories.forest import Bags, Calibration, calibrated, tempered
from holdtrue.categories.grow import MOST_CUTS, FeatureDraws, cuts_between, grow_tree
from holdtrue.categories.tree import (
    CRITERIA,
    Sample,
    leaf_terms,
    least_estimate,
    node_means,
    node_probabilities,
    staged_scores,
    staged_train_losses,
)

SHRUNK = ["log_loss", "squared_error"]
every_loss = pytest.mark.parametrize("criterion", SHRUNK)


def random_sample(criterion, seed, n_rows=60, n_columns=4, n_values=5, weights=False):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_values, (n_rows, n_columns))
    signal = codes[:, 0] + codes[:, 1]
    weight = rng.integers(1, 4, n_rows) if weights else np.ones(n_rows, dtype=np.int64)
    if criterion == "squared_error":
        y = (signal % 3) + rng.normal(size=n_rows)
        return numbers(codes, y - np.average(y, weights=weight), weight)
    label = np.where(rng.random(n_rows) < 0.6, signal % 3, rng.integers(0, 3, n_rows))
    label[:3] = np.arange(3)
    return Sample.from_codes(codes, label, weight)


def numbers(codes, y, weight=None):
    sample = Sample.from_codes(codes, np.zeros(len(codes), dtype=np.int64), weight)
    return sample._replace(label=np.asarray(y, dtype=np.float64), n_classes=0)


def in_two(sample):
    """The sample with all columns but the last cut in two; the first has a cell for missing."""
    n_bins = np.diff(sample.offsets)
    n_bins[0] -= 1
    n_bins[-1] = 0
    return sample._replace(n_bins=n_bins)


def same(a, b):
    """Whether two trees are the same, split by split."""
    names = ("node", "column", "is_cut", "born", "cell")
    return (
        a.stopped == b.stopped
        and a.withheld == b.withheld
        and all(np.array_equal(getattr(a, name), getattr(b, name)) for name in names)
        and np.allclose(a.counts, b.counts, rtol=1e-12, atol=1e-12)
    )


# --- the definition: delete the row, refit everything, predict ---


def predict_without(sample, ways, i):
    """Prediction for row i of predictors fitted without it: shares, or a mean, down its path.

    ``ways[row]`` is the path of a row: the values it takes at each split, from the root on.
    """
    others = [r for r in range(len(ways)) if r != i]
    numeric = not sample.n_classes
    if numeric:
        above = np.mean([sample.label[r] for r in others])
    else:
        n_classes = sample.n_classes
        counts = np.bincount(sample.label[others], minlength=n_classes)
        above = (counts + 1 / n_classes) / (len(others) + 1)
    for depth in range(1, len(ways[i]) + 1):
        inside = [r for r in others if ways[r][:depth] == ways[i][:depth]]
        if numeric:
            above = (sample.label[inside].sum() + above) / (len(inside) + 1)
        else:
            counts = np.bincount(sample.label[inside], minlength=sample.n_classes)
            above = (counts + above) / (len(inside) + 1)
    return above


def loss_by_definition(sample, ways):
    """Mean left-out loss of the leaves that these paths lead to."""
    losses = []
    for i, label in enumerate(sample.label):
        predicted = predict_without(sample, ways, i)
        losses.append(-np.log(predicted[label]) if sample.n_classes else (label - predicted) ** 2)
    return np.mean(losses)


def split_ways(sample, ways, leaf, column, cut):
    """Paths after the split of a leaf, itself a path: by value, or at a cut."""
    cells = sample.cells[:, column].astype(int).tolist()
    if cut is not None:
        end = sample.offsets[column] + sample.n_bins[column]
        cells = ["missing" if cell >= end else cell <= cut for cell in cells]
    return [(*way, (column, str(cells[i]))) if way == leaf else way for i, way in enumerate(ways)]


def all_cuts(sample, column):
    first, n_bins = sample.offsets[column], sample.n_bins[column]
    return range(first, first + n_bins) if n_bins else [None]


def mixed(sample, ways, leaf):
    return len({sample.label[i] for i, way in enumerate(ways) if way == leaf}) > 1


def eager_splits(sample, n_splits):
    """Losses after each of the best splits: all of them tried, all rows deleted in turn."""
    ways, chosen = [()] * len(sample.label), []
    for _ in range(n_splits):
        options = []
        for leaf in sorted(set(ways)):
            if not mixed(sample, ways, leaf):
                continue
            for column in range(sample.cells.shape[1]):
                for cut in all_cuts(sample, column):
                    new = split_ways(sample, ways, leaf, column, cut)
                    if len({w for w in new if w[: len(leaf)] == leaf}) > 1:
                        loss = round(loss_by_definition(sample, new), 10)
                        options.append((loss, leaf, column, cut))
        if not options:
            break
        loss, leaf, column, cut = min(options)
        ways = split_ways(sample, ways, leaf, column, cut)
        chosen.append(loss)
    return chosen


@every_loss
@settings(max_examples=10)
@given(st.integers(0, 10_000), st.booleans())
def test_the_tree_is_the_one_that_deleting_rows_and_refitting_grows(criterion, seed, cuts):
    sample = random_sample(criterion, seed, n_rows=16, n_columns=3, n_values=5 if cuts else 3)
    sample = in_two(sample) if cuts else sample
    tree = grow_tree(sample, criterion, max_splits=3, compiled=False)
    scores = staged_scores(tree, criterion)
    np.testing.assert_allclose(scores[1:], eager_splits(sample, 3), atol=1e-8)
    assert scores[0] == pytest.approx(loss_by_definition(sample, [()] * 16), abs=1e-8)


@every_loss
@settings(max_examples=15)
@given(st.integers(0, 10_000), st.booleans())
def test_scores_are_the_losses_of_rows_left_out_of_every_ancestor(criterion, seed, weights):
    sample = random_sample(criterion, seed, n_rows=20, weights=weights)
    sample = in_two(sample) if seed % 2 else sample
    tree = grow_tree(sample, criterion, max_splits=6, compiled=False)
    rows = np.repeat(np.arange(20), sample.weight)
    longer = sample._replace(cells=sample.cells[rows], label=sample.label[rows])
    scores = staged_scores(tree, criterion)
    for n_splits in range(tree.n_splits + 1):
        cut = tree.cut(n_splits)
        ways = []
        for node in cut.apply(longer.cells).tolist():
            way = ()
            while node:
                way, node = (node, *way), int(cut.parent[node])
            ways.append(way)
        assert scores[n_splits] == pytest.approx(loss_by_definition(longer, ways), abs=1e-8)


@every_loss
def test_train_losses_are_those_of_the_predictions(criterion):
    sample = random_sample(criterion, 0)
    tree = grow_tree(sample, criterion, max_splits=5)
    losses = staged_train_losses(tree)
    for n_splits in (0, 2, 5):
        node = tree.cut(n_splits).apply(sample.cells)
        if criterion == "log_loss":
            shares = node_probabilities(tree, "uniform")[node, sample.label]
            expected = -np.log(shares).mean()
        else:
            expected = np.square(sample.label - node_means(tree)[node]).mean()
        assert losses[n_splits] == pytest.approx(expected)
    assert losses[-1] < staged_scores(tree, criterion)[-1]


def test_two_children_by_hand():
    # Values a: 1 3 2, b: 0 0, centred at 1.2. Left out of the root the rows of a are predicted
    # (6 - y)/4; in a, ((6 - y) + (6 - y)/4)/3 for y = 1, 3, 2 of sum 6.
    y = np.array([1.0, 3.0, 2.0, 0.0, 0.0])
    sample = numbers(np.array([[0], [0], [0], [1], [1]]), y - 1.2)
    tree = grow_tree(sample, "squared_error", max_splits=1)
    predicted = [
        (5 + 5 / 4) / 3, (3 + 3 / 4) / 3, (4 + 4 / 4) / 3, (0 + 6 / 4) / 2, (0 + 6 / 4) / 2,
    ]  # fmt: skip
    expected = np.square(y - predicted).mean()
    assert staged_scores(tree, "squared_error")[1] == pytest.approx(expected)
    # Shrunk means: root 1.2, (6 + 1.2)/4 and (0 + 1.2)/3.
    np.testing.assert_allclose(node_means(tree) + 1.2, [1.2, 1.8, 0.4])


# --- two routes ---


@every_loss
def test_the_compiled_route_grows_the_same_tree(criterion):
    for seed in range(15):
        sample = random_sample(criterion, seed, n_values=2 + 3 * seed, weights=seed % 2 == 1)
        sample = in_two(sample) if seed % 3 else sample
        for limits in (
            {},
            {"max_splits": 9},
            {"max_depth": 2, "min_samples_split": 5, "max_splits": 99},
        ):
            a = grow_tree(sample, criterion, compiled=False, **limits)
            b = grow_tree(sample, criterion, compiled=True, **limits)
            assert same(a, b)
            rows = np.arange(0, 60, 7)
            for tree in (a, b):
                ends = tree.apply(sample.cells)
                np.testing.assert_array_equal(tree.apply(sample.cells, compiled=True), ends)
                np.testing.assert_array_equal(
                    tree.apply(sample.cells, rows, compiled=True), ends[rows]
                )


@pytest.mark.parametrize("criterion", [name for name in CRITERIA if name != "gain_ratio"])
@pytest.mark.parametrize("limits", [{}, {"max_depth": 2}, {"min_samples_split": 9}], ids=str)
def test_a_forests_tree_is_the_same_by_both_routes(criterion, limits):
    for seed in range(10):
        sample = random_sample(criterion, seed, n_values=2 + 4 * seed, weights=seed % 2 == 1)
        weight = sample.weight.copy()
        weight[::5] = 0
        sample = sample._replace(weight=weight)
        sample = in_two(sample) if seed % 3 else sample
        feature = np.array([0, 0, 1, 2])
        a, b = (
            grow_tree(
                sample, criterion, draws=FeatureDraws(feature, 2, seed), compiled=route, **limits
            )
            for route in (False, True)
        )
        assert same(a, b)
        assert a.n_splits > 0 or criterion in ("ginger", "majority", *SHRUNK)


@pytest.mark.parametrize("criterion", ["gini", "information_gain"])
def test_leaves_split_in_their_order_make_the_tree_of_the_best_splits(criterion):
    sample = random_sample(criterion, 3)
    everything = FeatureDraws(np.arange(4), 4, 0)
    in_order = grow_tree(sample, criterion, draws=everything)
    best_first = grow_tree(sample, criterion)
    assert staged_scores(in_order, criterion)[-1] == pytest.approx(
        staged_scores(best_first, criterion)[-1], abs=1e-12
    )
    leaves = [tree.apply(sample.cells) for tree in (in_order, best_first)]
    assert len(set(zip(*leaves, strict=True))) == len(set(leaves[0])) == len(set(leaves[1]))


def test_features_are_drawn_evenly_and_whole():
    draws = FeatureDraws(np.array([0, 0, 1, 2, 2, 2]), 1, 7, again=True)
    sets = {(0, 1): 0, (2,): 0, (3, 4, 5): 0}
    for _ in range(3000):
        batches = [tuple(columns.tolist()) for columns, _ in draws.batches()]
        assert sorted(batches) == sorted(sets)
        sets[batches[0]] += 1
    assert min(sets.values()) > 900
    batches = FeatureDraws(np.arange(5), 2, 0, again=True).batches()
    assert [len(columns) for columns, _ in batches] == [2, 2, 1]
    assert [len(columns) for columns, _ in FeatureDraws(np.arange(5), 2, 0).batches()] == [2]


def test_first_cuts_are_drawn_evenly():
    draws = FeatureDraws(np.arange(3), 2, 0)
    begin = np.array([begin for _ in range(3000) for _, begin in draws.batches()]) / 2**16
    assert begin.min() >= 0
    assert begin.max() < 1
    np.testing.assert_allclose(np.quantile(begin, [0.25, 0.5, 0.75]), [0.25, 0.5, 0.75], atol=0.03)


@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 2**16 - 1))
def test_cuts_lie_evenly_between_the_bins_of_a_leaf(low, length, begin):
    cuts = cuts_between(low, low + length, begin)
    assert len(cuts) == length if length <= MOST_CUTS else MOST_CUTS // 2 <= len(cuts) <= MOST_CUTS
    assert len(set(np.diff(cuts))) <= 1
    if length:
        step = cuts[1] - cuts[0] if length > 1 else 1
        assert low <= cuts[0] < low + step
        assert low + length - step <= cuts[-1] < low + length


def test_further_features_are_tried_where_those_drawn_gain_nothing():
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, 2, 400), *(np.arange(400) for _ in range(9))])
    sample = Sample.from_codes(codes, codes[:, 0])
    for seed, compiled in ((0, False), (1, True)):
        draws = FeatureDraws(np.arange(10), 1, seed, again=True)
        assert grow_tree(sample, "log_loss", draws=draws, compiled=compiled).column.tolist() == [0]


# --- invariance ---


@every_loss
def test_weights_are_repetitions_and_rows_may_be_permuted(criterion):
    sample = in_two(random_sample(criterion, 3, n_values=40, weights=True))
    rows = np.repeat(np.arange(60), sample.weight)
    rows = np.random.default_rng(0).permutation(rows)
    longer = sample._replace(
        cells=sample.cells[rows], label=sample.label[rows], weight=np.ones(len(rows), np.int64)
    )
    for limits in ({}, {"max_splits": 12}):
        a, b = (grow_tree(rows_, criterion, **limits) for rows_ in (sample, longer))
        assert same(a, b)


def test_a_shifted_and_scaled_target_gives_the_same_splits():
    sample = random_sample("squared_error", 5)
    other = sample._replace(label=1e-3 * sample.label + 7e-4)
    a, b = (grow_tree(each, "squared_error", max_splits=9) for each in (sample, other))
    assert a.node.tolist() == b.node.tolist()
    assert a.column.tolist() == b.column.tolist()


# --- what it is for ---


@every_loss
def test_an_id_gains_nothing(criterion):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        codes = np.arange(3000)[:, None]
        if criterion == "log_loss":
            sample = Sample.from_codes(codes, rng.integers(0, 3, 3000))
        else:
            sample = numbers(codes, rng.normal(size=3000))
        assert grow_tree(sample, criterion, compiled=False).n_splits == 0
        draws = FeatureDraws(np.array([0]), 1, 0)
        assert grow_tree(sample, criterion, draws=draws, compiled=seed % 2 == 1).n_splits == 0
        tree = grow_tree(sample, criterion, max_splits=1, compiled=False)
        assert np.ptp(staged_scores(tree, criterion)) < 1e-9
        assert least_estimate(tree) == 0


@every_loss
def test_on_noise_the_best_of_many_columns_is_not_believed(criterion):
    n_splits = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        codes = rng.integers(0, 30, (1000, 20))
        if criterion == "log_loss":
            sample = Sample.from_codes(codes, rng.integers(0, 2, 1000))
        else:
            sample = numbers(codes, rng.normal(size=1000))
        n_splits.append(grow_tree(sample, criterion, compiled=False).n_splits)
    assert np.mean(np.array(n_splits) == 0) >= 0.8
    assert max(n_splits) < 10


@every_loss
def test_the_standard_error_is_that_of_simulated_noise_or_a_little_more(criterion):
    rng = np.random.default_rng(0)
    child, weight = np.arange(400) % 40, np.ones(400)
    results = []
    for _ in range(300):
        if criterion == "log_loss":
            label = rng.integers(0, 2, 400)
            root = np.bincount(label, minlength=2).astype(float)
        else:
            label = rng.normal(size=400)
            root = np.array([400, label.sum(), (label**2).sum()])
        terms = leaf_terms(criterion, root)
        results.append(terms.gain(child, label, weight, terms.root(root)[1]))
    gain, standard_error = np.array(results).T
    assert 1 < np.mean(standard_error) / np.std(gain) < 1.5


def test_trees_grow_on_a_rare_class_of_values_seen_once():
    # A third of the rows have a value of their own; ginger charges each ½, far above 3 %.
    rng = np.random.default_rng(0)
    value = np.where(rng.random(3000) < 0.33, np.arange(3000) + 10, rng.integers(0, 10, 3000))
    label = (rng.random(3000) < np.where(value == 0, 0.3, 0.01)).astype(np.int64)
    sample = Sample.from_codes(value[:, None], label)
    assert grow_tree(sample, "ginger", compiled=False).n_splits == 0
    assert grow_tree(sample, "log_loss", compiled=False).n_splits == 1


# --- groups ---


def group_loss_by_definition(sample, ways, group):
    """Mean loss of rows predicted by leaves fitted without the row's whole group."""
    losses = []
    for i, label in enumerate(sample.label):
        rows = np.flatnonzero((group != group[i]) | (np.arange(len(group)) == i))
        part = sample._replace(label=sample.label[rows])
        place = int(np.flatnonzero(rows == i)[0])
        predicted = predict_without(part, [ways[r] for r in rows], place)
        losses.append(-np.log(predicted[label]) if sample.n_classes else (label - predicted) ** 2)
    return np.mean(losses)


@every_loss
@settings(max_examples=10)
@given(st.integers(0, 10_000), st.booleans())
def test_with_groups_scores_are_those_of_deleted_groups(criterion, seed, compiled):
    sample = random_sample(criterion, seed, n_rows=24)
    sample = in_two(sample) if seed % 2 else sample
    group = np.random.default_rng(seed).integers(0, 6, 24)
    tree = grow_tree(sample, criterion, group=group, max_splits=5, compiled=compiled)
    scores = staged_scores(tree, criterion)
    for n_splits in range(tree.n_splits + 1):
        cut = tree.cut(n_splits)
        ways = []
        for node in cut.apply(sample.cells).tolist():
            way = ()
            while node:
                way, node = (node, *way), int(cut.parent[node])
            ways.append(way)
        expected = group_loss_by_definition(sample, ways, group)
        assert scores[n_splits] == pytest.approx(expected, abs=1e-8)


@every_loss
def test_a_group_per_row_is_no_groups_and_both_routes_agree(criterion):
    for seed in range(5):
        sample = random_sample(criterion, seed)
        sample = in_two(sample) if seed % 2 else sample
        rows = np.random.default_rng(seed).permutation(60)
        for max_splits in (None, 9):  # None: growing stops by the standard error of the gain
            plain = grow_tree(sample, criterion, max_splits=max_splits)
            alone = grow_tree(sample, criterion, group=rows, max_splits=max_splits)
            assert plain.column.tolist() == alone.column.tolist()
        np.testing.assert_allclose(
            staged_scores(alone, criterion), staged_scores(plain, criterion), atol=1e-8
        )
        for draws in (None, 2):
            a, b = (
                grow_tree(
                    sample, criterion, group=rows // 4, compiled=compiled,
                    draws=draws and FeatureDraws(np.arange(4), draws, seed),
                )
                for compiled in (False, True)
            )  # fmt: skip
            assert same(a, b)


@every_loss
def test_a_column_that_names_the_group_gains_nothing(criterion):
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(50), 8)
    effect = rng.normal(size=50)[group]
    label = (effect > 0).astype(int) if criterion == "log_loss" else effect
    codes = group[:, None]
    sample = Sample.from_codes(codes, label) if criterion == "log_loss" else numbers(codes, label)
    assert grow_tree(sample, criterion).n_splits == 1
    assert grow_tree(sample, criterion, group=group).n_splits == 0


# --- bags and temperature ---


@settings(max_examples=20)
@given(st.integers(0, 10_000))
def test_bags_do_not_depend_on_how_rows_are_stored(seed):
    rng = np.random.default_rng(seed)
    codes, weight = rng.integers(0, 2, (40, 3)), rng.integers(1, 4, 40)
    label, group = rng.integers(0, 2, 40), rng.integers(0, 6, 40)
    sample = Sample.from_codes(codes, label, weight)
    rows = rng.permutation(np.repeat(np.arange(40), weight))
    longer = sample._replace(
        cells=sample.cells[rows], label=sample.label[rows], weight=np.ones(len(rows), np.int64)
    )
    for groups, longer_groups in ((None, None), (group, group[rows])):
        a, b = Bags.from_sample(sample, groups), Bags.from_sample(longer, longer_groups)
        for part, other in zip(a.sample, b.sample, strict=True):
            np.testing.assert_array_equal(part, other)
        assert a.sample.weight.sum() == weight.sum()
        drawn = a.draw(np.random.default_rng(1))
        np.testing.assert_array_equal(drawn, b.draw(np.random.default_rng(1)))
        assert ((drawn >= 0) & (drawn <= a.sample.weight)).all()
        if groups is not None:
            for g in np.unique(a.group):
                inside = drawn[a.group == g]
                assert (inside == 0).all() or (inside == a.sample.weight[a.group == g]).all()


def test_the_calibration_undoes_a_known_stretch_and_shift():
    rng = np.random.default_rng(0)
    prior, shifted = np.array([0.7, 0.2, 0.1]), np.array([0.6, 0.2, 0.2])
    true = rng.dirichlet(4 * prior, 20_000).clip(1e-3)
    true /= true.sum(axis=1, keepdims=True)
    label = (rng.random(20_000)[:, None] > np.cumsum(true, axis=1)).sum(axis=1)
    dull = tempered(true, shifted, Calibration(2.5, prior))
    found = calibrated(dull, prior, label, np.ones(20_000))
    assert found.temperature == pytest.approx(1 / 2.5, rel=0.05)
    np.testing.assert_allclose(found.anchor, shifted, rtol=0.1)
    back = tempered(dull, prior, Calibration(1 / 2.5, shifted))
    np.testing.assert_allclose(back, true, rtol=1e-9)
    nothing = calibrated(dull[:0], prior, label[:0], np.ones(0))
    assert nothing.temperature == pytest.approx(0.5)  # a forest is usually too timid
    np.testing.assert_allclose(nothing.anchor, prior)
    # Three rows, all of them right, do not make certain.
    sure = calibrated(np.full((3, 2), [0.9, 0.1]), np.full(2, 0.5), np.zeros(3, int), np.ones(3))
    assert 0.4 < sure.temperature < 1
    assert 0.5 < sure.anchor[0] < 0.9


def test_the_calibration_has_the_least_penalised_log_loss():
    rng = np.random.default_rng(1)
    prior = np.array([0.5, 0.3, 0.2])
    shares = rng.dirichlet(5 * prior, 60).clip(1e-3)
    label, weight = rng.integers(0, 3, 60), rng.integers(1, 4, 60)

    def loss(temperature, anchor):
        p = tempered(shares, prior, Calibration(temperature, anchor))
        shift = np.log(anchor / prior)
        shift -= shift.mean()  # of all shifts that give this anchor the one of least penalty
        away = np.log(2 * temperature) * (2 if temperature > 0.5 else 1)
        penalty = (away**2 + shift @ shift) / 2
        return penalty - weight @ np.log(p[np.arange(60), label] / p.sum(axis=1))

    best = calibrated(shares, prior, label, weight)
    for _ in range(200):
        anchor = best.anchor * np.exp(0.05 * rng.normal(size=3))
        other = loss(best.temperature * np.exp(0.05 * rng.normal()), anchor / anchor.sum())
        assert other >= loss(*best) - 1e-6
