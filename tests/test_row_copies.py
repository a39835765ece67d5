import numpy as np

from holdtrue.row_copies import dealt_rows, row_copies


def test_copies_are_in_order_of_the_values_and_as_many_as_the_weights_say():
    y, X = np.array([1.0, 0.0, 1.0]), np.array([[5.0], [9.0], [2.0]])
    assert row_copies(X, y, None).tolist() == [1, 2, 0]
    assert row_copies(X, y, np.array([1.0, 2.0, 3.0])).tolist() == [1, 1, 2, 2, 2, 0]
    assert row_copies(X[:, :0], np.column_stack([y, X]), None).tolist() == [1, 2, 0]


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
