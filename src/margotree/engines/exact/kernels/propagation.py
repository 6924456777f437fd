"""Domain propagation at nodes with at most two features: the sides of samples that follow from placed samples.

A sample must go left if the samples known to go right, together with it, cannot be separated from those known to go
left: it lies in the cone of the left ones as seen from the right ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.numba_backend import inner

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
I1 = NDArray[np.int8]

FREE, LEFT, RIGHT = 0, 1, 2


@inner()
def propagate(Z: F8, side: I1, min_distance: float) -> bool:
    """Place every sample whose side follows from placed ones; False if no hyperplane separates the placed ones.

    ``Z`` has up to two features, ``side`` is FREE, LEFT or RIGHT. Sides closer than ``min_distance`` count as touching:
    the weights that separate them would cost more than the cutoff.
    """
    if Z.shape[0] == 0:
        return propagate_constant(side)
    if Z.shape[0] == 1:
        return propagate_line(Z[0], side, min_distance)
    if Z.shape[0] == 2:
        return propagate_plane(Z, side, min_distance)
    return True


@inner(allocates=False)
def propagate_constant(side: I1) -> bool:
    """`propagate` without features: all samples go the same way."""
    way = FREE
    for i in range(side.size):
        if side[i] == LEFT or side[i] == RIGHT:
            if way != FREE and way != side[i]:
                return False
            way = side[i]
    for i in range(side.size):
        if side[i] == FREE:
            side[i] = way
    return True


@inner(allocates=False)
def propagate_line(z: F8, side: I1, min_distance: float) -> bool:
    """`propagate` with one feature."""
    l0, l1, r0, r1 = np.inf, -np.inf, np.inf, -np.inf
    for i in range(z.size):
        if side[i] == LEFT:
            l0, l1 = min(l0, z[i]), max(l1, z[i])
        elif side[i] == RIGHT:
            r0, r1 = min(r0, z[i]), max(r1, z[i])
    if l0 > l1 and r0 > r1:
        return True
    if l0 <= l1 and r0 <= r1:
        if l1 + min_distance <= r0:
            l0, r1 = -np.inf, np.inf
        elif r1 + min_distance <= l0:
            r0, l1 = -np.inf, np.inf
        else:
            return False
    for i in range(z.size):
        if side[i] == FREE:
            if l0 - min_distance < z[i] < l1 + min_distance:
                side[i] = LEFT
            if r0 - min_distance < z[i] < r1 + min_distance:
                if side[i] == LEFT:
                    return False
                side[i] = RIGHT
    return True


@inner(allocates=False)
def hull(Z: F8, side: I1, which: int, out: I8) -> int:
    """Write the corners of the convex hull of the samples on one side to ``out``; return their number, -1 if there are
    too many (gift wrapping, as hulls have few corners)."""
    start = -1
    for i in range(side.size):
        if side[i] == which and (
            start < 0 or Z[0, i] < Z[0, start] or (Z[0, i] == Z[0, start] and Z[1, i] < Z[1, start])
        ):
            start = i
    if start < 0:
        return 0
    n = 0
    at = start
    while n < out.size:
        out[n] = at
        n += 1
        to = -1
        for i in range(side.size):
            if side[i] != which or (Z[0, i] == Z[0, at] and Z[1, i] == Z[1, at]):
                continue
            if to < 0:
                to = i
                continue
            ax, ay = Z[0, to] - Z[0, at], Z[1, to] - Z[1, at]
            bx, by = Z[0, i] - Z[0, at], Z[1, i] - Z[1, at]
            turn = ax * by - ay * bx
            if turn < 0.0 or (turn == 0.0 and bx * bx + by * by > ax * ax + ay * ay):
                to = i
        if to < 0 or (Z[0, to] == Z[0, start] and Z[1, to] == Z[1, start]):
            return n
        at = to
    return -1


@inner(allocates=False)
def angle_to(x: float, y: float, rx: float, ry: float) -> float:
    """The angle of (x, y) to the direction (rx, ry)."""
    return np.arctan2(rx * y - ry * x, rx * x + ry * y)


@inner()
def propagate_plane(Z: F8, side: I1, min_distance: float) -> bool:
    """`propagate` with two features."""
    m = side.size
    left = np.empty(200, np.int64)
    right = np.empty(200, np.int64)
    nl = hull(Z, side, LEFT, left)
    nr = hull(Z, side, RIGHT, right)
    if nl < 0 or nr < 0 or nl + nr == 0:
        return True
    # The cone of all steps from right to left: its two outermost directions, as angles to their mean.
    rx = ry = 0.0
    for p in range(nl):
        rx += Z[0, left[p]] / nl
        ry += Z[1, left[p]] / nl
    for p in range(nr):
        rx -= Z[0, right[p]] / nr
        ry -= Z[1, right[p]] / nr
    low = high = 0.0
    low_size = high_size = np.inf
    both = nl > 0 and nr > 0
    if both:
        if rx == 0.0 and ry == 0.0:
            return False
        low, high = np.inf, -np.inf
        for p in range(nl):
            for q in range(nr):
                dx, dy = Z[0, left[p]] - Z[0, right[q]], Z[1, left[p]] - Z[1, right[q]]
                size = np.sqrt(dx * dx + dy * dy)
                if size < min_distance:
                    return False
                low, high, low_size, high_size = widen_cone(
                    angle_to(dx, dy, rx, ry), size, low, high, low_size, high_size
                )
        if cone_is_closed(low, high, low_size, high_size, min_distance):
            return False
    for i in range(m):
        if side[i] != FREE:
            continue
        goes_left = nl > 0 and is_implied(
            Z, i, left, nl, 1.0, both, rx, ry, low, high, low_size, high_size, min_distance
        )
        goes_right = nr > 0 and is_implied(
            Z, i, right, nr, -1.0, both, rx, ry, low, high, low_size, high_size, min_distance
        )
        if goes_left and goes_right:
            return False
        if goes_left:
            side[i] = LEFT
        elif goes_right:
            side[i] = RIGHT
    return True


@inner(allocates=False)
def widen_cone(
    angle: float, size: float, low: float, high: float, low_size: float, high_size: float
) -> tuple[float, float, float, float]:
    """The two outermost directions of a cone, by angle and length, after one more direction is added."""
    if angle < low:
        low, low_size = angle, size
    if angle > high:
        high, high_size = angle, size
    return low, high, low_size, high_size


@inner(allocates=False)
def cone_is_closed(low: float, high: float, low_size: float, high_size: float, min_distance: float) -> bool:
    """Whether a cone leaves no half-plane, or one in which the sides are closer than ``min_distance``."""
    deficit = np.pi - (high - low)
    return bool(deficit <= 0.0 or min(low_size, high_size) * deficit < min_distance)


@inner(allocates=False)
def is_implied(
    Z: F8,
    i: int,
    corners: I8,
    n: int,
    sign: float,
    both: bool,
    rx: float,
    ry: float,
    low: float,
    high: float,
    low_size: float,
    high_size: float,
    min_distance: float,
) -> bool:
    """Whether sample ``i`` lies in the cone of ``n`` corners of one side, as seen from the other.

    ``sign`` is 1 for corners on the left and -1 on the right; ``both`` tells that both sides have samples, and the
    following arguments describe the cone of the steps from right to left.
    """
    if not both:
        # Samples are placed on one side only: angles are relative to their mean.
        rx = ry = 0.0
        for p in range(n):
            rx += sign * (Z[0, corners[p]] - Z[0, i]) / n
            ry += sign * (Z[1, corners[p]] - Z[1, i]) / n
        if rx == 0.0 and ry == 0.0:
            return True
        low, high = np.inf, -np.inf
    for p in range(n):
        dx, dy = sign * (Z[0, corners[p]] - Z[0, i]), sign * (Z[1, corners[p]] - Z[1, i])
        size = np.sqrt(dx * dx + dy * dy)
        if size < min_distance:
            return True
        low, high, low_size, high_size = widen_cone(angle_to(dx, dy, rx, ry), size, low, high, low_size, high_size)
    return cone_is_closed(low, high, low_size, high_size, min_distance)
