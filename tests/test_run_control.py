import math
import os
import signal
import threading
import time

import pytest

from margotree.engines import Event, Limits, RunControl
from margotree.engines.run_control import ctrl_c
from margotree.solution import Stopped


def test_nothing_stops_a_fit_without_limits():
    control = RunControl()
    assert control.must_stop(10**9) is None
    assert control.remaining == math.inf


def test_each_limit_gives_its_reason():
    assert RunControl(Limits(time=0.0)).must_stop() is Stopped.TIME
    assert RunControl(Limits(nodes=5)).must_stop(5) is Stopped.NODES
    assert RunControl(Limits(nodes=5)).must_stop(4) is None


def test_an_interruption_comes_before_any_limit():
    control = RunControl(Limits(time=0.0, nodes=0))
    control.interrupt()
    assert control.must_stop(1) is Stopped.INTERRUPTED


def test_a_part_has_its_own_clock_and_the_whole_ones_interruption():
    whole = RunControl(Limits(time=100.0, gap=0.5, seed=7))
    part = whole.part(10.0)
    assert part.limits.time == 10.0 and part.limits.gap == 0.5 and part.limits.seed == 7
    assert whole.part(1e6).limits.time <= 100.0
    part.interrupt()
    assert whole.interrupted


def test_reports_reach_the_listener_and_none_is_needed():
    events = []
    RunControl(listener=events.append).report("search", incumbent=2.0, bound=1.0, nodes=3)
    RunControl().report("search")
    (event,) = events
    assert isinstance(event, Event) and event.phase == "search" and event.nodes == 3
    assert event.gap == pytest.approx(0.5) and event.elapsed >= 0


def test_a_part_tells_the_time_of_the_whole():
    events = []
    whole = RunControl(Limits(time=100.0), events.append)
    time.sleep(0.02)
    part = whole.part(10.0)
    part.report("search")
    part.part(1.0).report("search")
    assert part.elapsed < events[0].elapsed <= events[1].elapsed <= whole.elapsed


def press_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.01)


@pytest.fixture
def at_a_terminal():
    """SIGINT as Python sets it up at a terminal; a shell's background jobs start with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("at_a_terminal")
def test_the_first_ctrl_c_asks_the_second_insists():
    with ctrl_c(RunControl()) as control:
        press_ctrl_c()
        assert control.interrupted
        with pytest.raises(KeyboardInterrupt):
            press_ctrl_c()


def test_the_handler_is_put_back():
    before = signal.getsignal(signal.SIGINT)
    with ctrl_c(RunControl()):
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before


def test_other_threads_may_fit_too():
    seen = []

    def work():
        with ctrl_c(RunControl()) as control:
            seen.append(control.must_stop())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [None]
