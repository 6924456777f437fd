"""The single source of truth: what a given tree is worth, and whether it is allowed.

Written in the slowest and plainest way on purpose.  Every engine's answer is passed through
:func:`evaluate` before anybody sees it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from margotree.problem import topology
from margotree.problem.blocks import FloatArray, heights

#: What the samples that reach a node lack there: (node, h, samples) to the sum of their hinges, without ``C``.
Hinges = Callable[[int, FloatArray, NDArray[np.int64]], float]

#: Rounding allowed on ``h``, relative to ``1 + |b|``.  A sample with ``h >= -tie`` lies on the right.
#: Units of the features do not enter: a sample near the hyperplane has ``|w.x|`` near ``|b|``.
TIE = 1e-9


class Common(Protocol):
    """What the value of a tree depends on for any number of classes, labels apart."""

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


class Terms(Common, Protocol):
    """The same for two classes; see :class:`~margotree.problem.Problem`, which has it all."""

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
        object.__setattr__(self, "w", _own(self.w, 2))
        object.__setattr__(self, "b", _own(self.b, 1))
        if len(self.w) != len(self.b):
            raise ValueError(f"{len(self.w)} weight rows but {len(self.b)} offsets")
        # NaN compares as "not worse" everywhere below, so it must not get in.
        if not (np.all(np.isfinite(self.w)) and np.all(np.isfinite(self.b))):
            raise ValueError("weights and offsets of a tree must be finite numbers")


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """What :func:`evaluate` found.

    ``band`` is how deep the worst sample lies inside the forbidden band of an upper node it reaches,
    ``over_budget`` the largest excess of features (HFS), ``over_weight`` the largest excess of ``|w_tj|`` over
    ``max_weight``; all are 0 for an allowed tree.  ``node[i]`` is the last-level node that sample ``i`` reaches.
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
        """Why the tree is not allowed; empty if it is."""
        reasons = []
        if self.band:
            reasons.append(f"a training sample lies {self.band:.3g} deep inside the routing band of an upper node")
        if self.over_budget:
            reasons.append(f"a node uses {self.over_budget} features more than its budget")
        if self.over_weight:
            reasons.append(f"a weight exceeds max_weight by {self.over_weight:.3g}")
        return reasons


def tie(b: float, eps: float = np.inf) -> float:
    """The rounding allowed on ``h`` at a node: :data:`TIE`, scaled by the node, at most a quarter of ``eps``."""
    return float(min(TIE * (1.0 + abs(b)), eps / 4))


def evaluate(problem: Terms, splits: Splits) -> Evaluation:
    """Value and feasibility of a tree, recomputed from its hyperplanes alone."""

    def hinges(t: int, h: FloatArray, reached: NDArray[np.int64]) -> float:
        return float(problem.weight[reached] @ np.maximum(0.0, 1.0 - problem.y[reached] * h))

    return evaluate_routing(problem, splits, hinges)


def evaluate_routing(problem: Common, splits: Splits, hinges: Hinges) -> Evaluation:
    """The same for any labels: ``hinges(t, h, reached)`` is what the samples that reach a node lack there."""
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
        h = heights(problem.X, reached, splits.w[t], splits.b[t])
        values[t] = _node_value(problem, t, splits.w[t], hinges(t, h, reached))
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


def _node_value(problem: Common, t: int, w: FloatArray, hinges: float) -> float:
    value = 0.5 * float(w @ w) + problem.C[t] * hinges
    if problem.model == "sfs":
        assert problem.budget is not None and problem.alpha is not None
        value += problem.alpha[t] * max(0, np.count_nonzero(w) - problem.budget[t])
    return float(value)


def _over_budget(problem: Common, splits: Splits) -> int:
    if problem.model != "hfs":
        return 0
    assert problem.budget is not None
    return int(max(0, np.max(np.count_nonzero(splits.w, axis=1) - problem.budget)))


def _over_weight(problem: Common, splits: Splits) -> float:
    limit = getattr(problem, "max_weight", None)
    if limit is None:
        return 0.0
    excess = float(np.max(np.abs(splits.w))) - limit
    return excess if excess > TIE * limit else 0.0


def _own(a: FloatArray, ndim: int) -> FloatArray:
    own = np.array(a, dtype=np.float64, order="C")
    if own.ndim != ndim:
        raise ValueError(f"expected {ndim} dimensions, got shape {own.shape}")
    own.setflags(write=False)
    return own
