"""The objective and the feasibility of a given tree: the one definition that all other code is checked against.

Written in the plainest way on purpose. The result of every engine is evaluated here before it is returned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from margotree.problem import topology
from margotree.problem.blocks import FloatArray, IndexArray, decision_values
from margotree.problem.routing import TIE, depth_in_band, goes_right
from margotree.problem.tasks import Choices, Task


class Terms(Protocol):
    """What the objective of a tree depends on; :class:`~margotree.problem.Problem` has all of it."""

    @property
    def X(self) -> FloatArray: ...

    @property
    def y(self) -> NDArray[Any]: ...

    @property
    def task(self) -> Task: ...

    @property
    def choices(self) -> Choices | None: ...

    @property
    def weight(self) -> FloatArray: ...

    @property
    def depth(self) -> int: ...

    @property
    def C(self) -> FloatArray: ...

    @property
    def eps(self) -> float: ...

    @property
    def budget(self) -> IndexArray | None: ...

    @property
    def alpha(self) -> FloatArray | None: ...

    @property
    def groups(self) -> IndexArray | None: ...

    @property
    def max_weight(self) -> float | None: ...

    @property
    def model(self) -> str: ...


@dataclass(frozen=True, kw_only=True, eq=False)
class Splits:
    """The hyperplanes of a tree: row ``t`` of ``w`` and entry ``t`` of ``b`` belong to branch node ``t``."""

    w: FloatArray
    b: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "w", _read_only_copy(self.w, 2))
        object.__setattr__(self, "b", _read_only_copy(self.b, 1))
        if len(self.w) != len(self.b):
            raise ValueError(f"{len(self.w)} weight rows but {len(self.b)} offsets")
        # Comparisons with NaN are false, so that a tree with NaN would seem feasible.
        if not (np.all(np.isfinite(self.w)) and np.all(np.isfinite(self.b))):
            raise ValueError("weights and offsets of a tree must be finite numbers")


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """The result of :func:`evaluate`.

    Parameters
    ----------
    objective : float
        The sum of ``node_values``.
    node_values : array of shape (n_nodes,)
        What each node adds to the objective.
    node : array of shape (n_samples,)
        The last-level node that each sample reaches.
    choices : Choices
        The sides and labels with which the objective was computed: those of the problem, or else the best.
    band : float
        How deep the worst sample lies inside the band of an upper node that it reaches.
    over_budget : int
        The largest number of features, or groups of features, above a hard budget.
    over_weight : float
        The largest excess of ``|w_tj|`` over ``max_weight``.

    The last three are 0 for an allowed tree.
    """

    objective: float
    node_values: FloatArray
    node: IndexArray
    choices: Choices
    band: float
    over_budget: int
    over_weight: float

    @property
    def feasible(self) -> bool:
        return not self.violations

    @property
    def violations(self) -> list[str]:
        """Reasons why the tree is not feasible; empty if it is."""
        reasons = []
        if self.band:
            reasons.append(f"a training sample lies {self.band:.3g} deep inside the routing band of an upper node")
        if self.over_budget:
            reasons.append(f"a node uses {self.over_budget} features more than its budget")
        if self.over_weight:
            reasons.append(f"a weight exceeds max_weight by {self.over_weight:.3g}")
        return reasons


def evaluate(problem: Terms, splits: Splits) -> Evaluation:
    """Objective and feasibility of a tree, recomputed from its hyperplanes alone.

    Choices are those of ``problem.choices`` or, if that is None, the best for the hyperplanes.
    """
    nodes, task = topology.n_nodes(problem.depth), problem.task
    shape = (nodes, problem.X.shape[1])
    if splits.w.shape != shape:
        raise ValueError(
            f"a tree of depth {problem.depth} on {shape[1]} features needs weights of shape {shape}, "
            f"got {splits.w.shape}"
        )
    upper, last = topology.upper(problem.depth), topology.last(problem.depth)
    given, chosen = problem.choices, task.initial_choices(len(upper), len(last))
    at = np.zeros(len(problem.X), dtype=np.int64)
    values, band = np.zeros(nodes), 0.0
    mass: list[FloatArray] = []
    for t in range(nodes):
        w, b = splits.w[t], float(splits.b[t])
        reached = np.flatnonzero(at == t)
        y, weight = problem.y[reached], problem.weight[reached]
        h = decision_values(problem.X, reached, w, b)
        side = np.where(goes_right(h, b, problem.eps), 1, -1)
        # Nodes without samples take the masses of the nearest node above that has some.
        mass.append(task.mass(y, weight) if len(reached) or t == 0 else mass[topology.parent(t)])
        choice = task.best_choice(y, weight, h, b, last=t in last, mass=mass[t]) if given is None else given.at(t)
        chosen.at(t)[:] = choice
        items = task.items(y, last=t in last, side=side if t in upper else None, choice=choice)
        values[t] = 0.5 * float(w @ w) + problem.C[t] * float(weight @ items.loss(h)) + _penalty(problem, t, w)
        if t in upper:
            band = max(band, depth_in_band(h, b, problem.eps))
            at[reached] = np.where(side > 0, topology.right(t), topology.left(t))
    return Evaluation(
        objective=float(np.sum(values)),
        node_values=values,
        node=at,
        choices=chosen,
        band=band,
        over_budget=_over_budget(problem, splits),
        over_weight=_over_weight(problem, splits),
    )


def _penalty(problem: Terms, t: int, w: FloatArray) -> float:
    """The penalty of features above the budget of node ``t``."""
    if problem.budget is None or problem.alpha is None:
        return 0.0
    return float(problem.alpha[t] * max(0, size_of_support(w, problem.groups) - problem.budget[t]))


def size_of_support(w: FloatArray, groups: IndexArray | None = None) -> int:
    """The number of features with a weight or, where features form groups, of groups with such a feature."""
    used = w != 0
    return int(np.count_nonzero(used)) if groups is None else len(np.unique(groups[used]))


def _over_budget(problem: Terms, splits: Splits) -> int:
    """The largest number of features, or groups of features, above a hard budget."""
    if problem.budget is None or problem.alpha is not None:
        return 0
    excess = (size_of_support(w, problem.groups) - B for w, B in zip(splits.w, problem.budget, strict=True))
    return max(0, *map(int, excess))


def _over_weight(problem: Terms, splits: Splits) -> float:
    """The largest excess of a weight over ``max_weight``, beyond rounding."""
    limit = problem.max_weight
    if limit is None:
        return 0.0
    excess = float(np.max(np.abs(splits.w))) - limit
    return excess if excess > TIE * limit else 0.0


def _read_only_copy(a: FloatArray, ndim: int) -> FloatArray:
    """A read-only copy with this number of dimensions."""
    own = np.array(a, dtype=np.float64, order="C")
    if own.ndim != ndim:
        raise ValueError(f"expected {ndim} dimensions, got shape {own.shape}")
    own.setflags(write=False)
    return own
