"""Evidence: typed, read-only, and the same after JSON."""

import json
import pickle

import numpy as np
import pytest

from holdtrue import SelectionPath
from holdtrue.errors import InputError
from holdtrue.evidence import Evidence, SizeEvidence, SourceEvidence, natural_order


def size_evidence():
    return SizeEvidence(
        n_terms=[1, 2, 3],
        criteria={"dee": [1.0, np.inf, np.nan], "train": [3.0, 2.0, 1.0]},
        choices={"dee": 1},
        criterion="dee",
    )


def test_evidence_survives_json_to_the_last_bit():
    evidence = size_evidence()
    text = json.dumps(evidence.to_dict(), allow_nan=False)
    assert Evidence.from_dict(json.loads(text)) == evidence


@pytest.mark.parametrize("copied", [False, True])
def test_arrays_are_read_only_and_keep_their_kind(copied):
    evidence = size_evidence()
    if copied:
        evidence = pickle.loads(pickle.dumps(evidence))
        assert evidence == size_evidence()
    assert evidence.n_terms.dtype.kind == "i"
    with pytest.raises(ValueError, match="read-only"):
        evidence.criteria["dee"][0] = 2.0


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "Other"},
        {"criterion": 3},
        {"n_terms": ["one"]},
        {"choices": [1]},
        {"criteria": {"dee": [None]}},
        {"more": 1},
    ],
)
def test_damaged_evidence_is_refused_in_words(change):
    record = size_evidence().to_dict() | change
    with pytest.raises(InputError, match="the evidence is damaged"):
        Evidence.from_dict(record)


def test_a_path_carries_its_evidence_through_json():
    evidence = SourceEvidence(["x0", "cars"], 1, [[0.0, 2.0]], [], {"with_sources": 0.5})
    path = SelectionPath([1], ["cars"], [1.0, 0.5], 1, "least", evidence=evidence)
    again = SelectionPath.from_json(path.to_json())
    assert again == path
    assert again.evidence == evidence
    assert again != SelectionPath([1], ["cars"], [1.0, 0.5], 1, "least")


def test_skill_is_the_share_of_the_empty_error_that_goes():
    path = SelectionPath([0, 1, 2], ["a", "b", "c"], [2.0, 1.0, 0.0, 3.0], 1, "least")
    assert path.skill.tolist() == [0.0, 0.5, 1.0, -0.5]
    nothing = SelectionPath([0], ["a"], [0.0, 0.0], 0, "nothing to gain")
    assert nothing.skill.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("labels", "ordered"),
    [
        (["10", "2", "-1"], ["-1", "2", "10"]),
        (["1e3", "2000", "5"], ["5", "1e3", "2000"]),
        (["week 10", "week 2", "a", "10b", "9"], ["9", "10b", "a", "week 2", "week 10"]),
        (["nan", "2", "10"], ["2", "10", "nan"]),
        (["2021-10", "2021-9"], ["2021-9", "2021-10"]),
        ([], []),
    ],
)
def test_domains_are_in_the_order_of_their_numbers(labels, ordered):
    assert [labels[i] for i in natural_order(labels)] == ordered
