"""The search of `listed_supports` with a proof: what raises bounds is recorded as steps (docs/proof.md)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels.implied_sides import PlacedSamples, Places, ProofTerms, write_implied_sides
from margotree.engines.exact.kernels.listed_supports import (
    AHEAD,
    Samples,
    Table,
    costs_nothing,
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
    put_head,
    put_integer,
)
from margotree.engines.numba_backend import inner, kernel

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: States of a support's bound: it may be raised, it is exact, it cannot be raised further.
OPEN, EXACT, STUCK = 0, 1, 2


@kernel()
def search(
    samples: Samples, terms: ProofTerms, placed: PlacedSamples, t: int, index: I8, side: F8, place: I8, known: Places,
    cutoff: float, table: Table, ids: I8, lb: F8, state: NDArray[np.int8], target: float, tol: float, work: F8,
    tolerance: float, numbers: I8, buffer: ByteBuffer,
) -> tuple[int, bool, int, int]:  # fmt: skip
    """Raise the least bound of the supports of tree node ``t`` until it is exact to ``tol`` or at least ``target``, and
    write the steps that prove it.

    A bound is raised to what its multipliers prove, up to a share ``tolerance``; where many samples are equal on a
    support, its multipliers raise bounds of other supports, too. If a bound depends on samples whose sides are not
    decided in the proof, decisions about them are written first (`implied_sides.prove_sides`); if that is not possible,
    the bound is not raised.

    Parameters
    ----------
    index, side
        The samples at the tree node, and the side that each takes (0: undecided).
    place, known, cutoff, numbers
        As in `implied_sides.prove_sides`.
    ids, lb, state
        The supports, their bounds, and what is known of each bound: `OPEN` at first; updated.

    Returns
    -------
    position, is_over, end, steps
        The position of the least bound; whether the search is over (if not, it continues once the buffer has been
        read); where the bytes end, and how many steps they are.
    """
    at = steps = 0
    if costs_nothing(samples, index, side):
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
        # The value of a support above the best one is not needed exactly, only a bound well above the best value.
        goal = min(target, best + AHEAD * (target - best))
        value, sure = on_support(samples, small, scratch.groups, table, ids[p], terms.eps, goal, tol, work[1, 1:2])
        if value > lb[p]:
            at, written, proved, has_room = write_raise(
                samples, terms, placed, t, at_node, scratch, place, known, cutoff, table, ids[p], lb[p], numbers,
                buffer, at, v,
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
    samples: Samples, terms: ProofTerms, placed: PlacedSamples, t: int, at_node: ProofSamples, scratch: Scratch,
    place: I8, known: Places, cutoff: float, table: Table, s: int, before: float, numbers: I8, buffer: ByteBuffer,
    at: int, v: F8,
) -> tuple[int, int, float, bool]:  # fmt: skip
    """Write, from ``at`` on, the step that raises the bound ``before`` of support ``s``; its multipliers go to ``v``.

    Returns where the bytes end, the number of steps, the bound that they prove (0 if none), and whether there was
    space.
    """
    steps = turn = 0
    balance, value = multipliers_of_hyperplane(samples, at_node, scratch, terms.eps, table, s, v)
    while turn < 2 and balance >= 0 and value > before:
        if at + RAISE_HEAD + POINT_HEAD + BYTES_PER_SAMPLE * v.size > buffer.out.size:
            return at, steps, 0.0, False
        end = put_point(at_node, terms.eps, v, balance, terms.unit, buffer, at + RAISE_HEAD, scratch.positions)
        if end > 0:
            put_integer(buffer, put_head(buffer, at, RAISE_STEP, numbers[0]), t, 2)
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
                at_node.known[i] = terms.sides[t, known[at_node.sample_ids[i]]]
            balance, value = multipliers_of_hyperplane(samples, at_node, scratch, terms.eps, table, s, v)
        turn += 1
    return at, steps, 0.0, True


@inner()
def _proof_samples(samples: Samples, terms: ProofTerms, t: int, index: I8, side: F8, known: Places) -> ProofSamples:
    """The samples ``index`` at tree node ``t`` with their costs in the proof and the sides that it contains."""
    k = index.size
    y, cost, known_side = np.empty(k), np.empty(k), np.empty(k)
    for i in range(k):
        y[i], cost[i], known_side[i] = samples.y[index[i]], terms.cost[t, index[i]], terms.sides[t, known[index[i]]]
    return ProofSamples(index, y, side, cost, known_side)


@inner()
def _unknown_samples(at_node: ProofSamples, scratch: Scratch, eps: float, v: F8, balance: int) -> I8:
    """The samples on which the bound depends and whose sides the proof does not show."""
    count = 0
    for i in range(v.size):
        if is_unknown(at_node, eps, i, v, balance):
            scratch.positions[count] = at_node.sample_ids[i]
            count += 1
    return scratch.positions[:count]
