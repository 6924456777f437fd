"""The fitted tree: prediction, explanation and files. It imports only NumPy.

- ``tree``: :class:`Tree`, the public class of trees of classes. Start here.
- ``regression``: :class:`RegressionTree`, the public class of trees of numbers; ``formulas``: its leaves as text
- ``base``: splits, routing and files, which trees of all tasks have in common
- ``protocol``: the parts of a tree that the other modules use
- ``scaling``: features in the units of the user and in scaled units
- ``decision_values``: ``h = w.x + b`` without overflow
- ``routing``: the leaf of each sample, for many samples
- ``score``: distances from the labels, and ``decision_function``
- ``probabilities``: the rules of ``predict_proba``
- ``outline``: the nodes and leaves that texts and plots show
- ``text``: rules as text
- ``decision_path``, ``sentences``: the path of one sample, as a table and as sentences
- ``contributions``: what features contribute to predictions, and their importance
- ``intervals``: prediction intervals of trees of numbers
- ``sample_paths``: the paths of many samples with labels, for plots and report pages
- ``pruning``: fewer numbers to read; ``rounding``, ``rules``: short numbers; ``node_objective``: what both compute
- ``verification``: objective and feasibility recomputed from the training data
- ``file``, ``schema``, ``labels``: saved trees as JSON, the checks of their entries, and class labels in JSON
- ``proof_summary``: the note of a checked proof
"""

from os import PathLike
from typing import Any

from margotree.tree import file
from margotree.tree.base import SELECTED, HyperplaneTree
from margotree.tree.contributions import Attributions
from margotree.tree.decision_path import Path, Step
from margotree.tree.file import TreeFileError
from margotree.tree.protocol import Split
from margotree.tree.pruning import PENALTIES, Pruning
from margotree.tree.regression import RegressionTree
from margotree.tree.scaling import Scaling, TargetScaling
from margotree.tree.tree import Tree


def load(path: str | PathLike[str]) -> Tree | RegressionTree:
    """Read a saved tree of classes or of numbers.

    :class:`~margotree.tree.TreeFileError` says what is wrong with a file.
    """
    with file.naming_the_file(path):
        return tree_from_dict(file.read(path))


def tree_from_dict(record: dict[str, Any]) -> Tree | RegressionTree:
    """Make a tree of classes or of numbers from the result of its method ``to_dict``."""
    return RegressionTree.from_dict(record) if file.is_of_numbers(record) else Tree.from_dict(record)


__all__ = [
    "PENALTIES",
    "SELECTED",
    "Attributions",
    "HyperplaneTree",
    "Path",
    "Pruning",
    "RegressionTree",
    "Scaling",
    "Split",
    "Step",
    "TargetScaling",
    "Tree",
    "TreeFileError",
    "load",
    "tree_from_dict",
]
