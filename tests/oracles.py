"""Slow and obvious answers to compare engines with: brute force over all routings of a few samples.

The node problems are solved by a small interior point that shares nothing with the package's own kernel.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import combinations, product

import numpy as np
from scipy.linalg.lapack import dgetrf, dgetrs
from scipy.optimize import linprog

from margotree.problem import BINARY, Problem, topology
from margotree.problem.tasks import NO_CHOICE, Task, one_sided
from margotree.problem.tasks.binaries import NO_VARIABLES


def node_value(
    X: np.ndarray,
    y: np.ndarray,
    cost: np.ndarray,
    side: np.ndarray | None = None,
    *,
    corner: np.ndarray | None = None,
    eps: float = 1e-3,
    max_weight: float | None = None,
) -> float:
    """``min 1/2|w|^2 + sum cost_i max(0, corner_i - y_i h_i)``; ``h_i >= 0`` or ``<= -eps`` where ``side`` says so.

    The corners are 1 by default.  ``inf`` if no hyperplane obeys the rows.
    """
    n = X.shape[1]
    hard = np.flatnonzero(np.zeros(len(y)) if side is None else side)
    sign = np.zeros(0) if side is None else np.asarray(side)[hard].astype(float)
    soft = np.flatnonzero(cost)
    m, one = len(soft), np.ones((len(y), 1))
    margin = np.hstack([y[soft, None] * X[soft], y[soft, None], np.eye(m)])
    not_negative = np.hstack([np.zeros((m, n + 1)), np.eye(m)])
    routing = sign[:, None] * np.hstack([X[hard], one[hard], np.zeros((len(hard), m))])
    # a box on b, far out, keeps the set of minima bounded where only one class is left
    offset = np.eye(1, n + 1 + m, n)
    rows = [margin, not_negative, routing, offset, -offset]
    sides = [
        np.ones(m) if corner is None else corner[soft],
        np.zeros(m),
        np.where(sign > 0, 0.0, eps),
        np.full(2, -1e4),
    ]
    if max_weight is not None:
        box = np.eye(n, n + 1 + m)
        rows, sides = [*rows, box, -box], [*sides, np.full(2 * n, -max_weight)]
    G, g = np.vstack(rows), np.concatenate(sides)
    if len(hard) and max_weight is None:
        if not separable(X[hard][sign < 0], X[hard][sign > 0]):
            return math.inf
    elif len(hard) and not _has_point(G, g):
        return math.inf
    return convex_qp(np.repeat([1.0, 0.0], [n, 1 + m]), np.concatenate([np.zeros(n + 1), cost[soft]]), G, g)


def _has_point(G: np.ndarray, g: np.ndarray) -> bool:
    return bool(linprog(np.zeros(G.shape[1]), A_ub=-G, b_ub=-g, bounds=(None, None)).success)


def separable(left: np.ndarray, right: np.ndarray) -> bool:
    """Whether a hyperplane has the rows of ``right`` on one side and those of ``left`` strictly on the other."""
    if not len(left) or not len(right):
        return True
    if left.shape[1] == 1:
        return bool(left.max() < right.min() or right.max() < left.min())
    rows = np.vstack([np.hstack([right, np.ones((len(right), 1))]), -np.hstack([left, np.ones((len(left), 1))])])
    return _has_point(rows, np.repeat([0.0, 1.0], [len(right), len(left)]))


def convex_qp(P: np.ndarray, q: np.ndarray, G: np.ndarray, g: np.ndarray) -> float:
    """``min 1/2 sum P_j x_j^2 + q.x  s.t.  G x >= g``."""
    return solve_qp(P, q, G, g)[0]


def solve_qp(P: np.ndarray, q: np.ndarray, G: np.ndarray, g: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """Value, point and multipliers of `convex_qp`, by a textbook interior point, proved by its own dual value."""
    x, s, lam = np.zeros(len(q)), np.maximum(1.0, -g), np.full(len(g), 1.0 + np.max(q))
    K = np.block([[np.diag(P), -G.T], [G, np.zeros((len(g), len(g)))]])
    last = np.arange(len(q), len(K))
    for _ in range(200):
        dual_residual, primal_residual = P * x + q - G.T @ lam, G @ x - s - g
        primal = 0.5 * P @ x**2 + q @ x
        size = 1.0 + abs(primal)
        worst = max(np.abs(dual_residual).max(), np.abs(primal_residual).max())
        if s @ lam <= 1e-10 * size and worst <= 1e-9 * size:
            return float(primal), x, lam
        K[last, last] = s / lam
        factor = dgetrf(K)
        correction, target = np.zeros(len(s)), 0.0
        for phase in ("predict", "correct"):
            complement = s * lam + correction - target
            move = _solve(K, factor, -np.concatenate([dual_residual, primal_residual + complement / lam]))
            dx, dlam = move[: len(q)], move[len(q) :]
            ds = -(complement + s * dlam) / lam
            step = _to_the_wall(s, ds), _to_the_wall(lam, dlam)
            if phase == "predict":
                mu = s @ lam / len(s)
                after = (s + step[0] * ds) @ (lam + step[1] * dlam) / len(s)
                correction, target = ds * dlam, mu * (after / mu) ** 3
        length = 0.995 * min(step)
        x, s, lam = x + length * dx, s + length * ds, lam + length * dlam
    raise AssertionError(f"the oracle did not converge: gap {s @ lam}, residual {worst}")


def _solve(K: np.ndarray, factor: tuple[np.ndarray, np.ndarray, int], rhs: np.ndarray) -> np.ndarray:
    lu, pivots, singular = factor
    if singular:  # degenerate at the last step: any solution is good enough there
        return np.linalg.lstsq(K, rhs, rcond=None)[0]
    return dgetrs(lu, pivots, rhs)[0]


def _to_the_wall(v: np.ndarray, dv: np.ndarray) -> float:
    return 1.0 / max(1.0, (-dv / v).max())


def supports(n: int, budget: int | None, priced: bool) -> list[tuple[int, ...]]:
    """The supports worth trying: all features, those of a hard budget's size, or every set if excess is priced."""
    if budget is None:
        return [tuple(range(n))]
    sizes = range(budget, n + 1) if priced else [min(budget, n)]
    return [s for size in sizes for s in combinations(range(n), size)]


