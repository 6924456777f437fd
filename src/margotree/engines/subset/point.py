"""A dual point of the best-subset SVM with its working set."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.kernels.jit import inner
from margotree.engines.kernels.vectors import fill
from margotree.engines.subset.rows import Rows
from margotree.problem.problem import FloatArray

I1 = NDArray[np.int8]

# What is decided about a feature.
NEVER, MUST, MAY = 0, 1, 2
# Where a multiplier stands: at 0, in between, at its cost.
LOW, FREE, UP = 0, 1, 2
# Where a feature stands: not allowed, worth less than its price, worth just that, more, at the limit on weights.
OUT, INSIDE, KINK, QUAD, LIMIT = 0, 1, 2, 3, 4
# Entries of ``num``.
B, VALUE, PIVOTS, LINEAR, REACH = 0, 1, 2, 3, 4


class Point(NamedTuple):
    """A dual point; compiled code changes it in place."""

    a: FloatArray
    row: I1  # LOW, FREE or UP
    feature: I1  # OUT, INSIDE, KINK, QUAD or LIMIT
    sign: FloatArray  # of g_j, where a feature is beyond INSIDE
    w: FloatArray
    g: FloatArray  # A'a
    num: FloatArray  # b, dual value, pivots so far, p.a, values out of reach


def new_point(n_rows: int, n_features: int) -> Point:
    """The dual point 0."""
    return Point(
        a=np.zeros(n_rows),
        row=np.zeros(n_rows, np.int8),
        feature=np.zeros(n_features, np.int8),
        sign=np.zeros(n_features),
        w=np.zeros(n_features),
        g=np.zeros(n_features),
        num=np.zeros(5),
    )


def copy_point(point: Point) -> Point:
    return Point._make(x.copy() for x in point)


@inner
def refresh(rows: Rows, point: Point) -> None:
    """Recompute ``g`` from the multipliers, after taking a rounding residual of ``y.a`` from a free row."""
    balance = 0.0
    most = 0.0
    best = -1
    for i in range(rows.y.size):
        balance += rows.y[i] * point.a[i]
        if point.row[i] == FREE:
            space = min(point.a[i], rows.cost[i] - point.a[i])
            if space > most:
                most = space
                best = i
    if best >= 0 and abs(balance) < most:
        point.a[best] -= rows.y[best] * balance
    point.num[LINEAR] = 0.0
    fill(point.g, 0.0)
    for i in range(rows.y.size):
        a = point.a[i]
        if a != 0.0:
            point.num[LINEAR] += a * rows.p[i]
            for j in range(point.g.size):
                point.g[j] += a * rows.A[i, j]
