"""The leaf of each sample, computed in one pass over the rows with the scaling multiplied into the weights.

``w.x`` is computed in the units of the user, with another rounding error than that of scaled samples. Rows so close to
a split that the rounding could change their side are routed again with scaling first, so that results are the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from margotree import lazy_registry
from margotree.problem.blocks import row_blocks
from margotree.tree.protocol import SplitTree
from margotree.tree.scaling import FloatArray

#: With NumPy alone, trees with more splits are routed split by split, because a row uses only few of the splits.
MAX_NODES_NUMPY = 31

#: From this number of rows on, compiled code is used if Numba is loaded.
MIN_ROWS_COMPILED = 20_000

#: Numbers in a block, of samples and splits together: few enough for the processor's cache.
_BLOCK_NUMBERS = 1 << 17

_MACHINE_EPSILON = float(np.finfo(np.float64).eps)

IndexArray = NDArray[np.int64]


class Router:
    """The splits of a tree in the units of the user.

    Parameters
    ----------
    tree : SplitTree
        The tree.
    ties : array of float
        The rounding error allowed on ``h`` at each node.
    route_by_scaling : callable
        Checks rows, scales them and returns their leaves; used for rows whose side depends on the rounding.
    """

    def __init__(self, tree: SplitTree, ties: FloatArray, route_by_scaling: Callable[[FloatArray], IndexArray]) -> None:
        self.levels, self.route_by_scaling = tree.levels, route_by_scaling
        with np.errstate(over="ignore", invalid="ignore"):  # after an overflow all rows are routed by scaling
            self.W = np.ascontiguousarray(tree.splits.w / tree.scaling.scale)
            shift = self.W * tree.scaling.offset
            self.threshold = -ties - tree.splits.b + shift.sum(axis=1)  # a sample goes right if W.x >= threshold
            self.norm = np.sqrt((self.W * self.W).sum(axis=1))
            self.rounding = 4.0 * _MACHINE_EPSILON * (tree.n_features + 4)
            self.constant_size = np.abs(shift).sum(axis=1) + np.abs(tree.splits.b) + ties

    def leaves(self, given: FloatArray) -> IndexArray:
        """Return the leaf of each row; the rows are in the units of the user."""
        if not self.levels:  # the only leaf; the rows are checked all the same
            return self.route_by_scaling(given)
        if len(given) >= MIN_ROWS_COMPILED and "numba" in sys.modules and lazy_registry.is_registered("leaves_by_row"):
            return self._compiled(given)
        if len(self.W) > MAX_NODES_NUMPY:
            route, parts = self.route_by_scaling, row_blocks(*given.shape)
        else:
            step = max(1, _BLOCK_NUMBERS // (given.shape[1] + len(self.W)))
            route, parts = self._block, (slice(k, k + step) for k in range(0, len(given), step))
        leaf = np.empty(len(given), dtype=np.int64)
        for part in parts:
            leaf[part] = route(given[part])
        return leaf

    def _compiled(self, given: FloatArray) -> IndexArray:
        leaf: IndexArray = lazy_registry.get("leaves_by_row")(
            np.ascontiguousarray(given),
            self.W,
            self.threshold,
            self.norm,
            self.constant_size,
            self.rounding,
            self.levels,
        )
        doubtful = np.flatnonzero(leaf < 0)
        for part in row_blocks(len(doubtful), given.shape[1]):
            leaf[doubtful[part]] = self.route_by_scaling(given[doubtful[part]])
        return leaf

    def _block(self, rows: FloatArray) -> IndexArray:
        with np.errstate(over="ignore", invalid="ignore"):
            size = float(np.sqrt(np.vdot(rows, rows)))
            if not np.isfinite(size):  # a number is NaN, infinite or huge
                return self.route_by_scaling(rows)
            excess = self.W @ rows.T - self.threshold[:, None]
            distance = np.abs(excess)
            error_bound = self.rounding * (self.norm * size + self.constant_size)
            has_doubtful = not distance.min() > error_bound.max()
            if has_doubtful:
                largest = np.maximum(rows.max(axis=0), -rows.min(axis=0))
                error_bound = self.rounding * (np.abs(self.W) @ largest + self.constant_size)
                doubtful = np.flatnonzero((~(distance > error_bound[:, None])).any(axis=0))
        leaf = self._leaves_from_sides(excess >= 0.0)
        if has_doubtful and len(doubtful):
            leaf[doubtful] = self.route_by_scaling(rows[doubtful])
        return leaf

    def _leaves_from_sides(self, right: NDArray[np.bool_]) -> IndexArray:
        """Return the leaf of each sample; ``right[t]`` says which samples would go right at split ``t``."""
        n = right.shape[1]
        sides, column = right.reshape(-1).view(np.int8), np.arange(n)
        at = 1 + right[0].astype(np.int64)
        for _ in range(self.levels - 1):
            here = sides[at * n + column]
            at += at
            at += here
            at += 1
        return at
