"""MARGOT, HFS-MARGOT and SFS-MARGOT as a mixed-integer model of any depth and task, and the conversion of trees.

Variables (nodes ``t``, samples ``i``, features ``j``): ``w`` (t, j), ``b`` (t), ``xi`` (t, i), ``z`` (i, last-level
node) and, with budgets, ``s`` (t, feature or group of features) and for SFS ``u`` (t).  ``z_i`` marks the last-level
node that sample ``i`` reaches; the sum of it over the last-level nodes below ``t``, or below one of its branches, is 1
if the sample passes there.

The task defines the losses (:class:`~margotree.engines.mip.losses.LevelLosses`) and, if there is something to choose
at the nodes, the binaries ``upper_choice`` and ``last_choice`` (node, variable).  Where a sample can have losses below
and above its corners at once, ``xi`` holds the former and ``xi_above`` the latter.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from margotree.engines.mip.constants import Constants
from margotree.engines.mip.losses import LevelLosses, Losses, active_rows
from margotree.engines.mip.model import Draft, FloatArray, IndexArray, MipModel, Term
from margotree.problem import Choices, Problem, Splits, evaluate, topology


@dataclass(frozen=True, kw_only=True, eq=False)
class Formulation:
    """A problem as a mixed-integer model; converts points of the model to trees and trees to points."""

    problem: Problem
    constants: Constants
    losses: Losses
    mip: MipModel

    def node(self, x: FloatArray) -> IndexArray:
        """The last-level node of every sample, from the binaries."""
        z = self.mip.part(x, "z")
        return topology.last(self.problem.depth)[0] + np.argmax(z, axis=1).astype(np.int64)

    def support(self, x: FloatArray) -> NDArray[np.bool_] | None:
        """The features that every node may use, from the binaries; None without budgets."""
        if self.problem.budget is None:
            return None
        used: NDArray[np.bool_] = self.mip.part(x, "s")[:, self.problem.group_of] > 0.5
        return used

    def choices(self, x: FloatArray) -> Choices:
        """The choices at all nodes, from the binaries."""
        problem = self.problem
        choices = problem.task.initial_choices(problem.n_upper, problem.n_last)
        for t in range(problem.n_nodes):
            last = t >= problem.n_upper
            choices.at(t)[:] = problem.task.decode_choice(x[_choice_columns(self.mip.blocks, problem, t)], last=last)
        return choices

    def splits(self, x: FloatArray) -> Splits:
        """The hyperplanes of a point.

        Within the solver's tolerances they may route samples near ``h = 0`` differently from ``z``.
        """
        return Splits(w=self.mip.part(x, "w"), b=self.mip.part(x, "b"))

    def point(self, splits: Splits, choices: Choices | None = None) -> FloatArray:
        """The point of the model for a tree; feasible if the tree is allowed and satisfies the constants.

        The choices are those of the value function by default.
        """
        problem, blocks = self.problem, self.mip.blocks
        found = evaluate(problem, splits)
        choices = choices or found.choices
        x = np.zeros(self.mip.n_variables)
        x[blocks["w"]], x[blocks["b"]] = splits.w, splits.b
        x[blocks["z"]] = found.node[:, None] == np.array(topology.last(problem.depth))
        h = problem.X @ splits.w.T + splits.b
        for t in range(problem.n_nodes):
            losses, choice = self.losses.at(t), choices.at(t)
            values = losses.violations(h[:, t], active_rows(problem, losses, t, found.node, choice))
            columns = _slack_columns(blocks, problem, losses, t)
            x[columns] = values[: len(columns)]
            x[_choice_columns(blocks, problem, t)] = problem.task.encode_choice(choice, last=t >= problem.n_upper)
        if problem.budget is not None:
            used = np.zeros((problem.n_nodes, problem.n_groups))
            nodes, features = np.nonzero(splits.w)
            used[nodes, problem.group_of[features]] = 1.0
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
        Whether to add, at every upper node, the smallest loss of samples on the side away from their corner: for hinge
        losses ``xi >= 1`` for target side left on the right (``h >= 0``), ``xi >= 1 + eps`` for right on the left.
    size : float
        The objective of a known tree.
    """
    draft, losses = Draft(), Losses.of(problem)
    tree_variables(draft, problem, constants, losses)
    _choice_variables(draft, problem)
    if problem.budget is not None:
        budget_variables(draft, problem)
    for t in range(problem.n_nodes):
        loss_rows(draft, problem, constants, losses.at(t), t)
    for t in topology.upper(problem.depth):
        routing_rows(draft, problem, constants, t)
        if label_cuts:
            label_rows(draft, problem, losses.upper, t)
    if problem.budget is not None:
        budget_rows(draft, problem, constants)
    mip = draft.finish(tolerance=tolerance(problem, constants), size=size)
    return Formulation(problem=problem, constants=constants, losses=losses, mip=mip)


def tolerance(problem: Problem, constants: Constants) -> float:
    """The solver's tolerance at which no sample crosses a routing band."""
    upper = len(topology.upper(problem.depth))
    largest = max([1.0, *constants.M_right[:upper].ravel(), *constants.M_left[:upper].ravel()])
    return float(np.clip(_BAND_SHARE * problem.eps / largest, _FINEST_TOLERANCE, _USUAL_TOLERANCE))


