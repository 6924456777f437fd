"""Losses and choices in terms of binary variables, from which mixed-integer models of all tasks are built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from margotree.problem.blocks import FloatArray, IndexArray


@dataclass(frozen=True, kw_only=True, eq=False)
class ConditionalLosses:
    """The losses that samples can have at a node, each with the conditions under which it applies.

    A row is the loss ``penalty max(0, corner - label h)`` of one sample.  It applies to samples that reach the node, if
    they take the side ``side`` there, and if the binary variable ``variable`` of the node's choice is ``value``.

    Parameters
    ----------
    rows : array of shape (n_rows,)
        Positions of the samples.
    label, corner, penalty : array of shape (n_rows,)
        +1 for a loss below the corner and -1 for one above; the corner times ``label``; the penalty, which is positive.
    side : array of shape (n_rows,)
        -1, +1, or 0 for a loss on either side and at last-level nodes.
    variable, value : array of shape (n_rows,)
        Number of the variable, or -1 for a loss that does not depend on the choice; the value, 0 or 1.
    """

    rows: IndexArray
    label: FloatArray
    corner: FloatArray
    penalty: FloatArray
    side: IndexArray
    variable: IndexArray
    value: IndexArray


class ChoiceVariables(NamedTuple):
    """The choice at a node as binary variables ``v`` with ``low <= rows v <= high``.

    Of choices that give the same trees with children exchanged, the rows may allow only one.

    Parameters
    ----------
    upper : array of shape (n_variables,)
        1, or 0 for a variable that is always 0.
    rows : array of shape (n_rows, n_variables)
    low, high : array of shape (n_rows,)
    """

    upper: FloatArray
    rows: FloatArray
    low: FloatArray
    high: FloatArray


#: The variables of a task without choices.
NO_VARIABLES = ChoiceVariables(np.zeros(0), np.zeros((0, 0)), np.zeros(0), np.zeros(0))
