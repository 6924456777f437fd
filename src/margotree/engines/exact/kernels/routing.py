"""Where samples are in the tree, and which slot of the workspace holds which tree node.

Every tree node has a slot; the rest are spares to try things in.  Also the tree's arithmetic: who is whose child.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from margotree.engines.node.kernels.workspace import (
    F8,
    I8,
    LABEL,
    H,
    Workspace,
    new_workspace,
    numbers,
    scaled_weight_limit,
    weight_limit_rows,
)
from margotree.engines.numba_backend import inner, struct

# Rows of ``at``: the slot of each tree node, the spare slots, the deepest tree node known to contain each sample.
SLOT, SPARE, PLACE = numbers(3)
# Rows of ``score``: how promising each candidate for branching looks; estimated damage on the side it is headed for,
# and on the other; how much of the two estimates came true so far, as running means.
SCORE, ESTIMATE, OTHER_ESTIMATE, ACCURACY, OTHER_ACCURACY = numbers(5)
#: Spare slots: three for the candidate under test, three for the best so far, two for handing over.
SPARES = 8
#: Violations below this are rounding; where the last digits of a bound count, below that.
TOL, TIGHT = 1e-7, 1e-11


@struct
class Routing(NamedTuple):
    """What one worker knows of the search node at hand beyond its node problems.

    Items of the workspace are the samples and, where weights are bounded, two hard rows per feature, which belong to
    every tree node.  A candidate for branching is a sample or, if they have prices, a feature of a tree node: the
    number of items + n t + j.
    """

    at: I8
    score: F8
    T: int  # tree nodes
    eps: float
    samples: int
    limit: float  # on the size of weights, in the units of its rows


def new_memory(
    X: F8,
    y: F8,
    cost: F8,
    eps: float,
    penalties: F8 | None = None,
    *,
    without_penalties: bool = False,
    reach: float = np.inf,
    limit: float = np.inf,
) -> tuple[Workspace, Routing]:
    """Memory of one worker for samples ``X`` and the tree nodes that ``cost`` has rows for; nothing is in it yet.

    A ``without_penalties`` one leaves prices out of the node problems and puts into its bounds what it can of them.  ``reach`` is
    how large ``|b|`` can be at any node of a tree of interest, ``limit`` how large weights may be.
    """
    (samples, n), T = X.shape, len(cost)
    priced = penalties is not None and not without_penalties
    sides = np.repeat([1.0, -1.0], n if limit < np.inf else 0)  # of the rows that hold weights within their limits
    m = samples + len(sides)
    if len(sides):
        X, cost = np.vstack([X, weight_limit_rows(n, limit)]), np.hstack([cost, np.zeros((T, len(sides)))])
    c = (np.arange(m) < samples).astype(float)
    ws = new_workspace(X, c, cost, penalties, priced=priced, spares=SPARES, reach=reach)
    ws.fixed[LABEL] = np.concatenate([y, -sides])
    at = np.zeros((3, max(T, SPARES, m)), np.int64)
    at[SLOT, :T] = np.arange(T)
    at[SPARE, :SPARES] = np.arange(T, T + SPARES)
    score = np.zeros((5, m + T * n * priced))
    score[ACCURACY:] = 0.5
    return ws, Routing(at=at, score=score, T=T, eps=eps, samples=samples, limit=scaled_weight_limit(limit))


@inner(allocates=False)
def swap_in(rt: Routing, t: int, k: int) -> None:
    """Make the k-th spare the current state of tree node ``t``; the old one becomes that spare."""
    s = rt.at[SLOT, t]
    rt.at[SLOT, t] = rt.at[SPARE, k]
    rt.at[SPARE, k] = s


@inner(allocates=False)
def level_of(t: int) -> int:
    k = 0
    while t > 0:
        t = (t - 1) // 2
        k += 1
    return k


@inner(allocates=False)
def side_towards(place: int, t: int) -> float:
    """Side taken at ``t`` on the way to ``place``: -1 left, +1 right, 0 if ``place`` is ``t`` itself; 2 if the way does
    not lead through ``t``."""
    if place == t:
        return 0.0
    side = 2.0
    while place > t:
        side = 1.0 if place % 2 == 0 else -1.0
        place = (place - 1) // 2
    return side if place == t else 2.0


@inner(allocates=False)
def child_by_margin(t: int, h: float) -> int:
    """The child of ``t`` that a sample with this margin goes to."""
    return 2 * t + 2 if h >= -TOL else 2 * t + 1


@inner(allocates=False)
def headed(ws: Workspace, rt: Routing, t: int, i: int) -> int:
    """The child of ``t`` that the current hyperplane sends sample ``i`` to."""
    return child_by_margin(t, ws.f[rt.at[SLOT, t], H, i])


@inner(allocates=False)
def in_band(h: float, eps: float) -> bool:
    return h < -TOL and h > -eps + TOL
