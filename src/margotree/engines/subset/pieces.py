"""Pieces of the dual: what a feature takes from its value, and between which values of ``g`` which formula holds."""

from __future__ import annotations

import numpy as np

from margotree.engines.kernels.jit import inner
from margotree.engines.subset.point import I1, INSIDE, KINK, LIMIT, LINEAR, MAY, MUST, NEVER, OUT, QUAD, Point
from margotree.problem.problem import FloatArray


@inner
def huber(g: float, limit: float) -> float:
    """What a used feature costs the dual: ``g^2/2``, continued linearly beyond the limit on its weight."""
    size = abs(g)
    return 0.5 * size * size if size <= limit else limit * size - 0.5 * limit * limit


@inner
def kink_at(lam: float, limit: float) -> float:
    """The ``|g|`` from which a feature is worth its price."""
    r = np.sqrt(2.0 * lam)
    return r if r <= limit else 0.5 * limit + lam / limit


@inner
def place_features(point: Point, kind: I1, lam: float, limit: float) -> None:
    """Put every feature on the piece its ``g`` belongs to; those on their kink stay there."""
    r = kink_at(lam, limit)
    for j in range(kind.size):
        value = huber(point.g[j], limit)
        if kind[j] == NEVER:
            point.feature[j] = OUT
        elif kind[j] == MAY and point.feature[j] == KINK and abs(abs(point.g[j]) - r) <= 1e-8 * (1.0 + r):
            continue
        elif kind[j] == MAY and value <= lam:
            point.feature[j] = INSIDE
        else:
            point.feature[j] = QUAD if abs(point.g[j]) < limit else LIMIT
            point.sign[j] = 1.0 if point.g[j] > 0 else -1.0


@inner
def dual_value(point: Point, kind: I1, lam: float, limit: float) -> float:
    """The dual value from what the steps keep up to date."""
    total = point.num[LINEAR]
    for j in range(kind.size):
        if kind[j] == MUST:
            total -= huber(point.g[j], limit)
        elif kind[j] == MAY:
            total -= max(0.0, huber(point.g[j], limit) - lam)
    return total


@inner
def _piece(point: Point, j: int, kind: I1, r: float, limit: float) -> tuple[float, float]:
    """The range of ``g_j`` over which the feature's present formula holds."""
    at = point.feature[j]
    if at == INSIDE:
        return -r, r
    if at == QUAD and kind[j] == MUST:
        return -limit, limit
    inner = r if at == QUAD else limit
    if at == LIMIT and kind[j] == MAY:
        inner = max(r, limit)
    outer = limit if at == QUAD else np.inf
    return (inner, outer) if point.sign[j] > 0 else (-outer, -inner)


@inner
def feature_limit(point: Point, kind: I1, dg: FloatArray, r: float, limit: float, t: float) -> tuple[float, int]:
    """The feature that reaches the end of its piece first within a step ``t``, or -1."""
    who = -1
    for j in range(dg.size):
        if point.feature[j] == OUT or point.feature[j] == KINK or dg[j] == 0.0:
            continue
        low, high = _piece(point, j, kind, r, limit)
        end = high if dg[j] > 0 else low
        if abs(end) == np.inf:
            continue
        reach = (end - point.g[j]) / dg[j]
        if reach < t:
            t = max(reach, 0.0)
            who = j
    return t, who


@inner
def next_piece(point: Point, j: int, kind: I1, r: float, limit: float, outwards: bool) -> int:
    """The piece on the other side of the end that feature ``j`` reached."""
    at = point.feature[j]
    if at == INSIDE:
        return KINK
    if at == QUAD:
        return KINK if kind[j] == MAY and not outwards else LIMIT
    return KINK if kind[j] == MAY and r > limit else QUAD
