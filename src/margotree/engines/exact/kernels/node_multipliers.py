"""The multipliers of one tree node with few features in the format of a proof (docs/proof.md): balanced, each in its
range.

They are ``v_i = y_i mu_i``, and are computed from a hyperplane found by Newton's method.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels.leaf_multipliers import NOT_HERE
from margotree.engines.exact.kernels.listed_supports import SampleGroups, Samples, Table, has_few_groups, new_groups
from margotree.engines.exact.kernels.merged_samples import ProofSamples, distribute_multipliers, merge_identical
from margotree.engines.exact.kernels.proof_bytes import POINT_HEAD, ByteBuffer, put_float, put_integer
from margotree.engines.node.kernels.safe_bounds import exact_sum
from margotree.engines.node.kernels.smoothed_loss import row_weight
from margotree.engines.node.kernels.vectors import dot
from margotree.engines.numba_backend import inner

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: Multipliers above this share of their cost are at full cost.
_FULL = 1.0 - 1e-14
#: An upper bound on what a checker subtracts for its rounding, per sample and size of a multiplier.
UNITS = 8.0 * 2.0**-53


class Scratch(NamedTuple):
    """The samples' features, one per row as far as they are used, and working memory."""

    X: F8
    is_filled: NDArray[np.int8]  # which rows of ``X`` are filled in
    largest: F8  # the largest absolute value in each row
    groups: SampleGroups
    shortfall: F8
    positions: I8


@inner()
def new_scratch(samples: Samples, at_node: ProofSamples) -> Scratch:
    """Allocate the working memory for these samples."""
    n, k = samples.X.shape[0], at_node.sample_ids.size
    groups = new_groups(samples, at_node.sample_ids, at_node.side)
    return Scratch(np.empty((n, k)), np.zeros(n, np.int8), np.empty(n), groups, np.empty(k), np.empty(k, np.int64))


@inner(allocates=False)
def is_unknown(at_node: ProofSamples, eps: float, i: int, v: F8, balance: int) -> bool:
    """Whether the bound depends on the multiplier of a sample whose side the proof does not show."""
    known, side, cost = at_node.known[i], at_node.side[i], at_node.cost[i]
    if i == balance:
        # The last digit of this multiplier is not known, so the proof must give it the range that is used here.
        return known != side
    if known == NOT_HERE:
        return v[i] != 0.0
    if known == side or side == 0.0:
        return False
    against = side == -at_node.y[i]
    return v[i] < 0.0 or v[i] > cost or eps >= 1.0 or (against and v[i] < cost * (1.0 - 1e-12))


@inner()
def put_point(
    at_node: ProofSamples, eps: float, v: F8, balance: int, unit: float, buffer: ByteBuffer, at: int, positions: I8
) -> int:
    """Write a point; return the position after it, 0 if it depends on samples whose sides the proof does not show.

    Samples sent against their label have full cost unless they are listed. ``positions`` is scratch.
    """
    full = given = 0
    lists = at + POINT_HEAD
    for i in range(v.size):
        known, y, cost = at_node.known[i], at_node.y[i], at_node.cost[i]
        if known == at_node.side[i] and known == 0.0 and i != balance and (v[i] == 0.0 or v[i] == cost):
            put_integer(
                buffer, lists + 4 * full, at_node.sample_ids[i], 4
            )  # overwritten if it is 0: no branch that cannot be predicted
            full += v[i] == cost
            continue
        if v[i] == 0.0 and known == at_node.side[i] and known != -y:
            continue
        if is_unknown(at_node, eps, i, v, balance):
            return 0
        taken = cost if known == -y else 0.0
        if i != balance and v[i] != taken:
            if v[i] == cost:
                put_integer(buffer, lists + 4 * full, at_node.sample_ids[i], 4)
                full += 1
            else:
                positions[given] = i
                given += 1
    lists += 4 * full
    end = lists + 4 * given
    for r in range(given):
        put_integer(buffer, lists + 4 * r, at_node.sample_ids[positions[r]], 4)
        end = put_float(buffer, end, v[positions[r]] * unit)
    put_point_head(buffer, at, 2, full, given, at_node.sample_ids[balance])
    return end


@inner(allocates=False)
def put_point_head(buffer: ByteBuffer, at: int, kind: int, full: int, given: int, balance: int) -> None:
    """Write the head of a point: its kind, the lengths of its lists, and the sample that balances the others."""
    put_integer(buffer, at, kind, 1)
    put_integer(buffer, at + 1, full, 4)
    put_integer(buffer, at + 5, given, 4)
    put_integer(buffer, at + 9, balance, 4)


