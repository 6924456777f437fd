"""Splits some way off a given one, for the local search to go on from when it is stuck."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from margotree.baselines.oct.retrain import sparse_svm
from margotree.baselines.oct.side_costs import Sides
from margotree.engines import RunControl
from margotree.problem.problem import FloatArray

#: How often a point on its wrong side is left out of a new SVM: hinge losses make too much of the hopeless ones.
_GIVE_UP = 0.7

#: The range of ``log10`` of the SVM's price.
_LOW, _HIGH = -3.3, -0.7

#: How far coefficients move, relative to themselves and, for a new feature, to ``|w|_1``.
_TURN, _NEW = 0.2, 0.3


def shake(sides: Sides, w: FloatArray, b: float, rng: np.random.Generator, control: RunControl) -> FloatArray | None:
    """A direction with ``|w|_1 = 1`` near the given split, or from an SVM whose points are weighted at random."""
    if w.any() and rng.random() < 0.5:
        return _swapped(w / np.abs(w).sum(), rng)
    weight = rng.exponential(size=len(sides.X))
    weight[_wrong(sides, w, b) & (rng.random(len(weight)) < _GIVE_UP)] = 0.0
    return sparse_svm(
        replace(sides, left=weight * sides.left, right=weight * sides.right), 10 ** rng.uniform(_LOW, _HIGH), control
    )


def _wrong(sides: Sides, w: FloatArray, b: float) -> NDArray[np.bool_]:
    """The points that would cost less on the other side of a split; none if it does not split."""
    h = sides.X @ w + b
    return np.where(h > 0, sides.right > sides.left, sides.left > sides.right) & bool(w.any())


def _swapped(w: FloatArray, rng: np.random.Generator) -> FloatArray:
    """One feature out, one in, the others turned a little."""
    w, used = w.copy(), np.flatnonzero(w)
    if len(used) > 1:
        w[rng.choice(used)] = 0.0
    w *= 1.0 + _TURN * rng.normal(size=len(w))
    w[rng.integers(len(w))] += _NEW * rng.normal()
    return w / np.abs(w).sum()
