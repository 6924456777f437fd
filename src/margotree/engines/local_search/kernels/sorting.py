"""Sorting the events of a line: by buckets, since their times are spread out and sorting is half of a line's work."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.numba_backend import inner

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


@inner()
def sort_times(times: F8, order: I8, bucket: I8, ends: I8) -> None:
    """Fill ``order`` with what sorts the times.

    ``bucket`` is as long as the times, ``ends`` the number of buckets and one more; both are for the work.
    """
    if not _by_buckets(times, order, bucket, ends):
        _by_merging(times, order, bucket)


@inner()
def _by_buckets(times: F8, order: I8, bucket: I8, ends: I8) -> bool:
    """Whether that came to an end; if not, because times lie too close together or are no numbers, at least everybody
    is in ``order``."""
    n, most = times.size, ends.size - 2
    for i in range(n):
        order[i] = i
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


@inner()
def _by_merging(times: F8, order: I8, spare: I8) -> None:
    """Merge longer and longer runs; those that follow each other already are left as they are."""
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
