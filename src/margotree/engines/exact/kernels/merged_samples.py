"""The samples at a tree node in a proof; on few features with few values, groups of equal samples are merged."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels.listed_supports import I4, SampleGroups, Samples, groups_of
from margotree.engines.numba_backend import inner

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: Smaller shares of a multiplier are rounding.
_NOTHING = 1e-14


class ProofSamples(NamedTuple):
    """The samples at a tree node: their numbers, labels, the side that each takes there (0: undecided), its cost in the
    proof, and the side that the proof contains (`NOT_HERE`: the proof does not show that the sample gets there)."""

    sample_ids: I8  # numbers of the samples
    y: F8
    side: F8
    cost: F8
    known: F8


@inner()
def merge_identical(
    samples: Samples, at_node: ProofSamples, groups: SampleGroups, s: int, cols: I8
) -> tuple[ProofSamples, I4]:
    """The samples with each group merged into one, and the group of each sample (`listed_supports.merge_groups`)."""
    group, first = groups_of(samples, groups, s, cols)
    cost = np.zeros(first.size)
    for i in range(group.size):
        cost[group[i]] += at_node.cost[i]
    side = at_node.side[first]
    return ProofSamples(at_node.sample_ids[first], at_node.y[first], side, cost, side), group


@inner()
def distribute_multipliers(
    at_node: ProofSamples, group: I4, merged: ProofSamples, total: F8, balance: int, v: F8
) -> int:
    """Distribute the ``total`` of each group to its samples: full cost or 0 for each, except for one sample per group.

    A bound depends on the totals only, and this keeps the lists in a proof short. Samples whose sides the proof
    contains come first.

    Parameters
    ----------
    group, merged
        The group of each sample, and the merged samples.
    balance
        The group of the sample that balances the others.
    v
        Filled in with the multipliers.

    Returns
    -------
    balance
        The sample that balances the others, -1 if there is none.
    """
    left, one = total.copy(), np.full(total.size, -1, np.int64)
    # No branches in the loop over samples: the processor cannot predict the next group.
    share, listed = np.zeros(total.size), np.zeros(total.size, np.int64)
    for q in range(total.size):
        share[q] = 1.0 if q != balance and total[q] == merged.cost[q] else 0.0
        counts = q == balance or total[q] != 0.0 or merged.side[q] == -merged.y[q]
        listed[q] = 1 if share[q] == 0.0 and counts else 0
    positions, count = np.empty(v.size + 1, np.int64), 0
    for i in range(v.size):
        q = group[i]
        v[i] = at_node.cost[i] * share[q]
        positions[count] = i
        count += listed[q]
    unknown = 0  # samples whose sides are not in the proof come after the others
    for r in range(count):
        i = positions[r]
        if at_node.known[i] == at_node.side[i]:
            _assign(at_node, group, i, total, left, one, v)
        else:
            positions[unknown], positions[r] = i, positions[unknown]
            unknown += 1
    for r in range(unknown):
        _assign(at_node, group, positions[r], total, left, one, v)
    for q in range(total.size):  # above full cost, or below it, where the side is decided
        i = one[q]
        if i >= 0 and at_node.side[i] == (at_node.y[i] if left[q] > 0.0 else -at_node.y[i]):
            v[i] += left[q] if abs(left[q]) > _NOTHING * at_node.cost[i] else 0.0
    if one[balance] >= 0 and at_node.side[one[balance]] == 0.0:
        _move_balance_inside(at_node, group, positions[:count], one[balance], v)
    return one[balance]


@inner(allocates=False)
def _assign(at_node: ProofSamples, group: I4, i: int, total: F8, left: F8, one: I8, v: F8) -> None:
    """Give sample ``i`` as much as possible of what is ``left`` of its group's total.

    ``one`` has, for each group, the sample whose multiplier may still change.
    """
    side, cost, q = at_node.side[i], at_node.cost[i], group[i]
    against = side == -at_node.y[i]
    v[i] = cost if against else min(cost, left[q]) if left[q] > _NOTHING * total[q] else 0.0
    left[q] -= v[i]
    if v[i] > 0.0 and (one[q] < 0 or side == 0.0):
        one[q] = i


@inner()
def _move_balance_inside(at_node: ProofSamples, group: I4, positions: I8, b: int, v: F8) -> None:
    """Move the multiplier of sample ``b``, which balances the others, away from the limits of its range, by exchange
    with another sample of its group if there is one."""
    cost, full, other = at_node.cost, v[b] > 0.5 * at_node.cost[b], -1
    for r in range(positions.size):
        i = positions[r]
        better = other < 0 or at_node.known[other] != at_node.side[other]
        if better and i != b and group[i] == group[b] and v[i] == (0.0 if full else cost[i]):
            other = i
    if other >= 0:
        part = 0.5 * min(cost[other], cost[b]) * (1.0 if full else -1.0)
        v[other] += part
        v[b] -= part