def tree_variables(
    draft: Draft, problem: Problem, constants: Constants, losses: Losses, *, squares: float = 1.0
) -> None:
    """Hyperplanes, slacks and leaves of a margin tree; ``squares`` is the factor of ``1/2 |w|^2`` at every node."""
    nodes, samples, n = problem.n_nodes, problem.n_samples, problem.n_features
    draft.block("w", (nodes, n), lower=constants.w_low, upper=constants.w_high, quadratic=squares)
    draft.block("b", nodes, lower=constants.b_low, upper=constants.b_high)
    cost = problem.C[:, None] * problem.weight
    unit = np.array([losses.at(t).unit for t in range(nodes)])
    draft.block("xi", (nodes, samples), lower=0.0, upper=constants.xi_high, linear=cost * unit[:, 0])
    if two := [t for t in range(nodes) if losses.at(t).separate]:
        linear, high = (cost * unit[:, 1])[two], constants.xi_high[two]
        draft.block("xi_above", (len(two), samples), lower=0.0, upper=high, linear=linear)
    z = draft.block("z", (samples, len(topology.last(problem.depth))), lower=0.0, upper=1.0, integer=True)
    draft.rows([(z, 1.0)], lower=1.0, upper=1.0)


def _choice_variables(draft: Draft, problem: Problem) -> None:
    """What is to choose at the nodes beside the routing; fixed where the problem fixes it."""
    for name, nodes in (("upper_choice", range(problem.n_upper)), ("last_choice", topology.last(problem.depth))):
        last = nodes.start == problem.n_upper
        allowed = problem.task.choice_variables(last=last)
        if not len(allowed.upper):
            continue
        low, high = np.zeros((2, len(nodes), len(allowed.upper)))
        high[:] = allowed.upper
        if problem.choices is not None:
            low[:] = [problem.task.encode_choice(problem.choices.at(t), last=last) for t in nodes]
            high[:] = low
        columns = draft.block(name, low.shape, lower=low, upper=high, integer=True)
        # Fixed choices may be those that the rows leave out in favour of a mirror image.
        for v in columns if problem.choices is None else ():
            draft.rows([(v, allowed.rows)], lower=allowed.low, upper=allowed.high)


def _choice_columns(blocks: Mapping[str, IndexArray], problem: Problem, t: int) -> IndexArray:
    """The binaries of the choice at node ``t``."""
    name, k = ("upper_choice", t) if t < problem.n_upper else ("last_choice", t - problem.n_upper)
    return blocks[name][k] if name in blocks else np.zeros(0, dtype=np.int64)


def _slack_columns(blocks: Mapping[str, IndexArray], problem: Problem, losses: LevelLosses, t: int) -> IndexArray:
    """The slacks at node ``t``, of shape (1, n_samples), or (2, n_samples) with those above the corners."""
    if not losses.separate:
        return blocks["xi"][t : t + 1]
    first = 0 if t < problem.n_upper else problem.n_nodes - len(blocks["xi_above"])
    return np.stack([blocks["xi"][t], blocks["xi_above"][t - first]])


def budget_variables(draft: Draft, problem: Problem) -> None:
    """Which features, or groups of features, every node uses and, with penalties, by how many it exceeds its budget."""
    draft.block("s", (problem.n_nodes, problem.n_groups), lower=0.0, upper=1.0, integer=True)
    if problem.alpha is not None:
        draft.block("u", problem.n_nodes, lower=0.0, upper=float(problem.n_groups), linear=problem.alpha)


def ends_below(draft: Draft, problem: Problem, nodes: range) -> IndexArray:
    """The binaries, sample by sample, of these last-level nodes."""
    first = topology.last(problem.depth)[0]
    return draft.blocks["z"][:, nodes.start - first : nodes.stop - first]


def _ends(draft: Draft, problem: Problem, t: int, side: int) -> IndexArray:
    """The binaries of the last-level nodes below ``t`` (``side`` 0), or below its left (-1) or right (+1) child."""
    below = {0: topology.last_below, -1: topology.last_left, 1: topology.last_right}[side]
    return ends_below(draft, problem, below(t, problem.depth))


def loss_rows(draft: Draft, problem: Problem, constants: Constants, losses: LevelLosses, t: int) -> None:
    """``label h + xi >= corner - M (conditions that do not hold)`` for every loss that samples can have at ``t``.

    If a sample can have losses below and above its corners at once, these sum to at least the distance of the corners.
    """
    w, b = draft.blocks["w"][t], draft.blocks["b"][t]
    xi = _slack_columns(draft.blocks, problem, losses, t)[losses.slot, losses.rows]
    M_of_rows = np.where(losses.label > 0, constants.M_below[t, losses.rows], constants.M_above[t, losses.rows])
    for side in (0, -1, 1):
        for chosen in (False, True):
            k = np.flatnonzero((losses.side == side) & ((losses.variable >= 0) == chosen))
            if not len(k):
                continue
            rows, M, factor = losses.rows[k], M_of_rows[k, None], (losses.ratio * losses.label)[k, None]
            terms: list[Term] = [(w, factor * problem.X[rows]), (b, factor), (xi[k, None], 1.0)]
            lower = (losses.ratio * losses.corner)[k]
            if t > 0 or side:  # all samples pass the root
                terms.append((_ends(draft, problem, t, side)[rows], -M))
                lower = lower - M[:, 0]
            if chosen:
                terms, lower = _if_chosen(draft, problem, losses, t, k, M[:, 0], terms, lower)
            draft.rows(terms, lower=lower)
    _together_rows(draft, problem, losses, t, xi)


