"""Trees that need no training, and what trees are worth to a search."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from margotree.problem import Problem, Splits, evaluate, topology


def trivial_tree(problem: Problem) -> Splits:
    """All samples go to the side of the heavier class and get its label."""
    w = np.zeros((problem.n_nodes, problem.n_features))
    return Splits(w=w, b=constant_offsets(problem.depth, problem.eps, bool(problem.weight @ problem.y >= 0)))


def constant_offsets(depth: int, eps: float, right: bool) -> NDArray[np.float64]:
    """Offsets that send all samples right, or all left and out of the bands."""
    b = np.full(topology.n_nodes(depth), one_side(0.0, right))
    b[: len(topology.upper(depth))] = one_side(eps, right)
    return b


def one_side(eps: float, right: bool) -> float:
    """The offset at which all samples lie right, or left and out of the band, with their margins."""
    return 1.0 if right else -max(1.0, eps)


def allowed_value(problem: Problem, tree: Splits) -> float:
    """Value of a tree, infinite if it is not allowed."""
    found = evaluate(problem, tree)
    return found.objective if found.feasible else math.inf
