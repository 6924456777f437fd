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
# Codes of a class at a tree node (`sample_items`): its samples have no loss there yet, the loss below their corners,
# the one above, both of them, or the one of the side that a sample takes.  BELOW and ABOVE are labels as well.
OPEN, BELOW, ABOVE, BOTH, BY_SIDE = (np.int64(code) for code in (0, 1, -1, 2, 3))
#: Spare slots: three for the probed candidate, three for the best one so far, two for exchanges.
SPARES = 8
#: Tolerance of violations; and of those of settled search nodes, whose bounds have to be accurate.
TOL, TIGHT = 1e-7, 1e-11


@struct
class Routing(NamedTuple):
    """The state of one worker's current search node apart from its node problems.

    Items of the workspace are the samples (twice where a task has losses on both sides) and, where weights are bounded,
    two hard rows per feature, which belong to every tree node. A candidate for branching is a sample; with feature
    penalties a feature of a tree node, whose number is the number of items + n t + j; or the choice of a class at a
    tree node, whose number is ``first_choice`` + K t + k for K classes.
    """

    at: I8
    score: F8
    T: int  # tree nodes
    eps: float
    samples: int
    items: int  # items of samples
    limit: float  # the largest weight, in the units of its rows
    group: I8  # the class of each sample
    code: I8  # (tree nodes + 2, classes): the code of each class, and two rows of scratch
    guess: I8  # (tree nodes, classes): the same, with the best choice for the current hyperplanes where none is made
    loss: F8  # (tree nodes, classes, fields): losses of classes whose choice is open (`class_choices`)
    n_groups: int  # classes
    chooses: bool  # whether classes have choices
    third_cost: float  # the least loss of a sample of a third class at a last-level node, in units of its cost
    first_choice: int


class SampleItems(NamedTuple):
    """The losses of the samples of a problem as items; see `sample_items`."""

    group: I8  # the class of each sample
    code: I8  # (tree nodes, classes)
    cost: F8  # (tree nodes, items)
    corner: F8  # (tree nodes, items)
    chooses: bool
    third_cost: float


def new_memory(
    X: F8,
    samples: SampleItems,
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
    X
        Samples.
    samples
        Their losses.
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
    m, n = X.shape
    T, items = samples.cost.shape
    K = samples.code.shape[1]
    penalised = penalties is not None and not without_penalties
    sides = np.repeat([1.0, -1.0], n if limit < np.inf else 0)  # of the rows that limit weights
    points = X if items == m else np.vstack([X, X])
    cost, corner = samples.cost, samples.corner
    total = items + len(sides)
    if len(sides):
        points = np.vstack([points, weight_limit_rows(n, limit)])
        cost, corner = np.hstack([cost, np.zeros((T, len(sides)))]), np.hstack([corner, np.ones((T, len(sides)))])
    c = (np.arange(total) < items).astype(float)
    ws = new_workspace(points, c, cost, penalties, corner=corner, with_penalties=penalised, spares=SPARES, reach=reach)
    ws.fixed[LABEL, items:] = -sides
    at = np.zeros((3, max(T, SPARES, m)), np.int64)
    at[SLOT, :T] = np.arange(T)
    at[SPARE, :SPARES] = np.arange(T, T + SPARES)
    first_choice = total + T * n * penalised
    score = np.zeros((5, first_choice + T * K * samples.chooses))
    score[ACCURACY:] = 0.5
    code = np.vstack([samples.code, np.zeros((2, K), np.int64)])
    rt = Routing(
        at=at, score=score, T=T, eps=eps, samples=m, items=items, limit=scaled_weight_limit(limit),
        group=samples.group, code=code, guess=samples.code.copy(), loss=np.zeros((T, K, 5)), n_groups=K,
        chooses=samples.chooses, third_cost=samples.third_cost, first_choice=first_choice,
    )  # fmt: skip
    return ws, rt


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
