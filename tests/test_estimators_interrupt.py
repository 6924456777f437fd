"""Ctrl-C in the middle of a long fit returns the best tree so far."""

import signal
import subprocess
import sys

import pytest

LONG_FIT = """
import sys
import numpy as np
from margotree import MargotClassifier
rng = np.random.default_rng(0)
X, y = rng.normal(size=(400, 6)), rng.integers(0, 2, 400)
start = sys.argv[1] or None
fitted = MargotClassifier(depth=3, C=100.0, time_limit=300, start=start, verbose=2).fit(X, y)
fitted.verify(X, y)
print(fitted.certificate_.stopped, fitted.certificate_.proved, fitted.predict(X).shape, sep="|")
"""


@pytest.mark.parametrize(("start", "lines"), [("local_svm", 4), ("", 1)])
def test_ctrl_c_returns_the_best_tree_so_far(start, lines):
    process = subprocess.Popen(
        [sys.executable, "-c", LONG_FIT, start], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        for _ in range(lines):
            assert " s, " in process.stderr.readline()  # seconds, then what is known by then
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == 0, err
    stopped, proved, shape = out.strip().split("|")
    assert stopped == "interrupted" and shape == "(400,)"
    assert proved != "optimal"
