"""Brute force for numeric targets: all routings, all supports, and a quadratic program of Clarabel for every node."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy import sparse

from extras import optional
from margotree.problem import Problem, Regression, topology

clarabel = optional("clarabel")


def instance(seed: int, kind: type[Regression] = Regression) -> Problem:
    """A small problem with targets from 1e-6 to 1e9, of depth 1 to 3, with weights, budgets and penalties in some.

    ``kind`` is the task: with linear or with squared losses.
    """
    rng = np.random.default_rng(seed)
    depth = 1 + seed % 3
    n, p = int(rng.integers(2, (9, 7, 4)[depth - 1] + 1)), int(rng.integers(1, 4))
    X = rng.integers(0, 5, (n, p)) / 4.0 if rng.random() < 0.4 else rng.normal(size=(n, p))
    y = rng.normal(size=n).round(int(rng.integers(0, 3)))
    spread = max(1.0, float(np.abs(y).max()))
    unit = 10.0 ** rng.integers(-6, 10)
    n_upper, n_nodes = 2 ** (depth - 1) - 1, 2**depth - 1
    terms: dict[str, object] = {}
    model = ("margot", "hfs", "sfs")[int(rng.integers(3))]
    if model != "margot":
        # The budgets of formulas may be 0: constant leaves.
        budget = np.concatenate([rng.integers(1, p + 1, n_upper), rng.integers(0, p + 1, n_nodes - n_upper)])
        terms["budget"] = budget.tolist() if depth > 1 else int(budget[0])
    if model == "sfs":
        terms["alpha"] = float(rng.uniform(0.05, 1.0))
    return Problem.make(
        X, y * unit, task=kind(float(rng.choice([0.0, 0.1, 2.0])) * spread * unit), depth=depth,
        C=10.0 ** rng.uniform(-2, 1.5, n_nodes), weight=rng.choice([1.0, 0.3, 2.5], n),
        eps=float(10.0 ** rng.uniform(-4, 0.5)), **terms,
    )  # fmt: skip


def optimum(problem: Problem) -> float:
    """The smallest objective of all trees."""
    nodes = _Nodes(problem)
    best = math.inf
    for last in itertools.product(topology.last(problem.depth), repeat=problem.n_samples):
        total = 0.0
        for t in range(problem.n_nodes):
            total += nodes.value(t, last)
            if total >= best:
                break
        best = min(best, total)
    return best


def faults(problem: Problem, best: float, objective: float, bound: float) -> list[str]:
    """What is wrong with the claims about a problem whose smallest objective is ``best``."""
    power = 2 if problem.task.squares_losses else 1
    largest = float(problem.C.max() * problem.weight.sum() * (np.abs(problem.y).max() ** power + 1.0))
    found = []
    if abs(objective - best) > max(1e-6 * best, 1e-9 * largest):
        found.append(f"objective {objective!r}, brute force {best!r}")
    if bound > best + max(1e-8 * best, 1e-9 * largest):
        found.append(f"bound {bound!r}, brute force {best!r}")
    if bound < best - max(1e-6 * best, 1e-9 * largest):
        found.append(f"solved, but bound {bound!r}, brute force {best!r}")
    return found


def one_sided(wrong: list[str], best: float, objective: float) -> list[str]:
    """The faults of a heuristic tree and a bound: the objective is below the optimum, or the bound above it."""
    too_small = objective < best
    return [text for text in wrong if text.startswith("bound") or (text.startswith("objective") and too_small)]


class _Nodes:
    """The values of nodes, each computed once for the samples and the sides that it can have."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.known: dict[tuple[object, ...], float] = {}
        self.below = [set(topology.last_below(t, problem.depth)) for t in range(problem.n_nodes)]
        self.right = [set(topology.last_right(t, problem.depth)) for t in range(problem.n_upper)]

    def value(self, t: int, last: tuple[int, ...]) -> float:
        """The value of node ``t`` if the samples reach these last-level nodes."""
        rows = tuple(i for i, at in enumerate(last) if at in self.below[t])
        side = tuple(last[i] in self.right[t] for i in rows) if t < self.problem.n_upper else ()
        key = (t, rows, side)
        if key not in self.known:
            self.known[key] = min(self._of_support(t, list(rows), side, list(s)) for s in self._supports(t))
        return self.known[key]

    def _supports(self, t: int) -> list[tuple[int, ...]]:
        p, problem = self.problem.n_features, self.problem
        if problem.budget is None:
            return [tuple(range(p))]
        largest = p if problem.alpha is not None else int(problem.budget[t])
        return [s for k in range(largest + 1) for s in itertools.combinations(range(p), k)]

    def _of_support(self, t: int, rows: list[int], side: tuple[bool, ...], support: list[int]) -> float:
        problem = self.problem
        X, y = problem.X[rows][:, support], problem.y[rows]
        cost = problem.C[t] * problem.weight[rows]
        extra = 0.0
        if problem.alpha is not None and problem.budget is not None:
            extra = float(problem.alpha[t]) * max(0, len(support) - int(problem.budget[t]))
        if not rows:
            return 0.0
        if t >= problem.n_upper:
            items = problem.task.items(y, last=True)
            sign = np.repeat([1.0, -1.0], len(y))
            corner = np.concatenate([items.r, -items.l])
            unit = float(np.max(np.abs(corner))) or 1.0
            both = np.concatenate([items.p * cost, items.m * cost])
            if items.squared:
                return unit**2 * _squares(np.vstack([X, -X]), sign, corner / unit, both) + extra
            return unit**2 * _svm(np.vstack([X, -X]), sign, corner / unit, both / unit) + extra
        sign = np.where(side, 1.0, -1.0)
        hard = np.where(side, 0.0, problem.eps)
        return _svm(X * sign[:, None], sign, np.ones(len(y)), cost, hard) + extra


