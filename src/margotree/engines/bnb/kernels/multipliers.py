"""Multipliers of one tree node with few features, as a proof wants them (docs/proof.md): balanced, each in its range.

Those that belong to a hyperplane found by Newton's method, and those which show that sides are too close to be told
apart.  They are ``v_i = y_i mu_i``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.bnb.kernels.hulls import first_pair, nearest
from margotree.engines.bnb.kernels.leaves import NOT_HERE
from margotree.engines.bnb.kernels.listed_supports import Samples, Table, count_cells
from margotree.engines.bnb.kernels.points import EACH, LEAD, Pen, put, put_float
from margotree.engines.kernels.certain import two_sum
from margotree.engines.kernels.jit import inner, kernel

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: Widths of rounded losses at which Newton's method ends (`engines.kernels.newton`): when nothing is known, when warm,
#: when it went in small steps.
WIDTHS = np.sort(
    np.concatenate([10.0 ** -np.arange(12.0), 0.03 * 10.0 ** -np.arange(10.0), 100.0 * 0.5 ** np.arange(44.0)])
)
#: Widths that are looked at closely.
_TRIES = 6
#: Multipliers of this share of their cost are at full cost.
_FULL = 1.0 - 1e-14
#: What a checker may take off for its rounding, at most: this many units per sample and size of a multiplier.
_UNITS = 8.0 * 2.0**-53
#: Multipliers of sides too close to each other prove this much more than is asked for.
_AMPLE = 1.0 + 1e-6


class Members(NamedTuple):
    """Samples that reach a tree node, the side each takes there (0: not known), what it costs in the proof, and the
    side that the proof knows (`NOT_HERE`: it does not know that the sample gets there)."""

    who: I8
    side: F8
    cost: F8
    known: F8


@kernel()
def raise_bounds(
    samples: Samples, members: Members, eps: float, table: Table, ids: I8, before: F8, lb: F8, first: int,
    unsure: float, guess: int, unit: float, pen: Pen, ends: I8, v: F8,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Write the points that raised the bounds ``before`` of supports ``ids`` to ``lb``, from the ``first`` on.

    A bound that its multipliers miss by more than a share ``unsure`` is lowered to what they reach.  Ends early where
    there is no more room, and where samples count of which the proof does not know enough yet: then ``v`` holds the
    multipliers.  Returns with which support it goes on, how many points were written (``ends`` tells where each ends),
    the position of the member that balances the support with such samples (-1 if there is none), and the width.
    """
    k = members.who.size
    at = written = 0
    for p in range(first, ids.size):
        if not lb[p] > before[p]:
            continue
        if written == ends.size or at + LEAD + EACH * k > pen.out.size:
            return p, written, -1, guess
        wanted = lb[p] * (1.0 - unsure)
        s = ids[p]
        cols = table.cols[s, : table.size[s]]
        theta = table.theta[s, : cols.size + 1]
        balance, value, guess = of_hyperplane(samples, members, eps, cols, theta, wanted, guess, v)
        if balance >= 0 and value > before[p]:
            for i in range(k):
                if _unknown(samples, members, eps, i, v, balance):
                    return p, written, balance, guess
            at = _point(members, v, balance, unit, pen, at)
            ends[written] = at
            written += 1
        if value < wanted:
            lb[p] = max(before[p], value)
    return ids.size, written, -1, guess


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
def _point(members: Members, v: F8, balance: int, unit: float, pen: Pen, at: int) -> int:
    """Write multipliers down; returns where they end."""
    full = given = 0
    lists = at + LEAD
    for i in range(v.size):
        if i != balance and v[i] == members.cost[i]:
            put(pen, lists + 4 * full, members.who[i], 4)
            full += 1
    lists += 4 * full
    for i in range(v.size):
        if i != balance and v[i] != 0.0 and v[i] != members.cost[i]:
            put(pen, lists + 4 * given, members.who[i], 4)
            given += 1
    end = lists + 4 * given
    for i in range(v.size):
        if i != balance and v[i] != 0.0 and v[i] != members.cost[i]:
            end = put_float(pen, end, v[i] * unit)
    put(pen, at, 3, 1)
    put(pen, at + 1, full, 4)
    put(pen, at + 5, given, 4)
    put(pen, at + 9, members.who[balance], 4)
    return end


