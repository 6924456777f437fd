"""The paper's MARGOT, HFS-MARGOT and SFS-MARGOT as a mixed-integer model of any depth, and the conversion of trees.

Variables (nodes ``t``, samples ``i``, features ``j``): ``w`` (t, j), ``b`` (t), ``xi`` (t, i), ``z`` (i, last-level
node) and, with budgets, ``s`` (t, j) and for SFS ``u`` (t).  ``z_i`` marks the last-level node that sample ``i``
reaches; the sum of it over the last-level nodes below ``t``, or below one of its branches, is 1 if the sample passes
there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margotree.engines.mip.constants import Constants
from margotree.engines.mip.model import Draft, FloatArray, IndexArray, MipModel
from margotree.problem import Problem, Splits, evaluate, topology


@dataclass(frozen=True, kw_only=True, eq=False)
class Formulation:
    """A problem as a mixed-integer model; converts points of the model to trees and trees to points."""

    problem: Problem
    constants: Constants
    mip: MipModel

    def node(self, x: FloatArray) -> IndexArray:
        """The last-level node of every sample, from the binaries."""
        z = self.mip.part(x, "z")
        return topology.last(self.problem.depth)[0] + np.argmax(z, axis=1).astype(np.int64)

    def support(self, x: FloatArray) -> NDArray[np.bool_] | None:
        """The features that every node may use, from the binaries; None without budgets."""
        return None if self.problem.budget is None else self.mip.part(x, "s") > 0.5

    def splits(self, x: FloatArray) -> Splits:
        """The hyperplanes of a point.

        Within the solver's tolerances they may route samples near ``h = 0`` differently from ``z``.
        """
        return Splits(w=self.mip.part(x, "w"), b=self.mip.part(x, "b"))

    def point(self, splits: Splits) -> FloatArray:
        """The point of the model for a tree; feasible if the tree is allowed and satisfies the constants."""
        problem, blocks = self.problem, self.mip.blocks
        node = evaluate(problem, splits).node
        x = np.zeros(self.mip.n_variables)
        x[blocks["w"]], x[blocks["b"]] = splits.w, splits.b
        h = problem.X @ splits.w.T + splits.b
        passes = np.array([np.isin(node, topology.last_below(t, problem.depth)) for t in range(problem.n_nodes)])
        x[blocks["xi"]] = passes * np.maximum(0.0, 1.0 - problem.y * h.T)
        x[blocks["z"]] = node[:, None] == np.array(topology.last(problem.depth))
        if problem.budget is not None:
            used = splits.w != 0
            x[blocks["s"]] = used
            if problem.alpha is not None:
                x[blocks["u"]] = np.maximum(0, used.sum(axis=1) - problem.budget)
        return x


#: A sample can cross the routing band by the solver's tolerance times the largest big-M.  The tolerance is chosen such
#: that this is at most this share of the band, within the tolerances that solvers support.
_BAND_SHARE, _FINEST_TOLERANCE, _USUAL_TOLERANCE = 0.01, 1e-9, 1e-6


def formulate(problem: Problem, constants: Constants, *, label_cuts: bool, size: float = 1.0) -> Formulation:
    """The model of a problem with the given constants.

    Parameters
    ----------
    label_cuts : bool
        Whether to add, at every upper node, the margin violation of samples routed against their label: ``xi >= 1`` for
        class -1 on the right (``h >= 0``), ``xi >= 1 + eps`` for class +1 on the left (``h <= -eps``).
    size : float
        The objective of a known tree.
    """
    draft = Draft()
    tree_variables(draft, problem, constants)
    if problem.budget is not None:
        budget_variables(draft, problem)
    for t in range(problem.n_nodes):
        margin_rows(draft, problem, constants, t)
    for t in topology.upper(problem.depth):
        routing_rows(draft, problem, constants, t)
        if label_cuts:
            label_rows(draft, problem, t)
    if problem.budget is not None:
        budget_rows(draft, problem, constants)
    mip = draft.finish(tolerance=tolerance(problem, constants), size=size)
    return Formulation(problem=problem, constants=constants, mip=mip)


def tolerance(problem: Problem, constants: Constants) -> float:
    """The solver's tolerance at which no sample crosses a routing band."""
    upper = len(topology.upper(problem.depth))
    largest = max([1.0, *constants.M_right[:upper].ravel(), *constants.M_left[:upper].ravel()])
    return float(np.clip(_BAND_SHARE * problem.eps / largest, _FINEST_TOLERANCE, _USUAL_TOLERANCE))


