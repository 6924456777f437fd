"""The losses of a task at the nodes of a level, assigned to variables of the mixed-integer model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from margotree.engines.mip.model import FloatArray, IndexArray
from margotree.problem import Problem, topology
from margotree.problem.tasks import ConditionalLosses


@dataclass(frozen=True, kw_only=True, eq=False)
class LevelLosses(ConditionalLosses):
    """The losses that samples can have at the nodes of a level, with their variables.

    A sample has one variable for its losses, or one for those below corners and one for those above if both can be
    positive at once.

    Parameters
    ----------
    slot : array of shape (n_rows,)
        Which of the variables of the sample holds the loss: 0 or 1.
    unit : array of shape (2, n_samples)
        Penalty per unit of each variable.
    ratio : array of shape (n_rows,)
        Units of the variable per unit of the margin violation: 1 if the losses of a variable have the same penalty.
    together : array of shape (n_pairs, 2)
        Pairs of rows, below a corner and above, that can both be positive.
    """

    slot: IndexArray
    unit: FloatArray
    ratio: FloatArray
    together: IndexArray

    @property
    def separate(self) -> bool:
        """Whether samples have two variables."""
        return len(self.together) > 0

    def violations(self, h: FloatArray, active: NDArray[np.bool_]) -> FloatArray:
        """Values of the variables, of shape (2, n_samples), for decision values ``h`` if the rows ``active`` apply."""
        values = np.zeros(self.unit.shape)
        violation = self.ratio * np.maximum(0.0, self.corner - self.label * h[self.rows])
        np.maximum.at(values, (self.slot, self.rows), active * violation)
        return values


@dataclass(frozen=True, kw_only=True, eq=False)
class Losses:
    """The losses at upper and at last-level nodes of a problem."""

    upper: LevelLosses
    last: LevelLosses
    n_upper: int

    @classmethod
    def of(cls, problem: Problem) -> Losses:
        """The losses of a problem."""
        upper, last = (_level(problem, last) for last in (False, True))
        return cls(upper=upper, last=last, n_upper=problem.n_upper)

    def at(self, t: int) -> LevelLosses:
        """The losses at node ``t``."""
        return self.upper if t < self.n_upper else self.last


def _level(problem: Problem, last: bool) -> LevelLosses:
    """The losses at upper nodes or at last-level nodes."""
    found = problem.task.conditional_losses(problem.y, last=last)
    together = _together(found, problem.n_samples)
    slot = np.where((found.label < 0) & (len(together) > 0), 1, 0)
    unit = np.zeros((2, problem.n_samples))
    np.maximum.at(unit, (slot, found.rows), found.penalty)
    return LevelLosses(
        **vars(found),
        slot=slot,
        unit=unit,
        ratio=found.penalty / unit[slot, found.rows],
        together=together,
    )


def _together(losses: ConditionalLosses, n_samples: int) -> IndexArray:
    """Pairs of rows of one sample, below a corner and above, that can both apply and be positive."""
    below, above = np.flatnonzero(losses.label > 0), np.flatnonzero(losses.label < 0)
    of_sample = [
        sparse.csr_matrix((np.ones(len(part)), (np.arange(len(part)), losses.rows[part])), shape=(len(part), n_samples))
        for part in (below, above)
    ]
    first, second = (of_sample[0] @ of_sample[1].T).nonzero()
    i, j = below[first], above[second]
    excluded = (losses.side[i] * losses.side[j] < 0) | (
        (losses.variable[i] >= 0) & (losses.variable[i] == losses.variable[j]) & (losses.value[i] != losses.value[j])
    )
    kept = ~excluded & (losses.corner[i] + losses.corner[j] > 0)
    return np.column_stack([i[kept], j[kept]]).astype(np.int64)


def active_rows(
    problem: Problem, losses: LevelLosses, t: int, node: IndexArray, choice: IndexArray
) -> NDArray[np.bool_]:
    """The rows that apply at node ``t`` for a routing, given by last-level nodes, and a choice at ``t``."""
    last = t >= problem.n_upper
    passes, right = np.isin(node, topology.last_below(t, problem.depth)), np.zeros(len(node), dtype=bool)
    if not last:
        right = np.isin(node, topology.last_right(t, problem.depth))
    values = problem.task.encode_choice(choice, last=last)
    if len(values):
        chosen = (losses.variable < 0) | (values[losses.variable] == losses.value)
    else:
        chosen = np.ones(len(losses.rows), dtype=bool)
    side = np.where(right, 1, -1)[losses.rows]
    active: NDArray[np.bool_] = passes[losses.rows] & ((losses.side == 0) | (losses.side == side)) & chosen
    return active