@inner()
def of_hyperplane(
    samples: Samples, members: Members, eps: float, cols: I8, theta: F8, wanted: float, guess: int, v: F8
) -> tuple[int, float, int]:
    """The dual point that belongs to a hyperplane (weights on ``cols``, then the offset), written to ``v``.

    Returns the position of the member that balances the others (-1: no point was found), the value, and the width.
    Newton's method ends at some width of the rounded losses, at which their slopes are the multipliers; here widths are
    tried, the ``guess`` first, until one is worth what is ``wanted``.
    """
    side, cost = members.side, members.cost
    k = members.who.size
    Z, y = _gathered(samples, members.who, cols)
    lack, pull = np.empty(k), np.empty(k)
    hard, shared = _hardness(samples, members.who, side, cols, cost)
    for i in range(k):
        h = theta[cols.size]
        for r in range(cols.size):
            h += Z[r, i] * theta[r]
        lack[i] = 1.0 - y[i] * h
        held = max(0.0, (eps if side[i] < 0.0 else 0.0) - side[i] * h) if side[i] != 0.0 else 0.0
        pull[i] = y[i] * side[i] * held * hard / shared[i]
    trial = np.empty(k)
    balance, value = _at_width(Z, y, cost, side, eps, lack, pull, WIDTHS[guess], trial)
    v[:] = trial
    if balance >= 0 and value >= wanted:
        return balance, value, guess
    at = guess
    left = np.empty(WIDTHS.size)
    for q in range(WIDTHS.size):
        left[q] = _slope_left(Z, y, theta, cost, lack, pull, WIDTHS[q])
    for _ in range(_TRIES):
        q = int(np.argmin(left))
        left[q] = np.inf
        found, worth = _at_width(Z, y, cost, side, eps, lack, pull, WIDTHS[q], trial)
        if found >= 0 and (balance < 0 or worth > value):
            balance, value, at = found, worth, q
            v[:] = trial
        if balance >= 0 and value >= wanted:
            break
    return balance, value, at


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
def _hardness(samples: Samples, members: I8, side: F8, cols: I8, cost: F8) -> tuple[float, F8]:
    """How hard sides are held, and how many members share in it: those made one by `listed_supports.merged` do."""
    k = members.size
    shared = np.ones(k)
    hard = 0.0
    cells = count_cells(samples, cols)
    if 2 * cells > k:
        for i in range(k):
            hard = max(hard, cost[i])
        return max(hard, 1e-12), shared
    code = np.empty(k, np.int64)
    count, total = np.zeros(cells), np.zeros(cells)
    for i in range(k):
        cell = (3 if samples.y[members[i]] > 0 else 0) + int(side[i]) + 1
        for r in range(cols.size):
            cell = cell * samples.levels[cols[r]] + samples.code[cols[r], members[i]]
        code[i] = cell
        count[cell] += 1.0
        total[cell] += cost[i]
        hard = max(hard, total[cell])
    for i in range(k):
        shared[i] = count[code[i]]
    return hard, shared


@inner()
def _slope(lack: float, cost: float, pull: float, width: float) -> float:
    return cost * min(max(lack / width, 0.0), 1.0) + pull / width


@inner()
def _slope_left(Z: F8, y: F8, theta: F8, cost: F8, lack: F8, pull: F8, width: float) -> float:
    """How far from flat the rounded losses of this width are at the hyperplane: next to nothing at the right one."""
    left = 0.0
    for r in range(Z.shape[0] + 1):
        slope = theta[r] if r < Z.shape[0] else 0.0
        for i in range(y.size):
            slope -= y[i] * _slope(lack[i], cost[i], pull[i], width) * (Z[r, i] if r < Z.shape[0] else 1.0)
        left += abs(slope)
    return left


@inner()
def _at_width(
    Z: F8, y: F8, cost: F8, side: F8, eps: float, lack: F8, pull: F8, width: float, v: F8
) -> tuple[int, float]:
    """The multipliers of this width, each in its range, one of them taking what the others do not add up to.

    Returns which one, -1 if none can, and the value.  Those near the middle of their range are preferred.
    """
    size = 0.0
    for i in range(y.size):
        v[i] = _slope(lack[i], cost[i], pull[i], width)
        if side[i] != -y[i]:
            v[i] = max(v[i], 0.0)
        if side[i] != y[i]:
            v[i] = cost[i] if v[i] >= cost[i] * _FULL else v[i]
        size += abs(v[i])
    rest = _sum(y, v)
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
    if balance < 0:
        return -1, -np.inf
    v[balance] -= rest * y[balance]
    return balance, _value(Z, y, cost, side, eps, v)


@inner()
def _sum(y: F8, v: F8) -> float:
    """The sum of ``y_i v_i`` to the last digits: what additions round off is added up, too."""
    total = rest = 0.0
    for i in range(y.size):
        total, off = two_sum(total, y[i] * v[i])
        rest += off
    return total + rest


@inner()
def _value(Z: F8, y: F8, cost: F8, side: F8, eps: float, v: F8) -> float:
    """What a checker makes of multipliers on these features at least."""
    k, units = y.size, _UNITS * (y.size + 64)
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


@kernel()
def too_close(
    samples: Samples, place: NDArray[np.uint16], sides: F8, j: int, side: float, eps: float, cols: I8, cost: F8,
    target: float, unit: float, pen: Pen,
) -> tuple[int, float]:  # fmt: skip
    """Write the multipliers which show that no split on features ``cols`` worth less than ``target`` sends sample ``j``
    to this side, others being where their ``place`` says (``sides`` tells the side of each place).

    With ``j`` -1 they show it of the others alone.  Returns where they end, 0 if none are found, and the value.
    """
    members = _placed(place, sides, j, side, cost)
    Z, y = _gathered(samples, members.who, cols)
    target *= _AMPLE
    right, left = first_pair(Z, members.side, np.searchsorted(members.who, j) if j >= 0 else -1)
    if right < 0 or left < 0:
        return 0, -np.inf
    v = np.empty(y.size)
    distance = nearest(Z, members.side, right, left, 0.5 * eps * eps / target, v)
    most = 2.0 * target / eps
    scale = min(most, eps / distance) if distance > 0.0 else most
    balance = 0
    for i in range(y.size):
        v[i] *= y[i] * scale
        if abs(v[i]) > abs(v[balance]):
            balance = i
    v[balance] -= y[balance] * _sum(y, v)
    value = _value(Z, y, members.cost, members.side, eps, v)
    return (_point(members, v, balance, unit, pen, 0) if value >= target else 0), value


@inner()
def _placed(place: NDArray[np.uint16], sides: F8, j: int, side: float, cost: F8) -> Members:
    """Those who take a side, ``j`` taking this one."""
    who, took, costs = np.empty(place.size, np.int64), np.empty(place.size), np.empty(place.size)
    k = 0
    for i in range(place.size):
        took[k] = side if i == j else sides[place[i]]
        if took[k] == 1.0 or took[k] == -1.0:
            who[k], costs[k] = i, cost[i]
            k += 1
    return Members(who[:k], took[:k], costs[:k], took[:k])
