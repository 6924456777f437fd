import io
import math

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import MinMaxScaler

from margotree.engines import Event, Limits, solve
from margotree.problem import Problem
from margotree.progress import Progress, format_event


class Terminal(io.StringIO):
    def isatty(self):
        return True


def event(elapsed=1.0, **facts):
    return Event(phase="search", elapsed=elapsed, **({"incumbent": 20.0, "bound": 19.0, "nodes": 42} | facts))


def control(stream, times, verbose=1):
    """Events at the given seconds."""
    now = [0.0]
    with Progress(verbose, stream, clock=lambda: now[0]) as listener:
        for t in times:
            now[0] = t
            if listener is not None:
                listener(event(t))
    return stream.getvalue()


def test_a_line_contains_incumbent_bound_gap_time_and_nodes():
    line = format_event(event(12.34, open_nodes=5, message="restart"))
    assert line == (
        "search 12.3 s, no tree has a training objective more than 5 % smaller (this says nothing about accuracy), "
        "incumbent 20, bound 19, nodes 42 (5 open), restart"
    )


def test_what_is_not_known_is_said_to_be_unknown():
    line = format_event(Event(phase="start", elapsed=0.0))
    assert line == "start 0.0 s, no tree yet"


def test_lines_keep_the_best_tree_and_the_largest_bound_of_earlier_phases():
    stream = io.StringIO()
    with Progress(2, stream) as listener:
        for facts in (
            {},
            {"bound": -math.inf},
            {"incumbent": math.inf, "bound": 19.5},
            {"incumbent": 21.0, "bound": 0.0},
        ):
            listener(event(**facts))
    lines = stream.getvalue().splitlines()
    assert [("incumbent 20, bound 19.5" in line, "incumbent 20, bound 19," in line) for line in lines] == [
        (False, True), (False, True), (True, False), (True, False),
    ]  # fmt: skip


@pytest.mark.parametrize("engine", ["bnb", "alternating", "local_svm"])
@pytest.mark.parametrize("model", [{}, {"budget": 2}, {"budget": 1, "alpha": 5.0}, {"budget": 2, "max_weight": 50.0}])
def test_no_event_claims_a_tree_that_is_better_than_the_result_or_a_bound_above_it(engine, model):
    """Searches in relaxations report their bounds, but not their trees, which need not be feasible."""
    X, y = load_breast_cancer(return_X_y=True)
    X = MinMaxScaler().fit_transform(X[:60, :5])
    problem = Problem.make(X, np.where(y[:60] == 1, 1.0, -1.0), depth=2, C=100.0, **model)
    events = []
    found = solve(problem, engine=engine, limits=Limits(time=60.0, nodes=30), listener=events.append).certificate
    assert events and min(e.incumbent for e in events) >= found.objective * (1 - 1e-9)
    assert max(e.bound for e in events) <= found.objective * (1 + 1e-9)


def test_quiet_means_quiet():
    assert control(Terminal(), range(100), verbose=0) == ""


def test_a_terminal_gets_one_line_that_updates():
    shown = control(Terminal(), [0.0, 0.01, 0.02, 0.5, 0.51])
    lines = shown.split("\r")
    assert lines[0] == "" and [x.split(" s,")[0] for x in lines[1:]] == ["search 0.0", "search 0.5", "search 0.5"]
    assert shown.count("\n") == 1 and shown.endswith("\n")


def test_a_line_that_updates_never_wraps(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    shown = control(Terminal(), [0.0])
    assert all(len(line.removesuffix("\n").removesuffix("\x1b[K")) < 60 for line in shown.split("\r"))
    assert "gap 5 %, incumbent 20, bound 19" in shown and "no tree" not in shown  # the sentence has no room
    monkeypatch.setenv("COLUMNS", "200")
    assert "no tree has a training objective more than 5 % smaller" in control(Terminal(), [0.0])


def test_a_pipe_gets_a_plain_line_now_and_then_and_the_last_word():
    shown = control(io.StringIO(), [0.0, 1.0, 2.0, 5.1, 7.0])
    assert "\r" not in shown and "\x1b" not in shown
    assert [line.split(" s,")[0] for line in shown.splitlines()] == ["search 0.0", "search 5.1", "search 7.0"]


def test_verbose_two_shows_every_event():
    assert len(control(Terminal(), [0.0, 0.01, 0.02], verbose=2).splitlines()) == 3


def test_an_error_ends_the_line_before_it_shows():
    stream = Terminal()
    try:
        with Progress(1, stream) as listener:
            assert listener is not None
            listener(event())
            raise RuntimeError("boom")
    except RuntimeError:
        pass
    assert stream.getvalue().endswith("\n")


def test_without_events_nothing_is_written():
    assert control(Terminal(), []) == ""


def test_silence_shows_the_clock(monkeypatch):
    import time

    monkeypatch.setattr("margotree.progress._SILENCE", 0.02)
    stream = Terminal()
    with Progress(1, stream) as listener:
        time.sleep(0.2)
        listener(event(3.0))
        time.sleep(0.2)
    seconds = [float(line.split()[1]) for line in stream.getvalue().split("\r")[1:]]
    assert "preparing 0." in stream.getvalue() and seconds[-1] > 3.05


def test_a_recording_receives_the_events_of_quiet_fits():
    from margotree.progress import recording

    with recording() as events:
        assert control(Terminal(), [0.0, 0.01], verbose=0) == ""
    assert [e.elapsed for e in events] == [0.0, 0.01]
    with Progress(0) as listener:
        assert listener is None