def tree_variables(draft: Draft, problem: Problem, constants: Constants, *, squares: float = 1.0) -> None:
    """Hyperplanes, slacks and leaves of a margin tree; ``squares`` is the factor of ``1/2 |w|^2`` at every node."""
    nodes, samples, n = problem.n_nodes, problem.n_samples, problem.n_features
    draft.block("w", (nodes, n), lower=constants.w_low, upper=constants.w_high, quadratic=squares)
    draft.block("b", nodes, lower=constants.b_low, upper=constants.b_high)
    cost = problem.C[:, None] * problem.weight
    draft.block("xi", (nodes, samples), lower=0.0, upper=constants.xi_high, linear=cost)
    z = draft.block("z", (samples, len(topology.last(problem.depth))), lower=0.0, upper=1.0, integer=True)
    draft.rows([(z, 1.0)], lower=1.0, upper=1.0)


def budget_variables(draft: Draft, problem: Problem) -> None:
    """Which features every node uses and, with penalties, by how many it exceeds its budget."""
    draft.block("s", (problem.n_nodes, problem.n_features), lower=0.0, upper=1.0, integer=True)
    if problem.alpha is not None:
        draft.block("u", problem.n_nodes, lower=0.0, upper=float(problem.n_features), linear=problem.alpha)


def ends_below(draft: Draft, problem: Problem, nodes: range) -> IndexArray:
    """The binaries, sample by sample, of these last-level nodes."""
    first = topology.last(problem.depth)[0]
    return draft.blocks["z"][:, nodes.start - first : nodes.stop - first]


def margin_rows(draft: Draft, problem: Problem, constants: Constants, t: int) -> None:
    """``y h + xi - M_xi sum z >= 1 - M_xi``: the soft margin, for samples that pass ``t``."""
    w, b, xi = (draft.blocks[name][t] for name in ("w", "b", "xi"))
    here = ends_below(draft, problem, topology.last_below(t, problem.depth))
    y, M = problem.y[:, None], constants.M_xi[t][:, None]
    if t == 0:
        M = np.zeros_like(M)  # all samples pass the root
    draft.rows([(w, y * problem.X), (b, y), (xi[:, None], 1.0), (here, -M)], lower=1.0 - M[:, 0])


def routing_rows(draft: Draft, problem: Problem, constants: Constants, t: int) -> None:
    """``h >= -M (1 - sum z right)`` and ``h + eps <= M (1 - sum z left)`` at an upper node."""
    w, b = draft.blocks["w"][t], draft.blocks["b"][t]
    go_right = ends_below(draft, problem, topology.last_right(t, problem.depth))
    go_left = ends_below(draft, problem, topology.last_left(t, problem.depth))
    M_right, M_left = constants.M_right[t][:, None], constants.M_left[t][:, None]
    draft.rows([(w, problem.X), (b, 1.0), (go_right, -M_right)], lower=-M_right[:, 0])
    draft.rows([(w, problem.X), (b, 1.0), (go_left, M_left)], upper=M_left[:, 0] - problem.eps)


def label_rows(draft: Draft, problem: Problem, t: int) -> None:
    """``xi >= 1``, or ``1 + eps``, for samples that go against their label at an upper node."""
    xi = draft.blocks["xi"][t]
    for side, wrong, loss in (
        (-1, topology.last_right(t, problem.depth), 1.0),
        (+1, topology.last_left(t, problem.depth), 1.0 + problem.eps),
    ):
        rows = problem.y == side
        if np.any(rows):
            draft.rows([(xi[rows, None], 1.0), (ends_below(draft, problem, wrong)[rows], -loss)], lower=0.0)


def budget_rows(draft: Draft, problem: Problem, constants: Constants) -> None:
    """``w = 0`` where ``s = 0``, and the budgets: hard, or with ``u`` as the number of features above them."""
    assert problem.budget is not None
    w, s = draft.blocks["w"].ravel(), draft.blocks["s"].ravel()
    high, low = np.maximum(constants.w_high, 0.0).ravel(), np.minimum(constants.w_low, 0.0).ravel()
    draft.rows([(w[:, None], 1.0), (s[:, None], -high[:, None])], upper=0.0)
    draft.rows([(w[:, None], 1.0), (s[:, None], -low[:, None])], lower=0.0)
    counts = [(draft.blocks["s"], 1.0)]
    if problem.alpha is not None:
        counts.append((draft.blocks["u"][:, None], -1.0))
    draft.rows(counts, upper=problem.budget)
