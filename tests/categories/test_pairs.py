"""Columns that tell the same, and columns that add little to a better one."""

import numpy as np
import pandas as pd
import pytest

from holdtrue import rank_columns
from holdtrue.categories import pairs


def twins(ranking):
    evidence = ranking.path.evidence
    pairs = ((name, evidence.twin(j)) for j, name in enumerate(evidence.names))
    return {name: twin for name, twin in pairs if twin}


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    age, sex = rng.integers(18, 80, n), rng.choice(["f", "m"], n)
    school = rng.integers(0, 6, n)
    frame = pd.DataFrame(
        {
            "age": age,
            "age2": age.astype(float) ** 2,
            "school": np.array(["none", "low", "mid", "high", "top", "phd"])[school],
            "years": school * 3 + 4,
            "sex": sex,
        }
    )
    return frame, -3 + age / 30 + school / 3 + 0.8 * (sex == "f"), rng


@pytest.mark.parametrize("target", ["classes", "three classes", "number"])
@pytest.mark.parametrize("n", [400, 15_000])
def test_columns_that_hold_the_same_are_paired_and_others_are_not(n, target):
    frame, level, rng = table(n)
    y = level + rng.logistic(size=n)
    if target != "number":
        y = np.digitize(y, [0] if target == "classes" else [-1, 1]).astype(str)
    found = twins(rank_columns(frame, y))
    assert {tuple(sorted((name, twin[0]))) for name, twin in found.items()} == {
        ("age", "age2"),
        ("school", "years"),
    }
    assert all(is_same for _, is_same in found.values())


def test_a_coarser_column_adds_little_and_does_not_tell_the_same():
    frame, level, rng = table(5000)
    frame = pd.DataFrame({"age": frame["age"], "old": frame["age"] > 50})
    y = level - 1.5 + rng.logistic(size=5000) > 0
    assert twins(rank_columns(frame, y)) == {"old": ("age", False)}


def test_columns_whose_values_never_repeat_are_paired_by_their_order_alone():
    # Each value of one is then one value of any other.
    for seed in range(5):
        rng = np.random.default_rng(seed)
        a, b = rng.normal(size=(2, 400))
        y = a + 0.3 * b + 0.3 * rng.normal(size=400)
        frame = pd.DataFrame({"a": a, "b": b, "text": b.astype(str)})
        assert twins(rank_columns(frame, y)) == {}
    frame["cold a"] = np.exp(-a)
    a[:3] = frame.loc[:2, "cold a"] = np.nan
    pair = twins(rank_columns(frame.assign(a=a), y))
    assert {*pair, *(twin[0] for twin in pair.values())} == {"a", "cold a"}


def test_columns_that_work_together_are_not_paired():
    # Either tells half of the time which way to look, and together they tell all.
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 4000))
    y = np.where(rng.random(4000) < 0.6, a ^ b, a | b)
    assert twins(rank_columns(pd.DataFrame({"a": a, "b": b}), y)) == {}


def test_few_rows_do_not_pair_what_chance_makes_alike():
    rng = np.random.default_rng(0)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.integers(0, 3, (120, 6))
        y = X[:, :3].sum(axis=1) + rng.normal(size=120) > 3
        assert twins(rank_columns(pd.DataFrame(X).add_prefix("x"), y)) == {}


def test_groups_weights_and_missing_values_are_heeded():
    frame, level, rng = table(1200)
    y = level + rng.logistic(size=1200) > 0
    hole = rng.random(1200) < 0.2
    frame.loc[hole, ["age2", "school"]] = None
    group = np.repeat(np.arange(300), 4)
    assert "years" not in twins(rank_columns(frame[["school", "sex"]], y, groups=group))
    twice = rank_columns(frame, y, sample_weight=np.full(1200, 2))
    rows = rank_columns(pd.concat([frame, frame]), np.append(y, y))
    assert set(twins(twice)) <= {"age", "age2", "school", "years"}
    assert set(twins(rows)) <= {"age", "age2", "school", "years"}


@pytest.mark.parametrize("most_rows", [10_000, 200])
def test_rows_of_weight_0_pair_nothing_and_part_nothing(monkeypatch, most_rows):
    monkeypatch.setattr(pairs, "_MOST_ROWS", most_rows)
    frame, level, rng = table(300)
    y = level + rng.logistic(size=300) > 0
    weight = rng.integers(1, 4, 300)
    place = np.sort(rng.choice(900, 300, replace=False))
    more = frame.iloc[rng.integers(0, 300, 900)].reset_index(drop=True)
    more.iloc[place] = frame
    all_y, all_weight = rng.random(900) < 0.5, np.zeros(900, dtype=int)
    all_y[place], all_weight[place] = y, weight
    wanted = rank_columns(frame, y, sample_weight=weight).path.evidence
    evidence = rank_columns(more, all_y, sample_weight=all_weight).path.evidence
    assert (wanted.adds_to >= 0).any()
    for field in ("adds_to", "adds", "misses"):
        np.testing.assert_allclose(getattr(evidence, field), getattr(wanted, field), rtol=1e-9)


def test_of_many_rows_some_are_compared(monkeypatch):
    frame, level, rng = table(6000)
    y = level + rng.logistic(size=6000) > 0
    monkeypatch.setattr(pairs, "_MOST_ROWS", 1500)
    assert len(twins(rank_columns(frame, y))) == 2


def test_criteria_of_the_fit_pair_nothing():
    frame, level, _ = table(400)
    ranking = rank_columns(frame, level > 0, criterion="gini")
    assert twins(ranking) == {}
