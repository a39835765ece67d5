"""Classes or a number: the one rule."""

import datetime as dt
import warnings
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_diabetes

from holdtrue import (
    GreedyTLClassifier,
    SteadyRidgeClassifier,
    TGreedyClassifier,
    TGreedySelector,
    compare_models,
)
from holdtrue.errors import InputError
from holdtrue.targets import MAX_CLASSES, check_class_count, target_kind

BOTH = [np.asarray, pa.array]


@pytest.mark.parametrize("as_column", BOTH)
@pytest.mark.parametrize(
    "values, is_numeric, n_values",
    [
        (["a", "b", "c"], False, 3),
        ([True, False, True], False, 2),
        ([0, 1] * 3, False, 2),
        ([0.25, 0.75, 0.25], False, 2),  # two values are always classes
        ([1000, 2000], False, 2),
        ([1, 2, 3, 4, 5] * 5, False, 5),  # a grade: 5 values, a fifth of 25 rows
        ([1, 2, 3, 4, 5] * 5 + [1], False, 5),
        ([1, 2, 3, 4, 5] * 4 + [1, 2, 3, 4], True, 5),  # 5 values are more than a fifth of 24
        ([1.0, 2.0, 3.0] * 5, False, 3),  # whole floats
        ([1.0, 2.0, 2.5] * 500, True, 3),  # a fraction among them
        (list(range(20)) * 5, False, 20),
        (list(range(21)) * 100, True, 21),
        (list(range(20)) * 4, True, 20),
    ],
)
def test_the_rule(as_column, values, is_numeric, n_values):
    kind = target_kind(as_column(values))
    assert (kind.is_numeric, kind.n_values) == (is_numeric, n_values)


def test_two_values_that_are_not_whole_are_classes_in_every_family():
    rng = np.random.default_rng(0)
    X, y, groups = rng.normal(size=(40, 2)), np.tile([1.5, 2.5], 20), np.arange(40) % 4
    for model in (
        TGreedySelector(max_steps=1),
        TGreedyClassifier(),
        SteadyRidgeClassifier(),
        GreedyTLClassifier(),
    ):
        with warnings.catch_warnings(action="ignore"):  # of few domains
            assert model.fit(X, y, groups=groups).classes_.tolist() == [1.5, 2.5]
    with warnings.catch_warnings(action="ignore"):  # of equal shares wrong
        contest = compare_models(["logistic", "t_greedy"], X, y, groups=groups)
    assert contest.scoring == "share wrong"


def test_the_caller_decides():
    assert target_kind(np.array([0, 1]), "numeric").is_numeric
    assert not target_kind(np.linspace(0, 1, 50), "classes").is_numeric
    with pytest.raises(InputError, match="target_type must be one of"):
        target_kind(np.array([0, 1]), "number")


def test_diabetes_is_a_number():
    assert target_kind(load_diabetes().target).is_numeric


@pytest.mark.parametrize(
    "column, is_numeric",
    [
        (pa.array(["x", "y", "z"]).dictionary_encode(), False),
        (pa.array([Decimal("1.5"), Decimal("2.5"), Decimal("3.5")]), True),
        (pa.array([dt.date(2020, 1, day) for day in (1, 2, 3)]), False),
        (pa.chunked_array([pa.array([1, 2]), pa.array([3, None])]), True),
        (np.array([1, 2, 3] * 5, dtype=object), False),
        (np.array([1.5, 2, 3], dtype=object), True),
        (np.array(["a", 1, None], dtype=object), False),
        (np.array([10**25 + i for i in range(30)], dtype=object), True),  # beyond 64 bits
        (np.array([10**25, 2 * 10**25, 3] * 5, dtype=object), False),
        (np.array([10**25, "a", [1]], dtype=object), False),
    ],
)
def test_types(column, is_numeric):
    assert target_kind(column).is_numeric is is_numeric


@pytest.mark.parametrize("as_column", BOTH)
def test_missing_values_are_no_values(as_column):
    assert target_kind(as_column(np.array([0.0, 1.0, np.nan]))) == (False, 2, False)


@pytest.mark.parametrize("as_column", BOTH)
def test_weights_are_repetitions(as_column):
    grades = np.array([1, 2, 3, 4, 5, 9])
    weight = np.array([5, 5, 5, 5, 5, 0])
    assert target_kind(as_column(grades), weight=weight) == target_kind(
        as_column(np.repeat(grades, weight))
    )


def test_the_sentence_says_how_to_have_it_otherwise():
    grades = target_kind(np.array([1, 2, 3, 4, 5] * 5))
    assert grades.sentence("grade", "--target-type {}") == (
        "'grade' is taken as 5 classes; --target-type numeric otherwise"
    )
    assert target_kind(np.arange(9.0)).sentence("y") == (
        "'y' is taken as a number; target_type='classes' otherwise"
    )
    assert target_kind(np.array([1, 2, 3]), "classes").sentence("y") == ""
    assert target_kind(np.array(["a", "b"])).sentence("y") == ""  # text cannot be a number


def test_too_many_classes_are_refused():
    check_class_count(MAX_CLASSES)
    with pytest.raises(InputError, match="at most 100 classes"):
        check_class_count(MAX_CLASSES + 1)


def test_rows_of_weight_1_count_beside_heavier_ones():
    y = np.array([1, 2, 3, 4, 4, 4])
    kind = target_kind(y, weight=np.array([1.0, 1, 1, 1, 1, 15]))
    assert (kind.is_numeric, kind.n_values) == (False, 4)  # 4 values are a fifth of 20 rows
    assert target_kind(y, weight=np.array([1.0, 1, 1, 1, 1, 14])).is_numeric