def choices(task: Task, last: bool) -> list[np.ndarray]:
    """All choices at a node, in one of two orientations."""
    if task.choice_variables(last=last) is NO_VARIABLES:
        return [NO_CHOICE]
    if last:
        return task.last_choices()
    sides = (np.array([-1, *others]) for others in product((-1, 1), repeat=task.n_classes - 1))
    return [one for one in sides if np.any(one > 0)]


def best_value(problem: Problem) -> float:
    """The optimal objective, by trying every routing (and every support) at every node.

    ``best(t, S)`` is the least cost of the subtree at ``t`` if exactly the samples ``S`` reach it.
    """
    upper = topology.upper(problem.depth)

    @cache
    def realisable(support: tuple[int, ...], left: frozenset[int], right: frozenset[int]) -> bool:
        rows = [problem.X[np.ix_(sorted(side), support)] for side in (left, right)]
        return separable(*rows)

    @cache
    def at_node(key: tuple[float, int | None, float, bool], S: frozenset[int], right: frozenset[int] | None) -> float:
        C, budget, alpha, last = key
        rows = np.array(sorted(S), dtype=int)
        side = None if right is None else np.array([1 if i in right else -1 for i in rows])
        if side is None and not last and problem.task.n_classes == 0:
            return 0.0  # losses there depend on the routing
        values = [math.inf]
        for choice in choices(problem.task, last):
            items = problem.task.items(problem.y[rows], last=last, side=side, choice=choice)
            sided = one_sided(items, C * problem.weight[rows])
            order = np.argsort(sided.rows, kind="stable")
            samples, label, corner, cost = rows[sided.rows[order]], *(part[order] for part in sided[1:])
            sides = None if side is None else side[sided.rows[order]]
            for chosen in supports(problem.n_groups, budget, problem.alpha is not None):
                support = tuple(np.flatnonzero(np.isin(problem.group_of, chosen)).tolist())
                if right is not None and not realisable(support, S - right, right):
                    continue
                extra = alpha * max(0, len(chosen) - budget) if budget is not None else 0.0
                points, terms = problem.X[np.ix_(samples, support)], {"eps": problem.eps, "corner": corner}
                values.append(extra + node_value(points, label, cost, sides, max_weight=problem.max_weight, **terms))
        return min(values)

    @cache
    def best(t: int, S: frozenset[int]) -> float:
        budget = None if problem.budget is None else int(problem.budget[t])
        alpha = 0.0 if problem.alpha is None else float(problem.alpha[t])
        key = (float(problem.C[t]), budget, alpha, t not in upper)
        if not S or (
            problem.task == BINARY and len({problem.y[i] for i in S}) == 1
        ):  # all go to the side of their label, which takes no weight
            return 0.0
        if t not in upper:
            return at_node(key, S, None)
        sides = [frozenset(c) for size in range(len(S) + 1) for c in combinations(sorted(S), size)]
        below = {right: best(topology.left(t), S - right) + best(topology.right(t), right) for right in sides}
        least, unrouted = math.inf, at_node(key, S, None)
        for right in sorted(sides, key=below.__getitem__):
            if below[right] + unrouted >= least:  # routing rows only make the node dearer
                break
            least = min(least, below[right] + at_node(key, S, right))
        return least

    return best(0, frozenset(range(problem.n_samples)))
