"""Multipliers of one tree node with few features, as a proof wants them (docs/proof.md): balanced, each in its range.

They are ``v_i = y_i mu_i``, and belong to a hyperplane found by Newton's method.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.bnb.kernels.leaves import NOT_HERE
from margotree.engines.bnb.kernels.listed_supports import Samples, Table, count_cells
from margotree.engines.bnb.kernels.members import Members, made_one, shared_out
from margotree.engines.bnb.kernels.points import EACH, LEAD, RAISE, RAISED, Pen, put, put_float, put_head
from margotree.engines.kernels.certain import two_sum
from margotree.engines.kernels.jit import inner, kernel

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: Multipliers of this share of their cost are at full cost.
_FULL = 1.0 - 1e-14
#: What a checker may take off for its rounding, at most: this many units per sample and size of a multiplier.
_UNITS = 8.0 * 2.0**-53


@kernel()
def raise_bounds(
    samples: Samples, members: Members, eps: float, table: Table, ids: I8, before: F8, lb: F8, first: int,
    unsure: float, unit: float, node: int, t: int, pen: Pen, ends: I8, v: F8,
) -> tuple[int, int, int]:  # fmt: skip
    """Write the steps of search node ``node`` that raised the bounds ``before`` of supports ``ids`` of tree node ``t``
    to ``lb``, from the ``first`` on.

    A bound that its multipliers miss by more than a share ``unsure`` is lowered to what they reach.  Ends early where
    there is no more room, and where samples count of which the proof does not know enough yet: then ``v`` holds the
    multipliers.  Returns with which support it goes on, how many steps were written (``ends`` tells where each ends),
    and the position of the member that balances the support with such samples (-1 if there is none).
    """
    k = members.who.size
    at = written = 0
    for p in range(first, ids.size):
        if not lb[p] > before[p]:
            continue
        if written == ends.size or at + RAISE + LEAD + EACH * k > pen.out.size:
            return p, written, -1
        balance, value = of_hyperplane(samples, members, eps, table, ids[p], v)
        if balance >= 0 and value > before[p]:
            for i in range(k):
                if _unknown(samples, members, eps, i, v, balance):
                    return p, written, balance
            at = put(pen, put_head(pen, at, RAISED, node), t, 2)
            at = point(samples.y, members, v, balance, True, unit, pen, at)
            ends[written] = at
            written += 1
        if value < lb[p] * (1.0 - unsure):
            lb[p] = max(before[p], value)
    return ids.size, written, -1


@inner()
def _unknown(samples: Samples, members: Members, eps: float, i: int, v: F8, balance: int) -> bool:
    """Whether a member counts in a bound that the proof knows too little of for its multiplier."""
    known, side, cost = members.known[i], members.side[i], members.cost[i]
    if i == balance:
        # Nobody knows the last digit of the one that balances, so its range must be the one that it was meant for.
        return known != side
    if known == NOT_HERE:
        return v[i] != 0.0
    if known == side or side == 0.0:
        return False
    against = side == -samples.y[members.who[i]]
    return v[i] < 0.0 or v[i] > cost or eps >= 1.0 or (against and v[i] < cost * (1.0 - 1e-12))


@kernel()
def all_unknown(samples: Samples, members: Members, eps: float, v: F8, balance: int) -> NDArray[np.bool_]:
    """Which members count that the proof knows too little of."""
    found = np.zeros(v.size, np.bool_)
    for i in range(v.size):
        found[i] = _unknown(samples, members, eps, i, v, balance)
    return found


@inner()
def point(y: F8, members: Members, v: F8, balance: int, rest: bool, unit: float, pen: Pen, at: int) -> int:
    """Write multipliers down; returns where they end.  With ``rest``, those sent against their label are taken to be at
    full cost and listed if they are not; else to be at 0."""
    full = given = 0
    listed = np.zeros(v.size, np.int8)
    lists = at + LEAD
    for i in range(v.size):
        taken = members.cost[i] if rest and members.known[i] == -y[members.who[i]] else 0.0
        if i != balance and v[i] != taken:
            if v[i] == members.cost[i]:
                put(pen, lists + 4 * full, members.who[i], 4)
                full += 1
            else:
                listed[i] = 1
    lists += 4 * full
    for i in range(v.size):
        if listed[i]:
            put(pen, lists + 4 * given, members.who[i], 4)
            given += 1
    end = lists + 4 * given
    for i in range(v.size):
        if listed[i]:
            end = put_float(pen, end, v[i] * unit)
    put(pen, at, 2 if rest else 3, 1)
    put(pen, at + 1, full, 4)
    put(pen, at + 5, given, 4)
    put(pen, at + 9, members.who[balance], 4)
    return end


@inner()
def of_hyperplane(samples: Samples, members: Members, eps: float, table: Table, s: int, v: F8) -> tuple[int, float]:
    """The dual point that belongs to the hyperplane last found on support ``s``, written to ``v``.

    Returns the position of the member that balances the others (-1: no point was found), and the value.  Newton's
    method ends at some width of the rounded losses, at which their slopes are the multipliers.
    """
    cols, k = table.cols[s, : table.size[s]], members.who.size
    theta, width, cells = table.theta[s, : cols.size + 1], table.width[s], count_cells(samples, cols)
    if 2 * cells > k:
        return _slopes(samples, members, eps, cols, theta, width, k, v)
    few, kind = made_one(samples, members, cols, cells)
    total = np.empty(few.who.size)
    balance, value = _slopes(samples, few, eps, cols, theta, width, k, total)
    if balance >= 0:
        balance = shared_out(samples.y[members.who], members, kind, total, balance, v)
    return balance, value


@inner()
def _slopes(
    samples: Samples, members: Members, eps: float, cols: I8, theta: F8, width: float, many: int, v: F8
) -> tuple[int, float]:
    """`of_hyperplane` of members that stand for so ``many`` samples."""
    side, cost = members.side, members.cost
    Z, y = _gathered(samples, members.who, cols)
    lack, pull = np.empty(y.size), np.empty(y.size)
    hard = max(np.max(cost), 1e-12) if cost.size > 0 else 1e-12
    for i in range(y.size):
        h = theta[cols.size]
        for r in range(cols.size):
            h += Z[r, i] * theta[r]
        lack[i] = 1.0 - y[i] * h
        held = max(0.0, (eps if side[i] < 0.0 else 0.0) - side[i] * h) if side[i] != 0.0 else 0.0
        pull[i] = y[i] * side[i] * held * hard
    balance = _at_width(y, cost, side, lack, pull, width, v)
    return balance, (value_of(Z, y, cost, side, eps, v, many) if balance >= 0 else -np.inf)


@inner()
def _gathered(samples: Samples, members: I8, cols: I8) -> tuple[F8, F8]:
    """These features of the members, one per row, and their labels."""
    Z, y = np.empty((cols.size, members.size)), np.empty(members.size)
    for i in range(members.size):
        y[i] = samples.y[members[i]]
        for r in range(cols.size):
            Z[r, i] = samples.X[cols[r], members[i]]
    return Z, y


@inner()
def _at_width(y: F8, cost: F8, side: F8, lack: F8, pull: F8, width: float, v: F8) -> int:
    """The multipliers of this width, each in its range, one of them taking what the others do not add up to.

    Returns which one, -1 if none can.  Those near the middle of their range are preferred.
    """
    size = 0.0
    for i in range(y.size):
        v[i] = cost[i] * min(max(lack[i] / width, 0.0), 1.0) + pull[i] / width
        if side[i] != -y[i]:
            v[i] = max(v[i], 0.0)
        if side[i] != y[i]:
            v[i] = cost[i] if v[i] >= cost[i] * _FULL else v[i]
        size += abs(v[i])
    rest = sum_of(y, v)
    balance = -1
    for i in range(y.size):
        shift = -rest * y[i]
        room = np.inf
        if shift > 0.0 and side[i] != y[i]:
            room = cost[i] - v[i]
        elif shift <= 0.0 and side[i] != -y[i]:
            room = v[i]
        if room > abs(shift) + 1e-13 * size:
            far = abs(lack[i] - 0.5 * width)
            if balance < 0 or far < abs(lack[balance] - 0.5 * width):
                balance = i
    if balance >= 0:
        v[balance] -= rest * y[balance]
    return balance


@inner()
def sum_of(y: F8, v: F8) -> float:
    """The sum of ``y_i v_i`` to the last digits: what additions round off is added up, too."""
    total = rest = 0.0
    for i in range(y.size):
        total, off = two_sum(total, y[i] * v[i])
        rest += off
    return total + rest


@inner()
def value_of(Z: F8, y: F8, cost: F8, side: F8, eps: float, v: F8, many: int) -> float:
    """What a checker makes of multipliers of so ``many`` samples on these features at least."""
    k, units = y.size, _UNITS * (many + 64)
    phi = size = 0.0
    u, span = np.zeros(Z.shape[0]), np.zeros(Z.shape[0])
    for i in range(k):
        d = eps if side[i] < 0.0 else 0.0
        if side[i] == y[i]:
            phi += min(cost[i] * max(0.0, 1.0 - d) + v[i] * d, v[i] * max(1.0, d))
        elif side[i] == -y[i]:
            phi += cost[i] * (1.0 + d) - v[i] * d
        else:
            phi += v[i]
        size += abs(v[i]) if side[i] == 0.0 else (cost[i] + abs(v[i])) * (1.0 + d)
        for r in range(u.size):
            u[r] += y[i] * v[i] * Z[r, i]
            span[r] += abs(v[i] * Z[r, i])
    pen = 0.0
    for r in range(u.size):
        pen += (abs(u[r]) + units * span[r]) ** 2
    return phi - units * size - 0.5 * pen * (1.0 + units)
