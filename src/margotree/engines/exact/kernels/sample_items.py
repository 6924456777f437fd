"""The items of samples at the nodes of a tree: which losses a sample has there, given what is decided.

A sample has a *class*, and every tree node a code for each class, which says which losses of a sample of this class
count there: none as long as the choice of the class is open, the loss below its corner (the sample should be right),
the loss above it (left), both of them, or the one of the side that the sample takes.  Item ``i`` of the workspace is
sample ``i``; where a task has losses on both sides, item ``n_samples + i`` is its loss above.

Tasks without choices have codes that do not change.  Where the sides of classes and the labels of leaves are to be
chosen, the codes are decisions of the search: ``decided_codes`` says what follows from one, and ``set_codes`` adds the
items.
"""

from __future__ import annotations

from margotree.engines.exact.kernels.routing import (
    ABOVE,
    BELOW,
    BOTH,
    BY_SIDE,
    OPEN,
    PLACE,
    TOL,
    Routing,
    side_towards,
)
from margotree.engines.node.kernels import cholesky
from margotree.engines.node.kernels.active_set import add_hard_row
from margotree.engines.node.kernels.safe_bounds import ROUNDOFF
from margotree.engines.node.kernels.workspace import (
    AT_COST,
    AT_HARD,
    AT_LOWER,
    CONSTANT,
    CORNER,
    COST,
    DELTA,
    FIRM,
    FREE,
    KIND,
    N_FREE,
    NODE,
    NU,
    NUM,
    PENDING_HARD,
    PENDING_MARGIN,
    RIGHT,
    STATUS,
    VALUE,
    WRONG,
    O,
    Workspace,
    add_item,
    corner_of,
    cost_of,
    index_constants,
    set_status,
)
from margotree.engines.numba_backend import inner

# Fields of ``Routing.loss``, sums over samples whose class is open: loss if they should be right, and if left, of the
# samples known to reach the node and of all that are headed there; and scratch.
KNOWN_RIGHT, KNOWN_LEFT, ALL_RIGHT, ALL_LEFT, MASS = index_constants(5)
#: Both losses of a sample of a third class cost at least this share of twice its cost, whatever the rounding.
_SAFE = 1.0 - 1e-12


@inner(allocates=False)
def add_sample(ws: Workspace, rt: Routing, s: int, t: int, i: int) -> None:
    """Add the items of a sample that reaches tree node ``t``, whose slot is ``s``, and whose side there is open."""
    _add_by_code(ws, rt, s, i, rt.code[t, rt.group[i]])


@inner(allocates=False)
def _add_by_code(ws: Workspace, rt: Routing, s: int, i: int, code: int) -> None:
    """Add the items of sample ``i`` for this code."""
    if code == BELOW or code == ABOVE:
        add_item(ws, s, i, float(code))
    elif code == BOTH:
        second = rt.samples + i
        add_item(ws, s, i, 1.0)
        add_item(ws, s, second, -1.0)
        cost, corners = cost_of(ws, s, i), corner_of(ws, s, i) + corner_of(ws, s, second)
        if cost == cost_of(ws, s, second) and corners > 0.0:
            # Multipliers at their costs cancel in w, so that this is a better start than 0.
            set_status(ws, s, i, AT_COST)
            set_status(ws, s, second, AT_COST)
            ws.g[s, NUM, VALUE] += cost * corners * (1.0 - 4.0 * ROUNDOFF)


@inner(allocates=False)
def add_side(ws: Workspace, rt: Routing, s: int, t: int, i: int, side: float) -> None:
    """Require that sample ``i``, whose items are in slot ``s``, takes this side at the upper node ``t``."""
    delta = 0.0 if side > 0 else rt.eps
    code = rt.code[t, rt.group[i]]
    if code == OPEN:
        add_item(ws, s, i, side)
        ws.k[s, KIND, i] = FIRM
        ws.f[s, DELTA, i] = delta
        set_status(ws, s, i, AT_LOWER)
        return
    if code == BY_SIDE:
        add_item(ws, s, i, side)
    add_hard_row(ws, s, i, side, delta)


@inner(allocates=False)
def changes_node(ws: Workspace, rt: Routing, t: int, i: int, h: float, side: float) -> bool:
    """Whether a node's solution changes if sample ``i``, whose value there is ``h``, takes the side it is headed to."""
    if side < 0 and h > -rt.eps + TOL:
        return True
    return rt.code[t, rt.group[i]] == BY_SIDE and side * h < ws.fixed[CORNER + 2 * t, i] - TOL


# -- choices of classes ------------------------------------------------------------------------------------------------


