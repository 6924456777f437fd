"""MM-SVM-OCT as a mixed-integer second-order cone model, and the conversion between trees and points of the model.

The tree part (``w``, ``b``, ``xi``, ``z``) is that of MARGOT's formulation.  ``delta`` bounds every ``1/2 |w_t|^2``,
``d`` (t) says that a node splits and, if relabelling is allowed, ``r`` (t, i) that sample ``i`` has the loss of the
other class at node ``t``.

Constants: let ``U`` be the objective of a known tree.  In an optimal tree with at least one split,
``1/2 |w_t|^2 <= delta <= U - c3`` at every node.  Offsets can be chosen as for MARGOT's constants
(:mod:`margotree.engines.mip.constants`: an offset changes only the losses), so
``-max(1, eps) - r far_i <= h_t(x_i) <= 1 + r far_i``, where ``r`` bounds ``|w_t|`` and ``far_i`` is the distance from
sample ``i`` to the sample farthest from it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from margotree.baselines.mmsvm.polish import polish
from margotree.baselines.mmsvm.problem import MmSvmProblem
from margotree.engines import RunControl
from margotree.engines.mip import formulation
from margotree.engines.mip.constants import Constants, farthest_distances
from margotree.engines.mip.losses import Losses
from margotree.engines.mip.model import Draft, FloatArray, MipModel
from margotree.engines.mip.normal_form import normalise
from margotree.problem import Splits, topology

#: Relative and absolute slack on ``U``, so that the constants are valid in spite of rounding.
_SLACK = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class MmSvmModel:
    """A problem in MIP form; converts points of the model to trees and trees to points."""

    problem: MmSvmProblem
    mip: MipModel

    def trees(self, x: FloatArray, control: RunControl) -> Iterator[Splits]:
        """The polished tree with the routing of a point of the model; none if there is no such tree."""
        z = self.mip.part(x, "z")
        node = topology.last(self.problem.depth)[0] + np.argmax(z, axis=1).astype(np.int64)
        relabelled = self.mip.part(x, "r") > 0.5 if self.problem.c2 is not None else None
        tree = polish(self.problem, node, self.mip.part(x, "d") > 0.5, relabelled, control)
        if tree is not None:
            yield tree

    def point(self, splits: Splits) -> FloatArray:
        """The point of the model for an allowed tree."""
        problem, blocks = self.problem, self.mip.blocks
        if problem.c2 is None:
            splits, _ = normalise(problem.margin, splits)
        found = problem.evaluate(splits)
        x = np.zeros(self.mip.n_variables)
        x[blocks["w"]], x[blocks["b"]] = splits.w, splits.b
        sign = np.where(found.relabelled, -problem.margin.y, problem.margin.y)
        slack = np.maximum(0.0, 1.0 - sign * (problem.margin.X @ splits.w.T + splits.b).T)
        for t in range(problem.n_nodes):
            x[blocks["xi"][t]] = np.isin(found.node, topology.last_below(t, problem.depth)) * slack[t]
        x[blocks["z"]] = found.node[:, None] == np.array(topology.last(problem.depth))
        x[blocks["d"]] = splits.w.any(axis=1)
        x[blocks["delta"]] = found.delta
        if problem.c2 is not None:
            x[blocks["r"]] = found.relabelled
        return x


def formulate(problem: MmSvmProblem, value: float) -> MmSvmModel:
    """The model of a problem, given the objective of a known tree."""
    draft, margin = Draft(), problem.margin
    limits, losses = _constants(problem, value), Losses.of(margin)
    formulation.tree_variables(draft, margin, limits, losses, squares=0.0)
    _split_rows(draft, problem, limits, value)
    if problem.c2 is not None:
        draft.block(
            "r",
            (problem.n_nodes, problem.n_samples),
            lower=0.0,
            upper=1.0,
            integer=True,
            linear=_relabelling_costs(problem),
        )
    for t in range(problem.n_nodes):
        if problem.c2 is None:
            formulation.loss_rows(draft, margin, limits, losses.at(t), t)
        else:
            _relabelling_rows(draft, problem, limits, t)
    for t in topology.upper(problem.depth):
        formulation.routing_rows(draft, margin, limits, t)
        if problem.c2 is None:
            formulation.label_rows(draft, margin, losses.upper, t)
    mip = draft.finish(tolerance=formulation.tolerance(margin, limits), size=value)
    return MmSvmModel(problem=problem, mip=mip)


def _constants(problem: MmSvmProblem, value: float) -> Constants:
    """Bounds on the variables and big-M constants, as derived in the docstring of the module."""
    margin, nodes = problem.margin, problem.n_nodes
    largest_norm = math.sqrt(2.0 * max(0.0, value - problem.c3) * (1.0 + _SLACK)) + _SLACK
    variation = largest_norm * farthest_distances(margin.X)
    h_low = np.tile(-max(1.0, problem.eps) - variation, (nodes, 1))
    h_high = np.tile(1.0 + variation, (nodes, 1))
    offset_range = largest_norm * np.linalg.norm(margin.X, axis=1)
    largest_slack = 1.0 + np.maximum(h_high, -h_low)
    return Constants(
        w_low=np.full((nodes, problem.n_features), -largest_norm),
        w_high=np.full((nodes, problem.n_features), largest_norm),
        b_low=np.max(h_low - offset_range, axis=1),
        b_high=np.min(h_high + offset_range, axis=1),
        xi_high=largest_slack,
        M_below=largest_slack if problem.c2 is not None else 1.0 - h_low,
        M_above=largest_slack if problem.c2 is not None else 1.0 + h_high,
        M_right=-h_low,
        M_left=h_high + problem.eps,
    )


def _split_rows(draft: Draft, problem: MmSvmProblem, limits: Constants, value: float) -> None:
    """Add ``1/2 |w_t|^2 <= delta``, ``w_t = 0`` at nodes that do not split, and no split below such a node."""
    w = draft.blocks["w"]
    delta = draft.block("delta", 1, lower=0.0, upper=value * (1.0 + _SLACK) + _SLACK, linear=1.0)
    d = draft.block("d", problem.n_nodes, lower=0.0, upper=1.0, integer=True, linear=problem.c3)
    for t in range(problem.n_nodes):
        draft.ball(w[t], [(int(delta[0]), -1.0)], 0.0)
        for sign in (1.0, -1.0):
            draft.rows([(d[[t]], limits.w_high[t][:, None]), (w[t][:, None], sign)], lower=0.0)
        if t:
            draft.rows([(d[[t, topology.parent(t)]], [1.0, -1.0])], upper=0.0)


def _relabelling_costs(problem: MmSvmProblem) -> FloatArray:
    """The penalty of relabelling every sample at every node."""
    assert problem.c2 is not None
    return np.tile(problem.c2 * problem.margin.weight, (problem.n_nodes, 1))


def _relabelling_rows(draft: Draft, problem: MmSvmProblem, limits: Constants, t: int) -> None:
    """Add the soft margins of the samples that pass ``t``: of their own label or, if relabelled, of the other one."""
    margin = problem.margin
    w, b, xi, r = (draft.blocks[name][t] for name in ("w", "b", "xi", "r"))
    here = formulation.ends_below(draft, margin, topology.last_below(t, problem.depth))
    y, M = margin.y[:, None], limits.M_below[t][:, None]
    slack = (xi[:, None], 1.0), (here, -M)
    draft.rows([(w, y * margin.X), (b, y), *slack, (r[:, None], M)], lower=1.0 - M[:, 0])
    draft.rows([(w, -y * margin.X), (b, -y), *slack, (r[:, None], -M)], lower=1.0 - 2.0 * M[:, 0])
