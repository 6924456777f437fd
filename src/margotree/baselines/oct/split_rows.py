"""The rows for the splits in the mixed-integer models of OCT-1 and OCT-H.

``u`` (t, j) says that node ``t`` splits by feature ``j`` alone, at the scaled rank ``b``.  In OCT-H, ``s`` (t, j) says
that ``j`` is one of several features of the hyperplane ``a``, and ``single`` (t) that the node splits by one feature.
"""

from __future__ import annotations

import numpy as np

from margotree.baselines.oct.merged_samples import IndexArray
from margotree.baselines.oct.problem import OctProblem
from margotree.baselines.oct.tree_cleanup import leaves_below
from margotree.engines.mip.model import Draft, Term
from margotree.problem import topology
from margotree.problem.problem import FloatArray


def ranks(problem: OctProblem) -> tuple[FloatArray, FloatArray]:
    """The rank of every value of every feature, scaled to [0, 1], and the distance of two ranks by feature."""
    steps = np.maximum(problem.points.n_values - 1, 1)
    return problem.points.rank / steps, 1.0 / steps


def one_feature_rows(draft: Draft, problem: OctProblem) -> None:
    """Add the rows of OCT-1: ``u.x >= b`` on the right and ``u.(x + step) <= b`` on the left."""
    values, step = ranks(problem)
    u, d = _feature_choice(draft, problem, 0.0), draft.blocks["d"]
    b = draft.block("b", problem.n_nodes, lower=0.0, upper=1.0)
    draft.rows([(u, 1.0), (d[:, None], -1.0)], lower=0.0, upper=0.0)
    draft.rows([(b[:, None], 1.0), (d[:, None], -1.0)], upper=0.0)
    big_m = 1.0 + float(step.max())
    for t in range(problem.n_nodes):
        left, right = _side_binaries(draft, problem, t)
        draft.rows([(u[t], values), (b[[t]], -1.0), (right, -1.0)], lower=-1.0)
        draft.rows([(u[t], values + step), (b[[t]], -1.0), (left, big_m)], upper=big_m)


def several_features_rows(draft: Draft, problem: OctProblem, mu: float) -> None:
    """Add the rows of OCT-H: as OCT-1, or ``a.x >= b`` on the right and ``a.x + mu <= b`` on the left, ``|a|_1 <= 1``.

    Bertsimas and Dunn use the second form for both.  The band of a split by one feature would then have to be as narrow
    as the smallest step of that feature, which can be below the tolerances of the solvers: they would separate equal
    points.
    """
    values, step = ranks(problem)
    X, nodes = problem.points.X, range(problem.n_nodes)
    largest_value = max(1.0, float(np.abs(X).max()))
    u = _feature_choice(draft, problem, problem.alpha)
    _hyperplane_variables(draft, problem, largest_value)
    a, b, single = (draft.blocks[name] for name in ("a", "b", "single"))
    big_m = 2.0 * largest_value + max(mu, float(step.max()))
    for t in nodes:
        left, right = _side_binaries(draft, problem, t)
        draft.rows(
            [(a[t], X), (u[t], values), (b[[t]], -1.0), (right, -2.0 * largest_value)], lower=-2.0 * largest_value
        )
        terms: list[Term] = [(a[t], X), (u[t], values + step), (single[[t]], -mu), (b[[t]], -1.0), (left, big_m)]
        draft.rows(terms, upper=big_m - mu)


def _feature_choice(draft: Draft, problem: OctProblem, split_cost: float) -> IndexArray:
    can_split = (problem.points.n_values > 1).astype(float)
    return draft.block(
        "u", (problem.n_nodes, problem.n_features), lower=0.0, upper=can_split, integer=True, linear=split_cost
    )


def _hyperplane_variables(draft: Draft, problem: OctProblem, largest_value: float) -> None:
    """Add the variables of hyperplanes: a node splits by one feature, or by two and more that ``s`` counts."""
    T, n = problem.n_nodes, problem.n_features
    u, d = draft.blocks["u"], draft.blocks["d"]
    a = draft.block("a", (T, n), lower=-1.0, upper=1.0)
    size = draft.block("size", (T, n), lower=0.0, upper=1.0)
    s = draft.block("s", (T, n), lower=0.0, upper=1.0, integer=True, linear=problem.alpha)
    b = draft.block("b", T, lower=-largest_value, upper=largest_value)
    single = draft.block("single", T, lower=0.0, upper=1.0, integer=True)
    draft.rows([(u, 1.0), (single[:, None], -1.0)], lower=0.0, upper=0.0)
    draft.rows([(single[:, None], 1.0), (d[:, None], -1.0)], upper=0.0)
    draft.rows([(size, 1.0), (single[:, None], 1.0), (d[:, None], -1.0)], upper=0.0)
    draft.rows([(s, 1.0), (single[:, None], 2.0), (d[:, None], -2.0)], lower=0.0)
    flat = {"a": a.reshape(-1, 1), "size": size.reshape(-1, 1), "s": s.reshape(-1, 1)}
    draft.rows([(flat["s"], 1.0), (flat["size"], -1.0)], lower=0.0)
    of = np.repeat(np.arange(T), n)[:, None]
    draft.rows([(flat["s"], 1.0), (single[of], 1.0), (d[of], -1.0)], upper=0.0)
    for sign in (1.0, -1.0):
        draft.rows([(flat["size"], 1.0), (flat["a"], sign)], lower=0.0)
        draft.rows([(d[:, None], largest_value), (b[:, None], sign)], lower=0.0)


def _side_binaries(draft: Draft, problem: OctProblem, t: int) -> tuple[IndexArray, IndexArray]:
    """The binaries ``z`` of every point for the leaves on the left and on the right of a node."""
    z, first = draft.blocks["z"], problem.n_nodes
    left, right = (leaves_below(child, problem.depth) for child in (topology.left(t), topology.right(t)))
    return z[:, left.start - first : left.stop - first], z[:, right.start - first : right.stop - first]
