import io
import sys

import pytest

from holdtrue import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_work_that_lasts_is_shown_on_a_terminal(monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE", -1.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert list(progress.progress("columns", "abc", 3)) == ["a", "b", "c"]
    assert sys.stderr.getvalue().endswith("# 3/3\n")


def test_nothing_is_shown_elsewhere_nor_for_short_work(monkeypatch):
    for stream in (io.StringIO(), Terminal()):
        monkeypatch.setattr(sys, "stderr", stream)
        assert list(progress.progress("columns", "ab", 2)) == ["a", "b"]
        assert stream.getvalue() == ""


def fail_after_one_piece():
    for piece in progress.progress("columns", "ab", 2):
        if piece == "b":
            raise KeyError


def test_an_error_ends_the_line_and_goes_on_up(monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE", -1.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(KeyError):
        fail_after_one_piece()
    assert sys.stderr.getvalue().endswith("1/2\n")
