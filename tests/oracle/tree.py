"""The optimum over all routings, supports, sides and labels of a tree, and the exact objective of a given tree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, product

from oracle import dyadic
from oracle.instances import Instance
from oracle.node import Plane, Rows, bounds
from oracle.routings import right_sets

Number = float | Fraction
#: The hinge losses at a node: samples with the sign of their label there; a sample may occur with both signs.
Items = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Interval:
    """An interval that contains the optimum."""

    lower: float
    upper: float

    @property
    def width(self) -> float:
        """Relative to the upper end; 0 if both vanish."""
        return (self.upper - self.lower) / self.upper if self.upper else 0.0


def optimum(instance: Instance, relaxed: dict[int, float] | None = None) -> Interval:
    """An interval around the optimum; ``relaxed[t]`` is the width by which the band of node ``t`` is narrowed at each
    end."""
    return Interval(*_Oracle(instance, relaxed or {}).best(0, (1 << len(instance.y)) - 1))


def best_tree(instance: Instance) -> list[Plane]:
    """The hyperplanes, in exact numbers, of the upper end of :func:`optimum`."""
    oracle = _Oracle(instance, {})
    all_samples = (1 << len(instance.y)) - 1
    oracle.best(0, all_samples)
    planes: list[Plane] = []
    reach = {0: all_samples}
    for t in range(2**instance.depth - 1):
        right, plane = oracle.chosen(t, reach[t])
        planes.append(plane)
        reach |= {2 * t + 1: reach[t] & ~right, 2 * t + 2: right}
    return planes


class _Oracle:
    """``best(t, S)`` is the smallest cost of the subtree at ``t`` if exactly the samples of mask ``S`` reach it."""

    def __init__(self, instance: Instance, relaxed: dict[int, float]) -> None:
        self.instance, self.relaxed = instance, relaxed
        self.k = dyadic.exponent(instance.X.ravel())
        m, n = instance.X.shape
        flat = dyadic.integers(instance.X.ravel(), self.k)
        self.points = tuple(tuple(flat[i * n : (i + 1) * n]) for i in range(m))
        #: class numbers; two classes are 0 and 1
        self.code = codes(instance)
        self.weight = [float(v) for v in instance.weight]
        self.upper_nodes = 2 ** (instance.depth - 1) - 1
        self.choice: dict[tuple[int, int], tuple[int, Plane]] = {}
        self.best = cache(self._best)
        self.node = cache(self._node)
        self.support_right_masks = cache(self._rights)
        self.solved = cache(self._solved)

    def terms(self, t: int) -> tuple[float, int | None, float | None]:
        budget = None if self.instance.budget is None else self.instance.budget[t]
        alpha = None if self.instance.alpha is None else self.instance.alpha[t]
        return self.instance.C[t], budget, alpha

    def _best(self, t: int, S: int) -> tuple[float, float]:
        if len({self.code[i] for i in _members(S) if self.weight[i]}) < 2:
            return 0.0, 0.0  # one class: a constant has no cost, here and below
        if t >= self.upper_nodes:
            return self._best_labels(t, S)
        children_cost = {
            right: _add(self.best(2 * t + 1, S & ~right), self.best(2 * t + 2, right))
            for right in self.right_masks(t, S)
        }
        unrouted_costs = {items: self.node(self.terms(t), items, None)[0] for items in self.upper_labelings(S)}
        unrouted = min(unrouted_costs.values())
        lower, upper = math.inf, math.inf
        for right in sorted(children_cost, key=lambda r: children_cost[r][0]):
            if _add(children_cost[right], (unrouted, math.inf))[0] >= upper:  # routing rows only increase the cost
                break
            for items, least in unrouted_costs.items():
                if _add(children_cost[right], (least, math.inf))[0] >= upper:
                    continue
                cutoff = math.nextafter(upper - children_cost[right][0], math.inf)
                low, high, plane = self.node(self.terms(t), items, right, self.relaxed.get(t, 0.0), cutoff)
                total = _add(children_cost[right], (low, high))
                if total[1] < upper and plane is not None:
                    self.choice[t, S] = (right, plane)
                lower, upper = min(lower, total[0]), min(upper, total[1])
        # The skipped routings are above the upper end.
        return min(lower, upper), upper

    def _best_labels(self, t: int, S: int) -> tuple[float, float]:
        lower, upper = math.inf, math.inf
        for items in self.last_level_labelings(S):
            low, high, plane = self.node(self.terms(t), items, None)
            if high < upper and plane is not None:
                self.choice[t, S] = (0, plane)
            lower, upper = min(lower, low), min(upper, high)
        return lower, upper

    def upper_labelings(self, S: int) -> set[Items]:
        """The possible labels at an upper node: class 0 is left, at least one other class right."""
        K, members = self.instance.n_classes, _members(S)
        sides = [(-1, *others) for others in product((-1, 1), repeat=K - 1) if 1 in others]
        return {tuple((i, side[self.code[i]]) for i in members) for side in sides}

    def last_level_labelings(self, S: int) -> set[Items]:
        """The possible labels at a last-level node: one class left, another right, any third one both."""
        found = set()
        for a, b in combinations(range(self.instance.n_classes), 2):
            left = [(i, -1) for i in _members(S) if self.code[i] != b]
            right = [(i, 1) for i in _members(S) if self.code[i] != a]
            found.add(tuple(sorted(left + right)))
        return found

    def chosen(self, t: int, S: int) -> tuple[int, Plane]:
        """The samples on the right of ``t`` in the best tree found, and its hyperplane: a constant for one class."""
        if (t, S) in self.choice:
            return self.choice[t, S]
        y = next((1 if self.code[i] else -1 for i in _members(S) if self.weight[i]), 1)
        # Above the last level, the constant is also left of the band.
        left = -max(Fraction(1), Fraction(self.instance.eps)) if t < self.upper_nodes else Fraction(-1)
        return (S if y > 0 else 0), ([Fraction(0)] * self.instance.X.shape[1], Fraction(1) if y > 0 else left)

    def right_masks(self, t: int, S: int) -> set[int]:
        found: set[int] = set()
        for support in self.supports(self.terms(t)):
            found |= self.support_right_masks(support, S)
        return found

    def _rights(self, support: tuple[int, ...], S: int) -> frozenset[int]:
        """All splits of the samples in S, as the restrictions of the splits of all samples."""
        return frozenset(r & S for r in right_sets(tuple(tuple(p[j] for j in support) for p in self.points)))

    def supports(self, terms: tuple[float, int | None, float | None]) -> list[tuple[int, ...]]:
        n, (_, budget, alpha) = self.instance.X.shape[1], terms
        if budget is None:
            return [tuple(range(n))]
        return [
            s
            for size in range(budget, n + 1 if alpha is not None else budget + 1)
            for s in combinations(range(n), size)
        ]

    def _node(
        self,
        terms: tuple[float, int | None, float | None],
        items: Items,
        right: int | None,
        relaxed: float = 0.0,
        cutoff: float = math.inf,
    ) -> tuple[float, float, Plane | None]:
        """The minimum over the supports including feature penalties; not refined once it is above ``cutoff``."""
        C, budget, alpha = terms
        S = sum(1 << i for i in {i for i, _ in items})
        lower, upper, best = math.inf, math.inf, None
        for support in self.supports(terms):
            if right is not None and right not in self.support_right_masks(support, S):
                continue
            penalty = 0.0 if alpha is None or budget is None else alpha * (len(support) - budget)
            if penalty >= upper:
                continue
            node_low, node_high, plane = self.solved(C, support, items, right, relaxed, cutoff)
            low, high = _add((penalty, penalty), (node_low, node_high))
            if high < upper and plane is not None:
                w = [Fraction(0)] * self.instance.X.shape[1]
                for j, v in zip(support, plane[0], strict=True):
                    w[j] = v
                best = (w, plane[1])
            lower, upper = min(lower, low), min(upper, high)
        return lower, upper, best

    def _solved(
        self, C: float, support: tuple[int, ...], items: Items, right: int | None, relaxed: float, cutoff: float
    ) -> tuple[float, float, Plane | None]:
        members = [i for i, _ in items]
        side = [] if right is None else [1 if right >> i & 1 else -1 for i in members]
        weight = [self.weight[i] for i in members]
        k_C, k_weight = dyadic.exponent([C]), dyadic.exponent(weight)
        (whole_C,) = dyadic.integers([C], k_C)
        kr = dyadic.exponent([self.instance.eps, relaxed])
        eps, slack = dyadic.integers([self.instance.eps, relaxed], kr)
        return bounds(
            Rows(
                points=tuple(tuple(self.points[i][j] for j in support) for i in members),
                k=self.k,
                label=tuple(label for _, label in items),
                cost=tuple(whole_C * v for v in dyadic.integers(weight, k_weight)),
                kc=k_C + k_weight,
                side=tuple(side),
                least=tuple(-slack if s > 0 else eps - slack for s in side),
                kr=kr,
                limit=None if self.instance.max_weight is None else Fraction(self.instance.max_weight),
            ),
            cutoff,
        )


@dataclass(frozen=True)
class TreeFacts:
    """A tree in exact arithmetic: its objective, and ``band``, the largest depth of a sample in the band of each upper
    node.  ``tie_depth`` is the depth allowed by a rounding tie, ``rounding_error`` that of the objective."""

    value: float
    band: dict[int, float]
    tie_depth: dict[int, float]
    rounding_error: float
    over_budget: bool


def tree_facts(instance: Instance, w: Sequence[Sequence[Number]], b: Sequence[Number]) -> TreeFacts:
    """The exact objective and band depths of hyperplanes; a sample in a band goes to the nearer side."""
    m, n = instance.X.shape
    code = codes(instance)
    node, total, rounding_error = [0] * m, Fraction(0), 0.0
    band, tie_depth = {}, {}
    over = False
    for t in range(2**instance.depth - 1):
        W, B = [Fraction(v) for v in w[t]], Fraction(b[t])
        used = sum(1 for v in W if v)
        if instance.max_weight is not None:
            over |= any(abs(v) > Fraction(instance.max_weight) * (1 + Fraction(1, 10**9)) for v in W)
        total += sum((v * v for v in W), Fraction(0)) / 2
        if instance.budget is not None:
            excess = max(0, used - instance.budget[t])
            over |= instance.alpha is None and excess > 0
            total += 0 if instance.alpha is None else Fraction(instance.alpha[t]) * excess
        deepest, reach = Fraction(0), 0.0
        losses = [[Fraction(0), Fraction(0)] for _ in range(instance.n_classes)]
        for i in (i for i in range(m) if node[i] == t):
            h = sum((a * Fraction(float(x)) for a, x in zip(W, instance.X[i], strict=True)), B)
            size = 1.0 + abs(float(B)) + sum(abs(float(a) * float(x)) for a, x in zip(W, instance.X[i], strict=True))
            penalty = Fraction(instance.C[t]) * Fraction(float(instance.weight[i]))
            losses[code[i]][0] += penalty * max(Fraction(0), 1 + h)
            losses[code[i]][1] += penalty * max(Fraction(0), 1 - h)
            rounding_error += float(penalty) * size * (n + 4) * 2.0**-52
            reach = max(reach, size)
            if t < 2 ** (instance.depth - 1) - 1:
                goes_right = h >= -Fraction(instance.eps) / 2
                deepest = max(deepest, -h if goes_right else h + Fraction(instance.eps))
                node[i] = 2 * t + 2 if goes_right else 2 * t + 1
        total += _best_sides_cost(losses, t < 2 ** (instance.depth - 1) - 1)
        if t < 2 ** (instance.depth - 1) - 1:
            band[t], tie_depth[t] = dyadic.above(max(deepest, Fraction(0))), 1e-9 * reach
    value = float(total)
    return TreeFacts(
        value=value,
        band=band,
        tie_depth=tie_depth,
        rounding_error=rounding_error + 64 * 2.0**-52 * value,
        over_budget=over,
    )


def _best_sides_cost(losses: list[list[Fraction]], upper: bool) -> Fraction:
    """The cost of a node with the best sides or labels, from the losses of each class on the left and on the right.

    The sides of two classes are fixed.
    """
    K = len(losses)
    if upper:
        sides = [(0, *others) for others in product((0, 1), repeat=K - 1) if 1 in others]
        return min(sum((losses[k][side[k]] for k in range(K)), Fraction(0)) for side in sides)
    everything = sum((left + right for left, right in losses), Fraction(0))
    pairs = [(0, 1)] if K == 2 else [(a, b) for a in range(K) for b in range(K) if a != b]
    return everything - max(losses[a][1] + losses[b][0] for a, b in pairs)


def codes(instance: Instance) -> list[int]:
    """The class number of every sample."""
    return [int(v) if instance.n_classes > 2 else int(v > 0) for v in instance.y]


def _members(S: int) -> list[int]:
    return [i for i in range(S.bit_length()) if S >> i & 1]


def _add(one: tuple[float, float], two: tuple[float, float]) -> tuple[float, float]:
    """The sum of two intervals, rounded outward."""
    low, high = one[0] + two[0], one[1] + two[1]
    if one[0] and two[0]:
        low = math.nextafter(low, 0.0)
    if one[1] and two[1]:
        high = math.nextafter(high, math.inf)
    return low, high
