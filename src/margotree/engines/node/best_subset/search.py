"""Branch and bound over features: a search node decides for some features that they must or may never be used."""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.best_subset.branching import PseudoCosts
from margotree.engines.node.best_subset.relaxation import Relaxed, first_penalty, relax
from margotree.engines.node.best_subset.samples import I1
from margotree.engines.node.best_subset.supports import Supports, improve, try_nested
from margotree.engines.node.best_subset.task import MAY, MUST, NEVER, Task

#: Penalties tried at the root and below it.
_ROOT_ROUNDS, _ROUNDS = 40, 3
#: At most this number of supports is enumerated, or the second number if the bound is below this share of the
#: incumbent's value and at most this number of features is free.
_ENUMERATED, _ENUMERATED_IF_WEAK, _WEAK_BOUND, _FEW_FREE = 100, 3000, 0.8, 3
#: Bytes that the open nodes may take.
_MEMORY = 1e9
#: With a penalised budget all subsets of at most this number of undecided features are enumerated.
_FEW_PENALISED = 3


class Search:
    """Best-first search; ``bound`` is valid whenever it ends, ``supports`` holds the incumbent."""

    def __init__(self, task: Task, supports: Supports, node_limit: float = math.inf) -> None:
        self.task = task
        self.node_limit = node_limit
        self.supports = supports
        self.costs = PseudoCosts(task.n_groups)
        self.nodes = 0
        self.bound = -math.inf
        self.finished = False
        self._order = itertools.count()
        self._queue: list[tuple[float, int, Relaxed]] = []

    def run(self) -> None:
        """Search until no open node can improve the incumbent, or a limit is reached."""
        task, supports = self.task, self.supports
        supports.value(np.flatnonzero(task.kind == MUST))
        if task.stop():
            return
        root = self._root()
        if root.bound < supports.target:
            try_nested(supports, root.point.w)
            improve(supports)
        self._push(root)
        while self._queue and not task.stop() and not self._memory_is_full() and self.nodes < self.node_limit:
            bound, _, node = heapq.heappop(self._queue)
            if bound >= supports.target:
                self._queue.clear()
                break
            self.nodes += 1
            for child in self._expand(node):
                self._push(child)
            if task.stop():
                # Some of the children may be missing: keep their parent open instead.
                self._queue.append((bound, next(self._order), node))
        open_bounds = [bound for bound, _, _ in self._queue]
        self.bound = min([supports.target, supports.proved_bound, *open_bounds])
        self.finished = not open_bounds and supports.finished

    def _root(self) -> Relaxed:
        """The relaxation with no decision beyond the task's own."""
        task = self.task
        return relax(task, task.kind.copy(), None, first_penalty(task), self.supports.target, _ROOT_ROUNDS)

    def _push(self, node: Relaxed) -> None:
        """Add a node to the queue unless its bound reaches the target."""
        if node.bound < self.supports.target:
            heapq.heappush(self._queue, (node.bound, next(self._order), node))

    def _expand(self, node: Relaxed) -> list[Relaxed]:
        """The children of a node; none if it is enumerated or closed."""
        kind = fix_features(self.task, node, self.supports.target)
        may, must = np.flatnonzero(kind == MAY), np.flatnonzero(kind == MUST)
        if self._try_enumeration(node, must, may):
            return []
        self._try_rounded(node, kind, must, may)
        if node.bound >= self.supports.target:
            return []
        return self._branch(node, kind, may)

    def _try_enumeration(self, node: Relaxed, must: NDArray[np.int64], may: NDArray[np.int64]) -> bool:
        """Close a node by evaluating all its supports if they are few; False if they are not."""
        left = self.task.budget - len(must)
        if self.task.hard:
            if left < 0:
                return True
            # A larger support has no larger value: only full ones count.
            sizes = [min(left, len(may))]
            weak = node.bound < _WEAK_BOUND * self.supports.best and sizes[0] <= _FEW_FREE
            if math.comb(len(may), sizes[0]) > (_ENUMERATED_IF_WEAK if weak else _ENUMERATED):
                return False
        else:
            sizes = list(range(len(may) + 1))
            if len(may) > _FEW_PENALISED:
                return False
        self._enumerate(node, must, may, sizes)
        return True

    def _enumerate(self, node: Relaxed, must: NDArray[np.int64], may: NDArray[np.int64], sizes: list[int]) -> None:
        """Evaluate the supports of these sizes, those with the smallest bound first."""
        base = node.total - float(np.sum(node.values[must]))
        choices = [c for size in sizes for c in itertools.combinations(may.tolist(), size)]
        bounds = [base - sum(node.values[j] for j in c) + self.task.penalty(len(must) + len(c)) for c in choices]
        for k in np.argsort(bounds, kind="stable"):
            if min(bounds[k], self.task.valid_below) < self.supports.target:
                if self.task.stop():
                    return
                self.supports.value([*must, *choices[k]])

    def _try_rounded(self, node: Relaxed, kind: I1, must: NDArray[np.int64], may: NDArray[np.int64]) -> None:
        """Evaluate the support of the features with the largest shares in the relaxation."""
        if self.task.hard:
            ranked = may[np.lexsort((-node.values[may], -node.share[may]))]
            self.supports.value([*must, *ranked[: self.task.budget - len(must)]])
        else:
            self.supports.value(np.flatnonzero((kind == MUST) | ((kind == MAY) & (node.share > 0.5))))

    def _branch(self, node: Relaxed, kind: I1, may: NDArray[np.int64]) -> list[Relaxed]:
        """The two children for the feature that the pseudo-costs choose."""
        children: dict[int, list[Relaxed]] = {}

        def gains(j: int) -> tuple[float, float]:
            children[j] = [self._child(node, kind, j, decided) for decided in (MUST, NEVER)]
            up, down = (self._gain(child, node) for child in children[j])
            return up, down

        j = self.costs.choose(may, node.share, gains)
        return children.get(j) or [self._child(node, kind, j, decided) for decided in (MUST, NEVER)]

    def _child(self, node: Relaxed, kind: I1, j: int, decided: int) -> Relaxed:
        """The relaxation with one more decision; its gain updates the pseudo-costs."""
        below = kind.copy()
        below[j] = decided
        child = relax(self.task, below, node.point, node.lam, self.supports.target, _ROUNDS, node.u)
        self.costs.learn(j, decided == MUST, node.share[j], self._gain(child, node))
        if child.bound >= node.bound:
            return child
        return replace(child, bound=node.bound)

    def _gain(self, child: Relaxed, node: Relaxed) -> float:
        """The increase of the bound from a node to its child, up to the target."""
        target = self.supports.target
        most = target if math.isfinite(target) else 2.0 * abs(node.bound) + 1.0
        return max(0.0, min(child.bound, most) - node.bound)

    def _memory_is_full(self) -> bool:
        """Whether the open nodes take more memory than they may."""
        return len(self._queue) * (9 * len(self.task.items.y) + 32 * self.task.n_features + 2000) > _MEMORY


def fix_features(task: Task, node: Relaxed, target: float) -> I1:
    """Decide the features whose other choice would raise the node's bound to the target."""
    kind = node.kind.copy()
    if target > task.valid_below:
        return kind
    may = kind == MAY
    slack = target - node.point_bound
    left = task.remaining(kind)
    ranked = np.sort(node.values[may])[::-1]
    # The values of the last feature within the budget and of the first one beyond it, at most alpha.
    last = first = task.alpha
    if left > 0:
        last = min(task.alpha, ranked[left - 1]) if left <= len(ranked) else 0.0
        first = min(task.alpha, ranked[left]) if left < len(ranked) else 0.0
    with np.errstate(invalid="ignore"):
        needed = may & (node.values >= last) & (node.values - first > slack)
        useless = may & (node.values <= first) & (last - node.values > slack)
    kind[needed] = MUST
    kind[useless & ~needed] = NEVER
    return kind
