"""Trees in the normal form for which the derived constants hold, and the constants that a tree touches."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.mip.constants import Constants, upper_range
from margotree.engines.mip.losses import LevelLosses, Losses, active_rows
from margotree.engines.mip.model import FloatArray, IndexArray
from margotree.problem import Choices, Problem, Splits, evaluate, topology
from margotree.problem.tasks import one_sided

#: A constant counts as binding from this share of it on.
_BINDS = 1.0 - 1e-6


def normalise(problem: Problem, splits: Splits) -> tuple[Splits, Choices]:
    """The tree with the offsets of the normal form of :mod:`margotree.engines.mip.constants`, and its choices.

    The routing is the same, and the objective is not larger.  Where the model allows one of two choices that exchange
    the leaves of a last-level node, it is that one.
    """
    found, losses = evaluate(problem, splits), Losses.of(problem)
    w, b = splits.w.copy(), splits.b.copy()
    choices = problem.task.initial_choices(problem.n_upper, problem.n_last)
    for t in range(problem.n_nodes):
        here = np.flatnonzero(np.isin(found.node, topology.last_below(t, problem.depth)))
        choice = found.choices.at(t)
        if t in topology.last(problem.depth):
            if problem.choices is None:
                choice, is_reversed = problem.task.allowed_last_choice(choice)
                w[t], b[t] = (-w[t], -b[t]) if is_reversed else (w[t], b[t])
            w[t], b[t] = _at_last(problem, losses.last, w[t], b[t], here, choice)
        else:
            w[t], b[t] = _at_upper(problem, losses.upper, w[t], b[t], here)
        choices.at(t)[:] = choice
    return Splits(w=w, b=b), choices


def _at_upper(
    problem: Problem, losses: LevelLosses, w: FloatArray, b: float, here: IndexArray
) -> tuple[FloatArray, float]:
    """The hyperplane of an upper node that the samples ``here`` reach, in normal form."""
    lowest, highest = upper_range(losses, problem.eps)
    if not len(here):
        return np.zeros_like(w), highest
    h = problem.X[here] @ w + b
    if np.min(h) > highest:
        return w, b + highest - np.min(h)
    return (w, b + lowest - np.max(h)) if np.max(h) < lowest else (w, b)


def _at_last(
    problem: Problem, losses: LevelLosses, w: FloatArray, b: float, here: IndexArray, choice: IndexArray
) -> tuple[FloatArray, float]:
    """The hyperplane of a last-level node that the samples ``here`` reach, in normal form."""
    here = here[problem.weight[here] > 0]
    items = problem.task.items(problem.y[here], last=True, choice=choice)
    sided = one_sided(items, problem.weight[here])
    corner = sided.label * sided.corner
    if not len(corner):
        # A sample at its corner, whether it reaches the node or not.
        return np.zeros_like(w), float((losses.label * losses.corner)[0]) if len(losses.rows) else 0.0
    if np.all(sided.label > 0):
        return np.zeros_like(w), float(np.max(corner))
    if np.all(sided.label < 0):
        return np.zeros_like(w), float(np.min(corner))
    h = problem.X[here] @ w + b
    to_kink = corner - h[sided.rows]
    up, down = to_kink[to_kink >= 0], to_kink[to_kink <= 0]
    steps = ([float(np.min(up))] if len(up) else []) + ([float(np.max(down))] if len(down) else [])
    costs = [float(problem.weight[here] @ items.loss(h + step)) for step in steps]
    return w, b + steps[int(np.argmin(costs))]


def binding(problem: Problem, constants: Constants, splits: Splits) -> list[str]:
    """Names of the constants that this tree, in normal form, touches or exceeds."""
    splits, choices = normalise(problem, splits)
    node, losses = evaluate(problem, splits).node, Losses.of(problem)
    h = (problem.X @ splits.w.T + splits.b).T
    at_M_xi, at_M_H = False, False
    for t in range(problem.n_nodes):
        level = losses.at(t)
        M = np.where(level.label > 0, constants.M_below[t, level.rows], constants.M_above[t, level.rows])
        violation = level.ratio * (level.corner - level.label * h[t, level.rows])
        active = active_rows(problem, level, t, node, choices.at(t))
        at_M_xi |= bool(np.any(~active & (violation >= _BINDS * M)))
        if t in topology.upper(problem.depth):
            right = np.isin(node, topology.last_right(t, problem.depth))
            left = np.isin(node, topology.last_left(t, problem.depth))
            at_M_H |= bool(np.any(~right & (-h[t] >= _BINDS * constants.M_right[t])))
            at_M_H |= bool(np.any(~left & (h[t] + problem.eps >= _BINDS * constants.M_left[t])))
    at_M_w = _at_bound(problem, splits.w, constants.w_high) | _at_bound(problem, -splits.w, -constants.w_low)
    touched = {"M_xi": at_M_xi, "M_H": at_M_H, "M_w": bool(np.any(at_M_w))}
    return [name for name, touches in touched.items() if touches]


def _at_bound(problem: Problem, w: FloatArray, high: FloatArray) -> NDArray[np.bool_]:
    """Where a positive weight is at a bound of the formulation that is smaller than the problem's ``max_weight``."""
    max_weight = np.inf if problem.max_weight is None else problem.max_weight
    return (w > 0) & (w >= _BINDS * high) & (high < _BINDS * max_weight)
