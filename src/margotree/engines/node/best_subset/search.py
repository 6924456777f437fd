"""Branch and bound on features: what must be used, what may be, what never is."""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.best_subset.branching import PseudoCosts
from margotree.engines.node.best_subset.relaxation import Relaxed, first_price, relax
from margotree.engines.node.best_subset.samples import I1
from margotree.engines.node.best_subset.supports import Supports, improve, try_nested
from margotree.engines.node.best_subset.task import MAY, MUST, NEVER, Task

#: Prices tried at the root and below.
_ROOT_ROUNDS, _ROUNDS = 40, 3
#: So few supports are enumerated at once, more if the bound is weak and the features few.
_FEW, _MANY, _WEAK, _SMALL = 100, 3000, 0.8, 3
#: Bytes that the open nodes may take.
_MEMORY = 1e9
#: With a priced budget all subsets of so many undecided features are enumerated.
_FEW_PRICED = 3


class Search:
    """Best-first search; ``bound`` is valid whenever it ends, ``supports`` holds the incumbent."""

    def __init__(self, task: Task, supports: Supports, node_limit: float = math.inf) -> None:
        self.task = task
        self.node_limit = node_limit
        self.supports = supports
        self.costs = PseudoCosts(task.n_features)
        self.nodes = 0
        self.bound = -math.inf
        self.finished = False
        self._order = itertools.count()
        self._queue: list[tuple[float, int, Relaxed]] = []

    def run(self) -> None:
        """Search until everything is decided or time is up."""
        task, supports = self.task, self.supports
        supports.value(np.flatnonzero(task.kind == MUST))
        if task.stop():
            return
        root = self._root()
        if root.bound < supports.target:
            try_nested(supports, root.point.w)
            improve(supports)
        self._push(root)
        while self._queue and not task.stop() and not self._full() and self.nodes < self.node_limit:
            bound, _, node = heapq.heappop(self._queue)
            if bound >= supports.target:
                self._queue.clear()
                break
            self.nodes += 1
            for child in self._expand(node):
                self._push(child)
            if task.stop():
                # Some of the children may be missing: the node itself stands for them.
                self._queue.append((bound, next(self._order), node))
        open_bounds = [bound for bound, _, _ in self._queue]
        self.bound = min([supports.target, supports.proved, *open_bounds])
        self.finished = not open_bounds and supports.finished

    def _root(self) -> Relaxed:
        task = self.task
        return relax(task, task.kind.copy(), None, first_price(task), self.supports.target, _ROOT_ROUNDS)

    def _push(self, node: Relaxed) -> None:
        if node.bound < self.supports.target:
            heapq.heappush(self._queue, (node.bound, next(self._order), node))

    def _expand(self, node: Relaxed) -> list[Relaxed]:
        kind = fix(self.task, node, self.supports.target)
        may, must = np.flatnonzero(kind == MAY), np.flatnonzero(kind == MUST)
        if self._enumerated(node, must, may):
            return []
        self._round(node, kind, must, may)
        if node.bound >= self.supports.target:
            return []
        return self._branch(node, kind, may)

    def _enumerated(self, node: Relaxed, must: NDArray[np.int64], may: NDArray[np.int64]) -> bool:
        """Settle a node by trying its supports, where they are few; False if they are not."""
        left = self.task.budget - len(must)
        if self.task.hard:
            if left < 0:
                return True
            # A larger support is never worse: only full ones count.
            sizes = [min(left, len(may))]
            weak = node.bound < _WEAK * self.supports.best and sizes[0] <= _SMALL
            if math.comb(len(may), sizes[0]) > (_MANY if weak else _FEW):
                return False
        else:
            sizes = list(range(len(may) + 1))
            if len(may) > _FEW_PRICED:
                return False
        self._enumerate(node, must, may, sizes)
        return True

    def _enumerate(self, node: Relaxed, must: NDArray[np.int64], may: NDArray[np.int64], sizes: list[int]) -> None:
        base = node.total - float(np.sum(node.values[must]))
        choices = [c for size in sizes for c in itertools.combinations(may.tolist(), size)]
        hopes = [base - sum(node.values[j] for j in c) + self.task.price(len(must) + len(c)) for c in choices]
        for k in np.argsort(hopes, kind="stable"):
            if min(hopes[k], self.task.claims) < self.supports.target:
                if self.task.stop():
                    return
                self.supports.value([*must, *choices[k]])

    def _round(self, node: Relaxed, kind: I1, must: NDArray[np.int64], may: NDArray[np.int64]) -> None:
        """Try the support that the relaxation leans to."""
        if self.task.hard:
            ranked = may[np.lexsort((-node.values[may], -node.share[may]))]
            self.supports.value([*must, *ranked[: self.task.budget - len(must)]])
        else:
            self.supports.value(np.flatnonzero((kind == MUST) | ((kind == MAY) & (node.share > 0.5))))

    def _branch(self, node: Relaxed, kind: I1, may: NDArray[np.int64]) -> list[Relaxed]:
        ready: dict[int, list[Relaxed]] = {}

        def gains(j: int) -> tuple[float, float]:
            ready[j] = [self._child(node, kind, j, decided) for decided in (MUST, NEVER)]
            up, down = (self._gain(child, node) for child in ready[j])
            return up, down

        j = self.costs.choose(may, node.share, gains)
        return ready.get(j) or [self._child(node, kind, j, decided) for decided in (MUST, NEVER)]

    def _child(self, node: Relaxed, kind: I1, j: int, decided: int) -> Relaxed:
        below = kind.copy()
        below[j] = decided
        child = relax(self.task, below, node.point, node.lam, self.supports.target, _ROUNDS)
        self.costs.learn(j, decided == MUST, node.share[j], self._gain(child, node))
        if child.bound >= node.bound:
            return child
        return replace(child, bound=node.bound)

    def _gain(self, child: Relaxed, node: Relaxed) -> float:
        """How much a child lifts its parent's bound; what goes beyond the target does not count."""
        target = self.supports.target
        most = target if math.isfinite(target) else 2.0 * abs(node.bound) + 1.0
        return max(0.0, min(child.bound, most) - node.bound)

    def _full(self) -> bool:
        """Whether the open nodes take more memory than they may."""
        return len(self._queue) * (9 * len(self.task.items.y) + 32 * self.task.n_features + 2000) > _MEMORY


def fix(task: Task, node: Relaxed, target: float) -> I1:
    """Decide the features whose other choice would lift the node's bound to the target."""
    kind = node.kind.copy()
    if target > task.claims:
        return kind
    may = kind == MAY
    slack = target - node.own
    left = task.left(kind)
    ranked = np.sort(node.values[may])[::-1]
    # The price of the last free place, and of the first place beyond the budget.
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
