"""Multipliers of one tree node with few features, as a proof wants them (docs/proof.md): balanced, each in its range.

They are ``v_i = y_i mu_i``, and belong to a hyperplane found by Newton's method.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels.leaf_multipliers import NOT_HERE
from margotree.engines.exact.kernels.listed_supports import Cells, Samples, Table, few_cells, new_cells
from margotree.engines.exact.kernels.merged_samples import Members, made_one, shared_out
from margotree.engines.exact.kernels.proof_bytes import LEAD, Pen, put, put_float
from margotree.engines.node.kernels.safe_bounds import exact_sum
from margotree.engines.node.kernels.vectors import dot
from margotree.engines.numba_backend import inner

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: Multipliers of this share of their cost are at full cost.
_FULL = 1.0 - 1e-14
#: What a checker may take off for its rounding, at most: this many units per sample and size of a multiplier.
UNITS = 8.0 * 2.0**-53


class Desk(NamedTuple):
    """The members' features, one per row as far as they were asked for, and room to work in."""

    X: F8
    there: NDArray[np.int8]  # which rows are filled in
    longest: F8  # the largest number of each
    cells: Cells
    lack: F8
    some: I8


@inner()
def new_desk(samples: Samples, members: Members) -> Desk:
    n, k = samples.X.shape[0], members.who.size
    cells = new_cells(samples, members.who, members.side)
    return Desk(np.empty((n, k)), np.zeros(n, np.int8), np.empty(n), cells, np.empty(k), np.empty(k, np.int64))


@inner(allocates=False)
def is_unknown(members: Members, eps: float, i: int, v: F8, balance: int) -> bool:
    """Whether a member counts in a bound that the proof knows too little of for its multiplier."""
    known, side, cost = members.known[i], members.side[i], members.cost[i]
    if i == balance:
        # Nobody knows the last digit of the one that balances, so its range must be the one that it was meant for.
        return known != side
    if known == NOT_HERE:
        return v[i] != 0.0
    if known == side or side == 0.0:
        return False
    against = side == -members.y[i]
    return v[i] < 0.0 or v[i] > cost or eps >= 1.0 or (against and v[i] < cost * (1.0 - 1e-12))


@inner()
def put_point(members: Members, eps: float, v: F8, balance: int, unit: float, pen: Pen, at: int, some: I8) -> int:
    """Write multipliers down; returns where they end, 0 if members count of which the proof does not know enough.

    Those sent against their label are taken to be at full cost, and listed if they are not.  ``some`` is scratch.
    """
    full = given = 0
    lists = at + LEAD
    for i in range(v.size):
        known, y, cost = members.known[i], members.y[i], members.cost[i]
        if known == members.side[i] and known == 0.0 and i != balance and (v[i] == 0.0 or v[i] == cost):
            put(pen, lists + 4 * full, members.who[i], 4)  # not kept at 0: no branch here, nobody could guess which
            full += v[i] == cost
            continue
        if v[i] == 0.0 and known == members.side[i] and known != -y:
            continue
        if is_unknown(members, eps, i, v, balance):
            return 0
        taken = cost if known == -y else 0.0
        if i != balance and v[i] != taken:
            if v[i] == cost:
                put(pen, lists + 4 * full, members.who[i], 4)
                full += 1
            else:
                some[given] = i
                given += 1
    lists += 4 * full
    end = lists + 4 * given
    for r in range(given):
        put(pen, lists + 4 * r, members.who[some[r]], 4)
        end = put_float(pen, end, v[some[r]] * unit)
    put_lead(pen, at, 2, full, given, members.who[balance])
    return end


@inner(allocates=False)
def put_lead(pen: Pen, at: int, kind: int, full: int, given: int, balance: int) -> None:
    """Write how a point begins: its kind, how long its lists are, and the sample that balances the others."""
    put(pen, at, kind, 1)
    put(pen, at + 1, full, 4)
    put(pen, at + 5, given, 4)
    put(pen, at + 9, balance, 4)


