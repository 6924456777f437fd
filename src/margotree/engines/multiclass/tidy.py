"""A tree without weights that are only rounding."""

from __future__ import annotations

import numpy as np

from margotree.problem import MulticlassProblem, Splits

#: Weights that move no sample by more than this are rounding.
_NOISE = 1e-10


def without_noise(problem: MulticlassProblem, splits: Splits) -> Splits:
    """The tree without such weights, if it is as good without them."""
    reach = np.max(np.abs(problem.X), axis=0, initial=1.0)
    w = np.where(np.abs(splits.w) * reach > _NOISE, splits.w, 0.0)
    if np.array_equal(w, splits.w):
        return splits
    clean = Splits(w=w, b=splits.b)
    before, after = problem.evaluate(splits), problem.evaluate(clean)
    good = after.feasible and after.objective <= before.objective * (1.0 + 1e-9)
    return clean if good and np.array_equal(before.node, after.node) else splits
