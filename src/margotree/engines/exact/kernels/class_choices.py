"""Choices of classes as candidates for branching, and the best choices for the current hyperplanes.

At an upper node every class has a target side, at a last-level node two classes are labels of leaves. The loss of a
class whose choice is open is not part of the bound.
"""

from __future__ import annotations

from margotree.engines.exact.kernels.feature_decisions import rank
from margotree.engines.exact.kernels.routing import (
    ABOVE,
    ACCURACY,
    BELOW,
    BOTH,
    ESTIMATE,
    OPEN,
    OTHER_ACCURACY,
    OTHER_ESTIMATE,
    PLACE,
    SCORE,
    SLOT,
    Routing,
    headed,
)
from margotree.engines.exact.kernels.sample_items import ALL_LEFT, ALL_RIGHT, KNOWN_LEFT, KNOWN_RIGHT
from margotree.engines.exact.kernels.side_costs import FLOOR
from margotree.engines.node.kernels.workspace import CORNER, COST, I8, H, Workspace
from margotree.engines.numba_backend import inner


@inner(allocates=False)
def class_of(rt: Routing, i: int) -> tuple[int, int]:
    """The tree node and the class of a candidate that is a choice."""
    return (i - rt.first_choice) // rt.n_groups, (i - rt.first_choice) % rt.n_groups


@inner(allocates=False)
def is_headed_first(rt: Routing, t: int, k: int) -> bool:
    """Whether the best choice of a class is the first side of a decision about it: left, or a label."""
    if t < rt.T // 2:
        return rt.guess[t, k] == ABOVE
    return rt.guess[t, k] != BOTH


@inner(allocates=False)
def guess_choices(ws: Workspace, rt: Routing) -> None:
    """Find the best choices for the current hyperplanes, given what is decided."""
    loss = rt.loss
    for t in range(rt.T):
        for k in range(rt.n_groups):
            rt.guess[t, k] = rt.code[t, k]
            for field in range(4):
                loss[t, k, field] = 0.0
    for i in range(rt.samples):
        t = rt.at[PLACE, i]
        up = t
        _add_losses(ws, rt, t, i, True)
        while up > 0:
            up = (up - 1) // 2
            _add_losses(ws, rt, up, i, True)
        while 2 * t + 1 < rt.T:
            t = headed(ws, rt, t, i)
            _add_losses(ws, rt, t, i, False)
    for t in range(rt.T):
        if t < rt.T // 2:
            _guess_sides(rt, t)
        else:
            _guess_labels(rt, t)


@inner(allocates=False)
def _add_losses(ws: Workspace, rt: Routing, t: int, i: int, known: bool) -> None:
    """Add the losses of sample ``i`` at tree node ``t`` to those of its class, if its choice is open."""
    k = rt.group[i]
    if rt.code[t, k] != OPEN:
        return
    h, cost, corner = ws.f[rt.at[SLOT, t], H, i], ws.fixed[COST + 2 * t, i], ws.fixed[CORNER + 2 * t, i]
    right, left = cost * max(0.0, corner - h), cost * max(0.0, corner + h)
    rt.loss[t, k, ALL_RIGHT] += right
    rt.loss[t, k, ALL_LEFT] += left
    if known:
        rt.loss[t, k, KNOWN_RIGHT] += right
        rt.loss[t, k, KNOWN_LEFT] += left


@inner(allocates=False)
def _guess_sides(rt: Routing, t: int) -> None:
    """The best sides of an upper node: each class where it has the smaller loss, but not all on the left."""
    right, best = False, -1
    for k in range(rt.n_groups):
        if rt.code[t, k] == OPEN:
            excess = rt.loss[t, k, ALL_RIGHT] - rt.loss[t, k, ALL_LEFT]
            rt.guess[t, k] = BELOW if excess <= 0.0 else ABOVE
            if best < 0 or excess < rt.loss[t, best, ALL_RIGHT] - rt.loss[t, best, ALL_LEFT]:
                best = k
        right |= rt.guess[t, k] == BELOW
    if not right and best >= 0:
        rt.guess[t, best] = BELOW


@inner(allocates=False)
def _guess_labels(rt: Routing, t: int) -> None:
    """The best labels of a last-level node: the two that save most; others have losses on both sides."""
    loss = rt.loss
    labels = 0
    for k in range(rt.n_groups):
        labels += rt.code[t, k] == BELOW or rt.code[t, k] == ABOVE
    one, two, most = -1, -1, -1.0
    for a in range(rt.n_groups):
        if rt.code[t, a] != OPEN:
            continue
        rt.guess[t, a] = BOTH
        if labels == 1 and loss[t, a, ALL_LEFT] > most:
            two, most = a, loss[t, a, ALL_LEFT]
        for b in range(rt.n_groups if labels == 0 else 0):
            if b != a and rt.code[t, b] == OPEN:
                saved = loss[t, a, ALL_RIGHT] + loss[t, b, ALL_LEFT]
                if saved > most:
                    one, two, most = a, b, saved
    if one >= 0:
        rt.guess[t, one] = ABOVE
    if two >= 0:
        rt.guess[t, two] = BELOW


@inner(allocates=False)
def choose_classes(rt: Routing, cand: I8, found: int) -> int:
    """Rank the open choices of classes with samples known to reach the node, after ``found`` other candidates."""
    score = rt.score
    for t in range(rt.T):
        for k in range(rt.n_groups):
            if rt.code[t, k] != OPEN:
                continue
            right, left = rt.loss[t, k, KNOWN_RIGHT], rt.loss[t, k, KNOWN_LEFT]
            both = right + left
            if both == 0.0:
                continue
            first, second = left, right
            if t >= rt.T // 2:
                first, second = min(right, left), both
            i = rt.first_choice + rt.n_groups * t + k
            same, other = (first, second) if is_headed_first(rt, t, k) else (second, first)
            score[ESTIMATE, i] = same + FLOOR * both
            score[OTHER_ESTIMATE, i] = other + FLOOR * both
            score[SCORE, i] = (
                score[ESTIMATE, i] * score[ACCURACY, i] * score[OTHER_ESTIMATE, i] * score[OTHER_ACCURACY, i]
            )
            found = rank(rt, i, cand, found)
    return found
