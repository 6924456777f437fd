"""Compile the kernels ahead of the first fit: ``python -m margotree.engines.warm``.

Numba compiles on first use and keeps the result on disk.  Compiling cannot be interrupted, so a first fit that has to
wait for it may find its time limit spent.
"""

from __future__ import annotations

import numpy as np

from margotree.engines.registry import solve
from margotree.engines.watch import Limits
from margotree.problem import Problem

#: One problem of each model.
_TERMS: tuple[dict[str, float], ...] = ({}, {"budget": 1}, {"budget": 1, "alpha": 1.0})


def warm_up() -> None:
    """Train a tiny tree of each model with the default engines."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(size=(24, 3)), np.where(rng.uniform(size=24) < 0.5, 1.0, -1.0)
    for terms in _TERMS:
        solve(Problem.make(X, y, depth=2, C=10.0, **terms), limits=Limits(time=300.0, gap=0.1))


if __name__ == "__main__":
    warm_up()
