"""The proof log of a search over routings: its decisions, and the multipliers of the search nodes that it closes.

Search nodes are numbered at once; a thread of its own writes the steps, while the workers, which do not hold the GIL,
continue.
"""

from __future__ import annotations

import math
import queue
import threading
import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels import leaf_multipliers, proof_bytes, proof_steps
from margotree.engines.exact.kernels.child_nodes import Rows
from margotree.engines.exact.kernels.leaf_multipliers import NOT_HERE, ProofItems
from margotree.engines.exact.kernels.node_record import CODE_SHIFT, sizes
from margotree.engines.exact.kernels.routing import ABOVE, BELOW, BOTH
from margotree.engines.exact.proof_log_base import SHADE, ProofLogBase, sides
from margotree.engines.exact.sample_items import sample_items
from margotree.problem import Problem
from margotree.problem.problem import FloatArray
from margotree.proof import write
from margotree.proof.write import NOTHING, Steps

Codes = NDArray[np.uint8]
#: The number of batches that may wait, and the least number of leaves in a batch.
_WAITING, _TOGETHER = 4, 256
#: Seconds to write a leaf, until it is measured.
_SECONDS = 1e-4
#: The number of samples tried with exact sums where none has clear space.
_TRIES = 8
#: The largest number of bytes of points written together.
_ROOM = 1 << 23
#: The largest number of bytes and floats of records in a batch.
_RECORDS = 1 << 23
#: Bytes of leaves after which a new piece begins, so that blocks of the file stay short.
_PIECE = 1 << 16


class Batch:
    """Results of dives to be written: decisions as bytes, and closed search nodes by the length of their records."""

    def __init__(self, rows: int) -> None:
        self.rows = rows  # space for decisions and for search nodes
        self.buffer, self.decisions = proof_bytes.new_buffer(rows * proof_bytes.SPLIT_BYTES), np.zeros(2, np.int64)
        self.closed_nodes: dict[int, proof_steps.ClosedNodes] = {}
        self.leaves = 0

    def closed_nodes_of(self, n_codes: int, n_floats: int) -> proof_steps.ClosedNodes:
        """The closed search nodes with records of this length."""
        if n_codes not in self.closed_nodes:
            self.closed_nodes[n_codes] = proof_steps.new_closed_nodes(self.rows, n_codes, n_floats)
        return self.closed_nodes[n_codes]

    def has_room(self, rows: int) -> bool:
        """Whether the batch has space for the results of ``rows`` more rows."""
        return max(self.leaves, int(self.decisions[1])) + rows <= self.rows