@inner(allocates=False)
def decided_codes(rt: Routing, t: int, k: int, first: bool) -> None:
    """Write the codes of tree node ``t`` after a decision about class ``k`` to the last row of ``rt.code``.

    At an upper node the first side of the decision is "left" and the second one "right"; the sides of a node are not
    all equal.  At a last-level node they are "a label" and "no label": two classes are labels, and the first of them is
    that of the left leaf.
    """
    row, K = rt.T, rt.n_groups
    for q in range(K):
        rt.code[row, q] = rt.code[t, q]
    if t < rt.T // 2:
        rt.code[row, k] = ABOVE if first else BELOW
        undecided, right = 0, 0
        for q in range(K):
            undecided += rt.code[row, q] == OPEN
            right += rt.code[row, q] == BELOW
        if right == 0 and undecided == 1:
            for q in range(K):
                if rt.code[row, q] == OPEN:
                    rt.code[row, q] = BELOW
        return
    rt.code[row, k] = BOTH
    if first:
        _add_label(rt, row, k)
    labels, undecided = 0, 0
    for q in range(K):
        undecided += rt.code[row, q] == OPEN
        labels += rt.code[row, q] == BELOW or rt.code[row, q] == ABOVE
    for q in range(K):
        if rt.code[row, q] == OPEN:
            if labels == 2:
                rt.code[row, q] = BOTH
            elif labels + undecided == 2:
                _add_label(rt, row, q)


@inner(allocates=False)
def _add_label(rt: Routing, row: int, k: int) -> None:
    """Make class ``k`` the label of the left leaf, or of the right one if there is a left label."""
    left = False
    for q in range(rt.n_groups):
        left |= rt.code[row, q] == ABOVE
    rt.code[row, k] = BELOW if left else ABOVE


@inner(allocates=False)
def set_codes(ws: Workspace, rt: Routing, s: int, t: int) -> None:
    """Change slot ``s``, a copy of tree node ``t``, to the codes in the last row of ``rt.code``."""
    eps = rt.eps
    for i in range(rt.samples):
        k = rt.group[i]
        code = rt.code[rt.T, k]
        if code == rt.code[t, k]:
            continue
        side = side_towards(rt.at[PLACE, i], t)
        if side == 0.0:
            _add_by_code(ws, rt, s, i, code)
        elif side != 2.0:
            _add_loss(ws, s, i, float(code), side, 0.0 if side > 0 else eps)
    set_constant(ws, rt, s, t, rt.T, -1)


@inner(allocates=False)
def _add_loss(ws: Workspace, s: int, i: int, label: float, side: float, delta: float) -> None:
    """Add the loss of an item that is a hard row only: ``label`` is the side without a loss."""
    f, k, nu = ws.f, ws.k, ws.f[s, NU, i]
    cost, corner = ws.fixed[COST + 2 * ws.cnt[s, NODE], i], corner_of(ws, s, i)
    if label == side and delta >= corner:
        return
    if k[s, STATUS, i] == AT_HARD:
        for p in range(ws.cnt[s, N_FREE]):
            if k[s, FREE, p] == i:
                cholesky.drop(ws, s, p)
                break
    if label == side:
        ws.g[s, NUM, VALUE] += (corner - delta) * min(nu, cost) * (1.0 - 4.0 * ROUNDOFF)
        k[s, KIND, i] = RIGHT
        set_status(ws, s, i, AT_LOWER if nu == 0.0 else PENDING_MARGIN if nu < cost else PENDING_HARD)
        return
    ws.g[s, NUM, VALUE] += (corner + delta) * cost * (1.0 - 4.0 * ROUNDOFF)
    k[s, KIND, i] = WRONG
    f[s, O, i] = side
    set_status(ws, s, i, AT_LOWER if nu == -cost else PENDING_HARD)


@inner(allocates=False)
def set_constant(ws: Workspace, rt: Routing, s: int, t: int, row: int, extra: int) -> None:
    """Set the part of a last-level node's bound that no item has: of the classes with open choices all but the heaviest
    ones, as many as there are labels left, will have both losses.

    ``row`` is the row of ``rt.code`` with the codes, ``extra`` a sample that reaches the node and is not placed there
    yet (-1: none).
    """
    ws.g[s, NUM, CONSTANT] = 0.0
    if not rt.chooses or t < rt.T // 2:
        return
    K = rt.n_groups
    left = 2
    undecided = 0
    for k in range(K):
        rt.loss[t, k, MASS] = 0.0
        undecided += rt.code[row, k] == OPEN
        left -= rt.code[row, k] == BELOW or rt.code[row, k] == ABOVE
    if undecided <= left:
        return
    for i in range(rt.samples):
        if (rt.at[PLACE, i] == t or i == extra) and rt.code[row, rt.group[i]] == OPEN:
            rt.loss[t, rt.group[i], MASS] += ws.fixed[COST + 2 * t, i]
    total = 0.0
    for k in range(K):
        total += rt.loss[t, k, MASS]
    for _ in range(left):
        most = 0
        for k in range(K):
            if rt.loss[t, k, MASS] > rt.loss[t, most, MASS]:
                most = k
        total -= rt.loss[t, most, MASS]
        rt.loss[t, most, MASS] = 0.0
    ws.g[s, NUM, CONSTANT] = max(0.0, total) * rt.third_cost * _SAFE
