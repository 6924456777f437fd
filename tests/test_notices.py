"""Lines on stderr beside a fit's progress: on a terminal one that is rewritten, in a log a first and a last one."""

import io
import os
import sys
import time

import pytest

from margotree import notices
from margotree.engines.numba_backend import Part
from margotree.engines.numba_backend import ahead_of_time as ahead
from margotree.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(monkeypatch, stream, seconds=0.2, after=0.0):
    """What a status line leaves on a stream; the state counts how often it was asked for."""
    monkeypatch.setattr(sys, "stderr", stream)
    asked = []
    with notices.status(lambda: f"state {len(asked)}{asked.append(0) or ''}", lambda: "done", after=after, every=0.01):
        time.sleep(seconds)
    return stream.getvalue()


def test_a_log_gets_a_first_and_a_last_line(monkeypatch):
    assert shown(monkeypatch, io.StringIO()) == "margotree: state 0\nmargotree: done\n"


def test_a_terminal_gets_one_line_that_is_rewritten(monkeypatch):
    text = shown(monkeypatch, Terminal())
    states = text.split("\r")[1:]
    assert len(states) > 3 and states[1].startswith("margotree: state 1")
    assert text.count("\n") == 1 and text.endswith("margotree: done\x1b[K\n")


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_what_is_soon_over_says_nothing(monkeypatch, stream):
    assert shown(monkeypatch, stream, seconds=0.0, after=30.0) == ""


def test_a_line_never_wraps(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with notices.status(lambda: "long " * 30, lambda: "done " * 30, every=0.01):
        time.sleep(0.1)
    lines = sys.stderr.getvalue().rstrip("\n").split("\r")[1:]
    assert all(len(line.removesuffix("\x1b[K")) < 40 for line in lines)


def test_an_error_inside_ends_the_line_and_goes_on(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())

    def fail():
        time.sleep(0.1)
        raise KeyError

    status = notices.status(lambda: "state", lambda: "done")
    with pytest.raises(KeyError), status:
        fail()
    assert sys.stderr.getvalue() == "margotree: state\n" and not notices.status_is_shown()


def test_progress_of_a_fit_is_not_written_over_a_status_line(monkeypatch):
    """Nor does the clock of the preparation count what the other line was about."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr("margotree.progress._SILENCE", 0.1)
    with Progress(1, stream):
        with notices.status(lambda: "compiling", lambda: "compiled"):
            time.sleep(0.5)
        assert stream.getvalue() == ""
        time.sleep(0.5)
    assert "preparing" in stream.getvalue()


def test_compiling_says_what_how_much_is_done_and_how_long_it_will_take(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    monkeypatch.setattr(ahead, "_SILENT_SECONDS", 0.0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0}, raising=False)
    monkeypatch.setattr(ahead, "run", lambda name: time.sleep(0.1))
    ahead.compile_ahead([Part("unknown:first_one", 30.0), Part("unknown:second_one", 20.0)])
    first, last = sys.stderr.getvalue().splitlines()
    assert "0 of 2 parts done, about 50 s left" in first and "first one, second one" in first
    assert last.startswith("margotree: compiled 2 parts of the kernels in 0.")


def test_the_time_left_follows_the_speed_of_the_parts_that_are_done(monkeypatch):
    """Parts that should take a minute each and take a moment: the second one will do so too."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(ahead, "_SILENT_SECONDS", 0.0)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0}, raising=False)
    monkeypatch.setattr(ahead, "run", lambda name: time.sleep(0.8))
    ahead.compile_ahead([Part("unknown:a", 60.0), Part("unknown:b", 60.0)])
    states = sys.stderr.getvalue().split("\r")[1:]
    assert "0 of 2 parts done, about 120 s left" in states[0]
    assert any("1 of 2 parts done, about 1 s left" in state for state in states)
