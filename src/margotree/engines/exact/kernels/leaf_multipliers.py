"""The multipliers of closed search nodes in the format of a proof (docs/proof.md), from many records at once.

Compiled, and without the GIL, so that the thread that writes a proof does not stop the threads that search.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels.node_record import COLD, FEATURE_AT_KINK
from margotree.engines.exact.kernels.proof_bytes import POINT_HEAD, ByteBuffer, get_integer, put_float, put_integer
from margotree.engines.exact.kernels.routing import level_of
from margotree.engines.node.kernels.safe_bounds import exact_sum
from margotree.engines.node.kernels.workspace import AT_COST, AT_LOWER, F8
from margotree.engines.numba_backend import inner, kernel

Bytes = NDArray[np.uint8]

#: Not a side: the sample does not reach the tree node.
NOT_HERE = 2
#: Distance from a limit that rounding cannot exceed, as a share of all multipliers.
_AMPLE = 1e-12
#: Written instead of the sample that balances the others where none is found.
NO_SAMPLE = (1 << 32) - 1


@kernel(allocates=False)
def write_points(
    codes: Bytes, floats: F8, y: F8, cost: F8, side_of: NDArray[np.int8], n: int, unit: float,
    buffer: ByteBuffer, ends: NDArray[np.int64], v: F8,
) -> int:  # fmt: skip
    """Write the point of every tree node in each of these records.

    Parameters
    ----------
    codes, floats
        Records (`node_record`).
    side_of
        The side taken at a tree node (row) by a sample whose place is the column.
    n
        The number of features with states in the records, 0 without feature penalties.
    unit
        The factor from multipliers to those of the user's problem.
    ends
        Filled in: where each point ends (records x tree nodes).
    v
        Scratch of two rows with one number more than there are samples.

    Returns
    -------
    unbalanced
        The number of points without a sample that balances the others.
    """
    T, m = cost.shape
    at = unbalanced = 0
    for k in range(codes.shape[0]):
        used = 0
        for t in range(T):
            begin, used = at, used + 2
            at = _write_lists(codes, floats, k, used, y, cost, side_of, t, v, buffer, begin)
            used += int(v[0, m])
            if n > 0:
                first = m * (2 + level_of(T)) + t * n
                for j in range(n):
                    used += codes[k, first + j] == FEATURE_AT_KINK
            if at > begin + 1:
                at = _write_values(buffer, begin, at, v, unit)
                unbalanced += _write_balance(buffer, begin, y, cost, t, v)
            ends[k, t] = at
    return unbalanced


@inner(allocates=False)
def _write_lists(
    codes: Bytes, floats: F8, k: int, used: int, y: F8, cost: F8, side_of: NDArray[np.int8], t: int, v: F8,
    buffer: ByteBuffer, at: int,
) -> int:  # fmt: skip
    """Write the samples at full cost and the samples listed with a value; return where their lists end.

    Row 0 of ``v`` receives the multipliers, and after them the number of floats read; row 1 receives the sides.
    """
    m = y.size
    base = 2 * m + level_of(t) * m
    v[0, m] = 0.0
    cold = False
    for i in range(m):
        place = np.int64(codes[k, 2 * i]) | (np.int64(codes[k, 2 * i + 1]) << 8)
        v[1, i] = side_of[t, place]
        cold |= v[1, i] != NOT_HERE and codes[k, base + i] == COLD
    full = given = 0
    listed = at + POINT_HEAD
    if not cold:
        for i in range(m):
            if v[1, i] != NOT_HERE and codes[k, base + i] == AT_COST and v[1, i] != -y[i]:
                put_integer(buffer, listed + 4 * full, i, 4)
                full += 1
        for i in range(m):
            side, code = v[1, i], codes[k, base + i]
            against = side == -y[i]
            v[0, i] = 0.0
            if side == NOT_HERE:
                continue
            if against or code == AT_COST:
                v[0, i] = cost[t, i]
            if code != AT_LOWER and code != AT_COST:
                nu = floats[k, used + given]
                nu = min(cost[t, i], -nu) if against else max(0.0, nu)
                v[0, i] = nu if against or side == y[i] else min(nu, cost[t, i])
                put_integer(buffer, listed + 4 * (full + given), i, 4)
                given += 1
    v[0, m] = given
    if full + given == 0:
        return put_integer(buffer, at, 0, 1)
    put_integer(buffer, at, 2, 1)
    put_integer(buffer, at + 1, full, 4)
    put_integer(buffer, at + 5, given, 4)
    return listed + 4 * (full + given)


@inner(allocates=False)
def _write_values(buffer: ByteBuffer, begin: int, at: int, v: F8, unit: float) -> int:
    """Write the values of the listed samples behind the lists; return the position after them."""
    full, given = get_integer(buffer, begin + 1), get_integer(buffer, begin + 5)
    for q in range(given):
        at = put_float(buffer, at, unit * v[0, get_integer(buffer, begin + POINT_HEAD + 4 * (full + q))])
    return at


@inner(allocates=False)
def _write_balance(buffer: ByteBuffer, begin: int, y: F8, cost: F8, t: int, v: F8) -> int:
    """Write the sample whose multiplier makes the sum 0; return 1 if no sample is found.

    The best one has clear space on both sides of its multiplier. Where all multipliers are at their limits, the sign of
    the sum must be safe.
    """
    m = y.size
    rest = size = 0.0
    for i in range(m):
        if v[1, i] != NOT_HERE:
            rest += y[i] * v[0, i]
            size += abs(v[0, i])
    ample = max(_AMPLE, 4.0 * m * 2.0**-53) * size
    best = _most_room(y, cost, t, v, rest, ample, True)
    if best < 0:
        rest, exact = exact_sum(y, v[0, :m])
        best = _most_room(y, cost, t, v, rest, ample if rest != 0.0 else -1.0, False) if exact else best
    put_integer(buffer, begin + 9, best if best >= 0 else NO_SAMPLE, 4)
    return 1 if best < 0 else 0


@inner(allocates=False)
def _most_room(y: F8, cost: F8, t: int, v: F8, rest: float, ample: float, both: bool) -> int:
    """The sample with the most space beyond the change by ``rest``, in one direction or on ``both`` sides; -1 if no
    sample has more than ``ample``."""
    best, most = -1, ample
    for i in range(y.size):
        if v[1, i] == NOT_HERE:
            continue
        shift = -rest * y[i]
        above = np.inf if v[1, i] == y[i] else cost[t, i] - (v[0, i] + shift)
        below = np.inf if v[1, i] == -y[i] else v[0, i] + shift
        room = min(above, below) if both else above if shift > 0.0 else below if shift < 0.0 else 0.0
        if room > most:
            best, most = i, room
    return best