def _if_chosen(
    draft: Draft,
    problem: Problem,
    losses: LevelLosses,
    t: int,
    k: IndexArray,
    M: FloatArray,
    terms: list[Term],
    lower: FloatArray,
) -> tuple[list[Term], FloatArray]:
    """Terms and lower sides of rows for the losses ``k``, less ``M`` where the choice at ``t`` excludes the loss."""
    value = losses.value[k]
    variable = _choice_columns(draft.blocks, problem, t)[losses.variable[k]]
    return [*terms, (variable[:, None], np.where(value, -M, M)[:, None])], lower - np.where(value, M, 0.0)


def _together_rows(draft: Draft, problem: Problem, losses: LevelLosses, t: int, xi: IndexArray) -> None:
    """The sum of the losses of samples below and above their corners, whatever the constants are."""
    if not losses.separate:
        return
    i, j = losses.together.T
    for side in (0, -1, 1):
        for chosen in (False, True):
            k = np.flatnonzero(
                (losses.side[i] == side)
                & (losses.side[j] == side)
                & ((losses.variable[i] >= 0) == chosen)
                & ((losses.variable[j] >= 0) == chosen)
            )
            if not len(k):
                continue
            first, second = i[k], j[k]
            distance = losses.corner[first] + losses.corner[second]
            here = _ends(draft, problem, t, side)[losses.rows[first]]
            terms: list[Term] = [(xi[part, None], 1.0 / losses.ratio[part, None]) for part in (first, second)]
            terms, lower = [*terms, (here, -distance[:, None])], np.zeros(len(k))
            for part in (first, second) if chosen else ():
                terms, lower = _if_chosen(draft, problem, losses, t, part, distance, terms, lower)
            draft.rows(terms, lower=lower)


def routing_rows(draft: Draft, problem: Problem, constants: Constants, t: int) -> None:
    """``h >= -M (1 - sum z right)`` and ``h + eps <= M (1 - sum z left)`` at an upper node."""
    w, b = draft.blocks["w"][t], draft.blocks["b"][t]
    go_right, go_left = _ends(draft, problem, t, 1), _ends(draft, problem, t, -1)
    M_right, M_left = constants.M_right[t][:, None], constants.M_left[t][:, None]
    draft.rows([(w, problem.X), (b, 1.0), (go_right, -M_right)], lower=-M_right[:, 0])
    draft.rows([(w, problem.X), (b, 1.0), (go_left, M_left)], upper=M_left[:, 0] - problem.eps)


def label_rows(draft: Draft, problem: Problem, losses: LevelLosses, t: int) -> None:
    """The smallest loss of samples that go to the side away from their corner at an upper node."""
    xi = _slack_columns(draft.blocks, problem, losses, t)[losses.slot, losses.rows]
    # On the right h >= 0, and on the left h <= -eps.
    least = losses.ratio * (losses.corner + np.where(losses.label > 0, problem.eps, 0.0))
    for label in (-1, 1):
        wrong = -label
        for chosen in (False, True):
            k = np.flatnonzero(
                (losses.label == label)
                & ((losses.side == 0) | (losses.side == wrong))
                & (least > 0)
                & ((losses.variable >= 0) == chosen)
            )
            if not len(k):
                continue
            loss = least[k]
            there = _ends(draft, problem, t, wrong)[losses.rows[k]]
            terms: list[Term] = [(xi[k, None], 1.0), (there, -loss[:, None])]
            lower = np.zeros(len(k))
            if chosen:
                terms, lower = _if_chosen(draft, problem, losses, t, k, loss, terms, lower)
            draft.rows(terms, lower=lower)


def budget_rows(draft: Draft, problem: Problem, constants: Constants) -> None:
    """``w = 0`` where ``s = 0``, and the budgets: hard, or with ``u`` as the number of groups above them."""
    assert problem.budget is not None
    w, s = draft.blocks["w"].ravel(), draft.blocks["s"][:, problem.group_of].ravel()
    high, low = np.maximum(constants.w_high, 0.0).ravel(), np.minimum(constants.w_low, 0.0).ravel()
    draft.rows([(w[:, None], 1.0), (s[:, None], -high[:, None])], upper=0.0)
    draft.rows([(w[:, None], 1.0), (s[:, None], -low[:, None])], lower=0.0)
    counts = [(draft.blocks["s"], 1.0)]
    if problem.alpha is not None:
        counts.append((draft.blocks["u"][:, None], -1.0))
    draft.rows(counts, upper=problem.budget)