@inner()
def of_hyperplane(
    samples: Samples, members: Members, desk: Desk, eps: float, table: Table, s: int, v: F8
) -> tuple[int, float]:
    """The dual point that belongs to the hyperplane last found on support ``s``, written to ``v``.

    Returns the position of the member that balances the others (-1: no point was found), and the value.  Newton's
    method ends at some width of the rounded losses, at which their slopes are the multipliers.
    """
    cols, k = table.cols[s, : table.size[s]], members.who.size
    theta, width = table.theta[s, : cols.size + 1], table.width[s]
    if not few_cells(samples, cols, k):
        for r in range(cols.size):
            _lay_out(samples, members, desk, cols[r])
        balance, value, least = _slopes(desk.X, cols, members, eps, theta, width, k, desk.lack, desk.some, v)
        return (balance if _can_balance(members, balance, least, v) else -1), value
    few, kind = made_one(samples, members, desk.cells, s, cols)
    Z = np.empty((cols.size, few.who.size))
    for r in range(cols.size):
        for q in range(few.who.size):
            Z[r, q] = samples.X[cols[r], few.who[q]]
    total, rows = np.empty(few.who.size), np.arange(cols.size)
    balance, value, least = _slopes(Z, rows, few, eps, theta, width, k, desk.lack, desk.some, total)
    if balance >= 0:
        balance = shared_out(members, kind, few, total, balance, v)
    return (balance if _can_balance(members, balance, least, v) else -1), value


@inner()
def _can_balance(members: Members, balance: int, least: float, v: F8) -> bool:
    """Whether what makes the sum of the others 0 is certain to be in the range of this member, if there is one.

    It is where the multiplier has at least this room on both sides.
    """
    if balance < 0:
        return False
    y, side, mine = members.y[balance], members.side[balance], v[balance]
    if (side == -y or mine > least) and (side == y or members.cost[balance] - mine > least):
        return True
    v[balance] = 0.0
    low, sure = exact_sum(members.y, v)
    v[balance] = members.cost[balance]
    high, sure_too = exact_sum(members.y, v)
    v[balance] = mine
    return (side == -y or (sure and low * y <= 0.0)) and (side == y or (sure_too and high * y >= 0.0))


@inner()
def _lay_out(samples: Samples, members: Members, desk: Desk, j: int) -> None:
    """Fill in the row of feature ``j``."""
    if not desk.there[j]:
        desk.there[j] = 1
        row, longest = desk.X[j], 0.0
        for i in range(members.who.size):
            row[i] = samples.X[j, members.who[i]]
            longest = max(longest, abs(row[i]))
        desk.longest[j] = longest


@inner()
def _slopes(
    X: F8, cols: I8, members: Members, eps: float, theta: F8, width: float, many: int, lack: F8, some: I8, v: F8
) -> tuple[int, float, float]:
    """`of_hyperplane` of members that stand for so ``many`` samples, and room that is more than rounding can make of
    their sum; ``lack`` and ``some`` are scratch."""
    k, y, cost, side = members.who.size, members.y, members.cost, members.side
    for i in range(k):
        v[i] = theta[cols.size]
    for r in range(cols.size):
        row = X[cols[r]]
        for i in range(k):
            v[i] += row[i] * theta[r]
    hard = 1e-12
    for i in range(k):
        hard = max(hard, cost[i])
    rest = size = 0.0
    for i in range(k):
        h = v[i]
        lack[i] = 1.0 - y[i] * h
        v[i] = cost[i] * min(max(lack[i] / width, 0.0), 1.0)
        if side[i] != 0.0:
            held = max(0.0, (eps if side[i] < 0.0 else 0.0) - side[i] * h)
            v[i] += y[i] * side[i] * held * hard / width
        if side[i] != -y[i]:
            v[i] = max(v[i], 0.0)
        if side[i] != y[i]:
            v[i] = cost[i] if v[i] >= cost[i] * _FULL else v[i]
        size += abs(v[i])
        rest += y[i] * v[i]
    least = (1e-13 + 2.0**-52 * many) * size
    balance = _balancing(members, rest, least, lack, width, True, v)
    if balance < 0:
        rest, _ = exact_sum(y, v)
        balance = _balancing(members, rest, least, lack, width, False, v)
    if balance < 0:
        return -1, -np.inf, least
    v[balance] -= rest * y[balance]
    return balance, value_of(X, cols, members, eps, v, many, some), least


