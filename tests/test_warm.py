"""Warm-up compiles all kernels that fits and predictions call."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def in_memory(what):
    """Kernels and types of arguments in a fresh process, after warm-up or after fits."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    code = [sys.executable, str(HERE / "kernels_called.py"), what]
    done = subprocess.run(code, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def warmed():
    return in_memory("warm")


def test_warm_up_compiles_every_kernel(warmed):
    not_compiled = {name for name, signatures in warmed.items() if not signatures and "._" not in name}
    assert len(warmed) > 20 and not_compiled == set()


@pytest.mark.slow
def test_no_fit_compiles_anything_after_warm_up(warmed):
    """In a process of its own, so that what other tests have compiled does not count."""
    called = in_memory("fits")
    assert sum(map(bool, called.values())) > 20
    for name, signatures in called.items():
        assert set(signatures) <= set(warmed.get(name, ())), name
