"""What raised the bounds of supports, taken down as steps of a proof (docs/proof.md)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.bnb.kernels.followed import Place, Placed, Terms, tell
from margotree.engines.bnb.kernels.listed_supports import Samples, Table
from margotree.engines.bnb.kernels.members import Members
from margotree.engines.bnb.kernels.multipliers import Desk, is_unknown, new_desk, of_hyperplane, put_point
from margotree.engines.bnb.kernels.points import EACH, LEAD, RAISE, RAISED, Pen, put, put_head
from margotree.engines.kernels.jit import inner, kernel

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]


@kernel()
def take_down(
    samples: Samples, terms: Terms, placed: Placed, t: int, who: I8, side: F8, place: I8, known: Place, target: float,
    table: Table, ids: I8, before: F8, lb: F8, first: int, unsure: float, numbers: I8, pen: Pen,
) -> tuple[int, int, int, bool]:  # fmt: skip
    """Write the steps that raised the bounds ``before`` of supports ``ids`` of tree node ``t`` to ``lb``, from the
    ``first`` on; ``who`` gets there, and takes these sides.

    A bound that its multipliers miss by more than a share ``unsure`` is lowered to what they reach.  Where samples
    count of which the proof does not know enough, it is told more (`followed.follow`, which says what ``known``,
    ``target`` and ``numbers`` are); what it cannot be told is not raised.  Returns with which support it goes on once
    the bytes are taken away, where they end, how many steps they are, and whether a bound was lowered.
    """
    members = _members_of(samples, terms, t, who, side, known)
    desk, v = new_desk(samples, members), np.empty(who.size)
    at = steps = 0
    lowered = False
    for p in range(first, ids.size):
        if not lb[p] > before[p]:
            continue
        balance, value = of_hyperplane(samples, members, desk, terms.eps, table, ids[p], v)
        end, turn = 0, 0
        while end == 0 and turn < 2 and balance >= 0 and value > before[p]:
            if at + RAISE + LEAD + EACH * who.size > pen.out.size:
                return p, at, steps, lowered
            end = put_point(members, terms.eps, v, balance, terms.unit, pen, at + RAISE, desk.some)
            if end == 0 and turn == 0:
                asked = _asked(members, desk, terms.eps, v, balance)
                at, told, enough = tell(samples, terms, placed, place, known, asked, target, numbers, pen, at)
                steps += 2 * told
                if not enough:
                    return p, at, steps, lowered
                for i in range(who.size):
                    members.known[i] = terms.sides[t, known[who[i]]]
                balance, value = of_hyperplane(samples, members, desk, terms.eps, table, ids[p], v)
            turn += 1
        if end > 0:
            put(pen, put_head(pen, at, RAISED, numbers[0]), t, 2)
            at, steps = end, steps + 1
        else:
            value = before[p]
        if value < lb[p] * (1.0 - unsure):
            lb[p], lowered = max(before[p], value), True
    return ids.size, at, steps, lowered


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
