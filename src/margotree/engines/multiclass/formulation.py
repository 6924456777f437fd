"""The mixed-integer form of the problem for several classes, and the ways there and back (docs/mip.md).

Beside the variables of the two-class form there are ``side`` (upper node, class): 1 if the class wants to go right;
``first`` and ``second`` (last-level node, class): the labels of the left and of the right leaf; and slacks for lying
right and for lying left at the last level, where a sample of a third class pays both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from margotree.engines.mip.constants import SLACK, Constants, farthest_distances, intersect, largest_increases
from margotree.engines.mip.formulation import budget_rows, budget_variables, ends_below, routing_rows, tolerance
from margotree.engines.mip.model import Draft, FloatArray, IndexArray, MipModel
from margotree.problem import Problem, Splits, topology


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassFormulation:
    """A problem in MIP form; reads points of the model as routings with labels, and writes trees as points."""

    problem: Problem
    constants: Constants
    mip: MipModel

    def node(self, x: FloatArray) -> IndexArray:
        """The last-level node of every sample, by the binaries."""
        return topology.last(self.problem.depth)[0] + np.argmax(self.mip.part(x, "z"), axis=1).astype(np.int64)

    def sides(self, x: FloatArray) -> IndexArray:
        """The side that every class wants at every upper node."""
        return np.where(self.mip.part(x, "side") > 0.5, 1, -1).astype(np.int64)

    def labels(self, x: FloatArray) -> IndexArray:
        """The two labels of every last-level node."""
        both = [np.argmax(self.mip.part(x, name), axis=1) for name in ("first", "second")]
        return np.column_stack(both).astype(np.int64)

    def point(self, splits: Splits) -> FloatArray:
        """The point of the model that a tree stands for; feasible if the tree is allowed and the constants admit it."""
        p, blocks = self.problem, self.mip.blocks
        found = p.evaluate(splits)
        splits, labels = normalise(p, splits, found.node, found.choices.labels)
        x = np.zeros(self.mip.n_variables)
        x[blocks["w"]], x[blocks["b"]] = splits.w, splits.b
        x[blocks["z"]] = found.node[:, None] == np.array(topology.last(p.depth))
        x[blocks["side"]] = found.choices.sides > 0
        classes = np.arange(p.task.n_classes)
        x[blocks["first"]], x[blocks["second"]] = labels[:, :1] == classes, labels[:, 1:] == classes
        h = (p.X @ splits.w.T + splits.b).T
        for t in range(p.n_nodes):
            passes = np.isin(found.node, topology.last_below(t, p.depth))
            right, left = passes * np.maximum(0.0, 1.0 - h[t]), passes * np.maximum(0.0, 1.0 + h[t])
            if t < p.n_upper:
                x[blocks["xi"][t]] = np.where(found.choices.sides[t][p.y] > 0, right, left)
            else:
                a, b = labels[k := t - p.n_upper]
                x[blocks["right"][k]], x[blocks["left"][k]] = right * (p.y != a), left * (p.y != b)
        if p.budget is not None:
            x[blocks["s"]] = splits.w != 0
            if p.alpha is not None:
                x[blocks["u"]] = np.maximum(0, np.count_nonzero(splits.w, axis=1) - p.budget)
        return x


def class_constants(problem: Problem, upper: float) -> Constants:
    """Constants that some optimal tree obeys, given the value ``upper`` of a known one.

    As in :mod:`margotree.engines.mip.constants`, whose arguments need of a node only that samples pay hinges for the
    sides they should lie on.  No term is negative, so every ``|w|`` is at most ``sqrt(2 upper)``; at the last level
    also at most the diameter times the lesser sum of costs of one side, which is largest for the two lightest labels.
    """
    upper = upper + SLACK * (1.0 + abs(upper))
    far, zero = farthest_distances(problem.X), np.zeros(problem.n_features)
    mass = np.bincount(problem.y, weights=problem.weight, minlength=problem.task.n_classes)
    lesser = float(np.sum(mass) - np.sort(mass)[1])
    low, high = np.empty((2, problem.n_nodes, problem.n_features))
    h_low, h_high = np.empty((2, problem.n_nodes, problem.n_samples))
    b_low, b_high = np.empty((2, problem.n_nodes))
    norms = np.linalg.norm(problem.X, axis=1)
    for t in range(problem.n_nodes):
        balls, box = [(zero, math.sqrt(2.0 * upper))], np.full(problem.n_features, math.inf)
        if t >= problem.n_upper:
            pull = float(problem.C[t]) * lesser
            balls.append((zero, pull * float(np.max(far))))
            box = pull * np.ptp(problem.X, axis=0)
        reach = intersect(balls, box)
        low[t], high[t] = reach.low, reach.high
        up, down = largest_increases(problem.X, reach, far)
        h_low[t], h_high[t] = -max(1.0, problem.eps) - down, 1.0 + up
        b_low[t] = np.max(h_low[t] - reach.radius * norms)
        b_high[t] = np.min(h_high[t] + reach.radius * norms)
    most = 1.0 + np.maximum(-h_low, h_high)
    return Constants(
        w_low=low, w_high=high, b_low=b_low, b_high=b_high, xi_high=most, M_xi=most, M_right=-h_low,
        M_left=h_high + problem.eps,
    )  # fmt: skip


def formulate_classes(problem: Problem, constants: Constants, *, size: float = 1.0) -> ClassFormulation:
    """The model of a problem with the given constants; ``size`` is the value of a known tree."""
    draft = Draft()
    _variables(draft, problem, constants)
    for t in range(problem.n_nodes):
        if t < problem.n_upper:
            _upper_rows(draft, problem, constants, t)
            routing_rows(draft, problem, constants, t)
        else:
            _last_rows(draft, problem, constants, t)
    if problem.budget is not None:
        budget_variables(draft, problem)
        budget_rows(draft, problem, constants)
    mip = draft.finish(tolerance=tolerance(problem, constants), size=size)
    return ClassFormulation(problem=problem, constants=constants, mip=mip)


def _variables(draft: Draft, problem: Problem, constants: Constants) -> None:
    p, upper, last = problem, problem.n_upper, problem.n_last
    draft.block("w", (p.n_nodes, p.n_features), lower=constants.w_low, upper=constants.w_high, quadratic=1.0)
    draft.block("b", p.n_nodes, lower=constants.b_low, upper=constants.b_high)
    z = draft.block("z", (p.n_samples, last), lower=0.0, upper=1.0, integer=True)
    draft.rows([(z, 1.0)], lower=1.0, upper=1.0)
    cost = p.C[:, None] * p.weight
    draft.block("xi", (upper, p.n_samples), lower=0.0, upper=constants.xi_high[:upper], linear=cost[:upper])
    for name in ("right", "left"):
        draft.block(name, (last, p.n_samples), lower=0.0, upper=constants.xi_high[upper:], linear=cost[upper:])
    # The first class wants to go left: of two mirror images one is enough.
    most = np.broadcast_to(np.arange(p.task.n_classes) > 0, (upper, p.task.n_classes)).astype(np.float64)
    side = draft.block("side", (upper, p.task.n_classes), lower=0.0, upper=most, integer=True)
    if upper:
        draft.rows([(side, 1.0)], lower=1.0)
    first, second = (
        draft.block(name, (last, p.task.n_classes), lower=0.0, upper=1.0, integer=True) for name in ("first", "second")
    )
    for labels in (first, second):
        draft.rows([(labels, 1.0)], lower=1.0, upper=1.0)
    # Likewise for the two labels of a node, which are in the order of the classes.
    order = np.arange(p.task.n_classes, dtype=np.float64)
    draft.rows([(second, order), (first, -order)], lower=1.0)


def _upper_rows(draft: Draft, problem: Problem, constants: Constants, t: int) -> None:
    """``xi >= 1 - h`` for classes that want to go right and ``xi >= 1 + h`` for the others, if a sample passes ``t``;
    and, whatever the constants are, at least 1 (or ``1 + eps``) for samples on the side that they do not want."""
    p, w, b = problem, draft.blocks["w"][t], draft.blocks["b"][t]
    xi, side = draft.blocks["xi"][t][:, None], draft.blocks["side"][t][p.y][:, None]
    here = ends_below(draft, p, topology.last_below(t, p.depth))
    M = 1.0 + constants.M_right[t][:, None]
    N = 1.0 + constants.M_left[t][:, None] - p.eps
    if t == 0:  # everybody passes the root
        draft.rows([(w, p.X), (b, 1.0), (xi, 1.0), (side, -M)], lower=1.0 - M[:, 0])
        draft.rows([(w, -p.X), (b, -1.0), (xi, 1.0), (side, N)], lower=1.0)
    else:
        draft.rows([(w, p.X), (b, 1.0), (xi, 1.0), (side, -M), (here, -M)], lower=1.0 - 2.0 * M[:, 0])
        draft.rows([(w, -p.X), (b, -1.0), (xi, 1.0), (side, N), (here, -N)], lower=1.0 - N[:, 0])
    right = ends_below(draft, p, topology.last_right(t, p.depth))
    left = ends_below(draft, p, topology.last_left(t, p.depth))
    draft.rows([(xi, 1.0), (side, 1.0), (right, -1.0)], lower=0.0)
    draft.rows([(xi, 1.0), (side, -1.0 - p.eps), (left, -1.0 - p.eps)], lower=-1.0 - p.eps)


def _last_rows(draft: Draft, problem: Problem, constants: Constants, t: int) -> None:
    """``right >= 1 - h`` unless the left label is the sample's, ``left >= 1 + h`` unless the right one is, if it passes
    ``t``; together at least 2 for a third class, whatever the constants are."""
    p, k = problem, t - problem.n_upper
    w, b = draft.blocks["w"][t], draft.blocks["b"][t]
    right, left = draft.blocks["right"][k][:, None], draft.blocks["left"][k][:, None]
    first, second = draft.blocks["first"][k][p.y][:, None], draft.blocks["second"][k][p.y][:, None]
    here = ends_below(draft, p, range(t, t + 1))
    M = 1.0 + constants.M_right[t][:, None]
    N = 1.0 + constants.M_left[t][:, None] - p.eps
    draft.rows([(w, p.X), (b, 1.0), (right, 1.0), (first, M), (here, -M)], lower=1.0 - M[:, 0])
    draft.rows([(w, -p.X), (b, -1.0), (left, 1.0), (second, N), (here, -N)], lower=1.0 - N[:, 0])
    draft.rows([(right, 1.0), (left, 1.0), (first, 2.0), (second, 2.0), (here, -2.0)], lower=0.0)


def normalise(problem: Problem, splits: Splits, node: IndexArray, labels: IndexArray) -> tuple[Splits, IndexArray]:
    """The same tree with the offsets that the constants speak about, and labels in the order of the classes."""
    w, b, labels = splits.w.copy(), splits.b.copy(), labels.copy()
    for t in range(problem.n_nodes):
        here = np.flatnonzero(np.isin(node, topology.last_below(t, problem.depth)))
        if t >= problem.n_upper:
            pair = labels[t - problem.n_upper]
            if pair[0] > pair[1]:
                w[t], b[t], labels[t - problem.n_upper] = -w[t], -b[t], pair[::-1]
            w[t], b[t] = _at_last(problem, w[t], float(b[t]), here, labels[t - problem.n_upper])
        elif not len(here):
            w[t], b[t] = 0.0, 1.0
        else:
            h, lowest = problem.X[here] @ w[t] + b[t], -max(1.0, problem.eps)
            b[t] += min(0.0, 1.0 - float(np.min(h))) + max(0.0, lowest - float(np.max(h)))
    return Splits(w=w, b=b), labels


def _at_last(problem: Problem, w: FloatArray, b: float, here: IndexArray, pair: IndexArray) -> tuple[FloatArray, float]:
    """The offset at the nearest kink of the cost, either way, that costs less."""
    here = here[problem.weight[here] > 0]
    code, weight = problem.y[here], problem.weight[here]
    plus, minus = code != pair[0], code != pair[1]
    if not np.any(plus) or not np.any(minus):
        return np.zeros_like(w), -1.0 if np.any(minus) else 1.0
    h = problem.X[here] @ w + b
    to_kink = np.concatenate([1.0 - h[plus], -1.0 - h[minus]])
    up, down = to_kink[to_kink >= 0], to_kink[to_kink <= 0]
    steps = ([float(np.min(up))] if len(up) else []) + ([float(np.max(down))] if len(down) else [])

    def cost(step: float) -> float:
        lacks = plus * np.maximum(0.0, 1.0 - h - step) + minus * np.maximum(0.0, 1.0 + h + step)
        return float(weight @ lacks)

    return w, b + min(steps, key=cost)
