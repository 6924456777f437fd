"""Convex polygons in the plane, and their intersections with lines and half-planes."""

from __future__ import annotations

import numpy as np

from margotree.tree.scaling import FloatArray


def box_polygon(low: FloatArray, high: FloatArray) -> FloatArray:
    """The corners of a rectangle, counter-clockwise."""
    return np.array([[low[0], low[1]], [high[0], low[1]], [high[0], high[1]], [low[0], high[1]]])


def clip(polygon: FloatArray, w: FloatArray, b: float) -> FloatArray:
    """The part of a convex polygon where ``w.x + b >= 0``."""
    h = polygon @ w + b
    kept = []
    for k in range(len(polygon)):
        after = (k + 1) % len(polygon)
        if h[k] >= 0:
            kept.append(polygon[k])
        if (h[k] < 0) != (h[after] < 0):
            kept.append(polygon[k] + (polygon[after] - polygon[k]) * (h[k] / (h[k] - h[after])))
    return np.array(kept).reshape(-1, 2)


def segment(polygon: FloatArray, w: FloatArray, b: float) -> FloatArray | None:
    """The two ends of the line ``w.x + b = 0`` within a convex polygon; None if they do not intersect."""
    h = polygon @ w + b
    ends = []
    for k in range(len(polygon)):
        after = (k + 1) % len(polygon)
        if (h[k] < 0) != (h[after] < 0):
            ends.append(polygon[k] + (polygon[after] - polygon[k]) * (h[k] / (h[k] - h[after])))
    return np.array(ends) if len(ends) == 2 else None
