"""Ctrl-C in the middle of a long fit returns the best tree so far."""

import signal
import subprocess
import sys

LONG_FIT = """
import numpy as np
from margotree import MargotClassifier
rng = np.random.default_rng(0)
X, y = rng.normal(size=(400, 6)), rng.integers(0, 2, 400)
fitted = MargotClassifier(depth=3, C=100.0, time_limit=300, verbose=2).fit(X, y)
fitted.verify(X, y)
print(fitted.certificate_.stopped, fitted.certificate_.proved, fitted.predict(X).shape, sep="|")
"""


def test_ctrl_c_returns_the_best_tree_so_far():
    process = subprocess.Popen(
        [sys.executable, "-c", LONG_FIT], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        first_words = process.stderr.readline()
        assert "incumbent" in first_words
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0, err
    stopped, proved, shape = out.strip().split("|")
    assert stopped == "interrupted" and shape == "(400,)"
    assert proved != "optimal"
