"""The proof log of a search over lists of supports.

The multipliers of a solved support prove something about every support of that tree node: a step that raises a table of
bounds (docs/proof.md). If the side of a sample is implied by the samples that are already placed, the proof contains a
decision about the sample, whose other child is closed by multipliers which show that this side costs too much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.proof_log_base import ProofLogBase, sides
from margotree.problem import Problem
from margotree.problem.problem import FloatArray
from margotree.proof.write import NOTHING, Steps, local_node_number

#: Seconds to write a leaf with empty points.
_SECONDS = 1e-5


@dataclass(eq=False)
class ProofNode:
    """A search node in the proof: its number, and the place of every sample by the decisions in the proof.

    In the search, samples can be further down the tree, because the search does not write every implied side at once.
    """

    number: int
    place: NDArray[np.uint16]

    def child(self, number: int) -> ProofNode:
        """A child with this number and the same places."""
        return ProofNode(number=number, place=self.place.copy())


class SupportLog(ProofLogBase):
    """The proof of one search over supports while it is written; parameters as for :class:`ProofLogBase`."""

    def __init__(self, into: Steps, problem: Problem, weights: FloatArray, unit: float, first: int = 1) -> None:
        super().__init__(into, problem, weights, unit, first)
        self.side_of = sides(self.T).astype(float)

    def split(self, kind: bytes, node: int, which: int, t: int) -> tuple[int, int]:
        """Write a decision; return the numbers of the two children.

        Parameters
        ----------
        kind
            ``b"S"`` for a sample (the children: left, right), ``b"F"`` for a group (used, not used).
        node
            The number of the search node.
        which
            The index of the sample or group; the index of the feature where features form no groups.
        t
            The tree node.
        """
        with self._lock:
            first, self._nodes = self._nodes, self._nodes + 2
            self.steps.split(kind, node, which, t, first, first + 1)
        return first, first + 1

    def begin_tables(self) -> None:
        """Write the steps that begin an empty table of bounds for every tree node, as feature penalties require."""
        with self._lock:
            for t in range(self.T):
                self.steps.raise_bounds(0, t, NOTHING)

    def written(self, text: bytes, count: int) -> None:
        """Add ``count`` steps, given as the bytes ``text``."""
        with self._lock:
            self.steps.written(text, count)

    def close_node(self, node: int, bound: float) -> None:
        """Close a search node by the table of bounds of its supports."""
        with self._lock:
            self.least_closed_bound = min(self.least_closed_bound, bound)
            self.steps.leaf(node, [NOTHING] * self.T)

    def close_by_point(self, node: int, t: int, point: bytes) -> None:
        """Close a search node by ``point``, the multipliers of tree node ``t`` as bytes."""
        with self._lock:
            points = [NOTHING] * self.T
            points[t] = point
            self.steps.leaf(node, points)

    def reserve(self, count: int) -> int:
        """Reserve ``count`` numbers of search nodes; return the first."""
        with self._lock:
            first, self._nodes = self._nodes, self._nodes + count
        return first

    def release(self, unused: int, end: int) -> None:
        """Release the numbers from ``unused`` to ``end``; they stay unused if others were reserved since."""
        if unused < end:
            with self._lock:
                self._nodes = unused if self._nodes == end else self._nodes

    def separate_supports(self, node: int, t: int, supports: list[set[int]]) -> list[int]:
        """Write decisions about groups of tree node ``t`` until each of ``supports`` has a search node of its own.

        Returns the numbers of these search nodes, in the order of ``supports``. Search nodes that contain none of the
        supports are closed by the tables of bounds.

        Parameters
        ----------
        node
            The number of the search node that contains all supports.
        t
            The tree node.
        supports
            Sets of groups, all different.
        """
        numbers = [node] * len(supports)
        waiting = [(node, list(range(len(supports))))]
        while waiting:
            node, group = waiting.pop()
            if not group:
                self.close_node(node, math.inf)
            elif len(group) == 1:
                numbers[group[0]] = node
            else:
                count = np.bincount([j for k in group for j in sorted(supports[k])])
                j = int(np.argmax(np.where(count < len(group), count, 0)))
                used, unused = self.split(b"F", node, j, t)
                waiting.append((used, [k for k in group if j in supports[k]]))
                waiting.append((unused, [k for k in group if j not in supports[k]]))
        return numbers

    def close(self, data: tuple[Any, ...], bound: float) -> None:
        """Close an open record, when its bound suffices or the search ends."""
        self.close_node(data[-1].number, bound)

    def _append(self, text: bytes, first: int) -> None:
        self.steps.take_over(text, first)

    def _local_node(self, node: Any, first: int) -> Any:
        return replace(node, number=local_node_number(node.number, first))

    def seconds_to_close(self, open_nodes: int) -> float:
        return _SECONDS * open_nodes

    def drop(self) -> None:
        """Stop writing: the proof is not needed; there is no thread to stop."""

    def finish(self) -> Steps:
        return self.steps
