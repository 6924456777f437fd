"""The definition of the objective and the feasibility of a tree.

The code is kept plain and slow, because the result of every engine is checked with :func:`evaluate`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from margotree.problem import topology
from margotree.problem.blocks import FloatArray, decision_values

#: Function of (node, ``h`` of the samples there, their numbers): the sum of their hinge losses, without ``C``.
NodeHingeLoss = Callable[[int, FloatArray, NDArray[np.int64]], float]

#: Rounding error allowed on ``h``, relative to ``1 + |b|``. A sample with ``h >= -tie`` lies on the right.
#: The units of the features have no effect: a sample near the hyperplane has ``|w.x|`` near ``|b|``.
TIE = 1e-9


class CommonTerms(Protocol):
    """The parts of a problem on which the objective of a tree depends, except the labels."""

    @property
    def X(self) -> FloatArray: ...

    @property
    def weight(self) -> FloatArray: ...

    @property
    def depth(self) -> int: ...

    @property
    def C(self) -> FloatArray: ...

    @property
    def eps(self) -> float: ...

    @property
    def budget(self) -> NDArray[np.int64] | None: ...

    @property
    def alpha(self) -> FloatArray | None: ...

    @property
    def model(self) -> str: ...

    @property
    def n_samples(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    @property
    def n_nodes(self) -> int: ...


class BinaryTerms(CommonTerms, Protocol):
    """The parts of a two-class :class:`~margotree.problem.Problem` on which the objective of a tree depends."""

    @property
    def y(self) -> FloatArray: ...

    @property
    def max_weight(self) -> float | None: ...


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

    Attributes
    ----------
    objective : float
        The sum of ``node_values``.
    node_values : array of float
        The part of the objective that each node adds.
    node : array of int
        The last-level node that each sample reaches.
    band : float
        The largest distance of a sample inside the band of an upper node from the border of that band.
    over_budget : int
        The largest number of features beyond the budget of a node (HFS).
    over_weight : float
        The largest excess of a ``|w_tj|`` over ``max_weight``.

    The last three are 0 for a feasible tree.
    """

    objective: float
    node_values: FloatArray
    node: NDArray[np.int64]
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


def tie(b: float, eps: float = np.inf) -> float:
    """Return the rounding error allowed on ``h`` at a node with offset ``b``: at most a quarter of ``eps``."""
    return float(min(TIE * (1.0 + abs(b)), eps / 4))


def evaluate(problem: BinaryTerms, splits: Splits) -> Evaluation:
    """Compute objective and feasibility of a tree from its hyperplanes.

    Parameters
    ----------
    problem : Problem
        The training problem.
    splits : Splits
        The hyperplanes of the tree.

    Returns
    -------
    Evaluation
        Objective, routing and violated constraints.
    """

    def hinge_loss(t: int, h: FloatArray, reached: NDArray[np.int64]) -> float:
        return float(problem.weight[reached] @ np.maximum(0.0, 1.0 - problem.y[reached] * h))

    return evaluate_routing(problem, splits, hinge_loss)


def evaluate_routing(problem: CommonTerms, splits: Splits, hinge_loss: NodeHingeLoss) -> Evaluation:
    """Compute the same with a loss function ``hinge_loss(t, h, reached)`` of any kind (:data:`NodeHingeLoss`)."""
    if splits.w.shape != (problem.n_nodes, problem.n_features):
        raise ValueError(
            f"a tree of depth {problem.depth} on {problem.n_features} features needs weights of shape "
            f"{(problem.n_nodes, problem.n_features)}, got {splits.w.shape}"
        )
    at = np.zeros(problem.n_samples, dtype=np.int64)
    values = np.zeros(problem.n_nodes)
    band = 0.0
    for t in range(problem.n_nodes):
        reached = np.flatnonzero(at == t)
        h = decision_values(problem.X, reached, splits.w[t], splits.b[t])
        values[t] = _node_value(problem, t, splits.w[t], hinge_loss(t, h, reached))
        if t in topology.upper(problem.depth):
            slack = tie(splits.b[t], problem.eps)
            right = h >= -slack
            inside = ~right & (h > slack - problem.eps)
            if np.any(inside):
                band = max(band, float(np.max(np.minimum(-h[inside], h[inside] + problem.eps))))
            at[reached] = np.where(right, topology.right(t), topology.left(t))
    return Evaluation(
        objective=float(np.sum(values)),
        node_values=values,
        node=at,
        band=band,
        over_budget=_over_budget(problem, splits),
        over_weight=_over_weight(problem, splits),
    )


def _node_value(problem: CommonTerms, t: int, w: FloatArray, hinge_loss: float) -> float:
    value = 0.5 * float(w @ w) + problem.C[t] * hinge_loss
    if problem.model == "sfs":
        assert problem.budget is not None and problem.alpha is not None
        value += problem.alpha[t] * max(0, np.count_nonzero(w) - problem.budget[t])
    return float(value)


def _over_budget(problem: CommonTerms, splits: Splits) -> int:
    if problem.model != "hfs":
        return 0
    assert problem.budget is not None
    return int(max(0, np.max(np.count_nonzero(splits.w, axis=1) - problem.budget)))


def _over_weight(problem: CommonTerms, splits: Splits) -> float:
    limit = getattr(problem, "max_weight", None)
    if limit is None:
        return 0.0
    excess = float(np.max(np.abs(splits.w))) - limit
    return excess if excess > TIE * limit else 0.0


def _read_only_copy(a: FloatArray, ndim: int) -> FloatArray:
    own = np.array(a, dtype=np.float64, order="C")
    if own.ndim != ndim:
        raise ValueError(f"expected {ndim} dimensions, got shape {own.shape}")
    own.setflags(write=False)
    return own
