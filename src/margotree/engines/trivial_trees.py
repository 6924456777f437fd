"""Trees that need no training, and the objective of a tree for a search."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from margotree.problem import Problem, Splits, evaluate, topology


def trivial_tree(problem: Problem) -> Splits:
    """The best tree without splits: it sends all samples to one side, and there all have one label."""
    w = np.zeros((problem.n_nodes, problem.n_features))
    trees = [Splits(w=w, b=constant_offsets(problem.depth, problem.eps, right)) for right in (True, False)]
    return min(trees, key=lambda tree: evaluate(problem, tree).objective)


def constant_offsets(depth: int, eps: float, right: bool) -> NDArray[np.float64]:
    """Offsets that send all samples right, or all left and outside the bands."""
    b = np.full(topology.n_nodes(depth), one_side(0.0, right))
    b[: len(topology.upper(depth))] = one_side(eps, right)
    return b


def one_side(eps: float, right: bool) -> float:
    """The offset that puts all samples on the right, or on the left and outside the band, without margin violations."""
    return 1.0 if right else -max(1.0, eps)


def allowed_value(problem: Problem, tree: Splits) -> float:
    """The objective of a tree, infinite if it is not allowed."""
    found = evaluate(problem, tree)
    return found.objective if found.feasible else math.inf
