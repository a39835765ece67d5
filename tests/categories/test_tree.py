"""Trees on integer codes: by hand, by brute force, by two routes, by invariance."""

import os
import shutil
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdtrue
from holdtrue.categories import grow
from holdtrue.categories.grow import grow_tree
from holdtrue.categories.kernel import TERMS, ginger_gain
from holdtrue.categories.tree import (
    NO_STATE,
    CountTerms,
    Sample,
    least_estimate,
    staged_scores,
)

SRC = Path(holdtrue.__file__).parent
every_criterion = pytest.mark.parametrize("criterion", TERMS)


def random_sample(seed, n_rows=60, n_columns=4, n_values=5, n_classes=2, weights=False):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, n_values, (n_rows, n_columns))
    label = rng.integers(0, n_classes, n_rows)
    informed = rng.random(n_rows) < 0.5
    label[informed] = (codes[informed, 0] + codes[informed, 1]) % n_classes
    label[:n_classes] = np.arange(n_classes)
    weight = rng.integers(1, 4, n_rows) if weights else None
    return Sample.from_codes(codes, label, weight)


def same(a, b):
    """Whether two trees are the same, split by split."""
    names = ("node", "column", "born", "cell", "counts")
    return a.stopped == b.stopped and all(
        np.array_equal(getattr(a, name), getattr(b, name)) for name in names
    )


# --- criteria by their definitions, slow and obvious ---


def score_by_definition(criterion, leaves, labels, n_classes):
    """Criterion of the column `leaves`, one row at a time; rows are repeated, not weighted."""
    m = len(leaves)
    inside = {v: [y for u, y in zip(leaves, labels, strict=True) if u == v] for v in set(leaves)}
    if criterion in ("ginger", "majority"):
        lost = 0.0
        for v, y in zip(leaves, labels, strict=True):
            others = Counter(inside[v])
            others[y] -= 1
            n = sum(others.values())
            if n == 0:
                lost += 1 - 1 / n_classes
            elif criterion == "ginger":  # a label drawn from the others
                lost += 1 - others[y] / n
            else:
                most = max(others.values())
                tied = [k for k in others if others[k] == most]
                lost += 1 - 1 / len(tied) if y in tied else 1
        return lost / m
    rates = {v: np.array(list(Counter(ys).values())) / len(ys) for v, ys in inside.items()}
    share = {v: len(ys) / m for v, ys in inside.items()}
    if criterion == "gini":
        return sum(share[v] * (1 - np.sum(q**2)) for v, q in rates.items())
    if criterion == "misclassification":
        return sum(share[v] * (1 - q.max()) for v, q in rates.items())
    left = sum(share[v] * -np.sum(q * np.log2(q)) for v, q in rates.items())
    if criterion == "information_gain":
        return left
    everything = np.array(list(Counter(labels).values())) / m
    gain = -np.sum(everything * np.log2(everything)) - left
    entropy = -sum(p * np.log2(p) for p in share.values())
    return 1 - gain / entropy if entropy > 0 else 1.0


def repeated(sample):
    return np.repeat(np.arange(len(sample.label)), sample.weight)


@every_criterion
@settings(max_examples=25)
@given(st.integers(0, 10_000), st.integers(2, 4), st.booleans())
def test_scores_are_the_criterion_of_the_leaves(criterion, seed, n_classes, weights):
    sample = random_sample(seed, n_rows=25, n_classes=n_classes, weights=weights)
    if seed % 2:  # cut in two, the last cell of each column missing
        sample = sample._replace(n_bins=np.diff(sample.offsets) - 1)
    tree = grow_tree(sample, criterion, max_splits=6, compiled=False)
    scores = staged_scores(tree, criterion)
    rows = repeated(sample)
    for n_splits in range(tree.n_splits + 1):
        ends = tree.cut(n_splits).apply(sample.cells)[rows].tolist()
        expected = score_by_definition(criterion, ends, sample.label[rows].tolist(), n_classes)
        assert scores[n_splits] == pytest.approx(expected, abs=1e-9)


