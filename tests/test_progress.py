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
    with progress.progress_bar("columns", 3) as tick:
        for _ in range(3):
            tick()
    assert sys.stderr.getvalue().endswith("# 3/3\n")


def test_nothing_is_shown_elsewhere_nor_for_short_work(monkeypatch):
    for stream in (io.StringIO(), Terminal()):
        monkeypatch.setattr(sys, "stderr", stream)
        with progress.progress_bar("columns", 2) as tick:
            tick()
        assert stream.getvalue() == ""


def fail_after_one_piece():
    with progress.progress_bar("columns", 2) as tick:
        tick()
        raise KeyError


def test_an_error_ends_the_line_and_goes_on_up(monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE", -1.0)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(KeyError):
        fail_after_one_piece()
    assert sys.stderr.getvalue().endswith("1/2\n")
