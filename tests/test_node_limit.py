"""A limit on search nodes makes a fit repeat: phases are measured in nodes, and the clock decides nothing."""

import math

import numpy as np
import pytest

from margotree import HFSMargotClassifier, LocalSVMTreeClassifier, MargotClassifier, SFSMargotClassifier
from margotree.engines import Limits
from margotree.engines.run_control import RunControl
from patience import three_tries


def data(n=150, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 8))
    y = np.where((X[:, 0] > 0.5) ^ (X[:, 1] + 0.3 * X[:, 2] > 0.6) ^ (rng.random(n) < 0.15), "a", "b")
    return X, y


MODELS = {
    "margot": lambda **k: MargotClassifier(C=[1, 100], **k),
    "margot, depth 3": lambda **k: MargotClassifier(depth=3, C=10, **k),
    "hfs": lambda **k: HFSMargotClassifier(C=[1, 100], budget=2, **k),
    "sfs": lambda **k: SFSMargotClassifier(C=[1, 100], budget=1, alpha=4, **k),
    "local": lambda **k: LocalSVMTreeClassifier(C=10, budget=2, **k),
}


@pytest.mark.parametrize("name", MODELS)
def test_two_fits_are_equal_to_the_last_bit_however_fast_the_clock_runs(name, monkeypatch):
    X, y = data(40)
    make = MODELS[name]
    one = make(node_limit=12, time_limit=None).fit(X, y)
    real = RunControl.elapsed.fget
    # A machine that is fifty times slower, as far as the clock can tell.
    monkeypatch.setattr(RunControl, "elapsed", property(lambda control: 50 * real(control)))
    two = make(node_limit=12, time_limit=None).fit(X, y)
    a, b = one.certificate_, two.certificate_
    assert one.tree_.splits.w.tobytes() == two.tree_.splits.w.tobytes()
    assert one.tree_.splits.b.tobytes() == two.tree_.splits.b.tobytes()
    assert (a.objective, a.bound, a.nodes, a.stopped) == (b.objective, b.bound, b.nodes, b.stopped)
    if name != "local":
        assert a.stopped == "node limit" and a.nodes >= 12


def test_more_nodes_never_hurt_and_the_limit_is_kept():
    X, y = data(80)
    few, many = (MargotClassifier(C=[1, 100], node_limit=n, time_limit=None).fit(X, y).certificate_ for n in (20, 150))
    assert many.bound >= few.bound and many.objective <= few.objective * (1 + 1e-9)
    assert few.nodes <= 20 + 1 and many.nodes <= 150 + 1


@three_tries
def test_the_time_limit_still_ends_a_fit():
    X, y = data(400)
    found = MargotClassifier(depth=3, C=100, node_limit=10**9, time_limit=1.0).fit(X, y).certificate_
    assert found.stopped == "time limit" and found.seconds < 20


@pytest.mark.parametrize("bad", [0, -1, 1.5, "many", True])
def test_a_node_limit_is_a_positive_whole_number(bad):
    X, y = data(30)
    with pytest.raises(ValueError, match="'node_limit' parameter of MargotClassifier must be a positive whole number"):
        MargotClassifier(node_limit=bad).fit(X, y)


def test_a_phase_gets_seconds_or_nodes():
    by_time = RunControl(Limits(time=10.0)).share(seconds=1.0, nodes=5)
    assert by_time.limits.time == 1.0 and math.isinf(by_time.limits.nodes)
    by_nodes = RunControl(Limits(nodes=100)).share(seconds=1.0, nodes=5)
    assert math.isinf(by_nodes.limits.time) and by_nodes.limits.nodes == 5
