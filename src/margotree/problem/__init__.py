"""What is to be solved, and what a given tree is worth."""

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
