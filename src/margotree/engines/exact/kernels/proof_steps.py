"""The steps of dives in the format of a proof (docs/proof.md): numbers of search nodes, decisions and leaves as bytes.

Compiled, and without the GIL: a dive may solve search nodes faster than Python could write them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels.child_nodes import (
    CLOSED_CHILD,
    CLOSED_SIBLING,
    LAST_CLOSED,
    LAST_SETTLED,
    OPEN_CHILD,
)
from margotree.engines.exact.kernels.leaf_multipliers import ProofItems
from margotree.engines.exact.kernels.node_record import CODE_SHIFT, FEATURE_USED
from margotree.engines.exact.kernels.proof_bytes import (
    CHOICE_SPLIT,
    FEATURE_SPLIT,
    LEAF_STEP,
    SAMPLE_SPLIT,
    ByteBuffer,
    put_head,
    put_integer,
    put_split,
)
from margotree.engines.exact.kernels.routing import ABOVE, BOTH
from margotree.engines.node.kernels.workspace import F8
from margotree.engines.numba_backend import inner, kernel, struct

Bytes = NDArray[np.uint8]
I8 = NDArray[np.int64]


@struct
class ClosedNodes(NamedTuple):
    """Search nodes that are closed and not yet written: their numbers and their records."""

    numbers: I8
    codes: Bytes
    floats: F8
    n_nodes: I8  # their number


def new_closed_nodes(rows: int, n_codes: int, n_floats: int) -> ClosedNodes:
    """Allocate memory for ``rows`` search nodes with records of this length."""
    return ClosedNodes(
        np.empty(rows, np.int64), np.empty((rows, n_codes), np.uint8), np.empty((rows, n_floats)), np.zeros(1, np.int64)
    )


@kernel(allocates=False)
def record_dive(
    log: I8, codes: Bytes, floats: F8, used: I8, bounds: F8, rows: int, node: int, first: int,
    settled_continues: bool, items: ProofItems, n: int, first_choice: int, numbers: I8, closed_nodes: ClosedNodes,
    decisions: I8, buffer: ByteBuffer,
) -> tuple[int, float]:  # fmt: skip
    """Number the search nodes of a dive's rows, write its decisions, and store its closed search nodes.

    Parameters
    ----------
    log, codes, floats, used, bounds
        Fields of :class:`~margotree.engines.exact.kernels.child_nodes.Rows`, of which the first ``rows`` count.
    node, first
        The number of the search node at which the dive began, and the first free number.
    settled_continues
        A settled search node is not closed: another dive continues it.
    items, n, first_choice
        The items, the number of features, and the number of the first candidate that is a choice of a class.
    numbers
        Filled in: the number of the search node of each row.
    decisions
        Where the bytes of decisions end in ``buffer``, and the number of decisions; updated.

    Returns
    -------
    first, weakest
        The next free number, and the least bound of the closed search nodes.
    """
    least_closed_bound, now = np.inf, node
    for row in range(rows):
        what, item = log[row, 0], log[row, 1]
        numbers[row] = now
        if what == OPEN_CHILD or what == CLOSED_CHILD:
            numbers[row] = first
            decisions[0] = _write_decision(
                codes[row], item, items, n, first_choice, now, first, first + 1, buffer, decisions[0]
            )
            decisions[1] += 1
            now, first = first + 1, first + 2
        if (
            what == CLOSED_CHILD
            or what == CLOSED_SIBLING
            or what == LAST_CLOSED
            or (what == LAST_SETTLED and not settled_continues)
        ):
            _store_closed(closed_nodes, numbers[row], codes[row], floats[row], used[row])
            least_closed_bound = min(least_closed_bound, bounds[row])
    return first, least_closed_bound


@inner(allocates=False)
def _write_decision(
    record: Bytes,
    item: int,
    items: ProofItems,
    n: int,
    first_choice: int,
    node: int,
    own: int,
    sibling: int,
    buffer: ByteBuffer,
    at: int,
) -> int:
    """Write the decision about an item, of which this record is on one side; return the position after it."""
    kind, which = SAMPLE_SPLIT, item
    if item < items.samples:
        place = np.int64(record[2 * item]) | (np.int64(record[2 * item + 1]) << 8)
        t = int((place - 1) // 2)
        first = place == 2 * t + 1
    elif item >= first_choice:
        K = items.code.shape[1]
        kind, t, which = CHOICE_SPLIT, (item - first_choice) // K, (item - first_choice) % K
        code = np.int64(record[items.choice_offset + item - first_choice]) - CODE_SHIFT
        first = code == ABOVE if 2 * t + 1 < items.cost.shape[0] else code != BOTH
    else:
        feature = item - items.cost.shape[1]
        kind, t, which = FEATURE_SPLIT, feature // n, feature % n
        first = record[items.feature_offset + feature] == FEATURE_USED
    one, two = (own, sibling) if first else (sibling, own)
    return int(put_split(buffer, at, kind, node, which, t, one, two))


@inner(allocates=False)
def _store_closed(closed_nodes: ClosedNodes, number: int, record: Bytes, floats: F8, used: int) -> None:
    """Append a search node to the closed ones."""
    k = closed_nodes.n_nodes[0]
    closed_nodes.n_nodes[0] += 1
    closed_nodes.numbers[k] = number
    for q in range(record.size):
        closed_nodes.codes[k, q] = record[q]
    for q in range(used):
        closed_nodes.floats[k, q] = floats[q]


@kernel(allocates=False)
def write_leaves(points: ByteBuffer, ends: I8, numbers: I8, buffer: ByteBuffer, leaf_ends: I8) -> int:
    """Write leaves from their points; return the position after them.

    ``ends`` (leaves x tree nodes) has the ends of the points in the buffer ``points``; ``leaf_ends`` is filled in with
    the end of each leaf in ``buffer``. A point equal to that of the previous leaf is written as one byte.
    """
    at = begin = 0
    for k in range(numbers.size):
        at = put_head(buffer, at, LEAF_STEP, numbers[k])
        for t in range(ends.shape[1]):
            end = ends[k, t]
            if k > 0 and _same_as_before(points, ends, k, t, begin, end):
                at = put_integer(buffer, at, 1, 1)
            else:
                for q in range(begin, end):
                    buffer.out[at] = points.out[q]
                    at += 1
            begin = end
        leaf_ends[k] = at
    return at


@inner(allocates=False)
def _same_as_before(points: ByteBuffer, ends: I8, k: int, t: int, begin: int, end: int) -> bool:
    """Whether the point from ``begin`` to ``end`` is not empty and equal to that of the previous leaf."""
    old_end = ends[k - 1, t]
    old = ends[k - 1, t - 1] if t > 0 else ends[k - 2, ends.shape[1] - 1] if k > 1 else 0
    same = end - begin > 1 and old_end - old == end - begin
    q = 0
    while same and q < end - begin:
        same = points.out[begin + q] == points.out[old + q]
        q += 1
    return same
