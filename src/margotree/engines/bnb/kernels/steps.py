"""The steps of dives as a proof holds them (docs/proof.md): search nodes numbered, decisions and leaves as bytes.

Compiled, and without the GIL: search nodes may take less time than Python takes to write one down.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.bnb.kernels.moves import ASIDE, HERE_SETTLED, HERE_SHUT, SHUT, SHUT_TOO
from margotree.engines.bnb.kernels.points import CLOSED, FEATURE, SAMPLE, Pen, put, put_head, put_split
from margotree.engines.bnb.kernels.record import MUST_HERE
from margotree.engines.kernels.jit import bare, bare_kernel
from margotree.engines.kernels.workspace import F8

Bytes = NDArray[np.uint8]
I8 = NDArray[np.int64]


@bare_kernel()
def number_rows(
    log: I8, bounds: F8, node: int, first: int, hands_on: bool, numbers: I8, splits: I8, shut: I8
) -> tuple[int, int, int, float]:
    """Number the search nodes of the rows of a dive that began at ``node``, from ``first`` on.

    ``splits`` gets the decisions (row, search node, item, search node of the row, search node that is gone on with),
    and ``shut`` the rows that are closed; settled ones are, unless the dive ``hands_on``.  Returns how many there are
    of both, the next free number, and the least bound of those closed.
    """
    n_splits = n_shut = 0
    weakest, now = np.inf, node
    for row in range(log.shape[0]):
        what = log[row, 0]
        numbers[row] = now
        if what == ASIDE or what == SHUT:
            numbers[row] = first
            splits[n_splits, 0], splits[n_splits, 1], splits[n_splits, 2] = row, now, log[row, 1]
            splits[n_splits, 3], splits[n_splits, 4] = first, first + 1
            now, first, n_splits = first + 1, first + 2, n_splits + 1
        if what == SHUT or what == SHUT_TOO or what == HERE_SHUT or (what == HERE_SETTLED and not hands_on):
            shut[n_shut] = row
            n_shut += 1
            weakest = min(weakest, bounds[row])
    return n_splits, n_shut, first, weakest


@bare_kernel()
def write_splits(codes: Bytes, splits: I8, m: int, n: int, features_at: int, pen: Pen) -> int:
    """Write decisions about samples, or about features, whose states begin at ``features_at`` in the records of the
    rows; returns where they end."""
    at = 0
    for k in range(splits.shape[0]):
        row, item = splits[k, 0], splits[k, 2]
        kind, which = SAMPLE, item
        if item < m:
            place = np.int64(codes[row, 2 * item]) | (np.int64(codes[row, 2 * item + 1]) << 8)
            t = (place - 1) // 2
            first = place == 2 * t + 1
        else:
            kind, t, which = FEATURE, (item - m) // n, (item - m) % n
            first = codes[row, features_at + item - m] == MUST_HERE
        mine, follow = splits[k, 3], splits[k, 4]
        one, two = (mine, follow) if first else (follow, mine)
        at = put_split(pen, at, kind, splits[k, 1], which, t, one, two)
    return at


@bare_kernel()
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


@bare()
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
