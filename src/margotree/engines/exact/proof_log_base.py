"""What logs of searches that leave a proof have in common: their terms, their numbers, and what they take over."""

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

#: Less than the truth in the last digits: what a checker makes of a sample's cost is a hair less, too.
_SHADE = 1.0 - 2.0**-50


@dataclass(frozen=True, kw_only=True)
class ProofPart:
    """What another process has done: its steps, how many search nodes it has numbered (from `write.AWAY` on), and the
    least own bound of one that it closed."""

    text: bytes
    nodes: int
    weakest: float


class ProofLogBase(ABC):
    """The proof of one search, as it grows; ``unit`` brings values of the engine's problem to the user's."""

    def __init__(self, into: Steps, problem: Problem, weights: FloatArray, unit: float, first: int = 1) -> None:
        """``problem`` has equal samples merged, and ``weights`` are their sums, correctly rounded.  Search nodes are
        numbered from ``first`` on."""
        self.steps, self.weights, self.unit = into, weights, unit
        self.weakest = math.inf  # the least own bound of a search node that was closed
        self.y, self.T = np.array(problem.y), problem.n_nodes
        self.cost = np.outer(problem.C, weights) * _SHADE
        self._nodes = self._first = first
        self._lock = threading.RLock()

    @abstractmethod
    def close(self, data: tuple[Any, ...], bound: float) -> None:
        """A record that was left waiting until its bound sufficed, or until the end."""

    @abstractmethod
    def seconds_to_close(self, open_nodes: int) -> float:
        """How long it takes to close so many search nodes."""

    @abstractmethod
    def drop(self) -> None:
        """Nobody wants this proof any more."""

    @abstractmethod
    def finish(self) -> Steps:
        """Wait until everything is written."""

    def take_over(self, part: ProofPart, left: list[Record]) -> list[Record]:
        """Take down what another process has done; returns what it left over, with the numbers that it has here."""
        with self._lock:
            first = self._nodes
            if first + part.nodes >= REMOTE_BASE:
                raise OverflowError(f"the proof has more than {REMOTE_BASE} search nodes; leave proof or scheduler out")
            self._nodes += part.nodes
            self.weakest = min(self.weakest, part.weakest)
            self._append(part.text, first)
        return [replace(one, data=(*one.data[:-1], self._local_node(one.data[-1], first))) for one in left]

    def proof_part(self) -> ProofPart:
        """What a log of another process hands on when everything is written."""
        return ProofPart(text=self.finish().text, nodes=self._nodes - self._first, weakest=self.weakest)

    @abstractmethod
    def _append(self, text: bytes, first: int) -> None:
        """The steps of another process, its own numbers to begin at ``first``."""

    @abstractmethod
    def _local_node(self, node: Any, first: int) -> Any:
        """What a record says of its search node, with the number that it has here."""


def sides(T: int) -> NDArray[np.int8]:
    """The side taken at tree node t (row) by a sample whose deepest known tree node is p (column)."""
    sides = np.full((T, T), NOT_HERE, np.int8)
    for p in range(T):
        sides[p, p] = 0
        for t, side in topology.path_to(p):
            sides[t, p] = side
    return sides
