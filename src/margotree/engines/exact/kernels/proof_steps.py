"""The steps of dives as a proof holds them (docs/proof.md): search nodes numbered, decisions and leaves as bytes.

Compiled, and without the GIL: search nodes may take less time than Python takes to write one down.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels.child_nodes import ASIDE, HERE_SETTLED, HERE_SHUT, SHUT, SHUT_TOO
from margotree.engines.exact.kernels.node_record import MUST_HERE
from margotree.engines.exact.kernels.proof_bytes import CLOSED, FEATURE, SAMPLE, Pen, put, put_head, put_split
from margotree.engines.node.kernels.workspace import F8
from margotree.engines.numba_backend import inner, kernel, struct

Bytes = NDArray[np.uint8]
I8 = NDArray[np.int64]


@struct
class Shut(NamedTuple):
    """Search nodes that are closed and not yet written down: their numbers and their records."""

    numbers: I8
    codes: Bytes
    floats: F8
    held: I8  # how many there are


def new_shut(rows: int, n_codes: int, n_floats: int) -> Shut:
    return Shut(
        np.empty(rows, np.int64), np.empty((rows, n_codes), np.uint8), np.empty((rows, n_floats)), np.zeros(1, np.int64)
    )


@kernel(allocates=False)
def take_down(
    log: I8, codes: Bytes, floats: F8, used: I8, bounds: F8, rows: int, node: int, first: int, hands_on: bool, m: int,
    n: int, features_at: int, numbers: I8, shut: Shut, decided: I8, pen: Pen,
) -> tuple[int, float]:  # fmt: skip
    """Number the search nodes of the rows of a dive that began at ``node``, from ``first`` on, write its decisions, and
    keep the rows that are closed; settled ones are, unless the dive ``hands_on``.

    Features, which are ``n``, have states that begin at ``features_at`` in a record.  ``decided`` tells where the bytes
    of decisions end and how many there are.  Returns the next free number, and the least bound of those closed.
    """
    weakest, now = np.inf, node
    for row in range(rows):
        what, item = log[row, 0], log[row, 1]
        numbers[row] = now
        if what == ASIDE or what == SHUT:
            numbers[row] = first
            decided[0] = _decide(codes[row], item, m, n, features_at, now, first, first + 1, pen, decided[0])
            decided[1] += 1
            now, first = first + 1, first + 2
        if what == SHUT or what == SHUT_TOO or what == HERE_SHUT or (what == HERE_SETTLED and not hands_on):
            _keep(shut, numbers[row], codes[row], floats[row], used[row])
            weakest = min(weakest, bounds[row])
    return first, weakest


@inner(allocates=False)
def _decide(
    record: Bytes, item: int, m: int, n: int, features_at: int, node: int, mine: int, follow: int, pen: Pen, at: int
) -> int:
    """Write the decision about an item, of which this record took one side; returns where it ends."""
    kind, which = SAMPLE, item
    if item < m:
        place = np.int64(record[2 * item]) | (np.int64(record[2 * item + 1]) << 8)
        t = int((place - 1) // 2)
        first = place == 2 * t + 1
    else:
        kind, t, which = FEATURE, (item - m) // n, (item - m) % n
        first = record[features_at + item - m] == MUST_HERE
    one, two = (mine, follow) if first else (follow, mine)
    return int(put_split(pen, at, kind, node, which, t, one, two))


@inner(allocates=False)
def _keep(shut: Shut, number: int, record: Bytes, floats: F8, used: int) -> None:
    k = shut.held[0]
    shut.held[0] += 1
    shut.numbers[k] = number
    for q in range(record.size):
        shut.codes[k, q] = record[q]
    for q in range(used):
        shut.floats[k, q] = floats[q]


@kernel(allocates=False)
def write_leaves(points: Pen, ends: I8, numbers: I8, pen: Pen, leaf_ends: I8) -> int:
    """Write leaves whose points are written already and end at ``ends`` (leaves x tree nodes); ``leaf_ends`` tells
    where each leaf ends.  Points that are those of the leaf before are not written again."""
    at = begin = 0
    for k in range(numbers.size):
        at = put_head(pen, at, CLOSED, numbers[k])
        for t in range(ends.shape[1]):
            end = ends[k, t]
            if k > 0 and _as_before(points, ends, k, t, begin, end):
                at = put(pen, at, 1, 1)
            else:
                for q in range(begin, end):
                    pen.out[at] = points.out[q]
                    at += 1
            begin = end
        leaf_ends[k] = at
    return at


@inner(allocates=False)
def _as_before(points: Pen, ends: I8, k: int, t: int, begin: int, end: int) -> bool:
    """Whether the point from ``begin`` to ``end`` says something, and what that of the leaf before says."""
    old_end = ends[k - 1, t]
    old = ends[k - 1, t - 1] if t > 0 else ends[k - 2, ends.shape[1] - 1] if k > 1 else 0
    same = end - begin > 1 and old_end - old == end - begin
    q = 0
    while same and q < end - begin:
        same = points.out[begin + q] == points.out[old + q]
        q += 1
    return same
