"""What a waiting sample would cost on either side of its node, estimated from the hyperplanes at hand.

This is done for all samples at every step, so functions get the few arrays they read and not the whole pool: handing
over a pool takes longer than the estimate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.bnb.kernels.pool import Pool
from margotree.engines.bnb.kernels.probe import TOL, below, in_band
from margotree.engines.kernels.jit import bare
from margotree.engines.kernels.state import F8, N_ITEMS

I8 = NDArray[np.int64]

#: Stand-in for a cost that is not known yet, as a share of C: an empty node, a sample inside a band.
NOMINAL = 1e-2
#: A gain of nothing still ranks by the other side's gain.
FLOOR = 1e-6


@bare()
def path_cost(h: F8, slot: I8, cnt: I8, cost: F8, y: float, eps: float, t: int, i: int) -> float:
    """What sample ``i`` would pay at ``t`` and below it under the current hyperplanes."""
    total = 0.0
    T = slot.size
    while t < T:
        s = slot[t]
        if cnt[s, N_ITEMS] == 0:
            return total + NOMINAL * cost[t, i]
        hinge = 1.0 - y * h[s, i]
        if hinge > TOL:
            total += cost[t, i] * hinge
        if 2 * t + 1 < T and in_band(h[s, i], eps):
            total += NOMINAL * cost[t, i]
        t = below(t, h[s, i])
    return total


@bare()
def estimate(pool: Pool) -> None:
    """Fill in ``pool.guess`` and ``pool.score`` of all samples; those that cost nothing to wait have a score of -1."""
    h, nu, o, slot, cnt, cost, eps = pool.h, pool.nu, pool.o, pool.slot, pool.cnt, pool.cost, pool.eps
    place, norm2, guess, score, worth = pool.place, pool.norm2, pool.guess, pool.score, pool.worth
    last = slot.size // 2
    for i in range(place.size):
        t, y = place[i], pool.y[i]
        score[i] = -1.0
        if t >= last:
            continue
        s = slot[t]
        now = h[s, i]
        child = below(t, now)
        same = path_cost(h, slot, cnt, cost, y, eps, child, i)
        if in_band(now, eps):
            same += NOMINAL * cost[t, i]
        if same == 0.0:
            continue
        # On the other side: the jump of a sample sent against its label, and what turning the hyperplane takes.
        flip = path_cost(h, slot, cnt, cost, y, eps, 4 * t + 3 - child, i) + 0.5 * now * now / norm2[i]
        if (child == 2 * t + 2) == (y > 0.0):
            flip += cost[t, i] - (nu[s, i] if o[s, i] == y else 0.0)
        guess[0, i] = same
        guess[1, i] = flip + FLOOR * cost[t, i]
        score[i] = same * worth[0, i] * guess[1, i] * worth[1, i]
