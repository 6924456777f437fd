"""The leaves that samples end in, at full speed: scaling folded into the weights, one pass over the rows.

Heights are taken in the user's units.  Their rounding differs from that of scaling first, so rows too near a split to
be sure of are routed the plain way: results are the same.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from margotree import lazy_registry
from margotree.problem.blocks import blocks
from margotree.tree.protocol import TreeLike
from margotree.tree.scaling import FloatArray

#: With NumPy alone, trees of more splits are routed split by split: most of them would be evaluated in vain.
MOST_NODES = 31

#: From so many rows on compiled code is used, where a fit in this process has loaded what it takes.
COMPILED_FROM = 20_000

#: Numbers of a block, of its samples and its splits together: so few that they stay near the processor.
_NUMBERS = 1 << 17

_UNIT = float(np.finfo(np.float64).eps)

IndexArray = NDArray[np.int64]


class Router:
    """A tree's splits in the user's units.

    ``plainly`` checks rows and routes them by scaling first; it gets the rows that rounding leaves in doubt.
    """

    def __init__(self, tree: TreeLike, ties: FloatArray, plainly: Callable[[FloatArray], IndexArray]) -> None:
        self.depth, self.plainly = tree.depth, plainly
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows leaves every row in doubt
            self.W = np.ascontiguousarray(tree.splits.w / tree.scaling.scale)
            shift = self.W * tree.scaling.offset
            self.level = -ties - tree.splits.b + shift.sum(axis=1)  # a sample goes right from W.x = level on
            self.length = np.sqrt((self.W * self.W).sum(axis=1))
            self.rounding = 4.0 * _UNIT * (tree.n_features + 4)
            self.fixed = np.abs(shift).sum(axis=1) + np.abs(tree.splits.b) + ties

    def leaves(self, given: FloatArray) -> IndexArray:
        """The leaf of each row, in the user's units."""
        if len(given) >= COMPILED_FROM and "numba" in sys.modules and lazy_registry.is_registered("leaves_by_row"):
            return self._compiled(given)
        if len(self.W) > MOST_NODES:
            route, parts = self.plainly, blocks(*given.shape)
        else:
            step = max(1, _NUMBERS // (given.shape[1] + len(self.W)))
            route, parts = self._block, (slice(k, k + step) for k in range(0, len(given), step))
        leaf = np.empty(len(given), dtype=np.int64)
        for part in parts:
            leaf[part] = route(given[part])
        return leaf

    def _compiled(self, given: FloatArray) -> IndexArray:
        leaf: IndexArray = lazy_registry.get("leaves_by_row")(
            np.ascontiguousarray(given), self.W, self.level, self.length, self.fixed, self.rounding, self.depth
        )
        again = np.flatnonzero(leaf < 0)
        for part in blocks(len(again), given.shape[1]):
            leaf[again[part]] = self.plainly(given[again[part]])
        return leaf

    def _block(self, rows: FloatArray) -> IndexArray:
        with np.errstate(over="ignore", invalid="ignore"):
            size = float(np.sqrt(np.vdot(rows, rows)))
            if not np.isfinite(size):  # a number is missing, infinite or huge
                return self.plainly(rows)
            beyond = self.W @ rows.T - self.level[:, None]
            distance = np.abs(beyond)
            doubt = self.rounding * (self.length * size + self.fixed)
            near = not distance.min() > doubt.max()
            if near:
                largest = np.maximum(rows.max(axis=0), -rows.min(axis=0))
                doubt = self.rounding * (np.abs(self.W) @ largest + self.fixed)
                again = np.flatnonzero((~(distance > doubt[:, None])).any(axis=0))
        leaf = self._down(beyond >= 0.0)
        if near and len(again):
            leaf[again] = self.plainly(rows[again])
        return leaf

    def _down(self, right: NDArray[np.bool_]) -> IndexArray:
        """From the side at every split to the leaf."""
        n = right.shape[1]
        sides, column = right.reshape(-1).view(np.int8), np.arange(n)
        at = 1 + right[0].astype(np.int64)
        for _ in range(self.depth - 1):
            here = sides[at * n + column]
            at += at
            at += here
            at += 1
        return at
