"""Training problems, and the objective and feasibility of a given tree.

- ``problem``: :class:`Problem`, a margin tree for two classes: data, C, budgets, penalties. Start here.
- ``multiclass``: :class:`MulticlassProblem`, the same for any number of classes
- ``value``: :func:`evaluate`, the plain NumPy function that defines the objective and the feasibility of a tree
- ``multiclass_value``: the same for any number of classes
- ``protocol``: what every training problem, also those of the baselines, has in common
- ``topology``: the numbering of the nodes of a complete binary tree
- ``blocks``: passes over many samples in blocks
"""

from margotree.problem.multiclass import MulticlassProblem
from margotree.problem.problem import MAX_DEPTH, Problem, check_depth, per_node
from margotree.problem.protocol import Finding, TrainingProblem
from margotree.problem.value import Evaluation, Splits, evaluate, tie

__all__ = [
    "MAX_DEPTH",
    "Evaluation",
    "Finding",
    "MulticlassProblem",
    "Problem",
    "Splits",
    "TrainingProblem",
    "check_depth",
    "evaluate",
    "per_node",
    "tie",
]
