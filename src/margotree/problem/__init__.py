"""The training problem, and the objective and feasibility of a given tree.

- ``problem.py``: :class:`Problem`, data and terms of one training problem;
- ``tasks/``: what the targets are and which losses they have;
- ``value.py``: :func:`evaluate`, the definition of objective and feasibility;
- ``routing.py``: on which side of a split a sample lies;
- ``topology.py``: numbering of nodes and leaves;
- ``blocks.py``: passes over many samples;
- ``tiny_problems.py``: problems of a few points, with which kernels are compiled;
- ``protocol.py``: what engines need of problems of other kinds (the baselines).

Start with ``problem.py`` and ``value.py``.
"""

from margotree.problem.problem import MAX_DEPTH, MulticlassProblem, Problem, check_depth, per_node
from margotree.problem.protocol import Finding, TrainingProblem
from margotree.problem.routing import tie
from margotree.problem.tasks import (
    BINARY,
    Binary,
    Choices,
    Items,
    Multiclass,
    Regression,
    SquaredRegression,
    Task,
    register_task,
)
from margotree.problem.value import Evaluation, Splits, evaluate

__all__ = [
    "BINARY",
    "MAX_DEPTH",
    "Binary",
    "Choices",
    "Evaluation",
    "Finding",
    "Items",
    "Multiclass",
    "MulticlassProblem",
    "Problem",
    "Regression",
    "Splits",
    "SquaredRegression",
    "Task",
    "TrainingProblem",
    "check_depth",
    "evaluate",
    "per_node",
    "register_task",
    "tie",
]
