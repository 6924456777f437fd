"""The fitted tree: prediction, explanation and files. It imports only NumPy.

- ``tree``: :class:`Tree`, the public class of trees of classes. Start here.
- ``base``: splits, routing and files, which trees of all tasks have in common
- ``protocol``: the parts of a tree that the other modules use
- ``scaling``: features in the units of the user and in scaled units
- ``decision_values``: ``h = w.x + b`` without overflow
- ``routing``: the leaf of each sample, for many samples
- ``score``: distances from the labels, and ``decision_function``
- ``probabilities``: the rules of ``predict_proba``
- ``outline``: the nodes and leaves that texts and plots show
- ``text``: rules as text
- ``decision_path``: the path of one sample, as a table
- ``sample_paths``: the paths of many samples with labels, for plots and report pages
- ``verification``: objective and feasibility recomputed from the training data
- ``file``, ``schema``, ``labels``: saved trees as JSON, the checks of their entries, and class labels in JSON
- ``proof_summary``: the note of a checked proof
"""

from margotree.tree.base import SELECTED, HyperplaneTree
from margotree.tree.decision_path import Path, Step
from margotree.tree.file import TreeFileError
from margotree.tree.protocol import Split
from margotree.tree.scaling import Scaling
from margotree.tree.tree import Tree

load = Tree.load

__all__ = ["SELECTED", "HyperplaneTree", "Path", "Scaling", "Split", "Step", "Tree", "TreeFileError", "load"]
