"""The place of every sample in the tree, the slot of the workspace that holds each tree node, and the arithmetic of
parents and children.

Every tree node has a slot; the other slots are spare ones, in which candidates are tried.
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
    index_constants,
    new_workspace,
    scaled_weight_limit,
    weight_limit_rows,
)
from margotree.engines.numba_backend import inner, struct

# Rows of ``at``: the slot of each tree node, the spare slots, the place of each sample (the deepest tree node that it
# is known to reach).
SLOT, SPARE, PLACE = index_constants(3)
# Rows of ``score``: the score of each candidate for branching; the estimated rise of the bound on the side that the
# current hyperplane gives, and on the other; running means of the true rise divided by these two estimates.
SCORE, ESTIMATE, OTHER_ESTIMATE, ACCURACY, OTHER_ACCURACY = index_constants(5)
#: Spare slots: three for the probed candidate, three for the best one so far, two for exchanges.
SPARES = 8
#: Tolerance of violations; and of those of settled search nodes, whose bounds have to be accurate.
TOL, TIGHT = 1e-7, 1e-11


@struct
class Routing(NamedTuple):
    """The state of one worker's current search node apart from its node problems.

    Items of the workspace are the samples and, where weights are bounded, two hard rows per feature, which belong to
    every tree node. A candidate for branching is a sample or, with feature penalties, a feature of a tree node, whose
    number is the number of items + n t + j.
    """

    at: I8
    score: F8
    T: int  # tree nodes
    eps: float
    samples: int
    limit: float  # the largest weight, in the units of its rows


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
    """Allocate the empty memory of one worker.

    Parameters
    ----------
    X, y
        Samples and labels.
    cost
        Penalties of margin violations, with one row per tree node.
    eps
        The band.
    penalties
        One row per tree node: the feature penalty and the budget.
    without_penalties
        Leave feature penalties out of the node problems; bounds contain a part of them.
    reach
        The largest possible ``|b|`` at any node of a tree better than the incumbent.
    limit
        The largest allowed weight.
    """
    (samples, n), T = X.shape, len(cost)
    penalised = penalties is not None and not without_penalties
    sides = np.repeat([1.0, -1.0], n if limit < np.inf else 0)  # of the rows that limit weights
    m = samples + len(sides)
    if len(sides):
        X, cost = np.vstack([X, weight_limit_rows(n, limit)]), np.hstack([cost, np.zeros((T, len(sides)))])
    c = (np.arange(m) < samples).astype(float)
    ws = new_workspace(X, c, cost, penalties, with_penalties=penalised, spares=SPARES, reach=reach)
    ws.fixed[LABEL] = np.concatenate([y, -sides])
    at = np.zeros((3, max(T, SPARES, m)), np.int64)
    at[SLOT, :T] = np.arange(T)
    at[SPARE, :SPARES] = np.arange(T, T + SPARES)
    score = np.zeros((5, m + T * n * penalised))
    score[ACCURACY:] = 0.5
    return ws, Routing(at=at, score=score, T=T, eps=eps, samples=samples, limit=scaled_weight_limit(limit))


@inner(allocates=False)
def swap_in(rt: Routing, t: int, k: int) -> None:
    """Make the k-th spare slot the current state of tree node ``t``, and the old slot the k-th spare one."""
    s = rt.at[SLOT, t]
    rt.at[SLOT, t] = rt.at[SPARE, k]
    rt.at[SPARE, k] = s


@inner(allocates=False)
def level_of(t: int) -> int:
    """The level of tree node ``t``."""
    k = 0
    while t > 0:
        t = (t - 1) // 2
        k += 1
    return k


@inner(allocates=False)
def side_towards(place: int, t: int) -> float:
    """The side taken at ``t`` on the path to ``place``: -1 left, 1 right, 0 if ``place`` is ``t`` itself, 2 if ``t`` is
    not on the path."""
    if place == t:
        return 0.0
    side = 2.0
    while place > t:
        side = 1.0 if place % 2 == 0 else -1.0
        place = (place - 1) // 2
    return side if place == t else 2.0


@inner(allocates=False)
def child_by_margin(t: int, h: float) -> int:
    """The child of ``t`` that a sample with the signed value ``h`` goes to."""
    return 2 * t + 2 if h >= -TOL else 2 * t + 1


@inner(allocates=False)
def headed(ws: Workspace, rt: Routing, t: int, i: int) -> int:
    """The child of ``t`` that the current hyperplane sends sample ``i`` to."""
    return child_by_margin(t, ws.f[rt.at[SLOT, t], H, i])


@inner(allocates=False)
def in_band(h: float, eps: float) -> bool:
    """Whether the value ``h`` of a hyperplane lies in the band."""
    return h < -TOL and h > -eps + TOL