class ProofLog(ProofLogBase):
    """The proof of one search over routings while it is written; parameters as for :class:`ProofLogBase`."""

    def __init__(self, into: Steps, problem: Problem, weights: FloatArray, unit: float, first: int = 1) -> None:
        super().__init__(into, problem, weights, unit, first)
        self.m, self.n, self.depth = problem.n_samples, problem.n_features, problem.depth
        self.items = _items(problem, self.cost)
        self.n_items = self.items.cost.shape[1]
        longest = self.T * proof_bytes.POINT_HEAD + self.n_items * self.depth * proof_bytes.BYTES_PER_SAMPLE
        self._leaves_at_once = min(_TOGETHER, max(1, _ROOM // longest))
        self._buffer = proof_bytes.new_buffer(self._leaves_at_once * longest)
        self._text = proof_bytes.new_buffer(self._leaves_at_once * (longest + proof_bytes.LEAF_HEAD))
        self._n_closed = self._n_written = 0  # leaves
        self._seconds = 0.0  # for writing them
        self._dropped = False
        self._rows = max(1, min(2 * _TOGETHER, _RECORDS // sum(self._sizes(penalised=True))))
        self._batch = Batch(self._rows)  # of dives not yet given to the thread that writes
        self._queue: queue.Queue[tuple[Batch, tuple[bytes, int] | None] | None] = queue.Queue(_WAITING)
        self._failure: BaseException | None = None
        self._thread: threading.Thread | None = None  # started with the first batch

    def _sizes(self, penalised: bool) -> tuple[int, int]:
        """The largest number of bytes and of floats in a record."""
        choices = self.items.code.shape[1] if self.items.chooses else 0
        return sizes(
            self.m, self.n, self.depth, items=self.n_items, choices=choices, penalised=penalised, all_multipliers=True
        )

    def record_dive(self, node: int, rows: int, found: Rows, settled_continues: bool) -> list[int]:
        """Add a dive to the proof; return the numbers that the search nodes of its rows get.

        Parameters
        ----------
        node
            The number of the search node at which the dive began.
        rows
            The number of rows that the dive has written.
        found
            The rows: the records of the search nodes.
        settled_continues
            Whether another dive continues a settled search node (docs: `kernels.dive`); otherwise it is closed.
        """
        self._raise()
        numbers = np.empty(rows, np.int64)
        codes, floats = found.codes, found.floats
        penalised = codes.shape[1] > self.items.feature_offset
        first_choice = self.n_items + (self.n * self.T if penalised else 0)
        with self._lock:
            self._make_room(rows)
            closed_nodes = self._batch.closed_nodes_of(codes.shape[1], floats.shape[1])
            before = closed_nodes.n_nodes[0]
            self._nodes, least_closed_bound = proof_steps.record_dive(
                found.log, codes, floats, found.used, found.bounds, rows, node, self._nodes, settled_continues,
                self.items, self.n, first_choice, numbers, closed_nodes, self._batch.decisions,
                self._batch.buffer,
            )  # fmt: skip
            self.least_closed_bound = min(self.least_closed_bound, least_closed_bound)
            self._count_leaves(int(closed_nodes.n_nodes[0] - before))
        return numbers.tolist()

    def close(self, data: tuple[Any, ...], bound: float) -> None:
        """Close an open record, when its bound suffices or the search ends."""
        self._raise()
        codes, floats, node = data
        with self._lock:
            self._make_room(1)
            longest = self._sizes(penalised=len(codes) > self.items.feature_offset)
            closed_nodes = self._batch.closed_nodes_of(*longest)
            k = int(closed_nodes.n_nodes[0])
            closed_nodes.n_nodes[0] = k + 1
            closed_nodes.numbers[k], closed_nodes.codes[k], closed_nodes.floats[k, : len(floats)] = node, codes, floats
            self.least_closed_bound = min(self.least_closed_bound, bound)
            self._count_leaves(1)

    def _append(self, text: bytes, first: int) -> None:
        self._raise()
        self._send((text, first))

    def _local_node(self, node: Any, first: int) -> Any:
        return write.local_node_number(node, first)

    def seconds_to_close(self, open_nodes: int) -> float:
        """The estimated time to close ``open_nodes`` search nodes and to write the waiting ones."""
        pace = self._seconds / self._n_written if self._n_written else _SECONDS
        return pace * (open_nodes + self._n_closed - self._n_written)

    def drop(self) -> None:
        """Stop writing: the proof is not needed."""
        self._dropped = True

    def finish(self) -> Steps:
        """Wait until everything is written; return the steps."""
        with self._lock:
            self._send()
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()
            self._thread = None
        self._raise()
        return self.steps

    def _make_room(self, rows: int) -> None:
        """Send the current batch to the thread that writes, if it has no space for the results of ``rows`` rows."""
        if not self._batch.has_room(rows):
            self._send()
            if rows > self._batch.rows:
                self._batch = Batch(rows)

    def _count_leaves(self, count: int) -> None:
        """Count further leaves, and send the batch when it has enough of them."""
        self._n_closed += count
        self._batch.leaves += count
        if self._batch.leaves >= _TOGETHER:
            self._send()

    def _send(self, remote: tuple[bytes, int] | None = None) -> None:
        """Give the batch to the thread that writes, and after it the steps of another process."""
        if not self._batch.leaves and not self._batch.decisions[1] and remote is None:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._write, daemon=True)
            self._thread.start()
        self._queue.put((self._batch, remote))
        self._batch = Batch(self._rows)

    def _raise(self) -> None:
        """Raise the failure of the thread that writes, if any."""
        if self._failure is not None:
            raise self._failure

    # -- in the thread that writes ---------------------------------------------------------------------------------

    def _write(self) -> None:
        """The loop of the thread that writes."""
        while (given := self._queue.get()) is not None:
            if self._failure is None:
                try:
                    self._write_down(*given)
                except BaseException as failure:  # raised by the next call of the search
                    self._failure = failure

    def _write_down(self, batch: Batch, remote: tuple[bytes, int] | None) -> None:
        """Write the steps of a batch, then those of another process (bytes, number of their first node)."""
        began = time.perf_counter()
        if not self._dropped:
            self._steps_of(batch)
        self._seconds += time.perf_counter() - began
        self._n_written += batch.leaves
        if remote is not None and not self._dropped:
            self.steps.take_over(*remote)

    def _steps_of(self, batch: Batch) -> None:
        """Write the steps of a batch: all decisions in their order, then all leaves, since these have no children."""
        end, count = batch.decisions.tolist()
        if count:
            self.steps.written(batch.buffer.out[:end].tobytes(), count, {})
        for closed_nodes in batch.closed_nodes.values():
            count = int(closed_nodes.n_nodes[0])
            for k in range(0, count, self._leaves_at_once):
                some = slice(k, min(k + self._leaves_at_once, count))
                self._leaves(closed_nodes.numbers[some], closed_nodes.codes[some], closed_nodes.floats[some])

    def _leaves(self, numbers: NDArray[np.int64], codes: Codes, floats: FloatArray) -> None:
        """Write search nodes that are closed by their own multipliers, with records of the same length."""
        n = self.n if codes.shape[1] > self.items.feature_offset else 0
        ends = np.zeros((len(numbers), self.T), np.int64)
        unbalanced = leaf_multipliers.write_points(
            codes, floats, self.items, n, self.unit, self._buffer, ends, np.zeros((3, self.n_items + 1))
        )
        if unbalanced:
            self._leaves_with_balance(numbers.tolist(), codes, ends.tolist())
            return
        leaf_ends = np.zeros(len(numbers), np.int64)
        proof_steps.write_leaves(self._buffer, ends, numbers, self._text, leaf_ends)
        last = dict(enumerate(self._points(ends[-1].tolist(), int(ends[-2, -1]) if len(ends) > 1 else 0)))
        begin = count = 0
        for k, end in enumerate(leaf_ends.tolist()):
            if end - begin >= _PIECE or k == len(numbers) - 1:
                self.steps.written(self._text.out[begin:end].tobytes(), k + 1 - count, last)
                begin, count = end, k + 1

    def _points(self, ends: list[int], begin: int) -> list[bytes]:
        """The bytes of points from their ends."""
        return [self._buffer.out[a:b].tobytes() for a, b in zip([begin, *ends], ends, strict=False)]

    def _leaves_with_balance(self, numbers: list[int], codes: Codes, ends: list[list[int]]) -> None:
        """Write leaves some of whose points have no sample that balances them yet."""
        begin = 0
        for number, record, last in zip(numbers, codes, ends, strict=True):
            found = self._points(last, begin)
            self.steps.leaf(number, [self._with_balance(t, p, record) for t, p in enumerate(found)])
            begin = last[-1]

    def _with_balance(self, t: int, point: bytes, codes: Codes) -> bytes:
        """The point with a sample that balances it, if it has none; an empty point if no sample can."""
        if point == NOTHING:
            return point
        full, given, values, balance = write.point_arrays(point)
        if balance != leaf_multipliers.NO_SAMPLE:
            return point
        label, side = self._items_at(t, codes)
        cost = self.items.cost[t]
        v = np.where(side == -label, cost, 0.0)
        if self.items.chooses:
            both = np.flatnonzero((side[: self.m] == 0) & (side[self.m :] != NOT_HERE))
            v[both], v[both + self.m] = cost[both], cost[both]
        v[full], v[given] = cost[full], values / self.unit
        balance = self._balance(t, label, side, v)
        return write.point(full, given, values, balance) if balance >= 0 else NOTHING

    def _items_at(self, t: int, codes: Codes) -> tuple[FloatArray, FloatArray]:
        """The label of every item at tree node ``t`` in a record, and the side that its sample takes there."""
        items = self.items
        taken = items.side_of[t][codes[: 2 * self.m].view("<u2")].astype(float)
        code = items.code[t]
        if items.chooses:
            begin = items.choice_offset + t * len(code)
            code = codes[begin : begin + len(code)].astype(np.int64) - CODE_SHIFT
        code = code[items.group]
        has_label, both = (code == BELOW) | (code == ABOVE), code == BOTH
        label, side = np.where(both, 1.0, np.where(has_label, code, taken)), taken.copy()
        side[~has_label & ~both & (taken == 0)] = NOT_HERE
        if self.n_items > self.m:
            label = np.append(label, np.full(self.m, -1.0))
            side = np.append(side, np.where(both, taken, NOT_HERE))
        return label, side

    def _balance(self, t: int, label: FloatArray, side: FloatArray, v: FloatArray) -> int:
        """An item whose multiplier can make the sum 0, with a safe sign; -1 if there is none."""
        here = side != NOT_HERE
        label, v = np.where(here, label, 0.0), np.where(here, v, 0.0)
        shift = -math.fsum((label * v).tolist()) * label
        low = np.where(side == -label, -np.inf, 0.0)
        high = np.where(side == label, np.inf, self.items.cost[t])
        room = np.where(shift > 0.0, high - v, v - low) - np.abs(shift)
        room[~here] = -np.inf
        for best in np.argsort(-room)[:_TRIES].tolist():
            if room[best] > -np.inf and self._can_balance(t, label, side, v, best):
                return int(best)
        self.least_closed_bound = 0.0  # nothing is proved for this node, so no bound is claimed
        return -1

    def _can_balance(self, t: int, label: FloatArray, side: FloatArray, v: FloatArray, k: int) -> bool:
        """Whether item ``k`` can balance the others: whether the multiplier that makes the sum 0 is safely at least
        0, and safely at most its cost, where these limits apply."""
        others = (label[k] * np.delete(label * v, k)).tolist()
        fine = side[k] == -label[k] or math.fsum(others) <= 0.0
        return bool(fine and (side[k] == label[k] or math.fsum([*others, self.items.cost[t][k]]) >= 0.0))


def _items(problem: Problem, cost: FloatArray) -> ProofItems:
    """The items of a problem whose samples have these costs, rounded down."""
    ones = replace(problem, C=np.ones(problem.n_nodes), weight=np.ones(problem.n_samples))
    items, (T, m) = sample_items(ones), cost.shape
    penalty, K = items.cost, items.code.shape[1]
    costs = np.tile(cost, penalty.shape[1] // m)
    if np.any(items.code == BOTH):  # the losses on both sides of numeric targets
        last = slice(problem.n_upper, None)
        costs[last] = costs[last] * penalty[last] * SHADE
    choice_offset = m * (1 + problem.depth) + penalty.shape[1]
    return ProofItems(
        samples=m, group=items.group, code=items.code,
        cost=costs, side_of=sides(T), chooses=items.chooses,
        choice_offset=choice_offset, feature_offset=choice_offset + T * K * items.chooses,
    )  # fmt: skip
