"""Moving the hyperplane of an upper node so that no training sample lies in its routing band.

A sample must not lie in the open band ``-eps < h < 0`` of an upper node that it reaches.  Training a node on its own
ignores this; here its hyperplane is moved as little as necessary.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from margotree.engines.node.svm import LARGE, solve_node
from margotree.engines.run_control import RunControl
from margotree.engines.trivial_trees import one_side
from margotree.problem import Problem, routing
from margotree.problem.blocks import decision_values
from margotree.problem.problem import FloatArray

#: All sides of the samples in the band are enumerated up to this number of samples; beyond, some heuristic choices.
_ENUMERATED = 3
#: A moved hyperplane may have other samples in its band; they get sides, too, up to this number of times.
_ROUNDS = 20
#: Inner margins that are tried one after the other, against rounding.
_INNER = (0.0, 1e-9, 1e-7)

Hyperplane = tuple[FloatArray, float]


def right_of(problem: Problem, w: FloatArray, b: float, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which samples the node sends right: those with ``h >= 0``, up to rounding."""
    return routing.goes_right(decision_values(problem.X, rows, w, b), b, problem.eps)


def in_band(problem: Problem, w: FloatArray, b: float, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which samples lie in the forbidden band, up to rounding."""
    return routing.in_band(decision_values(problem.X, rows, w, b), b, problem.eps)


def leave_band(
    problem: Problem,
    t: int,
    rows: NDArray[np.int64],
    w: FloatArray,
    b: float,
    control: RunControl | None = None,
    label: FloatArray | None = None,
) -> Hyperplane:
    """A hyperplane on the same features with no sample of ``rows`` in its band; the given one if it has none.

    ``label`` are the sides, -1 or +1, on which the samples have no loss; by default the two classes of the problem.

    The samples in the band get hard rows for one side and the node is solved again, for several choices of sides; the
    hyperplane with the smallest cost is returned.  A shift of ``b`` alone is always possible; it is the only choice for
    many samples or when ``control`` runs out.
    """
    clock = control or RunControl()
    y = problem.y[rows] if label is None else label
    inside = np.flatnonzero(in_band(problem, w, b, rows))
    if not len(inside):
        return w, b
    hyperplanes = [_shift_offset(problem, rows, y, w, b)]
    if len(rows) > LARGE:
        hyperplanes += [(np.zeros_like(w), one_side(problem.eps, right)) for right in (True, False)]
    # Without features only the offset can move; with many samples a rotated hyperplane has others in its band.
    for sides in _side_choices(problem, rows, y, w, b, inside) if np.any(w) and len(rows) <= LARGE else []:
        hyperplane = _solve_with_sides(problem, t, rows, y, w, sides, clock)
        if hyperplane is not None:
            hyperplanes.append(hyperplane)
    return min(hyperplanes, key=lambda hyperplane: _cost(problem, t, rows, y, *hyperplane))


def _side_choices(
    problem: Problem, rows: NDArray[np.int64], y: FloatArray, w: FloatArray, b: float, inside: NDArray[np.int64]
) -> list[NDArray[np.int8]]:
    """Sides of the samples in the band: all combinations for few, else all right, left, by label, or nearest."""
    if len(inside) <= _ENUMERATED:
        choices = [np.array(c) for c in itertools.product((1, -1), repeat=len(inside))]
    else:
        h = problem.X[rows[inside]] @ w + b
        ones = np.ones(len(inside))
        choices = [ones, -ones, y[inside], np.where(h >= -problem.eps / 2, 1, -1)]
    choices_of_sides = []
    for choice in choices:
        sides = np.zeros(len(rows), np.int8)
        sides[inside] = choice
        choices_of_sides.append(sides)
    return choices_of_sides


def _solve_with_sides(
    problem: Problem,
    t: int,
    rows: NDArray[np.int64],
    y: FloatArray,
    w: FloatArray,
    sides: NDArray[np.int8],
    control: RunControl,
) -> Hyperplane | None:
    """Solve the node with these sides on the features of ``w``; further samples in the band go to the nearest side."""
    for _ in range(_ROUNDS):
        hyperplane = None if control.over else _solve(problem, t, rows, y, w != 0, sides, control)
        if hyperplane is None:
            return None
        inside = np.flatnonzero(in_band(problem, *hyperplane, rows))
        if not len(inside):
            return hyperplane
        h = problem.X[rows[inside]] @ hyperplane[0] + hyperplane[1]
        sides = sides.copy()
        sides[inside] = np.where(h >= -problem.eps / 2, 1, -1)
    return None


def _solve(
    problem: Problem,
    t: int,
    rows: NDArray[np.int64],
    y: FloatArray,
    used: NDArray[np.bool_],
    sides: NDArray[np.int8],
    control: RunControl,
) -> Hyperplane | None:
    """Solve the node with these hard rows on the ``used`` features; None if it is infeasible."""
    columns = np.flatnonzero(used)
    for inner in _INNER:
        found = solve_node(
            problem.X[np.ix_(rows, columns)],
            y,
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


def _shift_offset(problem: Problem, rows: NDArray[np.int64], y: FloatArray, w: FloatArray, b: float) -> Hyperplane:
    """The best shift of ``b`` that empties the band: some sample has h = 0, and none lies in the ``eps`` below it."""
    h = decision_values(problem.X, rows, w, b)
    levels = np.unique(h)
    clear = np.concatenate([[True], np.diff(levels) >= problem.eps])
    # Shift up until the lower end of a gap leaves the band, or down until its upper end does.
    shifts = np.concatenate([-levels[clear], -problem.eps - levels[np.append(clear[1:], True)]])
    cost = _losses_after_shifts(y * h, y, problem.weight[rows], shifts)
    hyperplanes = ((w, b + float(shifts[k])) for k in np.argsort(cost, kind="stable"))
    return next(hyperplane for hyperplane in hyperplanes if not np.any(in_band(problem, *hyperplane, rows)))


def _losses_after_shifts(margin: FloatArray, y: FloatArray, weight: FloatArray, shifts: FloatArray) -> FloatArray:
    """The sum of the hinge losses after each shift of ``b``, from cumulative sums over sorted margins."""
    total = np.zeros(len(shifts))
    for sign in (1.0, -1.0):
        order = np.argsort(margin[y == sign], kind="stable")
        m, weights = margin[y == sign][order], weight[y == sign][order]
        mass, moment = np.cumsum(np.append(0.0, weights)), np.cumsum(np.append(0.0, weights * m))
        count = np.searchsorted(m, 1.0 - sign * shifts)
        total += mass[count] * (1.0 - sign * shifts) - moment[count]
    return total


def _cost(problem: Problem, t: int, rows: NDArray[np.int64], y: FloatArray, w: FloatArray, b: float) -> float:
    """The node's part of the objective."""
    hinge = np.maximum(0.0, 1.0 - y * decision_values(problem.X, rows, w, b))
    return 0.5 * float(w @ w) + float(problem.C[t] * (problem.weight[rows] @ hinge))
