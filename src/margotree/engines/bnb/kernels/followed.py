"""Sides that follow from others: multipliers which show that sides are too close to be told apart (docs/proof.md).

A sample goes to one side of a tree node if no split worth considering sends it to the other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.bnb.kernels.hulls import first_pair, nearest
from margotree.engines.bnb.kernels.listed_supports import Samples
from margotree.engines.bnb.kernels.members import Members
from margotree.engines.bnb.kernels.multipliers import point, sum_of, value_of
from margotree.engines.bnb.kernels.points import CLOSED, EACH, LEAD, LEAF, SAMPLE, SPLIT, Pen, put, put_head, put_split
from margotree.engines.kernels.jit import inner, kernel

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
Place = NDArray[np.uint16]

#: Multipliers of sides too close to each other prove this much more than is asked for.
_AMPLE = 1.0 + 1e-6


@kernel()
def follow(
    samples: Samples, place: I8, known: Place, who: I8, sides: F8, t: int, eps: float, cols: I8, cost: F8,
    target: float, unit: float, numbers: I8, pen: Pen,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Have the proof know that samples ``who`` of tree node ``t`` go where their ``place`` says, if that can be shown:
    each takes a decision, and a leaf for the other side.

    ``sides`` tells the side at each tree node (row) of each place.  Kept up to date are ``known``, the places that the
    proof knows, and ``numbers``, the search node's and the first that is free.  Returns how many samples were looked at
    (less than all where there is no room for more bytes), how many of them are known now, where the bytes end, and
    where the point of the last leaf begins.
    """
    members, Z, y, k = _placed(samples, known, sides[t], cols, cost)
    T, m = sides.shape[0], place.size
    at = told = last = 0
    for q in range(who.size):
        if at + SPLIT + LEAF + T + LEAD + EACH * m > pen.out.size:
            return q, told, at, last
        j, side = who[q], sides[t, place[who[q]]]
        if known[j] != t or abs(side) != 1.0:
            continue
        _join(samples, members, Z, y, k, j, -side, cols, cost)
        begin = at + SPLIT + LEAF + t
        end, _ = _apart(samples.y, members, Z, y, k + 1, k, eps, target, unit, pen, begin)
        if end == 0:
            continue
        at, told, last = _steps(pen, at, end, t, T, j, side, numbers), told + 1, begin
        members.side[k] = side
        known[j] = 2 * t + (2 if side > 0.0 else 1)
        k += 1
    return who.size, told, at, last


@inner()
def _steps(pen: Pen, at: int, end: int, t: int, T: int, j: int, side: float, numbers: I8) -> int:
    """Write the decision about sample ``j`` and the leaf around the point that is written already."""
    left, right = numbers[1], numbers[1] + 1
    at = put_split(pen, at, SAMPLE, numbers[0], j, t, left, right)
    numbers[0], other = (right, left) if side > 0.0 else (left, right)
    numbers[1] += 2
    at = put_head(pen, at, CLOSED, other)
    for r in range(t):
        put(pen, at + r, 0, 1)
    for r in range(T - 1 - t):
        put(pen, end + r, 0, 1)
    return end + T - 1 - t


@kernel()
def too_close(
    samples: Samples, place: Place, sides: F8, j: int, side: float, eps: float, cols: I8, cost: F8, target: float,
    unit: float, pen: Pen,
) -> tuple[int, float]:  # fmt: skip
    """Write the multipliers which show that no split on features ``cols`` worth less than ``target`` sends sample ``j``
    to this side, others being where their ``place`` says (``sides`` tells the side of each place).

    With ``j`` -1 they show it of the others alone.  Returns where they end, 0 if none are found, and the value.
    """
    members, Z, y, k = _placed(samples, place, sides, cols, cost)
    if j < 0:
        return _apart(samples.y, members, Z, y, k, -1, eps, target, unit, pen, 0)
    _join(samples, members, Z, y, k, j, side, cols, cost)
    return _apart(samples.y, members, Z, y, k + 1, k, eps, target, unit, pen, 0)


@inner()
def _placed(samples: Samples, place: Place, sides: F8, cols: I8, cost: F8) -> tuple[Members, F8, F8, int]:
    """Those who take a side and how many they are, their features (one per row) and labels, with room for everybody."""
    m = place.size
    side = np.zeros(m + 1)
    members = Members(np.zeros(m + 1, np.int64), side, np.zeros(m + 1), side)
    Z, y = np.empty((cols.size, m + 1)), np.empty(m + 1)
    k = 0
    for i in range(m):
        if abs(sides[place[i]]) == 1.0:
            _join(samples, members, Z, y, k, i, sides[place[i]], cols, cost)
            k += 1
    return members, Z, y, k


@inner()
def _join(
    samples: Samples, members: Members, Z: F8, y: F8, k: int, i: int, side: float, cols: I8, cost: F8
) -> None:  # fmt: skip
    """Sample ``i`` at position ``k``, on this side."""
    members.who[k], members.side[k], members.cost[k], y[k] = i, side, cost[i], samples.y[i]
    for r in range(cols.size):
        Z[r, k] = samples.X[cols[r], i]


@inner()
def _apart(
    labels: F8, members: Members, Z: F8, y: F8, k: int, new: int, eps: float, target: float, unit: float, pen: Pen,
    at: int,
) -> tuple[int, float]:  # fmt: skip
    """Write the multipliers of the first ``k`` members, which show that no split worth less than ``target`` tells their
    sides apart; ``new`` is the one that is in question.  Returns where they end, 0 if none are found, and the value."""
    side = members.side[:k]
    members, y = Members(members.who[:k], side, members.cost[:k], side), y[:k]
    target *= _AMPLE
    right, left = first_pair(Z, side, new)
    if right < 0 or left < 0:
        return 0, -np.inf
    v = np.empty(k)
    distance = nearest(Z, side, right, left, 0.5 * eps * eps / target, v)
    most = 2.0 * target / eps
    scale = min(most, eps / distance) if distance > 0.0 else most
    balance = 0
    for i in range(k):
        v[i] *= y[i] * scale
        if abs(v[i]) > abs(v[balance]):
            balance = i
    v[balance] -= y[balance] * sum_of(y, v)
    value = value_of(Z, y, members.cost, side, eps, v, k)
    return (point(labels, members, v, balance, False, unit, pen, at) if value >= target else 0), value
