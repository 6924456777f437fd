"""The search of `listed_supports` that leaves a proof behind: what raises bounds is taken down as steps of it
(docs/proof.md)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels.implied_sides import PlacedSamples, Places, ProofTerms, write_implied_sides
from margotree.engines.exact.kernels.listed_supports import (
    AHEAD,
    Samples,
    Table,
    free_of_charge,
    gather,
    has_few_groups,
    least,
    on_support,
    settle_one_class,
)
from margotree.engines.exact.kernels.merged_samples import ProofSamples
from margotree.engines.exact.kernels.node_multipliers import (
    Scratch,
    is_unknown,
    multipliers_of_hyperplane,
    new_scratch,
    put_point,
    raise_other_bounds,
)
from margotree.engines.exact.kernels.proof_bytes import (
    BYTES_PER_SAMPLE,
    POINT_HEAD,
    RAISE_HEAD,
    RAISE_STEP,
    ByteBuffer,
    put,
    put_head,
)
from margotree.engines.numba_backend import inner, kernel

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: What may be known of a support's bound: that it is to be raised, that it is exact, that nothing raises it further.
OPEN, EXACT, STUCK = 0, 1, 2


@kernel()
def search(
    samples: Samples, terms: ProofTerms, placed: PlacedSamples, t: int, index: I8, side: F8, place: I8, known: Places, cutoff: float,
    table: Table, ids: I8, lb: F8, state: NDArray[np.int8], target: float, tol: float, work: F8, tolerance: float,
    numbers: I8, buffer: ByteBuffer,
) -> tuple[int, bool, int, int]:  # fmt: skip
    """Raise the least of the bounds ``lb`` of the supports ``ids`` of tree node ``t`` until it is exact to ``tol`` or
    at least ``target``, and write down why; ``index`` gets there, and takes these sides.

    A bound is raised to what its multipliers prove, up to a share ``tolerance``; where many samples are alike on a
    support, these raise bounds of other supports, too.  Where samples count of which the proof does not know enough, it
    is told more (`followed.follow`, which says what ``known``, ``cutoff`` and ``numbers`` are); what it cannot be told
    is not raised.  ``state`` tells of every support what is known of its bound, `OPEN` at first.  Returns the position
    of the least bound, whether the search is over (if not, it goes on once the bytes are taken away), where the bytes
    end, and how many steps they are.
    """
    at = steps = 0
    if free_of_charge(samples, index, side):
        p = least(lb)
        settle_one_class(samples, table, ids[p], index)
        state[p] = EXACT
        return p, True, at, steps
    at_node, small = _proof_samples(samples, terms, t, index, side, known), gather(samples, t, index, side)
    scratch, v = new_scratch(samples, at_node), np.empty(index.size)
    best = target
    for q in range(ids.size):
        best = min(best, lb[q]) if state[q] == EXACT else best
    while True:
        p = least(lb)
        if lb[p] >= target or state[p] != OPEN or work[1, 1] != 0.0:
            return p, True, at, steps
        # A support behind the best so far need not be known exactly, only to be well behind it.
        goal = min(target, best + AHEAD * (target - best))
        value, sure = on_support(samples, small, scratch.groups, table, ids[p], terms.eps, goal, tol, work[1, 1:2])
        if value > lb[p]:
            at, written, proved, has_room = write_raise(
                samples, terms, placed, t, at_node, scratch, place, known, cutoff, table, ids[p], lb[p], numbers, buffer, at,
                v,
            )  # fmt: skip
            steps += written
            if not has_room:
                return p, False, at, steps
            if proved > lb[p] and has_few_groups(samples, table.cols[ids[p], : table.size[ids[p]]], index.size):
                raise_other_bounds(samples, at_node, scratch, terms.eps, v, table, ids, lb, goal)
            lb[p] = max(lb[p], value if proved >= value * (1.0 - tolerance) else proved)
        state[p] = EXACT if sure and lb[p] >= value * (1.0 - tol) else STUCK
        if sure and value < goal:
            best = min(best, value)


@inner()
def write_raise(
    samples: Samples, terms: ProofTerms, placed: PlacedSamples, t: int, at_node: ProofSamples, scratch: Scratch, place: I8, known: Places,
    cutoff: float, table: Table, s: int, before: float, numbers: I8, buffer: ByteBuffer, at: int, v: F8,
) -> tuple[int, int, float, bool]:  # fmt: skip
    """Write, from ``at`` on, the step that raises the bound ``before`` of support ``s``, whose multipliers go to ``v``.

    Returns where the bytes end, how many steps they are, what they prove (0 if nothing), and whether there was room.
    """
    steps = turn = 0
    balance, value = multipliers_of_hyperplane(samples, at_node, scratch, terms.eps, table, s, v)
    while turn < 2 and balance >= 0 and value > before:
        if at + RAISE_HEAD + POINT_HEAD + BYTES_PER_SAMPLE * v.size > buffer.out.size:
            return at, steps, 0.0, False
        end = put_point(at_node, terms.eps, v, balance, terms.unit, buffer, at + RAISE_HEAD, scratch.positions)
        if end > 0:
            put(buffer, put_head(buffer, at, RAISE_STEP, numbers[0]), t, 2)
            return end, steps + 1, value, True
        if turn == 0:
            unknown = _unknown_samples(at_node, scratch, terms.eps, v, balance)
            at, written, has_room = write_implied_sides(
                samples, terms, placed, place, known, unknown, cutoff, numbers, buffer, at
            )
            steps += 2 * written
            if not has_room:
                return at, steps, 0.0, False
            for i in range(v.size):
                at_node.known[i] = terms.sides[t, known[at_node.index[i]]]
            balance, value = multipliers_of_hyperplane(samples, at_node, scratch, terms.eps, table, s, v)
        turn += 1
    return at, steps, 0.0, True


@inner()
def _proof_samples(samples: Samples, terms: ProofTerms, t: int, index: I8, side: F8, known: Places) -> ProofSamples:
    k = index.size
    y, cost, known_side = np.empty(k), np.empty(k), np.empty(k)
    for i in range(k):
        y[i], cost[i], known_side[i] = samples.y[index[i]], terms.cost[t, index[i]], terms.sides[t, known[index[i]]]
    return ProofSamples(index, y, side, cost, known_side)


@inner()
def _unknown_samples(at_node: ProofSamples, scratch: Scratch, eps: float, v: F8, balance: int) -> I8:
    """The samples that count of which the proof does not know enough."""
    count = 0
    for i in range(v.size):
        if is_unknown(at_node, eps, i, v, balance):
            scratch.positions[count] = at_node.index[i]
            count += 1
    return scratch.positions[:count]
