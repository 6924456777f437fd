"""Trees in the normal form for which the derived constants hold, and the constants that a tree touches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.mip.constants import Constants
from margotree.engines.mip.model import FloatArray, IndexArray
from margotree.problem import Problem, Splits, evaluate, topology

#: A constant counts as binding from this share of it on.
_BINDS = 1.0 - 1e-6


def normalise(problem: Problem, splits: Splits) -> Splits:
    """The tree with the offsets of the normal form of :mod:`margotree.engines.mip.constants`.

    The routing is the same, and the objective is not larger.
    """
    node = evaluate(problem, splits).node
    w, b = splits.w.copy(), splits.b.copy()
    for t in range(problem.n_nodes):
        here = np.flatnonzero(np.isin(node, topology.last_below(t, problem.depth)))
        if t in topology.last(problem.depth):
            w[t], b[t] = _at_last(problem, w[t], b[t], here)
        else:
            w[t], b[t] = _at_upper(problem, w[t], b[t], here)
    return Splits(w=w, b=b)


def _at_upper(problem: Problem, w: FloatArray, b: float, here: IndexArray) -> tuple[FloatArray, float]:
    """The hyperplane of an upper node that the samples ``here`` reach, in normal form."""
    if not len(here):
        return np.zeros_like(w), 1.0
    h = problem.X[here] @ w + b
    if np.min(h) > 1.0:
        return w, b + 1.0 - np.min(h)
    lowest = -max(1.0, problem.eps)
    return (w, b + lowest - np.max(h)) if np.max(h) < lowest else (w, b)


def _at_last(problem: Problem, w: FloatArray, b: float, here: IndexArray) -> tuple[FloatArray, float]:
    """The hyperplane of a last-level node that the samples ``here`` reach, in normal form."""
    here = here[problem.weight[here] > 0]
    labels = np.unique(problem.y[here])
    if len(labels) < 2:
        return np.zeros_like(w), float(labels[0]) if len(labels) else 1.0
    y, weight = problem.y[here], problem.weight[here]
    h = problem.X[here] @ w + b
    to_kink = y - h
    up, down = to_kink[to_kink >= 0], to_kink[to_kink <= 0]
    steps = ([float(np.min(up))] if len(up) else []) + ([float(np.max(down))] if len(down) else [])
    costs = [float(weight @ np.maximum(0.0, 1.0 - y * (h + step))) for step in steps]
    return w, b + steps[int(np.argmin(costs))]


def binding(problem: Problem, constants: Constants, splits: Splits) -> list[str]:
    """Names of the constants that this tree, in normal form, touches or exceeds."""
    splits = normalise(problem, splits)
    node = evaluate(problem, splits).node
    h = (problem.X @ splits.w.T + splits.b).T
    passes, right, left = np.zeros((3, problem.n_nodes, problem.n_samples), dtype=bool)
    for t in range(problem.n_nodes):
        passes[t] = np.isin(node, topology.last_below(t, problem.depth))
        if t in topology.upper(problem.depth):
            right[t] = np.isin(node, topology.last_right(t, problem.depth))
            left[t] = np.isin(node, topology.last_left(t, problem.depth))
    upper = np.arange(problem.n_nodes)[:, None] < len(topology.upper(problem.depth))
    touched = {
        "M_xi": ~passes & (1.0 - problem.y * h >= _BINDS * constants.M_xi),
        "M_H": upper
        & ((~right & (-h >= _BINDS * constants.M_right)) | (~left & (h + problem.eps >= _BINDS * constants.M_left))),
        "M_w": _at_bound(problem, splits.w, constants.w_high) | _at_bound(problem, -splits.w, -constants.w_low),
    }
    return [name for name, where in touched.items() if np.any(where)]


def _at_bound(problem: Problem, w: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
    """Where a positive weight is at a bound of the formulation that is smaller than the problem's ``max_weight``."""
    max_weight = np.inf if problem.max_weight is None else problem.max_weight
    return (w > 0) & (w >= _BINDS * high) & (high < _BINDS * max_weight)