@inner()
def _balancing(members: Members, rest: float, least: float, lack: F8, width: float, both: bool, v: F8) -> int:
    """The member nearest to its margin with more than the ``least`` room beyond where it has to go, on ``both`` sides,
    so that the others need not add up to 0; -1 if there is none."""
    balance, best = -1, np.inf
    for i in range(v.size):
        far = abs(lack[i] - 0.5 * width)
        if far >= best:
            continue
        shift = -rest * members.y[i]
        above = np.inf if members.side[i] == members.y[i] else members.cost[i] - (v[i] + shift)
        below = np.inf if members.side[i] == -members.y[i] else v[i] + shift
        room = min(above, below) if both else above if shift > 0.0 else below
        if room > least:
            balance, best = i, far
    return balance


@inner()
def value_of(X: F8, cols: I8, members: Members, eps: float, v: F8, many: int, some: I8) -> float:
    """What a checker makes of multipliers of so ``many`` samples on features ``cols`` at least; ``some`` is scratch."""
    units, count = UNITS * (many + 64), 0
    phi, size = _worth(members, eps, v)
    for i in range(v.size):
        if v[i] != 0.0:
            some[count] = i
            count += 1
    pen = 0.0
    for r in range(cols.size):
        row = X[cols[r]]
        u = span = 0.0
        for q in range(count):
            part = v[some[q]] * row[some[q]]
            u += members.y[some[q]] * part
            span += abs(part)
        pen += (abs(u) + units * span) ** 2
    return phi - units * size - 0.5 * pen * (1.0 + units)


@inner(allocates=False)
def _worth(members: Members, eps: float, v: F8) -> tuple[float, float]:
    """What multipliers add up to before anything is taken off for weights, and the sizes of the terms, for rounding."""
    phi = size = 0.0
    for i in range(v.size):
        y, side, cost = members.y[i], members.side[i], members.cost[i]
        if side == 0.0:
            phi += v[i]
            size += abs(v[i])
        else:
            d = eps if side < 0.0 else 0.0
            phi += phi_of(y, side, cost, d, v[i])
            size += (cost + abs(v[i])) * (1.0 + d)
    return phi, size


@inner()
def lift(
    samples: Samples, members: Members, desk: Desk, eps: float, v: F8, table: Table, ids: I8, lb: F8, goal: float
) -> None:
    """Raise the bounds ``lb`` of supports ``ids`` that are below ``goal`` to what multipliers ``v`` prove of them,
    whatever support they were found on."""
    n, k = desk.X.shape
    units = UNITS * (k + 64)
    mu, pen = desk.lack, np.empty(n)
    phi, size = _worth(members, eps, v)
    total = 0.0
    for i in range(k):
        mu[i] = members.y[i] * v[i]
        total += abs(v[i])
    for j in range(n):
        _lay_out(samples, members, desk, j)
        pen[j] = 0.5 * (1.0 + units) * (abs(dot(desk.X[j], mu)) + units * total * desk.longest[j]) ** 2
    phi -= units * size
    for q in range(ids.size):
        if lb[q] < goal:
            s, value = ids[q], phi
            for r in range(table.size[s]):
                value -= pen[table.cols[s, r]]
            lb[q] = max(lb[q], value)


@inner(allocates=False)
def phi_of(y: float, side: float, cost: float, d: float, v: float) -> float:
    """What a sample's multiplier is worth, ``d`` being how far beyond 0 its side begins."""
    if side == y:
        return min(cost * max(0.0, 1.0 - d) + v * d, v * max(1.0, d))
    return cost * (1.0 + d) - v * d if side == -y else v
