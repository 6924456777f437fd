"""Getting training samples out of the routing band of an upper node.

A sample may not lie in the open band ``-eps < h < 0`` of an upper node that it reaches.  A node trained by itself knows
nothing of this; here its hyperplane is moved as little as is needed.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.svm import LARGE, solve_node
from margotree.engines.run_control import RunControl
from margotree.engines.trivial_trees import one_side
from margotree.problem import Problem, tie
from margotree.problem.blocks import heights
from margotree.problem.problem import FloatArray

#: All ways to place so many samples of the band are tried; beyond, some sensible ones.
_ALL_WAYS = 3
#: A moved hyperplane may catch other samples; so often they are placed too.
_ROUNDS = 20
#: Inner margins tried in turn against rounding.
_INNER = (0.0, 1e-9, 1e-7)

Plane = tuple[FloatArray, float]


def right_of(problem: Problem, w: FloatArray, b: float, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which samples the node sends right: those with ``h >= 0``, up to rounding."""
    goes_right: NDArray[np.bool_] = heights(problem.X, rows, w, b) >= -tie(b, problem.eps)
    return goes_right


def in_band(problem: Problem, w: FloatArray, b: float, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which samples lie in the forbidden band, up to rounding."""
    h = heights(problem.X, rows, w, b)
    slack = tie(b, problem.eps)
    inside: NDArray[np.bool_] = (h < -slack) & (h > slack - problem.eps)
    return inside


def leave_band(
    problem: Problem, t: int, rows: NDArray[np.int64], w: FloatArray, b: float, control: RunControl | None = None
) -> Plane:
    """A hyperplane on the same features with no sample of ``rows`` in its band; the given one if it has none.

    The samples in the band are placed left or right by hard rows and the node is solved again, in several ways; the
    cheapest is taken.  Shifting ``b`` alone always works and is the last resort, and the only one for many samples or
    when ``control`` runs out.
    """
    clock = control or RunControl()
    caught = np.flatnonzero(in_band(problem, w, b, rows))
    if not len(caught):
        return w, b
    planes = [_shifted(problem, t, rows, w, b)]
    if len(rows) > LARGE:
        planes += [(np.zeros_like(w), one_side(problem.eps, right)) for right in (True, False)]
    # Without features there is nothing but the offset to move; among many samples a turned hyperplane catches others.
    for sides in _ways(problem, rows, w, b, caught) if np.any(w) and len(rows) <= LARGE else []:
        plane = _placed(problem, t, rows, w, sides, clock)
        if plane is not None:
            planes.append(plane)
    return min(planes, key=lambda plane: _cost(problem, t, rows, *plane))


def _ways(
    problem: Problem, rows: NDArray[np.int64], w: FloatArray, b: float, caught: NDArray[np.int64]
) -> list[NDArray[np.int8]]:
    """Ways to place the caught samples: all if they are few, else all right, all left, by label, or where nearest."""
    if len(caught) <= _ALL_WAYS:
        choices = [np.array(c) for c in itertools.product((1, -1), repeat=len(caught))]
    else:
        h = problem.X[rows[caught]] @ w + b
        ones = np.ones(len(caught))
        choices = [ones, -ones, problem.y[rows[caught]], np.where(h >= -problem.eps / 2, 1, -1)]
    ways = []
    for choice in choices:
        sides = np.zeros(len(rows), np.int8)
        sides[caught] = choice
        ways.append(sides)
    return ways


def _placed(
    problem: Problem, t: int, rows: NDArray[np.int64], w: FloatArray, sides: NDArray[np.int8], control: RunControl
) -> Plane | None:
    """Solve the node with these sides on the features of ``w``; samples caught anew go where they are nearest."""
    for _ in range(_ROUNDS):
        plane = None if control.over else _solve(problem, t, rows, w != 0, sides, control)
        if plane is None:
            return None
        caught = np.flatnonzero(in_band(problem, *plane, rows))
        if not len(caught):
            return plane
        h = problem.X[rows[caught]] @ plane[0] + plane[1]
        sides = sides.copy()
        sides[caught] = np.where(h >= -problem.eps / 2, 1, -1)
    return None


def _solve(
    problem: Problem,
    t: int,
    rows: NDArray[np.int64],
    used: NDArray[np.bool_],
    sides: NDArray[np.int8],
    control: RunControl,
) -> Plane | None:
    columns = np.flatnonzero(used)
    for inner in _INNER:
        found = solve_node(
            problem.X[np.ix_(rows, columns)],
            problem.y[rows],
            problem.C[t] * problem.weight[rows],
            side=sides,
            eps=problem.eps,
            inner=inner,
            max_weight=problem.max_weight,
            time_limit=control.remaining,
        )
        if not found.feasible:
            return None
        w = np.zeros(problem.n_features)
        w[columns] = found.w
        if not np.any(in_band(problem, w, found.b, rows[sides != 0])):
            return w, found.b
    return None


def _shifted(problem: Problem, t: int, rows: NDArray[np.int64], w: FloatArray, b: float) -> Plane:
    """The cheapest shift of ``b`` that empties the band: some sample lands on 0 with a gap of ``eps`` below it."""
    h = heights(problem.X, rows, w, b)
    levels = np.unique(h)
    clear = np.concatenate([[True], np.diff(levels) >= problem.eps])
    # Up until the lower end of a gap leaves the band, or down until its upper end does.
    shifts = np.concatenate([-levels[clear], -problem.eps - levels[np.append(clear[1:], True)]])
    cost = _hinges(problem.y[rows] * h, problem.y[rows], problem.weight[rows], shifts)
    planes = ((w, b + float(shifts[k])) for k in np.argsort(cost, kind="stable"))
    return next(plane for plane in planes if not np.any(in_band(problem, *plane, rows)))


def _hinges(margin: FloatArray, y: FloatArray, weight: FloatArray, shifts: FloatArray) -> FloatArray:
    """What all hinges cost together after each of the shifts of ``b``: sums over sorted margins, not over samples."""
    total = np.zeros(len(shifts))
    for sign in (1.0, -1.0):
        order = np.argsort(margin[y == sign], kind="stable")
        m, weights = margin[y == sign][order], weight[y == sign][order]
        mass, moment = np.cumsum(np.append(0.0, weights)), np.cumsum(np.append(0.0, weights * m))
        count = np.searchsorted(m, 1.0 - sign * shifts)
        total += mass[count] * (1.0 - sign * shifts) - moment[count]
    return total


def _cost(problem: Problem, t: int, rows: NDArray[np.int64], w: FloatArray, b: float) -> float:
    hinge = np.maximum(0.0, 1.0 - problem.y[rows] * heights(problem.X, rows, w, b))
    return 0.5 * float(w @ w) + float(problem.C[t] * (problem.weight[rows] @ hinge))
