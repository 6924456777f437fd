"""The search of `listed_supports` that leaves a proof behind: what raises bounds is taken down as steps of it
(docs/proof.md)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels.implied_sides import Place, Placed, Terms, tell
from margotree.engines.exact.kernels.listed_supports import (
    AHEAD,
    Samples,
    Table,
    few_cells,
    free_of_charge,
    gather,
    least,
    on_support,
    settle_one_class,
)
from margotree.engines.exact.kernels.merged_samples import Members
from margotree.engines.exact.kernels.node_multipliers import Desk, is_unknown, lift, new_desk, of_hyperplane, put_point
from margotree.engines.exact.kernels.proof_bytes import EACH, LEAD, RAISE, RAISED, Pen, put, put_head
from margotree.engines.numba_backend import inner, kernel

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: What may be known of a support's bound: that it is to be raised, that it is exact, that nothing raises it further.
OPEN, EXACT, STUCK = 0, 1, 2


@kernel()
def search(
    samples: Samples, terms: Terms, placed: Placed, t: int, who: I8, side: F8, place: I8, known: Place, cutoff: float,
    table: Table, ids: I8, lb: F8, state: NDArray[np.int8], target: float, tol: float, work: F8, unsure: float,
    numbers: I8, pen: Pen,
) -> tuple[int, bool, int, int]:  # fmt: skip
    """Raise the least of the bounds ``lb`` of the supports ``ids`` of tree node ``t`` until it is exact to ``tol`` or
    at least ``target``, and write down why; ``who`` gets there, and takes these sides.

    A bound is raised to what its multipliers prove, up to a share ``unsure``; where many samples are alike on a
    support, these raise bounds of other supports, too.  Where samples count of which the proof does not know enough, it
    is told more (`followed.follow`, which says what ``known``, ``cutoff`` and ``numbers`` are); what it cannot be told
    is not raised.  ``state`` tells of every support what is known of its bound, `OPEN` at first.  Returns the position
    of the least bound, whether the search is over (if not, it goes on once the bytes are taken away), where the bytes
    end, and how many steps they are.
    """
    at = steps = 0
    if free_of_charge(samples, who, side):
        p = least(lb)
        settle_one_class(samples, table, ids[p], who)
        state[p] = EXACT
        return p, True, at, steps
    members, small = _members_of(samples, terms, t, who, side, known), gather(samples, t, who, side)
    desk, v = new_desk(samples, members), np.empty(who.size)
    best = target
    for q in range(ids.size):
        best = min(best, lb[q]) if state[q] == EXACT else best
    while True:
        p = least(lb)
        if lb[p] >= target or state[p] != OPEN or work[1, 1] != 0.0:
            return p, True, at, steps
        # A support behind the best so far need not be known exactly, only to be well behind it.
        goal = min(target, best + AHEAD * (target - best))
        value, sure = on_support(samples, small, desk.cells, table, ids[p], terms.eps, goal, tol, work[1, 1:2])
        if value > lb[p]:
            at, told, proved, enough = raised(
                samples, terms, placed, t, members, desk, place, known, cutoff, table, ids[p], lb[p], numbers, pen, at,
                v,
            )  # fmt: skip
            steps += told
            if not enough:
                return p, False, at, steps
            if proved > lb[p] and few_cells(samples, table.cols[ids[p], : table.size[ids[p]]], who.size):
                lift(samples, members, desk, terms.eps, v, table, ids, lb, goal)
            lb[p] = max(lb[p], value if proved >= value * (1.0 - unsure) else proved)
        state[p] = EXACT if sure and lb[p] >= value * (1.0 - tol) else STUCK
        if sure and value < goal:
            best = min(best, value)


@inner()
def raised(
    samples: Samples, terms: Terms, placed: Placed, t: int, members: Members, desk: Desk, place: I8, known: Place,
    cutoff: float, table: Table, s: int, before: float, numbers: I8, pen: Pen, at: int, v: F8,
) -> tuple[int, int, float, bool]:  # fmt: skip
    """Write, from ``at`` on, the step that raises the bound ``before`` of support ``s``, whose multipliers go to ``v``.

    Returns where the bytes end, how many steps they are, what they prove (0 if nothing), and whether there was room.
    """
    steps = turn = 0
    balance, value = of_hyperplane(samples, members, desk, terms.eps, table, s, v)
    while turn < 2 and balance >= 0 and value > before:
        if at + RAISE + LEAD + EACH * v.size > pen.out.size:
            return at, steps, 0.0, False
        end = put_point(members, terms.eps, v, balance, terms.unit, pen, at + RAISE, desk.some)
        if end > 0:
            put(pen, put_head(pen, at, RAISED, numbers[0]), t, 2)
            return end, steps + 1, value, True
        if turn == 0:
            asked = _asked(members, desk, terms.eps, v, balance)
            at, told, enough = tell(samples, terms, placed, place, known, asked, cutoff, numbers, pen, at)
            steps += 2 * told
            if not enough:
                return at, steps, 0.0, False
            for i in range(v.size):
                members.known[i] = terms.sides[t, known[members.who[i]]]
            balance, value = of_hyperplane(samples, members, desk, terms.eps, table, s, v)
        turn += 1
    return at, steps, 0.0, True


@inner()
def _members_of(samples: Samples, terms: Terms, t: int, who: I8, side: F8, known: Place) -> Members:
    k = who.size
    y, cost, knows = np.empty(k), np.empty(k), np.empty(k)
    for i in range(k):
        y[i], cost[i], knows[i] = samples.y[who[i]], terms.cost[t, who[i]], terms.sides[t, known[who[i]]]
    return Members(who, y, side, cost, knows)


@inner()
def _asked(members: Members, desk: Desk, eps: float, v: F8, balance: int) -> I8:
    """The samples that count of which the proof does not know enough."""
    count = 0
    for i in range(v.size):
        if is_unknown(members, eps, i, v, balance):
            desk.some[count] = members.who[i]
            count += 1
    return desk.some[:count]