def test_three_leaves_by_hand():
    # Leaves (2, 1), (1, 0), (3, 3) of two classes.
    # ginger: 2·2·1/2 = 2, a leaf of one row 1/2, 2·3·3/5 = 3.6.
    # majority: leaving out one of the 2 leaves 1 against 1, a tie: 2·1/2 + 1 = 2; 1/2; of 3
    # against 3 either row left out loses: 6.
    counts = np.array([[2, 1], [1, 0], [3, 3]])
    for criterion, expected in {
        "ginger": [2, 0.5, 3.6],
        "gini": [4 / 3, 0, 3],
        "majority": [2, 0.5, 6],
        "misclassification": [1, 0, 3],
        "information_gain": [3 * np.log2(3) - 2, 0, 6],
    }.items():
        terms = CountTerms(criterion, 2, 10)
        found = terms.terms(counts, NO_STATE) / terms.scale
        np.testing.assert_allclose(found, expected, atol=1e-9)


# --- the whole search, eager and in plain floats ---


def eager_splits(sample, criterion, n_splits):
    """Splits by the definition: of all leaves and columns the one whose tree scores best."""
    codes, labels, n_classes = sample.cells.tolist(), sample.label.tolist(), sample.n_classes
    leaf, n_nodes, found = [0] * len(codes), 1, []
    for _ in range(n_splits):
        options = []
        for node in sorted(set(leaf)):
            own = [i for i, v in enumerate(leaf) if v == node]
            if len({labels[i] for i in own}) == 1:
                continue
            for j in range(len(codes[0])):
                if len({codes[i][j] for i in own}) > 1:
                    new = [(v, codes[i][j] if v == node else -1) for i, v in enumerate(leaf)]
                    score = score_by_definition(criterion, new, labels, n_classes)
                    options.append((round(score, 9), node, j))
        if not options:
            break
        _, node, j = min(options)
        values = sorted({codes[i][j] for i, v in enumerate(leaf) if v == node})
        numbers = {value: n_nodes + k for k, value in enumerate(values)}
        n_nodes += len(values)
        leaf = [numbers[codes[i][j]] if v == node else v for i, v in enumerate(leaf)]
        found.append((node, j))
    return found


@every_criterion
@settings(max_examples=15)
@given(st.integers(0, 10_000), st.integers(2, 3))
def test_the_lazy_search_finds_what_the_eager_search_finds(criterion, seed, n_classes):
    sample = random_sample(seed, n_rows=20, n_columns=3, n_values=4, n_classes=n_classes)
    tree = grow_tree(sample, criterion, max_splits=5, compiled=False)
    found = list(zip(tree.node.tolist(), tree.column.tolist(), strict=True))
    assert found == eager_splits(sample, criterion, 5)


# --- two routes ---


@every_criterion
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_compiled_route_grows_the_same_tree(criterion, n_classes):
    for seed in range(15):
        sample = random_sample(seed, n_classes=n_classes, n_values=2 + seed, weights=seed % 2 == 1)
        for limits in (
            {},
            {"max_splits": 9},
            {"max_depth": 2, "min_samples_split": 5, "max_splits": 99},
        ):
            a = grow_tree(sample, criterion, compiled=False, **limits)
            assert same(a, grow_tree(sample, criterion, compiled=True, **limits))


@pytest.mark.parametrize("compiled", [False, True])
def test_columns_may_have_more_values_than_a_byte_or_two_hold(compiled):
    rng = np.random.default_rng(0)
    wide = rng.integers(0, 300, 4000)
    codes = np.column_stack([np.arange(4000) * 20, wide])
    label = (wide % 2) ^ (rng.random(4000) < 0.05)
    tree = grow_tree(Sample.from_codes(codes, label), compiled=compiled)
    assert tree.column[0] == 1
    assert len(tree.born) >= 300
    assert staged_scores(tree, "ginger")[-1] < 0.15


