"""Where descents start from: given trees, greedy trees, soft trees, random trees, and variations of the best trees."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np

from margotree.engines.local_search.annealing import Schedule
from margotree.engines.local_search.descent import Strategies
from margotree.engines.local_search.initial_splits import FRESH, Strategy
from margotree.engines.local_search.training_data import TrainedTree
from margotree.problem import topology
from margotree.problem.problem import FloatArray

#: The first starts of a pool are new; after them, origins that improve the best tree more are chosen more often.
_FIRST = 3
#: Among the first new starts every other one is a soft tree; later the share of soft trees among the best results
#: decides. The last number is that of soft trees per start.
_ALTERNATE_FIRST, _BEST_COUNTED, _SOFT_TREES = 4, 4, 12
#: The share of soft trees with a random schedule; the others follow one of the best schedules.
_RANDOM_SHARE, _TOP_SCHEDULES = 0.5, 4
#: A start that improves the best tree by this share gets full credit.
_FULL_CREDIT = 0.005
#: The credit of each origin, and its number of starts, before it has been tried.
_PRIOR_CREDIT, _PRIOR_CHARGE = 1.0, 2.0


class Origin(IntEnum):
    """How a start is derived."""

    NEW = 0
    PERTURBED = 1  # one of the best trees, with some nodes replaced
    REANNEALED = 2  # one of the best trees, trained as a soft tree again
    SUBTREE = 3  # one of the best trees, with a single subtree trained from another start


#: The relative cost of a start of each origin.
_COST = (4.0, 1.0, 1.0, 0.3)


@dataclass(frozen=True, kw_only=True, eq=False)
class Start:
    """A tree, and the initialisation strategy of each of its nodes.

    If ``n_soft`` is not 0, the tree is first re-annealed, or, if it has no splits, the best of this number of new soft
    trees is used. If ``subtree`` is given, only the subtree of node ``top`` is trained, from that start.
    """

    W: FloatArray
    B: FloatArray
    strategies: Strategies
    n_soft: int = 0
    top: int = 0
    subtree: Start | None = None


@dataclass(kw_only=True)
class StartStatistics:
    """The results of starts so far; more successful kinds of starts are chosen more often."""

    soft_values: list[float] = field(default_factory=list)  # results of new soft trees
    other_values: list[float] = field(default_factory=list)  # results of other new starts
    schedules: list[tuple[float, Schedule]] = field(default_factory=list)  # of new soft trees, with their results
    _n_soft: int = 0  # new soft trees so far
    _n_others: int = 0  # other new starts so far
    _credit: list[float] = field(default_factory=lambda: [_PRIOR_CREDIT] * len(Origin))
    _charge: list[float] = field(default_factory=lambda: [_PRIOR_CHARGE] * len(Origin))

    def next_schedule(self, rng: np.random.Generator) -> Schedule:
        """A schedule for the next soft tree: random, or similar to one of the best so far."""
        if rng.random() < _RANDOM_SHARE or not self.schedules:
            return Schedule.at_random(rng)
        best = sorted(self.schedules, key=lambda one: one[0])[:_TOP_SCHEDULES]
        return best[rng.integers(len(best))][1].similar(rng)

    def next_number(self) -> int:
        """The number of the next new start that is not a soft tree."""
        self._n_others += 1
        return self._n_others - 1

    def next_origin(self, number: int, depth: int, rng: np.random.Generator) -> Origin:
        """The origin of a start, given its number in its pool.

        Thompson sampling: the rate of improvement of each origin is drawn from its posterior distribution, so that
        origins are tried again as long as they may be the best.
        """
        if number < _FIRST or depth == 1:
            return Origin.NEW
        # The subtrees of a tree of depth 2 are single SVMs.
        origins = [origin for origin in Origin if depth > 2 or origin is not Origin.SUBTREE]
        return max(origins, key=lambda origin: rng.gamma(self._credit[origin]) / self._charge[origin])

    def update(self, start: Start, value: float, before: float, number: int) -> None:
        """Record the result of a start, its number in its pool, and the best value there before."""
        origin = _origin(start)
        if origin is Origin.NEW:
            (self.soft_values if start.n_soft else self.other_values).append(value)
        if number >= _FIRST:  # the origin was chosen
            self._charge[origin] += _COST[origin]
            self._credit[origin] += min(1.0, max(0.0, 1.0 - value / before) / _FULL_CREDIT) if before > 0 else 0.0

    @property
    def soft_share(self) -> float:
        """The share of soft trees among the best results of new starts, with one more of each as prior."""
        values = sorted([*((v, True) for v in self.soft_values), *((v, False) for v in self.other_values)])[
            :_BEST_COUNTED
        ]
        return (1 + sum(is_soft for _, is_soft in values)) / (2 + len(values))

    def next_is_soft(self, rng: np.random.Generator) -> bool:
        """Whether the next new start is a soft tree."""
        number = self._n_soft + self._n_others
        is_soft = number % 2 == 0 if number < _ALTERNATE_FIRST else bool(rng.random() < self.soft_share)
        self._n_soft += is_soft
        return is_soft


def _origin(start: Start) -> Origin:
    """The origin of a start."""
    if not np.any(start.W):
        return Origin.NEW
    if start.subtree is not None:
        return Origin.SUBTREE
    return Origin.REANNEALED if start.n_soft else Origin.PERTURBED


def idle_cost(start: Start, number: int) -> float:
    """What a start without improvement adds to the idle starts of its pool: nothing for the first starts."""
    return min(1.0, _COST[_origin(start)]) if number >= _FIRST else 0.0


def soft_start(depth: int, n_features: int) -> Start:
    """A new start from soft trees."""
    nodes = topology.n_nodes(depth)
    return replace(new_start(np.full(nodes, Strategy.KEEP), n_features), n_soft=_SOFT_TREES)


def reannealed_start(tree: TrainedTree) -> Start:
    """A start that re-anneals the tree."""
    return replace(unchanged_start(tree), n_soft=1)


def greedy_start(depth: int, n_features: int) -> Start:
    """The tree of Local SVM."""
    return new_start(np.full(topology.n_nodes(depth), Strategy.SVM), n_features)


def new_start(strategies: Strategies, n_features: int) -> Start:
    """A new start with these initialisation strategies."""
    return Start(W=np.zeros((len(strategies), n_features)), B=np.ones(len(strategies)), strategies=strategies)


def unchanged_start(tree: TrainedTree) -> Start:
    """The tree without changes."""
    return Start(W=tree.W, B=tree.B, strategies=np.full(len(tree.B), Strategy.KEEP))


def first_strategies(
    number: int, depth: int, rng: np.random.Generator, fresh: tuple[Strategy, ...] = FRESH
) -> Strategies:
    """The initialisation strategies of a new start: CART, then SVMs, then random ones."""
    nodes = topology.n_nodes(depth)
    if number < 2:
        return np.full(nodes, (Strategy.CART, Strategy.SVM)[number])
    strategies = rng.choice(fresh[1:], nodes) if rng.random() < 0.5 else np.full(nodes, Strategy.CART)
    strategies[0] = rng.choice(fresh[1:])
    return strategies


def perturbed(tree: TrainedTree, depth: int, rng: np.random.Generator, fresh: tuple[Strategy, ...] = FRESH) -> Start:
    """The tree with a node replaced, its upper nodes perturbed, two subtrees swapped, or one copied to its sibling."""
    W, B, strategies = tree.W.copy(), tree.B.copy(), np.full(len(tree.B), Strategy.KEEP)
    t = int(rng.integers(len(topology.upper(depth))))
    left, right = (topology.subtree(s, depth) for s in (topology.left(t), topology.right(t)))
    move = rng.random()
    if move < 0.6:
        strategies[t] = rng.choice([*fresh, Strategy.PERTURBED, Strategy.PERTURBED])
        # Nodes of its subtrees are trained again from their current hyperplanes, or replaced as well.
        descendants = [s for s in left + right if s not in topology.upper(depth) or rng.random() < 0.3]
        strategies[descendants] = rng.choice(fresh, len(descendants))
    elif move < 0.8:
        strategies[: len(topology.upper(depth))] = Strategy.PERTURBED
    elif move < 0.9:
        W[left], W[right], B[left], B[right] = W[right], W[left], B[right], B[left]
    else:
        to, source = (left, right) if rng.random() < 0.5 else (right, left)
        W[to], B[to] = W[source], B[source]
        strategies[t] = Strategy.BETWEEN if rng.random() < 0.5 else Strategy.PERTURBED
    return Start(W=W, B=B, strategies=strategies)