@inner()
def multipliers_of_hyperplane(
    samples: Samples, at_node: ProofSamples, scratch: Scratch, eps: float, table: Table, s: int, v: F8
) -> tuple[int, float]:
    """Compute the dual point of the hyperplane last found on support ``s``, and write it to ``v``.

    Returns the position of the sample that balances the others (-1: no point was found), and the value. The multipliers
    are the slopes of the smoothed losses with which Newton's method ended.
    """
    cols, k = table.cols[s, : table.size[s]], at_node.sample_ids.size
    theta, width = table.theta[s, : cols.size + 1], table.width[s]
    if not has_few_groups(samples, cols, k):
        for r in range(cols.size):
            _fill_feature(samples, at_node, scratch, cols[r])
        balance, value, least = _multipliers(
            scratch.X, cols, at_node, eps, theta, width, k, scratch.shortfall, scratch.positions, v
        )
        return (balance if _can_balance(at_node, balance, least, v) else -1), value
    merged, group = merge_identical(samples, at_node, scratch.groups, s, cols)
    Z = np.empty((cols.size, merged.sample_ids.size))
    for r in range(cols.size):
        for q in range(merged.sample_ids.size):
            Z[r, q] = samples.X[cols[r], merged.sample_ids[q]]
    total, rows = np.empty(merged.sample_ids.size), np.arange(cols.size)
    balance, value, least = _multipliers(
        Z, rows, merged, eps, theta, width, k, scratch.shortfall, scratch.positions, total
    )
    if balance >= 0:
        balance = distribute_multipliers(at_node, group, merged, total, balance, v)
    return (balance if _can_balance(at_node, balance, least, v) else -1), value


@inner()
def _can_balance(at_node: ProofSamples, balance: int, least: float, v: F8) -> bool:
    """Whether the multiplier that makes the sum 0 is safely in the range of this sample, if there is one.

    It is if the multiplier is farther than ``least`` from both limits.
    """
    if balance < 0:
        return False
    y, side, mine = at_node.y[balance], at_node.side[balance], v[balance]
    if (side == -y or mine > least) and (side == y or at_node.cost[balance] - mine > least):
        return True
    v[balance] = 0.0
    low, sure = exact_sum(at_node.y, v)
    v[balance] = at_node.cost[balance]
    high, sure_too = exact_sum(at_node.y, v)
    v[balance] = mine
    return (side == -y or (sure and low * y <= 0.0)) and (side == y or (sure_too and high * y >= 0.0))


@inner()
def _fill_feature(samples: Samples, at_node: ProofSamples, scratch: Scratch, j: int) -> None:
    """Fill in the row of feature ``j``."""
    if not scratch.is_filled[j]:
        scratch.is_filled[j] = 1
        row, largest = scratch.X[j], 0.0
        for i in range(at_node.sample_ids.size):
            row[i] = samples.X[j, at_node.sample_ids[i]]
            largest = max(largest, abs(row[i]))
        scratch.largest[j] = largest


@inner()
def _multipliers(
    X: F8,
    cols: I8,
    at_node: ProofSamples,
    eps: float,
    theta: F8,
    width: float,
    n_samples: int,
    shortfall: F8,
    positions: I8,
    v: F8,
) -> tuple[int, float, float]:
    """`multipliers_of_hyperplane` of samples that are merged from ``n_samples``; ``shortfall`` and ``positions`` are
    scratch.

    Also returns ``least``, an upper bound on the rounding error of their sum.
    """
    k, y, cost, side = at_node.sample_ids.size, at_node.y, at_node.cost, at_node.side
    for i in range(k):
        v[i] = theta[cols.size]
    for r in range(cols.size):
        row = X[cols[r]]
        for i in range(k):
            v[i] += row[i] * theta[r]
    hard = row_weight(X, cols, cost, side, eps)
    rest = size = 0.0
    for i in range(k):
        h = v[i]
        shortfall[i] = 1.0 - y[i] * h
        v[i] = cost[i] * min(max(shortfall[i] / width, 0.0), 1.0)
        if side[i] != 0.0:
            row_violation = max(0.0, (eps if side[i] < 0.0 else 0.0) - side[i] * h)
            v[i] += y[i] * side[i] * row_violation * hard / width
        if side[i] != -y[i]:
            v[i] = max(v[i], 0.0)
        if side[i] != y[i]:
            v[i] = cost[i] if v[i] >= cost[i] * _FULL else v[i]
        size += abs(v[i])
        rest += y[i] * v[i]
    least = (1e-13 + 2.0**-52 * n_samples) * size
    balance = _find_balance(at_node, rest, least, shortfall, width, True, v)
    if balance < 0:
        rest, _ = exact_sum(y, v)
        balance = _find_balance(at_node, rest, least, shortfall, width, False, v)
    if balance < 0:
        return -1, -np.inf, least
    v[balance] -= rest * y[balance]
    return balance, value_of(X, cols, at_node, eps, v, n_samples, positions), least