def test_compiled_loops_run_where_nothing_can_be_written(tmp_path):
    # Where a file bears a folder's name nobody can write into that folder, root included.
    package = tmp_path / "holdtrue"
    shutil.copytree(SRC, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "categories" / "__pycache__").touch()
    (tmp_path / "home").touch()
    code = """
        import numpy as np
        from holdtrue.categories import loops
        from holdtrue.categories.grow import grow_tree
        from holdtrue.categories.tree import Sample
        codes = np.array([[0], [0], [1], [1]])
        sample = Sample.from_codes(codes, codes[:, 0])
        # Loops are all compiled in one way; that of growing would take ten seconds more.
        ends = grow_tree(sample, compiled=False).apply(sample.cells, compiled=True)
        print(*ends, loops.__file__)
    """
    nowhere = str(tmp_path / "home")
    env = {**os.environ, "HOME": nowhere, "XDG_CACHE_HOME": nowhere, "LOCALAPPDATA": nowhere}
    env.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**env, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=1800,
    )
    expected = [*"1122", str(package / "categories" / "loops.py")]
    assert done.stdout.split() == expected, done.stderr


def test_small_data_never_wait_for_numba():
    code = """
        import sys, numpy as np
        from holdtrue.categories.grow import grow_tree
        from holdtrue.categories.tree import Sample
        codes = np.array([[0], [0], [1], [1]])
        grow_tree(Sample.from_codes(codes, codes[:, 0]))
        print("numba" in sys.modules)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=1800
    )
    assert done.stdout.strip() == "False", done.stderr


# --- invariance ---


@every_criterion
def test_weights_are_repetitions(criterion):
    sample = random_sample(3, weights=True)
    rows = repeated(sample)
    longer = Sample(
        sample.cells[rows], sample.offsets, sample.n_bins, sample.label[rows],
        np.ones(len(rows), np.int64), 2,
    )  # fmt: skip
    assert same(grow_tree(sample, criterion), grow_tree(longer, criterion))


@every_criterion
def test_permuted_rows_change_nothing(criterion):
    sample = random_sample(4)
    order = np.random.default_rng(0).permutation(len(sample.label))
    shuffled = sample._replace(cells=sample.cells[order], label=sample.label[order])
    assert same(grow_tree(sample, criterion), grow_tree(shuffled, criterion))


@pytest.mark.parametrize("criterion", [c for c in TERMS if c != "gain_ratio"])
def test_renamed_values_change_no_leaf(criterion):
    rng = np.random.default_rng(0)
    codes, label = rng.integers(0, 6, (80, 3)), rng.integers(0, 2, 80)
    renamed = np.column_stack([rng.permutation(6)[column] for column in codes.T])
    trees = [grow_tree(Sample.from_codes(c, label), criterion) for c in (codes, renamed)]
    scores = [staged_scores(tree, criterion)[-1] for tree in trees]
    assert scores[0] == scores[1]
    # Nodes are numbered by value, so only their order may differ.
    leaves = [
        trees[0].apply(Sample.from_codes(codes, label).cells),
        trees[1].apply(Sample.from_codes(renamed, label).cells),
    ]
    assert len(set(zip(*leaves, strict=True))) == len(set(leaves[0])) == len(set(leaves[1]))


def test_a_duplicated_column_is_never_used():
    sample = random_sample(5)
    codes = sample.cells - sample.offsets[:-1]
    twice = Sample.from_codes(np.hstack([codes, codes]), sample.label)
    tree = grow_tree(twice, "ginger", max_splits=10)
    assert tree.n_splits > 0
    assert (tree.column < codes.shape[1]).all()


def test_growing_leaves_the_sample_alone():
    sample = random_sample(6)
    before = [part.copy() for part in sample[:4]]
    for compiled in (False, True):
        grow_tree(sample, max_splits=20, compiled=compiled)
    for part, kept in zip(sample[:4], before, strict=True):
        np.testing.assert_array_equal(part, kept)


# --- stopping ---


@every_criterion
def test_growing_stops_when_no_split_lowers_the_estimate(criterion):
    for seed in range(5):
        sample = random_sample(seed)
        tree = grow_tree(sample, criterion)
        scores = staged_scores(tree, criterion)
        assert tree.stopped == "gain"
        assert (np.diff(scores) < 0).all()
        assert least_estimate(tree) == tree.n_splits
        further = grow_tree(sample, criterion, max_splits=10_000)
        assert further.stopped == "leaves"
        assert further.n_splits >= tree.n_splits


def test_limits_are_kept():
    sample = random_sample(0, n_rows=300)
    tree = grow_tree(sample, "gini", max_depth=2)
    assert tree.depth.max() == 2
    assert tree.withheld == tree.cut(1).withheld == ("max_depth",)
    tree = grow_tree(sample, "gini", min_samples_split=20)
    assert tree.counts[tree.node].sum(axis=1).min() >= 20
    assert tree.withheld == ("min_samples_split",)
    assert grow_tree(sample, "gini", max_depth=1, min_samples_split=60).withheld == (
        "max_depth",
        "min_samples_split",
    )
    assert grow_tree(sample, "gini", max_depth=99).withheld == ()
    tree = grow_tree(sample, "gini", max_splits=3)
    assert (tree.n_splits, tree.stopped) == (3, "max_splits")


@pytest.mark.parametrize("criterion", ["ginger", "majority"])
def test_on_noise_the_id_is_left_alone(criterion):
    for seed in range(20):
        label = np.random.default_rng(seed).integers(0, 2, 200)
        codes = np.column_stack([np.arange(200), np.arange(200) // 2])
        tree = grow_tree(Sample.from_codes(codes, label), criterion)
        assert 0 not in tree.column
        assert tree.n_splits <= 1


def test_a_balanced_leaf_is_charged_chance_when_growing_stops():
    # 2·5·5/9 = 5.56 of 10 rows: an id, charged 5, must not win.
    codes, label = np.arange(10)[:, None], np.arange(10) % 2
    assert grow_tree(Sample.from_codes(codes, label)).n_splits == 0
    tree = grow_tree(Sample.from_codes(codes, label), max_splits=1)
    assert staged_scores(tree, "ginger") == pytest.approx([5 / 9, 1 / 2])
    assert least_estimate(tree) == 0


def gain_by_definition(leaves, labels, n_classes):
    """Gain of a split and its standard error, one row at a time."""
    differences = []
    for i, label in enumerate(labels):
        others = [y for j, y in enumerate(labels) if j != i]
        inside = [y for j, y in enumerate(labels) if j != i and leaves[j] == leaves[i]]
        before = 1 - others.count(label) / len(others)
        after = 1 - inside.count(label) / len(inside) if inside else 1 - 1 / n_classes
        differences.append((before, before - after))
    before, d = np.array(differences).T
    above_chance = max(before.sum() - len(d) * (1 - 1 / n_classes), 0)
    return d.sum() - above_chance, np.sqrt(2 * np.sum((d - d.mean()) ** 2))


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(2, 4))
def test_the_gain_and_its_standard_error_are_those_of_the_rows(seed, n_classes):
    rng = np.random.default_rng(seed)
    leaves, labels = rng.integers(0, 5, 20), rng.integers(0, n_classes, 20)
    counts = np.zeros((5, n_classes), dtype=np.int64)
    np.add.at(counts, (leaves, labels), 1)
    found = ginger_gain(counts[counts.any(axis=1)])
    expected = gain_by_definition(leaves.tolist(), labels.tolist(), n_classes)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_the_standard_error_is_that_of_simulated_noise():
    rng = np.random.default_rng(0)
    leaves = np.arange(400) % 40
    found = []
    for _ in range(300):
        counts = np.zeros((40, 2), dtype=np.int64)
        np.add.at(counts, (leaves, rng.integers(0, 2, 400)), 1)
        found.append(ginger_gain(counts))
    gain, standard_error = np.array(found).T
    assert np.mean(standard_error) == pytest.approx(np.std(gain), rel=0.1)


@pytest.mark.parametrize("criterion", ["ginger", "majority"])
def test_on_noise_the_best_of_many_columns_is_not_believed(criterion):
    n_splits = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        sample = Sample.from_codes(rng.integers(0, 30, (1000, 20)), rng.integers(0, 2, 1000))
        n_splits.append(grow_tree(sample, criterion, compiled=False).n_splits)
    assert np.mean(np.array(n_splits) == 0) >= 0.8
    assert max(n_splits) < 10
    # Asked for, splits are explored all the same.
    assert grow_tree(sample, criterion, max_splits=20, compiled=False).n_splits == 20


@pytest.mark.parametrize("criterion", ["ginger", "majority"])
def test_an_interaction_is_found_among_columns_of_noise(criterion):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, (1000, 12))
    label = ((codes[:, 3] < 2) & (codes[:, 7] != 1)) ^ (rng.random(1000) < 0.1)
    tree = grow_tree(Sample.from_codes(codes, label.astype(int)), criterion)
    assert set(tree.column.tolist()) == {3, 7}


@pytest.mark.parametrize("criterion", ["ginger", "majority"])
def test_the_default_stop_is_the_same_by_both_routes_and_for_repeated_rows(criterion):
    rng = np.random.default_rng(0)
    codes, weight = rng.integers(0, 4, (500, 12)), rng.integers(1, 4, 500)
    label = ((codes[:, 3] < 2) ^ (rng.random(500) < 0.2)).astype(int)
    sample = Sample.from_codes(codes, label, weight)
    rows = np.repeat(np.arange(500), weight)
    tree = grow_tree(sample, criterion, compiled=False)
    assert tree.n_splits >= 1
    assert same(tree, grow_tree(sample, criterion, compiled=True))
    assert same(tree, grow_tree(Sample.from_codes(codes[rows], label[rows]), criterion))


def test_an_interrupted_tree_keeps_its_splits(monkeypatch):
    sample = random_sample(0, n_rows=300)
    whole = grow_tree(sample, "gini", compiled=False)
    calls = []

    def split(self, *args, original=grow.Leaves.split):
        calls.append(args)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return original(self, *args)

    monkeypatch.setattr(grow.Leaves, "split", split)
    tree = grow_tree(sample, "gini", compiled=False)
    assert tree.stopped == "interrupted"
    np.testing.assert_array_equal(tree.counts, whole.cut(3).counts)


# --- new rows ---


def test_rows_with_an_unseen_value_end_in_the_node_that_lacks_it():
    sample = random_sample(2)
    tree = grow_tree(sample, "gini", max_splits=6)
    unseen = np.full_like(sample.cells, sample.offsets[-1])
    assert (tree.apply(unseen) == 0).all()
    assert len(tree.apply(sample.cells[:0])) == 0
    leaves = tree.apply(sample.cells)
    assert (tree.split[leaves] == tree.n_splits).all()
    for leaf in np.unique(leaves):
        labels = sample.label[leaves == leaf]
        np.testing.assert_array_equal(np.bincount(labels, minlength=2), tree.counts[leaf])


def test_staged_changes_are_those_of_the_cut_trees():
    sample = random_sample(7, n_rows=200)
    tree = grow_tree(sample, "gini", max_splits=12)
    new = random_sample(8, n_rows=100)
    guess = tree.counts.argmax(axis=1)

    def loss(rows, nodes):
        return (guess[nodes] != new.label[rows]).astype(float)

    rows = np.arange(100)
    expected = [loss(rows, tree.cut(k).apply(new.cells)).sum() for k in range(tree.n_splits + 1)]
    np.testing.assert_array_equal(tree.staged_changes(new.cells, loss), np.diff(expected))


@pytest.mark.parametrize("n_classes", [2, 3, 5, 7])
def test_rounding_never_makes_an_id_worth_a_split(n_classes):
    codes, label = np.arange(35_000)[:, None], np.arange(35_000) % n_classes
    for criterion in ("ginger", "majority"):
        assert grow_tree(Sample.from_codes(codes, label), criterion, compiled=False).n_splits == 0
