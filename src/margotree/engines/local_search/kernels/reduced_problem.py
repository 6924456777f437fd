"""The reduced problem of an upper node, while its subtrees stay as they are: its value, cuts across a direction, and
exact minima on lines."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.local_search.kernels.edge_directions import HELD, turn
from margotree.engines.local_search.kernels.line_search import along, events, thresholds
from margotree.engines.local_search.kernels.sorting import sort_times
from margotree.engines.local_search.kernels.svm import heights, hinge_value
from margotree.engines.node.kernels.vectors import copy, dot, fill
from margotree.engines.numba_backend import inner, kernel, struct
from margotree.problem.value import TIE

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

#: A step must gain more than this share to be taken.
GAIN = 1e-9
#: So many turns in a row may gain nothing.
_IN_VAIN = 8


@struct
class Reduced(NamedTuple):
    """Samples (rows), prices of lacking a margin on the right and left, costs below on the left and right."""

    Z: F8
    plus: F8
    minus: F8
    low: F8
    high: F8


class Room(NamedTuple):
    """What is needed on a line: its events, their order, and heights."""

    times: F8
    kinds: NDArray[np.int8]
    whose: I8
    order: I8
    bucket: I8
    ends: I8
    w: F8
    h: F8


@kernel()
def measure(node: Reduced, w: F8, b: float, eps: float, h: F8) -> float:
    """Everything but prices of features, infinite if a sample lies in the band; ``h`` becomes the heights."""
    return _value(node, w, b, eps, h)


@inner()
def _value(node: Reduced, w: F8, b: float, eps: float, h: F8) -> float:
    heights(node.Z, w, b, h)
    slack = min(TIE * (1.0 + abs(b)), 0.25 * eps)
    below = 0.0
    for i in range(h.size):
        if h[i] >= -slack:
            below += node.high[i]
        elif h[i] > slack - eps:
            return np.inf
        else:
            below += node.low[i]
    return 0.5 * dot(w, w) + hinge_value(h, node.plus, node.minus) + below


@kernel()
def cut(node: Reduced, d: F8, lengths: F8, eps: float, best: float) -> tuple[float, float, float]:
    """The best threshold along a direction at any of the lengths, if it beats ``best`` (`sweep.thresholds`)."""
    m = node.plus.size
    q, order = np.empty(m), np.empty(m, np.int64)
    heights(node.Z, d, 0.0, q)
    sort_times(q, order, np.empty(m, np.int64), np.empty(m // 2 + 2, np.int64))
    return thresholds(q, order, node.plus, node.minus, node.low, node.high, dot(d, d), lengths, eps, best)


@kernel()
def search_lines(
    node: Reduced, w: F8, h: F8, at: F8, aims: F8, features: I8, chance: F8, eps: float, budget: int, price: float,
    flag: F8,
) -> None:  # fmt: skip
    """Exact minima on lines: towards the hyperplanes ``aims``, longer or shorter, to and fro, along ``features``, and
    in turns that ``chance`` (a row each) has a say in, until too many in a row gain nothing.

    ``w`` with its heights ``h`` and ``at``, its offset and value, are the best so far and become the best found.
    Features beyond the ``budget`` cost ``price`` each.
    """
    m, p = node.Z.shape
    room = Room(
        np.empty(4 * m), np.empty(4 * m, np.int8), np.empty(4 * m, np.int64), np.empty(4 * m, np.int64),
        np.empty(4 * m, np.int64), np.empty(2 * m + 2, np.int64), np.empty(p), np.empty(m),
    )  # fmt: skip
    d, g = np.empty(p), np.empty(m)
    for k in range(aims.shape[0]):
        for a in range(p):
            d[a] = aims[k, a] - w[a]
        _towards(node, w, h, at, d, aims[k, p] - at[0], g, eps, budget, price, room)
    copy(w, d)
    _towards(node, w, h, at, d, at[0], g, eps, budget, price, room)
    fill(d, 0.0)
    _towards(node, w, h, at, d, 1.0, g, eps, budget, price, room)
    for f in range(features.size):
        if flag[0] != 0.0:
            return
        j = features[f]
        d[j] = 1.0
        for i in range(m):
            g[i] = node.Z[i, j]
        _step(node, w, h, at, d, 0.0, g, eps, budget, price, room)
        d[j] = 0.0
    if chance.shape[0] > 0:
        _take_turns(node, w, h, at, d, g, chance, eps, budget, price, room, flag)


@inner()
def _take_turns(
    node: Reduced, w: F8, h: F8, at: F8, d: F8, g: F8, chance: F8, eps: float, budget: int, price: float, room: Room,
    flag: F8,
) -> None:  # fmt: skip
    m, p = node.Z.shape
    usable, way, basis = np.empty(p), np.empty(p + 1), np.empty((min(p + 1, HELD), p + 1))
    near, order = np.empty(m), np.empty(m, np.int64)
    in_vain, value = 0, np.inf
    for k in range(chance.shape[0]):
        if flag[0] != 0.0 or in_vain == _IN_VAIN:
            return
        if at[1] < value:
            value = at[1]
            for i in range(m):
                near[i] = abs(h[i])
            sort_times(near, order, room.bucket[:m], room.ends[: m // 2 + 2])
            for a in range(p):
                usable[a] = 1.0 if budget >= p or w[a] != 0.0 else 0.0
        in_vain += 1
        if not turn(node.Z, h, node.low, node.high, order, usable, chance[k], basis, way):
            continue
        copy(way[:p], d)
        _towards(node, w, h, at, d, way[p], g, eps, budget, price, room)
        if at[1] < value:
            in_vain = 0


@inner()
def _towards(
    node: Reduced, w: F8, h: F8, at: F8, d: F8, by: float, g: F8, eps: float, budget: int, price: float, room: Room
) -> None:
    heights(node.Z, d, by, g)
    _step(node, w, h, at, d, by, g, eps, budget, price, room)


@inner()
def _step(
    node: Reduced, w: F8, h: F8, at: F8, d: F8, by: float, g: F8, eps: float, budget: int, price: float, room: Room
) -> None:
    """Go to the best point of a line, ``g`` being how its heights change, if its value from scratch is better."""
    over = -budget
    for a in range(w.size):
        over += 1 if w[a] != 0.0 or d[a] != 0.0 else 0
    extra = price * over if over > 0 else 0.0
    if extra == np.inf:
        return
    n = events(h, g, node.plus, node.minus, eps, room.times, room.kinds, room.whose)
    sort_times(room.times[:n], room.order[:n], room.bucket[:n], room.ends[: n // 2 + 2])
    far, _ = along(
        h, g, node.plus, node.minus, node.low, node.high, dot(w, w), dot(w, d), dot(d, d), eps, at[1] - extra,
        room.times, room.kinds, room.whose, room.order[:n],
    )  # fmt: skip
    if far == 0.0:
        return
    over = -budget
    for a in range(w.size):
        room.w[a] = w[a] + far * d[a]
        over += 1 if room.w[a] != 0.0 else 0
    b = at[0] + far * by
    value = _value(node, room.w, b, eps, room.h) + (price * over if over > 0 else 0.0)
    if value < at[1] - GAIN * abs(at[1]):
        copy(room.w, w)
        copy(room.h, h)
        at[0], at[1] = b, value
