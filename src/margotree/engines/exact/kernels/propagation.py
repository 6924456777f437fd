"""Domain propagation at nodes with at most two numbers: the sides of samples that follow from placed samples.

A sample must go left if the samples known to go right, together with it, cannot be separated from those known to go
left: it lies in the cone of the left ones as seen from the right ones.

A support may also have columns of words.  Samples with the same words form a cell.  Samples of one cell differ in the
numbers only, so that the steps from right to left within all cells form one cone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from margotree.engines.numba_backend import inner

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
I1 = NDArray[np.int8]

FREE, LEFT, RIGHT = 0, 1, 2

#: The largest number of numbers, and of cells, with which sides are implied.
MOST_NUMBERS, _MOST_CELLS = 2, 2000
#: The largest number of corners of a hull.
_MOST_CORNERS = 200


class Words(NamedTuple):
    """The words of the samples on a support."""

    code: I8  # (columns of words, samples): which word
    levels: I8  # how many words


class Cells(NamedTuple):
    """Samples with the same words: ``order`` lists the samples cell by cell, cell c from ``start[c]`` on."""

    order: I8
    start: I8


@inner()
def propagate(Z: F8, words: Words, side: I1, min_distance: float) -> bool:
    """Place every sample whose side follows from placed ones; False if no hyperplane separates the placed ones.

    ``Z`` has the numbers, ``side`` is FREE, LEFT or RIGHT. Sides closer than ``min_distance`` count as touching:
    the weights that separate them would cost more than the cutoff.
    """
    if Z.shape[0] > MOST_NUMBERS:
        return True
    if Z.shape[0] == 0 and words.levels.size == 2:
        return propagate_sum(words, side)
    cells = _cells_of(words, side.size)
    if cells.start.size == 0:
        return True
    if Z.shape[0] == 0:
        return propagate_constant(cells, side)
    if Z.shape[0] == 1:
        return propagate_line(Z[0], cells, side, min_distance)
    return propagate_plane(Z, cells, side, min_distance)


@inner()
def _cells_of(words: Words, n_samples: int) -> Cells:
    """The cells of the samples; without cells if they are too many."""
    n_cells, cell, order = 1, np.zeros(n_samples, np.int64), np.empty(n_samples, np.int64)
    for r in range(words.levels.size):
        n_cells *= words.levels[r]
        if n_cells > _MOST_CELLS:
            return Cells(order, np.empty(0, np.int64))
        for i in range(n_samples):
            cell[i] = cell[i] * words.levels[r] + words.code[r, i]
    start = np.zeros(n_cells + 1, np.int64)
    for i in range(n_samples):
        start[cell[i] + 1] += 1
    for c in range(n_cells):
        start[c + 1] += start[c]
    at = start[:-1].copy()
    for i in range(n_samples):
        order[at[cell[i]]] = i
        at[cell[i]] += 1
    return Cells(order, start)


@inner()
def propagate_sum(words: Words, side: I1) -> bool:
    """`propagate` with two columns of words, whose hyperplanes are f(word of one) + g(word of the other).

    A sample on the right says f >= -g, one on the left f < -g: the sides follow from chains of these.
    """
    k, n = words.levels[0], words.levels[0] + words.levels[1]
    below = np.zeros((n, n), np.bool_)  # f of the first k words, then -g of the others
    for i in range(side.size):
        a, b = words.code[0, i], k + words.code[1, i]
        if side[i] == LEFT:
            below[a, b] = True
        elif side[i] == RIGHT:
            below[b, a] = True
    for q in range(n):
        for p in range(n):
            if below[p, q]:
                for r in range(n):
                    below[p, r] |= below[q, r]
    for p in range(n):
        if below[p, p]:
            return False
    for i in range(side.size):
        a, b = words.code[0, i], k + words.code[1, i]
        if side[i] == FREE and below[a, b]:
            side[i] = LEFT
        elif side[i] == FREE and below[b, a]:
            side[i] = RIGHT
    return True


@inner(allocates=False)
def propagate_constant(cells: Cells, side: I1) -> bool:
    """`propagate` without numbers: all samples of a cell go the same way."""
    for c in range(cells.start.size - 1):
        way, members = FREE, cells.order[cells.start[c] : cells.start[c + 1]]
        for i in members:
            if side[i] == LEFT or side[i] == RIGHT:
                if way != FREE and way != side[i]:
                    return False
                way = side[i]
        for i in members:
            if side[i] == FREE:
                side[i] = way
    return True


@inner()
def propagate_line(z: F8, cells: Cells, side: I1, min_distance: float) -> bool:
    """`propagate` with one number: every cell has a threshold, and the larger values are on the same side of all."""
    n_cells, right_is_larger, right_is_smaller = cells.start.size - 1, True, True
    ends = np.empty((n_cells, 4))  # least and largest value on the left, and on the right
    for c in range(n_cells):
        l0, l1, r0, r1 = np.inf, -np.inf, np.inf, -np.inf
        for i in cells.order[cells.start[c] : cells.start[c + 1]]:
            if side[i] == LEFT:
                l0, l1 = min(l0, z[i]), max(l1, z[i])
            elif side[i] == RIGHT:
                r0, r1 = min(r0, z[i]), max(r1, z[i])
        ends[c, 0], ends[c, 1], ends[c, 2], ends[c, 3] = l0, l1, r0, r1
        if l0 <= l1 and r0 <= r1:
            if l1 + min_distance <= r0:
                right_is_smaller = False
            elif r1 + min_distance <= l0:
                right_is_larger = False
            else:
                return False
    if not right_is_larger and not right_is_smaller:
        return False
    for c in range(n_cells):
        l0, l1, r0, r1 = ends[c]
        for i in cells.order[cells.start[c] : cells.start[c + 1]]:
            if side[i] != FREE:
                continue
            goes_left = (not right_is_larger or z[i] < l1 + min_distance) and (
                not right_is_smaller or z[i] > l0 - min_distance
            )
            goes_right = (not right_is_larger or z[i] > r0 - min_distance) and (
                not right_is_smaller or z[i] < r1 + min_distance
            )
            if goes_left and goes_right:
                return False
            if goes_left:
                side[i] = LEFT
            elif goes_right:
                side[i] = RIGHT
    return True


@inner(allocates=False)
def hull(Z: F8, side: I1, members: I8, which: int, out: I8) -> int:
    """Write the corners of the convex hull of the ``members`` on one side to ``out``; return their number, -1 if there
    are too many (gift wrapping, as hulls have few corners)."""
    start = -1
    for i in members:
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
        for i in members:
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
def propagate_plane(Z: F8, cells: Cells, side: I1, min_distance: float) -> bool:
    """`propagate` with two numbers."""
    n_cells = cells.start.size - 1
    corners = np.empty((2, side.size + _MOST_CORNERS), np.int64)  # of the left and the right hulls of all cells
    begin = np.zeros((2, n_cells + 1), np.int64)
    for c in range(n_cells):
        members = cells.order[cells.start[c] : cells.start[c + 1]]
        for way in range(2):
            at = begin[way, c]
            n = hull(Z, side, members, LEFT + way, corners[way, at : at + _MOST_CORNERS])
            if n < 0:
                return True
            begin[way, c + 1] = at + n
    if begin[0, n_cells] + begin[1, n_cells] == 0:
        return True
    # The cone of all steps from right to left: its two outermost directions, as angles to their mean.
    rx = ry = 0.0
    both = False
    for c in range(n_cells):
        left, right = corners[0, begin[0, c] : begin[0, c + 1]], corners[1, begin[1, c] : begin[1, c + 1]]
        if left.size == 0 or right.size == 0:
            continue
        both = True
        for p in left:
            rx += Z[0, p] / left.size
            ry += Z[1, p] / left.size
        for q in right:
            rx -= Z[0, q] / right.size
            ry -= Z[1, q] / right.size
    low = high = 0.0
    low_size = high_size = np.inf
    if both:
        if rx == 0.0 and ry == 0.0:
            return False
        low, high = np.inf, -np.inf
        for c in range(n_cells):
            for p in corners[0, begin[0, c] : begin[0, c + 1]]:
                for q in corners[1, begin[1, c] : begin[1, c + 1]]:
                    dx, dy = Z[0, p] - Z[0, q], Z[1, p] - Z[1, q]
                    size = np.sqrt(dx * dx + dy * dy)
                    if size < min_distance:
                        return False
                    low, high, low_size, high_size = widen_cone(
                        angle_to(dx, dy, rx, ry), size, low, high, low_size, high_size
                    )
        if cone_is_closed(low, high, low_size, high_size, min_distance):
            return False
    for c in range(n_cells):
        left, right = corners[0, begin[0, c] : begin[0, c + 1]], corners[1, begin[1, c] : begin[1, c + 1]]
        for i in cells.order[cells.start[c] : cells.start[c + 1]]:
            if side[i] != FREE:
                continue
            goes_left = left.size > 0 and is_implied(
                Z, i, left, 1.0, both, rx, ry, low, high, low_size, high_size, min_distance
            )
            goes_right = right.size > 0 and is_implied(
                Z, i, right, -1.0, both, rx, ry, low, high, low_size, high_size, min_distance
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
    """Whether sample ``i`` lies in the cone of the corners of one side, as seen from the other.

    ``sign`` is 1 for corners on the left and -1 on the right; ``both`` tells that both sides have samples, and the
    following arguments describe the cone of the steps from right to left.
    """
    if not both:
        # Samples are placed on one side only: angles are relative to their mean.
        rx = ry = 0.0
        for p in corners:
            rx += sign * (Z[0, p] - Z[0, i]) / corners.size
            ry += sign * (Z[1, p] - Z[1, i]) / corners.size
        if rx == 0.0 and ry == 0.0:
            return True
        low, high = np.inf, -np.inf
    for p in corners:
        dx, dy = sign * (Z[0, p] - Z[0, i]), sign * (Z[1, p] - Z[1, i])
        size = np.sqrt(dx * dx + dy * dy)
        if size < min_distance:
            return True
        low, high, low_size, high_size = widen_cone(angle_to(dx, dy, rx, ry), size, low, high, low_size, high_size)
    return cone_is_closed(low, high, low_size, high_size, min_distance)
