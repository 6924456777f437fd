"""The common part of proof logs: terms of the problem, numbers of search nodes, and parts from other processes."""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels.leaf_multipliers import NOT_HERE
from margotree.engines.exact.search import Record
from margotree.problem import Problem, topology
from margotree.problem.problem import FloatArray
from margotree.proof.write import REMOTE_BASE, Steps

#: Factor on costs that rounds them down, as the checker does.
SHADE = 1.0 - 2.0**-50


@dataclass(frozen=True, kw_only=True)
class ProofPart:
    """The part of a proof from another process: its steps, the number of search nodes that it has numbered (from
    `write.REMOTE_BASE` on), and the least bound of those that it has closed."""

    text: bytes
    nodes: int
    least_closed_bound: float


class ProofLogBase(ABC):
    """The proof of one search while it is written.

    Parameters
    ----------
    into
        The steps.
    problem
        The engine's problem, with equal samples merged.
    weights
        The weights of the merged samples, correctly rounded.
    unit
        The factor from values of the engine's problem to those of the user's.
    first
        The first number to give to a search node.
    """

    def __init__(self, into: Steps, problem: Problem, weights: FloatArray, unit: float, first: int = 1) -> None:
        self.steps, self.weights, self.unit = into, weights, unit
        self.least_closed_bound = math.inf  # the least bound of a closed search node
        self.y, self.T = np.array(problem.y), problem.n_nodes
        self.cost = np.outer(problem.C, weights) * SHADE
        self._nodes = self._first = first
        self._lock = threading.RLock()

    @abstractmethod
    def close(self, data: tuple[Any, ...], bound: float) -> None:
        """Close an open record, when its bound suffices or the search ends."""

    @abstractmethod
    def seconds_to_close(self, open_nodes: int) -> float:
        """The estimated time to close ``open_nodes`` search nodes."""

    @abstractmethod
    def drop(self) -> None:
        """Stop writing: the proof is not needed."""

    @abstractmethod
    def finish(self) -> Steps:
        """Wait until everything is written; return the steps."""

    def take_over(self, part: ProofPart, left: list[Record]) -> list[Record]:
        """Add the part of another process; return its open records with their numbers in this process."""
        with self._lock:
            first = self._nodes
            if first + part.nodes >= REMOTE_BASE:
                raise OverflowError(f"the proof has more than {REMOTE_BASE} search nodes; leave proof or scheduler out")
            self._nodes += part.nodes
            self.least_closed_bound = min(self.least_closed_bound, part.least_closed_bound)
            self._append(part.text, first)
        return [replace(one, data=(*one.data[:-1], self._local_node(one.data[-1], first))) for one in left]

    def proof_part(self) -> ProofPart:
        """The part that a log of another process has written."""
        return ProofPart(
            text=self.finish().text, nodes=self._nodes - self._first, least_closed_bound=self.least_closed_bound
        )

    @abstractmethod
    def _append(self, text: bytes, first: int) -> None:
        """Add the steps of another process, whose own search nodes are numbered from ``first`` on."""

    @abstractmethod
    def _local_node(self, node: Any, first: int) -> Any:
        """The search node of a record from another process, with its number in this process."""


def sides(T: int) -> NDArray[np.int8]:
    """The side taken at tree node t (row) by a sample whose place is p (column)."""
    sides = np.full((T, T), NOT_HERE, np.int8)
    for p in range(T):
        sides[p, p] = 0
        for t, side in topology.path_to(p):
            sides[t, p] = side
    return sides
