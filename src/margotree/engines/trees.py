"""Trees that need no training, and what trees are worth to a search."""

from __future__ import annotations

import math

import numpy as np

from margotree.problem import Problem, Splits, evaluate


def trivial_tree(problem: Problem) -> Splits:
    """All samples go right and get the label of the heavier class."""
    w = np.zeros((problem.n_nodes, problem.n_features))
    b = np.ones(problem.n_nodes)
    if problem.weight @ problem.y < 0:
        b[-1] = -1.0
    return Splits(w=w, b=b)


def allowed_value(problem: Problem, tree: Splits) -> float:
    """Value of a tree, infinite if it is not allowed."""
    found = evaluate(problem, tree)
    return found.objective if found.feasible else math.inf
