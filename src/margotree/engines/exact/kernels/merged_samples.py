"""The samples that reach a tree node, as a proof sees them; on few features that are yes or no many are alike."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels.listed_supports import I4, Cells, Samples, kinds_of
from margotree.engines.numba_backend import inner

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: Shares this small of a multiplier are rounding.
_NOTHING = 1e-14


class Members(NamedTuple):
    """Samples that reach a tree node, their labels, the side each takes there (0: not known), what it costs in the
    proof, and the side that the proof knows (`NOT_HERE`: it does not know that the sample gets there)."""

    who: I8
    y: F8
    side: F8
    cost: F8
    known: F8


@inner()
def made_one(samples: Samples, members: Members, cells: Cells, s: int, cols: I8) -> tuple[Members, I4]:
    """Those of a kind as one member (`listed_supports.merged`), and the number of everyone's kind."""
    kind, first = kinds_of(samples, cells, s, cols)
    cost = np.zeros(first.size)
    for i in range(kind.size):
        cost[kind[i]] += members.cost[i]
    side = members.side[first]
    return Members(members.who[first], members.y[first], side, cost, side), kind


@inner()
def shared_out(members: Members, kind: I4, few: Members, total: F8, balance: int, v: F8) -> int:
    """Multipliers of members from the ``total`` of their kind: each in full or nothing, but for one per kind.

    A bound hears of the total only, and a proof lists few numbers then.  What the proof knows of comes first.  Returns
    the member that balances the others, which is of the kind ``balance``, -1 if there is none.
    """
    left, one = total.copy(), np.full(total.size, -1, np.int64)
    # No branches over members: nobody could guess which kind comes next.
    share, listed = np.zeros(total.size), np.zeros(total.size, np.int64)
    for q in range(total.size):
        share[q] = 1.0 if q != balance and total[q] == few.cost[q] else 0.0
        counts = q == balance or total[q] != 0.0 or few.side[q] == -few.y[q]
        listed[q] = 1 if share[q] == 0.0 and counts else 0
    some, count = np.empty(v.size + 1, np.int64), 0
    for i in range(v.size):
        q = kind[i]
        v[i] = members.cost[i] * share[q]
        some[count] = i
        count += listed[q]
    unknown = 0  # those of whom the proof knows less come after the others
    for r in range(count):
        i = some[r]
        if members.known[i] == members.side[i]:
            _give(members, kind, i, total, left, one, v)
        else:
            some[unknown], some[r] = i, some[unknown]
            unknown += 1
    for r in range(unknown):
        _give(members, kind, some[r], total, left, one, v)
    for q in range(total.size):  # beyond full cost, or short of it, where the side is known
        i = one[q]
        if i >= 0 and members.side[i] == (members.y[i] if left[q] > 0.0 else -members.y[i]):
            v[i] += left[q] if abs(left[q]) > _NOTHING * members.cost[i] else 0.0
    if one[balance] >= 0 and members.side[one[balance]] == 0.0:
        _give_room(members, kind, some[:count], one[balance], v)
    return one[balance]


@inner(allocates=False)
def _give(members: Members, kind: I4, i: int, total: F8, left: F8, one: I8, v: F8) -> None:
    """Member ``i`` takes of what is ``left`` of its kind's total as much as it can; ``one`` is the one of its kind that
    may be given more."""
    side, cost, q = members.side[i], members.cost[i], kind[i]
    against = side == -members.y[i]
    v[i] = cost if against else min(cost, left[q]) if left[q] > _NOTHING * total[q] else 0.0
    left[q] -= v[i]
    if v[i] > 0.0 and (one[q] < 0 or side == 0.0):
        one[q] = i


@inner()
def _give_room(members: Members, kind: I4, some: I8, b: int, v: F8) -> None:
    """Keep the multiplier that balances the others off the ends of its range, if another of its kind can help."""
    cost, full, other = members.cost, v[b] > 0.5 * members.cost[b], -1
    for r in range(some.size):
        i = some[r]
        better = other < 0 or members.known[other] != members.side[other]
        if better and i != b and kind[i] == kind[b] and v[i] == (0.0 if full else cost[i]):
            other = i
    if other >= 0:
        part = 0.5 * min(cost[other], cost[b]) * (1.0 if full else -1.0)
        v[other] += part
        v[b] -= part
