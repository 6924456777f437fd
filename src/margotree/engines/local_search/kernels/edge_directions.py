"""Directions to turn a hyperplane in, so that somebody on the dearer side changes sides and others near it stay put.

Where a split is cheap itself and all depends on who goes where, its value has a step for every sample.  Hyperplanes
that part the samples alike are the cells between the hyperplanes that the samples span in the space of ``(w, b)``, and
to keep samples at their heights is to move along the edges of such a cell.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.kernels.vectors import dot
from margotree.engines.numba_backend import inner

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: So many samples stay put at most.
HELD = 64
#: Somebody this far from the hyperplane is chosen, in the mean, among those who are to change sides.
_MIDDLING = 5.0
#: A sample whose part outside of the others' span is a smaller share than this (squared) is in it.
_INSIDE = 1e-10
#: A simple generator of pseudorandom numbers.
_TIMES, _PLUS, _MODULUS = 1103515245, 12345, 2147483648


@inner()
def _is_lost(h: float, low: float, high: float) -> bool:
    """Whether a sample is on the side that is dearer for it."""
    return high > low if h >= 0.0 else low > high


@inner()
def _row(Z: F8, i: int, usable: F8, v: F8) -> float:
    """A sample as a vector of the space of ``(w, b)``, without features that are not to be used; its squared length."""
    p = usable.size
    for a in range(p):
        v[a] = Z[i, a] * usable[a]
    v[p] = 1.0
    return dot(v, v)


@inner()
def _take_off(v: F8, basis: F8, count: int) -> None:
    """Take off what lies along the vectors of a basis."""
    for k in range(count):
        b = basis[k]
        far = dot(v, b)
        for a in range(v.size):
            v[a] -= far * b[a]


@inner()
def _chosen(h: F8, low: F8, high: F8, order: I8, skip: int) -> int:
    """Of those on their dearer side the one so many places from the hyperplane, or the last; -1 if there is none."""
    found = -1
    for k in range(order.size):
        i = order[k]
        if _is_lost(h[i], low[i], high[i]):
            found = i
            if skip == 0:
                break
            skip -= 1
    return found


@inner()
def turn(Z: F8, h: F8, low: F8, high: F8, order: I8, usable: F8, chance: F8, basis: F8, d: F8) -> bool:
    """Fill in a direction, if there is one: who is to change sides, how many stay put, and whether these are just those
    nearest to the hyperplane, is up to ``chance``.  ``order`` sorts the samples by how near they are."""
    i = _chosen(h, low, high, order, int(-_MIDDLING * np.log(max(chance[0], 1e-12))))
    if i < 0:
        return False
    size, places = _row(Z, i, usable, d), 1
    for a in range(usable.size):
        places += usable[a] > 0.0
    most, count = min(int(chance[1] * places), basis.shape[0]), 0
    thin, state = chance[2] < 0.5, int(chance[3] * _MODULUS)
    for k in range(order.size):
        if count == most:
            break
        j = order[k]
        if j == i or _is_lost(h[j], low[j], high[j]):
            continue
        state = (state * _TIMES + _PLUS) % _MODULUS
        if thin and 2 * state < _MODULUS:
            continue
        v = basis[count]
        length = _row(Z, j, usable, v)
        _take_off(v, basis, count)
        rest = dot(v, v)
        if rest > _INSIDE * length:
            scale = 1.0 / np.sqrt(rest)
            for a in range(v.size):
                v[a] *= scale
            count += 1
    _take_off(d, basis, count)
    return dot(d, d) > _INSIDE * size
