"""Sorting the events of a line: by buckets, since their times are spread out and sorting is half of a line's work."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.kernels.jit import inner, kernel

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: Events that the unit of time is drawn from; steps per event after which the buckets have failed.
_DRAWN, _PATIENCE = 32, 16


@inner()
def _unit(times: F8) -> float:
    """A middling size of the times."""
    drawn = np.empty(_DRAWN)
    step = max(1, times.size // _DRAWN)
    count = 0
    for k in range(0, times.size, step):
        if count < _DRAWN:
            drawn[count] = abs(times[k])
            count += 1
    for k in range(1, count):
        at, j = drawn[k], k
        while j > 0 and drawn[j - 1] > at:
            drawn[j] = drawn[j - 1]
            j -= 1
        drawn[j] = at
    return drawn[count // 2] + 1e-300


@kernel()
def sort_times(times: F8, order: I8, bucket: I8, ends: I8) -> bool:
    """Fill ``order`` with what sorts the times; False if they lie too close together, or are no numbers.

    ``bucket`` is as long as the times, ``ends`` the number of buckets and one more; both are for the work.
    """
    n, most = times.size, ends.size - 2
    if n == 0:
        return True
    unit = _unit(times)
    for k in range(ends.size):
        ends[k] = 0
    for i in range(n):
        t = times[i]
        if not abs(t) < 1e300:
            return False
        bucket[i] = int(most * (0.5 + 0.5 * (t / (unit + abs(t)))))
        ends[bucket[i] + 1] += 1
    for k in range(1, ends.size):
        ends[k] += ends[k - 1]
    for i in range(n):
        order[ends[bucket[i]]] = i
        ends[bucket[i]] += 1
    moves = 0
    for k in range(1, n):
        i, j = order[k], k
        t = times[i]
        while j > 0 and times[order[j - 1]] > t:
            order[j] = order[j - 1]
            j -= 1
            moves += 1
        order[j] = i
        if moves > _PATIENCE * n:
            return False
    return True
