"""The multipliers of closed search nodes in the format of a proof (docs/proof.md), from many records at once.

Compiled, and without the GIL, so that the thread that writes a proof does not stop the threads that search.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels.node_record import CODE_SHIFT, COLD, FEATURE_AT_KINK
from margotree.engines.exact.kernels.proof_bytes import POINT_HEAD, ByteBuffer, get_integer, put_float, put_integer
from margotree.engines.exact.kernels.routing import ABOVE, BELOW, BOTH, level_of
from margotree.engines.node.kernels.safe_bounds import exact_sum
from margotree.engines.node.kernels.workspace import AT_COST, AT_LOWER, F8, I8, index_constants
from margotree.engines.numba_backend import inner, kernel, struct

Bytes = NDArray[np.uint8]

#: Not a side: the sample does not reach the tree node, or has no such item there.
NOT_HERE = 2
#: Distance from a limit that rounding cannot exceed, as a share of all multipliers.
_AMPLE = 1e-12
#: Written instead of the sample that balances the others where none is found.
NO_SAMPLE = (1 << 32) - 1
# Rows of the scratch of `write_points`, with one column per item: its multiplier, the side that its sample takes, its
# label.  One more column has the number of floats read.
V, SIDE, ITEM_LABEL = index_constants(3)


@struct
class ProofItems(NamedTuple):
    """The items of samples in a proof, and where a record has what is decided."""

    samples: int
    group: I8  # the class of each sample
    code: I8  # (tree nodes, classes): the codes before any decision
    cost: F8  # (tree nodes, items)
    side_of: NDArray[np.int8]  # the side taken at a tree node (row) by a sample whose place is the column
    chooses: bool
    choice_offset: int  # in a record
    feature_offset: int


@kernel(allocates=False)
def write_points(
    codes: Bytes, floats: F8, items: ProofItems, n: int, unit: float, buffer: ByteBuffer, ends: NDArray[np.int64], v: F8
) -> int:  # fmt: skip
    """Write the point of every tree node in each of these records.

    Parameters
    ----------
    codes, floats
        Records (`node_record`).
    items
        The items.
    n
        The number of features with states in the records, 0 without feature penalties.
    unit
        The factor from multipliers to those of the user's problem.
    ends
        Filled in: where each point ends (records x tree nodes).
    v
        Scratch of three rows with one number more than there are items.

    Returns
    -------
    unbalanced
        The number of points without a sample that balances the others.
    """
    T, m = items.cost.shape
    at = unbalanced = 0
    for k in range(codes.shape[0]):
        used = 0
        for t in range(T):
            begin, used = at, used + 2
            at = _write_lists(codes, floats, k, used, items, t, v, buffer, begin)
            used += int(v[V, m])
            if n > 0:
                first = items.feature_offset + t * n
                for j in range(n):
                    used += codes[k, first + j] == FEATURE_AT_KINK
            if at > begin + 1:
                at = _write_values(buffer, begin, at, v, unit)
                unbalanced += _write_balance(buffer, begin, items.cost, t, v)
            ends[k, t] = at
    return unbalanced


@inner(allocates=False)
def _find_items(codes: Bytes, k: int, items: ProofItems, t: int, v: F8) -> bool:
    """Fill in the rows SIDE and ITEM_LABEL of ``v`` for record ``k``; return whether its multipliers are unknown."""
    m, M = items.samples, items.cost.shape[1]
    base, second = m * (2 + level_of(t)), m * (1 + level_of(items.cost.shape[0]))
    cold = False
    for i in range(m, M):
        v[SIDE, i] = NOT_HERE
    for i in range(m):
        place = np.int64(codes[k, 2 * i]) | (np.int64(codes[k, 2 * i + 1]) << 8)
        side, code = items.side_of[t, place], items.code[t, items.group[i]]
        if items.chooses:
            K = items.code.shape[1]
            code = np.int64(codes[k, items.choice_offset + t * K + items.group[i]]) - CODE_SHIFT
        v[SIDE, i] = side
        if side == NOT_HERE:
            continue
        v[ITEM_LABEL, i] = 1.0 if code == BOTH else float(code)
        if code == BOTH:
            v[SIDE, m + i], v[ITEM_LABEL, m + i] = side, -1.0
            cold |= codes[k, second + m + i] == COLD
        elif code != BELOW and code != ABOVE:
            # The loss of the side that the sample takes, or a row without a loss.
            v[ITEM_LABEL, i] = side
            v[SIDE, i] = side if side != 0 else NOT_HERE
        cold |= v[SIDE, i] != NOT_HERE and codes[k, base + i] == COLD
    return bool(cold)


@inner(allocates=False)
def _write_lists(
    codes: Bytes, floats: F8, k: int, used: int, items: ProofItems, t: int, v: F8, buffer: ByteBuffer, at: int
) -> int:
    """Write the items at full cost and the items listed with a value; return where their lists end.

    Row V of ``v`` receives the multipliers, and after them the number of floats read.
    """
    m, M = items.samples, items.cost.shape[1]
    base, second = m * (2 + level_of(t)), m * (1 + level_of(items.cost.shape[0]))
    v[V, M] = 0.0
    full = given = read = 0
    listed = at + POINT_HEAD
    cold = _find_items(codes, k, items, t, v)
    if not cold:
        for i in range(M):
            if v[SIDE, i] != NOT_HERE and _is_full(codes[k, (base if i < m else second) + i], items, i, v):
                put_integer(buffer, listed + 4 * full, i, 4)
                full += 1
        for i in range(M):
            v[V, i] = 0.0
            side, label, cost = v[SIDE, i], v[ITEM_LABEL, i], items.cost[t, i]
            if side == NOT_HERE:
                continue
            code = codes[k, (base if i < m else second) + i]
            against = side == -label
            if against or code == AT_COST:
                v[V, i] = cost
            counts = code != AT_LOWER and code != AT_COST
            if counts:
                nu = floats[k, used + read]
                nu = min(cost, -nu) if against else max(0.0, nu)
                v[V, i] = nu if against or side == label else min(nu, cost)
                read += 1
            if counts or (code == AT_LOWER and _is_both(items, i, v)):
                put_integer(buffer, listed + 4 * (full + given), i, 4)
                given += 1
    v[V, M] = read
    if cold or (full + given == 0 and not _has_default(items, v)):
        return put_integer(buffer, at, 0, 1)
    put_integer(buffer, at, 2, 1)
    put_integer(buffer, at + 1, full, 4)
    put_integer(buffer, at + 5, given, 4)
    return listed + 4 * (full + given)


@inner(allocates=False)
def _is_both(items: ProofItems, i: int, v: F8) -> bool:
    """Whether item ``i`` is one of two of a third class, which have their full costs unless they are listed."""
    m = items.samples
    first = i if i < m else i - m
    return items.chooses and v[SIDE, first] == 0.0 and v[SIDE, m + first] != NOT_HERE


@inner(allocates=False)
def _is_full(code: int, items: ProofItems, i: int, v: F8) -> bool:
    """Whether item ``i`` with this status is listed among those at full cost."""
    return code == AT_COST and v[SIDE, i] != -v[ITEM_LABEL, i] and not _is_both(items, i, v)


@inner(allocates=False)
def _has_default(items: ProofItems, v: F8) -> bool:
    """Whether an item that is not listed has a multiplier other than 0, which an empty point does not say."""
    if items.chooses:
        for i in range(items.samples, items.cost.shape[1]):
            if v[SIDE, i] != NOT_HERE and v[V, i] != 0.0:
                return True
    return False


@inner(allocates=False)
def _write_values(buffer: ByteBuffer, begin: int, at: int, v: F8, unit: float) -> int:
    """Write the values of the listed samples behind the lists; return the position after them."""
    full, given = get_integer(buffer, begin + 1), get_integer(buffer, begin + 5)
    for q in range(given):
        at = put_float(buffer, at, unit * v[V, get_integer(buffer, begin + POINT_HEAD + 4 * (full + q))])
    return at


@inner(allocates=False)
def _write_balance(buffer: ByteBuffer, begin: int, cost: F8, t: int, v: F8) -> int:
    """Write the item whose multiplier makes the sum 0; return 1 if none is found.

    The best one has clear space on both sides of its multiplier. Where all multipliers are at their limits, the sign of
    the sum must be safe.
    """
    m = cost.shape[1]
    rest = size = 0.0
    for i in range(m):
        if v[SIDE, i] != NOT_HERE:
            rest += v[ITEM_LABEL, i] * v[V, i]
            size += abs(v[V, i])
        else:
            v[V, i] = v[ITEM_LABEL, i] = 0.0
    ample = max(_AMPLE, 4.0 * m * 2.0**-53) * size
    best = _most_room(cost, t, v, rest, ample, True)
    if best < 0:
        rest, exact = exact_sum(v[ITEM_LABEL, :m], v[V, :m])
        best = _most_room(cost, t, v, rest, ample if rest != 0.0 else -1.0, False) if exact else best
    put_integer(buffer, begin + 9, best if best >= 0 else NO_SAMPLE, 4)
    return 1 if best < 0 else 0


@inner(allocates=False)
def _most_room(cost: F8, t: int, v: F8, rest: float, ample: float, both: bool) -> int:
    """The item with the most space beyond the change by ``rest``, in one direction or on ``both`` sides; -1 if none
    has more than ``ample``."""
    best, most = -1, ample
    for i in range(cost.shape[1]):
        if v[SIDE, i] == NOT_HERE:
            continue
        shift = -rest * v[ITEM_LABEL, i]
        above = np.inf if v[SIDE, i] == v[ITEM_LABEL, i] else cost[t, i] - (v[V, i] + shift)
        below = np.inf if v[SIDE, i] == -v[ITEM_LABEL, i] else v[V, i] + shift
        room = min(above, below) if both else above if shift > 0.0 else below if shift < 0.0 else 0.0
        if room > most:
            best, most = i, room
    return best
