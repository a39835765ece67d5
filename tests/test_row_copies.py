import numpy as np
import pandas as pd

from holdtrue import row_copies as module
from holdtrue.row_copies import dealt_rows, row_copies


def test_copies_are_in_order_of_the_values_and_as_many_as_the_weights_say():
    y, X = np.array([1.0, 0.0, 1.0]), np.array([[5.0], [9.0], [2.0]])
    assert row_copies(X, y, None).tolist() == [1, 2, 0]
    assert row_copies(X, y, np.array([1.0, 2.0, 3.0])).tolist() == [1, 1, 2, 2, 2, 0]
    assert row_copies(X[:, :0], np.column_stack([y, X]), None).tolist() == [1, 2, 0]


def test_the_order_is_that_of_sorting_by_all_columns():
    rng = np.random.default_rng(0)
    for n_rows in (0, 1, 2, 7, 200):
        X = rng.integers(0, 3, size=(n_rows, 4)).astype(float)
        X[rng.random(X.shape) < 0.2] = np.nan
        y = rng.integers(0, 2, size=n_rows)
        expected = np.lexsort([*X.T[::-1], y])
        assert row_copies(X, y, None).tolist() == expected.tolist()
        assert row_copies(pd.DataFrame(X), y, None).tolist() == expected.tolist()
        text = np.where(np.isnan(X), "none", X.astype(str))
        expected = np.lexsort([*(np.unique(c, return_inverse=True)[1] for c in text.T[::-1]), y])
        assert row_copies(pd.DataFrame(text), y, None).tolist() == expected.tolist()


def test_columns_are_read_only_while_rows_are_equal(monkeypatch):
    n_read = []
    sortable = module._sortable
    monkeypatch.setattr(module, "_sortable", lambda c: n_read.append(len(c)) or sortable(c))
    X = np.array([[1, 2, 3], [1, 0, 4], [5, 6, 7]])
    assert row_copies(X, np.zeros(3), None).tolist() == [1, 0, 2]
    assert len(n_read) == 3  # y and two columns


def test_copies_of_a_row_in_one_part_become_one_row_that_has_their_weight():
    copies = np.array([1, 1, 2, 2, 2, 0])
    part = np.array([0, 1, 0, 1, 0, 1])
    rows, parts, weight = dealt_rows(copies, part, np.array([1.0, 2.0, 3.0]))
    # Row 0: one copy in part 1. Row 1: one in each. Row 2: two in part 0, one in part 1.
    assert rows.tolist() == [0, 1, 1, 2, 2]
    assert parts.tolist() == [1, 0, 1, 0, 1]
    assert weight.tolist() == [1.0, 1.0, 1.0, 2.0, 1.0]


def test_without_weights_every_row_is_dealt_out_once():
    rows, parts, weight = dealt_rows(np.array([2, 0, 1]), np.array([0, 1, 0]), None)
    assert (rows.tolist(), parts.tolist(), weight) == ([0, 1, 2], [1, 0, 0], None)
