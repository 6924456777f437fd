"""The losses of a problem's samples as items of the compiled search, whatever the task (`kernels.sample_items`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from margotree.engines.exact.kernels.routing import ABOVE, BELOW, BOTH, BY_SIDE, OPEN, SampleItems
from margotree.problem import Problem
from margotree.problem.problem import FloatArray
from margotree.problem.tasks import ConditionalLosses, Items


def sample_items(problem: Problem) -> SampleItems:
    """The losses of the samples; ValueError if the task has losses that the search does not know."""
    task, y = problem.task, problem.y
    losses = [task.conditional_losses(y, last=at_last) for at_last in (False, True)]
    upper, last = (_both_sides(found, len(y)) for found in losses)
    choices = task.initial_choices(problem.n_upper, problem.n_last)
    has_choices = bool(choices.labels.size)
    if has_choices:
        group, code = task.codes(y), _open_codes(problem, choices.sides.shape[1])
    else:
        kinds = np.column_stack([_codes(found, len(y), task.name, k == 1) for k, found in enumerate(losses)])
        kinds, group = np.unique(kinds, axis=0, return_inverse=True)
        code = np.repeat(kinds.T, [problem.n_upper, problem.n_last], axis=0)
    second = has_choices or bool(np.any(code[problem.n_upper :] == BOTH))
    cost, corner = [], []
    for t in range(problem.n_nodes):
        items = upper if t < problem.n_upper else last
        above = (items.p == 0.0) if not second or t < problem.n_upper else np.zeros(len(y), bool)
        penalty, at = np.where(above, items.m, items.p), np.where(above, -items.l, items.r)
        cost.append(np.concatenate([penalty, items.m]) if second else penalty)
        corner.append(np.concatenate([at, -items.l]) if second else at)
    weight = np.tile(problem.weight, 2 if second else 1)
    return SampleItems(
        group=np.ascontiguousarray(group.ravel(), dtype=np.int64),
        code=np.ascontiguousarray(code, dtype=np.int64),
        cost=np.array(cost) * (problem.C[:, None] * weight),
        corner=np.array(corner),
        chooses=has_choices and bool(np.any(code == OPEN)),
        third_cost=max(0.0, float(np.min(last.r - last.l))) if has_choices else 0.0,
    )


def _both_sides(losses: ConditionalLosses, n: int) -> Items:
    """The losses below and above that each sample can have at a node."""
    parts = []
    for label in (1.0, -1.0):
        rows = losses.label == label
        penalty, corner = np.zeros(n), np.ones(n)
        penalty[losses.rows[rows]], corner[losses.rows[rows]] = losses.penalty[rows], losses.corner[rows]
        parts += [penalty, label * corner]
    return Items(p=parts[0], r=parts[1], m=parts[2], l=parts[3])


def _open_codes(problem: Problem, n_codes: int) -> NDArray[np.int64]:
    """The codes of classes with choices before any decision.

    Children of an upper node can be exchanged, so the first class is always sent left; so can the labels of a pair.
    """
    code = np.full((problem.n_nodes, n_codes), OPEN)
    code[: problem.n_upper, 0] = ABOVE
    if n_codes == 2:
        code[: problem.n_upper, 1] = BELOW
        code[problem.n_upper :] = [ABOVE, BELOW]
    return code


def _codes(losses: ConditionalLosses, n: int, task: str, last: bool) -> NDArray[np.int64]:
    """The code of every sample at a node of a task without choices."""

    def has(label: float, side: int) -> NDArray[np.bool_]:
        found = np.zeros(n, bool)
        found[losses.rows[(losses.label == label) & (losses.side == side)]] = True
        return found

    below, above = has(1.0, 0), has(-1.0, 0)
    right, left, other = has(1.0, 1), has(-1.0, -1), has(1.0, -1) | has(-1.0, 1)
    items = _both_sides(losses, n)
    by_side = right & left & (items.p == items.m) & (items.r == -items.l)
    code = np.select([below & above, below, above, by_side], [BOTH, BELOW, ABOVE, BY_SIDE], OPEN)
    unknown = other | ((right | left) & ~by_side) | (by_side & (below | above)) | (code == (BY_SIDE if last else BOTH))
    if np.any(unknown):
        raise ValueError(
            f"the losses of a {task} problem at upper nodes are not known to the exact search: a sample has the loss "
            "of one side, or of the side that it takes with the same penalty and margin on both sides"
        )
    return np.asarray(code, dtype=np.int64)


def labels_of(problem: Problem) -> FloatArray | None:
    """The labels +1 and -1 if every sample has the loss ``max(0, 1 - label h)`` at all nodes; None otherwise."""
    if problem.task.initial_choices(problem.n_upper, problem.n_last).labels.size:
        return None
    items = _both_sides(problem.task.conditional_losses(problem.y, last=True), problem.n_samples)
    label: FloatArray = items.p - items.m
    hinge = np.all(np.abs(label) == 1.0) and np.all(np.where(label > 0, items.r, -items.l) == 1.0)
    return label if hinge else None
