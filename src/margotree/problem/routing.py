"""The routing rule: on which side of an upper split a sample lies, and which samples lie inside the band.

A sample goes right if ``h(x) >= 0`` and left if ``h(x) <= -eps``; no training sample may lie between. Both comparisons
allow for the rounding of ``h``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.problem.blocks import FloatArray

#: Rounding allowed on ``h``, relative to ``1 + |b|``. Units of the features have no effect on it: a sample near the
#: hyperplane has ``|w.x|`` near ``|b|``.
TIE = 1e-9


def tie(b: float, eps: float = np.inf) -> float:
    """The rounding allowed on ``h`` at a node: :data:`TIE`, scaled by the node, at most a quarter of ``eps``."""
    return float(min(TIE * (1.0 + abs(b)), eps / 4))


def goes_right(h: FloatArray, b: float, eps: float) -> NDArray[np.bool_]:
    """Whether samples with the values ``h`` at a hyperplane with offset ``b`` go right."""
    right: NDArray[np.bool_] = h >= -tie(b, eps)
    return right


def in_band(h: FloatArray, b: float, eps: float) -> NDArray[np.bool_]:
    """Whether samples with the values ``h`` at a hyperplane with offset ``b`` lie inside the band."""
    slack = tie(b, eps)
    inside: NDArray[np.bool_] = (h < -slack) & (h > slack - eps)
    return inside


def depth_in_band(h: FloatArray, b: float, eps: float) -> float:
    """The largest distance of a sample inside the band from the nearer edge of the band; 0 if none is inside."""
    inside = in_band(h, b, eps)
    if not np.any(inside):
        return 0.0
    return float(np.max(np.minimum(-h[inside], h[inside] + eps)))
