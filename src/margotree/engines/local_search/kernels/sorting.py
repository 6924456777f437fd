"""Sorting the events of a line: into buckets, since the times are spread out, else by merging.

Sorting takes about half of the time of a line search.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.numba_backend import inner

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: Number of events from which the unit of time is computed; moves per event after which the bucket sort is abandoned.
_SAMPLED, _MAX_MOVES = 32, 16


@inner()
def _time_unit(times: F8) -> float:
    """The median absolute value of a sample of the times."""
    sampled = np.empty(_SAMPLED)
    step = max(1, times.size // _SAMPLED)
    count = 0
    for k in range(0, times.size, step):
        if count < _SAMPLED:
            sampled[count] = abs(times[k])
            count += 1
    for k in range(1, count):
        value, j = sampled[k], k
        while j > 0 and sampled[j - 1] > value:
            sampled[j] = sampled[j - 1]
            j -= 1
        sampled[j] = value
    return sampled[count // 2] + 1e-300


@inner()
def sort_times(times: F8, order: I8, bucket: I8, ends: I8) -> None:
    """Write the indices that sort ``times`` to ``order``.

    ``bucket`` and ``ends`` are work arrays: as long as ``times``, and one longer than the number of buckets.
    """
    if not _by_buckets(times, order, bucket, ends):
        _by_merging(times, order, bucket)


@inner()
def _by_buckets(times: F8, order: I8, bucket: I8, ends: I8) -> bool:
    """Sort by buckets; return whether that finished.

    It does not where the times lie too close together or are not finite; ``order`` then is some permutation.
    """
    n, most = times.size, ends.size - 2
    for i in range(n):
        order[i] = i
    if n == 0:
        return True
    unit = _time_unit(times)
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
        if moves > _MAX_MOVES * n:
            return False
    return True


@inner()
def _by_merging(times: F8, order: I8, spare: I8) -> None:
    """Sort by merging longer and longer runs; adjacent runs that are already in order are left as they are."""
    n, width = times.size, 1
    while width < n:
        for start in range(0, n - width, 2 * width):
            middle, end = start + width, min(start + 2 * width, n)
            if times[order[middle - 1]] <= times[order[middle]]:
                continue
            for k in range(start, middle):
                spare[k] = order[k]
            p, q = start, middle
            for k in range(start, end):
                if p < middle and (q == end or times[spare[p]] <= times[order[q]]):
                    order[k] = spare[p]
                    p += 1
                else:
                    order[k] = order[q]
                    q += 1
        width *= 2