def _svm(
    A: np.ndarray, sign: np.ndarray, corner: np.ndarray, cost: np.ndarray, hard: np.ndarray | None = None
) -> float:
    """The minimum of ``1/2 |w|^2 + cost . max(0, corner - A w - sign b)``, where ``A w + sign b >= hard`` if given.

    The program is in ``v``, with ``w = shrink v``, and its objective is divided by the largest cost, so that its
    numbers are of moderate size. The result is the objective of its solution, computed again from ``w``.
    """
    n, p = A.shape
    largest = float(cost.max())
    shrink = min(1.0, largest)
    P = sparse.diags(np.r_[np.full(p, shrink**2 / largest), np.zeros(1 + n)]).tocsc()
    h = np.hstack([shrink * A, sign[:, None]])
    blocks = [np.hstack([-h, -np.eye(n)]), np.hstack([np.zeros((n, p + 1)), -np.eye(n)])]
    limits = [-corner, np.zeros(n)]
    if hard is not None:
        blocks.append(np.hstack([-h, np.zeros((n, n))]))
        limits.append(-hard)
    G, g = sparse.csc_matrix(np.vstack(blocks)), np.concatenate(limits)
    q = np.r_[np.zeros(p + 1), cost / largest]
    x = _solution(P, q, G, g)
    if x is None:
        return math.inf
    w = shrink * x[:p]
    fixed, room = corner - A @ w, (hard - A @ w if hard is not None else np.full(n, -math.inf))
    # The loss is piecewise linear in b: one of the corners, or one of the ends of the allowed range, is best.
    low = float(np.max(room[sign > 0], initial=-math.inf))
    high = float(np.min(-room[sign < 0], initial=math.inf))
    if low > high:  # by the tolerance of the solver
        low = high = float(x[p])
    candidates = np.clip(
        np.r_[fixed * sign, low if math.isfinite(low) else [], high if math.isfinite(high) else []], low, high
    )
    losses = np.maximum(0.0, fixed[:, None] - sign[:, None] * candidates)
    return float(0.5 * w @ w + np.min(cost @ losses))


def _squares(A: np.ndarray, sign: np.ndarray, corner: np.ndarray, cost: np.ndarray) -> float:
    """The minimum of ``1/2 |w|^2 + cost . max(0, corner - A w - sign b)^2``, as :func:`_svm`."""
    n, p = A.shape
    largest = float(cost.max())
    shrink = min(1.0, largest**0.5)
    P = sparse.diags(np.r_[np.full(p, shrink**2 / largest), 0.0, 2.0 * cost / largest]).tocsc()
    h = np.hstack([shrink * A, sign[:, None]])
    G = sparse.csc_matrix(np.vstack([np.hstack([-h, -np.eye(n)]), np.hstack([np.zeros((n, p + 1)), -np.eye(n)])]))
    x = _solution(P, np.zeros(p + 1 + n), G, np.concatenate([-corner, np.zeros(n)]))
    assert x is not None
    w = shrink * x[:p]
    return float(0.5 * w @ w + cost @ np.maximum(0.0, corner - A @ w - sign * x[p]) ** 2)


def _solution(P: sparse.csc_matrix, q: np.ndarray, G: sparse.csc_matrix, g: np.ndarray) -> np.ndarray | None:
    """The solution of a quadratic program; None if it is infeasible."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_rel = settings.tol_gap_abs = settings.tol_feas = 1e-12
    settings.max_iter = 300
    found = clarabel.DefaultSolver(P, q, G, g, [clarabel.NonnegativeConeT(len(g))], settings).solve()
    status = str(found.status)
    if "Infeasible" in status:
        return None
    if status not in {"Solved", "AlmostSolved", "InsufficientProgress"}:
        raise ArithmeticError(f"Clarabel ends with {status}")
    return np.array(found.x)
