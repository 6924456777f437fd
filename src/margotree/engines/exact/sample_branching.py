"""The brancher that places samples: records are partial routings, bounds are sums of the node problems' dual values.

It is used for MARGOT, and for SFS: there records also have the decisions about features, and the dual of a node is that
of its perspective relaxation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels.child_nodes import LAST_OPEN, OPEN_CHILD, Rows
from margotree.engines.exact.kernels.dive import EMITTED, PAUSED, SETTLED, STEPS
from margotree.engines.exact.kernels.node_record import CODE_SHIFT, COLD, sizes
from margotree.engines.exact.kernels.plunge import kernel_for, route
from margotree.engines.exact.kernels.routing import SLOT, Routing, SampleItems, new_memory
from margotree.engines.exact.proof_log import ProofLog
from margotree.engines.exact.sample_items import sample_items
from margotree.engines.exact.search import Dive, Record
from margotree.engines.node.kernels.safe_bounds import offset_reach
from margotree.engines.node.kernels.workspace import NUM, B, R, W, Workspace, stop_flag
from margotree.engines.polish import polish
from margotree.engines.run_control import RunControl
from margotree.engines.trivial_trees import allowed_value, trivial_tree
from margotree.problem import Problem, Splits, evaluate
from margotree.problem.problem import FloatArray


@dataclass(frozen=True, kw_only=True)
class Tactics:
    """Settings of a dive; the defaults are measured (docs/experiments).

    Parameters
    ----------
    candidates
        The largest number of candidates to probe at a search node.
    patience
        Stop probing after this number of candidates in a row without improvement.
    flip_pivots
        The largest number of pivots in the node problem of a flipped sample.
    steps
        The largest number of search nodes in a dive.
    penalty_threshold
        Feature penalties are left out of node problems until the distance to the cutoff is less than this multiple of
        the part of the penalties that the bound contains.
    features_first
        Decide the features of upper nodes before samples are placed.
    improve
        Run a neighbourhood search first.
    """

    candidates: int = 32
    patience: int = 8
    flip_pivots: int = 60
    steps: int = 200
    penalty_threshold: int = 1
    features_first: bool = False
    improve: bool = True


#: Settings with which features are decided first; fewer candidates are probed there.
FEATURES_FIRST: dict[str, Any] = {"features_first": True, "candidates": 8, "patience": 2}


class MargotBrancher:
    """The brancher for a problem without hard budgets.

    Parameters
    ----------
    problem, tactics
        The problem and the settings of dives.
    limit
        The value of a known tree, by default the trivial one; only better trees are searched for.
    without_penalties
        Leave feature penalties out of node problems.
    control
        Trees are not solved again for exactness after its limits are reached.
    log
        The proof log, if a proof is written.
    """

    def __init__(
        self,
        problem: Problem,
        tactics: Tactics | None = None,
        *,
        limit: float | None = None,
        without_penalties: bool = False,
        control: RunControl | None = None,
        log: ProofLog | None = None,
    ) -> None:
        self.problem = problem
        self.log = log
        self.without_penalties = without_penalties
        self.tactics = tactics or Tactics()
        self.control = control or RunControl()
        self.limit = allowed_value(problem, trivial_tree(problem)) if limit is None else limit
        self.penalties = _penalties(problem)

    @cached_property
    def centre(self) -> FloatArray:
        """The mean of the samples."""
        centre: FloatArray = self.problem.X.mean(axis=0)
        return centre

    @cached_property
    def X(self) -> FloatArray:
        """The samples minus their mean."""
        return np.ascontiguousarray(self.problem.X - self.centre)

    def root(self) -> Record:
        """The record of the root of the search."""
        root = self.record(np.zeros(self.problem.n_samples, np.int64))
        return root if self.log is None else replace(root, data=(*root.data, 0))

    @cached_property
    def samples(self) -> SampleItems:
        """The losses of the samples."""
        return sample_items(self.problem)

    def record(self, place: NDArray[np.int64]) -> Record:
        """The record of the search node in which sample ``i`` is known to reach tree node ``place[i]``, without
        multipliers and choices."""
        m, end = self.problem.n_samples, self.end_of_statuses()
        codes = np.zeros(self.sizes()[0], np.uint8)
        codes[0 : 2 * m : 2] = place & 255
        codes[1 : 2 * m : 2] = place >> 8
        codes[2 * m : end] = COLD
        if self.samples.chooses:
            codes[end : end + self.samples.code.size] = self.samples.code.ravel() + CODE_SHIFT
        return make_record(0.0, codes, np.zeros(2 * self.problem.n_nodes))

    def end_of_statuses(self) -> int:
        """The position in a record after the statuses of items."""
        m, n, T = self.problem.n_samples, self.problem.n_features, self.problem.n_nodes
        rows = 2 * n * T if self.problem.max_weight is not None else 0
        return m * (1 + self.problem.depth) + self.samples.cost.shape[1] + rows

    def worker(self) -> MargotWorker:
        """A new worker."""
        return MargotWorker(self)

    def sizes(self) -> tuple[int, int]:
        """The largest number of bytes and of floats in a record."""
        m, n = self.problem.n_samples, self.problem.n_features
        penalised = self.penalties is not None and not self.without_penalties
        limited, with_proof = self.problem.max_weight is not None, self.log is not None
        return sizes(
            m, n, self.problem.depth, items=self.samples.cost.shape[1],
            choices=self.samples.code.shape[1] if self.samples.chooses else 0, penalised=penalised,
            all_multipliers=with_proof, with_weight_limit=limited,
        )  # fmt: skip

    def new_memory(self) -> tuple[Workspace, Routing]:
        """The memory of a worker."""
        eps, samples = self.problem.eps, self.samples
        reach = offset_reach(self.X, self.limit, eps, float(np.max(np.abs(samples.corner))))
        limit = math.inf if self.problem.max_weight is None else self.problem.max_weight
        return new_memory(
            self.X, samples, eps, self.penalties, without_penalties=self.without_penalties, reach=reach, limit=limit
        )


def _penalties(problem: Problem) -> FloatArray | None:
    """One row per node: the feature penalty and the budget; the penalty is 0 where the budget includes all features."""
    if problem.budget is None or problem.alpha is None:
        return None
    binding = problem.budget < problem.n_features
    return np.column_stack([np.where(binding, problem.alpha, 0.0), np.where(binding, problem.budget, 0)]).astype(float)


class MargotWorker:
    """The memory of one thread, and its dives."""

    #: Whether another worker continues settled search nodes.
    settled_continues = False

    def __init__(self, brancher: MargotBrancher) -> None:
        self.brancher = brancher
        self.problem = brancher.problem
        self.ws, self.routing = brancher.new_memory()
        n_codes, n_floats = brancher.sizes()
        tactics = brancher.tactics
        with_proof = brancher.log is not None
        self.options = np.array(
            [tactics.patience, tactics.flip_pivots, tactics.penalty_threshold, tactics.features_first, with_proof],
            np.int64,
        )
        self.cand = np.zeros(tactics.candidates, np.int64)
        # A step writes one child, with a proof up to two; the last search node has a row of its own.
        rows = 2 * tactics.steps + 3 if with_proof else tactics.steps + 1
        room = max(4 if with_proof else 2, min(rows, int(1e8 / (n_codes + 8 * n_floats))))
        self.in_floats = np.zeros(n_floats)
        self.codes = np.zeros((room, n_codes), np.uint8)
        self.floats = np.zeros((room, n_floats))
        self.used = np.zeros(room, np.int64)
        self.bounds = np.zeros(room)
        self.log = np.zeros((room, 2), np.int64)
        self.rows = Rows(self.codes, self.floats, self.used, self.bounds, self.log)
        self.last_node = 0  # the number of the last search node of the last dive

    def stop_flag(self) -> FloatArray:
        """An array of one number, which stops a dive when it is set to 1."""
        return stop_flag(self.ws)

    def stop(self) -> None:
        self.stop_flag()[0] = 1.0

    def dive(self, record: Record, shared: FloatArray, most: float = math.inf) -> Dive:
        """Search from ``record``, for at most ``most`` steps; see :class:`~margotree.engines.exact.search.Worker`."""
        codes, floats, *number = record.data
        steps = int(min(most, self.brancher.tactics.steps))
        self.in_floats[: len(floats)] = floats
        counters = np.zeros(4, np.int64)
        end, bound = kernel_for(self.ws)(
            self.ws, self.routing, codes, self.in_floats, record.bound, shared, steps, self.options, self.cand,
            self.codes, self.floats, self.used, self.bounds, counters, self.log,
        )  # fmt: skip
        rows = int(counters[EMITTED])
        left = [self._record(p) for p in range(rows)] if not number else self._write_dive(number[0], rows)
        dive = Dive(left=left, steps=int(counters[STEPS]))
        if end == SETTLED:
            return self.settled(dive, bound)
        if end == PAUSED and self.brancher.penalties is not None and not self.brancher.without_penalties:
            return replace(dive, trees=self._trees())
        return dive

    def _write_dive(self, node: int, rows: int) -> list[Record]:
        """Write the dive to the proof log; return its open records."""
        assert self.brancher.log is not None
        numbers = self.brancher.log.record_dive(node, rows, self.rows, self.settled_continues)
        self.last_node, kinds = numbers[-1], self.log[:rows, 0].tolist()
        return [self._record(p, numbers[p]) for p, what in enumerate(kinds) if what in (OPEN_CHILD, LAST_OPEN)]

    def settled(self, dive: Dive, bound: float) -> Dive:
        """The dive with the tree of its last search node, which is settled; that node's bound is unresolved."""
        return replace(dive, trees=self._trees(), unresolved=bound)

    def _trees(self) -> list[Splits]:
        """The tree of the current hyperplanes, if there is one."""
        tree = self._tree()
        return [] if tree is None else [tree]

    def _record(self, p: int, number: int | None = None) -> Record:
        """The record in row ``p``."""
        return make_record(float(self.bounds[p]), self.codes[p].copy(), self.floats[p, : self.used[p]].copy(), number)

    def _tree(self) -> Splits | None:
        """The tree of the current hyperplanes; if rounding changes the side of a sample, it is solved again with its
        routing."""
        node = np.zeros(self.problem.n_samples, np.int64)
        route(self.ws, self.routing, node)
        slots = self._slots()
        w = slots[:, W, : self.problem.n_features]
        if self.problem.max_weight is not None:
            w = np.clip(w, -self.problem.max_weight, self.problem.max_weight)
        splits = Splits(w=w, b=slots[:, NUM, B] - w @ self.brancher.centre)
        found = evaluate(self.problem, splits)
        if found.feasible and np.array_equal(found.node, node) and self.brancher.penalties is None:
            return splits
        return polish(self.problem, node, self._support(), self.brancher.control, choices=found.choices)

    def _support(self) -> NDArray[np.bool_] | None:
        """The features that the relaxation uses by at least half; None (all features) without feature penalties."""
        if self.brancher.penalties is None:
            return None
        slots, n = self._slots(), self.problem.n_features
        w = np.abs(slots[:, W, :n])
        return (w > 0.0) & (w >= 0.5 * slots[:, R, :n])

    def _slots(self) -> FloatArray:
        """The arrays of features, one slot per tree node."""
        slots: FloatArray = self.ws.g[self.routing.at[SLOT, : self.routing.T]]
        return slots


def make_record(bound: float, codes: NDArray[np.uint8], floats: FloatArray, number: int | None = None) -> Record:
    """A record; ``number`` is that of its search node where a proof is written."""
    data = (codes, floats) if number is None else (codes, floats, number)
    return Record(bound=bound, data=data, size=codes.nbytes + floats.nbytes + 200)
