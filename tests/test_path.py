import copy
import json
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdtrue import SelectionPath


def example(**changes):
    fields = {
        "order": [2, 0, 2],
        "names": ["dose", "age", "dose"],
        "scores": [1.0, 0.5, np.inf, np.nan],
        "chosen_size": 1,
        "reason": "least at 1",
        "unit": "mean squared error",
        "train_scores": [1.0, 0.4, 0.3, 0.2],
    }
    return SelectionPath(**{**fields, **changes})


def test_a_path_knows_what_it_chose():
    path = example(chosen_size=3)
    assert path.n_steps == 3
    assert path.chosen.tolist() == [2, 0]
    assert path.support(4).tolist() == [True, False, True, False]
    assert path.ranking(4).tolist() == [2, 3, 1, 3]


@pytest.mark.parametrize("derive", [SelectionPath.support, SelectionPath.ranking])
def test_fewer_candidates_than_the_path_names_are_refused(derive):
    with pytest.raises(ValueError, match=r"n_candidates must exceed.*Got 2, and 2 in the path"):
        derive(example(), 2)


def test_choosing_nothing_is_legal():
    path = SelectionPath([], [], [1.0], 0, "nothing beats the empty selection")
    assert path.chosen.tolist() == []
    assert not path.support(3).any()
    assert path.ranking(2).tolist() == [1, 1]


def test_a_path_cannot_be_changed_nor_can_its_copies():
    for path in (example(), pickle.loads(pickle.dumps(example()))):
        with pytest.raises(AttributeError):
            path.chosen_size = 2
        for array in (path.order, path.scores, path.train_scores):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 3
    assert copy.deepcopy(example()) == example()


def test_a_path_keeps_copies_of_what_it_is_given():
    order, scores = np.array([2, 0, 2]), np.array([1.0, 0.5, 0.4, 0.3])
    path = example(order=order, scores=scores)
    order[0], scores[0] = 9, 9.0
    assert path.order[0] == 2
    assert path.scores[0] == 1.0


def test_json_goes_there_and_back_to_the_last_bit():
    path = example(scores=[0.1 + 0.2, 1e-300, np.inf, np.nan])
    text = path.to_json()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not strict JSON"))
    assert SelectionPath.from_json(text) == path
    assert SelectionPath.from_json(example(train_scores=None).to_json()).train_scores is None


@given(
    st.lists(
        st.tuples(st.integers(0, 10**6), st.text(), st.floats(width=64), st.floats(width=64)),
        max_size=6,
    ),
    st.text(),
)
def test_any_path_survives_json(steps, reason):
    path = SelectionPath(
        order=[s[0] for s in steps],
        names=[s[1] for s in steps],
        scores=[0.0, *(s[2] for s in steps)],
        chosen_size=len(steps) // 2,
        reason=reason,
        train_scores=[0.0, *(s[3] for s in steps)],
    )
    assert SelectionPath.from_json(path.to_json()) == path


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "not valid JSON"),
        (None, "not valid JSON"),
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[1, 2]", "expected an object"),
        ('{"format": "other"}', "expected an object"),
        ('{"format": "holdtrue.SelectionPath", "version": 2}', "reads version 1"),
        ('{"format": "holdtrue.SelectionPath", "version": 1}', "missing"),
        (
            example().to_json().replace("[2, 0, 2]", '["2", 0, 2]'),
            "order must be a number. Got '2'",
        ),
        (
            example().to_json().replace("[2, 0, 2]", "[2.5, 0, 2]"),
            r"order must be a list of whole numbers. Got \[2.5, 0.0, 2.0\]",
        ),
        (example().to_json().replace('"age"', "3"), "names must be text. Got 3"),
        (example().to_json().replace("[2, 0, 2]", "[2, 0]"), "names must have length 2"),
        (
            example().to_json().replace('"inf"', '"infinite"'),
            "scores must be a number. Got 'infinite'",
        ),
        (example().to_json().replace('"inf"', "true"), "scores must be a number. Got True"),
        (example().to_json().replace("[2, 0, 2]", f"[{10**30}, 0, 2]"), "damaged"),
        (
            example().to_json().replace("[2, 0, 2]", "5"),
            "order must be a list of whole numbers. Got 5",
        ),
        (
            example().to_json().replace('["dose", "age", "dose"]', '"abc"'),
            "names must be a list. Got 'abc'",
        ),
        (
            example().to_json().replace('"nan"', "NaN"),
            "not valid JSON .*NaN is not a number in JSON",
        ),
    ],
)
def test_text_that_is_not_a_path_is_refused(text, message):
    with pytest.raises(ValueError, match=message):
        SelectionPath.from_json(text)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"names": ["dose"]}, "names must have length 3 for 3 steps. Got length 1"),
        ({"scores": [1.0]}, "scores must have length 4 for 3 steps. Got length 1"),
        ({"train_scores": [1.0]}, "train_scores must have length 4"),
        ({"chosen_size": 4}, "chosen_size=4 with 3 steps"),
        ({"chosen_size": -1}, "chosen_size=-1"),
        ({"chosen_size": 1.9}, "chosen_size must be a whole number. Got 1.9"),
        ({"order": [2.7, 0, 1]}, "order must be a list of whole numbers"),
        ({"order": [-1, 0, 1]}, "order must name candidates by index, 0 or more. Got -1"),
        ({"scores": np.ones((2, 2))}, "scores must be a list of numbers"),
        ({"names": "abc"}, "names must be a list. Got 'abc'"),
        ({"reason": None}, "reason must be text. Got None"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        example(**changes)


def test_equality_looks_at_every_field():
    assert example() == example()
    for changes in (
        {"order": [1, 0, 2]},
        {"scores": [1.0, 0.5, 0.1, 0.2]},
        {"reason": "other"},
        {"train_scores": None},
        {"train_scores": [1, 1, 1, 1]},
    ):
        assert example() != example(**changes)
        assert example(**changes) != example()
    assert example() != "path"


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_a_path_as_a_frame_has_one_row_per_size(backend):
    frame = example().to_frame(backend)
    assert type(frame).__module__.split(".")[0] == backend
    columns = frame.to_pydict() if backend == "pyarrow" else frame.to_dict()
    assert list(columns) == ["size", "index", "name", "score", "skill", "train_score", "chosen"]
    assert [int(v) for v in np.asarray(frame["index"])] == [-1, 2, 0, 2]
    assert list(np.asarray(frame["chosen"])) == [True, True, False, False]
    assert list(np.asarray(frame["name"])) == ["", "dose", "age", "dose"]


def test_an_unknown_frame_is_refused():
    with pytest.raises(ValueError, match="backend must be one of 'pandas', 'polars', 'pyarrow'"):
        example().to_frame("spark")
