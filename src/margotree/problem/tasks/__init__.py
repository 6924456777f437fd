"""The tasks: what the targets are, and which losses the samples have at the nodes of a tree.

- ``base.py``: :class:`Task`, what every task defines, and :class:`Items`, the losses of the samples at a node;
- ``binary.py``: two classes;
- ``multiclass.py``: any number of classes, ``bipartitions.py``: which of them an upper node can separate;
- ``regression.py``: numeric targets, with linear and with squared losses;
- ``tangents.py``: piecewise linear losses below squared ones, for bounds;
- ``registry.py``: tasks by name, for saved trees;
- ``binaries.py``: losses and choices in terms of binary variables, for mixed-integer models.

Start with ``base.py``. Engines, proofs and trees use items and choices only, so that a new task is one new class.
"""

from margotree.problem.tasks.base import NO_CHOICE, Choices, Items, OneSided, Task, check_items, one_sided
from margotree.problem.tasks.binaries import ChoiceVariables, ConditionalLosses
from margotree.problem.tasks.binary import BINARY, Binary
from margotree.problem.tasks.multiclass import Multiclass
from margotree.problem.tasks.registry import register_task, task_from_record, task_record
from margotree.problem.tasks.regression import Regression, SquaredRegression
from margotree.problem.tasks.tangents import tangents

register_task(Regression.name, Regression)
register_task(SquaredRegression.name, SquaredRegression)

__all__ = [
    "BINARY",
    "NO_CHOICE",
    "Binary",
    "ChoiceVariables",
    "Choices",
    "ConditionalLosses",
    "Items",
    "Multiclass",
    "OneSided",
    "Regression",
    "SquaredRegression",
    "Task",
    "check_items",
    "one_sided",
    "register_task",
    "tangents",
    "task_from_record",
    "task_record",
]