@inner()
def _find_balance(
    at_node: ProofSamples, rest: float, least: float, shortfall: F8, width: float, both: bool, v: F8
) -> int:
    """The sample nearest to its margin whose multiplier stays farther than ``least`` from its limits after it has taken
    the sum of the others, in one direction or on ``both`` sides; -1 if there is none."""
    balance, best = -1, np.inf
    for i in range(v.size):
        far = abs(shortfall[i] - 0.5 * width)
        if far >= best:
            continue
        shift = -rest * at_node.y[i]
        above = np.inf if at_node.side[i] == at_node.y[i] else at_node.cost[i] - (v[i] + shift)
        below = np.inf if at_node.side[i] == -at_node.y[i] else v[i] + shift
        room = min(above, below) if both else above if shift > 0.0 else below
        if room > least:
            balance, best = i, far
    return balance


@inner()
def value_of(X: F8, cols: I8, at_node: ProofSamples, eps: float, v: F8, n_samples: int, positions: I8) -> float:
    """A lower bound on the value that a checker computes from multipliers on features ``cols``.

    ``n_samples`` is the number of samples before they were merged; ``positions`` is scratch.
    """
    units, count = UNITS * (n_samples + 64), 0
    phi, size = _linear_part(at_node, eps, v)
    for i in range(v.size):
        if v[i] != 0.0:
            positions[count] = i
            count += 1
    norm2 = 0.0
    for r in range(cols.size):
        row = X[cols[r]]
        u = span = 0.0
        for q in range(count):
            part = v[positions[q]] * row[positions[q]]
            u += at_node.y[positions[q]] * part
            span += abs(part)
        norm2 += (abs(u) + units * span) ** 2
    return phi - units * size - 0.5 * norm2 * (1.0 + units)


@inner(allocates=False)
def _linear_part(at_node: ProofSamples, eps: float, v: F8) -> tuple[float, float]:
    """The value of multipliers before the terms of the weights are subtracted, and the sizes of its terms, for
    rounding."""
    phi = size = 0.0
    for i in range(v.size):
        y, side, cost = at_node.y[i], at_node.side[i], at_node.cost[i]
        if side == 0.0:
            phi += v[i]
            size += abs(v[i])
        else:
            d = eps if side < 0.0 else 0.0
            phi += phi_of(y, side, cost, d, v[i])
            size += (cost + abs(v[i])) * (1.0 + d)
    return phi, size


@inner()
def raise_other_bounds(
    samples: Samples,
    at_node: ProofSamples,
    scratch: Scratch,
    eps: float,
    v: F8,
    table: Table,
    ids: I8,
    lb: F8,
    goal: float,
) -> None:
    """Raise the bounds ``lb`` of supports ``ids`` that are below ``goal`` to what multipliers ``v`` prove of them, on
    whatever support these were found."""
    n, k = scratch.X.shape
    units = UNITS * (k + 64)
    mu, feature_terms = scratch.shortfall, np.empty(n)
    phi, size = _linear_part(at_node, eps, v)
    total = 0.0
    for i in range(k):
        mu[i] = at_node.y[i] * v[i]
        total += abs(v[i])
    for j in range(n):
        _fill_feature(samples, at_node, scratch, j)
        feature_terms[j] = 0.5 * (1.0 + units) * (abs(dot(scratch.X[j], mu)) + units * total * scratch.largest[j]) ** 2
    phi -= units * size
    for q in range(ids.size):
        if lb[q] < goal:
            s, value = ids[q], phi
            for r in range(table.size[s]):
                value -= feature_terms[table.cols[s, r]]
            lb[q] = max(lb[q], value)


@inner(allocates=False)
def phi_of(y: float, side: float, cost: float, d: float, v: float) -> float:
    """The term of a sample's multiplier in the value; ``d`` is the distance of its side from 0."""
    if side == y:
        return min(cost * max(0.0, 1.0 - d) + v * d, v * max(1.0, d))
    return cost * (1.0 + d) - v * d if side == -y else v
